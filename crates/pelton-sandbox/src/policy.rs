//! What is wanted of the box, and what is on the disk: together they make a plan.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::ghosts::is_ghost;
use crate::limits::DIRECTORY_ENTRIES_MAX;

/// What commands in the box may do. Paths are absolute. Everything that is not denied may be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Directories and files that may be written, with what is below. Those that are not there are passed over.
    pub writable: Vec<PathBuf>,
    /// What may not be written all the same.
    pub deny_write: Vec<PathBuf>,
    /// What may not be read.
    pub deny_read: Vec<PathBuf>,
    /// What inside of that may be read after all.
    pub allow_read: Vec<PathBuf>,
    /// Directories that are worked in: protected names stay as they are in everything below them, there or not.
    pub worked_in: Vec<PathBuf>,
    /// The user's home: start-up files mean something there.
    pub home: Option<PathBuf>,
    /// Files are not held at all: only what can be reached is. Nothing above counts then.
    pub open_disk: bool,
    /// What can be reached.
    pub network: Network,
    /// Whether sockets on the file system may be used: those of other programs too.
    pub unix_sockets: bool,
}

/// What commands in the box can reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Network {
    /// Nothing.
    #[default]
    Off,
    /// Each other, within one command.
    Loopback,
    /// Each other, and whoever serves this socket: connections to [`BRIDGE_PORT`](crate::limits::BRIDGE_PORT) end there.
    Bridge(PathBuf),
}

/// What is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// Anything else.
    File,
}

/// What a plan has to know about the disk.
pub trait Look {
    /// What a path is, links not followed.
    fn at(&self, path: &Path) -> Option<Found>;
    /// The names in a directory; none if it is no directory.
    fn names(&self, dir: &Path) -> Vec<OsString>;
    /// The same, and whether each is a directory.
    fn names_and_kinds(&self, dir: &Path) -> Vec<(OsString, bool)>;
    /// The path without links.
    fn real(&self, path: &Path) -> Option<PathBuf>;
}

/// The disk itself.
#[derive(Debug, Clone, Copy)]
pub struct Disk;

impl Look for Disk {
    fn at(&self, path: &Path) -> Option<Found> {
        let kind = fs::symlink_metadata(path).ok()?.file_type();
        if (kind.is_dir() || kind.is_socket()) && is_ghost(path) {
            // Ours, of another command, or of one that was killed: it goes with the last that needs it.
            return None;
        }
        Some(match () {
            () if kind.is_dir() => Found::Directory,
            () if kind.is_symlink() => Found::Link,
            () => Found::File,
        })
    }

    fn names(&self, dir: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(dir).into_iter().flatten().take(DIRECTORY_ENTRIES_MAX);
        entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect()
    }

    fn names_and_kinds(&self, dir: &Path) -> Vec<(OsString, bool)> {
        let entries = fs::read_dir(dir).into_iter().flatten().take(DIRECTORY_ENTRIES_MAX);
        // The directory says it, so the names need not be looked at one by one.
        let known = entries.filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.file_name(), entry.file_type().is_ok_and(|kind| kind.is_dir())))
        });
        known.collect()
    }

    fn real(&self, path: &Path) -> Option<PathBuf> {
        fs::canonicalize(path).ok()
    }
}
