//! Agents whose tools come to nothing.

use super::nearest::suggestion;
use super::rules::normalised;
use super::{Around, Finding, FindingKind, Weight};
use crate::permission::known_tools;
use crate::tools::AgentDefinition;

pub(super) fn lint(around: &Around<'_>, findings: &mut Vec<Finding>) {
    for (file, agent) in &around.agents {
        let name = file.display().to_string();
        let text = (around.look)(file).and_then(|looked| looked.text).unwrap_or_default();
        match agent {
            Some(agent) => one(agent, &name, &text, around, findings),
            None => findings.push(Finding::new(
                FindingKind::NoAgent,
                Weight::Warning,
                name,
                Some(1),
                "describes no agent: its head needs a `name` (no ':', no '-' in front) and a `description`",
            )),
        }
    }
}

fn one(agent: &AgentDefinition, file: &str, text: &str, around: &Around<'_>, findings: &mut Vec<Finding>) {
    let mut tell = |weight, key: &str, told: String| {
        let line = line_of(text, key);
        findings.push(Finding::new(FindingKind::AgentTools, weight, file, line, told));
    };
    let server_of = |entry: &str| {
        let rest = bare(entry).strip_prefix("mcp__")?;
        Some(rest.split_once("__").map_or(rest, |(server, _)| server).trim_end_matches('*').to_owned())
    };
    let has_server = |server: &str| around.servers.iter().any(|known| normalised(known).starts_with(server));
    let is_there = |name: &str| {
        known_tools().any(|known| known == name) || around.tools.iter().any(|known| known == name)
    };
    let listed = agent.tools.iter().flatten();
    for (key, entry) in listed
        .map(|entry| ("tools", entry))
        .chain(agent.disallowed_tools.iter().map(|entry| ("disallowedTools", entry)))
    {
        let name = bare(entry);
        let told = match server_of(entry) {
            Some(server) if !has_server(&server) => {
                format!(
                    "the agent `{}` names `{entry}`: the server `{server}` is not configured here",
                    agent.name
                )
            }
            Some(_) => continue,
            None if name.ends_with('*') || is_there(name) => continue,
            None => {
                let hint = suggestion(name, known_tools());
                format!("the agent `{}` names a tool there is not: `{entry}`{hint}", agent.name)
            }
        };
        tell(Weight::Warning, key, told);
    }
    let own =
        agent.tools.iter().flatten().filter_map(|entry| server_of(entry)).any(|server| has_server(&server));
    let brought = !agent.mcp_servers.is_empty();
    let resolved = around.tools.iter().filter(|tool| agent.has(tool)).count();
    if resolved == 0 && !own && !brought && !around.tools.is_empty() {
        let told = format!(
            "the agent `{}` has no tool at all: nothing that its `tools` name, less its `disallowedTools`, is there",
            agent.name
        );
        tell(Weight::Error, "tools", told);
    }
}

/// The name of a tool in a list, without what narrows it.
fn bare(entry: &str) -> &str {
    entry.split_once('(').map_or(entry, |(name, _)| name).trim()
}

/// The line of a key in the head of a file.
fn line_of(text: &str, key: &str) -> Option<u32> {
    let is_it = |line: &str| line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(':'));
    let at = text.lines().position(is_it)?;
    u32::try_from(at + 1).ok()
}
