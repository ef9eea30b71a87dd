//! What no mount can hold is compared: protected names before a command and after it. What appeared is moved aside under
//! another name, what was changed is put back. Nothing is thrown away: a command may have moved something of value there.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::ghosts::is_ghost;
use crate::limits::{
    ASIDE_NAMES_MAX, DIRECTORY_ENTRIES_MAX, KEPT_BYTES_MAX, KEPT_ENTRIES_MAX, KEPT_FILE_BYTES_MAX,
};
use crate::nested::nested;
use crate::plan::{Names, Place, Plan};
use crate::policy::Disk;

/// Something protected that a command has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tampering {
    /// Which name.
    pub path: PathBuf,
    /// What was done to it.
    pub what: Change,
    /// Whether it is as it was again. What stands in its way otherwise.
    pub undone: Result<(), String>,
    /// Where that is now which was found in its place.
    pub aside: Option<PathBuf>,
}

/// What was done to a protected name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It was not there before.
    Created,
    /// It is another now.
    Changed,
    /// It is gone.
    Removed,
}

/// How the protected names were before a command.
#[derive(Debug)]
pub(crate) struct Before {
    places: Vec<Place>,
    /// Directories that are looked through.
    tops: Vec<PathBuf>,
    things: BTreeMap<PathBuf, Thing>,
    /// The directories they are in.
    parents: BTreeMap<PathBuf, u64>,
    depth: Depth,
}

/// How closely is looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Mounts hold what is there: what counts are names, links, and whether a directory above was exchanged.
    Names,
    /// Nothing else holds: contents count, and what is below.
    Contents,
}

/// What was there.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Thing {
    Directory {
        mode: u32,
        inode: u64,
    },
    Link(PathBuf),
    /// A file; its content if it is small enough to be kept.
    File {
        mode: u32,
        stamp: Stamp,
        content: Option<Vec<u8>>,
    },
    /// Too much to be looked at, or not readable.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Before {
    pub fn look(plan: &Plan, depth: Depth) -> Self {
        let mut looker = Looker { things: BTreeMap::new(), bytes_left: KEPT_BYTES_MAX, depth };
        for path in plan.kept.iter().chain(&plan.deeper).chain(&names_in(&plan.places)) {
            // Ghosts come and go with us.
            if !plan.ghosts.iter().any(|ghost| ghost.path == *path) {
                looker.look(path);
            }
        }
        let parents = looker.things.keys().filter_map(|path| path.parent());
        let parents = parents.filter_map(|dir| Some((dir.to_path_buf(), inode(dir)?))).collect();
        let (places, tops) = (plan.places.clone(), plan.looked_through.clone());
        Self { places, tops, things: looker.things, parents, depth }
    }

    /// Finds what is different now, and undoes it.
    pub fn undo(&self) -> Vec<Tampering> {
        let mut found = Vec::new();
        let deeper = self.tops.iter().map(|top| nested(top, &Disk)).filter(|nested| nested.is_all);
        let deeper = deeper.flat_map(|nested| nested.found);
        for path in names_in(&self.places).into_iter().chain(deeper) {
            if !self.things.contains_key(&path) && !is_ghost(&path) {
                let moved = self.move_aside(&path);
                found.push(tampered(&path, Change::Created, moved.map(Some)));
            }
        }
        for (path, thing) in &self.things {
            found.extend(self.compare(path, thing));
        }
        if self.depth == Depth::Contents {
            let directories =
                self.things.iter().filter(|(_, thing)| matches!(thing, Thing::Directory { .. }));
            for path in directories.flat_map(|(dir, _)| entries(dir)) {
                let known = self.things.contains_key(&path) || found.iter().any(|known| known.path == path);
                if !known && !self.is_free(&path) {
                    let moved = self.move_aside(&path);
                    found.push(tampered(&path, Change::Created, moved.map(Some)));
                }
            }
        }
        found
    }

    /// Inside a repository only the names that steer it are protected, and of the configuration not the worktrees.
    fn is_free(&self, path: &Path) -> bool {
        self.places.iter().any(|place| path.parent() == Some(&place.dir)) || is_free_part(path)
    }

    fn compare(&self, path: &Path, before: &Thing) -> Option<Tampering> {
        let is_held = self.depth == Depth::Names && !matches!(before, Thing::Link(_));
        let parent = path.parent().and_then(|dir| Some((inode(dir)?, *self.parents.get(dir)?)));
        if is_held && parent.is_some_and(|(now, then)| now == then) {
            return None;
        }
        let now = fs::symlink_metadata(path).ok();
        let change = if now.is_some() { Change::Changed } else { Change::Removed };
        match before {
            Thing::Unknown => None,
            Thing::Directory { mode, inode } => {
                let is_same = |now: &fs::Metadata| now.is_dir() && (!is_held || now.ino() == *inode);
                if now.as_ref().is_some_and(is_same) {
                    return None;
                }
                let put_back = || {
                    fs::create_dir_all(path)?;
                    fs::set_permissions(path, Permissions::from_mode(*mode))
                };
                Some(self.replaced(path, change, now.is_some(), put_back))
            }
            Thing::Link(target) => {
                if fs::read_link(path).is_ok_and(|now| now == *target) {
                    return None;
                }
                Some(self.replaced(path, change, now.is_some(), || symlink(target, path)))
            }
            Thing::File { mode, stamp, content } => {
                let is_same = now.as_ref().is_some_and(|now| now.is_file() && Stamp::of(now) == *stamp)
                    // Written anew with the same words: nothing has happened.
                    || now.as_ref().is_some_and(fs::Metadata::is_file)
                        && content.is_some()
                        && now.as_ref().is_some_and(|now| now.mode() & 0o7777 == *mode)
                        && read_small(path) == *content;
                if is_same {
                    return None;
                }
                let put_back = || match content {
                    None => Err(io::Error::other("it was too large to be kept")),
                    Some(content) => {
                        if let Some(dir) = path.parent() {
                            fs::create_dir_all(dir)?;
                        }
                        let mut file = File::options().write(true).create_new(true).open(path)?;
                        file.write_all(content)?;
                        file.set_permissions(Permissions::from_mode(*mode))
                    }
                };
                Some(self.replaced(path, change, now.is_some(), put_back))
            }
        }
    }

    /// Clears the place and fills it again.
    fn replaced(
        &self,
        path: &Path,
        what: Change,
        is_taken: bool,
        put_back: impl FnOnce() -> io::Result<()>,
    ) -> Tampering {
        let aside = if is_taken { self.move_aside(path).map(Some) } else { Ok(None) };
        let done = aside.and_then(|aside| {
            put_back()?;
            Ok(aside)
        });
        tampered(path, what, done)
    }

    /// The same thing where it steers nothing: beside the protected names, under a name made of its whole path.
    fn move_aside(&self, path: &Path) -> io::Result<PathBuf> {
        let projects = self.places.iter().filter(|place| place.names == Names::Project);
        let around = projects.map(|place| place.dir.as_path()).filter(|dir| path.starts_with(dir));
        let dir = around.max_by_key(|dir| dir.components().count()).or(path.parent()).unwrap_or(path);
        let parts = path.strip_prefix(dir).unwrap_or(path).components();
        let parts = parts.map(|part| part.as_os_str().to_string_lossy().trim_start_matches('.').to_owned());
        let name = format!("undone.{}", parts.collect::<Vec<_>>().join("."));
        for number in 0..ASIDE_NAMES_MAX {
            let name = if number == 0 { name.clone() } else { format!("{name}.{number}") };
            let aside = dir.join(name);
            if fs::symlink_metadata(&aside).is_err() {
                fs::rename(path, &aside)?;
                return Ok(aside);
            }
        }
        Err(io::Error::other("there are too many things moved aside already"))
    }
}

struct Looker {
    things: BTreeMap<PathBuf, Thing>,
    bytes_left: u64,
    depth: Depth,
}

impl Looker {
    fn look(&mut self, path: &Path) {
        let Ok(about) = fs::symlink_metadata(path) else { return };
        let mode = about.mode() & 0o7777;
        if self.things.contains_key(path) {
            return;
        }
        let thing = if self.things.len() >= KEPT_ENTRIES_MAX {
            Thing::Unknown
        } else if about.is_symlink() {
            fs::read_link(path).map_or(Thing::Unknown, Thing::Link)
        } else if about.is_dir() {
            Thing::Directory { mode, inode: about.ino() }
        } else if about.is_file() {
            let content = if about.len() <= self.bytes_left { read_small(path) } else { None };
            self.bytes_left -=
                content.as_ref().map_or(0, |content| content.len() as u64).min(self.bytes_left);
            Thing::File { mode, stamp: Stamp::of(&about), content }
        } else {
            Thing::Unknown
        };
        let goes_down = matches!(thing, Thing::Directory { .. })
            && self.depth == Depth::Contents
            && !path.ends_with(crate::protected::REPOSITORY);
        self.things.insert(path.to_path_buf(), thing);
        if goes_down {
            for inner in entries(path).into_iter().filter(|inner| !is_free_part(inner)) {
                self.look(&inner);
            }
        }
    }
}

impl Stamp {
    fn of(about: &fs::Metadata) -> Self {
        Self { inode: about.ino(), size: about.len(), changed: (about.ctime(), about.ctime_nsec()) }
    }
}

fn inode(dir: &Path) -> Option<u64> {
    fs::symlink_metadata(dir).ok().map(|about| about.ino())
}

fn names_in(places: &[Place]) -> Vec<PathBuf> {
    let protected = |place: &Place| {
        let names = entries(&place.dir).into_iter();
        let protected = names.filter(|path| path.file_name().is_some_and(|name| place.names.hold(name)));
        protected.collect::<Vec<_>>()
    };
    places.iter().flat_map(protected).collect()
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().take(DIRECTORY_ENTRIES_MAX);
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn is_free_part(path: &Path) -> bool {
    use crate::protected::{CONFIGURATION, CONFIGURATION_FREE};
    path.file_name().is_some_and(|name| name == CONFIGURATION_FREE)
        && path.parent().is_some_and(|dir| dir.ends_with(CONFIGURATION))
}

fn read_small(path: &Path) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    let file = File::open(path).ok()?;
    file.take(KEPT_FILE_BYTES_MAX + 1).read_to_end(&mut content).ok()?;
    (content.len() as u64 <= KEPT_FILE_BYTES_MAX).then_some(content)
}

fn tampered(path: &Path, what: Change, done: io::Result<Option<PathBuf>>) -> Tampering {
    let (undone, aside) = match done {
        Ok(aside) => (Ok(()), aside),
        Err(error) => (Err(error.to_string()), None),
    };
    Tampering { path: path.to_path_buf(), what, undone, aside }
}
