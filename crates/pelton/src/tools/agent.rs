//! Sub-agents: a tool that gives a task to another run of the loop, with a context of its own, and brings back its
//! report. What runs it is behind [`Agents`], which the engine puts into the [`ToolCx`]: tools do not know the engine.

mod definition; // what kinds of agents there are
mod json; // as clients write them
mod message; // words for agents that were started before
mod report; // what an agent brings back, as the caller reads it
mod stats; // what it did, in figures

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use pelton_model::Effort;
use pelton_wire::usage::Usage;
use serde::Deserialize;
use serde_json::{Value, json};

use super::lenient;
use super::tool::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx, parse_input};
use crate::event::AgentEnd;
use crate::history::History;
use crate::limits::ToolLimits;
use crate::spill::Shown;

pub use definition::{AgentDefinition, Isolation, MemoryScope, built_in, general_purpose};
pub use json::BadAgent;
pub(crate) use message::{NAME as SEND_MESSAGE, tool as message_tool};
pub use stats::{ToolStats, changed_lines};

/// The tool's name, as the model calls it.
pub const NAME: &str = "Agent";
/// Its former name, which rules, scripts and models still use.
pub const ALIAS: &str = "Task";
/// The kind of agent that knows all its caller knows.
pub const FORK: &str = "fork";

/// Runs agents for the tools of one submission.
pub trait Agents: Send + Sync {
    /// Runs an agent to its end, or lets it run beside the conversation. There is exactly one outcome, whatever happens;
    /// dropping the future ends an agent that is waited for, and everything it started.
    fn run<'a>(self: Arc<Self>, order: Order, cx: &'a ToolCx) -> BoxFuture<'a, Result<Ran, NotStarted>>;

    /// Says something to an agent that was started before: one that runs reads it as soon as it can, one that has ended goes
    /// on with it, beside the conversation.
    fn write<'a>(
        self: Arc<Self>,
        letter: Letter,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<Written, NotStarted>>;

    /// Keeps what was said until a call, for the fork that it starts.
    fn keep(&self, call: &str, history: &History);
}

/// What an agent is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Order {
    /// The task in a few words, for people.
    pub description: String,
    /// The task.
    pub prompt: String,
    /// The kind of agent.
    pub agent_type: String,
    /// The model, if the caller wants a certain one.
    pub model: Option<String>,
    /// How hard it tries, if the caller wants a certain level.
    pub effort: Option<Effort>,
    /// Whether it works in a place of its own, if the caller wants that.
    pub isolation: Option<Isolation>,
    /// What it is called besides its id, to be written to.
    pub name: Option<String>,
    /// Whether it runs beside the conversation, if the caller wants either.
    pub beside: Option<bool>,
}

impl Order {
    /// A task for an agent of a kind.
    pub(crate) fn of(agent_type: &str, prompt: &str, model: Option<String>) -> Self {
        let (agent_type, prompt) = (agent_type.to_owned(), prompt.to_owned());
        let (effort, isolation, name) = (None, None, None);
        Self {
            description: agent_type.clone(),
            prompt,
            agent_type,
            model,
            effort,
            isolation,
            name,
            beside: Some(false),
        }
    }
}

/// What came of an order.
#[derive(Debug, Clone)]
pub enum Ran {
    /// The agent has ended.
    Delivered(Box<Delivered>),
    /// It runs beside the conversation.
    Beside(Launched),
}

/// An agent that runs beside the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launched {
    /// The agent.
    pub agent_id: String,
    /// Where its words go.
    pub output: PathBuf,
}

/// Words for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// Its id, or what its caller named it.
    pub to: String,
    /// The words.
    pub message: String,
}

/// What became of a letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// The agent runs, and reads it with its next step.
    Delivered {
        /// The agent.
        agent_id: String,
    },
    /// The agent had ended, and goes on.
    GoesOn(Launched),
}

/// What an agent brought back.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Delivered {
    /// The agent.
    pub agent_id: String,
    /// What kind it was.
    pub agent_type: String,
    /// The model it asked.
    pub model: String,
    /// Its last words.
    pub text: String,
    /// Why it did not finish, if it did not.
    pub failure: Option<String>,
    /// What it consumed.
    pub usage: Usage,
    /// How many calls it made.
    pub tool_calls: u32,
    /// Of which kinds, and what they changed.
    pub stats: ToolStats,
    /// How long it took.
    pub duration: Duration,
    /// How it ended.
    pub end: AgentEnd,
}

/// An agent that was not started, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotStarted(pub String);

/// The tool for the agents that are there unless somebody says otherwise. An engine puts one for its own agents in its
/// place, or none.
pub fn tool() -> Arc<dyn Tool> {
    Arc::new(AgentTool::new(&Startable::all(&built_in())))
}

/// Whether a tool is the one that starts agents, and not another of its name.
pub(crate) fn is_one(tool: &dyn Tool) -> bool {
    let spec = tool.spec();
    spec.name == NAME && spec.input_schema == INPUT
}

const INPUT: &str = include_str!("agent/input.json");
/// What is said of all agents.
const ABOUT: &str = include_str!("agent/agent.md");

/// The tool. Its description names the agents there are, and is frozen with the rest of the prefix.
pub struct AgentTool {
    description: String,
    names: Vec<String>,
}

/// The agents that a model may start.
#[derive(Debug, Clone)]
pub struct Startable {
    /// What kinds there are.
    pub agents: Vec<AgentDefinition>,
    /// Whether it may start a copy of itself.
    pub forks: bool,
}

impl Startable {
    /// All of them, and forks.
    pub fn all(agents: &[AgentDefinition]) -> Self {
        Self { agents: agents.to_vec(), forks: true }
    }

    /// Only those of these names.
    pub fn only(agents: &[AgentDefinition], names: &[String]) -> Self {
        let is_named = |agent: &&AgentDefinition| names.contains(&agent.name);
        Self {
            agents: agents.iter().filter(is_named).cloned().collect(),
            forks: names.iter().any(|name| name == FORK),
        }
    }
}

impl AgentTool {
    /// A tool that starts these agents.
    pub fn new(startable: &Startable) -> Self {
        let Startable { agents, forks } = startable;
        let mut description = ABOUT.trim_end().to_owned();
        for agent in agents {
            let tools = match (&agent.tools, agent.disallowed_tools.is_empty()) {
                (Some(tools), _) => tools.join(", "),
                (None, true) => "all".to_owned(),
                (None, false) => format!("all but {}", agent.disallowed_tools.join(", ")),
            };
            // Writing to a string cannot fail.
            let _ = write!(description, "\n- {}: {} (tools: {tools})", agent.name, agent.description.trim());
        }
        let forks = forks.then(|| FORK.to_owned());
        let names = agents.iter().map(|agent| agent.name.clone()).chain(forks).collect();
        Self { description, names }
    }

    /// The same, described as it was before.
    pub fn described_as(startable: &Startable, description: &str) -> Self {
        Self { description: description.to_owned(), ..Self::new(startable) }
    }

    /// What the model is told where an earlier process described it in another way.
    pub fn news(startable: &Startable, described: &str) -> Option<String> {
        let now = Self::new(startable).description;
        let list = now.strip_prefix(ABOUT.trim_end()).unwrap_or(&now);
        (now.trim() != described.trim())
            .then(|| format!("The agents you can start with {NAME} have changed. There are now:{list}"))
    }

    fn order(&self, input: &Value) -> Result<Order, InvalidInput> {
        let input: Input = parse_input(input)?;
        for (field, text) in [("prompt", &input.prompt), ("description", &input.description)] {
            if text.trim().is_empty() {
                return Err(InvalidInput(format!("`{field}` is empty")));
            }
        }
        let agent_type = input.subagent_type.unwrap_or_else(|| general_purpose().name);
        if !self.names.contains(&agent_type) {
            let names = self.names.join(", ");
            return Err(InvalidInput(format!("there is no agent '{agent_type}'; there are: {names}")));
        }
        let effort = input.effort.map(|effort| effort.parse()).transpose();
        Ok(Order {
            description: input.description,
            prompt: input.prompt,
            agent_type,
            model: input.model.filter(|model| model != "inherit"),
            effort: effort.map_err(|error| InvalidInput(format!("`effort`: {error}")))?,
            name: input.name.filter(|name| !name.trim().is_empty()),
            beside: input.run_in_background,
            isolation: match input.isolation.as_deref().map(Isolation::from_name) {
                None => None,
                Some(Some(Isolation::Worktree)) => Some(Isolation::Worktree),
                Some(_) => return Err(InvalidInput("`isolation` can only be 'worktree'".to_owned())),
            },
        })
    }
}

#[derive(Deserialize)]
struct Input {
    description: String,
    prompt: String,
    subagent_type: Option<String>,
    model: Option<String>,
    effort: Option<String>,
    #[serde(default, deserialize_with = "lenient::optional_flag")]
    run_in_background: Option<bool>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    isolation: Option<String>,
}

impl Tool for AgentTool {
    fn spec(&self) -> Spec<'_> {
        Spec { name: NAME, description: &self.description, input_schema: INPUT }
    }

    fn safety(&self, _: &Value) -> Safety {
        // Agents may change things, but the model that starts several at once means them to work side by side.
        Safety::Beside
    }

    fn result_chars_max(&self, limits: &ToolLimits) -> usize {
        limits.agent_report_chars_max
    }

    fn access(&self, input: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        Ok(Access::Agent(self.order(input)?.agent_type))
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let order = match self.order(&input) {
                Ok(order) => order,
                Err(InvalidInput(why)) => return Output::unusable(why),
            };
            let Some(agents) = &cx.agents else {
                return Output::error("Agents cannot be started here: do it yourself.");
            };
            let (prompt, description) = (order.prompt.clone(), order.description.clone());
            match Arc::clone(agents).run(order, cx).await {
                Ok(ran) => answer(&ran, &prompt, &description),
                Err(NotStarted(why)) => Output::error(why),
            }
        })
    }
}

/// What the caller reads of what came of an order.
pub(crate) fn answer(ran: &Ran, prompt: &str, description: &str) -> Output {
    match ran {
        Ran::Delivered(delivered) => output(delivered, prompt),
        Ran::Beside(launched) => beside(launched, prompt, description),
    }
}

/// What the caller reads of an agent that is not waited for.
fn beside(Launched { agent_id, output }: &Launched, prompt: &str, description: &str) -> Output {
    let detail = json!({
        "status": "async_launched",
        "isAsync": true,
        "agentId": agent_id,
        "description": description,
        "prompt": prompt,
        "outputFile": output.to_string_lossy(),
    });
    let words = format!(
        "The agent {agent_id} runs in the background. You will be told its report when it ends, once and by itself: go on with \
         something else, or end your turn. What it says meanwhile goes to {}; TaskStop with {agent_id} stops it.",
        output.display()
    );
    Output::text(words).with_detail(detail)
}

/// The last words of an agent that was not waited for, as its caller reads them: no more than `chars_max` of them.
pub(crate) fn last_words(delivered: &Delivered, chars_max: usize, file: &Path) -> String {
    let words = output(delivered, "").words();
    let mut shown = Shown::of(&words, chars_max).with_note(Some(file));
    if shown.trim().is_empty() {
        shown = "[It said nothing.]".to_owned();
    }
    match delivered.failure {
        Some(_) => shown,
        None => format!("Its report:\n{shown}"),
    }
}

/// What the caller reads.
pub(crate) fn output(delivered: &Delivered, prompt: &str) -> Output {
    let text = report::defused(&delivered.text);
    if let Some(failure) = &delivered.failure {
        let said = if text.is_empty() { String::new() } else { format!("\n\nIts last words were:\n{text}") };
        return Output::error(format!("{failure}{said}"));
    }
    let usage = &delivered.usage;
    let detail = json!({
        "status": "completed",
        "agentId": delivered.agent_id,
        "agentType": delivered.agent_type,
        "prompt": prompt,
        "content": [{"type": "text", "text": text}],
        "resolvedModel": delivered.model,
        "totalDurationMs": u64::try_from(delivered.duration.as_millis()).unwrap_or(u64::MAX),
        "totalTokens": usage.prompt_tokens().saturating_add(usage.output_tokens),
        "totalToolUseCount": delivered.tool_calls,
        "toolStats": delivered.stats,
        "usage": usage,
    });
    Output::text(text).with_detail(detail)
}

#[cfg(test)]
mod tests;
