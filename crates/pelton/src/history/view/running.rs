//! What is kept while parts come and go, so that nobody has to go through all of them for every request: sums, and what
//! became of what was sent last.

use std::collections::VecDeque;

use super::super::entry::{Entry, Kind, Piece};
use super::{Part, View};
use crate::limits::CACHE_MARKS_KNOWN_MAX;

/// Sums over all parts.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    pub bytes: usize,
    pub media: usize,
    /// Images and pages of documents.
    pub pages: usize,
    /// Parts with an image that is too large among many others.
    pub large_images: usize,
    /// Parts with an image.
    pub images: usize,
    /// Models whose thinking is there, and how many blocks of each.
    pub thinkers: Vec<(String, usize)>,
}

impl Sums {
    pub fn of(parts: &[Part]) -> Self {
        let mut sums = Self::default();
        parts.iter().for_each(|part| sums.add(&part.entry));
        sums
    }

    pub fn add(&mut self, entry: &Entry) {
        self.bytes += entry.json.len();
        self.media += entry.media;
        self.pages += entry.pages;
        self.large_images += usize::from(entry.has_large_image);
        self.images += usize::from(entry.has_image);
        if let Some(model) = thinker(entry) {
            match self.thinkers.iter_mut().find(|(known, _)| known == model) {
                Some((_, blocks)) => *blocks += 1,
                None => self.thinkers.push((model.to_owned(), 1)),
            }
        }
    }

    pub fn take_away(&mut self, entry: &Entry) {
        self.bytes -= entry.json.len();
        self.media -= entry.media;
        self.pages -= entry.pages;
        self.large_images -= usize::from(entry.has_large_image);
        self.images -= usize::from(entry.has_image);
        if let Some(model) = thinker(entry) {
            self.thinkers.retain_mut(|(known, blocks)| {
                *blocks -= usize::from(known == model);
                *blocks > 0
            });
        }
    }
}

/// The model that thought this, if it is thinking.
fn thinker(entry: &Entry) -> Option<&str> {
    match &entry.kind {
        Kind::Assistant { origin, piece: Piece::Thinking } => Some(&origin.model),
        _ => None,
    }
}

/// What became of what was sent last.
#[derive(Debug, Clone, Default)]
pub(super) struct LastSent {
    /// How many parts it had.
    parts: usize,
    /// The first of them that is not what it was, and what did that.
    changed: Option<(usize, String)>,
    /// Places that carried a cache mark and before which nothing has changed since, oldest first: the server may have what
    /// stands before each of them.
    marks: VecDeque<usize>,
}

impl LastSent {
    /// The newest place that the server may know.
    pub fn marked(&self) -> Option<usize> {
        self.marks.back().copied()
    }

    /// From this place on nothing is what it was.
    pub fn touched(&mut self, place: usize, by: &str) {
        while self.marks.back().is_some_and(|mark| *mark >= place) {
            self.marks.pop_back();
        }
        let is_first = self.changed.as_ref().is_none_or(|(first, _)| place < *first);
        if place < self.parts && is_first {
            self.changed = Some((place, by.to_owned()));
        }
    }

    /// So many parts are sent, with the newest mark here.
    pub fn sent(&mut self, parts: usize, marked: Option<usize>) {
        (self.parts, self.changed) = (parts, None);
        if let Some(marked) = marked.filter(|marked| self.marked() != Some(*marked)) {
            self.marks.push_back(marked);
        }
        if self.marks.len() > CACHE_MARKS_KNOWN_MAX {
            self.marks.pop_front();
        }
    }
}

/// How what will be sent differs from what was sent last, in what was there already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedSince {
    /// The first message that is not what it was, as the API counts.
    pub message: usize,
    /// What changed it.
    pub by: String,
}

impl View {
    /// How what will be sent differs from what was sent last; `None` if it only goes on.
    pub(crate) fn changed_since_sent(&self) -> Option<ChangedSince> {
        let (place, by) = self.last.changed.as_ref()?;
        let before = &self.parts[..self.parts.len().min(*place + 1)];
        // If what stood there is gone with everything behind it, the last one is as near as can be said.
        let messages =
            before.chunk_by(|one, two| one.entry.is_assistant() == two.entry.is_assistant()).count();
        Some(ChangedSince { message: messages.saturating_sub(1), by: by.clone() })
    }

    /// All of it was sent by somebody else, with marks that nobody knows.
    pub(crate) fn note_sent(&mut self) {
        self.last.sent(self.parts.len(), None);
    }

    /// This takes the place of another view, and was made from scratch: what differs was done by this.
    pub(crate) fn takes_the_place_of(&mut self, before: &Self, by: &str) {
        self.last = before.last.clone();
        let is_same = |(one, two): &(&Part, &Part)| {
            one.entry.json == two.entry.json && one.entry.is_assistant() == two.entry.is_assistant()
        };
        let same = self.parts.iter().zip(&before.parts).take_while(is_same).count();
        if same < before.parts.len() {
            self.touched(same, by);
        }
    }

    /// What is kept in passing and is not what a look at all parts says.
    #[cfg(test)]
    pub fn disagreement(&self) -> Option<String> {
        let known = |sums: &Sums| {
            let mut thinkers = sums.thinkers.clone();
            thinkers.sort();
            (sums.bytes, sums.media, sums.pages, sums.large_images, thinkers)
        };
        let (kept, real) = (known(&self.sums), known(&Sums::of(&self.parts)));
        if kept != real {
            return Some(format!("{kept:?} instead of {real:?}"));
        }
        if !self.stretches_are_true() {
            return Some("what was put together is not what is there".to_owned());
        }
        // Where it begins matters only while it goes on.
        let mut looked = self.clone();
        looked.run_begins = self.find_run();
        let (kept, real) =
            (self.answers_calls_made_without_thinking(), looked.answers_calls_made_without_thinking());
        (kept != real).then(|| format!("a run from {} instead of {}", self.run_begins, looked.run_begins))
    }
}
