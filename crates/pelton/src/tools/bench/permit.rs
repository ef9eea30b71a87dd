//! Whether a call may run: rules first, then whoever can be asked about it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use serde_json::{Value, json};

use super::{Bench, Ended, Ending, HookWords, access, mark_of};
use crate::hooks::{Fired, PermissionDecision, ToolCall};
use crate::limits::REPETITION_STUCK_AT;
use crate::permission::{
    Access, Answer, Cause, Decision, Found, HookSays, Judged, Mode, Question, Update, Verdict, suggestions,
};
use crate::status::Wait;
use crate::tools::in_order::Place;
use crate::tools::repetition::Mark;
use crate::tools::tool::{Output, Tool, ToolCx};
use crate::transcript::{QuestionState, TranscriptError};

/// What the model reads when the user says no without a word.
const REFUSED: &str = "The user does not want this call to run.";

/// What became of a question.
enum Decided {
    Answered(Answer),
    /// What was answered before has settled it.
    Denied(Box<Decision>),
    Interrupted,
    /// Nobody could be asked.
    Nobody,
}

/// What may become of a call that is not ended here.
pub(super) enum Permit {
    /// It may run. Where its path led, if it has one: that is what was judged, whatever is there later.
    Run(Option<PathBuf>),
    /// It could not do what it is told, so that nobody was asked whether it may. This is its answer.
    Fails(Output),
}

impl Bench {
    /// Ends the call if it may not run. It may have another input afterwards.
    pub(super) async fn permit(
        &self,
        tool: &dyn Tool,
        call: &mut ToolCall,
        cx: &ToolCx,
        hook: HookSays<'_>,
        hooks: &mut HookWords,
        place: &mut Place,
    ) -> Result<Permit, Ended> {
        let touches = access(tool, &call.input, cx).map_err(Ended::unusable)?;
        let found = Found::of(&touches);
        let mark = mark_of(&call.name, &call.input);
        let judge = || {
            let judged =
                Judged { tool: &call.name, input: &call.input, access: &touches, cwd: &cx.cwd, hook };
            let decision = self.permissions.gate().judge_at(&judged, &found);
            if !decision.is_allowed() || !self.asks_about_repetition(mark) {
                return decision;
            }
            let why = format!(
                "{} was called {REPETITION_STUCK_AT} times in the same way and brought the same. Go on?",
                call.name
            );
            Decision::question(why, Cause::Repetition)
        };
        let decision = judge();
        match decision.verdict {
            Verdict::Allow => return Ok(Permit::Run(found.real().map(Path::to_path_buf))),
            Verdict::Deny => return Err(self.refuse(call, decision, cx, hooks).await),
            Verdict::Ask => {}
        }
        let may_look = self.may_look(&touches, cx);
        let judged = ToolCx { judged: found.real().map(Path::to_path_buf), may_look, ..cx.clone() };
        if let Some(answer) = tool.refusal(&call.input, &judged).await {
            return Ok(Permit::Fails(answer));
        }
        let question = Question {
            tool: Arc::from(call.name.as_str()),
            call: Arc::from(call.id.as_str()),
            input: call.input.clone(),
            cwd: cx.cwd.clone(),
            suggestions: suggestions(&call.name, &touches, &decision),
            access: touches.clone(),
            why: decision.reason,
            cause: decision.cause,
            rule: decision.rule,
            parts: decision.parts,
            agent_id: self.hooks.base.agent_id.clone(),
            server: self.hooks.cx.served_by.as_ref().and_then(|served_by| served_by(&call.name)),
        };
        self.note_question(&question.call, QuestionState::Asked).map_err(Ended::unrecorded)?;
        let decided = self.decided(&question, judge, cx, hooks, place).await;
        self.note_question(&question.call, QuestionState::Decided).map_err(Ended::unrecorded)?;
        match decided {
            Decided::Answered(Answer::Allow { updated_input, updates }) => {
                hooks.messages.extend(place.settle(updates.clone()));
                hooks.updates.extend(updates);
                self.repetition.lock().unwrap_or_else(PoisonError::into_inner).forgive(mark);
                if let Some(input) = updated_input {
                    call.input = input;
                }
                // The user has spoken about this input, but neither they nor a program in their place are above the
                // rules.
                let touches = access(tool, &call.input, cx).map_err(Ended::unusable)?;
                // What they were asked about is what is opened, unless they named something else.
                let found = if touches == question.access { found } else { Found::of(&touches) };
                let hook = HookSays::Nothing;
                let judged =
                    Judged { tool: &call.name, input: &call.input, access: &touches, cwd: &cx.cwd, hook };
                let decision = self.permissions.gate().judge_at(&judged, &found);
                match decision.verdict {
                    Verdict::Allow | Verdict::Ask => Ok(Permit::Run(found.real().map(Path::to_path_buf))),
                    Verdict::Deny => Err(self.refuse(call, decision, cx, hooks).await),
                }
            }
            Decided::Answered(Answer::Deny { message, interrupt }) => {
                if interrupt {
                    self.refused.cancel();
                    self.submission.cancel();
                }
                let message = if message.trim().is_empty() { REFUSED.to_owned() } else { message };
                Err(Ended(Ending::Denied, Output::error(message)))
            }
            Decided::Denied(decision) => Err(self.refuse(call, *decision, cx, hooks).await),
            Decided::Interrupted => Err(Ended::interrupted()),
            Decided::Nobody => {
                let decision =
                    Decision::question(nobody_to_ask(&question.why, &question.cause), question.cause);
                Err(self.refuse(call, decision, cx, hooks).await)
            }
        }
    }

    /// A call that was last seen waiting for somebody's answer has not begun. Everything else may have, after a crash.
    pub(super) fn note_question(&self, call: &str, state: QuestionState) -> Result<(), TranscriptError> {
        let is_asked = self.questions.is_some() || state == QuestionState::Deferred;
        let Some(transcript) = self.transcript.as_ref().filter(|_| is_asked) else { return Ok(()) };
        transcript.question(call, state, self.cx.world.now())
    }

    /// L12: whether a person is asked about a call because it brought the same again and again. Programs are told, not asked.
    fn asks_about_repetition(&self, call: Mark) -> bool {
        self.questions.as_ref().is_some_and(|questions| !questions.takes_many())
            && self.permissions.mode() != Mode::DontAsk
            && self.repetition.lock().unwrap_or_else(PoisonError::into_inner).times(call)
                >= REPETITION_STUCK_AT
    }

    /// Asks whoever can be asked, hooks and people side by side: the first that decides has decided.
    async fn decided(
        &self,
        question: &Question,
        judge: impl Fn() -> Decision,
        cx: &ToolCx,
        hooks: &mut HookWords,
        place: &Place,
    ) -> Decided {
        let asked = async {
            let Some(questions) = &self.questions else { return std::future::pending().await };
            if !questions.takes_many() {
                place.turn().await;
                // Answers before this one may have settled it.
                let decision = judge();
                match decision.verdict {
                    Verdict::Allow => return (Decided::Answered(Answer::allow()), None),
                    Verdict::Deny => return (Decided::Denied(Box::new(decision)), None),
                    Verdict::Ask => {}
                }
            }
            let _wait = self.hooks.board.wait(Wait::Permission { call: Arc::clone(&question.call) });
            let message = format!("Pelton needs your permission to use {}", question.tool);
            let hooks = self.session_hooks();
            let notified = hooks.notify("permission_prompt", &message, &cx.cwd);
            let (answer, notified) = tokio::join!(questions.ask(question), notified);
            (Decided::Answered(answer), notified)
        };
        let wanted = question.suggestions.iter().map(Update::to_json).collect();
        let told = self.session_hooks();
        let requested = told.permission_request(&question.tool, &question.input, wanted, &cx.cwd);
        tokio::pin!(asked, requested);
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Decided::Interrupted,
            fired = &mut requested => {
                if let Some(answer) = fired.and_then(|fired| in_the_users_place(fired, hooks)) {
                    return Decided::Answered(answer);
                }
                if self.questions.is_none() {
                    return Decided::Nobody;
                }
            }
            answered = &mut asked => return heard_of(answered, hooks),
        }
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => Decided::Interrupted,
            answered = &mut asked => heard_of(answered, hooks),
        }
    }

    /// A refusal that nobody was asked about.
    async fn refuse(&self, call: &ToolCall, decision: Decision, cx: &ToolCx, hooks: &mut HookWords) -> Ended {
        let why = decision.reason;
        hooks.refused_for = Some(decision.cause.name());
        if let Some(mut fired) = self.session_hooks().permission_denied(call, &why, &cx.cwd).await {
            if fired.verdict.extras.remove("retry") == Some(Value::Bool(true)) {
                hooks.contexts.push(format!("A hook says that {} may be tried again.", call.name));
            }
            hooks.heard(&mut fired);
        }
        Ended(Ending::Denied, Output::error(why))
    }
}

/// What was decided, once it is kept what hooks said that were told of the question.
fn heard_of((decided, notified): (Decided, Option<Fired>), hooks: &mut HookWords) -> Decided {
    if let Some(mut fired) = notified {
        hooks.heard(&mut fired);
    }
    decided
}

/// What hooks decided in the place of the user, if they did.
fn in_the_users_place(mut fired: Fired, hooks: &mut HookWords) -> Option<Answer> {
    let verdict = &mut fired.verdict;
    let decision = verdict.permission.take();
    let updated_input = verdict.updated_input.take();
    let interrupt = verdict.extras.remove("interrupt") == Some(Value::Bool(true));
    let mut updates = Vec::new();
    if let Some(Value::Array(wanted)) = verdict.extras.remove("updatedPermissions") {
        for update in &wanted {
            match Update::from_json(update) {
                Ok(update) => updates.push(update),
                Err(bad) => verdict.messages.push(format!("PermissionRequest hook: {bad}")),
            }
        }
    }
    hooks.heard(&mut fired);
    let decision = decision?;
    Some(match decision.decision {
        PermissionDecision::Allow => Answer::Allow { updated_input, updates },
        _ => Answer::Deny { message: decision.reason.unwrap_or_default(), interrupt },
    })
}

impl Bench {
    /// Whether a look at what a call would change needs no question.
    fn may_look(&self, touches: &Access, cx: &ToolCx) -> bool {
        let Access::Edit(path) = touches else { return true };
        let (input, access) = (json!({"file_path": path}), Access::Read(path.clone()));
        let call =
            Judged { tool: "Read", input: &input, access: &access, cwd: &cx.cwd, hook: HookSays::Nothing };
        self.permissions.gate().judge(&call).is_allowed()
    }
}

/// Why a call was not made that somebody would have had to be asked about, and the way out, if there is one.
fn nobody_to_ask(why: &str, cause: &Cause) -> String {
    let way_out = match cause {
        Cause::Critical(_) => {
            "No permission rule and no mode allows it: the user can only do it without an agent."
        }
        Cause::Protected(_) => {
            "No permission rule allows it, only the mode bypassPermissions: the user can do it without an agent."
        }
        Cause::Rule(_) => "That rule counts in every mode: the user can take it out of the settings.",
        Cause::Person => "No permission rule and no mode takes the place of a person.",
        Cause::Hook => "No permission rule and no mode allows what a hook wants to be asked about.",
        _ => {
            "The user can allow it beforehand with a permission rule (--allowedTools) or a permission mode \
             (--permission-mode)."
        }
    };
    format!("{why} There is nobody to ask in this session, so it was not done. {way_out}")
}
