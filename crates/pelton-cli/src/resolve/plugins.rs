//! Which plugins count: those of the command line, and those that settings switch on and that are on this machine.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use pelton::plugins::{Plugin, PluginError, PluginProblem};
use pelton::settings::{Brought, PluginSettings, Power, Treatment, Watched, untrusted};
use pelton::{Options, normalised};
use serde_json::{Map, Value, json};

use super::env::Env;
use super::layers::{Files, Sources, text_of};
use super::repository::{Repository, is_same};
use super::sessions::config_dir;
use super::trust::Trust;
use crate::args::RunArgs;
use crate::fail::tell;

/// The most plugins of a session.
const PLUGINS_MAX: usize = 256;
/// The most bytes of a list of plugins.
pub(crate) const LIST_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// The marketplaces that are known, and the plugins that are installed, in the user's folder of plugins.
pub(crate) const KNOWN: &str = "known_marketplaces.json";
pub(crate) const INSTALLED: &str = "installed_plugins.json";
/// What a folder of plugins says about them.
pub(crate) const LIST: &str = ".claude-plugin/marketplace.json";
/// Where a plugin comes from that was named for the run.
const INLINE: &str = "inline";

/// Finds the plugins of a run, and those that were wanted in vain. Of two with one name the first counts. What settings name lies where
/// the project's configuration is.
pub(super) fn plugins(
    args: &RunArgs,
    env: &Env,
    (cwd, project): (&Path, &Path),
    settings: &PluginSettings,
) -> (Vec<Plugin>, Vec<PluginError>) {
    let home = config_dir(env).map(|dir| dir.join("plugins"));
    let data = home.as_ref().map_or_else(|| cwd.join(".claude/plugins/data"), |home| home.join("data"));
    let mut found = Finding::default();
    let whole = args.client.plugin_dir.iter().map(|dir| (dir, true));
    let without_servers = args.client.plugin_dir_no_mcp.iter().map(|dir| (dir, false));
    for (nth, (dir, with_servers)) in whole.chain(without_servers).enumerate() {
        let path = cwd.join(dir);
        let mut read = Plugin::read(&path, INLINE, &data);
        if let Ok(plugin) = &mut read
            && !with_servers
        {
            plugin.servers.clear();
        }
        found.add(read, &format!("{INLINE}[{nth}]"), Some(path));
    }
    if !super::alone(args, env) {
        // A mistake among them is told where settings are read.
        let sources = Sources::said(args.setting_sources.as_deref()).unwrap_or(Sources::ALL);
        let lists = Lists { home: home.as_deref(), settings, cwd: project };
        found.add_switched_on(&lists, &data, || Project::around(env, project, &sources));
    }
    found.whole(settings)
}

/// What plugins that come with a directory, and that settings switch on there, would run or allow themselves.
pub(super) fn powers_in(env: &Env, dir: &Path) -> Vec<Power> {
    let home = config_dir(env).map(|dir| dir.join("plugins"));
    let data = home.as_ref().map_or_else(|| dir.join(".claude/plugins/data"), |home| home.join("data"));
    let settings = Files::around(env, dir).said_of_plugins();
    let mut found = Finding::default();
    let lists = Lists { home: home.as_deref(), settings: &settings, cwd: dir };
    found.add_switched_on(&lists, &data, || Project::around(env, dir, &Sources::ALL));
    let (plugins, _) = found.whole(&settings);
    plugins.iter().filter(|plugin| plugin.is_of_project).flat_map(Plugin::powers).collect()
}

/// Where there is somebody who could look, nothing counts of a plugin that comes with the directory but what was seen when that was
/// trusted: its files change with those around it.
pub(super) fn keep_what_was_seen(plugins: &mut [Plugin], env: &Env, dir: &Path, watched: Watched) {
    if untrusted(Brought::Programs, watched) == Treatment::Used {
        return;
    }
    let trust = Trust::in_dir(env, dir);
    let seen = if trust.is_given() { trust.approved_settings(env) } else { BTreeSet::new() };
    for plugin in plugins.iter_mut().filter(|plugin| plugin.is_of_project) {
        if plugin.keep_powers(&seen) {
            tell(&format!(
                "warning: what the plugin {} would run is not what was seen when its directory was trusted, so it is not used until that is trusted again (pelton trust)",
                plugin.id()
            ));
        }
    }
}

/// A project, and what comes with it wherever that lies.
struct Project {
    /// The main checkout, which trust is about.
    root: PathBuf,
    /// The checkout that the work is in.
    top: PathBuf,
    /// Where its settings say that marketplaces are.
    named: BTreeMap<String, String>,
    /// Where copies of plugins are, which do not change by themselves.
    copies: Option<PathBuf>,
}

impl Project {
    fn around(env: &Env, dir: &Path, sources: &Sources) -> Self {
        let real = |dir: PathBuf| dir.canonicalize().unwrap_or(dir);
        let (root, top) = match Repository::around(dir) {
            Some(repository) => (repository.root, repository.top),
            None => (dir.to_owned(), dir.to_owned()),
        };
        let copies = config_dir(env).and_then(|dir| dir.join("plugins").canonicalize().ok());
        let named = Files::around(env, dir).marketplaces_named(sources);
        Self { root: real(root), top: real(top), named, copies }
    }

    /// Where in it something is: in any of its checkouts. The same in two of them is the same.
    fn place_of(&self, path: &Path) -> Option<PathBuf> {
        let checkout = Repository::around(path).filter(|repository| is_same(&repository.root, &self.root));
        let tops =
            checkout.map(|checkout| checkout.top).into_iter().chain([self.top.clone(), self.root.clone()]);
        tops.into_iter().find_map(|top| path.strip_prefix(top).ok().map(Path::to_path_buf))
    }

    /// Whether it brings a marketplace: its settings say where that is, or it is there, if only as a link to elsewhere.
    fn brings(&self, marketplace: &str, lists: &Lists<'_>) -> bool {
        let Some(folder) = lists.folder_of(marketplace) else { return false };
        let real = folder.canonicalize().ok();
        if self.copies.as_ref().zip(real.as_ref()).is_some_and(|(copies, real)| real.starts_with(copies)) {
            return false;
        }
        let said = lists.settings.marketplaces.get(marketplace);
        if said.is_some() && said == self.named.get(marketplace) {
            return true;
        }
        self.place_of(&normalised(&folder)).is_some()
            || real.is_some_and(|real| self.place_of(&real).is_some())
    }

    /// Notes of a plugin whether it comes with the project, and where it lies then. Of one that was installed there is a copy, which the
    /// project changes only by what a marketplace of its own adds to it.
    fn look_at(&self, plugin: &mut Plugin, lists: &Lists<'_>, data: &Path, entry: &Map<String, Value>) {
        let is_brought = self.brings(&plugin.marketplace, lists);
        let is_copy = self.copies.as_ref().is_some_and(|copies| plugin.root.starts_with(copies));
        plugin.is_of_project = match is_copy {
            true => is_brought && !is_whole_without(plugin, data, entry),
            false => is_brought || self.place_of(&plugin.root).is_some(),
        };
        if plugin.is_of_project {
            let place = self.place_of(&plugin.root).filter(|_| !is_copy);
            plugin.seen_at = Some(place.unwrap_or_else(|| plugin.root.clone()));
        }
    }
}

/// Whether a plugin would run and allow itself the same without what its marketplace says besides its name.
fn is_whole_without(plugin: &Plugin, data: &Path, entry: &Map<String, Value>) -> bool {
    let name = entry.get_key_value("name").map(|(key, name)| (key.clone(), name.clone()));
    let alone = Plugin::read_listed(&plugin.root, &plugin.marketplace, data, &name.into_iter().collect());
    alone.is_ok_and(|alone| alone.powers() == plugin.powers())
}

/// Says which are not used, and why.
pub(super) fn tell_of(errors: &[PluginError]) {
    for error in errors {
        tell(&format!("warning: the plugin {} is not used: {}", error.plugin, error.problem.message));
    }
}

/// Adds what they bring.
pub(super) fn add(options: &mut Options, plugins: Vec<Plugin>) {
    for plugin in plugins {
        let (name, data, root) = (plugin.id(), plugin.data.clone(), plugin.root.clone());
        if plugin.has_hooks() || !plugin.servers.is_empty() {
            // Its programs expect it to be there; they say themselves what they cannot do without it.
            let _ = DirBuilder::new().recursive(true).mode(0o700).create(data);
        }
        for problem in options.add_plugin(plugin) {
            tell(&format!("warning: the plugin {name} ({}): {problem}", root.display()));
        }
    }
}

#[derive(Default)]
struct Finding {
    plugins: Vec<Plugin>,
    errors: Vec<PluginError>,
}

impl Finding {
    /// Adds those that settings switch on. Where there are none, nobody asks about the project.
    fn add_switched_on(&mut self, lists: &Lists<'_>, data: &Path, project: impl FnOnce() -> Project) {
        let project = LazyCell::new(project);
        for id in lists.settings.enabled.iter().filter(|(_, is_on)| **is_on).map(|(id, _)| id) {
            let Some((name, marketplace)) = id.split_once('@') else {
                let problem = PluginProblem::new(
                    "generic-error",
                    format!("'{id}' is not of the form name@marketplace"),
                );
                self.errors.push(PluginError::unusable(id, problem, None));
                continue;
            };
            match lists.may_come_from(marketplace).and_then(|()| lists.place_of(name, marketplace)) {
                Ok(Place { path, entry }) => {
                    let mut read = Plugin::read_listed(&path, marketplace, data, &entry);
                    if let Ok(plugin) = &mut read {
                        project.look_at(plugin, lists, data, &entry);
                    }
                    self.add(read, id, Some(path));
                }
                Err(why) => {
                    let problem = PluginProblem::new("plugin-not-found", why);
                    self.errors.push(PluginError::unusable(id, problem, None));
                }
            }
        }
    }

    fn add(&mut self, read: Result<Plugin, PluginProblem>, asked_for_as: &str, path: Option<PathBuf>) {
        match read {
            Ok(plugin) if self.plugins.len() < PLUGINS_MAX => {
                if self.plugins.iter().all(|known| known.name != plugin.name) {
                    self.plugins.push(plugin);
                }
            }
            Ok(plugin) => {
                let problem = PluginProblem::new("generic-error", format!("there are {PLUGINS_MAX} already"));
                self.errors.push(PluginError::unusable(plugin.id(), problem, path));
            }
            Err(problem) => self.errors.push(PluginError::unusable(asked_for_as, problem, path)),
        }
    }

    fn whole(mut self, settings: &PluginSettings) -> (Vec<Plugin>, Vec<PluginError>) {
        for plugin in &mut self.plugins {
            let said = settings.options.get(&plugin.id()).cloned().unwrap_or_default();
            plugin.configure(&said);
        }
        if settings.without_hooks {
            self.plugins.iter_mut().for_each(Plugin::forget_hooks);
        }
        (self.plugins, self.errors)
    }
}

/// Where plugins are on this machine.
pub(crate) struct Lists<'a> {
    /// The user's folder of plugins.
    pub home: Option<&'a Path>,
    pub settings: &'a PluginSettings,
    pub cwd: &'a Path,
}

/// Where a plugin is, and what its marketplace says of it.
pub(crate) struct Place {
    pub path: PathBuf,
    pub entry: Map<String, Value>,
}

impl Lists<'_> {
    /// Whether plugins of a marketplace may be used at all.
    pub fn may_come_from(&self, marketplace: &str) -> Result<(), String> {
        self.may_come_by(marketplace, &self.source_of(marketplace))
    }

    /// The same for one that is not known yet.
    pub fn may_come_by(&self, marketplace: &str, source: &Value) -> Result<(), String> {
        if self.settings.never_from.iter().any(|entry| means(entry, source)) {
            return Err(format!("the marketplace '{marketplace}' is among `blockedMarketplaces`"));
        }
        match &self.settings.only_from {
            Some(only) if !only.iter().any(|entry| means(entry, source)) => {
                Err(format!("the marketplace '{marketplace}' is not among `strictKnownMarketplaces`"))
            }
            _ => Ok(()),
        }
    }

    /// The marketplaces that are known, by their names.
    pub fn marketplaces(&self) -> BTreeSet<String> {
        let known = self.home.and_then(|home| json_in(&home.join(KNOWN))).unwrap_or_default();
        let known = known.as_object().into_iter().flatten().map(|(name, _)| name.clone());
        self.settings.marketplaces.keys().cloned().chain(known).collect()
    }

    /// Where a marketplace comes from, as settings and lists write it.
    pub fn source_of(&self, marketplace: &str) -> Value {
        if let Some(path) = self.settings.marketplaces.get(marketplace) {
            // However it is written: it is where it is.
            let path = self.cwd.join(path);
            return json!({"source": "directory", "path": path.canonicalize().unwrap_or(path)});
        }
        let known = self.home.and_then(|home| json_in(&home.join(KNOWN)));
        known.map(|known| known[marketplace]["source"].clone()).unwrap_or_default()
    }

    fn place_of(&self, name: &str, marketplace: &str) -> Result<Place, String> {
        if let Some(path) = self.installed(&format!("{name}@{marketplace}")) {
            // It may be there although its marketplace is gone.
            let entry = self.entry_of(name, marketplace).map(|(_, _, entry)| entry).unwrap_or_default();
            return Ok(Place { path, entry });
        }
        self.offered(name, marketplace)
    }

    /// Where a marketplace has a plugin.
    pub fn offered(&self, name: &str, marketplace: &str) -> Result<Place, String> {
        let (folder, base, entry) = self.entry_of(name, marketplace)?;
        // Behind a folder for all of them a name is enough.
        let source = entry.get("source").and_then(Value::as_str);
        let source = source.filter(|source| source.starts_with("./") || !base.is_empty());
        let source = source.ok_or("it is to be fetched from elsewhere, which is not done")?;
        let (folder, path) = (folder.canonicalize(), folder.join(base).join(source).canonicalize());
        match (folder, path) {
            (Ok(folder), Ok(path)) if path.starts_with(&folder) => Ok(Place { path, entry }),
            _ => Err(format!("'{source}' leads to nothing inside of the marketplace")),
        }
    }

    /// What a marketplace lists.
    pub fn list_of(&self, marketplace: &str) -> Result<(PathBuf, Value), String> {
        let folder = self.folder_of(marketplace).ok_or_else(|| {
            format!("neither it nor its marketplace '{marketplace}' is on this machine (nothing is fetched)")
        })?;
        let list = json_in(&folder.join(LIST))
            .ok_or_else(|| format!("{} cannot be read", folder.join(LIST).display()))?;
        Ok((folder, list))
    }

    /// The folder of a marketplace, the folder in it that all plugins are in, and what is said of one.
    fn entry_of(
        &self,
        name: &str,
        marketplace: &str,
    ) -> Result<(PathBuf, String, Map<String, Value>), String> {
        let (folder, list) = self.list_of(marketplace)?;
        let mut listed = list["plugins"].as_array().into_iter().flatten().filter_map(Value::as_object);
        let entry = listed.find(|entry| entry.get("name").is_some_and(|it| it == name));
        let entry = entry.ok_or_else(|| format!("the marketplace '{marketplace}' does not have it"))?;
        let base = list["metadata"]["pluginRoot"].as_str().unwrap_or_default();
        Ok((folder, base.to_owned(), entry.clone()))
    }

    /// Where the list of what is installed says that it is: for this project, if there is a choice.
    pub fn installed(&self, id: &str) -> Option<PathBuf> {
        let list = json_in(&self.home?.join(INSTALLED))?;
        let entry = list.get("plugins")?.get(id)?;
        let entry = match entry.as_array() {
            None => entry,
            Some(scopes) => {
                let root = super::project_root(self.cwd);
                let is_here =
                    |entry: &&Value| entry["projectPath"].as_str().is_some_and(|at| root == Path::new(at));
                let is_everywhere = |entry: &&Value| entry["projectPath"].is_null();
                let here = scopes.iter().find(is_here);
                here.or_else(|| scopes.iter().find(is_everywhere)).or_else(|| scopes.last())?
            }
        };
        entry.get("installPath")?.as_str().map(PathBuf::from)
    }

    /// The folder of a marketplace.
    pub fn folder_of(&self, marketplace: &str) -> Option<PathBuf> {
        if let Some(said) = self.settings.marketplaces.get(marketplace) {
            return Some(folder_at(&self.cwd.join(said)));
        }
        let known = json_in(&self.home?.join(KNOWN))?;
        known.get(marketplace)?.get("installLocation")?.as_str().map(PathBuf::from)
    }
}

/// The folder that is meant: the list itself may be named.
pub(crate) fn folder_at(path: &Path) -> PathBuf {
    match path.ends_with(LIST) {
        true => path.ancestors().nth(2).unwrap_or(path).to_path_buf(),
        false => path.to_path_buf(),
    }
}

/// Whether an entry of a list means a source: it says nothing that is otherwise there. A directory and the file in it are one.
fn means(entry: &Value, source: &Value) -> bool {
    let kind = |value: &Value| match value["source"].as_str() {
        Some("file") => "directory".to_owned(),
        kind => kind.unwrap_or_default().to_owned(),
    };
    let Some(said) = entry.as_object().filter(|said| !said.is_empty()) else { return false };
    let real = |value: &Value| value.as_str().and_then(|path| Path::new(path).canonicalize().ok());
    let same = |key: &str, value: &Value| {
        let there = source.get(key);
        there == Some(value)
            || (key == "path" && real(value).is_some() && real(value) == there.and_then(real))
    };
    kind(entry) == kind(source) && said.iter().all(|(key, value)| key == "source" || same(key, value))
}

pub(crate) fn json_in(file: &Path) -> Option<Value> {
    serde_json::from_str(&text_of(file, LIST_BYTES_MAX).ok()??).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;

    use super::*;
    use crate::args::Args;

    struct Place {
        dir: tempfile::TempDir,
        env: Env,
    }

    impl Place {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let said = [("CLAUDE_CONFIG_DIR".to_owned(), dir.path().join("config").display().to_string())];
            Self { env: Env::of_process().with(&said.into()), dir }
        }

        fn write(&self, name: &str, text: &(impl ToString + ?Sized)) -> &Self {
            let path = self.dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.to_string()).unwrap();
            self
        }

        fn plugins(
            &self,
            words: &[&str],
            enabled: &[(&str, bool)],
            known: &[(&str, &str)],
        ) -> (Vec<String>, Vec<String>) {
            let args = Args::parse_from(["pelton"].iter().chain(words)).run;
            let mut settings = PluginSettings::default();
            settings.enabled = enabled.iter().map(|(id, is_on)| ((*id).to_owned(), *is_on)).collect();
            settings.marketplaces =
                known.iter().map(|(name, at)| ((*name).to_owned(), (*at).to_owned())).collect();
            let (plugins, errors) = plugins(&args, &self.env, (self.dir.path(), self.dir.path()), &settings);
            let told = |error: PluginError| format!("{} {}", error.plugin, error.problem.kind);
            (plugins.iter().map(Plugin::id).collect(), errors.into_iter().map(told).collect())
        }
    }

    #[test]
    fn marketplaces_may_be_restricted_however_they_are_written() {
        let place = Place::new();
        let list = json!({"name": "shop", "plugins": [{"name": "near", "source": "./near"}]});
        place.write("shop/near/commands/a.md", "x").write("shop/.claude-plugin/marketplace.json", &list);
        let args = Args::parse_from(["pelton"]).run;
        let shop = json!({"source": "directory", "path": place.dir.path().join("shop")});
        let other = json!({"source": "github", "repo": "a/b"});
        for (only, never, expected) in [
            (None, vec![], true),
            (Some(vec![shop.clone()]), vec![], true),
            (Some(vec![other.clone()]), vec![], false),
            (Some(vec![]), vec![], false),
            (None, vec![shop.clone()], false),
            (None, vec![json!({"source": "directory"})], false),
            (None, vec![other, json!({})], true),
            (Some(vec![shop.clone()]), vec![shop.clone()], false),
        ] {
            let mut settings = PluginSettings::default();
            settings.enabled = [("near@shop".to_owned(), true)].into();
            settings.marketplaces = [("shop".to_owned(), "./x/../shop".to_owned())].into();
            fs::create_dir_all(place.dir.path().join("x")).unwrap();
            (settings.only_from, settings.never_from) = (only.clone(), never.clone());
            let (plugins, errors) =
                plugins(&args, &place.env, (place.dir.path(), place.dir.path()), &settings);
            assert_eq!(
                (plugins.len(), errors.len()),
                if expected { (1, 0) } else { (0, 1) },
                "{only:?} {never:?}"
            );
        }
    }

    #[test]
    fn what_is_named_for_the_run_and_what_is_switched_on_and_here_counts() {
        let place = Place::new();
        let list = json!({"name": "shop", "plugins": [
            {"name": "near", "source": "./plugins/near"},
            {"name": "far", "source": {"source": "github", "repo": "a/b"}},
            {"name": "out", "source": "./../../kit"}]});
        place.write("kit/commands/a.md", "x").write("shop/plugins/near/commands/a.md", "x");
        place.write("shop/.claude-plugin/marketplace.json", &list).write("old/commands/a.md", "x");
        let installed =
            json!({"version": 2, "plugins": {"old@gone": [{"installPath": place.dir.path().join("old")}]}});
        place.write("config/plugins/installed_plugins.json", &installed);

        let said = ["--plugin-dir", "kit", "--plugin-dir", "none"];
        let (plugins, errors) = place.plugins(&said, &[], &[]);
        assert_eq!(
            (plugins, errors),
            (vec!["kit@inline".to_owned()], vec!["inline[1] path-not-found".to_owned()])
        );

        let enabled = [
            ("near@shop", true),
            ("old@gone", true),
            ("far@shop", true),
            ("out@shop", true),
            ("odd", true),
            ("x@shop", true),
            ("y@z", true),
            ("near@other", false),
        ];
        let (plugins, errors) = place.plugins(&[], &enabled, &[("shop", "shop")]);
        assert_eq!(plugins, ["near@shop", "old@gone"]);
        assert_eq!(
            errors,
            [
                "far@shop plugin-not-found",
                "odd generic-error",
                "out@shop plugin-not-found",
                "x@shop plugin-not-found",
                "y@z plugin-not-found"
            ]
        );
        assert_eq!(place.plugins(&["--bare"], &enabled, &[("shop", "shop")]).0, [""; 0]);

        let known = json!({"shop": {"installLocation": place.dir.path().join("shop")}});
        place.write("config/plugins/known_marketplaces.json", &known);
        assert_eq!(place.plugins(&[], &[("near@shop", true)], &[]).0, ["near@shop"]);
    }

    /// Whatever a marketplace is called, and whoever switched its plugin on: it comes with the project if that names it or has it, and a
    /// user's own elsewhere does not.
    #[test]
    fn a_plugin_comes_with_the_project_that_names_its_marketplace_or_has_it() {
        let place = Place::new();
        let at = |name: &str| place.dir.path().join(name).display().to_string();
        let list = json!({"name": "x", "plugins": [{"name": "kit", "source": "./kit"}]});
        for shop in ["shop", "work/shop", "config/plugins/marketplaces/shop"] {
            place.write(&format!("{shop}/kit/hooks/hooks.json"), "{\"Stop\": []}");
            place.write(&format!("{shop}/.claude-plugin/marketplace.json"), &list);
        }
        std::os::unix::fs::symlink("../shop", place.dir.path().join("work/link")).unwrap();
        let work = place.dir.path().join("work").canonicalize().unwrap();
        let args = Args::parse_from(["pelton"]).run;
        for (name, path, is_named, expected) in [
            ("shop", at("shop"), false, None),
            ("shop", at("shop"), true, Some(place.dir.path().join("shop/kit").canonicalize().unwrap())),
            ("inline", "./shop".to_owned(), true, Some("shop/kit".into())),
            ("shop", "./shop".to_owned(), false, Some("shop/kit".into())),
            ("shop", at("work/shop"), false, Some("shop/kit".into())),
            (
                "shop",
                "./link".to_owned(),
                false,
                Some(place.dir.path().join("shop/kit").canonicalize().unwrap()),
            ),
            ("shop", at("config/plugins/marketplaces/shop"), true, None),
        ] {
            let source = json!({"source": "directory", "path": &path});
            let said = if is_named {
                json!({"extraKnownMarketplaces": {name: {"source": source}}})
            } else {
                json!({})
            };
            place.write("work/.claude/settings.json", &said);
            let mut settings = PluginSettings::default();
            settings.enabled = [(format!("kit@{name}"), true)].into();
            settings.marketplaces = [(name.to_owned(), path.clone())].into();
            let (plugins, _) = plugins(&args, &place.env, (&work, &work), &settings);
            assert_eq!(plugins.len(), 1, "{name} {path}");
            let found = plugins[0].is_of_project.then(|| plugins[0].seen_at.clone().unwrap());
            assert_eq!(found, expected, "{name} {path} {is_named}");
        }
    }
}
