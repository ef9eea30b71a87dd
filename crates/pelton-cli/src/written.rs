//! Files of settings and state that are changed: one writer at a time, whole or not at all, and never by way of a link.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};

use crate::resolve::text_of;

/// How long another writer is waited for.
const LOCK_WAIT: Duration = Duration::from_secs(5);
const LOCK_LOOK: Duration = Duration::from_millis(20);

/// Who may see a file that is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Its owner alone.
    ByOwner,
    /// Whoever the user's mask lets: it is shared with the repository.
    ByMask,
}

/// Changes a file by its text, which is empty if there is none. `None` from `edit` leaves it as it is.
pub(crate) fn change(
    file: &Path,
    bytes_max: u64,
    seen: Seen,
    edit: impl FnOnce(&str) -> Result<Option<String>, String>,
) -> Result<(), String> {
    let about = |error: io::Error| format!("{}: {error}", file.display());
    let dir = file.parent().ok_or_else(|| format!("{} has no directory", file.display()))?;
    make(dir, seen).map_err(about)?;
    own(dir)?;
    // The directory is locked rather than the file, which is replaced, or one more file, which would lie about.
    let _lock = locked(dir).map_err(about)?;
    let mode = match fs::symlink_metadata(file) {
        Ok(_) => {
            own(file)?;
            fs::metadata(file).map_err(about)?.permissions().mode() & 0o777
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => match seen {
            Seen::ByOwner => 0o600,
            Seen::ByMask => 0o666,
        },
        Err(error) => return Err(about(error)),
    };
    let text = text_of(file, bytes_max).map_err(|error| format!("{} {error}", file.display()))?;
    let text = text.unwrap_or_default();
    match edit(&text).map_err(|error| format!("{}: {error}", file.display()))? {
        Some(new) => replace(file, dir, &new, mode).map_err(about),
        None => Ok(()),
    }
}

fn make(dir: &Path, seen: Seen) -> io::Result<()> {
    let mode = match seen {
        Seen::ByOwner => 0o700,
        Seen::ByMask => 0o777,
    };
    DirBuilder::new().recursive(true).mode(mode).create(dir)
}

/// What is written through a link, or belongs to somebody else, is another file than it seems.
fn own(path: &Path) -> Result<(), String> {
    let about = fs::symlink_metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if about.is_symlink() {
        return Err(format!("{} is a link: it is not written through", path.display()));
    }
    if about.uid() != nix::unistd::geteuid().as_raw() {
        return Err(format!("{} belongs to somebody else", path.display()));
    }
    Ok(())
}

fn locked(dir: &Path) -> io::Result<Flock<File>> {
    let started = Instant::now();
    let mut dir = File::open(dir)?;
    loop {
        match Flock::lock(dir, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((_, error)) if started.elapsed() >= LOCK_WAIT => return Err(error.into()),
            Err((again, _)) => dir = again,
        }
        std::thread::sleep(LOCK_LOOK);
    }
}

fn replace(file: &Path, dir: &Path, text: &str, mode: u32) -> io::Result<()> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let temporary = dir.join(format!(".{name}.{}.tmp", std::process::id()));
    // Under the lock nobody else of this number writes: what lies there was left by a crash.
    let _ = fs::remove_file(&temporary);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(&temporary)
        .and_then(|mut new| {
            new.write_all(text.as_bytes())?;
            new.sync_all()
        })
        .and_then(|()| fs::rename(&temporary, file))
        .and_then(|()| File::open(dir)?.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: u64 = 1000;

    fn put(file: &Path, text: &'static str) -> Result<(), String> {
        change(file, MAX, Seen::ByOwner, |_| Ok(Some(text.to_owned())))
    }

    #[test]
    fn a_new_file_is_the_owners_and_an_old_one_keeps_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a/b/settings.json");
        put(&file, "one").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        put(&file, "two").unwrap();
        assert_eq!((mode(&file), fs::read_to_string(&file).unwrap()), (0o640, "two".to_owned()));
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "nothing lies about");
    }

    #[test]
    fn nothing_is_written_through_a_link_or_over_what_cannot_be_understood() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::create_dir(&real).unwrap();
        fs::write(real.join("x"), "kept").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        std::os::unix::fs::symlink(real.join("x"), real.join("y")).unwrap();
        assert!(put(&link.join("x"), "new").unwrap_err().contains("link"));
        assert!(put(&real.join("y"), "new").unwrap_err().contains("link"));
        let refused = change(&real.join("x"), MAX, Seen::ByOwner, |_| Err("broken".to_owned()));
        assert!(refused.unwrap_err().contains("broken"));
        assert_eq!(fs::read_to_string(real.join("x")).unwrap(), "kept");
    }

    #[test]
    fn writers_wait_for_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("count");
        let add = || {
            change(&file, MAX, Seen::ByOwner, |text| {
                let count: u32 = text.parse().unwrap_or_default();
                std::thread::sleep(Duration::from_millis(2));
                Ok(Some((count + 1).to_string()))
            })
        };
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..4).map(|_| scope.spawn(|| (0..5).for_each(|_| add().unwrap()))).collect();
            all.into_iter().for_each(|one| one.join().unwrap());
        });
        assert_eq!(fs::read_to_string(&file).unwrap(), "20");
    }
}
