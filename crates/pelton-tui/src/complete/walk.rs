//! The project, looked through in the background, and directories, a little of one at a time. What git ignores is left out; the rest can be searched while more is found.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::{DirEntry, WalkBuilder, WalkState};

use super::index::{Batch, Found, Search};
use crate::limits::{
    COMPLETION_THREADS_MAX, DIRECTORY_NAMES_MAX, PATH_BYTES_MAX, PATHS_HANDED_MAX, PATHS_HANDED_MIN,
    PATHS_MAX,
};

/// What of a project can be mentioned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    /// What no ignore file names.
    NotIgnored,
    /// What they name, too, but for what programs put there by the thousand.
    All,
}

/// The files of a project, for completion. Dropped, it stops looking.
#[derive(Debug)]
pub struct Files {
    shared: Arc<Shared>,
    search: Search,
}

#[derive(Debug, Default)]
struct Shared {
    /// What was found and not yet taken.
    handed: Mutex<Vec<Arc<Batch>>>,
    paths: AtomicUsize,
    unwanted: AtomicBool,
    done: AtomicBool,
}

impl Files {
    /// Begins to look through a folder.
    pub fn walk(root: PathBuf, offered: Offered) -> Self {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let walk = move || {
            walk(&root, offered, &theirs);
            theirs.done.store(true, Ordering::Release);
        };
        // Without a thread nothing is found, and nothing else goes wrong.
        if std::thread::Builder::new().name("files".to_owned()).spawn(walk).is_err() {
            shared.done.store(true, Ordering::Release);
        }
        Self { shared, search: Search::default() }
    }

    /// More may be found.
    pub fn is_walking(&self) -> bool {
        !self.shared.done.load(Ordering::Acquire)
    }

    /// Paths found so far.
    pub fn count(&self) -> usize {
        self.shared.paths.load(Ordering::Relaxed).min(PATHS_MAX)
    }

    /// The best of the paths found so far that fit what was typed.
    pub fn typed(&mut self, typed: &str, best: usize) -> Vec<Found> {
        let handed = std::mem::take(&mut *self.shared.handed.lock().unwrap_or_else(PoisonError::into_inner));
        handed.into_iter().for_each(|batch| self.search.add(batch));
        self.search.typed(typed, best)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.shared.unwanted.store(true, Ordering::Relaxed);
    }
}

fn walk(root: &Path, offered: Offered, shared: &Arc<Shared>) {
    let threads =
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(COMPLETION_THREADS_MAX);
    let left_out: &[&str] = match offered {
        Offered::NotIgnored => &[".git"],
        Offered::All => &[".git", "node_modules", "target"],
    };
    let walker = WalkBuilder::new(root)
        .standard_filters(offered == Offered::NotIgnored)
        // Files with a dot are mentioned, too; what git keeps for itself is not.
        .hidden(false)
        .filter_entry(|entry| left_out.iter().all(|name| entry.file_name() != *name))
        .require_git(false)
        .threads(threads)
        .build_parallel();
    walker.run(|| {
        let mut gathered = Gathered::new(Arc::clone(shared));
        Box::new(move |entry| {
            if gathered.shared.unwanted.load(Ordering::Relaxed) {
                return WalkState::Quit;
            }
            // What cannot be read is not there.
            let Ok(entry) = entry else { return WalkState::Continue };
            match mentioned(root, &entry) {
                Some(path) if !gathered.add(&path) => WalkState::Quit,
                _ => WalkState::Continue,
            }
        })
    });
}

/// A path as it is mentioned: from the root, folders with a slash. None that could not be typed.
fn mentioned(root: &Path, entry: &DirEntry) -> Option<String> {
    let path = entry.path().strip_prefix(root).ok()?.to_str()?;
    let typed = !path.is_empty() && path.len() <= PATH_BYTES_MAX && !path.contains(['"', '\n']);
    if !typed || path.chars().any(char::is_control) {
        return None;
    }
    let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
    Some(if is_dir { format!("{path}/") } else { path.to_owned() })
}

/// What one of the threads has found and not handed over.
struct Gathered {
    shared: Arc<Shared>,
    batch: Batch,
    next: usize,
}

impl Gathered {
    fn new(shared: Arc<Shared>) -> Self {
        Self { shared, batch: Batch::default(), next: PATHS_HANDED_MIN }
    }

    /// Whether there is room for more.
    fn add(&mut self, path: &str) -> bool {
        if self.shared.paths.fetch_add(1, Ordering::Relaxed) >= PATHS_MAX {
            return false;
        }
        self.batch.add(path);
        if self.batch.len() >= self.next {
            self.next = (self.next * 2).min(PATHS_HANDED_MAX);
            self.hand_over();
        }
        true
    }

    fn hand_over(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let batch = Arc::new(std::mem::take(&mut self.batch));
        self.shared.handed.lock().unwrap_or_else(PoisonError::into_inner).push(batch);
    }
}

impl Drop for Gathered {
    fn drop(&mut self) {
        self.hand_over();
    }
}

/// The directories whose paths begin as it was typed, each with a `/` behind it, by their names; hidden ones where a dot was typed.
pub fn directories(cwd: &Path, home: Option<&Path>, typed: &str, most: usize) -> Vec<Found> {
    let (parent, begins) =
        typed.rsplit_once('/').map_or(("", typed), |(parent, name)| (&typed[..=parent.len()], name));
    let dir = match (Path::new(parent).strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => cwd.join(parent),
    };
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let fits = |name: &str| name.starts_with(begins) && (begins.starts_with('.') || !name.starts_with('.'));
    let found = entries
        .take(DIRECTORY_NAMES_MAX)
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(fits));
    // A link to a directory is one, too. Only these are looked at: the file system says of most others what they are.
    let is_dir = |entry: &fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_symlink() => entry.path().is_dir(),
        kind => kind.is_ok_and(|kind| kind.is_dir()),
    };
    let mut names: Vec<String> =
        found.filter(is_dir).filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let path = |name: String| Found { path: format!("{parent}{name}/"), fits: Vec::new() };
    names.into_iter().take(most).map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_on_with_the_directories_there_are() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["work/one/inner", "work/on my way", "work/.hidden", "home/docs", "other"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        fs::write(dir.path().join("work/on-a-file"), "").unwrap();
        std::os::unix::fs::symlink(dir.path().join("other"), dir.path().join("work/onward")).unwrap();
        let (work, home) = (dir.path().join("work"), dir.path().join("home"));
        for (typed, expected) in [
            ("", &["on my way/", "one/", "onward/"][..]),
            ("on", &["on my way/", "one/", "onward/"]),
            ("one", &["one/"]),
            ("one/", &["one/inner/"]),
            (".", &[".hidden/"]),
            ("../o", &["../other/"]),
            ("~/d", &["~/docs/"]),
            ("nowhere/x", &[]),
        ] {
            let found: Vec<String> =
                directories(&work, Some(&home), typed, 9).into_iter().map(|found| found.path).collect();
            assert_eq!(found, expected, "{typed:?}");
        }
        // However many files stand between them.
        for number in 0..3_000 {
            fs::write(work.join(format!("on-{number}")), "").unwrap();
        }
        let found = directories(&work, None, "on", 9);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(directories(&work, None, "o", 2).len(), 2);
        let absolute = format!("{}/oth", dir.path().display());
        assert_eq!(
            directories(&work, None, &absolute, 9)[0].path,
            format!("{}/other/", dir.path().display())
        );
    }

    fn all(root: &Path) -> Vec<String> {
        let mut files = Files::walk(root.to_owned(), Offered::NotIgnored);
        while files.is_walking() {
            std::thread::yield_now();
        }
        let mut paths: Vec<String> = files.typed("", 1_000).into_iter().map(|found| found.path).collect();
        assert_eq!(files.count(), paths.len());
        paths.sort();
        paths
    }

    #[test]
    fn what_git_ignores_is_not_offered() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for folder in ["src", "target/debug", ".git/objects", ".github", "node_modules/x"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for file in [
            "src/main.rs",
            "src/my file.rs",
            "target/debug/out",
            ".git/config",
            ".github/ci.yml",
            "node_modules/x/i.js",
            "a\"b",
            "c\u{1b}d",
            "e\nf",
        ] {
            fs::write(root.join(file), "").unwrap();
        }
        fs::write(root.join(".gitignore"), "/target\nnode_modules\n").unwrap();
        assert_eq!(
            all(root),
            [".github/", ".github/ci.yml", ".gitignore", "src/", "src/main.rs", "src/my file.rs"]
        );
    }

    #[test]
    fn a_folder_that_is_not_there_has_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(all(&dir.path().join("none")), Vec::<String>::new());
    }

    #[test]
    fn links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("a/loop")).unwrap();
        assert_eq!(all(dir.path()), ["a/", "a/loop"]);
    }

    #[test]
    fn nobody_looks_for_what_nobody_wants() {
        let dir = tempfile::tempdir().unwrap();
        (0..200).for_each(|at| fs::write(dir.path().join(at.to_string()), "").unwrap());
        let files = Files::walk(dir.path().to_owned(), Offered::NotIgnored);
        let shared = Arc::clone(&files.shared);
        drop(files);
        while !shared.done.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        assert!(shared.unwanted.load(Ordering::Relaxed));
    }
}
