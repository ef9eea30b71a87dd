//! One question, until it is answered or given up.

mod approach; // what changes from one attempt to the next
mod attempt; // one request, and what comes of it
mod guard; // patience with a silent server, and its end

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;

use self::approach::Approach;
use self::attempt::attempt;
use crate::ask::Ask;
use crate::client::Road;
use crate::error::{ModelError, Tried};
use crate::retry::{self, Caller, Progress, Retry};
use crate::step::{Notice, Step};
use crate::stream::{Sender, stream};

/// Steps that may wait to be taken; one chunk of bytes can bring many.
const STEPS_QUEUED_MAX: usize = 64;

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
    let caller = Caller { source: ask.source, fallback_ready: ask.fallback_ready };
    let mut progress = Progress::default();
    let mut tried = Vec::new();
    let mut approach = Approach::new(&road, &ask);
    loop {
        steps.send(Step::Requesting { attempt: progress.retries.saturating_add(1) }).await;
        let sent = approach.manner();
        let mut failure = match attempt(&approach, sent, &steps).await {
            Ok(reply) => return steps.send(Step::Finished(reply)).await,
            Err(failure) => failure,
        };
        Tried::count(&mut tried, &ask.model, &failure.error);
        progress.elapsed = road.world.monotonic().saturating_sub(began);
        let next = if approach.renew(&mut failure).await {
            Retry::After(Duration::ZERO)
        } else {
            let jitter = fraction(road.world.random());
            let plan = retry::plan(&failure.error, failure.advice, progress, caller, jitter, &road.policy);
            approach.change(&failure, sent, plan)
        };
        let Retry::After(wait) = next else {
            return steps.send(Step::Failed(ModelError { tried: Arc::new(tried), ..failure.error })).await;
        };
        progress.count(&failure.error.kind);
        let manner = approach.manner();
        let notice = Notice {
            attempt: progress.retries,
            retries_max: road.policy.retries_max.max(progress.retries),
            wait,
            status: failure.error.status,
            message: failure.error.to_string(),
            kind: failure.error.kind,
            withdrawn: failure.withdrawn,
            max_tokens: Some(manner.max_tokens).filter(|next| *next < sent.max_tokens),
            non_streaming: ask.streaming && !manner.streaming,
            request_id: failure.error.request_id,
        };
        steps.send(Step::Retry(notice)).await;
        // Nothing is sent before that is read: whoever pays can still say no.
        steps.taken().await;
        sit_out(&road, wait, &steps).await;
    }
}

/// No sign of life comes sooner after another, whatever the policy says.
const HEARTBEAT_MIN: Duration = Duration::from_millis(10);

/// Waits, and says now and then that it does.
async fn sit_out(road: &Road, wait: Duration, steps: &Sender<Step>) {
    let mut left = wait;
    let pause = road.policy.heartbeat.max(HEARTBEAT_MIN);
    while left > pause {
        road.world.sleep(pause).await;
        left -= pause;
        steps.send(Step::Waiting { left }).await;
    }
    if !left.is_zero() {
        road.world.sleep(left).await;
    }
}

/// A number in 0..1.
fn fraction(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests;
