//! Every number that bounds a conversation through pipes.

use std::time::Duration;

/// How long a guess of the next prompt may take. A client that has nothing more to say waits for it, too.
pub(crate) const SUGGESTION_TIME_MAX: Duration = Duration::from_secs(10);
/// Bytes of one line from the client.
pub(crate) const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Lines read before anybody has looked at them.
pub(crate) const LINES_READ_AHEAD_MAX: usize = 4;
/// Bytes waiting for a slow reader before the engine waits.
pub(crate) const OUT_BYTES_WAITING_MAX: usize = 4 * 1024 * 1024;
/// Bytes waiting for a slow reader before its own requests wait, too.
pub(crate) const OUT_BYTES_WAITING_MAX_HARD: usize = 64 * 1024 * 1024;
/// Questions to the client that are not answered.
pub(crate) const QUESTIONS_OPEN_MAX: usize = 1_024;
/// Requests of the client that are worked on.
pub(crate) const REQUESTS_OPEN_MAX: usize = 256;
/// Words that start no submission and wait for the end of one.
pub(crate) const NOTES_WAITING_MAX: usize = 256;
/// Servers with a mode of their own.
pub(crate) const SERVERS_GUARDED_MAX: usize = 256;
/// Pasted texts that are read with a prompt.
pub(crate) const PASTED_MAX: usize = 1_000;
/// Bytes of the end of a task's output that are shown.
pub(crate) const TASK_TAIL_BYTES: u64 = 8 * 1024;
/// Bytes of a file the client may ask for at once.
pub(crate) const FILE_BYTES_MAX: u64 = 512 * 1024;
/// Plugins that one request adds.
pub(crate) const PLUGINS_ADDED_MAX: usize = 100;
/// How long a command may take that says which files are suggested.
pub(crate) const SUGGESTING_TIME_MAX: Duration = Duration::from_secs(5);
/// Bytes of what it says.
pub(crate) const SUGGESTING_BYTES_MAX: u64 = 64 * 1024;
/// Files suggested for a few letters.
pub(crate) const SUGGESTIONS_MAX: usize = 20;
/// Names looked at for that.
pub(crate) const SUGGESTIONS_LOOKED_AT_MAX: usize = 20_000;
