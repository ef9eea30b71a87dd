//! What people do to the context by hand, without a model. Rounds are counted from 1, oldest first, as the report of the
//! context shows them: a round is an answer, the results of its calls, and what was said before it since the last one. What stands
//! before the first answer stays.

use std::ops::RangeInclusive;

use super::local::between;
use super::rounds;
use crate::history::{By, Edit, EditId, Edited, MediaPlace, PartFacts, Role};

/// Something to do to what the model is sent. Nothing of it is lost: each can be undone.
///
/// ```
/// use pelton::compact::Surgery;
///
/// assert_eq!("drop 3-7".parse(), Ok(Surgery::Drop(3..=7)));
/// assert_eq!("keep-last 5".parse(), Ok(Surgery::KeepLast(5)));
/// assert!("drop everything".parse::<Surgery>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Surgery {
    /// Leaves rounds out.
    Drop(RangeInclusive<usize>),
    /// Leaves all other rounds out.
    Keep(RangeInclusive<usize>),
    /// Leaves all but the newest rounds out; what the user asked for there stays with them.
    KeepLast(usize),
    /// Takes the words out of the result of a call.
    Clear(String),
    /// Leaves all images and documents out, but for so many of the newest.
    Media {
        /// How many stay.
        kept: usize,
    },
    /// Undoes an edit; the newest if none is named.
    Undo(Option<EditId>),
}

/// What is wrong with the words.
///
/// See [`Surgery`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is nothing that can be done to the context: drop A-B, keep A-B, keep-last N, clear CALL, media [KEPT], undo [EDIT]"
)]
pub struct NotSurgery(pub String);

impl std::str::FromStr for Surgery {
    type Err = NotSurgery;

    fn from_str(text: &str) -> Result<Self, NotSurgery> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let not = || NotSurgery(text.trim().to_owned());
        let number = |word: &str| word.parse::<usize>().map_err(|_| not());
        let range = |word: &str| match word.split_once('-') {
            Some((first, last)) => Ok(number(first)?..=number(last)?),
            None => number(word).map(|only| only..=only),
        };
        match words[..] {
            ["drop", rounds] => range(rounds).map(Self::Drop),
            ["keep", rounds] => range(rounds).map(Self::Keep),
            ["keep-last", count] => number(count).map(Self::KeepLast),
            ["clear", call] => Ok(Self::Clear(call.to_owned())),
            ["media"] => Ok(Self::Media { kept: 0 }),
            ["media", kept] => Ok(Self::Media { kept: number(kept)? }),
            ["undo"] => Ok(Self::Undo(None)),
            ["undo", edit] => edit.parse().map(|edit| Self::Undo(Some(edit))).map_err(|_| not()),
            _ => Err(not()),
        }
    }
}

/// What a view holds, as far as it matters here.
pub(crate) struct Situation<'a> {
    /// Its parts.
    pub outline: &'a [PartFacts],
    /// Its images and documents, oldest first.
    pub media: &'a [MediaPlace],
    /// The edits that can be undone, oldest first.
    pub edits: &'a [&'a Edited],
}

impl Surgery {
    /// The edits that do it, or why it cannot be done.
    pub(crate) fn plan(&self, situation: &Situation<'_>) -> Result<Vec<Edit>, String> {
        let outline = situation.outline;
        let starts = rounds(outline);
        let count = starts.len();
        let checked = |rounds: &RangeInclusive<usize>| match (*rounds.start(), *rounds.end()) {
            (first, last) if 1 <= first && first <= last && last <= count => Ok((first, last)),
            (first, last) => Err(format!("there are no rounds {first}-{last}: they are 1-{count}")),
        };
        // From the newest back: places before an edit stay what they are.
        match self {
            Self::Drop(rounds) => {
                checked(rounds).map(|(first, last)| left_out(situation, &starts, first, last))
            }
            Self::Keep(rounds) => checked(rounds).map(|(first, last)| {
                let mut edits = left_out(situation, &starts, last + 1, count);
                edits.extend(left_out(situation, &starts, 1, first - 1));
                edits
            }),
            Self::KeepLast(kept) => Ok(all_but_the_newest(outline, &starts, *kept)),
            Self::Clear(call) => {
                let is_it =
                    |part: &PartFacts| matches!(&part.role, Role::Result { call: id } if **id == **call);
                match outline.iter().any(is_it) {
                    true => Ok(vec![Edit::Clear { calls: vec![call.clone()] }]),
                    false => Err(format!("there is no result of a call {call}")),
                }
            }
            Self::Media { kept } => {
                let places = &situation.media[..situation.media.len().saturating_sub(*kept)];
                Ok(if places.is_empty() { vec![] } else { vec![Edit::Media { places: places.to_vec() }] })
            }
            Self::Undo(edit) => match edit.or(situation.edits.last().map(|edited| edited.id)) {
                Some(edit) => Ok(undone_as_one(situation.edits, edit)),
                None => Err("there is nothing to undo".to_owned()),
            },
        }
    }
}

/// Undoes an edit, and all that were made as one with it, the newest first.
fn undone_as_one(edits: &[&Edited], edit: EditId) -> Vec<Edit> {
    let first = |edited: &Edited| edited.with.unwrap_or(edited.id);
    let Some(of) = edits.iter().find(|edited| edited.id == edit).map(|edited| first(edited)) else {
        // It may be on the disk only.
        return vec![Edit::Undo { edit }];
    };
    let same = edits.iter().rev().filter(|edited| first(edited) == of);
    same.map(|edited| Edit::Undo { edit: edited.id }).collect()
}

/// Leaves out all but the newest rounds and the request that they answer, the newest of what goes first.
fn all_but_the_newest(outline: &[PartFacts], starts: &[usize], kept: usize) -> Vec<Edit> {
    let Some(first) = starts.first().copied() else { return Vec::new() };
    let stays = starts.get(starts.len().saturating_sub(kept)).copied().unwrap_or(outline.len());
    let is_request = |part: &PartFacts| part.role == Role::Prompt { meta: false };
    let request = outline[..stays].iter().rposition(is_request).filter(|place| kept > 0 && *place > first);
    let Some(request) = request else { return note(outline, first, stays).into_iter().collect() };
    // What was told with it stands before it.
    let with_it = outline[..request].iter().rev().take_while(|part| part.role == Role::Prompt { meta: true });
    let asked = request - with_it.count();
    let answered = (request..stays).find(|place| outline[*place].is_answer());
    let between = answered.and_then(|answered| note(outline, answered, stays));
    between.into_iter().chain(note(outline, first, asked)).collect()
}

/// A note in the place of all that is between two places.
fn note(outline: &[PartFacts], begin: usize, end: usize) -> Option<Edit> {
    let (from, to) = between(outline, begin, end)?;
    Some(Edit::Replace { from, to, by: By::Note })
}

/// Leaves out rounds, counted from 1.
fn left_out(situation: &Situation<'_>, starts: &[usize], first: usize, last: usize) -> Vec<Edit> {
    if first < 1 || last < first {
        return Vec::new();
    }
    let outline = situation.outline;
    let is_prompt = |part: &&PartFacts| matches!(part.role, Role::Prompt { .. });
    // What was said before an answer goes with it; what stands for other rounds does not.
    let is_asked =
        |part: &&PartFacts| is_prompt(part) && !situation.edits.iter().any(|edited| edited.tells(part.id));
    let Some(&answer) = starts.get(first - 1) else { return Vec::new() };
    let asked = outline[..answer].iter().rev().take_while(is_asked).count();
    let begin = if first == 1 { answer } else { answer - asked };
    // What nobody has answered yet is part of no round.
    let next = starts.get(last).copied().unwrap_or(outline.len());
    let end = next - outline[..next].iter().rev().take_while(is_prompt).count();
    note(outline, begin, end).into_iter().collect()
}
