//! Everything that was said, in order, and the view over it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::edit::{By, Edit, EditId, Edited, owned, undone};
use super::entry::{Entry, EntryId};
use super::repair::folded;
use super::view::{Pushed, View};

/// A conversation: the log keeps everything, the view forgets.
#[derive(Debug, Clone, Default)]
pub struct History {
    entries: Vec<Arc<Entry>>,
    /// What was done to the view, in order.
    edits: Vec<Edited>,
    /// Entries that the model is not sent: withdrawn, or taken out by somebody else.
    unsent: HashSet<EntryId>,
    /// Older entries are on the disk only.
    is_released: bool,
    view: View,
}

/// What an edit did to the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// What the model would have been sent, in tokens.
    pub before_tokens: u64,
    /// What it is sent now.
    pub after_tokens: u64,
}

/// What is still sent behind a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stays {
    /// Nothing.
    Nothing,
    /// What the record says from this entry on.
    From(EntryId),
    /// The summary is not the first thing that is sent, or something is sent whose place in the record is not known.
    Unclear,
}

impl History {
    /// A conversation as its record tells it: what was said, and what was done to the view at which point. The second
    /// value says whether every edit could be made again; if not, thinking may be bound to something else.
    pub fn replay(entries: Vec<Arc<Entry>>, edits: Vec<Edited>, unsent: HashSet<EntryId>) -> (Self, bool) {
        let mut history = Self { entries, edits, unsent, ..Self::default() };
        let is_whole = history.rebuild();
        (history, is_whole)
    }

    /// Adds an entry at the end. The answer says whether the model will see it.
    pub fn push(&mut self, entry: Arc<Entry>) -> Pushed {
        self.entries.push(Arc::clone(&entry));
        self.view.push(entry)
    }

    /// Adds an entry that stands nowhere but where an edit puts it.
    pub fn keep(&mut self, entry: Arc<Entry>) {
        self.entries.push(entry);
    }

    /// Changes what the model is sent. `None` if there is nothing to change.
    pub fn edit(&mut self, id: EditId, by: &str, edit: Edit) -> Option<Change> {
        let edited = Edited::new(id, self.entries.len(), by, edit);
        let before_tokens = self.view.tokens();
        if let Edit::Undo { edit } = edited.edit {
            let is_there = |other: &Edited| other.id == edit && !matches!(other.edit, Edit::Undo { .. });
            if self.is_released || !self.edits.iter().any(is_there) {
                return None;
            }
            self.edits.push(edited);
            self.rebuild();
        } else {
            let stand_in = edited.stand_in(&self.entries).ok()?;
            if !self.view.apply(&edited.edit, stand_in, by) {
                return None;
            }
            self.edits.push(edited);
        }
        Some(Change { before_tokens, after_tokens: self.view.tokens() })
    }

    /// The newest edit was made as one with an earlier one.
    pub fn belongs_with(&mut self, first: EditId) {
        if let Some(newest) = self.edits.last_mut() {
            newest.with = Some(first);
        }
    }

    /// What the view would be after an edit, to see whether it is worth it.
    pub fn view_after(&self, edit: &Edit, stand_in: Option<Arc<Entry>>) -> Option<View> {
        let mut view = self.view.clone();
        view.apply(edit, stand_in, "").then_some(view)
    }

    /// Notes an edit that was made already.
    pub fn note_edit(&mut self, id: EditId, by: &str, edit: Edit) {
        self.edits.push(Edited::new(id, self.entries.len(), by, edit));
    }

    /// The edits that count, oldest first.
    pub fn edits(&self) -> Vec<&Edited> {
        let undone = undone(&self.edits);
        let counts =
            |edited: &&Edited| !undone.contains(&edited.id) && !matches!(edited.edit, Edit::Undo { .. });
        self.edits.iter().filter(counts).collect()
    }

    /// All edits, those that undo and are undone included.
    #[cfg(test)]
    pub fn all_edits(&self) -> &[Edited] {
        &self.edits
    }

    /// Takes back the newest answer: it stays in the log.
    pub fn withdraw(&mut self, ids: &[EntryId]) {
        self.unsent.extend(ids);
        self.view.withdraw(ids);
    }

    /// Lets go of what was said before the first entry that the model is sent, once it is on the disk, and of whatever else
    /// it is not sent. Entries that an edit put there stay, and so does where something begins that is still sent in short.
    pub fn release(&mut self) {
        let owned = owned(&self.edits);
        let sent: HashSet<EntryId> = self.view.entry_ids().filter(|id| !owned.contains(id)).collect();
        let first = self.entries.iter().position(|entry| sent.contains(&entry.id));
        let first = first.unwrap_or(self.entries.len());
        let put_there = self.view.entry_ids().filter(|id| owned.contains(id));
        let stays: HashSet<EntryId> = put_there.chain(self.ends_of_what_is_short()).collect();
        let mut at = 0;
        self.entries.retain(|entry| {
            at += 1;
            at > first || stays.contains(&entry.id)
        });
        self.release_edits();
        self.release_unsent();
    }

    /// Lets go of what the model is not sent, once it is on the disk, and keeps of the rest what is sent of it. What edits
    /// name stays without its words: they are looked for by it.
    pub fn release_unsent(&mut self) {
        let sent: HashMap<EntryId, &Arc<Entry>> =
            self.view.parts_said().map(|entry| (entry.id, entry)).collect();
        let named: HashSet<EntryId> = self.edits.iter().filter_map(ends).flatten().collect();
        let newest = self.entries.last().map(|entry| entry.id);
        self.entries.retain_mut(|entry| {
            if let Some(as_sent) = sent.get(&entry.id) {
                *entry = Arc::clone(as_sent);
                return true;
            }
            if named.contains(&entry.id) || newest == Some(entry.id) {
                if let Some(without_words) = folded(entry) {
                    *entry = Arc::new(without_words);
                }
                return true;
            }
            false
        });
        self.is_released = true;
    }

    /// The first and the last of what is sent in short, behind the first thing that is sent: a later summary asks for the
    /// places of these.
    fn ends_of_what_is_short(&self) -> HashSet<EntryId> {
        let mut named: HashSet<EntryId> = self.view.entry_ids().skip(1).collect();
        let mut found = HashSet::new();
        // What stands for others may stand for something that stood for others: the newest first.
        for edited in self.edits.iter().rev() {
            if edited.stand_in_id().is_some_and(|id| named.contains(&id)) {
                found.extend(ends(edited).into_iter().flatten());
                named.extend(ends(edited).into_iter().flatten());
            }
        }
        found
    }

    /// Edits of what is on the disk only are read from there with it. Those stay that put something there that is sent, or
    /// are about something that is here.
    fn release_edits(&mut self) {
        let sent: HashSet<EntryId> = self.view.entry_ids().collect();
        let (edits, entries) = (std::mem::take(&mut self.edits), &self.entries);
        let is_here = |edited: &Edited| {
            edited.stand_in_id().is_some_and(|id| sent.contains(&id)) || edited.edit.finds(entries, &[])
        };
        let here: HashSet<EditId> =
            edits.iter().filter(|edited| is_here(edited)).map(|edited| edited.id).collect();
        self.edits.extend(edits.into_iter().filter(|edited| match edited.edit {
            Edit::Undo { edit } => here.contains(&edit),
            _ => here.contains(&edited.id),
        }));
        let known: HashSet<EntryId> = entries.iter().map(|entry| entry.id).collect();
        self.unsent.retain(|id| known.contains(id));
    }

    /// What is sent behind a summary, if that is the first thing that is sent.
    pub fn stays_behind(&self, summary: EntryId) -> Stays {
        let mut sent = self.view.entry_ids();
        if sent.next() != Some(summary) {
            return Stays::Unclear;
        }
        let mut first = self.entries.len();
        for id in sent {
            let Some(place) = self.place_of(id) else { return Stays::Unclear };
            first = first.min(place);
        }
        self.entries.get(first).map_or(Stays::Nothing, |entry| Stays::From(entry.id))
    }

    /// Where the record of an entry begins: of one that an edit put there, where that begins what it took away.
    fn place_of(&self, mut id: EntryId) -> Option<usize> {
        let owned = owned(&self.edits);
        // Every edit can stand for another one, once.
        for _ in 0..=self.edits.len() {
            if !owned.contains(&id)
                && let Some(place) = self.entries.iter().position(|entry| entry.id == id)
            {
                return Some(place);
            }
            let puts = |edited: &&Edited| match &edited.edit {
                Edit::Replace { by: By::Entry(entry), .. } => *entry == id,
                Edit::Replace { .. } => edited.id == id,
                _ => false,
            };
            let Edit::Replace { from, .. } = self.edits.iter().rev().find(puts)?.edit else { return None };
            id = from;
        }
        None
    }

    /// What was said before the first entry is on the disk only.
    pub fn note_released(&mut self) {
        self.is_released = true;
    }

    /// Whether older entries are on the disk only.
    pub fn is_released(&self) -> bool {
        self.is_released
    }

    /// What the model sees.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// What the model sees, to be shaped.
    pub fn view_mut(&mut self) -> &mut View {
        &mut self.view
    }

    /// Everything that was said, as far as it is in memory.
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// The newest entry.
    pub fn last(&self) -> Option<&Arc<Entry>> {
        self.entries.last()
    }

    /// Makes the view anew from what was said and the edits that count. Tells whether each of these found what it names.
    fn rebuild(&mut self) -> bool {
        let undone = undone(&self.edits);
        let owned = owned(&self.edits);
        let mut view = self.view.emptied();
        let mut is_whole = true;
        let mut edits = self.edits.iter().peekable();
        for at in 0..=self.entries.len() {
            while let Some(edited) = edits.next_if(|edited| edited.at <= at) {
                if matches!(edited.edit, Edit::Undo { .. }) {
                    // What was thought in between is bound to what is no more.
                    view.leave_out_thinking("");
                    continue;
                }
                if undone.contains(&edited.id) {
                    continue;
                }
                let applied = match edited.stand_in(&self.entries) {
                    Ok(stand_in) => view.apply(&edited.edit, stand_in, &edited.by),
                    Err(_) => false,
                };
                is_whole &= applied;
            }
            let Some(entry) = self.entries.get(at) else { break };
            if !self.unsent.contains(&entry.id) && !owned.contains(&entry.id) {
                view.push(Arc::clone(entry));
            }
        }
        view.takes_the_place_of(&self.view, "undo");
        self.view = view;
        is_whole
    }
}

/// Between which entries an edit puts something else.
fn ends(edited: &Edited) -> Option<[EntryId; 2]> {
    match edited.edit {
        Edit::Replace { from, to, .. } => Some([from, to]),
        _ => None,
    }
}
