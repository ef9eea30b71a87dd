//! What a tool is: a name the model can call, a schema for its input, and a function that always answers.
//!
//! A tool never fails in the Rust sense. A file that is missing or a command that exits with 1 is an answer the
//! model can act on, so [`Tool::run`] returns an [`Output`], not a `Result`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use pelton_model::{RealWorld, World};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::agent::Agents;

use super::background::Background;
use super::builtin::tasks::Tasks;
use super::builtin::todo::Todos;
use super::disk::Target;
use super::file_memory::FileMemory;
use super::web::Web;
use crate::aside::Aside;
use crate::host::{Elicitation, Elicited, Host};
use crate::limits::ToolLimits;
pub use crate::permission::{Access, Readable};
use crate::sandbox::{Door, Sandbox};
use crate::secrets::Secrets;

/// A capability the model may call by name.
///
/// ```
/// use futures::future::BoxFuture;
/// use pelton::tools::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx, parse_input};
/// use serde::Deserialize;
/// use serde_json::{Value, json};
///
/// /// Adds numbers.
/// struct Sum;
///
/// #[derive(Deserialize)]
/// struct Input {
///     numbers: Vec<i64>,
/// }
///
/// impl Tool for Sum {
///     fn spec(&self) -> Spec<'_> {
///         Spec {
///             name: "Sum",
///             description: "Adds numbers.",
///             input_schema: r#"{"type":"object","properties":{"numbers":{"type":"array"}},"required":["numbers"]}"#,
///         }
///     }
///
///     fn safety(&self, _: &Value) -> Safety {
///         Safety::Shared // it changes nothing, so it may run beside other calls
///     }
///
///     fn access(&self, input: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
///         parse_input::<Input>(input).map(|_| Access::Nothing)
///     }
///
///     fn run<'a>(&'a self, input: Value, _: &'a ToolCx) -> BoxFuture<'a, Output> {
///         Box::pin(async move {
///             match parse_input::<Input>(&input) {
///                 Ok(input) => Output::text(input.numbers.iter().sum::<i64>().to_string()),
///                 Err(InvalidInput(why)) => Output::error(why),
///             }
///         })
///     }
/// }
///
/// # futures::executor::block_on(async {
/// // A tool can be tried without a session; `Options::tools` is where it goes.
/// let cx = ToolCx::outside("/");
/// assert_eq!(Sum.run(json!({"numbers": [1, 2, 3]}), &cx).await, Output::text("6"));
/// # });
/// ```
pub trait Tool: Send + Sync {
    /// Name, description and input schema, as the model is told.
    fn spec(&self) -> Spec<'_>;

    /// Whether this very call may run beside others. Asked after the input was validated.
    fn safety(&self, input: &Value) -> Safety;

    /// What this very call would touch, in the words permission rules are written in; or why the input is unusable.
    fn access(&self, input: &Value, cx: &ToolCx) -> Result<Access, InvalidInput>;

    /// How many characters of an answer go to the model. A longer one is kept on disk and shown in part.
    fn result_chars_max(&self, limits: &ToolLimits) -> usize {
        limits.result_chars_max
    }

    /// Z2: this very input in the one form that all equal ones have, if the call may be made before the model asks for it:
    /// it only reads, and its answer follows from the input and the one file that [`access`](Self::access) names.
    fn foreseeable(&self, _input: &Value, _cx: &ToolCx) -> Option<Value> {
        None
    }

    /// Whether this very call is held by a box, or can do nothing by itself, so that it needs no approval: neither rules nor
    /// plan mode are below that.
    fn is_held(&self, _input: &Value, _cx: &ToolCx) -> bool {
        false
    }

    /// The input as hooks and people are told of it, where that is more than the model said.
    fn completed<'a>(&'a self, input: Value, _cx: &'a ToolCx) -> BoxFuture<'a, Value> {
        Box::pin(std::future::ready(input))
    }

    /// What this very call would answer because it cannot do what it is told, where that is certain as things are: nobody is asked
    /// about such a call. Changes nothing, and shows nothing that the session has not read.
    fn refusal<'a>(&'a self, _input: &Value, _cx: &'a ToolCx) -> BoxFuture<'a, Option<Output>> {
        Box::pin(std::future::ready(None))
    }

    /// Does the work. Dropping the future cancels it and everything it started.
    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output>;
}

/// What the model is told about a tool.
///
/// ```
/// use pelton::tools::builtin;
///
/// for tool in builtin::all() {
///     let spec = tool.spec();
///     let schema: serde_json::Value = serde_json::from_str(spec.input_schema)?;
///     assert_eq!(schema["type"], "object", "{}", spec.name);
/// }
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Spec<'a> {
    /// The public name, as users' rules and hooks write it.
    pub name: &'a str,
    /// When to use it, its limits and its error forms.
    pub description: &'a str,
    /// The JSON schema of its input, as compact JSON text.
    pub input_schema: &'a str,
}

impl Spec<'_> {
    /// A tool as requests have it.
    pub(crate) fn json(&self) -> Value {
        // A schema that is not JSON would be a mistake in a tool of ours; an open schema still lets it work.
        let schema = serde_json::from_str(self.input_schema).unwrap_or_else(|_| json!({"type": "object"}));
        json!({"name": self.name, "description": self.description.trim(), "input_schema": schema})
    }

    /// The same as text. The schema is taken as it is written.
    pub(crate) fn text(&self) -> String {
        #[derive(Serialize)]
        struct Sent<'a> {
            name: &'a str,
            description: &'a str,
            input_schema: &'a RawValue,
        }
        let Self { name, description, .. } = *self;
        let sent = serde_json::from_str(self.input_schema).and_then(|input_schema| {
            serde_json::to_string(&Sent { name, description: description.trim(), input_schema })
        });
        sent.unwrap_or_else(|_| self.json().to_string())
    }
}

/// May a call run while others run?
///
/// ```
/// use pelton::tools::{Safety, builtin};
/// use serde_json::json;
///
/// let tools = builtin::all();
/// let read = tools.iter().find(|tool| tool.spec().name == "Read").expect("it is built in");
/// let write = tools.iter().find(|tool| tool.spec().name == "Write").expect("so is this");
/// assert_eq!(read.safety(&json!({"file_path": "a.txt"})), Safety::Shared);
/// assert_eq!(write.safety(&json!({"file_path": "a.txt", "content": "A"})), Safety::Alone);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Safety {
    /// Reads only: runs together with other shared calls.
    Shared,
    /// May change something, but runs together with shared calls all the same: what it may not do beside others, it sees
    /// to itself.
    Beside,
    /// May change something: runs alone, in the order of asking.
    Alone,
}

/// The input does not fit the tool. The text names the field and what would be right.
///
/// ```
/// use pelton::tools::{InvalidInput, access_of};
/// use serde_json::json;
///
/// let Err(InvalidInput(why)) = access_of("Read", &json!({"path": "a.txt"}), "/srv".as_ref()) else { panic!() };
/// assert!(why.contains("file_path")); // the model reads this, and knows better next time
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidInput(pub String);

/// What a tool answers.
///
/// ```
/// use pelton::tools::Output;
/// use serde_json::json;
///
/// let answer = Output::text("3 files").with_detail(json!({"count": 3}));
/// assert!(!answer.is_error);
/// assert_eq!(Output::error("no such file").words(), "no such file");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Output {
    /// What the model reads.
    pub content: Vec<ResultBlock>,
    /// The call did not do what was asked.
    pub is_error: bool,
    /// The structured twin of `content` for SDK clients and the transcript (`tool_use_result`).
    pub detail: Option<Value>,
    /// The directory later calls start in, when this call moved it.
    pub new_cwd: Option<PathBuf>,
}

/// One piece of a tool's answer.
///
/// ```
/// use pelton::tools::{Output, ResultBlock};
///
/// let output = Output::text("3 files");
/// assert_eq!(output.content, [ResultBlock::Text("3 files".to_owned())]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResultBlock {
    /// Plain text; never empty when sent.
    Text(String),
    /// An image, base64 encoded. Of any size: it is brought down before it enters the conversation.
    Image {
        /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`; corrected if the bytes are something else.
        media_type: &'static str,
        /// The base64 text.
        base64: String,
    },
    /// A PDF document, base64 encoded.
    Document {
        /// The base64 text.
        base64: String,
    },
}

impl Output {
    /// A plain answer.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ResultBlock::Text(text.into())], is_error: false, detail: None, new_cwd: None }
    }

    /// An answer that says what went wrong and what to do about it.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// A call that never reached its tool: unknown name, unusable input. The wrapper is what clients look for.
    pub fn unusable(text: impl std::fmt::Display) -> Self {
        Self::error(format!("<tool_use_error>{text}</tool_use_error>"))
    }

    /// Its words, without what is not text.
    pub fn words(&self) -> String {
        let texts = self.content.iter().filter_map(|block| match block {
            ResultBlock::Text(text) => Some(text.as_str()),
            ResultBlock::Image { .. } | ResultBlock::Document { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The same answer with other words; what is not text stays, behind them.
    #[must_use]
    pub fn with_words(mut self, words: String) -> Self {
        self.content.retain(|block| !matches!(block, ResultBlock::Text(_)));
        self.content.insert(0, ResultBlock::Text(words));
        self
    }

    /// Later calls start in another directory.
    #[must_use]
    pub fn moved_to(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.new_cwd = Some(cwd.into());
        self
    }

    /// Adds the structured twin.
    #[must_use]
    pub fn with_detail(mut self, detail: Value) -> Self {
        self.detail = Some(detail);
        self
    }
}

/// Everything a running call may know about the session. Tools see each other only through files.
///
/// ```
/// use std::path::Path;
///
/// use pelton::tools::ToolCx;
///
/// let cx = ToolCx::outside("/srv/project"); // as a test of a tool makes it; in a session, the engine does
/// assert_eq!(cx.absolute(Path::new("src/main.rs")), Path::new("/srv/project/src/main.rs"));
/// assert!(!cx.cancel.is_cancelled()); // to be looked at by whatever takes long
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct ToolCx {
    /// The id of the call.
    pub call_id: Arc<str>,
    /// Where relative paths start; absolute and existing when the session began.
    pub cwd: PathBuf,
    /// Where the path of this call really leads, as it was judged: that is opened, and no link is followed on the way.
    /// Absent for a call that names no path or that nobody judged.
    pub(crate) judged: Option<PathBuf>,
    /// What stands at that path may be told before anybody was asked: a look at it would need no question.
    pub(crate) may_look: bool,
    /// The directories the session works in, `cwd` of the start first.
    pub roots: Arc<[PathBuf]>,
    /// Which of the files that a search meets it may show.
    pub readable: Readable,
    /// The environment child processes get; never the process's own.
    pub env: Arc<[(OsString, OsString)]>,
    /// Where hooks put variables for commands, as lines of the shell. Nothing need be there.
    pub(crate) env_file: PathBuf,
    /// Which files this session has read, and what they looked like.
    pub files: Arc<FileMemory>,
    /// Where output too large for an answer is kept. Created on first use.
    pub spill_dir: PathBuf,
    /// What is not kept there.
    pub(crate) secrets: Secrets,
    /// Bounds on sizes and times.
    pub limits: Arc<ToolLimits>,
    /// Time and chance.
    pub world: Arc<dyn World>,
    /// Set when the user interrupts: finish at once with what there is.
    pub cancel: CancellationToken,
    /// Where a long call says how far it is. Losing a report is harmless.
    pub progress: Progress,
    /// The program around the session.
    pub host: Host,
    /// What is to be done.
    pub(crate) todos: Todos,
    /// The same, task by task.
    pub(crate) tasks: Tasks,
    /// Commands that run beside the conversation.
    pub(crate) background: Background,
    /// The boxes of the session, if commands run in one.
    pub(crate) sandbox: Option<Arc<Sandbox>>,
    /// Who decides about hosts that commands in a box want to reach; nobody outside a session.
    pub(crate) door: Option<Door>,
    /// Who runs sub-agents; nobody in a session without.
    pub(crate) agents: Option<Arc<dyn Agents>>,
    /// The road to the web; none outside a session.
    pub(crate) web: Option<Web>,
    /// Who asks a model for tools; nobody outside a session.
    pub(crate) aside: Option<Arc<dyn Aside>>,
}

impl ToolCx {
    /// A call outside any session, to try a tool with: it works in `cwd`, may read everything, has no environment, and
    /// nobody interrupts it or listens to it.
    pub fn outside(cwd: impl Into<PathBuf>) -> Self {
        let cwd = cwd.into();
        Self {
            call_id: "toolu_outside".into(),
            judged: None,
            may_look: true,
            roots: [cwd.clone()].into(),
            env_file: PathBuf::new(),
            readable: Readable::everything(),
            env: [].into(),
            files: Arc::default(),
            spill_dir: cwd.join(".pelton-spill"),
            secrets: Secrets::default(),
            limits: Arc::new(ToolLimits::default()),
            world: Arc::new(RealWorld::new()),
            cancel: CancellationToken::new(),
            progress: Progress::ignored(),
            host: Host::default(),
            todos: Todos::default(),
            tasks: Tasks::default(),
            background: Background::default(),
            agents: None,
            sandbox: None,
            door: None,
            web: None,
            aside: None,
            cwd,
        }
    }

    /// Asks the user something; see [`Host::elicit`]. `schema` is that of the answer.
    pub async fn elicit(
        &self,
        asker: impl Into<String>,
        message: impl Into<String>,
        schema: Value,
    ) -> Elicited {
        let question = Elicitation::new(Arc::clone(&self.call_id), asker, message, schema);
        self.host.elicit(&question, &self.cancel).await
    }

    /// The file a call names, as it may be opened.
    pub(crate) fn target(&self, path: &Path) -> Target {
        Target { path: self.absolute(path), judged: self.judged.clone() }
    }

    /// Makes a path absolute against the session's directory, without touching the disk.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        if path.is_absolute() { path.to_path_buf() } else { self.cwd.join(path) }
    }
}

/// Where running tools report.
///
/// ```
/// use pelton::tools::{Progress, Report};
///
/// let progress = Progress::new(|call, report| println!("{call}: {report:?}"));
/// progress.report("toolu_01", Report::OutputLine("compiling".to_owned()));
/// ```
#[derive(Clone)]
pub struct Progress(Arc<ReportSink>);

type ReportSink = dyn Fn(&str, Report) + Send + Sync;

/// How far a running call is.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use pelton::tools::{Progress, Report};
///
/// let seen = Arc::new(Mutex::new(Vec::new()));
/// let sink = Arc::clone(&seen);
/// let progress = Progress::new(move |_, report| sink.lock().unwrap().push(report));
/// progress.report("toolu_01", Report::OutputLine("compiling".to_owned()));
/// assert_eq!(*seen.lock().unwrap(), [Report::OutputLine("compiling".to_owned())]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Report {
    /// The newest complete line of a command's output.
    OutputLine(String),
}

impl Progress {
    /// Reports go to `sink` together with the id of the call.
    pub fn new(sink: impl Fn(&str, Report) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sink))
    }

    /// Reports go nowhere.
    pub fn ignored() -> Self {
        Self::new(|_, _| {})
    }

    /// Tells how far the call is.
    pub fn report(&self, call_id: &str, report: Report) {
        (self.0)(call_id, report);
    }
}

/// Reads a tool's typed input, with an error the model can act on.
///
/// See [`Tool`].
pub fn parse_input<T: DeserializeOwned>(input: &Value) -> Result<T, InvalidInput> {
    serde_path_to_error::deserialize(input).map_err(|error| match error.path().to_string().as_str() {
        // The message itself names a field that is missing or unknown.
        "." => InvalidInput(error.into_inner().to_string()),
        path => InvalidInput(format!("`{path}`: {}", error.into_inner())),
    })
}
