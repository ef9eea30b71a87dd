//! What became of a call, and why.

use std::path::PathBuf;

use super::rule::Rule;

/// What became of a call.
///
/// ```
/// use pelton::permission::Verdict;
///
/// // The strictest of several counts.
/// let parts = [Verdict::Allow, Verdict::Deny, Verdict::Ask];
/// assert_eq!(parts.into_iter().max().map(Verdict::name), Some("deny"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It may run.
    Allow,
    /// Somebody has to be asked.
    Ask,
    /// It must not run.
    Deny,
}

impl Verdict {
    /// Its name, as users and programs write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// A verdict and all that is to be said for it.
///
/// ```
/// # use pelton::permission::{Access, HookSays, Judged, Mode, Permissions, RuleSet};
/// # let dir = tempfile::tempdir()?;
/// # let cwd = dir.path();
/// # let mut rules = RuleSet::default();
/// # let permissions = Permissions::new(rules, Mode::Default, cwd.to_owned(), Vec::new(), None);
/// # let command = "make install";
/// # let (input, access) = (serde_json::json!({"command": command}), Access::Shell(command.to_owned()));
/// # let judged = Judged { tool: "Bash", input: &input, access: &access, cwd, hook: HookSays::Nothing };
/// use pelton::permission::Verdict;
///
/// let decision = permissions.judge(&judged); // `make install`, and no rule says anything about it
/// assert_eq!(decision.verdict, Verdict::Ask);
/// assert!(!decision.is_allowed() && !decision.reason.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Decision {
    /// What becomes of the call.
    pub verdict: Verdict,
    /// Why, in a sentence. What is denied tells it to the model.
    pub reason: String,
    /// Why, for programs.
    pub cause: Cause,
    /// The rule that decided, if one did; it knows where it was written.
    pub rule: Option<Rule>,
    /// Which of the parts decided.
    pub part: Option<usize>,
    /// The commands of a line, each with a verdict of its own.
    pub parts: Vec<Part>,
}

/// One command of a line, judged alone.
///
/// ```
/// # use pelton::permission::{Access, HookSays, Judged, Mode, Permissions, RuleSet};
/// # let dir = tempfile::tempdir()?;
/// # let cwd = dir.path();
/// # let mut rules = RuleSet::default();
/// # let permissions = Permissions::new(rules, Mode::Default, cwd.to_owned(), Vec::new(), None);
/// # let command = "ls && make install";
/// # let (input, access) = (serde_json::json!({"command": command}), Access::Shell(command.to_owned()));
/// # let judged = Judged { tool: "Bash", input: &input, access: &access, cwd, hook: HookSays::Nothing };
/// use pelton::permission::Verdict;
///
/// let decision = permissions.judge(&judged); // `ls && make install`
/// let verdicts: Vec<(&str, Verdict)> = decision.parts.iter().map(|part| (part.text.as_str(), part.verdict)).collect();
/// assert_eq!(verdicts, [("ls", Verdict::Allow), ("make install", Verdict::Ask)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Part {
    /// As written.
    pub text: String,
    /// What would become of it.
    pub verdict: Verdict,
    /// Why, in a sentence.
    pub reason: String,
    /// Why, for programs.
    pub cause: Cause,
    /// The rule that decided, if one did.
    pub rule: Option<Rule>,
    /// What would have to be working directories for it to run where edits are accepted; absent if it would not.
    pub(super) as_edit: Option<Vec<PathBuf>>,
}

/// What decides about a call.
///
/// ```
/// # use pelton::permission::{Access, HookSays, Judged, Mode, Permissions, RuleSet};
/// # let dir = tempfile::tempdir()?;
/// # let cwd = dir.path();
/// # let mut rules = RuleSet::default();
/// # rules.deny.push("Bash(curl:*)".parse()?);
/// # let permissions = Permissions::new(rules, Mode::Default, cwd.to_owned(), Vec::new(), None);
/// # let command = "curl example.com";
/// # let (input, access) = (serde_json::json!({"command": command}), Access::Shell(command.to_owned()));
/// # let judged = Judged { tool: "Bash", input: &input, access: &access, cwd, hook: HookSays::Nothing };
/// use pelton::permission::Cause;
///
/// let decision = permissions.judge(&judged); // `curl example.com`, and a rule denies `Bash(curl:*)`
/// assert_eq!(decision.cause, Cause::Rule("Bash(curl:*)".to_owned()));
/// assert_eq!(decision.cause.name(), "rule");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// A rule; its text.
    Rule(String),
    /// The path steers other programs.
    Protected(PathBuf),
    /// Nobody recovers from this removal.
    Critical(String),
    /// A file with other names, a device, a pipe, or something the kernel makes up.
    Special(PathBuf),
    /// The output of a command changes this file.
    Redirected(PathBuf),
    /// The path is outside the working directories.
    Outside(PathBuf),
    /// The path leads nowhere.
    Unfollowable(PathBuf),
    /// What it does cannot be known before it runs.
    Unclear,
    /// Looking is all it does.
    ReadOnly,
    /// The mode: it covers the call, or nothing else does.
    Unapproved,
    /// A hook wants it.
    Hook,
    /// It is a question to a person.
    Person,
    /// The very same call has brought the very same again and again.
    Repetition,
}

impl Cause {
    /// The name in the protocol (`decision_reason_type`).
    pub fn name(&self) -> &'static str {
        match self {
            Self::Rule(_) => "rule",
            Self::Protected(_) | Self::Critical(_) | Self::Special(_) => "safetyCheck",
            Self::Outside(_) => "workingDir",
            Self::Unapproved | Self::Redirected(_) => "mode",
            Self::Hook => "hook",
            Self::Unfollowable(_) | Self::Unclear | Self::ReadOnly | Self::Person | Self::Repetition => {
                "other"
            }
        }
    }
}

impl Decision {
    pub(super) fn new(verdict: Verdict, reason: impl Into<String>, cause: Cause) -> Self {
        Self { verdict, reason: reason.into(), cause, rule: None, part: None, parts: Vec::new() }
    }

    pub(super) fn by(verdict: Verdict, rule: &Rule) -> Self {
        let reason = match verdict {
            Verdict::Allow => format!("Allowed by the permission rule '{rule}'."),
            Verdict::Ask => format!("The permission rule '{rule}' asks for approval."),
            Verdict::Deny => format!("Denied by the permission rule '{rule}'."),
        };
        Self { rule: Some(rule.clone()), ..Self::new(verdict, reason, Cause::Rule(rule.to_string())) }
    }

    /// A question that something besides the rules has.
    pub(crate) fn question(reason: impl Into<String>, cause: Cause) -> Self {
        Self::new(Verdict::Ask, reason, cause)
    }

    pub(super) fn as_part(&self, text: &str) -> Part {
        Part {
            text: text.to_owned(),
            verdict: self.verdict,
            reason: self.reason.clone(),
            cause: self.cause.clone(),
            rule: self.rule.clone(),
            as_edit: None,
        }
    }

    /// Whether it may run.
    pub fn is_allowed(&self) -> bool {
        self.verdict == Verdict::Allow
    }
}
