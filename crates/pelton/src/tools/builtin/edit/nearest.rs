//! What a text that is not in the file was probably meant to be.

use crate::limits::{EDIT_COMPARED_LINES_MAX, EDIT_SHOWN_LINE_CHARS_MAX};
use crate::tools::text::cut;

/// Lines of a file that look like the text.
pub(super) struct Near {
    first: u64,
    lines: Vec<String>,
    /// All that differs is spaces, tabs and blank ends.
    pub only_whitespace_differs: bool,
}

/// Lines shown at most.
const SHOWN_LINES_MAX: usize = 12;
/// Places whose surroundings are compared too.
const CANDIDATES_MAX: usize = 16;
/// Likeness, from 0 to 1, below which lines have nothing to do with each other.
const LIKENESS_MIN: f32 = 0.4;

impl Near {
    /// The lines with their numbers.
    pub fn numbered(&self) -> String {
        let lines = (self.first..)
            .zip(&self.lines)
            .map(|(number, line)| format!("{number}\t{}", line.trim_start_matches('\u{feff}')));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// The lines of `file` most like `text`, if any are.
pub(super) fn lines(text: &str, file: &str) -> Option<Near> {
    let wanted: Vec<Line<'_>> = text.lines().map(Line::new).collect();
    let found: Vec<&str> = file.lines().take(EDIT_COMPARED_LINES_MAX).collect();
    // The longest line tells most; it leads to places whose surroundings are then compared.
    let (anchor_at, anchor) = wanted.iter().enumerate().max_by_key(|(_, line)| line.trimmed.len())?;
    if anchor.trimmed.is_empty() {
        return None;
    }
    let mut candidates: Vec<(f32, usize)> = Vec::new();
    for (at, line) in found.iter().enumerate() {
        let likeness = anchor.likeness(&Line::new(line));
        if likeness >= LIKENESS_MIN {
            candidates.push((likeness, at));
        }
    }
    candidates.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    candidates.truncate(CANDIDATES_MAX);
    let (_, start) = candidates
        .into_iter()
        .map(|(_, at)| {
            let start = at.saturating_sub(anchor_at);
            let around = wanted.iter().zip(&found[start..]).take(2 * SHOWN_LINES_MAX);
            let sum: f32 = around.map(|(wanted, line)| wanted.likeness(&Line::new(line))).sum();
            (sum, start)
        })
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))?;
    let span = &found[start..found.len().min(start + wanted.len())];
    let only_whitespace_differs = span.len() == wanted.len()
        && wanted
            .iter()
            .zip(span)
            .all(|(wanted, line)| wanted.trimmed.split_whitespace().eq(line.split_whitespace()));
    let lines = span.iter().take(SHOWN_LINES_MAX).map(|line| {
        let (shown, more) = cut(line, EDIT_SHOWN_LINE_CHARS_MAX);
        format!("{shown}{}", if more > 0 { " [… cut]" } else { "" })
    });
    Some(Near { first: start as u64 + 1, lines: lines.collect(), only_whitespace_differs })
}

/// A line and the pairs of neighbouring bytes in it, as a set of bits.
struct Line<'a> {
    trimmed: &'a str,
    pairs: [u64; 16],
}

impl<'a> Line<'a> {
    fn new(line: &'a str) -> Self {
        let (line, _) = cut(line, EDIT_SHOWN_LINE_CHARS_MAX);
        let trimmed = line.trim();
        let mut pairs = [0; 16];
        for pair in trimmed.as_bytes().windows(2).filter(|pair| !pair[0].is_ascii_whitespace()) {
            let bit = (usize::from(pair[0]) * 31 + usize::from(pair[1])) % (16 * 64);
            pairs[bit / 64] |= 1u64 << (bit % 64);
        }
        Self { trimmed, pairs }
    }

    /// From 0 to 1: the share of pairs both have.
    fn likeness(&self, other: &Self) -> f32 {
        if self.trimmed == other.trimmed {
            return 1.0;
        }
        let count = |pairs: &[u64; 16]| pairs.iter().map(|bits| bits.count_ones()).sum::<u32>();
        let both: u32 = self.pairs.iter().zip(&other.pairs).map(|(a, b)| (a & b).count_ones()).sum();
        let all = count(&self.pairs) + count(&other.pairs);
        if all == 0 { 0.0 } else { 2.0 * both as f32 / all as f32 }
    }
}
