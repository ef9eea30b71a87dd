//! Everything that is neither said by the model nor done by a tool: a plain line each.

use std::time::Duration;

use pelton::Terminal;
use pelton::compact::Level;
use pelton::event::{Boundary, ContextEvent, Event, Outcome};
use pelton::permission::{Change, Update};
use pelton::tools::BackgroundNews;
use pelton_model::Notice;
use pelton_serve::progress::{seconds, summary};
use ratatui_core::text::{Line, Span};

use super::wrapped;
use crate::clean;
use crate::status::mode_words;
use crate::theme::{Role, Theme};

pub(super) struct Notices {
    theme: Theme,
    /// The model is asked again: why, and from when on.
    retry: Option<Retry>,
    /// Nothing has come since.
    silent_since: Option<Duration>,
    compacting_since: Option<Duration>,
    /// What there is to say about money, unless it is the end.
    money: Option<String>,
    /// An error was told in words of its own.
    has_told_error: bool,
    /// What was last told to have changed in this submission.
    changed: Option<String>,
    /// A command did what it was to do to the context, and it was told what.
    has_told_reshaping: bool,
}

struct Retry {
    why: String,
    attempt: u32,
    attempts_max: u32,
    until: Duration,
    wait: Duration,
}

impl Notices {
    pub fn dress(&mut self, theme: Theme) {
        self.theme = theme;
    }

    pub fn new(theme: Theme) -> Self {
        Self {
            theme,
            retry: None,
            silent_since: None,
            compacting_since: None,
            money: None,
            has_told_error: false,
            changed: None,
            has_told_reshaping: false,
        }
    }

    /// A line about something that happened.
    pub fn note(&self, words: &str) -> Line<'static> {
        Line::from(vec![
            Span::styled("! ", self.theme.style(Role::Warning)),
            Span::styled(clean::line(words), self.theme.style(Role::Faint)),
        ])
    }

    pub fn retry(&mut self, notice: &Notice, now: Duration) {
        // Asked again at once, in another form, with nothing shown: there is nothing to wait for.
        if notice.wait.is_zero() && !notice.withdrawn {
            return;
        }
        self.retry = Some(Retry {
            why: clean::line(&notice.message),
            attempt: notice.attempt,
            attempts_max: notice.retries_max,
            until: now + notice.wait,
            wait: notice.wait,
        });
    }

    pub fn waits(&mut self, left: Duration, now: Duration) {
        if let Some(retry) = &mut self.retry {
            retry.until = now + left;
        }
    }

    pub fn stalled(&mut self, silent_for: Duration, now: Duration) {
        self.silent_since = Some(now.saturating_sub(silent_for));
    }

    pub fn compacting(&mut self, now: Duration) {
        self.compacting_since = Some(now);
    }

    /// Something is to be said about money. Where it ends the submission, its end says so in a line of its own.
    pub fn money(&mut self, words: &str) {
        self.money = Some(words.to_owned());
    }

    /// It goes on all the same.
    pub fn money_told(&mut self, columns: usize) -> Vec<Line<'static>> {
        self.money.take().map(|words| self.notes(&words, columns)).unwrap_or_default()
    }

    /// Waiting is over: what of it stays in the conversation.
    pub fn settle(&mut self, columns: usize) -> Vec<Line<'static>> {
        self.silent_since = None;
        self.compacting_since = None;
        let Some(Retry { why, attempt, attempts_max, wait, .. }) = self.retry.take() else {
            return Vec::new();
        };
        let words = format!("asked again after {} ({attempt} of {attempts_max}): {why}", seconds(wait));
        self.notes(&words, columns)
    }

    /// The same where nothing is live: told once, when it is asked again.
    pub fn retry_told(&mut self, columns: usize) -> Vec<Line<'static>> {
        let Some(Retry { why, attempt, attempts_max, wait, .. }) = self.retry.take() else {
            return Vec::new();
        };
        let words = format!("asking again in {} ({attempt} of {attempts_max}): {why}", seconds(wait));
        self.notes(&words, columns)
    }

    pub fn live(&self, now: Duration) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        if let Some(retry) = &self.retry {
            let left = retry.until.saturating_sub(now).as_secs_f64().ceil();
            let (attempt, max) = (retry.attempt, retry.attempts_max);
            // The row may be cut: what changes stands first.
            lines.push(self.note(&format!("asking again in {left} s ({attempt} of {max}): {}", retry.why)));
        }
        if let Some(since) = self.silent_since {
            let silent = now.saturating_sub(since).as_secs();
            lines.push(self.note(&format!("nothing from the model for {silent} s")));
        }
        if let Some(since) = self.compacting_since {
            let took = now.saturating_sub(since).as_secs();
            lines.push(self.note(&format!("summing up the conversation to make room … {took} s")));
        }
        lines
    }

    /// Lines for events that nobody else tells.
    pub fn of(&mut self, event: &Event, columns: usize) -> Vec<Line<'static>> {
        match event {
            Event::Cut { reason } => self.notes(&format!("the answer was cut: {reason}"), columns),
            Event::Informational { content, .. } => self.notes(content, columns),
            // What a command did to the context is told in one line.
            Event::CommandOutput { .. } if std::mem::take(&mut self.has_told_reshaping) => Vec::new(),
            Event::CommandOutput { content } => self.plain(content, Role::Text, columns),
            Event::Synthetic(said) => {
                self.has_told_error = true;
                self.plain(&said.text, Role::Error, columns)
            }
            Event::Refusal(refusal) => {
                self.has_told_error = true;
                let why = refusal.explanation.as_deref().or(refusal.category.as_deref());
                let why = why.map(|why| format!(": {why}")).unwrap_or_default();
                self.notes(&format!("{} declined to answer{why}", clean::line(&refusal.model)), columns)
            }
            Event::ModelFallback { from, to, .. } => {
                let (from, to) = (clean::line(from), clean::line(to));
                self.notes(&format!("{from} does not answer: {to} is asked instead"), columns)
            }
            Event::Context(ContextEvent::Boundary(boundary)) => {
                self.has_told_reshaping = matches!(boundary.level, Level::Manual | Level::Undo);
                self.notes(&reshaped(boundary), columns)
            }
            Event::Context(ContextEvent::Compacted(Err(why))) => {
                self.notes(&format!("the conversation was not summed up: {why}"), columns)
            }
            Event::PermissionsChanged(updates) => {
                let mut lines = Vec::new();
                for words in updates.iter().map(changed) {
                    // The answer to a plan and the end of planning change the same.
                    if self.changed.as_ref() != Some(&words) {
                        lines.extend(self.notes(&words, columns));
                        self.changed = Some(words);
                    }
                }
                lines
            }
            Event::ToolUseSummary { summary, .. } => self.notes(summary, columns),
            Event::Background(news) => {
                background(news).map(|words| self.notes(&words, columns)).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// How a submission ended.
    pub fn result(&mut self, outcome: &Outcome, has_tree: bool, columns: usize) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let has_told_error = std::mem::take(&mut self.has_told_error);
        (self.changed, self.has_told_reshaping) = (None, false);
        match outcome.terminal {
            Terminal::BudgetExhausted => self.money = None,
            _ => lines.extend(self.money_told(columns)),
        }
        match outcome.terminal {
            Terminal::AbortedStreaming | Terminal::AbortedToolExecution => {
                lines.extend(self.notes("interrupted: say what to do instead", columns));
            }
            _ if outcome.is_error && !has_told_error => {
                let words = match (&outcome.error, outcome.errors.is_empty()) {
                    (Some(error), _) => error.to_string(),
                    (None, false) => outcome.errors.join("; "),
                    (None, true) => outcome.text.clone(),
                };
                lines.extend(self.plain(&words, Role::Error, 0));
            }
            _ => {}
        }
        if has_tree {
            let faint = self.theme.style(Role::Faint);
            let mut words = summary(outcome);
            if outcome.cost_usd > 0.0 {
                words += &format!(" · ${:.4}", outcome.cost_usd);
            }
            let rows = wrapped(&words, columns.saturating_sub(3)).into_iter().enumerate();
            lines.extend(rows.map(|(at, row)| {
                let mark = if at == 0 { "└─ " } else { "   " };
                Line::from(vec![Span::styled(mark, faint), Span::styled(row, faint)])
            }));
        }
        lines
    }

    /// The same in as many rows as it takes.
    pub fn notes(&self, words: &str, columns: usize) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for (at, row) in
            clean::words(words).lines().flat_map(|line| wrapped(line, columns.saturating_sub(2))).enumerate()
        {
            let mark = if at == 0 { "! " } else { "  " };
            lines.push(Line::from(vec![
                Span::styled(mark, self.theme.style(Role::Warning)),
                Span::styled(row, self.theme.style(Role::Faint)),
            ]));
        }
        lines
    }

    /// Words as they are, line by line. Without a width they are the terminal's to break.
    fn plain(&self, words: &str, role: Role, columns: usize) -> Vec<Line<'static>> {
        let style = self.theme.style(role);
        let words = clean::words(words);
        let rows = |line: &str| match columns {
            0 => vec![line.to_owned()],
            columns => wrapped(line, columns),
        };
        words.lines().flat_map(rows).map(|row| Line::styled(row, style)).collect()
    }
}

/// What was done to the context, in one line: why and from where on is told by `/context`.
fn reshaped(boundary: &Boundary) -> String {
    let (before, after) = (boundary.before_tokens, boundary.after_tokens);
    let done = match boundary.level {
        Level::ResultBudget => "long results were shortened",
        Level::Snip => "what was marked was left out",
        Level::Microcompact => "old results were cleared",
        Level::Collapse => "finished stretches were folded",
        Level::Autocompact | Level::Reactive | Level::Manual => "the conversation was summed up",
        Level::Local => "the oldest of the conversation was left out",
        Level::Repair => "what the server refused was left out",
        Level::Undo => "a change of the context was undone",
        _ => "the context was changed",
    };
    let back = if boundary.level == Level::Manual { " (/uncompact undoes it)" } else { "" };
    format!("{done}: {before} → {after} tokens{back}")
}

/// What may run from now on, in words.
pub(crate) fn changed(update: &Update) -> String {
    let rules = |rules: &[pelton::permission::Rule]| {
        rules.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    let dirs = |dirs: &[std::path::PathBuf]| {
        dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(", ")
    };
    match &update.change {
        Change::AddRules(behavior, added) => format!("{} from now on: {}", behavior.name(), rules(added)),
        Change::ReplaceRules(behavior, all) => {
            format!("{} from now on, and nothing else: {}", behavior.name(), rules(all))
        }
        Change::RemoveRules(behavior, gone) => format!("no {} any more: {}", behavior.name(), rules(gone)),
        Change::SetMode(mode) => format!("from now on it {}", mode_words(*mode)),
        Change::AddDirectories(added) => format!("works in {}, too", dirs(added)),
        Change::RemoveDirectories(gone) => format!("works in {} no more", dirs(gone)),
        _ => "what may run was changed".to_owned(),
    }
}

/// Words of others are cleaned before ours follow them: a sequence without an end would take those along.
fn background(news: &BackgroundNews) -> Option<String> {
    match news {
        BackgroundNews::Started(task) => {
            Some(format!("in the background: {} ({})", clean::line(&task.description), task.id))
        }
        BackgroundNews::Ended(task, end) => {
            Some(format!("{} ({}) {}", clean::line(&task.description), task.id, end.words()))
        }
        _ => None,
    }
}
