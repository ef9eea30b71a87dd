//! What in settings, and in the files around them, does not do what it seems to say: keys nobody knows, rules that never
//! decide anything, hooks that are never called or hold nothing back, agents without tools. Pure: whoever asks reads the
//! files and looks at the disk.

mod keys; // keys nobody knows
mod rules; // rules that never decide
mod hooks; // hooks that are never called, and those that let pass what they should hold
mod agents; // agents without tools
mod nearest; // what was probably meant

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::lines::Lines;
use super::read::layer;
use super::{Origin, Settings, read, relaxed};
use crate::hooks::{Severity, Source};
use crate::tools::AgentDefinition;

/// A file of settings as it is.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Around, Origin, Written, lint};
///
/// let origin = Origin { source: &Source::User, file: "user.json", anchor: None };
/// let findings = lint(&[Written { origin, text: "{" }], &Around::nothing("/here", &|_| None));
/// assert_eq!(findings[0].kind.name(), "broken-file");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Written<'a> {
    /// Whose it is, and what it is called.
    pub origin: Origin<'a>,
    /// What is in it.
    pub text: &'a str,
}

/// What a session would have, started where the files count.
///
/// ```
/// use pelton::settings::Around;
///
/// let mut around = Around::nothing("/here", &|_| None);
/// around.tools.push("Bash".to_owned());
/// assert!(around.servers.is_empty());
/// ```
#[non_exhaustive]
pub struct Around<'a> {
    /// The names of built-in tools.
    pub tools: Vec<String>,
    /// The names of servers of tools.
    pub servers: Vec<String>,
    /// The files that describe agents, and what they describe, if they do.
    pub agents: Vec<(PathBuf, Option<AgentDefinition>)>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// Where programs are looked for.
    pub path: Vec<PathBuf>,
    /// What a file is like; `None` if there is none.
    pub look: &'a dyn Fn(&Path) -> Option<Looked>,
}

/// What a file is like.
///
/// ```
/// use std::path::Path;
///
/// use pelton::settings::{Around, Looked};
///
/// let guard = |path: &Path| path.ends_with("guard.sh").then(|| Looked { runs: true, text: None });
/// let around = Around::nothing("/here", &guard);
/// assert!((around.look)(Path::new("/here/guard.sh")).is_some_and(|looked| looked.runs));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Looked {
    /// It can be run as a program.
    pub runs: bool,
    /// Its text, if it has one that is not too long.
    pub text: Option<String>,
}

impl<'a> Around<'a> {
    /// A directory with nothing in it.
    pub fn nothing(cwd: impl Into<PathBuf>, look: &'a dyn Fn(&Path) -> Option<Looked>) -> Self {
        let (tools, servers, agents, path) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { tools, servers, agents, cwd: cwd.into(), home: None, path, look }
    }
}

/// Something that does not do what it seems to say.
///
/// ```
/// use pelton::settings::{Finding, FindingKind, Weight};
///
/// let finding = Finding::new(FindingKind::NoAgent, Weight::Warning, "agents/x.md", Some(1), "has no name");
/// assert_eq!((finding.file.as_str(), finding.line), ("agents/x.md", Some(1)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What is the matter.
    pub kind: FindingKind,
    /// How much.
    pub weight: Weight,
    /// The file.
    pub file: String,
    /// The line in it, from 1, where it is known.
    pub line: Option<u32>,
    /// What, and what would be right.
    pub text: String,
}

/// What is the matter.
///
/// ```
/// assert_eq!(pelton::settings::FindingKind::DeadRule.name(), "dead-rule");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FindingKind {
    /// The file cannot be read at all.
    Broken,
    /// A value is not what it must be.
    WrongValue,
    /// Nobody knows this key.
    UnknownKey,
    /// Others know this key; here it does nothing.
    KeyWithoutEffect,
    /// A rule that can match nothing.
    DeadRule,
    /// A rule that another makes needless, or keeps from ever deciding.
    ShadowedRule,
    /// A hook whose matcher or event never comes.
    DeadHook,
    /// A hook that lets pass what it should hold.
    FailsOpen,
    /// An agent without any tool, or with a name of a tool there is not.
    AgentTools,
    /// A file that should describe an agent and does not.
    NoAgent,
    /// A plugin or a server that was wanted and cannot be had.
    Unusable,
}

/// How much something matters.
///
/// ```
/// use pelton::settings::Weight;
///
/// assert!(Weight::Error > Weight::Warning && Weight::Note.name() == "note");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Worth knowing; nothing is wrong.
    Note,
    /// It does not do what it says.
    Warning,
    /// It cannot be right.
    Error,
}

impl FindingKind {
    /// What programs call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Broken => "broken-file",
            Self::WrongValue => "wrong-value",
            Self::UnknownKey => "unknown-key",
            Self::KeyWithoutEffect => "key-without-effect",
            Self::DeadRule => "dead-rule",
            Self::ShadowedRule => "shadowed-rule",
            Self::DeadHook => "dead-hook",
            Self::FailsOpen => "hook-fails-open",
            Self::AgentTools => "agent-tools",
            Self::NoAgent => "no-agent",
            Self::Unusable => "unusable",
        }
    }
}

impl Weight {
    /// What programs call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl Finding {
    /// Something about a file.
    pub fn new(
        kind: FindingKind,
        weight: Weight,
        file: impl Into<String>,
        line: Option<u32>,
        text: impl Into<String>,
    ) -> Self {
        Self { kind, weight, file: file.into(), line, text: text.into() }
    }
}

/// Looks through settings files, the weakest first, and what is around them.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Around, Origin, Written, lint};
///
/// let text = "{\n  \"modle\": \"opus\",\n  \"permissions\": {\"allow\": [\"Bash(git log *)\"], \"deny\": [\"Bash(git *)\"]}\n}";
/// let origin = Origin { source: &Source::User, file: "settings.json", anchor: None };
/// let findings = lint(&[Written { origin, text }], &Around::nothing("/w", &|_| None));
/// let told: Vec<String> = findings.iter().map(|found| format!("{}:{}", found.kind.name(), found.line.unwrap())).collect();
/// assert_eq!(told, ["unknown-key:2", "shadowed-rule:3"]);
/// assert!(findings[0].text.contains("`model`"));
/// ```
pub fn lint(files: &[Written<'_>], around: &Around<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let readable = files.iter().filter_map(|file| read(file.text, file.origin).ok());
    let all = readable.fold(Settings::default(), |all, (settings, _)| settings.over(all));
    for file in files {
        one(file, &all, around, &mut findings);
    }
    rules::lint(&all.rules, around, &mut findings);
    agents::lint(around, &mut findings);
    findings
}

/// One file, among all that is said.
fn one(file: &Written<'_>, all: &Settings, around: &Around<'_>, findings: &mut Vec<Finding>) {
    let name = file.origin.file;
    let problems = match read(file.text, file.origin) {
        Ok((_, problems)) => problems,
        Err(broken) => {
            let line = line_of_error(&broken.text);
            let text = format!("{}: nothing of this file counts", broken.text);
            return findings.push(Finding::new(FindingKind::Broken, Weight::Error, name, line, text));
        }
    };
    let value: Value = serde_json::from_str(&relaxed::strict(file.text)).unwrap_or_default();
    let page = Page { name, lines: Lines::of(file.text), value: &value, source: file.origin.source };
    for (place, line) in page.lines.repeated() {
        let text = format!("`{place}` is written twice: what stands there first does not count");
        findings.push(Finding::new(FindingKind::WrongValue, Weight::Error, name, Some(*line), text));
    }
    keys::lint(&page, findings);
    for problem in problems {
        let weight = match problem.severity {
            Severity::Error => Weight::Error,
            Severity::Warning => Weight::Warning,
        };
        let kind = match weight {
            Weight::Error => FindingKind::WrongValue,
            _ if problem.text.starts_with("`hooks.") => FindingKind::DeadHook,
            _ if problem.text.starts_with("`permissions.") => FindingKind::DeadRule,
            _ => FindingKind::WrongValue,
        };
        findings.push(Finding::new(kind, weight, name, problem.line, problem.text));
    }
    hooks::lint(&page, &all.http_hooks, around, findings);
}

/// A file that could be read.
struct Page<'a> {
    name: &'a str,
    lines: Lines,
    value: &'a Value,
    source: &'a Source,
}

impl Page<'_> {
    fn finding(&self, kind: FindingKind, weight: Weight, place: &str, text: impl AsRef<str>) -> Finding {
        let text = format!("`{place}` {}", text.as_ref());
        Finding::new(kind, weight, self.name, self.lines.of_place(place), text)
    }

    /// What messages call whoever wrote it.
    fn layer(&self) -> &'static str {
        layer(self.source).name()
    }
}

/// Why nothing comes of settings that say this and nothing else, if that is because of their key.
pub(super) fn unheeded(alone: &Value, source: &Source) -> Option<String> {
    let mut findings = Vec::new();
    keys::lint(&Page { name: "", lines: Lines::of(""), value: alone, source }, &mut findings);
    findings.pop().map(|finding| finding.text)
}

/// The line that an error of the JSON reader names.
fn line_of_error(text: &str) -> Option<u32> {
    let (_, behind) = text.rsplit_once(" at line ")?;
    behind.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests;
