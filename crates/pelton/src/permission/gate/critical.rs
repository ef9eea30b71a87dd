//! Removals nobody recovers from.

use std::path::{Path, PathBuf};

use super::super::shell::{Files, Removal};
use super::Gate;
use super::dirs::Dirs;
use crate::places::normalised;

impl Gate {
    /// What would be lost for good, in words.
    pub(super) fn critical(&self, removal: &Removal, dirs: &Dirs) -> Option<String> {
        match removal {
            Removal::UnderVariable(written) => {
                Some(format!("{written}, which is everything if the variable is empty"))
            }
            Removal::IfUnset(path) => {
                let path = normalised(Path::new(path));
                let takes_all = path.file_name().is_some_and(|name| name == "*");
                let of = if takes_all { path.parent().unwrap_or(&path) } else { &path };
                let is_top = of.parent().is_none_or(|above| above == Path::new("/")) && of.is_dir();
                is_top.then(|| format!("{}, if the variable is empty", path.display()))
            }
            Removal::Of(files) => self.critical_file(files, dirs),
            Removal::Found(files) => self
                .start_of_search(files, dirs)
                .find(|path| self.is_critical(path, dirs))
                .map(|path| shown(&path)),
            Removal::FoundSome(files) => {
                let is_wide = |path: &PathBuf| self.is_critical(path, dirs) && !self.is_inside(path);
                self.start_of_search(files, dirs).find(is_wide).map(|path| shown(&path))
            }
        }
    }

    fn start_of_search(&self, files: &Files, dirs: &Dirs) -> impl Iterator<Item = PathBuf> {
        self.paths(files, dirs).unwrap_or_default().into_iter().map(|path| normalised(&path))
    }

    fn critical_file(&self, files: &Files, dirs: &Dirs) -> Option<String> {
        let (pattern, bases) = match files {
            Files::Matching(pattern) => (pattern.as_str(), dirs.joined(pattern)),
            Files::InHome(rest) => {
                (rest.as_str(), self.base.home.iter().map(|home| home.join(rest)).collect())
            }
            // It is where people work, or above.
            Files::InRepository { rest, .. } => {
                return (rest.trim_matches(['/', '.']).is_empty()).then(|| "the repository".to_owned());
            }
            Files::Named(path) => {
                let found =
                    dirs.joined(path).into_iter().find(|path| self.is_critical(&normalised(path), dirs));
                return found.map(|path| shown(&normalised(&path)));
            }
        };
        let last = pattern.rsplit('/').find(|segment| !segment.is_empty()).unwrap_or_default();
        let takes_all =
            !last.is_empty() && last.trim_matches(['*', '.', '?']).is_empty() && last.contains('*');
        bases.into_iter().find_map(|path| {
            let path = normalised(&path);
            let parent = path.parent().unwrap_or(Path::new("/")).to_path_buf();
            let whole = takes_all && self.is_critical(&parent, dirs);
            let of_root = pattern.contains(['*', '?', '[']) && parent == Path::new("/");
            (whole || of_root || self.is_critical(&path, dirs)).then(|| shown(&path))
        })
    }

    /// Whether nobody recovers from losing this directory: the root and what is right below it, the home, the directories that
    /// are worked in, and everything above those.
    fn is_critical(&self, path: &Path, dirs: &Dirs) -> bool {
        let real = dirs.place(path).map_or_else(|| path.to_path_buf(), |place| place.real);
        [path, real.as_path()].into_iter().any(|path| {
            // Links in there lead to directories of processes, this one's too.
            let is_top =
                path.parent().is_none_or(|parent| parent == Path::new("/")) || path.starts_with("/proc");
            let holds = |dir: &PathBuf| dir.starts_with(path);
            is_top
                || self.base.home.iter().any(holds)
                || self.base.roots.iter().any(holds)
                || dirs.all.iter().any(holds)
        })
    }

    fn is_inside(&self, path: &Path) -> bool {
        self.base.roots.iter().any(|root| path.starts_with(root))
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
