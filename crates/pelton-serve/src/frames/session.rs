//! What is told of the session itself, besides what its submissions tell.

use std::path::Path;

use jiff::Timestamp;
use pelton::event::CommandInfo;
use pelton::hooks::{HookEvent, HookKind, HookNote, HookOutcome, HookRun};
use pelton::permission::Mode;
use pelton::transcript::in_parts;
use pelton_model::Subscription;
use pelton_wire::line::Line;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::fit::made_to_fit;
use super::{FRAME_BYTES_MAX, Frames};
use crate::outcome;

/// Hooks whose start is remembered to be told.
const HOOKS_STARTED_MAX: usize = 1_000;

/// Bytes of entries that go into one frame, unless one alone has more.
const MIRROR_BYTES_MAX: usize = 512 * 1024;

/// The words for what a subscription allows.
const STATUSES: [&str; 3] = ["allowed", "allowed_warning", "rejected"];

/// Commands, as clients are told of them.
pub(crate) fn listed(commands: &[CommandInfo]) -> Value {
    let one = |CommandInfo { name, description, argument_hint, .. }: &CommandInfo| json!({"name": name, "description": description, "argumentHint": argument_hint});
    commands.iter().map(one).collect()
}

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

    /// The commands there are, if they are not those that the client knows of. What it was told first is no change.
    pub fn commands(&mut self, commands: &[CommandInfo]) -> Vec<u8> {
        let known = self.standing.commands.replace(commands.to_vec());
        if known.is_none_or(|known| known == commands) {
            return Vec::new();
        }
        self.system("commands_changed").field("commands", listed(commands)).finish_line()
    }

    /// How much of the subscription is used, if that is new.
    pub(super) fn subscription(&mut self, used: &Subscription) -> Vec<u8> {
        let status = used.status.as_deref().filter(|status| STATUSES.contains(status));
        let Some(status) = status.filter(|_| self.standing.subscription.as_ref() != Some(used)) else {
            return Vec::new();
        };
        self.standing.subscription = Some(used.clone());
        let mut info = json!({"status": status});
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                info[name] = value;
            }
        };
        let seconds = |at: Timestamp| json!(at.as_second());
        put("resetsAt", used.reset.map(seconds));
        put("rateLimitType", used.claim.as_ref().map(|claim| json!(claim)));
        put("utilization", used.utilization.map(|share| json!(share)));
        put("overageStatus", used.overage_status.as_ref().map(|status| json!(status)));
        put("overageResetsAt", used.overage_reset.map(seconds));
        put("overageDisabledReason", used.overage_disabled_reason.as_ref().map(|why| json!(why)));
        Line::new("rate_limit_event")
            .field("rate_limit_info", info)
            .field("session_id", self.session)
            .field("uuid", self.id())
            .finish_line()
    }

    /// What runs in the background.
    pub fn tasks(&self) -> Vec<u8> {
        let tasks = self.standing.tasks.iter().map(|task| {
            let mut row =
                json!({"task_id": task.id, "task_type": task.kind.name(), "description": task.description});
            if let Some(agent_type) = &task.agent_type {
                row["subagent_type"] = json!(agent_type);
            }
            row
        });
        self.system("background_tasks_changed").field("tasks", tasks.collect::<Vec<Value>>()).finish_line()
    }

    /// How much runs without asking from now on.
    pub fn mode(&self, mode: Mode) -> Vec<u8> {
        self.system("status").field("status", None::<&str>).field("permissionMode", mode.name()).finish_line()
    }

    /// A result without a submission: why there is none.
    pub fn failure(&mut self, words: &str) -> Vec<u8> {
        let mut frame = outcome::start_failure(words, self.session, self.id());
        frame.push(b'\n');
        frame
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

    /// Whether anybody wants to know of a hook; what runs before the first prompt is always told.
    pub(super) fn shows_hook(&self, event: HookEvent) -> bool {
        self.hook_events || matches!(event, HookEvent::SessionStart | HookEvent::Setup)
    }

    /// What a hook does that still runs. Clients take the statement of a submission for its beginning, and its result for its
    /// end: around them nothing is told but what is over.
    pub fn hook_note(&mut self, note: &HookNote) -> Vec<u8> {
        if note.kind == HookKind::Callback || !self.is_under_way || !self.shows_hook(note.event) {
            return Vec::new();
        }
        if let Some(run) = &note.over {
            let frames = self.hook_told(run);
            if self.hooks_over.len() >= HOOKS_STARTED_MAX {
                self.hooks_over.clear();
            }
            self.hooks_over.insert(note.id.clone());
            return frames;
        }
        let about = |subtype: &str| {
            self.system(subtype)
                .field("hook_id", &note.id)
                .field("hook_name", &note.name)
                .field("hook_event", note.event.name())
        };
        match &note.printed {
            Some((stdout, stderr)) => about("hook_progress")
                .field("output", format!("{stdout}{stderr}"))
                .field("stdout", stdout)
                .field("stderr", stderr)
                .finish_line(),
            None => {
                let started = about("hook_started").finish_line();
                // Of one that was interrupted no end is told.
                if self.hooks_started.len() >= HOOKS_STARTED_MAX {
                    self.hooks_started.clear();
                }
                self.hooks_started.insert(note.id.clone());
                started
            }
        }
    }

    /// What was called as a hook, and what it did, unless that was told when it was over. Functions of the client know it
    /// themselves.
    pub(super) fn hook(&mut self, run: &HookRun) -> Vec<u8> {
        if run.kind == HookKind::Callback || self.hooks_over.remove(&run.id) {
            return Vec::new();
        }
        self.hook_told(run)
    }

    fn hook_told(&mut self, run: &HookRun) -> Vec<u8> {
        let was_told = self.hooks_started.remove(&run.id);
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
        let mut frames = if was_told { Vec::new() } else { about("hook_started").finish_line() };
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
