//! What is told of sub-agents.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Event;
use crate::tools::BackgroundTask;

/// Something that happened to a sub-agent.
///
/// ```
/// use pelton::event::{AgentNews, Event};
///
/// /// A line when a sub-agent begins.
/// fn begins(event: &Event) -> Option<String> {
///     let Event::Agent(told) = event else { return None };
///     matches!(told.news, AgentNews::Started).then(|| format!("{} begins", told.agent.description))
/// }
/// assert_eq!(begins(&Event::Requesting), None);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AgentEvent {
    /// Which one.
    pub agent: Arc<AgentFacts>,
    /// What happened.
    pub news: AgentNews,
}

/// A sub-agent.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([tool("Agent", json!({"description": "Count", "prompt": "Count the jars.", "subagent_type": "general-purpose"}))]).reply([text("Three.")]).reply([text("There are three.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::{Event, Prompt};
///
/// let mut events = engine.submit(Prompt::text("How many jars are there?")?);
/// let mut agent = None;
/// while let Some(event) = events.next().await {
///     if let Event::Agent(told) = event {
///         agent = Some(told.agent);
///     }
/// }
/// let agent = agent.ok_or("one was started")?;
/// assert_eq!((agent.agent_type.as_str(), agent.prompt.as_str()), ("general-purpose", "Count the jars."));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentFacts {
    /// Its id.
    pub id: String,
    /// The call that started it.
    pub call: Arc<str>,
    /// What kind it is.
    pub agent_type: String,
    /// Its task, in a few words.
    pub description: String,
    /// Its task.
    pub prompt: String,
    /// Nobody waits for it from the beginning.
    pub beside: bool,
    /// How many agents stand between it and the main thread, itself included.
    pub depth: u8,
    /// The agent that started it; `None` for the main thread.
    pub parent: Option<String>,
}

/// What happened to a sub-agent. Of everything it tells, only the pieces of its answers are left out. Sub-agents of a
/// sub-agent tell for themselves.
///
/// ```
/// use pelton::event::AgentNews;
///
/// /// What stands beside a sub-agent's name.
/// fn line(news: &AgentNews) -> String {
///     match news {
///         AgentNews::Started => "begins".to_owned(),
///         AgentNews::Progress { tool, done } => format!("{tool} ({} calls)", done.tool_calls),
///         AgentNews::Ended { end, done, .. } => format!("{end:?} after {:?}", done.duration),
///         _ => String::new(),
///     }
/// }
/// assert_eq!(line(&AgentNews::Started), "begins");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AgentNews {
    /// It begins.
    Started,
    /// Nobody waits for it from here on.
    Beside(Arc<BackgroundTask>),
    /// It told this.
    Told(Box<Event>),
    /// It uses a tool.
    Progress {
        /// Which.
        tool: Arc<str>,
        /// What it has done so far.
        done: AgentWork,
    },
    /// What it is doing, in a line. See [`Options::agent_progress_summaries`](crate::Options::agent_progress_summaries).
    Doing {
        /// The line.
        summary: String,
        /// What it has done so far.
        done: AgentWork,
    },
    /// It has ended: the last there is of it.
    Ended {
        /// How.
        end: AgentEnd,
        /// What it has done.
        done: AgentWork,
        /// Where its words went, if nobody waited for it.
        output: Option<Arc<Path>>,
    },
}

/// How a sub-agent ended.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([tool("Agent", json!({"description": "Count", "prompt": "Count the jars.", "subagent_type": "general-purpose"}))]).reply([text("Three.")]).reply([text("There are three.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::event::{AgentEnd, AgentNews, Event};
///
/// let mut events = engine.submit(pelton::Prompt::text("How many jars are there?")?);
/// let mut ends = Vec::new();
/// while let Some(event) = events.next().await {
///     if let Event::Agent(told) = event && let AgentNews::Ended { end, .. } = told.news {
///         ends.push(end);
///     }
/// }
/// assert_eq!(ends, [AgentEnd::Completed]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentEnd {
    /// With a report.
    Completed,
    /// With an error.
    Failed,
    /// The user interrupted.
    Stopped,
}

/// What a sub-agent has done.
///
/// ```
/// use pelton::event::AgentWork;
///
/// let done = AgentWork::default();
/// let line = format!("{} tokens, {} calls, {:?}", done.tokens, done.tool_calls, done.duration);
/// assert_eq!(line, "0 tokens, 0 calls, 0ns");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentWork {
    /// Tokens it has consumed.
    pub tokens: u64,
    /// Calls it has made.
    pub tool_calls: u32,
    /// How long it has worked.
    pub duration: Duration,
}
