//! Where the session is: told once, in front of the first prompt, because it changes from run to run.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

/// Facts about the place and the day.
#[derive(Debug, Clone)]
pub struct Surroundings<'a> {
    /// The working directories, the first one current.
    pub roots: &'a [PathBuf],
    /// The checked-out branch, if it is a repository.
    pub git_branch: Option<&'a str>,
    /// The wall clock.
    pub now: Timestamp,
}

impl Surroundings<'_> {
    /// What the model reads about them.
    pub fn text(&self) -> String {
        let mut text = String::from("<environment>\n");
        let mut roots = self.roots.iter();
        if let Some(cwd) = roots.next() {
            let _ = writeln!(text, "Working directory: {}", cwd.display());
        }
        for root in roots {
            let _ = writeln!(text, "Also working in: {}", root.display());
        }
        let _ = writeln!(text, "Platform: {}", std::env::consts::OS);
        match self.git_branch {
            Some(branch) => _ = writeln!(text, "Git repository, on branch {branch}"),
            None => text.push_str("Not a git repository\n"),
        }
        let _ = writeln!(text, "Today: {}", self.now.strftime("%Y-%m-%d"));
        text.push_str("</environment>");
        text
    }
}

/// The branch checked out at or above a directory, read without running git: a repository's own configuration
/// can make git run programs.
pub fn git_branch(cwd: &Path) -> Option<String> {
    let head = cwd.ancestors().find_map(|dir| {
        let git = dir.join(".git");
        let git = match std::fs::read_to_string(&git) {
            // In a worktree or submodule `.git` is a file that names the real directory.
            Ok(pointer) => dir.join(pointer.strip_prefix("gitdir:")?.trim()),
            Err(_) => git,
        };
        std::fs::read_to_string(git.join("HEAD")).ok()
    })?;
    let head = head.trim();
    match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => Some(branch.to_owned()),
        None => Some(format!("(detached at {})", head.get(..12).unwrap_or(head))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_branch_is_read_from_plain_repositories_and_worktrees() {
        let dir = tempfile::tempdir().unwrap();
        let main = dir.path().join("main");
        std::fs::create_dir_all(main.join(".git/worktrees/w")).unwrap();
        std::fs::create_dir_all(main.join("a/b")).unwrap();
        std::fs::write(main.join(".git/HEAD"), "ref: refs/heads/feature/x\n").unwrap();
        assert_eq!(git_branch(&main.join("a/b")).as_deref(), Some("feature/x"));

        let tree = dir.path().join("tree");
        std::fs::create_dir_all(&tree).unwrap();
        std::fs::write(tree.join(".git"), "gitdir: ../main/.git/worktrees/w\n").unwrap();
        std::fs::write(main.join(".git/worktrees/w/HEAD"), "0123456789abcdef0123\n").unwrap();
        assert_eq!(git_branch(&tree).as_deref(), Some("(detached at 0123456789ab)"));
    }
}
