//! Where skills and custom commands are looked for.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use pelton::settings::{Brought, Power, Settings, Treatment, Watched, untrusted};
use pelton::tools::AgentDefinition;
use pelton::{SkillSources, agents_in};

use super::env::Env;
use super::layers::Sources;
use super::memory::MANAGED_DIR;
use super::repository::Repository;
use super::sessions::config_dir;
use super::trust::Trust;
use crate::args::RunArgs;
use crate::fail::{Fail, tell};

/// Where a directory has files that describe agents.
const AGENTS: &str = ".claude/agents";

/// Which skills count. `None` if none do.
pub(super) fn skills(
    args: &RunArgs,
    env: &Env,
    settings: &Settings,
    cwd: &Path,
    watched: Watched,
) -> Result<Option<SkillSources>, Fail> {
    if super::alone(args, env) || args.disable_slash_commands {
        return Ok(None);
    }
    let sources = Sources::said(args.setting_sources.as_deref())?;
    let mut skills = SkillSources::default();
    skills.managed_dir = Some(MANAGED_DIR.into());
    let plugins_only = settings.policy.plugins_only.is_some_and(|only| only.skills);
    skills.user_dir = config_dir(env).filter(|_| sources.user && !plugins_only);
    skills.project = sources.project && !plugins_only;
    skills.hooks = !settings.brought_hooks_off;
    if skills.project && untrusted(Brought::Programs, watched) != Treatment::Used {
        let trust = Trust::in_dir(env, cwd);
        let seen = trust.is_given().then(|| trust.approved_settings(env));
        skills.project_powers = Some(seen.unwrap_or_default());
    }
    let settings = &settings.skills;
    skills.shown.clone_from(&settings.shown);
    skills.run_commands = settings.shell_off != Some(true);
    skills.listing_permille = settings.listing_permille.unwrap_or(skills.listing_permille);
    skills.description_chars_max = settings.description_chars_max.unwrap_or(skills.description_chars_max);
    skills.listing_chars_max = env.number("SLASH_COMMAND_TOOL_CHAR_BUDGET")?;
    Ok(Some(skills))
}

/// Sub-agents that files describe.
pub(super) struct Described {
    pub agents: Vec<AgentDefinition>,
    /// Those whose programs are left out because nobody has seen them who trusts the directory, by name.
    pub changed: Vec<String>,
}

impl Described {
    /// Says what is left out of whose description.
    pub fn tell(&self) {
        for name in &self.changed {
            tell(&format!(
                "warning: what the agent '{name}' would run is not what was seen when its directory was trusted, so it is not used until that is trusted again (pelton trust)"
            ));
        }
    }
}

/// The sub-agents that files describe: an organisation's before the project's, the nearest first, before the user's. What
/// the project's would run is left out unless somebody trusts it. What the command line says counts before all but an
/// organisation's, what further directories bring behind the project's; `managed_only`, if the organisation lets nobody else describe any.
pub(super) fn agents(
    args: &RunArgs,
    env: &Env,
    cwd: &Path,
    watched: Watched,
    managed_only: bool,
) -> Result<Described, Fail> {
    let mut places = Places::of(args, env, cwd)?;
    if managed_only {
        places = Places { managed: places.managed, ..Places::default() };
    }
    let mut agents = agents_in(&places.managed);
    let mut changed = Vec::new();
    let mut brought = brought_by(cwd, &places.project, env, watched, &mut changed);
    for dir in &places.added {
        // Whoever adds a directory has not trusted what it would run.
        brought.extend(brought_by(dir, &[dir.join(AGENTS)], env, watched, &mut changed));
    }
    brought.extend(agents_in(&places.user));
    let said = super::agents::with_said(Vec::new(), args, cwd)?;
    agents.extend(brought.into_iter().filter(|agent| said.iter().all(|said| said.name != agent.name)));
    let mut names = HashSet::new();
    agents.retain(|agent| names.insert(agent.name.clone()));
    Ok(Described { agents, changed })
}

/// The agents that a directory brings, without what they would run if nobody who trusts it has seen that; the names of those go to
/// `unseen`, where there is somebody who could look.
fn brought_by(
    dir: &Path,
    places: &[PathBuf],
    env: &Env,
    watched: Watched,
    unseen: &mut Vec<String>,
) -> Vec<AgentDefinition> {
    let mut brought = agents_in(places);
    if !brought.iter().any(AgentDefinition::brings_programs) {
        return brought;
    }
    let trust = Trust::in_dir(env, dir);
    if !trust.is_given() {
        brought.iter_mut().for_each(AgentDefinition::leave_out_programs);
    } else if untrusted(Brought::Programs, watched) != Treatment::Used {
        let seen = trust.approved_settings(env);
        let is_new = |agent: &&mut AgentDefinition| powers(agent).any(|power| !seen.contains(&power.mark));
        for agent in brought.iter_mut().filter(is_new) {
            agent.leave_out_programs();
            unseen.push(agent.name.clone());
        }
    }
    brought
}

/// What agents of a project would have run besides what the model asks for: whoever trusts it has to have seen that.
pub(super) fn powers_of_agents(cwd: &Path) -> Vec<Power> {
    agents_in(&of_project(cwd)).iter().flat_map(powers).collect()
}

fn powers(agent: &AgentDefinition) -> impl Iterator<Item = Power> {
    let place = |what: &str| format!("agents.{}.{what}", agent.name);
    let hooks = agent.hooks.iter().map(|hooks| Power::new(place("hooks"), hooks.clone()));
    let own = agent.mcp_servers.iter().filter(|server| !server.is_string());
    hooks
        .chain(own.map(|server| Power::new(place("mcpServers"), server.clone())))
        .collect::<Vec<_>>()
        .into_iter()
}

/// The directories of agents from a directory up to the root of its repository.
fn of_project(cwd: &Path) -> Vec<PathBuf> {
    let top = Repository::around(cwd).map_or_else(|| cwd.to_owned(), |repository| repository.root);
    // A further checkout of a repository is not below its root: then it is looked at alone.
    let top = if cwd.starts_with(&top) { top } else { cwd.to_owned() };
    cwd.ancestors().take_while(|dir| dir.starts_with(&top)).map(|dir| dir.join(AGENTS)).collect()
}

/// Where files are looked for that describe agents.
pub(super) fn agent_dirs(args: &RunArgs, env: &Env, cwd: &Path) -> Result<Vec<PathBuf>, Fail> {
    let Places { managed, project, added, user } = Places::of(args, env, cwd)?;
    let added = added.iter().map(|dir| dir.join(AGENTS)).collect();
    Ok([managed, project, added, user].concat())
}

/// Directories of agents, by whose they are.
#[derive(Default)]
struct Places {
    managed: Vec<PathBuf>,
    project: Vec<PathBuf>,
    /// Further working directories; what they bring is in [`AGENTS`] there.
    added: Vec<PathBuf>,
    user: Vec<PathBuf>,
}

impl Places {
    fn of(args: &RunArgs, env: &Env, cwd: &Path) -> Result<Self, Fail> {
        if super::alone(args, env) {
            return Ok(Self::default());
        }
        let sources = Sources::said(args.setting_sources.as_deref())?;
        let mut places = Self { managed: vec![PathBuf::from(MANAGED_DIR).join(AGENTS)], ..Self::default() };
        if sources.project {
            places.project = of_project(cwd);
            // By its whole path, as trust knows it.
            let real = |dir: &PathBuf| {
                let dir = cwd.join(dir);
                dir.canonicalize().unwrap_or(dir)
            };
            places.added = args.add_dir.iter().map(real).collect();
        }
        if let (true, Some(home)) = (sources.user, config_dir(env)) {
            places.user.push(home.join("agents"));
        }
        Ok(places)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;

    use super::*;
    use crate::args::Args;

    #[test]
    fn hooks_of_agents_that_a_project_brings_wait_for_trust() {
        let dir = tempfile::tempdir().unwrap();
        let (home, work) = (dir.path().join("home"), dir.path().join("work"));
        let hooks = "hooks:\n  Stop:\n    - hooks:\n        - type: command\n          command: 'true'\n";
        for (place, name) in [(home.join(".claude"), "own"), (work.join(".claude"), "brought")] {
            fs::create_dir_all(place.join("agents")).unwrap();
            let text = format!("---\nname: {name}\ndescription: d\n{hooks}---\nBody");
            fs::write(place.join("agents/a.md"), text).unwrap();
        }
        let home = home.to_str().unwrap().to_owned();
        let env = Env::of_process().without(&["CLAUDE_CONFIG_DIR"]).with(&[("HOME".to_owned(), home)].into());
        let args = Args::parse_from(["pelton"]).run;
        let with_hooks = || {
            let agents = agents(&args, &env, &work, Watched::Unattended, false).unwrap().agents;
            assert_eq!(
                agents.iter().map(|agent| agent.name.as_str()).collect::<Vec<_>>(),
                ["brought", "own"]
            );
            agents.iter().map(|agent| agent.hooks.is_some()).collect::<Vec<_>>()
        };
        assert_eq!(with_hooks(), [false, true]);
        Trust::in_dir(&env, &work).say(&env, true).unwrap();
        assert_eq!(with_hooks(), [true, true]);
    }
}
