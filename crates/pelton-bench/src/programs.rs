//! The programs that are measured: the client with no agent in it, Pelton, and others that are on the path.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::places::Place;

/// Bytes that stand for a system prompt and tools in requests of the bare client.
const PADDING_BYTES: usize = 20_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// The limit.
    Bare(PathBuf),
    Pelton(PathBuf),
    /// Another agent, by the name of its command.
    Peer(String),
}

/// What of an answer is written to standard output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// What the program prints at the least.
    Answer,
    /// Every event of the stream, as it comes.
    Events,
}

/// The agents that can be asked for by name: those that speak the same dialect to an address they are given.
pub(crate) const PEERS: [&str; 2] = ["claude", "pi"];

impl Program {
    pub fn name(&self) -> &str {
        match self {
            Self::Bare(_) => "limit",
            Self::Pelton(_) => "pelton",
            Self::Peer(name) => name,
        }
    }

    /// One task in a place, against a model.
    pub fn task(&self, place: &Place, address: &str, shown: Shown) -> Command {
        let mut command = match self {
            Self::Bare(file) => {
                let mut command = Command::new(file);
                command.arg(address).arg(PADDING_BYTES.to_string());
                if shown == Shown::Events {
                    command.arg("--print");
                }
                command
            }
            Self::Pelton(file) => claude_like(Command::new(file), shown),
            Self::Peer(name) if name == "pi" => pi_like(Command::new(name), shown),
            Self::Peer(name) => claude_like(Command::new(name), shown),
        };
        in_place(&mut command, place, address);
        command
    }

    /// How it calls its tool that reads a file.
    pub fn read(&self, file: &Path) -> (&'static str, Value) {
        match self {
            Self::Peer(name) if name == "pi" => ("read", json!({"path": file})),
            _ => ("Read", json!({"file_path": file})),
        }
    }

    /// How it calls its tool that runs a command.
    pub fn shell(&self, command: &str) -> (&'static str, Value) {
        match self {
            Self::Peer(name) if name == "pi" => ("bash", json!({"command": command})),
            _ => ("Bash", json!({"command": command})),
        }
    }

    /// A session that waits for its first prompt.
    pub fn waiting(&self, place: &Place, address: &str) -> Option<Command> {
        let mut command = match self {
            Self::Bare(_) => return None,
            Self::Pelton(file) => Command::new(file),
            Self::Peer(name) if name == "pi" => return None,
            Self::Peer(name) => Command::new(name),
        };
        command.args(["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]);
        in_place(&mut command, place, address);
        Some(command)
    }
}

fn in_place(command: &mut Command, place: &Place, address: &str) {
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", &place.home)
        .env("CLAUDE_CONFIG_DIR", place.home.join("config"))
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("PI_CODING_AGENT_DIR", place.home.join("pi"))
        .env("ANTHROPIC_BASE_URL", format!("http://{address}"))
        .env("ANTHROPIC_API_KEY", "sk-ant-any")
        .current_dir(&place.project);
}

fn claude_like(mut command: Command, shown: Shown) -> Command {
    command.args(["-p", "Go.", "--model", "claude-sonnet-5-5", "--allowedTools", "Read,Bash"]);
    command.args(["--output-format", "stream-json", "--verbose"]);
    if shown == Shown::Events {
        command.arg("--include-partial-messages");
    }
    command
}

/// Its provider is in a file of its own: see `places`.
fn pi_like(mut command: Command, shown: Shown) -> Command {
    command.args(["-p", "Go.", "--provider", "bench", "--model", "claude-sonnet-5-5"]);
    if shown == Shown::Events {
        command.args(["--mode", "json"]);
    }
    command
}

/// A command on the path.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| Path::is_file(file))
}
