//! Questions beside the conversation (`/btw`): the model sees what was said, and nothing of them is said there.

use futures::future::abortable;

use super::{Chore, Session};
use crate::limits::ASKED_BESIDE_MAX;
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
        if self.app.waiting_beside() >= ASKED_BESIDE_MAX {
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
