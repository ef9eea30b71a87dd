//! The conversation as a sequence of turns: who speaks when, that something is said, and that every tool call is
//! answered.
//!
//! Neighbouring messages of one role are one turn, as the API merges them; paths still name the client's own messages.

use super::header::VERSION_2026_10;
use super::thinking::is_thinking;
use super::{Judge, Rule, Verdict};
use crate::prompt::{Body, Part, Section};
use serde_json::Value;
use std::collections::HashSet;

pub(super) fn check(judge: &Judge<'_>) -> Verdict {
    check_roles(judge)?;
    check_said(judge)?;
    check_system_turns(judge)?;
    check_text(judge)?;
    let turns = turns(&judge.parts);
    check_pairs(judge, &turns)?;
    check_server_tools(judge, &turns)?;
    check_end(judge, &turns)
}

/// Neighbouring parts of one role.
pub(super) struct Turn<'p, 'a> {
    pub(super) role: &'a str,
    pub(super) parts: &'p [Part<'a>],
}

/// The turns of the conversation without system messages, which stand beside it.
pub(super) fn turns<'p, 'a>(parts: &'p [Part<'a>]) -> Vec<Turn<'p, 'a>> {
    let start = parts.partition_point(|part| part.section != Section::Messages);
    parts[start..]
        .chunk_by(|a, b| a.role == b.role)
        .map(|parts| Turn { role: parts[0].role, parts })
        .filter(|turn| turn.role != "system")
        .collect()
}

fn role(message: &Value) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}

fn check_roles(judge: &Judge<'_>) -> Verdict {
    let messages = judge.list("messages");
    for message in messages {
        let Some(said) = message.get("role").and_then(Value::as_str) else { continue };
        if matches!(said, "user" | "assistant" | "system") {
            continue;
        }
        // Other APIs have such a role, so this one explains itself.
        let advice = if said == "tool" { TOOL_ROLE_ADVICE } else { "" };
        judge.refuse(
            Rule::Roles,
            format!(
                "messages: Unexpected role \"{said}\". Allowed roles are \"user\" or \"assistant\"{advice}"
            ),
        )?;
    }
    // A message that begins with a server-made summary stands for the turns it replaced.
    let compacted = judge
        .parts
        .iter()
        .any(|part| part.section == Section::Messages && part.index == 0 && part.kind() == "compaction");
    if messages.first().is_some_and(|first| role(first) == "assistant") && !compacted {
        judge.refuse(Rule::Roles, "messages: first message must use the \"user\" role")?;
    }
    judge
        .parts
        .iter()
        .filter(|part| part.section == Section::Messages)
        .try_for_each(|part| check_home(judge, part))
}

const TOOL_ROLE_ADVICE: &str = ". For instructions on how to use tools, see \
    https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview.";

/// Blocks that only one side may say.
fn check_home(judge: &Judge<'_>, part: &Part<'_>) -> Verdict {
    let (kind, index) = (part.kind(), part.index);
    // Documents of the assistant are accepted up to the version that drops them.
    let newest = judge.context.version == VERSION_2026_10;
    let complaint = match (part.role, kind) {
        ("assistant", "tool_result") => format!(": `{kind}` blocks can only be in `user` messages"),
        ("user", "tool_use" | "server_tool_use") => {
            format!(": `{kind}` blocks can only be in `assistant` messages")
        }
        ("user", "thinking" | "redacted_thinking") => {
            ".content: thinking blocks may only be in `assistant` messages".to_owned()
        }
        ("assistant", "image" | "container_upload") => {
            format!(".content: '{kind}' blocks are not permitted within assistant turns")
        }
        ("assistant", "document") if newest => {
            format!(".content: '{kind}' blocks are not permitted within assistant turns")
        }
        _ => return Ok(()),
    };
    judge.refuse(Rule::Roles, format!("messages.{index}{complaint}"))
}

/// System messages inside the conversation: after a user (or a server tool), before an assistant or at the end.
fn check_system_turns(judge: &Judge<'_>) -> Verdict {
    const ANYWHERE: &str =
        "the directive-only form (content: [] with output_config) is accepted at any position";
    let messages = judge.list("messages");
    if judge.facts.system_role {
        for part in judge.parts.iter().filter(|part| part.role == "system") {
            if !matches!(part.kind(), "text" | "tool_addition" | "tool_removal") {
                let index = part.index;
                judge.refuse(
                    Rule::Roles,
                    format!("messages.{index}: role 'system' supports text, tool_addition, and tool_removal blocks only"),
                )?;
            }
        }
    }
    let mut at = 0;
    for group in messages.chunk_by(|a, b| role(a) == role(b)) {
        let (first, last) = (at, at + group.len() - 1);
        at += group.len();
        if role(&group[0]) != "system" {
            continue;
        }
        if !judge.facts.system_role {
            judge.refuse(Rule::Roles, "role 'system' is not supported on this model")?;
            continue;
        }
        if group.iter().all(is_directive) {
            continue;
        }
        if first == 0 {
            judge.refuse(
                Rule::Roles,
                format!("messages.0: use the top-level 'system' parameter for the initial system prompt; {ANYWHERE}"),
            )?;
            continue;
        }
        let before = &messages[first - 1];
        if role(before) == "assistant" && !ends_in_server_tool(before) {
            judge.refuse(
                Rule::Roles,
                format!(
                    "messages.{first}: role 'system' must follow a 'user' message or an 'assistant' message ending in a \
                     server tool result; {ANYWHERE}"
                ),
            )?;
        }
        if messages.get(at).is_some_and(|after| role(after) == "user") {
            judge.refuse(
                Rule::Roles,
                format!("messages.{last}: role 'system' must precede an 'assistant' message or end the array; {ANYWHERE}"),
            )?;
        }
    }
    Ok(())
}

fn is_directive(message: &Value) -> bool {
    is_empty(message) && message.get("output_config").is_some()
}

fn ends_in_server_tool(message: &Value) -> bool {
    let last = message.get("content").and_then(Value::as_array).and_then(|blocks| blocks.last());
    last.and_then(|block| block.get("type")).and_then(Value::as_str).is_some_and(is_server_result)
}

fn is_server_result(kind: &str) -> bool {
    kind != "tool_result" && kind.ends_with("_tool_result")
}

fn is_empty(message: &Value) -> bool {
    match message.get("content") {
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(blocks)) => blocks.is_empty(),
        _ => false,
    }
}

/// Neighbours of one role are one turn, and a turn says something. Only the assistant's last one may be empty.
fn check_said(judge: &Judge<'_>) -> Verdict {
    let messages = judge.list("messages");
    let mut at = 0;
    for turn in messages.chunk_by(|a, b| role(a) == role(b)) {
        let first = at;
        at += turn.len();
        let complaint = match role(&turn[0]) {
            "system" => {
                let empty = turn.iter().position(|message| is_empty(message) && !is_directive(message));
                empty.map(|i| (first + i, "system content must contain at least one block"))
            }
            _ if !turn.iter().all(is_empty) => None,
            "user" => Some((first, "user messages must have non-empty content")),
            "assistant" if at < messages.len() => Some((
                first,
                "all messages must have non-empty content except for the optional final assistant message",
            )),
            _ => None,
        };
        if let Some((index, complaint)) = complaint {
            judge.refuse(Rule::EmptyText, format!("messages.{index}: {complaint}"))?;
        }
    }
    Ok(())
}

fn check_text(judge: &Judge<'_>) -> Verdict {
    for part in judge.parts.iter().filter(|part| part.section != Section::Tools) {
        let section = if part.section == Section::System { "system" } else { "messages" };
        let said = match part.body {
            Body::Text("") => None, // an empty message, judged with its turn
            Body::Text(text) => Some(text),
            Body::Block(block) => {
                check_marked_text(judge, block, part, None)?;
                (part.kind() == "text").then(|| part.str_field("text").unwrap_or_default())
            }
        };
        match said {
            Some(text) if part.role == "system" && text.trim().is_empty() => judge.refuse(
                Rule::EmptyText,
                format!("messages.{}: system text blocks must contain non-whitespace text", part.index),
            )?,
            Some(text) => check_one_text(judge, text, section)?,
            None => {}
        }
        for (i, inner) in part.nested().iter().enumerate() {
            check_marked_text(judge, inner, part, Some(i))?;
            if inner.get("type").and_then(Value::as_str) == Some("text") {
                check_one_text(
                    judge,
                    inner.get("text").and_then(Value::as_str).unwrap_or_default(),
                    section,
                )?;
            }
        }
    }
    Ok(())
}

fn check_one_text(judge: &Judge<'_>, text: &str, section: &str) -> Verdict {
    if text.is_empty() {
        judge.refuse(Rule::EmptyText, format!("{section}: text content blocks must be non-empty"))
    } else if text.trim().is_empty() {
        judge.refuse(
            Rule::EmptyText,
            format!("{section}: text content blocks must contain non-whitespace text"),
        )
    } else {
        Ok(())
    }
}

fn check_marked_text(judge: &Judge<'_>, block: &Value, part: &Part<'_>, nested: Option<usize>) -> Verdict {
    let is_text = block.get("type").and_then(Value::as_str) == Some("text");
    let blank = block.get("text").and_then(Value::as_str).is_some_and(|text| text.trim().is_empty());
    let marked = block.get("cache_control").is_some_and(|mark| !mark.is_null());
    if !(is_text && blank && marked) {
        return Ok(());
    }
    let path = match (part.section, nested) {
        (_, Some(i)) => format!("{}.tool_result.content.{i}.text", part.path()),
        (Section::Messages, None) => format!("{}.text", part.path()),
        _ => part.path(),
    };
    judge.refuse(Rule::EmptyText, format!("{path}: cache_control cannot be set for empty text blocks"))
}

fn check_pairs(judge: &Judge<'_>, turns: &[Turn<'_, '_>]) -> Verdict {
    let mut seen = HashSet::new();
    for (i, turn) in turns.iter().enumerate() {
        match turn.role {
            "assistant" => {
                for call in calls(turn) {
                    if !seen.insert(id(call)) {
                        judge.refuse(
                            Rule::ToolPairs,
                            format!("{}: `tool_use` ids must be unique", call.path()),
                        )?;
                    }
                }
                check_answered(judge, turn, turns.get(i + 1))?;
            }
            "user" => check_asked(judge, turn, i.checked_sub(1).and_then(|before| turns.get(before)))?,
            _ => {}
        }
    }
    Ok(())
}

/// Every call has its result at the start of the next turn.
fn check_answered(judge: &Judge<'_>, turn: &Turn<'_, '_>, next: Option<&Turn<'_, '_>>) -> Verdict {
    let answer = next.filter(|next| next.role == "user").map_or(&[][..], |next| next.parts);
    let leading = answer.iter().take_while(|part| part.kind() == "tool_result").count();
    let answered =
        |parts: &[Part<'_>], call: &Part<'_>| parts.iter().any(|part| result_id(part) == Some(id(call)));
    let missing: Vec<&Part<'_>> = calls(turn).filter(|call| !answered(&answer[..leading], call)).collect();
    let Some(first) = missing.first() else { return Ok(()) };
    // Results that are there but behind other blocks break another rule, in the same words.
    let late = missing.iter().all(|call| answered(answer, call));
    let rule = if late { Rule::ResultsFirst } else { Rule::ToolPairs };
    let ids: Vec<&str> = missing.iter().map(|call| id(call)).collect();
    let (index, ids) = (first.index, ids.join(", "));
    judge.refuse(
        rule,
        format!(
            "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. Each \
             `tool_use` block must have a corresponding `tool_result` block in the next message."
        ),
    )
}

/// Every result answers a call of the turn before, once.
fn check_asked(judge: &Judge<'_>, turn: &Turn<'_, '_>, before: Option<&Turn<'_, '_>>) -> Verdict {
    let asked: HashSet<&str> = before.into_iter().flat_map(calls).map(id).collect();
    let mut seen = HashSet::new();
    for part in turn.parts {
        let Some(id) = result_id(part) else { continue };
        let path = part.path();
        if !asked.contains(id) {
            judge.refuse(
                Rule::ToolPairs,
                format!(
                    "{path}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must \
                     have a corresponding `tool_use` block in the previous message."
                ),
            )?;
        }
        if !seen.insert(id) {
            judge.refuse(
                Rule::ToolPairs,
                format!("{path}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"),
            )?;
        }
    }
    Ok(())
}

fn calls<'p, 'a>(turn: &Turn<'p, 'a>) -> impl Iterator<Item = &'p Part<'a>> + use<'p, 'a> {
    let assistant = turn.role == "assistant";
    turn.parts.iter().filter(move |part| assistant && part.kind() == "tool_use")
}

fn id<'a>(call: &Part<'a>) -> &'a str {
    call.str_field("id").unwrap_or_default()
}

fn result_id<'a>(part: &Part<'a>) -> Option<&'a str> {
    if part.kind() == "tool_result" { part.str_field("tool_use_id") } else { None }
}

/// Server tools are called and answered inside one assistant turn; only the last turn may still wait.
fn check_server_tools(judge: &Judge<'_>, turns: &[Turn<'_, '_>]) -> Verdict {
    let last = turns.iter().rposition(|turn| turn.role == "assistant");
    for (i, turn) in turns.iter().enumerate() {
        let mut open: Vec<&Part<'_>> = Vec::new();
        for part in turn.parts {
            let kind = part.kind();
            let is_mcp = kind.starts_with("mcp_");
            if kind == "server_tool_use" {
                open.push(part);
            } else if is_server_result(kind) && !is_mcp {
                let wanted = part.str_field("tool_use_id").unwrap_or_default();
                let before = open.len();
                open.retain(|call| id(call) != wanted);
                if open.len() == before {
                    let path = part.path();
                    judge.refuse(
                        Rule::ToolPairs,
                        format!(
                            "{path}: unexpected `tool_use_id` found in `{kind}` blocks: {wanted}. Each `{kind}` block must \
                             have a corresponding `server_tool_use` block before it."
                        ),
                    )?;
                }
            }
        }
        if let Some(call) = open.first()
            && Some(i) != last
        {
            let (index, id) = (call.index, id(call));
            let name = call.str_field("name").unwrap_or_default();
            judge.refuse(
                Rule::ToolPairs,
                format!(
                    "messages.{index}: `{name}` tool use with id `{id}` was found without a corresponding \
                     `{name}_tool_result` block"
                ),
            )?;
        }
    }
    Ok(())
}

/// A conversation that ends with the assistant: a prefill, unless the server itself paused there.
fn check_end(judge: &Judge<'_>, turns: &[Turn<'_, '_>]) -> Verdict {
    let messages = judge.list("messages");
    if messages.last().is_none_or(|last| role(last) != "assistant") {
        return Ok(());
    }
    // An empty last turn says nothing that could be continued.
    if messages.iter().rev().take_while(|message| role(message) == "assistant").all(is_empty) {
        return Ok(());
    }
    let parts = turns.last().filter(|turn| turn.role == "assistant").map_or(&[][..], |turn| turn.parts);
    let paused =
        parts.iter().any(|part| matches!(part.kind(), "server_tool_use" | "mcp_tool_use" | "compaction"));
    if paused {
        return Ok(());
    }
    if !judge.facts.prefill {
        judge.refuse(
            Rule::Prefill,
            "This model does not support assistant message prefill. The conversation must end with a user message.",
        )?;
    }
    if let Some(thought) = parts.iter().find(|part| part.is_thinking())
        && !is_thinking(judge)
    {
        let (path, kind) = (thought.path(), thought.kind());
        judge.refuse(
            Rule::Prefill,
            format!(
                "{path}: When thinking is disabled, an `assistant` message in the final position cannot contain `{kind}`. \
                 To use thinking blocks, enable `thinking` in your request."
            ),
        )?;
    }
    let Some(last) = parts.last() else { return Ok(()) };
    if last.is_thinking() {
        let (index, kind) = (last.index, last.kind());
        judge.refuse(
            Rule::Prefill,
            format!("messages.{index}: The final block in an assistant message cannot be `{kind}`."),
        )?;
    }
    if last.kind() == "text" && last.str_field("text").is_some_and(|text| text.ends_with(char::is_whitespace))
    {
        judge
            .refuse(Rule::Prefill, "messages: final assistant content cannot end with trailing whitespace")?;
    }
    Ok(())
}
