//! What is told again after a compaction, from where it comes: a summary is not trusted for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::Live;
use crate::compact::auto::{Cut, Memory, Sources};
use crate::context::attachment::{Attachment, AttachmentFacts};
use crate::context::memory::{Heard, told_in};
use crate::context::{self, Surroundings, git_branch};
use crate::history::{Entry, EntryId, View};
use crate::limits::{
    FILE_REATTACHED_CHARS_MAX, FILES_REATTACHED_MAX, FILES_REATTACHED_PERCENT_MAX, PLAN_REATTACHED_CHARS_MAX,
};
use crate::permission::Mode;
use crate::session::{Kept, Request};
use crate::skills::Skills;
use crate::spill::{Shown, first_chars};
use crate::tools::builtin::plan;
use crate::tools::builtin::todo::Todo;

/// Characters of a token, about.
const CHARS_PER_TOKEN: usize = 4;

/// What is told again, and what is kept beside it.
pub(super) struct ToldAgain {
    pub sources: Sources,
    kept: Kept,
}

impl ToldAgain {
    /// The same in about so many tokens.
    pub fn within(self, most: u64, view: &View) -> Self {
        Self { sources: self.sources.within(most, |text| view.tokens_of(text)), ..self }
    }

    /// What the record says beside the words.
    pub fn facts(&self) -> Option<Bytes> {
        let memory = self.sources.memory.as_ref();
        let mut kept = self.kept.clone();
        kept.skills.clone_from(&self.sources.skills);
        kept.facts(memory.map(|memory| memory.files.clone()).unwrap_or_default())
    }
}

impl Live<'_> {
    /// Everything that is told again when what stands before a cut goes.
    pub(super) async fn sources(&mut self, cut: Cut) -> ToldAgain {
        let files = self.files().await;
        let memory = self.memory.clone().reread().await;
        let mut kept = self.session.kept.clone();
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
            surroundings: self.surroundings(),
            memory: memory.map(|Attachment { text, files, .. }| Memory { text, files }),
            shelved: self.offer.shelved(),
            first_request: gone(&kept.first_request),
            request: gone(&kept.request),
            plan: kept.plan.as_ref().map(|plan| first_chars(plan, PLAN_REATTACHED_CHARS_MAX).to_owned()),
            mode: (self.bench.permissions.mode() == Mode::Plan)
                .then(|| plan::rules(self.options.plan_instructions.as_deref())),
            todos: kept.todos.iter().map(Todo::line).chain(kept.tasks.lines()).collect(),
            files,
            skills: self.skills.told_again(),
            background: self.in_background(),
        };
        ToldAgain { sources, kept }
    }

    /// The model knows what it is sent, and nothing else: memory and skills go by that after what is sent has changed.
    /// Gives texts of skills that it had and has no more.
    pub(super) async fn know_what_is_sent(&mut self) -> Vec<(PathBuf, String)> {
        know_what_is_sent(self.session.history.view(), &self.memory, &self.skills).await
    }

    fn surroundings(&self) -> String {
        let cx = &self.bench.cx;
        let branch = git_branch(&cx.cwd);
        let roots = self.bench.permissions.roots();
        Surroundings { roots: &roots, git_branch: branch.as_deref(), git: None, now: self.world.now() }.text()
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

/// Makes memory and skills go by what is sent. Gives the newest texts of skills that were there before and are no more.
pub(crate) async fn know_what_is_sent(
    view: &View,
    memory: &context::memory::Memory,
    skills: &Skills,
) -> Vec<(PathBuf, String)> {
    let Known { heard, listed, .. } = Known::of(view);
    memory.recall(heard).await;
    skills.sees(listed, |text| view.tells(text))
}

/// What the model knows by what it is sent.
pub(crate) struct Known {
    /// It was told the memory files of the start.
    pub instructed: bool,
    /// What it was told of memory files.
    pub heard: Vec<Heard>,
    /// Files of skills that it knows of.
    pub listed: Vec<PathBuf>,
}

impl Known {
    pub fn of(view: &View) -> Self {
        let entries: Vec<Arc<Entry>> = view.entries_with_detail().cloned().collect();
        let Kept { told, listed, instructed, .. } = Kept::of(&entries);
        let mut heard: Vec<Heard> = told.into_iter().map(|file| Heard { file, words: None }).collect();
        // What was told last counts.
        for entry in &entries {
            let facts = entry.detail.as_deref().and_then(AttachmentFacts::read);
            let Some(facts) = facts.filter(|facts| facts.r#type.is_memory()) else { continue };
            let words = entry.words();
            let told = told_in(&words, &facts.files);
            for file in facts.files {
                let section = told.iter().find(|(path, _)| *path == file).map_or("", |(_, section)| section);
                let (words, of_it) = (Some(section.to_owned()), |heard: &&mut Heard| heard.file == file);
                heard.iter_mut().filter(of_it).for_each(|heard| heard.words.clone_from(&words));
            }
        }
        Self { instructed, heard, listed }
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
