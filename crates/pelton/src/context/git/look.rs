//! What of a checkout differs from its index. One walk looks at the files that the index knows and finds those it does not: in a
//! directory that is open, looking at a file costs the kernel one name and not its whole path.

use std::collections::BTreeSet;
use std::ffi::{CStr, OsStr};
use std::fs;
use std::ops::{ControlFlow, Range};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use nix::dir::{Dir, Type};
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat, lstat};

use crate::limits::{GIT_FILES_LOOKED_AT_MAX, GIT_HASHED_BYTES_MAX, GIT_STATUS_LINES_MAX};
use crate::repository::index::Indexed;

/// The files of a checkout that differ from its index, as `git status --short` shows them, and whether that is not all.
pub fn differing(top: &Path, common_dir: &Path, indexed: &[Indexed<'_>]) -> (Vec<String>, bool) {
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

/// What is in a directory, but the repository itself.
struct Entry<'a> {
    dir: BorrowedFd<'a>,
    name: &'a CStr,
    kind: Option<Type>,
}

impl Entry<'_> {
    fn about(&self) -> Option<FileStat> {
        fstatat(self.dir, self.name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()
    }

    fn is_dir(&self) -> bool {
        match self.kind {
            Some(kind) => kind == Type::Directory,
            // Not every file system says it with the name.
            None => self.about().is_some_and(|about| kind_of(&about) == SFlag::S_IFDIR),
        }
    }
}

/// Goes through a directory, as long as it is wanted, and finds out what its own ignore file says. `None` if it cannot be read.
fn go_through(dir: &Path, mut take: impl FnMut(&Entry<'_>) -> ControlFlow<()>) -> Option<Gitignore> {
    let open = nix::fcntl::open(dir, OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty());
    let dir_fd = open.ok()?;
    let mut listing = Dir::from_fd(dir_fd.try_clone().ok()?).ok()?;
    let mut says_what_is_ignored = false;
    for entry in listing.iter().map_while(Result::ok) {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b".." | b".git") {
            continue;
        }
        says_what_is_ignored |= name == c".gitignore";
        if take(&Entry { dir: dir_fd.as_fd(), name, kind: entry.file_type() }).is_break() {
            break;
        }
    }
    Some(if says_what_is_ignored { Gitignore::new(dir.join(".gitignore")).0 } else { Gitignore::empty() })
}

fn kind_of(about: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(about.st_mode) & SFlag::S_IFMT
}

/// What the index does not know, or knows as a directory.
struct Other {
    name: Box<[u8]>,
    is_dir: bool,
}

impl Other {
    fn of(entry: &Entry<'_>) -> Self {
        Self { name: entry.name.to_bytes().into(), is_dir: entry.is_dir() }
    }

    fn path(&self, dir: &Path) -> PathBuf {
        dir.join(OsStr::from_bytes(&self.name))
    }
}

struct Look<'a> {
    top: &'a Path,
    /// In the order of their paths: what is in a directory stands together.
    indexed: &'a [Indexed<'a>],
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
    fn new(top: &'a Path, indexed: &'a [Indexed<'a>]) -> Self {
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
        let mut others = Vec::new();
        let ignores = go_through(dir, |entry| {
            if !self.may_go_on() {
                return ControlFlow::Break(());
            }
            match self.file(known, entry.name.to_bytes()) {
                Some(at) => {
                    self.seen[at] = true;
                    self.judge(at, entry.about().as_ref());
                }
                None => others.push(Other::of(entry)),
            }
            ControlFlow::Continue(())
        });
        let Some(own) = ignores else { return };
        let ignores = Ignores { own, above };
        for other in others {
            let path = other.path(dir);
            let inside = if other.is_dir { self.known(known, &other.name) } else { None };
            if inside.is_none() && self.untracked > GIT_STATUS_LINES_MAX || ignores.hide(&path, other.is_dir)
            {
                continue;
            }
            if let Some(inside) = inside {
                self.known_directory(&path, &inside, Some(&ignores));
            } else if !other.is_dir || self.has_new_file(&path, &ignores) {
                self.untracked += 1;
                let shown = String::from_utf8_lossy(&[&*known.prefix, &*other.name].concat()).into_owned();
                self.lines.insert((if other.is_dir { shown + "/" } else { shown }, "??"));
            }
        }
    }

    /// Whether a directory that the index knows nothing of has a file that is not ignored.
    fn has_new_file(&mut self, dir: &Path, above: &Ignores<'_>) -> bool {
        let mut others = Vec::new();
        let ignores = go_through(dir, |entry| {
            if !self.may_go_on() {
                return ControlFlow::Break(());
            }
            others.push(Other::of(entry));
            ControlFlow::Continue(())
        });
        let Some(own) = ignores else { return false };
        let ignores = Ignores { own, above: Some(above) };
        others.retain(|other| !ignores.hide(&other.path(dir), other.is_dir));
        let has_file = others.iter().any(|other| !other.is_dir);
        has_file || others.iter().any(|other| self.has_new_file(&other.path(dir), &ignores))
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
                self.judge(at, lstat(&path).ok().as_ref());
            }
        }
    }

    fn judge(&mut self, at: usize, about: Option<&FileStat>) {
        let file = &self.indexed[at];
        if let Some(mark) = mark(self.top, file, about, &mut self.hashed) {
            self.lines.insert((String::from_utf8_lossy(&file.path).into_owned(), mark));
        }
    }
}

/// How a file differs from what the index says, if it does.
fn mark(top: &Path, file: &Indexed<'_>, about: Option<&FileStat>, hashed: &mut u64) -> Option<&'static str> {
    const SUBMODULE: u32 = 0o160_000;
    const LINK: u32 = 0o120_000;
    if file.in_conflict {
        return Some("UU");
    }
    if file.left_alone || file.mode == SUBMODULE {
        return None;
    }
    let Some(about) = about else { return Some(" D") };
    let is_link = kind_of(about) == SFlag::S_IFLNK;
    if is_link != (file.mode == LINK) || kind_of(about) == SFlag::S_IFDIR {
        return Some(" M");
    }
    // The index keeps the lower half of these figures.
    let modified = (about.st_mtime as u32, about.st_mtime_nsec as u32);
    let is_same_size = about.st_size as u32 == file.size;
    if is_same_size && modified == file.modified || is_link {
        return None;
    }
    let size = about.st_size as u64;
    if !is_same_size || size > GIT_HASHED_BYTES_MAX.saturating_sub(*hashed) {
        return Some(" M");
    }
    *hashed += size;
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
