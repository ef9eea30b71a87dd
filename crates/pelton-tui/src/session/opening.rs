//! What a session begins with, and how it is left.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pelton::permission::{Behavior, Change, Mode, Update};
use pelton::{Options, Turned};
use pelton_mcp::Server;
use pelton_serve::{DebugLog, ServersNamed, SettingsHome};
use uuid::Uuid;

use super::{Logs, Outside, Session, StatusCommand};
use crate::app::Effect;
use crate::clean;
use crate::input::Submission;
use crate::theme::{Role, Theme};

/// After how long without a word hooks hear of it, unless somebody says otherwise.
const IDLE_AFTER: Duration = Duration::from_secs(60);

/// A session to be opened.
#[non_exhaustive]
pub struct Opening {
    /// The engine's.
    pub options: Options,
    /// Servers of tools.
    pub servers: Vec<Arc<Server>>,
    /// What may be named as servers while it runs.
    pub servers_named: ServersNamed,
    /// The first request does not wait for servers that were named for this run.
    pub asks_without_servers: bool,
    /// What everything looks like.
    pub theme: Theme,
    /// The first prompt.
    pub first: Option<String>,
    /// Words to begin with that are not sent yet.
    pub draft: Option<Submission>,
    /// All permissions may be switched off.
    pub may_bypass: bool,
    /// What the session is called.
    pub title: Option<String>,
    /// The first words, for somebody who sees it for the first time.
    pub greeting: Option<String>,
    /// What the user should know before it begins.
    pub notices: Vec<String>,
    /// The past is told: the session goes on in a terminal that has not seen it.
    pub tells_past: bool,
    /// Where what happens inside is noted, if it is.
    pub log: Option<DebugLog>,
    /// Who begins to note it, for whoever wants that later.
    pub logs: Option<Arc<dyn Logs>>,
    /// What stands from the session that this one takes the place of.
    pub stands: Option<Standing>,
    /// Other programs.
    pub outside: Outside,
    /// The user's own line about the session.
    pub status: Option<StatusCommand>,
    /// Letters are commands in the prompt, as in vi.
    pub vim: bool,
    /// Where settings are written.
    pub home: Option<Arc<dyn SettingsHome>>,
    /// How long the model's questions wait for somebody who does nothing; for ever, if it is not said.
    pub question_time: Option<Duration>,
    /// After how long without a word, when all is done, hooks hear that somebody is waited for.
    pub idle_after: Duration,
}

impl Opening {
    /// With nothing said about it.
    pub fn new(options: Options, theme: Theme, servers_named: ServersNamed) -> Self {
        Self {
            options,
            servers: Vec::new(),
            servers_named,
            asks_without_servers: false,
            theme,
            first: None,
            draft: None,
            may_bypass: false,
            title: None,
            greeting: None,
            notices: Vec::new(),
            tells_past: true,
            log: None,
            logs: None,
            stands: None,
            outside: Outside::default(),
            status: None,
            vim: false,
            home: None,
            question_time: None,
            idle_after: IDLE_AFTER,
        }
    }
}

/// Why a session was left.
#[derive(Debug)]
#[non_exhaustive]
pub enum Left {
    /// It is over. With it: its id, and the file it is recorded in if there is one.
    Ended {
        /// The session.
        session: Uuid,
        /// Its record.
        transcript: Option<PathBuf>,
    },
    /// Another one is wanted.
    For {
        /// That one.
        wanted: Uuid,
        /// The session that was left, if anything of it is recorded.
        before: Option<Uuid>,
        /// What this process has spent since it began.
        counted_usd: f64,
    },
    /// A copy of it is wanted under another id.
    Branch {
        /// The session.
        session: Uuid,
        /// What the copy is called.
        name: Option<String>,
        /// What was being written meanwhile.
        written: Submission,
        /// What the copy takes over.
        stands: Standing,
    },
    /// The same is wanted in another directory.
    Moved {
        /// The session, if anything of it is recorded.
        session: Option<Uuid>,
        /// The directory.
        to: PathBuf,
        /// What was being written meanwhile.
        written: Submission,
        /// What is taken over.
        stands: Standing,
    },
    /// The same is wanted again without its end: from this prompt on.
    Before {
        /// The session.
        session: Uuid,
        /// The prompt.
        prompt: Uuid,
        /// What it said, to be written again.
        said: Submission,
        /// What is taken over.
        stands: Standing,
    },
}

impl Left {
    /// What this process has spent since it began, where something follows in it.
    pub fn counted_usd(&self) -> f64 {
        match self {
            Self::Ended { .. } => 0.0,
            Self::For { counted_usd, .. } => *counted_usd,
            Self::Branch { stands, .. } | Self::Moved { stands, .. } | Self::Before { stands, .. } => {
                stands.counted_usd
            }
        }
    }

    /// The same once nothing runs any more.
    pub(super) fn counted(&mut self, usd: f64) {
        match self {
            Self::Ended { .. } => {}
            Self::For { counted_usd, .. } => *counted_usd = usd,
            Self::Branch { stands, .. } | Self::Moved { stands, .. } | Self::Before { stands, .. } => {
                stands.counted_usd = usd;
            }
        }
    }
}

/// What stands in a session when it is left, for the one that takes its place.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Standing {
    /// What it was called in this process.
    pub name: Option<String>,
    /// The model, if it is another than the session began with.
    pub model: Option<String>,
    /// How much runs without asking, if that is not what the session began with.
    pub mode: Option<Mode>,
    /// How hard it tries and how much it thinks, likewise.
    pub turned: Turned,
    /// What may run, as it was changed for the session alone.
    pub permitted: Vec<Update>,
    /// What this process has spent since it began. What the session has cost is for its record to say.
    pub counted_usd: f64,
    /// How long the model worked, likewise.
    pub worked: Duration,
    /// What happens inside is noted since somebody wanted that.
    pub has_log: bool,
}

impl Session<'_> {
    /// What the session that takes the place of this one takes over.
    pub(super) fn stands(&self) -> Standing {
        let (model, mode) = (self.handles.dials.model(), self.handles.permissions.mode());
        let (model_before, mode_before) = &self.began_with;
        Standing {
            name: self.name.clone(),
            model: Some(model).filter(|model| model != model_before),
            mode: Some(mode).filter(|mode| mode != mode_before),
            turned: self.handles.dials.turned_since_start(),
            permitted: self.handles.permissions.changes_of_session(),
            counted_usd: self.handles.cost.counted_usd(),
            worked: self.app.worked,
            has_log: self.log.is_some() && self.log_is_late,
        }
    }

    /// The same for one that works in another directory: what was allowed for this one is not allowed there.
    pub(super) fn stands_elsewhere(&self) -> Standing {
        let mut stands = self.stands();
        stands
            .permitted
            .retain(|update| matches!(update.change, Change::AddRules(Behavior::Ask | Behavior::Deny, _)));
        stands
    }

    /// Leaves for another session.
    pub(super) fn leave_for(&mut self, wanted: Uuid) {
        let is_recorded = self.transcript.as_ref().is_some_and(|file| file.exists());
        let before = is_recorded.then_some(self.session_id);
        self.leave(Left::For { wanted, before, counted_usd: self.handles.cost.counted_usd() });
    }

    /// Whether a session can begin where this one works. If that is gone, it is said.
    pub(super) fn is_somewhere(&mut self) -> bool {
        let is_somewhere = self.outside.here.is_none_or(|here| here().is_some());
        if !is_somewhere {
            let words = format!("{} is gone: /cd DIRECTORY goes on elsewhere", self.cwd.display());
            self.app.say(&words, Role::Error);
        }
        is_somewhere
    }

    /// Leaves, and says what runs in the background and ends with the session.
    pub(super) fn leave(&mut self, left: Left) {
        for task in self.handles.tasks.running() {
            let words = clean::line(&task.description);
            self.app
                .say(&format!("ends with this session: {words} ({})", clean::line(&task.id)), Role::Warning);
        }
        for question in self.app.waiting_beside() {
            self.app.say(&format!("not answered any more: {}", clean::line(&question)), Role::Warning);
        }
        for need in std::mem::take(&mut self.needs) {
            let words = match need {
                Effect::Command(own, arguments) => format!("/{} {arguments}", own.name()),
                Effect::Shell(command) => format!("!{command}"),
                _ => continue,
            };
            self.app.say(&format!("not done any more: {}", clean::line(words.trim_end())), Role::Warning);
        }
        self.left = Some(left);
    }
}
