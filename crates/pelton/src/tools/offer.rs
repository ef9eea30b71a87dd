//! What the model is offered: the session's own tools and those of servers.
//!
//! The list stands at the front of every request, so it changes at the beginning of a submission only, and then only
//! by what is new or described anew: what was offered once stays where it is, and a call of something that is gone
//! is answered with that. What changes in between is told to the model in words.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use super::server::{Served, ServerState, ToolServer, served_name};
use super::tool::Tool;
use crate::limits::SERVED_TOOLS_MAX;

/// The tools of a session.
pub(crate) struct Offer {
    tools: Vec<Arc<dyn Tool>>,
    servers: Vec<Server>,
    /// Names of tools that the API refused.
    refused: HashSet<String>,
}

struct Server {
    server: Arc<dyn ToolServer>,
    /// The names of its tools when the model last heard of them.
    told: Vec<String>,
    instructed: bool,
}

/// When the model can call what is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callable {
    Now,
    /// The list of this submission has gone out already.
    FromTheNextPromptOn,
}

impl Offer {
    pub fn new(tools: Vec<Arc<dyn Tool>>, servers: Vec<Arc<dyn ToolServer>>) -> Self {
        let servers =
            servers.into_iter().map(|server| Server { server, told: Vec::new(), instructed: false });
        Self { tools, servers: servers.collect(), refused: HashSet::new() }
    }

    /// Everything offered, in the order of the request.
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// The API refused it: it is not offered again.
    pub fn leave_out(&mut self, name: &str) {
        self.tools.retain(|tool| tool.spec().name != name);
        self.refused.insert(name.to_owned());
    }

    /// The servers by name, and how they are.
    pub fn servers(&self) -> Vec<(String, ServerState)> {
        let servers = self.servers.iter().map(|Server { server, .. }| server);
        servers.map(|server| (server.name().to_owned(), server.state())).collect()
    }

    /// What connected servers say about themselves, for the part that is said once. What comes later is
    /// [news](Self::news).
    pub fn instructions(&mut self) -> Vec<String> {
        self.servers.iter_mut().filter_map(Server::instructions).collect()
    }

    /// Takes in what servers serve now. Tells what changed in the list, if anything.
    pub fn renew(&mut self, is_denied: impl Fn(&str) -> bool) -> Option<String> {
        let mut changed = Vec::new();
        // Names are made of what the API takes, so two may become one: then the first is meant.
        let mut served_names = HashSet::new();
        for Server { server, .. } in &self.servers {
            for tool in server.tools().into_iter().take(SERVED_TOOLS_MAX) {
                let served = Served::new(server, tool.as_ref());
                let new = served.spec();
                if is_denied(new.name) || self.refused.contains(new.name) {
                    continue;
                }
                let name = new.name.to_owned();
                if !served_names.insert(name.clone()) {
                    continue;
                }
                match self.tools.iter().position(|tool| tool.spec().name == name) {
                    None => self.tools.push(Arc::new(served)),
                    Some(at) => {
                        let old = self.tools[at].spec();
                        if (old.description, old.input_schema) == (new.description, new.input_schema) {
                            continue;
                        }
                        self.tools[at] = Arc::new(served);
                    }
                }
                changed.push(name);
            }
        }
        (!changed.is_empty()).then(|| format!("new or changed: {}", changed.join(", ")))
    }

    /// What changed since the model last heard of the servers' tools, in words for it.
    pub fn news(&mut self, callable: Callable) -> Option<String> {
        let mut text = String::new();
        for server in &mut self.servers {
            let Some((added, gone)) = server.changes() else { continue };
            let name = server.server.name();
            let _ = writeln!(text, "The tools of the server {name} have changed.");
            if !added.is_empty() {
                let when = match callable {
                    Callable::Now => "they can be called now",
                    Callable::FromTheNextPromptOn => "they can be called from the user's next prompt on",
                };
                let _ = writeln!(text, "New: {} ({when}).", added.join(", "));
            }
            if !gone.is_empty() {
                let _ = writeln!(text, "No longer there: {}.", gone.join(", "));
            }
            if let Some(instructions) = server.instructions() {
                let _ = writeln!(text, "{instructions}");
            }
        }
        (!text.is_empty()).then_some(text)
    }
}

impl Server {
    /// What came and what went since the model last heard; it hears of that now.
    fn changes(&mut self) -> Option<(Vec<String>, Vec<String>)> {
        let tools = self.server.tools().into_iter().take(SERVED_TOOLS_MAX);
        let now: Vec<String> = tools.map(|tool| served_name(self.server.name(), tool.spec().name)).collect();
        let told = std::mem::replace(&mut self.told, now);
        let was: HashSet<&String> = told.iter().collect();
        let is: HashSet<&String> = self.told.iter().collect();
        let added: Vec<String> = self.told.iter().filter(|name| !was.contains(name)).cloned().collect();
        let gone: Vec<String> = told.iter().filter(|name| !is.contains(name)).cloned().collect();
        (!added.is_empty() || !gone.is_empty()).then_some((added, gone))
    }

    fn instructions(&mut self) -> Option<String> {
        if self.instructed || self.server.state() != ServerState::Connected {
            return None;
        }
        let text = self.server.instructions().filter(|text| !text.trim().is_empty())?;
        self.instructed = true;
        Some(format!("Instructions of the server {}:\n{text}", self.server.name()))
    }
}
