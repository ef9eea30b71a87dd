//! What is to be done, as the model's calls tell it.

use ratatui_core::text::{Line, Span};
use serde_json::Value;

use crate::cells::cut_line;
use crate::clean;
use crate::theme::{Role, Theme};

/// Rows of the list below a call that changes it.
const ROWS_BELOW_MAX: usize = 12;

#[derive(Default)]
pub(super) struct Todos(Vec<Todo>);

struct Todo {
    words: String,
    status: String,
}

impl Todos {
    /// Whether calls of a tool change what is to be done.
    pub fn is_about(tool: &str) -> bool {
        matches!(tool, "TodoWrite" | "TaskCreate" | "TaskUpdate")
    }

    /// A call of a tool.
    pub fn heard(&mut self, tool: &str, input: &Value) {
        let word = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
        match tool {
            "TodoWrite" => {
                let todos = input["todos"].as_array().into_iter().flatten();
                let todo = |todo: &Value| Todo { words: word(todo, "content"), status: word(todo, "status") };
                self.0 = todos.map(todo).collect();
            }
            "TaskCreate" => {
                self.0.push(Todo { words: word(input, "subject"), status: "pending".to_owned() });
            }
            "TaskUpdate" => {
                // They are counted from 1.
                let at = input["taskId"].as_str().and_then(|id| id.parse::<usize>().ok()?.checked_sub(1));
                if let Some(todo) = at.and_then(|at| self.0.get_mut(at)) {
                    if let Some(status) = input["status"].as_str() {
                        todo.status = status.to_owned();
                    }
                    if let Some(subject) = input["subject"].as_str() {
                        todo.words = subject.to_owned();
                    }
                }
            }
            _ => {}
        }
    }

    pub fn lines(&self, theme: &Theme) -> Vec<Line<'static>> {
        let lines: Vec<Line<'static>> = self.0.iter().filter_map(|todo| todo.line(theme)).collect();
        match lines.is_empty() {
            true => vec![Line::styled("nothing is on the list", theme.style(Role::Faint))],
            false => lines,
        }
    }

    /// The same below the call that changed it.
    pub fn below(&self, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
        let faint = theme.style(Role::Faint);
        let mut lines: Vec<Line<'static>> = self.0.iter().filter_map(|todo| todo.line(theme)).collect();
        let more = lines.len().saturating_sub(ROWS_BELOW_MAX);
        lines.truncate(ROWS_BELOW_MAX);
        if more > 0 {
            lines.push(Line::styled(format!("and {more} more (/todos)"), faint));
        }
        for line in &mut lines {
            line.spans.insert(0, Span::styled("│  ", faint));
        }
        lines.into_iter().map(|line| cut_line(line, columns)).collect()
    }
}

impl Todo {
    fn line(&self, theme: &Theme) -> Option<Line<'static>> {
        let (mark, role) = match self.status.as_str() {
            "completed" => ("[x] ", Role::Faint),
            "in_progress" => ("[>] ", Role::Accent),
            "deleted" => return None,
            _ => ("[ ] ", Role::Text),
        };
        let style = theme.style(role);
        Some(Line::from(vec![Span::styled(mark, style), Span::styled(clean::line(&self.words), style)]))
    }
}
