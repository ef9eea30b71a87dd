//! Questions beside the conversation (`/btw`): the model sees what was said, and nothing of them is said there.

use futures::future::abortable;
use pelton_serve::Served;
use serde_json::json;

use super::{Chore, Session};
use crate::clean;
use crate::limits::{ASKED_BESIDE_MAX, NAME_CHARS_MAX};
use crate::theme::Role;

impl Session<'_> {
    /// Asks, whatever the engine does. Without a question the last answer is told once more.
    pub(super) fn ask_beside(&mut self, question: &str) {
        if question.is_empty() {
            return match self.beside.last.take() {
                Some((asked, answer)) => {
                    self.app.tell_beside(&asked, &answer);
                    self.beside.last = Some((asked, answer));
                }
                None => {
                    let words = "/btw QUESTION asks about this conversation, and nothing of it is kept there";
                    self.app.say(words, Role::Text);
                }
            };
        }
        if self.app.waiting_beside().len() >= ASKED_BESIDE_MAX {
            let words = format!("{ASKED_BESIDE_MAX} questions wait for their answers already");
            return self.app.say(&words, Role::Error);
        }
        self.beside.asked += 1;
        let id = self.beside.asked;
        let (asking, running) = abortable(self.bystander.ask(question));
        self.beside.running.insert(id, running);
        self.chores.push(Box::pin(async move {
            let answer = asking.await.ok();
            Chore::Beside(id, answer.map(|answer| answer.map_err(|why| why.to_string())))
        }));
        let now = self.now();
        self.app.asks_beside(id, question, now);
    }

    /// Has the model say what this session is called.
    pub(super) fn name_session(&mut self) {
        const WORDS: &str = "What would you call this conversation? Answer with two to six words that tell it from others, and nothing else.";
        if !self.has_words {
            return self
                .app
                .say("/rename NAME: nothing was said yet that it could be called after", Role::Error);
        }
        let asking = self.bystander.ask(WORDS);
        self.chores.push(Box::pin(async move {
            let answer = asking.await;
            Chore::Named(answer.map_err(|why| why.to_string()))
        }));
    }

    pub(super) fn named(&mut self, answer: Result<String, String>) {
        match answer {
            Ok(words) => match name_in(&words).as_str() {
                "" => self.app.say("it has no new name: the model found none", Role::Error),
                name => self.rename(name),
            },
            Err(why) => self.app.say(&format!("it has no new name: {why}"), Role::Error),
        }
    }

    /// It is called so from now on.
    pub(super) fn rename(&mut self, name: &str) {
        match self.handles.ask("rename_session", json!({"title": name})) {
            Served::Now(Ok(_)) => {
                self.name = Some(name.to_owned());
                self.app.say(&format!("this session is called {} now", clean::line(name)), Role::Faint);
            }
            Served::Now(Err(why)) => self.app.say(&why, Role::Error),
            _ => {}
        }
    }

    /// Nobody waits for it any more.
    pub(super) fn give_up_beside(&mut self, id: u64) {
        if let Some(running) = self.beside.running.remove(&id) {
            running.abort();
        }
    }

    /// The answer, or why there is none; nothing if it was given up.
    pub(super) fn answered_beside(&mut self, id: u64, answer: Option<Result<String, String>>) {
        self.beside.running.remove(&id);
        if let (Some(question), Some(answer)) = (self.app.no_longer_beside(id), answer) {
            self.app.tell_beside(&question, &answer);
            self.beside.last = Some((question, answer));
        }
    }
}

/// The name that a model has found, without what it may have put around it.
fn name_in(words: &str) -> String {
    let line = words.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let around = |c: char| matches!(c, '"' | '\'' | '`' | '*' | '#' | '“' | '”' | '.') || c.is_whitespace();
    line.trim_matches(around).chars().take(NAME_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_out_of_what_stands_around_it() {
        for (words, name) in [
            ("Mending the parser", "Mending the parser"),
            ("\n\"Mending the parser.\"\n\nBecause …", "Mending the parser"),
            ("**Mending the parser**", "Mending the parser"),
            ("# C# in five steps", "C# in five steps"),
            ("…", "…"),
            (" \n", ""),
        ] {
            assert_eq!(name_in(words), name, "{words:?}");
        }
        assert_eq!(name_in(&"x".repeat(500)).len(), NAME_CHARS_MAX);
    }
}
