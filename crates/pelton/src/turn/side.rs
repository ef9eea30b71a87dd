//! Questions beside the conversation: asked in the background, within the budget, and given up rather than waited for.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use pelton_model::{Ask, Client, Prefix, Source, Step, Thinking};
use serde_json::json;

use super::budget::prompt_tokens_max;
use super::spending::{Forecast, InFlight, Spending, Wish};
use crate::limits::SEARCH_TOKENS_MAX;

/// About how many bytes are one token, where nobody has counted.
const BYTES_PER_TOKEN: u64 = 4;

/// A question with no history.
pub(crate) struct SideQuestion {
    /// Who is asked.
    pub model: String,
    /// What it is told about itself.
    pub system: &'static str,
    /// What it is asked.
    pub prompt: String,
    /// The most tokens it may answer.
    pub max_tokens: u32,
    /// The JSON array of tools that the server runs for it; empty for none.
    pub server_tools: String,
    /// Searches of the web it may lead to.
    pub searches_max: u32,
    /// Who waits for the answer.
    pub source: Source,
}

impl SideQuestion {
    /// One that nobody waits for, so that it waits for nobody; it needs no tools.
    pub fn in_background(model: String, system: &'static str, prompt: String, max_tokens: u32) -> Self {
        let (server_tools, searches_max, source) = (String::new(), 0, Source::Background);
        Self { model, system, prompt, max_tokens, server_tools, searches_max, source }
    }

    /// Sets money aside for it, if there is enough now.
    pub fn pay(&self, spending: &Arc<Spending>) -> (Ask, Wish) {
        let system = json!([{"type": "text", "text": self.system}]).to_string();
        let prompt = json!({"role": "user", "content": [{"type": "text", "text": self.prompt}]}).to_string();
        let tools = Bytes::copy_from_slice(self.server_tools.as_bytes());
        let bytes = (system.len() + tools.len() + prompt.len()) as u64;
        let prefix = Prefix { system: Bytes::from(system), tools };
        let messages = vec![Bytes::from(prompt)];
        let mut ask = Ask::new(self.model.as_str(), self.max_tokens, Arc::new(prefix), messages);
        ask.thinking = Thinking::Disabled;
        ask.source = self.source;
        // What is found becomes part of the prompt.
        let found_tokens_max = u64::from(self.searches_max) * SEARCH_TOKENS_MAX;
        let forecast = Forecast {
            ask: &ask,
            prompt_tokens: bytes / BYTES_PER_TOKEN,
            prompt_tokens_max: prompt_tokens_max(bytes) + found_tokens_max,
            searches_max: self.searches_max,
            last: None,
        };
        let wish = spending.set_aside(forecast);
        (ask, wish)
    }
}

/// Asks, and gives the blocks of the answer, or why there is none.
pub(crate) async fn ask(client: Client, ask: Ask, mut paid: Box<InFlight>) -> Result<Vec<Bytes>, String> {
    let ask = Ask { max_tokens: paid.max_tokens(), ..ask };
    let mut call = client.call(ask);
    let mut blocks = Vec::new();
    while let Some(step) = call.next().await {
        match step {
            Step::Started(started) => paid.started(&started.model, &started.usage),
            Step::Block(block) => blocks.push(block.json),
            Step::Retry(notice) => {
                blocks.clear();
                if !paid.failed_once(&notice).1 {
                    drop(call);
                    paid.unsent();
                    return Err("there is not enough money to ask again".to_owned());
                }
            }
            Step::Finished(reply) => {
                paid.answered_aside(&reply);
                return Ok(blocks);
            }
            Step::Failed(error) => {
                let why = error.to_string();
                paid.failed(&error);
                return Err(why);
            }
            _ => {}
        }
    }
    Err("the answer broke off".to_owned())
}
