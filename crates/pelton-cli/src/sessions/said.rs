//! What was said in a session, line by line, whatever happened to its file. One line is in memory at a time.

use std::cell::Cell;
use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::rc::Rc;

use pelton::transcript::{conversation, whole_lines, withdrawn};
use pelton_serve::plain;
use serde_json::Value;
use uuid::Uuid;

/// A message, or a part of one.
pub(super) struct Said {
    /// `user` or `assistant`.
    pub role: String,
    pub id: Option<String>,
    pub at: Option<String>,
    /// The words are not the user's own, though they stand in the user's place.
    pub is_meta: bool,
    pub content: Value,
}

/// What a message is made of.
pub(super) enum Part {
    Text(String),
    Thinking(String),
    Call {
        name: String,
        input: Value,
    },
    Result {
        text: String,
        is_error: bool,
    },
    /// A picture or a document.
    Media(String),
}

/// Which messages of a file are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Branches {
    /// Those of the conversation that would be gone on with.
    Newest,
    /// Those, too, that somebody went back to before.
    All,
}

impl Branches {
    pub fn wanted(all: bool) -> Self {
        if all { Self::All } else { Self::Newest }
    }
}

/// The messages of a file, in the order in which they were written, and how many there are of branches that are not wanted,
/// once all were read. Those that were taken back were not said.
pub(super) fn messages_of(file: &Path, branches: Branches) -> io::Result<(Messages, Rc<Cell<usize>>)> {
    let left = Rc::new(Cell::new(0));
    let said = messages(file)?;
    if branches == Branches::All {
        return Ok((Box::new(said), left));
    }
    let conversation = conversation(file).map_err(io::Error::other)?;
    let counted = Rc::clone(&left);
    let is_wanted = move |said: &io::Result<Said>| {
        let id = said.as_ref().ok().and_then(|said| said.id.as_deref()?.parse().ok());
        let is_wanted = id.is_none_or(|id: Uuid| conversation.contains(&id));
        let is_seen = said.as_ref().is_ok_and(|said| !said.is_meta);
        counted.set(counted.get() + usize::from(!is_wanted && is_seen));
        is_wanted
    };
    Ok((Box::new(said.filter(is_wanted)), left))
}

/// Messages, one after the other.
pub(super) type Messages = Box<dyn Iterator<Item = io::Result<Said>>>;

/// All messages of a file, in the order in which they were written. Those that were taken back were not said.
pub(super) fn messages(file: &Path) -> io::Result<impl Iterator<Item = io::Result<Said>> + use<>> {
    let withdrawn = withdrawn(file)?;
    let said = move |line: Vec<u8>| message(&line).filter(|said| !said.is_in(&withdrawn));
    Ok(whole_lines(file)?.filter_map(move |line| line.map(&said).transpose()))
}

/// The message of a line; others are about something else.
fn message(line: &[u8]) -> Option<Said> {
    let mut line: Value = serde_json::from_slice(line.trim_ascii()).ok()?;
    let role = line["type"].as_str().filter(|kind| matches!(*kind, "user" | "assistant"))?.to_owned();
    let content = line.pointer_mut("/message/content").map(Value::take).unwrap_or_default();
    let text = |name: &str| line[name].as_str().map(str::to_owned);
    let is_meta = ["isMeta", "isCompactSummary"].iter().any(|name| line[*name] == true);
    Some(Said { role, id: text("uuid"), at: text("timestamp"), is_meta, content })
}

impl Said {
    fn is_in(&self, withdrawn: &HashSet<Uuid>) -> bool {
        self.id.as_deref().and_then(|id| id.parse().ok()).is_some_and(|id: Uuid| withdrawn.contains(&id))
    }

    pub fn parts(&self) -> Vec<Part> {
        match &self.content {
            Value::String(text) => vec![Part::Text(text.clone())],
            Value::Array(blocks) => blocks.iter().filter_map(part).collect(),
            _ => Vec::new(),
        }
    }
}

fn part(block: &Value) -> Option<Part> {
    let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
    Some(match block["type"].as_str()? {
        "text" => Part::Text(text("text")),
        "thinking" => Part::Thinking(text("thinking")),
        "tool_use" | "server_tool_use" => Part::Call { name: text("name"), input: block["input"].clone() },
        "tool_result" => Part::Result { text: words(&block["content"]), is_error: block["is_error"] == true },
        kind @ ("image" | "document") => Part::Media(kind.to_owned()),
        _ => return None,
    })
}

/// The words of a result.
fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let words = blocks.iter().map(|block| match block["type"].as_str() {
                Some("text") => block["text"].as_str().unwrap_or_default().to_owned(),
                Some(other) => format!("[{other}]"),
                None => String::new(),
            });
            words.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// What a call is about, in one line.
pub(super) fn call_line(name: &str, input: &Value) -> String {
    const SUBJECTS: [&str; 8] =
        ["command", "file_path", "notebook_path", "pattern", "url", "query", "description", "path"];
    let subject = SUBJECTS.iter().find_map(|field| input[*field].as_str());
    let subject = subject.map(|subject| format!(" {}", plain(subject).lines().next().unwrap_or_default()));
    format!("{}{}", plain(name), subject.unwrap_or_default())
}
