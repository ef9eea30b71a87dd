//! What is said about the tools themselves.

/// What settings say about the tools themselves.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, read};
///
/// # let origin = Origin { source: &Source::User, file: "settings.json", anchor: None };
/// let (settings, _) = read(r#"{"plansDirectory": "docs/plans", "respectGitignore": false}"#, origin)?;
/// assert_eq!(settings.tools.plans_dir.as_deref(), Some("docs/plans"));
/// assert_eq!(settings.tools.respect_gitignore, Some(false));
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolSettings {
    /// `plansDirectory`: where plans are kept, as written.
    pub plans_dir: Option<String>,
    /// A project says so: then it must be inside of the project.
    pub plans_dir_is_projects: bool,
    /// `respectGitignore`: files that ignore files name are not suggested.
    pub respect_gitignore: Option<bool>,
    /// `fileSuggestion.command`: a line for the shell that says which files are suggested. Never a project's: it would run
    /// without anybody having looked.
    pub file_suggestion: Option<String>,
}

impl ToolSettings {
    pub(super) fn over(self, lower: Self) -> Self {
        let (plans_dir, plans_dir_is_projects) = match self.plans_dir {
            Some(dir) => (Some(dir), self.plans_dir_is_projects),
            None => (lower.plans_dir, lower.plans_dir_is_projects),
        };
        Self {
            plans_dir,
            plans_dir_is_projects,
            respect_gitignore: self.respect_gitignore.or(lower.respect_gitignore),
            file_suggestion: self.file_suggestion.or(lower.file_suggestion),
        }
    }
}
