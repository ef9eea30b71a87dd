//! The other way to edit: letters are commands until one of them begins to write. The commands are those of vi, as far as a prompt has a
//! use for them.

mod keys; // what was typed, understood
mod reach; // where motions lead, and what objects cover
mod select; // a part that is chosen before it is said what is done to it

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{Command, Editor, Last, Outcome, command, parts};
use crate::limits::{KILLS_MAX, YANKED_BYTES_MAX};
use keys::{Action, Motion, Op, Side, Step, Target, Understood, understood};
use reach::{Reach, Span};
use select::Extent;

/// What letters mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VimMode {
    /// Themselves.
    #[default]
    Insert,
    /// Commands.
    Normal,
    /// Commands about what is selected: characters.
    Visual,
    /// The same: whole lines.
    VisualLine,
}

impl VimMode {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Insert => "INSERT",
            Self::Normal => "NORMAL",
            Self::Visual => "VISUAL",
            Self::VisualLine => "VISUAL LINE",
        }
    }

    /// Whether something is selected.
    pub(super) fn selects(self) -> bool {
        matches!(self, Self::Visual | Self::VisualLine)
    }
}

/// What is remembered between keys.
#[derive(Debug, Default)]
pub(super) struct Vim {
    mode: VimMode,
    /// The beginning of a command.
    begun: String,
    /// Where what is selected begins, if anything is: it goes from there to the caret.
    anchor: usize,
    /// The register of the command that is being done, if it names one.
    register: Option<char>,
    /// What was taken into registers with names.
    registers: BTreeMap<char, String>,
    /// The character that was looked for last, and how.
    sought: Option<(char, Step)>,
    /// The newest change, to be done again.
    change: Change,
    /// The change that is being made.
    making: Option<Change>,
}

/// A command, and what was written after it.
#[derive(Debug, Clone, Default)]
struct Change {
    keys: String,
    /// As much was selected before.
    over: Option<Extent>,
    written: Vec<Command>,
}

impl Editor {
    /// Switches the other way to edit on or off.
    pub fn use_vim(&mut self, wanted: bool) {
        self.buffer.part();
        self.vim = wanted.then(Vim::default);
    }

    /// What letters mean, if the other way to edit is on.
    pub fn vim_mode(&self) -> Option<VimMode> {
        self.vim.as_ref().map(|vim| vim.mode)
    }

    /// What letters do from now on is their own: what begins is a prompt.
    pub(super) fn write_again(&mut self) {
        self.buffer.part();
        if let Some(vim) = &mut self.vim {
            (vim.mode, vim.making) = (VimMode::Insert, None);
            vim.begun.clear();
        }
    }

    /// Leaves what was begun, or what is being written. Whether there was anything to leave: an empty prompt has nothing to command.
    pub fn vim_escape(&mut self) -> bool {
        let is_empty = self.is_empty();
        let Some(vim) = &mut self.vim else { return false };
        match vim.mode {
            VimMode::Normal => !std::mem::take(&mut vim.begun).is_empty(),
            VimMode::Visual | VimMode::VisualLine => {
                self.unselect();
                self.rest();
                true
            }
            VimMode::Insert if is_empty => false,
            VimMode::Insert => {
                vim.mode = VimMode::Normal;
                if let Some(made) = vim.making.take() {
                    vim.change = made;
                }
                self.buffer.part();
                (self.last, self.goal) = (Last::Other, None);
                let caret = self.buffer.caret();
                if caret > self.buffer.line(caret).start {
                    self.buffer.go(self.buffer.before(caret));
                }
                true
            }
        }
    }

    /// A key was pressed; `None`: it means nothing here.
    pub fn press(&mut self, key: &KeyEvent) -> Option<Outcome> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_plain = !control && !key.modifiers.contains(KeyModifiers::ALT);
        let is_pressed = key.kind != KeyEventKind::Release;
        let letter = match key.code {
            KeyCode::Char(letter) if is_plain && is_pressed => Some(letter),
            // Esc and a letter that come as one are what terminals send for Alt: whoever edits so means the two.
            KeyCode::Char(letter) if !control && is_pressed => {
                self.vim_escape();
                Some(letter)
            }
            KeyCode::Backspace if is_plain && is_pressed && self.vim_takes_back() => {
                return Some(Outcome::Changed);
            }
            KeyCode::Backspace if is_plain && is_pressed => Some('h'),
            KeyCode::Delete if is_plain && is_pressed && self.selected().is_some() => Some('d'),
            _ => None,
        };
        if let Some(outcome) = letter.and_then(|letter| self.vim_letter(letter)) {
            return Some(outcome);
        }
        let command = command(key)?;
        // A key that is no letter is no part of what was begun with letters.
        if let Some(vim) = &mut self.vim {
            vim.begun.clear();
        }
        self.selects_on(command);
        let outcome = self.act(command);
        self.rest();
        Some(outcome)
    }

    /// Leaves what was begun if it waits for any letter or the name of an object: there Backspace is no motion.
    fn vim_takes_back(&mut self) -> bool {
        let Some(vim) = &mut self.vim else { return false };
        let leaves =
            vim.begun.chars().next_back().is_some_and(|last| !keys::may_be_followed_by_a_motion(last));
        if leaves {
            vim.begun.clear();
        }
        leaves
    }

    /// A letter, if letters are commands.
    fn vim_letter(&mut self, letter: char) -> Option<Outcome> {
        // Of a search they are words.
        let searches = self.search.is_some();
        let vim = self.vim.as_mut().filter(|vim| vim.mode != VimMode::Insert && !searches)?;
        vim.begun.push(letter);
        if vim.mode.selects() {
            return self.letter_on_selected();
        }
        let (action, count) = match understood(&vim.begun) {
            Understood::NotYet => return Some(Outcome::Changed),
            Understood::Nothing => {
                vim.begun.clear();
                return Some(Outcome::Nothing);
            }
            Understood::Command { action, count } => (action, count),
        };
        let keys = std::mem::take(&mut vim.begun);
        // What was put back or cut before may be gone or changed behind this.
        self.last = Last::Other;
        if !matches!(action, Action::Go(Motion::Up | Motion::Down)) {
            self.goal = None;
        }
        vim.register = keys::register(&keys).0;
        if action.edits() {
            vim.making = Some(Change { keys, over: None, written: Vec::new() });
            self.browse = None;
            self.buffer.join();
        }
        let outcome = self.perform(action, count);
        if let Some(vim) = &mut self.vim {
            vim.register = None;
        }
        self.rest();
        Some(outcome)
    }

    /// What was written of the change that is being made, if one is.
    fn written(&mut self) -> Option<&mut Vec<Command>> {
        let vim = self.vim.as_mut().filter(|vim| vim.mode == VimMode::Insert)?;
        Some(&mut vim.making.as_mut()?.written)
    }

    /// A command of the ordinary kind was given: while something is written, it is part of the change if it writes or goes to where more
    /// is written. Sending, searching and looking back are none.
    pub(super) fn vim_saw(&mut self, command: Command) {
        let Some(written) = self.written() else { return };
        match command {
            // With it goes all that was written of this change.
            Command::Undo => written.clear(),
            Command::Redo => {}
            command if command.edits() || command.goes() => written.push(command),
            _ => {}
        }
    }

    /// Words were put in at once.
    pub(super) fn vim_saw_words(&mut self, words: &str) {
        if let Some(written) = self.written() {
            written.extend(words.chars().map(Command::Insert));
        }
    }

    /// A backslash before the caret became the end of a line.
    pub(super) fn vim_saw_line_end(&mut self) {
        let Some(written) = self.written() else { return };
        written.pop_if(|last| *last == Command::Insert('\\'));
        written.push(Command::Newline);
    }

    /// Where letters are commands, the caret stands on a character, and a change that writes nothing is made.
    pub(super) fn rest(&mut self) {
        let Some(vim) = self.vim.as_mut().filter(|vim| vim.mode != VimMode::Insert) else { return };
        if let Some(made) = vim.making.take() {
            vim.change = made;
            self.buffer.part();
        }
        let caret = self.buffer.caret();
        let line = self.buffer.line(caret);
        if caret == line.end && caret > line.start {
            self.buffer.go(self.buffer.before(caret));
        }
    }

    fn perform(&mut self, action: Action, count: Option<usize>) -> Outcome {
        let times = count.unwrap_or(1);
        let caret = self.buffer.caret();
        match action {
            Action::Go(Motion::Up) => return self.repeat(Command::Up, times),
            Action::Go(Motion::Down) => return self.repeat(Command::Down, times),
            Action::Go(motion) => {
                if let Some(reach) = self.reach(motion, count) {
                    self.buffer.go(reach.to);
                }
            }
            Action::Do(op, target) => {
                if let Some(span) = self.span(op, target, count) {
                    self.operate(op, &span);
                }
            }
            Action::Write(side) => self.write_at(side),
            Action::Put(side) => self.put(side, times),
            Action::Replace(with) => self.replace(with, times),
            Action::SwitchCase => self.switch_case(times),
            Action::Join => self.join_lines(times),
            Action::Undo => return self.repeat(Command::Undo, times),
            Action::Redo => return self.repeat(Command::Redo, times),
            Action::Again => return self.again(),
            Action::Select(mode) => self.select_from_here(mode),
            Action::Search => return self.act(Command::Search),
        }
        let is_seen = action.edits() || matches!(action, Action::Select(_));
        if self.buffer.caret() == caret && !is_seen { Outcome::Nothing } else { Outcome::Changed }
    }

    fn repeat(&mut self, command: Command, times: usize) -> Outcome {
        let mut outcome = Outcome::Nothing;
        for _ in 0..times {
            match self.act(command) {
                Outcome::Nothing => break,
                other => outcome = other,
            }
        }
        outcome
    }

    fn reach(&mut self, motion: Motion, count: Option<usize>) -> Option<Reach> {
        let vim = self.vim.as_mut()?;
        let motion = match motion {
            Motion::Seek(letter, step) => {
                vim.sought = Some((letter, step));
                motion
            }
            Motion::SeekAgain { back } => {
                let (letter, step) = vim.sought?;
                Motion::Seek(letter, step.again(back))
            }
            motion => motion,
        };
        reach::reach(&self.buffer, motion, count)
    }

    /// What an operation is done to.
    fn span(&mut self, op: Op, target: Target, count: Option<usize>) -> Option<Span> {
        let caret = self.buffer.caret();
        match target {
            Target::Lines => Some(reach::lines(&self.buffer, caret, count.unwrap_or(1))),
            Target::Object(object) => reach::object(&self.buffer, object).map(Span::Part),
            Target::To(motion) => {
                // To change a word means its letters, without the space behind it.
                let motion = match motion {
                    Motion::Word { big } if op == Op::Change && !reach::is_blank(&self.buffer) => {
                        Motion::ChangedWord { big }
                    }
                    motion => motion,
                };
                let reach = self.reach(motion, count)?;
                Some(reach::span(&self.buffer, motion, reach))
            }
        }
    }

    fn operate(&mut self, op: Op, span: &Span) {
        let range = span.range();
        match op {
            Op::Indent | Op::Outdent => return self.indent(op, range),
            Op::Yank => {
                self.keep(span, op);
                // Whoever takes whole lines stays where they are.
                if let Span::Part(part) = span {
                    self.buffer.go(part.start);
                }
                return;
            }
            Op::Delete | Op::Change => self.keep(span, op),
        }
        match span {
            // The line stays, empty, to be written anew.
            Span::Lines(lines) if op == Op::Change => {
                self.buffer.remove(lines.clone());
            }
            Span::Lines(lines) => {
                self.buffer.remove(reach::with_line_end(&self.buffer, lines));
                let line = self.buffer.line(self.buffer.caret());
                self.buffer.go(reach::first_letter(&self.buffer, &line));
            }
            Span::Part(part) => {
                self.buffer.remove(part.clone());
            }
        }
        if op == Op::Change {
            self.begin_to_write();
        }
    }

    /// What was taken can be put elsewhere. Lines are known by the end they have.
    fn keep(&mut self, span: &Span, op: Op) {
        let mut text = self.buffer.text()[span.range()].to_owned();
        if matches!(span, Span::Lines(_)) {
            text.push('\n');
        }
        let Some(vim) = self.vim.as_mut().filter(|_| !text.is_empty()) else { return };
        match vim.register {
            Some(keys::NOWHERE) => return,
            Some(name) if name.is_ascii_uppercase() => {
                let kept = vim.registers.entry(name.to_ascii_lowercase()).or_default();
                if kept.len() + text.len() <= YANKED_BYTES_MAX {
                    kept.push_str(&text);
                }
            }
            Some(name) if name != keys::NEWEST => _ = vim.registers.insert(name, text.clone()),
            _ if op == Op::Yank => _ = vim.registers.insert(keys::YANKED, text.clone()),
            _ => {}
        }
        self.kills.push_front(text);
        self.kills.truncate(KILLS_MAX);
    }

    /// What was taken last, or into the register that the command names.
    fn taken(&self) -> Option<&str> {
        let vim = self.vim.as_ref()?;
        match vim.register {
            Some(keys::NOWHERE) => None,
            Some(name) if name != keys::NEWEST => {
                vim.registers.get(&name.to_ascii_lowercase()).map(String::as_str)
            }
            _ => self.kills.front().map(String::as_str),
        }
    }

    fn begin_to_write(&mut self) {
        if let Some(vim) = &mut self.vim {
            vim.mode = VimMode::Insert;
        }
    }

    fn write_at(&mut self, side: Side) {
        let caret = self.buffer.caret();
        let line = self.buffer.line(caret);
        match side {
            Side::Here => {}
            Side::Behind if caret < line.end => self.buffer.go(self.buffer.after(caret)),
            Side::Behind => {}
            Side::LineStart => self.buffer.go(reach::first_letter(&self.buffer, &line)),
            Side::LineEnd => self.buffer.go(line.end),
            Side::LineBelow => self.buffer.replace(line.end..line.end, "\n"),
            Side::LineAbove => {
                self.buffer.replace(line.start..line.start, "\n");
                self.buffer.go(line.start);
            }
        }
        self.begin_to_write();
    }

    fn put(&mut self, side: Side, times: usize) {
        let Some(text) = self.taken().map(|text| reach::repeated(text, times)) else { return };
        let caret = self.buffer.caret();
        let line = self.buffer.line(caret);
        match (text.strip_suffix('\n'), side) {
            (Some(lines), Side::Behind) => {
                self.buffer.replace(line.end..line.end, &format!("\n{lines}"));
                self.buffer.go(line.end + 1);
            }
            (Some(_), _) => {
                self.buffer.replace(line.start..line.start, &text);
                self.buffer.go(line.start);
            }
            (None, side) => {
                let behind = side == Side::Behind && caret < line.end;
                let at = if behind { self.buffer.after(caret) } else { caret };
                self.buffer.replace(at..at, &text);
                self.buffer.go(self.buffer.before(self.buffer.caret()));
            }
        }
    }

    /// So many characters from the caret on, as far as its line goes; and how many that are.
    fn characters(&self, most: usize) -> (Range<usize>, usize) {
        let caret = self.buffer.caret();
        let end = self.buffer.line(caret).end;
        let (mut to, mut count) = (caret, 0);
        while to < end && count < most {
            to = self.buffer.after(to);
            count += 1;
        }
        (caret..to, count)
    }

    fn replace(&mut self, with: char, times: usize) {
        let (range, count) = self.characters(times);
        if count < times {
            return;
        }
        let with = parts::without_signs(with.encode_utf8(&mut [0; 4]));
        self.buffer.replace(range, &reach::repeated(&with, times));
        self.buffer.go(self.buffer.before(self.buffer.caret()));
    }

    fn switch_case(&mut self, times: usize) {
        let (range, _) = self.characters(times);
        let switched: String = self.buffer.text()[range.clone()]
            .chars()
            .flat_map(|letter| keys::Case::Other.of(letter))
            .collect();
        self.buffer.replace(range, &switched);
    }

    fn join_lines(&mut self, times: usize) {
        for _ in 0..times.saturating_sub(1).max(1) {
            let end = self.buffer.line(self.buffer.caret()).end;
            let behind = &self.buffer.text()[end..];
            if behind.is_empty() {
                return;
            }
            let next = behind[1..].trim_start_matches([' ', '\t']);
            let goes = behind.len() - next.len();
            let space = if next.is_empty() || next.starts_with([')', '\n']) { "" } else { " " };
            self.buffer.replace(end..end + goes, space);
            self.buffer.go(end);
        }
    }

    /// Moves the lines that a range touches, each as a whole.
    fn indent(&mut self, op: Op, touched: Range<usize>) {
        const STEP: &str = "  ";
        let lines = self.buffer.line(touched.start).start..self.buffer.line(touched.end).end;
        let old = &self.buffer.text()[lines.clone()];
        let moved = |line: &str| match op {
            Op::Indent if !line.is_empty() => format!("{STEP}{line}"),
            Op::Outdent => {
                let blank = line.len() - line.trim_start_matches(' ').len();
                line.strip_prefix('\t').unwrap_or(&line[blank.min(STEP.len())..]).to_owned()
            }
            _ => line.to_owned(),
        };
        let new = old.split('\n').map(moved).collect::<Vec<_>>().join("\n");
        self.buffer.replace(lines.clone(), &new);
        let line = self.buffer.line(lines.start);
        self.buffer.go(reach::first_letter(&self.buffer, &line));
    }

    /// Does the newest change once more, here.
    fn again(&mut self) -> Outcome {
        let Some(Change { keys, over, written }) = self.vim.as_ref().map(|vim| vim.change.clone()) else {
            return Outcome::Nothing;
        };
        if keys.is_empty() {
            return Outcome::Nothing;
        }
        if let Some(extent) = over {
            self.select_again(extent);
        }
        for letter in keys.chars() {
            self.vim_letter(letter);
        }
        if self.vim_mode() == Some(VimMode::Insert) {
            for command in &written {
                self.act(*command);
            }
            self.vim_escape();
        }
        Outcome::Changed
    }
}
