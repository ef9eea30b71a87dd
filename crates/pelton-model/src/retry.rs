//! When a failed call is repeated, and after which wait. Pure: [`plan`] is told the time and the dice.

use std::time::Duration;

use http::HeaderMap;
use jiff::Timestamp;

use crate::ask::Source;
use crate::error::{ErrorKind, ModelError};
use crate::transport::TransportErrorKind;

/// How patient a client is. Every number is a setting.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    /// How often a call is repeated, unless a horizon is set.
    pub retries_max: u32,
    /// The first wait; each further one is twice as long.
    pub base: Duration,
    /// No wait of our own is longer, jitter aside.
    pub cap: Duration,
    /// The share of a wait that chance may add, so that many clients do not come back at once.
    pub jitter: f64,
    /// Repeat as long as this since the first attempt, instead of a number of times.
    pub horizon: Option<Duration>,
    /// A server that asks for a longer wait than this is not waited for.
    pub retry_after_max: Duration,
    /// How often a stream that fell silent is begun again.
    pub stalls_max: u32,
    /// A stream without any event for so long is cut.
    pub idle: Duration,
    /// A stream with nothing but pings for so long is cut.
    pub idle_pings_only: Duration,
    /// Silence of so long is reported.
    pub notice: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries_max: 10,
            base: Duration::from_millis(500),
            cap: Duration::from_secs(32),
            jitter: 0.25,
            horizon: None,
            retry_after_max: Duration::from_secs(3600),
            stalls_max: 1,
            idle: Duration::from_secs(300),
            idle_pings_only: Duration::from_secs(900),
            notice: Duration::from_secs(15),
        }
    }
}

/// What a server says about repeating, beside the error itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// Wait at least so long.
    pub retry_after: Option<Duration>,
    /// Repeat, or do not; wins over the kind of error.
    pub should_retry: Option<bool>,
}

/// How far a call has come when it fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Retries already made.
    pub retries: u32,
    /// Of those, how many because the stream fell silent.
    pub stalls: u32,
    /// Time since the first attempt.
    pub elapsed: Duration,
}

/// What follows a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Wait, then ask again.
    After(Duration),
    /// Report the failure.
    GiveUp,
}

/// A wait asked for by a server is at least this long: one that says "now" for ever would be hammered.
const RETRY_AFTER_MIN: Duration = Duration::from_millis(100);

/// Decides what follows a failure. `jitter` is a number in 0..1, fresh for each failure.
pub fn plan(
    error: &ModelError,
    advice: Advice,
    progress: Progress,
    source: Source,
    jitter: f64,
    policy: &RetryPolicy,
) -> Retry {
    // Background work gives way at once: every retry of it delays somebody who waits.
    if error.kind == ErrorKind::Overloaded && source == Source::Background {
        return Retry::GiveUp;
    }
    if !advice.should_retry.unwrap_or_else(|| passes(&error.kind)) {
        return Retry::GiveUp;
    }
    if error.kind == ErrorKind::Stalled && progress.stalls >= policy.stalls_max {
        return Retry::GiveUp;
    }
    let wait = match advice.retry_after {
        Some(asked) if asked > policy.retry_after_max => return Retry::GiveUp,
        Some(asked) => asked.max(RETRY_AFTER_MIN),
        None => backoff(progress.retries, jitter, policy),
    };
    let patient = match policy.horizon {
        Some(horizon) => progress.elapsed.saturating_add(wait) <= horizon,
        None => progress.retries < retries_max(&error.kind, policy),
    };
    if patient { Retry::After(wait) } else { Retry::GiveUp }
}

/// Where nobody is, nobody will be in two minutes either: a wrong address or a server that is not running is told
/// within seconds, while one that is just being restarted is still met.
const NOBODY_THERE_RETRIES_MAX: u32 = 3;

/// How often a failure of this kind is repeated at the most.
pub fn retries_max(kind: &ErrorKind, policy: &RetryPolicy) -> u32 {
    match kind {
        ErrorKind::Connection(TransportErrorKind::Refused | TransportErrorKind::Dns) => {
            policy.retries_max.min(NOBODY_THERE_RETRIES_MAX)
        }
        _ => policy.retries_max,
    }
}

/// Whether a failure of this kind is likely to pass by itself.
fn passes(kind: &ErrorKind) -> bool {
    match kind {
        ErrorKind::Overloaded
        | ErrorKind::RateLimited
        | ErrorKind::Server
        | ErrorKind::Timeout
        | ErrorKind::StreamCut
        | ErrorKind::Stalled
        | ErrorKind::EmptyStream
        | ErrorKind::Malformed => true,
        // A certificate does not become valid by asking again, an address does not become well-formed.
        ErrorKind::Connection(kind) => !matches!(kind, TransportErrorKind::Tls | TransportErrorKind::BadUrl),
        _ => false,
    }
}

fn backoff(retries: u32, jitter: f64, policy: &RetryPolicy) -> Duration {
    let doubled = policy.base.saturating_mul(2_u32.saturating_pow(retries.min(31)));
    let wait = doubled.min(policy.cap);
    wait.saturating_add(wait.mul_f64((policy.jitter * jitter).clamp(0.0, 1.0)))
}

/// Room left between prompt and window when the output is shrunk to fit, in tokens.
const OVERFLOW_MARGIN_TOKENS: u64 = 1000;
/// Less output than this is not worth asking for, in tokens.
const OUTPUT_TOKENS_MIN: u64 = 3000;

/// The output to ask for instead, when a failure says that too much was asked for. `None`: less would not help.
pub fn fewer_tokens(kind: &ErrorKind, sent: u32) -> Option<u32> {
    let fewer = match *kind {
        ErrorKind::OutputOverflow { input, limit, .. } => {
            let room = limit.checked_sub(input)?.checked_sub(OVERFLOW_MARGIN_TOKENS)?;
            Some(room).filter(|room| *room >= OUTPUT_TOKENS_MIN)
        }
        ErrorKind::MaxTokensTooHigh { limit } => Some(limit).filter(|limit| *limit > 0),
        _ => None,
    };
    u32::try_from(fewer?).ok().filter(|fewer| *fewer < sent)
}

/// What the headers of a failure say about repeating.
pub fn advice(headers: &HeaderMap, now: Timestamp) -> Advice {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let should_retry = match text("x-should-retry") {
        Some("true") => Some(true),
        Some("false") => Some(false),
        _ => None,
    };
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| *number > 0.0);
    let retry_after = text("retry-after-ms").and_then(number).map(|ms| ms / 1000.0).or_else(|| {
        let after = text("retry-after")?;
        number(after).or_else(|| {
            let date = jiff::fmt::rfc2822::parse(after).ok()?.timestamp();
            Some(date.duration_since(now).as_secs_f64()).filter(|seconds| *seconds > 0.0)
        })
    });
    let retry_after =
        retry_after.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    Advice { retry_after, should_retry }
}

#[cfg(test)]
mod tests;
