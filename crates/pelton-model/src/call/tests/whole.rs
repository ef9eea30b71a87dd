//! Answers in one piece, when streams do not come through.

use super::renewed::{Endless, play_with};
use super::*;
use crate::credentials::Credentials;

const WHOLE: &str = r#"{"type":"message","id":"msg_2","model":"m-1","role":"assistant",
    "content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":57}}"#;

fn whole() -> Turn {
    acts(vec![Act::Send(WHOLE.to_owned())])
}

fn streaming(outcome: &Outcome) -> Vec<bool> {
    outcome.posts.iter().map(|post| sent(post)["stream"].as_bool().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn loop_M6_the_second_broken_stream_is_followed_by_one_request_without_streaming() {
    let cut = || events([START, TEXT_START, HEL]);
    let outcome = play_through([cut(), cut(), whole()]).await;
    expect![[r#"
        requesting 1
        started msg_1 m-1
        opened text
        text "hel"
        retry 1 in 500ms, taken back: the connection was closed in the middle of the answer (request req_7)
        requesting 2
        started msg_1 m-1
        opened text
        text "hel"
        retry 2 in 0ns, taken back, in one piece, with 21333 tokens: the connection was closed in the middle of the answer (request req_7)
        requesting 3
        started msg_2 m-1
        block {"type":"text","text":"hello"}
        finished end_turn, 57 tokens
    "#]]
    .assert_eq(&outcome.log);
    assert_eq!(streaming(&outcome), [true, true, false]);
    assert_eq!(outcome.sent_max_tokens(), [64_000, 64_000, 21_333]);
    let Step::Finished(reply) = outcome.last else { panic!("{}", outcome.log) };
    assert_eq!(reply.max_tokens, 21_333);

    // Broken in other ways.
    let failing = event(r#"{"type":"error","error":{"type":"api_error","message":"m"}}"#);
    for breaks in [Act::Break(TransportErrorKind::Reset), Act::Hang, failing, event("{\"type")] {
        let broken = || acts(vec![event(START), breaks.clone()]);
        let outcome = play_through([broken(), broken(), whole()]).await;
        assert_eq!(streaming(&outcome), [true, true, false], "{}", outcome.log);
    }
}

#[tokio::test(start_paused = true)]
async fn loop_M6_an_empty_stream_or_a_404_is_followed_by_one_at_once() {
    let not_found = || error(404, "not_found_error", "no streams here", &[("request-id", "req_9")]);
    for turn in [acts(vec![]), events([PING]), not_found()] {
        let outcome = play_through([turn, whole()]).await;
        assert_eq!(streaming(&outcome), [true, false], "{}", outcome.log);
        assert_eq!(outcome.took, Duration::ZERO);
        assert!(outcome.log.ends_with("finished end_turn, 57 tokens\n"), "{}", outcome.log);
    }
    let outcome = play_through([not_found(), not_found()]).await;
    let end = "failed NotFound: 404 not_found_error: no streams here (request req_9)\n";
    assert!(outcome.log.ends_with(end), "{}", outcome.log);
}

#[tokio::test(start_paused = true)]
async fn loop_M6_a_page_for_people_is_asked_about_once_more_and_not_waited_for() {
    let page = || Turn::Answer {
        status: 200,
        headers: vec![("content-type", "Text/HTML; charset=utf-8"), ("request-id", "req_9")],
        acts: vec![Act::Send("<html>Please log in</html>".to_owned())],
    };
    let outcome = play_through([page(), whole()]).await;
    assert_eq!(streaming(&outcome), [true, false], "{}", outcome.log);
    assert!(outcome.log.ends_with("finished end_turn, 57 tokens\n"), "{}", outcome.log);

    let outcome = play_through([page(), page()]).await;
    assert_eq!(streaming(&outcome), [true, false], "{}", outcome.log);
    assert_eq!(outcome.took, Duration::ZERO);
    let end = "failed WebPage: a web page came instead of an answer (request req_9)\n";
    assert!(outcome.log.ends_with(end), "{}", outcome.log);
}

#[tokio::test(start_paused = true)]
async fn loop_M6_there_is_one_such_request_and_the_next_is_a_stream_again() {
    let cut = || events([START]);
    let busy = || error(529, "overloaded_error", "Overloaded", &[]);
    let outcome = play_through([cut(), cut(), busy(), cut(), cut(), acts(vec![]), events(HELLO)]).await;
    assert_eq!(streaming(&outcome), [true, true, false, true, true, true, true]);
    assert_eq!(outcome.sent_max_tokens()[3], 64_000);
}

#[tokio::test(start_paused = true)]
async fn loop_M6_a_server_without_streams_is_asked_for_no_other_however_busy_it_is() {
    let not_found = || error(404, "not_found_error", "no streams here", &[]);
    let busy = || error(529, "overloaded_error", "Overloaded", &[]);
    let reset = || Turn::Fail(TransportErrorKind::Reset);
    let outcome = play_through([not_found(), busy(), reset(), busy(), whole()]).await;
    assert_eq!(streaming(&outcome), [true, false, false, false, false], "{}", outcome.log);
    assert!(outcome.log.ends_with("finished end_turn, 57 tokens\n"), "{}", outcome.log);
    assert_eq!(outcome.log.matches("in one piece").count(), 1, "{}", outcome.log);
    assert!(outcome.took >= Duration::from_millis(500), "busy servers are waited for: {}", outcome.log);
    // What cannot be found in one piece either is not there.
    let outcome = play_through([not_found(), busy(), not_found()]).await;
    assert!(outcome.log.contains("failed NotFound"), "{}", outcome.log);
    assert_eq!(streaming(&outcome), [true, false, false]);
}

#[tokio::test(start_paused = true)]
async fn loop_M6_it_can_be_switched_off_and_is_of_no_use_elsewhere() {
    let off = RetryPolicy { non_streaming_fallback: false, ..RetryPolicy::default() };
    let not_found = || error(404, "not_found_error", "m", &[]);
    let turns = [events([START]), events([START]), acts(vec![]), not_found()];
    let outcome = play_ask(an_ask(), off, turns).await;
    assert!(outcome.log.ends_with("failed NotFound: 404 not_found_error: m\n"), "{}", outcome.log);
    assert_eq!(streaming(&outcome), [true; 4]);
    // Nothing else is left to try.
    let one_piece = Ask { streaming: false, ..an_ask() };
    let outcome = play_ask(one_piece, RetryPolicy::default(), [not_found()]).await;
    assert_eq!(streaming(&outcome), [false]);
    // A server that is only busy says so in a stream as well.
    let busy = || events([START, r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#]);
    let outcome = play_through([busy(), busy(), busy(), events(HELLO)]).await;
    assert_eq!(streaming(&outcome), [true; 4]);
    // One that knows better is believed.
    let final_word = error(404, "not_found_error", "m", &[("x-should-retry", "false")]);
    assert_eq!(play_through([final_word]).await.posts.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn loop_M6_a_key_that_is_refused_in_between_is_no_second_fallback() {
    let credentials: Arc<dyn Credentials> = Arc::new(Endless::default());
    let cut = || events([START]);
    let refused = error(401, "authentication_error", "invalid token", &[]);
    let outcome = play_with(&credentials, [cut(), cut(), refused, whole()]).await;
    assert_eq!(streaming(&outcome), [true, true, false, false]);
    assert_eq!(outcome.log.matches("in one piece").count(), 1, "{}", outcome.log);
}
