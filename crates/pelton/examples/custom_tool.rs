//! A tool of your own in thirty lines: what the model is told about it, what it touches, and what it does.
//!
//! The model is played from a script, so this needs no key and no network.
//!
//! ```sh
//! cargo run -p pelton --example custom_tool
//! ```

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::StreamExt;
use futures::future::BoxFuture;
use pelton::tools::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx, parse_input};
use pelton::{Engine, Event, Options, Prompt};
use pelton_model::{Auth, Endpoint, Secret};
use pelton_testkit::{Script, text, tool};
use serde::Deserialize;
use serde_json::{Value, json};

/// Counts the words of a file.
struct CountWords;

#[derive(Deserialize)]
struct Input {
    file_path: PathBuf,
}

impl Tool for CountWords {
    fn spec(&self) -> Spec<'_> {
        Spec {
            name: "CountWords",
            description: "Counts the words of a text file.",
            input_schema: r#"{"type":"object","properties":{"file_path":{"type":"string"}},"required":["file_path"]}"#,
        }
    }

    fn safety(&self, _input: &Value) -> Safety {
        Safety::Shared // it only reads, so it may run beside other calls
    }

    fn access(&self, input: &Value, cx: &ToolCx) -> Result<Access, InvalidInput> {
        parse_input::<Input>(input).map(|input| Access::Read(cx.absolute(&input.file_path)))
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let Ok(input) = parse_input::<Input>(&input) else {
                return Output::error("`file_path` is missing");
            };
            match tokio::fs::read_to_string(cx.absolute(&input.file_path)).await {
                Ok(content) => Output::text(format!("{} words", content.split_whitespace().count())),
                Err(error) => Output::error(format!("cannot read {}: {error}", input.file_path.display())),
            }
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", count(&std::env::current_dir()?, "Cargo.toml").await?);
    Ok(())
}

pub async fn count(dir: &Path, file: &str) -> Result<String, Box<dyn Error>> {
    let model = Script::new()
        .reply([tool("CountWords", json!({"file_path": file}))])
        .reply([text("${last_tool_result}, says the tool.")])
        .start()
        .await?;
    let mut options = Options::new(dir, Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any"))));
    options.tools.push(Arc::new(CountWords));

    let mut engine = Engine::new(options)?;
    let last = engine.submit(Prompt::text("How many words?")?).fold(None, async |_, event| Some(event)).await;
    match last {
        Some(Event::Result(outcome)) if !outcome.is_error => Ok(outcome.text.clone()),
        other => Err(format!("{other:?}").into()),
    }
}
