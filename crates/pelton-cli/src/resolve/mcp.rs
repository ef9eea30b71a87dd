//! Who serves tools: what the command line, the user, the project and the administrator name, and what of it counts.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton::Options;
use pelton::plugins::Plugin;
use pelton::process::is_withheld;
use pelton::settings::{Approval, Brought, ServerSettings, Settings, Treatment, Watched, untrusted};
use pelton::tools::{MadeServers, ServerMaker, ToolServer};
use pelton_mcp::{
    Reach, Read, Scope, Server, ServerConfig, Surroundings, connect_all, read_servers, servers_of_plugin,
};
use pelton_model::HttpTransport;
use pelton_serve::ServersNamed;
use serde_json::Value;

use super::env::Env;
use super::layers::{Sources, said_in_json, text_of};
use super::logins::{self, LoginFile};
use super::memory::MANAGED_DIR;
use super::network::http_options;
use super::sessions::config_dir;
use super::trust::{Trust, state_file};
use crate::args::RunArgs;
use crate::fail::{Fail, tell};

/// The most bytes of a file that names servers.
const CONFIG_BYTES_MAX: u64 = 2 * 1024 * 1024;
/// The most bytes of the file that programs keep their state in.
const STATE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The servers of a run.
pub(crate) struct Servers {
    /// Inside the program at the other end of the pipe.
    pub of_client: Vec<String>,
    /// All others.
    pub outside: Vec<Arc<Server>>,
    /// What a client may name later.
    pub named_later: ServersNamed,
    /// What agents bring.
    pub of_agents: OfAgents,
    /// The first request does not wait for those that were named for this run.
    pub are_not_waited_for: bool,
}

/// Finds out who serves.
pub(super) fn servers(
    args: &RunArgs,
    env: &Env,
    cwd: &Path,
    settings: &Settings,
    plugins: &[Plugin],
    watched: Watched,
) -> Result<Named, Fail> {
    let variable = |name: &str| env.get(name).map(str::to_owned);
    let mut named = Named { settings: settings.servers.clone(), ..Named::default() };
    let managed = Path::new(MANAGED_DIR).join("managed-mcp.json");
    if let Some(written) = in_file(&managed, CONFIG_BYTES_MAX).unwrap_or_else(|why| not_used(&managed, &why))
    {
        // The administrator's list is the only one then.
        named.add(read_servers(&written["mcpServers"], Scope::Managed, variable), Scope::Managed);
        named.is_closed = true;
        return Ok(named);
    }
    if let Some(brought) = &settings.policy.servers_brought {
        // Their names are the administrator's, whatever else is called so.
        named.add(read_servers(brought, Scope::Managed, variable), Scope::Managed);
    }
    for said in args.client.mcp_config.iter().filter(|said| !said.trim().is_empty()) {
        let written = said_on_command_line(said, cwd)?;
        named.add(read_servers(&written, Scope::Dynamic, variable), Scope::Dynamic);
    }
    if !args.client.strict_mcp_config && !super::alone(args, env) {
        let sources = Sources::said(args.setting_sources.as_deref())?;
        let project = super::config_root(args, cwd)?;
        let plugins_only = settings.policy.plugins_only.is_some_and(|only| only.servers);
        for Found { scope, file, servers } in configured(env, &project, &sources) {
            if plugins_only {
                continue;
            }
            let Ok(written) = servers.map_err(|why| not_used::<()>(&file, &why)) else { continue };
            let read = match scope {
                Scope::Project => {
                    let mut read = of_project(&written, env, &project, settings);
                    if untrusted(Brought::Servers, watched) != Treatment::Used {
                        keep_approved(&mut read, env, &file, settings);
                    }
                    read
                }
                _ => read_servers(&written, scope, variable),
            };
            named.add(read, scope);
        }
        for plugin in plugins {
            let variable = |name: &str| not_withheld(env, name);
            named.add(servers_of_plugin(plugin, variable).without(&named.servers), Scope::Plugin);
        }
    }
    named.keep_what_may_be_used();
    Ok(named)
}

/// What a project names. Whoever opened it may not have read it: it is not told the keys of whoever pays, and no command of
/// its own makes headers before its directory is trusted.
fn of_project(written: &Value, env: &Env, cwd: &Path, settings: &Settings) -> Read {
    let mut read = read_servers(written, Scope::Project, |name| not_withheld(env, name));
    read.servers.retain(|server| !settings.servers.rejected.contains(&server.name));
    if untrusted(Brought::AgentExtras, Watched::Unattended) != Treatment::Used
        && !Trust::in_dir(env, cwd).is_given()
    {
        for server in &mut read.servers {
            if let Reach::Http(remote) | Reach::Sse(remote) = &mut server.reach
                && remote.headers_helper.take().is_some()
            {
                read.warnings.push(format!(
                    "the headersHelper of the MCP server '{}' comes with a directory that is not trusted, so it is not run",
                    server.name
                ));
            }
        }
    }
    read
}

/// Where somebody could have been asked, only those servers of a project are started that they have approved as they are now, or
/// that their own settings approve.
fn keep_approved(read: &mut Read, env: &Env, file: &Path, settings: &Settings) {
    let trust = Trust::in_dir(env, file.parent().unwrap_or(file));
    let seen = if trust.is_given() { trust.servers(env) } else { Vec::new() };
    let said = &settings.servers;
    let (approved, left): (Vec<_>, Vec<_>) =
        std::mem::take(&mut read.servers).into_iter().partition(|server| {
            said.approve_all == Some(true)
                || said.approved.contains(&server.name)
                || seen.iter().any(|(name, approval)| *name == server.name && *approval == Approval::Given)
        });
    read.servers = approved;
    read.warnings.extend(left.iter().map(|server| {
        format!(
            "the MCP server '{}' comes with a directory and is not approved, so it is not started (pelton trust)",
            server.name
        )
    }));
}

/// What a variable stands for, if it is no key of whoever pays.
fn not_withheld(env: &Env, name: &str) -> Option<String> {
    env.get(name).filter(|_| !is_withheld(OsStr::new(name))).map(str::to_owned)
}

/// Servers as they were named, each name once.
#[derive(Default)]
pub(super) struct Named {
    of_client: Vec<String>,
    servers: Vec<ServerConfig>,
    names: BTreeSet<String>,
    settings: ServerSettings,
    /// Nobody may name more.
    is_closed: bool,
}

impl Named {
    /// Adds what was named in one place. Who came before counts.
    fn add(&mut self, read: Read, scope: Scope) {
        for warning in read.warnings {
            tell(&format!("warning: {warning}"));
        }
        for name in read.of_client {
            if self.names.insert(name.clone()) {
                self.of_client.push(name);
            }
        }
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

    fn keep_what_may_be_used(&mut self) {
        self.servers.retain(|server| {
            let refused = refusal(server, &self.settings);
            if let Some(why) = refused {
                tell(&format!("notice: the MCP server '{}' is not used: {why}", server.name));
            }
            refused.is_none()
        });
    }

    /// The servers, ready to be connected to.
    pub fn in_place(self, options: &Options, env: &Env) -> Result<Servers, Fail> {
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
        surroundings.result_tokens_max = env.number("MAX_MCP_OUTPUT_TOKENS")?;
        surroundings.env_is_bare = env.is_on("CLAUDE_CODE_MCP_ALLOWLIST_ENV");
        let at_once = |name, usual| -> Result<usize, Fail> { Ok(env.number(name)?.unwrap_or(usual)) };
        surroundings.programs_at_once =
            at_once("MCP_SERVER_CONNECTION_BATCH_SIZE", surroundings.programs_at_once)?;
        surroundings.addresses_at_once =
            at_once("MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE", surroundings.addresses_at_once)?;
        surroundings.logins = config_dir(env).map(|dir| Arc::new(LoginFile(dir.join(logins::FILE))) as _);
        surroundings.client_secret = env.get("MCP_CLIENT_SECRET").map(str::to_owned);
        let outside = self.servers.into_iter().map(|server| Server::new(server, surroundings.clone()));
        let outside = outside.collect();
        let of_agents = OfAgents {
            surroundings: surroundings.clone(),
            env: env.clone(),
            settings: self.settings.clone(),
            is_closed: self.is_closed,
        };
        let are_not_waited_for = env.is_on("MCP_CONNECTION_NONBLOCKING");
        let mut named_later = ServersNamed::in_surroundings(surroundings);
        let (env, settings, is_closed) = (env.clone(), self.settings, self.is_closed);
        named_later.plugin_data = config_dir(&env).map(|dir| dir.join("plugins/data"));
        let (plugin_env, plugin_settings) = (env.clone(), settings.clone());
        named_later.of_plugin = Arc::new(move |plugin| {
            let read = servers_of_plugin(plugin, |name| not_withheld(&plugin_env, name));
            without_refused(read, &plugin_settings, is_closed)
        });
        named_later.read = Arc::new(move |written| read_later(written, &env, &settings, is_closed));
        Ok(Servers { of_client: self.of_client, outside, named_later, of_agents, are_not_waited_for })
    }
}

/// Reaches the servers that agents bring.
#[derive(Clone)]
pub(crate) struct OfAgents {
    surroundings: Surroundings,
    env: Env,
    settings: ServerSettings,
    is_closed: bool,
}

impl ServerMaker for OfAgents {
    fn make(&self, written: &Value) -> BoxFuture<'static, MadeServers> {
        // Most agents are described by files of a project: like its servers, theirs are not told the keys of whoever pays.
        let read = read_servers(written, Scope::Dynamic, |name| not_withheld(&self.env, name));
        let Read { servers, errors, warnings, .. } = without_refused(read, &self.settings, self.is_closed);
        let mut made = MadeServers::default();
        made.problems = warnings;
        made.problems.extend(errors.into_iter().map(|(name, why)| format!("the MCP server '{name}' {why}")));
        let surroundings = &self.surroundings;
        let servers: Vec<_> =
            servers.into_iter().map(|server| Server::new(server, surroundings.clone())).collect();
        async move {
            connect_all(servers.clone()).await;
            for server in &servers {
                let error = server.error().map(|why| format!("the MCP server '{}': {why}", server.name()));
                made.problems.extend(error);
            }
            made.servers = servers.into_iter().map(|server| server as Arc<dyn ToolServer>).collect();
            made
        }
        .boxed()
    }
}

/// What a client names while the session runs.
fn read_later(written: &Value, env: &Env, settings: &ServerSettings, is_closed: bool) -> Read {
    let read = read_servers(written, Scope::Dynamic, |name| env.get(name).map(str::to_owned));
    without_refused(read, settings, is_closed)
}

fn without_refused(mut read: Read, settings: &ServerSettings, is_closed: bool) -> Read {
    for server in std::mem::take(&mut read.servers) {
        let closed = is_closed.then_some("only those that the administrator names may be used");
        match closed.or_else(|| refusal(&server, settings)) {
            Some(why) => read.errors.push((server.name, why.to_owned())),
            None => read.servers.push(server),
        }
    }
    read
}

/// Why settings do not let a server be used.
fn refusal(server: &ServerConfig, settings: &ServerSettings) -> Option<&'static str> {
    let (command, url) = match &server.reach {
        Reach::Program(program) => {
            (std::iter::once(&program.command).chain(&program.args).cloned().collect(), None)
        }
        Reach::Http(remote) | Reach::Sse(remote) => (Vec::new(), Some(remote.url.as_str())),
        _ => return None,
    };
    settings.refuses(&server.name, &command, url)
}

/// What `--mcp-config` says: a file, or JSON.
fn said_on_command_line(said: &str, cwd: &Path) -> Result<Value, Fail> {
    let (name, text) = said_in_json("--mcp-config", said, cwd, CONFIG_BYTES_MAX)?;
    let mut written: Value = serde_json::from_str(&text)
        .map_err(|error| Fail::at_start(format!("{name}: is not JSON: {error}")))?;
    match written.get_mut("mcpServers").map(Value::take) {
        Some(servers @ Value::Object(_)) => Ok(servers),
        _ => Err(Fail::at_start(format!("{name}: has no object `mcpServers`"))),
    }
}

/// What one file names.
pub(super) struct Found {
    pub scope: Scope,
    pub file: PathBuf,
    /// The servers as they are written, or why nobody can say.
    pub servers: Result<Value, String>,
}

/// Where a project names servers: in this directory, and above it as far as its repository goes. The nearest first.
pub(super) fn project_files(cwd: &Path) -> Vec<PathBuf> {
    let root = super::project_root(cwd);
    // A further checkout of a repository is not below its root: then it is looked at alone.
    let top = if cwd.starts_with(&root) { root.as_path() } else { cwd };
    let dirs = cwd.ancestors().take_while(|dir| dir.starts_with(top));
    dirs.map(|dir| dir.join(".mcp.json")).collect()
}

/// What files name, the nearest to the user and the project first.
pub(super) fn configured(env: &Env, cwd: &Path, sources: &Sources) -> Vec<Found> {
    let mut found = Vec::new();
    let root = super::project_root(cwd);
    let kept = state_file(env);
    let state = kept.as_ref().map_or(Ok(None), |file| in_file(file, STATE_BYTES_MAX));
    let (state, broken) = match state {
        Ok(state) => (state.unwrap_or_default(), None),
        Err(why) => (Value::Null, Some(why)),
    };
    let in_state = |scope, servers: &Value| {
        let file = kept.clone().unwrap_or_default();
        Found { scope, file, servers: Ok(servers.clone()) }
    };
    if sources.local {
        for dir in [cwd, root.as_path()] {
            let project = dir.to_str().and_then(|dir| state.get("projects")?.get(dir));
            found.extend(project.map(|project| in_state(Scope::Local, &project["mcpServers"])));
        }
    }
    if sources.project {
        found.extend(project_files(cwd).into_iter().filter_map(|file| {
            let servers = in_file(&file, CONFIG_BYTES_MAX).transpose()?;
            let is_empty = |written: &Value| written.as_object().is_some_and(serde_json::Map::is_empty);
            let servers = servers.and_then(|mut written| match written.get_mut("mcpServers") {
                Some(servers) => Ok(servers.take()),
                // Entries without the object around them would be passed over in silence.
                None => is_empty(&written)
                    .then_some(Value::Null)
                    .ok_or_else(|| "has no object `mcpServers`".to_owned()),
            });
            Some(Found { scope: Scope::Project, file, servers })
        }));
    }
    if sources.user {
        found.push(in_state(Scope::User, &state["mcpServers"]));
    }
    if let (Some(why), Some(file)) = (broken, kept) {
        found.push(Found { scope: Scope::User, file, servers: Err(why) });
    }
    found
}

/// Says of a file that nothing of it counts, and why.
fn not_used<T: Default>(file: &Path, why: &str) -> T {
    tell(&format!("warning: {}: {why} (nothing of it counts)", file.display()));
    T::default()
}

/// A file that may be there.
fn in_file(file: &Path, bytes_max: u64) -> Result<Option<Value>, String> {
    let Some(text) = text_of(file, bytes_max)? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|error| format!("is not JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;
    use crate::args::Args;

    fn place() -> (tempfile::TempDir, Env) {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        std::fs::create_dir_all(&home).unwrap();
        std::fs::create_dir_all(dir.path().join("work")).unwrap();
        let said = [
            ("HOME".to_owned(), home.display().to_string()),
            ("ANTHROPIC_API_KEY".to_owned(), "sk-mine".to_owned()),
            ("PORT".to_owned(), "8".to_owned()),
        ];
        let env = Env::of_process().without(&["CLAUDE_CONFIG_DIR"]).with(&said.into());
        (dir, env)
    }

    fn named(env: &Env, work: &Path, words: &[&str]) -> Vec<ServerConfig> {
        let args = Args::parse_from(["pelton"].iter().chain(words)).run;
        servers(&args, env, work, &Settings::default(), &[], Watched::Unattended).unwrap().servers
    }

    #[test]
    fn pit_P6_servers_of_a_project_wait_for_an_approval_where_somebody_could_be_asked() {
        let (dir, env) = place();
        let work = dir.path().join("work");
        let write = |command: &str| {
            let written = json!({"mcpServers": {"theirs": {"command": command}}});
            std::fs::write(work.join(".mcp.json"), written.to_string()).unwrap();
        };
        let count = |settings: &Settings| {
            let args = Args::parse_from(["pelton"]).run;
            servers(&args, &env, &work, settings, &[], Watched::Interactive).unwrap().servers.len()
        };
        let none = Settings::default();
        write("one");
        assert_eq!((count(&none), named(&env, &work, &[]).len()), (0, 1));
        // The user's own settings may approve it by name.
        let mut own = Settings::default();
        own.servers.approved = vec!["theirs".to_owned()];
        assert_eq!(count(&own), 1);
        Trust::in_dir(&env, &work).say(&env, true).unwrap();
        assert_eq!(count(&none), 1);
        write("another");
        assert_eq!(count(&none), 0, "it is not the one that was approved");
    }

    #[test]
    fn a_project_is_not_told_keys_and_runs_no_helper_before_it_is_trusted() {
        let (dir, env) = place();
        let work = dir.path().join("work");
        let written = json!({"mcpServers": {
            "far": {"type": "http", "url": "http://127.0.0.1:${PORT}/", "headers": {"K": "${ANTHROPIC_API_KEY}"}, "headersHelper": "steal"},
            "odd": {"url": "http://x"}}});
        std::fs::write(work.join(".mcp.json"), written.to_string()).unwrap();
        let helper = |servers: &[ServerConfig]| {
            let Reach::Http(remote) = &servers[0].reach else { panic!() };
            assert_eq!(remote.headers, [("K".to_owned(), "${ANTHROPIC_API_KEY}".to_owned())]);
            assert_eq!(remote.url, "http://127.0.0.1:8/");
            remote.headers_helper.clone()
        };
        let servers = named(&env, &work, &[]);
        assert_eq!(helper(&servers), None);
        assert_eq!(servers[1].scope, Scope::Project, "what cannot be used is told where it stands");
        Trust::in_dir(&env, &work).say(&env, true).unwrap();
        assert_eq!(helper(&named(&env, &work, &[])).as_deref(), Some("steal"));
        // Whoever says it on the command line means it.
        let said = json!({"mcpServers": {"mine": {"command": "x", "env": {"K": "${ANTHROPIC_API_KEY}"}}}});
        let servers = named(&env, &work, &["--strict-mcp-config", "--mcp-config", &said.to_string()]);
        let Reach::Program(program) = &servers[0].reach else { panic!() };
        assert_eq!((servers.len(), program.env[0].1.as_str()), (1, "sk-mine"));
    }

    /// Servers that are named above the directory of a session belong to what is trusted there, like its own: who trusts it further in
    /// has seen them, and what is seen in one directory stays seen in the others.
    #[test]
    fn servers_named_above_are_approved_with_the_directory() {
        let (dir, env) = place();
        let work = dir.path().join("work");
        let sub = work.join("sub/deep");
        std::fs::create_dir_all(&sub).unwrap();
        std::fs::create_dir_all(work.join("other")).unwrap();
        std::fs::create_dir(work.join(".git")).unwrap();
        let write = |file: &str, servers: Value| {
            std::fs::write(work.join(file), json!({"mcpServers": servers}).to_string()).unwrap();
        };
        write(".mcp.json", json!({"top": {"command": "x"}, "both": {"command": "x"}}));
        write("sub/.mcp.json", json!({"middle": {"command": "x"}, "both": {"command": "y"}}));
        write("other/.mcp.json", json!({"other": {"command": "x"}}));
        std::fs::write(dir.path().join(".mcp.json"), r#"{"mcpServers": {"outside": {"command": "x"}}}"#)
            .unwrap();
        let told = |dir: &Path| -> Vec<String> {
            let mut names: Vec<String> =
                Trust::in_dir(&env, dir).servers(&env).into_iter().map(|(name, _)| name).collect();
            names.sort();
            names
        };
        assert_eq!(told(&sub), ["both", "middle", "top"]);
        assert_eq!(told(&work), ["both", "top"]);
        let started = |dir: &Path| -> Vec<String> {
            let args = Args::parse_from(["pelton"]).run;
            let named = servers(&args, &env, dir, &Settings::default(), &[], Watched::Interactive).unwrap();
            let mut names: Vec<String> = named.servers.into_iter().map(|server| server.name).collect();
            names.sort();
            names
        };
        assert_eq!(started(&sub), [""; 0], "nobody has seen them");
        Trust::in_dir(&env, &sub).say(&env, true).unwrap();
        assert_eq!(started(&sub), ["both", "middle", "top"]);
        Trust::in_dir(&env, &work.join("other")).say(&env, true).unwrap();
        assert_eq!(started(&work.join("other"))[1..], ["other", "top"]);
        assert_eq!(started(&sub), ["both", "middle", "top"], "what was seen stays seen");
        write(".mcp.json", json!({"top": {"command": "changed"}}));
        assert_eq!(started(&sub), ["middle"], "it is not the one that was approved");
        Trust::in_dir(&env, &sub).say(&env, false).unwrap();
        assert_eq!(started(&sub), [""; 0]);
    }

    #[test]
    fn a_further_checkout_brings_its_own_servers() {
        let (dir, env) = place();
        let (work, side) = (dir.path().join("work"), dir.path().join("side"));
        std::fs::create_dir_all(work.join(".git/worktrees/side")).unwrap();
        std::fs::create_dir(&side).unwrap();
        std::fs::write(side.join(".git"), format!("gitdir: {}/.git/worktrees/side\n", work.display()))
            .unwrap();
        std::fs::write(work.join(".git/worktrees/side/gitdir"), format!("{}/.git\n", side.display()))
            .unwrap();
        std::fs::write(side.join(".mcp.json"), r#"{"mcpServers": {"near": {"command": "x"}}}"#).unwrap();
        let servers = named(&env, &side, &[]);
        assert_eq!(servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["near"]);
    }

    #[test]
    fn the_nearest_to_the_user_and_the_project_counts() {
        let (dir, env) = place();
        let work = dir.path().join("work");
        let entry = |command: &str| json!({"mcpServers": {"it": {"command": command}, (command): {"command": command}}});
        std::fs::write(work.join(".mcp.json"), entry("project").to_string()).unwrap();
        let mut state = entry("user");
        state["projects"] = json!({ (work.to_str().unwrap()): entry("local") });
        std::fs::write(dir.path().join("home/.claude.json"), state.to_string()).unwrap();
        let seen = |words: &[&str]| -> Vec<String> {
            let servers = named(&env, &work, words);
            servers.iter().map(|server| format!("{} {}", server.name, server.scope.name())).collect()
        };
        assert_eq!(seen(&[]), ["it local", "local local", "project project", "user user"]);
        assert_eq!(
            seen(&["--setting-sources", "user,project"]),
            ["it project", "project project", "user user"]
        );
        assert_eq!(seen(&["--bare"]), [""; 0]);
        let said = entry("said").to_string();
        assert_eq!(seen(&["--mcp-config", &said])[..2], ["it dynamic", "said dynamic"]);
    }
}
