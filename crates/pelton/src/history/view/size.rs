//! How much of the context window a view takes: one figure, for everybody who shows it or acts on it. It is an estimate,
//! and the model's own count corrects it after every answer.

use std::sync::Arc;

use pelton_wire::usage::Usage;
use serde::{Deserialize, Serialize};

use super::super::entry::{Kind, Origin};
use super::super::tokens::{BYTES_PER_TOKEN, MORE_TOKENS, Rates, Weight};
use super::{Part, View, weight};

/// A recorded count of less than this part of our own estimate is not believed.
const RECALLED_TIMES_MIN: u64 = 4;
/// The most tokens that may have stood in front of what such a count is about.
const RECALLED_OVERHEAD_MAX: u64 = 250_000;
/// A count of more than so many times our own estimate, and so many tokens more, is not believed.
const BELIEVED_TIMES_MAX: u64 = 8;
const BELIEVED_MORE_MAX: u64 = 100_000;

/// What is known of the size of a view.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Size {
    /// System prompt and tools, by our own estimate like all weights.
    overhead: u64,
    /// All entries.
    weight: Weight,
    /// What the model has counted last.
    counted: Option<Counted>,
    /// Something in the middle is not what was counted.
    is_changed: bool,
    /// Entries that came since the last count.
    uncounted: u64,
    /// The model's way of counting.
    rates: Rates,
    /// Whether the model that count and rates are of makes more tokens of words than others, if that is known.
    counts_more: Option<bool>,
}

/// A count of the model's.
#[derive(Debug, Clone, Copy)]
struct Counted {
    total: u64,
    /// The weight of the entries it counted.
    weight: Weight,
    /// And of system prompt and tools; `None` if nobody knows any more: then they are taken for the same as now.
    overhead: Option<u64>,
}

/// A count of the model's and its way of counting, as the record keeps them: whoever goes on comes to the same figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CountFacts {
    total: u64,
    /// What it was about: the weights of words, images and documents, and what stood in front.
    weight: Weight,
    overhead: u64,
    /// Tokens of the model's for a million of ours, for narrow and wide words.
    rates: (u64, u64),
    /// And for images and documents, where somebody has learnt that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    media_rates: Option<(u64, u64)>,
    /// Whether who counted makes more tokens of words than others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counts_more: Option<bool>,
}

impl Size {
    /// A count of so many times what is expected, in percent, was added up twice by somebody …
    const DOUBLED_PERCENT: std::ops::RangeInclusive<u64> = 185..=215;
    /// … unless so much of what is expected is new, in percent, that the expectation may be wrong.
    const NEWS_PERCENT_MIN: u64 = 40;

    /// An entry came.
    pub fn grew(&mut self, weight: Weight) {
        self.weight += weight;
        self.uncounted += weight.tokens();
    }

    /// Entries went that were last to come, or cost little: what was counted stays counted.
    pub fn lost(&mut self, weight: Weight) {
        self.weight = self.weight.less(weight);
        self.uncounted = self.uncounted.saturating_sub(weight.tokens());
    }

    /// The entries have this weight.
    pub fn weighs(&mut self, weight: Weight) {
        self.lost(self.weight.less(weight));
    }

    /// Something in the middle is not what the model has counted.
    pub fn changed(&mut self, weight: Weight) {
        (self.weight, self.uncounted, self.is_changed) = (weight, 0, true);
    }

    /// In tokens of the model.
    pub fn of(&self, weight: Weight) -> u64 {
        self.rates.tokens(weight)
    }

    /// A model of this kind is asked. What another one counted is taken for what it would count.
    fn asks(&mut self, more: Option<bool>, is_sharp: bool) {
        let before = self.rates;
        self.rates.set_sharp(is_sharp);
        let was = std::mem::replace(&mut self.counts_more, more);
        let (Some(was), Some(more), Some(counted)) = (was, more, self.counted) else { return };
        if was == more {
            return;
        }
        self.rates = self.rates.of_another(if more { MORE_TOKENS } else { MORE_TOKENS.recip() });
        let then = self.then(counted);
        let total = share(counted.total, self.of(then), before.tokens(then));
        (self.counted, self.is_changed) = (Some(Counted { total, ..counted }), true);
    }

    fn all(&self) -> Weight {
        self.weight + Weight { narrow: self.overhead, ..Weight::default() }
    }

    /// All that was counted.
    fn then(&self, Counted { weight, overhead, .. }: Counted) -> Weight {
        weight + Weight { narrow: overhead.unwrap_or(self.overhead), ..Weight::default() }
    }

    fn tokens(&self) -> u64 {
        let now = self.of(self.all());
        let Some(counted) = self.counted else { return now };
        let total = counted.total;
        let then = self.of(self.then(counted));
        // What came is added to what was counted. Of what went nobody knows how much of the count it was: a share.
        if now >= then { total.saturating_add(now - then) } else { share(total, now, then) }
    }

    fn count(&mut self, total: u64) {
        let expected = self.tokens();
        let percent = total.saturating_mul(100) / expected.max(1);
        let is_expected = self.counted.is_some() && !self.is_changed && expected > 0;
        let news_percent = self.uncounted.saturating_mul(100) / expected.max(1);
        if is_expected && Self::DOUBLED_PERCENT.contains(&percent) && news_percent < Self::NEWS_PERCENT_MIN {
            return;
        }
        let now = self.all();
        match self.counted.filter(|_| !self.is_changed) {
            // What came since tells how words of this kind are counted; all of it together says little about them.
            Some(counted) => {
                let then = self.then(counted);
                match total.checked_sub(counted.total) {
                    Some(more) if now.tokens() > then.tokens() => self.rates.learn(now.less(then), more),
                    Some(_) => {}
                    // There is no less than there was: what was counted before was wrong, and what was learnt from it.
                    None if now.tokens() >= then.tokens() => {
                        self.rates = self.rates.forgotten();
                        self.rates.learn(now, total);
                    }
                    None => {}
                }
            }
            None => self.rates.learn(now, total),
        }
        let counted = Counted { total, weight: self.weight, overhead: Some(self.overhead) };
        (self.counted, self.uncounted, self.is_changed) = (Some(counted), 0, false);
    }
}

/// Of so many tokens, what is to all of them as one estimate is to another.
fn share(total: u64, part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(total) * u128::from(part) / u128::from(whole.max(1))).unwrap_or(total)
}

/// The most tokens that something of this weight can be.
fn most_of(weight: Weight) -> u64 {
    weight.tokens().saturating_mul(BELIEVED_TIMES_MAX).saturating_add(BELIEVED_MORE_MAX)
}

impl View {
    /// How much system prompt and tools take, by their bytes.
    pub(crate) fn set_overhead(&mut self, bytes: usize) {
        self.size.overhead = (bytes / BYTES_PER_TOKEN) as u64;
    }

    /// The model counted everything sent and its own answer. A server that counts nothing, everything twice, or more than
    /// there can be, knows no better than we do.
    pub(crate) fn counted(&mut self, usage: &Usage) {
        let total = usage.prompt_tokens().saturating_add(usage.output_tokens);
        if total > 0 && usage.prompt_tokens() <= most_of(self.size.all()) {
            self.size.count(total);
        }
    }

    /// The model counted what it was sent, and refused it. What is far from all expectations is believed only where it is
    /// about an answer.
    pub(crate) fn refused_at(&mut self, prompt_tokens: u64) {
        let expected = self.size.tokens();
        if (expected / 2..=expected.saturating_mul(2)).contains(&prompt_tokens) {
            self.size.count(prompt_tokens);
        }
    }

    /// How the model counts that is asked next: whether it makes more tokens of words than others, if that is known, and how closely
    /// it looks at images.
    pub(crate) fn set_counting(&mut self, counts_more: Option<bool>, is_sharp: bool) {
        self.size.asks(counts_more, is_sharp);
    }

    /// What the record keeps of the newest count.
    pub(crate) fn count_facts(&self) -> Option<CountFacts> {
        let Counted { total, weight, overhead } = self.size.counted?;
        let overhead = overhead.unwrap_or(self.size.overhead);
        let [narrow, wide, images, documents] = self.size.rates.per_million();
        let media_rates = Some((images, documents));
        let counts_more = self.size.counts_more;
        Some(CountFacts { total, weight, overhead, rates: (narrow, wide), media_rates, counts_more })
    }

    /// What was known in an earlier process, as its record says.
    pub(crate) fn recall(&mut self, facts: &CountFacts) {
        let CountFacts { total, weight, overhead, rates: (narrow, wide), media_rates, counts_more } = *facts;
        self.size.counted = Some(Counted { total, weight, overhead: Some(overhead) });
        let [_, _, images, documents] = Rates::default().per_million();
        let (images, documents) = media_rates.unwrap_or((images, documents));
        self.size.rates = self.size.rates.at([narrow, wide, images, documents]);
        self.size.rates.set_sharp(counts_more == Some(true));
        (self.size.counts_more, self.size.is_changed) = (counts_more, true);
    }

    /// How the model counts, from what it counted in a conversation of which nobody recorded it: whatever came between two
    /// answers is the difference of their counts.
    pub(crate) fn learn_from_counts(&mut self) {
        let mut last: Option<(u64, Arc<Origin>)> = None;
        let mut since = Weight::default();
        for part in &self.parts {
            if let Kind::Assistant { origin, .. } = &part.entry.kind
                && origin.usage.prompt_tokens() > 0
                && last.as_ref().is_none_or(|(_, known)| known.message_id != origin.message_id)
            {
                let total = origin.usage.prompt_tokens();
                let more = last.as_ref().and_then(|(before, _)| total.checked_sub(*before));
                if let Some(more) =
                    more.filter(|more| *more > 0 && *more <= most_of(since) && since.tokens() > 0)
                {
                    self.size.rates.learn(since, more);
                }
                last = Some((total, Arc::clone(origin)));
                since = Weight::default();
            }
            since += part.entry.weight;
        }
    }

    /// What the model counted in an earlier process, when it gave its newest answer: everything before that. Of use for
    /// an estimate only, because nobody knows what stood in front of it all.
    pub(crate) fn recall_count(&mut self) {
        let newest = self.parts.iter().enumerate().rev().find_map(|(index, part)| match &part.entry.kind {
            Kind::Assistant { origin, .. } if origin.usage.prompt_tokens() > 0 => {
                Some((index, Arc::clone(origin)))
            }
            _ => None,
        });
        let Some((last, origin)) = newest else { return };
        let is_of_it = |part: &Part| matches!(&part.entry.kind, Kind::Assistant { origin: other, .. } if other.message_id == origin.message_id);
        let first =
            self.parts[..last].iter().rposition(|part| !is_of_it(part)).map_or(0, |before| before + 1);
        let before = weight(&self.parts[..first]);
        let total = origin.usage.prompt_tokens();
        // It counted the messages and more; what is far beside that was counted by somebody else's rules.
        let most = most_of(before).saturating_add(RECALLED_OVERHEAD_MAX);
        if total.saturating_mul(RECALLED_TIMES_MIN) < before.tokens() || total > most {
            return;
        }
        self.size.counted = Some(Counted { total, weight: before, overhead: None });
        self.size.is_changed = true;
    }

    /// What the model counted last, and its way of counting, are what they are in another view of the conversation: the same
    /// as whoever reads the record comes to.
    pub(crate) fn counts_on_from(&mut self, other: &Self) {
        let Size { overhead, rates, counts_more, counted, .. } = other.size;
        self.size =
            Size { overhead, rates, counts_more, counted, is_changed: true, uncounted: 0, ..self.size };
    }

    /// About how many tokens a request costs, system prompt and tools included.
    pub fn tokens(&self) -> u64 {
        self.size.tokens()
    }

    /// About how many of these are system prompt and tools.
    pub fn overhead_tokens(&self) -> u64 {
        self.size.of(Weight { narrow: self.size.overhead, ..Weight::default() })
    }

    /// The most tokens of it that no model has counted: no token is shorter than a byte.
    pub(crate) fn uncounted_tokens_max(&self) -> u64 {
        self.size.uncounted.saturating_mul(BYTES_PER_TOKEN as u64)
    }

    /// Tokens the model has counted itself; 0 before its first answer, and after something was changed.
    pub fn counted_tokens(&self) -> u64 {
        self.size.counted.filter(|_| !self.size.is_changed).map_or(0, |counted| counted.total)
    }

    /// About how many tokens words are to the model.
    pub(crate) fn tokens_of(&self, words: &str) -> u64 {
        self.size.of(Weight::of(words.as_bytes(), &[]))
    }

    /// The same for a content block, which may be a picture or a document.
    pub(crate) fn tokens_of_block(&self, json: &[u8]) -> u64 {
        self.size.of(Weight::of(json, &super::super::media::find(json)))
    }
}
