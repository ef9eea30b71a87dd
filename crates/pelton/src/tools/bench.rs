//! One call, from its input to its output: known tool → usable input → hooks → permission → record → run → hooks.

mod permit; // whether it may run: rules, hooks, people
mod foresee; // calls made before the model asks for them
mod notes; // what the model may note for itself
mod retold; // what hooks want told instead

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use pelton_model::BadInput;
use serde_json::Value;

use tokio_util::sync::CancellationToken;

use self::permit::Permit;
use super::ahead::Ahead;
use super::builtin::tasks::Pending;
use super::executor::Call;
use super::in_order::Place;
use super::pictures;
use super::repetition::{Effect, Mark, Repetition};
use super::tool::{Access, Output, Safety, Tool, ToolCx};
use super::tool_search::Shelf;
use super::{agent, structured};
use crate::file_history::{Beside, FileHistory, Scope};
use crate::hooks::{Fired, HookEvent, HookRun, PermissionDecision, SessionHooks, ToolCall, by_whole_path};
use crate::permission::{HookSays, Mode, Permissions, Questions, Update};
use crate::sandbox::Door;
use crate::spill::{self, Shown};
use crate::transcript::{QuestionState, Transcript, TranscriptError};

/// How a call ended.
#[derive(Debug)]
pub struct Finished {
    /// What the model reads.
    pub output: Output,
    /// What kind of ending it is.
    pub ending: Ending,
    /// What hooks had to say.
    pub hooks: HookWords,
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
    /// Another call of the answer failed, and that cancels this one.
    Cancelled,
    /// It was not run because the conversation cannot be recorded.
    Unrecorded,
    /// It brought the structured output.
    Structured,
    /// It brought a structured output that does not fit.
    Misstructured,
    /// A hook said: do not continue.
    HookStopped,
    /// A hook put it off. It has no result.
    Deferred,
}

/// How the names of servers' tools begin.
const SERVED: &str = "mcp__";

/// What the hooks around a call said.
#[derive(Debug, Default)]
pub struct HookWords {
    /// Words for the model.
    pub contexts: Vec<String>,
    /// Words for the user.
    pub messages: Vec<String>,
    /// Why the run must not go on.
    pub stop: Option<String>,
    /// What ran.
    pub runs: Vec<HookRun>,
    /// What was changed with the permission to run the call.
    pub updates: Vec<Update>,
    /// What kind of reason it was refused for, if nobody was asked about it.
    pub refused_for: Option<&'static str>,
    /// The call as hooks read it, with the paths that held where it was made: a later call of the same answer may have moved.
    /// Kept only for those who listen to all calls of an answer.
    pub told: Option<ToolCall>,
}

impl HookWords {
    fn heard(&mut self, fired: &mut Fired) {
        // The model reads who says it, and of which call: there may be several.
        let who = fired.runs.first().map_or_else(|| "A hook".to_owned(), |run| format!("{} hook", run.name));
        let said = fired.verdict.contexts.drain(..);
        self.contexts.extend(said.map(|context| format!("{who} says: {context}")));
        self.messages.append(&mut fired.verdict.messages);
        self.runs.append(&mut fired.runs);
        if self.stop.is_none() {
            self.stop = fired.verdict.stop.take();
        }
    }
}

/// What calls are performed with.
pub struct Bench {
    /// The tools by name.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Those that come while calls are made.
    pub(crate) shelf: Shelf,
    /// Tools by other names.
    pub aliases: BTreeMap<String, String>,
    /// What may run.
    pub permissions: Permissions,
    /// Who is asked about the rest.
    pub questions: Option<Questions>,
    /// Who is asked and told about calls.
    pub hooks: SessionHooks,
    /// What every call gets to know; id and directory are filled in per call.
    pub cx: ToolCx,
    /// The directory calls start in. Calls that change it run alone, so there is no race.
    pub cwd: Arc<Mutex<PathBuf>>,
    /// Where side effects are announced before they happen.
    pub transcript: Option<Arc<Transcript>>,
    /// Where it is kept what calls do to files.
    pub file_history: Option<FileHistory>,
    /// Z2: calls made before the model asks for them, if the host wants that.
    pub(crate) ahead: Option<Ahead>,
    /// Which calls bring the same again and again.
    pub repetition: Mutex<Repetition>,
    /// Where the model keeps notes of its own, if it does.
    pub notes_dir: Option<PathBuf>,
    /// Whether hooks may put a call off.
    pub may_defer: bool,
    /// Ends the submission.
    pub submission: CancellationToken,
    /// Set when somebody refused a call and ended the submission with it.
    pub refused: CancellationToken,
}

/// What hooks said about a call, kept until it is judged.
enum Before {
    Nothing,
    Vouched,
    Asks(String),
}

impl Before {
    fn says(&self) -> HookSays<'_> {
        match self {
            Self::Nothing => HookSays::Nothing,
            Self::Vouched => HookSays::Vouches,
            Self::Asks(why) => HookSays::Asks(why),
        }
    }
}

/// A call that ends here.
struct Ended(Ending, Output);

impl Ended {
    fn unusable(why: String) -> Self {
        Self(Ending::Unusable, Output::unusable(why))
    }

    #[expect(clippy::needless_pass_by_value, reason = "it is what errors are mapped with")]
    fn unrecorded(error: TranscriptError) -> Self {
        Self(Ending::Unrecorded, Output::error(format!("Not run: {error}")))
    }

    fn interrupted() -> Self {
        Self(Ending::Interrupted, Output::error("The user interrupted before this call ran."))
    }
}

impl Bench {
    /// Whether a call may run beside others.
    pub(super) fn safety(&self, call: &Call) -> Safety {
        match (self.tool(&call.tool), &call.input) {
            (Some(tool), Ok(input)) => tool.safety(input),
            // It will be answered without running anything.
            _ => Safety::Shared,
        }
    }

    /// Notes what a call brought. Tells how often it has brought just that.
    pub(crate) fn note_repetition(&self, call: &Call, output: &Output) -> u32 {
        let changes = self.safety(call) == Safety::Alone && !output.is_error;
        let effect = if changes { Effect::Change } else { Effect::None };
        let result = Mark::of(&(&output.content, output.is_error));
        let mut repetition = self.repetition.lock().unwrap_or_else(PoisonError::into_inner);
        repetition.note(mark_of(&call.tool, call.input.as_deref().unwrap_or(&Value::Null)), result, effect)
    }

    /// One call, from its input to its output. `place` is its place among the others.
    pub(super) async fn perform(&self, call: &Call, place: Place) -> Finished {
        let mut hooks = HookWords::default();
        let (Ok(Ended(ending, output)) | Err(Ended(ending, output))) =
            self.attempt(call, place, &mut hooks).await;
        let ending = if hooks.stop.is_some() { Ending::HookStopped } else { ending };
        let output = self.made_to_fit(call, output).await;
        Finished { output, ending, hooks }
    }

    async fn attempt(&self, call: &Call, mut place: Place, hooks: &mut HookWords) -> Result<Ended, Ended> {
        let tool = self
            .tool(&call.tool)
            .ok_or_else(|| Ended::unusable(format!("Error: No such tool available: {}", call.tool)))?;
        let input =
            call.input.as_ref().map_err(|bad| Ended(Ending::Unusable, unreadable(&call.tool, bad)))?;
        let cx = self.cx(call);
        // Rules and hooks are about the tool that is called, by whatever name.
        let name = self.aliases.get(&*call.tool).map_or(&*call.tool, String::as_str);
        let mut told =
            ToolCall { name: name.to_owned(), input: Value::clone(input), id: call.id.to_string() };
        access(tool.as_ref(), &told.input, &cx).map_err(Ended::unusable)?;
        told.input = tool.completed(told.input, &cx).await;
        self.keep_for_batch(&told, &cx, hooks);
        let before = self.ask_hooks(&mut told, &cx, hooks, &place).await?;
        // A hook may have changed the input: everything that depends on it is judged anew.
        let says = match before.says() {
            HookSays::Nothing if self.is_held(tool.as_ref(), &told.input, &cx) => {
                // The weaker form finds out about protected names when it is too late to ask.
                let holds_names = cx.sandbox.as_ref().is_some_and(|sandbox| !sandbox.is_weak());
                if holds_names { HookSays::Held } else { HookSays::Vouches }
            }
            says => says,
        };
        let permit = self.permit(tool.as_ref(), &mut told, &cx, says, hooks, &mut place).await?;
        // Behind this nothing changes what may run, so the next question can be asked.
        drop(place);
        self.keep_for_batch(&told, &cx, hooks);
        let judged = match permit {
            Permit::Run(judged) => judged,
            Permit::Fails(answer) => {
                return Ok(self.done(tool.as_ref(), &told, &cx, answer, Duration::ZERO, hooks).await);
            }
        };
        // The permission may have come with others: what may be read is asked again. What is opened is what was judged.
        let cx = ToolCx { judged, ..self.cx(call) };
        if tool.safety(&told.input) != Safety::Shared {
            self.announce().await.map_err(Ended::unrecorded)?;
        }
        Ok(self.run(tool.as_ref(), &told, &cx, hooks).await)
    }

    fn keep_for_batch(&self, call: &ToolCall, cx: &ToolCx, hooks: &mut HookWords) {
        if self.hooks.listens(HookEvent::PostToolBatch) {
            hooks.told = Some(by_whole_path(call, &cx.cwd));
        }
    }

    async fn run(&self, tool: &dyn Tool, call: &ToolCall, cx: &ToolCx, hooks: &mut HookWords) -> Ended {
        let watched = self.watch_files(tool, call, cx, hooks).await;
        let started = cx.world.monotonic();
        let output = match self.made_ahead(tool, &call.input, cx).await {
            Some(output) => output,
            None => match self.ask_about_task(call, cx, hooks).await {
                Some(objection) => objection,
                None => match AssertUnwindSafe(tool.run(call.input.clone(), cx)).catch_unwind().await {
                    Ok(output) => output,
                    Err(panic) => crashed(&call.name, panic.as_ref()),
                },
            },
        };
        let mut output = pictures::fitted(output, &cx.cancel).await;
        if let (Some(changed), Some(dir), Ok(Access::Edit(_))) =
            (&cx.judged, &self.notes_dir, tool.access(&call.input, cx))
        {
            output = notes::checked(output, changed, dir).await;
        }
        let took = cx.world.monotonic().saturating_sub(started);
        let ended = self.done(tool, call, cx, output, took, hooks).await;
        // What hooks did with the files belongs to the call.
        if let Some(history) = watched {
            hooks.messages.extend(history.end(call.id.clone(), Beside::of(&cx.background)).await);
        }
        ended
    }

    /// What becomes of an answer: who listens is told of it, and it may be told otherwise.
    async fn done(
        &self,
        tool: &dyn Tool,
        call: &ToolCall,
        cx: &ToolCx,
        mut output: Output,
        took: Duration,
        hooks: &mut HookWords,
    ) -> Ended {
        if let Some(moved) = &output.new_cwd {
            self.cwd.lock().unwrap_or_else(PoisonError::into_inner).clone_from(moved);
            if let Some(mut fired) = self.session_hooks().moved(&cx.cwd, moved).await {
                hooks.heard(&mut fired);
            }
        }
        if !cx.cancel.is_cancelled() {
            let fired = if output.is_error {
                self.session_hooks().after_failure(call, &output.words(), took, &cx.cwd).await
            } else {
                let response = output.detail.clone().unwrap_or_else(|| output.words().into());
                self.session_hooks().after_tool(call, &response, took, &cx.cwd).await
            };
            if let Some(mut fired) = fired {
                let is_served = call.name.starts_with(SERVED);
                match retold::retold(&call.name, &output, &mut fired.verdict.extras, is_served) {
                    Some(Ok(other)) if !output.is_error => output = other,
                    Some(Err(why)) => {
                        hooks.messages.push(format!("What a hook wants told of {} {why}.", call.name));
                    }
                    _ => {}
                }
                // What was done is done: a block can only be told.
                if let Some(block) = fired.verdict.block.take() {
                    fired.verdict.contexts.insert(0, block);
                }
                hooks.heard(&mut fired);
            }
        }
        let ending = match (tool.spec().name, output.is_error) {
            _ if cx.cancel.is_cancelled() => Ending::Interrupted,
            (structured::NAME, false) => Ending::Structured,
            (structured::NAME, true) => Ending::Misstructured,
            _ => Ending::Ran,
        };
        Ended(ending, output)
    }

    /// Asks hooks about a task that is about to be made or done. What the model is told if they object: then it is not.
    async fn ask_about_task(&self, call: &ToolCall, cx: &ToolCx, hooks: &mut HookWords) -> Option<Output> {
        let Pending { is_new, fields } = cx.tasks.pending(&call.name, &call.input)?;
        let event = if is_new { HookEvent::TaskCreated } else { HookEvent::TaskCompleted };
        let mut fired = self.session_hooks().task(event, fields, &cx.cwd).await?;
        let objection = fired.verdict.block.take();
        hooks.heard(&mut fired);
        let what = if is_new { "made" } else { "marked as done" };
        objection.map(|why| Output::error(format!("The task was not {what}: a hook objects. {why}")))
    }

    /// Whether the box takes the place of a question. In plan mode nothing is to be changed, not even inside of one.
    fn is_held(&self, tool: &dyn Tool, input: &Value, cx: &ToolCx) -> bool {
        self.permissions.mode() != Mode::Plan && tool.is_held(input, cx)
    }

    /// Keeps what a call may change, if it may change something.
    async fn watch_files(
        &self,
        tool: &dyn Tool,
        call: &ToolCall,
        cx: &ToolCx,
        hooks: &mut HookWords,
    ) -> Option<&FileHistory> {
        let history = self.file_history.as_ref().filter(|_| tool.safety(&call.input) == Safety::Alone)?;
        let scope = match (tool.access(&call.input, cx), &cx.judged) {
            (Ok(Access::Edit(_)), Some(real)) => Scope::File(real.clone()),
            _ => Scope::Trees(cx.roots.to_vec()),
        };
        hooks.messages.extend(history.begin(call.id.clone(), scope).await);
        Some(history)
    }

    /// Asks the hooks about a call, and takes over what they changed.
    async fn ask_hooks(
        &self,
        call: &mut ToolCall,
        cx: &ToolCx,
        hooks: &mut HookWords,
        place: &Place,
    ) -> Result<Before, Ended> {
        let Some(mut fired) = self.session_hooks().before_tool(call, &cx.cwd).await else {
            return Ok(Before::Nothing);
        };
        hooks.heard(&mut fired);
        if cx.cancel.is_cancelled() {
            return Err(Ended::interrupted());
        }
        if let Some(reason) = &hooks.stop {
            let text = format!("Not run: a hook ended the run. {reason}");
            return Err(Ended(Ending::HookStopped, Output::error(text.trim_end())));
        }
        let defers = self.may_defer
            && fired
                .verdict
                .permission
                .as_ref()
                .is_some_and(|answer| answer.decision == PermissionDecision::Defer);
        // A call that is put off stays as the model made it: the hook is asked again.
        if let Some(input) = fired.verdict.updated_input.filter(|_| !defers) {
            call.input = input;
        }
        let Some(answer) = fired.verdict.permission else { return Ok(Before::Nothing) };
        match answer.decision {
            PermissionDecision::Allow => Ok(Before::Vouched),
            PermissionDecision::Deny => {
                let reason = answer.reason.unwrap_or_else(|| "A hook refused this call.".to_owned());
                Err(Ended(Ending::Denied, Output::error(reason)))
            }
            PermissionDecision::Defer if self.may_defer => {
                tokio::select! {
                    biased;
                    () = cx.cancel.cancelled() => return Err(Ended::interrupted()),
                    // Others were made together with it and would have to wait as well: then it is like any other.
                    is_alone = place.is_alone() => if !is_alone { return Ok(Before::Nothing) },
                }
                self.note_question(&call.id, QuestionState::Deferred).map_err(Ended::unrecorded)?;
                Err(Ended(Ending::Deferred, Output::text("A hook put this call off.")))
            }
            PermissionDecision::Ask | PermissionDecision::Defer => {
                Ok(Before::Asks(answer.reason.unwrap_or_else(|| "A hook asks for approval.".to_owned())))
            }
        }
    }

    /// The hooks, told how things stand now.
    fn session_hooks(&self) -> SessionHooks {
        let mut hooks = self.hooks.clone();
        hooks.base.permission_mode = Some(self.permissions.mode().name().to_owned());
        hooks
    }

    /// P10: what is too long for the model goes to a file, errors included.
    async fn made_to_fit(&self, call: &Call, output: Output) -> Output {
        let limits = &self.cx.limits;
        let max = self.tool(&call.tool).map_or(limits.result_chars_max, |tool| tool.result_chars_max(limits));
        let words = output.words();
        if words.len() <= max || words.chars().nth(max).is_none() {
            return output;
        }
        let shown = Shown::of(&words, limits.result_preview_chars.min(max));
        match spill::keep(&self.cx.spill_dir, &self.cx.secrets, &format!("{}-result", call.id), &words).await
        {
            Ok(path) => output.with_words(shown.with_note(Some(&path))),
            Err(why) => output.with_words(format!(
                "{}\n[The whole result could not be kept: {why}.]",
                shown.with_note(None)
            )),
        }
    }

    fn tool(&self, name: &str) -> Option<Arc<dyn Tool>> {
        // One step: an alias of an alias is no tool.
        let name = self.aliases.get(name).map_or_else(|| present_name(name), String::as_str);
        self.tools.iter().find(|tool| tool.spec().name == name).cloned().or_else(|| self.shelf.get(name))
    }

    fn cx(&self, call: &Call) -> ToolCx {
        self.cx_of(&call.id)
    }

    fn cx_of(&self, call: &str) -> ToolCx {
        let mut cx = ToolCx { call_id: Arc::from(call), ..self.cx_now() };
        cx.door = cx.sandbox.is_some().then(|| Door {
            permissions: self.permissions.clone(),
            questions: self.questions.clone(),
            call: Arc::clone(&cx.call_id),
            cwd: cx.cwd.clone(),
        });
        cx
    }

    /// Where commands work.
    pub(crate) fn cwd_now(&self) -> PathBuf {
        self.cwd.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a call would get to know now.
    pub(crate) fn cx_now(&self) -> ToolCx {
        let cwd = self.cwd_now();
        let readable = self.permissions.gate().readable(&cwd);
        let roots = self.permissions.roots().into();
        ToolCx { cwd, roots, readable, ..self.cx.clone() }
    }

    /// A call with side effects is on the disk before it begins: after a crash the session knows it may have run.
    async fn announce(&self) -> Result<(), TranscriptError> {
        match &self.transcript {
            Some(transcript) => transcript.sync().await,
            None => Ok(()),
        }
    }
}

/// Tools that were once called otherwise: old prompts and skills still name them so.
const FORMER_NAMES: [(&str, &str); 4] = [
    (agent::ALIAS, agent::NAME),
    ("BashOutput", "TaskOutput"),
    ("KillBash", "TaskStop"),
    ("KillShell", "TaskStop"),
];

fn present_name(name: &str) -> &str {
    FORMER_NAMES.iter().find(|(former, _)| *former == name).map_or(name, |(_, now)| now)
}

/// Stands for a call of a tool with an input.
fn mark_of(tool: &str, input: &Value) -> Mark {
    // The order of an object's fields is kept, so a model that changes it is taken to mean something else by it.
    Mark::of(&(tool, input.to_string()))
}

/// What a call would touch, or what is wrong with its input.
fn access(tool: &dyn Tool, input: &Value, cx: &ToolCx) -> Result<Access, String> {
    tool.access(input, cx).map_err(|invalid| {
        let name = tool.spec().name;
        format!("InputValidationError: {name} was called with unusable input: {}", invalid.0)
    })
}

fn unreadable(tool: &str, bad: &BadInput) -> Output {
    Output::unusable(format_args!(
        "InputValidationError: the input of {tool} is not a JSON object ({}). If it was cut by the output limit, write \
         it in smaller parts.",
        bad.error
    ))
}

fn crashed(tool: &str, panic: &(dyn Any + Send)) -> Output {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown cause".to_owned());
    Output::error(format!("{tool} crashed: {message}. This is a fault in the tool, not in the call."))
}
