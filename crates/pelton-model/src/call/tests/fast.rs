//! The fast mode.

use super::*;
use crate::{FastMode, Speed};

fn fast(model: &str) -> Ask {
    Ask { model: model.to_owned(), speed: Speed::Fast, ..an_ask() }
}

fn limited(retry_after: &'static str) -> Turn {
    error(429, "rate_limit_error", "fast mode rate limit reached", &[("retry-after", retry_after)])
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Plays to a client that stays for further questions.
async fn stage(turns: impl IntoIterator<Item = Turn>) -> (Client, Arc<Scripted>) {
    let server = scripted(turns);
    let endpoint = Endpoint::new("http://in.memory", Auth::None);
    (client(endpoint, &server, RetryPolicy::default()), server)
}

fn speeds(outcome: &Outcome) -> Vec<Option<String>> {
    outcome.posts.iter().map(|post| sent(post)["speed"].as_str().map(str::to_owned)).collect()
}

fn spoken(speeds: &[Option<&str>]) -> Vec<Option<String>> {
    speeds.iter().map(|speed| speed.map(str::to_owned)).collect()
}

const FAST: Option<&str> = Some("fast");

#[tokio::test(start_paused = true)]
async fn speed_is_asked_for_where_it_is_to_be_had() {
    let beta = Some("fast-mode-2026-02-01");
    for (model, speed, header_sent) in [
        ("claude-opus-5-5", FAST, None),
        ("claude-opus-5", FAST, beta),
        ("claude-opus-4-8-20260101", FAST, beta),
        ("claude-sonnet-5-5", None, None),
        ("somebody-elses", FAST, None),
    ] {
        let outcome = play_ask(fast(model), RetryPolicy::default(), [events(HELLO)]).await;
        assert_eq!(speeds(&outcome), spoken(&[speed]), "{model}");
        assert_eq!(header(&outcome.posts[0], "anthropic-beta"), header_sent, "{model}");
        let outcome =
            play_ask(Ask { speed: Speed::Standard, ..fast(model) }, RetryPolicy::default(), [events(HELLO)])
                .await;
        assert_eq!((speeds(&outcome), header(&outcome.posts[0], "anthropic-beta")), (spoken(&[None]), None));
    }
}

#[tokio::test(start_paused = true)]
async fn betas_are_added_to_the_ones_that_are_set() {
    for (betas, custom, expected) in [
        (vec!["a-1"], None, "a-1,fast-mode-2026-02-01"),
        (vec!["fast-mode-2026-02-01", "a-1"], None, "fast-mode-2026-02-01,a-1"),
        (vec!["a-1"], Some("b-2"), "b-2,fast-mode-2026-02-01"),
    ] {
        let server = scripted([events(HELLO)]);
        let custom_headers = custom.map(|value: &str| ("anthropic-beta".to_owned(), value.to_owned()));
        let endpoint = Endpoint {
            betas: betas.into_iter().map(str::to_owned).collect(),
            custom_headers: custom_headers.into_iter().collect(),
            ..Endpoint::new("http://in.memory", Auth::None)
        };
        let client = client(endpoint, &server, RetryPolicy::default());
        let outcome = play_on(&client, &server, fast("claude-opus-5")).await;
        assert_eq!(header(&outcome.posts[0], "anthropic-beta"), Some(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn betas_that_a_server_refused_are_left_out_with_what_needs_them() {
    for (refused, speed, header_sent) in [
        (vec!["a-1"], FAST, Some("b-2,fast-mode-2026-02-01")),
        (vec!["fast-mode-2026-02-01"], None, Some("a-1,b-2")),
        (vec![], None, None),
    ] {
        let server = scripted([events(HELLO)]);
        let betas = ["a-1", "b-2"].map(str::to_owned).to_vec();
        let endpoint = Endpoint { betas, ..Endpoint::new("http://in.memory", Auth::None) };
        let mut ask = fast("claude-opus-5");
        let refused: Vec<String> = refused.into_iter().map(str::to_owned).collect();
        ask.refused_betas.add(&refused);
        let outcome = play_on(&client(endpoint, &server, RetryPolicy::default()), &server, ask).await;
        assert_eq!(speeds(&outcome), spoken(&[speed]), "{refused:?}");
        assert_eq!(header(&outcome.posts[0], "anthropic-beta"), header_sent, "{refused:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn loop_R3_a_short_wait_keeps_fast_mode_and_a_long_one_does_without_for_a_while() {
    let model = "claude-opus-5-5";
    let (client, server) = stage([limited("15"), events(HELLO)]).await;
    let outcome = play_on(&client, &server, fast(model)).await;
    assert_eq!((speeds(&outcome), outcome.took), (spoken(&[FAST, FAST]), seconds(15)));
    assert_eq!(client.fast_mode(), FastMode::On);

    // Standard speed has a limit of its own: it is asked for at once.
    let (client, server) = stage([limited("16"), events(HELLO), events(HELLO), events(HELLO)]).await;
    server.turns.lock().unwrap().truncate(2);
    let outcome = play_on(&client, &server, fast(model)).await;
    assert_eq!((speeds(&outcome), outcome.took), (spoken(&[FAST, None]), Duration::ZERO));
    assert_eq!(client.fast_mode(), FastMode::Cooldown { left: seconds(300) });

    // Every call of the client knows, until the time is over.
    for (waited, expected) in [(299, None), (1, FAST)] {
        tokio::time::sleep(seconds(waited)).await;
        server.turns.lock().unwrap().push_back(events(HELLO));
        let outcome = play_on(&client, &server, fast(model)).await;
        assert_eq!(speeds(&outcome), spoken(&[expected]));
    }
    assert_eq!(client.fast_mode(), FastMode::On);

    // A server that says how long is believed; so is one that would not be waited for at all.
    for asked in ["1200", "7200"] {
        let (client, server) = stage([limited(asked), events(HELLO)]).await;
        play_on(&client, &server, fast(model)).await;
        assert_eq!(client.fast_mode(), FastMode::Cooldown { left: seconds(asked.parse().unwrap()) });
    }

    // Both numbers are settings.
    let policy =
        RetryPolicy { fast_wait_max: seconds(2), fast_cooldown: seconds(600), ..RetryPolicy::default() };
    let server = scripted([limited("3"), events(HELLO)]);
    let client = super::client(Endpoint::new("http://in.memory", Auth::None), &server, policy);
    play_on(&client, &server, fast(model)).await;
    assert_eq!(client.fast_mode(), FastMode::Cooldown { left: seconds(600) });
}

#[tokio::test(start_paused = true)]
async fn loop_R3_without_a_wait_from_the_server_our_own_is_what_counts() {
    let limited = || error(429, "rate_limit_error", "slow down", &[]);
    // 0.5, 1, 2, 4 and 8 seconds are borne; 16 are not.
    let (client, server) = stage(std::iter::repeat_n(limited(), 6).chain([events(HELLO)])).await;
    let outcome = play_on(&client, &server, fast("claude-opus-5-5")).await;
    assert_eq!(speeds(&outcome)[5..], spoken(&[FAST, None]));
    assert_eq!(outcome.took, Duration::from_millis(15_500));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_slowed_down_stays_so() {
    // The cooldown is over before the standard limit is.
    let standard = || error(429, "rate_limit_error", "slow down", &[("retry-after", "600")]);
    let (client, server) = stage([limited("60"), standard(), events(HELLO)]).await;
    let outcome = play_on(&client, &server, fast("claude-opus-5-5")).await;
    assert_eq!(speeds(&outcome), spoken(&[FAST, None, None]));
    assert_eq!(client.fast_mode(), FastMode::On);
}

#[tokio::test(start_paused = true)]
async fn loop_R9_a_refusal_of_fast_mode_turns_it_off_for_good() {
    for (status, words) in [
        (400, "Fast mode is not enabled for your organization."),
        (400, "speed: Extra inputs are not permitted"),
        (400, "Unexpected value(s) `fast-mode-2026-02-01` for the `anthropic-beta` header."),
        (403, "Fast mode overage is not allowed for this account."),
        (429, "Fast mode requires extra usage, which is disabled."),
    ] {
        let refusal = error(status, "invalid_request_error", words, &[("retry-after", "9")]);
        let (client, server) = stage([refusal, events(HELLO)]).await;
        let outcome = play_on(&client, &server, fast("claude-opus-5")).await;
        assert_eq!((speeds(&outcome), outcome.took), (spoken(&[FAST, None]), Duration::ZERO), "{words}");
        assert_eq!(header(&outcome.posts[1], "anthropic-beta"), None);
        assert_eq!(client.fast_mode(), FastMode::Off);
        tokio::time::sleep(seconds(100_000)).await;
        server.turns.lock().unwrap().push_back(events(HELLO));
        let outcome = play_on(&client, &server, fast("claude-opus-5")).await;
        assert_eq!(speeds(&outcome), spoken(&[None]), "{words}");
    }
    // Whoever did not ask for it is told.
    let refusal = error(400, "invalid_request_error", "Fast mode is not enabled", &[]);
    let outcome = play_through([refusal]).await;
    assert!(outcome.log.contains("failed FastModeRefused: 400"), "{}", outcome.log);
}
