//! Ending a submission from outside.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

/// Ends the running submission of an engine, from anywhere. Without one it does nothing.
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
/// use pelton::{Engine, Event, Options, Prompt, Terminal};
///
/// let mut engine = Engine::new(Options::new(dir.path(), endpoint))?;
/// let interrupter = engine.interrupter();
/// let mut events = engine.submit(Prompt::text("What is two and two?")?);
/// interrupter.interrupt(); // from anywhere: another task, a signal, a key
/// while let Some(event) = events.next().await {
///     if let Event::Result(outcome) = event {
///         assert_eq!(outcome.terminal, Terminal::AbortedStreaming);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Interrupter {
    /// Ends everything, for good.
    host: CancellationToken,
    running: Arc<Mutex<CancellationToken>>,
}

impl Interrupter {
    /// Ends the running submission. It still answers open calls and gives its result.
    pub fn interrupt(&self) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }

    /// Returns when the newest submission was interrupted, also behind its end.
    pub async fn interrupted(&self) {
        let newest = self.running.lock().unwrap_or_else(PoisonError::into_inner).clone();
        newest.cancelled().await;
    }

    pub(crate) fn new(host: CancellationToken) -> Self {
        Self { running: Arc::new(Mutex::new(host.child_token())), host }
    }

    pub(crate) fn fresh(&self) -> CancellationToken {
        let token = self.host.child_token();
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = token.clone();
        token
    }
}
