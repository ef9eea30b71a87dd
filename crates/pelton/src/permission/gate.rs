//! Resolves what a call touches and asks the rules.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::rules::{Cause, Here, HookSays, Mode, Place, Request, RuleSet, Target, Verdict, question};
use super::shell::{self, Reach};
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
    /// Starts an agent of this kind, whose calls are judged by themselves.
    Agent(String),
    /// Waits for a person, in every mode; the text says what for.
    Person(String),
    /// Touches nothing but the conversation.
    Nothing,
}

/// Judges calls for one session.
#[derive(Debug, Clone)]
pub struct Gate {
    rules: Arc<RuleSet>,
    mode: Mode,
    start: Vec<PathBuf>,
    home: Vec<PathBuf>,
    roots: Vec<PathBuf>,
    own: Vec<PathBuf>,
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
            own: Vec::new(),
        }
    }

    /// With directories of the session itself: what it has put there it may read.
    #[must_use]
    pub fn with_own(mut self, dirs: &[PathBuf]) -> Self {
        self.own = dirs.iter().flat_map(|dir| spellings(dir)).collect();
        self
    }

    /// Whether the call may run. `cwd` is where its relative words start.
    pub fn judge(&self, tool: &str, access: &Access, cwd: &Path, hook: HookSays<'_>) -> Verdict {
        self.judge_at(tool, access, &Found::of(access), cwd, hook)
    }

    /// The same about a call whose path was followed before: what is judged is what was found then, and no other file.
    pub(crate) fn judge_at(
        &self,
        tool: &str,
        access: &Access,
        found: &Found,
        cwd: &Path,
        hook: HookSays<'_>,
    ) -> Verdict {
        let here = self.here(cwd);
        let target = |target| self.rules.judge(self.mode, &Request { tool, target, here: &here, hook });
        match (access, &found.0) {
            (Access::Nothing, _) => target(Target::Nothing),
            (Access::Person(what_for), _) => match target(Target::Nothing) {
                Verdict::Deny(why) => Verdict::Deny(why),
                Verdict::Allow | Verdict::Ask { .. } => question(self.mode, what_for.clone(), Cause::Person),
            },
            (Access::Agent(kind), _) => target(Target::Agent(kind)),
            (Access::Read(_), Followed::Place(place)) => target(Target::Read(place)),
            (Access::Edit(_), Followed::Place(place)) => target(Target::Edit(place)),
            (Access::Read(path) | Access::Edit(path), Followed::Nowhere(error)) => unfollowable(path, error),
            // Whoever gives a path without having followed it has nothing to be judged.
            (Access::Read(path) | Access::Edit(path), Followed::NoPath) => {
                unfollowable(path, "nobody looked")
            }
            (Access::Shell(command), _) => {
                let (looks_only, names) = self.survey(command, cwd, &here);
                target(Target::Shell { command, looks_only, names: &names })
            }
        }
    }

    /// Which of the files that a search meets it may show. `cwd` is where relative rules start.
    pub fn readable(&self, cwd: &Path) -> Readable {
        let guards = self.rules.guards_reading();
        Readable(guards.then(|| Arc::new((Arc::clone(&self.rules), self.here(cwd)))))
    }

    /// Whether a command does nothing but look, and only where the session may; and the files it names, as far as
    /// there are rules that want to know.
    fn survey(&self, command: &str, cwd: &Path, here: &Here) -> (bool, Vec<Place>) {
        let Some(words) = shell::plain_words(command) else { return (false, Vec::new()) };
        let guarded = self.rules.guards_reading();
        let Some(look) = shell::look(&words) else {
            // What this program does with its words nobody knows. If one is a file that must not be read, it stops
            // here all the same.
            let names = shell::possible_paths(&words).filter_map(|word| place(&cwd.join(word)).ok());
            return (false, if guarded { names.collect() } else { Vec::new() });
        };
        let places: Vec<Place> = look.paths.iter().filter_map(|word| place(&cwd.join(word)).ok()).collect();
        // A word that cannot be followed may lead anywhere.
        let all_followed = places.len() == look.paths.len();
        let enters = places.iter().any(|place| place.real.is_dir());
        let shows_unnamed = match look.reach {
            Reach::Named => false,
            Reach::Below => guarded && enters,
            Reach::BelowAndLinked => enters,
            Reach::Unnamed => guarded,
        };
        let inside = place(cwd).is_ok_and(|cwd| here.contains(&cwd))
            // A word that names nothing on disk and stays below is a pattern or a number, not a way out.
            && places.iter().all(|place| here.may_be_read(place));
        (all_followed && inside && !shows_unnamed, places)
    }

    fn here(&self, cwd: &Path) -> Here {
        Here {
            start: self.start.clone(),
            cwd: spellings(cwd),
            home: self.home.clone(),
            roots: self.roots.clone(),
            own: self.own.clone(),
        }
    }
}

/// Where the path of a call leads, followed once for all who judge or open it.
#[derive(Debug)]
pub(crate) struct Found(Followed);

#[derive(Debug)]
enum Followed {
    Place(Place),
    /// It cannot be followed: why.
    Nowhere(String),
    /// The call names no path.
    NoPath,
}

impl Found {
    /// Follows the path of a call.
    pub fn of(access: &Access) -> Self {
        match access {
            Access::Read(path) | Access::Edit(path) => {
                Self(place(path).map_or_else(|error| Followed::Nowhere(error.to_string()), Followed::Place))
            }
            Access::Shell(_) | Access::Agent(_) | Access::Person(_) | Access::Nothing => {
                Self(Followed::NoPath)
            }
        }
    }

    /// The real path.
    pub fn real(&self) -> Option<&Path> {
        match &self.0 {
            Followed::Place(place) => Some(&place.real),
            Followed::Nowhere(_) | Followed::NoPath => None,
        }
    }
}

/// Which of the files that a search meets it may show: those that no rule denies or asks about.
#[derive(Debug, Clone, Default)]
pub struct Readable(Option<Arc<(Arc<RuleSet>, Here)>>);

impl Readable {
    /// There is no rule about it.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Whether a file may be shown. `real` is where `given` leads.
    pub fn allows(&self, given: &Path, real: &Path) -> bool {
        self.0.as_deref().is_none_or(|(rules, here)| {
            let place = Place { given: normalised(given), real: real.to_path_buf() };
            !rules.guards(&place, here)
        })
    }
}

fn place(path: &Path) -> io::Result<Place> {
    Ok(Place { given: normalised(path), real: resolve(path)?.path })
}

/// Nobody can say what such a path means, so there is nothing to approve.
fn unfollowable(path: &Path, error: &str) -> Verdict {
    Verdict::Deny(format!("{} cannot be followed to a file: {error}.", path.display()))
}

/// A directory where it really is and, when that is the same place, by the letters it is called. Paths may come in
/// either form.
fn spellings(dir: &Path) -> Vec<PathBuf> {
    let Ok(real) = resolve(dir) else { return Vec::new() };
    let called = normalised(dir);
    let is_same = called != real.path && resolve(&called).is_ok_and(|by_letters| by_letters == real);
    std::iter::once(real.path).chain(is_same.then_some(called)).collect()
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
