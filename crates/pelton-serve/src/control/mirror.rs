//! The session's record, line by line, for clients that keep it elsewhere.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use pelton::transcript::{Disk, DiskFile};

/// A disk that remembers what was written until it is told. What it holds is bounded by what a session writes between two
/// events.
#[derive(Clone)]
pub(crate) struct Mirror {
    disk: Arc<dyn Disk>,
    written: Arc<Mutex<Vec<Written>>>,
}

/// What was written to one file.
struct Written {
    file: PathBuf,
    bytes: Vec<u8>,
}

/// Whole lines of one file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mirrored {
    pub file: PathBuf,
    pub lines: Vec<Vec<u8>>,
}

impl Mirror {
    pub fn of(disk: Arc<dyn Disk>) -> Self {
        Self { disk, written: Arc::default() }
    }

    /// What was written since this was asked last, in whole lines.
    pub fn take(&self) -> Vec<Mirrored> {
        let mut mirrored = Vec::new();
        let mut written = self.written();
        for Written { file, bytes } in written.iter_mut() {
            let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let whole: Vec<u8> = bytes.drain(..end).collect();
            let lines = whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            let lines: Vec<Vec<u8>> = lines.map(<[u8]>::to_vec).collect();
            if !lines.is_empty() {
                mirrored.push(Mirrored { file: file.clone(), lines });
            }
        }
        written.retain(|written| !written.bytes.is_empty());
        mirrored
    }

    fn written(&self) -> MutexGuard<'_, Vec<Written>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk for Mirror {
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = self.disk.open(path)?;
        Ok(Box::new(MirroredFile { file, path: path.to_path_buf(), mirror: self.clone() }))
    }
}

struct MirroredFile {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    mirror: Mirror,
}

impl DiskFile for MirroredFile {
    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }

    fn read_at(&self, place: u64, bytes: usize) -> io::Result<Vec<u8>> {
        self.file.read_at(place, bytes)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        let bytes = &bytes[..count.min(bytes.len())];
        let mut written = self.mirror.written();
        match written.iter_mut().find(|written| written.file == self.path) {
            Some(written) => written.bytes.extend_from_slice(bytes),
            None => written.push(Written { file: self.path.clone(), bytes: bytes.to_vec() }),
        }
        Ok(count)
    }

    fn keep_loosely(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        self.file.keep_loosely(name, bytes)
    }

    fn sync(&self) -> BoxFuture<'static, io::Result<()>> {
        self.file.sync()
    }
}

#[cfg(test)]
mod tests {
    use pelton::transcript::RealDisk;

    use super::*;

    #[test]
    fn whole_lines_are_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let mirror = Mirror::of(Arc::new(RealDisk));
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        let (one, two) = (mirror.open(&a).unwrap(), mirror.open(&b).unwrap());
        one.write(b"{1}\n{2}\n{3").unwrap();
        two.write(b"{x}\n").unwrap();
        let lines = |file: &Path, lines: &[&str]| Mirrored {
            file: file.to_path_buf(),
            lines: lines.iter().map(|line| line.as_bytes().to_vec()).collect(),
        };
        assert_eq!(mirror.take(), [lines(&a, &["{1}", "{2}"]), lines(&b, &["{x}"])]);
        assert_eq!(mirror.take(), []);
        one.write(b"}\n").unwrap();
        assert_eq!(mirror.take(), [lines(&a, &["{3}"])]);
        assert_eq!(std::fs::read(&a).unwrap(), b"{1}\n{2}\n{3}\n");
    }
}
