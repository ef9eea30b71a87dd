//! Plugins of a session that runs: looked at again, and more of them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use futures::FutureExt;
use pelton::plugins::Plugin;
use pelton::tools::{AgentDefinition, ToolServer as _};
use serde_json::{Value, json};

use super::files::on_a_thread;
use super::initialize;
use super::limits::PLUGINS_ADDED_MAX;
use super::requests::{Handles, Served};
use crate::frames::{listed, plugin_row};

/// A plugin that a client wants to have.
struct Wanted {
    path: PathBuf,
    /// Its servers of tools are not wanted.
    without_servers: bool,
}

/// One that has joined, as clients are told of it.
pub(super) struct Added {
    plugin: Value,
    agents: Vec<Value>,
}

/// What a client wants to have besides.
fn wanted(body: &Value) -> Result<Vec<Wanted>, String> {
    let said = match body.get("add_plugins") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(said) => said,
    };
    let wrong = |what: &str| format!("reload_plugins: add_plugins {what}");
    let entries = said.as_array().ok_or_else(|| wrong("is no list"))?;
    if entries.len() > PLUGINS_ADDED_MAX {
        return Err(wrong(&format!("has more than {PLUGINS_ADDED_MAX} entries")));
    }
    let one = |entry: &Value| {
        let path = entry["path"].as_str().filter(|_| entry["type"] == "local");
        let path = path.ok_or_else(|| wrong("has an entry that is no {\"type\": \"local\", \"path\": …}"))?;
        if !Path::new(path).is_absolute() {
            return Err(wrong(&format!("names {path}, which is no whole path")));
        }
        Ok(Wanted { path: path.into(), without_servers: entry["skipMcpDiscovery"] == true })
    };
    entries.iter().map(one).collect()
}

/// What clients know the refusal to reload by.
pub(super) const IS_BUSY: &str = "reload_plugins_busy";

impl Handles {
    /// What plugins bring is looked for again: skills and commands. Those that the client adds bring all they have; the model is
    /// told of their agents with the next prompt.
    pub(super) fn reload_plugins(&self, body: &Value) -> Served {
        let is_on = |name: &str| body.get(name).and_then(Value::as_bool) == Some(true);
        if is_on("refuse_if_busy") && self.is_busy() {
            return Served::Now(Err(format!("{IS_BUSY}: the session is at work")));
        }
        let wanted = match wanted(body) {
            Ok(wanted) => wanted,
            Err(why) => return Served::Now(Err(why)),
        };
        let holds = is_on("hold_on_cache_impact");
        let (menu, about, joins) = (self.menu.clone(), self.about.clone(), self.joins.clone());
        let (servers, cwd) = (self.servers.clone(), self.cwd.clone());
        let added = Arc::clone(&self.plugins_added);
        Served::Later(
            async move {
                // All of them are read before any of them joins.
                let data = servers.plugin_data(&cwd);
                let read = on_a_thread(move || read(wanted, &data)).await?;
                let brought = read.iter().flat_map(|plugin| servers.of_plugin(plugin)).collect::<Vec<_>>();
                let names: Vec<String> = brought.iter().map(|server| server.name().to_owned()).collect();
                let is_held = holds && !names.is_empty();
                if !is_held {
                    for plugin in read {
                        let row = Added { plugin: plugin_row(&plugin), agents: agent_rows(&plugin.agents()) };
                        joins.add(plugin).map_err(|why| format!("reload_plugins: {why}"))?;
                        added.lock().unwrap_or_else(PoisonError::into_inner).push(row);
                    }
                    servers.join(brought).await;
                }
                let (mut plugins, mut agents) = (rows(&about["plugins"]), rows(&about["agents"]));
                for joined in added.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                    plugins.push(joined.plugin.clone());
                    agents.extend(joined.agents.iter().cloned());
                }
                let mut reloaded = json!({
                    "commands": listed(&menu.look().await),
                    "agents": agents,
                    "plugins": plugins,
                    "mcpServers": servers.status()["mcpServers"],
                    "error_count": about["plugin_errors"].as_u64().unwrap_or_default(),
                });
                if holds {
                    reloaded["held"] = json!(is_held);
                }
                if is_held {
                    reloaded["cache_impact"] = json!({
                        "mcp_servers_added": names,
                        "mcp_servers_removed": [],
                        "lsp_tool_change": null,
                    });
                }
                Ok(reloaded)
            }
            .boxed(),
        )
    }
}

fn rows(list: &Value) -> Vec<Value> {
    list.as_array().cloned().unwrap_or_default()
}

fn agent_rows(agents: &[AgentDefinition]) -> Vec<Value> {
    agents.iter().map(initialize::agent_row).collect()
}

fn read(wanted: Vec<Wanted>, data: &Path) -> Result<Vec<Plugin>, String> {
    let one = |wanted: Wanted| {
        let mut plugin = Plugin::read(&wanted.path, "inline", data)
            .map_err(|problem| format!("reload_plugins: {}", problem.message))?;
        if wanted.without_servers {
            plugin.servers.clear();
        }
        Ok(plugin)
    };
    wanted.into_iter().map(one).collect()
}
