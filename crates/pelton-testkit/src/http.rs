//! A small HTTP/1.1 server side: reads requests, writes answers byte by byte as told.
//!
//! Written by hand because the scripted model must be able to break every rule of HTTP on purpose: cut a body in
//! the middle, end without the last chunk, reset the connection. A server library exists to prevent just that.

mod body;
#[cfg(test)]
mod tests;

use bytes::{Bytes, BytesMut};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Largest request line and headers together, in bytes.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Most header lines in a request.
pub const HEADERS_MAX: usize = 128;
/// Largest request body that is read, in bytes; also after decompression.
pub const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A request, whole, its body decompressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path without the query.
    pub(crate) path: String,
    /// What stands behind the `?`, empty when there is none.
    pub(crate) query: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
    /// Whether the connection may serve another request.
    pub(crate) keep_alive: bool,
}

impl Request {
    /// A request whose bytes are all there; the body as it was sent.
    pub(crate) fn new(
        method: String,
        target: &str,
        headers: Vec<(String, String)>,
        raw: Bytes,
        keep_alive: bool,
    ) -> Result<Self, BadRequest> {
        let body = body::decompress(raw, header(&headers, "content-encoding"))?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Ok(Self { method, path: path.to_owned(), query: query.to_owned(), headers, body, keep_alive })
    }

    /// The first header of this name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

/// Why there is no request.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The client closed the connection between two requests, or it broke.
    Gone,
    /// What came is not a request we take; the connection ends after the answer.
    Bad(BadRequest),
}

/// The answer to bytes that are no request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadRequest {
    pub(crate) status: u16,
    pub(crate) message: String,
    /// The API's error code, where it has one.
    pub(crate) code: Option<&'static str>,
}

impl From<BadRequest> for ReadError {
    fn from(bad: BadRequest) -> Self {
        Self::Bad(bad)
    }
}

impl From<io::Error> for ReadError {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// Reads one request. `buffer` holds what was read beyond the one before.
pub(crate) async fn read_request(
    reader: &mut (impl AsyncRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    buffer: &mut BytesMut,
) -> Result<Request, ReadError> {
    let head = read_head(reader, buffer).await?;
    if head.expects_continue {
        writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    let raw = match head.length {
        body::Length::Known(length) => body::read_known(reader, buffer, length).await?,
        body::Length::Chunked => body::read_chunked(reader, buffer).await?,
    };
    Ok(Request::new(head.method, &head.target, head.headers, raw, head.keep_alive)?)
}

/// How the end of a body is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(usize),
    Chunked,
}

/// Writes status line and headers.
pub(crate) async fn write_head(
    writer: &mut (impl AsyncWrite + Unpin),
    status: u16,
    headers: &[(String, String)],
    framing: Framing,
    keep_alive: bool,
) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    match framing {
        Framing::Length(length) => head.push_str(&format!("content-length: {length}\r\n")),
        Framing::Chunked => head.push_str("transfer-encoding: chunked\r\n"),
    }
    head.push_str(if keep_alive { "\r\n" } else { "connection: close\r\n\r\n" });
    writer.write_all(head.as_bytes()).await?;
    writer.flush().await
}

/// Writes a piece of the body, as a chunk of its own when the body is chunked.
pub(crate) async fn write_piece(
    writer: &mut (impl AsyncWrite + Unpin),
    framing: Framing,
    bytes: &[u8],
) -> io::Result<()> {
    // An empty chunk would end the body.
    if bytes.is_empty() {
        return Ok(());
    }
    match framing {
        Framing::Length(_) => writer.write_all(bytes).await?,
        Framing::Chunked => {
            let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
            chunk.extend_from_slice(bytes);
            chunk.extend_from_slice(b"\r\n");
            writer.write_all(&chunk).await?;
        }
    }
    writer.flush().await
}

/// Ends a body as HTTP wants it.
pub(crate) async fn write_end(writer: &mut (impl AsyncWrite + Unpin), framing: Framing) -> io::Result<()> {
    if framing == Framing::Chunked {
        writer.write_all(b"0\r\n\r\n").await?;
    }
    writer.flush().await
}

/// Returns when the client has left. Bytes of a next request are kept, up to a bound.
pub(crate) async fn wait_for_hang_up(reader: &mut (impl AsyncRead + Unpin), buffer: &mut BytesMut) {
    while buffer.len() < HEAD_BYTES_MAX {
        match reader.read_buf(buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
    // A client that sends that much ahead is there; whether it leaves shows when its answer is written.
    std::future::pending::<()>().await;
}

/// The first header of a name.
pub(crate) fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

struct Head {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    length: body::Length,
    expects_continue: bool,
    keep_alive: bool,
}

async fn read_head(reader: &mut (impl AsyncRead + Unpin), buffer: &mut BytesMut) -> Result<Head, ReadError> {
    loop {
        if let Some((head, length)) = parse_head(buffer)? {
            let _ = buffer.split_to(length);
            return Ok(head);
        }
        if buffer.len() >= HEAD_BYTES_MAX {
            return Err(bad(431, format!("the headers are larger than {HEAD_BYTES_MAX} bytes")).into());
        }
        if reader.read_buf(buffer).await? == 0 {
            return Err(ReadError::Gone);
        }
    }
}

fn parse_head(buffer: &[u8]) -> Result<Option<(Head, usize)>, ReadError> {
    let mut lines = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut lines);
    let length = match request.parse(buffer) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(bad(431, format!("more than {HEADERS_MAX} headers")).into());
        }
        Err(error) => return Err(bad(400, format!("not HTTP: {error}")).into()),
    };
    if request.version != Some(1) {
        return Err(bad(505, "only HTTP/1.1 is spoken here".to_owned()).into());
    }
    let headers: Vec<(String, String)> = request
        .headers
        .iter()
        .map(|line| (line.name.to_owned(), String::from_utf8_lossy(line.value).into_owned()))
        .collect();
    let says =
        |name, word: &str| header(&headers, name).is_some_and(|value| value.eq_ignore_ascii_case(word));
    let head = Head {
        method: request.method.unwrap_or_default().to_owned(),
        target: request.path.unwrap_or_default().to_owned(),
        length: body::length(&headers)?,
        expects_continue: says("expect", "100-continue"),
        keep_alive: !says("connection", "close"),
        headers,
    };
    Ok(Some((head, length)))
}

fn bad(status: u16, message: String) -> BadRequest {
    BadRequest { status, message, code: None }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Payload Too Large",
        422 => "Unprocessable Entity",
        424 => "Failed Dependency",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        529 => "Overloaded",
        _ => "Status",
    }
}
