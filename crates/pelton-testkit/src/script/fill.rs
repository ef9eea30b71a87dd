//! Variables in a script: `${last_tool_result}`, `${match.1}`, and the script's own.

use super::part::{Kind, Part, ToolInput};
use serde_json::Value;
use std::collections::BTreeMap;

/// The values known when a step plays.
pub(crate) type Values = BTreeMap<String, String>;

/// Replaces every `${name}` that has a value. Unknown names stay as they are, because shell commands in tool
/// inputs use the same form; `$${` stands for a plain `${`.
pub(crate) fn fill_text(text: &str, values: &Values) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        let inside = &from[2..];
        if let Some(kept) = before.strip_suffix('$') {
            filled.push_str(kept);
            filled.push_str("${");
            rest = inside;
            continue;
        }
        filled.push_str(before);
        match inside.split_once('}').and_then(|(name, tail)| Some((values.get(name)?, tail))) {
            Some((value, tail)) => {
                filled.push_str(value);
                rest = tail;
            }
            None => {
                filled.push_str("${");
                rest = inside;
            }
        }
    }
    filled.push_str(rest);
    filled
}

/// Fills the strings inside a JSON value; keys stay as they are.
pub(crate) fn fill_value(value: &Value, values: &Values) -> Value {
    match value {
        Value::String(text) => Value::String(fill_text(text, values)),
        Value::Array(items) => Value::Array(items.iter().map(|item| fill_value(item, values)).collect()),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(key, item)| (key.clone(), fill_value(item, values))).collect())
        }
        other => other.clone(),
    }
}

/// Fills everything the model says. Gate names are identities, not speech, and stay.
pub(crate) fn fill_part(part: &Part, values: &Values) -> Part {
    let text = |text: &String| fill_text(text, values);
    let kind = match &part.kind {
        Kind::Text(said) => Kind::Text(text(said)),
        Kind::Thinking(said) => Kind::Thinking(text(said)),
        Kind::Tool { name, input } => Kind::Tool {
            name: name.clone(),
            input: match input {
                ToolInput::Value(value) => ToolInput::Value(fill_value(value, values)),
                ToolInput::Text(json) => ToolInput::Text(text(json)),
            },
        },
        Kind::RawBlock { block, deltas } => Kind::RawBlock {
            block: fill_value(block, values),
            deltas: deltas.iter().map(|delta| fill_value(delta, values)).collect(),
        },
        Kind::Event { name, data } => Kind::Event { name: name.clone(), data: fill_value(data, values) },
        Kind::Error { kind, message } => Kind::Error { kind: kind.clone(), message: text(message) },
        other @ (Kind::RedactedThinking(_)
        | Kind::Gate(_)
        | Kind::Pause(_)
        | Kind::Ping
        | Kind::Comment(_)) => other.clone(),
    };
    Part {
        kind,
        after: part.after.iter().map(|(at, part)| (*at, fill_part(part, values))).collect(),
        ..part.clone()
    }
}
