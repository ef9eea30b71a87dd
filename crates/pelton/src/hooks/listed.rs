//! What is called and when, for those who show it.

use std::sync::Arc;
use std::time::Duration;

use super::config::{Entry, Hook, Source, Waiting};
use super::event::HookEvent;
use super::run::{HookKind, Hooks};

/// One hook there is.
///
/// ```
/// # use pelton_model::{Auth, Endpoint};
/// # use serde_json::json;
/// # let mut options = pelton::Options::new("/", Endpoint::new("http://127.0.0.1:9", Auth::None));
/// let settings = json!({"PreToolUse": [{"matcher": "Write|Edit", "hooks": [{"type": "command", "command": "./check"}]}]});
/// options.hooks.add_settings(&settings, &pelton::hooks::Source::User);
/// let listed = pelton::Engine::new(options)?.hooks_listed().all();
/// assert_eq!((listed[0].matcher.as_str(), listed[0].text.as_str()), ("Write|Edit", "./check"));
/// assert_eq!(listed[0].to_string(), "PreToolUse (Write|Edit): ./check"); // a line for people
/// # Ok::<(), pelton::StartError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedHook {
    /// When it is called.
    pub event: HookEvent,
    /// Which of those moments, as settings write it; empty for all.
    pub matcher: String,
    /// Who asked for it.
    pub source: Source,
    /// What is called.
    pub kind: HookKind,
    /// The command, address, question or tool.
    pub text: String,
    /// A permission rule that the call in question has to match as well.
    pub condition: Option<String>,
    /// Its own time limit.
    pub timeout: Option<Duration>,
    /// What users see while it runs.
    pub status_message: Option<String>,
    /// It is called once, and then no more.
    pub once: bool,
    /// Nobody waits for it.
    pub in_background: bool,
}

impl ListedHook {
    pub(super) fn of(entry: &Entry) -> Self {
        let in_background =
            matches!(&entry.hook, Hook::Command(command) if command.waiting != Waiting::UntilDone);
        Self {
            event: entry.event,
            matcher: entry.matcher.text(),
            source: entry.source.clone(),
            kind: HookKind::of(&entry.hook),
            text: entry.label().to_owned(),
            condition: entry.condition.clone(),
            timeout: entry.timeout,
            status_message: entry.status_message.clone(),
            once: entry.once,
            in_background,
        }
    }
}

impl std::fmt::Display for ListedHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let when = if self.matcher.is_empty() { String::new() } else { format!(" ({})", self.matcher) };
        write!(f, "{}{when}: {}", self.event.name(), self.text)
    }
}

/// The hooks of a session, as they are when somebody looks. See [`ListedHook`].
///
/// ```
/// # use pelton_model::{Auth, Endpoint};
/// # let options = pelton::Options::new("/", Endpoint::new("http://127.0.0.1:9", Auth::None));
/// let hooks = pelton::Engine::new(options)?.hooks_listed();
/// assert!(hooks.all().is_empty()); // nobody has asked for any
/// # Ok::<(), pelton::StartError>(())
/// ```
#[derive(Clone)]
pub struct HooksListed(pub(crate) Arc<Hooks>);

impl HooksListed {
    /// All of them: those of settings, plugins, the host, and of skills that were called.
    pub fn all(&self) -> Vec<ListedHook> {
        self.0.listed()
    }
}
