//! What is shown: the live area, from what happens now down to the line about the session.

use std::time::Duration;

use ratatui_core::text::{Line, Span};

use super::{App, When};
use crate::ask::{Dialog, within};
use crate::clean;
use crate::draft;
use crate::feed::elapsed;
use crate::paint::{Caret, Live};
use crate::theme::Role;

/// Rows that a question shares the screen with.
pub(super) const ROWS_BESIDE_DIALOG: usize = 6;
/// Windows of so many rows have some to spare for empty ones.
const ROOMY_ROWS: usize = 12;
/// Words that wait, of those that are shown.
const WAITING_SHOWN: usize = 4;

impl App {
    /// The live area as it should be, for whoever paints it now: a question in it can be read from then on.
    pub fn live(&mut self, now: Duration) -> Live {
        if let Some(dialog) = &mut self.dialog {
            dialog.painted(now);
        }
        if self.is_plain {
            // Where it stands when words are wanted is all that can be shown.
            let asks = !self.is_working() || self.dialog.is_some();
            return Live { lines: Vec::new(), caret: asks.then_some(Caret { row: 0, column: 0 }) };
        }
        let mut bottom = self.status_lines(now);
        bottom.truncate(self.rows.saturating_sub(2).max(1));
        let (mut middle, caret) = match &self.dialog {
            Some(dialog) => {
                let Live { lines, caret } = self.dialog_live(dialog, now);
                // Where there is no room for both, what is asked comes first.
                if lines.len() + bottom.len() > self.rows {
                    bottom.clear();
                }
                (lines, caret)
            }
            None => self.input_lines(self.rows.saturating_sub(bottom.len() + 1)),
        };
        let room = self.rows.saturating_sub(middle.len() + bottom.len());
        let is_roomy = self.rows >= ROOMY_ROWS && room > 1;
        let mut top = self.top_lines(now, room.saturating_sub(1 + usize::from(is_roomy)));
        top.truncate(room);
        // What is asked for stands apart from what was said.
        if is_roomy && (!top.is_empty() || !self.ends_apart()) {
            top.push(Line::default());
        }
        let caret = caret.map(|caret| Caret { row: caret.row + top.len(), ..caret });
        let mut lines = top;
        lines.append(&mut middle);
        lines.append(&mut bottom);
        Live { lines, caret }
    }

    /// What happens, and what waits.
    fn top_lines(&self, now: Duration, rows_max: usize) -> Vec<Line<'static>> {
        let mut below = Vec::new();
        let faint = self.theme.style(Role::Faint);
        for waiting in self.waiting.iter().take(WAITING_SHOWN) {
            let (mark, when) = match (waiting.when, waiting.id) {
                (_, None) => ("↳ ", "on its way"),
                (When::Next, _) => ("↳ ", "read at the next step; ↑ takes it back"),
                (When::Later, _) => ("⏸ ", "read when this is done; ↑ takes it back"),
            };
            let words = clean::line(waiting.said.shown.lines().next().unwrap_or_default());
            below.push(Line::from(vec![
                Span::styled(mark, self.theme.style(Role::Accent)),
                Span::styled(words, self.theme.style(Role::Prompt)),
                Span::styled(format!("  ({when})"), faint),
            ]));
        }
        if self.waiting.len() > WAITING_SHOWN {
            below.push(Line::styled(format!("  and {} more", self.waiting.len() - WAITING_SHOWN), faint));
        }
        if let Some(since) = self.working_since {
            let took = elapsed(now.saturating_sub(since));
            let doing = match (self.is_asking(), self.interrupted) {
                (true, _) => "waits for your answer",
                (false, true) => "ends",
                (false, false) => "works",
            };
            // At a question Esc gives no answer to it.
            let key = if self.is_asking() { "Ctrl-C" } else { "Esc" };
            let tokens = match self.status.output_tokens {
                0 => String::new(),
                tokens => format!(" · {tokens} tokens"),
            };
            below.push(Line::from(vec![
                Span::styled("● ", self.theme.style(Role::Accent)),
                Span::styled(format!("{doing} {took}{tokens} · {key} interrupts").replace("  ", " "), faint),
            ]));
        }
        below.splice(0..0, self.beside_lines(now));
        below.truncate(rows_max);
        let mut lines = self.feed.live(now, rows_max.saturating_sub(below.len()));
        lines.append(&mut below);
        lines
    }

    fn input_lines(&mut self, rows_max: usize) -> (Vec<Line<'static>>, Option<Caret>) {
        let rows_max = draft::ROWS_MAX.min(rows_max).max(1);
        let (lines, caret) = self.draft.lines(&self.theme, self.columns, rows_max);
        (lines, Some(caret))
    }

    fn dialog_live(&self, dialog: &Dialog, now: Duration) -> Live {
        let mut asked = dialog.live(&self.theme, self.columns);
        if dialog.is_put_off(now) {
            let words = "you were typing: keys answer this once you pause";
            asked.lines.push(Line::styled(words, self.theme.style(Role::Warning)));
        }
        let mut body = match self.body_told {
            true => Vec::new(),
            false => dialog.body(&self.theme, self.columns),
        };
        if body.is_empty() {
            return within(asked, self.rows);
        }
        if body.len() + asked.lines.len() + ROWS_BESIDE_DIALOG <= self.rows {
            body.push(Line::default());
        }
        // The window may be lower than it was when the question came.
        let room = self.rows.saturating_sub(asked.lines.len());
        body.drain(..body.len().saturating_sub(room));
        let Live { lines, caret } = within(asked, self.rows);
        let caret = caret.map(|caret| Caret { row: caret.row + body.len(), ..caret });
        body.extend(lines);
        Live { lines: body, caret }
    }

    fn status_lines(&mut self, now: Duration) -> Vec<Line<'static>> {
        if let Some((hint, until)) = self.hint
            && until > now
        {
            return vec![Line::styled(hint, self.theme.style(Role::Warning))];
        }
        let running = self.working_since.map(|since| now.saturating_sub(since)).unwrap_or_default();
        self.status.worked = self.worked + running;
        self.status.vim = self.draft.vim_mode();
        self.status.lines(&self.theme, self.columns)
    }
}
