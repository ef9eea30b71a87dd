//! The helper: a process of its own between the engine and a command. It reads its orders, builds the box around itself and
//! becomes the command; or, with namespaces, stays outside to see the command's end.
//!
//! Everything happens on one thread, so that forking is safe. What goes wrong ends the helper before the command starts:
//! there is no box with a side missing.

mod namespaces; // the outer process, and the first one inside
mod mounts; // the disk as the box sees it
mod caps; // privileges, given up
mod landlock; // files, signals, sockets
mod seccomp; // system calls
mod names; // protected names that must not be made
mod bridge; // the one way out of a network with nobody in it

use std::ffi::OsString;
use std::fmt;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::libc;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::SigSet;

use crate::orders::{Orders, Stage};
use crate::sandbox::FAILED_WORDS;

/// Why there is no box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FAILED_WORDS}{}", self.0)
    }
}

impl std::error::Error for Failure {}

/// Does what the words say, which come from [`Prepared::command`](crate::Prepared::command). Call it first of all in `main`, on the
/// only thread, with the words behind the one that names this entry. It returns only when it fails: print that, and exit
/// with [`FAILED_CODE`](crate::FAILED_CODE).
pub fn helper(words: impl IntoIterator<Item = OsString>) -> Failure {
    let orders = match Orders::from_args(words) {
        Ok(orders) => orders,
        Err(bad) => return Failure::new(format!("the orders cannot be read: {}", bad.0)),
    };
    close_at_exec(&orders.keep);
    let done = match orders.stage {
        Stage::Namespaces => namespaces::run(&orders),
        Stage::AroundBubblewrap => namespaces::run_around(&orders),
        Stage::InBubblewrap => namespaces::run_inside(&orders),
        Stage::LandlockOnly => confine(&orders).and_then(|()| Err(become_command(&orders))),
    };
    match done {
        Ok(never) => match never {},
        Err(failure) => failure,
    }
}

/// What was left open is nobody's but those named.
fn close_at_exec(keep: &[RawFd]) {
    // SAFETY: marks descriptors to be closed by exec, and takes that mark from some; touches no memory.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
        for number in keep {
            libc::fcntl(*number, libc::F_SETFD, 0);
        }
    }
}

/// From here on the process is held.
fn confine(orders: &Orders) -> Result<(), Failure> {
    // A dump of memory is a file outside of all this.
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    caps::drop_all()?;
    landlock::enforce(orders)?;
    seccomp::install(orders)
}

/// Only comes back when it fails.
fn become_command(orders: &Orders) -> Failure {
    if let Err(error) = nix::unistd::chdir(&orders.cwd) {
        return Failure::new(format!("{} cannot be entered: {error}", orders.cwd.display()));
    }
    let _ = SigSet::empty().thread_set_mask();
    let mut command = Command::new(&orders.program);
    command.args(&orders.args).envs(orders.env.iter().map(|(name, value)| (name, value)));
    failed(&format!("{} cannot be started", orders.program.display()))(command.exec())
}

/// Puts what was tried before what went wrong.
fn failed<E: fmt::Display>(what: &str) -> impl Fn(E) -> Failure + '_ {
    move |error| Failure::new(format!("{what}: {error}"))
}
