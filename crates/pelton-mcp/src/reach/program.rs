//! A program that is started, and spoken to through its standard streams.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pelton::process::{Launch, Printed, ProcessTree};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStdin, ChildStdout};

use super::NotReached;
use crate::config::Program;
use crate::limits::{END_GRACE, END_PATIENCE, LAST_WORDS_BYTES_MAX};
use crate::surroundings::Surroundings;

/// How long the last words of a program are waited for once it is gone.
const LAST_WORDS_TIME: Duration = Duration::from_millis(200);

/// Starts a program.
pub(super) fn start(
    program: &Program,
    surroundings: &Surroundings,
) -> Result<(ProgramTransport, LastWords), NotReached> {
    // What its entry says is added: nobody loses their PATH for a key.
    let mut env: Vec<(OsString, OsString)> = surroundings.env_of_servers();
    for (name, value) in &program.env {
        env.retain(|(known, _)| known != OsStr::new(name));
        env.push((name.into(), value.into()));
    }
    let args: Vec<&OsStr> = program.args.iter().map(OsStr::new).collect();
    let launch = Launch {
        program: Path::new(&program.command),
        args: &args,
        cwd: &surroundings.cwd,
        env: &env,
        keep: None,
        printed: Printed::Read,
    };
    let unstarted = |error: std::io::Error| {
        NotReached::because(format!("'{}' could not be started: {error}", program.command))
    };
    let mut tree = ProcessTree::start_listening(&launch).map_err(unstarted)?;
    let pipes = tree.take_input().zip(tree.take_output());
    let (input, (output, errors)) = pipes.ok_or_else(|| NotReached::because("the program has no streams"))?;
    let last_words = LastWords::default();
    tokio::spawn(last_words.clone().listen(errors));
    Ok((ProgramTransport { line: AsyncRwTransport::new(output, input), tree }, last_words))
}

pub(super) struct ProgramTransport {
    line: AsyncRwTransport<RoleClient, ChildStdout, ChildStdin>,
    /// Dropping it ends the program, and all that it started.
    tree: ProcessTree,
}

impl Transport<RoleClient> for ProgramTransport {
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.line.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.line.receive().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // Its input ends first: a server that is well-behaved ends by itself.
        // One that does not even read what it was told last is not waited for.
        let _ = tokio::time::timeout(END_PATIENCE, self.line.close()).await;
        self.tree.end(END_PATIENCE, END_GRACE).await.map(drop)
    }
}

/// The newest words of a program on standard error.
#[derive(Clone, Default)]
pub(super) struct LastWords(Arc<Mutex<VecDeque<u8>>>);

impl LastWords {
    async fn listen(self, mut errors: impl AsyncRead + Unpin) {
        let mut chunk = [0; 1024];
        while let Ok(read @ 1..) = errors.read(&mut chunk).await {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend(&chunk[..read]);
            let beyond = kept.len().saturating_sub(LAST_WORDS_BYTES_MAX);
            kept.drain(..beyond);
        }
    }

    /// Why a program could not be spoken with: what was started, as it was written (values that were filled in may be
    /// secret), what became of it, and what it said.
    pub async fn explain(&self, written: &Value, error: &str) -> String {
        tokio::time::sleep(LAST_WORDS_TIME).await;
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let command = word(&written["command"]);
        let args = written["args"].as_array().into_iter().flatten().map(word);
        let started: Vec<String> = std::iter::once(command).chain(args).collect();
        let said: Vec<u8> = self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let said = String::from_utf8_lossy(&said);
        let said = match said.trim() {
            "" => String::new(),
            said => format!("; it said: {said}"),
        };
        format!("`{}` did not answer as a server ({error}){said}", started.join(" "))
    }
}
