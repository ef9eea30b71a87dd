//! What could be meant, below the prompt: a few rows to choose from while something is typed behind an `@` or a `/`. Pure: what fits is
//! handed in, what was chosen is handed out.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

use super::index::Found;
use super::palette::{Entry, fitting};
use super::{Wanted, mention, wanted};
use crate::cells::{cut, cut_line, width};
use crate::clean::{self, Cleaner};
use crate::limits::COMPLETIONS_MAX;
use crate::theme::{Role, Theme};

/// Cells of a command's name, so that what they do stands below each other.
const NAME_CELLS_MAX: usize = 28;

/// What can be chosen now.
#[derive(Debug, Default)]
pub struct Menu {
    rows: Vec<Row>,
    chosen: usize,
    /// What stands before the caret, as far as it is completed.
    typed: String,
    /// Left with Esc: it stays shut until something else is typed.
    left: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    /// What is put in the place of what was typed.
    text: String,
    words: Words,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Words {
    File(Found),
    Directory(Found),
    Command(Entry),
}

/// What a key came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chosen {
    /// The key means nothing here.
    Nothing,
    /// Another row is chosen, or the menu is shut.
    Seen,
    /// So many bytes before the caret make way for this text.
    Text {
        bytes: usize,
        text: String,
        /// The key was Enter, and there is nothing to add: a command as it stands is sent.
        send: bool,
    },
}

impl Menu {
    /// Looks at what stands before the caret. Files are asked for only if one is wanted; it is called again when more of them are known.
    pub fn look(
        &mut self,
        before_caret: &str,
        commands: &[Entry],
        files: impl FnOnce(&str, usize) -> Vec<Found>,
        directories: impl FnOnce(&str, usize) -> Vec<Found>,
    ) {
        let rows: Vec<Row> = match wanted(before_caret) {
            None => Vec::new(),
            Some(Wanted::File { typed, .. }) => files(typed, COMPLETIONS_MAX)
                .into_iter()
                .map(|found| Row { text: mention(&found.path), words: Words::File(found) })
                .collect(),
            Some(Wanted::Directory { typed, .. }) => directories(typed, COMPLETIONS_MAX)
                .into_iter()
                .map(|found| Row { text: found.path.clone(), words: Words::Directory(found) })
                .collect(),
            Some(Wanted::Command { typed, .. }) => fitting(commands, typed)
                .into_iter()
                .take(COMPLETIONS_MAX)
                .map(|at| Row {
                    text: format!("/{} ", commands[at].name),
                    words: Words::Command(commands[at].clone()),
                })
                .collect(),
        };
        let typed =
            wanted(before_caret).map_or("", |wanted| &before_caret[before_caret.len() - bytes(&wanted)..]);
        if typed == self.typed {
            // More was found: what was chosen stays chosen.
            let chosen = self.rows.get(self.chosen);
            self.chosen = rows.iter().position(|row| Some(row) == chosen).unwrap_or(0);
        } else {
            typed.clone_into(&mut self.typed);
            (self.chosen, self.left) = (0, false);
        }
        self.rows = rows;
    }

    pub fn is_open(&self) -> bool {
        !self.left && !self.rows.is_empty()
    }

    /// Shuts it. Whether it was open.
    pub fn leave(&mut self) -> bool {
        let was_open = self.is_open();
        self.left = true;
        was_open
    }

    pub fn key(&mut self, key: &KeyEvent) -> Chosen {
        if !self.is_open() {
            return Chosen::Nothing;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alone = key.modifiers.is_empty();
        let last = self.rows.len() - 1;
        match key.code {
            KeyCode::Up if alone => self.chosen = self.chosen.checked_sub(1).unwrap_or(last),
            KeyCode::Char('p') if control => self.chosen = self.chosen.checked_sub(1).unwrap_or(last),
            KeyCode::Down if alone => self.chosen = if self.chosen == last { 0 } else { self.chosen + 1 },
            KeyCode::Char('n') if control => {
                self.chosen = if self.chosen == last { 0 } else { self.chosen + 1 }
            }
            KeyCode::Esc => _ = self.leave(),
            KeyCode::Tab if alone => return self.taken(false),
            KeyCode::Enter if alone => return self.taken(true),
            _ => return Chosen::Nothing,
        }
        Chosen::Seen
    }

    fn taken(&mut self, enter: bool) -> Chosen {
        let Some(row) = self.rows.get(self.chosen) else { return Chosen::Nothing };
        // A directory as it stands there is meant: one inside of it is only offered.
        if enter && matches!(row.words, Words::Directory(_)) {
            return Chosen::Nothing;
        }
        let called = self.typed.strip_prefix('/');
        let is_whole = match &row.words {
            Words::Command(entry) => called.is_some_and(|typed| entry.is_called(typed)),
            Words::File(_) | Words::Directory(_) => row.text.trim_end() == self.typed,
        };
        // What stands there already need not be put there.
        if enter && is_whole {
            return Chosen::Nothing;
        }
        // What was only guessed at is shown before it is sent.
        let send = enter
            && match &row.words {
                Words::Command(entry) => called.is_some_and(|typed| entry.begins(typed)),
                Words::File(_) | Words::Directory(_) => false,
            };
        Chosen::Text { bytes: self.typed.len(), text: row.text.clone(), send }
    }

    /// The rows around the one that is chosen.
    pub fn lines(&self, theme: &Theme, cells: usize, rows_max: usize) -> Vec<Line<'static>> {
        if !self.is_open() || rows_max == 0 {
            return Vec::new();
        }
        // Where not all can be seen, it is told how many there are.
        let is_part = self.rows.len() > rows_max && rows_max > 2;
        let rows_max = rows_max - usize::from(is_part);
        let first = (self.chosen + 1).saturating_sub(rows_max);
        let names = self.rows.iter().map(|row| match &row.words {
            Words::Command(entry) => width(&entry.name) + 1,
            Words::File(_) | Words::Directory(_) => 0,
        });
        let names = names.max().unwrap_or_default().min(NAME_CELLS_MAX);
        let shown = self.rows.iter().enumerate().skip(first).take(rows_max);
        let mut lines: Vec<Line<'static>> =
            shown.map(|(at, row)| cut_line(row.line(theme, at == self.chosen, names), cells)).collect();
        if is_part {
            let place = format!("  {} of {} · ↑↓ for the others", self.chosen + 1, self.rows.len());
            lines.push(cut_line(Line::styled(place, theme.style(Role::Faint)), cells));
        }
        lines
    }
}

fn bytes(wanted: &Wanted<'_>) -> usize {
    match wanted {
        Wanted::File { bytes, .. } | Wanted::Directory { bytes, .. } | Wanted::Command { bytes, .. } => {
            *bytes
        }
    }
}

impl Row {
    fn line(&self, theme: &Theme, is_chosen: bool, names: usize) -> Line<'static> {
        let style = theme.style(if is_chosen { Role::Selected } else { Role::Text });
        let mut spans = vec![Span::styled(if is_chosen { "› " } else { "  " }, theme.style(Role::Accent))];
        match &self.words {
            Words::File(found) | Words::Directory(found) => {
                let fits = style.patch(theme.style(Role::Accent));
                // A name of a file can be anything.
                let mut cleaner = Cleaner::default();
                for (at, character) in (0u32..).zip(found.path.graphemes(true)) {
                    let style = if found.fits.binary_search(&at).is_ok() { fits } else { style };
                    let text = cleaner.push(character);
                    match spans.last_mut() {
                        Some(last) if at > 0 && last.style == style => last.content.to_mut().push_str(&text),
                        _ => spans.push(Span::styled(text, style)),
                    }
                }
            }
            Words::Command(Entry { name, description, hint, .. }) => {
                let name = cut(&format!("/{}", clean::line(name)), NAME_CELLS_MAX);
                let space = names.saturating_sub(width(&name)) + 2;
                spans.push(Span::styled(name, style));
                spans.push(Span::raw(" ".repeat(space)));
                let faint = theme.style(Role::Faint);
                spans.push(Span::styled(clean::line(description), faint));
                if is_chosen && !hint.is_empty() {
                    spans.push(Span::styled(format!("  {}", clean::line(hint)), theme.style(Role::Accent)));
                }
            }
        }
        Line::from(spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::words_of;

    fn commands() -> Vec<Entry> {
        let all = [
            ("clear", &["reset"][..], "Begin anew"),
            ("compact", &[], "Make room"),
            ("cost", &["usage"], "What was spent"),
        ];
        let entry = |(name, aliases, description): (&str, &[&str], &str)| Entry {
            name: name.to_owned(),
            aliases: aliases.iter().map(ToString::to_string).collect(),
            description: description.to_owned(),
            ..Entry::default()
        };
        all.map(entry).into()
    }

    fn files(typed: &str, _best: usize) -> Vec<Found> {
        let all = ["src/main.rs", "src/my file.rs", "src/"];
        let fits = all.iter().filter(|path| path.contains(typed));
        fits.map(|path| Found { path: (*path).to_owned(), fits: vec![0] }).collect()
    }

    fn none(_: &str, _: usize) -> Vec<Found> {
        Vec::new()
    }

    fn shown(menu: &Menu, rows: usize) -> Vec<String> {
        menu.lines(&Theme::BARE, 30, rows).iter().map(words_of).collect()
    }

    fn press(menu: &mut Menu, code: KeyCode) -> Chosen {
        menu.key(&KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn looked(before_caret: &str) -> Menu {
        let mut menu = Menu::default();
        menu.look(before_caret, &commands(), files, none);
        menu
    }

    #[test]
    fn commands_are_offered_with_what_they_do() {
        let mut menu = looked("/c");
        assert_eq!(
            shown(&menu, 9),
            ["› /cost     What was spent", "  /clear    Begin anew", "  /compact  Make room"]
        );
        assert_eq!(press(&mut menu, KeyCode::Down), Chosen::Seen);
        let taken = Chosen::Text { bytes: 2, text: "/clear ".to_owned(), send: false };
        assert_eq!(press(&mut menu, KeyCode::Tab), taken);
        let sent = Chosen::Text { bytes: 2, text: "/clear ".to_owned(), send: true };
        assert_eq!(press(&mut menu, KeyCode::Enter), sent);
        // The rows go with the choice, and the ends meet.
        assert_eq!(press(&mut menu, KeyCode::Down), Chosen::Seen);
        assert_eq!(shown(&menu, 2), ["  /clear    Begin anew", "› /compact  Make room"]);
        press(&mut menu, KeyCode::Down);
        assert_eq!(shown(&menu, 1), ["› /cost     What was spent"]);
        press(&mut menu, KeyCode::Up);
        assert_eq!(shown(&menu, 1), ["› /compact  Make room"]);
    }

    #[test]
    fn files_are_put_in_as_the_engine_reads_them() {
        let mut menu = looked("see @my");
        let taken = Chosen::Text { bytes: 3, text: "@\"src/my file.rs\" ".to_owned(), send: false };
        assert_eq!(press(&mut menu, KeyCode::Enter), taken);
        assert_eq!(shown(&menu, 3), ["› src/my file.rs"]);
    }

    #[test]
    fn directories_are_gone_on_into_and_enter_means_what_stands_there() {
        let inner = |_: &str, _: usize| vec![Found { path: "src/inner/".to_owned(), fits: vec![] }];
        let mut menu = Menu::default();
        menu.look("/cd src", &commands(), files, inner);
        assert_eq!(shown(&menu, 3), ["› src/inner/"]);
        let taken = Chosen::Text { bytes: 3, text: "src/inner/".to_owned(), send: false };
        assert_eq!(press(&mut menu, KeyCode::Tab), taken);
        assert_eq!(press(&mut menu, KeyCode::Enter), Chosen::Nothing);
    }

    #[test]
    fn enter_sends_what_was_meant_and_nothing_that_was_guessed() {
        assert_eq!(press(&mut looked("/cost"), KeyCode::Enter), Chosen::Nothing);
        assert_eq!(press(&mut looked("see @src/main.rs"), KeyCode::Enter), Chosen::Nothing);
        let guessed = Chosen::Text { bytes: 5, text: "/compact ".to_owned(), send: false };
        assert_eq!(press(&mut looked("/mpct"), KeyCode::Enter), guessed);
        let meant = Chosen::Text { bytes: 4, text: "/cost ".to_owned(), send: true };
        assert_eq!(press(&mut looked("/cos"), KeyCode::Enter), meant);
        // Its other names are names.
        assert_eq!(press(&mut looked("/usage"), KeyCode::Enter), Chosen::Nothing);
        for typed in ["/usag", "/Usage"] {
            let meant = Chosen::Text { bytes: typed.len(), text: "/cost ".to_owned(), send: true };
            assert_eq!(press(&mut looked(typed), KeyCode::Enter), meant);
        }
    }

    #[test]
    fn where_nothing_is_wanted_keys_mean_what_they_always_do() {
        for before_caret in ["", "words", "@zzz", "/zzz", "me@my"] {
            let mut menu = looked(before_caret);
            assert!(!menu.is_open(), "{before_caret}");
            for code in [KeyCode::Up, KeyCode::Down, KeyCode::Tab, KeyCode::Enter, KeyCode::Esc] {
                assert_eq!(press(&mut menu, code), Chosen::Nothing, "{before_caret}");
            }
        }
        assert_eq!(press(&mut looked("@"), KeyCode::Char('x')), Chosen::Nothing);
    }

    #[test]
    fn what_was_left_stays_shut_until_something_else_is_typed() {
        let mut menu = looked("@s");
        assert_eq!(press(&mut menu, KeyCode::Esc), Chosen::Seen);
        assert!(!menu.is_open());
        menu.look("@s", &commands(), files, none);
        assert!(!menu.is_open());
        menu.look("@sr", &commands(), files, none);
        assert!(menu.is_open());
    }

    #[test]
    fn what_is_chosen_stays_chosen_when_more_is_found() {
        let mut menu = looked("@s");
        press(&mut menu, KeyCode::Down);
        assert_eq!(shown(&menu, 3)[1], "› src/my file.rs");
        let more = |typed: &str, best: usize| {
            let mut all = files(typed, best);
            all.insert(0, Found { path: "some".to_owned(), fits: vec![] });
            all
        };
        menu.look("@s", &commands(), more, none);
        assert_eq!(shown(&menu, 4)[2], "› src/my file.rs");
    }

    #[test]
    fn names_bring_nothing_along() {
        let mut menu = Menu::default();
        let path = "a\u{202e}b\u{9b}2J";
        menu.look("@", &[], |_, _| vec![Found { path: path.to_owned(), fits: vec![] }], none);
        assert_eq!(shown(&menu, 1), ["› a‹U+202E›b"]);
        let entry = Entry {
            name: "x\u{1b}]0;t\u{7}y".to_owned(),
            description: "\u{1b}[2Jz".to_owned(),
            aliases: vec![],
            hint: "[WHAT]".to_owned(),
        };
        menu.look("/", &[entry], files, none);
        assert!(shown(&menu, 1)[0].contains("/xy") && !shown(&menu, 1)[0].contains('\u{1b}'));
    }
}
