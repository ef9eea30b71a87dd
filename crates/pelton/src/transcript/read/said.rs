//! What somebody said in a line: its message, block by block, as entries of a conversation.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use pelton_wire::usage::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::Line;
use super::line::known;
use crate::history::{Entry, Kind, Origin, Piece, names};
use crate::transcript::block::{Block, plain_block, sendable_result};

/// Lines above this size are not copied: what they hold is shared with what was read.
pub(super) const LONG_LINE_BYTES: usize = 1024 * 1024;

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(default, deserialize_with = "known")]
    id: Option<String>,
    #[serde(default, deserialize_with = "known")]
    model: Option<String>,
    #[serde(default, deserialize_with = "known")]
    usage: Option<Usage>,
    #[serde(borrow)]
    content: &'a RawValue,
}

/// What a line was read from, if its parts may be shared.
pub(super) struct Source<'a> {
    pub line: Option<&'a Bytes>,
    /// Nothing speaks against its words being those that were written.
    pub is_as_written: bool,
}

impl Source<'_> {
    fn bytes_of(&self, part: &str) -> Bytes {
        match self.line {
            Some(line) if part.len() > LONG_LINE_BYTES => line.slice_ref(part.as_bytes()),
            _ => Bytes::copy_from_slice(part.as_bytes()),
        }
    }

    /// A content array of these blocks, which stand in this one.
    fn array_of(&self, content: &str, all: usize, blocks: &[&str]) -> Bytes {
        if self.line.is_some()
            && content.starts_with('[')
            && blocks.len() == all
            && content.len() > LONG_LINE_BYTES
        {
            return self.bytes_of(content);
        }
        let bytes: usize = blocks.iter().map(|block| block.len() + 1).sum();
        let mut array = Vec::with_capacity(bytes + 1);
        for block in blocks {
            array.push(if array.is_empty() { b'[' } else { b',' });
            array.extend_from_slice(block.as_bytes());
        }
        array.push(b']');
        Bytes::from(array)
    }
}

/// Whether a line says that somebody said something, and nothing can be made of it.
pub(in crate::transcript) fn is_no_message(text: &str) -> bool {
    let Ok(line) = serde_json::from_str::<Line<'_>>(text) else { return false };
    let is_said = matches!(line.r#type.as_deref(), Some("user" | "assistant"));
    is_said
        && line.uuid.is_none_or(|id| {
            entries(&line, id, &Source { line: None, is_as_written: true }, &mut 0).is_none()
        })
}

/// The entries of one line; `None` if it is not what it says it is. Counts blocks that cannot be sent as
/// they are.
pub(super) fn entries(
    line: &Line<'_>,
    id: Uuid,
    source: &Source<'_>,
    damaged: &mut usize,
) -> Option<Vec<Arc<Entry>>> {
    let assistant = match line.r#type.as_deref() {
        Some("user") => false,
        Some("assistant") => true,
        // Boundaries, attachments and kinds of a later version: links of the chain without words for the model.
        _ => return Some(Vec::new()),
    };
    if line.is_api_error_message {
        return Some(Vec::new());
    }
    let message: Message<'_> = serde_json::from_str(line.message?.get()).ok()?;
    let model = message.model.unwrap_or_default();
    if assistant && model == crate::SYNTHETIC_MODEL {
        return Some(Vec::new());
    }
    let at = line.timestamp.as_deref().and_then(|text| text.parse().ok()).unwrap_or(Timestamp::UNIX_EPOCH);
    let origin = Arc::new(Origin {
        message_id: message.id.unwrap_or_default(),
        model,
        usage: message.usage.unwrap_or_default(),
        request_id: line.request_id.clone(),
    });
    let mut made = Vec::new();
    let mut words: Vec<&str> = Vec::new();
    let mut unreadable = false;
    let quoted;
    let blocks: Vec<&str> = if message.content.get().starts_with('"') {
        quoted = format!(r#"{{"type":"text","text":{}}}"#, message.content.get());
        vec![quoted.as_str()]
    } else {
        let blocks: Vec<&RawValue> = serde_json::from_str(message.content.get()).ok()?;
        blocks.into_iter().map(RawValue::get).collect()
    };
    let all = blocks.len();
    let plain: Vec<Cow<'_, str>>;
    let blocks = if source.is_as_written {
        blocks
    } else {
        plain = blocks.iter().filter_map(|block| plain_block(block)).collect();
        *damaged += all - plain.len();
        plain.iter().map(Cow::as_ref).collect()
    };
    let entry = |kind: Kind, blocks: &[&str]| {
        Entry::new(id, at, kind, source.array_of(message.content.get(), all, blocks)).ok()
    };
    // Of a block that makes or answers a call.
    let of_call = |kind: Kind, raw: &str, renamed: Option<String>| match renamed {
        Some(renamed) => Entry::new(id, at, kind, Bytes::from(format!("[{renamed}]"))).ok(),
        None => entry(kind, &[raw]),
    };
    for raw in blocks {
        let Ok(block) = serde_json::from_str::<Block<'_>>(raw) else {
            (*damaged, unreadable) = (*damaged + 1, true);
            continue;
        };
        if block.is_blank() {
            continue;
        }
        if !block.can_be_sent(assistant) {
            *damaged += 1;
            continue;
        }
        let made_here = match (assistant, block.r#type.as_str()) {
            (true, kind) => {
                let mut renamed = None;
                let piece = match kind {
                    "text" => Piece::Text,
                    "thinking" | "redacted_thinking" => Piece::Thinking,
                    "tool_use" => {
                        let (Some(id), Some(name)) = (block.id, block.name) else {
                            (*damaged, unreadable) = (*damaged + 1, true);
                            continue;
                        };
                        let (plain_id, plain_name) = (names::plain_id(&id), names::plain_name(&name));
                        if plain_id != id || plain_name != name {
                            renamed = names::renamed(raw, &[("id", &plain_id), ("name", &plain_name)]);
                        }
                        if !block.input.is_some_and(|input| input.get().starts_with('{')) {
                            renamed = names::with_input(renamed.as_deref().unwrap_or(raw));
                            *damaged += 1;
                        }
                        Piece::Call { id: plain_id.into(), name: plain_name.into() }
                    }
                    _ => Piece::Other,
                };
                of_call(Kind::Assistant { origin: Arc::clone(&origin), piece }, raw, renamed)?
            }
            (false, "tool_result") => {
                let Some(call) = block.tool_use_id else {
                    (*damaged, unreadable) = (*damaged + 1, true);
                    continue;
                };
                let plain = names::plain_id(&call);
                let sendable = sendable_result(raw)?;
                *damaged += usize::from(matches!(sendable, Cow::Owned(_)));
                let renamed = match plain == call {
                    true if matches!(sendable, Cow::Borrowed(_)) => None,
                    true => Some(sendable.into_owned()),
                    false => names::renamed(&sendable, &[("tool_use_id", &plain)]),
                };
                let kind =
                    Kind::ToolResult { call: plain.into(), is_error: block.is_error.unwrap_or_default() };
                let detail = line.tool_use_result.map(|detail| source.bytes_of(detail.get()));
                of_call(kind, raw, renamed)?.with_detail(detail)
            }
            (false, _) => {
                words.push(raw);
                continue;
            }
        };
        made.push(Arc::new(made_here));
    }
    if !words.is_empty() {
        // Nobody asked for a summary in these words, whoever wrote it.
        let meta = line.is_meta || line.is_compact_summary;
        let about = line.attachment.map(|facts| Bytes::copy_from_slice(facts.get().as_bytes()));
        made.push(Arc::new(entry(Kind::Prompt { meta }, &words)?.with_detail(about)));
    }
    // What has nothing in it but what nobody can read is no message.
    (!made.is_empty() || !unreadable).then_some(made)
}
