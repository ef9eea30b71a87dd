//! Errors the loop climbs out of: nobody is shown one while there is a way on.

mod fallbacks; // models that do not answer
mod output_limit; // answers that are cut
mod repairs; // requests that are refused for something in them
mod too_long; // prompts that do not fit

use pelton::{Engine, Event};
use serde_json::Value;

use crate::stage::{Told, blocks, notes};

#[track_caller]
fn assert_no_error_shown(told: &Told) {
    let shown = told.0.iter().find(|event| matches!(event, Event::Synthetic(_)));
    assert!(shown.is_none(), "an error was shown: {shown:?}");
}

fn synthetics(told: &Told) -> usize {
    told.0.iter().filter(|event| matches!(event, Event::Synthetic(_))).count()
}

/// The kinds of what the loop noted in the transcript, beside its transitions and what became of the cache.
fn kinds(engine: &Engine) -> Vec<String> {
    let noted = notes(&engine.transcript_file().unwrap());
    noted.into_iter().map(|(kind, _)| kind).filter(|kind| kind != "transition" && kind != "cache").collect()
}

/// How many thinking blocks a request brings. Their text is not sent by default, so it cannot be looked for.
fn thoughts(request: &Value) -> usize {
    blocks(request, "assistant").iter().filter(|block| block["type"] == "thinking").count()
}
