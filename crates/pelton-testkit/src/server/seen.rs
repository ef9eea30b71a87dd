//! What the server remembers of each request.

use crate::play::Ending;
use crate::strict::Refusal;
use bytes::Bytes;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// A request and what became of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Seen {
    /// Counted from 1, over all requests.
    pub number: usize,
    /// `POST`, `GET` …
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// What stands behind the `?`.
    pub query: String,
    /// Header names and values as they came.
    pub headers: Vec<(String, String)>,
    /// The body as JSON; null when it was none.
    pub body: Arc<Value>,
    /// The body's bytes, decompressed.
    pub raw: Bytes,
    /// When it was complete, counted from the start of the server.
    pub arrived: Duration,
    /// The step that answered, counted from 1.
    pub step: Option<usize>,
    /// Why it was refused, if a strict rule did.
    pub refusal: Option<Refusal>,
    /// No step was left for it.
    pub unexpected: bool,
    /// What was sent.
    pub reply: Sent,
    /// The client closed the connection before the answer's end.
    pub hung_up: bool,
}

impl Seen {
    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        crate::http::header(&self.headers, name)
    }
}

/// What was sent so far.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Sent {
    /// The HTTP status; none when the connection ended before it.
    pub status: Option<u16>,
    /// The response headers.
    pub headers: Vec<(String, String)>,
    /// The body of an answer that was no stream.
    pub body: Option<Value>,
    /// The events that were sent as a whole.
    pub events: Vec<SentEvent>,
    /// Bytes of the body on the wire.
    pub bytes: usize,
    /// The usage the reply reported at its end.
    pub usage: Option<Value>,
    /// How it ended; none while it still plays.
    pub ending: Option<Ending>,
}

/// An event as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SentEvent {
    /// Its name.
    pub name: String,
    /// Its data, damaged or not.
    pub data: String,
}

/// A request that a strict rule refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Illegal {
    /// The number of the request.
    pub request: usize,
    /// Why.
    pub refusal: Refusal,
}

/// A request no step was left for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unexpected {
    /// The number of the request.
    pub request: usize,
    /// What was asked, and why each unused step did not fit.
    pub message: String,
}
