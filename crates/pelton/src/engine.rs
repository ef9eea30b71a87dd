//! One conversation: what is submitted, what comes of it, what it costs.

mod arriving; // servers of tools that are on their way
mod asides; // questions of tools beside the conversation
mod beside; // what happens between submissions
mod calling; // calls that no model made
mod children; // sub-agents
mod clear; // another conversation in the place of this one
mod elicited; // questions of servers to people, which hooks hear of
mod followed; // skills that agents follow
mod house; // commands that are always there
mod gather; // what is found out about the place before the first prompt
mod input; // from what was typed to what the model is told
mod late; // a permission that was answered after its process was gone
mod joining; // what joins a session that runs
mod kin; // what a tree of agents shares
mod menu; // what prompts may call by name
mod models; // which are asked, and what they can hold
mod informed; // what tools and hooks get to know
mod prefix; // what stands in front of every request
mod outcome; // from the reason for the end to the result
mod turns; // the loop of one submission
mod small_talk; // lines for people who watch, by a small model
mod stated; // what there is, told at the beginning
mod reach; // what hooks that are no programs are reached by
mod reshape; // what people do to the context by hand

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pelton_model::stream::{Queued, Sender, stream};
use pelton_model::{Ask, Prefix, Speed, TaskBudget, catalogue};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::account::Tally;
use crate::context::memory::Memory;
use crate::dials::Dials;
use crate::event::Event;
use crate::file_history::{Beside, FileHistory};
use crate::gauge::Gauge;
use crate::history::Entry;
use crate::hooks::{HookEvent, WatchedFiles};
use crate::interrupt::Interrupter;
use crate::limits::EVENTS_QUEUED_MAX;
use crate::options::{LateAnswer, Options};
use crate::permission::Permissions;
use crate::prompt::Prompt;
use crate::queue::{Held, Queue};
use crate::sandbox::{Sandbox, Start};
use crate::secrets::for_programs;
use crate::session::Session;
use crate::skills::Skills;
use crate::status::{Board, Status};
use crate::tools::agent::{self, AgentTool, Agents};
use crate::tools::ahead::Ahead;
use crate::tools::background::Background;
use crate::tools::bench::Bench;
use crate::tools::builtin::todo::Todos;
use crate::tools::builtin::{ask_user, plan, tasks, web_search};
use crate::tools::changed::ChangedFiles;
use crate::tools::file_memory::{FileMemory, Moment};
use crate::tools::offer::Offer;
use crate::tools::structured::{self, BadSchema, StructuredOutput};
use crate::tools::{Progress, Report, Tool, ToolCx, tool_search};
use crate::transcript::TranscriptError;
use crate::turn::live::{CacheAudit, INTERRUPTED, INTERRUPTED_IN_TOOLS, LastReply};
use crate::turn::side::SideSender;
use crate::turn::{Bystander, Terminal};

use arriving::{Arriving, Statement};
pub use beside::{NotColored, SESSION_COLORS, Tasks, Title};
use children::{Children, Judges, Roster};
use input::{Answered, Begun, Choices, Order, Taken};
pub use joining::{Joins, NotJoined, RootJoins};
use kin::Kin;
use late::{Settled, call_in};
pub use menu::Menu;
use models::{Chosen, dials, fallbacks};
use outcome::Ending;
pub use reshape::{ReshapeError, Reshaped};
pub use small_talk::Namer;

/// Tools that wait for a person.
const NEED_A_PERSON: [&str; 3] = [ask_user::NAME, plan::ENTER, plan::EXIT];

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
    /// Where the next call starts.
    cwd: Arc<Mutex<PathBuf>>,
    /// Whether the hooks of the session's start have run, and what they told the model, until it is recorded.
    begun: Begun,
    start_contexts: Vec<String>,
    /// What joins it while it runs.
    joins: Joins,
    /// Directories that have, and whose memory files the model is told with the next prompt.
    roots_to_tell: Vec<PathBuf>,
    /// What they say in front of the first prompt, until it is recorded.
    initial_message: Option<String>,
    /// They brought skills.
    skills_came: bool,
    /// The prompt that is worked on, as hooks know it.
    prompt_id: Option<Uuid>,
    /// What a hook wants the session to be called.
    title_wanted: Option<String>,
    /// What has to be said once, with the first submission.
    notice: Option<String>,
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
    changed_files: ChangedFiles,
    /// The files that hooks want to hear of.
    watched_files: WatchedFiles,
    /// Files read since then have not brought what they bring.
    files_told: Moment,
    /// The record does not say what files read since then hold.
    files_noted: Moment,
    /// The memory files were looked at, or what was told of them in an earlier process was recalled.
    has_gathered: bool,
    /// The model knows that plan mode is on.
    plan_told: bool,
    /// What may be changed from outside, and which of those changes count already.
    dials: Dials,
    dials_seen: u64,
    /// What the host says of the model it chose.
    chosen: Chosen,
    /// Agents in the background of the process that had this session before. The model waits for them in vain.
    lost_agents: Vec<String>,
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

/// The engine cannot start.
///
/// ```
/// use pelton::{Engine, Options, StartError};
/// use pelton_model::{Auth, Endpoint, Secret};
///
/// let endpoint = Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any")));
/// let refused = Engine::new(Options::new("/no/such/directory", endpoint));
/// assert!(matches!(refused, Err(StartError::Directory { .. })));
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A working directory cannot be used.
    #[error("cannot work in {path}: {reason}", path = path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// The schema of the structured output cannot be used.
    #[error(transparent)]
    Schema(#[from] BadSchema),
    /// The answer must fit a schema, and a rule denies the tool it would come by.
    #[error(
        "a rule denies StructuredOutput, by which an answer in the form of a JSON schema comes: take the rule or the schema away"
    )]
    StructuredDenied,
    /// Commands must run in a box, and there can be none.
    #[error("the sandbox is required and not available here: {reason}")]
    Sandbox {
        /// Why not.
        reason: String,
    },
    /// A permission is about a call that was never made.
    #[error("there is no call {call} in this conversation, so a permission for it cannot be settled")]
    NoSuchCall {
        /// The call.
        call: String,
    },
    /// A cap in money needs a price.
    #[error(
        "the price of {model} is not known, so a budget cannot be kept: set it under `modelPricing` in the settings, or leave the budget out"
    )]
    NoPrice {
        /// The model.
        model: String,
    },
}

impl Engine {
    /// An engine for one conversation. Touches the disk only to see that its directories are there.
    pub fn new(mut options: Options) -> Result<Self, StartError> {
        for path in std::iter::once(&options.cwd).chain(&options.additional_dirs) {
            std::fs::read_dir(path)
                .map_err(|error| StartError::Directory { path: path.clone(), reason: error.to_string() })?;
        }
        let mut kin = Kin::first(&mut options);
        let mut notice = None;
        if let Some(wanted) = options.sandbox.take() {
            let required = wanted.required;
            match Sandbox::start(wanted, options.home.clone(), &options.temp_dir) {
                Start::Ready(sandbox, said) => (kin.sandbox, notice) = (Some(sandbox), said),
                Start::Unavailable(reason) if required => return Err(StartError::Sandbox { reason }),
                Start::Unavailable(reason) => {
                    notice = Some(format!(
                        "Sandbox: not available here, so commands run without one and need approval. ({reason})"
                    ));
                }
            }
        }
        let mut engine = Self::within(options, kin)?;
        engine.notice = notice;
        Ok(engine)
    }

    /// An engine in its place among others.
    fn within(mut options: Options, mut kin: Kin) -> Result<Self, StartError> {
        options.tools.retain(|tool| !options.rules.removes(tool.spec().name));
        if options.agents.is_empty() || !kin.may_have_children() {
            options.tools.retain(|tool| !agent::is_one(tool.as_ref()));
        } else if let Some(tool) = options.tools.iter_mut().find(|tool| agent::is_one(tool.as_ref())) {
            *tool = Arc::new(AgentTool::new(&options.agents));
        }
        if kin.agent.is_some() || !options.tools.iter().any(|tool| agent::is_one(tool.as_ref())) {
            // Agents wait for their own, so there is nobody they could write to.
            options.tools.retain(|tool| tool.spec().name != agent::SEND_MESSAGE);
        }
        let skills = Skills::new(
            options.skills.clone(),
            &options.plugins,
            options.project(),
            &options.additional_dirs,
        );
        let can_ask = options.questions.is_some() || kin.hooks.listens(HookEvent::PermissionRequest);
        if !can_ask || kin.agent.is_some() {
            // Nobody could ever answer; agents have a parent who can be asked to.
            options.tools.retain(|tool| !NEED_A_PERSON.contains(&tool.spec().name));
        }
        if options.tool_limits.web_searches_max == 0 {
            options.tools.retain(|tool| tool.spec().name != web_search::NAME);
        }
        let plans = options.plans_dir.clone();
        for bound in plan::of(&kin.permissions, options.plan_instructions.as_deref(), plans) {
            let same = |tool: &&mut Arc<dyn Tool>| tool.spec().name == bound.spec().name;
            if let Some(tool) = options.tools.iter_mut().find(same) {
                *tool = bound;
            }
        }
        let structured = match &options.json_schema {
            Some(_) if options.rules.removes(structured::NAME) => return Err(StartError::StructuredDenied),
            Some(schema) => Some(Arc::new(StructuredOutput::new(schema)?)),
            None => None,
        };
        options.tools.extend(structured.clone().map(|tool| tool as Arc<dyn Tool>));
        options.model = catalogue::resolve(&options.model);
        options.fallback_models = fallbacks(&options);
        options.limits.fallbacks_max = options.fallback_models.len() as u8;
        let mut models = std::iter::once(&options.model).chain(&options.fallback_models);
        if kin.spending.is_capped()
            && let Some(model) = models.find(|model| !kin.spending.knows(model))
        {
            return Err(StartError::NoPrice { model: model.clone() });
        }
        let max_tokens = options.max_tokens(&options.model);
        let mut question =
            Ask::new(options.model.clone(), max_tokens, Arc::new(Prefix::default()), Vec::new());
        (question.thinking, question.display) = (options.thinking, options.thinking_display);
        (question.effort, question.effort_max, question.cache) =
            (options.effort, options.effort_max, options.cache_for(&options.model));
        question.speed = if options.fast_mode { Speed::Fast } else { Speed::Standard };
        question.task_budget = options.task_budget.map(|total| TaskBudget { total, remaining: None });
        let session = Session::new(&options);
        if let Some(LateAnswer { call, .. }) = &options.late_answer
            && call_in(&session.history, call).is_none()
        {
            return Err(StartError::NoSuchCall { call: call.clone() });
        }
        if let (None, Some(sessions), Some(limits)) =
            (&kin.file_history, &options.sessions, &options.file_history)
        {
            let world = Arc::clone(&options.world);
            kin.file_history =
                Some(FileHistory::of_session(&sessions.config_dir, session.id, limits.clone(), world));
        }
        let interrupter = Interrupter::new(options.cancel.clone());
        let dials = dials(&options, &kin.spending);
        let chosen = Chosen::of(&options);
        let queue = queue_of(&session, &interrupter, &options);
        gather::bind_skills(&mut options.tools, &skills, &kin, session.id);
        let memory = gather::memory(&options, &kin.permissions);
        let cache = gather::cache_of(&options);
        if let Some(resumed) = &mut options.resume {
            // What it said is in the session now.
            resumed.conversation.entries = Vec::new();
        }
        let lost_agents = match &options.resume {
            Some(_) => session.kept.agents.clone(),
            None => Vec::new(),
        };
        Ok(Self {
            lost_agents,
            structured,
            offer: offer(&mut options),
            arriving: None,
            question,
            tasks: tasks::Tasks::of(session.kept.tasks.clone()),
            todos: Todos::of(session.kept.todos.clone()),
            session,
            queue,
            cwd: Arc::new(Mutex::new(options.cwd.clone())),
            // A sub-agent is part of a session that has.
            begun: if kin.agent.is_some() { Begun::Whole } else { Begun::No },
            roots_to_tell: Vec::new(),
            joins: Joins::of(skills.clone(), Arc::clone(&kin.hooks), &options.plugins),
            bystander: Bystander::new(&kin.client, &kin.spending, &options.world),
            kin,
            start_contexts: Vec::new(),
            initial_message: None,
            skills_came: false,
            prompt_id: None,
            title_wanted: None,
            notice: None,
            interrupter,
            board: Board::new(&options.model),
            gauge: Gauge::default(),
            background: Background::default(),
            roster: Roster::default(),
            cache,
            memory,
            skills,
            changed_files: ChangedFiles::default(),
            watched_files: WatchedFiles::default(),
            files_told: options.files.now(),
            files_noted: options.files.now(),
            has_gathered: false,
            plan_told: false,
            dials,
            dials_seen: 0,
            chosen,
            options,
        })
    }

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
        let source = if self.options.resume.is_some() { "resume" } else { "startup" };
        self.begin_session(source, &hooks, &cancel, &mut told).await;
        told
    }

    /// Lets commands in the background end by themselves for a while, then ends them.
    pub async fn settle_background(&self, patience: Duration) {
        self.background.finish(patience, self.options.tool_limits.kill_grace).await;
    }

    /// Ends the session, with whatever runs in its background: its hooks are told, and everything recorded is on the disk.
    pub async fn close(self, reason: EndReason) {
        if self.begun != Begun::No {
            let hooks = self.session_hooks(&CancellationToken::new());
            let _ = hooks.session_end(reason.name()).await;
        }
        self.kin.hooks.end_background().await;
        self.settle_background(Duration::ZERO).await;
        // What could not be written was said by the last result.
        let _ = self.session.sync().await;
    }

    /// A submission, and what agents in the background tell meanwhile. Its result comes last.
    async fn run(
        &mut self,
        prompt: Prompt,
        held: Option<Held>,
        cancel: CancellationToken,
        events: Sender<Event>,
    ) {
        let roster = self.roster.clone();
        // In a box: agents below agents stand on one stack.
        let alone = Box::pin(self.run_alone(prompt, held, cancel, events.clone()));
        tokio::select! {
            biased;
            () = alone => {}
            never = roster.pass_on_always(events) => match never {},
        }
    }

    async fn run_alone(
        &mut self,
        prompt: Prompt,
        held: Option<Held>,
        cancel: CancellationToken,
        events: Sender<Event>,
    ) {
        let started_at = self.options.world.monotonic();
        let mut told = Vec::new();
        self.heed_client(&cancel, &mut told).await;
        self.skills.begin();
        if self.kin.agent.is_none() {
            self.kin.census.begin();
        }
        let roots = self.kin.permissions.roots();
        self.offer.list().all().iter().for_each(|server| server.works_in(&roots));
        let submitted = self.board.begin(&self.options.model, self.session.history.view().tokens());
        let mut tally = Tally::default();
        let mut last = LastReply::default();
        let mut settled = Ok(Settled::GoOn);
        let late = if cancel.is_cancelled() { None } else { self.take_late() };
        let mut statement = Statement { events: &events, is_made: false };
        if let Some(late) = late {
            self.meet_servers(&cancel, &mut statement, &mut told).await;
            self.renew_prefix();
            self.state(self.options.model.clone(), &mut statement).await;
            settled = self.settle(late, &cancel, &mut tally, &mut last, &events).await;
        }
        let queued = held.as_ref().map(Held::ids).unwrap_or_default();
        // Interrupted before it began, or a host has ended the engine for good: nothing is recorded, nobody is asked.
        let taken = match settled {
            Err(error) => Err(error),
            Ok(Settled::Ended(terminal)) => Ok(Taken::Ended(terminal)),
            Ok(Settled::Interrupted(terminal)) => {
                let gathered = self.gather().await;
                let noted =
                    self.record_interrupted(&prompt, &queued, INTERRUPTED_IN_TOOLS, gathered, &mut told);
                noted.await.map(|notes| {
                    tally.user_messages += notes;
                    Taken::Ended(terminal)
                })
            }
            Ok(Settled::GoOn) if cancel.is_cancelled() => {
                self.interrupted_at_once(&prompt, &queued, &mut told).await
            }
            Ok(Settled::GoOn) => self.take_in(prompt, &queued, &cancel, &mut statement, &mut told).await,
        };
        let taken = match taken {
            Ok(Taken::Reshape(wanted)) => {
                self.reshape_by_command(wanted, &queued, &events, &cancel, started_at, &mut told).await
            }
            Ok(Taken::House(wanted)) => Ok(self.keep_house(wanted, &cancel, &mut told).await),
            taken => taken,
        };
        let model = match &taken {
            Ok(Taken::Ask(Order { choices: Choices { model: Some(model), .. }, .. })) => model.clone(),
            _ => self.options.model.clone(),
        };
        self.state(model, &mut statement).await;
        told.extend(
            self.notice.take().map(|content| Event::Informational { content, prevents_continuation: false }),
        );
        for event in told {
            events.send(event).await;
        }
        // What was not begun, or cannot be written down, goes on waiting.
        let is_over = match &taken {
            Ok(Taken::Ask(_) | Taken::Local(_) | Taken::Ended(Terminal::HookStopped)) => true,
            Ok(Taken::Interrupted { before_it_began }) => !before_it_began,
            Ok(Taken::Ended(_) | Taken::Reshape(_) | Taken::House(_)) | Err(_) => false,
        };
        if let Some(held) = held.filter(|_| is_over) {
            held.settle();
            tally.consumed.clone_from(&queued);
            events.send(Event::PromptsConsumed(queued)).await;
        }
        let ending = match taken {
            Ok(Taken::Ask(Order { prompt, choices, agent })) => {
                let message = prompt.id;
                events.send(Event::Prompt(prompt)).await;
                self.mark_files(message, &events).await;
                match agent {
                    None => Ending::Loop(
                        self.turns(&events, &cancel, started_at, choices, &mut tally, &mut last).await,
                    ),
                    Some(order) => {
                        let followed =
                            self.follow_in_agent(order, choices, &events, &cancel, &mut tally).await;
                        match followed {
                            // A report has no form: who wants one gets it from the model, which has read the report.
                            Ok(Ending::Local(Answered { is_error: false, .. }))
                                if self.structured.is_some() =>
                            {
                                let choices = Choices::default();
                                let turns =
                                    self.turns(&events, &cancel, started_at, choices, &mut tally, &mut last);
                                Ending::Loop(turns.await)
                            }
                            Ok(ending) => ending,
                            Err(error) => Ending::unrecorded(&mut last, error),
                        }
                    }
                }
            }
            Ok(Taken::Local(answered)) => Ending::Local(answered),
            // Worked off above.
            Ok(Taken::Reshape(_) | Taken::House(_)) => Ending::BeforeLoop(Terminal::Completed),
            Ok(Taken::Ended(terminal)) => Ending::BeforeLoop(terminal),
            Ok(Taken::Interrupted { .. }) => Ending::BeforeLoop(Terminal::AbortedStreaming),
            Err(error) => Ending::unrecorded(&mut last, error),
        };
        let consumed = std::mem::take(&mut tally.consumed);
        let outcome = self.outcome(ending, started_at, tally, last, &events).await;
        self.tell_fill();
        drop(submitted);
        if !consumed.is_empty() {
            events.send(Event::PromptsCompleted(consumed)).await;
        }
        events.send(Event::Result(Arc::new(outcome))).await;
    }

    /// The user interrupted before anything was done. A prompt that waited was on its way already, and is over; nothing is
    /// recorded of others, nor where a host has ended the engine for good.
    async fn interrupted_at_once(
        &mut self,
        prompt: &Prompt,
        queued: &[Uuid],
        told: &mut Vec<Event>,
    ) -> Result<Taken, TranscriptError> {
        if queued.is_empty() || self.options.cancel.is_cancelled() {
            return Ok(Taken::Interrupted { before_it_began: true });
        }
        let gathered = self.gather().await;
        self.record_interrupted(prompt, queued, INTERRUPTED, gathered, told).await?;
        Ok(Taken::Interrupted { before_it_began: false })
    }

    /// S7: what is done to files from here on can be taken back to this message.
    async fn mark_files(&self, message: Uuid, events: &Sender<Event>) {
        if let (Some(history), None) = (&self.kin.file_history, &self.kin.agent)
            && let Some(content) = history.mark(message, Beside::of(&self.background)).await
        {
            events.send(Event::Informational { content, prevents_continuation: false }).await;
        }
    }

    /// The question without its messages, for the model of one submission.
    fn question_for(&self, model: Option<String>) -> Ask {
        let mut question = self.question.clone();
        if let Some(model) = model {
            question.max_tokens = self.options.max_tokens(&model);
            question.model = model;
        }
        question.cache = self.options.cache_for(&question.model);
        question
    }

    /// Whether a budget can be kept with this model.
    fn can_pay(&self, model: &str) -> bool {
        !self.kin.spending.is_capped() || self.kin.spending.knows(model)
    }

    fn bench(
        &self,
        submission: &CancellationToken,
        reports: mpsc::Sender<(Arc<str>, Report)>,
        beside: SideSender,
        events: &Sender<Event>,
    ) -> Bench {
        let cancel = submission.child_token();
        let refused = CancellationToken::new();
        let children = self.children(submission, &cancel, refused.clone(), events);
        let tools = self.offer.tools();
        let agents = tools.iter().any(|tool| agent::is_one(tool.as_ref()));
        let agents = agents.then(|| Arc::clone(&children) as Arc<dyn Agents>);
        self.kin.permissions.let_read(&self.spill_dir());
        let notes_dir = gather::notes(&self.options).map(|notes| notes.dir.to_path_buf());
        if let Some(dir) = &notes_dir {
            self.kin.permissions.let_note(dir);
        }
        // A full queue loses reports, never results.
        let progress = Progress::new(move |call, report| _ = reports.try_send((Arc::from(call), report)));
        let aside = self.aside(beside);
        let mut cx =
            ToolCx { progress, agents, aside: Some(Arc::clone(&aside)), ..self.tool_cx(cancel.clone()) };
        let mut hooks = self.session_hooks(&cancel);
        hooks.cx.reach.aside = Some(aside);
        hooks.cx.reach.agents = Some(Arc::new(Judges { children, cancel: cancel.clone() }));
        cx.host = elicited::heard_by_hooks(cx.host, &hooks, events);
        Bench {
            tools: self.offer.callable(),
            shelf: self.offer.shelf().clone(),
            aliases: self.options.tool_aliases.clone(),
            permissions: self.kin.permissions.clone(),
            questions: self.options.questions.clone().map(|asked| asked.within(self.options.questions_time)),
            submission: submission.clone(),
            refused,
            repetition: Mutex::default(),
            notes_dir,
            may_defer: self.options.may_defer,
            ahead: self.options.speculation.clone().map(Ahead::new),
            hooks,
            cwd: Arc::clone(&self.cwd),
            transcript: self.session.record.transcript(),
            file_history: self.kin.file_history.clone(),
            cx,
        }
    }

    /// The small model, if there is one and it can be paid.
    fn small_model(&self) -> Option<String> {
        let named = Some(&self.options.small_model).filter(|model| !model.is_empty());
        named.map(|model| catalogue::resolve(model)).filter(|model| self.can_pay(model))
    }

    /// Who starts the agents of a submission.
    fn children(
        &self,
        submission: &CancellationToken,
        cancel: &CancellationToken,
        refused: CancellationToken,
        events: &Sender<Event>,
    ) -> Arc<Children> {
        Arc::new(Children {
            options: Options { tools: self.offer.to_hand_on(), ..self.options.clone() },
            kin: self.kin.clone(),
            hooks: self.session_hooks(cancel),
            session_id: self.session.id,
            session_file: self.session_file(),
            question: self.question.clone(),
            events: events.clone(),
            roster: self.roster.clone(),
            submission: submission.clone(),
            refused,
            kept: Mutex::default(),
        })
    }

    fn cwd(&self) -> PathBuf {
        self.cwd.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What the model is offered, and what can be called besides.
fn offer(options: &mut Options) -> Offer {
    let tools = std::mem::take(&mut options.tools);
    let is_sent = |tool: &Arc<dyn Tool>| options.todo_tools.sends(tool.spec().name, &options.model);
    let (sent, unsent) = tools.into_iter().partition(is_sent);
    let search = options.tool_search.tokens_max(options.room(&options.model).window_tokens);
    // Without the tool nothing could be found.
    let search = search.filter(|_| !options.rules.removes(tool_search::NAME));
    Offer::new(sent, unsent, std::mem::take(&mut options.servers), search)
}

/// The queue beside a session: it writes to the same file.
fn queue_of(session: &Session, interrupter: &Interrupter, options: &Options) -> Queue {
    Queue::new(
        Arc::clone(&session.record),
        interrupter.clone(),
        Arc::clone(&options.world),
        options.cwd.clone(),
        options.resume.as_ref().map_or(&[], |resumed| &resumed.conversation.queued),
    )
}
