//! Logins at servers: the token that a request carries, and its renewal. How somebody logs in is in [`flow`].

mod ask; // the questions of all this over HTTP
mod flow; // from an address to a login

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

pub use self::flow::{PendingLogin, begin_login};
use crate::limits::{LOCK_LOOK, LOCK_WAIT};

/// Somebody's login at a server.
///
/// See [`Logins`].
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Login {
    /// The address it is for: it is shown to no other.
    pub url: String,
    /// What requests carry.
    pub access: String,
    /// What a new one is had for; `None` if it cannot be renewed.
    pub refresh: Option<String>,
    /// Who renews it.
    pub token_endpoint: String,
    /// Who we are to them.
    pub client_id: String,
    /// How we show that, if we must.
    pub client_secret: Option<String>,
}

impl Login {
    /// Reads what [`to_json`](Self::to_json) wrote.
    pub fn from_json(written: &Value) -> Option<Self> {
        let word = |name: &str| written.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            url: word("serverUrl")?,
            access: word("accessToken")?,
            refresh: word("refreshToken"),
            token_endpoint: word("tokenEndpoint")?,
            client_id: word("clientId")?,
            client_secret: word("clientSecret"),
        })
    }

    /// Everything, to be kept where its owner alone can read it.
    pub fn to_json(&self) -> Value {
        json!({
            "serverUrl": self.url,
            "accessToken": self.access,
            "refreshToken": self.refresh,
            "tokenEndpoint": self.token_endpoint,
            "clientId": self.client_id,
            "clientSecret": self.client_secret,
        })
    }
}

// Nothing of it is for logs.
impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Where logins are kept, by the names of servers. Many processes share it.
pub trait Logins: Send + Sync {
    /// The login at a server.
    fn read(&self, server: &str) -> Result<Option<Login>, String>;

    /// Keeps a login, or forgets it.
    fn write(&self, server: &str, login: Option<&Login>) -> Result<(), String>;

    /// The right to renew a login, until it is dropped; `None` if another process has it.
    fn try_lock(&self) -> Result<Option<Box<dyn Any + Send>>, String>;
}

/// What requests to one address carry.
#[derive(Clone)]
pub(crate) struct Bearer {
    pub server: String,
    pub url: String,
    pub logins: Arc<dyn Logins>,
    pub http: reqwest::Client,
}

impl Bearer {
    /// The token to begin with.
    pub fn token(&self) -> Option<String> {
        self.login().map(|login| login.access)
    }

    /// The token after one that was refused, whoever renews it: a renewal may make the old refresh token worthless, so of
    /// all the processes that find their token refused one renews it, and the others take what it brought.
    pub async fn after(&self, refused: Option<&str>) -> Option<String> {
        let newer = |login: Login| (Some(login.access.as_str()) != refused).then_some(login.access);
        if let Some(token) = self.login().and_then(newer) {
            return Some(token);
        }
        let mut waited = Duration::ZERO;
        let _lock = loop {
            if let Some(lock) = self.logins.try_lock().ok()? {
                break lock;
            }
            if waited >= LOCK_WAIT {
                return None;
            }
            tokio::time::sleep(LOCK_LOOK).await;
            waited += LOCK_LOOK;
        };
        let login = self.login()?;
        if let Some(token) = newer(login.clone()) {
            return Some(token);
        }
        match ask::renew(&self.http, &login).await {
            Ok(renewed) => {
                // The token is good even if it cannot be written down.
                let _ = self.logins.write(&self.server, Some(&renewed));
                Some(renewed.access)
            }
            Err(ask::NotGiven::Refused(_)) => {
                // Taken back: what is left of it is of no use.
                let _ = self.logins.write(&self.server, None);
                None
            }
            Err(ask::NotGiven::Failed(_)) => None,
        }
    }

    fn login(&self) -> Option<Login> {
        self.logins.read(&self.server).ok()?.filter(|login| login.url == self.url)
    }
}
