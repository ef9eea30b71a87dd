//! Questions to whoever sits in front of the session, about calls that the rules neither allow nor deny.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::Mutex;

use super::decision::{Cause, Part};
use super::gate::Access;
use super::rule::Rule;
use super::update::Update;

/// Decides about calls: a person, or a program in their place.
///
/// ```
/// use futures::future::BoxFuture;
/// use pelton::permission::{Access, Answer, Asker, Question, Questions};
///
/// /// Files may be changed, nothing else.
/// struct FilesOnly;
///
/// impl Asker for FilesOnly {
///     fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
///         let answer = match &question.access {
///             Access::Edit(_) => Answer::allow(),
///             _ => Answer::deny(format!("{} is not for you.", question.tool)),
///         };
///         Box::pin(async { answer })
///     }
/// }
///
/// let questions = Questions::to(FilesOnly); // `Options::questions` is where it goes
/// assert!(!questions.takes_many());
/// ```
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
///
/// ```
/// use pelton::permission::Question;
///
/// /// What a person is shown.
/// fn shown(question: &Question) -> String {
///     let commands: Vec<String> =
///         question.parts.iter().map(|part| format!("  {} ({})", part.text, part.verdict.name())).collect();
///     format!("{} wants to run: {}\n{}", question.tool, question.why, commands.join("\n"))
/// }
/// ```
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
    /// The rule that wants it to be asked, if one does.
    pub rule: Option<Rule>,
    /// The commands of a line, each with a verdict of its own.
    pub parts: Vec<Part>,
    /// What would let this call and its like run without a question. Each may be answered with.
    pub suggestions: Vec<Update>,
    /// The sub-agent that calls, if it is one.
    pub agent_id: Option<String>,
    /// The server that serves the tool, if one does: `{name, source}`, as in the protocol.
    pub server: Option<Value>,
}

/// What becomes of a call.
///
/// ```
/// use pelton::permission::{Answer, Behavior, Change, Update};
///
/// // This call and its like.
/// let rule = Update::session(Change::AddRules(Behavior::Allow, vec!["Bash(make:*)".parse()?]));
/// let always = Answer::Allow { updated_input: None, updates: vec![rule] };
/// assert_ne!(always, Answer::allow());
/// assert!(matches!(Answer::deny("Not today."), Answer::Deny { interrupt: false, .. }));
/// # Ok::<(), pelton::permission::RuleError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
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
///
/// ```
/// use futures::future::BoxFuture;
/// use pelton::permission::{Answer, Asker, Question, Questions};
///
/// struct Nobody;
///
/// impl Asker for Nobody {
///     fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Answer> {
///         Box::pin(async { Answer::deny("Nobody is here.") })
///     }
/// }
///
/// let questions = Questions::to(Nobody);
/// let same = questions.clone(); // for another engine: whoever answers is asked one thing at a time
/// assert!(!same.takes_many());
/// ```
#[derive(Clone)]
pub struct Questions {
    asker: Arc<dyn Asker>,
    turn: Arc<Mutex<()>>,
    /// How long an answer is waited for.
    time: Option<Duration>,
}

impl Questions {
    /// Questions go to `asker`.
    pub fn to(asker: impl Asker + 'static) -> Self {
        Self { asker: Arc::new(asker), turn: Arc::default(), time: None }
    }

    /// Whoever does not answer in this time has said no.
    pub(crate) fn within(self, time: Option<Duration>) -> Self {
        Self { time, ..self }
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
        let asked = AssertUnwindSafe(async { self.asker.ask(question).await }).catch_unwind();
        let answer = match self.time {
            None => asked.await,
            Some(time) => match tokio::time::timeout(time, asked).await {
                Ok(answer) => answer,
                Err(_) => return Answer::deny("Nobody answered in time, so it was not run."),
            },
        };
        answer.unwrap_or_else(|_| Answer::deny("Whoever decides about calls has crashed, so it was not run."))
    }
}
