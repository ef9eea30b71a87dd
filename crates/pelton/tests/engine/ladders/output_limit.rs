//! Answers that the output limit cuts, and answers that are too short.

use pelton::{Event, Terminal};
use pelton_testkit::{Script, Step, gate, text, thinking, tool, tool_with_json};
use serde_json::json;

use crate::probe::Notes;
use crate::stage::{
    Stage, Told, blocks, is_start_of, last_user_blocks, prompt, rest, results_in, run, text_of, until,
};

use super::{assert_no_error_shown, synthetics};

#[tokio::test]
async fn loop_T4_a_low_output_limit_is_raised_and_the_cut_answer_withdrawn() {
    let script = Script::new()
        .step(Step::reply([thinking("Hm."), text("Half an ans")]).stop("max_tokens"))
        .reply([thinking("Hm."), text("A whole answer.")])
        .reply([text("Yes.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.max_output_tokens = Some(4_096));

    let told = run(&mut engine, "Go.").await;

    assert_eq!(told.assert_completed().text, "A whole answer.");
    assert_eq!(told.transitions(), ["max_output_tokens_escalate"]);
    assert_no_error_shown(&told);
    let (first, second) = (stage.request(1), stage.request(2));
    assert_eq!((first["max_tokens"].as_u64(), second["max_tokens"].as_u64()), (Some(4_096), Some(64_000)));
    assert_eq!(first["messages"], second["messages"], "the same question");
    // What was shown of it is taken back by name.
    let shown: Vec<_> =
        told.entries().iter().filter(|entry| entry.is_assistant()).map(|entry| entry.id).collect();
    let withdrawn: Vec<_> = told
        .0
        .iter()
        .filter_map(|event| match event {
            Event::Tombstone(ids) => Some(ids.clone()),
            _ => None,
        })
        .flatten()
        .collect();
    assert_eq!(withdrawn, shown[..2]);

    // Another process does not meet it either.
    let file = engine.transcript_file().unwrap();
    drop(engine);
    run(&mut stage.resume(&file), "Sure?").await.assert_completed();
    let resumed = stage.request(3).to_string();
    assert!(resumed.contains("A whole answer.") && !resumed.contains("Half an ans"), "{resumed}");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T5_loop_X7_after_the_raised_limit_it_goes_on_three_times_and_then_says_so() {
    let cut = |n: usize| Step::reply([text(format!("Part {n}."))]).stop("max_tokens");
    let stage = Stage::new((0..5).map(cut).fold(Script::new(), Script::step)).await;
    let mut engine = stage.engine_with(|options| options.max_output_tokens = Some(4_096));

    let told = run(&mut engine, "Go.").await;

    let outcome = told.outcome();
    assert_eq!((outcome.terminal, outcome.is_error), (Terminal::ModelError, true));
    let recovery = "max_output_tokens_recovery";
    assert_eq!(told.transitions(), ["max_output_tokens_escalate", recovery, recovery, recovery]);
    assert_eq!(synthetics(&told), 1);
    assert!(outcome.text.contains("output limit"), "{}", outcome.text);
    let last = stage.request(5);
    assert!(text_of(&json!(last_user_blocks(&last))).contains("Go on exactly where it stopped"));
    let said: Vec<String> = blocks(&last, "assistant").iter().map(|block| text_of(&json!([block]))).collect();
    assert_eq!(said, ["Part 1.", "Part 2.", "Part 3."], "the first part was withdrawn");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T7_loop_B4_more_output_is_asked_for_until_there_is_enough() {
    let part = |n: usize| Step::reply([text(format!("Part {n}."))]).usage("output_tokens", 1_000);
    let stage = Stage::new((0..4).map(part).fold(Script::new(), Script::step)).await;
    let mut engine = stage.engine_with(|options| options.limits.output_tokens_wanted = Some(4_000));

    let told = run(&mut engine, "A long story.").await;

    let more = "token_budget_continuation";
    assert_eq!(told.transitions(), [more, more, more]);
    assert_eq!(told.assert_completed().usage.output_tokens, 4_000);
    assert_eq!(told.loop_reasons("budget"), ["4000 of 4000 tokens wanted are written: that is enough"]);
    assert_eq!(told.outcome().loop_events["budget"], 1);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T7_little_by_little_is_not_asked_for_for_ever() {
    let stage =
        Stage::new(Script::new().step(Step::reply([text("Hm.")]).usage("output_tokens", 10).always())).await;
    let mut engine = stage.engine_with(|options| options.limits.output_tokens_wanted = Some(1_000_000));
    let told = run(&mut engine, "A long story.").await;
    told.assert_completed();
    assert_eq!(told.transitions(), ["token_budget_continuation"; 3]);
    let why = "40 of 1000000 tokens wanted are written: the last answers brought little";
    assert_eq!(told.loop_reasons("budget"), [why]);
}

/// A call of Write that ends in the middle of its content.
fn cut_write() -> Step {
    let half = r#"{"file_path": "long.txt", "content": "once upon a ti"#;
    Step::reply([text("I write it."), tool_with_json("Write", half)]).stop("max_tokens")
}

#[tokio::test]
async fn pit_L13_loop_W3_a_call_that_the_output_limit_cut_is_not_run_and_asked_for_in_parts() {
    let script = Script::new()
        .step(cut_write())
        .step(cut_write())
        .step(cut_write())
        .reply([tool("Write", json!({"file_path": "long.txt", "content": "once"}))])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.max_output_tokens = Some(4_096));

    let told = run(&mut engine, "A long story.").await;

    assert_eq!(told.assert_completed().text, "Done.");
    let recovery = "max_output_tokens_recovery";
    assert_eq!(told.transitions(), ["max_output_tokens_escalate", recovery, recovery, "next_turn"]);
    assert_no_error_shown(&told);
    assert_eq!(stage.request(1)["messages"], stage.request(2)["messages"], "the limit is raised once");
    assert_eq!(stage.request(2)["max_tokens"], 64_000);
    let parts = text_of(&json!(last_user_blocks(&stage.request(3))));
    assert!(parts.contains("Write") && parts.contains("smaller parts"), "{parts}");
    let first_call = results_in(&stage.request(5));
    assert_eq!(first_call.len(), 1, "only the whole call was made: {first_call:?}");
    assert_eq!((stage.read("long.txt").as_str(), told.outcome().tool_calls), ("once", 1));
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L13_loop_W3_a_call_that_is_always_cut_is_given_up_after_three_more_attempts() {
    let stage = Stage::new(Script::new().step(cut_write().times(5)).reply([text("Yes.")])).await;
    let mut engine = stage.engine_with(|options| options.max_output_tokens = Some(4_096));

    let told = run(&mut engine, "A long story.").await;

    assert_eq!((told.outcome().terminal, stage.request_count()), (Terminal::ModelError, 5));
    assert_eq!(synthetics(&told), 1, "said once");
    assert!(!stage.path("long.txt").exists());
    run(&mut engine, "Still there?").await.assert_completed();
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L13_a_call_that_was_cut_before_its_input_is_not_run() {
    // Nothing of the input came. The same call, whole, would be legal: it needs none.
    let cut = || Step::reply([text("I look."), tool_with_json("Look", "")]).stop("max_tokens");
    for stop in ["max_tokens", "tool_use"] {
        let script = Script::new().step(cut().stop(stop)).reply([text("Done.")]);
        let stage = Stage::new(script).await;
        let calls = Notes::default();
        let mut engine = stage.engine_with(|options| options.tools.extend(calls.tools()));
        let told = run(&mut engine, "Go.").await;
        told.assert_completed();
        let whole = stop == "tool_use";
        assert_eq!(told.outcome().tool_calls, u32::from(whole), "{stop}");
        let expected = if whole { "next_turn" } else { "max_output_tokens_recovery" };
        assert_eq!(told.transitions(), [expected]);
        stage.assert_all_played();
    }
    // Beside one that ran it is answered, and not run either.
    let script = Script::new()
        .step(
            Step::reply([tool("Change", json!({"name": "a"})), tool_with_json("Look", "")])
                .stop("max_tokens"),
        )
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let calls = Notes::default();
    let mut engine = stage.engine_with(|options| options.tools.extend(calls.tools()));
    run(&mut engine, "Go.").await.assert_completed();
    assert_eq!(calls.begun(), ["a"]);
    let results = results_in(&stage.request(2));
    assert_eq!(results.iter().map(|(_, is_error, _)| *is_error).collect::<Vec<_>>(), [false, true]);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_P1_a_call_without_input_runs_while_the_answer_goes_on() {
    let script = Script::new()
        .step(Step::reply([
            tool_with_json("TaskList", "").id("toolu_empty"),
            text("And ").fragments(2).after(1, gate("seen")),
        ]))
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let mut events = Box::pin(engine.submit(prompt("Go.")));
    let mut told = until(&mut events, |event| is_start_of(event, "toolu_empty")).await;
    stage.model.open("seen");
    told.extend(rest(&mut events).await);
    Told(told).assert_completed();
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L13_a_cut_call_beside_one_that_ran_is_answered_and_nothing_runs_twice() {
    let half = r#"{"file_path": "long.txt", "content": "once upon a ti"#;
    let script = Script::new()
        .step(
            Step::reply([tool("Change", json!({"name": "a"})), tool_with_json("Write", half)])
                .stop("max_tokens"),
        )
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let calls = Notes::default();
    let mut engine = stage.engine_with(|options| {
        options.max_output_tokens = Some(4_096);
        options.tools.extend(calls.tools());
    });

    let told = run(&mut engine, "Go.").await;

    assert_eq!(told.assert_completed().text, "Done.");
    let went_on = vec!["max_output_tokens_recovery"];
    assert_eq!((told.transitions(), calls.begun()), (went_on, vec!["a".to_owned()]));
    let results = results_in(&stage.request(2));
    assert_eq!(results.iter().map(|(_, is_error, _)| *is_error).collect::<Vec<_>>(), [false, true]);
    assert!(results[1].2.contains("smaller parts"), "{results:?}");
    stage.assert_all_played();
}
