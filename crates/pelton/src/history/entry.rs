//! One thing that was said: a prompt, one block of an answer, or the result of one call.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use pelton_wire::usage::Usage;
use uuid::Uuid;

use super::media;
use super::tokens::Weight;

/// Names an entry in the transcript and on the wire.
pub type EntryId = Uuid;

/// The id the model gave to a tool call.
pub type CallId = Arc<str>;

/// One thing that was said. Immutable; shared by pointer.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, text, tool};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([text("Four.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// use pelton::history::{Kind, Piece};
/// use pelton::{Engine, Options, Prompt};
///
/// let mut engine = Engine::new(Options::new(dir.path(), endpoint))?;
/// engine.submit(Prompt::text("What is two and two?")?).for_each(async |_| {}).await;
/// let last = engine.history().last().ok_or("something was said")?;
/// assert!(matches!(&last.kind, Kind::Assistant { piece: Piece::Text, .. }));
/// let blocks: serde_json::Value = serde_json::from_slice(&last.json)?;
/// assert_eq!(blocks[0]["text"], "Four.");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Entry {
    /// Its name in the transcript.
    pub id: EntryId,
    /// When it was recorded.
    pub at: Timestamp,
    /// What it is. Every question the loop has is answered from here, without parsing `json` again.
    pub kind: Kind,
    /// The content array as JSON text, `[{…},…]`: the bytes that go to the model, to disk and to clients.
    pub json: Bytes,
    /// For a tool's result: its structured twin, for clients and the transcript only.
    pub detail: Option<Bytes>,
    /// What it will cost of the context window, estimated.
    pub tokens: u32,
    /// The same by what it is made of.
    pub(crate) weight: Weight,
    /// How many images and documents it holds.
    pub media: usize,
    /// How many these count for where images and pages of documents are limited.
    pub(crate) pages: usize,
    /// One of them is an image that is too large to be sent among many.
    pub(crate) has_large_image: bool,
    /// Whether there is an image among them at all.
    pub(crate) has_image: bool,
}

/// What an entry is.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([tool("Glob", json!({"pattern": "*"}))]).reply([text("Nothing.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::Prompt;
/// use pelton::history::Kind;
///
/// engine.submit(Prompt::text("What is here?")?).for_each(async |_| {}).await;
/// let results = engine.history().iter().filter(|entry| matches!(entry.kind, Kind::ToolResult { is_error: false, .. }));
/// assert_eq!(results.count(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub enum Kind {
    /// Words in the user's role.
    Prompt {
        /// Written by the harness, not by a person.
        meta: bool,
    },
    /// The result of one call.
    ToolResult {
        /// Which call it answers.
        call: CallId,
        /// The call did not do what was asked.
        is_error: bool,
    },
    /// One content block of an answer. Blocks of one answer share their origin.
    Assistant {
        /// The answer it belongs to.
        origin: Arc<Origin>,
        /// What kind of block it is.
        piece: Piece,
    },
}

/// The model's answer a block belongs to.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([text("Four.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::Prompt;
/// use pelton::history::Kind;
///
/// engine.submit(Prompt::text("What is two and two?")?).for_each(async |_| {}).await;
/// let last = engine.history().last().ok_or("something was said")?;
/// let Kind::Assistant { origin, .. } = &last.kind else { return Err("the model said it".into()) };
/// assert!(origin.model.starts_with("claude-") && origin.usage.input_tokens > 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Origin {
    /// The API's message id.
    pub message_id: String,
    /// The model that answered; `<synthetic>` for words of the harness in the assistant's role.
    pub model: String,
    /// The usage reported when the answer began.
    pub usage: Usage,
    /// The API's request id.
    pub request_id: Option<String>,
}

/// The kinds of content block the loop tells apart.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([text("Let me look."), tool("Glob", json!({"pattern": "*"}))]).reply([text("Nothing.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::Prompt;
/// use pelton::history::{Kind, Piece};
///
/// engine.submit(Prompt::text("What is here?")?).for_each(async |_| {}).await;
/// let mut called = Vec::new();
/// for entry in engine.history() {
///     if let Kind::Assistant { piece: Piece::Call { name, .. }, .. } = &entry.kind {
///         called.push(name.to_string());
///     }
/// }
/// assert_eq!(called, ["Glob"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text for the user.
    Text,
    /// Thinking, open or redacted. Cannot carry a cache mark and cannot end an answer.
    Thinking,
    /// A call of one of our tools.
    Call {
        /// The id its result must name.
        id: CallId,
        /// The tool's name.
        name: Arc<str>,
    },
    /// Anything else: server tools and blocks we do not know. Sent back as received.
    Other,
}

/// The bytes are not the text of a non-empty JSON array of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an entry's content must be a non-empty JSON array of objects")]
pub struct NotAContentArray;

impl Entry {
    /// Wraps a content array. Only its outline is checked (`[{…}]`): the makers of entries are serialisers, and
    /// readers of foreign files validate before they come here.
    pub(crate) fn new(id: EntryId, at: Timestamp, kind: Kind, json: Bytes) -> Result<Self, NotAContentArray> {
        if !(json.starts_with(b"[{") && json.ends_with(b"}]")) {
            return Err(NotAContentArray);
        }
        let media = match kind {
            Kind::Assistant { .. } => Vec::new(),
            Kind::Prompt { .. } | Kind::ToolResult { .. } => media::find(&json),
        };
        let weight = Weight::of(&json, &media);
        let tokens = u32::try_from(weight.tokens()).unwrap_or(u32::MAX);
        let has_large_image = media.iter().any(media::Medium::is_large);
        let has_image = media.iter().any(|medium| medium.is_image);
        let pages = media.iter().map(|medium| medium.pages).sum();
        let media = media.len();
        Ok(Self {
            id,
            at,
            kind,
            json,
            detail: None,
            tokens,
            weight,
            media,
            pages,
            has_large_image,
            has_image,
        })
    }

    /// Adds the structured twin of a tool's result, or what words of the harness are about.
    #[must_use]
    pub(crate) fn with_detail(mut self, detail: Option<Bytes>) -> Self {
        self.detail = detail;
        self
    }

    /// Its words: the text of a prompt, of an answer or of a result; a call as its name and input.
    pub(crate) fn words(&self) -> String {
        let blocks: Vec<serde_json::Value> = serde_json::from_slice(&self.json).unwrap_or_default();
        let words = |block: &serde_json::Value| match (block.get("text"), block.get("input")) {
            (Some(text), _) => text.as_str().map(str::to_owned),
            (None, Some(input)) => {
                let name = block.get("name").and_then(serde_json::Value::as_str).unwrap_or_default();
                Some(format!("{name} {input}"))
            }
            (None, None) => None,
        };
        match &self.kind {
            Kind::ToolResult { .. } => super::result::words(self).unwrap_or_default(),
            _ => blocks.iter().filter_map(words).collect::<Vec<_>>().join("\n"),
        }
    }

    /// The blocks without the array's brackets, ready to be joined with those of a neighbour.
    pub fn blocks(&self) -> Bytes {
        self.json.slice(1..self.json.len() - 1)
    }

    /// The blocks cut where a cache mark fits: just before the last block's closing brace.
    pub(crate) fn blocks_around_mark(&self) -> (Bytes, Bytes) {
        let brace = self.json.len() - 2;
        (self.json.slice(1..brace), self.json.slice(brace..brace + 1))
    }

    /// Whether the API takes a cache mark on the last block.
    pub(crate) fn can_be_marked(&self) -> bool {
        !matches!(self.kind, Kind::Assistant { piece: Piece::Thinking | Piece::Other, .. })
    }

    /// How many content blocks it has. Only prompts can have more than one.
    pub(crate) fn block_count(&self) -> usize {
        match self.kind {
            Kind::Prompt { .. } => serde_json::from_slice::<Vec<serde::de::IgnoredAny>>(&self.json)
                .map_or(1, |blocks| blocks.len()),
            Kind::ToolResult { .. } | Kind::Assistant { .. } => 1,
        }
    }

    /// Whether it is part of an answer.
    pub fn is_assistant(&self) -> bool {
        matches!(self.kind, Kind::Assistant { .. })
    }

    /// Whether it is thinking.
    pub fn is_thinking(&self) -> bool {
        matches!(self.kind, Kind::Assistant { piece: Piece::Thinking, .. })
    }
}
