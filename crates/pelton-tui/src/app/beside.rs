//! Questions beside the conversation: shown while nobody has answered them, and told apart from the rest when somebody has.

use std::time::Duration;

use ratatui_core::text::{Line, Span};

use super::{App, Effect};
use crate::cells::cut;
use crate::clean;
use crate::markdown;
use crate::theme::Role;

/// One that waits for its answer.
#[derive(Debug)]
pub(super) struct Beside {
    id: u64,
    question: String,
    since: Duration,
}

impl App {
    /// Somebody is asked beside the conversation.
    pub fn asks_beside(&mut self, id: u64, question: &str, now: Duration) {
        self.beside.push(Beside { id, question: question.to_owned(), since: now });
    }

    /// Since when the oldest waits.
    pub(super) fn beside_since(&self) -> Option<Duration> {
        self.beside.first().map(|beside| beside.since)
    }

    /// Those that wait.
    pub fn waiting_beside(&self) -> Vec<String> {
        self.beside.iter().map(|beside| beside.question.clone()).collect()
    }

    /// One does not wait any more. Its words.
    pub fn no_longer_beside(&mut self, id: u64) -> Option<String> {
        let at = self.beside.iter().position(|beside| beside.id == id)?;
        Some(self.beside.remove(at).question)
    }

    /// The newest is given up.
    pub(super) fn give_up_beside(&mut self) -> Option<Effect> {
        let Beside { id, .. } = self.beside.pop()?;
        self.say("(given up: nobody answers it)", Role::Faint);
        Some(Effect::GiveUpBeside(id))
    }

    /// An answer. It stands in the terminal, and nowhere else.
    pub fn tell_beside(&mut self, question: &str, answer: &Result<String, String>) {
        if !self.ends_apart() {
            self.finished.push(Line::default());
        }
        // All of it stands where it was asked.
        let asked = clean::line(question.lines().next().unwrap_or_default());
        let row = cut(&format!("beside: {asked}"), self.columns);
        self.finished.push(Line::styled(row, self.theme.style(Role::Accent)));
        match answer {
            Ok(words) => {
                self.finished.extend(markdown::lines(words, self.columns, self.theme));
                self.say("(this is no part of the conversation)", Role::Faint);
            }
            Err(why) => self.say(&format!("not answered: {why}"), Role::Error),
        }
        self.finished.push(Line::default());
    }

    /// Those that wait, a row each.
    pub(super) fn beside_lines(&self, now: Duration) -> impl Iterator<Item = Line<'static>> {
        let faint = self.theme.style(Role::Faint);
        self.beside.iter().map(move |beside| {
            let words = clean::line(beside.question.lines().next().unwrap_or_default());
            let took = now.saturating_sub(beside.since).as_secs();
            Line::from(vec![
                Span::styled("? ", self.theme.style(Role::Accent)),
                Span::styled(words, self.theme.style(Role::Prompt)),
                Span::styled(format!("  (asked {took} s ago · Esc gives it up)"), faint),
            ])
        })
    }
}
