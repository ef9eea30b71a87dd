//! One question, until it is answered or given up.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, Either, select};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use http::HeaderMap;

use crate::answer::{Answer, Life};
use crate::ask::Ask;
use crate::assemble::MESSAGE_BYTES_MAX;
use crate::client::Road;
use crate::dialect::messages;
use crate::error::{ErrorKind, ModelError};
use crate::retry::{self, Advice, Progress, Retry};
use crate::sse::Decoder;
use crate::step::{Notice, Reply, Step};
use crate::stream::{Sender, stream};
use crate::transport::{Post, Response, TransportError, TransportErrorKind};
use crate::watch::{Alarm, Watch};

/// Steps that may wait to be taken; one chunk of bytes can bring many.
const STEPS_QUEUED_MAX: usize = 64;
/// The most bytes of an error's body that are read.
const ERROR_BYTES_MAX: usize = 1024 * 1024;
/// How long the body of an error is waited for.
const ERROR_WAIT: Duration = Duration::from_secs(10);
/// How long the end of a stream is waited for after its last event: a connection read to its end can be used again.
const CLOSING_WAIT: Duration = Duration::from_millis(20);
/// A timer that is noticed later than this was not listened to.
const UNHEARD_MAX: Duration = Duration::from_secs(1);

/// A running call: a stream of [`Step`]s. Pulled; dropping it cancels.
#[must_use = "a call does nothing unless it is polled"]
pub struct Call {
    steps: Pin<Box<dyn Stream<Item = Step> + Send>>,
}

impl Call {
    pub(crate) fn new(road: Arc<Road>, ask: Ask) -> Self {
        Self { steps: Box::pin(stream(STEPS_QUEUED_MAX, |steps| run(road, ask, steps))) }
    }
}

impl Stream for Call {
    type Item = Step;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Step>> {
        self.steps.as_mut().poll_next(cx)
    }
}

/// Asks until there is an answer or no hope of one.
async fn run(road: Arc<Road>, ask: Ask, steps: Sender<Step>) {
    let began = road.world.monotonic();
    let mut progress = Progress::default();
    let mut sent = Sent { max_tokens: ask.max_tokens, ..Sent::default() };
    loop {
        steps.send(Step::Requesting { attempt: progress.retries + 1 }).await;
        let failure = match attempt(&road, &ask, &sent, &steps).await {
            Ok(reply) => return steps.send(Step::Finished(reply)).await,
            Err(failure) => failure,
        };
        progress.elapsed = road.world.monotonic().saturating_sub(began);
        let fewer = sent.repair(&failure.error.kind);
        let plan = match fewer {
            Some(_) => Retry::After(Duration::ZERO),
            None => {
                let jitter = fraction(road.world.random());
                retry::plan(&failure.error, failure.advice, progress, ask.source, jitter, &road.policy)
            }
        };
        let Retry::After(wait) = plan else { return steps.send(Step::Failed(failure.error)).await };
        progress.retries += 1;
        progress.stalls += u32::from(failure.error.kind == ErrorKind::Stalled);
        sent.fresh_connection = distrusts_connections(&failure.error.kind);
        let notice = Notice {
            attempt: progress.retries,
            retries_max: retry::retries_max(&failure.error.kind, &road.policy),
            wait,
            status: failure.error.status,
            message: failure.error.to_string(),
            kind: failure.error.kind,
            withdrawn: failure.withdrawn,
            max_tokens: fewer,
        };
        steps.send(Step::Retry(notice)).await;
        if !wait.is_zero() {
            road.world.sleep(wait).await;
        }
    }
}

/// What changes from one attempt to the next.
#[derive(Default)]
struct Sent {
    max_tokens: u32,
    fresh_connection: bool,
    /// Each repair is made once: the server's own numbers are exact, so a second complaint is about something else.
    shrunk: bool,
    clamped: bool,
}

impl Sent {
    /// Asks for fewer tokens, if that is what the failure is about.
    fn repair(&mut self, kind: &ErrorKind) -> Option<u32> {
        let done = match kind {
            ErrorKind::OutputOverflow { .. } => &mut self.shrunk,
            ErrorKind::MaxTokensTooHigh { .. } => &mut self.clamped,
            _ => return None,
        };
        if std::mem::replace(done, true) {
            return None;
        }
        self.max_tokens = retry::fewer_tokens(kind, self.max_tokens)?;
        Some(self.max_tokens)
    }
}

/// Whether a failure is a sign that kept-alive connections are dead: reset, or silent, as after a sleep.
fn distrusts_connections(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Stalled | ErrorKind::Connection(TransportErrorKind::Reset | TransportErrorKind::Timeout)
    )
}

/// A number in 0..1.
fn fraction(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// An attempt that brought nothing to keep.
struct Failure {
    error: ModelError,
    advice: Advice,
    withdrawn: bool,
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self { error, advice: Advice::default(), withdrawn: false }
    }
}

/// Sends the request once and reads what comes.
async fn attempt(road: &Road, ask: &Ask, sent: &Sent, steps: &Sender<Step>) -> Result<Reply, Failure> {
    let post = Post {
        url: road.url.clone(),
        headers: road.headers.clone()?,
        body: messages::body(ask, sent.max_tokens),
        fresh_connection: sent.fresh_connection,
    };
    let mut guard = Guard::new(road, ask.streaming, steps);
    let response = match guard.wait(road.transport.post(post)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(ModelError::from(error).into()),
        Err(stalled) => return Err(stalled.into()),
    };
    if !(200..300).contains(&response.status) {
        return Err(refusal(road, response).await);
    }
    let mut answer = Answer::new(request_id(&response.headers).map(Arc::from));
    let mut found = Vec::new();
    let cause = read(response.body, &mut answer, &mut guard, &mut found).await.err();
    let withdrawn = answer.shown();
    let reply = answer.end(cause, sent.max_tokens, &mut found);
    send_all(steps, &mut found).await;
    reply.map_err(|error| Failure { withdrawn, ..Failure::from(error) })
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
        while let Some(event) =
            events.next_event().map_err(|error| answer.own_error(ErrorKind::Other, error.to_string()))?
        {
            let life = answer.event(event, found)?;
            guard.saw(life);
            if life == Life::End {
                send_all(guard.steps, found).await;
                let closing = pin!(guard.road.world.sleep(CLOSING_WAIT));
                select(closing, chunks.next()).await;
                return Ok(());
            }
        }
        send_all(guard.steps, found).await;
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
    while let Some(chunk) = guard.wait(chunks.next()).await? {
        body.extend_from_slice(&chunk?);
        // There are no events to go by.
        guard.saw(Life::Progress);
        if body.len() > MESSAGE_BYTES_MAX {
            let limit = MESSAGE_BYTES_MAX / 1024 / 1024;
            return Err(ModelError::new(ErrorKind::Other, format!("the answer is larger than {limit} MB")));
        }
    }
    Ok(Bytes::from(body))
}

async fn send_all(steps: &Sender<Step>, found: &mut Vec<Step>) {
    for step in found.drain(..) {
        steps.send(step).await;
    }
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

/// Waits for the server, and says so when it is silent for long.
struct Guard<'a> {
    road: &'a Road,
    steps: &'a Sender<Step>,
    watch: Watch,
    /// Runs on while events come; whether it rang too early is looked up when it rings. Setting a timer for every
    /// event would cost more than reading the event.
    timer: BoxFuture<'static, ()>,
    rings_at: Duration,
}

impl<'a> Guard<'a> {
    fn new(road: &'a Road, streaming: bool, steps: &'a Sender<Step>) -> Self {
        let now = road.world.monotonic();
        let watch = Watch::new(now, streaming, &road.policy);
        let rings_at = watch.due();
        Self { timer: road.world.sleep(rings_at.saturating_sub(now)), rings_at, road, steps, watch }
    }

    fn saw(&mut self, life: Life) {
        let now = self.road.world.monotonic();
        self.watch.saw(life, now);
        // After a notice the timer waits for the cut, but now the next notice comes first.
        if self.watch.due() < self.rings_at {
            self.wind(now);
        }
    }

    fn wind(&mut self, now: Duration) {
        self.rings_at = self.watch.due();
        self.timer = self.road.world.sleep(self.rings_at.saturating_sub(now));
    }

    /// Waits for `work`, but no longer than the server may be silent.
    async fn wait<T>(&mut self, work: impl Future<Output = T>) -> Result<T, ModelError> {
        let mut work = pin!(work);
        loop {
            match select(work.as_mut(), &mut self.timer).await {
                Either::Left((done, _)) => return Ok(done),
                Either::Right(((), _)) => {}
            }
            let now = self.road.world.monotonic();
            // Whoever pulls the call was busy elsewhere: that is no silence of the server's.
            if now.saturating_sub(self.rings_at) > UNHEARD_MAX {
                self.watch.excuse(now);
            }
            match self.watch.alarm(now) {
                Some(Alarm::Cut(silent)) => {
                    let message = format!("nothing came from the server for {} seconds", silent.as_secs());
                    return Err(ModelError::new(ErrorKind::Stalled, message));
                }
                Some(Alarm::Notice(silent_for)) => self.steps.send(Step::Stalled { silent_for }).await,
                None => {}
            }
            self.wind(now);
        }
    }
}

#[cfg(test)]
mod tests;
