//! Why the loop ends.

use pelton::{Event, Options, Terminal};
use pelton_testkit::{Fault, Script, Step, error, text, tool};
use serde_json::json;

use crate::clock::Hasty;
use crate::stage::{Stage, lines, run};

#[tokio::test]
async fn loop_X1_the_models_own_end_is_a_success() {
    let stage = Stage::new(Script::new().reply([text("Hello."), text(" And goodbye.")])).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Hi.").await;

    let outcome = told.assert_completed();
    assert_eq!(outcome.text, "Hello. And goodbye.");
    assert_eq!(outcome.num_turns, 1);
    assert!(outcome.errors.is_empty() && outcome.error.is_none());
    assert!(told.transitions().is_empty());
    assert!(outcome.usage.output_tokens > 0 && outcome.cost_usd > 0.0, "{outcome:#?}");
    stage.assert_all_played();
}

/// A limit on turns, what the model does, and what comes of it: terminal, turns reported, requests sent.
async fn check_turns(turns_max: Option<u32>, calls: usize, expected: (Terminal, u32, usize)) {
    let read = |n| tool("Read", json!({"file_path": "a.txt", "offset": n + 1}));
    let mut script = Script::new();
    if calls > 0 {
        script = script.reply((0..calls).map(read));
    }
    let stage = Stage::new(script.reply([text("Done.")])).await;
    stage.write("a.txt", "one\ntwo\nthree\n");
    let mut engine = stage.engine_with(|options| options.limits.turns_max = turns_max);

    let told = run(&mut engine, "Go.").await;

    let outcome = told.outcome();
    let case = format!("limit {turns_max:?}, {calls} calls");
    assert_eq!((outcome.terminal, outcome.num_turns, stage.request_count()), expected, "{case}");
    assert_eq!(outcome.is_error, expected.0 == Terminal::MaxTurns, "{case}");
    if outcome.is_error {
        assert!(outcome.errors[0].contains("maximum number of turns (1)"), "{:?}", outcome.errors);
    }
    stage.model.assert_clean();
}

#[tokio::test]
async fn loop_X4_loop_B2_loop_I12_loop_E16_the_limit_on_turns_holds_and_turns_are_counted() {
    // One tool call uses the one turn up: there is no second request, and its result counts as a turn.
    check_turns(Some(1), 1, (Terminal::MaxTurns, 2, 1)).await;
    check_turns(Some(1), 0, (Terminal::Completed, 1, 1)).await;
    check_turns(Some(2), 1, (Terminal::Completed, 2, 2)).await;
    check_turns(None, 1, (Terminal::Completed, 2, 2)).await;
    // Parallel calls are one turn, but each of their results is a message.
    check_turns(Some(2), 2, (Terminal::Completed, 3, 2)).await;
    check_turns(Some(1), 2, (Terminal::MaxTurns, 3, 1)).await;
}

#[tokio::test]
async fn a_session_goes_on_after_its_turn_limit() {
    let script =
        Script::new().reply([tool("Read", json!({"file_path": "a.txt"}))]).reply([text("It says one.")]);
    let stage = Stage::new(script).await;
    stage.write("a.txt", "one\n");
    let mut engine = stage.engine_with(|options| options.limits.turns_max = Some(1));
    assert_eq!(run(&mut engine, "Read a.txt.").await.outcome().terminal, Terminal::MaxTurns);
    assert_eq!(run(&mut engine, "And?").await.assert_completed().text, "It says one.");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_X7_loop_R11_an_error_beyond_retrying_is_shown_with_all_that_is_known_of_it() {
    let script = Script::new()
        .step(
            Step::status(400)
                .error_type("invalid_request_error")
                .message("messages.3: something is wrong with it")
                .header("request-id", "req_test_1"),
        )
        .reply([text("Better.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Hi.").await;

    let outcome = told.outcome();
    assert_eq!(outcome.terminal, Terminal::ModelError);
    assert!(outcome.is_error);
    let error = outcome.error.as_ref().unwrap();
    assert_eq!(error.status, Some(400));
    assert_eq!(error.error_type.as_deref(), Some("invalid_request_error"));
    assert_eq!(error.message, "messages.3: something is wrong with it");
    assert_eq!(error.request_id.as_deref(), Some("req_test_1"));
    for known in ["400", "invalid_request_error", "messages.3: something is wrong with it", "req_test_1"] {
        assert!(outcome.text.contains(known), "{known}: {}", outcome.text);
    }
    assert!(told.retries().is_empty());
    assert_eq!(stage.request_count(), 1);

    // It is said in the assistant's role and written down, but the model does not see it.
    let said = told.0.iter().find_map(|event| match event {
        Event::Synthetic(synthetic) => Some(synthetic),
        _ => None,
    });
    assert_eq!(said.unwrap().text, outcome.text);
    let lines = lines(&engine.transcript_file().unwrap());
    let last = lines.last().unwrap();
    assert_eq!(last["isApiErrorMessage"], true);
    assert_eq!(last["message"]["content"][0]["text"], outcome.text.as_str());
    run(&mut engine, "Try again.").await.assert_completed();
    assert!(!stage.request(2)["messages"].to_string().contains("something is wrong"));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_X7_retries_that_are_used_up_are_the_end() {
    let stage = Stage::new(Script::new().step(Step::status(529).always())).await;
    let mut engine = stage.engine_with(|options| options.retry.retries_max = 3);

    let told = run(&mut engine, "Hi.").await;

    let outcome = told.outcome();
    assert_eq!(outcome.terminal, Terminal::ModelError);
    assert_eq!(outcome.error.as_ref().unwrap().status, Some(529));
    assert_eq!((outcome.retries, told.retries().len(), stage.request_count()), (3, 3, 4));
    stage.model.assert_clean();
}

#[tokio::test]
async fn loop_X7_an_api_that_never_answers_is_told_apart_from_one_that_refuses() {
    let script = Script::new().step(Step::reply([]).fault(Fault::close_before_headers()).always());
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.retry.retries_max = 1);

    let told = run(&mut engine, "Hi.").await;

    let outcome = told.outcome();
    assert_eq!(outcome.terminal, Terminal::ModelUnreachable);
    assert_eq!(outcome.terminal.name(), "model_error");
    assert!(outcome.is_error && !outcome.text.is_empty());
}

#[tokio::test]
async fn loop_X7_three_answers_in_a_row_with_nothing_but_unusable_calls_are_the_end() {
    let unusable = Step::reply([tool("NoSuchTool", json!({})), tool("Read", json!({"path": 1}))]);
    let script = Script::new()
        .step(unusable.clone().times(2))
        // A usable call in between begins the count again.
        .reply([tool("NoSuchTool", json!({})), tool("Read", json!({"file_path": "a.txt"}))])
        .step(unusable.times(3));
    let stage = Stage::new(script).await;
    stage.write("a.txt", "one\n");
    let mut engine = stage.engine();

    let told = run(&mut engine, "Go.").await;

    let outcome = told.outcome();
    assert_eq!(outcome.terminal, Terminal::MalformedToolUse);
    assert!(outcome.is_error);
    assert!(outcome.text.contains("cannot be run"), "{}", outcome.text);
    assert_eq!(stage.request_count(), 6);
    stage.assert_all_played();
}

/// An answer with a call, cut behind it: the call counts, and the run ends later for a reason of its own.
#[tokio::test]
async fn what_broke_an_answer_is_not_the_reason_of_an_end_that_comes_later() {
    type Ends = (&'static str, fn(&mut Options), Terminal, &'static str);
    let ends: [Ends; 3] = [
        ("NoSuchTool", |_| (), Terminal::MalformedToolUse, "cannot be run"),
        ("Read", |options| options.limits.turns_max = Some(1), Terminal::MaxTurns, "number of turns (1)"),
        ("Glob", |options| options.limits.stop_on_repetition = true, Terminal::Repetitive, "Glob"),
    ];
    for (name, change, terminal, words) in ends {
        let input = json!({"file_path": "a.txt", "pattern": "*"});
        let input = if name == "Glob" { json!({"pattern": "*"}) } else { input };
        let cut = Step::reply([tool(name, input), error("overloaded_error", "Overloaded")]);
        let stage = Stage::new(Script::new().step(cut.always())).await;
        let mut engine = stage.engine_with(|options| {
            options.world = Hasty::new();
            change(options);
        });

        let told = run(&mut engine, "Go.").await;

        let outcome = told.outcome();
        assert_eq!(outcome.terminal, terminal, "{outcome:?}");
        assert!(outcome.error.is_none(), "{terminal:?}: {:?}", outcome.error);
        let said = format!("{} {:?}", outcome.text, outcome.errors);
        assert!(said.contains(words) && !said.contains("verload"), "{terminal:?}: {said}");
    }
}

#[tokio::test]
async fn loop_X7_an_answer_that_breaks_off_is_an_answer_of_the_api() {
    let faults = [Fault::cut_after_events(3), Fault::reset_after_events(3), Fault::empty_stream()];
    for fault in faults {
        let shown = format!("{fault:?}");
        let stage = Stage::new(Script::new().step(Step::reply([text("Half")]).fault(fault).always())).await;
        let mut engine = stage.engine_with(|options| {
            options.retry.retries_max = 1;
            options.retry.non_streaming_fallback = false;
            options.world = Hasty::new();
        });
        let told = run(&mut engine, "Go.").await;
        let outcome = told.outcome();
        assert_eq!(
            (outcome.terminal, outcome.terminal.name()),
            (Terminal::ModelError, "api_error"),
            "{shown}"
        );
        assert!(!outcome.text.contains("no connection"), "{shown}: {}", outcome.text);
    }
}

#[tokio::test]
async fn loop_X5_a_prompt_that_does_not_fit_shows_what_the_api_said() {
    let words = "prompt is too long: 208310 tokens > 200000 maximum";
    let stage = Stage::new(Script::new().step(Step::status(400).message(words))).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Hi.").await;

    let outcome = told.outcome();
    assert_eq!(outcome.terminal, Terminal::PromptTooLong);
    assert!(outcome.is_error);
    assert!(outcome.text.contains(words), "{}", outcome.text);
    assert_eq!(stage.request_count(), 1);
}

#[tokio::test]
async fn loop_X6_a_request_with_too_many_bytes_is_an_error_of_its_own_kind() {
    let stage = Stage::new(Script::new().step(Step::status(413))).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Hi.").await;

    let outcome = told.outcome();
    assert_eq!(outcome.terminal, Terminal::ImageError);
    assert!(outcome.is_error);
    assert_eq!(outcome.error.as_ref().unwrap().status, Some(413));
    assert_eq!(stage.request_count(), 1);
}
