//! Servers of tools that are on their way when the session begins: what there is is stated without them, the model is asked
//! with them.

use std::future::Future;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use pelton_model::stream::Sender;
use tokio_util::sync::CancellationToken;

use super::Engine;
use crate::event::Event;
use crate::limits::SERVERS_STATED_WAIT;

/// Servers on their way.
#[derive(Clone)]
pub(super) struct Arriving {
    /// Ends when those are there that are stated as such.
    near: Shared<BoxFuture<'static, ()>>,
    /// Ends when all are there, or have had their time.
    all: Shared<BoxFuture<'static, ()>>,
}

/// The first event of a submission: what there is.
pub(super) struct Statement<'a> {
    pub events: &'a Sender<Event>,
    pub is_made: bool,
}

impl Engine {
    /// Lets the first request wait for servers of tools that are on their way. [`Event::Init`] does not: those that need
    /// longer than a moment, and than `near`, are listed as pending there.
    ///
    /// ```
    /// # use pelton_model::{Auth, Endpoint, Secret};
    /// # let dir = tempfile::tempdir()?;
    /// # let endpoint = Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any")));
    /// use pelton::{Engine, Options};
    ///
    /// let mut engine = Engine::new(Options::new(dir.path(), endpoint))?;
    /// let (connected, all_are_there) = tokio::sync::oneshot::channel::<()>();
    /// engine.wait_for(std::future::ready(()), async move { all_are_there.await.unwrap_or_default() });
    /// # drop(connected);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait_for(
        &mut self,
        near: impl Future<Output = ()> + Send + 'static,
        all: impl Future<Output = ()> + Send + 'static,
    ) {
        self.arriving = Some(Arriving { near: near.boxed().shared(), all: all.boxed().shared() });
    }

    /// Takes in what servers serve, unless some are on their way: then it is taken in when they are there, at one stroke.
    pub(super) fn renew_prefix_if_all_are_there(&mut self) {
        if self.arriving.is_none() {
            self.renew_prefix();
        }
    }

    /// Waits for servers that are on their way, if any are, and takes in what they serve. Before a longer wait everything is
    /// told that there is to tell. Interrupted, it is as if nobody had waited.
    pub(super) async fn meet_servers(
        &mut self,
        cancel: &CancellationToken,
        statement: &mut Statement<'_>,
        told: &mut Vec<Event>,
    ) {
        let Some(Arriving { near, mut all }) = self.arriving.clone() else { return };
        let moment = self.options.world.sleep(SERVERS_STATED_WAIT);
        let are_here = tokio::select! {
            biased;
            () = &mut all => true,
            () = cancel.cancelled() => return,
            _ = async { tokio::join!(near, moment) } => false,
        };
        if !are_here {
            self.state(self.options.model.clone(), statement).await;
            for event in told.drain(..) {
                statement.events.send(event).await;
            }
            if cancel.run_until_cancelled(all).await.is_none() {
                return;
            }
        }
        self.arriving = None;
        self.renew_prefix();
    }

    /// States what there is, once in a submission.
    pub(super) async fn state(&self, model: String, statement: &mut Statement<'_>) {
        if !std::mem::replace(&mut statement.is_made, true) {
            statement.events.send(Event::Init(std::sync::Arc::new(self.init(model)))).await;
        }
    }
}
