//! The money of a run, shared by everyone who spends it: pure sums, no clock, no lock, no prices of its own.
//!
//! A call is granted, told to wait, or refused, by nothing but the sums at the moment of asking: whoever asks first
//! is answered first, and nothing depends on how long anything takes. A call waits only for money that calls in
//! flight may give back; it is refused only when that would not help either. Whoever is in flight never waits for the
//! purse, so every wait ends.

use pelton_wire::usage::Usage;

use crate::limits::{OUTPUT_TOKENS_AFFORDED_MIN, PROMPT_TOKENS_UNSEEN_MAX};

/// What may be spent, what was, and what is about to be.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Purse {
    cap_usd: Option<f64>,
    policy: Policy,
    /// It is about more than one conversation.
    is_lasting: bool,
    spent_usd: f64,
    reserved_usd: f64,
    in_flight: u32,
    answers: u64,
    output_tokens: u64,
}

/// What is set aside for a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Policy {
    /// Its likely cost: the cap is passed by no more than the calls in flight.
    #[default]
    Likely,
    /// The most it can cost, and the call is made small enough to fit: the cap is never passed.
    Strict,
}

/// What a call may cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quote {
    /// What calls like this one cost so far.
    pub likely_usd: f64,
    /// The most its prompt can cost.
    pub prompt_usd_max: f64,
    /// What a token of its answer costs.
    pub output_token_usd: f64,
    /// The most tokens its answer may have.
    pub output_tokens_max: u32,
}

/// What becomes of a call.
#[derive(Debug, PartialEq)]
pub enum Answer {
    /// It may be sent.
    Granted(Reserved),
    /// Not now: calls in flight may leave enough for it.
    Later,
    /// Never: too little is left.
    Refused,
}

/// Money set aside for one call. Give it back with [`Purse::settle`].
#[derive(Debug, PartialEq)]
#[must_use = "what is reserved must be settled"]
pub struct Reserved {
    usd: f64,
    /// The most tokens the answer may have.
    pub output_tokens_max: u32,
}

impl Reserved {
    /// How much it is.
    pub fn usd(&self) -> f64 {
        self.usd
    }
}

impl Purse {
    /// A purse; without a cap it never runs out.
    pub fn new(cap_usd: Option<f64>, policy: Policy) -> Self {
        Self { cap_usd, policy, ..Self::default() }
    }

    /// The same purse where others have spent so much of it: what follows is no beginning.
    #[must_use]
    pub fn having_spent(self, before_usd: Option<f64>) -> Self {
        let spent_usd = before_usd.unwrap_or_default();
        Self { spent_usd, is_lasting: before_usd.is_some(), ..self }
    }

    /// Sets money aside for a call, if there is enough beside what others have set aside.
    pub fn ask(&mut self, quote: &Quote) -> Answer {
        let (Some(cap), Some(left)) = (self.cap_usd, self.left_usd()) else {
            return self.grant(quote.likely_usd, quote.output_tokens_max);
        };
        match self.policy {
            Policy::Likely if left > 0.0 => self.grant(quote.likely_usd, quote.output_tokens_max),
            // Something is set aside, then, and may come back.
            Policy::Likely if self.spent_usd < cap => Answer::Later,
            Policy::Likely => Answer::Refused,
            Policy::Strict => {
                let now = quote.affordable(left);
                let at_best = quote.affordable(cap - self.spent_usd);
                if now >= quote.output_tokens_max {
                    self.grant(quote.usd_max(quote.output_tokens_max), quote.output_tokens_max)
                } else if at_best < quote.output_tokens_min() {
                    Answer::Refused
                } else if self.in_flight > 0 {
                    // A small answer now may be a whole one in a moment.
                    Answer::Later
                } else {
                    self.grant(quote.usd_max(now), now)
                }
            }
        }
    }

    /// An attempt was paid for and brought nothing. Tells whether the call may be sent again.
    pub fn again(&mut self, reserved: &Reserved, cost_usd: f64) -> bool {
        self.spend(cost_usd);
        let Some(cap) = self.cap_usd else { return true };
        let others = self.reserved_usd - reserved.usd;
        match self.policy {
            Policy::Likely => self.spent_usd + others < cap,
            Policy::Strict => self.spent_usd + others + reserved.usd <= cap,
        }
    }

    /// Counts what a call cost, and frees what was set aside for it.
    #[allow(clippy::needless_pass_by_value, reason = "what is settled is gone")]
    pub fn settle(&mut self, reserved: Reserved, cost_usd: f64) {
        self.in_flight = self.in_flight.saturating_sub(1);
        // With nobody in flight nothing is set aside: rounding must not pile up.
        self.reserved_usd =
            if self.in_flight == 0 { 0.0 } else { (self.reserved_usd - reserved.usd).max(0.0) };
        self.spend(cost_usd);
    }

    /// Another conversation: unless the purse is for all of them, nothing of what was spent so far counts any more. What is set
    /// aside for calls in flight still is.
    pub fn begin_anew(&mut self) {
        if !self.is_lasting {
            self.spent_usd = 0.0;
        }
    }

    /// Counts an answer, for the mean.
    pub fn answered(&mut self, output_tokens: u64) {
        self.answers += 1;
        self.output_tokens = self.output_tokens.saturating_add(output_tokens);
    }

    /// The tokens an answer had so far, on average.
    pub fn mean_output_tokens(&self) -> u64 {
        self.output_tokens / self.answers.max(1)
    }

    /// Whether the cap is reached.
    pub fn is_spent(&self) -> bool {
        self.cap_usd.is_some_and(|cap| self.spent_usd >= cap)
    }

    /// What may be spent, if that is bounded.
    pub fn cap_usd(&self) -> Option<f64> {
        self.cap_usd
    }

    /// What is set aside for a call.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// What was spent.
    pub fn spent_usd(&self) -> f64 {
        self.spent_usd
    }

    /// What is set aside for calls in flight.
    pub fn reserved_usd(&self) -> f64 {
        self.reserved_usd
    }

    /// What is neither spent nor set aside; `None` without a cap.
    pub fn left_usd(&self) -> Option<f64> {
        self.cap_usd.map(|cap| cap - self.spent_usd - self.reserved_usd)
    }

    fn grant(&mut self, usd: f64, output_tokens_max: u32) -> Answer {
        let usd = usd.max(0.0);
        self.reserved_usd += usd;
        self.in_flight += 1;
        Answer::Granted(Reserved { usd, output_tokens_max })
    }

    fn spend(&mut self, cost_usd: f64) {
        self.spent_usd += cost_usd.max(0.0);
    }
}

impl Quote {
    /// The most a call can cost whose answer has at most so many tokens.
    fn usd_max(&self, output_tokens: u32) -> f64 {
        self.prompt_usd_max + self.output_token_usd * f64::from(output_tokens)
    }

    /// How many tokens of answer so much money pays for, behind the prompt.
    fn affordable(&self, usd: f64) -> u32 {
        if self.usd_max(self.output_tokens_max) <= usd {
            return self.output_tokens_max;
        }
        // A cast from a float saturates; what is less than nothing becomes nothing.
        let tokens = ((usd - self.prompt_usd_max) / self.output_token_usd.max(f64::MIN_POSITIVE)) as u32;
        // Rounding may have made one token too many of it.
        let tokens = tokens.min(self.output_tokens_max);
        if self.usd_max(tokens) <= usd { tokens } else { tokens.saturating_sub(1) }
    }

    fn output_tokens_min(&self) -> u32 {
        // An answer that is meant to be shorter than that needs no more.
        OUTPUT_TOKENS_AFFORDED_MIN.min(self.output_tokens_max).max(1)
    }
}

/// What a call will likely consume. What the last one wrote to the cache or read from it is read now, the rest is new;
/// where nothing was cached, nothing will be.
pub fn likely_usage(last: Option<&Usage>, prompt_tokens: u64, mean_output_tokens: u64) -> Usage {
    let cached =
        last.map_or(0, |last| last.cache_read_input_tokens.saturating_add(last.cache_creation_input_tokens));
    let read = cached.min(prompt_tokens);
    let rest = prompt_tokens - read;
    let (plain, written) = if cached > 0 { (0, rest) } else { (rest, 0) };
    Usage {
        input_tokens: plain,
        cache_creation_input_tokens: written,
        cache_read_input_tokens: read,
        output_tokens: mean_output_tokens,
        ..Usage::default()
    }
}

/// The most tokens a prompt can have that no model has counted yet: no token is shorter than a byte, and a server adds
/// some words of its own.
pub fn prompt_tokens_max(bytes: u64) -> u64 {
    bytes.saturating_add(PROMPT_TOKENS_UNSEEN_MAX)
}

#[cfg(test)]
mod tests;
