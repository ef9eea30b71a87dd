//! What can be seen from outside while a submission runs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pelton::hooks::HookEvent;
use pelton::transcript::Durability;
use pelton::{Event, Phase, Status, Wait};
use pelton_model::{Delta, DeltaKind};
use pelton_testkit::{Script, Step, gate, pause, text, tool};
use serde_json::json;
use tokio::sync::watch;

use crate::hooks::{hook, on};
use crate::probe::Notes;
use crate::stage::{Stage, Told, prompt, pulling, rest, run, until};

/// Writes down every status that can be seen by waiting for changes.
fn recorder(mut watch: watch::Receiver<Status>) -> Arc<Mutex<Vec<Status>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&seen);
    tokio::spawn(async move {
        while watch.changed().await.is_ok() {
            notes.lock().unwrap().push(watch.borrow_and_update().clone());
        }
    });
    seen
}

#[tokio::test]
async fn loop_Z4_loop_E24_the_states_of_a_submission_are_seen_in_order() {
    let words = "Words upon words. ".repeat(400);
    let look = |name: &str| tool("Look", json!({"name": name, "ms": 20}));
    let script = Script::new()
        .reply([text(words), look("first")])
        .reply([look("second")])
        .step(
            Step::status(400)
                .error_type("invalid_request_error")
                .message("prompt is too long: 200001 tokens > 200000 maximum"),
        )
        .reply([pause(Duration::from_millis(50)), text("In short.")])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| {
        options.tools.extend(Notes::default().tools());
        options.sessions.as_mut().unwrap().durability = Durability::Synced;
        // A phase that takes no time may be missed.
        hook(options, &on("SessionStart", &["sleep 0.05"]));
        hook(options, &on("Stop", &["sleep 0.05"]));
    });
    assert_eq!(engine.watch().borrow().phase, Phase::Initial);
    let seen = recorder(engine.watch());

    run(&mut engine, "Go.").await.assert_completed();
    let last = engine.watch().borrow().clone();
    drop(engine);
    tokio::task::yield_now().await;

    let seen = seen.lock().unwrap().clone();
    let mut phases: Vec<&str> = seen.iter().map(|status| status.phase.name()).collect();
    phases.dedup();
    let all = [
        "SYSTEM_PROMPT_CONSTRUCTION",
        "PROCESS_USER_INPUT",
        "COMPACT_CHECK",
        "STREAMING",
        "TOOL_EXEC",
        "COMPACT_CHECK",
        "STREAMING",
        "TOOL_EXEC",
        "COMPACT_CHECK",
        "STREAMING",
        "COMPACT",
        "COMPACT_CHECK",
        "STREAMING",
        "RECOVERY_CHECK",
        "DONE",
    ];
    let mut in_order = all.iter();
    let is_next = |phase: &&str| in_order.any(|next| next == phase);
    assert!(
        phases.iter().all(is_next),
        "what takes no time may be missed, but nothing is out of order: {phases:?}"
    );
    for phase in ["SYSTEM_PROMPT_CONSTRUCTION", "STREAMING", "TOOL_EXEC", "COMPACT", "RECOVERY_CHECK", "DONE"]
    {
        assert!(phases.contains(&phase), "{phase} takes its time: {phases:?}");
    }
    let turns: Vec<u32> = seen.iter().map(|status| status.turn).collect();
    assert!(turns.is_sorted() && turns.last() == Some(&4), "{turns:?}");
    let waits: Vec<&Wait> = seen.iter().flat_map(|status| &status.waits).collect();
    assert_eq!(waits.first(), Some(&&Wait::Hook { event: HookEvent::SessionStart }));
    assert_eq!(waits.last(), Some(&&Wait::Hook { event: HookEvent::Stop }));
    let during_hook = seen.iter().rfind(|status| !status.waits.is_empty()).unwrap();
    assert_eq!(during_hook.phase, Phase::RecoveryCheck);
    assert_eq!((last.phase, last.waits.len()), (Phase::Done, 0));
}

#[tokio::test]
async fn loop_Z4_the_tokens_of_a_running_query_can_be_watched_while_it_grows() {
    let script =
        Script::new()
            .step(Step::status(529).header("retry-after", "0"))
            .reply([text("word ".repeat(100)).fragments(2).after(1, gate("half"))]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();
    let watch = engine.watch();
    let mut events = engine.submit(prompt("Talk."));

    until(&mut events, |event| matches!(event, Event::Retry(_))).await;
    assert!(matches!(watch.borrow().waits[..], [Wait::Retry { .. }]), "{:?}", watch.borrow());

    let is_text = |event: &Event| matches!(event, Event::Delta(Delta { kind: DeltaKind::Text(_), .. }));
    pulling(&mut events, stage.model.wait_at_gate("half")).await;
    until(&mut events, is_text).await;
    let half = watch.borrow().clone();
    assert_eq!((half.phase, half.turn, half.waits.len()), (Phase::Streaming, 1, 0));
    assert!(half.output_tokens > 20 && half.output_tokens < 100, "about half of it: {half:?}");
    assert!(half.context_tokens > 0 && !half.model.is_empty());

    stage.model.open("half");
    let told = Told(rest(&mut events).await);
    assert_eq!(
        watch.borrow().output_tokens,
        told.outcome().usage.output_tokens,
        "counted by the server in the end"
    );
    assert!(watch.borrow().context_tokens > half.context_tokens);
}

#[tokio::test]
async fn a_submission_that_is_let_go_is_over() {
    let stage = Stage::new(Script::new().reply([gate("never")])).await;
    let mut engine = stage.engine();
    let mut watch = engine.watch();
    let mut events = engine.submit(prompt("Wait."));
    pulling(&mut events, stage.model.wait_at_gate("never")).await;
    assert_eq!(watch.borrow_and_update().phase, Phase::Streaming);
    drop(events);
    assert!(watch.has_changed().unwrap());
    assert_eq!(watch.borrow().phase, Phase::Done);
}
