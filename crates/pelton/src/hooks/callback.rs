//! Hooks that are functions of the host: of a program using the library, or of an SDK client at the other end of a
//! pipe.

use futures::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// A hook that is a function.
///
/// ```
/// use std::sync::Arc;
///
/// use futures::future::BoxFuture;
/// use pelton::hooks::{CallbackError, CallbackTerms, HookCall, HookCallback, HookConfig, HookEvent};
/// use serde_json::{Value, json};
///
/// /// Keeps the model away from one command.
/// struct NoPush;
///
/// impl HookCallback for NoPush {
///     fn call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<Value, CallbackError>> {
///         let command = call.input["tool_input"]["command"].as_str().unwrap_or_default();
///         let answer = match command.contains("git push") {
///             true => json!({"decision": "block", "reason": "Nothing is pushed from here."}),
///             false => json!({}),
///         };
///         Box::pin(async { Ok(answer) })
///     }
/// }
///
/// let mut hooks = HookConfig::default(); // `Options::hooks` is where it goes
/// let added = hooks.add_callback(HookEvent::PreToolUse, Some("Bash"), Arc::new(NoPush), CallbackTerms::default());
/// assert!(added.is_ok());
/// ```
pub trait HookCallback: Send + Sync {
    /// Answers with the same JSON object a command would print; `{}` is no opinion. The future is dropped when its
    /// time is over or the user interrupts.
    fn call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<Value, CallbackError>>;

    /// What notices call it.
    fn label(&self) -> &str {
        "callback"
    }
}

/// What a callback is told.
///
/// ```
/// use pelton::hooks::HookCall;
///
/// /// The command that is about to run, for callbacks of `PreToolUse`.
/// fn command<'a>(call: &HookCall<'a>) -> Option<&'a str> {
///     call.input["tool_input"]["command"].as_str()
/// }
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct HookCall<'a> {
    /// What a command would read on its standard input.
    pub input: &'a Value,
    /// The call the event is about.
    pub tool_use_id: Option<&'a str>,
    /// Set when the user interrupts.
    pub cancel: &'a CancellationToken,
}

impl<'a> HookCall<'a> {
    pub(super) fn new(input: &'a Value, tool_use_id: Option<&'a str>, cancel: &'a CancellationToken) -> Self {
        Self { input, tool_use_id, cancel }
    }
}

/// Why a callback has no answer.
///
/// ```
/// use pelton::hooks::CallbackError;
///
/// /// What a callback hands back when whoever it asks is out of reach.
/// fn unreachable(error: &std::io::Error) -> CallbackError {
///     CallbackError(format!("the policy server does not answer: {error}"))
/// }
/// let error = unreachable(&std::io::ErrorKind::ConnectionRefused.into());
/// assert!(error.to_string().starts_with("the policy server does not answer"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CallbackError(pub String);
