//! The git repository around a directory, found without running git: what a repository configures is not run before it
//! is trusted.

use std::fs;
use std::path::{Path, PathBuf};

/// The most bytes of an index that are looked through; of a larger one the worst is assumed.
const INDEX_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// A repository.
pub(super) struct Repository {
    /// The main checkout's directory.
    pub(super) root: PathBuf,
    /// This checkout's.
    pub(super) top: PathBuf,
    /// Where the index of this checkout is.
    git_dir: PathBuf,
}

impl Repository {
    /// The nearest one at or above a directory.
    pub(super) fn around(dir: &Path) -> Option<Self> {
        let top = dir.ancestors().find(|dir| dir.join(".git").symlink_metadata().is_ok())?;
        let git = top.join(".git");
        if git.is_dir() {
            return Some(Self { root: top.to_owned(), top: top.to_owned(), git_dir: git });
        }
        // Of a further checkout there is a file that says where its directory is.
        let text = fs::read_to_string(&git).ok()?;
        let git_dir = top.join(text.trim().strip_prefix("gitdir:")?.trim());
        // Anybody can write such a file: the main checkout has to know this one, too.
        let knows = fs::read_to_string(git_dir.join("gitdir"))
            .is_ok_and(|back| is_same(Path::new(back.trim()), &git));
        let main = git_dir.parent().filter(|parent| knows && parent.ends_with(".git/worktrees"));
        let root = main.and_then(|main| main.ancestors().nth(2)).unwrap_or(top);
        Some(Self { root: root.to_owned(), top: top.to_owned(), git_dir: git_dir.clone() })
    }
}

pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Whether git tracks a file of this name, as far as its index can be understood without git: better one too many. All
/// versions of an index spell a path's end out and put a NUL behind it.
pub(super) fn is_tracked(repository: &Repository, file: &Path) -> bool {
    // A version that leaves out what a path shares with the one before keeps at least what is behind the last dot but
    // one: `settings.json` and `settings.local.json` are neighbours.
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let end = name.split_once('.').map_or(name, |(_, end)| end).to_ascii_lowercase();
    let mut wanted = end.into_bytes();
    wanted.push(0);
    let Ok(entries) = fs::read_dir(&repository.git_dir) else { return true };
    let indexes = entries.flatten().map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name == "index" || name.starts_with("sharedindex.")
    });
    indexes.into_iter().any(|index| {
        let small = fs::metadata(&index).is_ok_and(|about| about.len() <= INDEX_BYTES_MAX);
        match fs::read(&index) {
            Ok(bytes) if small => {
                bytes.windows(wanted.len()).any(|window| window.eq_ignore_ascii_case(&wanted))
            }
            _ => true,
        }
    })
}
