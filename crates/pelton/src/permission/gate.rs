//! Resolves what a call touches and asks the rules.

mod below; // what is below directories that are looked through
mod lines; // what the commands of a line touch
mod dirs; // where they are run
mod repository; // which one git works in
mod critical; // what nobody recovers from
mod patterns; // files that match

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

pub(super) use self::patterns::protected_matches;
use super::decision::{Cause, Decision, Verdict};
use super::judge::{HookSays, Request, Target};
use super::mode::Mode;
use super::place::{Base, Here, Kind, Own, Place};
use super::rule::host_of;
use super::rules::RuleSet;
use super::shell;
use crate::places::{Follower, Resolved, lies_in, normalised, resolve};

/// What a call touches, in the words rules are written in. Paths are absolute.
///
/// ```
/// use pelton::permission::Access;
/// use pelton::tools::access_of;
/// use serde_json::json;
///
/// let access = access_of("Read", &json!({"file_path": "src/main.rs"}), "/srv/project".as_ref()).unwrap();
/// assert_eq!(access, Access::Read("/srv/project/src/main.rs".into()));
/// ```
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
    /// Uses a skill of this name.
    Skill(String),
    /// Asks for this address.
    Url(String),
    /// Touches nothing but the conversation.
    Nothing,
    /// Nobody knows what it touches.
    Anything,
}

/// A call, as it is judged.
///
/// ```
/// use pelton::permission::{Access, HookSays, Judged, Mode, Permissions, RuleSet};
///
/// # let dir = tempfile::tempdir()?;
/// # let cwd = dir.path();
/// let permissions = Permissions::new(RuleSet::default(), Mode::Default, cwd.to_owned(), Vec::new(), None);
/// let (input, access) = (serde_json::json!({"command": "ls"}), Access::Shell("ls".to_owned()));
/// let call = Judged { tool: "Bash", input: &input, access: &access, cwd, hook: HookSays::Nothing };
/// assert!(permissions.judge(&call).is_allowed()); // it only looks
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Its input.
    pub input: &'a Value,
    /// What it would touch.
    pub access: &'a Access,
    /// Where its relative words start.
    pub cwd: &'a Path,
    /// What a hook said before.
    pub hook: HookSays<'a>,
}

/// Judges calls for one session.
#[derive(Debug)]
pub struct Gate {
    rules: Arc<RuleSet>,
    mode: Mode,
    base: Arc<Base>,
    /// The spellings of the directory that was asked about last: it is mostly the same.
    last: Mutex<Option<(PathBuf, Arc<[PathBuf]>)>>,
}

impl Gate {
    /// `roots` are the working directories, the one the session started in first.
    pub fn new(rules: Arc<RuleSet>, mode: Mode, roots: &[PathBuf], home: Option<PathBuf>) -> Self {
        Self::with_own(rules, mode, roots, home, &Own::default())
    }

    /// With directories of the session itself.
    pub(super) fn with_own(
        rules: Arc<RuleSet>,
        mode: Mode,
        roots: &[PathBuf],
        home: Option<PathBuf>,
        own: &Own,
    ) -> Self {
        let base = Base {
            start: roots.first().map(|start| spellings(start)).unwrap_or_default(),
            home: home.map(|home| spellings(&home)).unwrap_or_default(),
            roots: roots.iter().flat_map(|root| spellings(root)).collect(),
            own: own.kept.iter().flat_map(|dir| spellings(dir)).collect(),
            notes: own.notes.iter().flat_map(|dir| spellings(dir)).collect(),
        };
        Self { rules, mode, base: Arc::new(base), last: Mutex::default() }
    }

    /// Whether the call may run, and why.
    pub fn judge(&self, call: &Judged<'_>) -> Decision {
        self.judge_at(call, &Found::of(call.access))
    }

    /// The same about a call whose path was followed before: what is judged is what was found then, and no other file.
    pub(crate) fn judge_at(&self, call: &Judged<'_>, found: &Found) -> Decision {
        let here = self.here(call.cwd);
        let Judged { tool, input, hook, .. } = *call;
        let target =
            |target| self.rules.judge(self.mode, &Request { tool, input, target, here: &here, hook });
        match call.access {
            Access::Nothing => target(Target::Nothing),
            Access::Anything => target(Target::Anything),
            Access::Agent(kind) => target(Target::Agent(kind)),
            Access::Person(what_for) => target(Target::Person(what_for)),
            Access::Skill(name) => target(Target::Skill(name)),
            Access::Url(url) => target(Target::Host(host_of(url).as_deref())),
            Access::Read(path) => match found.place() {
                Ok(place) => target(Target::Read(place)),
                Err(error) => unfollowable(path, error),
            },
            Access::Edit(path) => match found.place() {
                Ok(place) => target(Target::Edit(place)),
                Err(error) => unfollowable(path, error),
            },
            Access::Shell(command) => match shell::survey(command) {
                Ok(survey) => {
                    let touched = self.touched(&survey, call.cwd, &here);
                    target(Target::Shell(command, &survey, &touched))
                }
                Err(unclear) => target(Target::Unclear(command, &unclear.to_string())),
            },
        }
    }

    /// Which of the files that a search meets it may show. `cwd` is where relative rules start.
    pub fn readable(&self, cwd: &Path) -> Readable {
        let guards = self.rules.guards_reading();
        Readable(guards.then(|| Arc::new((Arc::clone(&self.rules), self.here(cwd)))))
    }

    fn here(&self, cwd: &Path) -> Here {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let spelled = match &*last {
            Some((dir, spelled)) if dir == cwd => Arc::clone(spelled),
            _ => {
                let spelled: Arc<[PathBuf]> = spellings(cwd).into();
                *last = Some((cwd.to_path_buf(), Arc::clone(&spelled)));
                spelled
            }
        };
        Here { base: Arc::clone(&self.base), cwd: spelled }
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
            Access::Read(path) | Access::Edit(path) => Self(
                place(path, &Follower::default())
                    .map_or_else(|error| Followed::Nowhere(error.to_string()), Followed::Place),
            ),
            _ => Self(Followed::NoPath),
        }
    }

    /// The real path.
    pub fn real(&self) -> Option<&Path> {
        self.place().ok().map(|place| place.real.as_path())
    }

    fn place(&self) -> Result<&Place, &str> {
        match &self.0 {
            Followed::Place(place) => Ok(place),
            Followed::Nowhere(error) => Err(error),
            // Whoever gives a path without having followed it has nothing to be judged.
            Followed::NoPath => Err("nobody looked"),
        }
    }
}

/// Which of the files that a search meets it may show: those that no rule denies or asks about.
///
/// ```
/// use std::path::Path;
///
/// use pelton::tools::ToolCx;
///
/// // A search of your own asks before it shows a file.
/// let cx = ToolCx::outside("/srv/project");
/// let file = Path::new("/srv/project/main.rs");
/// assert!(cx.readable.allows(file, file)); // outside of a session there are no rules
/// ```
#[derive(Debug, Clone, Default)]
pub struct Readable(Option<Arc<(Arc<RuleSet>, Here)>>);

impl Readable {
    /// There is no rule about it.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Whether no rule is about any file.
    pub(crate) fn is_everything(&self) -> bool {
        self.0.is_none()
    }

    /// Whether a file may be shown. `real` is where `given` leads.
    pub fn allows(&self, given: &Path, real: &Path) -> bool {
        self.0.as_deref().is_none_or(|(rules, here)| {
            let place = Place { given: normalised(given), real: real.to_path_buf(), kind: Kind::Plain };
            !rules.guards(&place, here)
        })
    }
}

fn place(path: &Path, follower: &Follower) -> io::Result<Place> {
    let Resolved { path: real, missing } = follower.resolve(path)?;
    let kind = kind_of(&real, missing, follower);
    Ok(Place { given: normalised(path), real, kind })
}

fn kind_of(real: &Path, missing: usize, follower: &Follower) -> Kind {
    if lies_in(real, Path::new("/proc")) || lies_in(real, Path::new("/sys")) {
        return Kind::Special;
    }
    if missing > 0 {
        return Kind::Plain;
    }
    let Ok(Some(about)) = follower.look(real) else { return Kind::Plain };
    let kind = about.file_type();
    if kind.is_dir() {
        Kind::Directory
    } else if kind.is_block_device() || kind.is_char_device() || kind.is_fifo() || kind.is_socket() {
        Kind::Special
    } else if kind.is_file() && about.nlink() > 1 {
        Kind::Linked
    } else {
        Kind::Plain
    }
}

/// Nobody can say what such a path means, so there is nothing to approve.
fn unfollowable(path: &Path, error: &str) -> Decision {
    let why = format!("{} cannot be followed to a file: {error}.", path.display());
    Decision::new(Verdict::Deny, why, Cause::Unfollowable(path.to_path_buf()))
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
mod tests;
