//! What a repository's own settings have git run though it is only asked to look: monitors, filters, programs that compare, hooks.
//! Read without running git. A clone brings none of them, but a directory that was unpacked or shared may.

mod config; // what it is told by its settings
pub(crate) mod index; // what it knew of each file

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use self::config::Entry;
use self::index::read_index;
use crate::limits::{
    GIT_CONFIG_BYTES_MAX, GIT_INCLUDES_MAX, GIT_INDEX_BYTES_MAX, GIT_REPOSITORIES_INSIDE_MAX,
};

/// Called by commands that look, when they have found files as they were and note that in the index.
const HOOK_OF_LOOKING: &str = "post-index-change";
/// How an entry of the index begins its mode if it is a repository of its own.
const REPOSITORY_MODE: [u8; 4] = [0, 0, 0xE0, 0];
/// What `git lfs install --local` writes: a program of the machine, not of the directory.
const LFS: [&str; 5] = [
    "git-lfs clean -- %f",
    "git-lfs smudge -- %f",
    "git-lfs smudge --skip -- %f",
    "git-lfs filter-process",
    "git-lfs filter-process --skip",
];

/// What a repository, and those checked out inside of it, have git run though it is only asked to look.
///
/// ```
/// use pelton::process::RepositoryPrograms;
///
/// # let dir = tempfile::tempdir()?;
/// # let git = dir.path().join(".git");
/// # std::fs::create_dir(&git)?;
/// # std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n")?;
/// std::fs::write(git.join("config"), "[filter \"x\"]\n\tclean = ./evil\n")?;
/// let programs = RepositoryPrograms::around(dir.path());
/// assert_eq!(programs.first(), Some("filter.x.clean"));
/// assert_eq!(programs.without_filters().unwrap()[1], "filter.x.clean=");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepositoryPrograms {
    /// The settings that name them.
    named: BTreeSet<String>,
    /// The filters among them.
    filters: BTreeSet<String>,
    /// Why there may be more than are named.
    unclear: Option<String>,
}

impl RepositoryPrograms {
    /// Those of the repository at or above a directory.
    pub fn around(dir: &Path) -> Self {
        let mut found = Self::default();
        let mut left = GIT_REPOSITORIES_INSIDE_MAX;
        if let Some((top, git_dir)) = dir.ancestors().find_map(|dir| Some((dir, git_dir_of(dir)?))) {
            found.of_repository(top, &git_dir, &mut left);
        }
        found
    }

    /// One of the settings that name a program, or why there may be some.
    pub fn first(&self) -> Option<&str> {
        self.named.first().or(self.unclear.as_ref()).map(String::as_str)
    }

    /// What git is told so that it runs none of the filters; `None` if there may be some that are not known.
    pub fn without_filters(&self) -> Option<Vec<String>> {
        if self.unclear.is_some() || self.filters.iter().any(|name| name.contains(['=', '\n'])) {
            return None;
        }
        let mut told = Vec::new();
        for name in &self.filters {
            for setting in ["clean=", "smudge=", "process=", "required=false"] {
                told.extend(["-c".to_owned(), format!("filter.{name}.{setting}")]);
            }
        }
        Some(told)
    }

    fn of_repository(&mut self, top: &Path, git_dir: &Path, left: &mut usize) {
        if *left == 0 {
            self.unclear = Some("more repositories inside of it than are looked into".to_owned());
            return;
        }
        *left -= 1;
        let common = common_dir(git_dir);
        let mut settings = Vec::new();
        let mut files = GIT_INCLUDES_MAX;
        for file in [common.join("config"), git_dir.join("config.worktree")] {
            self.read(&file, &mut files, &mut settings);
        }
        self.judge(&settings, top, git_dir);
        let named = settings.iter().rev().find(|entry| entry.key == "core.hookspath");
        // What is in the home is the user's own.
        let hooks = match named {
            Some(entry) if entry.value.starts_with('~') => None,
            Some(entry) => Some(top.join(&entry.value)),
            None => Some(common.join("hooks")),
        };
        if hooks.is_some_and(|hooks| hooks.join(HOOK_OF_LOOKING).symlink_metadata().is_ok()) {
            self.named.insert(format!("the hook {HOOK_OF_LOOKING}"));
        }
        self.of_those_inside(top, git_dir, left);
    }

    /// The entries of a file and of those it includes, in their order.
    fn read(&mut self, file: &Path, files: &mut usize, settings: &mut Vec<Entry>) {
        let Ok(opened) = fs::File::open(file) else { return };
        let mut bytes = Vec::new();
        let is_whole = opened.take(GIT_CONFIG_BYTES_MAX + 1).read_to_end(&mut bytes).is_ok()
            && bytes.len() as u64 <= GIT_CONFIG_BYTES_MAX;
        let entries = config::read(&String::from_utf8_lossy(&bytes)).filter(|_| is_whole && *files > 0);
        let Some(entries) = entries else {
            self.unclear = Some("settings that cannot be read".to_owned());
            return;
        };
        *files -= 1;
        for entry in entries {
            let includes = entry.key == "include.path"
                || entry.key.starts_with("includeif.") && entry.key.ends_with(".path");
            if includes && entry.value.starts_with('~') {
                self.unclear = Some(format!("settings that are included ({})", entry.value));
            } else if includes {
                let beside = file.parent().unwrap_or(file).join(&entry.value);
                self.read(&beside, files, settings);
            } else {
                settings.push(entry);
            }
        }
    }

    fn judge(&mut self, settings: &[Entry], top: &Path, git_dir: &Path) {
        // What is missing of a partial clone is fetched while git looks.
        let is_partial = settings.iter().any(|Entry { key, value }| {
            key == "extensions.partialclone" || key.ends_with(".promisor") && !config::is_no(value)
        });
        for Entry { key, value } in settings {
            let (section, rest) = key.split_once('.').unwrap_or((key, ""));
            let (subsection, name) = rest.rsplit_once('.').unwrap_or(("", rest));
            let runs = match (section, name) {
                ("core", "fsmonitor") => !config::is_no(value) && !config::is_yes(value),
                ("core", "alternaterefscommand") | ("diff", "external" | "command") | ("gpg", "program") => {
                    true
                }
                // Its files may be anywhere.
                ("core", "worktree") => !is_same_directory(&git_dir.join(value), top),
                ("diff", "textconv") => value != "cat",
                ("filter", "clean" | "smudge" | "process") => {
                    let runs = !value.is_empty() && !LFS.contains(&value.as_str());
                    if runs {
                        self.filters.insert(subsection.to_owned());
                    }
                    runs
                }
                ("core", "sshcommand" | "gitproxy" | "askpass")
                | ("remote", "uploadpack" | "vcs")
                | ("credential", "helper")
                | ("protocol", _) => is_partial,
                ("remote", "url") => is_partial && value.contains("::"),
                _ => false,
            };
            if runs {
                self.named.insert(key.clone());
            }
        }
    }

    /// Git looks into repositories that are checked out inside, by their own settings.
    fn of_those_inside(&mut self, top: &Path, git_dir: &Path, left: &mut usize) {
        let is_split = fs::read_dir(git_dir).into_iter().flatten().flatten();
        let mut is_split = is_split.map(|entry| entry.file_name());
        if is_split.any(|name| name.as_encoded_bytes().starts_with(b"sharedindex.")) {
            self.unclear = Some("an index in several files".to_owned());
            return;
        }
        let Some(bytes) = index_file(&git_dir.join("index")) else {
            self.unclear = Some("an index that is too large".to_owned());
            return;
        };
        // Most have none: then their entries need not be read.
        if memchr::memmem::find(&bytes, &REPOSITORY_MODE).is_none() {
            return;
        }
        let Some(entries) = read_index(&bytes) else {
            self.unclear = Some("an index that cannot be read".to_owned());
            return;
        };
        for entry in entries.iter().filter(|entry| entry.mode == u32::from_be_bytes(REPOSITORY_MODE)) {
            let inside = top.join(String::from_utf8_lossy(&entry.path).as_ref());
            if let Some(git_dir) = git_dir_of(&inside) {
                self.of_repository(&inside, &git_dir, left);
            }
        }
    }
}

/// Where a git directory has what worktrees share with the repository they belong to.
pub(crate) fn common_dir(git_dir: &Path) -> PathBuf {
    match fs::read_to_string(git_dir.join("commondir")) {
        Ok(common) => git_dir.join(common.trim()),
        Err(_) => git_dir.to_path_buf(),
    }
}

/// The index of a checkout. `None` if it cannot be read.
pub(crate) fn index_file(file: &Path) -> Option<Vec<u8>> {
    match fs::metadata(file) {
        Ok(about) if about.len() > GIT_INDEX_BYTES_MAX => None,
        Ok(_) => fs::read(file).ok(),
        // A repository without a commit has none.
        Err(_) => Some(index::EMPTY.to_vec()),
    }
}

/// What a directory has that git takes for its repository.
fn git_dir_of(dir: &Path) -> Option<PathBuf> {
    let git = dir.join(".git");
    match fs::metadata(&git).ok()?.is_dir() {
        true => Some(git),
        // In a worktree or submodule it is a file that names the real directory.
        false => Some(dir.join(fs::read_to_string(&git).ok()?.strip_prefix("gitdir:")?.trim())),
    }
}

fn is_same_directory(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn git(dir: &Path, words: &[&str]) {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=n", "-c", "user.email=e", "-c", "protocol.file.allow=always"]);
        let ran = git.args(words).current_dir(dir).stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(ran.unwrap().success(), "{words:?}");
    }

    fn repository() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "-q"]);
        dir
    }

    #[test]
    fn what_git_runs_while_it_looks_is_named_and_what_it_runs_at_other_times_is_not() {
        let common = "[core]\n\tbare = false\n\tpager = less\n\teditor = vi\n[alias]\n\tst = !touch x\n[user]\n\tname = n\n";
        for (text, expected) in [
            ("", None),
            ("[core]\n\tfsmonitor = ./evil\n", Some("core.fsmonitor")),
            ("[CORE] FSMonitor = \"touch x\" # or so\n", Some("core.fsmonitor")),
            ("[core]\n\tfsmonitor = \\\n ./evil\n", Some("core.fsmonitor")),
            ("[core]\n\tfsmonitor\n", None),
            ("[core]\n\tfsmonitor = false\n", None),
            ("[filter \"a.b\"]\n\tprocess = x\n", Some("filter.a.b.process")),
            ("[filter.a]\n\tsmudge = x\n", Some("filter.a.smudge")),
            ("[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tprocess = git-lfs filter-process\n", None),
            ("[filter \"lfs\"]\n\tclean = \"git-lfs clean -- %f; x\"\n", Some("filter.lfs.clean")),
            ("[diff]\n\texternal = x\n", Some("diff.external")),
            ("[diff \"x\"]\n\ttextconv = x\n", Some("diff.x.textconv")),
            ("[gpg \"ssh\"]\n\tprogram = x\n", Some("gpg.ssh.program")),
            ("[core]\n\tsshCommand = x\n", None),
            ("[core]\n\tsshCommand = x\n[remote \"o\"]\n\tpromisor = true\n", Some("core.sshcommand")),
            ("[core]\n\tworktree = /\n", Some("core.worktree")),
            ("[core]\n\tworktree = ..\n", None),
            ("[include]\n\tpath = ../more\n", Some("diff.external")),
            ("[includeIf \"gitdir:/**\"]\n\tpath = ../more\n", Some("diff.external")),
            ("[include]\n\tpath = config\n", Some("settings that cannot be read")),
            ("[core\n", Some("settings that cannot be read")),
            ("[core]\n\thooksPath = .hooks\n", Some("the hook post-index-change")),
        ] {
            let dir = repository();
            fs::write(dir.path().join("more"), "[diff]\n\texternal = x\n").unwrap();
            fs::create_dir(dir.path().join(".hooks")).unwrap();
            fs::write(dir.path().join(".hooks").join(HOOK_OF_LOOKING), "").unwrap();
            fs::write(dir.path().join(".git/config"), format!("{common}{text}")).unwrap();
            let below = dir.path().join("below");
            fs::create_dir(&below).unwrap();
            assert_eq!(RepositoryPrograms::around(&below).first(), expected, "{text}");
        }
        let dir = repository();
        fs::write(dir.path().join(".git/hooks").join(HOOK_OF_LOOKING), "").unwrap();
        assert!(RepositoryPrograms::around(dir.path()).first().is_some());
        assert_eq!(RepositoryPrograms::around(tempfile::tempdir().unwrap().path()).first(), None);
    }

    #[test]
    fn repositories_inside_and_worktrees_are_looked_into() {
        let (outer, inner) = (repository(), repository());
        git(inner.path(), &["commit", "-q", "--allow-empty", "-m", "one"]);
        let from = inner.path().to_str().unwrap();
        git(outer.path(), &["submodule", "add", "-q", from, "deep/sub"]);
        git(outer.path(), &["commit", "-qm", "one"]);
        assert_eq!(RepositoryPrograms::around(outer.path()).first(), None);
        let tree = tempfile::tempdir().unwrap();
        git(outer.path(), &["worktree", "add", "-q", tree.path().join("w").to_str().unwrap()]);
        git(&outer.path().join("deep/sub"), &["config", "core.fsmonitor", "./evil"]);
        assert_eq!(RepositoryPrograms::around(outer.path()).first(), Some("core.fsmonitor"));
        assert_eq!(RepositoryPrograms::around(&tree.path().join("w")).first(), None);
        git(outer.path(), &["config", "filter.x.clean", "cat"]);
        assert_eq!(RepositoryPrograms::around(&tree.path().join("w")).first(), Some("filter.x.clean"));
    }
}
