//! Who serves tools: what the command line, the user, the project and the administrator name, and what of it counts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pelton::Options;
use pelton::settings::Settings;
use pelton_mcp::{Reach, Read, Scope, Server, ServerConfig, Surroundings, read_servers};
use pelton_model::HttpTransport;
use serde_json::Value;

use super::env::Env;
use super::layers::{Sources, text_of};
use super::memory::MANAGED_DIR;
use super::network::http_options;
use super::repository::Repository;
use super::trust::state_file;
use crate::args::RunArgs;
use crate::fail::{Fail, tell};

/// The most bytes of a file that names servers.
const CONFIG_BYTES_MAX: u64 = 2 * 1024 * 1024;
/// The most bytes of the file that programs keep their state in.
const STATE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The servers of a run.
#[derive(Default)]
pub(crate) struct Servers {
    /// Inside the program at the other end of the pipe.
    pub of_client: Vec<String>,
    /// All others.
    pub outside: Vec<Arc<Server>>,
}

/// Finds out who serves.
pub(super) fn servers(args: &RunArgs, env: &Env, cwd: &Path, settings: &Settings) -> Result<Named, Fail> {
    let variable = |name: &str| env.get(name).map(str::to_owned);
    let mut named = Named::default();
    let managed = Path::new(MANAGED_DIR).join("managed-mcp.json");
    if let Some(written) = in_file(&managed, CONFIG_BYTES_MAX) {
        // The administrator's list is the only one then.
        named.add(read_servers(&written["mcpServers"], Scope::Managed, variable));
        return Ok(named);
    }
    for said in args.client.mcp_config.iter().filter(|said| !said.trim().is_empty()) {
        let written = said_on_command_line(said, cwd)?;
        named.add(read_servers(&written, Scope::Dynamic, variable));
    }
    if !args.client.strict_mcp_config && !super::bare(args, env) {
        let sources = Sources::said(args.setting_sources.as_deref())?;
        for (scope, written) in configured(env, cwd, &sources) {
            let mut read = read_servers(&written, scope, variable);
            if scope == Scope::Project {
                read.servers.retain(|server| !settings.servers.rejected.contains(&server.name));
            }
            named.add(read);
        }
    }
    named.keep(|server| refusal(server, settings));
    Ok(named)
}

/// Servers as they were named, each name once.
#[derive(Default)]
pub(super) struct Named {
    of_client: Vec<String>,
    servers: Vec<ServerConfig>,
    names: BTreeSet<String>,
}

impl Named {
    /// Adds what was named in one place. Who came before counts.
    fn add(&mut self, read: Read) {
        for warning in read.warnings {
            tell(&format!("warning: {warning}"));
        }
        for name in read.of_client {
            if self.names.insert(name.clone()) {
                self.of_client.push(name);
            }
        }
        let scope = read.servers.first().map_or(Scope::Dynamic, |server| server.scope);
        let unusable = read.errors.into_iter().map(|(name, why)| {
            tell(&format!("notice: the MCP server '{name}' is not used: {why}"));
            ServerConfig::unusable(name, why, scope)
        });
        for server in read.servers.into_iter().chain(unusable) {
            if self.names.insert(server.name.clone()) {
                self.servers.push(server);
            }
        }
    }

    fn keep(&mut self, refusal: impl Fn(&ServerConfig) -> Option<&'static str>) {
        self.servers.retain(|server| {
            let refused = refusal(server);
            if let Some(why) = refused {
                tell(&format!("notice: the MCP server '{}' is not used: {why}", server.name));
            }
            refused.is_none()
        });
    }

    /// The servers, ready to be connected to.
    pub fn in_place(self, options: &Options, env: &Env) -> Result<Servers, Fail> {
        if self.servers.is_empty() {
            return Ok(Servers { of_client: self.of_client, outside: Vec::new() });
        }
        let http = HttpTransport::new(http_options(env)?);
        let mut surroundings = Surroundings::new(&options.cwd);
        surroundings.env = env.all().into();
        surroundings.roots.extend(options.additional_dirs.iter().cloned());
        surroundings.http = Arc::new(move || http.client_for_servers().map_err(|error| error.to_string()));
        let time =
            |name| -> Result<Option<Duration>, Fail> { Ok(env.number(name)?.map(Duration::from_millis)) };
        surroundings.connect_time = time("MCP_TIMEOUT")?.unwrap_or(surroundings.connect_time);
        surroundings.call_time = time("MCP_TOOL_TIMEOUT")?.unwrap_or(surroundings.call_time);
        surroundings.silence = time("CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT")?;
        let outside = self.servers.into_iter().map(|server| Server::new(server, surroundings.clone()));
        Ok(Servers { of_client: self.of_client, outside: outside.collect() })
    }
}

/// Why settings do not let a server be used.
fn refusal(server: &ServerConfig, settings: &Settings) -> Option<&'static str> {
    let (command, url) = match &server.reach {
        Reach::Program(program) => {
            (std::iter::once(&program.command).chain(&program.args).cloned().collect(), None)
        }
        Reach::Http(remote) | Reach::Sse(remote) => (Vec::new(), Some(remote.url.as_str())),
        _ => return None,
    };
    settings.servers.refuses(&server.name, &command, url)
}

/// What `--mcp-config` says: a file, or JSON.
fn said_on_command_line(said: &str, cwd: &Path) -> Result<Value, Fail> {
    let (name, text) = if said.trim_start().starts_with('{') {
        ("--mcp-config".to_owned(), said.to_owned())
    } else {
        let file = cwd.join(said);
        let name = format!("--mcp-config {}", file.display());
        match text_of(&file, CONFIG_BYTES_MAX) {
            Ok(Some(text)) => (name, text),
            Ok(None) => return Err(Fail::at_start(format!("{name}: there is no such file"))),
            Err(error) => return Err(Fail::at_start(format!("{name}: {error}"))),
        }
    };
    let mut written: Value = serde_json::from_str(&text)
        .map_err(|error| Fail::at_start(format!("{name}: is not JSON: {error}")))?;
    match written.get_mut("mcpServers").map(Value::take) {
        Some(servers @ Value::Object(_)) => Ok(servers),
        _ => Err(Fail::at_start(format!("{name}: has no object `mcpServers`"))),
    }
}

/// What files name, the nearest to the user and the project first.
fn configured(env: &Env, cwd: &Path, sources: &Sources) -> Vec<(Scope, Value)> {
    let mut found = Vec::new();
    let root = Repository::around(cwd).map_or_else(|| cwd.to_path_buf(), |repository| repository.root);
    let state = state_file(env).and_then(|file| in_file(&file, STATE_BYTES_MAX)).unwrap_or_default();
    if sources.local {
        for dir in [cwd, root.as_path()] {
            let project = dir.to_str().and_then(|dir| state.get("projects")?.get(dir));
            found.extend(project.map(|project| (Scope::Local, project["mcpServers"].clone())));
        }
    }
    if sources.project {
        let dirs = cwd.ancestors().take_while(|dir| dir.starts_with(&root));
        let files: Vec<PathBuf> = dirs.map(|dir| dir.join(".mcp.json")).collect();
        found.extend(files.iter().filter_map(|file| {
            Some((Scope::Project, in_file(file, CONFIG_BYTES_MAX)?["mcpServers"].clone()))
        }));
    }
    if sources.user {
        found.push((Scope::User, state["mcpServers"].clone()));
    }
    found
}

/// A file that may be there. What is wrong with it is told.
fn in_file(file: &Path, bytes_max: u64) -> Option<Value> {
    let complain = |why: &str| tell(&format!("warning: {}: {why} (nothing of it counts)", file.display()));
    match text_of(file, bytes_max) {
        Ok(None) => None,
        Ok(Some(text)) => match serde_json::from_str(&text) {
            Ok(written) => Some(written),
            Err(error) => {
                complain(&format!("is not JSON: {error}"));
                None
            }
        },
        Err(error) => {
            complain(&error);
            None
        }
    }
}
