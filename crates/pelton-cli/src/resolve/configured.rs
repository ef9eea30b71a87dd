//! Everything that is configured here, as it is written: for whoever looks through it. Nothing is told, and nothing run.

use std::path::{Path, PathBuf};

use pelton::settings::{Finding, FindingKind, Weight};
use pelton::tools::AgentDefinition;
use pelton::{Options, agent_files_in};
use pelton_mcp::{Reach, read_servers, servers_of_plugin};
use pelton_model::{Auth, Endpoint};

use super::env::Env;
use super::layers::{Layer, Sources, as_written, layers};
use super::manner::styles;
use super::{mcp, plugins, skills, working_directory};
use crate::args::RunArgs;
use crate::fail::Fail;

/// What the entry of a server may say.
const SERVER_KEYS: [&str; 11] = [
    "type",
    "command",
    "args",
    "env",
    "url",
    "headers",
    "headersHelper",
    "oauth",
    "timeout",
    "alwaysLoad",
    "description",
];

/// What is configured for a session that is started here.
pub(crate) struct Configured {
    pub cwd: PathBuf,
    /// The settings, the weakest first.
    pub layers: Vec<Layer>,
    /// The names of servers of tools.
    pub servers: Vec<String>,
    /// Files that describe agents, and what they describe.
    pub agents: Vec<(PathBuf, Option<AgentDefinition>)>,
    /// Servers and plugins that were wanted and cannot be had.
    pub unusable: Vec<Finding>,
}

/// The settings that count here, the weakest first.
pub(crate) fn layers_here(args: &RunArgs, env: &Env) -> Result<Vec<Layer>, Fail> {
    layers(args, env, &working_directory()?)
}

pub(crate) fn configured(args: &RunArgs, env: &Env) -> Result<Configured, Fail> {
    let cwd = working_directory()?;
    let layers = layers(args, env, &cwd)?;
    let (mut servers, mut unusable) = (Vec::new(), Vec::new());
    let mut complain = |file: String, text: String| {
        unusable.push(Finding::new(FindingKind::Unusable, Weight::Warning, file, None, text));
    };
    // What cannot be read in them is a finding of its own.
    let written = as_written(&layers);
    let (plugin_settings, manner) = (written.plugins, written.manner);
    let variable = |name: &str| env.get(name).map(str::to_owned);
    for found in mcp::configured(env, &cwd, &Sources::said(args.setting_sources.as_deref())?) {
        let file = found.file.display().to_string();
        match found.servers {
            Err(why) => complain(file, format!("{why}: none of its servers is used")),
            Ok(written) => {
                let read = read_servers(&written, found.scope, variable);
                for (name, entry) in written.as_object().into_iter().flatten() {
                    let keys = entry.as_object().into_iter().flat_map(|entry| entry.keys());
                    for key in keys.filter(|key| !SERVER_KEYS.contains(&key.as_str())) {
                        complain(
                            file.clone(),
                            format!("the MCP server `{name}` has a key that nobody knows: `{key}`"),
                        );
                    }
                }
                for server in &read.servers {
                    if let Reach::Program(program) = &server.reach
                        && !is_there(&program.command, &cwd, env)
                    {
                        let (name, command) = (&server.name, &program.command);
                        complain(
                            file.clone(),
                            format!("the MCP server `{name}` cannot be started: there is no `{command}`"),
                        );
                    }
                }
                servers.extend(read.servers.into_iter().map(|server| server.name));
                for (name, why) in read.errors {
                    complain(file.clone(), format!("the MCP server `{name}` is not used: {why}"));
                }
                read.warnings.into_iter().for_each(|warning| complain(file.clone(), warning));
            }
        }
    }
    let project = super::config_root(args, &cwd)?;
    let (wanted, errors) = plugins::plugins(args, env, (&cwd, &project), &plugin_settings);
    for error in errors {
        let at = error.path.map_or_else(|| "enabledPlugins".to_owned(), |path| path.display().to_string());
        complain(at, format!("the plugin {} is not used: {}", error.plugin, error.problem.message));
    }
    let mut options = Options::new(&cwd, Endpoint::new("http://127.0.0.1", Auth::None));
    for plugin in wanted {
        let file = plugin.root.display().to_string();
        servers.extend(servers_of_plugin(&plugin, variable).servers.into_iter().map(|server| server.name));
        for problem in options.add_plugin(plugin) {
            complain(file.clone(), problem.to_string());
        }
    }
    let agents = agent_files_in(&skills::agent_dirs(args, env, &cwd)?);
    let is_described =
        |name: &str| agents.iter().any(|(_, agent)| agent.as_ref().is_some_and(|agent| agent.name == name));
    if let Some(name) = manner.agent.filter(|name| !is_described(name) && !options.work_as(name)) {
        complain("agent".to_owned(), format!("there is no agent `{name}` to work as: none is used"));
    }
    options.add_styles(styles(args, env, &cwd)?);
    if let Some(name) = manner.output_style.filter(|name| !options.choose_style(name)) {
        let names = options.style_names().join(", ");
        complain("outputStyle".to_owned(), format!("there is no output style `{name}` (there are: {names})"));
    }
    Ok(Configured { cwd, layers, servers, agents, unusable })
}

/// Whether a program can be found. What a variable leaves open is nobody's mistake.
fn is_there(command: &str, cwd: &Path, env: &Env) -> bool {
    if command.contains('$') {
        return true;
    }
    if command.contains('/') {
        return cwd.join(command).is_file();
    }
    let path = env.path("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(command).is_file())
}
