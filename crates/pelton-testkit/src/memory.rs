//! The scripted model without a network: the same script, strictness, accounting and faults, carried in memory.
//!
//! For tests on a stopped clock: a socket and `tokio::time::pause` do not go together, because the clock leaps ahead
//! whenever the runtime waits for the network. Here all waiting is the clock's own.

use crate::http::Request;
use crate::play::Ending;
use crate::server::answer;
use crate::server::perform::Performing;
use crate::server::state::Shared;
use ::http::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use flate2::write::GzDecoder;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use pelton_model::{Post, Response, Transport, TransportError, TransportErrorKind};
use std::io::Write;
use std::sync::Arc;

/// Carries requests to a scripted model in memory. Made by [`ScriptedModel::transport`](crate::ScriptedModel::transport).
///
/// ```
/// use std::sync::Arc;
/// use futures::StreamExt;
/// use pelton_model::{Ask, Auth, Client, Endpoint, Prefix, RetryPolicy, Secret, Step};
/// use pelton_testkit::{Script, SeededWorld, text};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = Script::new().reply([text("Hello.")]).start_in_memory()?;
/// let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// let world = Arc::new(SeededWorld::new(7));
/// let client = Client::new(endpoint, Arc::new(model.transport()), RetryPolicy::default(), world);
/// let messages = vec![r#"{"role":"user","content":"Hi."}"#.into()];
/// let mut call = client.call(Ask::new("claude-sonnet-5-5", 1000, Arc::new(Prefix::default()), messages));
/// let mut answered = false;
/// while let Some(step) = call.next().await {
///     answered |= matches!(step, Step::Finished(_));
/// }
/// assert!(answered);
/// model.assert_clean();
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct MemoryTransport {
    shared: Arc<Shared>,
}

impl MemoryTransport {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

impl Transport for MemoryTransport {
    fn post(&self, post: Post) -> BoxFuture<'static, Result<Response, TransportError>> {
        exchange(Arc::clone(&self.shared), post).boxed()
    }
}

async fn exchange(shared: Arc<Shared>, post: Post) -> Result<Response, TransportError> {
    let raw = Bytes::from(post.body.to_vec());
    let planned = match Request::new("POST", target(&post.url), heard(&post.headers), raw) {
        Ok(request) => answer::plan(&shared, &request),
        Err(refused) => answer::plan_refused(&shared, &refused),
    };
    let mut exchange =
        Exchange { performing: Performing::new(shared, planned), left: Left::Early, gzip: None };
    if !exchange.performing.begin().await {
        return Err(exchange.end().await.unwrap_or_else(|| broken("unexpected end")));
    }
    let (status, mut headers) = (exchange.performing.status(), said(exchange.performing.headers()));
    // A transport hands on what was said, not how it was packed.
    if headers.remove("content-encoding").is_some_and(|encoding| encoding == "gzip") {
        exchange.gzip = Some(GzDecoder::new(Vec::new()));
    }
    let body = stream::unfold(Some(exchange), |exchange| async {
        let mut exchange = exchange?;
        match exchange.next().await {
            Some(bytes) => Some((Ok(bytes), Some(exchange))),
            None => exchange.end().await.map(|error| (Err(error), None)),
        }
    });
    Ok(Response { status, headers, body: body.boxed() })
}

/// One request and its answer. Dropping it is the client hanging up.
struct Exchange {
    performing: Performing,
    /// What it means that the client goes now.
    left: Left,
    gzip: Option<GzDecoder<Vec<u8>>>,
}

enum Left {
    /// The answer is not over.
    Early,
    /// The answer has gone silent.
    InSilence,
    /// There was nothing more to come.
    AtTheEnd,
}

impl Exchange {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let bytes = self.performing.next().await?;
            self.performing.delivered();
            let bytes = match &mut self.gzip {
                None => bytes,
                Some(decoder) => {
                    // Writing to memory cannot fail, and what the player compressed can be read.
                    let _ = decoder.write_all(&bytes).and_then(|()| decoder.flush());
                    Bytes::from(std::mem::take(decoder.get_mut()))
                }
            };
            // A compressed stream begins with bytes that say nothing yet.
            if !bytes.is_empty() {
                return Some(bytes);
            }
        }
    }

    /// Ends the answer as the script says; an end that is no good is an error.
    async fn end(&mut self) -> Option<TransportError> {
        let ending = self.performing.ending();
        self.performing.finish(ending);
        self.left = if ending == Ending::Stalled { Left::InSilence } else { Left::AtTheEnd };
        match ending {
            Ending::Complete | Ending::EndedEarly => None,
            Ending::Cut | Ending::ClientLeft => Some(broken("unexpected end")),
            Ending::Reset => Some(broken("connection reset by peer")),
            Ending::Stalled => std::future::pending().await,
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        match self.left {
            Left::Early => self.performing.finish(Ending::ClientLeft),
            Left::InSilence => self.performing.hung_up(),
            Left::AtTheEnd => {}
        }
    }
}

fn broken(how: &str) -> TransportError {
    let message = format!("the connection to the scripted model broke: {how}");
    TransportError::new(TransportErrorKind::Reset, message)
}

/// What stands behind the host in an address.
fn target(url: &str) -> &str {
    let behind = url.split_once("://").map_or(url, |(_, behind)| behind);
    behind.find('/').map_or("/", |path| &behind[path..])
}

fn heard(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

fn said(headers: &[(String, String)]) -> HeaderMap {
    let header = |(name, value): &(String, String)| {
        // A script may say what no header can carry; HTTP would not carry it either.
        Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_str(value).ok()?))
    };
    headers.iter().filter_map(header).collect()
}
