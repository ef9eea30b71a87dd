//! Prompts of other days, kept in a file that programs of this kind share: one JSON object a line, the newest last.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Bytes of the file's end that are read.
const BYTES_READ_MAX: u64 = 512 * 1024;
/// Bytes of one prompt that is kept: longer ones are pastes, and no use to write again.
const PROMPT_BYTES_MAX: usize = 64 * 1024;

/// The file, and the project whose prompts are meant.
pub(super) struct Prompts {
    file: PathBuf,
    project: String,
}

impl Prompts {
    pub fn of(config_dir: &Path, cwd: &Path) -> Self {
        Self { file: config_dir.join("history.jsonl"), project: cwd.to_string_lossy().into_owned() }
    }

    /// Those of this project, the oldest first. A file that cannot be read has none.
    pub fn read(&self) -> Vec<String> {
        let text = self.end().unwrap_or_default();
        let prompt = |line: &str| {
            let line: Value = serde_json::from_str(line).ok()?;
            let words = line["display"].as_str().filter(|_| line["project"] == self.project.as_str())?;
            Some(words.to_owned())
        };
        text.lines().filter_map(prompt).collect()
    }

    fn end(&self) -> std::io::Result<String> {
        let mut file = File::open(&self.file)?;
        let from = file.metadata()?.len().saturating_sub(BYTES_READ_MAX);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(BYTES_READ_MAX).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Keeps one. That it cannot be kept is no reason not to go on.
    pub fn keep(&self, words: &str, now_ms: i64) {
        if words.trim().is_empty() || words.len() > PROMPT_BYTES_MAX {
            return;
        }
        let line =
            json!({"display": words, "pastedContents": {}, "timestamp": now_ms, "project": self.project});
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.file);
        // One write, so that lines of two sessions do not mix.
        let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_known_again_in_their_project() {
        let dir = tempfile::tempdir().unwrap();
        let (here, there) =
            (Prompts::of(dir.path(), Path::new("/a")), Prompts::of(dir.path(), Path::new("/b")));
        assert!(here.read().is_empty());
        here.keep("one", 1);
        there.keep("elsewhere", 2);
        here.keep("two\nlines", 3);
        here.keep("  ", 4);
        std::fs::write(dir.path().join("x"), "").unwrap();
        assert_eq!(here.read(), ["one", "two\nlines"]);
        assert_eq!(there.read(), ["elsewhere"]);
    }
}
