//! Every number that bounds something, in one place. What is a setting is a field with a default; what is a law
//! of the house is a constant.

use std::time::Duration;

/// Events waiting for a slow reader before the run itself waits.
pub const EVENTS_QUEUED_MAX: usize = 256;
/// Concurrency-safe calls running at once, unless the options say otherwise.
pub const TOOL_CALLS_RUNNING_MAX: usize = 10;
/// One line of the transcript. A longer one is written by reference, never read whole.
pub const TRANSCRIPT_LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bounds on what tools read, print and wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolLimits {
    /// A command's time when the model names none.
    pub shell_time_default: Duration,
    /// The longest time the model may ask for.
    pub shell_time_max: Duration,
    /// Characters of a command's output that go to the model.
    pub shell_output_chars_max: usize,
    /// Bytes of a command's output kept on disk before the command is cut.
    pub shell_spill_bytes_max: u64,
    /// Time between TERM and KILL.
    pub kill_grace: Duration,
    /// Bytes of text a Read without a range returns.
    pub read_bytes_max: usize,
    /// Lines a Read without a limit returns.
    pub read_lines_max: usize,
    /// Bytes of a file that may be edited.
    pub edit_bytes_max: u64,
    /// Paths a Glob returns.
    pub glob_paths_max: usize,
    /// Time a Glob or Grep may take.
    pub search_time_max: Duration,
    /// Lines or paths a Grep returns when the model names no limit.
    pub grep_lines_default: usize,
    /// Characters of one line of search output.
    pub grep_line_chars_max: usize,
    /// Characters of any result that go to the model; the rest stays on disk.
    pub result_chars_max: usize,
}

impl Default for ToolLimits {
    fn default() -> Self {
        Self {
            shell_time_default: Duration::from_secs(120),
            shell_time_max: Duration::from_secs(600),
            shell_output_chars_max: 30_000,
            shell_spill_bytes_max: 5 * 1024 * 1024 * 1024,
            kill_grace: Duration::from_secs(2),
            read_bytes_max: 256 * 1024,
            read_lines_max: 2_000,
            edit_bytes_max: 1024 * 1024 * 1024,
            glob_paths_max: 100,
            search_time_max: Duration::from_secs(20),
            grep_lines_default: 250,
            grep_line_chars_max: 2_000,
            result_chars_max: 100_000,
        }
    }
}
