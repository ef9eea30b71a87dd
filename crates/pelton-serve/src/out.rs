//! A writer behind a bounded queue, on a thread of its own: writing to a pipe may block for as long as its reader
//! likes, and must not hold up signals, timers or the model's stream meanwhile.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::mpsc;

/// Pieces waiting for a slow reader before the front end waits.
const PIECES_QUEUED_MAX: usize = 256;

/// Writes in order, on a thread of its own.
#[derive(Debug)]
pub struct Out {
    queue: mpsc::Sender<Vec<u8>>,
    failure: Arc<Mutex<Option<WriteError>>>,
    thread: JoinHandle<()>,
}

/// The reader is gone, or there is no room.
#[derive(Debug, Clone)]
pub struct WriteError {
    /// What the system calls it.
    pub kind: std::io::ErrorKind,
    /// The system's words.
    pub message: String,
}

impl Out {
    /// Starts writing to `writer`.
    pub fn start(mut writer: impl Write + Send + 'static) -> Self {
        let (queue, mut pieces) = mpsc::channel::<Vec<u8>>(PIECES_QUEUED_MAX);
        let failure = Arc::new(Mutex::new(None));
        let noted = Arc::clone(&failure);
        let thread = std::thread::spawn(move || {
            let mut waiting = Vec::new();
            // All that is waiting goes out in one write.
            while let Some(first) = pieces.blocking_recv() {
                waiting.extend_from_slice(&first);
                while let Ok(next) = pieces.try_recv() {
                    waiting.extend_from_slice(&next);
                }
                if let Err(error) = writer.write_all(&waiting).and_then(|()| writer.flush()) {
                    let failure = WriteError { kind: error.kind(), message: error.to_string() };
                    *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
                    return;
                }
                waiting.clear();
            }
        });
        Self { queue, failure, thread }
    }

    /// Queues bytes, waiting while the queue is full.
    pub async fn write(&self, bytes: Vec<u8>) -> Result<(), WriteError> {
        if bytes.is_empty() {
            return Ok(());
        }
        match self.queue.send(bytes).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.failure().unwrap_or_else(stopped)),
        }
    }

    /// Waits until everything is written.
    pub fn finish(self) -> Result<(), WriteError> {
        let Self { queue, failure, thread } = self;
        drop(queue);
        let panicked = thread.join().is_err();
        let failure = failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        match failure {
            Some(error) => Err(error),
            None if panicked => Err(stopped()),
            None => Ok(()),
        }
    }

    fn failure(&self) -> Option<WriteError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn stopped() -> WriteError {
    WriteError { kind: std::io::ErrorKind::Other, message: "the writer stopped".to_owned() }
}
