//! The `message` object inside SDK frames and transcript lines.

use crate::line::Line;
use crate::usage::Usage;

/// A user message around a content array.
pub fn user(content: &[u8]) -> Vec<u8> {
    Line::object().field("role", "user").raw("content", content).finish()
}

/// What an assistant message says beside its content.
#[derive(Debug, Clone, Copy)]
pub struct Assistant<'a> {
    /// The API's message id; blocks of one answer share it.
    pub id: &'a str,
    /// The model that answered.
    pub model: &'a str,
    /// Null while the answer still streams.
    pub stop_reason: Option<&'a str>,
    /// The usage reported when the answer began.
    pub usage: &'a Usage,
}

/// An assistant message around a content array.
pub fn assistant(head: &Assistant<'_>, content: &[u8]) -> Vec<u8> {
    Line::object()
        .field("id", head.id)
        .field("type", "message")
        .field("role", "assistant")
        .field("model", head.model)
        .raw("content", content)
        .field("stop_reason", head.stop_reason)
        .field("stop_sequence", None::<&str>)
        .field("usage", head.usage)
        .finish()
}
