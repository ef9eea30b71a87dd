//! Walking a tree of files, for Glob and Grep: many threads, one deadline, and never out of the tree.

mod opener; // what a walk has met, opened

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use ignore::overrides::Override;
use ignore::types::Types;
use ignore::{WalkBuilder, WalkState};
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::{AccessFlags, faccessat};
use pelton_model::World;
use tokio_util::sync::CancellationToken;

pub(super) use self::opener::Opener;
use super::disk::Target;
use crate::limits::SEARCH_THREADS_MAX;
use crate::permission::Readable;
use crate::places::resolve;

/// Says when a search has to stop, and remembers that it did.
pub(super) struct Deadline {
    world: Arc<dyn World>,
    cancel: CancellationToken,
    started: Duration,
    time_max: Duration,
    passed: AtomicBool,
}

impl Deadline {
    pub fn new(world: Arc<dyn World>, cancel: CancellationToken, time_max: Duration) -> Self {
        let started = world.monotonic();
        Self { world, cancel, started, time_max, passed: AtomicBool::new(false) }
    }

    /// Whether to stop now.
    pub fn reached(&self) -> bool {
        if self.cancel.is_cancelled() {
            return true;
        }
        let late = self.elapsed() >= self.time_max;
        if late {
            self.passed.store(true, Ordering::Relaxed);
        }
        late
    }

    /// Whether the search was stopped because of the time.
    pub fn passed(&self) -> bool {
        self.passed.load(Ordering::Relaxed)
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.world.monotonic().saturating_sub(self.started)
    }
}

/// Which files are visited.
pub(super) struct Tree<'a> {
    /// A directory, or one file.
    pub root: &'a Path,
    /// Globs that a file must match or must not.
    pub globs: Override,
    /// Kinds of files.
    pub types: Types,
    /// Files that are passed over.
    pub passes_over: PassesOver,
}

/// Files that a search passes over, besides the stores of version control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PassesOver {
    /// What ignore files name.
    pub ignored: bool,
    /// What begins with a dot.
    pub hidden: bool,
}

/// Entries that each thread meets between two looks at the time: asking for it costs more than some of them do.
const ENTRIES_PER_LOOK: u32 = 16;

/// Visits the regular files of a tree, from several threads, but not the stores of version control. Links are not followed. `visitor` makes one visitor for each thread. Returns how
/// many entries could not be read.
pub(super) fn visit<V>(tree: Tree<'_>, deadline: &Deadline, visitor: impl Fn() -> V) -> u64
where
    V: FnMut(&Path) + Send,
{
    let unreadable = AtomicU64::new(0);
    let PassesOver { ignored, hidden } = tree.passes_over;
    walker(tree.root)
        .hidden(hidden)
        .ignore(ignored)
        .git_ignore(ignored)
        .git_exclude(ignored)
        .parents(ignored)
        .overrides(tree.globs)
        .types(tree.types)
        .filter_entry(|entry| entry.depth() == 0 || !is_store(entry.file_name()))
        .build_parallel()
        .run(|| {
            let mut visit = visitor();
            let unreadable = &unreadable;
            let mut met: u32 = 0;
            Box::new(move |entry| {
                // Whoever reads a long file looks at the time by himself.
                if met.is_multiple_of(ENTRIES_PER_LOOK) && deadline.reached() {
                    return WalkState::Quit;
                }
                met = met.wrapping_add(1);
                match entry {
                    Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => visit(entry.path()),
                    Ok(_) => {}
                    Err(_) => {
                        unreadable.fetch_add(1, Ordering::Relaxed);
                    }
                }
                WalkState::Continue
            })
        });
    unreadable.into_inner()
}

/// How trees are walked: hidden files are part of them, what ignore files name is not, and links are not followed.
pub(crate) fn walker(root: &Path) -> WalkBuilder {
    let mut walker = WalkBuilder::new(root);
    walker
        .hidden(false)
        .follow_links(false)
        .require_git(false)
        // The user's own ignore file is found through the environment, which is not ours to read.
        .git_global(false)
        .threads(std::thread::available_parallelism().map_or(1, usize::from).min(SEARCH_THREADS_MAX));
    walker
}

/// Where a search starts: links on the way there were asked for by name, and followed when that was judged; no others
/// are.
pub(super) fn real_root(root: &Target) -> io::Result<(PathBuf, Metadata)> {
    let root = root.real()?;
    if resolve(&root)?.path != root {
        return Err(io::Error::other("it changed since the search was allowed"));
    }
    let metadata = std::fs::symlink_metadata(&root)?;
    // What was named is an error; what is met on the way is counted.
    faccessat(AT_FDCWD, &root, AccessFlags::R_OK, AtFlags::AT_EACCESS)?;
    Ok((root, metadata))
}

/// How many entries something could not be done with, in words.
pub(super) fn entries(count: u64) -> String {
    match count {
        1 => "1 entry".to_owned(),
        count => format!("{count} entries"),
    }
}

/// Whether no link has come in the way to what a search has met.
pub(super) fn is_still_there(path: &Path) -> bool {
    resolve(path).is_ok_and(|now| now.path == path)
}

/// Lets through what no rule guards, and counts the rest.
pub(super) struct Sieve {
    readable: Readable,
    /// Where the search starts, as it was asked for and as it is.
    asked: PathBuf,
    root: PathBuf,
    left_out: AtomicU64,
}

impl Sieve {
    pub fn new(readable: Readable, asked: PathBuf, root: PathBuf) -> Self {
        Self { readable, asked, root, left_out: AtomicU64::new(0) }
    }

    /// Whether a file below the root may be shown.
    pub fn passes(&self, path: &Path) -> bool {
        // Nearly always: then nothing is put together for each of the files.
        if self.readable.is_everything() {
            return true;
        }
        let passes = match path.strip_prefix(&self.root) {
            Ok(below) => self.readable.allows(&self.asked.join(below), path),
            Err(_) => self.readable.allows(path, path),
        };
        if !passes {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
        passes
    }

    /// What the model is told about the others.
    pub fn note(&self) -> Option<String> {
        match self.left_out.load(Ordering::Relaxed) {
            0 => None,
            1 => Some("[1 file was left out: a permission rule guards it.]".to_owned()),
            left_out => Some(format!("[{left_out} files were left out: a permission rule guards them.]")),
        }
    }
}

/// Keeps the first of what is offered, in the order of its keys, up to a total weight; whatever order it comes in.
pub(super) struct Kept<K, V> {
    inner: Mutex<Inner<K, V>>,
    weight_max: usize,
}

struct Inner<K, V> {
    kept: BTreeMap<K, (V, usize)>,
    weight: usize,
    offered: u64,
    dropped: bool,
}

impl<K: Ord, V> Kept<K, V> {
    pub fn new(weight_max: usize) -> Self {
        let inner = Inner { kept: BTreeMap::new(), weight: 0, offered: 0, dropped: false };
        Self { inner: Mutex::new(inner), weight_max }
    }

    /// Offers one thing. What no longer has a chance is dropped.
    pub fn offer(&self, key: K, value: V, weight: usize) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = &mut *inner;
        inner.offered += 1;
        inner.weight += weight;
        inner.kept.insert(key, (value, weight));
        let inner = &mut *inner;
        while let Some(last) = inner.kept.last_entry()
            && inner.weight - last.get().1 >= self.weight_max
        {
            let (_, weight) = last.remove();
            inner.weight -= weight;
            inner.dropped = true;
        }
    }

    /// Counts what somebody else has dropped.
    pub fn leave_out(&self, count: u64) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.offered += count;
        inner.dropped |= count > 0;
    }

    /// Whether something with this key would be dropped at once.
    pub fn is_beyond(&self, key: &K) -> bool {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let beyond = inner.weight >= self.weight_max
            && inner.kept.last_key_value().is_some_and(|(last, _)| key > last);
        inner.dropped |= beyond;
        beyond
    }

    /// What was kept, in order; how much was offered; whether something was left out.
    pub fn finish(self) -> (Vec<(K, V)>, u64, bool) {
        let inner = self.inner.into_inner().unwrap_or_else(PoisonError::into_inner);
        let kept = inner.kept.into_iter().map(|(key, (value, _))| (key, value)).collect();
        (kept, inner.offered, inner.dropped)
    }
}

/// The newest files that one thread has met: most are older than those it has already, and cost nothing more. They are offered to
/// all when the thread is done.
pub(super) struct Newest<'k> {
    shared: &'k Kept<NewestFirst, ()>,
    own: BTreeSet<NewestFirst>,
    left_out: u64,
}

impl<'k> Newest<'k> {
    pub fn of(shared: &'k Kept<NewestFirst, ()>) -> Self {
        Self { shared, own: BTreeSet::new(), left_out: 0 }
    }

    pub fn meet(&mut self, changed: SystemTime, path: &Path) {
        let is_full = self.own.len() >= self.shared.weight_max;
        if is_full && self.own.last().is_some_and(|(Reverse(oldest), _)| changed < *oldest) {
            self.left_out += 1;
            return;
        }
        self.own.insert((Reverse(changed), path.to_path_buf()));
        if is_full {
            self.own.pop_last();
            self.left_out += 1;
        }
    }
}

impl Drop for Newest<'_> {
    fn drop(&mut self) {
        self.shared.leave_out(self.left_out);
        while let Some(newest) = self.own.pop_first() {
            self.shared.offer(newest, (), 1);
        }
    }
}

/// The order of newest first; equal times by name.
pub(super) type NewestFirst = (Reverse<SystemTime>, PathBuf);

/// Whether this is the store of a version control system.
pub(crate) fn is_store(name: &OsStr) -> bool {
    [".git", ".hg", ".svn", ".jj"].iter().any(|store| name == *store)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_kept_whatever_order_they_come_in() {
        for order in [[1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1], [4, 1, 6, 3, 5, 2]] {
            let kept = Kept::new(6);
            for key in order {
                if !kept.is_beyond(&key) {
                    kept.offer(key, (), 2);
                }
            }
            let (kept, _, dropped) = kept.finish();
            assert_eq!(kept, [(1, ()), (2, ()), (3, ())]);
            assert!(dropped);
        }
    }

    #[test]
    fn the_newest_of_all_threads_are_kept_and_all_are_counted() {
        let shared: Kept<NewestFirst, ()> = Kept::new(3);
        let at = |second: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        for seconds in [[5, 1, 9, 3, 2], [8, 4, 7, 6, 0]] {
            let mut newest = Newest::of(&shared);
            seconds.into_iter().for_each(|second| newest.meet(at(second), Path::new("a")));
        }
        let (kept, offered, dropped) = shared.finish();
        let seconds: Vec<SystemTime> = kept.into_iter().map(|((Reverse(time), _), ())| time).collect();
        assert_eq!((seconds, offered, dropped), (vec![at(9), at(8), at(7)], 10, true));
    }

    #[test]
    fn what_fits_is_all_kept() {
        let kept = Kept::new(6);
        for key in [3, 1, 2] {
            assert!(!kept.is_beyond(&key));
            kept.offer(key, (), 2);
        }
        let (kept, offered, dropped) = kept.finish();
        assert_eq!((kept.len(), offered, dropped), (3, 3, false));
    }
}
