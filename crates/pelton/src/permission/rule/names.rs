//! Names of tools that rules are written for, those of other programs included: files are shared.

/// Two names of one tool.
pub(super) const AGENT_NAMES: [&str; 2] = ["Agent", "Task"];

const KNOWN: &str = "Agent Artifact AskUserQuestion Bash BashOutput Cd CronCreate CronDelete CronList Edit EndConversation \
    EnterPlanMode EnterWorktree ExitPlanMode ExitWorktree Glob Grep KillBash KillShell LS LSP ListAgents \
    ListMcpResourcesTool Monitor MultiEdit NotebookEdit NotebookRead PowerShell PushNotification Read \
    ReadMcpResourceDirTool ReadMcpResourceTool RemoteTrigger ReportFindings ScheduleWakeup SendMessage SendUserFile \
    Skill SlashCommand StructuredOutput Task TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate TodoRead \
    TodoWrite ToolSearch WaitForMcpServers WebFetch WebSearch Workflow Write";

/// Whether there is such a tool somewhere. Names with `_` are those of servers, which come and go.
pub(super) fn is_known(tool: &str) -> bool {
    tool.contains(['_', '*']) || known().any(|known| known == tool)
}

/// The tools there are somewhere.
pub(crate) fn known() -> impl Iterator<Item = &'static str> {
    KNOWN.split_whitespace()
}

/// What a tool's input has.
pub(super) struct Fields {
    /// What the tool is about: it has a syntax of its own in rules.
    pub primary: Option<&'static str>,
    /// Those of tools whose specifier could be mistaken for a field.
    pub others: &'static [&'static str],
}

impl Fields {
    pub fn of(tool: &str) -> Self {
        let (primary, others): (_, &[&str]) = match tool {
            "Bash" => {
                ("command", &["timeout", "description", "run_in_background", "dangerouslyDisableSandbox"])
            }
            "Monitor" => ("command", &["timeout_ms", "description"]),
            "PowerShell" => ("command", &["timeout", "description", "run_in_background"]),
            "Read" | "Edit" | "Write" | "MultiEdit" => ("file_path", &[]),
            "NotebookEdit" | "NotebookRead" => ("notebook_path", &[]),
            "Glob" | "Grep" => ("pattern", &[]),
            "WebFetch" => ("url", &[]),
            "WebSearch" => ("query", &[]),
            "Agent" | "Task" => {
                let others =
                    &["description", "prompt", "model", "effort", "run_in_background", "name", "isolation"];
                ("subagent_type", others)
            }
            "Skill" => ("skill", &[]),
            _ => return Self { primary: None, others: &[] },
        };
        Self { primary: Some(primary), others }
    }
}
