//! Questions beside the conversation: asked in the background, within the budget, and given up rather than waited for.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use pelton_model::{Ask, BlockKind, Client, Prefix, Source, Step, Thinking};
use serde::Deserialize;
use serde_json::json;

use super::budget::prompt_tokens_max;
use super::spending::{Forecast, InFlight, Spending, Wish};

/// About how many bytes are one token, where nobody has counted.
const BYTES_PER_TOKEN: u64 = 4;

/// A question with no history.
pub(super) struct SideQuestion {
    /// Who is asked.
    pub model: String,
    /// What it is told about itself.
    pub system: &'static str,
    /// What it is asked.
    pub prompt: String,
    /// The most tokens it may answer.
    pub max_tokens: u32,
}

impl SideQuestion {
    /// Sets money aside for it, if there is enough now: nobody waits for it, so it waits for nobody.
    pub fn pay(self, spending: &Arc<Spending>) -> (Ask, Wish) {
        let system = json!([{"type": "text", "text": self.system}]).to_string();
        let prompt = json!({"role": "user", "content": [{"type": "text", "text": self.prompt}]}).to_string();
        let bytes = (system.len() + prompt.len()) as u64;
        let prefix = Prefix { system: Bytes::from(system), tools: Bytes::new() };
        let mut ask = Ask::new(self.model, self.max_tokens, Arc::new(prefix), vec![Bytes::from(prompt)]);
        ask.thinking = Thinking::Disabled;
        ask.source = Source::Background;
        let forecast = Forecast {
            ask: &ask,
            prompt_tokens: bytes / BYTES_PER_TOKEN,
            prompt_tokens_max: prompt_tokens_max(bytes),
            last: None,
        };
        let wish = spending.set_aside(forecast);
        (ask, wish)
    }
}

/// Asks, and gives the words of the answer. Whatever goes wrong, there are none.
pub(super) async fn ask(client: Client, ask: Ask, mut paid: Box<InFlight>) -> Option<String> {
    #[derive(Deserialize)]
    struct Text {
        text: String,
    }
    let ask = Ask { max_tokens: paid.max_tokens(), ..ask };
    let mut call = client.call(ask);
    let mut words = String::new();
    while let Some(step) = call.next().await {
        match step {
            Step::Started(started) => paid.started(&started.model, &started.usage),
            Step::Block(block) if matches!(block.kind, BlockKind::Text { .. }) => {
                words += &serde_json::from_slice::<Text>(&block.json).ok()?.text;
            }
            Step::Retry(notice) => {
                words.clear();
                if !paid.failed_once(&notice).1 {
                    drop(call);
                    paid.unsent();
                    return None;
                }
            }
            Step::Finished(reply) => {
                paid.answered_aside(&reply);
                return Some(words);
            }
            Step::Failed(error) => {
                paid.failed(&error);
                return None;
            }
            _ => {}
        }
    }
    None
}
