//! The servers of tools of a session: those it began with, and what the client makes of them while it runs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use pelton::plugins::Plugin;
use pelton::tools::{ServerList, ServerState, ToolServer};
use pelton_mcp::{
    Reach, Read, Scope, Server, ServerConfig, Surroundings, connect_all, read_servers, servers_of_plugin,
};
use serde_json::{Map, Value, json};

use super::client::Client;
use super::mcp;

/// What the client may name as servers while the session runs.
///
/// See [`ConverseOptions`](super::ConverseOptions).
#[derive(Clone)]
#[non_exhaustive]
pub struct ServersNamed {
    /// What they are started in and reached by.
    pub surroundings: Surroundings,
    /// Reads entries by name, and leaves out with a reason what must not be used.
    pub read: Arc<dyn Fn(&Value) -> Read + Send + Sync>,
    /// The same for those that a plugin brings.
    pub of_plugin: Arc<dyn Fn(&Plugin) -> Read + Send + Sync>,
    /// Where plugins keep what they want to keep.
    pub plugin_data: Option<PathBuf>,
}

impl ServersNamed {
    /// Everything may be named; nothing stands for `${NAME}`.
    pub fn in_surroundings(surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            read: Arc::new(|written| read_servers(written, Scope::Dynamic, |_| None)),
            of_plugin: Arc::new(|plugin| servers_of_plugin(plugin, |_| None)),
            plugin_data: None,
        }
    }
}

/// What comes of a request about servers.
type Answer = BoxFuture<'static, Result<Value, String>>;

pub(crate) struct Servers {
    all: Mutex<Vec<Known>>,
    /// The same, as the engine knows them.
    list: ServerList,
    client: Client,
    named: ServersNamed,
}

struct Known {
    server: Arc<Server>,
    /// The client can take it away by naming others.
    is_clients: bool,
}

impl Servers {
    pub fn new(servers: Vec<Arc<Server>>, list: ServerList, client: Client, named: ServersNamed) -> Self {
        let known = |server: Arc<Server>| Known {
            is_clients: matches!(server.config().reach, Reach::Wire(_)),
            server,
        };
        Self { all: Mutex::new(servers.into_iter().map(known).collect()), list, client, named }
    }

    /// All of them.
    pub fn all(&self) -> Vec<Arc<Server>> {
        self.lock().iter().map(|known| Arc::clone(&known.server)).collect()
    }

    pub fn status(&self) -> Value {
        let servers: Vec<Value> = self.all().iter().map(|server| server.status()).collect();
        json!({"mcpServers": servers})
    }

    /// Connects anew.
    pub fn reconnect(&self, name: &str) -> Answer {
        let found = self.find(name);
        async move {
            let server = found?;
            server.connect().await;
            is_connected(&server)
        }
        .boxed()
    }

    /// Puts a server aside, or takes it up again.
    pub fn toggle(&self, name: &str, enabled: bool) -> Answer {
        let found = self.find(name);
        if let Ok(server) = &found {
            server.set_enabled(enabled);
        }
        async move {
            let server = found?;
            if enabled {
                server.connect().await;
                return is_connected(&server);
            }
            server.close().await;
            Ok(json!({}))
        }
        .boxed()
    }

    /// What a server outside of the client has for those who show its tools.
    pub fn read(&self, name: &str, uri: &str) -> Answer {
        const SCHEME: &str = "ui://";
        let (found, uri) = (self.find(name), uri.to_owned());
        async move {
            if !uri.starts_with(SCHEME) {
                return Err(format!("mcp_read_resource reads {SCHEME} resources only, and this is {uri}"));
            }
            let server = found?;
            if matches!(server.config().reach, Reach::Wire(_)) {
                return Err(format!("{} is a server of the client's own: read it there", server.name()));
            }
            Ok(json!({"contents": server.contents(&uri).await?}))
        }
        .boxed()
    }

    /// Where plugins keep what they want to keep, in a session that works there.
    pub fn plugin_data(&self, cwd: &Path) -> PathBuf {
        self.named.plugin_data.clone().unwrap_or_else(|| cwd.join(".claude/plugins/data"))
    }

    /// The servers that a plugin brings and that may be used.
    pub fn of_plugin(&self, plugin: &Plugin) -> Vec<Arc<Server>> {
        let read = (self.named.of_plugin)(plugin);
        let surroundings = &self.named.surroundings;
        read.servers.into_iter().map(|server| Server::new(server, surroundings.clone())).collect()
    }

    /// More servers are part of the session; those whose names are taken are not. Returns when they have been tried.
    pub async fn join(&self, more: Vec<Arc<Server>>) {
        let mut joined = Vec::new();
        for server in more {
            let mut all = self.lock();
            let is_known = all.iter().any(|known| known.server.name() == server.name());
            if !is_known && self.list.put(Arc::clone(&server) as Arc<dyn ToolServer>).is_ok() {
                all.push(Known { server: Arc::clone(&server), is_clients: false });
                joined.push(server);
            }
        }
        connect_all(joined).await;
    }

    /// Words of a server that nobody asked for.
    pub fn heard(&self, name: &str, message: &Value) {
        if let Ok(server) = self.find(name) {
            server.heard(message);
        }
    }

    /// The client's servers are these from now on. Those that files and the command line name stay, unless the client has named
    /// them, too.
    pub fn set(&self, wanted: &Value) -> Answer {
        let Some(entries) = wanted.as_object() else {
            return async { Err("mcp_set_servers: servers is no object".to_owned()) }.boxed();
        };
        let Change { added, removed, gone, mut errors } = self.change(wanted, entries);
        async move {
            join_all(gone.iter().map(|server| server.close())).await;
            connect_all(added.clone()).await;
            let mut there = Vec::new();
            for server in &added {
                match is_connected(server) {
                    Ok(_) => there.push(server.name().to_owned()),
                    Err(why) => _ = errors.insert(server.name().to_owned(), json!(why)),
                }
            }
            Ok(json!({"added": there, "removed": removed, "errors": errors}))
        }
        .boxed()
    }

    /// Everything about a new set that happens at once.
    fn change(&self, wanted: &Value, entries: &Map<String, Value>) -> Change {
        let mut change = Change::default();
        let read = (self.named.read)(wanted);
        change.errors.extend(read.errors.into_iter().map(|(name, why)| (name, json!(why))));
        let inside = read.of_client.iter().map(|name| self.inside(name, &entries[name.as_str()]));
        let outside = read.servers.into_iter();
        let outside = outside.map(|server| Server::new(server, self.named.surroundings.clone()));
        let mut all = self.lock();
        all.retain(|Known { server, is_clients }| {
            let stays = !is_clients || entries.contains_key(server.name());
            if !stays {
                self.list.remove(server.name());
                change.remove(server);
            }
            stays
        });
        for server in inside.chain(outside) {
            let same = |known: &&mut Known| known.server.name() == server.name();
            let known = all.iter_mut().find(same);
            if let Some(known) = known {
                known.is_clients = true;
                if known.server.is_enabled() && is_same(known.server.config(), server.config()) {
                    continue;
                }
                change.remove(&known.server);
                known.server = Arc::clone(&server);
            } else {
                all.push(Known { server: Arc::clone(&server), is_clients: true });
            }
            match self.list.put(Arc::clone(&server) as Arc<dyn ToolServer>) {
                Ok(_) => change.added.push(server),
                Err(full) => {
                    all.retain(|known| !Arc::ptr_eq(&known.server, &server));
                    change.errors.insert(server.name().to_owned(), json!(full.to_string()));
                }
            }
        }
        change
    }

    fn inside(&self, name: &str, entry: &Value) -> Arc<Server> {
        let timeout = entry.get("timeout").and_then(Value::as_u64).map(Duration::from_millis);
        mcp::of_client(name, &self.client, timeout, &self.named.surroundings)
    }

    fn find(&self, name: &str) -> Result<Arc<Server>, String> {
        let all = self.lock();
        let known = all.iter().find(|known| known.server.name() == name);
        known.map(|known| Arc::clone(&known.server)).ok_or_else(|| format!("Server not found: {name}"))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Known>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a new set of servers changes.
#[derive(Default)]
struct Change {
    added: Vec<Arc<Server>>,
    removed: Vec<String>,
    gone: Vec<Arc<Server>>,
    errors: Map<String, Value>,
}

impl Change {
    fn remove(&mut self, server: &Arc<Server>) {
        self.removed.push(server.name().to_owned());
        self.gone.push(Arc::clone(server));
    }
}

/// Whether two entries lead to the same server. What the client has inside is known by its name alone.
fn is_same(known: &ServerConfig, wanted: &ServerConfig) -> bool {
    match (&known.reach, &wanted.reach) {
        (Reach::Wire(_), Reach::Wire(_)) => true,
        _ => known.written == wanted.written,
    }
}

fn is_connected(server: &Server) -> Result<Value, String> {
    let why = server.error();
    match server.state() {
        ServerState::Connected => Ok(json!({})),
        state => Err(why.unwrap_or_else(|| format!("the server {} is {}", server.name(), state.name()))),
    }
}
