//! Lines on their way out. Nothing here waits, so that a client that does not read is still heard.

use std::collections::VecDeque;

use super::limits::{OUT_BYTES_WAITING_MAX, OUT_BYTES_WAITING_MAX_HARD};
use crate::out::Streams;

pub(crate) struct Outbox<'a> {
    streams: &'a Streams,
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl<'a> Outbox<'a> {
    pub fn new(streams: &'a Streams) -> Self {
        Self { streams, waiting: VecDeque::new(), bytes: 0 }
    }

    /// Puts lines behind all others.
    pub fn push(&mut self, lines: Vec<u8>) {
        if lines.is_empty() {
            return;
        }
        let lines = if self.waiting.is_empty() { self.streams.try_out(lines).err() } else { Some(lines) };
        if let Some(lines) = lines {
            self.bytes += lines.len();
            self.waiting.push_back(lines);
        }
    }

    /// Whether something waits for its reader.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the engine may go on telling.
    pub fn has_room(&self) -> bool {
        self.bytes < OUT_BYTES_WAITING_MAX
    }

    /// Whether the client may go on asking.
    pub fn takes_replies(&self) -> bool {
        self.bytes < OUT_BYTES_WAITING_MAX_HARD
    }

    /// Waits until the reader has made room, and uses it.
    pub async fn advance(&mut self) {
        self.streams.room().await;
        while let Some(next) = self.waiting.pop_front() {
            let bytes = next.len();
            match self.streams.try_out(next) {
                Ok(()) => self.bytes -= bytes,
                Err(next) => {
                    self.bytes -= bytes - next.len();
                    self.waiting.push_front(next);
                    return;
                }
            }
        }
    }

    /// Hands everything over, waiting for as long as it takes.
    pub async fn finish(&mut self) {
        while self.is_waiting() {
            self.advance().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::*;

    /// Reads after a while.
    #[derive(Clone, Default)]
    struct Slow(Arc<Mutex<Vec<u8>>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            std::thread::sleep(Duration::from_millis(20));
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_slow_reader_loses_nothing_and_holds_up_nobody() {
        let read = Slow::default();
        let streams = Streams::apart(read.clone(), std::io::sink());
        let mut outbox = Outbox::new(&streams);
        let mut expected = Vec::new();
        for n in 0..2_000 {
            let line = format!("{n}\n").into_bytes();
            expected.extend_from_slice(&line);
            outbox.push(line);
        }
        assert!(outbox.is_waiting() && outbox.has_room());
        outbox.push(vec![b'x'; OUT_BYTES_WAITING_MAX]);
        assert!(!outbox.has_room() && outbox.takes_replies());
        outbox.finish().await;
        assert!(outbox.has_room());
        streams.finish().await.unwrap();
        assert!(read.0.lock().unwrap().starts_with(&expected));
    }
}
