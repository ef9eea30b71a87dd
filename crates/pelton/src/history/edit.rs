//! Changes of what the model is sent. An edit names what it is about and holds no copy of it, so that the record of a
//! conversation can hold every edit, a resumed session can make them again, and each can be undone.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::entry::{Entry, EntryId, Kind};
use super::foreign;
use super::media::MediaPlace;
use super::repair::LEFT_OUT;

/// Names an edit.
pub type EditId = Uuid;

/// One change of what the model is sent. What was said stays as it is.
///
/// ```
/// use pelton::history::Edit;
///
/// let edit = Edit::Clear { calls: vec!["toolu_01".to_owned()] };
/// assert_eq!(serde_json::to_string(&edit)?, r#"{"op":"clear","calls":["toolu_01"]}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Edit {
    /// Something else stands in the place of everything between two entries, both included. Calls and their results go
    /// together, so it may be some more.
    Replace {
        /// The first of them.
        from: EntryId,
        /// The last of them.
        to: EntryId,
        /// What stands there.
        by: By,
    },
    /// Results lose their words; that there was a result, and how it went, stays.
    Clear {
        /// The calls they answer.
        calls: Vec<String>,
    },
    /// A result is shown in part.
    Shorten {
        /// The call it answers.
        call: String,
        /// What is shown of it.
        text: String,
    },
    /// Images and documents become notes.
    Media {
        /// Where they are.
        places: Vec<MediaPlace>,
    },
    /// Blocks of some kinds go, or become notes where something has to stand.
    Blocks {
        /// The kinds, as the blocks themselves name them.
        kinds: Vec<String>,
    },
    /// An earlier edit counts no more.
    Undo {
        /// Which.
        edit: EditId,
    },
}

impl Edit {
    /// Whether anything it names is among these entries, or was put there by these edits.
    pub(crate) fn finds(&self, entries: &[Arc<Entry>], edits: &[Edited]) -> bool {
        let is_call = |name: &str| {
            entries
                .iter()
                .any(|entry| matches!(&entry.kind, Kind::ToolResult { call, .. } if **call == *name))
        };
        let is_entry = |id: EntryId| {
            entries.iter().any(|entry| entry.id == id) || edits.iter().any(|edited| edited.id == id)
        };
        match self {
            Self::Replace { from, to, .. } => is_entry(*from) && is_entry(*to),
            Self::Clear { calls } => calls.iter().any(|call| is_call(call)),
            Self::Shorten { call, .. } => is_call(call),
            Self::Media { places } => {
                places.iter().any(|place| is_call(&place.of) || place.of.parse().is_ok_and(is_entry))
            }
            Self::Blocks { kinds } => entries.iter().any(|entry| foreign::has(entry, kinds)),
            Self::Undo { edit } => edits.iter().any(|edited| edited.id == *edit),
        }
    }
}

/// What takes the place of entries.
///
/// ```
/// use pelton::history::{By, Edit};
///
/// let (from, to) = (uuid::Uuid::from_u128(1), uuid::Uuid::from_u128(2));
/// let edit = Edit::Replace { from, to, by: By::Words("We counted jars.".to_owned()) };
/// assert_eq!(serde_json::to_value(&edit)?["by"]["words"], "We counted jars."); // as the transcript keeps it
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum By {
    /// Nothing.
    Nothing,
    /// A note that something was left out.
    Note,
    /// These words.
    Words(String),
    /// An entry of the record that stands nowhere else.
    Entry(EntryId),
}

/// An edit in its place among what was said.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([text("Four.")]).reply([text("Five.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # options.sessions = Some(pelton::Sessions { config_dir: dir.path().join("config"), durability: Default::default() });
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::{Prompt, transcript};
///
/// engine.submit(Prompt::text("What is two and two?")?).for_each(async |_| {}).await;
/// engine.submit(Prompt::text("And one more?")?).for_each(async |_| {}).await;
/// let reshaped = engine.reshape(&"drop 1".parse()?).await?;
/// let recorded = transcript::read(&engine.transcript_file().ok_or("it is recorded")?)?;
/// assert_eq!(recorded.edits[0].id, reshaped.edits[0]);
/// assert_eq!(recorded.edits[0].at, recorded.entries.len()); // behind all that was said so far
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Edited {
    /// Its name.
    pub id: EditId,
    /// How many entries stand before it.
    pub at: usize,
    /// Who made it.
    pub by: String,
    /// What it changes.
    pub edit: Edit,
    /// The first of several edits that were made as one, if it is a later one of these: they are undone as one.
    pub with: Option<EditId>,
}

impl Edited {
    /// An edit behind so many entries.
    pub(crate) fn new(id: EditId, at: usize, by: impl Into<String>, edit: Edit) -> Self {
        Self { id, at, by: by.into(), edit, with: None }
    }

    /// The name of what it puts in the place of what it takes away.
    pub(super) fn stand_in_id(&self) -> Option<EntryId> {
        match &self.edit {
            Edit::Replace { by: By::Entry(entry), .. } => Some(*entry),
            Edit::Replace { by: By::Words(_) | By::Note, .. } => Some(self.id),
            _ => None,
        }
    }

    /// What stands in the place of what it takes away; `Err` if it names an entry that is not there.
    pub(super) fn stand_in(&self, entries: &[Arc<Entry>]) -> Result<Option<Arc<Entry>>, Missing> {
        let Edit::Replace { by, .. } = &self.edit else { return Ok(None) };
        match by {
            By::Nothing => Ok(None),
            By::Note => Ok(self.words(LEFT_OUT)),
            By::Words(words) => Ok(self.words(words)),
            By::Entry(id) => {
                entries.iter().rev().find(|entry| entry.id == *id).cloned().map(Some).ok_or(Missing)
            }
        }
    }

    /// Whether it puts this entry in the place of others.
    pub(crate) fn puts(&self, entry: EntryId) -> bool {
        matches!(&self.edit, Edit::Replace { by: By::Entry(id), .. } if *id == entry)
    }

    /// Whether this tells of what it took away.
    pub(crate) fn tells(&self, entry: EntryId) -> bool {
        match &self.edit {
            Edit::Replace { by: By::Words(_), .. } => self.id == entry,
            _ => self.puts(entry),
        }
    }

    /// What is sent first after it, if that was this before.
    pub(crate) fn first_after(&self, first: Option<EntryId>) -> Option<EntryId> {
        match &self.edit {
            Edit::Replace { from, by, .. } if Some(*from) == first => match by {
                By::Entry(entry) => Some(*entry),
                By::Words(_) | By::Note => Some(self.id),
                By::Nothing => first,
            },
            _ => first,
        }
    }

    /// Words under the name of the edit, so that a later one can name them.
    fn words(&self, words: &str) -> Option<Arc<Entry>> {
        let json = Bytes::from(json!([{"type": "text", "text": words}]).to_string());
        Entry::new(self.id, Timestamp::UNIX_EPOCH, Kind::Prompt { meta: true }, json).ok().map(Arc::new)
    }
}

/// Something an edit names is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Missing;

/// The edits that count no more.
pub(super) fn undone(edits: &[Edited]) -> HashSet<EditId> {
    let undone = |edited: &Edited| match edited.edit {
        Edit::Undo { edit } => Some(edit),
        _ => None,
    };
    edits.iter().filter_map(undone).collect()
}

/// Entries that stand nowhere but where an edit puts them.
pub(super) fn owned(edits: &[Edited]) -> HashSet<EntryId> {
    let owned = |edited: &Edited| match edited.edit {
        Edit::Replace { by: By::Entry(entry), .. } => Some(entry),
        _ => None,
    };
    edits.iter().filter_map(owned).collect()
}
