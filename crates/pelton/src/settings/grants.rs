//! What a repository may not grant itself: somebody may have opened it who has not read it.

use crate::hooks::HttpHookTerms;
use crate::permission::Mode;

use super::Settings;

/// Beginnings of the names of variables that choose where requests and credentials go, whom to trust on the way,
/// what may run, and whether what its user has set up counts at all.
const STEERING: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_CUSTOM_HEADERS",
    "CLAUDE_CODE_API_KEY_HELPER",
    "CLAUDE_CODE_CLIENT_",
    "CLAUDE_CODE_EXTRA_BODY",
    "CLAUDE_CODE_MCP_ALLOWLIST_ENV",
    "CLAUDE_CODE_OAUTH_",
    "CLAUDE_CODE_SAFE_MODE",
    "CLAUDE_CODE_SIMPLE",
    "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB",
    "CLAUDE_CODE_TOOL_MEMORY_LIMIT",
    "CLAUDE_CODE_USE_",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE",
    "HOME",
    "IS_SANDBOX",
    "NODE_EXTRA_CA_CERTS",
    "PELTON_OAUTH_",
    "SSL_CERT_",
];

impl Settings {
    /// Takes out what would let a repository do more than its user allowed, and names it. What only restricts stays,
    /// and so do hooks, helpers and most variables: those are used in runs that nobody watches.
    pub fn give_up_grants(&mut self) -> Vec<String> {
        let mut given_up = Vec::new();
        let counted =
            |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        match self.rules.allow.len() {
            0 => {}
            count => given_up.push(counted(count, "allow rule")),
        }
        self.rules.allow.clear();
        if !std::mem::take(&mut self.additional_dirs).is_empty() {
            given_up.push("additionalDirectories".to_owned());
        }
        if let Some(mode) = self.mode.take_if(|mode| is_wider_than_default(*mode)) {
            given_up.push(format!("the mode {}", mode.name()));
        }
        if !std::mem::take(&mut self.prices).is_empty() {
            // A price of nothing would lift a cap in money.
            given_up.push("modelPricing".to_owned());
        }
        if self.sandbox.give_up_grants() {
            given_up.push("sandbox".to_owned());
        }
        if !std::mem::take(&mut self.plugins.marketplaces).is_empty() {
            given_up.push("extraKnownMarketplaces".to_owned());
        }
        let approves = self.servers.approve_all.take() == Some(true);
        if !std::mem::take(&mut self.servers.approved).is_empty() || approves {
            given_up.push("approved servers".to_owned());
        }
        // Lists add up: one more address, or one more variable, is a grant.
        if std::mem::take(&mut self.http_hooks) != HttpHookTerms::default() {
            given_up.push("allowedHttpHookUrls and httpHookAllowedEnvVars".to_owned());
        }
        if self.models.available.take().is_some() {
            given_up.push("availableModels".to_owned());
        }
        // Another name may be another model, with another price.
        if !std::mem::take(&mut self.models.ids).is_empty() {
            given_up.push("modelOverrides".to_owned());
        }
        // Where a user's plugin sends what it knows is for its user to say.
        if !std::mem::take(&mut self.plugins.options).is_empty() {
            given_up.push("pluginConfigs".to_owned());
        }
        let steering = |name: &str| {
            let name = name.to_ascii_uppercase();
            name.contains("_PROXY") || STEERING.iter().any(|beginning| name.starts_with(beginning))
        };
        given_up.extend(self.env.keys().filter(|name| steering(name)).map(|name| format!("env.{name}")));
        self.env.retain(|name, _| !steering(name));
        // A user's plugins and hooks may be guards: a repository switches off its own, not theirs.
        self.plugins.enabled.retain(|_, is_on| *is_on);
        if self.disable_all_hooks.take() == Some(true) {
            self.hooks = Default::default();
        }
        given_up
    }

    /// Takes out what would run programs, or change what programs do, and names it.
    pub fn give_up_programs(&mut self) -> Vec<String> {
        let mut given_up = Vec::new();
        if !std::mem::take(&mut self.hooks).is_empty() {
            given_up.push("hooks".to_owned());
        }
        if !std::mem::take(&mut self.plugins.enabled).is_empty() {
            given_up.push("enabledPlugins".to_owned());
        }
        if self.api_key_helper.take().is_some() {
            given_up.push("apiKeyHelper".to_owned());
        }
        if self.screen.status_command.take().is_some() {
            given_up.push("statusLine".to_owned());
        }
        if !std::mem::take(&mut self.env).is_empty() {
            given_up.push("env".to_owned());
        }
        given_up
    }
}

/// Whether a mode lets anything run that would be asked for otherwise.
pub(super) fn is_wider_than_default(mode: Mode) -> bool {
    matches!(mode, Mode::AcceptEdits | Mode::BypassPermissions)
}
