//! What configuration says about servers. Touches nothing: texts in, servers and complaints out.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::reach::Wire;

/// The least time a call may be given.
const CALL_TIME_MIN: Duration = Duration::from_secs(1);
/// Names that mean something else to programs that share these files.
const RESERVED: [&str; 5] =
    ["workspace", "claude-in-chrome", "computer-use", "Claude Preview", "Claude Browser"];

/// Where a server was named. Of two with one name, the earlier in this list is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// Whoever runs the machine.
    Managed,
    /// The command line, or the client.
    Dynamic,
    /// The user, for one project.
    Local,
    /// The project.
    Project,
    /// The user, everywhere.
    User,
    /// A plugin.
    Plugin,
}

impl Scope {
    /// The name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Dynamic => "dynamic",
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
            Self::Plugin => "plugin",
        }
    }
}

/// One server, as it was configured.
#[derive(Clone)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Its name.
    pub name: String,
    /// How it is reached.
    pub reach: Reach,
    /// Where it was named.
    pub scope: Scope,
    /// The longest a call may take.
    pub timeout: Option<Duration>,
    /// Its tools are sent with every request.
    pub always_load: bool,
    /// The entry as it was written, for people and clients: nothing in it is filled in.
    pub written: Value,
}

impl ServerConfig {
    /// A server that somebody passes messages on to.
    pub fn by_wire(name: impl Into<String>, wire: Arc<dyn Wire>, timeout: Option<Duration>) -> Self {
        let name = name.into();
        let written = json!({"type": "sdk", "name": name});
        Self { name, reach: Reach::Wire(wire), scope: Scope::Dynamic, timeout, always_load: false, written }
    }

    /// The port that somebody comes back to who logs in there, if its entry says one.
    pub fn callback_port(&self) -> Option<u16> {
        match &self.reach {
            Reach::Http(remote) | Reach::Sse(remote) => remote.oauth.callback_port,
            _ => None,
        }
    }

    /// An entry that cannot be used, to be told of like the others.
    pub fn unusable(name: impl Into<String>, why: impl Into<String>, scope: Scope) -> Self {
        let reach = Reach::Nowhere(why.into());
        Self { name: name.into(), reach, scope, timeout: None, always_load: false, written: Value::Null }
    }
}

/// The way to a server.
#[derive(Clone)]
#[non_exhaustive]
pub enum Reach {
    /// A program, spoken to through its standard streams.
    Program(Program),
    /// An address that speaks streamable HTTP.
    Http(Remote),
    /// An address that speaks HTTP with one stream of events for everything, as the first version of the protocol had it.
    Sse(Remote),
    /// Somebody who passes messages on.
    Wire(Arc<dyn Wire>),
    /// None: its entry cannot be used, for this reason.
    Nowhere(String),
}

impl Reach {
    /// Whether it is the same program with the same arguments, or the same address.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Program(one), Self::Program(other)) => {
                (&one.command, &one.args) == (&other.command, &other.args)
            }
            (Self::Http(one) | Self::Sse(one), Self::Http(other) | Self::Sse(other)) => one.url == other.url,
            _ => false,
        }
    }

    /// Whether it is on this machine.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Program(_) | Self::Wire(_) | Self::Nowhere(_))
    }
}

/// A program that serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// What is started: a path, or a name to be found in `PATH`.
    pub command: String,
    /// What it is told.
    pub args: Vec<String>,
    /// What is added to its environment.
    pub env: Vec<(String, String)>,
}

/// A server at an address.
#[derive(Clone, PartialEq, Eq)]
pub struct Remote {
    /// The address.
    pub url: String,
    /// Headers of every request.
    pub headers: Vec<(String, String)>,
    /// A command that prints more of them, as JSON.
    pub headers_helper: Option<String>,
    /// How somebody logs in there, where that is not found out.
    pub oauth: OauthConfig,
}

impl Remote {
    /// Whether its entry says who asks: then there is no login.
    pub fn has_authorization(&self) -> bool {
        self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
    }
}

/// How somebody logs in at a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OauthConfig {
    /// Who we are to whoever gives tokens; without it, they are told.
    pub client_id: Option<String>,
    /// The port that somebody comes back to.
    pub callback_port: Option<u16>,
    /// What is asked for, separated by blanks.
    pub scopes: Option<String>,
    /// Where it is described who gives tokens.
    pub metadata_url: Option<String>,
}

/// What was read.
#[derive(Default)]
pub struct Read {
    /// Servers to connect to.
    pub servers: Vec<ServerConfig>,
    /// Names of servers inside the client.
    pub of_client: Vec<String>,
    /// Entries that cannot be used: their names, and why.
    pub errors: Vec<(String, String)>,
    /// What else somebody should know.
    pub warnings: Vec<String>,
}

impl Read {
    /// The same without servers that are reached as one of these is.
    #[must_use]
    pub fn without(mut self, others: &[ServerConfig]) -> Self {
        self.servers.retain(|server| !others.iter().any(|other| other.reach.is_same(&server.reach)));
        self
    }
}

/// Reads the object `mcpServers`. `variable` knows what stands for `${NAME}`.
///
/// ```
/// use pelton_mcp::{Reach, Scope, read_servers};
/// use serde_json::json;
///
/// let written = json!({"files": {"command": "serve", "args": ["--root", "${ROOT:-/srv}"]}, "odd": {"url": "http://x"}});
/// let read = read_servers(&written, Scope::User, |_| None);
/// let Reach::Program(program) = &read.servers[0].reach else { panic!() };
/// assert_eq!(program.args, ["--root", "/srv"]);
/// assert_eq!(read.errors[0].0, "odd");
/// ```
pub fn read_servers(written: &Value, scope: Scope, variable: impl Fn(&str) -> Option<String>) -> Read {
    let mut read = Read::default();
    let Some(entries) = written.as_object() else {
        if !written.is_null() {
            read.errors.push(("mcpServers".to_owned(), "is no object".to_owned()));
        }
        return read;
    };
    for (name, entry) in entries {
        let mut fill = Fill { variable: &variable, unset: Vec::new() };
        match server(name, entry, scope, &mut fill) {
            Ok(Some(server)) => read.servers.push(server),
            Ok(None) => read.of_client.push(name.clone()),
            Err(why) => read.errors.push((name.clone(), why)),
        }
        for unset in fill.unset {
            read.warnings.push(format!(
                "the MCP server '{name}' names ${{{unset}}}, which is not set: it is left as it stands"
            ));
        }
    }
    read
}

fn server(
    name: &str,
    entry: &Value,
    scope: Scope,
    fill: &mut Fill<'_>,
) -> Result<Option<ServerConfig>, String> {
    let fields = entry.as_object().ok_or("is no object")?;
    if name.is_empty() {
        return Err("has no name".to_owned());
    }
    let kind = match fields.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(other) => return Err(format!("`type` is {other}, not a text")),
        None if fields.contains_key("command") => "stdio",
        None if fields.contains_key("url") => {
            return Err("has a `url` and no `type`: say \"type\": \"http\" (or \"sse\")".to_owned());
        }
        None => return Err("has neither a `type` nor a `command`".to_owned()),
    };
    if kind == "sdk" {
        return Ok(None);
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.chars().all(plain) {
        return Err("has a name with other characters than letters, digits, `_` and `-`".to_owned());
    }
    if RESERVED.contains(&name) {
        return Err("has a name that is taken".to_owned());
    }
    let reach = match kind {
        "stdio" => Reach::Program(program(fields, fill)?),
        "http" | "streamable-http" | "streamableHttp" => Reach::Http(remote(fields, fill)?),
        "sse" => Reach::Sse(remote(fields, fill)?),
        other => return Err(format!("is of type '{other}'; known are stdio, http, sse and sdk")),
    };
    let timeout = match fields.get("timeout") {
        None | Some(Value::Null) => None,
        Some(written) => {
            let time = written.as_u64().map(Duration::from_millis);
            Some(
                time.filter(|time| *time >= CALL_TIME_MIN)
                    .ok_or("`timeout` is not at least 1000 milliseconds")?,
            )
        }
    };
    let always_load = fields.get("alwaysLoad").and_then(Value::as_bool).unwrap_or_default();
    Ok(Some(ServerConfig {
        name: name.to_owned(),
        reach,
        scope,
        timeout,
        always_load,
        written: entry.clone(),
    }))
}

fn program(fields: &Map<String, Value>, fill: &mut Fill<'_>) -> Result<Program, String> {
    let command = fields.get("command").and_then(Value::as_str).filter(|command| !command.trim().is_empty());
    let command = fill.in_text(command.ok_or("has no `command`")?);
    let args = match fields.get("args") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(args)) => args
            .iter()
            .map(|arg| {
                arg.as_str().map(|arg| fill.in_text(arg)).ok_or("`args` has something that is no text")
            })
            .collect::<Result<_, _>>()?,
        Some(_) => return Err("`args` is no list".to_owned()),
    };
    Ok(Program { command, args, env: pairs(fields, "env", fill)? })
}

fn remote(fields: &Map<String, Value>, fill: &mut Fill<'_>) -> Result<Remote, String> {
    let url = fill.in_text(fields.get("url").and_then(Value::as_str).ok_or("has no `url`")?);
    let is_web = url::Url::parse(&url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    if !is_web {
        return Err(format!("`url` is no http address: {url}"));
    }
    let headers_helper = fields.get("headersHelper").and_then(Value::as_str).map(str::to_owned);
    let oauth = match fields.get("oauth") {
        None | Some(Value::Null) => OauthConfig::default(),
        Some(Value::Object(oauth)) => {
            let word = |name: &str| oauth.get(name).and_then(Value::as_str).map(str::to_owned);
            let port = oauth.get("callbackPort").and_then(Value::as_u64);
            OauthConfig {
                client_id: word("clientId"),
                callback_port: port.and_then(|port| u16::try_from(port).ok()),
                scopes: word("scopes"),
                metadata_url: word("authServerMetadataUrl"),
            }
        }
        Some(_) => return Err("`oauth` is no object".to_owned()),
    };
    Ok(Remote { url, headers: pairs(fields, "headers", fill)?, headers_helper, oauth })
}

fn pairs(
    fields: &Map<String, Value>,
    name: &str,
    fill: &mut Fill<'_>,
) -> Result<Vec<(String, String)>, String> {
    let entries = match fields.get(name) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(entries)) => entries,
        Some(_) => return Err(format!("`{name}` is no object")),
    };
    let mut pairs = Vec::new();
    for (key, value) in entries {
        let value = match value {
            Value::String(text) => fill.in_text(text),
            Value::Number(number) => number.to_string(),
            Value::Bool(truth) => truth.to_string(),
            _ => return Err(format!("`{name}.{key}` is no text")),
        };
        pairs.push((key.clone(), value));
    }
    Ok(pairs)
}

/// Puts values in place of `${NAME}` and `${NAME:-otherwise}`.
struct Fill<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    /// Names that stand for nothing, and have nothing in their stead.
    unset: Vec<String>,
}

impl Fill<'_> {
    fn in_text(&mut self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            filled.push_str(&rest[..start]);
            let inside = &rest[start + 2..];
            let Some(end) = inside.find('}') else {
                filled.push_str(&rest[start..]);
                return filled;
            };
            let (name, otherwise) = match inside[..end].split_once(":-") {
                Some((name, otherwise)) => (name, Some(otherwise)),
                None => (&inside[..end], None),
            };
            match (self.variable)(name).or_else(|| otherwise.map(str::to_owned)) {
                Some(value) => filled.push_str(&value),
                None => {
                    self.unset.push(name.to_owned());
                    filled.push_str(&rest[start..start + 2 + end + 1]);
                }
            }
            rest = &inside[end + 1..];
        }
        filled.push_str(rest);
        filled
    }
}

// Headers and environments carry secrets: only what was written is shown, and that without filling anything in.
impl std::fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerConfig")
            .field("name", &self.name)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(written: &Value) -> Read {
        read_servers(written, Scope::Project, |name| (name == "SET").then(|| "value".to_owned()))
    }

    #[test]
    fn every_kind_is_read() {
        let read = read(&json!({
            "program": {"command": "serve", "args": ["${SET}", "a${UNSET:-b}c"], "env": {"KEY": "${SET}", "N": 3}, "timeout": 5000},
            "old": {"type": "sse", "url": "http://127.0.0.1/${SET}"},
            "new": {"type": "streamable-http", "url": "https://x.example/mcp", "headers": {"X-Key": "${SET}"}, "alwaysLoad": true},
            "inside": {"type": "sdk", "name": "inside"}}));
        let names: Vec<&str> = read.servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(
            (names, read.of_client.as_slice()),
            (vec!["program", "old", "new"], &["inside".to_owned()][..])
        );
        let Reach::Program(program) = &read.servers[0].reach else { panic!() };
        assert_eq!(program.args, ["value", "abc"]);
        assert_eq!(program.env, [("KEY".to_owned(), "value".to_owned()), ("N".to_owned(), "3".to_owned())]);
        assert_eq!(read.servers[0].timeout, Some(Duration::from_secs(5)));
        let Reach::Sse(remote) = &read.servers[1].reach else { panic!() };
        assert_eq!(remote.url, "http://127.0.0.1/value");
        let Reach::Http(remote) = &read.servers[2].reach else { panic!() };
        assert_eq!(remote.headers, [("X-Key".to_owned(), "value".to_owned())]);
        assert!(read.servers[2].always_load && read.errors.is_empty() && read.warnings.is_empty());
    }

    #[test]
    fn what_cannot_be_used_is_named_and_spares_the_others() {
        let read = read(&json!({
            "good": {"command": "serve"}, "bad name": {"command": "x"}, "workspace": {"command": "x"},
            "untyped": {"url": "http://x"}, "empty": {}, "list": [], "ws": {"type": "ws", "url": "ws://x"},
            "args": {"command": "x", "args": "y"}, "env": {"command": "x", "env": {"A": []}},
            "file": {"type": "http", "url": "file:///etc/passwd"}, "fast": {"command": "x", "timeout": 10}}));
        assert_eq!(read.servers.len(), 1);
        let told: Vec<String> = read.errors.iter().map(|(name, why)| format!("{name} {why}")).collect();
        expect_test::expect![[r#"
            bad name has a name with other characters than letters, digits, `_` and `-`
            workspace has a name that is taken
            untyped has a `url` and no `type`: say "type": "http" (or "sse")
            empty has neither a `type` nor a `command`
            list is no object
            ws is of type 'ws'; known are stdio, http, sse and sdk
            args `args` is no list
            env `env.A` is no text
            file `url` is no http address: file:///etc/passwd
            fast `timeout` is not at least 1000 milliseconds"#]]
        .assert_eq(&told.join("\n"));
    }

    #[test]
    fn pit_X6_a_variable_that_is_not_set_is_left_and_named() {
        let read = read(&json!({"s": {"command": "serve", "args": ["${MISSING}", "${open"]}}));
        let Reach::Program(program) = &read.servers[0].reach else { panic!() };
        assert_eq!(program.args, ["${MISSING}", "${open"]);
        assert_eq!(read.warnings.len(), 1);
        assert!(read.warnings[0].contains("${MISSING}") && read.warnings[0].contains("'s'"));
    }
}
