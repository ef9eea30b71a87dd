//! What the headers of an answer say about the account's limits.

use http::HeaderMap;
use jiff::Timestamp;

/// The limits of an account, as of one answer.
///
/// ```
/// use pelton_model::RateLimits;
///
/// let mut headers = http::HeaderMap::new();
/// headers.insert("anthropic-ratelimit-requests-limit", "50".parse()?);
/// headers.insert("anthropic-ratelimit-requests-remaining", "0".parse()?);
/// headers.insert("anthropic-ratelimit-requests-reset", "2026-11-15T12:00:30Z".parse()?);
/// let limits = RateLimits::read(&headers).ok_or("the server tells them")?;
/// assert_eq!(limits.lifted_at(), Some("2026-11-15T12:00:30Z".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RateLimits {
    /// Requests.
    pub requests: Option<Limit>,
    /// Tokens of either kind.
    pub tokens: Option<Limit>,
    /// Tokens of prompts.
    pub input_tokens: Option<Limit>,
    /// Tokens of answers.
    pub output_tokens: Option<Limit>,
    /// Tokens of prompts in fast mode.
    pub fast_input_tokens: Option<Limit>,
    /// Tokens of answers in fast mode.
    pub fast_output_tokens: Option<Limit>,
    /// What a subscription allows.
    pub subscription: Option<Subscription>,
}

/// How much of a subscription is used, as of one answer. The words are the server's.
///
/// ```
/// # let mut headers = http::HeaderMap::new();
/// use pelton_model::RateLimits;
///
/// headers.insert("anthropic-ratelimit-unified-status", "allowed_warning".parse()?);
/// headers.insert("anthropic-ratelimit-unified-representative-claim", "five_hour".parse()?);
/// headers.insert("anthropic-ratelimit-unified-5h-utilization", "0.9".parse()?);
/// let limits = RateLimits::read(&headers).ok_or("the server tells them")?;
/// let used = limits.subscription.ok_or("those of the subscription, too")?;
/// assert_eq!((used.claim.as_deref(), used.utilization), (Some("five_hour"), Some(0.9)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Subscription {
    /// Whether it allows more.
    pub status: Option<String>,
    /// Which of its limits is the nearest.
    pub claim: Option<String>,
    /// When that is lifted.
    pub reset: Option<Timestamp>,
    /// How much of it is used, where 1 is all.
    pub utilization: Option<f64>,
    /// Whether more may be bought.
    pub overage_status: Option<String>,
    /// When the limit of that is lifted.
    pub overage_reset: Option<Timestamp>,
    /// Why not.
    pub overage_disabled_reason: Option<String>,
}

/// One limit. What a server does not say is `None`.
///
/// ```
/// # let mut headers = http::HeaderMap::new();
/// # headers.insert("anthropic-ratelimit-requests-limit", "50".parse()?);
/// # headers.insert("anthropic-ratelimit-requests-remaining", "0".parse()?);
/// # headers.insert("anthropic-ratelimit-requests-reset", "2026-11-15T12:00:30Z".parse()?);
/// use pelton_model::RateLimits;
///
/// let limits = RateLimits::read(&headers).ok_or("the server tells them")?;
/// let requests = limits.requests.ok_or("those of requests, too")?;
/// assert_eq!((requests.limit, requests.remaining), (Some(50), Some(0)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limit {
    /// How much is allowed.
    pub limit: Option<u64>,
    /// How much of it is left.
    pub remaining: Option<u64>,
    /// When all of it is there again.
    pub reset: Option<Timestamp>,
}

impl RateLimits {
    /// Reads them; `None` if the headers tell of none.
    pub fn read(headers: &HeaderMap) -> Option<Self> {
        // Most servers that are not the API's own tell of none: their names need not be put together one by one.
        if !headers.keys().any(|name| name.as_str().starts_with("anthropic-")) {
            return None;
        }
        let limits = Self {
            requests: limit(headers, "anthropic-ratelimit-requests"),
            tokens: limit(headers, "anthropic-ratelimit-tokens"),
            input_tokens: limit(headers, "anthropic-ratelimit-input-tokens"),
            output_tokens: limit(headers, "anthropic-ratelimit-output-tokens"),
            fast_input_tokens: limit(headers, "anthropic-fast-input-tokens"),
            fast_output_tokens: limit(headers, "anthropic-fast-output-tokens"),
            subscription: subscription(headers),
        };
        (limits != Self::default()).then_some(limits)
    }

    /// When everything that is used up is there again; `None` if nothing is known to be used up.
    pub fn lifted_at(&self) -> Option<Timestamp> {
        let all = [
            self.requests,
            self.tokens,
            self.input_tokens,
            self.output_tokens,
            self.fast_input_tokens,
            self.fast_output_tokens,
        ];
        let used_up = all.into_iter().flatten().filter(|limit| limit.remaining == Some(0));
        used_up
            .filter_map(|limit| limit.reset)
            .max()
            .or(self.subscription.as_ref().and_then(|used| used.reset))
    }
}

fn subscription(headers: &HeaderMap) -> Option<Subscription> {
    let said = |what: &str| text(headers, &format!("anthropic-ratelimit-unified-{what}"));
    let claim = said("representative-claim");
    // Windows have a short name in other headers.
    let window = claim.map(|claim| claim.replace("five_hour", "5h").replace("seven_day", "7d"));
    let used = Subscription {
        status: said("status").map(str::to_owned),
        claim: claim.map(str::to_owned),
        reset: said("reset").and_then(moment),
        utilization: window
            .and_then(|window| said(&format!("{window}-utilization"))?.parse().ok())
            .filter(|used: &f64| used.is_finite()),
        overage_status: said("overage-status").map(str::to_owned),
        overage_reset: said("overage-reset").and_then(moment),
        overage_disabled_reason: said("overage-disabled-reason").map(str::to_owned),
    };
    (used != Subscription::default()).then_some(used)
}

fn limit(headers: &HeaderMap, name: &str) -> Option<Limit> {
    let said = |what: &str| text(headers, &format!("{name}-{what}"));
    let limit = Limit {
        limit: said("limit").and_then(|text| text.parse().ok()),
        remaining: said("remaining").and_then(|text| text.parse().ok()),
        reset: said("reset").and_then(moment),
    };
    (limit != Limit::default()).then_some(limit)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// A moment as servers write it: a date, or seconds since 1970.
fn moment(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| Timestamp::from_second(text.parse().ok()?).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(headers: &[(&'static str, &'static str)]) -> Option<RateLimits> {
        let headers =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        RateLimits::read(&headers)
    }

    #[test]
    fn limits_are_read_as_far_as_they_are_told() {
        assert_eq!(read(&[("request-id", "req_1")]), None);
        assert_eq!(read(&[("anthropic-ratelimit-tokens-reset", "soon")]), None);
        let limits = read(&[
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-requests-reset", "2026-11-15T12:00:30Z"),
            ("anthropic-fast-output-tokens-remaining", " 0 "),
            ("anthropic-ratelimit-unified-reset", "1794744030"),
        ]);
        let noon: Timestamp = "2026-11-15T12:00:30Z".parse().unwrap();
        let requests = Limit { limit: Some(50), remaining: Some(49), reset: Some(noon) };
        let fast = Limit { remaining: Some(0), ..Limit::default() };
        let expected = RateLimits {
            requests: Some(requests),
            fast_output_tokens: Some(fast),
            subscription: Some(Subscription { reset: Some(noon), ..Subscription::default() }),
            ..RateLimits::default()
        };
        assert_eq!(limits, Some(expected));
    }

    #[test]
    fn a_subscription_is_read_by_the_limit_that_is_nearest() {
        let read = |claim| {
            read(&[
                ("anthropic-ratelimit-unified-status", "rejected"),
                ("anthropic-ratelimit-unified-representative-claim", claim),
                ("anthropic-ratelimit-unified-5h-utilization", "0.5"),
                ("anthropic-ratelimit-unified-7d_opus-utilization", "1"),
                ("anthropic-ratelimit-unified-overage-status", "rejected"),
                ("anthropic-ratelimit-unified-overage-disabled-reason", "out_of_credits"),
            ])
        };
        let used = |claim| read(claim).and_then(|limits| limits.subscription).unwrap();
        assert_eq!(used("five_hour").utilization, Some(0.5));
        assert_eq!(used("seven_day_opus").utilization, Some(1.0));
        assert_eq!(used("tomorrow").utilization, None);
        assert_eq!(used("tomorrow").status.as_deref(), Some("rejected"));
        assert_eq!(used("overage").overage_disabled_reason.as_deref(), Some("out_of_credits"));
    }

    #[test]
    fn only_what_is_used_up_is_waited_for() {
        let at = |text: &str| Some(text.parse::<Timestamp>().unwrap());
        let lifted = |headers: &[_]| read(headers).and_then(|limits| limits.lifted_at());
        let plenty = [
            ("anthropic-ratelimit-requests-remaining", "5"),
            ("anthropic-ratelimit-requests-reset", "2026-11-15T18:00:00Z"),
        ];
        let used_up = [
            ("anthropic-ratelimit-tokens-remaining", "0"),
            ("anthropic-ratelimit-tokens-reset", "2026-11-15T12:00:00Z"),
            ("anthropic-ratelimit-input-tokens-remaining", "0"),
            ("anthropic-ratelimit-input-tokens-reset", "2026-11-15T13:00:00Z"),
        ];
        assert_eq!(lifted(&plenty), None);
        assert_eq!(lifted(&[plenty.as_slice(), &used_up].concat()), at("2026-11-15T13:00:00Z"));
        assert_eq!(lifted(&[("anthropic-ratelimit-unified-reset", "0")]), at("1970-01-01T00:00:00Z"));
    }
}
