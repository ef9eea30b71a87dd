//! A session at a terminal: keys come in, the engine works, what happens is shown. Here things are done; what is to be done
//! is said by the [app](crate::app).

mod answers; // what commands of the terminal's own answer
mod beside; // questions beside the conversation
mod changes; // what is changed and not committed
mod choose; // what is asked where there is no session
mod chores; // what takes a while
mod clipboard; // a picture from it
mod copying; // an answer into it
mod debugging; // what happens inside, noted
mod files; // files that a program of the user's own knows
mod looks; // how everything looks and is typed
mod moving; // another directory
mod opening; // what a session begins with, and how it is left
mod outside; // other programs: an editor, the shell
mod past; // going back
mod prompts; // prompts of other days
mod questions; // questions of the engine's
mod status_command; // a user's own line about the session

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{Event as Typed, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use futures::future::{AbortHandle, BoxFuture};
use futures::stream::{FuturesUnordered, Stream, StreamExt};
use pelton::event::Init;
use pelton::host::Host;
use pelton::permission::{Mode, Questions};
use pelton::tools::ToolServer;
use pelton::{Bystander, EndReason, Engine, Event, Menu, Phase, Priority, Prompt, StartError};
use pelton_mcp::Joining;
use pelton_model::World;
use pelton_serve::progress::lines_changed;
use pelton_serve::{DebugLog, Handles, Served, SettingsHome};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::app::{App, Effect, When};
use crate::complete::Offered;
use crate::draft::{prompt, said};
use crate::input::Submission;
use crate::terminal::{Input, Terminal};
use crate::theme::Role;
pub use answers::sessions_of;
pub use choose::{choose, confirm};
use chores::Chore;
pub use debugging::Logs;
pub use opening::{Left, Opening, Standing};
use outside::Edits;
pub use outside::{Outside, stop_here};
use prompts::Prompts;
use questions::{Desk, Heard};
pub use status_command::StatusCommand;
use status_command::StatusTurn;

/// At most so often is shown what the engine does; keys are shown at once.
const FRAME: Duration = Duration::from_millis(16);
/// Before a question is shown, whatever was typed has so long to be read.
const SETTLE: Duration = Duration::from_millis(4);
/// Events of the engine that are taken in before keys are looked at again.
const EVENTS_AT_ONCE: usize = 64;

/// The key that interrupts.
const CONTROL_C: Typed = Typed::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
/// The key that stops.
const CONTROL_Z: Typed = Typed::Key(KeyEvent::new(KeyCode::Char('z'), KeyModifiers::CONTROL));

/// Opens a session on a terminal and stays until it is left. `stop` ends it from outside.
pub async fn run(
    opening: Opening,
    terminal: &mut Terminal,
    stop: &CancellationToken,
) -> Result<Left, StartError> {
    let Opening { mut options, servers, servers_named, theme, .. } = opening;
    let (desk, heard) = Desk::new();
    options.questions = Some(Questions::to(desk.clone()));
    options.host = Host::default().with_elicitor(Arc::new(desk.clone()));
    options.may_defer = false;
    options.servers.extend(servers.iter().map(|server| Arc::clone(server) as Arc<dyn ToolServer>));
    let world = Arc::clone(&options.world);
    let began_at = world.monotonic();
    let home_dir = options.home.clone();
    let (cwd, budget, goes_on) = (options.cwd.clone(), options.max_budget_usd, options.resume.is_some());
    let config_dir = options.sessions.as_ref().map(|sessions| sessions.config_dir.clone());
    let agents: Vec<(String, String)> =
        options.agents.iter().map(|agent| (agent.name.clone(), agent.description.clone())).collect();
    let mut engine = Engine::new(options)?;
    let Joining { first, inside, connecting: _connecting } = Joining::of(servers.clone());
    if !opening.asks_without_servers {
        engine.wait_for(inside, first);
    }
    let mut handles = Handles::of_person(&engine, servers, servers_named, cwd.clone(), Arc::clone(&world));
    handles.may_bypass = opening.may_bypass;
    let began_with = (handles.dials.model(), handles.permissions.mode());
    if let Some(stands) = &opening.stands {
        handles.dials.turn(&stands.turned);
        for update in &stands.permitted {
            // There were no more of them before.
            let _ = handles.permissions.apply(update);
        }
    }
    handles.agents = agents.iter().map(|(name, _)| name.clone()).collect();
    let (columns, rows) = terminal.size();
    let mut app = App::new(theme, columns, rows, opening.may_bypass);
    app.is_plain = terminal.is_plain();
    app.question_time = opening.question_time;
    app.feed.is_plain = app.is_plain;
    app.feed.works_in(&cwd);
    let spent_before = opening.stands.as_ref().map_or(0.0, |stands| stands.spent_usd);
    app.status.budget_usd = budget.map(|budget| budget + spent_before);
    app.worked = opening.stands.as_ref().map_or(Duration::ZERO, |stands| stands.worked);
    app.draft.use_vim(opening.vim && !app.is_plain);
    if let Some(greeting) = &opening.greeting {
        app.say(greeting, Role::Faint);
    }
    for notice in &opening.notices {
        app.say(notice, Role::Warning);
    }
    if goes_on && opening.tells_past {
        let past = app.feed.past(engine.history());
        app.put(past);
    }
    let prompts = config_dir.as_deref().map(|dir| Prompts::of(dir, &cwd));
    app.draft.remember(prompts.iter().flat_map(Prompts::read));
    let offered = if engine.suggests_ignored() { Offered::All } else { Offered::NotIgnored };
    app.draft.offers(cwd.clone(), home_dir.clone(), offered);
    if engine.file_suggestion().is_some() {
        app.draft.is_told_files();
    }
    if let Some(draft) = &opening.draft {
        app.draft.put_back(draft);
    }
    // Whoever switched a log on has it where the session goes on, too.
    let log_is_late = opening.log.is_none() && opening.stands.as_ref().is_some_and(|stands| stands.has_log);
    let late = opening.logs.as_ref().filter(|_| log_is_late).map(|logs| logs.begin());
    let log = opening.log.or(late);
    let mut session = Session {
        app,
        terminal,
        handles,
        desk,
        heard,
        world,
        cwd,
        config_dir,
        prompts,
        stop,
        name: opening.title.clone(),
        title: opening.title,
        newest_usage: Value::Null,
        spent_before,
        log,
        log_is_late,
        logs: opening.logs,
        bystander: engine.bystander(),
        beside: Beside::default(),
        home_dir,
        chores: FuturesUnordered::new(),
        needs: VecDeque::new(),
        shown_at: Duration::ZERO,
        settles_until: Duration::ZERO,
        is_stale: true,
        settles_at: None,
        is_asked: false,
        has_words: false,
        is_stopping: false,
        outside: opening.outside,
        home: opening.home,
        status: opening.status,
        status_turn: StatusTurn::default(),
        lines_changed: (0, 0),
        files_asked: None,
        idle_after: opening.idle_after,
        idle_at: None,
        session_id: engine.session_id(),
        transcript: engine.transcript_file(),
        began_at,
        began_with,
        init: None,
        agents,
        menu: engine.menu(),
        left: None,
    };
    session.look_at_engine(&engine);
    session.status_changed();
    if let Some(first) = opening.first {
        // It stands nowhere yet, also where what is typed does.
        if session.app.is_plain {
            session.app.put_prompt(&first);
        }
        session.needs.push_back(Effect::Submit(said(&first)));
    }
    session.last_until_left(&mut engine).await;
    let left = session.left.take().unwrap_or_else(|| Left::Ended {
        session: engine.session_id(),
        transcript: engine.transcript_file(),
    });
    let reason = match &left {
        Left::For { .. } | Left::Branch { .. } => EndReason::Resume,
        Left::Ended { .. } if !session.is_stopping => EndReason::PromptInputExit,
        _ => EndReason::Other,
    };
    engine.close(reason).await;
    session.show_last();
    Ok(left)
}

struct Session<'a> {
    app: App,
    terminal: &'a mut Terminal,
    handles: Handles,
    desk: Desk,
    heard: mpsc::Receiver<Heard>,
    world: Arc<dyn World>,
    cwd: PathBuf,
    config_dir: Option<PathBuf>,
    prompts: Option<Prompts>,
    stop: &'a CancellationToken,
    title: Option<String>,
    /// What it was called in this process.
    name: Option<String>,
    /// What the newest request was, as its server counted it.
    newest_usage: Value,
    /// What was spent in the sessions that this one goes on from.
    spent_before: f64,
    log: Option<DebugLog>,
    /// It was begun after the session was.
    log_is_late: bool,
    /// Who begins one.
    logs: Option<Arc<dyn Logs>>,
    /// Who is asked beside the conversation.
    bystander: Bystander,
    beside: Beside,
    /// The user's home, if it is known.
    home_dir: Option<PathBuf>,
    /// What takes a while and is not waited for.
    chores: FuturesUnordered<BoxFuture<'static, Chore>>,
    /// What has to wait until nothing runs.
    needs: VecDeque<Effect>,
    shown_at: Duration,
    /// Until then the window may have another size than it says.
    settles_until: Duration,
    /// What is shown is not what should be.
    is_stale: bool,
    /// When questions may be shown that came.
    settles_at: Option<Duration>,
    /// Something was asked for in this process.
    is_asked: bool,
    /// Something was said in this conversation.
    has_words: bool,
    is_stopping: bool,
    outside: Outside,
    /// Where settings are written.
    home: Option<Arc<dyn SettingsHome>>,
    status: Option<StatusCommand>,
    status_turn: StatusTurn,
    /// Lines that were added to files and taken away in this process.
    lines_changed: (usize, usize),
    /// Ends the program that is asked which files fit.
    files_asked: Option<AbortHandle>,
    /// How long nobody may say anything before hooks hear of it, and when that is: once behind each turn.
    idle_after: Duration,
    idle_at: Option<Duration>,
    session_id: Uuid,
    transcript: Option<PathBuf>,
    began_at: Duration,
    /// The model that was asked first, and how much ran without asking.
    began_with: (String, Mode),
    /// What the newest submission began with.
    init: Option<Arc<Init>>,
    /// The agents there are, and when to use each.
    agents: Vec<(String, String)>,
    /// What prompts may call; looked at when the first command is typed.
    menu: Menu,
    left: Option<Left>,
}

/// Questions beside the conversation.
#[derive(Default)]
struct Beside {
    /// How many there were.
    asked: u64,
    /// Ends those that wait.
    running: HashMap<u64, AbortHandle>,
    /// The newest that was answered, and its answer.
    last: Option<(String, Result<String, String>)>,
}

/// What there is to wait for.
enum Wake {
    Typed(Typed),
    /// A whole line, where there are no keys.
    Line(String),
    /// Nobody types any more.
    Gone,
    Heard(Heard),
    Chore(Chore),
    Time,
    Stop,
}

/// What a submission is made of.
enum Work {
    Prompt(Prompt),
    Queued,
    News,
}

impl Session<'_> {
    fn now(&self) -> Duration {
        self.world.monotonic()
    }

    async fn last_until_left(&mut self, engine: &mut Engine) {
        while self.left.is_none() && !self.stop.is_cancelled() {
            if let Some(need) = self.next_need() {
                self.meet(need, engine).await;
                continue;
            }
            // What was left waiting by another process is read with the first prompt of this one.
            if self.is_asked && !self.handles.queue.waiting().is_empty() {
                self.pull(engine, Work::Queued).await;
                continue;
            }
            if self.has_idled()
                && let Some(told) = engine.tell_idle()
            {
                self.chores.push(Box::pin(async move { Chore::Idled(told.await) }));
            }
            let tasks = self.handles.tasks.clone();
            let wake = tokio::select! {
                biased;
                wake = self.wake() => Some(wake),
                () = tasks.ended() => None,
                () = tasks.told() => {
                    self.tell_news();
                    continue;
                }
            };
            match wake {
                Some(wake) => self.heed(wake).await,
                None => self.pull(engine, Work::News).await,
            }
        }
    }

    /// Whether nobody has said anything for a while since all was done. Said once.
    fn has_idled(&mut self) -> bool {
        let now = self.now();
        self.idle_at.take_if(|at| *at <= now).is_some() && !self.app.has_dialog()
    }

    /// What is to be done next. What somebody looks at is not taken away from under their keys, except by leaving.
    fn next_need(&mut self) -> Option<Effect> {
        let waits = self.app.has_dialog() && self.needs.front() != Some(&Effect::Leave);
        if waits { None } else { self.needs.pop_front() }
    }

    /// Waits for whatever comes next, and keeps what is shown up to date meanwhile. May be dropped and asked again.
    async fn wake(&mut self) -> Wake {
        loop {
            let now = self.now();
            self.show_if_due(now);
            // Looked at once: a terminal that becomes ready between two looks would be waited for by neither of them.
            let is_ready = self.terminal.is_ready();
            let is_given = self.terminal.is_given();
            let due = self.is_stale.then_some(self.next_show()).filter(|_| is_ready && !is_given);
            let at = [due, self.settles_at, self.status_turn.due, self.idle_at, self.app.wakes_at(now)]
                .into_iter()
                .flatten()
                .min();
            let (shown, interrupts) = (self.terminal.ready(), self.terminal.interrupts());
            let stops = self.terminal.stops();
            let waits_for_terminal = self.is_stale && !is_ready;
            let Self { terminal, heard, chores, stop, .. } = self;
            let (listens, is_stopping) = (terminal.input(), self.is_stopping);
            let typed = async {
                match listens {
                    Some(Input::Keys(keys)) => {
                        keys.next().await.and_then(Result::ok).map_or(Wake::Gone, Wake::Typed)
                    }
                    Some(Input::Lines(lines)) => lines.recv().await.map_or(Wake::Gone, Wake::Line),
                    None => std::future::pending().await,
                }
            };
            return tokio::select! {
                biased;
                () = stop.cancelled(), if !is_stopping => Wake::Stop,
                () = interrupts.notified() => Wake::Typed(CONTROL_C),
                () = stops.notified() => Wake::Typed(CONTROL_Z),
                typed = typed => typed,
                Some(heard) = heard.recv() => Wake::Heard(heard),
                Some(chore) = chores.next(), if !chores.is_empty() => Wake::Chore(chore),
                () = shown, if waits_for_terminal => continue,
                () = until(at, now) => Wake::Time,
            };
        }
    }

    async fn heed(&mut self, wake: Wake) {
        let now = self.now();
        self.app.tick(now);
        self.ask_status(now);
        if matches!(wake, Wake::Typed(_) | Wake::Line(_)) {
            // Somebody is there.
            self.idle_at = None;
        }
        let effects = match wake {
            Wake::Typed(typed) => self.typed(typed, now),
            Wake::Line(line) => {
                self.terminal.line_ended();
                self.app.line(&line, now)
            }
            Wake::Gone => {
                self.terminal.stop_listening();
                vec![Effect::Leave]
            }
            Wake::Stop => {
                self.is_stopping = true;
                vec![Effect::Leave]
            }
            Wake::Heard(Heard::Asked(id, asked)) => {
                self.app.ask(id, asked);
                self.settles_at = Some(now + SETTLE);
                Vec::new()
            }
            Wake::Heard(Heard::TakenBack(id)) => {
                self.app.taken_back(id);
                Vec::new()
            }
            Wake::Chore(chore) => {
                self.chore_done(chore);
                Vec::new()
            }
            Wake::Time => self.app.expired(now),
        };
        if self.terminal.is_given() {
            // What is asked meanwhile waits for its reader.
            self.settles_at = None;
        } else if self.settles_at.is_some_and(|at| at <= now) {
            self.settles_at = match self.terminal.has_unread() {
                true => Some(now + SETTLE),
                false => {
                    self.app.show_next(now);
                    None
                }
            };
        } else if self.app.has_unshown() && self.settles_at.is_none() {
            self.settles_at = Some(now + SETTLE);
        }
        self.is_stale = true;
        if self.app.draft.wants_commands() {
            let menu = self.menu.clone();
            self.chores.push(Box::pin(async move { Chore::Commands(menu.look().await) }));
        }
        if let Some(typed) = self.app.draft.wants_files() {
            self.ask_for_files(typed);
        }
        for effect in effects {
            match effect {
                Effect::Suspend => self.suspend().await,
                Effect::Edit => {
                    let words = self.app.draft.text();
                    self.edit_outside(Edits::Prompt, &words).await;
                }
                Effect::EditPlan(id, plan) => self.edit_outside(Edits::Plan(id), &plan).await,
                effect => self.perform(effect),
            }
        }
    }

    fn typed(&mut self, typed: Typed, now: Duration) -> Vec<Effect> {
        // Keys are shown at once.
        self.shown_at = Duration::ZERO;
        match typed {
            Typed::Key(key) if key.kind != KeyEventKind::Release => self.app.key(key, now),
            Typed::Paste(text) => {
                self.app.paste(&text, now);
                Vec::new()
            }
            Typed::Resize(columns, rows) => {
                self.terminal.resize(columns, rows);
                let (columns, rows) = self.terminal.size();
                self.resized(columns, rows, now);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// What was typed is known again another day.
    fn keep_prompt(&self, words: &str) {
        if let Some(prompts) = &self.prompts {
            prompts.keep(words, self.world.now().as_millisecond());
        }
    }

    /// Does what can be done whatever the engine does; the rest waits.
    fn perform(&mut self, effect: Effect) {
        match &effect {
            Effect::Submit(said) | Effect::Queue { said, .. } => self.keep_prompt(&said.text),
            Effect::Shell(command) => self.keep_prompt(&format!("!{command}")),
            Effect::Command(own, arguments) => {
                let words = format!("/{} {arguments}", own.name());
                self.keep_prompt(words.trim_end());
                if !own.is_a_prompt(arguments) && !own.asks(arguments) {
                    self.app.put_command(words.trim_end());
                }
            }
            _ => {}
        }
        match effect {
            Effect::GiveUpBeside(id) => self.give_up_beside(id),
            Effect::Interrupt => self.handles.interrupter.interrupt(),
            Effect::Answer(id, answer) => self.desk.answer(id, answer),
            Effect::Queue { said, when } => self.queue(said, when),
            Effect::Unqueue(id) => _ = self.handles.queue.cancel(id),
            Effect::SetMode(mode) => self.set_mode(mode),
            Effect::PastePicture => {
                self.chores.push(Box::pin(async { Chore::Picture(clipboard::picture().await) }));
            }
            Effect::Repaint => self.terminal.repaint(),
            Effect::PutAside => {
                if let Served::Now(Err(why)) = self.handles.ask("background_tasks", json!({})) {
                    self.app.say(&why, Role::Error);
                }
            }
            Effect::Command(own, arguments) if own.works_any_time() => self.command(own, &arguments),
            Effect::Leave => {
                self.handles.interrupter.interrupt();
                self.needs.push_front(Effect::Leave);
            }
            other => self.needs.push_back(other),
        }
    }

    /// Does what needs the engine itself.
    async fn meet(&mut self, need: Effect, engine: &mut Engine) {
        match need {
            Effect::Submit(said) => self.submit(engine, &said).await,
            Effect::Shell(command) => self.shell(engine, command).await,
            Effect::Command(own, arguments) => self.command_with(engine, own, arguments).await,
            Effect::ListPast => {
                let past = past::prompts_of(engine);
                self.app.ask_prompt(past);
            }
            Effect::PreviewRewind(id) => {
                self.serve_with(
                    "rewind_files",
                    json!({"user_message_id": id, "dry_run": true}),
                    Chore::Preview,
                );
            }
            Effect::Rewind(undo) => self.rewind(engine, undo).await,
            Effect::Resume(id) => self.leave_for(id),
            Effect::Leave => {
                let (session, transcript) = (engine.session_id(), engine.transcript_file());
                self.leave(Left::Ended { session, transcript });
            }
            other => self.perform(other),
        }
        self.is_stale = true;
    }

    async fn submit(&mut self, engine: &mut Engine, said: &Submission) {
        self.is_asked = true;
        match prompt(said, &self.cwd) {
            Ok(prompt) => {
                let now = self.now();
                self.app.begin(Some(&said.shown), now);
                self.pull(engine, Work::Prompt(prompt)).await;
            }
            Err(why) => self.app.say(&why, Role::Error),
        }
    }

    /// Runs one submission to its end.
    async fn pull(&mut self, engine: &mut Engine, work: Work) {
        self.idle_at = None;
        if !self.app.is_working() {
            let now = self.now();
            self.app.begin(None, now);
        }
        match work {
            Work::Prompt(_) => {}
            Work::Queued => self.app.begin_waiting(),
            Work::News => self.tell_news(),
        }
        self.pull_events(engine, work).await;
        self.ended();
        // Files are taken back to prompts of this conversation, which may be another one now.
        self.handles.file_history = engine.file_history();
        self.look_at_engine(engine);
        self.is_stale = true;
    }

    /// What happened beside the conversation since somebody was last told.
    fn tell_news(&mut self) {
        for news in self.handles.tasks.news() {
            let now = self.now();
            self.app.event(&news, now);
        }
        self.is_stale = true;
    }

    /// Nothing runs any more.
    fn ended(&mut self) {
        let now = self.now();
        self.idle_at = Some(now + self.idle_after);
        if self.app.end(now) {
            self.needs.push_front(Effect::Leave);
        }
    }

    async fn pull_events(&mut self, engine: &mut Engine, work: Work) {
        let events: Option<Pin<Box<dyn Stream<Item = Event> + Send + '_>>> = match work {
            Work::Prompt(prompt) => Some(Box::pin(engine.submit(prompt))),
            Work::Queued => engine.submit_queued().map(|events| Box::pin(events) as _),
            Work::News => engine.submit_news().map(|events| Box::pin(events) as _),
        };
        let Some(mut events) = events else { return };
        loop {
            let event = tokio::select! {
                biased;
                wake = self.wake() => {
                    self.heed(wake).await;
                    continue;
                }
                event = events.next() => event,
            };
            let Some(event) = event else { return };
            self.heard_event(&event);
            // What is there already is taken in before it is shown.
            for _ in 0..EVENTS_AT_ONCE {
                match futures::FutureExt::now_or_never(events.next()) {
                    Some(Some(event)) => self.heard_event(&event),
                    Some(None) => return,
                    None => break,
                }
            }
        }
    }

    fn heard_event(&mut self, event: &Event) {
        if let Some(log) = &self.log {
            log.event(event);
        }
        if let Event::Init(init) = event {
            self.init = Some(Arc::clone(init));
            self.app.draft.knows(&init.commands);
        }
        if let Event::Started(started) = event {
            let usage = &started.usage;
            self.newest_usage = json!({
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "cache_creation_input_tokens": usage.cache_creation_input_tokens,
                "cache_read_input_tokens": usage.cache_read_input_tokens,
            });
        }
        if let Event::Result(outcome) = event {
            self.handles.ended(outcome);
        }
        if let Event::Hook(run) = event
            && let Some(sequence) = &run.terminal_sequence
        {
            self.terminal.say(sequence);
        }
        if let Event::Message(entry) = event
            && let Some((added, removed)) = lines_changed(entry)
        {
            self.lines_changed.0 += added;
            self.lines_changed.1 += removed;
        }
        self.has_words |= matches!(event, Event::Prompt(_));
        if matches!(event, Event::Prompt(_))
            && let Some(title) = self.title.take()
        {
            // A name is a courtesy: without one the session is found by its first words.
            let _ = self.handles.title.set(&title);
        }
        if matches!(event, Event::Message(_) | Event::Result(_)) {
            self.status_changed();
        }
        let now = self.now();
        self.app.event(event, now);
        self.is_stale = true;
    }

    fn queue(&mut self, said: Submission, when: When) {
        let priority = match when {
            When::Next => Priority::Next,
            When::Later => Priority::Later,
        };
        match prompt(&said, &self.cwd) {
            Ok(prompt) => {
                let queue = self.handles.queue.clone();
                self.chores.push(Box::pin(async move {
                    let added = queue.add(prompt, priority).await;
                    Chore::Queued(said, added)
                }));
            }
            Err(why) => self.app.not_queued(&said, &why),
        }
    }

    fn set_mode(&mut self, mode: Mode) {
        match self.handles.ask("set_permission_mode", json!({"mode": mode.name()})) {
            Served::Mode(mode) => {
                self.app.status.mode = mode;
                self.status_changed();
            }
            Served::Now(Err(why)) => self.app.say(&why, Role::Error),
            _ => {}
        }
    }

    /// What is told of the engine between submissions.
    fn look_at_engine(&mut self, engine: &Engine) {
        let usage = engine.context_watch().usage();
        self.app.status.window_tokens = usage.window_tokens;
        self.app.status.context_tokens = usage.used_tokens;
        (self.session_id, self.transcript) = (engine.session_id(), engine.transcript_file());
        self.has_words = !engine.history().is_empty();
        self.status_changed();
    }

    fn show_if_due(&mut self, now: Duration) {
        let can = !self.terminal.is_given() && self.terminal.is_ready();
        if !self.is_stale || !can || now < self.next_show() {
            return;
        }
        if let Some((columns, rows)) = self.terminal.look_at_size() {
            self.resized(columns, rows, now);
        }
        if now >= self.settles_until {
            self.show(now);
        }
    }

    /// When something may be shown next.
    fn next_show(&self) -> Duration {
        self.settles_until.max(self.shown_at + FRAME)
    }

    fn resized(&mut self, columns: usize, rows: usize, now: Duration) {
        self.app.resize(columns, rows);
        self.settles_until = now + self.terminal.settles_for();
    }

    fn show(&mut self, now: Duration) {
        {
            let status = self.handles.status.borrow_and_update();
            // A command line of the user's own is no submission.
            let is_asked = self.app.is_working() && status.phase != Phase::Done;
            if is_asked {
                self.app.status.context_tokens = status.context_tokens;
            }
            self.app.status.output_tokens = if is_asked { status.output_tokens } else { 0 };
        }
        self.app.status.cost_usd = self.spent();
        self.app.status.model = self.handles.dials.model();
        self.app.status.mode = self.handles.permissions.mode();
        self.app.status.background = self.handles.tasks.running().len();
        if self.app.status.vim != self.app.draft.vim_mode() {
            self.status_changed();
        }
        let finished = self.app.take_finished();
        let live = self.app.live(now);
        self.terminal.paint(&finished, &live);
        self.shown_at = now;
        self.is_stale = false;
    }

    /// What was spent, also before this session took the place of another.
    fn spent(&self) -> f64 {
        self.spent_before + self.handles.cost.usd()
    }

    /// What was said and not shown yet, before the terminal is somebody else's.
    fn show_last(&mut self) {
        let finished = self.app.take_finished();
        self.terminal.paint(&finished, &crate::paint::Live::default());
    }
}

/// Waits until a moment; for ever, if there is none.
async fn until(at: Option<Duration>, now: Duration) {
    match at {
        Some(at) => tokio::time::sleep(at.saturating_sub(now)).await,
        None => std::future::pending().await,
    }
}
