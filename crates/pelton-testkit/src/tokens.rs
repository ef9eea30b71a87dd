//! Deterministic token estimates.
use serde_json::Value;

/// Input tokens of a whole request.
pub fn count(_request: &Value) -> u64 {
    1
}

/// Output tokens of a reply's content blocks.
pub fn count_blocks(_model: &str, _blocks: &[Value]) -> u64 {
    1
}
