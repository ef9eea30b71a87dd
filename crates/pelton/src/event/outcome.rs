//! How a submission ended, and what it cost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pelton_model::{FastMode, ModelError};
use pelton_wire::stop::StopReason;
use pelton_wire::usage::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tools::ahead::Speculated;
use crate::tools::executor::Call;
use crate::turn::Terminal;

/// How a submission ended, and what it cost.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([text("Four.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::{Event, Prompt, Terminal};
///
/// let events: Vec<Event> = engine.submit(Prompt::text("What is two and two?")?).collect().await;
/// let Some(Event::Result(outcome)) = events.last() else { return Err("it is the last event".into()) };
/// assert_eq!((outcome.terminal, outcome.text.as_str()), (Terminal::Completed, "Four."));
/// assert!(!outcome.is_error && outcome.cost_usd > 0.0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Outcome {
    /// Why it ended.
    pub terminal: Terminal,
    /// Whether the model was asked, or would have been had nothing come in between. Slash commands and hooks can answer
    /// a prompt without it.
    pub asked: bool,
    /// Whether that is a failure.
    pub is_error: bool,
    /// The last words of the answer, or the error's text.
    pub text: String,
    /// What was said before it, where a limit or a broken stream cut the answer and [`text`](Self::text) is only the rest of
    /// it.
    pub text_before: String,
    /// The answer in the form of the schema, if one was asked for and brought.
    pub structured_output: Option<Value>,
    /// What went wrong, for endings that have no answer.
    pub errors: Vec<String>,
    /// Why the last answer ended.
    pub stop_reason: Option<StopReason>,
    /// The error that ended it, if one did.
    pub error: Option<ModelError>,
    /// One, plus the messages in the user's role that came about; 0 if the model was not to be asked.
    pub num_turns: u32,
    /// How long it took.
    pub duration: Duration,
    /// How much of that the model took.
    pub duration_api: Duration,
    /// Until the first word came.
    pub first_token_after: Option<Duration>,
    /// What this submission consumed.
    pub usage: Usage,
    /// What the session consumed, by model.
    pub by_model: BTreeMap<String, ModelUsage>,
    /// What the session cost; models without a known price count nothing and are named in `by_model`.
    pub cost_usd: f64,
    /// Whether the next answer would come fast.
    pub fast_mode: FastMode,
    /// Calls that were not allowed.
    pub denials: Vec<Denial>,
    /// How often the loop went on, by reason.
    pub transitions: BTreeMap<&'static str, u32>,
    /// What else the loop did, counted by kind.
    pub loop_events: BTreeMap<&'static str, u32>,
    /// How often the model was asked again after a failure.
    pub retries: u32,
    /// How many calls ran.
    pub tool_calls: u32,
    /// What came of calls that were made before the model asked for them.
    pub speculation: Speculated,
    /// The call that a hook put off, if that is how it ended.
    pub deferred: Option<DeferredCall>,
}

impl Outcome {
    /// The whole answer, or what went wrong instead.
    ///
    /// ```
    /// fn print(outcome: &pelton::Outcome) {
    ///     match outcome.answer() {
    ///         Ok(answer) => println!("{answer}"),
    ///         Err(reason) => eprintln!("it did not work out: {reason}"),
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// If the run failed, in words for people.
    pub fn answer(&self) -> Result<String, String> {
        if !self.is_error {
            return Ok(format!("{}{}", self.text_before, self.text));
        }
        Err(if self.errors.is_empty() { self.text.clone() } else { self.errors.join("; ") })
    }
}

/// What one model consumed.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([text("Four.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::{Event, Prompt};
///
/// let events: Vec<Event> = engine.submit(Prompt::text("What is two and two?")?).collect().await;
/// let Some(Event::Result(outcome)) = events.last() else { return Err("it is the last event".into()) };
/// let cost: f64 = outcome.by_model.values().filter_map(|used| used.cost_usd).sum();
/// assert_eq!(cost, outcome.cost_usd);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelUsage {
    /// Tokens.
    pub usage: Usage,
    /// Cost, if the model's price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// A call that a hook put off: the run ended before it, and whoever resumes the session has it judged anew.
///
/// ```
/// use pelton::event::Outcome;
///
/// /// What the host is told when a hook put a call off: which call waits for a decision.
/// fn waits(outcome: &Outcome) -> Option<String> {
///     let call = outcome.deferred.as_ref()?;
///     Some(format!("{} waits with {}", call.tool, call.input))
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DeferredCall {
    /// The tool.
    pub tool: Arc<str>,
    /// The call.
    pub call: Arc<str>,
    /// Its input.
    pub input: Arc<Value>,
}

impl From<Call> for DeferredCall {
    fn from(Call { id, tool, input }: Call) -> Self {
        Self { tool, call: id, input: input.unwrap_or_default() }
    }
}

/// A call that was not allowed.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([tool("Write", json!({"file_path": "a.txt", "content": "A"}))]).reply([text("I may not.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::{Event, Prompt};
///
/// let events: Vec<Event> = engine.submit(Prompt::text("Write a file.")?).collect().await;
/// let Some(Event::Result(outcome)) = events.last() else { return Err("it is the last event".into()) };
/// let denied: Vec<&str> = outcome.denials.iter().map(|denial| &*denial.tool).collect();
/// assert_eq!(denied, ["Write"]); // nobody is there to be asked
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Denial {
    /// The tool.
    pub tool: Arc<str>,
    /// The call.
    pub call: Arc<str>,
    /// Its input.
    pub input: Arc<Value>,
}

/// A call that was refused without anybody being asked, told as it happens.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([tool("Write", json!({"file_path": "a.txt", "content": "A"}))]).reply([text("I may not.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::{Event, Prompt};
///
/// let events: Vec<Event> = engine.submit(Prompt::text("Write a file.")?).collect().await;
/// let refused = events.iter().find_map(|event| if let Event::Refused(call) = event { Some(call) } else { None });
/// let refused = refused.ok_or("nobody is there to be asked")?;
/// assert_eq!((&*refused.tool, refused.cause), ("Write", "mode"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Refused {
    /// The tool.
    pub tool: Arc<str>,
    /// The call.
    pub call: Arc<str>,
    /// What kind of reason decided, in the word of the protocol.
    pub cause: &'static str,
    /// What the model reads.
    pub message: String,
}
