//! Answers as they arrive, whole and broken.

use std::time::Duration;

use bytes::Bytes;
use pelton::{Event, Terminal};
use pelton_model::{DeltaKind, ErrorKind, RealWorld, RetryPolicy, World};
use pelton_testkit::{
    Fault, Fragments, LineEnd, Pace, Part, Script, Step, comment, error, event, gate, pause, ping, raw_block,
    text, thinking, tool,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::probe::{Note, Notes};
use crate::stage::{
    Stage, Told, blocks, holds, marks, notes, prompt, pulling, rest, results_in, run, sh, unmarked,
};

/// What stands before the messages, byte for byte.
fn prefix(raw: &Bytes) -> (String, String) {
    #[derive(Deserialize)]
    struct Prefix<'a> {
        #[serde(borrow)]
        system: &'a RawValue,
        #[serde(borrow)]
        tools: &'a RawValue,
    }
    let prefix: Prefix<'_> = serde_json::from_slice(raw).unwrap();
    (prefix.system.get().to_owned(), prefix.tools.get().to_owned())
}

/// A machine whose date is another one.
struct Later(RealWorld, jiff::SignedDuration);

impl World for Later {
    fn now(&self) -> jiff::Timestamp {
        self.0.now() + self.1
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }

    fn random(&self) -> u64 {
        self.0.random()
    }

    fn sleep(&self, wait: Duration) -> futures::future::BoxFuture<'static, ()> {
        self.0.sleep(wait)
    }
}

pub fn months_later() -> std::sync::Arc<dyn World> {
    std::sync::Arc::new(Later(RealWorld::new(), jiff::SignedDuration::from_hours(24 * 70)))
}

#[tokio::test]
async fn loop_M2_the_prefix_stays_the_same_and_is_read_from_the_cache() {
    let mut script = Script::new();
    for n in 0..4 {
        script = script
            .reply([
                thinking("Hm."),
                text("Changing."),
                tool("Write", json!({"file_path": format!("{n}.txt"), "content": "x"})),
            ])
            .reply([tool("Bash", sh("cd .. && ls")), tool("Glob", json!({"pattern": "*"}))])
            .reply([text("Done.")]);
    }
    let stage = Stage::new(script).await;
    let git = |branch: &str| {
        std::fs::create_dir_all(stage.path(".git")).unwrap();
        stage.write(".git/HEAD", &format!("ref: refs/heads/{branch}\n"));
    };
    let mut engine = stage.engine();
    run(&mut engine, "One.").await.assert_completed();
    run(&mut engine, "Two.").await.assert_completed();
    git("first");
    run(&mut engine, "Three.").await.assert_completed();
    // Another session, on another day and another branch.
    git("second");
    run(&mut stage.engine_with(|options| options.world = months_later()), "Four.").await.assert_completed();

    let requests = stage.model.reply_requests();
    assert_eq!(requests.len(), 12);
    let first = prefix(&requests[0].raw);
    for (before, seen) in std::iter::once(None).chain(requests.iter().map(Some)).zip(&requests) {
        assert_eq!(prefix(&seen.raw), first, "request {}", seen.number);
        assert!(marks(&seen.body) <= 4, "request {}", seen.number);
        let Some(before) = before else { continue };
        let read = seen.reply.usage.as_ref().unwrap()["cache_read_input_tokens"].as_u64().unwrap();
        assert!(read > 0, "request {} found nothing in the cache", seen.number);
        if seen.number == 10 {
            continue; // the first of the other session
        }
        // What was said before is said again in the same words, so the cache holds it too.
        let (old, new) = (unmarked(&before.body["messages"]), unmarked(&seen.body["messages"]));
        assert!(new.as_array().unwrap().starts_with(old.as_array().unwrap()), "request {}", seen.number);
    }
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_M2_many_calls_at_once_do_not_hide_the_cached_part() {
    // A server looks only some twenty blocks back from a mark.
    let many = Step::reply(
        (0..30).map(|_| tool("Nowhere", json!({}))).chain([tool("Glob", json!({"pattern": "x"}))]),
    );
    let stage = Stage::new(Script::new().step(many.times(3)).reply([text("Done.")])).await;
    run(&mut stage.engine(), "Go.").await.assert_completed();
    let usages: Vec<(u64, u64)> = stage
        .model
        .reply_requests()
        .iter()
        .map(|seen| {
            let usage = seen.reply.usage.as_ref().unwrap();
            let figure = |name: &str| usage[name].as_u64().unwrap();
            (figure("cache_read_input_tokens"), figure("cache_creation_input_tokens"))
        })
        .collect();
    for pair in usages.windows(2) {
        assert_eq!(pair[1].0, pair[0].0 + pair[0].1, "all that was written is read: {usages:?}");
    }
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_B2_resuming_another_day_sends_the_same_bytes() {
    let script = Script::new()
        .reply([thinking("Hm."), text("Looking."), tool("Bash", sh("ls"))])
        .reply([text("Nothing there.")])
        .reply([text("Still nothing.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    run(&mut engine, "What is there?").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    drop(engine);

    let mut engine = stage.engine_with(|options| {
        crate::stage::resume_from(options, &file);
        options.world = months_later();
    });
    run(&mut engine, "And now?").await.assert_completed();

    let requests = stage.model.reply_requests();
    assert_eq!(prefix(&requests[2].raw), prefix(&requests[1].raw));
    let (old, new) = (unmarked(&requests[1].body["messages"]), unmarked(&requests[2].body["messages"]));
    let (old, new) = (old.as_array().unwrap(), new.as_array().unwrap());
    let text = |messages: &[Value]| serde_json::to_string(messages).unwrap();
    assert_eq!(text(&new[..old.len()]), text(old));
    let read =
        |at: usize| requests[at].reply.usage.as_ref().unwrap()["cache_read_input_tokens"].as_u64().unwrap();
    assert!(read(2) > read(1), "everything up to the last turn comes from the cache");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_M3_text_and_calls_in_any_order_become_one_message_and_unknown_things_do_not_disturb() {
    let unknown = json!({"type": "hologram", "depth": 3, "note": "Grüße 🎈"});
    let long = "Grüße aus Zürich 🎈, and \"quotes\", \\ and\nlines.";
    let reply = || {
        Step::reply([
            event("moonrise", json!({"type": "moonrise", "phase": 0.5})),
            thinking("Both, I think."),
            text(long).fragments(Fragments::Random).after(1, ping()),
            tool("Bash", sh("printf '%s' 'é🎈'")).id("toolu_1").fragments(Fragments::Random),
            raw_block(unknown.clone()),
            text("In between."),
            event(
                "content_block_delta",
                json!({"type": "content_block_delta", "index": 99, "delta": {"type": "x"}}),
            ),
            tool("Bash", sh("echo two")).id("toolu_2"),
            text("At the end."),
        ])
    };
    let travels: [fn(Step) -> Step; 6] = [
        |step| step,
        |step| step.pace(Pace::chunk_bytes(1)),
        |step| step.line_end(LineEnd::CrLf).bom(),
        |step| {
            step.line_end(LineEnd::Mixed)
                .pace(Pace { chunk: pelton_testkit::Chunk::Random, ..Pace::default() })
        },
        |step| step.gzip(),
        |step| step.no_opening_ping().line_end(LineEnd::Cr),
    ];
    for (n, travel) in travels.into_iter().enumerate() {
        let stage =
            Stage::new(Script::new().seed(n as u64).step(travel(reply())).reply([text("Done.")])).await;
        let mut engine = stage.engine();

        let told = run(&mut engine, "Go.").await;

        told.assert_completed();
        let second = stage.request(2);
        let answer = unmarked(&second["messages"][1]["content"]);
        let kinds: Vec<&str> =
            answer.as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect();
        assert_eq!(
            kinds,
            ["thinking", "text", "tool_use", "hologram", "text", "tool_use", "text"],
            "travel {n}"
        );
        assert_eq!(answer[1]["text"], long);
        assert_eq!(answer[2]["input"], sh("printf '%s' 'é🎈'"));
        assert_eq!(answer[3], unknown, "an unknown block goes back as it came");
        let results: Vec<String> = results_in(&second).into_iter().map(|(_, _, words)| words).collect();
        assert_eq!(results, ["é🎈", "two"]);
        let pieces = told.0.iter().filter_map(|event| match event {
            Event::Delta(delta) => match &delta.kind {
                DeltaKind::Text(text) => Some(&**text),
                _ => None,
            },
            _ => None,
        });
        assert_eq!(pieces.collect::<String>(), format!("{long}In between.At the end.Done."));
        stage.assert_all_played();
    }
}

#[tokio::test]
async fn loop_M4_a_stream_cut_before_anything_was_complete_is_asked_for_again() {
    let append = tool("Bash", sh("echo once >> log.txt")).fragments(1);
    let script = Script::new()
        // In the middle of a text, and in the middle of a call.
        .step(Step::reply([text("Let me see what I can do.")]).fault(Fault::cut_after_events(5)))
        .step(Step::reply([thinking("Hm.").fragments(1), append.clone()]).fault(Fault::cut_after_events(8)))
        .reply([text("Let me see what I can do."), append])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Append a line.").await;

    told.assert_completed();
    let withdrawn: Vec<bool> = told.retries().iter().map(|notice| notice.withdrawn).collect();
    assert_eq!(withdrawn, [true, true], "what was shown of it is taken back");
    assert!(!told.0.iter().any(|event| matches!(event, Event::Cut { .. })));
    assert_eq!(stage.read("log.txt"), "once\n");
    assert_eq!(unmarked(&stage.request(2)), unmarked(&stage.request(1)), "the same question");
    let said: Vec<Value> =
        blocks(&stage.request(4), "assistant").into_iter().map(|block| block["type"].clone()).collect();
    assert_eq!(said, ["text", "tool_use"], "one copy of everything");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_M4_a_stream_cut_after_a_complete_call_keeps_it_and_runs_it_once() {
    let script = Script::new()
        .step(
            Step::reply([
                thinking("Append.").fragments(1),
                tool("Bash", sh("echo once >> log.txt")).id("toolu_1").fragments(1),
                tool("Bash", sh("echo never >> log.txt")).id("toolu_2").fragments(1),
            ])
            // Up to the input of the second call, but without its end. Thinking has a signature of its own.
            .fault(Fault::cut_after_events(2 + 4 + 3 + 2)),
        )
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Append a line.").await;

    told.assert_completed();
    let withdrawn: Vec<bool> = told.retries().iter().map(|notice| notice.withdrawn).collect();
    assert_eq!(withdrawn, [false], "the rest is waited for, and nothing is taken back");
    assert!(
        told.0.iter().any(|event| matches!(event, Event::Cut { reason } if !reason.is_empty())),
        "a notice"
    );
    assert_eq!(stage.read("log.txt"), "once\n");
    assert_eq!(stage.request_count(), 2);
    let second = stage.request(2);
    let said: Vec<&Value> = blocks(&second, "assistant").into_iter().map(|block| &block["type"]).collect();
    assert_eq!(said, ["thinking", "tool_use"]);
    assert_eq!(results_in(&second).len(), 1);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_M4_a_stream_cut_after_a_complete_text_keeps_it_and_asks_for_the_rest() {
    let script = Script::new()
        .step(
            Step::reply([text("First.").fragments(1), text("Second, and then").fragments(1)])
                .fault(Fault::cut_after_events(2 + 3 + 2)),
        )
        .reply([text("Third.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Count.").await;

    told.assert_completed();
    assert!(told.0.iter().any(|event| matches!(event, Event::Cut { .. })));
    let second = stage.request(2);
    let said: Vec<&Value> = blocks(&second, "assistant").into_iter().map(|block| &block["text"]).collect();
    assert_eq!(said, ["First."]);
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L9_connections_lost_again_and_again_leave_no_repeats() {
    let append = |word: &str| tool("Bash", sh(&format!("echo {word} >> log.txt"))).fragments(1);
    let overloaded = || error("overloaded_error", "");
    let script = Script::new()
        .step(Step::reply([text("One.")]).fault(Fault::cut_after_events(3)))
        .step(Step::reply([text("One.")]).fault(Fault::reset_after_events(4)))
        .step(Step::reply([text("One.")]).fault(Fault::end_after_events(1)))
        .step(Step::reply([text("One.")]).fault(Fault::close_before_headers()))
        .step(Step::reply([text("One.")]).fault(Fault::MalformedJsonAtEvent(4)))
        .step(Step::reply([overloaded()]))
        .step(Step::reply([text("One.").fragments(1), append("a"), overloaded()]))
        .step(Step::reply([text("Tw").fragments(1).after(1, overloaded())]))
        .step(
            Step::reply([append("b"), append("c"), text("half a te")])
                .fault(Fault::cut_after_events(2 + 3 + 3 + 2)),
        )
        .step(Step::reply([text("Two."), append("d")]).fault(Fault::empty_stream()))
        .reply([text("Two."), append("d")])
        .reply([text("Three.")])
        .reply([text("Again: one, two, three.")]);
    let stage = Stage::new(script).await;
    // Streams only, however often they break.
    let mut engine = stage.engine_with(|options| options.retry.non_streaming_fallback = false);

    let told = run(&mut engine, "Count and append.").await;

    assert_eq!(told.assert_completed().text, "Three.");
    assert_eq!(stage.read("log.txt"), "a\nb\nc\nd\n");
    run(&mut engine, "Again.").await.assert_completed();
    let requests = stage.model.reply_requests();
    let last = &requests.last().unwrap().body;
    let said: Vec<&str> =
        blocks(last, "assistant").into_iter().filter_map(|block| block["text"].as_str()).collect();
    assert_eq!(said, ["One.", "Two.", "Three."]);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_M5_a_silent_stream_is_reported_cut_and_asked_for_again() {
    let defaults = RetryPolicy::default();
    let seconds = [defaults.notice, defaults.idle, defaults.idle_pings_only].map(|wait| wait.as_secs());
    assert_eq!(seconds, [15, 300, 900]);

    let script = Script::new()
        .step(Step::reply([text("Half a")]).fault(Fault::stall_after_events(4)))
        .reply([text("A whole one.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| {
        options.retry.notice = Duration::from_millis(60);
        options.retry.idle = Duration::from_millis(250);
    });

    let told = run(&mut engine, "Go.").await;

    assert_eq!(told.assert_completed().text, "A whole one.");
    let noticed = told.position(
        |event| matches!(event, Event::Stalled { silent_for } if *silent_for >= Duration::from_millis(60)),
    );
    let retried =
        told.position(|event| matches!(event, Event::Retry(notice) if notice.kind == ErrorKind::Stalled));
    assert!(noticed < retried);
    assert!(told.retries()[0].withdrawn);
    // To whoever watches, in the transcript, and in the account.
    let noted = told.position(|event| matches!(event, Event::Loop(noted) if noted.kind.name() == "stalled"));
    assert!(noted < retried);
    let kinds: Vec<String> =
        notes(&engine.transcript_file().unwrap()).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["stalled", "retry"]);
    assert_eq!(told.outcome().loop_events["stalled"], 1);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_M5_a_patience_shorter_than_the_notice_is_told_too() {
    let script = Script::new()
        .step(Step::reply([text("Half a")]).fault(Fault::stall_after_events(4)).times(2))
        .reply([text("A whole one.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| {
        options.retry.idle = Duration::from_millis(300);
        options.retry.non_streaming_fallback = false;
    });
    let told = run(&mut engine, "Go.").await;
    assert_eq!(told.assert_completed().text, "A whole one.", "a second silence is no end either");
    let noticed = told.position(|event| matches!(event, Event::Stalled { .. }));
    assert!(noticed < told.position(|event| matches!(event, Event::Retry(_))));
    assert!(told.retries().iter().all(|notice| notice.retries_max == 10));
    assert!(told.retries()[0].message.contains("milliseconds"), "{}", told.retries()[0].message);
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L8_four_kinds_of_silence_are_noticed_cut_and_asked_again_and_thinking_is_not() {
    let dripping = |part: fn() -> Part| {
        let drip = move |_| [part(), pause(Duration::from_millis(20))];
        Step::reply((0..100).flat_map(drip).chain([text("Too late.")]))
    };
    let silences = [
        ("headers only", Step::reply([text("Never.")]).fault(Fault::headers_then_stall())),
        ("one delta", Step::reply([text("Half a")]).fault(Fault::stall_after_events(4))),
        ("comments", dripping(|| comment("still here"))),
        ("pings", dripping(ping)),
    ];
    for (what, silence) in silences {
        let stage = Stage::new(Script::new().step(silence).reply([text("Whole.")])).await;
        let mut engine = stage.engine_with(|options| {
            options.retry.notice = Duration::from_millis(60);
            options.retry.idle = Duration::from_millis(250);
            options.retry.idle_pings_only = Duration::from_millis(700);
        });
        let started = std::time::Instant::now();
        let told = run(&mut engine, "Go.").await;
        assert_eq!(told.assert_completed().text, "Whole.", "{what}");
        let noticed = told.position(|event| matches!(event, Event::Stalled { .. }));
        let retried = told.position(|event| matches!(event, Event::Retry(_)));
        assert!(noticed < retried, "{what}");
        let least = if what == "pings" { 700 } else { 250 };
        assert!(started.elapsed() >= Duration::from_millis(least), "{what}: cut too early");
        stage.assert_all_played();
    }

    // Thinking that takes longer than the limit of silence is left alone while the server shows that it lives.
    let alive = (0..25).flat_map(|_| [ping(), pause(Duration::from_millis(20))]);
    let long = std::iter::once(thinking("Hm.")).chain(alive).chain([text("Thought through.")]);
    let stage = Stage::new(Script::new().reply(long)).await;
    let mut engine = stage.engine_with(|options| {
        options.retry.idle = Duration::from_millis(250);
        options.retry.idle_pings_only = Duration::from_secs(10);
    });
    let told = run(&mut engine, "Go.").await;
    assert_eq!(told.assert_completed().text, "Thought through.");
    assert!(told.retries().is_empty());
    stage.assert_all_played();
}

#[tokio::test]
async fn a_refusal_is_an_error_and_the_session_goes_on() {
    let script = Script::new().step(Step::reply([]).stop("refusal")).reply([text("That, gladly.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let told = run(&mut engine, "Do something bad.").await;
    assert_eq!(told.outcome().terminal, Terminal::Completed);
    assert!(told.outcome().is_error);
    assert!(told.outcome().text.contains("declined"), "{}", told.outcome().text);
    run(&mut engine, "Do something good.").await.assert_completed();
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_P9_a_refusal_answers_the_calls_it_made_and_is_told() {
    let script = Script::new()
        .step(
            Step::reply([
                text("I will."),
                tool("Change", json!({"name": "slow", "ms": 60_000})).id("toolu_slow"),
                tool("Change", json!({"name": "next"})).id("toolu_next"),
                gate("declines"),
            ])
            .stop("refusal")
            .stop_details(json!({"category": "cyber", "explanation": "Too risky."})),
        )
        .reply([text("That, gladly.")]);
    let stage = Stage::new(script).await;
    let calls = Notes::default();
    let mut engine = stage.engine_with(|options| options.tools.extend(calls.tools()));
    let mut events = engine.submit(prompt("Do something bad."));
    let slow = Note::Begun("slow".to_owned());
    let (mut told, ()) = pulling(&mut events, holds(|| calls.has(&slow))).await;
    stage.model.open("declines");
    told.extend(rest(&mut events).await);
    drop(events);
    let told = Told(told);

    let outcome = told.outcome();
    assert_eq!((outcome.terminal, outcome.is_error), (Terminal::Completed, true));
    assert_eq!(outcome.text, "I will.");
    assert_eq!(calls.begun(), ["slow"], "what had not begun never does");
    assert_eq!(told.results(), ["toolu_slow", "toolu_next"]);
    assert_eq!(stage.request_count(), 1, "nobody is asked again");
    let prompted = told.0.iter().find_map(|event| match event {
        Event::Prompt(entry) => Some(entry.id),
        _ => None,
    });
    let refusals: Vec<_> = told
        .0
        .iter()
        .filter_map(|event| match event {
            Event::Refusal(refusal) => Some(refusal),
            _ => None,
        })
        .collect();
    let [refusal] = refusals[..] else { panic!("one refusal: {refusals:?}") };
    assert_eq!(refusal.category.as_deref(), Some("cyber"));
    assert_eq!(refusal.explanation.as_deref(), Some("Too risky."));
    assert_eq!((refusal.prompt, refusal.prompt.is_some()), (prompted, true));

    run(&mut engine, "Do something good.").await.assert_completed();
    let results = results_in(&stage.request(2));
    assert!(
        results.iter().all(|(_, is_error, words)| *is_error && words.contains("declined")),
        "{results:?}"
    );
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_S10_a_text_with_something_unknown_behind_it_is_an_answer() {
    let unknown = json!({"type": "hologram", "of": "a cat"});
    let stage = Stage::new(Script::new().reply([text("The answer."), raw_block(unknown)])).await;
    let told = run(&mut stage.engine(), "Go.").await;
    assert_eq!(told.assert_completed().text, "The answer.");
    stage.assert_all_played();
}
