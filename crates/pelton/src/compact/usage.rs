//! Where the tokens are, what each level would free, and what the next turn costs. One structure, for people and programs.

use serde::Serialize;

use super::{CompactOptions, Level, Room, auto, collapse, local, micro, rounds, weight};
use crate::event::CacheReport;
use crate::history::PartFacts;

/// What fills the context, and what could be done about it.
///
/// ```
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let endpoint = Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any")));
/// use pelton::{Engine, Options};
///
/// let mut engine = Engine::new(Options::new(dir.path(), endpoint))?;
/// let usage = engine.context_usage();
/// assert_eq!(usage.used_tokens, usage.shares.iter().map(|share| share.tokens).sum::<u64>());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ContextUsage {
    /// The model that would be asked.
    pub model: String,
    /// The context window.
    pub window_tokens: u64,
    /// What is left of it beside the answer: shares are percent of this.
    pub usable_tokens: u64,
    /// What the next request would take: the figure that every level goes by.
    pub used_tokens: u64,
    /// The same in percent of what is usable.
    pub used_percent: u64,
    /// Whether it is made smaller before the API refuses.
    pub is_auto_compact_enabled: bool,
    /// From how many tokens on the conversation is summarised.
    pub auto_compact_threshold: u64,
    /// What takes how much; together this is all that is used.
    pub shares: Vec<Share>,
    /// How many rounds there are.
    pub rounds: usize,
    /// What each level would free now.
    pub levels: Vec<LevelPlan>,
    /// What the next turn would cost if the server has all of it in its cache; `None` if the price is not known.
    pub next_turn_cached_usd: Option<f64>,
    /// What it would cost if it has nothing.
    pub next_turn_uncached_usd: Option<f64>,
    /// What the server's cache had of the newest requests, the newest last.
    pub cache: Vec<CacheReport>,
}

/// A share of the context.
///
/// ```
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # let dir = tempfile::tempdir()?;
/// # let endpoint = Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any")));
/// use pelton::{Engine, Options};
///
/// let mut engine = Engine::new(Options::new(dir.path(), endpoint))?;
/// let usage = engine.context_usage();
/// let largest = usage.shares.iter().max_by_key(|share| share.tokens).ok_or("something is used")?;
/// assert_eq!(largest.kind, "tools"); // before anything was said
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Share {
    /// What it is: a server for tools, a path for memory.
    pub name: String,
    /// `system`, `tools`, `memory`, `messages` or `media`.
    pub kind: &'static str,
    /// About how many tokens.
    pub tokens: u64,
}

/// What a level would do now.
///
/// ```
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # let dir = tempfile::tempdir()?;
/// # let endpoint = Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any")));
/// use pelton::{Engine, Options};
///
/// let mut engine = Engine::new(Options::new(dir.path(), endpoint))?;
/// let usage = engine.context_usage();
/// assert!(!usage.levels.is_empty());
/// assert!(usage.levels.iter().all(|plan| plan.would_free_tokens == 0), "nothing was said that could go");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LevelPlan {
    /// The level's name.
    pub level: &'static str,
    /// From how many tokens on it does something.
    pub from_tokens: u64,
    /// About how much it would free.
    pub would_free_tokens: u64,
}

/// What people read.
impl std::fmt::Display for ContextUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { used_tokens, window_tokens, used_percent, usable_tokens, model, .. } = self;
        writeln!(
            f,
            "{model}: {used_tokens} of {window_tokens} tokens, {used_percent} % of the {usable_tokens} beside the answer"
        )?;
        for Share { name, tokens, .. } in &self.shares {
            let percent = tokens.saturating_mul(100) / (*used_tokens).max(1);
            writeln!(f, "  {tokens:>9}  {percent:>3} %  {name}")?;
        }
        writeln!(f, "What could be freed of {} rounds:", self.rounds)?;
        for LevelPlan { level, from_tokens, would_free_tokens } in &self.levels {
            writeln!(f, "  {would_free_tokens:>9}  {level} (from {from_tokens} tokens)")?;
        }
        self.tell_cache(f)?;
        match (self.next_turn_cached_usd, self.next_turn_uncached_usd) {
            (Some(cached), Some(uncached)) => {
                write!(f, "The prompt of the next turn: ${cached:.4} if it is cached, ${uncached:.4} if not")
            }
            _ => write!(f, "The price of {model} is not known"),
        }
    }
}

impl ContextUsage {
    /// All requests in a line, and each that missed something.
    fn tell_cache(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sum = |of: fn(&CacheReport) -> u64| self.cache.iter().map(of).sum::<u64>();
        let (read, written, missed) = (sum(|it| it.read), sum(|it| it.written), sum(|it| it.missed));
        let count = self.cache.len();
        if count == 0 {
            return Ok(());
        }
        writeln!(
            f,
            "The cache in the newest {count} requests: {read} tokens read, {written} written, {missed} missed"
        )?;
        for (nth, report) in self.cache.iter().enumerate() {
            if let Some(reason) = &report.reason {
                writeln!(f, "  {:>9}  missed {} requests ago: {reason}", report.missed, count - 1 - nth)?;
            }
        }
        Ok(())
    }

    /// What of it was not said in the conversation.
    pub(crate) fn fixed_tokens(&self) -> u64 {
        let said = |share: &&Share| matches!(share.kind, "system" | "tools");
        self.shares.iter().filter(said).map(|share| share.tokens).sum()
    }

    /// The same when so much is in use by now: what came since is messages.
    #[must_use]
    pub(crate) fn with_used(mut self, used: u64) -> Self {
        let before = self.used_tokens.max(1);
        for usd in [&mut self.next_turn_cached_usd, &mut self.next_turn_uncached_usd] {
            *usd = usd.map(|usd| usd * used as f64 / before as f64);
        }
        self.used_tokens = used;
        self.used_percent = used.saturating_mul(100) / self.usable_tokens.max(1);
        // What went since may be more than messages: then the others give way, the last of them first.
        let all: u64 = self.shares.iter().map(|share| share.tokens).sum();
        let mut gone = all.saturating_sub(used);
        for share in self.shares.iter_mut().rev() {
            let less = gone.min(share.tokens);
            (share.tokens, gone) = (share.tokens - less, gone - less);
        }
        if let Some(messages) = self.shares.last_mut() {
            messages.tokens += used.saturating_sub(all);
        }
        self
    }
}

/// What the figures are made of.
pub(crate) struct Facts<'a> {
    pub model: &'a str,
    pub room: Room,
    pub options: &'a CompactOptions,
    pub used: u64,
    /// System prompt and tools together, as the model counts.
    pub overhead: u64,
    /// Their bytes: the system prompt, and the tools of each server, built-in ones first.
    pub system_bytes: usize,
    pub tools_bytes: &'a [(String, usize)],
    pub outline: &'a [PartFacts],
    /// Tokens of images and documents, and of each memory file, among those of the messages.
    pub media: u64,
    pub memory: &'a [(String, u64)],
    pub cache: Vec<CacheReport>,
    /// The price of a token read from the cache, and of one that is written to it.
    pub usd_per_token: Option<(f64, f64)>,
}

/// Puts the figures together.
pub(crate) fn usage(facts: &Facts<'_>) -> ContextUsage {
    let Facts { room, options, used, outline, .. } = facts;
    let price =
        |per_token: fn((f64, f64)) -> f64| facts.usd_per_token.map(|prices| per_token(prices) * *used as f64);
    ContextUsage {
        model: facts.model.to_owned(),
        window_tokens: room.window_tokens,
        usable_tokens: room.usable_tokens(),
        used_tokens: *used,
        used_percent: room.used_percent(*used),
        is_auto_compact_enabled: options.enabled && options.auto,
        auto_compact_threshold: room.percent(options.auto_percent),
        shares: shares(facts),
        rounds: rounds(outline).len(),
        levels: levels(facts),
        next_turn_cached_usd: price(|(cached, _)| cached),
        next_turn_uncached_usd: price(|(_, uncached)| uncached),
        cache: facts.cache.clone(),
    }
}

fn shares(facts: &Facts<'_>) -> Vec<Share> {
    let tools: usize = facts.tools_bytes.iter().map(|(_, bytes)| bytes).sum();
    let all = (facts.system_bytes + tools).max(1) as u64;
    let part = |bytes: usize| facts.overhead * bytes as u64 / all;
    let share = |name: &str, kind: &'static str, tokens| Share { name: name.to_owned(), kind, tokens };
    let mut shares = Vec::new();
    for (server, bytes) in facts.tools_bytes {
        shares.push(share(server, "tools", part(*bytes)));
    }
    // What rounding leaves is part of the largest text of ours.
    let of_tools: u64 = shares.iter().map(|share| share.tokens).sum();
    shares.insert(0, share("System prompt", "system", facts.overhead.saturating_sub(of_tools)));
    let messages = facts.used.saturating_sub(facts.overhead);
    let media = facts.media.min(messages);
    let mut left = messages - media;
    for (file, tokens) in facts.memory {
        let tokens = (*tokens).min(left);
        left -= tokens;
        shares.push(share(file, "memory", tokens));
    }
    shares.push(share("Images and documents", "media", media));
    shares.push(share("Messages", "messages", left));
    shares
}

fn levels(facts: &Facts<'_>) -> Vec<LevelPlan> {
    let Facts { room, options, outline, used, .. } = facts;
    let plan = |level: Level, percent: u8, would_free_tokens: u64| LevelPlan {
        level: level.name(),
        from_tokens: room.percent(percent),
        would_free_tokens,
    };
    let cleared: u64 = micro::clearable(outline).map(|(_, tokens)| tokens).sum();
    let folded = collapse::stretch(outline, *room, None).map_or(0, |stretch| stretch.tokens);
    let cut = auto::cut(outline, *room, auto::Keep::Some);
    let summed = cut.map_or(0, |cut| weight(&outline[..outline.len() - cut.kept]));
    let mut levels = vec![
        plan(Level::Microcompact, options.micro_percent, cleared),
        plan(Level::Collapse, options.collapse_percent, folded),
        plan(Level::Autocompact, options.auto_percent, summed),
    ];
    levels.push(LevelPlan {
        level: Level::Local.name(),
        from_tokens: room.window_tokens.saturating_sub(room.answer_tokens),
        would_free_tokens: local::could_free(outline).min(*used),
    });
    levels
}

/// The figures in a line, for notices about a window that stays full.
pub(crate) fn breakdown(shares: &[Share]) -> String {
    let share = |share: &Share| match share.kind {
        "memory" => format!("{} {}", share.name, share.tokens),
        _ => format!("{} {}", share.name.to_lowercase(), share.tokens),
    };
    shares.iter().filter(|share| share.tokens > 0).map(share).collect::<Vec<_>>().join(", ")
}
