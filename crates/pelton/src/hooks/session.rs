//! The hooks of one session: what each moment of it tells them.

mod around; // files, tasks, questions of servers

pub(crate) use around::ModelSwitch;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::event::HookEvent;
use super::input::{Base, EventInput, HookInput, ToolCall};
use super::run::{Fired, HookCx, Hooks};
use crate::places::normalised;
use crate::status::{Board, Wait};

/// What takes a prompt's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expanded {
    /// A command, or a skill.
    Command,
    /// A prompt of a server's.
    ServersPrompt,
}

impl Expanded {
    fn name(self) -> &'static str {
        match self {
            Self::Command => "slash_command",
            Self::ServersPrompt => "mcp_prompt",
        }
    }
}

/// Words of an answer that are about to be shown.
pub(crate) struct Shown<'a> {
    /// The submission.
    pub turn: &'a str,
    /// The answer, the same for all of its words.
    pub message: &'a str,
    /// How many pieces of the answer came before.
    pub index: u32,
    /// Nothing follows.
    pub is_last: bool,
    /// Those that came since the last piece: whole lines, but for the last.
    pub words: &'a str,
}

/// Calls the hooks of one session. Cheap to clone.
#[derive(Clone)]
pub struct SessionHooks {
    /// Who listens.
    pub hooks: Arc<Hooks>,
    /// What they run with.
    pub cx: HookCx,
    /// What every one of them is told.
    pub base: Base,
    /// The record of the sub-agent they are called for, if it is one.
    pub agent_transcript: Option<PathBuf>,
    /// Where it is said that they are waited for.
    pub(crate) board: Board,
}

impl SessionHooks {
    /// A tool is about to run. `None` if nobody listens.
    pub async fn before_tool(&self, call: &ToolCall, cwd: &Path) -> Option<Fired> {
        self.fire(HookEvent::PreToolUse, cwd, || EventInput::PreToolUse { call: by_whole_path(call, cwd) })
            .await
    }

    /// A tool has run.
    pub async fn after_tool(
        &self,
        call: &ToolCall,
        response: &Value,
        duration: Duration,
        cwd: &Path,
    ) -> Option<Fired> {
        let event = || EventInput::PostToolUse {
            call: by_whole_path(call, cwd),
            response: response.clone(),
            duration,
        };
        self.fire(HookEvent::PostToolUse, cwd, event).await
    }

    /// A tool has failed.
    pub async fn after_failure(
        &self,
        call: &ToolCall,
        error: &str,
        duration: Duration,
        cwd: &Path,
    ) -> Option<Fired> {
        let is_interrupt = self.cx.cancel.is_cancelled();
        let event = || EventInput::PostToolUseFailure {
            call: by_whole_path(call, cwd),
            error: error.to_owned(),
            is_interrupt,
            duration,
        };
        self.fire(HookEvent::PostToolUseFailure, cwd, event).await
    }

    /// All calls of an answer are over; each comes as it was told of when it was made, and with what the model is told about it.
    pub async fn after_batch(&self, calls: Vec<(ToolCall, Value)>, cwd: &Path) -> Option<Fired> {
        self.fire(HookEvent::PostToolBatch, cwd, || EventInput::PostToolBatch { calls }).await
    }

    /// Commands work elsewhere from here on.
    pub async fn moved(&self, from: &Path, to: &Path) -> Option<Fired> {
        let words = |path: &Path| Value::from(path.to_string_lossy());
        let fields = || [("old_cwd".to_owned(), words(from)), ("new_cwd".to_owned(), words(to))];
        let event = HookEvent::CwdChanged;
        self.fire(event, to, || EventInput::Other { event, fields: fields().into_iter().collect() }).await
    }

    /// Somebody's attention is wanted.
    pub async fn notify(&self, kind: &str, message: &str, cwd: &Path) -> Option<Fired> {
        let event = || EventInput::Notification {
            message: message.to_owned(),
            title: None,
            notification_type: kind.to_owned(),
        };
        self.fire(HookEvent::Notification, cwd, event).await
    }

    /// Somebody is about to be asked whether a tool may run; hooks may decide in their place.
    pub async fn permission_request(
        &self,
        tool: &str,
        input: &Value,
        suggestions: Vec<Value>,
        cwd: &Path,
    ) -> Option<Fired> {
        let event = || EventInput::PermissionRequest {
            tool_name: tool.to_owned(),
            tool_input: with_whole_paths(input, cwd),
            suggestions,
        };
        self.fire(HookEvent::PermissionRequest, cwd, event).await
    }

    /// A tool was refused and nobody was asked.
    pub async fn permission_denied(&self, call: &ToolCall, reason: &str, cwd: &Path) -> Option<Fired> {
        let event = || {
            let fields = [
                ("tool_name", Value::from(call.name.as_str())),
                ("tool_input", with_whole_paths(&call.input, cwd)),
                ("tool_use_id", call.id.as_str().into()),
                ("reason", reason.into()),
            ];
            let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            EventInput::Other { event: HookEvent::PermissionDenied, fields }
        };
        self.fire(HookEvent::PermissionDenied, cwd, event).await
    }

    /// The user sent a prompt.
    pub async fn prompt(&self, prompt: &str) -> Option<Fired> {
        let event = || EventInput::UserPromptSubmit { prompt: prompt.to_owned() };
        self.fire(HookEvent::UserPromptSubmit, &self.base.cwd, event).await
    }

    /// A command the user typed is about to become a prompt.
    pub async fn expansion(
        &self,
        kind: Expanded,
        command: &str,
        arguments: &str,
        source: &str,
        prompt: &str,
    ) -> Option<Fired> {
        let event = HookEvent::UserPromptExpansion;
        let fields = || {
            let fields = [
                ("expansion_type", kind.name()),
                ("command_name", command),
                ("command_args", arguments),
                ("command_source", source),
                ("prompt", prompt),
            ];
            fields.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
        };
        self.fire(event, &self.base.cwd, || EventInput::Other { event, fields: fields() }).await
    }

    /// Words are about to be shown.
    pub async fn displays(&self, shown: &Shown<'_>, cwd: &Path) -> Option<Fired> {
        let event = HookEvent::MessageDisplay;
        let fields = || {
            let fields = [
                ("turn_id", Value::from(shown.turn)),
                ("message_id", shown.message.into()),
                ("index", shown.index.into()),
                ("final", shown.is_last.into()),
                ("delta", shown.words.into()),
            ];
            fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
        };
        self.fire(event, cwd, || EventInput::Other { event, fields: fields() }).await
    }

    /// The session begins; `source` says how.
    pub async fn session_start(&self, source: &str, model: &str) -> Option<Fired> {
        let event = || EventInput::SessionStart { source: source.to_owned(), model: Some(model.to_owned()) };
        self.fire(HookEvent::SessionStart, &self.base.cwd, event).await
    }

    /// The conversation is about to be summed up; hooks may refuse that.
    pub async fn before_compaction(&self, trigger: &str, wishes: Option<&str>) -> Option<Fired> {
        let event = || EventInput::PreCompact {
            trigger: trigger.to_owned(),
            custom_instructions: wishes.map(str::to_owned),
        };
        self.fire(HookEvent::PreCompact, &self.base.cwd, event).await
    }

    /// The conversation was summed up.
    pub async fn after_compaction(&self, trigger: &str, summary: &str) -> Option<Fired> {
        let event =
            || EventInput::PostCompact { trigger: trigger.to_owned(), compact_summary: summary.to_owned() };
        self.fire(HookEvent::PostCompact, &self.base.cwd, event).await
    }

    /// The session ends.
    pub async fn session_end(&self, reason: &str) -> Option<Fired> {
        let event = || EventInput::SessionEnd { reason: reason.to_owned() };
        self.fire(HookEvent::SessionEnd, &self.base.cwd, event).await
    }

    /// The submission is about to end.
    pub async fn stop(
        &self,
        stop_hook_active: bool,
        last_words: Option<String>,
        background_tasks: Vec<Value>,
        cwd: &Path,
    ) -> Option<Fired> {
        let (Some(agent_id), Some(agent_type)) = (&self.base.agent_id, &self.base.agent_type) else {
            let event = || EventInput::Stop {
                stop_hook_active,
                last_assistant_message: last_words,
                background_tasks,
            };
            return self.fire(HookEvent::Stop, cwd, event).await;
        };
        // H6: a sub-agent has an end of its own.
        let event = || EventInput::SubagentStop {
            stop_hook_active,
            agent_id: agent_id.clone(),
            agent_type: agent_type.clone(),
            agent_transcript_path: self.agent_transcript.clone().unwrap_or_default(),
            last_assistant_message: last_words,
            background_tasks,
        };
        self.fire(HookEvent::SubagentStop, cwd, event).await
    }

    /// The submission ended because the model's server failed: the hooks of the end are not asked.
    pub async fn stop_failure(&self, error: &str, details: &str, told: &str, cwd: &Path) -> Option<Fired> {
        let event = || EventInput::StopFailure {
            error: error.to_owned(),
            error_details: Some(details.to_owned()),
            last_assistant_message: Some(told.to_owned()),
        };
        self.fire(HookEvent::StopFailure, cwd, event).await
    }

    /// A sub-agent is about to begin: the one these hooks are called for.
    pub async fn agent_started(&self, cwd: &Path) -> Option<Fired> {
        let event = || EventInput::SubagentStart {
            agent_id: self.base.agent_id.clone().unwrap_or_default(),
            agent_type: self.base.agent_type.clone().unwrap_or_default(),
        };
        self.fire(HookEvent::SubagentStart, cwd, event).await
    }

    /// Whether anybody listens.
    pub fn listens(&self, event: HookEvent) -> bool {
        self.hooks.listens(event)
    }

    async fn fire(&self, event: HookEvent, cwd: &Path, input: impl FnOnce() -> EventInput) -> Option<Fired> {
        if !self.hooks.listens(event) {
            return None;
        }
        let _wait = self.board.wait(Wait::Hook { event });
        let base = Base { cwd: cwd.to_path_buf(), ..self.base.clone() };
        Some(self.hooks.fire(&HookInput { base, event: input() }, &self.cx).await)
    }
}

/// The fields of an input that name a file.
const FILE_FIELDS: [&str; 2] = ["file_path", "notebook_path"];

/// A call as hooks read it.
pub(crate) fn by_whole_path(call: &ToolCall, cwd: &Path) -> ToolCall {
    ToolCall { name: call.name.clone(), input: with_whole_paths(&call.input, cwd), id: call.id.clone() }
}

/// The input as hooks read it: whoever looks at the beginning of a path must not be led past by where it starts.
fn with_whole_paths(input: &Value, cwd: &Path) -> Value {
    let mut input = input.clone();
    for field in FILE_FIELDS {
        let Some(Value::String(path)) = input.get_mut(field) else { continue };
        if !path.is_empty() && !path.starts_with('~') {
            *path = normalised(&cwd.join(&*path)).to_string_lossy().into_owned();
        }
    }
    input
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hooks_read_whole_paths() {
        for (path, expected) in [
            ("a.txt", "/w/d/a.txt"),
            ("./a/../b.txt", "/w/d/b.txt"),
            ("../../etc/passwd", "/etc/passwd"),
            ("/x/./y", "/x/y"),
            ("~/z", "~/z"),
            ("", ""),
        ] {
            let told = with_whole_paths(&json!({"file_path": path, "other": path}), Path::new("/w/d"));
            assert_eq!(told, json!({"file_path": expected, "other": path}));
        }
        let odd = json!({"file_path": 3, "command": "cat a"});
        assert_eq!(with_whole_paths(&odd, Path::new("/w")), odd);
    }
}
