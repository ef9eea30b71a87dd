//! E26: a permission that was asked for by a process that is gone, and answered since; or a call that a hook had put off.
//! The call runs now, once, and its result goes where the model expects it: directly behind the call.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton_model::stream::Sender;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Engine;
use crate::account::Tally;
use crate::context::{git_branch, reminder};
use crate::event::{Denial, Event, LoopKind, ToolStarted};
use crate::history::{Entry, History, Kind, Piece};
use crate::limits::REPORTS_QUEUED_MAX;
use crate::options::LateAnswer;
use crate::permission::{Answer, Asker, Question, Questions};
use crate::session::call_of;
use crate::tools::Tool;
use crate::tools::agent;
use crate::tools::bench::{Ending, Finished};
use crate::tools::executor::{Call, EndedBy, Executor};
use crate::tools::schedule::{Siblings, Terms};
use crate::transcript::TranscriptError;
use crate::turn::live::LastReply;
use crate::turn::{Blocked, Seen, Terminal, Tools, ends_at_once};

/// A call that was left open by a process that is gone.
pub(super) enum Late {
    /// Somebody has answered since.
    Answered(LateAnswer),
    /// A hook had put it off, and is asked again.
    Deferred(String),
}

impl Late {
    fn call(&self) -> &str {
        match self {
            Self::Answered(LateAnswer { call, .. }) | Self::Deferred(call) => call,
        }
    }
}

/// What came of a late answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    /// The prompt is next.
    GoOn,
    /// The submission ends here.
    Ended(Terminal),
    /// The user interrupted the call: so does it, once the prompt and that are recorded.
    Interrupted(Terminal),
}

impl Settled {
    fn by(seen: Seen) -> Self {
        ends_at_once(seen).map_or(Self::GoOn, Self::Ended)
    }
}

impl Engine {
    /// What is to be settled before the first prompt, once.
    pub(super) fn take_late(&mut self) -> Option<Late> {
        let resumed = self.options.resume.as_mut();
        let deferred = resumed.and_then(|resumed| resumed.conversation.deferred.take());
        let answered = self.options.late_answer.take().map(Late::Answered);
        answered.or_else(|| deferred.map(Late::Deferred))
    }

    /// Settles a late answer. What a hook or a rule says about the call holds as if it was made now.
    pub(super) async fn settle(
        &mut self,
        late: Late,
        cancel: &CancellationToken,
        tally: &mut Tally,
        last: &mut LastReply,
        events: &Sender<Event>,
    ) -> Result<Settled, TranscriptError> {
        let Some(call) = call_in(&self.session.history, late.call()) else { return Ok(Settled::GoOn) };
        if let Some(why) = self.too_late(late.call()) {
            if matches!(late, Late::Deferred(_)) {
                return Ok(Settled::GoOn);
            }
            let content = format!("The permission for the call {} came too late: {why}.", late.call());
            events.send(Event::Informational { content, prevents_continuation: false }).await;
            return Ok(Settled::GoOn);
        }
        let answer = match late {
            Late::Answered(late) => Some(late.answer),
            Late::Deferred(_) if !self.has_tool(&call.tool) => {
                last.deferred = Some(call.into());
                return Ok(Settled::by(Seen::Blocked(Blocked::ToolGone)));
            }
            Late::Deferred(_) => None,
        };
        let cwd = self.options.cwd.clone();
        let branch = tokio::task::spawn_blocking(move || git_branch(&cwd)).await;
        self.session.record.open(branch.ok().flatten())?;
        let finished = self.perform(&call, answer, cancel, events).await;
        if finished.ending == Ending::Deferred {
            last.deferred = Some(call.into());
            return Ok(Settled::by(Seen::Tools(Tools::Deferred)));
        }
        if finished.ending == Ending::Denied {
            let input = call.input.clone().unwrap_or_default();
            tally.denials.push(Denial { tool: Arc::clone(&call.tool), call: Arc::clone(&call.id), input });
        }
        tally.tool_calls += 1;
        let was_last = self.session.history.view().open_calls().contains(&call.id);
        let entry = self.session.record_result(&call.id, &finished.output)?;
        if !was_last {
            // What stood in for it is gone from the middle, and thinking is bound to what stands before it.
            self.session.history.view_mut().leave_out_thinking("a call was answered late");
            self.session.note(LoopKind::Repair, "a late result took the place of its stand-in", 0);
        }
        tally.user_messages += 1;
        events.send(Event::Message(entry)).await;
        let words = finished.hooks;
        if !words.updates.is_empty() {
            events.send(Event::PermissionsChanged(words.updates.into())).await;
        }
        for run in words.runs {
            events.send(Event::Hook(Arc::new(run))).await;
        }
        if !words.contexts.is_empty() {
            self.session.record_prompt(&reminder(&words.contexts), true)?;
        }
        let messages = words.messages.into_iter().map(|content| (content, false));
        let stopped = words.stop.is_some();
        for (content, prevents_continuation) in messages.chain(words.stop.map(|reason| (reason, true))) {
            events.send(Event::Informational { content, prevents_continuation }).await;
        }
        Ok(match (ends_at_once(Seen::Tools(Tools::Aborted)), stopped) {
            (Some(terminal), _) if cancel.is_cancelled() => Settled::Interrupted(terminal),
            (_, true) => Settled::by(Seen::Tools(Tools::HookStopped)),
            (_, false) => Settled::GoOn,
        })
    }

    fn has_tool(&self, name: &str) -> bool {
        let name = if name == agent::ALIAS { agent::NAME } else { name };
        let is_it = |tool: &Arc<dyn Tool>| tool.spec().name == name;
        self.offer.callable().iter().any(is_it) || self.offer.shelf().get(name).is_some()
    }

    /// Runs the call, on a bench where the only question is answered already if there is an answer.
    async fn perform(
        &self,
        call: &Call,
        answer: Option<Answer>,
        cancel: &CancellationToken,
        events: &Sender<Event>,
    ) -> Finished {
        // Nobody looks at how far it is: the submission has not begun.
        let (reports_in, _reports) = mpsc::channel(REPORTS_QUEUED_MAX);
        let (beside_in, _beside) = mpsc::channel(1);
        let mut bench = self.bench(cancel, reports_in, beside_in, events);
        if let Some(answer) = answer {
            bench.questions = Some(Questions::to(Answered(answer)));
            // It was decided about: there is nothing to put off any more.
            bench.may_defer = false;
        }
        let terms = Terms { running_max: 1, siblings: Siblings::default() };
        let mut executor = Executor::new(Arc::new(bench), terms);
        executor.add(call.clone());
        executor.complete();
        for call in executor.start() {
            let input = call.input.unwrap_or_default();
            let started = ToolStarted { call: call.id, tool: call.tool, input, running: 1 };
            events.send(Event::ToolStarted(started)).await;
        }
        loop {
            if let Some((_, finished)) = executor.take_next() {
                return finished;
            }
            tokio::select! {
                biased;
                () = cancel.cancelled() => executor.cancel(EndedBy::User).await,
                () = executor.advance() => {}
            }
        }
    }

    /// Why a call must not run any more, if so.
    fn too_late(&self, call: &str) -> Option<&'static str> {
        let answered =
            |kind: &Kind| matches!(kind, Kind::ToolResult { call: answered, .. } if &**answered == call);
        if self.session.history.entries().iter().any(|entry| answered(&entry.kind)) {
            return Some("the call has its result already");
        }
        let resumed = self.options.resume.as_ref();
        let asked = resumed.is_some_and(|resumed| resumed.conversation.undecided.iter().any(|id| id == call));
        // Only a call that was last seen waiting for its answer has certainly not begun.
        (!asked).then_some("it may have run already, so it is not run again")
    }
}

/// The call of that id, as the model made it.
pub(super) fn call_in(history: &History, id: &str) -> Option<Call> {
    let is_it = |entry: &&Arc<Entry>| matches!(&entry.kind, Kind::Assistant { piece: Piece::Call { id: call, .. }, .. } if &**call == id);
    call_of(history.entries().iter().rev().find(is_it)?)
}

/// Somebody who has decided.
struct Answered(Answer);

impl Asker for Answered {
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Answer> {
        async { self.0.clone() }.boxed()
    }
}
