//! Files that hooks want to hear of: looked at when the loop comes by, never watched in between, so that an idle session does
//! nothing.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};

use super::limits::WATCHED_FILES_MAX;

/// The files, as they were when they were last looked at. All clones are one.
#[derive(Debug, Clone, Default)]
pub struct WatchedFiles(Arc<Mutex<BTreeMap<PathBuf, Option<Mark>>>>);

/// What a file that was written to does not keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    file: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

impl WatchedFiles {
    /// These are looked at, too. One that was not yet is news from the next look on.
    pub fn add(&self, files: impl IntoIterator<Item = PathBuf>) {
        let mut watched = self.lock();
        for file in files {
            if watched.len() < WATCHED_FILES_MAX || watched.contains_key(&file) {
                let mark = mark_of(&file);
                watched.entry(file).or_insert(mark);
            }
        }
    }

    /// What a hook names as files to look at (`watchPaths`), from a directory.
    pub fn add_named(&self, extras: &Map<String, Value>, cwd: &Path) {
        let named = extras.get("watchPaths").and_then(Value::as_array).into_iter().flatten();
        self.add(named.filter_map(Value::as_str).map(|name| cwd.join(name)));
    }

    /// What has happened since the last look: `add`, `change` or `unlink`.
    pub fn look(&self) -> Vec<(PathBuf, &'static str)> {
        let mut news = Vec::new();
        for (file, seen) in &mut *self.lock() {
            let now = mark_of(file);
            let what = match (*seen, now) {
                (None, Some(_)) => "add",
                (Some(_), None) => "unlink",
                (before, now) if before != now => "change",
                _ => continue,
            };
            *seen = now;
            news.push((file.clone(), what));
        }
        news
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Option<Mark>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn mark_of(file: &Path) -> Option<Mark> {
    let mark = |about: Metadata| Mark {
        file: (about.dev(), about.ino()),
        size: about.size(),
        changed: (about.mtime(), about.mtime_nsec()),
    };
    std::fs::metadata(file).ok().map(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_changed_or_went_is_news_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name);
        std::fs::write(file("there"), "one").unwrap();
        let watched = WatchedFiles::default();
        watched.add([file("there"), file("not yet")]);
        assert_eq!(watched.look(), []);
        std::fs::write(file("there"), "another").unwrap();
        std::fs::write(file("not yet"), "").unwrap();
        watched.add([file("there")]);
        assert_eq!(watched.look(), [(file("not yet"), "add"), (file("there"), "change")]);
        assert_eq!(watched.look(), []);
        std::fs::remove_file(file("there")).unwrap();
        assert_eq!(watched.look(), [(file("there"), "unlink")]);
        let named = serde_json::json!({"watchPaths": ["more", 3]});
        watched.add_named(named.as_object().unwrap(), dir.path());
        std::fs::write(file("more"), "").unwrap();
        assert_eq!(watched.look(), [(file("more"), "add")]);
        watched.add((0..2 * WATCHED_FILES_MAX).map(|nth| file(&nth.to_string())));
        assert_eq!(watched.lock().len(), WATCHED_FILES_MAX);
    }
}
