//! Texts too long to be told: all of it goes to a file, and its beginning and end take its place, with a note between
//! them that says where the rest is.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use crate::secrets::Secrets;

/// Names tried for a file that grows while its text comes.
const NAMES_TRIED_MAX: usize = 100;
/// Characters of a call's id that become part of a name.
const ID_CHARS_MAX: usize = 64;
/// Bits of a mode.
const WRITABLE_BY_ALL: u32 = 0o002;
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// What is shown of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Its beginning, or all of it.
    pub head: String,
    /// Its end.
    pub tail: String,
    /// Bytes between the two.
    pub omitted: u64,
}

impl Shown {
    /// A text that is short enough, or its beginning and end. Characters stay whole.
    pub fn of(text: &str, chars_max: usize) -> Self {
        if text.chars().nth(chars_max).is_none() {
            return Self { head: text.to_owned(), tail: String::new(), omitted: 0 };
        }
        let (head, tail) = (first_chars(text, chars_max / 2), last_chars(text, chars_max / 2));
        let omitted = (text.len() - head.len() - tail.len()) as u64;
        Self { head: head.to_owned(), tail: tail.to_owned(), omitted }
    }

    /// The words for the model.
    pub fn with_note(&self, kept_at: Option<&Path>) -> String {
        if self.omitted == 0 {
            return self.head.trim_end_matches('\n').to_owned();
        }
        let file = kept_at.map_or(String::new(), |path| {
            format!(" All of it is in {}: use Read with offset and limit, or Grep, on that", path.display())
        });
        let Self { head, tail, omitted } = self;
        format!("{head}\n[… {omitted} bytes omitted.{file} …]\n{}", tail.trim_end_matches('\n'))
    }
}

/// The first characters of a text.
pub(crate) fn first_chars(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(at, _)| &text[..at])
}

/// The last characters of a text.
pub(crate) fn last_chars(text: &str, chars: usize) -> &str {
    let start = text.char_indices().rev().take(chars).last().map_or(text.len(), |(at, _)| at);
    &text[start..]
}

/// A file that is made when a text turns out to be long, and grows with it.
#[derive(Default)]
pub(crate) enum Spill {
    /// Not needed so far.
    #[default]
    None,
    /// It is being written.
    Open {
        /// The file.
        file: File,
        /// Where it is.
        path: PathBuf,
    },
    /// It was needed and could not be made or written.
    Failed(io::Error),
}

impl Spill {
    /// Makes the file, if it is not there yet, and puts into it what came so far.
    pub async fn open(&mut self, dir: &Path, id: &str, so_far: [&[u8]; 3]) {
        if !matches!(self, Self::None) {
            return;
        }
        *self = match make_file(dir, id).await {
            Ok((file, path)) => Self::Open { file, path },
            Err(error) => Self::Failed(error),
        };
        for piece in so_far {
            self.write(piece).await;
        }
    }

    /// Adds to the file, if there is one.
    pub async fn write(&mut self, bytes: &[u8]) {
        if let Self::Open { file, .. } = self
            && let Err(error) = file.write_all(bytes).await
        {
            self.fail(error);
        }
    }

    /// Half a text is of no use, and on a full disk what is recorded needs its room.
    fn fail(&mut self, error: io::Error) {
        if let Self::Open { path, .. } = std::mem::replace(self, Self::Failed(error)) {
            // What cannot be removed does no harm but for its size.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Lets others see what was written.
    pub async fn flush(&mut self) {
        if let Self::Open { file, .. } = self
            && let Err(error) = file.flush().await
        {
            self.fail(error);
        }
    }

    /// Where the file is, or why it is not there although it should be.
    /// Secrets are taken out of it.
    pub async fn finish(mut self, secrets: &Secrets) -> (Option<PathBuf>, Option<io::Error>) {
        self.flush().await;
        if let Self::Open { path, .. } = &self {
            let (path, secrets) = (path.clone(), secrets.clone());
            let rid = tokio::task::spawn_blocking(move || secrets.leave(&path)).await;
            if let Err(error) = rid.map_err(io::Error::other).and_then(|done| done) {
                self.fail(error);
            }
        }
        match self {
            Self::None => (None, None),
            Self::Open { path, .. } => (Some(path), None),
            Self::Failed(error) => (None, Some(error)),
        }
    }
}

/// A file for a program to write to, readable by its owner alone.
pub(crate) async fn growing(dir: &Path, id: &str) -> io::Result<(std::fs::File, PathBuf)> {
    let (file, path) = make_file(dir, id).await?;
    Ok((file.into_std().await, path))
}

/// Keeps a whole text under a name that follows from `id`, so that it is the same whenever it is kept again. Readable by
/// its owner alone: it may hold anything.
pub(crate) async fn keep(dir: &Path, secrets: &Secrets, id: &str, text: &str) -> io::Result<PathBuf> {
    keep_as(dir, secrets, id, "txt", text.as_bytes().to_vec()).await
}

/// The same for anything; `extension` says what it is.
pub(crate) async fn keep_as(
    dir: &Path,
    secrets: &Secrets,
    id: &str,
    extension: &'static str,
    content: Vec<u8>,
) -> io::Result<PathBuf> {
    let (dir, path) = (dir.to_path_buf(), dir.join(format!("{}.{extension}", name(id))));
    let content = secrets.out_of(&content).into_owned();
    let kept = tokio::task::spawn_blocking(move || {
        make_dir(&dir)?;
        // It was kept before, and whole.
        let is_there = std::fs::metadata(&path).is_ok_and(|kept| kept.len() == content.len() as u64)
            && std::fs::read(&path).is_ok_and(|kept| kept == content);
        if !is_there {
            let mut options = std::fs::OpenOptions::new();
            // A link in its place leads to a file that is not ours to write.
            options.write(true).create(true).truncate(true).mode(0o600).custom_flags(nix::libc::O_NOFOLLOW);
            let mut file = options.open(&path)?;
            if let Err(error) = io::Write::write_all(&mut file, &content) {
                // As above: half of it only takes room.
                let _ = std::fs::remove_file(&path);
                return Err(error);
            }
        }
        Ok(path)
    });
    kept.await.map_err(io::Error::other)?
}

async fn make_file(dir: &Path, id: &str) -> io::Result<(File, PathBuf)> {
    let (dir, name) = (dir.to_path_buf(), name(id));
    let made = tokio::task::spawn_blocking(move || {
        make_dir(&dir)?;
        for n in 0..NAMES_TRIED_MAX {
            let path = dir.join(if n == 0 { format!("{name}.txt") } else { format!("{name}-{n}.txt") });
            match std::fs::OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => return Ok((File::from_std(file), path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    });
    made.await.map_err(io::Error::other)?
}

/// Makes a directory for this user alone. Where everybody may put something, it must be one that nobody else made.
fn make_dir(dir: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let is_shared = match dir.parent() {
        Some(parent) => std::fs::metadata(parent)?.mode() & WRITABLE_BY_ALL != 0,
        None => false,
    };
    let about = std::fs::symlink_metadata(dir)?;
    let is_own = about.is_dir()
        && about.uid() == nix::unistd::geteuid().as_raw()
        && about.mode() & WRITABLE_BY_OTHERS == 0;
    if is_shared && !is_own {
        let why = format!("{} was made by somebody else", dir.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(())
}

/// Ids come from the model's side of the wire: only harmless characters of them become part of a path.
fn name(id: &str) -> String {
    let harmless = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name: String = id.chars().filter(harmless).take(ID_CHARS_MAX).collect();
    if name == id && !id.is_empty() { name } else { format!("{name}-{:016x}", fnv(id.as_bytes())) }
}

/// Tells apart ids that look alike once their other characters are gone. The same in every version.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[tokio::test]
    async fn where_everybody_may_write_a_directory_of_somebody_else_is_not_used() {
        let shared = tempfile::tempdir().unwrap();
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(shared.path(), 0o1777);
        let kept =
            async |name: &str| keep(&shared.path().join(name), &Secrets::default(), "id", "text").await;
        assert!(kept("fresh").await.is_ok() && kept("fresh").await.is_ok());
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), shared.path().join("link")).unwrap();
        std::fs::create_dir(shared.path().join("open")).unwrap();
        mode(&shared.path().join("open"), 0o777);
        let mut others = vec!["link", "open"];
        if nix::unistd::geteuid().is_root() {
            let foreign = shared.path().join("foreign");
            std::fs::create_dir(&foreign).unwrap();
            mode(&foreign, 0o700);
            std::os::unix::fs::chown(&foreign, Some(65534), None).unwrap();
            others.push("foreign");
        }
        for name in others {
            let error = kept(name).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{name}");
            assert!(make_file(&shared.path().join(name), "id").await.is_err(), "{name}");
        }
        assert!(std::fs::read_dir(elsewhere.path()).unwrap().next().is_none());
        // The user's own links elsewhere are the user's business; one in the place of the file is not followed.
        mode(shared.path(), 0o755);
        assert!(kept("link").await.is_ok());
        let target = elsewhere.path().join("target");
        std::fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, shared.path().join("fresh/other.txt")).unwrap();
        let dir = shared.path().join("fresh");
        assert!(keep(&dir, &Secrets::default(), "other", "text").await.is_err());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
    }

    #[tokio::test]
    async fn a_text_is_kept_once_and_mended_when_torn() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("a/b");
        let path = keep(&dir, &Secrets::default(), "toolu_1", "all of it").await.unwrap();
        assert_eq!(path, dir.join("toolu_1.txt"));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        for torn in ["", "all of", "something else that is longer", "all of xx"] {
            std::fs::write(&path, torn).unwrap();
            assert_eq!(keep(&dir, &Secrets::default(), "toolu_1", "all of it").await.unwrap(), path);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "all of it");
        }
    }

    #[test]
    fn names_stay_in_their_directory_and_apart() {
        assert_eq!(name("toolu_1-a"), "toolu_1-a");
        for id in ["../../etc/passwd", "a/b", "a.b", "ab\0", "", &"x".repeat(1000), &"x".repeat(1001)] {
            let name = name(id);
            assert!(name.len() < 100 && !name.contains(['/', '.', '\0']) && name != id, "{name}");
        }
        assert_ne!(name("a.b"), name("a/b"));
        assert_ne!(name(&"x".repeat(1000)), name(&"x".repeat(1001)));
    }
}
