//! From what is wanted and what is there to what is done: mounts for the strong forms, and places to be watched for what
//! no mount can hold. Pure: it looks at the disk through [`Look`] and changes nothing.

use std::path::{Path, PathBuf};

use crate::limits::MOUNTS_MAX;
use crate::nested::{Nested, nested};
use crate::policy::{Found, Look, Network, Policy};
use crate::protected::{
    self, Absent, CONFIGURATION, CONFIGURATION_FREE, IN_REPOSITORY, Kind, NAMES, Name, REPOSITORY,
};

/// What the box of one command is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// In the order they are made: what is inside comes after what is around it.
    pub mounts: Vec<Mount>,
    /// Empty things that have to stand where nothing is, so that something can be mounted there.
    pub ghosts: Vec<Ghost>,
    /// Directories in which no protected name may appear.
    pub places: Vec<Place>,
    /// Directories in and below which no protected name may appear.
    pub deep: Vec<PathBuf>,
    /// Protected names that are there, below them.
    pub deeper: Vec<PathBuf>,
    /// Those of the directories that can be looked through when the command has ended.
    pub looked_through: Vec<PathBuf>,
    /// What is protected and there: held by mounts, or compared afterwards where there are none.
    pub kept: Vec<PathBuf>,
    /// The whole disk may be written, and nothing on it is looked after.
    pub open_disk: bool,
    /// What can be reached.
    pub network: Network,
    /// Whether sockets on the file system may be used.
    pub unix_sockets: bool,
}

/// One path that differs from the rest, which may be read and not written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mount {
    /// Where; without links.
    pub path: PathBuf,
    /// How.
    pub how: How,
}

/// How a path differs. Of two for one path the later one here counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// It may be written.
    Writable,
    /// It may be read and not written.
    ReadOnly,
    /// It may not be read.
    Hidden(Hides),
}

/// What is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hides {
    /// A directory and all below.
    Directory,
    /// One file.
    File,
}

/// Something empty that stands for a name while commands run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ghost {
    /// Where.
    pub path: PathBuf,
    /// A directory is one; in the place of a file stands something that no program can open and git does not see.
    pub is_directory: bool,
}

/// A directory whose names are watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Which.
    pub dir: PathBuf,
    /// Which names in it.
    pub names: Names,
}

/// Which names are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// Those of files and directories in a project.
    Project,
    /// Those in a repository.
    Repository,
}

impl Names {
    /// Whether a name is one of them.
    pub fn hold(self, name: &std::ffi::OsStr) -> bool {
        match self {
            Self::Project => protected::find(name).is_some(),
            Self::Repository => protected::find_in_repository(name).is_some(),
        }
    }
}

/// There would be more mounts than [`MOUNTS_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMuch;

impl Plan {
    /// `cwd` is where the command starts: names are protected there as at the top of what may be written.
    pub fn new(policy: &Policy, cwd: &Path, look: &impl Look) -> Result<Self, TooMuch> {
        if policy.open_disk {
            let Policy { network, unix_sockets, .. } = policy.clone();
            return Ok(Self { open_disk: true, network, unix_sockets, ..Self::default() });
        }
        let mut planner = Planner {
            look,
            home: policy.home.as_deref().and_then(|home| look.real(home)),
            plan: Self::default(),
        };
        planner.plan.network.clone_from(&policy.network);
        planner.plan.unix_sockets = policy.unix_sockets;
        let roots: Vec<PathBuf> = policy.writable.iter().filter_map(|path| look.real(path)).collect();
        // The whole disk is no place to work in.
        let roots: Vec<PathBuf> = roots.into_iter().filter(|root| root != Path::new("/")).collect();
        for root in &roots {
            planner.mount(root.clone(), How::Writable);
        }
        let inside = |path: &Path| roots.iter().any(|root| path.starts_with(root));
        let tops = roots.iter().cloned().chain(look.real(cwd).filter(|cwd| inside(cwd)));
        let mut tops: Vec<PathBuf> = tops.filter(|top| look.at(top) == Some(Found::Directory)).collect();
        tops.sort();
        tops.dedup();
        for top in &tops {
            planner.protect_names_in(top, &inside);
        }
        for top in policy.worked_in.iter().filter_map(|path| look.real(path)).filter(|path| inside(path)) {
            let Nested { found, is_all } = nested(&top, look);
            for path in &found {
                if let Some(name) = path.file_name().and_then(protected::find) {
                    planner.protect(path, name, &inside);
                }
            }
            planner.plan.deeper.extend(found);
            planner.plan.looked_through.extend(is_all.then(|| top.clone()));
            planner.plan.deep.push(top);
        }
        for path in &policy.deny_write {
            planner.deny_write(path, &inside);
        }
        for path in &policy.deny_read {
            let Some(real) = look.real(path) else { continue };
            let hides = match look.at(&real) {
                Some(Found::Directory) => Hides::Directory,
                _ => Hides::File,
            };
            planner.mount(real, How::Hidden(hides));
        }
        let hidden: Vec<PathBuf> = planner.hidden();
        for path in policy.allow_read.iter().filter_map(|path| look.real(path)) {
            if hidden.iter().any(|hidden| path != *hidden && path.starts_with(hidden)) {
                // What may be written stays so.
                let how = if inside(&path) { How::Writable } else { How::ReadOnly };
                planner.mount(path, how);
            }
        }
        planner.finish()
    }

    /// Where something differs in this way.
    pub fn paths(&self, how: fn(How) -> bool) -> impl Iterator<Item = &Path> {
        self.mounts.iter().filter(move |mount| how(mount.how)).map(|mount| mount.path.as_path())
    }
}

struct Planner<'a, L> {
    look: &'a L,
    home: Option<PathBuf>,
    plan: Plan,
}

impl<L: Look> Planner<'_, L> {
    fn mount(&mut self, path: PathBuf, how: How) {
        self.plan.mounts.push(Mount { path, how });
    }

    fn hidden(&self) -> Vec<PathBuf> {
        self.plan.paths(|how| matches!(how, How::Hidden(_))).map(Path::to_path_buf).collect()
    }

    /// Every protected name directly in a directory, there or not.
    fn protect_names_in(&mut self, top: &Path, inside: &impl Fn(&Path) -> bool) {
        self.plan.places.push(Place { dir: top.to_path_buf(), names: Names::Project });
        let present = self.look.names(top);
        for name in &present {
            if let Some(rule) = protected::find(name) {
                self.protect(&top.join(name), rule, inside);
            }
        }
        let is_home = self.home.as_deref() == Some(top);
        for rule in NAMES {
            self.mask_if_absent(top, rule, is_home);
        }
        // `.config/git` steers git as well; of `.config` itself much is written by anybody.
        let git = top.join(".config/git");
        if self.look.at(&git).is_some() {
            self.keep(&git, inside);
        }
    }

    fn mask_if_absent(&mut self, dir: &Path, rule: &Name, is_home: bool) {
        let masked = match rule.absent {
            Absent::Masked => true,
            Absent::MaskedAtHome => is_home,
            Absent::Watched => false,
        };
        let Some(name) = rule.single().filter(|_| masked) else { return };
        let path = dir.join(name);
        if self.look.at(&path).is_none() {
            self.ghost(path, rule.kind == Kind::Directory);
        }
    }

    fn ghost(&mut self, path: PathBuf, is_directory: bool) {
        self.mount(path.clone(), How::ReadOnly);
        self.plan.ghosts.push(Ghost { path, is_directory });
    }

    /// One protected name that is there.
    fn protect(&mut self, path: &Path, rule: &Name, inside: &impl Fn(&Path) -> bool) {
        let is_directory = self.look.at(path) == Some(Found::Directory);
        if rule.name == REPOSITORY && is_directory {
            return self.protect_repository(path, inside);
        }
        self.keep(path, inside);
        if rule.name == CONFIGURATION && is_directory {
            let free = path.join(CONFIGURATION_FREE);
            if self.look.at(&free) == Some(Found::Directory) {
                self.mount(free, How::Writable);
            }
        }
    }

    /// What is there stays as it is.
    fn keep(&mut self, path: &Path, inside: &impl Fn(&Path) -> bool) {
        self.plan.kept.push(path.to_path_buf());
        match self.look.at(path) {
            None => {}
            // Nothing can be mounted on a link: it is looked at afterwards. Where it leads stays as it is.
            Some(Found::Link) => {
                if let Some(real) = self.look.real(path).filter(|real| inside(real)) {
                    self.mount(real, How::ReadOnly);
                }
            }
            Some(Found::Directory | Found::File) => self.mount(path.to_path_buf(), How::ReadOnly),
        }
    }

    /// Commits change most of a repository, but not what it runs. The directory is mounted on itself: so it can be
    /// neither moved away nor replaced.
    fn protect_repository(&mut self, git: &Path, inside: &impl Fn(&Path) -> bool) {
        self.mount(git.to_path_buf(), How::Writable);
        self.steering_files(git, inside);
        for store in ["modules", "worktrees"] {
            let store = git.join(store);
            for name in self.look.names(&store) {
                let one = store.join(name);
                if self.look.at(&one) == Some(Found::Directory) {
                    self.steering_files(&one, inside);
                }
            }
        }
    }

    fn steering_files(&mut self, git: &Path, inside: &impl Fn(&Path) -> bool) {
        self.plan.places.push(Place { dir: git.to_path_buf(), names: Names::Repository });
        for name in self.look.names(git) {
            if protected::find_in_repository(&name).is_some() {
                self.keep(&git.join(name), inside);
            }
        }
        // A repository of git has a configuration; what has none is not masked into one.
        if self.look.at(&git.join("HEAD")).is_some() && git.ends_with(REPOSITORY) {
            for rule in IN_REPOSITORY {
                self.mask_if_absent(git, rule, false);
            }
        }
    }

    fn deny_write(&mut self, path: &Path, inside: &impl Fn(&Path) -> bool) {
        if let Some(real) = self.look.real(path) {
            if inside(&real) {
                self.plan.kept.push(real.clone());
                self.mount(real, How::ReadOnly);
            }
            return;
        }
        // The first part of it that is missing must not be made.
        let Some((missing, parent)) = self.first_missing(path) else { return };
        if inside(&parent) {
            let is_directory = missing != path || path.as_os_str().to_string_lossy().ends_with('/');
            let name = missing.file_name().map(ToOwned::to_owned).unwrap_or_default();
            self.ghost(parent.join(name), is_directory);
        }
    }

    /// The first part of a path that is not there, and the real directory around it.
    fn first_missing(&self, path: &Path) -> Option<(PathBuf, PathBuf)> {
        path.ancestors().find_map(|part| {
            let parent = self.look.real(part.parent()?)?;
            Some((part.to_path_buf(), parent))
        })
    }

    fn finish(mut self) -> Result<Plan, TooMuch> {
        let hidden = self.hidden();
        // What cannot be seen needs no protection.
        let unseen =
            |path: &Path, how: How| how == How::ReadOnly && hidden.iter().any(|hidden| path == hidden);
        self.plan.mounts.retain(|mount| !unseen(&mount.path, mount.how));
        let depth = |path: &Path| path.components().count();
        self.plan
            .mounts
            .sort_by(|a, b| (depth(&a.path), &a.path, a.how).cmp(&(depth(&b.path), &b.path, b.how)));
        // Of several for one path the strictest counts: it is the last.
        self.plan.mounts.reverse();
        self.plan.mounts.dedup_by(|later, kept| later.path == kept.path);
        self.plan.mounts.reverse();
        self.plan.kept.sort();
        self.plan.kept.dedup();
        if self.plan.mounts.len() > MOUNTS_MAX { Err(TooMuch) } else { Ok(self.plan) }
    }
}

#[cfg(test)]
mod tests;
