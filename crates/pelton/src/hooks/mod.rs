//! Other people's programs, called at named moments of a session: they may add words, change a call, refuse it, or end
//! the run.
//!
//! A [`HookConfig`] pools what settings files and the host of the library registered; [`Hooks::fire`] calls whatever
//! listens to a [`HookInput`] and answers with one [`Verdict`]. What the verdict means for the conversation is the
//! caller's business: nothing here knows the turn.

pub mod event; // the moments, and what blocking means at each
pub mod matcher; // which tool, source or reason a hook listens to
pub mod config; // who listens: settings and callbacks, checked and pooled
pub mod input; // what a hook is told
pub mod outcome; // what a hook said, and what several said together
pub mod run; // calls everyone who listens, side by side
pub mod limits; // every number that bounds a hook
mod background; // hooks nobody waits for
mod callback; // hooks that are functions of the host
mod command; // hooks that are programs
mod long_text; // what is too long to be told goes to a file

pub use background::Arrived;
pub use callback::{CallbackError, HookCall, HookCallback};
pub use config::{
    CallbackTerms, CommandHook, Entry, Hook, HookConfig, OnFailure, Problem, Severity, Shell, Source, Waiting,
};
pub use event::HookEvent;
pub use input::{Base, EventInput, HookInput, ToolCall};
pub use outcome::{HookOutcome, PermissionAnswer, PermissionDecision, Verdict};
pub use run::{Fired, HookCondition, HookCx, HookKind, HookNews, HookRun, HookWatch, Hooks};
