//! Cache marks: how many, in which order, and on what.

use super::{Judge, Rule, Verdict};
use crate::prompt::{self, Body, Ttl};
use serde_json::Value;

const MARKS_MAX: usize = 4;

pub(super) fn check(judge: &Judge<'_>) -> Verdict {
    for part in &judge.parts {
        if let Body::Block(block) = part.body {
            check_mark(judge, block, &part.path())?;
            for (i, inner) in part.nested().iter().enumerate() {
                check_mark(judge, inner, &format!("{}.tool_result.content.{i}", part.path()))?;
            }
            if block.get("defer_loading") == Some(&Value::Bool(true)) && is_marked(block) {
                let name = part.str_field("name").unwrap_or_default();
                let message = format!(
                    "Tool '{name}' cannot have both defer_loading=true and cache_control set. Tools with defer_loading \
                     cannot use prompt caching."
                );
                judge.refuse(Rule::CacheMarks, message)?;
            }
        }
    }
    check_mark(judge, judge.request, "")?;

    check_automatic(judge)?;

    let marks = prompt::marks(judge.request, &judge.parts);
    if marks.len() > MARKS_MAX {
        let found = marks.len();
        judge.refuse(
            Rule::CacheMarks,
            format!("A maximum of {MARKS_MAX} blocks with cache_control may be provided. Found {found}."),
        )?;
    }
    let late = marks.windows(2).find(|pair| pair[0].ttl == Ttl::FiveMinutes && pair[1].ttl == Ttl::OneHour);
    if let Some([_, mark]) = late {
        let path = &mark.path;
        judge.refuse(
            Rule::CacheMarks,
            format!(
                "{path}.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note \
                 that blocks are processed in the following order: `tools`, `system`, `messages`."
            ),
        )?;
    }
    Ok(())
}

/// A mark for the whole request falls on its last block. One that stands there already must agree with it.
fn check_automatic(judge: &Judge<'_>) -> Verdict {
    let Some(automatic) = judge.get("cache_control").filter(|mark| mark.is_object()) else { return Ok(()) };
    let Some(last) = judge.parts.iter().rfind(|part| prompt::is_cacheable(part)) else { return Ok(()) };
    let own = last.field("cache_control").filter(|mark| mark.is_object());
    if own.is_some_and(|own| Ttl::of(own) != Ttl::of(automatic)) {
        let path = last.path();
        judge.refuse(
            Rule::CacheMarks,
            format!(
                "cache_control.ttl: must equal the ttl of {path}.cache_control, the last block of the request"
            ),
        )?;
    }
    Ok(())
}

fn is_marked(block: &Value) -> bool {
    block.get("cache_control").is_some_and(|mark| !mark.is_null())
}

/// The inside of one `cache_control`.
fn check_mark(judge: &Judge<'_>, holder: &Value, path: &str) -> Verdict {
    if !is_marked(holder) {
        return Ok(());
    }
    let mark = &holder["cache_control"];
    let at = if path.is_empty() { "cache_control".to_owned() } else { format!("{path}.cache_control") };
    let Some(members) = mark.as_object() else {
        return judge.refuse(Rule::CacheMarks, format!("{at}: Input should be an object"));
    };
    match mark.get("type").and_then(Value::as_str) {
        Some("ephemeral") => {}
        Some(other) => {
            let message = format!(
                "{at}: Input tag '{other}' found using 'type' does not match any of the expected tags: 'ephemeral'"
            );
            judge.refuse(Rule::CacheMarks, message)?;
        }
        None => judge.refuse(Rule::CacheMarks, format!("{at}.type: Field required"))?,
    }
    if let Some(ttl) = mark.get("ttl").filter(|ttl| !ttl.is_null())
        && !matches!(ttl.as_str(), Some("5m" | "1h"))
    {
        judge.refuse(Rule::CacheMarks, format!("{at}.ephemeral.ttl: Input should be '5m' or '1h'"))?;
    }
    let scoped = judge.has_beta("prompt-caching-scope-2026-01-05");
    for name in members.keys() {
        let known = matches!(name.as_str(), "type" | "ttl") || (scoped && name == "scope");
        if !known {
            judge
                .refuse(Rule::CacheMarks, format!("{at}.ephemeral.{name}: Extra inputs are not permitted"))?;
        }
    }
    Ok(())
}
