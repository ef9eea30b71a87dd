//! C3: finished stretches give way to short summaries, made in the background before they are needed. The history is
//! untouched; a fold can be opened again.

use std::sync::Arc;

use super::{Room, rounds};
use crate::history::{Entry, EntryId, Kind, PartFacts, Piece, Role};
use crate::limits::{FOLD_PIECE_CHARS_MAX, FOLD_SHOWN_CHARS_MAX};
use crate::spill::Shown;

/// The newest rounds are what the model is working on.
const ROUNDS_KEPT: usize = 4;
/// A stretch is at least this much of the room, in percent: small ones are not worth a call.
const STRETCH_PERCENT_MIN: u8 = 8;
/// And at most this much: what is too long to be read well is folded in parts.
const STRETCH_PERCENT_MAX: u8 = 25;
/// A fold of more than this share of its stretch, in percent, is no gain.
const FOLD_PERCENT_MAX: u64 = 50;

/// A stretch to fold: everything between two entries, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// The first.
    pub from: EntryId,
    /// The last.
    pub to: EntryId,
    /// About how much it costs.
    pub tokens: u64,
}

/// A fold that is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fold {
    /// What it stands for.
    pub stretch: Stretch,
    /// What takes its place.
    pub words: String,
}

impl Fold {
    /// A summary of a stretch, with what the user said in it word for word: that is not left to a summary.
    pub fn new(stretch: Stretch, summary: &str, entries: &[Arc<Entry>]) -> Self {
        let mut words =
            format!("<folded>\nA finished stretch of this conversation, in short:\n{}", summary.trim());
        for entry in entries.iter().filter(|entry| matches!(entry.kind, Kind::Prompt { meta: false })) {
            words += "\nIn it, the user said, word for word: ";
            words += &piece(&entry.words());
        }
        words += "\n</folded>";
        Self { stretch, words }
    }
}

/// What the model that folds a stretch is shown of it.
pub fn shown(entries: &[Arc<Entry>]) -> String {
    let mut text = String::new();
    for entry in entries {
        let who = match &entry.kind {
            Kind::Prompt { meta: false } => "User",
            Kind::Prompt { meta: true } => "Harness",
            Kind::ToolResult { is_error: false, .. } => "Result",
            Kind::ToolResult { is_error: true, .. } => "Failed",
            Kind::Assistant { piece: Piece::Thinking, .. } => continue,
            Kind::Assistant { piece: Piece::Call { .. }, .. } => "Call",
            Kind::Assistant { .. } => "Assistant",
        };
        text += &format!("{who}: {}\n\n", piece(&entry.words()));
    }
    Shown::of(&text, FOLD_SHOWN_CHARS_MAX).with_note(None)
}

fn piece(words: &str) -> String {
    Shown::of(words, FOLD_PIECE_CHARS_MAX).with_note(None)
}

/// The oldest stretch that is finished and not folded yet, behind `after` if something is staged already.
pub fn stretch(outline: &[PartFacts], room: Room, after: Option<EntryId>) -> Option<Stretch> {
    let behind = match after {
        Some(after) => outline.iter().rposition(|part| part.id == after)? + 1,
        None => 0,
    };
    let rounds: Vec<usize> = rounds(outline);
    let current = current_request(outline).unwrap_or(outline.len());
    let cuts: Vec<usize> = rounds[..rounds.len().saturating_sub(ROUNDS_KEPT - 1)]
        .iter()
        .copied()
        .filter(|cut| *cut >= behind)
        .collect();
    let mut sums = vec![0];
    sums.extend(outline.iter().scan(0, |sum, part| {
        *sum += part.tokens;
        Some(*sum)
    }));
    let between = |first: usize, end: usize| sums[end] - sums[first];
    let (least, most) = (room.percent(STRETCH_PERCENT_MIN), room.percent(STRETCH_PERCENT_MAX));
    for (at, &first) in cuts.iter().enumerate() {
        // The request that is being worked on is not folded; what was done for it so far may be.
        let crosses = |end: usize| (first..end).contains(&current);
        let fits = |end: &&usize| !crosses(**end) && between(first, **end) <= most;
        // They become longer and longer: none behind the first that does not fit does.
        let Some(&end) = cuts[at + 1..].iter().take_while(fits).last() else { continue };
        if between(first, end) < least {
            continue;
        }
        let parts = &outline[first..end];
        // Thinking goes when anything before it changes: a stretch is not named by it.
        let lasts = |part: &&PartFacts| !part.stand_in && part.role != Role::Thinking;
        let (from, to) = (parts.iter().find(lasts)?.id, parts.iter().rev().find(lasts)?.id);
        return Some(Stretch { from, to, tokens: between(first, end) });
    }
    None
}

/// Whether a fold is small enough to be of use.
pub fn is_gain(fold_tokens: u64, stretch: Stretch) -> bool {
    fold_tokens.saturating_mul(100) <= stretch.tokens.saturating_mul(FOLD_PERCENT_MAX)
}

/// Where the newest words of the user stand.
fn current_request(outline: &[PartFacts]) -> Option<usize> {
    outline.iter().rposition(|part| part.role == Role::Prompt { meta: false })
}
