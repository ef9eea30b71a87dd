//! The head of a Markdown file between two lines of `---`: YAML, read leniently, because people write it by hand.

use serde_json::{Map, Value};

/// A Markdown file: what its head says, and the text below.
#[derive(Debug, Clone, PartialEq)]
pub struct Headed<'a> {
    pub head: Map<String, Value>,
    pub body: &'a str,
    /// There is a head, and it cannot be read.
    pub is_broken: bool,
}

impl<'a> Headed<'a> {
    /// A head that cannot be read counts as an empty one.
    pub fn read(text: &'a str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let Some((head, body)) = split(text) else {
            return Self { head: Map::new(), body: text, is_broken: false };
        };
        let read = parse(head)
            .or_else(|| parse(&quoted(head, &['"', '\'', '[', '{', '|', '>'])))
            // `[file] [line]` is no list.
            .or_else(|| parse(&quoted(head, &['"', '\'', '|', '>'])));
        Self { is_broken: read.is_none(), head: read.unwrap_or_default(), body }
    }

    /// A text, however it is written.
    pub fn text(&self, key: &str) -> Option<String> {
        match self.head.get(key)? {
            Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            _ => None,
        }
    }

    /// A yes or no, in the words people use for them.
    pub fn flag(&self, key: &str) -> Option<bool> {
        match self.text(key)?.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" => Some(false),
            _ => None,
        }
    }

    /// A list, or a text with its parts between commas. What stands in braces or brackets is one part.
    pub fn list(&self, key: &str) -> Option<Vec<String>> {
        match self.head.get(key)? {
            Value::Array(items) => {
                Some(items.iter().filter_map(Value::as_str).map(|item| item.trim().to_owned()).collect())
            }
            Value::String(text) => {
                let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
                Some(between_commas(inside.unwrap_or(text)))
            }
            _ => None,
        }
    }
}

/// The parts of a text between its commas, those in braces, brackets and parentheses left alone.
pub fn between_commas(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_usize;
    for c in text.chars() {
        match c {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match parts.last_mut() {
            Some(part) if c != ',' || depth > 0 => part.push(c),
            _ => parts.push(String::new()),
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

fn split(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---")?;
    let rest = rest.trim_start_matches([' ', '\t']);
    let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n'))?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

fn parse(head: &str) -> Option<Map<String, Value>> {
    if head.trim().is_empty() {
        return Some(Map::new());
    }
    match yaml_serde::from_str::<Value>(head) {
        Ok(Value::Object(map)) => Some(map),
        Ok(Value::Null) => Some(Map::new()),
        _ => None,
    }
}

/// The head with its values in quotes, but for those that begin with one of these: `paths: **/*.rs` and
/// `description: When: always` are no YAML, and mean something all the same.
fn quoted(head: &str, but: &[char]) -> String {
    let mut lines = String::new();
    for line in head.lines() {
        let indent = line.len() - line.trim_start().len();
        let words = &line[indent..];
        let (dash, words) = words.strip_prefix("- ").map_or(("", words), |item| ("- ", item));
        let (key, value) = match words.split_once(':') {
            // An item may be the first line of more; one with a colon in a word is a text.
            Some((key, value)) if is_key(key) && (dash.is_empty() || !value.starts_with(|c| c != ' ')) => {
                (format!("{dash}{key}: "), value)
            }
            _ if !dash.is_empty() => (dash.to_owned(), words),
            _ => (String::new(), ""),
        };
        let value = value.trim();
        // A number or a yes or no is YAML in any case.
        let is_known = matches!(value, "true" | "false" | "null") || value.parse::<f64>().is_ok();
        let is_plain = !value.is_empty() && !value.starts_with(but) && !is_known;
        if key.is_empty() || !is_plain {
            lines.push_str(line);
        } else {
            lines.push_str(&line[..indent]);
            lines.push_str(&key);
            lines.push_str(&Value::from(value).to_string());
        }
        lines.push('\n');
    }
    lines
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn heads_are_read_as_people_write_them() {
        let check = |head: &str, key: &str, expected: Option<&str>| {
            let text = format!("---\n{head}\n---\nbody");
            let read = Headed::read(&text);
            assert_eq!(read.text(key).as_deref(), expected, "{head}");
            assert_eq!(read.body, "body");
        };
        check("name: a", "name", Some("a"));
        check("description: Use when: always", "description", Some("Use when: always"));
        check("description: |\n  two\n  lines", "description", Some("two\nlines"));
        check("a: @b", "a", Some("@b"));
        check("a: 3", "a", Some("3"));
        check("a: [", "a", Some("["));
        check("a: \"", "a", None);
        check("", "a", None);
    }

    #[test]
    fn lists_may_be_texts() {
        let check = |head: &str, expected: &[&str]| {
            let text = format!("---\n{head}\n---\n");
            assert_eq!(Headed::read(&text).list("paths").unwrap_or_default(), expected, "{head}");
        };
        check("paths:\n  - a\n  - \"**/*.rs\"", &["a", "**/*.rs"]);
        check("paths:\n  - **/*.rs\n  - *.md", &["**/*.rs", "*.md"]);
        check("paths:\n  - a:b\n  - *.md", &["a:b", "*.md"]);
        check("paths: **/*.{ts,tsx}, b", &["**/*.{ts,tsx}", "b"]);
        check("paths: [a, b]", &["a", "b"]);
        check("paths: Bash(git add, git commit), Read", &["Bash(git add, git commit)", "Read"]);
    }

    #[test]
    fn what_is_no_yaml_in_one_line_does_not_spoil_what_stands_deeper() {
        let read = Headed::read(
            "---\na: b: c\nd:\n  - e: f: g\n    h: [1]\n    k: true\n    l: 10\n  - i:\n      - j: *k\n---\n",
        );
        let expected = serde_json::json!({"a": "b: c", "d": [{"e": "f: g", "h": [1], "k": true, "l": 10}, {"i": [{"j": "*k"}]}]});
        assert_eq!(Value::Object(read.head), expected);
    }

    #[test]
    fn a_file_without_a_head_is_all_body() {
        for text in ["", "a", "---", "--- a\n---\n", "---\nname: a\n", "\n---\na: b\n---\n"] {
            assert_eq!(Headed::read(text).body, text, "{text:?}");
        }
        assert_eq!(Headed::read("\u{feff}---\r\na: b\r\n---\r\nc").text("a").as_deref(), Some("b"));
        assert!(Headed::read("---\n: : [\n---\nc").is_broken);
    }

    #[test]
    fn yes_has_many_words() {
        let flag = |word: &str| Headed::read(&format!("---\na: {word}\n---\n")).flag("a");
        assert!(["yes", "on", "1", "true", "Yes", "'on'"].into_iter().all(|word| flag(word) == Some(true)));
        assert!(["no", "off", "0", "false"].into_iter().all(|word| flag(word) == Some(false)));
        assert_eq!(flag("maybe"), None);
    }

    proptest! {
        #[test]
        fn any_head_is_survived(head in r"[a: \-\[\]\{\}\*&!|>'#\n]{0,60}") {
            let _ = Headed::read(&format!("---\n{head}\n---\nbody"));
        }
    }
}
