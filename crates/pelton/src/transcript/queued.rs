//! Prompts that were taken but not consumed when the file ended.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

/// A prompt that waits.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # options.sessions = Some(pelton::Sessions { config_dir: dir.path().join("config"), durability: Default::default() });
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::{Priority, Prompt, transcript};
///
/// engine.queue().add(Prompt::text("And on.")?, Priority::Later).await?;
/// let file = engine.transcript_file().ok_or("it is recorded")?;
/// drop(engine); // it never came to read it
/// let waits = transcript::read(&file)?.queued;
/// assert!(waits[0].content.windows(7).any(|words| words == b"And on."));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedPrompt {
    /// Its id.
    pub id: Uuid,
    /// Its content array.
    pub content: Bytes,
    /// It means what it says.
    pub verbatim: bool,
}

/// What is looked at in a line about the queue.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Operation<'a> {
    operation: String,
    prompt_id: Option<Uuid>,
    #[serde(default)]
    prompt_ids: Vec<Uuid>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    client_composed: bool,
}

/// What waits, by the lines read so far.
#[derive(Debug, Default)]
pub(super) struct Waiting(Vec<QueuedPrompt>);

impl Waiting {
    /// Reads a line about the queue. Lines of other programs name no prompt, and are left alone.
    pub fn read(&mut self, line: &str) {
        let Ok(operation) = serde_json::from_str::<Operation<'_>>(line) else { return };
        match (operation.operation.as_str(), operation.prompt_id, operation.content) {
            ("enqueue", Some(id), Some(content)) => {
                let content = Bytes::copy_from_slice(content.get().as_bytes());
                self.0.push(QueuedPrompt { id, content, verbatim: operation.client_composed });
            }
            ("enqueue", ..) => {}
            _ => self.consumed(&operation.prompt_ids),
        }
    }

    /// These are part of the conversation, or were taken back.
    pub fn consumed(&mut self, ids: &[Uuid]) {
        self.0.retain(|queued| !ids.contains(&queued.id));
    }

    pub fn finish(self) -> Vec<QueuedPrompt> {
        self.0
    }
}
