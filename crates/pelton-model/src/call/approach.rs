//! What changes from one attempt to the next: not every failure asks for the same thing again.
//!
//! Every change is made once in a call, so however often and with whatever a server refuses, a call adds a handful
//! of requests to those that the policy allows. New credentials alone are sought more often, but only after a
//! server has accepted the last ones.

use std::time::Duration;

use super::attempt::Failure;
use crate::ask::{Ask, Speed};
use crate::catalogue;
use crate::client::{Auth, Road};
use crate::dialect::messages::{self, Manner};
use crate::error::{ErrorKind, ModelError};
use crate::fast::FastMode;
use crate::retry::{self, Retry};
use crate::transport::TransportErrorKind;

/// The most output that is asked for in one piece: what a model writes in ten minutes. Connections that are silent
/// for longer do not last.
pub(super) const WHOLE_TOKENS_MAX: u32 = 21_333;
/// Broken streams after which the answer is asked for in one piece.
const BROKEN_STREAMS_MAX: u32 = 2;
/// New credentials that may be refused one after the other. A second one is worth a try: the first may have been
/// another process's, and old by now.
const RENEWALS_MAX: u32 = 2;

/// How the question is put this time, and what was tried before.
pub(super) struct Approach<'a> {
    pub(super) road: &'a Road,
    pub(super) ask: &'a Ask,
    pub(super) fresh_connection: bool,
    max_tokens: u32,
    /// Each repair is made once: the server's own numbers are exact, so a second complaint is about something else.
    shrunk: bool,
    clamped: bool,
    broken_streams: u32,
    whole: Whole,
    fast: bool,
    /// What was refused and could not be replaced yet.
    refused: Option<Auth>,
    renewals: u32,
}

/// Asking for the answer in one piece.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whole {
    NotYet,
    /// This time: streams have broken, and may not the next time.
    Once,
    /// From now on: the server knows no streams.
    Only,
    Tried,
}

impl Whole {
    fn is_now(self) -> bool {
        matches!(self, Self::Once | Self::Only)
    }

    /// What is left of it after a failure.
    fn after(self, failure: &ErrorKind) -> Self {
        match self {
            Self::Once => Self::Tried,
            // So it was not the stream that cannot be found.
            Self::Only if *failure == ErrorKind::NotFound => Self::Tried,
            kept => kept,
        }
    }
}

impl<'a> Approach<'a> {
    pub(super) fn new(road: &'a Road, ask: &'a Ask) -> Self {
        Self {
            road,
            ask,
            fresh_connection: false,
            max_tokens: ask.max_tokens,
            shrunk: false,
            clamped: false,
            broken_streams: 0,
            whole: Whole::NotYet,
            fast: ask.speed == Speed::Fast
                && catalogue::can_be_fast(&ask.model)
                && !messages::fast_is_refused(ask),
            refused: None,
            renewals: 0,
        }
    }

    pub(super) fn manner(&self) -> Manner {
        let streaming = self.ask.streaming && !self.whole.is_now();
        Manner {
            max_tokens: if streaming { self.max_tokens } else { self.max_tokens.min(WHOLE_TOKENS_MAX) },
            streaming,
            fast: self.fast && self.road.fast.state(self.road.world.monotonic()) == FastMode::On,
        }
    }

    /// Who pays for the next request.
    pub(super) async fn auth(&self) -> Result<Auth, ModelError> {
        match (&self.refused, &self.road.credentials) {
            (Some(refused), Some(credentials)) => {
                let renewed = credentials.refresh(refused.clone()).await?;
                // What was refused once may be all there is.
                Ok(renewed.unwrap_or_else(|| refused.clone()))
            }
            _ => self.road.auth().await,
        }
    }

    /// Seeks new credentials, if that is what the failure is about. A failure to get any takes its place.
    pub(super) async fn renew(&mut self, failure: &mut Failure) -> bool {
        let Some(auth) = failure.auth.take() else { return false };
        if failure.error.kind != ErrorKind::Authentication {
            (self.refused, self.renewals) = (None, 0);
            return false;
        }
        let Some(credentials) = self.road.credentials.as_ref().filter(|_| self.renewals < RENEWALS_MAX)
        else {
            return false;
        };
        self.renewals += 1;
        match credentials.refresh(auth.clone()).await {
            Ok(Some(_)) => {
                self.refused = None;
                true
            }
            Ok(None) => false,
            // Nothing better will come: what the server said is still what is wrong, and here is why it stays so.
            Err(error) if error.kind == ErrorKind::Authentication => {
                failure.error.message = format!("{}; {}", failure.error.message, error.message);
                false
            }
            Err(error) => {
                self.refused = Some(auth);
                *failure = Failure::from(error);
                false
            }
        }
    }

    /// R6: whether the next request may use a connection that is there.
    pub(super) fn distrust(&mut self, kind: &ErrorKind) {
        self.fresh_connection = distrusts_connections(kind);
    }

    /// Changes what the failure suggests to change. That is asked at once: it is not the same question again.
    pub(super) fn change(&mut self, failure: &Failure, sent: Manner, plan: Retry) -> Retry {
        let kind = &failure.error.kind;
        self.distrust(kind);
        self.whole = self.whole.after(kind);
        self.broken_streams += u32::from(failure.in_stream && is_broken_stream(kind));
        let changed =
            self.ask_for_less(kind) || self.give_up_speed(failure, sent, plan) || self.ask_for_whole(failure);
        if changed { Retry::After(Duration::ZERO) } else { plan }
    }

    /// Asks for fewer tokens.
    fn ask_for_less(&mut self, kind: &ErrorKind) -> bool {
        let done = match kind {
            ErrorKind::OutputOverflow { .. } => &mut self.shrunk,
            ErrorKind::MaxTokensTooHigh { .. } => &mut self.clamped,
            _ => return false,
        };
        if std::mem::replace(done, true) {
            return false;
        }
        let fewer = retry::fewer_tokens(kind, self.max_tokens);
        self.max_tokens = fewer.unwrap_or(self.max_tokens);
        fewer.is_some()
    }

    /// Makes do with standard speed for the rest of the call, and tells the other calls.
    fn give_up_speed(&mut self, failure: &Failure, sent: Manner, plan: Retry) -> bool {
        let policy = &self.road.policy;
        match (&failure.error.kind, plan) {
            _ if !sent.fast => return false,
            (ErrorKind::FastModeRefused, _) => self.road.fast.turn_off(),
            (ErrorKind::RateLimited, Retry::After(wait)) if wait <= policy.fast_wait_max => return false,
            (ErrorKind::RateLimited, _) => {
                let asked = failure.advice.retry_after.unwrap_or_default();
                let now = self.road.world.monotonic();
                self.road.fast.cool_down(now.saturating_add(asked.max(policy.fast_cooldown)));
            }
            _ => return false,
        }
        self.fast = false;
        true
    }

    /// Asks for the answer in one piece, when streams do not come through.
    fn ask_for_whole(&mut self, failure: &Failure) -> bool {
        let possible =
            self.ask.streaming && self.whole == Whole::NotYet && self.road.policy.non_streaming_fallback;
        self.whole = match &failure.error.kind {
            _ if !possible => return false,
            // Some relays know no streams, and say so in this way.
            ErrorKind::NotFound if failure.advice.should_retry != Some(false) => Whole::Only,
            ErrorKind::EmptyStream | ErrorKind::WebPage if failure.in_stream => Whole::Once,
            kind if is_broken_stream(kind)
                && failure.in_stream
                && self.broken_streams >= BROKEN_STREAMS_MAX =>
            {
                Whole::Once
            }
            _ => return false,
        };
        true
    }
}

/// Whether a failure is a sign that kept-alive connections are dead: reset, or silent, as after a sleep.
fn distrusts_connections(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Stalled | ErrorKind::Connection(TransportErrorKind::Reset | TransportErrorKind::Timeout)
    )
}

/// Whether a stream that ended so was broken on the way, or by a server in trouble. One that is only busy says so.
fn is_broken_stream(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::StreamCut
            | ErrorKind::Stalled
            | ErrorKind::Malformed
            | ErrorKind::Connection(_)
            | ErrorKind::Server
            | ErrorKind::Timeout
    )
}
