//! What a call brought, in the model's terms.

use pelton::tools::{Output, ResultBlock};
use serde_json::{Value, json};

/// What a call brought, in the model's terms.
pub(crate) fn output(result: &Value) -> Output {
    let listed = result.get("content").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut content: Vec<ResultBlock> = listed.iter().map(block).collect();
    if content.is_empty()
        && let Some(structured) = result.get("structuredContent").filter(|content| !content.is_null())
    {
        content.push(ResultBlock::Text(structured.to_string()));
    }
    let is_error = result.get("isError").and_then(Value::as_bool).unwrap_or_default();
    let mut output = if is_error { Output::error("") } else { Output::text("") }.with_detail(json!(listed));
    output.content = content;
    if is_error {
        // Clients look for an error's words there.
        output.detail = Some(json!(format!("Error: {}", output.words())));
    }
    output
}

/// Something a server has to read, in the model's terms.
pub(crate) fn resource(contents: &Value) -> ResultBlock {
    // A text may be empty.
    match contents.get("text").and_then(Value::as_str) {
        Some(text) => ResultBlock::Text(text.to_owned()),
        None => block(&json!({"type": "resource", "resource": contents})),
    }
}

/// The words of one part of a prompt; a placeholder for what has none.
pub(crate) fn words_of(content: &Value) -> String {
    match block(content) {
        ResultBlock::Text(text) => text,
        _ => "[a picture or document, which cannot be part of a command]".to_owned(),
    }
}

fn block(listed: &Value) -> ResultBlock {
    let word = |path: &str| listed.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let picture = |media_type: &str, base64: &str| {
        let media_type = match media_type {
            "image/jpeg" | "image/jpg" => "image/jpeg",
            "image/gif" => "image/gif",
            "image/webp" => "image/webp",
            _ => "image/png",
        };
        ResultBlock::Image { media_type, base64: base64.to_owned() }
    };
    match word("/type") {
        "text" => ResultBlock::Text(word("/text").to_owned()),
        "image" => picture(word("/mimeType"), word("/data")),
        "resource" if !word("/resource/text").is_empty() => {
            ResultBlock::Text(word("/resource/text").to_owned())
        }
        "resource" if word("/resource/mimeType").starts_with("image/") => {
            picture(word("/resource/mimeType"), word("/resource/blob"))
        }
        "resource" if word("/resource/mimeType") == "application/pdf" => {
            ResultBlock::Document { base64: word("/resource/blob").to_owned() }
        }
        "resource" => {
            ResultBlock::Text(format!("[a resource that cannot be shown: {}]", word("/resource/uri")))
        }
        "resource_link" => ResultBlock::Text(format!("[{}: {}]", word("/name"), word("/uri"))),
        other => ResultBlock::Text(format!("[content that cannot be shown: {other}]")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_become_what_the_model_can_read() {
        let made = output(&json!({"content": [
            {"type": "text", "text": "a"},
            {"type": "image", "mimeType": "image/jpeg", "data": "AA=="},
            {"type": "resource", "resource": {"uri": "x:y", "text": "inside"}},
            {"type": "resource_link", "name": "n", "uri": "x:z"},
            {"type": "audio", "data": "AA=="}]}));
        let image = ResultBlock::Image { media_type: "image/jpeg", base64: "AA==".to_owned() };
        assert!(made.content.contains(&image) && !made.is_error);
        assert_eq!(made.words(), "a\ninside\n[n: x:z]\n[content that cannot be shown: audio]");
        let failed = output(&json!({"content": [{"type": "text", "text": "no"}], "isError": true}));
        assert_eq!((failed.is_error, failed.detail), (true, Some(json!("Error: no"))));
        let structured = output(&json!({"content": [], "structuredContent": {"a": 1}}));
        assert_eq!(structured.words(), r#"{"a":1}"#);
        assert_eq!(output(&Value::Null).content, []);
    }
}
