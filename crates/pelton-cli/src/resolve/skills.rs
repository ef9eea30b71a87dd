//! Where skills and custom commands are looked for.

use std::path::{Path, PathBuf};

use pelton::settings::SkillSettings;
use pelton::tools::AgentDefinition;
use pelton::{SkillSources, agents_in};

use super::env::Env;
use super::layers::Sources;
use super::memory::MANAGED_DIR;
use super::repository::Repository;
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

/// The sub-agents that files describe: an organisation's before the project's, the nearest first, before the user's.
pub(super) fn agents(args: &RunArgs, env: &Env, cwd: &Path) -> Result<Vec<AgentDefinition>, Fail> {
    if super::bare(args, env) {
        return Ok(Vec::new());
    }
    let sources = Sources::said(args.setting_sources.as_deref())?;
    let mut homes = vec![PathBuf::from(MANAGED_DIR).join(".claude")];
    if sources.project {
        let top = Repository::around(cwd).map_or_else(|| cwd.to_owned(), |repository| repository.root);
        // A further checkout of a repository is not below its root: then it is looked at alone.
        let top = if cwd.starts_with(&top) { top } else { cwd.to_owned() };
        homes.extend(cwd.ancestors().take_while(|dir| dir.starts_with(&top)).map(|dir| dir.join(".claude")));
        homes.extend(args.add_dir.iter().map(|dir| cwd.join(dir).join(".claude")));
    }
    homes.extend(config_dir(env).filter(|_| sources.user));
    Ok(agents_in(&homes.iter().map(|home| home.join("agents")).collect::<Vec<_>>()))
}
