//! What is changed in the working directory and not committed: git is asked, and runs no program that is configured for diffs.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use pelton::process::RepositoryPrograms;
use ratatui_core::text::Line;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use super::apart::apart;
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
const BYTES_MAX: u64 = MEGABYTES_MAX * 1024 * 1024;
const MEGABYTES_MAX: u64 = 4;

/// No program is asked whether files have changed, and names stand there as they are.
const LOOKS_ONLY: [&str; 6] =
    ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false"];
/// What is changed, with names from the top of the repository, whatever is configured.
const DIFF: [&str; 8] = [
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-relative",
    "--submodule=short",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];
/// Files that git does not know and is not told to leave out, likewise.
const OTHERS: [&str; 5] = ["ls-files", "-z", "--full-name", "--others", "--exclude-standard"];
/// The whole repository, wherever in it one is.
const EVERYWHERE: &str = ":/";

/// What git says.
pub(super) struct Changed {
    /// What has changed in files that git knows.
    patch: String,
    /// Files that it does not know.
    new: Vec<String>,
    /// It says more than is read.
    is_cut: bool,
}

impl Session<'_> {
    /// Tells what was changed since the last commit; in one file or folder, if it is named.
    pub(super) fn changes(&mut self, within: &str) {
        let (cwd, within) = (self.cwd.clone(), within.to_owned());
        self.chores.push(Box::pin(async move { Chore::Changed(changed(cwd, within).await) }));
    }

    pub(super) fn changes_told(&mut self, changed: Result<Changed, String>) {
        let Changed { patch, new, is_cut } = match changed {
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
        if is_cut {
            let words = format!("… more than {MEGABYTES_MAX} MB: `git diff` has the rest");
            self.app.say(&words, Role::Faint);
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
    let within = ["--", if within.is_empty() { EVERYWHERE } else { &within }];
    // Outside of a repository git would compare any two files.
    asked(&cwd, &["rev-parse", "--is-inside-work-tree"]).await?;
    let has_commit = asked(&cwd, &["rev-parse", "--verify", "--quiet", "HEAD"]).await.is_ok();
    let since = if has_commit { "HEAD".to_owned() } else { nothing(&cwd).await? };
    let patch = asked(&cwd, &[&DIFF[..], &[&since], &within].concat()).await?;
    let others = asked(&cwd, &[&OTHERS[..], &within].concat()).await?;
    let new = others.until('\0').split_terminator('\0').map(str::to_owned).collect();
    Ok(Changed { patch: patch.until('\n').to_owned(), new, is_cut: patch.is_cut || others.is_cut })
}

/// The commit that has no files, as this repository counts.
async fn nothing(cwd: &Path) -> Result<String, String> {
    let said = asked(cwd, &["hash-object", "-t", "tree", "/dev/null"]).await?;
    Ok(said.text.trim().to_owned())
}

/// What was heard.
struct Said {
    text: String,
    /// There was more.
    is_cut: bool,
}

impl Said {
    /// As far as it is whole: of what was cut, to the last of these.
    fn until(&self, end: char) -> &str {
        let whole =
            if self.is_cut { self.text.rfind(end).map_or(0, |last| last + 1) } else { self.text.len() };
        &self.text[..whole]
    }
}

/// What git says to this, or why it says nothing.
async fn asked(cwd: &Path, words: &[&str]) -> Result<Said, String> {
    let programs = RepositoryPrograms::around(cwd);
    let unclear = || {
        let why = clean::line(programs.first().unwrap_or_default());
        format!("the repository may have git run something of its own ({why}): look with `! git diff`")
    };
    let no_filters = programs.without_filters().ok_or_else(unclear)?;
    let mut command = Command::new("git");
    command
        .args(LOOKS_ONLY)
        .args(no_filters)
        .args(words)
        .current_dir(cwd)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .kill_on_drop(true);
    command.env_remove("GIT_EXTERNAL_DIFF");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = apart(&mut command).spawn().map_err(|error| format!("git cannot be asked: {error}"))?;
    let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("git cannot be heard".to_owned());
    };
    let (said, why) = tokio::join!(heard(out), heard(err));
    let said = said.map_err(|error| error.to_string())?;
    let is_cut = said.len() as u64 >= BYTES_MAX;
    let status = child.wait().await.map_err(|error| error.to_string())?;
    if status.success() || is_cut {
        return Ok(Said { text: String::from_utf8_lossy(&said).into_owned(), is_cut });
    }
    let why = why.unwrap_or_default();
    let why = String::from_utf8_lossy(&why);
    let why = why.lines().next().map(|why| clean::line(why.trim_start_matches("fatal: ")));
    Err(why.unwrap_or_else(|| format!("git: {status}")))
}

/// What comes from a pipe, as far as it is read. The pipe goes with it: whoever writes more ends by itself, and waits for nobody.
async fn heard(from: impl AsyncRead + Unpin) -> io::Result<Vec<u8>> {
    let mut said = Vec::new();
    from.take(BYTES_MAX).read_to_end(&mut said).await?;
    Ok(said)
}
