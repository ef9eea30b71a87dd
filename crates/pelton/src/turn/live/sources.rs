//! What is told again after a compaction, from where it comes: a summary is not trusted for it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::Live;
use crate::compact::auto::{
    Asked, AskedBlock, Cut, InPlace, Memory, Places, Said, Sources, told_files, told_todos,
};
use crate::context::attachment::{Attachment, AttachmentFacts, AttachmentKind};
use crate::context::memory::{Heard, told_in};
use crate::context::{self, Surroundings, git_branch};
use crate::history::{Entry, EntryId, View};
use crate::limits::{
    FILE_REATTACHED_CHARS_MAX, FILES_REATTACHED_MAX, FILES_REATTACHED_PERCENT_MAX, PLAN_REATTACHED_CHARS_MAX,
    REQUEST_REATTACHED_CHARS_MAX,
};
use crate::permission::Mode;
use crate::session::{Kept, Request, Tells};
use crate::skills::Skills;
use crate::spill::{self, Shown, first_chars};
use crate::tools::ToolCx;
use crate::tools::background::{BackgroundKind, BackgroundTask};
use crate::tools::builtin::todo::Todo;
use crate::tools::builtin::{plan, read};
use crate::transcript::TranscriptError;

/// Characters of a token, about.
const CHARS_PER_TOKEN: usize = 4;

/// What is told again, and what is kept beside it.
pub(super) struct ToldAgain {
    pub sources: Sources,
    kept: Kept,
}

impl ToldAgain {
    /// The same in about so many tokens; the request and the instructions whole as long as they fit within `limit`.
    pub fn within(self, most: u64, limit: u64, view: &View) -> Self {
        let tokens_of = |said: &Said| match said {
            Said::Words(text) => view.tokens_of(text),
            Said::Again(block) => view.tokens_of_block(block),
        };
        Self { sources: self.sources.within(most, limit, tokens_of), ..self }
    }

    /// What takes the place of what was said, and what the record says beside it.
    pub fn told(&self, in_place: InPlace<'_>) -> (Vec<Said>, Option<Bytes>) {
        let (told, places) = self.sources.told(in_place);
        (told, self.facts(&places))
    }

    /// What people are told if the request is not told whole.
    pub fn shortened_request(&self) -> Option<String> {
        let request = self.sources.request.as_ref()?;
        let was = self.kept.request.as_ref()?.blocks();
        let media = |blocks: &[AskedBlock]| blocks.iter().filter(|block| !block.is_words).count();
        let left_out = media(&was) - media(&request.blocks).min(media(&was));
        let words = request
            .blocks
            .iter()
            .filter(|block| block.is_words)
            .ne(was.iter().filter(|block| block.is_words));
        let what = match (words, left_out) {
            (false, 0) => return None,
            (true, 0) => "its beginning and end are sent, and where the rest is".to_owned(),
            (false, n) => format!("its words are sent, and {n} of its images and documents are not"),
            (true, n) => format!(
                "its beginning and end are sent, and where the rest is; {n} of its images and documents are not"
            ),
        };
        Some(format!("The request is too long to be sent whole beside everything else: {what}."))
    }

    fn facts(&self, places: &Places) -> Option<Bytes> {
        let memory = self.sources.memory.as_ref();
        let mut kept = self.kept.clone();
        kept.skills.clone_from(&self.sources.skills);
        // Where there was no room for them, the names have to be told anew.
        kept.served = self.sources.shelved.is_some().then_some(kept.served).flatten();
        kept.facts(memory.map(|memory| memory.files.clone()).unwrap_or_default(), places)
    }
}

impl Live<'_> {
    /// Everything that is told again when what stands before a cut goes.
    pub(super) async fn sources(&mut self, cut: Cut) -> ToldAgain {
        let room = usize::try_from(self.room.percent(FILES_REATTACHED_PERCENT_MAX)).unwrap_or(usize::MAX);
        let files = self.files(room.saturating_mul(CHARS_PER_TOKEN), |_| true).await;
        let memory = self.noticed.memory.clone().reread().await;
        let mut kept = self.session.kept.clone();
        kept.served = Some(self.offer.told_still(true));
        for (path, _) in self.bench.cx.files.newest(FILES_REATTACHED_MAX * 2).iter().rev() {
            kept.touched(path);
        }
        let view = self.session.history.view();
        let goes = view.entries_between(cut.from, cut.to);
        let stays = |id: EntryId| {
            view.entry_ids().any(|other| other == id) && goes.iter().all(|entry| entry.id != id)
        };
        let gone = |request: &Option<Request>| request.clone().filter(|request| !stays(request.id));
        let (first_request, request) = (gone(&kept.first_request), gone(&kept.request));
        let bench = Arc::clone(&self.bench);
        let mut first_request = asked(first_request, &bench.cx).await;
        let request = asked(request, &bench.cx).await;
        if let Some(first) = &mut first_request
            && request.as_ref().is_none_or(|request| request.id != first.id)
        {
            first.shorten();
        }
        let sources = Sources {
            surroundings: self.surroundings(),
            memory: memory.map(|Attachment { text, files, .. }| Memory { text, files }),
            shelved: self.offer.told_again(),
            first_request,
            request,
            plan: kept.plan.as_ref().map(|plan| first_chars(plan, PLAN_REATTACHED_CHARS_MAX).to_owned()),
            mode: (self.bench.permissions.mode() == Mode::Plan)
                .then(|| plan::rules(self.options.plan_instructions.as_deref())),
            todos: self.todo_lines(),
            files,
            skills: self.noticed.skills.told_again(),
            background: self.in_background(),
        };
        ToldAgain { sources, kept }
    }

    /// The model knows what it is sent, and nothing else: memory and skills go by that after what is sent has changed.
    /// Gives texts of skills that it had and has no more.
    pub(super) async fn know_what_is_sent(&mut self) -> Vec<(PathBuf, String)> {
        know_what_is_sent(self.session.history.view(), &self.noticed.memory, &self.noticed.skills).await
    }

    fn surroundings(&self) -> String {
        let cx = &self.bench.cx;
        let branch = git_branch(&cx.cwd);
        let roots = self.bench.permissions.roots();
        Surroundings { roots: &roots, git_branch: branch.as_deref(), git: None, now: self.world.now() }.text()
    }

    /// Where what is kept was told last: the list, and each file.
    pub(super) fn told_last(&self) -> Vec<(Tells, EntryId)> {
        let mut told: Vec<(Tells, EntryId)> = Vec::new();
        for entry in self.session.history.view().entries() {
            for tells in Tells::of(entry) {
                told.retain(|(other, _)| *other != tells);
                told.push((tells, entry.id));
            }
        }
        told
    }

    /// The list of what is to be done, and files, that were last told in what is not sent any more: they are told again behind
    /// everything, in at most about so many tokens.
    pub(super) async fn tell_again_what_was_folded(
        &mut self,
        told: &[(Tells, EntryId)],
        most: u64,
    ) -> Result<(), TranscriptError> {
        let sent: HashSet<EntryId> = self.session.history.view().entry_ids().collect();
        let gone = |tells: &Tells| told.iter().any(|(other, id)| other == tells && !sent.contains(id));
        let mut chars_left = usize::try_from(most).unwrap_or(usize::MAX).saturating_mul(CHARS_PER_TOKEN);
        let todos = self.todo_lines();
        if gone(&Tells::List) && !todos.is_empty() {
            let words = told_todos(&todos);
            chars_left = chars_left.saturating_sub(words.chars().count());
            self.attach(&Attachment::reminder(AttachmentKind::Todos, Vec::new(), &[words])).await?;
        }
        let cwd = self.bench.cx.cwd.clone();
        let real = |path: &PathBuf| cwd.join(path).canonicalize().unwrap_or_default();
        let gone: HashSet<PathBuf> = told
            .iter()
            .filter_map(|(tells, id)| match tells {
                Tells::File(path) if !sent.contains(id) => Some(real(path)),
                _ => None,
            })
            .collect();
        let files = self.files(chars_left, |path| gone.contains(path)).await;
        if files.is_empty() {
            return Ok(());
        }
        let paths = files.iter().map(|(path, _)| PathBuf::from(path)).collect();
        let words = told_files(&files);
        self.attach(&Attachment::reminder(AttachmentKind::FilesAgain, paths, &[words])).await
    }

    fn todo_lines(&self) -> Vec<String> {
        let kept = &self.session.kept;
        kept.todos.iter().map(Todo::line).chain(kept.tasks.lines()).collect()
    }

    /// The files that were read or written last, as they are now, in at most so many characters. What cannot be read as text
    /// is left out.
    async fn files(&mut self, chars_max: usize, wanted: impl Fn(&Path) -> bool) -> Vec<(String, String)> {
        let mut chars_left = chars_max;
        let mut files = Vec::new();
        for path in self.files_used_last().into_iter().filter(|path| wanted(path)) {
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
        let mut paths: Vec<PathBuf> = cx
            .files
            .newest(FILES_REATTACHED_MAX * 2)
            .into_iter()
            .map(|(path, _)| path.to_path_buf())
            .collect();
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
        let line = |task: &BackgroundTask| {
            let what = match task.kind {
                BackgroundKind::Agent => format!("the agent for \"{}\"", task.description),
                _ => task.command.clone(),
            };
            format!("- {}: {what} (its output goes to {})", task.id, task.output.display())
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

/// A request as it is told again. If it is long, all of its words are put into a file, for where they cannot be told.
async fn asked(request: Option<Request>, cx: &ToolCx) -> Option<Asked> {
    let request = request?;
    let words = request.words();
    let shown = Shown::of(&words, REQUEST_REATTACHED_CHARS_MAX);
    let mut short = None;
    let name = format!("request-{}", request.id);
    // A record may have only what was told of it last: then all of it is in that file already.
    if shown.omitted > 0 && !words.contains(&name) {
        let kept = spill::keep(&cx.spill_dir, &cx.secrets, &name, &words).await;
        short = Some(shown.with_note(kept.ok().as_deref()));
    }
    Some(Asked { id: request.id, blocks: request.blocks(), short })
}

/// The text of a file that is not too long to be looked at.
async fn text_of(path: &Path) -> Option<String> {
    let facts = tokio::fs::metadata(path).await.ok()?;
    if !facts.is_file() || facts.len() > READ_BYTES_MAX {
        return None;
    }
    let content = tokio::fs::read(path).await.ok()?;
    read::words_of(&content).map(Cow::into_owned)
}

/// Bytes of a file that is shown again in part at least.
const READ_BYTES_MAX: u64 = 1024 * 1024;
