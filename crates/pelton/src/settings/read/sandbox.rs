//! Reading the object `sandbox`.

use serde_json::{Map, Value};

use super::Reader;
use crate::settings::sandbox::{SandboxSettings, Withheld};

impl Reader<'_> {
    pub(super) fn sandbox(&mut self, all: &Map<String, Value>) -> SandboxSettings {
        let mut settings = SandboxSettings::default();
        let Some(said) = self.object(all, "", "sandbox") else { return settings };
        let place = "sandbox.";
        let mut flag = |key: &str| self.field(said, place, key, "true or false", Value::as_bool);
        settings.enabled = flag("enabled");
        settings.required = flag("failIfUnavailable");
        settings.auto_allow = flag("autoAllowBashIfSandboxed");
        settings.allow_unsandboxed = flag("allowUnsandboxedCommands");
        settings.weaker_nested = flag("enableWeakerNestedSandbox");
        settings.excluded = self.texts(said, place, "excludedCommands").unwrap_or_default();
        for (command, subjects) in self.object(said, place, "ignoreViolations").into_iter().flatten() {
            let subjects =
                subjects.as_array().map(|all| all.iter().filter_map(Value::as_str).map(str::to_owned));
            settings.ignored.insert(command.clone(), subjects.into_iter().flatten().collect());
        }
        if let Some(said) = self.object(said, place, "filesystem") {
            let place = "sandbox.filesystem.";
            settings.allow_write = self.paths(said, place, "allowWrite");
            settings.deny_write = self.paths(said, place, "denyWrite");
            settings.deny_read = self.paths(said, place, "denyRead");
            settings.allow_read = self.paths(said, place, "allowRead");
            settings.open_disk = self.field(said, place, "disabled", "true or false", Value::as_bool);
        }
        if let Some(said) = self.object(said, place, "network") {
            let place = "sandbox.network.";
            settings.allowed_domains = self.texts(said, place, "allowedDomains").unwrap_or_default();
            settings.denied_domains = self.texts(said, place, "deniedDomains").unwrap_or_default();
            let mut flag = |key: &str| self.field(said, place, key, "true or false", Value::as_bool);
            settings.unix_sockets = flag("allowAllUnixSockets");
            settings.local_binding = flag("allowLocalBinding");
            settings.strict_hosts = flag("strictAllowlist");
            let port = |value: &Value| {
                value.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0)
            };
            settings.http_proxy_port = self.field(said, place, "httpProxyPort", "a port", port);
            settings.socks_proxy_port = self.field(said, place, "socksProxyPort", "a port", port);
            let mut is_set = |key: &str| {
                self.said(said, place, key)
                    .is_some_and(|value| *value != Value::Bool(false) && *value != serde_json::json!([]))
            };
            let unknown = [
                ("allowUnixSockets", "sandbox.network.allowUnixSockets"),
                ("tlsTerminate", "sandbox.network.tlsTerminate"),
            ];
            settings
                .not_honoured
                .extend(unknown.into_iter().filter(|(key, _)| is_set(key)).map(|(_, name)| name));
        }
        if let Some(said) = self.object(said, place, "credentials") {
            for (path, _) in self.named(said, "files") {
                let path = self.anchored_path(&path);
                settings.deny_read.push(path);
            }
            let withheld = self.named(said, "envVars").into_iter();
            settings.withheld = withheld.map(|(name, masked)| Withheld { name, masked }).collect();
        }
        settings
    }

    fn object<'v>(
        &mut self,
        all: &'v Map<String, Value>,
        place: &str,
        key: &str,
    ) -> Option<&'v Map<String, Value>> {
        self.field(all, place, key, "an object", Value::as_object)
    }

    fn paths(&mut self, all: &Map<String, Value>, place: &str, key: &str) -> Vec<String> {
        let paths = self.texts(all, place, key).unwrap_or_default();
        paths.iter().map(|path| self.anchored_path(path)).collect()
    }

    /// Relative paths start where the file says; `~/` is the home and `/` the root, other than in rules.
    fn anchored_path(&self, path: &str) -> String {
        match self.origin.anchor.filter(|_| !path.starts_with(['/', '~'])) {
            Some(anchor) => anchor.join(path.trim_start_matches("./")).to_string_lossy().into_owned(),
            None => path.to_owned(),
        }
    }

    /// Texts, or objects with a `path` or `name`, and whether they are to be masked.
    fn named(&mut self, said: &Map<String, Value>, key: &str) -> Vec<(String, bool)> {
        let place = "sandbox.credentials.";
        let expected = "a list of texts, or of objects with `path` or `name`";
        let read = |value: &Value| {
            let one = |value: &Value| match value {
                Value::String(name) => Some((name.clone(), false)),
                other => {
                    let name = other.get("path").or_else(|| other.get("name"))?.as_str()?;
                    let how = other.get("mode").or_else(|| other.get("action")).and_then(Value::as_str);
                    Some((name.to_owned(), how == Some("mask")))
                }
            };
            value.as_array()?.iter().map(one).collect::<Option<Vec<_>>>()
        };
        self.field(said, place, key, expected, read).unwrap_or_default()
    }
}
