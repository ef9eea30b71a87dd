//! Files that changed on disk since the model read them, judged by their content. Looked at before the model is asked: all of
//! them when the user has said something, and between two answers the newest and some of the others in turn; fewer, and not
//! many times in a moment, if nothing but reading was done. What it is told is a bounded comparison where the earlier text is
//! still at hand, and the fact alone where it is not.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::disk::{is_on_this_machine, is_quick};
use super::file_memory::{FileMemory, Fingerprint, JustRead};
use super::patch::Stretch;
use crate::limits::{
    CHANGED_FILE_BYTES_MAX, CHANGED_FILES_IN_PASSING, CHANGED_FILES_IN_TURN, CHANGED_FILES_LOOK_INTERVAL,
    CHANGED_FILES_NEWEST, CHANGED_FILES_WATCHED_MAX, CHANGED_LINES_SHOWN_MAX, CHANGED_TEXT_BYTES_KEPT_MAX,
    EDIT_SHOWN_LINE_CHARS_MAX,
};

/// What files looked like when they were last looked at. All clones are one.
#[derive(Clone, Default)]
pub(crate) struct ChangedFiles(Arc<Mutex<Looks>>);

#[derive(Default)]
struct Looks {
    /// By the bytes of their paths: taking a path to pieces to find it takes longer than looking at the file.
    at: HashMap<Box<OsStr>, Look>,
    /// Bytes of the texts in there.
    text_bytes: usize,
    /// Whose turn it is among the files that are not looked at every time.
    turn: usize,
    /// When some were looked at last.
    looked_at: Option<Duration>,
}

/// Which files are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    /// Those that were used last, and some of the others in turn.
    Likely,
    /// Fewer of both: nothing was done since the last look that could have changed a file. If that was a moment ago, only
    /// those that nobody has looked at yet.
    InPassing,
}

/// A file that is not what the model read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Changed {
    pub path: PathBuf,
    /// What the model reads about it.
    pub words: String,
    /// What it holds now; nothing, if it is gone.
    pub content: Option<Fingerprint>,
}

/// One look at a file.
struct Look {
    stamp: Option<Stamp>,
    /// The content the model knows of, or was told of.
    content: Fingerprint,
    /// Its text, if it is short.
    text: Option<String>,
    /// Looking at it waits for no other machine; not known yet where it was only read.
    is_here: Option<bool>,
}

/// Equal stamps mean that nobody wrote in between, as far as the clock of the file system can tell.
type Stamp = (i64, i64, i64, i64, u64, u64);

fn stamp_of(about: &fs::Metadata) -> Stamp {
    // The time of the last change, unlike that of the last writing, can be set by nobody.
    (about.mtime(), about.mtime_nsec(), about.ctime(), about.ctime_nsec(), about.size(), about.ino())
}

impl ChangedFiles {
    /// What changed since the last look, each change once; `now` is the time of a clock that never goes back. Costs nothing
    /// while no file was read.
    pub async fn look(&self, files: &Arc<FileMemory>, which: Which, now: Duration) -> Vec<Changed> {
        self.lock().take_in(files.take_just_read());
        let (mut changed, elsewhere) = if self.lock().is_just_done(which, now) {
            let newest = files.newest(CHANGED_FILES_IN_PASSING);
            self.lock().look_at_new(&newest)
        } else {
            let known = files.newest(CHANGED_FILES_WATCHED_MAX);
            if known.is_empty() {
                return Vec::new();
            }
            self.lock().look_here(&known, which)
        };
        if !elsewhere.is_empty() {
            let all = self.clone();
            let looking = tokio::task::spawn_blocking(move || {
                let mut looks = all.lock();
                elsewhere.iter().filter_map(|(path, content)| looks.look(path, *content)).collect::<Vec<_>>()
            });
            changed.extend(looking.await.unwrap_or_default());
        }
        changed
    }

    fn lock(&self) -> MutexGuard<'_, Looks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Files that are not any more what an earlier process of the session knew of them: what they held, as it was
/// [written](Fingerprint::written) down, or nothing for those that were gone.
pub(crate) async fn changed_since(known: Vec<(PathBuf, Option<String>)>) -> Vec<Changed> {
    if known.is_empty() {
        return Vec::new();
    }
    let looking = tokio::task::spawn_blocking(move || {
        let changed = |(path, content): (PathBuf, Option<String>)| {
            let now = held_now(&path)?;
            let words = match now {
                Some(_) => words(&path, None, None),
                None => deleted(&path),
            };
            let is_another = now.map(Fingerprint::written) != content;
            is_another.then_some(Changed { path, words, content: now })
        };
        known.into_iter().filter_map(changed).collect()
    });
    looking.await.unwrap_or_default()
}

/// What a file holds, or that there is none; nothing, if that cannot be said.
fn held_now(path: &Path) -> Option<Option<Fingerprint>> {
    match fs::metadata(path) {
        Ok(about) if about.is_file() && about.len() <= CHANGED_FILE_BYTES_MAX => {
            Some(Some(Fingerprint::of(&fs::read(path).ok()?)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(None),
        _ => None,
    }
}

fn deleted(path: &Path) -> String {
    format!("{} was deleted since you read it.", path.display())
}

/// A file and what the model knows it to hold.
type Known = (Arc<Path>, Fingerprint);

impl Looks {
    /// Whether files that are known were looked at a moment ago, and need not be again. If not, it is noted that they are now.
    fn is_just_done(&mut self, which: Which, now: Duration) -> bool {
        let is_just_done =
            self.looked_at.is_some_and(|at| now.saturating_sub(at) < CHANGED_FILES_LOOK_INTERVAL);
        if which == Which::InPassing && is_just_done {
            return true;
        }
        self.looked_at = Some(now);
        false
    }

    /// Whoever read a file just now has looked at it.
    fn take_in(&mut self, just_read: Vec<JustRead>) {
        for JustRead { path, about, content, bytes } in just_read {
            let text = self.text_of(bytes);
            self.put(&path, Look { stamp: Some(stamp_of(&about)), content, text, is_here: None });
        }
    }

    /// Of these files, those that nobody has looked at: what they hold is kept to tell later what changed in them.
    fn look_at_new(&mut self, newest: &[Known]) -> (Vec<Changed>, Vec<Known>) {
        let new: Vec<&Known> =
            newest.iter().filter(|(path, _)| !self.at.contains_key(path.as_os_str())).collect();
        self.look_at(new.into_iter())
    }

    /// What changed of the files on a disk of this machine, and the others that are to be looked at: those may be waited for.
    fn look_here(&mut self, known: &[Known], which: Which) -> (Vec<Changed>, Vec<Known>) {
        self.forget_all_but(known);
        let (newest, in_turn) = match which {
            Which::All => (known.len(), 0),
            Which::Likely => (CHANGED_FILES_NEWEST, CHANGED_FILES_IN_TURN),
            Which::InPassing => (CHANGED_FILES_IN_PASSING, CHANGED_FILES_IN_PASSING),
        };
        let (newest, older) = known.split_at(known.len().min(newest));
        let in_turn = older.len().min(in_turn);
        let first = self.turn.checked_rem(older.len()).unwrap_or(0);
        self.turn = first + in_turn;
        let older = older.iter().cycle().skip(first).take(in_turn);
        self.look_at(newest.iter().chain(older))
    }

    fn look_at<'k>(&mut self, files: impl Iterator<Item = &'k Known>) -> (Vec<Changed>, Vec<Known>) {
        let (mut changed, mut elsewhere) = (Vec::new(), Vec::new());
        for (path, content) in files {
            let is_here = match self.at.get_mut(path.as_os_str()) {
                Some(look) => *look.is_here.get_or_insert_with(|| is_quick(path)),
                None => is_quick(path),
            };
            if is_here {
                changed.extend(self.look(path, *content));
            } else {
                elsewhere.push((Arc::clone(path), *content));
            }
        }
        (changed, elsewhere)
    }

    fn look(&mut self, path: &Arc<Path>, known: Fingerprint) -> Option<Changed> {
        let about = match fs::metadata(path) {
            Ok(about) => Some(about),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            // Somebody who may not look at a file cannot say that it changed.
            Err(_) => return None,
        };
        let stamp = about.as_ref().map(stamp_of);
        if let Some(before) = self.at.get(path.as_os_str()) {
            // The model has read or written it since: that is what it knows.
            let is_read_again = before.stamp.is_some() && before.content != known;
            if before.stamp == stamp && !is_read_again {
                return None;
            }
        }
        let Some(about) = about else {
            let before =
                self.put(path, Look { stamp: None, content: known, text: None, is_here: Some(false) });
            let was_gone = before.is_some_and(|before| before.stamp.is_none());
            let words = deleted(path);
            return (!was_gone).then(|| Changed { path: path.to_path_buf(), words, content: None });
        };
        if !about.is_file() || about.len() > CHANGED_FILE_BYTES_MAX {
            return None;
        }
        let bytes = fs::read(path).ok()?;
        let content = Fingerprint::of(&bytes);
        let text = self.text_of(bytes);
        let is_here = Some(is_on_this_machine(path));
        let before = self.put(path, Look { stamp, content, text, is_here });
        let was_told = before.as_ref().is_some_and(|before| before.content == content);
        (content != known && !was_told).then(|| {
            let old = before.and_then(|before| before.text);
            let new = self.at.get(path.as_os_str()).and_then(|now| now.text.as_deref());
            Changed {
                path: path.to_path_buf(),
                words: words(path, old.as_deref(), new),
                content: Some(content),
            }
        })
    }

    /// The text that these bytes are, if there is room for it.
    fn text_of(&self, bytes: Vec<u8>) -> Option<String> {
        let fits = self.text_bytes + bytes.len() <= CHANGED_TEXT_BYTES_KEPT_MAX;
        String::from_utf8(bytes).ok().filter(|_| fits)
    }

    /// Gives what was there before.
    fn put(&mut self, path: &Arc<Path>, look: Look) -> Option<Look> {
        self.text_bytes += look.text_bytes();
        let before = self.at.insert(path.as_os_str().into(), look);
        self.text_bytes -= before.as_ref().map_or(0, Look::text_bytes);
        before
    }

    /// Forgets files that the session has forgotten, or not used for long, once there are some.
    fn forget_all_but(&mut self, known: &[Known]) {
        if self.at.len() < known.len() + CHANGED_FILES_IN_TURN {
            return;
        }
        let known: HashSet<&OsStr> = known.iter().map(|(path, _)| path.as_os_str()).collect();
        let Self { at, text_bytes, .. } = self;
        at.retain(|path, look| {
            let stays = known.contains(&**path);
            *text_bytes -= if stays { 0 } else { look.text_bytes() };
            stays
        });
    }
}

impl Look {
    fn text_bytes(&self) -> usize {
        self.text.as_ref().map_or(0, String::len)
    }
}

fn words(path: &Path, old: Option<&str>, new: Option<&str>) -> String {
    let mut words = format!(
        "{} has changed on disk since you read it, by a command, a program or the user. That is meant so: do not change it back \
         unless the user asks for it.",
        path.display()
    );
    let hunks = match (old, new) {
        (Some(old), Some(new)) => Stretch::whole(old, new).hunks(),
        _ => Vec::new(),
    };
    let all: usize = hunks.iter().map(|hunk| hunk.lines.len()).sum();
    if all == 0 || all > CHANGED_LINES_SHOWN_MAX {
        words.push_str(" Read it again before you rely on it.");
        return words;
    }
    words.push_str(" What is different (it has to be read again before it is edited):");
    for hunk in hunks {
        let _ = write!(words, "\n@@ line {} @@", hunk.new_start);
        for line in hunk.lines {
            let shown: String = line.chars().take(EDIT_SHOWN_LINE_CHARS_MAX).collect();
            let _ = write!(words, "\n{shown}");
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::file_memory::Reading;

    fn note(files: &FileMemory, path: &Path) {
        let bytes = fs::read(path).unwrap();
        let lines_total = bytes.split(|byte| *byte == b'\n').count() as u64;
        let content = Fingerprint::of(&bytes);
        let lines = 1..lines_total + 1;
        files.note_read(path, Reading { content, lines, lines_total, lines_cut: false, range_asked: false });
    }

    #[tokio::test]
    async fn changes_are_told_once_and_by_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        let (files, changed) = (Arc::new(FileMemory::new()), ChangedFiles::default());
        assert_eq!(changed.look(&files, Which::All, Duration::ZERO).await, []);
        fs::write(&path, "one\ntwo\nthree\n").unwrap();
        note(&files, &path);
        assert_eq!(changed.look(&files, Which::All, Duration::ZERO).await, []);

        // Touched, and the same.
        fs::write(&path, "one\ntwo\nthree\n").unwrap();
        assert_eq!(changed.look(&files, Which::All, Duration::ZERO).await, []);

        fs::write(&path, "one\n2\nthree\n").unwrap();
        let told = changed.look(&files, Which::All, Duration::ZERO).await;
        assert_eq!(told.len(), 1);
        assert!(told[0].words.contains("\n-two\n+2\n"), "{}", told[0].words);
        assert_eq!(changed.look(&files, Which::All, Duration::ZERO).await, [], "once");

        // The model writes it: no news.
        fs::write(&path, "all new\n").unwrap();
        note(&files, &path);
        assert_eq!(changed.look(&files, Which::All, Duration::ZERO).await, []);

        fs::remove_file(&path).unwrap();
        assert!(changed.look(&files, Which::All, Duration::ZERO).await[0].words.contains("was deleted"));
        assert_eq!(changed.look(&files, Which::All, Duration::ZERO).await, []);
        fs::write(&path, "all new\n").unwrap();
        assert_eq!(changed.look(&files, Which::All, Duration::ZERO).await, [], "it is back as it was");
    }

    #[tokio::test]
    async fn what_was_just_read_is_not_read_again_and_its_changes_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        let (files, changed) = (Arc::new(FileMemory::new()), ChangedFiles::default());
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            note(&files, &path);
            let (content, bytes) = (Fingerprint::of(text.as_bytes()), text.as_bytes().to_vec());
            let about = fs::metadata(&path).unwrap();
            files.hand_over(JustRead { path: path.as_path().into(), about, content, bytes });
        };
        read("one\ntwo\n");
        // Before anybody has looked.
        fs::write(&path, "one\nzwei\n").unwrap();
        let told = changed.look(&files, Which::All, Duration::ZERO).await;
        assert!(told[0].words.ends_with("\n-two\n+zwei"), "{}", told[0].words);

        read("one\nthree\n");
        assert_eq!(changed.look(&files, Which::All, Duration::ZERO).await, [], "the model knows");
        fs::write(&path, "one\ndrei\n").unwrap();
        let told = changed.look(&files, Which::All, Duration::ZERO).await;
        assert!(told[0].words.ends_with("\n-three\n+drei"), "{}", told[0].words);
        assert_eq!(changed.look(&files, Which::All, Duration::ZERO).await, [], "once");
    }

    #[tokio::test]
    async fn a_change_between_the_reading_and_the_first_look_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        let (files, changed) = (Arc::new(FileMemory::new()), ChangedFiles::default());
        fs::write(&path, "one\n").unwrap();
        note(&files, &path);
        fs::write(&path, "two\n").unwrap();
        let told = changed.look(&files, Which::All, Duration::ZERO).await;
        assert!(told[0].words.contains("Read it again"), "{told:?}");
    }

    #[tokio::test]
    async fn between_two_answers_older_files_are_looked_at_in_turn_and_none_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let (files, changed) = (Arc::new(FileMemory::new()), ChangedFiles::default());
        let all: Vec<PathBuf> = (0..CHANGED_FILES_NEWEST + 3 * CHANGED_FILES_IN_TURN)
            .map(|number| dir.path().join(format!("{number}.txt")))
            .collect();
        for path in &all {
            fs::write(path, "one\n").unwrap();
            note(&files, path);
        }
        assert_eq!(changed.look(&files, Which::All, Duration::ZERO).await, []);
        all.iter().for_each(|path| fs::write(path, "all new\n").unwrap());
        let first = changed.look(&files, Which::Likely, Duration::ZERO).await;
        assert_eq!(first.len(), CHANGED_FILES_NEWEST + CHANGED_FILES_IN_TURN);
        let newest = all.last().unwrap();
        assert!(first.iter().any(|changed| changed.path == *newest));
        for _ in 0..2 {
            assert_eq!(
                changed.look(&files, Which::Likely, Duration::ZERO).await.len(),
                CHANGED_FILES_IN_TURN
            );
        }
        assert_eq!(changed.look(&files, Which::All, Duration::ZERO).await, [], "each was told once");

        all.iter().for_each(|path| fs::write(path, "new again\n").unwrap());
        let mut now = CHANGED_FILES_LOOK_INTERVAL;
        let early = now - Duration::from_nanos(1);
        let new = dir.path().join("new.txt");
        fs::write(&new, "one\n").unwrap();
        note(&files, &new);
        fs::write(&new, "two\n").unwrap();
        let told = changed.look(&files, Which::InPassing, early).await;
        let told: Vec<&Path> = told.iter().map(|changed| &*changed.path).collect();
        assert_eq!(told, [&*new], "the others were looked at a moment ago");
        let first = changed.look(&files, Which::InPassing, now).await;
        assert_eq!(first.len(), 2 * CHANGED_FILES_IN_PASSING - 1, "the new one was told");
        assert!(first.iter().any(|changed| changed.path == *newest));
        assert_eq!(changed.look(&files, Which::InPassing, now).await, []);
        let mut told = first.len();
        for _ in 0..all.len().div_ceil(CHANGED_FILES_IN_PASSING) {
            now += CHANGED_FILES_LOOK_INTERVAL;
            told += changed.look(&files, Which::InPassing, now).await.len();
        }
        assert_eq!(told, all.len(), "none is passed over");
    }

    #[tokio::test]
    async fn files_that_are_not_known_any_more_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let (files, changed) = (Arc::new(FileMemory::new()), ChangedFiles::default());
        for number in 0..CHANGED_FILES_WATCHED_MAX + 3 * CHANGED_FILES_IN_TURN {
            let path = dir.path().join(format!("{number}.txt"));
            fs::write(&path, "one\n").unwrap();
            note(&files, &path);
            assert_eq!(changed.look(&files, Which::Likely, Duration::ZERO).await, []);
        }
        let looks = changed.lock();
        assert!(looks.at.len() <= CHANGED_FILES_WATCHED_MAX + CHANGED_FILES_IN_TURN, "{}", looks.at.len());
        assert_eq!(looks.text_bytes, looks.at.len() * "one\n".len());
    }

    #[tokio::test]
    async fn much_that_is_different_is_told_in_one_sentence() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        let (files, changed) = (Arc::new(FileMemory::new()), ChangedFiles::default());
        fs::write(&path, "x\n".repeat(500)).unwrap();
        note(&files, &path);
        assert_eq!(changed.look(&files, Which::All, Duration::ZERO).await, []);
        fs::write(&path, "y\n".repeat(500)).unwrap();
        let told = changed.look(&files, Which::All, Duration::ZERO).await;
        assert!(told[0].words.len() < 500 && told[0].words.contains("Read it again"));
    }
}
