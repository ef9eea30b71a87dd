//! From the text of a settings file to settings, with the place of everything that is wrong.

mod manner; // how the model works and answers, and which may be asked
mod sandbox; // the object `sandbox`
mod tools; // the tools themselves

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pelton_model::Effort;
use pelton_model::catalogue::{Prices, Rates};
use serde_json::{Map, Value};

use super::lines::Lines;
use super::{
    LoopSettings, MemorySettings, OutputSettings, PluginSettings, PluginsOnly, RetrySettings, ServerMatch,
    ServerSettings, Settings, SkillSettings, relaxed,
};
use crate::context::AgentsMd;
use crate::hooks::{HttpHookTerms, Severity, Source};
use crate::permission::{Behavior, Layer, Mode, Rule, RuleSource};
use crate::skills::SkillShown;
use crate::tools::Siblings;
use crate::transcript::Durability;

/// A file of settings, before it is read.
///
/// ```
/// use std::path::Path;
///
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, read};
///
/// // `/src/**` in this file means the project's `src`.
/// let origin = Origin { source: &Source::Project, file: ".claude/settings.json", anchor: Some(Path::new("/srv/project")) };
/// let (settings, _) = read(r#"{"permissions": {"deny": ["Edit(/src/**)"]}}"#, origin)?;
/// assert_eq!(settings.rules.deny[0].source().file.as_deref(), Some(".claude/settings.json"));
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// Whose settings.
    pub source: &'a Source,
    /// What messages call the file.
    pub file: &'a str,
    /// Where path rules that begin with `/` are anchored; at the session's start, unless said.
    pub anchor: Option<&'a Path>,
}

/// Something in a file that is not as it should be. The rest of the file counts.
///
/// ```
/// use pelton::hooks::{Severity, Source};
/// use pelton::settings::{Origin, read};
///
/// let origin = Origin { source: &Source::User, file: "settings.json", anchor: None };
/// let (settings, problems) = read(r#"{"model": "opus", "env": ["LANG"]}"#, origin)?;
/// assert_eq!(settings.model.as_deref(), Some("opus")); // the rest counts
/// assert_eq!((problems[0].severity, problems[0].file.as_str()), (Severity::Error, "settings.json"));
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Whether something was left out for it.
    pub severity: Severity,
    /// The file.
    pub file: String,
    /// The line in it, from 1, where it is known.
    pub line: Option<u32>,
    /// Which key, and what was expected.
    pub text: String,
}

/// A file that cannot be read at all.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, read};
///
/// let origin = Origin { source: &Source::User, file: "settings.json", anchor: None };
/// let broken = read(r#"{"model": "#, origin).unwrap_err();
/// assert!(broken.to_string().starts_with("settings.json: "));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {text}")]
pub struct BrokenSettings {
    /// The file.
    pub file: String,
    /// What is wrong with it, and where.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.text)
    }
}

/// Reads one file. Comments and trailing commas are borne.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, read};
///
/// let text = r#"{"model": "opus", "retry": {"maxRetries": "many"}, /* and */ "loop": {"speculation": true}}"#;
/// let origin = Origin { source: &Source::User, file: "settings.json", anchor: None };
/// let (settings, problems) = read(text, origin)?;
/// assert_eq!(settings.model.as_deref(), Some("opus"));
/// assert_eq!(settings.turns.speculation, Some(true));
/// assert!(problems[0].to_string().contains("retry.maxRetries"));
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
pub fn read(text: &str, origin: Origin<'_>) -> Result<(Settings, Vec<Problem>), BrokenSettings> {
    let broken = |text: String| BrokenSettings { file: origin.file.to_owned(), text };
    let all: Value = match serde_json::from_str(&relaxed::strict(text)) {
        Ok(all) => all,
        Err(_) if text.trim().is_empty() => Value::Object(Map::new()),
        Err(error) => return Err(broken(error.to_string())),
    };
    let Value::Object(all) = all else { return Err(broken("must be a JSON object".to_owned())) };
    let mut reader = Reader::new(text, origin);
    let settings = reader.settings(&all);
    Ok((settings, reader.problems))
}

/// The places of all keys that are looked for; `*` stands for a name that whoever writes a file chooses.
pub(super) fn known_places() -> BTreeSet<String> {
    let some = serde_json::json!({
        "permissions": {}, "fileHistory": {}, "modelPricing": {"*": {}}, "attribution": {}, "worktree": {},
        "sandbox": {"filesystem": {}, "network": {}, "credentials": {}},
    });
    let mut reader = Reader::new("", Origin { source: &Source::User, file: "", anchor: None });
    reader.looked_for = Some(BTreeSet::new());
    if let Some(some) = some.as_object() {
        reader.settings(some);
    }
    reader.looked_for.unwrap_or_default()
}

struct Reader<'a> {
    origin: Origin<'a>,
    /// The file as it is, to say where things are in it.
    text: &'a str,
    lines: OnceCell<Lines>,
    problems: Vec<Problem>,
    /// The keys that were looked for, if somebody wants to know.
    looked_for: Option<BTreeSet<String>>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, origin: Origin<'a>) -> Self {
        Self { origin, text, lines: OnceCell::new(), problems: Vec::new(), looked_for: None }
    }

    fn line(&self, place: &str) -> Option<u32> {
        self.lines.get_or_init(|| Lines::of(self.text)).of_place(place)
    }
}

impl Reader<'_> {
    fn settings(&mut self, all: &Map<String, Value>) -> Settings {
        let mut settings = Settings {
            model: self.text(all, "", "model"),
            fallback_models: self.models(all),
            effort: self.effort(all),
            fast_mode: self.field(all, "", "fastMode", "true or false", Value::as_bool),
            fast_mode_for_this_run: self.field(
                all,
                "",
                "fastModePerSessionOptIn",
                "true or false",
                Value::as_bool,
            ),
            output: self.output(all),
            api_key_helper: self.text(all, "", "apiKeyHelper"),
            env: self.env(all),
            disable_all_hooks: self.field(all, "", "disableAllHooks", "true or false", Value::as_bool),
            prices: self.prices(all),
            retry: self.retry(all),
            turns: self.turns(all),
            manner: self.manner(all),
            worktrees: self.worktrees(all),
            screen: self.screen(all),
            models: self.choice_of_models(all),
            http_hooks: self.http_hooks(all),
            memory: self.memory(all),
            servers: self.servers(all),
            skills: self.skills(all),
            plugins: self.plugins(all),
            tools: self.tools(all),
            sandbox: self.sandbox(all),
            durability: self.field(all, "", "durability", "\"synced\" or \"fast\"", |value| {
                Durability::from_name(value.as_str()?)
            }),
            ..Settings::default()
        };
        self.permissions(all, &mut settings);
        self.file_history(all, &mut settings);
        self.compact(all, &mut settings);
        self.policy(all, &mut settings);
        if let Some(hooks) = self.said(all, "", "hooks") {
            for problem in settings.hooks.add_settings(hooks, self.origin.source) {
                self.problems.push(Problem {
                    severity: problem.severity,
                    line: self.line(&problem.place),
                    file: self.origin.file.to_owned(),
                    text: problem.to_string(),
                });
            }
        }
        settings
    }

    fn servers(&mut self, all: &Map<String, Value>) -> ServerSettings {
        let mut matches = |key| {
            let expected = "a list of objects with serverName, serverCommand or serverUrl";
            self.field(all, "", key, expected, |value| {
                value.as_array()?.iter().map(ServerMatch::read).collect()
            })
        };
        let (allowed, denied) = (matches("allowedMcpServers"), matches("deniedMcpServers"));
        ServerSettings {
            approve_all: self.field(all, "", "enableAllProjectMcpServers", "true or false", Value::as_bool),
            approved: self.texts(all, "", "enabledMcpjsonServers").unwrap_or_default(),
            rejected: self.texts(all, "", "disabledMcpjsonServers").unwrap_or_default(),
            allowed,
            denied: denied.unwrap_or_default(),
        }
    }

    fn http_hooks(&mut self, all: &Map<String, Value>) -> HttpHookTerms {
        HttpHookTerms {
            urls: self.texts(all, "", "allowedHttpHookUrls"),
            variables: self.texts(all, "", "httpHookAllowedEnvVars"),
        }
    }

    fn plugins(&mut self, all: &Map<String, Value>) -> PluginSettings {
        let switches = |value: &Value| -> Option<_> {
            // A list of versions is no yes.
            let is_on = |value: &Value| value.as_bool().or_else(|| value.as_array().map(|_| false));
            value.as_object()?.iter().map(|(name, value)| Some((name.clone(), is_on(value)?))).collect()
        };
        let expected = "an object of \"plugin@marketplace\" and true or false";
        let local = |(name, entry): (&String, &Value)| {
            let source = &entry["source"];
            let is_local = matches!(source["source"].as_str(), Some("directory" | "file"));
            source["path"].as_str().filter(|_| is_local).map(|path| (name.clone(), path.to_owned()))
        };
        let known = |value: &Value| Some(value.as_object()?.iter().filter_map(local).collect());
        let sources = |value: &Value| value.as_array().cloned();
        PluginSettings {
            enabled: self.field(all, "", "enabledPlugins", expected, switches).unwrap_or_default(),
            marketplaces: self
                .field(all, "", "extraKnownMarketplaces", "an object", known)
                .unwrap_or_default(),
            options: self
                .field(
                    all,
                    "",
                    "pluginConfigs",
                    "an object of \"plugin@marketplace\" and {\"options\": {…}}",
                    |value| {
                        let one = |(name, entry): (&String, &Value)| {
                            let options = entry
                                .as_object()?
                                .get("options")
                                .cloned()
                                .unwrap_or_else(|| Map::new().into());
                            Some((name.clone(), options.as_object()?.clone()))
                        };
                        value.as_object()?.iter().map(one).collect()
                    },
                )
                .unwrap_or_default(),
            only_from: self.field(all, "", "strictKnownMarketplaces", "a list of sources", sources),
            never_from: self
                .field(all, "", "blockedMarketplaces", "a list of sources", sources)
                .unwrap_or_default(),
            without_hooks: false,
        }
    }

    fn policy(&mut self, all: &Map<String, Value>, settings: &mut Settings) {
        let permissions = all.get("permissions").and_then(Value::as_object);
        if let Some(said) = permissions {
            let disable = |value: &Value| (value == "disable").then_some(());
            let key = "disableBypassPermissionsMode";
            let said = self.field(said, "permissions.", key, "\"disable\"", disable);
            settings.policy.never_bypass = said.is_some();
        }
        let mut switch = |key| self.field(all, "", key, "true or false", Value::as_bool);
        let only = [
            switch("allowManagedPermissionRulesOnly"),
            switch("allowManagedHooksOnly"),
            switch("allowManagedMcpServersOnly"),
        ];
        let brought = self.field(all, "", "managedMcpServers", "an object of servers, by name", |value| {
            value.as_object().map(|servers| Value::Object(servers.clone()))
        });
        let expected = "true, false, or a list of \"skills\", \"agents\", \"hooks\" and \"mcp\"";
        let plugins_only = self.field(all, "", "strictPluginOnlyCustomization", expected, PluginsOnly::read);
        // Whoever puts the layers together acts on it, before any of them is read.
        let expected = "\"merge\" or \"first-wins\"";
        let way =
            |value: &Value| value.as_str().filter(|way| ["merge", "first-wins"].contains(way)).map(drop);
        let parents = self.field(all, "", "parentSettingsBehavior", expected, way);
        if *self.origin.source == Source::Policy {
            settings.policy.plugins_only = plugins_only;
            settings.policy.servers_brought = brought;
            [settings.policy.rules_only, settings.policy.hooks_only, settings.policy.servers_only] = only;
            settings.policy.hooks_off = settings.disable_all_hooks.take();
            settings.policy.servers_allowed.clone_from(&settings.servers.allowed);
            settings.policy.mode = settings.mode;
            settings.policy.model.clone_from(&settings.model);
            settings.policy.models_available.clone_from(&settings.models.available);
            settings.memory.managed_text = self.text(all, "", "claudeMd");
            return;
        }
        let keys = ["allowManagedPermissionRulesOnly", "allowManagedHooksOnly", "allowManagedMcpServersOnly"];
        let said = keys.into_iter().zip(only).filter(|(_, said)| *said == Some(true)).map(|(key, _)| key);
        let said = said.chain(plugins_only.map(|_| "strictPluginOnlyCustomization"));
        let said = said.chain(parents.map(|_| "parentSettingsBehavior"));
        for key in said.chain(brought.map(|_| "managedMcpServers")) {
            self.warn(key, "is for managed settings: it is not used here");
        }
        if self.text(all, "", "claudeMd").is_some() {
            self.warn("claudeMd", "is for managed settings: write a CLAUDE.md");
        }
    }

    fn compact(&mut self, all: &Map<String, Value>, settings: &mut Settings) {
        let mut switch = |key| self.field(all, "", key, "true or false", Value::as_bool);
        settings.compact.auto = switch("autoCompactEnabled");
        settings.compact.folds = switch("precomputeCompactionEnabled");
        let expected = "a number of tokens between 100000 and 1000000";
        let tokens = |value: &Value| value.as_u64().filter(|tokens| (100_000..=1_000_000).contains(tokens));
        settings.compact.window_tokens = self.field(all, "", "autoCompactWindow", expected, tokens);
    }

    fn file_history(&mut self, all: &Map<String, Value>, settings: &mut Settings) {
        settings.file_checkpointing =
            self.field(all, "", "fileCheckpointingEnabled", "true or false", Value::as_bool);
        let days = |value: &Value| value.as_u64().filter(|days| *days > 0);
        settings.cleanup_days =
            self.field(all, "", "cleanupPeriodDays", "a number of days, at least 1", days);
        let Some(said) = self.said(all, "", "fileHistory") else { return };
        let Some(said) = said.as_object() else { return self.wrong("fileHistory", "must be an object") };
        let mut bytes = |key| self.field(said, "fileHistory.", key, "a number of bytes", Value::as_u64);
        settings.file_history_file_bytes_max = bytes("maxFileBytes");
        settings.file_history_total_bytes_max = bytes("maxTotalBytes");
    }

    fn permissions(&mut self, all: &Map<String, Value>, settings: &mut Settings) {
        let Some(said) = self.said(all, "", "permissions") else { return };
        let Some(said) = said.as_object() else {
            settings.restrictions_unknown = true;
            return self.wrong("permissions", "must be an object");
        };
        for behavior in [Behavior::Allow, Behavior::Ask, Behavior::Deny] {
            match self.rules(said, behavior) {
                Some(rules) => *settings.rules.of_mut(behavior) = rules,
                None => settings.restrictions_unknown |= behavior != Behavior::Allow,
            }
        }
        settings.additional_dirs =
            self.texts(said, "permissions.", "additionalDirectories").unwrap_or_default();
        let place = "permissions.defaultMode";
        if let Some(name) = self.text(said, "permissions.", "defaultMode") {
            if Mode::stands_in(&name) {
                self.warn(place, &format!("is \"{name}\", which is not known here: it is taken for default"));
            }
            match Mode::from_name(&name) {
                Some(mode) => settings.mode = Some(mode),
                None => self.wrong(
                    place,
                    &format!(
                        "is \"{name}\"; it must be default, acceptEdits, plan, dontAsk or bypassPermissions"
                    ),
                ),
            }
        }
    }

    /// The rules under a key; `None` if nobody can say what stands there. A single rule that cannot be read is left out.
    fn rules(&mut self, said: &Map<String, Value>, behavior: Behavior) -> Option<Vec<Rule>> {
        let key = behavior.name();
        let Some(value) = self.said(said, "permissions.", key) else { return Some(Vec::new()) };
        let Some(values) = value.as_array() else {
            self.wrong(&format!("permissions.{key}"), "must be a list of texts");
            return None;
        };
        let file: Arc<str> = self.origin.file.into();
        let anchor: Option<Arc<Path>> = self.origin.anchor.map(Arc::from);
        let mut rules = Vec::new();
        for (at, value) in values.iter().enumerate() {
            let rule = match value.as_str() {
                Some(text) => text.parse::<Rule>().map_err(|error| error.to_string()),
                None => Err("it is no text".to_owned()),
            };
            match rule {
                Ok(rule) => {
                    let mut source = RuleSource::layer(layer(self.origin.source));
                    source.line = self.line(&format!("permissions.{key}[{at}]"));
                    source.file = Some(Arc::clone(&file));
                    source.anchor.clone_from(&anchor);
                    rules.push(rule.with_source(source));
                }
                Err(error) => {
                    self.warn(&format!("permissions.{key}[{at}]"), &format!("is left out: {error}"));
                }
            }
        }
        for rule in &rules {
            if let Some(warning) = rule.warning(behavior) {
                self.warn_at(rule.source().line, &format!("permissions.{key}"), &warning);
            }
        }
        Some(rules)
    }

    fn models(&mut self, all: &Map<String, Value>) -> Option<Vec<String>> {
        match all.get("fallbackModel") {
            // One model is a list of one.
            Some(Value::String(model)) => Some(vec![model.clone()]),
            _ => self.texts(all, "", "fallbackModel"),
        }
    }

    fn effort(&mut self, all: &Map<String, Value>) -> Option<Effort> {
        let name = self.text(all, "", "effortLevel")?;
        let effort = name.parse().ok();
        // The highest level is for a run, not for every day.
        let kept = effort.filter(|effort| *effort != Effort::Max || *self.origin.source == Source::Flag);
        if kept.is_none() {
            let expected = format!("is \"{name}\"; it must be low, medium, high or xhigh");
            self.wrong("effortLevel", &expected);
        }
        kept
    }

    fn env(&mut self, all: &Map<String, Value>) -> BTreeMap<String, String> {
        let said = self.field(all, "", "env", "an object with texts", Value::as_object).cloned();
        let mut env = BTreeMap::new();
        for (name, value) in said.unwrap_or_default() {
            let value = match value {
                Value::String(text) => text,
                Value::Number(number) => number.to_string(),
                Value::Bool(flag) => flag.to_string(),
                _ => {
                    self.wrong(&format!("env.{name}"), "must be a text");
                    continue;
                }
            };
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                self.wrong(&format!("env.{name}"), "cannot be a variable: no '=' and no NUL, please");
                continue;
            }
            env.insert(name, value);
        }
        env
    }

    fn prices(&mut self, all: &Map<String, Value>) -> BTreeMap<String, Prices> {
        let what = "an object with the names of models";
        let said = self.field(all, "", "modelPricing", what, Value::as_object).cloned();
        let mut prices = BTreeMap::new();
        for (model, said) in said.unwrap_or_default() {
            let place = format!("modelPricing.{model}");
            let Some(said) = said.as_object() else {
                self.wrong(&place, "must be an object with `input` and `output`");
                continue;
            };
            let place = format!("{place}.");
            let mut rate = |key: &str| {
                let what = "US dollars per million tokens, 0 or more";
                self.field(said, &place, key, what, |value| value.as_f64().filter(|usd| *usd >= 0.0))
            };
            let (input, output) = (rate("input"), rate("output"));
            let (write_5m, write_1h, read) = (rate("cacheWrite5m"), rate("cacheWrite1h"), rate("cacheRead"));
            let (Some(input), Some(output)) = (input, output) else {
                self.wrong(place.trim_end_matches('.'), "needs both `input` and `output`");
                continue;
            };
            let rates = Rates {
                input,
                output,
                // What the caches of the known models cost, in proportion.
                cache_write_5m: write_5m.unwrap_or(input * 1.25),
                cache_write_1h: write_1h.unwrap_or(input * 2.0),
                cache_read: read.unwrap_or(input * 0.1),
            };
            prices.insert(model, Prices { rates, long_prompt: None });
        }
        prices
    }

    fn retry(&mut self, all: &Map<String, Value>) -> RetrySettings {
        let said = self.field(all, "", "retry", "an object", Value::as_object).cloned().unwrap_or_default();
        let count = |value: &Value| value.as_u64().and_then(|count| u32::try_from(count).ok());
        let seconds = |value: &Value| value.as_u64().map(Duration::from_secs);
        let millis = |value: &Value| value.as_u64().map(Duration::from_millis);
        let (place, whole) = ("retry.", "a whole number");
        let mut time = |key: &str| self.field(&said, place, key, "a whole number of milliseconds", millis);
        let (idle, idle_pings_only, notice) =
            (time("idleTimeoutMs"), time("pingOnlyTimeoutMs"), time("noticeMs"));
        let heartbeat = time("heartbeatMs");
        let (fast_wait_max, fast_cooldown) = (time("fastModeWaitMs"), time("fastModeCooldownMs"));
        RetrySettings {
            retries_max: self.field(&said, place, "maxRetries", whole, count),
            horizon: self.field(&said, place, "horizonSeconds", "a whole number of seconds", seconds),
            unattended: self.field(&said, place, "unattended", "true or false", Value::as_bool),
            idle,
            idle_pings_only,
            notice,
            heartbeat,
            non_streaming_fallback: self.field(
                &said,
                place,
                "nonStreamingFallback",
                "true or false",
                Value::as_bool,
            ),
            fast_wait_max,
            fast_cooldown,
        }
    }

    fn turns(&mut self, all: &Map<String, Value>) -> LoopSettings {
        let said = self.field(all, "", "loop", "an object", Value::as_object).cloned().unwrap_or_default();
        let (place, choice) = ("loop.", "true or false");
        let whom = |value: &Value| value.as_str().and_then(Siblings::from_name);
        LoopSettings {
            siblings: self.field(&said, place, "siblingAbort", "never, side_effects or any", whom),
            speculation: self.field(&said, place, "speculation", choice, Value::as_bool),
            background_on_timeout: self.field(&said, place, "backgroundOnTimeout", choice, Value::as_bool),
            stop_on_repetition: self.field(&said, place, "stopOnRepetition", choice, Value::as_bool),
        }
    }

    fn memory(&mut self, all: &Map<String, Value>) -> MemorySettings {
        let choice = "true or false";
        let when = |value: &Value| value.as_str().and_then(AgentsMd::from_name);
        let is_projects = matches!(self.origin.source, Source::Project | Source::Local);
        MemorySettings {
            excludes: self.texts(all, "", "claudeMdExcludes").unwrap_or_default(),
            agents_md: self.field(all, "", "agentsMd", "fallback, both or never", when),
            notes: self.field(all, "", "autoMemoryEnabled", choice, Value::as_bool),
            // What comes with a project does not choose where the model reads and writes outside of it.
            notes_dir: self.text(all, "", "autoMemoryDirectory").filter(|_| !is_projects),
            git: self.field(all, "", "includeGitInstructions", choice, Value::as_bool),
            managed_text: None,
        }
    }

    fn skills(&mut self, all: &Map<String, Value>) -> SkillSettings {
        let share = |value: &Value| {
            value
                .as_f64()
                .filter(|share| (0.0..=1.0).contains(share))
                .map(|share| (share * 1_000.0).round() as u16)
        };
        let count = |value: &Value| value.as_u64().and_then(|count| usize::try_from(count).ok());
        SkillSettings {
            shell_off: self.field(all, "", "disableSkillShellExecution", "true or false", Value::as_bool),
            bundled_off: self.field(all, "", "disableBundledSkills", "true or false", Value::as_bool),
            listing_permille: self.field(
                all,
                "",
                "skillListingBudgetFraction",
                "a share between 0 and 1",
                share,
            ),
            description_chars_max: self.field(all, "", "skillListingMaxDescChars", "a whole number", count),
            shown: self.skills_shown(all),
        }
    }

    fn output(&mut self, all: &Map<String, Value>) -> OutputSettings {
        let count = |value: &Value| value.as_u64().and_then(|count| usize::try_from(count).ok());
        OutputSettings {
            command_chars_max: self.field(all, "", "bashOutputMaxChars", "a number of characters", count),
            task_chars_max: self.field(all, "", "taskOutputMaxChars", "a number of characters", count),
        }
    }

    fn skills_shown(&mut self, all: &Map<String, Value>) -> BTreeMap<String, SkillShown> {
        let said =
            self.field(all, "", "skillOverrides", "an object with the names of skills", Value::as_object);
        let mut shown = BTreeMap::new();
        for (name, value) in said.into_iter().flatten() {
            match value.as_str().and_then(SkillShown::from_name) {
                Some(how) => _ = shown.insert(name.clone(), how),
                None => self.wrong(
                    &format!("skillOverrides.{name}"),
                    "must be \"on\", \"name-only\", \"user-invocable-only\" or \"off\"",
                ),
            }
        }
        shown
    }

    fn text(&mut self, all: &Map<String, Value>, place: &str, key: &str) -> Option<String> {
        let text = self.field(all, place, key, "a text", Value::as_str)?;
        (!text.trim().is_empty()).then(|| text.to_owned())
    }

    fn texts(&mut self, all: &Map<String, Value>, place: &str, key: &str) -> Option<Vec<String>> {
        self.field(all, place, key, "a list of texts", |value| {
            value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
        })
    }

    /// The value of a key, if it is there and of the right kind.
    fn field<'v, T>(
        &mut self,
        all: &'v Map<String, Value>,
        place: &str,
        key: &str,
        expected: &str,
        read: impl FnOnce(&'v Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.said(all, place, key)?;
        let read = read(value);
        if read.is_none() {
            self.wrong(&format!("{place}{key}"), &format!("must be {expected}"));
        }
        read
    }

    /// What is said under a key.
    fn said<'v>(&mut self, all: &'v Map<String, Value>, place: &str, key: &str) -> Option<&'v Value> {
        if let Some(looked_for) = &mut self.looked_for {
            looked_for.insert(format!("{place}{key}"));
        }
        all.get(key).filter(|value| !value.is_null())
    }

    fn wrong(&mut self, place: &str, text: &str) {
        self.tell(Severity::Error, self.line(place), place, text);
    }

    fn warn(&mut self, place: &str, text: &str) {
        self.warn_at(self.line(place), place, text);
    }

    fn warn_at(&mut self, line: Option<u32>, place: &str, text: &str) {
        self.tell(Severity::Warning, line, place, text);
    }

    fn tell(&mut self, severity: Severity, line: Option<u32>, place: &str, text: &str) {
        self.problems.push(Problem {
            severity,
            file: self.origin.file.to_owned(),
            line,
            text: format!("`{place}` {text}"),
        });
    }
}

pub(super) fn layer(source: &Source) -> Layer {
    match source {
        Source::Policy => Layer::Managed,
        Source::User => Layer::User,
        Source::Project => Layer::Project,
        Source::Local => Layer::Local,
        Source::Flag => Layer::CommandLine,
        Source::Plugin { .. } | Source::Host | Source::Skill | Source::Agent => Layer::Session,
    }
}
