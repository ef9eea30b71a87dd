//! What the tools do, as a tree. A call that runs is live, with the tail of what it says; one that has ended is a line.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pelton::event::ToolStarted;
use pelton::history::Entry;
use pelton_serve::progress::{Took, brought, doing, measure, result_text, seconds};
use ratatui_core::text::{Line, Span};
use serde_json::Value;

use super::agents::Agents;
use super::{edits, wrapped};
use crate::cells::{cut, width};
use crate::clean;
use crate::theme::{Role, Theme};

/// Rows of output shown below a command that runs.
const TAIL_ROWS: usize = 5;
/// Between what a call does and what came of it.
const DOT: &str = " · ";
/// Cells of what a call does that are shown in the narrowest window.
const DOING_CELLS_MIN: usize = 8;
/// Rows of the reason why a call failed.
const WHY_ROWS_MAX: usize = 4;
/// A call that takes longer says how long.
const TELLS_TIME_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Calls {
    theme: Theme,
    /// Where the session works: files below are named from there.
    pub cwd: PathBuf,
    /// In the order in which they began. The engine bounds how many run.
    running: Vec<Running>,
    took: Took,
}

struct Running {
    call: Arc<str>,
    tool: Arc<str>,
    input: Value,
    doing: String,
    since: Duration,
    tail: VecDeque<String>,
    /// What is told below it when it has ended.
    below: Vec<String>,
    /// It was told that it runs.
    is_announced: bool,
    /// What came of it, if the user let nothing come of it.
    end: Option<&'static str>,
}

/// The name of a command line of the user's own: calls of models have others.
pub(super) const OWN: &str = "own";

impl Calls {
    pub fn new(theme: Theme) -> Self {
        Self { theme, cwd: PathBuf::new(), running: Vec::new(), took: Took::default() }
    }

    pub fn dress(&mut self, theme: Theme) {
        self.theme = theme;
    }

    pub fn begin(&mut self, started: &ToolStarted, now: Duration) {
        self.put(&started.call, &started.tool, &started.input, now);
    }

    /// A call of a past conversation.
    pub fn begin_known(&mut self, call: &Arc<str>, tool: &Arc<str>, input: &Value) {
        self.put(call, tool, input, Duration::ZERO);
    }

    fn put(&mut self, call: &Arc<str>, tool: &Arc<str>, input: &Value, now: Duration) {
        self.running.push(Running {
            call: Arc::clone(call),
            tool: Arc::clone(tool),
            doing: doing(tool, input, &self.cwd),
            input: input.clone(),
            since: now,
            tail: VecDeque::new(),
            below: Vec::new(),
            is_announced: false,
            end: None,
        });
    }

    /// A command line of the user's own.
    pub fn begin_own(&mut self, input: &Value, now: Duration) {
        self.put(&OWN.into(), &"Bash".into(), input, now);
    }

    /// A call that nobody tells the end of.
    pub fn forget(&mut self, call: &str) {
        self.running.retain(|running| &*running.call != call);
    }

    pub fn runs_from(&mut self, call: &str, now: Duration) {
        if let Some(running) = self.running.iter_mut().find(|running| &*running.call == call) {
            running.since = now;
        }
    }

    /// Calls that run for a while and were not told of yet.
    pub fn announce(&mut self, now: Duration, columns: usize) -> Vec<Line<'static>> {
        let late = |running: &Running| !running.is_announced && now >= running.since + TELLS_TIME_AFTER;
        let told: Vec<String> = self
            .running
            .iter()
            .filter(|running| late(running))
            .map(|running| running.doing.clone())
            .collect();
        self.running
            .iter_mut()
            .filter(|running| late(running))
            .for_each(|running| running.is_announced = true);
        told.iter().map(|doing| self.line("├─ ", &format!("{doing} …"), "", false, columns)).collect()
    }

    pub fn announces_at(&self) -> Option<Duration> {
        let waiting = self.running.iter().filter(|running| !running.is_announced);
        waiting.map(|running| running.since + TELLS_TIME_AFTER).min()
    }

    /// A line of a command's output.
    pub fn output(&mut self, call: &str, line: &str) {
        if let Some(running) = self.running.iter_mut().find(|running| &*running.call == call) {
            running.tail.push_back(clean::text(line));
            if running.tail.len() > TAIL_ROWS {
                running.tail.pop_front();
            }
        }
    }

    /// Lines to be told below a call when it has ended.
    pub fn note(&mut self, call: &str, lines: Vec<String>) {
        if let Some(running) = self.running.iter_mut().find(|running| &*running.call == call) {
            running.below.extend(lines);
        }
    }

    /// The user lets nothing come of a call, and says why. Whether it is known.
    pub fn ends_as(&mut self, call: &str, word: &'static str, words: &str) -> bool {
        let Some(running) = self.running.iter_mut().find(|running| &*running.call == call) else {
            return false;
        };
        running.end = Some(word);
        running.below.extend(words.lines().map(clean::line));
        true
    }

    /// What a call that runs does, its tool and its input.
    pub fn known(&self, call: &str) -> Option<(&str, &Arc<str>, &Value)> {
        let running = self.running.iter().find(|running| &*running.call == call)?;
        Some((&running.doing, &running.tool, &running.input))
    }

    /// The tool of a call that runs.
    pub fn tool(&self, call: &str) -> Option<&Arc<str>> {
        self.running.iter().find(|running| &*running.call == call).map(|running| &running.tool)
    }

    /// A call has ended: what there is to tell of it.
    pub fn end(
        &mut self,
        call: &str,
        is_error: bool,
        entry: &Entry,
        agents: &mut Agents,
        now: Duration,
        columns: usize,
    ) -> Vec<Line<'static>> {
        let at = self.running.iter().position(|running| &*running.call == call);
        // One that never ran has nothing but its result to tell of.
        let running = at.map(|at| self.running.remove(at));
        let doing = running.as_ref().map_or("Call", |running| &running.doing);
        let work = agents.end(call);
        let took = running.as_ref().and_then(|running| self.took.of(running.since, now));
        let took = took.filter(|took| *took >= TELLS_TIME_AFTER);
        let timed = |told: String| match took {
            Some(took) if told.is_empty() => seconds(took),
            Some(took) => format!("{told}{DOT}{}", seconds(took)),
            None => told,
        };
        let end = running.as_ref().and_then(|running| running.end).filter(|_| is_error);
        let told = match (&running, is_error, work) {
            // What the model is told of it the user knows.
            _ if end.is_some() => end.unwrap_or_default().to_owned(),
            (_, true, _) => return self.failed(doing, timed, entry, columns),
            (_, false, Some(work)) => timed(work),
            (Some(running), false, None) => timed(brought(&running.tool, &running.input, entry)),
            (None, false, None) => measure(entry),
        };
        let mut lines = vec![self.line("├─ ", doing, &told, false, columns)];
        if let Some(running) = running {
            let below = running.below.iter().flat_map(|line| wrapped(line, columns.saturating_sub(3)));
            lines.extend(below.map(|row| self.below(&row)));
            if is_error {
                return lines;
            }
            lines.extend(edits::of_result(&self.theme, &running.tool, &running.input, entry, columns));
        }
        lines
    }

    /// A call that failed: why stands behind it, or below where there is no room.
    fn failed(
        &self,
        doing: &str,
        timed: impl Fn(String) -> String,
        entry: &Entry,
        columns: usize,
    ) -> Vec<Line<'static>> {
        let text = result_text(entry).replace("<tool_use_error>", "").replace("</tool_use_error>", "");
        let why = clean::line(text.lines().next().unwrap_or_default());
        let whole = self.line("├─ ", doing, &timed(format!("failed: {why}")), true, usize::MAX);
        let mut lines = match whole.width() <= columns {
            true => vec![whole],
            false => {
                let room = columns.saturating_sub(3);
                let rows = wrapped(&cut(&why, room * WHY_ROWS_MAX), room);
                let first = self.line("├─ ", doing, &timed("failed".to_owned()), true, columns);
                [first].into_iter().chain(rows.iter().map(|row| self.below(row))).collect()
            }
        };
        lines.extend(self.last_words(entry, columns));
        lines
    }

    /// The end of what a call said that failed, below its first line: what went wrong mostly stands there.
    fn last_words(&self, entry: &Entry, columns: usize) -> Vec<Line<'static>> {
        let text = result_text(entry);
        let said: Vec<&str> = text.lines().skip(1).filter(|line| !line.trim().is_empty()).collect();
        let left_out = said.len().saturating_sub(TAIL_ROWS);
        let more = (left_out > 0).then(|| format!("… {left_out} more lines"));
        let end = said[left_out..].iter().map(|line| clean::text(line));
        let rows = more.into_iter().chain(end);
        rows.map(|row| self.below(&cut(&row, columns.saturating_sub(3)))).collect()
    }

    /// A row below a call.
    pub fn below(&self, words: &str) -> Line<'static> {
        let faint = self.theme.style(Role::Faint);
        Line::from(vec![Span::styled("│  ", faint), Span::styled(words.to_owned(), faint)])
    }

    /// Nothing runs any more, whatever began.
    pub fn abandon(&mut self, columns: usize) -> Vec<Line<'static>> {
        let left = std::mem::take(&mut self.running);
        left.iter().map(|running| self.line("├─ ", &running.doing, "not finished", true, columns)).collect()
    }

    pub fn live(
        &self,
        agents: &Agents,
        now: Duration,
        rows_max: usize,
        columns: usize,
    ) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for running in &self.running {
            let took = seconds_whole(now.saturating_sub(running.since));
            lines.push(self.line("├─ ", &format!("{} …", running.doing), &took, false, columns));
            lines.extend(running.tail.iter().map(|line| self.below(line)));
            lines.extend(agents.live(&running.call, &self.theme, now, columns));
        }
        let too_many = lines.len().saturating_sub(rows_max);
        lines.drain(..too_many);
        lines
    }

    /// A line of the tree, in one row: of what is done the end is left out where there is no room for it.
    fn line(
        &self,
        branch: &'static str,
        doing: &str,
        told: &str,
        is_error: bool,
        columns: usize,
    ) -> Line<'static> {
        let faint = self.theme.style(Role::Faint);
        let told_style = if is_error { self.theme.style(Role::Error) } else { faint };
        let told = clean::line(told);
        let behind = if told.is_empty() { 0 } else { width(&told) + width(DOT) };
        let room = columns.saturating_sub(width(branch) + behind).max(DOING_CELLS_MIN);
        let doing = cut(&clean::line(doing), room);
        let mut spans = vec![Span::styled(branch, faint), Span::styled(doing, self.theme.style(Role::Text))];
        if !told.is_empty() {
            spans.push(Span::styled(DOT, faint));
            spans.push(Span::styled(told, told_style));
        }
        Line::from(spans)
    }
}

/// How long something runs already. Nothing for the first second, so that what is quick does not flicker.
pub(crate) fn seconds_whole(took: Duration) -> String {
    match took.as_secs() {
        0 => String::new(),
        secs @ 1..60 => format!("{secs} s"),
        secs => format!("{} min {} s", secs / 60, secs % 60),
    }
}
