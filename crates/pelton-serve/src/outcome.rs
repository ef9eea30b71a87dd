//! The result message.

use std::collections::BTreeMap;

use pelton::event::{ModelUsage, Outcome};
use pelton::{OUTPUT_TOKENS_UNKNOWN_MODEL, WINDOW_TOKENS_UNKNOWN_MODEL};
use pelton::{SYNTHETIC_MODEL, Terminal};
use pelton_model::{FastMode, catalogue};
use pelton_wire::line::Line;
use pelton_wire::usage::{CacheCreation, OutputTokensDetails, ServerToolUse, Usage};
use serde::Serialize;
use uuid::Uuid;

/// The `subtype` of a result.
fn subtype(outcome: &Outcome) -> &'static str {
    match outcome.terminal {
        // It made way for a prompt.
        Terminal::AbortedStreaming | Terminal::AbortedToolExecution if !outcome.is_error => "success",
        Terminal::MaxTurns => "error_max_turns",
        Terminal::BudgetExhausted => "error_max_budget_usd",
        Terminal::StructuredOutputRetries => "error_max_structured_output_retries",
        Terminal::AbortedStreaming
        | Terminal::AbortedToolExecution
        | Terminal::NoAnswer
        | Terminal::Unrecorded => "error_during_execution",
        // An API error is a success of the protocol: the answer is the error's text, and `is_error` says so.
        _ => "success",
    }
}

/// What is known of how a session asks, for what its results say of a model's window.
#[derive(Debug, Default)]
pub(crate) struct Asks {
    model: String,
    betas: Vec<String>,
}

impl Asks {
    pub fn of(model: &str, betas: &[String]) -> Self {
        Self { model: catalogue::resolve(model), betas: betas.to_vec() }
    }

    /// The window of a model, by its id alone. What it was asked for with counts.
    fn window(&self, id: &str) -> u64 {
        let name = if catalogue::api_id(&self.model) == id { &self.model } else { id };
        catalogue::window(name, &self.betas).unwrap_or(WINDOW_TOKENS_UNKNOWN_MODEL)
    }
}

/// One result as a JSON object that is not finished yet.
pub(crate) fn line(outcome: &Outcome, session: Uuid, uuid: Uuid, asks: &Asks) -> Line {
    let subtype = subtype(outcome);
    let success = subtype == "success";
    let completed = matches!(outcome.terminal, Terminal::Completed | Terminal::CompletedOverHooks);
    let api_error = success && outcome.is_error && !completed;
    let stop_reason = match &outcome.stop_reason {
        _ if api_error => Some("stop_sequence"),
        _ if outcome.deferred.is_some() => Some(outcome.terminal.name()),
        Some(reason) => Some(reason.as_str()),
        None => None,
    };
    // The loop did not end: it never began.
    let terminal_reason = (outcome.asked || !completed).then(|| outcome.terminal.name());
    let deferred = outcome.deferred.as_ref().map(|deferred| Deferred {
        id: &deferred.call,
        name: &deferred.tool,
        input: &deferred.input,
    });
    let line = Line::new("result")
        .field("subtype", subtype)
        .field("is_error", outcome.is_error)
        .field("duration_ms", millis(outcome.duration))
        .field("duration_api_ms", millis(outcome.duration_api))
        .field_if("ttft_ms", outcome.first_token_after.map(millis))
        .field("num_turns", outcome.num_turns);
    let line = if success {
        let status = outcome.error.as_ref().and_then(|error| error.status);
        line.field("api_error_status", status).field("result", &outcome.text)
    } else {
        line.field("errors", &outcome.errors)
    };
    line.field("stop_reason", stop_reason)
        .field("session_id", session)
        .field("total_cost_usd", outcome.cost_usd)
        .field("usage", Consumed::of(&outcome.usage))
        .field("modelUsage", by_model(&outcome.by_model, asks))
        .field("permission_denials", denials(outcome))
        .field_if("structured_output", outcome.structured_output.as_ref())
        .field_if("deferred_tool_use", deferred)
        .field_if("terminal_reason", terminal_reason)
        .field("fast_mode_state", fast_mode_state(outcome.fast_mode))
        .field("uuid", uuid)
}

/// The protocol's word for whether answers come fast.
pub(crate) fn fast_mode_state(fast_mode: FastMode) -> &'static str {
    match fast_mode {
        FastMode::On => "on",
        FastMode::Cooldown { .. } => "cooldown",
        _ => "off",
    }
}

/// The result of a run that could not start: nothing was asked, nothing was spent.
pub fn start_failure(message: &str, session: Uuid, uuid: Uuid) -> Vec<u8> {
    Line::new("result")
        .field("subtype", "error_during_execution")
        .field("is_error", true)
        .field("duration_ms", 0)
        .field("duration_api_ms", 0)
        .field("num_turns", 0)
        .field("errors", [message])
        .field("stop_reason", None::<&str>)
        .field("session_id", session)
        .field("total_cost_usd", 0)
        .field("usage", Consumed::of(&Usage::default()))
        .field("modelUsage", BTreeMap::<&str, Model>::new())
        .field("permission_denials", [(); 0])
        .field("uuid", uuid)
        .finish()
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What was consumed, as results tell it: what a server did not say is there, too, for the clients' types promise it.
#[derive(Serialize)]
struct Consumed<'a> {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
    output_tokens_details: OutputTokensDetails,
    server_tool_use: ServerToolUse,
    service_tier: &'a str,
    cache_creation: CacheCreation,
    inference_geo: &'a str,
    iterations: [(); 0],
    fallback_credit: Option<()>,
    speed: &'a str,
}

impl<'a> Consumed<'a> {
    fn of(usage: &'a Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            cache_creation_input_tokens: usage.cache_creation_input_tokens,
            cache_read_input_tokens: usage.cache_read_input_tokens,
            output_tokens: usage.output_tokens,
            output_tokens_details: usage.output_tokens_details.unwrap_or_default(),
            server_tool_use: usage.server_tool_use,
            service_tier: usage.service_tier.as_deref().unwrap_or("standard"),
            cache_creation: usage.cache_creation,
            inference_geo: usage.inference_geo.as_deref().unwrap_or_default(),
            iterations: [],
            fallback_credit: None,
            speed: usage.speed.as_deref().unwrap_or("standard"),
        }
    }
}

/// What each model consumed, as results tell it.
pub(crate) fn model_usage(models: &BTreeMap<String, ModelUsage>, asks: &Asks) -> serde_json::Value {
    serde_json::json!(by_model(models, asks))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Model {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
    web_search_requests: u64,
    #[serde(rename = "costUSD")]
    cost_usd: f64,
    context_window: u64,
    max_output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_basis: Option<&'static str>,
}

fn by_model<'a>(models: &'a BTreeMap<String, ModelUsage>, asks: &Asks) -> BTreeMap<&'a str, Model> {
    let known = models.iter().filter(|(name, _)| *name != SYNTHETIC_MODEL);
    known.map(|(name, used)| (name.as_str(), model(name, used, asks))).collect()
}

fn model(name: &str, used: &ModelUsage, asks: &Asks) -> Model {
    let caps = catalogue::caps(name);
    let Usage { input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens, .. } =
        used.usage;
    Model {
        input_tokens,
        output_tokens,
        cache_read_input_tokens,
        cache_creation_input_tokens,
        web_search_requests: used.usage.server_tool_use.web_search_requests,
        cost_usd: used.cost_usd.unwrap_or_default(),
        context_window: asks.window(name),
        max_output_tokens: caps.map_or(OUTPUT_TOKENS_UNKNOWN_MODEL, |caps| caps.output_default),
        cost_basis: used.cost_usd.is_none().then_some("unknown"),
    }
}

#[derive(Serialize)]
struct Deferred<'a> {
    id: &'a str,
    name: &'a str,
    input: &'a serde_json::Value,
}

#[derive(Serialize)]
struct Denied<'a> {
    tool_name: &'a str,
    tool_use_id: &'a str,
    tool_input: &'a serde_json::Value,
}

fn denials(outcome: &Outcome) -> Vec<Denied<'_>> {
    let denied = outcome.denials.iter();
    denied
        .map(|denial| Denied {
            tool_name: &denial.tool,
            tool_use_id: &denial.call,
            tool_input: &denial.input,
        })
        .collect()
}
