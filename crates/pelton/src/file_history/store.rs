//! The folder of one session: contents in one file that only grows, and a journal of what happened in another. Contents are
//! written before the line that speaks of them, so whenever the process dies, every line that is whole is true.

use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::state::{Change, Hash, Mark, SavedPath, State};
use crate::limits::FILE_HISTORY_JOURNAL_BYTES_MAX;

/// A line of the journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    /// The user said something.
    Message { id: Uuid },
    /// Contents that were added: hash, where, how long.
    Kept { contents: Vec<(Hash, u64, u64)> },
    /// What the trees look like, where that is news.
    Seen { entries: Vec<(SavedPath, Mark, State)> },
    /// The trees that are looked at.
    Roots { roots: Vec<SavedPath> },
    /// A call begins that may change these paths, which hold this now; without paths, anything in the trees.
    Begin {
        call: String,
        at_ns: i64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        paths: Option<Vec<(SavedPath, State)>>,
    },
    /// A call ended, and this is what it changed.
    End { call: String, changes: Vec<Change> },
    /// These changes are about to be made.
    Rewinding {
        id: Uuid,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        undoes: Option<Uuid>,
        changes: Vec<Change>,
    },
    /// They were made, but for these.
    Rewound {
        id: Uuid,
        #[serde(default)]
        not: Vec<SavedPath>,
    },
}

/// The two files, locked for this process.
pub struct Store {
    journal: File,
    journal_bytes: u64,
    contents: File,
    contents_bytes: u64,
    contents_max: u64,
    places: HashMap<Hash, (u64, u64)>,
    /// Contents that are in their file, but not yet in the journal.
    fresh: Vec<(Hash, u64, u64)>,
    /// The journal may end in the middle of a line.
    torn: bool,
}

impl Store {
    /// Opens or makes the folder, and reads what is there. Lines that are damaged are left out.
    pub fn open(dir: &Path, contents_max: u64) -> io::Result<(Self, Vec<Line>)> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let file = |name| {
            let flags = nix::libc::O_NOFOLLOW;
            OpenOptions::new()
                .read(true)
                .append(true)
                .create(true)
                .mode(0o600)
                .custom_flags(flags)
                .open(dir.join(name))
        };
        let journal = file("journal.jsonl")?;
        // The lock goes with the process, however it ends.
        journal.try_lock()?;
        let contents = file("contents")?;
        let (journal_bytes, contents_bytes) = (journal.metadata()?.len(), contents.metadata()?.len());
        let mut store = Self {
            journal,
            journal_bytes,
            contents,
            contents_bytes,
            contents_max,
            places: HashMap::new(),
            fresh: Vec::new(),
            torn: false,
        };
        let lines = store.read()?;
        Ok((store, lines))
    }

    fn read(&mut self) -> io::Result<Vec<Line>> {
        let mut lines = Vec::new();
        let mut reader = BufReader::new(&self.journal);
        let mut text = Vec::new();
        loop {
            text.clear();
            if reader.read_until(b'\n', &mut text)? == 0 {
                break;
            }
            self.torn = text.last() != Some(&b'\n');
            match serde_json::from_slice(&text) {
                Ok(Line::Kept { contents }) => {
                    let whole = contents
                        .into_iter()
                        .filter(|(_, at, bytes)| at.saturating_add(*bytes) <= self.contents_bytes);
                    self.places.extend(whole.map(|(hash, at, bytes)| (hash, (at, bytes))));
                }
                Ok(line) => lines.push(line),
                Err(_) => {}
            }
        }
        Ok(lines)
    }

    /// Keeps content. `false` if there is no more room.
    pub fn keep(&mut self, hash: Hash, content: &[u8]) -> io::Result<bool> {
        if self.places.contains_key(&hash) {
            return Ok(true);
        }
        let bytes = content.len() as u64;
        if self.contents_bytes.saturating_add(bytes) > self.contents_max {
            return Ok(false);
        }
        if let Err(error) = (&self.contents).write_all(content) {
            // A part may be there: what comes next starts behind it.
            self.contents_bytes = self.contents.metadata()?.len();
            return Err(error);
        }
        let at = self.contents_bytes;
        self.contents_bytes += bytes;
        self.places.insert(hash, (at, bytes));
        self.fresh.push((hash, at, bytes));
        Ok(true)
    }

    /// Content that was kept, checked.
    pub fn content(&self, hash: Hash) -> io::Result<Vec<u8>> {
        let (at, bytes) = *self.places.get(&hash).ok_or(io::ErrorKind::NotFound)?;
        let mut content = vec![0; usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?];
        self.contents.read_exact_at(&mut content, at)?;
        if Hash::of(&content) == hash { Ok(content) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    /// Adds lines, behind the contents they speak of, in one write.
    pub fn write(&mut self, lines: &[Line]) -> io::Result<()> {
        let mut text = Vec::new();
        if self.torn {
            text.push(b'\n');
        }
        if !self.fresh.is_empty() {
            add(&mut text, &Line::Kept { contents: std::mem::take(&mut self.fresh) })?;
        }
        for line in lines {
            add(&mut text, line)?;
        }
        if self.journal_bytes.saturating_add(text.len() as u64) > FILE_HISTORY_JOURNAL_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.torn = true;
        (&self.journal).write_all(&text)?;
        self.torn = false;
        self.journal_bytes += text.len() as u64;
        Ok(())
    }

    /// Waits until all of it is on the disk.
    pub fn sync(&self) -> io::Result<()> {
        self.contents.sync_data()?;
        self.journal.sync_data()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // A child that is just being started may still hold the file for a moment; the history is free now.
        let _ = self.journal.unlock();
    }
}

fn add(text: &mut Vec<u8>, line: &Line) -> io::Result<()> {
    serde_json::to_writer(&mut *text, line)?;
    text.push(b'\n');
    Ok(())
}
