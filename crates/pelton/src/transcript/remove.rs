//! Taking a session away, with all that belongs to it.

use std::fs;
use std::io;
use std::path::Path;

use super::disk::open_alone;
use super::list::SessionFile;
use crate::file_history::folder_of;

/// Takes a session away: its record, what stands beside that, and the files that were kept to undo what it did. An error of
/// the kind [`WouldBlock`](io::ErrorKind::WouldBlock) means that somebody writes to it; then all of it stays.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let (config, id) = (dir.path(), "00000000-0000-4000-8000-000000000001");
/// # let folder = config.join("projects/-srv-shop");
/// # std::fs::create_dir_all(&folder)?;
/// # std::fs::write(folder.join(format!("{id}.jsonl")), "{}")?;
/// use pelton::transcript::{remove_session, session_files};
///
/// let [session] = &session_files(config)[..] else { panic!("there is one") };
/// remove_session(config, session)?;
/// assert!(session_files(config).is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn remove_session(config_dir: &Path, session: &SessionFile) -> io::Result<()> {
    // Whoever opens it from here on is told that it is in use, and from the end on that it is gone.
    let (file, lease) = open_alone(fs::OpenOptions::new().read(true).append(true), &session.file)?;
    take_away(&folder_of(config_dir, session.id))?;
    take_away(&session.file.with_extension(""))?;
    // Once the record is gone, the name may be claimed by another.
    drop(lease);
    // It comes last, so that what could not be taken away is found again.
    let gone = take_away(&session.file);
    drop(file);
    gone
}

fn take_away(path: &Path) -> io::Result<()> {
    let gone = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    gone.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::transcript::{Disk, RealDisk, session_files};

    fn session(config: &Path) -> SessionFile {
        let folder = config.join("projects/-p");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{}.jsonl", Uuid::from_u128(1))), "{}\n").unwrap();
        session_files(config).remove(0)
    }

    #[test]
    fn whoever_writes_to_it_keeps_it() {
        let dir = tempfile::tempdir().unwrap();
        let session = session(dir.path());
        let open = RealDisk.open(&session.file).unwrap();
        let kept = remove_session(dir.path(), &session).unwrap_err();
        assert_eq!(kept.kind(), io::ErrorKind::WouldBlock);
        assert!(session.file.is_file() && session.file.with_extension("").join("lease.json").is_file());
        drop(open);
        fs::create_dir_all(folder_of(dir.path(), session.id).join("kept")).unwrap();
        remove_session(dir.path(), &session).unwrap();
        assert!(!session.file.exists() && !session.file.with_extension("").exists());
        assert!(!folder_of(dir.path(), session.id).exists());
        let gone = remove_session(dir.path(), &session).unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
    }

    /// Whoever opens a session while it is taken away is kept out, or has a file that is there.
    #[test]
    fn nobody_writes_to_a_file_that_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = session(dir.path()).file;
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..500 {
                    for session in session_files(dir.path()) {
                        let _ = remove_session(dir.path(), &session);
                    }
                }
                is_over.store(true, std::sync::atomic::Ordering::Release);
            });
            let mut opened = 0;
            while !is_over.load(std::sync::atomic::Ordering::Acquire) {
                let Ok(file) = RealDisk.open(&path) else { continue };
                file.write(b"x\n").unwrap();
                assert!(fs::read(&path).is_ok_and(|there| there.ends_with(b"x\n")), "it was lost");
                opened += 1;
            }
            assert!(opened > 0);
        });
    }
}
