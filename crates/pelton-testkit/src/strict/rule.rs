//! The rules by name, and which of them are on.

use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// One thing the API insists on; each can be switched off by itself.
///
/// ```
/// use pelton_testkit::strict::{Rule, Strictness};
///
/// let relaxed = Strictness::default().relax(Rule::KnownModel); // models of your own are asked
/// assert!(!relaxed.is_on(Rule::KnownModel));
/// assert_eq!(Rule::KnownModel.name(), "known-model"); // as scripts write it
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Rule {
    /// Every `tool_use` has its `tool_result` in the next user message and the other way round; ids are unique.
    ToolPairs,
    /// Tool results come before everything else in their message.
    ResultsFirst,
    /// Known roles in a possible order, and blocks only under the roles that may carry them.
    Roles,
    /// No empty messages, no text blocks that are empty or blank.
    EmptyText,
    /// At most four cache marks, long lifetimes before short ones, only where a mark may stand.
    CacheMarks,
    /// Replayed thinking blocks are as they were issued.
    ThinkingUnchanged,
    /// Replayed thinking blocks come from the model that is asked.
    ForeignSignature,
    /// Everything before a replayed thinking block is as it was.
    PrefixBinding,
    /// The conversation does not end with the assistant, on models that want it so.
    Prefill,
    /// Images and PDFs decode, match their media type, and are not too large.
    ImageSize,
    /// Not too many images and pages of documents.
    ImageCount,
    /// The body is not too large.
    BodySize,
    /// The input fits into the context window.
    ContextWindow,
    /// Conversations with tool calls define tools.
    UndefinedTools,
    /// Tool names are well formed and unique.
    ToolNames,
    /// Input schemas are valid object schemas.
    ToolSchemas,
    /// `max_tokens` is within what the model can write.
    MaxTokens,
    /// Thinking and effort are set in a way the model accepts.
    ThinkingConfig,
    /// `tool_choice` is possible with these tools on this model.
    ToolChoice,
    /// Sampling parameters only where they are accepted.
    Sampling,
    /// The model exists.
    KnownModel,
    /// Exactly one credential is sent.
    Credentials,
    /// Beta names exist.
    Betas,
    /// Required fields, field types, no unknown fields.
    Shape,
}

impl Rule {
    /// Every rule.
    pub const ALL: &'static [Rule] = &[
        Rule::ToolPairs,
        Rule::ResultsFirst,
        Rule::Roles,
        Rule::EmptyText,
        Rule::CacheMarks,
        Rule::ThinkingUnchanged,
        Rule::ForeignSignature,
        Rule::PrefixBinding,
        Rule::Prefill,
        Rule::ImageSize,
        Rule::ImageCount,
        Rule::BodySize,
        Rule::ContextWindow,
        Rule::UndefinedTools,
        Rule::ToolNames,
        Rule::ToolSchemas,
        Rule::MaxTokens,
        Rule::ThinkingConfig,
        Rule::ToolChoice,
        Rule::Sampling,
        Rule::KnownModel,
        Rule::Credentials,
        Rule::Betas,
        Rule::Shape,
    ];

    /// The name in scripts, e.g. `tool-pairs`.
    pub fn name(self) -> String {
        let spelled = format!("{self:?}");
        let mut name = String::with_capacity(spelled.len() + 2);
        for letter in spelled.chars() {
            if letter.is_ascii_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// Which rules are on. The default is all of them.
///
/// In scripts: `true`, `false`, `{off: [tool-pairs, …]}` or `{only: [tool-pairs, …]}`.
///
/// ```
/// use pelton_testkit::strict::{Rule, Strictness};
/// use pelton_testkit::{Script, text};
///
/// let only = Strictness::only(&[Rule::ToolPairs, Rule::Roles]);
/// assert!(only.is_on(Rule::Roles) && !only.is_on(Rule::MaxTokens));
/// let script = Script::new().strict(only).reply([text("Hello.")]);
/// # drop(script);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Strictness {
    /// One bit for each relaxed rule.
    off: u32,
}

impl Strictness {
    /// No rule at all.
    pub fn none() -> Self {
        Self::only(&[])
    }

    /// These rules and no others.
    pub fn only(rules: &[Rule]) -> Self {
        Rule::ALL
            .iter()
            .filter(|rule| !rules.contains(rule))
            .fold(Self::default(), |all, &rule| all.relax(rule))
    }

    /// The same without one rule.
    #[must_use]
    pub fn relax(self, rule: Rule) -> Self {
        Self { off: self.off | bit(rule) }
    }

    /// Whether a rule is on.
    pub fn is_on(&self, rule: Rule) -> bool {
        self.off & bit(rule) == 0
    }

    fn off(self) -> Vec<Rule> {
        Rule::ALL.iter().copied().filter(|&rule| !self.is_on(rule)).collect()
    }
}

fn bit(rule: Rule) -> u32 {
    1 << rule as u32
}

impl Serialize for Strictness {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let off = self.off();
        if off.is_empty() || off.len() == Rule::ALL.len() {
            return serializer.serialize_bool(off.is_empty());
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("off", &off)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Strictness {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictnessVisitor)
    }
}

struct StrictnessVisitor;

impl<'de> Visitor<'de> for StrictnessVisitor {
    type Value = Strictness;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true, false, {off: [rule, …]} or {only: [rule, …]}")
    }

    fn visit_bool<E: de::Error>(self, strict: bool) -> Result<Strictness, E> {
        Ok(if strict { Strictness::default() } else { Strictness::none() })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Strictness, A::Error> {
        let mut said: Option<Strictness> = None;
        while let Some(key) = map.next_key::<String>()? {
            let rules: Vec<Rule> = map.next_value()?;
            let strictness = match key.as_str() {
                "off" => rules.into_iter().fold(Strictness::default(), Strictness::relax),
                "only" => Strictness::only(&rules),
                other => return Err(de::Error::unknown_field(other, &["off", "only"])),
            };
            if said.replace(strictness).is_some() {
                return Err(de::Error::custom("`off` and `only` exclude each other; keep one of them"));
            }
        }
        Ok(said.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json, to_value};

    #[test]
    fn rules_are_listed_once_and_named_alike_everywhere() {
        for (i, &rule) in Rule::ALL.iter().enumerate() {
            assert_eq!(rule as usize, i, "{rule} is out of order or missing");
            assert_eq!(to_value(rule).unwrap(), rule.name());
        }
        assert_eq!(Rule::ALL.last(), Some(&Rule::Shape), "add new rules to ALL too");
    }

    #[test]
    fn strictness_is_read_and_written_in_every_form() {
        let read = |value| from_value::<Strictness>(value);
        assert_eq!(read(json!(true)).unwrap(), Strictness::default());
        assert_eq!(read(json!(false)).unwrap(), Strictness::none());
        let off = read(json!({"off": ["tool-pairs", "known-model"]})).unwrap();
        assert!(!off.is_on(Rule::ToolPairs) && !off.is_on(Rule::KnownModel) && off.is_on(Rule::Shape));
        let only = read(json!({"only": ["shape"]})).unwrap();
        assert!(only.is_on(Rule::Shape) && !only.is_on(Rule::Prefill));
        for strictness in [Strictness::default(), Strictness::none(), off, only] {
            assert_eq!(read(to_value(strictness).unwrap()).unwrap(), strictness);
        }
        for (bad, why) in [
            (json!({"off": ["tool-pears"]}), "unknown variant `tool-pears`"),
            (json!({"on": []}), "unknown field `on`, expected `off` or `only`"),
            (json!({"off": [], "only": []}), "`off` and `only` exclude each other"),
            (json!("yes"), "expected true, false, {off: [rule, …]}"),
        ] {
            let error = read(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
