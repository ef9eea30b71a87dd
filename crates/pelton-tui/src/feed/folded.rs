//! What was only told in short, to be told whole when somebody wants it: thinking, what calls were given and what they brought. It
//! is written below everything else; what stands in the scrollback never changes.

use std::collections::VecDeque;
use std::sync::Arc;

use pelton::history::Entry;
use pelton_serve::progress::result_text;
use ratatui_core::text::{Line, Span};
use serde_json::Value;

use super::{edits, wrapped};
use crate::cells::cut;
use crate::clean;
use crate::theme::{Role, Theme};

/// Calls and thoughts that are kept to be unfolded, the newest.
const KEPT_MAX: usize = 32;
/// Rows of one of them.
const ROWS_MAX: usize = 1_000;

#[derive(Default)]
pub(super) struct Folded {
    kept: VecDeque<Kept>,
    /// Older ones that were not kept.
    left_out: usize,
}

enum Kept {
    Thought(Arc<Entry>),
    Call { doing: String, tool: Arc<str>, input: Value, result: Arc<Entry> },
}

impl Folded {
    pub fn thought(&mut self, entry: &Arc<Entry>) {
        self.keep(Kept::Thought(Arc::clone(entry)));
    }

    pub fn ended(&mut self, doing: &str, tool: &Arc<str>, input: &Value, result: &Arc<Entry>) {
        let (doing, tool) = (doing.to_owned(), Arc::clone(tool));
        self.keep(Kept::Call { doing, tool, input: input.clone(), result: Arc::clone(result) });
    }

    fn keep(&mut self, kept: Kept) {
        self.kept.push_back(kept);
        if self.kept.len() > KEPT_MAX {
            self.kept.pop_front();
            self.left_out += 1;
        }
    }

    /// All of it, once.
    pub fn unfold(&mut self, theme: &Theme, columns: usize) -> Option<Vec<Line<'static>>> {
        let Self { kept, left_out } = std::mem::take(self);
        let mut lines = Vec::new();
        if left_out > 0 {
            let words = format!("({left_out} older ones are in the record: /export writes all of it)");
            lines.push(Line::styled(words, theme.style(Role::Faint)));
        }
        lines.extend(kept.iter().flat_map(|kept| kept.lines(theme, columns)));
        (!lines.is_empty()).then_some(lines)
    }
}

impl Kept {
    fn lines(&self, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
        let (title, mut below) = match self {
            Self::Thought(entry) => {
                let blocks: Value = serde_json::from_slice(&entry.json).unwrap_or_default();
                let thoughts = blocks.as_array().into_iter().flatten();
                let words: Vec<&str> = thoughts.filter_map(|block| block["thinking"].as_str()).collect();
                let words = words.join("\n");
                if words.trim().is_empty() {
                    return Vec::new();
                }
                ("∴ thinking".to_owned(), rows(&clean::words(&words), theme, columns))
            }
            Self::Call { doing, tool, input, result } => {
                let mut below = rows(&clean::text(&given(input)), theme, columns);
                let change = edits::up_to(ROWS_MAX, theme, tool, input, result, columns);
                match change.is_empty() {
                    true => below.extend(rows(&clean::text(&result_text(result)), theme, columns)),
                    false => below = change,
                }
                (cut(&clean::line(doing), columns.saturating_sub(2)), below)
            }
        };
        let more = below.len().saturating_sub(ROWS_MAX);
        if more > 0 {
            below.truncate(ROWS_MAX);
            below.push(row(theme, format!("… {more} more rows")));
        }
        let title = Line::from(vec![
            Span::styled("▾ ", theme.style(Role::Accent)),
            Span::styled(title, theme.style(Role::Strong)),
        ]);
        std::iter::once(title).chain(below).collect()
    }
}

/// What a call was given, field by field: a text of several lines stands as it is.
fn given(input: &Value) -> String {
    let fields = input.as_object().into_iter().flatten();
    let told = fields.map(|(name, value)| match value.as_str() {
        Some(text) if name == "command" => format!("$ {text}"),
        Some(text) => format!("{name}: {text}"),
        None => format!("{name}: {value}"),
    });
    told.collect::<Vec<_>>().join("\n")
}

fn rows(words: &str, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
    let rows = words.lines().flat_map(|line| wrapped(line, columns.saturating_sub(3)));
    rows.map(|words| row(theme, words)).collect()
}

fn row(theme: &Theme, words: String) -> Line<'static> {
    Line::from(vec![Span::styled("│  ", theme.style(Role::Faint)), Span::raw(words)])
}
