//! C4, C5, C7, C8, C9: a model sums up the conversation, and the summary takes the place of what was said. What must not
//! be lost is told again from where it comes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pelton_model::{Block, BlockKind, ErrorKind, ModelError};
use pelton_wire::stop::StopReason;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::answer::thinking_for;
use super::cascade::Enough;
use super::sources::ToldAgain;
use super::{INTERRUPTED, Live};
use crate::compact::auto::{Cut, InPlace, Keep};
use crate::compact::breaker::shrank;
use crate::compact::{Level, auto, local, micro, summary_request};
use crate::context::reminder;
use crate::event::{ContextEvent, Event, LoopKind, Trigger};
use crate::history::{By, Edit, Entry, Kind, LEFT_OUT, View};
use crate::hooks::Fired;
use crate::instructed::Instructed;
use crate::limits::{CONVERSATION_SUMMARY_CUTS_MAX, CONVERSATION_SUMMARY_TOKENS_MAX};
use crate::session::SummedUp;
use crate::status::Phase;
use crate::tools::bench::HookWords;
use crate::tools::file_memory::Moment;
use crate::transcript::TranscriptError;
use crate::turn::budget::prompt_tokens_max;
use crate::turn::decide::Compaction;
use crate::turn::side::{Answer, Came, Errand, Unanswered};
use crate::turn::spending::{Forecast, Wish};

/// A summary that somebody asked for is not compared with what it takes the place of, as long as it fills no more of the window.
const BY_HAND_PERCENT_ANYHOW: u8 = 5;

/// Why and how a conversation is to be summed up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt<'a> {
    pub level: Level,
    pub trigger: Trigger,
    pub keep: Keep,
    /// What the user wants the summary to look after.
    pub wishes: Option<&'a str>,
    /// What the API counted and would have taken, if it refused.
    pub over: Option<(u64, u64)>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Summed {
    /// The context is smaller.
    Smaller,
    /// The summary was thrown away: it would not have made it enough smaller.
    NoSmaller(String),
    /// There is nothing to sum up.
    Nothing,
    /// There is no summary, and why.
    Failed(String),
    /// There can be none as long as nothing else changes, and why.
    Hopeless(String),
    /// A hook said no.
    Refused(String),
    /// The user interrupted.
    Aborted,
}

/// Why there is no summary.
enum NoSummary {
    /// It was asked for in vain.
    Failed(String),
    /// What cannot be left out is too much by itself: nobody could read it, and nobody was asked.
    Hopeless,
}

/// How asking for a summary ended.
enum Asked {
    Summary(String),
    Failed(String),
    TooLong(Option<(u64, u64)>),
}

impl Live<'_> {
    /// C5: the API refused the prompt. A summary, or else the last step, makes it smaller.
    pub(super) async fn compact_after_refusal(&mut self) -> Result<Compaction, TranscriptError> {
        if self.last.unrecorded.is_some() {
            return Ok(Compaction::Aborted);
        }
        if !self.options.compact.enabled {
            self.note(LoopKind::Ladder, "compaction is off".to_owned()).await;
            return Ok(Compaction::NoSmaller);
        }
        let before = self.used();
        let kind = self.last.error.as_ref().map(|error| error.kind.clone());
        if matches!(kind, Some(ErrorKind::Image { .. } | ErrorKind::RequestTooLarge)) {
            let left_out = self.session.history.view_mut().leave_out_oldest_media(usize::MAX);
            self.session.note_media_left_out(&left_out);
            if !left_out.places.is_empty() {
                let reason = format!("{} images and documents were left out", left_out.places.len());
                self.note(LoopKind::Repair, reason).await;
                return Ok(Compaction::Smaller);
            }
        }
        let over = match kind {
            Some(ErrorKind::PromptTooLong { tokens, limit }) => tokens.zip(limit),
            _ => None,
        };
        let attempt = Attempt {
            level: Level::Reactive,
            trigger: Trigger::Auto,
            keep: Keep::Little,
            wishes: None,
            over,
        };
        let smaller = match self.sum_up(attempt).await? {
            Summed::Smaller => {
                self.shaping.breaker.worked(self.turn);
                if !self.room.fits(self.used()) {
                    self.shorten_after_refusal("a summary was not enough").await?;
                }
                true
            }
            Summed::Aborted => return Ok(Compaction::Aborted),
            Summed::Refused(why) => {
                self.note(LoopKind::Ladder, format!("a hook refused to have it compacted: {why}")).await;
                false
            }
            Summed::NoSmaller(why) | Summed::Failed(why) | Summed::Hopeless(why) => {
                self.note(LoopKind::Compaction, format!("no summary: {why}")).await;
                self.shorten_after_refusal(&why).await?
            }
            Summed::Nothing => self.shorten_after_refusal("there is nothing to sum up").await?,
        };
        let reason = match smaller {
            true => format!("compacted from about {before} to {} tokens", self.used()),
            false => "nothing could be left out".to_owned(),
        };
        self.note(LoopKind::Ladder, reason).await;
        Ok(if smaller { Compaction::Smaller } else { Compaction::NoSmaller })
    }

    /// The API counted more than we did: what it refused must become smaller by its own measure.
    async fn shorten_after_refusal(&mut self, why: &str) -> Result<bool, TranscriptError> {
        let keep = (self.room.window_tokens * local::KEEP_PERCENT / 100).min(self.used() / 2);
        self.make_sendable(keep, Enough::Kept, why).await
    }

    /// Has the conversation summed up, and puts the summary in its place if that makes it enough smaller.
    pub(crate) async fn sum_up(&mut self, attempt: Attempt<'_>) -> Result<Summed, TranscriptError> {
        let outline = self.session.history.view().outline();
        let Some(cut) = auto::cut(&outline, self.room, attempt.keep) else { return Ok(Summed::Nothing) };
        let began = self.world.monotonic();
        let bench = Arc::clone(&self.bench);
        let trigger = attempt.trigger.name();
        let mut wishes: Vec<String> = attempt.wishes.iter().map(ToString::to_string).collect();
        if let Some(fired) = bench.hooks.before_compaction(trigger, attempt.wishes).await {
            let refused = fired.verdict.stop.clone().or_else(|| fired.verdict.block.clone());
            wishes.extend(self.hear(fired).await);
            if let Some(why) = refused {
                return Ok(Summed::Refused(why));
            }
        }
        self.board.enter(Phase::Compact);
        self.events.send(Event::Context(ContextEvent::Compacting { trigger: attempt.trigger })).await;
        let cancel = self.cancel.clone();
        let wishes = (!wishes.is_empty()).then(|| wishes.join("\n"));
        let asked = cancel.run_until_cancelled(self.ask_for_summary(wishes.as_deref(), attempt.over)).await;
        let summed = match asked {
            None => {
                self.tell_compacted(Err("interrupted".to_owned())).await;
                self.interrupted(INTERRUPTED).await?;
                return Ok(Summed::Aborted);
            }
            Some(Err(NoSummary::Failed(why))) => Summed::Failed(why),
            Some(Err(NoSummary::Hopeless)) => Summed::Hopeless(TOO_LONG_FOR_ANYBODY.to_owned()),
            Some(Ok(summary)) => self.put_in_place(attempt, cut, &summary, began).await?,
        };
        match &summed {
            Summed::Failed(why) | Summed::Hopeless(why) | Summed::NoSmaller(why) => {
                self.tell_compacted(Err(why.clone())).await;
            }
            _ => {}
        }
        Ok(summed)
    }

    async fn put_in_place(
        &mut self,
        attempt: Attempt<'_>,
        cut: Cut,
        summary: &str,
        began: Duration,
    ) -> Result<Summed, TranscriptError> {
        let mut told = self.sources(cut).await;
        let summed_up = loop {
            let (blocks, facts) = told.told(InPlace::Summary(summary));
            let Some(summed_up) = self.session.summed_up(cut.from, cut.to, &blocks, facts) else {
                return Ok(Summed::Failed(NOT_THERE.to_owned()));
            };
            // A request that would fill the context again at once is told in part.
            let is_full = summed_up.after_tokens >= self.room.percent(self.options.compact.auto_percent);
            if !is_full || !told.sources.ask_less() {
                break summed_up;
            }
        };
        let (before, after) = (summed_up.before_tokens, summed_up.after_tokens);
        // System prompt and tools cannot become smaller; what can be has to.
        let overhead = self.overhead();
        let enough = match attempt.level {
            Level::Autocompact => shrank(before.saturating_sub(overhead), after.saturating_sub(overhead)),
            // Somebody wants it. Of a few exchanges it is longer than they are, and does no harm.
            Level::Manual if after.saturating_sub(overhead) <= self.room.percent(BY_HAND_PERCENT_ANYHOW) => {
                true
            }
            _ => after < before,
        };
        if !enough {
            self.know_what_is_sent().await;
            return Ok(Summed::NoSmaller(format!("{after} tokens would take the place of {before}")));
        }
        // What is said behind the boundary is all that whoever goes on reads.
        self.session.note_spent(&self.spending.by_model());
        let Some((id, change)) = self.session.compact(attempt.level, attempt.trigger, &summed_up)? else {
            return Ok(Summed::Failed(NOT_THERE.to_owned()));
        };
        self.session.sync().await?;
        // A reader begins here, and must know of all of them.
        self.noticed.files.noted = Moment::BEGINNING;
        self.offer.tell_anew(told.sources.shelved.is_some());
        let instructed = self.noticed.memory.take_instructed();
        self.know_what_is_sent().await;
        self.tell_compacted(Ok(())).await;
        let duration = self.world.monotonic().saturating_sub(began);
        let why = format!("a summary takes the place of all but the newest {} parts", cut.kept);
        let boundary = Some((summed_up.summary, attempt.trigger));
        self.tell_boundary(attempt.level, id, change, &why, boundary, duration).await;
        self.tell_shortened(&told).await;
        self.run_hooks_after(attempt.trigger, summary, &instructed).await?;
        Ok(Summed::Smaller)
    }

    /// What was asked for is not told whole, which nobody should have to find out.
    async fn tell_shortened(&mut self, told: &ToldAgain) {
        if let Some(content) = told.shortened_request() {
            self.events.send(Event::Informational { content, prevents_continuation: false }).await;
        }
    }

    /// The same without a summary: what must not be lost is told again, as far as `most` tokens go, or `limit` for what was asked
    /// for, and of the rest there is a note that it was left out. Discarded, and said so, if that makes nothing smaller.
    pub(super) async fn leave_out(
        &mut self,
        cut: Cut,
        most: u64,
        limit: u64,
        why: &str,
    ) -> Result<(), TranscriptError> {
        let (level, trigger) = (Level::Local, Trigger::Auto);
        let told = self.sources(cut).await;
        self.session.note_spent(&self.spending.by_model());
        let had_memory = told.sources.memory.is_some();
        let told = told.within(most, limit, self.session.history.view());
        let lost_memory = had_memory && told.sources.memory.is_none();
        let (blocks, facts) = told.told(InPlace::Note);
        let summed_up = self.session.summed_up(cut.from, cut.to, &blocks, facts);
        let not_done = match &summed_up {
            None => Some(format!("local did not run: {NOT_THERE}")),
            Some(SummedUp { before_tokens, after_tokens, .. }) if after_tokens >= before_tokens => Some(
                format!("local was discarded: {after_tokens} tokens would take the place of {before_tokens}"),
            ),
            Some(_) => None,
        };
        if let Some(reason) = not_done {
            self.note(LoopKind::Compaction, reason).await;
        } else if let Some(summed_up) = summed_up
            && let Some((id, change)) = self.session.compact(level, trigger, &summed_up)?
        {
            self.session.sync().await?;
            self.noticed.files.noted = Moment::BEGINNING;
            self.offer.tell_anew(told.sources.shelved.is_some());
            let why = format!("{why}: the oldest rounds were left out");
            let boundary = Some((summed_up.summary, trigger));
            self.tell_boundary(level, id, change, &why, boundary, Duration::ZERO).await;
            self.tell_shortened(&told).await;
            if lost_memory {
                let content = "The memory files are not sent any more: there is no room for them beside the newest of the \
                               conversation. The next start of this session tells them again.";
                let content = content.to_owned();
                self.events.send(Event::Informational { content, prevents_continuation: false }).await;
            }
            let mut instructed = self.noticed.memory.take_instructed();
            if told.sources.memory.is_none() {
                instructed.clear();
            }
            self.run_hooks_after(trigger, LEFT_OUT, &instructed).await?;
        }
        self.know_what_is_sent().await;
        Ok(())
    }

    /// C9: the hooks after a compaction, and those that hear of instruction files: these were read anew. What they say is told
    /// to the model, behind everything else.
    async fn run_hooks_after(
        &mut self,
        trigger: Trigger,
        summary: &str,
        instructed: &[Instructed],
    ) -> Result<(), TranscriptError> {
        let bench = Arc::clone(&self.bench);
        if let Some(fired) = bench.hooks.after_compaction(trigger.name(), summary).await {
            self.hear(fired).await;
        }
        let cwd = bench.cwd_now();
        for instructed in instructed {
            if let Some(fired) = bench.hooks.instructed(instructed, &cwd).await {
                self.hear(fired).await;
            }
        }
        if let Some(fired) = bench.hooks.session_start("compact", &self.question.model).await {
            let contexts = self.hear(fired).await;
            if !contexts.is_empty() {
                let entry = self.session.record_prompt(&reminder(&contexts), true)?;
                self.events.send(Event::Message(entry)).await;
            }
        }
        Ok(())
    }

    /// Tells of hooks, and gives what they want the model to know.
    async fn hear(&mut self, fired: Fired) -> Vec<String> {
        let verdict = fired.verdict;
        let words = HookWords { messages: verdict.messages, runs: fired.runs, ..HookWords::default() };
        self.tell_hooks(words).await;
        verdict.contexts
    }

    async fn tell_compacted(&mut self, ended: Result<(), String>) {
        self.events.send(Event::Context(ContextEvent::Compacted(ended))).await;
    }

    /// Asks for a summary behind the same conversation, so that the server has all of it in its cache. C7: if that is too
    /// long, the oldest rounds are left out of it, again and again, but not for ever.
    async fn ask_for_summary(
        &mut self,
        wishes: Option<&str>,
        over: Option<(u64, u64)>,
    ) -> Result<String, NoSummary> {
        let mut asking = self.session.history.view().clone();
        let answer = u64::from(CONVERSATION_SUMMARY_TOKENS_MAX).min(self.room.reserved_tokens);
        let mut most = self.room.window_tokens.saturating_sub(answer + self.room.answer_tokens);
        if let Some((counted, limit)) = over {
            let allowed = limit.saturating_sub(answer) as u128 * u128::from(asking.tokens());
            most = most.min(u64::try_from(allowed / u128::from(counted.max(1))).unwrap_or(most));
        }
        for cuts in 0..=CONVERSATION_SUMMARY_CUTS_MAX {
            shorten(&mut asking, most);
            if asking.tokens() > most && cuts == 0 {
                return Err(NoSummary::Hopeless);
            }
            if asking.tokens() > most {
                break;
            }
            match self.ask_once(asking.clone(), wishes).await {
                Asked::Summary(summary) => return Ok(summary),
                Asked::Failed(why) => return Err(NoSummary::Failed(why)),
                Asked::TooLong(over) => {
                    let tokens = asking.tokens();
                    most = match over {
                        Some((counted, limit)) => {
                            let allowed = u128::from(limit.saturating_sub(answer)) * u128::from(tokens);
                            u64::try_from(allowed / u128::from(counted.max(1))).unwrap_or(tokens)
                        }
                        None => tokens,
                    }
                    .min(tokens / 4 * 3);
                    let why =
                        format!("the conversation is too long to be summed up: down to about {most} tokens");
                    self.note(LoopKind::Compaction, why).await;
                }
            }
        }
        Err(NoSummary::Failed(TOO_LONG_FOR_ANYBODY.to_owned()))
    }

    async fn ask_once(&mut self, mut asking: View, wishes: Option<&str>) -> Asked {
        let json = json!([{"type": "text", "text": summary_request(wishes)}]).to_string();
        let kind = Kind::Prompt { meta: true };
        match Entry::new(Uuid::nil(), self.world.now(), kind, Bytes::from(json)) {
            Ok(entry) => _ = asking.push(Arc::new(entry)),
            Err(error) => return Asked::Failed(error.to_string()),
        }
        let thinking = thinking_for(&self.question, &asking);
        let prompt_tokens = asking.tokens();
        let bytes = asking.bytes() + self.question.prefix.system.len() + self.question.prefix.tools.len();
        let changed = asking.changed_since_sent();
        let mut ask = self.question.clone();
        ask.messages = asking.request(ask.cache);
        ask.max_tokens = ask.max_tokens.min(CONVERSATION_SUMMARY_TOKENS_MAX);
        (ask.thinking, ask.task_budget) = (thinking, None);
        let forecast = Forecast {
            ask: &ask,
            prompt_tokens,
            prompt_tokens_max: prompt_tokens_max(bytes as u64),
            searches_max: 0,
            last: None,
        };
        let paid = match self.spending.set_aside(forecast) {
            Wish::Granted(paid) => paid,
            Wish::Later(why) | Wish::Refused(why) => return Asked::Failed(format!("no money for it: {why}")),
        };
        let difference = self.cache.compared(&ask, changed.as_ref(), self.world.now());
        let mut errand = Errand::new(self.client.clone(), ask, paid);
        let mut wait = None;
        let asked = loop {
            match errand.next().await {
                Came::Requesting => {
                    drop(wait.take());
                    self.events.send(Event::Requesting).await;
                }
                Came::Retry(mut notice) => {
                    wait = self.waits_for_retry(&notice);
                    let non_streaming = notice.non_streaming;
                    // Nobody is shown a summary while it is written: there is nothing to take back.
                    notice.withdrawn = false;
                    self.tell_retry(*notice).await;
                    if non_streaming {
                        self.tell_another_way().await;
                    }
                }
                Came::Waiting { left } => self.events.send(Event::Waiting { left }).await,
                Came::Stalled { silent_for } => self.stalled(silent_for).await,
                Came::End(end) => break end,
            }
        };
        match asked {
            Ok(answer) => {
                let report = self.cache.answered_beside(&answer.usage, difference);
                self.tell_cache(report).await;
                summary_in(&answer)
            }
            Err(Unanswered::Failed(error)) => refused(&error),
            Err(why) => Asked::Failed(why.to_string()),
        }
    }
}

/// The summary an answer is. One that was cut would take the place of all that it leaves out.
fn summary_in(answer: &Answer) -> Asked {
    #[derive(Deserialize)]
    struct Text {
        text: String,
    }
    if answer.stop_reason == StopReason::ContextWindowExceeded {
        return Asked::TooLong(None);
    }
    if !answer.is_whole() {
        return Asked::Failed(format!("the summary is not whole: {}", answer.stop_reason.as_str()));
    }
    let is_text = |block: &&Block| matches!(block.kind, BlockKind::Text { .. });
    let texts = answer.blocks.iter().filter(is_text);
    let texts = texts.filter_map(|block| serde_json::from_slice::<Text>(&block.json).ok());
    let words: String = texts.map(|block| block.text).collect();
    match words.trim().is_empty() {
        true => Asked::Failed("the model gave no summary".to_owned()),
        false => Asked::Summary(words),
    }
}

fn refused(error: &ModelError) -> Asked {
    match error.kind {
        ErrorKind::PromptTooLong { tokens, limit } => Asked::TooLong(tokens.zip(limit)),
        ErrorKind::OutputOverflow { .. } | ErrorKind::RequestTooLarge => Asked::TooLong(None),
        _ => Asked::Failed(error.to_string()),
    }
}

/// What is left of a conversation if all is left out of it that can be.
const TOO_LONG_FOR_ANYBODY: &str =
    "the conversation is too long to be summed up, however much is left out of it";

/// What an edit names was taken away by another.
const NOT_THERE: &str = "what was summed up is not there any more";

/// What is done to a conversation that is too long to be summed up whole.
const SHORTENED: &str = "it was too long to be summed up";

/// Leaves out what is least needed for a summary until no more than `most` tokens are left, as far as that is possible:
/// old results first, then the oldest rounds.
fn shorten(asking: &mut View, most: u64) {
    if asking.tokens() <= most {
        return;
    }
    let calls = micro::clearable(&asking.outline()).map(|(call, _)| call.to_string()).collect();
    asking.apply(&Edit::Clear { calls }, None, SHORTENED);
    if asking.tokens() <= most {
        return;
    }
    let outline = asking.outline();
    if let Some((from, to)) = local::oldest(&outline, asking.tokens(), most) {
        asking.apply(&Edit::Replace { from, to, by: By::Nothing }, None, SHORTENED);
    }
}
