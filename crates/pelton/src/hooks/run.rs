//! Calls everyone who listens to an event, side by side, and makes one verdict of their answers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt, StreamExt, stream};
use pelton_model::World;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::background::{Adopted, Arrived, Background};
use super::callback::{HookCall, HookCallback};
use super::command::{self, Over, Surroundings, Terms};
use super::config::{CommandHook, Entry, Hook, HookConfig, Waiting, time_together};
use super::event::HookEvent;
use super::input::{HookInput, subject};
use super::limits::{BACKGROUND_MAX, RUNNING_MAX};
use super::listed::ListedHook;
use super::live::{HookNote, HooksLive, newest};
use super::long_text;
use super::outcome::{HookOutcome, Said, Speaker, Verdict, merge};
use super::outside::{self, Reach};
use crate::fresh_id;
use crate::secrets::Secrets;

/// The hooks of a session, or of a sub-agent in it. Dropping the last of them ends those still running in the background.
#[derive(Debug, Default)]
pub struct Hooks {
    config: Mutex<HookConfig>,
    /// What skills brought that were called, by their names.
    of_skills: Mutex<BTreeMap<String, HookConfig>>,
    background: Arc<Background>,
    /// Whoever shows what they do while they do it.
    live: HooksLive,
}

/// What hooks are called with, besides the event.
#[derive(Clone)]
#[non_exhaustive]
pub struct HookCx {
    /// The project; its files are what settings name hooks by.
    pub project_dir: PathBuf,
    /// The environment of commands. The engine's own secrets do not reach them.
    pub env: Arc<[(OsString, OsString)]>,
    /// Where hooks of some events may write variables for later commands.
    pub env_file: Option<PathBuf>,
    /// Where texts go that are too long to be told. Made when needed.
    pub spill_dir: PathBuf,
    /// What they are not told, and what is not kept of what they say.
    pub(crate) secrets: Secrets,
    /// Chance, for ids.
    pub world: Arc<dyn World>,
    /// Set when the user interrupts.
    pub cancel: CancellationToken,
    /// Who is told about starts and ends.
    pub watch: HookWatch,
    /// What hooks that are no programs are reached by.
    pub(crate) reach: Reach,
    /// For hooks with an `if`. When nobody can tell whether it holds, they are called: a guard too many does less harm
    /// than one too few.
    pub condition: Option<HookCondition>,
    /// Which server serves a tool, by the name the model calls it by.
    pub served_by: Option<ServedBy>,
}

/// What hooks are told of the server that serves a tool.
pub type ServedBy = Arc<dyn Fn(&str) -> Option<Value> + Send + Sync>;

/// Whether a permission rule, given as settings write it, speaks of a call: of a tool, with an input, in a directory.
pub type HookCondition = Arc<dyn Fn(&str, &str, &Value, &Path) -> bool + Send + Sync>;

/// Who is told about starts and ends of hooks, as they happen.
#[derive(Clone)]
pub struct HookWatch(Arc<dyn Fn(HookNews<'_>) + Send + Sync>);

/// Something happened to a hook.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(test), expect(dead_code, reason = "front ends do not show hooks that still run, yet"))]
#[non_exhaustive]
pub enum HookNews<'a> {
    /// It was started.
    Started {
        /// The run.
        id: &'a str,
        /// The event and its subject: `PreToolUse:Bash`.
        name: &'a str,
        /// What is called.
        kind: HookKind,
        /// What users see meanwhile.
        status_message: Option<&'a str>,
    },
    /// It is over, or goes on in the background.
    Ended(&'a HookRun),
}

/// What all hooks of one event did, and what it comes to.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Fired {
    /// Each hook, in the order of the configuration.
    pub runs: Vec<HookRun>,
    /// What they said together.
    pub verdict: Verdict,
}

/// One run of a hook.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([text("Done.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # let stop = json!({"Stop": [{"hooks": [{"type": "command", "command": "echo tested"}]}]});
/// # assert!(options.hooks.add_settings(&stop, &pelton::hooks::Source::User).is_empty());
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::hooks::HookOutcome;
/// use pelton::{Event, Prompt};
///
/// // Settings say: at `Stop`, run `echo tested`.
/// let mut events = engine.submit(Prompt::text("Do it.")?);
/// let mut runs = Vec::new();
/// while let Some(event) = events.next().await {
///     if let Event::Hook(run) = event {
///         runs.push(run);
///     }
/// }
/// assert_eq!((runs[0].label.as_str(), runs[0].outcome), ("echo tested", HookOutcome::Success));
/// assert_eq!(runs[0].stdout.trim(), "tested");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookRun {
    /// Its id.
    pub id: String,
    /// The event and its subject: `PreToolUse:Bash`.
    pub name: String,
    /// The event.
    pub event: HookEvent,
    /// What was called.
    pub kind: HookKind,
    /// The command, or the callback's name.
    pub label: String,
    /// How it ended.
    pub outcome: HookOutcome,
    /// A command's exit code, when it exited by itself.
    pub exit_code: Option<i32>,
    /// The beginning of what a command printed.
    pub stdout: String,
    /// The same of its standard error.
    pub stderr: String,
    /// How long it took.
    pub duration: Duration,
    /// What it would like to say to the terminal (`terminalSequence`): a title, a notification or a bell, and nothing else.
    pub terminal_sequence: Option<String>,
}

/// What kind of hook ran.
///
/// ```
/// use pelton::hooks::{HookKind, HookRun};
///
/// /// What is shown of a run: programs by their command line, callbacks of the host not at all.
/// fn shown(run: &HookRun) -> Option<&str> {
///     (run.kind == HookKind::Command).then_some(run.label.as_str())
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HookKind {
    /// A program.
    Command,
    /// A function of the host.
    Callback,
    /// An address on the web.
    Http,
    /// A question to a model.
    Prompt,
    /// A question to an agent that looks around.
    Agent,
    /// A tool of a server.
    ServerTool,
}

impl HookKind {
    pub(super) fn of(hook: &Hook) -> Self {
        match hook {
            Hook::Command(_) => Self::Command,
            Hook::Callback(_) => Self::Callback,
            Hook::Http(_) => Self::Http,
            Hook::Judge(judge) if judge.looks => Self::Agent,
            Hook::Judge(_) => Self::Prompt,
            Hook::ServerTool(_) => Self::ServerTool,
        }
    }
}

impl Hooks {
    /// The hooks of a configuration.
    pub fn new(config: HookConfig) -> Self {
        Self { config: Mutex::new(config), ..Self::default() }
    }

    /// The same for a sub-agent: with what it brings itself, and with what skills bring that it calls.
    pub fn for_agent(&self, own: HookConfig) -> Self {
        let mut config = self.config().clone();
        self.of_skills().values().for_each(|brought| config.extend(brought.clone()));
        config.extend(own);
        Self {
            config: Mutex::new(config),
            of_skills: Mutex::default(),
            background: Arc::clone(&self.background),
            live: self.live.clone(),
        }
    }

    /// News of those that run.
    pub fn live(&self) -> HooksLive {
        self.live.clone()
    }

    /// A skill was called: what it brings counts until the end of the session.
    pub fn add_skill(&self, name: &str, brought: &HookConfig) {
        if !brought.is_empty() {
            // What is there already stays, and with it what was called once.
            self.of_skills().entry(name.to_owned()).or_insert_with(|| brought.clone());
        }
    }

    /// Another conversation begins, in which no skill was called.
    pub fn forget_skills(&self) {
        self.of_skills().clear();
    }

    /// The names of files that are listened to.
    pub fn watched_names(&self) -> Vec<String> {
        let mut names = self.config().watched_names();
        self.of_skills().values().for_each(|brought| names.extend(brought.watched_names()));
        names
    }

    /// Whether anybody listens to an event at all; if not, there is no need to describe it.
    pub fn listens(&self, event: HookEvent) -> bool {
        self.config().listens(event) || self.of_skills().values().any(|brought| brought.listens(event))
    }

    /// What is called and when.
    pub fn listed(&self) -> Vec<ListedHook> {
        let mut listed: Vec<ListedHook> = self.config().entries().map(ListedHook::of).collect();
        self.of_skills().values().for_each(|brought| listed.extend(brought.entries().map(ListedHook::of)));
        listed
    }

    /// Who is to be called for an event. Whoever is called once is not found again.
    fn matching(
        &self,
        event: HookEvent,
        subject: Option<&str>,
        condition: impl Fn(&str) -> bool,
    ) -> Vec<Arc<Entry>> {
        let mut of_skills = self.of_skills();
        if of_skills.is_empty() {
            return self.config().matching(event, subject, condition);
        }
        let mut all = self.config().clone();
        of_skills.values().for_each(|brought| all.extend(brought.clone()));
        let matching = all.matching(event, subject, condition);
        let once: Vec<_> = matching.iter().filter(|entry| entry.once).cloned().collect();
        if !once.is_empty() {
            of_skills.values_mut().for_each(|brought| brought.leave_out(&once));
        }
        matching
    }

    /// More are called from now on.
    pub fn join(&self, more: HookConfig) {
        self.config().extend(more);
    }

    /// Hooks of settings files are these from now on; others stay.
    pub fn replace_settings(&self, settings: HookConfig) {
        self.config().replace_settings(settings);
    }

    fn config(&self) -> MutexGuard<'_, HookConfig> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of_skills(&self) -> MutexGuard<'_, BTreeMap<String, HookConfig>> {
        self.of_skills.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls every hook that listens to an event and waits for all of them, each at most for its own time and a
    /// moment to end it. Dropping the future ends them at once.
    pub async fn fire(&self, input: &HookInput, cx: &HookCx) -> Fired {
        let event = input.event();
        if !self.listens(event) {
            return Fired::default();
        }
        let mut json = input.to_json();
        if let (Some(served_by), Value::Object(fields)) = (&cx.served_by, &mut json) {
            let server = fields.get("tool_name").and_then(Value::as_str).and_then(|tool| served_by(tool));
            fields.extend(server.map(|server| ("mcp_server".to_owned(), server)));
        }
        let subject = subject(event, &json);
        let name = subject.map_or(event.name().to_owned(), |subject| format!("{}:{subject}", event.name()));
        let met = |rule: &str| match (&cx.condition, json["tool_name"].as_str()) {
            (Some(condition), Some(tool)) => condition(rule, tool, &json["tool_input"], &input.base.cwd),
            _ => true,
        };
        let entries = self.matching(event, subject, met);
        let together = time_together(event, &entries);
        let moment = Arc::new(Moment {
            event,
            name,
            text: line(&json),
            json,
            tool_use_id: input.tool_use_id().map(str::to_owned),
            surroundings: Surroundings {
                event,
                session_id: input.base.session_id.clone(),
                effort: input.base.effort.clone(),
                cwd: input.base.cwd.clone(),
                project_dir: cx.project_dir.clone(),
                env: Arc::clone(&cx.env),
                secrets: cx.secrets.clone(),
                env_file: cx.env_file.clone(),
            },
            spill_dir: cx.spill_dir.clone(),
            reach: cx.reach.clone(),
            cancel: cx.cancel.clone(),
            not_after: together.map(|together| cx.world.monotonic() + together),
            world: Arc::clone(&cx.world),
        });
        let calls: Vec<_> = entries
            .into_iter()
            .enumerate()
            .map(|(at, entry)| {
                let limit = entry.time_limit(together);
                let id = fresh_id(&*cx.world).to_string();
                let (moment, live) = (Arc::clone(&moment), self.live.clone());
                let call = Call { id, entry, limit, moment, live };
                async move { (at, self.attend(call, &cx.watch).await) }
            })
            .collect();
        // The first that ends makes room for the next: one that hangs holds up no other.
        let mut ended: Vec<(usize, (HookRun, Said))> =
            stream::iter(calls).buffer_unordered(RUNNING_MAX).collect().await;
        ended.sort_by_key(|(at, _)| *at);
        let (runs, said): (Vec<_>, Vec<_>) = ended.into_iter().map(|(_, ended)| ended).unzip();
        Fired { runs, verdict: merge(said) }
    }

    /// What arrived since the last look from hooks that nobody waited for.
    pub fn take_arrived(&self) -> Vec<Arrived> {
        self.background.take_arrived()
    }

    /// Returns when a hook that nobody waited for wants to wake an idle session (`asyncRewake`).
    pub(crate) async fn woken(&self) {
        self.background.woken().await;
    }

    /// What such hooks wake it with.
    pub(crate) fn take_waking(&self) -> Vec<String> {
        self.background.take_waking()
    }

    /// Ends the hooks in the background, with everything they started.
    pub async fn end_background(&self) {
        self.background.end().await;
    }

    /// One call, until it is answered or goes on by itself.
    async fn attend(&self, call: Call, watch: &HookWatch) -> (HookRun, Said) {
        self.live.tell(|| call.note(None));
        watch.tell(HookNews::Started {
            id: &call.id,
            name: &call.moment.name,
            kind: call.kind(),
            status_message: call.entry.status_message.as_deref(),
        });
        let waiting = call.waiting();
        let started = call.moment.world.monotonic();
        // Should it go on by itself: what is known of it now.
        let so_far = call.ended(started, HookOutcome::Background);
        let entry = Arc::clone(&call.entry);
        let (detach, detached) = oneshot::channel();
        let mut run = call.run(detach).boxed();
        let answered = match waiting {
            Waiting::UntilDone => tokio::select! {
                biased;
                answered = &mut run => Some(answered),
                Ok(()) = detached => None,
            },
            Waiting::Never | Waiting::NeverButWakes => None,
        };
        let (run, said) = match answered {
            Some(answered) => answered,
            None if self.background.adopt(Adopted { run, wakes: waiting == Waiting::NeverButWakes }) => {
                (so_far, Said { outcome: HookOutcome::Background, ..Said::default() })
            }
            None => {
                let why = format!("was not run: {BACKGROUND_MAX} hooks are in the background already");
                let said = speaker(&entry, &so_far.name).failed(&why);
                (HookRun { outcome: said.outcome, ..so_far }, said)
            }
        };
        watch.tell(HookNews::Ended(&run));
        self.live.tell_over(&run);
        (run, said)
    }
}

/// One event, as all hooks see it.
struct Moment {
    event: HookEvent,
    name: String,
    json: Value,
    text: Bytes,
    tool_use_id: Option<String>,
    surroundings: Surroundings,
    spill_dir: PathBuf,
    reach: Reach,
    cancel: CancellationToken,
    /// When all hooks have to be over, by the world's clock.
    not_after: Option<Duration>,
    world: Arc<dyn World>,
}

/// One hook to be called.
struct Call {
    id: String,
    entry: Arc<Entry>,
    limit: Duration,
    moment: Arc<Moment>,
    live: HooksLive,
}

impl Call {
    fn kind(&self) -> HookKind {
        HookKind::of(&self.entry.hook)
    }

    fn note(&self, printed: Option<(String, String)>) -> HookNote {
        let Moment { name, event, .. } = &*self.moment;
        let (id, name, event, kind) = (self.id.clone(), name.clone(), *event, self.kind());
        HookNote { id, name, event, kind, printed, over: None }
    }

    fn waiting(&self) -> Waiting {
        match &self.entry.hook {
            Hook::Command(command) => command.waiting,
            _ => Waiting::UntilDone,
        }
    }

    async fn run(self, detach: oneshot::Sender<()>) -> (HookRun, Said) {
        let started = self.moment.world.monotonic();
        let together = self.moment.not_after.map(|not_after| not_after.saturating_sub(started));
        let time = together.map_or(self.limit, |together| self.limit.min(together));
        let speaker = speaker(&self.entry, &self.moment.name);
        let (mut said, printed) = if self.moment.cancel.is_cancelled() && self.waiting() == Waiting::UntilDone
        {
            (Speaker::cancelled(), Printed::default())
        } else {
            match &self.entry.hook {
                Hook::Command(command) => self.command(command, &speaker, time, detach).await,
                Hook::Callback(callback) => {
                    (self.callback(&**callback, &speaker, time).await, Printed::default())
                }
                Hook::Http(_) | Hook::Judge(_) | Hook::ServerTool(_) => self.outside(&speaker, time).await,
            }
        };
        long_text::keep(&mut said, &self.moment.spill_dir, &self.moment.surroundings.secrets, &self.id).await;
        let Printed { exit_code, stdout, stderr } = printed;
        let terminal_sequence = said.terminal_sequence.take();
        let run =
            HookRun { exit_code, stdout, stderr, terminal_sequence, ..self.ended(started, said.outcome) };
        (run, said)
    }

    async fn command(
        &self,
        command: &CommandHook,
        speaker: &Speaker<'_>,
        time: Duration,
        detach: oneshot::Sender<()>,
    ) -> (Said, Printed) {
        let Moment { surroundings, text, cancel, .. } = &*self.moment;
        let shown = |text: &str| {
            let text = surroundings.secrets.hidden(text.as_bytes());
            newest(&String::from_utf8_lossy(&text))
        };
        let printed = |stdout: &str, stderr: &str| {
            self.live.tell(|| self.note(Some((shown(stdout), shown(stderr)))));
        };
        let terms = Terms { time, cancel, detach: Some(detach), printed: &printed };
        let ran = match command::run(command, &self.entry.source, text, surroundings, terms).await {
            Ok(ran) => ran,
            Err(error) => {
                return (speaker.failed(&format!("could not be started: {error}")), Printed::default());
            }
        };
        match ran.over {
            Over::Exited(exit_code) => {
                let said = speaker.exited(exit_code, &ran.stdout, &ran.stderr);
                (said, Printed { exit_code, stdout: ran.stdout, stderr: ran.stderr })
            }
            // Half an answer is none: what it printed does not count.
            Over::TimedOut => (speaker.timed_out(self.limit, false), Printed::default()),
            Over::Cancelled => (Speaker::cancelled(), Printed::default()),
        }
    }

    /// What is no program and no function. What it says is understood like a command's output.
    async fn outside(&self, speaker: &Speaker<'_>, time: Duration) -> (Said, Printed) {
        let Moment { event, text, cancel, reach, surroundings, .. } = &*self.moment;
        // Nobody outside is told more than a command would be.
        let told = surroundings.secrets.hidden(text).into_owned();
        let json: Value = serde_json::from_slice(&told).unwrap_or_default();
        let answer = async {
            match &self.entry.hook {
                Hook::Http(hook) => outside::post(reach, hook, told.into(), &surroundings.env).await,
                Hook::Judge(hook) => outside::judge(reach, hook, *event, &json).await,
                Hook::ServerTool(hook) => outside::call(reach, hook, &json).await,
                Hook::Command(_) | Hook::Callback(_) => Ok(String::new()),
            }
        };
        // What a server's tool does wrong is its own: the session goes on.
        let answer = AssertUnwindSafe(answer).catch_unwind();
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => return (Speaker::cancelled(), Printed::default()),
            answer = timeout(time, answer) => answer,
        };
        match answer {
            Ok(Ok(Ok(stdout))) => {
                let said = speaker.exited(Some(0), &stdout, "");
                (said, Printed { stdout, ..Printed::default() })
            }
            Ok(Ok(Err(why))) => (speaker.failed(&why), Printed::default()),
            Ok(Err(_)) => (speaker.failed("panicked"), Printed::default()),
            Err(_) => (speaker.timed_out(self.limit, false), Printed::default()),
        }
    }

    async fn callback(&self, callback: &dyn HookCallback, speaker: &Speaker<'_>, time: Duration) -> Said {
        let Moment { event, json, tool_use_id, cancel, .. } = &*self.moment;
        let call = HookCall::new(json, tool_use_id.as_deref(), cancel);
        // A host's panic is its own: the session goes on.
        let answer = AssertUnwindSafe(async { callback.call(call).await }).catch_unwind();
        tokio::select! {
            biased;
            () = cancel.cancelled() => Speaker::cancelled(),
            answer = timeout(time, answer) => match answer {
                Ok(Ok(Ok(output))) => speaker.answered(&output),
                Ok(Ok(Err(error))) => speaker.failed(&format!("failed: {error}")),
                Ok(Err(_)) => speaker.failed("panicked"),
                Err(_) => {
                    // Silence is no permission.
                    let waited_for = matches!(event, HookEvent::PreToolUse | HookEvent::UserPromptSubmit);
                    speaker.timed_out(self.limit, waited_for)
                }
            },
        }
    }

    fn ended(&self, started: Duration, outcome: HookOutcome) -> HookRun {
        HookRun {
            id: self.id.clone(),
            name: self.moment.name.clone(),
            event: self.moment.event,
            kind: self.kind(),
            label: self.entry.label().to_owned(),
            outcome,
            exit_code: None,
            stdout: String::new(),
            stderr: String::new(),
            duration: self.moment.world.monotonic().saturating_sub(started),
            terminal_sequence: None,
        }
    }
}

/// The event as one line.
fn line(json: &Value) -> Bytes {
    Bytes::from(format!("{json}\n"))
}

fn speaker<'a>(entry: &'a Entry, name: &'a str) -> Speaker<'a> {
    Speaker { event: entry.event, name, label: entry.label(), on_failure: entry.on_failure }
}

/// How a command exited, and what it printed.
#[derive(Default)]
struct Printed {
    exit_code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl HookCx {
    /// For commands of a project; long texts go to `spill_dir`. Change the fields that should differ.
    pub fn new(
        project_dir: PathBuf,
        env: Arc<[(OsString, OsString)]>,
        spill_dir: PathBuf,
        world: Arc<dyn World>,
    ) -> Self {
        Self {
            project_dir,
            env,
            env_file: None,
            spill_dir,
            secrets: Secrets::default(),
            world,
            cancel: CancellationToken::new(),
            watch: HookWatch::ignored(),
            reach: Reach::default(),
            condition: None,
            served_by: None,
        }
    }
}

impl HookWatch {
    /// News go to `sink`, on whichever thread they happen.
    pub fn new(sink: impl Fn(HookNews<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sink))
    }

    /// News go nowhere.
    pub fn ignored() -> Self {
        Self::new(|_| {})
    }

    fn tell(&self, news: HookNews<'_>) {
        (self.0)(news);
    }
}

impl fmt::Debug for HookCx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The environment may hold anything.
        f.debug_struct("HookCx").field("project_dir", &self.project_dir).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
