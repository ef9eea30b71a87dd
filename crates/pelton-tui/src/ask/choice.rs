//! A question with a few answers. The keys that answer it are shown with it; nothing else does.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::text::{Line, Span};

use super::words::Words;
use super::{Given, MARK};
use crate::clean;
use crate::feed::wrapped;
use crate::paint::{Caret, Live};
use crate::theme::{Role, Theme};

/// Cells that what stands below an answer stands further in.
const INSET: usize = 5;

/// What gives none of the answers, where there are no keys.
const NONE: &str = "0";

/// One answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// The letter that gives it, besides its number.
    pub key: Option<char>,
    pub label: String,
    /// More about it, in a line of its own.
    pub more: Option<String>,
    /// It takes words.
    pub takes_words: bool,
}

impl Answer {
    pub fn new(key: impl Into<Option<char>>, label: impl Into<String>) -> Self {
        Self { key: key.into(), label: label.into(), more: None, takes_words: false }
    }

    pub fn with_words(mut self) -> Self {
        self.takes_words = true;
        self
    }

    pub fn with_more(mut self, more: impl Into<String>) -> Self {
        self.more = Some(more.into()).filter(|more: &String| !more.is_empty());
        self
    }
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Picked {
    /// These, by their places; with words, if the answer takes some.
    Answers(Vec<usize>, String),
    /// None of them.
    Nothing,
}

/// A question that is open.
#[derive(Debug)]
pub(crate) struct Choice {
    pub question: String,
    pub answers: Vec<Answer>,
    /// Several may be given.
    pub several: bool,
    /// Another key, and what it does.
    key: Option<&'static str>,
    /// What Esc does.
    escape: &'static str,
    at: usize,
    ticked: Vec<bool>,
    words: Option<Words>,
}

impl Choice {
    pub fn new(question: impl Into<String>, answers: Vec<Answer>) -> Self {
        let ticked = vec![false; answers.len()];
        Self {
            question: question.into(),
            answers,
            several: false,
            key: None,
            escape: "Esc for none",
            at: 0,
            ticked,
            words: None,
        }
    }

    /// A key that somebody else heeds is shown with the others.
    pub fn with_key(mut self, key: &'static str) -> Self {
        self.key = Some(key);
        self
    }

    /// Giving none of the answers means something of its own.
    pub fn with_escape(mut self, escape: &'static str) -> Self {
        self.escape = escape;
        self
    }

    pub fn of_several(question: impl Into<String>, answers: Vec<Answer>) -> Self {
        Self { several: true, ..Self::new(question, answers) }
    }

    pub fn given(&mut self, given: Given<'_>) -> Option<Picked> {
        match given {
            Given::Key(key) => self.key(key),
            Given::Line(line) => self.line(line),
        }
    }

    /// A line was typed: the answer, if it names one and nothing else. Whatever else it says is no answer.
    fn line(&mut self, line: &str) -> Option<Picked> {
        let line = line.trim();
        if self.words.is_some() {
            self.words = Some(Words::of(line));
            return Some(self.picked(self.at));
        }
        if line == NONE {
            return Some(Picked::Nothing);
        }
        let mut named: Vec<usize> = Vec::new();
        let mut rest = line;
        while !rest.is_empty() {
            let (word, behind) = rest.split_once([' ', ',']).unwrap_or((rest, ""));
            let behind = behind.trim_start_matches([' ', ',']);
            let at = self.named(word)?;
            if self.answers[at].takes_words {
                // The words may stand behind it.
                self.at = at;
                named.iter().for_each(|at| self.ticked[*at] = true);
                self.words = Some(Words::of(behind));
                return if behind.is_empty() { None } else { Some(self.picked(at)) };
            }
            named.push(at);
            rest = behind;
        }
        let counts = if self.several { !named.is_empty() } else { named.len() == 1 };
        counts.then_some(Picked::Answers(named, String::new()))
    }

    /// The answer that a word names: its number, its letter, or yes and no for those letters.
    fn named(&self, word: &str) -> Option<usize> {
        let word = word.to_ascii_lowercase();
        if let Ok(number) = word.parse::<usize>() {
            return number.checked_sub(1).filter(|at| *at < self.answers.len());
        }
        let word = match word.as_str() {
            "yes" => "y",
            "no" => "n",
            word => word,
        };
        let is_named = |answer: &Answer| answer.key.is_some_and(|key| word.chars().eq([key]));
        self.answers.iter().position(is_named)
    }

    /// A key was pressed: the answer, if it is one.
    pub fn key(&mut self, key: KeyEvent) -> Option<Picked> {
        if let Some(words) = &mut self.words {
            return match key.code {
                KeyCode::Enter => Some(self.picked(self.at)),
                KeyCode::Esc => {
                    self.words = None;
                    None
                }
                _ => {
                    words.key(&key);
                    None
                }
            };
        }
        match key.code {
            KeyCode::Esc => return Some(Picked::Nothing),
            KeyCode::Up => self.at = self.at.checked_sub(1).unwrap_or(self.answers.len().saturating_sub(1)),
            KeyCode::Down | KeyCode::Tab => self.at = (self.at + 1) % self.answers.len().max(1),
            KeyCode::Enter => return self.choose(self.at),
            KeyCode::Char(' ') if self.several => self.tick(self.at),
            KeyCode::Char(c) if is_typed(key) => {
                if let Some(at) = self.named(c.encode_utf8(&mut [0; 4])) {
                    self.at = at;
                    if self.several && !self.answers[at].takes_words {
                        self.tick(at);
                    } else {
                        return self.choose(at);
                    }
                }
            }
            _ => {}
        }
        None
    }

    /// Whether a key is a letter that names no answer, where no words are wanted: whoever types it begins a sentence.
    pub fn begins_sentence(&self, key: KeyEvent) -> bool {
        match key.code {
            KeyCode::Char(' ') if self.several => false,
            KeyCode::Char(c) => {
                self.words.is_none() && is_typed(key) && self.named(c.encode_utf8(&mut [0; 4])).is_none()
            }
            _ => false,
        }
    }

    /// Words were pasted: they count only where words are wanted.
    pub fn paste(&mut self, text: &str) {
        if let Some(words) = &mut self.words {
            words.paste(text);
        }
    }

    fn tick(&mut self, at: usize) {
        if let Some(ticked) = self.ticked.get_mut(at) {
            *ticked = !*ticked;
        }
    }

    fn choose(&mut self, at: usize) -> Option<Picked> {
        if self.answers.get(at)?.takes_words {
            self.words = Some(Words::default());
            return None;
        }
        Some(self.picked(at))
    }

    fn picked(&mut self, at: usize) -> Picked {
        let words = self.words.take().map(|words| words.text()).unwrap_or_default();
        if !self.several {
            return Picked::Answers(vec![at], words);
        }
        let takes_words = self.answers.get(at).is_some_and(|answer| answer.takes_words);
        let mut all: Vec<usize> = (0..self.answers.len()).filter(|at| self.ticked[*at]).collect();
        if all.is_empty() || takes_words {
            all.push(at);
        }
        Picked::Answers(all, words)
    }

    pub fn live(&self, theme: &Theme, columns: usize) -> Live {
        let (mut lines, caret) = self.rows(theme, columns, MARK);
        let keys = match (&self.words, self.several) {
            (Some(_), _) => "type, then Enter · Esc to go back",
            (None, true) => "↑↓ or numbers · Space ticks · Enter gives the answer",
            (None, false) => "↑↓ and Enter, or the number",
        };
        let escape = Some(self.escape).filter(|_| self.words.is_none());
        let keys = [self.key, Some(keys), escape].into_iter().flatten().collect::<Vec<_>>().join(" · ");
        lines.extend(
            wrapped(&keys, columns).into_iter().map(|row| Line::styled(row, theme.style(Role::Faint))),
        );
        Live { lines, caret }
    }

    /// The same where there are no keys.
    pub fn told(&self, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
        let none = self.escape.replace("Esc", NONE);
        let has_letters = self.answers.iter().any(|answer| answer.key.is_some());
        let (mut lines, keys) = match (&self.words, self.several, has_letters) {
            (Some(_), ..) => (Vec::new(), "Say it in a line; an empty one says nothing.".to_owned()),
            (None, true, _) => (self.rows(theme, columns, "  ").0, format!("Type numbers · {none}")),
            (None, false, true) => {
                (self.rows(theme, columns, "  ").0, format!("Type a number or a letter · {none}"))
            }
            (None, false, false) => (self.rows(theme, columns, "  ").0, format!("Type a number · {none}")),
        };
        lines.extend(
            wrapped(&keys, columns).into_iter().map(|row| Line::styled(row, theme.style(Role::Faint))),
        );
        lines
    }

    /// What is asked.
    pub fn question(&self, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
        let rows = self.question.lines().flat_map(|line| wrapped(&clean::line(line), columns));
        rows.map(|row| Line::styled(row, theme.style(Role::Strong))).collect()
    }

    /// The question and its answers, with a mark in front of the one that Enter gives, and the caret where words are typed.
    fn rows(
        &self,
        theme: &Theme,
        columns: usize,
        mark_at: &'static str,
    ) -> (Vec<Line<'static>>, Option<Caret>) {
        let (mut lines, mut caret) = (self.question(theme, columns), None);
        for (at, answer) in self.answers.iter().enumerate() {
            let is_at = at == self.at;
            let (mark, style) =
                if is_at { (mark_at, theme.style(Role::Selected)) } else { ("  ", theme.style(Role::Text)) };
            let tick = match (self.several, self.ticked[at]) {
                (false, _) => "",
                (true, true) => "[x] ",
                (true, false) => "[ ] ",
            };
            let key = answer.key.map(|key| format!(" ({key})")).unwrap_or_default();
            let label = format!("{}. {tick}{}{key}", at + 1, clean::revealed_line(&answer.label));
            // Rows after the first stand further in.
            for (part, row) in wrapped(&label, columns.saturating_sub(INSET)).into_iter().enumerate() {
                let mark = if part == 0 { mark } else { "     " };
                lines.push(Line::from(vec![
                    Span::styled(mark, theme.style(Role::Accent)),
                    Span::styled(row, style),
                ]));
            }
            if let Some(more) = &answer.more {
                for row in wrapped(&clean::line(more), columns.saturating_sub(INSET)) {
                    lines.push(Line::from(vec![
                        Span::raw("     "),
                        Span::styled(row, theme.style(Role::Faint)),
                    ]));
                }
            }
            if let Some(words) = self.words.as_ref().filter(|_| is_at) {
                let (rows, at) = words.view(columns.saturating_sub(INSET), theme);
                caret = Some(Caret { row: at.row + lines.len(), column: at.column + INSET });
                for mut row in rows {
                    row.spans.insert(0, Span::raw(" ".repeat(INSET)));
                    lines.push(row);
                }
            }
        }
        (lines, caret)
    }
}

/// Whether a key is a character that somebody typed, and no command.
pub(crate) fn is_typed(key: KeyEvent) -> bool {
    !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(choice: &mut Choice, typed: &str) -> Option<Picked> {
        let key = |c: char| match c {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            'v' => KeyCode::Down,
            c => KeyCode::Char(c),
        };
        typed.chars().find_map(|c| choice.key(KeyEvent::new(key(c), KeyModifiers::NONE)))
    }

    #[test]
    fn numbers_letters_and_arrows_answer_and_nothing_else() {
        let answers =
            || vec![Answer::new('y', "Yes"), Answer::new('a', "Always"), Answer::new('n', "No").with_words()];
        for (typed, picked) in [
            ("1", Some(Picked::Answers(vec![0], String::new()))),
            ("Y", Some(Picked::Answers(vec![0], String::new()))),
            ("v\n", Some(Picked::Answers(vec![1], String::new()))),
            ("nnot that\n", Some(Picked::Answers(vec![2], "not that".to_owned()))),
            ("3\n", Some(Picked::Answers(vec![2], String::new()))),
            ("n\u{1b}\u{1b}", Some(Picked::Nothing)),
            ("\u{1b}", Some(Picked::Nothing)),
            ("x 90", None),
        ] {
            assert_eq!(keys(&mut Choice::new("?", answers()), typed), picked, "{typed:?}");
        }
    }

    #[test]
    fn the_keys_are_seen_in_a_narrow_window() {
        let choice = Choice::new("Well?", vec![Answer::new('y', "Yes")]).with_escape("Esc: no, and stop");
        let rows: Vec<String> = choice.live(&Theme::BARE, 20).lines.iter().map(Line::to_string).collect();
        assert!(rows.iter().all(|row| Line::raw(row.as_str()).width() <= 20), "{rows:?}");
        assert!(rows.join(" ").ends_with("or the number · Esc: no, and stop"), "{rows:?}");
    }

    #[test]
    fn several_are_ticked_and_then_given() {
        let answers =
            || vec![Answer::new(None, "A"), Answer::new(None, "B"), Answer::new(None, "Other").with_words()];
        for (typed, picked) in [
            ("12\n", Picked::Answers(vec![0, 1], String::new())),
            ("11v\n", Picked::Answers(vec![1], String::new())),
            ("1 v \n", Picked::Answers(vec![1], String::new())),
            ("13c\n", Picked::Answers(vec![0, 2], "c".to_owned())),
        ] {
            assert_eq!(keys(&mut Choice::of_several("?", answers()), typed), Some(picked), "{typed:?}");
        }
    }
}
