//! What may run: mode, rules, tools.

use pelton::Options;
use pelton::permission::{Mode, Rule};
use pelton::tools::builtin;

use super::env::Env;
use crate::args::{ModeArg, RunArgs};
use crate::fail::Fail;

pub(super) fn mode(args: &RunArgs, env: &Env) -> Result<Mode, Fail> {
    let mode = match args.permission_mode {
        _ if args.dangerously_skip_permissions => Mode::BypassPermissions,
        None | Some(ModeArg::Default) => Mode::Default,
        Some(ModeArg::AcceptEdits) => Mode::AcceptEdits,
        Some(ModeArg::Plan) => Mode::Plan,
        Some(ModeArg::DontAsk) => Mode::DontAsk,
        Some(ModeArg::BypassPermissions) => Mode::BypassPermissions,
    };
    if mode == Mode::BypassPermissions
        && nix::unistd::geteuid().is_root()
        && env.get("IS_SANDBOX") != Some("1")
    {
        return Err(Fail::new(
            "bypassing permissions as root is refused outside a sandbox: run as another user, choose \
             --permission-mode acceptEdits with --allowedTools, or set IS_SANDBOX=1 if this is one",
        ));
    }
    Ok(mode)
}

pub(super) fn keep_tools(options: &mut Options, names: &[String]) -> Result<(), Fail> {
    let names: Vec<String> = names.iter().flat_map(|text| split(text)).collect();
    if names.iter().any(|name| name == "default") {
        return Ok(());
    }
    let built_in = builtin::all();
    let known: Vec<&str> = built_in.iter().map(|tool| tool.spec().name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(Fail::new(format!(
            "--tools names a tool there is not: '{unknown}' (there are {})",
            known.join(", ")
        )));
    }
    options.tools.retain(|tool| names.iter().any(|name| name == tool.spec().name));
    Ok(())
}

pub(super) fn rules(texts: &[String]) -> Result<Vec<Rule>, Fail> {
    let rules = texts.iter().flat_map(|text| split(text));
    rules.map(|rule| rule.parse().map_err(|error| Fail::new(format!("{error}")))).collect()
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
