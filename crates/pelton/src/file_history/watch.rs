//! Whether anything happened in the trees since they were last looked at, told by the kernel: asking for every file of a
//! large tree takes a while, and between two commands mostly nothing happens. Whenever something is not certain (a file system
//! that other machines write to, too many directories, events that were lost), the answer is that something may have.
//!
//! Writes through a mapping that stays open, and through another name of a file outside of the trees, are no events. They are seen at the end of the next command and taken for its
//! work, like everything that other programs write while it runs.

use std::path::{Path, PathBuf};

/// Asks the kernel to say what happens in directories.
#[derive(Debug, Default)]
pub struct Watch {
    #[cfg(target_os = "linux")]
    watching: Option<linux::Watching>,
}

impl Watch {
    /// Before everything is looked at: what happens from here on is heard. What was heard before is forgotten.
    pub fn begin<'a>(&mut self, roots: &[PathBuf], dirs: impl ExactSizeIterator<Item = &'a Path>) {
        #[cfg(target_os = "linux")]
        {
            self.watching = linux::Watching::kept_or_new(self.watching.take(), roots, dirs);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (roots, dirs.len());
    }

    /// Whether all of these directories were listened to since they were looked at, and nothing happened there.
    pub fn heard_nothing<'a>(&mut self, roots: &[PathBuf], dirs: impl Iterator<Item = &'a Path>) -> bool {
        #[cfg(target_os = "linux")]
        {
            self.watching.as_mut().is_some_and(|watching| watching.heard_nothing(roots, dirs))
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = (roots, dirs.count());
            false
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use nix::errno::Errno;
    use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

    use crate::limits::FILE_HISTORY_DIRS_HEARD_MAX;
    use crate::tools::disk::is_on_this_machine;

    #[derive(Debug)]
    pub struct Watching {
        ear: Inotify,
        roots: Vec<PathBuf>,
        dirs: BTreeSet<PathBuf>,
    }

    /// What came since it was last asked.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Heard {
        Nothing,
        /// Something in files.
        Something,
        /// Directories came, went or moved, or not everything was heard: what is listened to is not certain any more.
        TooMuch,
    }

    impl Watching {
        pub fn kept_or_new<'a>(
            kept: Option<Self>,
            roots: &[PathBuf],
            dirs: impl ExactSizeIterator<Item = &'a Path>,
        ) -> Option<Self> {
            if dirs.len() > FILE_HISTORY_DIRS_HEARD_MAX || !roots.iter().all(|root| is_on_this_machine(root))
            {
                return None;
            }
            let mut kept = kept.filter(|kept| kept.roots == roots);
            if let Some(watching) = &mut kept
                && watching.listen() == Heard::TooMuch
            {
                kept = None;
            }
            let new = || {
                let ear = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).ok()?;
                Some(Self { ear, roots: roots.to_vec(), dirs: BTreeSet::new() })
            };
            let mut watching = kept.or_else(new)?;
            let flags = AddWatchFlags::IN_MODIFY
                | AddWatchFlags::IN_CLOSE_WRITE
                | AddWatchFlags::IN_ATTRIB
                | AddWatchFlags::IN_CREATE
                | AddWatchFlags::IN_DELETE
                | AddWatchFlags::IN_MOVE
                | AddWatchFlags::IN_DELETE_SELF
                | AddWatchFlags::IN_MOVE_SELF
                | AddWatchFlags::IN_ONLYDIR
                | AddWatchFlags::IN_DONT_FOLLOW;
            for dir in dirs {
                if !watching.dirs.contains(dir) {
                    // There may be no more room for this user: then everything is looked at, as before.
                    watching.ear.add_watch(dir, flags).ok()?;
                    watching.dirs.insert(dir.to_path_buf());
                }
            }
            Some(watching)
        }

        pub fn heard_nothing<'a>(
            &mut self,
            roots: &[PathBuf],
            mut dirs: impl Iterator<Item = &'a Path>,
        ) -> bool {
            self.roots == roots && dirs.all(|dir| self.dirs.contains(dir)) && self.listen() == Heard::Nothing
        }

        fn listen(&mut self) -> Heard {
            let unsure = AddWatchFlags::IN_IGNORED
                | AddWatchFlags::IN_Q_OVERFLOW
                | AddWatchFlags::IN_UNMOUNT
                | AddWatchFlags::IN_DELETE_SELF
                | AddWatchFlags::IN_MOVE_SELF
                | AddWatchFlags::IN_ISDIR;
            let mut heard = Heard::Nothing;
            loop {
                match self.ear.read_events() {
                    Ok(events) if events.iter().any(|event| event.mask.intersects(unsure)) => {
                        heard = Heard::TooMuch;
                    }
                    Ok(_) if heard == Heard::Nothing => heard = Heard::Something,
                    Ok(_) => {}
                    Err(Errno::EAGAIN) => return heard,
                    Err(_) => return Heard::TooMuch,
                }
            }
        }
    }
}
