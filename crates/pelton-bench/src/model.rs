//! The model's end of the wire: it plays what a row wants, and notes when bytes came and went.
//!
//! It looks at nothing but where a request ends and how many results it brings, so that what is measured is the client and
//! not the model. Whether a request is legal is not looked at here.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use memchr::memmem;
use pelton_bench::events;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A piece of an answer.
#[derive(Clone)]
pub(crate) enum Piece {
    /// Bytes that are written at once.
    Send(Bytes),
    Wait(Duration),
    /// Notes the time.
    Mark,
}

/// What is answered to a request that brings so many results.
pub(crate) type Script = Arc<dyn Fn(usize) -> Vec<Piece> + Send + Sync>;

/// A request as it came.
#[derive(Clone)]
pub(crate) struct Came {
    /// Its last byte.
    pub whole: Instant,
    /// How long it was.
    pub bytes: usize,
    /// When the last byte of the answer was about to be written.
    pub answered: Option<Instant>,
}

/// Notes of what came, for the row that runs.
#[derive(Default)]
pub(crate) struct Notes {
    pub came: Vec<Came>,
    pub marks: Vec<Instant>,
    /// The first body.
    pub first: Vec<u8>,
    script: Option<Script>,
    /// Called with the number of the request, once its body is there.
    watch: Option<Arc<dyn Fn(usize) + Send + Sync>>,
}

pub(crate) struct Model {
    address: SocketAddr,
    notes: Arc<Mutex<Notes>>,
}

impl Model {
    pub fn start() -> io::Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let notes: Arc<Mutex<Notes>> = Arc::default();
        let state = Arc::clone(&notes);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("model".to_owned()).spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = TcpListener::from_std(listener) else { return };
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, Arc::clone(&state)));
                }
            });
        })?;
        Ok(Self { address, notes })
    }

    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// From now on this is played, and notes begin anew.
    pub fn play(&self, script: Script) {
        *self.notes() = Notes { script: Some(script), ..Notes::default() };
    }

    /// Calls somebody at every request, with its number.
    pub fn watch(&self, watch: Arc<dyn Fn(usize) + Send + Sync>) {
        self.notes().watch = Some(watch);
    }

    pub fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// What is not a question is answered with this.
const NOTHING: &[u8] =
    b"HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

async fn serve(mut stream: TcpStream, notes: Arc<Mutex<Notes>>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let lock = || notes.lock().unwrap_or_else(PoisonError::into_inner);
    let mut held: Vec<u8> = Vec::new();
    loop {
        let head = loop {
            if let Some(end) = memmem::find(&held, b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(&mut held).await? == 0 {
                return Ok(());
            }
        };
        let length = content_length(&held[..head]);
        while held.len() < head + length {
            if stream.read_buf(&mut held).await? == 0 {
                return Ok(());
            }
        }
        let whole = Instant::now();
        let is_question = held.starts_with(b"POST /v1/messages") && !held.starts_with(b"POST /v1/messages/");
        if !is_question {
            held.drain(..head + length);
            stream.write_all(NOTHING).await?;
            continue;
        }
        let body = &held[head..head + length];
        let results = memmem::find_iter(body, b"\"tool_use_id\"").count();
        let (number, script, watch) = {
            let mut notes = lock();
            if notes.first.is_empty() {
                notes.first = body.to_vec();
            }
            notes.came.push(Came { whole, bytes: head + length, answered: None });
            (notes.came.len() - 1, notes.script.clone(), notes.watch.clone())
        };
        held.drain(..head + length);
        if let Some(watch) = watch {
            watch(number);
        }
        let pieces = script.map(|script| script(results)).unwrap_or_default();
        stream.write_all(HEAD).await?;
        for piece in pieces {
            match piece {
                Piece::Send(bytes) => stream.write_all(&chunk(&bytes)).await?,
                Piece::Wait(time) => tokio::time::sleep(time).await,
                Piece::Mark => lock().marks.push(Instant::now()),
            }
        }
        // Before the last byte leaves: whoever reads it may have answered before this thread goes on.
        if let Some(came) = lock().came.get_mut(number) {
            came.answered = Some(Instant::now());
        }
        stream.write_all(b"0\r\n\r\n").await?;
    }
}

fn content_length(head: &[u8]) -> usize {
    let text = String::from_utf8_lossy(head).to_ascii_lowercase();
    let value = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut out = format!("{:x}\r\n", bytes.len()).into_bytes();
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
    out
}

/// An answer of one text.
pub(crate) fn answer(text: &str) -> Piece {
    Piece::Send(events::answer(text).into())
}
