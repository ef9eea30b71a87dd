//! Other people's programs, called at named moments of a session: they may add words, change a call, refuse it, or end
//! the run.
//!
//! A [`HookConfig`] pools what settings files and the host of the library registered; `Hooks::fire` calls whatever
//! listens to a `HookInput` and answers with one `Verdict`. What the verdict means for the conversation is the
//! caller's business: nothing here knows the turn.

mod event; // the moments, and what blocking means at each
mod matcher; // which tool, source or reason a hook listens to
mod config; // who listens: settings and callbacks, checked and pooled
mod input; // what a hook is told
mod outcome; // what a hook said, and what several said together
mod run; // calls everyone who listens, side by side
mod session; // the hooks of one session
mod limits; // every number that bounds a hook
mod live; // news of hooks that still run
mod listed; // which hooks there are
mod background; // hooks nobody waits for
mod callback; // hooks that are functions of the host
mod terms; // what addresses on the web must keep to
mod outside; // hooks that are addresses, questions to a model, or tools of servers
mod command; // hooks that are programs
mod watched_files; // files that hooks want to hear of
mod long_text; // what is too long to be told goes to a file

pub use callback::{CallbackError, HookCall, HookCallback};
pub use config::{CallbackTerms, HookConfig, OnFailure, Problem, Severity, Source};
pub use event::HookEvent;
pub use listed::{HooksListed, ListedHook};
pub use live::{HookNote, HooksLive};
pub use outcome::HookOutcome;
pub use run::{HookKind, HookRun};
pub use terms::HttpHookTerms;

pub(crate) use background::Arrived;
pub(crate) use command::filled_in;
pub(crate) use event::Blocking;
pub(crate) use input::{Base, ToolCall};
pub(crate) use matcher::Matcher;
pub(crate) use outcome::PermissionDecision;
pub(crate) use outside::{HookAgents, Reach, ServerTools};
pub(crate) use run::{Fired, HookCx, Hooks};
pub(crate) use session::{Expanded, ModelSwitch, SessionHooks, Shown, by_whole_path};
pub(crate) use watched_files::WatchedFiles;
