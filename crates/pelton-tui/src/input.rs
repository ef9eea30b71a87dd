//! The prompt: several lines, edited with the keys people know, with undo, a memory of what was asked before, and long pastes folded into
//! one sign. Pure: keys come in as [`Command`]s, what is to be seen comes out as a [`View`].

mod buffer; // text and a caret
mod history; // what was asked before
mod keys; // which key means what
mod parts; // pastes and pictures that stand as one sign
mod view; // rows of the screen
mod vim; // the other way to edit

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ops::Range;

use crate::limits::KILLS_MAX;
use crate::theme::Theme;
use buffer::Buffer;
pub use history::History;
pub use keys::command;
pub use parts::{Draft, Image, Part, Parts, Paste, image_path, image_paths};
pub use view::View;
use vim::Vim;
pub use vim::VimMode;

/// What can be done to a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    Insert(char),
    Newline,
    /// Sends the prompt, unless a backslash before the caret says that it goes on.
    Enter,
    Backspace,
    Delete,
    Left,
    Right,
    Up,
    Down,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    Start,
    End,
    /// Cuts to the end of the line, or the line end itself.
    KillLineEnd,
    /// Cuts to the beginning of the line, or the line end before it.
    KillLineStart,
    /// Cuts back to blank space.
    KillRun,
    KillWordBefore,
    KillWordAfter,
    /// Puts back what was cut last.
    Yank,
    /// Puts back what was cut before that instead.
    YankOlder,
    Undo,
    Redo,
    /// The characters around the caret change places.
    Transpose,
    HistoryOlder,
    HistoryNewer,
    /// Looks for words in what was asked before; again, for older ones.
    Search,
    /// Leaves a search and what it found.
    Cancel,
}

impl Command {
    /// Whether it changes the text.
    fn edits(self) -> bool {
        match self {
            Self::Insert(_) | Self::Newline | Self::Backspace | Self::Delete | Self::Transpose => true,
            Self::KillLineEnd | Self::KillLineStart | Self::KillRun => true,
            Self::KillWordBefore | Self::KillWordAfter | Self::Yank | Self::YankOlder => true,
            Self::Undo | Self::Redo => true,
            Self::Left | Self::Right | Self::Up | Self::Down | Self::WordLeft | Self::WordRight => false,
            Self::LineStart | Self::LineEnd | Self::Start | Self::End => false,
            Self::Enter | Self::HistoryOlder | Self::HistoryNewer | Self::Search | Self::Cancel => false,
        }
    }

    /// Whether it goes somewhere in the text, and can do nothing else.
    fn goes(self) -> bool {
        matches!(
            self,
            Self::Left
                | Self::Right
                | Self::WordLeft
                | Self::WordRight
                | Self::LineStart
                | Self::LineEnd
                | Self::Start
                | Self::End
        )
    }
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing that could be seen.
    Nothing,
    Changed,
    Submit(Submission),
}

/// A prompt that is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// As it goes to the model.
    pub text: String,
    /// As it was seen.
    pub shown: String,
    pub images: Vec<Image>,
}

impl Submission {
    /// Whether it calls a command.
    pub(crate) fn is_command(&self) -> bool {
        self.text.trim_start().starts_with('/')
    }
}

/// A search in what was asked before.
#[derive(Debug, Clone)]
pub struct Search {
    pub words: String,
    /// No prompt has them; what is shown is the last that had.
    pub failed: bool,
    at: usize,
    /// What was found stands in the prompt, as one edit.
    shown: bool,
}

/// A look back at what was asked before.
#[derive(Debug)]
struct Browse {
    at: usize,
    prefix: String,
    /// What was being written, with its own parts and edits.
    written: (Buffer, Parts),
}

/// One prompt being written.
#[derive(Debug, Default)]
pub struct Editor {
    buffer: Buffer,
    parts: Parts,
    kills: VecDeque<String>,
    last: Last,
    /// Cells from the left that the caret would be at if lines were long enough.
    goal: Option<usize>,
    history: History,
    browse: Option<Browse>,
    search: Option<Search>,
    vim: Option<Vim>,
    /// Cells of the last view: rows are what Up and Down go by.
    cells: usize,
    top: usize,
}

/// What the last command was, for those that go on with it.
#[derive(Debug, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Other,
    Kill,
    /// What was put back, and which of the cut texts it is.
    Yank(Range<usize>, usize),
}

impl Editor {
    pub fn new(history: History) -> Self {
        Self { history, ..Self::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.buffer.text().is_empty()
    }

    /// The prompt with labels for what is folded.
    pub fn shown(&self) -> String {
        self.draft().shown()
    }

    /// The prompt as it would be sent: for an editor outside.
    pub fn whole(&self) -> String {
        self.draft().whole().0
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    /// The search that goes on.
    pub fn search(&self) -> Option<&Search> {
        self.search.as_ref()
    }

    /// What stands before the caret, with signs for what is folded.
    pub fn before_caret(&self) -> &str {
        &self.buffer.text()[..self.buffer.caret()]
    }

    /// Another prompt in the place of this one: from an editor outside. Pictures stay where their labels do.
    pub fn set(&mut self, text: &str) {
        self.leave();
        let text = parts::without_signs(&parts::plain_line_ends(text));
        let text = parts::with_pictures(&text, |label| self.parts.labelled(label));
        self.buffer.replace_all(&text);
    }

    /// A prompt that was sent is written again, with its pictures, in front of what is there.
    pub fn put_back(&mut self, text: &str, images: &[Image]) {
        self.leave();
        let text = parts::without_signs(&parts::plain_line_ends(text));
        let mut images = images.iter();
        let mut again = parts::with_pictures(&text, |_| self.parts.add(Part::Image(images.next()?.clone())));
        if !self.is_empty() {
            again.push('\n');
            again.push_str(self.buffer.text());
        }
        self.buffer.replace_all(&again);
    }

    /// Nothing is left of the prompt. What it was is handed back.
    pub fn clear(&mut self) -> Draft {
        self.leave();
        let draft = self.draft();
        self.buffer.reset(String::new());
        self.parts = Parts::default();
        self.top = 0;
        self.write_again();
        draft
    }

    /// Text from the clipboard; if it is long, as one sign.
    pub fn paste(&mut self, text: &str) -> Outcome {
        self.leave();
        let text = parts::plain_line_ends(text);
        if text.is_empty() {
            return Outcome::Nothing;
        }
        match self.parts.fold(&text) {
            Some(sign) => self.buffer.insert(sign.encode_utf8(&mut [0; 4])),
            None => {
                let (caret, text) = (self.buffer.caret(), parts::without_signs(&text));
                self.vim_saw_words(&text);
                self.buffer.replace(caret..caret, &text);
            }
        }
        Outcome::Changed
    }

    /// A picture that goes along.
    pub fn attach(&mut self, image: Image) -> Outcome {
        self.leave();
        let Some(sign) = self.parts.add(Part::Image(image)) else { return Outcome::Nothing };
        let caret = self.buffer.caret();
        self.buffer.replace(caret..caret, sign.encode_utf8(&mut [0; 4]));
        Outcome::Changed
    }

    /// Puts a text in the place of the last bytes before the caret: a completion.
    pub fn complete(&mut self, bytes: usize, text: &str) -> Outcome {
        self.leave();
        let caret = self.buffer.caret();
        self.buffer.replace(caret.saturating_sub(bytes)..caret, text);
        Outcome::Changed
    }

    /// The prompt, sent now: it becomes part of what was asked before.
    pub fn submit(&mut self) -> Submission {
        let draft = self.clear();
        let (text, images) = draft.whole();
        let submission = Submission { text, shown: draft.shown(), images };
        self.history.add(draft);
        submission
    }

    /// What is seen of the prompt on so many cells and rows, and where the caret is.
    pub fn view(&mut self, cells: usize, height: usize, theme: &Theme) -> View {
        self.cells = cells;
        let selected = self.selected();
        view::view(
            &self.parts,
            self.buffer.text(),
            self.buffer.caret(),
            &mut self.top,
            selected.as_ref(),
            (cells, height),
            theme,
        )
    }

    /// The same for a few words that are shown somewhere else: nothing of it is kept for the next look.
    pub fn glance(&self, cells: usize, height: usize, theme: &Theme) -> View {
        view::view(&self.parts, self.buffer.text(), self.buffer.caret(), &mut 0, None, (cells, height), theme)
    }

    /// Does what a key means.
    pub fn act(&mut self, command: Command) -> Outcome {
        if self.search.is_some() {
            match self.act_in_search(command) {
                Some(outcome) => return outcome,
                // Every other key takes what was found.
                None => self.search = None,
            }
        }
        self.vim_saw(command);
        if command.edits() {
            // A prompt from before that is changed is the one being written.
            self.browse = None;
        }
        let last = std::mem::take(&mut self.last);
        let goal = self.goal.take();
        let caret = self.buffer.caret();
        let before = self.buffer.text().len();
        match command {
            Command::Insert(c) => self.insert(c),
            Command::Newline => self.insert('\n'),
            Command::Enter => return self.enter(),
            Command::Backspace => self.cut(self.buffer.before(caret)..caret),
            Command::Delete => self.cut(caret..self.buffer.after(caret)),
            Command::Left => self.buffer.go(self.buffer.before(caret)),
            Command::Right => self.buffer.go(self.buffer.after(caret)),
            Command::Up => return self.vertical(goal, Direction::Older),
            Command::Down => return self.vertical(goal, Direction::Newer),
            Command::WordLeft => self.buffer.go(self.buffer.word_before(caret)),
            Command::WordRight => self.buffer.go(self.buffer.word_after(caret)),
            Command::LineStart => self.buffer.go(self.buffer.line(caret).start),
            Command::LineEnd => self.buffer.go(self.buffer.line(caret).end),
            Command::Start => self.buffer.go(0),
            Command::End => self.buffer.go(usize::MAX),
            Command::KillLineEnd => {
                let end = self.buffer.line(caret).end;
                self.kill(caret..if end == caret { self.buffer.after(caret) } else { end }, &last);
            }
            Command::KillLineStart => {
                let start = self.buffer.line(caret).start;
                self.kill(if start == caret { self.buffer.before(caret) } else { start }..caret, &last);
            }
            Command::KillRun => self.kill(self.buffer.run_before(caret)..caret, &last),
            Command::KillWordBefore => self.kill(self.buffer.word_before(caret)..caret, &last),
            Command::KillWordAfter => self.kill(caret..self.buffer.word_after(caret), &last),
            Command::Yank => self.yank(caret..caret, 0),
            Command::YankOlder => {
                // Only where what was put back still stands is another put in its place.
                if let Last::Yank(range, which) = last
                    && self
                        .kills
                        .get(which)
                        .is_some_and(|put| self.buffer.text().get(range.clone()) == Some(put))
                {
                    self.yank(range, (which + 1) % self.kills.len());
                }
            }
            Command::Undo => return self.changed_if(|editor| editor.buffer.undo()),
            Command::Redo => return self.changed_if(|editor| editor.buffer.redo()),
            Command::Transpose => self.transpose(caret),
            Command::HistoryOlder => return self.browse(Direction::Older),
            Command::HistoryNewer => return self.browse(Direction::Newer),
            Command::Search => {
                let at = self.history.len();
                // What is found takes the place of what was written, and is undone alone.
                self.buffer.part();
                self.search = Some(Search { words: String::new(), failed: false, at, shown: false });
                return Outcome::Changed;
            }
            Command::Cancel => return Outcome::Nothing,
        }
        let same = self.buffer.caret() == caret && self.buffer.text().len() == before;
        if same { Outcome::Nothing } else { Outcome::Changed }
    }

    fn draft(&self) -> Draft {
        Draft { text: self.buffer.text().to_owned(), parts: self.parts.clone() }
    }

    /// Whatever went on beside writing is over.
    fn leave(&mut self) {
        (self.search, self.browse, self.goal, self.last) = (None, None, None, Last::Other);
        self.unselect();
    }

    fn changed_if(&mut self, change: impl FnOnce(&mut Self) -> bool) -> Outcome {
        if change(self) { Outcome::Changed } else { Outcome::Nothing }
    }

    fn insert(&mut self, c: char) {
        let text = parts::without_signs(c.encode_utf8(&mut [0; 4]));
        self.buffer.insert(&text);
    }

    fn enter(&mut self) -> Outcome {
        let caret = self.buffer.caret();
        if self.before_caret().ends_with('\\') {
            self.buffer.replace(caret - 1..caret, "\n");
            self.vim_saw_line_end();
            return Outcome::Changed;
        }
        if self.buffer.text().trim().is_empty() {
            return Outcome::Nothing;
        }
        Outcome::Submit(self.submit())
    }

    fn cut(&mut self, range: Range<usize>) {
        self.buffer.remove(range);
    }

    /// Takes a part away so that it can be put back. What is cut right after joins it.
    fn kill(&mut self, range: Range<usize>, last: &Last) {
        if range.is_empty() {
            return;
        }
        let backward = range.end == self.buffer.caret();
        let text = self.buffer.remove(range);
        self.last = Last::Kill;
        match self.kills.front_mut() {
            Some(newest) if *last == Last::Kill && backward => newest.insert_str(0, &text),
            Some(newest) if *last == Last::Kill => newest.push_str(&text),
            _ => self.kills.push_front(text),
        }
        self.kills.truncate(KILLS_MAX);
    }

    fn yank(&mut self, range: Range<usize>, which: usize) {
        let Some(text) = self.kills.get(which).cloned() else { return };
        let start = range.start;
        self.buffer.replace(range, &text);
        self.last = Last::Yank(start..start + text.len(), which);
    }

    fn transpose(&mut self, caret: usize) {
        let line = self.buffer.line(caret);
        // At the end of a line the two before it change places.
        let middle = if caret == line.end { self.buffer.before(caret) } else { caret };
        if middle <= line.start || middle >= line.end {
            return;
        }
        let (start, end) = (self.buffer.before(middle), self.buffer.after(middle));
        let text = self.buffer.text();
        let swapped = format!("{}{}", &text[middle..end], &text[start..middle]);
        self.buffer.replace(start..end, &swapped);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Older,
    Newer,
}

/// Up and down: among the rows, then among what was asked before.
impl Editor {
    fn vertical(&mut self, goal: Option<usize>, direction: Direction) -> Outcome {
        let (parts, text) = (&self.parts, self.buffer.text());
        let caret = self.buffer.caret();
        let line = self.buffer.line(caret);
        let words = &text[line.clone()];
        let cells = if self.cells == 0 { usize::MAX } else { self.cells };
        let rows = view::rows(parts, words, cells);
        let row = view::row_of(&rows, caret - line.start);
        let from = &rows[row];
        let column = goal.unwrap_or_else(|| {
            view::column(parts, &words[from.clone()], caret - line.start - from.start, cells)
        });
        let (target, rows) = match direction {
            Direction::Older if row > 0 => (line.start, rows[row - 1].clone()),
            Direction::Newer if row + 1 < rows.len() => (line.start, rows[row + 1].clone()),
            Direction::Older if line.start > 0 => {
                let above = self.buffer.line(line.start - 1);
                let rows = view::rows(parts, &text[above.clone()], cells);
                (above.start, rows.last().cloned().unwrap_or_default())
            }
            Direction::Newer if line.end < text.len() => {
                let below = self.buffer.line(line.end + 1);
                let rows = view::rows(parts, &text[below.clone()], cells);
                (below.start, rows.first().cloned().unwrap_or_default())
            }
            // Above the first row of what is selected there is nothing more to select.
            _ if self.selected().is_some() => return Outcome::Nothing,
            _ => return self.browse(direction),
        };
        let row = target + rows.start..target + rows.end;
        let mut to = row.start + view::byte(parts, &text[row.clone()], column, cells);
        // The end of a row that goes on is the beginning of the next: stay on this one.
        if to == row.end && row.end < self.buffer.line(row.start).end {
            to = self.buffer.before(to);
        }
        self.buffer.go(to);
        self.goal = Some(column);
        Outcome::Changed
    }

    fn browse(&mut self, direction: Direction) -> Outcome {
        let (at, prefix) = match &self.browse {
            Some(browse) => (browse.at, browse.prefix.clone()),
            None if direction == Direction::Older => (self.history.len(), self.buffer.text().to_owned()),
            None => return Outcome::Nothing,
        };
        let found = match direction {
            Direction::Older => self.history.older(at, &prefix),
            Direction::Newer => self.history.newer(at, &prefix),
        };
        match (found, direction) {
            (Some(found), _) => {
                let Some(draft) = self.history.get(found).cloned() else { return Outcome::Nothing };
                match &mut self.browse {
                    Some(browse) => browse.at = found,
                    None => {
                        let written = (std::mem::take(&mut self.buffer), std::mem::take(&mut self.parts));
                        self.browse = Some(Browse { at: found, prefix, written });
                    }
                }
                self.buffer.reset(draft.text);
                self.parts = draft.parts;
                Outcome::Changed
            }
            // Newer than the newest is what was being written.
            (None, Direction::Newer) => match self.browse.take() {
                Some(Browse { written, .. }) => {
                    (self.buffer, self.parts) = written;
                    Outcome::Changed
                }
                None => Outcome::Nothing,
            },
            (None, Direction::Older) => Outcome::Nothing,
        }
    }

    /// A key while a search goes on; `None`: it ends the search and means what it always does.
    fn act_in_search(&mut self, command: Command) -> Option<Outcome> {
        let mut search = self.search.take()?;
        match command {
            Command::Insert(c) => {
                search.words.push(c);
                // The prompt that is shown may have the longer words, too.
                self.find(&mut search, 1);
            }
            Command::Backspace => {
                search.words.pop();
                search.at = self.history.len();
                self.find(&mut search, 0);
            }
            Command::Search => self.find(&mut search, 0),
            Command::Cancel => {
                if search.shown {
                    self.buffer.undo();
                }
                return Some(Outcome::Changed);
            }
            Command::Enter => return Some(Outcome::Changed),
            _ => return None,
        }
        self.search = Some(search);
        Some(Outcome::Changed)
    }

    /// Shows the next older prompt that has the words, counting from so many newer than the last found.
    fn find(&mut self, search: &mut Search, newer: usize) {
        if search.words.is_empty() {
            return;
        }
        let found = self.history.having(search.at.saturating_add(newer), &search.words);
        search.failed = found.is_none();
        if let Some(draft) = found.and_then(|at| self.history.get(at)).cloned() {
            search.at = found.unwrap_or(search.at);
            // What was found before is not worth an undo of its own.
            if std::mem::replace(&mut search.shown, true) {
                self.buffer.undo();
            }
            self.show(&draft);
        }
    }

    /// A prompt from before in the place of this one; its parts join those that are here.
    fn show(&mut self, draft: &Draft) {
        let mut text = String::with_capacity(draft.text.len());
        for c in draft.text.chars() {
            match draft.parts.part(c) {
                Some(part) => text.extend(self.parts.add(part.clone())),
                None => text.push(c),
            }
        }
        self.buffer.replace_all(&text);
    }
}
