//! What was said. The [`History`] keeps everything and only grows; its [`View`] is what the model is sent.
//!
//! Nothing here waits, asks the clock or knows who is watching. Entries are serialised once, when they are made;
//! requests, transcript lines and client messages wrap the same bytes.

mod entry; // one thing that was said, with its bytes
mod log; // all of it, in order
mod view; // what the model sees: legal by construction
pub mod result; // looking into the result of a call
mod repair; // what stands in for a result that never came
mod media; // images and documents in entries
mod tokens; // estimates for what the model has not counted yet

pub use entry::{CallId, Entry, EntryId, Kind, NotAContentArray, Origin, Piece};
pub use log::History;
pub use media::{MEDIA_LEFT_OUT, MediaPlace};
pub use repair::{INTERRUPTED_RESULT, LEFT_OUT, RESULT_FOLDED};
pub use view::{MediaLeftOut, Pushed, Skipped, View};

#[cfg(test)]
mod tests;
