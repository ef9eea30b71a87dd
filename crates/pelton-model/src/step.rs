//! What a call to a model yields while it runs.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pelton_wire::stop::StopReason;
use pelton_wire::usage::Usage;
use serde_json::Value;

use crate::error::{ErrorKind, ModelError, Tried};
use crate::limits::RateLimits;
use crate::retry::Progress;

/// One thing that happened during a call.
///
/// A call ends with exactly one [`Finished`](Step::Finished) or [`Failed`](Step::Failed). Each attempt begins with
/// [`Requesting`](Step::Requesting); after a [`Retry`](Step::Retry) whatever the failed attempt showed is void.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Step {
    /// A request is about to be sent.
    Requesting {
        /// 1 for the first.
        attempt: u32,
    },
    /// The model has begun to answer.
    Started(Started),
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
    Finished(Reply),
    /// No answer.
    Failed(ModelError),
}

/// The head of an answer.
#[derive(Clone, Debug)]
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
#[derive(Clone, Debug)]
pub struct Delta {
    /// The content block it belongs to, if to one.
    pub index: Option<u32>,
    /// The event's JSON as received, on one line.
    pub raw: Bytes,
    /// What it brings.
    pub kind: DeltaKind,
}

/// What an event brings.
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
#[derive(Clone, Debug)]
pub struct Block {
    /// Its place in the message.
    pub index: u32,
    /// The block as a JSON object on one line, ready to be sent back: fields and order as received.
    pub json: Bytes,
    /// What it is.
    pub kind: BlockKind,
}

/// What a block is.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadInput {
    /// What the model wrote.
    pub raw: String,
    /// What is wrong with it.
    pub error: String,
}

/// A failed attempt that will be repeated.
#[derive(Clone, Debug)]
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
    /// The next attempt asks for the answer in one piece.
    pub non_streaming: bool,
    /// The server's id of the request that failed.
    pub request_id: Option<String>,
}

/// The end of an answer.
#[derive(Clone, Debug)]
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
