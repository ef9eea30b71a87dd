//! Decisions, for people and for programs.

use std::fmt::Write;

use pelton::permission::{Cause, Decision, Part, Rule};
use serde_json::{Map, Value, json};

/// A decision as an object.
pub(super) fn json(decision: &Decision) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("decision".to_owned(), decision.verdict.name().into());
    about(&mut object, &decision.reason, &decision.cause, decision.rule.as_ref());
    let decided = decision.part.and_then(|at| decision.parts.get(at));
    object.insert("decided_by".to_owned(), decided.map(|part| part.text.as_str()).into());
    object.insert("subcommands".to_owned(), decision.parts.iter().map(part).collect());
    object
}

fn part(part: &Part) -> Value {
    let mut object = Map::new();
    object.insert("command".to_owned(), part.text.as_str().into());
    object.insert("decision".to_owned(), part.verdict.name().into());
    about(&mut object, &part.reason, &part.cause, part.rule.as_ref());
    object.into()
}

fn about(object: &mut Map<String, Value>, reason: &str, cause: &Cause, rule: Option<&Rule>) {
    object.insert("rule".to_owned(), rule.map(ToString::to_string).into());
    object.insert("source".to_owned(), rule.map_or(Value::Null, source));
    object.insert("reason".to_owned(), reason.into());
    object.insert("reason_type".to_owned(), cause.name().into());
}

fn source(rule: &Rule) -> Value {
    let source = rule.source();
    json!({"layer": source.layer.name(), "file": source.file.as_deref(), "line": source.line})
}

/// A decision in lines: the verdict and why, then the commands it is made of.
pub(super) fn text(decision: &Decision) -> String {
    let mut text = format!("{}: {}", decision.verdict.name(), decision.reason);
    if let Some(rule) = &decision.rule {
        let _ = write!(text, "\n  rule    {rule}\n  source  {}", rule.source());
    }
    for part in &decision.parts {
        let command = part.text.replace('\n', " ");
        let _ = write!(text, "\n  {:<5}  {command}", part.verdict.name());
        let _ = write!(text, "\n         {}", part.reason);
    }
    text
}

/// The same in one line.
pub(super) fn line(decision: &Decision) -> String {
    let rule = decision.rule.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
    let parts: Vec<String> = decision
        .parts
        .iter()
        .map(|part| format!("{} {}", part.verdict.name(), part.text.replace('\n', " ")))
        .collect();
    format!("{}\t{rule}\t{}\t[{}]", decision.verdict.name(), decision.reason, parts.join("; "))
}
