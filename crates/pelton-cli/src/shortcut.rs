//! Writing to standard output as much as its reader has room for, and waiting for nobody. What is left goes by the thread
//! that may block (`pelton_serve::Streams`).

use pelton_serve::Streams;

/// Streams that take the short way to standard output wherever it has one.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn taken_by(streams: Streams) -> Streams {
    if on_linux::stdout_has_one() { streams.with_shortcut(on_linux::write_without_waiting) } else { streams }
}

/// There is none here that is known.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn taken_by(streams: Streams) -> Streams {
    streams
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod on_linux {
    use std::fs::File;
    use std::io::IsTerminal as _;
    use std::os::fd::AsFd as _;

    use nix::libc;

    /// A pipe, a socket or a device has. What is on the screen of a terminal has an order, and a file may be on another machine,
    /// for which the kernel always waits.
    pub(super) fn stdout_has_one() -> bool {
        let stdout = std::io::stdout();
        let file = stdout.as_fd().try_clone_to_owned().map(File::from);
        let is_file = file.and_then(|file| file.metadata()).map(|about| about.is_file());
        matches!(is_file, Ok(false)) && !stdout.is_terminal()
    }

    /// How many bytes were written. What fails here fails again where it is told.
    pub(super) fn write_without_waiting(bytes: &[u8]) -> usize {
        /// Streams have no places.
        const NO_PLACE: libc::off_t = -1;
        let piece = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // SAFETY: there is one piece, which is there until the call returns and is only read.
        let written =
            unsafe { libc::pwritev2(libc::STDOUT_FILENO, &raw const piece, 1, NO_PLACE, libc::RWF_NOWAIT) };
        usize::try_from(written).unwrap_or(0)
    }
}
