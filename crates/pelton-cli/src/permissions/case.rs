//! One call to be judged, as JSON says it. Borne are several ways to say the same: see docs/permissions.md.

use std::path::{Path, PathBuf};

use pelton::permission::{
    Behavior, Decision, HookSays, Judged, Layer, Mode, Permissions, Rule, RuleSet, RuleSource,
};
use pelton::tools::access_of;
use serde_json::{Map, Value, json};

/// What is meant when a case does not say.
pub(super) struct Defaults {
    pub cwd: PathBuf,
    pub home: Option<PathBuf>,
    pub config_dir: Option<PathBuf>,
}

/// A call, and what holds for it.
pub(super) struct Case {
    pub id: String,
    tool: String,
    input: Value,
    rules: RuleSet,
    mode: Mode,
    cwd: PathBuf,
    directories: Vec<PathBuf>,
    home: Option<PathBuf>,
    hook: Hook,
    /// Decisions that are right; empty if nothing is said about it.
    pub expect: Vec<String>,
    /// What is wrong with its rules.
    pub warnings: Vec<String>,
}

enum Hook {
    Silent,
    Allows,
    Asks,
}

impl Case {
    /// Reads one line. The number is its name, if it has none.
    pub fn read(line: &str, number: usize, defaults: &Defaults) -> Result<Self, String> {
        let case: Value = serde_json::from_str(line).map_err(|error| format!("no JSON: {error}"))?;
        let Value::Object(case) = case else { return Err("must be an object".to_owned()) };
        let id = match case.get("id").or_else(|| case.get("name")) {
            Some(Value::String(id)) => id.clone(),
            Some(id) if !id.is_null() => id.to_string(),
            _ => number.to_string(),
        };
        let (tool, input) = call(&case)?;
        let mut directories =
            paths(&case, &["directories", "additionalDirectories", "additional_directories", "roots"]);
        let home = text(&case, &["home"]).map(PathBuf::from).or_else(|| defaults.home.clone());
        let cwd = match text(&case, &["cwd", "directory", "workdir"]) {
            Some(cwd) => defaults.cwd.join(cwd),
            // The first of several is the one that is worked in.
            None if case.contains_key("directories") && !directories.is_empty() => {
                defaults.cwd.join(directories.remove(0))
            }
            None => defaults.cwd.clone(),
        };
        let directories = directories.into_iter().map(|directory| cwd.join(directory)).collect();
        let mut rules = Rules {
            set: RuleSet::default(),
            warnings: Vec::new(),
            config_dir: defaults.config_dir.as_deref(),
        };
        rules.add_all(
            case.get("rules").or_else(|| case.get("permissions")).unwrap_or(&Value::Null),
            Layer::Session,
        )?;
        let top = case.iter().filter(|(key, _)| behavior(key).is_some());
        rules.add_all(
            &Value::Object(top.map(|(key, value)| (key.clone(), value.clone())).collect()),
            Layer::Session,
        )?;
        let mut warnings = rules.warnings;
        warnings.extend(rules.set.warnings());
        let mode = match text(&case, &["mode", "permission_mode", "permissionMode"]) {
            None => Mode::Default,
            Some(name) => Mode::from_name(name).ok_or_else(|| format!("there is no mode '{name}'"))?,
        };
        let hook = match text(&case, &["hook", "hook_decision"]) {
            None => Hook::Silent,
            Some("allow") => Hook::Allows,
            Some("ask") => Hook::Asks,
            Some(other) => return Err(format!("a hook says allow or ask, not '{other}'")),
        };
        let expect = expected(case.get("expect").or_else(|| case.get("expected")).unwrap_or(&Value::Null))?;
        Ok(Self { id, tool, input, rules: rules.set, mode, cwd, directories, home, hook, expect, warnings })
    }

    /// Judges it, as a session would.
    pub fn judge(&self) -> Result<Decision, String> {
        let access = access_of(&self.tool, &self.input, &self.cwd).map_err(|invalid| invalid.0)?;
        let permissions = Permissions::new(
            self.rules.clone(),
            self.mode,
            self.cwd.clone(),
            self.directories.clone(),
            self.home.clone(),
        );
        let hook = match self.hook {
            Hook::Silent => HookSays::Nothing,
            Hook::Allows => HookSays::Vouches,
            Hook::Asks => HookSays::Asks("A hook asks for approval."),
        };
        let call = Judged { tool: &self.tool, input: &self.input, access: &access, cwd: &self.cwd, hook };
        Ok(permissions.judge(&call))
    }
}

fn call(case: &Map<String, Value>) -> Result<(String, Value), String> {
    let tool = text(case, &["tool", "tool_name", "toolName"]).unwrap_or("Bash").to_owned();
    let input = case.get("input").or_else(|| case.get("tool_input")).cloned();
    match (input, text(case, &["command"])) {
        (Some(Value::String(command)), _) => Ok((tool, json!({"command": command}))),
        (Some(input @ Value::Object(_)), _) => Ok((tool, input)),
        (None | Some(Value::Null), Some(command)) => Ok((tool, json!({"command": command}))),
        _ => Err("needs a `command`, or a `tool` and its `input`".to_owned()),
    }
}

/// The first of these fields that is a text.
fn text<'c>(case: &'c Map<String, Value>, names: &[&str]) -> Option<&'c str> {
    names.iter().find_map(|name| case.get(*name)?.as_str())
}

fn paths(case: &Map<String, Value>, names: &[&str]) -> Vec<PathBuf> {
    let list = names.iter().find_map(|name| case.get(*name)?.as_array());
    list.into_iter().flatten().filter_map(Value::as_str).map(PathBuf::from).collect()
}

fn expected(expect: &Value) -> Result<Vec<String>, String> {
    let one = |value: &Value| match value.as_str().map(str::to_ascii_lowercase).as_deref() {
        Some("allow" | "allowed" | "approve" | "auto") => Ok("allow".to_owned()),
        Some("ask" | "prompt" | "asked") => Ok("ask".to_owned()),
        Some("deny" | "denied" | "block" | "blocked") => Ok("deny".to_owned()),
        _ => Err(format!("`expect` is allow, ask or deny, not {value}")),
    };
    match expect {
        Value::Null => Ok(Vec::new()),
        Value::Array(values) => values.iter().map(one).collect(),
        Value::Object(object) => match object.get("decision").or_else(|| object.get("verdict")) {
            Some(value) => Ok(vec![one(value)?]),
            None => Err("`expect` has no `decision`".to_owned()),
        },
        value => Ok(vec![one(value)?]),
    }
}

/// Rules, gathered from wherever they are said.
struct Rules<'a> {
    set: RuleSet,
    warnings: Vec<String>,
    config_dir: Option<&'a Path>,
}

impl Rules<'_> {
    /// `{allow, ask, deny}`, the same for each layer, a settings file, or a list of either.
    fn add_all(&mut self, said: &Value, layer: Layer) -> Result<(), String> {
        match said {
            Value::Null => Ok(()),
            Value::Array(all) => all.iter().try_for_each(|said| match said {
                // A rule that says by itself what it does, or allows.
                Value::String(_) => self.add(said, Behavior::Allow, layer),
                said => self.add_all(said, layer),
            }),
            Value::Object(object) => {
                if let (Some(rule), Some(kind)) =
                    (object.get("rule"), text(object, &["behavior", "effect", "type"]))
                {
                    let behavior = behavior(kind).ok_or_else(|| format!("no rule does '{kind}'"))?;
                    let layer =
                        text(object, &["scope", "source", "layer"]).and_then(layer_named).unwrap_or(layer);
                    return self.add(rule, behavior, layer);
                }
                for (key, value) in object {
                    if let Some(behavior) = behavior(key) {
                        match value {
                            Value::Null => {}
                            Value::Array(rules) => {
                                rules.iter().try_for_each(|rule| self.add(rule, behavior, layer))?;
                            }
                            rule => self.add(rule, behavior, layer)?,
                        }
                    } else if key == "permissions" || key == "rules" {
                        self.add_all(value, layer)?;
                    } else if let Some(layer) = layer_named(key) {
                        self.add_all(value, layer)?;
                    } else {
                        return Err(format!("`rules.{key}` is neither allow, ask, deny nor a scope"));
                    }
                }
                Ok(())
            }
            Value::String(_) => self.add(said, Behavior::Allow, layer),
            other => Err(format!("rules cannot be {other}")),
        }
    }

    fn add(&mut self, said: &Value, behavior: Behavior, layer: Layer) -> Result<(), String> {
        let text = said.as_str().ok_or_else(|| format!("a rule is a text, not {said}"))?;
        match text.parse::<Rule>() {
            Ok(rule) => {
                let mut source = RuleSource::default();
                source.layer = layer;
                source.anchor = self.config_dir.filter(|_| layer == Layer::User).map(Into::into);
                self.set.of_mut(behavior).push(rule.with_source(source));
            }
            // As in settings, it is left out and told.
            Err(error) => self.warnings.push(format!("{error} (left out)")),
        }
        Ok(())
    }
}

fn behavior(key: &str) -> Option<Behavior> {
    match key {
        "allow" | "allowed" | "allowedTools" => Some(Behavior::Allow),
        "ask" => Some(Behavior::Ask),
        "deny" | "denied" | "disallowedTools" => Some(Behavior::Deny),
        _ => None,
    }
}

fn layer_named(key: &str) -> Option<Layer> {
    match key {
        "managed" | "policy" | "policySettings" | "managedSettings" => Some(Layer::Managed),
        "cli" | "cliArg" | "flag" | "flagSettings" | "commandLine" | "command_line" => {
            Some(Layer::CommandLine)
        }
        "local" | "localSettings" => Some(Layer::Local),
        "project" | "projectSettings" => Some(Layer::Project),
        "user" | "userSettings" => Some(Layer::User),
        "session" => Some(Layer::Session),
        _ => None,
    }
}

/// Rules for a whole file: a settings file, or rules as a case says them.
pub(super) fn rules_of(text: &str, config_dir: Option<&Path>) -> Result<(RuleSet, Vec<String>), String> {
    let said: Value = serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
    let mut rules = Rules { set: RuleSet::default(), warnings: Vec::new(), config_dir };
    match &said {
        // A settings file has much else in it.
        Value::Object(object) if object.contains_key("permissions") => {
            let said = &object["permissions"];
            for key in ["allow", "ask", "deny"] {
                rules.add_all(&json!({key: said.get(key)}), Layer::Session)?;
            }
        }
        said => rules.add_all(said, Layer::Session)?,
    }
    rules.warnings.extend(rules.set.warnings());
    Ok((rules.set, rules.warnings))
}
