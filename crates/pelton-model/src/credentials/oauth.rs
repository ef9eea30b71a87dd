//! A token in a file that many processes share.
//!
//! A renewal may bring a new refresh token that makes the old one worthless, so of all the processes that find the
//! token run out, one renews it and the others take what it wrote. Who that is, a lock beside the file decides.

use std::fmt;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, Either, select};
use futures::{FutureExt, StreamExt};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue};
use jiff::Timestamp;
use serde_json::Value;

use super::keeper::KEPT_ON;
use super::store::{self, Lock, Login, Renewal, Replacement};
use super::{Issued, Issuer};
use crate::client::{Auth, Secret};
use crate::dialect::messages;
use crate::error::{ErrorKind, ModelError};
use crate::transport::{Body, Post, Transport};
use crate::world::World;

/// A token that runs out sooner than this is renewed before it is used.
const EXPIRES_SOON: Duration = Duration::from_secs(5 * 60);
/// How long a renewal may take.
const RENEWAL_WAIT_MAX: Duration = Duration::from_secs(30);
/// How long the renewal of another process is waited for.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(60);
/// How often it is looked for.
const LOCK_POLL: Duration = Duration::from_millis(50);
/// The most bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Where a login is kept and renewed.
///
/// ```
/// use pelton_model::credentials::{OauthOptions, TokenForm};
///
/// let options = OauthOptions {
///     path: "/home/ada/.claude/.credentials.json".into(),
///     token_url: "https://login.example/token".to_owned(),
///     client_id: Some("pelton".to_owned()),
///     form: TokenForm::Json,
///     user_agent: "pelton/1".to_owned(),
/// };
/// assert_ne!(options.form, TokenForm::default());
/// ```
#[derive(Clone, Debug)]
pub struct OauthOptions {
    /// The file: a JSON object whose `claudeAiOauth` holds `accessToken`, `refreshToken`, `expiresAt` (milliseconds
    /// since 1970) and `scopes`.
    pub path: PathBuf,
    /// The address that exchanges refresh tokens.
    pub token_url: String,
    /// Who we are to that address.
    pub client_id: Option<String>,
    /// How the exchange is written.
    pub form: TokenForm,
    /// Who we say we are.
    pub user_agent: String,
}

/// How an exchange of tokens is written.
///
/// ```
/// use pelton_model::credentials::TokenForm;
///
/// /// Servers of this product read JSON, others what the standard says.
/// fn form_of(token_url: &str) -> TokenForm {
///     if token_url.ends_with("/v1/oauth/token") { TokenForm::Json } else { TokenForm::default() }
/// }
/// assert_eq!(form_of("https://login.example/token"), TokenForm::Form);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenForm {
    /// As a form: what the standard says.
    #[default]
    Form,
    /// As JSON: what some servers want.
    Json,
}

/// Hands out the token of a file, and renews it when it runs out or is refused.
///
/// ```
/// use std::sync::Arc;
///
/// use pelton_model::credentials::{Issuer, OauthFile, OauthOptions, TokenForm};
/// use pelton_model::{HttpOptions, HttpTransport, RealWorld};
///
/// # let options = OauthOptions {
/// #     path: "/no/such/file".into(),
/// #     token_url: "https://login.example/token".to_owned(),
/// #     client_id: Some("pelton".to_owned()),
/// #     form: TokenForm::Json,
/// #     user_agent: "pelton/1".to_owned(),
/// # };
/// let road = Arc::new(HttpTransport::new(HttpOptions::default()));
/// let login = OauthFile::new(options, road, Arc::new(RealWorld::new())); // nothing is read yet
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// assert!(login.issue(None).await.is_err()); // here there is no such file
/// # });
/// ```
pub struct OauthFile {
    clerk: Arc<Clerk>,
}

impl OauthFile {
    /// Nothing is read before somebody needs it.
    pub fn new(options: OauthOptions, transport: Arc<dyn Transport>, world: Arc<dyn World>) -> Self {
        Self { clerk: Arc::new(Clerk { options, transport, world }) }
    }
}

impl fmt::Debug for OauthFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OauthFile").field("options", &self.clerk.options).finish_non_exhaustive()
    }
}

impl Issuer for OauthFile {
    fn issue(&self, refused: Option<Auth>) -> BoxFuture<'static, Result<Issued, ModelError>> {
        let clerk = Arc::clone(&self.clerk);
        async move { clerk.issue(refused.as_ref()).await }.boxed()
    }
}

struct Clerk {
    options: OauthOptions,
    transport: Arc<dyn Transport>,
    world: Arc<dyn World>,
}

impl Clerk {
    async fn issue(&self, refused: Option<&Auth>) -> Result<Issued, ModelError> {
        let login = self.read().await?;
        if login.refresh.is_none() || self.is_good(&login, refused) {
            return Ok(self.hand_out(login));
        }
        match self.renew_once(&login, refused).await {
            Ok(login) => Ok(self.hand_out(login)),
            // Nobody has refused it yet. It may last for a while, and the clock may be wrong.
            Err(_) if refused.is_none() => {
                let good_until = self.world.now().checked_add(KEPT_ON).ok();
                Ok(Issued { auth: Auth::Bearer(login.access), good_until })
            }
            Err(error) => Err(error),
        }
    }

    /// The login after `first`, whoever renews it.
    async fn renew_once(&self, first: &Login, refused: Option<&Auth>) -> Result<Login, ModelError> {
        let began = self.world.monotonic();
        let lock = loop {
            if let Some(lock) = self.blocking(|path| Lock::try_take(&path)).await? {
                break lock;
            }
            if self.world.monotonic().saturating_sub(began) > LOCK_WAIT_MAX {
                let message = "another process has been renewing the login for too long";
                return Err(ModelError::new(ErrorKind::Timeout, message));
            }
            self.world.sleep(LOCK_POLL).await;
        };
        // Whoever had the lock before us may have renewed it.
        let login = self.read().await?;
        let done = self.is_good(&login, refused) || self.is_newer(&login, first);
        let login = match &login.refresh {
            Some(refresh) if !done => self.renew(&login, refresh).await,
            _ => Ok(login),
        };
        drop(lock);
        login
    }

    fn hand_out(&self, login: Login) -> Issued {
        // One that cannot be renewed is used as long as it is accepted.
        let renewable = login.refresh.is_some();
        let good_until = login.expires_at.filter(|_| renewable).map(|at| {
            let lasts = Duration::try_from(at.duration_since(self.world.now())).unwrap_or_default();
            at.checked_sub(EXPIRES_SOON.min(lasts / 2)).unwrap_or(Timestamp::MIN)
        });
        Issued { auth: Auth::Bearer(login.access), good_until }
    }

    /// Renews a login and writes it down.
    async fn renew(&self, login: &Login, refresh: &Secret) -> Result<Login, ModelError> {
        let place = self.blocking(|path| Replacement::prepare(&path)).await?;
        let renewal = match self.exchange(refresh).await {
            Ok(renewal) => renewal,
            // Programs that know nothing of our lock renew the same login.
            Err(error) => match self.read().await {
                Ok(newer) if self.is_newer(&newer, login) => return Ok(newer),
                _ => return Err(error),
            },
        };
        let written = renewal.clone();
        // The token is good even if it could not be written down, which was tried out beforehand: better to work on
        // with it than not at all.
        let _ = self.blocking(move |_| place.write(&written)).await;
        let refresh = renewal.refresh.or_else(|| login.refresh.clone());
        Ok(Login { access: renewal.access, refresh, expires_at: renewal.expires_at })
    }

    /// Exchanges a refresh token.
    async fn exchange(&self, refresh: &Secret) -> Result<Renewal, ModelError> {
        let post = self.post(refresh)?;
        let asking = pin!(async {
            let mut response = self.transport.post(post).await?;
            let mut text = Vec::new();
            while let Some(chunk) = response.body.next().await {
                let chunk = chunk?;
                text.extend_from_slice(&chunk[..chunk.len().min(ANSWER_BYTES_MAX - text.len())]);
            }
            Ok::<_, ModelError>((response.status, text))
        });
        let (status, text) = match select(asking, self.world.sleep(RENEWAL_WAIT_MAX)).await {
            Either::Left((answer, _)) => answer.map_err(|error| not_renewed(error, refresh))?,
            Either::Right(((), _)) => {
                let error = ModelError::new(ErrorKind::Timeout, "no answer in time");
                return Err(not_renewed(error, refresh));
            }
        };
        if status != 200 {
            let mut error = messages::from_answer(status, &text, None);
            // The standard's answer to a token that is no longer good is 400.
            if matches!(status, 400 | 401 | 403) {
                error.kind = ErrorKind::Authentication;
                error.message.push_str("; log in again");
            }
            return Err(not_renewed(error, refresh));
        }
        self.renewal(&text).ok_or_else(|| {
            let error = ModelError::new(ErrorKind::Malformed, "the answer holds no token");
            not_renewed(error, refresh)
        })
    }

    fn post(&self, refresh: &Secret) -> Result<Post, ModelError> {
        let mut said = vec![("grant_type", "refresh_token"), ("refresh_token", refresh.reveal())];
        said.extend(self.options.client_id.as_deref().map(|id| ("client_id", id)));
        let (content_type, text) = match self.options.form {
            TokenForm::Form => {
                let fields: Vec<String> =
                    said.iter().map(|(name, value)| format!("{name}={}", in_form(value))).collect();
                ("application/x-www-form-urlencoded", fields.join("&"))
            }
            TokenForm::Json => {
                let fields = said.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value)));
                ("application/json", Value::Object(fields.collect()).to_string())
            }
        };
        let user_agent = HeaderValue::from_str(&self.options.user_agent).map_err(|_| {
            let message = "the user agent holds characters that a header cannot carry";
            ModelError::new(ErrorKind::InvalidRequest, message)
        })?;
        let headers = HeaderMap::from_iter([
            (CONTENT_TYPE, HeaderValue::from_static(content_type)),
            (ACCEPT, HeaderValue::from_static("application/json")),
            (USER_AGENT, user_agent),
        ]);
        let body = Body::from(vec![Bytes::from(text)]);
        Ok(Post { url: self.options.token_url.clone(), headers, body, fresh_connection: false })
    }

    fn renewal(&self, text: &[u8]) -> Option<Renewal> {
        let said: Value = serde_json::from_slice(text).ok()?;
        let token = |name: &str| said[name].as_str().filter(|text| !text.is_empty()).map(Secret::new);
        let lasts = said["expires_in"].as_f64().and_then(|s| Duration::try_from_secs_f64(s).ok());
        let scopes = said["scope"].as_str();
        Some(Renewal {
            access: token("access_token")?,
            refresh: token("refresh_token"),
            expires_at: lasts.and_then(|lasts| self.world.now().checked_add(lasts).ok()),
            scopes: scopes.map(|scopes| scopes.split_whitespace().map(str::to_owned).collect()),
        })
    }

    /// Whether a token can be used: it does not run out at once, and is not the one that was refused.
    fn is_good(&self, login: &Login, refused: Option<&Auth>) -> bool {
        let soon = self.world.now().checked_add(EXPIRES_SOON).unwrap_or(Timestamp::MAX);
        login.expires_at.is_none_or(|at| at > soon) && refused != Some(&Auth::Bearer(login.access.clone()))
    }

    /// Whether somebody has renewed a login meanwhile. Then it is used, however soon it runs out: some tokens never
    /// last long.
    fn is_newer(&self, login: &Login, before: &Login) -> bool {
        login.access != before.access && login.expires_at.is_none_or(|at| at > self.world.now())
    }

    async fn read(&self) -> Result<Login, ModelError> {
        self.blocking(|path| store::read(&path)).await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(PathBuf) -> Result<T, String> + Send + 'static,
    ) -> Result<T, ModelError> {
        let path = self.options.path.clone();
        let done = tokio::task::spawn_blocking(move || work(path)).await;
        let failed = |message: String| ModelError::new(ErrorKind::Authentication, message);
        done.map_err(|_| failed("the credentials file was given up".to_owned()))?.map_err(failed)
    }
}

fn not_renewed(error: ModelError, refresh: &Secret) -> ModelError {
    // A server may quote what it was sent.
    let message = error.message.replace(refresh.reveal(), "***");
    ModelError { message: format!("the login could not be renewed: {message}"), ..error }
}

/// A value as a form writes it.
fn in_form(value: &str) -> String {
    let mut written = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => written.push(byte.into()),
            _ => written.push_str(&format!("%{byte:02X}")),
        }
    }
    written
}
