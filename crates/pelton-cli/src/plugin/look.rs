//! What plugins bring, and what is wrong with plugins and marketplaces.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pelton::Options;
use pelton::plugins::Plugin;
use pelton_model::{Auth, Endpoint};
use serde_json::{Map, Value, json};

use super::kept::{Installed, Shelf};
use super::say;
use crate::fail::Fail;
use crate::resolve::{LIST, Place, json_in};

const MANIFEST: &str = ".claude-plugin/plugin.json";
/// Names of marketplaces that would be taken for something else.
const RESERVED: [&str; 2] = ["inline", "builtin"];

/// Something about a marketplace that is not as it should be.
pub(super) struct Wrong {
    pub is_error: bool,
    pub text: String,
}

/// Other plugins that one needs, and where they are to come from.
pub(super) fn needs(place: &Place, marketplace: &str) -> Vec<(String, String)> {
    let manifest = json_in(&place.path.join(MANIFEST)).unwrap_or_default();
    let said = [manifest.get("dependencies"), place.entry.get("dependencies")];
    let one = |value: &Value| {
        let name = value.as_str().or_else(|| value["name"].as_str())?;
        let (name, from) =
            name.split_once('@').unwrap_or((name, value["marketplace"].as_str().unwrap_or(marketplace)));
        Some((name.to_owned(), from.to_owned()))
    };
    said.into_iter().flatten().filter_map(Value::as_array).flatten().filter_map(one).collect()
}

/// Plugins that could be installed and are not.
pub(super) fn available(shelf: &Shelf, installed: &[Installed]) -> Vec<Value> {
    let lists = shelf.lists();
    let mut all = Vec::new();
    for marketplace in lists.marketplaces() {
        let Ok((_, list)) = lists.list_of(&marketplace) else { continue };
        for entry in list["plugins"].as_array().into_iter().flatten() {
            let Some(name) = entry["name"].as_str() else { continue };
            let id = format!("{name}@{marketplace}");
            if installed.iter().all(|one| one.id != id) && lists.offered(name, &marketplace).is_ok() {
                all.push(json!({"id": id, "name": name, "marketplace": marketplace,
                    "description": entry["description"], "version": entry["version"]}));
            }
        }
    }
    all
}

pub(super) fn details(shelf: &Shelf, said: &str) -> Result<ExitCode, Fail> {
    let id = shelf.known_id(said).map_err(Fail::new)?;
    let (name, marketplace) = id.split_once('@').unwrap_or((&id, ""));
    let lists = shelf.lists();
    let offered = lists.offered(name, marketplace);
    let place = match (lists.installed(&id), offered) {
        (Some(path), offered) => Place { path, entry: offered.map(|place| place.entry).unwrap_or_default() },
        (None, Ok(place)) => place,
        (None, Err(why)) => return Err(Fail::new(format!("the plugin {id} cannot be looked at: {why}"))),
    };
    let plugin =
        shelf.read(&place, marketplace).map_err(|why| Fail::new(format!("the plugin {id}: {why}")))?;
    let is_on = shelf.settings.enabled.get(&id).copied().unwrap_or_default();
    let mut lines = vec![format!("{id}: {}", if is_on { "on" } else { "off" })];
    if let Some(version) = &plugin.version {
        lines.push(format!("  version: {version}"));
    }
    let about = json_in(&place.path.join(MANIFEST)).unwrap_or_default()["description"].take();
    let about = about.as_str().or_else(|| place.entry.get("description").and_then(Value::as_str));
    lines.extend(about.map(|about| format!("  description: {about}")));
    lines.push(format!("  folder: {}", plugin.root.display()));
    lines.extend(brought(&plugin));
    let needed: Vec<String> =
        needs(&place, marketplace).into_iter().map(|(name, from)| format!("{name}@{from}")).collect();
    if !needed.is_empty() {
        lines.push(format!("  needs: {}", needed.join(", ")));
    }
    lines.extend(plugin.problems.iter().map(|problem| format!("  warning: {}", problem.message)));
    say(&lines.join("\n"))
}

/// What a plugin adds to a session, in lines.
fn brought(plugin: &Plugin) -> Vec<String> {
    let names = |what: &str, names: Vec<String>| {
        (!names.is_empty()).then(|| format!("  {what}: {}", names.join(", ")))
    };
    let servers = plugin.servers.iter().flat_map(|servers| servers.keys().cloned()).collect();
    let skills = plugin.typed_names().into_iter().map(|name| format!("/{name}")).collect();
    let agents = plugin.agents().into_iter().map(|agent| agent.name).collect();
    let styles = plugin.styles().into_iter().map(|style| style.name).collect();
    let programs = plugin.programs().map(|dir| dir.display().to_string()).into_iter().collect();
    let lines = [
        names("skills and commands", skills),
        names("agents", agents),
        names("hooks", plugin.hook_events()),
        names("MCP servers", servers),
        names("output styles", styles),
        names("programs", programs),
    ];
    let lines: Vec<String> = lines.into_iter().flatten().collect();
    if lines.is_empty() { vec!["  brings nothing".to_owned()] } else { lines }
}

pub(super) fn validate(path: &Path) -> Result<ExitCode, Fail> {
    let root = root_of(path)?;
    let (list, manifest) = (root.join(LIST), root.join(MANIFEST));
    let is_list = path.ends_with("marketplace.json") || (!path.ends_with("plugin.json") && list.exists());
    let wrong = match is_list {
        true => match std::fs::read(&list) {
            Err(error) => vec![error_of(format!("{LIST} cannot be read: {error}"))],
            Ok(bytes) => match serde_json::from_slice(&bytes) {
                Ok(listed) => wrong_with_list(&root, &listed),
                Err(error) => vec![error_of(format!("{LIST} is not JSON: {error}"))],
            },
        },
        false => wrong_with_plugin(&root, &Map::new()),
    };
    let what = if is_list { &list } else { &manifest };
    let mut lines: Vec<String> = wrong
        .iter()
        .map(|Wrong { is_error, text }| format!("{}: {text}", if *is_error { "error" } else { "warning" }))
        .collect();
    let failed = wrong.iter().any(|wrong| wrong.is_error);
    lines.push(match (failed, lines.is_empty()) {
        (true, _) => format!("{} is not valid", what.display()),
        (false, true) => format!("{} is valid", what.display()),
        (false, false) => format!("{} is valid, with warnings", what.display()),
    });
    say(&lines.join("\n"))?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The folder that is meant by a path to it or to what describes it.
pub(super) fn root_of(path: &Path) -> Result<PathBuf, Fail> {
    let real = path.canonicalize().map_err(|error| Fail::new(format!("{}: {error}", path.display())))?;
    let is_described = real.ends_with(LIST) || real.ends_with(MANIFEST);
    match real.ancestors().nth(2).filter(|_| is_described) {
        Some(root) => Ok(root.to_owned()),
        None if real.is_dir() => Ok(real),
        None => Err(Fail::new(format!("{} is no folder, {MANIFEST} or {LIST}", path.display()))),
    }
}

/// What is wrong with a marketplace, and with the plugins that it has here.
pub(super) fn wrong_with_list(folder: &Path, list: &Value) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    let plain = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    match list["name"].as_str() {
        Some(name) if RESERVED.contains(&name) => wrong.push(error_of(format!("`name`: '{name}' is taken"))),
        Some(name) if plain(name) => {}
        _ => wrong.push(error_of("`name` must be a name: letters, digits, `-`, `_` and `.`".to_owned())),
    }
    if list["owner"]["name"].as_str().is_none() {
        wrong.push(Wrong { is_error: false, text: "`owner.name` is missing".to_owned() });
    }
    let Some(plugins) = list["plugins"].as_array() else {
        wrong.push(error_of("`plugins` must be a list".to_owned()));
        return wrong;
    };
    let base = list["metadata"]["pluginRoot"].as_str().unwrap_or_default();
    let mut names = Vec::new();
    for (nth, entry) in plugins.iter().enumerate() {
        let at = format!("`plugins[{nth}]`");
        let (Some(entry), Some(name)) =
            (entry.as_object(), entry["name"].as_str().filter(|name| plain(name)))
        else {
            wrong.push(error_of(format!("{at} must be an object with a `name`")));
            continue;
        };
        if names.contains(&name) {
            wrong.push(error_of(format!("{at}: there is a plugin '{name}' already")));
        }
        names.push(name);
        match entry.get("source") {
            Some(Value::String(source)) if source.starts_with("./") || !base.is_empty() => {
                let place = folder.join(base).join(source).canonicalize().ok();
                match place
                    .filter(|place| folder.canonicalize().is_ok_and(|folder| place.starts_with(folder)))
                {
                    Some(place) => {
                        wrong.extend(wrong_with_plugin(&place, entry).into_iter().map(|problem| Wrong {
                            text: format!("the plugin '{name}': {}", problem.text),
                            ..problem
                        }));
                    }
                    None => wrong.push(error_of(format!(
                        "{at}: '{source}' leads to nothing inside of the marketplace"
                    ))),
                }
            }
            Some(Value::Object(source)) if source.get("source").is_some_and(Value::is_string) => {
                let text = format!("{at}: '{name}' is to be fetched from elsewhere, which is not done here");
                wrong.push(Wrong { is_error: false, text });
            }
            _ => wrong
                .push(error_of(format!("{at}: `source` must be a path that begins with ./, or an object"))),
        }
    }
    wrong
}

/// What is wrong with a plugin, also with what it brings.
fn wrong_with_plugin(root: &Path, entry: &Map<String, Value>) -> Vec<Wrong> {
    let plugin = match Plugin::read_listed(root, "validated", &root.join("data"), entry) {
        Ok(plugin) => plugin,
        Err(problem) => return vec![error_of(problem.message)],
    };
    let mut wrong: Vec<Wrong> =
        plugin.problems.iter().map(|problem| error_of(problem.message.clone())).collect();
    if !root.join(MANIFEST).exists() && entry.is_empty() {
        wrong.push(Wrong {
            is_error: false,
            text: format!("{MANIFEST} is missing: the folder's name is the plugin's"),
        });
    }
    if plugin.version.is_none() {
        wrong.push(Wrong { is_error: false, text: "`version` is missing".to_owned() });
    }
    let servers = pelton_mcp::servers_of_plugin(&plugin, |_| None);
    wrong.extend(
        servers.errors.into_iter().map(|(name, why)| error_of(format!("the MCP server '{name}' {why}"))),
    );
    let mut options = Options::new(root, Endpoint::new("http://127.0.0.1", Auth::None));
    wrong.extend(options.add_plugin(plugin).into_iter().map(|problem| error_of(problem.to_string())));
    wrong
}

fn error_of(text: String) -> Wrong {
    Wrong { is_error: true, text }
}
