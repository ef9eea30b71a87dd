//! Prompts that do not fit.

use pelton::{Event, Terminal};
use pelton_testkit::{Script, Step, When, gate, text, thinking, tool};
use serde_json::{Value, json};

use crate::stage::{Stage, Told, blocks, prompt, pulling, rest, run, sh, text_of, unmarked};

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

/// A summary, for whoever asks for one.
fn summary() -> Step {
    Step::reply([text("The rounds were counted, and all is well.")])
        .when(When::any().last_user_text("call no tools"))
}

/// Rounds whose results are bulky.
fn bulky_rounds(script: Script, count: usize) -> Script {
    (0..count).fold(script, |script, n| {
        let printed = format!("seq {n} 2000");
        script.reply([text(format!("Round {n}.")), tool("Bash", sh(&printed))])
    })
}

#[tokio::test]
async fn loop_T3_what_is_still_too_long_after_the_folds_is_compacted_once() {
    let script = bulky_rounds(Script::new(), 8)
        .step(too_long(10))
        .step(too_long(5))
        .step(summary())
        .step(too_long(1))
        .reply([text("No.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Go.").await;

    assert_eq!(told.outcome().terminal, Terminal::PromptTooLong);
    assert_eq!(told.transitions()[8..], ["collapse_drain_retry", "reactive_compact_retry"]);
    assert_eq!((synthetics(&told), stage.request_count()), (1, 12));
    let sizes: Vec<usize> = [9, 10, 12].map(|n| stage.request(n).to_string().len()).to_vec();
    assert!(sizes[0] > sizes[1] && sizes[1] > sizes[2], "{sizes:?}");
}

#[tokio::test]
async fn loop_T3_loop_W1_loop_I6_a_prompt_too_long_is_made_shorter_and_nobody_is_shown_an_error() {
    let script = rounds(Script::new(), 6)
        .step(too_long(100))
        .step(summary())
        .reply([text("Done.")])
        .reply([text("Still here.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "The task itself.").await;

    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!(told.transitions().last(), Some(&"reactive_compact_retry"));
    assert_no_error_shown(&told);
    // Withheld, and two rungs: no folds were staged, so it was compacted.
    assert_eq!(kinds(&engine), ["withheld", "ladder", "compaction", "ladder"]);
    let held: Vec<&str> = told
        .0
        .iter()
        .filter_map(|event| match event {
            Event::Loop(told) if !["transition", "cache"].contains(&told.kind.name()) => {
                Some(told.kind.name())
            }
            _ => None,
        })
        .collect();
    assert_eq!(held, ["withheld", "ladder", "compaction", "ladder"]);
    assert_eq!(told.outcome().transitions["reactive_compact_retry"], 1);
    let sent = stage.request(9);
    let words: String = blocks(&sent, "user").iter().map(|block| text_of(&json!([block]))).collect();
    assert!(words.contains("The task itself.") && words.contains("all is well"), "{words}");
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
        .step(summary())
        .reply([thinking("Bound to what was left."), text("Done.")])
        .reply([text("Here.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    run(&mut engine, "Go.").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    drop(engine);

    // What was done to what is sent is done again, so the thoughts about it are valid.
    assert_eq!(run(&mut stage.resume(&file), "And?").await.assert_completed().text, "Here.");
    let (before, request) = (stage.request(9), stage.request(10));
    assert!(!request.to_string().contains("Round 0.") && thoughts(&request) == 1);
    let front = |request: &Value| unmarked(request)["messages"].as_array().unwrap()[..2].to_vec();
    assert_eq!(front(&request), front(&before), "byte for byte");
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
    let stage =
        Stage::new(rounds(Script::new(), 6).step(too_long(10)).step(summary()).step(too_long(10))).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Go.").await;

    let outcome = told.outcome();
    assert_eq!((outcome.terminal, outcome.is_error), (Terminal::PromptTooLong, true));
    assert_eq!(outcome.transitions["reactive_compact_retry"], 1);
    assert_eq!((synthetics(&told), stage.request_count()), (1, 9));
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
    let window = 60_000;
    for (counted, shaped) in [(55_000_u64, true), (1_000, false)] {
        let words = "Words upon words. ".repeat(1_500);
        let heavy = Step::reply([text("Round 1."), tool("Glob", json!({"pattern": "1*"}))]);
        let script = Script::new()
            .reply([text(words), tool("Glob", json!({"pattern": "0*"}))])
            .step(heavy.usage("input_tokens", counted));
        let script = if shaped { script.step(Step::reply([text("All is well.")])) } else { script };
        let stage = Stage::new(script.reply([text("Done.")])).await;
        let mut engine = stage.engine_with(|options| {
            options.window_tokens = Some(window);
            options.compact.folds = false;
        });

        let told = run(&mut engine, "Go.").await;

        told.assert_completed();
        // Our own estimate is far below the window in both cases.
        let asked_for_summary = |request: &Value| request.to_string().contains("call no tools");
        assert_eq!(asked_for_summary(&stage.request(3)), shaped, "{counted}");
        let told = told.0.iter().any(|event| matches!(event, Event::Context(_)));
        assert_eq!(told, shaped, "it is said when, and only when, it was done");
        stage.assert_all_played();
    }
}

#[tokio::test]
async fn pit_L14_loop_T3_a_window_that_fills_up_in_the_middle_of_an_answer_is_compacted() {
    // The server's window is smaller than the one everybody knows of.
    let cut = Step::reply([thinking("Hm."), text("The first half")]).stop("model_context_window_exceeded");
    let script = bulky_rounds(Script::new(), 8)
        .step(cut.clone())
        .step(cut)
        .step(summary())
        .reply([text("and the second.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Go.").await;

    assert_eq!(told.assert_completed().text, "and the second.");
    assert_eq!(told.transitions()[8..], ["collapse_drain_retry", "reactive_compact_retry"]);
    assert_no_error_shown(&told);
    // What was said stays said, and the rest of it is asked for.
    let last = stage.request(12);
    assert!(last.to_string().contains("The first half"), "{last}");
    let asked = text_of(&json!(crate::stage::last_user_blocks(&last)));
    assert!(asked.contains("Go on exactly where it stopped"), "{asked}");
    let sizes: Vec<usize> = [9, 10, 12].map(|n| stage.request(n).to_string().len()).to_vec();
    assert!(sizes[0] > sizes[1] && sizes[1] > sizes[2], "{sizes:?}");
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L14_pit_L13_a_call_that_the_window_cut_is_not_run_and_one_that_always_does_ends_the_run() {
    let half = r#"{"file_path": "long.txt", "content": "once upon a ti"#;
    let cut = || {
        Step::reply([text("I write."), pelton_testkit::tool_with_json("Write", half)])
            .stop("model_context_window_exceeded")
    };
    let script = bulky_rounds(Script::new(), 8).step(cut().times(2)).step(summary()).step(cut());
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let told = run(&mut engine, "Go.").await;
    let outcome = told.outcome();
    assert_eq!((outcome.terminal, outcome.is_error), (Terminal::PromptTooLong, true));
    assert!(outcome.text.contains("context window filled up"), "{}", outcome.text);
    assert_eq!((synthetics(&told), outcome.tool_calls), (1, 8));
    assert!(!stage.path("long.txt").exists());
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_C5_a_disk_that_fails_in_a_compaction_is_what_the_result_says() {
    let script = bulky_rounds(Script::new(), 8).step(too_long(10)).step(too_long(5)).step(
        Step::reply([text("In short."), gate("full")]).when(When::any().last_user_text("call no tools")),
    );
    let stage = Stage::new(script).await;
    let disk = crate::disk::Filling::default();
    let mut engine = stage.engine_with(|options| options.disk = std::sync::Arc::new(disk.clone()));
    let mut events = Box::pin(engine.submit(prompt("Go.")));
    let mut told = pulling(&mut events, stage.model.wait_at_gate("full")).await.0;
    disk.is_full();
    stage.model.open("full");
    told.extend(rest(&mut events).await);
    drop(events);
    let told = Told(told);
    let outcome = told.outcome();
    assert_eq!((outcome.terminal, outcome.is_error), (Terminal::Unrecorded, true), "{outcome:#?}");
    assert!(!outcome.errors.iter().any(|error| error.contains("Interrupted")), "{:?}", outcome.errors);
    assert!(outcome.errors[0].contains("no storage space"), "{:?}", outcome.errors);
}

#[tokio::test]
async fn loop_T3_results_of_the_only_round_are_cut_where_there_is_nothing_to_sum_up() {
    let script = Script::new()
        .reply([tool("Bash", sh("seq 1 5000")), tool("Bash", sh("seq 2 5000"))])
        .step(too_long(4_000))
        .reply([text("Done.")])
        .reply([text("Still here.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    assert_eq!(run(&mut engine, "Compare them.").await.assert_completed().text, "Done.");

    let sent = stage.request(3).to_string();
    assert!(sent.contains("bytes omitted") && sent.contains("Compare them."), "{sent}");
    assert!(sent.len() < stage.request(2).to_string().len() * 3 / 4);
    run(&mut engine, "And?").await.assert_completed();
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T3_a_prompt_that_was_refused_does_not_stand_in_the_way_of_the_next() {
    let script = Script::new().step(too_long(4_000)).step(too_long(4_000)).reply([text("Hello.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let told = run(&mut engine, &"Words upon words. ".repeat(9_000)).await;
    assert_eq!(told.outcome().terminal, Terminal::PromptTooLong);
    // In another process, which knows the record only.
    let file = engine.transcript_file().unwrap();
    drop(engine);
    assert_eq!(run(&mut stage.resume(&file), "Hello?").await.assert_completed().text, "Hello.");
    let sent = stage.request(3).to_string();
    assert!(sent.contains("Hello?") && sent.len() < stage.request(2).to_string().len() / 2, "{}", sent.len());
    stage.assert_all_played();
}

#[tokio::test]
async fn what_the_server_counted_when_it_refused_is_known_from_then_on() {
    let stage = Stage::new(Script::new()).await;
    let words = "Words upon words. ".repeat(9_000);
    let counted = stage.engine().context_usage().used_tokens + words.len() as u64 / 4 * 3 / 2;
    let message = format!("prompt is too long: {counted} tokens > 40000 maximum");
    let refusal = Step::status(400).error_type("invalid_request_error").message(message);
    let stage = stage.playing(Script::new().step(refusal)).await;
    let mut engine = stage.engine();
    run(&mut engine, &words).await;
    let shown = engine.context_usage().used_tokens;
    assert!(shown.abs_diff(counted) * 50 < counted, "{shown} instead of {counted}");
}
