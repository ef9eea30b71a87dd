//! What is submitted.

use uuid::Uuid;

/// Words for the model.
#[derive(Debug, Clone)]
pub struct Prompt {
    pub(super) text: String,
    pub(super) id: Option<Uuid>,
}

/// A prompt needs words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the prompt is empty")]
pub struct BlankPrompt;

impl Prompt {
    /// A prompt of plain text.
    pub fn text(text: impl Into<String>) -> Result<Self, BlankPrompt> {
        let text = text.into();
        if text.trim().is_empty() { Err(BlankPrompt) } else { Ok(Self { text, id: None }) }
    }

    /// Gives it the caller's own id in transcript and events.
    #[must_use]
    pub fn with_id(mut self, id: Uuid) -> Self {
        self.id = Some(id);
        self
    }
}
