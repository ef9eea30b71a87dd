//! An address as the first version of the protocol had it: one stream of events brings everything, and its first event
//! names the address that messages are posted to.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use pelton_model::sse::Decoder;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use url::Url;

use super::wire::WireError;
use super::{LOG_IN, NotReached, http as asked_with};
use crate::config::Remote;
use crate::limits::{ENDPOINT_TIME, INBOX_MAX};
use crate::server::words;
use crate::surroundings::Surroundings;

/// Opens the stream, and waits for the address of messages.
pub(super) async fn open(
    remote: &Remote,
    name: &str,
    token: Option<String>,
    surroundings: &Surroundings,
) -> Result<SseTransport, NotReached> {
    let client = (surroundings.http)().map_err(NotReached::because)?;
    let mut headers = map(asked_with::headers(remote, name, surroundings).await?);
    if let Some(token) = token {
        let mut carried: HeaderValue = format!("Bearer {token}")
            .parse()
            .map_err(|_| NotReached::because("the token of the login cannot be sent"))?;
        carried.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, carried);
    }
    let base = Url::parse(&remote.url).map_err(|error| NotReached::because(error.to_string()))?;
    let asked = client.get(base.clone()).headers(headers.clone()).header(header::ACCEPT, "text/event-stream");
    let answer = asked.send().await.map_err(|error| NotReached::because(words(&error)))?;
    if matches!(answer.status().as_u16(), 401 | 403) {
        return Err(NotReached { why: LOG_IN.to_owned(), needs_login: true });
    }
    if !answer.status().is_success() {
        return Err(NotReached::because(format!("it answered {}", answer.status())));
    }
    let (sender, inbox) = mpsc::channel(INBOX_MAX);
    let (named, endpoint) = oneshot::channel();
    let reading = tokio::spawn(read(answer, sender, named)).abort_handle();
    let reading = Reading(reading);
    let endpoint = tokio::time::timeout(ENDPOINT_TIME, endpoint).await;
    let endpoint = endpoint.ok().and_then(Result::ok);
    let endpoint = endpoint
        .ok_or_else(|| NotReached::because("its stream did not begin with an address for messages"))?;
    let endpoint = base.join(&endpoint).map_err(|error| NotReached::because(error.to_string()))?;
    // What is said there carries the headers of this one.
    if endpoint.origin() != base.origin() {
        return Err(NotReached::because(format!("it wants messages sent to another host: {endpoint}")));
    }
    Ok(SseTransport { client, endpoint, headers: Arc::new(headers), inbox, _reading: reading })
}

fn map(headers: HashMap<HeaderName, HeaderValue>) -> HeaderMap {
    headers.into_iter().collect()
}

/// Reads the stream to its end.
async fn read(
    answer: reqwest::Response,
    sender: mpsc::Sender<ServerJsonRpcMessage>,
    named: oneshot::Sender<String>,
) {
    let mut named = Some(named);
    let mut decoder = Decoder::default();
    let mut chunks = answer.bytes_stream();
    while let Some(Ok(chunk)) = chunks.next().await {
        decoder.push(chunk);
        loop {
            let event = match decoder.next_event() {
                Ok(Some(event)) => event,
                Ok(None) => break,
                // An event beyond all bounds: nothing after it can be trusted.
                Err(_) => return,
            };
            if &event.name[..] == b"endpoint" {
                if let (Some(named), Ok(address)) = (named.take(), std::str::from_utf8(&event.data)) {
                    let _ = named.send(address.trim().to_owned());
                }
            } else if let Ok(message) = serde_json::from_slice(&event.data)
                && sender.send(message).await.is_err()
            {
                return;
            }
        }
    }
}

pub(super) struct SseTransport {
    client: reqwest::Client,
    endpoint: Url,
    headers: Arc<HeaderMap>,
    inbox: mpsc::Receiver<ServerJsonRpcMessage>,
    _reading: Reading,
}

/// The task that reads; it ends with the connection.
struct Reading(AbortHandle);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = WireError;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let headers = HeaderMap::clone(&self.headers);
        let asked = self.client.post(self.endpoint.clone()).headers(headers);
        async move {
            let body = serde_json::to_vec(&message).map_err(|error| WireError::because(&error))?;
            let asked = asked.header(header::CONTENT_TYPE, "application/json").body(body);
            let answer = asked.send().await.map_err(|error| WireError::because(&error))?;
            match answer.status() {
                status if status.is_success() => Ok(()),
                http::StatusCode::UNAUTHORIZED => Err(WireError::unknown_person()),
                status => Err(WireError::new(format!("it answered {status}"))),
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.inbox.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inbox.close();
        Ok(())
    }
}
