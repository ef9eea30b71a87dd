//! Every number that bounds a hook.

use std::time::Duration;

/// A command's time when its settings name none.
pub const COMMAND_TIME_DEFAULT: Duration = Duration::from_secs(600);
/// The same while the user waits for a prompt to be taken.
pub const PROMPT_TIME_DEFAULT: Duration = Duration::from_secs(30);
/// The same while text waits to be shown.
pub const DISPLAY_TIME_DEFAULT: Duration = Duration::from_secs(10);
/// A callback's time when the host names none.
pub const CALLBACK_TIME_DEFAULT: Duration = Duration::from_secs(60);
/// The time of a question to a model.
pub const JUDGE_TIME_DEFAULT: Duration = Duration::from_secs(30);
/// Time for an agent that looks around for a hook.
pub const AGENT_TIME_DEFAULT: Duration = Duration::from_secs(60);
/// Tokens of the answer to it.
pub const JUDGE_TOKENS_MAX: u32 = 1_000;
/// The time of all hooks at a session's end together, when none of them asks for more.
pub const SESSION_END_TIME_DEFAULT: Duration = Duration::from_millis(1_500);
/// The longest time hooks may hold up a session's end.
pub const SESSION_END_TIME_MAX: Duration = Duration::from_secs(60);
/// The longest time a hook may ask for.
pub const TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Time between TERM and KILL after a hook's time is over. Well under two seconds, in which its caller has to go on even
/// on a busy machine.
pub const KILL_GRACE: Duration = Duration::from_millis(1_000);
/// Time to see a killed tree gone; after that nobody waits for it.
pub const GONE_TIME_MAX: Duration = Duration::from_millis(300);
/// The same where the user interrupts: that has to take effect within a tenth of a second.
pub const CANCELLED_TIME_MAX: Duration = Duration::from_millis(80);

/// Hooks of one event running side by side; more wait.
pub const RUNNING_MAX: usize = 32;
/// Hooks that run, or have ended and were not asked for, while nobody waits for them.
pub const BACKGROUND_MAX: usize = 64;
/// Hooks of a session.
pub const CONFIGURED_MAX: usize = 1_000;
/// Files that hooks want to hear of.
pub const WATCHED_FILES_MAX: usize = 256;
/// Bytes of a matcher.
pub const MATCHER_BYTES_MAX: usize = 4 * 1024;
/// Bytes of a compiled matcher.
pub const MATCHER_REGEX_BYTES_MAX: usize = 1024 * 1024;

/// Bytes kept of each of a command's two outputs; the rest is read and forgotten.
pub const OUTPUT_BYTES_MAX: usize = 1024 * 1024;
/// Characters of one text from a hook that go to the model or the user; a longer one is kept in a file.
pub const TEXT_CHARS_MAX: usize = 10_000;
/// News of running hooks that wait for whoever listens.
pub const NOTES_MAX: usize = 256;
/// Those of them that hold all that a hook has printed.
pub const ENDS_MAX: usize = 16;
/// Time between two looks at what a running hook has printed.
pub const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// Characters told of that, the newest.
pub const PROGRESS_CHARS_MAX: usize = 10_000;
/// Characters shown of a text that went to a file.
pub const PREVIEW_CHARS: usize = 2_000;
/// Characters of a hook's command, or of a line it printed, in a notice.
pub const NOTICE_CHARS_MAX: usize = 200;
/// Bytes that a hook may have said to the terminal.
pub const TERMINAL_BYTES_MAX: usize = 4 * 1024;
