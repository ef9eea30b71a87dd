//! What a line says. Pure.

use std::str::FromStr;

use pelton::{Priority, Prompt, PromptBlock};
use pelton_model::json::without_halves;
use serde_json::Value;
use uuid::Uuid;

use super::limits::PASTED_MAX;

/// One line of the client.
#[derive(Debug)]
pub(crate) enum Said {
    /// Words for the model.
    User(UserLine),
    /// The client wants something.
    Request(Request),
    /// The client answers.
    Response { id: String, answer: Result<Value, String> },
    /// The client wants something, and cannot be answered under a name: what came in the place of one.
    Nameless { id: Value },
    /// The client does not want it any more.
    Cancel { id: String },
    /// Nothing that concerns us: a sign of life, or words of another version.
    Nothing,
}

/// Something the client wants.
#[derive(Debug)]
pub(crate) struct Request {
    pub id: String,
    pub subtype: String,
    pub body: Value,
}

/// A prompt as the client sent it.
#[derive(Debug)]
pub(crate) struct UserLine {
    /// `None`: there was nothing in it.
    pub prompt: Option<Prompt>,
    /// The id the client gave it.
    pub id: Option<Uuid>,
    /// The client says that a person wrote it.
    pub by_human: bool,
    pub priority: Option<Priority>,
    /// The model is asked.
    pub asks: bool,
    /// What of it cannot be used.
    pub left_out: Option<String>,
}

/// The line cannot be understood: whoever wrote it speaks another language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Garbled(pub String);

/// Reads a line; blank ones say nothing.
pub(crate) fn read(line: &[u8]) -> Result<Said, Garbled> {
    // Some programs begin with a mark that says how bytes are read.
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    if line.trim_ascii().is_empty() {
        return Ok(Said::Nothing);
    }
    // Where others cut a text in the middle of a character, half of it is left.
    let line = without_halves(line);
    let text = String::from_utf8_lossy(&line);
    let json: Value = serde_json::from_str(&text)
        .map_err(|error| Garbled(format!("a line on standard input is not JSON: {error}")))?;
    if !json.is_object() {
        return Err(Garbled("a line on standard input is no JSON object".to_owned()));
    }
    let id = |json: &Value| json.get("request_id").and_then(Value::as_str).map(str::to_owned);
    match json.get("type").and_then(Value::as_str) {
        Some("user") => Ok(Said::User(user(&json))),
        Some("control_request") => {
            let Some(id) = id(&json) else {
                return Ok(Said::Nameless { id: json.get("request_id").cloned().unwrap_or_default() });
            };
            let body = json.get("request").cloned().unwrap_or_default();
            let subtype = body.get("subtype").and_then(Value::as_str).unwrap_or_default().to_owned();
            Ok(Said::Request(Request { id, subtype, body }))
        }
        Some("control_response") => {
            let response = json.get("response").unwrap_or(&Value::Null);
            let Some(id) = id(response) else { return Ok(Said::Nothing) };
            let answer = match response.get("subtype").and_then(Value::as_str) {
                Some("error") => {
                    let error = response.get("error").and_then(Value::as_str);
                    Err(error.unwrap_or("the client failed without a word").to_owned())
                }
                _ => Ok(response.get("response").cloned().unwrap_or_default()),
            };
            Ok(Said::Response { id, answer })
        }
        Some("control_cancel_request") => Ok(id(&json).map_or(Said::Nothing, |id| Said::Cancel { id })),
        _ => Ok(Said::Nothing),
    }
}

fn user(json: &Value) -> UserLine {
    let flag = |name: &str| json.get(name).and_then(Value::as_bool);
    let word = |name: &str| json.get(name).and_then(Value::as_str);
    let (mut blocks, left_out) = blocks(json.pointer("/message/content").unwrap_or(&Value::Null));
    blocks.extend(pasted(json));
    let id = word("uuid").and_then(|id| Uuid::from_str(id).ok());
    let prompt = Prompt::blocks(blocks).ok().map(|prompt| {
        let prompt = match id {
            Some(id) => prompt.with_id(id),
            None => prompt,
        };
        if flag("client_composed") == Some(true) { prompt.verbatim() } else { prompt }
    });
    UserLine {
        prompt,
        id,
        by_human: json.pointer("/origin/kind").is_some_and(|kind| kind == "human"),
        priority: word("priority").and_then(Priority::from_name),
        asks: flag("shouldQuery") != Some(false),
        left_out,
    }
}

/// Texts that the user pasted instead of typing them; they come behind what was typed.
fn pasted(json: &Value) -> Vec<PromptBlock> {
    let entries = json.get("pasted_content").and_then(Value::as_array).into_iter().flatten();
    let texts = entries.take(PASTED_MAX).flat_map(|entry| blocks(entry).0);
    texts.filter(|block| matches!(block, PromptBlock::Text(_))).take(PASTED_MAX).collect()
}

/// Whether the model's server gets what is meant itself.
fn is_address(block: &Value) -> bool {
    block.pointer("/source/type").is_some_and(|kind| kind == "url")
}

/// The pieces of a prompt, and what of it cannot be one.
fn blocks(content: &Value) -> (Vec<PromptBlock>, Option<String>) {
    let blocks = match content {
        Value::String(text) => return (vec![PromptBlock::Text(text.clone())], None),
        Value::Array(blocks) => blocks,
        _ => return (Vec::new(), None),
    };
    let mut read = Vec::new();
    let mut left_out = Vec::new();
    for block in blocks {
        let word = |path: &str| block.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let kind = word("/type").unwrap_or_default();
        let made = match kind.as_str() {
            "text" => word("/text").map(PromptBlock::Text),
            "image" if is_address(block) => word("/source/url").map(PromptBlock::ImageAt),
            "document" if is_address(block) => word("/source/url").map(PromptBlock::DocumentAt),
            "image" => word("/source/data").map(|base64| PromptBlock::Image {
                media_type: word("/source/media_type").unwrap_or_default(),
                base64,
            }),
            "document" => match word("/source/type").as_deref() {
                Some("text") => word("/source/data").map(PromptBlock::Text),
                Some("base64") => word("/source/data").map(|base64| PromptBlock::Document { base64 }),
                _ => None,
            },
            _ => None,
        };
        match made {
            Some(block) => read.push(block),
            None => left_out.push(kind),
        }
    }
    let left_out = (!left_out.is_empty())
        .then(|| format!("Parts of the message cannot be used and were left out: {}", left_out.join(", ")));
    (read, left_out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(json: &Value) -> Said {
        read(json.to_string().as_bytes()).unwrap()
    }

    fn prompt(message: &Value) -> UserLine {
        let Said::User(user) = line(message) else { panic!("{message}") };
        user
    }

    #[test]
    fn prompts_are_words_or_blocks_and_keep_their_id() {
        let id = Uuid::from_u128(7);
        let said = prompt(&json!({"type": "user", "uuid": id, "message": {"role": "user", "content": "hi"}}));
        assert_eq!(said.prompt, Some(Prompt::text("hi").unwrap().with_id(id)));
        assert!(said.asks && said.priority.is_none() && said.left_out.is_none());
        let said = prompt(
            &json!({"type": "user", "uuid": "mine", "client_composed": true, "shouldQuery": false, "priority": "now", "message": {"content": [
            {"type": "text", "text": "/look"}, {"type": "tool_result", "tool_use_id": "x"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
            {"type": "document", "source": {"type": "text", "data": "plain"}}]}}),
        );
        let expected = Prompt::blocks([
            PromptBlock::Text("/look".into()),
            PromptBlock::Image { media_type: "image/png".into(), base64: "AA==".into() },
            PromptBlock::Text("plain".into()),
        ]);
        assert_eq!(said.prompt, Some(expected.unwrap().verbatim()));
        assert!(!said.asks && said.priority == Some(Priority::Now));
        assert!(said.left_out.unwrap().contains("tool_result"));
        assert_eq!(prompt(&json!({"type": "user"})).prompt, None);
    }

    #[test]
    fn what_others_cut_in_the_middle_of_a_character_is_read() {
        let half = br#"{"type": "user", "message": {"content": "half \ud83d of it"}}"#;
        let marked = ["\u{feff}".as_bytes(), half].concat();
        for line in [half.as_slice(), &marked] {
            let Ok(Said::User(said)) = read(line) else { panic!("{}", String::from_utf8_lossy(line)) };
            assert_eq!(said.prompt, Some(Prompt::text("half \u{fffd} of it").unwrap()));
        }
    }

    #[test]
    fn answers_may_be_empty_and_errors_have_words() {
        let response =
            |response: Value| match line(&json!({"type": "control_response", "response": response})) {
                Said::Response { id, answer } => Some((id, answer)),
                _ => None,
            };
        assert_eq!(
            response(json!({"request_id": "a", "subtype": "success"})),
            Some(("a".into(), Ok(Value::Null)))
        );
        let error = response(json!({"request_id": "a", "subtype": "error", "error": "no"}));
        assert_eq!(error, Some(("a".into(), Err("no".into()))));
        assert_eq!(response(json!({"subtype": "success"})), None);
    }

    #[test]
    fn what_nobody_knows_says_nothing_and_what_is_no_json_is_an_error() {
        for said in [
            json!({"type": "keep_alive"}),
            json!({"type": "tomorrow"}),
            json!({}),
            json!({"type": 3}),
            json!({"type": "control_response"}),
        ] {
            assert!(matches!(line(&said), Said::Nothing), "{said}");
        }
        assert!(matches!(read(b"  "), Ok(Said::Nothing)));
        for nameless in
            [json!({"type": "control_request"}), json!({"type": "control_request", "request_id": 3})]
        {
            assert!(matches!(line(&nameless), Said::Nameless { .. }), "{nameless}");
        }
        for bad in ["nonsense", "{", "[]", "3"] {
            assert!(read(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
