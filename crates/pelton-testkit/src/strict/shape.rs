//! Fields: required ones are there, unknown ones are not, and each has the right type.
//!
//! Deeper meaning (do results answer calls, is this thinking type known to the model …) is judged elsewhere; here only
//! the form counts, as the API's own schema would see it.

use super::tools::{OPEN_OBJECT, has_closed_objects};
use super::{Endpoint, Judge, Rule, Verdict};
use crate::catalogue::Fast;
use serde_json::Value;

const MESSAGES_MAX: usize = 100_000;
const TASK_BUDGET_TOKENS_MIN: u64 = 20_000;
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

pub(super) fn check(judge: &Judge<'_>) -> Verdict {
    check_top_level(judge)?;
    check_output_config(judge)?;
    check_messages(judge)
}

/// The type a field must have.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Any,
    Bool,
    Int,
    List,
    Number,
    Object,
    /// An object whose insides the API judges as a whole.
    Shaped,
    Text,
    TextOrList,
}

impl Kind {
    /// What the API says about a value of another type.
    pub(super) fn complaint(self, value: &Value) -> Option<&'static str> {
        let (fits, complaint) = match self {
            Self::Any => (true, ""),
            Self::Bool => (value.is_boolean(), "Input should be a valid boolean"),
            Self::Int => (value.is_i64() || value.is_u64(), "Input should be a valid integer"),
            Self::List => (value.is_array(), "Input should be a valid array"),
            Self::Number => (value.is_number(), "Input should be a valid number"),
            Self::Object => (value.is_object(), "Input should be an object"),
            Self::Shaped => (value.is_object(), "Input does not match the expected shape."),
            Self::Text => (value.is_string(), "Input should be a valid string"),
            // The API names only the second of the two.
            Self::TextOrList => (value.is_string() || value.is_array(), "Input should be a valid array"),
        };
        (!fits).then_some(complaint)
    }
}

/// Where a top-level field is accepted.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Everywhere,
    MessagesOnly,
    WithBeta(&'static [&'static str]),
}

use Place::{Everywhere, MessagesOnly, WithBeta};

/// What `null` means for a top-level field.
#[derive(Clone, Copy, PartialEq)]
enum Null {
    /// The same as leaving the field out.
    Absent,
    /// A value of the wrong type.
    Wrong,
}

use Null::{Absent, Wrong};

/// The fields in the order in which the API complains about them.
const TOP_LEVEL: &[(&str, Kind, Place, Null)] = &[
    ("model", Kind::Text, Everywhere, Wrong),
    ("tool_choice", Kind::Object, Everywhere, Wrong),
    ("tools", Kind::List, Everywhere, Wrong),
    ("messages", Kind::List, Everywhere, Wrong),
    ("system", Kind::TextOrList, Everywhere, Wrong),
    ("thinking", Kind::Object, Everywhere, Wrong),
    ("output_config", Kind::Shaped, Everywhere, Wrong),
    ("cache_control", Kind::Object, Everywhere, Absent),
    ("max_tokens", Kind::Int, MessagesOnly, Wrong),
    ("metadata", Kind::Shaped, MessagesOnly, Absent),
    ("stop_sequences", Kind::List, MessagesOnly, Absent),
    ("temperature", Kind::Number, MessagesOnly, Wrong),
    ("service_tier", Kind::Text, MessagesOnly, Wrong),
    ("top_k", Kind::Int, MessagesOnly, Wrong),
    ("top_p", Kind::Number, MessagesOnly, Wrong),
    ("stream", Kind::Bool, MessagesOnly, Wrong),
    ("container", Kind::Any, MessagesOnly, Absent),
    ("inference_geo", Kind::Text, MessagesOnly, Absent),
    ("speed", Kind::Text, Everywhere, Absent),
    ("transformations", Kind::Object, Everywhere, Absent),
    ("diagnostics", Kind::Object, MessagesOnly, Absent),
    (
        "context_management",
        Kind::Object,
        WithBeta(&["context-management-2025-06-27", "compact-2026-01-12"]),
        Absent,
    ),
    ("compaction", Kind::Object, WithBeta(&["compact-2026-09-04"]), Absent),
    ("fallbacks", Kind::Any, WithBeta(&["server-side-fallback-2026-07-01"]), Absent),
    ("fallback_credit_token", Kind::Text, WithBeta(&["fallback-credit-2026-07-01"]), Absent),
    ("thread", Kind::Object, WithBeta(&["message-threads-2026-08-12"]), Absent),
    (
        "mcp_servers",
        Kind::List,
        WithBeta(&["mcp-client-2026-09-15", "mcp-client-2025-11-20", "mcp-client-2025-04-04"]),
        Absent,
    ),
];

fn check_top_level(judge: &Judge<'_>) -> Verdict {
    let counting = judge.context.endpoint == Endpoint::CountTokens;
    let accepted = |place: &Place| match place {
        Everywhere => true,
        MessagesOnly => !counting,
        WithBeta(betas) => betas.iter().any(|beta| judge.has_beta(beta)),
    };
    for (name, kind, place, null) in TOP_LEVEL {
        let required = matches!(*name, "model" | "messages") || (*name == "max_tokens" && !counting);
        match judge.request.get(*name) {
            None if required => judge.refuse(Rule::Shape, format!("{name}: Field required"))?,
            Some(value) if accepted(place) && !(value.is_null() && *null == Absent) => {
                if let Some(complaint) = kind.complaint(value) {
                    judge.refuse(Rule::Shape, format!("{name}: {complaint}"))?;
                }
            }
            _ => {}
        }
    }
    if judge.str("model") == Some("") {
        judge.refuse(Rule::Shape, "model: String should have at least 1 character")?;
    }
    check_values(judge)?;
    for name in judge.request.as_object().into_iter().flat_map(serde_json::Map::keys) {
        if !TOP_LEVEL.iter().any(|(known, _, place, _)| known == name && accepted(place)) {
            judge.refuse(Rule::Shape, format!("{name}: Extra inputs are not permitted"))?;
        }
    }
    check_container(judge)
}

/// The values of fields that need no knowledge of the conversation.
fn check_values(judge: &Judge<'_>) -> Verdict {
    let one_of = |name: &str, values: &[&str], says: &str| match judge.str(name) {
        Some(value) if !values.contains(&value) => judge.refuse(Rule::Shape, format!("{name}: {says}")),
        _ => Ok(()),
    };
    check_members(judge, judge.get("metadata"), "metadata", &["user_id"])?;
    if let Some(user) = judge.get("metadata").and_then(|metadata| metadata.get("user_id"))
        && !user.is_null()
        && let Some(complaint) = Kind::Text.complaint(user)
    {
        judge.refuse(Rule::Shape, format!("metadata.user_id: {complaint}"))?;
    }
    for (i, sequence) in judge.list("stop_sequences").iter().enumerate() {
        if let Some(complaint) = Kind::Text.complaint(sequence) {
            judge.refuse(Rule::Shape, format!("stop_sequences.{i}: {complaint}"))?;
        }
    }
    one_of("service_tier", &["auto", "standard_only"], "Input should be 'auto' or 'standard_only'")?;
    one_of("inference_geo", &["global", "us"], "must be one of ['global', 'us']")?;
    one_of("speed", &["fast", "standard"], "Input should be 'fast' or 'standard'")?;
    check_speed(judge)
}

/// A container belongs to the tool that runs code in it.
fn check_container(judge: &Judge<'_>) -> Verdict {
    let runs_code = judge.list("tools").iter().any(|tool| {
        tool.get("type").and_then(Value::as_str).is_some_and(|kind| kind.starts_with("code_execution"))
    });
    if judge.get("container").is_some() && !runs_code {
        judge.refuse(
            Rule::Shape,
            "container: Container identifier can only be provided when using the code execution tool",
        )?;
    }
    Ok(())
}

fn check_speed(judge: &Judge<'_>) -> Verdict {
    if judge.str("speed") != Some("fast") {
        return Ok(());
    }
    match judge.facts.fast {
        Fast::Yes => Ok(()),
        Fast::Beta if judge.has_beta("fast-mode-2026-02-01") => Ok(()),
        Fast::Beta => judge.refuse(Rule::Shape, "speed: Extra inputs are not permitted"),
        Fast::No => {
            let model = judge.str("model").unwrap_or_default();
            judge.refuse(Rule::Shape, format!("'{model}' does not support the `speed` parameter."))
        }
    }
}

fn check_members(judge: &Judge<'_>, value: Option<&Value>, path: &str, known: &[&str]) -> Verdict {
    let Some(members) = value.and_then(Value::as_object) else { return Ok(()) };
    for name in members.keys().filter(|name| !known.contains(&name.as_str())) {
        judge.refuse(Rule::Shape, format!("{path}.{name}: Extra inputs are not permitted"))?;
    }
    Ok(())
}

fn check_output_config(judge: &Judge<'_>) -> Verdict {
    let Some(config) = judge.get("output_config") else { return Ok(()) };
    let budgets = judge.has_beta("task-budgets-2026-03-13");
    let known: &[&str] = if budgets { &["effort", "format", "task_budget"] } else { &["effort", "format"] };
    check_members(judge, Some(config), "output_config", known)?;
    if let Some(effort) = config.get("effort").filter(|effort| !effort.is_null())
        && !effort.as_str().is_some_and(|effort| EFFORTS.contains(&effort))
    {
        judge.refuse(
            Rule::Shape,
            "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'",
        )?;
    }
    if let Some(format) = config.get("format").filter(|format| !format.is_null()) {
        if format.get("type").and_then(Value::as_str) != Some("json_schema") {
            judge.refuse(Rule::Shape, "output_config.format.type: Input should be 'json_schema'")?;
        }
        match format.get("schema").filter(|schema| schema.is_object()) {
            None => judge.refuse(Rule::Shape, "output_config.format.schema: Field required")?,
            Some(schema) if !has_closed_objects(schema) => {
                judge.refuse(Rule::Shape, format!("output_config.format.schema: {OPEN_OBJECT}"))?;
            }
            Some(_) => {}
        }
    }
    let total = config.get("task_budget").and_then(|budget| budget.get("total")).and_then(Value::as_u64);
    if budgets && total.is_some_and(|total| total < TASK_BUDGET_TOKENS_MIN) {
        judge.refuse(
            Rule::Shape,
            format!("output_config.task_budget.total: Input should be greater than or equal to {TASK_BUDGET_TOKENS_MIN}"),
        )?;
    }
    Ok(())
}

fn check_messages(judge: &Judge<'_>) -> Verdict {
    let messages = judge.list("messages");
    if judge.get("messages").is_some_and(Value::is_array) && messages.is_empty() {
        judge.refuse(Rule::Shape, "messages: at least one message is required")?;
    }
    if messages.len() > MESSAGES_MAX {
        let found = messages.len();
        judge.refuse(
            Rule::Shape,
            format!("messages: List should have at most {MESSAGES_MAX} items after validation, not {found}"),
        )?;
    }
    for (i, message) in messages.iter().enumerate() {
        let path = format!("messages.{i}");
        if let Some(complaint) = Kind::Object.complaint(message) {
            judge.refuse(Rule::Shape, format!("{path}: {complaint}"))?;
            continue;
        }
        for name in ["role", "content"] {
            if message.get(name).is_none() {
                judge.refuse(Rule::Shape, format!("{path}.{name}: Field required"))?;
            }
        }
        if let Some(complaint) = message.get("role").and_then(|role| Kind::Text.complaint(role)) {
            judge.refuse(Rule::Shape, format!("{path}.role: {complaint}"))?;
        }
        if let Some(complaint) =
            message.get("content").and_then(|content| Kind::TextOrList.complaint(content))
        {
            judge.refuse(Rule::Shape, format!("{path}.content: {complaint}"))?;
        }
        let mut known = vec!["role", "content"];
        if message.get("role").and_then(Value::as_str) == Some("system") {
            known.extend(
                [
                    ("clear_at", "mid-conversation-system-clear-at-2026-08-21"),
                    ("output_config", "mid-conversation-output-config-2026-07-01"),
                ]
                .into_iter()
                .filter(|(_, beta)| judge.has_beta(beta))
                .map(|(name, _)| name),
            );
        }
        check_members(judge, Some(message), &path, &known)?;
    }
    Ok(())
}
