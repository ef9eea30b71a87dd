//! What the real API refuses, in the real API's words.
use crate::issued::Issued;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing the API insists on; each can be switched off by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Rule {
    /// Every `tool_use` has its `tool_result` in the next user message, and the other way round.
    ToolPairs,
    /// Required fields, field types, unknown fields, JSON that parses.
    Shape,
}

/// Which rules are on. The default is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strictness {}

/// Why a request was refused, ready to be sent as an error body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The rule that refused.
    pub rule: Rule,
    /// The HTTP status.
    pub status: u16,
    /// `error.type` of the body.
    pub kind: &'static str,
    /// `error.message` of the body.
    pub message: String,
    /// `error.details.error_code` of the body, where the API has one.
    pub code: Option<&'static str>,
}

/// The endpoint a body was sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// `POST /v1/messages`
    Messages,
    /// `POST /v1/messages/count_tokens`
    CountTokens,
}

/// What `check` needs to know besides the parsed body.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// Where the body was sent.
    pub endpoint: Endpoint,
    /// Size of the raw (decompressed) body.
    pub body_bytes: usize,
    /// The `anthropic-version` header.
    pub version: &'a str,
    /// The `anthropic-beta` header(s), joined with commas; empty when absent.
    pub betas: &'a str,
}

/// Parses a body as the API does: 413 above 32 MB, 400 when it is not a JSON object.
pub fn parse(body: &[u8], _strictness: &Strictness) -> Result<Value, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal {
        rule: Rule::Shape,
        status: 400,
        kind: "invalid_request_error",
        message: format!("The request body is not valid JSON: {error}"),
        code: None,
    })
}

/// Refuses what the API refuses.
pub fn check(
    _request: &Value,
    _context: &Context<'_>,
    _issued: &Issued,
    _strictness: &Strictness,
) -> Result<(), Refusal> {
    Ok(())
}
