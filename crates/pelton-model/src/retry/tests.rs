use proptest::prelude::*;

use super::*;

fn error(kind: ErrorKind) -> ModelError {
    ModelError::new(kind, "a test")
}

fn asked(wait: Duration) -> Advice {
    Advice { retry_after: Some(wait), ..Advice::default() }
}

fn told(should_retry: bool) -> Advice {
    Advice { should_retry: Some(should_retry), ..Advice::default() }
}

#[allow(clippy::needless_pass_by_value, reason = "reads better at the call site")]
fn check(kind: ErrorKind, advice: Advice, progress: Progress, source: Source, expected: Retry) {
    let caller = Caller { source, fallbacks: 0 };
    let plan = plan(&error(kind.clone()), advice, progress, caller, 0.0, &RetryPolicy::default());
    assert_eq!(plan, expected, "{kind:?} {advice:?} {progress:?} {source:?}");
}

const fn after_ms(ms: u64) -> Retry {
    Retry::After(Duration::from_millis(ms))
}

fn retries(retries: u32) -> Progress {
    Progress { retries, ..Progress::default() }
}

#[test]
fn what_passes_by_itself_is_repeated() {
    use ErrorKind::*;
    let first = Progress::default();
    let again = after_ms(500);
    for (kind, expected) in [
        (Overloaded, again),
        (RateLimited, again),
        (Server, again),
        (Timeout, again),
        (StreamCut, again),
        (Stalled, again),
        (EmptyStream, again),
        (Malformed, again),
        (Connection(TransportErrorKind::Refused), again),
        (Connection(TransportErrorKind::Reset), again),
        (Connection(TransportErrorKind::Dns), again),
        (Connection(TransportErrorKind::Timeout), again),
        (Connection(TransportErrorKind::Proxy), again),
        (Connection(TransportErrorKind::Other), again),
        (Connection(TransportErrorKind::Tls), Retry::GiveUp),
        (Connection(TransportErrorKind::BadUrl), Retry::GiveUp),
        (Authentication, Retry::GiveUp),
        (Permission, Retry::GiveUp),
        (Billing, Retry::GiveUp),
        (NotFound, Retry::GiveUp),
        (WebPage, Retry::GiveUp),
        (PromptTooLong { tokens: None, limit: None }, Retry::GiveUp),
        (OutputOverflow { input: 1, max_tokens: 1, limit: 1 }, Retry::GiveUp),
        (MaxTokensTooHigh { limit: 1 }, Retry::GiveUp),
        (RequestTooLarge, Retry::GiveUp),
        (Image { path: None }, Retry::GiveUp),
        (FastModeRefused, Retry::GiveUp),
        (ThinkingBound, Retry::GiveUp),
        (InvalidRequest, Retry::GiveUp),
        (Other, Retry::GiveUp),
    ] {
        check(kind, Advice::default(), first, Source::Foreground, expected);
    }
}

#[test]
fn waits_double_up_to_the_cap_and_end() {
    for (made, expected) in [
        (0, after_ms(500)),
        (1, after_ms(1000)),
        (2, after_ms(2000)),
        (5, after_ms(16_000)),
        (6, after_ms(32_000)),
        (9, after_ms(32_000)),
        (10, Retry::GiveUp),
        (u32::MAX, Retry::GiveUp),
    ] {
        check(ErrorKind::Server, Advice::default(), retries(made), Source::Foreground, expected);
    }
}

#[test]
fn the_server_is_obeyed() {
    use ErrorKind::*;
    use Source::*;
    let first = Progress::default();
    check(RateLimited, asked(Duration::from_secs(90)), first, Foreground, after_ms(90_000));
    check(Overloaded, asked(Duration::from_secs(90)), first, Foreground, after_ms(90_000));
    check(RateLimited, asked(Duration::from_millis(1)), first, Foreground, after_ms(100));
    check(RateLimited, asked(Duration::from_secs(3600)), first, Foreground, after_ms(3_600_000));
    check(RateLimited, asked(Duration::from_secs(3601)), first, Foreground, Retry::GiveUp);
    check(RateLimited, told(false), first, Foreground, Retry::GiveUp);
    check(InvalidRequest, told(true), first, Foreground, after_ms(500));
    check(InvalidRequest, told(true), retries(10), Foreground, Retry::GiveUp);
}

#[test]
fn background_work_gives_way_to_an_overload_only() {
    use ErrorKind::*;
    let first = Progress::default();
    check(Overloaded, Advice::default(), first, Source::Background, Retry::GiveUp);
    check(Overloaded, told(true), first, Source::Background, Retry::GiveUp);
    check(Server, Advice::default(), first, Source::Background, after_ms(500));
}

#[test]
fn with_another_model_ready_the_third_overload_in_a_row_is_the_last() {
    let at = |overloads, fallbacks| {
        let progress = Progress { retries: overloads, overloads, ..Progress::default() };
        let caller = Caller { source: Source::Foreground, fallbacks };
        plan(&error(ErrorKind::Overloaded), Advice::default(), progress, caller, 0.0, &RetryPolicy::default())
    };
    assert_eq!(
        [0, 1, 2, 3].map(|made| at(made, 1)),
        [after_ms(500), after_ms(1000), Retry::GiveUp, Retry::GiveUp]
    );
    assert_eq!(at(2, 0), after_ms(2000), "nobody else can be asked");
    // Other failures before it do not count.
    let progress = Progress { retries: 5, other: 5, ..Progress::default() };
    let caller = Caller { source: Source::Foreground, fallbacks: 1 };
    let first = plan(
        &error(ErrorKind::Overloaded),
        Advice::default(),
        progress,
        caller,
        0.0,
        &RetryPolicy::default(),
    );
    assert_eq!(first, after_ms(16_000));
}

#[test]
fn nobody_there_is_told_soon_unless_patience_was_asked_for() {
    let patient = RetryPolicy { horizon: Some(Duration::from_secs(3600)), ..RetryPolicy::default() };
    let at = |kind: ErrorKind, unreached, policy: &RetryPolicy| {
        let progress = Progress { retries: unreached, unreached, ..Progress::default() };
        plan(&error(kind), Advice::default(), progress, Caller::default(), 0.0, policy)
    };
    let policy = RetryPolicy::default();
    for kind in [TransportErrorKind::Refused, TransportErrorKind::Dns] {
        let kind = ErrorKind::Connection(kind);
        assert_eq!(at(kind.clone(), 2, &policy), after_ms(2000));
        assert_eq!(at(kind.clone(), 3, &policy), Retry::GiveUp);
        assert_eq!(at(kind, 3, &patient), after_ms(4000));
    }
    let reset = ErrorKind::Connection(TransportErrorKind::Reset);
    assert_eq!(at(reset, 3, &policy), after_ms(4000), "somebody was there");
}

#[test]
fn without_anybody_waiting_load_is_outlasted_and_the_rest_is_counted() {
    let policy = RetryPolicy { unattended: true, ..RetryPolicy::default() };
    let at = |kind: ErrorKind, progress, advice| {
        plan(&error(kind), advice, progress, Caller::default(), 0.0, &policy)
    };
    let others = |other| Progress { retries: 20, other, ..Progress::default() };
    let longest = after_ms(300_000);
    let six_hours = after_ms(21_600_000);
    for load in [ErrorKind::Overloaded, ErrorKind::RateLimited] {
        assert_eq!(at(load, others(UNATTENDED_RETRIES_MAX), Advice::default()), longest);
    }
    assert_eq!(at(ErrorKind::Server, others(UNATTENDED_RETRIES_MAX - 1), Advice::default()), longest);
    assert_eq!(at(ErrorKind::Server, others(UNATTENDED_RETRIES_MAX), Advice::default()), Retry::GiveUp);
    assert_eq!(at(ErrorKind::Billing, others(0), told(true)), Retry::GiveUp);

    let hour = Duration::from_secs(3600);
    let lifted = Advice { reset_after: Some(hour), ..Advice::default() };
    assert_eq!(at(ErrorKind::RateLimited, others(0), lifted), Retry::After(hour));
    assert_eq!(at(ErrorKind::Overloaded, others(0), lifted), longest, "that is about another limit");
    let day = Advice { reset_after: Some(24 * hour), ..Advice::default() };
    assert_eq!(at(ErrorKind::RateLimited, others(0), day), six_hours);
    let both = Advice { retry_after: Some(Duration::from_secs(7)), ..day };
    assert_eq!(at(ErrorKind::RateLimited, others(0), both), after_ms(7000), "the nearer word wins");
}

#[test]
fn failures_are_counted_by_what_they_are() {
    use ErrorKind::*;
    let refused = Connection(TransportErrorKind::Refused);
    let mut progress = Progress::default();
    for kind in [Overloaded, Overloaded, RateLimited, Stalled, refused.clone(), refused, Server] {
        progress.count(&kind);
    }
    let expected = Progress { retries: 7, other: 4, ..Progress::default() };
    assert_eq!(progress, expected, "what is counted in a row starts over");
    progress.count(&Overloaded);
    progress.count(&Overloaded);
    assert_eq!((progress.overloads, progress.unreached), (2, 0));
    progress.count(&Connection(TransportErrorKind::Dns));
    progress.count(&Connection(TransportErrorKind::Dns));
    assert_eq!((progress.overloads, progress.unreached), (0, 2));
}

#[test]
fn loop_R10_a_silent_server_is_asked_as_often_as_any_other() {
    for (made, expected) in [(1, after_ms(1000)), (9, after_ms(32_000)), (10, Retry::GiveUp)] {
        check(ErrorKind::Stalled, Advice::default(), retries(made), Source::Foreground, expected);
    }
}

#[test]
fn how_many_retries_there_can_be_is_told_as_it_is() {
    use ErrorKind::*;
    let refused = || Connection(TransportErrorKind::Refused);
    let bound = |kind, progress, fallbacks, policy: &RetryPolicy| {
        retries_max(&kind, progress, Caller { source: Source::Foreground, fallbacks }, policy)
    };
    let patient = &RetryPolicy::default();
    assert_eq!(bound(Stalled, retries(0), 0, patient), 10);
    assert_eq!(bound(Overloaded, retries(9), 0, patient), 10);
    assert_eq!(bound(Overloaded, retries(0), 0, patient), 10);
    // A change of the question is one more than the policy knows of.
    assert_eq!(bound(RequestTooLarge, retries(10), 0, patient), 11);
    // Nobody there: three in a row, whatever came before.
    assert_eq!(bound(refused(), retries(0), 1, patient), 3);
    assert_eq!(bound(refused(), Progress { unreached: 1, ..retries(3) }, 0, patient), 5);
    assert_eq!(bound(refused(), retries(9), 0, patient), 10);
    // Another model is asked after the third overload.
    assert_eq!(bound(Overloaded, retries(0), 1, patient), 2);
    assert_eq!(bound(Overloaded, Progress { overloads: 1, ..retries(4) }, 1, patient), 5);
    // One retry is left for each model that would be asked next, and what others took is gone.
    assert_eq!(bound(Server, retries(0), 1, patient), 9);
    assert_eq!(bound(Server, retries(0), 3, patient), 7);
    assert_eq!(bound(Stalled, retries(0), 3, patient), 10);
    let later = |elsewhere| Progress { elsewhere, ..Progress::default() };
    assert_eq!(bound(Server, later(6), 1, patient), 3);
    assert_eq!(bound(Stalled, later(6), 1, patient), 4);
    assert_eq!(bound(refused(), later(8), 0, patient), 2);
    // Time decides, or nothing.
    let horizon = &RetryPolicy { horizon: Some(Duration::from_secs(60)), ..RetryPolicy::default() };
    assert_eq!(bound(Server, retries(20), 0, horizon), 21);
    assert_eq!(bound(refused(), retries(7), 0, horizon), 8);
    let unattended = &RetryPolicy { unattended: true, ..RetryPolicy::default() };
    assert_eq!(bound(RateLimited, retries(400), 0, unattended), 401);
    assert_eq!(bound(Overloaded, retries(0), 1, unattended), 2);
    assert_eq!(bound(Server, Progress { other: 100, ..retries(150) }, 0, unattended), 350);
}

#[test]
fn all_models_of_a_question_share_its_retries() {
    let at = |retries, elsewhere, fallbacks, kind: ErrorKind, policy: &RetryPolicy| {
        let progress = Progress { retries, elsewhere, ..Progress::default() };
        let caller = Caller { source: Source::Foreground, fallbacks };
        plan(&error(kind), Advice::default(), progress, caller, 0.0, policy)
    };
    let policy = &RetryPolicy::default();
    // The wait begins anew with each model, the number does not.
    assert_eq!(at(0, 9, 0, ErrorKind::Server, policy), after_ms(500));
    assert_eq!(at(0, 10, 0, ErrorKind::Server, policy), Retry::GiveUp);
    assert_eq!(at(3, 6, 0, ErrorKind::Overloaded, policy), after_ms(4000));
    assert_eq!(at(4, 6, 0, ErrorKind::Overloaded, policy), Retry::GiveUp);
    // Whoever is asked next is to have one. What does not lead to another model keeps nothing for it.
    assert_eq!(at(7, 0, 2, ErrorKind::Server, policy), after_ms(32_000));
    assert_eq!(at(8, 0, 2, ErrorKind::Server, policy), Retry::GiveUp);
    assert_eq!(at(9, 0, 2, ErrorKind::RateLimited, policy), after_ms(32_000));
    // Neither counts where time decides.
    let horizon = &RetryPolicy { horizon: Some(Duration::from_secs(60)), ..RetryPolicy::default() };
    assert_eq!(at(1, 50, 2, ErrorKind::Server, horizon), after_ms(1000));
}

#[test]
fn a_horizon_counts_time_instead_of_attempts() {
    let policy = RetryPolicy { horizon: Some(Duration::from_secs(1800)), ..RetryPolicy::default() };
    let at = |retries, seconds, advice| {
        let elapsed = Duration::from_secs(seconds);
        let progress = Progress { retries, elapsed, ..Progress::default() };
        plan(&error(ErrorKind::Overloaded), advice, progress, Caller::default(), 0.0, &policy)
    };
    assert_eq!(at(50, 1200, Advice::default()), after_ms(32_000));
    assert_eq!(at(1, 1799, Advice::default()), after_ms(1000));
    assert_eq!(at(2, 1799, Advice::default()), Retry::GiveUp);
    assert_eq!(at(0, 1700, asked(Duration::from_secs(101))), Retry::GiveUp);
}

#[test]
fn an_overflow_is_answered_with_fewer_tokens() {
    let overflow = |input, limit| ErrorKind::OutputOverflow { input, max_tokens: 128_000, limit };
    for (kind, sent, expected) in [
        (overflow(178_959, 200_000), 128_000, Some(20_041)),
        (overflow(196_000, 200_000), 128_000, Some(3000)),
        (overflow(196_001, 200_000), 128_000, Some(3000)),
        (overflow(197_000, 200_000), 128_000, Some(3000)),
        (overflow(197_001, 200_000), 128_000, None),
        (overflow(199_500, 200_000), 128_000, None),
        (overflow(300_000, 200_000), 128_000, None),
        (overflow(0, u64::MAX), 128_000, None),
        (overflow(100_000, 200_000), 4000, None),
        (ErrorKind::MaxTokensTooHigh { limit: 8192 }, 16_000, Some(8192)),
        (ErrorKind::MaxTokensTooHigh { limit: 8192 }, 8192, None),
        (ErrorKind::MaxTokensTooHigh { limit: 0 }, 8192, None),
        (ErrorKind::InvalidRequest, 16_000, None),
    ] {
        assert_eq!(fewer_tokens(&kind, sent), expected, "{kind:?}");
    }
}

#[test]
fn headers_are_read_in_every_form() {
    let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
    let check = |headers: &[(&'static str, &str)], retry_after_ms: Option<u64>, should_retry| {
        let headers =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        let retry_after = retry_after_ms.map(Duration::from_millis);
        let expected = Advice { retry_after, should_retry, reset_after: None };
        assert_eq!(advice(&headers, now), expected, "{headers:?}");
    };
    check(&[], None, None);
    check(&[("retry-after", "90")], Some(90_000), None);
    // What is no time that anybody could wait says nothing.
    for nothing in ["inf", "-inf", "infinity", "NaN", "-5", "-0", "1e999"] {
        check(&[("retry-after", nothing)], None, None);
        check(&[("retry-after-ms", nothing)], None, None);
        check(&[("retry-after-ms", nothing), ("retry-after", "2")], Some(2_000), None);
    }
    check(&[("retry-after", " 0.25 ")], Some(250), None);
    check(&[("retry-after", "Sun, 15 Nov 2026 12:00:30 GMT")], Some(30_000), None);
    check(&[("retry-after", "Sun, 15 Nov 2026 11:59:30 GMT")], None, None);
    check(&[("retry-after", "Sun, 15 Nov 2026 12:00:00 GMT")], None, None);
    // The two older forms of a date.
    check(&[("retry-after", "Sunday, 15-Nov-26 12:00:30 GMT")], Some(30_000), None);
    check(&[("retry-after", "Sun Nov 15 12:01:00 2026")], Some(60_000), None);
    check(&[("retry-after", "Tue Dec  1 12:00:00 2026")], Some(16 * 86_400_000), None);
    check(&[("retry-after", "Sunday, 15-Nov-26 11:59:30 GMT")], None, None);
    check(&[("retry-after", "Monday, 15-Nov-26 12:00:30 GMT")], None, None);
    check(&[("retry-after", "0")], None, None);
    check(&[("retry-after", "-5")], None, None);
    check(&[("retry-after", "soon")], None, None);
    check(&[("retry-after", "NaN")], None, None);
    check(&[("retry-after-ms", "1500"), ("retry-after", "9")], Some(1500), None);
    check(&[("retry-after-ms", "x"), ("retry-after", "9")], Some(9000), None);
    check(&[("x-should-retry", "true")], None, Some(true));
    check(&[("x-should-retry", "false")], None, Some(false));
    check(&[("x-should-retry", "perhaps")], None, None);
    let headers = HeaderMap::from_iter([("retry-after".parse().unwrap(), "1e300".parse().unwrap())]);
    assert_eq!(advice(&headers, now).retry_after, Some(Duration::MAX));
    let reset = |at: &str| {
        let headers =
            [("anthropic-ratelimit-requests-remaining", "0"), ("anthropic-ratelimit-requests-reset", at)];
        let headers =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        advice(&headers, now).reset_after
    };
    assert_eq!(reset("2026-11-15T12:01:00Z"), Some(Duration::from_secs(60)));
    assert_eq!(reset("2026-11-15T11:01:00Z"), None);
    assert_eq!(reset("2026-11-15T12:00:00Z"), None);
}

fn kinds() -> impl Strategy<Value = ErrorKind> {
    prop::sample::select(vec![
        ErrorKind::Overloaded,
        ErrorKind::RateLimited,
        ErrorKind::Server,
        ErrorKind::Stalled,
        ErrorKind::StreamCut,
        ErrorKind::Billing,
        ErrorKind::InvalidRequest,
        ErrorKind::Connection(TransportErrorKind::Refused),
        ErrorKind::Connection(TransportErrorKind::Reset),
    ])
}

fn advices() -> impl Strategy<Value = Advice> {
    let ms = || proptest::option::weighted(0.3, (0_u64..100_000_000).prop_map(Duration::from_millis));
    let should_retry = proptest::option::weighted(0.2, any::<bool>());
    (ms(), should_retry, ms()).prop_map(|(retry_after, should_retry, reset_after)| Advice {
        retry_after,
        should_retry,
        reset_after,
    })
}

/// Fails in these ways, again and again, until the plan is to give up or there were enough failures. Returns how
/// far it came.
fn fail_on(
    failures: &[(ErrorKind, Advice, f64)],
    caller: Caller,
    policy: &RetryPolicy,
    mut each: impl FnMut(&ErrorKind, Advice, Progress, Duration),
) -> (Progress, bool) {
    let mut progress = Progress::default();
    for (kind, advice, jitter) in failures.iter().cycle().take(2000) {
        let Retry::After(wait) = plan(&error(kind.clone()), *advice, progress, caller, *jitter, policy)
        else {
            return (progress, true);
        };
        each(kind, *advice, progress, wait);
        progress.elapsed += wait;
        progress.count(kind);
    }
    (progress, false)
}

fn failures() -> impl Strategy<Value = Vec<(ErrorKind, Advice, f64)>> {
    proptest::collection::vec((kinds(), advices(), 0.0..1.0_f64), 1..20)
}

fn callers() -> impl Strategy<Value = Caller> {
    let source = prop_oneof![Just(Source::Foreground), Just(Source::Background)];
    (source, 0..4_u32).prop_map(|(source, fallbacks)| Caller { source, fallbacks })
}

proptest! {
    #[test]
    fn jitter_adds_a_quarter_at_most(made in 0_u32..10, jitter in 0.0..1.0_f64) {
        let policy = RetryPolicy::default();
        let wait = |jitter| plan(&error(ErrorKind::Server), Advice::default(), retries(made), Caller::default(), jitter, &policy);
        let (Retry::After(least), Retry::After(some)) = (wait(0.0), wait(jitter)) else { panic!("gave up") };
        prop_assert!(least <= some && some <= least.mul_f64(1.25));
        prop_assert!(least <= policy.cap);
    }

    /// Ten retries at most; each wait is the server's own or 500 ms doubled up to 32 s, and a quarter of that.
    #[test]
    fn every_run_of_failures_ends_within_bounds(failures in failures(), caller in callers()) {
        let policy = RetryPolicy::default();
        let (progress, ended) = fail_on(&failures, caller, &policy, |_, advice, progress, wait| {
            let least = Duration::from_millis(500 << progress.retries.min(6)).min(Duration::from_secs(32));
            match advice.retry_after {
                Some(asked) => {
                    assert_eq!(wait, asked.max(Duration::from_millis(100)));
                    assert!(wait <= policy.retry_after_max);
                }
                None => assert!(least <= wait && wait <= least.mul_f64(1.25), "{wait:?}"),
            }
        });
        prop_assert!(ended && progress.retries <= policy.retries_max);
        prop_assert!(progress.elapsed <= policy.retry_after_max * policy.retries_max);
        let fallback_used = caller.fallbacks > 0 && progress.overloads >= 3;
        prop_assert!(!fallback_used, "a fourth overload in a row");
    }

    #[test]
    fn a_horizon_is_never_passed(failures in failures(), horizon in 0_u64..10_000) {
        let horizon = Duration::from_secs(horizon);
        let policy = RetryPolicy { horizon: Some(horizon), ..RetryPolicy::default() };
        let (progress, _) = fail_on(&failures, Caller::default(), &policy, |_, _, _, _| {});
        prop_assert!(progress.elapsed <= horizon, "{:?}", progress.elapsed);
    }

    /// Only load is repeated without end, and even then no single wait is longer than six hours.
    #[test]
    fn an_unattended_run_waits_within_bounds(failures in failures(), caller in callers()) {
        let policy = RetryPolicy { unattended: true, ..RetryPolicy::default() };
        let (progress, ended) = fail_on(&failures, caller, &policy, |kind, advice, _, wait| {
            assert_ne!(*kind, ErrorKind::Billing);
            let ours = advice.retry_after.is_none() && advice.reset_after.is_none();
            assert!(wait <= if ours { UNATTENDED_CAP.mul_f64(1.25) } else { UNATTENDED_RESET_MAX });
        });
        prop_assert!(progress.other <= UNATTENDED_RETRIES_MAX);
        let only_load = failures.iter().all(|(kind, advice, _)| is_load(kind) && advice.should_retry != Some(false));
        if only_load && caller == Caller::default() {
            prop_assert!(!ended);
        }
    }
}
