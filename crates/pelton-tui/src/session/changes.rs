//! What is changed in the working directory and not committed: git is asked, and runs no program that is configured for diffs.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use ratatui_core::text::Line;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use super::{Chore, Session};
use crate::clean;
use crate::diff::patch::{FileChange, of_git};
use crate::diff::{self, Layout};
use crate::theme::Role;

/// Rows of a file that are shown; `git diff` has the rest.
const ROWS_OF_FILE_MAX: usize = 120;
/// Files that are shown.
const FILES_MAX: usize = 100;
/// Bytes of git's words that are read.
const BYTES_MAX: u64 = 4 * 1024 * 1024;

/// No program is asked whether files have changed, and names stand there as they are.
const LOOKS_ONLY: [&str; 4] = ["-c", "core.fsmonitor=false", "-c", "core.quotePath=false"];
/// The commit that has no files.
const NOTHING: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// What git says.
pub(super) struct Changed {
    /// What has changed in files that git knows.
    patch: String,
    /// Files that it does not know.
    new: Vec<String>,
}

impl Session<'_> {
    /// Tells what was changed since the last commit; in one file or folder, if it is named.
    pub(super) fn changes(&mut self, within: &str) {
        let (cwd, within) = (self.cwd.clone(), within.to_owned());
        self.chores.push(Box::pin(async move { Chore::Changed(changed(cwd, within).await) }));
    }

    pub(super) fn changes_told(&mut self, changed: Result<Changed, String>) {
        let Changed { patch, new } = match changed {
            Ok(changed) => changed,
            Err(why) => return self.app.say(&why, Role::Error),
        };
        let files = of_git(&patch);
        if files.is_empty() && new.is_empty() {
            return self.app.say("nothing was changed since the last commit", Role::Faint);
        }
        for file in files.iter().take(FILES_MAX) {
            let lines = self.change_lines(file);
            self.app.put(lines);
        }
        if files.len() > FILES_MAX {
            self.app.say(&format!("… {} more files", files.len() - FILES_MAX), Role::Faint);
        }
        for file in new.iter().take(FILES_MAX) {
            self.app.say(&format!("{} · new, and not known to git", clean::revealed_line(file)), Role::Text);
        }
        if new.len() > FILES_MAX {
            self.app.say(&format!("… {} more new files", new.len() - FILES_MAX), Role::Faint);
        }
    }

    fn change_lines(&self, file: &FileChange) -> Vec<Line<'static>> {
        let theme = *self.app.theme();
        let (added, removed) = file.counts();
        let told = match (&file.note, file.hunks.is_empty()) {
            (Some(note), true) => clean::revealed_line(note),
            (Some(note), false) => format!("{} · +{added} −{removed}", clean::revealed_line(note)),
            (None, _) => format!("+{added} −{removed}"),
        };
        let words = format!("{} · {told}", clean::revealed_line(&file.name));
        let rows = crate::feed::wrapped(&words, self.app.columns());
        let mut lines: Vec<Line<'static>> =
            rows.into_iter().map(|row| Line::styled(row, theme.style(Role::Strong))).collect();
        let layout = Layout { width: self.app.columns(), theme, rows_max: ROWS_OF_FILE_MAX };
        lines.extend(diff::lines(&file.hunks, &layout));
        lines
    }
}

async fn changed(cwd: PathBuf, within: String) -> Result<Changed, String> {
    let within: &[&str] = if within.is_empty() { &[] } else { &["--", &within] };
    // Outside of a repository git would compare any two files.
    asked(&cwd, &["rev-parse", "--is-inside-work-tree"]).await?;
    let has_commit = asked(&cwd, &["rev-parse", "--verify", "--quiet", "HEAD"]).await.is_ok();
    let since = if has_commit { "HEAD" } else { NOTHING };
    let diff =
        ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/", since];
    let patch = asked(&cwd, &[&diff, within].concat()).await?;
    let others = ["ls-files", "-z", "--others", "--exclude-standard"];
    let new = asked(&cwd, &[&others, within].concat()).await?;
    Ok(Changed { patch, new: new.split_terminator('\0').map(str::to_owned).collect() })
}

/// What git says to this, or why it says nothing.
async fn asked(cwd: &Path, words: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command.args(LOOKS_ONLY).args(words).current_dir(cwd).env("GIT_OPTIONAL_LOCKS", "0").kill_on_drop(true);
    command.env_remove("GIT_EXTERNAL_DIFF");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("git cannot be asked: {error}"))?;
    let (Some(mut out), Some(mut err)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("git cannot be heard".to_owned());
    };
    let (mut said, mut why) = (Vec::new(), Vec::new());
    let (mut out, mut err) = ((&mut out).take(BYTES_MAX), (&mut err).take(BYTES_MAX));
    let read = tokio::join!(out.read_to_end(&mut said), err.read_to_end(&mut why));
    let is_cut = said.len() as u64 >= BYTES_MAX;
    drop((out, err));
    // Nobody reads what goes beyond, so that it ends by itself.
    let status = child.wait().await.map_err(|error| error.to_string())?;
    match (read.0, status.success() || is_cut) {
        (Ok(_), true) => Ok(String::from_utf8_lossy(&said).into_owned()),
        (Err(error), _) => Err(error.to_string()),
        (Ok(_), false) => {
            let why = String::from_utf8_lossy(&why);
            let why = why.lines().next().map(|why| clean::line(why.trim_start_matches("fatal: ")));
            Err(why.unwrap_or_else(|| format!("git: {status}")))
        }
    }
}
