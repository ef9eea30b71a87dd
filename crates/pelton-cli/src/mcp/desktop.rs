//! The servers that the desktop application has, taken over.

use std::path::PathBuf;
use std::process::ExitCode;

use pelton_mcp::{Scope, read_servers};
use serde_json::{Value, json};

use super::kept::Kept;
use super::say;
use crate::args::FromDesktopArgs;
use crate::fail::Fail;
use crate::resolve::{self, Env, text_of};

/// Where it keeps them below the home, by systems.
const USUAL: [&str; 2] = [
    "Library/Application Support/Claude/claude_desktop_config.json",
    ".config/Claude/claude_desktop_config.json",
];
/// The most bytes of its file.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

pub(super) fn add(said: &FromDesktopArgs) -> Result<ExitCode, Fail> {
    let (env, cwd) = (Env::of_process(), resolve::working_directory()?);
    let file = match &said.file {
        Some(file) => cwd.join(file),
        None => usual(&env)?,
    };
    let about = |why: String| Fail::new(format!("{}: {why}", file.display()));
    let text = text_of(&file, FILE_BYTES_MAX).map_err(about)?;
    let text = text.ok_or_else(|| about("there is no such file".to_owned()))?;
    let mut all: Value =
        serde_json::from_str(&text).map_err(|error| about(format!("is not JSON: {error}")))?;
    let Value::Object(servers) = all["mcpServers"].take() else {
        return Err(about("it names no servers (`mcpServers`)".to_owned()));
    };
    if let Some(name) = said.names.iter().find(|name| !servers.contains_key(*name)) {
        return Err(about(format!("it has no server '{name}'")));
    }
    let kept = Kept::at(said.scope, &env, &cwd).map_err(Fail::new)?;
    let mut lines = Vec::new();
    for (name, entry) in servers {
        if !said.names.is_empty() && !said.names.contains(&name) {
            continue;
        }
        // What a session could not use is not written down.
        let read = read_servers(&json!({ (&name): entry }), Scope::User, |_| None);
        let added = match read.errors.first() {
            Some((_, why)) => Err(why.clone()),
            None => kept.add(&name, &entry),
        };
        lines.push(match added {
            Ok(()) => format!("Added the MCP server {name} ({} scope)", said.scope.name()),
            Err(why) => format!("Not added: {name}: {why}"),
        });
    }
    let is_any = lines.iter().any(|line| line.starts_with("Added"));
    if lines.is_empty() {
        lines.push(format!("{} names no servers.", file.display()));
    }
    say(&lines.join("\n"))?;
    Ok(if is_any { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn usual(env: &Env) -> Result<PathBuf, Fail> {
    let home = env.path("HOME").ok_or_else(|| Fail::new("set HOME, or say --file"))?;
    let places: Vec<PathBuf> = USUAL.iter().map(|place| home.join(place)).collect();
    places.iter().find(|place| place.is_file()).cloned().ok_or_else(|| {
        let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
        Fail::new(format!("the desktop application keeps nothing in {}: say --file", places.join(" or ")))
    })
}
