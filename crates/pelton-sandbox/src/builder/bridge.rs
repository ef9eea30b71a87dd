//! The one way out of a network with nobody in it: a port on its loopback device whose connections end at a socket on the
//! file system, where the engine decides whom they may reach.

use std::io::{self, PipeWriter, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use nix::libc;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};

use super::{Failure, caps, failed};
use crate::limits::{BRIDGE_CHUNK_BYTES, BRIDGE_CONNECTIONS_MAX, BRIDGE_PORT};

/// Switches the loopback device of a new network on.
pub(super) fn loopback_up() -> io::Result<()> {
    // Any socket will do to speak about devices.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: a record of plain numbers and texts, for which zero is nothing.
    let mut device: libc::ifreq = unsafe { std::mem::zeroed() };
    for (at, byte) in b"lo".iter().enumerate() {
        device.ifr_name[at] = byte.cast_signed() as libc::c_char;
    }
    device.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the call reads a record of this kind, and the descriptor is open.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const device) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The process that carries. It ends when whoever holds this lets go of it: nobody who is confined may signal it.
pub(super) struct Bridge {
    process: Pid,
    key: PipeWriter,
}

impl Bridge {
    /// What keeps it running.
    pub fn key(&self) -> BorrowedFd<'_> {
        self.key.as_fd()
    }

    /// Waits until it has ended.
    pub fn end(self) {
        drop(self.key);
        let _ = waitpid(self.process, None);
    }
}

/// Starts the process that carries.
pub(super) fn start(socket: &Path) -> Result<Bridge, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, BRIDGE_PORT))
        .map_err(failed("the bridge cannot be built"))?;
    let (mut lock, key) = io::pipe().map_err(failed("no pipe"))?;
    // SAFETY: there is one thread.
    match unsafe { fork() }.map_err(failed("no process"))? {
        ForkResult::Parent { child } => Ok(Bridge { process: child, key }),
        ForkResult::Child => {
            drop(key);
            // It runs no word of the command's, but holds no more than it needs.
            let held = caps::drop_all();
            caps::close_memory();
            super::namespaces::let_go_but(&[listener.as_fd(), lock.as_fd()]);
            thread::spawn(move || {
                let _ = lock.read(&mut [0]);
                exit(0)
            });
            if held.is_ok() {
                carry(&listener, socket);
            }
            exit(0)
        }
    }
}

fn carry(listener: &TcpListener, socket: &Path) {
    let open = Arc::new(AtomicUsize::new(0));
    for inside in listener.incoming().flatten() {
        if open.fetch_add(1, Ordering::Relaxed) >= BRIDGE_CONNECTIONS_MAX {
            // Dropping it says no.
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let Ok(outside) = UnixStream::connect(socket) else {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        };
        let open = Arc::clone(&open);
        thread::spawn(move || {
            both_ways(&inside, &outside);
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

fn both_ways(inside: &TcpStream, outside: &UnixStream) {
    thread::scope(|scope| {
        scope.spawn(|| {
            copy(inside, outside);
            let _ = outside.shutdown(Shutdown::Write);
        });
        copy(outside, inside);
        let _ = inside.shutdown(Shutdown::Write);
    });
}

fn copy(mut from: impl Read, mut to: impl Write) {
    let mut chunk = vec![0; BRIDGE_CHUNK_BYTES];
    while let Ok(length @ 1..) = from.read(&mut chunk) {
        if to.write_all(&chunk[..length]).is_err() {
            break;
        }
    }
}
