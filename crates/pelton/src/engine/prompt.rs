//! What is submitted.

use bytes::Bytes;
use pelton_wire::content::{Block, ImageSource};
use uuid::Uuid;

use crate::media::{self, Entering};
use crate::session::content;

/// Words for the model, and pictures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub(super) blocks: Vec<PromptBlock>,
    pub(super) id: Option<Uuid>,
    pub(super) verbatim: bool,
}

/// One piece of a prompt.
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
}

/// A prompt needs something in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the prompt is empty")]
pub struct BlankPrompt;

impl Prompt {
    /// A prompt of plain text.
    pub fn text(text: impl Into<String>) -> Result<Self, BlankPrompt> {
        Self::blocks([PromptBlock::Text(text.into())])
    }

    /// A prompt of several pieces. Blank words are left out: the API refuses them.
    pub fn blocks(blocks: impl IntoIterator<Item = PromptBlock>) -> Result<Self, BlankPrompt> {
        let blocks: Vec<PromptBlock> = blocks.into_iter().filter(|block| !block.is_blank()).collect();
        if blocks.is_empty() { Err(BlankPrompt) } else { Ok(Self { blocks, id: None, verbatim: false }) }
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

    /// Its words, without what is not text.
    pub fn words(&self) -> String {
        let words = self.blocks.iter().filter_map(PromptBlock::words);
        words.collect::<Vec<_>>().join("\n")
    }

    /// The words of its first piece, where a command would stand.
    pub(super) fn first_words(&self) -> Option<&str> {
        self.blocks.first().and_then(PromptBlock::words)
    }

    /// The same with pictures that fit. One that cannot be used is replaced by a note that says why.
    pub(super) async fn made_to_fit(mut self) -> Self {
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

    /// Its content array.
    pub(super) fn json(&self) -> Bytes {
        let blocks: Vec<Block<'_>> = self.blocks.iter().map(PromptBlock::block).collect();
        content(&blocks)
    }
}

impl PromptBlock {
    fn words(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Image { .. } => None,
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
        }
    }
}
