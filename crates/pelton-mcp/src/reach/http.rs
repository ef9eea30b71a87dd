//! An address, and the headers it is asked with.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use http::{HeaderName, HeaderValue};
use pelton::process::{Launch, Printed, ProcessTree};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::Value;
use tokio::io::AsyncReadExt;

use super::NotReached;
use super::bounded::Bounded;
use crate::config::Remote;
use crate::limits::{END_GRACE, END_PATIENCE, HELPER_BYTES_MAX, HELPER_TIME};
use crate::surroundings::Surroundings;

pub(super) async fn transport(
    remote: &Remote,
    name: &str,
    token: Option<String>,
    surroundings: &Surroundings,
) -> Result<StreamableHttpClientTransport<Bounded>, NotReached> {
    let client = Bounded((surroundings.http)().map_err(NotReached::because)?);
    let mut config = StreamableHttpClientTransportConfig::with_uri(remote.url.as_str());
    config.custom_headers = headers(remote, name, surroundings).await?;
    config.auth_header = token;
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// The headers of every request: those that were written, then those that a command prints.
pub(super) async fn headers(
    remote: &Remote,
    name: &str,
    surroundings: &Surroundings,
) -> Result<HashMap<HeaderName, HeaderValue>, NotReached> {
    let mut all: Vec<(String, String)> = remote.headers.clone();
    if let Some(command) = &remote.headers_helper {
        let made = helped(command, remote, name, surroundings);
        let made = tokio::time::timeout(HELPER_TIME, made).await;
        let late = |_| Err(format!("it took longer than {} s", HELPER_TIME.as_secs()));
        let made = made.unwrap_or_else(late);
        all.extend(made.map_err(|why| NotReached::because(format!("headersHelper: {why}")))?);
    }
    let mut headers = HashMap::new();
    for (name, value) in all {
        let header: HeaderName =
            name.parse().map_err(|_| NotReached::because(format!("'{name}' is no name of a header")))?;
        let mut value: HeaderValue = value
            .parse()
            .map_err(|_| NotReached::because(format!("the header {name} has a value that cannot be sent")))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}

/// Runs the command that prints headers.
async fn helped(
    command: &str,
    remote: &Remote,
    name: &str,
    surroundings: &Surroundings,
) -> Result<Vec<(String, String)>, String> {
    let mut env = surroundings.env_of_programs();
    env.push(("CLAUDE_CODE_MCP_SERVER_NAME".into(), OsString::from(name)));
    env.push(("CLAUDE_CODE_MCP_SERVER_URL".into(), OsString::from(&remote.url)));
    let args = [OsStr::new("-c"), OsStr::new(command)];
    let launch = Launch {
        program: Path::new("/bin/sh"),
        args: &args,
        cwd: &surroundings.cwd,
        env: &env,
        keep: None,
        printed: Printed::Read,
    };
    let mut tree = ProcessTree::start(&launch).map_err(|error| error.to_string())?;
    let mut printed = Vec::new();
    if let Some((out, _)) = tree.take_output() {
        let mut out = out.take(HELPER_BYTES_MAX as u64);
        out.read_to_end(&mut printed).await.map_err(|error| error.to_string())?;
    }
    let ended = tree.end(END_PATIENCE, END_GRACE).await.map_err(|error| error.to_string())?;
    if !ended.status.success() {
        return Err(format!("it ended with {}", ended.status));
    }
    let made: Value = serde_json::from_slice(&printed).map_err(|_| "it printed no JSON".to_owned())?;
    let made = made.as_object().ok_or("it printed no object")?;
    let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    Ok(made.iter().filter_map(text).collect())
}
