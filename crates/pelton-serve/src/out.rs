//! Standard output and standard error behind bounded queues, on threads of their own: writing to a pipe may block for
//! as long as its reader likes, and must not hold up signals, timers or the model's stream meanwhile.

use std::fmt;
use std::io::Write;
use std::sync::{Mutex, OnceLock, PoisonError};

use tokio::sync::{mpsc, oneshot};

/// Pieces waiting for a slow reader before the front end waits.
const PIECES_QUEUED_MAX: usize = 256;

/// Where a front end writes: what was asked for on one stream, what people may want to know on the other.
#[derive(Debug)]
pub struct Streams {
    out: Queue,
    /// Absent when one thread writes both.
    err: Option<LaterQueue>,
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

impl Streams {
    /// Two streams with readers of their own: a slow one does not hold up the other.
    pub fn apart(out: impl Write + Send + 'static, err: impl Write + Send + 'static) -> Self {
        Self { out: Queue::start(out, std::io::sink()), err: Some(LaterQueue::new(err)) }
    }

    /// Two streams that people see on one screen: what is written first is seen first, whichever stream it is on.
    pub fn together(out: impl Write + Send + 'static, err: impl Write + Send + 'static) -> Self {
        Self { out: Queue::start(out, err), err: None }
    }

    /// Queues bytes for standard output, waiting while the queue is full. That they cannot be written is told by
    /// [`closed`](Self::closed) and [`finish`](Self::finish).
    pub async fn out(&self, bytes: Vec<u8>) {
        self.out.put(Piece::Main(bytes)).await;
    }

    /// Queues bytes for standard output if there is room; otherwise they come back.
    pub(crate) fn try_out(&self, bytes: Vec<u8>) -> Result<(), Vec<u8>> {
        match self.out.pieces.try_send(Piece::Main(bytes)) {
            Err(mpsc::error::TrySendError::Full(Piece::Main(bytes))) => Err(bytes),
            // A closed queue is told by its end.
            _ => Ok(()),
        }
    }

    /// Returns when there is room, or never will be.
    pub(crate) async fn room(&self) {
        let _ = self.out.pieces.reserve().await;
    }

    /// The same for standard error. What is written there is a courtesy: that nobody reads it changes nothing.
    pub async fn err(&self, bytes: Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        match &self.err {
            Some(err) => {
                if let Some(queue) = err.queue() {
                    queue.put(Piece::Main(bytes)).await;
                }
            }
            None => self.out.put(Piece::Beside(bytes)).await,
        }
    }

    /// Returns when nothing can be written to standard output any more.
    pub async fn closed(&self) {
        self.out.pieces.closed().await;
    }

    /// Waits until everything is written, and tells whether all of standard output was. May be dropped: what is not
    /// written by then may be lost.
    pub async fn finish(self) -> Result<(), WriteError> {
        let Self { out, err } = self;
        let err = async {
            if let Some(queue) = err.and_then(|err| err.queue.into_inner()).flatten() {
                // Courtesy, as above.
                let _ = queue.finish().await;
            }
        };
        futures::future::join(out.finish(), err).await.0
    }
}

enum Piece {
    Main(Vec<u8>),
    /// For the other writer of the same thread.
    Beside(Vec<u8>),
}

#[derive(Debug)]
struct Queue {
    pieces: mpsc::Sender<Piece>,
    ended: oneshot::Receiver<Result<(), WriteError>>,
}

impl Queue {
    fn start(mut main: impl Write + Send + 'static, mut beside: impl Write + Send + 'static) -> Self {
        let (pieces_in, mut pieces) = mpsc::channel(PIECES_QUEUED_MAX);
        let (tell_end, ended) = oneshot::channel();
        // Nobody waits for the thread itself: blocked by a reader that does not read, it ends with the process.
        std::thread::spawn(move || {
            let written = write_all(&mut main, &mut beside, &mut pieces);
            // The cause is there before anybody can notice that the queue is closed.
            let _ = tell_end.send(written);
            drop(pieces);
        });
        Self { pieces: pieces_in, ended }
    }

    async fn put(&self, piece: Piece) {
        let (Piece::Main(bytes) | Piece::Beside(bytes)) = &piece;
        if !bytes.is_empty() {
            // A closed queue is told by its end.
            let _ = self.pieces.send(piece).await;
        }
    }

    async fn finish(self) -> Result<(), WriteError> {
        let Self { pieces, ended } = self;
        drop(pieces);
        ended.await.unwrap_or_else(|_| {
            Err(WriteError { kind: std::io::ErrorKind::Other, message: "the writer stopped".to_owned() })
        })
    }
}

/// A queue whose thread starts with its first piece: most runs have nothing to say there.
struct LaterQueue {
    writer: Mutex<Option<Box<dyn Write + Send>>>,
    queue: OnceLock<Option<Queue>>,
}

impl LaterQueue {
    fn new(writer: impl Write + Send + 'static) -> Self {
        Self { writer: Mutex::new(Some(Box::new(writer))), queue: OnceLock::new() }
    }

    fn queue(&self) -> Option<&Queue> {
        let start = || {
            let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take()?;
            Some(Queue::start(writer, std::io::sink()))
        };
        self.queue.get_or_init(start).as_ref()
    }
}

impl fmt::Debug for LaterQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaterQueue").field("queue", &self.queue).finish_non_exhaustive()
    }
}

/// Ends with the first failure of `main`.
fn write_all(
    main: &mut impl Write,
    beside: &mut impl Write,
    pieces: &mut mpsc::Receiver<Piece>,
) -> Result<(), WriteError> {
    let mut waiting = Vec::new();
    while let Some(first) = pieces.blocking_recv() {
        let mut next = Some(first);
        while let Some(piece) = next {
            match piece {
                Piece::Main(bytes) if waiting.is_empty() => waiting = bytes,
                Piece::Main(bytes) => waiting.extend_from_slice(&bytes),
                Piece::Beside(bytes) => {
                    write_out(main, &mut waiting)?;
                    let _ = beside.write_all(&bytes).and_then(|()| beside.flush());
                }
            }
            next = pieces.try_recv().ok();
        }
        // All that was waiting goes out in one write.
        write_out(main, &mut waiting)?;
    }
    Ok(())
}

fn write_out(writer: &mut impl Write, waiting: &mut Vec<u8>) -> std::io::Result<()> {
    if !waiting.is_empty() {
        writer.write_all(waiting).and_then(|()| writer.flush())?;
        waiting.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

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

    /// What two writers wrote, in the order in which they did.
    #[derive(Clone, Default)]
    struct Screen(Arc<Mutex<Vec<u8>>>);

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_failure_closes_the_stream_and_the_cause_is_told_at_the_end() {
        let streams = Streams::apart(Small(3), std::io::sink());
        streams.out(b"four".to_vec()).await;
        streams.closed().await;
        streams.out(b"more".to_vec()).await;
        assert_eq!(streams.finish().await.unwrap_err().kind, std::io::ErrorKind::StorageFull);
    }

    #[tokio::test]
    async fn a_failure_of_the_last_write_is_not_lost() {
        for streams in
            [Streams::apart(Small(3), std::io::sink()), Streams::together(Small(3), std::io::sink())]
        {
            streams.out(b"four".to_vec()).await;
            assert_eq!(streams.finish().await.unwrap_err().kind, std::io::ErrorKind::StorageFull);
        }
    }

    #[tokio::test]
    async fn a_standard_error_that_fails_harms_nothing() {
        for streams in [Streams::apart(Small(4), Small(0)), Streams::together(Small(4), Small(0))] {
            streams.err(b"notice".to_vec()).await;
            streams.out(b"four".to_vec()).await;
            assert!(streams.finish().await.is_ok());
        }
    }

    #[tokio::test]
    async fn on_one_screen_what_is_written_first_is_seen_first() {
        let screen = Screen::default();
        let streams = Streams::together(screen.clone(), screen.clone());
        let mut expected = String::new();
        for turn in 0..1000 {
            let (out, err) = (format!("words {turn}\n"), format!("! notice {turn}\n"));
            expected += &out;
            expected += &err;
            streams.out(out.into_bytes()).await;
            streams.err(err.into_bytes()).await;
        }
        assert!(streams.finish().await.is_ok());
        assert_eq!(String::from_utf8(screen.0.lock().unwrap().clone()).unwrap(), expected);
    }
}
