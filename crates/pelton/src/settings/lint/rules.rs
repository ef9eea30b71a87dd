//! Rules that never decide anything. Deny comes before ask, and ask before allow: what a rule of an earlier kind covers
//! whole is never left for a later one.

use super::nearest::suggestion;
use super::{Around, Finding, FindingKind, Weight};
use crate::permission::{Behavior, Rule, RuleSet, known_tools};

/// Directories that machines have and projects mostly do not.
const OF_MACHINES: [&str; 9] = ["etc", "home", "mnt", "opt", "proc", "root", "tmp", "Users", "usr"];
/// More rules than this are not compared with each other.
const COMPARED_MAX: usize = 2_000;

pub(super) fn lint(rules: &RuleSet, around: &Around<'_>, findings: &mut Vec<Finding>) {
    let kinds = [Behavior::Deny, Behavior::Ask, Behavior::Allow];
    let all: Vec<(Behavior, &Rule)> =
        kinds.into_iter().flat_map(|kind| rules.of(kind).iter().map(move |rule| (kind, rule))).collect();
    for (at, (kind, rule)) in all.iter().enumerate().take(COMPARED_MAX) {
        // What is never looked at was told when the file was read; not what may have been meant.
        if rule.warning(*kind).is_some() {
            findings.extend(rule.content().and_then(|_| unknown_tool(rule, around)));
            continue;
        }
        findings.extend(only_looks_absolute(rule));
        let found = dead(*kind, rule, around).or_else(|| shadowed(&all[..all.len().min(COMPARED_MAX)], at));
        findings.extend(found);
    }
}

fn dead(kind: Behavior, rule: &Rule, around: &Around<'_>) -> Option<Finding> {
    let tool = rule.tool();
    let finding = |weight, text: String| Some(of(rule, FindingKind::DeadRule, weight, &text));
    if let Some(server) = tool.strip_prefix("mcp__") {
        let server = server.split_once("__").map_or(server, |(server, _)| server);
        let plain = |name: &String| normalised(name) == server;
        if server.contains('*') || around.servers.iter().any(plain) {
            return None;
        }
        // One may be named by a client or on the command line.
        let text = format!("is about the server `{server}`, which is not configured here");
        return finding(Weight::Note, text);
    }
    if kind == Behavior::Allow { unknown_tool(rule, around) } else { None }
}

fn unknown_tool(rule: &Rule, around: &Around<'_>) -> Option<Finding> {
    let tool = rule.tool();
    let is_known = known_tools().any(|known| known == tool) || around.tools.iter().any(|known| known == tool);
    (!is_known && !tool.contains(['*', '_'])).then(|| {
        let hint = suggestion(tool, known_tools());
        let text = format!("names a tool there is not: {tool}{hint}");
        of(rule, FindingKind::DeadRule, Weight::Warning, &text)
    })
}

/// One slash begins at the project, and who writes `/etc/…` mostly means the directory of the machine.
fn only_looks_absolute(rule: &Rule) -> Option<Finding> {
    let path = rule.content().filter(|_| matches!(rule.tool(), "Read" | "Edit"))?;
    let first = path.strip_prefix('/')?.split('/').next()?;
    OF_MACHINES.contains(&first).then(|| {
        let text = format!(
            "begins where the settings count, not at the root of the machine: write /{path} for that"
        );
        of(rule, FindingKind::DeadRule, Weight::Note, &text)
    })
}

fn shadowed(all: &[(Behavior, &Rule)], at: usize) -> Option<Finding> {
    let (kind, rule) = all.get(at)?;
    for (other_at, (other_kind, other)) in all.iter().enumerate() {
        if other_at == at || other.warning(*other_kind).is_some() {
            continue;
        }
        let whose = format!("`{other}` in {} ({})", other_kind.name(), other.source());
        let is_earlier = rank(*other_kind) < rank(*kind);
        if is_earlier && other.covers(rule) {
            let text = format!("never decides anything: {whose} comes first and speaks of all of it");
            return Some(of(rule, FindingKind::ShadowedRule, Weight::Warning, &text));
        }
        if other_kind != kind || !other.covers(rule) {
            continue;
        }
        // Of two that say the same the second is the needless one.
        if rule.covers(other) && other_at > at {
            continue;
        }
        // Some commands are allowed only by a rule that names them.
        if *kind == Behavior::Allow && rule.is_exact_command() && !other.is_bare() && other != rule {
            continue;
        }
        let same_file = other.source().file == rule.source().file;
        let weight = if same_file { Weight::Warning } else { Weight::Note };
        return Some(of(
            rule,
            FindingKind::ShadowedRule,
            weight,
            &format!("is needless: {whose} says it already"),
        ));
    }
    None
}

fn rank(kind: Behavior) -> u8 {
    match kind {
        Behavior::Deny => 0,
        Behavior::Ask => 1,
        Behavior::Allow => 2,
    }
}

fn of(rule: &Rule, kind: FindingKind, weight: Weight, text: &str) -> Finding {
    let source = rule.source();
    let file = source.file.as_deref().unwrap_or("command line");
    Finding::new(kind, weight, file, source.line, format!("the rule `{rule}` {text}"))
}

/// A server's name as it is in the names of its tools.
pub(super) fn normalised(name: &str) -> String {
    name.replace(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'), "_")
}
