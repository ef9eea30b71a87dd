//! Where the commands of a line may be run, and where links lead that it makes.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::super::judge::Touched;
use super::super::place::{Here, Place};
use super::super::shell::{Files, Look, Move, Step, Within};
use super::patterns::matching;
use super::place;
use super::repository::is_same_repository;
use crate::limits::{DIRECTORIES_JUDGED_MAX, OWN_LINKS_MAX};
use crate::places::{Follower, normalised};
use crate::repository::RepositoryPrograms;

/// The directories a command may be run in: the one the line starts in, and those that commands before it change to. Which
/// of them it is depends on what succeeds, so all of them count; behind `cd … &&` it is known, and behind a `cd` that certainly runs
/// in a line that only looks, to a directory that is there.
pub(super) struct Dirs {
    pub start: PathBuf,
    pub all: Vec<PathBuf>,
    /// All that it has been in, and may go back to.
    pub been: Vec<PathBuf>,
    /// Where those are that run only after the last change has succeeded, and in which list of `&&` they stand.
    pub sure: Option<(usize, Vec<PathBuf>)>,
    pub is_lost: bool,
    /// Names that the line itself makes links of, or carries links to: where they lead nobody knows yet.
    pub relinked: Vec<PathBuf>,
    /// Links that the line makes, and where they may lead.
    pub led: Vec<(PathBuf, PathBuf)>,
    /// It makes more of them than anybody follows.
    pub leads_anywhere: bool,
    /// Nothing in the line changes anything. Who changes something, by a redirection too, may make files of any name.
    pub all_look: bool,
    /// The line has `**` go through directories.
    pub goes_deep: bool,
    /// The line itself may make what git takes for a repository.
    pub may_make_repository: bool,
    /// Where it was when the texts began that are being run, from the outermost to the innermost.
    pub outside: Vec<Outside>,
    pub follower: Follower,
}

/// Where a line was when a text of it began to be run.
pub(super) struct Outside {
    within: Within,
    all: Vec<PathBuf>,
    been: Vec<PathBuf>,
    sure: Option<(usize, Vec<PathBuf>)>,
    is_lost: bool,
}

impl Dirs {
    pub fn place(&self, path: &Path) -> Option<Place> {
        place(path, &self.follower).ok()
    }

    /// Goes into the texts that a command stands in, and out of those that it does not.
    pub fn enter(&mut self, step: &Step) {
        let is_in = |(outside, within): &(&Outside, &Within)| outside.within == **within;
        let same = self.outside.iter().zip(&step.within).take_while(is_in).count();
        while self.outside.len() > same {
            self.leave();
        }
        for &within in &step.within[same..] {
            let known = self.sure.as_ref().filter(|(chain, _)| within.chain == Some(*chain));
            let start = known.map_or_else(|| self.all.clone(), |(_, dirs)| dirs.clone());
            self.outside.push(Outside {
                within,
                all: std::mem::replace(&mut self.all, start),
                been: self.been.clone(),
                sure: self.sure.take(),
                is_lost: self.is_lost,
            });
        }
    }

    /// Goes out of a text. What the shell of the line itself runs may have taken it elsewhere.
    fn leave(&mut self) {
        let Some(Outside { within, all, been, sure, is_lost }) = self.outside.pop() else { return };
        if !within.in_place || self.been == been && self.is_lost == is_lost {
            (self.all, self.been, self.sure, self.is_lost) = (all, been, sure, is_lost);
            return;
        }
        self.sure = None;
        let gone_to = std::mem::replace(&mut self.all, all);
        for dir in gone_to {
            if !self.all.contains(&dir) {
                self.all.push(dir);
            }
        }
    }

    /// Whether no file is called like an option where one of these patterns would find it.
    pub fn hold_no_options(&self, patterns: &[Files]) -> bool {
        patterns.iter().all(|files| match files {
            Files::Matching(pattern) => self.all.iter().all(|dir| {
                let is_option = |path: &PathBuf| {
                    let name = path.strip_prefix(dir).unwrap_or(path);
                    name.as_os_str().as_encoded_bytes().starts_with(b"-")
                };
                matching(pattern, dir, self.goes_deep).is_some_and(|found| !found.iter().any(is_option))
            }),
            _ => false,
        })
    }

    /// Whether a file of one of these names is in a directory it may be run in, or above. What is in the home is the user's own.
    pub fn hold(&self, names: &[&str], home: &[PathBuf]) -> bool {
        let is_there = |dir: &Path| names.iter().any(|name| dir.join(name).symlink_metadata().is_ok());
        let is_home = |dir: &Path| home.iter().any(|home| home == dir);
        let holds = |dir: &PathBuf| dir.ancestors().take_while(|dir| !is_home(dir)).any(is_there);
        !names.is_empty() && self.all.iter().any(holds)
    }

    /// Whether a command touches something behind a link that the line itself puts there, or finds files by a pattern after that.
    pub fn lead_elsewhere(&self, step: &Step, touched: &Touched) -> bool {
        if self.relinked.is_empty() {
            return false;
        }
        let Touched { looks_at, reads, edits, input, output, goes_to, .. } = touched;
        let named =
            looks_at.iter().flatten().chain(reads).chain(edits).chain(input).chain(output).chain(goes_to);
        let is_behind = |place: &Place| {
            self.relinked.iter().any(|link| place.given.starts_with(link) || place.real.starts_with(link))
        };
        let finds = |look: &Look| look.files.iter().any(|files| matches!(files, Files::Matching(_)));
        named.into_iter().any(is_behind) || step.look.as_ref().is_some_and(finds)
    }

    /// Adds what lies behind links that the line itself makes, to what a later command touches. What it reads there is told.
    pub fn follow_own_links(&self, touched: &mut Touched) -> Vec<Place> {
        touched.may_change_anything = self.leads_anywhere;
        if self.led.is_empty() {
            return Vec::new();
        }
        let leads_too_far = Cell::new(false);
        let behind = |places: &[Place]| -> Vec<Place> {
            let mut found: BTreeSet<PathBuf> = BTreeSet::new();
            let mut reached: Vec<PathBuf> = places.iter().map(|place| place.given.clone()).collect();
            // One link may lead to the next.
            for _ in 0..LINKS_FOLLOWED_MAX {
                let mut next = Vec::new();
                for (link, to) in &self.led {
                    for rest in reached.iter().filter_map(|path| path.strip_prefix(link).ok()) {
                        let path = normalised(&to.join(rest));
                        if found.len() >= OWN_LINKS_MAX {
                            leads_too_far.set(true);
                        } else if found.insert(path.clone()) {
                            next.push(path);
                        }
                    }
                }
                reached = next;
                if reached.is_empty() {
                    break;
                }
            }
            found.iter().filter_map(|path| self.place(path)).collect()
        };
        let read = behind(&touched.reads);
        touched.reads.extend(read.iter().cloned());
        for places in [
            &mut touched.edits,
            &mut touched.input,
            &mut touched.output,
            &mut touched.may_name,
            &mut touched.may_write,
        ] {
            let more = behind(places);
            places.extend(more);
        }
        touched.may_change_anything |= leads_too_far.get();
        read
    }

    /// Whether git may take one of these directories, or one above, for a repository although it has no `.git`: then files that
    /// anybody may have put there say what git runs.
    pub fn may_be_repositories(&self) -> bool {
        self.all.iter().any(|dir| self.may_be_repository(dir))
    }

    fn may_be_repository(&self, dir: &Path) -> bool {
        for dir in dir.ancestors() {
            let git = dir.join(".git");
            if git.is_file() || git.join(REPOSITORY_MARK).symlink_metadata().is_ok() {
                return false;
            }
            let is_there = |name: &str| dir.join(name).symlink_metadata().is_ok();
            if is_there(REPOSITORY_MARK) && (is_there("objects") || is_there("commondir")) {
                return true;
            }
            if self.may_make_repository {
                return true;
            }
        }
        false
    }

    /// The same of directories below the working ones that git is told to work in. What is in a `.git` nobody puts there unasked.
    pub fn name_repositories(&self, named: &[Files], here: &Here) -> bool {
        let paths = named.iter().filter_map(|files| match files {
            Files::Named(path) => Some(path),
            _ => None,
        });
        let places = paths.flat_map(|path| self.joined(path)).filter_map(|path| self.place(&path));
        let is_kept = |place: &Place| place.real.iter().any(|name| name == ".git");
        places
            .filter(|place| here.contains(place) && !is_kept(place))
            .any(|place| self.may_be_repository(&place.real))
    }

    /// What a repository in one of these directories, or above, has git run though it is only to look.
    pub fn run_by_git(&self) -> Option<String> {
        self.all.iter().find_map(|dir| RepositoryPrograms::around(dir).first().map(str::to_owned))
    }

    /// Whether git does the same in all of these directories as where the session is, when the line makes no other repository.
    pub fn are_in_same_repository(&self, here: &Here) -> bool {
        let is_same = |dir: &PathBuf| self.place(dir).is_some_and(|dir| is_same_repository(&dir.real, here));
        self.all_look && !self.is_lost && self.all.iter().all(is_same)
    }

    pub fn joined(&self, path: &str) -> Vec<PathBuf> {
        match path.starts_with('/') {
            true => vec![PathBuf::from(path)],
            false => self.all.iter().map(|dir| dir.join(path)).collect(),
        }
    }

    /// The directories that are left for a command which runs only after others have succeeded.
    pub fn known_to(&self, step: &Step) -> Option<Vec<PathBuf>> {
        let (chain, dirs) = self.sure.as_ref()?;
        (step.chain == Some(*chain)).then(|| dirs.clone())
    }

    /// Notes where a command has gone, certainly or if it has succeeded.
    pub fn go(&mut self, step: &Step, gone_to: Vec<PathBuf>, certainly: bool) {
        match &step.moves {
            Some(Move::To(_)) => {
                // Who goes in a pipeline goes alone, and a loop or a group inside a list has a list of its own.
                let chain = step.chain.filter(|_| step.stands_alone && !gone_to.is_empty());
                self.sure = chain.map(|chain| (chain, gone_to.clone()));
                if certainly && !gone_to.is_empty() {
                    self.all.clear();
                }
                for dir in gone_to {
                    for known in [&mut self.all, &mut self.been] {
                        if !known.contains(&dir) {
                            known.push(dir.clone());
                        }
                    }
                }
                if self.been.len() > DIRECTORIES_JUDGED_MAX {
                    self.all.truncate(DIRECTORIES_JUDGED_MAX);
                    self.been.truncate(DIRECTORIES_JUDGED_MAX);
                    self.is_lost = true;
                    self.sure = None;
                }
            }
            // One of those that are known already.
            Some(Move::Back) => {
                self.sure = None;
                self.all.clone_from(&self.been);
            }
            Some(Move::Somewhere) => {
                self.is_lost = true;
                self.sure = None;
            }
            None => {}
        }
    }

    /// Whether it may be in another directory than the current one.
    pub fn changed(&self, here: &Here) -> bool {
        self.is_lost || self.all.iter().any(|dir| *dir != self.start && !is_current(dir, here))
    }
}

/// Links to a source of these paths, each with where it may lead.
pub(super) fn links_to(source: &Files, paths: &[PathBuf], links: &[Place]) -> Vec<(PathBuf, PathBuf)> {
    let mut led = Vec::new();
    for link in links {
        let beside = match (source, link.given.parent()) {
            (Files::Named(path), Some(dir)) => Some(dir.join(path)),
            _ => None,
        };
        for to in paths.iter().chain(beside.iter().filter(|beside| !paths.contains(beside))) {
            led.push((link.given.clone(), to.clone()));
            if link.real != link.given {
                led.push((link.real.clone(), to.clone()));
            }
        }
    }
    led
}

/// How many links the system follows on one way.
const LINKS_FOLLOWED_MAX: usize = 40;

/// The file by which git knows a repository.
pub(super) const REPOSITORY_MARK: &str = "HEAD";

/// Whether a directory is there, and this user may go into it.
pub(super) fn may_be_entered(dir: &Path) -> bool {
    dir.is_dir() && nix::unistd::access(dir, nix::unistd::AccessFlags::X_OK).is_ok()
}

/// Whether this is the directory the session is in, or the one it started in.
pub(super) fn is_current(dir: &Path, here: &Here) -> bool {
    here.cwd.iter().chain(&here.base.start).any(|known| known == dir)
}
