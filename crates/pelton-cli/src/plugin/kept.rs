//! The lists of marketplaces that are known and plugins that are installed, and the settings that switch plugins on.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use pelton::plugins::Plugin;
use pelton::settings::{PluginSettings, value_of, with_value};
use serde_json::{Map, Value, json};

use crate::args::{RunArgs, SettingsScope};
use crate::fail::Fail;
use crate::resolve::{self, Env, INSTALLED, KNOWN, LIST_BYTES_MAX, Lists, Place, SettingsFileNames, text_of};
use crate::written::{Seen, change};

/// The most bytes of a settings file that is changed.
const SETTINGS_BYTES_MAX: u64 = 2 * 1024 * 1024;
/// The form of the list of what is installed.
const INSTALLED_VERSION: u64 = 2;
const ENABLED: &str = "enabledPlugins";
const MARKETPLACES: &str = "extraKnownMarketplaces";
const SCOPES: [SettingsScope; 3] = [SettingsScope::User, SettingsScope::Project, SettingsScope::Local];

/// What is known of plugins here.
pub(super) struct Shelf {
    /// The user's folder of plugins.
    home: PathBuf,
    pub cwd: PathBuf,
    pub settings: PluginSettings,
    files: SettingsFileNames,
}

/// A plugin that is installed, for one scope.
pub(super) struct Installed {
    pub id: String,
    pub scope: SettingsScope,
    pub path: PathBuf,
    pub version: Option<String>,
    pub project: Option<String>,
}

impl Shelf {
    pub fn here(args: &RunArgs) -> Result<Self, Fail> {
        let (env, cwd) = (Env::of_process(), resolve::working_directory()?);
        let home = resolve::config_dir(&env).ok_or_else(|| Fail::new("set CLAUDE_CONFIG_DIR or HOME"))?;
        // Where the user keeps the directory is their own business.
        let home = home.canonicalize().unwrap_or(home).join("plugins");
        let (settings, files) = resolve::plugin_settings(args, &env, &cwd)?;
        Ok(Self { home, cwd, settings, files })
    }

    pub fn lists(&self) -> Lists<'_> {
        Lists { home: Some(&self.home), settings: &self.settings, cwd: &self.cwd }
    }

    /// What a place brings.
    pub fn read(&self, place: &Place, marketplace: &str) -> Result<Plugin, String> {
        let read = Plugin::read_listed(&place.path, marketplace, &self.home.join("data"), &place.entry);
        read.map_err(|problem| problem.message)
    }

    /// Which plugin of which marketplace is meant by a name.
    pub fn meant(&self, said: &str) -> Result<(String, String), String> {
        if let Some((name, marketplace)) = said.split_once('@') {
            return Ok((name.to_owned(), marketplace.to_owned()));
        }
        let lists = self.lists();
        let has_it = |marketplace: &String| match lists.list_of(marketplace) {
            Ok((_, list)) => list["plugins"].as_array().into_iter().flatten().any(|one| one["name"] == said),
            Err(_) => false,
        };
        let from: Vec<String> = lists.marketplaces().into_iter().filter(has_it).collect();
        match &from[..] {
            [] => Err(format!(
                "no marketplace that is known has the plugin '{said}': see 'pelton plugin list --available'"
            )),
            [one] => Ok((said.to_owned(), one.clone())),
            more => Err(format!(
                "several marketplaces have the plugin '{said}': say {said}@{}",
                more.join(&format!(" or {said}@"))
            )),
        }
    }

    /// The whole name of a plugin that is installed, named in settings, or offered.
    pub fn known_id(&self, said: &str) -> Result<String, String> {
        let mut known: Vec<String> = self.installed()?.into_iter().map(|one| one.id).collect();
        known.extend(self.settings.enabled.keys().cloned());
        known.retain(|id| id == said || id.split_once('@').is_some_and(|(name, _)| name == said));
        known.sort();
        known.dedup();
        match &known[..] {
            [one] => Ok(one.clone()),
            [] => {
                let (name, marketplace) = self.meant(said)?;
                self.lists()
                    .offered(&name, &marketplace)
                    .map_err(|why| format!("there is no plugin '{said}': {why}"))?;
                Ok(format!("{name}@{marketplace}"))
            }
            more => Err(format!("several plugins are meant by '{said}': say {}", more.join(" or "))),
        }
    }

    /// Where the copy of a plugin is.
    pub fn copy_of(&self, name: &str, marketplace: &str, version: Option<&str>) -> PathBuf {
        let part = |text: &str| -> String {
            let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
            let text: String = text.chars().map(plain).collect();
            // No part may lead elsewhere.
            if text.trim_matches('.').is_empty() { "unknown".to_owned() } else { text }
        };
        let (marketplace, name) = (part(marketplace), part(name));
        self.home.join("cache").join(marketplace).join(name).join(part(version.unwrap_or("unknown")))
    }

    /// Where a plugin keeps what it wants to keep.
    pub fn data_of(&self, id: &str) -> PathBuf {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        self.home.join("data").join(id.replace(|c: char| !plain(c), "-"))
    }

    /// All that is installed.
    pub fn installed(&self) -> Result<Vec<Installed>, String> {
        let file = self.home.join(INSTALLED);
        let text = text_of(&file, LIST_BYTES_MAX).map_err(|error| format!("{} {error}", file.display()))?;
        let list = parsed(&text.unwrap_or_default()).map_err(|why| format!("{}: {why}", file.display()))?;
        let mut all = Vec::new();
        for (id, entries) in list.get("plugins").and_then(Value::as_object).into_iter().flatten() {
            let entries = entries.as_array().cloned().unwrap_or_else(|| vec![entries.clone()]);
            all.extend(entries.iter().filter_map(|entry| installed_as(id, entry)));
        }
        Ok(all)
    }

    /// Notes that a plugin is installed.
    pub fn note(
        &self,
        id: &str,
        scope: SettingsScope,
        path: &Path,
        version: Option<&str>,
    ) -> Result<(), String> {
        let now = now();
        let mut new = json!({"scope": scope.name(), "installPath": path, "version": version.unwrap_or("unknown"),
            "installedAt": now, "lastUpdated": now});
        if scope != SettingsScope::User {
            new["projectPath"] = json!(resolve::project_root(&self.cwd));
        }
        self.change_installed(|list| {
            let entries = list.entry(id.to_owned()).or_insert_with(|| json!([]));
            if !entries.is_array() {
                *entries = json!([entries.take()]);
            }
            let is_other = |entry: &Value| !self.is_of(entry, scope);
            if let Some(entries) = entries.as_array_mut() {
                entries.retain(is_other);
                entries.push(new.clone());
            }
        })
    }

    /// Forgets that a plugin is installed, and says where its copies were.
    pub fn forget(&self, id: &str, scope: Option<SettingsScope>) -> Result<Vec<PathBuf>, String> {
        let mut gone = Vec::new();
        self.change_installed(|list| {
            let Some(entries) = list.get_mut(id) else { return };
            let all = entries.as_array().cloned().unwrap_or_else(|| vec![entries.clone()]);
            let is_meant = |entry: &Value| scope.is_none_or(|scope| self.is_of(entry, scope));
            let (away, left): (Vec<Value>, Vec<Value>) = all.into_iter().partition(is_meant);
            gone.extend(away.iter().filter_map(|entry| entry["installPath"].as_str().map(PathBuf::from)));
            match left.is_empty() {
                true => drop(list.shift_remove(id)),
                false => *entries = Value::Array(left),
            }
        })?;
        Ok(gone)
    }

    /// Whether an entry is of a scope, seen from here.
    fn is_of(&self, entry: &Value, scope: SettingsScope) -> bool {
        let root = resolve::project_root(&self.cwd);
        let is_here = entry["projectPath"].as_str().is_none_or(|at| root == Path::new(at));
        entry["scope"].as_str().unwrap_or("user") == scope.name() && is_here
    }

    /// Whether a plugin is not installed for anybody.
    pub fn is_gone(&self, id: &str) -> Result<bool, String> {
        Ok(self.installed()?.iter().all(|one| one.id != id))
    }

    /// Takes copies away that nobody has installed any more. Nothing outside of our own folder is touched.
    pub fn drop_copies(&self, copies: &[PathBuf]) -> Result<(), String> {
        let (cache, named) = (self.home.join("cache"), self.installed()?);
        for copy in copies {
            let is_ours = copy.starts_with(&cache)
                && copy != &cache
                && copy.canonicalize().is_ok_and(|real| real.starts_with(&cache));
            if is_ours && named.iter().all(|one| one.path != *copy) {
                fs::remove_dir_all(copy)
                    .map_err(|error| format!("{} cannot be taken away: {error}", copy.display()))?;
                // Folders of names that are empty now; one that is not stays.
                copy.ancestors().skip(1).take(2).for_each(|dir| drop(fs::remove_dir(dir)));
            }
        }
        Ok(())
    }

    /// Copies that no list names.
    pub fn unnamed_copies(&self) -> Result<Vec<PathBuf>, String> {
        let named = self.installed()?;
        let inside = |dir: &Path| -> Vec<PathBuf> {
            let entries = fs::read_dir(dir).into_iter().flatten().flatten();
            entries
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path())
                .collect()
        };
        let names = inside(&self.home.join("cache")).into_iter().flat_map(|marketplace| inside(&marketplace));
        let mut copies: Vec<PathBuf> = names.flat_map(|name| inside(&name)).collect();
        copies.retain(|copy| named.iter().all(|one| one.path != *copy));
        copies.sort();
        Ok(copies)
    }

    /// Makes a marketplace known, or known anew.
    pub fn make_known(&self, name: &str, source: &Value, folder: &Path) -> Result<(), String> {
        let entry = json!({"source": source, "installLocation": folder, "lastUpdated": now()});
        self.change_known(|known| {
            known.insert(name.to_owned(), entry);
        })
    }

    /// Whether it was known.
    pub fn make_unknown(&self, name: &str) -> Result<bool, String> {
        let mut was_known = false;
        self.change_known(|known| was_known = known.shift_remove(name).is_some())?;
        Ok(was_known)
    }

    /// Notes that somebody looked at what it lists.
    pub fn seen_now(&self, name: &str) -> Result<(), String> {
        self.change_known(|known| {
            if let Some(entry) = known.get_mut(name).and_then(Value::as_object_mut) {
                entry.insert("lastUpdated".to_owned(), json!(now()));
            }
        })
    }

    /// Switches a plugin on or off, or forgets what was said.
    pub fn switch(&self, id: &str, scope: SettingsScope, is_on: Option<bool>) -> Result<PathBuf, String> {
        self.set(scope, ENABLED, id, is_on.map(Value::Bool))
    }

    /// Names a marketplace in settings.
    pub fn declare(&self, name: &str, source: &Value, scope: SettingsScope) -> Result<PathBuf, String> {
        self.set(scope, MARKETPLACES, name, Some(json!({ "source": source })))
    }

    /// Takes a marketplace out of all settings that name it.
    pub fn undeclare(&self, name: &str) -> Result<Vec<(SettingsScope, PathBuf)>, String> {
        let mut changed = Vec::new();
        for scope in SCOPES {
            let (file, _) = self.file(scope)?;
            let text =
                text_of(&file, SETTINGS_BYTES_MAX).map_err(|error| format!("{} {error}", file.display()))?;
            let Some(text) = text else { continue };
            if value_of(&text).is_ok_and(|all| all[MARKETPLACES].get(name).is_some()) {
                changed.push((scope, self.set(scope, MARKETPLACES, name, None)?));
            }
        }
        Ok(changed)
    }

    fn set(
        &self,
        scope: SettingsScope,
        key: &str,
        name: &str,
        value: Option<Value>,
    ) -> Result<PathBuf, String> {
        let (file, seen) = self.file(scope)?;
        if value.is_none() && !file.exists() {
            return Ok(file);
        }
        change(&file, SETTINGS_BYTES_MAX, seen, |text| {
            let new = match value {
                Some(value) => with_value(text, &[key, name], &value),
                None => {
                    let all = value_of(text).map_err(|error| error.to_string())?;
                    let Some(entries) = all[key].as_object() else { return Ok(None) };
                    let mut entries = entries.clone();
                    if entries.shift_remove(name).is_none() {
                        return Ok(None);
                    }
                    with_value(text, &[key], &Value::Object(entries))
                }
            };
            new.map_err(|error| error.to_string())
        })?;
        Ok(file)
    }

    fn file(&self, scope: SettingsScope) -> Result<(PathBuf, Seen), String> {
        Ok(match scope {
            SettingsScope::User => {
                let file = self.files.user.as_ref().ok_or("set CLAUDE_CONFIG_DIR or HOME")?;
                let dir = file.parent().and_then(|dir| dir.canonicalize().ok());
                (dir.map_or_else(|| file.clone(), |dir| dir.join("settings.json")), Seen::ByOwner)
            }
            SettingsScope::Project => (self.files.project.clone(), Seen::ByMask),
            SettingsScope::Local => (self.files.local.clone(), Seen::ByOwner),
        })
    }

    fn change_known(&self, edit: impl FnOnce(&mut Map<String, Value>)) -> Result<(), String> {
        change(&self.home.join(KNOWN), LIST_BYTES_MAX, Seen::ByOwner, |text| {
            let mut known = parsed(text)?;
            edit(&mut known);
            Ok(Some(format!("{:#}\n", Value::Object(known))))
        })
    }

    fn change_installed(&self, edit: impl FnOnce(&mut Map<String, Value>)) -> Result<(), String> {
        change(&self.home.join(INSTALLED), LIST_BYTES_MAX, Seen::ByOwner, |text| {
            let mut list = parsed(text)?;
            list.insert("version".to_owned(), json!(INSTALLED_VERSION));
            let plugins = list.entry("plugins").or_insert_with(|| json!({}));
            edit(plugins.as_object_mut().ok_or("`plugins` is no object, so it is left as it is")?);
            Ok(Some(format!("{:#}\n", Value::Object(list))))
        })
    }
}

fn installed_as(id: &str, entry: &Value) -> Option<Installed> {
    let scope = entry["scope"].as_str().unwrap_or("user");
    Some(Installed {
        id: id.to_owned(),
        scope: SCOPES.into_iter().find(|known| known.name() == scope)?,
        path: entry["installPath"].as_str().map(PathBuf::from)?,
        version: entry["version"].as_str().filter(|version| *version != "unknown").map(str::to_owned),
        project: entry["projectPath"].as_str().map(str::to_owned),
    })
}

fn parsed(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(all)) => Ok(all),
        Ok(_) => Err("is no object, so it is left as it is".to_owned()),
        Err(error) => Err(format!("is not JSON, so it is left as it is: {error}")),
    }
}

fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
