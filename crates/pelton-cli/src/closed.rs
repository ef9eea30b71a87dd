//! Whether standard output was closed before the program began, as in `pelton ... >&-`.
//!
//! Before `main`, Rust's runtime opens a standard stream that is closed to `/dev/null`, so that no file takes its place.
//! From then on it looks like one that leads nowhere on purpose: the run would be paid for, its answer lost, and the
//! exit code 0. So it is looked at before the runtime does.

/// Nobody can read what would be written.
#[cfg(target_os = "linux")]
pub(crate) fn stdout_was_closed() -> bool {
    before_main::STDOUT_CLOSED.load(std::sync::atomic::Ordering::Relaxed)
}

/// Cannot be told here: the answer goes nowhere, its transcript is kept.
#[cfg(not(target_os = "linux"))]
pub(crate) fn stdout_was_closed() -> bool {
    false
}

#[cfg(target_os = "linux")]
mod before_main {
    use std::sync::atomic::{AtomicBool, Ordering};

    use nix::libc;

    pub(super) static STDOUT_CLOSED: AtomicBool = AtomicBool::new(false);

    /// The loader calls what is listed here before the program's entry.
    // SAFETY: entries of this section are pointers to functions of this type. The function uses nothing that the
    // runtime would have to set up first: one system call and one atomic, no allocation, nothing that can panic.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = look;

    extern "C" fn look() {
        // SAFETY: asks for the flags of a descriptor, which is harmless also when it is not open.
        if unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1 {
            STDOUT_CLOSED.store(true, Ordering::Relaxed);
        }
    }
}
