//! How much of the context window a view takes: one figure, for everybody who shows it or acts on it. It is an estimate,
//! and the model's own count corrects it after every answer.

use pelton_wire::usage::Usage;

use super::super::tokens::BYTES_PER_TOKEN;
use super::View;

/// What is known of the size of a view. All but `counted` are our own estimates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    /// System prompt and tools.
    overhead: u64,
    /// All entries.
    weight: u64,
    /// What the model has counted; 0 if nobody has, or something has changed since.
    counted: u64,
    /// Entries that came since.
    uncounted: u64,
    /// The model's tokens for a thousand of ours.
    scale_permille: u64,
}

impl Default for Size {
    fn default() -> Self {
        Self { overhead: 0, weight: 0, counted: 0, uncounted: 0, scale_permille: 1_000 }
    }
}

impl Size {
    /// However the model counts, not beyond these.
    const SCALE_PERMILLE: std::ops::RangeInclusive<u64> = 100..=20_000;
    /// A count of so many times what is expected, in percent, was added up twice by somebody …
    const DOUBLED_PERCENT: std::ops::RangeInclusive<u64> = 185..=215;
    /// … unless so much of what is expected is new, in percent, that the expectation may be wrong.
    const NEWS_PERCENT_MIN: u64 = 40;

    /// An entry came.
    pub fn grew(&mut self, tokens: u32) {
        self.weight += u64::from(tokens);
        self.uncounted += u64::from(tokens);
    }

    /// An entry went that was last to come, or costs little: the model's count stays as it is, a bit too high.
    pub fn lost(&mut self, tokens: u32) {
        self.lost_in_all(u64::from(tokens));
    }

    /// Entries of so many tokens went.
    pub fn lost_in_all(&mut self, tokens: u64) {
        self.weight = self.weight.saturating_sub(tokens);
        self.uncounted = self.uncounted.saturating_sub(tokens);
    }

    /// The entries have this weight.
    pub fn weighs(&mut self, weight: u64) {
        self.lost_in_all(self.weight.saturating_sub(weight));
    }

    /// Something in the middle is not what the model has counted.
    pub fn changed(&mut self, weight: u64) {
        (self.weight, self.counted, self.uncounted) = (weight, 0, 0);
    }

    /// In tokens of the model.
    pub fn scaled(&self, tokens: u64) -> u64 {
        tokens.saturating_mul(self.scale_permille) / 1_000
    }

    fn tokens(&self) -> u64 {
        match self.counted {
            0 => self.scaled(self.overhead + self.weight),
            counted => counted + self.scaled(self.uncounted),
        }
    }

    fn count(&mut self, total: u64) {
        let expected = self.tokens();
        let is_expected = self.counted > 0 && expected > 0;
        let percent = total.saturating_mul(100) / expected.max(1);
        let news_percent = self.scaled(self.uncounted) * 100 / expected.max(1);
        if is_expected && Self::DOUBLED_PERCENT.contains(&percent) && news_percent < Self::NEWS_PERCENT_MIN {
            return;
        }
        let own = (self.overhead + self.weight).max(1);
        let scale = total.saturating_mul(1_000) / own;
        self.scale_permille = scale.clamp(*Self::SCALE_PERMILLE.start(), *Self::SCALE_PERMILLE.end());
        (self.counted, self.uncounted) = (total, 0);
    }
}

impl View {
    /// How much system prompt and tools take, by their bytes.
    pub(crate) fn set_overhead(&mut self, bytes: usize) {
        self.size.overhead = (bytes / BYTES_PER_TOKEN) as u64;
    }

    /// The model counted everything sent and its own answer. A server that counts nothing, or everything twice, knows no
    /// better than we do.
    pub(crate) fn counted(&mut self, usage: &Usage) {
        let total = usage.prompt_tokens() + usage.output_tokens;
        if total > 0 {
            self.size.count(total);
        }
    }

    /// What is known of the model's way of counting holds here too.
    pub(crate) fn counts_like(&mut self, other: &Self) {
        let Size { overhead, scale_permille, .. } = other.size;
        self.size = Size { overhead, scale_permille, ..self.size };
    }

    /// About how many tokens a request costs, system prompt and tools included.
    pub fn tokens(&self) -> u64 {
        self.size.tokens()
    }

    /// About how many of these are system prompt and tools.
    pub fn overhead_tokens(&self) -> u64 {
        self.size.scaled(self.size.overhead)
    }

    /// The most tokens of it that no model has counted: no token is shorter than a byte.
    pub(crate) fn uncounted_tokens_max(&self) -> u64 {
        self.size.uncounted.saturating_mul(BYTES_PER_TOKEN as u64)
    }

    /// Tokens the model has counted itself; 0 before its first answer, and after something was changed.
    pub fn counted_tokens(&self) -> u64 {
        self.size.counted
    }

    /// About how many tokens an estimate of ours is to the model.
    pub(crate) fn scaled(&self, tokens: u64) -> u64 {
        self.size.scaled(tokens)
    }
}
