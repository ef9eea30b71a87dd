//! Questions that tools ask a model beside the conversation. Who asks it is behind [`Aside`], which the engine puts into the
//! [`ToolCx`](super::ToolCx): tools know neither the engine nor its money.

use bytes::Bytes;
use futures::future::BoxFuture;
use serde::Deserialize;

/// Asks a model for tools. Somebody waits for the answer, and it is paid from the session's purse.
pub(crate) trait Aside: Send + Sync {
    /// Whether there is a small model.
    fn has_small(&self) -> bool;

    /// The blocks of the answer, or why there is none.
    fn ask(&self, question: AsideQuestion) -> BoxFuture<'static, Result<Vec<Bytes>, String>>;
}

/// A question with no history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AsideQuestion {
    /// Who is asked.
    pub whom: Whom,
    /// What it is told about itself.
    pub system: &'static str,
    /// What it is asked.
    pub prompt: String,
    /// The most tokens it may answer.
    pub max_tokens: u32,
    /// The JSON array of tools the server runs for it; empty for none.
    pub server_tools: String,
    /// Searches of the web it may lead to, which cost by themselves.
    pub searches_max: u32,
}

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whom {
    /// The small model. There may be none.
    Small,
    /// The model of the conversation.
    Main,
}

/// The words of an answer.
pub(crate) fn words(blocks: &[Bytes]) -> String {
    #[derive(Deserialize)]
    struct Text {
        text: String,
    }
    let texts = blocks.iter().filter_map(|block| serde_json::from_slice::<Text>(block).ok());
    texts.map(|block| block.text).collect()
}
