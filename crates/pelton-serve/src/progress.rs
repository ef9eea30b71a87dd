//! What the tools are doing, as a tree of lines: `├─ Reading src/main.rs · 120 lines`. Lines are written once and
//! never redrawn.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pelton::event::{Event, ToolStarted};
use pelton::history::{Entry, Kind};
use serde_json::Value;

use crate::plain::plain;

/// Characters of a command or path shown on one line.
const SUBJECT_CHARS_MAX: usize = 100;

pub(crate) struct Progress {
    colour: bool,
    /// What each running call is doing.
    running: HashMap<Arc<str>, String>,
}

impl Progress {
    pub fn new(colour: bool) -> Self {
        Self { colour, running: HashMap::new() }
    }

    /// The lines an event adds.
    pub fn of(&mut self, event: &Event) -> String {
        match event {
            Event::ToolStarted(started) => {
                let doing = doing(started);
                // Commands may take long: they are announced. Everything else is told when it is done.
                let line =
                    if &*started.tool == "Bash" { self.line("├─ ", &doing, "") } else { String::new() };
                self.running.insert(Arc::clone(&started.call), doing);
                line
            }
            Event::Message(entry) => match &entry.kind {
                Kind::ToolResult { call, is_error } => self.ended(call, *is_error, entry),
                _ => String::new(),
            },
            _ => String::new(),
        }
    }

    fn ended(&mut self, call: &Arc<str>, is_error: bool, entry: &Entry) -> String {
        let doing = self.running.remove(call).unwrap_or_else(|| "Call".to_owned());
        let told = if is_error { format!("failed: {}", first_line(entry)) } else { measure(entry) };
        if doing.starts_with("Running ") {
            return self.line("│  ", "", &told);
        }
        self.line("├─ ", &doing, &told)
    }

    fn line(&self, branch: &str, doing: &str, told: &str) -> String {
        let dot = if doing.is_empty() || told.is_empty() { "" } else { " · " };
        if self.colour {
            format!("\u{1b}[2m{branch}\u{1b}[0m{doing}\u{1b}[2m{dot}{told}\u{1b}[0m\n")
        } else {
            format!("{branch}{doing}{dot}{told}\n")
        }
    }
}

/// A duration as people say it.
pub(crate) fn seconds(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else if duration < Duration::from_secs(10) {
        format!("{:.1} s", duration.as_secs_f64())
    } else {
        format!("{} s", duration.as_secs())
    }
}

fn doing(started: &ToolStarted) -> String {
    let field = |name: &str| started.input.get(name).and_then(Value::as_str).map(subject).unwrap_or_default();
    match &*started.tool {
        "Read" => format!("Reading {}", field("file_path")),
        "Write" => format!("Writing {}", field("file_path")),
        "Edit" => format!("Editing {}", field("file_path")),
        "Bash" => format!("Running {}", field("command")),
        "Glob" => format!("Finding {}", field("pattern")),
        "Grep" => format!("Searching {}", field("pattern")),
        other => subject(other),
    }
}

fn subject(text: &str) -> String {
    let line = plain(text).lines().next().unwrap_or_default().to_owned();
    if line.chars().count() > SUBJECT_CHARS_MAX || text.lines().nth(1).is_some() {
        let cut: String = line.chars().take(SUBJECT_CHARS_MAX).collect();
        return format!("{cut}…");
    }
    line
}

fn result_text(entry: &Entry) -> String {
    let blocks: Value = serde_json::from_slice(&entry.json).unwrap_or_default();
    let texts =
        blocks[0]["content"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

fn first_line(entry: &Entry) -> String {
    subject(&result_text(entry).replace("<tool_use_error>", "").replace("</tool_use_error>", ""))
}

fn measure(entry: &Entry) -> String {
    match result_text(entry).lines().count() {
        1 => "1 line".to_owned(),
        lines => format!("{lines} lines"),
    }
}
