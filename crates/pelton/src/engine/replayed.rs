//! What the calls of a resumed session did to what the session keeps: it is done again, in their order.

use std::collections::HashMap;
use std::sync::Arc;

use super::late::call_of;
use crate::history::{History, Kind, Piece};
use crate::tools::builtin::tasks::{self, Tasks};
use crate::tools::tool_search;

/// The tasks as the conversation left them.
pub(super) fn tasks(history: &History) -> Tasks {
    let replayed = Tasks::default();
    let mut open = HashMap::new();
    for entry in history.entries() {
        match &entry.kind {
            Kind::Assistant { piece: Piece::Call { id, name }, .. }
                if tasks::NAMES.contains(&&**name) || &**name == tool_search::CALL =>
            {
                open.extend(call_of(entry).map(|call| (Arc::clone(id), call)));
            }
            Kind::ToolResult { call, is_error: false } => {
                if let Some(call) = open.remove(call)
                    && let Ok(input) = &call.input
                {
                    replayed.replay(&call.tool, input);
                }
            }
            _ => {}
        }
    }
    replayed
}
