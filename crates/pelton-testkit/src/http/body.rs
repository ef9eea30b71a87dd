//! Request bodies: how long they are, reading them, decompressing them.

use super::{BODY_BYTES_MAX, BadRequest, HEAD_BYTES_MAX, HEADERS_MAX, ReadError, bad};
use bytes::{Bytes, BytesMut};
use flate2::read::MultiGzDecoder;
use std::io::Read;
use tokio::io::{AsyncRead, AsyncReadExt};

/// How the end of a request body is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Known(usize),
    Chunked,
}

/// Reads the length from the headers; two that disagree are refused, as every careful server does.
pub(super) fn length(headers: &[(String, String)]) -> Result<Length, BadRequest> {
    let values = |wanted: &'static str| {
        headers
            .iter()
            .filter(move |(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value.trim())
    };
    let mut lengths = values("content-length");
    let first = lengths.next();
    if lengths.any(|other| Some(other) != first) {
        return Err(bad(400, "content-length is said twice".to_owned()));
    }
    match (values("transfer-encoding").next(), first) {
        (Some(_), Some(_)) => {
            Err(bad(400, "content-length and transfer-encoding exclude each other".to_owned()))
        }
        (Some(coding), None) if coding.eq_ignore_ascii_case("chunked") => Ok(Length::Chunked),
        (Some(coding), None) => Err(bad(400, format!("transfer-encoding {coding} is not understood"))),
        (None, None) => Ok(Length::Known(0)),
        (None, Some(length)) => match length.parse() {
            Ok(length) if length <= BODY_BYTES_MAX => Ok(Length::Known(length)),
            Ok(_) => Err(too_large()),
            Err(_) => Err(bad(400, "content-length is not a number".to_owned())),
        },
    }
}

pub(super) async fn read_known(
    reader: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
    length: usize,
) -> Result<Bytes, ReadError> {
    fill(reader, buffer, length).await?;
    Ok(buffer.split_to(length).freeze())
}

pub(super) async fn read_chunked(
    reader: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
) -> Result<Bytes, ReadError> {
    let mut body = BytesMut::new();
    loop {
        let line = read_line(reader, buffer).await?;
        // Extensions behind a semicolon mean nothing here.
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size =
            usize::from_str_radix(digits, 16).map_err(|_| bad(400, format!("chunk size {digits:?}")))?;
        if size == 0 {
            break;
        }
        if size > BODY_BYTES_MAX - body.len() {
            return Err(too_large().into());
        }
        fill(reader, buffer, size).await?;
        body.extend_from_slice(&buffer.split_to(size));
        if !read_line(reader, buffer).await?.is_empty() {
            return Err(bad(400, "a chunk is longer than its size".to_owned()).into());
        }
    }
    // Trailers are read over.
    for _ in 0..=HEADERS_MAX {
        if read_line(reader, buffer).await?.is_empty() {
            return Ok(body.freeze());
        }
    }
    Err(bad(431, format!("more than {HEADERS_MAX} trailers")).into())
}

/// Undoes `content-encoding`. An unknown one is refused in the API's words.
pub(super) fn decompress(raw: Bytes, encoding: Option<&str>) -> Result<Bytes, BadRequest> {
    match encoding.map(str::trim).map(str::to_ascii_lowercase).as_deref() {
        None | Some("" | "identity") => Ok(raw),
        Some("gzip") => {
            let mut body = Vec::new();
            let mut limited = MultiGzDecoder::new(&raw[..]).take(BODY_BYTES_MAX as u64 + 1);
            limited.read_to_end(&mut body).map_err(|_| bad(400, "the body is not valid gzip".to_owned()))?;
            if body.len() > BODY_BYTES_MAX { Err(too_large()) } else { Ok(Bytes::from(body)) }
        }
        Some(other) => Err(BadRequest {
            status: 400,
            message: format!("content-encoding: {other} is not supported"),
            code: Some("request_body_encoding_unsupported"),
        }),
    }
}

async fn fill(
    reader: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
    length: usize,
) -> Result<(), ReadError> {
    while buffer.len() < length {
        if reader.read_buf(buffer).await? == 0 {
            return Err(ReadError::Gone);
        }
    }
    Ok(())
}

async fn read_line(
    reader: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
) -> Result<String, ReadError> {
    let mut searched = 0;
    loop {
        if let Some(end) = buffer[searched..].iter().position(|byte| *byte == b'\n') {
            let line = buffer.split_to(searched + end + 1);
            return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
        searched = buffer.len();
        if searched > HEAD_BYTES_MAX {
            return Err(bad(400, "a line of the chunked body has no end".to_owned()).into());
        }
        if reader.read_buf(buffer).await? == 0 {
            return Err(ReadError::Gone);
        }
    }
}

fn too_large() -> BadRequest {
    bad(413, "Request exceeds the maximum size".to_owned())
}
