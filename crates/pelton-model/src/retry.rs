//! When a failed call is repeated, and after which wait. Pure: [`plan`] is told the time and the dice.

use std::time::Duration;

use http::HeaderMap;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::ask::Source;
use crate::error::{ErrorKind, ModelError};
use crate::limits::RateLimits;
use crate::transport::TransportErrorKind;

/// How patient a client is. Every number is a setting.
///
/// ```
/// use std::time::Duration;
///
/// use pelton_model::RetryPolicy;
///
/// let mut policy = RetryPolicy::default();
/// policy.retries_max = 3;
/// policy.idle = Duration::from_secs(60);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// How often a call is repeated, unless a horizon is set.
    pub retries_max: u32,
    /// The first wait; each further one is twice as long.
    pub base: Duration,
    /// No wait of our own is longer, jitter aside. An unattended client has a cap of its own.
    pub cap: Duration,
    /// The share of a wait that chance may add, so that many clients do not come back at once.
    pub jitter: f64,
    /// Repeat as long as this since the first attempt, instead of a number of times.
    pub horizon: Option<Duration>,
    /// Nobody waits at the other end, so nobody is kept waiting: rate limits and overload are outlasted however long
    /// they take, anything else that passes is repeated 300 times. Only a limit on spending
    /// ends the call at once. Wins over the number of retries and over the horizon.
    pub unattended: bool,
    /// A server that asks for a longer wait than this is not waited for.
    pub retry_after_max: Duration,
    /// A stream without any event for so long is cut.
    pub idle: Duration,
    /// A stream with nothing but pings for so long is cut.
    pub idle_pings_only: Duration,
    /// Silence of so long is reported.
    pub notice: Duration,
    /// R12: how often a wait says that it goes on.
    pub heartbeat: Duration,
    /// When streams do not come through, the question is put once more without streaming.
    pub non_streaming_fallback: bool,
    /// The longest wait that a rate limit of fast mode is worth; rather than wait longer, standard speed will do.
    pub fast_wait_max: Duration,
    /// How long standard speed has to do then, at least.
    pub fast_cooldown: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries_max: 10,
            base: Duration::from_millis(500),
            cap: Duration::from_secs(32),
            jitter: 0.25,
            horizon: None,
            unattended: false,
            retry_after_max: Duration::from_secs(3600),
            idle: Duration::from_secs(300),
            idle_pings_only: Duration::from_secs(900),
            notice: Duration::from_secs(15),
            heartbeat: Duration::from_secs(30),
            non_streaming_fallback: true,
            fast_wait_max: Duration::from_secs(15),
            fast_cooldown: Duration::from_secs(5 * 60),
        }
    }
}

/// Overload in a row after which a call with a fallback is given up: the other model is likely to be free.
pub(crate) const OVERLOADS_BEFORE_FALLBACK: u32 = 3;
/// How often a server is tried that nobody is reached at: the port refuses, or the name leads nowhere. That is a
/// mistake in the settings, a server that is not started, or a network that is down. None of them passes within
/// the minutes that an overload may take, and whoever made the mistake should hear of it within seconds. With a
/// horizon, or unattended, patience was asked for and is given.
pub(crate) const UNREACHED_RETRIES_MAX: u32 = 3;
/// How often an unattended client repeats what is neither a rate limit nor an overload.
pub(crate) const UNATTENDED_RETRIES_MAX: u32 = 300;
/// The cap of an unattended client's own waits, jitter aside.
pub(crate) const UNATTENDED_CAP: Duration = Duration::from_secs(5 * 60);
/// The longest an unattended client waits for a limit to be lifted before it looks again.
pub(crate) const UNATTENDED_RESET_MAX: Duration = Duration::from_secs(6 * 3600);

/// What a server says about repeating, beside the error itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Advice {
    /// Wait at least so long.
    pub retry_after: Option<Duration>,
    /// Repeat, or do not; wins over the kind of error.
    pub should_retry: Option<bool>,
    /// The limit that was hit is lifted after so long.
    pub reset_after: Option<Duration>,
}

/// Who wants the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Whether somebody waits for it.
    pub source: Source,
    /// How many other models stand ready to be asked instead.
    pub fallbacks: u32,
}

/// How far a call has come when it fails. The failure itself is not counted yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Retries already made.
    pub retries: u32,
    /// Of those, how many because of neither a rate limit nor an overload.
    pub other: u32,
    /// The latest ones in a row that were because of overload.
    pub overloads: u32,
    /// The latest ones in a row that reached nobody.
    pub unreached: u32,
    /// Requests in vain to other models before: all models of a question share its retries.
    pub elsewhere: u32,
    /// Time since the first attempt.
    pub elapsed: Duration,
}

impl Progress {
    /// A failure of this kind is about to be followed by another attempt.
    pub fn count(&mut self, kind: &ErrorKind) {
        let in_a_row = |count: u32, again: bool| if again { count.saturating_add(1) } else { 0 };
        self.retries = self.retries.saturating_add(1);
        self.other = self.other.saturating_add(u32::from(!is_load(kind)));
        self.overloads = in_a_row(self.overloads, *kind == ErrorKind::Overloaded);
        self.unreached = in_a_row(self.unreached, is_unreached(kind));
    }
}

/// What follows a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Wait, then ask again.
    After(Duration),
    /// Report the failure.
    GiveUp,
}

/// A wait asked for by a server is at least this long: one that says "now" for ever would be hammered.
const RETRY_AFTER_MIN: Duration = Duration::from_millis(100);

/// Decides what follows a failure. `jitter` is a number in 0..1, fresh for each failure.
pub(crate) fn plan(
    error: &ModelError,
    advice: Advice,
    progress: Progress,
    caller: Caller,
    jitter: f64,
    policy: &RetryPolicy,
) -> Retry {
    let kind = &error.kind;
    if *kind == ErrorKind::Overloaded {
        // Background work gives way at once: every retry of it delays somebody who waits.
        let gives_way = caller.source == Source::Background;
        let goes_elsewhere = caller.fallbacks > 0 && progress.overloads + 1 >= OVERLOADS_BEFORE_FALLBACK;
        if gives_way || goes_elsewhere {
            return Retry::GiveUp;
        }
    }
    if !advice.should_retry.unwrap_or_else(|| passes(kind)) {
        return Retry::GiveUp;
    }
    if policy.unattended {
        let wait = unattended_wait(kind, advice, progress, jitter, policy);
        let patient = is_load(kind) || progress.other < UNATTENDED_RETRIES_MAX;
        // Money does not come by waiting, whatever the server says about repeating.
        return if patient && *kind != ErrorKind::Billing { Retry::After(wait) } else { Retry::GiveUp };
    }
    let wait = match advice.retry_after {
        Some(asked) if asked > policy.retry_after_max => return Retry::GiveUp,
        Some(asked) => asked.max(RETRY_AFTER_MIN),
        None => backoff(progress.retries, jitter, policy.cap, policy),
    };
    let patient = match policy.horizon {
        Some(horizon) => progress.elapsed.saturating_add(wait) <= horizon,
        None if is_unreached(kind) && progress.unreached >= UNREACHED_RETRIES_MAX => false,
        None => progress.retries < retries_here(kind, progress, caller, policy),
    };
    if patient { Retry::After(wait) } else { Retry::GiveUp }
}

/// How many retries a model has of those that all models share. One is left for each that would be asked next.
fn retries_here(kind: &ErrorKind, progress: Progress, caller: Caller, policy: &RetryPolicy) -> u32 {
    let kept = if kind.leads_elsewhere() { caller.fallbacks } else { 0 };
    policy.retries_max.saturating_sub(progress.elsewhere).saturating_sub(kept)
}

/// How many retries there can be, this one included, as far as a failure of this kind decides. `progress` is what
/// [`plan`] was told. Where time decides, or nothing: as many as there are with this one.
pub(crate) fn retries_max(kind: &ErrorKind, progress: Progress, caller: Caller, policy: &RetryPolicy) -> u32 {
    let Progress { retries, other, overloads, unreached, .. } = progress;
    let here = retries_here(kind, progress, caller, policy);
    let left_of = |bound: u32, made: u32| retries.saturating_add(bound.saturating_sub(made));
    let bound = if policy.unattended {
        (!is_load(kind)).then(|| left_of(UNATTENDED_RETRIES_MAX, other))
    } else if policy.horizon.is_some() {
        None
    } else if is_unreached(kind) {
        Some(here.min(left_of(UNREACHED_RETRIES_MAX, unreached)))
    } else {
        Some(here)
    };
    let elsewhere = (*kind == ErrorKind::Overloaded && caller.fallbacks > 0)
        .then(|| left_of(OVERLOADS_BEFORE_FALLBACK - 1, overloads));
    let bound = bound.into_iter().chain(elsewhere).min();
    let this_one = retries.saturating_add(1);
    bound.map_or(this_one, |bound| bound.max(this_one))
}

fn unattended_wait(
    kind: &ErrorKind,
    advice: Advice,
    progress: Progress,
    jitter: f64,
    policy: &RetryPolicy,
) -> Duration {
    let reset = advice.reset_after.filter(|_| *kind == ErrorKind::RateLimited);
    match advice.retry_after.or(reset) {
        Some(asked) => asked.clamp(RETRY_AFTER_MIN, UNATTENDED_RESET_MAX),
        None => backoff(progress.retries, jitter, UNATTENDED_CAP, policy),
    }
}

/// Whether the server is well and has only too much to do.
fn is_load(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::Overloaded | ErrorKind::RateLimited)
}

/// Whether there was nobody to talk to.
fn is_unreached(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::Connection(TransportErrorKind::Refused | TransportErrorKind::Dns))
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

fn backoff(retries: u32, jitter: f64, cap: Duration, policy: &RetryPolicy) -> Duration {
    let doubled = policy.base.saturating_mul(2_u32.saturating_pow(retries.min(31)));
    let wait = doubled.min(cap);
    wait.saturating_add(wait.mul_f64((policy.jitter * jitter).clamp(0.0, 1.0)))
}

/// Room left between prompt and window when the output is shrunk to fit, in tokens.
const OVERFLOW_MARGIN_TOKENS: u64 = 1000;
/// Less output than this is not worth asking for, in tokens.
const OUTPUT_TOKENS_MIN: u64 = 3000;

/// The output to ask for instead, when a failure says that too much was asked for. `None`: less would not help.
pub(crate) fn fewer_tokens(kind: &ErrorKind, sent: u32) -> Option<u32> {
    let fewer = match *kind {
        ErrorKind::OutputOverflow { input, limit, .. } => {
            let room = limit.checked_sub(input).filter(|room| *room >= OUTPUT_TOKENS_MIN)?;
            Some(room.saturating_sub(OVERFLOW_MARGIN_TOKENS).max(OUTPUT_TOKENS_MIN))
        }
        ErrorKind::MaxTokensTooHigh { limit } => Some(limit).filter(|limit| *limit > 0),
        _ => None,
    };
    u32::try_from(fewer?).ok().filter(|fewer| *fewer < sent)
}

/// What the headers of a failure say about repeating.
pub(crate) fn advice(headers: &HeaderMap, now: Timestamp) -> Advice {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let should_retry = match text("x-should-retry") {
        Some("true") => Some(true),
        Some("false") => Some(false),
        _ => None,
    };
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    let retry_after = text("retry-after-ms").and_then(number).map(|ms| ms / 1000.0).or_else(|| {
        let after = text("retry-after")?;
        number(after).or_else(|| {
            let date = http_date(after)?;
            Some(date.duration_since(now).as_secs_f64()).filter(|seconds| *seconds > 0.0)
        })
    });
    let retry_after =
        retry_after.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    let reset = RateLimits::read(headers).and_then(|limits| limits.lifted_at());
    let reset_after = reset.and_then(|at| Duration::try_from(at.duration_since(now)).ok());
    Advice { retry_after, should_retry, reset_after: reset_after.filter(|wait| !wait.is_zero()) }
}

/// A date in any of the three forms that HTTP knows: today's, and two that only old servers send.
fn http_date(text: &str) -> Option<Timestamp> {
    const OLD_FORMS: [&str; 2] = ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];
    if let Ok(date) = jiff::fmt::rfc2822::parse(text) {
        return Some(date.timestamp());
    }
    let date = OLD_FORMS.iter().find_map(|form| DateTime::strptime(form, text).ok())?;
    date.to_zoned(TimeZone::UTC).ok().map(|date| date.timestamp())
}

#[cfg(test)]
mod tests;
