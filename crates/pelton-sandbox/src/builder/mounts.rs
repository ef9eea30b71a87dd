//! The disk as the box sees it: everything read-only but what may be written, a `/dev` with nothing in it that matters, a
//! `/proc` of its own. Runs in a new mount namespace.
//!
//! Paths are opened without following links: a link that appeared since the plan was made ends it here.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::libc;
use nix::mount::{MsFlags, mount};

use super::{Failure, failed};
use crate::limits::SHARED_MEMORY_BYTES_MAX;
use crate::orders::Orders;
use crate::plan::{Hides, How};

const NOTHING: Option<&str> = None;
/// What stands in the place of hidden things is made here.
const MASKS: &str = "/dev/.pelton";
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom"];

/// Builds it all.
pub(super) fn build(orders: &Orders) -> Result<(), Failure> {
    mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NOTHING)
        .map_err(failed("mounts cannot be made private"))?;
    // Everything is taken as it is now, before anything covers it.
    let mut taken = Vec::new();
    for order in &orders.mounts {
        let tree = match order.how {
            How::Writable | How::ReadOnly => {
                Some(take(&order.path).map_err(at(&order.path, "cannot be taken"))?)
            }
            How::Hidden(_) => None,
        };
        taken.push((order, tree));
    }
    let devices: Vec<(&str, OwnedFd)> =
        DEVICES.iter().filter_map(|name| Some((*name, take(&Path::new("/dev").join(name)).ok()?))).collect();

    if !orders.open_disk {
        set_read_only(&open(Path::new("/")).map_err(at(Path::new("/"), "cannot be opened"))?, Below::All)
            .map_err(failed("the disk cannot be made read-only"))?;
    }
    dev(devices).map_err(failed("/dev cannot be made"))?;
    proc(orders.old_proc)?;

    for (number, (order, tree)) in taken.iter().enumerate() {
        let path = &order.path;
        match (order.how, tree) {
            (How::Writable, Some(tree)) => put(tree, path),
            (How::ReadOnly, Some(tree)) => set_read_only(tree, Below::All).and_then(|()| put(tree, path)),
            (How::Hidden(hides), _) => hide(path, hides, number, orders),
            (How::Writable | How::ReadOnly, None) => Err(io::ErrorKind::NotFound.into()),
        }
        .map_err(at(path, "cannot be mounted"))?;
    }
    let masks = Path::new(MASKS);
    let closed =
        fs::set_permissions(masks, Permissions::from_mode(0o000)).and_then(|()| open(Path::new("/dev")));
    closed.and_then(|dev| set_read_only(&dev, Below::None)).map_err(failed("/dev cannot be made read-only"))
}

fn at<'a, E: std::fmt::Display>(path: &'a Path, what: &'a str) -> impl Fn(E) -> Failure + 'a {
    move |error| Failure::new(format!("{} {what}: {error}", path.display()))
}

/// A path, links refused.
fn open(path: &Path) -> io::Result<OwnedFd> {
    let how =
        OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    Ok(openat2(nix::fcntl::AT_FDCWD, path, how)?)
}

/// A copy of what is at a path, not mounted anywhere yet.
fn take(path: &Path) -> io::Result<OwnedFd> {
    let found = open(path)?;
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC;
    let flags = flags | libc::AT_EMPTY_PATH.cast_unsigned() | libc::AT_RECURSIVE.cast_unsigned();
    // SAFETY: the path is an empty text that ends in zero; the descriptor is open.
    let tree = unsafe { libc::syscall(libc::SYS_open_tree, found.as_raw_fd(), c"".as_ptr(), flags) };
    descriptor(tree)
}

/// Mounts such a copy.
fn put(tree: &OwnedFd, path: &Path) -> io::Result<()> {
    let target = open(path)?;
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH | libc::MOVE_MOUNT_T_EMPTY_PATH;
    // SAFETY: both paths are empty texts that end in zero; both descriptors are open.
    let done = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            target.as_raw_fd(),
            c"".as_ptr(),
            flags,
        )
    };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[derive(Clone, Copy)]
enum Below {
    All,
    None,
}

fn set_read_only(tree: &OwnedFd, below: Below) -> io::Result<()> {
    // SAFETY: a record of plain numbers, for which zero means that nothing is said.
    let mut wanted: libc::mount_attr = unsafe { std::mem::zeroed() };
    wanted.attr_set = libc::MOUNT_ATTR_RDONLY;
    let recursive = match below {
        Below::All => libc::AT_RECURSIVE,
        Below::None => 0,
    };
    // SAFETY: the path is an empty text that ends in zero, and the record is as long as is said.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            (libc::AT_EMPTY_PATH | recursive).cast_unsigned(),
            &raw const wanted,
            size_of::<libc::mount_attr>(),
        )
    };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn descriptor(number: libc::c_long) -> io::Result<OwnedFd> {
    match RawFd::try_from(number) {
        // SAFETY: the kernel just made this descriptor, and nobody else has it.
        Ok(number) if number >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(number) }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn dev(devices: Vec<(&str, OwnedFd)>) -> io::Result<()> {
    let quiet = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    mount(Some("tmpfs"), "/dev", Some("tmpfs"), quiet, Some("mode=755"))?;
    for (name, tree) in devices {
        let path = Path::new("/dev").join(name);
        fs::write(&path, [])?;
        put(&tree, &path)?;
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        symlink(target, Path::new("/dev").join(name))?;
    }
    for dir in ["/dev/shm", "/dev/pts", MASKS] {
        fs::create_dir(dir)?;
    }
    let size = format!("mode=1777,size={SHARED_MEMORY_BYTES_MAX}");
    mount(Some("tmpfs"), "/dev/shm", Some("tmpfs"), quiet | MsFlags::MS_NODEV, Some(size.as_str()))?;
    // Programs that want a terminal may have one of their own. Some machines refuse it, and that is borne.
    let own = Some("newinstance,ptmxmode=0666,mode=620");
    if mount(Some("devpts"), "/dev/pts", Some("devpts"), quiet, own).is_ok() {
        symlink("pts/ptmx", "/dev/ptmx")?;
    }
    Ok(())
}

fn proc(old_will_do: bool) -> Result<(), Failure> {
    let quiet = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    match mount(Some("proc"), "/proc", Some("proc"), quiet, NOTHING) {
        // It is read-only like everything else, but shows the processes outside.
        Err(Errno::EPERM) if old_will_do => return Ok(()),
        done => done.map_err(failed("/proc cannot be mounted"))?,
    }
    // As root, settings of the whole machine could be written there.
    let proc = open(Path::new("/proc")).and_then(|proc| set_read_only(&proc, Below::None));
    proc.map_err(failed("/proc cannot be made read-only"))
}

/// Covers something. Inside a directory, whatever is shown again needs something to be mounted on.
fn hide(path: &Path, hides: Hides, number: usize, orders: &Orders) -> io::Result<()> {
    let mask = Path::new(MASKS).join(number.to_string());
    match hides {
        Hides::File => {
            fs::write(&mask, [])?;
            fs::set_permissions(&mask, Permissions::from_mode(0o000))?;
        }
        Hides::Directory => {
            fs::create_dir(&mask)?;
            for inner in orders.mounts.iter().filter(|inner| inner.path != path) {
                if let Ok(rest) = inner.path.strip_prefix(path) {
                    make_place(&mask, rest, &inner.path)?;
                }
            }
            fs::set_permissions(&mask, Permissions::from_mode(0o111))?;
        }
    }
    let tree = take(&mask)?;
    set_read_only(&tree, Below::All)?;
    put(&tree, path)
}

/// Something empty below `mask` of the kind that is mounted there.
fn make_place(mask: &Path, rest: &Path, original: &Path) -> io::Result<()> {
    let place: PathBuf = mask.join(rest);
    let around = if original.is_dir() { Some(place.as_path()) } else { place.parent() };
    if let Some(dirs) = around {
        DirBuilder::new().recursive(true).mode(0o111).create(dirs)?;
    }
    if !place.exists() {
        fs::write(&place, [])?;
    }
    Ok(())
}
