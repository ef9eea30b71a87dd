//! Requests to an address that speaks streamable HTTP. rmcp asks them the same way, and would read an answer in one piece to its
//! end, however far that is.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

use crate::limits::{ANSWER_BYTES_MAX, REFUSAL_BYTES_MAX};

type Error = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// Asks an address.
#[derive(Clone)]
pub(super) struct Bounded(pub reqwest::Client);

impl StreamableHttpClient for Bounded {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let is_asked = matches!(message, JsonRpcMessage::Request(_));
        let in_session = session_id.is_some();
        let accepted = [EVENT_STREAM_MIME_TYPE, JSON_MIME_TYPE].join(", ");
        let mut asked = self.0.post(uri.as_ref()).header(ACCEPT, accepted).headers(own(headers)?);
        if let Some(token) = token {
            asked = asked.bearer_auth(token);
        }
        if let Some(session) = session_id {
            asked = asked.header(HEADER_SESSION_ID, session.as_ref());
        }
        let body = serde_json::to_vec(&message)?;
        let answer = asked.header(CONTENT_TYPE, JSON_MIME_TYPE).body(body).send().await?;
        let status = answer.status();
        if let Some(refused) = refused(status, answer.headers()) {
            return Err(refused);
        }
        let is_empty = status.is_success() && answer.content_length() == Some(0);
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) || !is_asked && is_empty {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let text = |name: &HeaderName| Some(answer.headers().get(name)?.to_str().ok()?.to_owned());
        let session = text(&HeaderName::from_static("mcp-session-id"));
        let retry_after = text(&RETRY_AFTER);
        let kind = text(&CONTENT_TYPE);
        let is_kind = |wanted: &str| kind.as_deref().is_some_and(|kind| kind.starts_with(wanted));
        if !status.is_success() {
            let said = read(answer, REFUSAL_BYTES_MAX).await.unwrap_or_default();
            return match serde_json::from_slice(&said) {
                Ok(error @ JsonRpcMessage::Error(_)) if is_kind(JSON_MIME_TYPE) && !is_of_login(status) => {
                    Ok(StreamableHttpPostResponse::Json(error, session))
                }
                _ => Err(failed(status, retry_after, &said)),
            };
        }
        if is_kind(EVENT_STREAM_MIME_TYPE) {
            let events = SseStream::from_bytes_stream(limited(answer.bytes_stream(), ANSWER_BYTES_MAX));
            return Ok(StreamableHttpPostResponse::Sse(events.boxed(), session));
        }
        if !is_kind(JSON_MIME_TYPE) {
            return Err(StreamableHttpError::UnexpectedContentType(kind));
        }
        let said = read(answer, ANSWER_BYTES_MAX).await?;
        match serde_json::from_slice::<ServerJsonRpcMessage>(&said) {
            Ok(said) => Ok(StreamableHttpPostResponse::Json(said, session)),
            // Nobody waits for an answer to it.
            Err(_) if !is_asked => Ok(StreamableHttpPostResponse::Accepted),
            Err(error) => Err(unexpected(format!("it answered with something that is no message: {error}"))),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Error> {
        self.0.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Error> {
        let (client, max) = (&self.0, ANSWER_BYTES_MAX);
        client.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, max).await
    }
}

/// Headers that an entry wants to have sent. Those of the protocol are not for it to say.
fn own(headers: Headers) -> Result<HeaderMap, Error> {
    let of_protocol = [ACCEPT.as_str(), HEADER_SESSION_ID, HEADER_LAST_EVENT_ID];
    let is_taken =
        |name: &&HeaderName| of_protocol.iter().any(|taken| name.as_str().eq_ignore_ascii_case(taken));
    match headers.keys().find(is_taken) {
        Some(taken) => Err(StreamableHttpError::ReservedHeaderConflict(taken.to_string())),
        None => Ok(headers.into_iter().collect()),
    }
}

/// Whether somebody has to log in, or to be allowed more.
fn refused(status: StatusCode, headers: &HeaderMap) -> Option<Error> {
    let challenge = headers.get(WWW_AUTHENTICATE)?;
    let challenge = String::from_utf8_lossy(challenge.as_bytes()).into_owned();
    match status {
        StatusCode::UNAUTHORIZED => {
            Some(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)))
        }
        StatusCode::FORBIDDEN => {
            Some(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, None)))
        }
        _ => None,
    }
}

fn is_of_login(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

fn failed(status: StatusCode, retry_after: Option<String>, said: &[u8]) -> Error {
    match status {
        status if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() => {
            HttpStatusError::new(status.as_u16(), retry_after).into()
        }
        status => unexpected(format!("HTTP {status}: {}", String::from_utf8_lossy(said))),
    }
}

fn unexpected(why: String) -> Error {
    StreamableHttpError::UnexpectedServerResponse(why.into())
}

/// An answer, as long as it is no longer than anybody would want it.
async fn read(answer: reqwest::Response, bytes_max: usize) -> Result<Vec<u8>, Error> {
    let mut said = Vec::new();
    let mut pieces = answer.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        if said.len() + piece.len() > bytes_max {
            return Err(unexpected(format!("its answer is longer than {bytes_max} bytes")));
        }
        said.extend_from_slice(&piece);
    }
    Ok(said)
}

/// The bytes of a stream of events, up to the first event that is longer than anybody would want it.
fn limited(
    pieces: impl futures::Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    event_bytes_max: usize,
) -> impl futures::Stream<Item = io::Result<Bytes>> + Send + 'static {
    let mut length = Length::default();
    pieces.map(move |piece| {
        let piece = piece.map_err(io::Error::other)?;
        match length.with(&piece) > event_bytes_max {
            true => Err(io::Error::other(format!("an event is longer than {event_bytes_max} bytes"))),
            false => Ok(piece),
        }
    })
}

/// How long the event is that is being read.
#[derive(Default)]
struct Length {
    bytes: usize,
    /// The newest line has nothing in it so far.
    is_line_empty: bool,
}

impl Length {
    /// With these bytes more: the longest it was among them.
    fn with(&mut self, piece: &[u8]) -> usize {
        let mut longest = self.bytes;
        for byte in piece {
            match byte {
                b'\r' => {}
                // A line with nothing in it ends an event.
                b'\n' if self.is_line_empty => self.bytes = 0,
                b'\n' => self.is_line_empty = true,
                _ => {
                    self.is_line_empty = false;
                    self.bytes += 1;
                    longest = longest.max(self.bytes);
                }
            }
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_as_long_as_its_lines_however_they_are_cut() {
        let text = "data: four\r\n\r\ndata: a\ndata: bc\n\n: x\n";
        for cut in 1..=text.len() {
            let mut length = Length::default();
            let longest = text.as_bytes().chunks(cut).map(|piece| length.with(piece)).max();
            assert_eq!((longest, length.bytes), (Some("data: adata: bc".len()), ": x".len()), "{cut}");
        }
    }
}
