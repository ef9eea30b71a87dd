//! What a call to a model yields while it runs.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pelton_wire::stop::StopReason;
use pelton_wire::usage::Usage;
use serde_json::Value;

use crate::error::{ErrorKind, ModelError, Tried};
use crate::limits::{RateLimits, Subscription};
use crate::retry::Progress;

/// One thing that happened during a call.
///
/// A call ends with exactly one [`Finished`](Step::Finished) or [`Failed`](Step::Failed). Each attempt begins with
/// [`Requesting`](Step::Requesting); after a [`Retry`](Step::Retry) whatever the failed attempt showed is void.
///
/// What comes once in an answer is in a box: every piece of an answer is moved in this size.
///
/// ```
/// use pelton_model::Step;
///
/// /// What a spinner says.
/// fn line(step: &Step) -> Option<String> {
///     match step {
///         Step::Requesting { attempt } => Some(format!("asking (attempt {attempt})")),
///         Step::Retry(notice) => Some(format!("{}; again in {:?}", notice.message, notice.wait)),
///         Step::Failed(error) => Some(error.to_string()),
///         _ => None,
///     }
/// }
/// assert_eq!(line(&Step::Requesting { attempt: 1 }).as_deref(), Some("asking (attempt 1)"));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Step {
    /// A request is about to be sent.
    Requesting {
        /// 1 for the first.
        attempt: u32,
    },
    /// The server says how much of the account's subscription is used. Comes before the answer, and before a refusal.
    Subscription(Box<Subscription>),
    /// The model has begun to answer.
    Started(Box<Started>),
    /// An event of the stream.
    Delta(Delta),
    /// A content block is complete. Comes before the delta that carries the block's own stop event.
    Block(Block),
    /// The attempt failed, another follows. It is not sent before the call is polled again.
    Retry(Notice),
    /// The wait before another attempt goes on. Comes every [`heartbeat`](crate::RetryPolicy::heartbeat).
    Waiting {
        /// How long it still takes.
        left: Duration,
    },
    /// Nothing but signs of life came for a while; the call goes on.
    Stalled {
        /// How long nothing came.
        silent_for: Duration,
    },
    /// The answer is complete, or as complete as it will get.
    Finished(Box<Reply>),
    /// No answer.
    Failed(ModelError),
}

/// The head of an answer.
///
/// ```
/// # use std::sync::Arc;
/// # use bytes::Bytes;
/// # use futures::{FutureExt, StreamExt, future::BoxFuture};
/// # use pelton_model::{Ask, Auth, Client, Endpoint, Post, Prefix, RealWorld, Response, RetryPolicy, Transport, TransportError};
/// # struct Says(&'static [&'static str]);
/// # impl Transport for Says {
/// #     fn post(&self, _: Post) -> BoxFuture<'static, Result<Response, TransportError>> {
/// #         let body = futures::stream::iter(self.0.iter().map(|event| Ok(Bytes::from(format!("data: {event}\n\n"))))).boxed();
/// #         async move { Ok(Response { status: 200, headers: Default::default(), body }) }.boxed()
/// #     }
/// # }
/// # let server = Says(&[
/// #     r#"{"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":3}}}"#,
/// #     r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
/// #     r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}"#,
/// #     r#"{"type":"content_block_stop","index":0}"#,
/// #     r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#,
/// #     r#"{"type":"message_stop"}"#,
/// # ]);
/// # let endpoint = Endpoint::new("http://in.memory", Auth::None);
/// # let client = Client::new(endpoint, Arc::new(server), RetryPolicy::default(), Arc::new(RealWorld::new()));
/// # let messages = vec![Bytes::from_static(br#"{"role":"user","content":"hi"}"#)];
/// # let ask = Ask::new("any-model", 1000, Arc::new(Prefix::default()), messages);
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use pelton_model::Step;
///
/// let steps: Vec<Step> = client.call(ask).collect().await;
/// let started = steps.iter().find_map(|step| if let Step::Started(started) = step { Some(started) } else { None });
/// assert_eq!(started.map(|started| (&*started.message_id, started.usage.input_tokens)), Some(("msg_1", 3)));
/// # });
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Started {
    /// The server's id of the message.
    pub message_id: Arc<str>,
    /// The model that answers, by the server's own account.
    pub model: Arc<str>,
    /// What is known of the usage so far.
    pub usage: Usage,
    /// The server's id of the request.
    pub request_id: Option<Arc<str>>,
    /// The event as received; empty when the answer was not streamed.
    pub raw: Bytes,
}

/// An event of the stream, for those who show an answer while it grows.
///
/// ```
/// # use std::sync::Arc;
/// # use bytes::Bytes;
/// # use futures::{FutureExt, StreamExt, future::BoxFuture};
/// # use pelton_model::{Ask, Auth, Client, Endpoint, Post, Prefix, RealWorld, Response, RetryPolicy, Transport, TransportError};
/// # struct Says(&'static [&'static str]);
/// # impl Transport for Says {
/// #     fn post(&self, _: Post) -> BoxFuture<'static, Result<Response, TransportError>> {
/// #         let body = futures::stream::iter(self.0.iter().map(|event| Ok(Bytes::from(format!("data: {event}\n\n"))))).boxed();
/// #         async move { Ok(Response { status: 200, headers: Default::default(), body }) }.boxed()
/// #     }
/// # }
/// # let server = Says(&[
/// #     r#"{"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":3}}}"#,
/// #     r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
/// #     r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}"#,
/// #     r#"{"type":"content_block_stop","index":0}"#,
/// #     r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#,
/// #     r#"{"type":"message_stop"}"#,
/// # ]);
/// # let endpoint = Endpoint::new("http://in.memory", Auth::None);
/// # let client = Client::new(endpoint, Arc::new(server), RetryPolicy::default(), Arc::new(RealWorld::new()));
/// # let messages = vec![Bytes::from_static(br#"{"role":"user","content":"hi"}"#)];
/// # let ask = Ask::new("any-model", 1000, Arc::new(Prefix::default()), messages);
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use pelton_model::{DeltaKind, Step};
///
/// let mut shown = String::new();
/// let mut call = client.call(ask);
/// while let Some(step) = call.next().await {
///     if let Step::Delta(delta) = step && let DeltaKind::Text(more) = delta.kind {
///         shown.push_str(&more); // as it grows
///     }
/// }
/// assert_eq!(shown, "hello");
/// # });
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Delta {
    /// The content block it belongs to, if to one.
    pub index: Option<u32>,
    /// The event's JSON as received, on one line.
    pub raw: Bytes,
    /// What it brings.
    pub kind: DeltaKind,
}

/// What an event brings.
///
/// ```
/// use pelton_model::DeltaKind;
///
/// /// Whether something comes that people read.
/// fn is_visible(kind: &DeltaKind) -> bool {
///     match kind {
///         DeltaKind::Text(text) => !text.is_empty(),
///         DeltaKind::Thinking { text, .. } => !text.is_empty(),
///         _ => false,
///     }
/// }
/// assert!(is_visible(&DeltaKind::Text("hello".into())) && !is_visible(&DeltaKind::InputJson));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeltaKind {
    /// More text.
    Text(Box<str>),
    /// More thinking.
    Thinking {
        /// What it thinks; may be empty.
        text: Box<str>,
        /// The server's guess of the tokens so far, when it makes one.
        estimated_tokens: Option<u64>,
    },
    /// More of a tool's input.
    InputJson,
    /// A block begins.
    BlockStart(Opened),
    /// Anything else.
    Other,
}

/// A block that begins.
///
/// ```
/// use pelton_model::{DeltaKind, Opened};
///
/// /// The tool that is going to be called, before its input is there.
/// fn comes(kind: &DeltaKind) -> Option<&str> {
///     let DeltaKind::BlockStart(Opened { tool_name, .. }) = kind else { return None };
///     tool_name.as_deref()
/// }
/// let opened = Opened { block_type: "tool_use".into(), tool_name: Some("Read".into()), tool_use_id: Some("toolu_01".into()) };
/// assert_eq!(comes(&DeltaKind::BlockStart(opened)), Some("Read"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The block's type on the wire: `text`, `tool_use` and so on.
    pub block_type: Box<str>,
    /// The tool's name, of a block that calls one.
    pub tool_name: Option<Arc<str>>,
    /// The call's id, of a block that calls a tool.
    pub tool_use_id: Option<Arc<str>>,
}

/// A complete content block.
///
/// ```
/// # use std::sync::Arc;
/// # use bytes::Bytes;
/// # use futures::{FutureExt, StreamExt, future::BoxFuture};
/// # use pelton_model::{Ask, Auth, Client, Endpoint, Post, Prefix, RealWorld, Response, RetryPolicy, Transport, TransportError};
/// # struct Says(&'static [&'static str]);
/// # impl Transport for Says {
/// #     fn post(&self, _: Post) -> BoxFuture<'static, Result<Response, TransportError>> {
/// #         let body = futures::stream::iter(self.0.iter().map(|event| Ok(Bytes::from(format!("data: {event}\n\n"))))).boxed();
/// #         async move { Ok(Response { status: 200, headers: Default::default(), body }) }.boxed()
/// #     }
/// # }
/// # let server = Says(&[
/// #     r#"{"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":3}}}"#,
/// #     r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
/// #     r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}"#,
/// #     r#"{"type":"content_block_stop","index":0}"#,
/// #     r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#,
/// #     r#"{"type":"message_stop"}"#,
/// # ]);
/// # let endpoint = Endpoint::new("http://in.memory", Auth::None);
/// # let client = Client::new(endpoint, Arc::new(server), RetryPolicy::default(), Arc::new(RealWorld::new()));
/// # let messages = vec![Bytes::from_static(br#"{"role":"user","content":"hi"}"#)];
/// # let ask = Ask::new("any-model", 1000, Arc::new(Prefix::default()), messages);
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use pelton_model::Step;
///
/// let steps: Vec<Step> = client.call(ask).collect().await;
/// let blocks = steps.iter().filter_map(|step| if let Step::Block(block) = step { Some(&block.json) } else { None });
/// assert_eq!(blocks.collect::<Vec<_>>(), [r#"{"type":"text","text":"hello"}"#]); // ready to be sent back
/// # });
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Block {
    /// Its place in the message.
    pub index: u32,
    /// The block as a JSON object on one line, ready to be sent back: fields and order as received.
    pub json: Bytes,
    /// What it is.
    pub kind: BlockKind,
}

/// What a block is.
///
/// ```
/// use pelton_model::BlockKind;
///
/// /// The tool to call, if the block asks for one and its input can be read.
/// fn called(kind: &BlockKind) -> Option<(&str, &serde_json::Value)> {
///     let BlockKind::ToolUse { name, input: Ok(input), .. } = kind else { return None };
///     Some((name, input))
/// }
/// assert_eq!(called(&BlockKind::Text { blank: false }), None);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BlockKind {
    /// Text.
    Text {
        /// Nothing but white space: a server refuses such a block when it is sent back.
        blank: bool,
    },
    /// Thinking, signed.
    Thinking,
    /// Thinking that only the server can read.
    RedactedThinking,
    /// A call of one of our tools.
    ToolUse {
        /// The call.
        id: Arc<str>,
        /// The tool.
        name: Arc<str>,
        /// The input: an object, unless the model wrote something else.
        input: Result<Value, BadInput>,
    },
    /// A call of a tool of the server's, or the result of one.
    ServerTool,
    /// A kind this version does not know; kept as received.
    Other,
}

/// A tool input that is no JSON object. The block's `json` then carries an empty object in its place.
///
/// ```
/// use pelton_model::{BadInput, BlockKind};
///
/// /// What the model is told instead of a result.
/// fn objection(kind: &BlockKind) -> Option<String> {
///     let BlockKind::ToolUse { input: Err(BadInput { error, .. }), .. } = kind else { return None };
///     Some(format!("The input cannot be read: {error}"))
/// }
/// let input = Err(BadInput { raw: "{\"a\":".to_owned(), error: "it ends too early".to_owned() });
/// let cut = BlockKind::ToolUse { id: "toolu_01".into(), name: "Read".into(), input };
/// assert_eq!(objection(&cut).as_deref(), Some("The input cannot be read: it ends too early"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadInput {
    /// What the model wrote.
    pub raw: String,
    /// What is wrong with it.
    pub error: String,
}

/// A failed attempt that will be repeated.
///
/// ```
/// use pelton_model::Notice;
///
/// /// A line about an attempt that failed.
/// fn line(notice: &Notice) -> String {
///     let Notice { attempt, retries_max, wait, message, .. } = notice;
///     format!("{message}: attempt {attempt} of {retries_max} follows in {wait:?}")
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Notice {
    /// 1 for the first retry.
    pub attempt: u32,
    /// How many there may be, as far as this kind of failure decides. Where time decides, or nothing: as many as there
    /// were.
    pub retries_max: u32,
    /// The wait before it.
    pub wait: Duration,
    /// The HTTP status of the failure, if there was an answer.
    pub status: Option<u16>,
    /// What failed.
    pub kind: ErrorKind,
    /// The failure in one line.
    pub message: String,
    /// Something of the failed attempt was shown (a delta or a block): it has to be taken back.
    pub withdrawn: bool,
    /// The next attempt asks for fewer tokens: this many.
    pub max_tokens: Option<u32>,
    /// The next attempt asks for the answer in one piece, as the failed one did not.
    pub non_streaming: bool,
    /// The server's id of the request that failed.
    pub request_id: Option<String>,
}

/// The end of an answer.
///
/// ```
/// # use std::sync::Arc;
/// # use bytes::Bytes;
/// # use futures::{FutureExt, StreamExt, future::BoxFuture};
/// # use pelton_model::{Ask, Auth, Client, Endpoint, Post, Prefix, RealWorld, Response, RetryPolicy, Transport, TransportError};
/// # struct Says(&'static [&'static str]);
/// # impl Transport for Says {
/// #     fn post(&self, _: Post) -> BoxFuture<'static, Result<Response, TransportError>> {
/// #         let body = futures::stream::iter(self.0.iter().map(|event| Ok(Bytes::from(format!("data: {event}\n\n"))))).boxed();
/// #         async move { Ok(Response { status: 200, headers: Default::default(), body }) }.boxed()
/// #     }
/// # }
/// # let server = Says(&[
/// #     r#"{"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":3}}}"#,
/// #     r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
/// #     r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}"#,
/// #     r#"{"type":"content_block_stop","index":0}"#,
/// #     r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#,
/// #     r#"{"type":"message_stop"}"#,
/// # ]);
/// # let endpoint = Endpoint::new("http://in.memory", Auth::None);
/// # let client = Client::new(endpoint, Arc::new(server), RetryPolicy::default(), Arc::new(RealWorld::new()));
/// # let messages = vec![Bytes::from_static(br#"{"role":"user","content":"hi"}"#)];
/// # let ask = Ask::new("any-model", 1000, Arc::new(Prefix::default()), messages);
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use pelton_model::Step;
///
/// let steps: Vec<Step> = client.call(ask).collect().await;
/// let Some(Step::Finished(reply)) = steps.last() else { panic!("it is the last step") };
/// assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (3, 1));
/// assert!(reply.cut.is_none()); // all of it came
/// # });
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reply {
    /// The server's id of the message.
    pub message_id: Arc<str>,
    /// The model that answered, by the server's own account.
    pub model: Arc<str>,
    /// Why it stopped. Of an answer that was cut: [`StopReason::ToolUse`] if a call is complete, else
    /// [`StopReason::EndTurn`].
    pub stop_reason: StopReason,
    /// What else the server says about the stop, such as the category of a refusal.
    pub stop_details: Option<Value>,
    /// What the call consumed, compactions by the server included.
    pub usage: Usage,
    /// Of an answer that the server made in several rounds, the last one.
    pub last_round: Option<Box<Usage>>,
    /// The limits of the account, if the server tells them.
    pub limits: Option<Box<RateLimits>>,
    /// The server's id of the request.
    pub request_id: Option<Arc<str>>,
    /// The limit of output tokens that was in force: lower than asked for after a repair.
    pub max_tokens: u32,
    /// The stream broke after a text or a tool call was complete: the blocks that came are all there is.
    pub cut: Option<Box<ModelError>>,
    /// Of an answer that was cut: what the question for the rest of it has to [wait for](crate::Ask::after). `None`: the
    /// patience with such failures is used up.
    pub again: Option<Box<Again>>,
}

/// How patient the question after a cut answer has to be: it is one more attempt in the row of those that failed.
///
/// ```
/// use pelton_model::{Ask, Reply};
///
/// /// Asks for the rest of an answer that was cut, with the patience that is left.
/// fn rest(reply: &Reply, question: &Ask) -> Option<Ask> {
///     let after = Some(reply.again.clone()?);
///     let mut rest = question.clone();
///     rest.after = after;
///     Some(rest)
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Again {
    /// What is told before its wait.
    pub(crate) notice: Notice,
    pub(crate) progress: Progress,
    /// When the first attempt of the row was made.
    pub(crate) began: Duration,
    pub(crate) tried: Vec<Tried>,
}

impl Reply {
    /// The usage that tells how large the context is now. Differs from what was consumed when the server compacted
    /// the context on the way.
    pub fn context_usage(&self) -> &Usage {
        self.last_round.as_deref().unwrap_or(&self.usage)
    }
}
