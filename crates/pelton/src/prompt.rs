//! What is submitted.

use bytes::Bytes;
use pelton_wire::content::{Block, ImageSource};
use uuid::Uuid;

use crate::command::Called;
use crate::media::{self, Entering};
use crate::session::content;

/// Words for the model, and pictures.
///
/// ```
/// use pelton::{Prompt, PromptBlock};
///
/// let prompt = Prompt::text("Explain @src/main.rs")?;
/// assert_eq!(prompt.words(), "Explain @src/main.rs");
///
/// let words = PromptBlock::Text("What is this?".to_owned());
/// let picture = PromptBlock::Image { media_type: "image/png".to_owned(), base64: "iVBORw0KGgo=".to_owned() };
/// let prompt = Prompt::blocks([words, picture])?;
/// # let _ = prompt;
/// assert!(Prompt::text("  ").is_err());
/// # Ok::<(), pelton::BlankPrompt>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub(crate) blocks: Vec<PromptBlock>,
    pub(crate) id: Option<Uuid>,
    pub(crate) verbatim: bool,
    /// Nobody typed it: hooks that watch what users say do not hear of it.
    pub(crate) by_harness: bool,
}

/// One piece of a prompt.
///
/// ```
/// use pelton::{Prompt, PromptBlock};
///
/// let words = PromptBlock::Text("Sum it up.".to_owned());
/// let report = PromptBlock::Document { base64: "JVBERi0xLjQK".to_owned() };
/// let prompt = Prompt::blocks([words, report])?;
/// assert_eq!(prompt.words(), "Sum it up.");
/// # Ok::<(), pelton::BlankPrompt>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromptBlock {
    /// Words.
    Text(String),
    /// A picture. Of any size: it is brought down before it enters the conversation.
    Image {
        /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`; corrected if the bytes are something else.
        media_type: String,
        /// Its bytes, base64 encoded.
        base64: String,
    },
    /// A PDF document.
    Document {
        /// Its bytes, base64 encoded.
        base64: String,
    },
    /// A picture that the model's server gets from this address.
    ImageAt(String),
    /// A PDF document that it gets from there.
    DocumentAt(String),
}

/// A prompt needs something in it.
///
/// ```
/// use pelton::{BlankPrompt, Prompt};
///
/// assert_eq!(Prompt::text(" \n ").unwrap_err(), BlankPrompt);
/// assert_eq!(BlankPrompt.to_string(), "the prompt is empty");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the prompt is empty")]
pub struct BlankPrompt;

/// What news of commands in the background begin with, as the model reads them.
pub(crate) const TASK_NEWS: &str = "<task-notification>";

impl Prompt {
    /// A prompt of plain text.
    pub fn text(text: impl Into<String>) -> Result<Self, BlankPrompt> {
        Self::blocks([PromptBlock::Text(text.into())])
    }

    /// A prompt of several pieces. Blank words are left out: the API refuses them.
    pub fn blocks(blocks: impl IntoIterator<Item = PromptBlock>) -> Result<Self, BlankPrompt> {
        let blocks: Vec<PromptBlock> = blocks.into_iter().filter(|block| !block.is_blank()).collect();
        if blocks.is_empty() {
            Err(BlankPrompt)
        } else {
            Ok(Self { blocks, id: None, verbatim: false, by_harness: false })
        }
    }

    /// Gives it the caller's own id in transcript and events.
    #[must_use]
    pub fn with_id(mut self, id: Uuid) -> Self {
        self.id = Some(id);
        self
    }

    /// It means what it says: `/` calls no command and `@` mentions no file.
    #[must_use]
    pub fn verbatim(mut self) -> Self {
        self.verbatim = true;
        self
    }

    pub(crate) fn of_harness(mut self) -> Self {
        self.by_harness = true;
        self
    }

    /// Its words, without what is not text.
    pub fn words(&self) -> String {
        let words = self.blocks.iter().filter_map(PromptBlock::words);
        words.collect::<Vec<_>>().join("\n")
    }

    /// Says something in front of it, as if it had been typed there.
    pub(crate) fn say_first(&mut self, words: &str) {
        match self.blocks.first_mut() {
            Some(PromptBlock::Text(text)) => *text = format!("{words}\n\n{text}"),
            _ => self.blocks.insert(0, PromptBlock::Text(words.to_owned())),
        }
    }

    /// The words of its first piece, where a command would stand.
    pub(crate) fn first_words(&self) -> Option<&str> {
        self.blocks.first().and_then(PromptBlock::words)
    }

    /// The same without what is not text.
    pub(crate) fn only_words(&self) -> Self {
        let words = self.blocks.iter().filter_map(PromptBlock::words);
        let blocks = words.map(|words| PromptBlock::Text(words.to_owned())).collect();
        Self { blocks, ..*self }
    }

    /// The same with pictures that fit. One that cannot be used is replaced by a note that says why.
    pub(crate) async fn made_to_fit(mut self) -> Self {
        let mut fitted = Vec::with_capacity(self.blocks.len());
        for block in self.blocks {
            let PromptBlock::Image { base64, .. } = block else {
                fitted.push(block);
                continue;
            };
            let Entering { picture, note } = media::enter(base64).await;
            fitted.extend(picture.map(|picture| PromptBlock::Image {
                media_type: picture.format.media_type().to_owned(),
                base64: picture.base64,
            }));
            fitted.extend(note.map(PromptBlock::Text));
        }
        self.blocks = fitted;
        self
    }

    /// Whether it calls a command, or tries to.
    pub(crate) fn calls_command(&self) -> bool {
        !self.verbatim && self.first_words().and_then(Called::in_text).is_some_and(|called| called.is_plain())
    }

    /// Both as one, under the first one's id: words that meet are parted by a line end.
    pub(crate) fn followed_by(mut self, next: Self) -> Self {
        let mut blocks = next.blocks.into_iter();
        if let Some(PromptBlock::Text(last)) = self.blocks.last_mut()
            && let Some(PromptBlock::Text(first)) = blocks.as_slice().first()
        {
            last.push('\n');
            last.push_str(first);
            blocks.next();
        }
        self.blocks.extend(blocks);
        self
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        let bytes = |block: &PromptBlock| match block {
            PromptBlock::Text(text) => text.len(),
            PromptBlock::Image { media_type, base64 } => media_type.len() + base64.len(),
            PromptBlock::Document { base64 } => base64.len(),
            PromptBlock::ImageAt(url) | PromptBlock::DocumentAt(url) => url.len(),
        };
        self.blocks.iter().map(bytes).sum()
    }

    /// Reads a content array back. Blocks of other kinds are left out.
    pub(crate) fn from_json(json: &[u8]) -> Option<Self> {
        let blocks: Vec<serde_json::Value> = serde_json::from_slice(json).ok()?;
        let word = |block: &serde_json::Value, path: &str| {
            block.pointer(path).and_then(serde_json::Value::as_str).map(str::to_owned)
        };
        let address = |block: &serde_json::Value| word(block, "/source/url");
        let read = |block: &serde_json::Value| match word(block, "/type")?.as_str() {
            "text" => Some(PromptBlock::Text(word(block, "/text")?)),
            "image" if address(block).is_some() => address(block).map(PromptBlock::ImageAt),
            "document" if address(block).is_some() => address(block).map(PromptBlock::DocumentAt),
            "image" => Some(PromptBlock::Image {
                media_type: word(block, "/source/media_type")?,
                base64: word(block, "/source/data")?,
            }),
            "document" => Some(PromptBlock::Document { base64: word(block, "/source/data")? }),
            _ => None,
        };
        Self::blocks(blocks.iter().filter_map(read)).ok()
    }

    /// Its content array.
    pub(crate) fn json(&self) -> Bytes {
        let blocks: Vec<Block<'_>> = self.blocks.iter().map(PromptBlock::block).collect();
        content(&blocks)
    }
}

impl PromptBlock {
    fn words(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Image { .. } | Self::Document { .. } | Self::ImageAt(_) | Self::DocumentAt(_) => None,
        }
    }

    fn is_blank(&self) -> bool {
        self.words().is_some_and(|text| text.trim().is_empty())
    }

    fn block(&self) -> Block<'_> {
        match self {
            Self::Text(text) => Block::Text { text },
            Self::Image { media_type, base64 } => {
                Block::Image { source: ImageSource::Base64 { media_type, data: base64 } }
            }
            Self::Document { base64 } => Block::Document {
                source: ImageSource::Base64 { media_type: "application/pdf", data: base64 },
            },
            Self::ImageAt(url) => Block::Image { source: ImageSource::Url { url } },
            Self::DocumentAt(url) => Block::Document { source: ImageSource::Url { url } },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_joined_and_come_back_from_their_json() {
        let image = || PromptBlock::Image { media_type: "image/png".into(), base64: "AA==".into() };
        let words = |text: &str| Prompt::text(text).unwrap();
        let one = words("a").followed_by(words("b")).followed_by(words("c"));
        assert_eq!(one, words("a\nb\nc"));
        let picture = Prompt::blocks([PromptBlock::Text("look".into()), image()]).unwrap();
        let two = picture.clone().followed_by(words("and this")).followed_by(picture.clone());
        let expected =
            [PromptBlock::Text("look".into()), image(), PromptBlock::Text("and this\nlook".into()), image()];
        assert_eq!(two.blocks, expected);
        assert_eq!(Prompt::from_json(&two.json()), Some(two));
        let far = [PromptBlock::ImageAt("https://a".into()), PromptBlock::DocumentAt("https://b".into())];
        let far = Prompt::blocks(far).unwrap();
        assert_eq!(Prompt::from_json(&far.json()), Some(far));
        assert_eq!(Prompt::from_json(b"[]"), None);
        assert_eq!(Prompt::from_json(b"nonsense"), None);
    }
}
