//! Questions of tools to a person, through the client.

use futures::future::BoxFuture;
use pelton::host::{Elicitation, Elicited, Elicitor};
use serde_json::Value;

use super::client::Client;

pub(crate) struct ElicitFromClient(pub Client);

impl Elicitor for ElicitFromClient {
    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, Elicited> {
        Box::pin(async move {
            let answer = match self.0.ask("elicitation", question.to_json()).await {
                Ok(answer) => answer,
                // Clients that do not know the question say so.
                Err(_) => return Elicited::Decline,
            };
            match answer.get("action").and_then(Value::as_str) {
                Some("accept") => Elicited::Accept(answer.get("content").cloned().unwrap_or_default()),
                Some("cancel") => Elicited::Cancel,
                _ => Elicited::Decline,
            }
        })
    }
}
