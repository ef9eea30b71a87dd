//! Hooks of the client's.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use pelton::fresh_id;
use pelton::hooks::{CallbackError, CallbackTerms, HookCall, HookCallback, HookConfig, HookEvent, OnFailure};
use pelton_model::World;
use serde_json::{Value, json};

use super::client::Client;

/// One function of the client's that is called at some moments.
struct ClientHook {
    client: Client,
    callback: String,
    world: Arc<dyn World>,
}

impl HookCallback for ClientHook {
    fn call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<Value, CallbackError>> {
        Box::pin(async move {
            // Clients want an id even where there is no call.
            let id =
                call.tool_use_id.map_or_else(|| fresh_id(self.world.as_ref()).to_string(), str::to_owned);
            let fields = json!({"callback_id": self.callback, "input": call.input, "tool_use_id": id});
            match self.client.ask("hook_callback", fields).await {
                // An empty answer is no opinion.
                Ok(Value::Null) => Ok(json!({})),
                Ok(answer) => Ok(answer),
                Err(none) => Err(CallbackError(none.words())),
            }
        })
    }

    fn label(&self) -> &str {
        &self.callback
    }
}

/// Registers what `initialize` lists. Returns what cannot be used, in words.
pub(crate) fn add(
    hooks: &mut HookConfig,
    listed: &Value,
    client: &Client,
    world: &Arc<dyn World>,
) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, matchers) in listed.as_object().into_iter().flatten() {
        let Some(event) = HookEvent::from_name(name) else {
            problems.push(format!("hooks.{name}: there is no such event"));
            continue;
        };
        for matcher in matchers.as_array().into_iter().flatten() {
            let pattern = matcher.get("matcher").and_then(Value::as_str);
            let seconds = matcher.get("timeout").and_then(Value::as_f64).filter(|seconds| *seconds > 0.0);
            let terms = CallbackTerms {
                timeout: seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
                on_failure: match matcher.get("onFailure").and_then(Value::as_str) {
                    Some("block") => OnFailure::Blocks,
                    _ => OnFailure::Usual,
                },
            };
            let ids = matcher.get("hookCallbackIds").and_then(Value::as_array).into_iter().flatten();
            for id in ids.filter_map(Value::as_str) {
                let (client, world) = (client.clone(), Arc::clone(world));
                let hook = Arc::new(ClientHook { client, callback: id.to_owned(), world });
                problems
                    .extend(hooks.add_callback(event, pattern, hook, terms).err().map(|bad| bad.to_string()));
            }
        }
    }
    problems
}
