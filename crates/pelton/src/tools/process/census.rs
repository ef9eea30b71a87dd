//! Everything that runs on the machine, as it was at some moment. Trees that end together look at the same census: going
//! through all of `/proc` takes milliseconds, and whoever interrupts a dozen hooks waits for all of them.

use std::fs;
use std::io::Read;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use nix::unistd::Pid;

use super::{MARK, newest_moment};

/// Bytes of a process's environment that are searched for marks.
const ENVIRONMENT_BYTES_MAX: u64 = 4 * 1024 * 1024;

pub(super) struct Census {
    /// The newest moment that had come when it was begun.
    at: u64,
    pub running: Vec<Process>,
}

/// A process that was running.
pub(super) struct Process {
    pub pid: Pid,
    pub status: Status,
    marks: OnceLock<Vec<Vec<u8>>>,
}

pub(super) struct Status {
    pub running: bool,
    pub group: i32,
    pub session: i32,
    /// In the kernel's ticks.
    pub started: u64,
}

/// What ran at this moment or later. These files are made by the kernel as they are read: nothing here waits for a disk.
pub(super) fn since(moment: u64) -> Arc<Census> {
    static NEWEST: Mutex<Option<Arc<Census>>> = Mutex::new(None);
    let mut newest = NEWEST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(census) = newest.as_ref().filter(|census| census.at >= moment) {
        return Arc::clone(census);
    }
    let at = newest_moment();
    let numbers = fs::read_dir("/proc").into_iter().flatten();
    let pids = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok().map(Pid::from_raw));
    let known = pids.filter_map(Process::of);
    let census = Arc::new(Census { at, running: known.filter(|process| process.status.running).collect() });
    Arc::clone(newest.insert(census))
}

impl Process {
    /// The one of a number, if there is one, running or not.
    pub fn of(pid: Pid) -> Option<Self> {
        Some(Self { pid, status: status(pid)?, marks: OnceLock::new() })
    }

    /// Whether it has a variable that begins so.
    pub fn carries(&self, mark: &[u8]) -> bool {
        self.marks.get_or_init(|| marks(self.pid)).iter().any(|variable| variable.starts_with(mark))
    }
}

pub(super) fn status(pid: Pid) -> Option<Status> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name in the second field may hold anything, even brackets.
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let running = !matches!(fields.next()?, "Z" | "X");
    Some(Status {
        running,
        group: fields.nth(1)?.parse().ok()?,
        session: fields.next()?.parse().ok()?,
        started: fields.nth(15)?.parse().ok()?,
    })
}

/// The variables of a process that mark it as started by one like this.
fn marks(pid: Pid) -> Vec<Vec<u8>> {
    let Ok(file) = fs::File::open(format!("/proc/{pid}/environ")) else { return Vec::new() };
    let mut environment = Vec::new();
    // A process that ends while it is read carries nothing any more.
    let _ = file.take(ENVIRONMENT_BYTES_MAX).read_to_end(&mut environment);
    let variables = environment.split(|byte| *byte == 0);
    variables.filter(|variable| variable.starts_with(MARK.as_bytes())).map(<[u8]>::to_vec).collect()
}
