//! One answer while it streams.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures::StreamExt;
use pelton_model::catalogue::ThinkingKinds;
use pelton_model::{
    Again, Ask, BadInput, Block, BlockKind, DeltaKind, Earlier, ErrorKind, ModelError, Notice, Started, Step,
    Thinking, Tried, catalogue,
};
use pelton_wire::content;
use pelton_wire::stop::StopReason;

use super::cache::Messages;
use super::display::{Shows, heard};
use super::{INTERRUPTED, Live, words_of};
use crate::event::{CacheReport, Event, LoopKind, Refusal};
use crate::history::names::{is_plain, plainly};
use crate::history::{Kind, Origin, Piece, View};
use crate::limits::CHANGED_FILES_WATCHED_MAX;
use crate::session;
use crate::status::{Wait, Waiting};
use crate::tools::executor::{Call, EndedBy, Executor};
use crate::tools::file_memory::Fingerprint;
use crate::transcript::{FileFacts, RequestFacts, TranscriptError};
use crate::turn::decide::{Bought, Complete, Failure, Reply, Rest, Withheld};
use crate::turn::reasons::Transition;
use crate::turn::side::{Came, SideNews};

/// T4: an output limit above this is not raised.
const LOW_OUTPUT_TOKENS_MAX: u32 = 8_192;

/// What is said of an answer that stays cut.
pub(crate) const CUT_BY_LIMIT: &str = "The model's answer was cut by its output limit.";

/// One answer while it streams.
struct Answer {
    origin: Arc<Origin>,
    /// Complete blocks that do not count yet: thinking, which a retry would withdraw, and a call that cannot be read or has
    /// no input, which was never made if the output limit cut it. They are recorded with the first block that counts.
    held: Vec<Block>,
    /// What was said so far of a text that is not at its end.
    begun: String,
}

impl Answer {
    /// Goes along with what the model says.
    fn hear(&mut self, delta: &DeltaKind) {
        match delta {
            DeltaKind::BlockStart(_) => self.begun.clear(),
            DeltaKind::Text(text) => self.begun.push_str(text),
            _ => {}
        }
    }
}

/// What the next question has to do with those before it that brought no whole answer.
#[derive(Default)]
pub(crate) struct Attempts {
    /// Requests in vain to models that were given up for another.
    pub tried: Arc<Vec<Tried>>,
    /// When the question was first asked, of whichever model.
    pub asked_at: Duration,
    /// The last answer was cut: what the question for its rest waits for.
    pub again: Option<Box<Again>>,
    /// M6: the question that is put once more for an answer in one piece. Nothing is sent while nobody pulls.
    pub put_again: Option<pelton_model::Call>,
}

impl Live<'_> {
    pub(super) async fn stream_answer(&mut self) -> Result<Reply, TranscriptError> {
        self.last.files_known = self.bench.cx.files.now();
        let again = self.attempts.put_again.take();
        let mut is_sent = again.is_some();
        let mut call = match again {
            Some(call) => call,
            None => self.put_question(),
        };
        let mut answer = None;
        let mut wait: Option<Waiting> = None;
        loop {
            self.start_tools().await;
            let step = tokio::select! {
                biased;
                () = self.cancel.cancelled() => {
                    drop(call);
                    if is_sent {
                        self.give_up(answer.is_some()).await;
                    } else {
                        self.pay_nothing();
                    }
                    if self.bench.refused.is_cancelled() {
                        // A call was refused, and the run with it: the calls are over, not the answer.
                        self.show_untold(Shows::WholeBlocks).await;
                        return self.close_calls(EndedBy::User).await.map(|()| Reply::ToolUse);
                    }
                    self.show_untold(Shows::All).await;
                    if let Some(answer) = &answer {
                        self.record_begun(answer).await?;
                    }
                    return self.interrupted(INTERRUPTED).await.map(|()| Reply::Aborted);
                }
                () = self.executor.advance() => continue,
                Some((call, report)) = self.reports.recv() => {
                    self.events.send(Event::ToolProgress { call, report }).await;
                    continue;
                }
                Some(news) = self.beside.recv() => {
                    self.tell_beside(news).await;
                    continue;
                }
                Some(_) = self.foresight.running.next() => continue,
                heard = heard(&mut self.display) => {
                    self.displayed(heard).await;
                    continue;
                }
                step = call.next() => step,
                () = self.summaries.advance() => continue,
                () = self.shaping.folding.advance() => continue,
            };
            match step {
                Some(Step::Requesting { .. }) => {
                    drop(wait.take());
                    is_sent = true;
                    // It is on its way before anybody is told of it, and of what came before it.
                    self.events.send_behind(Event::Requesting).await;
                }
                Some(Step::Subscription(used)) => self.events.send(Event::Subscription(used)).await,
                Some(Step::Started(started)) => {
                    if let Some(paid) = &mut self.paid {
                        paid.started(&started.model, &started.usage);
                    }
                    let (held, begun) = (Vec::new(), String::new());
                    answer = Some(Answer { origin: Arc::new(origin(&started)), held, begun });
                    self.events.send(Event::Started(started)).await;
                    self.begin_display().await;
                }
                Some(Step::Delta(first)) => {
                    self.note_first_token();
                    // Those that came with it are taken with it: nothing can have happened in between.
                    let (mut next, mut bytes) = (Some(first), 0);
                    while let Some(delta) = next {
                        if let (Some(answer), DeltaKind::BlockStart(_)) = (&mut answer, &delta.kind) {
                            self.record_empty_call(answer).await?;
                        }
                        if let Some(answer) = &mut answer {
                            answer.hear(&delta.kind);
                        }
                        if let Some(paid) = &mut self.paid {
                            paid.wrote(&delta);
                        }
                        bytes += streamed_bytes(&delta.kind);
                        match (&mut self.display, &delta.kind) {
                            (Some(telling), DeltaKind::BlockStart(opened)) => {
                                telling.began(&opened.block_type);
                            }
                            (Some(telling), DeltaKind::Text(words)) => telling.came(words),
                            _ => {}
                        }
                        self.events.send(Event::Delta(delta)).await;
                        next = call.queued_delta();
                    }
                    self.board.streamed(bytes);
                }
                Some(Step::Block(block)) => {
                    if let Some(answer) = &mut answer {
                        answer.begun.clear();
                        self.block_complete(answer, block).await?;
                    }
                }
                Some(Step::Retry(notice)) => {
                    // What the failed attempt consumed was consumed, though nothing of it is kept.
                    (answer, self.display) = (None, None);
                    // What the answer before this question cost, if that was cut, is paid.
                    if is_sent && !self.pay_again(&notice).await {
                        drop(call);
                        self.pay_nothing();
                        return Ok(Reply::OverBudget(Bought::Nothing));
                    }
                    if notice.non_streaming {
                        self.attempts.put_again = Some(call);
                        return Ok(self.no_stream(notice).await);
                    }
                    wait = self.waits_for_retry(&notice);
                    self.last.forget_attempt();
                    self.tell_retry(notice).await;
                }
                Some(Step::Waiting { left }) => self.events.send(Event::Waiting { left }).await,
                Some(Step::Stalled { silent_for }) => self.stalled(silent_for).await,
                Some(Step::Finished(reply)) => {
                    if let Some(answer) = &mut answer {
                        self.drop_cut_call(answer, &reply);
                        if let Err(error) = self.record_held(answer).await {
                            // What cannot be kept was paid for all the same.
                            self.pay_for_answer(&reply);
                            return Err(error);
                        }
                    }
                    self.finish_display().await;
                    return self.answered(&reply).await;
                }
                Some(Step::Failed(error)) => {
                    self.show_untold(Shows::WholeBlocks).await;
                    return Ok(self.failed(error).await);
                }
                // A step this version does not know changes nothing.
                Some(_) => {}
                None => {
                    let error = ModelError::new(ErrorKind::Other, "the model's answer ended without an end");
                    return Ok(self.failed(error).await);
                }
            }
        }
    }

    /// Puts a new question.
    fn put_question(&mut self) -> pelton_model::Call {
        let thinking = thinking_for(&self.question, self.session.history.view());
        let view = self.session.history.view_mut();
        let (changed, has_images) = (view.changed_since_sent(), view.has_images());
        let mut ask = self.question.clone();
        ask.messages = view.request(ask.cache);
        (ask.max_tokens, ask.thinking) = (self.max_tokens(), thinking);
        (ask.fallbacks, ask.earlier) = (self.models_left(), self.taken_elsewhere());
        ask.after = self.attempts.again.take();
        let messages = Messages { changed: changed.as_ref(), has_images };
        self.cache.sent(&ask, &self.tools, messages, self.world.now());
        self.client.call(ask)
    }

    /// Nobody waits for the rest of the answer. What has begun was asked like every other: what stood in front of it is
    /// noted, as thinking in it is bound to that.
    async fn give_up(&mut self, has_begun: bool) {
        let usage = self.pay_for_what_was_given_up();
        if let Some(usage) = usage.filter(|_| has_begun) {
            let report = self.cache.answered(&usage);
            self.tell_cache(report).await;
        }
    }

    async fn block_complete(&mut self, answer: &mut Answer, block: Block) -> Result<(), TranscriptError> {
        let block = self.with_id_of_its_own(answer, block);
        match &block.kind {
            // A server refuses blank text when it is sent back.
            BlockKind::Text { blank: true } => Ok(()),
            BlockKind::Text { blank: false } => {
                self.record_held(answer).await?;
                if let (Some(telling), Some(words)) = (&mut self.display, words_of(&block.json)) {
                    telling.completed(&words);
                }
                self.last.text.push(block.json.clone());
                self.record_block(answer, &block, Piece::Text).await
            }
            BlockKind::ToolUse { input: Ok(input), .. } if !is_empty(input) => {
                // Its pieces are not counted one by one.
                self.board.streamed(block.json.len());
                self.record_held(answer).await?;
                self.call_made(answer, &block).await
            }
            kind => {
                self.last.has_server_tool |= *kind == BlockKind::ServerTool;
                answer.held.push(block);
                Ok(())
            }
        }
    }

    /// The block is a call, and counts.
    async fn call_made(&mut self, answer: &Answer, block: &Block) -> Result<(), TranscriptError> {
        let BlockKind::ToolUse { id, name, input } = &block.kind else { return Ok(()) };
        let piece = Piece::Call { id: Arc::clone(id), name: Arc::clone(name) };
        self.record_block(answer, block, piece).await?;
        let input = input.clone().map(Arc::new);
        self.executor.add(Call::meant(Arc::clone(id), Arc::clone(name), input));
        self.tally.tool_calls += 1;
        Ok(())
    }

    /// The model goes on behind a call without input: the call was meant so.
    async fn record_empty_call(&mut self, answer: &mut Answer) -> Result<(), TranscriptError> {
        match answer.held.last().map(|block| &block.kind) {
            Some(BlockKind::ToolUse { input: Ok(_), .. }) => self.record_held(answer).await,
            _ => Ok(()),
        }
    }

    /// A call that a limit cut was not made. Beside calls that were, it is answered like them.
    fn drop_cut_call(&mut self, answer: &mut Answer, reply: &pelton_model::Reply) {
        if !matches!(reply.stop_reason, StopReason::MaxTokens | StopReason::ContextWindowExceeded) {
            return;
        }
        let Some(Block { kind: BlockKind::ToolUse { name, input, .. }, .. }) = answer.held.last_mut() else {
            return;
        };
        if self.executor.is_empty() {
            self.last.cut_call = Some(Arc::clone(name));
            answer.held.retain(|block| !matches!(block.kind, BlockKind::ToolUse { .. }));
        } else {
            self.last.cut_call = Some(Arc::clone(name));
            if input.is_err() {
                return;
            }
            // Nobody knows what it would have been called with.
            *input = Err(BadInput { raw: String::new(), error: "the output limit cut it".to_owned() });
        }
    }

    /// Some servers number the calls of every answer anew, or in a way that others refuse to read; but in a conversation an
    /// id may be used once, and names of both kinds are made of plain letters.
    fn with_id_of_its_own(&self, answer: &Answer, mut block: Block) -> Block {
        let BlockKind::ToolUse { id, name, .. } = &mut block.kind else { return block };
        let is_known = |id: &str| self.session.history.view().has_call(id);
        if is_plain(id) && !is_known(id) && is_plain(name) {
            return block;
        }
        // A block that is no JSON object is left to the view, which leaves it out.
        let Ok(mut json) = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&block.json)
        else {
            return block;
        };
        if !is_plain(name) {
            *name = plainly(name).into();
            json.insert("name".to_owned(), (**name).into());
        }
        if !is_plain(id) || is_known(id) {
            let first = plainly(&format!("toolu_{}_{}", answer.origin.message_id, block.index));
            let mut own = first.clone();
            // A server may number its answers anew, too.
            let mut again = 1;
            while is_known(&own) {
                again += 1;
                own = format!("{first}_{again}");
            }
            json.insert("id".to_owned(), own.as_str().into());
            *id = own.into();
        }
        block.json = Bytes::from(serde_json::Value::Object(json).to_string());
        block
    }

    async fn record_held(&mut self, answer: &mut Answer) -> Result<(), TranscriptError> {
        for block in std::mem::take(&mut answer.held) {
            match block.kind {
                BlockKind::ToolUse { .. } => self.call_made(answer, &block).await?,
                BlockKind::Thinking | BlockKind::RedactedThinking => {
                    self.record_block(answer, &block, Piece::Thinking).await?;
                }
                _ => self.record_block(answer, &block, Piece::Other).await?,
            }
        }
        Ok(())
    }

    /// What the user has read stays, though they did not let it be said to its end: what they say next may be about it.
    async fn record_begun(&mut self, answer: &Answer) -> Result<(), TranscriptError> {
        if answer.begun.trim().is_empty() {
            return Ok(());
        }
        let kind = Kind::Assistant { origin: Arc::clone(&answer.origin), piece: Piece::Text };
        let words = session::content(&[content::Block::Text { text: &answer.begun }]);
        let entry = self.session.record(kind, words, None)?;
        self.events.send(Event::CutOff).await;
        self.events.send(Event::Message(entry)).await;
        Ok(())
    }

    async fn record_block(
        &mut self,
        answer: &Answer,
        block: &Block,
        piece: Piece,
    ) -> Result<(), TranscriptError> {
        let kind = Kind::Assistant { origin: Arc::clone(&answer.origin), piece };
        let entry = self.session.record(kind, array_of(&block.json), None)?;
        self.last.entries.push(entry.id);
        self.events.send(Event::Message(entry)).await;
        Ok(())
    }

    /// Says until when nothing happens, and that what came so far does not count.
    pub(super) fn waits_for_retry(&self, notice: &Notice) -> Option<Waiting> {
        self.board.counted(self.session.history.view().tokens(), self.tally.usage.output_tokens);
        let until = self.world.now().checked_add(notice.wait).ok()?;
        Some(self.board.wait(Wait::Retry { until }))
    }

    /// M6, T8: the model may be the same, but not the way to it.
    async fn no_stream(&mut self, notice: Notice) -> Reply {
        self.last.forget_attempt();
        // A server that knows no streams will not learn it in this submission.
        self.question.streaming &= notice.status != Some(404);
        self.last.error = Some(ModelError::new(notice.kind.clone(), notice.message.clone()));
        self.tell_retry(notice).await;
        Reply::NoStream
    }

    /// Tells that a question failed and is asked again, in the conversation or beside it.
    pub(super) async fn tell_retry(&mut self, notice: Notice) {
        self.tally.retries += 1;
        let reason = notice.message.clone();
        self.events.send(Event::Retry(notice)).await;
        self.tell(LoopKind::Retry, reason).await;
    }

    /// Tells how a question beside the conversation fares.
    pub(super) async fn tell_beside(&mut self, SideNews { purpose, is_waited_for, came }: SideNews) {
        match came {
            Came::Retry(mut notice) => {
                // Nobody was shown anything of it.
                notice.withdrawn = false;
                if is_waited_for {
                    return self.tell_retry(*notice).await;
                }
                self.tally.retries += 1;
                self.tell(LoopKind::Retry, format!("{purpose}: {}", notice.message)).await;
            }
            Came::Waiting { left } if is_waited_for => self.events.send(Event::Waiting { left }).await,
            Came::Stalled { silent_for } if is_waited_for => self.stalled(silent_for).await,
            Came::Stalled { silent_for } => {
                self.note(LoopKind::Stalled, format!("{purpose}: nothing has come for {silent_for:.1?}"))
                    .await;
            }
            Came::Waiting { .. } | Came::Requesting | Came::End(_) => {}
        }
    }

    /// The same of all that is known by now.
    pub(super) async fn tell_all_beside(&mut self) {
        while let Ok(news) = self.beside.try_recv() {
            self.tell_beside(news).await;
        }
    }

    /// M6: tells that the answer is asked for in one piece.
    pub(super) async fn tell_another_way(&mut self) {
        self.note(LoopKind::Fallback, "streams break; asking for the answer in one piece".to_owned()).await;
    }

    pub(super) async fn stalled(&mut self, silent_for: Duration) {
        self.events.send(Event::Stalled { silent_for }).await;
        self.note(LoopKind::Stalled, format!("nothing has come from the model for {silent_for:.1?}")).await;
    }

    async fn answered(&mut self, reply: &pelton_model::Reply) -> Result<Reply, TranscriptError> {
        let cut = self.cut_of(reply);
        let cut_by_money = self.is_cut_by_money();
        let mut in_context = reply.context_usage().clone();
        let usage = self.pay_for_answer(reply);
        if reply.cut.is_some() {
            in_context.output_tokens = in_context.output_tokens.max(usage.output_tokens);
        }
        self.session.history.view_mut().counted(&in_context);
        let report = self.cache.answered(&reply.usage);
        self.tell_cache(report).await;
        self.last.stop_reason = Some(reply.stop_reason.clone());
        if self.spending.is_spent() {
            if let Some(error) = &cut {
                self.events.send(Event::Cut { reason: error.to_string() }).await;
            }
            self.note(LoopKind::Budget, "the money is spent".to_owned()).await;
            let bought = self.bought(reply);
            self.close_calls(EndedBy::Budget).await?;
            return Ok(Reply::OverBudget(bought));
        }
        if reply.stop_reason == StopReason::Refusal {
            self.refused(reply).await?;
            return Ok(Reply::Refused);
        }
        if let Some(error) = cut {
            return Ok(self.stream_cut(error, reply.again.clone()).await);
        }
        self.last.held_back = None;
        if !self.executor.is_empty() {
            // The calls count, whatever the stop reason says; one that the limit cut is answered like them.
            if reply.stop_reason == StopReason::MaxTokens && self.last.cut_call.is_some() {
                let reason = "the output limit cut a call behind others, which count".to_owned();
                self.note(LoopKind::Ladder, reason).await;
                return Ok(Reply::ToolUseCut);
            }
            return Ok(Reply::ToolUse);
        }
        let said_something = !self.last.text.is_empty();
        Ok(match &reply.stop_reason {
            StopReason::MaxTokens => {
                let caps = catalogue::caps(&self.question.model);
                let more = caps.is_some_and(|caps| caps.output_max > reply.max_tokens);
                let cap_can_rise = more && !cut_by_money && reply.max_tokens <= LOW_OUTPUT_TOKENS_MAX;
                self.truncated(cap_can_rise).await
            }
            StopReason::ContextWindowExceeded => self.window_exceeded().await,
            StopReason::PauseTurn => {
                self.tell_last_pause().await;
                Reply::Paused { said_something, unstructured: self.structured.is_some() }
            }
            _ if self.structured.is_some() => Reply::Unstructured,
            _ if said_something => Reply::EndTurn,
            _ => Reply::Empty,
        })
    }

    /// T9: an answer that stays paused is sent back so often, and then taken for what it is.
    async fn tell_last_pause(&mut self) {
        let most = self.options.limits.pauses_max;
        if self.tally.times(Transition::PauseTurn) >= u32::from(most) {
            self.note(LoopKind::Ladder, format!("the answer was paused more than {most} times")).await;
        }
    }

    /// What there is for the last of the money.
    fn bought(&mut self, reply: &pelton_model::Reply) -> Bought {
        if reply.cut.is_some() {
            return Bought::Nothing;
        }
        let is_part = matches!(reply.stop_reason, StopReason::MaxTokens | StopReason::ContextWindowExceeded);
        if is_part && self.executor.is_empty() {
            self.last.held_back = Some(CUT_BY_LIMIT.to_owned());
            return Bought::Part;
        }
        self.last.held_back = None;
        Bought::Answer
    }

    /// What the question took so far, if it was asked of other models before.
    fn taken_elsewhere(&mut self) -> Earlier {
        let now = self.world.monotonic();
        let requests = self.attempts.tried.iter().fold(0, |sum: u32, tried| sum.saturating_add(tried.times));
        if requests == 0 {
            self.attempts.asked_at = now;
        }
        Earlier { requests, elapsed: now.saturating_sub(self.attempts.asked_at) }
    }

    /// What cut the answer, if anything did. An answer ends the row of requests in vain; one that was cut does not.
    fn cut_of(&mut self, reply: &pelton_model::Reply) -> Option<ModelError> {
        let mut tried = std::mem::take(&mut self.attempts.tried);
        let mut error = ModelError::clone(reply.cut.as_ref()?);
        if reply.again.is_some() {
            self.attempts.tried = tried;
            return Some(error);
        }
        Arc::make_mut(&mut tried).extend_from_slice(&error.tried);
        error.tried = tried;
        Some(error)
    }

    /// What files hold that the model has read, or was told of, since this was last asked.
    fn files_known(&mut self) -> Option<FileFacts> {
        let files = &self.bench.cx.files;
        let mut held = std::mem::take(&mut self.session.files_told);
        let read = files.newest_since(self.noticed.files.noted, CHANGED_FILES_WATCHED_MAX).into_iter().rev();
        held.extend(read.map(|(path, content)| (path.to_path_buf(), Some(content.written()))));
        self.noticed.files.noted = files.now();
        let lines_of = |(path, _): &(PathBuf, Option<String>)| Some((path.clone(), files.lines_known(path)?));
        let whole = held.iter().filter_map(lines_of).collect();
        (!held.is_empty()).then(|| FileFacts { sample: Fingerprint::sample(), held, whole })
    }

    /// What became of the server's cache.
    pub(super) async fn tell_cache(&mut self, report: CacheReport) {
        if let Some(facts) = self.cache.facts(report.clone()) {
            let counted = self.session.history.view().count_facts();
            let files = self.files_known();
            let usual = &self.dialled.model;
            let usual_model = (facts.model != *usual).then(|| usual.clone());
            let facts = RequestFacts { files, counted, usual_model, ..facts };
            self.session.note_request(&facts, &self.question.prefix);
            self.session.note_spent(&self.spending.by_model());
        }
        let missed = report.reason.clone();
        self.events.send(Event::Cache(report)).await;
        if let Some(reason) = missed {
            self.tell(LoopKind::Cache, reason).await;
        }
    }

    /// F1, F2, P8: nothing of this answer counts. Its calls only looked, so they can be ended anywhere.
    pub(super) async fn discard(&mut self) -> Result<(), TranscriptError> {
        self.last.cut = None;
        let calls = self.executor.len();
        self.executor = Executor::new(Arc::clone(&self.bench), self.terms);
        self.tally.tool_calls = self.tally.tool_calls.saturating_sub(calls as u32);
        if let Some(ahead) = &self.bench.ahead {
            ahead.put_back();
        }
        self.bench.cx.files.forget_since(self.last.files_known);
        self.note(LoopKind::Ladder, format!("{calls} calls of the answer are discarded with it")).await;
        self.withdraw_answer().await
    }

    async fn truncated(&mut self, cap_can_rise: bool) -> Reply {
        self.note(LoopKind::Withheld, "the output limit cut the answer".to_owned()).await;
        self.last.held_back = Some(CUT_BY_LIMIT.to_owned());
        Reply::Withheld(Withheld::OutputTruncated { cap_can_rise })
    }

    /// The window filled up while the model wrote, so there was less room than anybody knew: what counts as too long is the
    /// prompt.
    async fn window_exceeded(&mut self) -> Reply {
        let kind = ErrorKind::PromptTooLong { tokens: None, limit: None };
        let error = ModelError::new(kind, "the context window filled up while the model was answering");
        let reply = match self.meaning(&error) {
            Reply::Withheld(Withheld::PromptTooLong { can_shrink }) => {
                Reply::Withheld(Withheld::WindowFilled { can_shrink })
            }
            other => other,
        };
        self.note(LoopKind::Withheld, error.to_string()).await;
        self.last.held_back = Some(format!("API Error: {error}"));
        self.last.error = Some(error);
        reply
    }

    /// M4: somebody is asked for the rest if anybody is left.
    async fn stream_cut(&mut self, error: ModelError, again: Option<Box<Again>>) -> Reply {
        let rest = match self.meaning(&error) {
            _ if again.is_some() => Rest::Same,
            Reply::Fallback => Rest::Next,
            Reply::Failed(failure) => Rest::Nobody(failure),
            _ => Rest::Nobody(Failure::Api),
        };
        let complete = match self.executor.is_empty() {
            true => Complete::Text,
            false if self.last.text.is_empty() && !self.executor.has_touched_anything() => Complete::Looks,
            false => Complete::Calls,
        };
        // If nobody is asked for the rest, the run ends with what broke it, and says it then.
        self.last.cut = (!matches!(rest, Rest::Nobody(_))).then(|| error.to_string());
        self.attempts.again = again.filter(|_| rest == Rest::Same);
        self.note(LoopKind::Withheld, format!("the answer was cut: {error}")).await;
        self.last.error = Some(error);
        Reply::Withheld(Withheld::StreamCut { complete, rest })
    }

    /// Says that something is missing of what is kept.
    pub(super) async fn tell_cut(&mut self) {
        if let Some(reason) = self.last.cut.take() {
            self.events.send(Event::Cut { reason }).await;
        }
    }

    /// What it called before it declined is not done.
    async fn refused(&mut self, reply: &pelton_model::Reply) -> Result<(), TranscriptError> {
        self.close_calls(EndedBy::Refusal).await?;
        let detail = |name: &str| {
            let value = reply.stop_details.as_ref().and_then(|details| details.get(name));
            value.and_then(|value| value.as_str()).map(str::to_owned)
        };
        let refusal = Refusal {
            model: self.question.model.clone(),
            request_id: reply.request_id.as_deref().map(str::to_owned),
            category: detail("category"),
            explanation: detail("explanation"),
            prompt: self.session.kept.request.as_ref().map(|request| request.id),
        };
        self.events.send(Event::Refusal(Arc::new(refusal))).await;
        Ok(())
    }

    async fn failed(&mut self, mut error: ModelError) -> Reply {
        self.pay_for_failure(&error);
        if let ErrorKind::PromptTooLong { tokens: Some(counted), .. } = error.kind {
            self.session.history.view_mut().refused_at(counted);
        }
        let reply = self.meaning(&error);
        if let Reply::Withheld(_) | Reply::Repairable { .. } | Reply::Fallback = reply {
            self.note(LoopKind::Withheld, error.to_string()).await;
            self.last.held_back = Some(format!("API Error: {error}"));
        }
        // Whoever reads why nobody answers wants to know who was asked.
        if !self.attempts.tried.is_empty() {
            Arc::make_mut(&mut self.attempts.tried).extend_from_slice(&error.tried);
            error.tried = std::mem::take(&mut self.attempts.tried);
        }
        self.last.error = Some(error);
        reply
    }

    fn meaning(&self, error: &ModelError) -> Reply {
        if let Some((rung, otherwise)) = self.rung(error) {
            return Reply::Repairable { rung, otherwise };
        }
        match &error.kind {
            ErrorKind::PromptTooLong { tokens, limit } => {
                // By its own measure it is so much too long; by ours that is as large a share.
                let over = tokens.zip(*limit).map_or(0, |(tokens, limit)| {
                    let over = u128::from(tokens.saturating_sub(limit)) * u128::from(self.used());
                    u64::try_from(over / u128::from(tokens.max(1))).unwrap_or(u64::MAX)
                });
                let could_free = self.could_free();
                Reply::Withheld(Withheld::PromptTooLong { can_shrink: could_free > 0 && could_free >= over })
            }
            ErrorKind::OutputOverflow { .. } => {
                Reply::Withheld(Withheld::PromptTooLong { can_shrink: self.could_free() > 0 })
            }
            ErrorKind::RequestTooLarge | ErrorKind::Image { .. } => Reply::Withheld(Withheld::MediaTooLarge),
            kind if kind.leads_elsewhere() && self.next_model().is_some() => Reply::Fallback,
            _ if !error.is_answered() => Reply::Failed(Failure::Unreachable),
            _ => Reply::Failed(Failure::Api),
        }
    }

    fn note_first_token(&mut self) {
        if self.tally.first_token_after.is_none() {
            self.tally.first_token_after = Some(self.world.monotonic().saturating_sub(self.started_at));
        }
    }
}

/// What was asked for, unless the conversation is at a point where the model cannot be asked for it.
pub(crate) fn thinking_for(question: &Ask, view: &View) -> Thinking {
    let caps = catalogue::caps(&question.model);
    let budget = matches!(question.thinking, Thinking::Enabled { .. })
        || caps.is_some_and(|caps| caps.thinking == ThinkingKinds::Budget);
    if budget && view.answers_calls_made_without_thinking() { Thinking::Disabled } else { question.thinking }
}

/// Whether a call is made without anything, or was cut before there was anything.
fn is_empty(input: &serde_json::Value) -> bool {
    input.as_object().is_some_and(serde_json::Map::is_empty)
}

/// How much of the answer an event brings, as far as it is worth counting while it comes.
fn streamed_bytes(delta: &DeltaKind) -> usize {
    match delta {
        DeltaKind::Text(text) | DeltaKind::Thinking { text, .. } => text.len(),
        _ => 0,
    }
}

fn origin(started: &Started) -> Origin {
    Origin {
        message_id: started.message_id.to_string(),
        model: started.model.to_string(),
        usage: started.usage.clone(),
        request_id: started.request_id.as_deref().map(str::to_owned),
    }
}

fn array_of(block: &Bytes) -> Bytes {
    let mut array = BytesMut::with_capacity(block.len() + 2);
    array.put_u8(b'[');
    array.extend_from_slice(block);
    array.put_u8(b']');
    array.freeze()
}
