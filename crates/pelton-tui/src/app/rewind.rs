//! Lists to choose from: which prompt to go back to and what of it, which session to go on with, which model to ask.

use ratatui_core::text::Line;
use uuid::Uuid;

use super::{App, Effect};
use crate::ask::choice::{Answer, Choice};
use crate::ask::list::List;
use crate::ask::{Dialog, Own};
use crate::commands::Own as Command;
use crate::theme::Role;

/// A prompt that can be gone back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Past {
    pub id: Uuid,
    pub words: String,
}

/// What is taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Undo {
    /// To before this prompt.
    pub to: Past,
    pub conversation: bool,
    pub files: bool,
}

impl App {
    /// Asks which prompt is gone back to, the newest first.
    pub fn ask_prompt(&mut self, past: Vec<Past>) {
        if past.is_empty() {
            self.say("there is nothing to go back to yet", Role::Faint);
            return;
        }
        let items = past.iter().map(|past| (past.words.clone(), String::new())).collect();
        self.past = past;
        self.open(Dialog::list(Own::Prompt, List::new("Go back to before", items)));
    }

    pub(super) fn chose_prompt(&mut self, at: Option<usize>) -> Vec<Effect> {
        let mut past = std::mem::take(&mut self.past);
        self.chosen = at.filter(|at| *at < past.len()).map(|at| past.swap_remove(at));
        self.chosen.iter().map(|past| Effect::PreviewRewind(past.id)).collect()
    }

    /// Shows what going back would do to files, and asks what is wanted. An error says why files stay as they are.
    pub fn ask_undo(&mut self, preview: Result<Vec<String>, String>) {
        let faint = self.theme.style(Role::Faint);
        let mut body: Vec<Line<'static>> = Vec::new();
        let has_files = match preview {
            Err(why) => {
                body.push(Line::styled(
                    format!("files stay as they are: {}", crate::clean::line(&why)),
                    faint,
                ));
                false
            }
            Ok(files) if files.is_empty() => {
                body.push(Line::styled("no file was changed since", faint));
                false
            }
            Ok(files) => {
                body.push(Line::styled("Files as they were before:", faint));
                body.extend(
                    files.iter().map(|file| Line::styled(format!("  {}", crate::clean::line(file)), faint)),
                );
                true
            }
        };
        let mut answers = Vec::new();
        if has_files {
            answers.push(Answer::new('b', "The conversation and the files"));
        }
        answers.push(Answer::new('c', "The conversation alone"));
        if has_files {
            answers.push(Answer::new('f', "The files alone"));
        }
        answers.push(Answer::new('n', "Nothing"));
        self.has_files = has_files;
        self.open(Dialog::choice(Own::Rewind, Choice::new("What goes back?", answers), body));
    }

    pub(super) fn chose_undo(&mut self, at: Option<usize>) -> Vec<Effect> {
        let Some(to) = self.chosen.take() else { return Vec::new() };
        let (conversation, files) = match (self.has_files, at) {
            (true, Some(0)) => (true, true),
            (true, Some(1)) | (false, Some(0)) => (true, false),
            (true, Some(2)) => (false, true),
            _ => return Vec::new(),
        };
        vec![Effect::Rewind(Undo { to, conversation, files })]
    }

    /// Asks what a command is given: each by its name, and a few words about it.
    pub fn ask_argument(&mut self, command: Command, title: &str, items: Vec<(String, String)>) {
        self.given = items.iter().map(|(name, _)| name.clone()).collect();
        self.open(Dialog::list(Own::Argument(command), List::new(title, items)));
    }

    /// Asks which session is gone on with: its name, and when it was last written to.
    pub fn ask_session(&mut self, sessions: Vec<(Uuid, String, String)>) {
        if sessions.is_empty() {
            self.say("there is no other session in this directory", Role::Faint);
            return;
        }
        self.sessions = sessions.iter().map(|(id, ..)| *id).collect();
        let items = sessions.into_iter().map(|(_, name, when)| (name, when)).collect();
        self.open(Dialog::list(Own::Session, List::new("Go on with", items)));
    }
}
