//! stream-json: events as the messages the SDKs read, one JSON object per line.

mod agents; // what sub-agents tell
mod calls; // what takes long
mod context; // what was done to the context
mod fit; // lines that readers can take
mod prompts; // which prompts an answer is to
mod session; // what is told of the session itself

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use pelton::event::{AgentFacts, CommandInfo, Event, Init, Refusal, Refused, Synthetic};
use pelton::history::{Entry, Kind, Piece};
use pelton::plugins::{Plugin, PluginError};
use pelton::tools::ServerState;
use pelton::tools::{AGENT_TOOL, AGENT_TOOL_ALIAS, BackgroundTask};
use pelton::{CLI_VERSION, Prompt, SYNTHETIC_MODEL, fresh_id};
use pelton_model::{Delta, DeltaKind, Effort, Notice, Subscription, World};
use pelton_wire::line::Line;
use pelton_wire::message;
use pelton_wire::usage::Usage;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::outcome::{self, Asks};
use agents::Agent;
use calls::Calls;
use prompts::Prompts;
pub(crate) use session::listed;

/// Readers take lines of a mebibyte at most. A frame that would be longer goes without the tool's own account of its
/// result, which is a courtesy, and if that is not enough, with its longest texts cut; the transcript has all of it.
const FRAME_BYTES_MAX: usize = 1024 * 1024 - 1;

/// About so many bytes of thinking are a token.
const BYTES_PER_TOKEN: u64 = 4;

/// Translates events into frames.
pub(crate) struct Frames {
    session: Uuid,
    partial: bool,
    loop_events: bool,
    replay: bool,
    /// Words of sub-agents are told too, not only their calls and results.
    agent_text: bool,
    /// What hooks did is told too.
    hook_events: bool,
    /// The submission was stated, and is not over.
    is_under_way: bool,
    /// Hooks whose start was told, and whose end was not.
    hooks_started: HashSet<String>,
    /// Hooks whose end was told, and not yet what becomes of it.
    hooks_over: HashSet<String>,
    /// The submission was started by a task in the background.
    by_task: bool,
    world: Arc<dyn World>,
    /// Messages that were taken back and whose successor has not come yet.
    withdrawn: Vec<Uuid>,
    /// What is said next was interrupted.
    cut_off: bool,
    /// What clients know of each sub-agent that runs, by its id.
    agents: HashMap<String, Agent>,
    /// A summary of the conversation is being made.
    compacting: bool,
    /// One stands in this submission, and somebody asked for it.
    summed_up: bool,
    /// When the model was last asked, until its answer begins.
    asked_at: Option<Duration>,
    /// The newest guess of the tokens thought, to tell the difference.
    thought: u64,
    /// The bytes of that thought.
    thought_bytes: u64,
    /// The servers of tools, as they were last stated.
    servers: Vec<String>,
    /// The calls that run.
    calls: Calls,
    /// The prompts of the submission, and whether an answer has named them.
    prompts: Prompts,
    /// How the session asks, as it was last stated.
    asks: Asks,
    /// Results so far.
    results: u64,
    /// Prompts that wait for a submission of their own.
    queued: usize,
    /// What was told last of things that are told when they change.
    standing: Standing,
}

/// What is told when it changes.
#[derive(Default)]
struct Standing {
    /// The commands that the client knows of, once it knows of any.
    commands: Option<Vec<CommandInfo>>,
    /// How much of the subscription is used.
    subscription: Option<Subscription>,
    /// The commands that run in the background.
    tasks: Vec<Arc<BackgroundTask>>,
}

/// What a client can do here that others may not be able to.
pub(crate) const CAPABILITIES: [&str; 4] = [
    "interrupt_receipt_v1",
    "interrupt_cancel_queued_v1",
    "mcp_read_resource_v1",
    "reload_plugins_refuse_if_busy_v1",
];

impl Frames {
    /// `partial` adds the pieces of answers as they arrive.
    pub fn new(session: Uuid, partial: bool, world: Arc<dyn World>) -> Self {
        Self {
            session,
            partial,
            loop_events: false,
            replay: false,
            agent_text: false,
            hook_events: false,
            is_under_way: false,
            hooks_started: HashSet::new(),
            hooks_over: HashSet::new(),
            by_task: false,
            world,
            withdrawn: Vec::new(),
            cut_off: false,
            agents: HashMap::new(),
            compacting: false,
            summed_up: false,
            asked_at: None,
            thought: 0,
            thought_bytes: 0,
            servers: Vec::new(),
            calls: Calls::default(),
            prompts: Prompts::default(),
            asks: Asks::default(),
            results: 0,
            queued: 0,
            standing: Standing::default(),
        }
    }

    /// Adds a frame for everything the loop did, and why.
    #[must_use]
    pub fn with_loop_events(mut self, loop_events: bool) -> Self {
        self.loop_events = loop_events;
        self
    }

    /// Adds the prompts themselves, as they were taken.
    #[must_use]
    pub fn with_replay(mut self, replay: bool) -> Self {
        self.replay = replay;
        self
    }

    /// Adds the words of sub-agents to their calls and results.
    #[must_use]
    pub fn with_agent_text(mut self, agent_text: bool) -> Self {
        self.agent_text = agent_text;
        self
    }

    /// Adds what hooks did.
    #[must_use]
    pub fn with_hook_events(mut self, hook_events: bool) -> Self {
        self.hook_events = hook_events;
        self
    }

    /// What follows was started by a task in the background, or by the user.
    pub fn set_by_task(&mut self, by_task: bool) {
        self.by_task = by_task;
    }

    /// The client says that a person wrote this prompt, which it calls by this id if by any: what answers it says so, too.
    pub fn said_by_human(&mut self, prompt: Prompt, id: Option<Uuid>) -> Prompt {
        let id = id.unwrap_or_else(|| self.id());
        self.prompts.said_by_human(id);
        prompt.with_id(id)
    }

    /// So many prompts wait for a submission of their own.
    pub fn set_queued(&mut self, prompts: usize) {
        self.queued = prompts;
    }

    /// The frames of one event; most have one, some none.
    pub fn of(&mut self, event: &Event) -> Vec<u8> {
        self.calls.heed(event, &*self.world);
        self.prompts.heed(event);
        let mut frames = self.frame(event);
        if self.loop_events {
            frames.extend(self.loop_event(event));
        }
        fit::made_to_fit(frames, FRAME_BYTES_MAX)
    }

    fn frame(&mut self, event: &Event) -> Vec<u8> {
        match event {
            Event::Init(init) => {
                self.session = init.session_id;
                self.asks = Asks::of(&init.model, &init.betas);
                (self.is_under_way, self.summed_up) = (true, false);
                self.servers = init.servers.iter().map(|(name, _)| name.clone()).collect();
                let mut frames = self.commands(&init.commands);
                frames.extend(self.init(init));
                frames
            }
            Event::Cleared { from, to } => Line::new("conversation_reset")
                .field("new_conversation_id", to)
                .field("trigger", "clear")
                .field("timestamp", format!("{:.3}", self.world.now()))
                .field("session_id", from)
                .field("uuid", self.id())
                .finish_line(),
            Event::Requesting => {
                self.asked_at = Some(self.world.monotonic());
                (self.thought, self.thought_bytes) = (0, 0);
                // A client is told of the summary that is being made, not of the request for it.
                if !self.partial || self.compacting {
                    return Vec::new();
                }
                self.system("status").field("status", "requesting").finish_line()
            }
            Event::Started(started) if self.partial => {
                let waited = self.asked_at.take().map(|asked| self.world.monotonic().saturating_sub(asked));
                let (last, all) = self.prompts.unstreamed();
                self.stream_event(&started.raw, |line| {
                    line.field_if("ttft_ms", waited.map(millis))
                        .field_if("user_message_uuid", last)
                        .field_if("user_message_uuids", all)
                })
            }
            Event::Delta(delta) => self.delta(delta),
            Event::Prompt(entry) if self.replay => self.prompt(entry),
            Event::CutOff => {
                self.cut_off = true;
                Vec::new()
            }
            Event::Message(entry) => self.message(entry, None),
            Event::Tombstone(ids) => {
                self.withdrawn.extend(ids);
                Vec::new()
            }
            Event::ModelFallback { from, to, because } => self.model_fallback(from, to, because, None),
            Event::Subscription(used) => self.subscription(used),
            Event::Retry(notice) => self.retry(notice, None),
            // A long wait is no silence.
            Event::Waiting { .. } => Line::new("keep_alive").finish_line(),
            Event::Cut { reason } => self
                .system("informational")
                .field("content", format!("The answer above may be incomplete: {reason}"))
                .field("level", "warning")
                .finish_line(),
            Event::Refused(refused) => self.refused(refused, None),
            Event::Informational { content, prevents_continuation } => self
                .system("informational")
                .field("content", content)
                .field("level", "warning")
                .field("prevent_continuation", prevents_continuation)
                .finish_line(),
            // Behind a summary that was asked for, clients look for what the command says among the user's messages.
            Event::CommandOutput { content } if std::mem::take(&mut self.summed_up) => {
                let words = format!("<local-command-stdout>{content}</local-command-stdout>");
                let message = json!({"role": "user", "content": words});
                let id = self.id();
                self.ends(Line::new("user").field("message", message), id, None, |line| {
                    line.field("isReplay", true)
                })
            }
            Event::CommandOutput { content } => {
                self.system("local_command_output").field("content", content).finish_line()
            }
            Event::Context(told) => self.context(told),
            Event::Refusal(refusal) => self.refusal(refusal),
            Event::Synthetic(synthetic) => self.synthetic(synthetic, None),
            Event::Hook(run) if self.shows_hook(run.event) => self.hook(run),
            Event::Agent(told) => self.agent(told),
            Event::Background(news) => self.background(news),
            Event::ToolUseSummary { summary, calls } => {
                let calls: Vec<&str> = calls.iter().map(|call| &**call).collect();
                Line::new("tool_use_summary")
                    .field("summary", summary)
                    .field("preceding_tool_use_ids", calls)
                    .field("session_id", self.session)
                    .field("uuid", self.id())
                    .finish_line()
            }
            Event::Result(outcome) => {
                let by_human = self.prompts.answered();
                let origin = match (self.by_task, by_human) {
                    (true, _) => Some(json!({"kind": "task-notification"})),
                    (false, true) => Some(json!({"kind": "human"})),
                    (false, false) => None,
                };
                let mut frames = self.nothing_succeeds();
                let (last, all) = self.prompts.all();
                let result = outcome::line(outcome, self.session, self.id(), &self.asks)
                    .field("result_index", self.results)
                    .field("queued_turn_count", self.queued)
                    .field_if("user_message_uuid", last)
                    .field_if("user_message_uuids", all)
                    .field_if("origin", origin);
                self.results += 1;
                self.is_under_way = false;
                frames.extend(result.finish_line());
                frames
            }
            _ => Vec::new(),
        }
    }

    fn init(&self, init: &Init) -> Vec<u8> {
        let server = |((name, state), source): (&(String, ServerState), &&str)| json!({"name": name, "status": state.name(), "source": source});
        let commands: Vec<&str> = init.commands.iter().map(|command| command.name.as_str()).collect();
        let servers: Vec<Value> = init.servers.iter().zip(&init.server_sources).map(server).collect();
        // Clients know the tool that starts agents by its former name.
        let listed =
            |name: &String| if name == AGENT_TOOL { AGENT_TOOL_ALIAS.to_owned() } else { name.clone() };
        let tools: Vec<String> = init.tools.iter().map(listed).collect();
        let plugins: Vec<Value> = init.plugins.iter().map(|plugin| plugin_row(plugin)).collect();
        let errors: Vec<Value> = init.plugin_errors.iter().map(plugin_error).collect();
        let wrong = |(name, why): &(String, String)| json!({"name": name, "error": why});
        let server_errors: Vec<Value> = init.server_errors.iter().map(wrong).collect();
        self.system("init")
            .field("cwd", init.cwd.to_string_lossy())
            .field("tools", tools)
            .field("mcp_servers", servers)
            .field("model", &init.model)
            .field("permissionMode", init.mode.name())
            .field("slash_commands", commands)
            .field("apiKeySource", init.api_key_source)
            .field("claude_code_version", CLI_VERSION)
            .field("output_style", &init.output_style)
            .field("agents", &init.agents)
            .field("skills", &init.skills)
            .field("plugins", &plugins)
            .field("setting_sources", &init.setting_sources)
            .field("fast_mode_state", outcome::fast_mode_state(init.fast_mode))
            .field("capabilities", CAPABILITIES)
            .field_if("effort", init.effort.map(Effort::as_str))
            .field_if("betas", (!init.betas.is_empty()).then_some(&init.betas))
            .field_if("plugin_errors", (!errors.is_empty()).then_some(errors))
            .field_if("mcp_server_errors", (!server_errors.is_empty()).then_some(server_errors))
            .finish_line()
    }

    fn delta(&mut self, delta: &Delta) -> Vec<u8> {
        let mut frames = if self.partial { self.stream_event(&delta.raw, |line| line) } else { Vec::new() };
        if let DeltaKind::Thinking { text, estimated_tokens } = &delta.kind {
            self.thought_bytes += text.len() as u64;
            // Not every server makes a guess. Ours is as rough: it says that something is going on.
            let tokens = estimated_tokens.unwrap_or_else(|| self.thought_bytes.div_ceil(BYTES_PER_TOKEN));
            let more = tokens.saturating_sub(self.thought);
            if more == 0 && estimated_tokens.is_none() {
                return frames;
            }
            self.thought = tokens;
            let thinking = self
                .system("thinking_tokens")
                .field("estimated_tokens", tokens)
                .field("estimated_tokens_delta", more);
            frames.extend(thinking.finish_line());
        }
        frames
    }

    fn stream_event(&self, event: &[u8], more: impl FnOnce(Line) -> Line) -> Vec<u8> {
        if event.is_empty() {
            // An answer that was not streamed has no such events.
            return Vec::new();
        }
        // The frame of every piece of every answer: nothing in it has to be looked at for escapes.
        let (mut session, mut id) = (Uuid::encode_buffer(), Uuid::encode_buffer());
        let line = Line::object()
            .plain("type", "stream_event")
            .raw("event", event)
            .raw("parent_tool_use_id", b"null")
            .plain("session_id", self.session.hyphenated().encode_lower(&mut session))
            .plain("uuid", self.id().hyphenated().encode_lower(&mut id));
        more(line).finish_line()
    }

    /// What the loop did, for those who asked.
    fn loop_event(&self, event: &Event) -> Vec<u8> {
        let Event::Loop(told) = event else { return Vec::new() };
        let line = self.system("loop_event").field("kind", told.kind.name()).field("reason", &told.reason);
        line.field("turn", told.turn).finish_line()
    }

    /// The messages that were taken back and whose successor this is.
    fn superseded(&mut self, by: Option<&AgentFacts>) -> Option<Vec<Uuid>> {
        match by {
            Some(agent) => self.agents.get_mut(&agent.id).map(|agent| std::mem::take(&mut agent.withdrawn)),
            None => Some(std::mem::take(&mut self.withdrawn)),
        }
        .filter(|ids| !ids.is_empty())
    }

    /// Whether what is said now was interrupted.
    fn was_cut_off(&mut self, by: Option<&AgentFacts>) -> bool {
        match by {
            Some(agent) => {
                self.agents.get_mut(&agent.id).is_some_and(|agent| std::mem::take(&mut agent.cut_off))
            }
            None => std::mem::take(&mut self.cut_off),
        }
    }

    /// Messages were taken back, and no other came in their place.
    fn nothing_succeeds(&mut self) -> Vec<u8> {
        // An agent that was not seen to end says nothing more either.
        let agents = std::mem::take(&mut self.agents).into_values().flat_map(|agent| agent.withdrawn);
        let withdrawn: Vec<Uuid> = self.withdrawn.drain(..).chain(agents).collect();
        if withdrawn.is_empty() {
            return Vec::new();
        }
        let content = "An answer above was taken back, and none came in its place.";
        self.taken_back(content, withdrawn).finish_line()
    }

    /// Names messages that were taken back where no message that is told takes their place.
    fn taken_back(&self, content: &str, withdrawn: Vec<Uuid>) -> Line {
        self.system("informational")
            .field("content", content)
            .field("level", "warning")
            .field("supersedes", withdrawn)
    }

    /// A call that was refused without anybody being asked.
    fn refused(&self, refused: &Refused, by: Option<&AgentFacts>) -> Vec<u8> {
        self.system("permission_denied")
            .field("tool_name", &*refused.tool)
            .field("tool_use_id", &*refused.call)
            .field_if("agent_id", by.map(|agent| &agent.id))
            .field("decision_reason_type", refused.cause)
            .field("decision_reason", &refused.message)
            .field("message", &refused.message)
            .finish_line()
    }

    fn refusal(&self, refusal: &Refusal) -> Vec<u8> {
        let Refusal { model, request_id, category, explanation, prompt, .. } = refusal;
        let why = explanation.as_deref().or(category.as_deref());
        let content = match why {
            Some(why) => format!("{model} declined to answer: {why}"),
            None => format!("{model} declined to answer"),
        };
        self.system("model_refusal_no_fallback")
            .field("original_model", model)
            .field("request_id", request_id)
            .field("api_refusal_category", category)
            .field("refused_user_message_uuid", prompt)
            .field("content", content)
            .finish_line()
    }

    fn message(&mut self, entry: &Entry, by: Option<&AgentFacts>) -> Vec<u8> {
        match &entry.kind {
            Kind::Assistant { origin, piece } => {
                let withdrawn = self.superseded(by);
                let cut_off = self.was_cut_off(by);
                let (last, all) = if by.is_none() { self.prompts.unnamed() } else { (None, None) };
                let meta = match piece {
                    Piece::Call { id, name } => calls::meta(id, name, &self.servers),
                    _ => None,
                };
                let head = message::Assistant {
                    id: &origin.message_id,
                    model: &origin.model,
                    stop_reason: None,
                    usage: &origin.usage,
                };
                self.ends(
                    Line::new("assistant").raw("message", &message::assistant(&head, &entry.json)),
                    entry.id,
                    by,
                    |line| {
                        line.field_if("request_id", origin.request_id.as_deref())
                            .field_if("tool_use_meta", meta)
                            .field("timestamp", format!("{:.3}", entry.at))
                            .field_if("user_message_uuid", last)
                            .field_if("user_message_uuids", all)
                            .field_if("supersedes", withdrawn)
                            .field_if("aborted", cut_off.then_some(true))
                    },
                )
            }
            Kind::ToolResult { .. } => {
                let frame = |detail| {
                    self.ends(
                        Line::new("user").raw("message", &message::user(&entry.json)),
                        entry.id,
                        by,
                        |line| {
                            line.field("timestamp", format!("{:.3}", entry.at))
                                .raw_if("tool_use_result", detail)
                        },
                    )
                };
                let whole = frame(entry.detail.as_deref());
                if whole.len() <= FRAME_BYTES_MAX { whole } else { frame(None) }
            }
            Kind::Prompt { meta } => {
                // Words of the harness: after them an answer may never come.
                let withdrawn = self.superseded(by);
                self.ends(
                    Line::new("user").raw("message", &message::user(&entry.json)),
                    entry.id,
                    by,
                    |line| {
                        line.field("timestamp", format!("{:.3}", entry.at))
                            .field_if("isSynthetic", meta.then_some(true))
                            .field_if("supersedes", withdrawn)
                    },
                )
            }
        }
    }

    fn prompt(&self, entry: &Entry) -> Vec<u8> {
        self.ends(Line::new("user").raw("message", &message::user(&entry.json)), entry.id, None, |line| {
            line.field("timestamp", format!("{:.3}", entry.at)).field("isReplay", true)
        })
    }

    fn model_fallback(&self, from: &str, to: &str, because: &str, by: Option<&AgentFacts>) -> Vec<u8> {
        self.system("model_fallback")
            .field("trigger", because)
            .field("original_model", from)
            .field("fallback_model", to)
            .field("content", format!("{from} does not answer; switched to {to} for this task"))
            .field_if("parent_tool_use_id", by.map(|agent| &*agent.call))
            .finish_line()
    }

    fn retry(&self, notice: &Notice, by: Option<&AgentFacts>) -> Vec<u8> {
        self.system("api_retry")
            .field("attempt", notice.attempt)
            .field("max_retries", notice.retries_max)
            .field("retry_delay_ms", notice.wait.as_secs_f64() * 1000.0)
            .field("error_status", notice.status)
            .field("error", notice.kind.wire_name())
            .field_if("parent_tool_use_id", by.map(|agent| &*agent.call))
            .finish_line()
    }

    fn synthetic(&mut self, synthetic: &Synthetic, by: Option<&AgentFacts>) -> Vec<u8> {
        let withdrawn = self.superseded(by);
        let id = synthetic.id.to_string();
        let head = message::Assistant {
            id: &id,
            model: SYNTHETIC_MODEL,
            stop_reason: Some("stop_sequence"),
            usage: &Usage::default(),
        };
        self.ends(
            Line::new("assistant").raw("message", &message::assistant(&head, &synthetic.json)),
            synthetic.id,
            by,
            |line| line.field_if("error", synthetic.error).field_if("supersedes", withdrawn),
        )
    }

    fn system(&self, subtype: &str) -> Line {
        Line::new("system")
            .field("subtype", subtype)
            .field("session_id", self.session)
            .field("uuid", self.id())
    }

    fn ends(
        &self,
        line: Line,
        id: Uuid,
        by: Option<&AgentFacts>,
        more: impl FnOnce(Line) -> Line,
    ) -> Vec<u8> {
        let line = line
            .field("parent_tool_use_id", by.map(|agent| &*agent.call))
            .field("session_id", self.session)
            .field("uuid", id)
            .field_if("agent_id", by.map(|agent| &agent.id))
            .field_if("subagent_type", by.map(|agent| &agent.agent_type))
            .field_if("task_description", by.map(|agent| &agent.description));
        more(line).finish_line()
    }

    fn id(&self) -> Uuid {
        fresh_id(self.world.as_ref())
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A plugin, as clients are told of it.
pub(crate) fn plugin_row(plugin: &Plugin) -> Value {
    let mut row = json!({"name": plugin.name, "path": plugin.root.to_string_lossy()});
    if let Some(version) = &plugin.version {
        row["version"] = json!(version);
    }
    row
}

/// What is wrong with one, as clients are told of it.
fn plugin_error(error: &PluginError) -> Value {
    let mut row =
        json!({"plugin": error.plugin, "type": error.problem.kind, "message": error.problem.message});
    if let Some(path) = &error.path {
        row["path"] = json!(path.to_string_lossy());
    }
    row
}

#[cfg(test)]
mod tests {
    use pelton_model::RealWorld;

    use super::*;

    #[test]
    fn a_long_wait_sends_a_sign_of_life() {
        let mut frames = Frames::new(Uuid::nil(), false, Arc::new(RealWorld::new()));
        let frame = frames.of(&Event::Waiting { left: Duration::from_secs(60) });
        assert_eq!(frame, b"{\"type\":\"keep_alive\"}\n");
    }
}
