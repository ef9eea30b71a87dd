//! A prompt from a pipe.

use std::fs::{File, Metadata};
use std::io::{IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::args::RunArgs;
use crate::fail::{Fail, tell};

/// More than this on standard input is a mistake, not a prompt.
const BYTES_MAX: usize = 10 * 1024 * 1024;
/// How long a pipe that says nothing is waited for when the argument is a prompt already: some callers leave one open
/// and never write.
const FIRST_BYTE_WAIT_BESIDE: Duration = Duration::from_secs(3);
/// The same when the prompt can only come from there. A slow producer deserves more time, but a program that nobody
/// will ever write to must say so within five seconds, and the two cannot be told apart.
const FIRST_BYTE_WAIT_ALONE: Duration = Duration::from_millis(4500);

/// The prompt: the argument, what comes on standard input, or both, one after the other.
pub(crate) async fn prompt(args: &RunArgs) -> Result<String, Fail> {
    let argument = args.prompt.as_deref().filter(|text| !text.trim().is_empty());
    let mut silent = "";
    let first_byte_wait = if argument.is_some() { FIRST_BYTE_WAIT_BESIDE } else { FIRST_BYTE_WAIT_ALONE };
    let piped = match read(first_byte_wait).await {
        Ok(Piped::Text(text)) => Some(text),
        Ok(Piped::Terminal) => None,
        Ok(Piped::Silent) => {
            if argument.is_some() {
                tell(
                    "warning: nothing came on standard input for 3 s; going on without it (use '< /dev/null' to say so)",
                );
            }
            silent = " (nothing came there for 4.5 s: if what writes to it is slow, let it write to a file, and use '< file')";
            None
        }
        Err(fail) if argument.is_some() && fail.recoverable => {
            tell(&format!("warning: {}; going on without it", fail.message));
            None
        }
        Err(fail) => return Err(Fail::at_start(fail.message)),
    };
    let piped = piped.filter(|text| !text.trim().is_empty());
    match (argument, piped) {
        (Some(argument), Some(piped)) => Ok(format!("{argument}\n{piped}")),
        (Some(argument), None) => Ok(argument.to_owned()),
        (None, Some(piped)) => Ok(piped),
        (None, None) => Err(match swallower(args) {
            Some(option) => Fail::at_start(format!(
                "no prompt: {option} takes all words up to the next option, so put the prompt before it"
            )),
            None => Fail::at_start(format!(
                "no prompt: give one as an argument (pelton -p \"...\") or on standard input{silent}"
            )),
        }),
    }
}

/// The option that may have taken the prompt for one of its values.
fn swallower(args: &RunArgs) -> Option<&'static str> {
    let lists = [
        ("--allowedTools", args.allowed_tools.len()),
        ("--disallowedTools", args.disallowed_tools.len()),
        ("--tools", args.tools.as_ref().map_or(0, Vec::len)),
    ];
    lists.into_iter().find(|(_, values)| args.prompt.is_none() && *values > 1).map(|(option, _)| option)
}

enum Piped {
    Terminal,
    Silent,
    Text(String),
}

struct Unreadable {
    message: String,
    /// The argument alone may still do.
    recoverable: bool,
}

async fn read(first_byte_wait: Duration) -> Result<Piped, Unreadable> {
    if std::io::stdin().is_terminal() {
        return Ok(Piped::Terminal);
    }
    if never_waits() {
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes);
        return read.map_err(|error| unreadable(&error)).and_then(|_| text(bytes));
    }
    // Reading blocks for as long as the writer likes, so it has a thread of its own, which ends with the process.
    let (pieces_in, mut pieces) = mpsc::channel::<std::io::Result<Vec<u8>>>(8);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let piece = match stdin.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => Ok(buffer[..count].to_vec()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let failed = piece.is_err();
            if pieces_in.blocking_send(piece).is_err() || failed {
                return;
            }
        }
    });
    let mut bytes = Vec::new();
    let mut next = match tokio::time::timeout(first_byte_wait, pieces.recv()).await {
        Ok(first) => first,
        Err(_) => return Ok(Piped::Silent),
    };
    while let Some(piece) = next {
        bytes.extend_from_slice(&piece.map_err(|error| unreadable(&error))?);
        if bytes.len() > BYTES_MAX {
            break;
        }
        next = pieces.recv().await;
    }
    text(bytes)
}

/// Whether standard input is a file or nothing at all: then no thread has to wait for anybody.
fn never_waits() -> bool {
    let about = std::io::stdin().as_fd().try_clone_to_owned().and_then(|file| File::from(file).metadata());
    let null = std::fs::metadata("/dev/null").ok();
    let is_null = |about: &Metadata| {
        about.file_type().is_char_device() && null.is_some_and(|null| null.rdev() == about.rdev())
    };
    about.is_ok_and(|about| about.is_file() || is_null(&about))
}

fn unreadable(error: &std::io::Error) -> Unreadable {
    Unreadable { message: format!("cannot read standard input: {error}"), recoverable: true }
}

/// What was read, if it can be a prompt.
fn text(bytes: Vec<u8>) -> Result<Piped, Unreadable> {
    if bytes.len() > BYTES_MAX {
        return Err(Unreadable {
            message: "standard input is larger than 10 MB: put it in a file and name the file in the prompt"
                .into(),
            recoverable: false,
        });
    }
    Ok(Piped::Text(String::from_utf8(bytes).unwrap_or_else(|error| {
        tell("warning: standard input is not all UTF-8; what cannot be read is replaced by \u{fffd}");
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    })))
}
