//! Files that changed on disk since the model read them, judged by their content. Looked at before the model is asked; what
//! it is told is a bounded comparison where the earlier text is still at hand, and the fact alone where it is not.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::file_memory::{FileMemory, Fingerprint};
use super::patch::Stretch;
use crate::limits::{
    CHANGED_FILE_BYTES_MAX, CHANGED_FILES_WATCHED_MAX, CHANGED_LINES_SHOWN_MAX, CHANGED_TEXT_BYTES_KEPT_MAX,
    EDIT_SHOWN_LINE_CHARS_MAX,
};

/// What files looked like when they were last looked at. All clones are one.
#[derive(Clone, Default)]
pub(crate) struct ChangedFiles(Arc<Mutex<HashMap<PathBuf, Look>>>);

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
}

/// Equal stamps mean that nobody wrote in between.
type Stamp = (i64, i64, u64, u64);

impl ChangedFiles {
    /// What changed since the last look, each change once. Costs nothing while no file was read.
    pub async fn look(&self, files: &Arc<FileMemory>) -> Vec<Changed> {
        let known = files.newest(CHANGED_FILES_WATCHED_MAX);
        if known.is_empty() {
            return Vec::new();
        }
        let looks = Arc::clone(&self.0);
        let looking = tokio::task::spawn_blocking(move || {
            let mut looks = looks.lock().unwrap_or_else(PoisonError::into_inner);
            looks.retain(|path, _| known.iter().any(|(known, _)| known == path));
            known.iter().filter_map(|(path, content)| look(&mut looks, path, *content)).collect()
        });
        looking.await.unwrap_or_default()
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

fn look(looks: &mut HashMap<PathBuf, Look>, path: &Path, known: Fingerprint) -> Option<Changed> {
    let about = match fs::metadata(path) {
        Ok(about) => Some(about),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        // Somebody who may not look at a file cannot say that it changed.
        Err(_) => return None,
    };
    let stamp = about.as_ref().map(|about| (about.mtime(), about.mtime_nsec(), about.size(), about.ino()));
    let before = looks.get(path);
    // The model has read or written it since: that is what it knows.
    let is_read_again = before.is_some_and(|before| before.stamp.is_some() && before.content != known);
    if before.is_some_and(|before| before.stamp == stamp) && !is_read_again {
        return None;
    }
    let Some(about) = about else {
        let gone = Look { stamp: None, content: known, text: None };
        let was_gone = looks.insert(path.to_owned(), gone).is_some_and(|before| before.stamp.is_none());
        let words = deleted(path);
        return (!was_gone).then(|| Changed { path: path.to_owned(), words, content: None });
    };
    if !about.is_file() || about.len() > CHANGED_FILE_BYTES_MAX {
        return None;
    }
    let bytes = fs::read(path).ok()?;
    let content = Fingerprint::of(&bytes);
    let kept: usize = looks.values().filter_map(|look| look.text.as_ref()).map(String::len).sum();
    let fits = kept + bytes.len() <= CHANGED_TEXT_BYTES_KEPT_MAX;
    let text = String::from_utf8(bytes).ok().filter(|_| fits);
    let before = looks.remove(path);
    let was_told = before.as_ref().is_some_and(|before| before.content == content);
    let changed = (content != known && !was_told).then(|| {
        let old = before.and_then(|before| before.text);
        let words = words(path, old.as_deref(), text.as_deref());
        Changed { path: path.to_owned(), words, content: Some(content) }
    });
    looks.insert(path.to_owned(), Look { stamp, content, text });
    changed
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
        assert_eq!(changed.look(&files).await, []);
        fs::write(&path, "one\ntwo\nthree\n").unwrap();
        note(&files, &path);
        assert_eq!(changed.look(&files).await, []);

        // Touched, and the same.
        fs::write(&path, "one\ntwo\nthree\n").unwrap();
        assert_eq!(changed.look(&files).await, []);

        fs::write(&path, "one\n2\nthree\n").unwrap();
        let told = changed.look(&files).await;
        assert_eq!(told.len(), 1);
        assert!(told[0].words.contains("\n-two\n+2\n"), "{}", told[0].words);
        assert_eq!(changed.look(&files).await, [], "once");

        // The model writes it: no news.
        fs::write(&path, "all new\n").unwrap();
        note(&files, &path);
        assert_eq!(changed.look(&files).await, []);

        fs::remove_file(&path).unwrap();
        assert!(changed.look(&files).await[0].words.contains("was deleted"));
        assert_eq!(changed.look(&files).await, []);
        fs::write(&path, "all new\n").unwrap();
        assert_eq!(changed.look(&files).await, [], "it is back as it was");
    }

    #[tokio::test]
    async fn a_change_between_the_reading_and_the_first_look_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        let (files, changed) = (Arc::new(FileMemory::new()), ChangedFiles::default());
        fs::write(&path, "one\n").unwrap();
        note(&files, &path);
        fs::write(&path, "two\n").unwrap();
        let told = changed.look(&files).await;
        assert!(told[0].words.contains("Read it again"), "{told:?}");
    }

    #[tokio::test]
    async fn much_that_is_different_is_told_in_one_sentence() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        let (files, changed) = (Arc::new(FileMemory::new()), ChangedFiles::default());
        fs::write(&path, "x\n".repeat(500)).unwrap();
        note(&files, &path);
        assert_eq!(changed.look(&files).await, []);
        fs::write(&path, "y\n".repeat(500)).unwrap();
        let told = changed.look(&files).await;
        assert!(told[0].words.len() < 500 && told[0].words.contains("Read it again"));
    }
}
