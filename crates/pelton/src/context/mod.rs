//! What the model is told besides the conversation.

mod prompt; // who it is and how it works: frozen for the session
mod git; // the state of the repository
mod style; // how it answers
mod surroundings; // where it is: appended once, never in the frozen part
pub(crate) mod memory; // what projects and users want it to know
pub(crate) mod attachment; // what is told beside the conversation, and recorded with it
pub(crate) mod front_matter; // the heads of Markdown files

pub use git::{Checkout, GitState, git_branch, git_state};
pub use memory::{AgentsMd, MemorySources, OutsideImport};
pub use prompt::{Attribution, Notes, SystemPrompt, reminder, served_by, tools_by_server, tools_json};
pub use style::OutputStyle;
pub use surroundings::{Surroundings, news_of_the_branch, news_of_the_day, news_of_the_place};

/// What the small model is told that puts the calls of a turn into a line.
pub(crate) const TOOL_SUMMARY: &str = include_str!("tool_summary.md");
/// The same for what the user may want to say next.
pub(crate) const SUGGESTION: &str = include_str!("suggestion.md");
/// What a model is told that names a session.
pub(crate) const SESSION_NAME: &str = include_str!("session_name.md");
/// The same for what an agent is doing.
pub(crate) const AGENT_PROGRESS: &str = include_str!("agent_progress.md");
