//! One question, until it is answered or given up.

mod approach; // what changes from one attempt to the next
mod attempt; // one request, and what comes of it
mod guard; // patience with a silent server, and its end

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, Stream};

use self::approach::Approach;
use self::attempt::attempt;
use crate::ask::{Ask, Earlier};
use crate::client::Road;
use crate::error::{ModelError, Tried};
use crate::retry::{self, Advice, Caller, Progress, Retry};
use crate::step::{Again, Delta, Notice, Reply, Step};
use crate::stream::{Produced, Sender, stream};

/// Steps that may wait to be taken; one chunk of bytes can bring many.
const STEPS_QUEUED_MAX: usize = 64;

/// A running call: a stream of [`Step`]s. Pulled; dropping it cancels.
///
/// ```
/// # use std::sync::Arc;
/// # use bytes::Bytes;
/// # use futures::{FutureExt, StreamExt, future::BoxFuture};
/// # use pelton_model::{Ask, Auth, Client, Endpoint, Post, Prefix, RealWorld, Response, RetryPolicy, Transport, TransportError};
/// # struct Says(&'static [&'static str]);
/// # impl Transport for Says {
/// #     fn post(&self, _: Post) -> BoxFuture<'static, Result<Response, TransportError>> {
/// #         let body = futures::stream::iter(self.0.iter().map(|event| Ok(Bytes::from(format!("data: {event}\n\n"))))).boxed();
/// #         async move { Ok(Response { status: 200, headers: Default::default(), body }) }.boxed()
/// #     }
/// # }
/// # let server = Says(&[
/// #     r#"{"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":3}}}"#,
/// #     r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
/// #     r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}"#,
/// #     r#"{"type":"content_block_stop","index":0}"#,
/// #     r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#,
/// #     r#"{"type":"message_stop"}"#,
/// # ]);
/// # let endpoint = Endpoint::new("http://in.memory", Auth::None);
/// # let client = Client::new(endpoint, Arc::new(server), RetryPolicy::default(), Arc::new(RealWorld::new()));
/// # let messages = vec![Bytes::from_static(br#"{"role":"user","content":"hi"}"#)];
/// # let ask = Ask::new("any-model", 1000, Arc::new(Prefix::default()), messages);
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use pelton_model::{Call, Step};
///
/// let mut call: Call = client.call(ask);
/// let mut last = None;
/// while let Some(step) = call.next().await {
///     last = Some(step);
/// }
/// assert!(matches!(last, Some(Step::Finished(_)))); // or `Failed`: one of the two is always the last
/// # });
/// ```
#[must_use = "a call does nothing unless it is polled"]
pub struct Call {
    steps: Produced<Step, BoxFuture<'static, ()>>,
}

impl Call {
    pub(crate) fn new(road: Arc<Road>, ask: Ask) -> Self {
        Self { steps: stream(STEPS_QUEUED_MAX, |steps| run(road, ask, steps).boxed()) }
    }

    /// The next step, if it is a piece of the answer and is there already: many come with one read. Looks nowhere else, so
    /// that nothing can be missed by it.
    pub fn queued_delta(&mut self) -> Option<Delta> {
        match self.steps.take_queued_if(|step| matches!(step, Step::Delta(_)))? {
            Step::Delta(delta) => Some(delta),
            _ => None,
        }
    }
}

impl Stream for Call {
    type Item = Step;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Step>> {
        Pin::new(&mut self.steps).poll_next(cx)
    }
}

/// Asks until there is an answer or no hope of one.
async fn run(road: Arc<Road>, ask: Ask, steps: Sender<Step>) {
    let caller = Caller { source: ask.source, fallbacks: ask.fallbacks };
    let mut approach = Approach::new(&road, &ask);
    let mut row = Row::new(&road, &ask.earlier);
    if let Some(again) = &ask.after {
        row = Row { began: again.began, progress: again.progress, tried: again.tried.clone() };
        approach.distrust(&again.notice.kind);
        back_off(&road, again.notice.clone(), &steps).await;
    }
    loop {
        steps.send(Step::Requesting { attempt: row.progress.retries.saturating_add(1) }).await;
        let sent = approach.manner();
        let mut failure = match attempt(&approach, sent, &steps).await {
            Ok(reply) => {
                let reply = row.ended(reply, &ask, caller, &road);
                return steps.send(Step::Finished(Box::new(reply))).await;
            }
            Err(failure) => failure,
        };
        row.failed(&ask.model, &failure.error, &road);
        let next = if approach.renew(&mut failure).await {
            Retry::After(Duration::ZERO)
        } else {
            let plan = row.plan(&failure.error, failure.advice, caller, &road);
            approach.change(&failure, sent, plan)
        };
        let Retry::After(wait) = next else {
            let tried = Arc::new(row.tried);
            failure.say_if_too_long_to_wait(road.policy.retry_after_max);
            return steps.send(Step::Failed(ModelError { tried, ..failure.error })).await;
        };
        let manner = approach.manner();
        let notice = Notice {
            withdrawn: failure.withdrawn,
            max_tokens: Some(manner.max_tokens).filter(|next| *next < sent.max_tokens),
            non_streaming: sent.streaming && !manner.streaming,
            ..row.goes_on(&failure.error, wait, caller, &road)
        };
        back_off(&road, notice, &steps).await;
    }
}

/// Attempts that failed one after the other.
struct Row {
    /// When the first was made.
    began: Duration,
    progress: Progress,
    tried: Vec<Tried>,
}

impl Row {
    fn new(road: &Road, earlier: &Earlier) -> Self {
        let began = road.world.monotonic().saturating_sub(earlier.elapsed);
        let progress = Progress { elsewhere: earlier.requests, ..Progress::default() };
        Self { began, progress, tried: Vec::new() }
    }

    /// One more failed.
    fn failed(&mut self, model: &str, error: &ModelError, road: &Road) {
        Tried::count(&mut self.tried, model, error);
        self.progress.elapsed = road.world.monotonic().saturating_sub(self.began);
    }

    fn plan(&self, error: &ModelError, advice: Advice, caller: Caller, road: &Road) -> Retry {
        let jitter = fraction(road.world.random());
        retry::plan(error, advice, self.progress, caller, jitter, &road.policy)
    }

    /// Another attempt follows after a wait.
    fn goes_on(&mut self, error: &ModelError, wait: Duration, caller: Caller, road: &Road) -> Notice {
        let retries_max = retry::retries_max(&error.kind, self.progress, caller, &road.policy);
        self.progress.count(&error.kind);
        Notice {
            attempt: self.progress.retries,
            retries_max,
            wait,
            status: error.status,
            message: error.to_string(),
            kind: error.kind.clone(),
            withdrawn: false,
            max_tokens: None,
            non_streaming: false,
            request_id: error.request_id.clone(),
        }
    }

    /// There is an answer. One that was cut is a failure too: whoever asks for the rest has to wait for it.
    fn ended(mut self, reply: Reply, ask: &Ask, caller: Caller, road: &Road) -> Reply {
        let Some(error) = reply.cut.clone() else { return reply };
        self.failed(&ask.model, &error, road);
        let Retry::After(wait) = self.plan(&error, Advice::default(), caller, road) else {
            let error = ModelError { tried: Arc::new(self.tried), ..*error };
            return Reply { cut: Some(Box::new(error)), ..reply };
        };
        let notice = self.goes_on(&error, wait, caller, road);
        let Self { began, progress, tried } = self;
        Reply { again: Some(Box::new(Again { notice, progress, began, tried })), ..reply }
    }
}

/// Tells that another attempt follows, and waits for it.
async fn back_off(road: &Road, notice: Notice, steps: &Sender<Step>) {
    let wait = notice.wait;
    steps.send(Step::Retry(notice)).await;
    // Nothing is sent before that is read: whoever pays can still say no.
    steps.taken().await;
    sit_out(road, wait, steps).await;
}

/// No sign of life comes sooner after another, whatever the policy says.
const HEARTBEAT_MIN: Duration = Duration::from_millis(10);

/// Waits, and says now and then that it does.
async fn sit_out(road: &Road, wait: Duration, steps: &Sender<Step>) {
    let mut left = wait;
    let pause = road.policy.heartbeat.max(HEARTBEAT_MIN);
    while left > pause {
        road.world.back_off(pause).await;
        left -= pause;
        steps.send(Step::Waiting { left }).await;
    }
    if !left.is_zero() {
        road.world.back_off(left).await;
    }
}

/// A number in 0..1.
fn fraction(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests;
