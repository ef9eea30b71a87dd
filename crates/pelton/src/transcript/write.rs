//! Appending to the transcript. Every line is written whole, with one `write`, before what it says is
//! acknowledged to anybody; [`Transcript::sync`] puts it on the disk itself.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pelton_wire::line::Line;
use pelton_wire::message;
use uuid::Uuid;

use crate::event::Synthetic;
use crate::history::{Entry, Kind};
use jiff::Timestamp;

/// How much a crash of the machine may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Nothing that was acknowledged: the disk is waited for where it matters.
    #[default]
    Synced,
    /// The last seconds: lines are written but the disk is not waited for. A crash of Pelton itself loses nothing.
    Fast,
}

/// What every line says about its session.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The session.
    pub session_id: Uuid,
    /// Where it works.
    pub cwd: PathBuf,
    /// The program's version.
    pub version: String,
    /// The branch it works on.
    pub git_branch: Option<String>,
    /// Which front end started it.
    pub entrypoint: String,
}

/// The transcript cannot be kept.
#[derive(Debug, Clone, thiserror::Error)]
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
        "the session file {path} is in use by another process: end that one, or start a session of your own"
    )]
    Busy {
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

/// The file of one session, open for appending by this process alone.
#[derive(Debug)]
pub struct Transcript {
    path: PathBuf,
    facts: Facts,
    durability: Durability,
    file: Arc<File>,
    tail: Mutex<Tail>,
}

#[derive(Debug)]
struct Tail {
    /// The newest line's id: the parent of the next.
    newest: Option<Uuid>,
    /// The file does not end in a line end: an earlier write was torn.
    torn: bool,
    /// Bytes were written since the disk was last waited for.
    dirty: bool,
}

impl Transcript {
    /// Opens the session's file, making it and its folders if need be. Lines are readable by the user alone.
    pub fn open(
        path: &Path,
        facts: Facts,
        durability: Durability,
        newest: Option<Uuid>,
    ) -> Result<Self, TranscriptError> {
        let fail = |error: std::io::Error| TranscriptError::Open {
            path: path.to_path_buf(),
            reason: error.to_string(),
        };
        if let Some(dir) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(fail)?;
        }
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path).map_err(fail)?;
        // The lock goes with the process, however it ends.
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(TranscriptError::Busy { path: path.to_path_buf() });
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(fail(error)),
        }
        let torn = ends_torn(&mut file).map_err(fail)?;
        let tail = Mutex::new(Tail { newest, torn, dirty: false });
        Ok(Self { path: path.to_path_buf(), facts, durability, file: Arc::new(file), tail })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Records an entry.
    pub fn entry(&self, entry: &Entry) -> Result<(), TranscriptError> {
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
        self.line(entry.id, entry.at, |line| {
            line.field("type", kind)
                .raw("message", &message)
                .field_if("isMeta", meta)
                .field_if("requestId", request_id)
                .raw_if("toolUseResult", entry.detail.as_deref())
        })
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
        self.line(synthetic.id, at, |line| {
            line.field("type", "assistant")
                .raw("message", &message)
                .field("isApiErrorMessage", true)
                .field("error", synthetic.error)
        })
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

    /// Takes entries back: they stay where they are, but a reader leaves them out.
    pub fn tombstone(&self, ids: &[Uuid], at: Timestamp) -> Result<(), TranscriptError> {
        let line = Line::new("tombstone")
            .field("uuids", ids)
            .field("sessionId", self.facts.session_id)
            .field("timestamp", format!("{at:.3}"));
        self.append(&mut self.tail(), line.finish_line())
    }

    /// Waits until everything written is on the disk. Costs nothing when nothing was.
    pub async fn sync(&self) -> Result<(), TranscriptError> {
        if self.durability == Durability::Fast || !std::mem::take(&mut self.tail().dirty) {
            return Ok(());
        }
        let file = Arc::clone(&self.file);
        let synced = tokio::task::spawn_blocking(move || file.sync_data()).await;
        let error = match synced {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        self.tail().dirty = true;
        Err(TranscriptError::Write { path: self.path.clone(), reason: error })
    }

    fn line(&self, id: Uuid, at: Timestamp, body: impl FnOnce(Line) -> Line) -> Result<(), TranscriptError> {
        let mut tail = self.tail();
        let line = Line::object()
            .field("parentUuid", tail.newest)
            .field("isSidechain", false)
            .field("userType", "external")
            .field("cwd", self.facts.cwd.to_string_lossy())
            .field("sessionId", self.facts.session_id)
            .field("version", &self.facts.version)
            .field("gitBranch", self.facts.git_branch.as_deref().unwrap_or_default());
        let line = body(line)
            .field("uuid", id)
            .field("timestamp", format!("{at:.3}"))
            .field("entrypoint", &self.facts.entrypoint)
            .finish_line();
        self.append(&mut tail, line)?;
        tail.newest = Some(id);
        Ok(())
    }

    fn append(&self, tail: &mut Tail, mut line: Vec<u8>) -> Result<(), TranscriptError> {
        if tail.torn {
            line.insert(0, b'\n');
        }
        tail.dirty = true;
        match (&*self.file).write_all(&line) {
            Ok(()) => {
                tail.torn = false;
                Ok(())
            }
            Err(error) => {
                // Part of the line may be there: the next one starts on a line of its own.
                tail.torn = true;
                Err(TranscriptError::Write { path: self.path.clone(), reason: error.to_string() })
            }
        }
    }

    fn tail(&self) -> std::sync::MutexGuard<'_, Tail> {
        // Every change of the tail is one assignment: a panic elsewhere cannot leave it half made.
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Transcript {
    fn drop(&mut self) {
        // A wait for the disk that was given up still holds the file for a moment; the session is free now. A lock
        // that cannot be given back goes with the file.
        let _ = self.file.unlock();
    }
}

fn ends_torn(file: &mut File) -> std::io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_free_as_soon_as_it_is_let_go() {
        let dir = tempfile::tempdir().unwrap();
        let open = || {
            let facts = Facts {
                session_id: Uuid::nil(),
                cwd: PathBuf::new(),
                version: String::new(),
                git_branch: None,
                entrypoint: String::new(),
            };
            Transcript::open(&dir.path().join("a.jsonl"), facts, Durability::Synced, None)
        };
        let first = open().unwrap();
        assert!(matches!(open(), Err(TranscriptError::Busy { .. })));
        // As `sync` does while it waits for the disk.
        let waiting = Arc::clone(&first.file);
        drop(first);
        assert!(open().is_ok());
        drop(waiting);
    }
}
