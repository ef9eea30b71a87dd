//! What is told again after a compaction, from where it comes: a summary is not trusted for it.

use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::Live;
use crate::compact::auto::{Cut, Sources};
use crate::context::{Surroundings, git_branch};
use crate::history::EntryId;
use crate::limits::{
    FILE_REATTACHED_CHARS_MAX, FILES_REATTACHED_MAX, FILES_REATTACHED_PERCENT_MAX, PLAN_REATTACHED_CHARS_MAX,
};
use crate::permission::Mode;
use crate::session::Request;
use crate::spill::{Shown, first_chars};
use crate::tools::builtin::plan;
use crate::tools::builtin::todo::Todo;

/// Characters of a token, about.
const CHARS_PER_TOKEN: usize = 4;

/// What is told again, and what the record of the summary says beside it.
pub(super) struct ToldAgain {
    pub sources: Sources,
    pub facts: Option<Bytes>,
}

impl Live<'_> {
    /// Everything that is told again when what stands before a cut goes.
    pub(super) async fn sources(&mut self, cut: Cut) -> ToldAgain {
        let files = self.files().await;
        let memory = self.memory.clone().reread().await;
        let (memory, memory_files) = memory.map(|told| (told.text, told.files)).unzip();
        let mut kept = self.session.kept.clone();
        kept.skills = self.skills.told_again();
        for (path, _) in self.bench.cx.files.newest(FILES_REATTACHED_MAX * 2).iter().rev() {
            kept.touched(path);
        }
        let view = self.session.history.view();
        let goes = view.entries_between(cut.from, cut.to);
        let stays = |id: EntryId| {
            view.entry_ids().any(|other| other == id) && goes.iter().all(|entry| entry.id != id)
        };
        let gone = |request: &Option<Request>| {
            request.as_ref().filter(|request| !stays(request.id)).map(|request| request.words.clone())
        };
        let sources = Sources {
            instructions: self.surroundings().into_iter().chain(memory).chain(self.offer.shelved()).collect(),
            first_request: gone(&kept.first_request),
            request: gone(&kept.request),
            plan: kept.plan.as_ref().map(|plan| first_chars(plan, PLAN_REATTACHED_CHARS_MAX).to_owned()),
            mode: (self.bench.permissions.mode() == Mode::Plan)
                .then(|| plan::rules(self.options.plan_instructions.as_deref())),
            todos: kept.todos.iter().map(Todo::line).chain(kept.tasks.lines()).collect(),
            files,
            skills: kept.skills.iter().map(|(_, text)| text.clone()).collect(),
            background: self.in_background(),
        };
        ToldAgain { sources, facts: kept.facts(memory_files.unwrap_or_default()) }
    }

    fn surroundings(&self) -> Vec<String> {
        let cx = &self.bench.cx;
        let branch = git_branch(&cx.cwd);
        let roots = self.bench.permissions.roots();
        vec![
            Surroundings { roots: &roots, git_branch: branch.as_deref(), git: None, now: self.world.now() }
                .text(),
        ]
    }

    /// The files that were read or written last, as they are now. What cannot be read as text is left out.
    async fn files(&mut self) -> Vec<(String, String)> {
        let room = usize::try_from(self.room.percent(FILES_REATTACHED_PERCENT_MAX)).unwrap_or(usize::MAX);
        let mut chars_left = room.saturating_mul(CHARS_PER_TOKEN);
        let mut files = Vec::new();
        for path in self.files_used_last() {
            if files.len() >= FILES_REATTACHED_MAX {
                break;
            }
            let most = chars_left.min(FILE_REATTACHED_CHARS_MAX);
            let Some(text) = text_of(&path).await else { continue };
            let text = Shown::of(&text, most).with_note(Some(&path));
            if text.len() > chars_left.saturating_mul(2) {
                continue;
            }
            chars_left = chars_left.saturating_sub(text.chars().count());
            files.push((path.display().to_string(), text));
        }
        files
    }

    /// Files that were read or written last, here or in an earlier process: then only those of the project, as nobody was
    /// asked about others here. What rules keep from being read by now is left out.
    fn files_used_last(&self) -> Vec<PathBuf> {
        let cx = &self.bench.cx;
        let mut paths: Vec<PathBuf> =
            cx.files.newest(FILES_REATTACHED_MAX * 2).into_iter().map(|(path, _)| path).collect();
        for path in self.session.kept.files.iter().rev() {
            let real = cx.cwd.join(path).canonicalize().unwrap_or_default();
            if !paths.contains(&real) && cx.roots.iter().any(|root| real.starts_with(root)) {
                paths.push(real);
            }
        }
        paths.retain(|path| !path.starts_with(&cx.spill_dir) && cx.readable.allows(path, path));
        paths
    }

    fn in_background(&self) -> Vec<String> {
        let background = &self.bench.cx.background;
        let running = background.running();
        let tasks = running.iter().filter_map(|id| background.find(id));
        let line = |task: &crate::tools::background::BackgroundTask| {
            format!("- {}: {} (its output goes to {})", task.id, task.command, task.output.display())
        };
        tasks.map(|(task, _)| line(&task)).collect()
    }
}

/// The text of a file that is not too long to be looked at.
async fn text_of(path: &Path) -> Option<String> {
    let facts = tokio::fs::metadata(path).await.ok()?;
    if !facts.is_file() || facts.len() > READ_BYTES_MAX {
        return None;
    }
    String::from_utf8(tokio::fs::read(path).await.ok()?).ok()
}

/// Bytes of a file that is shown again in part at least.
const READ_BYTES_MAX: u64 = 1024 * 1024;
