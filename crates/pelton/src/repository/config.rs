//! The settings of a repository, as git reads them. Pure.

use std::iter::Peekable;
use std::str::Chars;

/// A setting: its section and its name in small letters, what is between them as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    pub value: String,
}

/// The entries of a file, in their order. `None` if it is none that git would read.
pub fn read(text: &str) -> Option<Vec<Entry>> {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text).chars().peekable();
    let (mut section, mut entries) = (None, Vec::new());
    while let Some(next) = rest.next() {
        match next {
            _ if next.is_whitespace() => {}
            '#' | ';' => skip_line(&mut rest),
            '[' => section = Some(header(&mut rest)?),
            _ if next.is_ascii_alphabetic() => {
                let mut name = String::from(next);
                while let Some(more) = rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '-') {
                    name.push(more);
                }
                let key = format!("{}.{}", section.as_ref()?, name.to_ascii_lowercase());
                entries.push(Entry { key, value: value(&mut rest)? });
            }
            _ => return None,
        }
    }
    Some(entries)
}

/// Whether a value means no.
pub fn is_no(value: &str) -> bool {
    ["", "false", "no", "off", "0"].iter().any(|no| value.eq_ignore_ascii_case(no))
}

/// Whether a value means yes.
pub fn is_yes(value: &str) -> bool {
    ["true", "yes", "on", "1"].iter().any(|yes| value.eq_ignore_ascii_case(yes))
}

/// `[section]`, `[section.subsection]` or `[section "subsection"]`, behind its bracket.
fn header(rest: &mut Peekable<Chars<'_>>) -> Option<String> {
    let mut name = String::new();
    loop {
        match rest.next()? {
            ']' => return Some(name.to_ascii_lowercase()),
            ' ' | '\t' => break,
            c if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') => name.push(c),
            _ => return None,
        }
    }
    while rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
    let mut subsection = String::new();
    (rest.next()? == '"').then_some(())?;
    loop {
        match rest.next()? {
            '"' => break,
            '\\' => subsection.push(rest.next()?),
            '\n' => return None,
            c => subsection.push(c),
        }
    }
    (rest.next()? == ']').then(|| format!("{}.{subsection}", name.to_ascii_lowercase()))
}

/// What stands behind a name. A name alone means yes.
fn value(rest: &mut Peekable<Chars<'_>>) -> Option<String> {
    while rest.next_if(|c| matches!(c, ' ' | '\t' | '\r')).is_some() {}
    match rest.next() {
        None | Some('\n') => return Some("true".to_owned()),
        Some('#' | ';') => {
            skip_line(rest);
            return Some("true".to_owned());
        }
        Some('=') => {}
        Some(_) => return None,
    }
    let (mut value, mut is_quoted, mut kept) = (String::new(), false, 0);
    while let Some(next) = rest.next() {
        match next {
            '\n' if is_quoted => return None,
            '\n' => break,
            '#' | ';' if !is_quoted => {
                skip_line(rest);
                break;
            }
            '"' => is_quoted = !is_quoted,
            '\\' => match rest.next()? {
                // It goes on in the next line.
                '\n' => continue,
                '\r' if rest.next_if_eq(&'\n').is_some() => continue,
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'b' => value.push('\u{8}'),
                c @ ('"' | '\\') => value.push(c),
                _ => return None,
            },
            c if c.is_whitespace() && !is_quoted => {
                if !value.is_empty() {
                    value.push(c);
                }
                continue;
            }
            c => value.push(c),
        }
        // Blanks at the end are no part of it, but for those in quotes.
        kept = value.len();
    }
    value.truncate(kept);
    (!is_quoted).then_some(value)
}

fn skip_line(rest: &mut Peekable<Chars<'_>>) {
    while rest.next().is_some_and(|c| c != '\n') {}
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Git's own reading of texts that it takes.
    #[test]
    fn settings_are_read_as_git_reads_them() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        for text in [
            "[a]\n\tb = c\n",
            "[A \"B.c\"] d=e ; f\n[a.B] D = \" x \" y # z\n",
            "[a]\r\n\tb = c d  \r\n\te\r\n",
            "[a]b\n[a]c=\n",
            "[a]\n\tb = one \\\n two\n",
            "[a \"x\\\"y\\\\z\"]\n\tk = \"q\\\"r\" \\t s\n",
            "# only a remark\n;\n\n[a-b.c]\n\tk-1 = #\n",
            "\u{feff}[a]\nb = ümlaut\n",
        ] {
            std::fs::write(&file, text).unwrap();
            let said =
                Command::new("git").args(["config", "-z", "--list", "-f"]).arg(&file).output().unwrap();
            assert!(said.status.success(), "{text}");
            let said = String::from_utf8(said.stdout).unwrap();
            let expected: Vec<Entry> = said
                .split_terminator('\0')
                .map(|entry| {
                    let (key, value) = entry.split_once('\n').unwrap_or((entry, "true"));
                    Entry { key: key.to_owned(), value: value.to_owned() }
                })
                .collect();
            assert_eq!(read(text), Some(expected), "{text}");
        }
        for text in ["[a", "[a]\n= b\n", "[a]\nb = \"c\n", "[a \"b]\n", "[a]\nb ! c\n"] {
            std::fs::write(&file, text).unwrap();
            let said = Command::new("git").args(["config", "--list", "-f"]).arg(&file).output().unwrap();
            assert!(!said.status.success() && read(text).is_none(), "{text}");
        }
    }
}
