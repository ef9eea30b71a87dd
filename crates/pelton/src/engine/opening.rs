//! How a session begins: its hooks run, and what they and others say waits for the prompt that is recorded next.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::input::tell;
use crate::event::Event;
use crate::hooks::{Arrived, Fired, SessionHooks};

/// How far the hooks of the session's start have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begun {
    /// They are to run.
    No,
    /// An interrupt cut them: they are to run again.
    InPart,
    /// They have run.
    Whole,
}

/// What is told once, with the prompt that is recorded next or with the submission that it is part of.
#[derive(Default)]
pub(super) struct ToTell {
    /// What hooks said to the model.
    pub contexts: Vec<String>,
    /// What they say in front of the first prompt.
    pub initial_message: Option<String>,
    /// They brought skills.
    pub skills_came: bool,
    /// What they want the session to be called.
    pub title: Option<String>,
    /// What the user has to know.
    pub notice: Option<String>,
    /// Directories that have joined: the model is told their memory files.
    pub roots: Vec<PathBuf>,
    /// Agents in the background of the process that had this session before. The model waits for them in vain.
    pub lost_agents: Vec<String>,
}

impl ToTell {
    /// Another conversation begins: what was to be told in this one is nobody's. What concerns the process is kept.
    pub fn forget(&mut self) {
        self.contexts.clear();
        self.initial_message = None;
    }
}

impl Engine {
    /// How the session begins, as hooks of its start are told.
    pub(super) fn beginning(&self) -> &'static str {
        match self.options.resume {
            None => "startup",
            Some(_) if self.options.is_fork => "fork",
            Some(_) => "resume",
        }
    }

    /// The hooks of the session's start, once in its life unless an interrupt cut them. Their words wait for the first
    /// prompt that is recorded. `Some` if one of them lets nothing follow, with its reason.
    pub(super) async fn begin_session(
        &mut self,
        source: &str,
        hooks: &SessionHooks,
        cancel: &CancellationToken,
        told: &mut Vec<Event>,
    ) -> Option<String> {
        if self.begun == Begun::Whole {
            return None;
        }
        self.begun = Begun::InPart;
        self.make_room_for_variables();
        let cwd = self.cwd();
        self.file_news.watched.add(self.kin.hooks.watched_names().into_iter().map(|name| cwd.join(name)));
        let mut contexts = Vec::new();
        let (mut initial, mut skills_came, mut stop) = (None, false, None);
        let set_up = match self.options.setup {
            Some(setup) => hooks.set_up(setup.name()).await,
            None => None,
        };
        let started = hooks.session_start(source, &self.options.model).await;
        if (set_up.is_none() && started.is_none()) || !cancel.is_cancelled() {
            self.begun = Begun::Whole;
        }
        for mut fired in set_up.into_iter().chain(started) {
            stop = stop.or(fired.verdict.stop.take());
            self.heed_title(Some(&fired));
            contexts.extend(fired.verdict.contexts.iter().cloned());
            let extras = &fired.verdict.extras;
            let message = extras.get("initialUserMessage").and_then(Value::as_str);
            let message =
                message.filter(|words| self.options.heeds_initial_message && !words.trim().is_empty());
            initial = message.map(str::to_owned).or(initial);
            skills_came |= extras.get("reloadSkills") == Some(&Value::Bool(true));
            self.file_news.watched.add_named(extras, &cwd);
            tell(fired, told);
        }
        if self.begun == Begun::Whole {
            // Others may wait for the same prompt.
            self.to_tell.contexts.extend(contexts);
            (self.to_tell.initial_message, self.to_tell.skills_came) = (initial, skills_came);
        }
        stop
    }

    /// A hook may say what the session is called.
    pub(super) fn heed_title(&mut self, fired: Option<&Fired>) {
        let title = fired.and_then(|fired| fired.verdict.extras.get("sessionTitle")?.as_str());
        if let Some(title) = title.map(str::trim).filter(|title| !title.is_empty()) {
            self.to_tell.title = Some(title.to_owned());
        }
    }

    /// What hooks said since the last submission that nobody waited for. Their words wait for the prompt, too.
    pub(super) fn hear_background(&mut self, hooks: &SessionHooks, told: &mut Vec<Event>) {
        for Arrived { run, context, messages, wakes } in hooks.hooks.take_arrived() {
            self.to_tell.contexts.extend(context.into_iter().chain(wakes));
            let said = messages.into_iter();
            told.push(Event::Hook(Arc::new(run)));
            told.extend(said.map(|content| Event::Informational { content, prevents_continuation: false }));
        }
    }

    /// Tells hooks of instruction files that the model is about to be told, and of files that they watch.
    pub(super) async fn hear_files(&self, hooks: &SessionHooks, told: &mut Vec<Event>) {
        let cwd = self.cwd();
        for instructed in self.memory.take_instructed() {
            if let Some(fired) = hooks.instructed(&instructed, &cwd).await {
                tell(fired, told);
            }
        }
        for (file, what) in self.file_news.watched.look() {
            if let Some(fired) = hooks.file_changed(&file, what, &cwd).await {
                self.file_news.watched.add_named(&fired.verdict.extras, &cwd);
                tell(fired, told);
            }
        }
    }
}
