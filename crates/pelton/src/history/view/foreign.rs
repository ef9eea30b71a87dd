//! Leaving out blocks that a server does not know.

use std::collections::HashSet;

use super::super::foreign::{has, kind_at, kinds_not_needed, server_call, without};
use super::{Part, View};

impl View {
    /// The kinds of blocks that it can be sent without, each once.
    pub(crate) fn kinds_not_needed(&self) -> Vec<String> {
        let mut kinds = Vec::new();
        for kind in self.parts.iter().flat_map(|part| kinds_not_needed(&part.entry)) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }

    /// The kind of a block by its place as the API counts, if it can be sent without: the message's place among those sent, the
    /// block's in it, and in a result the place there.
    pub(crate) fn kind_at(&self, message: usize, block: usize, inner: Option<usize>) -> Option<String> {
        let mut messages =
            self.parts.chunk_by(|one, two| one.entry.is_assistant() == two.entry.is_assistant());
        let mut before = 0;
        for Part { entry, .. } in messages.nth(message)? {
            let blocks = entry.block_count();
            if block < before + blocks {
                return kind_at(entry, block - before, inner);
            }
            before += blocks;
        }
        None
    }

    /// Leaves out the blocks of these kinds, and what cannot be without them: the thinking behind them, and the other half of
    /// what a server did. Tells whether there were any.
    pub(super) fn leave_out_blocks(&mut self, kinds: &[String], by: &str) -> bool {
        let is_refused = |part: &Part| has(&part.entry, kinds);
        let Some(refused) = self.parts.iter().position(is_refused) else { return false };
        let halves: HashSet<String> = self
            .parts
            .iter()
            .filter(|part| is_refused(part))
            .filter_map(|part| server_call(&part.entry))
            .collect();
        let is_half = |part: &Part| server_call(&part.entry).is_some_and(|call| halves.contains(&call));
        let first = self.parts.iter().position(is_half).map_or(refused, |half| half.min(refused));
        let mut view = self.emptied();
        for (place, mut part) in std::mem::take(&mut self.parts).into_iter().enumerate() {
            let goes = part.entry.is_assistant() && (is_refused(&part) || is_half(&part))
                || place > first && part.entry.is_thinking();
            if goes {
                continue;
            }
            if is_refused(&part)
                && let Some(changed) = without(&part.entry, kinds)
            {
                part.entry = changed;
            }
            view.push_again(part);
        }
        view.last = std::mem::take(&mut self.last);
        view.touched(first, by);
        view.after_edit();
        *self = view;
        true
    }
}
