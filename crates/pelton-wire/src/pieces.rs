//! Bytes in pieces, shared with whoever keeps them.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// A text of bytes in pieces, none of them copied. What was put together before is taken over as a whole, as a
/// [`Stretch`]: to hand on a long conversation that only grew costs about as much as to hand on a short one, and to send it little more
/// than its bytes.
///
/// ```
/// use bytes::Bytes;
/// use pelton_wire::pieces::{Pieces, Stretch};
///
/// let old = Stretch::new(&[Bytes::from_static(b"said "), Bytes::from_static(b"long ago, ")]);
/// let mut pieces = Pieces::default();
/// pieces.share(&old);
/// pieces.push(Bytes::from_static(b"and just now"));
/// assert_eq!(pieces.to_vec(), b"said long ago, and just now");
/// assert_eq!((pieces.iter().count(), pieces.length()), (2, 27));
/// ```
#[derive(Clone, Default)]
pub struct Pieces {
    parts: Vec<Part>,
    length: u64,
}

/// Pieces that were put together once, to be shared by everything they are a part of: short neighbours are one piece from then on.
///
/// See [`Pieces`].
#[derive(Clone)]
pub struct Stretch(Arc<(Vec<Bytes>, u64)>);

#[derive(Clone)]
enum Part {
    One(Bytes),
    Many(Stretch),
}

/// Where somebody who goes through pieces has come to; the beginning, to start with.
///
/// See [`Pieces::next`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    part: usize,
    within: usize,
}

impl Pieces {
    /// Adds a piece at the end.
    pub fn push(&mut self, piece: Bytes) {
        self.length += piece.len() as u64;
        self.parts.push(Part::One(piece));
    }

    /// Adds a stretch at the end, however long it is by copying a pointer.
    pub fn share(&mut self, stretch: &Stretch) {
        self.length += stretch.0.1;
        self.parts.push(Part::Many(stretch.clone()));
    }

    /// Adds all of these at the end.
    pub fn append(&mut self, more: &Self) {
        self.length += more.length;
        self.parts.extend_from_slice(&more.parts);
    }

    /// The pieces, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Bytes> {
        self.parts.iter().flat_map(|part| part.pieces())
    }

    /// The length of all pieces together, in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The pieces as one text of bytes; meant for tests and small ones.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.length).unwrap_or_default());
        self.iter().for_each(|piece| bytes.extend_from_slice(piece));
        bytes
    }

    /// The piece at a place, which moves on to the next: for those who go through them bit by bit and hold nothing
    /// meanwhile.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use pelton_wire::pieces::{Pieces, Place};
    ///
    /// let pieces = Pieces::from(vec![Bytes::from_static(b"one"), Bytes::from_static(b"two")]);
    /// let mut place = Place::default();
    /// assert_eq!(pieces.next(&mut place).map(|piece| &piece[..]), Some(&b"one"[..]));
    /// assert_eq!(pieces.next(&mut place).map(|piece| &piece[..]), Some(&b"two"[..]));
    /// assert!(pieces.next(&mut place).is_none());
    /// ```
    pub fn next(&self, place: &mut Place) -> Option<&Bytes> {
        loop {
            let pieces = self.parts.get(place.part)?.pieces();
            if let Some(piece) = pieces.get(place.within) {
                place.within += 1;
                return Some(piece);
            }
            *place = Place { part: place.part + 1, within: 0 };
        }
    }
}

/// A piece of so many bytes is not copied to be put together with others.
const LONG_BYTES: usize = 16 * 1024;

impl Stretch {
    /// Puts pieces together.
    pub fn new(pieces: &[Bytes]) -> Self {
        let length = pieces.iter().map(|piece| piece.len() as u64).sum();
        let is_short = |piece: &Bytes| piece.len() < LONG_BYTES;
        let runs = pieces.chunk_by(|one, other| is_short(one) && is_short(other));
        let joined = runs.map(|run| match run {
            [alone] => alone.clone(),
            several => several.concat().into(),
        });
        Self(Arc::new((joined.filter(|piece: &Bytes| !piece.is_empty()).collect(), length)))
    }
}

impl Part {
    fn pieces(&self) -> &[Bytes] {
        match self {
            Self::One(piece) => std::slice::from_ref(piece),
            Self::Many(Stretch(shared)) => &shared.0,
        }
    }
}

impl FromIterator<Bytes> for Pieces {
    fn from_iter<I: IntoIterator<Item = Bytes>>(pieces: I) -> Self {
        let mut all = Self::default();
        pieces.into_iter().for_each(|piece| all.push(piece));
        all
    }
}

impl From<Vec<Bytes>> for Pieces {
    fn from(pieces: Vec<Bytes>) -> Self {
        pieces.into_iter().collect()
    }
}

// They hold a whole conversation: nobody wants it in a log.
impl fmt::Debug for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pieces({} bytes)", self.length)
    }
}

impl fmt::Debug for Stretch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stretch({} bytes)", self.0.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_neighbours_become_one_piece_and_long_ones_are_not_copied() {
        let (short, long) = (Bytes::from_static(b"short"), Bytes::from(vec![b'x'; LONG_BYTES]));
        let stretch =
            Stretch::new(&[short.clone(), short.clone(), long.clone(), short.clone(), long.clone()]);
        let mut pieces = Pieces::default();
        pieces.share(&stretch);
        let all: Vec<Bytes> = pieces.iter().cloned().collect();
        assert_eq!(all, [&b"shortshort"[..], &long[..], &short[..], &long[..]]);
        assert!([1, 3].iter().all(|at| all[*at].as_ptr() == long.as_ptr()), "they are shared");
        assert_eq!(pieces.length(), 15 + 2 * LONG_BYTES as u64);
    }

    #[test]
    fn whoever_goes_through_finds_every_piece_once() {
        let piece = |name: &'static str| Bytes::from_static(name.as_bytes());
        let empty = Stretch::new(&[]);
        let mut pieces = Pieces::from(vec![piece("a")]);
        pieces.share(&empty);
        pieces.share(&Stretch::new(&[piece("b"), piece(""), piece("c")]));
        pieces.append(&pieces.clone());
        pieces.share(&empty);
        let (mut place, mut gone_through) = (Place::default(), Vec::new());
        while let Some(piece) = pieces.next(&mut place) {
            gone_through.push(piece.clone());
        }
        assert!(pieces.next(&mut place).is_none(), "the end stays the end");
        assert!(pieces.iter().eq(&gone_through));
        assert_eq!(gone_through.concat(), b"abcabc");
        assert_eq!((pieces.to_vec().as_slice(), pieces.length()), (&b"abcabc"[..], 6));
    }
}
