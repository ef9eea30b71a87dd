//! E27: places where parts of a conversation were taken out of what the model is sent.

use std::sync::Arc;

use serde_json::Value;

use super::entry::{Entry, EntryId};

/// A place in a recorded conversation from which on parts of what was said before were not sent any more.
///
/// ```
/// use pelton::history::SnipBoundary;
///
/// /// The names of what was taken out, as other programs write them.
/// fn removed(boundary: &SnipBoundary) -> Vec<&str> {
///     let names = boundary.line["removedUuids"].as_array().map_or(&[][..], Vec::as_slice);
///     names.iter().filter_map(|name| name.as_str()).collect()
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SnipBoundary {
    /// How many entries stand before it.
    pub at: usize,
    /// Its line in the transcript.
    pub line: Value,
}

/// Says what a [`SnipBoundary`] took away, when the conversation is resumed. Without anybody to say it all is sent again:
/// nothing is lost.
///
/// ```
/// use std::sync::Arc;
///
/// use pelton::history::{Entry, EntryId, SnipBoundary, SnipReplay};
///
/// /// The boundary names them itself.
/// struct AsNamed;
///
/// impl SnipReplay for AsNamed {
///     fn replay(&self, boundary: &SnipBoundary, said: &[Arc<Entry>]) -> Vec<EntryId> {
///         let names = boundary.line["removedUuids"].as_array().cloned().unwrap_or_default();
///         let is_named = |entry: &&Arc<Entry>| names.iter().any(|name| *name == *entry.id.to_string());
///         said.iter().filter(is_named).map(|entry| entry.id).collect()
///     }
/// }
/// # let _: Arc<dyn SnipReplay> = Arc::new(AsNamed); // `Options::snip_replay` is where it goes
/// ```
pub trait SnipReplay: Send + Sync {
    /// Which of the entries before a boundary are not sent. The rest stays legal: a result goes with its call, and a call
    /// without its result gets a stand-in.
    fn replay(&self, boundary: &SnipBoundary, said: &[Arc<Entry>]) -> Vec<EntryId>;
}
