//! C2: old bulky results lose their words, oldest first. Some more go than must: each time something in the middle
//! changes, everything behind it is read anew by the model.

use super::{Room, rounds};
use crate::history::{CallId, PartFacts, Role};

/// The results of so many rounds are what the model is working on.
const ROUNDS_KEPT: usize = 3;
/// A result below this is not worth a note in its place.
const RESULT_TOKENS_MIN: u64 = 200;
/// So far below its threshold the level goes, in percent of the room.
const TARGET_PERCENT_BELOW: u8 = 20;
/// What would free less than this, in percent of the room, is not done: the cache is worth more.
const FREED_PERCENT_MIN: u8 = 5;

/// What to clear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// These results.
    Clear(Vec<CallId>),
    /// Nothing: only so much could be freed.
    TooLittle {
        /// How much.
        tokens: u64,
    },
}

/// Plans for a view that takes `used` tokens.
pub fn plan(outline: &[PartFacts], used: u64, room: Room, threshold_percent: u8) -> Plan {
    let target = room.percent(threshold_percent.saturating_sub(TARGET_PERCENT_BELOW));
    let mut freed = 0;
    let mut calls = Vec::new();
    for (call, tokens) in clearable(outline) {
        if used.saturating_sub(freed) <= target {
            break;
        }
        freed += tokens;
        calls.push(CallId::clone(call));
    }
    if freed < room.percent(FREED_PERCENT_MIN).max(1) {
        return Plan::TooLittle { tokens: freed };
    }
    Plan::Clear(calls)
}

/// The results that may be cleared, oldest first, and about how much each would free.
pub fn clearable(outline: &[PartFacts]) -> impl Iterator<Item = (&CallId, u64)> {
    let rounds = rounds(outline);
    let kept_from = rounds.len().checked_sub(ROUNDS_KEPT).and_then(|first| rounds.get(first)).copied();
    outline[..kept_from.unwrap_or_default()].iter().filter_map(|part| match &part.role {
        Role::Result { call } if part.tokens >= RESULT_TOKENS_MIN && !part.stand_in => {
            Some((call, part.tokens))
        }
        _ => None,
    })
}
