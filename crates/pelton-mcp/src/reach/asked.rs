//! Only answers that somebody waits for come through. During the handshake rmcp takes any other one for the end of it, and
//! a server that once answers too much would be lost to the session.

use std::collections::HashSet;

use rmcp::model::{
    CancelledNotification, ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;

/// A way to a server without the answers that nobody asked for.
pub(super) struct Asked<T> {
    way: T,
    /// What is asked and not answered, by id as it is written: some servers make a text of a number.
    open: HashSet<String>,
}

impl<T> Asked<T> {
    pub fn over(way: T) -> Self {
        Self { way, open: HashSet::new() }
    }

    fn note(&mut self, message: &ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => {
                self.open.insert(request.id.to_string());
            }
            JsonRpcMessage::Notification(notice) => {
                if let ClientNotification::CancelledNotification(CancelledNotification { params, .. }) =
                    &notice.notification
                    && let Some(id) = &params.request_id
                {
                    self.open.remove(&id.to_string());
                }
            }
            _ => {}
        }
    }

    fn is_wanted(&mut self, message: &ServerJsonRpcMessage) -> bool {
        let mut is_open = |id: &RequestId| self.open.remove(&id.to_string());
        match message {
            JsonRpcMessage::Response(response) => is_open(&response.id),
            // Without an id it may mean any of them.
            JsonRpcMessage::Error(error) => error.id.as_ref().is_none_or(is_open),
            _ => true,
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Asked<T> {
    type Error = T::Error;

    fn name() -> std::borrow::Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.note(&message);
        self.way.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = self.way.receive().await?;
            if self.is_wanted(&message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.way.close().await
    }
}
