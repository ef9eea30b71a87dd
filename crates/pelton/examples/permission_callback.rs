//! Somebody in front of the engine: what the rules leave open is asked, one question at a time.
//!
//! This one allows writing, for the rest of the session as the question suggests, and refuses everything else. The model
//! is played from a script, so this needs no key and no network.
//!
//! ```sh
//! cargo run -p pelton --example permission_callback
//! ```

use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use futures::future::BoxFuture;
use pelton::permission::{Access, Answer, Asker, Question, Questions};
use pelton::{Engine, Event, Options, Prompt};
use pelton_model::{Auth, Endpoint, Secret};
use pelton_testkit::{Script, text, tool};
use serde_json::json;

/// Allows writing, and remembers what it was asked.
#[derive(Clone, Default)]
struct WritesOnly(Arc<Mutex<Vec<String>>>);

impl Asker for WritesOnly {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        let about = match &question.access {
            Access::Edit(path) | Access::Read(path) => {
                path.file_name().unwrap_or_default().to_string_lossy().into_owned()
            }
            Access::Shell(command) => command.clone(),
            _ => String::new(),
        };
        if let Ok(mut asked) = self.0.lock() {
            asked.push(format!("{} {about}", question.tool));
        }
        Box::pin(async move {
            match question.access {
                Access::Edit(_) => {
                    Answer::Allow { updated_input: None, updates: question.suggestions.clone() }
                }
                _ => Answer::deny("Files are not removed here."),
            }
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::temp_dir().join("pelton-example");
    std::fs::create_dir_all(&dir)?;
    let (answer, asked) = work(&dir).await?;
    println!("asked: {asked:?}\n{answer}");
    Ok(())
}

pub async fn work(dir: &Path) -> Result<(String, Vec<String>), Box<dyn Error>> {
    let file = dir.join("notes.txt");
    let model = Script::new()
        .reply([tool("Write", json!({"file_path": file, "content": "first\n"}))])
        .reply([tool("Write", json!({"file_path": file, "content": "second\n"}))])
        .reply([tool("Bash", json!({"command": "unlink notes.txt"}))])
        .reply([text("Written, but: ${last_tool_result}")])
        .start()
        .await?;
    let asker = WritesOnly::default();
    let mut options = Options::new(dir, Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any"))));
    options.questions = Some(Questions::to(asker.clone()));

    let mut engine = Engine::new(options)?;
    let last = engine.submit(Prompt::text("Take notes.")?).fold(None, async |_, event| Some(event)).await;
    let asked = asker.0.lock().map(|asked| asked.clone()).unwrap_or_default();
    match last {
        Some(Event::Result(outcome)) if !outcome.is_error => Ok((outcome.text.clone(), asked)),
        other => Err(format!("{other:?}").into()),
    }
}
