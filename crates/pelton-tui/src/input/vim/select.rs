//! A part that is chosen before it is said what is done to it.

use std::ops::Range;

use super::keys::{self, OnSelected, Op, Selecting, Side};
use super::reach::{self, Span};
use super::{Change, VimMode};
use crate::input::{Command, Editor, Last, Outcome, parts};

/// As much as was selected, to select as much elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Lines(usize),
    Characters {
        /// Ends of lines in it.
        lines_below: usize,
        /// Characters of its last line, or of all of it where that is one.
        last: usize,
    },
}

impl Editor {
    /// What is selected, in bytes.
    pub(in crate::input) fn selected(&self) -> Option<Range<usize>> {
        Some(self.selected_span()?.range())
    }

    fn selected_span(&self) -> Option<Span> {
        let vim = self.vim.as_ref().filter(|vim| vim.mode.selects())?;
        let buffer = &self.buffer;
        // What was selected may have become shorter.
        let anchor = buffer.text().floor_char_boundary(vim.anchor.min(buffer.text().len()));
        let (start, end) = (anchor.min(buffer.caret()), anchor.max(buffer.caret()));
        Some(match vim.mode {
            VimMode::VisualLine => Span::Lines(buffer.line(start).start..buffer.line(end).end),
            _ => Span::Part(start..buffer.after(end)),
        })
    }

    /// Nothing is selected any more. Whether anything was.
    pub(in crate::input) fn unselect(&mut self) -> bool {
        let Some(vim) = self.vim.as_mut().filter(|vim| vim.mode.selects()) else { return false };
        vim.mode = VimMode::Normal;
        vim.begun.clear();
        true
    }

    /// Begins to select here.
    pub(super) fn select_from_here(&mut self, mode: VimMode) {
        let caret = self.buffer.caret();
        if let Some(vim) = &mut self.vim {
            (vim.mode, vim.anchor) = (mode, caret);
        }
    }

    /// A letter while something is selected.
    pub(super) fn letter_on_selected(&mut self) -> Option<Outcome> {
        let vim = self.vim.as_mut()?;
        let (selecting, count) = match keys::on_selected(&vim.begun) {
            keys::Selected::NotYet => return Some(Outcome::Changed),
            keys::Selected::Nothing => {
                vim.begun.clear();
                return Some(Outcome::Nothing);
            }
            keys::Selected::Command { selecting, count } => (selecting, count),
        };
        let keys = std::mem::take(&mut vim.begun);
        vim.register = keys::register(&keys).0;
        self.last = Last::Other;
        match selecting {
            Selecting::Go(motion) => self.go_selecting(motion, count),
            Selecting::Object(object) => {
                self.goal = None;
                if let Some(found) = reach::object(&self.buffer, object).filter(|found| !found.is_empty()) {
                    let last = self.buffer.before(found.end);
                    self.buffer.go(last);
                    if let Some(vim) = &mut self.vim {
                        vim.anchor = found.start;
                    }
                }
            }
            Selecting::OtherEnd => {
                let caret = self.buffer.caret();
                if let Some(vim) = &mut self.vim {
                    let other = std::mem::replace(&mut vim.anchor, caret);
                    self.buffer.go(other);
                }
            }
            Selecting::Mode(mode) => {
                if let Some(vim) = &mut self.vim {
                    vim.mode = if vim.mode == mode { VimMode::Normal } else { mode };
                }
            }
            Selecting::Do(what) => self.do_to_selected(what, count, keys),
        }
        if let Some(vim) = &mut self.vim {
            vim.register = None;
        }
        self.rest();
        Some(Outcome::Changed)
    }

    fn go_selecting(&mut self, motion: keys::Motion, count: Option<usize>) {
        let times = count.unwrap_or(1);
        match motion {
            keys::Motion::Up => _ = self.repeat(Command::Up, times),
            keys::Motion::Down => _ = self.repeat(Command::Down, times),
            motion => {
                self.goal = None;
                if let Some(reach) = self.reach(motion, count) {
                    self.buffer.go(reach.to);
                }
            }
        }
    }

    fn do_to_selected(&mut self, what: OnSelected, count: Option<usize>, keys: String) {
        let Some(span) = self.selected_span() else { return };
        let extent = self.extent(&span);
        self.goal = None;
        if what.edits() {
            self.browse = None;
            self.buffer.join();
        }
        if let Some(vim) = &mut self.vim {
            vim.mode = VimMode::Normal;
            if what.edits() {
                vim.making = Some(Change { keys, over: Some(extent), written: Vec::new() });
            }
        }
        let range = span.range();
        // Whoever takes it back is where it began.
        self.buffer.go(range.start);
        match what {
            OnSelected::Op(op) => self.operate_on_selected(op, &span, count),
            OnSelected::Whole(op) => {
                let lines = self.buffer.line(range.start).start..self.line_end_of(&span);
                self.operate_on_selected(op, &Span::Lines(lines), count);
            }
            OnSelected::Replace(with) => {
                let with = parts::without_signs(with.encode_utf8(&mut [0; 4]));
                self.rewrite(
                    &span,
                    |character| if character == "\n" { "\n".to_owned() } else { with.clone() },
                );
            }
            OnSelected::Case(case) => {
                self.rewrite(&span, |character| {
                    character.chars().flat_map(|letter| case.of(letter)).collect()
                });
            }
            OnSelected::Join => {
                let lines = self.buffer.text()[range.clone()].matches('\n').count() + 1;
                self.buffer.go(range.start);
                self.join_lines(lines.max(2));
            }
            OnSelected::Put(side) => self.put_over(&span, side, count.unwrap_or(1)),
        }
    }

    fn operate_on_selected(&mut self, op: Op, span: &Span, count: Option<usize>) {
        let start = span.range().start;
        match op {
            // Lines keep their number and the first its beginning, so what was selected can be found again.
            Op::Indent | Op::Outdent => {
                let first = self.buffer.line(start).start;
                let lines = self.buffer.text()[start..self.line_end_of(span)].matches('\n').count();
                for _ in 0..count.unwrap_or(1) {
                    let end = reach::line_down(&self.buffer, first, lines).end;
                    self.operate(op, &Span::Part(first..end));
                }
            }
            Op::Yank => {
                self.operate(op, span);
                self.buffer.go(start);
            }
            Op::Delete | Op::Change => self.operate(op, span),
        }
    }

    /// The end of the last line that a part touches. One that ends with the end of a line does not touch the next.
    fn line_end_of(&self, span: &Span) -> usize {
        let range = span.range();
        let last = if range.is_empty() { range.end } else { self.buffer.before(range.end) };
        self.buffer.line(last).end
    }

    /// Each character that is selected becomes another.
    fn rewrite(&mut self, span: &Span, other: impl Fn(&str) -> String) {
        let range = span.range();
        let old = &self.buffer.text()[range.clone()];
        let new: String =
            crate::input::buffer::characters(old).map(|(_, character)| other(character)).collect();
        self.buffer.replace(range.clone(), &new);
        self.buffer.go(range.start);
    }

    /// What was taken stands in the place of what is selected, which is taken instead, unless it is put by its other letter.
    fn put_over(&mut self, span: &Span, side: Side, times: usize) {
        let Some(text) = self.taken().map(|text| reach::repeated(text, times)) else { return };
        if let Some(vim) = &mut self.vim {
            // The register that was named is the one it comes from.
            vim.register = None;
        }
        if side == Side::Behind {
            self.keep(span, Op::Delete);
        }
        let range = span.range();
        let lines = text.strip_suffix('\n');
        let new = match (span, lines) {
            (Span::Lines(_), Some(lines)) => lines.to_owned(),
            (Span::Part(_), Some(_)) => format!("\n{text}"),
            (_, None) => text.clone(),
        };
        self.buffer.replace(range.clone(), &new);
        let last = self.buffer.caret();
        self.buffer.go(if lines.is_some() { range.start } else { self.buffer.before(last) });
    }

    fn extent(&self, span: &Span) -> Extent {
        let text = &self.buffer.text()[span.range()];
        match span {
            Span::Lines(_) => Extent::Lines(text.matches('\n').count() + 1),
            Span::Part(_) => {
                let last = text.rsplit('\n').next().unwrap_or_default();
                let last = crate::input::buffer::characters(last).count();
                Extent::Characters { lines_below: text.matches('\n').count(), last }
            }
        }
    }

    /// Selects as much as was selected before, from here on.
    pub(super) fn select_again(&mut self, extent: Extent) {
        let caret = self.buffer.caret();
        let (mode, to) = match extent {
            Extent::Lines(lines) => {
                (VimMode::VisualLine, reach::line_down(&self.buffer, caret, lines.saturating_sub(1)).start)
            }
            Extent::Characters { lines_below, last } => {
                let line = reach::line_down(&self.buffer, caret, lines_below);
                let mut to = if lines_below == 0 { caret } else { line.start };
                for _ in 1..last.max(1) {
                    let next = self.buffer.after(to);
                    if next >= line.end {
                        break;
                    }
                    to = next;
                }
                (VimMode::Visual, to)
            }
        };
        self.select_from_here(mode);
        self.buffer.go(to);
    }

    /// A command of the ordinary kind is about to be done: only what goes somewhere goes on selecting.
    pub(in crate::input) fn selects_on(&mut self, command: Command) {
        if !command.goes() && !matches!(command, Command::Up | Command::Down) {
            self.unselect();
        }
    }
}
