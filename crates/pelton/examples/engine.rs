//! An engine in twenty lines: a prompt goes in, events come out, the last one is the result.
//!
//! The model is played from a script, so this needs no key and no network.
//!
//! ```sh
//! cargo run -p pelton --example engine
//! ```

mod scripted; // stands in for the model

use std::error::Error;
use std::path::Path;

use futures::StreamExt;
use pelton::{Engine, Event, Options, Prompt};
use pelton_model::Endpoint;
use pelton_testkit::{Script, text, tool};
use serde_json::json;

pub async fn ask(dir: &Path, endpoint: Endpoint) -> Result<String, Box<dyn Error>> {
    let mut engine = Engine::new(Options::new(dir, endpoint))?;
    let mut events = engine.submit(Prompt::text("Which TOML files are here?")?);
    while let Some(event) = events.next().await {
        match event {
            Event::ToolStarted(call) => println!("[{} {}]", call.tool, call.input),
            Event::Result(outcome) => return Ok(outcome.answer()?),
            _ => {}
        }
    }
    Err("the stream ends in a result".into())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (_model, endpoint) = scripted::model(script()).await?;
    println!("{}", ask(&std::env::current_dir()?, endpoint).await?);
    Ok(())
}

pub fn script() -> Script {
    Script::new()
        .reply([text("Let me look."), tool("Glob", json!({"pattern": "*.toml"}))])
        .reply([text("I found this:\n${last_tool_result}")])
}
