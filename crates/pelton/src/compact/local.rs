//! The last step: the oldest rounds give way to what must not be lost, told again from where it comes; then long results are
//! cut. It needs no model, so a conversation that cannot be sent can always be made sendable.

use super::auto::Cut;
use super::{rounds, weight};
use crate::history::{CallId, EntryId, PartFacts, Role};

/// The share of the window that may stay in use, in percent: enough room that the next turn does not bring the same
/// trouble again.
pub const KEEP_PERCENT: u64 = 50;
/// A result below this is not cut.
const RESULT_TOKENS_MIN: u64 = 400;

/// What gives way so that about `keep` of `used` tokens are left: everything up to where something newer begins. The newest
/// round stays, or, if nobody has answered yet, the newest prompt.
pub fn cut(outline: &[PartFacts], used: u64, keep: u64) -> Option<Cut> {
    let cuts = cuts(outline);
    let over = used.saturating_sub(keep);
    let enough = |cut: &usize| weight(&outline[..*cut]) >= over;
    let cut = cuts.iter().copied().find(enough).or(cuts.last().copied())?;
    let (from, to) = between(outline, 0, cut)?;
    Some(Cut { from, to, kept: outline.len() - cut })
}

/// How many tokens may be spent on telling things again where about `keep` are to be left: what is left of it beside what
/// stays and stands in front, and always a quarter.
pub fn told_again_max(keep: u64, stays: u64) -> u64 {
    keep.saturating_sub(stays).max(keep / 4)
}

/// What to leave out of a conversation that somebody is to read as a whole, so that about `keep` of `used` tokens are left:
/// the first and the last entry. The beginning, which says what the task is, and the newest round stay.
pub fn oldest(outline: &[PartFacts], used: u64, keep: u64) -> Option<(EntryId, EntryId)> {
    let rounds = rounds(outline);
    let (&first, &newest) = rounds.first().zip(rounds.last())?;
    let over = used.saturating_sub(keep);
    let enough = |cut: &usize| *cut > first && weight(&outline[first..*cut]) >= over;
    let cut = rounds.iter().copied().find(enough).unwrap_or(newest);
    between(outline, first, cut)
}

/// About how much could be taken away: what [`cut`] takes but for what would be told again, and the results behind it that
/// can be cut.
pub fn could_free(outline: &[PartFacts]) -> u64 {
    let (goes, stays) = outline.split_at(cuts(outline).last().copied().unwrap_or(0));
    let request = outline.iter().rposition(|part| part.role == Role::Prompt { meta: false });
    let is_request = |place: usize| Some(place) == request;
    let others: Vec<&PartFacts> =
        goes.iter().enumerate().filter(|(place, _)| !is_request(*place)).map(|(_, part)| part).collect();
    // Words of the harness alone are told again.
    let is_said = others.iter().any(|part| part.role != Role::Prompt { meta: true });
    let said = if is_said { others.iter().map(|part| part.tokens).sum() } else { 0 };
    let long =
        |part: &&PartFacts| matches!(part.role, Role::Result { .. }) && part.tokens >= RESULT_TOKENS_MIN;
    let results = stays.iter().filter(long).map(|part| part.tokens.saturating_sub(RESULT_TOKENS_MIN));
    said + results.sum::<u64>()
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

/// Where it can be cut: where answers begin, and where a prompt does, with what stands around it or, at the least, alone.
fn cuts(outline: &[PartFacts]) -> Vec<usize> {
    let begins = |index: &usize| {
        let (part, before) = (&outline[*index], &outline[index - 1]);
        match part.role {
            Role::Prompt { meta: false } => true,
            Role::Prompt { meta: true } => before.is_answer(),
            Role::Result { .. } => false,
            Role::Call { .. } | Role::Thinking | Role::Said => !before.is_answer(),
        }
    };
    (1..outline.len()).filter(begins).collect()
}
