//! What the model is offered: the session's own tools and those of servers.
//!
//! The list stands at the front of every request, so it changes at the beginning of a submission only, and then only
//! by what is new or described anew: what was offered once stays where it is, and a call of something that is gone
//! is answered with that. Where tools are searched for ([`tool_search`](super::tool_search)), not even that: what comes after the
//! first request goes on the shelf, and so does what is too much to be sent. What changes is told to the model in words.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use super::resources::{self, Library};
use super::server::{Served, ServerList, ServerState, ToolServer, served_name};
use super::tool::Tool;
use super::tool_search::{self, Shelf};
use crate::limits::SERVED_TOOLS_MAX;

/// About how many bytes of a definition are one token.
const BYTES_PER_TOKEN: u64 = 4;

/// The tools of a session.
pub(crate) struct Offer {
    tools: Vec<Arc<dyn Tool>>,
    /// Tools that can be called and are not told of.
    unsent: Vec<Arc<dyn Tool>>,
    /// Tools of servers that are told of by name.
    shelf: Shelf,
    /// The most tokens of servers' tools that are sent; `None` if there is no shelf.
    sent_tokens_max: Option<u64>,
    /// The same for the day when there is somebody to serve: without servers a shelf is nothing worth telling of.
    sent_tokens_later: Option<u64>,
    /// The list has stood in front of a request.
    is_fixed: bool,
    /// Tools that came from a session above this one, by name.
    handed: HashSet<String>,
    /// Who serves now.
    list: ServerList,
    /// What they have to read.
    library: Library,
    /// The model knows how that is read.
    library_told: bool,
    /// Who the model has heard of.
    servers: Vec<Server>,
    /// Names of tools that the API refused.
    refused: HashSet<String>,
}

struct Server {
    server: Arc<dyn ToolServer>,
    /// The names of its tools when the model last heard of them.
    told: Vec<String>,
    instructed: bool,
    /// It is no longer part of the session, which the model does not know yet.
    is_gone: bool,
}

/// When the model can call what is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callable {
    Now,
    /// The list of this submission has gone out already.
    FromTheNextPromptOn,
}

impl Offer {
    /// `sent_tokens_max` is the most tokens of servers' tools that are sent; `None` for all of them.
    pub fn new(
        tools: Vec<Arc<dyn Tool>>,
        unsent: Vec<Arc<dyn Tool>>,
        servers: Vec<Arc<dyn ToolServer>>,
        sent_tokens_max: Option<u64>,
    ) -> Self {
        // Those of a session above this one.
        let (served, tools): (Vec<_>, Vec<_>) =
            tools.into_iter().partition(|tool| tool.spec().name.starts_with("mcp__"));
        let has_shelf = !(servers.is_empty() && served.is_empty());
        let list = ServerList::of(servers);
        let mut offer = Self {
            tools,
            unsent,
            shelf: Shelf::default(),
            sent_tokens_max: None,
            sent_tokens_later: sent_tokens_max,
            is_fixed: false,
            handed: served.iter().map(|tool| tool.spec().name.to_owned()).collect(),
            library: Library::of(list.clone()),
            library_told: false,
            list,
            servers: Vec::new(),
            refused: HashSet::new(),
        };
        if has_shelf {
            offer.open_shelf();
        }
        if offer.sent_tokens_max.is_some_and(|most| tokens(&served) > most) {
            served.into_iter().for_each(|tool| offer.shelf.put(tool));
        } else {
            offer.tools.extend(served);
        }
        offer
    }

    /// Who serves, to be changed while the session runs.
    pub fn list(&self) -> &ServerList {
        &self.list
    }

    /// What they have to read.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Everything that is sent, in the order of the request.
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// Everything that can be called and is there for good.
    pub fn callable(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.iter().chain(&self.unsent).cloned().collect()
    }

    /// What can be called besides, as it comes.
    pub fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    /// What an agent may have of all this.
    pub fn to_hand_on(&self) -> Vec<Arc<dyn Tool>> {
        let own = |tool: &Arc<dyn Tool>| !matches!(tool.spec().name, tool_search::NAME | tool_search::CALL);
        self.callable().into_iter().filter(own).chain(self.shelf.all()).collect()
    }

    /// The names of what is sent or told of, and is there.
    pub fn names(&self) -> Vec<String> {
        let (shelved, now) = (self.shelf.all(), self.served_names());
        let names = self.tools.iter().chain(&shelved).map(|tool| tool.spec().name);
        names.filter(|name| !self.is_gone(name, &now)).map(str::to_owned).collect()
    }

    /// The API refused it: it is not offered again.
    pub fn leave_out(&mut self, name: &str) {
        self.tools.retain(|tool| tool.spec().name != name);
        self.refused.insert(name.to_owned());
    }

    /// The servers by name, and how they are.
    pub fn servers(&self) -> Vec<(String, ServerState)> {
        self.list.all().iter().map(|server| (server.name().to_owned(), server.state())).collect()
    }

    /// What connected servers say about themselves, for the part that is said once. What comes later is
    /// [news](Self::news).
    pub fn instructions(&mut self) -> Vec<String> {
        self.look();
        self.servers.iter_mut().filter_map(Server::instructions).collect()
    }

    /// Takes in what servers serve now. Tells what changed in the list, if anything.
    pub fn renew(&mut self, is_denied: impl Fn(&str) -> bool) -> Option<String> {
        let mut changed = Vec::new();
        if self.sent_tokens_later.is_some() && !self.list.all().is_empty() {
            // The first server of the session: one change now, and none for those that come after it.
            let from = self.tools.len();
            self.open_shelf();
            changed.extend(self.tools[from..].iter().map(|tool| tool.spec().name.to_owned()));
            self.is_fixed = false;
        }
        self.clear_shelf();
        let served = self.served(is_denied);
        let is_sent =
            |tool: &Arc<dyn Tool>| self.tools.iter().any(|known| known.spec().name == tool.spec().name);
        let sent: Vec<_> =
            self.tools.iter().filter(|tool| tool.spec().name.starts_with("mcp__")).cloned().collect();
        let new: Vec<_> =
            served.iter().map(|(tool, _)| tool).filter(|tool| !is_sent(tool)).cloned().collect();
        let is_too_much = self.sent_tokens_max.is_some_and(|most| tokens(&sent) + tokens(&new) > most);
        for (tool, always) in served {
            let name = tool.spec().name.to_owned();
            match self.tools.iter().position(|tool| tool.spec().name == name) {
                // A new one that is not sent by itself; or one that is on the shelf already.
                None if self.shelf.get(&name).is_some() || self.shelves(is_too_much, always) => {
                    self.shelf.put(tool);
                    continue;
                }
                None => self.tools.push(tool),
                // What was sent is left as it was sent.
                Some(_) if self.is_fixed && self.sent_tokens_max.is_some() => continue,
                Some(at) => {
                    let (old, new) = (self.tools[at].spec(), tool.spec());
                    if (old.description, old.input_schema) == (new.description, new.input_schema) {
                        continue;
                    }
                    self.tools[at] = tool;
                }
            }
            changed.push(name);
        }
        self.is_fixed = true;
        (!changed.is_empty()).then(|| format!("new or changed: {}", changed.join(", ")))
    }

    /// Takes in what came while a submission runs, where that touches nothing that was sent.
    pub fn shelve(&mut self, is_denied: impl Fn(&str) -> bool) {
        if self.sent_tokens_max.is_none() {
            return;
        }
        self.clear_shelf();
        for (tool, _) in self.served(is_denied) {
            if !self.tools.iter().any(|known| known.spec().name == tool.spec().name) {
                self.shelf.put(tool);
            }
        }
    }

    /// Another conversation begins, which has heard of nothing: what is sent in front of it may be put together anew.
    pub fn forget(&mut self) {
        (self.is_fixed, self.library_told) = (false, false);
        self.servers.clear();
    }

    /// What the model must know from the beginning: the names of what is on the shelf.
    pub fn shelved(&self) -> Option<String> {
        let names: Vec<String> = self.shelf.all().iter().map(|tool| tool.spec().name.to_owned()).collect();
        (!names.is_empty()).then(|| {
            format!(
                "There are further tools, known by name only; {} shows how they are called: {}",
                tool_search::NAME,
                names.join(", ")
            )
        })
    }

    /// What changed since the model last heard of the servers' tools, in words for it.
    pub fn news(&mut self, callable: Callable) -> Option<String> {
        self.look();
        let mut text = String::new();
        let shelf = self.shelf.clone();
        for server in &mut self.servers {
            let Some((added, gone)) = server.changes() else { continue };
            let name = server.server.name();
            let _ = match server.is_gone {
                true => writeln!(text, "The server {name} is no longer part of this session."),
                false => writeln!(text, "The tools of the server {name} have changed."),
            };
            let (shelved, sent): (Vec<String>, Vec<String>) =
                added.into_iter().partition(|name| shelf.get(name).is_some());
            if !sent.is_empty() {
                let when = match callable {
                    Callable::Now => "they can be called now",
                    Callable::FromTheNextPromptOn => "they can be called from the user's next prompt on",
                };
                let _ = writeln!(text, "New: {} ({when}).", sent.join(", "));
            }
            if !shelved.is_empty() {
                let search = tool_search::NAME;
                let _ = writeln!(text, "New: {} ({search} shows how they are called).", shelved.join(", "));
            }
            if !gone.is_empty() {
                let _ = writeln!(text, "No longer there: {}.", gone.join(", "));
            }
            if let Some(instructions) = server.instructions() {
                let _ = writeln!(text, "{instructions}");
            }
        }
        self.servers.retain(|server| !server.is_gone);
        if !self.library_told && shelf.get(resources::READ).is_some() {
            let (list, read, search) = (resources::LIST, resources::READ, tool_search::NAME);
            let _ = writeln!(
                text,
                "Servers have something to read: {list}, {read} ({search} shows how they are called)."
            );
        }
        self.library_told |= self.library.has_any();
        (!text.is_empty()).then_some(text)
    }

    /// Notices who has come and who has gone.
    fn look(&mut self) {
        let now = self.list.all();
        for known in &mut self.servers {
            known.is_gone = now.iter().all(|server| server.name() != known.server.name());
        }
        for server in now {
            match self.servers.iter_mut().find(|known| known.server.name() == server.name()) {
                Some(known) if Arc::ptr_eq(&known.server, &server) => {}
                // Another in its place: what that one says about itself is new.
                Some(known) => (known.server, known.instructed) = (server, false),
                None => {
                    self.servers.push(Server { server, told: Vec::new(), instructed: false, is_gone: false });
                }
            }
        }
    }

    /// Takes from the shelf what nobody serves any more.
    fn clear_shelf(&self) {
        let now = self.served_names();
        self.shelf.take_away(|name| self.is_gone(name, &now));
    }

    /// The names of everything that is served now.
    fn served_names(&self) -> HashSet<String> {
        let mut names = HashSet::new();
        for server in self.list.all() {
            let tools = server.tools().into_iter().take(SERVED_TOOLS_MAX);
            names.extend(tools.map(|tool| served_name(server.name(), tool.spec().name)));
        }
        names
    }

    /// Whether a tool is one of a server's that does not serve it any more.
    fn is_gone(&self, name: &str, served: &HashSet<String>) -> bool {
        name.starts_with("mcp__") && !self.handed.contains(name) && !served.contains(name)
    }

    /// Puts the tools of the shelf into the list.
    fn open_shelf(&mut self) {
        self.sent_tokens_max = self.sent_tokens_later.take();
        if self.sent_tokens_max.is_some() {
            self.tools.extend(self.shelf.tools());
        }
    }

    /// Whether a new tool goes on the shelf.
    fn shelves(&self, is_too_much: bool, always_sent: bool) -> bool {
        // In front of a request that has gone out there is no place, not even for that one.
        self.sent_tokens_max.is_some() && (self.is_fixed || (is_too_much && !always_sent))
    }

    /// What servers serve now and may be offered, and whether it should be sent in any case.
    fn served(&self, is_denied: impl Fn(&str) -> bool) -> Vec<(Arc<dyn Tool>, bool)> {
        // Names are made of what the API takes, so two may become one: then the first is meant.
        let mut names = HashSet::new();
        let mut all: Vec<(Arc<dyn Tool>, bool)> = Vec::new();
        for server in self.list.all() {
            for tool in server.tools().into_iter().take(SERVED_TOOLS_MAX) {
                let always = server.is_always_sent(tool.spec().name);
                let served = Served::new(&self.list, server.as_ref(), tool.as_ref());
                let name = served.spec().name.to_owned();
                if !is_denied(&name) && !self.refused.contains(&name) && names.insert(name) {
                    all.push((Arc::new(served), always));
                }
            }
        }
        // Rules that keep all tools of a server away mean the server.
        self.library.close(|server| is_denied(&served_name(server, "*")));
        if self.library.has_any() {
            let tools = self.library.tools().into_iter();
            let tools =
                tools.filter(|tool| !is_denied(tool.spec().name) && !self.refused.contains(tool.spec().name));
            all.extend(tools.map(|tool| (tool, true)));
        }
        all
    }
}

/// About how many tokens these take in front of a request.
fn tokens(tools: &[Arc<dyn Tool>]) -> u64 {
    let bytes = |tool: &Arc<dyn Tool>| {
        let spec = tool.spec();
        (spec.name.len() + spec.description.len() + spec.input_schema.len()) as u64
    };
    tools.iter().map(bytes).sum::<u64>() / BYTES_PER_TOKEN
}

impl Server {
    /// What came and what went since the model last heard; it hears of that now.
    fn changes(&mut self) -> Option<(Vec<String>, Vec<String>)> {
        let tools = if self.is_gone { Vec::new() } else { self.server.tools() };
        let tools = tools.into_iter().take(SERVED_TOOLS_MAX);
        let now: Vec<String> = tools.map(|tool| served_name(self.server.name(), tool.spec().name)).collect();
        let told = std::mem::replace(&mut self.told, now);
        let was: HashSet<&String> = told.iter().collect();
        let is: HashSet<&String> = self.told.iter().collect();
        let added: Vec<String> = self.told.iter().filter(|name| !was.contains(name)).cloned().collect();
        let gone: Vec<String> = told.iter().filter(|name| !is.contains(name)).cloned().collect();
        (!added.is_empty() || !gone.is_empty()).then_some((added, gone))
    }

    fn instructions(&mut self) -> Option<String> {
        if self.instructed || self.is_gone || self.server.state() != ServerState::Connected {
            return None;
        }
        let text = self.server.instructions().filter(|text| !text.trim().is_empty())?;
        self.instructed = true;
        Some(format!("Instructions of the server {}:\n{text}", self.server.name()))
    }
}
