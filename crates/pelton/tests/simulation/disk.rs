//! A disk in memory that fails on purpose: no room, half a write, a sync that cannot be done, a power cut that leaves
//! the unsynced end of a file torn at any byte.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton::transcript::{Disk, DiskFile};
use tokio::time::{Instant, sleep};

use crate::dice::Dice;
use crate::log::Log;

/// How often things go wrong: once in so many times; 0 is never.
#[derive(Debug, Clone, Copy, Default)]
pub struct Weather {
    /// The disk is full for a while.
    pub full: usize,
    /// A write takes only a part of what it was given, or is interrupted.
    pub short: usize,
    /// A sync fails.
    pub sync_fails: usize,
    /// A sync takes long, in milliseconds at most; 0 takes no time at all.
    pub sync_ms_max: usize,
}

#[derive(Clone)]
pub struct SimDisk(Arc<Mutex<State>>);

struct State {
    files: BTreeMap<PathBuf, Content>,
    weather: Weather,
    full_until: Option<Instant>,
    /// Failures so far, of any kind.
    failures: usize,
    dice: Dice,
    log: Log,
}

#[derive(Default)]
struct Content {
    bytes: Vec<u8>,
    /// So many of them survive a power cut.
    synced: usize,
    /// Somebody writes to it.
    open: bool,
}

impl SimDisk {
    pub fn new(seed: u64, weather: Weather, log: Log) -> Self {
        let dice = Dice::of(seed, "disk");
        let state = State { files: BTreeMap::new(), weather, full_until: None, failures: 0, dice, log };
        Self(Arc::new(Mutex::new(state)))
    }

    /// From here on nothing fails.
    pub fn calm(&self) {
        let mut state = self.lock();
        state.weather = Weather::default();
        state.full_until = None;
    }

    pub fn failures(&self) -> usize {
        self.lock().failures
    }

    /// What a file holds; nothing if it is not there.
    pub fn bytes(&self, path: &Path) -> Option<Vec<u8>> {
        self.lock().files.get(path).map(|content| content.bytes.clone())
    }

    /// Whether this text is in the part of a file that survives a power cut.
    pub fn synced_contains(&self, path: &Path, text: &str) -> bool {
        let state = self.lock();
        let Some(content) = state.files.get(path) else { return false };
        String::from_utf8_lossy(&content.bytes[..content.synced]).contains(text)
    }

    /// The machine stops: of what was not synced any part may be left, and in it runs of nothing.
    pub fn power_cut(&self) {
        let mut state = self.lock();
        let State { files, dice, log, .. } = &mut *state;
        for (path, content) in files.iter_mut() {
            let unsynced = content.bytes.len() - content.synced;
            let kept = dice.pick(&[0, unsynced, dice.clone().below(unsynced + 1)]);
            content.bytes.truncate(content.synced + kept);
            if kept > 0 && dice.one_in(4) {
                let from = content.synced + dice.below(kept);
                content.bytes[from..].fill(0);
            }
            content.synced = content.bytes.len();
            log.say(format!("disk: {kept} of {unsynced} unsynced bytes are left of {}", path.display()));
        }
        files.retain(|_, content| !content.bytes.is_empty());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn happens(&mut self, one_in: usize) -> bool {
        one_in > 0 && self.dice.one_in(one_in)
    }

    fn fail<T>(&mut self, kind: io::ErrorKind, what: &str) -> io::Result<T> {
        self.failures += 1;
        self.log.say(format!("disk: {what} fails: {kind}"));
        Err(kind.into())
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.lock();
        let content = state.files.entry(path.to_path_buf()).or_default();
        if std::mem::replace(&mut content.open, true) {
            return state.fail(io::ErrorKind::WouldBlock, "open");
        }
        Ok(Box::new(SimFile { disk: self.clone(), path: path.to_path_buf() }))
    }
}

struct SimFile {
    disk: SimDisk,
    path: PathBuf,
}

impl SimFile {
    fn with<T>(&self, work: impl FnOnce(&mut Content) -> T) -> T {
        work(self.disk.lock().files.entry(self.path.clone()).or_default())
    }
}

impl DiskFile for SimFile {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.with(|content| content.bytes.len() as u64))
    }

    fn read_at(&self, place: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let from = usize::try_from(place).unwrap();
        Ok(self.with(|content| content.bytes.iter().skip(from).take(bytes).copied().collect()))
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.disk.lock();
        if let Some(until) = state.full_until {
            if Instant::now() < until {
                return state.fail(io::ErrorKind::StorageFull, "write");
            }
            state.full_until = None;
        }
        let Weather { full, short, .. } = state.weather;
        let mut count = bytes.len();
        if state.happens(full) {
            let wait = Duration::from_millis(state.dice.wait_ms() + 1);
            state.full_until = Some(Instant::now() + wait);
            count = state.dice.below(bytes.len() + 1);
            if count == 0 {
                return state.fail(io::ErrorKind::StorageFull, "write");
            }
        } else if state.happens(short) {
            count = state.dice.below(bytes.len() + 1);
            if count == 0 {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        let content = state.files.entry(self.path.clone()).or_default();
        content.bytes.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn sync(&self) -> BoxFuture<'static, io::Result<()>> {
        let (disk, path) = (self.disk.clone(), self.path.clone());
        async move {
            let (upto, wait, fails) = {
                let mut state = disk.lock();
                let upto = state.files.get(&path).map_or(0, |content| content.bytes.len());
                let Weather { sync_fails, sync_ms_max, .. } = state.weather;
                let wait = if sync_ms_max > 0 { state.dice.below(sync_ms_max) as u64 } else { 0 };
                (upto, Duration::from_millis(wait), state.happens(sync_fails))
            };
            if !wait.is_zero() {
                sleep(wait).await;
            }
            let mut state = disk.lock();
            if fails {
                return state.fail(io::ErrorKind::Other, "sync");
            }
            if let Some(content) = state.files.get_mut(&path) {
                content.synced = content.synced.max(upto);
            }
            Ok(())
        }
        .boxed()
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.with(|content| content.open = false);
    }
}
