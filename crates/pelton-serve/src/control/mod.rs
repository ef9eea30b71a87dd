//! A whole session through two pipes: prompts and requests come as lines, everything that happens goes out as lines.
//!
//! Start at [`converse()`]. One task does it all: it listens to the client, pulls the running submission and writes, and
//! whichever has something to do is done next. So the client is heard while tools run, and nothing has to be locked.

mod conversation; // the session, from its first line to its last
mod desk; // what is said and written while it lasts
mod requests; // what the client may want at any time
mod labels; // what the session is called among that
mod roots; // where it works among that
mod reports; // what it is told about the session
mod files; // files among that
mod listing; // hooks among that
mod plugins; // plugins among that
mod servers; // servers of tools among that
mod initialize; // its first words

mod client; // questions to the client
mod permission; // whether a call may run
mod hooks; // hooks of the client's
mod mcp; // tools of the client's
mod elicit; // questions of tools to a person
mod mirror; // the record, for clients that keep it elsewhere

mod said; // what a line says: pure
pub(crate) mod lines; // lines from a pipe
mod outbox; // lines on their way out
mod limits; // every number that bounds this

pub use conversation::{Ended, converse};
pub use desk::{ConverseOptions, StateFrames, WhoDecides};
pub use initialize::introduction;
pub use permission::decided_by;
pub use requests::{Handles, Served, SettingsHome};
pub use servers::ServersNamed;
