//! What is told beside the conversation: appended to it, recorded with it, and never changed afterwards.

use std::path::PathBuf;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::prompt::reminder;

/// Words of the harness in the user's role, and what they are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub kind: AttachmentKind,
    /// The files it tells of.
    pub files: Vec<PathBuf>,
    /// The tools it tells of, by name.
    pub tools: Vec<String>,
    /// What the model reads.
    pub text: String,
}

/// What an attachment is, by the name it has in transcripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AttachmentKind {
    /// Memory files that count from the start.
    Instructions,
    /// Memory files and rules that count because of a file that was read.
    NestedInstructions,
    /// Files that changed on disk since they were read.
    ChangedFiles,
    /// The list of things to do.
    Todos,
    /// Files that were worked with, as they are now, because what was said of them is not sent any more.
    FilesAgain,
    /// What skills there are.
    SkillListing,
    /// The text of a skill that the model called for.
    InvokedSkill,
    /// Which tools of servers there are.
    ServedTools,
    /// What a prompt mentions, as it is.
    Mentioned,
    /// A summary in the place of what was said.
    CompactSummary,
}

impl AttachmentKind {
    /// Whether memory files are told in it.
    pub fn is_memory(self) -> bool {
        matches!(self, Self::Instructions | Self::NestedInstructions | Self::CompactSummary)
    }
}

/// What an entry of the transcript says about an attachment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttachmentFacts {
    pub r#type: AttachmentKind,
    #[serde(default)]
    pub files: Vec<PathBuf>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}

impl Attachment {
    /// Words about files, or about something else.
    pub fn reminder(kind: AttachmentKind, files: Vec<PathBuf>, words: &[String]) -> Self {
        Self { kind, files, tools: Vec::new(), text: reminder(words) }
    }

    /// The text of a skill, which stands in a file.
    pub fn skill(file: PathBuf, text: String) -> Self {
        Self { kind: AttachmentKind::InvokedSkill, files: vec![file], tools: Vec::new(), text }
    }

    /// Words about tools of servers, and the names of all that are there.
    pub fn served(tools: Vec<String>, words: String) -> Self {
        Self { tools, ..Self::reminder(AttachmentKind::ServedTools, Vec::new(), &[words]) }
    }

    /// The facts, as the transcript keeps them.
    pub fn facts(&self) -> Option<Bytes> {
        let Self { kind, files, tools, .. } = self.clone();
        AttachmentFacts { r#type: kind, files, tools }.written()
    }
}

impl AttachmentFacts {
    /// What the transcript keeps of words that are of this kind and about these files.
    pub fn of(kind: AttachmentKind, files: Vec<PathBuf>) -> Option<Bytes> {
        Self { r#type: kind, files, tools: Vec::new() }.written()
    }

    fn written(&self) -> Option<Bytes> {
        // A path that is no text cannot be kept as one; then the attachment is words alone.
        serde_json::to_vec(self).ok().map(Bytes::from)
    }

    /// What the transcript has kept, if this is a kind that is known here.
    pub fn read(detail: &[u8]) -> Option<Self> {
        serde_json::from_slice(detail).ok()
    }
}
