//! One connection: requests in, answers out, until either side has had enough.

use super::answer;
use super::control;
use super::perform::Performing;
use super::state::Shared;
use crate::http::{self, Framing, ReadError, Request};
use crate::play::Ending;
use bytes::BytesMut;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// How much of a refused request is read over so that its client gets to read the answer.
const DRAINED_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How long that may take.
const DRAIN_SECONDS_MAX: u64 = 10;

/// Serves a connection to its end.
pub(crate) async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    // Small writes must arrive as they were written; a socket that cannot do so still works.
    let _ = stream.set_nodelay(true);
    let mut buffer = BytesMut::new();
    while let Next::Request = serve_one(&mut stream, &mut buffer, &shared).await {}
}

/// What becomes of a connection after an answer.
enum Next {
    Request,
    Close,
}

async fn serve_one(stream: &mut TcpStream, buffer: &mut BytesMut, shared: &Arc<Shared>) -> Next {
    let (mut reader, mut writer) = stream.split();
    let request = match http::read_request(&mut reader, &mut writer, buffer).await {
        Ok(request) => request,
        Err(ReadError::Gone) => return Next::Close,
        Err(ReadError::Refused(refused)) => {
            let planned = answer::plan_refused(shared, &refused);
            let mut performing = Performing::new(Arc::clone(shared), planned);
            let ending = perform(&mut writer, &mut performing, &refused.request).await;
            performing.finish(ending);
            drain(stream).await;
            return Next::Close;
        }
        Err(ReadError::Bad(bad)) => {
            let (status, headers, body) = answer::plan_bad(shared, &bad);
            // The client may be gone already; there is nobody to tell then.
            let _ = write_whole(&mut writer, status, &headers, &body, false).await;
            drain(stream).await;
            return Next::Close;
        }
    };
    if let Some((status, body)) = control::answer(shared, &request) {
        let headers = [("content-type".to_owned(), "application/json".to_owned())];
        let written = write_whole(&mut writer, status, &headers, body.as_bytes(), request.keep_alive).await;
        return if written.is_ok() && request.keep_alive { Next::Request } else { Next::Close };
    }

    let mut performing = Performing::new(Arc::clone(shared), answer::plan(shared, &request));
    let ending = tokio::select! {
        biased;
        ending = perform(&mut writer, &mut performing, &request) => ending,
        () = http::wait_for_hang_up(&mut reader, buffer) => Ending::ClientLeft,
    };
    performing.finish(ending);
    match ending {
        Ending::Complete | Ending::EndedEarly if request.keep_alive => Next::Request,
        Ending::Stalled => {
            http::wait_for_hang_up(&mut reader, buffer).await;
            performing.hung_up();
            Next::Close
        }
        Ending::Reset => {
            // Closing with a linger of zero makes the system send a reset instead of an orderly end.
            let _ = stream.set_zero_linger();
            Next::Close
        }
        Ending::Complete | Ending::EndedEarly | Ending::Cut | Ending::ClientLeft => Next::Close,
    }
}

/// Writes an answer piece by piece, waiting where it says so.
async fn perform(
    writer: &mut (impl AsyncWrite + Unpin),
    performing: &mut Performing,
    request: &Request,
) -> Ending {
    match write_all(writer, performing, request).await {
        Ok(()) => performing.ending(),
        Err(_) => Ending::ClientLeft,
    }
}

async fn write_all(
    writer: &mut (impl AsyncWrite + Unpin),
    performing: &mut Performing,
    request: &Request,
) -> io::Result<()> {
    if !performing.begin().await {
        return Ok(());
    }
    let framing = performing.framing(request);
    http::write_head(writer, performing.status(), performing.headers(), framing, request.keep_alive).await?;
    // The answer to HEAD is that to GET without its body.
    let framing = if request.method == "HEAD" { Framing::NoBody } else { framing };
    while let Some(bytes) = performing.next().await {
        if framing != Framing::NoBody {
            http::write_piece(writer, framing, &bytes).await?;
            performing.delivered();
        }
    }
    if performing.ending().is_proper() { http::write_end(writer, framing).await } else { Ok(()) }
}

async fn write_whole(
    writer: &mut (impl AsyncWrite + Unpin),
    status: u16,
    headers: &[(String, String)],
    body: &[u8],
    keep_alive: bool,
) -> io::Result<()> {
    let framing = Framing::Length(body.len());
    http::write_head(writer, status, headers, framing, keep_alive).await?;
    http::write_piece(writer, framing, body).await
}

/// Reads over what the client still sends. Closing at once would reset the connection, and the client might never
/// read why it was refused.
async fn drain(stream: &mut TcpStream) {
    let read_over = async {
        stream.shutdown().await?;
        let mut drained = 0;
        let mut scratch = vec![0; http::HEAD_BYTES_MAX];
        while drained < DRAINED_BYTES_MAX {
            match stream.read(&mut scratch).await? {
                0 => break,
                count => drained += count,
            }
        }
        io::Result::Ok(())
    };
    // However it ends, the connection is closed next.
    let _ = tokio::time::timeout(Duration::from_secs(DRAIN_SECONDS_MAX), read_over).await;
}
