//! Answers that are no success.

use super::*;

fn overloaded() -> Turn {
    error(529, "overloaded_error", "Overloaded", &[])
}

#[tokio::test(start_paused = true)]
async fn loop_R1_an_overload_is_retried_for_those_who_wait() {
    let outcome = play_through([overloaded(), overloaded(), events(HELLO)]).await;
    expect![[r#"
        requesting 1
        retry 1 in 500ms: 529 overloaded_error: Overloaded
        requesting 2
        retry 2 in 1s: 529 overloaded_error: Overloaded
        requesting 3
        started msg_1 m-1
        opened text
        text "hel"
        text "lo"
        block {"type":"text","text":"hello"}
        event {"type":"content_block_stop","index":0}
        event {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":57}}
        event {"type":"message_stop"}
        finished end_turn, 57 tokens
    "#]]
    .assert_eq(&outcome.log);
    assert_eq!(outcome.took, Duration::from_millis(1500));
}

#[tokio::test(start_paused = true)]
async fn loop_R1_background_work_gives_way_to_an_overload() {
    let background = Ask { source: Source::Background, ..an_ask() };
    let outcome = play_ask(background.clone(), RetryPolicy::default(), [overloaded()]).await;
    assert!(
        outcome.log.ends_with("failed Overloaded: 529 overloaded_error: Overloaded\n"),
        "{}",
        outcome.log
    );
    assert_eq!(outcome.took, Duration::ZERO);
    let mid_stream = events([START, r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#]);
    let outcome = play_ask(background, RetryPolicy::default(), [mid_stream]).await;
    assert!(
        outcome.log.ends_with("failed Overloaded: overloaded_error: m (request req_7)\n"),
        "{}",
        outcome.log
    );
}

#[tokio::test(start_paused = true)]
async fn loop_R2_with_a_fallback_the_third_overload_in_a_row_is_the_last() {
    let ready = Ask { fallbacks: 1, ..an_ask() };
    let in_stream =
        || events([START, r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#]);
    let outcome =
        play_ask(ready.clone(), RetryPolicy::default(), [overloaded(), in_stream(), overloaded()]).await;
    let Step::Failed(failed) = &outcome.last else { panic!("{}", outcome.log) };
    assert_eq!((&failed.kind, failed.attempts()), (&ErrorKind::Overloaded, 3), "{}", outcome.log);
    assert_eq!(outcome.took, Duration::from_millis(1500));

    // Patience does not help a model that another one can stand in for.
    let patient = RetryPolicy { unattended: true, horizon: Some(seconds(1800)), ..RetryPolicy::default() };
    let outcome = play_ask(ready.clone(), patient, std::iter::repeat_n(overloaded(), 3)).await;
    assert!(
        outcome.log.ends_with("failed Overloaded: 529 overloaded_error: Overloaded\n"),
        "{}",
        outcome.log
    );

    // In a row: anything else in between starts the count again.
    let other = || error(500, "api_error", "m", &[]);
    let turns = [overloaded(), overloaded(), other(), overloaded(), in_stream(), other(), events(HELLO)];
    let outcome = play_ask(ready, RetryPolicy::default(), turns).await;
    assert!(outcome.log.ends_with("finished end_turn, 57 tokens\n"), "{}", outcome.log);
}

#[tokio::test(start_paused = true)]
async fn where_nobody_is_the_call_ends_within_seconds() {
    for kind in [TransportErrorKind::Refused, TransportErrorKind::Dns] {
        let outcome = play_through(std::iter::repeat_n(Turn::Fail(kind), 4)).await;
        assert!(matches!(&outcome.last, Step::Failed(error) if error.kind == ErrorKind::Connection(kind)));
        assert_eq!(outcome.took, Duration::from_millis(3500));
    }
    // A server that is there and restarts is not nobody.
    let gone = || std::iter::repeat_n(Turn::Fail(TransportErrorKind::Refused), 3);
    let turns = gone().chain([overloaded()]).chain(gone()).chain([events(HELLO)]);
    let outcome = play_through(turns).await;
    assert!(outcome.log.ends_with("finished end_turn, 57 tokens\n"), "{}", outcome.log);
    // Whoever says how long to try means it.
    let policy = RetryPolicy { horizon: Some(seconds(600)), ..RetryPolicy::default() };
    let gone = std::iter::repeat_n(Turn::Fail(TransportErrorKind::Refused), 12);
    let outcome = play_ask(an_ask(), policy, gone.chain([events(HELLO)])).await;
    assert!(outcome.log.ends_with("finished end_turn, 57 tokens\n"), "{}", outcome.log);
}

#[tokio::test(start_paused = true)]
async fn loop_R3_a_rate_limit_says_how_long_to_wait() {
    // The scripted clock starts at the beginning of 1970.
    for (name, value, wait) in [
        ("retry-after", "1", Duration::from_secs(1)),
        ("retry-after", "90", Duration::from_secs(90)),
        ("retry-after", "Thu, 01 Jan 1970 00:00:30 GMT", Duration::from_secs(30)),
        ("retry-after-ms", "1500", Duration::from_millis(1500)),
    ] {
        let limited = error(429, "rate_limit_error", "slow down", &[(name, value)]);
        let outcome = play_through([limited, events(HELLO)]).await;
        assert_eq!(outcome.took, wait, "{name}: {value}\n{}", outcome.log);
    }
}

#[tokio::test(start_paused = true)]
async fn loop_R8_an_overflow_is_answered_with_a_smaller_output() {
    let words =
        "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length";
    let overflow = || error(400, "invalid_request_error", words, &[]);
    let outcome = play_through([overflow(), events(HELLO)]).await;
    expect![[r#"
        requesting 1
        retry 1 in 0ns, with 20041 tokens: 400 invalid_request_error: input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length
        requesting 2
        started msg_1 m-1
        opened text
        text "hel"
        text "lo"
        block {"type":"text","text":"hello"}
        event {"type":"content_block_stop","index":0}
        event {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":57}}
        event {"type":"message_stop"}
        finished end_turn, 57 tokens
    "#]].assert_eq(&outcome.log);
    assert_eq!(outcome.sent_max_tokens(), [64_000, 20_041]);
    assert_eq!(outcome.took, Duration::ZERO);
    let Step::Finished(reply) = outcome.last else { panic!("{}", outcome.log) };
    assert_eq!(reply.max_tokens, 20_041);

    // Once only; and not at all when too little would be left.
    let outcome = play_through([overflow(), overflow()]).await;
    assert!(matches!(outcome.last, Step::Failed(ModelError { kind: ErrorKind::OutputOverflow { .. }, .. })));
    let full = error(400, "invalid_request_error", "exceed context limit: 199000 + 64000 > 200000", &[]);
    let outcome = play_through([full]).await;
    let expected = ErrorKind::OutputOverflow { input: 199_000, max_tokens: 64_000, limit: 200_000 };
    assert!(matches!(outcome.last, Step::Failed(error) if error.kind == expected));
}

#[tokio::test(start_paused = true)]
async fn too_high_a_limit_is_lowered_once() {
    let words =
        "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for some-model";
    let too_high = || error(400, "invalid_request_error", words, &[]);
    let outcome = play_through([too_high(), events(HELLO)]).await;
    assert_eq!(outcome.sent_max_tokens(), [64_000, 8192]);
    let outcome = play_through([too_high(), too_high()]).await;
    assert!(matches!(
        outcome.last,
        Step::Failed(ModelError { kind: ErrorKind::MaxTokensTooHigh { limit: 8192 }, .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn loop_R10_what_passes_is_retried() {
    for status in [408, 409, 500, 502, 503, 504, 529] {
        let outcome = play_through([error(status, "", "m", &[]), events(HELLO)]).await;
        assert!(outcome.log.contains(&format!("retry 1 in 500ms: HTTP {status}: m\n")), "{}", outcome.log);
    }
    let told = error(400, "invalid_request_error", "m", &[("x-should-retry", "true")]);
    assert_eq!(play_through([told, events(HELLO)]).await.posts.len(), 2);
    let told = error(500, "api_error", "m", &[("x-should-retry", "false")]);
    assert_eq!(play_through([told]).await.posts.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn loop_R11_anything_else_is_told_with_all_that_is_known() {
    for (status, name, kind) in [
        (400, "invalid_request_error", ErrorKind::InvalidRequest),
        (401, "authentication_error", ErrorKind::Authentication),
        (402, "billing_error", ErrorKind::Billing),
        (403, "permission_error", ErrorKind::Permission),
        (404, "not_found_error", ErrorKind::NotFound),
        (413, "request_too_large", ErrorKind::RequestTooLarge),
    ] {
        // An address that is not found is tried once more, without streaming.
        let posts = if status == 404 { 2 } else { 1 };
        let refusal = error(status, name, "no", &[("request-id", "req_9")]);
        let outcome = play_through(std::iter::repeat_n(refusal, posts)).await;
        let Step::Failed(failed) = outcome.last else { panic!("{}", outcome.log) };
        let expected = ModelError {
            kind,
            status: Some(status),
            error_type: Some(name.to_owned()),
            message: "no".to_owned(),
            request_id: Some("req_9".to_owned()),
            in_answer: false,
            tried: Arc::new(vec![Tried {
                model: an_ask().model,
                status: Some(status),
                kind: failed.kind.clone(),
                times: u32::try_from(posts).unwrap(),
            }]),
        };
        assert_eq!(failed, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn ten_retries_and_no_more() {
    let outcome = play_through(std::iter::repeat_n(overloaded(), 11)).await;
    assert_eq!(outcome.log.matches("retry ").count(), 10);
    assert!(
        outcome.log.ends_with("failed Overloaded: 529 overloaded_error: Overloaded\n"),
        "{}",
        outcome.log
    );
    // 0.5 + 1 + 2 + 4 + 8 + 16 + 4 × 32
    assert_eq!(outcome.took, Duration::from_millis(159_500));
    let Step::Failed(failed) = outcome.last else { panic!("{}", outcome.log) };
    let told = "529 overloaded_error: Overloaded (tried 11 times: some-model 11 × 529)";
    assert_eq!((failed.to_string().as_str(), failed.attempts()), (told, 11));
}

#[tokio::test(start_paused = true)]
async fn pit_L10_an_overload_of_twenty_minutes_is_outlasted_within_a_horizon() {
    let policy = || RetryPolicy { horizon: Some(seconds(1800)), ..RetryPolicy::default() };
    // Half a minute for the first six retries, then one every 32 s: 43 refusals last twenty minutes.
    let refusals = std::iter::repeat_n(overloaded(), 43);
    let outcome = play_ask(an_ask(), policy(), refusals.chain([events(HELLO)])).await;
    assert!(outcome.log.ends_with("finished end_turn, 57 tokens\n"), "{}", outcome.log);
    assert!(outcome.took >= seconds(1200), "{:?}", outcome.took);

    let limited = error(429, "rate_limit_error", "slow down", &[("retry-after", "90")]);
    let outcome = play_ask(an_ask(), policy(), [limited, overloaded(), events(HELLO)]).await;
    assert_eq!(outcome.took, seconds(91), "{}", outcome.log);
    assert!(outcome.log.contains("waiting 60s\nwaiting 30s\n"), "{}", outcome.log);
    assert!(outcome.log.contains("retry 1 in 90s: 429 rate_limit_error: slow down\n"), "{}", outcome.log);
    assert!(outcome.log.contains("retry 2 in 1s: 529 overloaded_error: Overloaded\n"), "{}", outcome.log);

    // Many sessions that were refused at the same moment do not come back at the same moment.
    let world = crate::world::RealWorld::new();
    let waits: std::collections::BTreeSet<Duration> = (0..25)
        .map(|_| {
            let jitter = fraction(world.random());
            let error = ModelError::new(ErrorKind::Overloaded, "m");
            let progress = Progress { retries: 6, ..Progress::default() };
            match retry::plan(&error, Advice::default(), progress, Caller::default(), jitter, &policy()) {
                Retry::After(wait) => wait,
                Retry::GiveUp => panic!("gave up"),
            }
        })
        .collect();
    let spread = *waits.last().unwrap() - *waits.first().unwrap();
    assert!(waits.len() == 25 && spread > seconds(2), "{waits:?}");
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A server that refuses in every way it knows, in any order, for ever.
#[tokio::test(start_paused = true)]
async fn the_requests_of_a_call_are_bounded_whatever_happens() {
    let overflow = "exceed context limit: 100000 + 64000 > 120000";
    let too_high = "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens";
    let ways = [
        overloaded(),
        error(429, "rate_limit_error", "slow down", &[("retry-after", "40")]),
        error(401, "authentication_error", "who?", &[]),
        error(404, "not_found_error", "where?", &[]),
        error(400, "invalid_request_error", overflow, &[]),
        error(400, "invalid_request_error", too_high, &[]),
        error(400, "invalid_request_error", "fast mode is not enabled", &[]),
        error(500, "api_error", "m", &[]),
        acts(vec![]),
        events([START]),
        acts(vec![event(START), Act::Hang]),
        Turn::Fail(TransportErrorKind::Refused),
        Turn::Fail(TransportErrorKind::Reset),
    ];
    // At most one of each change, and between two of them twice new credentials.
    let changes_max = 4;
    let requests_max = 1 + 10 + changes_max + 2 * (changes_max + 1);
    for seed in 0..300_u64 {
        let mut dice = seed;
        let mut roll = || {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ways[(dice >> 33) as usize % ways.len()].clone()
        };
        let server = scripted((0..100).map(|_| roll()));
        let endpoint = Endpoint {
            credentials: Some(Arc::new(renewed::Endless::default())),
            ..Endpoint::new("http://in.memory", Auth::None)
        };
        let ask = Ask { speed: crate::Speed::Fast, ..an_ask() };
        let mut call = client(endpoint, &server, RetryPolicy::default()).call(ask);
        let mut last = None;
        while let Some(step) = call.next().await {
            last = Some(step);
        }
        let requests = server.posts.lock().unwrap().len();
        assert!(requests <= requests_max, "{requests} requests with seed {seed}");
        let Some(Step::Failed(failed)) = last else { panic!("{last:?}") };
        assert_eq!(failed.attempts() as usize, requests);
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_without_its_body_is_still_an_error() {
    let endless = Turn::Answer { status: 500, headers: vec![], acts: vec![Act::Hang] };
    let broken =
        Turn::Answer { status: 500, headers: vec![], acts: vec![Act::Break(TransportErrorKind::Reset)] };
    let flood = Act::Send("x".repeat(3 * 1024 * 1024));
    let flood = Turn::Answer { status: 500, headers: vec![], acts: vec![flood.clone(), flood] };
    let outcome = play_through([endless, broken, flood, events(HELLO)]).await;
    assert!(
        outcome.log.contains("retry 1 in 500ms: HTTP 500: the server gave no reason\n"),
        "{}",
        outcome.log
    );
    assert!(outcome.log.contains("retry 2 in 1s: HTTP 500: the server gave no reason\n"), "{}", outcome.log);
    assert!(outcome.log.contains("retry 3 in 2s: HTTP 500: xxx"), "{}", outcome.log);
    assert_eq!(outcome.took, attempt::ERROR_WAIT + Duration::from_millis(3500));
}

#[tokio::test(start_paused = true)]
async fn a_redirect_is_not_followed() {
    let moved = Turn::Answer { status: 307, headers: vec![("location", "http://elsewhere")], acts: vec![] };
    let outcome = play_through([moved]).await;
    assert!(
        outcome.log.contains("failed Other: HTTP 307: the server points to another address"),
        "{}",
        outcome.log
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_tried_is_listed_by_how_it_failed() {
    let nobody = || Turn::Fail(TransportErrorKind::Reset);
    let in_stream =
        || events([START, r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#]);
    let turns =
        [overloaded(), nobody(), overloaded(), in_stream(), error(400, "invalid_request_error", "no", &[])];
    let outcome = play_through(turns).await;
    let Step::Failed(failed) = outcome.last else { panic!("{}", outcome.log) };
    assert_eq!(
        failed.to_string(),
        "400 invalid_request_error: no (tried 5 times: some-model 2 × 529, 1 × no connection, 1 × overloaded, \
         1 × 400)"
    );
}
