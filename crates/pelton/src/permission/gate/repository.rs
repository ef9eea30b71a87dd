//! Which repository git works in, as far as directories tell. Git itself is not run for it: what it reads there could say what runs.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::super::place::Here;
use super::dirs::{REPOSITORY_MARK, is_current};
use crate::limits::{REPOSITORY_CONFIG_BYTES_MAX, REPOSITORY_HEAD_BYTES_MAX};

/// Whether git does in this directory what it does where the session is: it is below, and nothing on the way is a repository of its own.
pub(super) fn is_same_repository(dir: &Path, here: &Here) -> bool {
    if is_current(dir, here) {
        return true;
    }
    let below = dir.ancestors().take_while(|dir| !is_current(dir, here));
    let is_own =
        |dir: &Path| [".git", REPOSITORY_MARK].iter().any(|name| dir.join(name).symlink_metadata().is_ok());
    dir.is_dir() && dir.ancestors().any(|above| is_current(above, here)) && !below.into_iter().any(is_own)
}

/// Where `git rev-parse --show-toplevel` says that the repository begins; `None` if it may say something else, or nothing.
pub(super) fn top_of_repository(dir: &Path) -> Option<PathBuf> {
    let top = dir.ancestors().find(|dir| dir.join(".git").symlink_metadata().is_ok())?;
    let git = top.join(".git");
    // What belongs to somebody else git does not read.
    let user = nix::unistd::geteuid().as_raw();
    let is_own =
        |path: &Path| fs::symlink_metadata(path).is_ok_and(|about| about.is_dir() && about.uid() == user);
    // Without all of these git looks further up, and says another directory.
    let is_repository = is_own(&git.join("objects")) && is_own(&git.join("refs")) && has_head(&git);
    (is_own(top) && is_own(&git) && is_repository).then_some(())?;
    let config = git.join("config");
    let about = fs::metadata(&config).ok()?;
    (about.is_file() && about.len() <= REPOSITORY_CONFIG_BYTES_MAX).then_some(())?;
    let config = fs::read_to_string(config).ok()?.to_ascii_lowercase();
    // The files could be elsewhere.
    (!config.contains("worktree") && !config.contains("[include")).then(|| top.to_path_buf())
}

/// Whether a repository names what is checked out, in a way that git understands.
fn has_head(git: &Path) -> bool {
    let head = git.join(REPOSITORY_MARK);
    let is_short = fs::symlink_metadata(&head)
        .is_ok_and(|about| about.is_file() && about.len() <= REPOSITORY_HEAD_BYTES_MAX);
    let said = if is_short { fs::read_to_string(head).unwrap_or_default() } else { String::new() };
    let said = said.trim_end();
    let is_hash = matches!(said.len(), 40 | 64) && said.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash || said.strip_prefix("ref: refs/").is_some_and(|name| !name.is_empty())
}
