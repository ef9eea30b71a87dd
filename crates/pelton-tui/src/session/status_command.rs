//! A user's own line about the session: a command is told what there is to know, and says what is shown.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use futures::future::{AbortHandle, abortable};
use pelton_model::FastMode;
use ratatui_core::text::{Line, Span};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use super::apart::{Together, apart};
use super::{Chore, Session};
use crate::clean;

/// Changes that come within this time are told together.
const DEBOUNCE: Duration = Duration::from_millis(300);
/// A command that takes longer says nothing.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Lines of it that are shown, and bytes that are read.
const LINES_MAX: usize = 3;
const BYTES_MAX: u64 = 64 * 1024;

/// The command.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StatusCommand {
    /// A line for the shell.
    pub command: String,
    /// What it is surrounded by.
    pub env: Vec<(OsString, OsString)>,
    /// How far from the edge it stands, in cells.
    pub padding: u64,
    /// After which time it is asked again although nothing has happened.
    pub refresh: Option<Duration>,
}

impl StatusCommand {
    /// Asked when something happens.
    pub fn new(command: String, env: Vec<(OsString, OsString)>) -> Self {
        Self { command, env, padding: 0, refresh: None }
    }
}

/// When it is asked next, and whether it is being asked.
#[derive(Default)]
pub(super) struct StatusTurn {
    pub due: Option<Duration>,
    generation: u64,
    /// Ends the one that runs.
    running: Option<AbortHandle>,
}

impl Session<'_> {
    /// Something has happened that it may want to tell.
    pub(super) fn status_changed(&mut self) {
        if self.status.is_some() && self.status_turn.due.is_none() {
            self.status_turn.due = Some(self.now() + DEBOUNCE);
        }
    }

    /// Asks it, if it is time. One that still runs is ended: what it says is of yesterday.
    pub(super) fn ask_status(&mut self, now: Duration) {
        let Some(status) = self.status.clone().filter(|_| self.status_turn.due.is_some_and(|due| due <= now))
        else {
            return;
        };
        self.status_turn.due = status.refresh.map(|refresh| now + refresh);
        self.status_turn.generation += 1;
        let (generation, told, cwd) = (self.status_turn.generation, self.status_facts(), self.cwd.clone());
        let (columns, rows) = self.terminal.size();
        let (work, running) = abortable(async move {
            let said = tokio::time::timeout(TIME_MAX, said(&status, &told, cwd, columns, rows)).await;
            said.ok().flatten().map(|text| lines(&text, status.padding))
        });
        if let Some(before) = self.status_turn.running.replace(running) {
            before.abort();
        }
        self.chores.push(Box::pin(async move { Chore::Status(generation, work.await.unwrap_or_default()) }));
    }

    /// It has answered.
    pub(super) fn status_said(&mut self, generation: u64, lines: Option<Vec<Line<'static>>>) {
        if generation == self.status_turn.generation {
            self.app.status.own = lines.filter(|lines| !lines.is_empty());
        }
    }

    /// What it is told.
    fn status_facts(&self) -> Value {
        let status = &self.app.status;
        let last = self.handles.last.as_ref();
        let percent = status.context_percent().unwrap_or_default();
        let added: Vec<PathBuf> =
            self.handles.permissions.roots().into_iter().filter(|root| *root != self.cwd).collect();
        let written =
            last.map_or(0, |last| last.by_model.values().map(|used| used.usage.output_tokens).sum());
        let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        json!({
            "hook_event_name": "Status",
            "session_id": self.session_id,
            "session_name": self.name,
            "transcript_path": self.transcript,
            "cwd": self.cwd,
            "model": {"id": status.model, "display_name": status.model},
            "workspace": {"current_dir": self.cwd, "project_dir": self.cwd, "added_dirs": added},
            "version": pelton::CLI_VERSION,
            "output_style": {"name": self.init.as_ref().map_or("default", |init| init.output_style.as_str())},
            "cost": {
                "total_cost_usd": status.cost_usd,
                "total_duration_ms": ms(self.now().saturating_sub(self.began_at)),
                "total_api_duration_ms": last.map_or(0, |last| ms(last.duration_api)),
                "total_lines_added": self.lines_changed.0,
                "total_lines_removed": self.lines_changed.1,
            },
            "context_window": {
                "total_input_tokens": status.context_tokens,
                "total_output_tokens": written,
                "context_window_size": status.window_tokens,
                "used_percentage": percent,
                "remaining_percentage": 100 - percent,
                "current_usage": self.newest_usage,
            },
            "exceeds_200k_tokens": status.context_tokens > 200_000,
            "fast_mode": last.is_some_and(|last| last.fast_mode == FastMode::On),
            "thinking": {"enabled": self.handles.dials.thinks()},
            "permission_mode": status.mode.name(),
            "vim": self.app.draft.vim_mode().map(|mode| json!({"mode": mode.name()})),
            "effort": self.handles.dials.effort().map(|effort| json!({"level": effort.as_str()})),
        })
    }
}

async fn said(
    status: &StatusCommand,
    told: &Value,
    cwd: PathBuf,
    columns: usize,
    rows: usize,
) -> Option<String> {
    let mut command = Command::new("sh");
    command.args(["-c", &status.command]).current_dir(cwd).env_clear().envs(status.env.iter().cloned());
    command.env("COLUMNS", columns.to_string()).env("LINES", rows.to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = apart(&mut command).spawn().ok()?;
    let together = Together::of(&child);
    if let Some(mut stdin) = child.stdin.take() {
        // It may not want to know.
        let _ = stdin.write_all(told.to_string().as_bytes()).await;
    }
    let mut bytes = Vec::new();
    child.stdout.take()?.take(BYTES_MAX).read_to_end(&mut bytes).await.ok()?;
    // One that goes on and on has said enough: nobody reads the rest, and so it ends.
    let is_cut = u64::try_from(bytes.len()).is_ok_and(|bytes| bytes >= BYTES_MAX);
    let is_well = is_cut || {
        let status = child.wait().await.ok()?;
        together.ended();
        status.success()
    };
    is_well.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// What it said, with its colours and nothing else of its own.
fn lines(text: &str, padding: u64) -> Vec<Line<'static>> {
    let padding = " ".repeat(usize::try_from(padding).unwrap_or_default().min(20));
    let line = |line: &str| {
        let mut spans = vec![Span::raw(padding.clone())];
        spans.extend(clean::coloured(line));
        Line::from(spans)
    };
    text.lines().filter(|line| !line.trim().is_empty()).take(LINES_MAX).map(line).collect()
}
