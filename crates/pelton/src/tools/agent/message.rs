//! Words for agents that were started before.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::tool::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx, parse_input};
use super::{Launched, Letter, NotStarted, Written};

/// The tool's name.
pub(crate) const NAME: &str = "SendMessage";

/// The tool.
pub(crate) fn tool() -> Arc<dyn Tool> {
    Arc::new(SendMessage)
}

struct SendMessage;

const SPEC: Spec<'static> = Spec {
    name: NAME,
    description: include_str!("send_message.md"),
    input_schema: r#"{"type":"object","properties":{"to":{"type":"string"},"message":{"type":"string"}},"required":["to","message"]}"#,
};

#[derive(Deserialize)]
struct Input {
    to: String,
    message: String,
}

impl Input {
    fn letter(input: &Value) -> Result<Letter, InvalidInput> {
        let Self { to, message } = parse_input(input)?;
        let to = to.trim().to_owned();
        for (field, text) in [("to", to.as_str()), ("message", message.trim())] {
            if text.is_empty() {
                return Err(InvalidInput(format!("`{field}` is empty")));
            }
        }
        Ok(Letter { to, message })
    }
}

impl Tool for SendMessage {
    fn spec(&self) -> Spec<'_> {
        SPEC
    }

    fn safety(&self, _: &Value) -> Safety {
        // Two letters to one agent are read in the order in which they were written.
        Safety::Alone
    }

    fn access(&self, input: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        // Whoever is written to was allowed to work, and asks for itself what it may do.
        Input::letter(input).map(|_| Access::Nothing)
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let letter = match Input::letter(&input) {
                Ok(letter) => letter,
                Err(InvalidInput(why)) => return Output::unusable(why),
            };
            let Some(agents) = &cx.agents else {
                return Output::error("There are no agents here to be written to.");
            };
            let message = letter.message.clone();
            match Arc::clone(agents).write(letter, cx).await {
                Ok(Written::Delivered { agent_id }) => {
                    let words = format!("The agent {agent_id} runs and reads it with its next step.");
                    Output::text(words).with_detail(json!({"status": "delivered", "agentId": agent_id}))
                }
                Ok(Written::GoesOn(Launched { agent_id, output })) => {
                    let detail = json!({
                        "status": "async_launched",
                        "isAsync": true,
                        "agentId": agent_id,
                        "prompt": message,
                        "outputFile": output.to_string_lossy(),
                    });
                    Output::text(format!(
                        "The agent {agent_id} goes on in the background. You will be told its report when it ends, once and by itself."
                    ))
                    .with_detail(detail)
                }
                Err(NotStarted(why)) => Output::error(why),
            }
        })
    }
}
