//! Processes of a box with namespaces. The outer one is what the engine started: it hands signals in and the command's end
//! out. The first one inside is `init` there: when it ends, the kernel ends all that is left.
//!
//! ```text
//! engine ── outer ── init ─┬─ command ─ …
//!                          └─ bridge
//! ```
//!
//! With bubblewrap there is one more process, and it makes the namespaces: `outer ── bubblewrap ── init`. Words still go from
//! `init` to the outer process, through a descriptor that bubblewrap only hands on.
//!
//! When the command ends and has left something running, the outer process ends at once with the command's status, and
//! `init` stays with what is left, for the engine to end: as it is without a box.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, exit};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, killpg, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getegid, geteuid, pipe2, setsid};

use super::bridge::{self, Bridge};
use super::{Failure, become_command, caps, confine, failed, mounts, names};
use crate::orders::{Orders, Stage};
use crate::policy::Network;
use crate::sandbox::FAILED_CODE;

/// Signals that the engine, or somebody, sends to the command by way of the outer process.
const HANDED_IN: [Signal; 6] =
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2];

/// Builds the namespaces and runs the command in them. Ends the process with the command's status.
pub(super) fn run(orders: &Orders) -> Result<Infallible, Failure> {
    let (uid, gid) = (geteuid(), getegid());
    let signals = hold_signals()?;
    let spaces = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWNET;
    unshare(spaces).map_err(failed("namespaces are refused"))?;
    let map = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text).map_err(failed("users cannot be mapped"))
    };
    map("setgroups", "deny".to_owned())?;
    map("uid_map", format!("{uid} {uid} 1"))?;
    map("gid_map", format!("{gid} {gid} 1"))?;
    let (reader, writer) = pipe2(OFlag::O_CLOEXEC).map_err(failed("no pipe"))?;
    // SAFETY: there is one thread.
    match unsafe { fork() }.map_err(failed("no process"))? {
        ForkResult::Child => {
            drop(reader);
            init(orders, writer)
        }
        ForkResult::Parent { child } => {
            drop(writer);
            watch(child, reader, &signals)
        }
    }
}

/// Starts bubblewrap, which makes the namespaces. Ends the process with the command's status, as `init` tells it.
pub(super) fn run_around(orders: &Orders) -> Result<Infallible, Failure> {
    let signals = hold_signals()?;
    let (reader, writer) = pipe2(OFlag::O_CLOEXEC).map_err(failed("no pipe"))?;
    // SAFETY: there is one thread.
    match unsafe { fork() }.map_err(failed("no process"))? {
        ForkResult::Child => {
            drop(reader);
            let Failure(why) = become_bubblewrap(orders, &writer);
            Word::Failed(why).write(&mut File::from(writer));
            exit(FAILED_CODE.into())
        }
        ForkResult::Parent { child } => {
            drop(writer);
            watch(child, reader, &signals)
        }
    }
}

/// Only comes back when it fails. Signals stay held back: what is handed in is for the command.
fn become_bubblewrap(orders: &Orders, writer: &OwnedFd) -> Failure {
    let Some(report) = orders.report else { return Failure::new("the orders name nobody to report to") };
    // If the outer process goes, everything goes.
    if let Err(error) = set_pdeathsig(Signal::SIGKILL).and_then(|()| setsid()) {
        return failed("no session")(error);
    }
    // SAFETY: puts an open descriptor under a number that nothing here uses, and lets it through to the next program.
    let handed_on = unsafe {
        if writer.as_raw_fd() == report {
            libc::fcntl(report, libc::F_SETFD, 0)
        } else {
            libc::dup2(writer.as_raw_fd(), report)
        }
    };
    if handed_on == -1 {
        return failed("the end cannot be told")(Errno::last());
    }
    let mut bubblewrap = Command::new(&orders.program);
    failed("bubblewrap cannot be started")(bubblewrap.args(&orders.args).exec())
}

/// Runs the command as the first process inside, where bubblewrap has made the namespaces.
pub(super) fn run_inside(orders: &Orders) -> Result<Infallible, Failure> {
    let report = orders.report.ok_or_else(|| Failure::new("the orders name nobody to report to"))?;
    // SAFETY: the orders name the descriptor that was made for this, and nothing else here has it.
    init(orders, unsafe { OwnedFd::from_raw_fd(report) })
}

/// Signals for the command wait until they are handed on.
fn hold_signals() -> Result<SigSet, Failure> {
    let signals: SigSet = HANDED_IN.into_iter().collect();
    signals.thread_block().map_err(failed("signals cannot be held back"))?;
    Ok(signals)
}

/// How the command ended.
#[derive(Debug, Clone, Copy)]
enum Ended {
    Code(i32),
    Signal(Signal),
}

/// What `init` tells the outer process.
enum Word {
    /// The command has ended, and nothing is left.
    Last(Ended),
    /// The command has ended, and others go on.
    OthersLeft(Ended),
    /// There is no box.
    Failed(String),
}

/// The outer process.
fn watch(init: Pid, reader: OwnedFd, signals: &SigSet) -> Result<Infallible, Failure> {
    let waiting =
        SignalFd::with_flags(signals, SfdFlags::SFD_CLOEXEC).map_err(failed("signals cannot be watched"))?;
    loop {
        let mut both =
            [PollFd::new(reader.as_fd(), PollFlags::POLLIN), PollFd::new(waiting.as_fd(), PollFlags::POLLIN)];
        match poll(&mut both, PollTimeout::NONE) {
            Err(Errno::EINTR) => continue,
            other => other.map_err(failed("the command cannot be waited for"))?,
        };
        if both[0].any() == Some(true) {
            break;
        }
        if let Ok(Some(signal)) = waiting.read_signal()
            && let Ok(signal) = i32::try_from(signal.ssi_signo)
            && let Ok(signal) = Signal::try_from(signal)
        {
            // The group of `init` has its number. That nobody is there any more is no matter.
            let _ = killpg(init, signal);
        }
    }
    match Word::read(File::from(reader)) {
        Some(Word::OthersLeft(ended)) => end_as(ended),
        Some(Word::Last(ended)) => {
            let _ = waitpid(init, None);
            end_as(ended)
        }
        Some(Word::Failed(why)) => {
            let _ = waitpid(init, None);
            Err(Failure(why))
        }
        // Somebody has killed it.
        None => match waitpid(init, None) {
            Ok(WaitStatus::Signaled(_, signal, _)) => end_as(Ended::Signal(signal)),
            Ok(WaitStatus::Exited(_, code)) => Err(Failure::new(format!("the box broke, with code {code}"))),
            _ => Err(Failure::new("the box broke")),
        },
    }
}

/// Ends this process as the command has ended.
fn end_as(ended: Ended) -> ! {
    match ended {
        Ended::Code(code) => exit(code),
        Ended::Signal(signal) => {
            let mut one = SigSet::empty();
            one.add(signal);
            let _ = nix::sys::signal::sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&one), None);
            let _ = nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 0, 0);
            // SAFETY: the standard reaction is no function of ours.
            let _ = unsafe { nix::sys::signal::signal(signal, nix::sys::signal::SigHandler::SigDfl) };
            let _ = raise(signal);
            // A signal that does not end a process ends no command either.
            exit(128 + signal as i32)
        }
    }
}

/// The first process inside.
fn init(orders: &Orders, writer: OwnedFd) -> ! {
    let mut out = File::from(writer);
    if let Err(Failure(why)) = live(orders, &mut out) {
        Word::Failed(why).write(&mut out);
        exit(FAILED_CODE.into())
    }
    exit(0)
}

fn live(orders: &Orders, out: &mut File) -> Result<(), Failure> {
    // Bubblewrap has done all this already.
    if orders.stage == Stage::Namespaces {
        // If the outer process goes, everything goes.
        set_pdeathsig(Signal::SIGKILL).map_err(failed("no end can be agreed on"))?;
        setsid().map_err(failed("no session"))?;
        mounts::build(orders)?;
    }
    let (bridge, names) = prepare(orders)?;
    let command = start(orders)?;
    let mut kept: Vec<BorrowedFd<'_>> = bridge.as_ref().map(Bridge::key).into_iter().collect();
    kept.extend(names.as_ref().map(|names| names.key().as_fd()));
    kept.push(out.as_fd());
    let_go_but(&kept);
    // A thread, so after the last fork.
    names.map_or(Ok(()), names::Listener::serve)?;
    let ended = reap(command);
    if let Some(bridge) = bridge {
        bridge.end();
    }
    // Collects what has ended in the meantime, and learns whether anything goes on.
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => break,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => {
                Word::Last(ended).write(out);
                return Ok(());
            }
        }
    }
    // The outer process ends now, and that must not be the end of what is left: the engine asks it to end first.
    let _ = set_pdeathsig(None);
    Word::OthersLeft(ended).write(out);
    while !matches!(waitpid(None, None), Err(error) if error != Errno::EINTR) {}
    Ok(())
}

/// The network, and everything that is held from here on. The bridge and who is asked about names, if there are any.
fn prepare(orders: &Orders) -> Result<(Option<Bridge>, Option<names::Listener>), Failure> {
    // Bubblewrap has done this already, and given up the privilege for it.
    if orders.network != Network::Off && orders.stage == Stage::Namespaces {
        bridge::loopback_up().map_err(failed("the network of the box cannot be started"))?;
    }
    let bridge = match &orders.network {
        Network::Off | Network::Loopback => None,
        Network::Bridge(socket) => Some(bridge::start(socket)?),
    };
    confine(orders)?;
    caps::close_memory();
    Ok((bridge, names::listen(orders)))
}

/// Starts the command. In the new process it returns only if that fails.
fn start(orders: &Orders) -> Result<Pid, Failure> {
    // SAFETY: there is one thread.
    match unsafe { fork() }.map_err(failed("no process"))? {
        ForkResult::Child => Err(become_command(orders)),
        ForkResult::Parent { child } => Ok(child),
    }
}

/// The command's pipes are the command's alone: whoever reads them must see their end.
pub(super) fn let_go_but(kept: &[BorrowedFd<'_>]) {
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        for number in 0..3 {
            // SAFETY: puts one open descriptor in the place of another; nothing here owns those three.
            unsafe { libc::dup2(null.as_raw_fd(), number) };
        }
    }
    let close = |from: u32, to: u32| {
        // SAFETY: closes descriptors that nothing here uses any more.
        unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) };
    };
    let mut kept: Vec<u32> = kept.iter().map(|kept| kept.as_raw_fd().cast_unsigned()).collect();
    kept.sort_unstable();
    let mut from = 3;
    for kept in kept.into_iter().filter(|kept| *kept >= 3) {
        if kept > from {
            close(from, kept - 1);
        }
        from = kept + 1;
    }
    close(from, u32::MAX);
}

/// Waits for the command, and collects every orphan on the way.
fn reap(command: Pid) -> Ended {
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) if pid == command => return Ended::Code(code),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == command => return Ended::Signal(signal),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return Ended::Code(FAILED_CODE.into()),
        }
    }
}

impl Word {
    fn write(&self, out: &mut File) {
        let status = |kind: u8, ended: &Ended| {
            let (how, number) = match *ended {
                Ended::Code(code) => (b'c', code),
                Ended::Signal(signal) => (b's', signal as i32),
            };
            let mut bytes = vec![kind, how];
            bytes.extend(number.to_ne_bytes());
            bytes
        };
        let bytes = match self {
            Self::Last(ended) => status(b'l', ended),
            Self::OthersLeft(ended) => status(b'o', ended),
            Self::Failed(why) => [b"f", why.as_bytes(), b"\0"].concat(),
        };
        // If nobody listens any more, nobody misses it.
        let _ = out.write_all(&bytes);
    }

    fn read(mut from: File) -> Option<Self> {
        let mut bytes = [0; 4096];
        // It comes in one piece: pipes keep such small ones together.
        let length = from.read(&mut bytes).ok()?;
        let (kind, rest) = bytes[..length].split_first()?;
        if *kind == b'f' {
            // The status of the process that failed may be right behind it.
            let why = rest.split(|byte| *byte == 0).next().unwrap_or_default();
            return Some(Self::Failed(String::from_utf8_lossy(why).into_owned()));
        }
        let (how, number) = rest.split_first()?;
        let number = i32::from_ne_bytes(number.try_into().ok()?);
        let ended = match how {
            b's' => Ended::Signal(Signal::try_from(number).ok()?),
            _ => Ended::Code(number),
        };
        Some(if *kind == b'l' { Self::Last(ended) } else { Self::OthersLeft(ended) })
    }
}
