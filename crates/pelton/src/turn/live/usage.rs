//! Where the tokens are, put together from all who know a part of it.

use pelton_model::CacheLife;
use pelton_model::catalogue::{self, Prices};

use crate::compact::usage::{self, Facts};
use crate::compact::{CompactOptions, ContextUsage, Room};
use crate::context::attachment::AttachmentFacts;
use crate::context::memory::told_in;
use crate::history::View;

use super::CacheAudit;

/// What stands around a view.
pub(crate) struct Around<'a> {
    pub model: &'a str,
    pub room: Room,
    pub compact: &'a CompactOptions,
    /// Bytes of the system prompt, and of the tools of each server.
    pub system_bytes: usize,
    pub tools_bytes: Vec<(String, usize)>,
    /// What became of the newest requests.
    pub cache: &'a CacheAudit,
    /// Prices of models that nobody else knows.
    pub prices: &'a [(String, Prices)],
    /// How long the server keeps what it is sent.
    pub kept: CacheLife,
}

/// What fills the context.
pub(crate) fn context_usage(view: &View, around: &Around<'_>) -> ContextUsage {
    let used = view.tokens();
    usage::usage(&Facts {
        model: around.model,
        room: around.room,
        options: around.compact,
        used,
        overhead: view.overhead_tokens().min(used),
        system_bytes: around.system_bytes,
        tools_bytes: &around.tools_bytes,
        cache: around.cache.reports(),
        media: view.media_tokens(),
        memory: &memory(view),
        outline: &view.outline(),
        usd_per_token: usd_per_token(around.model, around.prices, used, around.kept),
    })
}

/// Memory files that the model sees, and about how many tokens each takes.
fn memory(view: &View) -> Vec<(String, u64)> {
    let mut files = Vec::new();
    for entry in view.entries_with_detail() {
        let facts = entry.detail.as_deref().and_then(AttachmentFacts::read);
        if let Some(facts) = facts.filter(|facts| facts.r#type.is_memory()) {
            for (path, text) in told_in(&entry.words(), &facts.files) {
                files.push((path.display().to_string(), view.tokens_of(text)));
            }
        }
    }
    files
}

/// What a token of the prompt costs that is read from the cache, and one that is not: where requests have cache marks, that
/// one is written to it.
fn usd_per_token(
    model: &str,
    known: &[(String, Prices)],
    prompt_tokens: u64,
    kept: CacheLife,
) -> Option<(f64, f64)> {
    let told = known.iter().find(|(name, _)| name == model).map(|(_, prices)| *prices);
    let prices = told.or_else(|| catalogue::caps(model).map(|caps| caps.prices))?;
    let rates = match prices.long_prompt {
        Some((from, rates)) if prompt_tokens > from => rates,
        _ => prices.rates,
    };
    let (read, written) = match kept {
        CacheLife::Nothing => (rates.input, rates.input),
        CacheLife::OneHour => (rates.cache_read, rates.cache_write_1h),
        _ => (rates.cache_read, rates.cache_write_5m),
    };
    Some((read / 1e6, written / 1e6))
}
