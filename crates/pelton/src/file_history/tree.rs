//! What the working directories look like. The first look keeps every file; later ones ask the system about what is known
//! already, and read only what has another mark than before.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ignore::WalkState;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open};
use nix::sys::stat::{FileStat, Mode, fstat, fstatat};

use super::at::{self, Seen};
use super::state::{Change, Mark, SavedPath, State};
use super::store::Store;
use super::watch::Watch;
use crate::limits::{FILE_HISTORY_FILES_MAX, SEARCH_THREADS_MAX};
use crate::tools::search::walker;

/// What is known of the trees.
#[derive(Debug, Default)]
pub struct Tree {
    dirs: BTreeMap<PathBuf, Dir>,
    /// Roots that have too much in them.
    given_up: BTreeSet<PathBuf>,
    /// The ignore rules that are not in the trees themselves.
    rules: HashMap<PathBuf, Option<Mark>>,
    /// Says whether anything happened since the last look.
    watch: Watch,
}

#[derive(Debug)]
struct Dir {
    mark: Mark,
    /// Like [`Entry::racy`].
    racy: bool,
    entries: BTreeMap<OsString, Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    mark: Mark,
    state: State,
    /// It was changed so shortly before it was looked at that another change may have given it the same mark.
    racy: bool,
}

/// How to look.
pub struct Survey<'a> {
    pub roots: &'a [PathBuf],
    /// Directories that are not looked into.
    pub without: &'a [PathBuf],
    pub file_bytes_max: u64,
    /// The time, in nanoseconds.
    pub now_ns: i64,
    /// When what is looked for began.
    pub begun_ns: i64,
    /// The first look takes too long.
    pub is_late: &'a (dyn Fn() -> bool + Sync),
}

/// What a look brought.
#[derive(Debug, Default)]
pub struct Look {
    /// What is other than it was, in trees that were known.
    pub changes: Vec<Change>,
    /// What there is to remember.
    pub news: Vec<(SavedPath, Mark, State)>,
}

/// Marks nearer than that to the time of looking may stand for two contents: clocks of file systems tick slowly.
const RACY_NS: i64 = 100_000_000;

/// How far the clock of a file system may be behind.
const TICK_NS: i64 = 10_000_000;

/// What a thread finds in its share of known directories.
enum Finding {
    /// The directory is gone.
    NoDir(PathBuf),
    /// Names came or went.
    Relist(PathBuf, Mark),
    /// Something has another mark, or is gone.
    Other(PathBuf),
}

impl Tree {
    /// Remembers what an earlier process saw.
    pub fn recall(&mut self, entries: Vec<(SavedPath, Mark, State)>) {
        for (SavedPath(path), mark, state) in entries {
            // What it saw it may have seen in the middle of a tick.
            self.put(&path, mark, state, true);
        }
    }

    /// Whether a path is in a tree that commands are watched in.
    pub fn given_up(&self) -> impl Iterator<Item = &Path> {
        self.given_up.iter().map(PathBuf::as_path)
    }

    /// The directories that are looked into.
    pub fn dirs(&self) -> impl Iterator<Item = &Path> {
        self.dirs.keys().map(PathBuf::as_path)
    }

    /// Whether something at this path is known.
    pub fn knows(&self, path: &Path) -> bool {
        self.dirs.contains_key(path) || self.entry(path).is_some()
    }

    /// Files that are known, but whose content is not kept.
    pub fn unkept(&self) -> impl Iterator<Item = (PathBuf, super::state::Unkept)> {
        self.dirs.iter().flat_map(|(path, dir)| {
            dir.entries.iter().filter_map(move |(name, entry)| match entry.state {
                State::Unkept { why, .. } => Some((path.join(name), why)),
                _ => None,
            })
        })
    }

    /// Takes note of what a file tool did.
    pub fn note(&mut self, path: &Path, state: &State) -> Option<(SavedPath, Mark, State)> {
        let watched = path.parent().is_some_and(|parent| self.dirs.contains_key(parent));
        if !watched {
            return None;
        }
        let mark = at::mark(path).unwrap_or_default();
        self.put(path, mark, state.clone(), true);
        Some((path.into(), mark, state.clone()))
    }

    /// Whether everything is certainly as it was when it was last looked at.
    pub fn is_as_seen(&mut self, roots: &[PathBuf]) -> bool {
        let roots = outermost(roots);
        let is_same = |root: &PathBuf| {
            // Something else may be there by now, with the old one elsewhere and unchanged.
            let dir = self.dirs.get(root).zip(at::mark(root));
            let rules = self.rules.get(&exclude_file(root));
            dir.is_some_and(|(dir, now)| is_same_list(now, dir.mark))
                && rules == Some(&at::mark(&exclude_file(root)))
        };
        roots.iter().filter(|root| !self.given_up.contains(*root)).all(is_same)
            && self.watch.heard_nothing(&roots, self.dirs.keys().map(PathBuf::as_path))
    }

    /// Looks at everything again.
    pub fn look(&mut self, survey: &Survey<'_>, store: &mut Store) -> io::Result<Look> {
        let roots = outermost(survey.roots);
        self.watch.begin(&roots, self.dirs.keys().map(PathBuf::as_path));
        let mut look = Look::default();
        let (known, fresh): (Vec<_>, Vec<_>) = roots
            .into_iter()
            .filter(|root| !self.given_up.contains(root))
            .partition(|root| self.dirs.contains_key(root));
        self.look_again(&known, survey, store, &mut look)?;
        for root in fresh {
            let Some(paths) = walk(&root, survey) else {
                self.given_up.insert(root);
                continue;
            };
            for (path, seen) in read_all(paths, survey, store)? {
                self.take(path, seen, survey, &mut look.news);
            }
            self.rules.insert(exclude_file(&root), at::mark(&exclude_file(&root)));
        }
        Ok(look)
    }

    fn look_again(
        &mut self,
        roots: &[PathBuf],
        survey: &Survey<'_>,
        store: &mut Store,
        look: &mut Look,
    ) -> io::Result<()> {
        let findings = self.compare(roots);
        let mut others = Vec::new();
        let mut relist = Vec::new();
        let mut gone = Vec::new();
        for finding in findings {
            match finding {
                Finding::NoDir(path) => gone.push(path),
                Finding::Relist(path, mark) => relist.push((path, mark)),
                Finding::Other(path) => others.push(path),
            }
        }
        let mut rules_changed = others.iter().any(|path| is_rule_file(path));
        for root in roots {
            let file = exclude_file(root);
            let mark = at::mark(&file);
            rules_changed |= self.rules.insert(file, mark).is_some_and(|before| before != mark);
        }
        // What is there that was not known: in directories whose names changed, or anywhere when the rules did.
        let mut listed: BTreeSet<PathBuf> = BTreeSet::new();
        for (dir, _) in relist.iter().filter(|(dir, _)| !is_closed(dir)) {
            let children = children(dir, survey);
            rules_changed |= children.iter().any(|path| is_rule_file(path) && !self.knows(path));
            for child in children {
                if !self.dirs.contains_key(&child)
                    && child.symlink_metadata().is_ok_and(|about| about.is_dir())
                {
                    listed.extend(walk(&child, survey).unwrap_or_default());
                }
                listed.insert(child);
            }
        }
        if rules_changed {
            listed.clear();
            roots.iter().for_each(|root| listed.extend(walk(root, survey).unwrap_or_default()));
        }
        // Names that are known but were not listed are gone, or ignored from now on.
        let searched = |dir: &Path| rules_changed || relist.iter().any(|(listed, _)| listed == dir);
        let mut unlisted: Vec<PathBuf> = Vec::new();
        for (path, dir) in &self.dirs {
            if !roots.iter().any(|root| path.starts_with(root)) {
                continue;
            }
            if searched(path) {
                unlisted.extend(
                    dir.entries.keys().map(|name| path.join(name)).filter(|path| !listed.contains(path)),
                );
            }
            if path.parent().is_some_and(&searched) && !listed.contains(path) && !roots.contains(path) {
                unlisted.push(path.clone());
            }
        }
        let mut replaced = BTreeMap::new();
        // What cannot be seen behind a directory that lets nobody in is there as it was, as far as anybody can say.
        let mut closed: HashMap<PathBuf, bool> = HashMap::new();
        unlisted.retain(|path| {
            let dir = path.parent().unwrap_or(path);
            let is_closed = *closed.entry(dir.to_path_buf()).or_insert_with(|| is_closed(dir));
            !is_closed && !at::is_hidden(path)
        });
        for path in gone.into_iter().chain(unlisted) {
            self.forget(&path, look, &mut replaced);
        }
        let news = listed.into_iter().filter(|path| !self.knows(path));
        let candidates: BTreeSet<PathBuf> = others.into_iter().chain(news).collect();
        let seen = read_all(candidates.into_iter().collect(), survey, store)?;

        let mut created: BTreeSet<PathBuf> = BTreeSet::new();
        for (path, seen) in seen {
            let before = replaced.remove(&path).unwrap_or_else(|| self.state(&path));
            let is_new = before == State::Absent && seen.state != State::Absent;
            if is_new && rules_changed && !created.contains(path.parent().unwrap_or(&path)) {
                // The rules changed, so this may have been there all the time. Only what was born since is the call's.
                let born_ns = at::born_ns(&path).unwrap_or(0);
                if born_ns.saturating_add(TICK_NS) < survey.begun_ns {
                    self.take(path, seen, survey, &mut look.news);
                    continue;
                }
            }
            if is_new && seen.state.is_dir() {
                created.insert(path.clone());
            }
            if before != seen.state {
                look.changes.push(Change { path: path.as_path().into(), before, after: seen.state.clone() });
            }
            self.take(path, seen, survey, &mut look.news);
        }
        for (path, mark) in relist {
            if let Some(dir) = self.dirs.get_mut(&path) {
                let [before, after] = [dir.mark, mark].map(|mark| State::Dir { mode: mark.permissions() });
                dir.mark = mark;
                dir.racy = is_racy(mark, survey);
                look.news.push((path.as_path().into(), mark, after.clone()));
                if before != after {
                    look.changes.push(Change { path: SavedPath(path), before, after });
                }
            }
        }
        Ok(())
    }

    /// Asks the system about everything that is known.
    fn compare(&self, roots: &[PathBuf]) -> Vec<Finding> {
        let known: Vec<(&PathBuf, &Dir)> =
            self.dirs.iter().filter(|(path, _)| roots.iter().any(|root| path.starts_with(root))).collect();
        let share = known.len().div_ceil(SEARCH_THREADS_MAX).max(1);
        std::thread::scope(|scope| {
            let threads: Vec<_> = known
                .chunks(share)
                .map(|share| {
                    scope.spawn(move || {
                        share.iter().flat_map(|(path, dir)| compare(path, dir)).collect::<Vec<_>>()
                    })
                })
                .collect();
            // A thread that panicked found nothing; the next look will.
            threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
        })
    }

    /// What was at a path when it was last looked at.
    pub fn state(&self, path: &Path) -> State {
        if let Some(dir) = self.dirs.get(path) {
            return State::Dir { mode: dir.mark.permissions() };
        }
        self.entry(path).map_or(State::Absent, |entry| entry.state.clone())
    }

    fn entry(&self, path: &Path) -> Option<&Entry> {
        self.dirs.get(path.parent()?)?.entries.get(path.file_name()?)
    }

    fn take(
        &mut self,
        path: PathBuf,
        seen: Seen,
        survey: &Survey<'_>,
        news: &mut Vec<(SavedPath, Mark, State)>,
    ) {
        let racy = seen.unsteady || is_racy(seen.mark, survey);
        self.put(&path, seen.mark, seen.state.clone(), racy);
        news.push((SavedPath(path), seen.mark, seen.state));
    }

    fn put(&mut self, path: &Path, mark: Mark, state: State, racy: bool) {
        let (parent, name) = (path.parent().unwrap_or(path), path.file_name().unwrap_or_default());
        if !state.is_dir() {
            self.dirs.remove(path);
        }
        match state {
            State::Absent => {
                if let Some(dir) = self.dirs.get_mut(parent) {
                    dir.entries.remove(name);
                }
            }
            State::Dir { .. } => {
                if let Some(dir) = self.dirs.get_mut(parent) {
                    dir.entries.remove(name);
                }
                let dir = self.dirs.entry(path.to_path_buf());
                let dir = dir.or_insert(Dir { mark, racy, entries: BTreeMap::new() });
                (dir.mark, dir.racy) = (mark, racy);
            }
            state => {
                if let Some(dir) = self.dirs.get_mut(parent) {
                    dir.entries.insert(name.to_os_string(), Entry { mark, state, racy });
                }
            }
        }
    }

    /// What is not listed any more: gone, with all that was in it, or only not to be looked at. Directories in whose place
    /// something else is now are `replaced`.
    fn forget(&mut self, path: &Path, look: &mut Look, replaced: &mut BTreeMap<PathBuf, State>) {
        let below: Vec<PathBuf> = self
            .dirs
            .range(path.to_path_buf()..)
            .map(|(dir, _)| dir)
            .take_while(|dir| dir.starts_with(path))
            .cloned()
            .collect();
        let mut lost: Vec<(PathBuf, State)> = Vec::new();
        for dir in below.iter().rev() {
            if let Some(known) = self.dirs.remove(dir) {
                let mode = known.mark.permissions();
                lost.extend(known.entries.into_iter().map(|(name, entry)| (dir.join(name), entry.state)));
                lost.push((dir.clone(), State::Dir { mode }));
            }
        }
        let own = path.parent().and_then(|parent| self.dirs.get_mut(parent)).zip(path.file_name());
        if let Some((parent, name)) = own
            && let Some(entry) = parent.entries.remove(name)
        {
            lost.push((path.to_path_buf(), entry.state));
        }
        for (path, before) in lost {
            look.news.push((path.as_path().into(), Mark::default(), State::Absent));
            let now = fs::symlink_metadata(&path);
            if before.is_dir() && now.as_ref().is_ok_and(|now| !now.is_dir()) {
                replaced.insert(path, before);
            } else if now.is_err() && !at::is_hidden(&path) {
                look.changes.push(Change { path: SavedPath(path), before, after: State::Absent });
            }
        }
    }
}

fn compare(path: &Path, dir: &Dir) -> Vec<Finding> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    #[cfg(target_os = "linux")]
    let flags = flags | OFlag::O_PATH;
    let opened = open(path, flags, Mode::empty()).and_then(|opened| Ok((fstat(&opened)?, opened)));
    let (about, opened) = match opened {
        Ok(opened) => opened,
        // A directory above lets nobody in: nothing is known to have changed here.
        Err(Errno::EACCES) => return Vec::new(),
        Err(_) => return vec![Finding::NoDir(path.to_path_buf())],
    };
    let mut findings = Vec::new();
    let mark = mark_of(&about);
    if dir.racy || !is_same_list(mark, dir.mark) {
        findings.push(Finding::Relist(path.to_path_buf(), mark));
    }
    for (name, entry) in &dir.entries {
        let now =
            fstatat(&opened, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW).map(|about| mark_of(&about));
        if now != Err(Errno::EACCES) && (entry.racy || now != Ok(entry.mark)) {
            findings.push(Finding::Other(path.join(name)));
        }
    }
    findings
}

/// Whether a directory still has the same names in it.
fn is_same_list(now: Mark, before: Mark) -> bool {
    (now.inode, now.modified_ns, now.changed_ns) == (before.inode, before.modified_ns, before.changed_ns)
}

/// Whether a directory does not tell us what is in it.
pub fn is_closed(dir: &Path) -> bool {
    fs::read_dir(dir).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

fn is_racy(mark: Mark, survey: &Survey<'_>) -> bool {
    mark.modified_ns.max(mark.changed_ns).saturating_add(RACY_NS) >= survey.now_ns
}

/// Everything at and below a directory that is not ignored; `None` if that is too much.
fn walk(dir: &Path, survey: &Survey<'_>) -> Option<Vec<PathBuf>> {
    let found = Mutex::new((Vec::new(), false));
    let mut walker = walker(dir);
    let without = survey.without.to_vec();
    // Other file systems may be views into the kernel, or machines far away.
    walker.same_file_system(true);
    walker
        .filter_entry(move |entry| is_looked_into(entry.path(), entry.depth(), entry.file_name(), &without));
    walker.build_parallel().run(|| {
        Box::new(|entry| {
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            if found.0.len() >= FILE_HISTORY_FILES_MAX || (survey.is_late)() {
                found.1 = true;
                return WalkState::Quit;
            }
            if let Ok(entry) = entry {
                found.0.push(entry.into_path());
            }
            WalkState::Continue
        })
    });
    let (mut paths, too_much) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    paths.sort();
    (!too_much).then_some(paths)
}

/// What is directly in a directory and not ignored.
fn children(dir: &Path, survey: &Survey<'_>) -> Vec<PathBuf> {
    let mut walker = walker(dir);
    let without = survey.without.to_vec();
    // Other file systems may be views into the kernel, or machines far away.
    walker.same_file_system(true);
    walker
        .filter_entry(move |entry| is_looked_into(entry.path(), entry.depth(), entry.file_name(), &without));
    let entries = walker.max_depth(Some(1)).build();
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.depth() == 1)
        .map(ignore::DirEntry::into_path)
        .collect()
}

fn is_looked_into(path: &Path, depth: usize, name: &OsStr, without: &[PathBuf]) -> bool {
    depth == 0 || (!crate::tools::search::is_store(name) && !without.iter().any(|without| path == without))
}

/// Looks at paths, with several threads; what can be kept is. In the order given: directories before what is in them.
fn read_all(paths: Vec<PathBuf>, survey: &Survey<'_>, store: &mut Store) -> io::Result<Vec<(PathBuf, Seen)>> {
    let store = Mutex::new(store);
    let share = paths.len().div_ceil(SEARCH_THREADS_MAX).max(1);
    let seen: io::Result<Vec<Vec<Seen>>> = std::thread::scope(|scope| {
        let threads: Vec<_> = paths
            .chunks(share)
            .map(|share| {
                let store = &store;
                scope.spawn(move || {
                    let look = |path: &PathBuf| {
                        at::see(path, survey.file_bytes_max, |hash, content| {
                            store.lock().unwrap_or_else(PoisonError::into_inner).keep(hash, content)
                        })
                    };
                    share.iter().map(look).collect::<io::Result<Vec<Seen>>>()
                })
            })
            .collect();
        let panicked = |_| Err(io::Error::other("a thread failed"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    });
    Ok(paths.into_iter().zip(seen?.into_iter().flatten()).collect())
}

/// The roots without those that are inside of others, links resolved.
fn outermost(roots: &[PathBuf]) -> Vec<PathBuf> {
    let real: BTreeSet<PathBuf> = roots.iter().filter_map(|root| fs::canonicalize(root).ok()).collect();
    real.iter()
        .filter(|root| !real.iter().any(|other| *root != other && root.starts_with(other)))
        .cloned()
        .collect()
}

fn exclude_file(root: &Path) -> PathBuf {
    root.join(".git/info/exclude")
}

fn is_rule_file(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| [".gitignore", ".ignore", ".rgignore"].iter().any(|rules| name == *rules))
}

// The widths of these fields differ between systems.
#[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
fn mark_of(about: &FileStat) -> Mark {
    Mark {
        inode: about.st_ino as u64,
        bytes: about.st_size as u64,
        modified_ns: (about.st_mtime as i64)
            .saturating_mul(1_000_000_000)
            .saturating_add(about.st_mtime_nsec as i64),
        changed_ns: (about.st_ctime as i64)
            .saturating_mul(1_000_000_000)
            .saturating_add(about.st_ctime_nsec as i64),
        mode: about.st_mode as u32,
    }
}

impl From<&fs::Metadata> for Mark {
    fn from(about: &fs::Metadata) -> Self {
        Self {
            inode: about.ino(),
            bytes: about.size(),
            modified_ns: about.mtime().saturating_mul(1_000_000_000).saturating_add(about.mtime_nsec()),
            changed_ns: about.ctime().saturating_mul(1_000_000_000).saturating_add(about.ctime_nsec()),
            mode: about.mode(),
        }
    }
}
