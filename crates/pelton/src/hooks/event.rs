//! The moments hooks can be called at, and what is particular about each.

/// A moment in the life of a session.
///
/// ```
/// use pelton::hooks::HookEvent;
///
/// let event = HookEvent::from_name("PreToolUse").ok_or("there is such a moment")?;
/// assert_eq!(event, HookEvent::PreToolUse);
/// assert_eq!(event.matched_by(), Some("tool_name")); // what a matcher is compared with
/// assert_eq!(HookEvent::from_name("OnFullMoon"), None);
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HookEvent {
    /// A tool is about to be asked for permission and run.
    PreToolUse,
    /// A tool has run.
    PostToolUse,
    /// A tool has failed.
    PostToolUseFailure,
    /// All calls of one answer are done.
    PostToolBatch,
    /// The user is about to be asked whether a tool may run.
    PermissionRequest,
    /// A tool was refused without asking.
    PermissionDenied,
    /// The user sent a prompt.
    UserPromptSubmit,
    /// A command the user typed is about to become a prompt.
    UserPromptExpansion,
    /// The turn is about to end.
    Stop,
    /// A sub-agent is about to end.
    SubagentStop,
    /// The turn ended with an error of the model's server.
    StopFailure,
    /// A session begins, or begins again.
    SessionStart,
    /// A session ends.
    SessionEnd,
    /// A sub-agent starts.
    SubagentStart,
    /// The history is about to be summarised.
    PreCompact,
    /// The history was summarised.
    PostCompact,
    /// The user's attention is wanted.
    Notification,
    /// An instruction file was read.
    InstructionsLoaded,
    /// The project is being set up.
    Setup,
    /// A settings file changed.
    ConfigChange,
    /// The working directory changed.
    CwdChanged,
    /// A working directory was added.
    DirectoryAdded,
    /// A watched file changed.
    FileChanged,
    /// A worktree is wanted.
    WorktreeCreate,
    /// A worktree is no longer wanted.
    WorktreeRemove,
    /// A task was made.
    TaskCreated,
    /// A task is about to be done.
    TaskCompleted,
    /// A teammate has nothing to do.
    TeammateIdle,
    /// A server asks the user something.
    Elicitation,
    /// The user answered a server.
    ElicitationResult,
    /// Text is about to be shown.
    MessageDisplay,
    /// The model is about to change.
    PreModelSwitch,
    /// The model changed.
    PostModelSwitch,
}

/// What a hook that blocks achieves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    /// What was about to happen is refused: the answer is a permission.
    Denies,
    /// What was about to happen does not, or what happened is objected to.
    Blocks,
    /// Nothing; the hook's words are shown.
    Tells,
}

/// What is particular about an event.
struct Facts {
    name: &'static str,
    /// The field of its input that matchers look at.
    matched_by: Option<&'static str>,
    blocking: Blocking,
    /// When it is, in a few words.
    summary: &'static str,
}

impl HookEvent {
    /// All of them.
    pub const ALL: [Self; 33] = [
        Self::PreToolUse,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::PostToolBatch,
        Self::PermissionRequest,
        Self::PermissionDenied,
        Self::UserPromptSubmit,
        Self::UserPromptExpansion,
        Self::Stop,
        Self::SubagentStop,
        Self::StopFailure,
        Self::SessionStart,
        Self::SessionEnd,
        Self::SubagentStart,
        Self::PreCompact,
        Self::PostCompact,
        Self::Notification,
        Self::InstructionsLoaded,
        Self::Setup,
        Self::ConfigChange,
        Self::CwdChanged,
        Self::DirectoryAdded,
        Self::FileChanged,
        Self::WorktreeCreate,
        Self::WorktreeRemove,
        Self::TaskCreated,
        Self::TaskCompleted,
        Self::TeammateIdle,
        Self::Elicitation,
        Self::ElicitationResult,
        Self::MessageDisplay,
        Self::PreModelSwitch,
        Self::PostModelSwitch,
    ];

    /// Its name in settings, on the wire and in a hook's input.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// The event of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// The field of its input that matchers look at; where there is none, matchers mean nothing.
    pub fn matched_by(self) -> Option<&'static str> {
        self.facts().matched_by
    }

    /// When it is, in a few words for people.
    pub fn summary(self) -> &'static str {
        self.facts().summary
    }

    /// What a hook that blocks achieves here.
    pub fn blocking(self) -> Blocking {
        self.facts().blocking
    }

    /// Whether it is about one call of a tool, so that a condition on the call has a meaning.
    pub fn is_about_a_call(self) -> bool {
        self.matched_by() == Some("tool_name")
    }

    /// Whether it is ever told here: some moments belong to other programs that share these files.
    pub fn is_told(self) -> bool {
        self != Self::TeammateIdle
    }

    /// All that the field of its input can be here that matchers look at, where that is known beforehand.
    pub fn subjects(self) -> Option<&'static [&'static str]> {
        Some(match self {
            Self::SessionStart => &["startup", "resume", "clear", "compact", "fork"],
            Self::SessionEnd => &["clear", "resume", "logout", "prompt_input_exit", "other"],
            Self::PreCompact | Self::PostCompact => &["manual", "auto"],
            Self::Setup => &["init", "maintenance"],
            Self::Notification => &[
                "permission_prompt",
                "idle_prompt",
                "elicitation_dialog",
                "elicitation_url_dialog",
                "elicitation_response",
            ],
            Self::InstructionsLoaded => {
                &["session_start", "nested_traversal", "path_glob_match", "include", "compact"]
            }
            Self::StopFailure => &[
                "authentication_failed",
                "billing_error",
                "rate_limit",
                "overloaded",
                "invalid_request",
                "model_not_found",
                "server_error",
                "max_output_tokens",
                "unknown",
            ],
            Self::ConfigChange => &["user_settings", "project_settings", "local_settings", "policy_settings"],
            Self::DirectoryAdded => &["slash_command", "register_repo_root"],
            _ => return None,
        })
    }

    /// Whether plain text a command prints goes to the model.
    pub fn takes_plain_text(self) -> bool {
        matches!(self, Self::SessionStart | Self::UserPromptSubmit | Self::UserPromptExpansion)
    }

    /// Whether hooks may write variables for later commands into a file.
    pub fn has_environment_file(self) -> bool {
        matches!(self, Self::SessionStart | Self::Setup | Self::CwdChanged | Self::FileChanged)
    }

    fn facts(self) -> Facts {
        use Blocking::{Blocks, Denies, Tells};
        let row = |name, matched_by, blocking, summary| Facts { name, matched_by, blocking, summary };
        match self {
            Self::PreToolUse => row(
                "PreToolUse",
                Some("tool_name"),
                Denies,
                "A tool is about to be asked for permission and run",
            ),
            Self::PostToolUse => row("PostToolUse", Some("tool_name"), Blocks, "A tool has run"),
            Self::PostToolUseFailure => {
                row("PostToolUseFailure", Some("tool_name"), Blocks, "A tool has failed")
            }
            Self::PostToolBatch => row("PostToolBatch", None, Blocks, "All calls of one answer are done"),
            // Answers with a decision object; an exit code alone decides nothing.
            Self::PermissionRequest => row(
                "PermissionRequest",
                Some("tool_name"),
                Tells,
                "The user is about to be asked whether a tool may run",
            ),
            Self::PermissionDenied => {
                row("PermissionDenied", Some("tool_name"), Tells, "A tool was refused without asking")
            }
            Self::UserPromptSubmit => row("UserPromptSubmit", None, Blocks, "The user sent a prompt"),
            Self::UserPromptExpansion => row(
                "UserPromptExpansion",
                Some("command_name"),
                Blocks,
                "A command the user typed is about to become a prompt",
            ),
            Self::Stop => row("Stop", None, Blocks, "The turn is about to end"),
            Self::SubagentStop => {
                row("SubagentStop", Some("agent_type"), Blocks, "A sub-agent is about to end")
            }
            Self::StopFailure => {
                row("StopFailure", Some("error"), Tells, "The turn ended with an error of the model's server")
            }
            Self::SessionStart => {
                row("SessionStart", Some("source"), Tells, "A session begins, or begins again")
            }
            Self::SessionEnd => row("SessionEnd", Some("reason"), Tells, "A session ends"),
            Self::SubagentStart => row("SubagentStart", Some("agent_type"), Tells, "A sub-agent starts"),
            Self::PreCompact => {
                row("PreCompact", Some("trigger"), Blocks, "The history is about to be summarised")
            }
            Self::PostCompact => row("PostCompact", Some("trigger"), Tells, "The history was summarised"),
            Self::Notification => {
                row("Notification", Some("notification_type"), Tells, "The user's attention is wanted")
            }
            Self::InstructionsLoaded => {
                row("InstructionsLoaded", Some("load_reason"), Tells, "An instruction file was read")
            }
            Self::Setup => row("Setup", Some("trigger"), Tells, "The project is being set up"),
            Self::ConfigChange => row("ConfigChange", Some("source"), Blocks, "A settings file changed"),
            Self::CwdChanged => row("CwdChanged", None, Tells, "The working directory changed"),
            Self::DirectoryAdded => {
                row("DirectoryAdded", Some("source"), Tells, "A working directory was added")
            }
            Self::FileChanged => row("FileChanged", Some("file_path"), Tells, "A watched file changed"),
            Self::WorktreeCreate => row("WorktreeCreate", None, Blocks, "A worktree is wanted"),
            Self::WorktreeRemove => row("WorktreeRemove", None, Tells, "A worktree is no longer wanted"),
            Self::TaskCreated => row("TaskCreated", None, Blocks, "A task was made"),
            Self::TaskCompleted => row("TaskCompleted", None, Blocks, "A task is about to be done"),
            Self::TeammateIdle => row("TeammateIdle", None, Blocks, "A teammate has nothing to do"),
            Self::Elicitation => {
                row("Elicitation", Some("mcp_server_name"), Blocks, "A server asks the user something")
            }
            Self::ElicitationResult => {
                row("ElicitationResult", Some("mcp_server_name"), Blocks, "The user answered a server")
            }
            Self::MessageDisplay => row("MessageDisplay", None, Tells, "Text is about to be shown"),
            Self::PreModelSwitch => row("PreModelSwitch", None, Denies, "The model is about to change"),
            Self::PostModelSwitch => row("PostModelSwitch", None, Tells, "The model changed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_found_by_its_own_name_and_by_no_other() {
        for (at, event) in HookEvent::ALL.into_iter().enumerate() {
            assert_eq!(HookEvent::from_name(event.name()), Some(event));
            assert!(!HookEvent::ALL[..at].contains(&event), "{event:?} is listed twice");
        }
        assert_eq!(HookEvent::from_name("pretooluse"), None);
        assert_eq!(HookEvent::from_name(""), None);
    }
}
