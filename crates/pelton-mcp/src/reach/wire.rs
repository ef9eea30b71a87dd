//! Somebody who passes messages on: every message out is answered by the one that comes back for it, and what the server
//! says unasked is brought by [`heard`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::limits::INBOX_MAX;
use crate::server::words;

/// Passes messages on to a server.
pub trait Wire: Send + Sync {
    /// Brings a message there, and what comes back for it. Dropping the future takes the message back, if that is possible.
    fn pass(&self, message: Value) -> BoxFuture<'static, Result<Value, String>>;

    /// Where to put what the server says unasked: whoever hears it puts it there.
    fn inbox(&self) -> &Inbox;
}

/// The messages on their way to the one connection there is.
#[derive(Default)]
pub struct Inbox(Mutex<Option<mpsc::Sender<ServerJsonRpcMessage>>>);

/// A message that could not be passed on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct WireError {
    why: String,
    needs_login: bool,
}

impl WireError {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), needs_login: false }
    }

    pub(super) fn because(error: &(dyn std::error::Error + 'static)) -> Self {
        Self::new(words(error))
    }

    /// Refused, for somebody has to log in first.
    pub(super) fn unknown_person() -> Self {
        Self { why: super::LOG_IN.to_owned(), needs_login: true }
    }

    pub(super) fn needs_login(&self) -> bool {
        self.needs_login
    }
}

/// Something a server said unasked. What is no message is passed over.
pub(crate) fn heard(wire: &Arc<dyn Wire>, message: &Value) {
    let inbox = wire.inbox().0.lock().unwrap_or_else(PoisonError::into_inner);
    if let (Some(inbox), Ok(message)) = (&*inbox, serde_json::from_value(message.clone())) {
        // An inbox that is full belongs to somebody who does not read it.
        let _ = inbox.try_send(message);
    }
}

pub(super) fn transport(wire: &Arc<dyn Wire>) -> WireTransport {
    let (sender, inbox) = mpsc::channel(INBOX_MAX);
    *wire.inbox().0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender.clone());
    WireTransport { wire: Arc::clone(wire), sender, inbox, asked: HashMap::new() }
}

pub(super) struct WireTransport {
    wire: Arc<dyn Wire>,
    sender: mpsc::Sender<ServerJsonRpcMessage>,
    inbox: mpsc::Receiver<ServerJsonRpcMessage>,
    /// Questions that are not answered yet, to take them back.
    asked: HashMap<String, AbortHandle>,
}

impl Transport<RoleClient> for WireTransport {
    type Error = WireError;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let message = serde_json::to_value(message).unwrap_or_default();
        let id = message.get("id").filter(|_| message.get("method").is_some()).cloned();
        if message.get("method") == Some(&json!("notifications/cancelled"))
            && let Some(asked) = message.pointer("/params/requestId")
            && let Some(asked) = self.asked.remove(&asked.to_string())
        {
            asked.abort();
        }
        self.asked.retain(|_, asked| !asked.is_finished());
        let passed = self.wire.pass(message);
        let Some(id) = id else {
            return futures::future::Either::Left(
                async move { passed.await.map(drop).map_err(WireError::new) },
            );
        };
        let sender = self.sender.clone();
        let asked_id = id.to_string();
        let waiting = tokio::spawn(async move {
            let answer = match passed.await {
                Ok(answer) => answer,
                Err(why) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": why}}),
            };
            let unreadable = |_| {
                let why = "the answer is no message of the protocol";
                serde_json::from_value(
                    json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32700, "message": why}}),
                )
            };
            if let Ok(answer) = serde_json::from_value(answer).or_else(unreadable) {
                let _ = sender.send(answer).await;
            }
        });
        self.asked.insert(asked_id, waiting.abort_handle());
        futures::future::Either::Right(futures::future::ready(Ok(())))
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.inbox.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        for asked in self.asked.values() {
            asked.abort();
        }
        self.inbox.close();
        Ok(())
    }
}

impl Drop for WireTransport {
    fn drop(&mut self) {
        for asked in self.asked.values() {
            asked.abort();
        }
    }
}
