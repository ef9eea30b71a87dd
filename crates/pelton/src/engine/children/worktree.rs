//! A worktree of an agent's own: another checkout of the repository, so that it leaves the user's files alone. Hooks may make it in
//! the place of git.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use crate::hooks::{Fired, SessionHooks};
use crate::limits::WORKTREE_FILES_COPIED_MAX;
use crate::options::{WorktreeBase, WorktreeOptions};
use crate::repository::RepositoryPrograms;

/// Time for one command of git: a large repository is checked out.
const GIT_TIME_MAX: Duration = Duration::from_secs(300);
/// Names the files besides those in the repository that a checkout needs, in the words of `.gitignore`.
const INCLUDED: &str = ".worktreeinclude";

/// A checkout of its own.
#[derive(Debug)]
pub(super) struct Worktree {
    pub path: PathBuf,
    made: Made,
}

#[derive(Debug)]
enum Made {
    /// By git: the repository it belongs to, its branch, and the commit it began with.
    ByGit { root: PathBuf, branch: String, base: String },
    /// By a hook, which knows what becomes of it.
    ByHook,
}

/// Makes worktrees for the agents of one session.
pub(super) struct Worktrees<'a> {
    pub options: &'a WorktreeOptions,
    pub env: &'a [(OsString, OsString)],
    /// Where the session works.
    pub cwd: &'a Path,
    pub hooks: &'a SessionHooks,
}

impl Worktrees<'_> {
    /// A worktree called `name`, and what hooks had to say to it.
    pub async fn make(&self, name: &str) -> (Result<Worktree, String>, Option<Fired>) {
        match self.hooks.worktree_wanted(name, self.cwd).await {
            Some(fired) => (self.by_hook(&fired), Some(fired)),
            None => (self.by_git(name).await, None),
        }
    }

    fn by_hook(&self, fired: &Fired) -> Result<Worktree, String> {
        if let Some(why) = &fired.verdict.block {
            return Err(format!("A hook did not make a worktree: {why}"));
        }
        let named = fired.verdict.extras.get("worktreePath").and_then(|path| path.as_str());
        let printed = || {
            fired
                .runs
                .iter()
                .rev()
                .find_map(|run| run.stdout.lines().rev().find(|line| !line.trim().is_empty()))
        };
        let path = named.or_else(printed).map(|path| self.cwd.join(path.trim()));
        let path = path.filter(|path| path.is_dir());
        let path = path.ok_or("A hook was to make a worktree, and named no directory that is there.")?;
        Ok(Worktree { path, made: Made::ByHook })
    }

    async fn by_git(&self, name: &str) -> Result<Worktree, String> {
        let root = self.git(self.cwd, &["rev-parse", "--show-toplevel"]).await.map_err(|why| {
            format!("The agent wants a worktree of its own, and there can be none here: {why}")
        })?;
        let root = PathBuf::from(root);
        let base = match self.options.base {
            WorktreeBase::Head => None,
            WorktreeBase::Fresh => {
                self.git(&root, &["rev-parse", "--verify", "--quiet", "origin/HEAD^{commit}"]).await.ok()
            }
        };
        let base = match base.filter(|base| !base.is_empty()) {
            Some(base) => base,
            None => self.git(&root, &["rev-parse", "--verify", "HEAD^{commit}"]).await?,
        };
        let path = root.join(".claude/worktrees").join(name);
        let branch = format!("worktree-{name}");
        let place = path.to_str().ok_or("The path of the repository is no text.")?;
        let sparse = !self.options.sparse_paths.is_empty();
        let mut words = vec!["worktree", "add", "--quiet", "-b", &branch];
        words.extend(sparse.then_some("--no-checkout"));
        words.extend([place, &base]);
        self.git(&root, &words).await?;
        let worktree = Worktree {
            path: path.clone(),
            made: Made::ByGit { root: root.clone(), branch: branch.clone(), base },
        };
        let filled = self.fill(&root, &path).await;
        match filled {
            Ok(()) => Ok(worktree),
            Err(why) => {
                self.remove(&root, &path, &branch).await;
                Err(why)
            }
        }
    }

    /// Puts into a worktree what settings and the repository want there besides what is checked out.
    async fn fill(&self, root: &Path, path: &Path) -> Result<(), String> {
        if !self.options.sparse_paths.is_empty() {
            let mut words = vec!["sparse-checkout", "set", "--cone", "--"];
            words.extend(self.options.sparse_paths.iter().map(String::as_str));
            self.git(path, &words).await?;
            self.git(path, &["checkout", "--quiet"]).await?;
        }
        for name in self.options.linked_directories.iter().filter(|name| stays_inside(name)) {
            let (there, here) = (root.join(name), path.join(name));
            if there.is_dir() && here.symlink_metadata().is_err() {
                let made = here.parent().map_or(Ok(()), std::fs::create_dir_all);
                let linked = made.and_then(|()| std::os::unix::fs::symlink(&there, &here));
                linked.map_err(|error| {
                    format!("{} cannot be linked into the worktree: {error}", there.display())
                })?;
            }
        }
        if root.join(INCLUDED).is_file() {
            let from = format!("--exclude-from={INCLUDED}");
            let wanted = self.git(root, &["ls-files", "--others", "--ignored", "-z", &from]).await?;
            let names =
                wanted.split('\0').filter(|name| !name.is_empty() && !name.starts_with(".claude/worktrees/"));
            for name in names.take(WORKTREE_FILES_COPIED_MAX).filter(|name| stays_inside(name)) {
                let (there, here) = (root.join(name), path.join(name));
                let is_file = there.symlink_metadata().is_ok_and(|about| about.is_file());
                if is_file && here.symlink_metadata().is_err() {
                    let made = here.parent().map_or(Ok(()), std::fs::create_dir_all);
                    let copied = made.and_then(|()| std::fs::copy(&there, &here).map(|_| ()));
                    copied.map_err(|error| {
                        format!("{} cannot be copied into the worktree: {error}", there.display())
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Its agent has ended. Without changes it goes; otherwise it stays, and whoever reads the report is told where it is.
    pub async fn end(&self, worktree: Worktree) -> (Option<String>, Option<Fired>) {
        let Worktree { path, made } = worktree;
        let Made::ByGit { root, branch, base } = made else {
            return (None, self.hooks.worktree_left(&path, self.cwd).await);
        };
        let is_as_it_was =
            self.git(&path, &["status", "--porcelain"]).await.is_ok_and(|changed| changed.is_empty())
                && self.git(&path, &["rev-parse", "HEAD"]).await.is_ok_and(|head| head == base);
        if !is_as_it_was {
            let told = format!(
                "What the agent changed is in the worktree {}, on the branch {branch}.",
                path.display()
            );
            return (Some(told), None);
        }
        let fired = self.hooks.worktree_left(&path, self.cwd).await;
        self.remove(&root, &path, &branch).await;
        (None, fired)
    }

    /// What cannot be taken away stays: it holds nothing that is not elsewhere.
    async fn remove(&self, root: &Path, path: &Path, branch: &str) {
        let Some(place) = path.to_str() else { return };
        let _ = self.git(root, &["worktree", "remove", "--force", place]).await;
        let _ = self.git(root, &["branch", "--quiet", "-D", branch]).await;
    }

    /// What git prints, without its last line's end. Nothing that a repository configures is run.
    async fn git(&self, dir: &Path, words: &[&str]) -> Result<String, String> {
        let programs = RepositoryPrograms::around(dir);
        let unclear = || {
            let why = programs.first().unwrap_or_default();
            format!("the repository may have git run something of its own ({why})")
        };
        let no_filters = programs.without_filters().ok_or_else(unclear)?;
        let quiet = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.pager=cat"];
        let ours = [("GIT_TERMINAL_PROMPT", "0"), ("GIT_CONFIG_NOSYSTEM", "1")];
        let steers = |name: &OsStr| name.to_str().is_some_and(|name| name.starts_with("GIT_"));
        let mut git = Command::new("git");
        git.args(quiet)
            .args(no_filters)
            .args(words)
            .current_dir(dir)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .env_clear();
        git.envs(self.env.iter().filter(|(name, _)| !steers(name)).cloned()).envs(ours);
        let output = timeout(GIT_TIME_MAX, git.output()).await.map_err(|_| "git took too long".to_owned())?;
        let output = output.map_err(|error| format!("git cannot be run: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("git {}: {}", words.first().unwrap_or(&""), said.trim()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned())
    }
}

/// Whether a path of the settings or of a list leads nowhere else.
fn stays_inside(path: &str) -> bool {
    !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_settings_lead_nowhere_else() {
        for (path, expected) in [
            ("node_modules", true),
            ("a/b", true),
            ("../a", false),
            ("/a", false),
            ("a/../../b", false),
            ("", false),
        ] {
            assert_eq!(stays_inside(path), expected, "{path}");
        }
    }
}
