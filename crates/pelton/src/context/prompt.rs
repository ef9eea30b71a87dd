//! The system prompt and the tool list: the same bytes from the first request of a session to the last, so that
//! the model's cache holds them. Nothing that changes belongs here.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::tools::Tool;

/// What the model is told about itself.
///
/// ```
/// use pelton::SystemPrompt;
///
/// let mut prompt = SystemPrompt::default();
/// prompt.appended = Some("Answer in French.".to_owned());
/// assert!(prompt.custom.is_none(), "Pelton's own words come first: {}", SystemPrompt::BASE);
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SystemPrompt {
    /// Replaces Pelton's own words.
    pub custom: Option<String>,
    /// Comes after them.
    pub appended: Option<String>,
}

impl SystemPrompt {
    /// Pelton's own words.
    pub const BASE: &'static str = include_str!("system.md");

    /// The request's `system` array, with a cache mark on its last block. `instructions` are those of tool servers.
    pub fn json(&self, instructions: &[String]) -> Bytes {
        let base = self.custom.as_deref().unwrap_or(Self::BASE);
        let texts: Vec<&str> = std::iter::once(base)
            .chain(instructions.iter().map(String::as_str))
            .chain(self.appended.as_deref())
            .filter(|text| !text.trim().is_empty())
            .collect();
        let last = texts.len().saturating_sub(1);
        let blocks: Vec<_> = texts
            .iter()
            .enumerate()
            .map(|(index, text)| {
                let mut block = json!({"type": "text", "text": text});
                if index == last {
                    block["cache_control"] = json!({"type": "ephemeral"});
                }
                block
            })
            .collect();
        Bytes::from(json!(blocks).to_string())
    }
}

/// The request's `tools` array.
pub fn tools_json(tools: &[Arc<dyn Tool>]) -> Bytes {
    let tools: Vec<_> = tools
        .iter()
        .map(|tool| {
            let spec = tool.spec();
            // A schema that is not JSON would be a mistake in a tool of ours; an open schema still lets it work.
            let schema = RawValue::from_string(spec.input_schema.to_owned()).ok();
            json!({
                "name": spec.name,
                "description": spec.description.trim(),
                "input_schema": schema.map_or_else(|| json!({"type": "object"}), |schema| json!(schema)),
            })
        })
        .collect();
    Bytes::from(json!(tools).to_string())
}

/// Words of the harness in the user's role, as the model reads them.
pub fn reminder(words: &[String]) -> String {
    format!("<system-reminder>\n{}\n</system-reminder>", words.join("\n").trim_end())
}
