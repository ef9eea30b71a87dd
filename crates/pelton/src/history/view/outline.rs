//! What a view holds, part by part: enough to plan with, without the words.

use std::sync::Arc;

use super::super::entry::{CallId, Entry, EntryId, Kind, Piece};
use super::{Part, View};

/// A part of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartFacts {
    /// The entry.
    pub id: EntryId,
    /// What it is.
    pub role: Role,
    /// About how many tokens it costs, as the model counts.
    pub tokens: u64,
    /// How many images and documents it holds.
    pub media: usize,
    /// Stands for a result that never came.
    pub stand_in: bool,
}

/// What a part is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// Words in the user's role.
    Prompt {
        /// Written by the harness.
        meta: bool,
    },
    /// The result of a call.
    Result {
        /// Which.
        call: CallId,
    },
    /// A call.
    Call {
        /// Its id.
        id: CallId,
        /// The tool.
        name: Arc<str>,
    },
    /// Thinking.
    Thinking,
    /// Any other part of an answer.
    Said,
}

impl PartFacts {
    /// Whether it is part of an answer.
    pub fn is_answer(&self) -> bool {
        matches!(self.role, Role::Call { .. } | Role::Thinking | Role::Said)
    }
}

impl View {
    /// What there is, in order.
    pub(crate) fn outline(&self) -> Vec<PartFacts> {
        let facts = |part: &Part| PartFacts {
            id: part.entry.id,
            role: match &part.entry.kind {
                Kind::Prompt { meta } => Role::Prompt { meta: *meta },
                Kind::ToolResult { call, .. } => Role::Result { call: CallId::clone(call) },
                Kind::Assistant { piece, .. } => match piece {
                    Piece::Call { id, name } => Role::Call { id: CallId::clone(id), name: Arc::clone(name) },
                    Piece::Thinking => Role::Thinking,
                    Piece::Text | Piece::Other => Role::Said,
                },
            },
            tokens: self.size.of(part.entry.weight),
            media: part.entry.media,
            stand_in: part.stand_in,
        };
        self.parts.iter().map(facts).collect()
    }

    /// What is sent, in order.
    pub(crate) fn entries(&self) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
        self.parts.iter().map(|part| &part.entry)
    }

    /// What is sent of what was said, in order. What only stands in for others was not.
    pub(crate) fn parts_said(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.parts.iter().filter(|part| !part.stand_in).map(|part| &part.entry)
    }

    /// The entries it holds. Those that only stand in for others have no name.
    pub(crate) fn entry_ids(&self) -> impl Iterator<Item = EntryId> {
        self.parts_said().map(|entry| entry.id)
    }

    /// The entries that say something about themselves.
    pub(crate) fn entries_with_detail(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.parts
            .iter()
            .map(|part| &part.entry)
            .filter(|entry| entry.detail.is_some() && !entry.is_assistant())
    }

    /// Whether the model reads these words somewhere in the user's role.
    pub(crate) fn tells(&self, words: &str) -> bool {
        let is_prompt = |part: &&Part| matches!(part.entry.kind, Kind::Prompt { .. });
        self.parts.iter().filter(is_prompt).any(|part| part.entry.words().contains(words))
    }

    /// What the newest words around prompts say of something, if any do.
    pub(crate) fn told_last<T>(&self, said: impl Fn(&str) -> Option<T>) -> Option<T> {
        let is_around = |part: &&Part| matches!(part.entry.kind, Kind::Prompt { meta: true });
        self.parts.iter().rev().filter(is_around).find_map(|part| said(&part.entry.words()))
    }

    /// The result of a call, as it is sent.
    pub(crate) fn result_of(&self, call: &str) -> Option<&Arc<Entry>> {
        let is_it = |part: &&Part| matches!(&part.entry.kind, Kind::ToolResult { call: answered, .. } if **answered == *call);
        self.parts.iter().find(is_it).map(|part| &part.entry)
    }

    /// The entries between two, both included, as they are sent.
    pub(crate) fn entries_between(&self, from: EntryId, to: EntryId) -> Vec<Arc<Entry>> {
        let place = |id: EntryId| self.parts.iter().position(|part| part.entry.id == id);
        let (Some(first), Some(last)) = (place(from), place(to)) else { return Vec::new() };
        let between = self.parts.get(first..=last).unwrap_or_default();
        between.iter().map(|part| Arc::clone(&part.entry)).collect()
    }
}
