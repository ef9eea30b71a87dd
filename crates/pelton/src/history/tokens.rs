//! Estimates for what the model has not counted yet. The model's own figures replace them after every answer.

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

use super::media::Medium;

/// Bytes of JSON text per token. English prose has about four characters per token; code, JSON and escapes fewer.
pub(super) const BYTES_PER_TOKEN: usize = 4;
/// Tokens of a character of three bytes (Chinese, Japanese, Korean and many others), and of one of four.
const TOKENS_PER_WIDE: u32 = 1;
const TOKENS_PER_WIDEST: u32 = 2;

/// What something costs, in tokens as we would count them, by what it is made of: models count each kind in their own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Weight {
    /// Letters, digits and signs of one or two bytes.
    pub narrow: u64,
    /// Characters of three bytes and more.
    pub wide: u64,
    /// Images and documents.
    pub media: u64,
}

impl Weight {
    /// The weight of a content array, or of plain words. Base64 says nothing about what it costs, so media are counted by
    /// the piece.
    pub(super) fn of(json: &[u8], media: &[Medium]) -> Self {
        let (mut wide, mut widest) = (0_u32, 0_u32);
        for byte in json {
            wide += u32::from((0xe0..0xf0).contains(byte));
            widest += u32::from(*byte >= 0xf0);
        }
        let others =
            media.iter().map(|medium| medium.bytes).sum::<usize>() + 3 * wide as usize + 4 * widest as usize;
        Self {
            narrow: (json.len().saturating_sub(others) / BYTES_PER_TOKEN + 1) as u64,
            wide: u64::from(wide) * u64::from(TOKENS_PER_WIDE)
                + u64::from(widest) * u64::from(TOKENS_PER_WIDEST),
            media: media.iter().map(|medium| u64::from(medium.tokens)).sum(),
        }
    }

    /// All of it.
    pub fn tokens(self) -> u64 {
        self.narrow + self.wide + self.media
    }

    /// What is left of it without another.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self {
            narrow: self.narrow.saturating_sub(other.narrow),
            wide: self.wide.saturating_sub(other.wide),
            media: self.media.saturating_sub(other.media),
        }
    }
}

impl Add for Weight {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            narrow: self.narrow + other.narrow,
            wide: self.wide + other.wide,
            media: self.media + other.media,
        }
    }
}

impl AddAssign for Weight {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Weight {
    fn sum<I: Iterator<Item = Self>>(weights: I) -> Self {
        weights.fold(Self::default(), Self::add)
    }
}

/// How a model counts: its tokens for one of ours, for each kind. Learnt from what it counts; what is known so far is a
/// guess with a spread, and each count moves the guesses as far as it can tell something about them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    narrow: f64,
    wide: f64,
    /// The spread of both, squared, and how they hang together.
    narrow_spread: f64,
    wide_spread: f64,
    both_spread: f64,
}

impl Default for Rates {
    fn default() -> Self {
        Self { narrow: 1.0, wide: 1.0, narrow_spread: 0.09, wide_spread: 0.25, both_spread: 0.0 }
    }
}

impl Rates {
    /// However the model counts, not beyond these.
    const RATE_MIN: f64 = 0.1;
    const RATE_MAX: f64 = 20.0;
    /// Texts differ: between two counts the guesses become so much less certain.
    const NARROW_DRIFT: f64 = 0.002;
    const WIDE_DRIFT: f64 = 0.01;
    /// What a count is off by itself, because of what stands around the words: a share, and some tokens.
    const NOISE_SHARE: f64 = 0.01;
    const NOISE_TOKENS: f64 = 20.0;

    /// About how many tokens of the model's.
    pub fn tokens(&self, weight: Weight) -> u64 {
        // Both are far below what a float cannot tell apart, and neither is negative.
        let words = self.narrow * weight.narrow as f64 + self.wide * weight.wide as f64;
        words as u64 + weight.media
    }

    /// Both rates, for a million of our tokens: all that the record keeps of them.
    pub fn per_million(&self) -> (u64, u64) {
        // Both lie between the bounds of a rate.
        let millionths = |rate: f64| (rate * MILLION).round() as u64;
        (millionths(self.narrow), millionths(self.wide))
    }

    /// The same rates, and what is believed of them at the start.
    pub fn of_million((narrow, wide): (u64, u64)) -> Self {
        Self { narrow: rate(narrow as f64 / MILLION), wide: rate(wide as f64 / MILLION), ..Self::default() }
    }

    /// The model counted something of this weight.
    pub fn learn(&mut self, weight: Weight, counted: u64) {
        let (narrow, wide) = (weight.narrow as f64, weight.wide as f64);
        let words = counted.saturating_sub(weight.media) as f64;
        let noise = words * Self::NOISE_SHARE + Self::NOISE_TOKENS;
        self.narrow_spread += Self::NARROW_DRIFT;
        self.wide_spread += Self::WIDE_DRIFT;
        let of_narrow = self.narrow_spread * narrow + self.both_spread * wide;
        let of_wide = self.both_spread * narrow + self.wide_spread * wide;
        let spread = narrow * of_narrow + wide * of_wide + noise * noise;
        let wrong = words - self.narrow * narrow - self.wide * wide;
        self.narrow = rate(self.narrow + of_narrow / spread * wrong);
        self.wide = rate(self.wide + of_wide / spread * wrong);
        self.narrow_spread -= of_narrow * of_narrow / spread;
        self.wide_spread -= of_wide * of_wide / spread;
        self.both_spread -= of_narrow * of_wide / spread;
    }
}

const MILLION: f64 = 1e6;

/// A rate that the record can keep: within the bounds, in millionths.
fn rate(rate: f64) -> f64 {
    (rate.clamp(Rates::RATE_MIN, Rates::RATE_MAX) * MILLION).round() / MILLION
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(narrow: u64, wide: u64) -> Weight {
        Weight { narrow, wide, media: 0 }
    }

    #[test]
    fn characters_weigh_by_their_kind() {
        assert_eq!(Weight::of(b"four letters", &[]), words(4, 0));
        assert_eq!(Weight::of("豆を数える".as_bytes(), &[]), words(1, 5));
        assert_eq!(Weight::of("größer 🌱".as_bytes(), &[]), words(3, 2));
    }

    proptest! {
        #[test]
        fn whatever_a_model_makes_of_either_kind_is_soon_known(
            narrow_rate in 0.6..1.8_f64,
            wide_rate in 0.5..2.0_f64,
            said in prop::collection::vec((1_u64..4_000, 500_u64..8_000), 2..12),
        ) {
            let mut rates = Rates::default();
            let count = |weight: Weight| (weight.narrow as f64 * narrow_rate + weight.wide as f64 * wide_rate) as u64;
            // A system prompt and tools come first, and some words of either kind.
            for weight in std::iter::once(words(10_000, 3_000)).chain(said.iter().map(|(narrow, wide)| words(*narrow, *wide))) {
                rates.learn(weight, count(weight));
            }
            let all = words(12_000, 12_000);
            let (known, is) = (rates.tokens(all) as f64, count(all) as f64);
            prop_assert!((known - is).abs() <= is * 0.15, "{known} for {is}");
        }

        #[test]
        fn nonsense_leaves_sane_rates(said in prop::collection::vec((0_u64..u64::MAX / 4, 0_u64..u64::MAX / 4, 0_u64..u64::MAX), 1..20)) {
            let mut rates = Rates::default();
            for (narrow, wide, counted) in said {
                rates.learn(words(narrow, wide), counted);
            }
            let recorded = Rates::of_million(rates.per_million());
            prop_assert_eq!((recorded.narrow, recorded.wide), (rates.narrow, rates.wide), "the record keeps them");
            let tokens = rates.tokens(words(1_000, 1_000));
            prop_assert!((200..=40_000).contains(&tokens), "{tokens}");
        }
    }
}
