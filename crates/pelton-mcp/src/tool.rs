//! One tool of a server.

use std::sync::Weak;

use futures::future::BoxFuture;
use pelton::ToolLimits;
use pelton::tools::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx};
use serde_json::{Value, json};

use crate::limits::{RESULT_CHARS_ASKED_MAX, WORDS_BYTES_MAX};
use crate::schema;
use crate::server::{Caller, Server};

/// About how many characters are one token.
const CHARS_PER_TOKEN: usize = 4;

/// A tool as its server described it.
pub(crate) struct ServedTool {
    name: String,
    description: String,
    input_schema: String,
    annotations: Value,
    pub always_sent: bool,
    /// A person is to be there when it runs, whatever is allowed.
    needs_person: bool,
    result_chars: Option<usize>,
    server: Weak<Server>,
}

impl ServedTool {
    /// Reads an entry of the server's list; what is wrong with it otherwise.
    pub fn read(server: &Weak<Server>, listed: &Value) -> Result<Self, (String, String)> {
        let name = listed.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| ("(a tool without a name)".to_owned(), "it has no name".to_owned()))?;
        let (schema, said) = schema::mend(listed.get("inputSchema")).map_err(|why| (name.to_owned(), why))?;
        let mut description =
            listed.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(said) = said {
            description = format!("{description}\n\n{said}").trim_start().to_owned();
        }
        let meta = |key: &str| listed.get("_meta").and_then(|meta| meta.get(key));
        let result_chars = meta("anthropic/maxResultSizeChars").and_then(Value::as_u64);
        Ok(Self {
            name: name.to_owned(),
            description: cut(description),
            input_schema: schema.to_string(),
            annotations: listed.get("annotations").cloned().unwrap_or_default(),
            always_sent: meta("anthropic/alwaysLoad").and_then(Value::as_bool).unwrap_or_default(),
            needs_person: meta("anthropic/requiresUserInteraction")
                .and_then(Value::as_bool)
                .unwrap_or_default(),
            result_chars: result_chars
                .map(|chars| usize::try_from(chars).unwrap_or(usize::MAX).min(RESULT_CHARS_ASKED_MAX)),
            server: Weak::clone(server),
        })
    }

    /// The tool, as clients are told of it.
    pub fn listed(&self) -> Value {
        let mut listed = json!({"name": self.name, "description": self.description});
        if !self.annotations.is_null() {
            let says = |hint: &str| self.annotations.get(hint).and_then(Value::as_bool).unwrap_or_default();
            listed["annotations"] = json!({
                "readOnly": says("readOnlyHint"),
                "destructive": says("destructiveHint"),
                "openWorld": says("openWorldHint"),
            });
        }
        listed
    }
}

impl Tool for ServedTool {
    fn spec(&self) -> Spec<'_> {
        Spec { name: &self.name, description: &self.description, input_schema: &self.input_schema }
    }

    fn safety(&self, _: &Value) -> Safety {
        match self.annotations.get("readOnlyHint") {
            Some(Value::Bool(true)) => Safety::Shared,
            _ => Safety::Alone,
        }
    }

    fn access(&self, _: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        Ok(match self.needs_person {
            true => Access::Person(format!("{} needs somebody to agree, in every mode.", self.name)),
            false => Access::Anything,
        })
    }

    fn result_chars_max(&self, limits: &ToolLimits) -> usize {
        let said =
            || Some(self.server.upgrade()?.surroundings().result_tokens_max?.saturating_mul(CHARS_PER_TOKEN));
        self.result_chars.or_else(said).unwrap_or(limits.result_chars_max)
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let Some(server) = self.server.upgrade() else {
                return Output::error("The server of this tool is gone.");
            };
            let caller = Caller::of(cx);
            let called = server.call(&self.name, input, &caller);
            match cx.cancel.run_until_cancelled(called).await {
                Some(Ok(output)) => output,
                Some(Err(why)) => Output::error(why),
                None => Output::error("Interrupted by the user."),
            }
        })
    }
}

/// As much of a text as is passed on.
pub(crate) fn cut(mut text: String) -> String {
    if text.len() > WORDS_BYTES_MAX {
        text.truncate(text.floor_char_boundary(WORDS_BYTES_MAX));
        text.push('…');
    }
    text
}
