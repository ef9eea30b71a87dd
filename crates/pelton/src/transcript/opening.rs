//! A conversation whose first words cannot be read any more: something has to stand there, for an answer to nothing cannot be
//! sent, and all that was done for a prompt would go with the one line that held it.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use uuid::Uuid;

use crate::history::{Entry, Kind};

const LOST: &str = "[The beginning of this conversation cannot be read: its record is damaged. What follows is what is left of it.]";

/// What stands in front of what was said, if that begins with an answer. It is the same each time the file is read.
pub(super) fn stand_in<'a>(mut said: impl Iterator<Item = &'a Arc<Entry>>) -> Option<Arc<Entry>> {
    let first = said.find(|entry| !matches!(entry.kind, Kind::ToolResult { .. }))?;
    if !matches!(first.kind, Kind::Assistant { .. }) {
        return None;
    }
    let id = Uuid::from_u128(!first.id.as_u128());
    let content = Bytes::from(json!([{"type": "text", "text": LOST}]).to_string());
    Entry::new(id, first.at, Kind::Prompt { meta: true }, content).ok().map(Arc::new)
}
