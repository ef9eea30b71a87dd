//! The hands of the agent. A [`Tool`] is one capability; `builtin` holds the ones every session has.

mod tool; // what a tool is
pub(crate) mod schedule; // which calls may run together: pure
pub(crate) mod executor; // runs the calls of one answer
pub(crate) mod bench; // one call, from its input to its output
mod access; // what a call would touch, by name alone
mod pictures; // images of answers, made to fit
pub mod builtin; // Read, Write, Edit, Bash, Glob, Grep, and the one that starts agents
pub(crate) mod predict; // which calls are likely to come next: pure
pub(crate) mod ahead; // those calls, made while the model still answers
pub(crate) mod repetition; // a model that goes round in circles: pure
mod in_order; // what calls change, in the order of asking
pub(crate) mod server; // tools that somebody else serves
pub(crate) mod resources; // and what else they have to read
pub(crate) mod tool_search; // tools that are told of by name
pub(crate) mod offer; // what the model is offered of all these
pub(crate) mod agent; // tasks for others
pub(crate) mod structured; // an answer in the form of a schema
pub(crate) mod file_memory; // which files the session has read
pub(crate) mod changed; // those of them that are not any more what was read
pub(crate) mod process; // children that leave nothing behind
pub(crate) mod background; // commands that run beside the conversation
pub(crate) mod mentions; // @path: files and directories as the model would read them
pub(crate) mod disk; // files found once, opened without waiting, replaced whole
mod notebook; // notebooks by their cells
mod text; // bytes of a file as characters
pub(crate) mod patch; // what changed between two versions
pub(crate) mod search; // walking a tree for Glob and Grep
pub(crate) mod web; // pages of the web
mod lenient; // numbers and flags the way models write them

pub use access::access_of;
pub use agent::{
    ALIAS as AGENT_TOOL_ALIAS, AgentDefinition, BadAgent, Isolation, MemoryScope, NAME as AGENT_TOOL,
    built_in as built_in_agents, changed_lines, general_purpose,
};
pub use ahead::{Speculated, Speculation};
pub use background::{BackgroundEnd, BackgroundKind, BackgroundNews, BackgroundTask};
pub use builtin::ask_user::asking_with_html;
pub use builtin::tasks::TodoTools;
pub use file_memory::FileMemory;
pub use schedule::Siblings;
pub use server::{
    MadeServers, Resource, ServerList, ServerMaker, ServerState, TooManyServers, ToolServer, served_name,
};
pub use tool::{
    Access, InvalidInput, Output, Progress, Report, ResultBlock, Safety, Spec, Tool, ToolCx, parse_input,
};
pub use tool_search::{ToolSearch, UnknownToolSearch};

#[cfg(test)]
mod inside_tests;
