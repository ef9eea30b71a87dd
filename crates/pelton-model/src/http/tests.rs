//! Over real sockets, in real time.

mod calls; // whole calls over the real road
#[cfg(target_os = "linux")]
mod lost; // peers that nothing is heard of
mod pages; // of the web
mod secure; // with TLS

use std::net::SocketAddr;
use std::sync::Mutex;

use http::HeaderMap;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::*;

/// What a test server heard: the connection's number, and the request as text.
type Heard = Arc<Mutex<Vec<(usize, String)>>>;

/// A server that answers every request with the same bytes, and closes the connection if told to.
struct Server {
    address: SocketAddr,
    heard: Heard,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    async fn start(answer: &'static str, close: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, heard) = (listener.local_addr().unwrap(), Heard::default());
        let listening = Arc::clone(&heard);
        let task = tokio::spawn(async move {
            for number in 0.. {
                let (socket, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(socket, number, Arc::clone(&listening), answer, close));
            }
        });
        Self { address, heard, task }
    }

    fn url(&self) -> String {
        format!("http://{}/v1/messages", self.address)
    }

    fn heard(&self) -> Vec<(usize, String)> {
        self.heard.lock().unwrap().clone()
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut socket: S,
    number: usize,
    heard: Heard,
    answer: &str,
    close: bool,
) {
    while let Some(request) = read_request(&mut socket).await {
        heard.lock().unwrap().push((number, request));
        socket.write_all(answer.as_bytes()).await.unwrap();
        if close {
            return;
        }
    }
}

/// One request with a body of known length; `None` at the end of the connection.
async fn read_request<S: AsyncRead + Unpin>(socket: &mut S) -> Option<String> {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            if body.len() >= length.parse().unwrap() {
                return Some(text);
            }
        }
        if socket.read_buf(&mut request).await.unwrap_or(0) == 0 {
            return None;
        }
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nrequest-id: req_1\r\n\r\nok";

fn post(url: impl Into<String>) -> Post {
    let pieces = ["[1,", "", "2,3", "]"].map(|piece| Bytes::from_static(piece.as_bytes()));
    let headers = HeaderMap::from_iter([("x-api-key".parse().unwrap(), "k".parse().unwrap())]);
    Post { url: url.into(), headers, body: Body::from(pieces.to_vec()), fresh_connection: false }
}

async fn send(transport: &HttpTransport, post: Post) -> Result<(u16, Vec<u8>), TransportError> {
    let mut response = transport.post(post).await?;
    let mut body = Vec::new();
    while let Some(chunk) = response.body.next().await {
        body.extend_from_slice(&chunk?);
    }
    Ok((response.status, body))
}

fn plain() -> HttpTransport {
    HttpTransport::new(HttpOptions::default())
}

fn through(rules: ProxyRules) -> HttpTransport {
    HttpTransport::new(HttpOptions { proxy: Some(rules), ..HttpOptions::default() })
}

#[tokio::test]
async fn a_request_travels_with_its_length_and_its_headers() {
    let server = Server::start(OK, false).await;
    let mut response = plain().post(post(server.url())).await.unwrap();
    assert_eq!((response.status, &response.headers["request-id"]), (200, &"req_1".parse().unwrap()));
    assert_eq!(response.body.next().await.unwrap().unwrap(), "ok");
    let (_, request) = server.heard().remove(0);
    assert!(request.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{request}");
    for part in ["\r\nx-api-key: k\r\n", "\r\ncontent-length: 7\r\n", "\r\n\r\n[1,2,3]"] {
        assert!(request.contains(part), "{part:?} is missing in {request}");
    }
    assert!(!request.contains("transfer-encoding"), "{request}");
}

#[tokio::test]
async fn connections_are_kept_until_a_fresh_one_is_asked_for() {
    let server = Server::start(OK, false).await;
    let transport = plain();
    for fresh_connection in [false, false, true, false] {
        send(&transport, Post { fresh_connection, ..post(server.url()) }).await.unwrap();
    }
    let connections: Vec<usize> = server.heard().into_iter().map(|(number, _)| number).collect();
    assert_eq!(connections, [0, 0, 1, 1]);
}

async fn check_error(transport: HttpTransport, url: &str, kind: TransportErrorKind, words: &str) {
    let error = send(&transport, post(url)).await.unwrap_err();
    assert_eq!(error.kind, kind, "{error}");
    assert!(error.message.contains(words), "{error}");
    assert!(!error.message.contains("s3cret"), "{error}");
}

#[tokio::test]
async fn failures_are_told_apart() {
    use TransportErrorKind::*;
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let refused = format!("http://user:s3cret@{nobody}/?key=s3cret");
    check_error(plain(), &refused, Refused, "nobody accepts connections at 127.0.0.1").await;
    check_error(plain(), "no address", BadUrl, "no http address").await;
    check_error(plain(), "ftp://user:s3cret@host/", BadUrl, "no http address").await;
    check_error(
        plain(),
        "http://no-such-host.invalid/",
        Dns,
        "the name no-such-host.invalid cannot be resolved: ",
    )
    .await;

    let closed = Server::start("", true).await;
    check_error(plain(), &closed.url(), Reset, "broke: unexpected end").await;
    let cut = Server::start("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf", true).await;
    check_error(plain(), &cut.url(), Reset, "broke: unexpected end").await;
    let cut =
        Server::start("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n", true).await;
    check_error(plain(), &cut.url(), Reset, "broke: unexpected end").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let no_tls = format!("https://{}/", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.write_all(b"this is no handshake").await.unwrap();
        socket.read_to_end(&mut Vec::new()).await
    });
    check_error(plain(), &no_tls, Tls, "no secure connection to 127.0.0.1:").await;
    task.abort();

    let rules =
        || ProxyRules { http: Some("http://user:s3cret@[nonsense".to_owned()), ..ProxyRules::default() };
    assert!(!format!("{:?}", rules()).contains("s3cret"));
    check_error(through(rules()), "http://somewhere/", Proxy, "the proxy for http requests").await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Server::start(OK, false).await;
    let answer = format!("HTTP/1.1 307 Moved\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", elsewhere.url());
    let server = Server::start(answer.leak(), false).await;
    assert_eq!(send(&plain(), post(server.url())).await.unwrap().0, 307);
    assert!(elsewhere.heard().is_empty());
}

#[tokio::test]
async fn proxies_are_used_where_they_should_be() {
    let (server, proxy) = (Server::start(OK, false).await, Server::start(OK, false).await);
    let rules = ProxyRules { http: Some(format!("http://u:p@{}", proxy.address)), ..ProxyRules::default() };
    send(&through(rules.clone()), post("http://far.away/v1/messages")).await.unwrap();
    let (_, request) = proxy.heard().remove(0);
    assert!(request.starts_with("POST http://far.away/v1/messages HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("proxy-authorization: Basic dTpw"), "{request}");

    let around = ProxyRules { no_proxy: Some("localhost, 127.0.0.1".to_owned()), ..rules };
    send(&through(around), post(server.url())).await.unwrap();
    assert_eq!((server.heard().len(), proxy.heard().len()), (1, 1));

    let refusing = Server::start("HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n", true).await;
    let rules = ProxyRules { https: Some(format!("http://{}", refusing.address)), ..ProxyRules::default() };
    check_error(
        through(rules),
        "https://far.away/",
        TransportErrorKind::Proxy,
        "the proxy gave no connection to far.away",
    )
    .await;
    assert!(refusing.heard()[0].1.starts_with("CONNECT far.away:443 "));
}

#[tokio::test]
async fn short_pieces_travel_together_and_long_ones_as_they_are() {
    let short = Bytes::from(vec![b's'; PIECE_SENT_BYTES / 4]);
    let long = Bytes::from(vec![b'l'; PIECE_SENT_BYTES]);
    let mut pieces = vec![short.clone(); 6];
    pieces.extend([long.clone(), Bytes::new(), short.clone()]);
    let body = Body::from(pieces);
    let mut sending = Sending::of(body.clone());
    let mut sent = Vec::new();
    while let Some(Ok(frame)) =
        std::future::poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut sending), cx)).await
    {
        sent.push(frame.into_data().unwrap());
    }
    let lengths: Vec<usize> = sent.iter().map(|frame| frame.len() / short.len()).collect();
    assert_eq!(lengths, [4, 2, 4, 1]);
    assert_eq!(sent[2].as_ptr(), long.as_ptr(), "nothing of it was copied");
    assert_eq!(sent.concat(), body.to_vec());
    assert!(http_body::Body::is_end_stream(&sending));
}
