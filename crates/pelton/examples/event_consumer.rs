//! A consumer of events: it keeps a small account of what a run did, and never touches the run itself.
//!
//! The model is played from a script, so this needs no key and no network.
//!
//! ```sh
//! cargo run -p pelton --example event_consumer
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::path::Path;

use futures::StreamExt;
use pelton::{Engine, Event, Options, Prompt};
use pelton_model::{Auth, Endpoint, Secret};
use pelton_testkit::{Script, text, tool};
use serde_json::json;

/// What a run did.
#[derive(Debug, Default)]
struct Account {
    asked: u32,
    calls: BTreeMap<String, u32>,
    running_most: usize,
    went_on: Vec<&'static str>,
}

impl Account {
    /// Takes note of an event. Kinds that it does not know are none of its business: there may be more of them one day.
    fn note(&mut self, event: &Event) {
        match event {
            Event::Requesting => self.asked += 1,
            Event::ToolStarted(call) => {
                *self.calls.entry(call.tool.to_string()).or_default() += 1;
                self.running_most = self.running_most.max(call.running);
            }
            Event::Transition(why) => self.went_on.push(why.name()),
            _ => {}
        }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls: u32 = self.calls.values().sum();
        writeln!(f, "the model was asked {} times; went on for: {:?}", self.asked, self.went_on)?;
        writeln!(f, "{calls} calls, at most {} at once", self.running_most)?;
        self.calls.iter().try_for_each(|(tool, count)| writeln!(f, "  {tool}: {count}"))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    print!("{}", report(&std::env::current_dir()?).await?);
    Ok(())
}

pub async fn report(dir: &Path) -> Result<String, Box<dyn Error>> {
    let model = Script::new()
        .reply([tool("Glob", json!({"pattern": "**/*.rs"})), tool("Bash", json!({"command": "ls"}))])
        .reply([text("That is all.")])
        .start()
        .await?;
    let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));

    let mut engine = Engine::new(Options::new(dir, endpoint))?;
    let mut account = Account::default();
    let mut events = engine.submit(Prompt::text("What is here?")?);
    while let Some(event) = events.next().await {
        account.note(&event);
    }
    Ok(account.to_string())
}
