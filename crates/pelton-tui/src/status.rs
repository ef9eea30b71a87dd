//! The line about the session: model, mode, how full the context is, what was spent, what runs beside.

use pelton::Outcome;
use pelton::permission::Mode;
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use crate::clean;
use crate::theme::{Depth, Role, Theme};

/// What is known of the session.
#[derive(Debug, Default)]
pub(crate) struct Status {
    pub model: String,
    pub mode: Mode,
    pub context_tokens: u64,
    pub window_tokens: u64,
    pub cost_usd: f64,
    pub budget_usd: Option<f64>,
    /// Commands and agents in the background.
    pub background: usize,
    /// Tokens of the running submission's answers.
    pub output_tokens: u64,
    /// What a command of the user's own says, in place of all this.
    pub own: Option<Vec<Line<'static>>>,
}

impl Status {
    /// A submission is over.
    pub fn spent(&mut self, outcome: &Outcome) {
        self.cost_usd = outcome.cost_usd;
    }

    /// How full the context is, in hundredths.
    pub fn context_percent(&self) -> Option<u64> {
        (self.window_tokens > 0).then(|| (self.context_tokens * 100 / self.window_tokens).min(100))
    }

    pub fn lines(&self, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
        let mut lines = self.own.clone().unwrap_or_default();
        if theme.depth() < Depth::Sixteen {
            let spans = lines.iter_mut().flat_map(|line| &mut line.spans);
            spans.for_each(|span| span.style = Style::default());
        }
        // Which key changes the mode is told where there is room for it.
        let line = Some(self.line(theme, true)).filter(|line| line.width() <= columns);
        lines.push(line.unwrap_or_else(|| self.line(theme, false)));
        lines
    }

    fn line(&self, theme: &Theme, tells_key: bool) -> Line<'static> {
        let faint = theme.style(Role::Faint);
        let mut spans: Vec<Span<'static>> = Vec::new();
        let mut put = |text: String, role: Role| {
            if !spans.is_empty() {
                spans.push(Span::styled(" · ", faint));
            }
            spans.push(Span::styled(text, theme.style(role)));
        };
        if self.own.is_none() {
            put(clean::line(&self.model), Role::Faint);
        }
        let key = if self.mode == Mode::DontAsk || !tells_key { "" } else { " (shift+tab)" };
        put(format!("{}{key}", mode_words(self.mode)), mode_role(self.mode));
        if self.own.is_none() {
            if let Some(percent) = self.context_percent() {
                put(format!("{percent}% context"), if percent >= 80 { Role::Warning } else { Role::Faint });
            }
            if self.cost_usd > 0.0 || self.budget_usd.is_some() {
                let of = self.budget_usd.map(|budget| format!(" of ${budget:.2}")).unwrap_or_default();
                put(format!("${:.4}{of}", self.cost_usd), Role::Faint);
            }
        }
        if self.background > 0 {
            put(format!("{} in the background", self.background), Role::Accent);
        }
        Line::from(spans)
    }
}

/// What a mode means, in a few words.
pub(crate) fn mode_words(mode: Mode) -> &'static str {
    match mode {
        Mode::Default => "asks before changes",
        Mode::AcceptEdits => "edits without asking",
        Mode::Plan => "plans only",
        Mode::DontAsk => "never asks",
        Mode::BypassPermissions => "asks nothing",
    }
}

fn mode_role(mode: Mode) -> Role {
    match mode {
        Mode::AcceptEdits => Role::ModeEdits,
        Mode::Plan => Role::ModePlan,
        Mode::BypassPermissions => Role::ModeBypass,
        _ => Role::Faint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(status: &Status) -> String {
        let lines = status.lines(&Theme::BARE, 84);
        lines[0].spans.iter().map(|span| span.content.as_ref()).collect()
    }

    #[test]
    fn it_tells_what_is_known_and_nothing_else() {
        let mut status = Status { model: "m".to_owned(), ..Status::default() };
        assert_eq!(line(&status), "m · asks before changes (shift+tab)");
        status.mode = Mode::Plan;
        (status.context_tokens, status.window_tokens) = (90, 200);
        (status.cost_usd, status.budget_usd, status.background) = (0.5, Some(2.0), 1);
        let told = "m · plans only (shift+tab) · 45% context · $0.5000 of $2.00 · 1 in the background";
        assert_eq!(line(&status), told);
        // Where it is too long, it is the key that is missing.
        status.model = "claude".to_owned();
        assert_eq!(line(&status), told.replace("m ·", "claude ·").replace(" (shift+tab)", ""));
    }
}
