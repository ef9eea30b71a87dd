//! The conversation as lines: what happens in the engine becomes finished lines, each told once, and the live ones below
//! them, which change. It looks at events and at the clock it is given, and at nothing else.

mod agents; // sub-agents, as branches
mod answer; // what the model says, as it comes
mod calls; // what the tools do, as a tree
mod edits; // what was done to files
mod folded; // what was only told in short
mod notices; // everything else, a line each
mod todos; // what is to be done

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pelton::event::{AgentEvent, ContextEvent, Display, Event, LoopKind};
use pelton::history::{Entry, Kind, Piece};
use pelton::tools::Report;
use pelton_model::{Delta, DeltaKind};
use ratatui_core::text::{Line, Span};
use serde_json::Value;

use crate::clean;
use crate::limits::PAST_ENTRIES_MAX;
use crate::theme::{Role, Theme};

use agents::Agents;
use answer::Answer;
use calls::Calls;
use folded::Folded;
use notices::Notices;
use todos::Todos;

pub(crate) use calls::seconds_whole as elapsed;
pub(crate) use notices::changed;

/// Live lines of an answer that is not complete yet, at most.
const ANSWER_ROWS_MAX: usize = 8;

/// Tells a conversation.
pub struct Feed {
    theme: Theme,
    columns: usize,
    answer: Answer,
    calls: Calls,
    agents: Agents,
    notices: Notices,
    todos: Todos,
    folded: Folded,
    /// There is no live area: what it would show is told where it matters.
    pub is_plain: bool,
    /// A line of the tree was told in this submission, so that it wants an end.
    has_tree: bool,
    /// Words of this answer were shown as they came.
    has_streamed: bool,
    /// Hooks say what is shown of this answer.
    hooks_say: bool,
    /// The newest line is one of the tree or a notice: words that follow stand apart from it.
    ends_close: bool,
}

impl Feed {
    /// For lines of so many cells.
    pub fn new(theme: Theme, columns: usize) -> Self {
        Self {
            theme,
            columns,
            answer: Answer::new(theme, columns),
            calls: Calls::new(theme),
            agents: Agents::default(),
            notices: Notices::new(theme),
            todos: Todos::default(),
            folded: Folded::default(),
            is_plain: false,
            has_tree: false,
            has_streamed: false,
            hooks_say: false,
            ends_close: false,
        }
    }

    /// The session works in this directory.
    pub fn works_in(&mut self, cwd: &Path) {
        cwd.clone_into(&mut self.calls.cwd);
    }

    /// Lines have so many cells from now on.
    pub fn resize(&mut self, columns: usize) {
        self.columns = columns;
        self.answer.resize(columns);
    }

    /// Everything looks like this from now on; what was told stays as it is.
    pub fn dress(&mut self, theme: Theme) {
        self.theme = theme;
        self.answer.dress(theme);
        self.calls.dress(theme);
        self.notices.dress(theme);
    }

    /// The user's own words.
    pub fn prompt(&mut self, words: &str) -> Vec<Line<'static>> {
        let mut told = self.answer.finish();
        self.ends_close = false;
        told.push(Line::default());
        told.extend(prompt_lines(&self.theme, words, self.columns));
        told.push(Line::default());
        told
    }

    /// The finished lines that an event adds.
    pub fn of(&mut self, event: &Event, now: Duration) -> Vec<Line<'static>> {
        let mut told = Vec::new();
        if begins_something(event) {
            let settled = self.notices.settle(self.columns);
            self.ends_close |= !settled.is_empty();
            told.extend(settled);
        }
        match event {
            Event::Started(_) => (self.has_streamed, self.hooks_say) = (false, false),
            Event::Display(Display::Asked) => self.hooks_say = true,
            Event::Display(Display::Words { shown, .. }) => told.extend(self.words(shown)),
            Event::Display(Display::Break) => told.extend(self.answer.finish()),
            // What was said is not what is shown.
            Event::Delta(Delta { kind: DeltaKind::Text(_), .. }) if self.hooks_say => {}
            Event::Delta(delta) => match &delta.kind {
                DeltaKind::BlockStart(opened) => {
                    told.extend(self.thought(now));
                    if !self.hooks_say {
                        told.extend(self.answer.finish());
                    }
                    self.answer.begin(&opened.block_type, now);
                }
                DeltaKind::Text(text) => {
                    self.has_streamed = true;
                    told.extend(self.words(text));
                }
                DeltaKind::Thinking { text, .. } => self.answer.thinks(text, now),
                _ => {}
            },
            Event::Message(entry) => told.extend(self.message(entry, now)),
            Event::ToolStarted(started) => {
                told.extend(self.thought(now));
                told.extend(self.answer.finish());
                self.todos.heard(&started.tool, &started.input);
                self.calls.begin(started, now);
            }
            Event::ToolProgress { call, report: Report::OutputLine(line) } => self.calls.output(call, line),
            Event::Agent(AgentEvent { agent, news, .. }) => {
                if let Some(words) = self.agents.heard(agent, news, &self.calls.cwd, now) {
                    told.extend(self.answer.finish());
                    told.extend(self.notices.notes(&words, self.columns));
                    self.ends_close = true;
                }
            }
            Event::Retry(notice) => {
                if notice.withdrawn {
                    told.extend(self.answer.withdraw());
                    self.has_streamed = false;
                }
                self.notices.retry(notice, now);
                if self.is_plain {
                    told.extend(self.notices.retry_told(self.columns));
                }
            }
            Event::Waiting { left } => self.notices.waits(*left, now),
            Event::Stalled { silent_for } => self.notices.stalled(*silent_for, now),
            Event::Tombstone(entries) if !entries.is_empty() => {
                told.extend(self.answer.withdraw());
                told.push(self.notices.note("what was said above does not count any more"));
            }
            Event::Context(ContextEvent::Compacting { .. }) => self.notices.compacting(now),
            // That money was set aside for a call is no news; that there is none is.
            Event::Loop(told_of)
                if told_of.kind == LoopKind::Budget && !told_of.reason.contains("set aside $") =>
            {
                self.notices.money(&told_of.reason);
            }
            Event::Requesting => told.extend(self.notices.money_told(self.columns)),
            Event::Result(outcome) => {
                told.extend(self.answer.finish());
                told.extend(self.calls.abandon(self.columns));
                self.agents.clear();
                told.extend(self.notices.settle(self.columns));
                let has_tree = std::mem::take(&mut self.has_tree);
                let end = self.notices.result(outcome, has_tree, self.columns);
                // What is said without a prompt stands apart from it, too.
                self.ends_close |= !end.is_empty();
                told.extend(end);
            }
            other => {
                let lines = self.notices.of(other, self.columns);
                if !lines.is_empty() {
                    told.extend(self.answer.finish());
                    told.extend(lines);
                    self.ends_close = true;
                }
            }
        }
        told
    }

    /// What is not finished yet.
    pub fn live(&self, now: Duration, rows_max: usize) -> Vec<Line<'static>> {
        let mut notices = self.notices.live(now);
        notices.truncate(rows_max);
        // Why nothing happens is seen in the lowest window.
        let rows_max = rows_max - notices.len();
        let mut lines = self.answer.live(now);
        let too_many = lines.len().saturating_sub(ANSWER_ROWS_MAX.min(rows_max));
        lines.drain(..too_many);
        lines.extend(self.calls.live(&self.agents, now, rows_max.saturating_sub(lines.len()), self.columns));
        lines.append(&mut notices);
        lines
    }

    /// A command line of the user's own runs: what it says is live until it has ended.
    pub fn own_begins(&mut self, input: &Value, now: Duration) {
        self.calls.begin_own(input, now);
    }

    pub fn own_says(&mut self, line: &str) {
        self.calls.output(calls::OWN, line);
    }

    pub fn own_ended(&mut self) {
        self.calls.forget(calls::OWN);
    }

    /// A call that somebody was asked about runs from now on: how long they took is not its time.
    pub fn runs_from(&mut self, call: &str, now: Duration) {
        self.calls.runs_from(call, now);
    }

    /// Calls that take long are told of when they begin, where nothing is live.
    pub fn announce(&mut self, now: Duration) -> Vec<Line<'static>> {
        self.calls.announce(now, self.columns)
    }

    /// When the next of them is.
    pub fn announces_at(&self) -> Option<Duration> {
        self.calls.announces_at()
    }

    /// The user lets nothing come of a call, in a word, and says why. Whether it is one that is told of.
    pub fn ends_as(&mut self, call: &str, word: &'static str, words: &str) -> bool {
        self.calls.ends_as(call, word, words)
    }

    /// Lines to be told below a call when it has ended.
    pub fn below(&mut self, call: &str, lines: Vec<String>) {
        self.calls.note(call, lines);
    }

    /// Another submission begins: what was folded before stays so.
    pub fn fold(&mut self) {
        self.folded = Folded::default();
    }

    /// What was told in short since, whole; `None` if there is nothing more to tell.
    pub fn unfold(&mut self) -> Option<Vec<Line<'static>>> {
        let lines = self.folded.unfold(&self.theme, self.columns)?;
        self.ends_close = true;
        Some(lines)
    }

    /// What is to be done.
    pub fn todos(&self) -> Vec<Line<'static>> {
        self.todos.lines(&self.theme)
    }

    /// The end of a past conversation, as it would have been told.
    pub fn past(&mut self, entries: &[Arc<Entry>]) -> Vec<Line<'static>> {
        let (before, entries) = entries.split_at(past_from(entries));
        let mut told = Vec::new();
        if !before.is_empty() {
            told.push(self.notices.note(&format!("{} earlier messages are not shown", before.len())));
        }
        for entry in before {
            if let Kind::Assistant { piece: Piece::Call { name, .. }, .. } = &entry.kind
                && Todos::is_about(name)
            {
                let content: Value = serde_json::from_slice(&entry.json).unwrap_or_default();
                self.todos.heard(name, &content[0]["input"]);
            }
        }
        for entry in entries {
            match &entry.kind {
                Kind::Prompt { meta: false } => {
                    let words = typed(entry);
                    if !words.is_empty() {
                        told.extend(self.prompt(&words));
                    }
                }
                Kind::Prompt { .. } => {}
                Kind::ToolResult { .. } | Kind::Assistant { .. } => {
                    if let Kind::Assistant { piece: Piece::Call { id, name }, .. } = &entry.kind {
                        let content: Value = serde_json::from_slice(&entry.json).unwrap_or_default();
                        self.todos.heard(name, &content[0]["input"]);
                        self.calls.begin_known(id, name, &content[0]["input"]);
                    }
                    told.extend(self.message(entry, Duration::ZERO));
                }
            }
        }
        told.extend(self.calls.abandon(self.columns));
        self.has_tree = false;
        told
    }

    /// It does not think any more.
    fn thought(&mut self, now: Duration) -> Vec<Line<'static>> {
        let told = self.answer.thought(now);
        self.ends_close |= !told.is_empty();
        told
    }

    /// Words of the model's.
    fn words(&mut self, text: &str) -> Vec<Line<'static>> {
        let mut told = Vec::new();
        if std::mem::take(&mut self.ends_close) {
            told.push(Line::default());
        }
        told.extend(self.answer.text(text));
        told
    }

    fn message(&mut self, entry: &Arc<Entry>, now: Duration) -> Vec<Line<'static>> {
        match &entry.kind {
            Kind::Assistant { piece: Piece::Text, .. } => {
                if self.hooks_say {
                    return Vec::new();
                }
                let mut told = Vec::new();
                if !std::mem::take(&mut self.has_streamed) {
                    for text in texts(entry) {
                        told.extend(self.words(&text));
                    }
                }
                told.extend(self.answer.finish());
                told
            }
            Kind::Assistant { piece, .. } => {
                if *piece == Piece::Thinking {
                    self.folded.thought(entry);
                }
                self.thought(now)
            }
            Kind::ToolResult { call, is_error } => {
                if let Some((doing, tool, input)) = self.calls.known(call) {
                    self.folded.ended(doing, tool, input, entry);
                }
                let mut told = self.answer.finish();
                let is_list = !*is_error && self.calls.tool(call).is_some_and(|tool| &**tool == "TodoWrite");
                let mut lines = self.calls.end(call, *is_error, entry, &mut self.agents, now, self.columns);
                if is_list {
                    lines.extend(self.todos.below(&self.theme, self.columns));
                }
                self.has_tree |= !lines.is_empty();
                self.ends_close |= !lines.is_empty();
                told.extend(lines);
                told
            }
            Kind::Prompt { .. } => Vec::new(),
        }
    }
}

/// The user's words as they stand in the conversation.
fn prompt_lines(theme: &Theme, words: &str, columns: usize) -> Vec<Line<'static>> {
    let style = theme.style(Role::Prompt);
    let words = clean::text(words);
    let mut lines = Vec::new();
    for (at, line) in words.lines().enumerate() {
        let mark = if at == 0 { "> " } else { "  " };
        for (part, piece) in wrapped(line, columns.saturating_sub(2)).into_iter().enumerate() {
            let mark = if part == 0 { mark } else { "  " };
            lines.push(Line::from(vec![
                Span::styled(mark, theme.style(Role::Accent)),
                Span::styled(piece, style),
            ]));
        }
    }
    lines
}

/// A line in rows of so many cells, broken between words where that is possible.
pub(crate) fn wrapped(line: &str, columns: usize) -> Vec<String> {
    use unicode_segmentation::UnicodeSegmentation as _;
    use unicode_width::UnicodeWidthStr as _;
    let columns = columns.max(8);
    // A run without spaces stays together, unless it is longer than a row.
    let mut pieces: Vec<&str> = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c: char| c.is_whitespace() != first.is_whitespace()).unwrap_or(rest.len());
        let (run, behind) = rest.split_at(end);
        match run.width() <= columns {
            true => pieces.push(run),
            false => pieces.extend(run.split_word_bounds()),
        }
        rest = behind;
    }
    let (mut rows, mut row, mut width) = (Vec::new(), String::new(), 0);
    for word in pieces {
        let wide = word.width();
        if width + wide > columns && width > 0 {
            // Nobody sees what is empty before a break, and whoever copies does not want it.
            row.truncate(row.trim_end().len());
            rows.push(std::mem::take(&mut row));
            width = 0;
            if word.trim().is_empty() {
                continue;
            }
        }
        if wide <= columns {
            row.push_str(word);
            width += wide;
            continue;
        }
        for cluster in word.graphemes(true) {
            let wide = cluster.width();
            if width + wide > columns {
                rows.push(std::mem::take(&mut row));
                width = 0;
            }
            row.push_str(cluster);
            width += wide;
        }
    }
    if !row.is_empty() || rows.is_empty() {
        rows.push(row);
    }
    rows
}

/// From which entry on a past conversation is told: from a prompt, if there is one near.
fn past_from(entries: &[Arc<Entry>]) -> usize {
    let from = entries.len().saturating_sub(PAST_ENTRIES_MAX);
    if from == 0 {
        return 0;
    }
    let is_prompt = |entry: &Arc<Entry>| matches!(entry.kind, Kind::Prompt { meta: false });
    entries[from..].iter().position(is_prompt).map_or(from, |at| from + at)
}

/// What somebody typed that became this entry. Nothing, if it was the engine that wrote it.
pub(crate) fn typed(entry: &Entry) -> String {
    as_typed(&texts(entry).join("\n"))
}

/// The same of what a record has.
pub(crate) fn as_typed(words: &str) -> String {
    /// What words begin with that nobody has typed.
    const OURS: [&str; 6] = [
        "<bash-",
        "<command-",
        "<environment>",
        "<local-command-",
        "<system-reminder>",
        "<task-notification>",
    ];
    let words = words.trim();
    match words.strip_prefix("<bash-input>").and_then(|rest| rest.split_once("</bash-input>")) {
        Some((command, _)) => format!("!{command}"),
        None if OURS.iter().any(|begin| words.starts_with(begin)) => String::new(),
        None => words.to_owned(),
    }
}

/// The texts of an entry's content.
pub(crate) fn texts(entry: &Entry) -> Vec<String> {
    let blocks: Value = serde_json::from_slice(&entry.json).unwrap_or_default();
    let blocks = blocks.as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str().map(str::to_owned)).collect()
}

/// Whether waiting is over with it.
fn begins_something(event: &Event) -> bool {
    matches!(
        event,
        Event::Requesting
            | Event::Started(_)
            | Event::Delta(_)
            | Event::Message(_)
            | Event::ModelFallback { .. }
            | Event::Context(_)
            | Event::Retry(_)
    )
}
