//! What happens between submissions: words that start none, and news of what runs beside the conversation.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton_model::stream::{Queued, stream};
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::children::Roster;
use crate::context::git_branch;
use crate::event::Event;
use crate::hooks::{HookEvent, Hooks};
use crate::limits::{EVENTS_QUEUED_MAX, HOOK_WAKES_MAX};
use crate::prompt::{Prompt, TASK_NEWS};
use crate::session::Record;
use crate::tools::background::{Background, BackgroundTask};
use crate::tools::server::ServerList;
use crate::transcript::{Transcript, TranscriptError};

/// What hooks read when nobody has typed for a while.
const WAITS_FOR_USER: &str = "Pelton is waiting for your input";

/// The commands and agents that run beside a session. All clones are one.
///
/// ```
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # let dir = tempfile::tempdir()?;
/// # let endpoint = Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any")));
/// use pelton::{Engine, Options};
///
/// let engine = Engine::new(Options::new(dir.path(), endpoint))?;
/// let tasks = engine.tasks(); // a handle: usable from anywhere, also while a submission runs
/// assert!(tasks.running().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Tasks {
    background: Background,
    roster: Roster,
    /// Those that go on by themselves are among what runs beside it.
    hooks: Arc<Hooks>,
    stop_wait: Duration,
    are_allowed: bool,
}

impl Tasks {
    /// Those that run.
    pub fn running(&self) -> Vec<Arc<BackgroundTask>> {
        let ids = self.background.running();
        ids.iter().filter_map(|id| self.background.find(id)).map(|(task, _)| task).collect()
    }

    /// The one of that id, running or ended, as long as it is known.
    pub fn find(&self, id: &str) -> Option<Arc<BackgroundTask>> {
        self.background.find(id).map(|(task, _)| task)
    }

    /// Whether agents run, or have ended and the model does not know that yet: the session is not done before it does.
    pub fn has_agents(&self) -> bool {
        self.background.has_agents()
    }

    /// Stops one and waits until it is gone. Tells whether there is one of that id.
    pub async fn stop(&self, id: &str) -> bool {
        self.background.stop(id, self.stop_wait).await.is_some()
    }

    /// Ends all agents that run in the background, and waits until they are gone. The model is told with the next prompt, not by a
    /// submission of its own: whoever interrupts wants nothing more to happen.
    pub fn dismiss_agents(&self) -> impl Future<Output = ()> + Send + 'static {
        let (background, stop_wait) = (self.background.clone(), self.stop_wait);
        let dismissed = background.dismiss_agents();
        async move {
            for id in dismissed {
                background.wait(&id, stop_wait).await;
            }
        }
    }

    /// Whether anything may run in the background at all.
    pub fn are_allowed(&self) -> bool {
        self.are_allowed
    }

    /// Lets the command or the agent that a call runs go on in the background, or all of them: the call is answered with that.
    /// Tells whether there is one.
    pub fn put_aside(&self, call: Option<&str>) -> bool {
        self.background.put_aside(call)
    }

    /// What was not told yet. While a submission runs, its stream tells it.
    pub fn news(&self) -> Vec<Event> {
        let mut news = self.roster.take();
        news.extend(self.background.news().into_iter().map(Event::Background));
        news
    }

    /// Returns when an agent has told something that nobody was told yet.
    pub async fn told(&self) {
        self.roster.arrived().await;
    }

    /// Returns when one has ended and the model does not know that yet, or a hook that nobody waited for wants it to know something
    /// (`asyncRewake`): [`Engine::submit_news`] tells it.
    pub async fn ended(&self) {
        tokio::select! {
            () = self.background.untold() => {}
            () = self.hooks.woken() => {}
        }
    }
}

/// The colours that a session can be shown in. See [`Title::color`].
pub const SESSION_COLORS: [&str; 8] = ["red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan"];

/// Why a session is not shown in another colour.
///
/// ```
/// # use pelton_model::{Auth, Endpoint};
/// # let dir = tempfile::tempdir()?;
/// # let options = pelton::Options::new(dir.path(), Endpoint::new("http://127.0.0.1:9", Auth::None));
/// let plaid = pelton::Engine::new(options)?.title().color("plaid").unwrap_err();
/// assert!(plaid.to_string().contains("one of red, blue"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NotColored {
    /// Nobody knows it.
    #[error("there is no colour '{0}': one of {list}, default", list = SESSION_COLORS.join(", "))]
    NoColor(String),
    /// It cannot be recorded.
    #[error(transparent)]
    Record(#[from] TranscriptError),
}

/// What a session is called. All clones are one.
///
/// ```
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # let dir = tempfile::tempdir()?;
/// # let endpoint = Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any")));
/// use pelton::transcript::Durability;
/// use pelton::{Engine, Options, Sessions};
///
/// let mut options = Options::new(dir.path(), endpoint);
/// options.sessions = Some(Sessions { config_dir: dir.path().join("config"), durability: Durability::Fast });
/// let engine = Engine::new(options)?;
/// engine.title().set("The long way round")?;
/// let file = engine.transcript_file().ok_or("it is recorded")?;
/// assert!(std::fs::read_to_string(file)?.contains("The long way round"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Title {
    record: Arc<Record>,
    cwd: PathBuf,
}

impl Title {
    /// Calls it so from now on. A session that is not recorded has no name.
    pub fn set(&self, title: &str) -> Result<(), TranscriptError> {
        self.note(|transcript| transcript.title(title))
    }

    /// Calls it so where nobody has named it.
    pub fn suggest(&self, title: &str) -> Result<(), TranscriptError> {
        self.note(|transcript| transcript.suggested_title(title))
    }

    /// The colour it is shown in from now on, by whoever shows sessions: one of [`SESSION_COLORS`], or `default`.
    ///
    /// # Errors
    ///
    /// If there is no such colour, or it cannot be recorded.
    pub fn color(&self, color: &str) -> Result<(), NotColored> {
        match color {
            "default" => self.note(|transcript| transcript.color(""))?,
            color if SESSION_COLORS.contains(&color) => self.note(|transcript| transcript.color(color))?,
            other => return Err(NotColored::NoColor(other.to_owned())),
        }
        Ok(())
    }

    fn note(
        &self,
        write: impl FnOnce(&Transcript) -> Result<(), TranscriptError>,
    ) -> Result<(), TranscriptError> {
        if !self.record.is_open() {
            self.record.open(git_branch(&self.cwd))?;
        }
        self.record.transcript().map_or(Ok(()), |transcript| write(&transcript))
    }
}

impl Engine {
    /// A handle to name the session with, for those who look through many.
    pub fn title(&self) -> Title {
        Title { record: Arc::clone(&self.session.record), cwd: self.options.cwd.clone() }
    }

    /// A handle to what runs beside the conversation.
    pub fn tasks(&self) -> Tasks {
        let limits = &self.options.tool_limits;
        Tasks {
            background: self.background.clone(),
            roster: self.roster.clone(),
            hooks: Arc::clone(&self.kin.hooks),
            stop_wait: limits.kill_grace * 3,
            are_allowed: !limits.background_off,
        }
    }

    /// The servers of tools, to add, replace and remove them while the session runs.
    pub fn servers(&self) -> ServerList {
        self.offer.list().clone()
    }

    /// Tells hooks that the user has been waited for (`Notification`, `idle_prompt`), for whoever knows that nobody types. Gives what
    /// there is to tell of it. The session takes prompts meanwhile; `None` if no hook listens.
    ///
    /// ```
    /// # use pelton_model::{Auth, Endpoint};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let endpoint = Endpoint::new("http://127.0.0.1:9", Auth::None);
    /// use pelton::hooks::Source;
    /// use pelton::{Engine, Event, Options};
    /// use serde_json::json;
    ///
    /// let mut options = Options::new(dir.path(), endpoint);
    /// let bell = json!({"type": "command", "command": "echo ding >bell"});
    /// options.hooks.add_settings(&json!({"Notification": [{"matcher": "idle_prompt", "hooks": [bell]}]}), &Source::User);
    /// let engine = Engine::new(options)?;
    /// let told = engine.tell_idle().ok_or("there is a hook that listens")?.await;
    /// assert!(matches!(&told[..], [Event::Hook(_)]) && dir.path().join("bell").exists());
    /// # Ok(())
    /// # }
    /// ```
    pub fn tell_idle(&self) -> Option<BoxFuture<'static, Vec<Event>>> {
        let hooks = self.session_hooks(&CancellationToken::new());
        if !hooks.listens(HookEvent::Notification) {
            return None;
        }
        let cwd = self.cwd();
        let told = async move {
            let mut told = Vec::new();
            if let Some(fired) = hooks.notify("idle_prompt", WAITS_FOR_USER, &cwd).await {
                told.extend(fired.runs.into_iter().map(|run| Event::Hook(Arc::new(run))));
                let said = fired.verdict.messages.into_iter();
                told.extend(
                    said.map(|content| Event::Informational { content, prevents_continuation: false }),
                );
            }
            told
        };
        Some(told.boxed())
    }

    /// Adds words of the user's to the conversation without asking the model: it reads them with the next prompt.
    pub async fn append(&mut self, prompt: Prompt) -> Result<(), TranscriptError> {
        let branch = git_branch(&self.options.cwd);
        self.renew_prefix_if_all_are_there();
        let prompt = prompt.made_to_fit().await;
        self.record_alone(&prompt, branch).await
    }

    /// Tells the model how commands and agents in the background have ended, and what hooks there object to, as a submission of its
    /// own. `None` if it knows.
    pub fn submit_news(&mut self) -> Option<impl Queued<Item = Event> + Send + Unpin + '_> {
        let mut news = self.background.news_for_model();
        let waking = self.kin.hooks.take_waking();
        if self.woken >= HOOK_WAKES_MAX {
            // A hook that wakes it behind each turn would never let it rest: the next prompt brings its words along.
            self.to_tell.contexts.extend(waking);
        } else if !waking.is_empty() {
            self.woken += 1;
            let objects =
                |words: String| format!("A hook that ran in the background objects: {}", words.trim_end());
            news.extend(waking.into_iter().map(objects));
        }
        let words = format!("{TASK_NEWS}\n{}\n</task-notification>", news.join("\n"));
        let prompt = Prompt::text(words).ok().filter(|_| !news.is_empty())?.verbatim().of_harness();
        let cancel = self.interrupter.fresh();
        Some(stream(EVENTS_QUEUED_MAX, move |events| self.run(prompt, None, cancel, events)))
    }
}
