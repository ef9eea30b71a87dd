//! What is said about what is kept of a project.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ProjectCommand {
    /// Take away all that is kept of a project: its sessions and what belongs to them, its notes, its prompts, and what is
    /// remembered about it. The project itself is not touched
    Purge(PurgeArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct PurgeArgs {
    /// The project's directory; the current one if not said. It need not be there any more
    pub dir: Option<PathBuf>,
    /// Of every project
    #[arg(long, conflicts_with = "dir")]
    pub all: bool,
    /// Say what would be taken away, and do nothing
    #[arg(long, conflicts_with_all = ["yes", "interactive"])]
    pub dry_run: bool,
    /// Do it without being asked
    #[arg(short, long, conflicts_with = "interactive")]
    pub yes: bool,
    /// Be asked about each thing
    #[arg(short, long)]
    pub interactive: bool,
}
