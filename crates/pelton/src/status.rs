//! What a submission is doing right now, for those who look from outside. The engine writes it at its edges; nobody
//! waits for anybody: a slow looker misses what was in between and sees the newest.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::watch;

use crate::hooks::HookEvent;

/// A snapshot of a submission in progress, or of the last one.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, text, tool};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([text("Four.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// use pelton::{Engine, Options, Phase, Prompt};
///
/// let mut engine = Engine::new(Options::new(dir.path(), endpoint))?;
/// let status = engine.watch(); // look at it from anywhere, or wait for a change
/// assert_eq!(status.borrow().phase, Phase::Initial);
/// engine.submit(Prompt::text("What is two and two?")?).for_each(async |_| {}).await;
/// assert_eq!(status.borrow().phase, Phase::Done);
/// assert!(status.borrow().waits.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// How far it is.
    pub phase: Phase,
    /// The model that is asked; the one of the options before the first submission.
    pub model: Arc<str>,
    /// Trips to the model, this one included.
    pub turn: u32,
    /// About how many tokens of the context window are in use.
    pub context_tokens: u64,
    /// Tokens the model has written in this submission: counted by its server, and estimated for the answer that is
    /// still coming.
    pub output_tokens: u64,
    /// What has to happen before it can go on.
    pub waits: Vec<Wait>,
    output_counted: u64,
    bytes_streamed: u64,
}

/// How far a submission is.
///
/// `Initial → SystemPromptConstruction → ProcessUserInput`, then `Done` if no model is needed; else rounds of
/// `CompactCheck → Streaming → ToolExec`, where an answer without calls leads to `RecoveryCheck` and from there to
/// `Done`, or over `Compact` (if that is what helps) back to the next round.
///
/// ```
/// use pelton::Phase;
///
/// assert_eq!(Phase::ToolExec.name(), "TOOL_EXEC");
/// assert!(Phase::Streaming.is_query_loop() && !Phase::ProcessUserInput.is_query_loop());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Nothing was submitted yet, or a submission has just begun.
    #[default]
    Initial,
    /// What the model is told besides the conversation is gathered.
    SystemPromptConstruction,
    /// The prompt is worked off: commands, mentions, hooks.
    ProcessUserInput,
    /// The context is made to fit, if it does not.
    CompactCheck,
    /// The model is asked and answers. Calls that are complete run already.
    Streaming,
    /// The answer is complete; its calls run.
    ToolExec,
    /// The answer has no calls: is there something to recover from, or a reason to go on?
    RecoveryCheck,
    /// The context is made smaller because the API refused it.
    Compact,
    /// The submission is over.
    Done,
}

/// What a submission waits for.
///
/// ```
/// use pelton::Wait;
///
/// /// Whether a person keeps the submission waiting.
/// fn is_our_turn(waits: &[Wait]) -> bool {
///     waits.iter().any(|wait| matches!(wait, Wait::Permission { .. } | Wait::Elicitation { .. }))
/// }
/// assert!(is_our_turn(&[Wait::Permission { call: "toolu_01".into() }]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wait {
    /// The model did not answer and will be asked again.
    Retry {
        /// When.
        until: Timestamp,
    },
    /// A person is asked whether a call may run.
    Permission {
        /// The call.
        call: Arc<str>,
    },
    /// A tool asks a person something.
    Elicitation {
        /// The call that asks.
        call: Arc<str>,
    },
    /// Hooks are running.
    Hook {
        /// The moment they were called at.
        event: HookEvent,
    },
}

impl Phase {
    /// Its name in figures and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Initial => "INITIAL",
            Self::SystemPromptConstruction => "SYSTEM_PROMPT_CONSTRUCTION",
            Self::ProcessUserInput => "PROCESS_USER_INPUT",
            Self::CompactCheck => "COMPACT_CHECK",
            Self::Streaming => "STREAMING",
            Self::ToolExec => "TOOL_EXEC",
            Self::RecoveryCheck => "RECOVERY_CHECK",
            Self::Compact => "COMPACT",
            Self::Done => "DONE",
        }
    }

    /// Whether it is inside of the loop that asks the model.
    pub fn is_query_loop(self) -> bool {
        matches!(
            self,
            Self::CompactCheck | Self::Streaming | Self::ToolExec | Self::RecoveryCheck | Self::Compact
        )
    }
}

/// As everywhere where nobody has counted.
const BYTES_PER_TOKEN: u64 = 4;

/// Where the status is written. Cheap to clone; never waits.
#[derive(Debug, Clone)]
pub(crate) struct Board(watch::Sender<Status>);

impl Board {
    pub fn new(model: &str) -> Self {
        Self(watch::Sender::new(Status { model: model.into(), ..Status::default() }))
    }

    /// A new handle to look with.
    pub fn watch(&self) -> watch::Receiver<Status> {
        self.0.subscribe()
    }

    /// A submission begins. However it ends, the board says so.
    pub fn begin(&self, model: &str, context_tokens: u64) -> Submitted {
        self.0.send_replace(Status { model: model.into(), context_tokens, ..Status::default() });
        Submitted(self.clone())
    }

    pub fn enter(&self, phase: Phase) {
        self.0.send_if_modified(|status| std::mem::replace(&mut status.phase, phase) != phase);
    }

    /// The model is about to be asked.
    pub fn asks(&self, model: &str, turn: u32, context_tokens: u64) {
        self.0.send_modify(|status| {
            status.phase = Phase::Streaming;
            if &*status.model != model {
                status.model = model.into();
            }
            (status.turn, status.context_tokens) = (turn, context_tokens);
        });
    }

    /// More of the answer has come.
    pub fn streamed(&self, bytes: usize) {
        self.0.send_if_modified(|status| {
            status.bytes_streamed += bytes as u64;
            let tokens = status.output_counted + status.bytes_streamed.div_ceil(BYTES_PER_TOKEN);
            std::mem::replace(&mut status.output_tokens, tokens) != tokens
        });
    }

    /// The answer that was coming does not count, or is counted by its server now.
    pub fn counted(&self, context_tokens: u64, output_tokens: u64) {
        self.0.send_modify(|status| {
            (status.output_tokens, status.output_counted, status.bytes_streamed) =
                (output_tokens, output_tokens, 0);
            status.context_tokens = context_tokens;
        });
    }

    /// So much is in the context by now.
    pub fn fills(&self, context_tokens: u64) {
        self.0.send_if_modified(|status| {
            std::mem::replace(&mut status.context_tokens, context_tokens) != context_tokens
        });
    }

    /// Something is waited for until the guard is dropped.
    #[must_use = "the wait is over when the guard is dropped"]
    pub fn wait(&self, wait: Wait) -> Waiting {
        self.0.send_modify(|status| status.waits.push(wait.clone()));
        Waiting { board: self.clone(), wait }
    }
}

/// A submission in progress, until it is dropped.
#[derive(Debug)]
pub(crate) struct Submitted(Board);

impl Drop for Submitted {
    fn drop(&mut self) {
        self.0.0.send_modify(|status| {
            status.phase = Phase::Done;
            status.waits.clear();
        });
    }
}

/// Something that is waited for, until it is dropped.
#[derive(Debug)]
pub(crate) struct Waiting {
    board: Board,
    wait: Wait,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.board.0.send_if_modified(|status| {
            let found = status.waits.iter().position(|wait| *wait == self.wait);
            found.map(|index| status.waits.remove(index)).is_some()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_seen_and_a_submission_that_is_let_go_is_over() {
        let board = Board::new("m");
        let mut watch = board.watch();
        let submitted = board.begin("m", 7);
        board.enter(Phase::CompactCheck);
        board.asks("other", 1, 9);
        let hook = board.wait(Wait::Hook { event: HookEvent::Stop });
        let again = board.wait(Wait::Hook { event: HookEvent::Stop });
        let seen = watch.borrow_and_update().clone();
        assert_eq!(
            (seen.phase, &*seen.model, seen.turn, seen.context_tokens),
            (Phase::Streaming, "other", 1, 9)
        );
        assert_eq!(seen.waits.len(), 2);
        drop(hook);
        assert_eq!(watch.borrow().waits.len(), 1, "two of the same kind are two");
        drop(submitted);
        drop(again);
        assert!(watch.has_changed().unwrap());
        assert_eq!((watch.borrow().phase, watch.borrow().waits.len()), (Phase::Done, 0));
    }

    #[test]
    fn an_answer_is_estimated_while_it_comes_and_then_counted() {
        let board = Board::new("m");
        let watch = board.watch();
        board.streamed(10);
        assert_eq!(watch.borrow().output_tokens, 3);
        board.counted(100, 5);
        assert_eq!((watch.borrow().output_tokens, watch.borrow().context_tokens), (5, 100));
        board.streamed(4);
        assert_eq!(watch.borrow().output_tokens, 6);
        // The attempt failed: what came of it does not count.
        board.counted(100, 5);
        assert_eq!(watch.borrow().output_tokens, 5);
    }
}
