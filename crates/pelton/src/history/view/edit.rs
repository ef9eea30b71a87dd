//! Making edits. Whatever an edit says, the rest is legal: calls go with their results, and what stays is pushed again,
//! one by one, through the same door as everything else.

use std::collections::HashSet;
use std::sync::Arc;

use super::super::edit::Edit;
use super::super::entry::{CallId, Entry, EntryId, Kind, Piece};
use super::super::repair::{folded, left_out};
use super::super::result::with_words;
use super::super::tokens::Weight;
use super::{Part, View, weight};

impl View {
    /// Makes an edit; `stand_in` is what stands in the place of what is taken away, `by` who makes it. Tells whether
    /// anything has changed. Thinking behind the change goes with it, because it is bound to everything before it; what stands before stays.
    pub(crate) fn apply(&mut self, edit: &Edit, stand_in: Option<Arc<Entry>>, by: &str) -> bool {
        match edit {
            Edit::Replace { from, to, .. } => self.replace(*from, *to, stand_in, by),
            Edit::Clear { calls } => {
                let calls: HashSet<&str> = calls.iter().map(String::as_str).collect();
                self.change_results(by, |call, entry| calls.contains(call).then(|| folded(entry)).flatten())
            }
            Edit::Shorten { call, text } => self.change_results(by, |other, entry| {
                (other == call).then(|| with_words(entry, text)).flatten()
            }),
            Edit::Media { places } => !self.leave_out_media_of(places, by).places.is_empty(),
            Edit::Blocks { kinds } => self.leave_out_blocks(kinds, by),
            // What counts no more is for the history to leave out.
            Edit::Undo { .. } => false,
        }
    }

    /// The same conversation with nothing said yet: what is known of the model's way of counting stays.
    pub(crate) fn emptied(&self) -> Self {
        let mut size = self.size;
        size.changed(Weight::default());
        Self { size, ..Self::default() }
    }

    fn change_results(&mut self, by: &str, changed: impl Fn(&str, &Entry) -> Option<Entry>) -> bool {
        let mut first = None;
        for (index, part) in self.parts.iter_mut().enumerate() {
            if let Kind::ToolResult { call, .. } = &part.entry.kind
                && !part.stand_in
                && let Some(other) = changed(call, &part.entry)
            {
                part.entry = Arc::new(other);
                first.get_or_insert(index);
            }
        }
        let Some(first) = first else { return false };
        self.touched(first, by);
        self.leave_out_thinking_from(first, by);
        self.size.changed(weight(&self.parts));
        true
    }

    fn replace(&mut self, from: EntryId, to: EntryId, with: Option<Arc<Entry>>, by: &str) -> bool {
        let first = self.parts.iter().position(|part| part.entry.id == from && !part.stand_in);
        let last = self.parts.iter().rposition(|part| part.entry.id == to && !part.stand_in);
        let (Some(first), Some(last)) = (first, last) else { return false };
        let Some((first, last)) = self.with_whole_rounds(first, last) else { return false };
        let behind = self.parts.split_off(last + 1);
        self.parts.truncate(first);
        let with = match (with, behind.first()) {
            // An answer cannot be the first thing said.
            (None, Some(next)) if first == 0 && next.entry.is_assistant() => left_out(&next.entry),
            (with, _) => with,
        };
        let before = std::mem::take(&mut self.parts);
        let mut view = self.emptied();
        before.into_iter().for_each(|part| view.push_again(part));
        if let Some(entry) = with {
            view.push(entry);
        }
        behind.into_iter().filter(|part| !part.entry.is_thinking()).for_each(|part| view.push_again(part));
        view.last = std::mem::take(&mut self.last);
        view.last.touched(first, by);
        view.after_edit();
        *self = view;
        true
    }

    /// Says again what was said before. What stands for a result that nobody gave stays where it was: what comes before an
    /// edit is the same, byte for byte.
    pub(super) fn push_again(&mut self, part: Part) {
        if !part.stand_in {
            self.push(part.entry);
            return;
        }
        let Kind::ToolResult { call, .. } = &part.entry.kind else { return };
        if let Some(position) = self.open.iter().position(|open| open == call) {
            self.end_answer(&part.entry);
            self.open.remove(position);
            self.insert_result(part);
        }
    }

    /// The same places, or further apart, so that no call is on one side and its result on the other. `None` if a call
    /// among them waits for its result, or nothing is there.
    fn with_whole_rounds(&self, mut first: usize, mut last: usize) -> Option<(usize, usize)> {
        if first > last {
            return None;
        }
        let is_answer = |place: usize| self.parts.get(place).is_some_and(|part| part.entry.is_assistant());
        loop {
            // An answer is one thing: what a server did in it, and the thinking that led there, cannot be taken apart.
            while first > 0 && is_answer(first) && is_answer(first - 1) {
                first -= 1;
            }
            while is_answer(last) && is_answer(last + 1) {
                last += 1;
            }
            let (made, answered) = self.calls_between(first, last);
            if self.open.iter().any(|open| made.contains(open)) {
                return None;
            }
            let is_half = |part: &Part| match &part.entry.kind {
                Kind::ToolResult { call, .. } => made.contains(call),
                Kind::Assistant { piece: Piece::Call { id, .. }, .. } => answered.contains(id),
                _ => false,
            };
            let earlier = self.parts[..first].iter().position(is_half);
            let later = self.parts[last + 1..].iter().rposition(is_half).map(|place| last + 1 + place);
            if earlier.is_none() && later.is_none() {
                return Some((first, last));
            }
            (first, last) = (earlier.unwrap_or(first), later.unwrap_or(last));
        }
    }

    /// The calls made and the calls answered between two places.
    fn calls_between(&self, first: usize, last: usize) -> (HashSet<CallId>, HashSet<CallId>) {
        let (mut made, mut answered) = (HashSet::new(), HashSet::new());
        for part in &self.parts[first..=last] {
            match &part.entry.kind {
                Kind::ToolResult { call, .. } => _ = answered.insert(Arc::clone(call)),
                Kind::Assistant { piece: Piece::Call { id, .. }, .. } => _ = made.insert(Arc::clone(id)),
                _ => {}
            }
        }
        (made, answered)
    }
}
