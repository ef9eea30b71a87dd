//! I1: the cascade before every call. Each level is planned by `compact`, recorded, made, and told; each does nothing
//! unless those before it were not enough.

use std::time::Duration;

use super::Live;
use super::compact::{Attempt, Summed};
use super::fold::Folding;
use super::usage::{Around, context_usage};
use crate::compact::auto::Keep;
use crate::compact::breaker::Breaker;
use crate::compact::usage::breakdown;
use crate::compact::{ContextUsage, Level, local, micro, weight};
use crate::context::tools_by_server;
use crate::event::{Boundary, ContextEvent, Event, LoopKind, Trigger};
use crate::history::{Change, Edit, EditId, Entry, result};
use crate::limits::RESULT_CUT_CHARS;
use crate::session::{Made, Must};
use crate::spill::Shown;
use crate::transcript::TranscriptError;
use crate::turn::decide::Blocked;
use std::sync::Arc;

/// What was done in this submission to keep what is sent small.
#[derive(Default)]
pub(crate) struct Shaping {
    /// C3: finished stretches that are being folded.
    pub folding: Folding,
    /// C6: what was tried to make the context smaller.
    pub breaker: Breaker,
    /// That it is not tried any more was said.
    pub breaker_told: bool,
    /// That there is nothing to sum up was said.
    pub nothing_told: bool,
    /// That no fold was ready when one was needed was said.
    pub no_folds_told: bool,
    /// C9: a hook does not want the conversation to be summed up.
    pub refused_by_hook: bool,
    /// C2 found too little to clear, and looks again from so many tokens on.
    pub micro_again_at: u64,
    /// C3 found nothing to fold, and looks again from so many tokens on.
    pub fold_again_at: u64,
    /// Boundaries that are told later, by whoever asked for them.
    pub held: Option<Vec<Event>>,
}

impl Shaping {
    /// With this model to make folds, if they are wanted.
    pub fn with_folder(model: Option<String>) -> Self {
        Self { folding: Folding::by(model), ..Self::default() }
    }
}

impl Live<'_> {
    /// Makes what will be sent fit, level by level. Tells why the model must not be asked, if so.
    pub(super) async fn cascade(&mut self) -> Result<Option<Blocked>, TranscriptError> {
        self.weigh_results().await?;
        self.limit_media().await;
        if !self.options.compact.enabled || !self.options.compact.auto {
            return Ok(None);
        }
        self.microcompact().await?;
        self.collapse().await?;
        if let Some(blocked) = self.autocompact().await? {
            return Ok(Some(blocked));
        }
        if !self.room.fits(self.used()) && !self.shaping.refused_by_hook {
            if self.shaping.breaker.wanted(self.turn) && self.shaping.breaker.is_refilling() {
                return Ok(Some(self.refilled().await));
            }
            let keep = self.room.window_tokens * local::KEEP_PERCENT / 100;
            if self.make_sendable(keep, Enough::Fits, "the window is full").await? {
                self.shaping.breaker.made_room(self.turn);
            }
        }
        Ok(None)
    }

    /// C6: what was done about a full context has helped for no more than a turn, again and again.
    async fn refilled(&mut self) -> Blocked {
        let why = format!("The context fills again as fast as it is emptied. {}", self.breakdown());
        self.note(LoopKind::Compaction, why.clone()).await;
        self.last.full = Some(why);
        Blocked::Refilled
    }

    /// C2: old bulky results lose their words.
    async fn microcompact(&mut self) -> Result<(), TranscriptError> {
        let used = self.used();
        let threshold = self.room.percent(self.options.compact.micro_percent);
        if used < threshold || used < self.shaping.micro_again_at {
            return Ok(());
        }
        let outline = self.session.history.view().outline();
        match micro::plan(&outline, used, self.room, self.options.compact.micro_percent) {
            micro::Plan::Clear(calls) => {
                let why = format!("{} old results were cleared", calls.len());
                let calls = calls.iter().map(ToString::to_string).collect();
                self.edit(Level::Microcompact, Edit::Clear { calls }, &why).await?;
            }
            micro::Plan::TooLittle { tokens } => {
                // Said once, and looked at again when there is more.
                self.shaping.micro_again_at = used + self.room.percent(MICRO_STEP_PERCENT);
                let why = format!(
                    "microcompact did not run: {used} tokens are in use, but only {tokens} of them are old results"
                );
                self.note(LoopKind::Compaction, why).await;
            }
        }
        Ok(())
    }

    /// C4: a summary takes the place of what was said, if everything before was not enough.
    async fn autocompact(&mut self) -> Result<Option<Blocked>, TranscriptError> {
        let used = self.used();
        if used < self.room.percent(self.options.compact.auto_percent) {
            return Ok(None);
        }
        if let Some(why) = self.shaping.breaker.open() {
            if !std::mem::replace(&mut self.shaping.breaker_told, true) {
                let why = format!("autocompact did not run: {why}");
                self.note(LoopKind::Compaction, why).await;
            }
            return Ok(None);
        }
        if self.shaping.refused_by_hook {
            return Ok(None);
        }
        self.shaping.breaker.wanted(self.turn);
        if self.shaping.breaker.is_refilling() {
            return Ok(Some(self.refilled().await));
        }
        let aggressive = used >= self.room.percent(self.options.compact.aggressive_percent);
        let keep = if aggressive { Keep::Little } else { Keep::Some };
        let attempt =
            Attempt { level: Level::Autocompact, trigger: Trigger::Auto, keep, wishes: None, over: None };
        Ok(match self.sum_up(attempt).await? {
            Summed::Smaller => {
                self.shaping.breaker.worked(self.turn);
                if self.used() >= self.room.percent(self.options.compact.auto_percent) {
                    // What cannot be summed up fills it: that will be so the next time, too.
                    self.give_up_summing(
                        "The conversation was summed up, and the context is still nearly full",
                    )
                    .await;
                }
                None
            }
            Summed::NoSmaller(why) => {
                self.give_up_summing(&format!("The conversation was summed up in vain: {why}")).await;
                None
            }
            Summed::Hopeless(why) => {
                self.give_up_summing(&format!("There can be no summary: {why}")).await;
                None
            }
            Summed::Failed(why) => {
                self.shaping.breaker.failed();
                self.note(LoopKind::Compaction, format!("autocompact failed: {why}")).await;
                None
            }
            Summed::Nothing => {
                // There will be more; until then it is said once.
                if !std::mem::replace(&mut self.shaping.nothing_told, true) {
                    let why = "autocompact did not run: there is nothing old to sum up".to_owned();
                    self.note(LoopKind::Compaction, why).await;
                }
                None
            }
            Summed::Refused(why) => {
                self.shaping.refused_by_hook = true;
                self.note(LoopKind::Compaction, format!("autocompact did not run: a hook refused it: {why}"))
                    .await;
                None
            }
            Summed::Aborted => Some(Blocked::Aborted),
        })
    }

    /// Summing up cannot help: it is said once, with the figures, and not tried again before something new is said.
    async fn give_up_summing(&mut self, why: &str) {
        self.shaping.breaker.was_futile();
        let content = format!("{why}. {}", self.breakdown());
        self.note(LoopKind::Compaction, content.clone()).await;
        self.events.send(Event::Informational { content, prevents_continuation: false }).await;
    }

    /// The last step: leaves out the oldest rounds until about `keep` tokens are left, then cuts results, longest first, and
    /// leaves out images and documents, until that is enough. Tells whether anything became smaller.
    pub(super) async fn make_sendable(
        &mut self,
        keep: u64,
        enough: Enough,
        why: &str,
    ) -> Result<bool, TranscriptError> {
        let before = self.used();
        let outline = self.session.history.view().outline();
        if let Some(cut) = local::cut(&outline, before, keep) {
            let stays = self.overhead() + weight(&outline[outline.len() - cut.kept..]);
            let limit = match enough {
                Enough::Fits => self.room.percent(self.options.compact.aggressive_percent),
                Enough::Kept => keep,
            };
            let most = local::told_again_max(keep, stays);
            self.leave_out(cut, most, limit.saturating_sub(stays), why).await?;
        }
        let over = self.used().saturating_sub(keep);
        if over > 0 && !self.is_enough(enough, keep) {
            for call in local::longest(&self.session.history.view().outline(), over) {
                let Some(text) = self.cut_result(&call) else { continue };
                let why = format!("{why}: a long result was cut");
                self.edit(Level::Local, Edit::Shorten { call: call.to_string(), text }, &why).await?;
            }
        }
        let places = self.session.history.view().media_places();
        if !places.is_empty() && !self.is_enough(enough, keep) {
            let why = format!("{why}: {} images and documents were left out", places.len());
            self.edit(Level::Local, Edit::Media { places }, &why).await?;
        }
        Ok(self.used() < before)
    }

    fn is_enough(&self, enough: Enough, keep: u64) -> bool {
        match enough {
            Enough::Fits => self.room.fits(self.used()),
            Enough::Kept => self.used() <= keep,
        }
    }

    /// Makes an edit, records it, and tells what it freed. One that frees nothing is discarded, and that is told.
    pub(super) async fn edit(&mut self, level: Level, edit: Edit, why: &str) -> Result<(), TranscriptError> {
        let name = level.name();
        let not_done = match self.session.edit(level, &edit, Must::Shrink)? {
            Made::Done(id, change) => {
                self.tell_boundary(level, id, change, why, None, Duration::ZERO).await;
                return Ok(());
            }
            Made::NoSmaller(Change { before_tokens, after_tokens }) => {
                format!("{name} was discarded: {after_tokens} tokens would take the place of {before_tokens}")
            }
            Made::Nothing => format!("{name} did not run: what it is about is not there any more"),
        };
        self.note(LoopKind::Compaction, not_done).await;
        Ok(())
    }

    /// Tells what a level did: from which figure to which, and why.
    pub(super) async fn tell_boundary(
        &mut self,
        level: Level,
        edit: EditId,
        change: Change,
        why: &str,
        summary: Option<(Arc<Entry>, Trigger)>,
        duration: Duration,
    ) {
        let Change { before_tokens, after_tokens } = change;
        self.folded(before_tokens);
        // What could not be folded before may be now, and what is not sent any more needs no fold.
        self.shaping.fold_again_at = 0;
        self.shaping.folding.give_up_unless(self.session.history.view());
        let reason = format!(
            "{}: from about {before_tokens} to {after_tokens} tokens ({} % of the room before): {why}",
            level.name(),
            self.room.used_percent(before_tokens)
        );
        self.note(LoopKind::Compaction, reason.clone()).await;
        let trigger = summary.as_ref().map(|(_, trigger)| *trigger);
        let summary = summary.map(|(summary, _)| summary);
        let boundary =
            Boundary { edit, level, trigger, before_tokens, after_tokens, reason, summary, duration };
        let event = Event::Context(ContextEvent::Boundary(Arc::new(boundary)));
        match &mut self.shaping.held {
            Some(held) => held.push(event),
            None => self.events.send(event).await,
        }
    }

    /// What the next request takes: the one figure that is shown, told and acted on.
    pub(super) fn used(&self) -> u64 {
        self.session.history.view().tokens()
    }

    /// What of it is system prompt and tools.
    pub(super) fn overhead(&self) -> u64 {
        self.session.history.view().overhead_tokens()
    }

    /// Where the tokens are.
    pub(super) fn usage(&self) -> ContextUsage {
        let around = Around {
            model: &self.question.model,
            room: self.room,
            compact: &self.options.compact,
            system_bytes: self.question.prefix.system.len(),
            tools_bytes: tools_by_server(&self.tools),
            cache: self.cache,
            prices: &self.options.prices,
            kept: self.question.cache,
        };
        context_usage(self.session.history.view(), &around)
    }

    /// Where the tokens are, in a line.
    pub(super) fn breakdown(&self) -> String {
        let usage = self.usage();
        format!(
            "In use are {} of {} tokens: {}",
            usage.used_tokens,
            usage.window_tokens,
            breakdown(&usage.shares)
        )
    }

    /// About how much could be freed if the API refuses.
    pub(super) fn could_free(&self) -> u64 {
        if !self.options.compact.enabled {
            return 0;
        }
        local::could_free(&self.session.history.view().outline())
    }

    fn cut_result(&self, call: &str) -> Option<String> {
        let view = self.session.history.view();
        let words = result::words(view.result_of(call)?.as_ref())?;
        let shown = Shown::of(&words, RESULT_CUT_CHARS);
        (shown.omitted > 0).then(|| shown.with_note(None))
    }
}

/// When the last step has done enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Enough {
    /// What is left fits, by our own figure.
    Fits,
    /// No more is left than should be: our own figure was wrong.
    Kept,
}

/// C2 is looked at again when so much more is in use, in percent of the room.
const MICRO_STEP_PERCENT: u8 = 5;
