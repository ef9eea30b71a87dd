//! What a run tells whoever watches it. Plain values; front ends translate them for their readers.

mod agents; // what sub-agents do
mod outcome; // how it ended

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pelton_model::{Effort, FastMode, Notice, Started, Subscription};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

pub use agents::{AgentEnd, AgentEvent, AgentFacts, AgentNews, AgentWork};
pub use outcome::{DeferredCall, Denial, ModelUsage, Outcome, Refused};

use crate::compact::Level;
use crate::history::{EditId, Entry, EntryId};
use crate::hooks::HookRun;
use crate::permission::{Mode, Update};
use crate::plugins::{Plugin, PluginError};
use crate::tools::background::BackgroundNews;
use crate::tools::{Report, ServerState};
use crate::turn::Transition;

/// One thing that happened.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, text, tool};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([tool("Glob", serde_json::json!({"pattern": "*"}))]).reply([text("Nothing here.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// use pelton::{Engine, Event, Options, Prompt};
///
/// let mut engine = Engine::new(Options::new(dir.path(), endpoint))?;
/// let mut events = engine.submit(Prompt::text("What is here?")?);
/// let (mut calls, mut result) = (Vec::new(), None);
/// while let Some(event) = events.next().await {
///     match event {
///         Event::Init(init) => assert!(init.tools.contains(&"Glob".to_owned())),
///         Event::ToolStarted(call) => calls.push(call.tool.to_string()),
///         Event::Result(outcome) => result = Some(outcome),
///         _ => {} // there will be more kinds
///     }
/// }
/// let outcome = result.ok_or("the result is always the last event")?;
/// assert_eq!((calls, outcome.text.as_str()), (vec!["Glob".to_owned()], "Nothing here."));
/// assert_eq!((outcome.tool_calls, outcome.transitions["next_turn"]), (1, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// The submission begins.
    Init(Arc<Init>),
    /// A prompt was recorded and will be sent.
    Prompt(Arc<Entry>),
    /// Prompts that waited in the queue were read, or refused.
    PromptsConsumed(Vec<Uuid>),
    /// The submission that read these prompts is over.
    PromptsCompleted(Vec<Uuid>),
    /// The model is being asked.
    Requesting,
    /// The server says how much of the account's subscription is used.
    Subscription(Box<Subscription>),
    /// An answer begins.
    Started(Box<Started>),
    /// A piece of an answer, as it arrives. Retried answers are withdrawn, see [`Event::Retry`].
    Delta(pelton_model::Delta),
    /// Something was said and is recorded: a block of an answer, a tool's result, words of the harness.
    Message(Arc<Entry>),
    /// The message that comes next was not said to its end: the user interrupted it.
    CutOff,
    /// Something was told to the model beside the conversation, and is recorded: memory files, changed files.
    Attachment(Arc<Entry>),
    /// A call has begun to run.
    ToolStarted(ToolStarted),
    /// A call was refused, and nobody was asked about it: a rule, a mode or a check decided, or there is nobody to ask.
    Refused(Arc<Refused>),
    /// A running call says how far it is.
    ToolProgress {
        /// The call.
        call: Arc<str>,
        /// What it says.
        report: Report,
    },
    /// The model did not answer and is asked again after a wait. If `withdrawn`, what was shown of the failed
    /// answer does not count.
    Retry(Notice),
    /// Still waiting before the model is asked again.
    Waiting {
        /// How long it will take.
        left: Duration,
    },
    /// Nothing has come from the model for a while.
    Stalled {
        /// How long.
        silent_for: Duration,
    },
    /// An answer was cut but what is complete of it is kept.
    Cut {
        /// What cut it.
        reason: String,
    },
    /// The model declined to answer.
    Refusal(Arc<Refusal>),
    /// The loop went on, and why.
    Transition(Transition),
    /// What may run was changed with the permission to run a call. It holds for the session; what is meant for a file is
    /// for the host to write there.
    PermissionsChanged(Arc<[Update]>),
    /// A hook has run.
    Hook(Arc<HookRun>),
    /// What of an answer is shown, where hooks have a say in that.
    Display(Display),
    /// Words for the user that are no part of the conversation.
    Informational {
        /// What they say.
        content: String,
        /// The run ends because of it.
        prevents_continuation: bool,
    },
    /// The conversation was cleared: what follows belongs to another one, with a record of its own.
    Cleared {
        /// The session that was left.
        from: Uuid,
        /// The one that begins.
        to: Uuid,
    },
    /// What a slash command answered. No part of the conversation.
    CommandOutput {
        /// What it says.
        content: String,
    },
    /// An answer came, and this is what the server's cache had of the question.
    Cache(CacheReport),
    /// Something the loop did, and why. Reasons to go on and retries are told by events of their own, too.
    Loop(LoopEvent),
    /// Something was done to what the model is sent.
    Context(ContextEvent),
    /// Messages that were shown do not count any more.
    Tombstone(Vec<EntryId>),
    /// Another model is asked from here on, for this submission.
    ModelFallback {
        /// The model that does not answer.
        from: String,
        /// The one that is asked instead.
        to: String,
        /// What kind of failure that is, in the word of the protocol.
        because: &'static str,
    },
    /// Words of the harness in the assistant's role: an error the user must see.
    Synthetic(Synthetic),
    /// Z1: what some calls came to, in a line.
    ToolUseSummary {
        /// The line.
        summary: String,
        /// The calls.
        calls: Vec<Arc<str>>,
    },
    /// Something happened to a sub-agent.
    Agent(AgentEvent),
    /// Something happened to a command in the background.
    Background(BackgroundNews),
    /// The submission is over. Always the last event, exactly once.
    Result(Arc<Outcome>),
}

/// A model that declined to answer.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().step(Step::reply([text("No.")]).stop("refusal").stop_details(json!({"type": "refusal", "category": "cyber"}))).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::{Event, Prompt};
///
/// let mut events = engine.submit(Prompt::text("Write a virus.")?);
/// let mut declined = None;
/// while let Some(event) = events.next().await {
///     if let Event::Refusal(refusal) = event {
///         declined = refusal.category.clone();
///     }
/// }
/// assert_eq!(declined.as_deref(), Some("cyber"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The model.
    pub model: String,
    /// The server's id of the request.
    pub request_id: Option<String>,
    /// What kind of thing it declines, in the server's words.
    pub category: Option<String>,
    /// Why, in the server's words.
    pub explanation: Option<String>,
    /// The prompt that was declined.
    pub prompt: Option<Uuid>,
}

/// Something that was done to what the model is sent.
///
/// ```
/// use pelton::event::ContextEvent;
///
/// /// A line for people about what is done to the context.
/// fn line(event: &ContextEvent) -> String {
///     match event {
///         ContextEvent::Compacting { .. } => "summing up …".to_owned(),
///         ContextEvent::Compacted(Err(why)) => format!("not summed up: {why}"),
///         ContextEvent::Boundary(boundary) => format!("now {} tokens", boundary.after_tokens),
///         _ => String::new(),
///     }
/// }
/// assert_eq!(line(&ContextEvent::Compacted(Err("no model".to_owned()))), "not summed up: no model");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ContextEvent {
    /// A model is asked to sum up the conversation.
    Compacting {
        /// Why.
        trigger: Trigger,
    },
    /// It was asked: `Err` says why nothing came of it.
    Compacted(Result<(), String>),
    /// A level made the context smaller.
    Boundary(Arc<Boundary>),
}

/// A place from which on less is sent of what was said before.
///
/// ```
/// use pelton::event::{Boundary, ContextEvent, Event};
///
/// /// How many tokens were freed, if that is what the event tells.
/// fn freed(event: &Event) -> Option<u64> {
///     let Event::Context(ContextEvent::Boundary(boundary)) = event else { return None };
///     let Boundary { before_tokens, after_tokens, .. } = **boundary;
///     Some(before_tokens.saturating_sub(after_tokens))
/// }
/// assert_eq!(freed(&Event::Requesting), None);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Boundary {
    /// What can be undone by this name.
    pub edit: EditId,
    /// Who made it.
    pub level: Level,
    /// Why a summary was made, for levels that make one.
    pub trigger: Option<Trigger>,
    /// What the model would have been sent, in tokens.
    pub before_tokens: u64,
    /// What it is sent now.
    pub after_tokens: u64,
    /// What was done, and why.
    pub reason: String,
    /// The summary that takes the place of what was said.
    pub summary: Option<Arc<Entry>>,
    /// How long it took.
    pub duration: Duration,
}

impl Boundary {
    /// One that somebody asked for, without a model.
    pub(crate) fn by_hand(
        edit: EditId,
        level: Level,
        before_tokens: u64,
        after_tokens: u64,
        reason: String,
    ) -> Self {
        let (trigger, summary, duration) = (None, None, Duration::ZERO);
        Self { edit, level, trigger, before_tokens, after_tokens, reason, summary, duration }
    }
}

/// Why a conversation is summed up.
///
/// ```
/// use pelton::event::{ContextEvent, Trigger};
///
/// let event = ContextEvent::Compacting { trigger: Trigger::Auto };
/// assert!(matches!(event, ContextEvent::Compacting { trigger } if trigger.name() == "auto"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// It fills the window.
    Auto,
    /// Somebody asked for it.
    Manual,
}

impl Trigger {
    /// The name in frames, transcripts and hooks.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Manual => "manual",
        }
    }
}

/// What a submission starts with.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([text("Nothing.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::{Event, Prompt};
///
/// let mut events = engine.submit(Prompt::text("What is here?")?);
/// let Some(Event::Init(init)) = events.next().await else { return Err("it is the first event".into()) };
/// assert!(init.tools.contains(&"Read".to_owned()));
/// assert!(init.transcript.is_none(), "nothing is recorded unless `Options::sessions` says so");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Init {
    /// The session.
    pub session_id: Uuid,
    /// Where it works.
    pub cwd: PathBuf,
    /// The model asked.
    pub model: String,
    /// How much runs without asking.
    pub mode: Mode,
    /// The tools the model is offered.
    pub tools: Vec<String>,
    /// The slash commands a prompt may call.
    pub commands: Vec<CommandInfo>,
    /// The skills there are.
    pub skills: Vec<String>,
    /// Who serves tools, and how they are.
    pub servers: Vec<(String, ServerState)>,
    /// Who named each of them, in the words of the protocol ([`ToolServer::source`](crate::tools::ToolServer::source)).
    pub server_sources: Vec<&'static str>,
    /// Those of them that were configured so that nobody can speak to them, and why.
    pub server_errors: Vec<(String, String)>,
    /// The agents it may start.
    pub agents: Vec<String>,
    /// The name of the way it answers.
    pub output_style: String,
    /// The plugins there are.
    pub plugins: Vec<Arc<Plugin>>,
    /// Plugins that cannot be used, or not whole, and why.
    pub plugin_errors: Vec<PluginError>,
    /// Where the credentials came from, in the words of the protocol.
    pub api_key_source: &'static str,
    /// Whose settings and instructions count.
    pub setting_sources: Vec<&'static str>,
    /// Whether answers come fast.
    pub fast_mode: FastMode,
    /// How hard the model tries, if that is said.
    pub effort: Option<Effort>,
    /// What is asked of its server beside the usual (`anthropic-beta`).
    pub betas: Vec<String>,
    /// The file the session is recorded in, if it is.
    pub transcript: Option<PathBuf>,
}

/// A slash command, as users see it.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([text("Nothing.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::{Event, Prompt};
///
/// let mut events = engine.submit(Prompt::text("What is here?")?);
/// let Some(Event::Init(init)) = events.next().await else { return Err("it is the first event".into()) };
/// let menu: Vec<String> = init.commands.iter().map(|command| format!("/{}", command.name)).collect();
/// assert!(menu.contains(&"/compact".to_owned()));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandInfo {
    /// Its name, without the slash.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What comes behind the name.
    pub argument_hint: String,
}

/// A call that has begun to run.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([tool("Glob", json!({"pattern": "*.rs"}))]).reply([text("Nothing.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::{Event, Prompt};
///
/// let mut events = engine.submit(Prompt::text("What is here?")?);
/// let mut shown = Vec::new();
/// while let Some(event) = events.next().await {
///     if let Event::ToolStarted(started) = event {
///         shown.push(format!("{} {}", started.tool, started.input));
///     }
/// }
/// assert_eq!(shown, [r#"Glob {"pattern":"*.rs"}"#]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolStarted {
    /// The call.
    pub call: Arc<str>,
    /// The tool.
    pub tool: Arc<str>,
    /// Its input.
    pub input: Arc<Value>,
    /// How many calls run now, this one included.
    pub running: usize,
}

/// Words of the harness in the assistant's role, an error most often. Not part of the conversation the model sees.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().step(Step::status(401).message("invalid x-api-key")).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::{Event, Prompt};
///
/// let mut events = engine.submit(Prompt::text("What is here?")?);
/// let mut shown = None;
/// while let Some(event) = events.next().await {
///     if let Event::Synthetic(words) = event {
///         shown = words.error;
///     }
/// }
/// assert_eq!(shown, Some("authentication_failed"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Synthetic {
    /// Its name in the transcript.
    pub id: Uuid,
    /// What it says.
    pub text: String,
    /// The error's name in the protocol, if it is one of the model's server.
    pub error: Option<&'static str>,
    /// The content array.
    pub json: Bytes,
}

/// Something the loop did, and why.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([tool("Glob", json!({"pattern": "*"}))]).reply([text("Nothing.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::event::LoopKind;
/// use pelton::{Event, Prompt};
///
/// let mut events = engine.submit(Prompt::text("What is here?")?);
/// let mut went_on = Vec::new();
/// while let Some(event) = events.next().await {
///     if let Event::Loop(told) = event && told.kind == LoopKind::Transition {
///         went_on.push(told.turn);
///     }
/// }
/// assert_eq!(went_on, [1]); // once: the results of the tool had to be read
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopEvent {
    /// What it did.
    pub kind: LoopKind,
    /// Why.
    pub reason: String,
    /// During or after which trip to the model, counted from 1; before the first it is 0.
    pub turn: u32,
}

/// What the server's cache had of a question.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([text("Four.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::{Event, Prompt};
///
/// let mut events = engine.submit(Prompt::text("What is two and two?")?);
/// let mut reports = Vec::new();
/// while let Some(event) = events.next().await {
///     if let Event::Cache(report) = event {
///         reports.push(report);
///     }
/// }
/// assert_eq!((reports[0].read, reports[0].missed), (0, 0)); // there was nothing in it yet
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CacheReport {
    /// What was asked for.
    pub asked: Asked,
    /// Tokens read from it.
    pub read: u64,
    /// Tokens written to it.
    pub written: u64,
    /// Tokens that were in it before and were not read, of as many as the question has.
    pub missed: u64,
    /// The first part in which the question differs from the one before, and what changed it, if something was missed.
    pub reason: Option<String>,
}

/// What a question of the conversation asks for.
///
/// ```
/// use pelton::event::{Asked, CacheReport};
///
/// /// Summaries are asked for beside the conversation: their misses are no reason to worry.
/// fn is_worth_a_warning(report: &CacheReport) -> bool {
///     report.asked == Asked::Turn && report.missed > 10_000
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Asked {
    /// The next answer.
    Turn,
    /// A summary of what was said.
    Summary,
}

/// What of an answer is shown, where hooks (`MessageDisplay`) have a say in that. What is recorded, and what the model knows,
/// stays as it was said.
///
/// ```
/// use pelton::Event;
/// use pelton::event::Display;
///
/// /// Words for a screen. Once hooks were asked about an answer, its pieces are not for it.
/// fn on_screen(event: &Event) -> Option<&str> {
///     match event {
///         Event::Display(Display::Words { shown, .. }) => Some(shown),
///         _ => None,
///     }
/// }
/// let said = Display::Words { said: "**Four.**".into(), shown: "Four.".into() };
/// assert_eq!(on_screen(&Event::Display(said)), Some("Four."));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Display {
    /// Hooks are told the words of the answer that begins.
    Asked,
    /// Some of them, and what is shown in their place.
    Words {
        /// What the model said.
        said: Arc<str>,
        /// What is shown.
        shown: Arc<str>,
    },
    /// What is shown next stands apart: the block that those words were of is at its end.
    Break,
}

/// What the loop did.
///
/// ```
/// use pelton::event::LoopKind;
///
/// assert_eq!(LoopKind::Fallback.name(), "fallback");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LoopKind {
    /// It went on.
    Transition,
    /// The model is asked again after a failure.
    Retry,
    /// Nothing has come from the model for a while.
    Stalled,
    /// An error is not shown while it may still be recovered from.
    Withheld,
    /// A step of a recovery was tried.
    Ladder,
    /// Money was refused, or ran out.
    Budget,
    /// Another model is asked.
    Fallback,
    /// Something was left out of a refused request.
    Repair,
    /// What stands in front of every request has changed, and the model's cache of it is void.
    Prefix,
    /// Stop hooks blocked once too often and were overridden.
    HooksOverridden,
    /// Results that are too much for one message went to files.
    ResultBudget,
    /// The model makes the same call again and again, and it brings the same.
    Repetition,
    /// Calls were made before the model asked for them.
    Speculation,
    /// A level of the cascade made the context smaller, or did not, and why.
    Compaction,
    /// The server's cache was lost.
    Cache,
}

impl LoopKind {
    /// After these, thinking in the record may be bound to something else. What levels of the cascade did is recorded by
    /// itself and done again.
    pub(crate) const RESHAPING: [Self; 3] = [Self::Fallback, Self::Repair, Self::Prefix];

    /// The name in frames, transcripts and counters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Transition => "transition",
            Self::Retry => "retry",
            Self::Stalled => "stalled",
            Self::Withheld => "withheld",
            Self::Ladder => "ladder",
            Self::Budget => "budget",
            Self::Fallback => "fallback",
            Self::Repair => "repair",
            Self::Prefix => "prefix",
            Self::HooksOverridden => "hooks_overridden",
            Self::ResultBudget => "result_budget",
            Self::Repetition => "repetition",
            Self::Speculation => "speculation",
            Self::Compaction => "compaction",
            Self::Cache => "cache",
        }
    }
}
