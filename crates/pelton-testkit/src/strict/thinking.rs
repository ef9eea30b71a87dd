//! Thinking: whether the model thinks this way at all, and whether replayed thinking blocks are what they were.

use super::turns::{Turn, turns};
use super::{Judge, Rule, Verdict};
use crate::catalogue::Thinking;
use crate::issued::{self, NOBODY, model_tag, prefix_in};
use crate::prompt::{self, Part, Section};
use serde_json::Value;

const BUDGET_TOKENS_MIN: i64 = 1024;
const BINDING_BETA: &str = "thinking-binding-controls-2026-08-01";
const DOCS: &str = "https://docs.claude.com/en/docs/build-with-claude/extended-thinking";

/// Whether the request asks for thinking.
pub(super) fn is_thinking(judge: &Judge<'_>) -> bool {
    matches!(kind(judge), Some("adaptive" | "enabled" | "between_tools"))
}

fn kind<'a>(judge: &Judge<'a>) -> Option<&'a str> {
    judge.get("thinking")?.get("type")?.as_str()
}

fn effort<'a>(judge: &Judge<'a>) -> Option<&'a str> {
    judge.get("output_config")?.get("effort")?.as_str()
}

/// The `thinking` and `effort` settings against what the model accepts.
pub(super) fn check_settings(judge: &Judge<'_>) -> Verdict {
    check_effort(judge)?;
    let Some(thinking) = judge.get("thinking") else { return Ok(()) };
    let known: &[&str] = match kind(judge) {
        Some("enabled") => &["type", "budget_tokens", "display"],
        Some("adaptive" | "between_tools") => &["type", "display"],
        Some("disabled") => &["type"],
        Some(other) => {
            return judge.refuse(
                Rule::ThinkingConfig,
                format!(
                    "thinking: Input tag '{other}' found using 'type' does not match any of the expected tags: \
                     'adaptive', 'between_tools', 'disabled', 'enabled'"
                ),
            );
        }
        None => return judge.refuse(Rule::ThinkingConfig, "thinking.type: Field required"),
    };
    let kind = kind(judge).unwrap_or_default();
    for name in thinking.as_object().into_iter().flat_map(serde_json::Map::keys) {
        let bound = name == "block_binding" && judge.has_beta(BINDING_BETA);
        if !known.contains(&name.as_str()) && !bound {
            judge.refuse(
                Rule::ThinkingConfig,
                format!("thinking.{kind}.{name}: Extra inputs are not permitted"),
            )?;
        }
    }
    check_kind(judge, kind)?;
    check_display(judge, thinking, kind)?;
    check_binding(judge, thinking, kind)?;
    if kind == "enabled" { check_budget(judge, thinking) } else { Ok(()) }
}

fn check_effort(judge: &Judge<'_>) -> Verdict {
    let Some(effort) = effort(judge) else { return Ok(()) };
    let accepted = judge.facts.efforts;
    if accepted.is_empty() {
        judge.refuse(Rule::ThinkingConfig, "This model does not support the effort parameter.")?;
    } else if !accepted.contains(&effort) {
        let mut levels = accepted.to_vec();
        levels.sort_unstable();
        let levels = levels.join(", ");
        judge.refuse(
            Rule::ThinkingConfig,
            format!("This model does not support effort level '{effort}'. Supported levels: {levels}."),
        )?;
    }
    Ok(())
}

fn check_kind(judge: &Judge<'_>, kind: &str) -> Verdict {
    let hardest = matches!(effort(judge), Some("xhigh" | "max"));
    match judge.facts.thinking.iter().find(|accepted| accepted.name() == kind) {
        None if kind == "adaptive" => {
            judge.refuse(Rule::ThinkingConfig, "adaptive thinking is not supported on this model")
        }
        None if kind == "disabled" && judge.facts.accepts_thinking("between_tools") => judge.refuse(
            Rule::ThinkingConfig,
            "To turn thinking off on this model, send \"thinking\": {\"type\": \"between_tools\"} instead of {\"type\": \
             \"disabled\"}. The model does not think before responding. The short updates it writes between tool calls \
             come back as thinking blocks.",
        ),
        None if judge.facts.accepts_thinking("adaptive") => judge.refuse(
            Rule::ThinkingConfig,
            format!(
                "\"thinking.type.{kind}\" is not supported for this model. Use \"thinking.type.adaptive\" and \
                 \"output_config.effort\" to control thinking behavior."
            ),
        ),
        None => judge.refuse(
            Rule::ThinkingConfig,
            format!("\"thinking.type.{kind}\" is not supported for this model."),
        ),
        Some(accepted @ (Thinking::DisabledUpToHighEffort | Thinking::BetweenTools)) if hardest => {
            let effort = effort(judge).unwrap_or_default();
            let setting =
                if *accepted == Thinking::BetweenTools { "thinking is between_tools" } else { "thinking is disabled" };
            judge.refuse(
                Rule::ThinkingConfig,
                format!(
                    "output_config.effort '{effort}' is not supported when {setting} on this model. Use effort 'high' or \
                     below, or enable thinking."
                ),
            )
        }
        Some(_) => Ok(()),
    }
}

fn check_display(judge: &Judge<'_>, thinking: &Value, kind: &str) -> Verdict {
    let Some(display) = thinking.get("display").filter(|display| !display.is_null()) else { return Ok(()) };
    let updates = judge.has_beta("thinking-display-updates-2026-08-18");
    let known = match display.as_str() {
        Some("summarized" | "omitted") => true,
        Some("updates") => updates,
        _ => false,
    };
    if known {
        return Ok(());
    }
    let values = if updates { "'summarized', 'omitted' or 'updates'" } else { "'summarized' or 'omitted'" };
    judge.refuse(Rule::ThinkingConfig, format!("thinking.{kind}.display: Input should be {values}"))
}

fn check_binding(judge: &Judge<'_>, thinking: &Value, kind: &str) -> Verdict {
    let Some(behavior) =
        thinking.get("block_binding").and_then(|binding| binding.get("prefix_mismatch_behavior"))
    else {
        return Ok(());
    };
    if matches!(behavior.as_str(), Some("error" | "drop_block")) {
        return Ok(());
    }
    judge.refuse(
        Rule::ThinkingConfig,
        format!(
            "thinking.{kind}.block_binding.prefix_mismatch_behavior: Input should be 'error' or 'drop_block'"
        ),
    )
}

fn check_budget(judge: &Judge<'_>, thinking: &Value) -> Verdict {
    let Some(budget) = thinking.get("budget_tokens").filter(|budget| !budget.is_null()) else {
        return judge.refuse(Rule::ThinkingConfig, "thinking.enabled.budget_tokens: Field required");
    };
    let Some(budget) = budget.as_i64() else {
        return judge
            .refuse(Rule::ThinkingConfig, "thinking.enabled.budget_tokens: Input should be a valid integer");
    };
    if budget < BUDGET_TOKENS_MIN {
        judge.refuse(
            Rule::ThinkingConfig,
            format!(
                "thinking.enabled.budget_tokens: Input should be greater than or equal to {BUDGET_TOKENS_MIN}"
            ),
        )?;
    }
    // With interleaved thinking the budget covers the whole turn and may be larger than one answer.
    let interleaved = judge.has_beta("interleaved-thinking-2025-05-14") && !judge.list("tools").is_empty();
    if let Some(max_tokens) = judge.get("max_tokens").and_then(Value::as_i64)
        && budget >= max_tokens
        && !interleaved
    {
        judge.refuse(
            Rule::ThinkingConfig,
            format!(
                "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at \
                 {DOCS}#max-tokens-and-context-window-size"
            ),
        )?;
    }
    Ok(())
}

/// The thinking blocks a client sends back.
pub(super) fn check_replay(judge: &Judge<'_>) -> Verdict {
    let turns = turns(&judge.parts);
    check_open_turn(judge, &turns)?;
    if !judge.parts.iter().any(Part::is_thinking) {
        return Ok(()); // nothing to hash the whole prompt for
    }
    let latest = turns.iter().rfind(|turn| turn.role == "assistant").map(|turn| turn.parts.as_ptr_range());
    let model = model_tag(judge.str("model").unwrap_or_default());
    let drops_mismatches = judge
        .get("thinking")
        .and_then(|thinking| thinking.get("block_binding"))
        .and_then(|binding| binding.get("prefix_mismatch_behavior"))
        .is_some_and(|behavior| behavior == "drop_block");

    let mut prefix = NOBODY;
    let mut previous: Option<&Part<'_>> = None;
    for part in &judge.parts {
        if !part.is_thinking() {
            prefix = if part.is_blank() { prefix } else { prompt::chain(prefix, part.hash()) };
            continue;
        }
        let block = Replayed {
            part,
            prefix,
            previous,
            in_latest_turn: latest.as_ref().is_some_and(|turn| turn.contains(&std::ptr::from_ref(part))),
        };
        block.check(judge, model, drops_mismatches)?;
        previous = Some(part);
    }
    Ok(())
}

/// A thinking block where the client has put it.
struct Replayed<'p, 'a> {
    part: &'p Part<'a>,
    prefix: u64,
    previous: Option<&'p Part<'a>>,
    in_latest_turn: bool,
}

impl Replayed<'_, '_> {
    fn check(&self, judge: &Judge<'_>, model: u64, drops_mismatches: bool) -> Verdict {
        let path = self.part.path();
        let redacted = self.part.kind() == "redacted_thinking";
        let text = self.part.str_field("thinking").unwrap_or_default();
        let seal = self.part.str_field(if redacted { "data" } else { "signature" }).unwrap_or_default();
        if !redacted && seal.is_empty() {
            let message = format!("{path}.thinking: each thinking block must contain thinking");
            return judge.refuse(Rule::ThinkingUnchanged, message);
        }
        let invalid = if redacted {
            format!("{path}: Invalid `data` in `redacted_thinking` block")
        } else {
            format!("{path}: Invalid `signature` in `thinking` block")
        };
        let Some(birth) = judge.issued.open(seal) else {
            return judge.refuse(Rule::ThinkingUnchanged, invalid);
        };
        if birth.model != model {
            if judge.facts.drops_foreign_thinking {
                return Ok(());
            }
            return judge.refuse(Rule::ForeignSignature, invalid);
        }
        let same_text = redacted || birth.text == prompt::hash_text(text);
        let same_previous = self.previous.map_or(NOBODY, issued::identity) == birth.previous;
        if self.in_latest_turn && (!same_text || (birth.same_turn && !same_previous)) {
            return judge.refuse(
                Rule::ThinkingUnchanged,
                format!(
                    "{path}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be \
                     modified. These blocks must remain as they were in the original response."
                ),
            );
        }
        if !same_text {
            judge.refuse(Rule::ThinkingUnchanged, invalid.clone())?;
        }
        if !judge.facts.binds_prefix || drops_mismatches {
            return Ok(());
        }
        let needs_beta = if judge.has_beta(BINDING_BETA) {
            ""
        } else {
            " That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header."
        };
        let bound = format!(
            "{invalid}. The block is bound to a different conversation. Remove the block, or set \
             `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".{needs_beta}"
        );
        if self.prefix != birth.prefix {
            let changed = if prefix_in(&judge.parts, Section::Tools) != birth.tools {
                " The `tools` list differs from the one this block was created with."
            } else if prefix_in(&judge.parts, Section::System) != birth.system {
                " The `system` prompt differs from the one this block was created with."
            } else {
                ""
            };
            judge.refuse(Rule::PrefixBinding, format!("{bound}{changed}"))
        } else if self.previous.is_some() && !same_previous {
            // Leaving out the oldest thinking blocks is allowed, a gap further on is not.
            judge.refuse(
                Rule::PrefixBinding,
                format!("{bound} The `thinking` block that preceded this one when it was created is missing from this request."),
            )
        } else {
            Ok(())
        }
    }
}

/// With a thinking budget, a turn whose tools are being answered begins with thinking.
fn check_open_turn(judge: &Judge<'_>, turns: &[Turn<'_, '_>]) -> Verdict {
    if kind(judge) != Some("enabled") {
        return Ok(());
    }
    let answers = |turn: &Turn<'_, '_>| turn.parts.iter().any(|part| part.kind() == "tool_result");
    if !turns.last().is_some_and(|last| last.role == "user" && answers(last)) {
        return Ok(());
    }
    let start = turns.iter().rposition(|turn| turn.role == "user" && !answers(turn)).map_or(0, |at| at + 1);
    let Some(first) =
        turns[start..].iter().find(|turn| turn.role == "assistant").and_then(|turn| turn.parts.first())
    else {
        return Ok(());
    };
    if first.is_thinking() || first.section != Section::Messages {
        return Ok(());
    }
    let (path, found) = (first.path(), first.kind());
    judge.refuse(
        Rule::ThinkingConfig,
        format!(
            "{path}.type: Expected `thinking` or `redacted_thinking`, but found `{found}`. When `thinking` is enabled, a \
             final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and \
             `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this \
             requirement, disable `thinking`. Please consult our documentation at {DOCS}"
        ),
    )
}
