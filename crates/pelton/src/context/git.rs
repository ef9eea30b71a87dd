//! The state of a repository, read without running git: what a repository configures can make git run programs. Told once,
//! at the start. What is staged is not told apart from what is committed: that would take reading the objects themselves.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::limits::{
    GIT_COMMITS_TOLD_MAX, GIT_FILES_LOOKED_AT_MAX, GIT_HASHED_BYTES_MAX, GIT_INDEX_BYTES_MAX,
    GIT_LOG_BYTES_MAX, GIT_STATUS_LINES_MAX,
};

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

/// The state of the repository at or above a directory. Blocks.
pub fn git_state(cwd: &Path) -> Option<GitState> {
    let (top, git_dir) = find(cwd)?;
    let branch = branch_of(&fs::read_to_string(git_dir.join("HEAD")).ok()?);
    let commits = read_end(&git_dir.join("logs/HEAD")).map(|log| commits(&log)).unwrap_or_default();
    let differing = differing(&top, &git_dir.join("index"));
    let (status, is_cut) = match differing {
        Some((lines, is_cut)) => (Some(lines), is_cut),
        None => (None, false),
    };
    Some(GitState { branch, main: main_branch(&git_dir), status, is_cut, commits })
}

/// The branch checked out at or above a directory.
pub fn git_branch(cwd: &Path) -> Option<String> {
    let (_, git_dir) = find(cwd)?;
    Some(branch_of(&fs::read_to_string(git_dir.join("HEAD")).ok()?))
}

/// The branch that the place it was cloned from goes by; without one, a branch of the usual name.
fn main_branch(git_dir: &Path) -> Option<String> {
    // Worktrees share the branches of the repository they belong to.
    let common = match fs::read_to_string(git_dir.join("commondir")) {
        Ok(common) => git_dir.join(common.trim()),
        Err(_) => git_dir.to_path_buf(),
    };
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

/// The checkout around a directory, and where its git directory is.
fn find(cwd: &Path) -> Option<(PathBuf, PathBuf)> {
    cwd.ancestors().find_map(|dir| {
        let git = dir.join(".git");
        let git = match fs::read_to_string(&git) {
            // In a worktree or submodule `.git` is a file that names the real directory.
            Ok(pointer) => dir.join(pointer.strip_prefix("gitdir:")?.trim()),
            Err(_) => git,
        };
        git.join("HEAD").is_file().then(|| (dir.to_path_buf(), git))
    })
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

/// What the index says of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Indexed {
    path: PathBuf,
    size: u32,
    modified: (u32, u32),
    hash: [u8; 20],
    mode: u32,
    /// Two sides of a merge disagree about it.
    in_conflict: bool,
    /// The user said that it is not to be looked at.
    left_alone: bool,
}

/// The files of a checkout that differ from its index, and whether that is not all.
fn differing(top: &Path, index: &Path) -> Option<(Vec<String>, bool)> {
    let bytes = match fs::metadata(index) {
        Ok(about) if about.len() > GIT_INDEX_BYTES_MAX => return None,
        Ok(_) => fs::read(index).ok()?,
        // A repository without a commit has none.
        Err(_) => b"DIRC\0\0\0\x02\0\0\0\0".to_vec(),
    };
    let indexed = read_index(&bytes)?;
    let mut lines = BTreeSet::new();
    let mut hashed = 0;
    let is_long = indexed.len() > GIT_FILES_LOOKED_AT_MAX;
    for file in indexed.iter().take(GIT_FILES_LOOKED_AT_MAX) {
        if let Some(mark) = mark(top, file, &mut hashed) {
            lines.insert((file.path.display().to_string(), mark));
        }
    }
    let (untracked, is_cut) = untracked(top, &indexed);
    lines.extend(untracked.into_iter().map(|path| (path, "??")));
    let is_cut = is_cut || is_long || lines.len() > GIT_STATUS_LINES_MAX;
    let told = lines.into_iter().take(GIT_STATUS_LINES_MAX);
    Some((told.map(|(path, mark)| format!("{mark} {path}")).collect(), is_cut))
}

/// How a file differs from what the index says, if it does.
fn mark(top: &Path, file: &Indexed, hashed: &mut u64) -> Option<&'static str> {
    const SUBMODULE: u32 = 0o160_000;
    const LINK: u32 = 0o120_000;
    if file.in_conflict {
        return Some("UU");
    }
    if file.left_alone || file.mode == SUBMODULE {
        return None;
    }
    let path = top.join(&file.path);
    let Ok(about) = fs::symlink_metadata(&path) else { return Some(" D") };
    if about.is_symlink() != (file.mode == LINK) || about.is_dir() {
        return Some(" M");
    }
    // The index keeps the lower half of these figures.
    let modified = (about.mtime() as u32, about.mtime_nsec() as u32);
    let is_same_size = about.size() as u32 == file.size;
    if is_same_size && modified == file.modified || about.is_symlink() {
        return None;
    }
    if !is_same_size || about.size() > GIT_HASHED_BYTES_MAX.saturating_sub(*hashed) {
        return Some(" M");
    }
    *hashed += about.size();
    let content = fs::read(&path).ok()?;
    (blob_hash(&content) != file.hash).then_some(" M")
}

fn blob_hash(content: &[u8]) -> [u8; 20] {
    let mut hasher = ring::digest::Context::new(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY);
    hasher.update(format!("blob {}\0", content.len()).as_bytes());
    hasher.update(content);
    let mut hash = [0; 20];
    hash.copy_from_slice(hasher.finish().as_ref());
    hash
}

/// Files that the index does not know and that are not ignored; of a directory of them, the directory.
fn untracked(top: &Path, indexed: &[Indexed]) -> (BTreeSet<String>, bool) {
    let files: HashSet<&Path> = indexed.iter().map(|file| file.path.as_path()).collect();
    let dirs: HashSet<&Path> = indexed.iter().flat_map(|file| file.path.ancestors().skip(1)).collect();
    // Nothing outside of the repository says what is ignored: that would be the process's own home.
    let mut walk = ignore::WalkBuilder::new(top);
    walk.hidden(false).parents(false).ignore(false).git_global(false);
    walk.filter_entry(|entry| entry.file_name() != ".git");
    let mut found = BTreeSet::new();
    for (seen, entry) in walk.build().flatten().enumerate() {
        if seen == GIT_FILES_LOOKED_AT_MAX || found.len() > GIT_STATUS_LINES_MAX {
            return (found, true);
        }
        let Ok(path) = entry.path().strip_prefix(top) else { continue };
        if entry.file_type().is_none_or(|kind| kind.is_dir()) || files.contains(path) {
            continue;
        }
        let unknown =
            path.ancestors().skip(1).take_while(|dir| !dirs.contains(dir) && !dir.as_os_str().is_empty());
        found.insert(match unknown.last() {
            Some(dir) => format!("{}/", dir.display()),
            None => path.display().to_string(),
        });
    }
    (found, false)
}

/// The entries of an index of version 2, 3 or 4. `None` if it is none.
fn read_index(bytes: &[u8]) -> Option<Vec<Indexed>> {
    let mut rest = Bytes(bytes);
    if rest.take(4)? != b"DIRC" {
        return None;
    }
    let (version, count) = (rest.number()?, rest.number()?);
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut entries: Vec<Indexed> = Vec::new();
    let mut name: Vec<u8> = Vec::new();
    for _ in 0..count {
        let before = rest.0.len();
        rest.take(8)?;
        let modified = (rest.number()?, rest.number()?);
        rest.take(8)?;
        let mode = rest.number()?;
        rest.take(8)?;
        let size = rest.number()?;
        let hash: [u8; 20] = rest.take(20)?.try_into().ok()?;
        let flags = rest.short()?;
        let more_flags = if version >= 3 && flags & 0x4000 != 0 { rest.short()? } else { 0 };
        if version == 4 {
            let shorter = rest.varying()?;
            name.truncate(name.len().checked_sub(shorter)?);
        } else {
            name.clear();
        }
        let length = rest.0.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(rest.take(length)?);
        rest.take(1)?;
        if version < 4 {
            // An entry is filled up to a multiple of eight bytes.
            let read = before - rest.0.len();
            rest.take(read.div_ceil(8) * 8 - read)?;
        }
        let in_conflict = flags & 0x3000 != 0;
        let path = PathBuf::from(String::from_utf8_lossy(&name).into_owned());
        if in_conflict && entries.last().is_some_and(|last| last.path == path) {
            continue;
        }
        let left_alone = flags & 0x8000 != 0 || more_flags & 0x4000 != 0;
        entries.push(Indexed { path, size, modified, hash, mode, in_conflict, left_alone });
    }
    Some(entries)
}

/// Bytes that are taken from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    /// A number of seven bits a byte, each further byte one more than it says.
    fn varying(&mut self) -> Option<usize> {
        let mut value = 0_usize;
        loop {
            let byte = self.take(1)?[0];
            value = value.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
            value = value.checked_add(1)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use proptest::prelude::*;

    use super::*;

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
            git(path, &["add", "."]);
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
            let state = git_state(&path.join("src")).unwrap();
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
        let main = |path: &Path| git_state(path).unwrap().main;
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
        let state = git_state(dir.path()).unwrap();
        assert_eq!((state.status.unwrap(), state.commits), (vec!["?? a".to_owned()], Vec::new()));
        assert_eq!(git_state(Path::new("/")), None);
    }

    proptest! {
        #[test]
        fn any_index_is_survived(mut bytes in prop::collection::vec(any::<u8>(), 0..300), version in 2_u8..5) {
            let head = [b'D', b'I', b'R', b'C', 0, 0, 0, version, 0, 0, 0, 9];
            bytes.splice(..0, head);
            let _ = read_index(&bytes);
        }
    }
}
