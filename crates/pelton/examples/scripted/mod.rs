//! What stands in for a model and for a front end, so that the examples need no key, no network and few lines.

#![allow(dead_code, reason = "no example needs all of it")]

use std::error::Error;

use futures::StreamExt;
use pelton::{Engine, Event, Options, Prompt};
use pelton_model::{Auth, Endpoint, Secret};
use pelton_testkit::{Script, ScriptedModel};

/// A model that plays a script, for as long as it is kept, and where it is. To ask a real one, put its address and your
/// key into the endpoint.
pub async fn model(script: Script) -> Result<(ScriptedModel, Endpoint), Box<dyn Error>> {
    let model = script.start().await?;
    let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
    Ok((model, endpoint))
}

/// Submits one prompt, and waits for what comes of it.
pub async fn answer(options: Options, prompt: &str) -> Result<String, Box<dyn Error>> {
    let mut engine = Engine::new(options)?;
    let last = engine.submit(Prompt::text(prompt)?).fold(None, async |_, event| Some(event)).await;
    match last {
        Some(Event::Result(outcome)) if !outcome.is_error => Ok(outcome.text.clone()),
        other => Err(format!("{other:?}").into()),
    }
}
