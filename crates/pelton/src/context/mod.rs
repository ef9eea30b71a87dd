//! What the model is told besides the conversation.

mod prompt; // who it is and how it works: frozen for the session
mod surroundings; // where it is: appended once, never in the frozen part

pub use prompt::{SystemPrompt, reminder, tools_json};
pub use surroundings::{Surroundings, git_branch};
