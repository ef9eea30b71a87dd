//! What a process takes: time, memory, wake-ups, as the kernel counts them.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

/// How often memory is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// One run of a program.
pub(crate) struct Ran {
    pub began: Instant,
    /// CPU of it and of every process it waited for.
    pub cpu: Duration,
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// CPU of all children that were waited for. Rows run one program at a time: the difference is that program's.
pub(crate) fn of_children() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return Duration::ZERO };
    let micros = |time: nix::sys::time::TimeVal| {
        let seconds = u64::try_from(time.tv_sec()).unwrap_or_default();
        Duration::from_secs(seconds)
            + Duration::from_micros(u64::try_from(time.tv_usec()).unwrap_or_default())
    };
    micros(usage.user_time()) + micros(usage.system_time())
}

/// Runs a program to its end.
pub(crate) fn run(command: &mut Command) -> io::Result<Ran> {
    let before = of_children();
    let began = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let output = child.wait_with_output()?;
    let cpu = of_children().saturating_sub(before);
    Ok(Ran { began, cpu, status: output.status, stdout: output.stdout, stderr: output.stderr })
}

/// The same, with the most memory its whole tree had: of each process its own high mark, added up.
pub(crate) fn run_weighed(command: &mut Command) -> io::Result<(Ran, Weight)> {
    let before = of_children();
    let began = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let scale = Scale::on(child.id());
    let output = child.wait_with_output()?;
    let weight = scale.read();
    let cpu = of_children().saturating_sub(before);
    Ok((Ran { began, cpu, status: output.status, stdout: output.stdout, stderr: output.stderr }, weight))
}

/// The most memory a tree of processes had at once.
#[derive(Clone, Copy, Default)]
pub(crate) struct Weight {
    /// What is in memory of each, added up.
    pub resident_kb: u64,
    /// The same with what is shared counted once.
    pub proportional_kb: u64,
}

/// Looks at a tree of processes until it is told to stop.
pub(crate) struct Scale {
    over: Arc<AtomicBool>,
    most: Arc<(AtomicU64, AtomicU64)>,
    looking: Option<JoinHandle<()>>,
}

impl Scale {
    pub fn on(root: u32) -> Self {
        Self::every(root, LOOK_EVERY)
    }

    pub fn every(root: u32, pause: Duration) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let most = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        let (stop, seen) = (Arc::clone(&over), Arc::clone(&most));
        let looking = std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let tree = tree(root);
                let resident = tree.iter().filter_map(|pid| in_status(*pid, "VmRSS:")).sum();
                let proportional = tree.iter().filter_map(|pid| proportional_kb(*pid)).sum();
                // A process alone has a high mark of its own, which misses nothing.
                let own = if tree.len() == 1 { in_status(root, "VmHWM:").unwrap_or(0) } else { 0 };
                seen.0.fetch_max(own.max(resident), Ordering::Relaxed);
                seen.1.fetch_max(proportional, Ordering::Relaxed);
                std::thread::sleep(pause);
            }
        });
        Self { over, most, looking: Some(looking) }
    }

    pub fn read(mut self) -> Weight {
        self.over.store(true, Ordering::Relaxed);
        if let Some(looking) = self.looking.take() {
            // It does not panic; if it did, what it saw so far counts.
            let _ = looking.join();
        }
        Weight {
            resident_kb: self.most.0.load(Ordering::Relaxed),
            proportional_kb: self.most.1.load(Ordering::Relaxed),
        }
    }
}

/// A process and all below it.
fn tree(root: u32) -> Vec<u32> {
    let (mut found, mut open) = (HashSet::new(), vec![root]);
    while let Some(pid) = open.pop() {
        if !found.insert(pid) {
            continue;
        }
        let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for thread in threads.flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            open.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
    }
    found.into_iter().collect()
}

fn in_status(pid: u32, field: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    kilobytes(&status, field)
}

/// What is in memory of a process now.
pub(crate) fn resident_kb(pid: u32) -> Option<u64> {
    in_status(pid, "VmRSS:")
}

fn proportional_kb(pid: u32) -> Option<u64> {
    kilobytes(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?, "Pss:")
}

fn kilobytes(text: &str, field: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(field))?;
    value.trim().trim_end_matches(" kB").parse().ok()
}

/// CPU that a living process has taken so far, over all its threads that live.
pub(crate) fn cpu_of(pid: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let nanos = threads.filter_map(|thread| {
        let stat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        stat.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

/// How often a process was woken so far.
pub(crate) fn wakes_of(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let switches = threads.filter_map(|thread| {
        let status = fs::read_to_string(thread.path().join("status")).ok()?;
        kilobytes(&status, "voluntary_ctxt_switches:")
    });
    switches.sum()
}

/// Ends a child that is not needed any more.
pub(crate) fn end(mut child: Child) {
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}
