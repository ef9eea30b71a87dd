//! Front ends without a screen: plain text, one JSON result, and stream-json. They translate events for their
//! readers and decide nothing. Writers are passed in; nothing here touches the process's own streams.
//!
//! A part of Pelton: it goes along with the engine and makes no promise of its own. Embedders start at the crate `pelton`.

mod print; // one prompt, shown as it runs
mod control; // a whole session through two pipes
mod tool_server; // tools alone, for programs that speak MCP

mod redact; // keys in texts that are logged
mod debug; // what happens inside, for whoever looks for a fault
mod frames; // stream-json: events as SDK messages
mod outcome; // the result message

pub mod plain; // untrusted text made safe for a terminal
pub mod progress; // what the tools are doing, as a tree
mod text; // plain text, for people and pipes

mod out; // writers with a queue: a slow reader never blocks the engine

pub use control::{
    ConverseOptions, Ended, Handles, Served, ServersNamed, SettingsHome, StateFrames, WhoDecides, converse,
    decided_by, introduction,
};
pub use debug::DebugLog;
pub use out::{Streams, WriteError};
pub use outcome::start_failure;
pub use plain::plain;
pub use print::{Format, PrintOptions, print};
pub use tool_server::serve_tools;
