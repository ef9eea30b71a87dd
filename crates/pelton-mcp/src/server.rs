//! One server: what is known of it, the connection to it, and calls.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton::command::Command;
use pelton::host::{Elicitation, Elicited, Host};
use pelton::tools::{Output, Progress, Report, Resource, ResultBlock, ServerState, Tool, ToolCx, ToolServer};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam, ClientRequest,
    MetaObject, ProgressNotificationParam, ProgressToken, RequestId, RequestMetaObject, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, RunningService, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::config::{Reach, ServerConfig};
use crate::content;
use crate::handler::Handler;
use crate::library::{self, Listing};
use crate::limits::{REJOIN_TRIES, REJOIN_WAIT, REMOTE_TRIES, SILENCE_PROGRAM, SILENCE_REMOTE};
use crate::line::Line;
use crate::prompt::ServedPrompt;
use crate::reach::{self, NotReached};
use crate::surroundings::Surroundings;
use crate::tool::{ServedTool, cut};

/// What a server wants of a person.
pub(crate) enum Wanted {
    /// Answers, in the form of this schema.
    Fields(Value),
    /// That they open this address; the server has a name for that.
    Visit { url: String, id: String },
}

/// A server, however it is reached.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use pelton_mcp::{Scope, Server, Surroundings, read_servers};
/// use serde_json::json;
///
/// # async fn connect(options: &mut pelton::Options) {
/// let read = read_servers(&json!({"files": {"command": "serve-files"}}), Scope::Dynamic, |_| None);
/// let server = Server::new(read.servers[0].clone(), Surroundings::new("/srv"));
/// options.servers.push(Arc::clone(&server) as Arc<dyn pelton::tools::ToolServer>);
/// server.connect().await; // before the first prompt, or beside it
/// # }
/// ```
pub struct Server {
    this: Weak<Self>,
    config: ServerConfig,
    surroundings: Surroundings,
    known: Mutex<Known>,
    /// The connection. Held while one is made: whoever needs one waits for the attempt that is under way.
    line: tokio::sync::Mutex<Line>,
    /// Calls under way, the newest last: to tell them how far they are and to have somebody to ask.
    calls: Mutex<Vec<Running>>,
}

/// What is known of a server.
struct Known {
    state: ServerState,
    error: Option<String>,
    info: Option<Value>,
    instructions: Option<String>,
    tools: Vec<Arc<ServedTool>>,
    prompts: Vec<Arc<ServedPrompt>>,
    /// It has something to read.
    has_resources: bool,
    /// Tools that cannot be offered, and why.
    faults: Vec<(String, String)>,
    enabled: bool,
    /// What the requests of the connection carry.
    token: Option<String>,
    /// The directories the session works in.
    roots: Vec<PathBuf>,
}

/// A call that came to nothing.
struct Failed {
    words: String,
    needs_login: bool,
}

impl Failed {
    fn because(words: String) -> Self {
        Self { words, needs_login: false }
    }
}

/// A call under way.
struct Running {
    token: ProgressToken,
    caller: Caller,
    /// Told when the server says how far it is.
    progressed: Arc<Notify>,
}

/// Who makes a call: who hears how far it is, and who is asked when the server has a question.
#[derive(Clone)]
#[non_exhaustive]
pub struct Caller {
    /// The id of the call.
    pub call: Arc<str>,
    /// The program around the session.
    pub host: Host,
    /// Where it is said how far the call is.
    pub progress: Progress,
    /// Set when nobody wants the answer any more.
    pub cancel: CancellationToken,
}

impl Caller {
    /// Nobody listens, and nobody can be asked.
    pub fn alone(call: impl Into<Arc<str>>) -> Self {
        let (host, progress) = (Host::default(), Progress::ignored());
        Self { call: call.into(), host, progress, cancel: CancellationToken::new() }
    }

    /// The session, by a call of the model's.
    pub fn of(cx: &ToolCx) -> Self {
        let call = Arc::clone(&cx.call_id);
        Self { call, host: cx.host.clone(), progress: cx.progress.clone(), cancel: cx.cancel.clone() }
    }
}

impl Server {
    /// A server that nobody has spoken to yet.
    pub fn new(config: ServerConfig, surroundings: Surroundings) -> Arc<Self> {
        let unusable = match &config.reach {
            Reach::Nowhere(why) => Some(why.clone()),
            _ => None,
        };
        let known = Known {
            state: if unusable.is_some() { ServerState::Failed } else { ServerState::Pending },
            error: unusable,
            info: None,
            instructions: None,
            tools: Vec::new(),
            prompts: Vec::new(),
            has_resources: false,
            faults: Vec::new(),
            enabled: true,
            token: None,
            roots: surroundings.roots.clone(),
        };
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            config,
            surroundings,
            known: Mutex::new(known),
            line: tokio::sync::Mutex::default(),
            calls: Mutex::default(),
        })
    }

    /// What it is reached by.
    pub fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }

    /// How it was configured.
    pub fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// Shakes hands and learns what there is, anew if that was done before. However it ends, it is known afterwards.
    pub async fn connect(self: &Arc<Self>) {
        let mut line = self.line.lock().await;
        self.dial(&mut line, REMOTE_TRIES).await;
    }

    /// Ends the connection; a call makes a new one.
    pub async fn close(&self) {
        self.line.lock().await.close().await;
    }

    /// Why it is not connected, or what else is wrong with it, if anything is.
    pub fn error(&self) -> Option<String> {
        self.known().error.clone()
    }

    /// Whether it is wanted.
    pub fn is_enabled(&self) -> bool {
        self.known().enabled
    }

    /// Takes it up or puts it aside.
    pub fn set_enabled(&self, enabled: bool) {
        self.known().enabled = enabled;
    }

    /// Something the server said unasked, by way of [`Wire`](crate::Wire).
    pub fn heard(&self, message: &Value) {
        if let Reach::Wire(wire) = &self.config.reach {
            reach::heard(wire, message);
        }
    }

    /// Everything there is to know, for clients.
    pub fn status(&self) -> Value {
        let state = self.state().name();
        let known = self.known();
        let scope = self.config.scope.name();
        // Clients trust their own servers by this, and by nothing that a file could say.
        let source = if matches!(self.config.reach, Reach::Wire(_)) { "sdk" } else { scope };
        let mut status = json!({"name": self.config.name, "status": state, "scope": scope, "source": source});
        if !self.config.written.is_null() {
            status["config"] = self.config.written.clone();
        }
        if let Some(info) = &known.info {
            status["serverInfo"] = info.clone();
        }
        let faults = known.faults.iter().map(|(tool, why)| format!("the tool {tool} is left out: {why}"));
        let errors: Vec<String> = known.error.iter().cloned().chain(faults).collect();
        if !errors.is_empty() {
            status["error"] = json!(errors.join("; "));
        }
        if state == "connected" {
            let tools: Vec<Value> = known.tools.iter().map(|tool| tool.listed()).collect();
            status["tools"] = json!(tools);
        }
        status
    }

    /// Calls a tool by its own name. A connection that is gone is made again first; a call that may have arrived is never
    /// made twice.
    pub async fn call(self: &Arc<Self>, tool: &str, input: Value, caller: &Caller) -> Result<Output, String> {
        let failed = match Box::pin(self.call_once(tool, input.clone(), caller)).await {
            // Refused at the door: it was not made. It is made with a token that is newer, if there is one.
            Err(failed) if failed.needs_login => failed,
            called => return called.map_err(|failed| failed.words),
        };
        if Box::pin(self.renew_login()).await {
            let again = Box::pin(self.call_once(tool, input, caller));
            return again.await.map_err(|failed| failed.words);
        }
        let why = failed.words;
        Err(format!("{why} (the server {} wants somebody to log in)", self.config.name))
    }

    async fn call_once(
        self: &Arc<Self>,
        tool: &str,
        input: Value,
        caller: &Caller,
    ) -> Result<Output, Failed> {
        let peer = self.peer().await.map_err(Failed::because)?;
        let mut params = CallToolRequestParams::new(tool.to_owned());
        if let Value::Object(arguments) = input {
            params = params.with_arguments(arguments);
        }
        let mut meta = MetaObject::default();
        meta.insert("claudecode/toolUseId".to_owned(), json!(&*caller.call));
        let options = PeerRequestOptions::no_options().with_meta(RequestMetaObject(meta));
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let handle = peer
            .send_request_with_option(request, options)
            .await
            .map_err(|error| self.failed(tool, &error))?;
        let mut under_way = UnderWay {
            server: self,
            peer: &peer,
            id: Some(handle.id.clone()),
            token: handle.progress_token.clone(),
        };
        let (token, progressed) = (under_way.token.clone(), Arc::new(Notify::new()));
        self.calls().push(Running { token, caller: caller.clone(), progressed: Arc::clone(&progressed) });
        // Its times are kept here: a server that does not even read cannot be told anything, and that must not be waited for.
        let answer = match self.in_time(handle.await_response(), &progressed).await {
            Ok(answer) => answer,
            Err(time) => {
                let (server, time) = (&self.config.name, time.as_secs_f64());
                let why = format!("{tool} of the server {server} did not answer within {time} s");
                return Err(Failed::because(why));
            }
        };
        under_way.id = None;
        match answer {
            Ok(ServerResult::InputRequiredResult(_)) => Err(Failed::because(format!(
                "the server {} wants to know more before it answers, in a way this version does not speak",
                self.config.name
            ))),
            Ok(result) => Ok(content::output(&serde_json::to_value(result).unwrap_or_default())),
            Err(error) => Err(self.failed(tool, &error)),
        }
    }

    /// Connects with a token that is newer than the one that was refused. Without one, somebody has to log in.
    async fn renew_login(self: &Arc<Self>) -> bool {
        let (Reach::Http(remote) | Reach::Sse(remote)) = &self.config.reach else { return false };
        let bearer = self.surroundings.bearer(&self.config.name, remote);
        let used = self.known().token.clone();
        let newer = match &bearer {
            Some(bearer) => bearer.after(used.as_deref()).await,
            None => None,
        };
        if newer.is_some() {
            self.connect().await;
            return self.known().state == ServerState::Connected;
        }
        let mut known = self.known();
        known.state = ServerState::NeedsAuth;
        known.error = Some(reach::LOG_IN.to_owned());
        false
    }

    /// What comes of a call, or the time that is up: that of silence, which begins anew with every word of progress, or that
    /// of the whole call.
    async fn in_time<T>(&self, answer: impl Future<Output = T>, progressed: &Notify) -> Result<T, Duration> {
        let (silence, whole) = (self.silence(), self.config.timeout.unwrap_or(self.surroundings.call_time));
        let mut answer = std::pin::pin!(answer);
        let mut all = std::pin::pin!(tokio::time::sleep(whole));
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return Ok(answer),
                () = &mut all => return Err(whole),
                () = progressed.notified() => {}
                () = tokio::time::sleep(silence) => return Err(silence),
            }
        }
    }

    /// Learns anew what there is. A list that cannot be had leaves the old one.
    pub(crate) async fn relist(self: &Arc<Self>, peer: &Peer<RoleClient>) {
        if let Ok((tools, faults)) = self.list_tools(peer).await {
            let mut known = self.known();
            (known.tools, known.faults) = (tools, faults);
        }
    }

    /// The same for its prompts.
    pub(crate) async fn relist_prompts(self: &Arc<Self>, peer: &Peer<RoleClient>) {
        if let Ok(prompts) = self.list_prompts(peer).await {
            self.known().prompts = prompts;
        }
    }

    /// Asks a person, on behalf of the newest call.
    pub(crate) async fn elicit(&self, message: String, wanted: Wanted) -> Elicited {
        let asked = self.calls().last().map(|running| running.caller.clone());
        // Nobody is there to be asked while nothing runs.
        let Some(Caller { call, host, cancel, .. }) = asked else { return Elicited::Decline };
        let name = self.config.name.clone();
        let question = match wanted {
            Wanted::Fields(schema) => Elicitation::new(call, name, message, schema),
            Wanted::Visit { url, id } => Elicitation::visit(call, name, message, url).named(id),
        };
        host.elicit(&question, &cancel).await
    }

    pub(crate) fn heard_progress(&self, told: &ProgressNotificationParam) {
        let words = match (&told.message, told.total) {
            (Some(message), _) => message.clone(),
            (None, Some(total)) => format!("{} of {total}", told.progress),
            (None, None) => told.progress.to_string(),
        };
        if let Some(running) = self.calls().iter().find(|running| running.token == told.progress_token) {
            running.progressed.notify_one();
            running.caller.progress.report(&running.caller.call, Report::OutputLine(words));
        }
    }

    /// The session's directories, as addresses.
    pub(crate) fn roots(&self) -> Vec<String> {
        let address = |root: &PathBuf| url::Url::from_file_path(root).ok().map(String::from);
        self.known().roots.iter().filter_map(address).collect()
    }

    /// The connection, made again if it is gone: once, for all who wait for it.
    pub(crate) async fn peer(self: &Arc<Self>) -> Result<Peer<RoleClient>, String> {
        let seen = match self.line.try_lock() {
            Ok(line) => match line.peer() {
                Some(peer) => return Ok(peer.clone()),
                None => line.attempts,
            },
            // Somebody is at it: their attempt is ours.
            Err(_) => u64::MAX,
        };
        let mut line = self.line.lock().await;
        if let Some(peer) = line.peer() {
            return Ok(peer.clone());
        }
        if line.attempts == seen {
            // Rare, and large: not a part of every call's future.
            Box::pin(self.dial(&mut line, REMOTE_TRIES)).await;
        }
        line.peer().cloned().ok_or_else(|| {
            let why = self.known().error.clone();
            let why = why.unwrap_or_else(|| "the connection is gone".to_owned());
            format!("the server {} cannot be reached: {why}", self.config.name)
        })
    }

    /// One attempt; an address is asked several times.
    async fn dial(self: &Arc<Self>, line: &mut Line, tries: u32) {
        line.attempts = line.attempts.wrapping_add(1);
        line.close().await;
        let time = self.surroundings.connect_time;
        let met = tokio::time::timeout(time, self.meet(tries)).await.unwrap_or_else(|_| {
            Err(NotReached::because(format!("it did not answer within {} s", time.as_secs_f64())))
        });
        let mut known = self.known();
        match met {
            Ok(Met { service, token, tools: (tools, faults), prompts }) => {
                known.token = token;
                let told = service.peer().peer_info();
                known.has_resources = told.as_ref().is_some_and(|told| told.capabilities.resources.is_some());
                known.prompts = prompts;
                (known.state, known.error) = (ServerState::Connected, None);
                known.info =
                    told.as_ref().and_then(|told| serde_json::to_value(told.server_info.as_ref()?).ok());
                known.instructions = told.and_then(|told| told.instructions.clone()).map(cut);
                (known.tools, known.faults) = (tools, faults);
                let this = Arc::downgrade(self);
                line.open(service, move || Self::lost_connection(&this));
            }
            // What was known stays known: the tools of a server are there again when it is.
            Err(not) => {
                known.state = if not.needs_login { ServerState::NeedsAuth } else { ServerState::Failed };
                known.error = Some(not.why);
            }
        }
    }

    /// The connection ended by itself. An address is looked for again; a program is started again by the next call alone, for
    /// what it ended of may be what it was asked.
    fn lost_connection(this: &Weak<Self>) {
        let Some(server) = this.upgrade().filter(|server| !server.config.reach.is_local()) else { return };
        let mut known = server.known();
        known.state = ServerState::Pending;
        known.error = Some("the connection was lost".to_owned());
        tokio::spawn(Self::rejoin(Weak::clone(this)));
    }

    // Boxed: the connection that comes of it is watched by something that comes back here.
    fn rejoin(this: Weak<Self>) -> BoxFuture<'static, ()> {
        async move {
            let mut wait = REJOIN_WAIT;
            for _ in 0..REJOIN_TRIES {
                tokio::time::sleep(wait).await;
                let Some(server) = this.upgrade() else { return };
                let mut line = server.line.lock().await;
                // Somebody else may have made one, or want none.
                if line.peer().is_some() || !server.is_enabled() {
                    return;
                }
                server.dial(&mut line, 1).await;
                if matches!(server.state(), ServerState::Connected | ServerState::NeedsAuth) {
                    return;
                }
                wait *= 2;
            }
        }
        .boxed()
    }

    async fn meet(self: &Arc<Self>, tries: u32) -> Result<Met, NotReached> {
        let handler = || Handler(Arc::downgrade(self));
        let (service, token) = reach::connect(&self.config, &self.surroundings, tries, handler).await?;
        let told = service.peer().peer_info();
        let offers_tools = told.as_ref().is_none_or(|told| told.capabilities.tools.is_some());
        let offers_prompts = told.is_some_and(|told| told.capabilities.prompts.is_some());
        let tools = match offers_tools {
            true => self.list_tools(service.peer()).await.map_err(NotReached::because)?,
            false => Listed::default(),
        };
        // Prompts are for people: without them its tools are worth as much.
        let prompts = match offers_prompts {
            true => self.list_prompts(service.peer()).await.unwrap_or_default(),
            false => Vec::new(),
        };
        Ok(Met { service, token, tools, prompts })
    }

    async fn list_tools(self: &Arc<Self>, peer: &Peer<RoleClient>) -> Result<Listed, String> {
        let (mut tools, mut faults) = (Vec::new(), Vec::new());
        for listed in library::list(peer, Listing::Tools).await? {
            match ServedTool::read(&Arc::downgrade(self), &listed) {
                Ok(tool) => tools.push(Arc::new(tool)),
                Err(fault) => faults.push(fault),
            }
        }
        Ok((tools, faults))
    }

    async fn list_prompts(
        self: &Arc<Self>,
        peer: &Peer<RoleClient>,
    ) -> Result<Vec<Arc<ServedPrompt>>, String> {
        let listed = library::list(peer, Listing::Prompts).await?;
        let read = |listed| ServedPrompt::read(&self.config.name, &Arc::downgrade(self), listed);
        Ok(listed.iter().filter_map(read).map(Arc::new).collect())
    }

    /// The longest a call may be silent. A server that is given a longer time for its calls may be silent as long.
    pub(crate) fn silence(&self) -> Duration {
        let usual = if self.config.reach.is_local() { SILENCE_PROGRAM } else { SILENCE_REMOTE };
        let silence = self.surroundings.silence.unwrap_or(usual);
        self.config.timeout.map_or(silence, |given| silence.max(given))
    }

    /// A call that was not answered.
    fn failed(&self, tool: &str, error: &ServiceError) -> Failed {
        // What could not be sent does not count itself among the causes.
        let cause: &(dyn std::error::Error + 'static) = match error {
            ServiceError::TransportSend(cause) => cause,
            other => other,
        };
        let (server, needs_login) = (&self.config.name, reach::needs_login(cause));
        let words = match error {
            _ if needs_login => format!("{tool} was refused: {}", reach::LOG_IN),
            ServiceError::McpError(error) => error.message.to_string(),
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => format!(
                "the connection to the server {server} was lost before {tool} answered: whether the call was carried out is not known ({})",
                words(cause)
            ),
            other => format!("{tool} of the server {server}: {}", words(other)),
        };
        Failed { words, needs_login }
    }

    /// Itself, for what outlives a borrow.
    fn this(&self) -> Result<Arc<Self>, String> {
        self.this.upgrade().ok_or_else(|| "the server is gone".to_owned())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn calls(&self) -> MutexGuard<'_, Vec<Running>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Listed = (Vec<Arc<ServedTool>>, Vec<(String, String)>);

/// A server that was met.
struct Met {
    service: RunningService<RoleClient, Handler>,
    token: Option<String>,
    tools: Listed,
    prompts: Vec<Arc<ServedPrompt>>,
}

/// The innermost cause of an error, which says more than what it is wrapped in.
pub(crate) fn words(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(cause) = cause_of(innermost) {
        innermost = cause;
    }
    innermost.to_string()
}

fn cause_of<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a (dyn std::error::Error + 'static)> {
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        // It has this inside, and does not count it among its causes.
        Some(StreamableHttpError::Client(error)) => Some(error),
        _ => error.source(),
    }
}

/// A call on its way. Dropped before its answer came, it tells the server that nobody waits any more.
struct UnderWay<'a> {
    server: &'a Server,
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
    token: ProgressToken,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.server.calls().retain(|running| running.token != self.token);
        let Some(id) = self.id.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let peer = self.peer.clone();
        let why = Some("interrupted".to_owned());
        runtime.spawn(async move {
            let cancelled = CancelledNotification::new(CancelledNotificationParam::new(Some(id), why));
            // If it cannot be told, it is gone.
            let _ = peer.send_notification(cancelled.into()).await;
        });
    }
}

impl ToolServer for Server {
    fn name(&self) -> &str {
        &self.config.name
    }

    fn source(&self) -> &'static str {
        match self.config.reach {
            Reach::Wire(_) => "sdk",
            _ => self.config.scope.name(),
        }
    }

    fn unusable(&self) -> Option<String> {
        match &self.config.reach {
            Reach::Nowhere(why) => Some(why.clone()),
            _ => None,
        }
    }

    fn state(&self) -> ServerState {
        let known = self.known();
        if known.enabled { known.state } else { ServerState::Disabled }
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let known = self.known();
        let offered = known.tools.iter().filter(|_| known.enabled);
        offered.map(|tool| Arc::clone(tool) as Arc<dyn Tool>).collect()
    }

    fn works_in(&self, roots: &[PathBuf]) {
        let mut known = self.known();
        if known.roots == roots {
            return;
        }
        known.roots = roots.to_vec();
        let is_connected = known.state == ServerState::Connected;
        drop(known);
        let Some(this) = self.this.upgrade().filter(|_| is_connected) else { return };
        // Whoever is not reached now asks when they are.
        tokio::spawn(async move {
            let peer = this.line.lock().await.peer().cloned();
            if let Some(peer) = peer {
                let _ = peer.notify_roots_list_changed().await;
            }
        });
    }

    fn is_always_sent(&self, tool: &str) -> bool {
        let known = self.known();
        let asked = |listed: &&Arc<ServedTool>| listed.spec().name == tool;
        self.config.always_load || known.tools.iter().find(asked).is_some_and(|tool| tool.always_sent)
    }

    fn instructions(&self) -> Option<String> {
        self.known().instructions.clone()
    }

    fn has_resources(&self) -> bool {
        self.known().has_resources
    }

    fn resources(&self) -> BoxFuture<'_, Result<Vec<Resource>, String>> {
        async { self.this()?.list_resources().await }.boxed()
    }

    fn read_resource<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<Vec<ResultBlock>, String>> {
        async move { self.this()?.read(uri).await }.boxed()
    }

    fn commands(&self) -> Vec<Arc<dyn Command>> {
        let known = self.known();
        let offered = known.prompts.iter().filter(|_| known.enabled);
        offered.map(|prompt| Arc::clone(prompt) as Arc<dyn Command>).collect()
    }
}
