//! Words that somebody types as an answer: edited with the keys of the prompt, in rows of the question, with the real caret in
//! them, so that input methods show their choices where they are typed.

use crossterm::event::KeyEvent;
use ratatui_core::text::Line;

use crate::clean::Cleaner;
use crate::input::{self, Command, Editor, View};
use crate::paint::Caret;
use crate::theme::Theme;

/// Characters of an answer.
const CHARS_MAX: usize = 10_000;
/// Rows of one that are seen at once.
const ROWS_MAX: usize = 6;

#[derive(Debug, Default)]
pub(crate) struct Words {
    editor: Editor,
}

impl Words {
    pub fn of(text: &str) -> Self {
        let mut words = Self::default();
        words.set(text);
        words
    }

    pub fn set(&mut self, text: &str) {
        let text: String = text.chars().take(CHARS_MAX).collect();
        self.editor.set(&text);
    }

    pub fn text(&self) -> String {
        self.editor.whole()
    }

    /// A key that edits them. Whether it meant anything here.
    pub fn key(&mut self, key: &KeyEvent) -> bool {
        let Some(command) = input::command(key) else { return false };
        match command {
            // An answer is one line, and has no past.
            Command::Enter | Command::Newline | Command::Up | Command::Down => return false,
            Command::HistoryOlder | Command::HistoryNewer | Command::Search | Command::Cancel => {
                return false;
            }
            Command::Insert(_) | Command::Yank | Command::YankOlder if self.is_full() => {}
            command => _ = self.editor.act(command),
        }
        true
    }

    pub fn paste(&mut self, text: &str) {
        let room = CHARS_MAX.saturating_sub(self.text().chars().count());
        let text = Cleaner::default().push(text);
        for c in text.trim_end().chars().take(room) {
            self.editor.act(Command::Insert(if c.is_control() { ' ' } else { c }));
        }
    }

    fn is_full(&self) -> bool {
        self.text().chars().count() >= CHARS_MAX
    }

    /// Their rows, and where the caret is in them.
    pub fn view(&self, columns: usize, theme: &Theme) -> (Vec<Line<'static>>, Caret) {
        let View { rows, caret: (column, row), .. } = self.editor.glance(columns, ROWS_MAX, theme);
        (rows, Caret { row, column })
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyModifiers};

    use super::*;

    #[test]
    fn they_are_edited_as_a_prompt_is_and_stay_one_line() {
        let mut words = Words::of("日本");
        let mut press = |code, modifiers| words.key(&KeyEvent::new(code, modifiers));
        assert!(press(KeyCode::Char('a'), KeyModifiers::CONTROL));
        assert!(press(KeyCode::Char('x'), KeyModifiers::NONE));
        assert!(press(KeyCode::Right, KeyModifiers::NONE));
        for other in [KeyCode::Enter, KeyCode::Up, KeyCode::Down, KeyCode::Esc, KeyCode::Tab] {
            assert!(!press(other, KeyModifiers::NONE), "{other:?}");
        }
        let (rows, caret) = words.view(40, &Theme::BARE);
        assert_eq!((words.text().as_str(), rows.len(), caret.column), ("x日本", 1, 3));
        words.paste("one\ntwo");
        assert!(!words.text().contains('\n'));
        words.paste(&"y".repeat(2 * CHARS_MAX));
        assert_eq!(words.text().chars().count(), CHARS_MAX);
        assert!(words.key(&KeyEvent::new(KeyCode::Char('z'), KeyModifiers::NONE)));
        assert!(!words.text().contains('z'));
    }
}
