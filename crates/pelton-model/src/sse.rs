//! Server-sent events: bytes in, events out. No IO.
//!
//! The framing is read as servers write it, not as the standard wishes: any of the three line ends, a leading byte
//! order mark, comments, data over several lines, a last event without its blank line. How the bytes are cut into
//! chunks makes no difference.

use bytes::{Buf, Bytes};
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
    /// What is not read yet of the newest chunk.
    chunk: Bytes,
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
        self.chunk = chunk;
    }

    /// The next complete event; `None` if more bytes are needed.
    pub fn next_event(&mut self) -> Result<Option<Event>, TooLong> {
        while let Some(line) = self.next_line()? {
            if let Some(event) = self.take_line(line) {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// The stream is over: the last event, if it came without its blank line.
    pub fn finish(&mut self) -> Option<Event> {
        let line = Bytes::from(std::mem::take(&mut self.line));
        if !line.is_empty() {
            // The line is not empty, so it dispatches nothing: that is done below.
            self.take_line(line);
        }
        self.dispatch()
    }

    fn next_line(&mut self) -> Result<Option<Bytes>, TooLong> {
        if self.after_cr && !self.chunk.is_empty() {
            self.after_cr = false;
            if self.chunk[0] == b'\n' {
                self.chunk.advance(1);
            }
        }
        match memchr2(b'\n', b'\r', &self.chunk) {
            Some(end) => {
                self.check(end)?;
                let piece = self.chunk.split_to(end);
                self.after_cr = self.chunk[0] == b'\r';
                self.chunk.advance(1);
                if self.line.is_empty() {
                    return Ok(Some(piece));
                }
                self.line.extend_from_slice(&piece);
                Ok(Some(Bytes::from(std::mem::take(&mut self.line))))
            }
            None => {
                self.check(self.chunk.len())?;
                self.line.extend_from_slice(&self.chunk);
                self.chunk.clear();
                Ok(None)
            }
        }
    }

    /// Refuses to let the event grow by `more` bytes beyond the limit.
    fn check(&self, more: usize) -> Result<(), TooLong> {
        let held = self.line.len() + self.data.as_ref().map_or(0, Data::len);
        if held.saturating_add(more) > EVENT_BYTES_MAX { Err(TooLong) } else { Ok(()) }
    }

    fn take_line(&mut self, mut line: Bytes) -> Option<Event> {
        if !self.begun {
            self.begun = true;
            if line.starts_with(b"\xEF\xBB\xBF") {
                line.advance(3);
            }
        }
        if line.is_empty() {
            return self.dispatch();
        }
        if let Some(data) = field(&line, b"data") {
            self.data = Some(match self.data.take() {
                None => Data::One(data),
                Some(earlier) => earlier.and(&data),
            });
        } else if let Some(name) = field(&line, b"event") {
            self.name = name;
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

/// The value of a line `name: value`, of `name:value`, or of a bare `name`.
fn field(line: &Bytes, name: &[u8]) -> Option<Bytes> {
    match line.strip_prefix(name)? {
        [] => Some(Bytes::new()),
        [b':', b' ', ..] => Some(line.slice(name.len() + 2..)),
        [b':', ..] => Some(line.slice(name.len() + 1..)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
