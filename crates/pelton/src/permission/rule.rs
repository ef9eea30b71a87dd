//! One rule as users write it: `Tool` or `Tool(specifier)`. What it means, and whether it means anything at all.

mod command; // over commands
mod host; // over hosts
mod path; // over files
mod names; // of tools
mod cover; // of one over another

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use serde_json::Value;

pub(crate) use self::command::glob;
pub(super) use self::command::{CommandPattern, HOLE, blanks_folded};
use self::host::HostPattern;
pub(super) use self::host::host_of;
pub(crate) use self::names::known as known_tools;
use self::names::{AGENT_NAMES, Fields};
use self::path::PathPattern;
use super::place::{Here, Place};
use super::source::RuleSource;
use super::update::Behavior;

/// One rule as users write it: `Tool` or `Tool(specifier)`.
///
/// ```
/// use pelton::permission::Rule;
///
/// let rule: Rule = "Bash(cargo test:*)".parse()?;
/// assert_eq!((rule.tool(), rule.content()), ("Bash", Some("cargo test:*")));
/// assert!(!rule.is_bare() && "Bash".parse::<Rule>()?.is_bare());
/// # Ok::<(), pelton::permission::RuleError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Rule {
    said: Arc<Said>,
    source: Arc<RuleSource>,
}

#[derive(Debug)]
struct Said {
    tool: String,
    specifier: Specifier,
    text: String,
}

#[derive(Debug, Clone)]
enum Specifier {
    /// Every call of the tool.
    Any,
    /// Shell commands whose text matches; calls with such a field, if it reads like one.
    Command(CommandPattern, Option<Field>),
    /// Files whose path matches.
    Path(Box<PathPattern>),
    /// Hosts whose name matches.
    Host(HostPattern),
    /// Agents and skills of this name.
    Name(CommandPattern),
    /// Calls with such a field. Restricts only.
    Field(Field),
    /// It is never looked at; why not, and what to write instead.
    Dead(String),
}

/// `name:value`, of the call's input.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    name: String,
    value: String,
}

/// The rule's text cannot be read.
///
/// ```
/// use pelton::permission::Rule;
///
/// let error = "Bash(ls".parse::<Rule>().unwrap_err();
/// assert_eq!(error.to_string(), "permission rule 'Bash(ls': the closing ')' is missing");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("permission rule '{rule}': {problem}")]
pub struct RuleError {
    /// The rule as written.
    pub rule: String,
    /// What is wrong and what would be right.
    pub problem: String,
}

/// What a match is for. Allowing needs the path as given and its target to match; denying and asking need one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// To let something run.
    Vouch,
    /// To keep it from running unasked.
    Catch,
}

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    Read,
    Edit,
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let fail = |problem: String| RuleError { rule: text.to_owned(), problem };
        let trimmed = text.trim();
        let (tool, inside) = match trimmed.split_once('(') {
            None => (trimmed, None),
            Some((tool, rest)) => {
                let inside =
                    rest.strip_suffix(')').ok_or_else(|| fail("the closing ')' is missing".into()))?;
                (tool.trim_end(), Some(inside))
            }
        };
        if tool.is_empty() || !tool.chars().all(|c| c.is_ascii_alphanumeric() || "_-*.".contains(c)) {
            return Err(fail(
                "write a tool name, such as Bash, or a tool with a specifier, such as Bash(ls *)".into(),
            ));
        }
        let specifier = match inside {
            None => Specifier::Any,
            Some(inside) if inside.trim_matches(['*', ' ', '\t']).is_empty() => Specifier::Any,
            Some(inside) => specifier(tool, inside).map_err(fail)?,
        };
        let said = Said { tool: tool.to_owned(), specifier, text: trimmed.to_owned() };
        Ok(Self { said: Arc::new(said), source: Arc::default() })
    }
}

fn specifier(tool: &str, inside: &str) -> Result<Specifier, String> {
    let field = Field::read(inside);
    let fields = Fields::of(tool);
    if let Some(field) = &field
        && fields.primary == Some(field.name.as_str())
    {
        let instead = match tool {
            "Bash" | "Monitor" | "PowerShell" => "the command itself stands between the parentheses",
            "Read" | "Edit" => "the path itself stands between the parentheses",
            "WebFetch" => "write WebFetch(domain:example.com)",
            "Agent" | "Task" => "the kind of agent itself stands between the parentheses",
            _ => "the field that a tool is about cannot be named",
        };
        return Ok(Specifier::Dead(instead.to_owned()));
    }
    Ok(match tool {
        "Bash" | "Monitor" | "PowerShell" => {
            let field = field.filter(|field| fields.others.contains(&field.name.as_str()));
            Specifier::Command(CommandPattern::new(inside), field)
        }
        "Read" | "Edit" => Specifier::Path(Box::new(PathPattern::new(inside)?)),
        "WebFetch" => match inside.trim().strip_prefix("domain:") {
            Some(host) => match HostPattern::new(host) {
                Some(host) if host.is_any() => Specifier::Any,
                Some(host) => Specifier::Host(host),
                None => return Err(format!("'{host}' is no name of a host: write domain:example.com")),
            },
            None => dead_or_field(field, "write WebFetch(domain:example.com)"),
        },
        "WebSearch" => Specifier::Dead("WebSearch takes nothing between parentheses".to_owned()),
        "Agent" | "Task" => match field.filter(|field| fields.others.contains(&field.name.as_str())) {
            Some(field) => Specifier::Field(field),
            None => Specifier::Name(CommandPattern::new(inside)),
        },
        "Skill" | "SlashCommand" | "Cd" => Specifier::Name(CommandPattern::new(inside)),
        "Write" | "MultiEdit" | "NotebookEdit" => dead_or_field(
            field,
            &format!("paths of all tools that write are in Edit rules: write Edit({inside})"),
        ),
        "Glob" | "Grep" | "LS" | "LSP" | "NotebookRead" => dead_or_field(
            field,
            &format!("paths of all tools that read are in Read rules: write Read({inside})"),
        ),
        _ => dead_or_field(
            field,
            &format!("{tool} takes nothing between parentheses but a field, as in {tool}(name:value)"),
        ),
    })
}

fn dead_or_field(field: Option<Field>, instead: &str) -> Specifier {
    field.map_or_else(|| Specifier::Dead(instead.to_owned()), Specifier::Field)
}

impl Field {
    /// `name:value`, if it reads like that.
    fn read(inside: &str) -> Option<Self> {
        let (name, value) = inside.trim().split_once(':')?;
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        is_name.then(|| Self { name: name.to_owned(), value: value.trim().to_owned() })
    }

    fn matches(&self, input: &Value) -> bool {
        let text = match input.get(&self.name) {
            Some(Value::String(text)) => text.clone(),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
            _ => return false,
        };
        glob(&self.value, &text)
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        // The rest is made of it.
        self.said.text == other.said.text
    }
}

impl Eq for Rule {}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said.text)
    }
}

impl Rule {
    /// The same rule, written there.
    #[must_use]
    pub fn with_source(mut self, source: RuleSource) -> Self {
        self.source = Arc::new(source);
        self
    }

    /// Where it was written.
    pub fn source(&self) -> &RuleSource {
        &self.source
    }

    /// Whether it names the whole tool.
    pub fn is_bare(&self) -> bool {
        matches!(self.said.specifier, Specifier::Any)
    }

    /// The tool it speaks of.
    pub fn tool(&self) -> &str {
        &self.said.tool
    }

    /// Which calls of the tool it speaks of, as written; all if absent.
    pub fn content(&self) -> Option<&str> {
        self.said.text.split_once('(')?.1.strip_suffix(')')
    }

    /// What is wrong with it, if it does not do what it seems to say. It does no harm.
    pub fn warning(&self, behavior: Behavior) -> Option<String> {
        let never = |why: &str| Some(format!("permission rule '{self}' is never looked at: {why}"));
        let restricts = behavior != Behavior::Allow;
        match &self.said.specifier {
            Specifier::Dead(instead) => return never(instead),
            Specifier::Field(_) if !restricts => {
                return never("a field of the input can be denied or asked about, but not allowed");
            }
            Specifier::Command(pattern, _) if !restricts && pattern.is_compound() => {
                return never("each command of a line is judged alone: write one rule for each");
            }
            _ => {}
        }
        if !restricts && self.tool().contains('*') && !self.names_one_server() {
            return never("an allow rule names its tool, or the tools of one server as in mcp__server__*");
        }
        if restricts && !names::is_known(self.tool()) {
            return Some(format!("permission rule '{self}' names a tool there is not: {}", self.tool()));
        }
        None
    }

    /// Whether it speaks of this tool by name.
    pub(super) fn names(&self, tool: &str, need: Need) -> bool {
        let said = self.tool();
        let is_agent = |name: &str| AGENT_NAMES.contains(&name);
        if said == tool || (is_agent(said) && is_agent(tool)) {
            return true;
        }
        if said.contains('*') {
            return (need == Need::Catch || self.names_one_server()) && glob(said, tool);
        }
        // A server's name alone means all of its tools.
        said.starts_with("mcp__")
            && !said["mcp__".len()..].contains("__")
            && tool.strip_prefix(said).is_some_and(|rest| rest.starts_with("__"))
    }

    /// Whether every letter of the server's name is written out.
    fn names_one_server(&self) -> bool {
        let server = self.tool().strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
        server.is_some_and(|(server, _)| !server.is_empty() && !server.contains('*'))
    }

    /// Whether it speaks of a call as a whole: of its tool, or of a field of its input.
    pub(super) fn covers_call(&self, tool: &str, input: &Value, need: Need) -> bool {
        match &self.said.specifier {
            Specifier::Any => self.names(tool, need),
            Specifier::Field(field) | Specifier::Command(_, Some(field)) => {
                need == Need::Catch && self.names(tool, need) && field.matches(input)
            }
            _ => false,
        }
    }

    /// Whether it speaks of a tool that does this to a file. `Read` speaks for every tool that reads, `Edit` for every
    /// tool that writes.
    pub(super) fn covers_file(&self, deed: Deed, place: &Place, here: &Here, need: Need) -> bool {
        let governs = match (self.tool(), deed, need) {
            ("Read", Deed::Read, _) | ("Edit", Deed::Edit, _) => true,
            // What may be changed may be seen; what must not be seen must not be changed.
            ("Edit", Deed::Read, Need::Vouch) | ("Read", Deed::Edit, Need::Catch) => true,
            _ => false,
        };
        governs
            && match &self.said.specifier {
                // A whole tool that is denied says nothing about commands.
                Specifier::Any => true,
                Specifier::Path(pattern) => pattern.matches(place, here, self.anchor(), need),
                _ => false,
            }
    }

    /// The pattern over commands of this tool.
    pub(super) fn command(&self, tool: &str) -> Option<&CommandPattern> {
        match &self.said.specifier {
            Specifier::Command(pattern, _) if self.tool() == tool => Some(pattern),
            _ => None,
        }
    }

    /// Whether it speaks of a host.
    pub(super) fn covers_host(&self, tool: &str, host: &str) -> bool {
        matches!(&self.said.specifier, Specifier::Host(pattern) if self.tool() == tool && pattern.matches(host))
    }

    /// Whether it speaks of this host and no other.
    pub(super) fn is_for_host(&self, tool: &str, host: &str) -> bool {
        matches!(&self.said.specifier, Specifier::Host(pattern) if pattern.is_one())
            && self.covers_host(tool, host)
    }

    /// Whether it speaks of an agent or a skill of that name.
    pub(super) fn covers_name(&self, tool: &str, name: &str, need: Need) -> bool {
        matches!(&self.said.specifier, Specifier::Name(pattern) if self.names(tool, need) && pattern.matches(name))
    }

    /// Whether it speaks of some files.
    pub(super) fn is_about_files(&self) -> bool {
        matches!(self.said.specifier, Specifier::Path(_))
    }

    /// Whether it speaks of reading some files.
    pub(super) fn guards_reading(&self) -> bool {
        self.tool() == "Read" && self.is_about_files()
    }

    fn anchor(&self) -> Option<&Path> {
        self.source.anchor.as_deref()
    }
}

#[cfg(test)]
mod tests;
