//! Ids of calls and names of tools, in letters that every server reads.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value};

/// The most characters of a call's id or a tool's name that servers read.
const NAME_CHARS_MAX: usize = 128;
/// Characters of them that are kept if something has to be put behind them.
const STEM_CHARS_MAX: usize = 100;

/// Whether every server reads it as an id of a call, or a name of a tool.
pub fn is_plain(name: &str) -> bool {
    let plain = |c: u8| c.is_ascii_alphanumeric() || c == b'_' || c == b'-';
    !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.bytes().all(plain)
}

/// The same in letters that every server reads.
pub fn plainly(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let plainly: String = name.chars().take(STEM_CHARS_MAX).map(plain).collect();
    if plainly.is_empty() { "_".to_owned() } else { plainly }
}

/// The name of a tool as every server reads it.
pub fn plain_name(name: &str) -> Cow<'_, str> {
    if is_plain(name) { Cow::Borrowed(name) } else { Cow::Owned(plainly(name)) }
}

/// The id of a call as every server reads it: whoever recorded it may have asked a server that reads others too. Equal ids
/// stay equal, others stay apart.
pub fn plain_id(id: &str) -> Cow<'_, str> {
    if is_plain(id) {
        return Cow::Borrowed(id);
    }
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    Cow::Owned(format!("{}_{:016x}", plainly(id), hasher.finish()))
}

/// A block with other values of these fields; `None` if it is no object.
pub fn renamed(block: &str, fields: &[(&str, &str)]) -> Option<String> {
    let mut json: Map<String, Value> = serde_json::from_str(block).ok()?;
    json.extend(fields.iter().map(|(field, value)| ((*field).to_owned(), (*value).into())));
    Some(Value::Object(json).to_string())
}

/// A call whose input is an object, as every server wants it; one in a text is taken out of it. What is left of an input under a
/// damaged name is taken away: a server refuses fields that it does not know. `None` if the block is no object.
pub fn with_input(block: &str) -> Option<String> {
    const FIELDS: [&str; 5] = ["type", "id", "name", "input", "caller"];
    let mut json: Map<String, Value> = serde_json::from_str(block).ok()?;
    json.retain(|field, _| FIELDS.contains(&field.as_str()));
    let input = match json.remove("input") {
        Some(Value::Object(input)) => input,
        Some(Value::String(text)) => serde_json::from_str(&text).unwrap_or_default(),
        _ => Map::new(),
    };
    json.insert("input".to_owned(), Value::Object(input));
    Some(Value::Object(json).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_every_server_reads_are_left_alone() {
        for name in ["toolu_01", "call-7", "mcp__a__b", "x"] {
            assert!(is_plain(name), "{name}");
            assert_eq!(plain_id(name), name);
        }
    }

    #[test]
    fn inputs_become_objects() {
        for (input, expected) in [
            (r#"{"a":1}"#, r#"{"a":1}"#),
            (r#""{\"a\":1}""#, r#"{"a":1}"#),
            (r#""{\"a\":""#, "{}"),
            ("null", "{}"),
            ("[1]", "{}"),
        ] {
            let made = with_input(&format!(r#"{{"type":"tool_use","input":{input}}}"#)).unwrap();
            let made: Value = serde_json::from_str(&made).unwrap();
            assert_eq!(made["input"].to_string(), expected, "{input}");
        }
        let made = with_input(r#"{"type":"tool_use","id":"a","name":"Read","4nput":{"a":1}}"#).unwrap();
        assert_eq!(made, r#"{"type":"tool_use","id":"a","name":"Read","input":{}}"#);
    }

    #[test]
    fn other_ids_become_plain_and_stay_apart() {
        let odd = ["", "a.b", "a:b", "a b", "ä", &"x".repeat(200), &"x".repeat(201)];
        let plain: Vec<String> = odd.iter().map(|id| plain_id(id).into_owned()).collect();
        assert!(plain.iter().all(|id| is_plain(id)), "{plain:?}");
        let apart: std::collections::HashSet<&String> = plain.iter().collect();
        assert_eq!(apart.len(), odd.len());
    }

    #[test]
    fn nothing_else_of_a_block_changes() {
        let block = r#"{"type":"tool_use","id":"f:0","name":"Read","input":{"id":"f:0"}}"#;
        assert_eq!(renamed(block, &[("id", "f_0")]), Some(block.replacen("f:0", "f_0", 1)));
    }
}
