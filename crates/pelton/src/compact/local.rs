//! The last step: the oldest rounds are left out, then long results are cut. It needs no model, so a conversation that
//! cannot be sent can always be made sendable.

use super::{rounds, weight};
use crate::history::{CallId, EntryId, PartFacts, Role};

/// The share of the window that may stay in use, in percent: enough room that the next turn does not bring the same
/// trouble again.
pub const KEEP_PERCENT: u64 = 50;
/// A result below this is not cut.
const RESULT_TOKENS_MIN: u64 = 400;

/// What to leave out so that about `keep` of `used` tokens are left: the first and the last entry. The beginning, which
/// says what the task is, and the newest round stay.
pub fn oldest(outline: &[PartFacts], used: u64, keep: u64) -> Option<(EntryId, EntryId)> {
    let cuts = cuts(outline);
    let (&first, &newest) = cuts.first().zip(cuts.last())?;
    let over = used.saturating_sub(keep);
    let enough = |cut: &usize| *cut > first && weight(&outline[first..*cut]) >= over;
    let cut = cuts.iter().copied().find(enough).unwrap_or(newest);
    between(outline, first, cut)
}

/// About how much [`oldest`] could leave out.
pub fn could_free(outline: &[PartFacts]) -> u64 {
    let cuts = cuts(outline);
    cuts.first().zip(cuts.last()).map_or(0, |(first, newest)| weight(&outline[*first..*newest]))
}

/// The results to cut so that `over` tokens are freed, largest first.
pub fn longest(outline: &[PartFacts], over: u64) -> Vec<CallId> {
    let mut results: Vec<(&CallId, u64)> = outline
        .iter()
        .filter_map(|part| match &part.role {
            Role::Result { call } if part.tokens >= RESULT_TOKENS_MIN => Some((call, part.tokens)),
            _ => None,
        })
        .collect();
    results.sort_by_key(|(_, tokens)| std::cmp::Reverse(*tokens));
    let mut freed = 0;
    let needed = results.into_iter().take_while(|(_, tokens)| {
        let needed = freed < over;
        freed += tokens;
        needed
    });
    needed.map(|(call, _)| CallId::clone(call)).collect()
}

/// Everything between two places, by the names of its ends.
pub fn between(outline: &[PartFacts], first: usize, end: usize) -> Option<(EntryId, EntryId)> {
    let parts = outline.get(first..end).filter(|parts| !parts.is_empty())?;
    let last = parts.iter().rev().find(|part| !part.stand_in)?;
    Some((parts.first()?.id, last.id))
}

/// Where it can be cut: where answers begin, and, in a conversation in which nobody ever answered, where prompts do.
fn cuts(outline: &[PartFacts]) -> Vec<usize> {
    let rounds = rounds(outline);
    if rounds.len() > 1 {
        return rounds;
    }
    let asked = |index: &usize| outline[*index].role == Role::Prompt { meta: false };
    match rounds.first() {
        // One answer, and words behind it: the round can go.
        Some(first) => rounds.iter().copied().chain((*first..outline.len()).filter(asked)).collect(),
        None => (0..outline.len()).filter(asked).collect(),
    }
}
