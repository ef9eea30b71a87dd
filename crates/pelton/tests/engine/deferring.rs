//! Calls that a hook puts off: the run ends before them, and they are judged anew when the session is resumed.

use pelton::permission::Mode;
use pelton::{Engine, Event, Options, Terminal};
use pelton_testkit::{Part, Script, Step, pause, text, tool};
use serde_json::{Value, json};
use std::time::Duration;

use crate::hooks::{hook, on};
use crate::stage::{
    Stage, Told, holds, last_user_blocks, prompt, pulling, rest, results_in, resume_from, run, sh, text_of,
    words_of,
};

/// Puts every call off until `approved` is there, and counts how often it was asked.
fn putting_off(stage: &Stage) -> Value {
    let says = |decision: &str| {
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision,
            "updatedInput": {"command": "echo changed > changed.txt"}}})
    };
    let dir = stage.cwd();
    let line = format!(
        "echo asked >> {0}/asked.txt; if test -e {0}/approved; then echo '{1}'; else echo '{2}'; fi",
        dir.display(),
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}),
        says("defer"),
    );
    on("PreToolUse", &[&line])
}

fn options(stage: &Stage) -> Options {
    let mut options = stage.options();
    options.mode = Mode::Default;
    options.may_defer = true;
    hook(&mut options, &putting_off(stage));
    options
}

fn call() -> Part {
    tool("Bash", sh("echo ran >> ran.txt; cat ran.txt")).id("toolu_later")
}

#[tokio::test]
async fn a_call_that_is_put_off_ends_the_run_and_runs_once_somebody_approves() {
    let script = Script::new().reply([text("I will."), call()]).reply([text("It ran.")]);
    let stage = Stage::new(script).await;
    let mut first = Engine::new(options(&stage)).unwrap();
    let told = run(&mut first, "Do it.").await;

    let outcome = told.outcome();
    assert_eq!((outcome.terminal, outcome.is_error), (Terminal::ToolDeferred, false));
    assert_eq!((outcome.text.as_str(), outcome.num_turns), ("I will.", 1));
    let deferred = outcome.deferred.as_ref().unwrap();
    assert_eq!((&*deferred.call, &*deferred.tool), ("toolu_later", "Bash"));
    assert_eq!(*deferred.input, sh("echo ran >> ran.txt; cat ran.txt"));
    assert!(told.results().is_empty(), "a call that was put off has no result");
    let file = first.transcript_file().unwrap();
    drop(first);

    // Nobody has approved yet: the hook is asked again, and the model is not.
    let resumed = || {
        let mut options = options(&stage);
        resume_from(&mut options, &file);
        Engine::new(options).unwrap()
    };
    let told = run(&mut resumed(), "And now?").await;
    assert_eq!(told.outcome().terminal, Terminal::ToolDeferred);
    assert_eq!(&*told.outcome().deferred.as_ref().unwrap().call, "toolu_later");
    assert_eq!((stage.request_count(), stage.read("asked.txt").lines().count()), (1, 2));
    assert!(!stage.path("ran.txt").exists() && !stage.path("changed.txt").exists());

    stage.write("approved", "");
    let mut engine = resumed();
    let told = run(&mut engine, "And now?").await;
    assert_eq!(told.assert_completed().text, "It ran.");
    assert_eq!((stage.read("ran.txt").as_str(), stage.read("asked.txt").lines().count()), ("ran\n", 3));
    let request = stage.request(2);
    assert_eq!(results_in(&request), [("toolu_later".to_owned(), false, "ran".to_owned())]);
    let last = last_user_blocks(&request);
    assert_eq!(last[0]["type"], "tool_result");
    let said = text_of(&json!(last));
    assert_eq!(said.matches("And now?").count(), 1, "{said}");

    // Once settled it stays so.
    drop(engine);
    let mut again = resumed();
    assert!(!run(&mut again, "More?").await.0.iter().any(|event| matches!(event, Event::ToolStarted(_))));
    assert_eq!(stage.read("ran.txt"), "ran\n");
}

#[tokio::test]
async fn a_call_among_others_is_not_put_off() {
    let other = tool("Bash", sh("touch other")).id("toolu_other");
    // The other one comes a while after the first was complete.
    let script = Script::new()
        .step(Step::reply([call(), pause(Duration::from_millis(300)), other]))
        .reply([text("Both.")]);
    let stage = Stage::new(script).await;
    let mut options = options(&stage);
    options.mode = Mode::BypassPermissions;
    let told = run(&mut Engine::new(options).unwrap(), "Do both.").await;
    assert_eq!(told.assert_completed().text, "Both.");
    assert!(stage.path("other").exists());
}

#[tokio::test]
async fn a_call_that_was_put_off_and_whose_tool_is_gone_ends_the_run_with_an_error() {
    let stage = Stage::new(Script::new().reply([call()])).await;
    let mut first = Engine::new(options(&stage)).unwrap();
    assert_eq!(run(&mut first, "Do it.").await.outcome().terminal, Terminal::ToolDeferred);
    let file = first.transcript_file().unwrap();
    drop(first);

    let mut options = options(&stage);
    options.tools.retain(|tool| tool.spec().name != "Bash");
    resume_from(&mut options, &file);
    let told = run(&mut Engine::new(options).unwrap(), "And now?").await;
    let outcome = told.outcome();
    assert_eq!((outcome.terminal, outcome.is_error), (Terminal::ToolDeferredUnavailable, true));
    assert_eq!(outcome.terminal.name(), "tool_deferred_unavailable");
    assert!(outcome.text.contains("Bash") && outcome.deferred.is_none(), "{outcome:?}");
    assert_eq!(stage.request_count(), 1);
}

#[tokio::test]
async fn where_nothing_can_be_put_off_somebody_is_to_be_asked() {
    let stage = Stage::new(Script::new().reply([call()]).reply([text("Not done.")])).await;
    let mut options = options(&stage);
    options.may_defer = false;
    options.mode = Mode::BypassPermissions;
    let told = run(&mut Engine::new(options).unwrap(), "Do it.").await;
    assert_eq!(told.assert_completed().denials.len(), 1);
    assert!(!stage.path("ran.txt").exists());
}

#[tokio::test]
async fn loop_X3_loop_A3_an_interrupt_in_a_call_that_was_put_off_ends_the_submission() {
    let slow = tool("Bash", sh("touch began; sleep 30")).id("toolu_later");
    let stage = Stage::new(Script::new().reply([text("I will."), slow]).reply([text("Here.")])).await;
    let mut first = Engine::new(options(&stage)).unwrap();
    assert_eq!(run(&mut first, "Do it.").await.outcome().terminal, Terminal::ToolDeferred);
    let file = first.transcript_file().unwrap();
    drop(first);
    stage.write("approved", "");
    let mut options = options(&stage);
    resume_from(&mut options, &file);
    let mut engine = Engine::new(options).unwrap();

    let interrupter = engine.interrupter();
    let mut events = engine.submit(prompt("And now?"));
    let began = stage.path("began");
    let (mut told, ()) = pulling(&mut events, holds(|| began.exists())).await;
    interrupter.interrupt();
    told.extend(rest(&mut events).await);
    drop(events);
    let told = Told(told);

    let outcome = told.outcome();
    assert_eq!((outcome.terminal, outcome.is_error), (Terminal::AbortedToolExecution, true));
    assert_eq!(outcome.errors, ["Interrupted by the user"]);
    // The result and the note are two words in the user's role.
    assert_eq!((outcome.num_turns, stage.request_count()), (3, 1));
    assert_eq!(told.results(), ["toolu_later"]);
    let said: Vec<String> = told.entries().iter().skip(1).map(|entry| words_of(entry)).collect();
    assert_eq!(said, ["And now?", "[Request interrupted by user for tool use]"]);
    run(&mut engine, "Still there?").await.assert_completed();
    let sent = text_of(&json!(last_user_blocks(&stage.request(2))));
    assert!(sent.contains("And now?") && sent.contains("interrupted by user for tool use"), "{sent}");
    stage.assert_all_played();
}
