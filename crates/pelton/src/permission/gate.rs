//! Resolves what a call touches and asks the rules.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::rules::{Here, Mode, Place, Request, RuleSet, Target, Verdict};
use super::shell;

/// What a call touches, in the words rules are written in. Paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// Reads a file or searches below a directory.
    Read(PathBuf),
    /// Creates or changes a file.
    Edit(PathBuf),
    /// Runs a shell command.
    Shell(String),
    /// Touches nothing but the conversation.
    Nothing,
}

/// Judges calls for one session.
#[derive(Debug, Clone)]
pub struct Gate {
    rules: Arc<RuleSet>,
    mode: Mode,
    start: PathBuf,
    home: Option<PathBuf>,
    roots: Vec<PathBuf>,
}

impl Gate {
    /// `roots` are the working directories, the one the session started in first.
    pub fn new(rules: Arc<RuleSet>, mode: Mode, roots: &[PathBuf], home: Option<PathBuf>) -> Self {
        let start = roots.first().cloned().unwrap_or_default();
        Self { rules, mode, start, home, roots: roots.iter().map(|root| real_path(root)).collect() }
    }

    /// Whether the call may run. `cwd` is where its relative words start. A hook that vouches for a call takes the
    /// question's place, but overrides neither rules nor protected paths.
    pub fn judge(&self, tool: &str, access: &Access, cwd: &Path, vouched: bool) -> Verdict {
        let here = Here {
            start: self.start.clone(),
            cwd: cwd.to_path_buf(),
            home: self.home.clone(),
            roots: self.roots.clone(),
        };
        let target = |target| self.rules.judge(self.mode, &Request { tool, target, here: &here, vouched });
        match access {
            Access::Read(path) => target(Target::Read(&place(path))),
            Access::Edit(path) => target(Target::Edit(&place(path))),
            Access::Nothing => target(Target::Nothing),
            Access::Shell(command) => {
                let looks_only = self.looks_only_inside(command, cwd);
                target(Target::Shell { command, looks_only })
            }
        }
    }

    /// A looking command is harmless only where the session may look.
    fn looks_only_inside(&self, command: &str, cwd: &Path) -> bool {
        let Some(words) = shell::plain_words(command) else { return false };
        let inside = |path: &Path| self.roots.iter().any(|root| real_path(path).starts_with(root));
        shell::words_only_look(&words)
            && inside(cwd)
            && shell::possible_paths(&words).all(|word| {
                let path = cwd.join(word);
                // A word that names nothing on disk and stays below is a pattern or a number, not a way out.
                inside(&path)
            })
    }
}

fn place(path: &Path) -> Place {
    Place { given: normalised(path), real: real_path(path) }
}

/// Resolves every link that exists, also those above a file that does not exist yet.
fn real_path(path: &Path) -> PathBuf {
    let path = normalised(path);
    let mut missing = Vec::new();
    let mut existing = path.as_path();
    loop {
        match existing.canonicalize() {
            Ok(real) => return missing.iter().rev().fold(real, |path, name| path.join(name)),
            Err(_) => match (existing.file_name(), existing.parent()) {
                (Some(name), Some(parent)) => {
                    missing.push(name.to_owned());
                    existing = parent;
                }
                // Nothing of it exists: it leads where it says.
                _ => return path,
            },
        }
    }
}

/// Resolves `.` and `..` by their letters.
fn normalised(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}
