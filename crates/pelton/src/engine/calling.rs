//! Calls of tools that no model made: somebody outside makes them, and the rights of the session hold.

use std::sync::Arc;

use futures::StreamExt;
use pelton_model::stream::stream;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Engine;
use crate::limits::EVENTS_QUEUED_MAX;
use crate::session::fresh_id;
use crate::tools::executor::{Call, Executor};
use crate::tools::schedule::Terms;
use crate::tools::{Output, Report, Tool};

impl Engine {
    /// The tools that can be called.
    ///
    /// See [`call`](Self::call).
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.offer.callable()
    }

    /// Makes a call as the model would make it: rules, mode and hooks decide whether it runs, and where somebody would be
    /// asked and there is nobody, it is refused. It is no part of the conversation.
    ///
    /// ```
    /// # use pelton_model::{Auth, Endpoint};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let endpoint = Endpoint::new("http://127.0.0.1:9", Auth::None);
    /// use pelton::{Engine, Options};
    /// use serde_json::json;
    /// use tokio_util::sync::CancellationToken;
    ///
    /// std::fs::write(dir.path().join("notes.txt"), "buy milk")?;
    /// let engine = Engine::new(Options::new(dir.path(), endpoint))?;
    /// let input = json!({"file_path": dir.path().join("notes.txt")});
    /// let read = engine.call("Read", input, &CancellationToken::new()).await;
    /// assert!(read.words().contains("buy milk"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn call(&self, tool: &str, input: Value, cancel: &CancellationToken) -> Output {
        // Nobody hears how far it is.
        let (reports, _) = mpsc::channel(1);
        self.call_told(tool, input, cancel, reports).await
    }

    /// The same for somebody who hears how far it is, as long as they listen.
    ///
    /// See [`call`](Self::call).
    pub async fn call_told(
        &self,
        tool: &str,
        input: Value,
        cancel: &CancellationToken,
        reports: mpsc::Sender<(Arc<str>, Report)>,
    ) -> Output {
        let (made, mut answer) = mpsc::channel(1);
        let calling = stream(EVENTS_QUEUED_MAX, |events| async move {
            let (beside, _) = mpsc::channel(1);
            let bench = Arc::new(self.bench(cancel, reports, beside, &events));
            let terms = Terms { running_max: 1, siblings: self.options.siblings };
            let id = fresh_id(self.options.world.as_ref()).to_string();
            let mut executor = Executor::new(bench, terms);
            executor.add(Call { id: id.into(), tool: tool.into(), input: Ok(Arc::new(input)) });
            executor.complete();
            executor.start();
            while !executor.is_drained() {
                match executor.take_next() {
                    Some((_, finished)) => _ = made.try_send(finished.output),
                    None => executor.advance().await,
                }
            }
        });
        // What would be told in a conversation is told to nobody.
        calling.for_each(|_| async {}).await;
        answer.recv().await.unwrap_or_else(|| Output::error("The call was given up."))
    }
}
