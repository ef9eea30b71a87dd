//! What of a checkout differs from its index. One walk looks at the files that the index knows and finds those it does not: in a
//! directory that is open, looking at a file costs the kernel one name and not its whole path.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::index::Indexed;
use crate::limits::{GIT_FILES_LOOKED_AT_MAX, GIT_HASHED_BYTES_MAX, GIT_STATUS_LINES_MAX};

/// The files of a checkout that differ from its index, as `git status --short` shows them, and whether that is not all.
pub fn differing(top: &Path, common_dir: &Path, indexed: &[Indexed]) -> (Vec<String>, bool) {
    let mut look = Look::new(top, indexed);
    // Nothing outside of the repository says what is ignored: that would be the process's own home.
    // A file that is not there, or says nothing that can be understood, ignores nothing.
    let mut excluded = GitignoreBuilder::new(top);
    excluded.add(common_dir.join("info/exclude"));
    let excluded = Ignores { own: excluded.build().unwrap_or_else(|_| Gitignore::empty()), above: None };
    let all = Known { prefix: Vec::new(), at: 0..indexed.len() };
    look.known_directory(top, &all, Some(&excluded));
    look.by_name();
    let Look { lines, is_cut, .. } = look;
    let is_cut = is_cut || indexed.len() > GIT_FILES_LOOKED_AT_MAX || lines.len() > GIT_STATUS_LINES_MAX;
    let told = lines.into_iter().take(GIT_STATUS_LINES_MAX);
    (told.map(|(path, mark)| format!("{mark} {path}")).collect(), is_cut)
}

/// The ignore files that hold in a directory: its own, and those above.
struct Ignores<'a> {
    own: Gitignore,
    above: Option<&'a Ignores<'a>>,
}

impl Ignores<'_> {
    fn hide(&self, path: &Path, is_dir: bool) -> bool {
        match self.own.matched(path, is_dir) {
            Match::Ignore(_) => true,
            Match::Whitelist(_) => false,
            Match::None => self.above.is_some_and(|above| above.hide(path, is_dir)),
        }
    }
}

/// What a directory holds, the repository's own files left out.
struct Listing {
    entries: Vec<(OsString, fs::DirEntry)>,
    ignores: Gitignore,
}

impl Listing {
    fn of(dir: &Path) -> Option<Self> {
        let entries = fs::read_dir(dir).ok()?.flatten().map(|entry| (entry.file_name(), entry));
        let entries: Vec<_> = entries.filter(|(name, _)| name != ".git").collect();
        let says = entries.iter().any(|(name, _)| name == ".gitignore");
        let ignores = if says { Gitignore::new(dir.join(".gitignore")).0 } else { Gitignore::empty() };
        Some(Self { entries, ignores })
    }
}

fn is_dir(entry: &fs::DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir())
}

struct Look<'a> {
    top: &'a Path,
    /// In the order of their paths: what is in a directory stands together.
    indexed: &'a [Indexed],
    /// Which of the index's files the walk came by.
    seen: Vec<bool>,
    entries: usize,
    hashed: u64,
    untracked: usize,
    lines: BTreeSet<(String, &'static str)>,
    is_cut: bool,
}

/// A directory that files of the index are in.
struct Known {
    /// Its path as the index writes it, with a slash at its end; nothing, if it is the top.
    prefix: Vec<u8>,
    /// Where in the index those files stand.
    at: Range<usize>,
}

impl<'a> Look<'a> {
    fn new(top: &'a Path, indexed: &'a [Indexed]) -> Self {
        let (seen, lines) = (vec![false; indexed.len()], BTreeSet::new());
        Self { top, indexed, seen, entries: 0, hashed: 0, untracked: 0, lines, is_cut: false }
    }

    /// What the index knows of a directory by its files; nothing, if it knows none there.
    fn known(&self, above: &Known, name: &[u8]) -> Option<Known> {
        let prefix = [&*above.prefix, name, b"/"].concat();
        let files = &self.indexed[above.at.clone()];
        let first = files.partition_point(|file| *file.path < *prefix);
        let count = files[first..].partition_point(|file| file.path.starts_with(&prefix));
        let at = above.at.start + first..above.at.start + first + count;
        (!at.is_empty()).then_some(Known { prefix, at })
    }

    /// The file of the index that has this name in a directory.
    fn file(&self, known: &Known, name: &[u8]) -> Option<usize> {
        let files = &self.indexed[known.at.clone()];
        let found = files.binary_search_by(|file| file.path[known.prefix.len()..].cmp(name));
        found.ok().map(|at| known.at.start + at)
    }

    /// Looks through a directory that files of the index are in, and those below it.
    fn known_directory(&mut self, dir: &Path, known: &Known, above: Option<&Ignores<'_>>) {
        let Some(Listing { entries, ignores }) = Listing::of(dir) else { return };
        let ignores = Ignores { own: ignores, above };
        let mut below = Vec::new();
        for (name, entry) in &entries {
            if !self.may_go_on() {
                return;
            }
            if let Some(at) = self.file(known, name.as_bytes()) {
                self.seen[at] = true;
                self.judge(at, entry.metadata().ok().as_ref());
                continue;
            }
            let inside = if is_dir(entry) { self.known(known, name.as_bytes()) } else { None };
            let path = dir.join(name);
            if let Some(inside) = inside {
                below.push((path, inside));
            } else if self.untracked <= GIT_STATUS_LINES_MAX && !ignores.hide(&path, is_dir(entry)) {
                let shown = String::from_utf8_lossy(&[&*known.prefix, name.as_bytes()].concat()).into_owned();
                if !is_dir(entry) {
                    self.untracked += 1;
                    self.lines.insert((shown, "??"));
                } else if self.has_new_file(&path, &ignores) {
                    self.untracked += 1;
                    self.lines.insert((format!("{shown}/"), "??"));
                }
            }
        }
        // Before going deeper: as long as one of them is there, its directory stays open.
        drop(entries);
        for (path, inside) in below {
            if !ignores.hide(&path, true) {
                self.known_directory(&path, &inside, Some(&ignores));
            }
        }
    }

    /// Whether a directory that the index knows nothing of has a file that is not ignored.
    fn has_new_file(&mut self, dir: &Path, above: &Ignores<'_>) -> bool {
        let Some(Listing { entries, ignores }) = Listing::of(dir) else { return false };
        let ignores = Ignores { own: ignores, above: Some(above) };
        let mut below = Vec::new();
        for (name, entry) in &entries {
            if !self.may_go_on() {
                return false;
            }
            let path = dir.join(name);
            if ignores.hide(&path, is_dir(entry)) {
                continue;
            }
            if !is_dir(entry) {
                return true;
            }
            below.push(path);
        }
        drop(entries);
        below.iter().any(|dir| self.has_new_file(dir, &ignores))
    }

    /// Whether more may be looked at.
    fn may_go_on(&mut self) -> bool {
        self.entries += 1;
        self.is_cut |= self.entries > GIT_FILES_LOOKED_AT_MAX || self.untracked > GIT_STATUS_LINES_MAX;
        self.entries <= GIT_FILES_LOOKED_AT_MAX
    }

    /// Looks at the files that the walk did not come by: most of them are gone.
    fn by_name(&mut self) {
        for at in 0..self.indexed.len().min(GIT_FILES_LOOKED_AT_MAX) {
            if !self.seen[at] {
                let path = self.top.join(OsStr::from_bytes(&self.indexed[at].path));
                self.judge(at, fs::symlink_metadata(path).ok().as_ref());
            }
        }
    }

    fn judge(&mut self, at: usize, about: Option<&Metadata>) {
        let file = &self.indexed[at];
        if let Some(mark) = mark(self.top, file, about, &mut self.hashed) {
            self.lines.insert((String::from_utf8_lossy(&file.path).into_owned(), mark));
        }
    }
}

/// How a file differs from what the index says, if it does.
fn mark(top: &Path, file: &Indexed, about: Option<&Metadata>, hashed: &mut u64) -> Option<&'static str> {
    const SUBMODULE: u32 = 0o160_000;
    const LINK: u32 = 0o120_000;
    if file.in_conflict {
        return Some("UU");
    }
    if file.left_alone || file.mode == SUBMODULE {
        return None;
    }
    let Some(about) = about else { return Some(" D") };
    if about.is_symlink() != (file.mode == LINK) || about.is_dir() {
        return Some(" M");
    }
    // The index keeps the lower half of these figures.
    let modified = (about.mtime() as u32, about.mtime_nsec() as u32);
    let is_same_size = about.size() as u32 == file.size;
    if is_same_size && modified == file.modified || about.is_symlink() {
        return None;
    }
    if !is_same_size || about.size() > GIT_HASHED_BYTES_MAX.saturating_sub(*hashed) {
        return Some(" M");
    }
    *hashed += about.size();
    let content = fs::read(top.join(OsStr::from_bytes(&file.path))).ok()?;
    (blob_hash(&content) != file.hash).then_some(" M")
}

fn blob_hash(content: &[u8]) -> [u8; 20] {
    let mut hasher = ring::digest::Context::new(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY);
    hasher.update(format!("blob {}\0", content.len()).as_bytes());
    hasher.update(content);
    let mut hash = [0; 20];
    hash.copy_from_slice(hasher.finish().as_ref());
    hash
}
