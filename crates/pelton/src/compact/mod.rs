//! Keeping what the model is sent small enough: the cascade. Every level is planned here, by pure code, from an outline of
//! the view; `turn::live` makes the edits, asks whoever has to be asked, and tells what was done. Before every call, in
//! this order:
//!
//! | level | from | does |
//! |---|---|---|
//! | C0 `result_budget` | always | results that are too much for one message are shown in part |
//! | C1 snip | when asked | what somebody marked goes |
//! | C2 `micro` | 60 % | old bulky results lose their words |
//! | C3 `collapse` | 75 % | finished stretches give way to short summaries, made beforehand from 60 % on |
//! | C4 `auto` | 80 % | a summary takes the place of all but the newest rounds |
//! | last `local` | the limit | the oldest rounds go, and long results are cut: needs no model |

pub(crate) mod result_budget; // which results of a message are too much
pub(crate) mod micro; // C2: which results to clear
pub(crate) mod collapse; // C3: which stretch to fold, and what is told about it
pub(crate) mod auto; // C4: where to cut, and what takes the place of the rest
pub(crate) mod local; // the last step, which needs no model
pub(crate) mod breaker; // C6: when to stop trying
pub(crate) mod surgery; // what people ask for by hand
mod room; // how much there is room for
pub(crate) mod usage; // where the tokens are
mod words; // what models are asked

pub use room::{AutoWindow, CompactOptions, NotAutoWindow, Room};
pub use surgery::Surgery;
pub use usage::{ContextUsage, LevelPlan, Share};

pub(crate) use words::{FOLD, summary_request};

use crate::history::PartFacts;

/// A level of the cascade.
///
/// ```
/// use pelton::compact::Level;
///
/// assert_eq!(Level::Microcompact.name(), "microcompact");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Level {
    /// C0: results that are too much for one message.
    ResultBudget,
    /// C1: what somebody marked.
    Snip,
    /// C2: old bulky results.
    Microcompact,
    /// C3: finished stretches.
    Collapse,
    /// C4: a summary of all but the newest.
    Autocompact,
    /// C5: the same because the API refused the prompt.
    Reactive,
    /// The last step, which needs no model.
    Local,
    /// C8: the same because somebody asked for it.
    Manual,
    /// T11: what a request was refused for.
    Repair,
    /// An earlier edit was undone.
    Undo,
}

impl Level {
    /// The name in events and transcripts.
    pub fn name(self) -> &'static str {
        match self {
            Self::ResultBudget => "result_budget",
            Self::Snip => "snip",
            Self::Microcompact => "microcompact",
            Self::Collapse => "collapse",
            Self::Autocompact => "autocompact",
            Self::Reactive => "reactive",
            Self::Local => "local",
            Self::Manual => "manual",
            Self::Repair => "repair",
            Self::Undo => "undo",
        }
    }

    /// Whether it puts a summary, or a note, in the place of what was said: what `/uncompact` undoes.
    pub(crate) fn is_summary(name: &str) -> bool {
        [Self::Collapse, Self::Autocompact, Self::Reactive, Self::Manual, Self::Local]
            .iter()
            .any(|level| level.name() == name)
    }
}

/// Where answers begin: everything between two of these is one round, calls and results together.
pub(crate) fn rounds(outline: &[PartFacts]) -> Vec<usize> {
    let begins = |index: &usize| outline[*index].is_answer() && !outline[index - 1].is_answer();
    (1..outline.len()).filter(begins).collect()
}

/// About how many tokens these cost.
pub(crate) fn weight(parts: &[PartFacts]) -> u64 {
    parts.iter().map(|part| part.tokens).sum()
}

#[cfg(test)]
mod tests;
