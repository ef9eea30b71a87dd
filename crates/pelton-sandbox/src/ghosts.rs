//! Empty things that stand where a protected name is not, while commands run: something must be there for a mount to cover.
//! A directory stands for a directory, and a socket nobody listens on for a file: programs cannot open it, and git passes
//! both over. Commands beside each other share them; the last takes them away.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use nix::sys::stat::{Mode, SFlag, mknod};

use crate::plan::Ghost;

/// How many commands of this process need each of them.
static STANDING: Mutex<BTreeMap<PathBuf, usize>> = Mutex::new(BTreeMap::new());

/// What stands for one command. Dropping it takes away what nobody else needs.
#[derive(Debug, Default)]
pub(crate) struct Ghosts(Vec<PathBuf>);

impl Ghosts {
    /// Makes those that are not there.
    pub fn raise(ghosts: &[Ghost]) -> io::Result<Self> {
        let mut standing = STANDING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut raised = Self::default();
        let mut failed = None;
        for ghost in ghosts {
            if let Err(error) = make(ghost)
                && !(error.kind() == io::ErrorKind::AlreadyExists && is_ghost(&ghost.path))
            {
                failed = Some(error);
                break;
            }
            *standing.entry(ghost.path.clone()).or_default() += 1;
            raised.0.push(ghost.path.clone());
        }
        // Dropping locks again.
        drop(standing);
        failed.map_or(Ok(raised), Err)
    }
}

impl Drop for Ghosts {
    fn drop(&mut self) {
        let mut standing = STANDING.lock().unwrap_or_else(PoisonError::into_inner);
        for path in self.0.drain(..) {
            let Some(count) = standing.get_mut(&path) else { continue };
            *count -= 1;
            if *count == 0 {
                standing.remove(&path);
                lay(&path);
            }
        }
    }
}

/// Whether something is nothing but a ghost, left by a process that was killed perhaps.
pub(crate) fn is_ghost(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| {
        let untouchable = about.mode() & 0o777 == 0;
        untouchable && (about.is_dir() || about.file_type().is_socket())
    })
}

fn make(ghost: &Ghost) -> io::Result<()> {
    if ghost.is_directory {
        fs::DirBuilder::new().mode(0o000).create(&ghost.path)
    } else {
        Ok(mknod(&ghost.path, SFlag::S_IFSOCK, Mode::empty(), 0)?)
    }
}

fn lay(path: &Path) {
    if !is_ghost(path) {
        return;
    }
    // A directory that is not empty is none, and stays.
    let _ = match fs::symlink_metadata(path) {
        Ok(about) if about.is_dir() => fs::remove_dir(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
}
