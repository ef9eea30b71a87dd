//! Questions beside the conversation: asked in the background, within the budget, and given up rather than waited for.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use pelton_model::{
    Ask, Block, Call, Client, Earlier, ErrorKind, ModelError, Notice, Prefix, Reply, Source, Step, Thinking,
};
use pelton_wire::stop::StopReason;
use pelton_wire::usage::Usage;
use serde_json::json;
use tokio::sync::mpsc;

use super::budget::prompt_tokens_max;
use super::spending::{Forecast, InFlight, Spending, Wish};
use crate::limits::SEARCH_TOKENS_MAX;

/// About how many bytes are one token, where nobody has counted.
pub(super) const BYTES_PER_TOKEN: u64 = 4;

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

/// A question beside the conversation while it is asked, with its money. An answer that breaks off is one failed attempt more:
/// unlike one in the conversation, nothing of it is kept, so all of it is asked for again.
pub(crate) struct Errand {
    client: Client,
    ask: Ask,
    /// Until it is settled.
    paid: Option<Box<InFlight>>,
    call: Call,
    /// The blocks of the attempt that is being made.
    blocks: Vec<Block>,
}

/// What comes of a question.
pub(crate) enum Came {
    /// A request is about to be sent.
    Requesting,
    /// An attempt failed, another follows.
    Retry(Box<Notice>),
    /// The wait for it goes on.
    Waiting { left: Duration },
    /// Nothing has come for a while.
    Stalled { silent_for: Duration },
    /// The end of it.
    End(Result<Answer, Unanswered>),
}

/// An answer.
pub(crate) struct Answer {
    pub blocks: Vec<Block>,
    pub stop_reason: StopReason,
    pub usage: Usage,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// It may not be asked again for it.
    NoMoney,
    /// The model declined.
    Declined,
    /// The server gave none.
    Failed(Box<ModelError>),
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMoney => f.write_str("there is not enough money to ask again"),
            Self::Declined => f.write_str("the model declined to answer"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl Answer {
    /// Whether the model said all it had to say.
    pub fn is_whole(&self) -> bool {
        match self.stop_reason {
            StopReason::EndTurn
            | StopReason::StopSequence
            | StopReason::Compaction
            | StopReason::Other(_) => true,
            // What it would have said behind a call of its own or of the server's is missing.
            _ => false,
        }
    }
}

impl Errand {
    /// Begins to ask. Nobody else stands ready to be asked instead.
    pub fn new(client: Client, mut ask: Ask, paid: Box<InFlight>) -> Self {
        ask.max_tokens = paid.max_tokens();
        (ask.fallbacks, ask.earlier, ask.after) = (0, Earlier::default(), None);
        let call = client.call(ask.clone());
        Self { client, ask, paid: Some(paid), call, blocks: Vec::new() }
    }

    /// What comes next. After the end nothing does.
    pub async fn next(&mut self) -> Came {
        loop {
            let Some(step) = self.call.next().await else {
                let error = ModelError::new(ErrorKind::Other, "the model's answer ended without an end");
                return Came::End(Err(Unanswered::Failed(Box::new(error))));
            };
            match step {
                Step::Requesting { .. } => return Came::Requesting,
                Step::Waiting { left } => return Came::Waiting { left },
                Step::Stalled { silent_for } => return Came::Stalled { silent_for },
                Step::Block(block) => self.blocks.push(block),
                Step::Finished(reply) => {
                    if let Some(end) = self.finished(*reply) {
                        return Came::End(end);
                    }
                }
                Step::Failed(error) => {
                    if let Some(paid) = self.paid.take() {
                        paid.failed(&error);
                    }
                    return Came::End(Err(Unanswered::Failed(Box::new(error))));
                }
                Step::Retry(notice) => {
                    self.blocks.clear();
                    if !self.may_ask_again(&notice) {
                        return Came::End(Err(Unanswered::NoMoney));
                    }
                    return Came::Retry(Box::new(notice));
                }
                Step::Started(started) => {
                    if let Some(paid) = &mut self.paid {
                        paid.started(&started.model, &started.usage);
                    }
                }
                Step::Delta(delta) => {
                    if let Some(paid) = &mut self.paid {
                        paid.wrote(&delta);
                    }
                }
                // Nobody is shown the answer while it is written.
                _ => {}
            }
        }
    }

    /// What the end of an answer means; nothing if it broke off and is asked for again. What it consumed is paid with the
    /// notice that then comes first.
    fn finished(&mut self, reply: Reply) -> Option<Result<Answer, Unanswered>> {
        let blocks = std::mem::take(&mut self.blocks);
        if let Some(again) = &reply.again {
            let mut ask = self.ask.clone();
            ask.after = Some(again.clone());
            self.call = self.client.call(ask);
            return None;
        }
        if let Some(paid) = self.paid.take() {
            paid.answered_aside(&reply);
        }
        Some(match (reply.cut, reply.stop_reason) {
            (Some(error), _) => Err(Unanswered::Failed(error)),
            (None, StopReason::Refusal) => Err(Unanswered::Declined),
            (None, stop_reason) => Ok(Answer { blocks, stop_reason, usage: reply.usage }),
        })
    }

    fn may_ask_again(&mut self, notice: &Notice) -> bool {
        let Some(paid) = &mut self.paid else { return true };
        let (_, may) = paid.failed_once(notice);
        if !may && let Some(paid) = self.paid.take() {
            paid.unsent();
        }
        may
    }
}

/// How a question beside the conversation fares, for the loop to tell: whoever asks it cannot.
pub(crate) struct SideNews {
    /// What it is for.
    pub purpose: &'static str,
    /// The run waits for the answer.
    pub is_waited_for: bool,
    /// How it fares; never the end.
    pub came: Came,
}

/// Where that is told to.
pub(crate) type SideSender = mpsc::Sender<SideNews>;

/// Asks, and gives the answer, or why there is none.
pub(crate) async fn ask(
    client: Client,
    ask: Ask,
    paid: Box<InFlight>,
    purpose: &'static str,
    news: SideSender,
) -> Result<Answer, String> {
    let is_waited_for = ask.source == Source::Foreground;
    let mut errand = Errand::new(client, ask, paid);
    loop {
        match errand.next().await {
            Came::End(end) => return end.map_err(|why| why.to_string()),
            Came::Requesting => {}
            // Behind the end of the submission nobody is told.
            came => _ = news.try_send(SideNews { purpose, is_waited_for, came }),
        }
    }
}
