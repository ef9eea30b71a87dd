//! Tool definitions and tool choice.

use super::shape::Kind;
use super::thinking::is_thinking;
use super::{Judge, Rule, Verdict};
use serde_json::{Map, Value};
use std::collections::HashSet;

const NAME_BYTES_MAX: usize = 128;
const PROPERTY_BYTES_MAX: usize = 64;

pub(super) fn check(judge: &Judge<'_>) -> Verdict {
    let mut names = HashSet::new();
    for (i, tool) in judge.list("tools").iter().enumerate() {
        let path = format!("tools.{i}");
        if let Some(complaint) = Kind::Object.complaint(tool) {
            judge.refuse(Rule::Shape, format!("{path}: {complaint}"))?;
            continue;
        }
        match tool.get("type").and_then(Value::as_str) {
            None | Some("custom") => check_custom(judge, tool, &format!("{path}.custom"))?,
            Some(kind) if is_server_tool(kind) => {}
            Some(kind) => judge.refuse(
                Rule::Shape,
                format!("{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {TAGS}"),
            )?,
        }
        if let Some(name) = tool.get("name").and_then(Value::as_str)
            && !names.insert(name)
        {
            judge.refuse(Rule::ToolNames, "tools: Tool names must be unique.")?;
        }
    }
    check_deferred(judge)?;
    check_defined(judge)?;
    check_references(judge, &names)?;
    check_choice(judge, &names)
}

const TAGS: &str = "'bash_20250124', 'code_execution_20250825', 'computer_20251124', 'custom', 'memory_20250818', \
    'text_editor_20250728', 'tool_search_tool_bm25_20251119', 'tool_search_tool_regex_20251119', \
    'web_fetch_20250910', 'web_search_20250305'";

/// Server tools and client tools with a schema of the API's own come as `name_date`; dates come and go.
fn is_server_tool(kind: &str) -> bool {
    const FAMILIES: [&str; 11] = [
        "advisor",
        "bash",
        "code_execution",
        "computer",
        "mcp_toolset",
        "memory",
        "text_editor",
        "tool_search_tool_bm25",
        "tool_search_tool_regex",
        "web_fetch",
        "web_search",
    ];
    FAMILIES.iter().any(|family| {
        kind.strip_prefix(family).is_some_and(|date| {
            date.is_empty() || date.strip_prefix('_').is_some_and(|d| d.bytes().all(|b| b.is_ascii_digit()))
        })
    })
}

fn check_custom(judge: &Judge<'_>, tool: &Value, path: &str) -> Verdict {
    const OPTIONAL: [(&str, Kind); 8] = [
        ("type", Kind::Text),
        ("description", Kind::Text),
        ("cache_control", Kind::Any),
        ("strict", Kind::Bool),
        ("eager_input_streaming", Kind::Bool),
        ("defer_loading", Kind::Bool),
        ("input_examples", Kind::List),
        ("allowed_callers", Kind::List),
    ];
    match tool.get("name") {
        None => judge.refuse(Rule::Shape, format!("{path}.name: Field required"))?,
        Some(name) => check_name(judge, name, path)?,
    }
    match tool.get("input_schema") {
        None => judge.refuse(Rule::Shape, format!("{path}.input_schema: Field required"))?,
        Some(schema) => check_schema(judge, schema, &format!("{path}.input_schema"))?,
    }
    if tool.get("strict") == Some(&Value::Bool(true))
        && tool.get("input_schema").is_some_and(|schema| !has_closed_objects(schema))
    {
        judge.refuse(Rule::ToolSchemas, format!("{path}: {OPEN_OBJECT}"))?;
    }
    for (name, value) in tool.as_object().into_iter().flatten() {
        if matches!(name.as_str(), "name" | "input_schema") {
            continue;
        }
        match OPTIONAL.iter().find(|(known, _)| known == name) {
            None => judge.refuse(Rule::Shape, format!("{path}.{name}: Extra inputs are not permitted"))?,
            Some((_, kind)) if !value.is_null() => {
                if let Some(complaint) = kind.complaint(value) {
                    judge.refuse(Rule::Shape, format!("{path}.{name}: {complaint}"))?;
                }
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn check_name(judge: &Judge<'_>, name: &Value, path: &str) -> Verdict {
    let Some(name) = name.as_str() else {
        return judge.refuse(Rule::Shape, format!("{path}.name: Input should be a valid string"));
    };
    let complaint = if name.is_empty() {
        "String should have at least 1 character".to_owned()
    } else if name.len() > NAME_BYTES_MAX {
        format!("String should have at most {NAME_BYTES_MAX} characters")
    } else if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
        format!("String should match pattern '^[a-zA-Z0-9_-]{{1,{NAME_BYTES_MAX}}}$'")
    } else {
        return Ok(());
    };
    judge.refuse(Rule::ToolNames, format!("{path}.name: {complaint}"))
}

fn check_schema(judge: &Judge<'_>, schema: &Value, path: &str) -> Verdict {
    let refuse = |at: &str, why: &str| judge.refuse(Rule::ToolSchemas, format!("{path}{at}: {why}"));
    let Some(members) = schema.as_object() else {
        return refuse("", "Input should be an object");
    };
    match members.get("type") {
        None => refuse(".type", "Field required")?,
        Some(kind) if kind.as_str() != Some("object") => refuse(".type", "Input should be 'object'")?,
        Some(_) => {}
    }
    if ["oneOf", "allOf", "anyOf"].iter().any(|union| members.contains_key(*union)) {
        refuse("", "input_schema does not support oneOf, allOf, or anyOf at the top level")?;
    }
    if members
        .get("properties")
        .and_then(Value::as_object)
        .is_some_and(|all| !all.keys().all(|key| is_key(key)))
    {
        let pattern =
            format!("Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,{PROPERTY_BYTES_MAX}}}$'");
        refuse(".properties", &pattern)?;
    }
    if !is_valid(schema) {
        refuse(
            "",
            "JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12). \
             Learn more about tool use at https://docs.claude.com/en/docs/tool-use.",
        )?;
    }
    Ok(())
}

/// What the API says about a schema it must follow to the letter and that leaves an object open.
pub(super) const OPEN_OBJECT: &str =
    "For 'object' type, 'additionalProperties' must be explicitly set to false";

/// Whether every object in a schema says that it has no other members. Depth is bounded by the JSON parser.
pub(super) fn has_closed_objects(schema: &Value) -> bool {
    let Value::Object(members) = schema else { return true };
    let is_object = members.get("type").and_then(Value::as_str) == Some("object");
    let closed = members.get("additionalProperties") == Some(&Value::Bool(false));
    let inside = |(keyword, value): (&String, &Value)| match (keyword.as_str(), value) {
        ("properties" | "$defs" | "definitions", Value::Object(schemas)) => {
            schemas.values().all(has_closed_objects)
        }
        ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
            schemas.iter().all(has_closed_objects)
        }
        ("items", schema) => has_closed_objects(schema),
        _ => true,
    };
    (!is_object || closed) && members.iter().all(inside)
}

fn is_key(key: &str) -> bool {
    (1..=PROPERTY_BYTES_MAX).contains(&key.len())
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

/// The parts of the 2020-12 meta-schema that broken generators break. Depth is bounded by the JSON parser.
fn is_valid(schema: &Value) -> bool {
    match schema {
        Value::Bool(_) => true,
        Value::Object(members) => members.iter().all(|(keyword, value)| is_valid_keyword(keyword, value)),
        _ => false,
    }
}

fn is_valid_keyword(keyword: &str, value: &Value) -> bool {
    let schemas = |list: &Vec<Value>| !list.is_empty() && list.iter().all(is_valid);
    let named = |all: &Map<String, Value>| all.values().all(is_valid);
    match keyword {
        "type" => match value {
            Value::String(_) => is_type(value),
            Value::Array(types) => !types.is_empty() && is_set(types) && types.iter().all(is_type),
            _ => false,
        },
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
            value.as_object().is_some_and(named)
        }
        // Lists under `items` went away with draft 2020-12.
        "items"
        | "additionalProperties"
        | "propertyNames"
        | "contains"
        | "not"
        | "if"
        | "then"
        | "else"
        | "unevaluatedItems"
        | "unevaluatedProperties" => is_valid(value),
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => value.as_array().is_some_and(schemas),
        "required" => {
            value.as_array().is_some_and(|names| is_set(names) && names.iter().all(Value::is_string))
        }
        "enum" | "examples" => value.is_array(),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "multipleOf" => value.as_f64().is_some_and(|number| number > 0.0),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            value.as_f64().is_some_and(|number| number >= 0.0 && number.fract() == 0.0)
        }
        "pattern" | "format" | "title" | "description" | "$ref" | "$id" | "$schema" | "$comment"
        | "$anchor" => value.is_string(),
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => value.is_boolean(),
        _ => true,
    }
}

fn is_type(value: &Value) -> bool {
    matches!(value.as_str(), Some("array" | "boolean" | "integer" | "null" | "number" | "object" | "string"))
}

fn is_set(values: &[Value]) -> bool {
    let mut seen = HashSet::new();
    values.iter().filter_map(Value::as_str).all(|value| seen.insert(value))
}

/// Some tool must be there from the start, or the model could not ask for the others.
fn check_deferred(judge: &Judge<'_>) -> Verdict {
    let tools = judge.list("tools");
    let is_deferred = |tool: &Value| tool.get("defer_loading") == Some(&Value::Bool(true));
    if !tools.is_empty() && tools.iter().all(is_deferred) {
        judge.refuse(
            Rule::Shape,
            "At least one tool must have defer_loading=false. All tools cannot be deferred.",
        )?;
    }
    Ok(())
}

/// References to tools lead to tools, and stand alone in their result.
fn check_references(judge: &Judge<'_>, names: &HashSet<&str>) -> Verdict {
    for part in &judge.parts {
        let is_reference =
            |block: &&Value| block.get("type").and_then(Value::as_str) == Some("tool_reference");
        let references = part.nested().iter().filter(is_reference);
        if references.clone().next().is_some() && references.clone().count() < part.nested().len() {
            judge.refuse(
                Rule::Shape,
                "Tool definitions/code execution functions cannot be mixed with other content",
            )?;
        }
        for reference in references {
            let name = reference.get("tool_name").and_then(Value::as_str).unwrap_or_default();
            if !names.contains(name) {
                judge.refuse(
                    Rule::UndefinedTools,
                    format!("Tool reference '{name}' not found in available tools"),
                )?;
            }
        }
    }
    Ok(())
}

/// A history with tool calls makes sense only with tools.
fn check_defined(judge: &Judge<'_>) -> Verdict {
    let used = judge
        .parts
        .iter()
        .any(|part| matches!(part.kind(), "tool_use" | "tool_result") && !part.role.is_empty());
    if used && judge.list("tools").is_empty() && judge.list("mcp_servers").is_empty() {
        judge.refuse(
            Rule::UndefinedTools,
            "Requests which include `tool_use` or `tool_result` blocks must define tools.",
        )?;
    }
    Ok(())
}

fn check_choice(judge: &Judge<'_>, names: &HashSet<&str>) -> Verdict {
    let Some(choice) = judge.get("tool_choice") else { return Ok(()) };
    let kind = choice.get("type").and_then(Value::as_str);
    let known: &[&str] = match kind {
        Some("auto" | "any") => &["type", "disable_parallel_tool_use"],
        Some("tool") => &["type", "name", "disable_parallel_tool_use"],
        Some("none") => &["type"],
        Some(other) => {
            return judge.refuse(
                Rule::ToolChoice,
                format!(
                    "tool_choice: Input tag '{other}' found using 'type' does not match any of the expected tags: \
                     'auto', 'any', 'tool', 'none'"
                ),
            );
        }
        None => return judge.refuse(Rule::ToolChoice, "tool_choice.type: Field required"),
    };
    let kind = kind.unwrap_or_default();
    for name in
        choice.as_object().into_iter().flat_map(Map::keys).filter(|name| !known.contains(&name.as_str()))
    {
        judge
            .refuse(Rule::ToolChoice, format!("tool_choice.{kind}.{name}: Extra inputs are not permitted"))?;
    }
    if !matches!(kind, "any" | "tool") {
        return Ok(());
    }
    if kind == "any" && names.is_empty() {
        judge.refuse(Rule::ToolChoice, "tool_choice.any may only be specified while providing tools")?;
    }
    if kind == "tool" {
        match choice.get("name").and_then(Value::as_str) {
            None => judge.refuse(Rule::ToolChoice, "tool_choice.tool.name: Field required")?,
            Some(name) if !names.contains(name) => {
                judge.refuse(Rule::ToolChoice, format!("Tool '{name}' not found in provided tools"))?;
            }
            Some(_) => {}
        }
    }
    if !judge.facts.forced_tool_choice {
        judge.refuse(
            Rule::ToolChoice,
            "tool_choice: type \"tool\" and \"any\" are not supported for this model.",
        )?;
    }
    if is_thinking(judge) {
        judge.refuse(Rule::ToolChoice, "Thinking may not be enabled when tool_choice forces tool use.")?;
    }
    Ok(())
}
