//! What was said on the command line. Nothing is resolved here: `Option` means "not said".

mod client; // what programs say that drive a session
mod elsewhere; // options of other programs
mod config; // what is said about the configuration
mod mcp; // what is said about servers of tools
mod plugin; // what is said about plugins
mod project; // what is said about what is kept of projects
mod slip; // words that were meant as commands

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use uuid::Uuid;

pub(crate) use self::client::{ClientArgs, ThinkingArg, ThinkingDisplayArg};
pub(crate) use self::config::{ConfigArgs, ConfigCommand, ShowConfigArgs};
pub(crate) use self::mcp::{
    AddArgs, AddJsonArgs, FromDesktopArgs, KeptIn, LoginArgs, McpCommand, RemoveArgs, Transport,
};
pub(crate) use self::plugin::{
    DisableArgs, MarketplaceCommand, PluginArgs, PluginCommand, PluginListArgs, SettingsScope, TagArgs,
    UninstallArgs, UpdateArgs,
};
pub(crate) use self::project::{ProjectCommand, PurgeArgs};
pub(crate) use self::slip::nearest_command;
use crate::fail::tell;
use elsewhere::ElsewhereArgs;

/// Give it a task: Pelton drives a language model through a loop of answers and tools until the task is done.
#[derive(Debug, Parser)]
#[command(
    name = "pelton",
    version,
    about = "An agent engine: give it a task, and it works with a language model and tools until the task is done.",
    after_help = AFTER_HELP,
    args_conflicts_with_subcommands = true,
    args_override_self = true,
    disable_version_flag = true,
    max_term_width = 100,
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub run: RunArgs,
}

/// A command line without a command. Commands stand first; behind an option the same word is a prompt, as in
/// `pelton -p help`.
#[derive(Debug, Parser)]
#[command(name = "pelton", version, args_override_self = true, disable_version_flag = true)]
struct TaskOnly {
    #[command(flatten)]
    run: RunArgs,
}

const AFTER_HELP: &str = "\
Examples:
  pelton -p \"why does the test in tests/api.rs fail?\"
  pelton -p --continue \"and now the docs\"
  git diff | pelton -p \"review this change\"
  pelton -p \"fix it\" --permission-mode acceptEdits --allowedTools \"Bash(cargo test *)\"
  pelton demo                       no key, no network: a real task on a scripted model

Environment:
  ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN   who pays (one of them)
  ANTHROPIC_BASE_URL                        another server, such as 'pelton mock'
  ANTHROPIC_MODEL                           the model when --model is not given
  CLAUDE_CONFIG_DIR                         where settings and sessions are kept (default ~/.claude)
  NO_COLOR                                  no colours

Exit codes:
  0                                         done
  1                                         failed, or a mistake on the command line
  129, 130, 143                             ended by a hang-up, an interrupt, a termination
  141                                       standard output was closed";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a real task without a key: a scripted model fixes a bug in a sample repository
    Demo(DemoArgs),
    /// Show what a directory would add to a session, and trust it
    Trust(TrustArgs),
    /// Undo what the agent did to files: go back to what was there when a message was sent
    Rewind(RewindArgs),
    /// Tell what fills the context of a session, and what could be freed
    Context(ContextArgs),
    /// Look at past sessions, search them, take them along or away
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// Say what is wrong with this installation, or with the record of a session, and make that anew without it
    Doctor(DoctorArgs),
    /// Serve a scripted model over HTTP, to test setups offline
    Mock(MockArgs),
    /// Say what would be decided about calls, and why, without running anything
    #[command(subcommand)]
    Permissions(PermissionsCommand),
    /// Look through the configuration: what counts here, where it stands, and what is wrong with it
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Add MCP servers, look at them, take them away; or be one
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Install plugins from marketplaces of this machine, look at them, switch them on and off
    #[command(subcommand, alias = "plugins")]
    Plugin(PluginCommand),
    /// What is kept of a project
    #[command(subcommand)]
    Project(ProjectCommand),
    /// Who pays
    #[command(subcommand)]
    Auth(AuthCommand),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// Whether there is a key or a token for the model, and where it comes from, as JSON; 1 if there is none
    Status {
        /// In words
        #[arg(long)]
        text: bool,
    },
    /// Say how to log in: a key is set, and a login of another program is used where it is
    Login,
    /// Forget the login that is kept in the configuration
    Logout,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Keep the sample repository's folder
    #[arg(long)]
    pub keep: bool,
    /// Let the model fail on the way, and see the run survive it
    #[arg(long, value_enum)]
    pub fault: Option<Fault>,
    /// Run the same task on a real model (needs a key)
    #[arg(long, conflicts_with = "fault")]
    pub model: Option<String>,
    /// What to write to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Text)]
    pub output_format: OutputFormat,
    /// Work on a copy of this repository instead of the built-in one; its tests must be 'sh tests/run.sh'
    #[arg(long, value_name = "DIR", hide = true)]
    pub sample: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TrustArgs {
    /// The directory; the current one if not said. All of the repository around it is meant
    pub dir: Option<PathBuf>,
    /// Trust it without being asked
    #[arg(long, conflicts_with = "revoke")]
    pub yes: bool,
    /// Trust it no longer
    #[arg(long)]
    pub revoke: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ContextArgs {
    /// The session
    #[arg(value_parser = session_id)]
    pub session: Uuid,
    /// As one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// The sessions of this directory, newest first
    List(ListArgs),
    /// What a session is about, and what was said in it
    Show(ShowArgs),
    /// Words that were said
    Search(SearchArgs),
    /// A session as a document
    Export(ExportArgs),
    /// Take sessions away, with all that belongs to them
    Delete(DeleteArgs),
    /// Take old sessions away
    Prune(PruneArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// Those of all directories
    #[arg(long)]
    pub all: bool,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: usize,
    /// As a JSON array
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// The session
    #[arg(value_parser = session_id)]
    pub session: Uuid,
    /// What was said on branches that were left, too
    #[arg(long)]
    pub all: bool,
    /// As one JSON object, without what was said
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SearchArgs {
    /// The words, in capitals or not
    pub words: String,
    /// In sessions of all directories
    #[arg(long)]
    pub all: bool,
    /// In calls of tools and their results, too
    #[arg(long)]
    pub tools: bool,
    /// At most so many places
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: usize,
    /// One JSON object per line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// The session
    #[arg(value_parser = session_id)]
    pub session: Uuid,
    /// The form of the document
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ExportFormat::Markdown)]
    pub format: ExportFormat,
    /// What was said on branches that were left, too
    #[arg(long)]
    pub all: bool,
    /// The file to write, which must not be there yet; standard output if not said
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// For people
    #[value(alias = "md")]
    Markdown,
    /// For programs: an array of messages
    Json,
    /// For browsers: one page that needs nothing else
    Html,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DeleteArgs {
    /// The sessions
    #[arg(value_parser = session_id, required = true)]
    pub sessions: Vec<Uuid>,
    /// Do it: without this it is only said what would be taken away
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PruneArgs {
    /// Those in which nothing was said for so many days
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = days)]
    pub older_than: u64,
    /// The newest so many of each directory stay whatever their age
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub keep: usize,
    /// Of all directories
    #[arg(long)]
    pub all: bool,
    /// Do it: without this it is only said what would be taken away
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// The session; without one, everything around it is looked at
    #[arg(value_parser = session_id)]
    pub session: Option<Uuid>,
    /// Say of each fault what it means and what is done about it
    #[arg(long, requires = "session")]
    pub explain: bool,
    /// Write a new session without what is wrong; this one stays as it is
    #[arg(long, requires = "session")]
    pub repair: bool,
    /// The same, without what a summary stands for and without large accounts of results: the model is sent the same
    #[arg(long, conflicts_with = "repair", requires = "session")]
    pub shrink: bool,
    /// As one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RewindArgs {
    /// The session
    #[arg(value_parser = session_id)]
    pub session: Uuid,
    /// The message to go back to; the newest if not said
    #[arg(long, value_name = "MESSAGE", value_parser = session_id, conflicts_with = "undo")]
    pub to: Option<Uuid>,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Take the newest rewind back
    #[arg(long)]
    pub undo: bool,
    /// Bring back files that somebody else changed, too
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fault {
    /// The model is overloaded twice (HTTP 529)
    Overload,
    /// Two answers break off in the middle
    Cut,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MockArgs {
    /// The script, YAML or JSON ('-' for standard input)
    pub script: PathBuf,
    /// The port on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    pub port: u16,
    /// Write every request and reply to this file, one JSON object per line
    #[arg(long)]
    pub record: Option<PathBuf>,
    /// Set a variable of the script, NAME=VALUE
    #[arg(long = "var", value_name = "NAME=VALUE")]
    pub vars: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PermissionsCommand {
    /// What a session started here would decide about a command, and why
    #[command(version, disable_version_flag = true)]
    Explain(Box<ExplainArgs>),
    /// Judge the cases of a file, one JSON object per line; 1 if one is not as expected
    Check(CheckArgs),
    /// What other rules would have decided about the calls of past sessions
    #[command(version, disable_version_flag = true)]
    Replay(Box<ReplayArgs>),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// Write the decision as JSON
    #[arg(long)]
    pub json: bool,
    /// Another tool than Bash
    #[arg(long, value_name = "NAME", requires = "input")]
    pub tool: Option<String>,
    /// Its input, as JSON
    #[arg(long, value_name = "JSON")]
    pub input: Option<String>,
    /// The command, and everything a session can be started with
    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// The cases ('-' for standard input)
    #[arg(long, value_name = "FILE")]
    pub corpus: Option<PathBuf>,
    /// The same, without the option
    #[arg(conflicts_with = "corpus")]
    pub file: Option<PathBuf>,
    /// Write each decision as JSON; the summary goes to standard error
    #[arg(long)]
    pub json: bool,
    /// Write only those that are not as expected
    #[arg(long)]
    pub only_different: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    /// The rules to try: a settings file, a file with allow, ask and deny, or JSON
    #[arg(long, value_name = "FILE|JSON")]
    pub rules: String,
    /// Add them to the rules that hold now, instead of taking their place
    #[arg(long)]
    pub add: bool,
    /// All sessions of this directory, not only the newest
    #[arg(long)]
    pub all: bool,
    /// Write every call, not only those that become something else
    #[arg(long)]
    pub every: bool,
    /// Write JSON; the summary goes to standard error
    #[arg(long)]
    pub json: bool,
    /// The session (its id, or its file), and everything a session can be started with
    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RunArgs {
    /// The task
    #[arg(value_name = "PROMPT")]
    pub prompt: Option<String>,
    /// Run one task without a screen; the prompt comes from the argument, standard input, or both
    #[arg(short = 'p', long)]
    pub print: bool,
    /// A session line by line, without moving the cursor: for dumb terminals and screen readers
    #[arg(long, conflicts_with = "print", visible_alias = "ax-screen-reader")]
    pub plain: bool,
    /// What to write to standard output (stream-json needs --verbose)
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Text)]
    pub output_format: OutputFormat,
    /// Write pieces of answers as they arrive (stream-json)
    #[arg(long)]
    pub include_partial_messages: bool,
    /// Write the prompt itself, too (stream-json)
    #[arg(long)]
    pub replay_user_messages: bool,
    /// Put what the calls of each turn came to into a line, by a small model (stream-json)
    #[arg(long)]
    pub tool_use_summaries: bool,
    /// Write the words of sub-agents too, not only their calls and results (stream-json)
    #[arg(long)]
    pub forward_subagent_text: bool,
    /// Write what the loop did, and why (stream-json)
    #[arg(long)]
    pub include_loop_events: bool,
    /// Write all messages, not only the result
    #[arg(long)]
    pub verbose: bool,
    /// The model: an id, or sonnet, opus, haiku, fable
    #[arg(long)]
    pub model: Option<String>,
    /// Models to ask when that one does not answer, separated by commas, at most three
    #[arg(long, value_name = "MODELS", value_delimiter = ',')]
    pub fallback_model: Vec<String>,
    /// Stop when this much is spent, in US dollars
    #[arg(long, value_name = "USD", allow_negative_numbers = true)]
    pub max_budget_usd: Option<f64>,
    /// Never pass --max-budget-usd, not even by the call that reaches it: answers are kept as short as what is left affords
    #[arg(long, requires = "max_budget_usd")]
    pub strict_budget: bool,
    /// Bring the answer as JSON that fits this schema
    #[arg(long, value_name = "SCHEMA")]
    pub json_schema: Option<String>,
    /// How hard the model tries: low, medium, high, xhigh, max
    #[arg(long, value_name = "LEVEL")]
    pub effort: Option<String>,
    /// The tokens the whole task may take, for the model to know; not a hard limit
    #[arg(long, value_name = "TOKENS", allow_negative_numbers = true)]
    pub task_budget: Option<u64>,
    /// Keep the context within so many tokens, 100k to 1M, in this run; 'auto' for the model's own window
    #[arg(long, value_name = "TOKENS")]
    pub autocompact: Option<pelton::compact::AutoWindow>,
    /// Beta features to switch on, separated by commas
    #[arg(long, value_name = "NAMES", num_args = 1.., value_delimiter = ',')]
    pub betas: Vec<String>,
    /// Stop after this many turns
    #[arg(long, value_name = "N", value_parser = turns, allow_negative_numbers = true)]
    pub max_turns: Option<u32>,
    /// Keep the model at work until its answers have about this many tokens, as long as it has more to say
    #[arg(long, value_name = "TOKENS")]
    pub token_budget: Option<u64>,
    /// Whom a failed call cancels among the others of the same answer
    #[arg(long, value_enum, value_name = "WHOM")]
    pub sibling_abort: Option<SiblingsArg>,
    /// Make likely next calls that only look before the model asks for them
    #[arg(long)]
    pub speculation: bool,
    /// Stop when the model makes the same call again and again and it keeps bringing the same
    #[arg(long)]
    pub stop_on_repetition: bool,
    /// How much runs without asking
    #[arg(long, value_enum, value_name = "MODE", alias = "mode")]
    pub permission_mode: Option<ModeArg>,
    /// Run everything without asking (refused as root outside a sandbox)
    #[arg(long)]
    pub dangerously_skip_permissions: bool,
    /// Rules for what runs without asking, such as "Read,Bash(git diff *)"
    #[arg(long = "allowedTools", visible_alias = "allowed-tools", value_name = "RULES", num_args = 1..)]
    pub allowed_tools: Vec<String>,
    /// Rules for what never runs; a bare name takes the tool away
    #[arg(long = "disallowedTools", visible_alias = "disallowed-tools", value_name = "RULES", num_args = 1..)]
    pub disallowed_tools: Vec<String>,
    /// Which tools there are: names, "default", or "" for none
    #[arg(long, value_name = "NAMES", num_args = 1..)]
    pub tools: Option<Vec<String>>,
    /// Settings for this run, over those of the files: a file, or JSON
    #[arg(long, value_name = "FILE|JSON")]
    pub settings: Option<String>,
    /// Which settings files are read: user, project, local, separated by commas
    #[arg(long, value_name = "SOURCES")]
    pub setting_sources: Option<String>,
    /// No hooks, no sub-agents, no memory files: the model with Bash, Read and Edit
    #[arg(long)]
    pub bare: bool,
    /// Nothing of what files set up around the model, but for rules and the administrator's word: to find out what is wrong
    #[arg(long)]
    pub safe_mode: bool,
    /// Keep what depends on this machine out of the system prompt, and tell it with the first prompt
    #[arg(long)]
    pub exclude_dynamic_system_prompt_sections: bool,
    /// Add this to the system prompt of every sub-agent
    #[arg(long, value_name = "TEXT")]
    pub append_subagent_system_prompt: Option<String>,
    #[command(flatten)]
    pub elsewhere: ElsewhereArgs,
    /// No skills and no custom commands
    #[arg(long)]
    pub disable_slash_commands: bool,
    /// A further directory to work in
    #[arg(long, value_name = "DIR")]
    pub add_dir: Vec<PathBuf>,
    /// Replace the system prompt
    #[arg(long, value_name = "TEXT")]
    pub system_prompt: Option<String>,
    /// Add to the system prompt
    #[arg(long, value_name = "TEXT")]
    pub append_system_prompt: Option<String>,
    /// Go on with the newest session of this directory
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub continue_newest: bool,
    /// Go on with the session of this id or name; without one, choose
    #[arg(short = 'r', long, value_name = "ID|NAME", num_args = 0..=1, default_missing_value = "")]
    pub resume: Option<String>,
    /// Put files back to what they were when a message of the resumed session was sent, and end
    #[arg(long, value_name = "UUID", value_parser = session_id, requires = "resume")]
    pub rewind_files: Option<Uuid>,
    /// Give the new session this id
    #[arg(long, value_name = "UUID", value_parser = session_id)]
    pub session_id: Option<Uuid>,
    /// Do not record the session
    #[arg(long)]
    pub no_session_persistence: bool,
    /// How much a crash of the machine may cost: nothing (the default), or the last seconds
    #[arg(long, value_enum, value_name = "HOW")]
    pub durability: Option<DurabilityArg>,
    /// What programs say that drive a session
    #[command(flatten)]
    pub client: ClientArgs,
    /// Print the version
    #[arg(short = 'v', visible_short_alias = 'V', long, action = clap::ArgAction::Version)]
    version: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The answer; on a terminal as it comes
    Text,
    /// One result object, at the end
    Json,
    /// One message per line, as it comes
    StreamJson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    /// Ask before anything that is not just looking
    #[value(alias = "manual")]
    Default,
    /// Edit files in the working directories without asking
    #[value(name = "acceptEdits")]
    AcceptEdits,
    /// Look only
    Plan,
    /// Never ask: deny what would be asked
    #[value(name = "dontAsk")]
    DontAsk,
    /// Run everything that no rule denies
    #[value(name = "bypassPermissions")]
    BypassPermissions,
    /// A mode of other programs; the default takes its place
    Auto,
    /// Another of them
    #[value(hide = true)]
    Delegate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SiblingsArg {
    /// Nobody: an error is an answer like any other
    Never,
    /// When it may have changed something: those behind it that would change something, too
    #[value(name = "side_effects")]
    SideEffects,
    /// All of them
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DurabilityArg {
    /// Wait for the disk where it matters
    Synced,
    /// Write, but do not wait for the disk
    Fast,
}

/// Reads the command line. Help and version print and end well; mistakes are told in one line and end with 1.
pub(crate) fn parse(words: impl Iterator<Item = OsString>) -> Result<Args, ExitCode> {
    let words: Vec<OsString> = words.collect();
    read(&words).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A reader that is gone, as in `pelton --help | head`, has seen enough.
            let _ = error.print();
            ExitCode::SUCCESS
        }
        _ => {
            // A prompt of one word cannot be followed by another.
            let first = words.get(1).and_then(|first| first.to_str());
            tell(&mistake(&error, first));
            ExitCode::FAILURE
        }
    })
}

/// Whether a client is at the other end, by words that may be wrong otherwise.
pub(crate) fn are_of_a_client(words: impl Iterator<Item = OsString>) -> bool {
    let words: Vec<OsString> = words.collect();
    let said = |pair: &[OsString]| pair[0] == "--input-format" && pair[1] == "stream-json";
    words.iter().any(|word| word == "--input-format=stream-json") || words.windows(2).any(said)
}

/// The definition, for completions and the manual.
pub(crate) fn definition() -> clap::Command {
    Args::command()
}

impl RunArgs {
    /// Whether somebody is in front of it.
    pub fn is_attended(&self) -> bool {
        !self.print && !self.client.streams_input()
    }

    /// Names every file and directory by its whole path, as it is called from this directory: what is said means the same wherever the
    /// session goes.
    pub fn whole_paths(&mut self, from: &Path) {
        let client = &mut self.client;
        let files = [
            &mut client.system_prompt_file,
            &mut client.append_system_prompt_file,
            &mut client.debug_file,
            &mut client.project_config_root,
        ];
        let listed = [&mut self.add_dir, &mut client.plugin_dir, &mut client.plugin_dir_no_mcp];
        let paths = files.into_iter().flatten().chain(listed.into_iter().flatten());
        paths.for_each(|path| *path = from.join(&*path));
        let texts = self.settings.iter_mut().chain(&mut client.agents).chain(&mut client.mcp_config);
        for text in texts.filter(|text| !text.trim_start().starts_with(['{', '['])) {
            *text = from.join(&*text).to_string_lossy().into_owned();
        }
    }
}

fn read(words: &[OsString]) -> Result<Args, clap::Error> {
    if words.get(1).is_some_and(|first| is_command(first)) {
        return Args::try_parse_from(words);
    }
    match TaskOnly::try_parse_from(words) {
        Ok(TaskOnly { run }) => Ok(Args { command: None, run }),
        // The help for all of it, as long or short as it was asked for.
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            let long = words.iter().any(|word| word == "--help");
            Args::try_parse_from(["pelton", if long { "--help" } else { "-h" }])
        }
        Err(error) => Err(error),
    }
}

fn is_command(word: &OsStr) -> bool {
    // Most runs begin with an option: the definition of all commands is not made to see that it is none of them.
    if word.as_encoded_bytes().starts_with(b"-") {
        return false;
    }
    word == "help"
        || definition()
            .get_subcommands()
            .any(|command| word == command.get_name() || command.get_all_aliases().any(|alias| word == alias))
}

fn turns(text: &str) -> Result<u32, &'static str> {
    text.parse().ok().filter(|turns| *turns > 0).ok_or("expected a whole number, 1 or more")
}

/// A number of days, also with a letter that says so.
fn days(text: &str) -> Result<u64, &'static str> {
    text.strip_suffix('d').unwrap_or(text).parse().map_err(|_| "expected a number of days, such as 30")
}

fn session_id(text: &str) -> Result<Uuid, &'static str> {
    text.parse().map_err(|_| "expected a UUID, such as 5f0c6a52-93b1-4c3e-8d27-1c0f6a7e9b40")
}

/// What is wrong with the command line, in one line.
fn mistake(error: &clap::Error, first: Option<&str>) -> String {
    let arg = text_of(error, ContextKind::InvalidArg).unwrap_or_default();
    let suggestion = text_of(error, ContextKind::SuggestedArg)
        .or_else(|| text_of(error, ContextKind::SuggestedValue))
        // Of one or two letters everything is a neighbour.
        .filter(|_| arg.trim_start_matches('-').len() > 2)
        .map(|near| format!(" (did you mean '{near}'?)"))
        .unwrap_or_default();
    let allowed = text_of(error, ContextKind::ValidValue).map(|values| format!(" (one of {values})"));
    match error.kind() {
        ErrorKind::UnknownArgument if arg.starts_with('-') => {
            format!("error: unknown option '{arg}'{suggestion}")
        }
        ErrorKind::UnknownArgument => match first.and_then(nearest_command) {
            Some(command) => format!("error: unexpected argument '{arg}': did you mean 'pelton {command}'?"),
            None => format!("error: unexpected argument '{arg}': a prompt of several words goes in quotes"),
        },
        ErrorKind::InvalidSubcommand => {
            let word = text_of(error, ContextKind::InvalidSubcommand).unwrap_or_default();
            let near = text_of(error, ContextKind::SuggestedSubcommand);
            // The nearest comes last.
            let near = near.as_deref().and_then(|near| near.rsplit(", ").next());
            let near = near.map_or("see --help".to_owned(), |near| format!("did you mean '{near}'?"));
            format!("error: there is no such command: '{word}' ({near})")
        }
        ErrorKind::InvalidValue if text_of(error, ContextKind::InvalidValue).is_none() => {
            format!("error: {arg} needs a value{}", allowed.unwrap_or_default())
        }
        ErrorKind::MissingRequiredArgument => format!("error: {arg} is missing (see --help)"),
        ErrorKind::ArgumentConflict => match text_of(error, ContextKind::PriorArg) {
            Some(other) => format!("error: {arg} cannot be used together with {other}"),
            None => first_line(error),
        },
        _ => format!("{}{}{suggestion}", first_line(error), allowed.unwrap_or_default()),
    }
}

/// Says what is wrong; usage and tips follow it.
fn first_line(error: &clap::Error) -> String {
    error.to_string().lines().next().unwrap_or("error: bad command line").to_owned()
}

fn text_of(error: &clap::Error, kind: ContextKind) -> Option<String> {
    let text = match error.get(kind)? {
        ContextValue::String(text) => text.clone(),
        ContextValue::Strings(texts) => texts.join(", "),
        ContextValue::StyledStr(text) => text.to_string(),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}
