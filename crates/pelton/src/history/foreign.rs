//! Blocks that not every server knows: those that a newer server wrote, or that a record of somebody else holds. They are sent
//! back as they came, until a server refuses them.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::entry::{Entry, Kind, Piece};

/// What the model reads where such a block stood and something has to stand.
pub const BLOCK_LEFT_OUT: &str = "[A part of this message was left out: the server does not know its kind.]";

/// What every message may hold, and what there are other ways to leave out.
const NEEDED: [&str; 7] =
    ["text", "image", "document", "tool_use", "tool_result", "thinking", "redacted_thinking"];

/// What the API is known to take beside these.
const FAMILIAR: [&str; 19] = [
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "advisor_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
    "mcp_tool_listing",
    "search_result",
    "tool_reference",
    "container_upload",
    "compaction",
    "fallback",
    "tool_addition",
    "tool_removal",
    "mid_conv_system",
];

/// Whether the API is known to take blocks of this kind.
pub(crate) fn is_familiar(kind: &str) -> bool {
    NEEDED.contains(&kind) || FAMILIAR.contains(&kind)
}

/// The kinds of its blocks that it can be sent without, in order, those in results among them.
pub(super) fn kinds_not_needed(entry: &Entry) -> Vec<String> {
    let kinds = blocks_to_look_at(entry).into_iter().flat_map(|block| {
        let inner = inside(entry, &block).cloned().unwrap_or_default();
        std::iter::once(block).chain(inner)
    });
    kinds.filter_map(|block| kind_not_needed(entry, &block)).collect()
}

/// The kind of a block, or of one inside it, if it can be sent without.
pub(super) fn kind_at(entry: &Entry, block: usize, inner: Option<usize>) -> Option<String> {
    let block = blocks_to_look_at(entry).into_iter().nth(block)?;
    match inner.zip(inside(entry, &block)) {
        Some((inner, blocks)) => kind_not_needed(entry, blocks.get(inner)?),
        // What is inside something that a server did is not ours to take apart.
        None => kind_not_needed(entry, &block),
    }
}

/// Whether it has a block of one of these kinds that it can be sent without.
pub(super) fn has(entry: &Entry, kinds: &[String]) -> bool {
    kinds_not_needed(entry).iter().any(|kind| kinds.contains(kind))
}

/// The call of a server's own tool that a block of an answer makes or answers.
pub(super) fn server_call(entry: &Entry) -> Option<String> {
    if !matches!(entry.kind, Kind::Assistant { piece: Piece::Other, .. }) {
        return None;
    }
    let [block] = serde_json::from_slice::<[Value; 1]>(&entry.json).ok()?;
    let id = block.get("tool_use_id").or_else(|| block.get("id"))?;
    id.as_str().map(str::to_owned)
}

/// A prompt or a result with notes in the place of its blocks of these kinds.
pub(super) fn without(entry: &Entry, kinds: &[String]) -> Option<Arc<Entry>> {
    let mut blocks = blocks_to_look_at(entry);
    let goes = |block: &Value| kind_not_needed(entry, block).is_some_and(|kind| kinds.contains(&kind));
    let note = || json!({"type": "text", "text": BLOCK_LEFT_OUT});
    for block in &mut blocks {
        if goes(block) {
            *block = note();
        } else if inside(entry, block).is_some() {
            let inner = block.get_mut("content").and_then(Value::as_array_mut)?;
            inner.iter_mut().filter(|block| goes(block)).for_each(|block| *block = note());
        }
    }
    let json = Bytes::from(serde_json::to_vec(&blocks).ok()?);
    let changed = Entry::new(entry.id, entry.at, entry.kind.clone(), json).ok()?;
    Some(Arc::new(changed.with_detail(entry.detail.clone())))
}

/// The blocks of an entry, unless all of them are known to be needed.
fn blocks_to_look_at(entry: &Entry) -> Vec<Value> {
    match &entry.kind {
        Kind::Assistant { piece, .. } if *piece != Piece::Other => Vec::new(),
        _ => serde_json::from_slice(&entry.json).unwrap_or_default(),
    }
}

/// What is inside a result.
fn inside<'a>(entry: &Entry, block: &'a Value) -> Option<&'a Vec<Value>> {
    let is_result = matches!(entry.kind, Kind::ToolResult { .. });
    block.get("content").filter(|_| is_result).and_then(Value::as_array)
}

/// In an answer, whatever is no text, thinking or call of ours can go.
fn kind_not_needed(entry: &Entry, block: &Value) -> Option<String> {
    let kind = block.get("type").and_then(Value::as_str)?;
    (entry.is_assistant() || !NEEDED.contains(&kind)).then(|| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assistant, entry};
    use super::*;

    #[test]
    fn what_an_answer_or_a_prompt_can_be_sent_without() {
        let future = assistant(Piece::Other, &json!([{"type": "future", "id": "f1"}]));
        assert_eq!(kinds_not_needed(&future), ["future"]);
        assert_eq!(server_call(&future).as_deref(), Some("f1"));
        // Nobody may draw in an answer.
        assert_eq!(kinds_not_needed(&assistant(Piece::Other, &json!([{"type": "image"}]))), ["image"]);
        assert!(
            kinds_not_needed(&assistant(Piece::Text, &json!([{"type": "text", "text": "Hi."}]))).is_empty()
        );
        let blocks = json!([{"type": "text", "text": "Look:"}, {"type": "image"}, {"type": "hologram"}]);
        let asked = entry(Kind::Prompt { meta: false }, &blocks);
        assert_eq!(kinds_not_needed(&asked), ["hologram"]);
        assert_eq!((kind_at(&asked, 1, None), kind_at(&asked, 2, None).as_deref()), (None, Some("hologram")));
        let noted = without(&asked, &["hologram".to_owned()]).unwrap();
        let blocks: Vec<Value> = serde_json::from_slice(&noted.json).unwrap();
        assert_eq!((blocks.len(), blocks[2]["text"].as_str()), (3, Some(BLOCK_LEFT_OUT)));
    }
}
