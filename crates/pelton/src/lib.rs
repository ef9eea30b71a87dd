//! Pelton: an agent engine. Give it a task; it drives a language model through a loop — stream an answer, run the
//! tools it asks for while it still streams, feed the results back — until the task is done.
//!
//! Start at [`Engine`]: [`Options`] say what it may do, [`Engine::submit`] gives a stream of [`Event`]s that ends
//! in a result. Behind it, from the outside in:

mod engine; // one conversation: input, turns, result
mod options; // what it is told at its start
mod prompt; // what is submitted
mod queue; // what is submitted while it is busy
mod dials; // which model is asked, and how, from now on
mod model_choice; // which models may be asked
pub mod event; // what it tells
pub mod command; // slash commands
pub mod host; // what it asks of the program around it
mod turn; // the loop, and the one place that decides
pub mod tools; // what the model may call
pub mod permission; // what may run
mod aside; // questions to a model beside the conversation
mod media; // pictures that fit
pub mod hooks; // other people's programs, called at named moments
pub mod plugins; // directories that bring skills, agents, hooks and servers
pub mod compact; // keeping what the model sees small enough
mod skills; // texts that users and the model call by name
mod context; // what the model is told besides the conversation
pub mod history; // what was said: pure data
pub mod transcript; // what was said, on disk
pub mod file_history; // what was done to files, to undo it
pub mod settings; // what settings files say: pure data
pub mod sandbox; // commands in a box
mod limits; // every number that bounds something
mod status; // what it is doing right now
mod interrupt; // ending a submission from outside
mod places; // where a path leads
mod repository; // what git finds, and what it runs
mod ignored; // which directories are nobody's work
mod secrets; // what is kept from programs, and out of what is written down
mod addresses; // where a name of a host must not lead: pure
mod instructed; // instruction files, as others hear of them
mod reload; // settings that change while a session runs
mod spill; // texts too long to be told
mod account; // what it costs
mod session; // history and transcript, always in step
mod gauge; // how full the context is, seen from outside

/// Programs that leave nothing behind, for front ends that start helpers of their own.
pub mod process {
    pub use crate::repository::RepositoryPrograms;
    pub use crate::secrets::{for_programs, is_withheld};
    pub use crate::tools::process::{Ended, Launch, Printed, ProcessTree};
}

pub use context::{AgentsMd, Attribution, MemorySources, OutputStyle, OutsideImport, SystemPrompt};
pub use dials::{Dials, ModelRefused, Turned};
pub use engine::{
    EndReason, Engine, Joins, Menu, Namer, NotColored, NotJoined, ReshapeError, Reshaped, RootJoins,
    SESSION_COLORS, StartError, Tasks, Title,
};
pub use event::{Event, Outcome};
pub use gauge::ContextWatch;
pub use interrupt::Interrupter;
pub use limits::{
    AgentLimits, FALLBACK_MODELS_MAX, OUTPUT_TOKENS_UNKNOWN_MODEL, QUEUED_BYTES_MAX, QUEUED_PROMPTS_MAX,
    ToolLimits, WINDOW_TOKENS_UNKNOWN_MODEL,
};
pub use model_choice::ModelChoice;
pub use options::{AgentGone, LateAnswer, Options, Resumed, Sessions, Setup, WorktreeBase, WorktreeOptions};
pub use places::normalised;
pub use prompt::{BlankPrompt, Prompt, PromptBlock};
pub use queue::{Priority, Queue, QueueError};
pub use reload::{AgentsChange, Reloaded, SettingsChange, SettingsKind, SettingsWatch};
pub use session::fresh_id;
pub use skills::{SkillShown, SkillSources, agent_files_in, agents_in};
pub use status::{Phase, Status, Wait};
pub use turn::{Bystander, CostWatch, Limits, NotAnswered, Terminal, Transition};

/// The version of the reference command line that Pelton stands in for: clients look at it to know what they may
/// ask for.
pub const CLI_VERSION: &str = "2.1.325";

/// The model name on words of the harness in the assistant's role.
pub const SYNTHETIC_MODEL: &str = "<synthetic>";
