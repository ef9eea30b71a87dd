//! The file that a login is kept in: read, locked, replaced. Blocking.
//!
//! Other programs keep things of their own in it: what we do not know stays as it is.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::client::Secret;

/// The most bytes such a file may have.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// The part of the file that is ours.
const SECTION: &str = "claudeAiOauth";

/// A login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Login {
    pub(super) access: Secret,
    /// `None`: it cannot be renewed.
    pub(super) refresh: Option<Secret>,
    /// `None`: nobody knows.
    pub(super) expires_at: Option<Timestamp>,
}

/// What a renewal brought.
#[derive(Clone, Debug)]
pub(super) struct Renewal {
    pub(super) access: Secret,
    /// `None`: the old one stays good.
    pub(super) refresh: Option<Secret>,
    pub(super) expires_at: Option<Timestamp>,
    /// `None`: as before.
    pub(super) scopes: Option<Vec<String>>,
}

/// Reads a login. Errors are words for people and hold nothing secret.
pub(super) fn read(path: &Path) -> Result<Login, String> {
    let section = &read_all(path)?[SECTION];
    let text = |name: &str| section[name].as_str().filter(|text| !text.is_empty()).map(Secret::new);
    let Some(access) = text("accessToken") else { return Err(told(path, "holds no login")) };
    let expires_at = section["expiresAt"].as_f64().and_then(|ms| Timestamp::from_millisecond(ms as i64).ok());
    Ok(Login { access, refresh: text("refreshToken"), expires_at })
}

/// A place for the next version of a file, taken before it is needed: a token that was exchanged and cannot be
/// written down is lost.
pub(super) struct Replacement {
    path: PathBuf,
    file: NamedTempFile,
}

impl Replacement {
    pub(super) fn prepare(path: &Path) -> Result<Self, String> {
        let failed = |error: io::Error| told(path, &format!("cannot be replaced: {error}"));
        // A link stays a link; the file behind it is the one that is replaced.
        let path = fs::canonicalize(path).map_err(failed)?;
        let folder = path.parent().unwrap_or(Path::new("/"));
        // Readable for its owner alone from the first moment: that is what this kind of file is for.
        let file = tempfile::Builder::new().prefix(".credentials-").tempfile_in(folder).map_err(failed)?;
        Ok(Self { path, file })
    }

    /// Replaces the file at once and whole: whoever reads it sees the old one or the new one.
    pub(super) fn write(mut self, renewal: &Renewal) -> Result<(), String> {
        let mut all = read_all(&self.path)?;
        let section = &mut all[SECTION];
        section["accessToken"] = renewal.access.reveal().into();
        if let Some(refresh) = &renewal.refresh {
            section["refreshToken"] = refresh.reveal().into();
        }
        section["expiresAt"] = renewal.expires_at.map(Timestamp::as_millisecond).into();
        if let Some(scopes) = &renewal.scopes {
            section["scopes"] = scopes.clone().into();
        }
        let failed = |error: io::Error| told(&self.path, &format!("cannot be replaced: {error}"));
        self.file.write_all(all.to_string().as_bytes()).map_err(failed)?;
        self.file.as_file().sync_all().map_err(failed)?;
        self.file.persist(&self.path).map_err(|error| failed(error.error))?;
        // The name is in the folder, and the folder is written when it is asked to be.
        #[cfg(unix)]
        if let Some(folder) = self.path.parent() {
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        }
        Ok(())
    }
}

/// Held by the one process that renews a login. Ends with the process, however that ends.
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock; `None` if another process has it.
    pub(super) fn try_take(path: &Path) -> Result<Option<Self>, String> {
        // The file itself is replaced while it is locked, so the lock is on a neighbour.
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let failed = |error: io::Error| told(path, &format!("cannot be locked: {error}"));
        let file = options.open(&name).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

fn read_all(path: &Path) -> Result<Value, String> {
    let unreadable = |error: io::Error| told(path, &format!("cannot be read: {error}"));
    let file = File::open(path).map_err(unreadable)?;
    let about = file.metadata().map_err(unreadable)?;
    if !is_ours(&about) {
        return Err(told(path, "belongs to somebody else"));
    }
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text).map_err(unreadable)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(told(path, "is too large to be one"));
    }
    match serde_json::from_slice(&text) {
        Ok(all @ Value::Object(_)) => Ok(all),
        // What exactly is wrong would quote from the file.
        _ => Err(told(path, "is not a JSON object")),
    }
}

/// Somebody else's tokens are not used: their owner could have put them there for us to find.
#[cfg(unix)]
fn is_ours(about: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(about) == nix::unistd::Uid::effective().as_raw()
}

#[cfg(not(unix))]
fn is_ours(_: &Metadata) -> bool {
    true
}

fn told(path: &Path, what: &str) -> String {
    format!("the credentials file {} {what}", path.display())
}
