//! Agents as the command line and clients write them: JSON objects by name.

use pelton_model::Effort;
use serde_json::Value;

use super::definition::{AgentDefinition, Isolation, MemoryScope};
use crate::permission::Mode;

/// An agent that cannot be understood.
///
/// ```
/// use pelton::tools::AgentDefinition;
/// use serde_json::json;
///
/// let error = AgentDefinition::from_json("reviewer", &json!({"description": "Reviews."})).unwrap_err();
/// assert!(error.to_string().starts_with("agent 'reviewer': "));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("agent '{name}': {what}")]
pub struct BadAgent {
    name: String,
    what: String,
}

impl AgentDefinition {
    /// Reads an agent of that name. Fields nobody knows are left alone; `null` is the same as nothing.
    ///
    /// ```
    /// use pelton::tools::AgentDefinition;
    /// use serde_json::json;
    ///
    /// let said = json!({"description": "Reviews.", "prompt": "You review.", "tools": ["Read"], "model": "inherit"});
    /// let agent = AgentDefinition::from_json("reviewer", &said)?;
    /// assert!(agent.has("Read") && !agent.has("Bash") && agent.model.is_none());
    /// assert!(AgentDefinition::from_json("reviewer", &json!({"description": "Reviews."})).is_err());
    /// # Ok::<(), pelton::tools::BadAgent>(())
    /// ```
    pub fn from_json(name: &str, json: &Value) -> Result<Self, BadAgent> {
        let bad = |what: String| BadAgent { name: name.to_owned(), what };
        if name.is_empty() || name.contains(':') || name.starts_with('-') {
            return Err(bad("a name is neither empty nor has a ':' in it nor a '-' in front".to_owned()));
        }
        let field = |field: &str| json.get(field).filter(|value| !value.is_null());
        let text = |name: &str| match field(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(bad(format!("`{name}` is no text"))),
        };
        let required = |name: &str| text(name)?.ok_or_else(|| bad(format!("`{name}` is missing")));
        let flag = |name: &str| field(name).and_then(Value::as_bool).unwrap_or_default();
        let named = |name: &str| match field(name) {
            None => Ok(None),
            // As frontmatter writes it: names with commas between them.
            Some(Value::String(names)) => {
                let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
                Ok(Some(names.map(str::to_owned).collect()))
            }
            Some(Value::Array(names)) => {
                let names = names.iter().map(|name| name.as_str().map(str::to_owned));
                let names: Option<Vec<String>> = names.collect();
                names.map(Some).ok_or_else(|| bad(format!("`{name}` has something in it that is no text")))
            }
            Some(_) => Err(bad(format!("`{name}` is no list of names"))),
        };
        let mut agent = Self::new(name, required("description")?, required("prompt")?);
        agent.tools = named("tools")?;
        agent.disallowed_tools = named("disallowedTools")?.unwrap_or_default();
        agent.model = text("model")?.filter(|model| model != "inherit" && !model.is_empty());
        agent.effort = match field("effort") {
            // A number is a budget of other programs.
            None | Some(Value::Number(_)) => None,
            Some(level) => {
                let level = level.as_str().unwrap_or_default();
                Some(level.parse::<Effort>().map_err(|error| bad(error.to_string()))?)
            }
        };
        agent.permission_mode = match text("permissionMode")? {
            None => None,
            Some(mode) => {
                Some(Mode::from_name(&mode).ok_or_else(|| bad(format!("there is no mode '{mode}'")))?)
            }
        };
        agent.max_turns = match field("maxTurns") {
            None => None,
            Some(turns) => {
                let turns =
                    turns.as_u64().and_then(|turns| u32::try_from(turns).ok()).filter(|turns| *turns > 0);
                Some(turns.ok_or_else(|| bad("`maxTurns` is no whole number above 0".to_owned()))?)
            }
        };
        agent.skills = named("skills")?.unwrap_or_default();
        agent.mcp_servers = field("mcpServers").map(Self::servers_in).unwrap_or_default();
        agent.hooks = field("hooks").cloned();
        agent.memory = text("memory")?.and_then(|scope| MemoryScope::from_name(&scope));
        agent.background = flag("background");
        agent.isolation = text("isolation")?.and_then(|place| Isolation::from_name(&place));
        agent.color = text("color")?;
        agent.initial_prompt = text("initialPrompt")?;
        agent.omit_memory_files = flag("omitClaudeMd");
        agent.auto_compact_window = field("autoCompactWindow").and_then(Value::as_u64);
        agent.critical_reminder = text("criticalSystemReminder_EXPERIMENTAL")?;
        agent.observer = field("observer").cloned();
        Ok(agent)
    }

    /// Reads agents by name, in the order of their names.
    pub fn all_from_json(json: &Value) -> Result<Vec<Self>, BadAgent> {
        let Some(agents) = json.as_object() else {
            return Err(BadAgent { name: "?".to_owned(), what: "agents are an object, by name".to_owned() });
        };
        agents.iter().map(|(name, agent)| Self::from_json(name, agent)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wrong_with_an_agent_is_named() {
        let with = |more: Value| {
            let mut said = json!({"description": "d", "prompt": "p"});
            said.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            AgentDefinition::from_json("a", &said).map_err(|error| error.to_string())
        };
        for (more, part) in [
            (json!({"prompt": null}), "`prompt` is missing"),
            (json!({"tools": 3}), "`tools`"),
            (json!({"tools": ["Read", 3]}), "`tools`"),
            (json!({"permissionMode": "wild"}), "'wild'"),
            (json!({"maxTurns": 0}), "maxTurns"),
            (json!({"effort": "heroic"}), "heroic"),
        ] {
            let said = with(more).unwrap_err();
            assert!(said.contains(part), "{said}");
        }
        let agent =
            with(json!({"tools": "Read, Grep", "maxTurns": 3, "model": "haiku", "effort": "low"})).unwrap();
        assert!(agent.has("Grep") && !agent.has("Bash"));
        assert_eq!((agent.max_turns, agent.model.as_deref()), (Some(3), Some("haiku")));
        assert!(AgentDefinition::from_json("a:b", &json!({"description": "d", "prompt": "p"})).is_err());
        assert!(AgentDefinition::all_from_json(&json!([])).is_err());
    }
}
