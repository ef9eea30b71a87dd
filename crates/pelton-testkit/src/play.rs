//! From what is to be said to the bytes that travel: framing, compression, faults and pace.
//!
//! Pure: [`stage_stream`] and [`stage_body`] give a list of [`Piece`]s and how the answer ends; the server only
//! writes and waits. The order of work is framing → faults counted in events → compression → faults counted in
//! bytes → pace, so `cut_after_bytes` counts what is really on the wire.

#[cfg(test)]
mod tests;

use crate::dice::Dice;
use crate::script::Staging;
use crate::script::travel::{Chunk, EarlyEnd, Fault, LineEnd, Pace, Place};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::time::Duration;

/// Largest write of a random pace, in bytes.
const RANDOM_CHUNK_BYTES_MAX: usize = 64;

/// One thing a dialect wants on the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cue {
    Event(Event),
    Comment(String),
    Wait(Duration),
    Gate(String),
}

/// An event of the stream. Its data holds no line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) data: String,
}

/// One thing the server does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Write this at once; afterwards so many events are on the wire as a whole.
    Write {
        bytes: Bytes,
        events_done: usize,
    },
    Wait(Duration),
    Gate(String),
}

/// Everything between the request and the end of its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Performance {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) ending: Ending,
    /// Whether there is an answer at all: without headers there are no pieces either.
    pub(crate) headers: bool,
    /// The events as sent, damage included; those beyond an early end are not here.
    pub(crate) events: Vec<Event>,
    /// Length of the body as the headers announce it, for bodies whose length is announced.
    pub(crate) length: usize,
}

/// How an answer ends.
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
/// use pelton_testkit::{Ending, Fault, Script, Step, text};
///
/// let step = Step::reply([text("Hello.")]).fault(Fault::cut_after_events(2));
/// let model = Script::new().step(step).start_in_memory()?;
/// ask(&model, r#"{"role":"user","content":"Hi."}"#).await; // a client of yours
/// assert_eq!(model.requests()[0].reply.ending, Some(Ending::Cut));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// As HTTP wants it, with everything said.
    Complete,
    /// As HTTP wants it, but before everything was said.
    EndedEarly,
    /// The server closed the connection too early.
    Cut,
    /// The server reset the connection.
    Reset,
    /// The server went silent until the client left.
    Stalled,
    /// The client left before the end.
    ClientLeft,
}

/// Stages an event stream.
pub(crate) fn stage_stream(cues: Vec<Cue>, staging: &Staging, dice: &mut Dice) -> Performance {
    let (cues, mut ending) = fault_events(cues, staging);
    let headers = !ends_before_headers(staging);
    let events = cues.iter().filter_map(|cue| match cue {
        Cue::Event(event) => Some(event.clone()),
        _ => None,
    });
    let events: Vec<Event> = events.collect();
    let mut lines = Lines::new(staging.line_end);
    let mut runs = Runs::new(staging.gzip);
    if staging.bom {
        runs.push("\u{feff}".as_bytes());
    }
    for cue in cues {
        match cue {
            Cue::Event(event) => {
                runs.push(lines.event(&event).as_bytes());
                runs.event_done();
            }
            Cue::Comment(text) => runs.push(lines.comment(&text).as_bytes()),
            Cue::Wait(wait) => runs.interrupt(Piece::Wait(wait)),
            Cue::Gate(name) => runs.interrupt(Piece::Gate(name)),
        }
    }
    let mut pieces = runs.finish(ending.is_proper());
    let length = written(&pieces);
    fault_bytes(&mut pieces, &mut ending, staging);
    let pieces = pace(pieces, &staging.pace, dice);
    Performance { pieces, ending, headers, events, length }
}

/// Stages a body of known length, after some waiting. For faults counted in events the body is one event.
pub(crate) fn stage_body(waits: Vec<Piece>, body: &[u8], staging: &Staging, dice: &mut Dice) -> Performance {
    let mut ending = Ending::Complete;
    let mut runs = Runs::new(staging.gzip);
    for wait in waits {
        runs.interrupt(wait);
    }
    runs.push(body);
    let mut pieces = runs.finish(true);
    let whole = written(&pieces);
    match early_end(staging) {
        Some((end, Place::Events(0))) => ending = Ending::of(end, keep_bytes(&mut pieces, 0)),
        Some((end, Place::Events(_))) => ending = Ending::of(end, Dropped::Nothing),
        _ => fault_bytes(&mut pieces, &mut ending, staging),
    }
    // A body that ends early but properly announces what it really has.
    let length = if ending.is_proper() { written(&pieces) } else { whole };
    Performance {
        pieces: pace(pieces, &staging.pace, dice),
        ending,
        headers: !ends_before_headers(staging),
        events: Vec::new(),
        length,
    }
}

impl Ending {
    /// One word for people.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::EndedEarly => "ended early",
            Self::Cut => "cut",
            Self::Reset => "reset",
            Self::Stalled => "stalled",
            Self::ClientLeft => "client left",
        }
    }

    /// Whether HTTP sees a good end.
    pub(crate) fn is_proper(self) -> bool {
        matches!(self, Self::Complete | Self::EndedEarly)
    }

    fn of(end: EarlyEnd, dropped: Dropped) -> Self {
        match (end, dropped) {
            (EarlyEnd::Cut, _) => Self::Cut,
            (EarlyEnd::End, Dropped::Nothing) => Self::Complete,
            (EarlyEnd::End, Dropped::Something) => Self::EndedEarly,
            (EarlyEnd::Reset, _) => Self::Reset,
            (EarlyEnd::Stall, _) => Self::Stalled,
        }
    }
}

/// Whether an early end left something out: a fault may stand behind the last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dropped {
    Nothing,
    Something,
}

impl Dropped {
    fn when(something: bool) -> Self {
        if something { Self::Something } else { Self::Nothing }
    }
}

/// The one early end a staging may have.
fn early_end(staging: &Staging) -> Option<(EarlyEnd, Place)> {
    staging.faults.iter().find_map(|fault| match fault {
        Fault::Ends(end, place) => Some((*end, *place)),
        Fault::MalformedJsonAtEvent(_) => None,
    })
}

/// Damages and drops events as the faults say. What stands between the last kept event and the next is dropped
/// too, so that an early end comes right behind its event.
fn fault_events(mut cues: Vec<Cue>, staging: &Staging) -> (Vec<Cue>, Ending) {
    let damaged = |number: usize| staging.faults.contains(&Fault::MalformedJsonAtEvent(number));
    let mut number = 0;
    for cue in &mut cues {
        if let Cue::Event(event) = cue {
            number += 1;
            if damaged(number) {
                // No JSON object is whole at half its length.
                let half = event.data.floor_char_boundary(event.data.len() / 2);
                event.data.truncate(half);
            }
        }
    }
    match early_end(staging) {
        Some((end, Place::BeforeHeaders)) => (Vec::new(), Ending::of(end, Dropped::Something)),
        Some((end, Place::Events(count))) => {
            let mut events = 0;
            let beyond = cues.iter().position(|cue| {
                let full = events == count;
                events += usize::from(matches!(cue, Cue::Event(_)));
                full
            });
            cues.truncate(beyond.unwrap_or(cues.len()));
            (cues, Ending::of(end, Dropped::when(beyond.is_some())))
        }
        Some((_, Place::Bytes(_))) | None => (cues, Ending::Complete),
    }
}

fn ends_before_headers(staging: &Staging) -> bool {
    matches!(early_end(staging), Some((_, Place::BeforeHeaders)))
}

fn fault_bytes(pieces: &mut Vec<Piece>, ending: &mut Ending, staging: &Staging) {
    match early_end(staging) {
        Some((end, Place::Bytes(count))) => {
            *ending = Ending::of(end, keep_bytes(pieces, count));
        }
        Some((end, Place::BeforeHeaders)) => {
            *ending = Ending::of(end, Dropped::Something);
            pieces.clear();
        }
        Some((_, Place::Events(_))) | None => {}
    }
}

/// Drops everything behind the first `count` bytes. Waits up to there stay.
fn keep_bytes(pieces: &mut Vec<Piece>, count: usize) -> Dropped {
    let dropped = Dropped::when(written(pieces) > count);
    let mut left = count;
    let mut events_before = 0;
    let mut kept = Vec::new();
    for piece in pieces.drain(..) {
        let Piece::Write { bytes, events_done } = piece else {
            kept.push(piece);
            continue;
        };
        if bytes.len() > left {
            if left > 0 {
                kept.push(Piece::Write { bytes: bytes.slice(..left), events_done: events_before });
            }
            break;
        }
        left -= bytes.len();
        events_before = events_done;
        kept.push(Piece::Write { bytes, events_done });
    }
    *pieces = kept;
    dropped
}

fn written(pieces: &[Piece]) -> usize {
    let length = |piece: &Piece| match piece {
        Piece::Write { bytes, .. } => bytes.len(),
        Piece::Wait(_) | Piece::Gate(_) => 0,
    };
    pieces.iter().map(length).sum()
}

/// Cuts the writes into chunks and puts waits between them. Chunks run over the ends of events, but never over a
/// wait or a gate.
fn pace(pieces: Vec<Piece>, pace: &Pace, dice: &mut Dice) -> Vec<Piece> {
    let mut paced = Vec::new();
    let mut run: Vec<(Bytes, usize)> = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Write { bytes, events_done } => run.push((bytes, events_done)),
            other => {
                chunk_run(&mut paced, std::mem::take(&mut run), pace, dice);
                paced.push(other);
            }
        }
    }
    chunk_run(&mut paced, run, pace, dice);
    paced
}

fn chunk_run(paced: &mut Vec<Piece>, run: Vec<(Bytes, usize)>, pace: &Pace, dice: &mut Dice) {
    let chunks = match pace.chunk {
        Chunk::Event => run,
        Chunk::Bytes(size) => rechunk(&run, events_done(paced), || size),
        Chunk::Random => rechunk(&run, events_done(paced), || dice.roll(RANDOM_CHUNK_BYTES_MAX)),
    };
    for (bytes, events_done) in chunks {
        let follows_write = matches!(paced.last(), Some(Piece::Write { .. }));
        let wait = pace.delay + jitter(pace.jitter, dice);
        if follows_write && !wait.is_zero() {
            paced.push(Piece::Wait(wait));
        }
        paced.push(Piece::Write { bytes, events_done });
    }
}

/// The same bytes in chunks of other sizes. An event is done with the chunk that holds its last byte.
fn rechunk(
    run: &[(Bytes, usize)],
    mut events_done: usize,
    mut size: impl FnMut() -> usize,
) -> Vec<(Bytes, usize)> {
    let mut whole = Bytes::from(run.iter().flat_map(|(bytes, _)| bytes.iter().copied()).collect::<Vec<u8>>());
    let mut ends = run.iter().scan(0, |end, (bytes, done)| {
        *end += bytes.len();
        Some((*end, *done))
    });
    let mut next_end = ends.next();
    let mut chunks = Vec::new();
    let mut sent = 0;
    while !whole.is_empty() {
        let chunk = whole.split_to(size().clamp(1, whole.len()));
        sent += chunk.len();
        while let Some((end, done)) = next_end
            && end <= sent
        {
            events_done = done;
            next_end = ends.next();
        }
        chunks.push((chunk, events_done));
    }
    chunks
}

fn events_done(pieces: &[Piece]) -> usize {
    let done = |piece: &Piece| match piece {
        Piece::Write { events_done, .. } => Some(*events_done),
        Piece::Wait(_) | Piece::Gate(_) => None,
    };
    pieces.iter().rev().find_map(done).unwrap_or(0)
}

fn jitter(most: Duration, dice: &mut Dice) -> Duration {
    let most_ms = usize::try_from(most.as_millis()).unwrap_or(usize::MAX - 1);
    Duration::from_millis((dice.roll(most_ms.saturating_add(1)) - 1) as u64)
}

/// Writes lines of an event stream.
struct Lines {
    line_end: LineEnd,
    written: usize,
    last_end: &'static str,
}

impl Lines {
    fn new(line_end: LineEnd) -> Self {
        Self { line_end, written: 0, last_end: "" }
    }

    fn event(&mut self, event: &Event) -> String {
        let name = self.line(&format!("event: {}", event.name));
        let data = self.line(&format!("data: {}", event.data));
        name + &data + &self.line("")
    }

    fn comment(&mut self, text: &str) -> String {
        self.line(&format!(": {text}"))
    }

    fn line(&mut self, text: &str) -> String {
        let end = match self.line_end {
            LineEnd::Lf => "\n",
            LineEnd::CrLf => "\r\n",
            LineEnd::Cr => "\r",
            LineEnd::Mixed => ["\n", "\r\n", "\r"][self.written % 3],
        };
        // An empty line's LF straight behind a CR would read as the second half of one line end.
        let end = if text.is_empty() && end == "\n" && self.last_end == "\r" { "\r\n" } else { end };
        self.written += 1;
        self.last_end = end;
        format!("{text}{end}")
    }
}

/// Collects writes between interruptions, compressing them on the way when asked to.
struct Runs {
    pieces: Vec<Piece>,
    gzip: Option<GzEncoder<Vec<u8>>>,
    pending: Vec<u8>,
    /// Whether something was pushed since the last flush: flushing nothing would still cost compressed bytes.
    dirty: bool,
    events_done: usize,
}

impl Runs {
    fn new(gzip: bool) -> Self {
        Self {
            pieces: Vec::new(),
            gzip: gzip.then(|| GzEncoder::new(Vec::new(), Compression::fast())),
            pending: Vec::new(),
            dirty: false,
            events_done: 0,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.dirty = true;
        match &mut self.gzip {
            // Writing to memory cannot fail.
            Some(encoder) => drop(encoder.write_all(bytes)),
            None => self.pending.extend_from_slice(bytes),
        }
    }

    fn event_done(&mut self) {
        self.events_done += 1;
        self.flush();
    }

    fn interrupt(&mut self, piece: Piece) {
        self.flush();
        self.pieces.push(piece);
    }

    fn finish(mut self, ends_well: bool) -> Vec<Piece> {
        self.flush();
        // Only a proper end has the checksum; a stream that is cut off has none.
        if ends_well && let Some(encoder) = self.gzip.take() {
            let bytes = Bytes::from(encoder.finish().unwrap_or_default());
            self.pieces.push(Piece::Write { bytes, events_done: self.events_done });
        }
        self.pieces
    }

    /// Everything said so far is on its way: a compressed stream must not hold back an event.
    fn flush(&mut self) {
        if !std::mem::take(&mut self.dirty) {
            return;
        }
        if let Some(encoder) = &mut self.gzip {
            // Writing to memory cannot fail.
            drop(encoder.flush());
            self.pending = std::mem::take(encoder.get_mut());
        }
        let bytes = Bytes::from(std::mem::take(&mut self.pending));
        self.pieces.push(Piece::Write { bytes, events_done: self.events_done });
    }
}
