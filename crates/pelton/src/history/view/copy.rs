//! A copy of a view that goes along with it: what it knows already is not gone through again.

use super::super::entry::{CallId, Kind, Piece};
use super::pieces::STRETCH_PARTS;
use super::{Part, View};

impl View {
    /// Brings the copy that was last brought up to this, or a new one, up to it again: it is what a clone would be, and no more of it
    /// is gone through than what came or changed since. Tells how many parts that were.
    pub(crate) fn bring_up(&mut self, copy: &mut Self) -> usize {
        let same = self.copied.min(copy.parts.len());
        for part in copy.parts.drain(same..) {
            if let Some(call) = call_of(&part) {
                copy.known.remove(call);
            }
        }
        let new = &self.parts[same..];
        copy.known.extend(new.iter().filter_map(call_of).cloned());
        copy.parts.extend_from_slice(new);
        copy.stretches.truncate(same / STRETCH_PARTS);
        copy.stretches.extend(self.stretches.iter().skip(copy.stretches.len()).cloned());
        copy.open.clone_from(&self.open);
        (copy.results_end, copy.run_begins) = (self.results_end, self.run_begins);
        (copy.weighed, copy.size) = (self.weighed, self.size);
        copy.last.clone_from(&self.last);
        copy.sums.clone_from(&self.sums);
        self.copied = self.parts.len();
        self.parts.len() - same
    }
}

fn call_of(part: &Part) -> Option<&CallId> {
    match &part.entry.kind {
        Kind::Assistant { piece: Piece::Call { id, .. }, .. } => Some(id),
        _ => None,
    }
}
