//! Interrupt, terminate, hang up.

use nix::libc;
use nix::sys::signal::{SigSet, SigmaskHow, Signal as Number, pthread_sigmask};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::fail::Fail;

/// The signals that end a run. Those that were ignored when the program started stay so: that is how `nohup` and
/// background jobs of a script say that they are not meant.
pub(crate) struct Signals {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    hang_up: Option<Signal>,
}

/// One that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Interrupt,
    Terminate,
    HangUp,
}

impl Ending {
    /// 128 plus the signal's number, as shells say it.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::HangUp => 129,
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }

    /// What happened to the run.
    pub fn word(self) -> &'static str {
        match self {
            Self::HangUp => "hung up",
            Self::Interrupt => "interrupted",
            Self::Terminate => "terminated",
        }
    }
}

impl Signals {
    pub fn listen() -> Result<Self, Fail> {
        let listen = |kind: SignalKind| {
            if is_ignored(kind) {
                return Ok(None);
            }
            signal(kind).map(Some).map_err(|error| Fail::new(format!("cannot listen for signals: {error}")))
        };
        // A file that must not grow any more is an error of whoever writes to it, and not the end of everything without a word.
        // Nobody waits for it: that somebody listens is enough, and programs that are started do not inherit that.
        let _ = signal(SignalKind::from_raw(libc::SIGXFSZ));
        let listening = Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        };
        release();
        Ok(listening)
    }

    /// Waits for the next one. Loses none when it is dropped.
    pub async fn next(&mut self) -> Ending {
        tokio::select! {
            () = came(&mut self.interrupt) => Ending::Interrupt,
            () = came(&mut self.terminate) => Ending::Terminate,
            () = came(&mut self.hang_up) => Ending::HangUp,
        }
    }
}

/// Whoever sends a program into the background without its key.
pub(crate) struct Stops(Option<Signal>);

impl Stops {
    /// Listens, unless that is not meant for the program.
    pub fn listen() -> Self {
        let kind = SignalKind::from_raw(libc::SIGTSTP);
        // Where nobody can listen it stops as any program does.
        Self(Some(kind).filter(|kind| !is_ignored(*kind)).and_then(|kind| signal(kind).ok()))
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        came(&mut self.0).await;
    }
}

/// Holds signals back until somebody [listens](Signals::listen): one that comes while the program starts is not lost, and
/// does not end it without a word. To be called on the only thread.
pub(crate) fn hold() {
    mask(SigmaskHow::SIG_BLOCK);
}

/// Nobody will listen: they do what they do to any program.
pub(crate) fn release() {
    mask(SigmaskHow::SIG_UNBLOCK);
}

fn mask(how: SigmaskHow) {
    let ours = SigSet::from_iter([Number::SIGINT, Number::SIGTERM, Number::SIGHUP]);
    // It fails only for a `how` that does not exist.
    let _ = pthread_sigmask(how, Some(&ours), None);
}

async fn came(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => _ = signal.recv().await,
        None => std::future::pending().await,
    }
}

fn is_ignored(kind: SignalKind) -> bool {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: with a null action nothing is changed; the kernel fills in `now`, for which all zeros is a valid value.
    let now = unsafe {
        if libc::sigaction(kind.as_raw_value(), std::ptr::null(), now.as_mut_ptr()) != 0 {
            return false;
        }
        now.assume_init()
    };
    now.sa_sigaction == libc::SIG_IGN
}
