//! The items of a reply: what the model says, and what happens to the stream while it says it.

use serde_json::Value;
use std::time::Duration;

/// One item of a reply, sent in the order of the list. Made by [`text`], [`tool`], [`gate`] and the other
/// functions of this module.
///
/// ```
/// use pelton_testkit::{Script, gate, text, tool};
/// use serde_json::json;
///
/// // Stops in the middle of a word until a test opens the gate, then calls a tool under a name the test knows.
/// let said = text("Let me look.").fragments(3).after(1, gate("slow"));
/// let call = tool("Read", json!({"file_path": "a.txt"})).id("toolu_mine");
/// let script = Script::new().reply([said, call]);
/// # drop(script);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub(crate) kind: Kind,
    pub(crate) fragments: Fragments,
    pub(crate) after: Vec<(usize, Part)>,
    pub(crate) id: Option<String>,
    pub(crate) signature: Option<String>,
}

/// Where the text of a block, or the JSON of a tool input, is cut into deltas.
///
/// ```
/// use pelton_testkit::{Fragments, text};
///
/// let in_three = text("Let me look.").fragments(3);
/// let inside_a_word = text("Let me look.").fragments([5]);
/// let by_the_seed = text("Let me look.").fragments(Fragments::Random);
/// assert!(in_three != inside_a_word && inside_a_word != by_the_seed);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Fragments {
    /// About twenty characters each, at word boundaries, as real streams look.
    #[default]
    Natural,
    /// This many pieces of equal length.
    Count(usize),
    /// Cut before these characters, counted from 0.
    At(Vec<usize>),
    /// At places that follow from the script's seed.
    Random,
}

impl From<usize> for Fragments {
    fn from(count: usize) -> Self {
        Self::Count(count)
    }
}

impl<const N: usize> From<[usize; N]> for Fragments {
    fn from(places: [usize; N]) -> Self {
        Self::At(places.to_vec())
    }
}

/// What a part is. Text, thinking, tool, redacted and raw are blocks of the reply; the others act on the stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Text(String),
    Thinking(String),
    Tool { name: String, input: ToolInput },
    RedactedThinking(String),
    RawBlock { block: Value, deltas: Vec<Value> },
    Gate(String),
    Pause(Duration),
    Ping,
    Comment(String),
    Event { name: String, data: Value },
    Error { kind: String, message: String },
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ToolInput {
    /// Serialised compactly, then cut into fragments.
    Value(Value),
    /// Sent as it stands, valid JSON or not.
    Text(String),
}

/// A text block.
pub fn text(text: impl Into<String>) -> Part {
    Part::new(Kind::Text(text.into()))
}

/// A thinking block. The server signs it, bound to the request as the real API does.
pub fn thinking(text: impl Into<String>) -> Part {
    Part::new(Kind::Thinking(text.into()))
}

/// A redacted thinking block.
pub fn redacted_thinking(data: impl Into<String>) -> Part {
    Part::new(Kind::RedactedThinking(data.into()))
}

/// A tool call. Its id is made by the server unless [`Part::id`] gives one.
pub fn tool(name: impl Into<String>, input: Value) -> Part {
    Part::new(Kind::Tool { name: name.into(), input: ToolInput::Value(input) })
}

/// A tool call whose input is this text, valid JSON or not: what a model leaves behind that ran out of tokens.
pub fn tool_with_json(name: impl Into<String>, input_json: impl Into<String>) -> Part {
    Part::new(Kind::Tool { name: name.into(), input: ToolInput::Text(input_json.into()) })
}

/// A block of any type, sent whole at its start.
pub fn raw_block(block: Value) -> Part {
    raw_block_with_deltas(block, [])
}

/// A block of any type, followed by deltas of any type.
pub fn raw_block_with_deltas(block: Value, deltas: impl IntoIterator<Item = Value>) -> Part {
    Part::new(Kind::RawBlock { block, deltas: deltas.into_iter().collect() })
}

/// The stream waits here until the gate of this name is opened. A gate stays open.
pub fn gate(name: impl Into<String>) -> Part {
    Part::new(Kind::Gate(name.into()))
}

/// The stream waits here for a while.
pub fn pause(wait: Duration) -> Part {
    Part::new(Kind::Pause(wait))
}

/// A ping event.
pub fn ping() -> Part {
    Part::new(Kind::Ping)
}

/// A comment line of the event stream.
pub fn comment(text: impl Into<String>) -> Part {
    Part::new(Kind::Comment(text.into()))
}

/// An event of any name. A string is sent verbatim as its data, so that it need not be valid JSON.
pub fn event(name: impl Into<String>, data: impl Into<Value>) -> Part {
    Part::new(Kind::Event { name: name.into(), data: data.into() })
}

/// An error event inside the stream. It ends the reply. An empty message gets the API's own for that type.
pub fn error(kind: impl Into<String>, message: impl Into<String>) -> Part {
    Part::new(Kind::Error { kind: kind.into(), message: message.into() })
}

impl Part {
    /// Where the text or the input JSON is cut: a number of pieces, a list of places, or [`Fragments::Random`].
    #[must_use]
    pub fn fragments(mut self, fragments: impl Into<Fragments>) -> Self {
        self.fragments = fragments.into();
        self
    }

    /// Plays a gate, pause, ping, comment, event or error inside the block, after that many fragments.
    #[must_use]
    pub fn after(mut self, fragments: usize, part: Part) -> Self {
        self.after.push((fragments, part));
        self
    }

    /// The id of a tool call.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The signature of a thinking block, instead of the one the server would make.
    #[must_use]
    pub fn signature(mut self, signature: impl Into<String>) -> Self {
        self.signature = Some(signature.into());
        self
    }

    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind, fragments: Fragments::default(), after: Vec::new(), id: None, signature: None }
    }

    /// Blocks become part of the message; everything else only touches the stream.
    pub(crate) fn is_block(&self) -> bool {
        matches!(
            self.kind,
            Kind::Text(_)
                | Kind::Thinking(_)
                | Kind::Tool { .. }
                | Kind::RedactedThinking(_)
                | Kind::RawBlock { .. }
        )
    }

    /// Blocks that arrive in several deltas.
    pub(crate) fn is_fragmented(&self) -> bool {
        matches!(self.kind, Kind::Text(_) | Kind::Thinking(_) | Kind::Tool { .. })
    }
}
