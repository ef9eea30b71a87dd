//! How often, how long, how much.

use std::time::Duration;

use pelton::Options;

use super::env::Env;
use crate::fail::Fail;

/// More retries than this are not waited for, whatever is asked.
const RETRIES_MAX: u32 = 15;
/// More of a command's output than this never goes to the model.
const SHELL_OUTPUT_CHARS_MAX: usize = 150_000;

pub(super) fn limits(options: &mut Options, env: &Env) -> Result<(), Fail> {
    if let Some(retries) = env.number::<u32>("CLAUDE_CODE_MAX_RETRIES")? {
        options.retry.retries_max = retries.min(RETRIES_MAX);
    }
    if let Some(idle) = env.number("CLAUDE_STREAM_IDLE_TIMEOUT_MS")? {
        options.retry.idle = Duration::from_millis(idle);
    }
    if let Some(calls) = env.number("CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY")? {
        options.tool_calls_running_max = calls;
    }
    let tools = &mut options.tool_limits;
    if let Some(time) = env.number("BASH_MAX_TIMEOUT_MS")? {
        tools.shell_time_max = Duration::from_millis(time);
    }
    if let Some(time) = env.number("BASH_DEFAULT_TIMEOUT_MS")? {
        tools.shell_time_default = Duration::from_millis(time);
    }
    if let Some(chars) = env.number::<usize>("BASH_MAX_OUTPUT_LENGTH")? {
        tools.shell_output_chars_max = chars.min(SHELL_OUTPUT_CHARS_MAX);
    }
    Ok(())
}
