//! Streams that fail on the way.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_stream_cut_before_a_block_is_complete_is_taken_back_and_repeated() {
    let outcome = play_through([events([START, TEXT_START, HEL]), events(HELLO)]).await;
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
        text "lo"
        block {"type":"text","text":"hello"}
        event {"type":"content_block_stop","index":0}
        event {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":57}}
        event {"type":"message_stop"}
        finished end_turn, 57 tokens
    "#]]
    .assert_eq(&outcome.log);
    assert_eq!(outcome.took, Duration::from_millis(500));
}

#[tokio::test(start_paused = true)]
async fn what_is_complete_is_kept_when_the_rest_is_lost() {
    let outcome = play_through([events([START, TEXT_START, HEL, LO, TEXT_STOP, CALL_START])]).await;
    expect![[r#"
        requesting 1
        started msg_1 m-1
        opened text
        text "hel"
        text "lo"
        block {"type":"text","text":"hello"}
        event {"type":"content_block_stop","index":0}
        opened tool_use
        finished end_turn, 1 tokens, cut: the connection was closed in the middle of the answer (request req_7)
    "#]].assert_eq(&outcome.log);
    let outcome = play_through([events([START, CALL_START, CALL_INPUT, CALL_STOP, TEXT_START, HEL])]).await;
    assert!(outcome.log.contains("finished tool_use, 1 tokens, cut: "), "{}", outcome.log);
}

#[tokio::test(start_paused = true)]
async fn complete_thinking_and_blank_text_are_not_worth_keeping() {
    let thinking =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"hm"}}"#;
    let blank = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"\n"}}"#;
    for block in [thinking, blank] {
        let outcome = play_through([events([START, block, TEXT_STOP]), events(HELLO)]).await;
        assert!(outcome.log.contains("retry 1 in 500ms, taken back: "), "{}", outcome.log);
        assert!(outcome.log.ends_with("finished end_turn, 57 tokens\n"), "{}", outcome.log);
    }
}

#[tokio::test(start_paused = true)]
async fn after_the_final_delta_nothing_can_go_wrong() {
    let complete = [START, TEXT_START, HEL, TEXT_STOP, END];
    let error = r#"{"type":"error","error":{"type":"api_error","message":"late"}}"#;
    let broken = complete.map(event).into_iter().chain([Act::Break(TransportErrorKind::Reset)]).collect();
    let silent = complete.map(event).into_iter().chain([Act::Hang]).collect();
    let late = complete.into_iter().chain([error]);
    for turn in [events(complete), acts(broken), acts(silent), events(late)] {
        let outcome = play_through([turn]).await;
        assert!(outcome.log.ends_with("finished end_turn, 57 tokens\n"), "{}", outcome.log);
    }
}

#[tokio::test(start_paused = true)]
async fn an_open_block_of_a_complete_message_is_complete() {
    let outcome = play_through([events([START, TEXT_START, HEL, END, STOP])]).await;
    assert!(outcome.log.contains("block {\"type\":\"text\",\"text\":\"hel\"}\n"), "{}", outcome.log);
    let outcome = play_through([events([START, TEXT_START, HEL, END])]).await;
    assert!(outcome.log.contains("block {\"type\":\"text\",\"text\":\"hel\"}\n"), "{}", outcome.log);
}

#[tokio::test(start_paused = true)]
async fn five_cut_streams_give_one_answer() {
    // Cut after 1, 2, 3 and 4 events, and first without any; each attempt begins from nothing.
    let cuts = (0..5).map(|after| events(HELLO.into_iter().take(after)));
    let outcome = play_through(cuts.chain([events(HELLO)])).await;
    let after_last_retry = outcome.log.rsplit("retry 5").next().unwrap();
    assert_eq!(after_last_retry.matches("text \"hel\"").count(), 1);
    assert_eq!(outcome.log.matches("block ").count(), 1, "{}", outcome.log);
    assert!(outcome.log.ends_with("finished end_turn, 57 tokens\n"), "{}", outcome.log);
    assert_eq!(outcome.posts.len(), 6);
    // The question is the same each time, but for the one time that it is put without streaming.
    let mut bodies: Vec<_> = outcome.posts.iter().map(sent).collect();
    assert_eq!(bodies.remove(1)["stream"], false);
    assert!(bodies.iter().all(|body| *body == bodies[0]));
}

#[tokio::test(start_paused = true)]
async fn errors_inside_a_stream_are_treated_by_their_name() {
    let failing = |name: &str| {
        let error =
            format!(r#"{{"type":"error","error":{{"type":"{name}","message":"m"}},"request_id":"req_8"}}"#);
        acts(vec![event(START), event(&error)])
    };
    for name in ["overloaded_error", "rate_limit_error", "api_error", "timeout_error"] {
        let outcome = play_through([failing(name), events(HELLO)]).await;
        assert!(
            outcome.log.contains(&format!("retry 1 in 500ms: {name}: m (request req_7)\n")),
            "{}",
            outcome.log
        );
    }
    let outcome = play_through([failing("invalid_request_error")]).await;
    assert!(
        outcome.log.ends_with("failed InvalidRequest: invalid_request_error: m (request req_7)\n"),
        "{}",
        outcome.log
    );
    let kept = [
        START,
        TEXT_START,
        HEL,
        TEXT_STOP,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#,
    ];
    let outcome = play_through([events(kept)]).await;
    assert!(outcome.log.contains("finished end_turn, 1 tokens, cut: overloaded_error: m"), "{}", outcome.log);
}

#[tokio::test(start_paused = true)]
async fn an_accepted_request_without_an_answer_is_repeated() {
    let empty = [acts(vec![]), events([PING]), acts(vec![Act::Send(": hello\n\n".to_owned())])];
    for turn in empty.into_iter().chain([acts(vec![Act::Send("<html>log in first</html>".to_owned())])]) {
        let outcome = play_through([turn, events(HELLO)]).await;
        let notice = "retry 1 in 0ns, in one piece, with 21333 tokens: \
                      the server accepted the request and sent no answer (request req_7)";
        assert!(outcome.log.contains(notice), "{}", outcome.log);
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_cut_short_is_part_of_the_cut() {
    let half = Act::Send("data: {\"type\":\"content_block_de".to_owned());
    let outcome = play_through([acts(vec![event(START), half]), events(HELLO)]).await;
    assert!(outcome.log.contains("retry 1 in 500ms: the connection was closed"), "{}", outcome.log);
    // In the middle of a stream the same is a fault of its own.
    let garbage = acts(vec![event(START), event("{\"type\":\"content_block_de"), event(STOP)]);
    let outcome = play_through([garbage, events(HELLO)]).await;
    assert!(outcome.log.contains("retry 1 in 500ms: an event of the stream is not JSON"), "{}", outcome.log);
}

#[tokio::test(start_paused = true)]
async fn the_last_event_may_lack_its_blank_line() {
    let stream: String = HELLO.iter().map(|data| format!("data: {data}\n\n")).collect();
    let outcome = play_through([acts(vec![Act::Send(stream.trim_end().to_owned())])]).await;
    assert!(outcome.log.ends_with("finished end_turn, 57 tokens\n"), "{}", outcome.log);
}

#[tokio::test(start_paused = true)]
async fn an_endless_event_is_given_up_at_once() {
    let megabyte = Act::Send("x".repeat(1024 * 1024));
    let endless =
        std::iter::once(Act::Send("data: ".to_owned())).chain(std::iter::repeat_n(megabyte, 40)).collect();
    let outcome = play_through([acts(endless)]).await;
    assert!(
        outcome.log.ends_with("failed Other: one event of the stream is larger than 32 MB (request req_7)\n")
    );
}

#[tokio::test(start_paused = true)]
async fn a_reset_asks_for_a_fresh_connection() {
    use TransportErrorKind::*;
    let reset = acts(vec![event(START), Act::Break(Reset)]);
    let turns = [Turn::Fail(Reset), Turn::Fail(Refused), reset, Turn::Fail(Timeout), events(HELLO)];
    let outcome = play_through(turns).await;
    let fresh: Vec<bool> = outcome.posts.iter().map(|post| post.fresh_connection).collect();
    assert_eq!(fresh, [false, true, false, true, true]);
    assert!(outcome.log.ends_with("finished end_turn, 57 tokens\n"), "{}", outcome.log);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_not_asked_about_twice() {
    for kind in [TransportErrorKind::Tls, TransportErrorKind::BadUrl] {
        let outcome = play_through([Turn::Fail(kind)]).await;
        assert!(matches!(&outcome.last, Step::Failed(error) if error.kind == ErrorKind::Connection(kind)));
    }
}

#[tokio::test(start_paused = true)]
async fn loop_M4_the_question_after_a_cut_answer_waits_like_any_other_attempt() {
    let kept = || events([START, TEXT_START, HEL, TEXT_STOP]);
    let server = scripted((0..4).map(|_| kept()));
    let endpoint = Endpoint::new("http://in.memory/", Auth::ApiKey(Secret::new("key")));
    let client = client(endpoint, &server, RetryPolicy { retries_max: 3, ..RetryPolicy::default() });
    let mut after = None;
    for (attempt, wait) in [(0, 0), (1, 500), (2, 1000), (3, 2000)] {
        let began = Instant::now();
        let steps: Vec<_> = client.call(Ask { after: after.take(), ..an_ask() }).collect().await;
        assert_eq!(began.elapsed(), Duration::from_millis(wait));
        match &steps[0] {
            Step::Retry(notice) => {
                assert_eq!((notice.attempt, notice.retries_max), (attempt, 3));
                assert_eq!((notice.wait, notice.withdrawn), (Duration::from_millis(wait), false));
                assert_eq!(notice.kind, ErrorKind::StreamCut);
            }
            other => assert!(matches!(other, Step::Requesting { attempt: 1 }), "{other:?}"),
        }
        let Some(Step::Finished(reply)) = steps.into_iter().last() else { panic!("no answer") };
        // That nobody waits any more is known with the last of them, and so is how often it was tried.
        assert_eq!(reply.again.is_none(), attempt == 3);
        let cut = reply.cut.unwrap();
        assert!(attempt < 3 || cut.attempts() == 4, "{cut}");
        after = reply.again;
    }
    assert_eq!(server.posts.lock().unwrap().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn loop_R6_after_an_answer_that_a_reset_cut_the_next_connection_is_a_fresh_one() {
    let reset = acts(vec![
        event(START),
        event(TEXT_START),
        event(HEL),
        event(TEXT_STOP),
        Act::Break(TransportErrorKind::Reset),
    ]);
    let server = scripted([reset, events(HELLO)]);
    let endpoint = Endpoint::new("http://in.memory/", Auth::ApiKey(Secret::new("key")));
    let client = client(endpoint, &server, RetryPolicy::default());
    let steps: Vec<_> = client.call(an_ask()).collect().await;
    let Some(Step::Finished(reply)) = steps.into_iter().last() else { panic!("no answer") };
    let _: Vec<_> = client.call(Ask { after: reply.again, ..an_ask() }).collect().await;
    let fresh: Vec<bool> = server.posts.lock().unwrap().iter().map(|post| post.fresh_connection).collect();
    assert_eq!(fresh, [false, true]);
}
