//! Who is asked, with which credentials, by which road.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

use crate::ask::{Ask, RefusedBetas};
use crate::call::Call;
use crate::credentials::Credentials;
use crate::error::{ErrorKind, ModelError};
use crate::fast::{FastMode, FastSwitch};
use crate::retry::RetryPolicy;
use crate::sign::Signing;
use crate::transport::{Body, Post, Transport};
use crate::world::World;

/// The wire version spoken unless told otherwise.
pub const DEFAULT_VERSION: &str = "2023-06-01";

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const BETA: HeaderName = HeaderName::from_static("anthropic-beta");

/// A text that is never printed.
///
/// ```
/// use pelton_model::Secret;
///
/// let key = Secret::new("sk-secret");
/// assert_eq!(key.reveal(), "sk-secret");
/// assert!(!format!("{key:?}").contains("sk-secret"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. Do not print it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// How a request says who pays.
///
/// ```
/// use pelton_model::{Auth, Secret};
///
/// let (key, token): (Option<&str>, _) = (None, Some("a-token")); // what the environment says
/// let auth = match (key, token) {
///     (Some(key), _) => Auth::ApiKey(Secret::new(key)),
///     (None, Some(token)) => Auth::Bearer(Secret::new(token)),
///     (None, None) => Auth::None,
/// };
/// assert_eq!(auth, Auth::Bearer(Secret::new("a-token")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Auth {
    /// A key, sent as `x-api-key`.
    ApiKey(Secret),
    /// A token, sent as `authorization: Bearer`.
    Bearer(Secret),
    /// By a signature over the whole request.
    Signed(Signing),
    /// Not at all.
    None,
}

/// A server that speaks Messages.
///
/// ```
/// use pelton_model::{Auth, Endpoint, Secret};
///
/// let endpoint = Endpoint::new("https://models.example", Auth::ApiKey(Secret::new("sk-secret")));
/// assert!(!format!("{endpoint:?}").contains("sk-secret"), "keys are never shown");
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Endpoint {
    /// Its address up to, and without, `/v1/messages`.
    pub base_url: String,
    /// Who pays.
    pub auth: Auth,
    /// Who pays, where that changes: asked instead of `auth` before every request, and again when a server does not
    /// accept what it said.
    pub credentials: Option<Arc<dyn Credentials>>,
    /// The wire version; [`DEFAULT_VERSION`] unless there is a reason.
    pub version: String,
    /// Sent as they are; one that names a header we would send replaces it.
    pub custom_headers: Vec<(String, String)>,
    /// Who we say we are.
    pub user_agent: String,
    /// Beta features to switch on.
    pub betas: Vec<String>,
    /// What this server calls models that are known by another id.
    pub model_ids: BTreeMap<String, String>,
    /// Further fields of every request. One that we would send too replaces ours; the fields of two objects are
    /// put together, unless theirs names a `type`.
    /// What the conversation itself is made of (`model`, `max_tokens`, `stream`, `system`, `tools`, `messages`) is always ours.
    pub extra_body: Map<String, Value>,
}

impl Endpoint {
    /// A server at this address, with everything else as usual.
    pub fn new(base_url: impl Into<String>, auth: Auth) -> Self {
        Self {
            base_url: base_url.into(),
            auth,
            credentials: None,
            version: DEFAULT_VERSION.to_owned(),
            custom_headers: Vec::new(),
            user_agent: concat!("pelton/", env!("CARGO_PKG_VERSION")).to_owned(),
            betas: Vec::new(),
            model_ids: BTreeMap::new(),
            extra_body: Map::new(),
        }
    }

    fn messages_url(&self) -> String {
        format!("{}/v1/messages", self.base_url.trim_end_matches('/'))
    }

    /// All headers but the credentials, unless those were given by hand.
    fn headers(&self) -> Result<HeaderMap, ModelError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, value("the user agent", &self.user_agent)?);
        headers.insert("anthropic-version", value("the wire version", &self.version)?);
        if !self.betas.is_empty() {
            headers.insert(BETA, value("the list of betas", &self.betas.join(","))?);
        }
        for (name, text) in &self.custom_headers {
            let name: HeaderName =
                name.trim().parse().map_err(|_| unusable(&format!("the header name {name:?}")))?;
            let text = secret(&format!("the header {name}"), text.trim())?;
            headers.insert(name, text);
        }
        Ok(headers)
    }
}

// Custom headers may carry credentials, and so may an address.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.custom_headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Endpoint")
            .field("base_url", &without_credentials(&self.base_url))
            .field("auth", &self.auth)
            .field("credentials", &self.credentials.as_ref().map(|_| "***"))
            .field("version", &self.version)
            .field("custom_headers", &names)
            .field("user_agent", &self.user_agent)
            .field("betas", &self.betas)
            .finish()
    }
}

/// Asks one server. Cheap to clone; holds no connection of its own.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use std::sync::Arc;
///
/// use bytes::Bytes;
/// use futures::future::BoxFuture;
/// use futures::{FutureExt, StreamExt};
/// use pelton_model::{
///     Ask, Auth, Client, Endpoint, Post, Prefix, RealWorld, Response, RetryPolicy, Step, Transport, TransportError,
/// };
///
/// /// A server in memory that always says the same.
/// struct Echo;
///
/// impl Transport for Echo {
///     fn post(&self, post: Post) -> BoxFuture<'static, Result<Response, TransportError>> {
///         assert!(post.url.ends_with("/v1/messages"));
///         let events = [
///             r#"{"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":3}}}"#,
///             r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
///             r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}"#,
///             r#"{"type":"content_block_stop","index":0}"#,
///             r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#,
///             r#"{"type":"message_stop"}"#,
///         ];
///         let bytes = events.map(|event| Ok(Bytes::from(format!("data: {event}\n\n"))));
///         let body = futures::stream::iter(bytes).boxed();
///         async move { Ok(Response { status: 200, headers: Default::default(), body }) }.boxed()
///     }
/// }
///
/// let endpoint = Endpoint::new("http://in.memory", Auth::None);
/// let client = Client::new(endpoint, Arc::new(Echo), RetryPolicy::default(), Arc::new(RealWorld::new()));
/// let messages = vec![Bytes::from_static(br#"{"role":"user","content":"hi"}"#)];
/// let mut call = client.call(Ask::new("any-model", 1000, Arc::new(Prefix::default()), messages));
/// let mut said = Vec::new();
/// while let Some(step) = call.next().await {
///     match step {
///         Step::Block(block) => said.push(block.json),
///         Step::Finished(reply) => assert_eq!(reply.usage.output_tokens, 1),
///         _ => {}
///     }
/// }
/// assert_eq!(said, [r#"{"type":"text","text":"hello"}"#]);
/// # });
/// ```
#[derive(Clone)]
pub struct Client {
    pub(crate) road: Arc<Road>,
}

/// What every call of a client shares.
pub(crate) struct Road {
    pub(crate) url: String,
    /// Made once; an endpoint whose headers cannot be sent fails at the first call, where somebody listens.
    headers: Result<HeaderMap, ModelError>,
    auth: Auth,
    /// `None`: what is in `auth` is all there is.
    pub(crate) credentials: Option<Arc<dyn Credentials>>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) policy: RetryPolicy,
    pub(crate) world: Arc<dyn World>,
    pub(crate) fast: FastSwitch,
    /// What the server calls models that are known by another id.
    pub(crate) model_ids: BTreeMap<String, String>,
    /// Further fields of every request.
    pub(crate) extra_body: Map<String, Value>,
}

impl Road {
    /// Who pays for the next request.
    pub(crate) async fn auth(&self) -> Result<Auth, ModelError> {
        match &self.credentials {
            Some(credentials) => credentials.current().await,
            None => Ok(self.auth.clone()),
        }
    }

    /// A request that these credentials pay for and that makes use of these betas.
    pub(crate) fn request<'a>(
        &self,
        auth: &Auth,
        betas: impl Iterator<Item = &'a str>,
        refused: &RefusedBetas,
        body: Body,
    ) -> Result<Post, ModelError> {
        let headers = self.headers(auth, betas, refused)?;
        let by_hand = has_credentials(&headers);
        let mut post = Post { url: self.url.clone(), headers, body, fresh_connection: false };
        match auth {
            Auth::Signed(signing) if !by_hand => signing.sign(&mut post, self.world.now())?,
            _ => {}
        }
        Ok(post)
    }

    fn headers<'a>(
        &self,
        auth: &Auth,
        betas: impl Iterator<Item = &'a str>,
        refused: &RefusedBetas,
    ) -> Result<HeaderMap, ModelError> {
        let mut headers = self.headers.clone()?;
        match auth {
            // A server answers 401 to two kinds of credentials at once: those given by hand win.
            _ if has_credentials(&headers) => {}
            Auth::ApiKey(key) => {
                headers.insert(API_KEY, secret("the API key", key.reveal())?);
            }
            Auth::Bearer(token) => {
                let bearer = format!("Bearer {}", token.reveal());
                headers.insert(AUTHORIZATION, secret("the token", &bearer)?);
            }
            Auth::Signed(_) | Auth::None => {}
        }
        let list = headers.remove(BETA);
        let list = list.as_ref().and_then(|list| list.to_str().ok()).unwrap_or_default();
        let listed = list.split(',').map(str::trim).filter(|beta| !beta.is_empty());
        let mut wanted: Vec<&str> = Vec::new();
        for beta in listed.chain(betas.map(|beta| -> &str { beta })) {
            if !wanted.contains(&beta) && !refused.contains(beta) {
                wanted.push(beta);
            }
        }
        if !wanted.is_empty() {
            headers.insert(BETA, value("the list of betas", &wanted.join(","))?);
        }
        Ok(headers)
    }
}

impl Client {
    /// A client for one server.
    pub fn new(
        endpoint: Endpoint,
        transport: Arc<dyn Transport>,
        policy: RetryPolicy,
        world: Arc<dyn World>,
    ) -> Self {
        let (url, headers) = (endpoint.messages_url(), endpoint.headers());
        let by_hand = headers.as_ref().is_ok_and(has_credentials);
        let road = Road {
            url,
            headers,
            auth: endpoint.auth,
            credentials: endpoint.credentials.filter(|_| !by_hand),
            transport,
            policy,
            world,
            fast: FastSwitch::default(),
            model_ids: endpoint.model_ids,
            extra_body: endpoint.extra_body,
        };
        Self { road: Arc::new(road) }
    }

    /// Asks. Nothing happens until the call is polled; dropping it cancels.
    pub fn call(&self, ask: Ask) -> Call {
        Call::new(Arc::clone(&self.road), ask)
    }

    /// What a question in fast mode gets now.
    pub fn fast_mode(&self) -> FastMode {
        self.road.fast.state(self.road.world.monotonic())
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &without_credentials(&self.road.url)).finish_non_exhaustive()
    }
}

fn has_credentials(headers: &HeaderMap) -> bool {
    headers.contains_key(API_KEY) || headers.contains_key(AUTHORIZATION)
}

fn without_credentials(url: &str) -> String {
    match url.split_once("://").map(|(scheme, rest)| (scheme, rest.split_once('@'))) {
        Some((scheme, Some((user, rest)))) if !user.contains('/') => format!("{scheme}://***@{rest}"),
        _ => url.to_owned(),
    }
}

fn value(what: &str, text: &str) -> Result<HeaderValue, ModelError> {
    HeaderValue::from_str(text).map_err(|_| unusable(what))
}

fn secret(what: &str, text: &str) -> Result<HeaderValue, ModelError> {
    let mut value = value(what, text)?;
    value.set_sensitive(true);
    Ok(value)
}

fn unusable(what: &str) -> ModelError {
    ModelError::new(ErrorKind::InvalidRequest, format!("{what} holds characters that a header cannot carry"))
}
