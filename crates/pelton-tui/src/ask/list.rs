//! One of many: sessions to go on with, prompts to go back to.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui_core::text::{Line, Span};

use super::MARK;
use super::words::Words;
use crate::clean;
use crate::paint::{Caret, Live};
use crate::theme::{Role, Theme};

/// Rows shown at once.
const ROWS_SHOWN: usize = 10;
/// Rows told where there are no keys: those above can be scrolled to.
const ROWS_TOLD: usize = 50;

pub(crate) struct List {
    title: String,
    /// What is shown of each, and a few words beside it.
    items: Vec<(String, String)>,
    wanted: Words,
    at: usize,
}

pub(crate) enum Found {
    /// The item at this place.
    Item(usize),
    Nothing,
}

impl List {
    /// The first is the one that is proposed.
    pub fn new(title: impl Into<String>, items: Vec<(String, String)>) -> Self {
        Self { title: title.into(), items, wanted: Words::default(), at: 0 }
    }

    fn fitting(&self) -> Vec<usize> {
        let wanted = self.wanted.text().to_lowercase();
        // What stands beside the words is no part of them: an hour would be found by its number.
        let fits = |(words, _): &(String, String)| {
            let words = words.to_lowercase();
            wanted.split_whitespace().all(|word| words.contains(word))
        };
        (0..self.items.len()).filter(|at| fits(&self.items[*at])).collect()
    }

    pub fn key(&mut self, key: KeyEvent) -> Option<Found> {
        let fitting = self.fitting();
        match key.code {
            KeyCode::Esc => return Some(Found::Nothing),
            KeyCode::Enter => return fitting.get(self.at).map(|at| Found::Item(*at)),
            KeyCode::Up => self.at = self.at.saturating_sub(1),
            KeyCode::Down => self.at = (self.at + 1).min(fitting.len().saturating_sub(1)),
            KeyCode::PageUp => self.at = self.at.saturating_sub(ROWS_SHOWN),
            KeyCode::PageDown => self.at = (self.at + ROWS_SHOWN).min(fitting.len().saturating_sub(1)),
            _ => {
                let before = self.wanted.text();
                self.wanted.key(&key);
                if self.wanted.text() != before {
                    self.at = 0;
                }
            }
        }
        None
    }

    pub fn paste(&mut self, text: &str) {
        self.wanted.paste(text);
        self.at = 0;
    }

    /// A whole line was typed, where there are no keys: the number of an item as it was [told](Self::told), nothing for
    /// none, or words that narrow it down. What fits alone is meant.
    pub fn line(&mut self, line: &str) -> Option<Found> {
        let line = line.trim();
        if line.is_empty() {
            return Some(Found::Nothing);
        }
        let fitting = self.fitting();
        if let Ok(number) = line.parse::<usize>() {
            return number.checked_sub(1).and_then(|place| fitting.get(place)).map(|at| Found::Item(*at));
        }
        self.wanted.set(line);
        match self.fitting()[..] {
            [only] => Some(Found::Item(only)),
            // Words that fit nothing narrow down nothing.
            [] => {
                self.wanted.set("");
                None
            }
            _ => None,
        }
    }

    /// All that is shown where there are no keys: each item with its number.
    pub fn told(&self, theme: &Theme) -> Vec<Line<'static>> {
        let fitting = self.fitting();
        let mut lines = vec![Line::styled(self.title.clone(), theme.style(Role::Strong))];
        for (place, at) in fitting.iter().enumerate().take(ROWS_TOLD) {
            let (words, more) = &self.items[*at];
            let more =
                if more.is_empty() { String::new() } else { format!(" ({})", clean::line(more.trim())) };
            lines.push(Line::styled(
                format!("{}. {}{more}", place + 1, clean::line(words)),
                theme.style(Role::Text),
            ));
        }
        if fitting.len() > ROWS_TOLD {
            let more = format!("… and {} more", fitting.len() - ROWS_TOLD);
            lines.push(Line::styled(more, theme.style(Role::Faint)));
        }
        let keys = "Type a number, words to find, or an empty line for none.";
        lines.push(Line::styled(keys, theme.style(Role::Faint)));
        lines
    }

    pub fn live(&self, theme: &Theme, columns: usize) -> Live {
        let fitting = self.fitting();
        let mut title =
            Line::from(vec![Span::styled(self.title.clone(), theme.style(Role::Strong)), Span::raw("  ")]);
        let beside = title.width();
        let (rows, at) = self.wanted.view(columns.saturating_sub(beside), theme);
        // Where the words are longer than a row, the one with the caret is seen.
        let row = rows.into_iter().nth(at.row).unwrap_or_default();
        title.spans.extend(row.spans);
        let caret = Some(Caret { row: 0, column: beside + at.column });
        let mut lines = vec![title];
        let from = self.at.saturating_sub(ROWS_SHOWN - 1);
        let beside = self.items.iter().map(|(_, more)| more.trim().chars().count()).max().unwrap_or_default();
        for (place, at) in fitting.iter().enumerate().skip(from).take(ROWS_SHOWN) {
            let (words, more) = &self.items[*at];
            let (mark, style) = match place == self.at {
                true => (MARK, theme.style(Role::Selected)),
                false => ("  ", theme.style(Role::Text)),
            };
            lines.push(Line::from(vec![
                Span::styled(mark, theme.style(Role::Accent)),
                Span::styled(beside_words(more, beside), theme.style(Role::Faint)),
                Span::styled(clean::line(words), style),
            ]));
        }
        let keys =
            format!("{} of {} · type to find · ↑↓ and Enter · Esc for none", fitting.len(), self.items.len());
        lines.push(Line::styled(keys, theme.style(Role::Faint)));
        Live { lines, caret }
    }
}

/// What stands beside an item, in a column of its own; nothing, if nothing stands beside any.
fn beside_words(more: &str, cells: usize) -> String {
    match cells {
        0 => String::new(),
        cells => format!("{:>cells$}  ", clean::line(more.trim())),
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyModifiers;

    use super::*;

    #[test]
    fn what_is_typed_narrows_it_down() {
        let items = ["apples", "pears", "more apples"].map(|name| (name.to_owned(), String::new())).to_vec();
        let mut list = List::new("Fruit", items);
        let mut key = |code| list.key(KeyEvent::new(code, KeyModifiers::NONE));
        for c in "apple".chars() {
            assert!(key(KeyCode::Char(c)).is_none());
        }
        key(KeyCode::Down);
        key(KeyCode::Down);
        assert!(matches!(key(KeyCode::Enter), Some(Found::Item(2))));
        key(KeyCode::Char('x'));
        assert!(key(KeyCode::Enter).is_none(), "nothing fits");
        assert!(matches!(key(KeyCode::Esc), Some(Found::Nothing)));
        let items =
            vec![("second".to_owned(), "11 s ago".to_owned()), ("part 1".to_owned(), "9 s ago".to_owned())];
        let mut list = List::new("Sessions", items);
        list.key(KeyEvent::new(KeyCode::Char('1'), KeyModifiers::NONE));
        let found = list.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE));
        assert!(matches!(found, Some(Found::Item(1))), "by its words, not by the hour");
    }

    #[test]
    fn lines_name_an_item_or_narrow_it_down() {
        let items =
            ["apples", "pears", "more apples"].map(|name| (name.to_owned(), "red".to_owned())).to_vec();
        let mut list = List::new("Fruit", items);
        let told = |list: &List| list.told(&Theme::BARE).iter().map(Line::to_string).collect::<Vec<_>>();
        assert_eq!(told(&list)[1..4], ["1. apples (red)", "2. pears (red)", "3. more apples (red)"]);
        for (line, wanted) in [("0", None), ("4", None), ("plums", None), (" 2 ", Some(1)), ("pear", Some(1))]
        {
            let found = list.line(line).map(|found| match found {
                Found::Item(at) => at,
                Found::Nothing => panic!("{line}"),
            });
            assert_eq!(found, wanted, "{line}");
            list.wanted.set("");
        }
        assert!(list.line("APPLES").is_none(), "there are two");
        assert_eq!(told(&list)[1..3], ["1. apples (red)", "2. more apples (red)"]);
        assert!(matches!(list.line("2"), Some(Found::Item(2))));
        assert!(matches!(list.line(""), Some(Found::Nothing)));
    }
}
