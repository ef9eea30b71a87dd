//! Hooks nobody waits for. What they say arrives later; when their session ends, so do they.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::limits::BACKGROUND_MAX;
use super::outcome::Said;
use super::run::HookRun;

/// What a hook said that nobody waited for. Decisions came too late; only words count.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Arrived {
    /// How it went.
    pub run: HookRun,
    /// What the model should know.
    pub context: Option<String>,
    /// What the user should see.
    pub messages: Vec<String>,
    /// The hook objects, and was configured to wake an idle session with that.
    pub wakes: Option<String>,
}

/// A hook that goes on by itself.
pub(super) struct Adopted {
    pub run: BoxFuture<'static, (HookRun, Said)>,
    pub wakes: bool,
}

#[derive(Debug, Default)]
pub(super) struct Background {
    running: Mutex<JoinSet<()>>,
    arrived: Arc<Mutex<Vec<Arrived>>>,
    /// Somebody who arrived wants to wake an idle session.
    woken: Arc<Notify>,
}

impl Background {
    /// Lets a hook go on by itself. With too many of them already it is ended instead, and the answer is no.
    pub fn adopt(&self, Adopted { run, wakes }: Adopted) -> bool {
        let mut running = lock(&self.running);
        while running.try_join_next().is_some() {}
        if running.len() + lock(&self.arrived).len() >= BACKGROUND_MAX {
            return false;
        }
        let (arrived, woken) = (Arc::clone(&self.arrived), Arc::clone(&self.woken));
        running.spawn(async move {
            let (run, said) = run.await;
            let objection = said.block.or_else(|| said.permission.and_then(|answer| answer.reason));
            let wakes = objection.filter(|_| wakes);
            let wants_to_wake = wakes.is_some();
            lock(&arrived).push(Arrived { run, context: said.context, messages: said.messages, wakes });
            if wants_to_wake {
                woken.notify_waiters();
            }
        });
        true
    }

    pub fn take_arrived(&self) -> Vec<Arrived> {
        std::mem::take(&mut lock(&self.arrived))
    }

    /// Returns when somebody wants to wake an idle session.
    pub async fn woken(&self) {
        loop {
            // Before the look: whoever comes in between is not missed.
            let woken = self.woken.notified();
            if lock(&self.arrived).iter().any(|arrived| arrived.wakes.is_some()) {
                return;
            }
            woken.await;
        }
    }

    /// What they wake it with. The rest of what they said stays where it is.
    pub fn take_waking(&self) -> Vec<String> {
        lock(&self.arrived).iter_mut().filter_map(|arrived| arrived.wakes.take()).collect()
    }

    pub async fn end(&self) {
        let mut running = std::mem::take(&mut *lock(&self.running));
        running.shutdown().await;
    }
}

/// What is inside is whole at any moment, also after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
