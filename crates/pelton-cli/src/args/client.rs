//! What programs say that drive a session through pipes, and what people say through them.

use std::path::PathBuf;

use clap::ValueEnum;
use pelton::Setup;
use uuid::Uuid;

#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ClientArgs {
    /// What comes on standard input (stream-json: one message per line, for as long as it is open)
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = InputFormat::Text)]
    pub input_format: InputFormat,
    /// Who is asked before something runs that no rule allows: stdio (the program at the other end of the pipe), or the tool of an MCP server
    #[arg(long, value_name = "NAME")]
    pub permission_prompt_tool: Option<String>,
    /// Whether anybody is asked at all
    #[arg(long, value_enum, value_name = "WHO", hide = true)]
    pub permission_prompts: Option<PromptsArg>,
    /// Let a client switch to bypassPermissions later (refused as root outside a sandbox)
    #[arg(long)]
    pub allow_dangerously_skip_permissions: bool,
    /// Write what hooks do (stream-json)
    #[arg(long)]
    pub include_hook_events: bool,
    /// Replace the system prompt by what a file says
    #[arg(long, value_name = "FILE", conflicts_with = "system_prompt")]
    pub system_prompt_file: Option<PathBuf>,
    /// Add what a file says to the system prompt
    #[arg(long, value_name = "FILE", conflicts_with = "append_system_prompt")]
    pub append_system_prompt_file: Option<PathBuf>,
    /// How the model thinks before it answers
    #[arg(long, value_enum, value_name = "HOW")]
    pub thinking: Option<ThinkingArg>,
    /// How many tokens it may think; 0 for none
    #[arg(long, value_name = "TOKENS", conflicts_with = "thinking", allow_negative_numbers = true)]
    pub max_thinking_tokens: Option<u32>,
    /// What is shown of that
    #[arg(long, value_enum, value_name = "WHAT")]
    pub thinking_display: Option<ThinkingDisplayArg>,
    /// MCP servers for this run: files, or JSON
    #[arg(long, value_name = "FILE|JSON", num_args = 1..)]
    pub mcp_config: Vec<String>,
    /// Use only those servers
    #[arg(long)]
    pub strict_mcp_config: bool,
    /// Agents for this run: JSON, or a file
    #[arg(long, value_name = "JSON|FILE")]
    pub agents: Option<String>,
    /// Work as this agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Go on under a new id and in a new file; what is gone on with stays as it is
    #[arg(long)]
    pub fork_session: bool,
    /// Go on from this message: what was said after it is not known any more
    #[arg(long, value_name = "UUID", value_parser = super::session_id)]
    pub resume_session_at: Option<Uuid>,
    /// Go on as if this prompt had not been sent; with --resume-session-at: refuse if more than its turn would be forgotten
    #[arg(long, value_name = "UUID", value_parser = super::session_id)]
    pub resume_drops_turn: Option<Uuid>,
    /// Write every line of the session's record to standard output, too
    #[arg(long)]
    pub session_mirror: bool,
    /// What the session is called
    #[arg(short = 'n', long, value_name = "NAME")]
    pub name: Option<String>,
    /// Wait for the client's first words before anything is set up
    #[arg(long, hide = true)]
    pub await_initialize: bool,
    /// Wait for a client to say which session this is to be
    #[arg(long, hide = true, conflicts_with = "await_initialize")]
    pub await_claim: bool,
    /// The checkout that the project's settings, servers, skills, agents and commands come from, instead of this directory
    #[arg(long, value_name = "DIR")]
    pub project_config_root: Option<PathBuf>,
    /// Settings of the administrator of the machine
    #[arg(long, value_name = "JSON", hide = true)]
    pub managed_settings: Option<String>,
    /// Use the plugin in this folder, too; may be repeated
    #[arg(long, value_name = "DIR")]
    pub plugin_dir: Vec<PathBuf>,
    /// The same, without the servers of tools that it brings
    #[arg(long, value_name = "DIR", hide = true)]
    pub plugin_dir_no_mcp: Vec<PathBuf>,
    /// Call the hooks that set a project up before the first prompt
    #[arg(long, conflicts_with_all = ["maintenance", "init_only"])]
    pub init: bool,
    /// Call the hooks that set a project up and those of the session's start, and end
    #[arg(long)]
    pub init_only: bool,
    /// Call the hooks that look after a project before the first prompt
    #[arg(long, conflicts_with = "init_only")]
    pub maintenance: bool,
    /// Note what happens inside, in debug/SESSION.txt of the configuration: of api, tools, hooks and so on, or of all but !api
    #[arg(
        short = 'd',
        long,
        value_name = "FILTER",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    pub debug: Option<String>,
    /// The same, into this file
    #[arg(long, value_name = "FILE")]
    pub debug_file: Option<PathBuf>,
    /// The same, on standard error; in a session at a terminal in its file
    #[arg(long)]
    pub debug_to_stderr: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
pub(crate) enum InputFormat {
    /// The prompt
    #[default]
    Text,
    /// One message per line
    StreamJson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PromptsArg {
    /// Nobody: what would be asked is denied
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThinkingArg {
    /// The model decides how much
    Adaptive,
    /// As much as suits the model
    Enabled,
    /// Not at all
    Disabled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThinkingDisplayArg {
    /// A summary
    Summarized,
    /// Nothing
    Omitted,
}

impl ClientArgs {
    /// Why the project is set up, if it is.
    pub fn setup(&self) -> Option<Setup> {
        match (self.init || self.init_only, self.maintenance) {
            (true, _) => Some(Setup::Init),
            (false, true) => Some(Setup::Maintenance),
            (false, false) => None,
        }
    }

    /// Whether messages come on standard input.
    pub fn streams_input(&self) -> bool {
        self.input_format == InputFormat::StreamJson
    }
}
