//! What the known models can do, and what they cost.
//!
//! Servers know better: where one tells its own abilities, those replace a row of the table. A model that is not
//! in the table is simply not known: nothing is made up for it, least of all a price.

use pelton_wire::usage::Usage;

use crate::ask::Effort;

/// What one model can do.
///
/// ```
/// use pelton_model::{Effort, catalogue};
///
/// let caps = catalogue::caps("claude-opus-5-5").unwrap();
/// assert_eq!(caps.window, 1_000_000);
/// assert!(caps.output_default <= caps.output_max);
/// assert_eq!(caps.effort(Effort::XHigh), Some(Effort::XHigh)); // or the nearest below it
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Caps {
    /// The id, without date and suffix.
    pub id: &'static str,
    /// The context window, in tokens.
    pub window: u64,
    /// The most tokens it writes in one answer.
    pub output_max: u32,
    /// The tokens asked for unless somebody says otherwise.
    pub output_default: u32,
    /// The kinds of thinking it accepts.
    pub thinking: ThinkingKinds,
    /// The levels of effort it accepts, lowest first.
    pub efforts: &'static [Effort],
    /// The level asked for unless somebody says otherwise.
    pub effort_default: Option<Effort>,
    /// Whether it can be asked to answer fast.
    pub fast: FastKind,
    /// What it costs.
    pub prices: Prices,
}

impl Caps {
    /// The highest level of effort the model accepts that is not above the one asked for.
    pub fn effort(&self, asked: Effort) -> Option<Effort> {
        self.efforts.iter().copied().rev().find(|level| *level <= asked).or(self.efforts.first().copied())
    }

    /// How many images and pages of documents one request may hold.
    pub fn media_max(&self) -> usize {
        if self.window > SMALL_WINDOW_TOKENS { MEDIA_MAX } else { MEDIA_SMALL_WINDOW_MAX }
    }
}

/// The kinds of thinking a model accepts.
///
/// ```
/// use pelton_model::catalogue::{self, ThinkingKinds};
///
/// let can_be_off = |model: &str| catalogue::caps(model).is_some_and(|caps| caps.thinking != ThinkingKinds::AdaptiveAlways);
/// assert!(can_be_off("claude-sonnet-4-5"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThinkingKinds {
    /// Adaptive, and it cannot be switched off.
    AdaptiveAlways,
    /// Adaptive, or none.
    Adaptive,
    /// Adaptive, or none as long as the effort is not above high.
    AdaptiveOffUpToHigh,
    /// Adaptive, with a budget, or none.
    AdaptiveOrBudget,
    /// With a budget, or none.
    Budget,
}

/// Whether a model can be asked to answer fast.
///
/// ```
/// use pelton_model::catalogue::{self, FastKind};
///
/// for caps in catalogue::models() {
///     assert_eq!(caps.fast != FastKind::Never, catalogue::can_be_fast(caps.id), "{}", caps.id);
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FastKind {
    /// It has one speed.
    Never,
    /// As a beta feature.
    Beta,
    /// As any other feature.
    General,
}

/// Prices in US dollars per million tokens.
///
/// ```
/// use pelton_model::catalogue::{self, Prices, Rates};
/// use pelton_wire::usage::Usage;
///
/// let rates = Rates { input: 1.0, output: 2.0, cache_write_5m: 0.0, cache_write_1h: 0.0, cache_read: 0.0 };
/// let ours = [("our-model".to_owned(), Prices { rates, long_prompt: None })];
/// let usage = Usage { input_tokens: 1_000_000, output_tokens: 1_000_000, ..Usage::default() };
/// assert_eq!(catalogue::cost("our-model", &usage, &ours), Some(3.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// The usual ones.
    pub rates: Rates,
    /// Others that hold for the whole call when its prompt is longer than so many tokens.
    pub long_prompt: Option<(u64, Rates)>,
}

/// Prices of each kind of token, in US dollars per million.
///
/// ```
/// use pelton_model::catalogue;
///
/// let rates = catalogue::caps("claude-opus-5-5").unwrap().prices.rates;
/// assert!(rates.cache_read < rates.input && rates.input < rates.output);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Input that was not cached.
    pub input: f64,
    /// Output, thinking included.
    pub output: f64,
    /// Input written to the cache for five minutes.
    pub cache_write_5m: f64,
    /// Input written to the cache for an hour.
    pub cache_write_1h: f64,
    /// Input read from the cache.
    pub cache_read: f64,
}

/// The window up to which a request may hold fewer images, in tokens.
const SMALL_WINDOW_TOKENS: u64 = 200_000;
/// Images and pages of documents a request may hold, at that window and above it.
const MEDIA_SMALL_WINDOW_MAX: usize = 100;
const MEDIA_MAX: usize = 600;
/// US dollars for one web search by the server.
const WEB_SEARCH_USD: f64 = 0.01;
/// What every price is multiplied by in fast mode.
const FAST_FACTOR: f64 = 2.0;
/// What every price is multiplied by when the model must run in the United States.
const US_ONLY_FACTOR: f64 = 1.1;
/// The window behind the suffix `[1m]`, in tokens.
const LONG_WINDOW_TOKENS: u64 = 1_000_000;
const LONG_WINDOW_SUFFIX: &str = "[1m]";
/// What some models want to be asked with before they have that window.
pub(crate) const LONG_WINDOW_BETA: &str = "context-1m-2025-08-07";
/// Those models.
const LONG_WINDOW_AS_BETA: [&str; 3] = ["claude-sonnet-4-5", "claude-sonnet-4-6", "claude-opus-4-6"];

/// What is known of a model, by id or alias. A date, `[1m]`, and a cloud's prefix or version are looked through.
///
/// ```
/// use pelton_model::catalogue;
///
/// assert_eq!(catalogue::caps("claude-sonnet-4-5-20250929").unwrap().window, 200_000);
/// assert_eq!(catalogue::caps("claude-sonnet-4-6[1m]").unwrap().window, 1_000_000);
/// assert!(catalogue::caps("llama-7").is_none());
/// ```
pub fn caps(model: &str) -> Option<Caps> {
    let id = api_id(model);
    let named = |id: &str| MODELS.iter().find(|caps| caps.id == id);
    // Most names are as they stand in the table, and this is asked several times a turn.
    let mut caps = *named(id).or_else(|| named(without_place(id)))?;
    if id.len() < model.len() {
        caps.window = caps.window.max(LONG_WINDOW_TOKENS);
    }
    Some(caps)
}

/// The context window of a model that is asked with these betas, in tokens: one of them makes that of some models longer.
///
/// ```
/// use pelton_model::catalogue;
///
/// let long = ["context-1m-2025-08-07".to_owned()];
/// assert_eq!(catalogue::window("claude-sonnet-4-5", &[]), Some(200_000));
/// assert_eq!(catalogue::window("claude-sonnet-4-5", &long), Some(1_000_000));
/// assert_eq!(catalogue::window("claude-haiku-4-5", &long), Some(200_000));
/// ```
pub fn window(model: &str, betas: &[String]) -> Option<u64> {
    let caps = caps(model)?;
    let is_longer =
        betas.iter().any(|beta| beta == LONG_WINDOW_BETA) && LONG_WINDOW_AS_BETA.contains(&caps.id);
    Some(if is_longer { caps.window.max(LONG_WINDOW_TOKENS) } else { caps.window })
}

/// Whether a model, as it is called here, has the window it is asked for only with a beta.
pub(crate) fn wants_long_window_beta(model: &str) -> bool {
    api_id(model).len() < model.len()
        && caps(model).is_some_and(|caps| LONG_WINDOW_AS_BETA.contains(&caps.id))
}

/// The id an alias stands for; anything else is returned as it is. A `[1m]` suffix stays.
pub fn resolve(model: &str) -> String {
    let name = api_id(model);
    let suffix = if name.len() < model.len() { LONG_WINDOW_SUFFIX } else { "" };
    let id = ALIASES.iter().find(|(alias, _)| name.eq_ignore_ascii_case(alias)).map_or(name, |(_, id)| id);
    format!("{id}{suffix}")
}

/// The two models that a name stands for which means one for planning and one for work, in this order.
///
/// ```
/// let (plans, works) = pelton_model::catalogue::pair("opusplan").ok_or("there is such a name")?;
/// assert!(plans.contains("opus") && works.contains("sonnet"));
/// # Ok::<(), &str>(())
/// ```
pub fn pair(name: &str) -> Option<(String, String)> {
    let name_alone = api_id(name);
    let suffix = if name_alone.len() < name.len() { LONG_WINDOW_SUFFIX } else { "" };
    let is_pair = name_alone.eq_ignore_ascii_case("opusplan");
    is_pair.then(|| (resolve(&format!("opus{suffix}")), resolve("sonnet")))
}

/// The id as a server knows it: without our `[1m]`.
pub fn api_id(model: &str) -> &str {
    let cut = model.len().saturating_sub(LONG_WINDOW_SUFFIX.len());
    match model.get(cut..) {
        Some(suffix) if suffix.eq_ignore_ascii_case(LONG_WINDOW_SUFFIX) => &model[..cut],
        _ => model,
    }
}

/// Whether a model can be asked to answer fast. One that is not known is believed to.
pub fn can_be_fast(model: &str) -> bool {
    caps(&resolve(model)).is_none_or(|caps| caps.fast != FastKind::Never)
}

/// Whether a model looks at images more closely than those before it did, for more tokens: so does every one that takes no
/// budget for its thinking. One that is not known is believed to.
///
/// ```
/// use pelton_model::catalogue;
///
/// assert!(catalogue::looks_closely("claude-sonnet-5-5") && !catalogue::looks_closely("claude-haiku-4-5"));
/// ```
pub fn looks_closely(model: &str) -> bool {
    counts_more(model).unwrap_or(true)
}

/// Whether a model makes more tokens of the same words, about a third, than those before it did; `None` if it is not known. They
/// are the same that look closely.
///
/// ```
/// use pelton_model::catalogue;
///
/// assert_eq!(catalogue::counts_more("claude-opus-4-7"), Some(true));
/// assert_eq!((catalogue::counts_more("claude-haiku-4-5"), catalogue::counts_more("llama-7")), (Some(false), None));
/// ```
pub fn counts_more(model: &str) -> Option<bool> {
    let takes_budget =
        |caps: Caps| matches!(caps.thinking, ThinkingKinds::Budget | ThinkingKinds::AdaptiveOrBudget);
    caps(&resolve(model)).map(|caps| !takes_budget(caps))
}

/// Every model of the table, newest first within its line.
pub fn models() -> &'static [Caps] {
    MODELS
}

/// What a call cost in US dollars; `None` if nobody knows the price of the model. `overrides` come first and are
/// matched by the exact model id.
///
/// ```
/// use pelton_model::catalogue;
/// use pelton_wire::usage::Usage;
///
/// let usage = Usage { input_tokens: 20, output_tokens: 10, ..Usage::default() };
/// let cost = catalogue::cost("claude-sonnet-4-5", &usage, &[]).unwrap();
/// assert!((cost - 0.00021).abs() < 1e-12);
/// assert_eq!(catalogue::cost("somebody-elses", &usage, &[]), None);
/// ```
pub fn cost(model: &str, usage: &Usage, overrides: &[(String, Prices)]) -> Option<f64> {
    let prices = match overrides.iter().find(|(id, _)| id == model) {
        Some((_, prices)) => *prices,
        None => caps(&resolve(model))?.prices,
    };
    let (write_5m, write_1h) = cache_writes(usage);
    let written = write_5m.saturating_add(write_1h);
    let prompt = usage.input_tokens.saturating_add(written).saturating_add(usage.cache_read_input_tokens);
    let rates = match prices.long_prompt {
        Some((threshold, rates)) if prompt > threshold => rates,
        _ => prices.rates,
    };
    let per_million = usage.input_tokens as f64 * rates.input
        + usage.output_tokens as f64 * rates.output
        + write_5m as f64 * rates.cache_write_5m
        + write_1h as f64 * rates.cache_write_1h
        + usage.cache_read_input_tokens as f64 * rates.cache_read;
    let speed = if usage.speed.as_deref() == Some("fast") { FAST_FACTOR } else { 1.0 };
    let place = if usage.inference_geo.as_deref() == Some("us") { US_ONLY_FACTOR } else { 1.0 };
    let searches = usage.server_tool_use.web_search_requests as f64 * WEB_SEARCH_USD;
    Some(per_million / 1e6 * speed * place + searches)
}

/// Tokens written to the cache for five minutes and for an hour. What a server does not split counts as five
/// minutes.
fn cache_writes(usage: &Usage) -> (u64, u64) {
    let split = &usage.cache_creation;
    match (split.ephemeral_5m_input_tokens, split.ephemeral_1h_input_tokens) {
        (0, 0) => (usage.cache_creation_input_tokens, 0),
        both => both,
    }
}

/// The id without what a cloud or a release puts around it: `us.anthropic.claude-x-20250101-v1:0` is `claude-x`.
fn without_place(id: &str) -> &str {
    let id = id.rsplit_once("anthropic.").or_else(|| id.rsplit_once("anthropic/")).map_or(id, |(_, id)| id);
    let id = match id.rsplit_once("-v") {
        Some((id, version)) if version.starts_with(|c: char| c.is_ascii_digit()) => id,
        _ => id,
    };
    match id.rsplit_once(['-', '@']) {
        Some((id, date)) if date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()) => id,
        _ => id,
    }
}

const ALIASES: &[(&str, &str)] = &[
    ("fable", "claude-fable-5-2"),
    ("haiku", "claude-haiku-5-5"),
    ("opus", "claude-opus-5-5"),
    ("sonnet", "claude-sonnet-5-5"),
];

const ALL: &[Effort] = &[Effort::Low, Effort::Medium, Effort::High, Effort::XHigh, Effort::Max];
const NO_XHIGH: &[Effort] = &[Effort::Low, Effort::Medium, Effort::High, Effort::Max];
const UP_TO_HIGH: &[Effort] = &[Effort::Low, Effort::Medium, Effort::High];

const M1: u64 = 1_000_000;
const K200: u64 = 200_000;

const FABLE_5_2: Prices = prices(8.0, 40.0, 10.0, 16.0, 0.20);
const FABLE_5_1: Prices = prices(10.0, 50.0, 12.5, 20.0, 0.25);
const FABLE_5: Prices = prices(10.0, 50.0, 12.5, 20.0, 1.0);
const OPUS_5_5: Prices = prices(4.0, 20.0, 5.0, 8.0, 0.20);
const OPUS: Prices = prices(5.0, 25.0, 6.25, 10.0, 0.50);
const SONNET_5_5: Prices = prices(2.0, 10.0, 2.5, 4.0, 0.10);
const SONNET_5: Prices = prices(2.0, 10.0, 2.5, 4.0, 0.20);
const SONNET_4: Prices = prices(3.0, 15.0, 3.75, 6.0, 0.30);
const HAIKU_5_5: Prices = Prices {
    long_prompt: Some((100_000, prices(0.50, 2.50, 0.625, 1.0, 0.05).rates)),
    ..prices(0.10, 0.50, 0.125, 0.20, 0.01)
};
const HAIKU_4_5: Prices = prices(1.0, 5.0, 1.25, 2.0, 0.10);

use Effort::{High, Medium, XHigh};
use FastKind::{Beta, General, Never};
use ThinkingKinds::{Adaptive, AdaptiveAlways, AdaptiveOffUpToHigh, AdaptiveOrBudget, Budget};

#[rustfmt::skip]
const MODELS: &[Caps] = &[
    //   id                   window out     default  thinking          efforts     default       fast     prices
    row("claude-fable-5-2",   M1,    128_000, 128_000, AdaptiveAlways,   ALL,        Some(Medium), Never,   FABLE_5_2),
    row("claude-mythos-5-2",  M1,    128_000, 128_000, AdaptiveAlways,   ALL,        Some(Medium), Never,   FABLE_5_2),
    row("claude-fable-5-1",   M1,    128_000,  64_000, AdaptiveAlways,   ALL,        Some(High),   Never,   FABLE_5_1),
    row("claude-mythos-5-1",  M1,    128_000,  64_000, AdaptiveAlways,   ALL,        Some(High),   Never,   FABLE_5_1),
    row("claude-fable-5",     M1,    128_000, 128_000, AdaptiveAlways,   ALL,        Some(High),   Never,   FABLE_5),
    row("claude-mythos-5",    M1,    128_000, 128_000, AdaptiveAlways,   ALL,        Some(High),   Never,   FABLE_5),
    row("claude-opus-5-5",    M1,    128_000, 128_000, AdaptiveAlways,   ALL,        Some(Medium), General, OPUS_5_5),
    row("claude-opus-5",      M1,    128_000,  64_000, AdaptiveOffUpToHigh, ALL,             Some(High),   Beta,    OPUS),
    row("claude-opus-4-8",    M1,    128_000,  64_000, Adaptive,         ALL,        Some(High),   Beta,    OPUS),
    row("claude-opus-4-7",    M1,    128_000,  64_000, Adaptive,         ALL,        Some(XHigh),  Never,   OPUS),
    row("claude-opus-4-6",    K200,  128_000,  64_000, AdaptiveOrBudget, NO_XHIGH,   Some(High),   Never,   OPUS),
    row("claude-opus-4-5",    K200,   64_000,  32_000, Budget,           UP_TO_HIGH, Some(High),   Never,   OPUS),
    row("claude-sonnet-5-5",  M1,    128_000, 128_000, AdaptiveAlways,   ALL,        Some(Medium), Never,   SONNET_5_5),
    row("claude-sonnet-5",    M1,    128_000,  64_000, Adaptive,         ALL,        Some(High),   Never,   SONNET_5),
    row("claude-sonnet-4-6",  K200,  128_000,  32_000, AdaptiveOrBudget, NO_XHIGH,   Some(High),   Never,   SONNET_4),
    row("claude-sonnet-4-5",  K200,   64_000,  32_000, Budget,           &[],        None,         Never,   SONNET_4),
    row("claude-haiku-5-5",   M1,    128_000, 128_000, Adaptive,         ALL,        Some(Medium), Never,   HAIKU_5_5),
    row("claude-haiku-4-5",   K200,   64_000,  32_000, Budget,           &[],        None,         Never,   HAIKU_4_5),
];

#[allow(clippy::too_many_arguments, reason = "one row of the table above")]
const fn row(
    id: &'static str,
    window: u64,
    output_max: u32,
    output_default: u32,
    thinking: ThinkingKinds,
    efforts: &'static [Effort],
    effort_default: Option<Effort>,
    fast: FastKind,
    prices: Prices,
) -> Caps {
    Caps { id, window, output_max, output_default, thinking, efforts, effort_default, fast, prices }
}

const fn prices(
    input: f64,
    output: f64,
    cache_write_5m: f64,
    cache_write_1h: f64,
    cache_read: f64,
) -> Prices {
    Prices { rates: Rates { input, output, cache_write_5m, cache_write_1h, cache_read }, long_prompt: None }
}

#[cfg(test)]
mod tests;
