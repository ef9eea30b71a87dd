//! A tool of your own in thirty lines: what the model is told about it, what it touches, and what it does.
//!
//! The model is played from a script, so this needs no key and no network.
//!
//! ```sh
//! cargo run -p pelton --example custom_tool
//! ```

mod scripted; // stands in for the model, and submits the prompt

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use pelton::Options;
use pelton::tools::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx, parse_input};
use pelton_testkit::{Script, text, tool};
use serde_json::{Value, json};

/// Counts the words of a file.
struct CountWords;

impl Tool for CountWords {
    fn spec(&self) -> Spec<'_> {
        let input_schema =
            r#"{"type":"object","properties":{"file_path":{"type":"string"}},"required":["file_path"]}"#;
        Spec { name: "CountWords", description: "Counts the words of a text file.", input_schema }
    }

    fn safety(&self, _input: &Value) -> Safety {
        Safety::Shared // it only reads, so it may run beside other calls
    }

    fn access(&self, input: &Value, cx: &ToolCx) -> Result<Access, InvalidInput> {
        path(input, cx).map(Access::Read)
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let Ok(path) = path(&input, cx) else { return Output::error("`file_path` is missing") };
            match tokio::fs::read_to_string(&path).await {
                Ok(content) => Output::text(format!("{} words", content.split_whitespace().count())),
                Err(error) => Output::error(format!("cannot read {}: {error}", path.display())),
            }
        })
    }
}

fn path(input: &Value, cx: &ToolCx) -> Result<PathBuf, InvalidInput> {
    parse_input::<PathBuf>(&input["file_path"]).map(|path| cx.absolute(&path))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", count(&std::env::current_dir()?, "Cargo.toml").await?);
    Ok(())
}

pub async fn count(dir: &Path, file: &str) -> Result<String, Box<dyn Error>> {
    let script = Script::new()
        .reply([tool("CountWords", json!({"file_path": file}))])
        .reply([text("${last_tool_result}, says the tool.")]);
    let (_model, endpoint) = scripted::model(script).await?;
    let mut options = Options::new(dir, endpoint);
    options.tools.push(Arc::new(CountWords));
    scripted::answer(options, "How many words?").await
}
