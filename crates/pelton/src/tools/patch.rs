//! What changed between two versions of a file, as hunks of lines.

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use crate::limits::DIFF_TIME_MAX;

/// Unchanged lines shown around a change.
pub const CONTEXT_LINES: usize = 3;

/// Lines that changed together, in the shape SDK clients know as an element of `structuredPatch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hunk {
    /// First line in the old version, counted from 1.
    pub old_start: u64,
    /// Lines of the old version.
    pub old_lines: u64,
    /// First line in the new version, counted from 1.
    pub new_start: u64,
    /// Lines of the new version.
    pub new_lines: u64,
    /// The lines: a space, `-` or `+`, then the text.
    pub lines: Vec<String>,
}

/// A stretch of a file before and after: whole lines, with their place in each version.
#[derive(Debug, Clone, Copy)]
pub struct Stretch<'a> {
    /// The old lines.
    pub old: &'a str,
    /// The new lines.
    pub new: &'a str,
    /// The number of the first old line, counted from 1.
    pub old_start: u64,
    /// The number of the first new line, counted from 1.
    pub new_start: u64,
}

impl<'a> Stretch<'a> {
    /// Two whole files.
    pub fn whole(old: &'a str, new: &'a str) -> Self {
        Self { old, new, old_start: 1, new_start: 1 }
    }

    /// The hunks in which the two differ.
    pub fn hunks(self) -> Vec<Hunk> {
        let diff = TextDiff::configure().timeout(DIFF_TIME_MAX).diff_lines(self.old, self.new);
        diff.grouped_ops(CONTEXT_LINES)
            .iter()
            .filter_map(|group| {
                let (first, last) = (group.first()?, group.last()?);
                let (old, new) = (
                    first.old_range().start..last.old_range().end,
                    first.new_range().start..last.new_range().end,
                );
                let mut lines = Vec::new();
                for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                    let sign = match change.tag() {
                        ChangeTag::Equal => ' ',
                        ChangeTag::Delete => '-',
                        ChangeTag::Insert => '+',
                    };
                    let text: &str = change.value();
                    let body = text.strip_suffix('\n').unwrap_or(text);
                    lines.push(format!("{sign}{}", body.strip_suffix('\r').unwrap_or(body)));
                    if body.len() == text.len() {
                        lines.push("\\ No newline at end of file".to_owned());
                    }
                }
                Some(Hunk {
                    old_start: self.old_start + old.start as u64,
                    old_lines: old.len() as u64,
                    new_start: self.new_start + new.start as u64,
                    new_lines: new.len() as u64,
                    lines,
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_carry_their_places_and_their_context() {
        let old: String = (1..=20).map(|n| format!("line {n}\r\n")).collect();
        let new = old.replace("line 10\r\n", "ten\r\nand a half\r\n");
        let hunks = Stretch { old: &old, new: &new, old_start: 101, new_start: 201 }.hunks();
        assert_eq!(hunks.len(), 1);
        let hunk = &hunks[0];
        assert_eq!((hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines), (107, 7, 207, 8));
        let lines = [
            " line 7",
            " line 8",
            " line 9",
            "-line 10",
            "+ten",
            "+and a half",
            " line 11",
            " line 12",
            " line 13",
        ];
        assert_eq!(hunk.lines, lines);
        assert!(Stretch::whole(&old, &old).hunks().is_empty());
    }

    #[test]
    fn a_missing_last_newline_is_shown() {
        let hunks = Stretch::whole("a\nb", "a\nb\n").hunks();
        assert_eq!(hunks[0].lines, [" a", "-b", "\\ No newline at end of file", "+b"]);
    }
}
