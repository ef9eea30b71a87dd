//! A writer behind a bounded queue, on a thread of its own: writing to a pipe may block for as long as its reader
//! likes, and must not hold up signals, timers or the model's stream meanwhile.

use std::io::Write;

use tokio::sync::{mpsc, oneshot};

/// Pieces waiting for a slow reader before the front end waits.
const PIECES_QUEUED_MAX: usize = 256;

/// Writes in order, on a thread of its own.
#[derive(Debug)]
pub struct Out {
    queue: mpsc::Sender<Vec<u8>>,
    ended: oneshot::Receiver<Result<(), WriteError>>,
}

/// The reader is gone, or there is no room.
#[derive(Debug, Clone)]
pub struct WriteError {
    /// What the system calls it.
    pub kind: std::io::ErrorKind,
    /// The system's words.
    pub message: String,
}

impl From<std::io::Error> for WriteError {
    fn from(error: std::io::Error) -> Self {
        Self { kind: error.kind(), message: error.to_string() }
    }
}

impl From<std::io::ErrorKind> for WriteError {
    fn from(kind: std::io::ErrorKind) -> Self {
        std::io::Error::from(kind).into()
    }
}

/// Nothing can be written any more; [`Out::finish`] says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed;

impl Out {
    /// Starts writing to `writer`.
    pub fn start(mut writer: impl Write + Send + 'static) -> Self {
        let (queue, mut pieces) = mpsc::channel::<Vec<u8>>(PIECES_QUEUED_MAX);
        let (tell_end, ended) = oneshot::channel();
        // Nobody waits for the thread itself: blocked by a reader that does not read, it ends with the process.
        std::thread::spawn(move || {
            let written = write_all(&mut writer, &mut pieces);
            // The cause is there before anybody can notice that the queue is closed.
            let _ = tell_end.send(written);
            drop(pieces);
        });
        Self { queue, ended }
    }

    /// Queues bytes, waiting while the queue is full.
    pub async fn write(&self, bytes: Vec<u8>) -> Result<(), Closed> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.queue.send(bytes).await.map_err(|_| Closed)
    }

    /// Returns when nothing can be written any more.
    pub async fn closed(&self) {
        self.queue.closed().await;
    }

    /// Waits until everything is written. May be dropped: what is not written by then may be lost.
    pub async fn finish(self) -> Result<(), WriteError> {
        let Self { queue, ended } = self;
        drop(queue);
        ended.await.unwrap_or_else(|_| {
            Err(WriteError { kind: std::io::ErrorKind::Other, message: "the writer stopped".to_owned() })
        })
    }
}

fn write_all(writer: &mut impl Write, pieces: &mut mpsc::Receiver<Vec<u8>>) -> Result<(), WriteError> {
    let mut waiting = Vec::new();
    // All that is waiting goes out in one write.
    while let Some(first) = pieces.blocking_recv() {
        waiting.extend_from_slice(&first);
        while let Ok(next) = pieces.try_recv() {
            waiting.extend_from_slice(&next);
        }
        writer.write_all(&waiting).and_then(|()| writer.flush())?;
        waiting.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many bytes, then fails.
    struct Small(usize);

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.0 == 0 {
                return Err(std::io::ErrorKind::StorageFull.into());
            }
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_failure_closes_the_queue_and_the_cause_is_told_at_the_end() {
        let out = Out::start(Small(3));
        assert_eq!(out.write(b"four".to_vec()).await, Ok(()));
        out.closed().await;
        assert_eq!(out.write(b"more".to_vec()).await, Err(Closed));
        assert_eq!(out.finish().await.unwrap_err().kind, std::io::ErrorKind::StorageFull);
    }

    #[tokio::test]
    async fn a_failure_of_the_last_write_is_not_lost() {
        let out = Out::start(Small(3));
        assert_eq!(out.write(b"four".to_vec()).await, Ok(()));
        assert_eq!(out.finish().await.unwrap_err().kind, std::io::ErrorKind::StorageFull);
        let out = Out::start(Small(4));
        assert_eq!(out.write(b"four".to_vec()).await, Ok(()));
        assert!(out.finish().await.is_ok());
    }
}
