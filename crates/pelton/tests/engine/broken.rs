//! Streams that break after something was complete: that is kept, and the rest is asked for with the patience of any
//! other failure.

use std::sync::Arc;
use std::time::Duration;

use pelton::{Event, Options, Terminal};
use pelton_model::{ErrorKind, RetryPolicy};
use pelton_testkit::{Fault, Script, Step, When, error, text, tool};
use serde_json::json;

use crate::clock::Hasty;
use crate::probe::Notes;
use crate::stage::{
    Stage, Told, blocks, last_user_blocks, notes, prompt, rest, results_in, run, sh, text_of, until,
};

const SECOND: &str = "claude-opus-5-5";

/// A text that is complete, and another that breaks off.
fn cut(times: u32) -> Step {
    Step::reply([text("One. ").fragments(1), text("Two and more").fragments(2)])
        .fault(Fault::cut_after_events(7))
        .times(times)
}

/// A text that is complete, and an overload after it.
fn overloaded() -> Step {
    Step::reply([text("One. "), error("overloaded_error", "")])
}

/// The specification's own patience, on a machine that does not wait.
fn patient(options: &mut Options, world: &Arc<Hasty>) {
    options.retry = RetryPolicy::default();
    options.world = Arc::clone(world) as _;
}

#[track_caller]
fn assert_backs_off(told: &Told, world: &Hasty, times: u32) {
    let announced: Vec<Duration> = told.retries().iter().map(|notice| notice.wait).collect();
    assert_eq!(announced.len(), times as usize, "{announced:?}");
    assert_eq!(world.skipped(), announced.iter().sum(), "what is announced is waited");
    for (nth, notice) in told.retries().iter().enumerate() {
        let base = Duration::from_millis(500 << nth).min(Duration::from_secs(32));
        assert!((base..=base.mul_f64(1.25)).contains(&notice.wait), "{nth}: {:?}", notice.wait);
        assert_eq!((notice.attempt, notice.retries_max), (nth as u32 + 1, 10));
        assert!(!notice.withdrawn, "what is complete is kept");
    }
}

#[tokio::test]
async fn loop_M4_loop_R10_pit_L9_a_stream_cut_after_text_waits_and_leaves_the_output_limit_alone() {
    let truncated = Step::reply([text("Long and")]).stop("max_tokens").times(3);
    let script = Script::new().step(cut(5)).step(truncated).reply([text("The end.")]);
    let stage = Stage::new(script).await;
    let world = Hasty::new();
    let mut engine = stage.engine_with(|options| patient(options, &world));

    let told = run(&mut engine, "Count.").await;

    assert_eq!(told.assert_completed().text, "The end.");
    assert_backs_off(&told, &world, 5);
    let broke = |kind: &ErrorKind| matches!(kind, ErrorKind::StreamCut | ErrorKind::Connection(_));
    assert!(told.retries().iter().all(|notice| broke(&notice.kind)));
    let cuts = ["stream_cut_retry"; 5].into_iter();
    let limit = ["max_output_tokens_recovery"; 3];
    assert_eq!(told.transitions(), cuts.chain(limit).collect::<Vec<_>>(), "all three are left for the limit");
    assert_eq!(told.outcome().retries, 5);
    assert_eq!(told.outcome().transitions["stream_cut_retry"], 5);
    // Asked for with words: a message of the assistant's at the end would be refused.
    assert!(text_of(&json!(last_user_blocks(&stage.request(2)))).contains("Go on exactly where it stopped"));
    let noted = notes(&engine.transcript_file().unwrap());
    assert_eq!(noted.iter().filter(|(kind, _)| kind == "retry").count(), 5);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_M4_loop_R1_loop_X7_an_overload_after_text_ends_in_the_real_error() {
    let stage = Stage::new(Script::new().step(overloaded().times(11))).await;
    let world = Hasty::new();
    let mut engine = stage.engine_with(|options| patient(options, &world));

    let told = run(&mut engine, "Count.").await;

    let outcome = told.outcome();
    assert_eq!((outcome.terminal, outcome.is_error), (Terminal::ModelError, true));
    assert!(outcome.text.contains("overloaded_error"), "{}", outcome.text);
    assert!(!outcome.text.contains("output limit"), "{}", outcome.text);
    let failed = outcome.error.as_ref().unwrap();
    assert_eq!((failed.kind.clone(), failed.attempts()), (ErrorKind::Overloaded, 11));
    assert_backs_off(&told, &world, 10);
    let shown = told.0.iter().filter(|event| matches!(event, Event::Synthetic(_))).count();
    assert_eq!(shown, 1);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_M4_loop_R1_an_overload_after_each_call_is_not_hammered() {
    let script = (0..11).fold(Script::new(), |script, n| {
        script.step(Step::reply([
            tool("Bash", sh(&format!("echo {n} >> log"))).id(format!("toolu_{n}")),
            error("overloaded_error", ""),
        ]))
    });
    let stage = Stage::new(script.reply([text("Sorry.")])).await;
    let world = Hasty::new();
    let mut engine = stage.engine_with(|options| patient(options, &world));

    let told = run(&mut engine, "Count.").await;

    assert_eq!(told.outcome().terminal, Terminal::ModelError);
    assert_backs_off(&told, &world, 10);
    assert_eq!(told.transitions(), ["next_turn"; 10]);
    assert_eq!(stage.read("log").lines().count(), 11, "each call was made, and once");
    // The last one too has its answer, and the session goes on.
    assert_eq!(run(&mut engine, "And?").await.assert_completed().text, "Sorry.");
    assert_eq!(results_in(&stage.request(12)).len(), 11);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_M4_an_answer_in_between_starts_the_patience_anew() {
    let script = Script::new()
        .step(cut(2))
        .reply([tool("Glob", json!({"pattern": "*"}))])
        .step(cut(1))
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let world = Hasty::new();
    let mut engine = stage.engine_with(|options| patient(options, &world));
    let told = run(&mut engine, "Go.").await;
    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!(told.retries().iter().map(|notice| notice.attempt).collect::<Vec<_>>(), [1, 2, 1]);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_A1_the_wait_after_a_cut_answer_can_be_interrupted() {
    let stage = Stage::new(Script::new().step(cut(1)).reply([text("Here.")])).await;
    let mut engine = stage.engine_with(|options| options.retry.base = Duration::from_secs(60));
    engine_waits_then_stops(&mut engine).await;
    assert_eq!(stage.request_count(), 1);
    assert_eq!(run(&mut engine, "And now?").await.assert_completed().text, "Here.");
    stage.assert_all_played();
}

async fn engine_waits_then_stops(engine: &mut pelton::Engine) {
    let interrupter = engine.interrupter();
    let mut events = engine.submit(prompt("Go."));
    until(&mut events, |event| matches!(event, Event::Retry(_))).await;
    interrupter.interrupt();
    let told = Told(rest(&mut events).await);
    assert_eq!(told.outcome().terminal, Terminal::AbortedStreaming);
}

#[tokio::test]
async fn loop_T8_loop_M4_the_rest_of_a_kept_text_is_asked_of_the_next_model() {
    // The third in a row.
    let script = Script::new()
        .step(Step::status(529).times(2))
        .step(overloaded())
        .step(Step::reply([text("Two.")]).when(When::any().model(SECOND)));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.fallback_models = vec![SECOND.to_owned()]);

    let told = run(&mut engine, "Count.").await;

    assert_eq!(told.assert_completed().text, "Two.");
    assert_eq!(told.transitions(), ["fallback_retry"]);
    assert_eq!(told.outcome().transitions["fallback_retry"], 1);
    let asked = stage.request(4);
    let said: Vec<&str> =
        blocks(&asked, "assistant").iter().filter_map(|block| block["text"].as_str()).collect();
    assert_eq!(said, ["One. "]);
    assert!(text_of(&json!(last_user_blocks(&asked))).contains("Go on exactly where it stopped"));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T8_loop_I11_results_go_to_the_next_model_with_what_is_attached_to_them() {
    let script = Script::new()
        .step(Step::status(529).times(2))
        .step(Step::reply([
            tool("Change", json!({"name": "a"})).id("toolu_a"),
            error("overloaded_error", ""),
        ]))
        .step(Step::reply([text("Done.")]).when(When::any().model(SECOND)));
    let stage = Stage::new(script).await;
    let calls = Notes::default();
    let mut engine = stage.engine_with(|options| {
        options.fallback_models = vec![SECOND.to_owned()];
        options.tools.extend(calls.tools());
    });
    let told = run(&mut engine, "Go.").await;
    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!(told.transitions(), ["fallback_retry"], "one reason for one question");
    assert_eq!(results_in(&stage.request(4)).len(), 1);
    stage.assert_all_played();
}
