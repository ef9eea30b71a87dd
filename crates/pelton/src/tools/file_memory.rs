//! Which files this session has read, and what they looked like then.
//!
//! A file may be changed only by someone who knows it. What counts is the content, not the time stamp: a file that
//! was touched, reached by another name or moved is still known when its bytes are the ones that were read. Reading
//! in pages adds up.

use std::collections::{BTreeMap, HashMap};
use std::fs::Metadata;
use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::{CHANGED_FILES_IN_PASSING, FILE_PAGES_REMEMBERED_MAX, FILES_REMEMBERED_MAX};

/// The memory of one session. Shared by its tools.
///
/// ```
/// use std::path::Path;
///
/// use pelton::tools::FileMemory;
///
/// let files = FileMemory::new();
/// assert!(!files.remembers(Path::new("/srv/project/main.rs")));
/// ```
#[derive(Debug, Default)]
pub struct FileMemory {
    remembered: Mutex<Remembered>,
}

/// A moment in the life of a [`FileMemory`]; by default its beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moment(u64);

impl Moment {
    /// Before anything was read.
    pub(crate) const BEGINNING: Self = Self(0);
}

/// What is known about a file whose content is now this.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Known {
    /// Every line was read.
    Whole {
        /// Some lines were too long and shown only in part.
        lines_cut: bool,
    },
    /// These lines (counted from 1, end exclusive) were read because the model asked for them.
    Lines(Vec<Range<u64>>),
    /// A first page was shown to a model that had asked for the whole file. It may believe it saw everything, so
    /// this does not count until it asks for another page.
    FirstPage,
    /// The file was read, but holds something else now.
    Changed {
        /// The earlier content was read whole.
        was_whole: bool,
    },
    /// Nothing.
    Never,
}

/// One reading of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// What the whole file was like.
    pub content: Fingerprint,
    /// The lines shown, counted from 1, end exclusive.
    pub lines: Range<u64>,
    /// The lines of the whole file.
    pub lines_total: u64,
    /// Some of the lines were too long and shown only in part.
    pub lines_cut: bool,
    /// The model named the range itself.
    pub range_asked: bool,
}

/// A change of lines by an edit, in the numbering before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineChange {
    /// The first line touched, counted from 1.
    pub first: u64,
    /// How many line ends the edit took away.
    pub removed: u64,
    /// How many line ends it brought.
    pub added: u64,
}

/// Stands for the content of a file: its length and a hash. Good for noticing change, in one process or in another of the same
/// build; no defence against someone who forges collisions (an edit still needs its exact, unique match).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    bytes: u64,
    hash: u64,
}

/// Makes a [`Fingerprint`] of content that comes in pieces.
#[derive(Debug, Clone, Default)]
pub struct Fingerprinter {
    bytes: u64,
    hasher: DefaultHasher,
}

#[derive(Debug, Default)]
struct Remembered {
    files: HashMap<Arc<Path>, Seen>,
    /// The same files by their last use, and what they held: who wants the newest need not go through all of them.
    by_use: BTreeMap<u64, (Arc<Path>, Fingerprint)>,
    /// Counts uses.
    uses: u64,
    /// Files that were read whole a moment ago, the newest last.
    just_read: Vec<JustRead>,
}

/// What a file held that was read whole: whoever wants to tell later what changed in it need not read it again.
#[derive(Debug, Clone)]
pub(crate) struct JustRead {
    /// Its real path, links resolved.
    pub path: Arc<Path>,
    /// What the file was before it was read.
    pub about: Metadata,
    pub content: Fingerprint,
    pub bytes: Vec<u8>,
}

#[derive(Debug, Clone)]
struct Seen {
    content: Fingerprint,
    /// Sorted, apart from each other, never empty.
    pages: Vec<Range<u64>>,
    lines_total: u64,
    lines_cut: bool,
    range_asked: bool,
    used: u64,
}

impl FileMemory {
    /// A memory of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets a file count as read, all of it, with this content. `path` is the real path, links resolved.
    pub fn seed(&self, path: &Path, content: &[u8]) {
        let lines = content.split(|byte| *byte == b'\n').count() as u64;
        self.note_written(path, Fingerprint::of(content), lines);
    }

    /// Remembers a reading. Pages of the same content add up. `path` is the real path, links resolved.
    pub fn note_read(&self, path: &Path, reading: Reading) {
        let Reading { content, lines, lines_total, lines_cut, range_asked } = reading;
        let mut seen = Seen { content, pages: Vec::new(), lines_total, lines_cut, range_asked, used: 0 };
        let mut remembered = self.lock();
        if let Some(before) = remembered.files.get(path).filter(|before| before.content == content) {
            seen.pages = before.pages.clone();
            seen.lines_cut |= before.lines_cut;
            seen.range_asked |= before.range_asked;
        }
        seen.add_page(lines);
        remembered.put(path, seen);
    }

    /// Keeps what a short file held when it was read, for a moment and a few files.
    pub(crate) fn hand_over(&self, file: JustRead) {
        let just_read = &mut self.lock().just_read;
        if just_read.len() >= CHANGED_FILES_IN_PASSING {
            just_read.remove(0);
        }
        just_read.push(file);
    }

    /// What was handed over since the last time somebody asked.
    pub(crate) fn take_just_read(&self) -> Vec<JustRead> {
        std::mem::take(&mut self.lock().just_read)
    }

    /// Remembers a file that this session wrote whole.
    pub fn note_written(&self, path: &Path, content: Fingerprint, lines_total: u64) {
        let lines = 1..lines_total.saturating_add(1);
        self.note_read(path, Reading { content, lines, lines_total, lines_cut: false, range_asked: false });
    }

    /// Remembers an edit that made `new` of `old`: what was known stays known, at its new place. `changes` are in
    /// order and apart.
    pub fn note_edit(&self, path: &Path, old: Fingerprint, new: Fingerprint, changes: &[LineChange]) {
        let mut remembered = self.lock();
        let own = remembered.files.get(path).filter(|seen| seen.content == old);
        let Some(mut seen) = own.or_else(|| remembered.elsewhere(old)).cloned() else { return };
        seen.content = new;
        for change in changes.iter().rev() {
            let after = change.first.saturating_add(change.removed);
            // Where the start of a line is after the edit. One that was inside of what went is where that was; what
            // then follows on the same line may never have been seen.
            let moved = |line: u64| match line {
                line if line <= change.first => line,
                line if line <= after => change.first.saturating_add(change.added),
                line => (line - change.removed).saturating_add(change.added),
            };
            for page in &mut seen.pages {
                *page = moved(page.start)..moved(page.end);
            }
            seen.lines_total = seen.lines_total.saturating_sub(change.removed).saturating_add(change.added);
        }
        remembered.put(path, seen);
    }

    /// What is known about the file at `path` (its real path) when it holds `content`.
    pub fn recall(&self, path: &Path, content: Fingerprint) -> Known {
        let mut remembered = self.lock();
        let own = remembered.files.get(path).cloned();
        if let Some(seen) = &own {
            remembered.put(path, seen.clone());
        }
        if let Some(seen) = own.as_ref().filter(|seen| seen.content == content) {
            return seen.known();
        }
        match (remembered.elsewhere(content), own) {
            (Some(seen), _) => seen.known(),
            (None, Some(seen)) => Known::Changed { was_whole: seen.is_whole() },
            (None, None) => Known::Never,
        }
    }

    /// Whether the file at `path` was read, whatever it held then.
    pub fn remembers(&self, path: &Path) -> bool {
        self.lock().files.contains_key(path)
    }

    /// Whether a file of so many bytes may hold what was read whole under another name. No other is worth reading to find out.
    pub(crate) fn may_be_copy(&self, bytes: u64) -> bool {
        self.lock().files.values().any(|seen| seen.content.bytes == bytes && seen.is_whole())
    }

    /// Remembers what another memory does, as if it had been read here and now.
    pub fn take_over(&self, other: &Self) {
        let theirs: Vec<(Arc<Path>, Seen)> =
            other.lock().files.iter().map(|(path, seen)| (Arc::clone(path), seen.clone())).collect();
        for (path, Seen { content, pages, lines_total, lines_cut, range_asked, .. }) in theirs {
            let reading = |lines| Reading { content, lines, lines_total, lines_cut, range_asked };
            // A file without lines has no pages, and is known all the same.
            self.note_read(&path, reading(1..1));
            pages.into_iter().for_each(|lines| self.note_read(&path, reading(lines)));
        }
    }

    /// The files that were read or written since a moment, in the order of their last use.
    pub(crate) fn used_since(&self, Moment(uses): Moment) -> Vec<PathBuf> {
        self.lock().by_use.range(uses + 1..).map(|(_, (path, _))| path.to_path_buf()).collect()
    }

    /// The files that were used last, and what they held when they were read or written.
    pub(crate) fn newest(&self, count: usize) -> Vec<(Arc<Path>, Fingerprint)> {
        self.newest_since(Moment::BEGINNING, count)
    }

    /// Those that were used since a moment, the newest first, and what they held.
    pub(crate) fn newest_since(&self, Moment(uses): Moment, count: usize) -> Vec<(Arc<Path>, Fingerprint)> {
        self.lock().by_use.range(uses + 1..).rev().take(count).map(|(_, file)| file.clone()).collect()
    }

    /// How many lines a file has, if all of them were read.
    pub(crate) fn lines_known(&self, path: &Path) -> Option<u64> {
        self.lock().files.get(path).filter(|seen| seen.is_whole()).map(|seen| seen.lines_total)
    }

    /// A moment to go back to with [`forget_since`](Self::forget_since).
    pub fn now(&self) -> Moment {
        Moment(self.lock().uses)
    }

    /// Forgets everything: nothing of it is part of the conversation any more.
    pub(crate) fn forget(&self) {
        let mut remembered = self.lock();
        remembered.files.clear();
        remembered.by_use.clear();
        remembered.just_read.clear();
    }

    /// Forgets what was read since then, because the model never gets to see it. A file that was known before and
    /// read again since is forgotten too: it only has to be read once more.
    pub fn forget_since(&self, Moment(uses): Moment) {
        let mut remembered = self.lock();
        let since = remembered.by_use.split_off(&(uses + 1));
        remembered.just_read.clear();
        since.values().for_each(|(path, _)| drop(remembered.files.remove(path)));
    }

    fn lock(&self) -> MutexGuard<'_, Remembered> {
        // Every change is one insertion: a panic elsewhere cannot leave it half done.
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fingerprint {
    /// The fingerprint of content that is at hand.
    pub fn of(content: &[u8]) -> Self {
        let mut fingerprinter = Fingerprinter::default();
        fingerprinter.add(content);
        fingerprinter.finish()
    }

    /// It as a text for another process, which must make the same [`sample`](Self::sample).
    pub(crate) fn written(self) -> String {
        format!("{:x}-{:016x}", self.bytes, self.hash)
    }

    /// The same, as another process has written it.
    pub(crate) fn read(written: &str) -> Option<Self> {
        let (bytes, hash) = written.split_once('-')?;
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        Some(Self { bytes: number(bytes)?, hash: number(hash)? })
    }

    /// What a process makes of the same bytes as any other, if their fingerprints can be compared.
    pub(crate) fn sample() -> String {
        Self::of(b"sample").written()
    }
}

impl Fingerprinter {
    /// Takes the next piece.
    pub fn add(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        self.hasher.write(piece);
    }

    /// The fingerprint of all pieces.
    pub fn finish(&self) -> Fingerprint {
        Fingerprint { bytes: self.bytes, hash: self.hasher.finish() }
    }
}

impl Remembered {
    /// The same bytes, read whole under another name: moved, copied, or a name that differs only in case.
    fn elsewhere(&self, content: Fingerprint) -> Option<&Seen> {
        self.files.values().find(|seen| seen.content == content && seen.is_whole())
    }

    fn put(&mut self, path: &Path, mut seen: Seen) {
        self.uses += 1;
        seen.used = self.uses;
        let path = match self.files.get(path).and_then(|before| self.by_use.remove(&before.used)) {
            Some((path, _)) => path,
            None => Arc::from(path),
        };
        self.by_use.insert(seen.used, (Arc::clone(&path), seen.content));
        self.files.insert(path, seen);
        if self.files.len() > FILES_REMEMBERED_MAX
            && let Some((_, (oldest, _))) = self.by_use.pop_first()
        {
            self.files.remove(&oldest);
        }
    }
}

impl Seen {
    fn add_page(&mut self, lines: Range<u64>) {
        if lines.is_empty() {
            return;
        }
        self.pages.push(lines.clone());
        self.pages.sort_by_key(|page| page.start);
        self.pages.dedup_by(|next, page| {
            let touches = next.start <= page.end;
            if touches {
                page.end = page.end.max(next.end);
            }
            touches
        });
        if self.pages.len() > FILE_PAGES_REMEMBERED_MAX {
            // Forgetting pages only means they have to be read again; the newest is the one about to be used.
            self.pages = vec![lines];
        }
    }

    fn is_whole(&self) -> bool {
        self.lines_total == 0
            || matches!(&self.pages[..], [page] if page.start <= 1 && page.end > self.lines_total)
    }

    fn known(&self) -> Known {
        if self.is_whole() {
            Known::Whole { lines_cut: self.lines_cut }
        } else if self.range_asked {
            Known::Lines(self.pages.clone())
        } else {
            Known::FirstPage
        }
    }
}

#[cfg(test)]
mod tests;
