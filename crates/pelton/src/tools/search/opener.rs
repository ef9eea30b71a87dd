//! Opens what a walk has met. Files come directory by directory, so the directory is opened and checked once, and each file is
//! one short name in it.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, fstatat};

use crate::tools::disk::{WALKING, path_of};

/// The directory that the last file was in. Each thread of a walk has its own.
#[derive(Debug, Default)]
pub(in super::super) struct Opener {
    dir: Option<(PathBuf, OwnedFd)>,
}

impl Opener {
    /// Opens a file, if it is still an ordinary one. What was a file a moment ago may be a FIFO or a link now, and so may
    /// every directory above it: opening must neither wait nor lead away.
    pub fn open(&mut self, path: &Path) -> io::Result<Option<(File, Metadata)>> {
        let (dir, name) = self.dir_of(path)?;
        let flags =
            OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = File::from(openat(dir, name, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        Ok(metadata.is_file().then_some((file, metadata)))
    }

    /// When a file was last changed; the beginning of time when nobody knows.
    pub fn changed_at(&mut self, path: &Path) -> SystemTime {
        let stat = self
            .dir_of(path)
            .and_then(|(dir, name)| Ok(fstatat(dir, name, AtFlags::AT_SYMLINK_NOFOLLOW)?))
            .ok();
        stat.and_then(|stat| {
            let seconds = Duration::from_secs(u64::try_from(stat.st_mtime).ok()?);
            let nanos = Duration::from_nanos(u64::try_from(stat.st_mtime_nsec).ok()?);
            UNIX_EPOCH.checked_add(seconds)?.checked_add(nanos)
        })
        .unwrap_or(UNIX_EPOCH)
    }

    fn dir_of<'a>(&mut self, path: &'a Path) -> io::Result<(&OwnedFd, &'a OsStr)> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        if self.dir.as_ref().is_none_or(|(dir, _)| dir != parent) {
            let dir = openat(AT_FDCWD, parent, WALKING, Mode::empty())?;
            // Walks start at a real path and follow no links, so what was met is where it says.
            if path_of(&dir).is_some_and(|opened| opened != parent) {
                return Err(io::Error::other("it changed while it was searched"));
            }
            self.dir = Some((parent.to_path_buf(), dir));
        }
        match &self.dir {
            Some((_, dir)) => Ok((dir, name)),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;

    #[test]
    fn files_are_opened_where_they_were_met_and_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for (name, text) in [("a/one", "1"), ("a/two", "2"), ("b/one", "3")] {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        std::os::unix::fs::symlink(root.join("b/one"), root.join("a/link")).unwrap();
        std::os::unix::fs::symlink(root.join("b"), root.join("c")).unwrap();
        let mut opener = Opener::default();
        let mut read = |name: &str| {
            let mut text = String::new();
            let (mut file, _) = opener.open(&root.join(name)).ok()??;
            file.read_to_string(&mut text).ok()?;
            Some(text)
        };
        assert_eq!(read("a/one").as_deref(), Some("1"));
        assert_eq!(read("a/two").as_deref(), Some("2"));
        assert_eq!(read("b/one").as_deref(), Some("3"), "another directory is entered");
        assert_eq!(read("a/link"), None, "a link is not followed");
        assert_eq!(read("c/one"), None, "nor is one on the way");
        assert_eq!(read("a"), None, "a directory is no file");
        let stamp = fs::metadata(root.join("a/two")).unwrap().modified().unwrap();
        assert_eq!(opener.changed_at(&root.join("a/two")), stamp);
        assert_eq!(opener.changed_at(&root.join("a/none")), UNIX_EPOCH);
    }
}
