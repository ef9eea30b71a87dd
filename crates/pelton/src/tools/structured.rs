//! Structured output: a tool whose input is the answer. The model is offered it when the host gave a schema; a call
//! that fits ends the submission, one that does not is answered with what is wrong.

use std::sync::{Mutex, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use super::tool::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx};

/// The tool's name, which clients look for.
pub const NAME: &str = "StructuredOutput";

/// What the model reads when it ended without calling it.
pub const REMINDER: &str =
    "Give your final answer by calling the StructuredOutput tool, with input that fits its schema.";

/// Errors named in one refusal.
const ERRORS_TOLD_MAX: usize = 5;

/// The schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the JSON schema of the structured output cannot be used: {0}")]
pub struct BadSchema(pub String);

/// The tool for one schema, and the answer once it is there.
#[derive(Debug)]
pub struct StructuredOutput {
    schema: String,
    validator: jsonschema::Validator,
    accepted: Mutex<Option<Value>>,
}

impl StructuredOutput {
    /// A tool for a schema, which must be that of an object.
    pub fn new(schema: &Value) -> Result<Self, BadSchema> {
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(BadSchema("it must describe an object ({\"type\": \"object\", ...})".to_owned()));
        }
        let validator = jsonschema::validator_for(schema).map_err(|error| BadSchema(error.to_string()))?;
        Ok(Self { schema: schema.to_string(), validator, accepted: Mutex::new(None) })
    }

    /// The answer, if one was accepted; taken out, so that the next submission starts without.
    pub fn take(&self) -> Option<Value> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The input as it is meant, or what is wrong with it. Models wrap the object in another or write it as text;
    /// where only one reading fits the schema, that is what was meant.
    fn meant(&self, input: &Value) -> Result<Value, String> {
        let errors = match self.check(input) {
            Ok(()) => return Ok(input.clone()),
            Err(errors) => errors,
        };
        let mut readings = Vec::new();
        if let Value::Object(fields) = input
            && fields.len() == 1
        {
            for inner in fields.values() {
                readings.push(inner.clone());
                readings.extend(inner.as_str().and_then(|text| serde_json::from_str(text).ok()));
            }
        }
        let fitting = readings.into_iter().find(|reading| reading.is_object() && self.check(reading).is_ok());
        fitting.ok_or(errors)
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        let errors: Vec<String> = self
            .validator
            .iter_errors(value)
            .take(ERRORS_TOLD_MAX)
            .map(|error| {
                let place = error.instance_path().to_string();
                let place = if place.is_empty() { "the input".to_owned() } else { place };
                format!("{place}: {error}")
            })
            .collect();
        if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
    }
}

impl Tool for StructuredOutput {
    fn spec(&self) -> Spec<'_> {
        Spec {
            name: NAME,
            description: "Gives the final answer in the form the user asked for. Call it exactly once, at the end.",
            input_schema: &self.schema,
        }
    }

    fn safety(&self, _: &Value) -> Safety {
        // The end of a submission is no place for company.
        Safety::Alone
    }

    fn access(&self, _: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        Ok(Access::Nothing)
    }

    fn run<'a>(&'a self, input: Value, _: &'a ToolCx) -> BoxFuture<'a, Output> {
        let output = match self.meant(&input) {
            Ok(answer) => {
                let output = Output::text("The structured output was accepted.").with_detail(answer.clone());
                *self.accepted.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
                output
            }
            Err(errors) => Output::error(format!("The output does not fit the schema: {errors}")),
        };
        async move { output }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool() -> StructuredOutput {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
        StructuredOutput::new(&schema).unwrap()
    }

    fn check(input: &Value, expected: Result<Value, &str>) {
        match (tool().meant(input), expected) {
            (Ok(meant), Ok(expected)) => assert_eq!(meant, expected),
            (Err(errors), Err(part)) => assert!(errors.contains(part), "{errors}"),
            (meant, expected) => panic!("{input}: {meant:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn what_is_meant_is_unwrapped_if_only_one_reading_fits() {
        check(&json!({"n": 1}), Ok(json!({"n": 1})));
        check(&json!({"output": {"n": 1}}), Ok(json!({"n": 1})));
        check(&json!({"output": "{\"n\": 1}"}), Ok(json!({"n": 1})));
        check(&json!({"n": "1"}), Err("/n"));
        check(&json!({}), Err("\"n\" is a required property"));
        check(&json!({"a": {"n": 1}, "b": 2}), Err("the input"));
    }

    #[test]
    fn a_schema_must_be_one_of_an_object() {
        assert!(StructuredOutput::new(&json!({"type": "array"})).is_err());
        assert!(
            StructuredOutput::new(&json!({"type": "object", "properties": {"a": {"type": "nonsense"}}}))
                .is_err()
        );
    }
}
