//! Prompt-cache accounting, as the API does it.
//!
//! A mark says "cache up to here". On the way in, each mark looks back over a limited number of blocks for an entry that
//! an earlier request left; the longest one found is read. On the way out, the marks behind it are written. Everything
//! else is plain input. The three always add up to [`crate::tokens::count`].
//!
//! What a change loses follows from where it is mixed into the running hash: the model before the tools, `speed` before
//! the system prompt, `tool_choice` and `thinking` before the messages.

use crate::prompt::{self, Mark, Part, Section, Ttl};
use crate::tokens;
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;

/// The prompt cache of one account.
#[derive(Debug, Default)]
pub struct PromptCache {
    entries: HashMap<u64, Entry>,
}

/// How the input tokens of one request divide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUsage {
    /// Tokens neither read from nor written to the cache.
    pub input_tokens: u64,
    /// Tokens read from the cache.
    pub cache_read_input_tokens: u64,
    /// Tokens written with a lifetime of five minutes.
    pub write_5m: u64,
    /// Tokens written with a lifetime of one hour.
    pub write_1h: u64,
}

/// Entries of a request that others can read only once its answer has begun.
#[derive(Debug)]
#[must_use = "nothing is cached until the entries are committed"]
pub struct Pending {
    entries: Vec<(u64, Ttl)>,
    /// When the request arrived: lifetimes count from there, however long the answer takes to begin.
    arrived: Duration,
}

impl PromptCache {
    /// Accounts for a request that has arrived at `now` (any clock that only moves forward); [`commit`](Self::commit) makes it readable when its answer begins.
    pub fn begin(&mut self, request: &Value, now: Duration) -> (CacheUsage, Pending) {
        let facts = tokens::facts_of(request);
        let parts = prompt::parts(request);
        let keys = keys(request, &parts);
        let ends = running_sum(tokens::of_parts(facts, &parts));
        let total = tokens::REQUEST_TOKENS + ends.last().copied().unwrap_or_default();
        let marks: Vec<Mark> = prompt::marks(request, &parts)
            .into_iter()
            .filter(|mark| ends[mark.part] >= facts.cache_prefix_tokens_min)
            .collect();

        let read = marks.iter().filter_map(|mark| self.look_back(mark.part, &keys, now)).max();
        if let Some(at) = read {
            self.refresh(keys[at], now);
        }
        for mark in marks.iter().filter(|mark| Some(mark.part) <= read) {
            self.refresh(keys[mark.part], now);
        }

        // Marks of one hour come before those of five minutes, so each lifetime is one stretch.
        let end = |at: Option<usize>| at.map_or(0, |at| ends[at]);
        let written = marks.iter().filter(|mark| Some(mark.part) > read);
        let hour = written.clone().filter(|mark| mark.ttl == Ttl::OneHour).map(|mark| mark.part).max();
        let last = written.map(|mark| mark.part).max();
        let read_tokens = end(read);
        let hour_end = end(hour).max(read_tokens);
        let last_end = end(last).max(hour_end);
        let usage = CacheUsage {
            input_tokens: total - last_end,
            cache_read_input_tokens: read_tokens,
            write_5m: last_end - hour_end,
            write_1h: hour_end - read_tokens,
        };
        let entries = marks.iter().map(|mark| (keys[mark.part], mark.ttl)).collect();
        (usage, Pending { entries, arrived: now })
    }

    /// Makes the entries of a request readable.
    pub fn commit(&mut self, pending: Pending, now: Duration) {
        for (key, ttl) in pending.entries {
            let alive = self.entries.get(&key).is_some_and(|entry| entry.expires > now);
            if !alive {
                self.make_room(now);
                self.entries.insert(key, Entry { ttl, expires: pending.arrived + lifetime(ttl) });
            }
        }
    }

    /// The nearest part with a living entry, from `at` backwards.
    fn look_back(&self, at: usize, keys: &[u64], now: Duration) -> Option<usize> {
        (0..=at)
            .rev()
            .take(LOOKBACK_BLOCKS_MAX)
            .find(|&part| self.entries.get(&keys[part]).is_some_and(|entry| entry.expires > now))
    }

    fn refresh(&mut self, key: u64, now: Duration) {
        if let Some(entry) = self.entries.get_mut(&key)
            && entry.expires > now
        {
            entry.expires = now + lifetime(entry.ttl);
        }
    }

    fn make_room(&mut self, now: Duration) {
        if self.entries.len() < ENTRIES_MAX {
            return;
        }
        self.entries.retain(|_, entry| entry.expires > now);
        if self.entries.len() >= ENTRIES_MAX
            && let Some(soonest) =
                self.entries.iter().min_by_key(|(_, entry)| entry.expires).map(|(key, _)| *key)
        {
            self.entries.remove(&soonest);
        }
    }
}

#[derive(Debug)]
struct Entry {
    ttl: Ttl,
    expires: Duration,
}

/// Blocks a mark looks back over, the marked one included.
const LOOKBACK_BLOCKS_MAX: usize = 20;
const ENTRIES_MAX: usize = 10_000;

fn lifetime(ttl: Ttl) -> Duration {
    match ttl {
        Ttl::FiveMinutes => Duration::from_secs(5 * 60),
        Ttl::OneHour => Duration::from_secs(60 * 60),
    }
}

/// For every part, the hash of all that precedes and includes it.
fn keys(request: &Value, parts: &[Part<'_>]) -> Vec<u64> {
    let mut key = prompt::hash_value(request.get("model"));
    let mut section = Section::Tools;
    parts
        .iter()
        .map(|part| {
            if section < Section::System && part.section >= Section::System {
                key = switches(request, parts).fold(key, prompt::chain);
            }
            if section < Section::Messages && part.section == Section::Messages {
                key = settings(request, parts).into_iter().fold(key, prompt::chain);
            }
            section = part.section;
            if part.is_deferred() {
                return key;
            }
            let with_part = prompt::chain(key, part.hash());
            if !is_web_search(part) {
                key = with_part;
            }
            with_part
        })
        .collect()
}

/// What loses the system prompt and the messages but keeps the tools.
fn switches<'a>(request: &'a Value, parts: &'a [Part<'_>]) -> impl Iterator<Item = u64> + 'a {
    let citations = parts.iter().any(|part| {
        part.kind() == "document"
            && part.field("citations").is_some_and(|c| c["enabled"] == Value::Bool(true))
    });
    [prompt::hash_value(request.get("speed")), u64::from(citations)]
        .into_iter()
        .chain(parts.iter().filter(|part| is_web_search(part)).map(Part::hash))
}

/// What loses only the messages.
fn settings(request: &Value, parts: &[Part<'_>]) -> [u64; 5] {
    let thinking = request.get("thinking");
    let is_image = |block: &Value| block["type"] == "image";
    let images = parts.iter().any(|part| part.kind() == "image" || part.nested().iter().any(is_image));
    [
        prompt::hash_value(request.get("tool_choice")),
        prompt::hash_value(thinking.and_then(|t| t.get("type"))),
        prompt::hash_value(thinking.and_then(|t| t.get("budget_tokens"))),
        prompt::hash_value(request.get("output_config").and_then(|config| config.get("effort"))),
        u64::from(images),
    ]
}

fn is_web_search(part: &Part<'_>) -> bool {
    part.section == Section::Tools && part.kind().starts_with("web_search_")
}

fn running_sum(tokens: impl Iterator<Item = u64>) -> Vec<u64> {
    tokens
        .scan(0, |sum, tokens| {
            *sum += tokens;
            Some(*sum)
        })
        .collect()
}

#[cfg(test)]
mod tests;
