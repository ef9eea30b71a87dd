//! Runs the calls of one answer while the answer still streams. The order is the [`Schedule`]'s; what happens to
//! one call, from its input to its output, is `Bench::perform`.
//!
//! Calls are futures inside the executor, not tasks: dropping the executor drops them, and with them whatever
//! they started.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use pelton_model::BadInput;
use serde_json::Value;

use super::schedule::Schedule;
use super::tool::{Output, Safety, Tool, ToolCx};
use crate::permission::{Gate, Verdict};
use crate::transcript::{Transcript, TranscriptError};

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

/// How a call ended.
#[derive(Debug)]
pub struct Finished {
    /// What the model reads.
    pub output: Output,
    /// What kind of ending it is.
    pub ending: Ending,
}

/// Kinds of ending the loop tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The tool ran.
    Ran,
    /// It was not allowed.
    Denied,
    /// It could not be tried: no such tool, or unusable input.
    Unusable,
    /// The user interrupted.
    Interrupted,
    /// It was not run because the conversation cannot be recorded.
    Unrecorded,
}

/// What calls are performed with.
pub struct Bench {
    /// The tools by name.
    pub tools: Vec<Arc<dyn Tool>>,
    /// What may run.
    pub gate: Gate,
    /// What every call gets to know; id and directory are filled in per call.
    pub cx: ToolCx,
    /// The directory calls start in. Calls that change it run alone, so there is no race.
    pub cwd: Mutex<PathBuf>,
    /// Where side effects are announced before they happen.
    pub transcript: Option<Arc<Transcript>>,
}

impl Bench {
    fn tool(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name == name)
    }

    fn cx(&self, call: &Call) -> ToolCx {
        let cwd = self.cwd.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let readable = self.gate.readable(&cwd);
        ToolCx { call_id: Arc::clone(&call.id), cwd, readable, ..self.cx.clone() }
    }

    fn safety(&self, call: &Call) -> Safety {
        match (self.tool(&call.tool), &call.input) {
            (Some(tool), Ok(input)) => tool.safety(input),
            // It will be answered without running anything.
            _ => Safety::Shared,
        }
    }

    /// One call, from its input to its output: known tool → usable input → permission → record → run.
    async fn perform(&self, call: &Call) -> Finished {
        let ended = |ending, output| Finished { output, ending };
        let Some(tool) = self.tool(&call.tool) else {
            return ended(
                Ending::Unusable,
                Output::unusable(format_args!("Error: No such tool available: {}", call.tool)),
            );
        };
        let input = match &call.input {
            Ok(input) => input,
            Err(bad) => return ended(Ending::Unusable, unreadable(&call.tool, bad)),
        };
        let cx = self.cx(call);
        let access = match tool.access(input, &cx) {
            Ok(access) => access,
            Err(invalid) => {
                let text = format!(
                    "InputValidationError: {} was called with unusable input: {}",
                    call.tool, invalid.0
                );
                return ended(Ending::Unusable, Output::unusable(text));
            }
        };
        match self.gate.judge(&call.tool, &access, &cx.cwd) {
            Verdict::Allow => {}
            Verdict::Deny(why) => return ended(Ending::Denied, Output::error(why)),
            Verdict::Ask(why) => return ended(Ending::Denied, Output::error(nobody_to_ask(&why))),
        }
        if tool.safety(input) == Safety::Alone
            && let Err(error) = self.announce().await
        {
            return ended(Ending::Unrecorded, Output::error(format!("Not run: {error}")));
        }
        match AssertUnwindSafe(tool.run(Value::clone(input), &cx)).catch_unwind().await {
            Ok(output) => {
                if let Some(moved) = &output.new_cwd {
                    self.cwd.lock().unwrap_or_else(PoisonError::into_inner).clone_from(moved);
                }
                let interrupted = cx.cancel.is_cancelled();
                ended(if interrupted { Ending::Interrupted } else { Ending::Ran }, output)
            }
            Err(panic) => ended(Ending::Ran, crashed(&call.tool, panic.as_ref())),
        }
    }

    /// A call with side effects is on the disk before it begins: after a crash the session knows it may have run.
    async fn announce(&self) -> Result<(), TranscriptError> {
        match &self.transcript {
            Some(transcript) => transcript.sync().await,
            None => Ok(()),
        }
    }
}

/// The calls of one answer.
pub struct Executor {
    bench: Arc<Bench>,
    schedule: Schedule,
    calls: Vec<Call>,
    running: FuturesUnordered<BoxFuture<'static, (usize, Finished)>>,
    finished: Vec<Option<Finished>>,
    /// The next result to hand out: results leave in the order of asking.
    next: usize,
}

impl Executor {
    /// No calls yet.
    pub fn new(bench: Arc<Bench>, running_max: usize) -> Self {
        Self {
            bench,
            schedule: Schedule::new(running_max),
            calls: Vec::new(),
            running: FuturesUnordered::new(),
            finished: Vec::new(),
            next: 0,
        }
    }

    /// Adds a call behind the others.
    pub fn add(&mut self, call: Call) {
        self.schedule.add(self.bench.safety(&call));
        self.calls.push(call);
        self.finished.push(None);
    }

    /// Starts what may start, and says which calls those are. They make progress only while
    /// [`advance`](Self::advance) is polled.
    pub fn start(&mut self) -> Vec<Call> {
        let slots = self.schedule.start();
        let mut started = Vec::with_capacity(slots.len());
        for slot in slots {
            let call = self.calls[slot].clone();
            let bench = Arc::clone(&self.bench);
            started.push(call.clone());
            self.running.push(async move { (slot, bench.perform(&call).await) }.boxed());
        }
        started
    }

    /// Waits until a call ends; never returns while none runs. Cancel-safe.
    pub async fn advance(&mut self) {
        match self.running.next().await {
            Some((slot, finished)) => {
                self.schedule.finish(slot);
                self.finished[slot] = Some(finished);
            }
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
        self.running.len()
    }

    /// Whether every result was handed out.
    pub fn is_drained(&self) -> bool {
        self.next == self.calls.len()
    }

    /// Whether the model called anything.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Ends everything: running calls are told and have a moment to say what they have, the others never start.
    /// Afterwards every call has a result.
    pub async fn cancel(&mut self) {
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
        for finished in self.finished.iter_mut().skip(self.next) {
            finished.get_or_insert_with(|| Finished {
                output: Output::error("The user interrupted before this call had a result."),
                ending: Ending::Interrupted,
            });
        }
    }
}

fn unreadable(tool: &str, bad: &BadInput) -> Output {
    Output::unusable(format_args!(
        "InputValidationError: the input of {tool} is not a JSON object ({}). If it was cut by the output limit, write \
         it in smaller parts.",
        bad.error
    ))
}

fn nobody_to_ask(why: &str) -> String {
    format!(
        "{why} There is nobody to ask in this session, so it was not done. The user can allow it beforehand with a \
         permission rule (--allowedTools) or a permission mode (--permission-mode)."
    )
}

fn crashed(tool: &str, panic: &(dyn Any + Send)) -> Output {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown cause".to_owned());
    Output::error(format!("{tool} crashed: {message}. This is a fault in the tool, not in the call."))
}
