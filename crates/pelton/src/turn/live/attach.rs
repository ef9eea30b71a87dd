//! I11: what the model is told beside the results, before it is asked again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Live;
use crate::context::attachment::{Attachment, AttachmentKind};
use crate::context::memory::Memory;
use crate::context::reminder;
use crate::event::Event;
use crate::file_history::Beside;
use crate::hooks::{Arrived, HookEvent, WatchedFiles};
use crate::limits::SETTINGS_LOOK_INTERVAL;
use crate::queue::Held;
use crate::reload;
use crate::skills::{Called, Skills};
use crate::tools::bench::HookWords;
use crate::tools::changed::{Changed, ChangedFiles, Which};
use crate::tools::file_memory::Moment;
use crate::tools::mentions::{Mentioned, attachments};
use crate::tools::offer::Callable;
use crate::transcript::TranscriptError;

/// What is noticed around the conversation, and what of it the model, or a hook, was told.
pub(crate) struct Noticed<'a> {
    pub memory: Memory,
    pub skills: Skills,
    /// Characters that may be spent on telling what skills there are.
    pub listing_chars_max: usize,
    pub files: &'a mut FileNews,
    /// When files of settings were looked at last.
    pub settings_looked_at: Option<Duration>,
}

/// What of files is news: to the model, to the record, to hooks.
pub(crate) struct FileNews {
    pub changed: ChangedFiles,
    /// The files that hooks want to hear of.
    pub watched: WatchedFiles,
    /// Files read since then have not brought what they bring.
    pub told: Moment,
    /// The record does not say what files read since then hold.
    pub noted: Moment,
}

impl FileNews {
    pub fn since(now: Moment) -> Self {
        let (changed, watched) = (ChangedFiles::default(), WatchedFiles::default());
        Self { changed, watched, told: now, noted: now }
    }

    /// Another conversation begins, which knows no file. Hooks want to hear of theirs all the same.
    pub fn forget(&mut self, now: Moment) {
        *self = Self { watched: self.watched.clone(), ..Self::since(now) };
    }
}

impl Live<'_> {
    /// Appends what has changed around the conversation since the model was last asked. Nothing is spliced in: what
    /// was sent stays as it is.
    pub(super) async fn attach_changes(&mut self) -> Result<(), TranscriptError> {
        self.heed_settings().await;
        let rules = self.bench.permissions.rules();
        self.offer.shelve(|name| rules.removes(name));
        let view = self.session.history.view();
        if let Some(news) = self.offer.news(Callable::FromTheNextPromptOn, |words| view.tells(words)) {
            self.attach(&Attachment::served(self.offer.told(), news)).await?;
        }
        self.attach_changed_files().await?;
        self.attach_memory().await?;
        self.tell_hooks_of_files().await;
        self.attach_skills().await?;
        if let Some(words) = self.bench.cx.todos.turn_passed() {
            self.attach(&Attachment::reminder(AttachmentKind::Todos, Vec::new(), &[words])).await?;
        }
        // What hooks said that nobody waited for.
        let mut contexts = Vec::new();
        for Arrived { run, context, messages, wakes } in self.bench.hooks.hooks.take_arrived() {
            contexts.extend(context.into_iter().chain(wakes));
            self.tell_hooks(HookWords { messages, runs: vec![run], ..HookWords::default() }).await;
        }
        self.tell_background().await;
        contexts.extend(self.bench.cx.background.news_for_model());
        if !contexts.is_empty() {
            self.remind(&contexts).await?;
        }
        self.attach_prompts().await
    }

    /// Prompts that want to be read with the next question.
    pub(super) async fn attach_prompts(&mut self) -> Result<(), TranscriptError> {
        while let Some(held) = self.queue.take_for_question() {
            if self.cancel.is_cancelled() {
                break;
            }
            self.attach_prompt(held).await?;
        }
        Ok(())
    }

    /// Tells the model what hooks and the background have to say. That is no turn of anybody.
    pub(super) async fn remind(&mut self, words: &[String]) -> Result<(), TranscriptError> {
        let entry = self.session.record_prompt(&reminder(words), true)?;
        self.events.send(Event::Attachment(entry)).await;
        Ok(())
    }

    /// Records what is told beside the conversation, and tells of it.
    pub(super) async fn attach(&mut self, attachment: &Attachment) -> Result<(), TranscriptError> {
        let entry = self.session.record_attachment(attachment)?;
        self.events.send(Event::Attachment(entry)).await;
        Ok(())
    }

    /// Files that are not any more what the model read.
    async fn attach_changed_files(&mut self) -> Result<(), TranscriptError> {
        let which = if self.may_have_written() { Which::Likely } else { Which::InPassing };
        let changed =
            self.noticed.files.changed.look(&self.bench.cx.files, which, self.world.monotonic()).await;
        self.session.heard_of_files(&changed);
        match attachment_of(changed) {
            Some(attachment) => self.attach(&attachment).await,
            None => Ok(()),
        }
    }

    /// Whether calls of the last answer, or something in the background, may have changed files.
    fn may_have_written(&self) -> bool {
        self.executor.has_touched_anything() || !self.bench.cx.background.running().is_empty()
    }

    /// Settings that have changed count from here on. Agents go by what their session goes by.
    async fn heed_settings(&mut self) {
        let Some(watch) = self.options.settings_watch.clone() else { return };
        let bench = Arc::clone(&self.bench);
        if bench.hooks.base.agent_id.is_some() {
            return;
        }
        let now = self.world.monotonic();
        let is_just_done =
            self.noticed.settings_looked_at.is_some_and(|at| now.saturating_sub(at) < SETTINGS_LOOK_INTERVAL);
        // Hooks of calls may have changed them, whatever the calls did.
        let are_heard =
            [HookEvent::PreToolUse, HookEvent::PostToolUse].iter().any(|event| bench.hooks.listens(*event));
        if is_just_done && !are_heard && !self.may_have_written() {
            return;
        }
        self.noticed.settings_looked_at = Some(now);
        for event in reload::heed(&*watch, &bench.hooks, &bench.permissions, &bench.cwd_now()).await {
            self.events.send(event).await;
        }
    }

    /// Tells hooks of instruction files that the model is about to be told, and of files that they watch.
    async fn tell_hooks_of_files(&mut self) {
        let bench = Arc::clone(&self.bench);
        let cwd = bench.cwd_now();
        let mut all = Vec::new();
        for instructed in self.noticed.memory.take_instructed() {
            all.extend(bench.hooks.instructed(&instructed, &cwd).await);
        }
        for (file, what) in self.noticed.files.watched.look() {
            let fired = bench.hooks.file_changed(&file, what, &cwd).await;
            fired.iter().for_each(|fired| self.noticed.files.watched.add_named(&fired.verdict.extras, &cwd));
            all.extend(fired);
        }
        for fired in all {
            let messages = fired.verdict.messages;
            self.tell_hooks(HookWords { messages, runs: fired.runs, ..HookWords::default() }).await;
        }
    }

    /// Skills that the model called for, and those that have come.
    async fn attach_skills(&mut self) -> Result<(), TranscriptError> {
        for Called { file, text, loan, model, effort } in self.noticed.skills.take_called() {
            self.bench.permissions.lend_more(&loan);
            if let Some(model) = model {
                self.ask_from_now_on(&model).await;
            }
            self.question.effort = effort.or(self.question.effort);
            if !text.is_empty() {
                self.attach(&Attachment::skill(file, text)).await?;
            }
        }
        match self.noticed.skills.news(self.noticed.listing_chars_max) {
            Some(news) => self.attach(&news).await,
            None => Ok(()),
        }
    }

    /// The text of a skill that the model is following, and that is not among what it is sent any more.
    pub(super) async fn attach_skill_again(
        &mut self,
        file: PathBuf,
        text: String,
    ) -> Result<(), TranscriptError> {
        self.noticed.skills.was_read(&file, &text);
        self.attach(&Attachment::skill(file, text)).await
    }

    /// Memory of the directories that files were read in, and rules about those files.
    async fn attach_memory(&mut self) -> Result<(), TranscriptError> {
        let files = &self.bench.cx.files;
        let read = files.used_since(self.noticed.files.told);
        self.noticed.files.told = files.now();
        self.noticed.skills.touched(&read).await;
        for attachment in self.noticed.memory.touched(read).await {
            self.attach(&attachment).await?;
        }
        for content in self.noticed.memory.take_notices() {
            self.events.send(Event::Informational { content, prevents_continuation: false }).await;
        }
        Ok(())
    }

    /// Tells of commands that were started in the background, and of those that have ended.
    pub(super) async fn tell_background(&mut self) {
        for news in self.bench.cx.background.news() {
            self.events.send(Event::Background(news)).await;
        }
    }

    /// Z7: a prompt that came while tools ran. It is treated like any other, except that it calls no command.
    async fn attach_prompt(&mut self, held: Held) -> Result<(), TranscriptError> {
        let Some(prompt) = held.prompt() else { return Ok(()) };
        let bench = Arc::clone(&self.bench);
        let mut contexts = Vec::new();
        let mut refused = None;
        if let Some(fired) = bench.hooks.prompt(&prompt.words()).await {
            let verdict = fired.verdict;
            contexts = verdict.contexts;
            refused = verdict.stop.or(verdict.block);
            let words = HookWords { messages: verdict.messages, runs: fired.runs, ..HookWords::default() };
            self.tell_hooks(words).await;
        }
        if self.cancel.is_cancelled() {
            // It goes on waiting.
            return Ok(());
        }
        let ids = held.ids();
        match refused {
            // The run was there before the prompt: a hook that refuses it does not end that.
            Some(content) => {
                held.settle();
                self.events.send(Event::Informational { content, prevents_continuation: false }).await;
            }
            None => {
                let Mentioned { attached, problems } = match prompt.verbatim {
                    true => Mentioned::default(),
                    false => {
                        let library = self.offer.library();
                        attachments(&prompt.words(), &bench.permissions, library, &bench.cx_now()).await
                    }
                };
                contexts.extend(problems.iter().cloned());
                for content in problems {
                    self.events.send(Event::Informational { content, prevents_continuation: false }).await;
                }
                let prompt = prompt.made_to_fit().await;
                self.session.record_around(&contexts, &attached)?;
                let entry = self.session.record_input(&prompt, &ids, None, bench.permissions.mode())?;
                held.settle();
                let message = entry.id;
                self.events.send(Event::Prompt(entry)).await;
                if let Some(history) = &bench.file_history
                    && let Some(content) = history.mark(message, Beside::of(&bench.cx.background)).await
                {
                    self.events.send(Event::Informational { content, prevents_continuation: false }).await;
                }
            }
        }
        self.tally.consumed.extend(&ids);
        self.events.send(Event::PromptsConsumed(ids)).await;
        Ok(())
    }
}

/// What is told of files that changed.
pub(crate) fn attachment_of(changed: Vec<Changed>) -> Option<Attachment> {
    let (files, words): (Vec<_>, Vec<_>) =
        changed.into_iter().map(|changed| (changed.path, changed.words)).unzip();
    (!files.is_empty()).then(|| Attachment::reminder(AttachmentKind::ChangedFiles, files, &words))
}
