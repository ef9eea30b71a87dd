//! What sub-agents tell: their messages name the call that started them, and each is a task with a beginning and an
//! end, like each command in the background.

use std::path::Path;
use std::sync::Arc;

use pelton::event::{AgentEnd, AgentEvent, AgentFacts, AgentNews, AgentWork, Event, LoopEvent};
use pelton::history::{Entry, Kind, Piece};
use pelton::tools::{BackgroundEnd, BackgroundNews, BackgroundTask};
use pelton_wire::line::Line;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Frames, millis};

/// What clients know of a sub-agent's answers.
#[derive(Default)]
pub(super) struct Agent {
    /// The frames of the newest answer that were sent. What is not told need not be taken back.
    newest: Vec<Uuid>,
    /// Those that were taken back and whose successor has not come yet.
    pub withdrawn: Vec<Uuid>,
    /// What it says next was interrupted.
    pub cut_off: bool,
}

impl Agent {
    fn told(&mut self, entry: &Entry) {
        match entry.kind {
            Kind::Assistant { .. } => self.newest.push(entry.id),
            // An answer whose calls have results stays.
            _ => self.newest.clear(),
        }
    }

    fn takes_back(&mut self, ids: &[Uuid]) {
        self.withdrawn.extend(self.newest.extract_if(.., |id| ids.contains(id)));
    }
}

impl Frames {
    /// The frames of something that happened to a sub-agent.
    pub(super) fn agent(&mut self, told: &AgentEvent) -> Vec<u8> {
        let agent = &*told.agent;
        match &told.news {
            AgentNews::Started => self
                .task("task_started", agent)
                .field("description", &agent.description)
                .field("subagent_type", &agent.agent_type)
                .field("is_backgrounded", agent.beside)
                .field("spawn_depth", agent.depth)
                .field_if("parent_task_id", agent.parent.as_ref())
                .field("task_type", "local_agent")
                .field("prompt", &agent.prompt)
                .finish_line(),
            AgentNews::Progress { tool, done } => self
                .task("task_progress", agent)
                .field("description", format!("Using {tool}"))
                .field("subagent_type", &agent.agent_type)
                .field("usage", usage(done))
                .field("last_tool_name", &**tool)
                .finish_line(),
            AgentNews::Doing { summary, done } => self
                .task("task_progress", agent)
                .field("description", &agent.description)
                .field("subagent_type", &agent.agent_type)
                .field("usage", usage(done))
                .field("summary", summary)
                .finish_line(),
            AgentNews::Beside(task) => {
                self.standing.tasks.push(Arc::clone(task));
                let mut frames = Vec::new();
                if !agent.beside {
                    let patch = json!({"is_backgrounded": true});
                    let updated =
                        self.system("task_updated").field("task_id", &agent.id).field("patch", patch);
                    frames.extend(updated.finish_line());
                }
                frames.extend(self.tasks());
                frames
            }
            AgentNews::Ended { end, done, output } => {
                let mut frames = self.never_succeeded(agent);
                self.agents.remove(&agent.id);
                self.standing.tasks.retain(|task| task.id != agent.id);
                let (status, noticed) = match end {
                    AgentEnd::Completed => ("completed", "completed"),
                    AgentEnd::Stopped => ("killed", "stopped"),
                    _ => ("failed", "failed"),
                };
                let patch = json!({"status": status, "end_time": self.world.now().as_millisecond()});
                let updated = self.system("task_updated").field("task_id", &agent.id).field("patch", patch);
                frames.extend(updated.finish_line());
                let notice = self
                    .task("task_notification", agent)
                    .field("status", noticed)
                    .field("output_file", output.as_deref().unwrap_or(Path::new("")).to_string_lossy())
                    .field("summary", &agent.description)
                    .field("usage", usage(done));
                frames.extend(notice.finish_line());
                if output.is_some() {
                    frames.extend(self.tasks());
                }
                frames
            }
            AgentNews::Told(event) => self.told_by_agent(agent, event),
            _ => Vec::new(),
        }
    }

    /// What an agent took back and no frame of it has named since: its last words are told to nobody, unless they are asked for.
    fn never_succeeded(&mut self, agent: &AgentFacts) -> Vec<u8> {
        let Some(withdrawn) = self.superseded(Some(agent)) else { return Vec::new() };
        let content = "An answer of this agent was taken back; the next one was not told.";
        self.taken_back(content, withdrawn)
            .field("tool_use_id", &*agent.call)
            .field("parent_tool_use_id", &*agent.call)
            .finish_line()
    }

    /// The frames of something that happened to a command in the background.
    pub(super) fn background(&mut self, news: &BackgroundNews) -> Vec<u8> {
        match news {
            BackgroundNews::Started(started) => self.standing.tasks.push(Arc::clone(started)),
            BackgroundNews::Ended(ended, _) => self.standing.tasks.retain(|task| task.id != ended.id),
            _ => {}
        }
        let mut frames = self.background_task(news);
        frames.extend(self.tasks());
        frames
    }

    fn background_task(&self, news: &BackgroundNews) -> Vec<u8> {
        let task = |subtype: &str, task: &BackgroundTask| {
            self.system(subtype).field("task_id", &task.id).field("tool_use_id", &*task.call)
        };
        match news {
            BackgroundNews::Started(started) => task("task_started", started)
                .field("description", &started.description)
                .field("is_backgrounded", true)
                .field("task_type", "local_bash")
                .finish_line(),
            BackgroundNews::Ended(ended, end) => {
                let (status, noticed) = match end {
                    BackgroundEnd::Exited(0) => ("completed", "completed"),
                    BackgroundEnd::Stopped => ("killed", "stopped"),
                    _ => ("failed", "failed"),
                };
                let patch = json!({"status": status, "end_time": self.world.now().as_millisecond()});
                let updated = self.system("task_updated").field("task_id", &ended.id).field("patch", patch);
                let mut frames = updated.finish_line();
                let notice = task("task_notification", ended)
                    .field("status", noticed)
                    .field("output_file", ended.output.to_string_lossy())
                    .field("summary", format!("{}: {}", ended.description, end.words()));
                frames.extend(notice.finish_line());
                frames
            }
            _ => Vec::new(),
        }
    }

    fn told_by_agent(&mut self, agent: &AgentFacts, event: &Event) -> Vec<u8> {
        match event {
            Event::Prompt(entry) => self.message(entry, Some(agent)),
            Event::Message(entry) if self.agent_text || is_call_or_result(entry) => {
                self.agents.entry(agent.id.clone()).or_default().told(entry);
                self.message(entry, Some(agent))
            }
            Event::CutOff => {
                self.agents.entry(agent.id.clone()).or_default().cut_off = true;
                Vec::new()
            }
            Event::Synthetic(synthetic) => self.synthetic(synthetic, Some(agent)),
            Event::Tombstone(ids) => {
                if let Some(told) = self.agents.get_mut(&agent.id) {
                    told.takes_back(ids);
                }
                Vec::new()
            }
            Event::Refused(refused) => self.refused(refused, Some(agent)),
            Event::Retry(notice) => self.retry(notice, Some(agent)),
            Event::Hook(run) if self.hook_events => self.hook(run),
            Event::ModelFallback { from, to, because } => self.model_fallback(from, to, because, Some(agent)),
            Event::Loop(told) => self.agents_loop_event(agent, told),
            _ => Vec::new(),
        }
    }

    fn agents_loop_event(&self, agent: &AgentFacts, told: &LoopEvent) -> Vec<u8> {
        if !self.loop_events {
            return Vec::new();
        }
        self.system("loop_event")
            .field("kind", told.kind.name())
            .field("reason", &told.reason)
            .field("turn", told.turn)
            .field("parent_tool_use_id", &*agent.call)
            .finish_line()
    }

    fn task(&self, subtype: &str, agent: &AgentFacts) -> Line {
        self.system(subtype).field("task_id", &agent.id).field("tool_use_id", &*agent.call)
    }
}

fn usage(done: &AgentWork) -> Value {
    json!({"total_tokens": done.tokens, "tool_uses": done.tool_calls, "duration_ms": millis(done.duration)})
}

fn is_call_or_result(entry: &Entry) -> bool {
    matches!(entry.kind, Kind::Assistant { piece: Piece::Call { .. }, .. } | Kind::ToolResult { .. })
}
