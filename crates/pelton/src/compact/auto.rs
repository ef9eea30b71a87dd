//! C4: a summary takes the place of all but the newest rounds. What must not be lost is not left to the summary: it is
//! told again, from where it comes.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::{Room, rounds, weight};
use crate::history::{EntryId, LEFT_OUT, PartFacts, Role};

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
    /// Where the work is done.
    pub surroundings: String,
    /// Instruction files.
    pub memory: Option<Memory>,
    /// Tools that are known by name only.
    pub shelved: Option<String>,
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
    /// Files that were read or changed last, the newest first, and what they hold now.
    pub files: Vec<(String, String)>,
    /// Skills that were loaded, by their files, the newest last.
    pub skills: Vec<(PathBuf, String)>,
    /// What runs in the background.
    pub background: Vec<String>,
}

/// Instruction files.
#[derive(Debug, Clone)]
pub struct Memory {
    /// What they say.
    pub text: String,
    /// Which they are.
    pub files: Vec<PathBuf>,
}

/// What stands for what was said.
#[derive(Debug, Clone, Copy)]
pub enum InPlace<'a> {
    /// A summary.
    Summary(&'a str),
    /// Nothing but a note that it was left out.
    Note,
}

impl Sources {
    /// The same in about so many tokens: what is least needed goes first, and the request never.
    #[must_use]
    pub fn within(mut self, most: u64, tokens_of: impl Fn(&str) -> u64) -> Self {
        // What does not fit even alone takes nothing else with it.
        self.memory.take_if(|memory| tokens_of(&memory.text) > most);
        while self.texts(InPlace::Note).iter().map(|text| tokens_of(text)).sum::<u64>() > most
            && self.let_go()
        {}
        self
    }

    /// Leaves out what is least needed of all there is. Tells whether there was anything.
    fn let_go(&mut self) -> bool {
        if self.files.pop().is_some() {
            return true;
        }
        if !self.skills.is_empty() {
            // The oldest.
            self.skills.remove(0);
            return true;
        }
        self.shelved.take().is_some()
            || self.first_request.take_if(|first| Some(first) != self.request.as_mut()).is_some()
            || self.memory.take().is_some()
            || self.plan.take().is_some()
            || !std::mem::take(&mut self.background).is_empty()
            || !std::mem::take(&mut self.todos).is_empty()
    }

    /// The texts that take the place of what was said, in order.
    pub fn texts(&self, in_place: InPlace<'_>) -> Vec<String> {
        let mut texts = vec![self.surroundings.clone()];
        texts.extend(self.memory.as_ref().map(|memory| memory.text.clone()));
        texts.extend(self.shelved.clone());
        texts.push(match in_place {
            InPlace::Note => LEFT_OUT.to_owned(),
            InPlace::Summary(summary) => format!(
                "<conversation-summary>\nThe earlier part of this conversation is not shown any more. This is a summary of \
                 it; what comes after it here is as it is now.\n\n{}\n</conversation-summary>",
                summary.trim()
            ),
        });
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
            texts.push(told_todos(&self.todos));
        }
        texts.extend(self.skills.iter().map(|(_, text)| text.clone()));
        if !self.files.is_empty() {
            texts.push(told_files(&self.files));
        }
        if !self.background.is_empty() {
            texts.push(format!("Still running in the background:\n{}", self.background.join("\n")));
        }
        texts
    }
}

/// How the list of what is to be done is told.
pub fn told_todos(todos: &[String]) -> String {
    format!("The list of what is to be done:\n{}", todos.join("\n"))
}

/// How files are told, by their paths and what they hold.
pub fn told_files(files: &[(String, String)]) -> String {
    let mut text = String::from("Files you worked with last, as they are now:");
    for (path, content) in files {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n\n<file path=\"{path}\">\n{content}\n</file>");
    }
    text
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
