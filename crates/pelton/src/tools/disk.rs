//! Files as the tools touch them: found once, opened without waiting, replaced whole or not at all.
//!
//! A path is resolved once, when the call is judged. What it led to then is walked name by name without following a
//! link, to a [`Place`]: an opened directory and a name in it. Everything after that goes through the opened directory,
//! so a link that appears after the judgement, anywhere on the way, is refused instead of followed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::libc;
use nix::sys::stat::{FchmodatFlags, FileStat, Mode, fchmodat, fstatat, mkdirat};
use nix::unistd::{AccessFlags, UnlinkatFlags, faccessat, fsync, symlinkat, unlinkat};
use tokio_util::sync::CancellationToken;

use crate::limits::{NEIGHBOURS_READ_MAX, QUICK_BYTES_MAX, TEMPORARY_NAMES_TRIED_MAX};
use crate::places::resolve;

/// Why a file cannot be worked on. Reads on after the path: "`/a/b` is a directory".
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// Neither the file nor, perhaps, its directory is there.
    #[error("does not exist")]
    Missing,
    /// A directory.
    #[error("is a directory")]
    Directory,
    /// Something that is not a file with content of its own.
    #[error("is {0}, not a regular file")]
    Special(&'static str),
    /// Somebody else replaced or changed it while it was worked on.
    #[error("changed while it was being worked on; nothing was written. Read it again")]
    Moved,
    /// The session ended first.
    #[error("was not written: interrupted")]
    Interrupted,
    /// Anything else the system said.
    #[error("cannot be used: {0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for DiskError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::ENOENT => Self::Missing,
            // What was resolved to a plain name, or to a directory, is something else now.
            Errno::ELOOP | Errno::ENOTDIR => Self::Moved,
            errno => Self::Io(errno.into()),
        }
    }
}

/// A file that a call names.
#[derive(Debug, Clone)]
pub struct Target {
    /// The path, absolute.
    pub path: PathBuf,
    /// Where it led when the call was judged, if it was.
    pub judged: Option<PathBuf>,
}

impl Target {
    /// Where it leads: what was judged, or what is there now.
    pub fn real(&self) -> io::Result<PathBuf> {
        match &self.judged {
            Some(judged) => Ok(judged.clone()),
            None => Ok(resolve(&self.path)?.path),
        }
    }
}

impl From<&Path> for Target {
    fn from(path: &Path) -> Self {
        Self { path: path.to_path_buf(), judged: None }
    }
}

/// Where a file is: an opened directory, and a name in it that was not a link when it was resolved.
#[derive(Debug)]
pub struct Place {
    dir: OwnedFd,
    path: PathBuf,
    name: OsString,
}

/// A file as it was found, to notice whether it is still the same.
#[derive(Debug, Clone)]
pub struct Found {
    /// What the system says about it.
    pub metadata: Metadata,
}

/// What becomes of directories that are missing on the way to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// The file cannot be there.
    Refuse,
    /// They are made.
    Make,
}

impl Place {
    /// Finds the place that is meant. The directory must exist, the file need not.
    pub fn find(target: &Target) -> Result<Self, DiskError> {
        Self::enter(&target.real().map_err(missing)?, Missing::Refuse)
    }

    /// The same, making the directories that are missing.
    pub fn find_or_make(target: &Target) -> Result<Self, DiskError> {
        Self::enter(&target.real().map_err(missing)?, Missing::Make)
    }

    /// Goes to a real path: absolute, and without links when it was resolved. One that is there now is refused.
    pub fn enter(real: &Path, dirs: Missing) -> Result<Self, DiskError> {
        let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(DiskError::Directory);
        };
        let dir = match walk_at_once(parent) {
            Some(Err(Errno::ENOENT)) if dirs == Missing::Make => Self::walk(parent, dirs)?,
            Some(walked) => walked?,
            None => Self::walk(parent, dirs)?,
        };
        // Where the system can tell, the directory that was opened is the one that was judged: not one that was moved
        // while it was entered.
        if path_of(&dir).is_some_and(|opened| opened != parent) {
            return Err(DiskError::Moved);
        }
        Ok(Self { dir, path: real.to_path_buf(), name: name.to_os_string() })
    }

    /// Opens a directory, one name after the other.
    fn walk(parent: &Path, dirs: Missing) -> Result<OwnedFd, DiskError> {
        let mut dir = openat(nix::fcntl::AT_FDCWD, "/", WALKING, Mode::empty())?;
        for below in parent.components().skip(1) {
            let Component::Normal(below) = below else { return Err(DiskError::Moved) };
            dir = match openat(&dir, below, WALKING, Mode::empty()) {
                Err(Errno::ENOENT) if dirs == Missing::Make => {
                    match mkdirat(&dir, below, Mode::S_IRWXU | Mode::S_IRWXG | Mode::S_IRWXO) {
                        Ok(()) | Err(Errno::EEXIST) => {}
                        Err(errno) => return Err(errno.into()),
                    }
                    openat(&dir, below, WALKING, Mode::empty())?
                }
                opened => opened?,
            };
        }
        Ok(dir)
    }

    /// The real path: absolute, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file for reading, without ever waiting for someone at the other end.
    pub fn open(&self) -> Result<(File, Found), DiskError> {
        // Looking first, because merely opening a device can do something.
        let stat = fstatat(&self.dir, self.name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW)?;
        regular(stat.st_mode)?;
        let flags =
            OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let file = File::from(openat(&self.dir, self.name.as_os_str(), flags, Mode::empty())?);
        let metadata = file.metadata()?;
        regular(metadata.mode())?;
        if self.path.starts_with("/proc") {
            // The processes' secrets are in there, and reading some of it waits or acts.
            return Err(DiskError::Special("a view into the kernel"));
        }
        Ok((file, Found { metadata }))
    }

    /// Whether the file may be written. Replacing it would work without that right, against its owner's will.
    pub fn is_writable(&self) -> bool {
        faccessat(&self.dir, self.name.as_os_str(), AccessFlags::W_OK, AtFlags::AT_EACCESS).is_ok()
    }

    /// Puts `content` in the place of what was `found` there (`None`: nothing), keeping its owner and mode. Readers
    /// see the old content or the new, never a part.
    pub fn replace(
        &self,
        content: &[u8],
        found: Option<&Found>,
        cancel: &CancellationToken,
    ) -> Result<(), DiskError> {
        // A new file gets what the process's mask leaves; one that replaces another is private until it is like it.
        let mode = if found.is_some() { 0o600 } else { 0o666 };
        let (mut temporary, mut file) = Temporary::make(&self.dir, Mode::from_bits_truncate(mode))?;
        if let Some(Found { metadata }) = found {
            let own = file.metadata()?;
            if (own.uid(), own.gid()) != (metadata.uid(), metadata.gid()) {
                // Only some may give files away. Without it the file is ours, as with any editor that replaces.
                let _ = std::os::unix::fs::fchown(&file, Some(metadata.uid()), Some(metadata.gid()));
            }
            file.set_permissions(fs::Permissions::from_mode(metadata.mode() & 0o7777))?;
        }
        file.write_all(content)?;
        file.sync_all()?;
        if !self.is_still(found)? {
            return Err(DiskError::Moved);
        }
        if cancel.is_cancelled() {
            return Err(DiskError::Interrupted);
        }
        match found {
            Some(_) => renameat(&self.dir, temporary.name.as_str(), &self.dir, self.name.as_os_str())?,
            None => rename_new(&self.dir, temporary.name.as_str(), &self.name)?,
        }
        temporary.there = false;
        sync_dir(&self.dir);
        Ok(())
    }

    /// Puts a file there, whatever was there before unless it is a directory. Readers see the old or the new, never a part.
    pub fn put(&self, content: &[u8], mode: u32) -> Result<(), DiskError> {
        let (mut temporary, mut file) = Temporary::make(&self.dir, Mode::S_IRUSR | Mode::S_IWUSR)?;
        file.set_permissions(fs::Permissions::from_mode(mode & 0o7777))?;
        file.write_all(content)?;
        file.sync_all()?;
        renameat(&self.dir, temporary.name.as_str(), &self.dir, self.name.as_os_str())?;
        temporary.there = false;
        sync_dir(&self.dir);
        Ok(())
    }

    /// Puts a link there, in the same way.
    pub fn put_link(&self, to: &Path) -> Result<(), DiskError> {
        let (mut temporary, _) = Temporary::make(&self.dir, Mode::S_IRUSR | Mode::S_IWUSR)?;
        unlinkat(&self.dir, temporary.name.as_str(), UnlinkatFlags::NoRemoveDir)?;
        symlinkat(to, &self.dir, temporary.name.as_str())?;
        renameat(&self.dir, temporary.name.as_str(), &self.dir, self.name.as_os_str())?;
        temporary.there = false;
        sync_dir(&self.dir);
        Ok(())
    }

    /// Takes a file or a link away.
    pub fn remove(&self) -> Result<(), DiskError> {
        Ok(unlinkat(&self.dir, self.name.as_os_str(), UnlinkatFlags::NoRemoveDir)?)
    }

    /// Takes an empty directory away.
    pub fn remove_dir(&self) -> Result<(), DiskError> {
        Ok(unlinkat(&self.dir, self.name.as_os_str(), UnlinkatFlags::RemoveDir)?)
    }

    /// Makes a directory. One that is there already is as good.
    pub fn make_dir(&self) -> Result<(), DiskError> {
        match mkdirat(&self.dir, self.name.as_os_str(), Mode::S_IRWXU | Mode::S_IRWXG | Mode::S_IRWXO) {
            Ok(()) | Err(Errno::EEXIST) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Gives a directory another mode. A link in its place is refused.
    pub fn set_dir_mode(&self, mode: u32) -> Result<(), DiskError> {
        let stat = fstatat(&self.dir, self.name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW)?;
        if stat.st_mode & libc::S_IFMT != libc::S_IFDIR {
            return Err(DiskError::Moved);
        }
        let mode = Mode::from_bits_truncate((mode & 0o7777) as nix::sys::stat::mode_t);
        Ok(fchmodat(&self.dir, self.name.as_os_str(), mode, FchmodatFlags::NoFollowSymlink)?)
    }

    fn is_still(&self, found: Option<&Found>) -> Result<bool, DiskError> {
        let now = match fstatat(&self.dir, self.name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => Some(stat),
            Err(Errno::ENOENT) => None,
            Err(errno) => return Err(errno.into()),
        };
        Ok(match (found, now) {
            (None, None) => true,
            (Some(found), Some(now)) => stamp_of_metadata(&found.metadata) == stamp_of_stat(&now),
            _ => false,
        })
    }
}

/// Whether a file is read sooner than a thread is woken to do it: a short one, on a disk of this machine.
pub(crate) fn is_quick(path: &Path) -> bool {
    let is_short = |about: Metadata| about.is_file() && about.len() <= QUICK_BYTES_MAX;
    is_on_this_machine(path) && fs::symlink_metadata(path).is_ok_and(is_short)
}

/// File systems of which every change is made by this kernel: it hears of it, and waits for no other machine.
#[cfg(target_os = "linux")]
pub(crate) fn is_on_this_machine(path: &Path) -> bool {
    use nix::sys::statfs::{self, FsType, statfs};
    const HERE_ALONE: &[FsType] = &[
        statfs::EXT4_SUPER_MAGIC,
        statfs::BTRFS_SUPER_MAGIC,
        statfs::TMPFS_MAGIC,
        statfs::OVERLAYFS_SUPER_MAGIC,
        #[cfg(not(target_env = "musl"))]
        statfs::XFS_SUPER_MAGIC,
    ];
    statfs(path).is_ok_and(|about| HERE_ALONE.contains(&about.filesystem_type()))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_on_this_machine(_path: &Path) -> bool {
    false
}

/// Names in the directory of a missing file that look like what was meant, best first.
pub fn neighbours(path: &Path) -> Vec<PathBuf> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let names: Vec<String> = entries
        .take(NEIGHBOURS_READ_MAX)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    similar::get_close_matches(name, &names, 3, 0.6).into_iter().map(|name| parent.join(name)).collect()
}

/// A file that is removed again unless it was renamed.
struct Temporary<'a> {
    dir: &'a OwnedFd,
    name: String,
    /// It still has this name.
    there: bool,
}

impl<'a> Temporary<'a> {
    fn make(dir: &'a OwnedFd, mode: Mode) -> Result<(Self, File), DiskError> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut tries = 0;
        loop {
            // Unique on this machine. Another machine, or a process that died with our number, may have taken it.
            let name =
                format!(".pelton-{}-{}.tmp", nix::unistd::getpid(), MADE.fetch_add(1, Ordering::Relaxed));
            match openat(dir, name.as_str(), flags, mode) {
                Ok(file) => return Ok((Self { dir, name, there: true }, file.into())),
                Err(Errno::EEXIST) if tries < TEMPORARY_NAMES_TRIED_MAX => tries += 1,
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if self.there {
            // If it cannot be removed there is nobody left to tell.
            let _ = unlinkat(self.dir, self.name.as_str(), UnlinkatFlags::NoRemoveDir);
        }
    }
}

fn missing(error: io::Error) -> DiskError {
    if error.kind() == io::ErrorKind::NotFound { DiskError::Missing } else { error.into() }
}

/// How directories are entered: without following links, and without the right to list them where that can be had.
#[cfg(target_os = "linux")]
pub(super) const WALKING: OFlag =
    OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);
#[cfg(not(target_os = "linux"))]
pub(super) const WALKING: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// Gives a file its name unless somebody else took that in the meantime.
fn rename_new(dir: &OwnedFd, from: &str, to: &OsStr) -> Result<(), DiskError> {
    #[cfg(target_os = "linux")]
    {
        use nix::fcntl::{RenameFlags, renameat2};
        match renameat2(dir, from, dir, to, RenameFlags::RENAME_NOREPLACE) {
            Err(Errno::EEXIST) => return Err(DiskError::Moved),
            // Not every file system can do it.
            Err(Errno::EINVAL | Errno::ENOSYS) => {}
            done => return Ok(done?),
        }
    }
    Ok(renameat(dir, from, dir, to)?)
}

/// Waits until the names in a directory are on the disk. The content is there already; a file system that cannot sync
/// directories does not undo that.
fn sync_dir(dir: &OwnedFd) {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    if let Ok(dir) = openat(dir, ".", flags, Mode::empty()) {
        let _ = fsync(&dir);
    }
}

/// The same as going name by name, if the system does it by itself: it refuses any link on the way. `None` if it does not, or if
/// there are names that are no plain ones.
#[cfg(target_os = "linux")]
fn walk_at_once(dir: &Path) -> Option<Result<OwnedFd, Errno>> {
    use nix::fcntl::{OpenHow, ResolveFlag, openat2};
    if !dir.components().skip(1).all(|name| matches!(name, Component::Normal(_))) {
        return None;
    }
    let how = OpenHow::new().flags(WALKING).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    match openat2(nix::fcntl::AT_FDCWD, dir, how) {
        // Kernels before 5.6, and boxes that let nobody call it.
        Err(Errno::ENOSYS | Errno::EPERM | Errno::EAGAIN) => None,
        opened => Some(opened),
    }
}

#[cfg(not(target_os = "linux"))]
fn walk_at_once(_dir: &Path) -> Option<Result<OwnedFd, Errno>> {
    None
}

/// Where an opened directory is, where the system can tell.
#[cfg(target_os = "linux")]
pub(super) fn path_of(dir: &OwnedFd) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;
    fs::read_link(format!("/proc/self/fd/{}", dir.as_raw_fd())).ok()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn path_of(_dir: &OwnedFd) -> Option<PathBuf> {
    None
}

// The width of a mode differs between systems.
#[allow(clippy::unnecessary_cast)]
fn regular(mode: impl Into<u32>) -> Result<(), DiskError> {
    match mode.into() & libc::S_IFMT as u32 {
        kind if kind == libc::S_IFREG as u32 => Ok(()),
        kind if kind == libc::S_IFDIR as u32 => Err(DiskError::Directory),
        kind if kind == libc::S_IFLNK as u32 => Err(DiskError::Moved),
        kind if kind == libc::S_IFIFO as u32 => Err(DiskError::Special("a FIFO")),
        kind if kind == libc::S_IFSOCK as u32 => Err(DiskError::Special("a socket")),
        _ => Err(DiskError::Special("a device")),
    }
}

type Stamp = (u64, u64, u64, i64, i64);

fn stamp_of_metadata(metadata: &Metadata) -> Stamp {
    (metadata.dev(), metadata.ino(), metadata.size(), metadata.mtime(), metadata.mtime_nsec())
}

// The widths of these fields differ between systems.
#[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
fn stamp_of_stat(stat: &FileStat) -> Stamp {
    (
        stat.st_dev as u64,
        stat.st_ino as u64,
        stat.st_size as u64,
        stat.st_mtime as i64,
        stat.st_mtime_nsec as i64,
    )
}

#[cfg(test)]
mod tests;
