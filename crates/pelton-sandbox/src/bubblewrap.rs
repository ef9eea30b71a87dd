//! The same plan as words for bubblewrap, which does what the helper does up to Landlock. It is somebody else's program, so
//! it counts only where a command could not have put it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::orders::Orders;
use crate::plan::{Hides, How};

/// The program on a `PATH`, outside of the directories that may be written.
pub fn find(path: &OsStr, writable: &[PathBuf]) -> Option<PathBuf> {
    let dirs = path.as_bytes().split(|byte| *byte == b':').map(|dir| Path::new(OsStr::from_bytes(dir)));
    let files = dirs.filter(|dir| dir.is_absolute()).map(|dir| dir.join("bwrap"));
    files
        .filter_map(|file| file.canonicalize().ok())
        .filter(|file| {
            !writable.iter().any(|root| root.canonicalize().is_ok_and(|root| file.starts_with(root)))
        })
        .find(|file| {
            file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
        })
}

/// What bubblewrap is told, before the words that start the helper inside.
pub(crate) fn words(orders: &Orders) -> Vec<OsString> {
    let mut words: Vec<OsString> = [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-net",
        "--die-with-parent",
        "--as-pid-1",
        if orders.open_disk { "--bind" } else { "--ro-bind" },
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
    ]
    .into_iter()
    .map(OsString::from)
    .collect();
    for mount in &orders.mounts {
        let path = || OsString::from(&mount.path);
        match mount.how {
            How::Writable => words.extend(["--bind".into(), path(), path()]),
            How::ReadOnly => words.extend(["--ro-bind".into(), path(), path()]),
            How::Hidden(Hides::Directory) => {
                words.extend(["--perms".into(), "0111".into(), "--tmpfs".into(), path()]);
            }
            How::Hidden(Hides::File) => {
                // A device that holds nothing, where devices do not work: it cannot be opened.
                words.extend(["--ro-bind".into(), "/dev/null".into(), path()]);
            }
        }
    }
    // The loopback device is switched on by bubblewrap, everything else is given up there too.
    words.extend([
        "--chdir".into(),
        OsString::from(&orders.cwd),
        "--cap-drop".into(),
        "ALL".into(),
        "--".into(),
    ]);
    words
}
