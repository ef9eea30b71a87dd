//! Programs beside a session. The terminal is the session's: whatever else could open it might write what it wants, or take keys.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, setsid};
use tokio::process::{Child, Command};

/// Makes a program begin without a terminal, and with a group of its own.
pub(super) fn apart(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec only one system call is made, and nothing is allocated.
    unsafe { command.pre_exec(|| Ok(setsid().map(drop)?)) }
}

/// A program of the kind and all that it has started: ended together, unless it ends by itself.
pub(super) struct Together(Option<Pid>);

impl Together {
    pub fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.map(Pid::from_raw))
    }

    /// It has ended. What it left behind is meant to go on.
    pub fn ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Together {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Nobody is left in it.
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}
