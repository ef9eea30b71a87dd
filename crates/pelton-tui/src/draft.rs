//! The words that are being written, and the prompt they become.

mod pictures; // files that go along

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crossterm::event::{KeyCode, KeyEvent};
use pelton::event::CommandInfo;
use pelton::{Prompt, PromptBlock};
use ratatui_core::text::{Line, Span};

use crate::clean;
use crate::commands;
use crate::complete::menu::{Chosen, Menu};
use crate::complete::palette::Entry;
use crate::complete::{Files, Found, Offered, Wanted, directories, wanted};
use crate::input::{Command, Editor, History, Image, Outcome, Submission, VimMode};
use crate::paint::Caret;
use crate::theme::{Role, Theme};

/// Bytes of a picture that is read to go along with a prompt. The engine makes it fit.
pub(crate) const IMAGE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Cells that the mark in front takes.
const MARK_CELLS: usize = 2;
/// Rows of the words that are shown at once.
const WORDS_ROWS_MAX: usize = 10;
/// Files or commands that are offered at once.
const MENU_ROWS_MAX: usize = 8;
/// Rows that all of it takes.
pub(crate) const ROWS_MAX: usize = WORDS_ROWS_MAX + MENU_ROWS_MAX;

/// What came of a key.
pub(crate) enum Pressed {
    /// Nothing but another look.
    Edited,
    /// The words are sent.
    Submit(Submission),
}

/// The words.
#[derive(Default)]
pub(crate) struct Draft {
    editor: Editor,
    menu: Menu,
    /// Where files are that can be mentioned, and which.
    root: Option<(PathBuf, Offered)>,
    /// The user's home, if it is known.
    home: Option<PathBuf>,
    /// They are looked for when the first is wanted.
    files: Option<Files>,
    /// A program of the user's own says which they are, in the place of that.
    suggested: Option<Suggested>,
    /// The last look was at all there are.
    knows_all_files: bool,
    commands: Vec<Entry>,
    /// Somebody was asked for all commands.
    asked_commands: bool,
}

/// What a program of the user's own says about files that can be mentioned.
#[derive(Default)]
struct Suggested {
    /// What it was asked last.
    asked: Option<String>,
    /// What it said last, and to which words.
    to: String,
    paths: Vec<Found>,
}

impl Draft {
    /// Files of this folder can be mentioned, and the terminal's own commands called.
    pub fn offers(&mut self, root: PathBuf, home: Option<PathBuf>, offered: Offered) {
        (self.root, self.home) = (Some((root, offered)), home);
        self.knows(&[]);
    }

    /// Which files can be mentioned is for somebody else to say: see [`wants_files`](Self::wants_files).
    pub fn is_told_files(&mut self) {
        self.suggested = Some(Suggested::default());
    }

    /// The words behind an `@` that nobody was asked about yet.
    pub fn wants_files(&mut self) -> Option<String> {
        let suggested = self.suggested.as_mut()?;
        let Some(Wanted::File { typed, .. }) = wanted(self.editor.before_caret()) else { return None };
        if suggested.asked.as_deref() == Some(typed) {
            return None;
        }
        suggested.asked = Some(typed.to_owned());
        suggested.asked.clone()
    }

    /// The files that fit these words.
    pub fn told_files(&mut self, typed: String, paths: Vec<String>) {
        if let Some(suggested) = &mut self.suggested {
            suggested.to = typed;
            suggested.paths = paths.into_iter().map(|path| Found { path, fits: Vec::new() }).collect();
            self.look();
        }
    }

    /// Commands that the engine has, besides the terminal's own.
    pub fn knows(&mut self, others: &[CommandInfo]) {
        let entry = |name: &str, hint: &str, description: &str| Entry {
            name: name.to_owned(),
            description: description.lines().next().unwrap_or_default().to_owned(),
            hint: hint.to_owned(),
            aliases: commands::other_names(name).map(str::to_owned).collect(),
        };
        self.commands = commands::all().map(|(name, hint, what)| entry(name, hint, what)).collect();
        for other in others {
            if commands::called(&format!("/{}", other.name)).is_none() {
                self.commands.push(entry(&other.name, &other.argument_hint, &other.description));
            }
        }
        self.commands.sort_by(|one, other| one.name.cmp(&other.name));
        self.look();
    }

    /// The commands that are known so far, by their names.
    pub fn commands(&self) -> &[Entry] {
        &self.commands
    }

    /// Whether a command is being typed for the first time: then it is worth while to look for all there are.
    pub fn wants_commands(&mut self) -> bool {
        !self.asked_commands && {
            self.asked_commands = matches!(wanted(self.editor.before_caret()), Some(Wanted::Command { .. }));
            self.asked_commands
        }
    }

    /// Whether something is offered that a key can take.
    pub fn is_choosing(&self) -> bool {
        self.menu.is_open()
    }

    /// Whether more may be offered soon, though nothing is typed.
    pub fn waits_for_files(&self) -> bool {
        let wants = matches!(wanted(self.editor.before_caret()), Some(Wanted::File { .. }));
        wants && self.files.is_some() && !self.knows_all_files
    }

    /// Looks what could be meant by what stands before the caret.
    pub fn look(&mut self) {
        let Self { editor, menu, root, home, files, knows_all_files, commands, suggested, .. } = self;
        let cwd = root.as_ref().map(|(root, _)| root.clone());
        // A search shows prompts of the past, and where letters are commands nothing is being written.
        let is_written =
            editor.search().is_none() && editor.vim_mode().is_none_or(|mode| mode == VimMode::Insert);
        let before_caret = if is_written { editor.before_caret() } else { "" };
        let fitting = |typed: &str, best: usize| {
            if let Some(suggested) = suggested {
                // What fitted the beginning is offered until it is known what fits the whole.
                let fits = typed.starts_with(&suggested.to);
                return suggested.paths.iter().filter(|_| fits).take(best).cloned().collect();
            }
            if files.is_none() {
                *files = root.clone().map(|(root, offered)| Files::walk(root, offered));
            }
            let Some(files) = files else { return Vec::new() };
            // Asked before it is looked: what was found in between is seen by the next look.
            *knows_all_files = !files.is_walking();
            files.typed(typed, best)
        };
        menu.look(before_caret, commands, fitting, |typed, best| {
            cwd.map(|cwd| directories(&cwd, home.as_deref(), typed, best)).unwrap_or_default()
        });
    }

    /// Prompts of the past, the oldest first.
    pub fn remember(&mut self, prompts: impl IntoIterator<Item = String>) {
        let vim = self.editor.vim_mode().is_some();
        self.editor = Editor::new(History::of(prompts));
        self.editor.use_vim(vim);
    }

    pub fn is_empty(&self) -> bool {
        self.editor.is_empty()
    }

    /// The words as they would be sent.
    pub fn text(&self) -> String {
        self.editor.whole()
    }

    pub fn clear(&mut self) {
        self.editor.clear();
        self.look();
    }

    /// The words are these.
    pub fn set(&mut self, words: &str) {
        self.editor.set(words);
        self.look();
    }

    /// Words that were sent are to be written again, in front of what is there.
    pub fn put_back(&mut self, said: &Submission) {
        self.editor.put_back(&said.text, &said.images);
        self.look();
    }

    pub fn paste(&mut self, text: &str) {
        match pictures::dropped(text) {
            Some(paths) => {
                for (nth, path) in paths.into_iter().enumerate() {
                    if nth > 0 {
                        self.editor.paste(" ");
                    }
                    self.editor.attach(Image::File(path));
                }
            }
            None => _ = self.editor.paste(text),
        }
        self.look();
    }

    /// A picture goes along.
    pub fn attach(&mut self, image: Image) {
        self.editor.attach(image);
        self.look();
    }

    /// The words, sent now.
    pub fn submit(&mut self) -> Submission {
        let submission = self.editor.submit();
        self.look();
        submission
    }

    /// Leaves what a key has begun. Whether there was anything.
    pub fn escape(&mut self) -> bool {
        if self.menu.leave() {
            return true;
        }
        let searches = self.editor.search().is_some();
        if searches {
            self.editor.act(Command::Cancel);
            return true;
        }
        let left = self.editor.vim_escape();
        self.look();
        left
    }

    /// Switches the other way to edit on or off.
    pub fn use_vim(&mut self, wanted: bool) {
        self.editor.use_vim(wanted);
        self.look();
    }

    /// What letters mean, if the other way to edit is on.
    pub fn vim_mode(&self) -> Option<VimMode> {
        self.editor.vim_mode()
    }

    pub fn key(&mut self, key: KeyEvent) -> Pressed {
        match self.menu.key(&key) {
            Chosen::Nothing => {}
            Chosen::Seen => return Pressed::Edited,
            Chosen::Text { bytes, text, send } => {
                self.editor.complete(bytes, &text);
                self.look();
                return if send { Pressed::Submit(self.submit()) } else { Pressed::Edited };
            }
        }
        let outcome = match key.code {
            // Other keys have their own meanings here.
            KeyCode::Tab | KeyCode::BackTab | KeyCode::Esc => None,
            _ => self.editor.press(&key),
        };
        self.look();
        match outcome {
            Some(Outcome::Submit(submission)) => Pressed::Submit(submission),
            _ => Pressed::Edited,
        }
    }

    /// What is seen of it, and where the caret is.
    pub fn lines(&mut self, theme: &Theme, columns: usize, rows_max: usize) -> (Vec<Line<'static>>, Caret) {
        let searches = self.editor.search().map(|search| {
            let failed = if search.failed { " (nothing older has it)" } else { "" };
            format!(
                "looking for: {}{failed}  (Ctrl-R for an older one, Esc to leave)",
                clean::line(&search.words)
            )
        });
        let offered = self.menu.lines(theme, columns, MENU_ROWS_MAX.min(rows_max / 2));
        let below = usize::from(searches.is_some()) + offered.len();
        let height = rows_max.saturating_sub(below).clamp(1, WORDS_ROWS_MAX);
        let view = self.editor.view(columns.saturating_sub(MARK_CELLS), height, theme);
        let (column, row) = view.caret;
        let mut lines = Vec::new();
        for (at, mut line) in view.rows.into_iter().enumerate() {
            let mark = match (at, view.more_above) {
                (0, true) => "↑ ",
                (0, false) => "> ",
                _ => "  ",
            };
            line.spans.insert(0, Span::styled(mark, theme.style(Role::Accent)));
            lines.push(line);
        }
        if let Some(words) = searches {
            lines.push(Line::styled(words, theme.style(Role::Faint)));
        }
        lines.extend(offered);
        (lines, Caret { row, column: column + MARK_CELLS })
    }
}

/// A prompt of what was written, with its pictures.
pub(crate) fn prompt(submission: &Submission, cwd: &Path) -> Result<Prompt, String> {
    let mut blocks = Vec::new();
    if !submission.text.trim().is_empty() {
        blocks.push(PromptBlock::Text(submission.text.clone()));
    }
    for image in &submission.images {
        let (media_type, data) = match image {
            Image::Bytes { media_type, data } => (media_type.clone(), data.to_vec()),
            Image::File(path) => {
                let path = cwd.join(path);
                let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
                let size = std::fs::metadata(&path).map_err(|error| told(&error))?.len();
                if size > IMAGE_BYTES_MAX {
                    return Err(told(&"the picture is larger than 32 MB"));
                }
                let data = std::fs::read(&path).map_err(|error| told(&error))?;
                let media_type = pictures::media_type(&data).ok_or_else(|| told(&"this is no picture"))?;
                (media_type.to_owned(), data)
            }
        };
        blocks.push(PromptBlock::Image { media_type, base64: STANDARD.encode(data) });
    }
    Prompt::blocks(blocks).map_err(|error| error.to_string())
}

/// Words that nobody edited.
pub(crate) fn said(words: &str) -> Submission {
    Submission { text: words.to_owned(), shown: words.to_owned(), images: Vec::new() }
}
