//! How the model works and answers, as settings say it.

use std::time::Duration;

use crate::context::Attribution;
use crate::options::WorktreeBase;

/// How the model works and answers.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, read};
///
/// # let origin = Origin { source: &Source::User, file: "settings.json", anchor: None };
/// let (settings, _) = read(r#"{"outputStyle": "Explanatory", "attribution": {"commit": ""}}"#, origin)?;
/// assert_eq!(settings.manner.output_style.as_deref(), Some("Explanatory"));
/// assert_eq!(settings.manner.attribution.commit.as_deref(), Some("")); // nothing is to be said
/// assert_eq!(settings.manner.attribution.pull_request, None); // nobody cares
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MannerSettings {
    /// `agent`: the agent the session itself works as.
    pub agent: Option<String>,
    /// `outputStyle`: how it answers.
    pub output_style: Option<String>,
    /// `language`: the language it answers in.
    pub language: Option<String>,
    /// `attribution`, or the older `includeCoAuthoredBy`: what it says of itself.
    pub attribution: Attribution,
}

/// How a session looks at a terminal: `theme` and the object `statusLine`.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, read};
///
/// # let origin = Origin { source: &Source::User, file: "settings.json", anchor: None };
/// let text = r#"{"theme": "dark", "statusLine": {"type": "command", "command": "date", "refreshInterval": 5}}"#;
/// let (settings, _) = read(text, origin)?;
/// assert_eq!(settings.screen.theme.as_deref(), Some("dark"));
/// assert_eq!(settings.screen.status_command.as_deref(), Some("date"));
/// assert_eq!(settings.screen.status_refresh_s, Some(5));
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScreenSettings {
    /// `theme`: a name of colours.
    pub theme: Option<String>,
    /// `statusLine.command`: a line for the shell that prints what stands at the bottom.
    pub status_command: Option<String>,
    /// `statusLine.padding`: how far from the edge that is, in cells.
    pub status_padding: Option<u64>,
    /// `statusLine.refreshInterval`: after how many seconds it is asked again although nothing has happened.
    pub status_refresh_s: Option<u64>,
    /// `askUserQuestionTimeout`: how long questions of the model's wait for somebody who does nothing; `Patience::Endless` is "never".
    pub question_time: Option<Patience>,
    /// `dialogExpiry`: how long whoever drives the session has to answer a question.
    pub dialog_time: Option<Patience>,
    /// `editorMode`: whether letters are commands in the prompt, as in vi.
    pub vim: Option<bool>,
    /// `respondToBashCommands`: whether the model answers to what a command line of the user's own says.
    pub answers_shell: Option<bool>,
}

/// How long somebody is waited for.
///
/// ```
/// use std::time::Duration;
///
/// use pelton::settings::Patience;
///
/// assert_eq!(Patience::from_name("5m"), Some(Patience::For(Duration::from_secs(300))));
/// assert_eq!(Patience::from_name("never").and_then(Patience::time), None); // they are waited for without end
/// assert_eq!(Patience::from_name("2 days"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// So long.
    For(Duration),
    /// Without end.
    Endless,
}

impl Patience {
    /// As settings write it.
    pub fn from_name(name: &str) -> Option<Self> {
        let seconds = match name {
            "60s" => 60,
            "5m" => 300,
            "10m" => 600,
            "never" => return Some(Self::Endless),
            _ => return None,
        };
        Some(Self::For(Duration::from_secs(seconds)))
    }

    /// The time, if it ends.
    pub fn time(self) -> Option<Duration> {
        match self {
            Self::For(time) => Some(time),
            Self::Endless => None,
        }
    }
}

impl ScreenSettings {
    pub(super) fn over(self, lower: Self) -> Self {
        // A command and what is said about it are one.
        let (of_command, theme) = match self.status_command {
            Some(_) => (self.clone(), self.theme.or(lower.theme)),
            None => (lower.clone(), self.theme.or(lower.theme)),
        };
        Self {
            theme,
            question_time: self.question_time.or(lower.question_time),
            dialog_time: self.dialog_time.or(lower.dialog_time),
            answers_shell: self.answers_shell.or(lower.answers_shell),
            vim: self.vim.or(lower.vim),
            ..of_command
        }
    }
}

/// The object `worktree`: how checkouts are made for agents that want one of their own.
///
/// ```
/// use pelton::WorktreeBase;
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, read};
///
/// # let origin = Origin { source: &Source::User, file: "settings.json", anchor: None };
/// let (settings, _) = read(r#"{"worktree": {"baseRef": "head", "symlinkDirectories": ["node_modules"]}}"#, origin)?;
/// assert_eq!(settings.worktrees.base, Some(WorktreeBase::Head));
/// assert_eq!(settings.worktrees.linked_directories, ["node_modules"]);
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorktreeSettings {
    /// `baseRef`: where they begin.
    pub base: Option<WorktreeBase>,
    /// `symlinkDirectories`: what is the same in all of them.
    pub linked_directories: Vec<String>,
    /// `sparsePaths`: the only directories that are checked out.
    pub sparse_paths: Vec<String>,
}

impl WorktreeSettings {
    pub(super) fn over(self, mut lower: Self) -> Self {
        lower.base = self.base.or(lower.base);
        lower.linked_directories.extend(self.linked_directories);
        lower.sparse_paths.extend(self.sparse_paths);
        lower
    }
}

impl MannerSettings {
    pub(super) fn over(self, lower: Self) -> Self {
        let mut attribution = Attribution::default();
        attribution.commit = self.attribution.commit.or(lower.attribution.commit);
        attribution.pull_request = self.attribution.pull_request.or(lower.attribution.pull_request);
        Self {
            agent: self.agent.or(lower.agent),
            output_style: self.output_style.or(lower.output_style),
            language: self.language.or(lower.language),
            attribution,
        }
    }
}
