//! What `pelton mcp` is told.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::RunArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Add a server
    #[command(after_help = ADD_HELP)]
    Add(AddArgs),
    /// Add a server, as its entry in JSON says
    AddJson(AddJsonArgs),
    /// Add the servers that the desktop application has
    AddFromClaudeDesktop(FromDesktopArgs),
    /// The servers that a session started here would have
    List,
    /// What is known of one server
    Get {
        /// Its name
        name: String,
    },
    /// Take a server away
    Remove(RemoveArgs),
    /// Connect to servers and say what they offer; 1 if one cannot be reached
    Test {
        /// Their names; all that a session started here would have, if not said
        names: Vec<String>,
    },
    /// Forget what was said about the servers that this project brings (.mcp.json): they are asked about again
    ResetProjectChoices,
    /// Log in at a server; the login is kept and renewed
    Login(LoginArgs),
    /// Forget a login
    Logout {
        /// The server
        name: String,
    },
    /// Offer the built-in tools as a server, on standard input and output. Rules and mode hold as in a session; what would be
    /// asked about is refused
    #[command(version, disable_version_flag = true)]
    Serve(Box<ServeArgs>),
}

const ADD_HELP: &str = "\
Examples:
  pelton mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  pelton mcp add db -e DB_URL=postgres://localhost -- db-server --read-only
  pelton mcp add --transport http docs https://docs.example.com/mcp --header \"X-Key: abc\"
  pelton mcp add -s project team -- team-server";

#[derive(Debug, clap::Args)]
pub(crate) struct AddArgs {
    /// Where it is kept: for you in this project, for everybody in it (.mcp.json), or for you everywhere
    #[arg(short, long, value_enum, default_value_t = KeptIn::Local)]
    pub scope: KeptIn,
    /// How it is reached
    #[arg(short, long, value_enum, default_value_t = Transport::Stdio)]
    pub transport: Transport,
    /// A variable of the program's environment, KEY=VALUE
    #[arg(short, long = "env", value_name = "KEY=VALUE")]
    pub env: Vec<String>,
    /// A header of every request, "Name: value"
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub headers: Vec<String>,
    /// The longest a call may take, in milliseconds
    #[arg(long, value_name = "MS")]
    pub timeout: Option<u64>,
    /// Its name
    pub name: String,
    /// The program and what it is told (put -- in front of it), or the address
    #[arg(required = true, value_name = "COMMAND_OR_URL")]
    pub target: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AddJsonArgs {
    /// Where it is kept
    #[arg(short, long, value_enum, default_value_t = KeptIn::Local)]
    pub scope: KeptIn,
    /// Its name
    pub name: String,
    /// Its entry, such as '{"type":"http","url":"https://docs.example.com/mcp"}'
    pub json: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FromDesktopArgs {
    /// Where they are kept
    #[arg(short, long, value_enum, default_value_t = KeptIn::Local)]
    pub scope: KeptIn,
    /// The application's file, if it is not where it usually is
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Only these
    pub names: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RemoveArgs {
    /// Where it is kept; needed if it is in more than one place
    #[arg(short, long, value_enum)]
    pub scope: Option<KeptIn>,
    /// Its name
    pub name: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct LoginArgs {
    /// The server
    pub name: String,
    /// Open no browser; the address is printed in any case
    #[arg(long)]
    pub no_browser: bool,
    /// The port on 127.0.0.1 to come back to; any that is free if not said
    #[arg(long)]
    pub port: Option<u16>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Everything a session can be started with
    #[command(flatten)]
    pub run: RunArgs,
}

/// Where a server is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeptIn {
    /// You alone, in this project
    Local,
    /// Everybody who has this project: .mcp.json
    Project,
    /// You alone, everywhere
    User,
}

impl KeptIn {
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// A program, through its standard streams
    Stdio,
    /// An address
    Http,
    /// An address, as the first version of the protocol had it
    Sse,
}
