//! How the model answers, and as whom it works.

use std::path::{Path, PathBuf};

use pelton::plugins::Plugin;
use pelton::{Options, OutputStyle};

use super::env::Env;
use super::layers::Sources;
use super::memory::MANAGED_DIR;
use super::sessions::config_dir;
use crate::args::RunArgs;
use crate::fail::{Fail, tell};

/// Takes the ways to answer that files describe, an organisation's before the project's before the user's, and chooses the one
/// that settings name.
pub(super) fn choose_style(
    options: &mut Options,
    args: &RunArgs,
    env: &Env,
    cwd: &Path,
    name: Option<&str>,
) -> Result<(), Fail> {
    options.add_styles(styles(args, env, cwd)?);
    if super::alone(args, env) {
        return Ok(());
    }
    if let Some(name) = name
        && !options.choose_style(name)
    {
        let names = options.style_names().join(", ");
        tell(&format!(
            "warning: there is no output style '{name}', so the usual one is used (there are: {names})"
        ));
    }
    Ok(())
}

/// The ways to answer that files describe.
pub(super) fn styles(args: &RunArgs, env: &Env, cwd: &Path) -> Result<Vec<OutputStyle>, Fail> {
    if super::alone(args, env) {
        return Ok(Vec::new());
    }
    let sources = Sources::said(args.setting_sources.as_deref())?;
    let managed = Some(PathBuf::from(MANAGED_DIR).join(".claude"));
    let project = sources.project.then(|| cwd.join(".claude"));
    let user = config_dir(env).filter(|_| sources.user);
    let dirs: Vec<PathBuf> =
        [managed, project, user].into_iter().flatten().map(|dir| dir.join("output-styles")).collect();
    Ok(OutputStyle::in_dirs(&dirs))
}

/// Lets the session work as the agent that settings name, or else a plugin's, unless one was named for this run, or its record
/// names one.
pub(super) fn work_as(options: &mut Options, args: &RunArgs, set: Option<String>) {
    let worked_as = options.resume.as_ref().and_then(|resumed| resumed.conversation.works_as.as_ref());
    if args.client.agent.is_some() || worked_as.is_some() {
        return;
    }
    let of_plugin = || options.plugins().find_map(Plugin::agent);
    if let Some(agent) = set.or_else(of_plugin)
        && !options.work_as(&agent)
    {
        let names: Vec<&str> = options.agents.iter().map(|agent| agent.name.as_str()).collect();
        let names = names.join(", ");
        tell(&format!(
            "warning: there is no agent '{agent}' to work as, so none is used (there are: {names})"
        ));
    }
}

/// Lets the session work as the agent that was named for this run, or as the one that it worked as before.
pub(crate) fn work_as_said(options: &mut Options, args: &RunArgs) -> Result<(), Fail> {
    match &args.client.agent {
        Some(agent) if !options.work_as(agent) => {
            Err(Fail::at_start(format!("there is no agent '{agent}' to work as")))
        }
        Some(_) => Ok(()),
        None => {
            if let Err(gone) = options.work_as_before() {
                tell(&format!("notice: {gone}"));
            }
            Ok(())
        }
    }
}
