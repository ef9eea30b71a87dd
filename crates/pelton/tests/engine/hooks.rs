//! Other people's programs, around tools and at the end: real shell commands, told and heard through real pipes.

use std::time::{Duration, Instant};

use pelton::Phase;
use pelton::hooks::{HookOutcome, Source};
use pelton::permission::Mode;
use pelton::{Engine, Event, Options, Terminal};
use pelton_testkit::{Script, Step, text, tool};
use serde_json::{Value, json};

use crate::probe::Notes;
use crate::stage::{
    Stage, Told, blocks, last_user_blocks, notes, prompt, rest, results_in, run, text_of, until,
};

fn command(line: &str) -> Value {
    json!({"type": "command", "command": line})
}

/// Hooks of one event, side by side.
pub fn on(event: &str, lines: &[&str]) -> Value {
    let hooks: Vec<Value> = lines.iter().map(|line| command(line)).collect();
    json!({event: [{"hooks": hooks}]})
}

#[track_caller]
pub fn hook(options: &mut Options, settings: &Value) {
    let problems = options.hooks.add_settings(settings, &Source::User);
    assert!(problems.is_empty(), "{problems:?}");
}

fn engine(stage: &Stage, settings: &Value) -> Engine {
    stage.engine_with(|options| hook(options, settings))
}

/// What was said to the user, and whether it ended the run.
pub fn said(told: &Told) -> Vec<(String, bool)> {
    let words = |event: &Event| match event {
        Event::Informational { content, prevents_continuation } => {
            Some((content.clone(), *prevents_continuation))
        }
        _ => None,
    };
    told.0.iter().filter_map(words).collect()
}

fn runs(told: &Told) -> Vec<HookOutcome> {
    let outcome = |event: &Event| match event {
        Event::Hook(run) => Some(run.outcome),
        _ => None,
    };
    told.0.iter().filter_map(outcome).collect()
}

/// What a hook read, one line of JSON for each time.
fn heard(stage: &Stage) -> Vec<Value> {
    stage.read("heard.txt").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Keeps what it is told, then goes on with a script.
fn listening(stage: &Stage, script: &str) -> String {
    let file = stage.path("heard.txt");
    format!("tr -d '\\n' >> {0}; echo >> {0}; {script}", file.display())
}

#[tokio::test]
async fn loop_H1_a_hook_that_has_nothing_against_it_lets_the_run_end() {
    let stage = Stage::new(Script::new().reply([text("Done.")])).await;
    let settings = on("Stop", &[&listening(&stage, "exit 0")]);

    let told = run(&mut engine(&stage, &settings), "Go.").await;

    assert_eq!(told.assert_completed().text, "Done.");
    assert!(told.transitions().is_empty() && said(&told).is_empty());
    assert_eq!(runs(&told), [HookOutcome::Success]);
    let heard = heard(&stage);
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0]["hook_event_name"], "Stop");
    assert_eq!(heard[0]["stop_hook_active"], false);
    assert_eq!(heard[0]["last_assistant_message"], "Done.");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T6_loop_H2_a_hook_that_exits_with_two_sends_the_model_back() {
    let stage = Stage::new(Script::new().reply([text("Done.")]).reply([text("Tests pass now.")])).await;
    let script =
        listening(&stage, "test -e blocked && exit 0; touch blocked; echo 'run the tests first' >&2; exit 2");
    let mut engine = engine(&stage, &on("Stop", &[&script]));

    let told = run(&mut engine, "Go.").await;

    assert_eq!(told.assert_completed().text, "Tests pass now.");
    assert_eq!(told.transitions(), ["stop_hook_blocking"]);
    assert_eq!(runs(&told), [HookOutcome::Blocked, HookOutcome::Success]);
    let words = text_of(&json!(last_user_blocks(&stage.request(2))));
    assert!(words.starts_with("Stop hook feedback:\n") && words.contains("run the tests first"), "{words}");
    let active: Vec<_> = heard(&stage).iter().map(|heard| heard["stop_hook_active"].clone()).collect();
    assert_eq!(active, [json!(false), json!(true)]);
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_H2_a_decision_in_json_blocks_with_its_reason() {
    let stage = Stage::new(Script::new().reply([text("Done.")]).reply([text("Better.")])).await;
    let script =
        r#"test -e blocked || echo '{"decision": "block", "reason": "say it nicer"}'; touch blocked"#;
    let told = run(&mut engine(&stage, &on("Stop", &[script])), "Go.").await;
    assert_eq!(told.assert_completed().text, "Better.");
    assert!(text_of(&json!(last_user_blocks(&stage.request(2)))).contains("say it nicer"));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_H3_loop_X9_a_hook_that_says_do_not_continue_ends_it_without_an_error() {
    let stage = Stage::new(Script::new().reply([text("Done.")]).reply([text("Again.")])).await;
    let script = r#"test -e once || echo '{"continue": false, "stopReason": "lunch time"}'; touch once"#;
    let mut engine = engine(&stage, &on("Stop", &[script]));

    let told = run(&mut engine, "Go.").await;

    let outcome = told.outcome();
    assert_eq!((outcome.terminal, outcome.is_error), (Terminal::StopHookPrevented, false));
    assert_eq!(outcome.text, "");
    let [(words, true)] = &said(&told)[..] else { panic!("{:?}", said(&told)) };
    assert!(words.contains("lunch time"), "{words}");
    run(&mut engine, "Go on.").await.assert_completed();
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_H5_a_hook_that_fails_is_shown_and_blocks_nothing() {
    let stage = Stage::new(Script::new().reply([text("Done.")])).await;
    let told = run(&mut engine(&stage, &on("Stop", &["echo 'no such thing' >&2; exit 1"])), "Go.").await;
    assert_eq!(told.assert_completed().text, "Done.");
    assert_eq!(runs(&told), [HookOutcome::Failed]);
    let [(words, false)] = &said(&told)[..] else { panic!("{:?}", said(&told)) };
    assert!(words.contains("no such thing"), "{words}");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_H4_hooks_run_side_by_side_and_one_that_blocks_is_enough() {
    let stage = Stage::new(Script::new().reply([text("Done.")]).reply([text("Better.")])).await;
    // Each waits for the other: one after the other they would wait in vain.
    let waits = |mine: &str, other: &str, then: &str| {
        format!(
            "touch {mine}; for i in $(seq 200); do test -e {other} && break; sleep 0.02; done; test -e {other} || exit 1; {then}"
        )
    };
    let passes = waits("a", "b", "exit 0");
    let blocks = waits("b", "a", "test -e done && exit 0; touch done; echo 'not yet' >&2; exit 2");
    let told = run(&mut engine(&stage, &on("Stop", &[&passes, &blocks])), "Go.").await;
    assert_eq!(told.assert_completed().text, "Better.");
    assert_eq!(runs(&told)[..2], [HookOutcome::Success, HookOutcome::Blocked]);
    assert!(text_of(&json!(last_user_blocks(&stage.request(2)))).contains("not yet"));
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_T6_hooks_that_always_block_are_overridden_the_ninth_time_and_that_is_said() {
    // Tools in between do not make it any more patient.
    let mut script = Script::new();
    for n in 0..9 {
        script = script.reply([tool("Glob", json!({"pattern": "*"}))]).reply([text(format!("Done {n}."))]);
    }
    let stage = Stage::new(script).await;
    let mut engine = engine(&stage, &on("Stop", &["echo 'never' >&2; exit 2"]));

    let told = run(&mut engine, "Go.").await;

    let outcome = told.outcome();
    assert_eq!((outcome.terminal, outcome.is_error), (Terminal::CompletedOverHooks, false));
    assert_eq!(outcome.text, "Done 8.");
    assert_eq!(outcome.transitions["stop_hook_blocking"], 8);
    let noted = notes(&engine.transcript_file().unwrap());
    assert_eq!(noted.iter().filter(|(kind, _)| kind == "hooks_overridden").count(), 1, "{noted:?}");
    assert!(said(&told).iter().any(|(words, ends)| words.contains("more than 8 times") && !ends));
    stage.assert_all_played();
}

#[tokio::test]
async fn stop_hooks_do_not_run_on_an_error_of_the_api() {
    let stage = Stage::new(Script::new().step(Step::status(400).message("no"))).await;
    let told = run(&mut engine(&stage, &on("Stop", &["touch ran; exit 2"])), "Go.").await;
    assert_eq!(told.outcome().terminal, Terminal::ModelError);
    assert!(!stage.path("ran").exists() && runs(&told).is_empty());
    assert_eq!(stage.request_count(), 1);
}

#[tokio::test]
async fn an_interruption_ends_a_sleeping_hook_and_the_session_goes_on() {
    for event in ["Stop", "PreToolUse"] {
        let script = Script::new().reply([text("Done."), tool("Glob", json!({"pattern": "*"}))]);
        let script = if event == "Stop" { Script::new().reply([text("Done.")]) } else { script };
        let stage = Stage::new(script.reply([text("Here.")])).await;
        let sleeps = "test -e begun || { touch begun; sleep 60; }";
        let mut engine = engine(&stage, &on(event, &[sleeps]));
        let (interrupter, status) = (engine.interrupter(), engine.watch());
        let mut events = engine.submit(prompt("Go."));
        let begun = stage.path("begun");
        let begun = || begun.exists() && status.borrow().phase != Phase::Streaming;
        let (mut told, ()) = crate::stage::pulling(&mut events, crate::stage::holds(begun)).await;
        let asked_at = Instant::now();
        interrupter.interrupt();
        told.extend(rest(&mut events).await);
        assert!(asked_at.elapsed() < Duration::from_secs(2), "{event}: {:?}", asked_at.elapsed());
        drop(events);
        assert_eq!(Told(told).outcome().terminal, Terminal::AbortedToolExecution, "{event}");
        assert_eq!(run(&mut engine, "And?").await.assert_completed().text, "Here.", "{event}");
        stage.assert_all_played();
    }
}

/// One call of `Change`, asked about by a hook that prints this; what was told, whether it ran, and the place.
async fn asked(mode: Mode, prints: &str) -> (Told, Vec<String>, Stage) {
    let script =
        Script::new().reply([tool("Change", json!({"name": "a"})).id("toolu_a")]).reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let calls = Notes::default();
    stage.write("answer.json", prints);
    let settings = json!({"PreToolUse": [{"matcher": "Change", "hooks": [command("cat answer.json")]}]});
    let mut engine = stage.engine_with(|options| {
        options.mode = mode;
        options.tools.extend(calls.tools());
        hook(options, &settings);
    });
    let told = run(&mut engine, "Go.").await;
    (told, calls.begun(), stage)
}

fn answer(decision: &str, more: &Value) -> String {
    let mut answer = json!({"hookEventName": "PreToolUse", "permissionDecision": decision});
    answer.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"hookSpecificOutput": answer}).to_string()
}

#[tokio::test]
async fn a_call_that_a_hook_denies_is_not_run_and_its_reason_is_the_result() {
    let denied = answer("deny", &json!({"permissionDecisionReason": "not on my watch"}));
    let (told, begun, stage) = asked(Mode::BypassPermissions, &denied).await;
    let outcome = told.assert_completed();
    assert!(begun.is_empty());
    assert_eq!(results_in(&stage.request(2)), [("toolu_a".to_owned(), true, "not on my watch".to_owned())]);
    assert_eq!(outcome.denials.len(), 1);
    assert_eq!(&*outcome.denials[0].call, "toolu_a");
    stage.assert_all_played();
}

#[tokio::test]
async fn a_call_that_a_hook_would_ask_about_is_denied_when_there_is_nobody_to_ask() {
    let asks = answer("ask", &json!({"permissionDecisionReason": "is this wise?"}));
    let (told, begun, stage) = asked(Mode::BypassPermissions, &asks).await;
    assert!(begun.is_empty());
    assert_eq!(told.assert_completed().denials.len(), 1);
    let results = results_in(&stage.request(2));
    assert!(results[0].1 && results[0].2.contains("is this wise?") && results[0].2.contains("nobody to ask"));
}

#[tokio::test]
async fn a_hook_may_vouch_for_a_call_and_change_its_input() {
    // Nobody allowed it, so without the hook it does not run.
    let (told, begun, _) = asked(Mode::Default, "{}").await;
    assert!(begun.is_empty(), "{begun:?}");
    assert_eq!(told.assert_completed().denials.len(), 1);

    let vouches = answer("allow", &json!({"updatedInput": {"name": "b"}}));
    let (told, begun, stage) = asked(Mode::Default, &vouches).await;
    assert_eq!(begun, ["b"]);
    assert!(told.assert_completed().denials.is_empty());
    assert_eq!(results_in(&stage.request(2)), [("toolu_a".to_owned(), false, "b".to_owned())]);
    stage.assert_all_played();

    // An input that does not fit is refused as the model's own would be.
    let (told, begun, stage) =
        asked(Mode::Default, &answer("allow", &json!({"updatedInput": {"game": 1}}))).await;
    assert!(begun.is_empty());
    told.assert_completed();
    assert!(results_in(&stage.request(2))[0].2.contains("InputValidationError"));
}

#[tokio::test]
async fn loop_X10_loop_I10_a_hook_before_a_tool_ends_the_run_before_it() {
    let (told, begun, stage) =
        asked(Mode::BypassPermissions, r#"{"continue": false, "stopReason": "that is enough"}"#).await;
    let outcome = told.outcome();
    assert_eq!(
        (outcome.terminal, outcome.is_error, outcome.text.as_str()),
        (Terminal::HookStopped, false, "")
    );
    assert!(begun.is_empty());
    assert_eq!((told.results().len(), stage.request_count()), (1, 1), "the call has its result");
    let words = said(&told);
    assert!(words.iter().any(|(words, ends)| *ends && words.contains("that is enough")), "{words:?}");
}

#[tokio::test]
async fn loop_X10_a_hook_after_a_tool_ends_the_run_behind_it() {
    let script = Script::new()
        .reply([tool("Change", json!({"name": "a"})), tool("Change", json!({"name": "b"}))])
        .reply([text("Still here.")]);
    let stage = Stage::new(script).await;
    let calls = Notes::default();
    let line = r#"test -e once || echo '{"continue": false, "stopReason": "enough"}'; touch once"#;
    let mut engine = stage.engine_with(|options| {
        options.tools.extend(calls.tools());
        hook(options, &on("PostToolUse", &[line]));
    });

    let told = run(&mut engine, "Go.").await;

    assert_eq!((told.outcome().terminal, told.outcome().is_error), (Terminal::HookStopped, false));
    assert_eq!(calls.begun(), ["a"], "what has not begun does not");
    assert_eq!((told.results().len(), stage.request_count()), (2, 1));
    // The session is whole: the next prompt is answered.
    run(&mut engine, "And?").await.assert_completed();
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_X10_loop_I10_a_hook_before_a_tool_ends_the_run_and_what_stands_behind_it_does_not_begin() {
    let script = Script::new()
        .reply([
            tool("Look", json!({"name": "a", "after_begin": "b"})),
            tool("Look", json!({"name": "b"})),
            tool("Change", json!({"name": "c"})).id("toolu_stops"),
            tool("Change", json!({"name": "d"})),
            tool("Look", json!({"name": "e"})),
        ])
        .reply([text("Still here.")]);
    let stage = Stage::new(script).await;
    let calls = Notes::default();
    let line = r#"grep -q '"name":"c"' && echo '{"continue": false, "stopReason": "enough"}'; exit 0"#;
    let mut engine = stage.engine_with(|options| {
        options.tools.extend(calls.tools());
        hook(options, &on("PreToolUse", &[line]));
    });

    let told = run(&mut engine, "Go.").await;

    assert_eq!((told.outcome().terminal, told.outcome().is_error), (Terminal::HookStopped, false));
    let mut begun = calls.begun();
    begun.sort();
    assert_eq!(begun, ["a", "b"]);
    // P9: each has its one result, and the next prompt is answered.
    assert_eq!((told.results().len(), stage.request_count()), (5, 1));
    run(&mut engine, "And?").await.assert_completed();
    let results = results_in(&stage.request(2));
    assert!(results[3].2.contains("toolu_stops") && results[4].2.contains("Not run"), "{results:?}");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_P7_a_call_is_checked_then_asked_about_then_judged_then_run_then_told() {
    let script = Script::new()
        .reply([tool("Bash", json!({"command": "echo call >> log.txt"})).id("toolu_a")])
        .reply([tool("Bash", json!({"command": "echo call >> log.txt; exit 3"})).id("toolu_b")])
        .reply([tool("Write", json!({"file_path": "x", "content": "x"})).id("toolu_c")])
        .reply([tool("Bash", json!({"comand": "ls"})).id("toolu_d")])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| {
        // Commands are allowed, files are not.
        options.mode = Mode::Default;
        options.rules.allow = vec!["Bash(*)".parse().unwrap()];
        for (event, word) in
            [("PreToolUse", "pre"), ("PostToolUse", "post"), ("PostToolUseFailure", "failed")]
        {
            hook(options, &on(event, &[&format!("echo {word} >> log.txt")]));
        }
    });

    let told = run(&mut engine, "Go.").await;

    assert_eq!(told.assert_completed().denials.len(), 1);
    assert_eq!(
        stage.read("log.txt"),
        "pre\ncall\npost\npre\ncall\nfailed\npre\n",
        "one asked about, then denied; one never asked about"
    );
    assert!(!stage.path("x").exists());
    stage.assert_all_played();
}

#[tokio::test]
async fn words_of_hooks_reach_the_model_behind_the_results() {
    let script = Script::new()
        .reply([
            tool("Look", json!({"name": "a"})).id("toolu_a"),
            tool("Look", json!({"name": "b", "does": "fail"})).id("toolu_b"),
        ])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let calls = Notes::default();
    let context = |event: &str, words: &str| {
        let answer = json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": words}});
        json!({event: [{"matcher": "Look", "hooks": [command(&format!("echo '{answer}'"))]}]})
    };
    let mut engine = stage.engine_with(|options| {
        options.tools.extend(calls.tools());
        hook(options, &context("PostToolUse", "the linter is happy"));
        hook(options, &context("PostToolUseFailure", "it often fails"));
    });

    run(&mut engine, "Go.").await.assert_completed();

    let request = stage.request(2);
    let blocks = last_user_blocks(&request);
    assert_eq!((&blocks[0]["type"], &blocks[1]["type"]), (&json!("tool_result"), &json!("tool_result")));
    let words = blocks[2]["text"].as_str().unwrap();
    assert!(words.starts_with("<system-reminder>"), "{words}");
    assert!(words.contains("the linter is happy") && words.contains("it often fails"), "{words}");
    stage.assert_all_played();
}

#[tokio::test]
async fn a_block_after_a_tool_is_told_to_the_model() {
    let stage =
        Stage::new(Script::new().reply([tool("Glob", json!({"pattern": "*"}))]).reply([text("Done.")])).await;
    let told =
        run(&mut engine(&stage, &on("PostToolUse", &["echo 'not formatted' >&2; exit 2"])), "Go.").await;
    told.assert_completed();
    let request = stage.request(2);
    let words: String = blocks(&request, "user").iter().filter_map(|block| block["text"].as_str()).collect();
    assert!(words.contains("not formatted"), "{words}");
    stage.assert_all_played();
}

#[tokio::test]
async fn the_hooks_words_are_told_before_the_result_they_belong_to() {
    let stage = Stage::new(
        Script::new().reply([tool("Glob", json!({"pattern": "*"})).id("toolu_a")]).reply([text("Done.")]),
    )
    .await;
    let mut engine = engine(&stage, &on("PreToolUse", &["exit 0"]));
    let mut events = engine.submit(prompt("Go."));
    let told = until(&mut events, |event| crate::stage::is_result_of(event, "toolu_a")).await;
    assert!(told.iter().any(|event| matches!(event, Event::Hook(_))));
    rest(&mut events).await;
}

#[tokio::test]
async fn loop_I7_an_end_is_put_to_the_stop_hooks_and_then_to_the_token_budget() {
    let part = |words: &str| Step::reply([text(words)]).usage("output_tokens", 1_000);
    let script = Script::new().step(part("One.")).step(part("Two.")).step(part("Three."));
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| {
        // Objects once, to the second answer.
        let stop = "echo x >> asked; test $(wc -l < asked) = 2 || exit 0; echo 'not yet' >&2; exit 2";
        hook(options, &on("Stop", &[stop]));
        options.limits.output_tokens_wanted = Some(1_500);
    });

    let told = run(&mut engine, "Go.").await;

    assert_eq!(told.assert_completed().text, "Three.");
    // The first was too short; the second was long enough but the hook was against it; the third is the end.
    assert_eq!(told.transitions(), ["token_budget_continuation", "stop_hook_blocking"]);
    assert_eq!(stage.read("asked").lines().count(), 3, "the hooks come first, every time");
    stage.assert_all_played();
}

#[tokio::test]
async fn words_of_a_hook_that_nobody_waits_for_come_with_the_next_question() {
    let words = json!({"systemMessage": "linted", "hookSpecificOutput":
        {"hookEventName": "PostToolUse", "additionalContext": "the linter is happy"}});
    let hooks = |wait: &str| {
        let line = format!("sleep {wait}; echo '{words}'");
        json!({"PostToolUse": [{"matcher": "Glob", "hooks": [{"type": "command", "command": line, "async": true}]}]})
    };
    let look = || tool("Glob", json!({"pattern": "*"}));

    let script = Script::new()
        .reply([look()])
        .reply([tool("Bash", json!({"command": "sleep 1"}))])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let told = run(&mut engine(&stage, &hooks("0.2")), "Go.").await;
    told.assert_completed();
    assert!(!stage.request(2).to_string().contains("the linter"), "nobody waited for it");
    let request = stage.request(3);
    let last = last_user_blocks(&request);
    assert_eq!(last[0]["type"], "tool_result", "results come first");
    assert!(text_of(&json!(last)).contains("the linter is happy"), "{last:?}");
    assert_eq!(said(&told), [("linted".to_owned(), false)]);
    assert!(runs(&told).contains(&HookOutcome::Success), "{:?}", runs(&told));

    // Or with the next prompt, if the submission is over before.
    let stage =
        Stage::new(Script::new().reply([look()]).reply([text("Done.")]).reply([text("Again.")])).await;
    let mut engine = engine(&stage, &hooks("0.5"));
    assert!(said(&run(&mut engine, "Go.").await).is_empty());
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let told = run(&mut engine, "And?").await;
    assert_eq!(said(&told), [("linted".to_owned(), false)]);
    let request = stage.request(3);
    assert_eq!(request.to_string().matches("the linter is happy").count(), 1, "told once");
    assert!(text_of(&json!(last_user_blocks(&request))).contains("the linter is happy"));
}
