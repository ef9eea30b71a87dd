//! One conversation: what is submitted, what comes of it, what it costs.

mod arriving; // servers of tools that are on their way
mod asides; // questions of tools beside the conversation
mod beside; // what happens between submissions
mod calling; // calls that no model made
mod children; // sub-agents
mod clear; // another conversation in the place of this one
mod elicited; // questions of servers to people, which hooks hear of
mod followed; // skills that agents follow
mod gather; // what is found out about the place before the first prompt
mod hands; // what a submission works with
mod house; // commands that are always there
mod informed; // what tools and hooks get to know
mod input; // from what was typed to what the model is told
mod joining; // what joins a session that runs
mod kin; // what a tree of agents shares
mod late; // a permission that was answered after its process was gone
mod menu; // what prompts may call by name
mod models; // which are asked, and what they can hold
mod opening; // how a session begins
mod outcome; // from the reason for the end to the result
mod prefix; // what stands in front of every request
mod reach; // what hooks that are no programs are reached by
mod reshape; // what people do to the context by hand
mod small_talk; // lines for people who watch, by a small model
mod start; // how an engine is put together
mod stated; // what there is, told at the beginning
mod submission; // from what was submitted to its result
mod turns; // the loop of one submission

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pelton_model::Ask;
use pelton_model::stream::{Queued, stream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::context::memory::Memory;
use crate::event::Event;
use crate::file_history::FileHistory;
use crate::gauge::Gauge;
use crate::history::Entry;
use crate::interrupt::Interrupter;
use crate::limits::EVENTS_QUEUED_MAX;
use crate::options::Options;
use crate::permission::Permissions;
use crate::prompt::Prompt;
use crate::queue::Queue;
use crate::secrets::for_programs;
use crate::session::Session;
use crate::skills::Skills;
use crate::status::{Board, Status};
use crate::tools::background::Background;
use crate::tools::builtin::tasks;
use crate::tools::builtin::todo::Todos;
use crate::tools::file_memory::FileMemory;
use crate::tools::offer::Offer;
use crate::tools::structured::StructuredOutput;
use crate::turn::Bystander;
use crate::turn::live::{CacheAudit, FileNews};

use arriving::Arriving;
pub use beside::{NotColored, SESSION_COLORS, Tasks, Title};
use children::Roster;
use informed::BesideRecord;
pub use joining::{Joins, NotJoined, RootJoins};
use kin::Kin;
pub use menu::Menu;
use models::Panel;
use opening::{Begun, ToTell};
pub use reshape::{ReshapeError, Reshaped};
pub use small_talk::Namer;
pub use start::StartError;

/// One conversation. Submit prompts one after the other; each gives a stream of events that ends in a result.
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
/// use pelton::{EndReason, Engine, Event, Options, Prompt};
///
/// let mut engine = Engine::new(Options::new(dir.path(), endpoint))?;
/// let mut events = engine.submit(Prompt::text("What is two and two?")?);
/// while let Some(event) = events.next().await {
///     if let Event::Result(outcome) = event {
///         assert_eq!(outcome.text, "Four.");
///     }
/// }
/// drop(events);
/// engine.close(EndReason::Other).await;
/// # Ok(())
/// # }
/// ```
pub struct Engine {
    options: Options,
    /// The question without its messages: the same bytes for the whole session.
    question: Ask,
    session: Session,
    structured: Option<Arc<StructuredOutput>>,
    offer: Offer,
    arriving: Option<Arriving>,
    kin: Kin,
    beside: BesideRecord,
    /// Where the next call starts.
    cwd: Arc<Mutex<PathBuf>>,
    /// Whether the hooks of the session's start have run.
    begun: Begun,
    to_tell: ToTell,
    /// What joins it while it runs.
    joins: Joins,
    /// The prompt that is worked on, as hooks know it.
    prompt_id: Option<Uuid>,
    interrupter: Interrupter,
    queue: Queue,
    board: Board,
    gauge: Gauge,
    bystander: Bystander,
    background: Background,
    /// The agents among what runs there.
    roster: Roster,
    todos: Todos,
    cache: CacheAudit,
    tasks: tasks::Tasks,
    memory: Memory,
    skills: Skills,
    file_news: FileNews,
    /// The memory files were looked at, or what was told of them in an earlier process was recalled.
    has_gathered: bool,
    /// The model knows that plan mode is on.
    plan_told: bool,
    /// How often hooks in the background have woken it since somebody said something.
    woken: u32,
    panel: Panel,
}

/// Why a session ends.
///
/// ```
/// // What hooks of the event `SessionEnd` read after `engine.close(EndReason::Logout)`.
/// assert_eq!(pelton::EndReason::Logout.name(), "logout");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndReason {
    /// The conversation was cleared.
    Clear,
    /// Another session takes its place.
    Resume,
    /// The user logged out.
    Logout,
    /// The user left.
    PromptInputExit,
    /// Anything else: the work is done, or a signal came.
    Other,
}

impl EndReason {
    /// The name hooks read.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::Resume => "resume",
            Self::Logout => "logout",
            Self::PromptInputExit => "prompt_input_exit",
            Self::Other => "other",
        }
    }
}

impl Engine {
    /// The session's id.
    pub fn session_id(&self) -> Uuid {
        self.session.id
    }

    /// Whether files that ignore files name are suggested to clients, too.
    pub fn suggests_ignored(&self) -> bool {
        self.options.suggest_ignored
    }

    /// The line for the shell that says which files are suggested to clients, if one does, and what it runs with.
    pub fn file_suggestion(&self) -> Option<(String, Vec<(OsString, OsString)>)> {
        let command = self.options.file_suggestion.clone()?;
        let mut env: Vec<_> = for_programs(&self.options.env).cloned().collect();
        env.push(("CLAUDE_PROJECT_DIR".into(), self.options.project().as_os_str().to_owned()));
        Some((command, env))
    }

    /// The file the session is recorded in, if it is.
    pub fn transcript_file(&self) -> Option<PathBuf> {
        self.session.file()
    }

    /// What was said so far.
    pub fn history(&self) -> &[Arc<Entry>] {
        self.session.history.entries()
    }

    /// Which files count as read: may be given to another engine in its options.
    pub fn files(&self) -> Arc<FileMemory> {
        Arc::clone(&self.options.files)
    }

    /// What was done to files, to undo it; `None` if that is not kept.
    pub fn file_history(&self) -> Option<FileHistory> {
        self.kin.file_history.clone()
    }

    /// What may run, as it stands now. It may be changed at any time, also while a submission runs.
    pub fn permissions(&self) -> Permissions {
        self.kin.permissions.clone()
    }

    /// A handle that ends the running submission.
    pub fn interrupter(&self) -> Interrupter {
        self.interrupter.clone()
    }

    /// A handle to look at what the engine is doing, and to wait until that changes. Looking never holds it up; a slow
    /// looker sees the newest and misses what was in between.
    pub fn watch(&self) -> watch::Receiver<Status> {
        self.board.watch()
    }

    /// Where prompts wait that come while a submission runs. Those with [`Priority::Next`](crate::Priority::Next) are
    /// read by it; the others by [`submit_queued`](Self::submit_queued).
    pub fn queue(&self) -> Queue {
        self.queue.clone()
    }

    /// Submits what waits in the queue, as one prompt. `None` if nothing does.
    pub fn submit_queued(&mut self) -> Option<impl Queued<Item = Event> + Send + Unpin + '_> {
        let held = self.queue.take_for_submission()?;
        let prompt = held.prompt()?;
        let cancel = self.interrupter.fresh();
        Some(stream(EVENTS_QUEUED_MAX, move |events| self.run(prompt, Some(held), cancel, events)))
    }

    /// Submits a prompt. The stream's last event is the result; until then it must be pulled, and dropping it
    /// cancels everything the submission started.
    pub fn submit(&mut self, prompt: Prompt) -> impl Queued<Item = Event> + Send + Unpin + '_ {
        // Not when it is first pulled: whoever interrupts in between means this submission.
        let cancel = self.interrupter.fresh();
        stream(EVENTS_QUEUED_MAX, move |events| self.run(prompt, None, cancel, events))
    }

    /// Calls the hooks of the session's start now, and those that set the project up if that is [wanted](Options::setup),
    /// instead of with the first prompt. Gives what there is to tell of it.
    pub async fn begin(&mut self) -> Vec<Event> {
        let cancel = self.interrupter.fresh();
        let (hooks, mut told) = (self.session_hooks(&cancel), Vec::new());
        let stopped = self.begin_session(self.beginning(), &hooks, &cancel, &mut told).await;
        // There is no submission yet that could end with it.
        told.extend(stopped.map(|content| Event::Informational { content, prevents_continuation: false }));
        told
    }

    /// Lets commands in the background end by themselves for a while, then ends them.
    pub async fn settle_background(&self, patience: Duration) {
        self.background.finish(patience, self.options.tool_limits.kill_grace).await;
    }

    /// Ends the session, with whatever runs in its background: its hooks are told, and everything recorded is on the disk.
    pub async fn close(mut self, reason: EndReason) {
        if self.begun != Begun::No {
            let hooks = self.session_hooks(&CancellationToken::new());
            let _ = hooks.session_end(reason.name()).await;
        }
        self.kin.hooks.end_background().await;
        self.settle_background(Duration::ZERO).await;
        self.session.note_spent_at_last(&self.kin.spending.by_model());
        // What could not be written was said by the last result.
        let _ = self.session.sync().await;
    }

    fn cwd(&self) -> PathBuf {
        self.cwd.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
