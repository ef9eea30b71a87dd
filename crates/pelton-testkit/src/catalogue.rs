//! The models the server knows, and what each of them accepts.
//!
//! One row per model. Everything another module asks about a model (window, thinking types, prefill, prefix binding,
//! the smallest cacheable prefix …) is a column here, so that a new model is a new row and nothing else.

use serde_json::{Value, json};

/// What one model accepts and how large it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelFacts {
    /// The id sent as `model`, without a date.
    pub id: &'static str,
    /// The name shown to people.
    pub display_name: &'static str,
    /// The product line: `haiku`, `sonnet`, `opus`, `fable` or `mythos`.
    pub line: &'static str,
    /// When the model appeared (RFC 3339). Only its order matters to clients; the day is approximate.
    pub created_at: &'static str,
    /// When the model goes away, if that is announced (RFC 3339).
    pub retires_at: Option<&'static str>,
    /// Tokens of input and output together.
    pub window_tokens: u64,
    /// The largest accepted `max_tokens`.
    pub output_tokens_max: u64,
    /// Prefixes shorter than this are never cached.
    pub cache_prefix_tokens_min: u64,
    /// The longest edge the model sees; larger images are scaled down before they are counted.
    pub image_edge_px_max: u32,
    /// Accepted values of `thinking.type`.
    pub thinking: &'static [Thinking],
    /// Accepted values of `output_config.effort`; empty when the parameter itself is refused.
    pub efforts: &'static [&'static str],
    /// A trailing assistant message is continued rather than refused.
    pub prefill: bool,
    /// `tool_choice` may force a tool.
    pub forced_tool_choice: bool,
    /// `role: "system"` is accepted inside `messages`.
    pub system_role: bool,
    /// Replayed thinking blocks are checked against everything that came before them.
    pub binds_prefix: bool,
    /// Thinking blocks of another model are silently dropped; otherwise they are refused.
    pub drops_foreign_thinking: bool,
    /// Whether `speed: "fast"` is accepted.
    pub fast: Fast,
    /// Sampling parameters may differ from their defaults.
    pub sampling: bool,
    /// Input and `max_tokens` together must fit into the window; otherwise the answer ends early instead.
    pub refuses_overflow: bool,
    /// Counts with the newer tokenizer, about 30 % more tokens for the same text.
    pub dense_tokenizer: bool,
}

/// Whether a model has a fast mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fast {
    /// It has none.
    No,
    /// With a beta header.
    Beta,
    /// For everyone.
    Yes,
}

/// A value of `thinking.type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// The model decides.
    Adaptive,
    /// Only in the gaps between tool calls.
    BetweenTools,
    /// Never.
    Disabled,
    /// Never, but refused at the two highest effort levels.
    DisabledUpToHighEffort,
    /// With a token budget.
    Enabled,
}

impl Thinking {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Adaptive => "adaptive",
            Self::BetweenTools => "between_tools",
            Self::Disabled | Self::DisabledUpToHighEffort => "disabled",
            Self::Enabled => "enabled",
        }
    }
}

impl ModelFacts {
    /// How many images one request may carry.
    pub fn images_max(&self) -> usize {
        if self.window_tokens > SMALL_WINDOW_TOKENS { 600 } else { 100 }
    }

    /// Whether `thinking.type` may have this value.
    pub fn accepts_thinking(&self, kind: &str) -> bool {
        self.thinking.iter().any(|accepted| accepted.name() == kind)
    }
}

/// The facts of a model, or `None` for an id the API does not know. Dated ids find their model.
pub fn model(id: &str) -> Option<&'static ModelFacts> {
    let undated = without_date(id);
    MODELS.iter().find(|facts| facts.id == undated)
}

/// The facts used for an unknown model once the rule against unknown models is relaxed: everything is accepted.
pub fn permissive() -> &'static ModelFacts {
    &PERMISSIVE
}

/// The answer to `GET /v1/models`.
pub fn models_json() -> Value {
    list(&MODELS.iter().collect::<Vec<_>>())
}

/// The same for an account that may use one model alone.
pub(crate) fn one_model_json(id: &str) -> Value {
    list(model(id).as_slice())
}

/// The answer to `GET /v1/models/{id}`.
pub fn model_json(id: &str) -> Option<Value> {
    model(id).map(describe)
}

const SMALL_WINDOW_TOKENS: u64 = 200_000;
const LARGE_WINDOW_TOKENS: u64 = 1_000_000;

const ALL_EFFORTS: &[&str] = &["low", "medium", "high", "xhigh", "max"];
const EFFORTS_V4_6: &[&str] = &["low", "medium", "high", "max"];
const ADAPTIVE_ONLY: &[Thinking] = &[Thinking::Adaptive];
const ADAPTIVE_OR_OFF: &[Thinking] = &[Thinking::Adaptive, Thinking::Disabled];
const ADAPTIVE_OR_OFF_BELOW_XHIGH: &[Thinking] = &[Thinking::Adaptive, Thinking::DisabledUpToHighEffort];
const BUDGET_OR_OFF: &[Thinking] = &[Thinking::Enabled, Thinking::Disabled];

/// The newest generation; older rows say how they differ.
const NEWEST: ModelFacts = ModelFacts {
    id: "",
    display_name: "",
    line: "",
    created_at: "",
    retires_at: None,
    window_tokens: LARGE_WINDOW_TOKENS,
    output_tokens_max: 128_000,
    cache_prefix_tokens_min: 512,
    image_edge_px_max: 2576,
    thinking: ADAPTIVE_ONLY,
    efforts: ALL_EFFORTS,
    prefill: false,
    forced_tool_choice: false,
    system_role: true,
    binds_prefix: true,
    drops_foreign_thinking: true,
    fast: Fast::No,
    sampling: false,
    refuses_overflow: false,
    dense_tokenizer: true,
};

/// The generation before signatures were bound to models and conversations.
const UNBOUND: ModelFacts =
    ModelFacts { forced_tool_choice: true, binds_prefix: false, drops_foreign_thinking: false, ..NEWEST };

/// The 4.6 generation: no prefill any more, still the old tokenizer.
const V4_6: ModelFacts = ModelFacts {
    image_edge_px_max: 1568,
    thinking: &[Thinking::Adaptive, Thinking::Enabled, Thinking::Disabled],
    efforts: EFFORTS_V4_6,
    system_role: false,
    sampling: true,
    dense_tokenizer: false,
    ..UNBOUND
};

/// The 4.5 generation: small window, thinking budgets, prefill.
const V4_5: ModelFacts = ModelFacts {
    window_tokens: SMALL_WINDOW_TOKENS,
    output_tokens_max: 64_000,
    thinking: BUDGET_OR_OFF,
    efforts: &[],
    prefill: true,
    ..V4_6
};

const PERMISSIVE: ModelFacts = ModelFacts {
    id: "unknown",
    display_name: "Unknown model",
    line: "",
    created_at: "1970-01-01T00:00:00Z",
    thinking: &[Thinking::Adaptive, Thinking::BetweenTools, Thinking::Disabled, Thinking::Enabled],
    prefill: true,
    forced_tool_choice: true,
    binds_prefix: false,
    fast: Fast::Yes,
    sampling: true,
    ..NEWEST
};

static MODELS: [ModelFacts; 20] = [
    ModelFacts {
        id: "claude-fable-5-2",
        display_name: "Claude Fable 5.2",
        line: "fable",
        created_at: "2026-10-20T00:00:00Z",
        ..NEWEST
    },
    ModelFacts {
        id: "claude-mythos-5-2",
        display_name: "Claude Mythos 5.2",
        line: "mythos",
        created_at: "2026-10-20T00:00:00Z",
        ..NEWEST
    },
    ModelFacts {
        id: "claude-haiku-5-5",
        display_name: "Claude Haiku 5.5",
        line: "haiku",
        created_at: "2026-10-01T00:00:00Z",
        thinking: ADAPTIVE_OR_OFF_BELOW_XHIGH,
        forced_tool_choice: true,
        ..NEWEST
    },
    ModelFacts {
        id: "claude-opus-5-5",
        display_name: "Claude Opus 5.5",
        line: "opus",
        created_at: "2026-09-15T00:00:00Z",
        fast: Fast::Yes,
        ..NEWEST
    },
    ModelFacts {
        id: "claude-sonnet-5-5",
        display_name: "Claude Sonnet 5.5",
        line: "sonnet",
        created_at: "2026-09-15T00:00:00Z",
        thinking: &[Thinking::Adaptive, Thinking::BetweenTools],
        ..NEWEST
    },
    ModelFacts {
        id: "claude-fable-5-1",
        display_name: "Claude Fable 5.1",
        line: "fable",
        created_at: "2026-08-31T00:00:00Z",
        ..NEWEST
    },
    ModelFacts {
        id: "claude-mythos-5-1",
        display_name: "Claude Mythos 5.1",
        line: "mythos",
        created_at: "2026-08-31T00:00:00Z",
        ..NEWEST
    },
    ModelFacts {
        id: "claude-opus-5",
        display_name: "Claude Opus 5",
        line: "opus",
        created_at: "2026-07-20T00:00:00Z",
        thinking: ADAPTIVE_OR_OFF_BELOW_XHIGH,
        fast: Fast::Beta,
        ..UNBOUND
    },
    ModelFacts {
        id: "claude-sonnet-5",
        display_name: "Claude Sonnet 5",
        line: "sonnet",
        created_at: "2026-07-01T00:00:00Z",
        cache_prefix_tokens_min: 1024,
        thinking: ADAPTIVE_OR_OFF,
        ..UNBOUND
    },
    ModelFacts {
        id: "claude-fable-5",
        display_name: "Claude Fable 5",
        line: "fable",
        created_at: "2026-06-15T00:00:00Z",
        ..UNBOUND
    },
    ModelFacts {
        id: "claude-mythos-5",
        display_name: "Claude Mythos 5",
        line: "mythos",
        created_at: "2026-06-15T00:00:00Z",
        ..UNBOUND
    },
    ModelFacts {
        id: "claude-opus-4-8",
        display_name: "Claude Opus 4.8",
        line: "opus",
        created_at: "2026-05-28T00:00:00Z",
        cache_prefix_tokens_min: 1024,
        fast: Fast::Beta,
        thinking: ADAPTIVE_OR_OFF,
        ..UNBOUND
    },
    ModelFacts {
        id: "claude-opus-4-7",
        display_name: "Claude Opus 4.7",
        line: "opus",
        created_at: "2026-04-16T00:00:00Z",
        cache_prefix_tokens_min: 2048,
        thinking: ADAPTIVE_OR_OFF,
        system_role: false,
        ..UNBOUND
    },
    ModelFacts {
        id: "claude-sonnet-4-6",
        display_name: "Claude Sonnet 4.6",
        line: "sonnet",
        created_at: "2026-02-17T00:00:00Z",
        cache_prefix_tokens_min: 1024,
        ..V4_6
    },
    ModelFacts {
        id: "claude-opus-4-6",
        display_name: "Claude Opus 4.6",
        line: "opus",
        created_at: "2026-02-05T00:00:00Z",
        cache_prefix_tokens_min: 4096,
        ..V4_6
    },
    ModelFacts {
        id: "claude-opus-4-5",
        display_name: "Claude Opus 4.5",
        line: "opus",
        created_at: "2025-11-24T00:00:00Z",
        cache_prefix_tokens_min: 4096,
        efforts: &["low", "medium", "high"],
        ..V4_5
    },
    ModelFacts {
        id: "claude-haiku-4-5",
        display_name: "Claude Haiku 4.5",
        line: "haiku",
        created_at: "2025-10-15T00:00:00Z",
        cache_prefix_tokens_min: 4096,
        ..V4_5
    },
    ModelFacts {
        id: "claude-sonnet-4-5",
        display_name: "Claude Sonnet 4.5",
        line: "sonnet",
        created_at: "2025-09-29T00:00:00Z",
        retires_at: Some("2026-11-30T00:00:00Z"),
        cache_prefix_tokens_min: 1024,
        ..V4_5
    },
    // The last two are kept because they alone still refuse input and `max_tokens` that do not fit together. Their day of
    // retirement is a stand-in that keeps them listed as deprecated.
    ModelFacts {
        id: "claude-opus-4-1",
        display_name: "Claude Opus 4.1",
        line: "opus",
        created_at: "2025-08-05T00:00:00Z",
        retires_at: Some("2026-12-31T00:00:00Z"),
        output_tokens_max: 32_000,
        cache_prefix_tokens_min: 1024,
        refuses_overflow: true,
        ..V4_5
    },
    ModelFacts {
        id: "claude-sonnet-4",
        display_name: "Claude Sonnet 4",
        line: "sonnet",
        created_at: "2025-05-14T00:00:00Z",
        retires_at: Some("2026-12-31T00:00:00Z"),
        cache_prefix_tokens_min: 1024,
        refuses_overflow: true,
        ..V4_5
    },
];

/// Digits of a date suffix such as `-20250929`.
const DATE_DIGITS: usize = 8;

fn without_date(id: &str) -> &str {
    match id.rsplit_once('-') {
        Some((stem, date)) if date.len() == DATE_DIGITS && date.bytes().all(|b| b.is_ascii_digit()) => stem,
        _ => id,
    }
}

fn list(models: &[&ModelFacts]) -> Value {
    json!({
        "data": models.iter().map(|facts| describe(facts)).collect::<Vec<_>>(),
        "first_id": models.first().map(|facts| facts.id),
        "has_more": false,
        "last_id": models.last().map(|facts| facts.id),
    })
}

fn describe(facts: &ModelFacts) -> Value {
    let yes = |supported: bool| json!({ "supported": supported });
    let effort = |level: &str| yes(facts.efforts.contains(&level));
    json!({
        "type": "model",
        "id": facts.id,
        "display_name": facts.display_name,
        "created_at": facts.created_at,
        "lifecycle": if facts.retires_at.is_some() { "deprecated" } else { "active" },
        "line": facts.line,
        "max_input_tokens": facts.window_tokens,
        "max_tokens": facts.output_tokens_max,
        "retires_at": facts.retires_at,
        "capabilities": {
            "thinking": {"types": {
                "adaptive": yes(facts.accepts_thinking("adaptive")),
                "enabled": yes(facts.accepts_thinking("enabled")),
                "disabled": yes(facts.accepts_thinking("disabled")),
                "between_tools": yes(facts.accepts_thinking("between_tools")),
            }},
            "effort": {
                "low": effort("low"),
                "medium": effort("medium"),
                "high": effort("high"),
                "xhigh": effort("xhigh"),
                "max": effort("max"),
            },
            "context_management": {
                "clear_tool_uses_20250919": yes(true),
                "clear_thinking_20251015": yes(true),
                "compact_20260112": yes(!facts.prefill),
            },
            "compaction": yes(!facts.prefill),
            "image_input": yes(true),
            "pdf_input": yes(true),
            "structured_outputs": yes(true),
            "citations": yes(true),
            "batch": yes(true),
            "code_execution": yes(true),
            "server_tools": yes(true),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_dates_are_ignored() {
        for (i, facts) in MODELS.iter().enumerate() {
            assert!(MODELS[..i].iter().all(|other| other.id != facts.id), "{} twice", facts.id);
            assert_eq!(model(facts.id), Some(facts));
            assert_eq!(model(&format!("{}-20251001", facts.id)), Some(facts));
        }
        assert_eq!(model("claude-opus-9"), None);
        assert_eq!(model("claude-sonnet-4-5-2025"), None);
        assert_eq!(model("claude-sonnet-4-6[1m]"), None, "the suffix is for command lines, not for the API");
    }

    #[test]
    fn the_list_is_newest_first_and_every_leaf_says_supported() {
        let list = models_json();
        let created: Vec<&str> =
            list["data"].as_array().unwrap().iter().map(|m| m["created_at"].as_str().unwrap()).collect();
        assert!(created.windows(2).all(|pair| pair[0] >= pair[1]));
        let sonnet = model_json("claude-sonnet-5-5").unwrap();
        assert_eq!(sonnet["capabilities"]["thinking"]["types"]["between_tools"]["supported"], true);
        assert_eq!(sonnet["capabilities"]["thinking"]["types"]["enabled"]["supported"], false);
        assert_eq!(sonnet["max_input_tokens"], 1_000_000);
        assert_eq!(model_json("nobody"), None);
    }

    #[test]
    fn images_follow_the_window() {
        assert_eq!(model("claude-haiku-4-5").unwrap().images_max(), 100);
        assert_eq!(model("claude-opus-4-6").unwrap().images_max(), 600);
    }
}
