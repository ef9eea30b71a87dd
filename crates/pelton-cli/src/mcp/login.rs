//! `pelton mcp login`: somebody agrees on a page, and comes back to a port of this machine with a code.

use std::io::Read;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use pelton::tools::ToolServer;
use pelton_mcp::{Server, begin_login};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{say, unknown};
use crate::args::{LoginArgs, RunArgs};
use crate::fail::Fail;
use crate::resolve::{self, Env};

/// How long somebody may take to agree.
const AGREES_WITHIN: Duration = Duration::from_secs(5 * 60);
/// How long a visitor may take to say what they want, and the most they may say.
const VISIT_TIME: Duration = Duration::from_secs(10);
const VISIT_BYTES_MAX: usize = 16 * 1024;
const CALLBACK: &str = "/callback";

pub(super) async fn login(said: &LoginArgs, args: &RunArgs) -> Result<ExitCode, Fail> {
    let env = Env::of_process();
    let server = named(&said.name, args, &env)?;
    let port = said.port.or(server.config().callback_port()).or(env.number("MCP_OAUTH_CALLBACK_PORT")?);
    let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(0))).await;
    let listener = listener.map_err(|error| Fail::new(format!("cannot listen on 127.0.0.1: {error}")))?;
    let port = listener.local_addr().map_err(|error| Fail::new(error.to_string()))?.port();
    let redirect_uri = format!("http://127.0.0.1:{port}{CALLBACK}");
    let chance = chance().map_err(|error| Fail::new(format!("no randomness: {error}")))?;
    let about = |why: String| Fail::new(format!("cannot log in at the MCP server '{}': {why}", said.name));
    let surroundings = server.surroundings();
    let pending = begin_login(server.config(), surroundings, &redirect_uri, &chance).await.map_err(about)?;
    say(&format!("Log in here:\n{}", pending.url()))?;
    if !said.no_browser {
        show(pending.url());
    }
    let query = tokio::time::timeout(AGREES_WITHIN, came_back(&listener)).await;
    let query = query.map_err(|_| about(format!("nobody agreed within {} s", AGREES_WITHIN.as_secs())))?;
    let login = pending.finish(&query).await.map_err(about)?;
    let logins = surroundings.logins.as_ref().ok_or_else(|| Fail::new("set CLAUDE_CONFIG_DIR or HOME"))?;
    logins.write(&said.name, Some(&login)).map_err(Fail::new)?;
    say(&format!("Logged in at the MCP server {}.", said.name))
}

pub(super) fn logout(name: &str, args: &RunArgs) -> Result<ExitCode, Fail> {
    let server = named(name, args, &Env::of_process())?;
    let logins = server.surroundings().logins.clone();
    let logins = logins.ok_or_else(|| Fail::new("set CLAUDE_CONFIG_DIR or HOME"))?;
    if logins.read(name).map_err(Fail::new)?.is_none() {
        return say(&format!("Nobody is logged in at the MCP server {name}."));
    }
    logins.write(name, None).map_err(Fail::new)?;
    say(&format!("Logged out of the MCP server {name}."))
}

fn named(name: &str, args: &RunArgs, env: &Env) -> Result<Arc<Server>, Fail> {
    let servers = resolve::servers(args, env)?;
    servers.into_iter().find(|server| server.name() == name).ok_or_else(|| unknown(name))
}

/// What stood behind the `?` when somebody came back. Other visitors are sent away.
async fn came_back(listener: &TcpListener) -> String {
    loop {
        let Ok((mut visitor, _)) = listener.accept().await else { continue };
        let asked = tokio::time::timeout(VISIT_TIME, asked(&mut visitor)).await.ok().flatten();
        let query = asked.as_deref().and_then(|asked| {
            let (path, query) = asked.split_once('?')?;
            (path == CALLBACK).then(|| query.to_owned())
        });
        let (status, words) = match &query {
            Some(_) => ("200 OK", "Thank you. You can close this page and go back to the terminal."),
            None => ("404 Not Found", "There is nothing here."),
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{words}",
            words.len()
        );
        // Whether they read it changes nothing.
        let _ = tokio::time::timeout(VISIT_TIME, visitor.write_all(answer.as_bytes())).await;
        if let Some(query) = query {
            return query;
        }
    }
}

/// The address a visitor asks for.
async fn asked(visitor: &mut TcpStream) -> Option<String> {
    let mut said = Vec::new();
    while !said.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut chunk = [0; 1024];
        let read = visitor.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
        said.extend_from_slice(&chunk[..read]);
        if said.len() > VISIT_BYTES_MAX {
            return None;
        }
    }
    let said = String::from_utf8(said).ok()?;
    let mut words = said.lines().next()?.split(' ');
    words.next().filter(|method| *method == "GET")?;
    words.next().map(str::to_owned)
}

/// Opens a page, if there is somebody to see it. The address was told in any case.
fn show(url: &str) {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(opener);
    let _ = command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}

fn chance() -> std::io::Result<[u8; 64]> {
    let mut bytes = [0; 64];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
