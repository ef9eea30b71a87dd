//! What the loop does about trouble, as the command's flags and frames show it.

use nix::sys::signal::Signal;
use pelton_testkit::{Fault, Script, Step, When, raw_block, text, thinking, tool};
use serde_json::{Value, json};

use crate::frames::{STREAM, check_stream};
use crate::place::{Commanded, Place, Ran, model, of_type, until};

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
fn loop_S10_a_model_that_says_nothing_is_an_execution_error() {
    let (ran, _) = run(Script::new().step(Step::reply([]).times(2)), &[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let result = ran.result();
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("error_during_execution"), &json!(true)));
    assert_eq!(result["errors"], json!(["The model gave no answer"]));
    assert!(result.get("result").is_none(), "{result}");

    // An answer is a success, whatever came before it.
    let (ran, _) = run(Script::new().step(Step::reply([])).reply([text("Done.")]), &[]);
    ran.well();
    assert_eq!(ran.result()["subtype"], "success");
}

#[test]
fn a_slash_command_nobody_knows_is_an_error_that_costs_nothing() {
    let (place, model) = (Place::new(), model(Script::new()));
    let ran = place.task(&model, ["/frobnicate it"].into_iter().chain(STREAM)).run();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("Unknown command: /frobnicate"), "{ran:?}");
    let result = ran.result();
    assert_eq!((&result["subtype"], &result["num_turns"]), (&json!("success"), &json!(0)));
    assert_eq!(result["result"], "Unknown command: /frobnicate");
    assert!(result.get("terminal_reason").is_none(), "{result}");
    let frames = check_stream(&ran);
    let [said] = of_type(&frames, "assistant")[..] else { panic!("one frame: {frames:?}") };
    assert_eq!((&said["message"]["model"], said.get("error")), (&json!("<synthetic>"), None));
    assert!(model.reply_requests().is_empty());
}

#[test]
fn what_a_prompt_mentions_is_read() {
    let (place, model) = (Place::new(), model(Script::new().reply([text("Done.")])));
    place.put("notes.txt", "remember the milk");
    place.task(&model, ["sum up @notes.txt"]).run().well();
    assert!(model.reply_requests()[0].body.to_string().contains("remember the milk"));
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

/// The reasons the loop went on for, as the frames tell them.
fn transitions(frames: &[Value]) -> Vec<&str> {
    let events = system(frames, "loop_event").into_iter();
    let went_on = events.filter(|event| event["kind"] == "transition");
    went_on.filter_map(|event| event["reason"].as_str()).collect()
}

/// Runs with loop events, to a result that is no error.
fn recovered(script: Script, words: &[&str]) -> (Ran, Vec<Value>) {
    let words: Vec<&str> = words.iter().copied().chain(["--include-loop-events"]).collect();
    let (ran, frames) = run(script, &words);
    assert_eq!((ran.code, &ran.result()["is_error"]), (Some(0), &json!(false)), "{ran:?}");
    assert!(frames.iter().all(|frame| frame.get("error").is_none()), "no error was shown: {frames:?}");
    (ran, frames)
}

/// Runs to a result that is an error of the API: a success on the wire that says what went wrong.
fn given_up(script: Script, words: &[&str], terminal: &str) -> Vec<Value> {
    let (ran, frames) = run(script, words);
    let result = ran.result();
    assert_eq!(
        (ran.code, &result["subtype"], &result["is_error"]),
        (Some(1), &json!("success"), &json!(true)),
        "{ran:?}"
    );
    assert_eq!(result["terminal_reason"], terminal);
    let shown = of_type(&frames, "assistant").into_iter().filter(|frame| frame.get("error").is_some());
    assert_eq!(shown.count(), 1, "shown once: {frames:?}");
    frames
}

fn too_long(over: u64) -> Step {
    let message = format!("prompt is too long: {} tokens > 200000 maximum", 200_000 + over);
    Step::status(400).error_type("invalid_request_error").message(message)
}

/// Rounds whose results are long.
fn rounds(count: usize) -> Script {
    let look =
        |n: usize| [text(format!("Round {n}.")), tool("Bash", json!({"command": format!("seq {n} 900")}))];
    (1..=count).fold(Script::new(), |script, n| script.reply(look(n)))
}

const ALLOWED: [&str; 2] = ["--allowedTools", "Bash"];

#[test]
fn loop_T2_old_results_are_folded_when_the_prompt_is_too_long() {
    let script = rounds(6).step(too_long(500)).reply([text("Done.")]);
    let (_, frames) = recovered(script, &ALLOWED);
    assert_eq!(transitions(&frames).last(), Some(&"collapse_drain_retry"));
    assert!(!transitions(&frames).contains(&"reactive_compact_retry"));
}

#[test]
fn loop_T3_rounds_are_left_out_when_folding_is_not_enough() {
    let script = rounds(6)
        .step(too_long(500))
        .step(too_long(300))
        .reply([text("In short: all was counted.")])
        .reply([text("Done.")]);
    let (_, frames) = recovered(script, &ALLOWED);
    let last: Vec<&str> = transitions(&frames).into_iter().rev().take(2).collect();
    assert_eq!(last, ["reactive_compact_retry", "collapse_drain_retry"]);
    // A client reads: compacting, done, boundary, summary.
    let is = |frame: &&Value, subtype: &str| frame["subtype"] == subtype;
    let at = frames.iter().position(|frame| frame["status"] == "compacting").unwrap();
    let frames: Vec<&Value> =
        frames[at..].iter().filter(|frame| frame["subtype"] != "loop_event").take(4).collect();
    assert!(is(&frames[1], "status") && frames[1]["compact_result"] == "success", "{frames:?}");
    assert!(
        is(&frames[2], "compact_boundary") && frames[2]["compact_metadata"]["trigger"] == "auto",
        "{frames:?}"
    );
    assert_eq!((&frames[3]["type"], &frames[3]["isSynthetic"]), (&json!("user"), &json!(true)), "{frames:?}");
}

#[test]
fn loop_T4_loop_T5_a_cut_answer_is_asked_for_with_more_room_and_then_in_parts() {
    let cut = |words: &str| Step::reply([text(words)]).stop("max_tokens");
    let script = Script::new().step(cut("Half")).step(cut("One ")).step(cut("Two ")).reply([text("Three.")]);
    let (place, model) = (Place::new(), model(script));
    let words = ["hi", "--include-loop-events"].into_iter().chain(STREAM);
    let ran = place.task(&model, words).env("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "4096").run();
    let frames = check_stream(&ran);
    model.assert_clean();
    assert_eq!((ran.code, &ran.result()["result"]), (Some(0), &json!("Three.")), "{ran:?}");
    let recovery = "max_output_tokens_recovery";
    assert_eq!(transitions(&frames), ["max_output_tokens_escalate", recovery, recovery]);
    let limits: Vec<u64> =
        model.reply_requests().iter().filter_map(|seen| seen.body["max_tokens"].as_u64()).collect();
    assert_eq!(limits[..2], [4_096, 64_000]);
}

#[test]
fn loop_T5_a_pipe_is_given_all_parts_of_an_answer() {
    let script = Script::new().step(Step::reply([text("One, ")]).stop("max_tokens")).reply([text("two.")]);
    let (place, model) = (Place::new(), model(script));
    let ran = place.task(&model, ["hi"]).run();
    assert_eq!((ran.code, &*ran.out), (Some(0), "One, two.\n"), "{ran:?}");
}

#[test]
fn loop_T7_more_output_is_asked_for_until_there_is_enough() {
    let part = Step::reply([text("Part.")]).usage("output_tokens", 1_000);
    let (_, frames) = recovered(Script::new().step(part.times(3)), &["--token-budget", "3000"]);
    assert_eq!(transitions(&frames), ["token_budget_continuation"; 2]);
}

#[test]
fn loop_T9_a_paused_answer_goes_back() {
    let search = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "pelton"}});
    let paused = Step::reply([text("Searching."), raw_block(search)]).stop("pause_turn");
    let script = Script::new().step(paused).reply([text("Found.")]);
    let (ran, frames) = recovered(script, &[]);
    assert_eq!((transitions(&frames), &ran.result()["result"]), (vec!["pause_turn"], &json!("Found.")));
}

#[test]
fn loop_T10_an_empty_answer_is_nudged_once() {
    let script = Script::new().reply([]).reply([text("Done.")]);
    let (_, frames) = recovered(script, &[]);
    assert_eq!(transitions(&frames), ["empty_reply_nudge"]);
}

#[test]
fn loop_T11_a_refused_request_is_repaired() {
    let refusal = "messages.1.content.0: Invalid `signature` in `thinking` block";
    let script = Script::new()
        .reply([thinking("Hm."), tool("Glob", json!({"pattern": "*"}))])
        .step(Step::status(400).message(refusal))
        .reply([text("Done.")]);
    let (_, frames) = recovered(script, &[]);
    assert_eq!(transitions(&frames), ["next_turn", "request_repair"]);
}

#[test]
fn loop_X5_a_prompt_that_stays_too_long_is_said() {
    given_up(rounds(6).step(too_long(500).always()), &ALLOWED, "prompt_too_long");
}

#[test]
fn loop_X6_media_that_stay_too_large_are_said() {
    let refusal =
        Step::status(413).error_type("request_too_large").message("Request exceeds the maximum size");
    given_up(Script::new().step(refusal.always()), &[], "image_error");
}

#[test]
fn loop_X7_an_error_of_the_api_is_said() {
    given_up(Script::new().step(Step::status(400).message("no such thing")), &[], "api_error");
}

#[test]
fn loop_X8_a_full_window_is_said() {
    let (place, model) = (Place::new(), model(Script::new()));
    let words = ["x".repeat(90_000)];
    let words = words.iter().map(String::as_str).chain(STREAM);
    let ran = place.task(&model, words).env("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "10000").run();
    let frames = check_stream(&ran);
    assert_eq!((ran.code, &ran.result()["terminal_reason"]), (Some(1), &json!("blocking_limit")), "{ran:?}");
    let shown = of_type(&frames, "assistant").into_iter().filter(|frame| frame.get("error").is_some());
    assert_eq!((shown.count(), model.reply_requests().len()), (1, 0));
}

#[test]
fn pit_L11_models_that_fail_for_ever_are_listed_with_how_often_each_was_asked() {
    let (place, model) = (Place::new(), model(Script::new().step(overloaded().always())));
    let ran = place.task(&model, ["hi", "--fallback-model", "opus,haiku"]).run();
    assert_eq!((ran.code, model.requests().len()), (Some(1), 11), "{ran:?}");
    let last = ran.err.lines().last().unwrap();
    let list = "tried 11 times: claude-sonnet-5-5 3 × 529, claude-opus-5-5 3 × 529, claude-haiku-5-5 5 × 529";
    assert!(last.starts_with("error: 529 overloaded_error") && last.contains(list), "{last}");
    assert!(last.contains("try again later"), "{last}");

    let (ran, _) = run(Script::new().step(overloaded().always()), &["--fallback-model", "opus,haiku"]);
    assert!(ran.result()["result"].as_str().unwrap().contains(list), "{}", ran.result());
}

/// The uuids that a frame takes the place of, and what kind of frame it is.
fn superseding(frames: &[Value]) -> Vec<(&str, &Value)> {
    let one = |frame: &'_ Value| frame.get("supersedes").is_some();
    let found = frames.iter().filter(|frame| one(frame));
    found.map(|frame| (frame["type"].as_str().unwrap(), &frame["supersedes"])).collect()
}

#[test]
fn loop_T4_what_was_withdrawn_is_named_though_no_answer_comes_in_its_place() {
    let cut = || Script::new().step(Step::reply([text("Half a")]).stop("max_tokens"));
    let (place, failing) = (Place::new(), model(cut().step(Step::status(400).message("no"))));
    let ran = place
        .task(&failing, ["hi"].into_iter().chain(STREAM))
        .env("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "4000")
        .run();
    let frames = check_stream(&ran);
    let shown = frames.iter().find(|frame| frame["message"]["content"][0]["text"] == "Half a").unwrap();
    assert_eq!(superseding(&frames), [("assistant", &json!([shown["uuid"]]))], "{frames:#?}");

    // The same if the user does not wait for the answer.
    let stalling = model(cut().step(Step::reply([text("Never.")]).fault(Fault::headers_then_stall())));
    let place = Place::new();
    let running = place
        .task(&stalling, ["hi"].into_iter().chain(STREAM))
        .env("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "4000")
        .start();
    until("the second question", || stalling.reply_requests().len() == 2);
    running.signal(Signal::SIGINT);
    let ran = running.end();
    let frames = ran.frames();
    let shown = frames.iter().find(|frame| frame["message"]["content"][0]["text"] == "Half a").unwrap();
    let taken_back: Vec<&Value> = superseding(&frames).into_iter().map(|(_, ids)| ids).collect();
    assert_eq!(taken_back, [&json!([shown["uuid"]])], "{frames:#?}");
    assert_eq!(frames.last().unwrap()["type"], "result");
}

#[test]
fn pit_L14_a_refusal_is_told_by_a_frame_before_the_result() {
    let declined = Step::reply([text("I will"), tool("Bash", json!({"command": "sleep 60"}))])
        .stop("refusal")
        .stop_details(json!({"category": "cyber"}));
    let (place, model) = (Place::new(), model(Script::new().step(declined)));
    let words = ["hi", "--allowedTools=Bash"].into_iter().chain(STREAM);
    let ran = place.task(&model, words).run();
    let frames = check_stream(&ran);
    let [refusal] = system(&frames, "model_refusal_no_fallback")[..] else { panic!("{frames:#?}") };
    assert_eq!(refusal["original_model"], "claude-sonnet-5-5");
    assert_eq!(refusal["api_refusal_category"], "cyber");
    assert!(refusal["content"].as_str().unwrap().contains("declined"), "{refusal}");
    let prompted = place.transcript().into_iter().find(|line| line["message"]["content"][0]["text"] == "hi");
    assert_eq!(refusal["refused_user_message_uuid"], prompted.unwrap()["uuid"]);
    let result = ran.result();
    assert_eq!((&result["is_error"], &result["stop_reason"]), (&json!(true), &json!("refusal")));
    assert_eq!(ran.code, Some(1));
    model.assert_clean();
}

#[test]
fn loop_M5_a_silence_is_told_before_it_is_cut_on_the_wire_and_in_the_transcript() {
    let script = Script::new()
        .step(Step::reply([text("Never.")]).fault(Fault::headers_then_stall()).times(2))
        .reply([text("Here.")]);
    let (place, model) = (Place::new(), model(script));
    let words = ["hi", "--include-loop-events"].into_iter().chain(STREAM);
    let ran = place.task(&model, words).env("CLAUDE_STREAM_IDLE_TIMEOUT_MS", "300").run();
    let frames = check_stream(&ran);
    assert_eq!(ran.result()["result"], "Here.");
    let on_the_wire: Vec<(&Value, &Value)> =
        system(&frames, "loop_event").iter().map(|frame| (&frame["kind"], &frame["turn"])).collect();
    let at = |kind: &str| on_the_wire.iter().position(|(told, _)| **told == kind).unwrap();
    assert!(at("stalled") < at("retry"), "{on_the_wire:?}");
    assert!(system(&frames, "api_retry").iter().all(|frame| frame["max_retries"] == 10));
    // Both tell the same, of the same trip.
    let recorded = place.transcript();
    let recorded: Vec<(&Value, &Value)> = recorded
        .iter()
        .filter(|line| line["subtype"] == "loop_event")
        .map(|line| (&line["kind"], &line["turn"]))
        .collect();
    assert_eq!(on_the_wire, recorded);
}

#[test]
fn loop_A3_an_interrupt_in_a_hook_of_the_first_prompt_leaves_a_session_to_go_on_with() {
    let place = Place::new();
    let model = model(Script::new().reply([text("Here.")]));
    let line = "test -e begun || { touch begun; sleep 30; }";
    let hooks = json!({"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": line}]}]}});
    std::fs::create_dir_all(place.config()).unwrap();
    std::fs::write(place.config().join("settings.json"), hooks.to_string()).unwrap();
    let running = place.task(&model, ["hi"]).start();
    until("the hook", || place.has("begun"));
    running.signal(Signal::SIGINT);
    let ran = running.end();
    assert_eq!(ran.code, Some(130));
    let id = ran.err.split("--resume ").nth(1).and_then(|rest| rest.split(')').next()).expect(&ran.err);
    assert_eq!(place.task(&model, ["--resume", id, "and now?"]).run().well(), "Here.\n");
    let sent = model.requests().last().unwrap().body["messages"].to_string();
    for words in ["hi", "[Request interrupted by user]", "and now?"] {
        assert!(sent.contains(words), "{words}: {sent}");
    }
}
