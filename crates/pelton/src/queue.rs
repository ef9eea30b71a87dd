//! Prompts that come while the engine is busy. Whoever adds one is told that it is taken only when it is on the disk:
//! an engine that goes on with the session has every prompt that was not consumed.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pelton_model::World;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::context::git_branch;
use crate::interrupt::Interrupter;
use crate::limits::{QUEUED_BYTES_MAX, QUEUED_PROMPTS_MAX};
use crate::prompt::Prompt;
use crate::session::{Record, fresh_id};
use crate::transcript::{QueuedPrompt, TranscriptError};

/// When a queued prompt is read.
///
/// ```
/// use pelton::Priority;
///
/// assert_eq!(Priority::from_name("now"), Some(Priority::Now)); // as the protocol calls it
/// assert_eq!(Priority::default(), Priority::Later);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Priority {
    /// At once: the running submission is ended, and the prompt begins the next one.
    Now,
    /// With the next question to the model, behind the results of the tools that run now; or else in the next
    /// submission. One that calls a command waits for that.
    Next,
    /// In the next submission, together with others that wait.
    #[default]
    Later,
}

impl Priority {
    const ALL: [Self; 3] = [Self::Now, Self::Next, Self::Later];

    /// The name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::Next => "next",
            Self::Later => "later",
        }
    }

    /// The priority of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|priority| priority.name() == name)
    }
}

/// The prompt was not taken.
///
/// ```
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let endpoint = Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any")));
/// use pelton::{Engine, Options, Priority, Prompt, QUEUED_PROMPTS_MAX, QueueError};
///
/// let queue = Engine::new(Options::new(dir.path(), endpoint))?.queue();
/// for _ in 0..QUEUED_PROMPTS_MAX {
///     queue.add(Prompt::text("And on.")?, Priority::Later).await?;
/// }
/// let one_more = queue.add(Prompt::text("And on.")?, Priority::Later).await;
/// assert!(matches!(one_more, Err(QueueError::Full)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// Too many wait already.
    #[error("too many prompts are waiting: at most {QUEUED_PROMPTS_MAX}, and {} MB", QUEUED_BYTES_MAX / 1_000_000)]
    Full,
    /// It cannot be written down.
    #[error(transparent)]
    Unrecorded(#[from] TranscriptError),
}

/// The prompts that wait for an engine. All clones are one; usable from anywhere while a submission runs.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, text, tool};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([text("Four.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// use pelton::{Engine, Options, Priority, Prompt};
///
/// let mut engine = Engine::new(Options::new(dir.path(), endpoint))?;
/// let queue = engine.queue(); // a handle: add to it from anywhere, also while a submission runs
/// let id = queue.add(Prompt::text("What is two and two?")?, Priority::Later).await?;
/// assert_eq!(queue.waiting(), [id]);
///
/// let events = engine.submit_queued().ok_or("something waits")?;
/// events.for_each(async |_| {}).await;
/// assert!(queue.waiting().is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Queue(Arc<Shared>);

struct Shared {
    waiting: Mutex<VecDeque<Queued>>,
    /// Those who add come one after the other, so that the disk has them in the same order.
    adding: tokio::sync::Mutex<()>,
    arrived: Notify,
    /// What waits could not be taken in: trying again at once would go wrong again.
    is_put_off: AtomicBool,
    record: Arc<Record>,
    interrupter: Interrupter,
    world: Arc<dyn World>,
    cwd: PathBuf,
}

struct Queued {
    id: Uuid,
    prompt: Prompt,
    priority: Priority,
}

impl Queue {
    pub(crate) fn new(
        record: Arc<Record>,
        interrupter: Interrupter,
        world: Arc<dyn World>,
        cwd: PathBuf,
        restored: &[QueuedPrompt],
    ) -> Self {
        let restore = |queued: &QueuedPrompt| {
            let mut prompt = Prompt::from_json(&queued.content)?.with_id(queued.id);
            prompt.verbatim = queued.verbatim;
            // Whatever it was in a hurry for is over.
            Some(Queued { id: queued.id, prompt, priority: Priority::Later })
        };
        let waiting = Mutex::new(restored.iter().filter_map(restore).collect());
        let (adding, arrived, is_put_off) =
            (tokio::sync::Mutex::new(()), Notify::new(), AtomicBool::new(false));
        Self(Arc::new(Shared { waiting, adding, arrived, is_put_off, record, interrupter, world, cwd }))
    }

    /// Adds a prompt, and returns its id when it cannot be lost any more. The same id twice is one prompt.
    pub async fn add(&self, prompt: Prompt, priority: Priority) -> Result<Uuid, QueueError> {
        let _turn = self.0.adding.lock().await;
        let id = prompt.id.unwrap_or_else(|| fresh_id(self.0.world.as_ref()));
        {
            let waiting = self.lock();
            if waiting.iter().any(|queued| queued.id == id) {
                return Ok(id);
            }
            let bytes: usize = waiting.iter().map(|queued| queued.prompt.bytes()).sum();
            if waiting.len() >= QUEUED_PROMPTS_MAX || bytes + prompt.bytes() > QUEUED_BYTES_MAX {
                return Err(QueueError::Full);
            }
        }
        self.write_down(id, &prompt, priority).await?;
        self.lock().push_back(Queued { id, prompt: prompt.with_id(id), priority });
        self.0.is_put_off.store(false, Ordering::Relaxed);
        if priority == Priority::Now {
            self.0.interrupter.interrupt();
        }
        self.0.arrived.notify_waiters();
        Ok(id)
    }

    /// Takes a prompt back. Tells whether it was still waiting.
    pub fn cancel(&self, id: Uuid) -> bool {
        let mut waiting = self.lock();
        let before = waiting.len();
        waiting.retain(|queued| queued.id != id);
        let found = waiting.len() < before;
        drop(waiting);
        if found {
            self.note("remove", &[id]);
        }
        found
    }

    /// The prompts that wait, oldest first.
    pub fn waiting(&self) -> Vec<Uuid> {
        self.lock().iter().map(|queued| queued.id).collect()
    }

    /// Whether a submission can be made of what waits. Prompts that could not be written down, say on a full disk, go on
    /// waiting until another one arrives.
    pub fn is_ready(&self) -> bool {
        !self.lock().is_empty() && !self.0.is_put_off.load(Ordering::Relaxed)
    }

    /// Returns as soon as a prompt waits.
    pub async fn arrived(&self) {
        loop {
            let arrived = self.0.arrived.notified();
            tokio::pin!(arrived);
            // From here on nothing that arrives is missed.
            arrived.as_mut().enable();
            if !self.lock().is_empty() {
                return;
            }
            arrived.await;
        }
    }

    /// Whether somebody waits for the running submission to make way.
    pub(crate) fn is_urgent(&self) -> bool {
        self.lock().iter().any(|queued| queued.priority == Priority::Now)
    }

    /// What the next submission is made of: the oldest prompt, and those behind it that can be read with it.
    pub(crate) fn take_for_submission(&self) -> Option<Held> {
        let mut waiting = self.lock();
        let mut prompts = vec![waiting.pop_front()?];
        while let Some(next) = waiting.front() {
            let goes_with = |queued: &Queued| !queued.prompt.calls_command();
            if !goes_with(&prompts[0])
                || !goes_with(next)
                || next.prompt.verbatim != prompts[0].prompt.verbatim
            {
                break;
            }
            prompts.extend(waiting.pop_front());
        }
        drop(waiting);
        Some(Held { queue: self.clone(), prompts })
    }

    /// The oldest prompt that wants to be read with the next question.
    pub(crate) fn take_for_question(&self) -> Option<Held> {
        let mut waiting = self.lock();
        let wanted = |queued: &Queued| queued.priority == Priority::Next && !queued.prompt.calls_command();
        let at = waiting.iter().position(wanted)?;
        let prompts = waiting.remove(at).into_iter().collect();
        drop(waiting);
        Some(Held { queue: self.clone(), prompts })
    }

    /// Does something that changes where prompts are written down. Those that wait are written there too; they and those
    /// of `done` are not left behind as if somebody still had to read them.
    pub(crate) async fn moved_by(&self, done: &[Uuid], change: impl FnOnce()) -> Result<(), TranscriptError> {
        let _turn = self.0.adding.lock().await;
        let waiting: Vec<(Uuid, Prompt, Priority)> = {
            let waiting = self.lock();
            waiting.iter().map(|queued| (queued.id, queued.prompt.clone(), queued.priority)).collect()
        };
        let ids: Vec<Uuid> = waiting.iter().map(|(id, ..)| *id).chain(done.iter().copied()).collect();
        if !ids.is_empty() {
            self.note("remove", &ids);
        }
        change();
        for (id, prompt, priority) in waiting {
            self.write_down(id, &prompt, priority).await?;
        }
        Ok(())
    }

    async fn write_down(&self, id: Uuid, prompt: &Prompt, priority: Priority) -> Result<(), TranscriptError> {
        if !self.0.record.is_open() {
            self.0.record.open(git_branch(&self.0.cwd))?;
        }
        let Some(transcript) = self.0.record.transcript() else { return Ok(()) };
        let queued = QueuedPrompt { id, content: prompt.json(), verbatim: prompt.verbatim };
        transcript.enqueue(&queued, priority.name(), self.0.world.now())?;
        transcript.sync().await
    }

    /// Bookkeeping. If it cannot be written, the prompt may come back after a crash, which is better than the reverse.
    fn note(&self, operation: &str, ids: &[Uuid]) {
        if let Some(transcript) = self.0.record.transcript() {
            let _ = transcript.queue_operation(operation, ids, self.0.world.now());
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Queued>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Prompts on their way from the queue to the model. Dropped before they are there, they wait again.
pub(crate) struct Held {
    queue: Queue,
    prompts: Vec<Queued>,
}

impl Held {
    pub fn ids(&self) -> Vec<Uuid> {
        self.prompts.iter().map(|queued| queued.id).collect()
    }

    /// All of them as one prompt, under the id of the first.
    pub fn prompt(&self) -> Option<Prompt> {
        self.prompts.iter().map(|queued| queued.prompt.clone()).reduce(Prompt::followed_by)
    }

    /// They cannot be taken in: they wait again, and nobody tries at once.
    pub fn put_off(self) {
        self.queue.0.is_put_off.store(true, Ordering::Relaxed);
    }

    /// They are where they belong.
    pub fn settle(mut self) {
        self.queue.note("dequeue", &self.ids());
        self.prompts.clear();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut waiting = self.queue.lock();
        for queued in self.prompts.drain(..).rev() {
            waiting.push_front(queued);
        }
    }
}
