//! Who serves tools, as the command line says it.

use std::path::Path;

use serde_json::Value;

use crate::args::RunArgs;
use crate::fail::{Fail, tell};

/// The most bytes of a file that names servers.
const CONFIG_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// The servers of a run, by how they are reached.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Servers {
    /// Inside the program at the other end of the pipe.
    pub of_client: Vec<String>,
    /// In ways this version does not know, and which way that is.
    pub out_of_reach: Vec<(String, String)>,
}

/// Reads what `--mcp-config` says: files, or JSON.
pub(crate) fn servers(args: &RunArgs, cwd: &Path) -> Result<Servers, Fail> {
    let mut servers = Servers::default();
    for said in args.client.mcp_config.iter().filter(|said| !said.trim().is_empty()) {
        let (name, text) = if said.trim_start().starts_with('{') {
            ("--mcp-config".to_owned(), said.clone())
        } else {
            let file = cwd.join(said);
            let name = format!("--mcp-config {}", file.display());
            match std::fs::metadata(&file) {
                Ok(about) if about.len() > CONFIG_BYTES_MAX => {
                    return Err(Fail::at_start(format!("{name} is larger than {CONFIG_BYTES_MAX} bytes")));
                }
                _ => {}
            }
            let text = std::fs::read_to_string(&file)
                .map_err(|error| Fail::at_start(format!("{name} cannot be read: {error}")))?;
            (name, text)
        };
        read(&text, &mut servers).map_err(|why| Fail::at_start(format!("{name}: {why}")))?;
    }
    Ok(servers)
}

/// Says which servers cannot be reached.
pub(crate) fn tell_out_of_reach(servers: &Servers) {
    for (name, why) in servers.beyond() {
        tell(&format!("notice: the MCP server '{name}' is not used: {why}"));
    }
}

impl Servers {
    /// The servers out of reach, and why they are.
    pub fn beyond(&self) -> Vec<(String, String)> {
        let why = |kind: &String| format!("this version does not speak to servers of type {kind}");
        self.out_of_reach.iter().map(|(name, kind)| (name.clone(), why(kind))).collect()
    }
}

fn read(text: &str, servers: &mut Servers) -> Result<(), String> {
    let json: Value = serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
    let named = json.get("mcpServers").and_then(Value::as_object);
    let named = named.ok_or_else(|| "has no object `mcpServers`".to_owned())?;
    for (name, config) in named {
        let kind = match config.get("type").and_then(Value::as_str) {
            Some(kind) => kind,
            None if config.get("command").is_some() => "stdio",
            None => return Err(format!("the server '{name}' has neither a type nor a command")),
        };
        match kind {
            "sdk" => servers.of_client.push(name.clone()),
            kind => servers.out_of_reach.push((name.clone(), kind.to_owned())),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_told_apart_by_how_they_are_reached() {
        let mut servers = Servers::default();
        let text = r#"{"mcpServers": {"calc": {"type": "sdk", "name": "calc"}, "files": {"command": "serve"}, "web": {"type": "http", "url": "http://x"}}}"#;
        read(text, &mut servers).unwrap();
        assert_eq!(servers.of_client, ["calc"]);
        let beyond: Vec<String> =
            servers.out_of_reach.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
        assert_eq!(beyond, ["files stdio", "web http"]);
        for bad in ["", "[]", "{}", r#"{"mcpServers": {"x": {"url": "http://x"}}}"#] {
            assert!(read(bad, &mut Servers::default()).is_err(), "{bad}");
        }
    }
}
