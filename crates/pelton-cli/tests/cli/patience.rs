//! How patient a run is, how fast its answers come, and what it asks for: as settings and the environment say.

use std::time::Duration;

use pelton_testkit::{Fault, Script, ScriptedModel, Step, pause, ping, text, tool};
use serde_json::{Value, json};

use crate::frames::{STREAM, check_stream};
use crate::place::{Commanded, Place, Ran, lines_of, model, of_type};

const FAST: &str = r#"{"fastMode": true, "model": "claude-opus-5-5"}"#;

struct Done {
    place: Place,
    model: ScriptedModel,
    ran: Ran,
}

/// A run in stream-json with these words and variables.
fn run(script: Script, words: &[&str], set: &[(&str, &str)]) -> Done {
    let (place, model) = (Place::new(), model(script));
    let words = ["hi"].into_iter().chain(words.iter().copied()).chain(STREAM);
    let ran = place.task(&model, words).envs(set.iter().copied()).run();
    Done { place, model, ran }
}

impl Done {
    fn sent(&self, field: &str) -> Vec<Value> {
        self.model.requests().iter().map(|seen| seen.body[field].clone()).collect()
    }

    fn retries(&self) -> usize {
        let frames = self.ran.frames();
        of_type(&frames, "system").iter().filter(|frame| frame["subtype"] == "api_retry").count()
    }

    fn fast_mode_states(&self) -> (Value, Value) {
        let frames = check_stream(&self.ran);
        let init = of_type(&frames, "system").into_iter().find(|frame| frame["subtype"] == "init").unwrap();
        (init["fast_mode_state"].clone(), self.ran.result()["fast_mode_state"].clone())
    }
}

fn states(init: &str, result: &str) -> (Value, Value) {
    (json!(init), json!(result))
}

#[test]
fn loop_R12_unattended_runs_outlast_overload_and_rate_limits() {
    let script = || {
        let busy = |status| Step::status(status).header("retry-after-ms", "5").times(8);
        Script::new().step(busy(529)).step(busy(429)).reply([text("Done.")])
    };
    let few = ("CLAUDE_CODE_MAX_RETRIES", "3");
    let given_up = run(script(), &[], &[few]);
    assert_eq!((given_up.ran.code, given_up.model.requests().len()), (Some(1), 4), "{:?}", given_up.ran);

    for name in ["CLAUDE_CODE_RETRY_WATCHDOG", "CLAUDE_CODE_UNATTENDED_RETRY"] {
        let done = run(script(), &[], &[few, (name, "1")]);
        done.ran.well();
        assert_eq!((done.retries(), &done.ran.result()["result"]), (16, &json!("Done.")), "{name}");
        let off = run(script(), &[], &[few, (name, "0")]);
        assert_eq!(off.ran.code, Some(1), "{name}");
    }
    let done = run(script(), &["--settings", r#"{"retry": {"unattended": true}}"#], &[few]);
    done.ran.well();
}

#[test]
fn loop_R12_a_long_wait_of_an_unattended_run_gives_signs_of_life() {
    let script = || {
        let busy = Step::status(529).header("retry-after-ms", "1200");
        Script::new().step(busy).reply([text("Done.")])
    };
    let settings =
        |heartbeat: u32| json!({"retry": {"unattended": true, "heartbeatMs": heartbeat}}).to_string();
    for (heartbeat, expected) in [(100, 11), (500, 2), (30_000, 0)] {
        let done = run(script(), &["--settings", &settings(heartbeat)], &[]);
        done.ran.well();
        let frames = done.ran.frames();
        let signs: Vec<usize> = (0..frames.len()).filter(|at| frames[*at]["type"] == "keep_alive").collect();
        assert_eq!(signs.len(), expected, "{heartbeat}: {frames:#?}");
        // They come between the notice of the wait and the answer.
        let wait = frames.iter().position(|frame| frame["subtype"] == "api_retry").unwrap();
        let answer = frames.iter().position(|frame| frame["type"] == "assistant").unwrap();
        assert!(signs.iter().all(|at| wait < *at && *at < answer));
    }
}

#[test]
fn loop_R12_unattended_runs_do_not_wait_for_money() {
    let body = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "Spend limit reached",
        "details": {"error_code": "enforced_spend_limit_reached"}}});
    let script = Script::new().step(Step::status(429).header("retry-after", "1").body(body).always());
    let done = run(script, &[], &[("CLAUDE_CODE_RETRY_WATCHDOG", "1")]);
    assert_eq!((done.ran.code, done.model.requests().len()), (Some(1), 1), "{:?}", done.ran);
    assert!(done.ran.err.contains("balance"), "{:?}", done.ran);
}

#[test]
fn fast_answers_are_asked_for_and_said_to_be() {
    let hello = || Script::new().reply([text("Hello.")]);
    let done = run(hello(), &["--settings", FAST], &[]);
    done.ran.well();
    assert_eq!((done.sent("speed"), done.fast_mode_states()), (vec![json!("fast")], states("on", "on")));

    let done = run(hello(), &["--model", "claude-opus-5-5"], &[]);
    assert_eq!((done.sent("speed"), done.fast_mode_states()), (vec![Value::Null], states("off", "off")));

    // A model that has one speed.
    let done = run(hello(), &["--settings", FAST, "--model", "claude-sonnet-5-5"], &[]);
    assert_eq!((done.sent("speed"), done.fast_mode_states()), (vec![Value::Null], states("off", "off")));
}

#[test]
fn loop_R3_a_short_wait_keeps_fast_mode_and_a_long_one_is_shown_as_a_cooldown() {
    let limited = |wait: &str| {
        let refused =
            Step::status(429).message("fast mode rate limit reached").header("retry-after-ms", wait);
        Script::new().step(refused).reply([tool("Glob", json!({"pattern": "*"}))]).reply([text("Done.")])
    };
    let done = run(limited("300"), &["--settings", FAST], &[]);
    done.ran.well();
    assert_eq!(done.sent("speed"), ["fast", "fast", "fast"].map(Value::from));
    assert_eq!(done.fast_mode_states(), states("on", "on"));

    let done = run(limited("16000"), &["--settings", FAST], &[]);
    done.ran.well();
    assert!(done.ran.took < Duration::from_secs(10), "standard speed is asked for at once");
    assert_eq!(done.sent("speed"), [json!("fast"), Value::Null, Value::Null]);
    assert_eq!(done.fast_mode_states(), states("on", "cooldown"));

    // What is a long wait, and for how long, can be set.
    let settings =
        r#"{"fastMode": true, "model": "opus", "retry": {"fastModeWaitMs": 100, "fastModeCooldownMs": 0}}"#;
    let done = run(limited("300"), &["--settings", settings], &[]);
    done.ran.well();
    assert_eq!(done.sent("speed")[..2], [json!("fast"), Value::Null]);
}

#[test]
fn loop_R9_a_refusal_of_fast_mode_turns_it_off_for_good() {
    let refused = Step::status(400)
        .error_type("invalid_request_error")
        .message("Fast mode is not enabled: extra usage");
    let script =
        Script::new().step(refused).reply([tool("Glob", json!({"pattern": "*"}))]).reply([text("Done.")]);
    let done = run(script, &["--settings", FAST], &[]);
    done.ran.well();
    assert_eq!(done.sent("speed"), [json!("fast"), Value::Null, Value::Null]);
    assert_eq!(done.fast_mode_states(), states("on", "off"));
    done.model.assert_played_out();
}

#[test]
fn loop_M5_silence_is_told_cut_and_asked_again_as_the_settings_say() {
    let silent = || {
        Script::new()
            .step(Step::reply([text("Hello.")]).fault(Fault::stall_after_events(2)))
            .reply([text("Hello.")])
    };
    let done = run(silent(), &[], &[("CLAUDE_STREAM_IDLE_TIMEOUT_MS", "300")]);
    assert_eq!((done.ran.code, done.retries()), (Some(0), 1), "{:?}", done.ran);
    let done = run(silent(), &["--settings", r#"{"retry": {"idleTimeoutMs": 300}}"#], &[]);
    assert_eq!((done.ran.code, done.retries()), (Some(0), 1), "{:?}", done.ran);

    // Nothing but pings.
    let pings = (0..100).flat_map(|_| [ping(), pause(Duration::from_millis(50))]);
    let script = Script::new().reply(pings.chain([text("Late.")])).reply([text("Hello.")]);
    let settings = r#"{"retry": {"idleTimeoutMs": 2000, "pingOnlyTimeoutMs": 500}}"#;
    let done = run(script, &["--settings", settings], &[]);
    assert_eq!((done.retries(), &done.ran.result()["result"]), (1, &json!("Hello.")), "{:?}", done.ran);

    // People are told before that.
    let (place, model) = (Place::new(), model(silent()));
    let settings = r#"{"retry": {"idleTimeoutMs": 1500, "noticeMs": 200}}"#;
    let ran = place.task(&model, ["hi", "--settings", settings]).run();
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Hello.\n"), "{ran:?}");
    assert!(ran.err.contains("nothing from the model for"), "{ran:?}");
}

#[test]
fn loop_T8_loop_M6_broken_streams_are_asked_for_in_one_piece_unless_that_is_switched_off() {
    let broken = || {
        Script::new()
            .step(Step::reply([text("Hello.")]).fault(Fault::cut_after_events(2)).times(2))
            .reply([text("Hello.")])
    };
    let streams = |done: &Done| done.sent("stream").iter().map(|sent| sent == true).collect::<Vec<_>>();
    let done = run(broken(), &["--include-loop-events"], &[]);
    assert_eq!((done.ran.code, streams(&done)), (Some(0), vec![true, true, false]), "{:?}", done.ran);
    // The reason is in the stream and on record.
    let told = |lines: &[Value]| -> Vec<(String, String)> {
        let text = |line: &Value, field: &str| line[field].as_str().unwrap_or_default().to_owned();
        let events = lines.iter().filter(|line| line["subtype"] == "loop_event");
        let all = events.map(|line| (text(line, "kind"), text(line, "reason")));
        all.filter(|(kind, _)| kind == "transition" || kind == "fallback").collect()
    };
    let expected =
        [("transition", "fallback_retry"), ("fallback", "streams break; asking for the answer in one piece")]
            .map(|(kind, reason)| (kind.to_owned(), reason.to_owned()));
    assert_eq!(told(&done.ran.frames()), expected);
    assert_eq!(told(&lines_of(&done.place.transcripts()[0])), expected);
    for (words, set) in [
        (vec![], vec![("CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK", "1")]),
        (vec!["--settings", r#"{"retry": {"nonStreamingFallback": false}}"#], vec![]),
    ] {
        let done = run(broken(), &words, &set);
        assert_eq!((done.ran.code, streams(&done)), (Some(0), vec![true, true, true]), "{:?}", done.ran);
    }
}

#[test]
fn betas_and_task_budgets_reach_the_server() {
    let words = ["--betas", "context-1m-2025-08-07,files-api-2025-04-14", "--task-budget", "50000"];
    let set = [("ANTHROPIC_BETAS", "skills-2025-10-02, files-api-2025-04-14")];
    let done = run(Script::new().reply([text("Hello.")]), &words, &set);
    done.ran.well();
    let requests = done.model.requests();
    assert_eq!(
        requests[0].header("anthropic-beta"),
        Some("context-1m-2025-08-07,files-api-2025-04-14,skills-2025-10-02,task-budgets-2026-03-13")
    );
    assert_eq!(done.sent("output_config")[0]["task_budget"], json!({"type": "tokens", "total": 50_000}));
}
