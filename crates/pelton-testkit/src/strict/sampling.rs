//! Sampling parameters: gone with the newest version of the API, gone with the newest models, and never with thinking.

use super::header::VERSION_2026_10;
use super::thinking::is_thinking;
use super::{Judge, Rule, Verdict};
use serde_json::Value;

pub(super) fn check(judge: &Judge<'_>) -> Verdict {
    for name in ["temperature", "top_p", "top_k"] {
        if judge.request.get(name).is_some() && judge.context.version == VERSION_2026_10 {
            judge.refuse(Rule::Sampling, format!("{name}: Extra inputs are not permitted"))?;
        }
    }
    let number = |name: &str| judge.get(name).and_then(Value::as_f64);
    for name in ["temperature", "top_p"] {
        if number(name).is_some_and(|value| !(0.0..=1.0).contains(&value)) {
            judge.refuse(Rule::Sampling, format!("{name}: range: 0..1"))?;
        }
    }
    if let Some(temperature) = number("temperature") {
        if temperature != DEFAULT && is_thinking(judge) {
            judge.refuse(
                Rule::Sampling,
                "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode. Please consult our \
                 documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking",
            )?;
        }
        if number("top_p").is_some() && judge.facts.sampling {
            judge.refuse(
                Rule::Sampling,
                "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
            )?;
        }
    }
    if number("top_p").is_some_and(|top_p| top_p < TOP_P_MIN_WITH_THINKING) && is_thinking(judge) {
        judge.refuse(
            Rule::Sampling,
            "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled or in adaptive mode.",
        )?;
    }
    if judge.get("top_k").is_some() && is_thinking(judge) {
        judge
            .refuse(Rule::Sampling, "`top_k` must be unset when thinking is enabled or in adaptive mode.")?;
    }
    let changed = |name: &str| number(name).is_some_and(|value| value != DEFAULT);
    for (name, set) in [
        ("temperature", changed("temperature")),
        ("top_p", changed("top_p")),
        ("top_k", judge.get("top_k").is_some()),
    ] {
        if set && !judge.facts.sampling {
            judge.refuse(Rule::Sampling, format!("`{name}` is deprecated for this model."))?;
        }
    }
    Ok(())
}

const TOP_P_MIN_WITH_THINKING: f64 = 0.95;
/// The value of `temperature` and `top_p` that changes nothing.
const DEFAULT: f64 = 1.0;
