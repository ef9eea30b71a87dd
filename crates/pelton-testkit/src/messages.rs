//! The Anthropic Messages dialect: its routes, its errors, and what its requests say in neutral terms.
//! How a reply becomes events is in [`compose`].

pub(crate) mod compose;
#[cfg(test)]
mod tests;

use crate::http::Request;
use crate::script::when::Facts;
use crate::strict::{Refusal, Rule, Strictness};
use serde_json::{Value, json};

/// What a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    Reply,
    CountTokens,
    Models,
    Model(String),
    Root,
    Unknown,
}

pub(crate) fn route(method: &str, path: &str) -> Route {
    match (method, path) {
        ("POST", "/v1/messages") => Route::Reply,
        ("POST", "/v1/messages/count_tokens") => Route::CountTokens,
        ("GET", "/v1/models") => Route::Models,
        ("GET", path) => match path.strip_prefix("/v1/models/") {
            Some(id) if !id.is_empty() => Route::Model(id.to_owned()),
            _ => Route::Unknown,
        },
        ("HEAD", "/") => Route::Root,
        _ => Route::Unknown,
    }
}

/// Credentials and the presence of a version, which the API looks at before anything else.
pub(crate) fn check_headers(request: &Request, strictness: &Strictness) -> Result<(), Refusal> {
    let key = request.header("x-api-key").is_some_and(|key| !key.trim().is_empty());
    let bearer = request.header("authorization").is_some_and(|value| {
        let (scheme, token) = value.split_once(' ').unwrap_or_default();
        scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty()
    });
    let refuse = |rule, status, message: &str| {
        let kind = kind_of_status(status);
        Err(Refusal { rule, status, kind, message: message.to_owned(), code: None })
    };
    if key == bearer && strictness.is_on(Rule::Credentials) {
        let message = if key {
            "x-api-key and authorization headers are both present; send one of them"
        } else {
            "x-api-key header is required"
        };
        return refuse(Rule::Credentials, 401, message);
    }
    if request.header("anthropic-version").is_none() && strictness.is_on(Rule::Shape) {
        return refuse(Rule::Shape, 400, "anthropic-version: header is required");
    }
    Ok(())
}

/// The values of all `anthropic-beta` headers, joined.
pub(crate) fn betas(request: &Request) -> String {
    let lines = request.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("anthropic-beta"));
    lines.map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(",")
}

/// Whether a request asks for no reply at all, only for its prompt to be cached.
pub(crate) fn only_warms_cache(body: &Value) -> bool {
    body["max_tokens"].as_u64() == Some(0)
}

/// What conditions of a script look at.
pub(crate) fn facts(request: &Request, body: &Value) -> Facts {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let spoke = messages.iter().rposition(|message| message["role"] == "assistant");
    let since = &messages[spoke.map_or(0, |index| index + 1)..];
    let user = || since.iter().filter(|message| message["role"] == "user");
    let results =
        user().flat_map(|message| blocks(&message["content"])).filter(|block| is(block, "tool_result"));
    Facts {
        path: request.path.clone(),
        headers: request.headers.clone(),
        asks_for_reply: route(&request.method, &request.path) == Route::Reply && !only_warms_cache(body),
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        stream: body["stream"].as_bool().unwrap_or(false),
        system: text_of(&body["system"]),
        tools: blocks(&body["tools"])
            .iter()
            .filter_map(|tool| Some(tool["name"].as_str()?.to_owned()))
            .collect(),
        results: results
            .map(|result| (tool_name(messages, &result["tool_use_id"]), text_of(&result["content"])))
            .collect(),
        user_text: join(user().map(|message| text_of(&message["content"]))),
    }
}

/// The body of every error.
pub(crate) fn error_body(kind: &str, message: &str, code: Option<&str>, request_id: &str) -> Value {
    let mut error = json!({"type": kind, "message": message});
    if let Some(code) = code {
        error["details"] = json!({"error_code": code});
    }
    json!({"type": "error", "error": error, "request_id": request_id})
}

/// The error type that goes with a status.
pub(crate) fn kind_of_status(status: u16) -> &'static str {
    let exact = ERRORS.iter().find(|(known, ..)| *known == status);
    exact.map_or(if status >= 500 { "api_error" } else { "invalid_request_error" }, |(_, kind, _)| *kind)
}

/// The status that goes with an error type.
pub(crate) fn status_of_kind(kind: &str) -> u16 {
    ERRORS.iter().find(|(_, known, _)| *known == kind).map_or(500, |(status, ..)| *status)
}

/// What the API says with an error type when there is nothing particular to say.
pub(crate) fn message_of_kind(kind: &str) -> &'static str {
    ERRORS
        .iter()
        .find(|(_, known, _)| *known == kind)
        .map_or("Something went wrong", |(.., message)| *message)
}

const ERRORS: &[(u16, &str, &str)] = &[
    (400, "invalid_request_error", "Invalid request"),
    (401, "authentication_error", "invalid x-api-key"),
    (402, "billing_error", "Your account has no credit left"),
    (403, "permission_error", "Your credentials do not allow this"),
    (404, "not_found_error", "Not found"),
    (409, "conflict_error", "The request conflicts with another one"),
    (413, "request_too_large", "Request exceeds the maximum size"),
    (429, "rate_limit_error", "This request would exceed your account's rate limit. Please try again later."),
    (500, "api_error", "Internal server error"),
    (504, "timeout_error", "The request timed out"),
    (529, "overloaded_error", "Overloaded"),
];

fn is(block: &Value, kind: &str) -> bool {
    block["type"] == kind
}

fn blocks(content: &Value) -> &[Value] {
    content.as_array().map_or(&[], Vec::as_slice)
}

/// The text of a content field: the string itself, or its text blocks.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        _ => join(blocks(content).iter().filter_map(|block| Some(block["text"].as_str()?.to_owned()))),
    }
}

fn join(texts: impl Iterator<Item = String>) -> String {
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The name of the tool whose call had this id, empty when there was none.
fn tool_name(messages: &[Value], id: &Value) -> String {
    let calls = messages.iter().rev().flat_map(|message| blocks(&message["content"]));
    let call = calls.filter(|block| is(block, "tool_use")).find(|block| block["id"] == *id);
    call.and_then(|call| call["name"].as_str()).unwrap_or_default().to_owned()
}
