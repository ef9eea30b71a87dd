//! Estimates for what the model has not counted yet. The model's own figures replace them after every answer.

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

use super::media::Medium;

/// Bytes of JSON text per token. English prose has about four characters per token; code, JSON and escapes fewer.
pub(super) const BYTES_PER_TOKEN: usize = 4;
/// Tokens of a character of three bytes (Chinese, Japanese, Korean and many others), and of one of four.
const TOKENS_PER_WIDE: u32 = 1;
const TOKENS_PER_WIDEST: u32 = 2;

/// So many tokens of models that count more are one of those before them.
pub(super) const MORE_TOKENS: f64 = 1.3;

/// What something costs, in tokens as we would count them, by what it is made of: models count each kind in their own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Weight {
    /// Letters, digits and signs of one or two bytes.
    pub narrow: u64,
    /// Characters of three bytes and more.
    pub wide: u64,
    /// Images, to models that look at them in the common resolution.
    #[serde(default, alias = "media")]
    pub images: u64,
    /// What they are more to models that look closer.
    #[serde(default)]
    pub images_sharp: u64,
    /// Documents.
    #[serde(default)]
    pub documents: u64,
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
        let words = Self {
            narrow: (json.len().saturating_sub(others) / BYTES_PER_TOKEN + 1) as u64,
            wide: u64::from(wide) * u64::from(TOKENS_PER_WIDE)
                + u64::from(widest) * u64::from(TOKENS_PER_WIDEST),
            ..Self::default()
        };
        words + media.iter().map(Medium::weight).sum()
    }

    /// All of it, to a model that looks closely.
    pub fn tokens(self) -> u64 {
        self.narrow + self.wide + self.images + self.images_sharp + self.documents
    }

    /// What is left of it without another.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self {
            narrow: self.narrow.saturating_sub(other.narrow),
            wide: self.wide.saturating_sub(other.wide),
            images: self.images.saturating_sub(other.images),
            images_sharp: self.images_sharp.saturating_sub(other.images_sharp),
            documents: self.documents.saturating_sub(other.documents),
        }
    }
}

impl Add for Weight {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            narrow: self.narrow + other.narrow,
            wide: self.wide + other.wide,
            images: self.images + other.images,
            images_sharp: self.images_sharp + other.images_sharp,
            documents: self.documents + other.documents,
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
/// guess with a spread, and each count moves the guesses as far as it can tell something about them: of what nobody can know
/// well, such as documents, a surprise says much, and of words beside it little.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    rates: [f64; KINDS],
    /// The spread of each, squared, and how they hang together.
    spread: [[f64; KINDS]; KINDS],
    /// The model looks closely at images.
    is_sharp: bool,
}

/// Narrow and wide words, images and documents.
const KINDS: usize = 4;
/// So many of them, the first, are words.
const WORD_KINDS: usize = 2;
/// What is believed of a model that has counted nothing. Nobody makes less of a wide character than a token and a bit.
const FIRST_RATES: [f64; KINDS] = [1.0, 1.25, 1.0, 1.0];
/// Text is known within a third or so, images and documents hardly at all. Whoever makes many tokens of narrow words does so of wide
/// ones.
const FIRST_SPREAD: [[f64; KINDS]; KINDS] =
    [[0.09, 0.1125, 0.0, 0.0], [0.1125, 0.25, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]];
/// What one is differs from what another is: between two counts the guesses become so much less certain.
const DRIFT: [f64; KINDS] = [0.002, 0.01, 0.01, 0.05];

impl Default for Rates {
    fn default() -> Self {
        Self { rates: FIRST_RATES, spread: FIRST_SPREAD, is_sharp: false }
    }
}

impl Rates {
    /// However the model counts, not beyond these.
    const RATE_MIN: f64 = 0.1;
    const RATE_MAX: f64 = 20.0;
    /// What a count is off by itself, because of what stands around the words: a share, and some tokens.
    const NOISE_SHARE: f64 = 0.01;
    const NOISE_TOKENS: f64 = 20.0;

    /// How closely the model looks at images.
    pub fn set_sharp(&mut self, is_sharp: bool) {
        self.is_sharp = is_sharp;
    }

    /// Those of a model that makes so many tokens of the same words for each of this one's, as far as that can be known.
    #[must_use]
    pub fn of_another(&self, times: f64) -> Self {
        let mut another = self.at(self.per_million());
        another.rates[..WORD_KINDS].iter_mut().for_each(|of_words| *of_words = rate(*of_words * times));
        another
    }

    /// The same model, of which nothing is known.
    #[must_use]
    pub fn forgotten(&self) -> Self {
        Self { is_sharp: self.is_sharp, ..Self::default() }
    }

    /// About how many tokens of the model's.
    pub fn tokens(&self, weight: Weight) -> u64 {
        // Far below what a float cannot tell apart, and not negative.
        self.expected(&self.amounts(weight)) as u64
    }

    /// All rates, for a million of our tokens: what the record keeps of them.
    pub fn per_million(&self) -> [u64; KINDS] {
        // They lie between the bounds of a rate.
        self.rates.map(|rate| (rate * MILLION).round() as u64)
    }

    /// The same model at these rates, with what is believed of them at the start.
    #[must_use]
    pub fn at(&self, per_million: [u64; KINDS]) -> Self {
        Self { rates: per_million.map(|of_million| rate(of_million as f64 / MILLION)), ..self.forgotten() }
    }

    /// The model counted something of this weight.
    pub fn learn(&mut self, weight: Weight, counted: u64) {
        let amounts = self.amounts(weight);
        let counted = counted as f64;
        for (kind, drift) in DRIFT.into_iter().enumerate() {
            self.spread[kind][kind] += drift;
        }
        let tells: [f64; KINDS] = self.spread.map(|row| sum(&row, &amounts));
        let noise = counted * Self::NOISE_SHARE + Self::NOISE_TOKENS;
        let spread = sum(&amounts, &tells) + noise * noise;
        let wrong = counted - self.expected(&amounts);
        for (kind, of_kind) in tells.into_iter().enumerate() {
            self.rates[kind] = rate(self.rates[kind] + of_kind / spread * wrong);
            for (other, of_other) in tells.into_iter().enumerate() {
                self.spread[kind][other] -= of_kind * of_other / spread;
            }
        }
    }

    fn expected(&self, amounts: &[f64; KINDS]) -> f64 {
        sum(&self.rates, amounts)
    }

    fn amounts(&self, weight: Weight) -> [f64; KINDS] {
        let sharp = if self.is_sharp { weight.images_sharp } else { 0 };
        [weight.narrow, weight.wide, weight.images.saturating_add(sharp), weight.documents]
            .map(|amount| amount as f64)
    }
}

fn sum(one: &[f64; KINDS], two: &[f64; KINDS]) -> f64 {
    one.iter().zip(two).map(|(one, two)| one * two).sum()
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
        Weight { narrow, wide, ..Weight::default() }
    }

    #[test]
    fn how_another_model_counts_words_says_nothing_of_pictures() {
        let (one, another) = (Rates::default(), Rates::default().of_another(MORE_TOKENS));
        let seen = Weight { images: 1_000, documents: 1_000, ..Weight::default() };
        assert_eq!((one.tokens(seen), another.tokens(seen)), (2_000, 2_000));
        assert_eq!((one.tokens(words(1_000, 0)), another.tokens(words(1_000, 0))), (1_000, 1_300));
        assert_eq!((one.tokens(words(0, 1_000)), another.tokens(words(0, 1_000))), (1_250, 1_625));
    }

    #[test]
    fn characters_weigh_by_their_kind() {
        assert_eq!(Weight::of(b"four letters", &[]), words(4, 0));
        assert_eq!(Weight::of("豆を数える".as_bytes(), &[]), words(1, 5));
        assert_eq!(Weight::of("größer 🌱".as_bytes(), &[]), words(3, 2));
    }

    /// A system prompt and tools.
    const FRONT: u64 = 6_000;

    #[test]
    fn what_is_made_of_images_and_documents_says_nothing_about_words() {
        let images = Weight { images: 16_000, images_sharp: 24_000, ..Weight::default() };
        let documents = Weight { documents: 25_000, ..Weight::default() };
        for (sharp, media, counted) in [
            (true, images, 40_000),
            (true, images, 16_000),
            (false, images, 16_000),
            (false, images, 48_000),
            (false, documents, 40_000),
            (false, documents, 3_000),
            (false, documents, 75_000),
        ] {
            let mut rates = Rates::default();
            rates.set_sharp(sharp);
            rates.learn(words(FRONT, 0) + media, FRONT + counted);
            let text = rates.tokens(words(40_000, 0));
            assert!((36_000..=44_000).contains(&text), "{text} after {counted} for {media:?}");
            // The same once more is known by then, but for what is far beyond belief.
            let again = rates.tokens(media);
            assert!(again.abs_diff(counted) <= counted / 5 + 1_000, "{again} instead of {counted}");
        }
    }

    #[test]
    fn wide_words_are_known_after_the_first_count_though_there_were_hardly_any() {
        // What a token and a quarter is to one tokenizer, and a third more to a denser one.
        for (narrow_rate, wide_rate) in [(1.0, 1.25), (1.3, 1.625), (1.0, 1.1), (1.3, 1.45), (0.9, 1.2)] {
            let count =
                |weight: Weight| (weight.narrow as f64 * narrow_rate + weight.wide as f64 * wide_rate) as u64;
            let mut rates = Rates::default();
            let first = words(FRONT, 84);
            rates.learn(first, count(first));
            let file = words(500, 22_000);
            let (known, is) = (rates.tokens(file) as f64, count(file) as f64);
            assert!((known - is).abs() <= is * 0.15, "{known} for {is} at {narrow_rate} and {wide_rate}");
        }
    }

    proptest! {
        // Of what is hardly said, hardly anything is learnt.
        #[test]
        fn whatever_a_model_makes_of_either_kind_is_soon_known(
            narrow_rate in 0.6..1.8_f64,
            wide_rate in 0.5..2.0_f64,
            said in prop::collection::vec((1_u64..4_000, 2_000_u64..8_000), 2..12),
        ) {
            let mut rates = Rates::default();
            let count = |weight: Weight| (weight.narrow as f64 * narrow_rate + weight.wide as f64 * wide_rate) as u64;
            // A system prompt and tools come first, and some words of either kind.
            for weight in std::iter::once(words(10_000, 3_000)).chain(said.iter().map(|(narrow, wide)| words(*narrow, *wide))) {
                rates.learn(weight, count(weight));
            }
            let all = words(12_000, 12_000);
            let (known, is) = (rates.tokens(all) as f64, count(all) as f64);
            prop_assert!((known - is).abs() <= is * 0.10, "{known} for {is}");
        }

        #[test]
        fn nonsense_leaves_sane_rates(said in prop::collection::vec((0_u64..u64::MAX / 4, 0_u64..u64::MAX / 4, 0_u64..u64::MAX), 1..20)) {
            let mut rates = Rates::default();
            for (narrow, wide, counted) in said {
                rates.learn(words(narrow, wide), counted);
            }
            let recorded = rates.at(rates.per_million());
            prop_assert_eq!(recorded.rates, rates.rates, "the record keeps them");
            let tokens = rates.tokens(words(1_000, 1_000));
            prop_assert!((200..=40_000).contains(&tokens), "{tokens}");
        }
    }
}
