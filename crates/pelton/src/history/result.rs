//! Looking into the result of a call, and saying it in other words.

use bytes::Bytes;
use serde_json::{Value, json};

use super::entry::{Entry, Kind};

/// The words of a result, without what is not text; `None` if it is no result.
pub fn words(entry: &Entry) -> Option<String> {
    let block = block(entry)?;
    Some(match block.get("content")? {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => return None,
    })
}

/// The same result with other words; what is not text stays, behind them.
pub fn with_words(entry: &Entry, words: &str) -> Option<Entry> {
    let mut block = block(entry)?;
    let content = block.get_mut("content")?;
    let mut blocks = vec![json!({"type": "text", "text": words})];
    if let Value::Array(old) = content.take() {
        blocks.extend(old.into_iter().filter(|block| block.get("text").is_none()));
    }
    *content = Value::Array(blocks);
    let json = Bytes::from(serde_json::to_vec(&[block]).ok()?);
    Entry::new(entry.id, entry.at, entry.kind.clone(), json).ok()
}

fn block(entry: &Entry) -> Option<Value> {
    let Kind::ToolResult { .. } = entry.kind else { return None };
    serde_json::from_slice::<Vec<Value>>(&entry.json).ok()?.into_iter().next()
}
