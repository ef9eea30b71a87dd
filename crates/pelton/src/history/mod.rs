//! What was said. The `History` keeps everything and only grows; its `View` is what the model is sent.
//!
//! Nothing here waits, asks the clock or knows who is watching. Entries are serialised once, when they are made;
//! requests, transcript lines and client messages wrap the same bytes.

mod entry; // one thing that was said, with its bytes
mod edit; // what was done to what is sent
mod log; // all of it, in order
mod view; // what the model sees: legal by construction
pub(crate) mod result; // looking into the result of a call
mod repair; // what stands in for a result that never came
mod snip; // what was taken out of what is sent
pub(crate) mod names; // ids and names that every server reads
mod media; // images and documents in entries
mod foreign; // blocks that not every server knows
mod tokens; // estimates for what the model has not counted yet

pub use edit::{By, Edit, EditId, Edited};
pub use entry::{CallId, Entry, EntryId, Kind, Origin, Piece};
pub use media::MediaPlace;
pub use snip::{SnipBoundary, SnipReplay};

pub(crate) use foreign::is_familiar;
pub(crate) use log::{Change, History, Stays};
pub(crate) use repair::LEFT_OUT;
pub(crate) use view::{ChangedSince, CountFacts, MediaLeftOut, PartFacts, Role, View};

#[cfg(test)]
pub(crate) mod tests;
