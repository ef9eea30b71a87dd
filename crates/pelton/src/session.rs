//! The lasting part of a conversation: what was said, in memory and on disk. Everything is recorded through
//! [`Session::record`], which writes before anybody is told.

mod kept; // what follows from what was said

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use jiff::Timestamp;
use pelton_model::{Prefix, World};
use pelton_wire::content::{Block, ImageSource, ResultContent};
use serde_json::Value;
use uuid::Uuid;

use crate::compact::Level;
use crate::compact::auto::Said;
use crate::compact::collapse::Fold;
use crate::context::attachment::{Attachment, AttachmentFacts, AttachmentKind};
use crate::context::reminder;
use crate::event::{LoopKind, ModelUsage, Synthetic, Trigger};
use crate::history::{
    By, Change, Edit, EditId, Edited, Entry, EntryId, History, Kind, MediaLeftOut, SnipReplay,
};
use crate::options::{Options, Sessions};
use crate::permission::Mode;
use crate::prompt::Prompt;
use crate::tools::changed::Changed;
use crate::tools::file_memory::Fingerprint;
use crate::tools::mentions::Attached;
use crate::tools::{Output, ResultBlock};
use crate::transcript::{
    CompactLines, Disk, Durability, EditLine, End, Facts, Loaded, RequestFacts, TakenPrompt, Transcript,
    TranscriptError, directory_id, is_program, session_file,
};

pub(crate) use kept::{Kept, Request, Tells, call_of};

/// One conversation and its file.
pub(crate) struct Session {
    pub id: Uuid,
    pub history: History,
    pub record: Arc<Record>,
    /// What is told again after a compaction, and known again after a resume.
    pub kept: Kept,
    /// C3: summaries of finished stretches that are not needed yet, oldest first.
    pub folds: Vec<Fold>,
    /// Results of a resumed conversation whose whole text is in a file, which may have been lost since.
    pub in_files: Vec<Arc<Entry>>,
    /// What the model was told of files, which the next note of a request says.
    pub files_told: Vec<(PathBuf, Option<String>)>,
    /// E27: who says what boundaries of others took away.
    snip_replay: Option<Arc<dyn SnipReplay>>,
    /// What the record says that was consumed.
    spent_noted: BTreeMap<String, ModelUsage>,
    /// What somebody in front of it let run unasked when they said something last.
    mode: Option<Mode>,
    /// Nobody is in front of it: what runs unasked is for a program to say.
    is_of_program: bool,
    /// It is the conversation of a sub-agent, and what it costs is its session's.
    is_of_agent: bool,
    /// A note that could not be written and must be.
    owed: Option<(LoopKind, String, u32)>,
    world: Arc<dyn World>,
}

impl Session {
    pub fn new(options: &Options) -> Self {
        let resumed_id = options.resume.as_ref().and_then(|resumed| resumed.conversation.session_id);
        let id = resumed_id.or(options.session_id).unwrap_or_else(|| fresh_id(options.world.as_ref()));
        let history = match &options.resume {
            Some(resumed) => replayed(options, &resumed.conversation),
            None => History::default(),
        };
        let record = Record::new(Opening::of(options, id));
        let kept = Kept::of(options.resume.as_ref().map_or(&[], |resumed| &resumed.conversation.entries));
        Self {
            id,
            history,
            record,
            kept,
            folds: Vec::new(),
            in_files: options.resume.as_ref().map_or(Vec::new(), |resumed| in_files(&resumed.conversation)),
            files_told: Vec::new(),
            snip_replay: options.snip_replay.clone(),
            spent_noted: options
                .resume
                .as_ref()
                .map_or(BTreeMap::new(), |resumed| resumed.conversation.spent.clone()),
            mode: options.resume.as_ref().and_then(|resumed| resumed.conversation.mode),
            is_of_program: is_program(&options.entrypoint),
            is_of_agent: false,
            owed: None,
            world: Arc::clone(&options.world),
        }
    }

    /// Another conversation in the place of this one. Whoever writes to its record writes to the other's from now on.
    pub fn succeeded(&self, options: &Options) -> Self {
        let next = Self::new(options);
        self.record.go_on_in(Opening::of(options, next.id));
        Self { record: Arc::clone(&self.record), ..next }
    }

    /// The conversation of a sub-agent: a part of its session, in a file of its own.
    pub fn of_agent(options: &Options, agent_id: String, file: Option<PathBuf>) -> Self {
        let session = Self::new(options);
        let opening = Opening::of(options, session.id).zip(file).map(|(mut opening, file)| {
            opening.path = file;
            (opening.facts.agent_id, opening.facts.works_as) = (Some(agent_id), None);
            opening
        });
        Self { record: Record::new(opening), is_of_agent: true, mode: None, ..session }
    }

    /// Where the session is recorded, if it is.
    pub fn file(&self) -> Option<PathBuf> {
        self.record.path()
    }

    /// Writes an entry down and adds it to the history, in this order.
    pub fn record(
        &mut self,
        kind: Kind,
        json: Bytes,
        detail: Option<Bytes>,
    ) -> Result<Arc<Entry>, TranscriptError> {
        self.record_as(fresh_id(self.world.as_ref()), kind, json, detail, TakenPrompt::default())
    }

    /// Records a prompt of the user's. `queued` are the prompts that waited and are part of it; `skill` is the file of the
    /// skill whose text it is; `mode` is what may run unasked for it.
    pub fn record_input(
        &mut self,
        prompt: &Prompt,
        queued: &[Uuid],
        skill: Option<PathBuf>,
        mode: Mode,
    ) -> Result<Arc<Entry>, TranscriptError> {
        // An id that was used before would make two messages one when the session is read again.
        let unused = |id: &Uuid| !self.kept.was_prompted_as(*id);
        let id = prompt.id.filter(unused).unwrap_or_else(|| fresh_id(self.world.as_ref()));
        let facts = skill.and_then(|file| AttachmentFacts::of(AttachmentKind::InvokedSkill, vec![file]));
        let taken = TakenPrompt { queued, mode: Some(mode.name()) };
        let entry = self.record_as(id, Kind::Prompt { meta: false }, prompt.json(), facts, taken)?;
        if !self.is_of_program && !self.is_of_agent {
            self.mode = Some(mode);
        }
        Ok(entry)
    }

    fn record_as(
        &mut self,
        id: Uuid,
        kind: Kind,
        json: Bytes,
        detail: Option<Bytes>,
        taken: TakenPrompt<'_>,
    ) -> Result<Arc<Entry>, TranscriptError> {
        let entry = Entry::new(id, self.world.now(), kind, json)
            .map_err(|error| TranscriptError::Content { reason: error.to_string() })?
            .with_detail(detail);
        self.pay_owed_note()?;
        if let Some(transcript) = self.record.transcript() {
            transcript.entry(&entry, taken)?;
        }
        let entry = Arc::new(entry);
        self.kept.saw(&entry);
        self.history.push(Arc::clone(&entry));
        Ok(entry)
    }

    /// Records words in the user's role.
    pub fn record_prompt(&mut self, text: &str, meta: bool) -> Result<Arc<Entry>, TranscriptError> {
        self.record(Kind::Prompt { meta }, content(&[Block::Text { text }]), None)
    }

    /// Records what is told beside the conversation.
    pub fn record_attachment(&mut self, attachment: &Attachment) -> Result<Arc<Entry>, TranscriptError> {
        let json = content(&[Block::Text { text: &attachment.text }]);
        self.record(Kind::Prompt { meta: true }, json, attachment.facts())
    }

    /// Records what stands in front of a prompt: words of hooks, and what it mentions.
    pub fn record_around(
        &mut self,
        contexts: &[String],
        attached: &[Attached],
    ) -> Result<(), TranscriptError> {
        if !contexts.is_empty() {
            self.record_prompt(&reminder(contexts), true)?;
        }
        for attached in attached {
            let facts = AttachmentFacts::of(AttachmentKind::Mentioned, Vec::new());
            self.record(Kind::Prompt { meta: true }, mentioned(attached), facts)?;
        }
        Ok(())
    }

    /// Records what a call answered.
    pub fn record_result(&mut self, call: &Arc<str>, output: &Output) -> Result<Arc<Entry>, TranscriptError> {
        let block = Block::ToolResult {
            tool_use_id: call,
            content: result_content(output),
            is_error: output.is_error,
        };
        // Whoever reads records and frames knows a call that failed by this word.
        let failed = output.is_error.then(|| Value::from(format!("Error: {}", output.words())));
        let detail = failed.as_ref().or(output.detail.as_ref()).map(|detail| Bytes::from(detail.to_string()));
        let kind = Kind::ToolResult { call: Arc::clone(call), is_error: output.is_error };
        self.record(kind, content(&[block]), detail)
    }

    /// Records an error shown in the assistant's role. The model does not see it.
    pub fn record_error(&mut self, text: String, error: &'static str) -> Result<Synthetic, TranscriptError> {
        let json = content(&[Block::Text { text: &text }]);
        let synthetic = Synthetic { id: fresh_id(self.world.as_ref()), text, error: Some(error), json };
        if let Some(transcript) = self.record.transcript() {
            transcript.synthetic(&synthetic, self.world.now())?;
        }
        Ok(synthetic)
    }

    /// Notes what the loop did, and why. A note that cannot be written is no reason to stop: what it is about is
    /// recorded by itself, and that will say so. Only that the model is not sent all of it any more shows nowhere else:
    /// such a note is owed, and written before anything that is said after it.
    pub fn note(&mut self, kind: LoopKind, reason: &str, turn: u32) {
        // What is resumed is opened with the first thing that is said.
        let noted = self
            .record
            .transcript()
            .is_some_and(|transcript| transcript.note(kind.name(), reason, turn, self.world.now()).is_ok());
        if !noted && LoopKind::RESHAPING.contains(&kind) {
            self.owed = Some((kind, reason.to_owned(), turn));
        }
    }

    /// Notes what the session has consumed so far, if the record does not say so: whoever goes on with it counts from there.
    /// Like other notes, it is no reason to stop.
    pub fn note_spent(&mut self, by_model: &BTreeMap<String, ModelUsage>) {
        if !self.is_of_agent
            && self.spent_noted != *by_model
            && self.record.transcript().is_some_and(|transcript| transcript.spent(by_model).is_ok())
        {
            self.spent_noted.clone_from(by_model);
        }
    }

    /// The same when it is left. What was asked beside it since it was gone on with has a price, too, though nothing was said in it.
    pub fn note_spent_at_last(&mut self, by_model: &BTreeMap<String, ModelUsage>) {
        if !self.is_of_agent && self.spent_noted != *by_model && self.record.goes_on_at_end() {
            // If it cannot be opened, nobody can say it.
            let _ = self.record.open(None);
        }
        self.note_spent(by_model);
    }

    /// The model is told of these files.
    pub fn heard_of_files(&mut self, changed: &[Changed]) {
        let held = |changed: &Changed| (changed.path.clone(), changed.content.map(Fingerprint::written));
        self.files_told.extend(changed.iter().map(held));
    }

    /// Notes what became of a request. Like other notes, it is no reason to stop.
    pub fn note_request(&self, request: &RequestFacts, prefix: &Prefix) {
        if let Some(transcript) = self.record.transcript() {
            let _ = transcript.request(request, prefix, self.world.now());
        }
    }

    /// Notes what a slash command answered: beside the conversation, and only if there is one. Like other notes, it is
    /// no reason to stop.
    pub fn note_command(&self, name: &str, arguments: &str, output: &str) {
        if let Some(transcript) = self.record.transcript() {
            let _ = transcript.command(name, arguments, output, self.world.now());
        }
    }

    /// Notes which images and documents are not sent any more, so that they are not after a restart either. Like any
    /// note, it is no reason to stop.
    pub fn note_media_left_out(&mut self, left_out: &MediaLeftOut) {
        if left_out.places.is_empty() {
            return;
        }
        let id = fresh_id(self.world.as_ref());
        if let Some(transcript) = self.record.transcript() {
            let _ = transcript.media_left_out(id, &left_out.places, self.world.now());
        }
        let edit = Edit::Media { places: left_out.places.clone() };
        self.history.note_edit(id, MEDIA, edit);
        if self.record.transcript().is_some() {
            self.history.release_unsent();
        }
    }

    /// Changes what the model is sent, and writes down how.
    pub fn edit(&mut self, level: Level, edit: &Edit, must: Must) -> Result<Made, TranscriptError> {
        self.edit_with(level, edit, must, None)
    }

    /// The same as a part of something of which this was the first edit.
    pub fn edit_with(
        &mut self,
        level: Level,
        edit: &Edit,
        must: Must,
        with: Option<EditId>,
    ) -> Result<Made, TranscriptError> {
        let id = fresh_id(self.world.as_ref());
        let mut tried = self.history.clone();
        let Some(change) = tried.edit(id, level.name(), edit.clone()) else { return Ok(Made::Nothing) };
        if must == Must::Shrink && change.after_tokens >= change.before_tokens {
            return Ok(Made::NoSmaller(change));
        }
        if let Some(first) = with {
            tried.belongs_with(first);
        }
        if let Some(transcript) = self.record.transcript() {
            transcript.edit(EditLine { id, by: level.name(), edit, with }, self.world.now())?;
            // What is not sent any more is on the disk.
            tried.release_unsent();
        }
        self.history = tried;
        self.drop_stale_folds();
        Ok(Made::Done(id, change))
    }

    /// What the model would be sent if these blocks took the place of everything between two entries, and what would do
    /// that.
    pub fn summed_up(
        &self,
        from: EntryId,
        to: EntryId,
        told: &[Said],
        facts: Option<Bytes>,
    ) -> Option<SummedUp> {
        let id = fresh_id(self.world.as_ref());
        let kind = Kind::Prompt { meta: true };
        let summary = Entry::new(id, self.world.now(), kind, again(told)).ok()?.with_detail(facts);
        let summary = Arc::new(summary);
        let edit = Edit::Replace { from, to, by: By::Entry(id) };
        let after_tokens = self.history.view_after(&edit, Some(Arc::clone(&summary)))?.tokens();
        Some(SummedUp { edit, summary, before_tokens: self.history.view().tokens(), after_tokens })
    }

    /// Puts a summary in the place of what was said. Both are written down, with one write, before it counts.
    pub fn compact(
        &mut self,
        level: Level,
        trigger: Trigger,
        summed_up: &SummedUp,
    ) -> Result<Option<(EditId, Change)>, TranscriptError> {
        let SummedUp { edit, summary, before_tokens, after_tokens } = summed_up;
        let id = fresh_id(self.world.as_ref());
        let mut tried = self.history.clone();
        tried.keep(Arc::clone(summary));
        let Some(change) = tried.edit(id, level.name(), edit.clone()) else { return Ok(None) };
        self.pay_owed_note()?;
        if let Some(transcript) = self.record.transcript() {
            let lines = CompactLines {
                edit: EditLine { id, by: level.name(), edit, with: None },
                summary,
                trigger: trigger.name(),
                before_tokens: *before_tokens,
                after_tokens: *after_tokens,
                stays: tried.stays_behind(summary.id),
                spent: &self.spent_noted,
                mode: self.mode,
            };
            transcript.compacted(lines, self.world.now())?;
            // What is not sent any more is on the disk.
            tried.release();
        }
        self.history = tried;
        self.kept.saw(summary);
        self.drop_stale_folds();
        Ok(Some((id, change)))
    }

    /// Folds of what is not sent any more are of no use.
    fn drop_stale_folds(&mut self) {
        if !self.folds.is_empty() {
            let sent: HashSet<EntryId> = self.history.view().entry_ids().collect();
            self.folds.retain(|fold| sent.contains(&fold.stretch.from) && sent.contains(&fold.stretch.to));
        }
    }

    /// Undoes an edit. If what it took away is on the disk only, it is read from there.
    pub async fn undo(&mut self, edit: EditId) -> Result<Made, UndoError> {
        if self.history.is_released()
            && let Some(path) = self.record.path()
        {
            let read = tokio::task::spawn_blocking(move || crate::transcript::read(&path)).await;
            let conversation = read.map_err(|error| UndoError::Read(error.to_string()))?;
            let conversation = conversation.map_err(|error| UndoError::Read(error.to_string()))?;
            let before = self.history.view().clone();
            let snipped = snipped(self.snip_replay.as_deref(), &conversation);
            let (mut history, _) = History::replay(conversation.entries, conversation.edits, snipped);
            history.view_mut().counts_on_from(&before);
            history.view_mut().takes_the_place_of(&before, "undo");
            self.history = history;
        }
        Ok(self.edit(Level::Undo, &Edit::Undo { edit }, Must::Change)?)
    }

    fn pay_owed_note(&mut self) -> Result<(), TranscriptError> {
        if let (Some((kind, reason, turn)), Some(transcript)) = (&self.owed, self.record.transcript()) {
            transcript.note(kind.name(), reason, *turn, self.world.now())?;
            self.owed = None;
        }
        Ok(())
    }

    /// Takes back the newest answer: it stays in the log and in the file, but does not count.
    pub fn withdraw(&mut self, ids: &[EntryId]) -> Result<(), TranscriptError> {
        if let Some(transcript) = self.record.transcript() {
            transcript.tombstone(ids, self.world.now())?;
        }
        self.history.withdraw(ids);
        Ok(())
    }

    /// Waits until everything recorded is on the disk.
    pub async fn sync(&self) -> Result<(), TranscriptError> {
        match self.record.transcript() {
            Some(transcript) => transcript.sync().await,
            None => Ok(()),
        }
    }
}

/// Who leaves media out, where no level of the cascade does.
const MEDIA: &str = "media";

/// What an edit must do to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Must {
    /// Anything.
    Change,
    /// Make what is sent smaller.
    Shrink,
}

/// What became of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Made {
    /// It counts.
    Done(EditId, Change),
    /// It was discarded: it would have made nothing smaller.
    NoSmaller(Change),
    /// What it is about is not there.
    Nothing,
}

/// A summary and what it would stand for.
#[derive(Debug, Clone)]
pub(crate) struct SummedUp {
    pub edit: Edit,
    pub summary: Arc<Entry>,
    pub before_tokens: u64,
    pub after_tokens: u64,
}

/// An edit cannot be undone.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UndoError {
    /// What it took away cannot be read.
    #[error("what was said before cannot be read again: {0}")]
    Read(String),
    /// That cannot be written down.
    #[error(transparent)]
    Record(#[from] TranscriptError),
}

/// The file of a session. Opened when something is said, not at the start of the engine: a session in which nothing is
/// said leaves no trace.
pub(crate) struct Record(Mutex<Recording>);

struct Recording {
    /// How; `None` if the session is not recorded.
    opening: Option<Opening>,
    opened: Option<Arc<Transcript>>,
}

struct Opening {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    durability: Durability,
    facts: Facts,
    /// Where the conversation ends that goes on.
    end: End,
    /// The line that says so, if its file does not end there.
    gone_back: Option<(Uuid, Timestamp)>,
    /// The file says that it works as this agent.
    worked_as: Option<String>,
}

impl Opening {
    fn of(options: &Options, session_id: Uuid) -> Option<Self> {
        let Sessions { config_dir, durability } = options.sessions.as_ref()?;
        let path = match &options.resume {
            Some(resumed) => resumed.file.clone(),
            None => {
                let cwd = options.cwd.canonicalize().unwrap_or_else(|_| options.cwd.clone());
                session_file(config_dir, &cwd, session_id)
            }
        };
        let resumed = options.resume.as_ref().map(|resumed| &resumed.conversation);
        let worked_as = resumed.and_then(|conversation| conversation.works_as.clone());
        let facts = Facts {
            session_id,
            cwd: options.cwd.clone(),
            directory: directory_id(&options.cwd),
            version: crate::CLI_VERSION.to_owned(),
            git_branch: None,
            entrypoint: options.entrypoint.clone(),
            agent_id: None,
            // One that is not there is kept in mind: it may come back.
            works_as: options.works_as.clone().or(worked_as.clone()),
            secrets: options.secrets.clone(),
        };
        let end = options.resume.as_ref().map_or(End::default(), |resumed| resumed.conversation.end());
        let goes_back = options.resume.as_ref().is_some_and(|resumed| resumed.conversation.goes_back);
        let gone_back = goes_back.then(|| (fresh_id(options.world.as_ref()), options.world.now()));
        let disk = Arc::clone(&options.disk);
        Some(Self { disk, path, durability: *durability, facts, end, gone_back, worked_as })
    }
}

impl Record {
    fn new(opening: Option<Opening>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Recording { opening, opened: None })))
    }

    /// Leaves the file for another one, which is opened when something is said.
    fn go_on_in(&self, opening: Option<Opening>) {
        *self.lock() = Recording { opening, opened: None };
    }

    /// Opens the file, once.
    pub fn open(&self, git_branch: Option<String>) -> Result<(), TranscriptError> {
        let mut recording = self.lock();
        let (Some(opening), None) = (&recording.opening, &recording.opened) else { return Ok(()) };
        let Opening { disk, path, durability, facts, end, gone_back, worked_as } = opening;
        let facts = Facts { git_branch, ..facts.clone() };
        let agent = facts.works_as.clone().filter(|agent| worked_as.as_ref() != Some(agent));
        let transcript = Transcript::open(disk.as_ref(), path, facts, *durability, end)?;
        if let Some((id, at)) = gone_back {
            transcript.gone_back(*id, *at)?;
        }
        if let Some(agent) = agent {
            transcript.works_as(&agent)?;
        }
        recording.opened = Some(Arc::new(transcript));
        Ok(())
    }

    /// Whether opening it says nothing but that somebody goes on at its end.
    fn goes_on_at_end(&self) -> bool {
        let recording = self.lock();
        let goes_on = |opening: &Opening| opening.end.read_to > 0 && opening.gone_back.is_none();
        recording.opening.as_ref().is_some_and(goes_on)
    }

    /// Where it is, if the session is recorded.
    fn path(&self) -> Option<PathBuf> {
        self.lock().opening.as_ref().map(|opening| opening.path.clone())
    }

    /// The file, once it is open.
    pub fn transcript(&self) -> Option<Arc<Transcript>> {
        self.lock().opened.clone()
    }

    /// Whether there is nothing left to open.
    pub fn is_open(&self) -> bool {
        let recording = self.lock();
        recording.opening.is_none() || recording.opened.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Recording> {
        // Every change is one assignment: a panic elsewhere cannot leave it half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A random (version 4) id.
///
/// ```
/// use pelton_model::RealWorld;
///
/// let world = RealWorld::new();
/// assert_ne!(pelton::fresh_id(&world), pelton::fresh_id(&world));
/// ```
pub fn fresh_id(world: &dyn World) -> Uuid {
    let bits = (u128::from(world.random()) << 64) | u128::from(world.random());
    uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
}

/// A conversation as it was when it was left: what was said, and what had been done to what is sent.
fn replayed(options: &Options, conversation: &Loaded) -> History {
    let snipped = snipped(options.snip_replay.as_deref(), conversation);
    let is_snipped = !snipped.is_empty();
    let (mut history, is_whole) =
        History::replay(conversation.entries.clone(), conversation.edits.clone(), snipped.clone());
    if conversation.reshaped || is_snipped || !is_whole {
        history.view_mut().leave_out_thinking("resume");
    }
    if conversation.is_partial {
        history.note_released();
    }
    note_edits_since_request(&mut history, conversation, snipped);
    if options.sessions.is_some() && !conversation.edits.is_empty() {
        history.release_unsent();
    }
    if let Some(counted) = conversation.requests.iter().rev().find_map(|request| request.counted.as_ref()) {
        history.view_mut().recall(counted);
        return history;
    }
    history.view_mut().learn_from_counts();
    // What was counted before something was changed tells nothing about now.
    let answered =
        conversation.entries.iter().rposition(|entry| matches!(entry.kind, Kind::Assistant { .. }));
    let is_newer = |edited: &Edited| answered.is_none_or(|newest| edited.at > newest);
    if !is_snipped && is_whole && !conversation.edits.iter().any(is_newer) {
        history.view_mut().recall_count();
    }
    history
}

/// What was done after the newest request is why the server will not know what it is sent next.
fn note_edits_since_request(history: &mut History, conversation: &Loaded, snipped: HashSet<EntryId>) {
    let edits = &conversation.edits;
    let sent_with = edits.len().saturating_sub(conversation.edits_since_request);
    if let Some(newest) = edits[sent_with..].last() {
        let entries = conversation.entries.clone();
        let (mut before, _) = History::replay(entries, edits[..sent_with].to_vec(), snipped);
        before.view_mut().note_sent();
        history.view_mut().takes_the_place_of(before.view(), &newest.by);
    }
}

/// C0: the results that are shown in part.
fn in_files(conversation: &Loaded) -> Vec<Arc<Entry>> {
    let shortened = |edited: &Edited| match &edited.edit {
        Edit::Shorten { call, .. } if edited.by == Level::ResultBudget.name() => Some(call.clone()),
        _ => None,
    };
    let calls: HashSet<String> = conversation.edits.iter().filter_map(shortened).collect();
    let is_one =
        |entry: &&Arc<Entry>| matches!(&entry.kind, Kind::ToolResult { call, .. } if calls.contains(&**call));
    conversation.entries.iter().filter(is_one).cloned().collect()
}

/// E27: what of a resumed conversation is not sent any more.
fn snipped(replay: Option<&dyn SnipReplay>, conversation: &Loaded) -> HashSet<EntryId> {
    let Some(replay) = replay else { return HashSet::new() };
    let before = |at: usize| &conversation.entries[..at.min(conversation.entries.len())];
    conversation.snips.iter().flat_map(|snip| replay.replay(snip, before(snip.at))).collect()
}

/// The content array of blocks we made ourselves.
pub(crate) fn content(blocks: &[Block<'_>]) -> Bytes {
    // Blocks are strings and flags: serialising them cannot fail, and an empty array would be refused as content.
    Bytes::from(serde_json::to_vec(blocks).unwrap_or_else(|_| b"[]".to_vec()))
}

/// The content array of blocks of which some were sent before.
fn again(told: &[Said]) -> Bytes {
    let mut json = Vec::new();
    for said in told {
        json.push(if json.is_empty() { b'[' } else { b',' });
        match said {
            Said::Words(text) => {
                let block = content(&[Block::Text { text }]);
                json.extend_from_slice(&block[1..block.len() - 1]);
            }
            Said::Again(block) => json.extend_from_slice(block),
        }
    }
    json.push(b']');
    Bytes::from(json)
}

/// What the model reads about something a prompt mentions.
fn mentioned(attached: &Attached) -> Bytes {
    let mut words = vec![format!("The user mentioned @{}. This is what is there:", attached.mention)];
    words.extend(attached.shown.iter().filter_map(|block| match block {
        ResultBlock::Text(text) => Some(text.clone()),
        ResultBlock::Image { .. } | ResultBlock::Document { .. } => None,
    }));
    let words = reminder(&words);
    let mut blocks = vec![Block::Text { text: &words }];
    blocks.extend(attached.shown.iter().filter_map(|block| match block {
        ResultBlock::Image { media_type, base64 } => {
            Some(Block::Image { source: ImageSource::Base64 { media_type, data: base64 } })
        }
        ResultBlock::Document { base64 } => Some(document(base64)),
        ResultBlock::Text(_) => None,
    }));
    content(&blocks)
}

fn document(base64: &str) -> Block<'_> {
    Block::Document { source: ImageSource::Base64 { media_type: "application/pdf", data: base64 } }
}

/// Words alone are a text, as programs expect that read what commands and files say. What came as blocks, from a server or an
/// agent, stays blocks.
fn result_content(output: &Output) -> ResultContent<'_> {
    let is_of_blocks =
        |detail: &Value| detail.is_array() || detail.get("content").is_some_and(Value::is_array);
    match result_blocks(output).as_slice() {
        [Block::Text { text }] if !output.detail.as_ref().is_some_and(is_of_blocks) => {
            ResultContent::Words(text)
        }
        blocks => ResultContent::Blocks(blocks.to_vec()),
    }
}

fn result_blocks(output: &Output) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = output
        .content
        .iter()
        .filter_map(|block| match block {
            // The API refuses blank text.
            ResultBlock::Text(text) if text.trim().is_empty() => None,
            ResultBlock::Text(text) => Some(Block::Text { text }),
            ResultBlock::Image { media_type, base64 } => {
                Some(Block::Image { source: ImageSource::Base64 { media_type, data: base64 } })
            }
            ResultBlock::Document { base64 } => Some(document(base64)),
        })
        .collect();
    if blocks.is_empty() {
        blocks.push(Block::Text { text: "(no output)" });
    }
    blocks
}
