//! Giving up every privilege, for good.

use std::io;

use nix::libc::{self, c_int, c_ulong};

use super::{Failure, failed};

/// More capabilities than any kernel has.
const CAPABILITIES_MAX: c_ulong = 64;
const NO_ROOT: c_ulong = 0b11; // SECBIT_NOROOT, and its lock.
const VERSION_3: u32 = 0x2008_0522;

/// No capability is left, none can come back, and no program brings its own.
pub(super) fn drop_all() -> Result<(), Failure> {
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0).map_err(failed("new privileges cannot be refused"))?;
    // These three need a privilege themselves. Whoever has none to give up may go on without.
    let _ = prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as c_ulong, 0);
    let _ = prctl(libc::PR_SET_SECUREBITS, NO_ROOT, 0);
    for capability in 0..CAPABILITIES_MAX {
        let _ = prctl(libc::PR_CAPBSET_DROP, capability, 0);
    }
    let header: [u32; 2] = [VERSION_3, 0];
    let none = [0u32; 6];
    // SAFETY: both point to memory of the size the call reads for this version, and it writes to neither.
    let done = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
    if done == -1 {
        return Err(failed("capabilities cannot be dropped")(io::Error::last_os_error()));
    }
    Ok(())
}

/// Nobody in the box may look into this process.
pub(super) fn close_memory() {
    // Where it cannot be done, Landlock and the filter still hold.
    let _ = prctl(libc::PR_SET_DUMPABLE, 0, 0);
}

fn prctl(option: c_int, two: c_ulong, three: c_ulong) -> io::Result<()> {
    let none: c_ulong = 0;
    // SAFETY: none of the options used here takes a pointer.
    match unsafe { libc::prctl(option, two, three, none, none) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
