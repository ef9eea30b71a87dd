//! What happens to tool calls.

use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use pelton::permission::{Answer, Asker, Mode, Question, Questions};
use pelton::tools::Siblings;
use pelton::{Event, Terminal};
use pelton_testkit::{Part, Script, Step, gate, text, tool, tool_with_json};
use serde_json::json;

use crate::probe::{Note, Notes};
use crate::stage::{
    Stage, holds, is_result_of, is_start_of, lines, prompt, pulling, rest, results_in, run, sh,
};

/// A script of one answer with these calls, and an end.
fn calling(calls: impl IntoIterator<Item = Part>) -> Script {
    Script::new().reply(calls).reply([text("Done.")])
}

#[tokio::test]
async fn loop_P2_calls_that_are_safe_side_by_side_run_together() {
    let notes = Notes::default();
    // Each ends only after another has begun: one after the other they would wait for ever.
    let stage = Stage::new(calling([
        tool("Look", json!({"name": "a", "after_begin": "c"})),
        tool("Look", json!({"name": "b", "after_begin": "c"})),
        tool("Look", json!({"name": "c", "after_begin": "a"})),
    ]))
    .await;
    let mut engine = stage.engine_with(|options| options.tools.extend(notes.tools()));

    let told = run(&mut engine, "Look around.").await;

    assert_eq!(told.assert_completed().tool_calls, 3);
    assert_eq!(notes.running_most(), 3);
    assert!(results_in(&stage.request(2)).iter().all(|(_, is_error, _)| !is_error));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_P2_no_more_than_the_limit_run_at_once() {
    for (limit, expected) in [(None, 10), (Some(2), 2), (Some(1), 1)] {
        let notes = Notes::default();
        // As many as may run wait for the last of them, so that they do run at once.
        let last = (expected > 1).then(|| format!("call {}", expected - 1));
        let calls = (0..14).map(|n| {
            let awaited = last.as_ref().filter(|_| n + 1 < expected);
            tool("Look", json!({"name": format!("call {n}"), "after_begin": awaited, "ms": 5}))
        });
        let stage = Stage::new(calling(calls)).await;
        let mut engine = stage.engine_with(|options| {
            options.tools.extend(notes.tools());
            if let Some(limit) = limit {
                options.tool_calls_running_max = limit;
            }
        });
        let told = run(&mut engine, "Look around.").await;
        told.assert_completed();
        assert_eq!(notes.running_most(), expected);
        assert_eq!(notes.begun().len(), 14);
        let most_told = told.0.iter().filter_map(|event| match event {
            Event::ToolStarted(started) => Some(started.running),
            _ => None,
        });
        assert_eq!(most_told.max(), Some(expected), "events say how many run");
    }
}

#[tokio::test]
async fn loop_P3_other_calls_run_alone_and_in_their_turn() {
    let notes = Notes::default();
    let stage = Stage::new(calling([
        tool("Look", json!({"name": "look 1", "ms": 30})),
        tool("Change", json!({"name": "change 1", "ms": 30})),
        tool("Change", json!({"name": "change 2"})),
        tool("Look", json!({"name": "look 2"})),
    ]))
    .await;
    let mut engine = stage.engine_with(|options| options.tools.extend(notes.tools()));

    run(&mut engine, "Change things.").await.assert_completed();

    let in_turn = ["look 1", "change 1", "change 2", "look 2"].map(str::to_owned);
    let expected: Vec<Note> =
        in_turn.into_iter().flat_map(|name| [Note::Begun(name.clone()), Note::Ended(name)]).collect();
    assert_eq!(notes.all(), expected);
}

#[tokio::test]
async fn loop_P4_loop_I8_results_come_in_the_order_of_the_calls_and_progress_at_once() {
    let notes = Notes::default();
    let stage = Stage::new(calling([
        tool("Look", json!({"name": "slow", "after_end": "fast"})).id("toolu_slow"),
        tool("Look", json!({"name": "middle", "after_begin": "fast"})).id("toolu_middle"),
        tool("Look", json!({"name": "fast"})).id("toolu_fast"),
    ]))
    .await;
    let mut engine = stage.engine_with(|options| options.tools.extend(notes.tools()));

    let told = run(&mut engine, "Look around.").await;

    told.assert_completed();
    let ended = |name: &str| notes.all().iter().position(|note| *note == Note::Ended(name.to_owned()));
    assert!(ended("fast") < ended("slow"), "the last one was the first to end");
    let order = ["toolu_slow", "toolu_middle", "toolu_fast"];
    assert_eq!(told.results(), order, "in the events");
    let sent: Vec<String> = results_in(&stage.request(2)).into_iter().map(|(id, _, _)| id).collect();
    assert_eq!(sent, order, "in the next request");
    let lines = lines(&engine.transcript_file().unwrap());
    let results = lines.iter().filter_map(|line| line["message"]["content"][0]["tool_use_id"].as_str());
    assert_eq!(results.collect::<Vec<_>>(), order, "in the transcript");
    let progress =
        told.position(|event| matches!(event, Event::ToolProgress { call, .. } if &**call == "toolu_fast"));
    assert!(
        progress < told.position(|event| is_result_of(event, "toolu_slow")),
        "progress does not wait its turn"
    );
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_P6_calls_that_cannot_be_run_are_answered_and_the_loop_goes_on() {
    let stage = Stage::new(calling([
        tool("Imagine", json!({})),
        tool_with_json("Read", r#"{"file_path": "a.tx"#),
        tool("Read", json!({"path": "a.txt"})),
        tool("Read", json!({"file_path": "a.txt"})),
    ]))
    .await;
    stage.write("a.txt", "content\n");
    let mut engine = stage.engine();

    let told = run(&mut engine, "Go.").await;

    told.assert_completed();
    let results = results_in(&stage.request(2));
    let expected = ["No such tool available: Imagine", "not a JSON object", "file_path"];
    for ((_, is_error, words), expected) in results.iter().zip(expected) {
        assert!(is_error, "{words}");
        assert!(words.starts_with("<tool_use_error>") && words.ends_with("</tool_use_error>"), "{words}");
        assert!(words.contains(expected), "{words}");
    }
    assert!(!results[3].1 && results[3].2.contains("content"), "{results:?}");
    stage.assert_all_played();
}

#[tokio::test]
async fn input_is_validated_before_permission_and_what_is_denied_does_not_run() {
    let notes = Notes::default();
    let stage = Stage::new(calling([
        tool("Change", json!({"name": "denied"})).id("toolu_denied"),
        // Denied too, but unusable first: nobody is bothered with a call that cannot be run anyway.
        tool("Change", json!({"wrong": "field"})).id("toolu_unusable"),
        tool("Look", json!({"name": "allowed"})).id("toolu_allowed"),
    ]))
    .await;
    let mut engine = stage.engine_with(|options| {
        options.mode = Mode::Default;
        options.tools.extend(notes.tools());
    });

    let told = run(&mut engine, "Go.").await;

    let outcome = told.assert_completed();
    assert_eq!(notes.begun(), ["allowed"]);
    let denied: Vec<(&str, &str)> =
        outcome.denials.iter().map(|denial| (&*denial.tool, &*denial.call)).collect();
    assert_eq!(denied, [("Change", "toolu_denied")]);
    assert_eq!(*outcome.denials[0].input, json!({"name": "denied"}));
    let results = results_in(&stage.request(2));
    assert!(
        results[0].1 && results[0].2.contains("--allowedTools"),
        "the way out is named: {}",
        results[0].2
    );
    assert!(results[1].1 && results[1].2.contains("<tool_use_error>"), "{}", results[1].2);
    assert!(!results[2].1);
    stage.assert_all_played();
}

#[tokio::test]
async fn denials_are_counted_per_submission() {
    let script = Script::new()
        .reply([tool("Bash", sh("touch x"))])
        .reply([text("I may not.")])
        .reply([text("As I said.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.mode = Mode::Default);
    assert_eq!(run(&mut engine, "Touch x.").await.assert_completed().denials.len(), 1);
    assert!(run(&mut engine, "So?").await.assert_completed().denials.is_empty());
    assert!(!stage.path("x").exists());
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_P11_a_change_of_directory_holds_for_the_calls_behind_it() {
    let script = Script::new()
        .reply([
            tool("Bash", sh("mkdir -p sub/deeper && cd sub")),
            tool("Bash", sh("pwd")),
            tool("Write", json!({"file_path": "here.txt", "content": "x"})),
            tool("Bash", sh("cd deeper")),
        ])
        .reply([tool("Bash", sh("pwd"))])
        .reply([text("Done.")])
        .reply([tool("Bash", sh("pwd"))])
        .reply([text("Still there.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    run(&mut engine, "Move.").await.assert_completed();
    run(&mut engine, "Where are you?").await.assert_completed();

    let at = |request: usize| results_in(&stage.request(request)).pop().unwrap().2.trim().to_owned();
    let dir = |name: &str| stage.path(name).display().to_string();
    assert_eq!(results_in(&stage.request(2))[1].2.trim(), dir("sub"));
    assert_eq!(stage.read("sub/here.txt"), "x");
    assert_eq!(at(3), dir("sub/deeper"), "in the next turn");
    assert_eq!(at(5), dir("sub/deeper"), "in the next submission");
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L15_of_ten_calls_three_fail_differently_and_seven_keep_their_own_results() {
    let notes = Notes::default();
    let look = |name: &str| tool("Look", json!({"name": name, "ms": 5})).id(format!("toolu_{name}"));
    let does = |name: &str, does: &str| {
        tool("Look", json!({"name": name, "does": does})).id(format!("toolu_{name}"))
    };
    let stage = Stage::new(calling([
        look("0"),
        does("1", "fail"),
        look("2"),
        look("3"),
        does("4", "panic"),
        look("5"),
        tool("Look", json!({"nam": "6"})).id("toolu_6"),
        look("7"),
        look("8"),
        look("9"),
    ]))
    .await;
    let mut engine = stage.engine_with(|options| options.tools.extend(notes.tools()));

    run(&mut engine, "Look around.").await.assert_completed();

    let results = results_in(&stage.request(2));
    assert_eq!(results.len(), 10);
    for (n, (id, is_error, words)) in results.iter().enumerate() {
        assert_eq!(*id, format!("toolu_{n}"));
        assert_eq!(*is_error, [1, 4, 6].contains(&n), "{n}: {words}");
        if !is_error {
            assert_eq!(*words, n.to_string());
        }
    }
    assert!(results[4].2.contains("crashed: 4 was told to"), "{}", results[4].2);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_Z5_errors_of_tools_go_to_the_model_and_errors_of_the_api_do_not() {
    let script = Script::new()
        .reply([tool("Bash", sh("echo broken pump >&2; exit 3"))])
        .step(Step::status(529))
        .step(Step::status(400).message("no such thing"));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Go.").await;

    let (_, is_error, words) = results_in(&stage.request(2)).remove(0);
    assert!(is_error && words.contains("broken pump") && words.contains("Exit code 3"), "{words}");
    assert_eq!(told.retries().len(), 1, "one error of the API was retried");
    let outcome = told.outcome();
    assert_eq!(outcome.terminal, Terminal::ModelError);
    assert!(outcome.text.contains("no such thing"), "the other one reached the caller: {}", outcome.text);
    assert!(!stage.request(3)["messages"].to_string().contains("overloaded"));
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L5_blank_output_never_becomes_an_empty_text_block() {
    let notes = Notes::default();
    let script = Script::new()
        .reply([
            text("\n\n"),
            tool("Bash", sh("true")),
            tool("Look", json!({"name": "empty", "says": ""})),
            tool("Look", json!({"name": "blank", "says": " \n\t "})),
        ])
        .reply([text(" "), text("Done.")])
        .reply([text("Really.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.tools.extend(notes.tools()));

    run(&mut engine, "Do nothing.").await.assert_completed();
    run(&mut engine, "Really?").await.assert_completed();

    let results = results_in(&stage.request(2));
    assert!(results.iter().all(|(_, is_error, words)| !is_error && !words.trim().is_empty()), "{results:?}");
    // The strict model refuses blank texts and marks on them.
    stage.assert_all_played();
}

#[tokio::test]
async fn a_server_that_uses_a_call_id_again_gets_both_results() {
    let script = Script::new()
        .reply([tool("Bash", sh("echo one")).id("call_0"), tool("Bash", sh("echo two")).id("call_0")])
        .reply([text("Again."), tool("Bash", sh("echo three")).id("call_0")])
        .reply([text("Done.")])
        .reply([text("Indeed.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    run(&mut engine, "Twice.").await.assert_completed();
    let printed: Vec<String> = results_in(&stage.request(3)).into_iter().map(|(_, _, words)| words).collect();
    assert_eq!(printed, ["one", "two", "three"]);
    let file = engine.transcript_file().unwrap();
    drop(engine);
    run(&mut stage.resume(&file), "Done?").await.assert_completed();
    assert_eq!(results_in(&stage.request(4)), results_in(&stage.request(3)));
    stage.assert_all_played();
}

#[tokio::test]
async fn every_call_is_told_to_start_before_its_result() {
    let stage = Stage::new(calling([
        tool("Bash", sh("echo one")).id("toolu_1"),
        tool("Nothing", json!({})).id("toolu_2"),
    ]))
    .await;
    let mut engine = stage.engine();
    let told = run(&mut engine, "Go.").await;
    for id in ["toolu_1", "toolu_2"] {
        assert!(
            told.position(|event| is_start_of(event, id)) < told.position(|event| is_result_of(event, id))
        );
    }
}

/// What the calls of one answer come to under a policy: who began, and the results.
async fn under(
    siblings: Siblings,
    calls: impl IntoIterator<Item = Part>,
) -> (Notes, Vec<(String, bool, String)>) {
    let notes = Notes::default();
    let stage = Stage::new(calling(calls)).await;
    let mut engine = stage.engine_with(|options| {
        options.tools.extend(notes.tools());
        options.siblings = siblings;
    });
    run(&mut engine, "Go.").await.assert_completed();
    stage.assert_all_played();
    (notes, results_in(&stage.request(2)))
}

fn change(name: &str) -> Part {
    tool("Change", json!({"name": name})).id(format!("toolu_{name}"))
}

/// A reader that fails while another runs, a writer that fails, and calls behind them.
fn mishaps() -> [Part; 6] {
    [
        tool("Look", json!({"name": "long", "after_begin": "bad look", "ms": 40})).id("toolu_long"),
        tool("Look", json!({"name": "bad look", "does": "fail", "after_begin": "long"})).id("toolu_bad_look"),
        change("good"),
        tool("Bash", sh("touch no; exit 4")).id("toolu_exit"),
        change("behind"),
        tool("Look", json!({"name": "last"})).id("toolu_last"),
    ]
}

#[tokio::test]
async fn loop_P5_by_default_a_failure_cancels_nobody() {
    let (notes, results) = under(Siblings::default(), mishaps()).await;
    assert_eq!(notes.begun(), ["long", "bad look", "good", "behind", "last"]);
    let failed: Vec<bool> = results.iter().map(|(_, is_error, _)| *is_error).collect();
    assert_eq!(failed, [false, true, false, true, false, false]);
}

#[tokio::test]
async fn loop_P5_a_failed_side_effect_cancels_those_behind_it_and_no_reader() {
    let (notes, results) = under(Siblings::SideEffects, mishaps()).await;
    assert_eq!(notes.begun(), ["long", "bad look", "good", "last"]);
    let failed: Vec<bool> = results.iter().map(|(_, is_error, _)| *is_error).collect();
    assert_eq!(failed, [false, true, false, true, true, false]);
    let words = &results[4].2;
    assert!(words.contains("Cancelled: Bash (toolu_exit) failed"), "which one it was is said: {words}");
}

#[tokio::test]
async fn loop_P5_any_failure_cancels_what_runs_and_what_waits() {
    let (notes, results) = under(Siblings::Any, mishaps()).await;
    assert_eq!(notes.begun(), ["long", "bad look"]);
    assert!(notes.has(&Note::Dropped("long".to_owned())), "{:?}", notes.all());
    assert!(results.iter().all(|(_, is_error, _)| *is_error), "{results:?}");
    for at in [0, 2, 3, 4, 5] {
        assert!(results[at].2.contains("Cancelled: Look (toolu_bad_look) failed"), "{:?}", results[at]);
    }
    assert_eq!(results[1].2, "bad look", "the failure keeps its own words");
}

#[tokio::test]
async fn loop_P5_a_call_that_comes_after_the_failure_is_cancelled_too() {
    let notes = Notes::default();
    let script = Script::new()
        .reply([
            tool("Change", json!({"name": "bad", "does": "fail"})).id("toolu_bad"),
            gate("late"),
            change("late"),
        ])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| {
        options.tools.extend(notes.tools());
        options.siblings = Siblings::SideEffects;
    });
    let mut events = engine.submit(prompt("Go."));
    let ended = Note::Ended("bad".to_owned());
    pulling(&mut events, holds(|| notes.has(&ended))).await;
    pulling(&mut events, tokio::time::sleep(Duration::from_millis(20))).await;
    stage.model.open("late");
    rest(&mut events).await;
    assert_eq!(notes.begun(), ["bad"]);
    assert!(results_in(&stage.request(2))[1].2.contains("Cancelled: Change (toolu_bad)"));
}

#[tokio::test]
async fn loop_P5_a_cancelled_call_does_not_hold_up_the_questions_behind_it() {
    struct Yes;
    impl Asker for Yes {
        fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Answer> {
            Box::pin(async { Answer::allow() })
        }
    }
    let notes = Notes::default();
    let stage = Stage::new(calling([
        tool("Change", json!({"name": "bad", "does": "fail"})),
        change("cancelled"),
        tool("Look", json!({"name": "asked"})),
    ]))
    .await;
    let mut engine = stage.engine_with(|options| {
        options.tools.extend(notes.tools());
        options.siblings = Siblings::SideEffects;
        options.rules.ask.push("Look".parse().unwrap());
        options.questions = Some(Questions::to(Yes));
    });
    run(&mut engine, "Go.").await.assert_completed();
    assert_eq!(notes.begun(), ["bad", "asked"]);
}

#[tokio::test]
async fn loop_P1_loop_P2_loop_P3_loop_P4_what_overlaps_is_seen_in_times_and_numbers() {
    let notes = Notes::default();
    let took = 60;
    let look = |name: &str| tool("Look", json!({"name": name, "ms": took})).id(format!("toolu_{name}"));
    let script = Script::new()
        .reply([
            look("1"),
            look("2"),
            look("3"),
            tool("Change", json!({"name": "4", "ms": took})),
            gate("rest"),
            text("…"),
        ])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.tools.extend(notes.tools()));
    let begin = Instant::now();
    let mut events = engine.submit(prompt("Go."));
    // All of it happens while the message is held back behind the gate.
    let ended = Note::Ended("4".to_owned());
    let (mut told, ()) = pulling(&mut events, holds(|| notes.has(&ended))).await;
    let all = begin.elapsed();
    assert!(stage.model.reply_requests()[0].reply.ending.is_none(), "the model is still speaking");
    stage.model.open("rest");
    told.extend(rest(&mut events).await);

    let [one, two, three, four] = ["1", "2", "3", "4"].map(|name| notes.span(name));
    let together =
        [one, two, three].map(|span| span.0).iter().max() < [one, two, three].map(|span| span.1).iter().min();
    assert!(together, "the three that look run at the same time");
    assert!(four.0 >= one.1.max(two.1).max(three.1), "the one that changes waits for all of them");
    assert!(all < Duration::from_millis(4 * took), "one after the other would take longer: {all:?}");
    let running: Vec<usize> = told
        .iter()
        .filter_map(|event| match event {
            Event::ToolStarted(started) => Some(started.running),
            _ => None,
        })
        .collect();
    assert_eq!(running, [1, 2, 3, 1]);
}
