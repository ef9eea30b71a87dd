//! Sub-agents: engines made for one call of a tool, which share the money, the hooks and the permissions of the one
//! that started them, and nothing of its conversation unless they are forks.

mod progress; // what it is doing, in a line every now and then
mod judge; // agents that look around for hooks
mod letters; // words for agents that were started before
mod roster; // those that nobody waits for
mod watch; // one agent while it runs
mod worktree; // a checkout of an agent's own

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton_model::stream::Sender;
use pelton_model::{Ask, catalogue};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub(super) use judge::Judges;
pub(super) use roster::Roster;

use super::kin::{AgentSelf, Kin, Seat};
use super::start::queue_of;
use super::{Engine, StartError};
use crate::context::SystemPrompt;
use crate::event::{AgentEnd, AgentEvent, AgentFacts, AgentNews, Event};
use crate::history::History;
use crate::hooks::{Fired, HookConfig, Hooks, SessionHooks};
use crate::options::Options;
use crate::permission::{Mode, Permissions};
use crate::places::resolve;
use crate::session::Session;
use crate::spill;
use crate::tools::agent::{
    self, AgentDefinition, Agents, Delivered, FORK, Isolation, Launched, Letter, MemoryScope, NotStarted,
    Order, Ran, Written,
};
use crate::tools::background::{BackgroundEnd, BackgroundKind, BackgroundTask};
use crate::tools::builtin::task;
use crate::tools::{MadeServers, Output, ToolCx, ToolServer, structured};
use roster::Outlet;
use watch::Watched;
use worktree::{Worktree, Worktrees};

/// What the calls that a fork starts from are answered with, in the fork.
const FORKED: &str = "From here on you are a copy of the agent that made this call. The original goes on by itself and has the \
results of its calls. Do only what the next message says, and end with a report of it.";

/// Tools of the main thread: answers in a form are its own, and an agent that waits for what runs beside it holds up its parent.
const NOT_FOR_AGENTS: [&str; 2] = [structured::NAME, task::OUTPUT_NAME];

/// Starts the agents of one submission.
pub(super) struct Children {
    /// What the parent was told; an agent is told less.
    pub options: Options,
    pub kin: Kin,
    /// Who hears of what happens around its agents.
    pub hooks: SessionHooks,
    pub session_id: Uuid,
    /// The record of the main thread, if there is one.
    pub session_file: Option<PathBuf>,
    /// The parent's question, which a fork asks as well.
    pub question: Ask,
    /// The parent's stream.
    pub events: Sender<Event>,
    /// The agents that nobody waits for.
    pub roster: Roster,
    /// Ends the parent's submission.
    pub submission: CancellationToken,
    /// Set when somebody refused a call and ended the submission with it.
    pub refused: CancellationToken,
    /// What was said until calls that start forks.
    pub kept: Mutex<HashMap<String, History>>,
}

impl Agents for Children {
    fn run<'a>(self: Arc<Self>, order: Order, cx: &'a ToolCx) -> BoxFuture<'a, Result<Ran, NotStarted>> {
        async move {
            let ready = self.ready(&order, cx).await?;
            self.run_ready(ready, order, cx).await
        }
        .boxed()
    }

    fn write<'a>(
        self: Arc<Self>,
        letter: Letter,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<Written, NotStarted>> {
        self.write_to(letter, cx).boxed()
    }

    fn keep(&self, call: &str, history: &History) {
        self.kept().insert(call.to_owned(), history.clone());
    }
}

/// An agent that is about to begin.
struct Ready {
    engine: Box<Engine>,
    facts: Arc<AgentFacts>,
    /// It is counted as running.
    seat: Seat,
    /// The checkout that was made for it.
    place: Option<Worktree>,
    /// It knows its skills and has heard its beginning already.
    goes_on: bool,
    /// Ends it.
    stop: CancellationToken,
    /// Where what it tells goes.
    outlet: Outlet,
}

impl Children {
    async fn ready(&self, order: &Order, cx: &ToolCx) -> Result<Ready, NotStarted> {
        let history = self.kept().remove(&*cx.call_id);
        let seat = self.seat()?;
        let of_kind = || self.definition(&order.agent_type).is_ok_and(|definition| definition.background);
        // An agent waits for its own: it ends with its report, and they end with it.
        let may_be_beside = self.kin.agent.is_none() && !cx.limits.background_off;
        let facts = Arc::new(AgentFacts {
            id: format!("a{:016x}", self.options.world.random()),
            call: Arc::clone(&cx.call_id),
            agent_type: order.agent_type.clone(),
            description: order.description.clone(),
            prompt: order.prompt.clone(),
            beside: may_be_beside && order.beside.unwrap_or_else(of_kind),
            depth: self.kin.depth() + 1,
            parent: self.parent(),
        });
        let me = self.member_of(&facts, order.agent_type == FORK);
        // The host ends everything; whoever waits for the agent ends it besides.
        let stop = self.options.cancel.child_token();
        let outlet = Outlet::to(self.events.clone(), stop.clone());
        let mut made = None;
        let mut engine = match me.is_fork {
            true => self.fork(me, history).map_err(NotStarted)?,
            false => {
                let definition = self.definition(&order.agent_type).map_err(NotStarted)?;
                let hooks = self.hooks_of(definition, &outlet).await;
                if order.isolation.or(definition.isolation) == Some(Isolation::Worktree) {
                    let hooks = self.hooks_now(&cx.cancel);
                    let (place, fired) = self.worktrees(&hooks).make(&format!("agent-{}", facts.id)).await;
                    tell_hooks(fired, &outlet).await;
                    made = Some(place.map_err(NotStarted)?);
                }
                let place = made.as_ref().map(|made| made.path.as_path());
                let servers = self.servers_of(definition, &outlet).await;
                let options = Options { resume: None, servers, ..self.options.clone() };
                self.from(options, me, order, definition, hooks, place).map_err(NotStarted)?
            }
        };
        if made.is_none() {
            engine.cwd = Arc::new(Mutex::new(cx.cwd.clone()));
        }
        self.describe(&facts, order, made.as_ref().map(|made| made.path.as_path()));
        Ok(Ready { engine, facts, seat, place: made, goes_on: false, stop, outlet })
    }

    /// Counts one more agent, if there may be one.
    fn seat(&self) -> Result<Seat, NotStarted> {
        if !self.kin.may_have_children() {
            let depth = self.kin.census.limits.depth_max;
            return Err(NotStarted(format!("Agents may stand {depth} deep and no deeper: do it yourself.")));
        }
        if self.kin.spending.is_spent() {
            return Err(NotStarted("Budget limit reached: no agent can be started.".to_owned()));
        }
        self.kin.census.enter().map_err(NotStarted)
    }

    /// The agent whose calls start these, unless it is the main thread.
    fn parent(&self) -> Option<String> {
        self.kin.agent.as_ref().map(|agent| agent.facts.id.clone())
    }

    fn member_of(&self, facts: &Arc<AgentFacts>, is_fork: bool) -> AgentSelf {
        let (facts, session_file) = (Arc::clone(facts), self.session_file.clone());
        AgentSelf { facts, depth: self.kin.depth() + 1, is_fork, session_file }
    }

    /// Waits for an agent, unless nobody wants to, or somebody asks for it to go on beside the conversation.
    async fn run_ready(self: Arc<Self>, ready: Ready, order: Order, cx: &ToolCx) -> Result<Ran, NotStarted> {
        let may_be_beside = self.kin.agent.is_none() && !cx.limits.background_off;
        let beside = ready.facts.beside;
        let (facts, stop, outlet) = (Arc::clone(&ready.facts), ready.stop.clone(), ready.outlet.clone());
        let put_beside = PutBeside { is_working: !beside, facts, stop: stop.clone(), outlet };
        let refused = (self.refused.clone(), self.submission.clone());
        let roster = self.roster.clone();
        if beside {
            let run = self.go(ready, order, cx.cwd.clone());
            return put_beside.by(&roster, run, cx).await.map(Ran::Beside);
        }
        let mut run = self.go(ready, order, cx.cwd.clone());
        let front = cx.background.in_front(&cx.call_id);
        loop {
            tokio::select! {
                biased;
                () = cx.cancel.cancelled(), if !stop.is_cancelled() => stop.cancel(),
                delivered = &mut run => {
                    if delivered.end == AgentEnd::Stopped && !stop.is_cancelled() {
                        // Somebody refused a call of the agent's and ended the run with it: not only the agent's.
                        refused.0.cancel();
                        refused.1.cancel();
                    }
                    return Ok(Ran::Delivered(Box::new(delivered)));
                }
                () = front.put_aside(), if may_be_beside && !stop.is_cancelled() => {
                    return put_beside.by(&roster, run, cx).await.map(Ran::Beside);
                }
            }
        }
    }

    /// Runs an agent to its end. In a box, like everything of an agent: agents below agents stand on one stack.
    fn go(self: Arc<Self>, ready: Ready, order: Order, cwd: PathBuf) -> BoxFuture<'static, Delivered> {
        self.going(ready, order, cwd).boxed()
    }

    async fn going(self: Arc<Self>, ready: Ready, order: Order, cwd: PathBuf) -> Delivered {
        let Ready { engine, facts, seat: _seat, place, goes_on, stop, outlet, .. } = ready;
        let watched = Watched { facts, goes_on, stop, outlet: outlet.clone() };
        let mut delivered = self.watch(engine, watched, &order, &cwd).boxed().await;
        if let Some(made) = place {
            let hooks = self.hooks_now(&CancellationToken::new());
            let (left, fired) = self.worktrees(&hooks).end(made).await;
            tell_hooks(fired, &outlet).await;
            delivered.text =
                [Some(delivered.text), left].into_iter().flatten().collect::<Vec<_>>().join("\n\n");
        }
        delivered
    }

    fn worktrees<'a>(&'a self, hooks: &'a SessionHooks) -> Worktrees<'a> {
        Worktrees { options: &self.options.worktrees, env: &self.options.env, cwd: &self.options.cwd, hooks }
    }

    /// The hooks of the session, told of something that is not an agent's.
    fn hooks_now(&self, cancel: &CancellationToken) -> SessionHooks {
        let mut hooks = self.hooks.clone();
        hooks.cx.cancel = cancel.clone();
        hooks
    }

    fn definition(&self, agent_type: &str) -> Result<&AgentDefinition, String> {
        let definition = self.options.agents.iter().find(|agent| agent.name == agent_type);
        definition.ok_or_else(|| format!("There is no agent '{agent_type}'."))
    }

    /// The hooks that are called for an agent: those that are called for its parent, and its own while it runs.
    async fn hooks_of(&self, definition: &AgentDefinition, outlet: &Outlet) -> Hooks {
        let own = definition.hooks.as_ref().map(|hooks| HookConfig::of_agent(hooks, &definition.name));
        let (own, problems) = own.unwrap_or_default();
        for problem in problems {
            let content = format!("The agent '{}': {problem}", definition.name);
            outlet.send(Event::Informational { content, prevents_continuation: false }).await;
        }
        self.kin.hooks.for_agent(own)
    }

    /// The servers of tools that an agent brings itself, reached. They are let go with it.
    async fn servers_of(&self, definition: &AgentDefinition, outlet: &Outlet) -> Vec<Arc<dyn ToolServer>> {
        let (own, Some(maker)) = (definition.own_servers(), &self.options.server_maker) else {
            return Vec::new();
        };
        if own.is_empty() {
            return Vec::new();
        }
        let MadeServers { servers, problems } = maker.make(&Value::Object(own)).await;
        for problem in problems {
            let content = format!("The agent '{}': {problem}", definition.name);
            outlet.send(Event::Informational { content, prevents_continuation: false }).await;
        }
        servers
    }

    /// An agent that knows nothing but its task. One with a place of its own works there and nowhere else.
    fn fresh(
        &self,
        me: AgentSelf,
        order: &Order,
        definition: &AgentDefinition,
        hooks: Hooks,
        place: Option<&Path>,
    ) -> Result<Box<Engine>, String> {
        self.from(Options { resume: None, ..self.options.clone() }, me, order, definition, hooks, place)
    }

    /// The same, going by these options.
    fn from(
        &self,
        mut options: Options,
        me: AgentSelf,
        order: &Order,
        definition: &AgentDefinition,
        hooks: Hooks,
        place: Option<&Path>,
    ) -> Result<Box<Engine>, String> {
        options.tools.retain(|tool| {
            let name = tool.spec().name;
            !NOT_FOR_AGENTS.contains(&name) && definition.has(name)
        });
        if let (true, Some(wanted)) = (options.tools.is_empty(), &definition.tools) {
            let wanted = wanted.join(", ");
            return Err(format!("The agent '{}' has no tools: nothing here is {wanted}.", definition.name));
        }
        (options.cache, options.planner) = (options.agents_cache, None);
        let custom = Some(definition.whole_prompt());
        if let Some(tokens) = definition.auto_compact_window {
            // It only makes the window smaller.
            let inherited = options.compact.window_tokens.unwrap_or(u64::MAX);
            options.compact.window_tokens = Some(tokens.min(inherited));
        }
        let appended = options.agents_appended.clone();
        options.system_prompt = SystemPrompt { custom, appended, style: None, ..options.system_prompt };
        let inherited = |model: &&String| *model != "inherit";
        let wanted = [&self.options.agent_model, &order.model, &definition.model];
        if let Some(model) = wanted.into_iter().find_map(|model| model.as_ref().filter(inherited)) {
            options.model = catalogue::resolve(model);
            if options.model != self.options.model && !options.model_choice.allows(&options.model) {
                return Err(format!(
                    "The agent '{}' is not started: {}. Name another, or none.",
                    definition.name,
                    options.model_choice.refusal(&options.model)
                ));
            }
        }
        if options.model != self.options.model {
            options.window_tokens = None;
        }
        options.effort = order.effort.or(definition.effort).or(options.effort);
        options.limits.turns_max = Some(definition.max_turns.unwrap_or(self.kin.census.limits.turns_max));
        options.limits.output_tokens_wanted = None;
        options.task_budget = None;
        options.json_schema = None;
        options.files = Arc::default();
        if definition.omit_memory_files {
            options.memory = None;
        }
        self.keep_notes(&mut options, definition);
        let mut kin = Kin { hooks: Arc::new(hooks), ..self.kin.clone() };
        kin.permissions = narrowed(&self.kin.permissions, definition, &mut options);
        if let Some(place) = place {
            place.clone_into(&mut options.cwd);
            options.additional_dirs.clear();
            let (rules, home) = (kin.permissions.rules(), options.home.clone());
            kin.permissions = Permissions::new(rules, options.mode, place.to_owned(), Vec::new(), home)
                .kept_by(self.kin.permissions.keeper());
        }
        self.member(options, kin, me)
    }

    /// The notes of the main thread are its own; an agent has its own where its description says so.
    fn keep_notes(&self, options: &mut Options, definition: &AgentDefinition) {
        let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' };
        let name: String = definition.name.chars().map(plain).collect();
        let user_dir = options.memory.as_ref().and_then(|memory| memory.user_dir.clone());
        let dir = match definition.memory {
            None => None,
            Some(MemoryScope::User) => user_dir.map(|dir| dir.join("agent-memory").join(name)),
            Some(MemoryScope::Project) => in_project(&options.cwd, ".claude/agent-memory", &name),
            Some(MemoryScope::Local) => in_project(&options.cwd, ".claude/agent-memory-local", &name),
        };
        if dir.is_some() {
            options.memory.get_or_insert_default();
        }
        if let Some(memory) = &mut options.memory {
            (memory.notes_with_custom_prompt, memory.notes_dir) = (dir.is_some(), dir);
        }
    }

    /// An agent that knows all its parent knows, and asks the same question: the server has it in its cache.
    fn fork(&self, me: AgentSelf, history: Option<History>) -> Result<Box<Engine>, String> {
        if self.kin.agent.as_ref().is_some_and(|agent| agent.is_fork) {
            return Err("A fork cannot fork again: do it yourself.".to_owned());
        }
        let history = history.ok_or("What was said so far is not at hand, so there can be no fork.")?;
        let mut options = Options { resume: None, ..self.options.clone() };
        options.tools.retain(|tool| tool.spec().name != structured::NAME);
        options.limits.turns_max = Some(self.kin.census.limits.turns_max);
        options.limits.output_tokens_wanted = None;
        options.json_schema = None;
        let hooks = Arc::new(self.kin.hooks.for_agent(HookConfig::default()));
        let mut engine = self.member(options, Kin { hooks, ..self.kin.clone() }, me)?;
        engine.question = self.question.clone();
        let open = history.view().open_calls().to_vec();
        engine.session.history = history;
        let answered = engine.session.record.open(None).and_then(|()| {
            open.iter()
                .try_for_each(|call| engine.session.record_result(call, &Output::text(FORKED)).map(drop))
        });
        answered.map_err(|error| format!("The agent cannot be recorded: {error}"))?;
        Ok(engine)
    }

    fn member(&self, mut options: Options, mut kin: Kin, me: AgentSelf) -> Result<Box<Engine>, String> {
        let record = me.file();
        options.session_id = Some(self.session_id);
        options.may_defer = false;
        options.tool_use_summaries = false;
        let session = Session::of_agent(&options, me.facts.id.clone(), record);
        kin.agent = Some(Arc::new(me));
        let made = Engine::within(options, kin).map(Box::new);
        let mut engine = made.map_err(|error| match error {
            StartError::NoPrice { model } => {
                format!("The price of {model} is not known, so it cannot be asked within a budget.")
            }
            other => format!("The agent cannot start: {other}"),
        })?;
        engine.queue = queue_of(&session, &engine.interrupter, &engine.options);
        engine.session = session;
        // What an agent does belongs to the prompt that it works for.
        engine.prompt_id = self.hooks.base.prompt_id.as_deref().and_then(|id| id.parse().ok());
        Ok(engine)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, HashMap<String, History>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A directory of the project for an agent's notes. One that a link leads out of the project is none: notes are written unasked.
fn in_project(cwd: &Path, kind: &str, name: &str) -> Option<PathBuf> {
    let dir = cwd.join(kind).join(name);
    let (real, root) = (resolve(&dir).ok()?, cwd.canonicalize().ok()?);
    real.path.starts_with(root).then_some(dir)
}

/// What an agent may do without asking: no more than its parent.
fn narrowed(parent: &Permissions, definition: &AgentDefinition, options: &mut Options) -> Permissions {
    let holds = parent.mode();
    let Some(wanted) = definition.permission_mode.filter(|wanted| is_narrower(*wanted, holds)) else {
        options.mode = holds;
        return parent.clone();
    };
    if holds == Mode::DontAsk {
        // Nobody is asked above, so nobody is asked below.
        options.questions = None;
    }
    options.mode = wanted;
    let mut roots = parent.roots();
    let start = if roots.is_empty() { options.cwd.clone() } else { roots.remove(0) };
    Permissions::new(parent.rules(), wanted, start, roots, options.home.clone()).kept_by(parent.keeper())
}

fn is_narrower(wanted: Mode, than: Mode) -> bool {
    let width = |mode| match mode {
        Mode::Plan => 0,
        Mode::DontAsk => 1,
        Mode::Default => 2,
        Mode::AcceptEdits => 3,
        Mode::BypassPermissions => 4,
    };
    width(wanted) < width(than)
}

/// Lets an agent go on although nobody waits for it.
struct PutBeside {
    /// It has begun already.
    is_working: bool,
    facts: Arc<AgentFacts>,
    stop: CancellationToken,
    outlet: Outlet,
}

impl PutBeside {
    async fn by(
        self,
        roster: &Roster,
        run: BoxFuture<'static, Delivered>,
        cx: &ToolCx,
    ) -> Result<Launched, NotStarted> {
        let Self { is_working, facts, stop, outlet } = self;
        let growing = spill::growing(&cx.spill_dir, &facts.id).await;
        let (words, output) = growing
            .map_err(|error| NotStarted(format!("There is no file for what the agent says: {error}.")))?;
        let task = BackgroundTask {
            kind: BackgroundKind::Agent,
            id: facts.id.clone(),
            call: Arc::clone(&facts.call),
            command: facts.prompt.clone(),
            description: facts.description.clone(),
            agent_type: Some(facts.agent_type.clone()),
            output: output.clone(),
        };
        outlet.turn_to(roster, words, Arc::new(task.clone()), cx.secrets.clone());
        if is_working {
            let news = AgentNews::Beside(Arc::new(task.clone()));
            outlet.send(Event::Agent(AgentEvent { agent: Arc::clone(&facts), news })).await;
        }
        let (chars_max, file) = (cx.limits.agent_report_chars_max, output.clone());
        cx.background.keep_agent(task, stop, async move {
            let delivered = run.await;
            let end = match delivered.end {
                AgentEnd::Completed => BackgroundEnd::Reported,
                AgentEnd::Stopped => BackgroundEnd::Stopped,
                AgentEnd::Failed => BackgroundEnd::Failed,
            };
            (end, agent::last_words(&delivered, chars_max, &file))
        });
        Ok(Launched { agent_id: facts.id.clone(), output })
    }
}

async fn tell_hooks(fired: Option<Fired>, outlet: &Outlet) {
    let Some(fired) = fired else { return };
    for run in fired.runs {
        outlet.send(Event::Hook(Arc::new(run))).await;
    }
    for content in fired.verdict.messages {
        outlet.send(Event::Informational { content, prevents_continuation: false }).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_only_narrows() {
        for (wanted, holds, expected) in [
            (None, Mode::Default, Mode::Default),
            (Some(Mode::BypassPermissions), Mode::Default, Mode::Default),
            (Some(Mode::AcceptEdits), Mode::Plan, Mode::Plan),
            (Some(Mode::Plan), Mode::BypassPermissions, Mode::Plan),
            (Some(Mode::Plan), Mode::DontAsk, Mode::Plan),
            (Some(Mode::Default), Mode::AcceptEdits, Mode::Default),
        ] {
            let endpoint = pelton_model::Endpoint::new("http://nowhere", pelton_model::Auth::None);
            let mut options = Options::new("/", endpoint);
            let parent = Permissions::new(Default::default(), holds, "/".into(), Vec::new(), None);
            let definition =
                AgentDefinition { permission_mode: wanted, ..AgentDefinition::new("a", "b", "c") };
            let child = narrowed(&parent, &definition, &mut options);
            assert_eq!((child.mode(), options.mode), (expected, expected), "{wanted:?} below {holds:?}");
        }
    }
}
