//! Changing a settings file by what has to be changed in it: every other byte stays as it was, comments and unknown keys
//! included. Pure: from text to text.

use std::ops::Range;

use serde_json::Value;

use super::relaxed::strict;
use crate::permission::{Behavior, Change, Rule, Update};

/// Why a file is left as it is. See [`edited`].
///
/// ```
/// use pelton::settings::{Unwritable, with_value};
///
/// let broken = with_value("{\"model\": ", &["model"], &"opus".into());
/// assert!(matches!(broken, Err(Unwritable::Broken(_))));
/// let unexpected = with_value("{\"env\": 3}", &["env", "LANG"], &"C".into());
/// assert!(matches!(unexpected, Err(Unwritable::Unexpected(_))));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unwritable {
    /// It is no JSON object, so nobody knows what would be lost.
    #[error("it cannot be read as settings: {0}")]
    Broken(String),
    /// Something that should be a list or an object is none.
    #[error("{0} is something else than expected")]
    Unexpected(String),
}

/// The text of a settings file with a change of permissions in it; `None` if that is what it says already. An empty text
/// is a file that is not there.
///
/// ```
/// use pelton::permission::{Behavior, Change, Update};
///
/// let update = Update::session(Change::AddRules(Behavior::Allow, vec!["Bash(make:*)".parse()?]));
/// let text = "{\n  // mine\n  \"model\": \"opus\"\n}\n";
/// let changed = pelton::settings::edited(text, &update)?.unwrap();
/// assert!(changed.starts_with("{\n  // mine\n  \"model\": \"opus\",\n  \"permissions\": {"));
/// assert!(changed.contains("\"Bash(make:*)\""));
/// assert_eq!(pelton::settings::edited(&changed, &update)?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn edited(text: &str, update: &Update) -> Result<Option<String>, Unwritable> {
    let rules = |behavior: Behavior, change: &dyn Fn(&mut Vec<String>)| {
        with_list(text, &["permissions", behavior.name()], change)
    };
    let texts = |rules: &[Rule]| -> Vec<String> { rules.iter().map(Rule::to_string).collect() };
    let directories = |dirs: &[std::path::PathBuf]| -> Vec<String> {
        dirs.iter().map(|dir| dir.display().to_string()).collect()
    };
    const DIRECTORIES: [&str; 2] = ["permissions", "additionalDirectories"];
    match &update.change {
        Change::AddRules(behavior, added) => rules(*behavior, &|list| add(list, texts(added))),
        Change::ReplaceRules(behavior, new) => rules(*behavior, &|list| *list = texts(new)),
        Change::RemoveRules(behavior, gone) => {
            rules(*behavior, &|list| list.retain(|rule| !texts(gone).contains(rule)))
        }
        Change::SetMode(mode) => with_value(text, &["permissions", "defaultMode"], &mode.name().into()),
        Change::AddDirectories(dirs) => with_list(text, &DIRECTORIES, &|list| add(list, directories(dirs))),
        Change::RemoveDirectories(dirs) => {
            with_list(text, &DIRECTORIES, &|list| list.retain(|dir| !directories(dirs).contains(dir)))
        }
    }
}

/// What a settings file says, comments and trailing commas or not. An empty text is a file that is not there.
///
/// ```
/// let said = pelton::settings::value_of("{\n  // mine\n  \"model\": \"opus\",\n}")?;
/// assert_eq!(said["model"], "opus");
/// # Ok::<(), pelton::settings::Unwritable>(())
/// ```
pub fn value_of(text: &str) -> Result<Value, Unwritable> {
    if text.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    serde_json::from_str(&strict(text)).map_err(|error| Unwritable::Broken(error.to_string()))
}

/// The text with a value at a place that these keys lead to; `None` if it is there already.
///
/// ```
/// let text = pelton::settings::with_value("{}", &["projects", "/w", "trusted"], &true.into())?;
/// let json: serde_json::Value = serde_json::from_str(&text.unwrap())?;
/// assert_eq!(json["projects"]["/w"]["trusted"], true);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn with_value(text: &str, keys: &[&str], value: &Value) -> Result<Option<String>, Unwritable> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let page = Page::of(text)?;
    match page.find(keys)? {
        Found::Value(span) if page.value(&span)? == *value => Ok(None),
        Found::Value(span) => Ok(Some(page.spliced(span, &pretty(value, &page.unit, keys.len())))),
        Found::Missing { object, depth } => Ok(Some(page.with_member(&object, depth, &keys[depth..], value))),
    }
}

fn add(list: &mut Vec<String>, more: Vec<String>) {
    for item in more {
        if !list.contains(&item) {
            list.push(item);
        }
    }
}

fn with_list(
    text: &str,
    keys: &[&str],
    change: &dyn Fn(&mut Vec<String>),
) -> Result<Option<String>, Unwritable> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let page = Page::of(text)?;
    let span = match page.find(keys)? {
        Found::Value(span) => Some(span),
        Found::Missing { .. } => None,
    };
    let old: Vec<Value> = match &span {
        None => Vec::new(),
        Some(span) => match page.value(span)? {
            Value::Array(items) => items,
            _ => return Err(Unwritable::Unexpected(keys.join("."))),
        },
    };
    // What is no text in it is somebody else's business, and stays.
    let mut new: Vec<String> = old.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let before = new.clone();
    change(&mut new);
    if new == before {
        return Ok(None);
    }
    match span {
        Some(span) if new.starts_with(&before) && !old.is_empty() => {
            let end = page.last_item_end(&span);
            let more = new[before.len()..].iter().map(|item| Value::from(item.as_str()).to_string());
            Ok(Some(page.inserted(&span, Some(end), keys.len(), &more.collect::<Vec<_>>())))
        }
        _ => {
            let others = old.into_iter().filter(|item| !item.is_string());
            let all: Vec<Value> = new.into_iter().map(Value::from).chain(others).collect();
            with_value(text, keys, &Value::Array(all))
        }
    }
}

/// A text and the same without comments, byte for byte.
struct Page<'t> {
    text: &'t str,
    plain: String,
    /// What one step of indentation is.
    unit: String,
}

enum Found {
    Value(Range<usize>),
    /// The innermost object that is there, and how many keys led to it.
    Missing {
        object: Range<usize>,
        depth: usize,
    },
}

impl<'t> Page<'t> {
    fn of(text: &'t str) -> Result<Self, Unwritable> {
        let plain = strict(text);
        match serde_json::from_str::<Value>(&plain) {
            Ok(Value::Object(_)) => {}
            Ok(_) => return Err(Unwritable::Broken("it is no object".to_owned())),
            Err(error) => return Err(Unwritable::Broken(error.to_string())),
        }
        let indented = text.lines().find(|line| line.starts_with([' ', '\t']) && !line.trim().is_empty());
        let unit = indented.map(|line| &line[..line.len() - line.trim_start().len()]);
        let unit = unit.filter(|unit| unit.len() <= 8).unwrap_or("  ").to_owned();
        Ok(Self { text, plain, unit })
    }

    fn find(&self, keys: &[&str]) -> Result<Found, Unwritable> {
        let start = self.blank_end(0);
        let mut span = start..self.value_end(start);
        for (depth, key) in keys.iter().enumerate() {
            if self.byte(span.start) != Some(b'{') {
                return Err(Unwritable::Unexpected(keys[..depth].join(".")));
            }
            // Of a key that is there twice the last one counts.
            match self.members(&span).into_iter().rev().find(|(name, _)| name == key) {
                Some((_, value)) => span = value,
                None => return Ok(Found::Missing { object: span, depth }),
            }
        }
        Ok(Found::Value(span))
    }

    fn value(&self, span: &Range<usize>) -> Result<Value, Unwritable> {
        let text = self.plain.get(span.clone()).unwrap_or_default();
        serde_json::from_str(text).map_err(|error| Unwritable::Broken(error.to_string()))
    }

    /// The members of an object: their names, and where their values are.
    fn members(&self, object: &Range<usize>) -> Vec<(String, Range<usize>)> {
        let mut members = Vec::new();
        let mut at = self.blank_end(object.start + 1);
        while self.byte(at) == Some(b'"') {
            let end = self.value_end(at);
            let name = serde_json::from_str(&self.plain[at..end]).unwrap_or_default();
            // Behind the colon.
            let value = self.blank_end(self.blank_end(end) + 1);
            let value_end = self.value_end(value);
            members.push((name, value..value_end));
            at = self.after_comma(value_end);
        }
        members
    }

    fn last_item_end(&self, list: &Range<usize>) -> usize {
        let mut at = self.blank_end(list.start + 1);
        let mut last = list.start + 1;
        while at < list.end - 1 {
            last = self.value_end(at);
            at = self.after_comma(last);
        }
        last
    }

    fn after_comma(&self, at: usize) -> usize {
        let at = self.blank_end(at);
        match self.byte(at) {
            Some(b',') => self.blank_end(at + 1),
            _ => at,
        }
    }

    /// Where a value that begins here ends. The text is known to be JSON.
    fn value_end(&self, start: usize) -> usize {
        let bytes = self.plain.as_bytes();
        let mut depth = 0_usize;
        let mut at = start;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    at += 1;
                    while let Some(&byte) = bytes.get(at) {
                        match byte {
                            b'\\' => at += 1,
                            b'"' => break,
                            _ => {}
                        }
                        at += 1;
                    }
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth > 0 => depth -= 1,
                b'}' | b']' | b',' | b':' if depth == 0 => return at,
                byte if byte.is_ascii_whitespace() && depth == 0 => return at,
                _ => {}
            }
            at += 1;
            if depth == 0 && matches!(byte, b'"' | b'}' | b']') {
                return at;
            }
        }
        at.min(bytes.len())
    }

    fn blank_end(&self, mut at: usize) -> usize {
        while self.byte(at).is_some_and(|byte| byte.is_ascii_whitespace()) {
            at += 1;
        }
        at
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.plain.as_bytes().get(at).copied()
    }

    fn spliced(&self, span: Range<usize>, new: &str) -> String {
        format!("{}{new}{}", &self.text[..span.start], &self.text[span.end..])
    }

    /// The text with a new member at the end of an object, with objects around its value for the other keys.
    fn with_member(&self, object: &Range<usize>, depth: usize, keys: &[&str], value: &Value) -> String {
        let (name, inner) = match keys.split_first() {
            Some((name, inner)) => (*name, inner),
            None => return self.text.to_owned(),
        };
        let nested = inner.iter().rev().fold(value.clone(), |value, key| {
            Value::Object(std::iter::once(((*key).to_owned(), value)).collect())
        });
        let member = format!("{}: {}", Value::from(name), pretty(&nested, &self.unit, depth + 1));
        let last = self.members(object).last().map(|(_, value)| value.end);
        self.inserted(object, last, depth, &[member])
    }

    /// Puts items behind the last one of a list or object, on lines of their own unless it stands on one line.
    fn inserted(&self, holder: &Range<usize>, last: Option<usize>, depth: usize, items: &[String]) -> String {
        let inside = format!("\n{}", self.unit.repeat(depth + 1));
        match last {
            Some(last) => {
                let is_one_line = !self.text[holder.clone()].contains('\n');
                let between = if is_one_line { " " } else { &inside };
                let new: String = items.iter().map(|item| format!(",{between}{item}")).collect();
                self.spliced(last..last, &new)
            }
            None => {
                let at = holder.start + 1;
                let new = items.iter().map(|item| format!("{inside}{item}")).collect::<Vec<_>>().join(",");
                let closing = match self.text[at..holder.end].contains('\n') {
                    true => String::new(),
                    false => format!("\n{}", self.unit.repeat(depth)),
                };
                self.spliced(at..at, &format!("{new}{closing}"))
            }
        }
    }
}

/// JSON over several lines, at a depth.
fn pretty(value: &Value, unit: &str, depth: usize) -> String {
    let inside = format!("\n{}", unit.repeat(depth + 1));
    let end = format!("\n{}", unit.repeat(depth));
    match value {
        Value::Array(items) if !items.is_empty() => {
            let items: Vec<String> =
                items.iter().map(|item| format!("{inside}{}", pretty(item, unit, depth + 1))).collect();
            format!("[{}{end}]", items.join(","))
        }
        Value::Object(members) if !members.is_empty() => {
            let members: Vec<String> = members
                .iter()
                .map(|(name, value)| {
                    format!("{inside}{}: {}", Value::from(name.as_str()), pretty(value, unit, depth + 1))
                })
                .collect();
            format!("{{{}{end}}}", members.join(","))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn allow(rule: &str) -> Update {
        Update::session(Change::AddRules(Behavior::Allow, vec![rule.parse().unwrap()]))
    }

    #[track_caller]
    fn check(text: &str, update: &Update, expected: &str) {
        let changed = edited(text, update).unwrap();
        assert_eq!(changed.as_deref(), Some(expected));
        assert_eq!(edited(expected, update).unwrap(), None, "said already");
    }

    #[test]
    fn a_rule_comes_behind_the_others_and_nothing_else_moves() {
        check(
            "",
            &allow("Bash(make:*)"),
            "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(make:*)\"\n    ]\n  }\n}\n",
        );
        check(
            "{\n\t// why\n\t\"x\": 1, /* y */\n\t\"permissions\": {\n\t\t\"deny\": [\"Read(.env)\"],\n\t\t\"allow\": [\n\t\t\t\"Bash(a)\", // first\n\t\t],\n\t},\n}",
            &allow("Bash(b)"),
            "{\n\t// why\n\t\"x\": 1, /* y */\n\t\"permissions\": {\n\t\t\"deny\": [\"Read(.env)\"],\n\t\t\"allow\": [\n\t\t\t\"Bash(a)\",\n\t\t\t\"Bash(b)\", // first\n\t\t],\n\t},\n}",
        );
        check(
            r#"{"permissions": {"allow": ["Bash(a)"]}, "z": "}"}"#,
            &allow("Bash(b)"),
            r#"{"permissions": {"allow": ["Bash(a)", "Bash(b)"]}, "z": "}"}"#,
        );
        let gone = Update::session(Change::RemoveRules(Behavior::Allow, vec!["Bash(a)".parse().unwrap()]));
        let changed =
            edited(r#"{"permissions": {"allow": ["Bash(a)", 5, "Bash(b)"]}}"#, &gone).unwrap().unwrap();
        let json: Value = serde_json::from_str(&changed).unwrap();
        assert_eq!(json["permissions"]["allow"], json!(["Bash(b)", 5]));
    }

    #[test]
    fn what_cannot_be_read_is_not_written() {
        for text in ["[]", "{", "nonsense", "{\"permissions\": 3}", "{\"permissions\": {\"allow\": {}}}"] {
            assert!(edited(text, &allow("Bash(a)")).is_err(), "{text}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-c{}\\[\\]\",:/* \\\\\n]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c\"{:]{0,3}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// However a file is written, the value is at its place afterwards and everything else is as it was.
        #[test]
        fn setting_a_value_changes_that_value_alone(
            members in prop::collection::btree_map("[a-c]{1,2}", values(), 0..5),
            keys in prop::collection::vec("[a-d]{1,2}", 1..4),
            value in values(),
            compact in any::<bool>(),
        ) {
            let before = Value::Object(members.into_iter().collect());
            let text = if compact { before.to_string() } else { serde_json::to_string_pretty(&before).unwrap() };
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            if let Ok(changed) = with_value(&text, &keys, &value) {
                let after: Value = serde_json::from_str(&changed.unwrap_or(text)).unwrap();
                let mut expected = before;
                let mut at = &mut expected;
                for key in keys {
                    at = &mut at[key];
                }
                *at = value;
                prop_assert_eq!(after, expected);
            }
        }
    }
}
