//! What stands in for a result that never came. One place answers every open call.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use uuid::Uuid;

use super::entry::{CallId, Entry, Kind, Piece};

/// What the model reads about a call whose result was lost.
pub const INTERRUPTED_RESULT: &str = "This call was interrupted before its result was recorded. It may or may not \
have taken effect: check the state of things before repeating it.";

/// What the model reads in place of the rounds that were left out.
pub const LEFT_OUT: &str = "[Earlier parts of this conversation were left out to fit the context window. Files and command \
output from then may have to be looked at again.]";

#[derive(Serialize)]
struct Words {
    r#type: &'static str,
    text: &'static str,
}

/// The note in place of rounds that were left out.
pub(super) fn left_out(beside: &Entry) -> Option<Arc<Entry>> {
    let json = Bytes::from(serde_json::to_vec(&[Words { r#type: "text", text: LEFT_OUT }]).ok()?);
    Entry::new(Uuid::nil(), beside.at, Kind::Prompt { meta: true }, json).ok().map(Arc::new)
}

/// What the model reads in place of an old result.
pub const RESULT_FOLDED: &str =
    "[This result was left out to fit the context window. Make the call again if what it said is needed.]";

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

/// The same result without what it said; `None` if that is no smaller, or it is no result.
pub(super) fn folded(entry: &Entry) -> Option<Entry> {
    let Kind::ToolResult { call, is_error } = &entry.kind else { return None };
    let block =
        [StandIn { r#type: "tool_result", tool_use_id: call, content: RESULT_FOLDED, is_error: *is_error }];
    let json = Bytes::from(serde_json::to_vec(&block).ok()?);
    let smaller = Entry::new(entry.id, entry.at, entry.kind.clone(), json).ok()?;
    (smaller.tokens < entry.tokens).then_some(smaller)
}

/// The places of calls in an answer that the server would run itself and did not answer, and of its answers to none.
pub(super) fn unpaired_of_server<'a>(answer: impl Iterator<Item = &'a Entry>) -> Vec<usize> {
    #[derive(Deserialize)]
    struct Block {
        r#type: String,
        id: Option<String>,
        tool_use_id: Option<String>,
    }
    let mut open: Vec<(usize, String)> = Vec::new();
    let mut unpaired = Vec::new();
    for (place, entry) in answer.enumerate() {
        if !matches!(entry.kind, Kind::Assistant { piece: Piece::Other, .. }) {
            continue;
        }
        let Ok([block]) = serde_json::from_slice::<[Block; 1]>(&entry.json) else { continue };
        match (block.r#type.as_str(), block.id, block.tool_use_id) {
            ("server_tool_use" | "mcp_tool_use", Some(id), _) => open.push((place, id)),
            (kind, _, Some(answered)) => match open.iter().position(|(_, id)| *id == answered) {
                Some(call) => _ = open.remove(call),
                None if kind.ends_with("_tool_result") => unpaired.push(place),
                None => {}
            },
            _ => {}
        }
    }
    unpaired.extend(open.into_iter().map(|(place, _)| place));
    unpaired.sort_unstable();
    unpaired
}
