//! Runs the calls of one answer while the answer still streams. The order is the [`Schedule`]'s; what happens to
//! one call is the [`Bench`]'s.
//!
//! Calls are futures inside the executor, not tasks: dropping the executor drops them, and with them whatever
//! they started.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{AbortHandle, Abortable, BoxFuture};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use pelton_model::BadInput;
use serde_json::Value;

use super::bench::{Bench, Ending, Finished, HookWords};
use super::in_order::Line;
use super::schedule::{End, Schedule, Terms};
use super::tool::Output;
use super::{structured, tool_search};

/// How long a cancelled call may take to say what it has. Tools are told first; after that they are dropped.
const CANCEL_GRACE: Duration = Duration::from_millis(80);

/// A call as the model made it.
#[derive(Debug, Clone)]
pub struct Call {
    /// Its id.
    pub id: Arc<str>,
    /// The tool's name.
    pub tool: Arc<str>,
    /// Its input, or what is wrong with it.
    pub input: Result<Arc<Value>, BadInput>,
}

impl Call {
    /// A call as it is meant: one that is made by CallTool is one of the tool it names.
    pub fn meant(id: Arc<str>, tool: Arc<str>, input: Result<Arc<Value>, BadInput>) -> Self {
        let inner = input.as_ref().ok().and_then(|input| tool_search::meant(&tool, input));
        match inner {
            Some((tool, input)) => Self { id, tool: tool.into(), input: Ok(Arc::new(input)) },
            None => Self { id, tool, input },
        }
    }
}

/// Who ends calls before they are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// The user interrupted.
    User,
    /// The money is spent.
    Budget,
    /// The model made the calls and then declined.
    Refusal,
}

/// The calls of one answer.
pub struct Executor {
    bench: Arc<Bench>,
    schedule: Schedule,
    line: Arc<Line>,
    calls: Vec<Call>,
    /// Nothing comes of those that were cancelled.
    running: FuturesUnordered<BoxFuture<'static, Option<(usize, Finished)>>>,
    /// The way to cancel each, once it has begun.
    aborts: Vec<Option<AbortHandle>>,
    finished: Vec<Option<Finished>>,
    /// The next result to hand out: results leave in the order of asking.
    next: usize,
}

impl Executor {
    /// No calls yet.
    pub fn new(bench: Arc<Bench>, terms: Terms) -> Self {
        Self {
            line: Arc::new(Line::new(bench.permissions.clone())),
            bench,
            schedule: Schedule::new(terms),
            calls: Vec::new(),
            running: FuturesUnordered::new(),
            aborts: Vec::new(),
            finished: Vec::new(),
            next: 0,
        }
    }

    /// Adds a call behind the others.
    pub fn add(&mut self, call: Call) {
        self.schedule.add(self.bench.safety(&call));
        self.line.one_more();
        self.calls.push(call);
        self.aborts.push(None);
        self.finished.push(None);
        self.close_cancelled();
    }

    /// The answer makes no more calls.
    pub fn complete(&self) {
        self.line.complete();
    }

    /// Starts what may start, and says which calls those are. They make progress only while
    /// [`advance`](Self::advance) is polled.
    pub fn start(&mut self) -> Vec<Call> {
        let slots = self.schedule.start();
        let mut started = Vec::with_capacity(slots.len());
        for slot in slots {
            let call = self.calls[slot].clone();
            let bench = Arc::clone(&self.bench);
            let place = self.line.place(slot);
            started.push(call.clone());
            let (abort, registration) = AbortHandle::new_pair();
            self.aborts[slot] = Some(abort);
            let performed = async move { (slot, bench.perform(&call, place).await) };
            self.running.push(Abortable::new(performed, registration).map(Result::ok).boxed());
        }
        started
    }

    /// Waits until a call ends; never returns while none runs. Cancel-safe.
    pub async fn advance(&mut self) {
        match self.running.next().await {
            Some(Some((slot, finished))) => {
                let failed = finished.output.is_error && finished.ending != Ending::Interrupted;
                self.schedule.finish(slot, if failed { End::Failed } else { End::Well });
                if let Ending::HookStopped | Ending::Structured = finished.ending {
                    self.schedule.stop(slot);
                }
                // One that ended while it was being cancelled was cancelled.
                self.finished[slot].get_or_insert(finished);
                self.close_cancelled();
            }
            Some(None) => {}
            None => std::future::pending().await,
        }
    }

    /// The next result in the order of asking, if it is there.
    pub fn take_next(&mut self) -> Option<(Call, Finished)> {
        let finished = self.finished.get_mut(self.next)?.take()?;
        let call = self.calls[self.next].clone();
        self.next += 1;
        Some((call, finished))
    }

    /// How many calls run now.
    pub fn running(&self) -> usize {
        self.schedule.running()
    }

    /// Whether every result was handed out.
    pub fn is_drained(&self) -> bool {
        self.next == self.calls.len()
    }

    /// How many calls there are.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether the model called anything.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Whether a call that may change something has begun, or somebody who was asked about one has changed what may run.
    pub fn has_touched_anything(&self) -> bool {
        self.schedule.has_touched_anything() || self.line.has_changed_anything()
    }

    /// Ends everything: running calls are told and have a moment to say what they have, the others never start.
    /// Afterwards every call has a result.
    pub async fn cancel(&mut self, by: EndedBy) {
        let open: Vec<usize> =
            (self.next..self.calls.len()).filter(|slot| self.finished[*slot].is_none()).collect();
        self.bench.cx.cancel.cancel();
        let world = Arc::clone(&self.bench.cx.world);
        let grace = world.sleep(CANCEL_GRACE);
        tokio::pin!(grace);
        while !self.running.is_empty() {
            tokio::select! {
                biased;
                () = &mut grace => break,
                () = self.advance() => {}
            }
        }
        self.running.clear();
        for slot in open {
            let words = match by {
                EndedBy::User => "The user interrupted before this call had a result.",
                EndedBy::Budget => {
                    "This call was ended before it had a result: the budget of the run is used up."
                }
                EndedBy::Refusal => "This call was ended before it had a result: you declined to go on.",
            };
            let ended = || Finished {
                output: Output::error(words),
                ending: Ending::Interrupted,
                hooks: HookWords::default(),
            };
            let finished = self.finished[slot].get_or_insert_with(ended);
            // Tools know no reason to be ended but the user.
            if by != EndedBy::User && finished.ending == Ending::Interrupted {
                finished.output = Output::error(words);
            }
        }
    }

    /// P5, I10: ends and answers the calls that another one cancels: it failed, a hook does not want to go on after it, or it
    /// was the structured output, which is the end.
    fn close_cancelled(&mut self) {
        for (slot, by) in self.schedule.take_cancelled() {
            match &self.aborts[slot] {
                Some(abort) => abort.abort(),
                // It never stands in the line, so nobody waits for it.
                None => drop(self.line.place(slot)),
            }
            let Call { id, tool, .. } = &self.calls[by];
            let text = if self.schedule.stopped_by() == Some(by) {
                let who = if &**tool == structured::NAME {
                    "the final answer was given"
                } else {
                    "a hook ended the run"
                };
                format!("Not run: {who} at {tool} ({id}), before this call began.")
            } else {
                format!(
                    "Cancelled: {tool} ({id}) failed, and this call was made together with it. Make it again if it is \
                     still wanted."
                )
            };
            self.finished[slot] = Some(Finished {
                output: Output::error(text),
                ending: Ending::Cancelled,
                hooks: HookWords::default(),
            });
        }
    }
}
