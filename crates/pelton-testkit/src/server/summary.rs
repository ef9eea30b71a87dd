//! What happened, in a few numbers.

use super::seen::{Illegal, Unexpected};
use super::state::Shared;
use serde_json::{Value, json};
use std::fmt;

/// What happened since the server started.
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
/// let model = Script::new().reply([text("Hello.")]).reply([text("Bye.")]).start_in_memory()?;
/// ask(&model, r#"{"role":"user","content":"Hi."}"#).await; // a client of yours
/// let summary = model.summary();
/// assert_eq!(summary.steps_left, [2]);
/// assert!(summary.to_string().starts_with("1 requests, 0 illegal, 0 unexpected"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Summary {
    /// How many requests came.
    pub requests: usize,
    /// How many a strict rule refused.
    pub illegal_count: usize,
    /// The first of them.
    pub illegal: Vec<Illegal>,
    /// How many found no step.
    pub unexpected_count: usize,
    /// The first of them.
    pub unexpected: Vec<Unexpected>,
    /// The steps, counted from 1, that still could have played; those that always play are not among them.
    pub steps_left: Vec<usize>,
    /// Why the record is not complete, if it is not.
    pub record_error: Option<String>,
}

impl Summary {
    pub(crate) fn of(shared: &Shared) -> Self {
        let state = shared.state();
        Self {
            requests: state.count,
            illegal_count: state.illegal.count,
            illegal: state.illegal.first.clone(),
            unexpected_count: state.unexpected.count,
            unexpected: state.unexpected.first.clone(),
            steps_left: state.steps_left(&shared.script),
            record_error: state.record_error.clone(),
        }
    }

    /// Whether no request was illegal or unexpected and the record, if any, is complete.
    pub fn is_clean(&self) -> bool {
        self.first_problem().is_none()
    }

    /// The first thing that went wrong, in words.
    pub fn first_problem(&self) -> Option<String> {
        let illegal = self.illegal.first().map(|illegal| {
            let Illegal { request, refusal } = illegal;
            (*request, format!("request {request} is illegal ({}): {}", refusal.rule, refusal.message))
        });
        let unexpected = self.unexpected.first().map(|unexpected| {
            (
                unexpected.request,
                format!("request {} was unexpected: {}", unexpected.request, unexpected.message),
            )
        });
        let first = illegal.into_iter().chain(unexpected).min();
        first
            .map(|(_, text)| text)
            .or_else(|| Some(format!("the record broke: {}", self.record_error.as_ref()?)))
    }

    /// For the control path.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "requests": self.requests,
            "illegal_count": self.illegal_count,
            "illegal": self.illegal.iter().map(|illegal| json!({
                "request": illegal.request, "rule": illegal.refusal.rule, "message": illegal.refusal.message,
            })).collect::<Vec<_>>(),
            "unexpected_count": self.unexpected_count,
            "unexpected": self.unexpected.iter().map(|unexpected| json!({
                "request": unexpected.request, "message": unexpected.message,
            })).collect::<Vec<_>>(),
            "steps_left": self.steps_left,
            "record_error": self.record_error,
        })
    }
}

/// One line for people.
impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requests, illegal_count, unexpected_count, steps_left, .. } = self;
        write!(formatter, "{requests} requests, {illegal_count} illegal, {unexpected_count} unexpected")?;
        if !steps_left.is_empty() {
            write!(formatter, ", steps not played to the end: {steps_left:?}")?;
        }
        match self.first_problem() {
            Some(problem) => write!(formatter, "; {problem}"),
            None => Ok(()),
        }
    }
}
