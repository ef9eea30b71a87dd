//! What may run: mode, rules, tools.

use pelton::Options;
use pelton::permission::{Layer, Mode, Rule, RuleSet, RuleSource};
use pelton::settings::Settings;
use pelton::tools::{AGENT_TOOL, AGENT_TOOL_ALIAS, TodoTools, ToolSearch, builtin};

use super::env::Env;
use crate::args::{ModeArg, RunArgs};
use crate::fail::{Fail, tell};

/// Mode, rules and directories: what the flags say, and what settings add.
pub(super) fn permissions(
    options: &mut Options,
    args: &RunArgs,
    env: &Env,
    settings: &Settings,
) -> Result<(), Fail> {
    options.mode = mode(args, env, settings)?;
    options.rules = settings.rules.clone();
    let said = RuleSet {
        allow: rules(&args.allowed_tools)?,
        deny: rules(&args.disallowed_tools)?,
        ..RuleSet::default()
    };
    for warning in said.warnings() {
        tell(&format!("warning: {warning}"));
    }
    options.rules.extend(said);
    if options.rules.managed_only && !args.allowed_tools.is_empty() {
        tell("warning: managed settings let no other rule allow anything: --allowedTools is not used");
        options.rules.allow.retain(|rule| rule.source().layer == Layer::Managed);
    }
    let from_home = |dir: &str| match (dir.strip_prefix("~/"), &options.home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => options.cwd.join(dir),
    };
    let set = settings.additional_dirs.iter().map(|dir| from_home(dir));
    options.additional_dirs = args.add_dir.iter().map(|dir| options.cwd.join(dir)).chain(set).collect();
    if settings.restrictions_unknown {
        narrow(options)?;
    }
    Ok(())
}

/// What a broken file forbids is not known, so nothing is allowed that somebody might have forbidden.
fn narrow(options: &mut Options) -> Result<(), Fail> {
    if matches!(options.mode, Mode::AcceptEdits | Mode::BypassPermissions) {
        return Err(Fail::at_start(format!(
            "the permission mode {} is refused while it is not known what the settings forbid: correct the settings \
             named above, or use --permission-mode default",
            options.mode.name()
        )));
    }
    if !options.rules.allow.is_empty() {
        tell("warning: no allow rule counts while it is not known what the settings forbid");
        options.rules.allow.clear();
    }
    Ok(())
}

/// A session that goes on in front of somebody is in the mode that it was left in, unless one was named for this run. What lets
/// everything run, or nothing, is chosen anew each time.
pub(super) fn go_on(options: &mut Options, args: &RunArgs) {
    let is_named = args.permission_mode.is_some() || args.dangerously_skip_permissions;
    let last = options.resume.as_ref().and_then(|resumed| resumed.conversation.mode);
    if let Some(last @ (Mode::Default | Mode::AcceptEdits | Mode::DontAsk)) = last.filter(|_| !is_named) {
        options.mode = last;
    }
}

fn mode(args: &RunArgs, env: &Env, settings: &Settings) -> Result<Mode, Fail> {
    let mode = match args.permission_mode {
        _ if args.dangerously_skip_permissions => Mode::BypassPermissions,
        None => settings.mode.unwrap_or_default(),
        Some(ModeArg::Default) => Mode::Default,
        Some(ModeArg::AcceptEdits) => Mode::AcceptEdits,
        Some(ModeArg::Plan) => Mode::Plan,
        Some(ModeArg::DontAsk) => Mode::DontAsk,
        Some(ModeArg::BypassPermissions) => Mode::BypassPermissions,
        Some(other @ (ModeArg::Auto | ModeArg::Delegate)) => {
            let name = if other == ModeArg::Auto { "auto" } else { "delegate" };
            tell(&format!("notice: there is no permission mode {name} here: it is taken for default"));
            Mode::Default
        }
    };
    let mode = settings.policy.mode.unwrap_or(mode);
    if mode == Mode::BypassPermissions && settings.policy.never_bypass {
        return Err(Fail::at_start(
            "bypassing permissions is switched off by `permissions.disableBypassPermissionsMode`: choose another \
             --permission-mode",
        ));
    }
    if mode == Mode::BypassPermissions && !may_bypass_here(env) {
        return Err(Fail::new(
            "bypassing permissions as root is refused outside a sandbox: run as another user, choose \
             --permission-mode acceptEdits with --allowedTools, or set IS_SANDBOX=1 if this is one",
        ));
    }
    Ok(mode)
}

/// As root, nothing is left that would hold a command, unless this is a sandbox.
pub(super) fn may_bypass_here(env: &Env) -> bool {
    !nix::unistd::geteuid().is_root() || env.get("IS_SANDBOX") == Some("1")
}

pub(super) fn keep_tools(options: &mut Options, args: &RunArgs, names: &[String]) -> Result<(), Fail> {
    let today = |name: String| match name.as_str() {
        AGENT_TOOL_ALIAS => AGENT_TOOL.to_owned(),
        "KillShell" | "KillBash" => "TaskStop".to_owned(),
        "BashOutput" => "TaskOutput".to_owned(),
        _ => name,
    };
    let mut names: Vec<String> = names.iter().flat_map(|text| split(text)).map(today).collect();
    if names.iter().any(|name| name == "default") {
        return Ok(());
    }
    let built_in = builtin::all();
    let known: Vec<&str> = built_in.iter().map(|tool| tool.spec().name).collect();
    if args.client.streams_input() {
        // Programs name what they would like to have, of whichever version.
        let (there, missing) = names.into_iter().partition(|name| known.contains(&name.as_str()));
        names = there;
        let missing: Vec<String> = missing;
        if !missing.is_empty() {
            tell(&format!("warning: --tools names tools there are not: {}", missing.join(", ")));
        }
    }
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(Fail::new(format!(
            "--tools names a tool there is not: '{unknown}' (there are {})",
            known.join(", ")
        )));
    }
    options.tools.retain(|tool| names.iter().any(|name| name == tool.spec().name));
    Ok(())
}

/// Which tools for things to do the model is told of.
pub(super) fn todo_tools(args: &RunArgs, env: &Env) -> TodoTools {
    match &args.tools {
        // Whoever names tools wants them.
        Some(names) if !names.iter().any(|names| split(names).iter().any(|name| name == "default")) => {
            TodoTools::AsGiven
        }
        _ if env.is_off("CLAUDE_CODE_ENABLE_TASKS") => TodoTools::Todos,
        _ if env.is_on("CLAUDE_CODE_ENABLE_TODO_TOOLS") => TodoTools::Tasks,
        _ => TodoTools::ByModel,
    }
}

/// When the tools of servers are told of by name only.
pub(super) fn tool_search(env: &Env) -> Result<ToolSearch, Fail> {
    let said = env.get("ENABLE_TOOL_SEARCH").map(str::parse).transpose();
    Ok(said.map_err(|error| Fail::at_start(format!("ENABLE_TOOL_SEARCH: {error}")))?.unwrap_or_default())
}

fn rules(texts: &[String]) -> Result<Vec<Rule>, Fail> {
    let rules = texts.iter().flat_map(|text| split(text));
    let source = RuleSource::layer(Layer::CommandLine);
    rules
        .map(|rule| rule.parse::<Rule>().map_err(|error| Fail::new(format!("{error}"))))
        .map(|rule| rule.map(|rule| rule.with_source(source.clone())))
        .collect()
}

/// Splits on commas and blanks outside parentheses.
fn split(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut depth = 0usize;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match words.last_mut() {
            Some(word) if depth > 0 || !(c == ',' || c.is_whitespace()) => word.push(c),
            _ => words.push(String::new()),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn rules_split_outside_parentheses_only() {
        assert_eq!(split("Read,Bash(git diff, x) Edit"), ["Read", "Bash(git diff, x)", "Edit"]);
        assert_eq!(split(""), [""; 0]);
        assert_eq!(split(" , "), [""; 0]);
    }
}
