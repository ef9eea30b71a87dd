//! Servers inside the client: MCP, with every message in a line of the conversation.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton_mcp::{Inbox, Server, ServerConfig, Surroundings, Wire};
use serde_json::{Value, json};

use super::client::Client;

/// Passes messages on to a server inside the client.
struct ToClient {
    name: String,
    client: Client,
    inbox: Inbox,
}

impl Wire for ToClient {
    fn pass(&self, message: Value) -> BoxFuture<'static, Result<Value, String>> {
        let client = self.client.clone();
        let fields = json!({"server_name": self.name, "message": message});
        async move {
            let answer = client.ask("mcp_message", fields).await.map_err(|none| none.words())?;
            Ok(answer.get("mcp_response").cloned().unwrap_or_default())
        }
        .boxed()
    }

    fn inbox(&self) -> &Inbox {
        &self.inbox
    }
}

/// A server inside the client.
pub(crate) fn of_client(
    name: &str,
    client: &Client,
    timeout: Option<Duration>,
    surroundings: &Surroundings,
) -> Arc<Server> {
    let wire = ToClient { name: name.to_owned(), client: client.clone(), inbox: Inbox::default() };
    Server::new(ServerConfig::by_wire(name, Arc::new(wire), timeout), surroundings.clone())
}
