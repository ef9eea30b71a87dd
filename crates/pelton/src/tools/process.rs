//! Child processes that leave nothing behind.
//!
//! A [`ProcessTree`] is a program in a session and process group of its own, and everything it starts. It ends as a
//! whole: TERM, a moment of grace, KILL. Dropping it kills at once. Waiting means waiting for the program to exit,
//! never for its pipes to close: whoever it left in the background may hold those open for hours.
//!
//! What leaves the group (`set -m`, `setsid`, a daemon) is found on Linux through `/proc`: by its session, or by a
//! variable of a name made for this one tree, which every descendant inherits. If this process itself is killed, the
//! kernel ends the programs and the warden what they have started.

#[cfg(target_os = "linux")]
mod census; // everything that runs on the machine
#[cfg(target_os = "linux")]
mod warden; // ends what is left when this process is killed

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::libc;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, setsid};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use crate::limits::KILL_ROUNDS_MAX;

/// Time between two looks at whether a tree is gone.
const POLL_EVERY: Duration = Duration::from_millis(10);
/// Time in which what was killed is usually gone.
const DYING_TIME: Duration = Duration::from_millis(2);

/// A program to start.
///
/// ```
/// use std::ffi::OsStr;
/// use std::path::Path;
///
/// use pelton::process::{Launch, Printed};
///
/// let launch = Launch {
///     program: Path::new("/usr/bin/make"),
///     args: &[OsStr::new("test")],
///     cwd: Path::new("/srv/project"),
///     env: &[("LANG".into(), "C".into())], // nothing is inherited
///     keep: None,
///     printed: Printed::Read,
/// };
/// assert_eq!(launch.args.len(), 1);
/// ```
#[derive(Debug)]
pub struct Launch<'a> {
    /// The program's file.
    pub program: &'a Path,
    /// What it is told.
    pub args: &'a [&'a OsStr],
    /// Where it starts.
    pub cwd: &'a Path,
    /// Its whole environment.
    pub env: &'a [(OsString, OsString)],
    /// A descriptor it keeps, under its number here.
    pub keep: Option<&'a OwnedFd>,
    /// Where it goes what it prints.
    pub printed: Printed<'a>,
}

/// Where it goes what a program prints.
///
/// ```
/// # use std::ffi::OsStr;
/// # use std::path::Path;
/// # use std::time::Duration;
/// # use pelton::process::Launch;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// # let log = dir.path().join("log");
/// # let args = [OsStr::new("-c"), OsStr::new("echo hello")];
/// use pelton::process::{Printed, ProcessTree};
///
/// let file = std::fs::File::create(&log)?;
/// # let (program, cwd) = (Path::new("/bin/sh"), Path::new("/"));
/// let launch = Launch { program, args: &args, cwd, env: &[], keep: None, printed: Printed::Into(&file) };
/// ProcessTree::start(&launch)?.end(Duration::from_secs(5), Duration::from_secs(1)).await?;
/// assert_eq!(std::fs::read_to_string(&log)?, "hello\n"); // `sh -c 'echo hello'`
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub enum Printed<'a> {
    /// Through pipes, to be read here.
    Read,
    /// Into a file, both standard output and standard error.
    Into(&'a File),
}

/// A running program and everything it started.
///
/// ```
/// use std::ffi::OsStr;
/// use std::path::Path;
/// use std::time::Duration;
///
/// use pelton::process::{Launch, Printed, ProcessTree};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let args = [OsStr::new("-c"), OsStr::new("sleep 60 & exit 3")];
/// let launch = Launch {
///     program: Path::new("/bin/sh"),
///     args: &args,
///     cwd: Path::new("/"),
///     env: &[],
///     keep: None,
///     printed: Printed::Read,
/// };
/// let mut tree = ProcessTree::start(&launch)?;
/// // What it left behind is ended with it.
/// let ended = tree.end(Duration::from_millis(50), Duration::from_secs(1)).await?;
/// assert_eq!((ended.status.code(), ended.asked), (Some(3), true));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ProcessTree {
    child: Child,
    group: Pid,
    /// When it started, in the kernel's ticks; nothing older belongs to the tree.
    #[cfg(target_os = "linux")]
    born: u64,
    /// `NAME=` of the variable that marks the tree.
    mark: String,
    /// Nothing is left to be killed.
    ended: bool,
    /// What goes when the tree has gone.
    after: Option<After>,
    watch: Watch,
}

/// Somebody keeps watch over what is started, for as long as this is held. Who holds it from one program to the next saves the
/// next one the time it takes to call for somebody.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watch(
    #[cfg(target_os = "linux")]
    #[expect(dead_code, reason = "holding it is its use")]
    Option<std::sync::Arc<warden::Warden>>,
);

impl ProcessTree {
    /// Starts a program with nothing on its standard input.
    ///
    /// Call it on a thread that lives as long as the session (a worker of the runtime, not `spawn_blocking`): the
    /// kernel takes the end of the starting thread for the end of the parent.
    pub fn start(launch: &Launch<'_>) -> io::Result<Self> {
        Self::spawn(launch, Stdio::null())
    }

    /// Starts a program that is told more through its standard input; see [`take_input`](Self::take_input).
    pub fn start_listening(launch: &Launch<'_>) -> io::Result<Self> {
        Self::spawn(launch, Stdio::piped())
    }

    fn spawn(launch: &Launch<'_>, input: Stdio) -> io::Result<Self> {
        // Unique among everything running here, also when two sessions draw the same random numbers.
        static STARTED: AtomicU64 = AtomicU64::new(0);
        let parent = nix::unistd::getpid();
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}{number}", mark_of(parent));
        // On duty before there is anything to watch over.
        #[cfg(target_os = "linux")]
        let watch = Watch(warden::Warden::on_duty(launch.env));
        #[cfg(not(target_os = "linux"))]
        let watch = Watch();
        let mut command = Command::new(launch.program);
        command
            .args(launch.args)
            .current_dir(launch.cwd)
            .env_clear()
            .envs(launch.env.iter().map(|(name, value)| (name, value)))
            .env(&mark, "1")
            .stdin(input)
            .kill_on_drop(true);
        match launch.printed {
            Printed::Read => command.stdout(Stdio::piped()).stderr(Stdio::piped()),
            Printed::Into(file) => command.stdout(file.try_clone()?).stderr(file.try_clone()?),
        };
        let keep = launch.keep.map(AsRawFd::as_raw_fd);
        // SAFETY: between fork and exec only async-signal-safe calls are made: setsid, prctl, getppid, close_range, fcntl. Nothing is
        // allocated and no lock is taken.
        unsafe {
            command.pre_exec(move || prepare_child(keep, parent));
        }
        let child = command.spawn()?;
        // A child that was just started and not waited for has an id; ids of processes fit.
        let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        let group = group.ok_or_else(|| io::Error::other("the child has no process id"))?;
        Ok(Self {
            child,
            group,
            #[cfg(target_os = "linux")]
            born: linux::started(group),
            mark: mark + "=",
            ended: false,
            after: None,
            watch,
        })
    }

    /// Who keeps watch over it.
    pub(crate) fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// Something that must not go before the tree has.
    pub(crate) fn outlive_with(&mut self, last: impl Send + Sync + 'static) {
        self.after = Some(After(Box::new(last)));
    }

    /// The pipes of what it prints; once.
    pub fn take_output(&mut self) -> Option<(ChildStdout, ChildStderr)> {
        self.child.stdout.take().zip(self.child.stderr.take())
    }

    /// The pipe to its standard input; once, of a program that listens.
    pub fn take_input(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Waits for the program itself to exit. May be dropped and called again.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Asks the whole tree to end.
    pub fn terminate(&self) {
        let since = self.signal_group(Signal::SIGTERM);
        self.signal_survivors(Signal::SIGTERM, since);
    }

    /// Waits until the program has exited and nothing it started is left.
    pub async fn gone(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        while !self.survivors(moment()).is_empty() {
            sleep(POLL_EVERY).await;
        }
        Ok(status)
    }

    /// Makes sure that nothing of the tree runs any more: waits `patience` for it to end by itself, asks it to, waits
    /// `grace`, and kills. Says whether it had to be asked.
    pub async fn end(&mut self, patience: Duration, grace: Duration) -> io::Result<Ended> {
        let by_itself = timeout(patience, self.gone()).await;
        if by_itself.is_err() {
            self.ask_to_end().await;
            // Out of time is an answer too: what does not want to end is killed.
            let _ = timeout(grace, self.gone()).await;
            self.put_to_death().await;
        }
        let status = self.child.wait().await?;
        self.ended = true;
        Ok(Ended { status, asked: by_itself.is_err() })
    }

    /// Sends a signal to the group, and tells when that was.
    fn signal_group(&self, signal: Signal) -> u64 {
        // The only error that matters here is that nobody is left.
        let _ = killpg(self.group, signal);
        moment()
    }

    /// Sends a signal to those that still run since a moment; `false` if nobody does.
    fn signal_survivors(&self, signal: Signal, since: u64) -> bool {
        let left = self.survivors(since);
        for pid in &left {
            let _ = kill(*pid, signal);
        }
        !left.is_empty()
    }

    /// Asks the whole tree to end. Others that are asked at the same time are asked before anybody looks who is there: one
    /// look is enough for all.
    async fn ask_to_end(&self) {
        let since = self.signal_group(Signal::SIGTERM);
        yield_now().await;
        self.signal_survivors(Signal::SIGTERM, since);
    }

    /// Kills the tree, in the same way. Looks again after each round, because what is being killed may be starting more.
    async fn put_to_death(&self) {
        let mut since = self.signal_group(Signal::SIGKILL);
        yield_now().await;
        for _ in 0..KILL_ROUNDS_MAX {
            if !self.signal_survivors(Signal::SIGKILL, since) {
                break;
            }
            since = moment();
            sleep(DYING_TIME).await;
        }
    }

    /// The same where nobody can wait but the thread itself. A look takes less time than dying does: without a pause all of them
    /// would be over while the kernel still takes the first one down.
    fn kill(&self) {
        for _ in 0..KILL_ROUNDS_MAX {
            let since = self.signal_group(Signal::SIGKILL);
            if !self.signal_survivors(Signal::SIGKILL, since) {
                break;
            }
            std::thread::sleep(DYING_TIME / KILL_ROUNDS_MAX);
        }
    }

    /// Processes of the tree that still ran at a moment or later, the program excepted once it was waited for.
    #[cfg(target_os = "linux")]
    fn survivors(&self, since: u64) -> Vec<Pid> {
        linux::survivors(self.group, self.born, self.mark.as_bytes(), since)
    }

    /// Without `/proc` only the group can be asked, and only as a whole.
    #[cfg(not(target_os = "linux"))]
    fn survivors(&self, _since: u64) -> Vec<Pid> {
        match killpg(self.group, None) {
            Ok(()) => vec![Pid::from_raw(-self.group.as_raw())],
            Err(_) => Vec::new(),
        }
    }
}

/// Something that is only kept.
struct After(#[expect(dead_code, reason = "dropping it is its use")] Box<dyn Send + Sync>);

impl std::fmt::Debug for After {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("After")
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        if !self.ended {
            // The runtime reaps the program itself, whose handle is dropped after this.
            self.kill();
        }
    }
}

/// How a tree ended.
///
/// ```
/// # use std::ffi::OsStr;
/// # use std::path::Path;
/// # use std::time::Duration;
/// # use pelton::process::Launch;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// # let args = [OsStr::new("-c"), OsStr::new("exit 3")];
/// use pelton::process::{Printed, ProcessTree};
///
/// # let (program, cwd) = (Path::new("/bin/sh"), Path::new("/"));
/// let launch = Launch { program, args: &args, cwd, env: &[], keep: None, printed: Printed::Read };
/// let ended = ProcessTree::start(&launch)?.end(Duration::from_secs(5), Duration::from_secs(1)).await?;
/// assert_eq!((ended.status.code(), ended.asked), (Some(3), false)); // `sh -c 'exit 3'`
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// How the program itself exited.
    pub status: ExitStatus,
    /// It did not end by itself.
    pub asked: bool,
}

/// The exit code the way shells count: a signal is 128 and more.
pub fn exit_code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

/// In the child, before it becomes the program.
fn prepare_child(keep: Option<RawFd>, parent: Pid) -> io::Result<()> {
    setsid()?;
    // If this process is killed outright, no destructor runs: the kernel has to end the program.
    #[cfg(target_os = "linux")]
    {
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        if nix::unistd::getppid() != parent {
            // The parent ended before the line above.
            return Err(io::Error::from(nix::errno::Errno::ESRCH));
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = parent;
    close_at_exec();
    if let Some(keep) = keep {
        // SAFETY: clears the flags of a descriptor number; `keep` is open, the caller of `start` borrows it.
        if unsafe { libc::fcntl(keep, libc::F_SETFD, 0) } == -1 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// In a child: whatever this process was given and did not mark is not the program's. Kernels before 5.11 cannot do
/// this; what we open ourselves is always marked.
fn close_at_exec() {
    #[cfg(target_os = "linux")]
    // SAFETY: marks descriptors to be closed by exec; touches no memory.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
}

/// The beginning of the names of all variables that mark what was started.
const MARK: &str = "PELTON_CALL_";

/// The beginning of the names of those that mark what one process has started.
fn mark_of(process: Pid) -> String {
    format!("{MARK}{process}_")
}

/// Moments of this process, counted.
static MOMENTS: AtomicU64 = AtomicU64::new(0);

/// This moment, later than all before.
fn moment() -> u64 {
    MOMENTS.fetch_add(1, Ordering::SeqCst) + 1
}

/// The newest moment there was.
#[cfg(target_os = "linux")]
fn newest_moment() -> u64 {
    MOMENTS.load(Ordering::SeqCst)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;

    use nix::unistd::Pid;

    use super::census::{self, Process};

    /// When a process started; zero, older than all, when nobody knows.
    pub(super) fn started(pid: Pid) -> u64 {
        census::status(pid).map_or(0, |status| status.started)
    }

    /// A tree that is younger than this, in ticks of the kernel, is looked for among the newest numbers alone.
    const YOUNG_TICKS: u64 = 100;
    /// And only if there are no more of them than this.
    const NUMBERS_TRIED_MAX: i32 = 512;

    /// Processes not older than `born` that belong to the session `group`, or carry `mark`, and ran at a moment or later.
    pub(super) fn survivors(group: Pid, born: u64, mark: &[u8], since: u64) -> Vec<Pid> {
        let belongs = |process: &&Process| {
            let status = &process.status;
            status.running
                && status.started >= born
                && (status.group == group.as_raw()
                    || status.session == group.as_raw()
                    || process.carries(mark))
        };
        let pids =
            |processes: &[Process]| processes.iter().filter(belongs).map(|process| process.pid).collect();
        match begun_behind(group, born) {
            Some(processes) => pids(&processes),
            None => pids(&census::since(since).running),
        }
    }

    /// What has begun since a young process, itself included, without going through all processes of the machine: the kernel gives
    /// numbers in a row. `None` if it began too long ago to know that the row has not begun anew in the meantime.
    fn begun_behind(first: Pid, born: u64) -> Option<Vec<Process>> {
        let age = ticks_since_boot()?.checked_sub(born)?;
        if age > YOUNG_TICKS {
            return None;
        }
        let all = of_numbers(first.as_raw(), newest_number, |number| Process::of(Pid::from_raw(number)))?;
        // Somebody older with a number behind it was given that in another round.
        all.iter().all(|process| process.status.started >= born).then_some(all)
    }

    /// Whoever has a number from `first` on, up to the newest that was given when the last of them was looked at. `None` if these
    /// are too many, or begin anew.
    pub(super) fn of_numbers<T>(
        first: i32,
        newest_number: impl Fn() -> Option<i32>,
        look: impl Fn(i32) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut all = Vec::new();
        let (mut next, mut newest) = (first, newest_number()?);
        loop {
            if !(0..=NUMBERS_TRIED_MAX).contains(&newest.checked_sub(first)?) {
                return None;
            }
            all.extend((next..=newest).filter_map(&look));
            // Who was gone when its number came may have left somebody behind, with a number that was not yet given.
            let tried = std::mem::replace(&mut newest, newest_number()?);
            if newest == tried {
                return Some(all);
            }
            next = tried + 1;
        }
    }

    /// The number that was given last.
    fn newest_number() -> Option<i32> {
        fs::read_to_string("/proc/loadavg").ok()?.split_ascii_whitespace().last()?.parse().ok()
    }

    /// How long the machine runs, in the ticks that the start of a process is told in: a hundred in a second.
    fn ticks_since_boot() -> Option<u64> {
        let uptime = fs::read_to_string("/proc/uptime").ok()?;
        let (seconds, hundredths) = uptime.split_ascii_whitespace().next()?.split_once('.')?;
        Some(seconds.parse::<u64>().ok()? * 100 + hundredths.parse::<u64>().ok()?)
    }
}

#[cfg(test)]
mod tests;
