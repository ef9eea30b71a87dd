//! Why a model stopped talking.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a model stopped talking, as it says itself.
///
/// The set is open: a reason this version does not know is kept as it came.
///
/// ```
/// use pelton_wire::stop::StopReason;
///
/// assert_eq!(StopReason::from("tool_use"), StopReason::ToolUse);
/// assert_eq!(StopReason::from("moonrise").as_str(), "moonrise");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// It said all it had to say.
    EndTurn,
    /// It wrote one of the stop sequences.
    StopSequence,
    /// It waits for the results of its tool calls.
    ToolUse,
    /// It reached the limit of output tokens; the last block may be incomplete.
    MaxTokens,
    /// A server-side tool loop paused: the message goes back as it is.
    PauseTurn,
    /// It declined.
    Refusal,
    /// The context window filled up while it was writing.
    ContextWindowExceeded,
    /// The answer is a summary of the conversation and nothing else.
    Compaction,
    /// A reason this version does not know.
    Other(String),
}

impl StopReason {
    /// The name on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::EndTurn => "end_turn",
            Self::StopSequence => "stop_sequence",
            Self::ToolUse => "tool_use",
            Self::MaxTokens => "max_tokens",
            Self::PauseTurn => "pause_turn",
            Self::Refusal => "refusal",
            Self::ContextWindowExceeded => "model_context_window_exceeded",
            Self::Compaction => "compaction",
            Self::Other(name) => name,
        }
    }
}

impl From<&str> for StopReason {
    fn from(name: &str) -> Self {
        match name {
            "end_turn" => Self::EndTurn,
            "stop_sequence" => Self::StopSequence,
            "tool_use" => Self::ToolUse,
            "max_tokens" => Self::MaxTokens,
            "pause_turn" => Self::PauseTurn,
            "refusal" => Self::Refusal,
            "model_context_window_exceeded" => Self::ContextWindowExceeded,
            "compaction" => Self::Compaction,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl FromStr for StopReason {
    type Err = Infallible;

    fn from_str(name: &str) -> Result<Self, Infallible> {
        Ok(Self::from(name))
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for StopReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for StopReason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|name| Self::from(name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_survives_the_round_trip() {
        for name in [
            "end_turn",
            "stop_sequence",
            "tool_use",
            "max_tokens",
            "pause_turn",
            "refusal",
            "model_context_window_exceeded",
            "compaction",
            "a_reason_of_tomorrow",
        ] {
            let reason = StopReason::from(name);
            assert_eq!(reason.as_str(), name);
            assert_eq!(matches!(reason, StopReason::Other(_)), name == "a_reason_of_tomorrow", "{name}");
            let json = serde_json::to_string(&reason).unwrap();
            assert_eq!(serde_json::from_str::<StopReason>(&json).unwrap(), reason);
        }
    }
}
