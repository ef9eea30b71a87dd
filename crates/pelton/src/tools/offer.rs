//! What the model is offered: the session's own tools and those of servers.
//!
//! The list stands at the front of every request, so it changes at the beginning of a submission only, and then only
//! by what is new or described anew: what was offered once stays where it is, and a call of something that is gone
//! is answered with that. Where tools are searched for ([`tool_search`](super::tool_search)), not even that: what comes after the
//! first request goes on the shelf, and so does what is too much to be sent. What changes is told to the model in words.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use pelton_model::{CacheLife, Prefix};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::agent::{self, AgentTool, Startable};
use super::resources::{self, Library};
use super::server::{Served, ServerList, ServerState, ToolServer, served_name};
use super::tool::{Spec, Tool};
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
    /// What the model heard from an earlier process, until the servers it was about have been asked.
    before: Option<Before>,
    /// Words about tools that were sent and are described in another way now, for the model.
    anew: Vec<String>,
}

struct Server {
    server: Arc<dyn ToolServer>,
    /// The names of its tools when the model last heard of them.
    told: Vec<String>,
    /// Where the model has read what it says about itself, if it has.
    instructed: Option<Place>,
    /// It is no longer part of the session, which the model does not know yet.
    is_gone: bool,
    /// An earlier process told of its tools, and it has not said since what it serves.
    is_awaited: bool,
}

/// Where the model reads something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In front of every request.
    Front,
    /// In the conversation.
    Behind,
}

/// What the model heard from an earlier process.
struct Before {
    /// The names of servers' tools that were there.
    names: Vec<String>,
    /// What stood in the system prompt.
    system: Vec<String>,
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
            before: None,
            anew: Vec::new(),
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

    /// Offers what an earlier process offered, in its order and words, if that is still what is wanted: what this session has
    /// of its own must be described as it was, and nothing of servers may be denied by now. Tells whether it is so. `told`
    /// are the names of servers' tools that the model knows of, if that was noted.
    pub fn go_on_with(
        &mut self,
        prefix: &FrontBefore,
        told: Option<Vec<String>>,
        agents: &Startable,
        is_denied: impl Fn(&str) -> bool,
    ) -> bool {
        let searched = |spec: &OwnedSpec| spec.name == tool_search::NAME;
        let may_search = self.sent_tokens_max.or(self.sent_tokens_later).is_some();
        let is_searched = prefix.tools.iter().any(searched);
        if is_searched && !may_search || !is_searched && self.sent_tokens_max.is_some() {
            return false;
        }
        let own = std::mem::take(&mut self.tools);
        let is_ours = |tool: &&Arc<dyn Tool>| !is_for_servers(tool.spec().name);
        let others: Vec<Arc<dyn Tool>> = self.shelf.tools().into_iter().chain(self.library.tools()).collect();
        let mut anew = None;
        let find = |spec: &OwnedSpec| -> Option<Arc<dyn Tool>> {
            if spec.name.starts_with("mcp__") {
                let served = Served::offered_before(&self.list, &spec.borrowed());
                return (!is_denied(&spec.name)).then(|| Arc::new(served) as Arc<dyn Tool>);
            }
            let called_so = |tool: &&Arc<dyn Tool>| tool.spec().name == spec.name;
            let tool = own.iter().filter(is_ours).chain(&others).find(called_so)?;
            if !agent::is_one(tool.as_ref()) {
                // One that is described in another way is another.
                return (tool.spec().json() == spec.borrowed().json()).then(|| Arc::clone(tool));
            }
            anew = AgentTool::news(agents, &spec.description);
            Some(Arc::new(AgentTool::described_as(agents, &spec.description)))
        };
        let tools: Option<Vec<Arc<dyn Tool>>> = prefix.tools.iter().map(find).collect();
        // What this session adds to it is wanted now.
        let is_missing =
            |tool: &&Arc<dyn Tool>| prefix.tools.iter().all(|spec| spec.name != tool.spec().name);
        let all_are_there = !own.iter().filter(is_ours).any(|tool| is_missing(&tool));
        let Some(tools) = tools.filter(|_| all_are_there) else {
            self.tools = own;
            return false;
        };
        let served = tools.iter().map(|tool| tool.spec().name).filter(|name| name.starts_with("mcp__"));
        let names = told.unwrap_or_else(|| served.map(str::to_owned).collect());
        self.before = Some(Before { names, system: prefix.system.clone() });
        self.library_told |= tools.iter().any(|tool| tool.spec().name == resources::READ);
        self.sent_tokens_max = self.sent_tokens_max.or(self.sent_tokens_later.take().filter(|_| is_searched));
        self.anew.extend(anew);
        (self.tools, self.is_fixed) = (tools, true);
        true
    }

    /// The names of all tools of servers that the model has heard of, from an earlier process as long as nobody knows better.
    pub fn told(&self) -> Vec<String> {
        let before = self.before.iter().flat_map(|before| &before.names);
        self.servers.iter().flat_map(|server| &server.told).chain(before).cloned().collect()
    }

    /// The same where nothing is left of what it heard in the conversation but what is [told again](Self::told_again), if that is.
    pub fn told_still(&self, again: bool) -> Vec<String> {
        let shelved = self.shelf.all().into_iter().filter(|_| again);
        let known = shelved.chain(self.tools.iter().cloned());
        known.map(|tool| tool.spec().name.to_owned()).filter(|name| name.starts_with("mcp__")).collect()
    }

    /// It is so: whatever else is there is new to the model.
    pub fn tell_anew(&mut self, again: bool) {
        let still: HashSet<String> = self.told_still(again).into_iter().collect();
        let before = self.before.iter_mut().map(|before| &mut before.names);
        let told = self.servers.iter_mut().map(|server| &mut server.told);
        before.chain(told).for_each(|names| names.retain(|name| still.contains(name)));
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

    /// There are other agents from now on: the model is told behind what was sent.
    pub fn change_agents(&mut self, agents: &Startable) {
        let Some(tool) = self.tools.iter_mut().find(|tool| agent::is_one(tool.as_ref())) else { return };
        if !self.is_fixed {
            *tool = Arc::new(AgentTool::new(agents));
            return;
        }
        self.anew.extend(AgentTool::news(agents, ""));
        *tool = Arc::new(AgentTool::described_as(agents, tool.spec().description));
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
        let mut seen = HashSet::new();
        let names = self.tools.iter().chain(&shelved).map(|tool| tool.spec().name);
        // One that is described in another way than it was sent is at both places.
        let names = names.filter(|name| seen.insert(*name));
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

    /// Who named each of them.
    pub fn server_sources(&self) -> Vec<&'static str> {
        self.list.all().iter().map(|server| server.source()).collect()
    }

    /// Those that were configured so that nobody can speak to them, and why.
    pub fn unusable_servers(&self) -> Vec<(String, String)> {
        let all = self.list.all();
        all.iter().filter_map(|server| Some((server.name().to_owned(), server.unusable()?))).collect()
    }

    /// What connected servers say about themselves, for the part that is said once. What comes later is
    /// [news](Self::news).
    pub fn instructions(&mut self) -> Vec<String> {
        self.look();
        self.servers.iter_mut().filter_map(|server| server.instructions(Place::Front)).collect()
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
                Some(at) if self.tools[at].spec().json() == tool.spec().json() => continue,
                // What was sent is left as it was sent; how it is called now is told behind it.
                Some(_) if self.is_fixed && self.sent_tokens_max.is_some() => {
                    self.described_anew(tool);
                    continue;
                }
                Some(at) => self.tools[at] = tool,
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
            match self.tools.iter().find(|known| known.spec().name == tool.spec().name) {
                Some(known) if known.spec().json() == tool.spec().json() => {}
                Some(_) => self.described_anew(tool),
                None => self.shelf.put(tool),
            }
        }
    }

    /// A tool that was sent is described in another way now.
    fn described_anew(&mut self, tool: Arc<dyn Tool>) {
        let name = tool.spec().name.to_owned();
        let is_known = self.shelf.get(&name).is_some_and(|known| known.spec().json() == tool.spec().json());
        self.shelf.put(tool);
        if !is_known {
            let search = tool_search::NAME;
            self.anew.push(format!("The tool {name} is called in another way now: {search} shows how."));
        }
    }

    /// Another conversation begins, which has heard of nothing: what is sent in front of it may be put together anew.
    pub fn forget(&mut self) {
        (self.is_fixed, self.library_told) = (false, false);
        (self.before, self.anew) = (None, Vec::new());
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

    /// What it must know again where what was told in the conversation is gone: the same, and what servers said of themselves
    /// after the beginning.
    pub fn told_again(&self) -> Option<String> {
        let late = self.servers.iter().filter(|server| server.instructed == Some(Place::Behind));
        let texts: Vec<String> = self.shelved().into_iter().chain(late.filter_map(Server::words)).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// What changed since the model last heard of the servers' tools, in words for it. `tells` says whether it reads a text in
    /// the conversation already.
    pub fn news(&mut self, callable: Callable, tells: impl Fn(&str) -> bool) -> Option<String> {
        self.look();
        let mut text = String::new();
        let shelf = self.shelf.clone();
        let system = self.before.as_ref().map(|before| before.system.as_slice()).unwrap_or_default();
        for server in &mut self.servers {
            server.recall_instructions(system, &tells);
            let changes = server.changes();
            if changes.is_none() && server.words().is_none_or(|_| server.instructed.is_some()) {
                continue;
            }
            let (added, gone) = changes.unwrap_or_default();
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
            if let Some(instructions) = server.instructions(Place::Behind) {
                let _ = writeln!(text, "{instructions}");
            }
        }
        self.servers.retain(|server| !server.is_gone);
        for words in self.anew.drain(..) {
            let _ = writeln!(text, "{words}");
        }
        // What is left are tools of servers that are not part of the session any more.
        let left = self.before.as_mut().map(|before| std::mem::take(&mut before.names)).unwrap_or_default();
        if !left.is_empty() {
            let _ = writeln!(text, "No longer there, with their servers: {}.", left.join(", "));
        }
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
                Some(known) => (known.server, known.instructed) = (server, None),
                None => {
                    let told = self.told_before(server.name());
                    let is_awaited = !told.is_empty();
                    let (instructed, is_gone) = (None, false);
                    self.servers.push(Server { server, told, instructed, is_gone, is_awaited });
                }
            }
        }
    }

    /// The tools of a server that an earlier process told of: those that bear its name, and not a longer one.
    fn told_before(&mut self, server: &str) -> Vec<String> {
        let Some(before) = &mut self.before else { return Vec::new() };
        let all = self.list.all();
        let own = served_name(server, "");
        let is_own = |name: &String| {
            let longer = |other: &Arc<dyn ToolServer>| {
                let other = served_name(other.name(), "");
                other.len() > own.len() && name.starts_with(&other)
            };
            name.starts_with(&own) && !all.iter().any(longer)
        };
        let (told, left) = std::mem::take(&mut before.names).into_iter().partition(is_own);
        before.names = left;
        told
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
        let is_on_its_way = self.server.state() == ServerState::Pending && !self.is_gone;
        if is_on_its_way && self.is_awaited {
            return None;
        }
        self.is_awaited = false;
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

    /// What it says about itself, if the model has not read it: it reads it now.
    fn instructions(&mut self, place: Place) -> Option<String> {
        let words = self.words().filter(|_| self.instructed.is_none())?;
        self.instructed = Some(place);
        Some(words)
    }

    /// The model may have read it already, from an earlier process.
    fn recall_instructions(&mut self, system: &[String], tells: impl Fn(&str) -> bool) {
        if system.is_empty() || self.instructed.is_some() {
            return;
        }
        let Some(words) = self.words() else { return };
        self.instructed = match system.contains(&words) {
            true => Some(Place::Front),
            false => tells(&words).then_some(Place::Behind),
        };
    }

    fn words(&self) -> Option<String> {
        if self.is_gone || self.server.state() != ServerState::Connected {
            return None;
        }
        let text = self.server.instructions().filter(|text| !text.trim().is_empty())?;
        Some(format!("{INSTRUCTIONS} {}:\n{text}", self.server.name()))
    }
}

/// How what a server says about itself begins.
const INSTRUCTIONS: &str = "Instructions of the server";

/// Whether a tool is there because of servers.
fn is_for_servers(name: &str) -> bool {
    name.starts_with("mcp__")
        || [tool_search::NAME, tool_search::CALL, resources::LIST, resources::READ, resources::READ_DIR]
            .contains(&name)
}

/// What an earlier process sent in front of its requests.
pub(crate) struct FrontBefore {
    /// The texts of the system prompt.
    system: Vec<String>,
    /// How the last of them was marked.
    mark: Option<Value>,
    tools: Vec<OwnedSpec>,
}

#[derive(Deserialize)]
struct OwnedSpec {
    name: String,
    description: String,
    input_schema: Box<RawValue>,
}

impl OwnedSpec {
    fn borrowed(&self) -> Spec<'_> {
        let Self { name, description, input_schema } = self;
        Spec { name, description, input_schema: input_schema.get() }
    }
}

impl FrontBefore {
    /// What was sent, if it is something that we could have sent.
    pub fn read(prefix: &Prefix) -> Option<Self> {
        #[derive(Deserialize)]
        struct Text {
            text: String,
            cache_control: Option<Value>,
        }
        let mut system: Vec<Text> = serde_json::from_slice(&prefix.system).ok()?;
        let tools = serde_json::from_slice(&prefix.tools).ok()?;
        let mark = system.last_mut().and_then(|block| block.cache_control.take());
        let system = system.into_iter().map(|block| block.text).collect();
        Some(Self { system, mark, tools })
    }

    /// Whether the server was to keep it so long. Where there are no words, there was nothing to mark.
    pub fn was_kept(&self, life: CacheLife) -> bool {
        let wanted = life.mark().and_then(|mark| serde_json::from_str(mark).ok());
        self.system.is_empty() || self.mark == wanted
    }

    /// The names of the tools.
    pub fn tool_names(&self) -> Vec<&str> {
        self.tools.iter().map(|spec| spec.name.as_str()).collect()
    }

    /// What stood in the system prompt, but for what servers said about themselves.
    pub fn own_words(&self) -> impl Iterator<Item = &str> {
        self.system.iter().map(String::as_str).filter(|text| !text.starts_with(INSTRUCTIONS))
    }
}
