//! What is at a path, as far as it can be brought back. Pure data, and the form it has on disk.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Stands for content: the first bytes of its SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash([u8; HASH_BYTES]);

/// Enough that nobody finds two contents with the same.
const HASH_BYTES: usize = 20;

impl Hash {
    pub fn of(content: &[u8]) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, content);
        let mut hash = [0; HASH_BYTES];
        hash.copy_from_slice(&digest.as_ref()[..HASH_BYTES]);
        Self(hash)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = unhex(&text).and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| de::Error::custom("not a hash"))
    }
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing.
    Absent,
    /// A directory, whatever is in it.
    Dir { mode: u32 },
    /// A file whose content is kept.
    File { hash: Hash, bytes: u64, mode: u32 },
    /// A symbolic link.
    Link { to: SavedPath },
    /// Something whose content is not kept. `mark` is another one when it was changed.
    Unkept { why: Unkept, mark: Mark },
}

/// Why content is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unkept {
    /// The file is over the limit.
    TooLarge,
    /// All that may be kept in all is kept.
    Full,
    /// It could not be read.
    Unreadable,
    /// A device, a FIFO, a socket.
    Special,
}

impl State {
    pub fn is_dir(&self) -> bool {
        matches!(self, Self::Dir { .. })
    }
}

impl Unkept {
    pub fn words(self) -> &'static str {
        match self {
            Self::TooLarge => "too large to be kept",
            Self::Full => "the space for kept files is used up",
            Self::Unreadable => "cannot be read",
            Self::Special => "not a regular file",
        }
    }
}

/// What the system says about something: a file with another mark may have changed, one with the same has not (but see
/// `Entry::racy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Mark {
    pub inode: u64,
    pub bytes: u64,
    pub modified_ns: i64,
    pub changed_ns: i64,
    pub mode: u32,
}

impl Mark {
    /// Who may do what with it, without what kind of thing it is.
    pub fn permissions(self) -> u32 {
        self.mode & 0o7777
    }
}

/// One thing that was done to one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub path: SavedPath,
    pub before: State,
    pub after: State,
}

/// A path in a JSON text. One that is not UTF-8 is a NUL, which no path has, and its bytes in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SavedPath(pub PathBuf);

impl SavedPath {
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl From<&Path> for SavedPath {
    fn from(path: &Path) -> Self {
        Self(path.to_path_buf())
    }
}

impl Serialize for SavedPath {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => to.serialize_str(text),
            None => to.serialize_str(&format!("\0{}", hex(self.0.as_os_str().as_bytes()))),
        }
    }
}

impl<'de> Deserialize<'de> for SavedPath {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let Some(digits) = text.strip_prefix('\0') else { return Ok(Self(text.into())) };
        let bytes = unhex(digits).ok_or_else(|| de::Error::custom("not a path"))?;
        Ok(Self(PathBuf::from(std::ffi::OsString::from_vec(bytes))))
    }
}

impl AsRef<OsStr> for SavedPath {
    fn as_ref(&self) -> &OsStr {
        self.0.as_os_str()
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits =
        bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    digits.map(char::from).collect()
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let value = |digit: u8| char::from(digit).to_digit(16);
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| u8::try_from(value(*high)? * 16 + value(*low)?).ok()).collect()
}
