//! The money of a tree of agents behind one lock: the purse, the account, and the prices. Whoever asks a model goes
//! through [`Spending::set_aside`]; what comes back is one call's money, which is settled however the call ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pelton_model::catalogue::{self, Prices};
use pelton_model::{
    Ask, CacheLife, Delta, DeltaKind, ErrorKind, ModelError, Notice, Reply, Speed, TransportErrorKind,
};
use pelton_wire::usage::{CacheCreation, ServerToolUse, Usage};
use tokio::sync::Notify;

use super::budget::{Answer, Policy, Purse, Quote, Reserved, likely_usage};
use super::side::BYTES_PER_TOKEN;
use crate::account::Account;
use crate::event::ModelUsage;

/// About how many bytes of an event that brings more of a tool's input are not of that input.
const INPUT_ENVELOPE_BYTES: usize = 96;

/// The money of a tree of agents.
#[derive(Debug)]
pub(crate) struct Spending {
    money: Mutex<Money>,
    /// Told whenever a call in flight has ended.
    freed: Notify,
    prices: Vec<(String, Prices)>,
}

/// A handle to see what a session has cost so far, agents included, also while a submission runs.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, text};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([text("Four.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// use pelton::{Engine, Options, Prompt};
///
/// let mut engine = Engine::new(Options::new(dir.path(), endpoint))?;
/// let cost = engine.cost_watch();
/// assert_eq!(cost.usd(), 0.0);
/// engine.submit(Prompt::text("What is two and two?")?).for_each(async |_| {}).await;
/// assert!(cost.usd() > 0.0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct CostWatch(Arc<Spending>);

impl CostWatch {
    pub(crate) fn of(spending: &Arc<Spending>) -> Self {
        Self(Arc::clone(spending))
    }

    /// What everything cost, as far as prices are known: also what the record says of processes before this one.
    pub fn usd(&self) -> f64 {
        self.0.cost_usd()
    }

    /// The same, with what was consumed for it, by model.
    pub fn by_model(&self) -> BTreeMap<String, ModelUsage> {
        self.0.by_model()
    }

    /// What counts against a budget: what this process has spent.
    pub fn counted_usd(&self) -> f64 {
        self.0.money().purse.spent_usd()
    }
}

#[derive(Debug)]
struct Money {
    purse: Purse,
    account: Account,
}

/// What is known of a call before it is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Forecast<'a> {
    /// What is asked; its messages do not matter.
    pub ask: &'a Ask,
    /// About how many tokens the prompt has.
    pub prompt_tokens: u64,
    /// The most tokens it can have.
    pub prompt_tokens_max: u64,
    /// Searches of the web it may lead to, each at its own price.
    pub searches_max: u32,
    /// What the call before it consumed.
    pub last: Option<&'a Usage>,
}

/// What became of the wish to send a call.
pub(crate) enum Wish {
    /// It may be sent.
    Granted(Box<InFlight>),
    /// Calls in flight may leave enough for it.
    Later(String),
    /// Too little is left.
    Refused(String),
}

impl Spending {
    pub fn new(purse: Purse, prices: Vec<(String, Prices)>) -> Arc<Self> {
        let money = Money { purse, account: Account::default() };
        Arc::new(Self { money: Mutex::new(money), freed: Notify::new(), prices })
    }

    /// Whether there is a cap.
    pub fn is_capped(&self) -> bool {
        self.money().purse.cap_usd().is_some()
    }

    /// Whether the cap is reached.
    pub fn is_spent(&self) -> bool {
        self.money().purse.is_spent()
    }

    /// Whether a cap can be kept with this model.
    pub fn knows(&self, model: &str) -> bool {
        catalogue::cost(model, &Usage::default(), &self.prices).is_some()
    }

    /// What everything cost, as far as prices are known.
    pub fn cost_usd(&self) -> f64 {
        self.money().account.cost_usd()
    }

    /// What the session has consumed in other processes is part of its sums. The cap is about this one.
    pub fn go_on_from(&self, by_model: BTreeMap<String, ModelUsage>) {
        self.money().account.by_model = by_model;
    }

    /// Another conversation begins: its sums have nothing to do with what the one before has cost, nor has its cap, unless that is
    /// about both.
    pub fn begin_anew(&self) {
        let mut money = self.money();
        money.purse.begin_anew();
        money.account = Account::default();
    }

    /// Models without a price that were asked since this was asked last; each comes once.
    pub fn take_unpriced(&self) -> Vec<String> {
        self.money().account.take_unpriced()
    }

    /// What was consumed, by model.
    pub fn by_model(&self) -> BTreeMap<String, ModelUsage> {
        self.money().account.by_model.clone()
    }

    /// Sets money aside for a call, if there is enough now.
    pub fn set_aside(self: &Arc<Self>, forecast: Forecast<'_>) -> Wish {
        let mut money = self.money();
        let quote = self.quote(forecast, money.purse.mean_output_tokens());
        let told = state(&money.purse);
        let answer = money.purse.ask(&quote);
        drop(money);
        match answer {
            Answer::Granted(reserved) => Wish::Granted(Box::new(InFlight {
                spending: Arc::clone(self),
                wanted: quote.output_tokens_max,
                told,
                reserved: Some(reserved),
                model: forecast.ask.model.clone(),
                started: None,
                written_bytes: 0,
            })),
            Answer::Later => Wish::Later(format!("waits until calls in flight have ended: {told}")),
            Answer::Refused => Wish::Refused(format!("not enough money for another call: {told}")),
        }
    }

    /// Returns when a call in flight has ended. Take the future before you ask, so that no end is missed.
    pub fn freed(&self) -> impl Future<Output = ()> + '_ {
        self.freed.notified()
    }

    fn quote(&self, forecast: Forecast<'_>, mean_output_tokens: u64) -> Quote {
        let Forecast { ask, prompt_tokens, prompt_tokens_max, searches_max, last } = forecast;
        let fast = ask.speed == Speed::Fast;
        let price = |usage: Usage| {
            let usage = Usage { speed: fast.then(|| "fast".to_owned()), ..usage };
            // With a cap, a model without a price is never asked.
            catalogue::cost(&ask.model, &usage, &self.prices).unwrap_or_default()
        };
        // Nobody says beforehand where the model will run, and one place is dearer.
        let dearest = |usage: Usage| price(Usage { inference_geo: Some("us".to_owned()), ..usage });
        let server_tool_use =
            ServerToolUse { web_search_requests: searches_max.into(), ..ServerToolUse::default() };
        let searched = Usage { server_tool_use, ..Usage::default() };
        let plain = Usage { input_tokens: prompt_tokens_max, ..searched.clone() };
        // What is kept longer costs more to write.
        let ephemeral_1h_input_tokens = if ask.cache == CacheLife::OneHour { prompt_tokens_max } else { 0 };
        let cache_creation = CacheCreation { ephemeral_1h_input_tokens, ..CacheCreation::default() };
        let written = Usage { cache_creation_input_tokens: prompt_tokens_max, cache_creation, ..searched };
        let prompt_usd_max = dearest(plain.clone()).max(dearest(written));
        const MILLION: u64 = 1_000_000;
        let answered = dearest(Usage { output_tokens: MILLION, ..plain.clone() });
        Quote {
            likely_usd: price(Usage {
                server_tool_use,
                ..likely_usage(last, prompt_tokens, mean_output_tokens)
            }),
            prompt_usd_max,
            output_token_usd: (answered - dearest(plain)) / MILLION as f64,
            output_tokens_max: ask.max_tokens,
        }
    }

    fn money(&self) -> MutexGuard<'_, Money> {
        // Sums are changed by functions that cannot panic: a poisoned lock guards whole sums.
        self.money.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The money of one call. Dropped before it is settled, it counts what is known to have been consumed; where the cap is
/// strict, all that may have been.
#[derive(Debug)]
pub(crate) struct InFlight {
    spending: Arc<Spending>,
    /// Taken when it is settled.
    reserved: Option<Reserved>,
    /// The tokens the answer should be able to have.
    wanted: u32,
    /// How the purse stood when it was granted.
    told: String,
    /// The model that was asked.
    model: String,
    /// What the newest attempt has consumed, as far as the server said.
    started: Option<(String, Usage)>,
    /// What it has written, as far as it came here.
    written_bytes: u64,
}

impl InFlight {
    /// The most tokens the answer may have.
    pub fn max_tokens(&self) -> u32 {
        self.reserved.as_ref().map_or(self.wanted, |reserved| reserved.output_tokens_max)
    }

    /// Whether the answer must be shorter than it should be.
    pub fn is_lowered(&self) -> bool {
        self.max_tokens() < self.wanted
    }

    /// What was set aside, and how the purse stood, in words.
    pub fn in_words(&self) -> String {
        let usd = self.reserved.as_ref().map_or(0.0, Reserved::usd);
        let lowered = match self.is_lowered() {
            true => format!(" for an answer of at most {} tokens", self.max_tokens()),
            false => String::new(),
        };
        format!("set aside ${usd:.6}{lowered}: {}", self.told)
    }

    /// An attempt has begun to answer.
    pub fn started(&mut self, model: &str, usage: &Usage) {
        self.started = Some((model.to_owned(), usage.clone()));
        self.written_bytes = 0;
    }

    /// A piece of its answer came.
    pub fn wrote(&mut self, delta: &Delta) {
        let bytes = match &delta.kind {
            DeltaKind::Text(text) | DeltaKind::Thinking { text, .. } => text.len(),
            DeltaKind::InputJson => delta.raw.len().saturating_sub(INPUT_ENVELOPE_BYTES),
            _ => 0,
        };
        self.written_bytes += bytes as u64;
    }

    /// What an answer consumed that has no end: of what it wrote, the server has told the beginning at most.
    fn with_written(&self, usage: &Usage) -> Usage {
        let written = self.written_bytes / BYTES_PER_TOKEN;
        Usage { output_tokens: usage.output_tokens.max(written), ..usage.clone() }
    }

    /// An attempt has failed. Tells what it consumed, and whether another may be sent.
    pub fn failed_once(&mut self, notice: &Notice) -> (Option<Usage>, bool) {
        let free = self.started.is_none() && is_free(notice.status, &notice.kind);
        let (usage, cost) = self.count_started();
        let mut money = self.spending.money();
        let Some(reserved) = &self.reserved else { return (usage, true) };
        let cost = match money.purse.policy() {
            // It may have written all it was allowed to, though none of it arrived.
            Policy::Strict if !free => cost.max(reserved.usd()),
            _ => cost,
        };
        let may = money.purse.again(reserved, cost);
        (usage, may)
    }

    /// The call has brought an answer. Tells what it consumed; of one that was cut, the server has not said all.
    pub fn answered(mut self, reply: &Reply) -> Usage {
        let usage = self.settled_by(reply);
        self.spending.money().purse.answered(usage.output_tokens);
        usage
    }

    /// The same for a call beside the conversation: what is written there says nothing about the answers in it.
    pub fn answered_aside(mut self, reply: &Reply) {
        self.settled_by(reply);
    }

    fn settled_by(&mut self, reply: &Reply) -> Usage {
        self.started = None;
        let is_cut = reply.cut.is_some();
        let usage = if is_cut { self.with_written(&reply.usage) } else { reply.usage.clone() };
        let cost = self.count(&reply.model, &usage);
        self.settle(if is_cut { self.at_most(cost) } else { cost });
        usage
    }

    /// The call has failed for good. Tells what it consumed.
    pub fn failed(mut self, error: &ModelError) -> Option<Usage> {
        let free = self.started.is_none() && is_free(error.status, &error.kind);
        let (usage, cost) = self.count_started();
        self.settle(if free { cost } else { self.at_most(cost) });
        usage
    }

    /// The call was given up. Tells what it consumed, as far as the server said.
    pub fn given_up(mut self) -> Option<Usage> {
        let (usage, cost) = self.count_started();
        self.settle(self.at_most(cost));
        usage
    }

    /// The call was not sent.
    pub fn unsent(mut self) {
        self.settle(0.0);
    }

    /// What a call whose end nobody knows is taken to have cost.
    fn at_most(&self, known_usd: f64) -> f64 {
        match (self.spending.money().purse.policy(), &self.reserved) {
            (Policy::Strict, Some(reserved)) => known_usd.max(reserved.usd()),
            _ => known_usd,
        }
    }

    fn count_started(&mut self) -> (Option<Usage>, f64) {
        match self.started.take() {
            Some((model, usage)) => {
                let usage = self.with_written(&usage);
                let cost = self.count(&model, &usage);
                (Some(usage), cost)
            }
            None => (None, 0.0),
        }
    }

    fn count(&self, model: &str, usage: &Usage) -> f64 {
        let prices = &self.spending.prices;
        // A server may call the model by a name that nobody knows the price of.
        let cost =
            catalogue::cost(model, usage, prices).or_else(|| catalogue::cost(&self.model, usage, prices));
        self.spending.money().account.answered(model, usage, cost);
        cost.unwrap_or_default()
    }

    fn settle(&mut self, cost_usd: f64) {
        if let Some(reserved) = self.reserved.take() {
            self.spending.money().purse.settle(reserved, cost_usd);
            self.spending.freed.notify_waiters();
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.reserved.is_some() {
            let (_, cost) = self.count_started();
            self.settle(self.at_most(cost));
        }
    }
}

/// Whether an attempt that brought nothing cost nothing: the server refused it, or it never got there.
fn is_free(status: Option<u16>, kind: &ErrorKind) -> bool {
    use TransportErrorKind::{BadUrl, Dns, Proxy, Refused, Tls};
    status.is_some_and(|status| status >= 400)
        || matches!(kind, ErrorKind::Connection(Refused | Dns | Tls | Proxy | BadUrl))
}

fn state(purse: &Purse) -> String {
    let of_cap = purse.cap_usd().map(|cap| format!(" of ${cap}")).unwrap_or_default();
    let (spent, reserved) = (purse.spent_usd(), purse.reserved_usd());
    format!("${spent:.6}{of_cap} spent, ${reserved:.6} set aside for calls in flight")
}

#[cfg(test)]
mod tests {
    use pelton_model::Prefix;

    use super::*;

    #[test]
    fn a_price_holds_for_a_model_whatever_the_server_calls_it() {
        let rates = catalogue::caps("claude-opus-5-5").unwrap().prices;
        let spending = Spending::new(Purse::new(None, Policy::Likely), vec![("mine".to_owned(), rates)]);
        let consumed = |asked: &str, answered: &str| {
            let ask = Ask::new(asked, 1000, Arc::new(Prefix::default()), Vec::new());
            let forecast =
                Forecast { ask: &ask, prompt_tokens: 0, prompt_tokens_max: 0, searches_max: 0, last: None };
            let Wish::Granted(mut call) = spending.set_aside(forecast) else { panic!("there is no cap") };
            call.started(answered, &Usage { input_tokens: 1_000_000, ..Usage::default() });
            call.given_up();
            spending.by_model()[answered].cost_usd
        };
        assert_eq!(consumed("mine", "mine-by-another-name"), Some(4.0));
        assert!(spending.take_unpriced().is_empty());
        assert_eq!(consumed("theirs", "theirs"), None);
        assert_eq!(consumed("theirs", "theirs"), None);
        assert_eq!(spending.take_unpriced(), ["theirs"], "once");
        assert!(spending.take_unpriced().is_empty());
    }
}
