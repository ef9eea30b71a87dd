//! What a transcript asks of a disk: a handful of operations, so that one in memory that fails on purpose will do as
//! well as a real one.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;

use super::lease::{Held, Lease, holder};

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
/// See [`Disk`].
pub trait DiskFile: Send + Sync {
    /// How long it is.
    fn bytes(&self) -> io::Result<u64>;

    /// So many bytes from a place on, or fewer if it ends there.
    fn read_at(&self, place: u64, bytes: usize) -> io::Result<Vec<u8>>;

    /// Adds bytes at the end, and tells how many: as with any file, it may be fewer than given. They survive the end
    /// of this process.
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Waits until everything written survives the end of this machine. The wait may be given up.
    fn sync(&self) -> BoxFuture<'static, io::Result<()>>;
}

/// The disk of this machine. Its files are readable by the user alone.
///
/// See [`Disk`].
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
        let file = options.open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Held::by(holder(path))),
            // Some network disks have no locks; there, the claim alone has to do.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let lease = Lease::take(path)?;
        let new =
            Arc::new(NewNames { folders: made, unsynced: AtomicBool::new(file.metadata()?.len() == 0) });
        Ok(Box::new(RealFile { file: Arc::new(file), new, lease: Some(lease) }))
    }
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
    lease: Option<Lease>,
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

    fn sync(&self) -> BoxFuture<'static, io::Result<()>> {
        let (file, new) = (Arc::clone(&self.file), Arc::clone(&self.new));
        let wait = move || {
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
