//! The agents that work beside a session: what they tell until somebody listens, and where they are written to.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pelton_model::stream::Sender;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::event::Event;
use crate::limits::AGENT_EVENTS_WAITING_MAX;
use crate::queue::Queue;
use crate::secrets::Secrets;
use crate::tools::background::BackgroundTask;

/// All clones are one.
#[derive(Clone, Default)]
pub(in crate::engine) struct Roster(Arc<Shared>);

#[derive(Default)]
struct Shared {
    waiting: Mutex<VecDeque<Event>>,
    arrived: Notify,
    taken: Notify,
    /// Only one at a time passes on, so that the order stays.
    passing: tokio::sync::Mutex<()>,
    working: Mutex<Vec<Working>>,
}

struct Working {
    id: String,
    name: Option<String>,
    queue: Queue,
}

impl Roster {
    /// Keeps what an agent tells. While too much waits, the agent does, unless it is to end.
    async fn keep(&self, event: Event, stop: &CancellationToken) {
        loop {
            let taken = self.0.taken.notified();
            tokio::pin!(taken);
            taken.as_mut().enable();
            if self.waiting().len() < AGENT_EVENTS_WAITING_MAX || stop.is_cancelled() {
                break;
            }
            tokio::select! {
                () = taken => {}
                () = stop.cancelled() => {}
            }
        }
        self.waiting().push_back(event);
        self.0.arrived.notify_waiters();
    }

    /// Returns when an agent has told something that nobody was told yet.
    pub async fn arrived(&self) {
        loop {
            let arrived = self.0.arrived.notified();
            tokio::pin!(arrived);
            arrived.as_mut().enable();
            if !self.waiting().is_empty() {
                return;
            }
            arrived.await;
        }
    }

    /// What was told and nobody heard yet.
    pub fn take(&self) -> Vec<Event> {
        let told = self.waiting().drain(..).collect();
        self.0.taken.notify_waiters();
        told
    }

    /// Puts what was told into a stream. Nothing is lost when this is dropped on its way.
    pub async fn pass_on(&self, events: &Sender<Event>) {
        let _turn = self.0.passing.lock().await;
        loop {
            let Some(event) = self.waiting().front().cloned() else { return };
            events.send(event).await;
            self.waiting().pop_front();
            self.0.taken.notify_waiters();
        }
    }

    /// The same for as long as the stream lasts.
    pub async fn pass_on_always(&self, events: Sender<Event>) -> Infallible {
        loop {
            self.arrived().await;
            self.pass_on(&events).await;
        }
    }

    /// An agent begins to work and can be written to.
    pub(super) fn enter(&self, id: &str, name: Option<&str>, queue: Queue) -> Entered {
        let working = Working { id: id.to_owned(), name: name.map(str::to_owned), queue };
        self.working().push(working);
        Entered { roster: self.clone(), id: id.to_owned() }
    }

    /// Where an agent is written to that works: its id, or the newest of that name.
    pub(super) fn find(&self, to: &str) -> Option<(String, Queue)> {
        let working = self.working();
        let by_id = working.iter().find(|agent| agent.id == to);
        let found = by_id.or_else(|| working.iter().rev().find(|agent| agent.name.as_deref() == Some(to)))?;
        Some((found.id.clone(), found.queue.clone()))
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Event>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn working(&self) -> MutexGuard<'_, Vec<Working>> {
        self.0.working.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An agent that can be written to until this is dropped.
pub(super) struct Entered {
    roster: Roster,
    id: String,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.roster.working().retain(|agent| agent.id != self.id);
    }
}

/// Where what one agent tells goes: into the stream of the submission that waits for it, and from the moment on that nobody
/// waits for it, to the session. All clones are one.
#[derive(Clone)]
pub(super) struct Outlet(Arc<Mutex<Way>>);

struct Way {
    stream: Sender<Event>,
    beside: Option<Beside>,
    stop: CancellationToken,
}

#[derive(Clone)]
struct Beside {
    roster: Roster,
    words: Arc<File>,
    task: Arc<BackgroundTask>,
    secrets: Secrets,
}

impl Outlet {
    pub fn to(stream: Sender<Event>, stop: CancellationToken) -> Self {
        Self(Arc::new(Mutex::new(Way { stream, beside: None, stop })))
    }

    /// Nobody waits for the agent any more.
    pub fn turn_to(&self, roster: &Roster, words: File, task: Arc<BackgroundTask>, secrets: Secrets) {
        let beside = Beside { roster: roster.clone(), words: Arc::new(words), task, secrets };
        self.way().beside = Some(beside);
    }

    pub async fn send(&self, event: Event) {
        let (stream, beside, stop) = {
            let way = self.way();
            (way.stream.clone(), way.beside.clone(), way.stop.clone())
        };
        match beside {
            Some(beside) => beside.roster.keep(event, &stop).await,
            None => stream.send(event).await,
        }
    }

    /// Keeps words of an agent's answers for whoever looks at how it is doing.
    pub fn said(&self, words: &str) {
        let beside = self.way().beside.clone();
        if let Some(Beside { words: file, secrets, .. }) = beside {
            let line = format!("{}\n", words.trim_end());
            // What cannot be written is in the agent's record.
            let _ = (&*file).write_all(&secrets.out_of(line.as_bytes()));
        }
    }

    /// What it is in the background, if nobody waits for it.
    pub fn task(&self) -> Option<Arc<BackgroundTask>> {
        self.way().beside.as_ref().map(|beside| Arc::clone(&beside.task))
    }

    /// Where its words go, if nobody waits for it.
    pub fn output(&self) -> Option<Arc<Path>> {
        self.task().map(|task| task.output.as_path().into())
    }

    fn way(&self) -> MutexGuard<'_, Way> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
