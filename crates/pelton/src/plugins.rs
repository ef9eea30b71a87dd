//! Plugins: directories that bring skills, commands, agents, hooks and servers, under a name of their own. [`Plugin::read`]
//! looks at what a directory brings; [`Options::add_plugin`](crate::Options::add_plugin) puts it into a session.

mod listed; // what a marketplace says of it
mod user_config; // what it asks its user for

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::context::OutputStyle;
use crate::hooks::{Source, filled_in};
use crate::limits::PLUGIN_FILE_BYTES_MAX;
use crate::settings::{Power, fingerprint};
use crate::skills::{agents_in, names_of_plugin, powers_of_plugin};
use crate::tools::AgentDefinition;
use user_config::Wanted;

pub(crate) use user_config::option_variable;

/// What a plugin says about itself.
const MANIFEST: &str = ".claude-plugin/plugin.json";
/// The most characters of a plugin's name.
const NAME_CHARS_MAX: usize = 64;

/// A plugin, as its directory describes it.
///
/// ```
/// let dir = tempfile::tempdir()?;
/// let root = dir.path().join("review");
/// std::fs::create_dir_all(root.join("commands"))?;
/// std::fs::write(root.join("commands/look.md"), "Look at $ARGUMENTS.")?;
/// let plugin = pelton::plugins::Plugin::read(&root, "inline", &dir.path().join("data")).unwrap();
/// assert_eq!((plugin.name.as_str(), plugin.id().as_str()), ("review", "review@inline"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Plugin {
    /// Its name: what it brings is called `name:…`.
    pub name: String,
    /// Where it comes from.
    pub marketplace: String,
    /// Its version, as it says itself.
    pub version: Option<String>,
    /// Where it is.
    pub root: PathBuf,
    /// Where it may keep what it wants to keep. Nothing is made there.
    pub data: PathBuf,
    /// It came with the project, so of what its skills allow themselves no more counts than of the project's own
    /// ([`SkillSources::project_powers`](crate::SkillSources::project_powers)).
    pub is_of_project: bool,
    /// Where it lay when somebody looked at what it runs: in that project, or else by its whole path. The same words run something
    /// else where it lies elsewhere, so this is part of what is seen.
    pub seen_at: Option<PathBuf>,
    /// What it names as servers of tools: objects of names and entries, nothing in them filled in.
    pub servers: Vec<Map<String, Value>>,
    /// What it should have brought and could not.
    pub problems: Vec<PluginProblem>,
    /// Directories of skills, or of one skill each.
    pub(crate) skills: Vec<PathBuf>,
    /// Directories of commands, or single files.
    pub(crate) commands: Vec<PathBuf>,
    agents: Vec<PathBuf>,
    /// The directory of programs that commands find by their names.
    programs: Option<PathBuf>,
    /// Directories of ways to answer, or single files.
    styles: Vec<PathBuf>,
    /// The agent a session works as that uses it.
    agent: Option<String>,
    /// What it asks its user for, and what it was told.
    wanted: BTreeMap<String, Wanted>,
    pub(crate) options: BTreeMap<String, String>,
    /// What it would like to have called, in the form of the settings' `hooks`.
    pub(crate) hooks: Vec<Value>,
}

/// Something about a plugin that is not as it should be.
///
/// ```
/// use std::path::Path;
///
/// use pelton::plugins::Plugin;
///
/// let missing = Plugin::read(Path::new("/no/such/plugin"), "inline", Path::new("/no/such/data"));
/// assert!(missing.is_err_and(|problem| problem.kind == "path-not-found"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PluginProblem {
    /// What kind of trouble, in the words of the protocol.
    pub kind: &'static str,
    /// What is wrong, and where.
    pub message: String,
}

/// A plugin that could not be used, or not whole.
///
/// ```
/// use pelton::plugins::{PluginError, PluginProblem};
///
/// // How a front end tells of a plugin that it could not find itself; others are in `Init::plugin_errors`.
/// let problem = PluginProblem::new("path-not-found", "/opt/review cannot be read");
/// let error = PluginError::unusable("review@team", problem, Some("/opt/review".into()));
/// assert_eq!(format!("{}: {}", error.plugin, error.problem.message), "review@team: /opt/review cannot be read");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PluginError {
    /// Its `name@marketplace`, or what it was asked for by.
    pub plugin: String,
    /// What is wrong.
    pub problem: PluginProblem,
    /// Where it was looked for, if nothing of it is used.
    pub path: Option<PathBuf>,
}

impl PluginError {
    /// One of which nothing is used.
    pub fn unusable(plugin: impl Into<String>, problem: PluginProblem, path: Option<PathBuf>) -> Self {
        Self { plugin: plugin.into(), problem, path }
    }
}

impl PluginProblem {
    /// A problem of a kind that clients know, such as `path-not-found`.
    pub fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    fn manifest(message: impl Into<String>) -> Self {
        Self::new("manifest-validation-error", message)
    }
}

impl Plugin {
    /// Reads what a directory brings. `data_home` is where plugins keep what they want to keep. Blocks.
    pub fn read(root: &Path, marketplace: &str, data_home: &Path) -> Result<Self, PluginProblem> {
        Self::read_listed(root, marketplace, data_home, &Map::new())
    }

    /// The same for one that a marketplace lists: its entry there names it if it does not do so itself, and says what it brings
    /// besides, or alone (`"strict": false`). Blocks.
    ///
    /// ```
    /// let dir = tempfile::tempdir()?;
    /// let entry = serde_json::json!({"name": "papers", "source": "./", "strict": false, "skills": ["./pdf"]});
    /// std::fs::create_dir_all(dir.path().join("pdf"))?;
    /// let entry = entry.as_object().unwrap();
    /// let plugin = pelton::plugins::Plugin::read_listed(dir.path(), "shop", dir.path(), entry).unwrap();
    /// assert_eq!(plugin.id(), "papers@shop");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn read_listed(
        root: &Path,
        marketplace: &str,
        data_home: &Path,
        entry: &Map<String, Value>,
    ) -> Result<Self, PluginProblem> {
        let missing = |error| {
            PluginProblem::new("path-not-found", format!("{} cannot be read: {error}", root.display()))
        };
        let root = root.canonicalize().map_err(missing)?;
        if !root.is_dir() {
            return Err(PluginProblem::new("path-not-found", format!("{} is no directory", root.display())));
        }
        let manifest = match json_in(&root.join(MANIFEST)) {
            Ok(None) => Map::new(),
            Ok(Some(Value::Object(manifest))) => manifest,
            Ok(Some(_)) => return Err(PluginProblem::manifest(format!("{MANIFEST} is no object"))),
            Err(error) => return Err(PluginProblem::manifest(format!("{MANIFEST} {error}"))),
        };
        let (manifest, is_whole) = listed::with_entry(manifest, entry)?;
        let name = match text(&manifest, "name")? {
            Some(name) => name,
            None => root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        };
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || !name.chars().all(plain) {
            let message =
                format!("'{name}' is no name: letters, digits, `-`, `_` and `.`, at most {NAME_CHARS_MAX}");
            return Err(PluginProblem::manifest(message));
        }
        let mut plugin = Self {
            version: text(&manifest, "version")?,
            data: data_home.join(format!("{name}-{marketplace}").replace(|c: char| !plain(c), "-")),
            marketplace: marketplace.to_owned(),
            name,
            root,
            is_of_project: false,
            seen_at: None,
            servers: Vec::new(),
            problems: Vec::new(),
            skills: Vec::new(),
            commands: Vec::new(),
            agents: Vec::new(),
            programs: None,
            styles: Vec::new(),
            agent: None,
            wanted: user_config::wanted(&manifest)?,
            options: BTreeMap::new(),
            hooks: Vec::new(),
        };
        plugin.take_files(&manifest, is_whole)?;
        plugin.take_hooks(&manifest)?;
        plugin.take_servers(&manifest)?;
        plugin.take_settings();
        Ok(plugin)
    }

    /// Whose its hooks are.
    pub(crate) fn as_source(&self) -> Source {
        Source::Plugin {
            root: self.root.clone(),
            data: self.data.clone(),
            options: Arc::new(self.options.clone()),
        }
    }

    /// `name@marketplace`.
    pub fn id(&self) -> String {
        format!("{}@{}", self.name, self.marketplace)
    }

    /// The directory of programs that commands find by their names, if it has one.
    pub fn programs(&self) -> Option<PathBuf> {
        self.programs.clone()
    }

    /// Whether it brings something that runs by itself.
    pub fn has_hooks(&self) -> bool {
        !self.hooks.is_empty()
    }

    /// The moments its hooks are called at.
    ///
    /// ```
    /// let dir = tempfile::tempdir()?;
    /// std::fs::create_dir(dir.path().join("hooks"))?;
    /// std::fs::write(dir.path().join("hooks/hooks.json"), r#"{"hooks": {"Stop": []}}"#)?;
    /// let entry = serde_json::json!({"name": "kit"});
    /// let entry = entry.as_object().unwrap();
    /// let plugin = pelton::plugins::Plugin::read_listed(dir.path(), "shop", dir.path(), entry).unwrap();
    /// assert_eq!(plugin.hook_events(), ["Stop"]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn hook_events(&self) -> Vec<String> {
        let mut events: Vec<String> =
            self.hooks.iter().filter_map(Value::as_object).flat_map(|hooks| hooks.keys().cloned()).collect();
        events.sort();
        events.dedup();
        events
    }

    /// What its skills and commands are called. Blocks.
    ///
    /// ```
    /// let dir = tempfile::tempdir()?;
    /// std::fs::create_dir_all(dir.path().join("kit/commands"))?;
    /// std::fs::write(dir.path().join("kit/commands/look.md"), "Look at $ARGUMENTS.")?;
    /// let plugin = pelton::plugins::Plugin::read(&dir.path().join("kit"), "shop", dir.path()).unwrap();
    /// assert_eq!(plugin.typed_names(), ["kit:look"]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn typed_names(&self) -> Vec<String> {
        names_of_plugin(&Arc::new(self.clone()))
    }

    /// What of it would run by itself or be allowed unasked: its hooks, its servers, programs that are found before those of the
    /// system, and what its skills and commands allow themselves. Blocks.
    ///
    /// ```
    /// let dir = tempfile::tempdir()?;
    /// std::fs::write(dir.path().join(".mcp.json"), r#"{"mcpServers": {"tickets": {"command": "serve"}}}"#)?;
    /// let entry = serde_json::json!({"name": "kit"});
    /// let entry = entry.as_object().unwrap();
    /// let mut plugin = pelton::plugins::Plugin::read_listed(dir.path(), "shop", dir.path(), entry).unwrap();
    /// assert_eq!(plugin.powers()[0].told(), r#"plugins.kit@shop.mcpServers.tickets: {"command":"serve"}"#);
    /// assert!(plugin.keep_powers(&Default::default()) && plugin.servers[0].is_empty()); // nobody has seen it
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn powers(&self) -> Vec<Power> {
        let mut powers: Vec<Power> = self.hooks.iter().map(|hooks| self.hooks_power(hooks)).collect();
        let servers = self.servers.iter().flatten();
        powers.extend(servers.map(|(name, entry)| self.server_power(name, entry)));
        if !powers.is_empty() {
            // They find it in variables, too, whatever is written about them.
            let defaults = self.defaults().into_iter();
            powers.extend(defaults.map(|(key, value)| self.power(&format!("userConfig.{key}"), value)));
        }
        powers.extend(self.programs_power());
        powers.extend(powers_of_plugin(&Arc::new(self.clone())));
        powers
    }

    /// Leaves of its hooks, servers and programs only those whose marks are among these. Whether there were others.
    ///
    /// See [`powers`](Self::powers).
    pub fn keep_powers(&mut self, seen: &BTreeSet<String>) -> bool {
        let is_seen = |power: &Power| seen.contains(&power.mark);
        let (mut hooks, mut servers) = (std::mem::take(&mut self.hooks), std::mem::take(&mut self.servers));
        let mut is_less = self.programs_power().is_some_and(|power| !is_seen(&power));
        if is_less {
            self.programs = None;
        }
        let mut keep = |power: Power| {
            let is_kept = is_seen(&power);
            is_less |= !is_kept;
            is_kept
        };
        hooks.retain(|hooks| keep(self.hooks_power(hooks)));
        for named in &mut servers {
            named.retain(|name, entry| keep(self.server_power(name, entry)));
        }
        (self.hooks, self.servers) = (hooks, servers);
        is_less
    }

    /// Their names: what is in them is no more part of it than what is in the scripts that hooks name.
    fn programs_power(&self) -> Option<Power> {
        // A directory that cannot be listed may have programs in it all the same.
        let entries = fs::read_dir(self.programs.as_ref()?).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        Some(self.power("bin", &names.into()))
    }

    fn hooks_power(&self, hooks: &Value) -> Power {
        self.power("hooks", hooks)
    }

    fn server_power(&self, name: &str, entry: &Value) -> Power {
        self.power(&format!("mcpServers.{name}"), entry)
    }

    /// What it may do by an entry of its own. Told with what is filled in later; what it fills in by itself, and where it lies, is part of what is
    /// seen, however an entry refers to that.
    pub(crate) fn power(&self, place: &str, value: &Value) -> Power {
        let place = format!("plugins.{}.{place}", self.id());
        let (defaults, options) = (self.defaults(), self.told_options());
        let root = [("CLAUDE_PLUGIN_ROOT", Some(self.root.as_os_str()))];
        let mark = fingerprint(&json!([place, value, defaults, self.seen_at]));
        let told = with_texts(value, &|text| filled_in(text, &root, &options).to_string_lossy().into_owned());
        Power { place, value: told, mark }
    }

    /// Its hooks are not used.
    pub fn forget_hooks(&mut self) {
        self.hooks.clear();
    }

    /// The sub-agents it describes. Blocks.
    pub fn agents(&self) -> Vec<AgentDefinition> {
        let mut agents = agents_in(&self.agents);
        for agent in &mut agents {
            agent.name = format!("{}:{}", self.name, agent.name);
            agent.prompt = self.put_into(&agent.prompt);
            // How much runs without asking is not for whoever wrote a plugin to say. What it starts is said once, for all of it.
            (agent.permission_mode, agent.hooks) = (None, None);
            agent.mcp_servers.clear();
        }
        agents
    }

    /// The agent that a session works as when it uses this plugin and nobody names another.
    pub fn agent(&self) -> Option<String> {
        self.agent.as_ref().map(|agent| match agent.contains(':') {
            true => agent.clone(),
            false => format!("{}:{agent}", self.name),
        })
    }

    /// The ways to answer it describes. Blocks.
    pub fn styles(&self) -> Vec<OutputStyle> {
        let mut styles = OutputStyle::in_dirs(&self.styles);
        styles.iter_mut().for_each(|style| style.name = format!("{}:{}", self.name, style.name));
        styles
    }

    fn take_files(&mut self, manifest: &Map<String, Value>, is_whole: bool) -> Result<(), PluginProblem> {
        let usual = |name: &str| Some(self.root.join(name)).filter(|path| path.exists());
        self.programs = usual("bin").filter(|dir| dir.is_dir());
        // Further skills come beside the usual ones, unless they are all there is; commands and agents elsewhere take the place of the
        // usual.
        if !(is_whole && manifest.contains_key("skills")) {
            self.skills.extend(usual("skills"));
        }
        let (commands, agents, styles) = (usual("commands"), usual("agents"), usual("output-styles"));
        let more = self.paths(manifest, "skills")?.unwrap_or_default();
        self.skills.extend(more);
        self.commands = self.paths(manifest, "commands")?.unwrap_or_else(|| commands.into_iter().collect());
        self.agents = self.paths(manifest, "agents")?.unwrap_or_else(|| agents.into_iter().collect());
        self.styles = self.paths(manifest, "outputStyles")?.unwrap_or_else(|| styles.into_iter().collect());
        if self.skills.is_empty() && self.root.join("SKILL.md").is_file() {
            self.skills.push(self.root.clone());
        }
        Ok(())
    }

    fn take_hooks(&mut self, manifest: &Map<String, Value>) -> Result<(), PluginProblem> {
        let mut files = vec![self.root.join("hooks/hooks.json")];
        for part in parts(manifest, "hooks")? {
            match part {
                Part::File(path) => files.extend(self.inside(&path)),
                Part::Inline(hooks) => self.hooks.push(unwrapped(hooks, "hooks")),
            }
        }
        files.dedup();
        for file in files {
            match json_in(&file) {
                Ok(None) => {}
                Ok(Some(Value::Object(hooks))) => self.hooks.push(unwrapped(hooks, "hooks")),
                Ok(Some(_)) => self.complain("hook-load-failed", &file, "is no object"),
                Err(error) => self.complain("hook-load-failed", &file, &error),
            }
        }
        Ok(())
    }

    fn take_servers(&mut self, manifest: &Map<String, Value>) -> Result<(), PluginProblem> {
        let mut files = vec![self.root.join(".mcp.json")];
        for part in parts(manifest, "mcpServers")? {
            match part {
                Part::File(path) => files.extend(self.inside(&path)),
                Part::Inline(servers) => self.servers.push(servers),
            }
        }
        files.dedup();
        for file in files {
            match json_in(&file) {
                Ok(None) => {}
                Ok(Some(Value::Object(servers))) => match unwrapped(servers, "mcpServers") {
                    Value::Object(servers) => self.servers.push(servers),
                    _ => self.complain("mcp-config-invalid", &file, "has no object `mcpServers`"),
                },
                Ok(Some(_)) => self.complain("mcp-config-invalid", &file, "is no object"),
                Err(error) => self.complain("mcp-config-invalid", &file, &error),
            }
        }
        Ok(())
    }

    /// Of settings a plugin has one word: as whom a session works. Others are not for it to say.
    fn take_settings(&mut self) {
        let file = self.root.join("settings.json");
        match json_in(&file) {
            Ok(None) => {}
            Ok(Some(Value::Object(settings))) => {
                self.agent = settings.get("agent").and_then(Value::as_str).map(str::to_owned);
            }
            Ok(Some(_)) => self.complain("generic-error", &file, "is no object"),
            Err(error) => self.complain("generic-error", &file, &error),
        }
    }

    /// The paths under a key, as far as they lead to something inside; `None` if nothing is said.
    fn paths(
        &mut self,
        manifest: &Map<String, Value>,
        key: &str,
    ) -> Result<Option<Vec<PathBuf>>, PluginProblem> {
        let wrong = || PluginProblem::manifest(format!("`{key}` must be a path or a list of paths"));
        let said: Vec<&str> = match manifest.get(key) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(path)) => vec![path],
            Some(Value::Array(paths)) => {
                paths.iter().map(|path| path.as_str().ok_or_else(wrong)).collect::<Result<_, _>>()?
            }
            Some(_) => return Err(wrong()),
        };
        Ok(Some(said.into_iter().filter_map(|path| self.inside(path)).collect()))
    }

    /// What a path of the manifest leads to, if that is inside.
    fn inside(&mut self, path: &str) -> Option<PathBuf> {
        let real = self.root.join(path).canonicalize().ok();
        let real = real.filter(|real| path.starts_with("./") && real.starts_with(&self.root));
        if real.is_none() {
            let message =
                format!("'{path}' in {MANIFEST} is no path inside: such begin with ./ and lead to something");
            self.problems.push(PluginProblem::new("path-not-found", message));
        }
        real
    }

    fn complain(&mut self, kind: &'static str, file: &Path, why: &str) {
        let message = format!("{} {why}", file.strip_prefix(&self.root).unwrap_or(file).display());
        self.problems.push(PluginProblem { kind, message });
    }
}

/// Something a manifest gives, or says where it is.
enum Part {
    File(String),
    Inline(Map<String, Value>),
}

fn parts(manifest: &Map<String, Value>, key: &str) -> Result<Vec<Part>, PluginProblem> {
    let one = |value: &Value| match value {
        Value::String(path) => Ok(Part::File(path.clone())),
        Value::Object(inline) => Ok(Part::Inline(inline.clone())),
        _ => Err(PluginProblem::manifest(format!("`{key}` must be a path, an object, or a list of them"))),
    };
    match manifest.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(all)) => all.iter().map(one).collect(),
        Some(value) => one(value).map(|part| vec![part]),
    }
}

/// What stands under a key, or the whole where that is how it was written.
fn unwrapped(mut object: Map<String, Value>, key: &str) -> Value {
    object.remove(key).unwrap_or(Value::Object(object))
}

fn text(manifest: &Map<String, Value>, key: &str) -> Result<Option<String>, PluginProblem> {
    match manifest.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(PluginProblem::manifest(format!("`{key}` must be a text"))),
    }
}

/// A value with other texts.
fn with_texts(value: &Value, other: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(other(text)),
        Value::Array(values) => values.iter().map(|value| with_texts(value, other)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), with_texts(value, other)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// A file that may be there.
fn json_in(file: &Path) -> Result<Option<Value>, String> {
    let about = match fs::metadata(file) {
        Ok(about) => about,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot be read: {error}")),
    };
    if !about.is_file() || about.len() > PLUGIN_FILE_BYTES_MAX {
        return Err(format!("is no file of at most {PLUGIN_FILE_BYTES_MAX} bytes"));
    }
    let bytes = fs::read(file).map_err(|error| format!("cannot be read: {error}"))?;
    serde_json::from_slice(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes))
        .map(Some)
        .map_err(|error| format!("is not JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin(files: &[(&str, &str)]) -> Result<Plugin, PluginProblem> {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("outside.json"), "{}").unwrap();
        let root = dir.path().join("kit");
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Plugin::read(&root, "shop", Path::new("/data"))
    }

    #[test]
    fn everything_is_optional_and_found_where_it_usually_is() {
        let kit = plugin(&[
            ("skills/one/SKILL.md", "x"),
            ("commands/look.md", "x"),
            (
                "agents/a.md",
                "---\nname: a\ndescription: b\npermissionMode: bypassPermissions\nmcpServers:\n  - own: {command: x}\nhooks: {Stop: []}\n---\nYou are.",
            ),
            ("hooks/hooks.json", r#"{"description": "x", "hooks": {"Stop": []}}"#),
            (".mcp.json", r#"{"mcpServers": {"s": {"command": "x"}}}"#),
            ("output-styles/terse.md", "---\nname: Terse\n---\nFew words."),
            ("settings.json", r#"{"agent": "a", "model": "opus"}"#),
        ])
        .unwrap();
        assert_eq!((kit.agent().as_deref(), kit.styles()), (Some("kit:a"), Vec::new()), "the files are gone");
        assert_eq!(kit.styles.len(), 1);
        assert_eq!((kit.name.as_str(), kit.id()), ("kit", "kit@shop".to_owned()));
        assert_eq!(kit.data, Path::new("/data/kit-shop"));
        assert_eq!((kit.skills.len(), kit.commands.len(), kit.problems.len()), (1, 1, 0));
        assert_eq!(kit.hooks, [json!({"Stop": []})]);
        assert_eq!(Value::Object(kit.servers[0].clone()), json!({"s": {"command": "x"}}));
    }

    #[test]
    fn a_manifest_names_and_adds_and_takes_the_place_of_what_is_usual() {
        let manifest = json!({"name": "n", "version": "1.2", "unknown": 1, "skills": "./more", "commands": ["./c.md", "./none.md"],
            "hooks": {"Stop": []}, "mcpServers": ["./servers.json", {"inline": {"command": "y"}}]});
        let kit = plugin(&[
            (MANIFEST, &manifest.to_string()),
            ("skills/one/SKILL.md", "x"),
            ("more/two/SKILL.md", "x"),
            ("commands/usual.md", "x"),
            ("c.md", "x"),
            ("servers.json", r#"{"bare": {"command": "x"}}"#),
        ])
        .unwrap();
        assert_eq!((kit.name.as_str(), kit.version.as_deref()), ("n", Some("1.2")));
        assert_eq!((kit.skills.len(), kit.commands.len()), (2, 1));
        assert!(kit.commands[0].ends_with("kit/c.md"));
        assert_eq!((kit.hooks.len(), kit.servers.len()), (1, 2));
        assert_eq!(kit.problems.iter().map(|problem| problem.kind).collect::<Vec<_>>(), ["path-not-found"]);
    }

    #[test]
    fn what_leads_outside_or_is_of_another_kind_is_told() {
        for path in ["../outside.json", "./../outside.json", "/etc/passwd", "hooks.json"] {
            let kit =
                plugin(&[(MANIFEST, &json!({"name": "n", "hooks": path}).to_string()), ("hooks.json", "{}")]);
            let kit = kit.unwrap();
            assert!(kit.hooks.is_empty() && kit.problems.len() == 1, "{path}: {:?}", kit.problems);
        }
        for manifest in [
            json!({"name": 3}),
            json!({"name": "a b"}),
            json!({"name": "a:b"}),
            json!({"name": ""}),
            json!({"name": "n", "skills": 3}),
            json!({"name": "n", "agents": [3]}),
            json!({"name": "n", "hooks": true}),
            json!([]),
        ] {
            let error = plugin(&[(MANIFEST, &manifest.to_string())]).unwrap_err();
            assert_eq!(error.kind, "manifest-validation-error", "{manifest}");
        }
        assert_eq!(plugin(&[(MANIFEST, "{")]).unwrap_err().kind, "manifest-validation-error");
        assert_eq!(plugin(&[]).unwrap_err().kind, "path-not-found");
        let broken = plugin(&[("hooks/hooks.json", "{"), (".mcp.json", "[]")]).unwrap();
        assert_eq!(
            broken.problems.iter().map(|problem| problem.kind).collect::<Vec<_>>(),
            ["hook-load-failed", "mcp-config-invalid"]
        );
    }

    #[test]
    fn what_is_filled_in_and_where_it_lies_is_part_of_what_is_seen() {
        let kit = |default: &str, seen_at: &str| {
            let manifest = json!({"name": "n", "userConfig": {
                "line": {"default": default}, "key": {"sensitive": true}, "port": {"type": "number"}}});
            let servers = json!({"s": {"command": "${CLAUDE_PLUGIN_ROOT}/serve", "args": ["${user_config.line}", "${user_config.key}"]}});
            let mut kit = plugin(&[
                (MANIFEST, &manifest.to_string()),
                (".mcp.json", &servers.to_string()),
                // It needs no placeholder: it finds all of them in its environment.
                ("hooks/hooks.json", r#"{"Stop": [{"hooks": [{"type": "command", "command": "./go"}]}]}"#),
            ])
            .unwrap();
            kit.seen_at = Some(seen_at.into());
            kit
        };
        let marks = |kit: &Plugin| kit.powers().into_iter().map(|power| power.mark).collect::<BTreeSet<_>>();
        let seen = marks(&kit("true", "kit"));
        let keeps = |mut kit: Plugin| (!kit.keep_powers(&seen), kit.has_hooks(), kit.servers[0].len());
        assert_eq!(keeps(kit("true", "kit")), (true, true, 1));
        assert_eq!(keeps(kit("touch evil", "kit")), (false, false, 0));
        assert_eq!(keeps(kit("true", "/elsewhere")), (false, false, 0));
        // What its user says instead is no part of it, and no secret of theirs is told.
        let mut said = kit("true", "kit");
        said.configure(json!({"line": "mine", "key": "hidden", "port": 3}).as_object().unwrap());
        assert_eq!(marks(&said), seen);
        let told =
            |kit: &Plugin| kit.powers().iter().map(|power| power.told()).collect::<Vec<_>>().join("\n");
        let (usual, other) = (told(&kit("touch evil", "kit")), told(&said));
        assert!(
            usual.contains("/kit/serve\"") && usual.contains(r#""args":["touch evil","${user_config.key}"]"#)
        );
        assert!(usual.contains("plugins.n@shop.userConfig.line: \"touch evil\""), "{usual}");
        assert!(other.contains(r#"["mine","${user_config.key}"]"#) && !other.contains("hidden"), "{other}");
        // A default is told whatever it is called.
        let manifest =
            json!({"name": "n", "userConfig": {"key": {"sensitive": true, "default": "touch evil"}}});
        let servers = json!({"s": {"command": "sh", "args": ["-c", "${user_config.key}"]}});
        let hidden = plugin(&[(MANIFEST, &manifest.to_string()), (".mcp.json", &servers.to_string())]);
        assert!(told(&hidden.unwrap()).contains(r#"["-c","touch evil"]"#));
    }

    #[test]
    fn what_a_plugin_asks_for_is_told_as_it_asks_and_what_is_wrong_is_named() {
        let manifest = json!({"name": "n", "userConfig": {
            "url": {"type": "string", "required": true}, "token": {"type": "string", "sensitive": true},
            "port": {"type": "number", "min": 1, "max": 10, "default": 3}, "loud": {"type": "boolean"},
            "dirs": {"type": "directory", "multiple": true}}});
        let told = |said: Value| {
            let mut kit = plugin(&[(MANIFEST, &manifest.to_string())]).unwrap();
            kit.configure(said.as_object().unwrap());
            kit
        };
        let kit = told(json!({"url": "u", "token": "t", "loud": true, "dirs": ["/a", "/b"], "more": 1}));
        let variables = |names: &[(&str, &str)]| -> Vec<(String, String)> {
            names
                .iter()
                .map(|(name, text)| (format!("CLAUDE_PLUGIN_OPTION_{name}"), (*text).to_owned()))
                .collect()
        };
        let expected = [("DIRS", "/a,/b"), ("LOUD", "true"), ("PORT", "3"), ("TOKEN", "t"), ("URL", "u")];
        assert_eq!((kit.option_variables(), kit.problems.len()), (variables(&expected), 0));
        // What the model reads holds what was set, but for secrets.
        let text = "${user_config.url} ${user_config.token} ${user_config.none} ${ ${CLAUDE_PLUGIN_ROOT}/x";
        let expected = format!("u ${{user_config.token}} ${{user_config.none}} ${{ {}/x", kit.root.display());
        assert_eq!(kit.put_into(text), expected);
        for (said, part) in [
            (json!({}), "needs `pluginConfigs.n@shop.options.url`"),
            (json!({"url": 3}), "must be a text"),
            (json!({"url": "u", "port": 11}), "at most 10"),
            (json!({"url": "u", "port": "3"}), "a number"),
            (json!({"url": "u", "loud": "yes"}), "true or false"),
            (json!({"url": "u", "dirs": "/a"}), "a list"),
        ] {
            let problems = told(said.clone()).problems;
            assert!(problems.len() == 1 && problems[0].message.contains(part), "{said}: {problems:?}");
        }
        let odd = json!({"name": "n", "userConfig": {"a": {"type": "colour"}}});
        assert_eq!(plugin(&[(MANIFEST, &odd.to_string())]).unwrap_err().kind, "manifest-validation-error");
    }
}
