//! Appending to the transcript. Every line is written whole, with one `write`, before what it says is
//! acknowledged to anybody; [`Transcript::sync`] puts it on the disk itself.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pelton_model::Prefix;
use pelton_wire::line::Line;
use pelton_wire::message;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::blobs::{SetAside, shortened};
use super::disk::{Disk, DiskFile};
use super::lease::{Held, Holder};
use super::proof::{Written, proof};
use super::queued::QueuedPrompt;
use super::read::read_from;
use super::requests::kept_text;
use super::{
    AGENT_LINE, ASKED, COMPACT_BOUNDARY, CONTEXT_EDIT_LINE, COST_LINE, DECIDED, DEFERRED, DIRECTORY_FIELD,
    GONE_BACK_LINE, MEDIA_LEFT_OUT_LINE, MODE_LINE, PROOF_FIELD, QUESTION_LINE, REQUEST_LINE, RequestFacts,
    TOMBSTONE_LINE,
};
use crate::event::{ModelUsage, Synthetic};
use crate::history::{Edit, EditId, Entry, Kind, MediaPlace, Stays};
use crate::limits::TRANSCRIPT_LINE_BYTES_MAX;
use crate::permission::Mode;
use crate::secrets::Secrets;
use jiff::Timestamp;

/// How much a crash of the machine may cost.
///
/// ```
/// use pelton::Sessions;
/// use pelton::transcript::Durability;
///
/// let sessions = Sessions { config_dir: "/home/ada/.claude".into(), durability: Durability::Fast };
/// assert_eq!(Durability::from_name("fast"), Some(sessions.durability)); // as settings write it
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Nothing that was acknowledged: the disk is waited for where it matters.
    #[default]
    Synced,
    /// The last seconds: lines are written but the disk is not waited for. A crash of Pelton itself loses nothing.
    Fast,
}

impl Durability {
    /// By its name: `synced` or `fast`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "synced" => Some(Self::Synced),
            "fast" => Some(Self::Fast),
            _ => None,
        }
    }
}

/// What every line says about its session.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The session.
    pub session_id: Uuid,
    /// Where it works.
    pub cwd: PathBuf,
    /// Names that directory, wherever it is moved.
    pub directory: Option<String>,
    /// The program's version.
    pub version: String,
    /// The branch it works on.
    pub git_branch: Option<String>,
    /// Which front end started it.
    pub entrypoint: String,
    /// The sub-agent whose record this is.
    pub agent_id: Option<String>,
    /// The agent that the session works as, or would if it was there.
    pub works_as: Option<String>,
    /// What is not written down, whoever says it.
    pub secrets: Secrets,
}

/// How far a question about a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionState {
    /// Somebody is asked.
    Asked,
    /// Somebody has decided.
    Decided,
    /// It was put off: nobody decides in this run.
    Deferred,
}

/// What was done to what the model is sent.
#[derive(Debug, Clone, Copy)]
pub struct EditLine<'a> {
    /// Its name.
    pub id: EditId,
    /// Who did it.
    pub by: &'a str,
    /// What was done.
    pub edit: &'a Edit,
    /// The first of the edits that it is one with.
    pub with: Option<EditId>,
}

/// A summary that stands for what was said before.
#[derive(Debug, Clone, Copy)]
pub struct CompactLines<'a> {
    /// What it takes away, and that the summary takes its place.
    pub edit: EditLine<'a>,
    /// The summary.
    pub summary: &'a Entry,
    /// `auto` or `manual`.
    pub trigger: &'a str,
    /// What the model would have been sent, in tokens.
    pub before_tokens: u64,
    /// What it is sent now.
    pub after_tokens: u64,
    /// What of the conversation is still sent behind the summary.
    pub stays: Stays,
    /// What the session has consumed, by model.
    pub spent: &'a BTreeMap<String, ModelUsage>,
    /// What somebody in front of it let run unasked.
    pub mode: Option<Mode>,
}

/// What is recorded of a prompt beside its words.
#[derive(Debug, Clone, Copy, Default)]
pub struct TakenPrompt<'a> {
    /// The prompts that waited and are part of it.
    pub queued: &'a [Uuid],
    /// What may run unasked from here on.
    pub mode: Option<&'a str>,
}

/// What a summary's boundary says about what stayed: where a reader may begin.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptBehind {
    /// The first line that is still needed; the boundary, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Uuid>,
    /// Prompts that were waiting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Uuid>,
    /// What the record says of the session as a whole stands behind the summary again: nobody has to look for it before.
    #[serde(default)]
    pub says_all: bool,
}

/// The transcript cannot be kept.
///
/// ```
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # let dir = tempfile::tempdir()?;
/// # let endpoint = Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any")));
/// use pelton::transcript::{Durability, TranscriptError};
/// use pelton::{Engine, Options, Sessions};
///
/// std::fs::write(dir.path().join("config"), "a file where a folder should be")?;
/// let mut options = Options::new(dir.path(), endpoint);
/// options.sessions = Some(Sessions { config_dir: dir.path().join("config"), durability: Durability::Fast });
/// let refused = Engine::new(options)?.title().set("Jars");
/// assert!(matches!(refused, Err(TranscriptError::Open { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// Its folder or file cannot be made or opened.
    #[error("cannot open the session file {path}: {reason}")]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// Somebody else writes to it.
    #[error(
        "the session file {path} is in use by another process{}: end that one, or fork the session (--fork-session) and go on in a copy",
        .holder.as_ref().map(|holder| format!(" ({holder})")).unwrap_or_default()
    )]
    Busy {
        /// The file.
        path: PathBuf,
        /// Who it is, if that is known.
        holder: Option<Holder>,
    },
    /// Somebody else went on with the conversation since it was read: new lines would leave theirs out.
    #[error(
        "the session file {path} was written to by another process since it was read: resume the session again, or fork it (--fork-session) and go on in a copy"
    )]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// What should be recorded is not a message.
    #[error("cannot record a message: {reason}")]
    Content {
        /// What is wrong with it.
        reason: String,
    },
    /// It cannot be written, for example because the disk is full.
    #[error("cannot write the session file {path}: {reason}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
}

/// Where a conversation ends that goes on.
#[derive(Debug, Clone, Default)]
pub struct End {
    /// Its newest line.
    pub newest: Option<Uuid>,
    /// How far its file was read.
    pub read_to: u64,
    /// Prompts that wait.
    pub waiting: Vec<Uuid>,
}

/// The file of one session, open for appending by this process alone.
pub struct Transcript {
    path: PathBuf,
    facts: Facts,
    durability: Durability,
    file: Box<dyn DiskFile>,
    tail: Mutex<Tail>,
}

#[derive(Debug)]
struct Tail {
    /// The newest line's id: the parent of the next.
    newest: Option<Uuid>,
    /// Prompts that wait.
    waiting: Vec<Uuid>,
    /// A line of ours names the directory.
    is_placed: bool,
    /// What stood in front of the newest request, by the name it is kept under.
    prefix: Option<String>,
    /// The file does not end in a line end: an earlier write was torn.
    torn: bool,
    /// Writes so far, and how many of them are known to be on the disk itself. Not a flag: a wait that is given up must
    /// leave it as it was, and a second wait must not pass the first.
    writes: u64,
    synced: u64,
}

impl Transcript {
    /// Opens the session's file, making it and its folders if need be.
    pub fn open(
        disk: &dyn Disk,
        path: &Path,
        facts: Facts,
        durability: Durability,
        end: &End,
    ) -> Result<Self, TranscriptError> {
        let path = path.to_path_buf();
        let fail = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock => {
                let held = error.into_inner().and_then(|inner| inner.downcast::<Held>().ok());
                TranscriptError::Busy { path: path.clone(), holder: held.and_then(|held| held.0) }
            }
            _ => TranscriptError::Open { path: path.clone(), reason: error.to_string() },
        };
        let file = disk.open(&path).map_err(fail)?;
        let bytes = file.bytes().map_err(fail)?;
        let last = file.read_at(bytes.saturating_sub(1), 1).map_err(fail)?;
        if changed_since(file.as_ref(), end.read_to, bytes).map_err(fail)? {
            return Err(TranscriptError::Changed { path });
        }
        let torn = last.last().is_some_and(|last| *last != b'\n');
        let tail = Mutex::new(Tail {
            newest: end.newest,
            waiting: end.waiting.clone(),
            is_placed: false,
            prefix: None,
            torn,
            writes: 0,
            synced: 0,
        });
        Ok(Self { path, facts, durability, file, tail })
    }

    /// Records an entry. Prompts that waited and are part of it are consumed with the same write.
    pub fn entry(&self, entry: &Entry, taken: TakenPrompt<'_>) -> Result<(), TranscriptError> {
        let TakenPrompt { queued, mode } = taken;
        let (kind, message) = match &entry.kind {
            Kind::Prompt { .. } | Kind::ToolResult { .. } => ("user", message::user(&entry.json)),
            Kind::Assistant { origin, .. } => {
                let head = message::Assistant {
                    id: &origin.message_id,
                    model: &origin.model,
                    stop_reason: None,
                    usage: &origin.usage,
                };
                ("assistant", message::assistant(&head, &entry.json))
            }
        };
        let request_id = match &entry.kind {
            Kind::Assistant { origin, .. } => origin.request_id.as_deref(),
            Kind::Prompt { .. } | Kind::ToolResult { .. } => None,
        };
        let meta = matches!(entry.kind, Kind::Prompt { meta: true }).then_some(true);
        // What words are about, or the structured twin of a result.
        let detail = if matches!(entry.kind, Kind::Prompt { .. }) { "attachment" } else { "toolUseResult" };
        // What the user wrote stays in its line: lists of sessions show it.
        let aside = match &entry.kind {
            Kind::Prompt { .. } => Some(SetAside::Media),
            Kind::ToolResult { .. } => Some(SetAside::All),
            Kind::Assistant { .. } => None,
        };
        let said = Some((kind, &entry.json[..]));
        self.line(entry.id, entry.at, aside, said, |line| {
            line.field("type", kind)
                .raw("message", &message)
                .field_if("isMeta", meta)
                .field_if("requestId", request_id)
                .field_if("permissionMode", mode)
                .field_if("queuedIds", (!queued.is_empty()).then_some(queued))
                .raw_if(detail, entry.detail.as_deref())
        })?;
        self.tail().waiting.retain(|id| !queued.contains(id) && *id != entry.id);
        Ok(())
    }

    /// Records an error shown in the assistant's role.
    pub fn synthetic(&self, synthetic: &Synthetic, at: Timestamp) -> Result<(), TranscriptError> {
        let message_id = synthetic.id.to_string();
        let usage = pelton_wire::usage::Usage::default();
        let head = message::Assistant {
            id: &message_id,
            model: crate::SYNTHETIC_MODEL,
            stop_reason: Some("stop_sequence"),
            usage: &usage,
        };
        let message = message::assistant(&head, &synthetic.json);
        self.line(synthetic.id, at, None, None, |line| {
            line.field("type", "assistant")
                .raw("message", &message)
                .field("isApiErrorMessage", true)
                .field_if("error", synthetic.error)
        })
    }

    /// The conversation goes on from an earlier place than its file ends at: what is done to it from here on is done to what
    /// was said up to there.
    pub fn gone_back(&self, id: Uuid, at: Timestamp) -> Result<(), TranscriptError> {
        self.line(id, at, None, None, |line| line.field("type", "system").field("subtype", GONE_BACK_LINE))
    }

    /// Notes what the loop did, and why. Beside the conversation: such a line is nobody's parent.
    pub fn note(&self, kind: &str, reason: &str, turn: u32, at: Timestamp) -> Result<(), TranscriptError> {
        let line = Line::new("system")
            .field("subtype", "loop_event")
            .field("kind", kind)
            .field("reason", reason)
            .field("turn", turn)
            .field("sessionId", self.facts.session_id)
            .field("timestamp", format!("{at:.3}"));
        self.append(&mut self.tail(), line.finish_line())
    }

    /// Somebody is asked about a call, or has decided: after a crash the session knows which calls have not begun.
    pub fn question(&self, call: &str, state: QuestionState, at: Timestamp) -> Result<(), TranscriptError> {
        let kind = match state {
            QuestionState::Asked => ASKED,
            QuestionState::Decided => DECIDED,
            QuestionState::Deferred => DEFERRED,
        };
        let line = Line::new(QUESTION_LINE)
            .field("kind", kind)
            .field("toolUseID", call)
            .field("sessionId", self.facts.session_id)
            .field("timestamp", format!("{at:.3}"));
        self.append(&mut self.tail(), line.finish_line())
    }

    /// A prompt waits from here on.
    pub fn enqueue(
        &self,
        prompt: &QueuedPrompt,
        priority: &str,
        at: Timestamp,
    ) -> Result<(), TranscriptError> {
        let line = Line::new("queue-operation")
            .field("operation", "enqueue")
            .field("promptId", prompt.id)
            .raw("content", &prompt.content)
            .field("priority", priority)
            .field_if("clientComposed", prompt.verbatim.then_some(true))
            .field("sessionId", self.facts.session_id)
            .field("timestamp", format!("{at:.3}"));
        let mut tail = self.tail();
        self.append(&mut tail, line.finish_line())?;
        tail.waiting.push(prompt.id);
        Ok(())
    }

    /// Prompts wait no longer: consumed (`dequeue`), or taken back (`remove`).
    pub fn queue_operation(
        &self,
        operation: &str,
        ids: &[Uuid],
        at: Timestamp,
    ) -> Result<(), TranscriptError> {
        let line = Line::new("queue-operation")
            .field("operation", operation)
            .field("promptIds", ids)
            .field("sessionId", self.facts.session_id)
            .field("timestamp", format!("{at:.3}"));
        let mut tail = self.tail();
        self.append(&mut tail, line.finish_line())?;
        tail.waiting.retain(|id| !ids.contains(id));
        Ok(())
    }

    /// Notes what a slash command answered. Beside the conversation.
    pub fn command(
        &self,
        name: &str,
        arguments: &str,
        output: &str,
        at: Timestamp,
    ) -> Result<(), TranscriptError> {
        let content = format!(
            "<command-name>/{name}</command-name>\n<command-args>{arguments}</command-args>\n\
             <local-command-stdout>{output}</local-command-stdout>"
        );
        let line = Line::new("system")
            .field("subtype", "local_command")
            .field("content", content)
            .field("sessionId", self.facts.session_id)
            .field("timestamp", format!("{at:.3}"));
        self.append(&mut self.tail(), line.finish_line())
    }

    /// The agent that the session works as from here on. Beside the conversation.
    pub fn works_as(&self, agent: &str) -> Result<(), TranscriptError> {
        self.append(&mut self.tail(), self.agent_line(agent))
    }

    fn agent_line(&self, agent: &str) -> Vec<u8> {
        let line = Line::new(AGENT_LINE).field("agentSetting", agent);
        line.field("sessionId", self.facts.session_id).finish_line()
    }

    /// What the session has consumed so far, by model. Beside the conversation.
    pub fn spent(&self, by_model: &BTreeMap<String, ModelUsage>) -> Result<(), TranscriptError> {
        self.append(&mut self.tail(), self.cost_line(by_model))
    }

    fn cost_line(&self, by_model: &BTreeMap<String, ModelUsage>) -> Vec<u8> {
        let line = Line::new(COST_LINE).field("models", by_model);
        line.field("sessionId", self.facts.session_id).finish_line()
    }

    /// What the session is called from here on. Beside the conversation.
    pub fn title(&self, title: &str) -> Result<(), TranscriptError> {
        let line =
            Line::new("custom-title").field("customTitle", title).field("sessionId", self.facts.session_id);
        self.append(&mut self.tail(), line.finish_line())
    }

    /// What a model would call it: counts where nobody has named it. Beside the conversation.
    pub fn suggested_title(&self, title: &str) -> Result<(), TranscriptError> {
        let line = Line::new("ai-title").field("aiTitle", title).field("sessionId", self.facts.session_id);
        self.append(&mut self.tail(), line.finish_line())
    }

    /// The colour it is shown in from here on; empty for none in particular. Beside the conversation.
    pub fn color(&self, color: &str) -> Result<(), TranscriptError> {
        let line =
            Line::new("agent-color").field("agentColor", color).field("sessionId", self.facts.session_id);
        self.append(&mut self.tail(), line.finish_line())
    }

    /// Notes which images and documents are not sent any more: they stay where they are.
    pub fn media_left_out(
        &self,
        edit: EditId,
        places: &[MediaPlace],
        at: Timestamp,
    ) -> Result<(), TranscriptError> {
        let line = Line::new("system")
            .field("subtype", MEDIA_LEFT_OUT_LINE)
            .field("editId", edit)
            .field("places", places)
            .field("sessionId", self.facts.session_id)
            .field("timestamp", format!("{at:.3}"));
        self.append(&mut self.tail(), line.finish_line())
    }

    /// Notes what became of a request. What stood in front of it is kept beside the record, once; where it cannot be, or
    /// has to hide something, a resume makes it anew.
    pub fn request(
        &self,
        request: &RequestFacts,
        prefix: &Prefix,
        at: Timestamp,
    ) -> Result<(), TranscriptError> {
        let mut tail = self.tail();
        if tail.prefix != request.prefix.kept {
            tail.prefix.clone_from(&request.prefix.kept);
            if let Some((name, text)) = request.prefix.kept.as_ref().zip(kept_text(prefix))
                && matches!(self.facts.secrets.hidden(&text), Cow::Borrowed(_))
            {
                let _ = self.file.keep_loosely(name, &text);
            }
        }
        let line = Line::new("system")
            .field("subtype", REQUEST_LINE)
            .field("request", request)
            .field("sessionId", self.facts.session_id)
            .field("timestamp", format!("{at:.3}"));
        self.append(&mut tail, line.finish_line())
    }

    /// Notes what was done to what the model is sent: by reference, beside the conversation.
    pub fn edit(&self, edit: EditLine<'_>, at: Timestamp) -> Result<(), TranscriptError> {
        let line = Line::new("system")
            .field("subtype", CONTEXT_EDIT_LINE)
            .field("editId", edit.id)
            .field("by", edit.by)
            .field("edit", edit.edit)
            .field_if("with", edit.with)
            .field("sessionId", self.facts.session_id)
            .field("timestamp", format!("{at:.3}"));
        self.append(&mut self.tail(), line.finish_line())
    }

    /// Records a summary that stands for what was said before, with the boundary in front of it. Both lines are one
    /// write: a reader finds the two, or neither counts.
    pub fn compacted(&self, lines: CompactLines<'_>, at: Timestamp) -> Result<(), TranscriptError> {
        let CompactLines { edit, summary, trigger, before_tokens, after_tokens, stays, spent, mode } = lines;
        let mut tail = self.tail();
        let kept = match stays {
            Stays::Nothing => Some(None),
            Stays::From(first) => Some(Some(first)),
            Stays::Unclear => None,
        };
        let kept = kept.map(|from| KeptBehind { from, waiting: tail.waiting.clone(), says_all: true });
        let metadata = serde_json::json!({
            "trigger": trigger,
            "preTokens": before_tokens,
            "postTokens": after_tokens,
        });
        // Readers that follow parents find nothing before a boundary; ours follows the other name.
        let mut bytes = self
            .head(&tail, None)
            .field("logicalParentUuid", tail.newest)
            .field("type", "system")
            .field("subtype", COMPACT_BOUNDARY)
            .field("content", "Conversation compacted")
            .field("isMeta", false)
            .field("level", "info")
            .field("compactMetadata", metadata)
            .field("editId", edit.id)
            .field("by", edit.by)
            .field("edit", edit.edit)
            .field_if("kept", kept)
            .field("uuid", edit.id)
            .field("timestamp", format!("{at:.3}"))
            .field("entrypoint", &self.facts.entrypoint)
            .finish_line();
        let line = self
            .head(&tail, Some(edit.id))
            .field("type", "user")
            .raw("message", &message::user(&summary.json))
            // Readers pass over what is meta; to them, this is all that is left of what was said before.
            .field("isCompactSummary", true)
            .raw_if("attachment", summary.detail.as_deref())
            .field("uuid", summary.id)
            .field("timestamp", format!("{at:.3}"))
            .field("entrypoint", &self.facts.entrypoint)
            .field(PROOF_FIELD, self.proof("user", &summary.json, Some(edit.id)));
        bytes.extend(self.set_aside(&line.finish_line(), SetAside::Media)?);
        // Whoever goes on reads from here.
        bytes.extend(self.facts.works_as.iter().flat_map(|agent| self.agent_line(agent)));
        if !spent.is_empty() {
            bytes.extend(self.cost_line(spent));
        }
        if let Some(mode) = mode {
            let line = Line::new(MODE_LINE).field("permissionMode", mode.name());
            bytes.extend(line.field("sessionId", self.facts.session_id).finish_line());
        }
        self.append(&mut tail, bytes)?;
        tail.newest = Some(summary.id);
        Ok(())
    }

    /// Takes entries back: they stay where they are, but a reader leaves them out.
    pub fn tombstone(&self, ids: &[Uuid], at: Timestamp) -> Result<(), TranscriptError> {
        let line = Line::new(TOMBSTONE_LINE)
            .field("uuids", ids)
            .field("sessionId", self.facts.session_id)
            .field("timestamp", format!("{at:.3}"));
        self.append(&mut self.tail(), line.finish_line())
    }

    /// Waits until everything written is on the disk. Costs nothing when nothing was.
    pub async fn sync(&self) -> Result<(), TranscriptError> {
        let (writes, synced) = {
            let tail = self.tail();
            (tail.writes, tail.synced)
        };
        if self.durability == Durability::Fast || writes == synced {
            return Ok(());
        }
        self.file.sync().await.map_err(|error| self.failed(&error))?;
        let mut tail = self.tail();
        tail.synced = tail.synced.max(writes);
        Ok(())
    }

    fn line(
        &self,
        id: Uuid,
        at: Timestamp,
        aside: Option<SetAside>,
        said: Option<(&str, &[u8])>,
        body: impl FnOnce(Line) -> Line,
    ) -> Result<(), TranscriptError> {
        let mut tail = self.tail();
        let proof = said.map(|(kind, content)| self.proof(kind, content, tail.newest));
        let line = body(self.head(&tail, tail.newest))
            .field("uuid", id)
            .field("timestamp", format!("{at:.3}"))
            .field("entrypoint", &self.facts.entrypoint)
            .field_if(PROOF_FIELD, proof)
            .finish_line();
        let line = match aside {
            Some(what) => self.set_aside(&line, what)?,
            None => line,
        };
        self.append(&mut tail, line)?;
        (tail.newest, tail.is_placed) = (Some(id), true);
        Ok(())
    }

    /// What shows to readers that a message is as it was said.
    fn proof(&self, kind: &str, content: &[u8], parent: Option<Uuid>) -> String {
        let written = match self.facts.secrets.hidden(content) {
            Cow::Borrowed(_) => Written::AsSaid,
            Cow::Owned(_) => Written::InPart,
        };
        proof(kind, content, parent, written)
    }

    /// A line whose long texts are kept beside the record, if it has any.
    fn set_aside(&self, line: &[u8], what: SetAside) -> Result<Vec<u8>, TranscriptError> {
        // Before anything of it goes beside the record.
        let line = self.facts.secrets.hidden(line);
        let short = shortened(&line, what, |name, bytes| self.file.keep(name, bytes));
        Ok(short.map_err(|error| self.failed(&error))?.unwrap_or_else(|| line.into_owned()))
    }

    /// How a line of the conversation begins.
    fn head(&self, tail: &Tail, parent: Option<Uuid>) -> Line {
        Line::object()
            .field("parentUuid", parent)
            .field("isSidechain", self.facts.agent_id.is_some())
            .field_if("agentId", self.facts.agent_id.as_deref())
            .field("userType", "external")
            .field("cwd", self.facts.cwd.to_string_lossy())
            .field_if(DIRECTORY_FIELD, self.facts.directory.as_ref().filter(|_| !tail.is_placed))
            .field("sessionId", self.facts.session_id)
            .field("version", &self.facts.version)
            .field("gitBranch", self.facts.git_branch.as_deref().unwrap_or_default())
    }

    fn append(&self, tail: &mut Tail, mut line: Vec<u8>) -> Result<(), TranscriptError> {
        if tail.torn {
            line.insert(0, b'\n');
        }
        tail.writes += 1;
        match self.write_all(&self.facts.secrets.hidden(&line)) {
            Ok(()) => {
                tail.torn = false;
                Ok(())
            }
            Err(error) => {
                // Part of the line may be there: the next one starts on a line of its own.
                tail.torn = true;
                Err(self.failed(&error))
            }
        }
    }

    fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.file.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written.min(bytes.len())..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn failed(&self, error: &io::Error) -> TranscriptError {
        TranscriptError::Write { path: self.path.clone(), reason: error.to_string() }
    }

    fn tail(&self) -> std::sync::MutexGuard<'_, Tail> {
        // Every change of the tail is one assignment: a panic elsewhere cannot leave it half made.
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether somebody went on with the conversation behind a place. Titles, tags and the like are nobody's parents, and may
/// be added by anybody at any time.
fn changed_since(file: &dyn DiskFile, place: u64, bytes: u64) -> io::Result<bool> {
    // Nobody adds as much beside a conversation as would be worth reading in parts.
    // One that is shorter than what was read of it is another one: the session was taken away.
    let Some(added) = bytes.checked_sub(place) else { return Ok(true) };
    match usize::try_from(added) {
        Ok(0) => Ok(false),
        Ok(added) if added <= TRANSCRIPT_LINE_BYTES_MAX => {
            let added = file.read_at(place, added)?;
            Ok(read_from(&added[..])?.newest.is_some())
        }
        _ => Ok(true),
    }
}

// Files have no words of their own.
impl std::fmt::Debug for Transcript {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transcript")
            .field("path", &self.path)
            .field("tail", &self.tail)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::RealDisk;

    #[tokio::test]
    async fn a_session_is_free_as_soon_as_it_is_let_go() {
        let dir = tempfile::tempdir().unwrap();
        let open = || {
            let facts = Facts {
                session_id: Uuid::nil(),
                cwd: PathBuf::new(),
                directory: None,
                version: String::new(),
                git_branch: None,
                entrypoint: String::new(),
                agent_id: None,
                works_as: None,
                secrets: Secrets::default(),
            };
            Transcript::open(
                &RealDisk,
                &dir.path().join("a.jsonl"),
                facts,
                Durability::Synced,
                &End::default(),
            )
        };
        let first = open().unwrap();
        assert!(matches!(open(), Err(TranscriptError::Busy { .. })));
        // A wait for the disk that was given up.
        let waiting = first.file.sync();
        drop(first);
        assert!(open().is_ok());
        drop(waiting);
    }
}
