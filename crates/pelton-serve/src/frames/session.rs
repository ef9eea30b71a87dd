//! What is told of the session itself, besides what its submissions tell.

use std::path::Path;

use pelton::hooks::{HookKind, HookOutcome, HookRun};
use pelton::permission::Mode;
use pelton::transcript::in_parts;
use pelton_wire::line::Line;
use serde_json::value::RawValue;

use super::fit::made_to_fit;
use super::{FRAME_BYTES_MAX, Frames};

/// Bytes of entries that go into one frame, unless one alone has more.
const MIRROR_BYTES_MAX: usize = 512 * 1024;

impl Frames {
    /// The session works, waits for somebody, or waits for its next prompt.
    pub fn state(&self, state: &str, for_the_host: bool) -> Vec<u8> {
        self.system("session_state_changed")
            .field("state", state)
            .field_if("sdk_host_only", for_the_host.then_some(true))
            .finish_line()
    }

    /// What the user may want to say next.
    pub fn suggestion(&self, words: &str) -> Vec<u8> {
        Line::new("prompt_suggestion")
            .field("suggestion", words)
            .field("session_id", self.session)
            .field("uuid", self.id())
            .finish_line()
    }

    /// How much runs without asking from now on.
    pub fn mode(&self, mode: Mode) -> Vec<u8> {
        self.system("status").field("status", None::<&str>).field("permissionMode", mode.name()).finish_line()
    }

    /// Something the client should know.
    pub fn informational(&self, words: &str) -> Vec<u8> {
        self.system("informational").field("content", words).field("level", "warning").finish_line()
    }

    /// Lines that were added to a file of the session's record, as few frames as may be.
    pub fn mirror(&self, file: &Path, lines: &[Vec<u8>]) -> Vec<u8> {
        let mut frames = Vec::new();
        let mut entries = Vec::new();
        let mut bytes = 0;
        let frame = |entries: &[&RawValue]| {
            Line::new("transcript_mirror")
                .field("filePath", file.to_string_lossy())
                .field("entries", entries)
                .finish_line()
        };
        // What no reader can take at once is told in parts.
        let apart = |line: &Vec<u8>| match line.len() > MIRROR_BYTES_MAX {
            true => in_parts(line, MIRROR_BYTES_MAX / 2).unwrap_or_else(|| vec![line.clone()]),
            false => vec![line.clone()],
        };
        let lines: Vec<Vec<u8>> = lines.iter().flat_map(apart).collect();
        for line in &lines {
            // Every line of ours is JSON.
            let Ok(entry) = serde_json::from_slice::<&RawValue>(line) else { continue };
            if bytes + line.len() > MIRROR_BYTES_MAX && !entries.is_empty() {
                frames.extend(frame(&entries));
                entries.clear();
                bytes = 0;
            }
            bytes += line.len();
            entries.push(entry);
        }
        if !entries.is_empty() {
            frames.extend(frame(&entries));
        }
        made_to_fit(frames, FRAME_BYTES_MAX)
    }

    /// What was called as a hook, and what it did. Functions of the client know that themselves.
    pub(super) fn hook(&self, run: &HookRun) -> Vec<u8> {
        if run.kind == HookKind::Callback {
            return Vec::new();
        }
        let about = |subtype: &str| {
            self.system(subtype)
                .field("hook_id", &run.id)
                .field("hook_name", &run.name)
                .field("hook_event", run.event.name())
        };
        let outcome = match run.outcome {
            HookOutcome::Success | HookOutcome::Background => "success",
            HookOutcome::Cancelled => "cancelled",
            _ => "error",
        };
        let mut frames = about("hook_started").finish_line();
        let ended = about("hook_response")
            .field("output", &run.stdout)
            .field("stdout", &run.stdout)
            .field("stderr", &run.stderr)
            .field_if("exit_code", run.exit_code)
            .field("outcome", outcome);
        frames.extend(ended.finish_line());
        frames
    }
}
