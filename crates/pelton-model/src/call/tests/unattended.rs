//! Nobody waits.

use super::*;

fn unattended() -> RetryPolicy {
    RetryPolicy { unattended: true, ..RetryPolicy::default() }
}

fn overloaded() -> Turn {
    error(529, "overloaded_error", "Overloaded", &[])
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn loop_R12_limits_and_overload_are_outlasted_without_end() {
    let limited = || error(429, "rate_limit_error", "slow down", &[]);
    let turns = (0..1000).map(|at| if at % 2 == 0 { overloaded() } else { limited() });
    let outcome = play_ask(an_ask(), unattended(), turns.chain([events(HELLO)])).await;
    assert!(outcome.log.ends_with("finished end_turn, 57 tokens\n"), "{}", outcome.posts.len());
    // Waits double up to five minutes: 0.5 s to 256 s make 511.5 s, then 990 times the cap.
    assert_eq!(outcome.took, Duration::from_millis(511_500) + seconds(990 * 300));
    assert!(outcome.log.contains("retry 10 in 256s: "));
    assert!(outcome.log.contains("retry 11 in 300s: ") && outcome.log.contains("retry 1000 in 300s: "));
}

#[tokio::test(start_paused = true)]
async fn loop_R12_a_wait_gives_a_sign_every_half_minute() {
    let limited = error(429, "rate_limit_error", "slow down", &[("retry-after", "100")]);
    let (_, mut call) = start(an_ask(), unattended(), [limited, events(HELLO)]);
    let began = Instant::now();
    let mut signs = Vec::new();
    while let Some(step) = call.next().await {
        if let Step::Waiting { left } = step {
            signs.push((began.elapsed(), left));
        }
    }
    let expected = [(30, 70), (60, 40), (90, 10)].map(|(at, left)| (seconds(at), seconds(left)));
    assert_eq!(signs, expected);
}

#[tokio::test(start_paused = true)]
async fn loop_R12_a_limit_is_waited_out_until_it_is_lifted_or_six_hours() {
    // The scripted clock starts at the beginning of 1970.
    for (headers, wait) in [
        (vec![("retry-after", "7200")], 7200),
        (vec![("retry-after", "90000")], 6 * 3600),
        (
            vec![
                ("anthropic-ratelimit-tokens-remaining", "0"),
                ("anthropic-ratelimit-tokens-reset", "1970-01-01T02:30:00Z"),
                ("anthropic-ratelimit-requests-remaining", "7"),
                ("anthropic-ratelimit-requests-reset", "1970-01-01T05:00:00Z"),
            ],
            9000,
        ),
        (vec![("anthropic-ratelimit-unified-reset", "604800")], 6 * 3600),
    ] {
        let limited = error(429, "rate_limit_error", "slow down", &headers);
        let outcome = play_ask(an_ask(), unattended(), [limited, events(HELLO)]).await;
        assert_eq!(outcome.took, seconds(wait), "{headers:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn loop_R12_anything_else_is_repeated_three_hundred_times() {
    let failing = || error(500, "api_error", "m", &[]);
    let stalled = || acts(vec![event(START), Act::Hang]);
    // What is load does not count.
    let turns = (0..900).map(|at| match at % 3 {
        0 => overloaded(),
        1 => failing(),
        _ => overloaded(),
    });
    let outcome = play_ask(an_ask(), unattended(), turns.chain([stalled()])).await;
    assert!(
        outcome
            .log
            .ends_with("failed Stalled: nothing came from the server for 300 seconds (request req_7)\n")
    );
    let outcome = play_ask(an_ask(), unattended(), [stalled(), stalled(), stalled(), events(HELLO)]).await;
    assert!(outcome.log.ends_with("finished end_turn, 57 tokens\n"), "{}", outcome.log);
}

#[tokio::test(start_paused = true)]
async fn loop_R12_a_limit_on_spending_ends_it_at_once() {
    let code = r#"{"type":"error","error":{"type":"rate_limit_error","message":"m","details":{"error_code":"enforced_spend_limit_reached"}}}"#;
    let coded = Turn::Answer { status: 429, headers: vec![], acts: vec![Act::Send(code.to_owned())] };
    let asks_again = [("x-should-retry", "true"), ("retry-after", "5")];
    for refusal in [
        coded,
        error(402, "billing_error", "m", &asks_again),
        error(400, "invalid_request_error", "Your credit balance is too low", &asks_again),
    ] {
        let outcome = play_ask(an_ask(), unattended(), [refusal]).await;
        assert!(outcome.log.contains("failed Billing: "), "{}", outcome.log);
        assert_eq!(outcome.took, Duration::ZERO);
    }
    // Nor is a request repeated that is wrong, and background work still gives way.
    let wrong = error(400, "invalid_request_error", "m", &[]);
    assert_eq!(play_ask(an_ask(), unattended(), [wrong]).await.posts.len(), 1);
    let background = Ask { source: Source::Background, ..an_ask() };
    assert_eq!(play_ask(background, unattended(), [overloaded()]).await.posts.len(), 1);
}
