//! Tools that somebody else serves: an MCP server, most often. What it serves may change while the session runs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use super::tool::{Access, InvalidInput, Output, ResultBlock, Safety, Spec, Tool, ToolCx};
use crate::command::Command;
use crate::limits::{SERVED_NAME_CHARS_MAX, SERVERS_MAX, ToolLimits};

/// E4: somebody who serves tools. Asked often, so everything here answers at once, from what is known.
///
/// ```
/// use std::sync::Arc;
///
/// use pelton::tools::{ServerState, Tool, ToolServer};
///
/// /// A server that is still on its way: the model is told of its tools when they are there.
/// struct Weather;
///
/// impl ToolServer for Weather {
///     fn name(&self) -> &str {
///         "weather"
///     }
///
///     fn state(&self) -> ServerState {
///         ServerState::Pending
///     }
///
///     fn tools(&self) -> Vec<Arc<dyn Tool>> {
///         Vec::new()
///     }
/// }
/// # assert_eq!(Weather.state().name(), "pending");
/// ```
pub trait ToolServer: Send + Sync {
    /// Its name: unique in a session, and part of its tools' names.
    fn name(&self) -> &str;

    /// Who named it, in the words of the protocol: `sdk` for one inside of the program that drives the session, else where it is configured.
    fn source(&self) -> &'static str {
        "dynamic"
    }

    /// Whether its tools can be called.
    fn state(&self) -> ServerState;

    /// Why nobody can ever speak to it: what was said about it makes no sense.
    fn unusable(&self) -> Option<String> {
        None
    }

    /// Its tools at this moment, under its own names for them.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// Whether a tool, by the server's name for it, is to be sent with every request, where others are told of by name.
    fn is_always_sent(&self, _tool: &str) -> bool {
        false
    }

    /// What the model should know about all of them.
    fn instructions(&self) -> Option<String> {
        None
    }

    /// Whether it has something to read, besides tools.
    fn has_resources(&self) -> bool {
        false
    }

    /// What it has to read. This may take a while.
    fn resources(&self) -> BoxFuture<'_, Result<Vec<Resource>, String>> {
        async { Ok(Vec::new()) }.boxed()
    }

    /// Something it has, as the model reads it. This may take a while.
    fn read_resource<'a>(&'a self, _uri: &'a str) -> BoxFuture<'a, Result<Vec<ResultBlock>, String>> {
        async { Err("this server has nothing to read".to_owned()) }.boxed()
    }

    /// The session works in these directories from here on. Told with every prompt, also where nothing changed.
    fn works_in(&self, _roots: &[PathBuf]) {}

    /// Its prompts, which users call by `/name`.
    fn commands(&self) -> Vec<Arc<dyn Command>> {
        Vec::new()
    }
}

/// Something a server has to read.
///
/// ```
/// use pelton::tools::Resource;
///
/// // What a `ToolServer` has to read besides its tools.
/// let resource = Resource {
///     uri: "weather://today".to_owned(),
///     name: "today".to_owned(),
///     description: Some("The weather of today".to_owned()),
///     media_type: Some("text/plain".to_owned()),
/// };
/// assert!(resource.uri.starts_with("weather:"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// What it is asked for by.
    pub uri: String,
    /// What it is called.
    pub name: String,
    /// What it is about.
    pub description: Option<String>,
    /// What kind of content it is.
    pub media_type: Option<String>,
}

/// How a server is.
///
/// ```
/// use pelton::tools::ServerState;
///
/// /// Whether waiting would help.
/// fn may_come(state: ServerState) -> bool {
///     state == ServerState::Pending
/// }
/// assert!(may_come(ServerState::Pending) && !may_come(ServerState::NeedsAuth));
/// assert_eq!(ServerState::NeedsAuth.name(), "needs-auth"); // as the protocol calls it
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServerState {
    /// Ready.
    Connected,
    /// On its way.
    Pending,
    /// Out of reach.
    Failed,
    /// Out of reach until somebody logs in.
    NeedsAuth,
    /// Not wanted.
    Disabled,
}

impl ServerState {
    /// The name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Pending => "pending",
            Self::Failed => "failed",
            Self::NeedsAuth => "needs-auth",
            Self::Disabled => "disabled",
        }
    }
}

/// The servers of a session, which may come and go while it runs. All clones are one.
///
/// The model is told of a change before it is asked next; what was sent to it stays as it is, and a call of a tool whose
/// server is gone is answered with that.
///
/// ```no_run
/// # fn change(engine: &pelton::Engine, weather: std::sync::Arc<dyn pelton::tools::ToolServer>) {
/// let servers = engine.servers();
/// let before = servers.put(weather).expect("a session has room for more than one");
/// assert!(before.is_none() && servers.remove("weather").is_some());
/// # }
/// ```
#[derive(Clone, Default)]
pub struct ServerList(Arc<Mutex<Vec<Arc<dyn ToolServer>>>>);

/// A session has as many servers as it can have.
///
/// ```
/// use std::sync::Arc;
///
/// use pelton::tools::{ServerList, ToolServer, TooManyServers};
///
/// /// Adds as many servers as there is room for.
/// fn add(servers: &ServerList, new: Vec<Arc<dyn ToolServer>>) -> Result<(), TooManyServers> {
///     new.into_iter().try_for_each(|server| servers.put(server).map(drop))
/// }
/// assert!(TooManyServers.to_string().starts_with("a session can have"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a session can have {SERVERS_MAX} servers at most")]
pub struct TooManyServers;

/// Reaches servers of tools that agents bring themselves. The program around a session does: it knows how servers are
/// reached, and which may be.
///
/// ```
/// use std::sync::Arc;
///
/// use futures::FutureExt;
/// use futures::future::BoxFuture;
/// use pelton::tools::{MadeServers, ServerMaker};
/// use serde_json::Value;
///
/// /// A program that starts nothing for agents, and says so.
/// struct Nobody;
///
/// impl ServerMaker for Nobody {
///     fn make(&self, _written: &Value) -> BoxFuture<'static, MadeServers> {
///         let mut made = MadeServers::default();
///         made.problems.push("servers of agents are not started here".to_owned());
///         async move { made }.boxed()
///     }
/// }
/// ```
pub trait ServerMaker: Send + Sync {
    /// Reaches servers, by name as `mcpServers` writes them. Returns when each is there or had its time. They are let go when
    /// they are dropped.
    fn make(&self, written: &Value) -> BoxFuture<'static, MadeServers>;
}

/// Servers that were reached for an agent.
///
/// ```
/// let mut made = pelton::tools::MadeServers::default();
/// made.problems.push("`db`: no such program".to_owned());
/// assert!(made.servers.is_empty());
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct MadeServers {
    /// Those.
    pub servers: Vec<Arc<dyn ToolServer>>,
    /// What is wrong with others.
    pub problems: Vec<String>,
}

impl ServerList {
    pub(crate) fn of(servers: Vec<Arc<dyn ToolServer>>) -> Self {
        Self(Arc::new(Mutex::new(servers)))
    }

    /// Adds a server, in the place of one that has its name: that one is given back.
    pub fn put(&self, server: Arc<dyn ToolServer>) -> Result<Option<Arc<dyn ToolServer>>, TooManyServers> {
        let mut all = self.lock();
        if let Some(known) = all.iter_mut().find(|known| known.name() == server.name()) {
            return Ok(Some(std::mem::replace(known, server)));
        }
        if all.len() >= SERVERS_MAX {
            return Err(TooManyServers);
        }
        all.push(server);
        Ok(None)
    }

    /// Takes a server away.
    pub fn remove(&self, name: &str) -> Option<Arc<dyn ToolServer>> {
        let mut all = self.lock();
        let at = all.iter().position(|known| known.name() == name)?;
        Some(all.remove(at))
    }

    /// A server by its name.
    pub fn get(&self, name: &str) -> Option<Arc<dyn ToolServer>> {
        self.lock().iter().find(|known| known.name() == name).cloned()
    }

    /// All of them, in the order they came.
    pub fn all(&self) -> Vec<Arc<dyn ToolServer>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<dyn ToolServer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name the model calls a server's tool by.
///
/// ```
/// assert_eq!(pelton::tools::served_name("my server", "add"), "mcp__my_server__add");
/// ```
pub fn served_name(server: &str, tool: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let name = format!("mcp__{server}__{tool}");
    name.chars().map(plain).take(SERVED_NAME_CHARS_MAX).collect()
}

/// A server's tool, described as it was when it was offered, and called as it is.
pub(super) struct Served {
    name: String,
    description: String,
    input_schema: String,
    whose: Whose,
    /// The server is looked for by its name, each time: there may be another in its place.
    servers: ServerList,
}

/// Who serves a tool.
enum Whose {
    /// A server, which calls it so.
    Of { server: String, own_name: String },
    /// Whoever serves one that the model calls so: it was offered by an earlier process.
    Anybodys,
}

impl Served {
    pub fn new(servers: &ServerList, server: &dyn ToolServer, tool: &dyn Tool) -> Self {
        let spec = tool.spec();
        Self {
            name: served_name(server.name(), spec.name),
            description: spec.description.to_owned(),
            input_schema: spec.input_schema.to_owned(),
            whose: Whose::Of { server: server.name().to_owned(), own_name: spec.name.to_owned() },
            servers: servers.clone(),
        }
    }

    /// A tool as an earlier process offered it, whoever serves it now.
    pub fn offered_before(servers: &ServerList, spec: &Spec<'_>) -> Self {
        Self {
            name: spec.name.to_owned(),
            description: spec.description.to_owned(),
            input_schema: spec.input_schema.to_owned(),
            whose: Whose::Anybodys,
            servers: servers.clone(),
        }
    }

    /// The tool as it is now, if there is a server that has it.
    fn now(&self) -> Result<Arc<dyn Tool>, String> {
        match &self.whose {
            Whose::Of { server: name, own_name } => {
                let server = self.servers.get(name);
                let server =
                    server.ok_or_else(|| format!("the server {name} is no longer part of this session"))?;
                let tool = server.tools().into_iter().find(|tool| tool.spec().name == own_name);
                tool.ok_or_else(|| not_offered(&*server))
            }
            Whose::Anybodys => {
                let all = self.servers.all();
                let called_so = |server: &Arc<dyn ToolServer>, tool: &Arc<dyn Tool>| {
                    served_name(server.name(), tool.spec().name) == self.name
                };
                let tool = all
                    .iter()
                    .find_map(|server| server.tools().into_iter().find(|tool| called_so(server, tool)));
                let whose =
                    |server: &&Arc<dyn ToolServer>| self.name.starts_with(&served_name(server.name(), ""));
                tool.ok_or_else(|| match all.iter().find(whose) {
                    Some(server) => not_offered(&**server),
                    None => "its server is not connected: it is not part of this session any more".to_owned(),
                })
            }
        }
    }
}

/// Why a tool cannot be called.
fn not_offered(server: &dyn ToolServer) -> String {
    let (name, state) = (server.name(), server.state());
    match state {
        ServerState::Connected => format!("the server {name} does not offer this tool at the moment"),
        _ => format!("the server {name} is not connected ({})", state.name()),
    }
}

impl Tool for Served {
    fn spec(&self) -> Spec<'_> {
        Spec { name: &self.name, description: &self.description, input_schema: &self.input_schema }
    }

    fn safety(&self, input: &Value) -> Safety {
        // A call that cannot be made will be answered without running anything.
        self.now().map_or(Safety::Shared, |tool| tool.safety(input))
    }

    fn access(&self, input: &Value, cx: &ToolCx) -> Result<Access, InvalidInput> {
        self.now().map_err(InvalidInput)?.access(input, cx)
    }

    fn result_chars_max(&self, limits: &ToolLimits) -> usize {
        self.now().map_or(limits.result_chars_max, |tool| tool.result_chars_max(limits))
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        async move {
            match self.now() {
                Ok(tool) => tool.run(input, cx).await,
                Err(why) => Output::unusable(why),
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_characters_and_the_length_the_api_takes() {
        assert_eq!(served_name("calc", "add"), "mcp__calc__add");
        assert_eq!(served_name("my server.2", "größe"), "mcp__my_server_2__gr__e");
        assert_eq!(served_name("s", &"x".repeat(500)).len(), SERVED_NAME_CHARS_MAX);
    }
}
