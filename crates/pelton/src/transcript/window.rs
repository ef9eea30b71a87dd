//! Reading as much of a session's file as the model is still sent. What a summary stands for is not needed to go on: the
//! file is searched for the newest boundary from its end, block by block, and read from there. Where that is not enough
//! (somebody went back to before the boundary, or undid it), an earlier one is taken, and at last the whole file.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use memchr::memmem;
use uuid::Uuid;

use super::blobs::Blobs;
use super::read::{Line, Lines, Loaded, ReadError, read};
use super::withdrawn::withdrawn;
use super::{COMPACT_BOUNDARY, COST_LINE};
use crate::history::{Edit, Entry, EntryId, Kind};
use crate::limits::TRANSCRIPT_LINE_BYTES_MAX;

/// Bytes looked at together.
const BLOCK_BYTES: usize = 256 * 1024;

/// Boundaries that are tried before the whole file is read.
const BOUNDARIES_TRIED_MAX: usize = 8;

/// Lines that are looked at for what is said of the session as a whole.
const LINES_TRIED_MAX: usize = 64;

/// How far before the window such lines are looked for. Who writes them does so with every prompt; records of others may have none, and
/// be of any size.
const SEARCHED_BACK_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Reads what is needed to go on with a conversation: what was said since the newest summary, and what that kept. What was
/// said before stays on the disk. A file without a summary is read whole.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let file = dir.path().join("session.jsonl");
/// let line = |id: u32, parent: &str, rest: &str| {
///     format!(r#"{{"uuid":"00000000-0000-4000-8000-00000000000{id}","parentUuid":{parent},{rest}}}"#)
/// };
/// let said = |words: &str| format!(r#""type":"user","message":{{"role":"user","content":"{words}"}}"#);
/// let boundary = r#""type":"system","subtype":"compact_boundary","content":"Conversation compacted""#;
/// let two = "\"00000000-0000-4000-8000-000000000002\"";
/// let lines = [line(1, "null", &said("Hi")), line(2, "null", boundary), line(3, two, &said("We said hi."))];
/// std::fs::write(&file, lines.join("\n"))?;
///
/// let window = pelton::transcript::read_window(&file)?;
/// assert_eq!((window.entries.len(), window.is_partial), (1, true));
/// let whole = pelton::transcript::read(&file)?;
/// assert_eq!((whole.entries.len(), whole.is_partial), (1, false), "the same is gone on with");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_window(path: &Path) -> Result<Loaded, ReadError> {
    Ok(window_start(path)?.1)
}

/// Where the first line stands that is needed to go on, and what is gone on with.
pub(super) fn window_start(path: &Path) -> Result<(u64, Loaded), ReadError> {
    let fail = |error: io::Error| ReadError { path: path.to_path_buf(), reason: error.to_string() };
    match Searched::open(path).and_then(|file| file.window()).map_err(fail)? {
        Some(found) => Ok(found),
        None => Ok((0, read(path)?)),
    }
}

/// Reads what is needed to go on from a message, as if nothing had been said since: the file is searched for it from its end,
/// and from there like one that ends with it. What is of the session as a whole is as it is now: prompts that wait, what it has
/// consumed, as whom it works and what runs unasked. `None` if no line of the
/// conversation has this id: what was [taken back](super::withdrawn()) is no part of it.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let file = dir.path().join("session.jsonl");
/// let line = |id: u32, parent: &str| {
///     format!(r#"{{"type":"user","uuid":"00000000-0000-4000-8000-00000000000{id}","parentUuid":{parent},"message":{{"role":"user","content":"Hi"}}}}"#)
/// };
/// std::fs::write(&file, [line(1, "null"), line(2, "\"00000000-0000-4000-8000-000000000001\"")].join("\n"))?;
///
/// let first = "00000000-0000-4000-8000-000000000001".parse()?;
/// let part = pelton::transcript::read_window_until(&file, first)?;
/// assert_eq!(part.map(|part| part.entries.len()), Some(1));
/// assert!(pelton::transcript::read_window_until(&file, uuid::Uuid::nil())?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_window_until(path: &Path, message: Uuid) -> Result<Option<Loaded>, ReadError> {
    let fail = |error: io::Error| ReadError { path: path.to_path_buf(), reason: error.to_string() };
    let end = read_window(path)?;
    let part = Searched::open(path).and_then(|file| file.until(message)).map_err(fail)?;
    // The line that says so stands behind it, where nothing is read.
    if part.is_some() && withdrawn(path).map_err(fail)?.contains(&message) {
        return Ok(None);
    }
    Ok(part.map(|part| Loaded {
        goes_back: part.read_to != end.read_to,
        queued: end.queued,
        spent: end.spent,
        works_as: end.works_as,
        mode: end.mode,
        read_to: end.read_to,
        undecided: Vec::new(),
        deferred: None,
        ..part
    }))
}

/// A boundary from which a file can be read.
struct Start {
    /// Where its line begins.
    place: u64,
    /// Where the first line is that is still needed.
    from: u64,
    id: Uuid,
    /// The first entry it took away, if it says what it did.
    took: Option<EntryId>,
    /// Prompts that waited then.
    waiting: Vec<Uuid>,
    /// What is of the session as a whole is said behind it.
    says_all: bool,
}

struct Searched {
    file: File,
    blobs: Blobs,
    bytes: u64,
}

impl Searched {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { file, bytes, blobs: Blobs::beside(path) })
    }

    fn window(&self) -> io::Result<Option<(u64, Loaded)>> {
        let quoted = format!("\"{COMPACT_BOUNDARY}\"");
        let mut before = self.bytes;
        for _ in 0..BOUNDARIES_TRIED_MAX {
            let Some(place) = self.last(quoted.as_bytes(), before)? else { return Ok(None) };
            let (line_at, line) = self.line_around(place)?;
            before = line_at;
            let Some(start) = self.start(line_at, &line)? else { continue };
            match self.read_from(&start)? {
                Outcome::All(window) => return Ok(Some((start.from, *window))),
                Outcome::NeedsEarlier(place) => before = before.min(place),
            }
        }
        Ok(None)
    }

    /// What is needed to go on behind the line of a message.
    fn until(mut self, message: Uuid) -> io::Result<Option<Loaded>> {
        let mut before = self.bytes;
        while let Some(start) = self.line_of(message, before)? {
            let (_, line) = self.line_around(start)?;
            // Other lines may name it, too.
            if serde_json::from_slice::<Line<'_>>(&line).is_ok_and(|line| line.uuid == Some(message)) {
                self.bytes = self.bytes.min(start + line.len() as u64 + 1);
                let part = match self.window()? {
                    Some((_, part)) => part,
                    None => self.whole()?,
                };
                return Ok(part.entries.iter().any(|entry| entry.id == message).then_some(part));
            }
            before = start;
        }
        Ok(None)
    }

    fn whole(&self) -> io::Result<Loaded> {
        let mut lines = Lines::beside(self.blobs.clone());
        let mut file = &self.file;
        file.rewind()?;
        lines.read(BufReader::with_capacity(BLOCK_BYTES, file.take(self.bytes)))?;
        Ok(lines.loaded())
    }

    /// What a line says if it is a boundary from which can be read.
    fn start(&self, place: u64, line: &[u8]) -> io::Result<Option<Start>> {
        let Ok(line) = serde_json::from_slice::<Line<'_>>(line) else { return Ok(None) };
        let (Some(COMPACT_BOUNDARY), Some(id), false) =
            (line.subtype.as_deref(), line.uuid, line.is_sidechain)
        else {
            return Ok(None);
        };
        let mut start = Start { place, from: place, id, took: None, waiting: Vec::new(), says_all: false };
        if let Some(edit) = line.edit {
            // One of ours says what stayed.
            let (Ok(Edit::Replace { from, .. }), Some(kept)) = (serde_json::from_str(edit.get()), line.kept)
            else {
                return Ok(None);
            };
            start.took = Some(from);
            (start.waiting, start.says_all) = (kept.waiting, kept.says_all);
            if let Some(first) = kept.from {
                let Some(place) = self.line_of(first, place)? else { return Ok(None) };
                start.from = place;
            }
        }
        Ok(Some(start))
    }

    fn read_from(&self, start: &Start) -> io::Result<Outcome> {
        let mut lines = Lines::beside(self.blobs.clone());
        if let Some(took) = start.took {
            lines.begin_behind(stands_for(took), start.id);
        }
        for id in &start.waiting {
            let named = format!("\"promptId\":\"{id}\"");
            if let Some(place) = self.last(named.as_bytes(), start.place)? {
                lines.add_queued(&self.line_around(place)?.1);
            }
        }
        let mut file = &self.file;
        file.seek(SeekFrom::Start(start.from))?;
        lines.read(BufReader::with_capacity(BLOCK_BYTES, file.take(self.bytes - start.from)))?;
        if lines.undoes_what_is_not_there(start.id) {
            return Ok(Outcome::NeedsEarlier(start.from));
        }
        let chain = lines.chain();
        if !lines.is_on(&chain, start.id) {
            return Ok(Outcome::NeedsEarlier(start.from));
        }
        // The first line follows one that is not needed.
        let parents = chain.missing.iter().filter(|(index, _)| *index > 0).filter_map(|(_, parent)| *parent);
        for parent in parents {
            // It stands before all of this, or its line was damaged.
            if let Some(place) = self.line_of(parent, start.from)? {
                return Ok(Outcome::NeedsEarlier(place));
            }
        }
        let mut window = lines.loaded();
        window.read_to += start.from;
        window.is_partial = start.from > 0;
        if window.spent.is_empty() {
            // A write that was torn behind the summary left it out.
            let marked = format!("\"type\":\"{COST_LINE}\"");
            let spent = |line: Loaded| Some(line.spent).filter(|spent| !spent.is_empty());
            window.spent = self.newest(&marked, start.from, spent)?.unwrap_or_default();
        }
        if !start.says_all {
            self.add_from_before(&mut window, start.from)?;
        }
        Ok(Outcome::All(Box::new(window)))
    }

    /// What is of the session as a whole and is not said in the window stands before it, where others wrote the boundary, or nobody
    /// knew yet that it would be looked for.
    fn add_from_before(&self, window: &mut Loaded, before: u64) -> io::Result<()> {
        if window.works_as.is_none() {
            // Other programs say it once, at the beginning.
            window.works_as = self.beginning(before)?.works_as;
        }
        if window.mode.is_none() {
            window.mode = self.newest("\"permissionMode\":\"", before, |line| line.mode)?;
        }
        Ok(())
    }

    /// What the newest line before a place says that has these bytes in it and says something.
    fn newest<T>(
        &self,
        marked: &str,
        mut before: u64,
        says: impl Fn(Loaded) -> Option<T>,
    ) -> io::Result<Option<T>> {
        let since = before.saturating_sub(SEARCHED_BACK_BYTES_MAX);
        for _ in 0..LINES_TRIED_MAX {
            let Some(place) = self.last_since(since, marked.as_bytes(), before)? else { return Ok(None) };
            let (line_at, line) = self.line_around(place)?;
            let mut lines = Lines::default();
            lines.read(&line[..])?;
            if let Some(said) = says(lines.loaded()) {
                return Ok(Some(said));
            }
            before = line_at;
        }
        Ok(None)
    }

    /// What the first lines say, up to a place at most.
    fn beginning(&self, upto: u64) -> io::Result<Loaded> {
        let mut block = vec![0; BLOCK_BYTES];
        let bytes = self.read_at(&mut block, 0, upto.min(BLOCK_BYTES as u64))?;
        let whole = memchr::memrchr(b'\n', bytes).map_or(0, |end| end + 1);
        let mut lines = Lines::default();
        lines.read(&bytes[..whole])?;
        Ok(lines.loaded())
    }

    /// Where the line of an id begins, before a place.
    fn line_of(&self, id: Uuid, before: u64) -> io::Result<Option<u64>> {
        let named = format!("\"uuid\":\"{id}\"");
        let Some(place) = self.last(named.as_bytes(), before)? else { return Ok(None) };
        Ok(Some(self.line_start(place)?))
    }

    /// The last place before another where these bytes stand.
    fn last(&self, wanted: &[u8], before: u64) -> io::Result<Option<u64>> {
        self.last_since(0, wanted, before)
    }

    /// The same, if it begins at a place or behind it.
    fn last_since(&self, since: u64, wanted: &[u8], before: u64) -> io::Result<Option<u64>> {
        let finder = memmem::FinderRev::new(wanted);
        let mut block = vec![0; BLOCK_BYTES + wanted.len()];
        let mut end = before.min(self.bytes);
        while end > since {
            let from = end.saturating_sub(BLOCK_BYTES as u64).max(since);
            // What stands on the edge of two blocks is seen with the earlier one.
            let upto = (end + wanted.len() as u64 - 1).min(before.min(self.bytes));
            let bytes = self.read_at(&mut block, from, upto)?;
            if let Some(at) = finder.rfind(bytes) {
                return Ok(Some(from + at as u64));
            }
            end = from;
        }
        Ok(None)
    }

    /// The line that holds a place: where it begins, and its bytes as far as a line may go.
    fn line_around(&self, place: u64) -> io::Result<(u64, Vec<u8>)> {
        let start = self.line_start(place)?;
        let mut line = Vec::new();
        let mut block = vec![0; BLOCK_BYTES];
        let mut at = start;
        while at < self.bytes && line.len() < TRANSCRIPT_LINE_BYTES_MAX {
            let bytes = self.read_at(&mut block, at, self.bytes.min(at + BLOCK_BYTES as u64))?;
            if let Some(end) = memchr::memchr(b'\n', bytes) {
                line.extend_from_slice(&bytes[..end]);
                break;
            }
            line.extend_from_slice(bytes);
            at += bytes.len() as u64;
        }
        Ok((start, line))
    }

    fn line_start(&self, place: u64) -> io::Result<u64> {
        Ok(self.last(b"\n", place)?.map_or(0, |end| end + 1))
    }

    fn read_at<'a>(&self, block: &'a mut [u8], from: u64, upto: u64) -> io::Result<&'a [u8]> {
        let wanted = usize::try_from(upto - from).unwrap_or(block.len()).min(block.len());
        self.file.read_exact_at(&mut block[..wanted], from)?;
        Ok(&block[..wanted])
    }
}

enum Outcome {
    All(Box<Loaded>),
    /// Something is needed that stands there, or further to the front.
    NeedsEarlier(u64),
}

/// Stands where the entries were that a summary took away: its edit finds them by the first.
fn stands_for(first: EntryId) -> Option<Arc<Entry>> {
    let json = Bytes::from_static(br#"[{"type":"text","text":"(what was said before)"}]"#);
    Entry::new(first, Timestamp::UNIX_EPOCH, Kind::Prompt { meta: true }, json).ok().map(Arc::new)
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
