//! Keeping changes of what may run beyond the session: files are the host's.

use std::fmt;
use std::sync::Arc;

use super::update::{Destination, Update};

/// Keeps changes for later sessions, where their [destination](Destination) says. Set as
/// [`Options::keeper`](crate::Options::keeper); without one, changes hold for the session and no longer.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use pelton::permission::{Keeper, Update};
///
/// struct Shelf(Mutex<Vec<serde_json::Value>>);
///
/// impl Keeper for Shelf {
///     fn keep(&self, update: &Update) -> Result<(), String> {
///         self.0.lock().map_err(|error| error.to_string())?.push(update.to_json());
///         Ok(())
///     }
/// }
///
/// let keeper: Arc<dyn Keeper> = Arc::new(Shelf(Mutex::default()));
/// ```
pub trait Keeper: Send + Sync {
    /// Keeps one change, which holds in this session already. What is wrong is told to whoever made the change.
    fn keep(&self, update: &Update) -> Result<(), String>;
}

/// Whoever keeps changes, if anybody does.
#[derive(Clone, Default)]
pub(super) struct Kept(pub Option<Arc<dyn Keeper>>);

impl Kept {
    pub fn keep(&self, update: &Update) -> Result<(), String> {
        match (&self.0, update.destination) {
            (None, _) | (_, Destination::Session | Destination::CliArg) => Ok(()),
            (Some(keeper), _) => keeper.keep(update),
        }
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Kept" } else { "NotKept" })
    }
}
