//! What happened, line by line, by the stopped clock. The same seed must write the same log.

use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use pelton::Event;
use pelton::history::{Entry, Kind, Piece};
use tokio::time::Instant;

/// Characters of one line that are kept for reading; the hash covers all.
const LINE_CHARS_MAX: usize = 240;

#[derive(Clone)]
pub struct Log {
    began: Instant,
    written: Arc<Mutex<Written>>,
}

#[derive(Default)]
struct Written {
    lines: Vec<String>,
    hasher: DefaultHasher,
}

impl Log {
    pub fn new() -> Self {
        Self { began: Instant::now(), written: Arc::default() }
    }

    pub fn say(&self, line: impl AsRef<str>) {
        let line = line.as_ref();
        // Outside of the runtime, where a panic is noted, there is only the machine's clock.
        let inside = tokio::runtime::Handle::try_current().is_ok();
        let ms = if inside { self.began.elapsed().as_millis() } else { 0 };
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.hasher.write_u128(ms);
        written.hasher.write(line.as_bytes());
        let shown: String = line.chars().take(LINE_CHARS_MAX).collect();
        written.lines.push(format!("{:>9} ms  {shown}", ms));
    }

    pub fn lines(&self) -> Vec<String> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).lines.clone()
    }

    /// A number that two logs share only if they are the same.
    pub fn hash(&self) -> u64 {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).hasher.finish()
    }
}

/// An event in one line.
pub fn words(event: &Event) -> String {
    match event {
        Event::Prompt(entry) => format!("event prompt {}", entry_words(entry)),
        Event::Message(entry) => format!("event message {}", entry_words(entry)),
        Event::Delta(delta) => format!("event delta {}", String::from_utf8_lossy(&delta.raw)),
        Event::Started(started) => format!("event started {} {}", started.message_id, started.model),
        Event::ToolStarted(started) => {
            format!("event tool started {} {} {}", started.tool, started.input, started.call)
        }
        Event::Retry(notice) => format!(
            "event retry {} after {:?}, withdrawn {}: {}",
            notice.attempt, notice.wait, notice.withdrawn, notice.message
        ),
        Event::Result(outcome) => format!(
            "event RESULT {:?}, error {}, text {:?}, errors {:?}, ${:.6}, {:?} {:?}",
            outcome.terminal,
            outcome.is_error,
            outcome.text,
            outcome.errors,
            outcome.cost_usd,
            outcome.transitions,
            outcome.duration,
        ),
        Event::Init(_) => "event init".to_owned(),
        other => format!("event {other:?}"),
    }
}

fn entry_words(entry: &Entry) -> String {
    let what = match &entry.kind {
        Kind::Prompt { meta } => if *meta { "note" } else { "prompt" }.to_owned(),
        Kind::ToolResult { call, is_error } => format!("result of {call}, error {is_error}"),
        Kind::Assistant { piece, .. } => match piece {
            Piece::Text => "text".to_owned(),
            Piece::Thinking => "thinking".to_owned(),
            Piece::Call { name, id } => format!("call {name} {id}"),
            other => format!("{other:?}"),
        },
    };
    format!("[{what}] {} {}", entry.id, String::from_utf8_lossy(&entry.json))
}
