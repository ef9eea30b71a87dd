//! C4: a summary takes the place of all but the newest rounds. What must not be lost is not left to the summary: it is
//! told again, from where it comes.

use std::fmt::Write as _;

use super::{Room, rounds, weight};
use crate::history::{EntryId, PartFacts, Role};

/// What stays beside the summary, in percent of the room and of what was said.
const KEPT_PERCENT: u8 = 20;
const KEPT_PERCENT_OF_SAID: u64 = 40;
/// What stays when space is scarce.
const KEPT_PERCENT_AGGRESSIVE: u8 = 5;
const KEPT_PERCENT_OF_SAID_AGGRESSIVE: u64 = 20;

/// How much is kept beside a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The newest rounds.
    Some,
    /// Little.
    Little,
}

/// What gives way to a summary: everything between two entries, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The first.
    pub from: EntryId,
    /// The last.
    pub to: EntryId,
    /// How many parts stand behind it.
    pub kept: usize,
}

/// Where to cut. `None` if there is nothing but the newest exchange.
pub fn cut(outline: &[PartFacts], room: Room, keep: Keep) -> Option<Cut> {
    let (of_room, of_said) = match keep {
        Keep::Some => (KEPT_PERCENT, KEPT_PERCENT_OF_SAID),
        Keep::Little => (KEPT_PERCENT_AGGRESSIVE, KEPT_PERCENT_OF_SAID_AGGRESSIVE),
    };
    let most = room.percent(of_room).min(weight(outline) * of_said / 100);
    let cuts = cuts(outline);
    let newest = *cuts.last()?;
    let fits = |cut: &usize| weight(&outline[*cut..]) <= most;
    let cut = cuts.iter().copied().find(fits).unwrap_or(newest);
    // Something must have been answered, or there is nothing to sum up.
    outline[..cut].iter().find(|part| part.is_answer())?;
    let (from, to) = super::local::between(outline, 0, cut)?;
    Some(Cut { from, to, kept: outline.len() - cut })
}

/// What is told again, from where it comes.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Instruction files and surroundings.
    pub instructions: Vec<String>,
    /// The first request of the conversation.
    pub first_request: Option<String>,
    /// The request that is being worked on, unless it stands behind the summary.
    pub request: Option<String>,
    /// The plan that was approved.
    pub plan: Option<String>,
    /// The rules of the mode that is on, if it has any.
    pub mode: Option<String>,
    /// What is to be done, a line each.
    pub todos: Vec<String>,
    /// Files that were read or changed last, and what they hold now.
    pub files: Vec<(String, String)>,
    /// Skills that were loaded.
    pub skills: Vec<String>,
    /// What runs in the background.
    pub background: Vec<String>,
}

impl Sources {
    /// The texts that take the place of what was said, in order.
    pub fn texts(&self, summary: &str) -> Vec<String> {
        let mut texts = self.instructions.clone();
        texts.push(format!(
            "<conversation-summary>\nThe earlier part of this conversation is not shown any more. This is a summary of it; what \
             comes after it here is as it is now.\n\n{}\n</conversation-summary>",
            summary.trim()
        ));
        let asked = |what: &str, words: &str| format!("{what}, word for word:\n{words}");
        match (&self.first_request, &self.request) {
            (Some(first), Some(now)) if first == now => texts.push(asked("The user's request", now)),
            (first, now) => {
                texts.extend(first.as_ref().map(|first| asked("The user's first request", first)));
                texts.extend(
                    now.as_ref().map(|now| asked("The user's latest request, which you are working on", now)),
                );
            }
        }
        texts.extend(self.plan.as_ref().map(|plan| format!("The plan the user approved:\n{}", plan.trim())));
        texts.extend(self.mode.clone());
        if !self.todos.is_empty() {
            texts.push(format!("The list of what is to be done:\n{}", self.todos.join("\n")));
        }
        texts.extend(self.skills.iter().cloned());
        if !self.files.is_empty() {
            let mut text = String::from("Files you worked with last, as they are now:");
            for (path, content) in &self.files {
                let _ = write!(text, "\n\n<file path=\"{path}\">\n{content}\n</file>");
            }
            texts.push(text);
        }
        if !self.background.is_empty() {
            texts.push(format!("Still running in the background:\n{}", self.background.join("\n")));
        }
        texts
    }
}

/// Where it can be cut: where answers begin, and where a prompt begins a message of its own.
fn cuts(outline: &[PartFacts]) -> Vec<usize> {
    let mut cuts = rounds(outline);
    let asks =
        |index: &usize| matches!(outline[*index].role, Role::Prompt { .. }) && outline[index - 1].is_answer();
    cuts.extend((1..outline.len()).filter(asks));
    cuts.sort_unstable();
    cuts
}
