//! Where memory files are looked for.

use std::path::{Path, PathBuf};

use super::Memory;
use super::gather::Because;

/// Which memory files count, and where they are. Nothing is read from anywhere else.
///
/// ```
/// use pelton::{MemorySources, Options};
/// use pelton_model::{Auth, Endpoint, Secret};
///
/// let mut options = Options::new("/srv/project", Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any"))));
/// let mut memory = MemorySources::project();
/// memory.user_dir = Some("/home/ada/.claude".into()); // her own CLAUDE.md and rules
/// memory.excludes.push("/srv/project/vendor/**".to_owned());
/// options.memory = Some(memory);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemorySources {
    /// The directory whose `CLAUDE.md` holds for everybody on this machine.
    pub managed_dir: Option<PathBuf>,
    /// Words that hold for everybody, from managed settings.
    pub managed_text: Option<String>,
    /// The user's configuration directory, with `CLAUDE.md` and `rules/`.
    pub user_dir: Option<PathBuf>,
    /// Whether `CLAUDE.md`, `.claude/CLAUDE.md`, `.claude/rules/` and `AGENTS.md` count, from the root of the file system
    /// down to the working directory, and below it where files are read.
    pub project: bool,
    /// Directories called `.claude` that belong to no project: to whoever comes from below the home, the user's own looks like
    /// one of a project.
    pub not_of_projects: Vec<PathBuf>,
    /// Whether `CLAUDE.local.md` counts beside them.
    pub local: bool,
    /// Whether the additional working directories bring theirs.
    pub additional_dirs: bool,
    /// When `AGENTS.md` counts.
    pub agents_md: AgentsMd,
    /// Patterns of absolute paths that do not count. Managed files always do.
    pub excludes: Vec<String>,
    /// Somebody has approved that files of the project import others from outside of the working directories.
    pub outside_imports: bool,
    /// The directory in which the model keeps notes of its own; their index is `MEMORY.md`.
    pub notes_dir: Option<PathBuf>,
    /// Whether the model is told how to keep them when the system prompt is the host's own, too.
    pub notes_with_custom_prompt: bool,
}

/// When an `AGENTS.md` counts.
///
/// ```
/// use pelton::{AgentsMd, MemorySources};
///
/// let mut memory = MemorySources::project();
/// memory.agents_md = AgentsMd::Both;
/// assert_eq!(AgentsMd::from_name("both"), Some(memory.agents_md)); // as settings write it
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentsMd {
    /// Where no directory of the project, down to the working directory, has a `CLAUDE.md`.
    #[default]
    WithoutClaudeMd,
    /// In every directory, beside a `CLAUDE.md`.
    Both,
    /// Never.
    Never,
}

impl AgentsMd {
    /// The choice as settings spell it.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "fallback" => Some(Self::WithoutClaudeMd),
            "both" => Some(Self::Both),
            "never" => Some(Self::Never),
            _ => None,
        }
    }
}

impl MemorySources {
    /// The files of the project and the user's own beside them.
    pub fn project() -> Self {
        Self { project: true, local: true, ..Self::default() }
    }

    /// What files of the project import from outside of the working directory, for somebody to approve. Reads files: it
    /// blocks.
    ///
    /// See [`OutsideImport`].
    pub fn imports_from_outside(&self, cwd: &Path, home: Option<&Path>) -> Vec<OutsideImport> {
        let sources = Self { outside_imports: false, ..self.clone() };
        let memory = Memory::new(Some(sources), cwd, &[], home, usize::MAX, |_, _| true);
        let Some(shared) = memory.0 else { return Vec::new() };
        shared.gather(Because::Start, |gatherer| gatherer.gather_start());
        std::mem::take(&mut shared.known().outside)
    }
}

/// A file that one of the project's imports and that is not in it.
///
/// ```
/// use pelton::MemorySources;
///
/// # let dir = tempfile::tempdir()?;
/// # let (project, style) = (dir.path().join("project"), dir.path().join("style.md"));
/// # std::fs::create_dir(&project)?;
/// # std::fs::write(&style, "Plain words.")?;
/// std::fs::write(project.join("CLAUDE.md"), "How we write: @../style.md")?;
/// let outside = MemorySources::project().imports_from_outside(&project, None);
/// assert_eq!(outside[0].imported_by.file_name().unwrap(), "CLAUDE.md");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutsideImport {
    /// What is imported.
    pub file: PathBuf,
    /// Who wants it.
    pub imported_by: PathBuf,
}
