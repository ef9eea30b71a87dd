//! What the model is sent. Every entry, live or read from disk, comes in through [`View::push`], which keeps the
//! whole legal for the API whatever the entries are: roles alternate, every call is answered exactly once in the
//! next message and before anything else in it, no answer ends in thinking. There is no second validator because
//! there is no second way in.

mod copy; // what somebody else knows of it
mod edit; // changes that can be recorded, and made again
mod foreign; // leaving out what a server does not know
mod media; // leaving out images and documents
mod outline; // what there is, for those who plan
mod pieces; // the bytes of a request
mod running; // sums, and what became of what was sent
mod size; // how much of the context window it takes

use std::collections::HashSet;
use std::sync::Arc;

use pelton_wire::cache::CacheLife;
use pelton_wire::pieces::{Pieces, Stretch};

use super::entry::{CallId, Entry, EntryId, Kind, Piece};
use super::repair::{stand_in, unpaired_of_server};
use super::tokens::Weight;

pub use media::MediaLeftOut;
pub use outline::{PartFacts, Role};
pub use running::ChangedSince;
pub use size::CountFacts;

use pieces::STRETCH_PARTS;
use running::{LastSent, Sums};
use size::Size;

/// What the model sees of a conversation.
#[derive(Debug, Clone, Default)]
pub(crate) struct View {
    parts: Vec<Part>,
    /// Calls of the newest answer that have no result yet, in call order.
    open: Vec<CallId>,
    /// Every call id in the view: an id may be used once.
    known: HashSet<CallId>,
    /// Where the results at the front of the newest user message end; equals `parts.len()` outside one.
    results_end: usize,
    /// Where the newest run of answers begins: those that only results lie between.
    run_begins: usize,
    /// What was sent last. The newest place that the server may know is marked again, so that the next request finds it
    /// however many blocks came in between.
    last: LastSent,
    /// The bytes of the oldest parts, so many to each, as they are sent where nothing of them is marked.
    stretches: Vec<Stretch>,
    sums: Sums,
    /// Up to here the sizes of results were looked at.
    weighed: usize,
    size: Size,
    /// So many of the oldest parts are what they were when a copy was last brought up to this.
    copied: usize,
}

#[derive(Debug, Clone)]
struct Part {
    entry: Arc<Entry>,
    /// Stands for a result that never came; the real one replaces it.
    stand_in: bool,
}

/// What became of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// The model will see it.
    Seen,
    /// It would make the request illegal, so the model will not see it.
    Skipped(Skipped),
}

/// Why an entry is left out of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skipped {
    /// An answer before any prompt.
    NothingAsked,
    /// A result for a call that is not there or already has one.
    NoSuchCall,
    /// A call id that was used before.
    CallRepeated,
}

impl View {
    /// Adds an entry at the end, or says why it cannot be sent.
    pub(crate) fn push(&mut self, entry: Arc<Entry>) -> Pushed {
        match &entry.kind {
            Kind::Prompt { .. } => {
                self.end_answer(&entry);
                self.close_open(&entry);
                self.append(entry);
                Pushed::Seen
            }
            Kind::ToolResult { call, .. } => {
                let call = Arc::clone(call);
                self.push_result(&call, entry)
            }
            Kind::Assistant { piece, .. } => {
                let call = match piece {
                    Piece::Call { id, .. } => Some(Arc::clone(id)),
                    Piece::Text | Piece::Thinking | Piece::Other => None,
                };
                self.push_answer(call, entry)
            }
        }
    }

    /// Calls that have no result yet.
    pub fn open_calls(&self) -> &[CallId] {
        &self.open
    }

    /// Whether a call of this id is there, answered or not.
    pub(crate) fn has_call(&self, id: &str) -> bool {
        self.known.contains(id)
    }

    /// Whether there is nothing to send.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// How many content-carrying entries will be sent.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    /// The inside of the request's `messages` array, as pieces of shared bytes, with cache marks on the newest
    /// block that takes one and on the one that carried the mark before. Remembers the mark for the next request.
    pub(crate) fn request(&mut self, kept: CacheLife) -> Pieces {
        debug_assert!(self.open.is_empty(), "every call is answered before the model is asked");
        let newest = self.parts.iter().rposition(|part| part.entry.can_be_marked());
        let pieces = self.pieces([newest, self.last.marked()], kept);
        self.last.sent(self.parts.len(), newest);
        pieces
    }

    /// The models whose thinking is there.
    pub(crate) fn thinkers(&self) -> impl Iterator<Item = &str> {
        self.sums.thinkers.iter().map(|(model, _)| model.as_str())
    }

    /// Leaves all thinking out: another model refuses it, and so does the same one after anything before it changed.
    /// Tells how many blocks there were.
    pub(crate) fn leave_out_thinking(&mut self, why: &str) -> usize {
        if self.sums.thinkers.is_empty() {
            return 0;
        }
        self.leave_out_thinking_from(0, why)
    }

    fn leave_out_thinking_from(&mut self, first: usize, why: &str) -> usize {
        let before = self.parts.len();
        let (mut index, mut lost, mut first_gone) = (0, Weight::default(), None);
        self.parts.retain(|part| {
            index += 1;
            let stays = index <= first || !part.entry.is_thinking();
            if !stays {
                lost += part.entry.weight;
                first_gone.get_or_insert(index - 1);
            }
            stays
        });
        self.size.lost(lost);
        if let Some(first_gone) = first_gone {
            self.touched(first_gone, why);
        }
        self.after_edit();
        before - self.parts.len()
    }

    /// Whether calls are being answered that were made without thinking, or whose thinking was left out. Models that
    /// think up to a budget refuse to go on thinking then.
    pub(crate) fn answers_calls_made_without_thinking(&self) -> bool {
        // New words of the user alone begin another run.
        let asks_anew = self.ends_with_user() && !self.newest_message_has_results();
        let begins_with = self.parts.get(self.run_begins).filter(|part| part.entry.is_assistant());
        !asks_anew && begins_with.is_some_and(|part| !part.entry.is_thinking())
    }

    /// How many bytes the messages have.
    pub fn bytes(&self) -> usize {
        self.sums.bytes
    }

    /// The results that came since [`all_weighed`](Self::all_weighed), by the message they are in. Whoever asks wants to
    /// know how much there is before it is sent.
    pub(crate) fn unweighed_results(&self) -> Vec<Vec<Arc<Entry>>> {
        let is_result = |part: &Part| is_result(part) && !part.stand_in;
        let from = self.weighed.min(self.parts.len());
        // One that came late belongs to those beside it.
        let beside = self.parts[..from].iter().rev().take_while(|part| is_result(part)).count();
        self.parts[from - beside..]
            .chunk_by(|one, two| is_result(one) && is_result(two))
            .filter(|run| run.first().is_some_and(is_result))
            .map(|run| run.iter().map(|part| Arc::clone(&part.entry)).collect())
            .collect()
    }

    /// All sizes were looked at.
    pub(crate) fn all_weighed(&mut self) {
        self.weighed = self.parts.len();
    }

    /// Takes back the newest answer, as far as these entries are it.
    pub(crate) fn withdraw(&mut self, ids: &[EntryId]) {
        while self.parts.last().is_some_and(|part| part.entry.is_assistant() && ids.contains(&part.entry.id))
        {
            if let Some(Part { entry, .. }) = self.parts.pop() {
                self.size.lost(entry.weight);
                if let Kind::Assistant { piece: Piece::Call { id, .. }, .. } = &entry.kind {
                    self.known.remove(id);
                    self.open.retain(|open| open != id);
                }
            }
        }
        self.touched(self.parts.len(), "an answer was taken back");
        self.after_edit();
    }

    /// From this place on nothing is what it was.
    fn touched(&mut self, place: usize, by: &str) {
        self.last.touched(place, by);
        self.stretches.truncate(place / STRETCH_PARTS);
        self.copied = self.copied.min(place);
    }

    /// Positions and sums after parts went.
    fn after_edit(&mut self) {
        self.weighed = 0;
        self.sums = Sums::of(&self.parts);
        self.run_begins = self.find_run();
        let user_from =
            self.parts.iter().rposition(|part| part.entry.is_assistant()).map_or(0, |last| last + 1);
        self.results_end =
            user_from + self.parts[user_from..].iter().take_while(|part| is_result(part)).count();
    }

    fn push_answer(&mut self, call: Option<CallId>, entry: Arc<Entry>) -> Pushed {
        if self.parts.is_empty() {
            return Pushed::Skipped(Skipped::NothingAsked);
        }
        if let Some(call) = &call
            && self.known.contains(call)
        {
            return Pushed::Skipped(Skipped::CallRepeated);
        }
        if self.ends_with_user() {
            // Results that are missing behind others of the same message.
            self.close_open(&entry);
            if !self.newest_message_has_results() {
                self.run_begins = self.parts.len();
            }
        }
        self.append(entry);
        self.results_end = self.parts.len();
        if let Some(call) = call {
            self.known.insert(Arc::clone(&call));
            self.open.push(call);
        }
        Pushed::Seen
    }

    fn push_result(&mut self, call: &CallId, entry: Arc<Entry>) -> Pushed {
        if let Some(position) = self.open.iter().position(|open| open == call) {
            self.end_answer(&entry);
            self.open.remove(position);
            self.insert_result(Part { entry, stand_in: false });
            return Pushed::Seen;
        }
        let late = |part: &Part| {
            part.stand_in
                && matches!(&part.entry.kind, Kind::ToolResult { call: answered, .. } if answered == call)
        };
        match self.parts.iter().rposition(late) {
            Some(index) => {
                self.size.lost(self.parts[index].entry.weight);
                self.size.grew(entry.weight);
                self.sums.take_away(&self.parts[index].entry);
                self.sums.add(&entry);
                self.touched(index, "a result came late");
                self.parts[index] = Part { entry, stand_in: false };
                self.weighed = self.weighed.min(index);
                Pushed::Seen
            }
            None => Pushed::Skipped(Skipped::NoSuchCall),
        }
    }

    /// An answer that ends in thinking was cut: the API refuses it, and the thinking says nothing without what it
    /// led to.
    fn end_answer(&mut self, next: &Entry) {
        debug_assert!(!next.is_assistant());
        self.leave_out_unpaired_of_server();
        while let Some(part) = self.parts.pop_if(|part| part.entry.is_thinking()) {
            self.size.lost(part.entry.weight);
            self.sums.take_away(&part.entry);
        }
        self.touched(self.parts.len(), "an answer was cut");
        if !self.ends_with_user() {
            self.results_end = self.parts.len();
        } else {
            self.results_end = self.results_end.min(self.parts.len());
        }
    }

    /// A tool that the server runs itself is answered in the same answer, or never: it was cut, or nobody waited for the
    /// rest. Nobody but the server can answer, so the call goes, and with it the thinking that is bound to it. So does an answer
    /// whose call the record has lost.
    fn leave_out_unpaired_of_server(&mut self) {
        let from = self.parts.iter().rposition(|part| !part.entry.is_assistant()).map_or(0, |last| last + 1);
        let unpaired = unpaired_of_server(self.parts[from..].iter().map(|part| part.entry.as_ref()));
        let Some(&first) = unpaired.first() else { return };
        let answer: Vec<Part> = self.parts.drain(from..).collect();
        let stays = |(place, part): &(usize, Part)| {
            !(unpaired.contains(place) || *place > first && part.entry.is_thinking())
        };
        self.parts.extend(answer.into_iter().enumerate().filter(stays).map(|(_, part)| part));
        self.size.weighs(weight(&self.parts));
        self.touched(from + first, "a server's own tool never answered");
        self.after_edit();
    }

    fn close_open(&mut self, beside: &Entry) {
        for call in std::mem::take(&mut self.open) {
            if let Some(entry) = stand_in(&call, beside) {
                self.insert_result(Part { entry, stand_in: true });
            }
        }
    }

    /// Results go before anything else in their message.
    fn insert_result(&mut self, part: Part) {
        self.size.grew(part.entry.weight);
        self.sums.add(&part.entry);
        let index = self.results_end;
        self.touched(index, "a result came late");
        self.weighed = self.weighed.min(index);
        self.parts.insert(index, part);
        self.results_end = index + 1;
    }

    fn append(&mut self, entry: Arc<Entry>) {
        self.size.grew(entry.weight);
        self.sums.add(&entry);
        self.parts.push(Part { entry, stand_in: false });
    }

    fn newest_message_has_results(&self) -> bool {
        let newest = self.parts.iter().rev().take_while(|part| !part.entry.is_assistant());
        newest.into_iter().any(is_result)
    }

    /// Where the newest run of answers begins.
    fn find_run(&self) -> usize {
        let (mut begins, mut end) = (self.parts.len(), self.parts.len());
        // Answers and their results, back to the newest words of the user alone that were answered.
        for message in self.parts.chunk_by(|a, b| a.entry.is_assistant() == b.entry.is_assistant()).rev() {
            end -= message.len();
            match message.first().is_some_and(|part| part.entry.is_assistant()) {
                true => begins = end,
                false if begins == self.parts.len() || message.iter().any(is_result) => {}
                false => break,
            }
        }
        begins
    }

    fn ends_with_user(&self) -> bool {
        self.parts.last().is_some_and(|part| !part.entry.is_assistant())
    }
}

fn is_result(part: &Part) -> bool {
    matches!(part.entry.kind, Kind::ToolResult { .. })
}

/// What these cost.
fn weight(parts: &[Part]) -> Weight {
    parts.iter().map(|part| part.entry.weight).sum()
}
