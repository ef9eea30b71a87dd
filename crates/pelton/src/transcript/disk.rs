//! What a transcript asks of a disk: a handful of operations, so that one in memory that fails on purpose will do as
//! well as a real one.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

/// Holds files that grow at their end.
///
/// ```
/// use pelton::transcript::{Disk, RealDisk};
///
/// let dir = tempfile::tempdir()?;
/// let file = RealDisk.open(&dir.path().join("new/session.jsonl"))?;
/// file.write(b"{}\n")?;
/// assert_eq!(file.last_byte()?, Some(b'\n'));
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
    /// Its last byte; `None` if it is empty.
    fn last_byte(&self) -> io::Result<Option<u8>>;

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
        if let Some(dir) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        // The lock goes with the process, however it ends.
        file.try_lock()?;
        Ok(Box::new(RealFile(Arc::new(file))))
    }
}

struct RealFile(Arc<File>);

impl DiskFile for RealFile {
    fn last_byte(&self) -> io::Result<Option<u8>> {
        let mut file = &*self.0;
        if file.seek(SeekFrom::End(0))? == 0 {
            return Ok(None);
        }
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        Ok(Some(last[0]))
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn sync(&self) -> BoxFuture<'static, io::Result<()>> {
        let file = Arc::clone(&self.0);
        async move { tokio::task::spawn_blocking(move || file.sync_data()).await? }.boxed()
    }
}

impl Drop for RealFile {
    fn drop(&mut self) {
        // A wait for the disk that was given up still holds the file for a moment; the session is free now. A lock
        // that cannot be given back goes with the file.
        let _ = self.0.unlock();
    }
}
