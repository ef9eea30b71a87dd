//! Commands and agents that run beside the conversation. A call starts one; it ends by itself, by another call, when its
//! time is up, or with the session.
//!
//! Such a command writes straight into a file, so nothing has to be pulled for it to go on. All that watches it is one
//! small task, which ends with it and dies with the session. An agent is pulled by such a task
//! ([decision 064](../../../../docs/decisions/064-agents-may-outlive-their-call.md)).

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::process::{ProcessTree, Watch};
use crate::limits::{
    BACKGROUND_KEPT_MAX, BACKGROUND_LOOK_EVERY, BACKGROUND_RUNNING_MAX, SHELL_DRAIN_TIME_MAX,
};
use crate::secrets::Secrets;
use crate::spill::first_chars;
use crate::tools::tool::ToolCx;

/// Characters that hooks are told of a command or of what it is for.
const TOLD_CHARS_MAX: usize = 1_000;

/// A text as hooks are told it.
fn in_hooks(text: &str) -> String {
    let begun = first_chars(text, TOLD_CHARS_MAX);
    match text[begun.len()..].chars().count() {
        0 => begun.to_owned(),
        more => format!("{begun}… [+{more} chars]"),
    }
}

/// The commands and agents of a session that run beside it. All clones are one; when the last is dropped, they are killed.
#[derive(Clone, Default)]
pub(crate) struct Background {
    tasks: Arc<Mutex<Vec<Kept>>>,
    watchers: Arc<Mutex<JoinSet<()>>>,
    /// Commands that a call waits for.
    front: Arc<Mutex<Vec<Waited>>>,
    /// Who keeps watch over the commands of a submission, while there is one.
    watch: Arc<Mutex<Weak<OnceLock<Watch>>>>,
}

/// A command that a call waits for.
struct Waited {
    call: Arc<str>,
    put_aside: CancellationToken,
}

/// As long as it is held, somebody may ask for the command of a call to go on beside.
pub(crate) struct InFront {
    put_aside: CancellationToken,
    front: Arc<Mutex<Vec<Waited>>>,
}

impl InFront {
    /// Returns when somebody has.
    pub async fn put_aside(&self) {
        self.put_aside.cancelled().await;
    }
}

impl Drop for InFront {
    fn drop(&mut self) {
        // Whether it is still listed is told by whether anybody can find it.
        self.put_aside.cancel();
        let mut front = self.front.lock().unwrap_or_else(PoisonError::into_inner);
        front.retain(|waited| !waited.put_aside.is_cancelled());
    }
}

/// What kind of thing runs in the background.
///
/// ```
/// use pelton::tools::BackgroundKind;
///
/// assert_eq!(BackgroundKind::Agent.name(), "local_agent"); // as the protocol calls it
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BackgroundKind {
    /// A command.
    Command,
    /// A sub-agent.
    Agent,
}

impl BackgroundKind {
    /// The name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Command => "local_bash",
            Self::Agent => "local_agent",
        }
    }

    /// What hooks read.
    fn label(self) -> &'static str {
        match self {
            Self::Command => "shell",
            Self::Agent => "subagent",
        }
    }

    /// What it is called in a sentence.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Agent => "agent",
        }
    }
}

/// A command or a sub-agent that was started in the background.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([tool("Bash", json!({"command": "sleep 60", "run_in_background": true}))]).reply([text("It runs.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # options.rules.allow.push("Bash(sleep:*)".parse()?);
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::Prompt;
///
/// engine.submit(Prompt::text("Start it.")?).for_each(async |_| {}).await;
/// let running = engine.tasks().running();
/// assert_eq!(running[0].command, "sleep 60");
/// assert!(running[0].output.exists()); // what it prints, to be read at any time
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackgroundTask {
    /// What it is.
    pub kind: BackgroundKind,
    /// Its id.
    pub id: String,
    /// The call that started it.
    pub call: Arc<str>,
    /// The command, or the task of an agent.
    pub command: String,
    /// What it is for, or the command itself.
    pub description: String,
    /// Which agent it is, if it is one.
    pub agent_type: Option<String>,
    /// Where everything goes that it prints, or says.
    pub output: PathBuf,
}

/// How something in the background ended.
///
/// ```
/// use pelton::tools::BackgroundEnd;
///
/// assert_eq!(BackgroundEnd::Exited(2).words(), "failed with exit code 2");
/// assert_eq!(BackgroundEnd::Stopped.words(), "stopped");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BackgroundEnd {
    /// By itself, with this exit code.
    Exited(i32),
    /// It was stopped.
    Stopped,
    /// Its time was up.
    TimedOut,
    /// It printed more than may be kept.
    PrintedTooMuch,
    /// An agent, with a report.
    Reported,
    /// An agent, with an error.
    Failed,
    /// It was lost sight of.
    Lost,
}

impl BackgroundEnd {
    /// What became of it, in a few words.
    pub fn words(self) -> String {
        match self {
            Self::Exited(0) | Self::Reported => "completed".to_owned(),
            Self::Failed => "failed".to_owned(),
            Self::Exited(code) => format!("failed with exit code {code}"),
            Self::Stopped => "stopped".to_owned(),
            Self::TimedOut => "killed: its time was up".to_owned(),
            Self::PrintedTooMuch => "killed: it printed too much".to_owned(),
            Self::Lost => "lost: its end could not be observed".to_owned(),
        }
    }
}

/// What there is to tell of a background command.
///
/// ```
/// use pelton::Event;
/// use pelton::tools::BackgroundNews;
///
/// /// A line when a background command has ended.
/// fn ended(event: &Event) -> Option<String> {
///     let Event::Background(BackgroundNews::Ended(task, end)) = event else { return None };
///     Some(format!("{} {}", task.description, end.words()))
/// }
/// assert_eq!(ended(&Event::Requesting), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BackgroundNews {
    /// It was started.
    Started(Arc<BackgroundTask>),
    /// It has ended.
    Ended(Arc<BackgroundTask>, BackgroundEnd),
}

/// An end, and the last words of an agent.
#[derive(Debug, Clone)]
struct Ended {
    end: BackgroundEnd,
    report: Option<Arc<str>>,
}

struct Kept {
    task: Arc<BackgroundTask>,
    end: watch::Receiver<Option<Ended>>,
    stop: CancellationToken,
    told_start: bool,
    told_end: bool,
    /// The model knows how it ended.
    model_knows: bool,
    /// Whoever interrupted everything ended it: that is told with the next prompt, and begins no turn.
    is_dismissed: bool,
}

impl Kept {
    fn is_command(&self) -> bool {
        self.task.kind == BackgroundKind::Command
    }

    fn ended(&self) -> Option<BackgroundEnd> {
        let end = self.end.borrow().as_ref().map(|ended| ended.end);
        // A watcher that is gone without a word was killed with its runtime.
        end.or_else(|| self.end.has_changed().is_err().then_some(BackgroundEnd::Lost))
    }
}

/// Bounds of one command.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub time: Duration,
    pub output_bytes_max: u64,
    pub kill_grace: Duration,
    /// What is not kept of what it prints.
    pub secrets: Secrets,
}

impl Terms {
    /// Those of a session, for so long.
    pub fn new(time: Duration, cx: &ToolCx) -> Self {
        Self {
            time,
            output_bytes_max: cx.limits.shell_spill_bytes_max,
            kill_grace: cx.limits.kill_grace,
            secrets: cx.secrets.clone(),
        }
    }
}

impl Background {
    /// Whether one more may run.
    pub fn has_room(&self) -> Result<(), String> {
        match self.lock().iter().filter(|kept| kept.is_command() && kept.ended().is_none()).count() {
            running if running >= BACKGROUND_RUNNING_MAX => Err(format!(
                "{running} commands run in the background already, which is as many as may: stop one with TaskStop"
            )),
            _ => Ok(()),
        }
    }

    /// Whoever comes to keep watch over a command stays for those that follow, until this is dropped.
    pub fn keep_watch(&self) -> Arc<OnceLock<Watch>> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        watch.upgrade().unwrap_or_else(|| {
            let kept = Arc::default();
            *watch = Arc::downgrade(&kept);
            kept
        })
    }

    /// A command was started: who keeps watch over it may have to stay.
    pub fn watched(&self, tree: &ProcessTree) {
        let kept = self.watch.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        if let Some(kept) = kept {
            kept.get_or_init(|| tree.watch());
        }
    }

    /// A call waits for its command from now on.
    pub fn in_front(&self, call: &Arc<str>) -> InFront {
        let put_aside = CancellationToken::new();
        let waited = Waited { call: Arc::clone(call), put_aside: put_aside.clone() };
        self.front.lock().unwrap_or_else(PoisonError::into_inner).push(waited);
        InFront { put_aside, front: Arc::clone(&self.front) }
    }

    /// Asks for the command of a call, or for all of them, to go on beside. Tells whether a call waits for one.
    pub fn put_aside(&self, call: Option<&str>) -> bool {
        let front = self.front.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_one = false;
        for waited in front.iter().filter(|waited| call.is_none_or(|call| *waited.call == *call)) {
            waited.put_aside.cancel();
            is_one = true;
        }
        is_one
    }

    /// Keeps a command that was started. `way_out` is what it reaches others by, for as long as it runs.
    pub fn keep(
        &self,
        task: BackgroundTask,
        tree: ProcessTree,
        terms: Terms,
        way_out: Option<BoxFuture<'static, Infallible>>,
    ) {
        self.keep_with(task, tree, terms, way_out, std::future::ready(()));
    }

    /// The same, with work that has to go on while it runs.
    pub fn keep_with(
        &self,
        task: BackgroundTask,
        tree: ProcessTree,
        terms: Terms,
        way_out: Option<BoxFuture<'static, Infallible>>,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let (ended, end) = watch::channel(None);
        let stop = CancellationToken::new();
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that are done need no place any more.
        while watchers.try_join_next().is_some() {}
        let (output, stopped) = (task.output.clone(), stop.clone());
        watchers.spawn(async move {
            let way_out = way_out.unwrap_or_else(|| Box::pin(std::future::pending()));
            let secrets = terms.secrets.clone();
            let watching = watch_over(tree, &output, terms, &stopped);
            let end = tokio::select! {
                end = with_work(watching, work) => end,
                never = way_out => match never {},
            };
            // It wrote to the file itself. What cannot be taken out of a file that is gone, or full, does no harm there.
            let _ = tokio::task::spawn_blocking(move || secrets.leave(&output)).await;
            ended.send_replace(Some(Ended { end, report: None }));
        });
        drop(watchers);
        self.list(task, end, stop);
    }

    /// Keeps an agent that was started: `run` ends with how it ended and its last words. `stop` asks it to.
    pub fn keep_agent(
        &self,
        task: BackgroundTask,
        stop: CancellationToken,
        run: impl Future<Output = (BackgroundEnd, String)> + Send + 'static,
    ) {
        let (ended, end) = watch::channel(None);
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        while watchers.try_join_next().is_some() {}
        watchers.spawn(async move {
            let (end, report) = run.await;
            ended.send_replace(Some(Ended { end, report: Some(report.into()) }));
        });
        drop(watchers);
        self.list(task, end, stop);
    }

    fn list(&self, task: BackgroundTask, end: watch::Receiver<Option<Ended>>, stop: CancellationToken) {
        let mut tasks = self.lock();
        if tasks.len() >= BACKGROUND_KEPT_MAX
            && let Some(oldest) =
                tasks.iter().position(|kept| kept.model_knows && (kept.told_end || !kept.is_command()))
        {
            tasks.remove(oldest);
        }
        let task = Arc::new(task);
        tasks.push(Kept {
            task,
            end,
            stop,
            told_start: false,
            told_end: false,
            model_knows: false,
            is_dismissed: false,
        });
    }

    /// Whether commands run.
    pub fn has_commands(&self) -> bool {
        self.lock().iter().any(|kept| kept.is_command() && kept.ended().is_none())
    }

    /// Whether agents run, or have ended and the model is to be told that now.
    pub fn has_agents(&self) -> bool {
        let is_over = |kept: &Kept| kept.model_knows || kept.is_dismissed && kept.ended().is_some();
        self.lock().iter().any(|kept| !kept.is_command() && !is_over(kept))
    }

    /// Ends all agents that run. The model is told with the next prompt. Returns their ids.
    pub fn dismiss_agents(&self) -> Vec<String> {
        let mut tasks = self.lock();
        let running = tasks.iter_mut().filter(|kept| !kept.is_command() && kept.ended().is_none());
        let dismissed = running.map(|kept| {
            kept.is_dismissed = true;
            kept.stop.cancel();
            kept.task.id.clone()
        });
        dismissed.collect()
    }

    /// The last words of an agent that has ended.
    pub fn report(&self, id: &str) -> Option<Arc<str>> {
        let tasks = self.lock();
        let ended = tasks.iter().find(|kept| kept.task.id == id)?.end.borrow().clone();
        ended.and_then(|ended| ended.report)
    }

    /// What has that id, and how it ended if it has.
    pub fn find(&self, id: &str) -> Option<(Arc<BackgroundTask>, Option<BackgroundEnd>)> {
        self.lock().iter().find(|kept| kept.task.id == id).map(|kept| (Arc::clone(&kept.task), kept.ended()))
    }

    /// The ids of those that run.
    pub fn running(&self) -> Vec<String> {
        self.lock().iter().filter(|kept| kept.ended().is_none()).map(|kept| kept.task.id.clone()).collect()
    }

    /// Those that run, as hooks are told of them.
    pub fn for_hooks(&self) -> Vec<Value> {
        let running = |kept: &&Kept| kept.ended().is_none();
        let told = |kept: &Kept| {
            let BackgroundTask { kind, id, description, command, agent_type, .. } = &*kept.task;
            let mut told = json!({"id": id, "type": kind.label(), "status": "running",
                "description": in_hooks(description)});
            match agent_type {
                Some(agent_type) => told["agent_type"] = agent_type.as_str().into(),
                None => told["command"] = in_hooks(command).into(),
            }
            told
        };
        self.lock().iter().filter(running).map(told).collect()
    }

    /// Waits for an end, for a while.
    pub async fn wait(&self, id: &str, at_most: Duration) -> Option<BackgroundEnd> {
        let mut end = self.lock().iter().find(|kept| kept.task.id == id)?.end.clone();
        // Out of time, and a watcher that is gone, are both seen by whoever looks next.
        let _ = timeout(at_most, end.wait_for(Option::is_some)).await;
        self.find(id)?.1
    }

    /// Stops one and waits until it is gone.
    pub async fn stop(&self, id: &str, at_most: Duration) -> Option<BackgroundEnd> {
        self.lock().iter().find(|kept| kept.task.id == id)?.stop.cancel();
        self.wait(id, at_most).await
    }

    /// The model has read how this one ended.
    pub fn model_knows(&self, id: &str) {
        if let Some(kept) = self.lock().iter_mut().find(|kept| kept.task.id == id) {
            kept.model_knows = kept.ended().is_some();
        }
    }

    /// What was not told of commands yet. Agents tell for themselves.
    pub fn news(&self) -> Vec<BackgroundNews> {
        let mut news = Vec::new();
        for kept in self.lock().iter_mut().filter(|kept| kept.is_command()) {
            if !std::mem::replace(&mut kept.told_start, true) {
                news.push(BackgroundNews::Started(Arc::clone(&kept.task)));
            }
            if let Some(end) = kept.ended().filter(|_| !kept.told_end) {
                kept.told_end = true;
                news.push(BackgroundNews::Ended(Arc::clone(&kept.task), end));
            }
        }
        news
    }

    /// Returns when one has ended and the model is to be told that now.
    pub async fn untold(&self) {
        let waiting: Vec<_> = {
            let tasks = self.lock();
            let is_told_now = |kept: &&Kept| !kept.model_knows && !kept.is_dismissed;
            tasks.iter().filter(is_told_now).map(|kept| kept.end.clone()).collect()
        };
        let ends = waiting.into_iter().map(|mut end| {
            // A watcher that is gone is an end, too.
            Box::pin(async move { _ = end.wait_for(Option::is_some).await })
        });
        let ends: Vec<_> = ends.collect();
        match ends.is_empty() {
            true => std::future::pending().await,
            false => _ = futures::future::select_all(ends).await,
        }
    }

    /// What the model does not know yet, in its words.
    pub fn news_for_model(&self) -> Vec<String> {
        let mut news = Vec::new();
        for kept in self.lock().iter_mut().filter(|kept| !kept.model_knows) {
            if let Some(end) = kept.ended() {
                kept.model_knows = true;
                let BackgroundTask { kind, id, description, output, .. } = &*kept.task;
                let report = kept.end.borrow().as_ref().and_then(|ended| ended.report.clone());
                let (word, words, output) = (kind.word(), end.words(), output.display());
                news.push(match report {
                    Some(report) => {
                        format!("The background {word} {id} ({description}) has ended: {words}.\n\n{report}")
                    }
                    None => format!(
                        "The background {word} {id} ({description}) has ended: {words}. Its output is in {output}."
                    ),
                });
            }
        }
        news
    }

    /// Lets them end by themselves for a while, then stops those that have not.
    pub async fn finish(&self, patience: Duration, grace: Duration) {
        let stops: Vec<CancellationToken> = self.lock().iter().map(|kept| kept.stop.clone()).collect();
        let mut watchers = std::mem::take(&mut *self.watchers.lock().unwrap_or_else(PoisonError::into_inner));
        let all = async { while watchers.join_next().await.is_some() {} };
        if timeout(patience, all).await.is_err() {
            stops.iter().for_each(CancellationToken::cancel);
            let rest = async { while watchers.join_next().await.is_some() {} };
            // What does not end now is killed with its watcher.
            let _ = timeout(grace + grace, rest).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the model is told of an agent whose process is gone: it was never told how that ended.
pub(crate) fn lost_agent(id: &str) -> String {
    let words = BackgroundEnd::Lost.words();
    format!(
        "The background agent {id} (of an earlier process) has ended: {words}, because that process is gone. What it did stays done. \
         SendMessage to {id} lets it go on."
    )
}

/// Whether words tell the model that an agent has ended.
pub(crate) fn tells_end_of(words: &str, id: &str) -> bool {
    words.contains(&format!("The background agent {id} ("))
}

/// Watches, and works meanwhile. What is left of the work then has a moment.
async fn with_work(
    watching: impl Future<Output = BackgroundEnd>,
    work: impl Future<Output = ()>,
) -> BackgroundEnd {
    let (mut watching, mut work) = (std::pin::pin!(watching), std::pin::pin!(work));
    let end = tokio::select! {
        biased;
        end = &mut watching => Some(end),
        () = &mut work => None,
    };
    match end {
        None => watching.await,
        Some(end) => {
            let _ = timeout(SHELL_DRAIN_TIME_MAX, work).await;
            end
        }
    }
}

/// Watches a command until nothing of it runs any more.
async fn watch_over(
    mut tree: ProcessTree,
    output: &Path,
    terms: Terms,
    stop: &CancellationToken,
) -> BackgroundEnd {
    let too_much = async {
        let mut look = interval(BACKGROUND_LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            look.tick().await;
            let printed = tokio::fs::metadata(output).await.map_or(0, |metadata| metadata.len());
            if printed > terms.output_bytes_max {
                break;
            }
        }
    };
    let over = tokio::select! {
        biased;
        () = stop.cancelled() => Some(BackgroundEnd::Stopped),
        // Not only the shell: a server it left running is what it was started for.
        _ = tree.gone() => None,
        () = sleep(terms.time) => Some(BackgroundEnd::TimedOut),
        () = too_much => Some(BackgroundEnd::PrintedTooMuch),
    };
    let patience = if over.is_some() { Duration::ZERO } else { terms.kill_grace };
    match (tree.end(patience, terms.kill_grace).await, over) {
        (_, Some(over)) => over,
        (Ok(ended), None) => BackgroundEnd::Exited(super::process::exit_code(ended.status)),
        (Err(_), None) => BackgroundEnd::Lost,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::tools::process::{Launch, Printed};

    #[tokio::test]
    async fn who_keeps_watch_goes_with_the_submission() {
        let args = [OsStr::new("-c"), OsStr::new("exit")];
        let (program, cwd) = (Path::new("/bin/sh"), Path::new("/"));
        let launch = Launch { program, args: &args, cwd, env: &[], keep: None, printed: Printed::Read };
        let tree = ProcessTree::start(&launch).unwrap();
        let background = Background::default();
        background.watched(&tree);
        let kept = background.keep_watch();
        assert!(kept.get().is_none(), "between submissions nobody stays");
        background.clone().watched(&tree);
        assert!(kept.get().is_some() && Arc::ptr_eq(&kept, &background.keep_watch()));
        drop(kept);
        assert!(background.keep_watch().get().is_none());
    }
}
