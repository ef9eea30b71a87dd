//! The scripted model as a server on loopback, and the handle a test holds.
//!
//! - `connection`: one connection, from bytes to bytes
//! - `answer`: from a request to its answer
//! - `perform`: the answer while it is given, whichever way it travels
//! - `state`: requests seen, steps used, gates
//! - `seen`, `summary`: what a test can look at
//! - `control`: gates and summary for other processes

pub(crate) mod answer;
mod connection;
mod control;
pub(crate) mod perform;
pub(crate) mod seen;
pub(crate) mod state;
pub(crate) mod summary;

pub use control::CONTROL_PATH;

use crate::memory::MemoryTransport;
use crate::record::Record;
use crate::script::{Script, ScriptError, validate};
use seen::{Illegal, Seen, Unexpected};
use state::Shared;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use summary::Summary;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Most connections served at a time; more wait to be accepted.
pub const CONNECTIONS_MAX: usize = 1024;
/// How long a test waits for the model before it is told that it waits in vain, in seconds.
pub const WAIT_SECONDS_MAX: u64 = 30;
/// Rest after a failed accept: the system is out of something that only time gives back.
const ACCEPT_RETRY_MS: u64 = 10;

/// Why a scripted model did not start.
///
/// ```
/// use pelton_testkit::{Script, StartError, Step};
///
/// let unplayable = Script::new().step(Step::status(7)).start_in_memory();
/// assert!(matches!(unplayable, Err(StartError::Script(_))));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The script cannot be played.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The port cannot be bound.
    #[error("cannot listen on 127.0.0.1:{port}: {source}; choose another port, or 0 for any free one")]
    Listen {
        /// The port asked for.
        port: u16,
        /// What the system said.
        source: std::io::Error,
    },
    /// The record cannot be written.
    #[error("cannot write the record {}: {source}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A thread or runtime of its own cannot be had.
    #[error("cannot start a thread for the scripted model: {0}")]
    Thread(std::io::Error),
}

impl Script {
    /// Starts a server on a free port, as a task of the current runtime.
    pub async fn start(self) -> Result<ScriptedModel, StartError> {
        let (listener, shared) = bind(self, 0).await?;
        Ok(ScriptedModel::new(Server::spawn(listener, shared)?))
    }

    /// Starts the model without a network: only its [`transport`](ScriptedModel::transport) leads to it. Nothing runs
    /// by itself, and all waiting is done by the clock of the runtime that polls it.
    pub fn start_in_memory(self) -> Result<ScriptedModel, StartError> {
        Ok(ScriptedModel::new(Server { place: Place::Memory, shared: prepare(self)? }))
    }

    /// Starts a server on a thread of its own, for tests that block: those without a runtime, or that wait for a
    /// child process.
    pub fn start_on_thread(self) -> Result<ScriptedModel, StartError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(StartError::Thread)?;
        let (listener, shared) = runtime.block_on(bind(self, 0))?;
        let address = address_of(&listener)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let accepting = accept(listener, shared.clone());
        let thread = std::thread::Builder::new().name("scripted-model".to_owned());
        let body = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accepting => {}
                    // An error means the handle is gone, which is the same wish.
                    _ = stopped => {}
                }
            });
        };
        thread.spawn(body).map_err(StartError::Thread)?;
        Ok(ScriptedModel::new(Server { place: Place::Thread { address, _stop: stop }, shared }))
    }
}

/// A running scripted model. Dropping it ends the server; dropping one that refused an illegal request panics,
/// unless that was expected.
///
/// ```
/// # use std::sync::Arc;
/// # use futures::StreamExt;
/// # use pelton_model::{Ask, Auth, Client, Endpoint, Prefix, RetryPolicy, Secret};
/// # use pelton_testkit::{ScriptedModel, SeededWorld};
/// # async fn ask(model: &ScriptedModel, messages: &'static str) {
/// #     let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// #     let mut policy = RetryPolicy::default();
/// #     (policy.retries_max, policy.non_streaming_fallback) = (0, false);
/// #     let client = Client::new(endpoint, Arc::new(model.transport()), policy, Arc::new(SeededWorld::new(7)));
/// #     let ask = Ask::new("claude-sonnet-5-5", 1000, Arc::new(Prefix::default()), vec![messages.into()]);
/// #     client.call(ask).for_each(async |_| {}).await;
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use pelton_testkit::{Script, text};
///
/// let model = Script::new().reply([text("Hello.")]).start_in_memory()?;
/// ask(&model, r#"{"role":"user","content":"Hi."}"#).await; // a client of yours
/// assert_eq!(model.requests()[0].body["messages"][0]["content"], "Hi.");
/// model.assert_clean(); // nothing illegal was sent
/// model.assert_played_out(); // and nothing was left unasked
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ScriptedModel {
    server: Server,
    illegal_expected: bool,
}

impl ScriptedModel {
    /// `http://127.0.0.1:PORT`, or an address that leads nowhere for a model without a network.
    pub fn base_url(&self) -> String {
        self.server.base_url()
    }

    /// The way to this model that needs no network, however it was started.
    pub fn transport(&self) -> MemoryTransport {
        MemoryTransport::new(Arc::clone(&self.server.shared))
    }

    /// Opens a gate, now and for all who come later.
    pub fn open(&self, gate: &str) {
        self.server.shared.open_gate(gate);
    }

    /// All requests so far whose details are kept, oldest first.
    pub fn requests(&self) -> Vec<Seen> {
        self.server.shared.state().seen.iter().cloned().collect()
    }

    /// The requests that asked for a reply: no token counts, no model lists.
    pub fn reply_requests(&self) -> Vec<Seen> {
        let asks =
            |seen: &Seen| crate::messages::route(&seen.method, &seen.path) == crate::messages::Route::Reply;
        self.requests().into_iter().filter(asks).collect()
    }

    /// The requests that strict rules refused.
    pub fn illegal(&self) -> Vec<Illegal> {
        self.summary().illegal
    }

    /// The requests no step was left for.
    pub fn unexpected(&self) -> Vec<Unexpected> {
        self.summary().unexpected
    }

    /// What happened so far.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.server.shared)
    }

    /// Says that illegal requests are part of the test.
    #[must_use]
    pub fn expect_illegal(mut self) -> Self {
        self.illegal_expected = true;
        self
    }

    /// Panics, naming the first illegal or unexpected request, if there was one.
    #[track_caller]
    pub fn assert_clean(&self) {
        if let Some(problem) = self.summary().first_problem() {
            panic!("scripted model: {problem}");
        }
    }

    /// Panics when steps are left that could have played.
    #[track_caller]
    pub fn assert_played_out(&self) {
        let left = self.summary().steps_left;
        assert!(left.is_empty(), "scripted model: steps {left:?} were not played to the end");
    }

    /// Returns when so many requests have arrived.
    pub async fn wait_for_requests(&self, count: usize) {
        self.wait(&format!("{count} requests"), |state| state.count >= count).await;
    }

    /// Returns when so many answers have ended, well or not.
    pub async fn wait_for_answers(&self, count: usize) {
        self.wait(&format!("{count} ended answers"), |state| state.finished >= count).await;
    }

    /// Returns when a stream has come to this gate.
    pub async fn wait_at_gate(&self, gate: &str) {
        self.wait(&format!("the gate {gate:?}"), |state| state.reached_gates.contains(gate)).await;
    }

    fn new(server: Server) -> Self {
        Self { server, illegal_expected: false }
    }

    /// A test that waits in vain fails with the reason instead of hanging.
    async fn wait(&self, what: &str, holds: impl Fn(&state::State) -> bool) {
        let limit = Duration::from_secs(WAIT_SECONDS_MAX);
        if tokio::time::timeout(limit, self.server.shared.until(holds)).await.is_err() {
            let summary = self.summary();
            panic!("scripted model: waited {WAIT_SECONDS_MAX} s for {what} in vain: {summary:?}");
        }
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        // A second panic while unwinding would abort the test run and hide the first.
        if self.illegal_expected || std::thread::panicking() {
            return;
        }
        let summary = self.summary();
        if summary.illegal_count > 0
            && let Some(illegal) = summary.illegal.first()
        {
            panic!(
                "scripted model: {} illegal requests; request {} broke {}: {}",
                summary.illegal_count, illegal.request, illegal.refusal.rule, illegal.refusal.message
            );
        }
    }
}

/// A model that can be asked; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Server {
    place: Place,
    pub(crate) shared: Arc<Shared>,
}

/// Where a model can be asked. Dropping it ends what listens there.
#[derive(Debug)]
enum Place {
    Task { address: SocketAddr, _tasks: JoinSet<()> },
    Thread { address: SocketAddr, _stop: oneshot::Sender<()> },
    Memory,
}

impl Server {
    pub(crate) fn base_url(&self) -> String {
        match &self.place {
            Place::Task { address, .. } | Place::Thread { address, .. } => format!("http://{address}"),
            Place::Memory => "http://scripted-model.invalid".to_owned(),
        }
    }

    pub(crate) fn spawn(listener: TcpListener, shared: Arc<Shared>) -> Result<Self, StartError> {
        let address = address_of(&listener)?;
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, shared.clone()));
        Ok(Self { place: Place::Task { address, _tasks: tasks }, shared })
    }
}

/// Checks the script and opens the record.
fn prepare(script: Script) -> Result<Arc<Shared>, StartError> {
    let matchers = validate(&script)?;
    let open = |path: &PathBuf| {
        Record::open(path).map_err(|source| StartError::Record { path: path.clone(), source })
    };
    let record = script.record.as_ref().map(open).transpose()?;
    Ok(Arc::new(Shared::new(script, matchers, record)))
}

/// Prepares the script and binds the port.
pub(crate) async fn bind(script: Script, port: u16) -> Result<(TcpListener, Arc<Shared>), StartError> {
    let shared = prepare(script)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .map_err(|source| StartError::Listen { port, source })?;
    Ok((listener, shared))
}

fn address_of(listener: &TcpListener) -> Result<SocketAddr, StartError> {
    listener.local_addr().map_err(|source| StartError::Listen { port: 0, source })
}

/// Accepts connections until it is dropped, and with it all of them.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection::serve(stream, shared.clone()));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(ACCEPT_RETRY_MS)).await,
            },
            // A connection that panicked is closed by that; its client sees it.
            Some(_) = connections.join_next() => {}
        }
    }
}
