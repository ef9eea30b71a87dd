//! What a model is asked.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pelton_wire::cache::CacheLife;
use pelton_wire::pieces::Pieces;

use crate::step::Again;

/// One question to a model: the whole conversation, as bytes that are shared with whoever keeps it.
///
/// ```
/// use std::sync::Arc;
///
/// use bytes::Bytes;
/// use pelton_model::{Ask, Effort, Prefix};
///
/// let messages = vec![Bytes::from_static(br#"{"role":"user","content":"hi"}"#)];
/// let mut ask = Ask::new("opus", 1000, Arc::new(Prefix::default()), messages);
/// ask.effort = Some(Effort::Low);
/// assert!(ask.streaming); // unless said otherwise
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ask {
    /// The model: an id or an alias of the [catalogue](crate::catalogue).
    pub model: String,
    /// The most tokens the model may write.
    pub max_tokens: u32,
    /// System prompt and tools.
    pub prefix: Arc<Prefix>,
    /// Pieces that together are the inside of the JSON array of messages, commas included.
    pub messages: Pieces,
    /// Whether and how the model thinks before it answers.
    pub thinking: Thinking,
    /// What is shown of its thinking.
    pub display: ThinkingDisplay,
    /// How hard it tries; `None` leaves it to the server.
    pub effort: Option<Effort>,
    /// Whoever asks: it does not try harder than this.
    pub effort_max: Option<Effort>,
    /// An opaque name of who asks, for the server's own bookkeeping.
    pub user_id: Option<String>,
    /// Who waits for the answer.
    pub source: Source,
    /// How many other models can be asked instead. If any can, the third overload in a row ends the call.
    pub fallbacks: u32,
    /// What the question has taken already, with models that were given up for this one.
    pub earlier: Earlier,
    /// Whether the answer comes in pieces or at once.
    pub streaming: bool,
    /// How fast it comes, and at which price.
    pub speed: Speed,
    /// How many tokens the whole task may take, for the model to know.
    pub task_budget: Option<TaskBudget>,
    /// Beta features that the server will not have, however much they are wanted.
    pub refused_betas: RefusedBetas,
    /// How long the server keeps what was marked.
    pub cache: CacheLife,
    /// The answer before this question was cut, and this asks for the rest: not before the wait that follows a failure.
    pub after: Option<Box<Again>>,
}

/// What a question took before this model was asked: the patience with failures is one for all models.
///
/// ```
/// use std::time::Duration;
///
/// use pelton_model::{Ask, Earlier, ModelError};
///
/// /// The same question to another model, with what is left of the patience.
/// fn instead(ask: &Ask, model: &str, error: &ModelError, took: Duration) -> Ask {
///     let mut ask = ask.clone();
///     ask.model = model.to_owned();
///     ask.earlier = Earlier { requests: error.attempts(), elapsed: took };
///     ask
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Earlier {
    /// Requests in vain.
    pub requests: u32,
    /// Time since the first of them.
    pub elapsed: Duration,
}

impl Ask {
    /// A streamed question in the foreground, with the model's own defaults.
    pub fn new(
        model: impl Into<String>,
        max_tokens: u32,
        prefix: Arc<Prefix>,
        messages: impl Into<Pieces>,
    ) -> Self {
        Self {
            model: model.into(),
            max_tokens,
            prefix,
            messages: messages.into(),
            thinking: Thinking::ModelDefault,
            display: ThinkingDisplay::Omitted,
            effort: None,
            effort_max: None,
            user_id: None,
            source: Source::Foreground,
            fallbacks: 0,
            earlier: Earlier::default(),
            streaming: true,
            speed: Speed::Standard,
            task_budget: None,
            refused_betas: RefusedBetas::default(),
            cache: CacheLife::default(),
            after: None,
        }
    }
}

/// What stands before the messages. Frozen for a session, so that the server's prompt cache keeps it.
///
/// ```
/// use bytes::Bytes;
/// use pelton_model::Prefix;
///
/// let system = Bytes::from_static(br#"[{"type":"text","text":"Answer in French."}]"#);
/// let prefix = Prefix { system, ..Prefix::default() };
/// assert!(prefix.tools.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prefix {
    /// The JSON array of system blocks. Empty, or an empty array: no system prompt.
    pub system: Bytes,
    /// The JSON array of tool definitions. Empty, or an empty array: no tools.
    pub tools: Bytes,
}

/// Whether and how a model thinks. What a model cannot do is replaced by the nearest thing it can; a model that
/// the catalogue does not know is only told what was asked for by name.
///
/// ```
/// use pelton_model::Thinking;
///
/// assert_eq!(Thinking::up_to(4096), Thinking::Enabled { budget: 4096 });
/// assert_eq!(Thinking::up_to(0), Thinking::Disabled);
/// assert_eq!(Thinking::default(), Thinking::ModelDefault);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Thinking {
    /// What suits the model.
    #[default]
    ModelDefault,
    /// The model decides how much.
    Adaptive,
    /// Up to a number of tokens.
    Enabled {
        /// Tokens it may think; at least 1024, below `max_tokens`.
        budget: u32,
    },
    /// Not at all, where the model allows it.
    Disabled,
}

impl Thinking {
    /// Up to so many tokens; with none of them, not at all.
    pub fn up_to(tokens: u32) -> Self {
        if tokens == 0 { Self::Disabled } else { Self::Enabled { budget: tokens } }
    }
}

/// What is shown of a model's thinking.
///
/// ```
/// # use std::sync::Arc;
/// # use pelton_model::{Ask, Prefix};
/// # let messages = vec![bytes::Bytes::from_static(br#"{"role":"user","content":"hi"}"#)];
/// use pelton_model::ThinkingDisplay;
///
/// let mut ask = Ask::new("opus", 1000, Arc::new(Prefix::default()), messages);
/// assert_eq!(ask.display, ThinkingDisplay::Omitted);
/// ask.display = ThinkingDisplay::Summarized; // for people who like to watch
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThinkingDisplay {
    /// Nothing: the blocks come empty but signed.
    #[default]
    Omitted,
    /// A summary.
    Summarized,
}

/// How hard a model tries.
///
/// ```
/// use pelton_model::Effort;
///
/// assert_eq!("high".parse(), Ok(Effort::High));
/// assert!(Effort::Low < Effort::Max);
/// assert_eq!(Effort::XHigh.to_string(), "xhigh");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Effort {
    Low,
    Medium,
    High,
    XHigh,
    Max,
}

impl Effort {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no level of effort.
///
/// ```
/// use pelton_model::{Effort, UnknownEffort};
///
/// let error = "heroic".parse::<Effort>().unwrap_err();
/// assert_eq!(error, UnknownEffort("heroic".to_owned()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no level of effort: low, medium, high, xhigh or max")]
pub struct UnknownEffort(pub String);

impl FromStr for Effort {
    type Err = UnknownEffort;

    fn from_str(name: &str) -> Result<Self, UnknownEffort> {
        [Self::Low, Self::Medium, Self::High, Self::XHigh, Self::Max]
            .into_iter()
            .find(|effort| effort.as_str() == name)
            .ok_or_else(|| UnknownEffort(name.to_owned()))
    }
}

/// Who waits for an answer.
///
/// ```
/// # use std::sync::Arc;
/// # use pelton_model::{Ask, Prefix};
/// # let messages = vec![bytes::Bytes::from_static(br#"{"role":"user","content":"hi"}"#)];
/// use pelton_model::Source;
///
/// let mut title = Ask::new("haiku", 100, Arc::new(Prefix::default()), messages);
/// assert_eq!(title.source, Source::Foreground);
/// title.source = Source::Background; // nobody waits for a title: it is not repeated when the server is overloaded
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// Somebody: the main loop, a sub-agent.
    #[default]
    Foreground,
    /// Nobody in particular: summaries, titles, speculation. Gives way when the server is overloaded.
    Background,
}

/// How fast an answer comes.
///
/// ```
/// # use std::sync::Arc;
/// # use pelton_model::{Ask, Prefix};
/// # let messages = vec![bytes::Bytes::from_static(br#"{"role":"user","content":"hi"}"#)];
/// use pelton_model::{Speed, catalogue};
///
/// let mut ask = Ask::new("opus", 1000, Arc::new(Prefix::default()), messages);
/// if catalogue::can_be_fast(&ask.model) {
///     ask.speed = Speed::Fast;
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speed {
    /// As usual.
    #[default]
    Standard,
    /// Faster and dearer, from models that can and while the [client](crate::Client::fast_mode) may ask for it.
    Fast,
}

/// The tokens a task may take, shown to the model as a countdown. Not a hard limit.
///
/// ```
/// use pelton_model::TaskBudget;
///
/// let budget = TaskBudget { total: 100_000, remaining: None }; // `Ask::task_budget` is where it goes
/// let later = TaskBudget { remaining: Some(budget.total - 30_000), ..budget };
/// assert_eq!(later.remaining, Some(70_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskBudget {
    /// Tokens of the whole task. Servers take no less than 20,000: a smaller budget is sent as what remains of that.
    pub total: u64,
    /// What is left; `None` leaves the counting to the server. Needed once the history was rewritten.
    pub remaining: Option<u64>,
}

/// Beta features that a server refused: they are neither named in a request nor made use of.
///
/// ```
/// use pelton_model::RefusedBetas;
///
/// let mut refused = RefusedBetas::default();
/// refused.add(&["fast-mode".to_owned()]);
/// assert!(refused.contains("fast-mode") && !refused.contains("task-budgets"));
/// refused.add(&[]); // a server that does not say which
/// assert!(refused.contains("task-budgets"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedBetas {
    all: bool,
    names: Vec<String>,
}

impl RefusedBetas {
    /// Adds those that a refusal named; all there are, if it named none.
    pub fn add(&mut self, names: &[String]) {
        self.all |= names.is_empty();
        self.names
            .extend(names.iter().filter(|name| !self.names.contains(name)).cloned().collect::<Vec<_>>());
    }

    /// Whether this one is refused.
    pub fn contains(&self, beta: &str) -> bool {
        self.all || self.names.iter().any(|name| name == beta)
    }
}
