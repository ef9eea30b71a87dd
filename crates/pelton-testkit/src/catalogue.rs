//! The models the server knows, and what each of them accepts.
use serde_json::{Value, json};

/// What one model accepts and how large it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelFacts {
    /// The id sent as `model`.
    pub id: &'static str,
}

/// The facts of a model, or `None` for an id the API does not know. Dated ids and a `[1m]` suffix find their model.
pub fn model(_id: &str) -> Option<&'static ModelFacts> {
    None
}

/// The answer to `GET /v1/models`.
pub fn models_json() -> Value {
    json!({"data": [], "has_more": false})
}

/// The answer to `GET /v1/models/{id}`.
pub fn model_json(_id: &str) -> Option<Value> {
    None
}
