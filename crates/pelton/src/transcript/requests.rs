//! What is recorded of each request: what the server's cache had of it, and what stood in front of the messages. Enough to
//! look back at, and to tell after a resume why a cache was missed.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use pelton_model::Prefix;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::blobs::name_of;
use crate::event::CacheReport;
use crate::history::CountFacts;
use crate::tools::file_memory::{FileMemory, Fingerprint};

/// What is known of a request that was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub(crate) struct RequestFacts {
    /// The model that was asked.
    pub model: String,
    /// The model that the session works with, where another one was asked for a turn: a command wanted it, or it stood in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual_model: Option<String>,
    /// What the cache had of it.
    pub cache: CacheReport,
    /// What stood in front of the messages.
    pub prefix: PrefixFacts,
    /// How it was asked: thinking, effort and speed.
    pub manner: String,
    /// There were images in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_images: bool,
    /// What files held that the model has read or was told of since the request before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<FileFacts>,
    /// What the model had counted by then, and how it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) counted: Option<CountFacts>,
}

/// What files held.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileFacts {
    /// What whoever wrote this makes of bytes that everybody knows: whoever makes something else of them cannot read it.
    pub sample: String,
    /// By their paths, what stands for their content; nothing for those that were gone.
    pub held: Vec<(PathBuf, Option<String>)>,
    /// Those of them that were read or written whole, and how many lines they have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub whole: Vec<(PathBuf, u64)>,
}

impl FileFacts {
    /// Lets the files that were known whole count as read, as they were then: whoever goes on need not read them again.
    pub fn remember(&self, files: &FileMemory, may: impl Fn(&Path) -> bool) {
        for (path, lines) in self.whole.iter().filter(|(path, _)| may(path)) {
            let held =
                self.held.iter().find(|(other, _)| other == path).and_then(|(_, held)| held.as_deref());
            if let Some(content) = held.and_then(Fingerprint::read) {
                files.note_written(path, content, *lines);
            }
        }
    }

    /// Adds what is newer, up to so many files; those that were not heard of for longest are forgotten.
    pub fn add(&mut self, newer: &Self, most: usize) {
        if self.sample != newer.sample {
            *self = newer.clone();
            return;
        }
        let is_news = |path: &PathBuf| newer.held.iter().any(|(other, _)| other == path);
        self.held.retain(|(path, _)| !is_news(path));
        self.whole.retain(|(path, _)| !is_news(path));
        self.held.extend(newer.held.iter().cloned());
        self.whole.extend(newer.whole.iter().cloned());
        self.held.drain(..self.held.len().saturating_sub(most));
        self.whole.drain(..self.whole.len().saturating_sub(most));
    }
}

/// What stands in front of the messages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub(crate) struct PrefixFacts {
    /// The hashes of the system prompt and of the tools.
    pub system_hash: String,
    /// The same of the tools.
    pub tools_hash: String,
    /// Bytes of the system prompt.
    pub system_bytes: usize,
    /// Bytes of the tools of each server, the built-in ones first.
    pub tools_bytes: Vec<(String, usize)>,
    /// What all of it is kept under, beside the transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

/// What stands in front of the messages, as one text that is kept beside the transcript.
#[derive(Serialize, Deserialize)]
struct KeptPrefix<T> {
    system: T,
    tools: T,
}

/// The text that is kept of it, and the name that follows from that.
pub(crate) fn kept_prefix(prefix: &Prefix) -> Option<(String, Vec<u8>)> {
    let text = kept_text(prefix)?;
    Some((name_of(&text), text))
}

/// The same where the name is known.
pub(super) fn kept_text(prefix: &Prefix) -> Option<Vec<u8>> {
    let raw = |bytes| serde_json::from_slice::<&RawValue>(bytes).ok();
    let kept = KeptPrefix { system: raw(&prefix.system)?, tools: raw(&prefix.tools)? };
    serde_json::to_vec(&kept).ok()
}

/// What was kept, byte for byte.
pub(super) fn read_prefix(text: &[u8]) -> Option<Prefix> {
    let kept: KeptPrefix<&RawValue> = serde_json::from_slice(text).ok()?;
    let bytes = |part: &RawValue| Bytes::copy_from_slice(part.get().as_bytes());
    Some(Prefix { system: bytes(kept.system), tools: bytes(kept.tools) })
}

impl PrefixFacts {
    /// Bytes of all of it.
    pub(crate) fn bytes(&self) -> usize {
        // A comma belongs to each tool; brackets stand around them.
        let tools = self.tools_bytes.iter().map(|(_, bytes)| bytes).sum::<usize>();
        self.system_bytes + if tools == 0 { "[]".len() } else { tools + 1 }
    }
}
