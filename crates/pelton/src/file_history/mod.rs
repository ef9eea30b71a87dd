//! What the agent did to files, so that it can be undone. Around every call that may change something, what was there before
//! is kept: the one file of a file tool; for commands, whatever is in the working directories and not ignored. Going back
//! to a message undoes what the agent did since, leaves alone what others did, and can itself be undone.
//!
//! Start at [`FileHistory`]. What to do is worked out in `plan`, which is pure; the rest is disk.

mod at; // one path: looking, and putting back
mod keeper; // the open history of a session
mod plan; // the way back: pure
mod state; // what is at a path
mod store; // the two files of a session
mod sweep; // what is too old to be kept
mod tree; // what the working directories look like
mod watch; // whether anything happened there

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pelton_model::World;
use uuid::Uuid;

use crate::limits::{FILE_HISTORY_FILE_BYTES_MAX, FILE_HISTORY_KEPT_DAYS, FILE_HISTORY_TOTAL_BYTES_MAX};
use crate::tools::background::Background;
use keeper::Keeper;
pub use plan::Conflict;

/// How much is kept of a session's files.
///
/// ```
/// use std::time::Duration;
///
/// use pelton::file_history::FileHistoryLimits;
///
/// let mut limits = FileHistoryLimits::default(); // `Options::file_history` is where it goes
/// limits.total_bytes_max = 50_000_000;
/// limits.kept_for = Some(Duration::from_secs(7 * 24 * 3600));
/// assert!(limits.file_bytes_max < limits.total_bytes_max);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileHistoryLimits {
    /// Bytes of a file that is kept because a command might change it.
    pub file_bytes_max: u64,
    /// Bytes kept in all.
    pub total_bytes_max: u64,
    /// How long the histories of other sessions are kept; forever if absent.
    pub kept_for: Option<Duration>,
}

impl Default for FileHistoryLimits {
    fn default() -> Self {
        Self {
            file_bytes_max: FILE_HISTORY_FILE_BYTES_MAX,
            total_bytes_max: FILE_HISTORY_TOTAL_BYTES_MAX,
            kept_for: Some(Duration::from_secs(FILE_HISTORY_KEPT_DAYS * 24 * 60 * 60)),
        }
    }
}

/// What the agent did to files in one session. A cheap handle. Its methods touch the disk and may take a while: call them
/// where that harms nobody.
///
/// ```
/// use std::sync::Arc;
/// use pelton::file_history::{FileHistory, FileHistoryLimits, HistoryError};
///
/// # let config_dir = tempfile::tempdir()?;
/// let session = uuid::Uuid::nil();
/// let world = Arc::new(pelton_model::RealWorld::new());
/// let history = FileHistory::of_session(config_dir.path(), session, FileHistoryLimits::default(), world);
/// assert!(matches!(history.messages(), Err(HistoryError::None)), "nothing was kept");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct FileHistory(Arc<Shared>);

struct Shared {
    dir: PathBuf,
    config_dir: PathBuf,
    limits: FileHistoryLimits,
    world: Arc<dyn World>,
    opened: Mutex<Opened>,
}

enum Opened {
    NotYet,
    Open(Box<Keeper>),
    /// It failed, and that was told.
    Failed,
}

/// What to do with files that somebody else changed, too.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([tool("Write", json!({"file_path": "a.txt", "content": "A"}))]).reply([text("Written.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # options.sessions = Some(pelton::Sessions { config_dir: dir.path().join("config"), durability: Default::default() });
/// # options.mode = pelton::permission::Mode::AcceptEdits;
/// # options.file_history = Some(pelton::file_history::FileHistoryLimits::default());
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::Prompt;
/// use pelton::file_history::Conflicts;
///
/// engine.submit(Prompt::text("Write a file.")?).for_each(async |_| {}).await;
/// std::fs::write(dir.path().join("a.txt"), "mine")?; // somebody else changes it
/// let history = engine.file_history().ok_or("it is kept")?;
/// let kept = history.rewind(history.messages()?[0], Conflicts::Leave)?;
/// assert!(kept.files[0].left.is_some() && dir.path().join("a.txt").exists());
/// history.rewind(history.messages()?[0], Conflicts::Overwrite)?;
/// assert!(!dir.path().join("a.txt").exists());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflicts {
    /// Leave them as they are.
    Leave,
    /// Bring them back all the same.
    Overwrite,
}

/// What going back would do, or did.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([tool("Write", json!({"file_path": "a.txt", "content": "A"}))]).reply([text("Written.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # options.sessions = Some(pelton::Sessions { config_dir: dir.path().join("config"), durability: Default::default() });
/// # options.mode = pelton::permission::Mode::AcceptEdits;
/// # options.file_history = Some(pelton::file_history::FileHistoryLimits::default());
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::Prompt;
///
/// engine.submit(Prompt::text("Write a file.")?).for_each(async |_| {}).await;
/// let history = engine.file_history().ok_or("it is kept")?;
/// let rewound = history.preview(history.messages()?[0])?; // nothing is done yet
/// assert_eq!((rewound.files.len(), rewound.uncovered_more), (1, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rewound {
    /// Files and links that are other than they should be, and directories whose mode is, by path.
    pub files: Vec<RewoundFile>,
    /// What is not covered, and why. Changes to it cannot be undone.
    pub uncovered: Vec<(PathBuf, String)>,
    /// How many more are not covered.
    pub uncovered_more: usize,
}

/// One file on the way back.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([tool("Write", json!({"file_path": "a.txt", "content": "A"}))]).reply([text("Written.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # options.sessions = Some(pelton::Sessions { config_dir: dir.path().join("config"), durability: Default::default() });
/// # options.mode = pelton::permission::Mode::AcceptEdits;
/// # options.file_history = Some(pelton::file_history::FileHistoryLimits::default());
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::Prompt;
///
/// engine.submit(Prompt::text("Write a file.")?).for_each(async |_| {}).await;
/// let history = engine.file_history().ok_or("it is kept")?;
/// let rewound = history.preview(history.messages()?[0])?;
/// let [file] = &rewound.files[..] else { return Err("one file was written".into()) };
/// assert!(file.path.ends_with("a.txt") && file.left.is_none());
/// assert_eq!((file.insertions, file.deletions), (0, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RewoundFile {
    /// Where.
    pub path: PathBuf,
    /// What going back means for it.
    pub kind: RewoundKind,
    /// Lines that come.
    pub insertions: u64,
    /// Lines that go.
    pub deletions: u64,
    /// Why it was or would be left alone; reads on after the path.
    pub left: Option<String>,
}

/// What going back means for a file.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([tool("Write", json!({"file_path": "a.txt", "content": "A"}))]).reply([text("Written.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # options.sessions = Some(pelton::Sessions { config_dir: dir.path().join("config"), durability: Default::default() });
/// # options.mode = pelton::permission::Mode::AcceptEdits;
/// # options.file_history = Some(pelton::file_history::FileHistoryLimits::default());
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::Prompt;
/// use pelton::file_history::{Conflicts, RewoundKind};
///
/// engine.submit(Prompt::text("Write a file.")?).for_each(async |_| {}).await;
/// let history = engine.file_history().ok_or("it is kept")?;
/// let rewound = history.rewind(history.messages()?[0], Conflicts::Leave)?;
/// assert_eq!(rewound.files[0].kind, RewoundKind::Removed); // it was not there before
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewoundKind {
    /// It gets its earlier content or mode.
    Restored,
    /// It comes back.
    Recreated,
    /// It goes.
    Removed,
}

/// Why nothing can be brought back.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, Step, text, tool};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().reply([tool("Write", json!({"file_path": "a.txt", "content": "A"}))]).reply([text("Written.")]).start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # options.sessions = Some(pelton::Sessions { config_dir: dir.path().join("config"), durability: Default::default() });
/// # options.mode = pelton::permission::Mode::AcceptEdits;
/// # options.file_history = Some(pelton::file_history::FileHistoryLimits::default());
/// # let mut engine = pelton::Engine::new(options)?;
/// use pelton::Prompt;
/// use pelton::file_history::{Conflicts, HistoryError};
///
/// engine.submit(Prompt::text("Write a file.")?).for_each(async |_| {}).await;
/// let history = engine.file_history().ok_or("it is kept")?;
/// assert!(matches!(history.preview(uuid::Uuid::nil()), Err(HistoryError::NoSuchMessage)));
/// assert!(matches!(history.undo(Conflicts::Leave), Err(HistoryError::NothingToUndo)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// The session kept nothing.
    #[error("no file history is kept for this session")]
    None,
    /// The message is not one of the session's, or came before files were kept.
    #[error("no file checkpoint found for this message")]
    NoSuchMessage,
    /// There is no rewind that was not undone.
    #[error("there is nothing to undo")]
    NothingToUndo,
    /// Another process uses the session.
    #[error("the session is in use by another process")]
    Busy,
    /// The disk said no.
    #[error("the file history cannot be used: {0}")]
    Io(#[from] io::Error),
}

/// Where the history of a session is kept.
pub(crate) fn folder_of(config_dir: &Path, session: Uuid) -> PathBuf {
    config_dir.join("file-history").join(session.to_string())
}

/// Whether commands go on in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    Nothing,
    /// What differs from here on is theirs.
    Commands,
}

impl Beside {
    pub fn of(background: &Background) -> Self {
        if background.has_commands() { Self::Commands } else { Self::Nothing }
    }
}

/// Which paths a call may change.
pub(crate) enum Scope {
    /// This file, and the directories to it.
    File(PathBuf),
    /// Anything in these trees.
    Trees(Vec<PathBuf>),
}

impl FileHistory {
    /// The history of a session. Nothing is touched before it is needed.
    pub fn of_session(
        config_dir: &Path,
        session: Uuid,
        limits: FileHistoryLimits,
        world: Arc<dyn World>,
    ) -> Self {
        Self(Arc::new(Shared {
            dir: folder_of(config_dir, session),
            config_dir: config_dir.to_path_buf(),
            limits,
            world,
            opened: Mutex::new(Opened::NotYet),
        }))
    }

    /// Takes away the histories of other sessions that are older than they are [kept](FileHistoryLimits::kept_for). Says how
    /// many; for a quiet moment.
    pub fn sweep(&self) -> usize {
        let (Some(kept_for), Some(all)) = (self.0.limits.kept_for, self.0.dir.parent()) else { return 0 };
        sweep::sweep(all, &self.0.dir, self.0.world.now().into(), kept_for)
    }

    /// The messages one can go back to, oldest first.
    pub fn messages(&self) -> Result<Vec<Uuid>, HistoryError> {
        self.with_kept(|keeper| Ok(keeper.messages()))
    }

    /// What going back to a message would do.
    pub fn preview(&self, to: Uuid) -> Result<Rewound, HistoryError> {
        self.with_kept(|keeper| keeper.preview(to))
    }

    /// Goes back to what was there when the user said this: undoes what the agent did since.
    pub fn rewind(&self, to: Uuid, conflicts: Conflicts) -> Result<Rewound, HistoryError> {
        self.with_kept(|keeper| keeper.rewind(to, conflicts))
    }

    /// What [`undo`](Self::undo) would do.
    pub fn preview_undo(&self) -> Result<Rewound, HistoryError> {
        self.with_kept(Keeper::preview_undo)
    }

    /// Takes the newest rewind back.
    pub fn undo(&self, conflicts: Conflicts) -> Result<Rewound, HistoryError> {
        self.with_kept(|keeper| keeper.undo(conflicts))
    }

    /// S7: from here on, what was there is what was there when the user said this. Tells what went wrong, once.
    pub(crate) async fn mark(&self, message: Uuid, beside: Beside) -> Option<String> {
        self.beside(move |keeper| keeper.mark(message, beside)).await
    }

    /// A call begins that may change something.
    pub(crate) async fn begin(&self, call: String, scope: Scope) -> Option<String> {
        self.beside(move |keeper| keeper.begin(&call, scope)).await
    }

    /// It has ended.
    pub(crate) async fn end(&self, call: String, beside: Beside) -> Option<String> {
        self.beside(move |keeper| keeper.end_beside(&call, beside)).await
    }

    /// A history that cannot be written never stops a session: it ends, and that is told once.
    async fn beside(
        &self,
        work: impl FnOnce(&mut Keeper) -> io::Result<()> + Send + 'static,
    ) -> Option<String> {
        let own = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let mut opened = own.lock();
            let done = match own.keeper(&mut opened) {
                Ok(Some(keeper)) => work(keeper),
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            };
            if done.is_err() {
                *opened = Opened::Failed;
            }
            done
        });
        let error = match done.await {
            Ok(Ok(())) => return None,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        Some(format!(
            "The file history cannot be kept ({error}): what is changed from here on cannot be rewound."
        ))
    }

    fn with_kept<T>(
        &self,
        work: impl FnOnce(&mut Keeper) -> Result<T, HistoryError>,
    ) -> Result<T, HistoryError> {
        let mut opened = self.lock();
        if matches!(*opened, Opened::NotYet) && !self.0.dir.is_dir() {
            return Err(HistoryError::None);
        }
        match self.keeper(&mut opened) {
            Ok(Some(keeper)) => work(keeper),
            Ok(None) => Err(HistoryError::None),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(HistoryError::Busy),
            Err(error) => Err(error.into()),
        }
    }

    /// The open history; `None` if it failed before.
    fn keeper<'a>(&self, opened: &'a mut Opened) -> io::Result<Option<&'a mut Keeper>> {
        if matches!(opened, Opened::NotYet) {
            let Shared { dir, config_dir, limits, world, .. } = &*self.0;
            *opened =
                Opened::Open(Box::new(Keeper::open(dir, config_dir, limits.clone(), Arc::clone(world))?));
        }
        Ok(match opened {
            Opened::Open(keeper) => Some(keeper),
            Opened::NotYet | Opened::Failed => None,
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Opened> {
        // A panic inside leaves what is on disk, which is whole at every moment.
        self.0.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
