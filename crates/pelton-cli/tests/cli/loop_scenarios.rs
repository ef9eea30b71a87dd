//! What the loop does about trouble, as the command's flags and frames show it.

use pelton_testkit::{Script, Step, When, text, tool};
use serde_json::{Value, json};

use crate::frames::{STREAM, check_stream};
use crate::place::{Commanded, Place, Ran, model, of_type};

const SCHEMA: &str = r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#;

/// Too busy, but not for long.
fn overloaded() -> Step {
    Step::status(529).header("retry-after-ms", "10")
}

fn run(script: Script, words: &[&str]) -> (Ran, Vec<Value>) {
    let (place, model) = (Place::new(), model(script));
    let ran = place.task(&model, ["hi"].into_iter().chain(words.iter().copied()).chain(STREAM)).run();
    let frames = check_stream(&ran);
    model.assert_clean();
    (ran, frames)
}

fn system<'a>(frames: &'a [Value], subtype: &str) -> Vec<&'a Value> {
    of_type(frames, "system").into_iter().filter(|frame| frame["subtype"] == subtype).collect()
}

#[test]
fn loop_T8_loop_F5_loop_E14_another_model_is_asked_and_a_frame_says_so() {
    let script = Script::new()
        .step(overloaded().times(3).when(When::any().model("claude-sonnet-5-5")))
        .step(Step::reply([text("Done.")]).when(When::any().model("claude-opus-5-5")));
    let (ran, frames) = run(script, &["--fallback-model", "opus"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let [swap] = system(&frames, "model_fallback")[..] else { panic!("one swap: {frames:?}") };
    assert_eq!(swap["original_model"], "claude-sonnet-5-5");
    assert_eq!(swap["fallback_model"], "claude-opus-5-5");
    let result = ran.result();
    assert_eq!((&result["result"], &result["is_error"]), (&json!("Done."), &json!(false)));
    assert!(result["modelUsage"].get("claude-opus-5-5").is_some(), "{result}");
    assert!(system(&frames, "loop_event").is_empty(), "nobody asked for these");
}

#[test]
fn loop_T8_the_fallback_is_for_people_too() {
    let script = Script::new()
        .step(overloaded().times(3).when(When::any().model("claude-sonnet-5-5")))
        .step(Step::reply([text("Done.")]).when(When::any().model("claude-opus-5-5")));
    let (place, model) = (Place::new(), model(script));
    let ran = place.task(&model, ["hi", "--fallback-model", "claude-opus-5-5"]).run();
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Done.\n"), "{ran:?}");
    model.assert_played_out();
}

#[test]
fn loop_B1_loop_E17_the_money_runs_out_and_the_result_says_so() {
    let costly = Step::reply([tool("Glob", json!({"pattern": "*"}))]).usage("output_tokens", 30_000);
    let (ran, frames) = run(Script::new().step(costly.always()), &["--max-budget-usd", "0.5"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let result = ran.result();
    assert_eq!(result["subtype"], "error_max_budget_usd");
    assert_eq!((&result["is_error"], &result["terminal_reason"]), (&json!(true), &json!("budget_exhausted")));
    assert_eq!(result["errors"], json!(["Reached maximum budget ($0.5)"]));
    assert!(result.get("result").is_none());
    assert!(result["total_cost_usd"].as_f64().unwrap() >= 0.5, "{result}");
    // Every call was answered before the end.
    let calls = frames.iter().filter(|frame| frame["message"]["content"][0]["type"] == "tool_use").count();
    let results =
        frames.iter().filter(|frame| frame["message"]["content"][0]["type"] == "tool_result").count();
    assert_eq!(calls, results);
}

#[test]
fn loop_E19_an_answer_in_the_form_of_a_schema_is_in_the_result() {
    let script = Script::new().reply([text("One.")]).reply([tool("StructuredOutput", json!({"n": 1}))]);
    let (ran, _) = run(script, &["--json-schema", SCHEMA]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let result = ran.result();
    assert_eq!((&result["subtype"], &result["structured_output"]), (&json!("success"), &json!({"n": 1})));

    let (ran, _) = run(Script::new().step(Step::reply([text("One.")]).always()), &["--json-schema", SCHEMA]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let result = ran.result();
    assert_eq!(result["subtype"], "error_max_structured_output_retries");
    assert_eq!(result["terminal_reason"], "structured_output_retry_exhausted");
    assert!(result.get("structured_output").is_none());
}

#[test]
fn loop_E21_prompts_are_echoed_when_asked_for_and_only_then() {
    let hello = || Script::new().reply([text("Hello.")]);
    let prompts = |frames: &[Value]| -> Vec<Value> {
        of_type(frames, "user").into_iter().filter(|frame| frame["isReplay"] == true).cloned().collect()
    };
    let (ran, frames) = run(hello(), &["--replay-user-messages"]);
    ran.well();
    let [echo] = &prompts(&frames)[..] else { panic!("one prompt, one echo: {frames:?}") };
    assert_eq!(echo["message"], json!({"role": "user", "content": [{"type": "text", "text": "hi"}]}));
    assert_eq!(echo["session_id"], ran.result()["session_id"]);

    let (_, frames) = run(hello(), &[]);
    assert!(prompts(&frames).is_empty());

    let (place, model) = (Place::new(), model(hello()));
    let ran = place.task(&model, ["hi", "--replay-user-messages"]).run();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("needs --output-format stream-json"), "{ran:?}");
}

#[test]
fn what_the_loop_did_is_told_to_those_who_ask() {
    let script = || {
        Script::new()
            .reply([tool("Glob", json!({"pattern": "*"}))])
            .step(overloaded())
            .step(Step::reply([text("Half a")]).stop("max_tokens"))
            .reply([text("Done.")])
    };
    let (ran, frames) = run(script(), &["--include-loop-events"]);
    ran.well();
    let told: Vec<(&str, &str, u64)> = system(&frames, "loop_event")
        .into_iter()
        .map(|frame| {
            let word = |key: &str| frame[key].as_str().unwrap();
            (word("kind"), word("reason"), frame["turn"].as_u64().unwrap())
        })
        .collect();
    let kinds: Vec<(&str, u64)> = told.iter().map(|(kind, _, turn)| (*kind, *turn)).collect();
    assert_eq!(kinds, [("transition", 1), ("retry", 2), ("withheld", 2), ("transition", 2)], "{told:?}");
    assert_eq!((told[0].1, told[3].1), ("next_turn", "max_output_tokens_recovery"));
    // Where each stands: a reason to go on is told before the answer it led to.
    let at = |wanted: &dyn Fn(&Value) -> bool| frames.iter().position(wanted).unwrap();
    let went_on = at(&|frame| frame["reason"] == "max_output_tokens_recovery");
    assert!(went_on < at(&|frame| frame["message"]["content"][0]["text"] == "Done."));

    let (ran, frames) = run(script(), &[]);
    ran.well();
    assert!(system(&frames, "loop_event").is_empty());
}
