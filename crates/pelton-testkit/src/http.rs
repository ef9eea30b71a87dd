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
    /// Whether the client understands a body in chunks: not before HTTP/1.1.
    pub(crate) takes_chunks: bool,
}

impl Request {
    /// A request whose bytes are all there; the body as it was sent.
    pub(crate) fn new(
        method: &str,
        target: &str,
        headers: Vec<(String, String)>,
        raw: Bytes,
    ) -> Result<Self, Box<Refused>> {
        Self::without_body(method, target, headers).with_body(raw)
    }

    fn without_body(method: &str, target: &str, headers: Vec<(String, String)>) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers,
            body: Bytes::new(),
            keep_alive: true,
            takes_chunks: true,
        }
    }

    fn with_body(self, raw: Bytes) -> Result<Self, Box<Refused>> {
        match body::decompress(raw, self.header("content-encoding")) {
            Ok(body) => Ok(Self { body, ..self }),
            Err(bad) => Err(Box::new(Refused { request: self, bad })),
        }
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
    /// What came is no request; the connection ends after the answer.
    Bad(BadRequest),
    /// The body of a request cannot be taken; the connection ends after the answer.
    Refused(Box<Refused>),
}

/// A request without its body, and what is wrong with that.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) request: Request,
    pub(crate) bad: BadRequest,
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
    let request = read_head(reader, buffer).await?;
    match read_body(reader, writer, buffer, &request).await {
        Ok(raw) => request.with_body(raw).map_err(ReadError::Refused),
        Err(ReadError::Bad(bad)) => Err(ReadError::Refused(Box::new(Refused { request, bad }))),
        Err(error) => Err(error),
    }
}

async fn read_body(
    reader: &mut (impl AsyncRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    buffer: &mut BytesMut,
    request: &Request,
) -> Result<Bytes, ReadError> {
    let length = body::length(&request.headers)?;
    if request.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
        writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    match length {
        body::Length::Known(length) => body::read_known(reader, buffer, length).await,
        body::Length::Chunked => body::read_chunked(reader, buffer).await,
    }
}

/// How the end of a body is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(usize),
    Chunked,
    /// The body ends with the connection, as before HTTP/1.1.
    UntilClose,
    /// The status says that there is none.
    NoBody,
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
        Framing::UntilClose | Framing::NoBody => {}
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
        Framing::NoBody => {}
        Framing::Length(_) | Framing::UntilClose => writer.write_all(bytes).await?,
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

async fn read_head(
    reader: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
) -> Result<Request, ReadError> {
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

fn parse_head(buffer: &[u8]) -> Result<Option<(Request, usize)>, ReadError> {
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
    let headers: Vec<(String, String)> = request
        .headers
        .iter()
        .map(|line| (line.name.to_owned(), String::from_utf8_lossy(line.value).into_owned()))
        .collect();
    let is_current = request.version == Some(1);
    let closes = header(&headers, "connection")
        .is_some_and(|value| value.split(',').any(|word| word.trim().eq_ignore_ascii_case("close")));
    let (method, target) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
    let head = Request::without_body(method, target, headers);
    Ok(Some((Request { keep_alive: is_current && !closes, takes_chunks: is_current, ..head }, length)))
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
        529 => "Overloaded",
        _ => "Status",
    }
}
