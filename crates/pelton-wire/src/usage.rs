//! What a model call consumed.
//!
//! [`Usage`] is complete: every count has a value. [`UsageDelta`] is what one event says: any part of it may be
//! absent. Both read what servers of many makers write: missing and null counts, unknown fields, counts written
//! as floats.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The largest count that is believed: no call consumes as much, and millions of such counts can be added up.
const COUNT_MAX: u64 = 1_000_000_000_000;

/// Tokens and server tools one or more model calls consumed.
///
/// ```
/// use pelton_wire::usage::{Usage, UsageDelta};
///
/// let mut usage: Usage = serde_json::from_str(r#"{"input_tokens":12,"cache_read_input_tokens":9000}"#).unwrap();
/// usage.apply(&UsageDelta { output_tokens: Some(57), ..UsageDelta::default() });
/// assert_eq!((usage.prompt_tokens(), usage.output_tokens), (9012, 57));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Prompt tokens that were neither read from nor written to the cache.
    pub input_tokens: u64,
    /// Prompt tokens written to the cache.
    pub cache_creation_input_tokens: u64,
    /// Prompt tokens read from the cache.
    pub cache_read_input_tokens: u64,
    /// Tokens the model wrote, thinking included.
    pub output_tokens: u64,
    /// What `output_tokens` are, when the server says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens_details: Option<OutputTokensDetails>,
    /// Tools the server ran.
    pub server_tool_use: ServerToolUse,
    /// The tier that served the call, when the server says so.
    pub service_tier: Option<String>,
    /// `cache_creation_input_tokens` by life time.
    pub cache_creation: CacheCreation,
    /// Where the model ran, when the server says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inference_geo: Option<String>,
    /// `fast` or `standard`, when the server says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<String>,
}

/// Tokens written to the cache, by the life time of the entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CacheCreation {
    /// Kept for an hour.
    pub ephemeral_1h_input_tokens: u64,
    /// Kept for five minutes.
    pub ephemeral_5m_input_tokens: u64,
}

/// What a model wrote, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OutputTokensDetails {
    /// Thinking, as it was before a server shortened it.
    pub thinking_tokens: u64,
}

/// Tools the server ran during a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServerToolUse {
    /// Web searches.
    pub web_search_requests: u64,
    /// Pages fetched.
    pub web_fetch_requests: u64,
}

impl Usage {
    /// Takes over what an event says. Counts in events are cumulative: what is present replaces, what is absent
    /// stays.
    pub fn apply(&mut self, delta: &UsageDelta) {
        replace(&mut self.input_tokens, delta.input_tokens);
        replace(&mut self.cache_creation_input_tokens, delta.cache_creation_input_tokens);
        replace(&mut self.cache_read_input_tokens, delta.cache_read_input_tokens);
        replace(&mut self.output_tokens, delta.output_tokens);
        if let Some(wrote) = &delta.output_tokens_details {
            let known = self.output_tokens_details.get_or_insert_default();
            replace(&mut known.thinking_tokens, wrote.thinking_tokens);
        }
        if let Some(made) = &delta.cache_creation {
            replace(&mut self.cache_creation.ephemeral_1h_input_tokens, made.ephemeral_1h_input_tokens);
            replace(&mut self.cache_creation.ephemeral_5m_input_tokens, made.ephemeral_5m_input_tokens);
        }
        if let Some(used) = &delta.server_tool_use {
            replace(&mut self.server_tool_use.web_search_requests, used.web_search_requests);
            replace(&mut self.server_tool_use.web_fetch_requests, used.web_fetch_requests);
        }
        replace_text(&mut self.service_tier, &delta.service_tier);
        replace_text(&mut self.speed, &delta.speed);
        replace_text(&mut self.inference_geo, &delta.inference_geo);
    }

    /// Adds another call's usage. Of the three texts the newer one stays.
    pub fn add(&mut self, other: &Usage) {
        increase(&mut self.input_tokens, other.input_tokens);
        increase(&mut self.cache_creation_input_tokens, other.cache_creation_input_tokens);
        increase(&mut self.cache_read_input_tokens, other.cache_read_input_tokens);
        increase(&mut self.output_tokens, other.output_tokens);
        if let Some(also) = other.output_tokens_details {
            let known = self.output_tokens_details.get_or_insert_default();
            increase(&mut known.thinking_tokens, also.thinking_tokens);
        }
        let (made, also) = (&mut self.cache_creation, &other.cache_creation);
        increase(&mut made.ephemeral_1h_input_tokens, also.ephemeral_1h_input_tokens);
        increase(&mut made.ephemeral_5m_input_tokens, also.ephemeral_5m_input_tokens);
        let (used, also) = (&mut self.server_tool_use, &other.server_tool_use);
        increase(&mut used.web_search_requests, also.web_search_requests);
        increase(&mut used.web_fetch_requests, also.web_fetch_requests);
        replace_text(&mut self.service_tier, &other.service_tier);
        replace_text(&mut self.speed, &other.speed);
        replace_text(&mut self.inference_geo, &other.inference_geo);
    }

    /// The whole prompt: what was read from the cache, what was written to it, and the rest.
    pub fn prompt_tokens(&self) -> u64 {
        self.input_tokens
            .saturating_add(self.cache_creation_input_tokens)
            .saturating_add(self.cache_read_input_tokens)
    }
}

impl<'de> Deserialize<'de> for Usage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let said = Option::<UsageDelta>::deserialize(deserializer)?.unwrap_or_default();
        Ok(Self::from(&said))
    }
}

impl From<&UsageDelta> for Usage {
    fn from(said: &UsageDelta) -> Self {
        let mut usage = Self::default();
        usage.apply(said);
        usage
    }
}

/// What one event says about usage: any part may be absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct UsageDelta {
    /// See [`Usage::input_tokens`].
    #[serde(deserialize_with = "count")]
    pub input_tokens: Option<u64>,
    /// See [`Usage::cache_creation_input_tokens`].
    #[serde(deserialize_with = "count")]
    pub cache_creation_input_tokens: Option<u64>,
    /// See [`Usage::cache_read_input_tokens`].
    #[serde(deserialize_with = "count")]
    pub cache_read_input_tokens: Option<u64>,
    /// See [`Usage::output_tokens`].
    #[serde(deserialize_with = "count")]
    pub output_tokens: Option<u64>,
    /// See [`Usage::output_tokens_details`].
    pub output_tokens_details: Option<OutputTokensDetailsDelta>,
    /// See [`Usage::cache_creation`].
    pub cache_creation: Option<CacheCreationDelta>,
    /// See [`Usage::server_tool_use`].
    pub server_tool_use: Option<ServerToolUseDelta>,
    /// See [`Usage::service_tier`].
    #[serde(deserialize_with = "text")]
    pub service_tier: Option<String>,
    /// See [`Usage::speed`].
    #[serde(deserialize_with = "text")]
    pub speed: Option<String>,
    /// See [`Usage::inference_geo`].
    #[serde(deserialize_with = "text")]
    pub inference_geo: Option<String>,
}

/// The part of [`UsageDelta`] about what the model wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct OutputTokensDetailsDelta {
    /// See [`OutputTokensDetails::thinking_tokens`].
    #[serde(deserialize_with = "count")]
    pub thinking_tokens: Option<u64>,
}

/// The part of [`UsageDelta`] about the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CacheCreationDelta {
    /// See [`CacheCreation::ephemeral_1h_input_tokens`].
    #[serde(deserialize_with = "count")]
    pub ephemeral_1h_input_tokens: Option<u64>,
    /// See [`CacheCreation::ephemeral_5m_input_tokens`].
    #[serde(deserialize_with = "count")]
    pub ephemeral_5m_input_tokens: Option<u64>,
}

/// The part of [`UsageDelta`] about server tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ServerToolUseDelta {
    /// See [`ServerToolUse::web_search_requests`].
    #[serde(deserialize_with = "count")]
    pub web_search_requests: Option<u64>,
    /// See [`ServerToolUse::web_fetch_requests`].
    #[serde(deserialize_with = "count")]
    pub web_fetch_requests: Option<u64>,
}

fn replace(count: &mut u64, said: Option<u64>) {
    if let Some(said) = said {
        *count = said;
    }
}

fn replace_text(text: &mut Option<String>, said: &Option<String>) {
    if said.is_some() {
        text.clone_from(said);
    }
}

fn increase(count: &mut u64, by: u64) {
    *count = count.saturating_add(by);
}

/// A count in whatever form a server writes it; anything else reads as absent. Sums of counts always fit.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    deserializer.deserialize_any(Scalar).map(|(count, _)| count.map(|count| count.min(COUNT_MAX)))
}

/// A text; anything else reads as absent.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    deserializer.deserialize_any(Scalar).map(|(_, text)| text)
}

/// Reads any JSON value as (count, text), of which at most one is present.
struct Scalar;

impl<'de> Visitor<'de> for Scalar {
    type Value = (Option<u64>, Option<String>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a count or a text")
    }

    fn visit_u64<E>(self, count: u64) -> Result<Self::Value, E> {
        Ok((Some(count), None))
    }

    fn visit_i64<E>(self, count: i64) -> Result<Self::Value, E> {
        Ok((Some(u64::try_from(count).unwrap_or(0)), None))
    }

    fn visit_f64<E>(self, count: f64) -> Result<Self::Value, E> {
        // A float-to-integer cast saturates, and makes 0 of what is not a number.
        Ok((Some(count as u64), None))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok((None, Some(text.to_owned())))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok((None, None))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok((None, None))
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok((None, None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok((None, None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok((None, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::needless_pass_by_value, reason = "reads better at the call site")]
    fn check(json: &str, expected: Usage) {
        assert_eq!(serde_json::from_str::<Usage>(json).unwrap(), expected, "{json}");
    }

    #[test]
    fn strange_counts_are_read() {
        check("null", Usage::default());
        check("{}", Usage::default());
        check(r#"{"input_tokens":null,"later":{"a":[1]}}"#, Usage::default());
        check(r#"{"input_tokens":7.9}"#, Usage { input_tokens: 7, ..Usage::default() });
        check(
            r#"{"input_tokens":-3,"output_tokens":1e3}"#,
            Usage { output_tokens: 1000, ..Usage::default() },
        );
        check(r#"{"input_tokens":{"a":1},"output_tokens":[1,2],"speed":3}"#, Usage::default());
        check(r#"{"cache_creation":null,"server_tool_use":null,"service_tier":null}"#, Usage::default());
        check(
            r#"{"cache_creation":{"ephemeral_5m_input_tokens":40,"later":1},"service_tier":"priority"}"#,
            Usage {
                cache_creation: CacheCreation { ephemeral_5m_input_tokens: 40, ..CacheCreation::default() },
                service_tier: Some("priority".to_owned()),
                ..Usage::default()
            },
        );
    }

    #[test]
    fn the_wire_form_keeps_its_order() {
        let usage = Usage { input_tokens: 20, output_tokens: 10, ..Usage::default() };
        assert_eq!(
            serde_json::to_string(&usage).unwrap(),
            "{\"input_tokens\":20,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":0,\
             \"output_tokens\":10,\"server_tool_use\":{\"web_search_requests\":0,\"web_fetch_requests\":0},\
             \"service_tier\":null,\"cache_creation\":{\"ephemeral_1h_input_tokens\":0,\
             \"ephemeral_5m_input_tokens\":0}}"
        );
    }

    #[test]
    fn events_replace_and_calls_add() {
        let mut usage = Usage { input_tokens: 5, output_tokens: 1, ..Usage::default() };
        let said: UsageDelta = serde_json::from_str(r#"{"output_tokens":57,"speed":"fast"}"#).unwrap();
        usage.apply(&said);
        usage.apply(&said);
        assert_eq!((usage.input_tokens, usage.output_tokens), (5, 57));
        let mut total = usage.clone();
        total.add(&usage);
        total.add(&Usage { output_tokens: u64::MAX, ..Usage::default() });
        assert_eq!((total.input_tokens, total.output_tokens), (10, u64::MAX));
        assert_eq!(total.speed.as_deref(), Some("fast"));
    }
}
