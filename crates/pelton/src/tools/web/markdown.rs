//! A page as Markdown: headings, paragraphs, lists, tables, code, links. What only decorates is left out. Pure.

use url::Url;

use super::html::{Token, Tokens, attribute};
use super::table::Table;
use crate::limits::{WEB_DEPTH_SHOWN_MAX, WEB_LINK_CHARS_MAX, WEB_MARKDOWN_BYTES_MAX, WEB_TAGS_OPEN_MAX};

/// A page that was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// What it calls itself.
    pub title: String,
    /// What it says.
    pub markdown: String,
    /// There was more than is kept.
    pub is_cut: bool,
}

/// Reads a page that was found at this address.
pub(super) fn of(html: &str, found_at: &Url) -> Page {
    let mut writer = Writer::new(found_at.clone());
    for token in Tokens::of(html) {
        if writer.out.len() > WEB_MARKDOWN_BYTES_MAX {
            writer.is_cut = true;
            break;
        }
        match token {
            Token::Open { name, attributes, closes_itself } => writer.open(name, attributes, closes_itself),
            Token::Close { name } => writer.close(&name),
            Token::Text(text) => writer.text(&text),
        }
    }
    writer.finish()
}

/// Elements nobody reads.
const UNREAD: &[&str] = &[
    "audio", "canvas", "datalist", "dialog", "map", "math", "noscript", "object", "select", "svg",
    "template", "video",
];
/// Elements that begin a paragraph and end it.
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "caption",
    "center",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "hgroup",
    "legend",
    "main",
    "menu",
    "nav",
    "p",
    "section",
    "summary",
    "search",
];
/// Elements that have no end.
const EMPTY: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
    "wbr",
];

/// What is open.
#[derive(Debug, PartialEq, Eq)]
enum Open {
    /// Marks around words.
    Marked(&'static str),
    /// A link: where its words begin, and where it leads. `None` once it is written.
    Link(usize, Option<String>),
    Quote,
    List(Option<u64>),
    Item,
    Pre,
    Title,
    /// It changes nothing.
    Plain,
}

struct Writer {
    out: String,
    title: String,
    /// The paragraph being read.
    line: String,
    /// What the paragraph begins with.
    lead: String,
    open: Vec<(String, Open)>,
    /// How many of those hold text as it is.
    pres: usize,
    /// An element nobody reads, and how often it is open.
    unread: Option<(String, usize)>,
    table: Option<Table>,
    /// The language of code that comes.
    language: String,
    base: Url,
    is_cut: bool,
}

impl Writer {
    fn new(base: Url) -> Self {
        Self {
            out: String::new(),
            title: String::new(),
            line: String::new(),
            lead: String::new(),
            open: Vec::new(),
            pres: 0,
            unread: None,
            table: None,
            language: String::new(),
            base,
            is_cut: false,
        }
    }

    fn open(&mut self, name: String, attributes: &str, closes_itself: bool) {
        if let Some((unread, times)) = &mut self.unread {
            *times += usize::from(*unread == name && !closes_itself);
            return;
        }
        if UNREAD.contains(&name.as_str()) && !closes_itself {
            self.unread = Some((name, 1));
            return;
        }
        if self.is_in_pre() && !matches!(name.as_str(), "br" | "code" | "pre") {
            return;
        }
        let what = match name.as_str() {
            "br" => return self.line.push('\n'),
            "hr" => return self.block("---"),
            "img" => return self.picture(attributes),
            "base" => {
                self.base = attribute(attributes, "href")
                    .and_then(|to| self.led_to(&to))
                    .unwrap_or(self.base.clone());
                return;
            }
            name if EMPTY.contains(&name) => return,
            "title" => Open::Title,
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.end_paragraph();
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.lead = format!("{} ", "#".repeat(level));
                Open::Plain
            }
            "strong" | "b" => self.mark("**"),
            "em" | "i" | "cite" | "dfn" => self.mark("*"),
            "del" | "s" | "strike" => self.mark("~~"),
            "code" if self.is_in_pre() => {
                self.note_language(attributes);
                Open::Plain
            }
            "code" | "kbd" | "samp" | "tt" => self.mark("`"),
            "a" => match attribute(attributes, "href").and_then(|to| self.link(&to)) {
                Some(to) => {
                    let at = self.line.len();
                    self.line.push('[');
                    Open::Link(at, Some(to))
                }
                None => Open::Plain,
            },
            "blockquote" => {
                self.end_paragraph();
                Open::Quote
            }
            "ul" | "menu" => {
                self.end_paragraph();
                Open::List(None)
            }
            "ol" => {
                self.end_paragraph();
                let first = attribute(attributes, "start").and_then(|first| first.trim().parse().ok());
                Open::List(Some(first.unwrap_or(1)))
            }
            "li" => {
                // The one before may not have been closed.
                self.close_within("li", &["ul", "ol", "menu"]);
                self.end_paragraph();
                self.lead = self.bullet();
                Open::Item
            }
            "pre" | "listing" => {
                self.end_paragraph();
                self.language.clear();
                self.note_language(attributes);
                Open::Pre
            }
            "table" => {
                self.end_paragraph();
                match &mut self.table {
                    Some(table) => table.begin_inner(),
                    None => self.table = Some(Table::default()),
                }
                Open::Plain
            }
            "tr" => return self.in_table(Table::begin_row),
            "td" | "th" => return self.in_table(Table::begin_cell),
            name if BLOCKS.contains(&name) => {
                self.end_paragraph();
                Open::Plain
            }
            _ => Open::Plain,
        };
        // What changes nothing need not be closed.
        if what != Open::Plain {
            self.push(name, what);
        }
    }

    fn close(&mut self, name: &str) {
        if let Some((unread, times)) = &mut self.unread {
            *times -= usize::from(unread == name);
            if *times == 0 {
                self.unread = None;
            }
            return;
        }
        match name {
            "br" => return self.line.push('\n'),
            "tr" | "td" | "th" => return self.in_table(|_| {}),
            "table" => {
                self.end_paragraph();
                if let Some(table) = self.table.take_if(Table::end) {
                    self.block(&table.written());
                }
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.end_paragraph(),
            name if BLOCKS.contains(&name) => self.end_paragraph(),
            _ => {}
        }
        if let Some(at) = self.open.iter().rposition(|(open, _)| open == name) {
            while self.open.len() > at {
                self.end_last();
            }
        }
    }

    fn text(&mut self, text: &str) {
        if self.unread.is_some() || text.is_empty() {
            return;
        }
        if self.open.last().is_some_and(|(_, last)| *last == Open::Title) {
            let room = WEB_LINK_CHARS_MAX.saturating_sub(self.title.len());
            self.title.extend(text.chars().take(room));
            return;
        }
        if self.is_in_pre() {
            self.line.push_str(&text.replace("\r\n", "\n"));
            return;
        }
        for c in text.chars() {
            if !c.is_whitespace() {
                self.line.push(c);
            } else if !self.line.ends_with([' ', '\n', '[']) && !self.line.is_empty() {
                self.line.push(' ');
            }
        }
    }

    fn finish(mut self) -> Page {
        while !self.open.is_empty() {
            self.end_last();
        }
        self.end_paragraph();
        if let Some(table) = self.table.take() {
            self.block(&table.written());
        }
        let title = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        self.out.truncate(self.out.trim_end().len());
        Page { title, markdown: self.out, is_cut: self.is_cut }
    }

    fn push(&mut self, name: String, what: Open) {
        // Deeper than anybody builds: what is inside is read all the same.
        if self.open.len() < WEB_TAGS_OPEN_MAX {
            self.pres += usize::from(what == Open::Pre);
            self.open.push((name, what));
        }
    }

    fn end_last(&mut self) {
        match self.open.pop() {
            Some((_, Open::Marked(mark))) => self.unmark(mark),
            Some((_, Open::Link(at, Some(to)))) => self.end_link(at, &to),
            Some((_, Open::Pre)) => {
                self.pres -= 1;
                self.end_code();
            }
            // While they are still known, so that the paragraph stands where it belongs.
            Some((name, what @ (Open::Quote | Open::Item | Open::List(_)))) => {
                self.open.push((name, what));
                self.end_paragraph();
                self.open.pop();
            }
            _ => {}
        }
    }

    /// Closes an element that was left open, unless it is outside one of these.
    fn close_within(&mut self, name: &str, walls: &[&str]) {
        let found = self.open.iter().rposition(|(open, _)| open == name || walls.contains(&open.as_str()));
        if let Some(at) = found.filter(|at| self.open[*at].0 == name) {
            while self.open.len() > at {
                self.end_last();
            }
        }
    }

    fn is_in_pre(&self) -> bool {
        self.pres > 0
    }

    fn in_table(&mut self, change: impl FnOnce(&mut Table)) {
        if self.table.is_none() {
            return self.end_paragraph();
        }
        self.end_paragraph();
        if let Some(table) = &mut self.table {
            change(table);
        }
    }

    fn mark(&mut self, mark: &'static str) -> Open {
        self.line.push_str(mark);
        Open::Marked(mark)
    }

    fn unmark(&mut self, mark: &str) {
        let ended = self.line.ends_with(' ');
        self.line.truncate(self.line.trim_end_matches(' ').len());
        match self.line.strip_suffix(mark) {
            // There was nothing between the two.
            Some(before) => self.line.truncate(before.len()),
            None => self.line.push_str(mark),
        }
        if ended {
            self.line.push(' ');
        }
    }

    fn end_link(&mut self, at: usize, to: &str) {
        let words = self.line.get(at..).unwrap_or_default();
        match words.strip_prefix('[').map(str::trim) {
            Some("") => self.line.truncate(at),
            Some(words) => {
                let words = words.replace('\n', " ");
                self.line.truncate(at);
                self.line.push_str(&format!("[{words}]({to})"));
            }
            // The paragraph it began in has ended.
            None => {}
        }
    }

    /// The words of a link may be a whole picture; where it leads is an address others can use, if it is one.
    fn link(&self, to: &str) -> Option<String> {
        let to = to.trim();
        if to.is_empty() || to.starts_with('#') {
            return None;
        }
        let to = self.led_to(to)?;
        matches!(to.scheme(), "http" | "https" | "mailto" | "ftp").then(|| to.to_string().replace(')', "%29"))
    }

    fn led_to(&self, to: &str) -> Option<Url> {
        let to = (to.len() <= WEB_LINK_CHARS_MAX).then(|| self.base.join(to.trim()).ok())??;
        (to.as_str().len() <= WEB_LINK_CHARS_MAX).then_some(to)
    }

    fn picture(&mut self, attributes: &str) {
        let words = attribute(attributes, "alt").unwrap_or_default();
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        if words.is_empty() || words.len() > WEB_LINK_CHARS_MAX {
            return;
        }
        match attribute(attributes, "src").and_then(|from| self.link(&from)) {
            Some(from) => self.line.push_str(&format!("![{words}]({from})")),
            None => self.line.push_str(&words),
        }
    }

    fn note_language(&mut self, attributes: &str) {
        let classes = attribute(attributes, "class").unwrap_or_default();
        let language = classes.split_whitespace().find_map(|class| {
            let named = ["language-", "lang-", "highlight-source-"]
                .iter()
                .find_map(|before| class.strip_prefix(before));
            named.filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || "+#-_".contains(c)))
        });
        if let Some(language) = language {
            self.language = language.chars().take(20).collect();
        }
    }

    fn bullet(&mut self) -> String {
        for (_, open) in self.open.iter_mut().rev() {
            if let Open::List(number) = open {
                return match number {
                    None => "- ".to_owned(),
                    Some(number) => {
                        let bullet = format!("{number}. ");
                        *number = number.saturating_add(1);
                        bullet
                    }
                };
            }
        }
        "- ".to_owned()
    }

    /// What every line begins with here, and whether a list is around it.
    fn margin(&self) -> (String, bool) {
        let (mut margin, mut items, mut shown) = (String::new(), 0usize, 0usize);
        for (_, open) in &self.open {
            match open {
                Open::Quote if shown < WEB_DEPTH_SHOWN_MAX => {
                    margin.push_str(&"  ".repeat(std::mem::take(&mut items)));
                    margin.push_str("> ");
                    shown += 1;
                }
                Open::Item if shown < WEB_DEPTH_SHOWN_MAX => {
                    items += 1;
                    shown += 1;
                }
                _ => {}
            }
        }
        let in_list = items > 0;
        // The bullet itself stands one step further out.
        let steps =
            if self.lead.is_empty() { items } else { items.saturating_sub(usize::from(self.is_at_item())) };
        margin.push_str(&"  ".repeat(steps));
        (margin, in_list)
    }

    fn is_at_item(&self) -> bool {
        !self.lead.starts_with('#')
    }

    fn has_marks(&self) -> bool {
        self.open.iter().any(|(_, open)| matches!(open, Open::Marked(_) | Open::Link(_, Some(_))))
    }

    /// Marks and links do not go on behind a paragraph.
    fn close_marks(&mut self) {
        for at in (0..self.open.len()).rev() {
            match std::mem::replace(&mut self.open[at].1, Open::Plain) {
                Open::Marked(mark) => self.unmark(mark),
                Open::Link(from, Some(to)) => self.end_link(from, &to),
                other => self.open[at].1 = other,
            }
        }
    }

    fn end_paragraph(&mut self) {
        if self.is_in_pre() {
            return;
        }
        // Marks and links that have just begun are about what comes.
        if self.line.trim_matches(['[', '*', '~', '`', ' ', '\n']).is_empty() && self.has_marks() {
            return;
        }
        if !self.line.is_empty() {
            self.close_marks();
        }
        let line = std::mem::take(&mut self.line);
        let words: Vec<&str> = line.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if words.is_empty() {
            return;
        }
        self.block(&words.join("\n"));
    }

    fn end_code(&mut self) {
        let code = std::mem::take(&mut self.line);
        let code = code.trim_matches('\n').trim_end();
        if code.is_empty() {
            return;
        }
        if let Some(table) = &mut self.table {
            return table.write(code);
        }
        let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or_default();
        let fence = "`".repeat(longest.max(2) + 1);
        let language = std::mem::take(&mut self.language);
        self.block(&format!("{fence}{language}\n{code}\n{fence}"));
    }

    /// Writes a paragraph where it belongs.
    fn block(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if let Some(table) = &mut self.table {
            let lead = std::mem::take(&mut self.lead);
            return table.write(&format!("{lead}{text}"));
        }
        let (margin, in_list) = self.margin();
        let lead = std::mem::take(&mut self.lead);
        let is_item = in_list && !lead.is_empty() && !lead.starts_with('#');
        if !self.out.is_empty() {
            // Items of a list stand close together.
            self.out.push_str(if is_item { "\n" } else { "\n\n" });
        }
        let hang = if is_item { " ".repeat(lead.len()) } else { String::new() };
        for (nth, line) in text.lines().enumerate() {
            if self.out.len() > WEB_MARKDOWN_BYTES_MAX {
                self.is_cut = true;
                return;
            }
            if nth > 0 {
                self.out.push('\n');
                self.out.push_str(&margin);
                self.out.push_str(&hang);
            } else {
                self.out.push_str(&margin);
                self.out.push_str(&lead);
            }
            self.out.push_str(line);
        }
    }
}

#[cfg(test)]
mod tests;
