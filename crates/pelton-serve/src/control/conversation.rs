//! The session, from its first line to its last.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::StreamExt;
use pelton::event::Event;
use pelton::permission::{Change, Mode, Questions};
use pelton::tools::ToolServer;
use pelton::{EndReason, Engine, Options, Outcome, Prompt, StartError};
use pelton_mcp::{Joining, Server, Surroundings};
use pelton_model::stream::Queued;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::client::Client;
use super::desk::{ConverseOptions, Desk, Heard, WhoDecides, frames};
use super::elicit::ElicitFromClient;
use super::initialize::{self, Brought};
use super::limits::SUGGESTION_TIME_MAX;
use super::lines;
use super::mirror::Mirror;
use super::outbox::Outbox;
use super::permission::{AskClient, decided_by};
use super::requests::Handles;
use super::said::{Request, UserLine};
use super::servers::{Servers, ServersNamed};
use crate::frames::{listed, plugin_row};
use crate::out::Streams;
use crate::print::after;

/// How a conversation ended.
///
/// See [`converse()`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Ended {
    /// What the last submission came to; `None` if there was none.
    pub outcome: Option<Arc<Outcome>>,
    /// The last result the client was told was an error.
    pub is_error: bool,
    /// The client could not be understood: why.
    pub fault: Option<String>,
    /// The session.
    pub session: Option<Uuid>,
    /// The file it is recorded in, if it is.
    pub transcript: Option<PathBuf>,
}

/// Talks to a client until it has nothing more to say and everything it asked for is done. The conversation also ends when
/// [`Options::cancel`] is set, or nobody reads any more; what is said until then is recorded.
///
/// ```
/// # use pelton_testkit::{Script, text};
/// use pelton::Options;
/// use pelton_model::{Auth, Endpoint, Secret};
/// use pelton_serve::{ConverseOptions, Streams, converse};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let model = Script::new().reply([text("Four.")]).start().await?;
/// let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// let lines = br#"{"type":"user","message":{"role":"user","content":"What is two and two?"}}"#;
/// let streams = Streams::apart(std::io::sink(), std::io::sink());
/// let ended = converse(Options::new("/", endpoint), &ConverseOptions::default(), &lines[..], &streams).await?;
/// assert_eq!(ended.outcome.map(|outcome| outcome.text.clone()).as_deref(), Some("Four."));
/// # Ok(())
/// # }
/// ```
pub async fn converse(
    mut options: Options,
    shown: &ConverseOptions,
    input: impl std::io::Read + Send + 'static,
    streams: &Streams,
) -> Result<Ended, StartError> {
    let (client, questions) = Client::new(Arc::clone(&options.world));
    let nobody = Uuid::nil();
    let mut desk = Desk::new(
        lines::read(input),
        client,
        frames(shown, false, nobody, Arc::clone(&options.world)),
        Outbox::new(streams),
        shown.state_frames,
        shown.log.clone(),
    );
    if shown.mirror {
        let mirror = Mirror::of(Arc::clone(&options.disk));
        options.disk = Arc::new(mirror.clone());
        desk.mirror = Some(mirror);
    }
    let cancel = options.cancel.clone();
    let first = match first_words(&mut desk, &cancel, streams).await {
        Ok(first) => first,
        Err(fault) => {
            desk.out.finish().await;
            return Ok(Ended { outcome: None, is_error: false, fault, session: None, transcript: None });
        }
    };
    let begun = Conversation::begin(options, shown, first, desk, questions, streams);
    let Some(mut conversation) = Box::pin(begun).await? else {
        return Ok(Ended { outcome: None, is_error: false, fault: None, session: None, transcript: None });
    };
    conversation.last_until_the_end().await;
    Ok(Box::pin(conversation.close(shown.background_patience)).await)
}

/// What a client begins with.
enum First {
    Request(Request),
    User(UserLine),
}

/// Waits for words that need a session. An error means that there are none, and why.
async fn first_words(
    desk: &mut Desk<'_>,
    cancel: &CancellationToken,
    streams: &Streams,
) -> Result<First, Option<String>> {
    loop {
        let heard = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(None),
            () = streams.closed() => return Err(None),
            heard = desk.hear(None) => heard,
        };
        match heard {
            Heard::Initialize(request) => return Ok(First::Request(request)),
            Heard::User(line) => return Ok(First::User(line)),
            Heard::End => return Err(None),
            Heard::Fault(words) => return Err(Some(words)),
            Heard::Nothing | Heard::Interrupt => {}
        }
    }
}

struct Conversation<'a> {
    engine: Engine,
    desk: Desk<'a>,
    handles: Handles,
    /// Questions of the engine's, on their way to the client.
    questions: mpsc::Receiver<Vec<u8>>,
    /// Connects to servers of tools; ends with the conversation.
    _connecting: JoinSet<()>,
    streams: &'a Streams,
    cancel: CancellationToken,
    /// What is answered again when the client says its first words again.
    about: Value,
    title: Option<String>,
    /// Guesses of the next prompt are wanted.
    suggests: bool,
    /// One is being made.
    suggesting: Option<BoxFuture<'static, Option<String>>>,
    /// Submissions of this process in which the model was asked.
    answered: u32,
    /// The first line, if it was a prompt.
    first: Option<UserLine>,
    /// The client has asked for something in this process.
    is_asked: bool,
    /// There was nothing in the last thing it asked for.
    refused_last: bool,
    /// How long agents in the background are waited for when the client has nothing more to say, and the end of that time.
    agent_patience: Option<Duration>,
    patience_ends: Option<BoxFuture<'static, ()>>,
    /// How long it waits for its next prompt when it has had one.
    idle_max: Option<Duration>,
    fault: Option<String>,
}

/// What a submission is made of.
enum Work {
    Prompt(Prompt),
    Queued,
    News,
}

impl<'a> Conversation<'a> {
    /// Sets up the session. `None` if the client's first words could not be used, and were answered with that.
    async fn begin(
        mut options: Options,
        shown: &ConverseOptions,
        first: First,
        mut desk: Desk<'a>,
        questions: mpsc::Receiver<Vec<u8>>,
        streams: &'a Streams,
    ) -> Result<Option<Self>, StartError> {
        let client = desk.client.clone();
        let mut brought = Brought::default();
        let (mut request, mut first_prompt) = (None, None);
        match first {
            First::User(line) => first_prompt = Some(line),
            First::Request(said) => request = Some(said),
        }
        let is_initialize = request.as_ref().is_some_and(|request| request.subtype == "initialize");
        if let Some(said) = request.as_ref().filter(|_| is_initialize) {
            desk.hooks = said.body.get("hooks").filter(|hooks| !hooks.is_null()).cloned();
            match initialize::apply(&said.body, &mut options, &client) {
                Ok(said) => brought = said,
                Err(why) => brought.problems.push(why),
            }
        }
        brought.suggestions &= !shown.suggestions_off;
        options.agent_progress_summaries &= !shown.agent_summaries_off;
        let mut servers: Vec<(String, Option<Duration>)> =
            shown.client_servers.iter().map(|name| (name.clone(), None)).collect();
        servers.extend(std::mem::take(&mut brought.servers));
        let named = shown.servers_named.clone();
        let named = named.unwrap_or_else(|| ServersNamed::in_surroundings(Surroundings::new(&options.cwd)));
        let mut servers = initialize::add_servers(&servers, &mut options, &client, &named.surroundings);
        let own = |server: &&Arc<Server>| servers.iter().all(|known| known.name() != server.name());
        let outside: Vec<Arc<Server>> = shown.servers.iter().filter(own).cloned().collect();
        options.servers.extend(outside.iter().map(|server| Arc::clone(server) as Arc<dyn ToolServer>));
        servers.extend(outside);
        options.questions = match &shown.who_decides {
            WhoDecides::Nobody => None,
            WhoDecides::Client => Some(Questions::to(AskClient(client.clone()))),
            WhoDecides::Tool(name) => match decided_by(name, &servers) {
                Some(questions) => Some(questions),
                None => {
                    brought.problems.push(format!(
                        "--permission-prompt-tool {name} is no tool of a server that was named, so nobody is asked"
                    ));
                    None
                }
            },
        };
        options.host = options.host.clone().with_elicitor(Arc::new(ElicitFromClient(client.clone())));
        match &shown.agent {
            Some(agent) if !options.work_as(agent) => {
                brought.problems.push(format!("there is no agent '{agent}' to work as"));
            }
            Some(_) => {}
            None => brought.problems.extend(options.work_as_before().err().map(|gone| gone.to_string())),
        }
        let mut about = initialize::about(&options, shown.pid);
        if let Some(named) = &brought.servers_named {
            let is_there = |name: &String| servers.iter().any(|server| server.name() == name);
            about["mcp_servers_applied"] = named.iter().all(is_there).into();
        }
        if let Some(applied) = brought.plugins_applied {
            about["plugins_applied"] = applied.into();
        }
        let plugins: Vec<_> = options.plugins().map(plugin_row).collect();
        let plugins = (plugins.into(), options.plugin_errors.len().into());
        let (cwd, cancel) = (options.cwd.clone(), options.cancel.clone());
        let agents = options.agents.iter().map(|agent| agent.name.clone()).collect();
        let world = Arc::clone(&options.world);
        // One that goes on keeps the name it has.
        let name = brought.title.filter(|_| options.resume.is_none());
        let mut engine = match Engine::new(options) {
            Ok(engine) => engine,
            Err(error) => {
                if let Some(request) = request.filter(|_| is_initialize) {
                    desk.reply(&request.id, Err(error.to_string()));
                }
                return Err(error);
            }
        };
        let commands = engine.commands().await;
        about["commands"] = listed(&commands);
        desk.frames = frames(shown, brought.agent_text, engine.session_id(), world);
        if is_initialize {
            // What it is told now is no change.
            desk.frames.commands(&commands);
        }
        // The client's own, and those that were named for this run, are there before the model is asked first. The others
        // come when they come.
        let Joining { first: servers_first, inside, connecting } = Joining::of(servers.clone());
        if !shown.asks_without_servers {
            engine.wait_for(inside, servers_first);
        }
        let servers = Servers::new(servers, engine.servers(), client, named);
        let mut handles = Handles::of(&engine, servers, cwd, shown.may_rewind);
        (handles.may_bypass, handles.agents) = (shown.may_bypass, agents);
        handles.spares_agents = brought.stops_agents;
        handles.home.clone_from(&shown.home);
        handles.about.clone_from(&about);
        (handles.about["plugins"], handles.about["plugin_errors"]) = plugins;
        if let Some(request) = request {
            match is_initialize {
                true if shown.parked.is_some() => {
                    desk.reply(&request.id, Ok(claimed(shown, &engine, &handles, &about)));
                }
                true => desk.introduce(&request, &about),
                false => _ = desk.serve(&request, &handles),
            }
        }
        for problem in &brought.problems {
            desk.tell_problem(problem);
        }
        Ok(Some(Self {
            engine,
            desk,
            handles,
            questions,
            _connecting: connecting,
            streams,
            cancel,
            about,
            title: shown.title.clone().or(name),
            suggests: brought.suggestions,
            suggesting: None,
            answered: 0,
            first: first_prompt,
            is_asked: false,
            refused_last: false,
            agent_patience: shown.agent_patience,
            patience_ends: None,
            idle_max: shown.idle_max,
            fault: None,
        }))
    }

    /// Works off what the client says until it has nothing more to say.
    async fn last_until_the_end(&mut self) {
        if let Some(line) = self.first.take() {
            self.user(line).await;
        }
        while self.fault.is_none() && !self.cancel.is_cancelled() {
            // What was left waiting by another process is read with the first prompt of this one.
            if self.is_asked && self.handles.queue.is_ready() {
                self.submit(Work::Queued).await;
                continue;
            }
            self.desk.tell_record();
            let has_agents = self.handles.tasks.has_agents();
            if !has_agents {
                // How the last of them ended is told before that nothing happens any more.
                if self.handles.tasks.told().now_or_never().is_some() {
                    self.tell_news();
                }
                self.desk.tell_state("idle");
            }
            let is_done = !self.desk.is_open && self.suggesting.is_none();
            if is_done && !has_agents && !self.desk.is_adding() && !self.desk.has_chores() {
                return;
            }
            if !self.desk.is_open {
                self.patience_ends.get_or_insert_with(|| after(self.agent_patience).boxed());
            }
            let heard = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return,
                () = self.streams.closed() => return,
                heard = self.desk.hear(Some(&self.handles)) => heard,
                Some(question) = self.questions.recv() => {
                    self.desk.put_question(question);
                    continue;
                }
                words = suggested(&mut self.suggesting) => {
                    if let Some(words) = words {
                        self.desk.tell_suggestion(&words);
                    }
                    continue;
                }
                () = self.handles.tasks.ended() => {
                    self.submit(Work::News).await;
                    continue;
                }
                () = self.handles.tasks.told(), if self.desk.out.has_room() => {
                    self.tell_news();
                    continue;
                }
                () = after(self.idle_max.filter(|_| self.is_asked && !has_agents)) => return,
                // Nobody says anything any more, and whoever waits for agents has waited long enough.
                () = ended(&mut self.patience_ends) => return,
            };
            match heard {
                Heard::User(line) => self.user(line).await,
                Heard::Initialize(request) => self.desk.answer_again(&request, &self.about),
                Heard::Fault(words) => self.fault = Some(words),
                Heard::Nothing | Heard::Interrupt | Heard::End => {}
            }
        }
    }

    /// What happened beside the conversation since somebody was last told.
    fn tell_news(&mut self) {
        for news in self.handles.tasks.news() {
            self.desk.tell(&news);
        }
    }

    /// A prompt came while nothing runs.
    async fn user(&mut self, line: UserLine) {
        if let Some(words) = &line.left_out {
            self.desk.tell_problem(words);
        }
        let Some(prompt) = line.prompt else {
            return self.refuse_nothing(line.asks);
        };
        let prompt = match line.by_human {
            true => self.desk.frames.said_by_human(prompt, line.id),
            false => prompt,
        };
        if !line.asks {
            return self.note(prompt).await;
        }
        self.is_asked = true;
        if self.handles.queue.waiting().is_empty() && !self.desk.is_adding() {
            self.submit(Work::Prompt(prompt)).await;
        } else {
            self.desk.queue(prompt, line.priority, &self.handles);
        }
    }

    /// There was nothing in what came. Whoever wants an answer gets one: that there is none.
    fn refuse_nothing(&mut self, asks: bool) {
        const NOTHING: &str = "A message without anything in it was not taken";
        self.desk.tell_problem(NOTHING);
        if asks {
            self.refused_last = true;
            self.desk.tell_failure(NOTHING);
        }
    }

    async fn note(&mut self, prompt: Prompt) {
        if let Err(error) = self.engine.append(prompt).await {
            self.desk.tell_problem(&format!("A message was not taken: {error}"));
        }
    }

    /// Runs one submission to its end.
    async fn submit(&mut self, work: Work) {
        self.desk.agents_gone().await;
        self.desk.tell_state("running");
        self.refused_last = false;
        // Whoever says something needs no guess any more.
        self.suggesting = None;
        let by_task = matches!(work, Work::News);
        if by_task {
            self.tell_news();
        }
        self.desk.frames.set_by_task(by_task);
        self.pull(work).await;
        self.desk.frames.set_by_task(false);
        // Files are taken back to messages of this conversation, which may be another one now.
        let may_rewind = self.handles.file_history.is_some();
        self.handles.file_history = self.engine.file_history().filter(|_| may_rewind);
        self.handles.menu = self.engine.menu();
        for prompt in std::mem::take(&mut self.desk.notes) {
            self.note(prompt).await;
        }
        self.answered += u32::from(self.handles.last.as_ref().is_some_and(|last| last.asked));
        if self.suggests && self.may_suggest() {
            let guess = tokio::time::timeout(SUGGESTION_TIME_MAX, self.engine.suggestion());
            self.suggesting = Some(guess.map(|words| words.ok().flatten()).boxed());
        }
    }

    /// Whether a guess of the next prompt is worth its price: a conversation goes on, and nobody has said more meanwhile.
    fn may_suggest(&self) -> bool {
        self.answered > 1
            && self.handles.last.as_ref().is_some_and(|last| last.asked && !last.is_error)
            && self.handles.permissions.mode() != Mode::Plan
            && self.handles.queue.waiting().is_empty()
    }

    async fn pull(&mut self, work: Work) {
        let Self { engine, desk, handles, questions, streams, .. } = self;
        let hooks = engine.hooks_live();
        hooks.listen();
        let events: Option<Box<dyn Queued<Item = Event> + Send + Unpin + '_>> = match work {
            Work::Prompt(prompt) => Some(Box::new(engine.submit(prompt))),
            Work::Queued => engine.submit_queued().map(|events| Box::new(events) as _),
            Work::News => engine.submit_news().map(|events| Box::new(events) as _),
        };
        let Some(mut events) = events else { return };
        let mut is_read = true;
        // Behind the result nothing is heard any more: it would be taken for something about this submission.
        let mut is_over = false;
        loop {
            let announces_in = desk.frames.announces_in();
            let event = tokio::select! {
                biased;
                () = streams.closed(), if is_read => {
                    is_read = false;
                    handles.interrupter.interrupt();
                    continue;
                }
                heard = desk.hear(Some(handles)), if !is_over => {
                    match heard {
                        Heard::User(line) => hold(line, desk, handles),
                        Heard::Initialize(request) => desk.answer_again(&request, &self.about),
                        Heard::Fault(words) => {
                            self.fault = Some(words);
                            handles.interrupter.interrupt();
                        }
                        Heard::Nothing | Heard::Interrupt | Heard::End => {}
                    }
                    continue;
                }
                event = events.next(), if desk.out.has_room() || !is_read => event,
                () = after(announces_in), if is_read && desk.out.has_room() => {
                    let frames = desk.frames.announce();
                    desk.out.push(frames);
                    continue;
                }
                () = hooks.told(), if desk.out.has_room() || !is_read => {
                    let notes = hooks.take();
                    if is_read {
                        desk.tell_hooks(&notes);
                    }
                    continue;
                }
                Some(question) = questions.recv() => {
                    desk.put_question(question);
                    desk.tell_waits(handles);
                    continue;
                }
            };
            let Some(first) = event else { break };
            let mut next = Some(first);
            while let Some(event) = next {
                if is_read && matches!(event, Event::Hook(_) | Event::Agent(_)) {
                    // It began before it ended.
                    desk.tell_hooks(&hooks.take());
                }
                if let Event::Result(outcome) = &event {
                    handles.ended(outcome);
                    desk.frames.set_queued(handles.queue.waiting().len());
                    is_over = true;
                    // Nothing that belongs to the submission comes behind its result.
                    while let Ok(question) = questions.try_recv() {
                        desk.put_question(question);
                    }
                }
                if let Event::Message(entry) = &event
                    && let Some(detail) = entry.detail.as_deref()
                    && std::str::from_utf8(detail).is_ok_and(|detail| detail.contains("\"structuredPatch\""))
                {
                    handles.changed_lines(detail);
                }
                if is_read {
                    desk.tell_waits(handles);
                    desk.tell(&event);
                    tell_changed_mode(&event, desk, handles);
                }
                if let (true, Some(title)) = (matches!(event, Event::Prompt(_)), &self.title) {
                    // A name is a courtesy: without one the session is found by its first words.
                    let _ = handles.title.set(title);
                    self.title = None;
                }
                // Those that came with it are told with it, before anybody is listened to.
                next = if is_over || !desk.out.has_room() { None } else { events.take_queued() };
            }
        }
    }

    /// Ends the session. What runs in its background may end by itself first, and the model is told.
    async fn close(mut self, patience: Duration) -> Ended {
        let wants_more = self.fault.is_none() && !self.cancel.is_cancelled();
        if wants_more && !self.handles.tasks.running().is_empty() {
            let tasks = self.handles.tasks.clone();
            if !tasks.has_agents() && tokio::time::timeout(patience, tasks.ended()).await.is_ok() {
                self.submit(Work::News).await;
                self.desk.tell_state("idle");
            }
        }
        let (session, transcript) = (self.engine.session_id(), self.engine.transcript_file());
        self.desk.client.is_gone();
        self.engine.settle_background(Duration::ZERO).await;
        self.tell_news();
        self.desk.tell_state("idle");
        self.engine.close(EndReason::Other).await;
        self.desk.tell_record();
        self.desk.out.finish().await;
        let outcome = self.handles.last;
        let is_error = self.refused_last || outcome.as_ref().is_some_and(|outcome| outcome.is_error);
        Ended { outcome, is_error, fault: self.fault, session: Some(session), transcript }
    }
}

/// What whoever claimed the process is told. Servers inside the client are met when the model is first asked.
fn claimed(shown: &ConverseOptions, engine: &Engine, handles: &Handles, about: &Value) -> Value {
    json!({
        "cwd": handles.cwd.to_string_lossy(),
        "session_id": engine.session_id(),
        "parked_ms": shown.parked.unwrap_or_default().as_millis(),
        "sdk_mcp_settled": false,
        "initialize": about,
    })
}

/// A guess of the next prompt, or that there is none; never, if none is made.
async fn suggested(making: &mut Option<BoxFuture<'static, Option<String>>>) -> Option<String> {
    let words = match making {
        Some(guess) => guess.await,
        None => std::future::pending().await,
    };
    *making = None;
    words
}

/// Returns when that time is over; never, if none has begun.
async fn ended(time: &mut Option<BoxFuture<'static, ()>>) {
    match time {
        Some(time) => time.await,
        None => std::future::pending().await,
    }
}

/// A prompt came while a submission runs.
fn hold(line: UserLine, desk: &mut Desk<'_>, handles: &Handles) {
    if let Some(words) = &line.left_out {
        desk.tell_problem(words);
    }
    let prompt = match line.prompt {
        Some(prompt) if line.by_human => Some(desk.frames.said_by_human(prompt, line.id)),
        prompt => prompt,
    };
    match prompt {
        None => desk.tell_problem("A message without anything in it was not taken"),
        Some(prompt) if line.asks => desk.queue(prompt, line.priority, handles),
        Some(prompt) => desk.keep_note(prompt),
    }
}

/// A mode that came with a permission is told like one that was asked for.
fn tell_changed_mode(event: &Event, desk: &mut Desk<'_>, handles: &Handles) {
    if let Event::PermissionsChanged(updates) = event {
        let mut modes = updates.iter().filter_map(|update| match update.change {
            Change::SetMode(mode) => Some(mode),
            _ => None,
        });
        if let Some(mode) = modes.next_back() {
            handles.keep_guards();
            desk.tell_mode(mode);
        }
    }
}
