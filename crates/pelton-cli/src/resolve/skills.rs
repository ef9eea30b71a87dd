//! Where skills and custom commands are looked for.

use pelton::SkillSources;
use pelton::settings::SkillSettings;

use super::env::Env;
use super::layers::Sources;
use super::memory::MANAGED_DIR;
use super::sessions::config_dir;
use crate::args::RunArgs;
use crate::fail::Fail;

/// Which skills count. `None` if none do.
pub(super) fn skills(
    args: &RunArgs,
    env: &Env,
    settings: &SkillSettings,
) -> Result<Option<SkillSources>, Fail> {
    if super::bare(args, env) || args.disable_slash_commands {
        return Ok(None);
    }
    let sources = Sources::said(args.setting_sources.as_deref())?;
    let mut skills = SkillSources::default();
    skills.managed_dir = Some(MANAGED_DIR.into());
    skills.user_dir = config_dir(env).filter(|_| sources.user);
    skills.project = sources.project;
    skills.run_commands = settings.shell_off != Some(true);
    skills.listing_permille = settings.listing_permille.unwrap_or(skills.listing_permille);
    skills.description_chars_max = settings.description_chars_max.unwrap_or(skills.description_chars_max);
    skills.listing_chars_max = env.number("SLASH_COMMAND_TOOL_CHAR_BUDGET")?;
    Ok(Some(skills))
}
