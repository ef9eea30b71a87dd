//! Going on from somewhere else than the end, or somewhere else than in the same file.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use memchr::memmem;
use uuid::Uuid;

use super::Loaded;
use super::blobs::Blobs;
use crate::history::{Entry, Kind};
use crate::limits::TRANSCRIPT_LINE_BYTES_MAX;
use crate::prompt::TASK_NEWS;

impl Loaded {
    /// The conversation as it was before a prompt was sent. `None` if it has no such prompt.
    ///
    /// ```
    /// let line = |id: u32, parent: &str, words: &str| {
    ///     format!(r#"{{"type":"user","uuid":"00000000-0000-4000-8000-00000000000{id}","parentUuid":{parent},"message":{{"role":"user","content":"{words}"}}}}"#)
    /// };
    /// let file = [line(1, "null", "Hi"), line(2, "\"00000000-0000-4000-8000-000000000001\"", "Ho")].join("\n");
    /// let loaded = pelton::transcript::read_from(file.as_bytes())?;
    /// let second = loaded.entries[1].id;
    /// assert_eq!(loaded.without_turn_of(second).map(|part| part.entries.len()), Some(1));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn without_turn_of(mut self, prompt: Uuid) -> Option<Self> {
        let mut first = self.entries.iter().position(|entry| entry.id == prompt)?;
        // What was said around it was said because of it. A summary was not.
        let is_around = |entry: &Entry| {
            matches!(entry.kind, Kind::Prompt { meta: true })
                && !self.edits.iter().any(|edit| edit.puts(entry.id))
        };
        while first > 0 && is_around(&self.entries[first - 1]) {
            first -= 1;
        }
        self.keep(first);
        Some(self)
    }

    /// Whether nothing but the turn of one prompt stands behind a message. An error says what else does.
    ///
    /// ```
    /// let line = |id: u32, parent: &str, words: &str| {
    ///     format!(r#"{{"type":"user","uuid":"00000000-0000-4000-8000-00000000000{id}","parentUuid":{parent},"message":{{"role":"user","content":"{words}"}}}}"#)
    /// };
    /// let file = [line(1, "null", "Hi"), line(2, "\"00000000-0000-4000-8000-000000000001\"", "Ho")].join("\n");
    /// let loaded = pelton::transcript::read_from(file.as_bytes())?;
    /// let [first, second] = [loaded.entries[0].id, loaded.entries[1].id];
    /// assert!(loaded.has_only_the_turn_of(second, first).is_ok());
    /// assert!(loaded.has_only_the_turn_of(first, second).is_err(), "it stands in front");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn has_only_the_turn_of(&self, prompt: Uuid, behind: Uuid) -> Result<(), String> {
        let place = |id: Uuid| self.entries.iter().position(|entry| entry.id == id);
        let at = place(behind).ok_or_else(|| format!("the conversation has no message {behind}"))?;
        let dropped = &self.entries[at + 1..];
        let first = dropped.iter().position(|entry| entry.id == prompt);
        let first = first.ok_or_else(|| format!("the prompt {prompt} does not stand behind {behind}"))?;
        let is_meta = |entry: &Entry| matches!(entry.kind, Kind::Prompt { meta: true });
        let kept = dropped[..first].iter().rfind(|entry| !is_meta(entry));
        if let Some(kept) = kept {
            return Err(format!(
                "{} behind {behind} is part of a turn that stays: go on from there",
                kept.id
            ));
        }
        let is_another = |entry: &&Arc<Entry>| match entry.kind {
            Kind::Prompt { meta: false } => true,
            Kind::Prompt { meta: true } => memmem::find(&entry.json, TASK_NEWS.as_bytes()).is_some(),
            _ => false,
        };
        match dropped[first + 1..].iter().find(is_another) {
            Some(another) => Err(format!("{} came in the meantime, and would be dropped, too", another.id)),
            None => Ok(()),
        }
    }

    fn keep(&mut self, entries: usize) {
        self.entries.truncate(entries);
        self.newest = self.entries.last().map(|entry| entry.id);
        self.snips.retain(|snip| snip.at <= entries);
        self.edits.retain(|edited| edited.at <= entries);
        (self.undecided, self.deferred) = (Vec::new(), None);
        self.goes_back = true;
    }
}

/// Copies a session's file under another id, line by line, with what is kept beside it. What is there already is not overwritten.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let (from, to) = (dir.path().join("a.jsonl"), dir.path().join("new/b.jsonl"));
/// # let (one, other) = (uuid::Uuid::from_u128(1), uuid::Uuid::from_u128(2));
/// std::fs::write(&from, format!("{{\"type\":\"summary\",\"sessionId\":\"{one}\"}}\n"))?;
/// pelton::transcript::copy_as(&from, &to, other)?;
/// assert!(std::fs::read_to_string(&to)?.contains(&other.to_string()));
/// assert!(pelton::transcript::copy_as(&from, &to, other).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn copy_as(from: &Path, to: &Path, session: Uuid) -> io::Result<()> {
    let mut lines = BufReader::new(fs::File::open(from)?);
    if let Some(dir) = to.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    let mut copy = io::BufWriter::new(file);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        if line.len() <= TRANSCRIPT_LINE_BYTES_MAX {
            copy.write_all(&renamed(&line, session))?;
        }
        line.clear();
    }
    Blobs::beside(from).share(&Blobs::beside(to))?;
    copy.into_inner().map_err(io::IntoInnerError::into_error)?.sync_data()
}

/// Moves a session's file to another place, with what is kept beside it. What is there already is not overwritten, and what could not be
/// moved whole stays where it was.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let session = uuid::Uuid::from_u128(1);
/// # let (from, to) = (dir.path().join(format!("{session}.jsonl")), dir.path().join(format!("new/{session}.jsonl")));
/// # std::fs::write(&from, "{}\n")?;
/// pelton::transcript::move_to(&from, &to)?;
/// assert!(to.exists() && !from.exists());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn move_to(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(dir) = to.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let (beside, beside_there) = (from.with_extension(""), to.with_extension(""));
    if to.symlink_metadata().is_ok() || beside_there.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(from, to)?;
    match fs::rename(&beside, &beside_there) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            fs::rename(to, from)?;
            Err(error)
        }
        _ => Ok(()),
    }
}

/// The same line for another session. Inside of texts quotes are escaped, so that only the field itself is found.
fn renamed(line: &[u8], session: Uuid) -> Vec<u8> {
    const FIELD: &[u8] = b"\"sessionId\":\"";
    const ID_BYTES: usize = 36;
    let mut renamed = line.to_vec();
    let found = line.windows(FIELD.len()).position(|bytes| bytes == FIELD);
    if let Some(at) = found.map(|at| at + FIELD.len())
        && line.get(at + ID_BYTES) == Some(&b'"')
    {
        renamed.splice(at..at + ID_BYTES, session.to_string().into_bytes());
    }
    renamed
}
