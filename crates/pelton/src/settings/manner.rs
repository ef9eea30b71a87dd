//! How the model works and answers, as settings say it.

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
