//! Text with a caret in it: motions by characters as people see them, edits that can be undone.

use std::collections::VecDeque;
use std::ops::Range;

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use crate::limits::UNDO_EDITS_MAX;

#[derive(Debug, Clone, Default)]
pub(super) struct Buffer {
    text: String,
    /// In bytes, always between two characters as people see them.
    caret: usize,
    done: VecDeque<Edit>,
    undone: Vec<Edit>,
    /// The last edit may grow: nothing came between it and the next.
    growing: bool,
    joining: Joining,
}

/// Whether edits are undone together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Joining {
    #[default]
    Not,
    /// The next one is the first of some.
    Begins,
    GoesOn,
}

/// Some text in the place of another.
#[derive(Debug, Clone)]
struct Edit {
    at: usize,
    removed: String,
    inserted: String,
    caret_before: usize,
    /// It is undone with the one before.
    joined: bool,
}

impl Buffer {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn caret(&self) -> usize {
        self.caret
    }

    /// Another text altogether, which cannot be undone.
    pub fn reset(&mut self, text: String) {
        let caret = text.len();
        *self = Self { text, caret, ..Self::default() };
    }

    /// Another text in the place of this one, as one edit.
    pub fn replace_all(&mut self, text: &str) {
        self.replace(0..self.text.len(), text);
    }

    /// The caret goes to this byte, or before the character that it is in.
    pub fn go(&mut self, to: usize) {
        self.caret = self.boundary(to.min(self.text.len()));
        self.growing = false;
    }

    /// Edits from here on are undone together.
    pub fn join(&mut self) {
        (self.joining, self.growing) = (Joining::Begins, false);
    }

    /// And from here on each alone.
    pub fn part(&mut self) {
        (self.joining, self.growing) = (Joining::Not, false);
    }

    pub fn insert(&mut self, text: &str) {
        let caret = self.caret;
        // Words that are typed are undone word by word.
        let single = text.chars().nth(1).is_none();
        let grows = self.growing && single && !text.starts_with(char::is_whitespace);
        match self.done.back_mut() {
            Some(last) if grows && last.at + last.inserted.len() == caret => {
                last.inserted.push_str(text);
                self.undone.clear();
                self.text.insert_str(caret, text);
                self.caret = self.boundary_after(caret + text.len());
            }
            _ => self.replace(caret..caret, text),
        }
        self.growing = single;
    }

    /// Puts text in the place of a part, and the caret behind it.
    pub fn replace(&mut self, range: Range<usize>, text: &str) {
        if range.is_empty() && text.is_empty() {
            return;
        }
        let edit = Edit {
            at: range.start,
            removed: self.text[range.clone()].to_owned(),
            inserted: text.to_owned(),
            caret_before: self.caret,
            joined: self.joining == Joining::GoesOn,
        };
        if self.joining == Joining::Begins {
            self.joining = Joining::GoesOn;
        }
        self.text.replace_range(range, text);
        // What was typed may join with what stands behind it: a mark, a joiner.
        self.caret = self.boundary_after(edit.at + text.len());
        self.undone.clear();
        self.done.push_back(edit);
        if self.done.len() > UNDO_EDITS_MAX {
            self.done.pop_front();
        }
        self.growing = false;
    }

    /// Takes a part away, and says what it was.
    pub fn remove(&mut self, range: Range<usize>) -> String {
        let removed = self.text[range.clone()].to_owned();
        self.replace(range, "");
        removed
    }

    pub fn undo(&mut self) -> bool {
        let mut is_undone = false;
        while let Some(edit) = self.done.pop_back() {
            self.text.replace_range(edit.at..edit.at + edit.inserted.len(), &edit.removed);
            self.caret = edit.caret_before;
            let goes_on = edit.joined;
            self.undone.push(edit);
            is_undone = true;
            if !goes_on {
                break;
            }
        }
        self.begin_again();
        is_undone
    }

    pub fn redo(&mut self) -> bool {
        let mut is_redone = false;
        while let Some(edit) = self.undone.pop() {
            self.text.replace_range(edit.at..edit.at + edit.removed.len(), &edit.inserted);
            self.caret = self.boundary_after(edit.at + edit.inserted.len());
            self.done.push_back(edit);
            is_redone = true;
            if !self.undone.last().is_some_and(|next| next.joined) {
                break;
            }
        }
        self.begin_again();
        is_redone
    }

    /// What comes next is no part of the edits that were undone or done again.
    fn begin_again(&mut self) {
        self.growing = false;
        if self.joining == Joining::GoesOn {
            self.joining = Joining::Begins;
        }
    }

    /// Where the character before the caret begins.
    pub fn before(&self, at: usize) -> usize {
        let mut cursor = GraphemeCursor::new(at, self.text.len(), true);
        cursor.prev_boundary(&self.text, 0).ok().flatten().unwrap_or(0)
    }

    /// Where the character behind the caret ends.
    pub fn after(&self, at: usize) -> usize {
        let mut cursor = GraphemeCursor::new(at, self.text.len(), true);
        cursor.next_boundary(&self.text, 0).ok().flatten().unwrap_or(self.text.len())
    }

    /// Where the word before begins: letters and digits, with whatever stands between them and here.
    pub fn word_before(&self, at: usize) -> usize {
        let before = &self.text[..at];
        let words = before.trim_end_matches(|c| !is_word(c));
        self.boundary(words.trim_end_matches(is_word).len())
    }

    /// Where the word behind ends.
    pub fn word_after(&self, at: usize) -> usize {
        let after = &self.text[at..];
        let words = after.trim_start_matches(|c| !is_word(c));
        self.boundary_after(self.text.len() - words.trim_start_matches(is_word).len())
    }

    /// Where what stands before begins, up to blank space: paths and flags as a whole.
    pub fn run_before(&self, at: usize) -> usize {
        let run = self.text[..at].trim_end_matches(char::is_whitespace);
        self.boundary(run.trim_end_matches(|c: char| !c.is_whitespace()).len())
    }

    /// The line that this byte stands in.
    pub fn line(&self, at: usize) -> Range<usize> {
        let start = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
        let end = self.text[at..].find('\n').map_or(self.text.len(), |length| at + length);
        start..end
    }

    fn boundary(&self, at: usize) -> usize {
        let at = self.text.floor_char_boundary(at);
        if self.is_boundary(at) { at } else { self.before(at) }
    }

    fn boundary_after(&self, at: usize) -> usize {
        let at = self.text.ceil_char_boundary(at);
        if self.is_boundary(at) { at } else { self.after(at) }
    }

    fn is_boundary(&self, at: usize) -> bool {
        let mut cursor = GraphemeCursor::new(at, self.text.len(), true);
        cursor.is_boundary(&self.text, 0).unwrap_or(true)
    }
}

/// Characters as people see them, with where they begin.
pub(super) fn characters(text: &str) -> impl DoubleEndedIterator<Item = (usize, &str)> {
    text.grapheme_indices(true)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
