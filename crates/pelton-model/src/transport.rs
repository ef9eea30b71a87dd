//! How bytes travel to a model and back, so that a network in memory is as good as a real one. Pages of the web are asked for
//! by the same door: proxies and trusted certificates are the same for both.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use http::HeaderMap;
use pelton_wire::pieces::Pieces;

/// Carries requests to a model server.
///
/// A transport neither retries nor interprets: it answers with whatever status came back. Dropping the future or
/// the body cancels the exchange.
///
/// ```
/// use futures::FutureExt;
/// use futures::future::BoxFuture;
/// use pelton_model::{Post, Response, Transport, TransportError, TransportErrorKind};
///
/// /// A road with nobody at its end, for tests of what happens then.
/// struct Nowhere;
///
/// impl Transport for Nowhere {
///     fn post(&self, post: Post) -> BoxFuture<'static, Result<Response, TransportError>> {
///         let why = format!("nobody listens at {}", post.url);
///         async { Err(TransportError::new(TransportErrorKind::Refused, why)) }.boxed()
///     }
/// }
/// # assert!(!Nowhere.has_proxy("https", "example.com"));
/// ```
pub trait Transport: Send + Sync {
    /// Sends one POST and resolves when the head of the answer is there.
    fn post(&self, post: Post) -> BoxFuture<'static, Result<Response, TransportError>>;

    /// Asks for a page. A road that leads to a model alone has none.
    fn get(&self, _get: Get) -> BoxFuture<'static, Result<Response, TransportError>> {
        async { Err(no_web()) }.boxed()
    }

    /// The addresses a name stands for, to be judged before anybody is asked there.
    fn addresses(&self, _host: &str) -> BoxFuture<'static, Result<Vec<IpAddr>, TransportError>> {
        async { Err(no_web()) }.boxed()
    }

    /// Whether pages of this kind of address (`http` or `https`) are asked for by a proxy, which looks up names itself.
    fn has_proxy(&self, _scheme: &str, _host: &str) -> bool {
        false
    }
}

fn no_web() -> TransportError {
    TransportError::new(TransportErrorKind::Other, "there is no road to the web from here")
}

/// One GET. Redirects are answers like any other.
///
/// ```
/// use pelton_model::Get;
///
/// let mut get = Get { url: "https://example.com/".to_owned(), headers: Default::default(), pinned: Vec::new() };
/// get.pinned.push("93.184.215.14:443".parse()?); // what its name was found to stand for: no other is asked
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Get {
    /// Where to: an `http` or `https` address.
    pub url: String,
    /// All headers but `Host`.
    pub headers: HeaderMap,
    /// The addresses the host was found to have: no other is connected to, whatever its name stands for by then. Without
    /// any, only a proxy can be asked.
    pub pinned: Vec<SocketAddr>,
}

/// One POST.
///
/// ```
/// use bytes::Bytes;
/// use pelton_model::Post;
///
/// let post = Post {
///     url: "https://models.example/v1/messages".to_owned(),
///     headers: http::HeaderMap::new(),
///     body: vec![Bytes::from_static(b"{}")].into(),
///     fresh_connection: false,
/// };
/// assert_eq!(post.body.length(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct Post {
    /// Where to.
    pub url: String,
    /// All headers but the ones that describe the framing of the body.
    pub headers: HeaderMap,
    /// What is said.
    pub body: Body,
    /// Kept-alive connections are not to be trusted: one of them was just reset.
    pub fresh_connection: bool,
}

/// A request body, in pieces. Cloning copies a pointer.
///
/// ```
/// use bytes::Bytes;
/// use pelton_model::Body;
///
/// let body = Body::from(vec![Bytes::from_static(b"{\"messages\":["), Bytes::from_static(b"]}")]);
/// let same = body.clone(); // nothing is copied
/// assert_eq!((same.length(), same.to_vec()), (15, b"{\"messages\":[]}".to_vec()));
/// ```
#[derive(Clone)]
pub struct Body(Arc<Pieces>);

impl Body {
    /// The pieces, in the order they are sent.
    pub fn pieces(&self) -> &Pieces {
        &self.0
    }

    /// The length of all pieces together, in bytes.
    pub fn length(&self) -> u64 {
        self.0.length()
    }

    /// The pieces as one text of bytes; meant for tests and small bodies.
    pub fn to_vec(&self) -> Vec<u8> {
        self.0.to_vec()
    }
}

impl From<Pieces> for Body {
    fn from(pieces: Pieces) -> Self {
        Self(Arc::new(pieces))
    }
}

impl From<Vec<Bytes>> for Body {
    fn from(pieces: Vec<Bytes>) -> Self {
        Pieces::from(pieces).into()
    }
}

// A body holds a whole conversation: nobody wants it in a log.
impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({} bytes)", self.length())
    }
}

/// The head of an answer, and its body as it arrives.
///
/// ```
/// use bytes::Bytes;
/// use futures::{FutureExt, StreamExt};
/// use pelton_model::Response;
///
/// // What a transport of a test answers with.
/// let body = futures::stream::iter([Ok(Bytes::from_static(b"data: {}\n\n"))]).boxed();
/// let mut response = Response { status: 200, headers: http::HeaderMap::new(), body };
/// let first = response.body.next().now_or_never();
/// assert_eq!(first, Some(Some(Ok(Bytes::from_static(b"data: {}\n\n")))));
/// ```
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The answer's headers.
    pub headers: HeaderMap,
    /// The body. An item in error is the last one.
    pub body: BoxStream<'static, Result<Bytes, TransportError>>,
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response").field("status", &self.status).finish_non_exhaustive()
    }
}

/// An exchange that failed on the way.
///
/// ```
/// use pelton_model::{TransportError, TransportErrorKind};
///
/// let error = TransportError::new(TransportErrorKind::Dns, "models.example cannot be found");
/// assert_eq!(error.to_string(), "models.example cannot be found");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TransportError {
    /// What to do about it depends on this.
    pub kind: TransportErrorKind,
    /// What a person reads: plain words, causes included, no credentials.
    pub message: String,
}

impl TransportError {
    /// An error of this kind.
    pub fn new(kind: TransportErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// The ways an exchange fails on the way.
///
/// ```
/// use pelton_model::{ErrorKind, TransportErrorKind};
///
/// /// Whether somebody should look at the network before asking again.
/// fn is_set_up_wrong(kind: &ErrorKind) -> bool {
///     use TransportErrorKind::{BadUrl, Dns, Proxy, Tls};
///     matches!(kind, ErrorKind::Connection(BadUrl | Dns | Proxy | Tls))
/// }
/// assert!(is_set_up_wrong(&ErrorKind::Connection(TransportErrorKind::Tls)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// Nobody listens there.
    Refused,
    /// The connection broke.
    Reset,
    /// The name of the host could not be resolved.
    Dns,
    /// The secure connection could not be made: a certificate, most often.
    Tls,
    /// It took too long.
    Timeout,
    /// The proxy refused or could not be used.
    Proxy,
    /// The address cannot be used.
    BadUrl,
    /// Something else.
    Other,
}
