//! From the text of a settings file to settings, with the place of everything that is wrong.

mod sandbox; // the object `sandbox`

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use pelton_model::Effort;
use pelton_model::catalogue::{Prices, Rates};
use serde_json::{Map, Value};

use super::{LoopSettings, RetrySettings, Settings, relaxed};
use crate::hooks::{Severity, Source};
use crate::permission::{Mode, Rule};
use crate::tools::Siblings;

/// A file of settings, before it is read.
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
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Whether something was left out for it.
    pub severity: Severity,
    /// The file.
    pub file: String,
    /// Which key, and what was expected.
    pub text: String,
}

/// A file that cannot be read at all.
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
pub fn read(text: &str, origin: Origin<'_>) -> Result<(Settings, Vec<Problem>), BrokenSettings> {
    let broken = |text: String| BrokenSettings { file: origin.file.to_owned(), text };
    let all: Value = match serde_json::from_str(&relaxed::strict(text)) {
        Ok(all) => all,
        Err(_) if text.trim().is_empty() => Value::Object(Map::new()),
        Err(error) => return Err(broken(error.to_string())),
    };
    let Value::Object(all) = all else { return Err(broken("must be a JSON object".to_owned())) };
    let mut reader = Reader { origin, problems: Vec::new() };
    let settings = reader.settings(&all);
    Ok((settings, reader.problems))
}

struct Reader<'a> {
    origin: Origin<'a>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn settings(&mut self, all: &Map<String, Value>) -> Settings {
        let mut settings = Settings {
            model: self.text(all, "", "model"),
            fallback_models: self.models(all),
            effort: self.effort(all),
            fast_mode: self.field(all, "", "fastMode", "true or false", Value::as_bool),
            api_key_helper: self.text(all, "", "apiKeyHelper"),
            env: self.env(all),
            disable_all_hooks: self.field(all, "", "disableAllHooks", "true or false", Value::as_bool),
            prices: self.prices(all),
            retry: self.retry(all),
            turns: self.turns(all),
            sandbox: self.sandbox(all),
            ..Settings::default()
        };
        self.permissions(all, &mut settings);
        self.file_history(all, &mut settings);
        if let Some(hooks) = all.get("hooks") {
            for problem in settings.hooks.add_settings(hooks, self.origin.source) {
                self.problems.push(Problem {
                    severity: problem.severity,
                    file: self.origin.file.to_owned(),
                    text: problem.to_string(),
                });
            }
        }
        settings
    }

    fn file_history(&mut self, all: &Map<String, Value>, settings: &mut Settings) {
        settings.file_checkpointing =
            self.field(all, "", "fileCheckpointingEnabled", "true or false", Value::as_bool);
        let Some(said) = all.get("fileHistory").filter(|said| !said.is_null()) else { return };
        let Some(said) = said.as_object() else { return self.wrong("fileHistory", "must be an object") };
        let mut bytes = |key| self.field(said, "fileHistory.", key, "a number of bytes", Value::as_u64);
        settings.file_history_file_bytes_max = bytes("maxFileBytes");
        settings.file_history_total_bytes_max = bytes("maxTotalBytes");
    }

    fn permissions(&mut self, all: &Map<String, Value>, settings: &mut Settings) {
        let Some(said) = all.get("permissions").filter(|said| !said.is_null()) else { return };
        let Some(said) = said.as_object() else {
            settings.restrictions_unknown = true;
            return self.wrong("permissions", "must be an object");
        };
        settings.rules.allow = self.rules(said, "allow").0;
        for (key, rules) in [("ask", &mut settings.rules.ask), ("deny", &mut settings.rules.deny)] {
            let all_read;
            (*rules, all_read) = self.rules(said, key);
            settings.restrictions_unknown |= !all_read;
        }
        settings.additional_dirs =
            self.texts(said, "permissions.", "additionalDirectories").unwrap_or_default();
        let place = "permissions.defaultMode";
        if let Some(name) = self.text(said, "permissions.", "defaultMode") {
            match mode(&name) {
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

    /// The rules under a key, and whether that is all of them.
    fn rules(&mut self, said: &Map<String, Value>, key: &str) -> (Vec<Rule>, bool) {
        let Some(texts) = self.texts(said, "permissions.", key) else {
            return (Vec::new(), said.get(key).is_none_or(Value::is_null));
        };
        let mut rules = Vec::new();
        for (at, text) in texts.iter().enumerate() {
            match anchored(text, self.origin.anchor).parse() {
                Ok(rule) => rules.push(rule),
                Err(error) => {
                    self.wrong(&format!("permissions.{key}[{at}]"), &format!("is left out: {error}"));
                }
            }
        }
        let all_read = rules.len() == texts.len();
        (rules, all_read)
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
            stop_on_repetition: self.field(&said, place, "stopOnRepetition", choice, Value::as_bool),
        }
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
        let value = all.get(key).filter(|value| !value.is_null())?;
        let read = read(value);
        if read.is_none() {
            self.wrong(&format!("{place}{key}"), &format!("must be {expected}"));
        }
        read
    }

    fn wrong(&mut self, place: &str, text: &str) {
        self.problems.push(Problem {
            severity: Severity::Error,
            file: self.origin.file.to_owned(),
            text: format!("`{place}` {text}"),
        });
    }
}

/// A rule as settings write it: `/x` is anchored where the file says, and only rules of the session itself are
/// anchored where that starts.
fn anchored(rule: &str, anchor: Option<&Path>) -> String {
    let Some(anchor) = anchor.and_then(Path::to_str) else { return rule.to_owned() };
    match rule.trim().split_once("(/") {
        Some((tool @ ("Read" | "Edit"), rest)) if !rest.starts_with('/') => {
            format!("{tool}(/{}/{rest}", anchor.trim_end_matches('/'))
        }
        _ => rule.to_owned(),
    }
}

fn mode(name: &str) -> Option<Mode> {
    let modes = [Mode::Default, Mode::AcceptEdits, Mode::Plan, Mode::DontAsk, Mode::BypassPermissions];
    modes.into_iter().find(|mode| mode.name() == name || *mode == Mode::Default && name == "manual")
}
