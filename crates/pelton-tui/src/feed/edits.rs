//! What was done to files, as diffs below the calls that did it.

use pelton::history::Entry;
use ratatui_core::text::{Line, Span};
use serde_json::Value;

use crate::diff::{self, Hunk, Layout};
use crate::theme::{Role, Theme};

/// Rows of a diff below a call that has ended; the file itself has the rest.
const ROWS_MAX: usize = 40;

/// The change a call made, if it was an edit; as much of it as is shown unasked.
pub(super) fn of_result(
    theme: &Theme,
    tool: &str,
    input: &Value,
    entry: &Entry,
    columns: usize,
) -> Vec<Line<'static>> {
    up_to(ROWS_MAX, theme, tool, input, entry, columns)
}

/// The same in so many rows.
pub(super) fn up_to(
    rows_max: usize,
    theme: &Theme,
    tool: &str,
    input: &Value,
    entry: &Entry,
    columns: usize,
) -> Vec<Line<'static>> {
    if !matches!(tool, "Edit" | "MultiEdit" | "Write") {
        return Vec::new();
    }
    let detail = entry.detail.as_ref().and_then(|json| serde_json::from_slice::<Value>(json).ok());
    let patch = detail.as_ref().and_then(|detail| detail["structuredPatch"].as_array());
    let hunks = match patch.filter(|patch| !patch.is_empty()) {
        Some(patch) => patch.iter().map(hunk).collect(),
        // A file that is new is all new; one that stayed as it was has nothing to show.
        None if detail.as_ref().is_some_and(|detail| detail["type"] == "update") => return Vec::new(),
        None => diff::hunks("", input["content"].as_str().unwrap_or_default()),
    };
    let layout = Layout { width: columns.saturating_sub(3), theme: *theme, rows_max };
    let branch = |mut line: Line<'static>| {
        line.spans.insert(0, Span::styled("│  ", theme.style(Role::Faint)));
        line
    };
    diff::lines(&hunks, &layout).into_iter().map(branch).collect()
}

fn hunk(hunk: &Value) -> Hunk {
    let start = |name: &str| hunk[name].as_u64().and_then(|start| usize::try_from(start).ok()).unwrap_or(1);
    let lines = hunk["lines"].as_array().into_iter().flatten().filter_map(Value::as_str);
    Hunk::of_patch(start("oldStart"), start("newStart"), lines)
}
