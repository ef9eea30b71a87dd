//! A transcript as long sessions leave it: a gigabyte, compacted hundreds of times.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use uuid::Uuid;

const TRANSCRIPT_BYTES: u64 = 1_000_000_000;
/// How often it was compacted.
pub const BOUNDARIES: u64 = 300;
/// One line of the transcript is as long as this, in the middle of it.
const LONG_LINE_BYTES: usize = 40_000_000;
/// What a usual call brings.
pub const RESULT_BYTES: usize = 8_000;

/// Writes a transcript as long sessions leave it.
pub fn write_transcript(path: &Path, session: Uuid, cwd: &Path) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut writer = Lines { cwd: cwd.to_path_buf(), ..Lines::new(session) };
    let mut written = 0;
    for boundary in 0..BOUNDARIES {
        written += writer.boundary(&mut file)?;
        while written < TRANSCRIPT_BYTES * (boundary + 1) / BOUNDARIES {
            written += writer.round(&mut file, RESULT_BYTES)?;
        }
        if boundary == BOUNDARIES / 2 {
            written += writer.round(&mut file, LONG_LINE_BYTES)?;
        }
    }
    file.flush()
}

/// Writes lines that hang together.
pub struct Lines {
    session: Uuid,
    cwd: PathBuf,
    newest: Option<Uuid>,
    count: u128,
}

impl Lines {
    /// The lines of a session, from its first.
    pub fn new(session: Uuid) -> Self {
        Self { session, cwd: "/srv/shop".into(), newest: None, count: 1 }
    }

    fn line(&mut self, file: &mut impl Write, mut line: Value) -> io::Result<u64> {
        self.count += 1;
        let id = Uuid::from_u128(self.count << 64 | 1);
        line["uuid"] = json!(id);
        if line["subtype"].is_null() {
            line["parentUuid"] = json!(self.newest);
        } else {
            (line["parentUuid"], line["logicalParentUuid"]) = (Value::Null, json!(self.newest));
        }
        line["sessionId"] = json!(self.session);
        line["timestamp"] = json!("2026-01-01T00:00:00.000Z");
        line["cwd"] = json!(self.cwd);
        self.newest = Some(id);
        let text = format!("{line}\n");
        file.write_all(text.as_bytes())?;
        Ok(text.len() as u64)
    }

    fn boundary(&mut self, file: &mut impl Write) -> io::Result<u64> {
        let boundary = json!({"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted",
            "compactMetadata": {"trigger": "auto", "preTokens": 155_000}});
        let summary = json!({"type": "user", "isCompactSummary": true,
            "message": {"role": "user", "content": "So far: jars were counted. ".repeat(200)}});
        Ok(self.line(file, boundary)? + self.line(file, summary)?)
    }

    /// A prompt, a call with a result of so many bytes, an answer. Tells how many bytes were written.
    pub fn round(&mut self, file: &mut impl Write, bytes: usize) -> io::Result<u64> {
        let call = format!("toolu_{}", self.count);
        let answer = |block: Value| {
            let message =
                json!({"id": "msg", "role": "assistant", "model": "claude-sonnet-5-5", "content": [block]});
            json!({"type": "assistant", "message": message})
        };
        let result = json!([{"type": "tool_result", "tool_use_id": call, "content": "0123456 jar\n".repeat(bytes / 12)}]);
        let lines = [
            json!({"type": "user", "message": {"role": "user", "content": "Count the jars on the next shelf."}}),
            answer(json!({"type": "text", "text": "I will look at it."})),
            answer(
                json!({"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "cat shelf"}}),
            ),
            json!({"type": "user", "message": {"role": "user", "content": result}}),
            answer(json!({"type": "text", "text": "There are 12."})),
        ];
        lines.into_iter().try_fold(0, |written, line| Ok(written + self.line(file, line)?))
    }
}
