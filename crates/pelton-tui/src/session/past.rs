//! Going back: the prompts there are, and what is taken back with them.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pelton::Engine;
use pelton::history::{Entry, Kind};
use pelton_serve::Served;
use serde_json::{Value, json};

use super::{Left, Session};
use crate::app::{Past, Undo};
use crate::draft::said;
use crate::input::{Image, Submission};
use crate::theme::Role;

impl Session<'_> {
    pub(super) async fn rewind(&mut self, engine: &mut Engine, undo: Undo) {
        if undo.conversation && !self.is_somewhere() {
            return;
        }
        if undo.files {
            let Served::Later(work) =
                self.handles.ask("rewind_files", json!({"user_message_id": undo.to.id}))
            else {
                return self.app.say("files cannot be taken back here", Role::Error);
            };
            match work.await {
                Ok(done) => {
                    for left in done["left"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                        self.app.say(&format!("left as it is: {left}"), Role::Warning);
                    }
                    self.app.say("files are as they were", Role::Faint);
                }
                Err(why) => return self.app.say(&why, Role::Error),
            }
        }
        if undo.conversation {
            let Past { id, words } = undo.to;
            let entry = engine.history().iter().find(|entry| entry.id == id);
            let images = entry.map(|entry| pictures(entry)).unwrap_or_default();
            let said = Submission { images, ..said(&words) };
            let (session, stands) = (engine.session_id(), self.stands());
            self.leave(Left::Before { session, prompt: id, said, stands });
        }
    }
}

/// Prompts that can be gone back to, the newest first.
pub(super) fn prompts_of(engine: &Engine) -> Vec<Past> {
    let prompts =
        engine.history().iter().rev().filter(|entry| matches!(entry.kind, Kind::Prompt { meta: false }));
    let words = |entry: &Arc<Entry>| {
        let words = crate::feed::typed(entry);
        (!words.is_empty()).then_some(Past { id: entry.id, words })
    };
    prompts.filter_map(words).collect()
}

/// The pictures that went along with a prompt.
fn pictures(entry: &Entry) -> Vec<Image> {
    let blocks: Value = serde_json::from_slice(&entry.json).unwrap_or_default();
    let blocks = blocks.as_array().into_iter().flatten().filter(|block| block["type"] == "image");
    let picture = |block: &Value| {
        let source = &block["source"];
        let data = STANDARD.decode(source["data"].as_str()?).ok()?;
        Some(Image::Bytes { media_type: source["media_type"].as_str()?.to_owned(), data: data.into() })
    };
    blocks.filter_map(picture).collect()
}
