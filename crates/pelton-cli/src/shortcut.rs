//! Writing to standard output as much as its reader has room for, and waiting for nobody. What is left goes by the thread
//! that may block (`pelton_serve::Streams`).

use pelton_serve::Streams;

/// Streams that take the short way to standard output wherever it has one.
#[cfg(target_os = "linux")]
pub(crate) fn taken_by(streams: Streams) -> Streams {
    match on_linux::Kind::of_stdout() {
        Some(kind) => streams.with_shortcut(move |bytes| kind.write(bytes)),
        None => streams,
    }
}

/// There is none here that is known.
#[cfg(not(target_os = "linux"))]
pub(crate) fn taken_by(streams: Streams) -> Streams {
    streams
}

#[cfg(target_os = "linux")]
mod on_linux {
    use std::fs::File;
    use std::io::{IoSlice, IsTerminal as _, Write as _};
    use std::os::fd::{AsFd as _, OwnedFd};

    use rustix::io::{ReadWriteFlags, pwritev2};

    /// What standard output is.
    pub(super) enum Kind {
        /// A file: it has no reader that could make anybody wait.
        File(File),
        /// A pipe, a socket or a device: the kernel takes what there is room for.
        Stream(OwnedFd),
    }

    impl Kind {
        /// Nothing for terminals: what is on their screens has an order.
        pub(super) fn of_stdout() -> Option<Self> {
            let file = File::from(std::io::stdout().as_fd().try_clone_to_owned().ok()?);
            if file.metadata().ok()?.is_file() {
                return Some(Self::File(file));
            }
            (!file.is_terminal()).then(|| Self::Stream(file.into()))
        }

        /// How many bytes were written. What fails here fails again where it is told.
        pub(super) fn write(&self, bytes: &[u8]) -> usize {
            match self {
                Self::File(file) => (&*file).write(bytes).unwrap_or(0),
                Self::Stream(stream) => {
                    pwritev2(stream, &[IoSlice::new(bytes)], WHERE_IT_STANDS, ReadWriteFlags::NOWAIT)
                        .unwrap_or(0)
                }
            }
        }
    }

    /// Streams have no places: the kernel wants this one, which is -1.
    const WHERE_IT_STANDS: u64 = u64::MAX;
}
