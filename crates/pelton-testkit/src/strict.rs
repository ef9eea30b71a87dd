//! What the real API refuses, in the real API's words.
//!
//! `parse` reads a body, `check` judges it. Both are pure. Each thing the API insists on is a [`Rule`] and can be
//! switched off by itself with [`Strictness`], for tests that want to see past one refusal to the next.
//!
//! The messages are the API's, as public bug reports and published measurements quote them, down to the order in which
//! two faults of one request are reported. A few are not, because no quote was found; clients should not match on them:
//!
//! - `max_tokens: 0` together with something that shapes an answer
//! - both credentials at once, a body that is JSON but no object, an encoding that is not known
//! - the lists of expected tags: which the API names, and in which order, changes with every new block or tool
//! - `between_tools` at the two highest efforts, which follows the wording for `disabled`
//! - a document of the assistant and cited text of the user, refused since version 2026-10-21
//! - an image without data, which follows the wording for a PDF without data
//! - a document of another media type than PDF, and a role that is no text
//! - a mark on the last block whose lifetime is not that of the top-level mark
//! - a `task_budget` below its minimum, more messages than the API takes
//!
//! Two things the API says in two ways, depending on where a request lands: too many images are either `Too much media`,
//! as here, or `too many images and documents`. And some refusals come after the facts that no test server can know
//! (credit, moderation, files by URL); scripts play those with `status`.
//!
//! Where reports disagree, the older and stricter ones are followed: an empty text block is refused in every turn, not
//! only in the last, and a history with tool calls needs tools. One thing is left alone: an assistant turn in the middle
//! of the history that ends with a thinking block.
//!
//! ```
//! use pelton_testkit::strict::{Rule, Strictness};
//! let lenient = Strictness::default().relax(Rule::ToolPairs);
//! assert!(lenient.is_on(Rule::Roles) && !lenient.is_on(Rule::ToolPairs));
//! ```

mod blocks; // the form of content blocks
mod header; // version and beta headers
mod marks; // cache marks
mod media; // images and documents
mod rule; // the rules and which are on
mod sampling; // temperature, top_p, top_k
mod shape; // fields and their types
mod size; // bytes, output tokens, context window
mod thinking; // configuration of thinking, replayed thinking blocks
mod tools; // tool definitions and tool choice
mod turns; // roles, empty text, tool pairs, prefill

pub use rule::{Rule, Strictness};

use crate::catalogue::{self, ModelFacts};
use crate::issued::Issued;
use crate::prompt::{self, Part};
use serde_json::Value;

/// Why a request was refused, ready to be sent as an error body.
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
/// let model = Script::new().reply([text("Hello.")]).start_in_memory()?.expect_illegal();
/// ask(&model, r#"{"role":"user","content":""}"#).await; // a client with a fault
/// let refusal = model.illegal()[0].refusal.clone();
/// assert_eq!((refusal.status, refusal.kind), (400, "invalid_request_error"));
/// assert!(refusal.message.contains("content")); // the API's own words
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The rule that refused.
    pub rule: Rule,
    /// The HTTP status.
    pub status: u16,
    /// `error.type` of the body.
    pub kind: &'static str,
    /// `error.message` of the body.
    pub message: String,
    /// `error.details.error_code` of the body, where the API has one.
    pub code: Option<&'static str>,
}

/// The endpoint a body was sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// `POST /v1/messages`
    Messages,
    /// `POST /v1/messages/count_tokens`
    CountTokens,
}

/// What [`check`] needs to know besides the parsed body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    /// Where the body was sent.
    pub endpoint: Endpoint,
    /// Size of the body, decompressed.
    pub body_bytes: usize,
    /// The `anthropic-version` header.
    pub version: &'a str,
    /// The `anthropic-beta` headers, joined with commas; empty when absent.
    pub betas: &'a str,
}

/// Reads a body as the API does: 413 above its limit, 400 when it is not a JSON object or nested too deep.
pub(crate) fn parse(body: &[u8], strictness: &Strictness) -> Result<Value, Refusal> {
    if strictness.is_on(Rule::BodySize) {
        size::body(body.len())?;
    }
    let not_json =
        |why: String| bad_request(Rule::Shape, format!("The request body is not valid JSON: {why}"));
    // The parser stops at 128 levels, so no value is deep enough to trouble the recursive walks behind it.
    let value: Value = serde_json::from_slice(body).map_err(|error| not_json(error.to_string()))?;
    if value.is_object() { Ok(value) } else { Err(not_json("expected an object".into())) }
}

/// Refuses what the API refuses. Rules are tried in the API's order: shape first, then settings, then history.
pub(crate) fn check(
    request: &Value,
    context: &Context<'_>,
    issued: &Issued,
    strictness: &Strictness,
) -> Result<(), Refusal> {
    let judge = Judge::new(request, *context, issued, strictness);
    if strictness.is_on(Rule::BodySize) {
        size::body(context.body_bytes)?;
    }
    header::check(&judge)?;
    shape::check(&judge)?;
    blocks::check(&judge)?;
    judge.check_model()?;
    tools::check(&judge)?;
    size::check_max_tokens(&judge)?;
    thinking::check_settings(&judge)?;
    sampling::check(&judge)?;
    turns::check(&judge)?;
    marks::check(&judge)?;
    media::check(&judge)?;
    thinking::check_replay(&judge)?;
    size::check_window(&judge)
}

/// One request on trial.
struct Judge<'a> {
    request: &'a Value,
    context: Context<'a>,
    issued: &'a Issued,
    strictness: &'a Strictness,
    facts: &'static ModelFacts,
    parts: Vec<Part<'a>>,
}

type Verdict = Result<(), Refusal>;

impl<'a> Judge<'a> {
    fn new(request: &'a Value, context: Context<'a>, issued: &'a Issued, strictness: &'a Strictness) -> Self {
        let model = request.get("model").and_then(Value::as_str).unwrap_or_default();
        Self {
            request,
            context,
            issued,
            strictness,
            facts: catalogue::model(model).unwrap_or(catalogue::permissive()),
            parts: prompt::parts(request),
        }
    }

    /// Refuses, unless the rule is relaxed: then the trial goes on.
    fn refuse(&self, rule: Rule, message: impl Into<String>) -> Verdict {
        if self.strictness.is_on(rule) { Err(bad_request(rule, message)) } else { Ok(()) }
    }

    fn check_model(&self) -> Verdict {
        let Some(model) = self.str("model") else { return Ok(()) };
        if catalogue::model(model).is_some() || !self.strictness.is_on(Rule::KnownModel) {
            return Ok(());
        }
        let unknown = bad_request(Rule::KnownModel, format!("model: {model}"));
        Err(Refusal { status: 404, kind: "not_found_error", ..unknown })
    }

    fn get(&self, field: &str) -> Option<&'a Value> {
        self.request.get(field).filter(|value| !value.is_null())
    }

    fn str(&self, field: &str) -> Option<&'a str> {
        self.get(field).and_then(Value::as_str)
    }

    fn list(&self, field: &str) -> &'a [Value] {
        self.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn has_beta(&self, beta: &str) -> bool {
        self.betas().any(|sent| sent == beta)
    }

    fn betas(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.context.betas.split(',').map(str::trim).filter(|beta| !beta.is_empty())
    }
}

fn bad_request(rule: Rule, message: impl Into<String>) -> Refusal {
    Refusal { rule, status: 400, kind: "invalid_request_error", message: message.into(), code: None }
}

#[cfg(test)]
mod tests;
