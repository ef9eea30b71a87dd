//! Why a call to a model failed.

use std::fmt;
use std::sync::Arc;

use crate::catalogue;
use crate::transport::{TransportError, TransportErrorKind};

/// The most kinds of failure of one call that are told apart.
const TRIED_MAX: usize = 16;

/// A call that failed: match on [`kind`](ModelError::kind), show the `Display` form.
///
/// ```
/// use pelton_model::{ErrorKind, ModelError};
///
/// let error = ModelError::new(ErrorKind::Overloaded, "the server has too much to do");
/// assert_eq!(error.to_string(), "the server has too much to do");
/// assert_eq!((error.kind, error.status), (ErrorKind::Overloaded, None));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelError {
    /// What to do about it depends on this.
    pub kind: ErrorKind,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// The server's own name for it.
    pub error_type: Option<String>,
    /// The server's own words, or ours when it had none.
    pub message: String,
    /// The server's id of the request.
    pub request_id: Option<String>,
    /// An answer had begun when it happened.
    pub in_answer: bool,
    /// The requests that were sent until the call was given up; none in an error that did not end a call.
    pub tried: Arc<Vec<Tried>>,
}

/// Requests to one model that failed in one way.
///
/// ```
/// use std::sync::Arc;
///
/// use pelton_model::{ErrorKind, ModelError, Tried};
///
/// let tried = Tried { model: "claude-opus-5-5".to_owned(), status: Some(529), kind: ErrorKind::Overloaded, times: 3 };
/// let mut error = ModelError::new(ErrorKind::Overloaded, "Overloaded");
/// error.tried = Arc::new(vec![tried]);
/// assert_eq!(error.attempts(), 3);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The model.
    pub model: String,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// How they failed; of several the latest.
    pub kind: ErrorKind,
    /// How many there were.
    pub times: u32,
}

impl ModelError {
    /// An error that no server reported.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            status: None,
            error_type: None,
            message: message.into(),
            request_id: None,
            in_answer: false,
            tried: Arc::default(),
        }
    }

    /// How many requests were sent until the call was given up.
    pub fn attempts(&self) -> u32 {
        self.tried.iter().fold(0, |sum, tried| sum.saturating_add(tried.times))
    }
}

impl ModelError {
    /// Whether anybody answered at all, be it with a refusal or with an answer that broke off.
    ///
    /// ```
    /// use pelton_model::{ErrorKind, ModelError, TransportErrorKind};
    ///
    /// let mut error = ModelError::new(ErrorKind::Connection(TransportErrorKind::Reset), "connection reset");
    /// assert!(!error.is_answered());
    /// error.in_answer = true;
    /// assert!(error.is_answered());
    /// ```
    pub fn is_answered(&self) -> bool {
        self.in_answer || self.status.is_some() || self.error_type.is_some()
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.status, &self.error_type) {
            (Some(status), Some(name)) => write!(f, "{status} {name}: ")?,
            (Some(status), None) => write!(f, "HTTP {status}: ")?,
            (None, Some(name)) => write!(f, "{name}: ")?,
            (None, None) => {}
        }
        // One line, whatever the server wrote.
        for (at, line) in self.message.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
            write!(f, "{}{line}", if at == 0 { "" } else { " " })?;
        }
        if let Some(id) = &self.request_id {
            write!(f, " (request {id})")?;
        }
        if self.attempts() > 1 {
            write!(f, " (tried {} times:", self.attempts())?;
            let mut model = "";
            for (at, tried) in self.tried.iter().enumerate() {
                f.write_str(if at == 0 { " " } else { ", " })?;
                // Each model is named once.
                if tried.model != model {
                    model = &tried.model;
                    write!(f, "{} ", catalogue::resolve(model))?;
                }
                write!(f, "{tried}")?;
            }
            f.write_str(")")?;
        }
        Ok(())
    }
}

impl Tried {
    /// Counts a failure of this model with those before it.
    pub(crate) fn count(all: &mut Vec<Self>, model: &str, error: &ModelError) {
        let kind = match &error.kind {
            ErrorKind::Connection(_) if error.in_answer => ErrorKind::StreamCut,
            kind => kind.clone(),
        };
        let status = error.status;
        let way = |kind: &ErrorKind| {
            (kind.is_broken_answer(), matches!(kind, ErrorKind::Connection(_)), kind.wire_name())
        };
        let same = |tried: &&mut Self| tried.status == status && way(&tried.kind) == way(&kind);
        let full = all.len() >= TRIED_MAX;
        if let Some(tried) = all.iter_mut().find(same) {
            (tried.times, tried.kind) = (tried.times.saturating_add(1), kind);
        } else if let Some(last) = all.last_mut().filter(|_| full) {
            // Too varied to be listed: the rest counts with the last.
            last.times = last.times.saturating_add(1);
        } else {
            all.push(Self { model: model.to_owned(), status, kind, times: 1 });
        }
    }
}

// How often, and how.
impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} × ", self.times)?;
        match (self.status, &self.kind) {
            (Some(status), _) => write!(f, "{status}"),
            (None, ErrorKind::Connection(_)) => f.write_str("no connection"),
            (None, kind) if kind.is_broken_answer() => f.write_str("a broken answer"),
            (None, kind) => f.write_str(kind.wire_name()),
        }
    }
}

impl std::error::Error for ModelError {}

impl From<TransportError> for ModelError {
    fn from(error: TransportError) -> Self {
        Self::new(ErrorKind::Connection(error.kind), error.message)
    }
}

/// The kinds of failure that are treated differently somewhere.
///
/// ```
/// use pelton_model::ErrorKind;
///
/// /// Whether the same question can be asked again later.
/// fn may_pass(kind: &ErrorKind) -> bool {
///     matches!(kind, ErrorKind::Overloaded | ErrorKind::RateLimited | ErrorKind::Server | ErrorKind::Timeout)
/// }
/// assert!(may_pass(&ErrorKind::Overloaded) && !may_pass(&ErrorKind::Authentication));
/// assert_eq!(ErrorKind::RateLimited.wire_name(), "rate_limit");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The server has too much to do.
    Overloaded,
    /// We asked too much in too short a time.
    RateLimited,
    /// The credentials are not accepted.
    Authentication,
    /// The credentials do not allow this.
    Permission,
    /// The account cannot pay, or a spending limit is reached.
    Billing,
    /// No such model, or no such address.
    NotFound,
    /// The prompt alone does not fit the context window.
    PromptTooLong {
        /// Tokens of the prompt, if the server says.
        tokens: Option<u64>,
        /// The window, if the server says.
        limit: Option<u64>,
    },
    /// The prompt fits, but not together with the output that was asked for.
    OutputOverflow {
        /// Tokens of the prompt.
        input: u64,
        /// The output asked for.
        max_tokens: u64,
        /// The window.
        limit: u64,
    },
    /// The model never writes that much.
    MaxTokensTooHigh {
        /// What it writes at most.
        limit: u64,
    },
    /// The request has too many bytes.
    RequestTooLarge,
    /// An image or a document cannot be used: too large, most often.
    Image {
        /// Which one, as a path into the request such as `messages.7.content.3`.
        path: Option<String>,
    },
    /// Fast answers are not to be had: the account or the model does not allow them.
    FastModeRefused,
    /// Beta features are not to be had here.
    BetaRefused {
        /// Which ones, if the server says.
        names: Vec<String>,
    },
    /// A thinking block sent back is not accepted: it belongs to another model or another conversation.
    ThinkingBound,
    /// The server does not accept the request for another reason.
    InvalidRequest,
    /// The server failed.
    Server,
    /// The server gave up waiting for something.
    Timeout,
    /// The connection failed.
    Connection(TransportErrorKind),
    /// The stream ended too early.
    StreamCut,
    /// The stream fell silent.
    Stalled,
    /// The server said yes and then nothing.
    EmptyStream,
    /// Somebody answered with a page for people: a login, a proxy, another address than that of the API.
    WebPage,
    /// The server sent what cannot be read.
    Malformed,
    /// Something else.
    Other,
}

impl ErrorKind {
    /// Whether another model may do better, if there is one.
    pub fn leads_elsewhere(&self) -> bool {
        matches!(self, Self::Overloaded | Self::Server)
    }

    /// Whether there was an answer, but not all of it or not one that can be read.
    fn is_broken_answer(&self) -> bool {
        matches!(self, Self::StreamCut | Self::Stalled | Self::EmptyStream | Self::Malformed)
    }

    /// The name that front ends report: one of the error names of SDK messages.
    pub fn wire_name(&self) -> &'static str {
        match self {
            Self::Overloaded => "overloaded",
            Self::RateLimited => "rate_limit",
            Self::Authentication | Self::Permission => "authentication_failed",
            Self::Billing => "billing_error",
            Self::NotFound => "model_not_found",
            Self::PromptTooLong { .. }
            | Self::OutputOverflow { .. }
            | Self::MaxTokensTooHigh { .. }
            | Self::RequestTooLarge
            | Self::Image { .. }
            | Self::FastModeRefused
            | Self::BetaRefused { .. }
            | Self::ThinkingBound
            | Self::InvalidRequest => "invalid_request",
            Self::Server | Self::Timeout => "server_error",
            Self::Connection(_)
            | Self::StreamCut
            | Self::Stalled
            | Self::EmptyStream
            | Self::WebPage
            | Self::Malformed
            | Self::Other => "unknown",
        }
    }
}
