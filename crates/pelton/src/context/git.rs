//! The state of a repository, read without running git: what a repository configures can make git run programs. Told once,
//! at the start. What is staged is not told apart from what is committed: that would take reading the objects themselves.

mod look; // what differs from that

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use self::look::differing;
use crate::limits::{GIT_COMMITS_TOLD_MAX, GIT_LOG_BYTES_MAX};
use crate::repository::{common_dir, index, index_file};

/// What is told of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitState {
    pub branch: String,
    /// The branch that others start from, if it can be told.
    pub main: Option<String>,
    /// Files that differ from the index, as `git status --short` shows them; `None` if that could not be found out.
    pub status: Option<Vec<String>>,
    /// There are more than are told, or not all were looked at.
    pub is_cut: bool,
    /// The newest commits made here, newest first: the beginning of the hash and the subject.
    pub commits: Vec<String>,
}

/// A checkout of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    top: PathBuf,
    git_dir: PathBuf,
}

impl Checkout {
    /// The one at or above a directory. A few looks at names, and nothing is read but a pointer.
    pub fn around(cwd: &Path) -> Option<Self> {
        cwd.ancestors().find_map(|dir| {
            let git = dir.join(".git");
            let git_dir = match fs::read_to_string(&git) {
                // In a worktree or submodule `.git` is a file that names the real directory.
                Ok(pointer) => dir.join(pointer.strip_prefix("gitdir:")?.trim()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
                Err(_) => git,
            };
            git_dir.join("HEAD").is_file().then(|| Self { top: dir.to_path_buf(), git_dir })
        })
    }

    fn branch(&self) -> Option<String> {
        Some(branch_of(&fs::read_to_string(self.git_dir.join("HEAD")).ok()?))
    }
}

/// The state of a checkout. Blocks.
pub fn git_state(checkout: &Checkout) -> Option<GitState> {
    let Checkout { top, git_dir } = checkout;
    let (branch, common) = (checkout.branch()?, common_dir(git_dir));
    let commits = read_end(&git_dir.join("logs/HEAD")).map(|log| commits(&log)).unwrap_or_default();
    let index = index_file(&git_dir.join("index"));
    let indexed = index.as_deref().and_then(index::read_index);
    let differing = indexed.map(|indexed| differing(top, &common, &indexed));
    let (status, is_cut) = match differing {
        Some((lines, is_cut)) => (Some(lines), is_cut),
        None => (None, false),
    };
    Some(GitState { branch, main: main_branch(&common), status, is_cut, commits })
}

/// The branch checked out at or above a directory.
pub fn git_branch(cwd: &Path) -> Option<String> {
    Checkout::around(cwd)?.branch()
}

/// The branch that the place it was cloned from goes by; without one, a branch of the usual name.
fn main_branch(common: &Path) -> Option<String> {
    let origin = fs::read_to_string(common.join("refs/remotes/origin/HEAD")).ok();
    let named = origin.as_deref().and_then(|head| head.trim().strip_prefix("ref: refs/remotes/origin/"));
    if let Some(named) = named {
        return Some(named.to_owned());
    }
    let packed = read_end(&common.join("packed-refs")).unwrap_or_default();
    let is_packed = |name: &str| packed.lines().any(|line| line.ends_with(&format!(" refs/heads/{name}")));
    let is_there = |name: &&str| common.join("refs/heads").join(name).is_file() || is_packed(name);
    ["main", "master"].into_iter().find(is_there).map(str::to_owned)
}

fn branch_of(head: &str) -> String {
    let head = head.trim();
    match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => branch.to_owned(),
        None => format!("(detached at {})", head.get(..12).unwrap_or(head)),
    }
}

/// The end of a file that only grows.
fn read_end(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(GIT_LOG_BYTES_MAX))).ok()?;
    let mut bytes = Vec::new();
    file.take(GIT_LOG_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The newest commits of a log of where HEAD has been.
fn commits(log: &str) -> Vec<String> {
    let mut told = Vec::new();
    for line in log.lines().rev() {
        let Some((head, message)) = line.split_once('\t') else { continue };
        let Some(hash) = head.split(' ').nth(1).and_then(|hash| hash.get(..7)) else { continue };
        let subject = match message.split_once(": ") {
            Some((what, subject)) if what.starts_with("commit") => subject,
            _ => continue,
        };
        // An amended commit took the place of the one before.
        let told_line = format!("{hash} {subject}");
        if !told.contains(&told_line) {
            told.push(told_line);
        }
        if told.len() == GIT_COMMITS_TOLD_MAX {
            break;
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn state_around(cwd: &Path) -> Option<GitState> {
        git_state(&Checkout::around(cwd)?)
    }

    fn git(dir: &Path, words: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]).args(words);
        git.current_dir(dir).env("HOME", dir).env("GIT_CONFIG_NOSYSTEM", "1").stderr(Stdio::null());
        String::from_utf8(git.output().unwrap().stdout).unwrap()
    }

    #[test]
    fn the_branch_is_read_from_plain_repositories_and_worktrees() {
        let dir = tempfile::tempdir().unwrap();
        let main = dir.path().join("main");
        fs::create_dir_all(main.join(".git/worktrees/w")).unwrap();
        fs::create_dir_all(main.join("a/b")).unwrap();
        fs::write(main.join(".git/HEAD"), "ref: refs/heads/feature/x\n").unwrap();
        assert_eq!(git_branch(&main.join("a/b")).as_deref(), Some("feature/x"));

        let tree = dir.path().join("tree");
        fs::create_dir_all(&tree).unwrap();
        fs::write(tree.join(".git"), "gitdir: ../main/.git/worktrees/w\n").unwrap();
        fs::write(main.join(".git/worktrees/w/HEAD"), "0123456789abcdef0123\n").unwrap();
        assert_eq!(git_branch(&tree).as_deref(), Some("(detached at 0123456789ab)"));
    }

    #[test]
    fn the_state_is_what_git_says_of_the_work_tree() {
        for version in ["2", "3", "4"] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path();
            let write = |name: &str, text: &str| {
                fs::create_dir_all(path.join(name).parent().unwrap()).unwrap();
                fs::write(path.join(name), text).unwrap();
            };
            git(path, &["init", "-q", "-b", "trunk"]);
            git(path, &["config", "index.version", version]);
            for name in ["a.txt", "b.txt", "src/one/c.txt", "src/one/d.txt", "touched.txt"] {
                write(name, name);
            }
            write(".gitignore", "target/\n*.log\n");
            write("src/.gitignore", "*.tmp\n!keep.tmp\n");
            write("target/kept.txt", "kept all the same");
            git(path, &["add", "."]);
            git(path, &["add", "--force", "target/kept.txt"]);
            git(path, &["update-index", "--index-version", version]);
            git(path, &["commit", "-q", "-m", "First: with a colon"]);
            git(path, &["commit", "-q", "--allow-empty", "-m", "Second"]);
            write("a.txt", "a.TXT");
            fs::remove_file(path.join("b.txt")).unwrap();
            write("src/one/c.txt", "longer than before");
            write("touched.txt", "touched.txt");
            write("new.txt", "");
            write("new/deep/one.txt", "");
            write("target/ignored.txt", "");
            write("src/x.log", "");
            // Ignored by the file nearest to it, by none, all of a directory, and by what is in no commit.
            write("src/a.tmp", "");
            write("src/keep.tmp", "");
            write("src/one/deep/er/new.txt", "");
            write("only/x.log", "");
            write(".git/info/exclude", "private\n");
            write("private/notes.txt", "");
            // Tracked in a directory that is ignored.
            write("target/kept.txt", "changed");
            let state = state_around(&path.join("src")).unwrap();
            assert_eq!((state.branch.as_str(), state.main), ("trunk", None));
            let mut expected: Vec<String> =
                git(path, &["status", "--short"]).lines().map(str::to_owned).collect();
            let mut told = state.status.unwrap();
            expected.sort();
            told.sort();
            assert_eq!(told, expected, "index version {version}");
            assert!(!expected.is_empty());
            let log = git(path, &["log", "--format=%h %s", "--abbrev=7"]);
            assert_eq!(state.commits, log.lines().collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_main_branch_is_the_one_of_the_origin_or_the_usual_one() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, clone, tree) =
            (dir.path().join("ours"), dir.path().join("clone"), dir.path().join("tree"));
        fs::create_dir(&ours).unwrap();
        git(&ours, &["init", "-q", "-b", "develop"]);
        git(&ours, &["commit", "-q", "--allow-empty", "-m", "First"]);
        git(dir.path(), &["clone", "-q", "ours", "clone"]);
        git(&clone, &["checkout", "-q", "-b", "side"]);
        git(&clone, &["worktree", "add", "-q", "-b", "other", tree.to_str().unwrap()]);
        let main = |path: &Path| state_around(path).unwrap().main;
        assert_eq!((main(&clone).as_deref(), main(&tree).as_deref()), (Some("develop"), Some("develop")));
        assert_eq!(main(&ours), None);
        git(&ours, &["branch", "master"]);
        git(&ours, &["pack-refs", "--all"]);
        assert_eq!(main(&ours).as_deref(), Some("master"));
        git(&ours, &["branch", "main"]);
        assert_eq!(main(&ours).as_deref(), Some("main"));
    }

    #[test]
    fn a_repository_without_commits_has_new_files_alone() {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "-q", "-b", "trunk"]);
        fs::write(dir.path().join("a"), "").unwrap();
        let state = state_around(dir.path()).unwrap();
        assert_eq!((state.status.unwrap(), state.commits), (vec!["?? a".to_owned()], Vec::new()));
        assert_eq!(state_around(Path::new("/")), None);
    }
}
