//! What a transcript asks of a disk: a handful of operations, so that one in memory that fails on purpose will do as
//! well as a real one.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;

use super::blobs::Blobs;
use super::lease::{Held, Lease, holder};
use crate::limits::{ORPHANED_LOCK_LOOK_EVERY, ORPHANED_LOCK_LOOKS_MAX, SESSION_OPENED_TIMES_MAX};

/// Holds files that grow at their end.
///
/// ```
/// use pelton::transcript::{Disk, RealDisk};
///
/// let dir = tempfile::tempdir()?;
/// let file = RealDisk.open(&dir.path().join("new/session.jsonl"))?;
/// file.write(b"{}\n")?;
/// assert_eq!((file.bytes()?, file.read_at(0, 2)?), (3, b"{}".to_vec()));
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait Disk: Send + Sync {
    /// Opens a file for one writer alone, making it and its folders if need be. An error of the kind
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) means that somebody else writes to it.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
}

/// A file that grows at its end. Dropping it lets others write to it.
///
/// ```
/// use pelton::transcript::{Disk, RealDisk};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// let file = RealDisk.open(&dir.path().join("session.jsonl"))?;
/// assert_eq!(file.write(b"{}\n")?, 3);
/// file.sync().await?; // from here on, it survives the end of the machine
/// # Ok(())
/// # }
/// ```
pub trait DiskFile: Send + Sync {
    /// How long it is.
    fn bytes(&self) -> io::Result<u64>;

    /// So many bytes from a place on, or fewer if it ends there.
    fn read_at(&self, place: u64, bytes: usize) -> io::Result<Vec<u8>>;

    /// Adds bytes at the end, and tells how many: as with any file, it may be fewer than given. They survive the end
    /// of this process.
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Keeps something long beside the file, under this name, before a line names it. `false` if nothing is ever kept
    /// there: then it stands in the line.
    fn keep(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        let _ = (name, bytes);
        Ok(false)
    }

    /// The same for something that can be done without: nobody waits until it survives the end of this machine.
    fn keep_loosely(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        let _ = (name, bytes);
        Ok(false)
    }

    /// Waits until everything written survives the end of this machine. The wait may be given up.
    fn sync(&self) -> BoxFuture<'static, io::Result<()>>;
}

/// The disk of this machine. Its files are readable by the user alone.
///
/// ```
/// use std::sync::Arc;
///
/// use pelton::transcript::{Disk, RealDisk};
///
/// let disk: Arc<dyn Disk> = Arc::new(RealDisk); // `Options::disk` is where another one would go
/// # let dir = tempfile::tempdir()?;
/// assert_eq!(disk.open(&dir.path().join("session.jsonl"))?.bytes()?, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let made = match path.parent() {
            Some(dir) => make_folders(dir)?,
            None => Vec::new(),
        };
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        let (file, lease) = open_alone(&options, path)?;
        let new =
            Arc::new(NewNames { folders: made, unsynced: AtomicBool::new(file.metadata()?.len() == 0) });
        let kept = Arc::new(Kept { blobs: Blobs::beside(path), unsynced: Mutex::default() });
        Ok(Box::new(RealFile { file: Arc::new(file), new, kept, lease: Some(lease) }))
    }
}

/// Opens a session's file and keeps everybody else out of it.
pub(super) fn open_alone(options: &OpenOptions, path: &Path) -> io::Result<(File, Lease)> {
    let mut looks = ORPHANED_LOCK_LOOKS_MAX;
    for _ in 0..SESSION_OPENED_TIMES_MAX {
        let file = options.open(path)?;
        let mut locked = file.try_lock();
        // A process that was killed while it started another may leave the lock to that one for a moment; and who has just taken
        // it has not said so yet.
        while matches!(locked, Err(TryLockError::WouldBlock)) && looks > 0 && holder(path).is_none() {
            looks -= 1;
            std::thread::sleep(ORPHANED_LOCK_LOOK_EVERY);
            locked = file.try_lock();
        }
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Held::by(holder(path))),
            // Some network disks have no locks; there, the claim alone has to do.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Between the two it may have been taken away: what is written to a file without a name is lost.
        let opened = file.metadata()?;
        if fs::metadata(path).is_ok_and(|now| (now.dev(), now.ino()) == (opened.dev(), opened.ino())) {
            return Ok((file, Lease::take(path)?));
        }
    }
    Err(Held::by(None))
}

/// Makes a folder and those above it. The answer has all that hold a new name: a file whose name is lost is lost.
fn make_folders(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let missing = dir.ancestors().take_while(|dir| !dir.exists()).count();
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    Ok(dir.ancestors().take(missing + 1).map(Path::to_path_buf).collect())
}

struct RealFile {
    file: Arc<File>,
    new: Arc<NewNames>,
    kept: Arc<Kept>,
    lease: Option<Lease>,
}

/// What is kept beside the file.
struct Kept {
    blobs: Blobs,
    unsynced: Mutex<Vec<File>>,
}

impl Kept {
    fn sync(&self) -> io::Result<()> {
        let unsynced = std::mem::take(&mut *self.unsynced());
        if unsynced.is_empty() {
            return Ok(());
        }
        let done = unsynced.iter().try_for_each(File::sync_data);
        let done = done.and_then(|()| File::open(self.blobs.dir())?.sync_all());
        if done.is_err() {
            self.unsynced().extend(unsynced);
        }
        done
    }

    fn unsynced(&self) -> MutexGuard<'_, Vec<File>> {
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Folders in which a new file's name, or a new folder's, may not be on the disk yet.
struct NewNames {
    folders: Vec<PathBuf>,
    unsynced: AtomicBool,
}

impl NewNames {
    fn sync(&self) -> io::Result<()> {
        if self.unsynced.load(Ordering::Relaxed) {
            for folder in &self.folders {
                match File::open(folder).and_then(|folder| folder.sync_all()) {
                    // Not every file system syncs folders, and not every folder above may be read.
                    Err(error)
                        if !matches!(
                            error.kind(),
                            io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied
                        ) =>
                    {
                        return Err(error);
                    }
                    _ => {}
                }
            }
            self.unsynced.store(false, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl DiskFile for RealFile {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, place: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let mut read = vec![0; bytes];
        let mut filled = 0;
        while filled < bytes {
            match self.file.read_at(&mut read[filled..], place + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        read.truncate(filled);
        Ok(read)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.file).write(bytes)
    }

    fn keep(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        let file = self.kept.blobs.keep(name, bytes)?;
        self.kept.unsynced().extend(file);
        Ok(true)
    }

    fn keep_loosely(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        self.kept.blobs.keep(name, bytes)?;
        Ok(true)
    }

    fn sync(&self) -> BoxFuture<'static, io::Result<()>> {
        let (file, new, kept) = (Arc::clone(&self.file), Arc::clone(&self.new), Arc::clone(&self.kept));
        let wait = move || {
            // What a line names is there before the line is.
            kept.sync()?;
            file.sync_data()?;
            new.sync()
        };
        async move { tokio::task::spawn_blocking(wait).await? }.boxed()
    }
}

impl Drop for RealFile {
    fn drop(&mut self) {
        // While the lock is held, nobody else claims it.
        drop(self.lease.take());
        // A wait for the disk that was given up still holds the file for a moment; the session is free now. A lock
        // that cannot be given back goes with the file.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_lock_that_nobody_alive_claims_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session.jsonl");
        let orphan = File::create(&path).unwrap();
        orphan.lock().unwrap();
        let gone = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            drop(orphan);
        });
        RealDisk.open(&path).unwrap();
        gone.join().unwrap();
    }

    #[test]
    fn one_that_stays_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session.jsonl");
        let stays = File::create(&path).unwrap();
        stays.lock().unwrap();
        let error = RealDisk.open(&path).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
}
