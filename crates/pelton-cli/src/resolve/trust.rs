//! Whether a directory is trusted: what it covers, where the answer is kept, and what it would change.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use pelton::settings::{Approval, Power, Settings, approval, fingerprint, value_of, with_value};
use pelton::{MemorySources, OutsideImport, SkillSources};
use pelton_tui::clean::revealed_line;
use serde_json::{Map, Value, json};

use super::env::Env;
use super::layers::{Files, SETTINGS_BYTES_MAX, text_of};
use super::mcp::project_files;
use super::plugins::powers_in;
use super::repository::Repository;
use super::sessions::config_dir;
use super::skills::powers_of_agents;
use crate::written::{Seen, change};

/// The most bytes of the file that says, among much else, which directories are trusted.
pub(crate) const STATE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How many older versions of that file are kept.
const BACKUPS_MAX: usize = 5;
const ACCEPTED: &str = "hasTrustDialogAccepted";
/// By the names of servers, what of them was approved.
const APPROVED_SERVERS: &str = "approvedMcpServers";
/// The marks of what in settings was seen when the directory was trusted.
const APPROVED_SETTINGS: &str = "approvedSettings";

/// Instruction files of the directory may import others from outside of it.
pub(super) const IMPORTS_APPROVED: &str = "hasClaudeMdExternalIncludesApproved";
/// That was asked once.
const IMPORTS_SHOWN: &str = "hasClaudeMdExternalIncludesWarningShown";

/// Somebody has trusted the home. That holds for one session and is not kept.
static HOME_FOR_NOW: OnceLock<()> = OnceLock::new();

/// Trust in a directory: in all of its repository, or in itself if there is none around.
#[derive(Debug)]
pub(crate) struct Trust {
    dir: PathBuf,
    root: PathBuf,
    is_home: bool,
    given: bool,
}

/// What was said about imports from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Imports {
    Approved,
    Refused,
    /// Nothing, as far as anybody remembers.
    Forgotten,
}

impl Trust {
    /// What was said about a directory. No program is run to find out.
    pub(crate) fn in_dir(env: &Env, dir: &Path) -> Self {
        let root = Repository::around(dir).map_or_else(|| dir.to_owned(), |repository| repository.root);
        let is_home = env.path("HOME").is_some_and(|home| real(&home) == real(&root));
        // Everything is below the home: who trusts it trusts too much to be remembered.
        let given = match is_home {
            true => HOME_FOR_NOW.get().is_some(),
            false => has_said_yes(env, &root, ACCEPTED),
        };
        Self { dir: dir.to_owned(), root, is_home, given }
    }

    /// Takes a yes as long as this process runs, if it is about the home. Whether it was.
    pub(crate) fn hold_for_now(&self) -> bool {
        if self.is_home {
            HOME_FOR_NOW.get_or_init(|| ());
        }
        self.is_home
    }

    /// What it covers.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn is_given(&self) -> bool {
        self.given
    }

    /// The servers that the directory brings, and whether each was approved as it is now.
    pub(crate) fn servers(&self, env: &Env) -> Vec<(String, Approval)> {
        let approved = state_of(env, &self.root)[APPROVED_SERVERS].take();
        let servers = self.brought_servers().into_iter();
        let is_seen = self.is_home && self.given;
        let judged = |(name, definition): (String, Value)| {
            if is_seen {
                return (name, Approval::Given);
            }
            let judged = approval(&definition, approved[&name].as_str());
            (name, judged)
        };
        servers.map(judged).collect()
    }

    /// The same, each in words.
    pub(crate) fn told_servers(&self, env: &Env) -> Vec<(String, Approval)> {
        let brought = self.brought_servers();
        let told = |(name, approval): (String, Approval)| {
            let what = brought.get(&name).map(reached_by).unwrap_or_default();
            let told = match approval {
                Approval::Changed => format!("server {name}, which has changed since it was approved{what}"),
                _ => format!("server {name}{what}"),
            };
            (told, approval)
        };
        self.servers(env).into_iter().map(told).collect()
    }

    /// The marks of entries of settings that were seen when the directory was trusted.
    pub(super) fn approved_settings(&self, env: &Env) -> BTreeSet<String> {
        if self.is_home && self.given {
            return powers(env, &self.dir).into_iter().map(|power| power.mark).collect();
        }
        let seen = state_of(env, &self.root)[APPROVED_SETTINGS].take();
        let marks = seen.as_array().into_iter().flatten().filter_map(Value::as_str);
        marks.map(str::to_owned).collect()
    }

    /// What the directory's settings grant or run that nobody has seen who trusts it.
    pub(crate) fn new_settings(&self, env: &Env) -> Vec<Power> {
        let approved = self.approved_settings(env);
        let mut powers = powers(env, &self.dir);
        powers.retain(|power| !approved.contains(&power.mark));
        powers
    }

    /// What is remembered of the settings that somebody saw. What was seen in other directories of the same repository
    /// stays seen.
    fn shown_settings(&self, env: &Env, trusted: bool) -> Value {
        if !trusted {
            return Value::Array(Vec::new());
        }
        let mut marks = self.approved_settings(env);
        marks.extend(powers(env, &self.dir).into_iter().map(|power| power.mark));
        marks.into_iter().collect()
    }

    /// What its instruction files import from outside of it, unless that was approved. About the home nothing is remembered.
    pub(crate) fn imports(&self, env: &Env) -> Vec<OutsideImport> {
        if self.is_home || has_said_yes(env, &self.root, IMPORTS_APPROVED) {
            return Vec::new();
        }
        let mut memory = MemorySources::project();
        memory.not_of_projects = config_dir(env).into_iter().collect();
        memory.imports_from_outside(&self.dir, env.path("HOME").as_deref())
    }

    /// The same where nobody was asked yet: whoever said no once is not asked at every start.
    pub(crate) fn new_imports(&self, env: &Env) -> Vec<OutsideImport> {
        match has_said_yes(env, &self.root, IMPORTS_SHOWN) {
            true => Vec::new(),
            false => self.imports(env),
        }
    }

    /// The servers that files name here and above, as far as the trust goes. Of several of one name the nearest counts.
    fn brought_servers(&self) -> Map<String, Value> {
        let mut all = Map::new();
        for file in project_files(&self.dir) {
            let text = text_of(&file, STATE_BYTES_MAX).ok().flatten();
            let mut brought: Value =
                text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
            if let Value::Object(servers) = brought["mcpServers"].take() {
                for (name, definition) in servers {
                    all.entry(name).or_insert(definition);
                }
            }
        }
        all
    }

    /// What is remembered of the servers that somebody saw. What was seen in other directories of the same repository stays seen.
    fn shown_servers(&self, env: &Env, trusted: bool) -> Value {
        if !trusted {
            return Value::Object(Map::new());
        }
        let mut shown = match state_of(env, &self.root)[APPROVED_SERVERS].take() {
            Value::Object(shown) => shown,
            _ => Map::new(),
        };
        let brought = self.brought_servers().into_iter();
        shown.extend(brought.map(|(name, definition)| (name, Value::from(fingerprint(&definition)))));
        Value::Object(shown)
    }

    /// Remembers the answer. About the home it is never remembered.
    pub(crate) fn say(&self, env: &Env, trusted: bool) -> Result<(), String> {
        if self.is_home && trusted {
            return Err("the home directory is not trusted for good: work in a directory below it".to_owned());
        }
        self.remember(env, || {
            vec![
                (ACCEPTED, trusted.into()),
                (APPROVED_SERVERS, self.shown_servers(env, trusted)),
                (APPROVED_SETTINGS, self.shown_settings(env, trusted)),
            ]
        })
    }

    /// Forgets what was said about the servers that the directory brings: that they were seen, and what the user's settings for the project
    /// say of them.
    pub(crate) fn forget_servers(&self, env: &Env) -> Result<(), String> {
        self.remember(env, || vec![(APPROVED_SERVERS, Value::Object(Map::new()))])?;
        let local = Files::around(env, &self.dir).local;
        if !local.exists() {
            return Ok(());
        }
        change(&local, SETTINGS_BYTES_MAX, Seen::ByOwner, |text| {
            let said = value_of(text).map_err(|error| error.to_string())?;
            let mut new = None;
            for (key, nothing) in [
                ("enabledMcpjsonServers", json!([])),
                ("disabledMcpjsonServers", json!([])),
                ("enableAllProjectMcpServers", json!(false)),
            ] {
                if said.get(key).is_some() {
                    let before = new.as_deref().unwrap_or(text);
                    new = with_value(before, &[key], &nothing).map_err(|error| error.to_string())?.or(new);
                }
            }
            Ok(new)
        })
    }

    /// Remembers what was said about imports from outside.
    pub(crate) fn say_of_imports(&self, env: &Env, said: Imports) -> Result<(), String> {
        let keys = || {
            let (approved, shown) = (said == Imports::Approved, said != Imports::Forgotten);
            vec![(IMPORTS_APPROVED, approved.into()), (IMPORTS_SHOWN, shown.into())]
        };
        self.remember(env, keys)
    }

    fn remember(&self, env: &Env, said: impl FnOnce() -> Vec<(&'static str, Value)>) -> Result<(), String> {
        let root = self.root.to_str().ok_or("its path is no text")?;
        let file = state_file(env).ok_or("set CLAUDE_CONFIG_DIR or HOME")?;
        change(&file, STATE_BYTES_MAX, Seen::ByOwner, |text| {
            let mut new = None;
            for (key, value) in said() {
                let before = new.as_deref().unwrap_or(text);
                let after = with_value(before, &["projects", root, key], &value);
                new = after.map_err(|error| error.to_string())?.or(new);
            }
            if new.is_some() && !text.is_empty() {
                back_up(env, text)?;
            }
            Ok(new)
        })
    }
}

/// What a directory would add to a session once it is trusted, in words.
pub(crate) fn would_add(settings: &Settings, env: &Env, dir: &Path) -> Vec<String> {
    let mut adds: Vec<String> =
        settings.rules.allow.iter().map(|rule| format!("allow rule {rule}")).collect();
    adds.extend(settings.additional_dirs.iter().map(|dir| format!("directory {dir}")));
    adds.extend(settings.mode.map(|mode| format!("permission mode {}", mode.name())));
    adds.extend(settings.api_key_helper.iter().map(|line| format!("key helper: {line}")));
    adds.extend(settings.env.keys().map(|name| format!("variable {name}")));
    let hooks = settings.hooks.commands();
    adds.extend(hooks.map(|(event, what)| format!("hook at {event}: {what}")));
    // Whatever else grants or runs something, as it is written.
    const TOLD: &[&str] = &["permissions.", "apiKeyHelper", "env", "hooks"];
    let others =
        powers(env, dir).into_iter().filter(|power| !TOLD.iter().any(|told| power.place.starts_with(told)));
    adds.extend(others.map(|power| power.told()));
    adds.extend(Trust::in_dir(env, dir).told_servers(env).into_iter().map(|(told, _)| told));
    adds
}

/// What instruction files import from outside, in words.
pub(crate) fn told_imports(imports: &[OutsideImport]) -> String {
    let told = |import: &OutsideImport| {
        let (file, by) = (import.file.display(), import.imported_by.display());
        format!("  {}\n", revealed_line(&format!("instructions of {file}, imported by {by}")))
    };
    imports.iter().map(told).collect()
}

/// What would run, or be asked, for a server, with what it is given that may say what runs.
fn reached_by(definition: &Value) -> String {
    let words = |value: &Value| value.as_str().map(str::to_owned);
    let mut told = match (definition["command"].as_str(), definition["url"].as_str()) {
        (Some(command), _) => {
            let args = definition["args"].as_array().into_iter().flatten().filter_map(words);
            let line: Vec<String> = [command.to_owned()].into_iter().chain(args).collect();
            format!(": {}", line.join(" "))
        }
        (None, Some(url)) => format!(": {url}"),
        (None, None) => String::new(),
    };
    for (field, what) in [("env", "variables"), ("headers", "headers"), ("headersHelper", "headers by")] {
        match &definition[field] {
            Value::Null => {}
            Value::Object(none) if none.is_empty() => {}
            Value::String(line) => told.push_str(&format!(", {what}: {line}")),
            some => told.push_str(&format!(", {what}: {some}")),
        }
    }
    told
}

/// What a directory's settings, agents, skills and plugins grant or run.
fn powers(env: &Env, dir: &Path) -> Vec<Power> {
    let mut powers = Files::around(env, dir).brought_powers();
    powers.extend(powers_of_agents(dir));
    powers.extend(SkillSources::powers_of_project(dir));
    powers.extend(powers_in(env, dir));
    powers
}

/// Whether the user has once said yes to a question about this directory.
pub(super) fn has_said_yes(env: &Env, root: &Path, question: &str) -> bool {
    state_of(env, root)[question] == true
}

/// What is remembered about a directory.
fn state_of(env: &Env, root: &Path) -> Value {
    let Some(Ok(Some(text))) = state_file(env).map(|file| text_of(&file, STATE_BYTES_MAX)) else {
        return Value::Null;
    };
    let mut state: Value = serde_json::from_str(&text).unwrap_or_default();
    let project = root.to_str().and_then(|root| state.get_mut("projects")?.get_mut(root));
    project.map_or(Value::Null, Value::take)
}

/// The file that programs of this kind keep their state in.
pub(crate) fn state_file(env: &Env) -> Option<PathBuf> {
    env.path("CLAUDE_CONFIG_DIR")
        .or_else(|| env.path("HOME"))
        .map(|folder| real(&folder).join(".claude.json"))
}

/// Keeps the text before a change, and no more than a few of them.
pub(crate) fn back_up(env: &Env, text: &str) -> Result<(), String> {
    let Some(dir) = config_dir(env).map(|dir| dir.join("backups")) else { return Ok(()) };
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let file = dir.join(format!(".claude.json.backup.{now_ms}"));
    change(&file, STATE_BYTES_MAX, Seen::ByOwner, |_| Ok(Some(text.to_owned())))?;
    let mut backups: Vec<PathBuf> = fs::read_dir(&dir)
        .map_err(|error| error.to_string())?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".claude.json.backup."))
        })
        .collect();
    backups.sort();
    for old in backups.iter().rev().skip(BACKUPS_MAX) {
        // One too many does no harm.
        let _ = fs::remove_file(old);
    }
    Ok(())
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
