//! The index of a checkout: what git knew of each file when it last looked.

use std::borrow::Cow;

/// An index that knows no file.
pub const EMPTY: &[u8] = b"DIRC\0\0\0\x02\0\0\0\0";

/// What the index says of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indexed<'a> {
    /// Relative to the top, in git's bytes.
    pub path: Cow<'a, [u8]>,
    pub size: u32,
    pub modified: (u32, u32),
    pub hash: [u8; 20],
    pub mode: u32,
    /// Two sides of a merge disagree about it.
    pub in_conflict: bool,
    /// The user said that it is not to be looked at.
    pub left_alone: bool,
}

/// The entries of an index of version 2, 3 or 4, in the order of their paths. `None` if it is none.
pub fn read_index(bytes: &[u8]) -> Option<Vec<Indexed<'_>>> {
    let mut rest = Bytes(bytes);
    if rest.take(4)? != b"DIRC" {
        return None;
    }
    let (version, count) = (rest.number()?, rest.number()?);
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut entries: Vec<Indexed<'_>> = Vec::new();
    for _ in 0..count {
        let before = rest.0.len();
        rest.take(8)?;
        let modified = (rest.number()?, rest.number()?);
        rest.take(8)?;
        let mode = rest.number()?;
        rest.take(8)?;
        let size = rest.number()?;
        let hash: [u8; 20] = rest.take(20)?.try_into().ok()?;
        let flags = rest.short()?;
        let more_flags = if version >= 3 && flags & 0x4000 != 0 { rest.short()? } else { 0 };
        let last = entries.last().map_or(&[][..], |last| &*last.path);
        // What a path has in common with the one before is not written again.
        let shared = if version == 4 { &last[..last.len().checked_sub(rest.varying()?)?] } else { &[] };
        let own = rest.take(memchr::memchr(0, rest.0)?)?;
        let path = if shared.is_empty() { Cow::from(own) } else { Cow::from([shared, own].concat()) };
        rest.take(1)?;
        if version < 4 {
            // An entry is filled up to a multiple of eight bytes.
            let read = before - rest.0.len();
            rest.take(read.div_ceil(8) * 8 - read)?;
        }
        let in_conflict = flags & 0x3000 != 0;
        if in_conflict && *path == *last {
            continue;
        }
        let left_alone = flags & 0x8000 != 0 || more_flags & 0x4000 != 0;
        entries.push(Indexed { path, size, modified, hash, mode, in_conflict, left_alone });
    }
    // Git keeps them so. One that somebody else wrote may not be.
    if !entries.is_sorted_by(|this, next| this.path <= next.path) {
        entries.sort_by(|this, other| this.path.cmp(&other.path));
    }
    Some(entries)
}

/// Bytes that are taken from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    /// A number of seven bits a byte, each further byte one more than it says.
    fn varying(&mut self) -> Option<usize> {
        let mut value = 0_usize;
        loop {
            let byte = self.take(1)?[0];
            value = value.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
            value = value.checked_add(1)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_index_is_survived(mut bytes in prop::collection::vec(any::<u8>(), 0..300), version in 2_u8..5) {
            let head = [b'D', b'I', b'R', b'C', 0, 0, 0, version, 0, 0, 0, 9];
            bytes.splice(..0, head);
            let _ = read_index(&bytes);
        }
    }
}
