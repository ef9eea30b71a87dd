//! Where plans are kept that somebody is asked to approve.

use std::path::{Component, Path, PathBuf};

use pelton::settings::ToolSettings;

use super::env::Env;
use super::memory::from_home;
use super::sessions::config_dir;
use crate::fail::tell;

/// The directory that settings name, or the one in the configuration directory. A project names only places inside of it.
pub(super) fn plans_dir(said: &ToolSettings, env: &Env, cwd: &Path) -> Option<PathBuf> {
    let usual = || config_dir(env).map(|config| config.join("plans"));
    let Some(text) = &said.plans_dir else { return usual() };
    if said.plans_dir_is_projects && !is_inside(Path::new(text), cwd) {
        tell(&format!(
            "warning: `plansDirectory` is \"{text}\" in a file of the project, and may only be a directory inside of it that is not \
             hidden, or .claude/plans: plans are kept in the configuration directory"
        ));
        return usual();
    }
    Some(cwd.join(from_home(text, env)))
}

/// Whether a directory that a project names is one of its own, and none that programs look into for something else.
fn is_inside(dir: &Path, project: &Path) -> bool {
    let is_open = |part: Component<'_>| match part {
        Component::CurDir => true,
        Component::Normal(name) => !name.as_encoded_bytes().starts_with(b".") && name != "~",
        Component::ParentDir | Component::RootDir | Component::Prefix(_) => false,
    };
    let below = dir.strip_prefix(".claude/plans").unwrap_or(dir);
    let real = |path: &Path| path.ancestors().find_map(|there| there.canonicalize().ok());
    // Links in it count: what is there of it must be in the project, too.
    let stays = || match (real(&project.join(dir)), project.canonicalize()) {
        (Some(real), Ok(project)) => real.starts_with(project),
        _ => false,
    };
    below.components().all(is_open) && stays()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_keeps_plans_in_open_directories_of_its_own() {
        let project = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/tmp", project.path().join("away")).unwrap();
        std::fs::create_dir(project.path().join("docs")).unwrap();
        for (dir, inside) in [
            ("docs/plans", true),
            ("./plans", true),
            (".claude/plans", true),
            (".claude/plans/now", true),
            (".", true),
            ("/tmp/plans", false),
            ("../plans", false),
            ("docs/../../plans", false),
            (".claude/commands", false),
            (".claude", false),
            (".git/hooks", false),
            ("docs/.vscode", false),
            ("away", false),
            ("away/plans", false),
            ("~/plans", false),
            ("~", false),
        ] {
            assert_eq!(is_inside(Path::new(dir), project.path()), inside, "{dir}");
        }
    }
}
