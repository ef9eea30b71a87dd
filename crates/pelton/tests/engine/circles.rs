//! L12: models that go round in circles.

use futures::future::BoxFuture;
use pelton::permission::{Answer, Asker, Cause, Question, Questions};
use pelton::{Event, Terminal};
use pelton_testkit::{Part, Script, text, tool};
use serde_json::json;

use crate::probe::Notes;
use crate::stage::{Stage, Told, results_in, run, sh};

/// A model that makes these calls one after the other, and then is done.
fn calling(calls: impl IntoIterator<Item = Part>) -> Script {
    let script = calls.into_iter().fold(Script::new(), |script, call| script.reply([call]));
    script.reply([text("Done.")])
}

fn look() -> Part {
    tool("Look", json!({"name": "same"}))
}

/// The reasons of the events about circles, in order.
fn circles(told: &Told) -> Vec<String> {
    let reason = |event: &Event| match event {
        Event::Loop(event) if event.kind.name() == "repetition" => Some(event.reason.clone()),
        _ => None,
    };
    told.0.iter().filter_map(reason).collect()
}

#[tokio::test]
async fn pit_L12_the_same_call_with_the_same_result_is_told_the_third_time_and_goes_on() {
    let stage = Stage::new(calling((0..7).map(|_| look()))).await;
    let notes = Notes::default();
    let mut engine = stage.engine_with(|options| options.tools.extend(notes.tools()));
    let told = run(&mut engine, "Look.").await;
    assert_eq!(told.assert_completed().loop_events["repetition"], 2);
    let circles = circles(&told);
    assert!(circles[0].contains("Look was called 3 times") && circles[1].contains("5 times"), "{circles:?}");
    let third = told.position(|event| matches!(event, Event::Loop(event) if event.reason == circles[0]));
    let results = told.0[..third].iter().filter(|event| {
        crate::stage::entry_of(event)
            .is_some_and(|entry| matches!(entry.kind, pelton::history::Kind::ToolResult { .. }))
    });
    assert_eq!(results.count(), 3);
    assert_eq!(notes.begun().len(), 7);
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L12_loop_X7_with_the_option_the_fifth_ends_the_run_and_the_next_prompt_works() {
    let script = (0..5).fold(Script::new(), |script, _| script.reply([look()]));
    let script = script.reply([look()]).reply([text("Here.")]);
    let stage = Stage::new(script).await;
    let notes = Notes::default();
    let mut engine = stage.engine_with(|options| {
        options.tools.extend(notes.tools());
        options.limits.stop_on_repetition = true;
    });
    let told = run(&mut engine, "Look.").await;
    let outcome = told.outcome();
    assert_eq!((outcome.terminal, outcome.terminal.name()), (Terminal::Repetitive, "model_error"));
    assert!(outcome.is_error && outcome.text.contains("kept calling Look"), "{}", outcome.text);
    assert_eq!(stage.request_count(), 5);
    let told = run(&mut engine, "Try again.").await;
    assert_eq!(told.assert_completed().text, "Here.");
    assert!(circles(&told).is_empty(), "every submission counts for itself");
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L12_polls_that_change_and_different_edits_are_no_circles() {
    let poll = || tool("Bash", sh("wc -l < log; echo x >> log"));
    let edit = |n: u32| {
        let (old, new) = (format!("step {n};"), format!("step {};", n + 1));
        tool("Edit", json!({"file_path": "plan.txt", "old_string": old, "new_string": new}))
    };
    let calls = (0..50)
        .map(|_| poll())
        .chain([tool("Read", json!({"file_path": "plan.txt"}))])
        .chain((0..40).map(edit));
    let stage = Stage::new(calling(calls)).await;
    stage.write("log", "");
    stage.write("plan.txt", "step 0;\n");
    let mut engine = stage.engine_with(|options| options.limits.stop_on_repetition = true);
    let told = run(&mut engine, "Go.").await;
    told.assert_completed();
    assert!(circles(&told).is_empty());
    assert_eq!(stage.read("plan.txt"), "step 40;\n");
    assert_eq!(stage.read("log").lines().count(), 50);
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L12_a_person_is_asked_after_the_fifth_whatever_the_mode() {
    struct Enough;
    impl Asker for Enough {
        fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
            assert_eq!(question.cause, Cause::Repetition);
            Box::pin(async { Answer::deny("Do something else.") })
        }
    }
    let stage = Stage::new(calling((0..6).map(|_| look()))).await;
    let notes = Notes::default();
    let mut engine = stage.engine_with(|options| {
        options.tools.extend(notes.tools());
        options.questions = Some(Questions::to(Enough));
    });
    run(&mut engine, "Look.").await.assert_completed();
    assert_eq!(notes.begun().len(), 5);
    assert_eq!(results_in(&stage.request(7))[5].2, "Do something else.");
}
