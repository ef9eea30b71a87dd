//! What the administrator of a machine says above everybody else.

use serde_json::Value;

use super::{ServerMatch, Settings};
use crate::permission::{Layer, Mode};

/// What only managed settings may say, and what of them is not to be changed by flags.
///
/// See [`read()`](super::read()).
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, read};
///
/// # let origin = Origin { source: &Source::Policy, file: "settings.json", anchor: None };
/// let (settings, _) = read(r#"{"allowManagedPermissionRulesOnly": true}"#, origin)?;
/// assert_eq!(settings.policy.rules_only, Some(true));
/// assert_eq!(settings.policy.hooks_only, None);
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicySettings {
    /// `allowManagedPermissionRulesOnly`: no other rule allows anything.
    pub rules_only: Option<bool>,
    /// `allowManagedHooksOnly`: no other hooks run, but those of the program around.
    pub hooks_only: Option<bool>,
    /// `allowManagedMcpServersOnly`: no other servers are started.
    pub servers_only: Option<bool>,
    /// `allowedMcpServers`, said there: the only list that counts then.
    pub servers_allowed: Option<Vec<ServerMatch>>,
    /// `managedMcpServers`, said there: servers that everybody has, as `mcpServers` are written.
    pub servers_brought: Option<Value>,
    /// `disableAllHooks`, said there: not even its own hooks run.
    pub hooks_off: Option<bool>,
    /// `permissions.defaultMode`, said there: flags do not change it.
    pub mode: Option<Mode>,
    /// `model`, said there: flags and variables do not change it.
    pub model: Option<String>,
    /// `availableModels`, said there: the only list that counts then.
    pub models_available: Option<Vec<String>>,
    /// `permissions.disableBypassPermissionsMode`, in any file.
    pub never_bypass: bool,
    /// `strictPluginOnlyCustomization`: what only plugins and the administrator may bring.
    pub plugins_only: Option<PluginsOnly>,
}

/// What only plugins and the administrator may bring.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, read};
///
/// # let origin = Origin { source: &Source::Policy, file: "settings.json", anchor: None };
/// let (settings, _) = read(r#"{"strictPluginOnlyCustomization": ["skills", "hooks"]}"#, origin)?;
/// let only = settings.policy.plugins_only.unwrap_or_default();
/// assert!(only.skills && only.hooks && !only.agents && !only.servers);
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PluginsOnly {
    /// Skills and commands.
    pub skills: bool,
    /// Sub-agents.
    pub agents: bool,
    /// Hooks.
    pub hooks: bool,
    /// Servers of tools.
    pub servers: bool,
}

impl PluginsOnly {
    /// As settings write it: true, false, or a list of names.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let has = |name: &str| match value {
            Value::Bool(all) => *all,
            Value::Array(names) => names.iter().any(|said| said == name),
            _ => false,
        };
        let known = ["skills", "agents", "hooks", "mcp"];
        let is_usable = match value {
            Value::Bool(_) => true,
            Value::Array(names) => names.iter().all(|name| known.iter().any(|known| name == known)),
            _ => false,
        };
        is_usable.then(|| Self {
            skills: has("skills"),
            agents: has("agents"),
            hooks: has("hooks"),
            servers: has("mcp"),
        })
    }
}

impl PolicySettings {
    pub(super) fn over(self, lower: Self) -> Self {
        Self {
            rules_only: self.rules_only.or(lower.rules_only),
            hooks_only: self.hooks_only.or(lower.hooks_only),
            servers_only: self.servers_only.or(lower.servers_only),
            servers_allowed: self.servers_allowed.or(lower.servers_allowed),
            servers_brought: self.servers_brought.or(lower.servers_brought),
            hooks_off: self.hooks_off.or(lower.hooks_off),
            mode: self.mode.or(lower.mode),
            model: self.model.or(lower.model),
            models_available: self.models_available.or(lower.models_available),
            never_bypass: self.never_bypass || lower.never_bypass,
            plugins_only: self.plugins_only.or(lower.plugins_only),
        }
    }
}

impl Settings {
    /// Takes out what the administrator does not let others say, and names it. Rules that restrict stay: nobody gains by
    /// them.
    ///
    /// ```
    /// use pelton::hooks::Source;
    /// use pelton::settings::{Origin, read};
    ///
    /// let origin = |source| Origin { source, file: "settings.json", anchor: None };
    /// let managed = r#"{"allowManagedPermissionRulesOnly": true, "permissions": {"allow": ["Bash(make)"]}}"#;
    /// let users = r#"{"permissions": {"allow": ["Bash"], "deny": ["Bash(rm *)"]}}"#;
    /// let (managed, _) = read(managed, origin(&Source::Policy))?;
    /// let (users, _) = read(users, origin(&Source::User))?;
    /// let mut settings = managed.over(users);
    /// assert_eq!(settings.obey(), ["1 allow rule"]);
    /// assert_eq!((settings.rules.allow.len(), settings.rules.deny.len()), (1, 1));
    /// # Ok::<(), pelton::settings::BrokenSettings>(())
    /// ```
    pub fn obey(&mut self) -> Vec<String> {
        let mut left_out = Vec::new();
        self.rules.never_bypass |= self.policy.never_bypass;
        if self.policy.rules_only == Some(true) {
            self.rules.managed_only = true;
            let before = self.rules.allow.len();
            self.rules.allow.retain(|rule| rule.source().layer == Layer::Managed);
            match before - self.rules.allow.len() {
                0 => {}
                1 => left_out.push("1 allow rule".to_owned()),
                count => left_out.push(format!("{count} allow rules")),
            }
        }
        // Whoever switches hooks off switches off their own, not the administrator's.
        let only_managed = self.policy.hooks_only == Some(true) || self.disable_all_hooks == Some(true);
        self.plugins.without_hooks = only_managed || self.policy.hooks_off == Some(true);
        if self.policy.hooks_off == Some(true) {
            self.hooks = Default::default();
        } else {
            if only_managed && self.hooks.keep_managed() && self.policy.hooks_only == Some(true) {
                left_out.push("hooks".to_owned());
            }
            // Those of plugins are added later, and stay.
            if self.policy.plugins_only.is_some_and(|only| only.hooks) && self.hooks.keep_managed() {
                left_out.push("hooks that no plugin brings".to_owned());
            }
        }
        let off = [self.policy.hooks_off, self.policy.hooks_only, self.disable_all_hooks];
        self.brought_hooks_off = off.contains(&Some(true));
        self.disable_all_hooks = None;
        if let Some(available) = &self.policy.models_available {
            self.models.available = Some(available.clone());
        }
        if self.policy.servers_only == Some(true) {
            self.servers.allowed = Some(self.policy.servers_allowed.clone().unwrap_or_default());
        }
        if self.policy.never_bypass && self.mode == Some(Mode::BypassPermissions) {
            self.mode = None;
            left_out.push(format!("the mode {}", Mode::BypassPermissions.name()));
        }
        left_out
    }
}
