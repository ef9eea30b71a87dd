//! `sed`: which scripts only print. Everything that is not known for certain is taken to do more.

use super::arg::{Arg, Files};
use super::look::Look;
use crate::limits::{NAME_IN_TEXT_BYTES_MAX, NAMES_IN_TEXTS_MAX};

/// The words of a call.
pub(super) struct Call<'a> {
    pub scripts: Vec<String>,
    pub files: Vec<&'a Arg>,
    pub in_place: bool,
    /// What was there is kept under another name.
    pub keeps_copies: bool,
}

impl Call<'_> {
    /// The patterns among its files that would become options, were there files of such names; `None` if one could match any name.
    pub fn dashless(&self) -> Option<Vec<Files>> {
        let open = self.files.iter().filter(|file| file.may_be_option());
        open.map(|file| file.matches_some()).collect()
    }
}

/// What it looks at, if looking is all that it does.
pub(super) fn look(args: &[Arg]) -> Option<Look> {
    let call = call(args)?;
    if call.in_place || !call.scripts.iter().all(|script| only_prints(script)) {
        return None;
    }
    let files: Option<Vec<Files>> = call.files.iter().map(|file| file.files()).collect();
    Some(Look { files: files?, dashless: call.dashless()?, ..Look::nothing() })
}

/// The patterns among the files of a call that changes them where they are that would become options, were there files of such names,
/// and whether it makes no files of other names.
pub(super) fn edited_in_place(args: &[Arg]) -> Option<(Vec<Files>, bool)> {
    let call = call(args).filter(|call| call.in_place)?;
    Some((call.dashless()?, !call.keeps_copies))
}

/// Takes the words apart. `None` if one is not known.
pub(super) fn call(args: &[Arg]) -> Option<Call<'_>> {
    let mut call = Call { scripts: Vec::new(), files: Vec::new(), in_place: false, keeps_copies: false };
    let mut operands = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let Some(text) = arg.literal() else {
            // Lines by numbers that are counted: `"${i}p"`.
            let is_script =
                operands.is_empty() && arg.is_one_word() && arg.with_numbers(is_before_address).is_some();
            ((arg.is_sure() || is_script) && !arg.prefix().starts_with('-')).then_some(())?;
            operands.push(arg);
            continue;
        };
        match text {
            "--" => operands.extend(args.by_ref()),
            "-e" | "--expression" => call.scripts.push(args.next()?.with_numbers(is_before_address)?),
            "--quiet" | "--silent" | "--regexp-extended" | "--separate" | "--unbuffered" | "--null-data"
            | "--posix" | "--debug" | "--sandbox" => {}
            "-i" | "--in-place" => call.in_place = true,
            text if text.starts_with("--expression=") => {
                call.scripts.push(text["--expression=".len()..].to_owned());
            }
            text if text.starts_with("--in-place=") => {
                in_place_suffix(&text["--in-place=".len()..])?;
                call.in_place = true;
                call.keeps_copies = true;
            }
            text if text.starts_with("--") => return None,
            text if text.len() > 1 && text.starts_with('-') => {
                let mut letters = text[1..].chars();
                while let Some(letter) = letters.next() {
                    match letter {
                        'n' | 'E' | 'r' | 's' | 'u' | 'z' => {}
                        'e' => {
                            let glued = letters.as_str();
                            call.scripts.push(match glued.is_empty() {
                                true => args.next()?.with_numbers(is_before_address)?,
                                false => glued.to_owned(),
                            });
                            break;
                        }
                        'i' => {
                            in_place_suffix(letters.as_str())?;
                            call.in_place = true;
                            call.keeps_copies |= !letters.as_str().is_empty();
                            break;
                        }
                        _ => return None,
                    }
                }
            }
            _ => operands.push(arg),
        }
    }
    if call.scripts.is_empty() {
        let (script, files) = operands.split_first()?;
        call.scripts.push(script.with_numbers(is_before_address)?);
        call.files = files.to_vec();
    } else {
        call.files = operands;
    }
    Some(call)
}

/// Whether a number behind this in a script is an address, or a part of one: before it stand nothing but addresses and commands that take
/// no text. Elsewhere its digits could be a delimiter.
fn is_before_address(said: &str) -> bool {
    said.chars().all(|c| c.is_ascii_digit() || " \n,;{}!$+~pPdDqQ=".contains(c))
}

/// What stands right behind letters that may be commands which read or write a file: `R.env`, `s/a/b/wx`.
pub(super) fn glued_names(script: &str) -> String {
    let behind = script.match_indices(['r', 'R', 'w', 'W']).map(|(at, _)| &script[at + 1..]);
    let names = behind.take(NAMES_IN_TEXTS_MAX).filter_map(|rest| rest.split([';', '\n', '}', ' ']).next());
    let names = names.filter(|name| name.len() <= NAME_IN_TEXT_BYTES_MAX);
    names.collect::<Vec<_>>().join(" ")
}

/// What is put behind the name of the copy that is kept. A `*` or `/` in it would put the copy elsewhere.
fn in_place_suffix(suffix: &str) -> Option<()> {
    (!suffix.contains(['*', '/'])).then_some(())
}

/// Whether a script does nothing but print: no files, no programs.
pub(super) fn only_prints(script: &str) -> bool {
    let mut reader = Reader { left: script };
    reader.script().is_some() && reader.left.is_empty()
}

struct Reader<'a> {
    left: &'a str,
}

impl Reader<'_> {
    fn script(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            self.skip(|c| c.is_whitespace() || c == ';');
            let Some(next) = self.peek() else { return (depth == 0).then_some(()) };
            if next == '}' {
                depth = depth.checked_sub(1)?;
                self.next();
                continue;
            }
            if next == '#' {
                self.skip(|c| c != '\n');
                continue;
            }
            self.addresses()?;
            self.skip(|c| c == ' ' || c == '\t' || c == '!');
            match self.next()? {
                '{' => depth += 1,
                'p' | 'P' | 'd' | 'D' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | '=' | 'z' | 'F' => {
                    self.end()?;
                }
                'q' | 'Q' | 'l' => {
                    self.skip(|c| c == ' ' || c.is_ascii_digit());
                    self.end()?;
                }
                's' => self.substitution()?,
                'y' => {
                    let delimiter = self.delimiter()?;
                    self.replacement(delimiter)?;
                    self.replacement(delimiter)?;
                    self.end()?;
                }
                // A blank ends a label, and behind that another command may stand.
                'b' | 't' | 'T' | ':' => {
                    self.skip(|c| c == ' ');
                    self.skip(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
                    self.end()?;
                }
                'a' | 'i' | 'c' => self.text()?,
                _ => return None,
            }
        }
    }

    fn addresses(&mut self) -> Option<()> {
        if !self.address()? {
            return Some(());
        }
        self.skip(|c| c == ' ');
        if self.peek() == Some(',') {
            self.next();
            self.skip(|c| c == ' ');
            if matches!(self.peek(), Some('+' | '~')) {
                self.next();
            }
            self.address()?.then_some(())?;
        }
        Some(())
    }

    fn address(&mut self) -> Option<bool> {
        match self.peek() {
            Some('$') => _ = self.next(),
            Some(c) if c.is_ascii_digit() => self.skip(|c| c.is_ascii_digit() || c == '~'),
            Some('/') => {
                self.next();
                self.part('/')?;
                self.skip(|c| c == 'I' || c == 'M');
            }
            Some('\\') => {
                self.next();
                let delimiter = self.delimiter()?;
                self.part(delimiter)?;
                self.skip(|c| c == 'I' || c == 'M');
            }
            _ => return Some(false),
        }
        Some(true)
    }

    /// `s/a/b/flags` without those that write or run.
    fn substitution(&mut self) -> Option<()> {
        let delimiter = self.delimiter()?;
        self.part(delimiter)?;
        self.replacement(delimiter)?;
        self.skip(|c| "gpiIM".contains(c) || c.is_ascii_digit());
        self.end()
    }

    fn delimiter(&mut self) -> Option<char> {
        self.next().filter(|c| *c != '\n' && *c != '\\')
    }

    /// Text to the end of the line, and of the lines that go on with a backslash. A backslash behind another is text.
    fn text(&mut self) -> Option<()> {
        self.skip(|c| c == ' ' || c == '\t');
        // Blanks between a first one and the end of its line do not count everywhere.
        let is_unclear = ["\\ ", "\\\t"].iter().any(|begin| self.left.starts_with(begin));
        (!is_unclear).then_some(())?;
        while let Some(c) = self.next() {
            match c {
                '\\' => _ = self.next(),
                '\n' => break,
                _ => {}
            }
        }
        Some(())
    }

    /// Passes what stands before the next delimiter, and it. In brackets a delimiter may be meant as it is: who reads it
    /// otherwise would see other commands, so that is not certain.
    fn part(&mut self, delimiter: char) -> Option<()> {
        let mut in_bracket = false;
        loop {
            match self.next()? {
                '\\' => _ = self.next()?,
                c if c == delimiter => return (!in_bracket).then_some(()),
                '[' if !in_bracket => {
                    in_bracket = true;
                    // Right behind it a closing one stands for itself.
                    for sign in ['^', ']'] {
                        self.left = match self.left.strip_prefix(sign) {
                            Some(left) if sign != delimiter => left,
                            _ => self.left,
                        };
                    }
                }
                '[' if self.left.starts_with([':', '.', '=']) => self.left = behind_class(self.left)?,
                ']' => in_bracket = false,
                '\n' => return None,
                _ => {}
            }
        }
    }

    /// The same for text in which brackets mean nothing.
    fn replacement(&mut self, delimiter: char) -> Option<()> {
        loop {
            match self.next()? {
                '\\' => _ = self.next()?,
                c if c == delimiter => return Some(()),
                '\n' => return None,
                _ => {}
            }
        }
    }

    fn end(&mut self) -> Option<()> {
        self.skip(|c| c == ' ' || c == '\t');
        match self.peek() {
            None | Some('}') => Some(()),
            Some(';' | '\n') => {
                self.next();
                Some(())
            }
            Some('#') => Some(()),
            Some(_) => None,
        }
    }

    fn peek(&self) -> Option<char> {
        self.left.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.left = &self.left[c.len_utf8()..];
        Some(c)
    }

    fn skip(&mut self, skipped: impl Fn(char) -> bool) {
        self.left = self.left.trim_start_matches(skipped);
    }
}

/// What stands behind `:alpha:]` in a bracket: the bracket goes on there. Nothing for what is no such name.
pub(super) fn behind_class(text: &str) -> Option<&str> {
    let name = text.strip_prefix(':')?;
    let end = name.find(|c: char| !c.is_ascii_lowercase())?;
    name[end..].strip_prefix(":]")
}

#[cfg(test)]
mod tests {
    use super::only_prints;

    #[test]
    fn scripts_that_write_run_or_read_are_told_from_those_that_print() {
        for script in [
            "1,5p",
            "p",
            "/a/,/b/p",
            "s/a/b/",
            "s/a/b/g;s|x|y|",
            "$d",
            "1!d",
            "/x/{p;q}",
            "s/[^a]*//",
            "10q",
            "/^#/d",
            "y/abc/xyz/",
            "1~2p",
            "/a/,+3p",
            "\\|x|p",
            "s/a\\/b/c/2p",
            "$!N;P;D",
            "=",
            "n;d",
            "1i hello",
            ":a;N;$!ba;s/\\n/ /g",
            ":a; s/x/y/; ta",
            "/a/{:b\nn\nbb\n}",
            "a foo\\\nbar",
            "s/[]]/x/g",
            "s/^/[/;s/$/]/",
            "s/[^]]*]//",
            "s/[[:space:]]*$//",
            "/^[[:alpha:]_][[:alnum:]_]*=/p",
        ] {
            assert!(only_prints(script), "{script}");
        }
        for script in [
            "s/[[:alpha:]/]/g;/;e echo ran #/p",
            "s/[[:alpha:]/]/g;/w.git/config",
            "s/[[.a.]/]/g;/;e echo ran #/p",
            "s/[[=a=]/]/g;/;e echo ran #/p",
            "s/[[:alpha/]/g;/;e echo ran #/p",
            "w out",
            "1w out",
            "s/a/b/w out",
            "s/a/b/e",
            "e id",
            "1e id",
            "r /etc/passwd",
            "R x",
            "W x",
            "s/a/b/gw x",
            "p;w x",
            "{w x",
            "/a/{e id\n}",
            "s/a/b/ge",
            "unknown",
            "s/[/]/w x/",
            "s/a/b",
            "p}",
            "a\\\nx\ne id",
            ":a e id",
            ":a\te id",
            "t x w out",
            "b x w out",
            "T x w out",
            "a foo\\\\\ne id",
            "i\\\\\nw out",
            "a\\ \ne id",
            "s/[]/]/w out/",
            "s^[^w out^p^",
        ] {
            assert!(!only_prints(script), "{script}");
        }
    }
}
