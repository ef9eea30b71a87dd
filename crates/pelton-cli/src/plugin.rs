//! `pelton plugin`: plugins that marketplaces of this machine list, copied, switched on and off, and looked at. Nothing is fetched.

mod copy; // a folder, copied whole or not at all
mod kept; // the lists of what is known and installed
mod look; // what plugins bring, and what is wrong with them
mod tag; // a release of one

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

use self::kept::{Installed, Shelf};
use crate::args::{
    DisableArgs, MarketplaceCommand, PluginArgs, PluginCommand, PluginListArgs, RunArgs, SettingsScope,
    UninstallArgs, UpdateArgs,
};
use crate::fail::Fail;
use crate::resolve::{LIST, folder_at, json_in};

/// How deep plugins may need others.
const NEED_DEPTH_MAX: usize = 8;

pub(crate) fn run(command: &PluginCommand, args: &RunArgs) -> Result<ExitCode, Fail> {
    let shelf = || Shelf::here(args);
    match command {
        PluginCommand::Install(said) => install(&shelf()?, said),
        PluginCommand::Uninstall(said) => uninstall(&shelf()?, said),
        PluginCommand::Enable(said) => enable(&shelf()?, said),
        PluginCommand::Disable(said) => disable(&shelf()?, said),
        PluginCommand::Update(said) => update(&shelf()?, said),
        PluginCommand::List(said) => list(&shelf()?, said),
        PluginCommand::Details { plugin } => look::details(&shelf()?, plugin),
        PluginCommand::Prune { dry_run } => prune(&shelf()?, *dry_run),
        PluginCommand::Init { dir } => init(dir),
        PluginCommand::Validate { path } => look::validate(path),
        PluginCommand::Tag(said) => tag::run(said),
        PluginCommand::Marketplace(command) => marketplace(&shelf()?, command),
    }
}

fn install(shelf: &Shelf, said: &PluginArgs) -> Result<ExitCode, Fail> {
    let (name, marketplace) = shelf.meant(&said.plugin).map_err(Fail::new)?;
    let mut lines = Vec::new();
    install_with_needs(shelf, &name, &marketplace, said.scope, 0, &mut lines).map_err(Fail::new)?;
    say(&lines.join("\n"))
}

/// Installs a plugin, and before it what it needs.
fn install_with_needs(
    shelf: &Shelf,
    name: &str,
    marketplace: &str,
    scope: SettingsScope,
    depth: usize,
    lines: &mut Vec<String>,
) -> Result<(), String> {
    let id = format!("{name}@{marketplace}");
    let about = |why: String| format!("the plugin {id} is not installed: {why}");
    if depth > NEED_DEPTH_MAX {
        return Err(about(format!("plugins that need each other are more than {NEED_DEPTH_MAX} deep")));
    }
    let lists = shelf.lists();
    lists.may_come_from(marketplace).map_err(about)?;
    let place = lists.offered(name, marketplace).map_err(about)?;
    // What could not be used is not installed.
    let plugin = shelf.read(&place, marketplace).map_err(about)?;
    for (needed, from) in look::needs(&place, marketplace) {
        if lists.installed(&format!("{needed}@{from}")).is_none() {
            install_with_needs(shelf, &needed, &from, scope, depth + 1, lines)
                .map_err(|why| about(format!("it needs {needed}@{from}: {why}")))?;
        }
    }
    let version = plugin.version.clone().or_else(|| text(&place.entry, "version"));
    let copied = shelf.copy_of(name, marketplace, version.as_deref());
    copy::folder(&place.path, &copied).map_err(about)?;
    shelf.note(&id, scope, &copied, version.as_deref()).map_err(about)?;
    let file = shelf.switch(&id, scope, Some(true)).map_err(about)?;
    lines.push(format!("Installed {id} ({} scope): {}", scope.name(), copied.display()));
    lines.push(format!("  switched on in {}", file.display()));
    lines.extend(plugin.problems.iter().map(|problem| format!("  warning: {}", problem.message)));
    Ok(())
}

fn uninstall(shelf: &Shelf, said: &UninstallArgs) -> Result<ExitCode, Fail> {
    let id = shelf.known_id(&said.plugin).map_err(Fail::new)?;
    let gone = shelf.forget(&id, Some(said.scope)).map_err(Fail::new)?;
    if gone.is_empty() {
        let scope = said.scope.name();
        return Err(Fail::new(format!(
            "the plugin {id} is not installed for the {scope} scope: see 'pelton plugin list'"
        )));
    }
    let file = shelf.switch(&id, said.scope, None).map_err(Fail::new)?;
    shelf.drop_copies(&gone).map_err(Fail::new)?;
    let mut told = format!(
        "Uninstalled {id} ({} scope); {} does not name it any more",
        said.scope.name(),
        file.display()
    );
    if !said.keep_data && shelf.is_gone(&id).map_err(Fail::new)? {
        let data = shelf.data_of(&id);
        if data.is_dir() {
            std::fs::remove_dir_all(&data)
                .map_err(|error| Fail::new(format!("{} cannot be taken away: {error}", data.display())))?;
            told.push_str(&format!("\nWhat it kept is gone, too: {}", data.display()));
        }
    }
    say(&told)
}

fn enable(shelf: &Shelf, said: &PluginArgs) -> Result<ExitCode, Fail> {
    let id = shelf.known_id(&said.plugin).map_err(Fail::new)?;
    let file = shelf.switch(&id, said.scope, Some(true)).map_err(Fail::new)?;
    say(&format!("{id} is switched on in {}", file.display()))
}

fn disable(shelf: &Shelf, said: &DisableArgs) -> Result<ExitCode, Fail> {
    let ids: Vec<String> = match &said.plugin {
        Some(plugin) => vec![shelf.known_id(plugin).map_err(Fail::new)?],
        None => {
            shelf.settings.enabled.iter().filter(|(_, is_on)| **is_on).map(|(id, _)| id.clone()).collect()
        }
    };
    if ids.is_empty() {
        return say("No plugin is switched on.");
    }
    let mut lines = Vec::new();
    for id in ids {
        let file = shelf.switch(&id, said.scope, Some(false)).map_err(Fail::new)?;
        lines.push(format!("{id} is switched off in {}", file.display()));
    }
    say(&lines.join("\n"))
}

fn update(shelf: &Shelf, said: &UpdateArgs) -> Result<ExitCode, Fail> {
    let id = shelf.known_id(&said.plugin).map_err(Fail::new)?;
    let about = |why: String| Fail::new(format!("the plugin {id} is not brought up to date: {why}"));
    let installed = shelf.installed().map_err(about)?;
    let scopes: Vec<SettingsScope> = installed
        .iter()
        .filter(|one| one.id == id && said.scope.is_none_or(|scope| scope == one.scope))
        .map(|one| one.scope)
        .collect();
    if scopes.is_empty() {
        return Err(about("it is not installed there".to_owned()));
    }
    let (name, marketplace) = id.split_once('@').unwrap_or((&id, ""));
    let lists = shelf.lists();
    lists.may_come_from(marketplace).map_err(about)?;
    let place = lists.offered(name, marketplace).map_err(about)?;
    let plugin = shelf.read(&place, marketplace).map_err(about)?;
    let version = plugin.version.clone().or_else(|| text(&place.entry, "version"));
    let copied = shelf.copy_of(name, marketplace, version.as_deref());
    copy::folder(&place.path, &copied).map_err(about)?;
    let mut old = Vec::new();
    for scope in scopes {
        old.extend(shelf.forget(&id, Some(scope)).map_err(about)?);
        shelf.note(&id, scope, &copied, version.as_deref()).map_err(about)?;
    }
    old.retain(|path| *path != copied);
    shelf.drop_copies(&old).map_err(about)?;
    let version = version.map(|version| format!(" {version}")).unwrap_or_default();
    say(&format!(
        "{id} is as its marketplace has it now{version}: {} (sessions that run keep what they have)",
        copied.display()
    ))
}

fn list(shelf: &Shelf, said: &PluginListArgs) -> Result<ExitCode, Fail> {
    let installed = shelf.installed().map_err(Fail::new)?;
    let is_on = |id: &str| shelf.settings.enabled.get(id).copied().unwrap_or_default();
    let available: Vec<Value> = match said.available {
        true => look::available(shelf, &installed),
        false => Vec::new(),
    };
    if said.json {
        let all = installed.iter().map(|one| {
            json!({"id": one.id, "scope": one.scope.name(), "version": one.version, "installPath": one.path,
                "projectPath": one.project, "enabled": is_on(&one.id)})
        });
        let all: Vec<Value> = all.collect();
        return say(&match said.available {
            true => json!({"installed": all, "available": available}).to_string(),
            false => Value::Array(all).to_string(),
        });
    }
    let mut lines: Vec<String> = installed
        .iter()
        .map(|Installed { id, scope, version, path, .. }| {
            let version = version.as_deref().unwrap_or("no version");
            let state = if is_on(id) { "on" } else { "off" };
            format!("{id}: {state}, {version}, {} scope, {}", scope.name(), path.display())
        })
        .collect();
    // Those that a marketplace's folder has can be used without a copy.
    let loose = shelf.settings.enabled.keys().filter(|id| installed.iter().all(|one| one.id != **id));
    lines.extend(loose.map(|id| {
        let state = if is_on(id) { "on" } else { "off" };
        format!("{id}: {state} in settings, not installed")
    }));
    lines.extend(available.iter().map(|one| {
        let about = one["description"].as_str().map(|text| format!(": {text}")).unwrap_or_default();
        format!("{} can be installed{about}", one["id"].as_str().unwrap_or_default())
    }));
    if lines.is_empty() {
        lines.push("No plugins: make a marketplace known with 'pelton plugin marketplace add DIR', then 'pelton plugin install NAME'.".to_owned());
    }
    say(&lines.join("\n"))
}

fn prune(shelf: &Shelf, dry_run: bool) -> Result<ExitCode, Fail> {
    let gone = shelf.unnamed_copies().map_err(Fail::new)?;
    if gone.is_empty() {
        return say("Every copy is one that is installed.");
    }
    if !dry_run {
        shelf.drop_copies(&gone).map_err(Fail::new)?;
    }
    let what = if dry_run { "Would be taken away" } else { "Taken away" };
    say(&gone.iter().map(|path| format!("{what}: {}", path.display())).collect::<Vec<_>>().join("\n"))
}

fn init(dir: &Path) -> Result<ExitCode, Fail> {
    let manifest = dir.join(".claude-plugin/plugin.json");
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if name.is_empty() {
        return Err(Fail::new("say a folder whose last part can be the name of a plugin"));
    }
    if manifest.exists() {
        return Err(Fail::new(format!("{} is there already", manifest.display())));
    }
    let about = |error: std::io::Error| Fail::new(format!("{}: {error}", dir.display()));
    let skill = dir.join("skills/hello");
    let new = [
        (
            manifest.clone(),
            format!("{:#}\n", json!({"name": name, "version": "0.1.0", "description": "What it is for."})),
        ),
        (
            skill.join("SKILL.md"),
            "---\ndescription: Greet somebody. Use it when a greeting is asked for.\n---\n\nGreet $ARGUMENTS in one line.\n"
                .to_owned(),
        ),
    ];
    for (file, text) in new {
        std::fs::create_dir_all(file.parent().unwrap_or(dir)).map_err(about)?;
        std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&file)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| Fail::new(format!("{}: {error}", file.display())))?;
    }
    say(&format!(
        "A new plugin is in {}: try it with 'pelton --plugin-dir {}', and look at it with 'pelton plugin validate {}'.",
        dir.display(),
        dir.display(),
        dir.display()
    ))
}

fn marketplace(shelf: &Shelf, command: &MarketplaceCommand) -> Result<ExitCode, Fail> {
    match command {
        MarketplaceCommand::Add { scope, source } => add_marketplace(shelf, source, *scope),
        MarketplaceCommand::List { json } => list_marketplaces(shelf, *json),
        MarketplaceCommand::Remove { name } => remove_marketplace(shelf, name),
        MarketplaceCommand::Update { name } => update_marketplaces(shelf, name.as_deref()),
    }
}

fn add_marketplace(shelf: &Shelf, source: &str, scope: SettingsScope) -> Result<ExitCode, Fail> {
    let path = shelf.cwd.join(source);
    let Ok(path) = path.canonicalize() else {
        let is_elsewhere = source.contains("://") || source.contains('@') || source.matches('/').count() == 1;
        return Err(Fail::new(match is_elsewhere {
            true => format!(
                "'{source}' is no folder of this machine, and nothing is fetched: clone it, and add the folder"
            ),
            false => format!("'{source}' leads to nothing"),
        }));
    };
    let folder = folder_at(&path);
    let list = folder.join(LIST);
    let listed = json_in(&list).ok_or_else(|| {
        Fail::new(format!("{} is no marketplace: {LIST} is missing, or no JSON", folder.display()))
    })?;
    let problems = look::wrong_with_list(&folder, &listed);
    let name = listed["name"].as_str().unwrap_or_default();
    if let Some(first) = problems.iter().find(|problem| problem.is_error) {
        return Err(Fail::new(format!("{}: {} (see 'pelton plugin validate')", list.display(), first.text)));
    }
    let source = json!({"source": "directory", "path": folder});
    shelf.lists().may_come_by(name, &source).map_err(Fail::new)?;
    shelf.make_known(name, &source, &folder).map_err(Fail::new)?;
    let mut told = format!("Added the marketplace {name}: {}", folder.display());
    if scope != SettingsScope::User {
        let file = shelf.declare(name, &source, scope).map_err(Fail::new)?;
        told.push_str(&format!("\n  named in {}", file.display()));
    }
    let plugins = listed["plugins"].as_array().into_iter().flatten().filter_map(|one| one["name"].as_str());
    let plugins: Vec<&str> = plugins.collect();
    told.push_str(&format!(
        "\n  plugins: {}",
        if plugins.is_empty() { "none".to_owned() } else { plugins.join(", ") }
    ));
    say(&told)
}

fn list_marketplaces(shelf: &Shelf, is_json: bool) -> Result<ExitCode, Fail> {
    let lists = shelf.lists();
    let all: Vec<(String, Option<PathBuf>, Value)> = lists
        .marketplaces()
        .into_iter()
        .map(|name| (name.clone(), lists.folder_of(&name), lists.source_of(&name)))
        .collect();
    if is_json {
        let all = all.iter().map(|(name, folder, source)| {
            json!({"name": name, "source": source["source"], "path": source["path"], "installLocation": folder})
        });
        return say(&Value::Array(all.collect()).to_string());
    }
    if all.is_empty() {
        return say("No marketplaces: make one known with 'pelton plugin marketplace add DIR'.");
    }
    let line = |(name, folder, _): &(String, Option<PathBuf>, Value)| match folder {
        Some(folder) => format!("{name}: {}", folder.display()),
        None => format!("{name}: nowhere on this machine"),
    };
    say(&all.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn remove_marketplace(shelf: &Shelf, name: &str) -> Result<ExitCode, Fail> {
    let was_known = shelf.make_unknown(name).map_err(Fail::new)?;
    let mut lines = Vec::new();
    for (scope, file) in shelf.undeclare(name).map_err(Fail::new)? {
        lines.push(format!("  {} ({} scope) does not name it any more", file.display(), scope.name()));
    }
    if !was_known && lines.is_empty() {
        return Err(Fail::new(format!(
            "no marketplace '{name}' is known: see 'pelton plugin marketplace list'"
        )));
    }
    lines.insert(0, format!("Removed the marketplace {name}; its folder stays as it is"));
    for one in shelf.installed().map_err(Fail::new)? {
        if one.id.split_once('@').is_some_and(|(_, from)| from == name) {
            let gone = shelf.forget(&one.id, Some(one.scope)).map_err(Fail::new)?;
            shelf.switch(&one.id, one.scope, None).map_err(Fail::new)?;
            shelf.drop_copies(&gone).map_err(Fail::new)?;
            lines.push(format!("  uninstalled {} ({} scope)", one.id, one.scope.name()));
        }
    }
    say(&lines.join("\n"))
}

fn update_marketplaces(shelf: &Shelf, name: Option<&str>) -> Result<ExitCode, Fail> {
    let lists = shelf.lists();
    let names: Vec<String> = match name {
        Some(name) => vec![name.to_owned()],
        None => lists.marketplaces().into_iter().collect(),
    };
    if names.is_empty() {
        return say("No marketplaces are known.");
    }
    let (mut lines, mut all_there) = (Vec::new(), true);
    for name in names {
        match lists.list_of(&name) {
            Ok((folder, list)) => {
                let count = list["plugins"].as_array().map_or(0, Vec::len);
                shelf.seen_now(&name).map_err(Fail::new)?;
                lines.push(format!("{name}: {count} plugins in {}", folder.display()));
            }
            Err(why) => {
                all_there = false;
                lines.push(format!("{name}: {why}"));
            }
        }
    }
    say(&lines.join("\n"))?;
    Ok(if all_there { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text(entry: &serde_json::Map<String, Value>, key: &str) -> Option<String> {
    entry.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// Words that may come from files, made safe for a terminal.
fn say(text: &str) -> Result<ExitCode, Fail> {
    let shown: Vec<String> = text.lines().map(pelton_serve::plain).map(|line| line.to_string()).collect();
    match writeln!(std::io::stdout(), "{}", shown.join("\n")) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Fail::new(format!("cannot write to standard output: {error}"))),
    }
}
