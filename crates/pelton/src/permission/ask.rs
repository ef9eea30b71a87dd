//! Questions to whoever sits in front of the session, about calls that the rules neither allow nor deny.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::Mutex;

use super::gate::Access;
use super::rules::{Cause, Mode};
use super::update::{Behavior, Change, Destination, Update};

/// Decides about calls: a person, or a program in their place.
pub trait Asker: Send + Sync {
    /// Answers a question. The future is dropped as soon as nobody wants the answer any more: the user interrupts, the
    /// model's answer is discarded, or a hook decides first.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer>;

    /// Whether it takes several questions at once. A person takes one at a time; a program may take all that there
    /// are.
    fn takes_many(&self) -> bool {
        false
    }
}

/// A call somebody has to decide about.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Question {
    /// The tool.
    pub tool: Arc<str>,
    /// The call.
    pub call: Arc<str>,
    /// Its input, as it would run.
    pub input: Value,
    /// What it would touch.
    pub access: Access,
    /// Where its relative words start.
    pub cwd: PathBuf,
    /// Why it is asked, in a sentence.
    pub why: String,
    /// Why it is asked, for programs.
    pub cause: Cause,
    /// What would let this call and its like run without a question. Each may be answered with.
    pub suggestions: Vec<Update>,
    /// The sub-agent that calls, if it is one.
    pub agent_id: Option<String>,
}

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It runs.
    Allow {
        /// With this input instead of its own. It is checked like any other; what rules deny stays denied.
        updated_input: Option<Value>,
        /// What changes with it, for the calls behind it and for later submissions.
        updates: Vec<Update>,
    },
    /// It does not.
    Deny {
        /// What the model reads instead of a result.
        message: String,
        /// The submission ends, as if the user had interrupted it.
        interrupt: bool,
    },
}

impl Answer {
    /// It runs as it is.
    pub fn allow() -> Self {
        Self::Allow { updated_input: None, updates: Vec::new() }
    }

    /// It does not run, and the model reads why.
    pub fn deny(message: impl Into<String>) -> Self {
        Self::Deny { message: message.into(), interrupt: false }
    }
}

/// The way to an [`Asker`]. All clones are one, so that a person is asked one thing at a time, whoever asks.
#[derive(Clone)]
pub struct Questions {
    asker: Arc<dyn Asker>,
    turn: Arc<Mutex<()>>,
}

impl Questions {
    /// Questions go to `asker`.
    pub fn to(asker: impl Asker + 'static) -> Self {
        Self { asker: Arc::new(asker), turn: Arc::default() }
    }

    /// Whether several may be asked at once.
    pub fn takes_many(&self) -> bool {
        self.asker.takes_many()
    }

    /// Asks when it is this question's turn. Dropping the future takes the question back.
    pub async fn ask(&self, question: &Question) -> Answer {
        let _turn = match self.takes_many() {
            true => None,
            false => Some(self.turn.lock().await),
        };
        // A host's panic is its own: the session goes on, without the call.
        let answer = AssertUnwindSafe(async { self.asker.ask(question).await }).catch_unwind().await;
        answer.unwrap_or_else(|_| Answer::deny("Whoever decides about calls has crashed, so it was not run."))
    }
}

/// What would let a call and its like run without a question.
pub fn suggestions(tool: &str, access: &Access, cause: &Cause) -> Vec<Update> {
    let outside = match cause {
        // Whatever is added, these are asked about.
        Cause::Rule(_) | Cause::Protected(_) | Cause::Hook | Cause::Person | Cause::Repetition => {
            return Vec::new();
        }
        Cause::Outside(path) => path.parent(),
        Cause::Unapproved => None,
    };
    let allow = |text: String, destination| {
        let rule = text.parse().ok()?;
        Some(Update { change: Change::AddRules(Behavior::Allow, vec![rule]), destination })
    };
    match access {
        // A star would mean more than is shown.
        Access::Shell(command) if command.contains('*') || command != command.trim() => Vec::new(),
        Access::Shell(command) => {
            allow(format!("{tool}({command})"), Destination::LocalSettings).into_iter().collect()
        }
        Access::Edit(_) => {
            let directory = outside.map(|path| Change::AddDirectories(vec![path.to_path_buf()]));
            directory.into_iter().chain([Change::SetMode(Mode::AcceptEdits)]).map(Update::session).collect()
        }
        Access::Read(_) => {
            let path = outside.and_then(|path| path.to_str());
            let plain = path.filter(|path| !path.contains(['*', '?', '[', ']', '{', '}', '!', '\\']));
            let rule = plain.map(|path| format!("Read(/{}/**)", path.trim_end_matches('/')));
            rule.and_then(|rule| allow(rule, Destination::Session)).into_iter().collect()
        }
        Access::Agent(kind) => {
            allow(format!("{tool}({kind})"), Destination::LocalSettings).into_iter().collect()
        }
        Access::Person(_) => Vec::new(),
        Access::Nothing => allow(tool.to_owned(), Destination::LocalSettings).into_iter().collect(),
    }
}

#[cfg(test)]
#[path = "ask_tests.rs"]
mod tests;
