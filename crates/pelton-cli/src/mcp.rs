//! `pelton mcp`: servers of tools, kept and looked at; and this program as one of them.

mod desktop; // the servers of another application
mod kept; // where entries are
mod login; // who we are there
mod serve; // our tools, for others

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use pelton::tools::{ServerState, Tool, ToolServer};
use pelton_mcp::{Scope, Server, connect_all, read_servers};
use serde_json::{Map, Value, json};

use self::kept::{Kept, PLACES};
use crate::args::{AddArgs, AddJsonArgs, KeptIn, McpCommand, RemoveArgs, RunArgs, Transport};
use crate::fail::Fail;
use crate::finish;
use crate::resolve::{self, Env, Trust};

pub(crate) fn run(command: &McpCommand, args: &RunArgs) -> Result<ExitCode, Fail> {
    match command {
        McpCommand::Add(said) => add(&said.name, &entry(said)?, said.scope),
        McpCommand::AddJson(said) => add(&said.name, &entry_in_json(said)?, said.scope),
        McpCommand::AddFromClaudeDesktop(said) => desktop::add(said),
        McpCommand::ResetProjectChoices => reset_choices(),
        McpCommand::List => list(args),
        McpCommand::Get { name } => get(name, args),
        McpCommand::Remove(said) => remove(said),
        McpCommand::Test { names } => finish(test(names, args)),
        McpCommand::Login(said) => finish(login::login(said, args)),
        McpCommand::Logout { name } => login::logout(name, args),
        McpCommand::Serve(said) => finish(serve::serve(&said.run)),
    }
}

/// The entry that the options describe.
fn entry(said: &AddArgs) -> Result<Value, Fail> {
    let mut entry = Map::new();
    let AddArgs { transport, env, headers, timeout, target, .. } = said;
    let (first, rest) =
        target.split_first().ok_or_else(|| Fail::new("say what is started, or an address"))?;
    match transport {
        Transport::Stdio => {
            if !headers.is_empty() {
                return Err(Fail::new("--header is for servers at an address: say --transport http"));
            }
            if first.starts_with("http://") || first.starts_with("https://") {
                return Err(Fail::new(format!("'{first}' is an address: say --transport http (or sse)")));
            }
            entry.insert("type".to_owned(), json!("stdio"));
            entry.insert("command".to_owned(), json!(first));
            entry.insert("args".to_owned(), json!(rest));
            let env = env.iter().map(|said| pair(said, '=', "--env KEY=VALUE"));
            let env = env.collect::<Result<Map<_, _>, _>>()?;
            entry.insert("env".to_owned(), Value::Object(env));
        }
        Transport::Http | Transport::Sse => {
            if !env.is_empty() || !rest.is_empty() {
                return Err(Fail::new(
                    "a server at an address is started by nobody: it takes one address, and no --env",
                ));
            }
            let kind = if *transport == Transport::Http { "http" } else { "sse" };
            entry.insert("type".to_owned(), json!(kind));
            entry.insert("url".to_owned(), json!(first));
            if !headers.is_empty() {
                let headers = headers.iter().map(|said| pair(said, ':', "--header \"Name: value\""));
                let headers = headers.collect::<Result<Map<_, _>, _>>()?;
                entry.insert("headers".to_owned(), Value::Object(headers));
            }
        }
    }
    if let Some(timeout) = timeout {
        entry.insert("timeout".to_owned(), json!(timeout));
    }
    Ok(Value::Object(entry))
}

fn pair(said: &str, sign: char, form: &str) -> Result<(String, Value), Fail> {
    let (name, value) = said.split_once(sign).unwrap_or_default();
    match name.trim() {
        "" => Err(Fail::new(format!("'{said}' is not of the form {form}"))),
        name if sign == ':' => Ok((name.to_owned(), json!(value.trim()))),
        name => Ok((name.to_owned(), json!(value))),
    }
}

fn entry_in_json(said: &AddJsonArgs) -> Result<Value, Fail> {
    serde_json::from_str(&said.json).map_err(|error| Fail::new(format!("the entry is not JSON: {error}")))
}

fn add(name: &str, entry: &Value, scope: KeptIn) -> Result<ExitCode, Fail> {
    // What a session could not use is not written down.
    let read = read_servers(&json!({ (name): entry }), Scope::User, |_| None);
    if let Some((name, why)) = read.errors.first() {
        return Err(Fail::new(format!("the MCP server '{name}' {why}")));
    }
    if !read.of_client.is_empty() {
        return Err(Fail::new("a server of type sdk is inside a program: that program names it"));
    }
    let (env, cwd) = (Env::of_process(), resolve::working_directory()?);
    let kept = Kept::at(scope, &env, &cwd).map_err(Fail::new)?;
    kept.add(name, entry).map_err(Fail::new)?;
    say(&format!("Added the MCP server {name} ({} scope): {}", scope.name(), kept.file.display()))
}

fn remove(said: &RemoveArgs) -> Result<ExitCode, Fail> {
    let (env, cwd) = (Env::of_process(), resolve::working_directory()?);
    let name = &said.name;
    let mut found = Vec::new();
    for scope in PLACES.into_iter().filter(|scope| said.scope.is_none_or(|said| said == *scope)) {
        let kept = Kept::at(scope, &env, &cwd).map_err(Fail::new)?;
        if kept.entries().map_err(Fail::new)?.contains_key(name) {
            found.push((scope, kept));
        }
    }
    match &found[..] {
        [] => {
            let place =
                said.scope.map_or_else(|| "any scope".to_owned(), |scope| format!("{} scope", scope.name()));
            Err(Fail::new(format!("there is no MCP server '{name}' in {place}: see 'pelton mcp list'")))
        }
        [(scope, kept)] => {
            kept.remove(name).map_err(Fail::new)?;
            say(&format!("Removed the MCP server {name} ({} scope): {}", scope.name(), kept.file.display()))
        }
        more => {
            let scopes: Vec<&str> = more.iter().map(|(scope, _)| scope.name()).collect();
            Err(Fail::new(format!(
                "the MCP server '{name}' is in several scopes: say --scope {}",
                scopes.join(" or ")
            )))
        }
    }
}

/// What the user has said about the servers of the project is forgotten, where it was said: when it was trusted, and in settings.
fn reset_choices() -> Result<ExitCode, Fail> {
    let (env, cwd) = (Env::of_process(), resolve::working_directory()?);
    let trust = Trust::in_dir(&env, &cwd);
    trust.forget_servers(&env).map_err(Fail::new)?;
    let root = trust.root().display();
    say(&format!(
        "What was said about the MCP servers that {root} brings is forgotten: they are asked about again."
    ))
}

fn list(args: &RunArgs) -> Result<ExitCode, Fail> {
    let servers = resolve::servers(args, &Env::of_process())?;
    if servers.is_empty() {
        return say("No MCP servers: add one with 'pelton mcp add' (see 'pelton mcp add --help').");
    }
    let line = |server: &Arc<Server>| {
        let wrong = server.error().map(|why| format!(" - not used: {why}")).unwrap_or_default();
        format!("{}: {} ({}){wrong}", server.name(), target(server), server.config().scope.name())
    };
    say(&servers.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn get(name: &str, args: &RunArgs) -> Result<ExitCode, Fail> {
    let servers = resolve::servers(args, &Env::of_process())?;
    let server = servers.iter().find(|server| server.name() == name).ok_or_else(|| unknown(name))?;
    let written = &server.config().written;
    let mut lines = vec![format!("{name}:"), format!("  scope: {}", server.config().scope.name())];
    lines.push(format!("  type: {}", written["type"].as_str().unwrap_or("stdio")));
    lines.push(format!("  target: {}", target(server)));
    // Their values may be secret.
    for (what, key) in [("environment", "env"), ("headers", "headers")] {
        let names: Vec<&str> =
            written[key].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        if !names.is_empty() {
            lines.push(format!("  {what}: {}", names.join(", ")));
        }
    }
    if let Some(why) = server.error() {
        lines.push(format!("  not used: {why}"));
    }
    say(&lines.join("\n"))
}

/// Connects, and says what came of it.
async fn test(names: &[String], args: &RunArgs) -> Result<ExitCode, Fail> {
    let env = Env::of_process();
    let mut servers = resolve::servers(args, &env)?;
    let mut lines = Vec::new();
    for name in names {
        servers.iter().find(|server| server.name() == name).ok_or_else(|| unknown(name))?;
    }
    if !names.is_empty() {
        servers.retain(|server| names.iter().any(|name| name == server.name()));
    } else if !Trust::in_dir(&env, &resolve::working_directory()?).is_given() {
        // Nobody has said that what this directory brings may be started.
        let (brought, own): (Vec<_>, Vec<_>) =
            servers.into_iter().partition(|server| server.config().scope == Scope::Project);
        servers = own;
        lines.extend(brought.iter().map(|server| {
            let name = server.name();
            format!("{name}: not tried, for it comes with a directory that is not trusted: say 'pelton mcp test {name}'")
        }));
    }
    if servers.is_empty() && lines.is_empty() {
        return say("No MCP servers.");
    }
    connect_all(servers.clone()).await;
    for server in &servers {
        lines.push(match server.state() {
            ServerState::Connected => format!("{}: connected, {}", server.name(), offered(server)),
            state => {
                format!("{}: {}: {}", server.name(), state.name(), server.error().unwrap_or_default())
            }
        });
    }
    say(&lines.join("\n"))?;
    let all_there = servers.iter().all(|server| server.state() == ServerState::Connected);
    for server in &servers {
        server.close().await;
    }
    Ok(if all_there { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn offered(server: &Arc<Server>) -> String {
    let tools = server.tools();
    let tools: Vec<&str> = tools.iter().map(|tool: &Arc<dyn Tool>| tool.spec().name).collect();
    let commands = server.commands();
    let prompts: Vec<&str> = commands.iter().map(|command| command.spec().name).collect();
    let mut offered =
        vec![format!("tools: {}", if tools.is_empty() { "none".to_owned() } else { tools.join(", ") })];
    if !prompts.is_empty() {
        offered.push(format!("prompts: {}", prompts.join(", ")));
    }
    if server.has_resources() {
        offered.push("resources".to_owned());
    }
    // What of its tools cannot be used.
    offered.extend(server.status()["error"].as_str().map(str::to_owned));
    offered.join("; ")
}

/// What is started or asked, as it was written.
fn target(server: &Server) -> String {
    let written = &server.config().written;
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match written.get("url") {
        Some(url) => word(url),
        None => {
            let args = written["args"].as_array().into_iter().flatten().map(word);
            let words: Vec<String> = std::iter::once(word(&written["command"])).chain(args).collect();
            words.join(" ")
        }
    }
}

fn unknown(name: &str) -> Fail {
    Fail::new(format!("there is no MCP server '{name}' here: see 'pelton mcp list'"))
}

/// Words that may come from files and servers, made safe for a terminal.
fn say(text: &str) -> Result<ExitCode, Fail> {
    let shown: Vec<String> = text.lines().map(pelton_serve::plain).map(|line| line.to_string()).collect();
    match writeln!(std::io::stdout(), "{}", shown.join("\n")) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Fail::new(format!("cannot write to standard output: {error}"))),
    }
}
