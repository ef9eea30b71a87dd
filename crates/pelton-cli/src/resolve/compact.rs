//! From where on the context is made smaller.

use pelton::compact::{AutoWindow, CompactOptions};
use pelton::settings::CompactSettings;

use super::env::Env;
use crate::args::RunArgs;
use crate::fail::Fail;

/// What flags, environment and settings say together.
pub(super) fn compact(args: &RunArgs, env: &Env, settings: &CompactSettings) -> Result<CompactOptions, Fail> {
    let mut compact = CompactOptions::default();
    compact.auto = settings.auto.unwrap_or(compact.auto);
    compact.folds = settings.folds.unwrap_or(compact.folds);
    compact.window_tokens = settings.window_tokens;
    let mut compact = of_environment(compact, env)?;
    if let Some(AutoWindow(tokens)) = args.autocompact {
        compact.window_tokens = tokens;
    }
    Ok(compact)
}

/// The same with what the environment says.
fn of_environment(mut compact: CompactOptions, env: &Env) -> Result<CompactOptions, Fail> {
    compact.enabled &= !env.is_on("DISABLE_COMPACT");
    compact.auto &= !env.is_on("DISABLE_AUTO_COMPACT");
    compact.folds &= !env.is_on("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC");
    if let Some(tokens) = env.number::<u64>("CLAUDE_CODE_AUTO_COMPACT_WINDOW")? {
        compact.window_tokens = Some(tokens.clamp(100_000, 1_000_000));
    }
    Ok(match env.number::<u8>("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE")? {
        Some(percent) => compact.lowered_to(percent),
        None => compact,
    })
}
