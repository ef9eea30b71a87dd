//! The hands of the agent. A [`Tool`] is one capability; `builtin` holds the ones every session has.

pub mod tool; // what a tool is
pub mod file_memory; // which files the session has read
pub mod builtin; // Read, Write, Edit, Bash, Glob, Grep

pub use tool::{Access, InvalidInput, Output, Progress, Report, ResultBlock, Safety, Spec, Tool, ToolCx};
