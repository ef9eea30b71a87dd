//! What has to be done to go back to a message: pure. Given is what the agent did, in order, and what is there now.
//!
//! Every path has a chain of changes. Where its links do not meet, or its end is not what is there, somebody else changed
//! the file, and it is left alone unless they say otherwise.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::state::{Change, State, Unkept};

/// What happened, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The user said something.
    Message(Uuid),
    /// The agent changed something.
    Changed(Change),
    /// Files were brought back, or that was taken back.
    Rewound(Rewind),
}

/// Files brought back at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewind {
    pub id: Uuid,
    /// The rewind that this one takes back.
    pub undoes: Option<Uuid>,
    pub changes: Vec<Change>,
}

/// What becomes of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    pub path: PathBuf,
    pub now: State,
    pub target: State,
    /// Why it is not done unless that is wanted all the same.
    pub conflict: Option<Conflict>,
}

/// Somebody else changed a file.
///
/// ```
/// use pelton::file_history::Conflict;
///
/// let line = format!("a.txt {}", Conflict::ChangedSince.words());
/// assert_eq!(line, "a.txt was changed by somebody else afterwards");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Conflict {
    /// It is not what the agent left.
    ChangedSince,
    /// It was changed between two changes of the agent's, and going back before the first would lose that.
    ChangedBetween,
}

impl Conflict {
    /// Reads on after the path.
    pub fn words(self) -> &'static str {
        match self {
            Self::ChangedSince => "was changed by somebody else afterwards",
            Self::ChangedBetween => "was changed by somebody else in between",
        }
    }
}

/// Everything to be done, and what cannot be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    pub moves: Vec<Move>,
    /// Changed by the agent, but what was there before is not kept.
    pub lost: Vec<(PathBuf, Unkept)>,
}

/// The way back to `to`: to what was there when the user said it. `None` if they never did.
pub fn back_to(steps: &[Step], to: Uuid, now: impl Fn(&Path) -> State) -> Option<Plan> {
    let from = steps.iter().position(|step| matches!(step, Step::Message(id) if *id == to))?;
    Some(plan(changes(&steps[from..]), now))
}

/// The way back from the newest rewind that was not taken back; with its id.
pub fn undo(steps: &[Step], now: impl Fn(&Path) -> State) -> Option<(Uuid, Plan)> {
    let undone =
        |id| steps.iter().any(|step| matches!(step, Step::Rewound(rewind) if rewind.undoes == Some(id)));
    let (at, id) = steps.iter().enumerate().rev().find_map(|(at, step)| match step {
        Step::Rewound(rewind) if rewind.undoes.is_none() && !undone(rewind.id) => Some((at, rewind.id)),
        _ => None,
    })?;
    let Step::Rewound(rewind) = &steps[at] else { return None };
    // What happened to the same files since belongs to their chains.
    let since =
        changes(&steps[at..]).filter(|change| rewind.changes.iter().any(|own| own.path == change.path));
    Some((id, plan(since, now)))
}

fn changes(steps: &[Step]) -> impl Iterator<Item = &Change> {
    steps.iter().flat_map(|step| match step {
        Step::Message(_) => &[],
        Step::Changed(change) => std::slice::from_ref(change),
        Step::Rewound(rewind) => rewind.changes.as_slice(),
    })
}

fn plan<'a>(changes: impl Iterator<Item = &'a Change>, now: impl Fn(&Path) -> State) -> Plan {
    struct Chain<'a> {
        first: &'a State,
        last: &'a State,
        broken: bool,
    }
    let mut chains: BTreeMap<&Path, Chain<'_>> = BTreeMap::new();
    for Change { path, before, after } in changes {
        let new = Chain { first: before, last: after, broken: false };
        let chain = chains.entry(path.as_path()).or_insert(new);
        if !std::ptr::eq(chain.first, before) {
            chain.broken |= chain.last != before;
            chain.last = after;
        }
    }
    let mut plan = Plan::default();
    for (path, Chain { first, last, broken }) in chains {
        let now = now(path);
        if now == *first {
            continue;
        }
        if let State::Unkept { why, .. } = first {
            plan.lost.push((path.to_path_buf(), *why));
            continue;
        }
        let conflict = if now != *last {
            Some(Conflict::ChangedSince)
        } else if broken {
            Some(Conflict::ChangedBetween)
        } else {
            None
        };
        plan.moves.push(Move { path: path.to_path_buf(), now, target: first.clone(), conflict });
    }
    plan
}
