//! Z2: likely next calls, made while the model still answers. When the model then makes one of them, its result is there.
//!
//! Nothing of it reaches the session before that: such a call reads with a memory of its own, asks nobody, and its answer
//! counts only for the very same input and as long as the file is the same.

use std::os::unix::fs::MetadataExt;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use pelton_model::World;
use serde_json::Value;

use super::file_memory::FileMemory;
use super::tool::{Output, ResultBlock, Tool, ToolCx};

/// How much may be done ahead. What turns out to be of no use was done for nothing, so there is an end to it.
///
/// ```
/// use pelton::tools::Speculation;
///
/// let mut terms = Speculation::default();
/// terms.calls_max = 2;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Speculation {
    /// Calls made ahead after one answer.
    pub calls_max: usize,
    /// Bytes of results kept at once.
    pub bytes_max: usize,
    /// Time one call may take.
    pub time_max: Duration,
    /// Calls of a submission that were, or still may be, made for nothing; beyond that no more are made.
    pub wasted_calls_max: usize,
}

impl Default for Speculation {
    fn default() -> Self {
        Self { calls_max: 4, bytes_max: 1024 * 1024, time_max: Duration::from_secs(2), wasted_calls_max: 32 }
    }
}

/// What came of making calls ahead.
///
/// ```
/// use pelton::tools::Speculated;
///
/// /// How often a guess was right, in percent; `Outcome::speculation` is where the figures are.
/// fn hit_rate(speculated: &Speculated) -> Option<usize> {
///     (speculated.hits * 100).checked_div(speculated.calls)
/// }
/// assert_eq!(hit_rate(&Speculated::default()), None);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Speculated {
    /// Calls made ahead.
    pub calls: usize,
    /// Those the model then made: their results were there.
    pub hits: usize,
    /// Calls of the same tools that had to be made when the model made them.
    pub misses: usize,
    /// Calls made ahead for nothing.
    pub wasted_calls: usize,
    /// Bytes of their results.
    pub wasted_bytes: usize,
}

/// A file changed so shortly before it was read may change again without a trace in its times.
const TOO_FRESH: Duration = Duration::from_millis(50);

/// The calls made ahead in a submission.
#[derive(Default)]
pub(crate) struct Ahead {
    terms: Speculation,
    made: Mutex<Made>,
    /// Bytes of results that are kept: of calls that wait, and of those that the newest answer took.
    bytes: Arc<AtomicUsize>,
}

#[derive(Default)]
struct Made {
    waiting: Vec<Waiting>,
    /// Those that calls of the newest answer want. They count with it.
    taken: Vec<Taken>,
    /// Calls of that answer that had to be made.
    misses: usize,
    figures: Speculated,
}

/// A call whose result may be wanted.
struct Waiting {
    tool: String,
    key: Value,
    run: Run,
}

/// A call whose result is wanted.
struct Taken {
    call: Waiting,
    /// Whether it was of use; not known while it is waited for.
    held: Option<bool>,
}

/// A call that runs, or has run. It goes on while any clone is polled.
pub(crate) type Run = Shared<BoxFuture<'static, Option<Arc<Brought>>>>;

/// What a call made ahead brought.
pub(crate) struct Brought {
    output: Output,
    bytes: usize,
    path: PathBuf,
    state: FileState,
    /// What the session knows if the model sees the result.
    files: Arc<FileMemory>,
}

/// A call to be made ahead.
pub(crate) struct Wanted {
    pub tool: Arc<dyn Tool>,
    pub input: Value,
    /// The input in the one form all equal ones have.
    pub key: Value,
    /// The one file it depends on.
    pub path: PathBuf,
    pub cx: ToolCx,
}

impl Ahead {
    pub fn new(terms: Speculation) -> Self {
        Self { terms, ..Self::default() }
    }

    /// How many calls may be made now.
    pub fn room(&self) -> usize {
        let made = self.lock();
        let unused = made.figures.wasted_calls + made.waiting.len();
        self.terms.calls_max.min(self.terms.wasted_calls_max.saturating_sub(unused))
    }

    /// Makes a call, unless it was made already. It runs while what is returned is polled.
    pub fn make(&self, wanted: Wanted) -> Option<Run> {
        let tool = wanted.tool.spec().name.to_owned();
        let mut made = self.lock();
        if made.waiting.iter().any(|waiting| waiting.is(&tool, &wanted.key)) {
            return None;
        }
        let key = wanted.key.clone();
        let run = perform(wanted, self.terms.clone(), Arc::clone(&self.bytes)).boxed().shared();
        made.waiting.push(Waiting { tool, key, run: run.clone() });
        made.figures.calls += 1;
        Some(run)
    }

    /// The result of a call, if it was made ahead and still holds. The memory of its files becomes the session's.
    pub async fn take(&self, tool: &str, key: &Value, session: &FileMemory) -> Option<Output> {
        let run = self.lock().take_up(tool, key)?;
        let brought = run.await;
        let holds = match &brought {
            Some(brought) => FileState::of(&brought.path).await.as_ref() == Some(&brought.state),
            None => false,
        };
        let mut made = self.lock();
        if let Some(taken) = made.taken.iter_mut().find(|taken| taken.call.is(tool, key)) {
            taken.held = Some(holds);
        }
        let brought = brought.filter(|_| holds);
        made.misses += usize::from(brought.is_none());
        let brought = brought?;
        session.take_over(&brought.files);
        Some(brought.output.clone())
    }

    /// The newest answer counts, and so does what its calls took.
    pub fn settle(&self) {
        let freed = self.lock().settle();
        self.bytes.fetch_sub(freed, Ordering::Relaxed);
    }

    /// The newest answer does not count: what its calls took waits for the next.
    pub fn put_back(&self) {
        let mut made = self.lock();
        made.misses = 0;
        for Taken { call, held } in std::mem::take(&mut made.taken) {
            if held == Some(false) {
                self.bytes.fetch_sub(made.waste(&call), Ordering::Relaxed);
            } else {
                made.waiting.push(call);
            }
        }
    }

    /// The submission is over: what was not used was wasted.
    pub fn close(&self) -> Speculated {
        let mut made = self.lock();
        made.settle();
        for call in std::mem::take(&mut made.waiting) {
            made.waste(&call);
        }
        made.figures
    }

    fn lock(&self) -> MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Made {
    /// The call that was made ahead, now that it is wanted.
    fn take_up(&mut self, tool: &str, key: &Value) -> Option<Run> {
        let Some(place) = self.waiting.iter().position(|waiting| waiting.is(tool, key)) else {
            self.misses += 1;
            return None;
        };
        let call = self.waiting.remove(place);
        let run = call.run.clone();
        self.taken.push(Taken { call, held: None });
        Some(run)
    }

    /// Tells how many bytes are kept no longer.
    fn settle(&mut self) -> usize {
        self.figures.misses += std::mem::take(&mut self.misses);
        let mut freed = 0;
        for Taken { call, held } in std::mem::take(&mut self.taken) {
            freed += match held {
                Some(true) => {
                    self.figures.hits += 1;
                    call.bytes()
                }
                // It came too late, or whoever wanted it was ended.
                Some(false) | None => self.waste(&call),
            };
        }
        freed
    }

    /// The same of a call that was made for nothing.
    fn waste(&mut self, call: &Waiting) -> usize {
        let bytes = call.bytes();
        self.figures.wasted_calls += 1;
        self.figures.wasted_bytes += bytes;
        bytes
    }
}

impl Waiting {
    fn is(&self, tool: &str, key: &Value) -> bool {
        self.tool == tool && self.key == *key
    }

    /// Bytes of its result, if it is there.
    fn bytes(&self) -> usize {
        self.run.peek().and_then(Option::as_ref).map_or(0, |brought| brought.bytes)
    }
}

async fn perform(wanted: Wanted, terms: Speculation, kept: Arc<AtomicUsize>) -> Option<Arc<Brought>> {
    let Wanted { tool, input, path, mut cx, .. } = wanted;
    let files = Arc::new(FileMemory::new());
    cx.files = Arc::clone(&files);
    let world = Arc::clone(&cx.world);
    let state = FileState::of(&path).await.filter(|state| state.is_settled(world.as_ref()))?;
    let output = tokio::select! {
        biased;
        output = AssertUnwindSafe(tool.run(input, &cx)).catch_unwind() => output.ok()?,
        () = world.sleep(terms.time_max) => return None,
    };
    // Read while it was being written, or not readable at all: better done when it is asked for.
    if output.is_error || FileState::of(&path).await.as_ref() != Some(&state) {
        return None;
    }
    let bytes = size(&output);
    if kept.fetch_add(bytes, Ordering::Relaxed) + bytes > terms.bytes_max {
        kept.fetch_sub(bytes, Ordering::Relaxed);
        return None;
    }
    Some(Arc::new(Brought { output, bytes, path, state, files }))
}

fn size(output: &Output) -> usize {
    let sizes = output.content.iter().map(|block| match block {
        ResultBlock::Text(text) => text.len(),
        ResultBlock::Image { base64, .. } | ResultBlock::Document { base64 } => base64.len(),
    });
    sizes.sum()
}

/// What the system says about a file. Another content shows in it, unless it changed twice within a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileState {
    file: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileState {
    async fn of(path: &Path) -> Option<Self> {
        let metadata = tokio::fs::metadata(path).await.ok().filter(std::fs::Metadata::is_file)?;
        Some(Self {
            file: (metadata.dev(), metadata.ino()),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    fn is_settled(&self, world: &dyn World) -> bool {
        let changed = i128::from(self.changed.0) * 1_000_000_000 + i128::from(self.changed.1);
        world.now().as_nanosecond() - changed > TOO_FRESH.as_nanos() as i128
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn loop_Z2_bytes_of_a_call_whose_taker_was_ended_are_counted_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        std::fs::write(&path, "content").unwrap();
        let state = FileState::of(&path).await.unwrap();
        let brought =
            Brought { output: Output::text("content"), bytes: 7, path, state, files: Arc::default() };
        let run = async { Some(Arc::new(brought)) }.boxed().shared();
        run.clone().await;
        let (ahead, key, session) = (Ahead::default(), json!({"file_path": "a.txt"}), FileMemory::new());
        ahead.bytes.store(7, Ordering::Relaxed);
        let kept = || ahead.bytes.load(Ordering::Relaxed);
        ahead.lock().waiting.push(Waiting { tool: "Read".to_owned(), key: key.clone(), run });
        // Its answer is discarded while the file is looked at.
        let was_ended = (0..1_000).any(|_| {
            let was_ended = ahead.take("Read", &key, &session).now_or_never().is_none();
            ahead.put_back();
            was_ended
        });
        assert!(was_ended, "a look at a file takes longer than no time");
        assert_eq!(kept(), 7, "it waits for the next answer");
        assert!(ahead.take("Read", &key, &session).await.is_some());
        ahead.settle();
        assert_eq!(kept(), 0);
        assert_eq!((ahead.close().hits, ahead.close().wasted_calls), (1, 0));
    }
}
