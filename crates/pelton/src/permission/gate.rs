//! Resolves what a call touches and asks the rules.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::rules::{Here, Mode, Place, Request, RuleSet, Target, Verdict};
use super::shell;
use crate::places::{normalised, resolve};

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
}

/// Judges calls for one session.
#[derive(Debug, Clone)]
pub struct Gate {
    rules: Arc<RuleSet>,
    mode: Mode,
    start: Vec<PathBuf>,
    home: Vec<PathBuf>,
    roots: Vec<PathBuf>,
}

impl Gate {
    /// `roots` are the working directories, the one the session started in first.
    pub fn new(rules: Arc<RuleSet>, mode: Mode, roots: &[PathBuf], home: Option<PathBuf>) -> Self {
        Self {
            rules,
            mode,
            start: roots.first().map(|start| spellings(start)).unwrap_or_default(),
            home: home.map(|home| spellings(&home)).unwrap_or_default(),
            roots: roots.iter().flat_map(|root| spellings(root)).collect(),
        }
    }

    /// Whether the call may run. `cwd` is where its relative words start.
    pub fn judge(&self, tool: &str, access: &Access, cwd: &Path) -> Verdict {
        let here = self.here(cwd);
        let target = |target| self.rules.judge(self.mode, &Request { tool, target, here: &here });
        match access {
            Access::Read(path) => match place(path) {
                Ok(place) => target(Target::Read(&place)),
                Err(error) => unfollowable(path, &error),
            },
            Access::Edit(path) => match place(path) {
                Ok(place) => target(Target::Edit(&place)),
                Err(error) => unfollowable(path, &error),
            },
            Access::Shell(command) => {
                let looks_only = looks_only_inside(command, cwd, &here);
                target(Target::Shell { command, looks_only })
            }
        }
    }

    fn here(&self, cwd: &Path) -> Here {
        Here {
            start: self.start.clone(),
            cwd: spellings(cwd),
            home: self.home.clone(),
            roots: self.roots.clone(),
        }
    }
}

/// A looking command is harmless only where the session may look.
fn looks_only_inside(command: &str, cwd: &Path, here: &Here) -> bool {
    let Some(words) = shell::plain_words(command) else { return false };
    let inside = |path: &Path| place(path).is_ok_and(|place| here.contains(&place));
    shell::words_only_look(&words)
        && inside(cwd)
        // A word that names nothing on disk and stays below is a pattern or a number, not a way out.
        && shell::possible_paths(&words).all(|word| inside(&cwd.join(word)))
}

fn place(path: &Path) -> io::Result<Place> {
    Ok(Place { given: normalised(path), real: resolve(path)?.path })
}

/// Nobody can say what such a path means, so there is nothing to approve.
fn unfollowable(path: &Path, error: &io::Error) -> Verdict {
    Verdict::Deny(format!("{} cannot be followed to a file: {error}.", path.display()))
}

/// A directory as it is called and where it really is. Paths may come in either form.
fn spellings(dir: &Path) -> Vec<PathBuf> {
    let mut spellings = vec![normalised(dir)];
    if let Ok(real) = resolve(dir)
        && real.path != spellings[0]
    {
        spellings.push(real.path);
    }
    spellings
}
