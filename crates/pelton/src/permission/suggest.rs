//! What would let a call and its like run without a question: as narrow as it says, and enough for the call itself.

use std::path::PathBuf;

use super::decision::{Cause, Decision, Part, Verdict};
use super::gate::Access;
use super::mode::Mode;
use super::rule::{Rule, host_of};
use super::update::{Behavior, Change, Destination, Update};
use crate::limits::RULES_SUGGESTED_MAX;

/// What would let a call and its like run without a question. Each can be answered with.
///
/// See [`Asker`](super::Asker).
pub fn suggestions(tool: &str, access: &Access, decision: &Decision) -> Vec<Update> {
    let outside = match &decision.cause {
        // All there is would be too much.
        Cause::Outside(path) => path.parent().filter(|directory| directory.parent().is_some()),
        Cause::Redirected(_) if matches!(access, Access::Shell(_)) => None,
        Cause::Unapproved | Cause::Special(_) => None,
        // Whatever is added, these are asked about.
        _ => return Vec::new(),
    };
    let allow = |text: String, destination| add(vec![text.parse().ok()?], destination);
    match access {
        Access::Shell(_) => for_line(tool, decision),
        Access::Edit(_) => match (&decision.cause, outside) {
            (Cause::Outside(_), Some(directory)) => accept_edits(vec![directory.to_path_buf()]),
            (Cause::Unapproved, _) => accept_edits(Vec::new()),
            _ => Vec::new(),
        },
        Access::Read(_) => {
            let path = outside.and_then(|path| path.to_str());
            let plain = path.filter(|path| !path.contains(['*', '?', '[', ']', '{', '}', '!', '\\']));
            let rule = plain.map(|path| format!("Read(/{}/**)", path.trim_end_matches('/')));
            rule.and_then(|rule| allow(rule, Destination::Session)).into_iter().collect()
        }
        Access::Agent(name) | Access::Skill(name) => {
            allow(format!("{tool}({name})"), Destination::LocalSettings).into_iter().collect()
        }
        Access::Url(url) => {
            let rule = host_of(url).map(|host| format!("{tool}(domain:{host})"));
            rule.and_then(|rule| allow(rule, Destination::LocalSettings)).into_iter().collect()
        }
        Access::Person(_) => Vec::new(),
        Access::Nothing | Access::Anything => {
            allow(tool.to_owned(), Destination::LocalSettings).into_iter().collect()
        }
    }
}

fn add(rules: Vec<Rule>, destination: Destination) -> Option<Update> {
    (!rules.is_empty()).then_some(Update { change: Change::AddRules(Behavior::Allow, rules), destination })
}

/// Edits, in these directories, too.
fn accept_edits(directories: Vec<PathBuf>) -> Vec<Update> {
    let more = (!directories.is_empty()).then_some(Change::AddDirectories(directories));
    more.into_iter().chain([Change::SetMode(Mode::AcceptEdits)]).map(Update::session).collect()
}

/// Rules, if they settle every command that is asked about; and the way of edits, for those that change something elsewhere or
/// whose output goes somewhere.
fn for_line(tool: &str, decision: &Decision) -> Vec<Update> {
    let asked = || decision.parts.iter().filter(|part| part.verdict != Verdict::Allow);
    let rules = rules_for(tool, asked());
    let mut directories: Vec<PathBuf> = Vec::new();
    let mut are_edits = asked().next().is_some();
    for part in asked() {
        are_edits &= part.as_edit.is_some();
        for directory in part.as_edit.iter().flatten() {
            if !directories.contains(directory) {
                directories.push(directory.clone());
            }
        }
    }
    let is_few = directories.len() <= RULES_SUGGESTED_MAX;
    let settles = match &rules {
        Some(_) => !directories.is_empty(),
        // No rule says where output may go.
        None => asked().all(|part| matches!(part.cause, Cause::Outside(_) | Cause::Redirected(_))),
    };
    let edits = if are_edits && is_few && settles { accept_edits(directories) } else { Vec::new() };
    rules.into_iter().chain(edits).collect()
}

/// One rule for each command that is asked about, if rules settle all of them.
fn rules_for<'a>(tool: &str, asked: impl Iterator<Item = &'a Part>) -> Option<Update> {
    let mut rules: Vec<Rule> = Vec::new();
    for part in asked {
        if part.verdict == Verdict::Deny || part.cause != Cause::Unapproved {
            return None;
        }
        // A star would mean more than is shown.
        if part.text.contains(['*', '\n']) {
            return None;
        }
        let content = prefix(&part.text).unwrap_or_else(|| part.text.clone());
        let rule: Rule = format!("{tool}({content})").parse().ok()?;
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    (rules.len() <= RULES_SUGGESTED_MAX).then_some(())?;
    add(rules, Destination::LocalSettings)
}

/// Programs whose first word behind them says what they do.
const WITH_COMMANDS: &[&str] = &[
    "git",
    "npm",
    "yarn",
    "pnpm",
    "bun",
    "cargo",
    "go",
    "docker",
    "podman",
    "kubectl",
    "helm",
    "terraform",
    "pip",
    "pip3",
    "uv",
    "poetry",
    "gh",
    "brew",
    "apt",
    "apt-get",
    "dotnet",
    "rustup",
    "systemctl",
    "bundle",
    "rails",
    "mix",
    "composer",
    "deno",
    "make",
    "just",
    "gradle",
    "mvn",
];

/// Programs of which any use is like another.
const ALIKE: &[&str] = &[
    "pytest",
    "jest",
    "vitest",
    "mocha",
    "tsc",
    "eslint",
    "prettier",
    "mypy",
    "ruff",
    "black",
    "flake8",
    "pylint",
    "rubocop",
    "rspec",
    "ctest",
    "shellcheck",
    "golangci-lint",
    "rustfmt",
    "gofmt",
    "clang-format",
    "biome",
    "stylelint",
    "phpunit",
    "tox",
    "nox",
];

/// Words behind which another one says what is done.
const SCRIPTS: &[(&str, &str)] = &[
    ("npm", "run"),
    ("yarn", "run"),
    ("pnpm", "run"),
    ("bun", "run"),
    ("docker", "compose"),
    ("cargo", "xtask"),
];

/// The command with a star behind the words that say what it does, if that is as far as one would go.
fn prefix(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
    let is_word = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_alphanumeric())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_:.".contains(c))
    };
    let count = match words.as_slice() {
        [program, ..] if ALIKE.contains(program) => 1,
        [program, group, ..] if SCRIPTS.contains(&(*program, *group)) => 3,
        [program, ..] if WITH_COMMANDS.contains(program) => 2,
        _ => return None,
    };
    let said = words.get(..count)?;
    // What follows is anything, so the words before it must be all that matters: nothing to run in their place.
    let launches = matches!(said, ["git", "config" | "submodule" | "bisect" | "filter-branch", ..])
        || matches!(said, ["npm" | "pnpm" | "yarn" | "bun", "exec" | "x" | "dlx", ..])
        || matches!(said, ["docker" | "podman" | "kubectl", "run" | "exec", ..])
        || matches!(
            said,
            [
                "cargo" | "go" | "uv" | "poetry" | "deno" | "dotnet" | "bundle",
                "run" | "exec" | "eval" | "tool",
                ..
            ]
        );
    (said.iter().all(is_word) && !launches).then(|| format!("{} *", said.join(" ")))
}

#[cfg(test)]
#[path = "suggest_tests.rs"]
mod tests;
