//! E3: slash commands. A prompt that begins with `/name` calls one: it becomes another prompt, or is answered on the
//! spot without a model.

use std::path::Path;

use futures::future::BoxFuture;
use pelton_model::Effort;
use tokio_util::sync::CancellationToken;

use crate::permission::Rule;

/// A command the host supplies.
///
/// ```
/// use futures::future::BoxFuture;
/// use pelton::command::{Command, CommandCx, CommandError, CommandSpec, Expansion};
///
/// /// `/review [file]`
/// struct Review;
///
/// impl Command for Review {
///     fn spec(&self) -> CommandSpec<'_> {
///         CommandSpec { name: "review", description: "Looks at a file", argument_hint: "[file]" }
///     }
///
///     fn expand<'a>(
///         &'a self,
///         arguments: &'a str,
///         _: &'a CommandCx<'_>,
///     ) -> BoxFuture<'a, Result<Expansion, CommandError>> {
///         Box::pin(async move {
///             match arguments.trim() {
///                 "" => Err(CommandError("name a file".to_owned())),
///                 file => Ok(Expansion::prompt(format!("Review @{file} for mistakes."))),
///             }
///         })
///     }
/// }
/// # assert_eq!(Review.spec().name, "review");
/// ```
pub trait Command: Send + Sync {
    /// What users see of it.
    fn spec(&self) -> CommandSpec<'_>;

    /// What becomes of the prompt. The future is dropped when the user interrupts.
    fn expand<'a>(
        &'a self,
        arguments: &'a str,
        cx: &'a CommandCx<'_>,
    ) -> BoxFuture<'a, Result<Expansion, CommandError>>;
}

/// What users see of a command.
///
/// ```
/// use pelton::command::CommandSpec;
///
/// let spec = CommandSpec { name: "review", description: "Looks at a file", argument_hint: "[file]" };
/// let line = format!("/{} {}: {}", spec.name, spec.argument_hint, spec.description);
/// assert_eq!(line, "/review [file]: Looks at a file");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct CommandSpec<'a> {
    /// Its name, without the slash.
    pub name: &'a str,
    /// What it does, in a line.
    pub description: &'a str,
    /// What comes behind the name, such as `[file]`.
    pub argument_hint: &'a str,
}

/// What a command may know.
///
/// ```
/// use pelton::command::{CommandCx, CommandError, Expansion};
///
/// /// `/todo`: what the file of that name in the session's directory says.
/// fn todo(cx: &CommandCx<'_>) -> Result<Expansion, CommandError> {
///     match std::fs::read_to_string(cx.cwd.join("TODO.md")) {
///         Ok(words) => Ok(Expansion::prompt(words)),
///         Err(error) => Err(CommandError(format!("nothing to do: {error}"))),
///     }
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct CommandCx<'a> {
    /// Where the session works.
    pub cwd: &'a Path,
    /// Set when the user interrupts.
    pub cancel: &'a CancellationToken,
}

/// What becomes of a prompt that calls a command.
///
/// ```
/// use pelton::command::Expansion;
///
/// let mut expansion = Expansion::prompt("Run the tests and repair what fails.");
/// expansion.allowed_tools.push("Bash(cargo test:*)".parse()?);
/// expansion.model = Some("haiku".to_owned());
///
/// let answered = Expansion::output("42 tests"); // no model is asked
/// assert!(answered.prompt.is_none());
/// # Ok::<(), pelton::permission::RuleError>(())
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Expansion {
    /// What the model is told; without it, no model is asked.
    pub prompt: Option<String>,
    /// What the user is told.
    pub output: Option<String>,
    /// What may run in this submission besides what may run anyway. What rules deny stays denied.
    pub allowed_tools: Vec<Rule>,
    /// What may not run in this submission, whatever may run anyway.
    pub disallowed_tools: Vec<Rule>,
    /// The model that is asked in this submission: an id or an alias.
    pub model: Option<String>,
    /// How hard it tries in this submission.
    pub effort: Option<Effort>,
}

/// The command could not do its work. The text is for the user.
///
/// ```
/// use pelton::command::CommandError;
///
/// let error = CommandError("name a file".to_owned());
/// assert_eq!(error.to_string(), "name a file"); // that is what the user reads
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CommandError(pub String);

impl Expansion {
    /// Another one comes behind it.
    pub(crate) fn join(&mut self, other: Self) {
        let words = [self.prompt.take(), other.prompt].into_iter().flatten().collect::<Vec<_>>();
        self.prompt = (!words.is_empty()).then(|| words.join("\n\n"));
        self.output = other.output.or(self.output.take());
        self.allowed_tools.extend(other.allowed_tools);
        self.disallowed_tools.extend(other.disallowed_tools);
        (self.model, self.effort) = (other.model.or(self.model.take()), other.effort.or(self.effort));
    }

    /// The model is told this instead.
    pub fn prompt(text: impl Into<String>) -> Self {
        Self { prompt: Some(text.into()), ..Self::default() }
    }

    /// The user is told this, and no model is asked.
    pub fn output(text: impl Into<String>) -> Self {
        Self { output: Some(text.into()), ..Self::default() }
    }
}

/// A prompt that looks like a call of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Called<'a> {
    pub name: &'a str,
    pub arguments: &'a str,
}

impl<'a> Called<'a> {
    /// The command a text calls, if it looks like that at all.
    pub fn in_text(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let (name, arguments) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let name = name.strip_prefix('/').filter(|name| !name.is_empty())?;
        Some(Self { name, arguments: arguments.trim() })
    }

    /// Whether this can be nothing but a command: `/etc/hosts` is a path, and `//` begins a comment.
    pub fn is_plain(&self) -> bool {
        self.name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ':'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_the_first_word_and_paths_are_none() {
        let check = |text: &str, expected: Option<(&str, &str, bool)>| {
            let called = Called::in_text(text);
            let seen = called.map(|called| (called.name, called.arguments, called.is_plain()));
            assert_eq!(seen, expected, "{text:?}");
        };
        check("/review", Some(("review", "", true)));
        check("  /review a b  \n c", Some(("review", "a b  \n c", true)));
        check("/plugin:do it", Some(("plugin:do", "it", true)));
        check("/etc/hosts is wrong", Some(("etc/hosts", "is wrong", false)));
        check("// a comment", Some(("/", "a comment", false)));
        check("/", None);
        check("/ review", None);
        check("do /review", None);
        check("", None);
    }
}
