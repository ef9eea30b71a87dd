//! What the model says, as it comes. A line that cannot change any more is finished; the rest is live.

use std::time::Duration;

use ratatui_core::text::{Line, Span};

use crate::markdown::Stream;
use crate::theme::{Role, Theme};

use super::calls::seconds_whole;

/// Thinking that takes longer is told when it is over.
const THOUGHT_TOLD_AFTER: Duration = Duration::from_secs(1);
/// The end of what it thinks, in characters.
const THOUGHT_CHARS_SHOWN: usize = 120;

pub(super) struct Answer {
    theme: Theme,
    columns: usize,
    markdown: Stream,
    /// Words of an answer came that is not finished.
    has_begun: bool,
    /// Something of the block was told as finished.
    has_told: bool,
    thinking: Option<Thinking>,
}

struct Thinking {
    since: Duration,
    last: Duration,
    tail: String,
}

impl Answer {
    pub fn new(theme: Theme, columns: usize) -> Self {
        Self {
            theme,
            columns,
            markdown: Stream::new(columns, theme),
            has_begun: false,
            has_told: false,
            thinking: None,
        }
    }

    /// The next answer looks like this; one that has begun ends as it began.
    pub fn dress(&mut self, theme: Theme) {
        self.theme = theme;
        if !self.has_begun {
            self.begin_anew();
        }
    }

    pub fn resize(&mut self, columns: usize) {
        self.columns = columns;
        self.markdown.resize(columns);
    }

    /// A block begins.
    pub fn begin(&mut self, block_type: &str, now: Duration) {
        self.thinking = match block_type {
            "thinking" | "redacted_thinking" => Some(Thinking { since: now, last: now, tail: String::new() }),
            _ => None,
        };
    }

    pub fn thinks(&mut self, text: &str, now: Duration) {
        let thinking = self.thinking.get_or_insert(Thinking { since: now, last: now, tail: String::new() });
        thinking.last = now;
        thinking.tail.push_str(&crate::clean::line(text));
        let chars = thinking.tail.chars().count();
        if chars > 2 * THOUGHT_CHARS_SHOWN {
            thinking.tail = thinking.tail.chars().skip(chars - THOUGHT_CHARS_SHOWN).collect();
        }
    }

    /// Something else begins: it has thought until now, whether or not it was said what.
    pub fn thought(&mut self, now: Duration) -> Vec<Line<'static>> {
        if let Some(thinking) = &mut self.thinking {
            thinking.last = now;
        }
        self.end_thinking()
    }

    /// More words: what is finished with them.
    pub fn text(&mut self, text: &str) -> Vec<Line<'static>> {
        let mut told = self.end_thinking();
        self.has_begun = true;
        let lines = self.markdown.push(text);
        self.has_told |= !lines.is_empty();
        told.extend(lines);
        told
    }

    /// The words are complete.
    pub fn finish(&mut self) -> Vec<Line<'static>> {
        let mut told = self.end_thinking();
        let lines = self.markdown.finish();
        let ends = self.has_told || !lines.is_empty();
        told.extend(lines);
        if ends {
            // What comes next stands apart.
            told.push(Line::default());
        }
        self.has_told = false;
        self.begin_anew();
        told
    }

    fn begin_anew(&mut self) {
        self.has_begun = false;
        self.markdown = Stream::new(self.columns, self.theme);
    }

    /// What was said does not count: what is live goes, and of what is finished it is said so.
    pub fn withdraw(&mut self) -> Vec<Line<'static>> {
        self.thinking = None;
        self.begin_anew();
        match std::mem::take(&mut self.has_told) {
            true => vec![Line::styled(
                "(this answer broke off, and starts again)",
                self.theme.style(Role::Warning),
            )],
            false => Vec::new(),
        }
    }

    pub fn live(&self, now: Duration) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        if let Some(thinking) = &self.thinking {
            let faint = self.theme.style(Role::Faint);
            let took = seconds_whole(now.saturating_sub(thinking.since));
            lines.push(Line::styled(format!("∴ thinking … {took}").trim_end().to_owned(), faint));
            if !thinking.tail.is_empty() {
                let chars = thinking.tail.chars().count();
                let tail: String =
                    thinking.tail.chars().skip(chars.saturating_sub(THOUGHT_CHARS_SHOWN)).collect();
                for row in super::wrapped(&tail, self.columns.saturating_sub(2)) {
                    lines.push(Line::from(vec![Span::raw("  "), Span::styled(row, faint)]));
                }
            }
        }
        lines.extend(self.markdown.tail());
        lines
    }

    fn end_thinking(&mut self) -> Vec<Line<'static>> {
        let Some(thinking) = self.thinking.take() else { return Vec::new() };
        let took = thinking.last.saturating_sub(thinking.since);
        if took < THOUGHT_TOLD_AFTER {
            return Vec::new();
        }
        vec![Line::styled(format!("∴ thought for {} s", took.as_secs()), self.theme.style(Role::Faint))]
    }
}
