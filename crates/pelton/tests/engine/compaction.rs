//! The cascade: the context is made smaller level by level, and nothing that matters is lost.

mod broken; // summaries that are none
mod by_hand; // what people ask for
mod held; // what is kept in memory
mod kept; // what must be there after each level
mod figures; // how full it is, as everybody knows it
mod levels; // C0 to C5, each where it is needed
mod limits; // C6, C7: when it cannot help
mod long; // four hundred turns
mod request; // what was asked for
mod resumed; // in a session that goes on
mod undone; // what was taken away is there again

use pelton::event::{Boundary, ContextEvent};
use pelton::{Event, Options};
use pelton_testkit::{Script, Step, When, text};
use serde_json::Value;
use std::sync::Arc;

use crate::stage::{Stage, Told, blocks, text_of};

/// A window in which a few rounds of some thousand tokens are a lot. The tools take a third of it.
pub const WINDOW: u64 = 60_000;

/// No folds, and no tool but those of the built-in ones that are named.
pub fn small(options: &mut Options, tools: &[&str]) {
    options.window_tokens = Some(WINDOW);
    options.max_output_tokens = Some(8_000);
    options.tools.retain(|tool| tools.contains(&tool.spec().name));
    options.agents.clear();
}

/// Is asked for a summary, and gives one.
pub fn summary(words: &str) -> Step {
    Step::reply([text(words)]).when(When::any().last_user_text("call no tools"))
}

/// Is asked for a fold, and gives one.
pub fn fold(words: &str) -> Step {
    Step::reply([text(words)]).when(When::any().system("You shorten a finished stretch"))
}

/// Steps that answer whenever they are asked, in front of the others.
pub fn with_helpers() -> Script {
    Script::new()
        .step(summary("In short: so far all is well.").always())
        .step(fold("They were listed.").always())
}

pub fn boundaries(told: &Told) -> Vec<Arc<Boundary>> {
    let boundary = |event: &Event| match event {
        Event::Context(ContextEvent::Boundary(boundary)) => Some(Arc::clone(boundary)),
        _ => None,
    };
    told.0.iter().filter_map(boundary).collect()
}

pub fn levels(told: &Told) -> Vec<&'static str> {
    let mut levels: Vec<&'static str> =
        boundaries(told).iter().map(|boundary| boundary.level.name()).collect();
    levels.dedup();
    levels
}

/// All words of the user's side of a request.
pub fn heard(request: &Value) -> String {
    let words = |block: &&Value| match block.get("text").and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None => block.get("content").map(text_of).unwrap_or_default(),
    };
    blocks(request, "user").iter().map(words).collect::<Vec<_>>().join("\n")
}

pub fn asks_for_summary(request: &Value) -> bool {
    heard(request).contains("call no tools")
}

/// The newest request of the conversation itself.
pub fn newest(stage: &Stage) -> Arc<Value> {
    let requests = stage.model.reply_requests();
    let of_conversation =
        |seen: &&pelton_testkit::Seen| seen.body["tools"].is_array() && !asks_for_summary(&seen.body);
    Arc::clone(&requests.iter().rfind(of_conversation).expect("a request").body)
}
