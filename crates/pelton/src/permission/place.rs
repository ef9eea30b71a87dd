//! Paths as they are judged: as given and where they lead, what they are relative to, and which of them steer other
//! programs. Pure: they arrive resolved.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pelton_sandbox::protected;

use crate::places::lies_in;

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
#[derive(Debug, Clone, Default)]
pub(super) struct Base {
    pub start: Vec<PathBuf>,
    pub home: Vec<PathBuf>,
    /// The working directories.
    pub roots: Vec<PathBuf>,
    /// Directories of the session itself: what it has put there it may read.
    pub own: Vec<PathBuf>,
    /// Directories in which the model keeps notes.
    pub notes: Vec<PathBuf>,
}

/// Directories of a session itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Own {
    /// What the session has put there it may read.
    pub kept: Vec<PathBuf>,
    /// The model keeps notes there.
    pub notes: Vec<PathBuf>,
}

impl Here {
    /// Whether a path stays in the working directories, both by its letters and by where it leads.
    pub fn contains(&self, place: &Place) -> bool {
        below(&self.base.roots, place)
    }

    /// Whether a file may be read because it is in a working directory, or in one of the session itself.
    pub fn may_be_read(&self, place: &Place) -> bool {
        self.contains(place) || below(&self.base.own, place) || below(&self.base.notes, place)
    }

    /// Whether a file is one of the model's own notes: Markdown in their directory, which is there for nothing else. What
    /// steers programs is no note wherever it lies.
    pub fn is_note(&self, place: &Place) -> bool {
        let is_markdown = place.real.extension().is_some_and(|end| end == "md");
        let steers = |path: &Path| {
            let inside = self.base.notes.iter().find_map(|dir| path.strip_prefix(dir).ok());
            inside.and_then(protected_name).is_some()
        };
        is_markdown
            && place.kind == Kind::Plain
            && below(&self.base.notes, place)
            && !steers(&place.given)
            && !steers(&place.real)
    }
}

fn below(roots: &[PathBuf], place: &Place) -> bool {
    let inside = |path: &Path| roots.iter().any(|root| lies_in(path, root));
    inside(&place.given) && inside(&place.real)
}

/// The protected name a path goes through, if any. Case does not count: some file systems ignore it.
pub(super) fn protected(place: &Place) -> Option<String> {
    let by_name = |path: &Path| protected_name(path);
    by_name(&place.given).or_else(|| (place.given != place.real).then(|| by_name(&place.real)).flatten())
}

/// Whether a path names a protected file, or something in a protected directory.
pub(super) fn is_below_protected(path: &Path) -> bool {
    let is_file = |name| protected::find(name).is_some_and(|known| known.kind == protected::Kind::File);
    path.file_name().is_some_and(is_file)
        || path.parent().is_some_and(|above| protected_name(above).is_some())
}

/// Whether a path goes by its letters through a protected name.
pub(super) fn is_named_protected(path: &Path) -> bool {
    protected_name(path).is_some()
}

fn protected_name(path: &Path) -> Option<String> {
    let shown = |name: &OsStr| Some(name.to_string_lossy().to_lowercase());
    let mut names = path.iter().peekable();
    while let Some(name) = names.next() {
        let next = names.peek().copied();
        let is =
            |other: Option<&OsStr>, meant: &str| other.is_some_and(|other| other.eq_ignore_ascii_case(meant));
        let Some(known) = protected::find(name) else {
            // Names of directories that steer programs, in one that others write to.
            if next.is_some() && is(Some(name), ".config") {
                let steering = ["git", "fish"].into_iter().find(|steering| is(next, steering));
                if let Some(steering) = steering {
                    return Some(format!(".config/{steering}"));
                }
            }
            continue;
        };
        let is_directory = known.kind == protected::Kind::Directory;
        // Checkouts that the program itself makes there are worked in.
        let is_worked_in = known.name == protected::CONFIGURATION
            && is(next, protected::CONFIGURATION_FREE)
            && names.clone().nth(1).is_some();
        if !is_worked_in && (is_directory || next.is_none()) {
            return shown(name);
        }
    }
    None
}
