//! How much there is room for, and from where on which level does something about it.

use crate::limits::{ANSWER_TOKENS_MIN, OUTPUT_TOKENS_RESERVED_MAX};

/// From where on the context is made smaller, and by which means. The shares are percent of the context window less
/// what is reserved for the answer.
///
/// ```
/// let mut compact = pelton::compact::CompactOptions::default();
/// compact.auto_percent = 60;
/// compact.window_tokens = Some(150_000);
/// assert!(compact.enabled && compact.auto);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactOptions {
    /// Whether anything is ever summarised or left out; if not, a full window ends the run.
    pub enabled: bool,
    /// Whether that is done before the API refuses.
    pub auto: bool,
    /// Whether finished stretches are folded in the background by the small model.
    pub folds: bool,
    /// A window to keep within, if the model's own is larger.
    pub window_tokens: Option<u64>,
    /// C2: from here on old bulky results are cleared.
    pub micro_percent: u8,
    /// C3: from here on folds are made in the background.
    pub stage_percent: u8,
    /// C3: from here on they are used.
    pub collapse_percent: u8,
    /// C4: from here on the conversation is summarised.
    pub auto_percent: u8,
    /// C4: from here on less of it is kept beside the summary.
    pub aggressive_percent: u8,
}

impl Default for CompactOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            auto: true,
            folds: true,
            window_tokens: None,
            micro_percent: 60,
            stage_percent: 60,
            collapse_percent: 75,
            auto_percent: 80,
            aggressive_percent: 90,
        }
    }
}

impl CompactOptions {
    /// The same with everything beginning at a smaller share of the window; a larger one changes nothing.
    #[must_use]
    pub fn lowered_to(mut self, auto_percent: u8) -> Self {
        let auto_percent = auto_percent.max(1);
        if auto_percent < self.auto_percent {
            let lower = |percent: u8| {
                let scaled = u16::from(percent) * u16::from(auto_percent) / u16::from(self.auto_percent);
                u8::try_from(scaled).unwrap_or(percent)
            };
            self.micro_percent = lower(self.micro_percent);
            self.stage_percent = lower(self.stage_percent);
            self.collapse_percent = lower(self.collapse_percent);
            self.aggressive_percent = lower(self.aggressive_percent);
            self.auto_percent = auto_percent;
        }
        self
    }
}

/// What the context is to be kept within: so many tokens, or `auto`, the model's own window.
///
/// ```
/// use pelton::compact::AutoWindow;
///
/// assert_eq!("200k".parse(), Ok(AutoWindow(Some(200_000))));
/// assert_eq!("auto".parse(), Ok(AutoWindow(None)));
/// assert!("5".parse::<AutoWindow>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutoWindow(pub Option<u64>);

impl AutoWindow {
    /// The smallest and the largest that can be asked for.
    const TOKENS: std::ops::RangeInclusive<u64> = 100_000..=1_000_000;
}

/// What is wrong with the words.
///
/// ```
/// use pelton::compact::{AutoWindow, NotAutoWindow};
///
/// assert_eq!("little".parse::<AutoWindow>(), Err(NotAutoWindow));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 'auto' or a number of tokens between 100k and 1M")]
pub struct NotAutoWindow;

impl std::str::FromStr for AutoWindow {
    type Err = NotAutoWindow;

    fn from_str(text: &str) -> Result<Self, NotAutoWindow> {
        let text = text.trim().to_ascii_lowercase();
        let (digits, unit) = match (text.strip_suffix('k'), text.strip_suffix('m')) {
            (Some(digits), _) => (digits, 1_000),
            (_, Some(digits)) => (digits, 1_000_000),
            _ => (text.as_str(), 1),
        };
        match digits.parse::<u64>().map(|count| count.saturating_mul(unit)) {
            _ if text == "auto" => Ok(Self(None)),
            Ok(tokens) if Self::TOKENS.contains(&tokens) => Ok(Self(Some(tokens))),
            _ => Err(NotAutoWindow),
        }
    }
}

/// How much there is room for.
///
/// ```
/// use pelton::compact::Room;
///
/// let room = Room::of(200_000, 32_000);
/// assert!(room.fits(150_000) && !room.fits(199_000));
/// assert_eq!(room.percent(80), 144_000); // of what is left beside the answer
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Room {
    /// The context window.
    pub window_tokens: u64,
    /// What of it is reserved for the answer.
    pub reserved_tokens: u64,
    /// What must be left of it for an answer at the very least.
    pub answer_tokens: u64,
}

impl Room {
    /// The room in a window of this size, for answers of at most so many tokens.
    pub fn of(window_tokens: u64, answer_tokens_max: u32) -> Self {
        // A small window is not all reserved.
        let reserved = u64::from(answer_tokens_max).min(OUTPUT_TOKENS_RESERVED_MAX).min(window_tokens / 4);
        Self { window_tokens, reserved_tokens: reserved, answer_tokens: ANSWER_TOKENS_MIN }
    }

    /// Whether a request of this size leaves enough for an answer.
    pub fn fits(&self, tokens: u64) -> bool {
        tokens.saturating_add(self.answer_tokens) <= self.window_tokens
    }

    /// What is left beside the answer.
    pub fn usable_tokens(&self) -> u64 {
        self.window_tokens.saturating_sub(self.reserved_tokens)
    }

    /// A share of what is left beside the answer.
    pub fn percent(&self, percent: u8) -> u64 {
        self.usable_tokens() * u64::from(percent) / 100
    }

    /// How much of it is in use, in percent.
    pub fn used_percent(&self, tokens: u64) -> u64 {
        tokens.saturating_mul(100) / self.usable_tokens().max(1)
    }
}
