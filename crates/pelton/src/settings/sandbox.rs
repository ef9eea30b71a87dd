//! The object `sandbox`: commands in a box.

use std::collections::BTreeMap;

/// What settings say about the sandbox. Paths are as written, but for those that start where their file says.
///
/// See [`read()`](super::read()).
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, read};
///
/// # let origin = Origin { source: &Source::User, file: "settings.json", anchor: None };
/// let (settings, _) = read(r#"{"sandbox": {"enabled": true, "network": {"allowedDomains": ["example.com"]}}}"#, origin)?;
/// assert_eq!((settings.sandbox.enabled, settings.sandbox.required), (Some(true), None));
/// assert_eq!(settings.sandbox.allowed_domains, ["example.com"]);
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxSettings {
    /// `enabled`: commands run in a box.
    pub enabled: Option<bool>,
    /// `failIfUnavailable`: without a box nothing starts.
    pub required: Option<bool>,
    /// `autoAllowBashIfSandboxed`: commands in the box need no approval.
    pub auto_allow: Option<bool>,
    /// `allowUnsandboxedCommands`: the model may ask to run one outside.
    pub allow_unsandboxed: Option<bool>,
    /// `enableWeakerNestedSandbox`: in a container, a box that shows the processes outside.
    pub weaker_nested: Option<bool>,
    /// `excludedCommands`: these run outside.
    pub excluded: Vec<String>,
    /// `ignoreViolations`: by command, paths and hosts about which nothing is said.
    pub ignored: BTreeMap<String, Vec<String>>,
    /// `filesystem.allowWrite`.
    pub allow_write: Vec<String>,
    /// `filesystem.denyWrite`.
    pub deny_write: Vec<String>,
    /// `filesystem.denyRead`, and `credentials.files`.
    pub deny_read: Vec<String>,
    /// `filesystem.allowRead`.
    pub allow_read: Vec<String>,
    /// `filesystem.disabled`: files are not held, only what can be reached.
    pub open_disk: Option<bool>,
    /// `network.allowedDomains`.
    pub allowed_domains: Vec<String>,
    /// `network.deniedDomains`.
    pub denied_domains: Vec<String>,
    /// `network.allowAllUnixSockets`.
    pub unix_sockets: Option<bool>,
    /// `network.allowLocalBinding`.
    pub local_binding: Option<bool>,
    /// `network.strictAllowlist`: nobody is asked about a host that is not listed.
    pub strict_hosts: Option<bool>,
    /// `network.httpProxyPort`.
    pub http_proxy_port: Option<u16>,
    /// `network.socksProxyPort`.
    pub socks_proxy_port: Option<u16>,
    /// Keys that are set and cannot be honoured here, by their whole names.
    pub not_honoured: Vec<&'static str>,
    /// `credentials.envVars`: variables that commands do not see, or see masked.
    pub withheld: Vec<Withheld>,
}

/// A variable that commands do not see.
///
/// See [`read()`](super::read()).
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, read};
///
/// # let origin = Origin { source: &Source::User, file: "settings.json", anchor: None };
/// let (settings, _) = read(r#"{"sandbox": {"credentials": {"envVars": [{"name": "GITHUB_TOKEN", "mode": "deny"}]}}}"#, origin)?;
/// let withheld = &settings.sandbox.withheld[0];
/// assert_eq!((withheld.name.as_str(), withheld.masked), ("GITHUB_TOKEN", false));
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Withheld {
    /// Its name.
    pub name: String,
    /// It is there, but its value is not.
    pub masked: bool,
}

impl SandboxSettings {
    /// These laid over others: of one value the upper counts, lists add up.
    pub(super) fn over(self, lower: Self) -> Self {
        let joined = |mut lower: Vec<String>, upper: Vec<String>| {
            lower.extend(upper);
            lower
        };
        let mut ignored = lower.ignored;
        for (command, subjects) in self.ignored {
            ignored.entry(command).or_default().extend(subjects);
        }
        let mut withheld = lower.withheld;
        withheld.extend(self.withheld);
        Self {
            enabled: self.enabled.or(lower.enabled),
            required: self.required.or(lower.required),
            auto_allow: self.auto_allow.or(lower.auto_allow),
            allow_unsandboxed: self.allow_unsandboxed.or(lower.allow_unsandboxed),
            weaker_nested: self.weaker_nested.or(lower.weaker_nested),
            excluded: joined(lower.excluded, self.excluded),
            ignored,
            allow_write: joined(lower.allow_write, self.allow_write),
            deny_write: joined(lower.deny_write, self.deny_write),
            deny_read: joined(lower.deny_read, self.deny_read),
            allow_read: joined(lower.allow_read, self.allow_read),
            open_disk: self.open_disk.or(lower.open_disk),
            allowed_domains: joined(lower.allowed_domains, self.allowed_domains),
            denied_domains: joined(lower.denied_domains, self.denied_domains),
            unix_sockets: self.unix_sockets.or(lower.unix_sockets),
            local_binding: self.local_binding.or(lower.local_binding),
            strict_hosts: self.strict_hosts.or(lower.strict_hosts),
            http_proxy_port: self.http_proxy_port.or(lower.http_proxy_port),
            socks_proxy_port: self.socks_proxy_port.or(lower.socks_proxy_port),
            not_honoured: lower.not_honoured.into_iter().chain(self.not_honoured).collect(),
            withheld,
        }
    }

    /// Takes out everything but what only restricts. Whether there was anything else.
    pub(super) fn give_up_grants(&mut self) -> bool {
        let kept = Self {
            deny_write: self.deny_write.clone(),
            deny_read: self.deny_read.clone(),
            denied_domains: self.denied_domains.clone(),
            withheld: self.withheld.clone(),
            ..Self::default()
        };
        let had_more = *self != kept;
        // Even switching the box on is a grant: commands inside need no approval.
        *self = kept;
        had_more
    }
}
