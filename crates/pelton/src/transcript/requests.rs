//! What is recorded of each request: what the server's cache had of it, and what stood in front of the messages. Enough to
//! look back at, and to tell after a resume why a cache was missed.

use serde::{Deserialize, Serialize};

use crate::event::CacheReport;
use crate::history::CountFacts;

/// What is known of a request that was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub(crate) struct RequestFacts {
    /// The model that was asked.
    pub model: String,
    /// What the cache had of it.
    pub cache: CacheReport,
    /// What stood in front of the messages.
    pub prefix: PrefixFacts,
    /// How it was asked: thinking, effort and speed.
    pub manner: String,
    /// There were images in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_images: bool,
    /// What the model had counted by then, and how it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) counted: Option<CountFacts>,
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
}

impl PrefixFacts {
    /// Bytes of all of it.
    pub(crate) fn bytes(&self) -> usize {
        // A comma belongs to each tool; brackets stand around them.
        let tools = self.tools_bytes.iter().map(|(_, bytes)| bytes).sum::<usize>();
        self.system_bytes + if tools == 0 { "[]".len() } else { tools + 1 }
    }
}
