//! The secrets of whoever pays: kept from the programs that are started, and out of what is written down.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use futures::future::BoxFuture;
use memchr::memmem;
use pelton_model::{Auth, Credentials, ModelError};

use crate::limits::{
    KEY_CHARS_MIN, KEYS_OF_OTHERS_MAX, SCRUBBED_AT_ONCE_BYTES, SECRET_CHARS_MIN, SECRETS_MAX,
};

/// Variables with secrets that programs have no business with.
const VARIABLES: &[&str] = &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];
/// The engine's own telemetry, which is not that of its programs.
const TELEMETRY: &[u8] = b"OTEL_";
/// What stands where a secret was.
const REDACTED: &str = "[redacted]";

/// Whether a variable is kept from the programs that are started.
///
/// ```
/// use std::ffi::OsStr;
///
/// use pelton::process::is_withheld;
///
/// assert!(is_withheld(OsStr::new("ANTHROPIC_API_KEY")) && !is_withheld(OsStr::new("PATH")));
/// ```
pub fn is_withheld(variable: &OsStr) -> bool {
    VARIABLES.iter().any(|withheld| variable == *withheld) || variable.as_bytes().starts_with(TELEMETRY)
}

/// The variables that programs get: all but those that are [withheld](is_withheld), and where `CLAUDE_CODE_SUBPROCESS_ENV_SCRUB` is
/// switched on, all but those that services and clouds of models are paid with.
///
/// ```
/// use std::ffi::OsString;
///
/// use pelton::process::for_programs;
///
/// let variable = |name: &str| (OsString::from(name), OsString::from("1"));
/// let names = |env: &[(OsString, OsString)]| for_programs(env).map(|(name, _)| name.clone()).collect::<Vec<_>>();
/// let env = ["PATH", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY"].map(variable);
/// assert_eq!(names(&env), ["PATH", "AWS_SECRET_ACCESS_KEY"]);
/// let env = ["PATH", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB"].map(variable);
/// assert_eq!(names(&env), ["PATH", "AWS_REGION", "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB"]);
/// ```
pub fn for_programs(env: &[(OsString, OsString)]) -> impl Iterator<Item = &(OsString, OsString)> {
    let is_off = |value: &OsStr| matches!(value.as_bytes(), b"" | b"0" | b"false" | b"no" | b"off");
    let is_scrubbed = env.iter().any(|(name, value)| name == SCRUB && !is_off(value));
    env.iter().filter(move |(name, _)| !(is_withheld(name) || is_scrubbed && pays_elsewhere(name)))
}

/// Says that programs get nothing that services and clouds of models are paid with.
const SCRUB: &str = "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB";

/// Beginnings of names that services and clouds of models give to their variables.
const PAID: &[&str] = &[
    "ANTHROPIC_",
    "CLAUDE_",
    "AWS_",
    "AZURE_",
    "ARM_",
    "GOOGLE_",
    "GCP_",
    "GCLOUD_",
    "CLOUDSDK_",
    "VERTEX_",
];

/// Whether a variable is one that a service or cloud of models is paid with.
fn pays_elsewhere(variable: &OsStr) -> bool {
    let Some(name) = variable.to_str() else { return false };
    PAID.iter().any(|family| name.starts_with(family))
        && name.split('_').any(|word| SECRET_WORDS.contains(&word))
}

/// Words in the names of variables that hold secrets.
const SECRET_WORDS: &[&str] = &[
    "AUTH",
    "AUTHORIZATION",
    "CERTIFICATE",
    "CREDENTIAL",
    "CREDENTIALS",
    "HEADERS",
    "KEY",
    "PASSWORD",
    "SECRET",
    "TOKEN",
];

/// Whether a variable says of itself that it holds a key, and its value looks like one: long, and neither a path nor an address.
fn is_key(name: &OsStr, value: &str) -> bool {
    let Some(name) = name.to_str() else { return false };
    let ends = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD"];
    let is_named = name.to_ascii_uppercase().rsplit('_').next().is_some_and(|last| ends.contains(&last));
    is_named
        && value.len() >= KEY_CHARS_MIN
        && value.chars().all(|c| c.is_ascii_graphic() && c != ':')
        && !value.starts_with(['/', '.', '~'])
}

/// Texts that are not written down. They grow in number while a session runs: helpers print keys, logins are renewed.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Arc<RwLock<Vec<Known>>>);

#[derive(Clone, PartialEq, Eq)]
struct Known {
    plain: String,
    /// As JSON writes it.
    json: String,
}

impl Secrets {
    /// Those among variables, and what requests are paid with.
    pub fn learn_from(&self, env: &[(OsString, OsString)], auth: &Auth) {
        let known = env.iter().filter(|(name, _)| VARIABLES.iter().any(|known| name == *known));
        known.filter_map(|(_, value)| value.to_str()).for_each(|text| self.learn(text));
        // Keys of others, which commands may need and show.
        let others = env.iter().filter_map(|(name, value)| Some((name, value.to_str()?)));
        others
            .filter(|(name, value)| is_key(name, value))
            .take(KEYS_OF_OTHERS_MAX)
            .for_each(|(_, text)| self.learn(text));
        self.learn_auth(auth);
    }

    /// Whoever hands out credentials, so that what they hand out is known here.
    pub fn heard_from(&self, credentials: Arc<dyn Credentials>) -> Arc<dyn Credentials> {
        Arc::new(Heard { credentials, secrets: self.clone() })
    }

    fn learn_auth(&self, auth: &Auth) {
        match auth {
            Auth::ApiKey(secret) | Auth::Bearer(secret) => self.learn(secret.reveal()),
            Auth::Signed(signing) => {
                signing.secrets().iter().for_each(|secret| self.learn(secret.reveal()));
            }
            _ => {}
        }
    }

    fn learn(&self, text: &str) {
        let plain = text.trim();
        // A short one is a stand-in for a server that wants none, and may be an ordinary word.
        if plain.chars().count() < SECRET_CHARS_MIN || self.all().iter().any(|known| known.plain == plain) {
            return;
        }
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= SECRETS_MAX {
            all.remove(0);
        }
        all.push(Known { plain: plain.to_owned(), json: as_json(plain) });
    }

    /// The same JSON without them.
    pub fn hidden<'t>(&self, json: &'t [u8]) -> Cow<'t, [u8]> {
        self.without(json, |known| &known.json)
    }

    /// The same text without them.
    pub fn out_of<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        self.without(text, |known| &known.plain)
    }

    /// Takes them out of a file, in place and in bounded memory: something of the same length stands there then. Waits for the disk.
    pub fn leave(&self, file: &Path) -> io::Result<()> {
        let all = self.all();
        let Some(longest) = all.iter().map(|known| known.plain.len()).max() else { return Ok(()) };
        let file = File::options().read(true).write(true).open(file)?;
        let mut window = vec![0; SCRUBBED_AT_ONCE_BYTES.max(2 * longest)];
        let mut at = 0;
        loop {
            let length = read_up_to(&file, &mut window, at)?;
            for known in all.iter() {
                for found in memmem::find_iter(&window[..length], known.plain.as_bytes()) {
                    let stars = b"*".repeat(known.plain.len());
                    file.write_all_at(&stars, at + found as u64)?;
                }
            }
            if length < window.len() {
                return Ok(());
            }
            // One that begins at the end of the window is whole in the next.
            at += (length - longest) as u64;
        }
    }

    fn without<'t>(&self, text: &'t [u8], form: impl Fn(&Known) -> &String) -> Cow<'t, [u8]> {
        let mut text = Cow::Borrowed(text);
        for known in self.all().iter() {
            let secret = form(known).as_bytes();
            let places: Vec<usize> = memmem::find_iter(&text, secret).collect();
            if places.is_empty() {
                continue;
            }
            let mut without = Vec::with_capacity(text.len());
            let mut from = 0;
            for at in places {
                without.extend_from_slice(&text[from..at]);
                without.extend_from_slice(REDACTED.as_bytes());
                from = at + secret.len();
            }
            without.extend_from_slice(&text[from..]);
            text = Cow::Owned(without);
        }
        text
    }

    fn all(&self) -> RwLockReadGuard<'_, Vec<Known>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Credentials whose words are remembered.
struct Heard {
    credentials: Arc<dyn Credentials>,
    secrets: Secrets,
}

impl Credentials for Heard {
    fn current(&self) -> BoxFuture<'static, Result<Auth, ModelError>> {
        let (current, secrets) = (self.credentials.current(), self.secrets.clone());
        Box::pin(async move { current.await.inspect(|auth| secrets.learn_auth(auth)) })
    }

    fn refresh(&self, refused: Auth) -> BoxFuture<'static, Result<Option<Auth>, ModelError>> {
        let (renewed, secrets) = (self.credentials.refresh(refused), self.secrets.clone());
        Box::pin(async move {
            renewed.await.inspect(|auth| auth.iter().for_each(|auth| secrets.learn_auth(auth)))
        })
    }
}

fn read_up_to(file: &File, window: &mut [u8], at: u64) -> io::Result<usize> {
    let mut length = 0;
    while length < window.len() {
        match file.read_at(&mut window[length..], at + length as u64) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.all().len())
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
        let secrets = Secrets::default();
        secrets.learn_from(&variables, &Auth::Bearer(Secret::new("to\"ken-0123456789-abc")));
        let text = |hidden: Cow<'_, [u8]>| String::from_utf8(hidden.into_owned()).unwrap();
        let hidden = |json: &str| text(secrets.hidden(json.as_bytes()));
        assert_eq!(hidden(r#"{"a":"x sk-0123456789abcdef y"}"#), r#"{"a":"x [redacted] y"}"#);
        assert_eq!(hidden(r#"{"a":"to\"ken-0123456789-abc"}"#), r#"{"a":"[redacted]"}"#);
        assert_eq!(text(secrets.out_of(b"to\"ken-0123456789-abc\xc3\xa4")), "[redacted]ä");
        assert_eq!(secrets.out_of(b"\xff sk-0123456789abcdef \xff").as_ref(), b"\xff [redacted] \xff");
        assert_eq!(hidden("/somewhere/quite/far/away sk-01"), "/somewhere/quite/far/away sk-01");
        assert!(!format!("{secrets:?}").contains("sk-"));
        let short = Secrets::default();
        short.learn_from(&[env("ANTHROPIC_API_KEY", "test")], &Auth::None);
        assert_eq!(short.hidden(b"a test").as_ref(), b"a test");
        let env = [
            ("GITHUB_TOKEN", "ghp_0123456789abcdefghij"),
            ("DB_PASSWORD", "postgres"),
            ("SSH_KEY", "/home/me/.ssh/id_ed25519"),
        ];
        let others = Secrets::default();
        others.learn_from(&env.map(|(name, value)| (name.into(), value.into())), &Auth::None);
        assert_eq!(others.hidden(b"ghp_0123456789abcdefghij").as_ref(), b"[redacted]");
        let kept = b"postgres at /home/me/.ssh/id_ed25519";
        assert_eq!(others.hidden(kept).as_ref(), kept);
        assert!(is_withheld(OsStr::new("OTEL_X")) && !is_withheld(OsStr::new("PATH")));
    }
    #[test]
    fn files_are_rid_of_them_wherever_they_stand() {
        let secrets = Secrets::default();
        secrets.learn("sk-0123456789abcdef");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        let mut content = vec![b'x'; 2 * SCRUBBED_AT_ONCE_BYTES + 100];
        let length = content.len();
        // Across the ends of windows, at both ends of the file, and somewhere.
        for at in [0, 5_000, SCRUBBED_AT_ONCE_BYTES - 5, 2 * SCRUBBED_AT_ONCE_BYTES - 30, length - 19] {
            content[at..at + 19].copy_from_slice(b"sk-0123456789abcdef");
        }
        std::fs::write(&file, &content).unwrap();
        secrets.leave(&file).unwrap();
        let left = std::fs::read(&file).unwrap();
        assert_eq!(left.len(), length);
        assert_eq!(memmem::find(&left, b"0123456789"), None);
        assert_eq!(left.iter().filter(|byte| **byte == b'*').count(), 5 * 19);
    }

    #[tokio::test]
    async fn what_is_handed_out_later_is_known_from_then_on() {
        struct Twice;
        impl Credentials for Twice {
            fn current(&self) -> BoxFuture<'static, Result<Auth, ModelError>> {
                Box::pin(async { Ok(Auth::ApiKey(Secret::new("first-0123456789abc"))) })
            }
            fn refresh(&self, _refused: Auth) -> BoxFuture<'static, Result<Option<Auth>, ModelError>> {
                Box::pin(async { Ok(Some(Auth::Bearer(Secret::new("second-0123456789abc")))) })
            }
        }
        let secrets = Secrets::default();
        let credentials = secrets.heard_from(Arc::new(Twice));
        let auth = credentials.current().await.unwrap();
        assert_eq!(
            secrets.out_of(b"first-0123456789abc second-0123456789abc").as_ref(),
            b"[redacted] second-0123456789abc"
        );
        credentials.refresh(auth).await.unwrap();
        assert_eq!(secrets.out_of(b"second-0123456789abc").as_ref(), b"[redacted]");
    }
}
