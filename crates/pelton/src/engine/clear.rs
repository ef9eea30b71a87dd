//! `/clear`: the conversation ends, and another one begins in its place, in the same engine. Whoever holds a handle to the
//! engine holds on to it; nothing of what was said, read or noted is left in what the model is sent.

use std::sync::{Arc, PoisonError};

use pelton_model::Prefix;
use pelton_model::stream::Sender;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::informed::BesideRecord;
use super::opening::Begun;
use super::{EndReason, Engine, gather};
use crate::event::Event;
use crate::file_history::FileHistory;
use crate::tools::builtin::tasks::Tasks;
use crate::tools::builtin::todo::Todos;
use crate::transcript::TranscriptError;
use crate::turn::live::CacheAudit;

impl Engine {
    /// Begins another conversation. `queued` are the prompts that asked for it. What there is to tell behind the
    /// submission's first event goes to `told`.
    pub(super) async fn clear(
        &mut self,
        queued: &[Uuid],
        cancel: &CancellationToken,
        events: &Sender<Event>,
        told: &mut Vec<Event>,
    ) -> Result<(), TranscriptError> {
        let _ = self.session_hooks(cancel).session_end(EndReason::Clear.name()).await;
        self.session.sync().await?;
        let from = self.session.id;
        (self.options.resume, self.options.session_id) = (None, None);
        let queue = self.queue.clone();
        // At one stroke: whatever fails or is cancelled, nothing is left of a conversation that is not there any more.
        let change = || {
            self.session = self.session.succeeded(&self.options);
            self.forget();
        };
        queue.moved_by(queued, change).await?;
        events.send(Event::Cleared { from, to: self.session.id }).await;
        let hooks = self.session_hooks(cancel);
        let stopped = self.begin_session("clear", &hooks, cancel, told).await;
        told.extend(stopped.map(|content| Event::Informational { content, prevents_continuation: false }));
        self.renew_prefix();
        Ok(())
    }

    /// Everything that belongs to the conversation is as at the beginning of one.
    fn forget(&mut self) {
        let options = &self.options;
        self.beside = BesideRecord::of(&self.kin, &self.session, options);
        if let (Some(history), Some(sessions), Some(limits)) =
            (&mut self.kin.file_history, &options.sessions, &options.file_history)
        {
            let world = Arc::clone(&options.world);
            *history = FileHistory::of_session(&sessions.config_dir, self.session.id, limits.clone(), world);
        }
        self.cwd.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&options.cwd);
        options.files.forget();
        self.file_news.forget(options.files.now());
        self.memory = gather::memory(options, &self.kin.permissions);
        self.skills.forget();
        self.kin.hooks.forget_skills();
        self.offer.forget();
        self.question.prefix = Arc::new(Prefix::default());
        (self.todos, self.tasks) = (Todos::default(), Tasks::default());
        self.cache = CacheAudit::default();
        (self.begun, self.has_gathered, self.plan_told) = (Begun::No, false, false);
        self.to_tell.forget();
        self.kin.spending.begin_anew();
    }
}
