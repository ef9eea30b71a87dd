//! The secrets of whoever pays: kept from the programs that are started, and out of what is written down.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use pelton_model::Auth;

use crate::limits::SECRET_CHARS_MIN;

/// Variables with secrets that programs have no business with.
const VARIABLES: &[&str] = &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];
/// The engine's own telemetry, which is not that of its programs.
const TELEMETRY: &[u8] = b"OTEL_";
/// What stands where a secret was.
const REDACTED: &str = "[redacted]";

/// Whether a variable is kept from the programs that are started.
pub(crate) fn is_withheld(variable: &OsStr) -> bool {
    VARIABLES.iter().any(|withheld| variable == *withheld) || variable.as_bytes().starts_with(TELEMETRY)
}

/// Texts that are not written down, as JSON writes them.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Arc<[String]>);

impl Secrets {
    /// Those among variables.
    pub fn among(env: &[(OsString, OsString)]) -> Self {
        let known = env.iter().filter(|(name, _)| VARIABLES.iter().any(|known| name == *known));
        Self::new(known.filter_map(|(_, value)| value.to_str()))
    }

    /// Those among variables, and what requests are paid with.
    pub fn known(env: &[(OsString, OsString)], auth: &Auth) -> Self {
        let paid = match auth {
            Auth::ApiKey(secret) | Auth::Bearer(secret) => Some(secret.reveal()),
            _ => None,
        };
        let among = Self::among(env);
        Self(among.0.iter().cloned().chain(Self::new(paid.into_iter()).0.iter().cloned()).collect())
    }

    fn new<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        // A short one is a stand-in for a server that wants none, and may be an ordinary word.
        let long = texts.map(str::trim).filter(|text| text.chars().count() >= SECRET_CHARS_MIN);
        Self(long.map(as_json).collect())
    }

    /// The same JSON without them.
    pub fn hidden<'t>(&self, json: &'t [u8]) -> Cow<'t, [u8]> {
        let Some(text) = std::str::from_utf8(json).ok().filter(|_| !self.0.is_empty()) else {
            return Cow::Borrowed(json);
        };
        let mut text = Cow::Borrowed(text);
        for secret in self.0.iter() {
            if text.contains(secret.as_str()) {
                text = Cow::Owned(text.replace(secret.as_str(), REDACTED));
            }
        }
        match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        }
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

fn as_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use pelton_model::Secret;

    use super::*;

    #[test]
    fn secrets_are_hidden_and_nothing_else() {
        let env = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        let variables =
            [env("ANTHROPIC_API_KEY", "sk-0123456789abcdef"), env("HOME", "/somewhere/quite/far/away")];
        let secrets = Secrets::known(&variables, &Auth::Bearer(Secret::new("to\"ken-0123456789-abc")));
        let hidden = |text: &str| String::from_utf8(secrets.hidden(text.as_bytes()).into_owned()).unwrap();
        assert_eq!(hidden(r#"{"a":"x sk-0123456789abcdef y"}"#), r#"{"a":"x [redacted] y"}"#);
        assert_eq!(hidden(r#"{"a":"to\"ken-0123456789-abc"}"#), r#"{"a":"[redacted]"}"#);
        assert_eq!(hidden("/somewhere/quite/far/away sk-01"), "/somewhere/quite/far/away sk-01");
        assert!(!format!("{secrets:?}").contains("sk-"));
        let short = Secrets::known(&[env("ANTHROPIC_API_KEY", "test")], &Auth::None);
        assert_eq!(short.hidden(b"a test").as_ref(), b"a test");
        assert!(is_withheld(OsStr::new("OTEL_X")) && !is_withheld(OsStr::new("PATH")));
    }
}
