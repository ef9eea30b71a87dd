//! One line per refusal: what is wrong, which rule says so, and in which words.

use super::*;
use crate::base64;
use crate::image::samples;
use serde_json::json;

mod blocks;
mod history;
mod legal; // generated requests: the legal ones pass, each mutation meets its own rule
mod replay; // thinking blocks that come back
mod settings;
mod tools;

const OPUS: &str = "claude-opus-5-5";
const HAIKU: &str = "claude-haiku-4-5";

/// A small legal request.
fn base(model: &str) -> Value {
    json!({"model": model, "max_tokens": 2000, "messages": [{"role": "user", "content": "hi"}]})
}

/// A legal request whose last tool call has just been answered.
fn tool_turn(model: &str) -> Value {
    json!({
        "model": model,
        "max_tokens": 2000,
        "tools": [tool("Read"), tool("Bash")],
        "messages": [
            {"role": "user", "content": "look"},
            {"role": "assistant", "content": [
                {"type": "text", "text": "looking"},
                {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a"}},
                {"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "text"},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": [{"type": "text", "text": "x"}], "is_error": true},
                {"type": "text", "text": "go on"},
            ]},
        ],
    })
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "does things", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn png(width: u32, height: u32) -> Value {
    image("image/png", &base64::encode(&samples::png(width, height)))
}

fn image(media_type: &str, data: &str) -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}})
}

fn messages() -> Context<'static> {
    Context { endpoint: Endpoint::Messages, body_bytes: 1000, version: "2023-06-01", betas: "" }
}

fn with_betas(betas: &'static str) -> Context<'static> {
    Context { betas, ..messages() }
}

fn judged_in(context: Context<'_>, request: &Value) -> Result<(), Refusal> {
    check(request, &context, &Issued::new(1), &Strictness::default())
}

#[track_caller]
fn accepted_in(context: Context<'_>, mut request: Value, change: impl FnOnce(&mut Value)) {
    change(&mut request);
    assert_eq!(judged_in(context, &request), Ok(()));
}

#[track_caller]
fn accepted(request: Value, change: impl FnOnce(&mut Value)) {
    accepted_in(messages(), request, change);
}

/// The request is refused by this rule in these words (a trailing `…` stands for more), and no longer by this rule once
/// it is relaxed.
#[track_caller]
fn refused_in(
    context: Context<'_>,
    mut request: Value,
    change: impl FnOnce(&mut Value),
    rule: Rule,
    message: &str,
) {
    change(&mut request);
    let refusal = judged_in(context, &request).expect_err("this should be refused");
    let matches = match message.strip_suffix('…') {
        Some(start) => refusal.message.starts_with(start),
        None => refusal.message == message,
    };
    assert!(matches, "expected: {message}\n     got: {}", refusal.message);
    assert_eq!(refusal.rule, rule, "{}", refusal.message);
    assert_eq!(refusal.status, if rule == Rule::KnownModel { 404 } else { 400 });
    let relaxed = check(&request, &context, &Issued::new(1), &Strictness::default().relax(rule));
    assert!(relaxed.err().is_none_or(|next| next.rule != rule), "{rule} cannot be relaxed");
}

#[track_caller]
fn refused(request: Value, change: impl FnOnce(&mut Value), rule: Rule, message: &str) {
    refused_in(messages(), request, change, rule, message);
}

#[test]
fn the_samples_are_legal() {
    for model in [OPUS, HAIKU, "claude-sonnet-4-5-20250929", "claude-fable-5-2"] {
        accepted(base(model), |_| {});
        accepted(tool_turn(model), |_| {});
    }
    accepted(base(OPUS), |r| {
        *r = json!({"model": OPUS, "max_tokens": 64000, "stream": true,
            "system": [{"type": "text", "text": "…", "cache_control": {"type": "ephemeral"}}],
            "tools": [tool("Read")], "tool_choice": {"type": "auto"},
            "thinking": {"type": "adaptive", "display": "omitted"},
            "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {}}},
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hi", "citations": null}]}],
            "metadata": {"user_id": "opaque"}});
    });
}

#[test]
fn relaxing_everything_accepts_any_json() {
    for request in [
        json!({}),
        json!({"messages": 5}),
        json!({"messages": [5, {"content": [5, {"type": "tool_result"}]}], "tools": [5], "thinking": 5, "tool_choice": 5}),
    ] {
        assert_eq!(check(&request, &messages(), &Issued::new(1), &Strictness::none()), Ok(()));
        assert!(judged_in(messages(), &request).is_err());
    }
}
