//! What kinds of agents there are.

use pelton_model::Effort;
use serde_json::{Map, Value};

use crate::permission::Mode;

/// A kind of agent that may be started. It can only narrow what its parent may do.
///
/// ```
/// use pelton::tools::AgentDefinition;
///
/// let mut reviewer =
///     AgentDefinition::new("reviewer", "Reviews changes.", "You review changes and report what is wrong.");
/// reviewer.tools = Some(vec!["Read".to_owned(), "Grep".to_owned()]);
/// assert!(reviewer.has("Grep") && !reviewer.has("Bash"));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AgentDefinition {
    /// What it is called by.
    pub name: String,
    /// When to use it, for the model that may.
    pub description: String,
    /// What it is told about itself, in place of the main system prompt.
    pub prompt: String,
    /// The tools it has, of those its parent has; all of them if absent. A star at the end of a name stands for any.
    pub tools: Option<Vec<String>>,
    /// Tools it does not have, whatever `tools` says.
    pub disallowed_tools: Vec<String>,
    /// The model it asks; its parent's if absent.
    pub model: Option<String>,
    /// How hard it tries; as hard as its parent if absent.
    pub effort: Option<Effort>,
    /// How much it does without asking, where that is less than its parent may.
    pub permission_mode: Option<Mode>,
    /// How often it may ask the model.
    pub max_turns: Option<u32>,
    /// Hooks that are called while it runs, as settings write them, beside those of the session. `Stop` is its own end.
    pub hooks: Option<Value>,
    /// Skills it knows from the start.
    pub skills: Vec<String>,
    /// Where it keeps what it learnt.
    pub memory: Option<MemoryScope>,
    /// It works in a place of its own.
    pub isolation: Option<Isolation>,
    /// MCP servers: names of those it has anyway, or objects with servers of its own, which are there while it runs.
    pub mcp_servers: Vec<Value>,
    /// It is not waited for.
    pub background: bool,
    /// The colour it is shown in.
    pub color: Option<String>,
    /// What the main thread is told first when it runs as this agent.
    pub initial_prompt: Option<String>,
    /// It is not told what memory files say.
    pub omit_memory_files: bool,
    /// From how many tokens its context is compacted.
    pub auto_compact_window: Option<u64>,
    /// What it is reminded of again and again.
    pub critical_reminder: Option<String>,
    /// Who watches it.
    pub observer: Option<Value>,
}

/// Where an agent keeps what it learnt.
///
/// ```
/// use pelton::tools::{AgentDefinition, MemoryScope};
///
/// let mut reviewer = AgentDefinition::new("reviewer", "Reviews changes.", "You review changes.");
/// reviewer.memory = Some(MemoryScope::Project); // what it learnt is there when it is called again
/// assert_ne!(reviewer.memory, Some(MemoryScope::User));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryScope {
    /// With the user.
    User,
    /// With the project.
    Project,
    /// With the project, on this machine.
    Local,
}

/// A place of an agent's own.
///
/// ```
/// use pelton::tools::{AgentDefinition, Isolation};
/// use serde_json::json;
///
/// let said = json!({"description": "Tries things.", "prompt": "You try things.", "isolation": "worktree"});
/// let agent = AgentDefinition::from_json("tinkerer", &said)?;
/// assert_eq!(agent.isolation, Some(Isolation::Worktree)); // it leaves the user's files alone
/// # Ok::<(), pelton::tools::BadAgent>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isolation {
    /// Another work tree of the repository.
    Worktree,
    /// Another machine.
    Remote,
}

impl MemoryScope {
    /// As definitions write it.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "user" => Self::User,
            "project" => Self::Project,
            "local" => Self::Local,
            _ => return None,
        })
    }
}

impl Isolation {
    /// As definitions write it.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "worktree" => Self::Worktree,
            "remote" => Self::Remote,
            _ => return None,
        })
    }
}

impl AgentDefinition {
    /// Its prompt, and what it must not forget.
    pub(crate) fn whole_prompt(&self) -> String {
        match &self.critical_reminder {
            Some(reminder) if !reminder.trim().is_empty() => {
                format!("{}\n\n{}", self.prompt, reminder.trim())
            }
            _ => self.prompt.clone(),
        }
    }

    /// An agent with all tools, the model and the permissions of its parent.
    pub fn new(name: impl Into<String>, description: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            prompt: prompt.into(),
            tools: None,
            disallowed_tools: Vec::new(),
            model: None,
            effort: None,
            permission_mode: None,
            max_turns: None,
            skills: Vec::new(),
            mcp_servers: Vec::new(),
            hooks: None,
            memory: None,
            background: false,
            isolation: None,
            color: None,
            initial_prompt: None,
            omit_memory_files: false,
            auto_compact_window: None,
            critical_reminder: None,
            observer: None,
        }
    }

    /// Whether it would have programs run besides what the model asks for: hooks, or servers of its own.
    pub fn brings_programs(&self) -> bool {
        self.hooks.is_some() || self.mcp_servers.iter().any(|server| !server.is_string())
    }

    /// Takes that out: somebody may have opened a repository who has not read it.
    pub fn leave_out_programs(&mut self) {
        self.hooks = None;
        self.mcp_servers.retain(Value::is_string);
    }

    /// The servers of its own, by name.
    pub(crate) fn own_servers(&self) -> Map<String, Value> {
        self.mcp_servers
            .iter()
            .filter_map(Value::as_object)
            .flatten()
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect()
    }

    /// Reads the servers of a definition: a list, or an object of them by name.
    pub(crate) fn servers_in(written: &Value) -> Vec<Value> {
        match written {
            Value::Array(list) => list.clone(),
            Value::Object(_) => vec![written.clone()],
            _ => Vec::new(),
        }
    }

    /// The agents that it may start, where its list of tools says which: `Agent(reviewer, tester)`.
    pub(crate) fn starts_only(&self) -> Option<Vec<String>> {
        let is_one = |name: &str| matches!(name.trim(), super::NAME | super::ALIAS);
        let mut names = Vec::new();
        let mut says_which = false;
        for entry in self.tools.iter().flatten() {
            match entry.split_once('(') {
                Some((tool, inside)) if is_one(tool) => {
                    says_which = true;
                    let inside = inside.trim_end().trim_end_matches(')');
                    names.extend(inside.split(',').map(|name| name.trim().to_owned()));
                }
                // All of them, whatever else is said.
                None if is_one(entry) => return None,
                _ => {}
            }
        }
        says_which.then_some(names)
    }

    /// Whether it may have a tool: denials first, then its list.
    pub fn has(&self, tool: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|entry| names(entry, tool));
        !named(&self.disallowed_tools) && self.tools.as_deref().is_none_or(named)
    }
}

/// The agent that is there unless somebody says otherwise.
///
/// ```
/// assert!(pelton::tools::general_purpose().has("Bash"));
/// ```
pub fn general_purpose() -> AgentDefinition {
    AgentDefinition::new(
        "general-purpose",
        "Searches, investigates and carries out tasks of several steps. Use it when no other agent fits.",
        include_str!("general_purpose.md").trim_end(),
    )
}

/// The agents that are there unless somebody says otherwise: one for everything, one that looks around, and one that plans.
///
/// ```
/// let names: Vec<String> = pelton::tools::built_in_agents().into_iter().map(|agent| agent.name).collect();
/// assert_eq!(names, ["general-purpose", "Explore", "Plan"]);
/// ```
pub fn built_in() -> Vec<AgentDefinition> {
    let looks = |name: &str, description: &str, prompt: &str| {
        let mut agent = AgentDefinition::new(name, description, prompt.trim_end());
        agent.disallowed_tools =
            [super::NAME, super::SEND_MESSAGE, "Edit", "Write", "NotebookEdit"].map(str::to_owned).to_vec();
        agent.permission_mode = Some(Mode::Plan);
        agent.omit_memory_files = true;
        agent
    };
    vec![
        general_purpose(),
        looks(
            "Explore",
            "Finds files and code and answers questions about them; changes nothing. Say in the task how thorough it should \
             be: \"quick\", \"medium\" or \"very thorough\".",
            include_str!("explore.md"),
        ),
        looks(
            "Plan",
            "Works out how a larger change should be made, step by step, without making it.",
            include_str!("plan.md"),
        ),
    ]
}

/// Whether an entry of a list means a tool. What stands in parentheses narrows it elsewhere; `mcp__server` means all
/// tools of that server.
fn names(entry: &str, tool: &str) -> bool {
    let entry = entry.split_once('(').map_or(entry, |(name, _)| name).trim();
    let entry = if entry == super::ALIAS { super::NAME } else { entry };
    match entry.strip_suffix('*') {
        Some(start) => tool.starts_with(start),
        None => {
            let server = entry.starts_with("mcp__") && entry.matches("__").count() == 1;
            entry == tool || (server && tool.strip_prefix(entry).is_some_and(|rest| rest.starts_with("__")))
        }
    }
}
