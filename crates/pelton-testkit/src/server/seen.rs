//! What the server remembers of each request.

use crate::play::Ending;
use crate::strict::Refusal;
use bytes::Bytes;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// A request and what became of it.
///
/// ```
/// # use std::sync::Arc;
/// # use futures::StreamExt;
/// # use pelton_model::{Ask, Auth, Client, Endpoint, Prefix, RetryPolicy, Secret};
/// # use pelton_testkit::{ScriptedModel, SeededWorld};
/// # async fn ask(model: &ScriptedModel, messages: &'static str) {
/// #     let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// #     let mut policy = RetryPolicy::default();
/// #     (policy.retries_max, policy.non_streaming_fallback) = (0, false);
/// #     let client = Client::new(endpoint, Arc::new(model.transport()), policy, Arc::new(SeededWorld::new(7)));
/// #     let ask = Ask::new("claude-sonnet-5-5", 1000, Arc::new(Prefix::default()), vec![messages.into()]);
/// #     client.call(ask).for_each(async |_| {}).await;
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use pelton_testkit::{Script, text};
///
/// let model = Script::new().reply([text("Hello.")]).start_in_memory()?;
/// ask(&model, r#"{"role":"user","content":"Hi."}"#).await; // a client of yours
/// let seen = &model.requests()[0];
/// assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/v1/messages"));
/// assert!(seen.header("x-api-key").is_some());
/// assert_eq!(seen.body["max_tokens"], 1000);
/// # Ok(())
/// # }
/// ```
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
///
/// ```
/// # use std::sync::Arc;
/// # use futures::StreamExt;
/// # use pelton_model::{Ask, Auth, Client, Endpoint, Prefix, RetryPolicy, Secret};
/// # use pelton_testkit::{ScriptedModel, SeededWorld};
/// # async fn ask(model: &ScriptedModel, messages: &'static str) {
/// #     let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// #     let mut policy = RetryPolicy::default();
/// #     (policy.retries_max, policy.non_streaming_fallback) = (0, false);
/// #     let client = Client::new(endpoint, Arc::new(model.transport()), policy, Arc::new(SeededWorld::new(7)));
/// #     let ask = Ask::new("claude-sonnet-5-5", 1000, Arc::new(Prefix::default()), vec![messages.into()]);
/// #     client.call(ask).for_each(async |_| {}).await;
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use pelton_testkit::{Script, text};
///
/// let model = Script::new().reply([text("Hello.")]).start_in_memory()?;
/// ask(&model, r#"{"role":"user","content":"Hi."}"#).await; // a client of yours
/// let sent = &model.requests()[0].reply;
/// assert_eq!((sent.status, sent.body.is_none()), (Some(200), true)); // it was a stream
/// assert!(sent.bytes > 0 && sent.usage.is_some());
/// # Ok(())
/// # }
/// ```
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
///
/// ```
/// # use std::sync::Arc;
/// # use futures::StreamExt;
/// # use pelton_model::{Ask, Auth, Client, Endpoint, Prefix, RetryPolicy, Secret};
/// # use pelton_testkit::{ScriptedModel, SeededWorld};
/// # async fn ask(model: &ScriptedModel, messages: &'static str) {
/// #     let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// #     let mut policy = RetryPolicy::default();
/// #     (policy.retries_max, policy.non_streaming_fallback) = (0, false);
/// #     let client = Client::new(endpoint, Arc::new(model.transport()), policy, Arc::new(SeededWorld::new(7)));
/// #     let ask = Ask::new("claude-sonnet-5-5", 1000, Arc::new(Prefix::default()), vec![messages.into()]);
/// #     client.call(ask).for_each(async |_| {}).await;
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use pelton_testkit::{Script, text};
///
/// let model = Script::new().reply([text("Hello.")]).start_in_memory()?;
/// ask(&model, r#"{"role":"user","content":"Hi."}"#).await; // a client of yours
/// let events = &model.requests()[0].reply.events;
/// assert_eq!(events.first().map(|event| event.name.as_str()), Some("message_start"));
/// assert!(events.iter().any(|event| event.data.contains("Hello.")));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SentEvent {
    /// Its name.
    pub name: String,
    /// Its data, damaged or not.
    pub data: String,
}

/// A request that a strict rule refused.
///
/// ```
/// # use std::sync::Arc;
/// # use futures::StreamExt;
/// # use pelton_model::{Ask, Auth, Client, Endpoint, Prefix, RetryPolicy, Secret};
/// # use pelton_testkit::{ScriptedModel, SeededWorld};
/// # async fn ask(model: &ScriptedModel, messages: &'static str) {
/// #     let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// #     let mut policy = RetryPolicy::default();
/// #     (policy.retries_max, policy.non_streaming_fallback) = (0, false);
/// #     let client = Client::new(endpoint, Arc::new(model.transport()), policy, Arc::new(SeededWorld::new(7)));
/// #     let ask = Ask::new("claude-sonnet-5-5", 1000, Arc::new(Prefix::default()), vec![messages.into()]);
/// #     client.call(ask).for_each(async |_| {}).await;
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use pelton_testkit::strict::Rule;
/// use pelton_testkit::{Script, text};
///
/// let model = Script::new().reply([text("Hello.")]).start_in_memory()?.expect_illegal();
/// ask(&model, r#"{"role":"user","content":""}"#).await; // a client with a fault
/// let illegal = &model.illegal()[0];
/// assert_eq!((illegal.request, illegal.refusal.rule), (1, Rule::EmptyText));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Illegal {
    /// The number of the request.
    pub request: usize,
    /// Why.
    pub refusal: Refusal,
}

/// A request no step was left for.
///
/// ```
/// # use std::sync::Arc;
/// # use futures::StreamExt;
/// # use pelton_model::{Ask, Auth, Client, Endpoint, Prefix, RetryPolicy, Secret};
/// # use pelton_testkit::{ScriptedModel, SeededWorld};
/// # async fn ask(model: &ScriptedModel, messages: &'static str) {
/// #     let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// #     let mut policy = RetryPolicy::default();
/// #     (policy.retries_max, policy.non_streaming_fallback) = (0, false);
/// #     let client = Client::new(endpoint, Arc::new(model.transport()), policy, Arc::new(SeededWorld::new(7)));
/// #     let ask = Ask::new("claude-sonnet-5-5", 1000, Arc::new(Prefix::default()), vec![messages.into()]);
/// #     client.call(ask).for_each(async |_| {}).await;
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use pelton_testkit::Script;
///
/// let model = Script::new().start_in_memory()?; // a script that says nothing
/// ask(&model, r#"{"role":"user","content":"Hi."}"#).await; // a client that asks all the same
/// assert_eq!(model.unexpected()[0].request, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unexpected {
    /// The number of the request.
    pub request: usize,
    /// What was asked, and why each unused step did not fit.
    pub message: String,
}
