//! Paths as they are judged: as given and where they lead, what they are relative to, and which of them steer other
//! programs. Pure: they arrive resolved.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pelton_sandbox::protected;

/// A path as given and where it really leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub given: PathBuf,
    pub real: PathBuf,
    pub kind: Kind,
}

/// What is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file with one name, a directory, or nothing yet.
    Plain,
    /// A directory.
    Directory,
    /// A file that has other names too: who changes it changes those.
    Linked,
    /// A device, a pipe, a socket, or something the kernel makes up.
    Special,
}

/// What relative words mean. Each directory is there in all its spellings: as it was given, and resolved.
#[derive(Debug, Clone)]
pub(super) struct Here {
    pub base: Arc<Base>,
    pub cwd: Arc<[PathBuf]>,
}

/// The same, for a whole session.
#[derive(Debug, Default)]
pub(super) struct Base {
    pub start: Vec<PathBuf>,
    pub home: Vec<PathBuf>,
    /// The working directories.
    pub roots: Vec<PathBuf>,
    /// Directories of the session itself: what it has put there it may read.
    pub own: Vec<PathBuf>,
}

impl Here {
    /// Whether a path stays in the working directories, both by its letters and by where it leads.
    pub fn contains(&self, place: &Place) -> bool {
        below(&self.base.roots, place)
    }

    /// Whether a file may be read because it is in a working directory, or in one of the session itself.
    pub fn may_be_read(&self, place: &Place) -> bool {
        self.contains(place) || below(&self.base.own, place)
    }
}

fn below(roots: &[PathBuf], place: &Place) -> bool {
    let inside = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    inside(&place.given) && inside(&place.real)
}

/// The protected name a path goes through, if any. Case does not count: some file systems ignore it.
pub(super) fn protected(place: &Place) -> Option<String> {
    let by_name = |path: &Path| protected_name(path);
    by_name(&place.given).or_else(|| (place.given != place.real).then(|| by_name(&place.real)).flatten())
}

fn protected_name(path: &Path) -> Option<String> {
    let names: Vec<String> =
        path.components().map(|part| part.as_os_str().to_string_lossy().to_lowercase()).collect();
    for (at, name) in names.iter().enumerate() {
        let next = names.get(at + 1).map(String::as_str);
        match name.as_str() {
            // Checkouts that the program itself makes there are worked in.
            ".claude" if next == Some("worktrees") && names.len() > at + 2 => {}
            name if is_protected_dir(name) => return Some(name.to_owned()),
            ".config" if next == Some("git") => return Some(".config/git".to_owned()),
            ".config" if next == Some("fish") => return Some(".config/fish".to_owned()),
            _ => {}
        }
    }
    names.last().filter(|name| protected::find(name.as_ref()).is_some()).cloned()
}

fn is_protected_dir(name: &str) -> bool {
    protected::find(name.as_ref()).is_some_and(|known| known.kind == protected::Kind::Directory)
}
