//! What a hook is told: one JSON object, the same for a command's standard input and for a callback. Pure.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::event::HookEvent;

/// An event, and the session it happened in.
#[derive(Debug, Clone, PartialEq)]
pub struct HookInput {
    /// What every event tells.
    pub base: Base,
    /// What this one tells.
    pub event: EventInput,
}

/// What every event tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Base {
    /// The session.
    pub session_id: String,
    /// Its record; empty when there is none.
    pub transcript_path: PathBuf,
    /// Where it works right now. Commands start here.
    pub cwd: PathBuf,
    /// The prompt being worked on.
    pub prompt_id: Option<String>,
    /// How much runs without asking.
    pub permission_mode: Option<String>,
    /// The sub-agent it happened in.
    pub agent_id: Option<String>,
    /// What kind of agent that is.
    pub agent_type: Option<String>,
    /// How hard the model tries.
    pub effort: Option<String>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// Its input.
    pub input: Value,
    /// The call's id.
    pub id: String,
}

/// What one event tells.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum EventInput {
    /// A tool is about to run.
    PreToolUse {
        /// The call.
        call: ToolCall,
    },
    /// A tool has run.
    PostToolUse {
        /// The call.
        call: ToolCall,
        /// The tool's structured answer.
        response: Value,
        /// How long it ran.
        duration: Duration,
    },
    /// A tool has failed.
    PostToolUseFailure {
        /// The call.
        call: ToolCall,
        /// What went wrong.
        error: String,
        /// The user interrupted it.
        is_interrupt: bool,
        /// How long it ran.
        duration: Duration,
    },
    /// All calls of one answer are done.
    PostToolBatch {
        /// The calls, each with what the model is told about it.
        calls: Vec<(ToolCall, Value)>,
    },
    /// The user is about to be asked.
    PermissionRequest {
        /// The tool.
        tool_name: String,
        /// Its input.
        tool_input: Value,
        /// What the user could allow for good.
        suggestions: Vec<Value>,
    },
    /// The user sent a prompt.
    UserPromptSubmit {
        /// The prompt.
        prompt: String,
    },
    /// The turn is about to end.
    Stop {
        /// It goes on only because a stop hook wanted it.
        stop_hook_active: bool,
        /// The model's last words.
        last_assistant_message: Option<String>,
        /// What runs on in the background.
        background_tasks: Vec<Value>,
    },
    /// A sub-agent is about to end.
    SubagentStop {
        /// It goes on only because a stop hook wanted it.
        stop_hook_active: bool,
        /// The sub-agent.
        agent_id: String,
        /// What kind it is.
        agent_type: String,
        /// Its record.
        agent_transcript_path: PathBuf,
        /// Its last words.
        last_assistant_message: Option<String>,
        /// What runs on in the background.
        background_tasks: Vec<Value>,
    },
    /// The turn ended with an error of the model's server.
    StopFailure {
        /// The kind of error.
        error: String,
        /// More about it.
        error_details: Option<String>,
        /// What the user was told.
        last_assistant_message: Option<String>,
    },
    /// A session begins.
    SessionStart {
        /// `startup`, `resume`, `clear`, `compact` or `fork`.
        source: String,
        /// The model.
        model: Option<String>,
    },
    /// A session ends.
    SessionEnd {
        /// `clear`, `resume`, `logout`, `prompt_input_exit` or `other`.
        reason: String,
    },
    /// A sub-agent starts.
    SubagentStart {
        /// The sub-agent.
        agent_id: String,
        /// What kind it is.
        agent_type: String,
    },
    /// The history is about to be summarised.
    PreCompact {
        /// `manual` or `auto`.
        trigger: String,
        /// What the summary should heed.
        custom_instructions: Option<String>,
    },
    /// The history was summarised.
    PostCompact {
        /// `manual` or `auto`.
        trigger: String,
        /// The summary.
        compact_summary: String,
    },
    /// The user's attention is wanted.
    Notification {
        /// What it says.
        message: String,
        /// Its title.
        title: Option<String>,
        /// Its kind.
        notification_type: String,
    },
    /// Any other event, with its fields as they go out.
    Other {
        /// The event.
        event: HookEvent,
        /// Its fields.
        fields: Map<String, Value>,
    },
}

impl HookInput {
    /// The event.
    pub fn event(&self) -> HookEvent {
        match &self.event {
            EventInput::PreToolUse { .. } => HookEvent::PreToolUse,
            EventInput::PostToolUse { .. } => HookEvent::PostToolUse,
            EventInput::PostToolUseFailure { .. } => HookEvent::PostToolUseFailure,
            EventInput::PostToolBatch { .. } => HookEvent::PostToolBatch,
            EventInput::PermissionRequest { .. } => HookEvent::PermissionRequest,
            EventInput::UserPromptSubmit { .. } => HookEvent::UserPromptSubmit,
            EventInput::Stop { .. } => HookEvent::Stop,
            EventInput::SubagentStop { .. } => HookEvent::SubagentStop,
            EventInput::StopFailure { .. } => HookEvent::StopFailure,
            EventInput::SessionStart { .. } => HookEvent::SessionStart,
            EventInput::SessionEnd { .. } => HookEvent::SessionEnd,
            EventInput::SubagentStart { .. } => HookEvent::SubagentStart,
            EventInput::PreCompact { .. } => HookEvent::PreCompact,
            EventInput::PostCompact { .. } => HookEvent::PostCompact,
            EventInput::Notification { .. } => HookEvent::Notification,
            EventInput::Other { event, .. } => *event,
        }
    }

    /// The call the event is about.
    pub fn tool_use_id(&self) -> Option<&str> {
        match &self.event {
            EventInput::PreToolUse { call }
            | EventInput::PostToolUse { call, .. }
            | EventInput::PostToolUseFailure { call, .. } => Some(&call.id),
            EventInput::Other { fields, .. } => fields.get("tool_use_id")?.as_str(),
            _ => None,
        }
    }

    /// The object a hook reads. The order of its fields is what people are used to see.
    pub fn to_json(&self) -> Value {
        let Base {
            session_id,
            transcript_path,
            cwd,
            prompt_id,
            permission_mode,
            agent_id,
            agent_type,
            effort,
        } = &self.base;
        let mut fields = Fields::default();
        fields.put("session_id", session_id.as_str());
        fields.put("transcript_path", words(transcript_path));
        fields.put("cwd", words(cwd));
        fields.put_some("prompt_id", prompt_id.as_deref());
        fields.put_some("permission_mode", permission_mode.as_deref());
        fields.put_some("agent_id", agent_id.as_deref());
        fields.put_some("agent_type", agent_type.as_deref());
        fields.put_some("effort", effort.as_ref().map(|level| json!({"level": level})));
        fields.put("hook_event_name", self.event().name());
        self.event.put(&mut fields);
        Value::Object(fields.0)
    }
}

/// What matchers look at, in the object a hook reads.
pub fn subject(event: HookEvent, input: &Value) -> Option<&str> {
    let text = input.get(event.matched_by()?)?.as_str()?;
    match event {
        // People name the file, wherever it is.
        HookEvent::FileChanged => Path::new(text).file_name()?.to_str(),
        _ => Some(text),
    }
}

impl EventInput {
    fn put(&self, fields: &mut Fields) {
        match self {
            Self::PreToolUse { call } => fields.put_call(call),
            Self::PostToolUse { call, response, duration } => {
                fields.put_call(call);
                fields.put("tool_response", response.clone());
                fields.put("duration_ms", milliseconds(*duration));
            }
            Self::PostToolUseFailure { call, error, is_interrupt, duration } => {
                fields.put_call(call);
                fields.put("error", error.as_str());
                fields.put("is_interrupt", *is_interrupt);
                fields.put("duration_ms", milliseconds(*duration));
            }
            Self::PostToolBatch { calls } => {
                let calls = calls.iter().map(|(call, response)| {
                    let mut fields = Fields::default();
                    fields.put_call(call);
                    fields.put("tool_response", response.clone());
                    Value::Object(fields.0)
                });
                fields.put("tool_calls", calls.collect::<Vec<_>>());
            }
            Self::PermissionRequest { tool_name, tool_input, suggestions } => {
                fields.put("tool_name", tool_name.as_str());
                fields.put("tool_input", tool_input.clone());
                fields.put("permission_suggestions", suggestions.clone());
            }
            Self::UserPromptSubmit { prompt } => fields.put("prompt", prompt.as_str()),
            Self::Stop { stop_hook_active, last_assistant_message, background_tasks } => {
                fields.put("stop_hook_active", *stop_hook_active);
                fields.put_some("last_assistant_message", last_assistant_message.as_deref());
                fields.put("background_tasks", background_tasks.clone());
                // Always there for scripts that read it; nothing is done at set times.
                fields.put("session_crons", json!([]));
            }
            Self::SubagentStop {
                stop_hook_active,
                agent_id,
                agent_type,
                agent_transcript_path,
                last_assistant_message,
                background_tasks,
            } => {
                fields.put("stop_hook_active", *stop_hook_active);
                fields.put("agent_id", agent_id.as_str());
                fields.put("agent_transcript_path", words(agent_transcript_path));
                fields.put("agent_type", agent_type.as_str());
                fields.put_some("last_assistant_message", last_assistant_message.as_deref());
                fields.put("background_tasks", background_tasks.clone());
                fields.put("session_crons", json!([]));
            }
            Self::StopFailure { error, error_details, last_assistant_message } => {
                fields.put("error", error.as_str());
                fields.put_some("error_details", error_details.as_deref());
                fields.put_some("last_assistant_message", last_assistant_message.as_deref());
            }
            Self::SessionStart { source, model } => {
                fields.put("source", source.as_str());
                fields.put_some("model", model.as_deref());
            }
            Self::SessionEnd { reason } => fields.put("reason", reason.as_str()),
            Self::SubagentStart { agent_id, agent_type } => {
                fields.put("agent_id", agent_id.as_str());
                fields.put("agent_type", agent_type.as_str());
            }
            Self::PreCompact { trigger, custom_instructions } => {
                fields.put("trigger", trigger.as_str());
                fields.put("custom_instructions", custom_instructions.as_deref());
            }
            Self::PostCompact { trigger, compact_summary } => {
                fields.put("trigger", trigger.as_str());
                fields.put("compact_summary", compact_summary.as_str());
            }
            Self::Notification { message, title, notification_type } => {
                fields.put("message", message.as_str());
                fields.put_some("title", title.as_deref());
                fields.put("notification_type", notification_type.as_str());
            }
            Self::Other { fields: own, .. } => {
                own.iter().for_each(|(name, value)| fields.put(name, value.clone()));
            }
        }
    }
}

#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    fn put_some(&mut self, name: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }

    fn put_call(&mut self, call: &ToolCall) {
        self.put("tool_name", call.name.as_str());
        self.put("tool_input", call.input.clone());
        self.put("tool_use_id", call.id.as_str());
    }
}

fn words(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
