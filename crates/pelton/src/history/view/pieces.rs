//! The bytes of a request. Old ones are put together once and shared by every request they are a part of: to ask costs no
//! more late in a conversation than early.

use std::ops::Range;

use bytes::Bytes;
use pelton_wire::cache::CacheLife;
use pelton_wire::pieces::{Pieces, Stretch};

use super::View;

/// So many parts have their bytes put together. What is newer, and less than that, is gone through for every request.
pub(super) const STRETCH_PARTS: usize = 128;

const FIRST_USER: Bytes = Bytes::from_static(br#"{"role":"user","content":["#);
const FIRST_ASSISTANT: Bytes = Bytes::from_static(br#"{"role":"assistant","content":["#);
const NEXT_USER: Bytes = Bytes::from_static(br#"]},{"role":"user","content":["#);
const NEXT_ASSISTANT: Bytes = Bytes::from_static(br#"]},{"role":"assistant","content":["#);
const COMMA: Bytes = Bytes::from_static(b",");
const MARK: Bytes = Bytes::from_static(br#","cache_control":"#);
const END: Bytes = Bytes::from_static(b"]}");

impl View {
    /// All of it, with cache marks of this kind at these places.
    pub(super) fn pieces(&mut self, marks: [Option<usize>; 2], kept: CacheLife) -> Pieces {
        let marks = if kept.mark().is_some() { marks } else { [None; 2] };
        let mut pieces = Pieces::default();
        let whole = self.parts.len() / STRETCH_PARTS;
        for number in 0..whole {
            let places = number * STRETCH_PARTS..(number + 1) * STRETCH_PARTS;
            if number == self.stretches.len() {
                let mut unmarked = Vec::with_capacity(STRETCH_PARTS * 2);
                self.write(places.clone(), [None; 2], kept, |piece| unmarked.push(piece));
                self.stretches.push(Stretch::new(&unmarked));
            }
            if marks.iter().flatten().any(|mark| places.contains(mark)) {
                self.write(places, marks, kept, |piece| pieces.push(piece));
            } else {
                pieces.share(&self.stretches[number]);
            }
        }
        self.write(whole * STRETCH_PARTS..self.parts.len(), marks, kept, |piece| pieces.push(piece));
        if !self.parts.is_empty() {
            pieces.push(END);
        }
        pieces
    }

    /// The parts at these places, each behind what parts it from the one before.
    fn write(
        &self,
        places: Range<usize>,
        marks: [Option<usize>; 2],
        kept: CacheLife,
        mut piece: impl FnMut(Bytes),
    ) {
        let before = places.start.checked_sub(1).and_then(|before| self.parts.get(before));
        let mut side = before.map(|part| part.entry.is_assistant());
        for (index, part) in places.clone().zip(&self.parts[places]) {
            let assistant = part.entry.is_assistant();
            piece(match (side, assistant) {
                (None, false) => FIRST_USER,
                (None, true) => FIRST_ASSISTANT,
                (Some(true), false) => NEXT_USER,
                (Some(false), true) => NEXT_ASSISTANT,
                (Some(_), _) => COMMA,
            });
            side = Some(assistant);
            if let Some(mark) = kept.mark().filter(|_| marks.contains(&Some(index))) {
                let (before, after) = part.entry.blocks_around_mark();
                piece(before);
                piece(MARK);
                piece(Bytes::from_static(mark.as_bytes()));
                piece(after);
            } else {
                piece(part.entry.blocks());
            }
        }
    }

    /// Whether what was put together is what a look at all parts says.
    #[cfg(test)]
    pub(super) fn stretches_are_true(&self) -> bool {
        let mut afresh = Self { stretches: Vec::new(), ..self.clone() };
        let whole = self.stretches.len() * STRETCH_PARTS;
        whole <= self.parts.len()
            && self.clone().pieces([None; 2], CacheLife::default()).to_vec()
                == afresh.pieces([None; 2], CacheLife::default()).to_vec()
    }
}
