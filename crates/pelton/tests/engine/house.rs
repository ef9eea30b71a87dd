//! Commands that are always there: they tell or set something, and no model is asked.

use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton::Event;
use pelton::hooks::{CallbackError, CallbackTerms, HookCall, HookCallback, HookEvent};
use pelton::permission::Mode;
use pelton_testkit::{Script, text};
use serde_json::{Value, json};

use crate::stage::{Stage, run};

/// Keeps what it hears, and answers the same each time.
#[derive(Clone)]
struct Listener(Arc<Mutex<Vec<Value>>>, Value);

impl Listener {
    fn answering(answer: Value) -> Self {
        Self(Arc::default(), answer)
    }

    fn heard(&self) -> Vec<Value> {
        self.0.lock().unwrap().clone()
    }
}

impl HookCallback for Listener {
    fn call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<Value, CallbackError>> {
        self.0.lock().unwrap().push(call.input.clone());
        let answer = self.1.clone();
        async move { Ok(answer) }.boxed()
    }
}

#[tokio::test]
async fn they_tell_how_the_session_stands_and_nobody_is_asked() {
    let stage = Stage::new(Script::new()).await;
    stage.write("other.txt", "");
    let mut engine = stage.engine_with(|options| {
        options.mode = Mode::Default;
        options.rules.deny.push("Bash(curl:*)".parse().unwrap());
    });
    for (typed, words) in [
        ("/help", "/compact [what to look after]"),
        ("/model", "claude-sonnet-5-5 is asked"),
        ("/cost", "Total cost: $0.0000"),
        ("/usage", "Total cost"),
        ("/permissions", "deny: Bash(curl:*)"),
        ("/hooks", "No hooks are called."),
        ("/mcp", "There are no MCP servers."),
        ("/agents", "Explore: "),
        ("/skills", "There are no skills."),
        ("/tasks", "Nothing runs in the background."),
        ("/status", "Mode: default"),
        ("/effort", "as hard as it does by itself"),
        ("/effort high", "Effort: high from now on."),
        ("/effort", "Effort: high."),
        ("/fast on", "Fast answers are on."),
        ("/fast", "Fast answers are off."),
        ("/rename The long way", "The session is called The long way now."),
        ("/plan", "Plan mode is on"),
    ] {
        let told = run(&mut engine, typed).await;
        let outcome = told.assert_completed();
        assert!(outcome.text.contains(words), "{typed}: {}", outcome.text);
        assert!(told.0.iter().any(|event| matches!(event, Event::CommandOutput { .. })), "{typed}");
    }
    assert_eq!(engine.permissions().mode(), Mode::Plan);
    for (typed, words) in [
        ("/effort heroic", "heroic"),
        ("/fast maybe", "neither on nor off"),
        ("/rename", "What is it called?"),
        ("/add-dir", "Which one?"),
        ("/add-dir nowhere", "cannot be added"),
        ("/add-dir other.txt", "is no directory"),
        ("/frobnicate", "Unknown command"),
    ] {
        let told = run(&mut engine, typed).await;
        let outcome = told.outcome();
        assert!(outcome.is_error && outcome.text.contains(words), "{typed}: {}", outcome.text);
    }
    assert_eq!(stage.request_count(), 0);
}

#[tokio::test]
async fn another_model_is_asked_if_hooks_let_it_and_they_hear_of_it() {
    let stage = Stage::new(Script::new().reply([text("Small.")]).reply([text("Large.")])).await;
    let (before, after) = (Listener::answering(json!({})), Listener::answering(json!({})));
    let mut engine = stage.engine_with(|options| {
        for (event, listener) in [(HookEvent::PreModelSwitch, &before), (HookEvent::PostModelSwitch, &after)]
        {
            options
                .hooks
                .add_callback(event, None, Arc::new(listener.clone()), CallbackTerms::default())
                .unwrap();
        }
    });
    assert!(
        run(&mut engine, "/model haiku").await.assert_completed().text.contains("claude-haiku-5-5 is asked")
    );
    run(&mut engine, "Hi.").await.assert_completed();
    assert_eq!(stage.request(1)["model"], "claude-haiku-5-5");
    let heard = before.heard();
    assert_eq!(
        (&heard[0]["from_model"], &heard[0]["to_model"], &heard[0]["requested_model"], &heard[0]["source"]),
        (&json!("claude-sonnet-5-5"), &json!("claude-haiku-5-5"), &json!("haiku"), &json!("command"))
    );
    assert_eq!(heard[0]["pricing"], "catalog");
    assert!(heard[0]["estimated_cache_write_usd"].is_number());
    // A client's wish counts with the next prompt, and is heard of as well.
    engine.dials().set_model(None).unwrap();
    run(&mut engine, "Hi.").await.assert_completed();
    assert_eq!(stage.request(2)["model"], "claude-sonnet-5-5");
    assert_eq!((before.heard().len(), after.heard().len()), (2, 2));
    assert_eq!(after.heard()[1]["source"], "sdk");
}

#[tokio::test]
async fn a_hook_may_object_to_another_model() {
    let stage = Stage::new(Script::new().reply([text("As before.")])).await;
    let answer = json!({"hookSpecificOutput": {"hookEventName": "PreModelSwitch", "permissionDecision": "deny",
        "permissionDecisionReason": "too dear"}});
    let before = Listener::answering(answer);
    let mut engine = stage.engine_with(|options| {
        options
            .hooks
            .add_callback(HookEvent::PreModelSwitch, None, Arc::new(before.clone()), CallbackTerms::default())
            .unwrap();
    });
    let told = run(&mut engine, "/model haiku").await;
    assert!(told.outcome().is_error && told.outcome().text.contains("too dear"), "{}", told.outcome().text);
    engine.dials().set_model(Some("haiku")).unwrap();
    let told = run(&mut engine, "Hi.").await;
    told.assert_completed();
    assert!(
        told.0.iter().any(
            |event| matches!(event, Event::Informational { content, .. } if content.contains("too dear"))
        )
    );
    assert_eq!(stage.request(1)["model"], "claude-sonnet-5-5");
}

#[tokio::test]
async fn one_more_directory_is_worked_in_and_hooks_hear_of_it() {
    let stage = Stage::new(Script::new()).await;
    let other = tempfile::tempdir().unwrap();
    let other = other.path().canonicalize().unwrap();
    let added = Listener::answering(json!({}));
    let mut engine = stage.engine_with(|options| {
        options
            .hooks
            .add_callback(HookEvent::DirectoryAdded, None, Arc::new(added.clone()), CallbackTerms::default())
            .unwrap();
    });
    run(&mut engine, &format!("/add-dir {}", other.display())).await.assert_completed();
    assert!(engine.permissions().roots().contains(&other));
    let heard = added.heard();
    assert_eq!((&heard[0]["directory"], &heard[0]["source"]), (&json!(other), &json!("slash_command")));
}

#[tokio::test]
async fn some_tell_the_model_what_to_do_and_a_skill_of_that_name_is_called_instead() {
    let stage = Stage::new(Script::new().reply([text("Reviewed.")]).reply([text("Our way.")])).await;
    run(&mut stage.engine(), "/review main").await.assert_completed();
    let said = stage.request(1)["messages"].to_string();
    assert!(said.contains("Review a change.") && said.contains("What the user adds: main"), "{said}");

    std::fs::create_dir_all(stage.path(".claude/skills/review")).unwrap();
    stage.write(".claude/skills/review/SKILL.md", "---\ndescription: Reviews.\n---\nReview it our way.");
    let mut engine = stage.engine_with(|options| {
        options.skills = Some(pelton::SkillSources::project());
    });
    run(&mut engine, "/review").await.assert_completed();
    let said = stage.request(2)["messages"].to_string();
    assert!(said.contains("Review it our way.") && !said.contains("Review a change."), "{said}");
}
