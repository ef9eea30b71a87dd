//! Who listens to which event: what settings files say and what the host registered, checked and pooled.
//!
//! Pure. An entry that cannot be right is left out and named in a [`Problem`]; the rest of its file still counts. What
//! to do about problems is the caller's decision.

mod read;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::callback::HookCallback;
use super::event::HookEvent;
use super::limits::{
    AGENT_TIME_DEFAULT, CALLBACK_TIME_DEFAULT, COMMAND_TIME_DEFAULT, CONFIGURED_MAX, DISPLAY_TIME_DEFAULT,
    JUDGE_TIME_DEFAULT, PROMPT_TIME_DEFAULT, SESSION_END_TIME_DEFAULT, SESSION_END_TIME_MAX, TIME_MAX,
};
use super::matcher::Matcher;

/// All hooks of a session, in the order they were added.
///
/// ```
/// use pelton::hooks::{HookConfig, Severity, Source};
/// use serde_json::json;
///
/// let mut hooks = HookConfig::default();
/// let settings = json!({"Stop": [{"hooks": [{"type": "command", "command": "make test >&2 || exit 2"}]}]});
/// assert!(hooks.add_settings(&settings, &Source::User).is_empty());
///
/// let problems = hooks.add_settings(&json!({"Stop": "make test"}), &Source::User);
/// assert_eq!(problems[0].severity, Severity::Error);
/// ```
#[derive(Debug, Clone, Default)]
pub struct HookConfig {
    entries: Vec<Arc<Entry>>,
}

/// One hook and when it is called.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Entry {
    /// The moment.
    pub event: HookEvent,
    /// Which of those moments.
    pub matcher: Matcher,
    /// A permission rule that the call in question has to match as well, as settings write it (`if`).
    pub condition: Option<String>,
    /// What is called.
    pub hook: Hook,
    /// Its own time limit.
    pub timeout: Option<Duration>,
    /// What users see while it runs.
    pub status_message: Option<String>,
    /// What its failure means.
    pub on_failure: OnFailure,
    /// Who asked for it.
    pub source: Source,
    /// It is called once, and then no more (`once`, of skills).
    pub once: bool,
}

/// What is called.
#[derive(Clone)]
#[non_exhaustive]
pub enum Hook {
    /// A program.
    Command(CommandHook),
    /// A function of the host.
    Callback(Arc<dyn HookCallback>),
    /// An address that events are sent to.
    Http(HttpHook),
    /// A question to a model.
    Judge(JudgeHook),
    /// A tool of a server.
    ServerTool(ServerToolHook),
}

/// An address that is a hook (`http`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpHook {
    /// The address.
    pub url: String,
    /// What is sent with the event, in the words of the settings.
    pub headers: Vec<(String, String)>,
    /// Variables of the environment that these may hold.
    pub allowed_env: Vec<String>,
}

/// A question to a model that is a hook (`prompt`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeHook {
    /// The condition it judges.
    pub prompt: String,
    /// Who is asked, if not the small model.
    pub model: Option<String>,
    /// What it objects to is told to the model instead of ending the turn.
    pub continue_on_block: bool,
    /// It is asked of an agent that looks around before it answers (`agent`).
    pub looks: bool,
}

/// A tool of a server that is a hook (`mcp_tool`).
#[derive(Debug, Clone, PartialEq)]
pub struct ServerToolHook {
    /// The server.
    pub server: String,
    /// Its tool.
    pub tool: String,
    /// What it is called with; texts may name places in the event.
    pub input: Value,
}

/// A program that is a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandHook {
    /// A line for the shell; with `args`, a program.
    pub command: String,
    /// Arguments, taken literally but for placeholders. With them no shell reads the command.
    pub args: Option<Vec<String>>,
    /// Which shell reads the line.
    pub shell: Shell,
    /// Whether its answer is waited for.
    pub waiting: Waiting,
}

/// A shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shell {
    /// The system's `sh`.
    #[default]
    Sh,
    /// `bash` from the path.
    Bash,
}

/// Whether a command's answer is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Waiting {
    /// The session waits.
    #[default]
    UntilDone,
    /// The session goes on; what the command says arrives later (`async`).
    Never,
    /// The same, and a command that blocks wakes an idle session (`asyncRewake`).
    NeverButWakes,
}

/// What it means that a hook failed or ran out of time.
///
/// ```
/// use pelton::hooks::{CallbackTerms, OnFailure};
///
/// // Without an answer, nothing runs.
/// let careful = CallbackTerms { on_failure: OnFailure::Blocks, ..CallbackTerms::default() };
/// assert_ne!(careful.on_failure, OnFailure::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// What is usual: it is shown and does not block. A callback out of time blocks where something waits for its
    /// permission.
    #[default]
    Usual,
    /// It blocks.
    Blocks,
}

/// Who asked for a hook.
///
/// ```
/// use pelton::hooks::{HookConfig, Source};
/// use serde_json::json;
///
/// let mut hooks = HookConfig::default();
/// let wrong = hooks.add_settings(&json!({"Stop": "make test"}), &Source::Project);
/// assert_eq!(wrong[0].source, Source::Project); // whoever reads the message knows whose file it is
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// The administrator of the machine.
    Policy,
    /// The user's own settings.
    User,
    /// The project's settings, which come with the repository.
    Project,
    /// The user's settings for this project.
    Local,
    /// The command line.
    Flag,
    /// A plugin.
    Plugin {
        /// Where it is installed.
        root: PathBuf,
        /// Where it keeps what it wants to keep.
        data: PathBuf,
        /// What its user has set for it.
        options: Arc<BTreeMap<String, String>>,
    },
    /// The program that uses the library, or an SDK client.
    Host,
    /// The head of a skill's file.
    Skill,
    /// The description of a sub-agent.
    Agent,
}

/// How a callback is treated.
///
/// ```
/// use std::time::Duration;
///
/// use pelton::hooks::{CallbackTerms, OnFailure};
///
/// let terms = CallbackTerms { timeout: Some(Duration::from_secs(5)), ..CallbackTerms::default() };
/// assert_eq!(terms.on_failure, OnFailure::Usual);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct CallbackTerms {
    /// Its time limit, if not the usual one.
    pub timeout: Option<Duration>,
    /// What its failure means.
    pub on_failure: OnFailure,
}

/// Something in the settings that is not as it should be.
///
/// ```
/// use pelton::hooks::{HookConfig, Source};
/// use serde_json::json;
///
/// let settings = json!({"Stop": [{"hooks": [{"type": "command"}]}]});
/// let problems = HookConfig::default().add_settings(&settings, &Source::User);
/// assert!(problems[0].place.starts_with("hooks.Stop[0].hooks[0]"), "{}", problems[0]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Whether something was left out for it.
    pub severity: Severity,
    /// Whose settings.
    pub source: Source,
    /// Where in them: `hooks.Stop[0].hooks[1].timeout`.
    pub place: String,
    /// What is wrong, and what would be right.
    pub text: String,
}

/// How bad a problem is.
///
/// ```
/// use pelton::hooks::{HookConfig, Severity, Source};
/// use serde_json::json;
///
/// let problems = HookConfig::default().add_settings(&json!({"Stop": "make test"}), &Source::User);
/// let is_usable = problems.iter().all(|problem| problem.severity == Severity::Warning);
/// assert!(!is_usable);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Nothing is wrong that we can tell, but what is written there has no effect.
    Warning,
    /// It cannot be right; the hook is left out.
    Error,
}

impl HookConfig {
    /// Adds the `hooks` object of one settings file.
    pub fn add_settings(&mut self, hooks: &Value, source: &Source) -> Vec<Problem> {
        let (entries, problems) =
            read::settings(hooks, source, CONFIGURED_MAX.saturating_sub(self.entries.len()));
        self.entries.extend(entries.into_iter().map(Arc::new));
        problems
    }

    /// What a sub-agent brings for the time it runs, as settings write it. Its end is a [`HookEvent::SubagentStop`], its own
    /// and no other's.
    pub(crate) fn of_agent(hooks: &Value, agent: &str) -> (Self, Vec<Problem>) {
        let (mut entries, problems) = read::settings(hooks, &Source::Agent, CONFIGURED_MAX);
        for entry in entries.iter_mut().filter(|entry| entry.event == HookEvent::Stop) {
            (entry.event, entry.matcher) = (HookEvent::SubagentStop, Matcher::Names(vec![agent.to_owned()]));
        }
        (Self { entries: entries.into_iter().map(Arc::new).collect() }, problems)
    }

    /// The names of files that hooks listen to.
    pub(crate) fn watched_names(&self) -> Vec<String> {
        let listening = self.entries.iter().filter(|entry| entry.event == HookEvent::FileChanged);
        let names = listening.flat_map(|entry| match &entry.matcher {
            Matcher::Names(names) => names.clone(),
            Matcher::All | Matcher::Pattern(_) => Vec::new(),
        });
        names.collect()
    }

    /// Puts others in the place of what settings files registered.
    pub(crate) fn replace_settings(&mut self, settings: Self) {
        let of_files = |entry: &Arc<Entry>| {
            matches!(
                entry.source,
                Source::Policy | Source::User | Source::Project | Source::Local | Source::Flag
            )
        };
        self.entries.retain(|entry| !of_files(entry));
        let mut all = settings;
        all.extend(std::mem::take(self));
        *self = all;
    }

    /// Leaves out these.
    pub(crate) fn leave_out(&mut self, gone: &[Arc<Entry>]) {
        self.entries.retain(|entry| !gone.iter().any(|gone| Arc::ptr_eq(entry, gone)));
    }

    /// Adds what another file registered, as far as there is room.
    pub fn extend(&mut self, more: Self) {
        let room = CONFIGURED_MAX.saturating_sub(self.entries.len());
        self.entries.extend(more.entries.into_iter().take(room));
    }

    /// Leaves only hooks of the administrator and of the program around. Whether there were others.
    pub(crate) fn keep_managed(&mut self) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| matches!(entry.source, Source::Policy | Source::Host));
        self.entries.len() < before
    }

    /// Adds a function of the host.
    pub fn add_callback(
        &mut self,
        event: HookEvent,
        matcher: Option<&str>,
        callback: Arc<dyn HookCallback>,
        terms: CallbackTerms,
    ) -> Result<(), Problem> {
        let wrong = |text: String| Problem {
            severity: Severity::Error,
            source: Source::Host,
            place: format!("hooks.{}.matcher", event.name()),
            text,
        };
        if self.entries.len() >= CONFIGURED_MAX {
            return Err(wrong(format!("there are more than {CONFIGURED_MAX} hooks")));
        }
        self.entries.push(Arc::new(Entry {
            event,
            matcher: Matcher::read(matcher.unwrap_or_default(), event).map_err(wrong)?,
            condition: None,
            hook: Hook::Callback(callback),
            timeout: terms.timeout.map(|time| time.min(TIME_MAX)),
            status_message: None,
            on_failure: terms.on_failure,
            source: Source::Host,
            once: false,
        }));
        Ok(())
    }

    /// Whether nothing is called at any moment.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What settings have called: when, and which command, address, question or tool.
    pub fn commands(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let configured = |entry: &&Arc<Entry>| !matches!(entry.hook, Hook::Callback(_));
        self.entries.iter().filter(configured).map(|entry| (entry.event.name(), entry.label()))
    }

    /// Every hook, in the order they were added.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().map(Arc::as_ref)
    }

    /// Whether anybody listens to an event at all.
    pub(crate) fn listens(&self, event: HookEvent) -> bool {
        self.entries.iter().any(|entry| entry.event == event)
    }

    /// The hooks to call for one event, each command once however often it is configured. `condition` answers whether
    /// the call in question matches a permission rule.
    pub(crate) fn matching(
        &self,
        event: HookEvent,
        subject: Option<&str>,
        condition: impl Fn(&str) -> bool,
    ) -> Vec<Arc<Entry>> {
        let mut matching: Vec<Arc<Entry>> = Vec::new();
        for entry in &self.entries {
            let listens = entry.event == event
                && entry.matcher.matches(subject)
                && entry.condition.as_ref().is_none_or(|rule| event.is_about_a_call() && condition(rule));
            if listens && !matching.iter().any(|earlier| earlier.does_the_same_as(entry)) {
                matching.push(Arc::clone(entry));
            }
        }
        matching
    }
}

impl Entry {
    /// How long it may take; `together` is the bound on all hooks of an event that has one.
    pub fn time_limit(&self, together: Option<Duration>) -> Duration {
        let usual = match (&self.hook, self.event) {
            (Hook::Callback(_), _) => CALLBACK_TIME_DEFAULT,
            (Hook::Judge(judge), _) if judge.looks => AGENT_TIME_DEFAULT,
            (Hook::Judge(_), _) => JUDGE_TIME_DEFAULT,
            (_, HookEvent::UserPromptSubmit) => PROMPT_TIME_DEFAULT,
            (_, HookEvent::MessageDisplay) => DISPLAY_TIME_DEFAULT,
            _ => COMMAND_TIME_DEFAULT,
        };
        let own = self.timeout.unwrap_or(usual);
        together.map_or(own, |together| own.min(together))
    }

    /// What notices call it.
    pub fn label(&self) -> &str {
        match &self.hook {
            Hook::Command(command) => &command.command,
            Hook::Callback(callback) => callback.label(),
            Hook::Http(http) => &http.url,
            Hook::Judge(judge) => &judge.prompt,
            Hook::ServerTool(called) => &called.tool,
        }
    }

    /// The same words mean another program in another plugin.
    fn does_the_same_as(&self, other: &Self) -> bool {
        let plugin = |source: &Source| match source {
            Source::Plugin { root, .. } => Some(root.clone()),
            _ => None,
        };
        match (&self.hook, &other.hook) {
            (Hook::Command(one), Hook::Command(two)) => {
                (&one.command, &one.args, one.shell) == (&two.command, &two.args, two.shell)
                    && plugin(&self.source) == plugin(&other.source)
            }
            (Hook::Http(one), Hook::Http(two)) => one == two,
            (Hook::Judge(one), Hook::Judge(two)) => one == two,
            (Hook::ServerTool(one), Hook::ServerTool(two)) => one == two,
            _ => false,
        }
    }
}

/// The bound on all hooks of an event together. Only a session's end has one: nobody wants to wait for that.
pub fn time_together(event: HookEvent, entries: &[Arc<Entry>]) -> Option<Duration> {
    if event != HookEvent::SessionEnd {
        return None;
    }
    let asked = entries.iter().filter_map(|entry| entry.timeout).max().unwrap_or_default();
    Some(asked.clamp(SESSION_END_TIME_DEFAULT, SESSION_END_TIME_MAX))
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => command.fmt(f),
            Self::Callback(callback) => f.debug_tuple("Callback").field(&callback.label()).finish(),
            // Headers may hold secrets.
            Self::Http(http) => f.debug_tuple("Http").field(&http.url).finish(),
            Self::Judge(judge) => judge.fmt(f),
            Self::ServerTool(called) => called.fmt(f),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.place, self.text)
    }
}

#[cfg(test)]
mod tests;
