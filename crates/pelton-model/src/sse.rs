//! Server-sent events: bytes in, events out. No IO.
//!
//! The framing is read as servers write it, not as the standard wishes: any of the three line ends, a leading byte
//! order mark, comments, data over several lines, a last event without its blank line. How the bytes are cut into
//! chunks makes no difference.

use std::ops::Range;

use bytes::Bytes;
use memchr::memchr2;

/// The most bytes one event may have.
pub const EVENT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// One event.
///
/// ```
/// use bytes::Bytes;
/// use pelton_model::sse::{Decoder, Event};
///
/// let mut decoder = Decoder::default();
/// decoder.push(Bytes::from_static(b"event: greeting\ndata: 1\n\n"));
/// let Some(Event { name, data }) = decoder.next_event()? else { panic!("it is complete") };
/// assert_eq!((&name[..], &data[..]), (&b"greeting"[..], &b"1"[..]));
/// # Ok::<(), pelton_model::sse::TooLong>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The event's name; empty if it has none.
    pub name: Bytes,
    /// Its data: a slice of the chunk it came in, where it came in one.
    pub data: Bytes,
}

/// An event grew beyond [`EVENT_BYTES_MAX`].
///
/// ```
/// use bytes::Bytes;
/// use pelton_model::sse::{Decoder, TooLong};
///
/// let mut decoder = Decoder::default();
/// let mut read = Ok(None);
/// while read == Ok(None) {
///     decoder.push(Bytes::from(vec![b'x'; 8 * 1024 * 1024])); // a line that never ends
///     read = decoder.next_event();
/// }
/// assert_eq!(read, Err(TooLong));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("one event of the stream is larger than {} MB", EVENT_BYTES_MAX / 1024 / 1024)]
pub struct TooLong;

/// Cuts a stream of bytes into events.
///
/// ```
/// use bytes::Bytes;
/// use pelton_model::sse::Decoder;
///
/// let mut decoder = Decoder::default();
/// decoder.push(Bytes::from_static(b": hello\r\nevent: greeting\r\nda"));
/// assert_eq!(decoder.next_event(), Ok(None));
/// decoder.push(Bytes::from_static(b"ta: 1\r\n\r\n"));
/// assert_eq!(decoder.next_event().unwrap().unwrap().data, "1");
/// ```
#[derive(Debug, Default)]
pub struct Decoder {
    /// The newest chunk. Lines are looked at where they stand in it; only what an event keeps is a handle of its own.
    chunk: Bytes,
    /// How far it is read.
    at: usize,
    /// The beginning of a line whose end is still to come.
    line: Vec<u8>,
    /// The last line ended with CR: an LF that follows belongs to it.
    after_cr: bool,
    /// A line has been read; a byte order mark can only be before it.
    begun: bool,
    name: Bytes,
    data: Option<Data>,
}

impl Decoder {
    /// Adds the next chunk. All events of the one before must have been taken.
    pub fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "the chunk before is read to its end first");
        (self.chunk, self.at) = (chunk, 0);
    }

    /// The next complete event; `None` if more bytes are needed.
    pub fn next_event(&mut self) -> Result<Option<Event>, TooLong> {
        let chunk = std::mem::take(&mut self.chunk);
        let found = self.read_on(&chunk)?;
        if found.is_some() {
            self.chunk = chunk;
        }
        Ok(found)
    }

    /// The stream is over: the last event, if it came without its blank line.
    pub fn finish(&mut self) -> Option<Event> {
        let line = Bytes::from(std::mem::take(&mut self.line));
        if !line.is_empty() {
            // The line is not empty, so it dispatches nothing: that is done below.
            self.take_line(&line, 0..line.len());
        }
        self.dispatch()
    }

    /// Reads lines until an event is complete, or the chunk is read to its end.
    fn read_on(&mut self, chunk: &Bytes) -> Result<Option<Event>, TooLong> {
        loop {
            if self.after_cr && self.at < chunk.len() {
                self.after_cr = false;
                self.at += usize::from(chunk[self.at] == b'\n');
            }
            let rest = &chunk[self.at..];
            let Some(length) = memchr2(b'\n', b'\r', rest) else {
                self.check(rest.len())?;
                self.line.extend_from_slice(rest);
                return Ok(None);
            };
            self.check(length)?;
            self.after_cr = rest[length] == b'\r';
            let line = self.at..self.at + length;
            self.at = line.end + 1;
            let event = if self.line.is_empty() {
                self.take_line(chunk, line)
            } else {
                let mut joined = std::mem::take(&mut self.line);
                joined.extend_from_slice(&chunk[line]);
                let joined = Bytes::from(joined);
                self.take_line(&joined, 0..joined.len())
            };
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    /// Refuses to let the event grow by `more` bytes beyond the limit.
    fn check(&self, more: usize) -> Result<(), TooLong> {
        let held = self.line.len() + self.data.as_ref().map_or(0, Data::len);
        if held.saturating_add(more) > EVENT_BYTES_MAX { Err(TooLong) } else { Ok(()) }
    }

    /// Reads the line that stands there.
    fn take_line(&mut self, bytes: &Bytes, mut at: Range<usize>) -> Option<Event> {
        if !self.begun {
            self.begun = true;
            if bytes[at.clone()].starts_with(b"\xEF\xBB\xBF") {
                at.start += 3;
            }
        }
        let line = &bytes[at.clone()];
        if line.is_empty() {
            return self.dispatch();
        }
        if let Some(before) = before_value(line, b"data") {
            let data = at.start + before..at.end;
            self.data = Some(match self.data.take() {
                None => Data::One(bytes.slice(data)),
                Some(earlier) => earlier.and(&bytes[data]),
            });
        } else if let Some(before) = before_value(line, b"event") {
            self.name = bytes.slice(at.start + before..at.end);
        }
        // Comments and the fields `id` and `retry` say nothing a model call needs.
        None
    }

    fn dispatch(&mut self) -> Option<Event> {
        let name = std::mem::take(&mut self.name);
        let data = match self.data.take()? {
            Data::One(data) => data,
            Data::Many(data) => Bytes::from(data),
        };
        Some(Event { name, data })
    }
}

/// The data of the event being read.
#[derive(Debug)]
enum Data {
    One(Bytes),
    Many(Vec<u8>),
}

impl Data {
    fn len(&self) -> usize {
        match self {
            Self::One(data) => data.len(),
            Self::Many(data) => data.len(),
        }
    }

    fn and(self, line: &[u8]) -> Self {
        let mut data = match self {
            Self::One(data) => data.to_vec(),
            Self::Many(data) => data,
        };
        data.push(b'\n');
        data.extend_from_slice(line);
        Self::Many(data)
    }
}

/// How much stands before the value of a line `name: value`, of `name:value`, or of a bare `name`.
fn before_value(line: &[u8], name: &[u8]) -> Option<usize> {
    match line.strip_prefix(name)? {
        [] => Some(name.len()),
        [b':', b' ', ..] => Some(name.len() + 2),
        [b':', ..] => Some(name.len() + 1),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
