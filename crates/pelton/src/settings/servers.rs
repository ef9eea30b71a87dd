//! Which servers of tools may be used.

use serde_json::Value;

use crate::permission::glob;

/// What settings say about servers of tools.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, read};
///
/// let text = r#"{"allowedMcpServers": [{"serverUrl": "https://*.example.com/*"}], "deniedMcpServers": [{"serverName": "bad"}]}"#;
/// let (settings, _) = read(text, Origin { source: &Source::User, file: "settings.json", anchor: None })?;
/// assert_eq!(settings.servers.refuses("good", &[], Some("https://mcp.example.com/x")), None);
/// assert!(settings.servers.refuses("bad", &[], Some("https://mcp.example.com/x")).is_some());
/// assert!(settings.servers.refuses("other", &["serve".to_owned()], None).is_some());
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerSettings {
    /// `enableAllProjectMcpServers`: every server of a project was approved.
    pub approve_all: Option<bool>,
    /// `enabledMcpjsonServers`: those of a project that were approved.
    pub approved: Vec<String>,
    /// `disabledMcpjsonServers`: those of a project that nobody wants.
    pub rejected: Vec<String>,
    /// `allowedMcpServers`: only these. A list that is empty lets none be used.
    pub allowed: Option<Vec<ServerMatch>>,
    /// `deniedMcpServers`: these never.
    pub denied: Vec<ServerMatch>,
}

/// What a server is known by.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, ServerMatch, read};
///
/// let text = r#"{"allowedMcpServers": [{"serverCommand": ["npx", "weather"]}], "allowManagedMcpServersOnly": true}"#;
/// let (settings, _) = read(text, Origin { source: &Source::Policy, file: "managed.json", anchor: None })?;
/// let allowed = settings.policy.servers_allowed.as_deref();
/// assert_eq!(allowed, Some(&[ServerMatch::Command(vec!["npx".to_owned(), "weather".to_owned()])][..]));
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerMatch {
    /// `serverName`.
    Name(String),
    /// `serverCommand`: the program and all that it is told.
    Command(Vec<String>),
    /// `serverUrl`: an address, in which `*` stands for anything.
    Url(String),
}

impl ServerMatch {
    pub(super) fn read(written: &Value) -> Option<Self> {
        let text = |key: &str| written.get(key)?.as_str().map(str::to_owned);
        if let Some(name) = text("serverName") {
            return Some(Self::Name(name));
        }
        if let Some(url) = text("serverUrl") {
            return Some(Self::Url(url));
        }
        let words = written.get("serverCommand")?.as_array()?;
        words.iter().map(|word| word.as_str().map(str::to_owned)).collect::<Option<_>>().map(Self::Command)
    }

    /// Whether a server is meant: its name, and how it is reached.
    fn is(&self, name: &str, command: &[String], url: Option<&str>) -> bool {
        match self {
            Self::Name(meant) => meant == name,
            Self::Command(meant) => !command.is_empty() && meant == command,
            Self::Url(meant) => url.is_some_and(|url| glob(meant, url)),
        }
    }
}

impl ServerSettings {
    /// Why a server may not be used, if it may not. `command` is its program with all that it is told, or empty.
    pub fn refuses(&self, name: &str, command: &[String], url: Option<&str>) -> Option<&'static str> {
        if self.denied.iter().any(|denied| denied.is(name, command, url)) {
            return Some("deniedMcpServers names it");
        }
        let allowed = self.allowed.as_ref()?;
        if allowed.iter().any(|allowed| allowed.is(name, command, url)) {
            return None;
        }
        Some("allowedMcpServers does not name it")
    }

    pub(super) fn over(self, mut lower: Self) -> Self {
        lower.approved.extend(self.approved);
        lower.rejected.extend(self.rejected);
        lower.denied.extend(self.denied);
        Self {
            approve_all: self.approve_all.or(lower.approve_all),
            allowed: self.allowed.or(lower.allowed),
            ..lower
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::Source;
    use crate::settings::{Origin, read};

    #[test]
    fn a_server_is_known_by_any_of_three() {
        let settings = ServerSettings {
            allowed: Some(vec![ServerMatch::Command(vec!["npx".to_owned(), "it".to_owned()])]),
            denied: vec![ServerMatch::Url("http://*".to_owned())],
            ..ServerSettings::default()
        };
        assert_eq!(settings.refuses("x", &["npx".to_owned(), "it".to_owned()], None), None);
        assert!(settings.refuses("x", &["npx".to_owned()], None).is_some());
        assert!(settings.refuses("x", &[], Some("http://y")).is_some_and(|why| why.contains("denied")));
        let (managed, _) = read(
            r#"{"allowManagedMcpServersOnly": true, "allowedMcpServers": [{"serverName": "a"}]}"#,
            Origin { source: &Source::Policy, file: "managed", anchor: None },
        )
        .unwrap();
        let users = r#"{"allowedMcpServers": [{"serverName": "b"}]}"#;
        let (users, _) = read(users, Origin { source: &Source::User, file: "user", anchor: None }).unwrap();
        let mut both = users.over(managed);
        both.obey();
        assert_eq!(both.servers.refuses("a", &[], None), None);
        assert!(both.servers.refuses("b", &[], None).is_some(), "only the administrator's list counts");
        let none = ServerSettings { allowed: Some(Vec::new()), ..ServerSettings::default() };
        assert!(none.refuses("x", &[], None).is_some());
    }
}
