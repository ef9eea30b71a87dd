//! The hands of the agent. A [`Tool`] is one capability; `builtin` holds the ones every session has.

pub mod builtin; // Read, Write, Edit, Bash, Glob, Grep
mod disk; // files found once, opened without waiting, replaced whole
pub mod executor; // runs the calls of one answer
pub mod file_memory; // which files the session has read
mod lenient;
mod patch; // what changed between two versions
pub mod process; // children that leave nothing behind
pub mod schedule; // which calls may run together: pure
mod search; // walking a tree for Glob and Grep
pub mod structured; // an answer in the form of a schema
mod text; // bytes of a file as characters
pub mod tool; // what a tool is // numbers and flags the way models write them

pub use tool::{Access, InvalidInput, Output, Progress, Report, ResultBlock, Safety, Spec, Tool, ToolCx};
