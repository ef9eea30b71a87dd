//! Questions of the engine's, on their way to the person in front and back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use pelton::host::{Elicitation, Elicited, Elicitor};
use pelton::permission::{Answer, Asker, Question};
use tokio::sync::{mpsc, oneshot};

use crate::ask::{Answered, Asked, AskedId};

/// Questions that are open at once, at most: the engine asks a person one after the other, and a server now and then.
const QUESTIONS_OPEN_MAX: usize = 64;

/// What happens to questions.
pub(super) enum Heard {
    Asked(AskedId, Asked),
    TakenBack(AskedId),
}

/// Where the engine asks.
#[derive(Clone)]
pub(super) struct Desk(Arc<Shared>);

struct Shared {
    next: AtomicU64,
    heard: mpsc::Sender<Heard>,
    open: Mutex<HashMap<AskedId, oneshot::Sender<Answered>>>,
    /// A command line of the user's own: nobody is asked about what they typed themselves.
    typed: Mutex<Option<String>>,
}

impl Desk {
    pub fn new() -> (Self, mpsc::Receiver<Heard>) {
        // Each question may be taken back, too.
        let (heard, hears) = mpsc::channel(2 * QUESTIONS_OPEN_MAX);
        let shared =
            Shared { next: AtomicU64::new(1), heard, open: Mutex::default(), typed: Mutex::default() };
        (Self(Arc::new(shared)), hears)
    }

    /// An answer was given. One to a question that was taken back is nobody's.
    pub fn answer(&self, id: AskedId, answer: Answered) {
        if let Some(waiting) = self.open().remove(&id) {
            let _ = waiting.send(answer);
        }
    }

    /// From now on this command line runs without a question; with `None`, none does.
    pub fn typed(&self, command: Option<&str>) {
        *self.0.typed.lock().unwrap_or_else(PoisonError::into_inner) = command.map(str::to_owned);
    }

    fn is_typed(&self, question: &Question) -> bool {
        let typed = self.0.typed.lock().unwrap_or_else(PoisonError::into_inner);
        &*question.tool == "Bash" && typed.is_some() && question.input["command"].as_str() == typed.as_deref()
    }

    async fn ask(&self, asked: Asked) -> Option<Answered> {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        {
            let mut open = self.open();
            if open.len() >= QUESTIONS_OPEN_MAX {
                return None;
            }
            open.insert(id, answer);
        }
        let _open = Open { desk: self, id };
        self.0.heard.send(Heard::Asked(id, asked)).await.ok()?;
        answered.await.ok()
    }

    fn open(&self) -> MutexGuard<'_, HashMap<AskedId, oneshot::Sender<Answered>>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that is open until this is dropped.
struct Open<'a> {
    desk: &'a Desk,
    id: AskedId,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if self.desk.open().remove(&self.id).is_some() {
            // There is room for one for each question.
            let _ = self.desk.0.heard.try_send(Heard::TakenBack(self.id));
        }
    }
}

impl Asker for Desk {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            if self.is_typed(question) {
                return Answer::allow();
            }
            match self.ask(Asked::Permission(Box::new(question.clone()))).await {
                Some(Answered::Permission(answer)) => answer,
                _ => Answer::deny("Nobody could be asked, so it was not run."),
            }
        })
    }
}

impl Elicitor for Desk {
    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, Elicited> {
        Box::pin(async move {
            match self.ask(Asked::Elicitation(Box::new(question.clone()))).await {
                Some(Answered::Elicitation(elicited)) => elicited,
                _ => Elicited::Decline,
            }
        })
    }
}
