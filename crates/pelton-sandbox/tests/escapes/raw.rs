//! System calls that no shell makes. Each is harmless where it succeeds: it acts on children, on memory of its own or on what
//! the suite has put there. The whole file is unsafe by its nature: one reason, given in `run`, holds for all of it.

#![allow(clippy::undocumented_unsafe_blocks)]

use std::ffi::{CString, OsString};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

use nix::libc::{self, c_int, c_long, c_void};

/// Makes the call named; exits with zero if it succeeds.
pub fn run(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let name = words.next().unwrap_or_default();
    // SAFETY: every call gets memory that lives as long as it, of the size it expects; what it does to this process ends
    // with it.
    let done = unsafe { call(&name.to_string_lossy()) };
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// An attribute of a file, if it has one.
pub fn attribute(path: &Path) -> Option<u8> {
    let path = text(path.as_os_str().to_str()?);
    let mut byte = [0u8; 1];
    // SAFETY: both texts end in zero, and one byte is what may be written.
    let length =
        unsafe { libc::lgetxattr(path.as_ptr(), c"user.pelton".as_ptr(), byte.as_mut_ptr().cast(), 1) };
    (length == 1).then_some(byte[0])
}

fn var(name: &str) -> String {
    std::env::var(name).expect(name)
}

fn text(text: &str) -> CString {
    CString::new(text).expect("no zero")
}

fn victim() -> libc::pid_t {
    var("VICTIM").parse().expect("a number")
}

/// SAFETY: as for the calls themselves.
unsafe fn call(name: &str) -> bool {
    let out = var("OUT");
    let at = |name: &str| text(&format!("{out}/{name}"));
    unsafe {
        match name {
            // Files.
            "memfd" => memfd(),
            "tmpfile" => {
                let fd = libc::open(text(&out).as_ptr(), libc::O_TMPFILE | libc::O_WRONLY, 0o600);
                let own = text(&format!("/proc/self/fd/{fd}"));
                let flags = libc::AT_SYMLINK_FOLLOW;
                fd >= 0
                    && libc::linkat(libc::AT_FDCWD, own.as_ptr(), libc::AT_FDCWD, at("new").as_ptr(), flags)
                        == 0
            }
            "openat-dirfd" => {
                let dir = libc::open(text(&out).as_ptr(), libc::O_PATH | libc::O_DIRECTORY);
                libc::openat(dir, c"new".as_ptr(), libc::O_CREAT | libc::O_WRONLY, 0o600) >= 0
            }
            "openat2" => {
                let mut how: libc::open_how = std::mem::zeroed();
                how.flags = (libc::O_CREAT | libc::O_WRONLY) as u64;
                how.mode = 0o600;
                let size = size_of::<libc::open_how>();
                libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, at("new").as_ptr(), &raw const how, size)
                    >= 0
            }
            // Protected names.
            "protected-openat2" => {
                let mut how: libc::open_how = std::mem::zeroed();
                how.flags = (libc::O_CREAT | libc::O_WRONLY) as u64;
                how.mode = 0o600;
                let size = size_of::<libc::open_how>();
                let name = c".envrc".as_ptr();
                libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, name, &raw const how, size) >= 0
            }
            "protected-tmpfile" => {
                let fd = libc::open(c".".as_ptr(), libc::O_TMPFILE | libc::O_WRONLY, 0o600);
                let own = text(&format!("/proc/self/fd/{fd}"));
                let (here, flags) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
                fd >= 0 && libc::linkat(here, own.as_ptr(), here, c".envrc".as_ptr(), flags) == 0
            }
            "protected-thread" => {
                // Relative to a descriptor, and from a thread that is not the first.
                let made = std::thread::spawn(|| {
                    let dir = libc::open(c".".as_ptr(), libc::O_PATH | libc::O_DIRECTORY);
                    libc::openat(dir, c".envrc".as_ptr(), libc::O_CREAT | libc::O_WRONLY, 0o600) >= 0
                });
                made.join().expect("no panic")
            }
            "renameat2" => {
                let own = text("src/main.c");
                let call = libc::SYS_renameat2;
                libc::syscall(call, libc::AT_FDCWD, own.as_ptr(), libc::AT_FDCWD, at("victim").as_ptr(), 2)
                    == 0
            }
            "setxattr" => {
                libc::setxattr(at("victim").as_ptr(), c"user.pelton".as_ptr(), c"x".as_ptr().cast(), 1, 0)
                    == 0
            }
            "open-by-handle-at" => handle(&out),
            // Processes.
            "ptrace" => {
                libc::ptrace(libc::PTRACE_ATTACH, victim(), 0, 0) == 0 && {
                    libc::waitpid(victim(), std::ptr::null_mut(), 0);
                    libc::ptrace(libc::PTRACE_DETACH, victim(), 0, 0) == 0
                }
            }
            "process-vm-writev" => {
                let (mut here, mut there) = (1u64, 2u64);
                let own = libc::iovec { iov_base: (&raw mut here).cast(), iov_len: 8 };
                let other = libc::iovec { iov_base: (&raw mut there).cast(), iov_len: 8 };
                libc::process_vm_writev(libc::getpid(), &raw const own, 1, &raw const other, 1, 0) == 8
            }
            "pidfd-getfd" => {
                let pidfd = libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0);
                libc::syscall(libc::SYS_pidfd_getfd, pidfd, 1, 0) >= 0
            }
            "kcmp" => libc::syscall(libc::SYS_kcmp, libc::getpid(), libc::getpid(), 0, 1, 1) >= 0,
            "proc-mem" => {
                std::fs::OpenOptions::new().write(true).open(format!("/proc/{}/mem", victim())).is_ok()
            }
            // Doors.
            "io-uring" => {
                let mut parameters = [0u8; 256];
                libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) >= 0
            }
            "bpf" => {
                // A map of one number.
                let attributes: [u32; 32] =
                    std::array::from_fn(|at| [2, 4, 4, 1].get(at).copied().unwrap_or(0));
                libc::syscall(libc::SYS_bpf, 0, attributes.as_ptr(), 128) >= 0
            }
            "userfaultfd" => libc::syscall(libc::SYS_userfaultfd, 1) >= 0,
            "keyctl" => libc::syscall(libc::SYS_keyctl, 0, -3, 1) >= 0,
            "add-key" => {
                let (kind, name) = (c"user".as_ptr(), c"pelton".as_ptr());
                libc::syscall(libc::SYS_add_key, kind, name, c"x".as_ptr(), 1, -2) >= 0
            }
            "perf-event-open" => {
                // A count of this process's own time.
                let mut attributes = [0u8; 128];
                attributes[0] = 1;
                attributes[4] = 128;
                attributes[8] = 0;
                // Not the kernel's part.
                attributes[40] = 0b0110_0000;
                libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), 0, -1, -1, 0) >= 0
            }
            "personality" => libc::personality(0x0040_0000) >= 0,
            "syslog" => libc::syscall(libc::SYS_syslog, 10, 0, 0) >= 0,
            "sethostname" => {
                let mut name = [0u8; 65];
                libc::gethostname(name.as_mut_ptr().cast(), 64);
                let length = name.iter().position(|byte| *byte == 0).unwrap_or(0);
                libc::sethostname(name.as_ptr().cast(), length) == 0
            }
            "tiocsti" => terminal(),
            // Namespaces and mounts.
            "unshare-user" => libc::unshare(libc::CLONE_NEWUSER) == 0,
            "clone-user" => {
                forked(libc::syscall(libc::SYS_clone, libc::CLONE_NEWUSER | libc::SIGCHLD, 0, 0, 0, 0))
            }
            "clone3-user" => {
                let mut arguments: libc::clone_args = std::mem::zeroed();
                arguments.flags = libc::CLONE_NEWUSER as u64;
                arguments.exit_signal = libc::SIGCHLD as u64;
                forked(libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>()))
            }
            "setns" => {
                let own = libc::open(c"/proc/self/ns/uts".as_ptr(), libc::O_RDONLY);
                libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWUTS) == 0 || libc::setns(own, 0) == 0
            }
            "mount-tmpfs" => alone() && mount(c"tmpfs", c"src", c"tmpfs", 0),
            "remount" => alone() && mount(c"none", c"/", c"", libc::MS_REMOUNT | libc::MS_BIND),
            "umount" => {
                alone() && mount(c"tmpfs", c"src", c"tmpfs", 0) && libc::umount2(c"src".as_ptr(), 0) == 0
            }
            "pivot-root" => {
                alone()
                    && mount(c"tmpfs", c"src", c"tmpfs", 0)
                    && libc::chdir(c"src".as_ptr()) == 0
                    && libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()) == 0
            }
            "chroot" => (libc::geteuid() == 0 || alone()) && libc::chroot(c"src".as_ptr()) == 0,
            "open-tree" => {
                let flags = libc::OPEN_TREE_CLONE;
                alone() && libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, c"src".as_ptr(), flags) >= 0
            }
            "fsopen" => alone() && libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), 0) >= 0,
            "mount-setattr" => {
                let attributes = [0u64; 4];
                alone() && {
                    let call = libc::SYS_mount_setattr;
                    libc::syscall(call, libc::AT_FDCWD, c"/".as_ptr(), 0, attributes.as_ptr(), 32) == 0
                }
            }
            #[cfg(target_arch = "x86_64")]
            "iopl" => libc::syscall(libc::SYS_iopl, 3) == 0,
            // The network.
            "socket-inet" => libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) >= 0,
            "socket-inet6" => libc::socket(libc::AF_INET6, libc::SOCK_STREAM, 0) >= 0,
            "socket-netlink" => libc::socket(libc::AF_NETLINK, libc::SOCK_RAW, 0) >= 0,
            "socket-packet" => libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) >= 0,
            "socket-raw" => libc::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP) >= 0,
            "socket-vsock" => libc::socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0) >= 0,
            "socket-alg" => libc::socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0) >= 0,
            #[cfg(target_arch = "x86_64")]
            "socket-32-bit" => socket_by_the_old_door() >= 0,
            "bind-inet" => std::net::TcpListener::bind("127.0.0.1:0").is_ok(),
            "unix-connect" => UnixStream::connect(format!("{out}/docker.sock")).is_ok(),
            "unix-abstract" => {
                use std::os::linux::net::SocketAddrExt;
                let address =
                    std::os::unix::net::SocketAddr::from_abstract_name(var("ABSTRACT")).expect("a name");
                UnixStream::connect_addr(&address).is_ok()
            }
            "unix-letter" => letter(libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM, 0), &out),
            "unix-letter-pair" => {
                let mut pair = [0; 2];
                libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, pair.as_mut_ptr());
                letter(pair[0], &out)
            }
            other => panic!("no such call: {other}"),
        }
    }
}

/// Whether a new process came to be; it ends at once.
unsafe fn forked(pid: c_long) -> bool {
    if pid == 0 {
        unsafe { libc::_exit(0) }
    }
    pid > 0
}

/// Namespaces in which mounting hurts nobody.
unsafe fn alone() -> bool {
    let flags = if unsafe { libc::geteuid() } == 0 { 0 } else { libc::CLONE_NEWUSER };
    unsafe {
        let made = libc::unshare(flags | libc::CLONE_NEWNS) == 0;
        // Inside the box this fails, and what follows is tried all the same.
        if made {
            mount(c"none", c"/", c"", libc::MS_REC | libc::MS_PRIVATE);
        }
    }
    true
}

unsafe fn mount(
    what: &std::ffi::CStr,
    at: &std::ffi::CStr,
    kind: &std::ffi::CStr,
    flags: libc::c_ulong,
) -> bool {
    unsafe { libc::mount(what.as_ptr(), at.as_ptr(), kind.as_ptr(), flags, std::ptr::null()) == 0 }
}

/// A shell that is in no directory writes outside.
unsafe fn memfd() -> bool {
    use std::io::Write;
    use std::os::fd::FromRawFd;
    let program = std::fs::read("/bin/sh").expect("a shell");
    let fd = unsafe { libc::memfd_create(c"sh".as_ptr(), 0) };
    // SAFETY: it was just made.
    let mut file = unsafe { std::fs::File::from_raw_fd(fd) };
    file.write_all(&program).expect("a copy");
    let path = text(&format!("/proc/self/fd/{}", file.as_raw_fd()));
    let words = [c"sh".as_ptr(), c"-c".as_ptr(), c"echo x > $OUT/new".as_ptr(), std::ptr::null()];
    unsafe { libc::execv(path.as_ptr(), words.as_ptr()) };
    false
}

/// Opens a file by its number on the disk, whatever is mounted over it.
unsafe fn handle(out: &str) -> bool {
    let mut handle = [0u32; 40];
    handle[0] = 128;
    let mut number: c_int = 0;
    let path = text(&format!("{out}/victim"));
    unsafe {
        let at = libc::AT_FDCWD;
        let named = libc::syscall(
            libc::SYS_name_to_handle_at,
            at,
            path.as_ptr(),
            handle.as_mut_ptr(),
            &raw mut number,
            0,
        );
        let dir = libc::open(c".".as_ptr(), libc::O_RDONLY);
        named == 0 && libc::syscall(libc::SYS_open_by_handle_at, dir, handle.as_ptr(), libc::O_WRONLY) >= 0
    }
}

/// Types into a terminal in the place of whoever sits there.
unsafe fn terminal() -> bool {
    unsafe {
        let master = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY);
        if master < 0 || libc::grantpt(master) != 0 || libc::unlockpt(master) != 0 {
            return false;
        }
        libc::setsid();
        let slave = libc::open(libc::ptsname(master), libc::O_RDWR);
        libc::ioctl(slave, libc::TIOCSCTTY, 0);
        libc::ioctl(slave, libc::TIOCSTI, c"x".as_ptr()) == 0
    }
}

/// A letter to a socket by its name.
unsafe fn letter(from: RawFd, out: &str) -> bool {
    let path = format!("{out}/log.sock");
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (place, byte) in address.sun_path.iter_mut().zip(std::ffi::OsStr::new(&path).as_bytes()) {
        *place = *byte as libc::c_char;
    }
    let mut words = *b"evil";
    let mut piece = libc::iovec { iov_base: words.as_mut_ptr().cast::<c_void>(), iov_len: words.len() };
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_name = (&raw mut address).cast();
    message.msg_namelen = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    unsafe { libc::sendmsg(from, &raw const message, 0) > 0 }
}

/// A socket by the numbers that calls had on the processors before.
#[cfg(target_arch = "x86_64")]
fn socket_by_the_old_door() -> i32 {
    let mut result: i32 = 359;
    // SAFETY: makes one system call with three plain numbers; the register that must not be named is put back.
    unsafe {
        std::arch::asm!(
            "push rbx",
            "mov ebx, {domain:e}",
            "int 0x80",
            "pop rbx",
            domain = in(reg) libc::AF_INET,
            inout("eax") result,
            in("ecx") libc::SOCK_STREAM,
            in("edx") 0,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    result
}
