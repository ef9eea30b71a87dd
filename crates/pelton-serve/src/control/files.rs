//! Files the client wants to see, or to count as seen. The disk is touched on threads of its own.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use futures::FutureExt;
use futures::future::BoxFuture;
use ignore::{DirEntry, WalkBuilder};
use pelton::permission::{Access, HookSays, Judged, Permissions, Verdict};
use pelton::process::{Launch, Printed, ProcessTree};
use pelton::tools::FileMemory;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::limits::{
    FILE_BYTES_MAX, SUGGESTING_BYTES_MAX, SUGGESTING_TIME_MAX, SUGGESTIONS_LOOKED_AT_MAX, SUGGESTIONS_MAX,
};

type Answer = BoxFuture<'static, Result<Value, String>>;

/// The beginning of a file. What rules deny is denied here, too.
pub(crate) fn read(
    path: PathBuf,
    cwd: PathBuf,
    permissions: Permissions,
    bytes_max: Option<u64>,
    base64: bool,
) -> Answer {
    let bytes_max = bytes_max.unwrap_or(FILE_BYTES_MAX).min(FILE_BYTES_MAX);
    on_a_thread(move || {
        let access = Access::Read(path.clone());
        let judged =
            Judged { tool: "Read", input: &Value::Null, access: &access, cwd: &cwd, hook: HookSays::Nothing };
        let decision = permissions.judge(&judged);
        if decision.verdict == Verdict::Deny {
            return Err(decision.reason);
        }
        let fail = |error: std::io::Error| format!("{}: {error}", path.display());
        // A pipe would be waited for.
        if !fs::metadata(&path).map_err(fail)?.is_file() {
            return Err(format!("{} is not a file", path.display()));
        }
        let mut bytes = Vec::new();
        fs::File::open(&path).map_err(fail)?.take(bytes_max + 1).read_to_end(&mut bytes).map_err(fail)?;
        let truncated = bytes.len() as u64 > bytes_max;
        bytes.truncate(usize::try_from(bytes_max).unwrap_or(usize::MAX));
        let about = json!({"absPath": path.to_string_lossy(), "truncated": truncated});
        let (contents, how, value) = match base64 {
            true => (BASE64_STANDARD.encode(&bytes), "encoding", json!("base64")),
            // Whether something stands in for what is no text.
            false => {
                let is_lossy = std::str::from_utf8(&bytes).is_err();
                (String::from_utf8_lossy(&bytes).into_owned(), "lossy", json!(is_lossy))
            }
        };
        let mut read = about;
        (read["contents"], read[how]) = (json!(contents), value);
        Ok(read)
    })
}

/// Lets a file count as read if it is what the client saw.
pub(crate) fn seed(path: PathBuf, mtime_ms: Option<f64>, files: Arc<FileMemory>) -> Answer {
    on_a_thread(move || {
        let fail = |error: std::io::Error| format!("{}: {error}", path.display());
        let about = fs::metadata(&path).map_err(fail)?;
        let changed = about.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let newer =
            changed.zip(mtime_ms).is_some_and(|(changed, seen)| changed.as_secs_f64() * 1000.0 > seen + 1.0);
        if about.is_file() && about.len() <= FILE_BYTES_MAX && !newer {
            let content = fs::read(&path).map_err(fail)?;
            files.seed(&fs::canonicalize(&path).map_err(fail)?, &content);
        }
        Ok(json!({}))
    })
}

/// Which files are suggested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suggested {
    /// Those that no ignore file names.
    NotIgnored,
    All,
}

/// Files and directories whose path has these letters in it, the shortest first.
pub(crate) fn suggest(cwd: PathBuf, query: String, which: Suggested) -> Answer {
    on_a_thread(move || {
        let query = query.to_lowercase();
        let mut found: Vec<String> =
            below(&cwd, which).into_iter().filter(|path| path.to_lowercase().contains(&query)).collect();
        found.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
        found.truncate(SUGGESTIONS_MAX);
        let suggestions: Vec<Value> = found.iter().map(|path| json!({"path": path})).collect();
        Ok(json!({"suggestions": suggestions}))
    })
}

/// What a command of the user's says, a path in each line.
pub(crate) fn suggested_by(
    command: String,
    env: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    query: String,
) -> Answer {
    async move {
        let failed = |error: std::io::Error| format!("fileSuggestion: the command cannot be run: {error}");
        let args = [OsStr::new("-c"), OsStr::new(&command)];
        let launch = Launch {
            program: Path::new("/bin/sh"),
            args: &args,
            cwd: &cwd,
            env: &env,
            keep: None,
            printed: Printed::Read,
        };
        // Dropping the tree kills it, also when nobody waits for the files any more.
        let mut tree = ProcessTree::start_listening(&launch).map_err(failed)?;
        let mut printed = Vec::new();
        let (input, output) = (tree.take_input(), tree.take_output());
        let work = async {
            if let Some(mut input) = input {
                // One that does not read what it is asked for may still know an answer.
                let _ = input.write_all(json!({"query": query}).to_string().as_bytes()).await;
            }
            if let Some((out, _complaints)) = output {
                let _ = out.take(SUGGESTING_BYTES_MAX).read_to_end(&mut printed).await;
            }
        };
        let is_in_time = tokio::time::timeout(SUGGESTING_TIME_MAX, work).await.is_ok();
        tree.end(Duration::ZERO, Duration::ZERO).await.map_err(failed)?;
        if !is_in_time {
            let seconds = SUGGESTING_TIME_MAX.as_secs();
            return Err(format!("fileSuggestion: the command did not end within {seconds} seconds"));
        }
        let printed = String::from_utf8_lossy(&printed);
        let paths = printed.lines().map(str::trim).filter(|path| !path.is_empty());
        let suggestions: Vec<Value> = paths.take(SUGGESTIONS_MAX).map(|path| json!({"path": path})).collect();
        Ok(json!({"suggestions": suggestions}))
    }
    .boxed()
}

fn below(dir: &Path, which: Suggested) -> Vec<String> {
    let ignores = which == Suggested::NotIgnored;
    let mut walk = WalkBuilder::new(dir);
    walk.standard_filters(ignores).hidden(false).require_git(false).git_global(false);
    // Whoever wants to see everything still does not mean these.
    walk.filter_entry(|entry| {
        let is_skipped = |name: &str| entry.file_name() == name;
        !(entry.file_type().is_some_and(|kind| kind.is_dir())
            && [".git", "node_modules", "target"].into_iter().any(is_skipped))
    });
    let relative = |entry: DirEntry| {
        let path = entry.path().strip_prefix(dir).ok()?.to_str().filter(|path| !path.is_empty())?.to_owned();
        Some(if entry.file_type()?.is_dir() { path + "/" } else { path })
    };
    walk.build().flatten().filter_map(relative).take(SUGGESTIONS_LOOKED_AT_MAX).collect()
}

pub(super) fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> BoxFuture<'static, Result<T, String>> {
    let done = tokio::task::spawn_blocking(work);
    async move { done.await.map_err(|error| error.to_string())? }.boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_are_suggested_by_their_letters() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("src/deep")).unwrap();
        fs::create_dir_all(dir.path().join(".git/main")).unwrap();
        fs::write(dir.path().join("src/deep/Main.rs"), "").unwrap();
        let found =
            suggest(dir.path().to_path_buf(), "main".to_owned(), Suggested::NotIgnored).await.unwrap();
        assert_eq!(found, json!({"suggestions": [{"path": "src/deep/Main.rs"}]}));
    }

    #[tokio::test]
    async fn ignored_files_are_suggested_to_whoever_wants_them() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("out")).unwrap();
        for (file, text) in
            [(".gitignore", "out/\n*.log\n"), ("out/mark.txt", ""), ("mark.log", ""), ("mark", "")]
        {
            fs::write(dir.path().join(file), text).unwrap();
        }
        for (which, expected) in [
            (Suggested::NotIgnored, json!([{"path": "mark"}])),
            (Suggested::All, json!([{"path": "mark"}, {"path": "mark.log"}, {"path": "out/mark.txt"}])),
        ] {
            let found = suggest(dir.path().to_path_buf(), "mark".to_owned(), which).await.unwrap();
            assert_eq!(found["suggestions"], expected, "{which:?}");
        }
    }
}
