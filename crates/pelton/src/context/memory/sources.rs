//! Where memory files are looked for.

use std::path::PathBuf;

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
}
