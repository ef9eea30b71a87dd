//! Lines from a pipe, read on a thread of their own: a writer may be as slow as it likes, and is heard while tools run.

use std::io::{self, BufRead, BufReader, Read};

use tokio::sync::mpsc;

use super::limits::{LINE_BYTES_MAX, LINES_READ_AHEAD_MAX};

/// What came.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A line, without its end.
    Line(Vec<u8>),
    /// A line that nobody can want.
    TooLong,
    /// The pipe failed.
    Failed(io::Error),
}

/// Reads lines until the end. The thread ends with the pipe, or with whoever listens.
pub(crate) fn read(pipe: impl Read + Send + 'static) -> mpsc::Receiver<Incoming> {
    let (lines, incoming) = mpsc::channel(LINES_READ_AHEAD_MAX);
    std::thread::spawn(move || {
        let mut pipe = BufReader::with_capacity(64 * 1024, pipe);
        loop {
            let came = match line(&mut pipe) {
                Ok(None) => return,
                Ok(Some(came)) => came,
                Err(error) => Incoming::Failed(error),
            };
            let over = !matches!(came, Incoming::Line(_));
            if lines.blocking_send(came).is_err() || over {
                return;
            }
        }
    });
    incoming
}

fn line(pipe: &mut impl BufRead) -> io::Result<Option<Incoming>> {
    let mut line = Vec::new();
    let count = loop {
        match pipe.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => break read?,
        }
    };
    if count == 0 && line.is_empty() {
        return Ok(None);
    }
    if line.len() > LINE_BYTES_MAX {
        return Ok(Some(Incoming::TooLong));
    }
    while line.last().is_some_and(|last| matches!(last, b'\n' | b'\r')) {
        line.pop();
    }
    Ok(Some(Incoming::Line(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_one_by_one_and_the_last_needs_no_end() {
        let mut pipe = BufReader::new(&b"one\r\n\ntwo"[..]);
        let mut next = || match line(&mut pipe).unwrap() {
            Some(Incoming::Line(line)) => Some(String::from_utf8(line).unwrap()),
            _ => None,
        };
        assert_eq!(
            [next(), next(), next(), next()],
            [Some("one".into()), Some(String::new()), Some("two".into()), None]
        );
    }

    #[test]
    fn a_line_without_end_is_given_up() {
        let mut pipe = BufReader::new(io::repeat(b'x'));
        assert!(matches!(line(&mut pipe), Ok(Some(Incoming::TooLong))));
    }
}
