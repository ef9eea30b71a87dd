//! What is told again after a compaction, from where it comes: a summary is not trusted for it.

use std::path::Path;
use std::sync::Arc;

use super::Live;
use crate::compact::auto::{Cut, Sources};
use crate::context::{Surroundings, git_branch};
use crate::history::EntryId;
use crate::limits::{
    FILE_REATTACHED_CHARS_MAX, FILES_REATTACHED_MAX, FILES_REATTACHED_PERCENT_MAX, PLAN_REATTACHED_CHARS_MAX,
};
use crate::spill::{Shown, first_chars};

/// Characters of a token, about.
const CHARS_PER_TOKEN: usize = 4;

impl Live<'_> {
    /// Everything that is told again when what stands before a cut goes.
    pub(super) async fn sources(&mut self, cut: Cut) -> Sources {
        let files = self.files().await;
        let memory = self.memory.clone().reread().await.map(|told| told.text);
        let cx = &self.bench.cx;
        let landmarks = &self.session.landmarks;
        let view = self.session.history.view();
        let goes = view.entries_between(cut.from, cut.to);
        let stays = |id: EntryId| {
            view.entry_ids().any(|other| other == id) && goes.iter().all(|entry| entry.id != id)
        };
        let request = landmarks.request.as_ref().filter(|request| !stays(request.id));
        let first = landmarks.first_request.as_ref().filter(|first| !stays(first.id));
        Sources {
            instructions: self.surroundings().into_iter().chain(memory).collect(),
            first_request: first.map(|first| first.words()),
            request: request.map(|request| request.words()),
            plan: landmarks.plan.as_ref().map(|plan| first_chars(plan, PLAN_REATTACHED_CHARS_MAX).to_owned()),
            todos: cx.todos.lines(),
            files,
            skills: self.skills.told_again(),
            background: self.in_background(),
        }
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
        let cx = Arc::clone(&self.bench);
        let cx = &cx.cx;
        let room = usize::try_from(self.room.percent(FILES_REATTACHED_PERCENT_MAX)).unwrap_or(usize::MAX);
        let mut chars_left = room.saturating_mul(CHARS_PER_TOKEN);
        let mut files = Vec::new();
        for (path, _) in cx.files.newest(FILES_REATTACHED_MAX * 2) {
            if files.len() >= FILES_REATTACHED_MAX {
                break;
            }
            if path.starts_with(&cx.spill_dir) {
                continue;
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
