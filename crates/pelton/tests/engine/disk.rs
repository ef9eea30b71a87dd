//! A real disk that can be filled up at any moment.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use pelton::transcript::{Disk, DiskFile, RealDisk};

/// All clones are one.
#[derive(Clone, Default)]
pub struct Filling(Arc<AtomicBool>);

impl Filling {
    /// From here on nothing more can be written.
    pub fn is_full(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn room(&self) -> io::Result<()> {
        match self.0.load(Ordering::SeqCst) {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }
}

impl Disk for Filling {
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(FillingFile { disk: self.clone(), file: RealDisk.open(path)? }))
    }
}

struct FillingFile {
    disk: Filling,
    file: Box<dyn DiskFile>,
}

impl DiskFile for FillingFile {
    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }

    fn read_at(&self, place: u64, bytes: usize) -> io::Result<Vec<u8>> {
        self.file.read_at(place, bytes)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.room()?;
        self.file.write(bytes)
    }

    fn keep(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        self.disk.room()?;
        self.file.keep(name, bytes)
    }

    fn sync(&self) -> BoxFuture<'static, io::Result<()>> {
        self.file.sync()
    }
}
