//! What went wrong on the road, in words, and of which kind it is.

use std::error::Error;
use std::io;

use crate::transport::{TransportError, TransportErrorKind};

/// The error of an exchange with `host`.
pub(super) fn error(host: &str, error: reqwest::Error) -> TransportError {
    // An address may carry credentials.
    let error = error.without_url();
    let kind = kind(&error);
    let what = match kind {
        TransportErrorKind::Refused => format!("nobody accepts connections at {host}"),
        TransportErrorKind::Reset => format!("the connection to {host} broke"),
        TransportErrorKind::Dns => format!("the name {host} cannot be resolved"),
        TransportErrorKind::Tls => format!("no secure connection to {host}"),
        TransportErrorKind::Timeout => format!("no answer in time from {host}"),
        TransportErrorKind::Proxy => format!("the proxy gave no connection to {host}"),
        _ => format!("the exchange with {host} failed"),
    };
    let why = match kind {
        // The kind says it all, or the innermost cause says what the ones around it only repeat.
        TransportErrorKind::Refused => return TransportError::new(kind, what),
        TransportErrorKind::Reset | TransportErrorKind::Dns => {
            chain(&error).last().map_or_else(String::new, ToString::to_string)
        }
        _ => causes(&error),
    };
    TransportError::new(kind, format!("{what}: {why}"))
}

/// An error and what caused it, without the frames that only repeat what is inside them.
pub(super) fn causes(error: &reqwest::Error) -> String {
    let mut told: Vec<String> = Vec::new();
    for cause in chain(error) {
        let text = cause.to_string();
        let says_nothing = text.starts_with("error sending request")
            || text.starts_with("request or response body error")
            || text.starts_with("client error (");
        let repeats = told.last().is_some_and(|last| last.contains(&text));
        if !says_nothing && !repeats {
            told.push(text);
        }
    }
    if told.is_empty() { error.to_string() } else { told.join(": ") }
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
