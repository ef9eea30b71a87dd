//! Settings that change while a session runs: looked at when the loop comes by, and heeded from there on. Nothing that stands in
//! front of the requests is touched: rules, further directories and hooks only.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::event::Event;
use crate::hooks::{HookConfig, SessionHooks};
use crate::permission::{Permissions, RuleSet};
use crate::tools::AgentDefinition;

/// Looks after settings for a session. Whoever knows where they are does.
///
/// ```
/// use pelton::{Reloaded, SettingsChange, SettingsKind, SettingsWatch};
///
/// /// Settings that never change.
/// struct Still;
///
/// impl SettingsWatch for Still {
///     fn look(&self) -> Vec<SettingsChange> {
///         Vec::new()
///     }
///
///     fn read(&self) -> Result<Reloaded, String> {
///         Ok(Reloaded::default())
///     }
/// }
/// assert!(Still.look().is_empty());
/// assert_eq!(SettingsKind::Project.name(), "project_settings");
/// ```
pub trait SettingsWatch: Send + Sync {
    /// Which files have come, changed or gone since the last look. Asked often: a look at a few files, no more.
    fn look(&self) -> Vec<SettingsChange>;

    /// What all of them come to now, or why nobody can say.
    fn read(&self) -> Result<Reloaded, String>;

    /// The agents that files describe, if they are not those of the last look. Asked once for each prompt.
    fn agents(&self) -> Option<AgentsChange> {
        None
    }
}

/// Agents that files describe came, changed or went.
///
/// ```
/// // See [`SettingsWatch::agents`](pelton::SettingsWatch::agents).
/// let nobody_left = pelton::AgentsChange { gone: vec!["reviewer".to_owned()], now: Vec::new() };
/// assert!(nobody_left.now.is_empty());
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentsChange {
    /// The names of those that were there.
    pub gone: Vec<String>,
    /// Those that are there.
    pub now: Vec<AgentDefinition>,
}

/// A settings file that is not what it was.
///
/// See [`SettingsWatch`].
///
/// ```
/// use pelton::{SettingsChange, SettingsKind};
///
/// let change = SettingsChange { kind: SettingsKind::User, file: "/home/ada/.claude/settings.json".into() };
/// assert!(change.kind.may_be_refused());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsChange {
    /// Whose it is.
    pub kind: SettingsKind,
    /// The file.
    pub file: PathBuf,
}

/// Whose settings a file holds.
///
/// ```
/// // Hooks may refuse a change, but not one of the administrator's.
/// assert!(!pelton::SettingsKind::Policy.may_be_refused());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingsKind {
    /// The user's own.
    User,
    /// The project's.
    Project,
    /// The user's for this project.
    Local,
    /// The administrator's.
    Policy,
}

/// What settings come to, as far as it can change while a session runs.
///
/// See [`SettingsWatch`].
///
/// ```
/// let mut reloaded = pelton::Reloaded::default();
/// reloaded.rules.deny.push("WebFetch".parse()?);
/// # Ok::<(), pelton::permission::RuleError>(())
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Reloaded {
    /// The rules, those of the command line included.
    pub rules: RuleSet,
    /// Further directories, those of the command line included.
    pub additional_dirs: Vec<PathBuf>,
    /// The hooks of settings files.
    pub hooks: HookConfig,
    /// What is not as it should be in them, for people.
    pub problems: Vec<String>,
}

impl SettingsKind {
    /// The name hooks know.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user_settings",
            Self::Project => "project_settings",
            Self::Local => "local_settings",
            Self::Policy => "policy_settings",
        }
    }

    /// Whether a hook may keep a change from counting.
    pub fn may_be_refused(self) -> bool {
        self != Self::Policy
    }
}

/// Looks, asks hooks about what has changed, and lets it count unless they object. What there is to tell of it.
pub(crate) async fn heed(
    watch: &dyn SettingsWatch,
    hooks: &SessionHooks,
    permissions: &Permissions,
    cwd: &Path,
) -> Vec<Event> {
    let changes = watch.look();
    let mut told = Vec::new();
    if changes.is_empty() {
        return told;
    }
    let inform = |content: String| Event::Informational { content, prevents_continuation: false };
    let mut refused = None;
    for change in &changes {
        let Some(fired) = hooks.settings_changed(change.kind.name(), &change.file, cwd).await else {
            continue;
        };
        if change.kind.may_be_refused() {
            refused = refused.or(fired.verdict.block.or(fired.verdict.stop));
        }
        told.extend(fired.runs.into_iter().map(|run| Event::Hook(Arc::new(run))));
        told.extend(fired.verdict.messages.into_iter().map(inform));
    }
    let files: Vec<String> = changes.iter().map(|change| change.file.display().to_string()).collect();
    let files = files.join(", ");
    let heeded = match refused {
        Some(why) => Err(format!("a hook objects. {}", why.trim())),
        None => watch.read(),
    };
    match heeded {
        Err(why) => told.push(inform(format!("The change of {files} is not heeded: {why}"))),
        Ok(Reloaded { rules, additional_dirs, hooks: configured, problems }) => {
            permissions.start_over_with(rules, additional_dirs);
            hooks.hooks.replace_settings(configured);
            // What a directory adds without being trusted anew is among the problems, and does not count.
            let but = if problems.is_empty() { "" } else { "but for what was just said, " };
            told.extend(problems.into_iter().map(inform));
            told.push(inform(format!(
                "{files} has changed: {but}its rules, directories and hooks count from now on."
            )));
        }
    }
    told
}
