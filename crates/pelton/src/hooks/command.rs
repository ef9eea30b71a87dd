//! Hooks that are programs: started with the event on their standard input, listened to, and ended with everything
//! they started.
//!
//! A command is over when it exits, not when its pipes close: whoever it left in the background may hold those open
//! for hours.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::config::{CommandHook, Shell, Source, Waiting};
use super::event::HookEvent;
use super::limits::{
    CANCELLED_TIME_MAX, GONE_TIME_MAX, KILL_GRACE, OUTPUT_BYTES_MAX, PROGRESS_EVERY, TIME_MAX,
};
use super::outcome::goes_on_in_background;
use crate::limits::{SHELL_DRAIN_QUIET, SHELL_KILL_GRACE_SHORT};
use crate::plugins::option_variable;
use crate::secrets::{Secrets, for_programs};
use crate::tools::process::{Launch, Printed, ProcessTree};

/// Bytes read at once.
const CHUNK_BYTES: usize = 16 * 1024;

/// Where commands run and what they find there.
#[derive(Debug, Clone)]
pub(super) struct Surroundings {
    pub event: HookEvent,
    pub session_id: String,
    pub effort: Option<String>,
    pub cwd: PathBuf,
    pub project_dir: PathBuf,
    pub env: Arc<[(OsString, OsString)]>,
    pub env_file: Option<PathBuf>,
    /// What they are not told.
    pub secrets: Secrets,
}

/// How long a command may run, and who may end it before that.
pub(super) struct Terms<'a> {
    pub time: Duration,
    pub cancel: &'a CancellationToken,
    /// Told when the command says that nobody should wait for it.
    pub detach: Option<oneshot::Sender<()>>,
    /// Told now and then what it has printed so far, if there is something new.
    pub printed: &'a (dyn Fn(&str, &str) + Sync),
}

/// A command that is over.
#[derive(Debug)]
pub(super) struct Ran {
    pub over: Over,
    pub stdout: String,
    pub stderr: String,
}

/// Why a command is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// It exited; without a code when a signal ended it.
    Exited(Option<i32>),
    TimedOut,
    Cancelled,
}

/// Runs a command to its end. Afterwards nothing of it is left; dropping the future kills it at once.
pub(super) async fn run(
    hook: &CommandHook,
    source: &Source,
    input: &[u8],
    surroundings: &Surroundings,
    mut terms: Terms<'_>,
) -> io::Result<Ran> {
    let (reader, writer) = io::pipe()?;
    let stdin = ChildStdin::from_std(OwnedFd::from(writer).into())?;
    let reader = OwnedFd::from(reader);
    let mut tree = surroundings.start(hook, source, &reader)?;
    // The command alone holds the other end: writing to one that is gone must fail, not wait.
    drop(reader);
    let (stdout, stderr) = tree.take_output().ok_or_else(|| io::Error::other("the command has no pipes"))?;
    let (mut stdout, mut stderr) = (Head::new(stdout), Head::new(stderr));
    let input = surroundings.secrets.hidden(input);
    let mut feeding = pin!(feed(stdin, &input));
    let mut time_is_up = pin!(sleep(terms.time));
    let mut next_look = pin!(sleep(PROGRESS_EVERY));
    let mut has_news = false;
    let (mut fed, mut attached) = (false, hook.waiting == Waiting::UntilDone);

    let over = loop {
        tokio::select! {
            biased;
            () = terms.cancel.cancelled(), if attached => break Over::Cancelled,
            status = tree.wait() => break Over::Exited(status?.code()),
            () = &mut time_is_up => break Over::TimedOut,
            () = &mut feeding, if !fed => fed = true,
            () = &mut next_look, if has_news => {
                (terms.printed)(&stdout.text(), &stderr.text());
                has_news = false;
                next_look.set(sleep(PROGRESS_EVERY));
            }
            () = stdout.read(), if stdout.open => {
                has_news |= stdout.open;
                if let Some(detach) = terms.detach.take_if(|_| stdout.has_a_line())
                    && let Some(time) = stdout.first_line().and_then(goes_on_in_background)
                {
                    attached = false;
                    if let Some(time) = time {
                        time_is_up.set(sleep(time.min(TIME_MAX)));
                    }
                    // Nobody listening means nobody waits already.
                    let _ = detach.send(());
                }
            }
            () = stderr.read(), if stderr.open => has_news |= stderr.open,
        }
    };

    match over {
        Over::Exited(_) => {
            // What is still on its way is read; whoever else holds the pipes is not waited for.
            let rest = async { tokio::join!(stdout.read_on(), stderr.read_on()) };
            let _ = timeout(SHELL_DRAIN_QUIET, rest).await;
        }
        Over::TimedOut => tokio::select! {
            _ = tree.end(Duration::ZERO, KILL_GRACE) => {}
            () = terms.cancel.cancelled(), if attached => {}
        },
        Over::Cancelled => {}
    }
    // Dropping the tree kills what is left of it, should this not see its end in time.
    let patience = if over == Over::Cancelled { CANCELLED_TIME_MAX } else { GONE_TIME_MAX };
    let _ = timeout(patience, tree.end(Duration::ZERO, SHELL_KILL_GRACE_SHORT)).await;
    Ok(Ran { over, stdout: stdout.text(), stderr: stderr.text() })
}

async fn feed(mut stdin: ChildStdin, input: &[u8]) {
    // A hook that does not read its input is free not to.
    let _ = stdin.write_all(input).await;
}

impl Surroundings {
    fn start(&self, hook: &CommandHook, source: &Source, stdin: &OwnedFd) -> io::Result<ProcessTree> {
        let own = self.own_variables(source);
        let mut env = self.environment(&own);
        let options = match source {
            Source::Plugin { options, .. } => options.clone(),
            _ => Arc::default(),
        };
        let variable = |(key, text): (&String, &String)| (option_variable(key).into(), text.into());
        env.extend(options.iter().map(variable));
        // A process tree starts with nothing to read. The shell takes its input from a descriptor it inherits; with a
        // plain `exec` some shells would exit with 2 if that failed, and 2 means something to us.
        let redirect = format!("command exec </dev/fd/{} || exit 127;", stdin.as_raw_fd());
        let (program, words) = match &hook.args {
            // Placeholders need no substitution here: the shell finds them as variables, and a directory with an evil
            // name stays a word instead of becoming code.
            None => {
                let program = match hook.shell {
                    Shell::Sh => Path::new("/bin/sh"),
                    Shell::Bash => Path::new("bash"),
                };
                (program, vec![OsString::from(format!("{redirect} {}", hook.command))])
            }
            // Nothing of the command is read by this shell: it becomes the program.
            Some(args) => {
                let script = OsString::from(format!(r#"{redirect} exec "$0" "$@""#));
                let filled =
                    std::iter::once(&hook.command).chain(args).map(|word| filled_in(word, &own, &options));
                (Path::new("/bin/sh"), std::iter::once(script).chain(filled).collect())
            }
        };
        let args: Vec<&OsStr> =
            std::iter::once(OsStr::new("-c")).chain(words.iter().map(OsString::as_os_str)).collect();
        // A session may outlive the directory it moved to; its guards may not fall with it.
        let cwd = if self.cwd.is_dir() { &self.cwd } else { &self.project_dir };
        ProcessTree::start(&Launch {
            program,
            args: &args,
            cwd,
            env: &env,
            keep: Some(stdin),
            printed: Printed::Read,
        })
    }

    /// Variables we answer for; those without a value are taken away.
    fn own_variables<'a>(&'a self, source: &'a Source) -> Vec<(&'static str, Option<&'a OsStr>)> {
        let (root, data) = match source {
            Source::Plugin { root, data, .. } => (Some(root.as_os_str()), Some(data.as_os_str())),
            _ => (None, None),
        };
        let env_file = self.env_file.as_ref().filter(|_| self.event.has_environment_file());
        vec![
            ("CLAUDECODE", Some(OsStr::new("1"))),
            ("CLAUDE_CODE_SESSION_ID", Some(OsStr::new(&self.session_id))),
            ("CLAUDE_CODE_CHILD_SESSION", Some(OsStr::new("1"))),
            ("CLAUDE_PROJECT_DIR", Some(self.project_dir.as_os_str())),
            ("CLAUDE_EFFORT", self.effort.as_deref().map(OsStr::new)),
            ("CLAUDE_ENV_FILE", env_file.map(|file| file.as_os_str())),
            ("CLAUDE_PLUGIN_ROOT", root),
            ("CLAUDE_PLUGIN_DATA", data),
        ]
    }

    fn environment(&self, own: &[(&'static str, Option<&OsStr>)]) -> Vec<(OsString, OsString)> {
        let kept = for_programs(&self.env).filter(|(name, _)| !own.iter().any(|(own, _)| name == own));
        let own = own.iter().filter_map(|(name, value)| Some((OsString::from(name), (*value)?.to_owned())));
        kept.cloned().chain(own).collect()
    }
}

/// A word with every `${NAME}` of ours replaced, once; `${user_config.KEY}` is what a plugin's user has set.
pub(crate) fn filled_in(
    word: &str,
    variables: &[(&'static str, Option<&OsStr>)],
    options: &BTreeMap<String, String>,
) -> OsString {
    let mut filled = OsString::new();
    let mut rest = word;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        let placeholder = from.find('}').map(|end| &from[..=end]);
        let value = placeholder.and_then(|placeholder| {
            let name = &placeholder[2..placeholder.len() - 1];
            match name.strip_prefix("user_config.") {
                Some(key) => options.get(key).map(|text| OsStr::new(text.as_str())),
                None => variables.iter().find(|(known, _)| *known == name)?.1,
            }
        });
        filled.push(before);
        rest = match (placeholder, value) {
            (Some(placeholder), Some(value)) => {
                filled.push(value);
                &from[placeholder.len()..]
            }
            _ => {
                filled.push("${");
                &from[2..]
            }
        };
    }
    filled.push(rest);
    filled
}

/// The beginning of what comes through a pipe.
struct Head<R> {
    pipe: R,
    chunk: Box<[u8]>,
    kept: Vec<u8>,
    open: bool,
}

impl<R: AsyncRead + Unpin> Head<R> {
    fn new(pipe: R) -> Self {
        Self { pipe, chunk: vec![0; CHUNK_BYTES].into(), kept: Vec::new(), open: true }
    }

    /// Reads what is there, or waits for something. Beyond the bound it reads and forgets, so that nobody has to wait
    /// for a reader.
    async fn read(&mut self) {
        match self.pipe.read(&mut self.chunk).await {
            Ok(0) | Err(_) => self.open = false,
            Ok(bytes) => {
                let room = OUTPUT_BYTES_MAX - self.kept.len();
                self.kept.extend_from_slice(&self.chunk[..bytes.min(room)]);
            }
        }
    }

    async fn read_on(&mut self) {
        while self.open {
            self.read().await;
        }
    }

    fn has_a_line(&self) -> bool {
        self.kept.contains(&b'\n')
    }

    fn first_line(&self) -> Option<&str> {
        let end = self.kept.iter().position(|byte| *byte == b'\n')?;
        str::from_utf8(&self.kept[..end]).ok()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_in_once() {
        let own = [("DIR", Some(OsStr::new("/a ${DIR}"))), ("NONE", None)];
        let options = [("url".to_owned(), "https://a b".to_owned())].into();
        for (word, expected) in [
            ("--to=${user_config.url}", "--to=https://a b"),
            ("${user_config.none}", "${user_config.none}"),
            ("plain", "plain"),
            ("${DIR}/x", "/a ${DIR}/x"),
            ("a${DIR}b${DIR}", "a/a ${DIR}b/a ${DIR}"),
            ("$DIR ${OTHER} ${NONE} ${", "$DIR ${OTHER} ${NONE} ${"),
            ("${${DIR}", "${/a ${DIR}"),
            ("${DIR", "${DIR"),
        ] {
            assert_eq!(filled_in(word, &own, &options), OsString::from(expected), "{word}");
        }
    }
}
