//! Finding the text to replace, and working out which bytes that changes.
//!
//! The model writes line ends as `\n`; the file may hold `\r\n`, or both kinds. So the search runs over the file
//! with every `\r\n` folded into `\n`, and what is found is mapped back. Of a match only the part in which old and
//! new differ is replaced: line ends inside the common part stay what they were.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr_iter;
use memchr::memmem::Finder;

use crate::limits::{EDIT_PLACES_NAMED_MAX, EDIT_REPLACEMENTS_MAX};
use crate::tools::file_memory::LineChange;
use crate::tools::text::{Encoding, Unrepresentable};

/// A file in which something is to be replaced.
pub(super) struct Searched<'a> {
    content: &'a [u8],
    encoding: Encoding,
}

/// Bytes for other bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Replacement {
    /// The bytes that go.
    pub range: Range<usize>,
    /// The bytes that come.
    pub bytes: Vec<u8>,
    /// The lines the whole match is in, counted from 1, end exclusive.
    pub matched_lines: Range<u64>,
    /// What happens to the lines.
    pub lines: LineChange,
}

/// Why nothing is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Miss {
    /// The text is not there.
    Absent,
    /// It is there more than once.
    Ambiguous {
        /// Where, as far as looked.
        lines: Vec<u64>,
        /// There is more.
        more: bool,
    },
    /// Two of its places share bytes.
    Overlapping {
        /// Where.
        line: u64,
    },
    /// It is there too often.
    TooMany {
        /// How often is allowed.
        max: usize,
    },
    /// The file's encoding has no bytes for it.
    Unrepresentable {
        /// Which of the two texts.
        field: &'static str,
    },
    /// The bytes match, but perhaps in the middle of a character.
    HalfCharacter {
        /// Where.
        line: u64,
    },
}

impl<'a> Searched<'a> {
    pub fn new(content: &'a [u8], encoding: Encoding) -> Self {
        Self { content, encoding }
    }

    /// What has to change for `new` to stand where `old` stands: once, or everywhere.
    pub fn replacements(&self, old: &str, new: &str, everywhere: bool) -> Result<Vec<Replacement>, Miss> {
        let encode = |text, field| {
            self.encoding.encode(text).map_err(|Unrepresentable| Miss::Unrepresentable { field })
        };
        let (old_bytes, new_bytes) = (encode(old, "old_string")?, encode(new, "new_string")?);
        // Whoever writes carriage returns means bytes.
        let file = if old.contains('\r') || new.contains('\r') {
            Folded { bytes: Cow::Borrowed(self.content), returns: Vec::new(), encoding: self.encoding }
        } else {
            Folded::new(self.content, self.encoding)
        };
        let places = if everywhere { file.every(&old_bytes)? } else { vec![file.only(&old_bytes)?] };
        let mut lines = LineCounter::new(&file);
        Ok(places.into_iter().map(|at| file.replacement(at, &old_bytes, &new_bytes, &mut lines)).collect())
    }
}

/// The new content.
pub(super) fn splice(content: &[u8], replacements: &[Replacement]) -> Vec<u8> {
    let grown: usize = replacements.iter().map(|replacement| replacement.bytes.len()).sum();
    let mut new = Vec::with_capacity(content.len() + grown);
    let mut copied = 0;
    for Replacement { range, bytes, .. } in replacements {
        new.extend_from_slice(&content[copied..range.start]);
        new.extend_from_slice(bytes);
        copied = range.end;
    }
    new.extend_from_slice(&content[copied..]);
    new
}

/// How many lines end in `bytes`, which start on a unit.
pub(super) fn line_ends(bytes: &[u8], encoding: Encoding) -> u64 {
    line_feeds(bytes, encoding).count() as u64
}

/// The start of the line that is `lines` before the one `at` is in.
pub(super) fn lines_back(content: &[u8], at: usize, lines: usize, encoding: Encoding) -> usize {
    let mut start = at;
    for back in 0..=lines {
        // From the second round on, `start` is right after a line end: look before that.
        let end = if back == 0 { start } else { start.saturating_sub(encoding.unit_bytes()) };
        start = last_line_feed(&content[..end], encoding).map_or(0, |feed| feed + encoding.unit_bytes());
    }
    start
}

/// The end of the `lines`-th line from `at` on, the line `at` is in counted as the first.
pub(super) fn lines_on(content: &[u8], at: usize, lines: usize, encoding: Encoding) -> usize {
    let nth = line_feeds(&content[at..], encoding).nth(lines.saturating_sub(1));
    nth.map_or(content.len(), |feed| at + feed + encoding.unit_bytes())
}

/// A file's bytes with `\r\n` folded into `\n`.
struct Folded<'a> {
    bytes: Cow<'a, [u8]>,
    /// Where in `bytes` the line feeds are whose carriage return was left out.
    returns: Vec<usize>,
    encoding: Encoding,
}

impl<'a> Folded<'a> {
    fn new(content: &'a [u8], encoding: Encoding) -> Self {
        let unit = encoding.unit_bytes();
        let carriage_return = encoding.ascii_unit(b'\r');
        let mut folded = Vec::new();
        let mut returns = Vec::new();
        let mut copied = 0;
        for feed in line_feeds(content, encoding) {
            if feed >= unit && content[feed - unit..feed] == carriage_return[..unit] {
                folded.extend_from_slice(&content[copied..feed - unit]);
                returns.push(folded.len());
                copied = feed;
            }
        }
        if returns.is_empty() {
            return Self { bytes: Cow::Borrowed(content), returns, encoding };
        }
        folded.extend_from_slice(&content[copied..]);
        Self { bytes: Cow::Owned(folded), returns, encoding }
    }

    /// The one place of `old`.
    fn only(&self, old: &[u8]) -> Result<usize, Miss> {
        let finder = Finder::new(old);
        let mut places = Vec::new();
        let mut from = 0;
        while places.len() <= EDIT_PLACES_NAMED_MAX
            && let Some(at) = self.next(&finder, from)
        {
            places.push(at);
            // One unit on, not one match on: places that share bytes are places too.
            from = at + self.encoding.unit_bytes();
        }
        match places[..] {
            [] => Err(Miss::Absent),
            [at] => self.whole_characters(at).map(|()| at),
            _ => {
                let more = places.len() > EDIT_PLACES_NAMED_MAX;
                places.truncate(EDIT_PLACES_NAMED_MAX);
                let mut counter = LineCounter::new(self);
                Err(Miss::Ambiguous { lines: places.into_iter().map(|at| counter.line(at)).collect(), more })
            }
        }
    }

    /// Every place of `old`.
    fn every(&self, old: &[u8]) -> Result<Vec<usize>, Miss> {
        let finder = Finder::new(old);
        let mut places: Vec<usize> = Vec::new();
        let mut from = 0;
        while let Some(at) = self.next(&finder, from) {
            if places.last().is_some_and(|last| at < last + old.len()) {
                return Err(Miss::Overlapping { line: LineCounter::new(self).line(at) });
            }
            if places.len() == EDIT_REPLACEMENTS_MAX {
                return Err(Miss::TooMany { max: EDIT_REPLACEMENTS_MAX });
            }
            self.whole_characters(at)?;
            places.push(at);
            from = at + self.encoding.unit_bytes();
        }
        if places.is_empty() { Err(Miss::Absent) } else { Ok(places) }
    }

    fn next(&self, finder: &Finder<'_>, mut from: usize) -> Option<usize> {
        loop {
            let at = from + finder.find(self.bytes.get(from..)?)?;
            if at.is_multiple_of(self.encoding.unit_bytes()) && self.starts_character(at) {
                return Some(at);
            }
            from = at + 1;
        }
    }

    /// Whether a character starts here, where the encoding can tell. A line end is never a part of one, so the line is
    /// enough to look at.
    fn starts_character(&self, at: usize) -> bool {
        let Encoding::Older(older) = self.encoding else { return true };
        let line_start = memchr::memrchr(b'\n', &self.bytes[..at]).map_or(0, |feed| feed + 1);
        older.ends_whole(&self.bytes[line_start..at])
    }

    /// In some older encodings the second byte of a character looks like ASCII. A match that starts with such a byte
    /// right after one beyond ASCII might tear a character apart.
    fn whole_characters(&self, at: usize) -> Result<(), Miss> {
        let torn = self.encoding == Encoding::AsciiAndUnknown
            && at > 0
            && self.bytes[at - 1] >= 0x80
            && (0x30..=0x7E).contains(&self.bytes[at]);
        if torn { Err(Miss::HalfCharacter { line: LineCounter::new(self).line(at) }) } else { Ok(()) }
    }

    fn replacement(&self, at: usize, old: &[u8], new: &[u8], counter: &mut LineCounter<'_>) -> Replacement {
        let unit = self.encoding.unit_bytes();
        let prefix = common_prefix(old, new, unit);
        let suffix = common_suffix(&old[prefix..], &new[prefix..], unit);
        let goes = at + prefix..at + old.len() - suffix;
        let comes = &new[prefix..new.len() - suffix];
        let removed: Vec<usize> =
            line_feeds(&self.bytes[goes.clone()], self.encoding).map(|feed| goes.start + feed).collect();
        let added = line_ends(comes, self.encoding);

        let first = counter.line(at);
        let matched = line_ends(old, self.encoding);
        let ends_line = last_line_feed(old, self.encoding).is_some_and(|feed| feed + unit == old.len());
        let matched_lines = first..first + matched + u64::from(!ends_line);
        let lines = LineChange {
            first: first + line_ends(&old[..prefix], self.encoding),
            removed: removed.len() as u64,
            added,
        };
        let bytes = self.with_returns(comes, &removed, at);
        Replacement { range: self.original(goes.start)..self.original(goes.end), bytes, matched_lines, lines }
    }

    /// `comes` with carriage returns before the line feeds that need one: the n-th line end becomes what the n-th one it
    /// replaces was; further ones become what is usual around `at`.
    fn with_returns(&self, comes: &[u8], removed: &[usize], at: usize) -> Vec<u8> {
        if self.returns.is_empty() {
            return comes.to_vec();
        }
        let has_return = |feed: &usize| self.returns.binary_search(feed).is_ok();
        let usual = self.next_line_feed(at).is_some_and(|feed| has_return(&feed));
        let unit = self.encoding.unit_bytes();
        let mut bytes = Vec::with_capacity(comes.len() + unit);
        let mut copied = 0;
        for (n, feed) in line_feeds(comes, self.encoding).enumerate() {
            bytes.extend_from_slice(&comes[copied..feed]);
            if removed.get(n).map_or(usual, has_return) {
                bytes.extend_from_slice(&self.encoding.ascii_unit(b'\r')[..unit]);
            }
            copied = feed;
        }
        bytes.extend_from_slice(&comes[copied..]);
        bytes
    }

    /// The end of the line `at` is in; in an unfinished last line, the end of the one before.
    fn next_line_feed(&self, at: usize) -> Option<usize> {
        let on = line_feeds(&self.bytes[at..], self.encoding).next().map(|feed| at + feed);
        on.or_else(|| last_line_feed(&self.bytes[..at], self.encoding))
    }

    /// Where a place is in the file itself.
    fn original(&self, at: usize) -> usize {
        at + self.encoding.unit_bytes() * self.returns.partition_point(|feed| *feed < at)
    }
}

/// Counts lines from the start; asked for places in order, it counts each line once.
struct LineCounter<'a> {
    bytes: &'a [u8],
    encoding: Encoding,
    at: usize,
    line: u64,
}

impl<'a> LineCounter<'a> {
    fn new(file: &'a Folded<'_>) -> Self {
        Self { bytes: &file.bytes, encoding: file.encoding, at: 0, line: 1 }
    }

    fn line(&mut self, at: usize) -> u64 {
        debug_assert!(at >= self.at, "places are asked for in order");
        self.line += line_ends(&self.bytes[self.at..at], self.encoding);
        self.at = at;
        self.line
    }
}

fn line_feeds(bytes: &[u8], encoding: Encoding) -> impl Iterator<Item = usize> {
    let unit = encoding.unit_bytes();
    let feed = encoding.ascii_unit(b'\n');
    // The byte that says line feed is the first or the second of its unit.
    let shift = feed.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    memchr_iter(b'\n', bytes)
        .filter_map(move |at| at.checked_sub(shift))
        .filter(move |at| at.is_multiple_of(unit) && bytes.get(*at..at + unit) == Some(&feed[..unit]))
}

fn last_line_feed(bytes: &[u8], encoding: Encoding) -> Option<usize> {
    let unit = encoding.unit_bytes();
    let feed = encoding.ascii_unit(b'\n');
    if unit == 1 {
        return memchr::memrchr(b'\n', bytes);
    }
    let whole = bytes.len() - bytes.len() % unit;
    (0..whole / unit).rev().map(|n| n * unit).find(|at| bytes[*at..at + unit] == feed[..unit])
}

fn common_prefix(a: &[u8], b: &[u8], unit: usize) -> usize {
    let bytes = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    bytes - bytes % unit
}

fn common_suffix(a: &[u8], b: &[u8], unit: usize) -> usize {
    let bytes = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    bytes - bytes % unit
}
