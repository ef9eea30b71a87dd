//! The hands of a real session: asks the model, runs its tools while it answers, records what was said, and tells
//! whoever watches. Decides nothing.

mod answer; // one answer while it streams
mod display; // what hooks have shown of it
mod money; // what it may cost, and did
mod attach; // what it is told beside the results
mod cache; // what became of the server's cache
mod recover; // what is done about errors, between two trips
mod ahead; // calls made before the model asks for them
mod summaries; // what calls came to, in a line
mod results; // results that are too much for one message
mod cascade; // the levels before every call
mod compact; // a summary in the place of what was said
mod fold; // summaries of finished stretches, made beforehand
mod sources; // what is told again after a summary
mod usage; // where the tokens are

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use pelton_model::stream::Sender;
use pelton_model::{Ask, Client, ModelError, Prefix, World};
use pelton_wire::stop::StopReason;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::bystander::Bystander;
use super::decide::{Blocked, Compaction, Failure, Reply, Rung, Tools, Verdict, is_enough};
use super::hands::{Fit, Hands};
use super::memory::{Gauges, Limits};
use super::reasons::{Terminal, Transition};
use super::side::{Answer, SideNews, SideSender};
use super::spending::{InFlight, Spending};
use crate::account::Tally;
use crate::aside::Told;
use crate::compact::Room;
use crate::event::{DeferredCall, Denial, Event, LoopEvent, LoopKind, Refused, ToolStarted};
use crate::gauge::Gauge;
use crate::history::{Entry, EntryId};
use crate::hooks::{HookEvent, ToolCall};
use crate::limits::{REPETITION_STUCK_AT, REPETITION_TOLD_AT};
use crate::options::Options;
use crate::permission::{Change, Update};
use crate::queue::Queue;
use crate::session::Session;
use crate::status::{Board, Phase};
use crate::tools::bench::{Bench, Ending, Finished, HookWords};
use crate::tools::builtin::plan;
use crate::tools::executor::{Call, EndedBy, Executor};
use crate::tools::file_memory::Moment;
use crate::tools::offer::Offer;
use crate::tools::process::Watch;
use crate::tools::schedule::Terms;
use crate::tools::structured::StructuredOutput;
use crate::tools::{Output, Report, Tool, agent};
use crate::transcript::TranscriptError;
pub(crate) use ahead::Foresight;
pub(crate) use answer::{Attempts, CUT_BY_LIMIT, thinking_for};
pub(crate) use attach::{FileNews, Noticed, attachment_of};
pub(crate) use cache::CacheAudit;
pub(crate) use cascade::Shaping;
pub(crate) use compact::{Attempt, Summed};
pub(crate) use display::Telling;
pub(crate) use recover::Dialled;
pub(crate) use sources::{Known, know_what_is_sent};
pub(crate) use summaries::Summaries;
pub(crate) use usage::{Around, context_usage};

/// What clients look for after an interruption.
pub(crate) const INTERRUPTED: &str = "[Request interrupted by user]";
pub(crate) const INTERRUPTED_IN_TOOLS: &str = "[Request interrupted by user for tool use]";

/// A submission in progress. Borrows the lasting parts of the engine, owns what ends with it.
pub(crate) struct Live<'a> {
    pub session: &'a mut Session,
    pub client: &'a Client,
    /// What the host wants.
    pub options: &'a Options,
    /// Who wants to know what fills the context.
    pub gauge: Gauge,
    /// Who may be asked about the conversation meanwhile.
    pub bystander: Bystander,
    pub spending: Arc<Spending>,
    pub world: Arc<dyn World>,
    /// The question without its messages. A model that is given up is given up for this submission only.
    pub question: Ask,
    /// What is offered from one submission to the next.
    pub offer: &'a mut Offer,
    /// What comes before the messages, from one submission to the next.
    pub prefix: &'a mut Arc<Prefix>,
    /// The tools the question offers: one that the API refuses is left out.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The structured output the answer must have.
    pub structured: Option<Arc<StructuredOutput>>,
    /// Further models that were not given up, in the order they are asked; the one that is asked may be among them.
    pub fallbacks: Vec<String>,
    pub room: Room,
    pub bench: Arc<Bench>,
    /// Who keeps watch over its commands goes with it, also if nobody pulls it to its end.
    pub _watch: Arc<OnceLock<Watch>>,
    pub terms: Terms,
    pub executor: Executor,
    pub reports: mpsc::Receiver<(Arc<str>, Report)>,
    /// How questions beside the conversation fare, and where that is told to.
    pub beside: mpsc::Receiver<SideNews>,
    pub beside_in: SideSender,
    pub events: Sender<Event>,
    pub board: Board,
    /// Prompts that came meanwhile.
    pub queue: Queue,
    pub cache: &'a mut CacheAudit,
    pub noticed: Noticed<'a>,
    pub dialled: Dialled,
    pub cancel: CancellationToken,
    pub started_at: Duration,
    pub tally: Tally,
    pub last: LastReply,
    /// Z2: what calls of the last answer brought, and calls that follow from it and run already.
    pub foresight: Foresight,
    /// Trips to the model, this one included.
    pub turn: u32,
    /// What the stop hooks want to be done before the end.
    pub stop_feedback: Option<StopFeedback>,
    /// T11: what was left out by name because a request was refused.
    pub left_out_by_name: HashSet<Rung>,
    /// It goes on only because a stop hook wanted it.
    pub stop_hook_active: bool,
    pub attempts: Attempts,
    /// The money of the call that is being made.
    pub paid: Option<Box<InFlight>>,
    /// What calls came to, in a line each turn.
    pub summaries: Summaries,
    pub shaping: Shaping,
    /// The answer whose words hooks are told of before they are shown.
    pub display: Option<Box<Telling>>,
}

/// What hooks say about the end, for the model.
pub(crate) enum StopFeedback {
    /// It is not the end.
    Refusal(String),
    /// Something it has not heard yet.
    Words(Vec<String>),
}

/// What the newest trip to the model left behind, for what comes next and for the result.
#[derive(Debug, Default)]
pub(crate) struct LastReply {
    pub stop_reason: Option<StopReason>,
    /// The text blocks of the newest answer.
    pub text: Vec<Bytes>,
    /// The words of answers that were cut, and that the newest goes on with. Outlasts them.
    pub begun: String,
    /// The entries of the newest answer.
    pub entries: Vec<EntryId>,
    /// What was known of files when it was asked for.
    pub files_known: Moment,
    /// What cut it. Told as soon as it is known that what is complete of it is kept.
    pub cut: Option<String>,
    pub error: Option<ModelError>,
    /// An error that is held back while it may be recovered from, in words. Outlasts the answer it is about.
    pub held_back: Option<String>,
    /// The newest answer has a call of a tool that the server runs itself: such an answer can be sent back as it is.
    pub has_server_tool: bool,
    /// The tool whose call the output limit cut.
    pub cut_call: Option<Arc<str>>,
    pub unrecorded: Option<TranscriptError>,
    /// L12: which call repeats itself.
    pub repetition: Option<String>,
    /// The call that a hook put off.
    pub deferred: Option<DeferredCall>,
    /// What was said of a call that could not be recorded beforehand.
    pub not_run: Option<String>,
    /// X8: what fills the window.
    pub full: Option<String>,
}

impl Hands for Live<'_> {
    fn limits(&self) -> &Limits {
        &self.options.limits
    }

    fn gauges(&self) -> Gauges {
        Gauges { output_tokens: self.tally.usage.output_tokens }
    }

    async fn fit(&mut self) -> Fit {
        if self.last.unrecorded.is_some() {
            return Fit::Blocked(Blocked::Unrecorded);
        }
        if self.attempts.put_again.is_some() {
            // It is the same question, and its money is set aside.
            return Fit::Ready;
        }
        self.board.enter(Phase::CompactCheck);
        self.heed_dials();
        let blocked = match self.cascade().await {
            Ok(blocked) => blocked,
            Err(error) => {
                self.last.unrecorded = Some(error);
                Some(Blocked::Unrecorded)
            }
        };
        if let Some(blocked) = blocked {
            return Fit::Blocked(blocked);
        }
        if !self.room.fits(self.used()) {
            let reason = self.breakdown();
            self.note(LoopKind::Ladder, reason.clone()).await;
            self.last.full = Some(reason);
            return Fit::Blocked(Blocked::ContextFull);
        }
        if self.set_aside().await { Fit::Ready } else { Fit::Blocked(Blocked::Budget) }
    }

    async fn ask(&mut self) -> Reply {
        self.turn += 1;
        self.executor = Executor::new(Arc::clone(&self.bench), self.terms);
        let (held_back, begun) = (self.last.held_back.take(), std::mem::take(&mut self.last.begun));
        self.last = LastReply { held_back, begun, ..LastReply::default() };
        self.board.asks(&self.question.model, self.turn, self.session.history.view().tokens());
        if self.gauge.is_watched() {
            self.gauge.tell(self.usage());
        }
        self.bystander.sees(&self.question, self.session.history.view_mut());
        let asked_at = self.world.monotonic();
        self.look_ahead().await;
        let reply = self.stream_answer().await;
        self.tell_summaries().await;
        self.tell_all_beside().await;
        self.tell_unpriced().await;
        self.tally.duration_api += self.world.monotonic().saturating_sub(asked_at);
        self.board.counted(self.session.history.view().tokens(), self.tally.usage.output_tokens);
        self.board.enter(if matches!(reply, Ok(Reply::ToolUse | Reply::ToolUseCut)) {
            Phase::ToolExec
        } else {
            Phase::RecoveryCheck
        });
        reply.unwrap_or_else(|error| {
            self.last.unrecorded = Some(error);
            Reply::Failed(Failure::Unrecorded)
        })
    }

    async fn finish_tools(&mut self) -> Tools {
        // What is being done can be asked about while it is done.
        self.bystander.sees(&self.question, self.session.history.view_mut());
        self.tell_cut().await;
        self.drain_tools().await.unwrap_or_else(|error| {
            self.last.unrecorded = Some(error);
            Tools::Unrecorded
        })
    }

    async fn discard_answer(&mut self) -> bool {
        let discarded = self.discard().await;
        self.last.unrecorded = discarded.err();
        self.last.unrecorded.is_none()
    }

    async fn drain_collapse(&mut self) -> bool {
        self.board.enter(Phase::Compact);
        let freed = self.drain_folds().await.unwrap_or_else(|error| {
            self.last.unrecorded = Some(error);
            false
        });
        let reason = if freed { "staged folds were committed" } else { "no folds were staged" };
        self.note(LoopKind::Ladder, reason.to_owned()).await;
        freed
    }

    async fn reactive_compact(&mut self) -> Compaction {
        self.board.enter(Phase::Compact);
        self.compact_after_refusal().await.unwrap_or_else(|error| {
            // The next question is not asked, and that is told.
            self.last.unrecorded = Some(error);
            Compaction::Unrecorded
        })
    }

    async fn stop_hooks(&mut self) -> Verdict {
        self.ask_stop_hooks().await.unwrap_or_else(|error| {
            self.last.unrecorded = Some(error);
            Verdict::Unrecorded
        })
    }

    async fn prepare(&mut self, transition: Transition) {
        self.goes_on(transition).await;
        if let Err(error) = self.make_ready(transition).await {
            // The next question is not asked.
            self.last.unrecorded = Some(error);
        }
    }
}

impl Live<'_> {
    /// What is left to tell once the reason for the end is known.
    pub async fn end(&mut self, terminal: Terminal) {
        if self.attempts.put_again.take().is_some() {
            self.pay_nothing();
        }
        self.close_ahead().await;
        self.tell_hooks_of_failure(terminal).await;
        self.tell_background().await;
        // Those that are not there yet are not waited for.
        self.tell_summaries().await;
        self.tell_all_beside().await;
        self.tell_output_wanted(terminal).await;
        if terminal == Terminal::CompletedOverHooks {
            let times = self.options.limits.stop_hook_blocks_max;
            let reason = format!("stop hooks blocked more than {times} times; ended against their will");
            self.note(LoopKind::HooksOverridden, reason.clone()).await;
            let told = Event::Informational { content: reason, prevents_continuation: false };
            self.events.send(told).await;
        }
    }

    /// B4: tells why no more output is asked for, where some amount of it is wanted.
    async fn tell_output_wanted(&mut self, terminal: Terminal) {
        let Some(wanted) = self.options.limits.output_tokens_wanted else { return };
        let is_answered = self.structured.is_none() && self.last.stop_reason != Some(StopReason::Refusal);
        if terminal != Terminal::Completed || !is_answered {
            return;
        }
        let written = self.gauges().output_tokens;
        let why =
            if is_enough(written, wanted) { "that is enough" } else { "the last answers brought little" };
        self.note(LoopKind::Budget, format!("{written} of {wanted} tokens wanted are written: {why}")).await;
    }

    /// What a model without a price costs is counted as nothing, and whoever pays should know.
    async fn tell_unpriced(&mut self) {
        for model in self.spending.take_unpriced() {
            let content = format!(
                "The price of {model} is not known: what it costs is not counted (set it under `modelPricing` in the settings)"
            );
            self.events.send(Event::Informational { content, prevents_continuation: false }).await;
        }
    }

    /// B3: the server counts a task by what it is sent, so what it is sent no more has to be told.
    fn folded(&mut self, before: u64) {
        let gone = before.saturating_sub(self.session.history.view().tokens());
        if let Some(budget) = self.question.task_budget.as_mut().filter(|_| gone > 0) {
            budget.remaining = Some(budget.remaining.unwrap_or(budget.total).saturating_sub(gone));
        }
    }

    async fn drain_tools(&mut self) -> Result<Tools, TranscriptError> {
        let mut endings = Vec::new();
        let mut contexts = Vec::new();
        let mut batch = self.bench.hooks.listens(HookEvent::PostToolBatch).then(Vec::new);
        self.executor.complete();
        loop {
            self.start_tools().await;
            while let Some((call, mut finished)) = self.executor.take_next() {
                endings.push(finished.ending);
                if finished.ending == Ending::Deferred {
                    // It has no result, and nothing may be said behind it before it has one.
                    self.tell_hooks(finished.hooks).await;
                    self.last.deferred = Some(call.into());
                    continue;
                }
                contexts.append(&mut finished.hooks.contexts);
                let told = finished.hooks.told.take();
                let result = self.record_result(&call, finished).await?;
                if let Some(batch) = &mut batch {
                    batch.push((told.unwrap_or_else(|| told_to_hooks(&call)), seen_by_model(&result)));
                }
            }
            if self.executor.is_drained() {
                // A refusal can end the run with the last of its calls.
                if self.cancel.is_cancelled() {
                    self.interrupted(INTERRUPTED_IN_TOOLS).await?;
                    return Ok(Tools::Aborted);
                }
                let is_ended = match batch.take().filter(|batch| !batch.is_empty()) {
                    Some(batch) => self.ask_batch_hooks(batch, &mut contexts).await,
                    None => false,
                };
                if self.cancel.is_cancelled() {
                    self.interrupted(INTERRUPTED_IN_TOOLS).await?;
                    return Ok(Tools::Aborted);
                }
                // Words of hooks come behind all results: the API wants those first.
                if !contexts.is_empty() {
                    self.remind(&contexts).await?;
                }
                self.summarise().await;
                // Results wait for the write only; the disk is waited for before the next side effect.
                return Ok(match together(&endings) {
                    Tools::Done | Tools::Unusable if is_ended => Tools::HookStopped,
                    Tools::Done if self.last.repetition.is_some() => Tools::Repeating,
                    tools => tools,
                });
            }
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => {
                    self.interrupted(INTERRUPTED_IN_TOOLS).await?;
                    return Ok(Tools::Aborted);
                }
                () = self.executor.advance() => {}
                Some((call, report)) = self.reports.recv() => {
                    self.events.send(Event::ToolProgress { call, report }).await;
                }
                Some(news) = self.beside.recv() => self.tell_beside(news).await,
                () = self.summaries.advance() => {}
                () = self.shaping.folding.advance() => {}
            }
        }
    }

    /// A3: ends what runs, answers every open call, and notes the interruption.
    async fn interrupted(&mut self, note: &str) -> Result<(), TranscriptError> {
        self.close_calls(EndedBy::User).await?;
        // A prompt that takes this one's place says enough.
        if self.queue.is_urgent() { Ok(()) } else { self.say_as_user(note).await }
    }

    /// Ends what runs and answers every open call.
    async fn close_calls(&mut self, by: EndedBy) -> Result<(), TranscriptError> {
        self.executor.cancel(by).await;
        while let Some((call, finished)) = self.executor.take_next() {
            self.record_result(&call, finished).await?;
        }
        Ok(())
    }

    async fn record_result(
        &mut self,
        call: &Call,
        finished: Finished,
    ) -> Result<Arc<Entry>, TranscriptError> {
        if finished.ending == Ending::Denied {
            self.tally.denials.push(Denial {
                tool: Arc::clone(&call.tool),
                call: Arc::clone(&call.id),
                input: call.input.clone().unwrap_or_default(),
            });
        }
        if finished.ending == Ending::Unrecorded {
            self.last.not_run = Some(finished.output.words());
        }
        let mut words = finished.hooks;
        if let Some(cause) = words.refused_for.take() {
            let (tool, call) = (Arc::clone(&call.tool), Arc::clone(&call.id));
            let message = finished.output.words();
            self.events.send(Event::Refused(Arc::new(Refused { tool, call, cause, message }))).await;
        }
        let mut updates = std::mem::take(&mut words.updates);
        if matches!(&*call.tool, plan::ENTER | plan::EXIT) && !finished.output.is_error {
            updates.push(Update::session(Change::SetMode(self.bench.permissions.mode())));
        }
        self.tell_hooks(words).await;
        if !updates.is_empty() {
            self.events.send(Event::PermissionsChanged(updates.into())).await;
        }
        self.summaries.saw(call, &finished.output);
        let entry = self.session.record_result(&call.id, &finished.output)?;
        self.tell_as_user(Arc::clone(&entry)).await;
        self.watch_for_repetition(call, finished.ending, &finished.output).await;
        self.expect_more(call, finished.output);
        Ok(entry)
    }

    /// What the hooks say that listen to all calls of an answer. True if they end the run.
    async fn ask_batch_hooks(&mut self, batch: Vec<(ToolCall, Value)>, contexts: &mut Vec<String>) -> bool {
        let bench = Arc::clone(&self.bench);
        let Some(mut fired) = bench.hooks.after_batch(batch, &bench.cwd_now()).await else { return false };
        contexts.append(&mut fired.verdict.contexts);
        let stop = fired.verdict.stop.or(fired.verdict.block);
        let is_ended = stop.is_some();
        let messages = fired.verdict.messages;
        self.tell_hooks(HookWords { messages, stop, runs: fired.runs, ..HookWords::default() }).await;
        is_ended
    }

    /// H5: who listens to failures hears of one. What they say changes nothing.
    async fn tell_hooks_of_failure(&mut self, terminal: Terminal) {
        let (class, details, told) = match &self.last.error {
            Some(error) if terminal.is_of_the_api() => {
                let details = error.to_string();
                (error.kind.wire_name(), details.clone(), format!("API Error: {details}"))
            }
            None if terminal == Terminal::ModelError => {
                ("max_output_tokens", CUT_BY_LIMIT.to_owned(), CUT_BY_LIMIT.to_owned())
            }
            _ => return,
        };
        let bench = Arc::clone(&self.bench);
        let fired = bench.hooks.stop_failure(class, &details, &told, &bench.cwd_now()).await;
        if let Some(fired) = fired {
            let messages = fired.verdict.messages;
            self.tell_hooks(HookWords { messages, runs: fired.runs, ..HookWords::default() }).await;
        }
    }

    /// L12: tells when a call brings the same again and again.
    async fn watch_for_repetition(&mut self, call: &Call, ending: Ending, output: &Output) {
        if matches!(ending, Ending::Interrupted | Ending::Cancelled) {
            return;
        }
        let times = self.bench.note_repetition(call, output);
        if times == REPETITION_TOLD_AT || times == REPETITION_STUCK_AT {
            let reason =
                format!("{} was called {times} times in the same way and brought the same", call.tool);
            self.note(LoopKind::Repetition, reason).await;
        }
        if times >= REPETITION_STUCK_AT {
            let words = format!(
                "The model kept calling {} in the same way, which kept bringing the same.",
                call.tool
            );
            self.last.repetition = Some(words);
        }
    }

    /// H1–H5: what the stop hooks say about the end.
    async fn ask_stop_hooks(&mut self) -> Result<Verdict, TranscriptError> {
        let words = self.last.words();
        let bench = Arc::clone(&self.bench);
        let tasks = bench.cx.background.for_hooks();
        let Some(fired) = bench.hooks.stop(self.stop_hook_active, words, tasks, &bench.cwd_now()).await
        else {
            return Ok(Verdict::Pass);
        };
        if self.cancel.is_cancelled() {
            self.interrupted(INTERRUPTED_IN_TOOLS).await?;
            return Ok(Verdict::Aborted);
        }
        let verdict = fired.verdict;
        let stop = verdict.stop;
        let prevents = stop.is_some();
        let words = HookWords { messages: verdict.messages, stop, runs: fired.runs, ..HookWords::default() };
        self.tell_hooks(words).await;
        // Words without a refusal are feedback too: the model has not heard them yet.
        let words = (!verdict.contexts.is_empty()).then_some(StopFeedback::Words(verdict.contexts));
        self.stop_feedback = verdict.block.map(StopFeedback::Refusal).or(words);
        Ok(match &self.stop_feedback {
            _ if prevents => Verdict::Prevent,
            Some(_) => Verdict::Block,
            None => Verdict::Pass,
        })
    }

    async fn tell_hooks(&mut self, words: HookWords) {
        for run in words.runs {
            self.events.send(Event::Hook(Arc::new(run))).await;
        }
        let said = words.messages.into_iter().map(|content| (content, false));
        for (content, prevents_continuation) in said.chain(words.stop.map(|reason| (reason, true))) {
            self.events.send(Event::Informational { content, prevents_continuation }).await;
        }
    }

    async fn say_as_user(&mut self, text: &str) -> Result<(), TranscriptError> {
        let entry = self.session.record_prompt(text, true)?;
        self.tell_as_user(entry).await;
        Ok(())
    }

    async fn tell_as_user(&mut self, entry: Arc<Entry>) {
        self.tally.user_messages += 1;
        self.events.send(Event::Message(entry)).await;
    }

    /// Tells which calls begin. What others have reported comes first: some of these begin because those have ended.
    async fn start_tools(&mut self) {
        while let Ok((call, report)) = self.reports.try_recv() {
            self.events.send(Event::ToolProgress { call, report }).await;
        }
        for call in self.executor.start() {
            self.keep_for_fork(&call);
            let running = self.executor.running();
            let input = call.input.unwrap_or_default();
            let started = ToolStarted { call: call.id, tool: call.tool, input, running };
            self.events.send(Event::ToolStarted(started)).await;
        }
    }

    /// A fork knows what was said until the call that starts it.
    fn keep_for_fork(&self, call: &Call) {
        let forks = |input: &Value| input.get("subagent_type").is_some_and(|kind| kind == agent::FORK);
        if let (Some(agents), Ok(input)) = (&self.bench.cx.agents, &call.input)
            && [agent::NAME, agent::ALIAS].contains(&&*call.tool)
            && forks(input)
        {
            agents.keep(&call.id, &self.session.history);
        }
    }

    /// Tells why the model is asked once more.
    async fn goes_on(&mut self, transition: Transition) {
        self.tally.went_on(transition);
        self.events.send(Event::Transition(transition)).await;
        self.tell(LoopKind::Transition, transition.name().to_owned()).await;
    }

    /// Tells what the loop did, and why: to whoever watches, to the transcript, to the account.
    async fn note(&mut self, kind: LoopKind, reason: String) {
        *self.tally.loop_events.entry(kind.name()).or_default() += 1;
        self.tell(kind, reason).await;
    }

    /// The same of what is counted elsewhere.
    async fn tell(&mut self, kind: LoopKind, reason: String) {
        self.session.note(kind, &reason, self.turn);
        self.events.send(Event::Loop(LoopEvent { kind, reason, turn: self.turn })).await;
    }
}

impl LastReply {
    /// What came of the answer is taken back, and it is asked for again.
    fn forget_attempt(&mut self) {
        self.text.clear();
        self.has_server_tool = false;
    }

    /// The words of the newest answer.
    pub fn words(&self) -> Option<String> {
        let texts = self.text.iter().filter_map(|json| words_of(json));
        Some(texts.collect()).filter(|text: &String| !text.is_empty())
    }

    /// The next answer goes on with this one.
    pub fn keep_words(&mut self, in_between: &str) {
        if let Some(words) = self.words() {
            self.begun.push_str(&words);
            self.begun.push_str(in_between);
        }
    }
}

/// The words of a block.
fn words_of(block: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Text {
        text: String,
    }
    Some(serde_json::from_slice::<Text>(block).ok()?.text)
}

impl From<Answer> for Told {
    fn from(answer: Answer) -> Self {
        let is_whole = answer.is_whole();
        Self { blocks: answer.blocks.into_iter().map(|block| block.json).collect(), is_whole }
    }
}

/// A call as hooks are told of it.
fn told_to_hooks(call: &Call) -> ToolCall {
    let input = call.input.as_deref().cloned().unwrap_or_default();
    ToolCall { name: call.tool.to_string(), input, id: call.id.to_string() }
}

/// What the model reads of a call's result.
fn seen_by_model(result: &Entry) -> Value {
    let block = serde_json::from_slice::<[Value; 1]>(&result.json);
    block.ok().and_then(|[mut block]| Some(block.get_mut("content")?.take())).unwrap_or_default()
}

/// What the endings of all calls mean together.
fn together(endings: &[Ending]) -> Tools {
    if endings.contains(&Ending::Unrecorded) {
        Tools::Unrecorded
    } else if endings.contains(&Ending::HookStopped) {
        Tools::HookStopped
    } else if endings.contains(&Ending::Deferred) {
        Tools::Deferred
    } else if endings.contains(&Ending::Structured) {
        Tools::Structured
    } else if endings.contains(&Ending::Misstructured) {
        Tools::Misstructured
    } else if endings.iter().all(|ending| matches!(ending, Ending::Unusable | Ending::Cancelled)) {
        Tools::Unusable
    } else {
        Tools::Done
    }
}
