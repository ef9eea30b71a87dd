//! Slash commands that the terminal itself answers. All others are the engine's: its own, skills, the user's commands and
//! prompts of servers.

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own {
    Help,
    Exit,
    Cost,
    Model,
    Effort,
    Permissions,
    Mcp,
    Agents,
    Skills,
    Hooks,
    Memory,
    Plan,
    Resume,
    Rewind,
    Export,
    Status,
    Doctor,
    Config,
    Todos,
    Bashes,
    Rename,
    Branch,
    Btw,
    Cd,
    Copy,
    Debug,
    Diff,
    OutputStyle,
    Plugin,
    ReloadPlugins,
    ReloadSkills,
    StatusLine,
    Theme,
    VimMode,
}

/// Name, what comes behind it, what it does.
const ALL: &[(Own, &str, &str, &str)] = &[
    (Own::Help, "help", "", "Keys and commands"),
    (Own::Agents, "agents", "", "The agents there are"),
    (Own::Bashes, "bashes", "[stop ID]", "What runs in the background"),
    (Own::Branch, "branch", "[NAME]", "Goes on with a copy of this conversation; this one is kept"),
    (
        Own::Btw,
        "btw",
        "[QUESTION]",
        "Asks beside the conversation, also while the model works; nothing of it is kept",
    ),
    (Own::Cd, "cd", "[DIRECTORY]", "Moves the session to another directory"),
    (
        Own::Config,
        "config",
        "[KEY=VALUE]",
        "Which settings count, and where they stand; or changes one of yours",
    ),
    (Own::Copy, "copy", "[N]", "The last answer into the clipboard, or the one N before"),
    (Own::Cost, "cost", "", "What was spent"),
    (Own::Debug, "debug", "[what is wrong]", "Notes what happens inside, and has the model look at it"),
    (Own::Diff, "diff", "[FILE]", "What was changed since the last commit"),
    (Own::Doctor, "doctor", "", "What is wrong around this session, and with its record"),
    (Own::Effort, "effort", "[low|medium|high|xhigh|max]", "How hard the model tries"),
    (Own::Exit, "exit", "", "Ends the session (or Ctrl-D)"),
    (Own::Export, "export", "[FILE]", "The conversation as Markdown, into a file"),
    (Own::Hooks, "hooks", "", "Programs that run with what happens"),
    (Own::Mcp, "mcp", "[reconnect NAME | on NAME | off NAME]", "Servers of tools"),
    (Own::Memory, "memory", "", "Which files the model is told of"),
    (Own::Model, "model", "[NAME]", "Which model is asked"),
    (Own::OutputStyle, "output-style", "[NAME]", "How the model answers in this project"),
    (Own::Permissions, "permissions", "", "What runs without asking, and what never"),
    (Own::Plan, "plan", "[TASK]", "Plan only, until you approve"),
    (Own::Plugin, "plugin", "[list | install NAME | …]", "Plugins: what `pelton plugin` does"),
    (Own::ReloadPlugins, "reload-plugins", "", "Looks for plugins anew"),
    (Own::ReloadSkills, "reload-skills", "", "Looks for skills and commands anew"),
    (Own::Rename, "rename", "[NAME]", "What this session is called; or has the model find a name"),
    (Own::Resume, "resume", "[ID | NAME]", "Goes on with another session"),
    (Own::Rewind, "rewind", "", "Takes the conversation, files or both back (or Esc twice)"),
    (Own::Skills, "skills", "", "What the model knows how to do"),
    (Own::Status, "status", "", "This session: model, mode, files, limits"),
    (Own::StatusLine, "statusline", "[what it shows]", "Has the model set up a status line of your own"),
    (Own::Theme, "theme", "[NAME]", "Other colours"),
    (Own::Todos, "todos", "", "What is to be done"),
    (Own::VimMode, "vim-mode", "", "Edits as vi does, or no longer"),
];

/// Other names for the same.
const OTHER_NAMES: &[(&str, Own)] = &[
    ("quit", Own::Exit),
    ("usage", Own::Cost),
    ("stats", Own::Cost),
    ("tasks", Own::Bashes),
    ("continue", Own::Resume),
    ("undo", Own::Rewind),
    ("checkpoint", Own::Rewind),
    ("plugins", Own::Plugin),
    ("settings", Own::Config),
    ("vim", Own::VimMode),
];

impl Own {
    /// What it is called by.
    pub fn name(self) -> &'static str {
        ALL.iter().find(|(own, ..)| *own == self).map_or("", |(_, name, ..)| name)
    }

    /// Whether what it asks for stands in the conversation by itself.
    pub fn is_a_prompt(self, arguments: &str) -> bool {
        matches!(self, Self::Exit | Self::StatusLine | Self::Debug)
            || (self == Self::Plan && !arguments.is_empty())
    }

    /// Whether it asks what is meant: what is chosen stands in the conversation, and nothing if nothing is.
    pub fn asks(self, arguments: &str) -> bool {
        let asks =
            matches!(self, Self::Model | Self::Resume | Self::Rewind | Self::Theme | Self::OutputStyle);
        asks && arguments.is_empty()
    }

    /// Whether it works while the model does.
    pub fn works_any_time(self) -> bool {
        let waits = matches!(self, Self::Plan | Self::Resume | Self::Rewind | Self::Export | Self::Branch);
        let asks = matches!(self, Self::StatusLine | Self::Debug);
        !waits && !asks && !matches!(self, Self::Copy | Self::Theme | Self::Cd)
    }
}

/// The command that words call, and what stands behind its name.
pub(crate) fn called(words: &str) -> Option<(Own, &str)> {
    let words = words.trim().strip_prefix('/')?;
    let (name, arguments) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    let own = ALL.iter().find(|(_, known, ..)| *known == name).map(|(own, ..)| *own);
    let own = own.or_else(|| OTHER_NAMES.iter().find(|(known, _)| *known == name).map(|(_, own)| *own))?;
    Some((own, arguments.trim()))
}

/// Name, what comes behind it, and what it does, of all of them.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    ALL.iter().map(|(_, name, hint, what)| (*name, *hint, *what))
}

/// Other names of the command of this name.
pub(crate) fn other_names(name: &str) -> impl Iterator<Item = &'static str> {
    OTHER_NAMES.iter().filter(move |(_, own)| own.name() == name).map(|(other, _)| *other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_known_by_their_names_and_nothing_else() {
        assert_eq!(called("/exit"), Some((Own::Exit, "")));
        assert_eq!(called(" /model  opus "), Some((Own::Model, "opus")));
        assert_eq!(called("/quit"), Some((Own::Exit, "")));
        for other in ["/compact", "/init", "/clear now", "exit", "/exi", "/usr/bin", "", "/"] {
            assert_eq!(called(other), None, "{other}");
        }
    }
}
