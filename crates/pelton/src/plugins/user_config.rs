//! What a plugin asks its user for (`userConfig`), and what it was told. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Plugin, PluginProblem};

/// One thing a plugin asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wanted {
    kind: Kind,
    required: bool,
    /// A list of such.
    multiple: bool,
    /// A secret: programs are told it, the model is not.
    sensitive: bool,
    range: (Option<f64>, Option<f64>),
    default: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Switch,
}

/// What is asked for, by its keys.
pub(super) fn wanted(manifest: &Map<String, Value>) -> Result<BTreeMap<String, Wanted>, PluginProblem> {
    let wrong = |what: String| PluginProblem::new("manifest-validation-error", what);
    let Some(said) = manifest.get("userConfig").filter(|said| !said.is_null()) else {
        return Ok(BTreeMap::new());
    };
    let said = said.as_object().ok_or_else(|| wrong("`userConfig` must be an object".to_owned()))?;
    let one = |(key, entry): (&String, &Value)| {
        let entry =
            entry.as_object().ok_or_else(|| wrong(format!("`userConfig.{key}` must be an object")))?;
        let kind = match entry.get("type").and_then(Value::as_str).unwrap_or("string") {
            "string" | "directory" | "file" => Kind::Text,
            "number" => Kind::Number,
            "boolean" => Kind::Switch,
            other => {
                return Err(wrong(format!(
                    "`userConfig.{key}.type` is \"{other}\"; it must be string, number, boolean, directory or file"
                )));
            }
        };
        let is_on = |name: &str| entry.get(name) == Some(&Value::Bool(true));
        let wanted = Wanted {
            kind,
            required: is_on("required"),
            multiple: is_on("multiple"),
            sensitive: is_on("sensitive"),
            range: (entry.get("min").and_then(Value::as_f64), entry.get("max").and_then(Value::as_f64)),
            default: entry.get("default").filter(|default| !default.is_null()).cloned(),
        };
        Ok((key.clone(), wanted))
    };
    said.iter().map(one).collect()
}

impl Wanted {
    /// A value as programs read it, or what it should be.
    fn text(&self, value: &Value) -> Result<String, String> {
        if self.multiple {
            let values = value.as_array().ok_or("a list")?;
            let texts: Result<Vec<String>, String> = values.iter().map(|value| self.one(value)).collect();
            return texts.map(|texts| texts.join(","));
        }
        self.one(value)
    }

    fn one(&self, value: &Value) -> Result<String, String> {
        match (self.kind, value) {
            (Kind::Text, Value::String(text)) if !text.contains('\0') => Ok(text.clone()),
            (Kind::Text, _) => Err("a text".to_owned()),
            (Kind::Switch, Value::Bool(is_on)) => Ok(is_on.to_string()),
            (Kind::Switch, _) => Err("true or false".to_owned()),
            (Kind::Number, value) => {
                let (min, max) = self.range;
                let number = value.as_f64().ok_or("a number")?;
                match (min.is_some_and(|min| number < min), max.is_some_and(|max| number > max)) {
                    (false, false) => Ok(value.to_string()),
                    (true, _) => Err(format!("at least {}", min.unwrap_or_default())),
                    (_, true) => Err(format!("at most {}", max.unwrap_or_default())),
                }
            }
        }
    }
}

/// The variable by which a plugin's programs find what its user has set.
pub(crate) fn option_variable(key: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("CLAUDE_PLUGIN_OPTION_{}", key.chars().map(plain).collect::<String>())
}

impl Plugin {
    /// Tells a plugin what its user has set for it (`pluginConfigs["name@marketplace"].options`). What it does not ask for it is
    /// not told; what is missing or of the wrong kind becomes one of its [problems](Self::problems).
    ///
    /// ```
    /// use pelton::plugins::Plugin;
    /// use serde_json::json;
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let root = dir.path().join("kit");
    /// # std::fs::create_dir_all(root.join(".claude-plugin"))?;
    /// let manifest = json!({"name": "kit", "userConfig": {"port": {"type": "number", "default": 80}, "host": {"type": "string"}}});
    /// std::fs::write(root.join(".claude-plugin/plugin.json"), manifest.to_string())?;
    /// let mut plugin = Plugin::read(&root, "inline", dir.path()).unwrap();
    /// plugin.configure(json!({"host": "a.example", "other": 1}).as_object().unwrap());
    /// assert_eq!(plugin.option("host"), Some("a.example"));
    /// assert_eq!((plugin.option("port"), plugin.option("other")), (Some("80"), None));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn configure(&mut self, said: &Map<String, Value>) {
        self.options.clear();
        for (key, wanted) in &self.wanted {
            let place = || format!("pluginConfigs.{}.options.{key}", self.id());
            let value = said.get(key).filter(|value| !value.is_null()).or(wanted.default.as_ref());
            match value.map(|value| wanted.text(value)) {
                Some(Ok(text)) => _ = self.options.insert(key.clone(), text),
                Some(Err(expected)) => {
                    let message = format!("`{}` must be {expected}", place());
                    self.problems.push(PluginProblem::new("generic-error", message));
                }
                None if wanted.required => {
                    let message = format!("it needs `{}`, which no settings say", place());
                    self.problems.push(PluginProblem::new("generic-error", message));
                }
                None => {}
            }
        }
    }

    /// What it takes by itself where its user says nothing.
    pub(super) fn defaults(&self) -> BTreeMap<&str, &Value> {
        let wanted = self.wanted.iter();
        wanted.filter_map(|(key, wanted)| Some((key.as_str(), wanted.default.as_ref()?))).collect()
    }

    /// What its programs find, as far as it may be told: no secret of its user's. What comes from itself is none.
    pub(super) fn told_options(&self) -> BTreeMap<String, String> {
        let told = self.wanted.iter().filter_map(|(key, wanted)| {
            let default = wanted.default.as_ref().and_then(|default| wanted.text(default).ok());
            let text = self.options.get(key).cloned().filter(|_| !wanted.sensitive).or(default)?;
            Some((key.clone(), text))
        });
        told.collect()
    }

    /// What its user has set under a key that it asks for, or what it takes otherwise.
    pub fn option(&self, key: &str) -> Option<&str> {
        self.options.get(key).map(String::as_str)
    }

    /// The same for texts that the model reads: a secret is none.
    pub(crate) fn option_in_texts(&self, key: &str) -> Option<&str> {
        let is_secret = self.wanted.get(key).is_none_or(|wanted| wanted.sensitive);
        self.option(key).filter(|_| !is_secret)
    }

    /// A text for the model with what the plugin's names in it stand for: where it is, where it keeps things, and what its user has
    /// set (`${user_config.KEY}`).
    pub(super) fn put_into(&self, text: &str) -> String {
        let mut made = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let (before, from) = rest.split_at(at);
            made.push_str(before);
            let name = from[2..].split_once('}').map_or("", |(name, _)| name);
            let value = match name {
                "CLAUDE_PLUGIN_ROOT" => Some(self.root.display().to_string()),
                "CLAUDE_PLUGIN_DATA" => Some(self.data.display().to_string()),
                _ => name
                    .strip_prefix("user_config.")
                    .and_then(|key| self.option_in_texts(key))
                    .map(str::to_owned),
            };
            match value {
                Some(value) => {
                    made.push_str(&value);
                    rest = &from[name.len() + "${}".len()..];
                }
                None => {
                    made.push_str("${");
                    rest = &from[2..];
                }
            }
        }
        made.push_str(rest);
        made
    }

    /// What its programs find in their environment.
    pub fn option_variables(&self) -> Vec<(String, String)> {
        self.options.iter().map(|(key, text)| (option_variable(key), text.clone())).collect()
    }
}
