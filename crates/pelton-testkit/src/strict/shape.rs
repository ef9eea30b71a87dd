//! Fields: required ones are there, unknown ones are not, and each has the right type.
//!
//! Deeper meaning (do results answer calls, is this thinking type known to the model …) is judged elsewhere; here only
//! the form counts, as the API's own schema would see it.

use super::header::VERSION_2026_10;
use super::{Endpoint, Judge, Rule, Verdict};
use crate::catalogue::Fast;
use crate::prompt::{Body, Part, Section};
use serde_json::Value;

const MESSAGES_MAX: usize = 100_000;
const TASK_BUDGET_TOKENS_MIN: u64 = 20_000;
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

pub(super) fn check(judge: &Judge<'_>) -> Verdict {
    check_top_level(judge)?;
    check_output_config(judge)?;
    check_messages(judge)?;
    judge
        .parts
        .iter()
        .filter(|part| part.section != Section::Tools)
        .try_for_each(|part| check_block(judge, part))
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
            Self::Text => (value.is_string(), "Input should be a valid string"),
            Self::TextOrList => {
                (value.is_string() || value.is_array(), "Input should be a valid string or array")
            }
        };
        (!fits).then_some(complaint)
    }
}

/// Where a top-level field is accepted.
#[derive(Clone, Copy)]
enum Place {
    Everywhere,
    MessagesOnly,
    WithBeta(&'static [&'static str]),
}

use Place::{Everywhere, MessagesOnly, WithBeta};

const TOP_LEVEL: &[(&str, Kind, Place)] = &[
    ("model", Kind::Text, Everywhere),
    ("messages", Kind::List, Everywhere),
    ("max_tokens", Kind::Int, MessagesOnly),
    ("system", Kind::TextOrList, Everywhere),
    ("tools", Kind::List, Everywhere),
    ("tool_choice", Kind::Object, Everywhere),
    ("thinking", Kind::Object, Everywhere),
    ("output_config", Kind::Object, Everywhere),
    ("cache_control", Kind::Object, Everywhere),
    ("speed", Kind::Text, Everywhere),
    ("transformations", Kind::Object, Everywhere),
    ("metadata", Kind::Object, MessagesOnly),
    ("stream", Kind::Bool, MessagesOnly),
    ("stop_sequences", Kind::List, MessagesOnly),
    ("temperature", Kind::Number, MessagesOnly),
    ("top_p", Kind::Number, MessagesOnly),
    ("top_k", Kind::Int, MessagesOnly),
    ("service_tier", Kind::Text, MessagesOnly),
    ("container", Kind::Any, MessagesOnly),
    ("inference_geo", Kind::Text, MessagesOnly),
    ("diagnostics", Kind::Object, MessagesOnly),
    ("context_management", Kind::Object, WithBeta(&["context-management-2025-06-27", "compact-2026-01-12"])),
    ("compaction", Kind::Object, WithBeta(&["compact-2026-09-04"])),
    ("fallbacks", Kind::Any, WithBeta(&["server-side-fallback-2026-07-01"])),
    ("fallback_credit_token", Kind::Text, WithBeta(&["fallback-credit-2026-07-01"])),
    ("thread", Kind::Object, WithBeta(&["message-threads-2026-08-12"])),
    (
        "mcp_servers",
        Kind::List,
        WithBeta(&["mcp-client-2026-09-15", "mcp-client-2025-11-20", "mcp-client-2025-04-04"]),
    ),
];

fn check_top_level(judge: &Judge<'_>) -> Verdict {
    let counting = judge.context.endpoint == Endpoint::CountTokens;
    for name in ["model", "messages", "max_tokens"] {
        if judge.request.get(name).is_none() && !(counting && name == "max_tokens") {
            judge.refuse(Rule::Shape, format!("{name}: Field required"))?;
        }
    }
    let Some(members) = judge.request.as_object() else { return Ok(()) };
    for (name, value) in members {
        let known = TOP_LEVEL.iter().find(|(known, ..)| known == name).filter(|(_, _, place)| match place {
            Everywhere => true,
            MessagesOnly => !counting,
            WithBeta(betas) => betas.iter().any(|beta| judge.has_beta(beta)),
        });
        let Some((_, kind, _)) = known else {
            judge.refuse(Rule::Shape, format!("{name}: Extra inputs are not permitted"))?;
            continue;
        };
        let required = matches!(name.as_str(), "model" | "messages" | "max_tokens");
        if (required || !value.is_null())
            && let Some(complaint) = kind.complaint(value)
        {
            judge.refuse(Rule::Shape, format!("{name}: {complaint}"))?;
        }
    }
    let one_of = |name: &str, values: &[&str], says: &str| match judge.str(name) {
        Some(value) if !values.contains(&value) => {
            judge.refuse(Rule::Shape, format!("{name}: Input should be {says}"))
        }
        _ => Ok(()),
    };
    one_of("speed", &["fast", "standard"], "'fast' or 'standard'")?;
    check_speed(judge)?;
    one_of("service_tier", &["auto", "standard_only"], "'auto' or 'standard_only'")?;
    check_members(judge, judge.get("metadata"), "metadata", &["user_id"])?;
    for (i, sequence) in judge.list("stop_sequences").iter().enumerate() {
        if let Some(complaint) = Kind::Text.complaint(sequence) {
            judge.refuse(Rule::Shape, format!("stop_sequences.{i}: {complaint}"))?;
        }
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
        if !format.get("schema").is_some_and(Value::is_object) {
            judge.refuse(Rule::Shape, "output_config.format.schema: Field required")?;
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

/// The members of a block type: required ones, optional ones, and whether others are refused.
struct BlockShape {
    required: &'static [(&'static str, Kind)],
    optional: &'static [(&'static str, Kind)],
    closed: bool,
}

const fn closed(
    required: &'static [(&'static str, Kind)],
    optional: &'static [(&'static str, Kind)],
) -> BlockShape {
    BlockShape { required, optional, closed: true }
}

/// A block only servers write; clients send it back as it was.
const OPAQUE: BlockShape = BlockShape { required: &[], optional: &[], closed: false };
const SERVER_RESULT: BlockShape =
    BlockShape { required: &[("tool_use_id", Kind::Text)], optional: &[], closed: false };

const MARK: (&str, Kind) = ("cache_control", Kind::Any);

fn shape_of(kind: &str) -> Option<BlockShape> {
    use Kind::{Any, Bool, Object, Text, TextOrList};
    Some(match kind {
        "text" => closed(&[("text", Text)], &[("citations", Any), MARK]),
        "image" => closed(&[("source", Object)], &[MARK]),
        "document" => {
            closed(&[("source", Object)], &[("title", Text), ("context", Text), ("citations", Any), MARK])
        }
        "search_result" => {
            closed(&[("source", Text), ("title", Text), ("content", Kind::List)], &[("citations", Any), MARK])
        }
        "tool_use" => closed(
            &[("id", Text), ("name", Text), ("input", Object)],
            &[("caller", Object), ("toolset_name", Text), MARK],
        ),
        "tool_result" => {
            closed(&[("tool_use_id", Text)], &[("content", TextOrList), ("is_error", Bool), MARK])
        }
        "thinking" => closed(&[("thinking", Text), ("signature", Text)], &[]),
        "redacted_thinking" => closed(&[("data", Text)], &[]),
        "tool_reference" => closed(&[("tool_name", Text)], &[MARK]),
        "server_tool_use" => BlockShape {
            required: &[("id", Text), ("name", Text), ("input", Object)],
            optional: &[],
            closed: false,
        },
        "container_upload" => closed(&[("file_id", Text)], &[MARK]),
        "compaction" | "fallback" | "mcp_tool_use" | "mcp_tool_listing" | "mid_conv_system"
        | "tool_addition" | "tool_removal" => OPAQUE,
        "web_search_tool_result"
        | "web_fetch_tool_result"
        | "code_execution_tool_result"
        | "bash_code_execution_tool_result"
        | "text_editor_code_execution_tool_result"
        | "tool_search_tool_result"
        | "advisor_tool_result"
        | "mcp_tool_result" => SERVER_RESULT,
        _ => return None,
    })
}

const MESSAGE_TAGS: &str = "'advisor_tool_result', 'bash_code_execution_tool_result', 'code_execution_tool_result', \
    'compaction', 'container_upload', 'document', 'fallback', 'image', 'mcp_tool_listing', 'mcp_tool_result', \
    'mcp_tool_use', 'mid_conv_system', 'redacted_thinking', 'search_result', 'server_tool_use', 'text', \
    'text_editor_code_execution_tool_result', 'thinking', 'tool_addition', 'tool_removal', 'tool_result', \
    'tool_search_tool_result', 'tool_use', 'web_fetch_tool_result', 'web_search_tool_result'";
const RESULT_TAGS: &str = "'document', 'image', 'search_result', 'text', 'tool_reference'";

fn check_block(judge: &Judge<'_>, part: &Part<'_>) -> Verdict {
    let Body::Block(block) = part.body else { return Ok(()) };
    let path = part.path();
    if part.section == Section::System {
        if part.kind() != "text" {
            let problem =
                if part.field("type").is_none() { "Field required" } else { "Input should be 'text'" };
            return judge.refuse(Rule::Shape, format!("{path}.type: {problem}"));
        }
        return check_block_members(judge, block, &path, "text");
    }
    let newest = judge.context.version == VERSION_2026_10;
    // Since that version documents belong to users and to tool results.
    let misplaced = newest && part.role == "assistant" && part.kind() == "document";
    if misplaced || part.kind() == "tool_reference" {
        return refuse_tag(judge, &path, part.kind(), MESSAGE_TAGS);
    }
    check_tagged(judge, block, &path, MESSAGE_TAGS)?;
    let cites =
        part.field("citations").and_then(Value::as_array).is_some_and(|citations| !citations.is_empty());
    if newest && part.role == "user" && part.kind() == "text" && cites {
        judge.refuse(Rule::Shape, format!("{path}.text.citations: Extra inputs are not permitted"))?;
    }
    if part.kind() == "tool_use"
        && let Some(id) = part.str_field("id")
        && (id.is_empty() || !id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'))
    {
        judge.refuse(
            Rule::Shape,
            format!("{path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"),
        )?;
    }
    for (i, inner) in part.nested().iter().enumerate() {
        let path = format!("{path}.tool_result.content.{i}");
        match inner.get("type").and_then(Value::as_str) {
            Some("text" | "image" | "document" | "search_result" | "tool_reference") | None => {
                check_tagged(judge, inner, &path, RESULT_TAGS)?;
            }
            Some(other) => refuse_tag(judge, &path, other, RESULT_TAGS)?,
        }
    }
    Ok(())
}

fn check_tagged(judge: &Judge<'_>, block: &Value, path: &str, tags: &str) -> Verdict {
    if let Some(complaint) = Kind::Object.complaint(block) {
        return judge.refuse(Rule::Shape, format!("{path}: {complaint}"));
    }
    match block.get("type").and_then(Value::as_str) {
        None => judge.refuse(Rule::Shape, format!("{path}.type: Field required")),
        Some(kind) if judge.issued.allows_block_type(kind) => Ok(()),
        Some(kind) if shape_of(kind).is_none() => refuse_tag(judge, path, kind, tags),
        Some(kind) => check_block_members(judge, block, path, kind),
    }
}

fn refuse_tag(judge: &Judge<'_>, path: &str, kind: &str, tags: &str) -> Verdict {
    judge.refuse(
        Rule::Shape,
        format!(
            "{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}"
        ),
    )
}

fn check_block_members(judge: &Judge<'_>, block: &Value, path: &str, kind: &str) -> Verdict {
    let (Some(shape), Some(members)) = (shape_of(kind), block.as_object()) else { return Ok(()) };
    let path = format!("{path}.{kind}");
    for (name, field) in shape.required {
        match members.get(*name) {
            None => judge.refuse(Rule::Shape, format!("{path}.{name}: Field required"))?,
            Some(value) => {
                if let Some(complaint) = field.complaint(value) {
                    judge.refuse(Rule::Shape, format!("{path}.{name}: {complaint}"))?;
                }
            }
        }
    }
    for (name, value) in members.iter().filter(|(name, _)| *name != "type") {
        if shape.required.iter().any(|(known, _)| known == name) {
            continue;
        }
        match shape.optional.iter().find(|(known, _)| known == name) {
            None if shape.closed => {
                // A mark on a thinking block is a question of marks, everything else one of shape.
                let rule = if name == "cache_control" { Rule::CacheMarks } else { Rule::Shape };
                judge.refuse(rule, format!("{path}.{name}: Extra inputs are not permitted"))?;
            }
            Some((_, field)) if !value.is_null() => {
                if let Some(complaint) = field.complaint(value) {
                    judge.refuse(Rule::Shape, format!("{path}.{name}: {complaint}"))?;
                }
            }
            _ => {}
        }
    }
    if matches!(kind, "image" | "document") {
        check_source(judge, &block["source"], &format!("{path}.source"), kind)?;
    }
    Ok(())
}

fn check_source(judge: &Judge<'_>, source: &Value, path: &str, holder: &str) -> Verdict {
    let (tags, known): (&str, &[&str]) = if holder == "image" {
        ("'base64', 'file', 'url'", &["base64", "file", "url"])
    } else {
        ("'base64', 'content', 'file', 'text', 'url'", &["base64", "content", "file", "text", "url"])
    };
    let kind = match source.get("type").and_then(Value::as_str) {
        None => return judge.refuse(Rule::Shape, format!("{path}.type: Field required")),
        Some(kind) if !known.contains(&kind) => return refuse_tag(judge, path, kind, tags),
        Some(kind) => kind,
    };
    let required: &[&str] = match kind {
        "base64" | "text" => &["media_type", "data"],
        "url" => &["url"],
        "file" => &["file_id"],
        _ => &["content"],
    };
    for name in required {
        if source.get(*name).is_none() {
            judge.refuse(Rule::Shape, format!("{path}.{kind}.{name}: Field required"))?;
        }
    }
    Ok(())
}
