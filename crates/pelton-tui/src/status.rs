//! The line about the session: model, mode, how full the context is, what was spent, how long it took, what runs beside.

use std::time::Duration;

use pelton::permission::Mode;
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use crate::clean;
use crate::feed::elapsed;
use crate::input::VimMode;
use crate::theme::{Depth, Role, Theme};

/// What is known of the session.
#[derive(Debug, Default)]
pub(crate) struct Status {
    pub model: String,
    pub mode: Mode,
    pub context_tokens: u64,
    pub window_tokens: u64,
    /// What the session has cost, whichever process asked.
    pub cost_usd: f64,
    /// What counts against the budget, whichever session it was spent in.
    pub counted_usd: f64,
    pub budget_usd: Option<f64>,
    /// How long the model has worked, all submissions together.
    pub worked: Duration,
    /// Commands and agents in the background.
    pub background: usize,
    /// Tokens of the running submission's answers.
    pub output_tokens: u64,
    /// What letters mean in the prompt, where that changes.
    pub vim: Option<VimMode>,
    /// What a command of the user's own says, in place of all this.
    pub own: Option<Vec<Line<'static>>>,
}

impl Status {
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
        lines.push(self.line(theme, columns));
        lines
    }

    /// As much of it as fits, in whole words: what people can do without goes first.
    fn line(&self, theme: &Theme, columns: usize) -> Line<'static> {
        let mut parts = self.parts();
        loop {
            let line = joined(&parts, theme);
            let dearest = parts.iter().map(|part| part.need).max();
            match dearest {
                Some(need) if line.width() > columns && need > Need::Mode => {
                    parts.retain(|part| part.need != need);
                }
                _ => return line,
            }
        }
    }

    /// All there is to tell, in the order in which it stands there.
    fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut put = |need: Need, text: String, role: Role| parts.push(Part { need, text, role });
        // Where the user has a line of their own, it tells the rest.
        let all = self.own.is_none();
        if let Some(vim) = self.vim {
            let role = if vim == VimMode::Insert { Role::Faint } else { Role::Accent };
            put(Need::Letters, vim.name().to_owned(), role);
        }
        if all {
            put(Need::Model, clean::line(&self.model), Role::Faint);
        }
        put(Need::Mode, mode_words(self.mode).to_owned(), mode_role(self.mode));
        if self.mode != Mode::DontAsk {
            put(Need::Key, " (shift+tab)".to_owned(), mode_role(self.mode));
        }
        if all && let Some(percent) = self.context_percent() {
            let role = if percent >= 80 { Role::Warning } else { Role::Faint };
            put(Need::Context, format!("{percent}% context"), role);
        }
        if all && (self.cost_usd > 0.0 || self.budget_usd.is_some()) {
            let told = match self.budget_usd {
                Some(budget) => format!("${:.4} of {}", self.counted_usd, dollars(budget)),
                None => format!("${:.4}", self.cost_usd),
            };
            put(Need::Cost, told, Role::Faint);
        }
        if all && self.worked >= Duration::from_secs(1) {
            put(Need::Elapsed, elapsed(self.worked), Role::Faint);
        }
        if self.background > 0 {
            put(Need::Background, format!("{} in the background", self.background), Role::Accent);
        }
        parts
    }
}

/// Something to tell about the session.
struct Part {
    need: Need,
    text: String,
    role: Role,
}

/// How much it is needed, the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    Mode,
    /// What letters mean.
    Letters,
    Background,
    Model,
    Context,
    Cost,
    Elapsed,
    /// The key that changes the mode; it stands behind the mode.
    Key,
}

fn joined(parts: &[Part], theme: &Theme) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    for Part { need, text, role } in parts {
        if !spans.is_empty() && *need != Need::Key {
            spans.push(Span::styled(" · ", theme.style(Role::Faint)));
        }
        spans.push(Span::styled(text.clone(), theme.style(*role)));
    }
    Line::from(spans)
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

/// A budget as somebody would write it: with more digits only where it has some.
fn dollars(usd: f64) -> String {
    let cents = usd * 100.0;
    if (cents - cents.round()).abs() < 1e-6 { format!("${usd:.2}") } else { format!("${usd}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(status: &Status) -> String {
        within(status, 84)
    }

    fn within(status: &Status, columns: usize) -> String {
        let lines = status.lines(&Theme::BARE, columns);
        lines[0].spans.iter().map(|span| span.content.as_ref()).collect()
    }

    #[test]
    fn it_tells_what_is_known_and_nothing_else() {
        let mut status = Status { model: "m".to_owned(), ..Status::default() };
        assert_eq!(line(&status), "m · asks before changes (shift+tab)");
        status.mode = Mode::Plan;
        (status.context_tokens, status.window_tokens) = (90, 200);
        // What earlier processes have spent is no part of it.
        (status.cost_usd, status.counted_usd, status.budget_usd) = (3.5, 0.5, Some(2.0));
        status.background = 1;
        let told = "m · plans only (shift+tab) · 45% context · $0.5000 of $2.00 · 1 in the background";
        assert_eq!(line(&status), told);
        // A small budget is no budget of nothing.
        status.budget_usd = Some(0.001);
        assert_eq!(line(&status), told.replace("$2.00", "$0.001"));
        status.budget_usd = Some(2.0);
        // Where it is too long, it is the key that is missing.
        status.model = "claude".to_owned();
        assert_eq!(line(&status), told.replace("m ·", "claude ·").replace(" (shift+tab)", ""));
        // What else goes goes whole, and what may run without asking is seen in the narrowest window.
        status.worked = Duration::from_secs(75);
        for (columns, told) in [
            (
                100,
                "claude · plans only (shift+tab) · 45% context · $0.5000 of $2.00 · 1 min 15 s · 1 in the background",
            ),
            (90, "claude · plans only · 45% context · $0.5000 of $2.00 · 1 min 15 s · 1 in the background"),
            (80, "claude · plans only · 45% context · $0.5000 of $2.00 · 1 in the background"),
            (60, "claude · plans only · 45% context · 1 in the background"),
            (45, "claude · plans only · 1 in the background"),
            (35, "plans only · 1 in the background"),
            (20, "plans only"),
            (5, "plans only"),
        ] {
            assert_eq!(within(&status, columns), told, "{columns}");
        }
        // What letters mean is told as long as there is room for more than the mode.
        status.vim = Some(VimMode::Normal);
        assert_eq!(within(&status, 30), "NORMAL · plans only");
        assert_eq!(within(&status, 12), "plans only");
    }
}
