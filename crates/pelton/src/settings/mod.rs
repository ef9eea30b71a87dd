//! What settings files say, as one typed value. Pure: whoever finds the files reads them.
//!
//! [`read()`] makes [`Settings`] of one file and names what is wrong with it; [`Settings::over`] lays one file over
//! another; [`Settings::give_up_grants`] takes out what a directory may not grant itself, [`Settings::obey`] what an
//! administrator does not let others say. Keys that are not known are
//! passed over: files are shared with other programs and other versions.

mod relaxed; // JSON with comments and trailing commas
mod lines; // where things stand in a file
mod read; // from a file's text to settings, with the place of everything that is wrong
pub(crate) mod sandbox; // the object `sandbox`
mod manner; // how the model works and answers
mod models; // which models may be asked
mod tools; // the tools themselves
mod servers; // which servers of tools may be used
mod approval; // what an approval of a server is bound to
mod trust; // what counts before a directory is trusted
mod grants; // what a repository may not grant itself
mod policy; // what the administrator says above everybody
mod edit; // changing a file by what has to be changed in it
mod effective; // what all files together come to, and where each value stands
mod powers; // what of a file grants or runs something, entry by entry
mod lint; // what does not do what it seems to say

use std::collections::BTreeMap;
use std::time::Duration;

use pelton_model::Effort;
use pelton_model::catalogue::Prices;
use serde_json::{Map, Value};

pub use sandbox::{SandboxSettings, Withheld};

pub use approval::{Approval, approval, fingerprint};
pub use edit::{Unwritable, edited, value_of, with_value};
pub use effective::{Layered, Setting, effective};
pub use lint::{Around, Finding, FindingKind, Looked, Weight, Written, lint};
pub use manner::{MannerSettings, Patience, ScreenSettings, WorktreeSettings};
pub use models::ModelSettings;
pub use policy::{PluginsOnly, PolicySettings};
pub use powers::{Power, powers, read_approved};
pub use read::{BrokenSettings, Origin, Problem, read};
pub use servers::{ServerMatch, ServerSettings};
pub use tools::ToolSettings;
pub use trust::{Brought, Treatment, Watched, untrusted};

use crate::context::AgentsMd;
use crate::hooks::{HookConfig, HttpHookTerms};
use crate::permission::{Mode, RuleSet};
use crate::skills::SkillShown;
use crate::tools::Siblings;
use crate::transcript::Durability;

/// What one file says, or several together. `None` means that nothing was said.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, read};
///
/// let origin = |source| Origin { source, file: "settings.json", anchor: None };
/// let (user, _) = read(r#"{"model": "opus", "effortLevel": "low"}"#, origin(&Source::User))?;
/// let (project, _) = read(r#"{"model": "haiku"}"#, origin(&Source::Project))?;
/// let settings = project.over(user);
/// assert_eq!((settings.model.as_deref(), settings.effort.is_some()), (Some("haiku"), true));
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Settings {
    /// `model`: the model to ask.
    pub model: Option<String>,
    /// `fallbackModel`: the models to ask when that one does not answer, in this order.
    pub fallback_models: Option<Vec<String>>,
    /// `effortLevel`: how hard the model tries.
    pub effort: Option<Effort>,
    /// Which models may be asked, and how.
    pub models: ModelSettings,
    /// `fastMode`: whether fast answers are asked for.
    pub fast_mode: Option<bool>,
    /// `fastModePerSessionOptIn`: fast answers are asked for only where a session asks for them.
    pub fast_mode_for_this_run: Option<bool>,
    /// How the model works and answers.
    pub manner: MannerSettings,
    /// `worktree`: how checkouts are made for agents that want one of their own.
    pub worktrees: WorktreeSettings,
    /// How it looks at a terminal.
    pub screen: ScreenSettings,
    /// How much of what is printed the model reads.
    pub output: OutputSettings,
    /// `apiKeyHelper`: a line for the shell that prints a key.
    pub api_key_helper: Option<String>,
    /// `env`: variables for the session and its processes.
    pub env: BTreeMap<String, String>,
    /// `permissions.defaultMode`: how much runs without asking.
    pub mode: Option<Mode>,
    /// `permissions.allow`, `.ask` and `.deny`.
    pub rules: RuleSet,
    /// `permissions.additionalDirectories`, as written.
    pub additional_dirs: Vec<String>,
    /// Something in `permissions.ask` or `.deny` could not be read: what it would have kept from running is not known.
    pub restrictions_unknown: bool,
    /// What the administrator of the machine says above everybody.
    pub policy: PolicySettings,
    /// `hooks`.
    pub hooks: HookConfig,
    /// `disableAllHooks`.
    pub disable_all_hooks: Option<bool>,
    /// `allowedHttpHookUrls` and `httpHookAllowedEnvVars`: which addresses hooks may be, and what they may be told.
    pub http_hooks: HttpHookTerms,
    /// Hooks that skills and sub-agents bring are not called, because somebody switched hooks off.
    pub brought_hooks_off: bool,
    /// `modelPricing`: what models cost.
    pub prices: BTreeMap<String, Prices>,
    /// `retry`: how patient a call is.
    pub retry: RetrySettings,
    /// `loop`: how the loop goes about calls.
    pub turns: LoopSettings,
    /// What the model is told of the project and its user.
    pub memory: MemorySettings,
    /// Which servers of tools may be used.
    pub servers: ServerSettings,
    /// How skills are told of and followed.
    pub skills: SkillSettings,
    /// Which plugins count.
    pub plugins: PluginSettings,
    /// The tools themselves.
    pub tools: ToolSettings,
    /// `sandbox`: commands in a box.
    pub sandbox: SandboxSettings,
    /// What is said about making room in the context.
    pub compact: CompactSettings,
    /// `fileCheckpointingEnabled`: whether it is kept what the agent does to files.
    pub file_checkpointing: Option<bool>,
    /// `fileHistory.maxFileBytes`: how large a file is kept because a command might change it.
    pub file_history_file_bytes_max: Option<u64>,
    /// `cleanupPeriodDays`: how long the histories of files are kept, in days; at least one.
    pub cleanup_days: Option<u64>,
    /// `fileHistory.maxTotalBytes`: how much is kept in all.
    pub file_history_total_bytes_max: Option<u64>,
    /// `durability`: how much of a session a crash of the machine may cost.
    pub durability: Option<Durability>,
}

/// The object `loop`: how the loop goes about calls.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, read};
/// use pelton::tools::Siblings;
///
/// # let origin = Origin { source: &Source::User, file: "settings.json", anchor: None };
/// let (settings, _) = read(r#"{"loop": {"siblingAbort": "side_effects"}}"#, origin)?;
/// assert_eq!(settings.turns.siblings, Some(Siblings::SideEffects));
/// assert_eq!(settings.turns.stop_on_repetition, None); // nothing is said about it
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopSettings {
    /// `siblingAbort`: whom a failed call cancels among the others of the same answer.
    pub siblings: Option<Siblings>,
    /// `speculation`: whether calls are made before the model asks for them.
    pub speculation: Option<bool>,
    /// `stopOnRepetition`: whether a model that makes the same call again and again is stopped.
    pub stop_on_repetition: Option<bool>,
    /// `backgroundOnTimeout`: whether a command whose time is up goes on in the background.
    pub background_on_timeout: Option<bool>,
}

/// What the model is told of the project and its user.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, read};
/// use pelton::AgentsMd;
///
/// # let origin = Origin { source: &Source::User, file: "settings.json", anchor: None };
/// let (settings, _) = read(r#"{"agentsMd": "both", "claudeMdExcludes": ["vendor/**"]}"#, origin)?;
/// assert_eq!(settings.memory.agents_md, Some(AgentsMd::Both));
/// assert_eq!(settings.memory.excludes, ["vendor/**"]);
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemorySettings {
    /// `claudeMdExcludes`: patterns of memory files that do not count.
    pub excludes: Vec<String>,
    /// `agentsMd`: when `AGENTS.md` counts.
    pub agents_md: Option<AgentsMd>,
    /// `autoMemoryEnabled`: whether the model keeps notes of its own.
    pub notes: Option<bool>,
    /// `autoMemoryDirectory`: where, as written. Nothing of the kind is taken from a project.
    pub notes_dir: Option<String>,
    /// `includeGitInstructions`: whether the model is told the state of the repository.
    pub git: Option<bool>,
    /// `claudeMd` of managed settings: what everybody's model is told.
    pub managed_text: Option<String>,
}

/// How skills are told of and followed.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, read};
///
/// # let origin = Origin { source: &Source::User, file: "settings.json", anchor: None };
/// let (settings, _) = read(r#"{"skillListingBudgetFraction": 0.02, "disableSkillShellExecution": true}"#, origin)?;
/// assert_eq!(settings.skills.listing_permille, Some(20));
/// assert_eq!(settings.skills.shell_off, Some(true));
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillSettings {
    /// `disableSkillShellExecution`: commands in skills are not run.
    pub shell_off: Option<bool>,
    /// `disableBundledSkills`: the texts that come with the program (`/init`, `/review`) cannot be called.
    pub bundled_off: Option<bool>,
    /// `skillListingBudgetFraction`, in thousandths: the share of the context window for telling what skills there are.
    pub listing_permille: Option<u16>,
    /// `skillListingMaxDescChars`: characters told of one skill.
    pub description_chars_max: Option<usize>,
    /// `skillOverrides`: who sees which skill, by their names.
    pub shown: BTreeMap<String, SkillShown>,
}

/// How much of what is printed the model reads.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, read};
///
/// # let origin = Origin { source: &Source::User, file: "settings.json", anchor: None };
/// let (settings, _) = read(r#"{"bashOutputMaxChars": 5000}"#, origin)?;
/// assert_eq!((settings.output.command_chars_max, settings.output.task_chars_max), (Some(5000), None));
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputSettings {
    /// `bashOutputMaxChars`: characters of a command's output.
    pub command_chars_max: Option<usize>,
    /// `taskOutputMaxChars`: characters of what a task in the background printed.
    pub task_chars_max: Option<usize>,
}

/// Which plugins count.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, read};
///
/// # let origin = Origin { source: &Source::User, file: "settings.json", anchor: None };
/// let (settings, _) = read(r#"{"enabledPlugins": {"review@team": true, "spell@team": false}}"#, origin)?;
/// let enabled: Vec<&String> = settings.plugins.enabled.iter().filter(|(_, on)| **on).map(|(name, _)| name).collect();
/// assert_eq!(enabled, ["review@team"]);
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PluginSettings {
    /// `enabledPlugins`: by their `name@marketplace`.
    pub enabled: BTreeMap<String, bool>,
    /// `extraKnownMarketplaces`, as far as they are directories of this machine: where each is, as written.
    pub marketplaces: BTreeMap<String, String>,
    /// `strictKnownMarketplaces`: the only ones that plugins may come from, by what is known of their source; none if it is empty.
    pub only_from: Option<Vec<Value>>,
    /// `blockedMarketplaces`: ones that no plugin comes from.
    pub never_from: Vec<Value>,
    /// `pluginConfigs`: what plugins are told that ask their user for something, by their `name@marketplace`.
    pub options: BTreeMap<String, Map<String, Value>>,
    /// No hooks of plugins are used.
    pub without_hooks: bool,
}

/// The object `retry`: how patient a call is.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, read};
/// use std::time::Duration;
///
/// # let origin = Origin { source: &Source::User, file: "settings.json", anchor: None };
/// let (settings, _) = read(r#"{"retry": {"maxRetries": 3, "idleTimeoutMs": 20000}}"#, origin)?;
/// assert_eq!(settings.retry.retries_max, Some(3));
/// assert_eq!(settings.retry.idle, Some(Duration::from_secs(20)));
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetrySettings {
    /// `maxRetries`.
    pub retries_max: Option<u32>,
    /// `horizonSeconds`: repeat for so long instead of so often.
    pub horizon: Option<Duration>,
    /// `unattended`: outlast rate limits and overload, however long they take.
    pub unattended: Option<bool>,
    /// `idleTimeoutMs`: a stream without any event for so long is cut.
    pub idle: Option<Duration>,
    /// `pingOnlyTimeoutMs`: a stream with nothing but pings for so long is cut.
    pub idle_pings_only: Option<Duration>,
    /// `noticeMs`: silence of so long is told.
    pub notice: Option<Duration>,
    /// `heartbeatMs`: how often a wait says that it goes on.
    pub heartbeat: Option<Duration>,
    /// `nonStreamingFallback`: ask for the answer in one piece when streams break.
    pub non_streaming_fallback: Option<bool>,
    /// `fastModeWaitMs`: the longest wait that fast mode is worth.
    pub fast_wait_max: Option<Duration>,
    /// `fastModeCooldownMs`: how long standard speed has to do after a longer one.
    pub fast_cooldown: Option<Duration>,
}

/// What is said about making room in the context.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, read};
///
/// # let origin = Origin { source: &Source::User, file: "settings.json", anchor: None };
/// let (settings, _) = read(r#"{"autoCompactEnabled": false, "autoCompactWindow": 150000}"#, origin)?;
/// assert_eq!((settings.compact.auto, settings.compact.window_tokens), (Some(false), Some(150_000)));
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactSettings {
    /// `autoCompactEnabled`: whether it is done before the API refuses.
    pub auto: Option<bool>,
    /// `autoCompactWindow`: a window to keep within.
    pub window_tokens: Option<u64>,
    /// `precomputeCompactionEnabled`: whether it is prepared in the background.
    pub folds: Option<bool>,
}

impl Settings {
    /// These settings laid over others: of one value the upper counts, lists and hooks add up, the lower first. The
    /// order of fallback models is one value.
    #[must_use]
    pub fn over(self, lower: Self) -> Self {
        let mut settings = Self {
            model: self.model.or(lower.model),
            fallback_models: self.fallback_models.or(lower.fallback_models),
            effort: self.effort.or(lower.effort),
            models: self.models.over(lower.models),
            fast_mode: self.fast_mode.or(lower.fast_mode),
            fast_mode_for_this_run: self.fast_mode_for_this_run.or(lower.fast_mode_for_this_run),
            manner: self.manner.over(lower.manner),
            worktrees: self.worktrees.over(lower.worktrees),
            screen: self.screen.over(lower.screen),
            output: OutputSettings {
                command_chars_max: self.output.command_chars_max.or(lower.output.command_chars_max),
                task_chars_max: self.output.task_chars_max.or(lower.output.task_chars_max),
            },
            http_hooks: self.http_hooks.over(lower.http_hooks),
            api_key_helper: self.api_key_helper.or(lower.api_key_helper),
            env: lower.env,
            mode: self.mode.or(lower.mode),
            rules: lower.rules,
            additional_dirs: lower.additional_dirs,
            restrictions_unknown: self.restrictions_unknown || lower.restrictions_unknown,
            policy: self.policy.over(lower.policy),
            hooks: lower.hooks,
            disable_all_hooks: self.disable_all_hooks.or(lower.disable_all_hooks),
            brought_hooks_off: self.brought_hooks_off || lower.brought_hooks_off,
            prices: lower.prices,
            retry: self.retry.over(lower.retry),
            turns: self.turns.over(lower.turns),
            memory: self.memory.over(lower.memory),
            servers: self.servers.over(lower.servers),
            skills: self.skills.over(lower.skills),
            plugins: self.plugins.over(lower.plugins),
            tools: self.tools.over(lower.tools),
            sandbox: self.sandbox.over(lower.sandbox),
            cleanup_days: self.cleanup_days.or(lower.cleanup_days),
            compact: CompactSettings {
                auto: self.compact.auto.or(lower.compact.auto),
                window_tokens: self.compact.window_tokens.or(lower.compact.window_tokens),
                folds: self.compact.folds.or(lower.compact.folds),
            },
            durability: self.durability.or(lower.durability),
            file_checkpointing: self.file_checkpointing.or(lower.file_checkpointing),
            file_history_file_bytes_max: self
                .file_history_file_bytes_max
                .or(lower.file_history_file_bytes_max),
            file_history_total_bytes_max: self
                .file_history_total_bytes_max
                .or(lower.file_history_total_bytes_max),
        };
        settings.env.extend(self.env);
        settings.rules.extend(self.rules);
        settings.additional_dirs.extend(self.additional_dirs);
        settings.hooks.extend(self.hooks);
        settings.prices.extend(self.prices);
        settings
    }
}

impl PluginSettings {
    fn over(self, mut lower: Self) -> Self {
        lower.enabled.extend(self.enabled);
        lower.marketplaces.extend(self.marketplaces);
        for (plugin, options) in self.options {
            lower.options.entry(plugin).or_default().extend(options);
        }
        lower.without_hooks |= self.without_hooks;
        // Whoever restricts has a reason: nobody allows it again.
        lower.never_from.extend(self.never_from);
        lower.only_from = match (self.only_from, lower.only_from) {
            (Some(one), Some(other)) => {
                Some(one.into_iter().filter(|source| other.contains(source)).collect())
            }
            (one, other) => one.or(other),
        };
        lower
    }
}

impl RetrySettings {
    fn over(self, lower: Self) -> Self {
        Self {
            retries_max: self.retries_max.or(lower.retries_max),
            horizon: self.horizon.or(lower.horizon),
            unattended: self.unattended.or(lower.unattended),
            idle: self.idle.or(lower.idle),
            idle_pings_only: self.idle_pings_only.or(lower.idle_pings_only),
            notice: self.notice.or(lower.notice),
            heartbeat: self.heartbeat.or(lower.heartbeat),
            non_streaming_fallback: self.non_streaming_fallback.or(lower.non_streaming_fallback),
            fast_wait_max: self.fast_wait_max.or(lower.fast_wait_max),
            fast_cooldown: self.fast_cooldown.or(lower.fast_cooldown),
        }
    }
}

impl MemorySettings {
    fn over(self, mut lower: Self) -> Self {
        lower.excludes.extend(self.excludes);
        Self {
            excludes: lower.excludes,
            agents_md: self.agents_md.or(lower.agents_md),
            notes: self.notes.or(lower.notes),
            notes_dir: self.notes_dir.or(lower.notes_dir),
            git: self.git.or(lower.git),
            managed_text: self.managed_text.or(lower.managed_text),
        }
    }
}

impl SkillSettings {
    fn over(self, mut lower: Self) -> Self {
        lower.shown.extend(self.shown);
        Self {
            shown: lower.shown,
            // Whoever switches it off has a reason: nobody above switches it on again.
            bundled_off: self.bundled_off.or(lower.bundled_off),
            shell_off: if lower.shell_off == Some(true) {
                lower.shell_off
            } else {
                self.shell_off.or(lower.shell_off)
            },
            listing_permille: self.listing_permille.or(lower.listing_permille),
            description_chars_max: self.description_chars_max.or(lower.description_chars_max),
        }
    }
}

impl LoopSettings {
    fn over(self, lower: Self) -> Self {
        Self {
            siblings: self.siblings.or(lower.siblings),
            speculation: self.speculation.or(lower.speculation),
            background_on_timeout: self.background_on_timeout.or(lower.background_on_timeout),
            stop_on_repetition: self.stop_on_repetition.or(lower.stop_on_repetition),
        }
    }
}

#[cfg(test)]
mod tests;
