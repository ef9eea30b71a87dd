//! Where memory files are looked for: in directories that flags, variables and settings name.

use std::path::{Path, PathBuf};

use pelton::MemorySources;
use pelton::settings::MemorySettings;
use pelton::transcript::project_key;

use super::env::Env;
use super::layers::Sources;
use super::repository::Repository;
use super::sessions::config_dir;
use super::trust::{IMPORTS_APPROVED, has_said_yes};
use crate::args::RunArgs;
use crate::fail::Fail;

/// Where an organisation puts what holds for everybody on a machine.
pub(super) const MANAGED_DIR: &str =
    if cfg!(target_os = "macos") { "/Library/Application Support/ClaudeCode" } else { "/etc/claude-code" };

/// Names the directory of the model's notes.
const NOTES_DIR_VARIABLE: &str = "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE";

/// Which memory files count. `None` if none do.
pub(super) fn memory(
    args: &RunArgs,
    env: &Env,
    settings: &MemorySettings,
    cwd: &Path,
) -> Result<Option<MemorySources>, Fail> {
    let is_off = super::bare(args, env);
    if is_off {
        return Ok(None);
    }
    let mut memory = MemorySources::default();
    if super::safe(args, env) {
        // The administrator's word still counts.
        memory.managed_text.clone_from(&settings.managed_text);
        memory.managed_dir = Some(PathBuf::from(MANAGED_DIR));
        return Ok(Some(memory));
    }
    memory.notes_dir = notes_dir(env, settings, cwd);
    memory.notes_with_custom_prompt = env.path(NOTES_DIR_VARIABLE).is_some();
    if env.is_on("CLAUDE_CODE_DISABLE_CLAUDE_MDS") {
        return Ok(Some(memory));
    }
    let sources = Sources::said(args.setting_sources.as_deref())?;
    let managed = PathBuf::from(MANAGED_DIR);
    memory.managed_text.clone_from(&settings.managed_text);
    memory.managed_dir = Some(managed);
    memory.user_dir = config_dir(env).filter(|_| sources.user);
    memory.project = sources.project;
    memory.local = sources.local;
    memory.additional_dirs = env.is_on("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD");
    memory.agents_md = settings.agents_md.unwrap_or_default();
    memory.excludes = settings.excludes.iter().map(|pattern| from_home(pattern, env)).collect();
    memory.not_of_projects = config_dir(env).into_iter().collect();
    memory.outside_imports = has_said_yes(env, &root(cwd), IMPORTS_APPROVED);
    Ok(Some(memory))
}

/// Where the model keeps its own notes: one place for all checkouts of a repository.
fn notes_dir(env: &Env, settings: &MemorySettings, cwd: &Path) -> Option<PathBuf> {
    if let Some(dir) = env.path(NOTES_DIR_VARIABLE) {
        return Some(dir);
    }
    if settings.notes == Some(false) || env.is_on("CLAUDE_CODE_DISABLE_AUTO_MEMORY") {
        return None;
    }
    if let Some(dir) = &settings.notes_dir {
        return Some(cwd.join(from_home(dir, env)));
    }
    let root = root(cwd);
    let root = root.canonicalize().unwrap_or(root);
    Some(config_dir(env)?.join("projects").join(project_key(&root)).join("memory"))
}

fn root(cwd: &Path) -> PathBuf {
    Repository::around(cwd).map_or_else(|| cwd.to_owned(), |repository| repository.root)
}

pub(super) fn from_home(path: &str, env: &Env) -> String {
    match (path.strip_prefix("~/"), env.path("HOME")) {
        (Some(rest), Some(home)) => home.join(rest).to_string_lossy().into_owned(),
        _ => path.to_owned(),
    }
}
