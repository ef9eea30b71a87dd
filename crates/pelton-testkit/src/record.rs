//! Every request and every reply as a line of JSON.
//!
//! A request is written when it has arrived, its reply when it has ended, so a server that is killed leaves all
//! requests behind. Values of headers that carry secrets are left out.

use crate::server::seen::Seen;
use serde_json::{Map, Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// What stands in place of a secret.
pub const REDACTED: &str = "[redacted]";

/// Parts of header names whose values are secret.
const SECRET_NAMES: &[&str] = &["authorization", "api-key", "cookie", "token", "secret"];

/// An open record.
#[derive(Debug)]
pub(crate) struct Record {
    file: File,
}

impl Record {
    /// Opens a file to write at its end.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: OpenOptions::new().create(true).append(true).open(path)? })
    }

    pub(crate) fn request(&mut self, seen: &Seen) -> io::Result<()> {
        let body = match &*seen.body {
            Value::Null if !seen.raw.is_empty() => json!(String::from_utf8_lossy(&seen.raw)),
            body => body.clone(),
        };
        self.line(&json!({
            "kind": "request", "request": seen.number, "at_ms": now_ms(), "method": seen.method,
            "path": seen.path, "query": seen.query, "headers": redact(&seen.headers), "body": body,
        }))
    }

    pub(crate) fn reply(&mut self, seen: &Seen) -> io::Result<()> {
        let sent = &seen.reply;
        let events = sent.events.iter().map(|event| {
            // Damaged data is kept as the text it is.
            let data = serde_json::from_str(&event.data).unwrap_or_else(|_| json!(event.data));
            json!({"event": event.name, "data": data})
        });
        self.line(&json!({
            "kind": "reply", "request": seen.number, "at_ms": now_ms(), "step": seen.step,
            "status": sent.status, "headers": headers(&sent.headers), "body": sent.body,
            "events": events.collect::<Vec<_>>(), "bytes": sent.bytes, "usage": sent.usage, "ending": sent.ending,
            "refusal": seen.refusal.as_ref().map(|refusal| {
                json!({"rule": refusal.rule, "type": refusal.kind, "message": refusal.message})
            }),
            "unexpected": seen.unexpected,
        }))
    }

    fn line(&mut self, value: &Value) -> io::Result<()> {
        // One write per line: lines of two processes that share a record do not mix.
        self.file.write_all(format!("{value}\n").as_bytes())
    }
}

/// Headers as an object, secrets left out. A name said twice has its values joined.
pub(crate) fn redact(said: &[(String, String)]) -> Value {
    let secret = |name: &str| SECRET_NAMES.iter().any(|part| name.to_ascii_lowercase().contains(part));
    let safe = said
        .iter()
        .map(|(name, value)| (name.clone(), if secret(name) { REDACTED.to_owned() } else { value.clone() }));
    headers(&safe.collect::<Vec<_>>())
}

fn headers(said: &[(String, String)]) -> Value {
    let mut map = Map::new();
    for (name, value) in said {
        let joined = match map.get(name).and_then(Value::as_str) {
            Some(before) => format!("{before}, {value}"),
            None => value.clone(),
        };
        map.insert(name.clone(), json!(joined));
    }
    Value::Object(map)
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
