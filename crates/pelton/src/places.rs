//! Where a path leads. Everything that judges a path and everything that opens one asks here, so that both always
//! mean the same file.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;

use crate::limits::{LINKS_FOLLOWED_MAX, PATH_STEPPED_BYTES_MAX};

/// A path without links, `.` and `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// Absolute. What exists of it is no link; what does not is where it would be made.
    pub path: PathBuf,
    /// How many of its last names do not exist.
    pub missing: usize,
}

/// Follows an absolute path name by name, the way the system does: `link/..` is the directory above the link's
/// target, and a link to nothing leads to where its file would be made. Circles, `..` behind something that is no
/// directory, and links in the process file system have no answer.
pub(crate) fn resolve(path: &Path) -> io::Result<Resolved> {
    follow(path, look)
}

/// Follows paths, and looks at no name twice: what it says of several is said of one moment, and costs little.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    seen: RefCell<HashMap<OsString, Option<Metadata>>>,
    /// Where paths have led.
    led: RefCell<HashMap<OsString, Resolved>>,
}

impl Follower {
    /// As [`resolve`].
    pub fn resolve(&self, path: &Path) -> io::Result<Resolved> {
        if let Some(found) = self.led.borrow().get(path.as_os_str()) {
            return Ok(found.clone());
        }
        let found = match self.one_further(path) {
            Some(found) => found,
            None => follow(path, |path| self.look(path))?,
        };
        self.led.borrow_mut().insert(path.as_os_str().to_owned(), found.clone());
        Ok(found)
    }

    /// What is there, links not followed; `None` if nothing is.
    pub fn look(&self, path: &Path) -> io::Result<Option<Metadata>> {
        if let Some(seen) = self.seen.borrow().get(path.as_os_str()) {
            return Ok(seen.clone());
        }
        let found = look(path)?;
        self.seen.borrow_mut().insert(path.as_os_str().to_owned(), found.clone());
        Ok(found)
    }

    /// Where a path leads of which the last name is no link, given where the directory above it does: most paths of a
    /// command share that. `None` if it is not as simple as that.
    fn one_further(&self, path: &Path) -> Option<Resolved> {
        let is_short = path.as_os_str().len() <= PATH_STEPPED_BYTES_MAX;
        if !cfg!(target_os = "linux") || !path.is_absolute() || !is_short {
            return None;
        }
        let (above, name) = (path.parent()?, path.file_name()?);
        let above = self.resolve(above).ok()?;
        let next = above.path.join(name);
        if above.missing > 0 {
            return Some(Resolved { path: next, missing: above.missing + 1 });
        }
        let is_dir = above.path == Path::new("/") || self.look(&above.path).ok()??.is_dir();
        is_dir.then_some(())?;
        match self.look(&next).ok()? {
            None => Some(Resolved { path: next, missing: 1 }),
            Some(there) => (!there.is_symlink()).then_some(Resolved { path: next, missing: 0 }),
        }
    }
}

fn look(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn follow(path: &Path, look: impl Fn(&Path) -> io::Result<Option<Metadata>>) -> io::Result<Resolved> {
    if !path.is_absolute() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut ahead: VecDeque<Step> = steps(path).collect();
    let mut real = PathBuf::from("/");
    let mut missing = Vec::new();
    let mut in_directory = true;
    let mut links = 0;
    while let Some(step) = ahead.pop_front() {
        let name = match step {
            Step::Up if !missing.is_empty() => return Err(io::ErrorKind::NotFound.into()),
            _ if !in_directory => return Err(Errno::ENOTDIR.into()),
            Step::Up => {
                real.pop();
                continue;
            }
            Step::Down(name) if missing.is_empty() => name,
            Step::Down(name) => {
                missing.push(name);
                continue;
            }
        };
        let next = real.join(&name);
        let Some(kind) = look(&next)?.map(|metadata| metadata.file_type()) else {
            missing.push(name);
            continue;
        };
        if !kind.is_symlink() {
            in_directory = kind.is_dir();
            real = next;
            continue;
        }
        // These mean something else to each process that follows them.
        if real.starts_with("/proc") {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "a link that differs for each process"));
        }
        links += 1;
        if links > LINKS_FOLLOWED_MAX {
            return Err(Errno::ELOOP.into());
        }
        let target = fs::read_link(&next)?;
        if target.is_absolute() {
            real = PathBuf::from("/");
        }
        for step in steps(&target).rev() {
            ahead.push_front(step);
        }
    }
    let path = missing.iter().fold(as_spelled(real), |path, name| path.join(name));
    Ok(Resolved { path, missing: missing.len() })
}

/// The path without `.` and `..`, by its letters alone: as somebody reads it who knows of no links.
///
/// ```
/// use std::path::Path;
///
/// assert_eq!(pelton::normalised(Path::new("/srv/shop/../jars/./old")), Path::new("/srv/jars/old"));
/// ```
pub fn normalised(path: &Path) -> PathBuf {
    let mut normal = PathBuf::with_capacity(path.as_os_str().len());
    normal.push("/");
    for part in path.components() {
        match part {
            Component::ParentDir => _ = normal.pop(),
            Component::Normal(name) => normal.push(name),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
        }
    }
    normal
}

/// Whether a path lies in a directory or is it, both without `.`, `..` and slashes too many: `Path::starts_with` says the same of
/// such paths, and takes them to pieces for it.
pub(crate) fn lies_in(path: &Path, dir: &Path) -> bool {
    let (path, dir) = (path.as_os_str().as_encoded_bytes(), dir.as_os_str().as_encoded_bytes());
    path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || dir.ends_with(b"/"))
}

enum Step {
    Up,
    Down(OsString),
}

fn steps(path: &Path) -> impl DoubleEndedIterator<Item = Step> {
    path.components().filter_map(|part| match part {
        Component::ParentDir => Some(Step::Up),
        Component::Normal(name) => Some(Step::Down(name.to_owned())),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    })
}

/// Where names are found in any case, the spelling on the disk counts: rules are written in that.
fn as_spelled(real: PathBuf) -> PathBuf {
    if cfg!(target_os = "linux") { real } else { fs::canonicalize(&real).unwrap_or(real) }
}

#[cfg(test)]
mod tests;
