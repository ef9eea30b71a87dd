//! Ends what commands have started when this process is killed outright and no destructor runs.
//!
//! The kernel ends the programs themselves then, but not what they started in turn: the compiler behind the shell
//! would go on. The warden is a shell that waits for the end of a pipe of which this process holds the other end,
//! and then kills whoever carries the mark of this process's commands. There is one while any command runs, and from the first
//! command of a submission to its end.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use nix::unistd::setsid;

/// Looks again after each round, because what is being killed may be starting more. The files are the kernel's: a
/// process that has ended has an empty one.
const SCRIPT: &str = r#"
while read -r line; do :; done
for round in 1 2 3 4 5 6 7 8; do
    files=$(grep -ls "$1" /proc/[0-9]*/environ)
    [ -n "$files" ] || exit 0
    for file in $files; do
        pid=${file#/proc/}
        kill -9 "${pid%/environ}"
    done
done
"#;

/// Where programs are when the environment does not say.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A running warden. Its child's standard input is the pipe. Dropping it ends it without ado.
#[derive(Debug)]
pub(super) struct Warden(Child);

impl Warden {
    /// The one on duty, or a new one. `None` if it cannot be had: everything else still holds.
    pub fn on_duty(env: &[(OsString, OsString)]) -> Option<Arc<Self>> {
        // Commands of all sessions are marked with the number of this process, so one is enough.
        static ON_DUTY: Mutex<Weak<Warden>> = Mutex::new(Weak::new());
        let mut on_duty = ON_DUTY.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(warden) = on_duty.upgrade() {
            return Some(warden);
        }
        let warden = Arc::new(Self(start(env).ok()?));
        *on_duty = Arc::downgrade(&warden);
        Some(warden)
    }
}

impl Drop for Warden {
    fn drop(&mut self) {
        // It does nothing but wait, so it is gone at once. That it was gone before is no matter.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(env: &[(OsString, OsString)]) -> io::Result<Child> {
    let path = env.iter().rev().find(|(name, _)| name == "PATH").map_or(OsStr::new(PATH), |(_, path)| path);
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", SCRIPT, "pelton-warden", &super::mark_of(nix::unistd::getpid())])
        .env_clear()
        .env("PATH", path)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // SAFETY: between fork and exec only async-signal-safe calls are made, which allocate nothing and take no lock.
    unsafe {
        command.pre_exec(|| {
            // What ends the terminal or the group of this process must not end the warden.
            setsid()?;
            super::close_at_exec();
            Ok(())
        });
    }
    command.spawn()
}
