//! What hooks want the model to be told in the place of what a tool brought. Pure.

use serde_json::{Map, Value};

use super::super::tool::{Output, ResultBlock};

const NOTHING: &str = "[No output.]";

/// What the model is told instead, if hooks want that. An error says why it is not.
pub(super) fn retold(
    tool: &str,
    before: &Output,
    said: &mut Map<String, Value>,
    is_served: bool,
) -> Option<Result<Output, String>> {
    let of_servers = said.remove("updatedMCPToolOutput").filter(|_| is_served);
    let wanted = said.remove("updatedToolOutput").or(of_servers)?;
    let known = before.detail.clone().unwrap_or_else(|| before.words().into());
    // Servers bring what they like; whoever reads what our own tools bring counts on its shape.
    if !is_served && !has_shape(&wanted, &counted_on(tool, known)) {
        return Some(Err("does not have the shape of what the tool brought".to_owned()));
    }
    let mut content = blocks(&wanted);
    if content.is_empty() {
        content.push(ResultBlock::Text(NOTHING.to_owned()));
    }
    let mut output = before.clone();
    (output.content, output.detail) = (content, Some(wanted));
    Some(Ok(output))
}

/// What readers of what a tool brings count on: the rest, by the types that clients are given, may be there or not.
const COUNTED_ON: [(&str, &[&str]); 5] = [
    ("Bash", &["stdout", "stderr", "interrupted"]),
    ("Glob", &["filenames", "numFiles", "durationMs", "truncated"]),
    ("Grep", &["filenames", "numFiles"]),
    ("Write", &["type", "filePath", "content", "structuredPatch", "originalFile"]),
    ("Agent", &["status", "agentId", "prompt", "content"]),
];

fn counted_on(tool: &str, mut brought: Value) -> Value {
    let names = COUNTED_ON.iter().find(|(name, _)| *name == tool).map(|(_, names)| *names);
    if let (Some(names), Some(fields)) = (names, brought.as_object_mut()) {
        fields.retain(|name, _| names.contains(&name.as_str()));
    }
    brought
}

/// Whether a value has all that another has, each of the same kind.
fn has_shape(value: &Value, of: &Value) -> bool {
    match (value, of) {
        (Value::Object(fields), Value::Object(known)) => known
            .iter()
            .filter(|(_, known)| !known.is_null())
            .all(|(name, known)| fields.get(name).is_some_and(|field| has_shape(field, known))),
        (value, of) => std::mem::discriminant(value) == std::mem::discriminant(of),
    }
}

/// A structured answer as the model reads it.
fn blocks(value: &Value) -> Vec<ResultBlock> {
    match value {
        Value::Array(items) => items.iter().flat_map(block).collect(),
        Value::Object(fields) => match fields.get("content") {
            Some(content @ (Value::Array(_) | Value::String(_))) => blocks(content),
            _ => text(&words(value, fields)),
        },
        Value::String(words) => text(words),
        other => text(&other.to_string()),
    }
}

fn block(item: &Value) -> Vec<ResultBlock> {
    let source = item.get("source").unwrap_or(item);
    let kind = source["media_type"].as_str().or(source["mimeType"].as_str());
    match (item["type"].as_str(), item["text"].as_str(), source["data"].as_str(), kind.and_then(media_type)) {
        (Some("text"), Some(words), ..) => text(words),
        (Some("image"), _, Some(data), Some(media_type)) => {
            vec![ResultBlock::Image { media_type, base64: data.to_owned() }]
        }
        _ => match item {
            Value::String(words) => text(words),
            other => text(&other.to_string()),
        },
    }
}

fn media_type(name: &str) -> Option<&'static str> {
    ["image/png", "image/jpeg", "image/gif", "image/webp"].into_iter().find(|known| *known == name)
}

/// What a command printed, the numbered lines of a file, or all of it.
fn words(whole: &Value, fields: &Map<String, Value>) -> String {
    let field = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    if let Some(lines) = whole["file"]["content"].as_str() {
        let first = whole["file"]["startLine"].as_u64().unwrap_or(1);
        let lines = lines.lines().zip(first..).map(|(line, number)| format!("{number}\t{line}"));
        return lines.collect::<Vec<_>>().join("\n");
    }
    if fields.contains_key("stdout") {
        let printed = [field("stdout"), field("stderr")].map(|printed| printed.trim_end_matches('\n'));
        return printed.into_iter().filter(|printed| !printed.is_empty()).collect::<Vec<_>>().join("\n");
    }
    whole.to_string()
}

fn text(words: &str) -> Vec<ResultBlock> {
    if words.is_empty() { Vec::new() } else { vec![ResultBlock::Text(words.to_owned())] }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(tool: &str, detail: Value, said: &Value, is_served: bool) -> Option<Result<String, String>> {
        let before = Output::text("secret").with_detail(detail);
        let mut said = said.as_object().cloned().unwrap_or_default();
        let told = retold(tool, &before, &mut said, is_served);
        assert!(said.is_empty(), "{said:?}");
        told.map(|told| told.map(|output| output.words()))
    }

    #[test]
    fn what_has_the_shape_of_what_was_brought_takes_its_place() {
        let printed = json!({"stdout": "secret", "stderr": "", "interrupted": false, "gone": null});
        let masked = json!({"stdout": "***\n", "stderr": "e", "interrupted": false, "more": 1});
        let file = |content: &str| json!({"type": "text", "file": {"content": content, "startLine": 7}});
        for (detail, wanted, expected) in [
            (printed.clone(), masked, Some("***\ne")),
            (printed.clone(), json!({"stdout": "", "stderr": "", "interrupted": false}), Some(NOTHING)),
            (printed.clone(), json!({"stdout": "***"}), None),
            (printed.clone(), json!({"stdout": 1, "stderr": "", "interrupted": false}), None),
            (printed, json!("***"), None),
            (file("secret"), file("a\nb"), Some("7\ta\n8\tb")),
            (json!("secret"), json!("***"), Some("***")),
            (json!({"n": 1}), json!({"n": 2}), Some("{\"n\":2}")),
        ] {
            let told = told("Any", detail, &json!({"updatedToolOutput": wanted}), false);
            assert_eq!(told.and_then(Result::ok).as_deref(), expected, "{wanted}");
        }
        assert_eq!(told("Any", json!("x"), &json!({}), false), None);
    }

    #[test]
    fn what_clients_may_leave_out_may_be_left_out() {
        let brought = json!({"stdout": "secret", "stderr": "", "interrupted": false, "isImage": false,
            "noOutputExpected": false, "backgroundTaskId": "b1"});
        let short = json!({"stdout": "***", "stderr": "", "interrupted": false});
        let said = json!({"updatedToolOutput": short});
        assert_eq!(told("Bash", brought.clone(), &said, false), Some(Ok("***".to_owned())));
        assert!(told("Any", brought.clone(), &said, false).is_some_and(|told| told.is_err()));
        let said = json!({"updatedToolOutput": {"stdout": "***", "stderr": ""}});
        assert!(told("Bash", brought, &said, false).is_some_and(|told| told.is_err()));
    }

    #[test]
    fn of_servers_anything_is_taken_and_of_others_nothing_by_that_name() {
        let blocks = json!([{"type": "text", "text": "a"}, "b", {"type": "odd"}]);
        for (wanted, expected) in [
            (json!("***"), "***"),
            (blocks.clone(), "a\nb\n{\"type\":\"odd\"}"),
            (json!({"content": blocks, "isError": false}), "a\nb\n{\"type\":\"odd\"}"),
        ] {
            for name in ["updatedMCPToolOutput", "updatedToolOutput"] {
                let told = told("Any", json!([]), &json!({name: wanted}), true);
                assert_eq!(told, Some(Ok(expected.to_owned())), "{wanted}");
            }
        }
        assert_eq!(told("Any", json!("x"), &json!({"updatedMCPToolOutput": "y"}), false), None);
        let mut picture =
            json!({"updatedToolOutput": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]});
        let output =
            retold("Any", &Output::text("x"), picture.as_object_mut().unwrap(), true).unwrap().unwrap();
        let expected = ResultBlock::Image { media_type: "image/png", base64: "AAAA".to_owned() };
        assert_eq!(output.content, [expected]);
    }
}
