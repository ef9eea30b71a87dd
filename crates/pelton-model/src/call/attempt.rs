//! One request, and what comes of it.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::select;
use futures::stream::BoxStream;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

use super::approach::Approach;
use super::guard::Guard;
use crate::answer::{Answer, Life};
use crate::assemble::MESSAGE_BYTES_MAX;
use crate::client::{Auth, Road};
use crate::dialect::messages::{self, Manner};
use crate::error::{ErrorKind, ModelError};
use crate::limits::RateLimits;
use crate::retry::{self, Advice};
use crate::sse::Decoder;
use crate::step::{Reply, Step};
use crate::stream::Sender;
use crate::transport::{Response, TransportError};

/// The most bytes of an error's body that are read.
const ERROR_BYTES_MAX: usize = 1024 * 1024;
/// How long the body of an error is waited for.
pub(super) const ERROR_WAIT: Duration = Duration::from_secs(10);
/// How long the end of a stream is waited for after its last event: a connection read to its end can be used again.
const CLOSING_WAIT: Duration = Duration::from_millis(20);
/// What pages for people are sent as.
const PAGE: &str = "text/html";

/// An attempt that brought nothing to keep.
pub(super) struct Failure {
    pub(super) error: ModelError,
    pub(super) advice: Advice,
    /// Something of it was shown.
    pub(super) withdrawn: bool,
    /// A stream had been promised.
    pub(super) in_stream: bool,
    /// Who was to pay.
    pub(super) auth: Option<Auth>,
}

impl Failure {
    /// Names the wait that the server asks for, if that is why it is not asked again.
    pub(super) fn say_if_too_long_to_wait(&mut self, longest: Duration) {
        if let Some(asked) = self.advice.retry_after.filter(|asked| *asked > longest) {
            let (asked, longest) = (asked.as_secs(), longest.as_secs());
            let more =
                format!(" (the server asks to wait for {asked} s; at most {longest} s are waited for)");
            self.error.message.push_str(&more);
        }
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self { error, advice: Advice::default(), withdrawn: false, in_stream: false, auth: None }
    }
}

/// Sends the request once and reads what comes.
pub(super) async fn attempt(
    approach: &Approach<'_>,
    manner: Manner,
    steps: &Sender<Step>,
) -> Result<Reply, Failure> {
    let road = approach.road;
    let auth = approach.auth().await?;
    let ask = approach.ask;
    let betas = messages::betas(ask, manner);
    let body = messages::body(ask, manner, &road.model_ids, &road.extra_body);
    let mut post = road.request(&auth, betas, &ask.refused_betas, body)?;
    post.fresh_connection = approach.fresh_connection;
    let mut guard = Guard::new(road, manner.streaming, steps);
    let response = match guard.wait(road.transport.post(post)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(ModelError::from(error).into()),
        Err(stalled) => return Err(stalled.into()),
    };
    let limits = RateLimits::read(&response.headers);
    if let Some(used) = limits.as_ref().and_then(|limits| limits.subscription.clone()) {
        steps.send(Step::Subscription(Box::new(used))).await;
    }
    if !(200..300).contains(&response.status) {
        return Err(Failure { auth: Some(auth), ..refusal(road, response).await });
    }
    let headers = &response.headers;
    let is_page = is_page(headers);
    let mut answer = Answer::new(request_id(headers).map(Arc::from), limits);
    let mut found = Vec::new();
    let cause = read(response.body, &mut answer, &mut guard, &mut found).await.err();
    let withdrawn = answer.shown();
    let reply = answer.end(cause, manner.max_tokens, &mut found);
    steps.send_all(&mut found).await;
    reply.map_err(|error| {
        let error = if is_page && error.kind == ErrorKind::EmptyStream { web_page(error) } else { error };
        Failure { withdrawn, in_stream: manner.streaming, auth: Some(auth), ..Failure::from(error) }
    })
}

/// Whether this is meant for a browser.
fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.trim_start().get(..PAGE.len()).is_some_and(|start| start.eq_ignore_ascii_case(PAGE))
}

/// No server of the API answers so, and it does not pass by itself.
fn web_page(nothing: ModelError) -> ModelError {
    let message = "a web page came instead of an answer".to_owned();
    ModelError { kind: ErrorKind::WebPage, message, ..nothing }
}

type Chunks = BoxStream<'static, Result<Bytes, TransportError>>;

/// Reads the answer to its end, or to where it breaks. Steps still to be sent are left in `found`.
async fn read(
    mut chunks: Chunks,
    answer: &mut Answer,
    guard: &mut Guard<'_>,
    found: &mut Vec<Step>,
) -> Result<(), ModelError> {
    let mut events = Decoder::default();
    let mut first = true;
    while let Some(chunk) = guard.wait(chunks.next()).await? {
        let chunk = chunk?;
        // A server that was asked for a stream may still answer in one piece.
        if first && chunk.trim_ascii_start().starts_with(b"{") {
            let body = rest(chunk, chunks, guard).await?;
            return answer.whole(body, found);
        }
        first &= chunk.trim_ascii_start().is_empty();
        events.push(chunk);
        let mut seen = None;
        while let Some(event) =
            events.next_event().map_err(|error| ModelError::new(ErrorKind::Other, error.to_string()))?
        {
            let life = answer.event(event, found)?;
            seen = seen.max(Some(life));
            if life == Life::End {
                guard.steps.send_all(found).await;
                let closing = pin!(guard.road.world.sleep(CLOSING_WAIT));
                select(closing, chunks.next()).await;
                return Ok(());
            }
        }
        // What came at once came at one time.
        if let Some(life) = seen {
            guard.saw(life);
        }
        guard.steps.send_all(found).await;
    }
    // The stream is over. What is left is a last event without its blank line, or half of one: that one is no more
    // of a fault than the end itself.
    if let Some(event) = events.finish() {
        answer.event(event, found).or_else(|error| match error.kind {
            ErrorKind::Malformed => Ok(Life::Progress),
            _ => Err(error),
        })?;
    }
    Ok(())
}

/// Collects an answer that comes in one piece.
async fn rest(first: Bytes, mut chunks: Chunks, guard: &mut Guard<'_>) -> Result<Bytes, ModelError> {
    let mut body = Vec::from(first);
    // That it begins is the only event there is. Bytes are none: a server could let them drip for ever.
    guard.saw(Life::Progress);
    while let Some(chunk) = guard.wait(chunks.next()).await? {
        body.extend_from_slice(&chunk?);
        if body.len() > MESSAGE_BYTES_MAX {
            let limit = MESSAGE_BYTES_MAX / 1024 / 1024;
            return Err(ModelError::new(ErrorKind::Other, format!("the answer is larger than {limit} MB")));
        }
    }
    Ok(Bytes::from(body))
}

/// What a server says that answers with anything but a success.
async fn refusal(road: &Road, response: Response) -> Failure {
    let Response { status, headers, mut body } = response;
    let mut text = Vec::new();
    {
        let reading = pin!(async {
            while let Some(Ok(chunk)) = body.next().await {
                text.extend_from_slice(&chunk[..chunk.len().min(ERROR_BYTES_MAX - text.len())]);
                if text.len() == ERROR_BYTES_MAX {
                    break;
                }
            }
        });
        // A status without its explanation is still a status.
        select(reading, road.world.sleep(ERROR_WAIT)).await;
    }
    let error = messages::from_answer(status, &text, request_id(&headers));
    Failure { advice: retry::advice(&headers, road.world.now()), ..Failure::from(error) }
}

fn request_id(headers: &HeaderMap) -> Option<&str> {
    let id = headers.get("request-id").or_else(|| headers.get("x-request-id"))?;
    id.to_str().ok()
}
