//! Whatever comes from models, tools, files and servers, made into text that a terminal shows and nothing else.
//!
//! | what it is for | what to use |
//! |---|---|
//! | words that stream in | [`Cleaner`] |
//! | output of commands, as a terminal would leave it standing | [`Lines`], [`text`] |
//! | what somebody says, line by line | [`words`] |
//! | a name, a title, one line among others | [`line()`] |
//! | a question that somebody answers by what they see | [`revealed`] |
//! | the line of a program that the user has chosen | [`coloured()`] |
//!
//! Which sequences there are, and which characters leave no mark, is known in one place: `pelton_serve::plain`.

use pelton_serve::plain::{Joins, Sequences, shown, unseen};
use unicode_width::UnicodeWidthChar;

use crate::limits::{LINE_CELLS_MAX, MARKS_MAX, QUESTION_EMPTY_LINES_MAX, QUESTION_SPACES_MAX, TAB_CELLS};

mod coloured; // a line with its own colours

#[cfg(test)]
mod tests;

pub use coloured::coloured;

/// Words that come in pieces, made safe: however they are cut, the same comes out. Line ends and tabs stay; a return is a line end.
#[derive(Debug, Clone, Default)]
pub struct Cleaner {
    filter: Filter,
    after_return: bool,
}

impl Cleaner {
    /// The next piece, made safe.
    pub fn push(&mut self, piece: &str) -> String {
        let mut safe = String::with_capacity(piece.len());
        for c in piece.chars() {
            let Some(passed) = self.filter.pass(c) else { continue };
            let after_return = std::mem::take(&mut self.after_return);
            match passed {
                Passed::Shown('\n') if after_return => {}
                Passed::Shown(c) => safe.push(c),
                Passed::Return => {
                    safe.push('\n');
                    self.after_return = true;
                }
                Passed::Back => {}
                Passed::WrittenOut(c) => safe.push_str(&shown(c)),
            }
        }
        safe
    }
}

/// Output of a command that comes in pieces, as lines: what a return goes back over is replaced, what a backspace takes back is
/// gone, tabs are spaces.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    filter: Filter,
    line: String,
    /// Cells of `line`.
    cells: usize,
    /// Characters of this line that were not kept.
    left_out: usize,
    /// A return was seen: what comes next replaces the line.
    returned: bool,
}

impl Lines {
    /// The lines that are complete with this piece.
    pub fn push(&mut self, piece: &str) -> Vec<String> {
        let mut finished = Vec::new();
        for c in piece.chars() {
            let Some(passed) = self.filter.pass(c) else { continue };
            match passed {
                Passed::Shown('\n') => finished.push(self.take()),
                Passed::Return => self.returned = true,
                Passed::Back => self.back(),
                Passed::Shown('\t') => {
                    self.begin();
                    for _ in 0..TAB_CELLS - self.cells % TAB_CELLS {
                        self.put(' ');
                    }
                }
                Passed::Shown(c) => {
                    self.begin();
                    self.put(c);
                }
                Passed::WrittenOut(c) => {
                    self.begin();
                    shown(c).chars().for_each(|c| self.put(c));
                }
            }
        }
        finished
    }

    /// The line that is not complete yet, as far as it has come.
    pub fn current(&self) -> String {
        match self.left_out {
            0 => self.line.clone(),
            left_out => format!("{}… (+{left_out} characters)", self.line),
        }
    }

    /// The last line, if something stands on it.
    pub fn finish(mut self) -> Option<String> {
        let last = self.take();
        (!last.is_empty()).then_some(last)
    }

    fn take(&mut self) -> String {
        let line = self.current();
        self.clear();
        line
    }

    fn clear(&mut self) {
        self.line.clear();
        (self.cells, self.left_out, self.returned) = (0, 0, false);
    }

    fn begin(&mut self) {
        if self.returned {
            self.clear();
        }
    }

    fn put(&mut self, c: char) {
        let cells = c.width().unwrap_or_default();
        if self.left_out > 0 || self.cells + cells > LINE_CELLS_MAX {
            self.left_out += 1;
            return;
        }
        self.line.push(c);
        self.cells += cells;
    }

    /// Takes the last character back, with the marks that it carries.
    fn back(&mut self) {
        if self.left_out > 0 {
            self.left_out -= 1;
            return;
        }
        while let Some(c) = self.line.pop() {
            let cells = c.width().unwrap_or_default();
            self.cells = self.cells.saturating_sub(cells);
            if cells > 0 {
                break;
            }
        }
    }
}

/// A whole text, as a terminal would leave it standing. No line end stands behind the last line.
pub fn text(text: &str) -> String {
    let mut lines = Lines::default();
    let mut all = lines.push(text);
    all.extend(lines.finish());
    all.join("\n")
}

/// The same of words that were not made for a terminal: nothing in them goes back over what stands before it.
pub fn words(of: &str) -> String {
    text(&Cleaner::default().push(of))
}

/// Words on one line: where lines end is marked, spaces around it are gone.
pub fn line(of: &str) -> String {
    let text = words(of.trim());
    let lines: Vec<&str> = text.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" ⏎ ")
}

/// A text as somebody must see it who answers for what is done with it: nothing is left out, and whatever leaves no mark is written
/// out. Only line ends stay what they are.
pub fn revealed(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    let mut spaces = 0;
    let mut empty_lines = 0;
    let mut marks = 0;
    let mut column = 0;
    for c in text.chars() {
        if c != ' ' {
            reveal_spaces(&mut spaces, &mut seen);
        }
        if c != '\n' {
            reveal_lines(&mut empty_lines, &mut seen);
        }
        let cells = c.width().unwrap_or_default();
        match c {
            ' ' => spaces += 1,
            '\n' => empty_lines += 1,
            '\t' => (0..TAB_CELLS - column % TAB_CELLS).for_each(|_| seen.push(' ')),
            c if c.is_control() || unseen(c) || blank(c) => seen.push_str(&shown(c)),
            c if cells == 0 => {
                marks += 1;
                if marks > MARKS_MAX { seen.push_str(&shown(c)) } else { seen.push(c) }
            }
            c => {
                marks = 0;
                seen.push(c);
            }
        }
        column = match c {
            '\n' => 0,
            '\t' => column + TAB_CELLS - column % TAB_CELLS,
            _ => column + cells,
        };
    }
    reveal_spaces(&mut spaces, &mut seen);
    reveal_lines(&mut empty_lines, &mut seen);
    seen
}

/// The same in one line.
pub fn revealed_line(text: &str) -> String {
    revealed(text).replace('\n', "⏎")
}

fn reveal_spaces(spaces: &mut usize, seen: &mut String) {
    match std::mem::take(spaces) {
        few if few <= QUESTION_SPACES_MAX => seen.extend(std::iter::repeat_n(' ', few)),
        many => seen.push_str(&format!("‹{many} spaces›")),
    }
}

/// So many line ends leave one line fewer empty.
fn reveal_lines(ends: &mut usize, seen: &mut String) {
    match std::mem::take(ends) {
        few if few <= QUESTION_EMPTY_LINES_MAX + 1 => seen.extend(std::iter::repeat_n('\n', few)),
        many => seen.push_str(&format!("\n‹{} empty lines›\n", many - 1)),
    }
}

/// Spaces that are none to a shell, and signs that look like one.
fn blank(c: char) -> bool {
    c != ' ' && (c.is_whitespace() || c == '\u{2800}')
}

/// What a character comes to.
enum Passed {
    Shown(char),
    /// Written out, because it leaves no mark where it stands.
    WrittenOut(char),
    Return,
    Back,
}

/// One character after the other, from outside.
#[derive(Debug, Clone, Default)]
struct Filter {
    sequences: Sequences,
    joins: Joins,
    marks: u8,
}

impl Filter {
    /// What to do about the character; `None`: nothing.
    fn pass(&mut self, c: char) -> Option<Passed> {
        let c = self.sequences.outside(c)?;
        match c {
            // What comes next follows nothing that stays.
            '\r' | '\u{8}' => {
                (self.joins, self.marks) = (Joins::default(), 0);
                return Some(if c == '\r' { Passed::Return } else { Passed::Back });
            }
            c if c.is_control() && !matches!(c, '\t' | '\n') => return None,
            _ => {}
        }
        if !self.joins.allow(c) {
            // A place where a word may be cut says nothing.
            return (c != '\u{ad}').then_some(Passed::WrittenOut(c));
        }
        match c.width() {
            Some(0) if !unseen(c) => self.marks = self.marks.saturating_add(1),
            Some(0) => {}
            _ => self.marks = 0,
        }
        (self.marks <= MARKS_MAX).then_some(Passed::Shown(c))
    }
}
