//! How full the context is, for whoever looks from outside, also while a submission runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::compact::ContextUsage;
use crate::status::Status;

/// A handle to see what fills the context at any time. The figure of all of it is the one of the moment; what it is made
/// of is as it was when the model was last asked.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, text};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([text("Four.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// use pelton::{Engine, Options, Prompt};
///
/// let mut engine = Engine::new(Options::new(dir.path(), endpoint))?;
/// let context = engine.context_watch();
/// let before = context.usage().used_tokens; // nothing is settled by looking
/// engine.submit(Prompt::text("What is two and two?")?).for_each(async |_| {}).await;
/// assert!(context.usage().used_tokens > before);
/// assert_eq!(context.usage().used_tokens, engine.context_usage().used_tokens);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ContextWatch {
    gauge: Gauge,
    status: watch::Receiver<Status>,
}

impl ContextWatch {
    pub(crate) fn new(gauge: Gauge, status: watch::Receiver<Status>) -> Self {
        Self { gauge, status }
    }

    /// What fills the context now.
    pub fn usage(&self) -> ContextUsage {
        self.gauge.0.is_watched.store(true, Ordering::Relaxed);
        let newest = self.gauge.newest().clone().unwrap_or_default();
        let used = self.status.borrow().context_tokens;
        // Before the first question nobody has put it together yet.
        if used > newest.fixed_tokens() { newest.with_used(used) } else { newest }
    }
}

/// Where it is written down. All clones are one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gauge(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Somebody has looked: from then on it is written down with every question.
    is_watched: AtomicBool,
    newest: Mutex<Option<ContextUsage>>,
}

impl Gauge {
    pub fn is_watched(&self) -> bool {
        self.0.is_watched.load(Ordering::Relaxed)
    }

    /// Whether anybody has a handle.
    pub fn is_held(&self) -> bool {
        self.newest().is_some()
    }

    pub fn tell(&self, usage: ContextUsage) {
        *self.newest() = Some(usage);
    }

    fn newest(&self) -> std::sync::MutexGuard<'_, Option<ContextUsage>> {
        self.0.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
