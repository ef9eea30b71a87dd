//! How much: bytes of the body, tokens of the answer, tokens of the input.

use super::{Endpoint, Judge, Refusal, Rule, Verdict, bad_request};
use crate::tokens;
use serde_json::Value;

/// The largest body the API reads.
pub(super) const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;

pub(super) fn body(bytes: usize) -> Verdict {
    if bytes <= BODY_BYTES_MAX {
        return Ok(());
    }
    let too_large = bad_request(Rule::BodySize, "Request exceeds the maximum size");
    Err(Refusal { status: 413, kind: "request_too_large", ..too_large })
}

pub(super) fn check_max_tokens(judge: &Judge<'_>) -> Verdict {
    let Some(max_tokens) = judge.get("max_tokens").and_then(Value::as_i64) else { return Ok(()) };
    if max_tokens < 0 {
        return judge.refuse(Rule::MaxTokens, "max_tokens: must be greater than or equal to 0");
    }
    let most = judge.facts.output_tokens_max;
    if max_tokens.unsigned_abs() > most {
        let model = judge.str("model").unwrap_or_default();
        judge.refuse(
            Rule::MaxTokens,
            format!("max_tokens: {max_tokens} > {most}, which is the maximum allowed number of output tokens for {model}"),
        )?;
    }
    if max_tokens == 0 {
        check_cache_only(judge)?;
    }
    Ok(())
}

/// `max_tokens: 0` asks only for the cache to be written; nothing that shapes an answer may come with it.
fn check_cache_only(judge: &Judge<'_>) -> Verdict {
    let kind = |field: &str| judge.get(field).and_then(|value| value.get("type")).and_then(Value::as_str);
    let conflict = if judge.get("stream") == Some(&Value::Bool(true)) {
        Some("stream")
    } else if kind("thinking") == Some("enabled") {
        Some("thinking")
    } else if judge
        .get("output_config")
        .is_some_and(|config| config.get("format").is_some_and(|f| !f.is_null()))
    {
        Some("output_config.format")
    } else if matches!(kind("tool_choice"), Some("any" | "tool")) {
        Some("tool_choice")
    } else {
        None
    };
    match conflict {
        Some(field) => {
            judge.refuse(Rule::MaxTokens, format!("max_tokens: 0 cannot be combined with `{field}`"))
        }
        None => Ok(()),
    }
}

pub(super) fn check_window(judge: &Judge<'_>) -> Verdict {
    let input = tokens::count(judge.request);
    let window = judge.facts.window_tokens;
    if input > window {
        judge
            .refuse(Rule::ContextWindow, format!("prompt is too long: {input} tokens > {window} maximum"))?;
    }
    let output = judge.get("max_tokens").and_then(Value::as_u64).unwrap_or_default();
    let refuses = judge.facts.refuses_overflow && !judge.has_beta("model-context-window-exceeded-2025-08-26");
    if refuses && judge.context.endpoint == Endpoint::Messages && input + output > window {
        judge.refuse(
            Rule::ContextWindow,
            format!(
                "input length and `max_tokens` exceed context limit: {input} + {output} > {window}, decrease input \
                 length or `max_tokens` and try again"
            ),
        )?;
    }
    Ok(())
}
