//! The scripted model as a program: started once, watched line by line, summed up at the end.

use crate::script::Script;
use crate::server::seen::Seen;
use crate::server::summary::Summary;
use crate::server::{Server, StartError, bind};
use std::fmt;
use std::path::PathBuf;
use tokio::sync::broadcast;

/// How a scripted model is served.
///
/// ```
/// use pelton_testkit::{Script, ServeOptions, serve, text};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// let record = dir.path().join("record.jsonl");
/// let options = ServeOptions { record: Some(record), ..ServeOptions::default() }; // on any free port
/// let serving = serve(Script::new().reply([text("Hello.")]), options).await?;
/// assert!(serving.base_url().starts_with("http://127.0.0.1:"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct ServeOptions {
    /// The port on 127.0.0.1; 0 takes a free one.
    pub port: u16,
    /// Where every request and reply is recorded.
    pub record: Option<PathBuf>,
}

/// Starts a server that runs until the returned value is dropped.
pub async fn serve(mut script: Script, options: ServeOptions) -> Result<Serving, StartError> {
    if let Some(path) = options.record {
        script.record = Some(path);
    }
    let (listener, shared) = bind(script, options.port).await?;
    let notices = shared.notices.subscribe();
    Ok(Serving { server: Server::spawn(listener, shared)?, notices })
}

/// A server that is being watched. Unlike a test's model it does not panic about illegal requests.
///
/// ```
/// use pelton_testkit::{Script, ServeOptions, serve, text};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let serving = serve(Script::new().reply([text("Hello.")]), ServeOptions::default()).await?;
/// println!("point a client at {}", serving.base_url());
/// assert_eq!(serving.summary().steps_left, [1]); // nobody came
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Serving {
    server: Server,
    notices: broadcast::Receiver<Notice>,
}

impl Serving {
    /// `http://127.0.0.1:PORT`
    pub fn base_url(&self) -> String {
        self.server.base_url()
    }

    /// Opens a gate.
    pub fn open(&self, gate: &str) {
        self.server.shared.open_gate(gate);
    }

    /// The next thing that happened. A reader that is too slow misses the oldest notices, never the newest.
    pub async fn next(&mut self) -> Notice {
        loop {
            match self.notices.recv().await {
                Ok(notice) => return notice,
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                // The sender lives in `self.server`; should it ever go, nothing happens any more.
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    /// What happened so far.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.server.shared)
    }
}

/// Something worth a line. `Display` writes it, without a line break.
///
/// ```
/// use pelton_testkit::Notice;
///
/// let waiting = Notice::Waiting { request: 3, gate: "slow".to_owned() };
/// assert_eq!(waiting.to_string(), "#3 waits at gate slow: POST /_script/gates/slow opens it");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// An answer has ended.
    Finished {
        /// The number of the request.
        request: usize,
        /// Method, path, model, step, status and how it went.
        line: String,
        /// Whether a strict rule refused it.
        illegal: bool,
        /// Whether no step was left for it.
        unexpected: bool,
    },
    /// A stream waits at a gate.
    Waiting {
        /// The number of the request.
        request: usize,
        /// The gate.
        gate: String,
    },
}

impl Notice {
    pub(crate) fn finished(seen: &Seen) -> Self {
        let mut line = format!("{} {}", seen.method, seen.path);
        if let Some(model) = seen.body["model"].as_str() {
            line.push_str(&format!(" {model}"));
        }
        line.push_str(" -> ");
        match seen.reply.status {
            Some(status) => line.push_str(&status.to_string()),
            None => line.push_str("no answer"),
        }
        if let Some(step) = seen.step {
            line.push_str(&format!(", step {step}"));
        }
        if !seen.reply.events.is_empty() {
            line.push_str(&format!(", {} events", seen.reply.events.len()));
        }
        if let Some(ending) = seen.reply.ending {
            line.push_str(&format!(", {}", ending.word()));
        }
        if let Some(refusal) = &seen.refusal {
            line.push_str(&format!(", illegal ({}): {}", refusal.rule, refusal.message));
        }
        if seen.unexpected {
            line.push_str(", no step left");
        }
        Self::Finished {
            request: seen.number,
            // Texts of the client are in there: a line stays a line, and the terminal is not theirs to control.
            line: line.chars().map(|char| if char.is_control() { ' ' } else { char }).collect(),
            illegal: seen.refusal.is_some(),
            unexpected: seen.unexpected,
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished { request, line, .. } => write!(formatter, "#{request} {line}"),
            Self::Waiting { request, gate } => {
                write!(formatter, "#{request} waits at gate {gate}: POST /_script/gates/{gate} opens it")
            }
        }
    }
}
