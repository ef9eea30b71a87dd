//! Prompts that were taken but not consumed when the file ended.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

/// A prompt that waits.
///
/// See [`Queue`](crate::Queue).
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
