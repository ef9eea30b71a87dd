//! What `pelton plugin` is told.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Copy a plugin out of a marketplace, and switch it on
    #[command(visible_alias = "i")]
    Install(PluginArgs),
    /// Take a plugin away, with its copy and what it has kept
    #[command(visible_aliases = ["remove", "rm"])]
    Uninstall(UninstallArgs),
    /// Switch a plugin on
    Enable(PluginArgs),
    /// Switch a plugin off; it stays where it is
    Disable(DisableArgs),
    /// Copy a plugin again, as its marketplace has it now
    Update(UpdateArgs),
    /// The plugins that are installed, and whether each is used here
    List(PluginListArgs),
    /// What a plugin brings
    Details {
        /// Its name, or NAME@MARKETPLACE
        plugin: String,
    },
    /// Take away copies that no list names any more
    Prune {
        /// Say what would be taken away, and do nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Begin a new plugin in a folder
    Init {
        /// The folder; its last part is the name of the plugin
        dir: PathBuf,
    },
    /// Say what is wrong with a plugin or a marketplace; 1 if there is anything
    Validate {
        /// The folder, or its plugin.json or marketplace.json
        #[arg(default_value = ".")]
        path: PathBuf,
    },
    /// Make the git tag of a release, NAME--vVERSION
    Tag(TagArgs),
    /// Folders that list plugins
    #[command(subcommand)]
    Marketplace(MarketplaceCommand),
}

#[derive(Debug, clap::Args)]
pub(crate) struct PluginArgs {
    /// Where it is switched on: for you everywhere, for everybody in this project, for you in it
    #[arg(short, long, value_enum, default_value_t = SettingsScope::User)]
    pub scope: SettingsScope,
    /// Its name, or NAME@MARKETPLACE
    pub plugin: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UninstallArgs {
    /// Where it is switched on
    #[arg(short, long, value_enum, default_value_t = SettingsScope::User)]
    pub scope: SettingsScope,
    /// Leave what it has kept
    #[arg(long)]
    pub keep_data: bool,
    /// Its name, or NAME@MARKETPLACE
    pub plugin: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DisableArgs {
    /// Where it is switched off
    #[arg(short, long, value_enum, default_value_t = SettingsScope::User)]
    pub scope: SettingsScope,
    /// All that are switched on
    #[arg(short, long, conflicts_with = "plugin", required_unless_present = "plugin")]
    pub all: bool,
    /// Its name, or NAME@MARKETPLACE
    pub plugin: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UpdateArgs {
    /// The scope it was installed for; the only one if not said
    #[arg(short, long, value_enum)]
    pub scope: Option<SettingsScope>,
    /// Its name, or NAME@MARKETPLACE
    pub plugin: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PluginListArgs {
    /// As a JSON array
    #[arg(long)]
    pub json: bool,
    /// Those that could be installed, too
    #[arg(long)]
    pub available: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TagArgs {
    /// The plugin's folder
    #[arg(default_value = ".")]
    pub path: PathBuf,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Also with changes that are not committed, and in the place of a tag that is there
    #[arg(short, long)]
    pub force: bool,
    /// What the tag says; %s stands for the version
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,
    /// Push it, too
    #[arg(long)]
    pub push: bool,
    /// Where it is pushed to
    #[arg(long, default_value = "origin", value_name = "NAME")]
    pub remote: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MarketplaceCommand {
    /// Make the plugins of a folder known
    Add {
        /// Where it is said: for you everywhere, for everybody in this project, for you in it
        #[arg(short, long, value_enum, default_value_t = SettingsScope::User)]
        scope: SettingsScope,
        /// The folder, or its marketplace.json. Nothing is fetched: clone what is elsewhere
        source: String,
    },
    /// Those that are known
    List {
        /// As a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Forget one, and take away the plugins that came from it
    #[command(visible_alias = "rm")]
    Remove {
        /// Its name
        name: String,
    },
    /// Look again at what they list; all if none is named
    Update {
        /// Its name
        name: Option<String>,
    },
}

/// Whose settings say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SettingsScope {
    /// You, everywhere
    User,
    /// Everybody in this project: .claude/settings.json
    Project,
    /// You, in this project: .claude/settings.local.json
    Local,
}

impl SettingsScope {
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
        }
    }
}
