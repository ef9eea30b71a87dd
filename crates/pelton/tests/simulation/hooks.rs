//! Hooks as functions of the host: they add words, change a call, refuse it, take their time, break.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use pelton::hooks::{CallbackError, CallbackTerms, HookCall, HookCallback, HookConfig, HookEvent, OnFailure};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::dice::Dice;
use crate::log::Log;
use crate::tools::TOLD_TO_PANIC;

/// How long a hook may take.
const TIME: Duration = Duration::from_secs(5);

/// The hooks of a session, over all its processes.
#[derive(Clone)]
pub struct Host {
    state: Arc<State>,
}

struct State {
    dice: Mutex<Dice>,
    log: Log,
    calm: AtomicBool,
    running: AtomicUsize,
}

impl Host {
    pub fn new(seed: u64, log: Log) -> Self {
        let state = State {
            dice: Mutex::new(Dice::of(seed, "hooks")),
            log,
            calm: AtomicBool::default(),
            running: AtomicUsize::default(),
        };
        Self { state: Arc::new(state) }
    }

    /// From here on they have no opinion.
    pub fn calm(&self) {
        self.state.calm.store(true, Ordering::Relaxed);
    }

    pub fn running(&self) -> usize {
        self.state.running.load(Ordering::Relaxed)
    }

    pub fn config(&self, on_failure: OnFailure) -> HookConfig {
        let mut config = HookConfig::default();
        let events =
            [HookEvent::PreToolUse, HookEvent::PostToolUse, HookEvent::PostToolUseFailure, HookEvent::Stop];
        for event in events {
            let callback = Arc::new(Callback { event, state: Arc::clone(&self.state) });
            let terms = CallbackTerms { timeout: Some(TIME), on_failure };
            config.add_callback(event, None, callback, terms).unwrap();
        }
        config
    }
}

struct Callback {
    event: HookEvent,
    state: Arc<State>,
}

/// Counts the end of a hook, however it comes.
struct Running<'a>(&'a State);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl HookCallback for Callback {
    fn call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<Value, CallbackError>> {
        Box::pin(async move {
            let state = &*self.state;
            state.running.fetch_add(1, Ordering::Relaxed);
            let _running = Running(state);
            if state.calm.load(Ordering::Relaxed) {
                return Ok(json!({}));
            }
            let (wait, answer) = {
                let mut dice = state.dice.lock().unwrap();
                let wait = if dice.one_in(3) { dice.wait_ms() } else { 0 };
                (wait, answer(self.event, &call.input["tool_input"], &mut dice))
            };
            if wait > 0 {
                sleep(Duration::from_millis(wait)).await;
            }
            state.log.say(format!("hook {} says {answer:?}", self.event.name()));
            match answer {
                Answer::Json(json) => Ok(json),
                Answer::Fails => Err(CallbackError("out of order".to_owned())),
                Answer::Panics => panic!("{TOLD_TO_PANIC}: a hook"),
                Answer::Hangs => std::future::pending().await,
            }
        })
    }
}

#[derive(Debug)]
enum Answer {
    Json(Value),
    Fails,
    Panics,
    Hangs,
}

fn answer(event: HookEvent, input: &Value, dice: &mut Dice) -> Answer {
    let specific = |fields: Value| {
        let mut fields = fields;
        fields["hookEventName"] = event.name().into();
        json!({"hookSpecificOutput": fields})
    };
    if dice.one_in(2) {
        return Answer::Json(json!({}));
    }
    match dice.below(12) {
        0 => return Answer::Fails,
        1 => return Answer::Panics,
        2 => return Answer::Hangs,
        3 => return Answer::Json(json!({"systemMessage": "a hook speaks"})),
        4 if dice.one_in(3) => return Answer::Json(json!({"continue": false, "stopReason": "enough"})),
        _ => {}
    }
    Answer::Json(match (event, dice.below(4)) {
        (HookEvent::PreToolUse, 0) => {
            specific(json!({"permissionDecision": "deny", "permissionDecisionReason": "not this one"}))
        }
        (HookEvent::PreToolUse, 1) => {
            let mut changed = input.clone();
            changed["hooked"] = true.into();
            specific(json!({"permissionDecision": "allow", "updatedInput": changed}))
        }
        (HookEvent::PreToolUse, _) => specific(json!({"additionalContext": "before the call"})),
        (HookEvent::Stop, 0 | 1) => json!({"decision": "block", "reason": "there is more to do"}),
        (HookEvent::Stop, _) => json!({}),
        (_, 0) => json!({"decision": "block", "reason": "that was wrong"}),
        _ => specific(json!({"additionalContext": "after the call"})),
    })
}
