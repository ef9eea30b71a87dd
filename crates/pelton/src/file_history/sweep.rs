//! Histories of sessions that nobody goes back to any more are taken away, by their age.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use nix::libc;
use uuid::Uuid;

use crate::limits::{FILE_HISTORIES_SWEPT_MAX, FILE_HISTORY_SWEEP_INTERVAL};

/// Its time says when all histories were looked at last.
const STAMP: &str = ".swept";

/// Takes away the histories below `dir` in which nothing was written for so long, but never that of `own`. Says how many. All of them
/// are looked at once in a while only: there may be thousands, and sessions that last for a second.
pub(super) fn sweep(dir: &Path, own: &Path, now: SystemTime, kept_for: Duration) -> usize {
    let stamp = dir.join(STAMP);
    if is_recent(&stamp, now) {
        return 0;
    }
    let Ok(sessions) = fs::read_dir(dir) else { return 0 };
    let old = |path: &Path| {
        newest(path).is_some_and(|newest| now.duration_since(newest).is_ok_and(|age| age > kept_for))
    };
    let is_session = |name: &str| name.parse::<Uuid>().is_ok();
    let swept = sessions
        .flatten()
        // A link is nobody's history, and a directory of another name is somebody else's.
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter(|entry| entry.file_name().to_str().is_some_and(is_session))
        .map(|entry| entry.path())
        .filter(|path| path != own && old(path))
        .take(FILE_HISTORIES_SWEPT_MAX)
        .filter(|path| fs::remove_dir_all(path).is_ok())
        .count();
    if swept < FILE_HISTORIES_SWEPT_MAX {
        // Without a stamp it is done again after the next session.
        let _ = stamped(&stamp, now);
    }
    swept
}

/// A stamp of a time to come is none: the clock was wrong.
fn is_recent(stamp: &Path, now: SystemTime) -> bool {
    let written = fs::symlink_metadata(stamp).and_then(|about| about.modified());
    written.is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age < FILE_HISTORY_SWEEP_INTERVAL))
}

fn stamped(stamp: &Path, now: SystemTime) -> io::Result<()> {
    let mut how = OpenOptions::new();
    how.write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    how.open(stamp)?.set_modified(now)
}

/// When something in a history was written last. It has no directories inside.
fn newest(history: &Path) -> Option<SystemTime> {
    let written = |path: &Path| fs::symlink_metadata(path).and_then(|about| about.modified()).ok();
    let files = fs::read_dir(history).ok()?.flatten().filter_map(|entry| written(&entry.path()));
    files.chain(written(history)).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_old_histories_of_sessions_are_taken_away() {
        let dir = tempfile::tempdir().unwrap();
        let name = |n: u128| Uuid::from_u128(n).to_string();
        let own = dir.path().join(name(1));
        for session in [name(1), name(2), "notes".to_owned()] {
            fs::create_dir(dir.path().join(&session)).unwrap();
            fs::write(dir.path().join(&session).join("file"), "x").unwrap();
        }
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), dir.path().join(name(3))).unwrap();
        let day = Duration::from_secs(24 * 60 * 60);
        let now = SystemTime::now();
        assert_eq!(sweep(dir.path(), &own, now, day), 0, "all are young");
        assert_eq!(sweep(dir.path(), &own, now - 2 * day, day), 0, "a clock that went back takes nothing");
        let soon = now - 2 * day + day / 2;
        assert_eq!(sweep(dir.path(), &own, soon, Duration::ZERO), 0, "they were looked at half a day ago");
        assert_eq!(sweep(dir.path(), &own, now + 2 * day, day), 1);
        assert!(own.exists() && !dir.path().join(name(2)).exists() && dir.path().join("notes").exists());
        assert!(elsewhere.path().exists());
        assert_eq!(sweep(&dir.path().join("missing"), &own, now, day), 0);
    }
}
