//! How much runs without asking.

/// How much runs without asking.
///
/// ```
/// use pelton::permission::Mode;
///
/// assert_eq!(Mode::from_name("acceptEdits"), Some(Mode::AcceptEdits)); // as settings and flags write it
/// assert_eq!(Mode::default().name(), "default");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Reads inside the working directories, and commands that only look.
    #[default]
    Default,
    /// Edits inside the working directories too.
    AcceptEdits,
    /// Looking only; changes are never approved without a question, whatever the allow rules say.
    Plan,
    /// Like `Default`, but what would be asked is denied.
    DontAsk,
    /// Everything that no deny or ask rule catches, except removals nobody recovers from.
    BypassPermissions,
}

/// Names of modes that other programs have and that are taken for the default.
const STAND_INS: [&str; 2] = ["auto", "delegate"];

impl Mode {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Default, Self::AcceptEdits, Self::Plan, Self::DontAsk, Self::BypassPermissions];

    /// The mode of that name. `manual` is another name of the default; what [stands in](Self::stands_in) is taken for it.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "manual" => Some(Self::Default),
            name if Self::stands_in(name) => Some(Self::Default),
            name => Self::ALL.into_iter().find(|mode| mode.name() == name),
        }
    }

    /// Whether this names a mode that there is not here: the default takes its place, and whoever wrote it should know.
    pub fn stands_in(name: &str) -> bool {
        STAND_INS.contains(&name)
    }

    /// The name users and clients write.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::DontAsk => "dontAsk",
            Self::BypassPermissions => "bypassPermissions",
        }
    }
}
