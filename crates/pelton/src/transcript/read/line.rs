//! One line of a record: what it says, as far as anybody looks at it, and what it proves of itself.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::history::EditId;
use crate::permission::Mode;
use crate::transcript::list::is_program;
use crate::transcript::proof::Proof;
use crate::transcript::write::KeptBehind;

/// What is looked at in a line. Everything else is left alone.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::transcript) struct Line<'a> {
    #[serde(default, deserialize_with = "known")]
    pub r#type: Option<String>,
    #[serde(default, deserialize_with = "known")]
    pub subtype: Option<String>,
    #[serde(default, deserialize_with = "known")]
    pub kind: Option<String>,
    #[serde(default, deserialize_with = "known")]
    pub uuid: Option<Uuid>,
    #[serde(default, deserialize_with = "known")]
    pub uuids: Vec<Uuid>,
    #[serde(borrow)]
    pub places: Option<&'a RawValue>,
    #[serde(borrow)]
    pub request: Option<&'a RawValue>,
    #[serde(borrow)]
    pub models: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "known")]
    pub queued_ids: Vec<Uuid>,
    #[serde(default, deserialize_with = "parent")]
    pub parent_uuid: Option<Uuid>,
    #[serde(default, deserialize_with = "parent")]
    pub logical_parent_uuid: Option<Uuid>,
    #[serde(default, deserialize_with = "known")]
    pub edit_id: Option<EditId>,
    #[serde(default, deserialize_with = "known")]
    pub by: Option<String>,
    #[serde(default, deserialize_with = "known")]
    pub with: Option<EditId>,
    #[serde(borrow)]
    pub edit: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "known")]
    pub kept: Option<KeptBehind>,
    #[serde(default, deserialize_with = "known")]
    pub session_id: Option<Uuid>,
    #[serde(default, deserialize_with = "known")]
    pub agent_setting: Option<String>,
    #[serde(default, deserialize_with = "known")]
    pub permission_mode: Option<String>,
    #[serde(default, deserialize_with = "known")]
    entrypoint: Option<String>,
    /// What shows that it is as it was written.
    #[serde(borrow)]
    proof: Option<&'a RawValue>,
    /// Whoever copied it into another session gave other names to all lines.
    #[serde(borrow)]
    forked_from: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "known")]
    pub timestamp: Option<String>,
    #[serde(default, deserialize_with = "known")]
    pub is_sidechain: bool,
    #[serde(default, deserialize_with = "known")]
    pub is_meta: bool,
    #[serde(default, deserialize_with = "known")]
    pub is_compact_summary: bool,
    #[serde(default, deserialize_with = "known")]
    pub is_api_error_message: bool,
    #[serde(default, deserialize_with = "known")]
    pub request_id: Option<String>,
    #[serde(rename = "toolUseID", default, deserialize_with = "known")]
    pub tool_use_id: Option<String>,
    #[serde(borrow)]
    pub message: Option<&'a RawValue>,
    #[serde(borrow)]
    pub tool_use_result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub attachment: Option<&'a RawValue>,
}

/// A field, if it is what it should be. One that is damaged takes nothing with it.
pub(super) fn known<'de, T: DeserializeOwned + Default, D: Deserializer<'de>>(
    json: D,
) -> Result<T, D::Error> {
    let field = <&'de RawValue>::deserialize(json)?;
    Ok(serde_json::from_str(field.get()).unwrap_or_default())
}

/// The name of a line that is followed. What is no name is that of nobody: something was followed, and nothing says what.
pub(in crate::transcript) fn parent<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Uuid>, D::Error> {
    let named = Option::<&'de RawValue>::deserialize(json)?;
    Ok(named.map(|named| serde_json::from_str(named.get()).unwrap_or(Uuid::max())))
}

/// What a whole line proves of itself.
pub(in crate::transcript) struct Proven {
    /// Nothing speaks against its words being those that were written.
    pub words: bool,
    /// Or against its standing behind the line that it names.
    pub place: bool,
}

impl Proven {
    pub fn of(line: &str) -> Self {
        let line = serde_json::from_str::<Line<'_>>(line);
        let words = line.as_ref().map_or(true, Line::is_as_written);
        Self { words, place: line.as_ref().map_or(true, Line::follows_what_it_says) }
    }
}

impl Line<'_> {
    /// What ran unasked when it was said, where somebody was there who let it.
    pub fn mode_of_somebody(&self) -> Option<Mode> {
        let is_somebodys = self.entrypoint.as_deref().is_some_and(|entrypoint| !is_program(entrypoint));
        let mode = self.permission_mode.as_deref().filter(|_| is_somebodys);
        mode.and_then(Mode::from_name)
    }

    /// What it was written with. What is no text proves nothing.
    fn proof(&self) -> Option<Cow<'_, str>> {
        Some(serde_json::from_str(self.proof?.get()).unwrap_or_default())
    }

    /// Whether something in it was not to be written down: the model was sent something else.
    pub fn hides_something(&self) -> bool {
        self.proof().is_some_and(|proof| Proof(&proof).hides_something())
    }

    pub fn follows_what_it_says(&self) -> bool {
        self.proven_behind(self.parent_uuid.or(self.logical_parent_uuid))
    }

    /// Whether nothing speaks against its standing behind a line. Copies of sessions have other names for all lines.
    pub fn proven_behind(&self, parent: Option<Uuid>) -> bool {
        let proof = self.proof().filter(|_| self.forked_from.is_none());
        proof.is_none_or(|proof| Proof(&proof).follows(parent))
    }

    /// Whether nothing speaks against its words being those that were written.
    pub fn is_as_written(&self) -> bool {
        #[derive(Deserialize)]
        struct Content<'a> {
            #[serde(borrow)]
            content: &'a RawValue,
        }
        let Some(proof) = self.proof() else { return true };
        let proof = Proof(&proof);
        if proof.hides_something() {
            return true;
        }
        let content =
            self.message.and_then(|message| serde_json::from_str::<Content<'_>>(message.get()).ok());
        let kind = self.r#type.as_deref().unwrap_or_default();
        content.is_some_and(|message| proof.is_of(kind, message.content.get()))
    }
}

/// The kinds of lines a conversation can begin with.
pub(in crate::transcript) const LINKS: [&str; 5] = ["user", "assistant", "system", "attachment", "progress"];
