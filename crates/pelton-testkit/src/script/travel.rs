//! How an answer travels: pace, line ends, and what goes wrong on the way.

use std::time::Duration;

/// How bytes are cut into writes and how fast they come. The default: one write per event, no waiting.
///
/// ```
/// use std::time::Duration;
///
/// use pelton_testkit::{Chunk, Pace, Step, text};
///
/// let slow = Pace::chunk_bytes(7).delay(Duration::from_millis(20)); // cuts characters in two
/// assert_eq!(slow.chunk, Chunk::Bytes(7));
/// let step = Step::reply([text("Grüße.")]).pace(slow);
/// # drop(step);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pace {
    /// How large each write is.
    pub chunk: Chunk,
    /// Wait between two writes.
    pub delay: Duration,
    /// Most that is added to the delay, by the script's seed.
    pub jitter: Duration,
}

impl Pace {
    /// Writes of this many bytes, without waiting. One byte cuts every character of more bytes.
    pub fn chunk_bytes(bytes: usize) -> Self {
        Self { chunk: Chunk::Bytes(bytes), ..Self::default() }
    }

    /// Waits this long between writes.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

/// How large each write is.
///
/// ```
/// use pelton_testkit::{Chunk, Pace};
///
/// let pace = Pace { chunk: Chunk::Random, ..Pace::default() }; // the same sizes for the same seed
/// assert_ne!(pace.chunk, Chunk::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Chunk {
    /// One event each.
    #[default]
    Event,
    /// This many bytes, wherever events or characters end.
    Bytes(usize),
    /// Sizes that follow from the script's seed.
    Random,
}

/// How lines of the event stream end; all are legal.
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
/// use pelton_testkit::{Ending, LineEnd, Script, Step, text};
///
/// let model = Script::new().step(Step::reply([text("Hello.")]).line_end(LineEnd::Mixed)).start_in_memory()?;
/// ask(&model, r#"{"role":"user","content":"Hi."}"#).await; // a client of yours, which has to cope
/// assert_eq!(model.requests()[0].reply.ending, Some(Ending::Complete));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum LineEnd {
    /// `\n`
    #[default]
    Lf,
    /// `\r\n`
    CrLf,
    /// `\r`
    Cr,
    /// Each in turn.
    Mixed,
}

/// Something that goes wrong with an answer.
///
/// ```
/// use pelton_testkit::{EarlyEnd, Fault, Place, Script, Step, text};
///
/// // The first answer breaks off, the second comes.
/// let script = Script::new()
///     .step(Step::reply([text("Hello.")]).fault(Fault::reset_after_bytes(100)))
///     .reply([text("Hello.")]);
/// assert_eq!(Fault::reset_after_bytes(100), Fault::Ends(EarlyEnd::Reset, Place::Bytes(100)));
/// # drop(script);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The answer ends early.
    Ends(EarlyEnd, Place),
    /// The data of this event, counted from 1, is half a JSON text.
    MalformedJsonAtEvent(usize),
}

impl Fault {
    /// The connection is closed after this many bytes of the body.
    pub fn cut_after_bytes(bytes: usize) -> Self {
        Self::Ends(EarlyEnd::Cut, Place::Bytes(bytes))
    }

    /// The connection is closed after this many events.
    pub fn cut_after_events(events: usize) -> Self {
        Self::Ends(EarlyEnd::Cut, Place::Events(events))
    }

    /// The connection is reset (TCP RST) after this many bytes of the body.
    pub fn reset_after_bytes(bytes: usize) -> Self {
        Self::Ends(EarlyEnd::Reset, Place::Bytes(bytes))
    }

    /// The connection is reset (TCP RST) after this many events.
    pub fn reset_after_events(events: usize) -> Self {
        Self::Ends(EarlyEnd::Reset, Place::Events(events))
    }

    /// Nothing comes after this many bytes of the body, but the connection stays.
    pub fn stall_after_bytes(bytes: usize) -> Self {
        Self::Ends(EarlyEnd::Stall, Place::Bytes(bytes))
    }

    /// Nothing comes after this many events, but the connection stays.
    pub fn stall_after_events(events: usize) -> Self {
        Self::Ends(EarlyEnd::Stall, Place::Events(events))
    }

    /// The body ends properly, as HTTP sees it, after this many events.
    pub fn end_after_events(events: usize) -> Self {
        Self::Ends(EarlyEnd::End, Place::Events(events))
    }

    /// The connection is closed before anything is answered.
    pub fn close_before_headers() -> Self {
        Self::Ends(EarlyEnd::Cut, Place::BeforeHeaders)
    }

    /// Status and headers come, the body never does.
    pub fn headers_then_stall() -> Self {
        Self::stall_after_bytes(0)
    }

    /// A good answer without a single event.
    pub fn empty_stream() -> Self {
        Self::end_after_events(0)
    }
}

/// How an answer ends before its time.
///
/// ```
/// use pelton_testkit::{EarlyEnd, Fault, Place};
///
/// let all = [EarlyEnd::Cut, EarlyEnd::End, EarlyEnd::Reset, EarlyEnd::Stall];
/// let faults = all.map(|end| Fault::Ends(end, Place::Events(3))); // one step of a script for each
/// assert_eq!(faults[0], Fault::cut_after_events(3));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EarlyEnd {
    /// The connection is closed; HTTP sees an incomplete body.
    Cut,
    /// The body ends properly, as HTTP sees it.
    End,
    /// The connection is reset (TCP RST).
    Reset,
    /// Nothing more comes until the client leaves.
    Stall,
}

/// Where an answer ends before its time.
///
/// ```
/// use pelton_testkit::{EarlyEnd, Fault, Place};
///
/// // An answer that breaks at every place there is: one step of a script for each.
/// let faults: Vec<Fault> = (0..5).map(|events| Fault::Ends(EarlyEnd::Reset, Place::Events(events))).collect();
/// assert_eq!(faults[4], Fault::reset_after_events(4));
/// assert_eq!(Fault::close_before_headers(), Fault::Ends(EarlyEnd::Cut, Place::BeforeHeaders));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// Before the status line.
    BeforeHeaders,
    /// After this many bytes of the body.
    Bytes(usize),
    /// After this many events.
    Events(usize),
}
