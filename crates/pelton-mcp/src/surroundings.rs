//! What servers are started in and reached by.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pelton::process::for_programs;

use crate::config::Remote;
use crate::limits::{CALL_TIME, CONNECT_TIME, LOCAL_AT_ONCE_MAX, REMOTE_AT_ONCE_MAX};
use crate::oauth::{Bearer, Logins};

/// What every program needs of the environment.
const NEEDED_BY_ALL: [&str; 9] =
    ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"];

/// What servers are started in and reached by.
#[derive(Clone)]
#[non_exhaustive]
pub struct Surroundings {
    /// Where programs start.
    pub cwd: PathBuf,
    /// The environment of programs, before what their entry adds.
    pub env: Arc<[(OsString, OsString)]>,
    /// The directories the session works in.
    pub roots: Vec<PathBuf>,
    /// The road to addresses, made when the first one is needed.
    pub http: Arc<dyn Fn() -> Result<reqwest::Client, String> + Send + Sync>,
    /// Programs that are started get of that environment only what every program needs.
    pub env_is_bare: bool,
    /// Programs that are connected to at the same time, and addresses.
    pub programs_at_once: usize,
    pub addresses_at_once: usize,
    /// The longest a server may take until it is connected.
    pub connect_time: Duration,
    /// The longest a call may take, where its server's entry says nothing.
    pub call_time: Duration,
    /// The longest a call may be silent, where somebody has said.
    pub silence: Option<Duration>,
    /// Tokens of an answer that the model is shown, about, where somebody has said.
    pub result_tokens_max: Option<usize>,
    /// Where logins are kept; without it, nobody is logged in.
    pub logins: Option<Arc<dyn Logins>>,
    /// How we show who we are to those that give tokens, where an entry says who that is.
    pub client_secret: Option<String>,
}

impl Surroundings {
    /// Programs start in `cwd`, with nothing in their environment; there is no road to addresses.
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        let cwd = cwd.into();
        Self {
            roots: vec![cwd.clone()],
            cwd,
            env: [].into(),
            http: Arc::new(|| Err("there is no road to addresses from here".to_owned())),
            env_is_bare: false,
            programs_at_once: LOCAL_AT_ONCE_MAX,
            addresses_at_once: REMOTE_AT_ONCE_MAX,
            connect_time: CONNECT_TIME,
            call_time: CALL_TIME,
            silence: None,
            result_tokens_max: None,
            logins: None,
            client_secret: None,
        }
    }

    /// The environment of a program: whoever pays keeps their keys, unless an entry names them.
    pub(crate) fn env_of_programs(&self) -> Vec<(OsString, OsString)> {
        for_programs(&self.env).cloned().collect()
    }

    /// The same for a server that is a program.
    pub(crate) fn env_of_servers(&self) -> Vec<(OsString, OsString)> {
        let mut env = self.env_of_programs();
        if self.env_is_bare {
            env.retain(|(name, _)| NEEDED_BY_ALL.iter().any(|needed| name == needed));
        }
        env
    }

    /// What requests to an address carry, if somebody can be logged in there.
    pub(crate) fn bearer(&self, server: &str, remote: &Remote) -> Option<Bearer> {
        let logins = self.logins.clone().filter(|_| !remote.has_authorization())?;
        let http = (self.http)().ok()?;
        Some(Bearer { server: server.to_owned(), url: remote.url.clone(), logins, http })
    }
}
