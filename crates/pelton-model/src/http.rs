//! The real road: HTTP over TCP, with or without TLS.
//!
//! Nothing is read from the environment of the process and nothing is set up before the first request: proxies
//! and certificates are options, and the trusted ones are read at the first TLS handshake.

mod explain; // what went wrong, in words
mod pages; // of the web
mod trust; // whom to trust

use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt};
use http_body::{Frame, SizeHint};
use pelton_wire::pieces::Place;
use reqwest::{NoProxy, Proxy, Url, redirect};

pub use self::trust::Roots;
use crate::transport::{Body, Get, Post, Response, Transport, TransportError, TransportErrorKind};

/// How long an idle connection is kept.
const POOL_IDLE: Duration = Duration::from_secs(60);
/// How long a connection is silent before it is probed, and how long between two probes.
const PROBE_AFTER: Duration = Duration::from_secs(15);
/// A peer that acknowledges nothing for so long is gone: the machine slept, or the network changed.
const DEAD_AFTER: Duration = Duration::from_secs(8);

/// Redirects of one message that are followed.
const REDIRECTS_MAX: usize = 5;

/// How the road is built.
///
/// ```
/// use std::time::Duration;
///
/// use pelton_model::HttpOptions;
///
/// let mut options = HttpOptions::default();
/// options.connect_timeout = Duration::from_secs(5);
/// assert!(options.proxy.is_none());
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Proxies to go through.
    pub proxy: Option<ProxyRules>,
    /// The authorities whose certificates are trusted. None unless somebody names them: this crate does not look
    /// around on the machine.
    pub roots: Roots,
    /// Authorities to trust besides those. Somebody chose them: one that cannot be used is an error.
    pub extra_roots: Roots,
    /// How long a connection may take to come about.
    pub connect_timeout: Duration,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            proxy: None,
            roots: Roots::default(),
            extra_roots: Roots::default(),
            connect_timeout: Duration::from_secs(10),
        }
    }
}

/// Which requests go through which proxy. Addresses may carry credentials.
///
/// ```
/// use pelton_model::ProxyRules;
///
/// let proxy = ProxyRules {
///     https: Some("http://ada:secret@proxy.example:3128".to_owned()),
///     no_proxy: Some("localhost,.intern.example".to_owned()),
///     ..ProxyRules::default()
/// };
/// assert!(!format!("{proxy:?}").contains("secret"), "credentials are never shown");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProxyRules {
    /// The proxy for `http` addresses.
    pub http: Option<String>,
    /// The proxy for `https` addresses.
    pub https: Option<String>,
    /// Hosts that are reached directly, separated by commas.
    pub no_proxy: Option<String>,
}

impl ProxyRules {
    /// Whether requests can go by way of a proxy with this address. Without a scheme `http` is meant.
    ///
    /// ```
    /// use pelton_model::ProxyRules;
    ///
    /// assert!(ProxyRules::can_use("http://proxy.example:3128") && ProxyRules::can_use("127.0.0.1:3128"));
    /// assert!(!ProxyRules::can_use("socks5://127.0.0.1:1080") && !ProxyRules::can_use("::::"));
    /// ```
    pub fn can_use(address: &str) -> bool {
        let with_scheme = match address.contains("://") {
            true => address.to_owned(),
            false => format!("http://{address}"),
        };
        Url::parse(&with_scheme).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
    }
}

// The addresses may carry credentials.
impl fmt::Debug for ProxyRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = |proxy: &Option<String>| proxy.as_ref().map(|_| "***");
        f.debug_struct("ProxyRules")
            .field("http", &set(&self.http))
            .field("https", &set(&self.https))
            .field("no_proxy", &self.no_proxy)
            .finish()
    }
}

/// Sends requests over HTTP/1.1 or HTTP/2. Holds the pool of connections: make one, share it.
///
/// ```
/// use std::sync::Arc;
///
/// use pelton_model::{Auth, Client, Endpoint, HttpOptions, HttpTransport, RealWorld, RetryPolicy};
///
/// let road = Arc::new(HttpTransport::new(HttpOptions::default())); // one for all clients
/// let endpoint = Endpoint::new("http://127.0.0.1:8080", Auth::None);
/// let client = Client::new(endpoint, road, RetryPolicy::default(), Arc::new(RealWorld::new()));
/// # drop(client);
/// ```
pub struct HttpTransport {
    options: HttpOptions,
    tls: OnceLock<Result<rustls::ClientConfig, TransportError>>,
    client: Mutex<Option<reqwest::Client>>,
}

impl HttpTransport {
    /// A road that is built when the first request is sent.
    pub fn new(options: HttpOptions) -> Self {
        Self { options, tls: OnceLock::new(), client: Mutex::new(None) }
    }

    /// A client for those who speak to servers of tools: the same proxies, the same trust. It follows where a message can be
    /// taken whole and stays at one origin; redirects that lead elsewhere are answers like any other.
    pub fn client_for_servers(&self) -> Result<reqwest::Client, TransportError> {
        let keeps = |attempt: redirect::Attempt<'_>| {
            let stays = attempt.previous().last().is_some_and(|last| last.origin() == attempt.url().origin());
            let whole = matches!(attempt.status().as_u16(), 307 | 308);
            if stays && whole && attempt.previous().len() <= REDIRECTS_MAX {
                attempt.follow()
            } else {
                attempt.stop()
            }
        };
        let unusable = |error| TransportError::new(TransportErrorKind::Other, explain::cause(&error));
        self.plan()?.redirect(redirect::Policy::custom(keeps)).build().map_err(unusable)
    }

    /// The client in use, or a new one whose pool is empty.
    fn client(&self, fresh: bool) -> Result<reqwest::Client, TransportError> {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        match &*client {
            Some(client) if !fresh => Ok(client.clone()),
            _ => Ok(client.insert(self.build()?).clone()),
        }
    }

    fn build(&self) -> Result<reqwest::Client, TransportError> {
        let unusable = |error| TransportError::new(TransportErrorKind::Other, explain::cause(&error));
        self.plan()?.build().map_err(unusable)
    }

    fn plan(&self) -> Result<reqwest::ClientBuilder, TransportError> {
        let trust = || trust::config(&self.options.roots, &self.options.extra_roots);
        let tls = self.tls.get_or_init(trust).clone()?;
        let mut builder = reqwest::Client::builder()
            // First of all: it also forgets the proxies of the environment.
            .no_proxy()
            .tls_backend_preconfigured(tls)
            .redirect(redirect::Policy::none())
            // Retrying is the caller's business.
            .retry(reqwest::retry::never())
            .connect_timeout(self.options.connect_timeout)
            .pool_idle_timeout(POOL_IDLE)
            .tcp_nodelay(true)
            .tcp_keepalive(PROBE_AFTER)
            .tcp_keepalive_interval(PROBE_AFTER)
            .http2_keep_alive_interval(PROBE_AFTER)
            .http2_keep_alive_timeout(DEAD_AFTER);
        #[cfg(target_os = "linux")]
        {
            builder = builder.tcp_user_timeout(DEAD_AFTER);
        }
        for proxy in self.proxies()? {
            builder = builder.proxy(proxy);
        }
        Ok(builder)
    }

    fn proxies(&self) -> Result<Vec<Proxy>, TransportError> {
        let Some(rules) = &self.options.proxy else { return Ok(Vec::new()) };
        let around = rules.no_proxy.as_deref().and_then(NoProxy::from_string);
        let mut proxies = Vec::new();
        for (scheme, address) in [("http", &rules.http), ("https", &rules.https)] {
            let Some(address) = address.as_deref().filter(|address| !address.is_empty()) else { continue };
            let proxy = if scheme == "http" { Proxy::http(address) } else { Proxy::https(address) };
            // The address itself stays out of the message: it may carry a password.
            let proxy = proxy.map_err(|_| {
                let message = format!("the address of the proxy for {scheme} requests cannot be used");
                TransportError::new(TransportErrorKind::Proxy, message)
            })?;
            proxies.push(proxy.no_proxy(around.clone()));
        }
        Ok(proxies)
    }
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTransport").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Transport for HttpTransport {
    fn post(&self, post: Post) -> BoxFuture<'static, Result<Response, TransportError>> {
        let client = self.client(post.fresh_connection);
        async move {
            let url = Url::parse(&post.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
            let url = url.ok_or_else(|| {
                TransportError::new(
                    TransportErrorKind::BadUrl,
                    "the address of the model server is no http address",
                )
            })?;
            let host: Arc<str> = match (url.host_str().unwrap_or_default(), url.port()) {
                (host, Some(port)) => format!("{host}:{port}").into(),
                (host, None) => host.into(),
            };
            let request = client?.post(url).headers(post.headers);
            let sent = request.body(reqwest::Body::wrap(Sending::of(post.body))).send().await;
            let response = sent.map_err(|error| explain::error(&host, error))?;
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let body = response.bytes_stream().map_err(move |error| explain::error(&host, error)).boxed();
            Ok(Response { status, headers, body })
        }
        .boxed()
    }

    fn get(&self, get: Get) -> BoxFuture<'static, Result<Response, TransportError>> {
        let plan = self.plan();
        async move { pages::get(plan?, get).await }.boxed()
    }

    fn addresses(&self, host: &str) -> BoxFuture<'static, Result<Vec<IpAddr>, TransportError>> {
        pages::addresses(host.to_owned()).boxed()
    }

    fn has_proxy(&self, scheme: &str, host: &str) -> bool {
        self.options.proxy.as_ref().is_some_and(|rules| pages::goes_through(rules, scheme, host))
    }
}

/// A piece that is as long as this is sent as it is. Shorter ones are copied together until they are: handing each of them to the
/// kernel takes longer than copying it does.
const PIECE_SENT_BYTES: usize = 16 * 1024;

/// A body whose pieces are sent one after the other, with its length told ahead.
struct Sending {
    body: Body,
    next: Place,
    left: u64,
}

impl Sending {
    fn of(body: Body) -> Self {
        Self { next: Place::default(), left: body.length(), body }
    }
}

impl http_body::Body for Sending {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Self { body, next, left } = &mut *self;
        let room = usize::try_from(*left).unwrap_or(usize::MAX).min(2 * PIECE_SENT_BYTES);
        let mut together = Vec::new();
        loop {
            let before = *next;
            let Some(piece) = body.pieces().next(next) else { break };
            if piece.len() < PIECE_SENT_BYTES {
                if together.capacity() == 0 {
                    together = Vec::with_capacity(room);
                }
                together.extend_from_slice(piece);
                if together.len() >= PIECE_SENT_BYTES {
                    break;
                }
            } else if together.is_empty() {
                *left -= piece.len() as u64;
                return Poll::Ready(Some(Ok(Frame::data(piece.clone()))));
            } else {
                // It comes next, by itself.
                *next = before;
                break;
            }
        }
        *left -= together.len() as u64;
        Poll::Ready((!together.is_empty()).then(|| Ok(Frame::data(together.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests;
