//! What a session has consumed, and what one submission has: pure sums.

use std::collections::BTreeMap;
use std::time::Duration;

use pelton_wire::usage::Usage;
use uuid::Uuid;

use crate::event::{Denial, ModelUsage};
use crate::tools::ahead::Speculated;
use crate::turn::Transition;

/// The lasting sums of a session.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub by_model: BTreeMap<String, ModelUsage>,
    /// Models without a price that nobody was told of yet.
    unpriced: Vec<String>,
}

impl Account {
    /// Counts one answer, and what it cost if that is known.
    pub fn answered(&mut self, model: &str, usage: &Usage, cost: Option<f64>) {
        if cost.is_none() && !self.by_model.contains_key(model) {
            self.unpriced.push(model.to_owned());
        }
        let entry = self.by_model.entry(model.to_owned()).or_default();
        entry.usage.add(usage);
        entry.cost_usd = match (entry.cost_usd, cost) {
            (None, cost) => cost,
            (Some(sum), cost) => Some(sum + cost.unwrap_or_default()),
        };
    }

    /// Models without a price that were counted since this was asked last; each comes once.
    pub fn take_unpriced(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unpriced)
    }

    /// What everything cost, as far as prices are known.
    pub fn cost_usd(&self) -> f64 {
        // Not `sum()`: the empty sum of floats is -0.
        self.by_model.values().filter_map(|model| model.cost_usd).fold(0.0, |sum, cost| sum + cost)
    }
}

/// The sums of one submission.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub usage: Usage,
    pub duration_api: Duration,
    pub first_token_after: Option<Duration>,
    /// Messages in the user's role that came about.
    pub user_messages: u32,
    pub denials: Vec<Denial>,
    pub transitions: BTreeMap<&'static str, u32>,
    pub loop_events: BTreeMap<&'static str, u32>,
    pub retries: u32,
    pub tool_calls: u32,
    pub speculation: Speculated,
    /// Prompts that waited, and are part of this submission.
    pub consumed: Vec<Uuid>,
}

impl Tally {
    /// Counts a reason the loop went on for.
    pub fn went_on(&mut self, transition: Transition) {
        *self.transitions.entry(transition.name()).or_default() += 1;
    }

    /// How often it went on for that reason.
    pub fn times(&self, transition: Transition) -> u32 {
        self.transitions.get(transition.name()).copied().unwrap_or_default()
    }
}
