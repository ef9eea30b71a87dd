//! Prompts that do not fit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use pelton::compact::{LocalShaper, Room, Shaper};
use pelton::history::View;
use pelton::{Event, Terminal};
use pelton_testkit::{Script, Step, text, thinking, tool};
use serde_json::json;

use crate::stage::{Stage, blocks, run, text_of};

use super::{assert_no_error_shown, kinds, synthetics, thoughts};

/// A refusal of a prompt that is `over` tokens too long.
fn too_long(over: u64) -> Step {
    let message = format!("prompt is too long: {} tokens > 200000 maximum", 200_000 + over);
    Step::status(400).error_type("invalid_request_error").message(message)
}

/// Rounds with something in them that can be left out.
fn rounds(script: Script, count: usize) -> Script {
    (0..count).fold(script, |script, n| {
        let words = format!("Round {n}. {}", "Words upon words. ".repeat(40));
        script.reply([text(words), tool("Glob", json!({"pattern": format!("{n}*")}))])
    })
}

/// Has one fold staged, and is the local shaper beside that.
struct Folding(AtomicBool);

impl Folding {
    fn staged() -> Arc<Self> {
        Arc::new(Self(AtomicBool::new(true)))
    }
}

impl Shaper for Folding {
    fn fit<'a>(&'a self, view: &'a mut View, room: Room) -> BoxFuture<'a, ()> {
        LocalShaper.fit(view, room)
    }

    fn drain(&self, view: &mut View) -> bool {
        // Two thirds of it: something is left to be compacted.
        let keep = view.tokens() * 2 / 3;
        self.0.swap(false, Ordering::Relaxed) && view.leave_out_oldest(keep) > 0
    }

    fn compact<'a>(&'a self, view: &'a mut View, room: Room) -> BoxFuture<'a, bool> {
        LocalShaper.compact(view, room)
    }

    fn could_free(&self, view: &View) -> u64 {
        LocalShaper.could_free(view)
    }
}

#[tokio::test]
async fn loop_T2_staged_folds_are_committed_when_the_prompt_is_too_long() {
    let script = rounds(Script::new(), 6).step(too_long(10)).reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.shaper = Folding::staged());

    let told = run(&mut engine, "Go.").await;

    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!(told.transitions().last(), Some(&"collapse_drain_retry"));
    assert!(!told.transitions().contains(&"reactive_compact_retry"));
    assert_no_error_shown(&told);
    let (refused, sent) = (stage.request(7), stage.request(8));
    assert!(sent.to_string().len() < refused.to_string().len());
    assert_eq!(kinds(&engine), ["withheld", "ladder"]);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T3_what_is_still_too_long_after_the_folds_is_compacted_once() {
    let script =
        rounds(Script::new(), 8).step(too_long(10)).step(too_long(5)).step(too_long(1)).reply([text("No.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.shaper = Folding::staged());

    let told = run(&mut engine, "Go.").await;

    assert_eq!(told.outcome().terminal, Terminal::PromptTooLong);
    assert_eq!(told.transitions()[8..], ["collapse_drain_retry", "reactive_compact_retry"]);
    assert_eq!((synthetics(&told), stage.request_count()), (1, 11));
    let sizes: Vec<usize> = (9..=11).map(|n| stage.request(n).to_string().len()).collect();
    assert!(sizes[0] > sizes[1] && sizes[1] > sizes[2], "{sizes:?}");
}

#[tokio::test]
async fn loop_T3_loop_W1_loop_I6_a_prompt_too_long_is_made_shorter_and_nobody_is_shown_an_error() {
    let script =
        rounds(Script::new(), 6).step(too_long(100)).reply([text("Done.")]).reply([text("Still here.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "The task itself.").await;

    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!(told.transitions().last(), Some(&"reactive_compact_retry"));
    assert_no_error_shown(&told);
    // Withheld, and two rungs: no folds were staged, so it was compacted.
    assert_eq!(kinds(&engine), ["withheld", "ladder", "ladder"]);
    let held: Vec<&str> = told
        .0
        .iter()
        .filter_map(|event| match event {
            Event::Loop(told) => Some(told.kind.name()),
            _ => None,
        })
        .collect();
    assert_eq!(held, ["withheld", "ladder", "ladder"]);
    assert_eq!(told.outcome().transitions["reactive_compact_retry"], 1);
    let sent = stage.request(8);
    let words: String = blocks(&sent, "user").iter().map(|block| text_of(&json!([block]))).collect();
    assert!(words.contains("The task itself.") && words.contains("were left out"), "{words}");
    assert!(!sent.to_string().contains("Round 0.") && sent.to_string().contains("Round 5."));

    // Nothing is lost for good: the file has all of it, and the session goes on.
    run(&mut engine, "And?").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    assert!(std::fs::read_to_string(file).unwrap().contains("Round 0."));
    stage.assert_all_played();
}

#[tokio::test]
async fn thinking_from_after_a_compaction_does_not_trip_a_resumed_session() {
    let script = rounds(Script::new(), 6)
        .step(too_long(100))
        .reply([thinking("Bound to what was left."), text("Done.")])
        .reply([text("Here.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    run(&mut engine, "Go.").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    drop(engine);

    // The file has all of it, so all of it is sent again; the model would refuse thoughts about less.
    assert_eq!(run(&mut stage.resume(&file), "And?").await.assert_completed().text, "Here.");
    let request = stage.request(9);
    assert!(request.to_string().contains("Round 0.") && thoughts(&request) == 0);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_X5_one_round_cannot_be_made_shorter_so_it_is_said_at_once() {
    let stage = Stage::new(Script::new().step(too_long(100)).reply([text("Better.")])).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Go.").await;

    let outcome = told.outcome();
    assert_eq!((outcome.terminal, outcome.is_error), (Terminal::PromptTooLong, true));
    assert!(outcome.text.contains("prompt is too long: 200100 tokens"), "{}", outcome.text);
    assert_eq!((synthetics(&told), stage.request_count()), (1, 1));
    assert!(told.transitions().is_empty());
    run(&mut engine, "Shorter.").await.assert_completed();
}

#[tokio::test]
async fn loop_X5_an_overrun_beyond_what_could_be_left_out_is_not_climbed() {
    let stage = Stage::new(rounds(Script::new(), 4).step(too_long(1_000_000))).await;
    let told = run(&mut stage.engine(), "Go.").await;
    assert_eq!(told.outcome().terminal, Terminal::PromptTooLong);
    assert_eq!((synthetics(&told), stage.request_count()), (1, 5));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_X5_what_is_too_long_after_its_compaction_is_shown_exactly_once() {
    let stage = Stage::new(rounds(Script::new(), 6).step(too_long(10).times(2))).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Go.").await;

    let outcome = told.outcome();
    assert_eq!((outcome.terminal, outcome.is_error), (Terminal::PromptTooLong, true));
    assert_eq!(outcome.transitions["reactive_compact_retry"], 1);
    assert_eq!((synthetics(&told), stage.request_count()), (1, 8));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_X8_loop_I2_a_full_window_is_said_without_asking() {
    let stage = Stage::new(Script::new()).await;
    let mut engine = stage.engine_with(|options| options.window_tokens = Some(3_001));

    let told = run(&mut engine, "Go.").await;

    let outcome = told.outcome();
    assert_eq!((outcome.terminal, outcome.is_error), (Terminal::BlockingLimit, true));
    assert!(outcome.text.contains("context window"), "{}", outcome.text);
    assert_eq!((synthetics(&told), stage.request_count()), (1, 0));
}

#[tokio::test]
async fn loop_B5_loop_I1_what_the_model_counted_decides_whether_the_next_question_fits() {
    // Well above what the tools take.
    let window = 40_000;
    for (counted, shaped) in [(38_500_u64, true), (12_000, false)] {
        let heavy = Step::reply([text("Round 1."), tool("Glob", json!({"pattern": "1*"}))]);
        let script =
            rounds(Script::new(), 1).step(heavy.usage("input_tokens", counted)).reply([text("Done.")]);
        let stage = Stage::new(script).await;
        let mut engine = stage.engine_with(|options| options.window_tokens = Some(window));

        let told = run(&mut engine, "Go.").await;

        told.assert_completed();
        // Our own estimate is far below the window in both cases.
        assert_eq!(stage.request(3).to_string().contains("were left out"), shaped, "{counted}");
        let ladder =
            told.0.iter().any(|event| matches!(event, Event::Loop(told) if told.kind.name() == "ladder"));
        assert_eq!(ladder, shaped, "it is said when, and only when, it was done");
        stage.assert_all_played();
    }
}
