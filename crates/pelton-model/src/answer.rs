//! One attempt's answer, as far as it has come. No IO.

use std::sync::Arc;

use bytes::Bytes;
use pelton_wire::stop::StopReason;
use pelton_wire::usage::Usage;
use serde_json::Value;

use crate::assemble::{self, Assembler, TooLarge};
use crate::dialect::messages::{self, Change, Event, Head, Rounds, Tail};
use crate::error::{ErrorKind, ModelError};
use crate::json;
use crate::limits::RateLimits;
use crate::sse;
use crate::step::{Block, BlockKind, Delta, DeltaKind, Reply, Started, Step};

/// What an event says about the stream itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Life {
    /// The server is there.
    Ping,
    /// The answer came on.
    Progress,
    /// The answer is complete.
    End,
}

/// An answer that is being read.
#[derive(Debug)]
pub(crate) struct Answer {
    request_id: Option<Arc<str>>,
    limits: Option<RateLimits>,
    started: bool,
    message_id: Arc<str>,
    model: Arc<str>,
    usage: Usage,
    rounds: Rounds,
    stop_reason: Option<StopReason>,
    stop_details: Option<Value>,
    blocks: Assembler,
    /// Something came besides pings.
    begun: bool,
    /// The server said that this is all.
    ended: bool,
    shown: bool,
    text_complete: bool,
    call_complete: bool,
}

impl Answer {
    pub(crate) fn new(request_id: Option<Arc<str>>, limits: Option<RateLimits>) -> Self {
        Self {
            request_id,
            limits,
            started: false,
            message_id: Arc::default(),
            model: Arc::default(),
            usage: Usage::default(),
            rounds: Rounds::default(),
            stop_reason: None,
            stop_details: None,
            blocks: Assembler::default(),
            begun: false,
            ended: false,
            shown: false,
            text_complete: false,
            call_complete: false,
        }
    }

    /// Whether any part of the answer was shown: if the attempt fails, it has to be taken back.
    pub(crate) fn shown(&self) -> bool {
        self.shown
    }

    /// Takes in an event; what it brings is added to `steps`.
    pub(crate) fn event(&mut self, event: sse::Event, steps: &mut Vec<Step>) -> Result<Life, ModelError> {
        let data = readable(event.data);
        // Made readable above.
        let text = std::str::from_utf8(&data).unwrap_or_default();
        let name = std::str::from_utf8(&event.name).unwrap_or_default();
        let Some(event) = messages::event(name, text) else {
            return Err(ModelError::new(ErrorKind::Malformed, "an event of the stream is not JSON"));
        };
        if !matches!(event, Event::Ping) {
            self.begun = true;
        }
        // What is passed over brings the answer no further.
        let life = if matches!(event, Event::Unknown) { Life::Ping } else { Life::Progress };
        let (index, kind) = match event {
            Event::Ping => return Ok(Life::Ping),
            Event::Error(error) => return Err(error),
            Event::MessageStart(head) => {
                self.start(head, json::tidy(data.clone()), steps);
                return Ok(Life::Progress);
            }
            Event::BlockStart { index, block } => {
                self.ensure_started(steps);
                // A server that forgets to close a block opens the next one with the same number.
                self.close(index, steps);
                let start = data.slice_ref(block.as_bytes());
                let id = format!("{}_{index}", self.message_id);
                let opened = self.blocks.open(index, start, &id).map_err(too_large)?;
                (Some(index), opened.map_or(DeltaKind::Other, DeltaKind::BlockStart))
            }
            Event::BlockDelta { index, change } => {
                self.blocks.change(index, &change).map_err(too_large)?;
                (Some(index), shown_as(&change))
            }
            Event::BlockStop { index } => {
                self.close(index, steps);
                (Some(index), DeltaKind::Other)
            }
            Event::MessageDelta(tail) => {
                self.tail(tail);
                (None, DeltaKind::Other)
            }
            Event::MessageStop => {
                self.ended = true;
                self.close_all(steps);
                (None, DeltaKind::Other)
            }
            Event::Unknown => (None, DeltaKind::Other),
        };
        self.shown = true;
        steps.push(Step::Delta(Delta { index, raw: json::tidy(data), kind }));
        Ok(if self.ended { Life::End } else { life })
    }

    /// Takes in an answer that was not streamed.
    pub(crate) fn whole(&mut self, body: Bytes, steps: &mut Vec<Step>) -> Result<(), ModelError> {
        let body = readable(body);
        let text = std::str::from_utf8(&body).unwrap_or_default();
        let message = match messages::whole(text) {
            Some(Ok(message)) => message,
            Some(Err(error)) => return Err(error),
            None => return Err(ModelError::new(ErrorKind::Malformed, "the answer is not a message")),
        };
        self.start(message.head, Bytes::new(), steps);
        for (index, block) in (0..).zip(message.blocks) {
            let id = format!("{}_{index}", self.message_id);
            let json = body.slice_ref(block.as_bytes());
            if let Some(block) = assemble::whole(index, json, &id) {
                self.complete(block, steps);
            }
        }
        self.tail(message.tail);
        self.ended = true;
        Ok(())
    }

    /// No more will come, because of `cause` or because the stream is over. A complete answer is a success whatever
    /// happened after it; of an incomplete one, complete texts and calls are kept; anything less is a failure.
    pub(crate) fn end(
        mut self,
        cause: Option<ModelError>,
        max_tokens: u32,
        steps: &mut Vec<Step>,
    ) -> Result<Reply, ModelError> {
        let complete = self.ended || self.stop_reason.is_some();
        let cut = if complete {
            self.close_all(steps);
            None
        } else {
            let cause = cause.unwrap_or_else(|| self.cut());
            let request_id = self.request_id(cause.request_id);
            let cause = ModelError { request_id, in_answer: true, ..cause };
            if !self.text_complete && !self.call_complete {
                return Err(cause);
            }
            Some(cause)
        };
        let stop_reason = match self.stop_reason {
            Some(reason) => reason,
            None if self.call_complete => StopReason::ToolUse,
            None => StopReason::EndTurn,
        };
        self.usage.add(&self.rounds.compactions);
        Ok(Reply {
            message_id: self.message_id,
            model: self.model,
            stop_reason,
            stop_details: self.stop_details,
            usage: self.usage,
            last_round: self.rounds.last_message.map(Box::new),
            limits: self.limits.map(Box::new),
            request_id: self.request_id,
            max_tokens,
            cut: cut.map(Box::new),
            again: None,
        })
    }

    fn cut(&self) -> ModelError {
        if self.begun {
            ModelError::new(ErrorKind::StreamCut, "the connection was closed in the middle of the answer")
        } else {
            ModelError::new(ErrorKind::EmptyStream, "the server accepted the request and sent no answer")
        }
    }

    /// The header's id is the one support asks for; an error body may know it when a relay ate the header.
    fn request_id(&self, in_body: Option<String>) -> Option<String> {
        self.request_id.as_deref().map(str::to_owned).or(in_body)
    }

    fn start(&mut self, head: Head, raw: Bytes, steps: &mut Vec<Step>) {
        if self.started {
            return;
        }
        self.started = true;
        self.message_id = head.id.into();
        self.model = head.model.into();
        self.usage = head.usage;
        self.rounds = head.rounds.unwrap_or_default();
        steps.push(Step::Started(Box::new(Started {
            message_id: Arc::clone(&self.message_id),
            model: Arc::clone(&self.model),
            usage: self.usage.clone(),
            request_id: self.request_id.clone(),
            raw,
        })));
    }

    /// Nobody should have to cope with blocks before a beginning.
    fn ensure_started(&mut self, steps: &mut Vec<Step>) {
        self.start(Head::default(), Bytes::new(), steps);
    }

    fn tail(&mut self, tail: Tail) {
        self.usage.apply(&tail.usage);
        self.rounds = tail.rounds.unwrap_or_else(|| std::mem::take(&mut self.rounds));
        self.stop_reason = tail.stop_reason.or(self.stop_reason.take());
        self.stop_details = tail.stop_details.or(self.stop_details.take());
    }

    fn close(&mut self, index: u32, steps: &mut Vec<Step>) {
        if let Some(block) = self.blocks.close(index) {
            self.complete(block, steps);
        }
    }

    fn close_all(&mut self, steps: &mut Vec<Step>) {
        for block in self.blocks.close_all() {
            self.complete(block, steps);
        }
    }

    fn complete(&mut self, block: Block, steps: &mut Vec<Step>) {
        match block.kind {
            BlockKind::Text { blank } => self.text_complete |= !blank,
            BlockKind::ToolUse { .. } => self.call_complete = true,
            _ => {}
        }
        self.shown = true;
        steps.push(Step::Block(block));
    }
}

fn too_large(error: TooLarge) -> ModelError {
    ModelError::new(ErrorKind::Other, error.to_string())
}

fn shown_as(change: &Change<'_>) -> DeltaKind {
    match *change {
        Change::Text(literal) => DeltaKind::Text(json::boxed_text(literal)),
        Change::Thinking { text, estimated_tokens } => {
            DeltaKind::Thinking { text: json::boxed_text(text), estimated_tokens }
        }
        Change::InputJson(_) => DeltaKind::InputJson,
        _ => DeltaKind::Other,
    }
}

/// The same bytes as UTF-8.
fn readable(bytes: Bytes) -> Bytes {
    if std::str::from_utf8(&bytes).is_ok() {
        return bytes;
    }
    Bytes::from(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;
