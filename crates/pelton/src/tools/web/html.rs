//! HTML as a row of tags and texts. Takes whatever it is given, in one pass and without depth: what a browser would build a tree of is
//! only read here. Pure.

use std::borrow::Cow;

use super::entities;

/// One thing in a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A tag that opens; its name is in small letters.
    Open { name: String, attributes: &'a str, closes_itself: bool },
    /// A tag that closes.
    Close { name: String },
    /// Text between tags, as it is read.
    Text(Cow<'a, str>),
}

/// Elements whose inside is no HTML.
const RAW: &[&str] = &["script", "style", "noframes", "xmp", "iframe", "noembed", "plaintext"];
/// The same, but with entities.
const RAW_TEXT: &[&str] = &["textarea", "title"];

/// Reads a page from its beginning to its end.
pub(super) struct Tokens<'a> {
    rest: &'a str,
    /// The element whose inside comes next and is no HTML.
    inside: Option<String>,
}

impl<'a> Tokens<'a> {
    pub fn of(page: &'a str) -> Self {
        Self { rest: page, inside: None }
    }

    /// Takes everything before a place.
    fn take(&mut self, end: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    /// What stands inside an element that holds no HTML: all until its own end.
    fn raw(&mut self, name: &str) -> Token<'a> {
        let text = self.take(end_of_raw(self.rest, name));
        match RAW_TEXT.contains(&name) {
            true => Token::Text(entities::read(text)),
            false => Token::Text(Cow::Borrowed("")),
        }
    }

    fn tag(&mut self) -> Option<Token<'a>> {
        let mut letters = self.rest[1..].chars();
        match letters.next()? {
            '!' | '?' => {
                let comment = self.rest.strip_prefix("<!--");
                let (from, end) = if comment.is_some() { (4, "-->") } else { (2, ">") };
                let found = self.rest[from..].find(end).map(|at| from + at + end.len());
                self.take(found.unwrap_or(self.rest.len()));
                Some(Token::Text(Cow::Borrowed("")))
            }
            '/' if letters.next().is_some_and(|c| c.is_ascii_alphabetic()) => {
                let inside = self.take(end_of_tag(self.rest));
                Some(Token::Close { name: name_in(&inside[2..]).to_ascii_lowercase() })
            }
            first if first.is_ascii_alphabetic() => {
                let inside = self.take(end_of_tag(self.rest));
                let inside = inside[1..].strip_suffix('>').unwrap_or(&inside[1..]);
                let name = name_in(inside);
                let attributes = &inside[name.len()..];
                let name = name.to_ascii_lowercase();
                let closes_itself = attributes.ends_with('/');
                if RAW.contains(&name.as_str()) || RAW_TEXT.contains(&name.as_str()) {
                    self.inside = Some(name.clone());
                }
                Some(Token::Open { name, attributes, closes_itself })
            }
            _ => None,
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        if let Some(name) = self.inside.take() {
            return Some(self.raw(&name));
        }
        if self.rest.is_empty() {
            return None;
        }
        if self.rest.starts_with('<')
            && let Some(token) = self.tag()
        {
            return Some(token);
        }
        // A `<` that begins nothing is one.
        let first = self.rest.chars().next().map_or(0, char::len_utf8);
        let end = self.rest[first..].find('<').map_or(self.rest.len(), |at| first + at);
        Some(Token::Text(entities::read(self.take(end))))
    }
}

/// The value of an attribute, as it is read.
pub(super) fn attribute<'a>(attributes: &'a str, wanted: &str) -> Option<Cow<'a, str>> {
    let mut rest = attributes;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        let end = rest.find(|c: char| c.is_ascii_whitespace() || c == '=' || c == '/').unwrap_or(rest.len());
        // A lone `=` begins a name.
        let end = if end == 0 { rest.char_indices().nth(1).map_or(rest.len(), |(at, _)| at) } else { end };
        let (name, behind) = rest.split_at(end);
        if name.is_empty() {
            return None;
        }
        let behind = behind.trim_start();
        let (value, next) = match behind.strip_prefix('=').map(str::trim_start) {
            None => ("", behind),
            Some(value) => match value.chars().next() {
                Some(quote @ ('"' | '\'')) => {
                    let inside = &value[1..];
                    let end = inside.find(quote).unwrap_or(inside.len());
                    (&inside[..end], inside.get(end + 1..).unwrap_or_default())
                }
                _ => value.split_at(value.find(|c: char| c.is_ascii_whitespace()).unwrap_or(value.len())),
            },
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(entities::read(value));
        }
        rest = next;
    }
}

fn name_in(inside: &str) -> &str {
    let end = inside.find(|c: char| c.is_ascii_whitespace() || c == '/' || c == '>').unwrap_or(inside.len());
    &inside[..end]
}

/// Where a tag ends that begins here: behind its `>`, which does not count inside quotes.
fn end_of_tag(text: &str) -> usize {
    let mut quote = None;
    let mut after_equals = false;
    for (at, c) in text.bytes().enumerate() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') if after_equals => quote = Some(c),
            (None, b'>') => return at + 1,
            _ => {}
        }
        after_equals = c == b'=' || (after_equals && c.is_ascii_whitespace());
    }
    // A quote nobody closed: then the next `>` ends it, so that not all of the page is lost.
    text.find('>').map_or(text.len(), |at| at + 1)
}

/// Where the inside of such an element ends: before the tag that closes it.
fn end_of_raw(text: &str, name: &str) -> usize {
    let mut from = 0;
    while let Some(found) = text[from..].find("</") {
        let at = from + found;
        let behind = &text.as_bytes()[at + 2..];
        let closes = behind.get(..name.len()).is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()));
        let ends = |c: &u8| c.is_ascii_whitespace() || matches!(c, b'>' | b'/');
        if closes && behind.get(name.len()).is_none_or(ends) {
            return at;
        }
        from = at + 2;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(page: &str) -> String {
        let mut told = String::new();
        for token in Tokens::of(page) {
            match token {
                Token::Open { name, attributes, closes_itself } => {
                    told += &format!(
                        "<{name}{}{}>",
                        attributes.trim_end_matches('/').trim_end(),
                        if closes_itself { "/" } else { "" }
                    );
                }
                Token::Close { name } => told += &format!("</{name}>"),
                Token::Text(text) => told += &text,
            }
        }
        told
    }

    #[test]
    fn pages_are_read_as_they_come() {
        for (page, expected) in [
            ("<P>a &lt; b</P>", "<p>a < b</p>"),
            ("a < b <3 c", "a < b <3 c"),
            ("<!doctype html><!-- <p> -->x", "x"),
            ("<!-- never closed <p>x", ""),
            ("<script>if (a</b) '</p>'</script>y", "<script></script>y"),
            ("<style>p>a{}</STYLE >y", "<style></style>y"),
            ("<script>never closed", "<script>"),
            ("<title>a &amp; <b></title>", "<title>a & <b></title>"),
            ("<br/>x<img src='a>b' />", "<br/>x<img src='a>b'/>"),
            ("<a href=\"x>y</a>z", "<a href=\"x>y</a>z"),
            ("<", "<"),
            ("</", "</"),
            ("<a", "<a>"),
            ("ä<b>ö", "ä<b>ö"),
        ] {
            assert_eq!(told(page), expected, "{page}");
        }
    }

    #[test]
    fn attributes_are_found_however_they_are_written() {
        for (attributes, wanted, expected) in [
            (" href=\"a&amp;b\" x", "href", Some("a&b")),
            (" HREF = 'a b'", "href", Some("a b")),
            (" x=1 href=a/b/c title=t", "href", Some("a/b/c")),
            (" hidden/", "hidden", Some("")),
            (" data-href='no' ", "href", None),
            (" =x href=y", "href", Some("y")),
            (" href='never closed", "href", Some("never closed")),
            ("", "href", None),
        ] {
            assert_eq!(attribute(attributes, wanted).as_deref(), expected, "{attributes}");
        }
    }

    proptest! {
        #[test]
        fn anything_is_read_to_its_end(page in "(<|>|/|!|-|&|;|=|'|\"|a|ä| |script|\n){0,60}") {
            let count = Tokens::of(&page).count();
            prop_assert!(count <= 2 * page.len() + 2);
            let _ = attribute(&page, "a");
        }
    }
}
