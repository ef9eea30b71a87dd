//! Where a rule was written: who answers for it, and where its paths begin.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Where a rule was written.
///
/// ```
/// use pelton::permission::{Layer, Rule, RuleSource};
///
/// let rule = "Bash(ls)".parse::<Rule>()?.with_source(RuleSource::layer(Layer::Project));
/// assert_eq!(rule.source().to_string(), "project settings"); // with file and line, where they are known
/// # Ok::<(), pelton::permission::RuleError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct RuleSource {
    /// Whose word it is.
    pub layer: Layer,
    /// The file, as messages call it.
    pub file: Option<Arc<str>>,
    /// The line in it, from 1, where it is known.
    pub line: Option<u32>,
    /// Where paths that begin with `/` are anchored; at the session's start, unless said.
    pub anchor: Option<Arc<Path>>,
}

/// Whose word a rule is.
///
/// ```
/// use pelton::permission::{Layer, Rule};
///
/// let rule: Rule = "Bash(ls)".parse()?;
/// assert_eq!(rule.source().layer, Layer::Session); // unless somebody says where it was written
/// assert_eq!(Layer::Managed.name(), "managed");
/// # Ok::<(), pelton::permission::RuleError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Layer {
    /// The administrator of the machine.
    Managed,
    /// The user, for this run.
    CommandLine,
    /// The user, for this project.
    Local,
    /// The project.
    Project,
    /// The user, always.
    User,
    /// Somebody during the session, or the program around it.
    #[default]
    Session,
}

impl Layer {
    /// What messages and programs call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::CommandLine => "command line",
            Self::Local => "local settings",
            Self::Project => "project settings",
            Self::User => "user settings",
            Self::Session => "session",
        }
    }
}

impl RuleSource {
    /// A layer, and nothing more is known.
    pub fn layer(layer: Layer) -> Self {
        Self { layer, ..Self::default() }
    }
}

impl fmt::Display for RuleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.layer.name())?;
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, ", {file}:{line}"),
            (Some(file), None) => write!(f, ", {file}"),
            (None, _) => Ok(()),
        }
    }
}
