//! What went wrong on the road, in words, and of which kind it is.

use std::error::Error;
use std::io;

use crate::transport::{TransportError, TransportErrorKind};

/// The error of an exchange with `host`.
pub(super) fn error(host: &str, error: reqwest::Error) -> TransportError {
    // An address may carry credentials.
    let error = error.without_url();
    let kind = kind(&error);
    let cause = cause(&error);
    let message = match kind {
        TransportErrorKind::Refused => format!("nobody accepts connections at {host}"),
        TransportErrorKind::Reset => format!("the connection to {host} broke: {cause}"),
        TransportErrorKind::Dns => format!("the name {host} cannot be resolved: {cause}"),
        TransportErrorKind::Tls => format!("no secure connection to {host}: {cause}"),
        TransportErrorKind::Timeout => format!("no answer in time from {host}"),
        TransportErrorKind::Proxy => format!("the proxy gave no connection to {host}: {cause}"),
        _ => format!("the exchange with {host} failed: {cause}"),
    };
    TransportError::new(kind, message)
}

/// What is behind an error, without the frames around it: each of those says only that something inside it failed.
pub(super) fn cause(error: &reqwest::Error) -> String {
    let Some(innermost) = chain(error).last() else { return error.to_string() };
    let text = innermost.to_string();
    // The libraries' words for it tell where in their code they stood.
    let ended =
        text.contains("EOF") || text.contains("end of file") || text.contains("connection closed before");
    if ended {
        return "unexpected end".to_owned();
    }
    match text.strip_suffix(')').and_then(|text| text.rsplit_once(" (os error ")) {
        Some((words, _)) => words.to_lowercase(),
        // What we said ourselves about certificates, as the TLS library quotes it.
        None => text.strip_prefix("unexpected error: ").map(str::to_owned).unwrap_or(text),
    }
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| (**error).source())
}

fn kind(error: &reqwest::Error) -> TransportErrorKind {
    // The innermost cause knows best.
    let mut kind = None;
    for cause in chain(error) {
        kind = kind_of(cause).or(kind);
    }
    match kind {
        Some(kind) => kind,
        None if error.is_timeout() => TransportErrorKind::Timeout,
        None => TransportErrorKind::Other,
    }
}

fn kind_of(cause: &(dyn Error + 'static)) -> Option<TransportErrorKind> {
    if cause.is::<rustls::Error>() {
        return Some(TransportErrorKind::Tls);
    }
    if let Some(io) = cause.downcast_ref::<io::Error>() {
        // What an IO error wraps is not among its sources; it may be another of its kind.
        let inner = io.get_ref().map(|inner| inner as &(dyn Error + 'static));
        if let Some(kind) = inner.and_then(kind_of) {
            return Some(kind);
        }
        return match io.kind() {
            io::ErrorKind::ConnectionRefused => Some(TransportErrorKind::Refused),
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected
            | io::ErrorKind::UnexpectedEof => Some(TransportErrorKind::Reset),
            io::ErrorKind::TimedOut => Some(TransportErrorKind::Timeout),
            _ => None,
        };
    }
    // The types of these are private to the HTTP libraries; their words are all there is.
    let text = cause.to_string();
    let says = |phrase: &str| text.contains(phrase);
    if says("dns error") {
        Some(TransportErrorKind::Dns)
    } else if says("tunnel") || says("proxy") {
        Some(TransportErrorKind::Proxy)
    } else if says("connection closed before message completed") || says("end of file before message length")
    {
        Some(TransportErrorKind::Reset)
    } else if says("timed out") {
        Some(TransportErrorKind::Timeout)
    } else {
        None
    }
}
