//! Standard output and standard error behind bounded queues: writing to a pipe may block for as long as its reader likes,
//! and must not hold up signals, timers or the model's stream meanwhile. What the reader has room for is written at once
//! where there is a way to know that; all else goes to a thread that may block, and that is started when it is needed.

use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};

/// Pieces waiting for a slow reader before the front end waits.
const PIECES_QUEUED_MAX: usize = 256;

/// Where a front end writes: what was asked for on one stream, what people may want to know on the other.
#[derive(Debug)]
pub struct Streams {
    out: Queue,
    /// Absent when one thread writes both.
    err: Option<Queue>,
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
        Self { out: Queue::new(out, std::io::sink()), err: Some(Queue::new(err, std::io::sink())) }
    }

    /// Two streams that people see on one screen: what is written first is seen first, whichever stream it is on.
    pub fn together(out: impl Write + Send + 'static, err: impl Write + Send + 'static) -> Self {
        Self { out: Queue::new(out, err), err: None }
    }

    /// With a way to write to standard output what can be written without waiting for its reader: it tells how many bytes that
    /// were. What it leaves, and whatever fails, goes the usual way.
    #[must_use]
    pub fn with_shortcut(mut self, shortcut: impl Fn(&[u8]) -> usize + Send + Sync + 'static) -> Self {
        self.out.shortcut = Some(Box::new(shortcut));
        self
    }

    /// Queues bytes for standard output, waiting while the queue is full. That they cannot be written is told by
    /// [`closed`](Self::closed) and [`finish`](Self::finish).
    pub async fn out(&self, bytes: Vec<u8>) {
        self.out.put(Piece::Main(bytes)).await;
    }

    /// Queues bytes for standard output if there is room; otherwise those that were not written come back.
    pub(crate) fn try_out(&self, bytes: Vec<u8>) -> Result<(), Vec<u8>> {
        self.out.try_put(Piece::Main(bytes)).map_err(Piece::into_bytes)
    }

    /// Returns when there is room, or never will be.
    pub(crate) async fn room(&self) {
        self.out.room().await;
    }

    /// The same for standard error. What is written there is a courtesy: that nobody reads it changes nothing.
    pub async fn err(&self, bytes: Vec<u8>) {
        match &self.err {
            Some(err) => err.put(Piece::Main(bytes)).await,
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
            if let Some(queue) = err {
                // Courtesy, as above.
                let _ = queue.finish().await;
            }
        };
        futures::future::join(out.finish(), err).await.0
    }
}

#[derive(Debug)]
enum Piece {
    Main(Vec<u8>),
    /// For the other writer of the same thread.
    Beside(Vec<u8>),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Main(bytes) | Self::Beside(bytes) => bytes,
        }
    }

    fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Main(bytes) | Self::Beside(bytes) => bytes,
        }
    }
}

/// Writes what can be written without waiting, and tells how many bytes that were.
type Shortcut = Box<dyn Fn(&[u8]) -> usize + Send + Sync>;

struct Queue {
    pieces: mpsc::Sender<Piece>,
    ended: oneshot::Receiver<Result<(), WriteError>>,
    /// How many pieces the thread has not written yet.
    unwritten: Arc<AtomicUsize>,
    shortcut: Option<Shortcut>,
    /// What the thread is made of, until there is something for it to do: most runs have nothing to say on one of the streams.
    thread: Mutex<Option<Thread>>,
}

struct Thread {
    main: Box<dyn Write + Send>,
    beside: Box<dyn Write + Send>,
    pieces: mpsc::Receiver<Piece>,
    unwritten: Arc<AtomicUsize>,
    tell_end: oneshot::Sender<Result<(), WriteError>>,
}

impl Queue {
    fn new(main: impl Write + Send + 'static, beside: impl Write + Send + 'static) -> Self {
        let (pieces_in, pieces) = mpsc::channel(PIECES_QUEUED_MAX);
        let (tell_end, ended) = oneshot::channel();
        let unwritten = Arc::new(AtomicUsize::new(0));
        let thread = Thread {
            main: Box::new(main),
            beside: Box::new(beside),
            pieces,
            unwritten: Arc::clone(&unwritten),
            tell_end,
        };
        Self { pieces: pieces_in, ended, unwritten, shortcut: None, thread: Mutex::new(Some(thread)) }
    }

    /// Takes a piece if there is room. What comes back is what of it was not written.
    fn try_put(&self, piece: Piece) -> Result<(), Piece> {
        if piece.bytes().is_empty() {
            return Ok(());
        }
        // One at a time: nobody writes between the beginning of a piece and the rest of it.
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let piece = self.by_shortcut(piece);
        if piece.bytes().is_empty() {
            return Ok(());
        }
        // Nobody waits for the thread itself: blocked by a reader that does not read, it ends with the process.
        if let Some(thread) = thread.take() {
            std::thread::spawn(move || thread.run());
        }
        self.unwritten.fetch_add(1, Ordering::AcqRel);
        match self.pieces.try_send(piece) {
            Ok(()) => Ok(()),
            Err(refused) => {
                self.unwritten.fetch_sub(1, Ordering::AcqRel);
                match refused {
                    mpsc::error::TrySendError::Full(piece) => Err(piece),
                    // A closed queue is told by its end.
                    mpsc::error::TrySendError::Closed(_) => Ok(()),
                }
            }
        }
    }

    async fn put(&self, mut piece: Piece) {
        while let Err(left) = self.try_put(piece) {
            piece = left;
            self.room().await;
        }
    }

    async fn room(&self) {
        let _ = self.pieces.reserve().await;
    }

    /// What is left of a piece once all is written that its reader has room for. Nothing overtakes what waits already.
    fn by_shortcut(&self, piece: Piece) -> Piece {
        match (piece, &self.shortcut) {
            (Piece::Main(mut bytes), Some(shortcut)) if self.unwritten.load(Ordering::Acquire) == 0 => {
                let written = shortcut(&bytes).min(bytes.len());
                bytes.drain(..written);
                Piece::Main(bytes)
            }
            (piece, _) => piece,
        }
    }

    async fn finish(self) -> Result<(), WriteError> {
        let Self { pieces, ended, thread, .. } = self;
        drop(pieces);
        if thread.into_inner().unwrap_or_else(PoisonError::into_inner).is_some() {
            // It never had anything to do.
            return Ok(());
        }
        ended.await.unwrap_or_else(|_| {
            Err(WriteError { kind: std::io::ErrorKind::Other, message: "the writer stopped".to_owned() })
        })
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("unwritten", &self.unwritten).finish_non_exhaustive()
    }
}

impl Thread {
    fn run(mut self) {
        let written = self.write_all();
        // The cause is there before anybody can notice that the queue is closed.
        let _ = self.tell_end.send(written);
        drop(self.pieces);
    }

    /// Ends with the first failure of the main writer.
    fn write_all(&mut self) -> Result<(), WriteError> {
        let mut waiting = Vec::new();
        while let Some(first) = self.pieces.blocking_recv() {
            let mut next = Some(first);
            let mut taken = 0;
            while let Some(piece) = next {
                taken += 1;
                match piece {
                    Piece::Main(bytes) if waiting.is_empty() => waiting = bytes,
                    Piece::Main(bytes) => waiting.extend_from_slice(&bytes),
                    Piece::Beside(bytes) => {
                        write_out(&mut self.main, &mut waiting)?;
                        let _ = self.beside.write_all(&bytes).and_then(|()| self.beside.flush());
                    }
                }
                next = self.pieces.try_recv().ok();
            }
            // All that was waiting goes out in one write.
            write_out(&mut self.main, &mut waiting)?;
            self.unwritten.fetch_sub(taken, Ordering::AcqRel);
        }
        Ok(())
    }
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

    /// A reader that has room for so many bytes in all, and says so.
    fn room_for(bytes: usize, read: &Screen) -> impl Fn(&[u8]) -> usize + Send + Sync + 'static {
        let (left, read) = (AtomicUsize::new(bytes), read.clone());
        move |wanted: &[u8]| {
            let taken = wanted.len().min(left.load(Ordering::Relaxed));
            left.fetch_sub(taken, Ordering::Relaxed);
            read.0.lock().unwrap().extend_from_slice(&wanted[..taken]);
            taken
        }
    }

    #[tokio::test]
    async fn what_a_shortcut_leaves_is_written_behind_it_and_in_order() {
        for room in [0, 1, 6, 7, 500, 100_000] {
            let read = Screen::default();
            let streams = Streams::apart(read.clone(), std::io::sink()).with_shortcut(room_for(room, &read));
            let mut expected = Vec::new();
            for line in 0..2_000 {
                let line = format!("line {line}\n").into_bytes();
                expected.extend_from_slice(&line);
                streams.out(line).await;
            }
            assert!(streams.finish().await.is_ok());
            assert!(*read.0.lock().unwrap() == expected, "with room for {room}");
        }
    }

    #[tokio::test]
    async fn a_failure_behind_a_shortcut_is_told() {
        let read = Screen::default();
        let streams = Streams::apart(Small(0), std::io::sink()).with_shortcut(room_for(3, &read));
        streams.out(b"thr".to_vec()).await;
        streams.out(b"ee".to_vec()).await;
        streams.closed().await;
        assert_eq!(streams.finish().await.unwrap_err().kind, std::io::ErrorKind::StorageFull);
        assert_eq!(*read.0.lock().unwrap(), b"thr");
    }

    #[tokio::test]
    async fn without_anything_to_write_there_is_nothing_to_wait_for() {
        assert!(Streams::apart(Small(0), Small(0)).finish().await.is_ok());
    }
}
