//! The hands of a real session: asks the model, runs its tools while it answers, records what was said, and tells
//! whoever watches. Decides nothing.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures::StreamExt;
use pelton_model::stream::Sender;
use pelton_model::{Ask, Block, BlockKind, Client, ErrorKind, ModelError, Notice, Started, Step, World};
use pelton_wire::stop::StopReason;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::decide::{Failure, Limits, Reply, Seen, Tools, Transition};
use super::hands::Hands;
use crate::account::{Account, Tally};
use crate::event::{Denial, Event, ToolStarted};
use crate::history::{Entry, Kind, Origin, Piece};
use crate::session::Session;
use crate::tools::Report;
use crate::tools::executor::{Bench, Call, Ending, Executor, Finished};
use crate::transcript::TranscriptError;

/// What the model reads when its answer was cut.
const GO_ON: &str = "Your answer was cut off. Go on exactly where it stopped, without repeating or summarising what \
you already wrote. If it was long, finish it in smaller parts.";
/// What the model reads when it said nothing.
const SAY_SOMETHING: &str =
    "Your last answer was empty. If the task is done, say so in a sentence; otherwise go on.";
/// What clients look for after an interruption.
const INTERRUPTED: &str = "[Request interrupted by user]";
const INTERRUPTED_IN_TOOLS: &str = "[Request interrupted by user for tool use]";

/// A submission in progress. Borrows the lasting parts of the engine, owns what ends with it.
pub(crate) struct Live<'a> {
    pub session: &'a mut Session,
    pub account: &'a mut Account,
    pub client: &'a Client,
    /// The question without its messages.
    pub question: &'a Ask,
    pub limits: &'a Limits,
    pub bench: Arc<Bench>,
    pub running_max: usize,
    pub executor: Executor,
    pub reports: mpsc::Receiver<(Arc<str>, Report)>,
    pub events: Sender<Event>,
    pub cancel: CancellationToken,
    pub world: Arc<dyn World>,
    pub started_at: Duration,
    pub tally: Tally,
    pub last: LastReply,
}

/// What the newest trip to the model left behind, for the result.
#[derive(Debug, Default)]
pub(crate) struct LastReply {
    pub stop_reason: Option<StopReason>,
    /// The text blocks of the newest answer.
    pub text: Vec<Bytes>,
    pub error: Option<ModelError>,
    pub unrecorded: Option<TranscriptError>,
}

/// One answer while it streams.
struct Answer {
    origin: Arc<Origin>,
    /// Complete blocks that a retry would still withdraw: they are recorded with the first block that it would not.
    held: Vec<Block>,
}

impl Hands for Live<'_> {
    fn limits(&self) -> &Limits {
        self.limits
    }

    async fn ask(&mut self) -> Reply {
        self.executor = Executor::new(Arc::clone(&self.bench), self.running_max);
        if self.last.unrecorded.is_some() {
            return Reply::Failed(Failure::Unrecorded);
        }
        self.last = LastReply::default();
        let asked_at = self.world.monotonic();
        let reply = self.stream_answer().await;
        self.tally.duration_api += self.world.monotonic().saturating_sub(asked_at);
        reply.unwrap_or_else(|error| {
            self.last.unrecorded = Some(error);
            Reply::Failed(Failure::Unrecorded)
        })
    }

    async fn finish_tools(&mut self) -> Seen {
        Seen::Tools(self.drain_tools().await.unwrap_or_else(|error| {
            self.last.unrecorded = Some(error);
            Tools::Unrecorded
        }))
    }

    async fn prepare(&mut self, transition: Transition) {
        self.tally.went_on(transition);
        self.events.send(Event::Transition(transition)).await;
        let nudge = match transition {
            Transition::MaxOutputTokensRecovery => GO_ON,
            Transition::EmptyReplyNudge => SAY_SOMETHING,
            Transition::NextTurn | Transition::PauseTurn => return,
        };
        if let Err(error) = self.say_as_user(nudge).await {
            // The next question is not asked.
            self.last.unrecorded = Some(error);
        }
    }
}

impl Live<'_> {
    async fn stream_answer(&mut self) -> Result<Reply, TranscriptError> {
        let mut call = self
            .client
            .call(Ask { messages: self.session.history.view_mut().request(), ..self.question.clone() });
        let mut answer = None;
        loop {
            self.start_tools().await;
            let step = tokio::select! {
                biased;
                () = self.cancel.cancelled() => {
                    drop(call);
                    return self.interrupted(INTERRUPTED).await.map(|()| Reply::Aborted);
                }
                () = self.executor.advance() => continue,
                Some((call, report)) = self.reports.recv() => {
                    self.events.send(Event::ToolProgress { call, report }).await;
                    continue;
                }
                step = call.next() => step,
            };
            match step {
                Some(Step::Requesting { .. }) => self.events.send(Event::Requesting).await,
                Some(Step::Started(started)) => {
                    answer = Some(Answer { origin: Arc::new(origin(&started)), held: Vec::new() });
                    self.events.send(Event::Started(started)).await;
                }
                Some(Step::Delta(delta)) => {
                    self.note_first_token();
                    self.events.send(Event::Delta(delta)).await;
                }
                Some(Step::Block(block)) => {
                    if let Some(answer) = &mut answer {
                        self.block_complete(answer, block).await?;
                    }
                }
                Some(Step::Retry(notice)) => {
                    answer = None;
                    self.retry(notice).await;
                }
                Some(Step::Stalled { silent_for }) => self.events.send(Event::Stalled { silent_for }).await,
                Some(Step::Finished(reply)) => {
                    if let Some(answer) = &mut answer {
                        self.record_held(answer).await?;
                    }
                    return Ok(self.answered(&reply).await);
                }
                Some(Step::Failed(error)) => return Ok(self.failed(error)),
                // A step this version does not know changes nothing.
                Some(_) => {}
                None => {
                    let error = ModelError::new(ErrorKind::Other, "the model's answer ended without an end");
                    return Ok(self.failed(error));
                }
            }
        }
    }

    async fn block_complete(&mut self, answer: &mut Answer, block: Block) -> Result<(), TranscriptError> {
        let block = self.with_id_of_its_own(answer, block);
        match &block.kind {
            // A server refuses blank text when it is sent back.
            BlockKind::Text { blank: true } => Ok(()),
            BlockKind::Text { blank: false } => {
                self.record_held(answer).await?;
                self.last.text.push(block.json.clone());
                self.record_block(answer, &block, Piece::Text).await
            }
            BlockKind::ToolUse { id, name, input } => {
                self.record_held(answer).await?;
                let piece = Piece::Call { id: Arc::clone(id), name: Arc::clone(name) };
                self.record_block(answer, &block, piece).await?;
                self.executor.add(Call {
                    id: Arc::clone(id),
                    tool: Arc::clone(name),
                    input: input.clone().map(Arc::new),
                });
                self.tally.tool_calls += 1;
                Ok(())
            }
            _ => {
                answer.held.push(block);
                Ok(())
            }
        }
    }

    /// Some servers number the calls of every answer anew, but in a conversation an id may be used once.
    fn with_id_of_its_own(&self, answer: &Answer, mut block: Block) -> Block {
        let BlockKind::ToolUse { id, .. } = &mut block.kind else { return block };
        if !self.session.history.view().has_call(id) {
            return block;
        }
        // A block that is no JSON object is left to the view, which leaves it out.
        let Ok(mut json) = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&block.json)
        else {
            return block;
        };
        let own = format!("toolu_{}_{}", answer.origin.message_id, block.index);
        json.insert("id".to_owned(), own.as_str().into());
        *id = own.into();
        block.json = Bytes::from(serde_json::Value::Object(json).to_string());
        block
    }

    async fn record_held(&mut self, answer: &mut Answer) -> Result<(), TranscriptError> {
        for block in std::mem::take(&mut answer.held) {
            let piece = match block.kind {
                BlockKind::Thinking | BlockKind::RedactedThinking => Piece::Thinking,
                _ => Piece::Other,
            };
            self.record_block(answer, &block, piece).await?;
        }
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
        self.events.send(Event::Message(entry)).await;
        Ok(())
    }

    async fn retry(&mut self, notice: Notice) {
        self.tally.retries += 1;
        self.last.text.clear();
        self.events.send(Event::Retry(notice)).await;
    }

    async fn answered(&mut self, reply: &pelton_model::Reply) -> Reply {
        self.tally.usage.add(&reply.usage);
        self.account.answered(&reply.model, &reply.usage);
        self.session.history.view_mut().counted(&reply.usage);
        self.last.stop_reason = Some(reply.stop_reason.clone());
        if let Some(error) = &reply.cut {
            self.events.send(Event::Cut { reason: error.to_string() }).await;
        }
        if !self.executor.is_empty() {
            // The calls count, whatever the stop reason says.
            return Reply::ToolUse;
        }
        let said_something = !self.last.text.is_empty();
        match &reply.stop_reason {
            _ if reply.cut.is_some() => Reply::Truncated,
            StopReason::MaxTokens | StopReason::ContextWindowExceeded => Reply::Truncated,
            StopReason::PauseTurn => Reply::Paused,
            StopReason::Refusal => Reply::Refused,
            _ if said_something => Reply::EndTurn,
            _ => Reply::Empty,
        }
    }

    fn failed(&mut self, error: ModelError) -> Reply {
        let failure = match error.kind {
            ErrorKind::PromptTooLong { .. } | ErrorKind::OutputOverflow { .. } => Failure::PromptTooLong,
            ErrorKind::RequestTooLarge | ErrorKind::Image { .. } => Failure::MediaTooLarge,
            _ if error.status.is_none() && error.error_type.is_none() => Failure::Unreachable,
            _ => Failure::Api,
        };
        self.last.error = Some(error);
        Reply::Failed(failure)
    }

    async fn drain_tools(&mut self) -> Result<Tools, TranscriptError> {
        let mut all_unusable = true;
        loop {
            self.start_tools().await;
            while let Some((call, finished)) = self.executor.take_next() {
                all_unusable &= finished.ending == Ending::Unusable;
                let ending = finished.ending;
                self.record_result(&call, finished).await?;
                if ending == Ending::Unrecorded {
                    return Err(TranscriptError::Content { reason: "a call was not run".into() });
                }
            }
            if self.executor.is_drained() {
                // Results wait for the write only; the disk is waited for before the next side effect.
                return Ok(Tools::Done { all_unusable });
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
            }
        }
    }

    /// Ends what runs, answers every open call, and notes the interruption.
    async fn interrupted(&mut self, note: &str) -> Result<(), TranscriptError> {
        self.executor.cancel().await;
        while let Some((call, finished)) = self.executor.take_next() {
            self.record_result(&call, finished).await?;
        }
        self.say_as_user(note).await
    }

    async fn record_result(&mut self, call: &Call, finished: Finished) -> Result<(), TranscriptError> {
        if finished.ending == Ending::Denied {
            self.tally.denials.push(Denial {
                tool: Arc::clone(&call.tool),
                call: Arc::clone(&call.id),
                input: call.input.clone().unwrap_or_default(),
            });
        }
        let entry = self.session.record_result(&call.id, &finished.output)?;
        self.tell_as_user(entry).await;
        Ok(())
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

    async fn start_tools(&mut self) {
        for call in self.executor.start() {
            let running = self.executor.running();
            let input = call.input.unwrap_or_default();
            let started = ToolStarted { call: call.id, tool: call.tool, input, running };
            self.events.send(Event::ToolStarted(started)).await;
        }
    }

    fn note_first_token(&mut self) {
        if self.tally.first_token_after.is_none() {
            self.tally.first_token_after = Some(self.world.monotonic().saturating_sub(self.started_at));
        }
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
