//! Runs the program that prints a key, in a process group of its own: when it hangs, all of it ends.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton::process::{Launch, Printed, ProcessTree};
use pelton_model::credentials::RunHelper;
use tokio::io::{AsyncRead, AsyncReadExt};

/// A helper that has not printed a key after this long is ended.
const TIME_MAX: Duration = Duration::from_secs(60);
/// How long what it started may take to end by itself, and then after it was asked to.
const END_GRACE: Duration = Duration::from_secs(1);
/// The most that is read of what it prints, in bytes.
const OUTPUT_BYTES_MAX: u64 = 64 * 1024;
/// The most that is told of its complaints, in characters.
const COMPLAINT_CHARS_MAX: usize = 400;

/// A line for the shell that prints a key.
pub(super) struct Helper {
    line: Arc<Line>,
}

struct Line {
    command: OsString,
    cwd: PathBuf,
    env: Vec<(OsString, OsString)>,
    time_max: Duration,
}

impl Helper {
    pub(super) fn new(command: &str, cwd: &Path, env: Vec<(OsString, OsString)>) -> Self {
        let (command, cwd) = (command.into(), cwd.to_owned());
        Self { line: Arc::new(Line { command, cwd, env, time_max: TIME_MAX }) }
    }
}

impl RunHelper for Helper {
    fn run(&self) -> BoxFuture<'static, Result<String, String>> {
        let line = Arc::clone(&self.line);
        async move { line.run().await.unwrap_or_else(|error| Err(format!("it cannot be run: {error}"))) }
            .boxed()
    }
}

impl Line {
    async fn run(&self) -> io::Result<Result<String, String>> {
        let args = [OsStr::new("-c"), &self.command];
        let launch = Launch {
            program: Path::new("/bin/sh"),
            args: &args,
            cwd: &self.cwd,
            env: &self.env,
            keep: None,
            printed: Printed::Read,
        };
        // Dropping the tree kills it, also when nobody waits for the key any more.
        let mut tree = ProcessTree::start(&launch)?;
        let (out, err) = tree.take_output().ok_or_else(|| io::Error::other("there are no pipes"))?;
        let (mut printed, mut complained) = (Vec::new(), Vec::new());
        let status = {
            let mut reading = pin!(async {
                tokio::join!(read(out, &mut printed), read(err, &mut complained));
            });
            let ends = async {
                let mut read_all = false;
                loop {
                    tokio::select! {
                        status = tree.wait() => {
                            // What is still on its way is read; whoever else holds the pipes is not waited for.
                            if !read_all {
                                let _ = tokio::time::timeout(END_GRACE, &mut reading).await;
                            }
                            return status;
                        }
                        () = &mut reading, if !read_all => read_all = true,
                    }
                }
            };
            tokio::time::timeout(self.time_max, ends).await
        };
        let Ok(status) = status else {
            tree.end(Duration::ZERO, END_GRACE).await?;
            let seconds = self.time_max.as_secs();
            return Ok(Err(format!("it did not end within {seconds} seconds{}", complaint(&complained))));
        };
        let status = status?;
        tree.end(Duration::ZERO, END_GRACE).await?;
        if !status.success() {
            return Ok(Err(format!("it failed with {status}{}", complaint(&complained))));
        }
        match String::from_utf8(printed) {
            Ok(printed) if !printed.trim().is_empty() => Ok(Ok(printed)),
            Ok(_) => Ok(Err(format!("it printed nothing{}", complaint(&complained)))),
            Err(_) => Ok(Err("what it printed is no text".to_owned())),
        }
    }
}

/// Reads to the end, and keeps the beginning.
async fn read(mut pipe: impl AsyncRead + Unpin, kept: &mut Vec<u8>) {
    // A pipe that breaks has no more to say.
    let _ = (&mut pipe).take(OUTPUT_BYTES_MAX).read_to_end(kept).await;
    let _ = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await;
}

/// The end of what it complained about.
fn complaint(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.is_empty() {
        return String::new();
    }
    let skipped = words.chars().count().saturating_sub(COMPLAINT_CHARS_MAX);
    let end: String = words.chars().skip(skipped).collect();
    format!(": {}{end}", if skipped > 0 { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    async fn run(command: &str, time_max: Duration) -> Result<String, String> {
        let env = std::env::vars_os().collect();
        let line = Line { command: command.into(), cwd: std::env::temp_dir(), env, time_max };
        Helper { line: Arc::new(line) }.run().await
    }

    #[tokio::test]
    async fn what_it_prints_is_the_key_and_what_it_complains_of_is_told() {
        let time = Duration::from_secs(10);
        assert_eq!(run("echo key", time).await, Ok("key\n".to_owned()));
        let error =
            run("echo half; echo 'the vault' >&2; echo is locked >&2; exit 3", time).await.unwrap_err();
        assert_eq!(error, "it failed with exit status: 3: the vault is locked");
        assert_eq!(run("true", time).await.unwrap_err(), "it printed nothing");
        let long = run("seq 100000 >&2; exit 1", time).await.unwrap_err();
        assert!(long.len() < 500, "{long}");
    }

    #[tokio::test]
    async fn one_that_hangs_is_ended_with_all_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let pid_file = dir.path().join("pid");
        // It does not listen to polite words, and neither does its child.
        let command =
            format!("trap '' TERM; sleep 300 & echo $! > {}; echo waiting >&2; wait", pid_file.display());
        let began = Instant::now();
        let error = run(&command, Duration::from_millis(500)).await.unwrap_err();
        assert_eq!(error, "it did not end within 0 seconds: waiting");
        assert!(began.elapsed() < Duration::from_secs(10));
        let pid = std::fs::read_to_string(pid_file).unwrap();
        assert!(!Path::new("/proc").join(pid.trim()).join("exe").exists(), "its child still runs");
    }

    #[tokio::test]
    async fn what_it_leaves_in_the_background_is_not_waited_for() {
        let began = Instant::now();
        assert_eq!(run("sleep 300 & echo key", Duration::from_secs(30)).await, Ok("key\n".to_owned()));
        assert!(began.elapsed() < Duration::from_secs(10));
    }
}
