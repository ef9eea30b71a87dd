//! C4: a summary takes the place of all but the newest rounds. What must not be lost is not left to the summary: it is
//! told again, from where it comes.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::PathBuf;

use bytes::Bytes;

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
    /// Little, and nothing where there is no more than one exchange: somebody asked for it.
    ByHand,
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
        Keep::Little | Keep::ByHand => (KEPT_PERCENT_AGGRESSIVE, KEPT_PERCENT_OF_SAID_AGGRESSIVE),
    };
    let most = room.percent(of_room).min(weight(outline) * of_said / 100);
    let cuts = cuts(outline);
    let fits = |cut: &usize| weight(&outline[*cut..]) <= most;
    // Something must have been answered, or there is nothing to sum up.
    let says_something = |cut: &usize| outline[..*cut].iter().any(PartFacts::is_answer);
    let cut = cuts.iter().copied().find(fits).or(cuts.last().copied()).filter(says_something);
    let whole = Some(outline.len()).filter(|_| keep == Keep::ByHand).filter(says_something);
    let cut = cut.or(whole)?;
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
    pub first_request: Option<Asked>,
    /// The request that is being worked on, unless it stands behind the summary.
    pub request: Option<Asked>,
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

/// Something the user asked for, which is told again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Which it is.
    pub id: EntryId,
    /// What it is made of, as it was sent.
    pub blocks: Vec<AskedBlock>,
    /// The beginning and the end of its words, and where all of them are, if there are many.
    pub short: Option<String>,
}

/// A block of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedBlock {
    /// Words; anything else is a picture, a document or the like.
    pub is_words: bool,
    /// The block, as it was sent.
    pub json: Bytes,
}

impl AskedBlock {
    /// Its words, if it is made of them.
    pub fn words(&self) -> Option<String> {
        #[derive(serde::Deserialize)]
        struct Words {
            text: String,
        }
        self.is_words.then(|| serde_json::from_slice(&self.json).ok().map(|Words { text }| text))?
    }
}

impl Asked {
    /// Leaves only a part of its words. Tells whether there was more.
    pub fn shorten(&mut self) -> bool {
        let Some(short) = self.short.take() else { return false };
        self.blocks.retain(|block| !block.is_words);
        let json = serde_json::json!({"type": "text", "text": short}).to_string();
        self.blocks.insert(0, AskedBlock { is_words: true, json: Bytes::from(json) });
        true
    }

    /// Leaves out all that is not words. Tells whether there was anything.
    pub fn leave_out_media(&mut self) -> bool {
        let before = self.blocks.len();
        self.blocks.retain(|block| block.is_words);
        if self.blocks.is_empty() {
            let json = serde_json::json!({"type": "text", "text": LEFT_OUT}).to_string();
            self.blocks.push(AskedBlock { is_words: true, json: Bytes::from(json) });
        }
        self.blocks.len() < before
    }
}

/// One block of what takes the place of what was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// Words of ours.
    Words(String),
    /// A block as it was sent before.
    Again(Bytes),
}

/// Where in all of it requests stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// The first one.
    pub first_request: Option<Range<usize>>,
    /// The newest.
    pub request: Option<Range<usize>>,
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
    /// The same in about so many tokens: what is least needed goes first, and the request never. All but files, skills and names
    /// of tools, which can be had again, is told whole as long as it fits within `limit`.
    #[must_use]
    pub fn within(mut self, most: u64, limit: u64, tokens_of: impl Fn(&Said) -> u64) -> Self {
        let tokens = |sources: &Self| sources.told(InPlace::Note).0.iter().map(&tokens_of).sum::<u64>();
        // What does not fit even alone takes nothing else with it.
        self.memory.take_if(|memory| tokens_of(&Said::Words(memory.text.clone())) > most.max(limit));
        let needed = Self { files: Vec::new(), skills: Vec::new(), shelved: None, ..self.clone() };
        let most = most.max(tokens(&needed).min(limit));
        while tokens(&self) > most && self.let_go() {}
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
        let is_first = self.is_first();
        self.shelved.take().is_some()
            || self.first_request.take_if(|_| !is_first).is_some()
            || self.shorten_request()
            || self.memory.take().is_some()
            || self.plan.take().is_some()
            || !std::mem::take(&mut self.background).is_empty()
            || !std::mem::take(&mut self.todos).is_empty()
            || self.request.as_mut().is_some_and(Asked::leave_out_media)
    }

    /// Leaves less of what was asked for, where even that is too much: first of the first request, then of the words of the
    /// newest, and its pictures at last. Tells whether there was more.
    pub fn ask_less(&mut self) -> bool {
        let is_first = self.is_first();
        let first = self.first_request.as_mut().filter(|_| !is_first);
        first.is_some_and(|first| first.shorten() || first.leave_out_media())
            || self.shorten_request()
            || self.request.as_mut().is_some_and(Asked::leave_out_media)
    }

    /// Leaves only a part of the request's words. Tells whether there was more.
    fn shorten_request(&mut self) -> bool {
        self.request.as_mut().is_some_and(Asked::shorten)
    }

    /// Whether the first request is the one that is being worked on.
    fn is_first(&self) -> bool {
        let id = |asked: &Option<Asked>| asked.as_ref().map(|asked| asked.id);
        id(&self.first_request) == id(&self.request)
    }

    /// The blocks that take the place of what was said, in order, and where requests stand among them.
    pub fn told(&self, in_place: InPlace<'_>) -> (Vec<Said>, Places) {
        let (mut told, mut places) = (vec![Said::Words(self.surroundings.clone())], Places::default());
        let words = |text: &Option<String>| text.clone().map(Said::Words);
        told.extend(self.memory.as_ref().map(|memory| Said::Words(memory.text.clone())));
        told.extend(words(&self.shelved));
        told.push(Said::Words(match in_place {
            InPlace::Note => LEFT_OUT.to_owned(),
            InPlace::Summary(summary) => format!(
                "<conversation-summary>\nThe earlier part of this conversation is not shown any more. This is a summary of \
                 it; what comes after it here is as it is now.\n\n{}\n</conversation-summary>",
                summary.trim()
            ),
        }));
        let mut ask = |what: &str, asked: &Asked| {
            told.push(Said::Words(format!("{what}, word for word:")));
            let from = told.len();
            told.extend(asked.blocks.iter().map(|block| Said::Again(block.json.clone())));
            from..told.len()
        };
        match (&self.first_request, &self.request) {
            (Some(_), Some(now)) if self.is_first() => {
                places.request = Some(ask("The user's request", now));
                places.first_request.clone_from(&places.request);
            }
            (first, now) => {
                places.first_request = first.as_ref().map(|first| ask("The user's first request", first));
                places.request =
                    now.as_ref().map(|now| ask("The user's latest request, which you are working on", now));
            }
        }
        told.extend(
            self.plan
                .as_ref()
                .map(|plan| Said::Words(format!("The plan the user approved:\n{}", plan.trim()))),
        );
        told.extend(words(&self.mode));
        if !self.todos.is_empty() {
            told.push(Said::Words(told_todos(&self.todos)));
        }
        told.extend(self.skills.iter().map(|(_, text)| Said::Words(text.clone())));
        if !self.files.is_empty() {
            told.push(Said::Words(told_files(&self.files)));
        }
        if !self.background.is_empty() {
            let running = self.background.join("\n");
            told.push(Said::Words(format!("Still running in the background:\n{running}")));
        }
        (told, places)
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
