//! What is said about the configuration.

use clap::Subcommand;

use super::RunArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Name what does not do what it seems to say: unknown keys, rules that never decide, hooks that are never called or
    /// hold nothing back, agents without tools; 1 if there is any
    #[command(version, disable_version_flag = true)]
    Check(Box<ConfigArgs>),
    /// The files that count here, or what they come to
    #[command(version, disable_version_flag = true)]
    Show(Box<ShowConfigArgs>),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    /// As one JSON object
    #[arg(long)]
    pub json: bool,
    /// Everything a session can be started with
    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowConfigArgs {
    /// Every value that counts, and the file and line it stands at
    #[arg(long)]
    pub effective: bool,
    /// As one JSON object
    #[arg(long)]
    pub json: bool,
    /// Everything a session can be started with
    #[command(flatten)]
    pub run: RunArgs,
}
