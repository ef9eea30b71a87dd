//! What is at one path: looking, and putting back.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use nix::libc;

use super::state::{Hash, Mark, State, Unkept};
use crate::tools::disk::{DiskError, Missing, Place};

/// Something at a path.
#[derive(Debug)]
pub struct Seen {
    pub mark: Mark,
    pub state: State,
    /// It was changed while it was looked at.
    pub unsteady: bool,
}

/// The mark of whatever is at a path, links not followed.
pub fn mark(path: &Path) -> Option<Mark> {
    fs::symlink_metadata(path).ok().map(|about| Mark::from(&about))
}

/// When it was made, where the file system knows.
pub fn born_ns(path: &Path) -> Option<i64> {
    let born = fs::symlink_metadata(path).ok()?.created().ok()?;
    i64::try_from(born.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
}

/// Whether nobody can say what is at a path: a directory on the way lets us not in.
pub fn is_hidden(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Looks at a path. `keep` gets the content of a file, and tells whether there was room for it.
pub fn see(
    path: &Path,
    bytes_max: u64,
    keep: impl FnOnce(Hash, &[u8]) -> io::Result<bool>,
) -> io::Result<Seen> {
    let about = match fs::symlink_metadata(path) {
        Ok(about) => about,
        Err(error) => {
            let state = if error.kind() == io::ErrorKind::PermissionDenied {
                State::Unkept { why: Unkept::Unreadable, mark: Mark::default() }
            } else {
                State::Absent
            };
            return Ok(Seen { mark: Mark::default(), state, unsteady: false });
        }
    };
    let mark = Mark::from(&about);
    let unkept = |why| State::Unkept { why, mark };
    let kind = about.file_type();
    let mut unsteady = false;
    let state = if kind.is_dir() {
        State::Dir { mode: mark.permissions() }
    } else if kind.is_symlink() {
        match fs::read_link(path) {
            Ok(to) => State::Link { to: to.as_path().into() },
            Err(_) => unkept(Unkept::Unreadable),
        }
    } else if !kind.is_file() {
        unkept(Unkept::Special)
    } else if mark.bytes > bytes_max {
        unkept(Unkept::TooLarge)
    } else {
        match content(path, bytes_max) {
            Ok((content, after)) => {
                unsteady = after != mark;
                let hash = Hash::of(&content);
                if keep(hash, &content)? {
                    State::File { hash, bytes: content.len() as u64, mode: mark.permissions() }
                } else {
                    unkept(Unkept::Full)
                }
            }
            Err(_) => unkept(Unkept::Unreadable),
        }
    };
    Ok(Seen { mark, state, unsteady })
}

/// The content of a file, and its mark after reading.
fn content(path: &Path, bytes_max: u64) -> io::Result<(Vec<u8>, Mark)> {
    let file =
        fs::OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let mut content = Vec::new();
    (&file).take(bytes_max.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > bytes_max {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok((content, Mark::from(&file.metadata()?)))
}

/// Puts a state in the place of another. Directories on the way are made. What is there must be `now`. A directory gets its mode from
/// [`set_mode`] when everything in it is in its place: until then it has to let us in.
pub fn put(
    path: &Path,
    now: &State,
    target: &State,
    content: impl FnOnce(Hash) -> io::Result<Vec<u8>>,
) -> Result<(), DiskError> {
    let place = Place::enter(path, if *target == State::Absent { Missing::Refuse } else { Missing::Make })?;
    match target {
        State::Absent => match now {
            State::Dir { .. } => place.remove_dir(),
            _ => place.remove(),
        },
        State::Dir { .. } if now.is_dir() => Ok(()),
        State::Dir { .. } => {
            if !matches!(now, State::Absent) {
                place.remove()?;
            }
            place.make_dir()
        }
        State::File { hash, mode, .. } => {
            let content = content(*hash)?;
            if now.is_dir() {
                place.remove_dir()?;
            }
            place.put(&content, *mode)
        }
        State::Link { to } => {
            if now.is_dir() {
                place.remove_dir()?;
            }
            place.put_link(to.as_path())
        }
        State::Unkept { .. } => Err(io::Error::from(io::ErrorKind::NotFound).into()),
    }
}

/// Gives a directory a mode.
pub fn set_mode(path: &Path, mode: u32) -> Result<(), DiskError> {
    Place::enter(path, Missing::Refuse)?.set_dir_mode(mode)
}
