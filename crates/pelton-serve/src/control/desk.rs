//! What is said and written while a session lasts, besides what its submissions tell.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{AbortHandle, Abortable, BoxFuture};
use futures::stream::{FuturesOrdered, FuturesUnordered, StreamExt};
use pelton::event::Event;
use pelton::hooks::HookNote;
use pelton::permission::Mode;
use pelton::{Priority, Prompt, QueueError, Wait};
use pelton_mcp::Server;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::client::{Client, as_line};
use super::limits::{LINE_BYTES_MAX, NOTES_WAITING_MAX, REQUESTS_OPEN_MAX};
use super::lines::Incoming;
use super::mirror::{Mirror, Mirrored};
use super::outbox::Outbox;
use super::plugins::IS_BUSY;
use super::requests::{Handles, Served, SettingsHome};
use super::said::{self, Request, Said, UserLine};
use super::servers::ServersNamed;
use crate::debug::DebugLog;
use crate::frames::Frames;

/// How a session is shown to its client, and what the client may do.
///
/// See [`converse()`](super::converse()).
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ConverseOptions {
    /// Pieces of answers as they arrive.
    pub partial: bool,
    /// What the loop did, and why.
    pub loop_events: bool,
    /// The prompts themselves, as they were taken.
    pub replay: bool,
    /// Words of sub-agents, not only their calls and results.
    pub agent_text: bool,
    /// What hooks did.
    pub hook_events: bool,
    /// Whether it is told that the session works or waits.
    pub state_frames: StateFrames,
    /// Who decides about calls that no rule decides about.
    pub who_decides: WhoDecides,
    /// Servers inside the client that the command line names.
    pub client_servers: Vec<String>,
    /// Servers outside of the client.
    pub servers: Vec<Arc<Server>>,
    /// What the client may name as servers while the session runs; `None` for everything that needs nothing filled in.
    pub servers_named: Option<ServersNamed>,
    /// The first request does not wait for servers that were named for this run: they come when they come.
    pub asks_without_servers: bool,
    /// No model is asked what the user may want to say next, whatever the client says.
    pub suggestions_off: bool,
    /// No model is asked what agents are doing, whatever the client says.
    pub agent_summaries_off: bool,
    /// The client may switch all permissions off.
    pub may_bypass: bool,
    /// The client may take files back to what they were.
    pub may_rewind: bool,
    /// The agent the session works as.
    pub agent: Option<String>,
    /// Every line of the session's record is told, too.
    pub mirror: bool,
    /// What the session is called.
    pub title: Option<String>,
    /// Time that commands in the background have to end by themselves when the client has nothing more to say.
    pub background_patience: Duration,
    /// The same for agents; `None`: until they end.
    pub agent_patience: Option<Duration>,
    /// How long the session waits for its next prompt when it has had one; `None`: as long as the client is there.
    pub idle_max: Option<Duration>,
    /// The process, for clients that look after it.
    pub pid: u32,
    /// Where what happens inside is noted, if it is.
    pub log: Option<DebugLog>,
    /// The process waited for a claim, and for how long: the first request is that, with the client's first words in it.
    pub parked: Option<Duration>,
    /// Where the files of the session's settings are, if the client may know and write to them.
    pub home: Option<Arc<dyn SettingsHome>>,
}

/// Whether a client is told that the session works or waits.
///
/// See [`ConverseOptions`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StateFrames {
    /// No.
    #[default]
    None,
    /// Yes, and the frames say that they are for the client's library alone.
    ForTheHost,
    /// Yes.
    ForEveryone,
}

/// Who decides about calls that no rule decides about.
///
/// See [`ConverseOptions`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum WhoDecides {
    /// Nobody: they are refused.
    #[default]
    Nobody,
    /// The client.
    Client,
    /// A tool of the client's, by the name the model would call it.
    Tool(String),
}

/// What there is to do after something was heard.
pub(super) enum Heard {
    /// Nothing more.
    Nothing,
    /// A prompt came.
    User(UserLine),
    /// The client said its first words.
    Initialize(Request),
    /// The running submission is to end.
    Interrupt,
    /// The client has nothing more to say.
    End,
    /// The client cannot be understood.
    Fault(String),
}

pub(super) struct Desk<'a> {
    pub out: Outbox<'a>,
    pub frames: Frames,
    pub client: Client,
    incoming: mpsc::Receiver<Incoming>,
    /// The client may still say something.
    pub is_open: bool,
    /// Requests that are worked on, and how to give them up.
    chores: FuturesUnordered<Abortable<BoxFuture<'static, Done>>>,
    open_requests: HashMap<String, AbortHandle>,
    /// Agents that an interrupt ends, until they are gone.
    dismissing: Option<BoxFuture<'static, ()>>,
    /// Prompts on their way into the queue.
    adding: FuturesOrdered<BoxFuture<'static, Result<(), QueueError>>>,
    /// Words that start no submission and wait for the end of one.
    pub notes: Vec<Prompt>,
    state_frames: StateFrames,
    state: &'static str,
    /// What is written to the session's record, if that is told.
    pub mirror: Option<Mirror>,
    log: Option<DebugLog>,
    /// The hooks that the client brought with its first words.
    pub hooks: Option<Value>,
}

/// A request that is answered.
struct Done {
    id: String,
    answer: Result<Value, String>,
}

impl<'a> Desk<'a> {
    pub fn new(
        incoming: mpsc::Receiver<Incoming>,
        client: Client,
        frames: Frames,
        out: Outbox<'a>,
        state_frames: StateFrames,
        log: Option<DebugLog>,
    ) -> Self {
        Self {
            out,
            frames,
            client,
            incoming,
            is_open: true,
            chores: FuturesUnordered::new(),
            open_requests: HashMap::new(),
            dismissing: None,
            adding: FuturesOrdered::new(),
            notes: Vec::new(),
            state_frames,
            state: "idle",
            mirror: None,
            log,
            hooks: None,
        }
    }

    /// The next line of the client. What goes on beside it, goes on. May be dropped and asked again.
    pub async fn hear(&mut self, handles: Option<&Handles>) -> Heard {
        loop {
            let listens = self.is_open && self.out.takes_replies() && self.chores.len() < REQUESTS_OPEN_MAX;
            tokio::select! {
                biased;
                () = self.out.advance(), if self.out.is_waiting() => {}
                Some(done) = self.chores.next(), if !self.chores.is_empty() => {
                    // One that was given up has no answer.
                    if let Ok(Done { id, answer }) = done {
                        self.open_requests.remove(&id);
                        self.reply(&id, answer);
                    }
                    // Nothing more is waited for here: whoever listens has to see whether that was all.
                    if !self.is_open && self.chores.is_empty() {
                        return Heard::Nothing;
                    }
                }
                () = until_gone(&mut self.dismissing), if self.dismissing.is_some() => {
                    self.dismissing = None;
                    return Heard::Nothing;
                }
                Some(added) = self.adding.next(), if !self.adding.is_empty() => {
                    if let Err(error) = added {
                        self.tell_problem(&format!("A prompt was not taken: {error}"));
                    }
                    return Heard::Nothing;
                }
                came = self.incoming.recv(), if listens => return self.take(came, handles),
                else => return std::future::pending().await,
            }
        }
    }

    /// Waits for agents that an interrupt ends: the model is told of them with what is said next.
    pub async fn agents_gone(&mut self) {
        until_gone(&mut self.dismissing).await;
        self.dismissing = None;
    }

    /// Whether something is still on its way into the queue.
    pub fn is_adding(&self) -> bool {
        !self.adding.is_empty()
    }

    /// Whether requests are worked on.
    pub fn has_chores(&self) -> bool {
        !self.chores.is_empty()
    }

    /// A prompt that waits until the model can read it.
    pub fn queue(&mut self, prompt: Prompt, priority: Option<Priority>, handles: &Handles) {
        let queue = handles.queue.clone();
        let adding = async move { queue.add(prompt, priority.unwrap_or_default()).await.map(|_| ()) };
        self.adding.push_back(Box::pin(adding));
    }

    /// Words that wait for the end of the submission.
    pub fn keep_note(&mut self, prompt: Prompt) {
        if self.notes.len() < NOTES_WAITING_MAX {
            self.notes.push(prompt);
        } else {
            self.tell_problem("A message was not taken: too many wait already");
        }
    }

    /// Something happened in the session.
    pub fn tell(&mut self, event: &Event) {
        if let Some(log) = &self.log {
            log.event(event);
        }
        // What is recorded before it is told is told in the same order.
        self.tell_record();
        let frames = self.frames.of(event);
        self.out.push(frames);
    }

    /// Tells what hooks do that still run.
    pub fn tell_hooks(&mut self, notes: &[HookNote]) {
        for note in notes {
            let frames = self.frames.hook_note(note);
            self.out.push(frames);
        }
    }

    /// Tells what was added to the session's record.
    pub fn tell_record(&mut self) {
        for Mirrored { file, lines } in self.mirror.as_ref().map(Mirror::take).unwrap_or_default() {
            let frames = self.frames.mirror(&file, &lines);
            self.out.push(frames);
        }
    }

    /// Tells that the session works, or waits, if that is new and wanted.
    pub fn tell_state(&mut self, state: &'static str) {
        if self.state == state || self.state_frames == StateFrames::None {
            return;
        }
        self.state = state;
        let marked = self.state_frames == StateFrames::ForTheHost;
        let frame = self.frames.state(state, marked);
        self.out.push(frame);
    }

    /// The state of a submission that runs.
    pub fn tell_waits(&mut self, handles: &Handles) {
        let waits = |wait: &Wait| matches!(wait, Wait::Permission { .. } | Wait::Elicitation { .. });
        let asks = handles.status.borrow().waits.iter().any(waits);
        self.tell_state(if asks { "requires_action" } else { "running" });
    }

    /// Something the client should know and that is no part of the conversation.
    pub fn tell_problem(&mut self, words: &str) {
        let frame = self.frames.informational(words);
        self.out.push(frame);
    }

    /// A result without a submission: why there is none.
    pub fn tell_failure(&mut self, words: &str) {
        let frame = self.frames.failure(words);
        self.out.push(frame);
    }

    pub fn tell_suggestion(&mut self, words: &str) {
        let frame = self.frames.suggestion(words);
        self.out.push(frame);
    }

    /// The client says its first words again: it is told what it may have missed.
    pub fn answer_again(&mut self, request: &Request, about: &Value) {
        self.introduce(request, about);
        let tasks = self.frames.tasks();
        self.out.push(tasks);
    }

    /// The client says its first words.
    pub fn introduce(&mut self, request: &Request, about: &Value) {
        let mut about = about.clone();
        if let Some(hooks) = request.body.get("hooks").filter(|hooks| !hooks.is_null()) {
            // They are called by the names they were given first.
            about["hooks_applied"] = json!(self.hooks.as_ref() == Some(hooks));
        }
        self.note(&format!("{} is answered", request.id));
        // A client that joins learns of questions that another one left open.
        let response = json!({
            "subtype": "success",
            "request_id": request.id,
            "response": about,
            "pending_permission_requests": self.client.unanswered("can_use_tool"),
            "pending_user_dialog_requests": [],
            "pending_elicitation_requests": self.client.unanswered("elicitation"),
        });
        self.out.push(as_line(&json!({"type": "control_response", "response": response})));
    }

    pub fn tell_mode(&mut self, mode: Mode) {
        let frame = self.frames.mode(mode);
        self.out.push(frame);
    }

    /// A question for the client.
    pub fn put_question(&mut self, question: Vec<u8>) {
        if self.log.is_some()
            && let Ok(asked) = serde_json::from_slice::<Value>(&question)
        {
            let subtype = asked["request"]["subtype"].as_str().unwrap_or("something");
            self.note(&format!("the client is asked: {subtype} {}", asked["request_id"]));
        }
        self.out.push(question);
    }

    fn note(&self, words: &str) {
        if let Some(log) = &self.log {
            log.note("control", words);
        }
    }

    pub fn reply(&mut self, id: &str, answer: Result<Value, String>) {
        self.note(&format!("{id} is answered{}", if answer.is_ok() { "" } else { " with an error" }));
        let response = match answer {
            Ok(response) => json!({"subtype": "success", "request_id": id, "response": response}),
            Err(error) => refusal(id, &error),
        };
        self.out.push(as_line(&json!({"type": "control_response", "response": response})));
    }

    fn take(&mut self, came: Option<Incoming>, handles: Option<&Handles>) -> Heard {
        let line = match came {
            Some(Incoming::Line(line)) => line,
            Some(Incoming::TooLong) => {
                let most = LINE_BYTES_MAX / (1024 * 1024);
                return self.fault(format!("a line on standard input is longer than {most} MiB"));
            }
            Some(Incoming::Failed(error)) => {
                return self.fault(format!("cannot read standard input: {error}"));
            }
            None => {
                self.is_open = false;
                self.client.is_gone();
                return Heard::End;
            }
        };
        match said::read(&line) {
            Err(garbled) => self.fault(garbled.0),
            Ok(Said::Nothing) => Heard::Nothing,
            Ok(Said::User(line)) => Heard::User(line),
            Ok(Said::Response { id, answer }) => {
                self.note(&format!(
                    "the client answers {id}{}",
                    if answer.is_ok() { "" } else { " with an error" }
                ));
                self.client.answered(&id, answer);
                Heard::Nothing
            }
            Ok(Said::Nameless { id }) => {
                let error = "request_id is missing, or no text";
                let response = json!({"subtype": "error", "request_id": id, "error": error});
                self.out.push(as_line(&json!({"type": "control_response", "response": response})));
                Heard::Nothing
            }
            Ok(Said::Cancel { id }) => {
                if let Some(open) = self.open_requests.remove(&id) {
                    open.abort();
                }
                Heard::Nothing
            }
            Ok(Said::Request(request)) => {
                self.note(&format!("the client asks: {} {}", request.subtype, request.id));
                match handles {
                    Some(handles) if request.subtype != "initialize" => self.serve(&request, handles),
                    _ => Heard::Initialize(request),
                }
            }
        }
    }

    /// Works on a request of the client's.
    pub fn serve(&mut self, request: &Request, handles: &Handles) -> Heard {
        match handles.serve(request) {
            Served::Now(answer) => self.reply(&request.id, answer),
            Served::Later(work) => {
                let id = request.id.clone();
                let (abort, registration) = AbortHandle::new_pair();
                self.open_requests.insert(id.clone(), abort);
                let work: BoxFuture<'static, Done> = Box::pin(async move { Done { id, answer: work.await } });
                self.chores.push(Abortable::new(work, registration));
            }
            Served::Interrupt(answer) => {
                // The client learns that it was heard before it sees what comes of it.
                self.reply(&request.id, Ok(answer));
                handles.interrupter.interrupt();
                if !handles.spares_agents {
                    self.dismissing = Some(Box::pin(handles.tasks.dismiss_agents()));
                }
                return Heard::Interrupt;
            }
            Served::End => {
                self.reply(&request.id, Ok(json!({})));
                self.is_open = false;
                self.client.is_gone();
                return Heard::End;
            }
            Served::Mode(mode) => {
                self.reply(&request.id, Ok(json!({"mode": mode.name()})));
                self.tell_mode(mode);
            }
        }
        Heard::Nothing
    }

    fn fault(&mut self, words: String) -> Heard {
        self.is_open = false;
        self.client.is_gone();
        Heard::Fault(words)
    }
}

async fn until_gone(dismissing: &mut Option<BoxFuture<'static, ()>>) {
    if let Some(dismissing) = dismissing {
        dismissing.await;
    }
}

/// The frames of a session that is shown so.
pub(super) fn frames(
    options: &ConverseOptions,
    agent_text: bool,
    session: uuid::Uuid,
    world: Arc<dyn pelton_model::World>,
) -> Frames {
    Frames::new(session, options.partial, world)
        .with_loop_events(options.loop_events)
        .with_replay(options.replay)
        .with_agent_text(options.agent_text || agent_text)
        .with_hook_events(options.hook_events)
}

/// An error as an answer. Where programs act on what it is, it begins with a word for that, and they are told the word alone, too.
fn refusal(id: &str, error: &str) -> Value {
    let mut answer = json!({"subtype": "error", "request_id": id, "error": error});
    if error.starts_with(IS_BUSY) {
        answer["error_code"] = json!(IS_BUSY);
    }
    answer
}
