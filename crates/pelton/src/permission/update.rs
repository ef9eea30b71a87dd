//! Changes of what may run, as hosts and hooks ask for them, and their form on the wire. Pure.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::mode::Mode;
use super::rule::Rule;

/// A change of what may run.
///
/// ```
/// use pelton::permission::{Behavior, Change, Update};
///
/// let update = Update::session(Change::AddRules(Behavior::Allow, vec!["Bash(make:*)".parse()?]));
/// let json = update.to_json();
/// assert_eq!(json["type"], "addRules");
/// assert_eq!(Update::from_json(&json).as_ref(), Ok(&update));
/// # Ok::<(), pelton::permission::RuleError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// What changes.
    pub change: Change,
    /// Where it is to be kept. The engine itself keeps it for the session; files are the host's.
    pub destination: Destination,
}

/// What changes. Rules and directories are those that earlier updates brought for the same destination: what the
/// session started with stays.
///
/// ```
/// use pelton::permission::{Change, Mode, Permissions, RuleSet, Update};
///
/// # let dir = tempfile::tempdir()?;
/// let permissions = Permissions::new(RuleSet::default(), Mode::Default, "/".into(), Vec::new(), None);
/// let more = Change::AddDirectories(vec![dir.path().to_owned()]);
/// permissions.apply(&Update::session(more))?;
/// assert_eq!(permissions.roots().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// More rules.
    AddRules(Behavior, Vec<Rule>),
    /// These rules in the place of those.
    ReplaceRules(Behavior, Vec<Rule>),
    /// Without these rules.
    RemoveRules(Behavior, Vec<Rule>),
    /// How much runs without asking.
    SetMode(Mode),
    /// More directories to work in.
    AddDirectories(Vec<PathBuf>),
    /// Fewer of them; the one the session started in stays.
    RemoveDirectories(Vec<PathBuf>),
}

/// What a rule does with the calls it matches.
///
/// ```
/// use pelton::permission::{Behavior, RuleSet};
///
/// let mut rules = RuleSet::default();
/// rules.of_mut(Behavior::Deny).push("Read(**/.env)".parse()?);
/// assert_eq!(rules.deny.len(), 1);
/// assert_eq!(Behavior::Deny.name(), "deny");
/// # Ok::<(), pelton::permission::RuleError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Behavior {
    /// They run.
    Allow,
    /// They do not.
    Deny,
    /// They are asked about.
    Ask,
}

/// Where a change is to be kept.
///
/// ```
/// use pelton::permission::{Change, Destination, Mode, Update};
///
/// let update = Update { change: Change::SetMode(Mode::Plan), destination: Destination::UserSettings };
/// assert_eq!(update.to_json()["destination"], "userSettings");
/// assert_eq!(Update::session(update.change).destination, Destination::Session);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Destination {
    /// Nowhere but in this session.
    Session,
    /// The user's settings of this project, which are shared with nobody.
    LocalSettings,
    /// The project's settings.
    ProjectSettings,
    /// The user's settings.
    UserSettings,
    /// Like what the command line said.
    CliArg,
}

/// A change that cannot be understood.
///
/// ```
/// use pelton::permission::Update;
/// use serde_json::json;
///
/// let error = Update::from_json(&json!({"type": "setMode", "mode": "reckless"})).unwrap_err();
/// assert_eq!(error.to_string(), "permission update: there is no mode 'reckless'");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("permission update: {0}")]
pub struct BadUpdate(pub String);

impl Update {
    /// A change for the rest of the session.
    pub fn session(change: Change) -> Self {
        Self { change, destination: Destination::Session }
    }

    /// Reads what the protocol calls a PermissionUpdate.
    pub fn from_json(json: &Value) -> Result<Self, BadUpdate> {
        let word = |field: &str| json.get(field).and_then(Value::as_str);
        let kind = word("type").ok_or_else(|| BadUpdate("the type is missing".into()))?;
        let change = match kind {
            "addRules" => Change::AddRules(behavior(json)?, rules(json)?),
            "replaceRules" => Change::ReplaceRules(behavior(json)?, rules(json)?),
            "removeRules" => Change::RemoveRules(behavior(json)?, rules(json)?),
            "setMode" => {
                let name = word("mode").unwrap_or_default();
                let mode = Mode::from_name(name);
                Change::SetMode(mode.ok_or_else(|| BadUpdate(format!("there is no mode '{name}'")))?)
            }
            "addDirectories" => Change::AddDirectories(directories(json)?),
            "removeDirectories" => Change::RemoveDirectories(directories(json)?),
            other => return Err(BadUpdate(format!("there is no type '{other}'"))),
        };
        let destination = match word("destination") {
            // Forgotten, it is kept nowhere.
            None => Destination::Session,
            Some(name) => Destination::from_name(name)
                .ok_or_else(|| BadUpdate(format!("there is no destination '{name}'")))?,
        };
        Ok(Self { change, destination })
    }

    /// Writes what the protocol calls a PermissionUpdate.
    pub fn to_json(&self) -> Value {
        let destination = self.destination.name();
        let with_rules = |kind: &str, behavior: &Behavior, rules: &[Rule]| {
            let rules: Vec<Value> = rules.iter().map(rule_json).collect();
            json!({"type": kind, "rules": rules, "behavior": behavior.name(), "destination": destination})
        };
        match &self.change {
            Change::AddRules(behavior, rules) => with_rules("addRules", behavior, rules),
            Change::ReplaceRules(behavior, rules) => with_rules("replaceRules", behavior, rules),
            Change::RemoveRules(behavior, rules) => with_rules("removeRules", behavior, rules),
            Change::SetMode(mode) => {
                json!({"type": "setMode", "mode": mode.name(), "destination": destination})
            }
            Change::AddDirectories(directories) => {
                json!({"type": "addDirectories", "directories": directories, "destination": destination})
            }
            Change::RemoveDirectories(directories) => {
                json!({"type": "removeDirectories", "directories": directories, "destination": destination})
            }
        }
    }
}

impl Behavior {
    /// The name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Ask => "ask",
        }
    }
}

impl Destination {
    const ALL: [Self; 5] =
        [Self::Session, Self::LocalSettings, Self::ProjectSettings, Self::UserSettings, Self::CliArg];

    /// The name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::LocalSettings => "localSettings",
            Self::ProjectSettings => "projectSettings",
            Self::UserSettings => "userSettings",
            Self::CliArg => "cliArg",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|destination| destination.name() == name)
    }
}

fn behavior(json: &Value) -> Result<Behavior, BadUpdate> {
    match json.get("behavior").and_then(Value::as_str) {
        Some("allow") => Ok(Behavior::Allow),
        Some("deny") => Ok(Behavior::Deny),
        Some("ask") => Ok(Behavior::Ask),
        _ => Err(BadUpdate("the behavior is none of allow, deny and ask".into())),
    }
}

fn rules(json: &Value) -> Result<Vec<Rule>, BadUpdate> {
    let rules = json.get("rules").and_then(Value::as_array);
    rules.ok_or_else(|| BadUpdate("the rules are missing".into()))?.iter().map(rule).collect()
}

fn rule(json: &Value) -> Result<Rule, BadUpdate> {
    let tool = json.get("toolName").and_then(Value::as_str);
    let tool = tool.ok_or_else(|| BadUpdate("a rule has no toolName".into()))?;
    let text = match json.get("ruleContent") {
        None | Some(Value::Null) => tool.to_owned(),
        Some(Value::String(content)) => format!("{tool}({content})"),
        Some(_) => return Err(BadUpdate("a ruleContent is no text".into())),
    };
    text.parse().map_err(|error: super::RuleError| BadUpdate(error.to_string()))
}

fn rule_json(rule: &Rule) -> Value {
    match rule.content() {
        Some(content) => json!({"toolName": rule.tool(), "ruleContent": content}),
        None => json!({"toolName": rule.tool()}),
    }
}

fn directories(json: &Value) -> Result<Vec<PathBuf>, BadUpdate> {
    let all = json.get("directories").and_then(Value::as_array);
    let all = all.ok_or_else(|| BadUpdate("the directories are missing".into()))?;
    let path = |path: &Value| path.as_str().filter(|path| !path.is_empty()).map(PathBuf::from);
    let paths: Option<Vec<PathBuf>> = all.iter().map(path).collect();
    paths.ok_or_else(|| BadUpdate("a directory is no path".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &Value) -> Value {
        match Update::from_json(json) {
            Ok(update) => update.to_json(),
            Err(error) => Value::String(error.to_string()),
        }
    }

    #[test]
    fn what_is_written_is_what_was_read() {
        for json in [
            json!({"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "echo (x)"}], "behavior": "allow", "destination": "localSettings"}),
            json!({"type": "replaceRules", "rules": [{"toolName": "Bash"}], "behavior": "deny", "destination": "session"}),
            json!({"type": "removeRules", "rules": [], "behavior": "ask", "destination": "userSettings"}),
            json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"}),
            json!({"type": "addDirectories", "directories": ["/a", "b"], "destination": "cliArg"}),
            json!({"type": "removeDirectories", "directories": ["/a"], "destination": "projectSettings"}),
        ] {
            assert_eq!(check(&json), json);
        }
    }

    #[test]
    fn what_is_left_out_or_null_has_a_meaning() {
        let said = json!({"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": null}], "behavior": "allow"});
        let meant = json!({"type": "addRules", "rules": [{"toolName": "Bash"}], "behavior": "allow", "destination": "session"});
        assert_eq!(check(&said), meant);
        let manual = check(&json!({"type": "setMode", "mode": "manual"}));
        assert_eq!(manual["mode"], "default");
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        for (json, part) in [
            (json!({}), "type is missing"),
            (json!({"type": "forget"}), "'forget'"),
            (json!({"type": "setMode", "mode": "wild"}), "'wild'"),
            (json!({"type": "setMode", "mode": "plan", "destination": "moon"}), "'moon'"),
            (json!({"type": "addRules", "behavior": "allow"}), "rules are missing"),
            (json!({"type": "addRules", "rules": [{}], "behavior": "allow"}), "toolName"),
            (json!({"type": "addRules", "rules": [], "behavior": "maybe"}), "behavior"),
            (
                json!({"type": "addRules", "rules": [{"toolName": "Read", "ruleContent": "!x"}], "behavior": "deny"}),
                "'!'",
            ),
            (json!({"type": "addDirectories", "directories": [""]}), "no path"),
        ] {
            let said = check(&json);
            assert!(said.as_str().is_some_and(|said| said.contains(part)), "{said}");
        }
    }
}
