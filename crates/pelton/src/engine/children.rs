//! Sub-agents: engines made for one call of a tool, which share the money, the hooks and the permissions of the one
//! that started them, and nothing of its conversation unless they are forks.

mod progress; // what it is doing, in a line every now and then
mod judge; // agents that look around for hooks
mod watch; // one agent while it runs
mod worktree; // a checkout of an agent's own

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton_model::stream::Sender;
use pelton_model::{Ask, catalogue};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub(super) use judge::Judges;

use super::kin::{AgentSelf, Kin};
use super::{Engine, StartError, queue_of};
use crate::context::SystemPrompt;
use crate::event::{AgentFacts, Event};
use crate::history::History;
use crate::hooks::{Fired, HookConfig, Hooks, SessionHooks};
use crate::options::Options;
use crate::permission::{Mode, Permissions};
use crate::session::Session;
use crate::tools::agent::{
    AgentDefinition, Agents, Delivered, FORK, Isolation, MemoryScope, NotStarted, Order,
};
use crate::tools::{Output, ToolCx, structured};
use worktree::Worktrees;

/// What the calls that a fork starts from are answered with, in the fork.
const FORKED: &str = "From here on you are a copy of the agent that made this call. The original goes on by itself and has the \
results of its calls. Do only what the next message says, and end with a report of it.";

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
    /// Ends the parent's submission.
    pub submission: CancellationToken,
    /// Set when somebody refused a call and ended the submission with it.
    pub refused: CancellationToken,
    /// What was said until calls that start forks.
    pub kept: Mutex<HashMap<String, History>>,
}

impl Agents for Children {
    fn run<'a>(&'a self, order: Order, cx: &'a ToolCx) -> BoxFuture<'a, Result<Delivered, NotStarted>> {
        self.start(order, cx).boxed()
    }

    fn keep(&self, call: &str, history: &History) {
        self.kept().insert(call.to_owned(), history.clone());
    }
}

impl Children {
    async fn start(&self, order: Order, cx: &ToolCx) -> Result<Delivered, NotStarted> {
        let history = self.kept().remove(&*cx.call_id);
        if !self.kin.may_have_children() {
            let depth = self.kin.census.limits.depth_max;
            return Err(NotStarted(format!("Agents may stand {depth} deep and no deeper: do it yourself.")));
        }
        if self.kin.spending.is_spent() {
            return Err(NotStarted("Budget limit reached: no agent can be started.".to_owned()));
        }
        let _seat = self.kin.census.enter().map_err(NotStarted)?;
        let facts = Arc::new(AgentFacts {
            id: format!("a{:016x}", self.options.world.random()),
            call: Arc::clone(&cx.call_id),
            agent_type: order.agent_type.clone(),
            description: order.description.clone(),
            prompt: order.prompt.clone(),
        });
        let me = AgentSelf {
            facts: Arc::clone(&facts),
            depth: self.kin.depth() + 1,
            is_fork: order.agent_type == FORK,
            session_file: self.session_file.clone(),
        };
        if me.is_fork {
            let mut engine = self.fork(me, history).map_err(NotStarted)?;
            engine.cwd = Arc::new(Mutex::new(cx.cwd.clone()));
            return Ok(self.watch(engine, facts, &order, cx).await);
        }
        let definition = self.definition(&order).map_err(NotStarted)?;
        let hooks = self.hooks_of(definition).await;
        let isolation = order.isolation.or(definition.isolation);
        if isolation != Some(Isolation::Worktree) {
            let mut engine = self.fresh(me, &order, definition, hooks, None).map_err(NotStarted)?;
            engine.cwd = Arc::new(Mutex::new(cx.cwd.clone()));
            return Ok(self.watch(engine, facts, &order, cx).await);
        }
        let worktrees = Worktrees {
            options: &self.options.worktrees,
            env: &self.options.env,
            cwd: &self.options.cwd,
            hooks: &self.hooks_now(&cx.cancel),
        };
        let (made, fired) = worktrees.make(&format!("agent-{}", facts.id)).await;
        self.tell_hooks(fired).await;
        let made = made.map_err(NotStarted)?;
        let delivered = match self.fresh(me, &order, definition, hooks, Some(&made.path)) {
            Ok(engine) => Ok(self.watch(engine, facts, &order, cx).await),
            Err(why) => Err(NotStarted(why)),
        };
        let (left, fired) = worktrees.end(made).await;
        self.tell_hooks(fired).await;
        delivered.map(|mut delivered| {
            delivered.text =
                [Some(delivered.text), left].into_iter().flatten().collect::<Vec<_>>().join("\n\n");
            delivered
        })
    }

    /// The hooks of the session, told of something that is not an agent's.
    fn hooks_now(&self, cancel: &CancellationToken) -> SessionHooks {
        let mut hooks = self.hooks.clone();
        hooks.cx.cancel = cancel.clone();
        hooks
    }

    async fn tell_hooks(&self, fired: Option<Fired>) {
        let Some(fired) = fired else { return };
        for run in fired.runs {
            self.events.send(Event::Hook(Arc::new(run))).await;
        }
        for content in fired.verdict.messages {
            self.events.send(Event::Informational { content, prevents_continuation: false }).await;
        }
    }

    fn definition(&self, order: &Order) -> Result<&AgentDefinition, String> {
        let definition = self.options.agents.iter().find(|agent| agent.name == order.agent_type);
        definition.ok_or_else(|| format!("There is no agent '{}'.", order.agent_type))
    }

    /// The hooks that are called for an agent: those that are called for its parent, and its own while it runs.
    async fn hooks_of(&self, definition: &AgentDefinition) -> Hooks {
        let own = definition.hooks.as_ref().map(|hooks| HookConfig::of_agent(hooks, &definition.name));
        let (own, problems) = own.unwrap_or_default();
        for problem in problems {
            let content = format!("The agent '{}': {problem}", definition.name);
            self.events.send(Event::Informational { content, prevents_continuation: false }).await;
        }
        self.kin.hooks.for_agent(own)
    }

    /// An agent that knows nothing but its task. One with a place of its own works there and nowhere else.
    fn fresh(
        &self,
        me: AgentSelf,
        order: &Order,
        definition: &AgentDefinition,
        hooks: Hooks,
        place: Option<&Path>,
    ) -> Result<Engine, String> {
        let mut options = self.options.clone();
        options.tools.retain(|tool| {
            let name = tool.spec().name;
            name != structured::NAME && definition.has(name)
        });
        if let (true, Some(wanted)) = (options.tools.is_empty(), &definition.tools) {
            let wanted = wanted.join(", ");
            return Err(format!("The agent '{}' has no tools: nothing here is {wanted}.", definition.name));
        }
        let custom = Some(definition.prompt.clone());
        options.system_prompt = SystemPrompt { custom, appended: None, style: None, ..options.system_prompt };
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
            Some(MemoryScope::Project) => Some(options.cwd.join(".claude/agent-memory").join(name)),
            Some(MemoryScope::Local) => Some(options.cwd.join(".claude/agent-memory-local").join(name)),
        };
        if dir.is_some() {
            options.memory.get_or_insert_default();
        }
        if let Some(memory) = &mut options.memory {
            (memory.notes_with_custom_prompt, memory.notes_dir) = (dir.is_some(), dir);
        }
    }

    /// An agent that knows all its parent knows, and asks the same question: the server has it in its cache.
    fn fork(&self, me: AgentSelf, history: Option<History>) -> Result<Engine, String> {
        if self.kin.agent.as_ref().is_some_and(|agent| agent.is_fork) {
            return Err("A fork cannot fork again: do it yourself.".to_owned());
        }
        let history = history.ok_or("What was said so far is not at hand, so there can be no fork.")?;
        let mut options = self.options.clone();
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

    fn member(&self, mut options: Options, mut kin: Kin, me: AgentSelf) -> Result<Engine, String> {
        let record = me.file();
        if let (Some(file), Some(_)) = (&record, &options.sessions) {
            describe(&options, &file.with_extension("meta.json"), &me.facts);
        }
        options.session_id = Some(self.session_id);
        options.resume = None;
        options.may_defer = false;
        options.tool_use_summaries = false;
        let session = Session::of_agent(&options, me.facts.id.clone(), record);
        kin.agent = Some(Arc::new(me));
        let mut engine = Engine::within(options, kin).map_err(|error| match error {
            StartError::NoPrice { model } => {
                format!("The price of {model} is not known, so it cannot be asked within a budget.")
            }
            other => format!("The agent cannot start: {other}"),
        })?;
        engine.queue = queue_of(&session, &engine.interrupter, &engine.options);
        engine.session = session;
        Ok(engine)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, HashMap<String, History>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

/// Says what kind of agent a record is of, for those who list them. A courtesy: the record itself does without.
fn describe(options: &Options, file: &std::path::Path, facts: &AgentFacts) {
    let told = serde_json::json!({
        "agentType": facts.agent_type,
        "description": facts.description,
        "toolUseId": &*facts.call,
    });
    let _ = options.disk.open(file).and_then(|file| file.write(told.to_string().as_bytes()));
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
