//! What was taken back. Its lines stay where they are: whoever tells what was said asks here which of them do not count.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;
use std::path::Path;

use memchr::{memchr, memmem};
use serde::Deserialize;
use uuid::Uuid;

use super::TOMBSTONE_LINE;
use super::blobs::lines_as_they_are;

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    r#type: Cow<'a, str>,
    #[serde(default)]
    uuids: Vec<Uuid>,
}

/// The messages of a session's file that were taken back, by the ids of their lines: answers that were asked for again, of which
/// nothing counts. [`read`](super::read()) leaves them out.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let file = dir.path().join("session.jsonl");
/// let id = "00000000-0000-4000-8000-000000000001";
/// let said = format!(r#"{{"type":"assistant","uuid":"{id}","message":{{"role":"assistant","content":"Half of"}}}}"#);
/// let taken_back = format!(r#"{{"type":"tombstone","uuids":["{id}"]}}"#);
/// std::fs::write(&file, [said, taken_back].join("\n"))?;
/// assert!(pelton::transcript::withdrawn(&file)?.contains(&id.parse()?));
/// assert!(pelton::transcript::read(&file)?.entries.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn withdrawn(session_file: &Path) -> io::Result<HashSet<Uuid>> {
    let finder = memmem::Finder::new(TOMBSTONE_LINE);
    let mut withdrawn = HashSet::new();
    for line in lines_as_they_are(session_file)? {
        let line = line?;
        if finder.find(&line).is_none() {
            continue;
        }
        // A crash can leave zeros in front of a line.
        let start = memchr(b'{', &line).unwrap_or(line.len());
        if let Ok(Line { r#type, uuids }) = serde_json::from_slice(&line[start..])
            && r#type == TOMBSTONE_LINE
        {
            withdrawn.extend(uuids);
        }
    }
    Ok(withdrawn)
}
