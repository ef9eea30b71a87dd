//! How an answer travels: pace, line ends, and what goes wrong on the way.

use std::time::Duration;

/// How bytes are cut into writes and how fast they come. The default: one write per event, no waiting.
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
