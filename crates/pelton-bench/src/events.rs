//! Answers of a model, as they travel.

use serde_json::{Value, json};

/// One event, as it travels.
fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}

/// The beginning of an answer.
pub fn opening() -> String {
    opening_of(900)
}

/// The beginning of an answer to a question of so many tokens.
pub fn opening_of(tokens: u64) -> String {
    let usage = json!({"input_tokens": tokens, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 1});
    event(
        &json!({"type": "message_start", "message": {"id": "msg_01", "type": "message", "role": "assistant", "model": "claude-sonnet-5-5", "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage}}),
    )
}

/// A block of text, whole.
pub fn text_block(text: &str) -> String {
    block_start() + &delta(0, text) + &block_end()
}

/// A piece of text.
pub fn delta(index: usize, text: &str) -> String {
    event(
        &json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}),
    )
}

/// A call, whole.
pub fn call_block(index: usize, number: usize, tool: &str, input: &Value) -> String {
    event(
        &json!({"type": "content_block_start", "index": index, "content_block": {"type": "tool_use", "id": format!("toolu_{number:05}"), "name": tool, "input": {}}}),
    ) + &event(
        &json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": input.to_string()}}),
    ) + &event(&json!({"type": "content_block_stop", "index": index}))
}

/// The end of an answer.
pub fn closing(reason: &str) -> String {
    event(
        &json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 20}}),
    ) + &event(&json!({"type": "message_stop"}))
}

/// An answer of one text.
pub fn answer(text: &str) -> String {
    opening() + &text_block(text) + &closing("end_turn")
}

/// An answer of one text in many pieces.
pub fn pieces(count: usize) -> String {
    let deltas: String = (0..count).map(|number| delta(0, &format!("word{number} "))).collect();
    opening() + &block_start() + &deltas + &block_end() + &closing("end_turn")
}

/// The beginning of a block of text.
pub fn block_start() -> String {
    event(&json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}))
}

/// Its end.
pub fn block_end() -> String {
    event(&json!({"type": "content_block_stop", "index": 0}))
}
