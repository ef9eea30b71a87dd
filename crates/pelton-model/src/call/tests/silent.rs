//! Streams that say nothing.

use super::*;

fn every_ten_seconds(text: &str, seconds: u64) -> Vec<Act> {
    (0..seconds / 10).flat_map(|_| [Act::Wait(10), Act::Send(text.to_owned())]).collect()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The scripted silences, each followed by a good answer, and how long they are borne.
async fn check(silence: Turn, borne: Duration) -> Outcome {
    let outcome = play_through([silence, events(HELLO)]).await;
    assert_eq!(outcome.took, borne + Duration::from_millis(500), "{}", outcome.log);
    assert!(outcome.log.contains("stalled 15s\n"), "{}", outcome.log);
    assert!(outcome.log.contains("nothing came from the server for"), "{}", outcome.log);
    assert!(outcome.log.ends_with("finished end_turn, 57 tokens\n"), "{}", outcome.log);
    assert!(outcome.posts[1].fresh_connection);
    outcome
}

#[tokio::test(start_paused = true)]
async fn loop_M5_a_silent_server_is_cut_and_asked_again() {
    // Accepted, and then nothing at all; a head, and then nothing; one delta, and then nothing.
    check(Turn::Hang, seconds(300)).await;
    check(acts(vec![Act::Hang]), seconds(300)).await;
    let outcome =
        check(acts(vec![event(START), event(TEXT_START), event(HEL), Act::Hang]), seconds(300)).await;
    assert!(outcome.log.contains("retry 1 in 500ms, taken back: "), "{}", outcome.log);
}

#[tokio::test(start_paused = true)]
async fn loop_M5_comments_and_bytes_are_no_signs_of_life() {
    check(acts(every_ten_seconds(": still here\n\n", 400)), seconds(300)).await;
    let dripping = std::iter::once(event(START))
        .chain([Act::Send("data: {\"type\":\"".to_owned())])
        .chain(every_ten_seconds("x", 400));
    check(acts(dripping.collect()), seconds(300)).await;
    // The same of an answer in one piece, which has begun at ten seconds.
    let whole =
        [Act::Wait(10), Act::Send("{\"type\":".to_owned())].into_iter().chain(every_ten_seconds(" ", 400));
    check(acts(whole.collect()), seconds(310)).await;
}

#[tokio::test(start_paused = true)]
async fn loop_M5_pings_alone_are_borne_longer_but_not_for_ever() {
    let ping = format!("data: {PING}\n\n");
    check(acts(every_ten_seconds(&ping, 1000)), seconds(900)).await;
    // So are events that nobody knows.
    let unknown = "event: keepalive\ndata: {}\n\n";
    check(acts(every_ten_seconds(unknown, 1000)), seconds(900)).await;
}

#[tokio::test(start_paused = true)]
async fn long_thinking_with_pings_is_not_cut() {
    let ping = format!("data: {PING}\n\n");
    let mut script = vec![event(START)];
    script.extend(every_ten_seconds(&ping, 800));
    script.extend(HELLO[1..].iter().map(|data| event(data)));
    let outcome = play_through([acts(script)]).await;
    assert_eq!(outcome.log.matches("stalled 15s\n").count(), 1, "{}", outcome.log);
    assert!(outcome.log.ends_with("finished end_turn, 57 tokens\n"), "{}", outcome.log);
    assert_eq!(outcome.posts.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_slow_stream_is_left_alone() {
    let slow = HELLO.iter().flat_map(|data| [Act::Wait(14), event(data)]).collect();
    let outcome = play_through([acts(slow)]).await;
    assert!(!outcome.log.contains("stalled"), "{}", outcome.log);
    let slower = HELLO.iter().flat_map(|data| [Act::Wait(20), event(data)]).collect();
    let outcome = play_through([acts(slower)]).await;
    assert_eq!(outcome.log.matches("stalled 15s\n").count(), 7, "{}", outcome.log);
    assert_eq!(outcome.posts.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stays_silent_is_given_up() {
    let outcome = play_through((0..11).map(|_| Turn::Hang)).await;
    assert!(
        outcome.log.ends_with("failed Stalled: nothing came from the server for 300 seconds\n"),
        "{}",
        outcome.log
    );
    assert_eq!(outcome.log.matches("\nretry ").count(), 10, "like any other failure that passes");
}

#[tokio::test(start_paused = true)]
async fn what_is_complete_is_kept_when_the_rest_stalls() {
    let script = [START, TEXT_START, HEL, TEXT_STOP].map(event).into_iter().chain([Act::Hang]).collect();
    let outcome = play_through([acts(script)]).await;
    let end =
        "finished end_turn, 1 tokens, cut: nothing came from the server for 300 seconds (request req_7)\n";
    assert!(outcome.log.ends_with(end), "{}", outcome.log);
}

#[tokio::test(start_paused = true)]
async fn a_reader_who_was_away_does_not_blame_the_server() {
    // More than the queue holds comes at once, so that nobody listens to the server while the reader is away.
    let many = [START, TEXT_START].into_iter().chain(std::iter::repeat_n(HEL, 2 * STEPS_QUEUED_MAX));
    let burst: String = many.map(|data| format!("data: {data}\n\n")).collect();
    let script = [Act::Send(burst), Act::Wait(5)].into_iter().chain([TEXT_STOP, END, STOP].map(event));
    let (_, mut call) = start(an_ask(), RetryPolicy::default(), [acts(script.collect())]);
    while !matches!(call.next().await, Some(Step::Started(_))) {}
    tokio::time::sleep(seconds(400)).await;
    let rest: Vec<_> = call.collect().await;
    assert!(matches!(rest.last(), Some(Step::Finished(_))), "{:?}", rest.last());
    assert!(!rest.iter().any(|step| matches!(step, Step::Stalled { .. } | Step::Retry(_))));
}

#[tokio::test(start_paused = true)]
async fn limits_are_settings() {
    let policy =
        RetryPolicy { idle: seconds(20), notice: seconds(5), retries_max: 0, ..RetryPolicy::default() };
    let outcome = play_ask(an_ask(), policy, [Turn::Hang]).await;
    assert!(outcome.log.contains("stalled 5s\n"), "{}", outcome.log);
    assert_eq!(outcome.took, seconds(20));
}

#[tokio::test(start_paused = true)]
async fn a_short_silence_is_told_in_milliseconds() {
    for (ms, words) in [(700, "700 milliseconds"), (1_000, "1 second"), (2_900, "2 seconds")] {
        let policy =
            RetryPolicy { idle: Duration::from_millis(ms), retries_max: 0, ..RetryPolicy::default() };
        let outcome = play_ask(an_ask(), policy, [Turn::Hang]).await;
        let end = format!("failed Stalled: nothing came from the server for {words}\n");
        assert!(outcome.log.ends_with(&end), "{}", outcome.log);
        assert!(
            outcome.log.contains(&format!("stalled {:?}\n", Duration::from_millis(ms) / 2)),
            "{}",
            outcome.log
        );
    }
}
