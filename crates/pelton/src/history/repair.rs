//! What stands in for a result that never came. One place answers every open call.

use bytes::Bytes;
use serde::Serialize;
use std::sync::Arc;
use uuid::Uuid;

use super::entry::{CallId, Entry, Kind};

/// What the model reads about a call whose result was lost.
pub const INTERRUPTED_RESULT: &str = "This call was interrupted before its result was recorded. It may or may not \
have taken effect: check the state of things before repeating it.";

#[derive(Serialize)]
struct StandIn<'a> {
    r#type: &'static str,
    tool_use_id: &'a str,
    content: &'static str,
    is_error: bool,
}

/// The result a view shows for a call that nobody answered. Lives in the view only: the log is never edited.
pub(super) fn stand_in(call: &CallId, beside: &Entry) -> Option<Arc<Entry>> {
    let block =
        [StandIn { r#type: "tool_result", tool_use_id: call, content: INTERRUPTED_RESULT, is_error: true }];
    let json = Bytes::from(serde_json::to_vec(&block).ok()?);
    let kind = Kind::ToolResult { call: Arc::clone(call), is_error: true };
    // It has no line of its own in the transcript, hence no name.
    Entry::new(Uuid::nil(), beside.at, kind, json).ok().map(Arc::new)
}
