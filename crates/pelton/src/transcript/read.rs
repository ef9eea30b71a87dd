//! Reading a transcript back. Tolerant: a torn, foreign or damaged line is skipped and counted, never a reason to
//! lose the others, and nothing in the file is changed.

mod line; // what a line says, and what it proves of itself
mod chain; // which line follows which
mod said; // what somebody said in one

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use pelton_model::Prefix;
use pelton_model::json::without_halves;
use serde_json::Value;
use uuid::Uuid;

use chain::Chain;
use said::{LONG_LINE_BYTES, Source, entries};

pub(super) use line::{LINKS, Line, Proven, parent};
pub(super) use said::is_no_message;

use super::blobs::Blobs;
use super::opening::stand_in;
use super::queued::{QueuedPrompt, Waiting};
use super::requests::{FileFacts, read_prefix};
use super::write::End;
use super::{
    AGENT_LINE, ASKED, COMPACT_BOUNDARY, CONTEXT_EDIT_LINE, COST_LINE, DEFERRED, GONE_BACK_LINE,
    MEDIA_LEFT_OUT_LINE, MODE_LINE, QUESTION_LINE, REQUEST_LINE, RequestFacts, SNIP_BOUNDARY, TOMBSTONE_LINE,
};
use crate::event::{Asked, LoopKind, ModelUsage};
use crate::history::{
    By, CallId, Edit, EditId, Edited, Entry, EntryId, Kind, MediaPlace, Piece, SnipBoundary,
};
use crate::limits::{CACHE_REPORTS_KEPT_MAX, CHANGED_FILES_WATCHED_MAX, TRANSCRIPT_LINE_BYTES_MAX};
use crate::permission::Mode;

/// A conversation as its file tells it.
///
/// ```
/// use pelton::transcript::read_from;
///
/// let line = r#"{"type":"user","uuid":"00000000-0000-4000-8000-000000000001","message":{"role":"user","content":"Hi"}}"#;
/// let loaded = read_from(line.as_bytes())?;
/// assert_eq!((loaded.entries.len(), loaded.lines_skipped), (1, 0));
/// assert_eq!(loaded.newest, Some(loaded.entries[0].id)); // what is said next follows it
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Loaded {
    /// The session its lines name.
    pub session_id: Option<Uuid>,
    /// The agent that it works as.
    pub works_as: Option<String>,
    /// What ran unasked when somebody in front of it said something last. What a program let run is the program's own matter.
    pub mode: Option<Mode>,
    /// What it has consumed, by model, as far as it says so.
    pub spent: BTreeMap<String, ModelUsage>,
    /// What was said, in order.
    pub entries: Vec<Arc<Entry>>,
    /// The line new ones follow.
    pub newest: Option<Uuid>,
    /// The model was not always sent all of this, so thinking in it may be bound to something else.
    pub reshaped: bool,
    /// Where parts of it were taken out of what the model is sent.
    pub snips: Vec<SnipBoundary>,
    /// What was done to what the model is sent, oldest first.
    pub edits: Vec<Edited>,
    /// Calls that somebody was asked about and that were not decided.
    pub undecided: Vec<String>,
    /// The call that a hook put off, with which the session ended.
    pub deferred: Option<String>,
    /// Prompts that were taken and never consumed, oldest first.
    pub queued: Vec<QueuedPrompt>,
    /// What became of the newest requests, the newest last.
    pub(crate) requests: Vec<RequestFacts>,
    /// What files held when the model last heard of them.
    pub(crate) files: FileFacts,
    /// What stood in front of the newest request of the conversation, byte for byte, if that was kept.
    pub(crate) prefix: Option<Arc<Prefix>>,
    /// When the newest of them was recorded.
    pub(crate) requested_at: Option<Timestamp>,
    /// How many of the edits, the newest, were made after it.
    pub(crate) edits_since_request: usize,
    /// Lines that could not be read.
    pub lines_skipped: usize,
    /// Where its last whole line ends.
    pub read_to: u64,
    /// It is what is needed to go on: what was said before is on the disk only.
    pub is_partial: bool,
    /// Its file goes on behind it.
    pub(crate) goes_back: bool,
}

impl Loaded {
    /// Where new lines join it.
    pub(crate) fn end(&self) -> End {
        let waiting = self.queued.iter().map(|queued| queued.id).collect();
        End { newest: self.newest, read_to: self.read_to, waiting }
    }

    /// The model that the session works with: the one that was asked last, unless that was for its turn only, or, where nobody
    /// noted that, the one that answered last.
    pub fn model(&self) -> Option<&str> {
        let turns = self.requests.iter().rev().filter(|request| request.cache.asked == Asked::Turn);
        let turns = turns.map(|request| request.usual_model.as_deref().unwrap_or(&request.model));
        let answered = self.entries.iter().rev().filter_map(|entry| match &entry.kind {
            Kind::Assistant { origin, .. } => Some(&*origin.model),
            _ => None,
        });
        turns.chain(answered).find(|model| !model.is_empty())
    }
}

/// The file cannot be read at all.
///
/// ```
/// use std::path::Path;
///
/// let missing = pelton::transcript::read(Path::new("/no/such/file.jsonl"));
/// assert!(missing.is_err_and(|error| error.to_string().contains("/no/such/file.jsonl")));
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot read the session file {path}: {reason}", path = path.display())]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// The system's words.
    pub reason: String,
}

/// Reads a session's file.
///
/// See [`read_from`].
pub fn read(path: &Path) -> Result<Loaded, ReadError> {
    let fail = |error: std::io::Error| ReadError { path: path.to_path_buf(), reason: error.to_string() };
    let mut lines = Lines::beside(Blobs::beside(path));
    lines.read(BufReader::new(File::open(path).map_err(fail)?)).map_err(fail)?;
    Ok(lines.loaded())
}

/// Reads the file of a sub-agent: its own conversation, which those of sessions leave out.
pub(crate) fn read_agent(path: &Path) -> Result<Loaded, ReadError> {
    let fail = |error: std::io::Error| ReadError { path: path.to_path_buf(), reason: error.to_string() };
    let mut lines = Lines { is_agents: true, ..Lines::beside(Blobs::beside(path)) };
    lines.read(BufReader::new(File::open(path).map_err(fail)?)).map_err(fail)?;
    Ok(lines.loaded())
}

/// The lines of a session's file that are its conversation, by their ids: those that lead to its end, and the results beside
/// them. The others stand on branches that were left.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let file = dir.path().join("session.jsonl");
/// let line = |id: u32, words: &str| {
///     format!(r#"{{"type":"user","uuid":"00000000-0000-4000-8000-00000000000{id}","parentUuid":null,"message":{{"role":"user","content":"{words}"}}}}"#)
/// };
/// std::fs::write(&file, [line(1, "Hi"), line(2, "From the beginning, then")].join("\n"))?;
/// let lines = pelton::transcript::conversation(&file)?;
/// let second: uuid::Uuid = "00000000-0000-4000-8000-000000000002".parse()?;
/// assert_eq!(lines.into_iter().collect::<Vec<_>>(), [second]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn conversation(path: &Path) -> Result<HashSet<Uuid>, ReadError> {
    let fail = |error: std::io::Error| ReadError { path: path.to_path_buf(), reason: error.to_string() };
    let mut lines = Lines { without_words: true, ..Lines::default() };
    lines.read(BufReader::new(File::open(path).map_err(fail)?)).map_err(fail)?;
    Ok(lines.conversation())
}

/// Reads what a session's file holds, wherever it is kept.
///
/// ```
/// let line = r#"{"type":"user","uuid":"00000000-0000-4000-8000-000000000001","message":{"role":"user","content":"Hi"}}"#;
/// let torn = r#"{"type":"assist"#;
/// let loaded = pelton::transcript::read_from(format!("{line}\n{torn}").as_bytes())?;
/// assert_eq!((loaded.entries.len(), loaded.lines_skipped), (1, 1));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn read_from(reader: impl BufRead) -> std::io::Result<Loaded> {
    let mut lines = Lines::default();
    lines.read(reader)?;
    Ok(lines.loaded())
}

/// Passes over the rest of a line, and tells how long that was.
fn skip_line(reader: &mut impl BufRead) -> std::io::Result<u64> {
    let mut skipped = 0;
    loop {
        let buffer = reader.fill_buf()?;
        let (used, done) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        reader.consume(used);
        skipped += used as u64;
        if done {
            return Ok(skipped);
        }
    }
}

/// One line that is part of the conversation's chain.
struct Link {
    id: Uuid,
    parent: Option<Uuid>,
    /// What it follows is not known, though it followed something.
    lost_parent: bool,
    /// Something must stand before it: no conversation begins with an answer, or with the result of a call.
    goes_on: bool,
    /// The answer of which it is a part.
    answer: Option<Arc<str>>,
    /// It is nothing but the results of calls.
    is_result: bool,
    entries: Vec<Arc<Entry>>,
    /// The line, if it is a snip boundary.
    snip: Option<Value>,
    /// It is a boundary that somebody else wrote: what was said before it is not sent.
    ends_what_was_before: bool,
    /// What was done between its parent and itself was not done to this conversation.
    goes_back: bool,
}

/// What is known of the place of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Follows {
    /// Nothing speaks against what it says.
    AsItSays,
    /// It was written behind another line.
    Another,
}

/// A request, and where its line stands.
struct Requested {
    /// What became of it; one of a later version tells this one nothing.
    facts: Option<RequestFacts>,
    at: Option<Timestamp>,
    /// How many links stand before it.
    links: usize,
    /// And how many edits.
    edits: usize,
}

/// What stands for what was said before the first line.
struct Behind {
    entry: Arc<Entry>,
    /// The edit that puts a summary in its place.
    edit: EditId,
}

#[derive(Default)]
pub(super) struct Lines {
    /// What is kept beside the file.
    blobs: Option<Blobs>,
    behind: Option<Behind>,
    links: Vec<Link>,
    by_id: HashMap<Uuid, usize>,
    session_id: Option<Uuid>,
    reshaped: bool,
    /// Edits, and how many links stand before each.
    edits: Vec<(usize, Edited)>,
    queue: Waiting,
    undecided: Vec<String>,
    deferred: Option<String>,
    requests: VecDeque<Requested>,
    /// The hashes of what stood in front of the newest request.
    front: Option<(String, String)>,
    files: FileFacts,
    skipped: usize,
    read_to: u64,
    /// It is the conversation of a sub-agent.
    is_agents: bool,
    /// The agent that the session works as.
    works_as: Option<String>,
    /// What ran unasked when somebody in front of it said something last.
    mode: Option<Mode>,
    /// What the session has consumed.
    spent: BTreeMap<String, ModelUsage>,
    /// What was said is not wanted, only in which lines.
    without_words: bool,
}

impl Lines {
    /// Lines of a file beside which something is kept.
    pub fn beside(blobs: Blobs) -> Self {
        Self { blobs: Some(blobs), ..Self::default() }
    }

    /// Reads lines up to the end.
    pub fn read(&mut self, mut reader: impl BufRead) -> std::io::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let limit = TRANSCRIPT_LINE_BYTES_MAX as u64;
            let count = reader.by_ref().take(limit).read_until(b'\n', &mut line)?;
            if count == 0 {
                return Ok(());
            }
            let mut bytes = count as u64;
            let is_whole = line.ends_with(b"\n");
            let skipped_before = self.skipped;
            if !is_whole && bytes == limit {
                self.skipped += 1;
                bytes += skip_line(&mut reader)?;
            } else if count > LONG_LINE_BYTES {
                self.add_shared(&Bytes::from(std::mem::take(&mut line)));
            } else {
                self.add(&line, None);
            }
            // The last one may be torn, or not written to its end yet. If nothing but its end is missing, it was read.
            if is_whole || count as u64 == limit || self.skipped == skipped_before {
                self.read_to += bytes;
            }
        }
    }

    /// What was said before the first line is not there: this stands for it, until this edit puts a summary there.
    pub fn begin_behind(&mut self, stands_for: Option<Arc<Entry>>, edit: EditId) {
        self.behind = stands_for.map(|entry| Behind { entry, edit });
    }

    /// A prompt waits, by a line that stands before all others.
    pub fn add_queued(&mut self, line: &[u8]) {
        self.queue.read(&String::from_utf8_lossy(line));
    }

    /// Whether an edit is undone that was made before this one, or this one itself.
    pub fn undoes_what_is_not_there(&self, boundary: EditId) -> bool {
        let made = self.edits.iter().position(|(_, edited)| edited.id == boundary);
        let since = &self.edits[made.map_or(0, |made| made + 1)..];
        let is_there = |id: EditId| since.iter().any(|(_, edited)| edited.id == id);
        since.iter().any(|(_, edited)| matches!(edited.edit, Edit::Undo { edit } if !is_there(edit)))
    }

    /// Reads a long line, whose parts are shared instead of copied unless it has to be repaired.
    fn add_shared(&mut self, line: &Bytes) {
        self.add(line, Some(line));
    }

    fn add(&mut self, bytes: &[u8], shared: Option<&Bytes>) {
        // A crash can leave runs of NUL where the file system had reserved room.
        let bytes = bytes.trim_ascii();
        let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
        let bytes = &bytes[start..];
        // Editors put this mark in front.
        let bytes = bytes.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(bytes);
        if bytes.is_empty() {
            return;
        }
        let (whole, is_lost) = match &self.blobs {
            Some(blobs) => blobs.whole(bytes),
            None => (Cow::Borrowed(bytes), false),
        };
        self.skipped += usize::from(is_lost);
        let is_short = matches!(whole, Cow::Borrowed(_));
        let bytes = &whole[..];
        // Halves of characters, however they came here, would be refused by the next model.
        let bytes = without_halves(bytes);
        let text = String::from_utf8_lossy(&bytes);
        let is_as_read = is_short && matches!((&bytes, &text), (Cow::Borrowed(_), Cow::Borrowed(_)));
        let Ok(line) = serde_json::from_str::<Line<'_>>(&text) else {
            self.skipped += 1;
            return;
        };
        if line.r#type.as_deref() == Some(TOMBSTONE_LINE) {
            for id in line.uuids {
                if let Some(index) = self.by_id.get(&id) {
                    self.links[*index].entries.clear();
                }
            }
            return;
        }
        if line.r#type.as_deref() == Some(AGENT_LINE) {
            self.works_as = line.agent_setting.filter(|agent| !agent.is_empty());
            return;
        }
        if line.r#type.as_deref() == Some(COST_LINE) {
            // What cannot be read says nothing: the sums are a courtesy.
            let models = line.models.and_then(|models| serde_json::from_str(models.get()).ok());
            self.spent = models.unwrap_or(std::mem::take(&mut self.spent));
            return;
        }
        if line.r#type.as_deref() == Some(MODE_LINE) {
            self.mode = line.permission_mode.as_deref().and_then(Mode::from_name).or(self.mode);
            return;
        }
        if line.r#type.as_deref() == Some(QUESTION_LINE) {
            let Some(call) = line.tool_use_id else { return };
            self.undecided.retain(|undecided| *undecided != call);
            self.deferred = (line.kind.as_deref() == Some(DEFERRED)).then(|| call.clone());
            if line.kind.as_deref() == Some(ASKED) || self.deferred.is_some() {
                self.undecided.push(call);
            }
            return;
        }
        if line.r#type.as_deref() == Some("queue-operation") {
            self.queue.read(&text);
            return;
        }
        if line.subtype.as_deref() == Some("loop_event") {
            self.reshaped |= LoopKind::RESHAPING.iter().any(|kind| line.kind.as_deref() == Some(kind.name()));
        }
        if line.subtype.as_deref() == Some(REQUEST_LINE) {
            // One of a later version tells this one nothing; no word of the conversation is lost with it.
            let request: Option<RequestFacts> =
                line.request.and_then(|request| serde_json::from_str(request.get()).ok());
            if let Some(files) = request.as_ref().and_then(|request| request.files.as_ref()) {
                self.files.add(files, CHANGED_FILES_WATCHED_MAX);
            }
            if let Some(asked) = request.as_ref().filter(|request| request.cache.asked == Asked::Turn) {
                let front = (asked.prefix.system_hash.clone(), asked.prefix.tools_hash.clone());
                let before = self.front.replace(front);
                // Thinking is bound to what stood in front of it, too.
                self.reshaped |= before.is_some() && before != self.front;
            }
            let at = line.timestamp.and_then(|at| at.parse().ok());
            let (links, edits) = (self.links.len(), self.edits.len());
            self.requests.push_back(Requested { facts: request, at, links, edits });
            if self.requests.len() > CACHE_REPORTS_KEPT_MAX {
                self.requests.pop_front();
            }
            return;
        }
        if line.subtype.as_deref() == Some(MEDIA_LEFT_OUT_LINE) {
            let places =
                line.places.and_then(|places| serde_json::from_str::<Vec<MediaPlace>>(places.get()).ok());
            match places {
                // Those that were written without a name are undone together.
                Some(places) => {
                    let id = line.edit_id.unwrap_or_default();
                    self.edited(id, MEDIA_LEFT_OUT_LINE, Edit::Media { places });
                }
                None => self.skipped += 1,
            }
            return;
        }
        let is_boundary = line.subtype.as_deref() == Some(COMPACT_BOUNDARY);
        let edit = line.edit.filter(|_| is_boundary || line.subtype.as_deref() == Some(CONTEXT_EDIT_LINE));
        let mut is_foreign_boundary = is_boundary;
        if let (Some(edit), Some(id)) = (edit, line.edit_id) {
            // One of a later version is passed over, and what was said is sent as it was.
            match serde_json::from_str::<Edit>(edit.get()) {
                Ok(edit) => {
                    self.edited(id, line.by.as_deref().unwrap_or_default(), edit);
                    if let Some((_, edited)) = self.edits.last_mut() {
                        edited.with = line.with;
                    }
                }
                Err(_) => (self.skipped, self.reshaped) = (self.skipped + 1, true),
            }
            is_foreign_boundary = false;
        }
        let kind = line.r#type.as_deref().unwrap_or_default();
        let Some(id) = line.uuid else {
            // Titles, tags and other bookkeeping are not part of the conversation; what was said is, and has no place without a
            // name.
            self.skipped += usize::from(matches!(kind, "user" | "assistant"));
            return;
        };
        if line.parent_uuid.is_none() && !LINKS.contains(&kind) {
            // Some programs give ids to titles and the like. What follows nothing begins nothing, unless it is said.
            return;
        }
        // A line written twice counts once; sub-agents have conversations of their own.
        if self.by_id.contains_key(&id) || line.is_sidechain != self.is_agents {
            return;
        }
        self.session_id = self.session_id.or(line.session_id);
        self.queue.consumed(&line.queued_ids);
        self.queue.consumed(&[id]);
        self.mode = line.mode_of_somebody().or(self.mode);
        let is_as_written = line.is_as_written();
        let (mut damaged, shared) = (0, shared.filter(|_| is_as_read && is_as_written));
        let read = entries(&line, id, &Source { line: shared, is_as_written }, &mut damaged);
        let entries = read.unwrap_or_else(|| {
            (self.skipped, damaged) = (self.skipped + 1, damaged + 1);
            Vec::new()
        });
        let (parent, follows) = self.parent_of(&line);
        // Thinking is bound to what stood before it.
        self.reshaped |=
            damaged > 0 || !is_as_written || line.hides_something() || follows == Follows::Another;
        self.by_id.insert(id, self.links.len());
        let goes_back = line.subtype.as_deref() == Some(GONE_BACK_LINE);
        if goes_back {
            // What was read so far may have been read on the way that was left.
            self.files.whole.clear();
        }
        let is_snip = line.subtype.as_deref() == Some(SNIP_BOUNDARY);
        let snip = is_snip.then(|| serde_json::from_str(&text).unwrap_or_default());
        let first = entries.first().map(|entry| &entry.kind);
        self.links.push(Link {
            id,
            parent,
            lost_parent: follows == Follows::Another,
            goes_on: matches!(first, Some(Kind::Assistant { .. } | Kind::ToolResult { .. })),
            answer: match first {
                Some(Kind::Assistant { origin, .. }) => {
                    Some(origin.message_id.as_str().into()).filter(|id: &Arc<str>| !id.is_empty())
                }
                _ => None,
            },
            is_result: !entries.is_empty()
                && entries.iter().all(|entry| matches!(entry.kind, Kind::ToolResult { .. })),
            entries: if self.without_words { Vec::new() } else { entries },
            snip,
            ends_what_was_before: is_foreign_boundary,
            goes_back,
        });
    }

    /// The line that a line follows. Where that name is damaged, the line before it may prove to be the one.
    fn parent_of(&self, line: &Line<'_>) -> (Option<Uuid>, Follows) {
        let named = line.parent_uuid.or(line.logical_parent_uuid);
        if line.follows_what_it_says() {
            return (named, Follows::AsItSays);
        }
        let before = self.links.last().map(|link| link.id);
        match before.filter(|before| line.proven_behind(Some(*before))) {
            Some(before) => (Some(before), Follows::AsItSays),
            // Whatever it names: behind the line before it, nothing is lost.
            None => (None, Follows::Another),
        }
    }

    fn edited(&mut self, id: EditId, by: &str, mut edit: Edit) {
        if let (Edit::Replace { from, to, .. }, Some(behind)) = (&mut edit, &self.behind)
            && behind.edit == id
        {
            // All that it takes away but the first is not there.
            *to = *from;
        }
        self.edits.push((self.links.len(), Edited::new(id, 0, by, edit)));
    }

    /// What stands between a message and the line that says the conversation went back to it, by how many links stand before.
    fn left(&self, chain: &[usize]) -> Vec<RangeInclusive<usize>> {
        let goes_back = |index: &&usize| self.links[**index].goes_back;
        let left = |index: &usize| {
            let first = match self.links[*index].parent {
                Some(parent) => self.by_id.get(&parent)? + 1,
                // To before everything that was said.
                None => 0,
            };
            Some(first..=*index)
        };
        chain.iter().filter(goes_back).filter_map(left).collect()
    }

    /// The conversation.
    pub fn loaded(self) -> Loaded {
        let Chain { links: chain, missing } = self.chain();
        let newest = chain.last().map(|index| self.links[*index].id);
        let left = self.left(&chain);
        let chain = self.with_whole_answers(chain, &left);
        let on_chain: HashSet<usize> = chain.iter().copied().collect();
        let behind = self.behind.as_ref().map(|behind| behind.edit);
        let mut is_behind = behind.is_some();
        let mut entries: Vec<Arc<Entry>> = self.behind.into_iter().map(|behind| behind.entry).collect();
        if entries.is_empty() {
            entries.extend(stand_in(chain.iter().flat_map(|index| &self.links[*index].entries)));
        }
        let is_headless = behind.is_none() && !entries.is_empty();
        let mut first_sent = entries.first().map(|entry| entry.id);
        let mut snips = Vec::new();
        let mut edits = Vec::new();
        // What was done, asked and counted on the way to something else was not done to this.
        let was_left = |links: usize| left.iter().any(|left| left.contains(&links));
        let is_of_chain = |links: usize| {
            links.checked_sub(1).is_none_or(|last| on_chain.contains(&last)) && !was_left(links)
        };
        let mut requests = self.requests;
        requests.retain(|requested| !was_left(requested.links));
        let requested_at = requests.back().and_then(|newest| newest.at);
        let asked_with = requests.back().filter(|newest| newest.at.is_some()).map(|newest| newest.edits);
        let since = asked_with.map_or(&[][..], |edits| self.edits.get(edits..).unwrap_or_default());
        let edits_since_request = since.iter().filter(|(links, _)| is_of_chain(*links)).count();
        let requests: Vec<RequestFacts> =
            requests.into_iter().filter_map(|requested| requested.facts).collect();
        let turn = requests.iter().rev().find(|request| request.cache.asked == Asked::Turn);
        let kept_as = turn.and_then(|request| request.prefix.kept.as_deref());
        let prefix =
            self.blobs.as_ref().zip(kept_as).and_then(|(blobs, name)| read_prefix(&blobs.read_here(name)?));
        let mut made = self.edits.into_iter().filter(|(links, _)| is_of_chain(*links)).peekable();
        // What such an edit put into the place of what is not there.
        let mut stands_nowhere: HashSet<EntryId> = HashSet::new();
        for index in &chain {
            while let Some((_, edited)) = made.next_if(|(links, _)| links <= index) {
                is_behind &= behind != Some(edited.id);
                // Before its summary, much is about what is not there.
                if !is_behind || edited.edit.finds(&entries, &edits) {
                    first_sent = edited.first_after(first_sent);
                    edits.push(Edited { at: entries.len(), ..edited });
                } else if let Edit::Replace { by: By::Entry(entry), .. } = edited.edit {
                    stands_nowhere.insert(entry);
                }
            }
            let link = &self.links[*index];
            if let (true, Some(from), Some(last)) = (link.ends_what_was_before, first_sent, entries.last()) {
                let edit = Edit::Replace { from, to: last.id, by: By::Nothing };
                edits.push(Edited::new(link.id, entries.len(), COMPACT_BOUNDARY, edit));
                first_sent = None;
            }
            if stands_nowhere.contains(&link.id) {
                continue;
            }
            first_sent = first_sent.or(link.entries.first().map(|entry| entry.id));
            entries.extend(link.entries.iter().cloned());
            snips.extend(link.snip.clone().map(|line| SnipBoundary { at: entries.len(), line }));
        }
        edits.extend(made.map(|(_, edited)| Edited { at: entries.len(), ..edited }));
        // What is read from its newest summary on follows what was not read.
        let is_lost = |(index, _): &(usize, Option<Uuid>)| *index > 0 || behind.is_none();
        let reshaped = self.reshaped || is_headless || missing.iter().any(is_lost) || has_strays(&entries);
        // Results of parallel calls may hang on branches of their own; the view puts each where it belongs.
        let beside = (0..self.links.len()).filter(|index| !on_chain.contains(index));
        entries.extend(
            beside
                .flat_map(|index| self.links[index].entries.clone())
                .filter(|entry| matches!(entry.kind, Kind::ToolResult { .. })),
        );
        Loaded {
            session_id: self.session_id,
            works_as: self.works_as,
            mode: self.mode,
            spent: self.spent,
            newest,
            entries,
            reshaped,
            snips,
            edits,
            queued: self.queue.finish(),
            undecided: self.undecided,
            deferred: self.deferred,
            prefix: prefix.map(Arc::new),
            files: self.files,
            requests,
            requested_at,
            edits_since_request,
            lines_skipped: self.skipped,
            read_to: self.read_to,
            is_partial: false,
            goes_back: false,
        }
    }
}

/// Whether there are results of calls that were not made before.
fn has_strays(entries: &[Arc<Entry>]) -> bool {
    let mut calls: HashSet<&CallId> = HashSet::new();
    entries.iter().any(|entry| match &entry.kind {
        Kind::Assistant { piece: Piece::Call { id, .. }, .. } => {
            calls.insert(id);
            false
        }
        Kind::ToolResult { call, .. } => !calls.contains(call),
        _ => false,
    })
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
