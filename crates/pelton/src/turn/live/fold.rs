//! C3: folds. The small model shortens finished stretches while the turn goes on; what is ready waits until it is
//! needed. Nobody waits for a fold, except instead of a summary of everything.

use futures::FutureExt;
use futures::future::BoxFuture;

use super::Live;
use crate::aside::Told;
use crate::compact::collapse::{Fold, Stretch, is_gain, shown, stretch};
use crate::compact::{FOLD, Level, micro};
use crate::context::attachment::{AttachmentFacts, AttachmentKind};
use crate::event::LoopKind;
use crate::history::{By, Edit, Entry, View};
use crate::limits::{FOLD_TOKENS_MAX, FOLDS_STAGED_MAX};
use crate::transcript::TranscriptError;
use crate::turn::side::{self, SideQuestion};
use crate::turn::spending::Wish;

/// Where nothing could be folded, it is looked at again when so much more is in use, in percent of the room.
const FOLD_STEP_PERCENT: u8 = 1;

/// What is told again behind folds is at most this part of what they freed.
const TOLD_AGAIN_PART: u64 = 4;

/// The folds of one submission that are being made.
#[derive(Default)]
pub(crate) struct Folding {
    /// Who makes them; nobody if they are not wanted.
    model: Option<String>,
    pending: Option<Pending>,
    made: Option<(Stretch, Option<String>)>,
}

struct Pending {
    stretch: Stretch,
    asked: BoxFuture<'static, Option<String>>,
}

impl Folding {
    /// Made by this model, if by any.
    pub fn by(model: Option<String>) -> Self {
        Self { model, ..Self::default() }
    }

    /// Makes what is being made advance. Returns when it is made; never if nothing is. Cancel-safe.
    pub(super) async fn advance(&mut self) {
        let Some(pending) = &mut self.pending else { return std::future::pending().await };
        let words = pending.asked.as_mut().await;
        self.made = self.pending.take().map(|pending| (pending.stretch, words));
    }

    /// Gives up what is being made of something that is not sent any more.
    pub(super) fn give_up_unless(&mut self, view: &View) {
        let is_sent = |stretch: Stretch| !view.entries_between(stretch.from, stretch.to).is_empty();
        self.pending.take_if(|pending| !is_sent(pending.stretch));
    }

    /// Gives up what is being made. Tells whether there was anything.
    pub(super) fn give_up(&mut self) -> bool {
        self.pending.take().is_some()
    }
}

impl Live<'_> {
    /// Uses folds that are ready if they are needed, and has another made if that will be needed.
    pub(super) async fn collapse(&mut self) -> Result<(), TranscriptError> {
        self.stage_made().await;
        if self.used() >= self.room.percent(self.options.compact.auto_percent)
            && self.shaping.folding.pending.is_some()
        {
            // The alternative is to wait for a summary of everything.
            let cancel = self.cancel.clone();
            cancel.run_until_cancelled(self.shaping.folding.advance()).await;
            self.stage_made().await;
        }
        if self.used() >= self.room.percent(self.options.compact.collapse_percent) {
            if self.session.folds.is_empty() && !std::mem::replace(&mut self.shaping.no_folds_told, true) {
                let why = "collapse did not run: no folds are ready".to_owned();
                self.note(LoopKind::Compaction, why).await;
            }
            self.commit_folds("folds were ready").await?;
        }
        if self.used() >= self.room.percent(self.options.compact.stage_percent) {
            self.ask_for_fold().await;
        }
        Ok(())
    }

    /// T2: everything that is ready is used, and every old result cleared. Tells whether the context became smaller.
    pub(super) async fn drain_folds(&mut self) -> Result<bool, TranscriptError> {
        if !self.options.compact.enabled {
            return Ok(false);
        }
        let before = self.used();
        self.stage_made().await;
        self.commit_folds("the API refused the prompt").await?;
        let outline = self.session.history.view().outline();
        let calls: Vec<String> = micro::clearable(&outline).map(|(call, _)| call.to_string()).collect();
        if !calls.is_empty() {
            let why = format!("the API refused the prompt: {} old results were cleared", calls.len());
            self.edit(Level::Microcompact, Edit::Clear { calls }, &why).await?;
        }
        Ok(self.used() < before)
    }

    async fn commit_folds(&mut self, why: &str) -> Result<(), TranscriptError> {
        let folds = std::mem::take(&mut self.session.folds);
        if folds.is_empty() {
            return Ok(());
        }
        let before = self.used();
        let told = self.told_last();
        for Fold { stretch: Stretch { from, to, tokens }, words } in folds {
            let edit = Edit::Replace { from, to, by: By::Words(words) };
            let why = format!("{why}: a finished stretch of about {tokens} tokens was folded");
            self.edit(Level::Collapse, edit, &why).await?;
        }
        // What rules say of a file comes with it again; a skill that is being followed does not come by itself.
        for (file, text) in self.know_what_is_sent().await {
            self.attach_skill_again(file, text).await?;
        }
        let freed = before.saturating_sub(self.used());
        self.tell_again_what_was_folded(&told, freed / TOLD_AGAIN_PART).await
    }

    /// What was made is kept until it is needed, if it is of use.
    async fn stage_made(&mut self) {
        let Some((stretch, said)) = self.shaping.folding.made.take() else { return };
        let entries = self.session.history.view().entries_between(stretch.from, stretch.to);
        if entries.is_empty() {
            // Something else was done about it in the meantime.
            return;
        }
        let Some(said) = said.filter(|said| !said.trim().is_empty()) else {
            self.shaping.breaker.fold_failed();
            return self.note(LoopKind::Compaction, "a fold could not be made".to_owned()).await;
        };
        let fold = Fold::new(stretch, &said, &entries);
        // Texts of skills are told again behind it.
        let skills = entries.iter().filter(|entry| is_skill(entry)).map(|entry| entry.words());
        let view = self.session.history.view();
        let tokens = view.tokens_of(&fold.words) + skills.map(|text| view.tokens_of(&text)).sum::<u64>();
        if !is_gain(tokens, stretch) {
            self.shaping.breaker.fold_failed();
            let why = format!("a fold was thrown away: {tokens} tokens for {}", stretch.tokens);
            return self.note(LoopKind::Compaction, why).await;
        }
        let why = format!("a fold is ready: about {tokens} tokens for {}", stretch.tokens);
        self.session.folds.push(fold);
        self.note(LoopKind::Compaction, why).await;
    }

    async fn ask_for_fold(&mut self) {
        let Some(model) = self.shaping.folding.model.clone() else { return };
        if self.shaping.folding.pending.is_some()
            || self.session.folds.len() >= FOLDS_STAGED_MAX
            || !self.shaping.breaker.may_fold()
        {
            return;
        }
        let used = self.used();
        if used < self.shaping.fold_again_at {
            return;
        }
        let view = self.session.history.view();
        let after = self.session.folds.last().map(|fold| fold.stretch.to);
        let Some(stretch) = stretch(&view.outline(), self.room, after) else {
            self.shaping.fold_again_at = used + self.room.percent(FOLD_STEP_PERCENT);
            return;
        };
        let prompt = shown(&view.entries_between(stretch.from, stretch.to));
        let question = SideQuestion::in_background(model, FOLD, prompt, FOLD_TOKENS_MAX);
        let (ask, wish) = question.pay(&self.spending);
        let paid = match wish {
            Wish::Granted(paid) => paid,
            Wish::Later(why) | Wish::Refused(why) => {
                self.shaping.breaker.fold_failed();
                return self.note(LoopKind::Budget, format!("no fold is made: {why}")).await;
            }
        };
        let asked = side::ask(self.client.clone(), ask, paid, "a fold", self.beside_in.clone());
        let asked = asked.map(|answer| Told::from(answer.ok()?).whole_words()).boxed();
        self.shaping.folding.pending = Some(Pending { stretch, asked });
    }
}

/// Whether it is the text of a skill.
fn is_skill(entry: &Entry) -> bool {
    let facts = entry.detail.as_deref().and_then(AttachmentFacts::read);
    facts.is_some_and(|facts| facts.r#type == AttachmentKind::InvokedSkill)
}
