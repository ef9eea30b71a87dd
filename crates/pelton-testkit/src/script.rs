//! The script: which request gets which reply, and what goes wrong on the way.
//!
//! A [`Script`] is a list of [`Step`]s, built in Rust or read from YAML or JSON ([`Script::from_yaml_or_json`]).
//! It speaks of texts, tool calls, gates and faults, never of one API's events: the dialects translate.
//!
//! - [`part`]: the items of a reply
//! - [`when`]: conditions on requests
//! - [`travel`]: pace, line ends and faults
//! - `fill`: variables in replies
//! - `read`, `parse`, `fields`, `lines`: the file format and its error messages
//! - `check`: what a script may not say, however it was made

mod check;
mod fields;
pub(crate) mod fill;
mod lines;
mod parse;
pub mod part;
mod read;
#[cfg(test)]
mod tests;
pub mod travel;
pub mod when;

pub(crate) use check::validate;

use crate::strict::Strictness;
use part::Part;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;
use travel::{Fault, LineEnd, Pace};
use when::When;

/// Largest script file that is read, in bytes.
pub const SCRIPT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Most steps in a script.
pub const STEPS_MAX: usize = 10_000;
/// Most items in one reply.
pub const REPLY_ITEMS_MAX: usize = 10_000;
/// Longest single pause, delay or jitter, in milliseconds.
pub const PAUSE_MS_MAX: u64 = 60 * 60 * 1000;

/// What the scripted model does, request by request.
///
/// ```
/// use pelton_testkit::{Script, Step, text, tool};
/// use serde_json::json;
///
/// let built = Script::new()
///     .reply([text("Let me look."), tool("Read", json!({"file_path": "a.txt"}))])
///     .reply([text("It says hello.")]);
/// let written = Script::from_yaml_or_json("steps:\n  - reply:\n      - text: It says hello.\n")?;
/// # drop((built, written));
/// # Ok::<(), pelton_testkit::ScriptError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Script {
    pub(crate) model: Option<String>,
    pub(crate) strictness: Strictness,
    pub(crate) seed: u64,
    pub(crate) vars: BTreeMap<String, String>,
    pub(crate) steps: Vec<Step>,
    pub(crate) record: Option<PathBuf>,
}

impl Script {
    /// An empty script: every request for a reply is unexpected.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a script; the errors name the step, the field and a way out.
    pub fn from_yaml_or_json(text: &str) -> Result<Self, ScriptError> {
        read::script(text)
    }

    /// Adds a step at the end.
    #[must_use]
    pub fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Adds a step that replies with these parts: the short form of `step(Step::reply(…))`.
    #[must_use]
    pub fn reply(self, parts: impl IntoIterator<Item = Part>) -> Self {
        self.step(Step::reply(parts))
    }

    /// Serves only this model; others are answered as unknown.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// How strict the server is. The default is as strict as the real API.
    #[must_use]
    pub fn strict(mut self, strictness: Strictness) -> Self {
        self.strictness = strictness;
        self
    }

    /// Seed of ids, signatures, random fragments and jitter: same seed and same requests, same bytes.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Gives `${name}` a value.
    #[must_use]
    pub fn var(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.vars.insert(name.into(), value.into());
        self
    }

    /// Writes every request and reply to this file, one JSON object per line.
    #[must_use]
    pub fn record(mut self, path: impl Into<PathBuf>) -> Self {
        self.record = Some(path.into());
        self
    }
}

/// One answer, the requests it is for, and how it travels.
///
/// ```
/// use pelton_testkit::{Script, Step, When, text};
///
/// // Overloaded twice, then an answer; whoever asks the small model gets another.
/// let script = Script::new()
///     .step(Step::reply([text("A line.")]).when(When::any().model("haiku")).always())
///     .step(Step::status(529).header("retry-after", "0").times(2))
///     .reply([text("Done.")]);
/// # let _ = script;
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub(crate) when: When,
    pub(crate) times: Times,
    pub(crate) answer: Answer,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) staging: Staging,
}

impl Step {
    /// A reply of the model.
    pub fn reply(parts: impl IntoIterator<Item = Part>) -> Self {
        Self::new(Answer::Reply(Reply { parts: parts.into_iter().collect(), ..Reply::default() }))
    }

    /// A plain HTTP answer. Without a body it carries the API's error body for that status.
    pub fn status(status: u16) -> Self {
        Self::new(Answer::Status(Status { status, body: None, message: None, kind: None }))
    }

    /// The requests this step is for.
    #[must_use]
    pub fn when(mut self, when: When) -> Self {
        self.when = when;
        self
    }

    /// How often the step may play; once unless said.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Times::AtMost(times);
        self
    }

    /// The step is never used up.
    #[must_use]
    pub fn always(mut self) -> Self {
        self.times = Times::Always;
        self
    }

    /// Adds a response header, or replaces one the server would send.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The body of a [`Step::status`]: a string is sent as it is, anything else as JSON.
    #[must_use]
    pub fn body(mut self, body: impl Into<Value>) -> Self {
        self.misplace_unless_status("body", |status| status.body = Some(body.into()));
        self
    }

    /// The message in the default error body of a [`Step::status`].
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.misplace_unless_status("message", |status| status.message = Some(message.into()));
        self
    }

    /// The error type in the default error body of a [`Step::status`].
    #[must_use]
    pub fn error_type(mut self, kind: impl Into<String>) -> Self {
        self.misplace_unless_status("error_type", |status| status.kind = Some(kind.into()));
        self
    }

    /// Why the model stopped. Default: `tool_use` if there is a tool call, else `end_turn`.
    #[must_use]
    pub fn stop(mut self, reason: impl Into<String>) -> Self {
        self.misplace_unless_reply("stop", |reply| reply.stop = Some(reason.into()));
        self
    }

    /// The stop sequence that was hit.
    #[must_use]
    pub fn stop_sequence(mut self, sequence: impl Into<String>) -> Self {
        self.misplace_unless_reply("stop_sequence", |reply| reply.stop_sequence = Some(sequence.into()));
        self
    }

    /// Details of the stop, as a refusal has them.
    #[must_use]
    pub fn stop_details(mut self, details: impl Into<Value>) -> Self {
        self.misplace_unless_reply("stop_details", |reply| reply.stop_details = Some(details.into()));
        self
    }

    /// One figure of the usage, instead of the counted one.
    #[must_use]
    pub fn usage(mut self, figure: impl Into<String>, value: impl Into<Value>) -> Self {
        self.misplace_unless_reply("usage", |reply| {
            reply.usage.insert(figure.into(), value.into());
        });
        self
    }

    /// Leaves out the ping that real streams send after their first event.
    #[must_use]
    pub fn no_opening_ping(mut self) -> Self {
        self.misplace_unless_reply("opening_ping", |reply| reply.opening_ping = false);
        self
    }

    /// Refuses the request when it does not ask for a stream.
    #[must_use]
    pub fn refuse_non_streaming(mut self) -> Self {
        self.misplace_unless_reply("non_streaming", |reply| reply.non_streaming = NonStreaming::Refuse);
        self
    }

    /// How bytes are cut into writes and how fast they come.
    #[must_use]
    pub fn pace(mut self, pace: Pace) -> Self {
        self.staging.pace = pace;
        self
    }

    /// How lines of the event stream end.
    #[must_use]
    pub fn line_end(mut self, line_end: LineEnd) -> Self {
        self.staging.line_end = line_end;
        self
    }

    /// Starts the event stream with a byte order mark.
    #[must_use]
    pub fn bom(mut self) -> Self {
        self.staging.bom = true;
        self
    }

    /// Compresses the body.
    #[must_use]
    pub fn gzip(mut self) -> Self {
        self.staging.gzip = true;
        self
    }

    /// Something goes wrong. Several faults may be added, but only one that ends the answer.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.staging.faults.push(fault);
        self
    }

    fn new(answer: Answer) -> Self {
        Self {
            when: When::default(),
            times: Times::AtMost(1),
            answer,
            headers: Vec::new(),
            staging: Staging::default(),
        }
    }

    /// A word that belongs to the other kind of step is remembered, so that starting the script can name it.
    fn misplace_unless_status(&mut self, word: &'static str, set: impl FnOnce(&mut Status)) {
        match &mut self.answer {
            Answer::Status(status) => set(status),
            Answer::Reply(_) => self.staging.misplaced.push(word),
        }
    }

    fn misplace_unless_reply(&mut self, word: &'static str, set: impl FnOnce(&mut Reply)) {
        match &mut self.answer {
            Answer::Reply(reply) => set(reply),
            Answer::Status(_) => self.staging.misplaced.push(word),
        }
    }
}

/// How often a step may play.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    AtMost(u32),
    Always,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    Reply(Reply),
    Status(Status),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    pub(crate) parts: Vec<Part>,
    pub(crate) stop: Option<String>,
    pub(crate) stop_sequence: Option<String>,
    pub(crate) stop_details: Option<Value>,
    pub(crate) usage: Map<String, Value>,
    pub(crate) opening_ping: bool,
    pub(crate) non_streaming: NonStreaming,
}

impl Default for Reply {
    fn default() -> Self {
        Self {
            parts: Vec::new(),
            stop: None,
            stop_sequence: None,
            stop_details: None,
            usage: Map::new(),
            opening_ping: true,
            non_streaming: NonStreaming::Ok,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NonStreaming {
    Ok,
    Refuse,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Status {
    pub(crate) status: u16,
    pub(crate) body: Option<Value>,
    pub(crate) message: Option<String>,
    pub(crate) kind: Option<String>,
}

/// How an answer's bytes travel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Staging {
    pub(crate) pace: Pace,
    pub(crate) line_end: LineEnd,
    pub(crate) bom: bool,
    pub(crate) gzip: bool,
    pub(crate) faults: Vec<Fault>,
    /// Words said about the wrong kind of step; such a script does not start.
    pub(crate) misplaced: Vec<&'static str>,
}

/// Why a script cannot be played: where, what, and the way out.
///
/// Its text is `line 4: step 2, reply item 1, field `txt`: unknown field; did you mean `text`?`, without the line when
/// the script was built in Rust or is written in a way that has none.
///
/// ```
/// use pelton_testkit::Script;
///
/// let error = Script::from_yaml_or_json("steps:\n  - reply:\n      - txt: Hello.\n").unwrap_err();
/// assert_eq!((error.line, error.field.as_str()), (Some(3), "txt"));
/// assert!(error.to_string().contains("did you mean"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}; {way_out}", self.address())]
#[non_exhaustive]
pub struct ScriptError {
    /// The line of the file, counted from 1, where it is known.
    pub line: Option<usize>,
    /// `step 3`, `step 3, reply item 2`, or `script`.
    pub place: String,
    /// The field, empty when the whole place is meant.
    pub field: String,
    /// What is wrong.
    pub problem: String,
    /// What to write instead.
    pub way_out: String,
}

impl ScriptError {
    pub(crate) fn new(
        place: impl Into<String>,
        field: impl Into<String>,
        problem: impl Into<String>,
        way_out: impl Into<String>,
    ) -> Self {
        Self {
            line: None,
            place: place.into(),
            field: field.into(),
            problem: problem.into(),
            way_out: way_out.into(),
        }
    }

    fn address(&self) -> String {
        let line = self.line.map_or(String::new(), |line| format!("line {line}: "));
        if self.field.is_empty() {
            format!("{line}{}: ", self.place)
        } else {
            format!("{line}{}, field `{}`: ", self.place, self.field)
        }
    }
}
