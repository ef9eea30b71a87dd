//! The client's first words: what it brings into the session, and what it is told about it.

use std::sync::Arc;
use std::time::Duration;

use pelton::permission::RuleSet;
use pelton::tools::{AgentDefinition, ToolServer, served_name};
use pelton::{CLI_VERSION, Options};
use pelton_mcp::{Server, Surroundings};
use pelton_model::catalogue;
use serde_json::{Value, json};

use super::client::Client;
use super::hooks;
use super::mcp;
use crate::frames::CAPABILITIES;

/// What the client brought, besides what went into the options.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    /// Servers inside the client, and the longest their calls may take.
    pub servers: Vec<(String, Option<Duration>)>,
    /// Words of sub-agents are wanted.
    pub agent_text: bool,
    /// Its user can stop agents in the background one by one, so an interrupt does not have to.
    pub stops_agents: bool,
    /// Guesses of the next prompt are wanted.
    pub suggestions: bool,
    /// What the session is called.
    pub title: Option<String>,
    /// Servers outside of it that it names.
    pub servers_named: Option<Vec<String>>,
    /// Whether the plugins that it names are there, if it names any.
    pub plugins_applied: Option<bool>,
    /// What could not be used, in words.
    pub problems: Vec<String>,
}

/// Puts into the options what the client brings. An error is the client's to correct.
pub(crate) fn apply(request: &Value, options: &mut Options, client: &Client) -> Result<Brought, String> {
    let mut brought = Brought::default();
    let field = |name: &str| request.get(name).filter(|value| !value.is_null());
    let is_on = |name: &str| field(name).and_then(Value::as_bool).unwrap_or_default();
    if let Some(listed) = field("hooks") {
        let world = Arc::clone(&options.world);
        brought.problems = hooks::add(&mut options.hooks, listed, client, &world);
    }
    if let Some(agents) = field("agents") {
        let agents = AgentDefinition::all_from_json(agents).map_err(|error| error.to_string())?;
        options.agents.retain(|agent| agents.iter().all(|said| said.name != agent.name));
        options.agents.extend(agents);
    }
    if let Some(schema) = field("jsonSchema") {
        options.json_schema = Some(schema.clone());
    }
    if let Some(prompt) = field("systemPrompt").and_then(text_of) {
        options.system_prompt.custom = Some(prompt);
    }
    if let Some(appended) = field("appendSystemPrompt").and_then(text_of) {
        options.system_prompt.appended = Some(appended);
    }
    options.system_prompt.shared |= is_on("excludeDynamicSections");
    if let Some(work) = field("planModeInstructions").and_then(Value::as_str) {
        options.plan_instructions = Some(work.to_owned());
    }
    for (name, tool) in field("toolAliases").and_then(Value::as_object).into_iter().flatten() {
        options.tool_aliases.extend(tool.as_str().map(|tool| (name.clone(), tool.to_owned())));
    }
    if let (Some(skills), Some(only)) = (&mut options.skills, field("skills").and_then(Value::as_array)) {
        skills.only = Some(only.iter().filter_map(Value::as_str).map(str::to_owned).collect());
    }
    brought.agent_text = is_on("forwardSubagentText");
    brought.stops_agents = is_on("perTaskStopAffordance");
    brought.suggestions = is_on("promptSuggestions");
    options.agent_progress_summaries |= is_on("agentProgressSummaries");
    brought.title = field("title").and_then(Value::as_str).map(str::to_owned);
    for name in
        field("sdkMcpServers").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        let config = field("sdkMcpServerConfigs").and_then(|configs| configs.get(name));
        let timeout = config.and_then(|config| config.get("timeout")?.as_u64());
        if let Some(policy) = config.and_then(|config| config.get("tools")?.as_array()) {
            keep_to(policy, name, &mut options.rules);
        }
        brought.servers.push((name.to_owned(), timeout.map(Duration::from_millis)));
    }
    if let Some(named) = field("mcpServers").and_then(Value::as_object) {
        brought.servers_named = Some(named.keys().cloned().collect());
    }
    if let Some(listed) = field("plugins").and_then(Value::as_array).filter(|listed| !listed.is_empty()) {
        brought.plugins_applied = Some(are_there(listed, options));
    }
    Ok(brought)
}

/// What the client says about single tools of a server inside it: some are always asked about, some never run. What it allows is
/// said elsewhere.
fn keep_to(policy: &[Value], server: &str, rules: &mut RuleSet) {
    for entry in policy {
        let Some(tool) = entry["name"].as_str() else { continue };
        let of_kind = match entry["permission_policy"].as_str() {
            Some("always_allow") => continue,
            Some("always_deny") => &mut rules.deny,
            // What nobody knows is asked about.
            _ => &mut rules.ask,
        };
        of_kind.extend(served_name(server, tool).parse());
    }
}

/// Whether the session was started with all of these plugins: later nothing is added.
fn are_there(listed: &[Value], options: &Options) -> bool {
    listed.iter().all(|said| {
        let path = said["path"].as_str().and_then(|path| options.cwd.join(path).canonicalize().ok());
        path.is_some_and(|path| options.plugins().any(|plugin| plugin.root == path))
    })
}

/// Among the texts of a list it marks where the part begins that is not the same in all sessions; it is no word of them.
const BOUNDARY: &str = "__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__";

/// A text, or the texts of a list.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(texts) => {
            let texts = texts.iter().filter_map(|text| match text {
                Value::String(text) => Some(text.as_str()),
                block => block.get("text").and_then(Value::as_str),
            });
            Some(texts.filter(|text| *text != BOUNDARY).collect::<Vec<_>>().join("\n\n"))
        }
        _ => None,
    }
}

/// An agent, as clients are told of it.
pub(super) fn agent_row(agent: &AgentDefinition) -> Value {
    match &agent.model {
        Some(model) => json!({"name": agent.name, "description": agent.description, "model": model}),
        None => json!({"name": agent.name, "description": agent.description}),
    }
}

/// What the client is told about the session, besides its commands.
pub(crate) fn about(options: &Options, pid: u32) -> Value {
    let agents: Vec<Value> = options.agents.iter().map(agent_row).collect();
    json!({
        "agents": agents,
        "output_style": options.style_name(),
        "available_output_styles": options.style_names(),
        "models": models(&options.model),
        "account": {"apiKeySource": options.api_key_source, "apiProvider": "firstParty"},
        "pid": pid,
        "hook_on_failure_supported": true,
        "claude_code_version": CLI_VERSION,
        "capabilities": CAPABILITIES,
    })
}

/// What a client is told whose session has not begun: what there is where the process stands. Its commands come with the
/// session.
pub fn introduction(options: &Options, pid: u32) -> Value {
    let mut about = about(options, pid);
    about["commands"] = json!([]);
    about
}

/// The models that may be chosen; `own` is the one the session started with.
pub(crate) fn models(own: &str) -> Vec<Value> {
    let asked = catalogue::resolve(own);
    let default = json!({"value": "default", "displayName": "Default", "description": format!("The session's own: {asked}")});
    let models = catalogue::models().iter().map(|caps| {
        let efforts: Vec<&str> = caps.efforts.iter().map(|effort| effort.as_str()).collect();
        json!({
            "value": caps.id,
            "displayName": caps.id,
            "description": format!("{} tokens of context", caps.window),
            "supportsEffort": !efforts.is_empty(),
            "supportedEffortLevels": efforts,
        })
    });
    std::iter::once(default).chain(models).collect()
}

/// Adds the servers inside the client to the options. One that is named twice is one.
pub(crate) fn add_servers(
    named: &[(String, Option<Duration>)],
    options: &mut Options,
    client: &Client,
    surroundings: &Surroundings,
) -> Vec<Arc<Server>> {
    let mut servers: Vec<Arc<Server>> = Vec::new();
    for (name, timeout) in named {
        if servers.iter().all(|server| server.name() != name) {
            servers.push(mcp::of_client(name, client, *timeout, surroundings));
        }
    }
    options.servers.extend(servers.iter().map(|server| Arc::clone(server) as Arc<dyn ToolServer>));
    servers
}

#[cfg(test)]
mod tests {
    use pelton_model::{Auth, Endpoint, RealWorld};

    use super::*;

    fn brought(request: &Value) -> (Options, Result<Brought, String>) {
        let mut options = Options::new("/", Endpoint::new("http://127.0.0.1:9", Auth::None));
        let (client, _) = Client::new(Arc::new(RealWorld::new()));
        let brought = apply(request, &mut options, &client);
        (options, brought)
    }

    #[test]
    fn what_is_null_or_missing_changes_nothing() {
        for request in
            [json!({}), json!({"hooks": null, "agents": null, "jsonSchema": null, "systemPrompt": null})]
        {
            let (options, brought) = brought(&request);
            assert!(options.system_prompt.custom.is_none() && options.json_schema.is_none());
            assert!(brought.unwrap().problems.is_empty());
        }
    }

    #[test]
    fn prompts_agents_and_servers_are_taken_over() {
        let (options, brought) = brought(&json!({
            "systemPrompt": [""],
            "appendSystemPrompt": "Be kind.",
            "agents": {"general-purpose": {"description": "d", "prompt": "p"}, "other": {"description": "d", "prompt": "p"}},
            "sdkMcpServers": ["calc"], "sdkMcpServerConfigs": {"calc": {"timeout": 1500}},
            "hooks": {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}], "Tomorrow": []},
            "plugins": [{"type": "local", "path": "one"}], "toolAliases": {"a": "b", "c": 3}, "planModeInstructions": "Think.", "title": "mine"}));
        let brought = brought.unwrap();
        assert_eq!(options.system_prompt.custom.as_deref(), Some(""));
        assert_eq!(options.tool_aliases, [("a".to_owned(), "b".to_owned())].into());
        assert_eq!(options.plan_instructions.as_deref(), Some("Think."));
        assert_eq!(options.agents.iter().filter(|agent| agent.name == "general-purpose").count(), 1);
        assert_eq!(brought.servers, [("calc".to_owned(), Some(Duration::from_millis(1500)))]);
        assert_eq!(brought.problems.len(), 1, "{:?}", brought.problems);
        assert_eq!(brought.plugins_applied, Some(false), "it was not started with it");
        assert_eq!(brought.title.as_deref(), Some("mine"));
    }

    #[test]
    fn the_mark_between_the_parts_of_a_prompt_is_not_said() {
        let (options, brought) = brought(&json!({"systemPrompt": ["same", BOUNDARY, "not the same"]}));
        brought.unwrap();
        assert_eq!(options.system_prompt.custom.as_deref(), Some("same\n\nnot the same"));
    }

    #[test]
    fn an_agent_without_a_prompt_is_an_error() {
        assert!(brought(&json!({"agents": {"x": {"description": "d"}}})).1.is_err());
    }
}
