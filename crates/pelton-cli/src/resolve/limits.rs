//! How often, how long, how much.

use std::num::NonZeroU64;
use std::time::Duration;

use pelton::Options;
use pelton::settings::{LoopSettings, OutputSettings, RetrySettings};
use pelton::tools::{Siblings, Speculation};
use pelton_model::RetryPolicy;

use super::env::Env;
use crate::args::{RunArgs, SiblingsArg};
use crate::fail::Fail;

/// More retries than this are not waited for, whatever is asked.
const RETRIES_MAX: u32 = 15;
/// More of a command's output than this never goes to the model.
const SHELL_OUTPUT_CHARS_MAX: usize = 150_000;
/// The same of a task in the background.
const TASK_OUTPUT_CHARS_MAX: usize = 160_000;

/// With less memory than this a shell does not start.
const MEMORY_BYTES_MIN: u64 = 16 << 20;

/// About how many bytes of a file are one token.
const BYTES_PER_TOKEN: usize = 4;

/// Bounds of calls, of tools and of what goes on without end otherwise.
pub(super) fn limits(
    options: &mut Options,
    env: &Env,
    settings: &RetrySettings,
    output: OutputSettings,
) -> Result<(), Fail> {
    patience(&mut options.retry, env, settings)?;
    if let Some(blocks) = env.number::<u32>("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP")? {
        // 0 switches the cap off, as far as anything here is without a bound.
        let blocks = if blocks == 0 { u32::from(u8::MAX) } else { blocks };
        options.limits.stop_hook_blocks_max = u8::try_from(blocks).unwrap_or(u8::MAX);
    }
    if let Some(retries) = env.number::<u32>("MAX_STRUCTURED_OUTPUT_RETRIES")? {
        options.limits.structured_retries_max = u8::try_from(retries).unwrap_or(u8::MAX);
    }
    if let Some(calls) = env.number("CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY")? {
        options.tool_calls_running_max = calls;
    }
    let agents = &mut options.agent_limits;
    if let Some(depth) = env.number("CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH")? {
        agents.depth_max = depth;
    }
    if let Some(running) = env.number("CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS")? {
        agents.running_max = running;
    }
    let tools = &mut options.tool_limits;
    if let Some(time) = env.number("BASH_MAX_TIMEOUT_MS")? {
        tools.shell_time_max = Duration::from_millis(time);
    }
    if let Some(time) = env.number("BASH_DEFAULT_TIMEOUT_MS")? {
        tools.shell_time_default = Duration::from_millis(time);
    }
    if let Some(tokens) = env.number::<usize>("CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS")? {
        tools.read_bytes_max = tokens.saturating_mul(BYTES_PER_TOKEN);
    }
    if let Some(seconds) = env.number("CLAUDE_CODE_GLOB_TIMEOUT_SECONDS")? {
        tools.search_time_max = Duration::from_secs(seconds);
    }
    tools.shell_memory_bytes_max = memory(env)?;
    tools.background_off = env.is_on("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS");
    tools.shell_stays = env.is_on("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR");
    tools.glob_skips_ignored = env.is_off("CLAUDE_CODE_GLOB_NO_IGNORE");
    tools.glob_skips_hidden = env.is_off("CLAUDE_CODE_GLOB_HIDDEN");
    if let Some(kept) = env.number("CLAUDE_CODE_WEBFETCH_CACHE_TTL_MS")? {
        tools.web_page_kept = Duration::from_millis(kept);
    }
    if let Some(searches) = env.number("CLAUDE_CODE_MAX_WEB_SEARCHES_PER_SESSION")? {
        tools.web_searches_max = searches;
    }
    if let Some(chars) = env.number::<usize>("BASH_MAX_OUTPUT_LENGTH")?.or(output.command_chars_max) {
        tools.shell_output_chars_max = chars.min(SHELL_OUTPUT_CHARS_MAX);
    }
    if let Some(chars) = env.number::<usize>("TASK_MAX_OUTPUT_LENGTH")?.or(output.task_chars_max) {
        tools.task_output_chars_max = chars.min(TASK_OUTPUT_CHARS_MAX);
    }
    Ok(())
}

/// How much memory a process of a command may have: a number of bytes, or of KB, MB or GB.
fn memory(env: &Env) -> Result<Option<u64>, Fail> {
    const NAME: &str = "CLAUDE_CODE_TOOL_MEMORY_LIMIT";
    let Some(text) = env.get(NAME) else { return Ok(None) };
    let written = text.trim().to_ascii_lowercase();
    let digits = written.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
    let unit = match written[digits.len()..].trim().trim_end_matches('b').trim_end_matches('i') {
        "" => Some(1),
        "k" => Some(1 << 10),
        "m" => Some(1 << 20),
        "g" => Some(1 << 30),
        _ => None,
    };
    let bytes = unit.and_then(|unit| digits.parse::<u64>().ok()?.checked_mul(unit));
    match bytes {
        // 0 switches it off.
        Some(0) => Ok(None),
        Some(bytes) if bytes >= MEMORY_BYTES_MIN => Ok(Some(bytes)),
        Some(_) => Err(Fail::at_start(format!(
            "{NAME} is too little for a shell: '{text}' (at least {}MB; without a unit it is bytes)",
            MEMORY_BYTES_MIN >> 20
        ))),
        None => Err(Fail::at_start(format!(
            "{NAME} is no size: '{text}' (write 2GB, 512MB, or a number of bytes)"
        ))),
    }
}

/// How the loop goes about calls. Flags come before settings.
pub(super) fn calls(options: &mut Options, args: &RunArgs, settings: LoopSettings) {
    let said = args.sibling_abort.map(|whom| match whom {
        SiblingsArg::Never => Siblings::Never,
        SiblingsArg::SideEffects => Siblings::SideEffects,
        SiblingsArg::Any => Siblings::Any,
    });
    options.siblings = said.or(settings.siblings).unwrap_or_default();
    if args.speculation || settings.speculation == Some(true) {
        options.speculation = Some(Speculation::default());
    }
    options.tool_limits.shell_goes_on_beside = settings.background_on_timeout.unwrap_or_default();
    options.limits.stop_on_repetition =
        args.stop_on_repetition || settings.stop_on_repetition.unwrap_or_default();
}

/// How patient a call is. The environment comes before settings.
fn patience(retry: &mut RetryPolicy, env: &Env, settings: &RetrySettings) -> Result<(), Fail> {
    if let Some(retries) = env.number::<u32>("CLAUDE_CODE_MAX_RETRIES")?.or(settings.retries_max) {
        retry.retries_max = retries.min(RETRIES_MAX);
    }
    if let Some(idle) = env
        .number::<NonZeroU64>("CLAUDE_STREAM_IDLE_TIMEOUT_MS")?
        // How long a server may take to begin: it is the same silence.
        .or(env.number::<NonZeroU64>("API_TIMEOUT_MS")?)
        .map(|ms| Duration::from_millis(ms.get()))
        .or(settings.idle)
    {
        retry.idle = idle;
    }
    retry.horizon = settings.horizon;
    retry.idle_pings_only = settings.idle_pings_only.unwrap_or(retry.idle_pings_only);
    retry.notice = settings.notice.unwrap_or(retry.notice);
    retry.heartbeat = settings.heartbeat.unwrap_or(retry.heartbeat);
    retry.fast_wait_max = settings.fast_wait_max.unwrap_or(retry.fast_wait_max);
    retry.fast_cooldown = settings.fast_cooldown.unwrap_or(retry.fast_cooldown);
    retry.unattended = env.is_on("CLAUDE_CODE_RETRY_WATCHDOG")
        || env.is_on("CLAUDE_CODE_UNATTENDED_RETRY")
        || settings.unattended.unwrap_or(false);
    retry.non_streaming_fallback = !env.is_on("CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK")
        && settings.non_streaming_fallback.unwrap_or(true);
    Ok(())
}
