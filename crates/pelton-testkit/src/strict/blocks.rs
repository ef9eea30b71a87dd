//! Blocks: each has a known type, the members of that type, and no others.

use super::header::VERSION_2026_10;
use super::shape::Kind;
use super::{Judge, Rule, Verdict};
use crate::prompt::{Body, Part, Section};
use serde_json::Value;

pub(super) fn check(judge: &Judge<'_>) -> Verdict {
    judge
        .parts
        .iter()
        .filter(|part| part.section != Section::Tools)
        .try_for_each(|part| check_block(judge, part))
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
        if let Some(complaint) = Kind::Shaped.complaint(block) {
            return judge.refuse(Rule::Shape, format!("{path}: {complaint}"));
        }
        if part.kind() != "text" {
            let problem =
                if part.field("type").is_none() { "Field required" } else { "Input should be 'text'" };
            return judge.refuse(Rule::Shape, format!("{path}.type: {problem}"));
        }
        return check_block_members(judge, block, &path, "text");
    }
    if part.kind() == "tool_reference" {
        return refuse_tag(judge, &path, part.kind(), MESSAGE_TAGS);
    }
    check_tagged(judge, block, &path, MESSAGE_TAGS)?;
    let cites =
        part.field("citations").and_then(Value::as_array).is_some_and(|citations| !citations.is_empty());
    let newest = judge.context.version == VERSION_2026_10;
    if newest && part.role == "user" && part.kind() == "text" && cites {
        judge.refuse(Rule::Shape, format!("{path}.text.citations: Extra inputs are not permitted"))?;
    }
    check_call_id(judge, part)?;
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

/// The ids of calls have a form, which differs between the client's tools and the server's.
fn check_call_id(judge: &Judge<'_>, part: &Part<'_>) -> Verdict {
    let Some(id) = part.str_field("id") else { return Ok(()) };
    let is_word = |id: &str, more: &[u8]| {
        !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || more.contains(&b))
    };
    let (fits, pattern) = match part.kind() {
        "tool_use" => (is_word(id, b"-"), "^[a-zA-Z0-9_-]+$"),
        "server_tool_use" => {
            (id.strip_prefix("srvtoolu_").is_some_and(|rest| is_word(rest, b"")), "^srvtoolu_[a-zA-Z0-9_]+$")
        }
        _ => return Ok(()),
    };
    if fits {
        return Ok(());
    }
    let (path, kind) = (part.path(), part.kind());
    judge.refuse(Rule::Shape, format!("{path}.{kind}.id: String should match pattern '{pattern}'"))
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
