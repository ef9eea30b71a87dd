//! Everything that was said, in order, and the view over it.

use std::sync::Arc;

use super::entry::Entry;
use super::view::{Pushed, View};

/// A conversation: the log keeps everything, the view forgets.
#[derive(Debug, Clone, Default)]
pub struct History {
    entries: Vec<Arc<Entry>>,
    view: View,
}

impl History {
    /// Adds an entry at the end. The answer says whether the model will see it.
    pub fn push(&mut self, entry: Arc<Entry>) -> Pushed {
        self.entries.push(Arc::clone(&entry));
        self.view.push(entry)
    }

    /// Adds an entry that the model is not sent.
    pub fn keep(&mut self, entry: Arc<Entry>) {
        self.entries.push(entry);
    }

    /// What the model sees.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// What the model sees, to be shaped.
    pub fn view_mut(&mut self) -> &mut View {
        &mut self.view
    }

    /// Everything that was said.
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// The newest entry.
    pub fn last(&self) -> Option<&Arc<Entry>> {
        self.entries.last()
    }
}
