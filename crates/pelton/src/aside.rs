//! Questions that tools ask a model beside the conversation. Who asks it is behind [`Aside`], which the engine puts into the
//! [`ToolCx`](crate::tools::ToolCx): tools know neither the engine nor its money.

use bytes::Bytes;
use futures::future::BoxFuture;
use serde::Deserialize;

/// Asks a model for tools. Somebody waits for the answer, and it is paid from the session's purse.
pub(crate) trait Aside: Send + Sync {
    /// Whether there is a small model.
    fn has_small(&self) -> bool;

    /// The answer, or why there is none: one that the model declined to give or that broke off is none.
    fn ask(&self, question: AsideQuestion) -> BoxFuture<'static, Result<Told, String>>;
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub blocks: Vec<Bytes>,
    /// The model said all it had to say. Otherwise a limit or a pause has cut it, and what it is worth then depends on
    /// what it is for.
    pub is_whole: bool,
}

/// A question with no history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AsideQuestion {
    /// What it is for, to tell when it is not answered at once.
    pub purpose: &'static str,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Whom {
    /// The small model. There may be none.
    Small,
    /// The model of the conversation.
    Main,
    /// This one.
    Named(String),
}

/// What is said behind the words of an answer that is not whole.
const NOT_WHOLE: &str = "(The answer was cut off here.)";

impl Told {
    /// Its words; they say so if something is missing behind them.
    pub fn words(&self) -> String {
        let words = self.plain_words();
        let words = words.trim();
        match self.is_whole || words.is_empty() {
            true => words.to_owned(),
            false => format!("{words}\n\n{NOT_WHOLE}"),
        }
    }

    /// Its words, if none are missing: for what would be wrong in part.
    pub fn whole_words(&self) -> Option<String> {
        self.is_whole.then(|| self.plain_words())
    }

    fn plain_words(&self) -> String {
        #[derive(Deserialize)]
        struct Text {
            text: String,
        }
        let texts = self.blocks.iter().filter_map(|block| serde_json::from_slice::<Text>(block).ok());
        texts.map(|block| block.text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_not_whole_says_so_or_is_none() {
        let told = |text: &str, is_whole| Told {
            blocks: vec![serde_json::json!({"type": "text", "text": text}).to_string().into()],
            is_whole,
        };
        assert_eq!(told(" All of it. ", true).words(), "All of it.");
        assert_eq!(told("Half of", false).words(), "Half of\n\n(The answer was cut off here.)");
        assert_eq!(told("  ", false).words(), "", "nothing is not half of something");
        assert_eq!(told("All of it.", true).whole_words().as_deref(), Some("All of it."));
        assert_eq!(told("Half of", false).whole_words(), None);
    }
}
