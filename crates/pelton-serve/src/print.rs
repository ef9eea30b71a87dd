//! One prompt, shown as it runs.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use pelton::hooks::HooksLive;
use pelton::{Engine, Event, Interrupter, Outcome, Prompt, Tasks};
use pelton_model::World;
use pelton_model::stream::Queued;

use crate::debug::DebugLog;
use crate::frames::Frames;
use crate::out::Streams;
use crate::text::Text;

/// What is written to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The answer.
    Text,
    /// One result object; with `verbose`, an array of all messages.
    Json,
    /// One message per line, as it comes.
    StreamJson,
}

/// How a prompt is shown.
///
/// See [`print()`].
#[derive(Debug, Clone)]
pub struct PrintOptions {
    /// What is written to standard output.
    pub format: Format,
    /// All messages rather than the result alone.
    pub verbose: bool,
    /// Pieces of answers as they arrive.
    pub partial: bool,
    /// What the loop did, and why (stream-json).
    pub loop_events: bool,
    /// The prompts themselves, as they were taken (stream-json).
    pub replay: bool,
    /// Words of sub-agents, not only their calls and results (stream-json).
    pub agent_text: bool,
    /// What hooks did (stream-json).
    pub hook_events: bool,
    /// Standard output is a terminal: text is streamed.
    pub out_is_terminal: bool,
    /// What the tools do is shown on standard error.
    pub shows_progress: bool,
    /// Colours are welcome on standard error.
    pub colour: bool,
    /// How long agents in the background are waited for once the answer is there; `None`: until they end.
    pub agent_patience: Option<Duration>,
    /// Where what happens inside is noted, if it is.
    pub log: Option<DebugLog>,
}

/// Submits a prompt and shows what comes of it, and what the model makes of the reports of agents that it did not wait for. If standard output can no longer be written, the submission is
/// interrupted and recorded as such: the conversation is not lost with its reader. [`Streams::finish`] tells the cause.
///
/// ```
/// use std::sync::Arc;
///
/// use pelton::{Engine, Options, Prompt};
/// use pelton_model::{Auth, Endpoint, RealWorld, Secret};
/// use pelton_serve::{Format, PrintOptions, Streams, print};
/// # use pelton_testkit::{Script, text};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let model = Script::new().reply([text("Four.")]).start().await?;
/// let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// let mut engine = Engine::new(Options::new("/", endpoint))?;
/// let shown = PrintOptions {
///     format: Format::StreamJson,
///     verbose: true,
///     partial: false,
///     loop_events: false,
///     replay: false,
///     agent_text: false,
///     hook_events: false,
///     out_is_terminal: false,
///     shows_progress: false,
///     colour: false,
///     agent_patience: None,
///     log: None,
/// };
/// let streams = Streams::apart(std::io::sink(), std::io::sink());
/// let prompt = Prompt::text("What is two and two?")?;
/// let outcome = print(&mut engine, prompt, &shown, Arc::new(RealWorld::new()), &streams).await;
/// assert_eq!(outcome.map(|outcome| outcome.text.clone()).as_deref(), Some("Four."));
/// # Ok(())
/// # }
/// ```
pub async fn print(
    engine: &mut Engine,
    prompt: Prompt,
    options: &PrintOptions,
    world: Arc<dyn World>,
    streams: &Streams,
) -> Option<Arc<Outcome>> {
    let interrupter = engine.interrupter();
    let shown = match options.format {
        Format::Text => Shown::Text(Text::new(options, world)),
        Format::Json => {
            Shown::Json(Collected::new(Frames::new(engine.session_id(), false, world), options.verbose))
        }
        Format::StreamJson => {
            let frames = Frames::new(engine.session_id(), options.partial, world);
            let frames = frames.with_loop_events(options.loop_events).with_replay(options.replay);
            Shown::Lines(frames.with_agent_text(options.agent_text).with_hook_events(options.hook_events))
        }
    };
    let hooks = engine.hooks_live();
    if matches!(shown, Shown::Lines(_)) {
        hooks.listen();
    }
    let unwritten = Pieces::default();
    let mut printing =
        Printing { shown, options, streams, read: true, unwritten, outcome: None, held: None, hooks };
    let tasks = engine.tasks();
    let events = engine.submit(prompt);
    printing.pull(events, &tasks, &interrupter).await;
    let mut patience_ends = std::pin::pin!(after(options.agent_patience));
    while printing.read && tasks.has_agents() {
        tokio::select! {
            biased;
            () = streams.closed() => break,
            () = interrupter.interrupted() => break,
            () = tasks.told() => {
                for event in tasks.news() {
                    printing.show(&event);
                }
                printing.write().await;
            }
            () = tasks.ended() => {
                if let Some(events) = engine.submit_news() {
                    printing.by_task(true);
                    printing.pull(events, &tasks, &interrupter).await;
                    printing.by_task(false);
                }
            }
            () = &mut patience_ends => break,
        }
    }
    printing.show_held().await;
    printing.outcome
}

/// One prompt on its way to whoever reads.
struct Printing<'a> {
    shown: Shown,
    options: &'a PrintOptions,
    streams: &'a Streams,
    /// Somebody does.
    read: bool,
    /// What is shown of events that came together: it is handed to the writer as one.
    unwritten: Pieces,
    outcome: Option<Arc<Outcome>>,
    /// A result that is shown only if no other follows.
    held: Option<Event>,
    hooks: HooksLive,
}

impl Printing<'_> {
    /// Shows one submission to its end.
    async fn pull(
        &mut self,
        mut events: impl Queued<Item = Event> + Unpin,
        tasks: &Tasks,
        interrupter: &Interrupter,
    ) {
        loop {
            let event = tokio::select! {
                biased;
                // Seen at once, also while a tool runs for minutes and nothing is there to write.
                () = self.streams.closed(), if self.read => {
                    self.read = false;
                    interrupter.interrupt();
                    continue;
                }
                event = events.next() => event,
                () = self.hooks.told() => {
                    self.show_hooks();
                    self.write().await;
                    continue;
                }
                () = after(self.shown.announces_in()), if self.read => {
                    self.unwritten.add(self.shown.announce());
                    self.write().await;
                    continue;
                }
            };
            let Some(first) = event else { return };
            let mut next = Some(first);
            while let Some(event) = next {
                self.take(event, tasks);
                next = if self.unwritten.are_many() { None } else { events.take_queued() };
            }
            self.write().await;
        }
    }

    fn take(&mut self, event: Event, tasks: &Tasks) {
        if let Event::Result(result) = &event {
            self.outcome = Some(Arc::clone(result));
            self.held = None;
            if tasks.has_agents() && self.shown.has_one_result() {
                self.note(&event);
                self.held = Some(event);
                return;
            }
        }
        self.show(&event);
    }

    /// What hooks do that still run.
    fn show_hooks(&mut self) {
        let notes = self.hooks.take();
        if let Shown::Lines(frames) = &mut self.shown
            && self.read
        {
            self.unwritten.to_out.extend(notes.iter().flat_map(|note| frames.hook_note(note)));
        }
    }

    fn show(&mut self, event: &Event) {
        if matches!(event, Event::Hook(_) | Event::Agent(_)) {
            // It began before it ended.
            self.show_hooks();
        }
        self.note(event);
        // If nobody reads any more, the rest of the events only brings the submission to its end.
        if self.read {
            self.unwritten.add(self.shown.of(event));
        }
    }

    /// Hands everything to the writers. Standard output first: a notice is about what was said before it.
    async fn write(&mut self) {
        let Pieces { to_out, to_err } = std::mem::take(&mut self.unwritten);
        self.streams.out(to_out).await;
        self.streams.err(to_err).await;
    }

    fn note(&self, event: &Event) {
        if let Some(log) = &self.options.log {
            log.event(event);
        }
    }

    async fn show_held(&mut self) {
        if let Some(result) = self.held.take().filter(|_| self.read) {
            self.unwritten.add(self.shown.of(&result));
            self.write().await;
        }
    }

    /// What follows was started by an agent in the background, or by the user.
    fn by_task(&mut self, by_task: bool) {
        match &mut self.shown {
            Shown::Lines(frames) | Shown::Json(Collected { frames, .. }) => frames.set_by_task(by_task),
            Shown::Text(_) => {}
        }
    }
}

/// Waits so long; for ever, if there is nothing to wait for.
pub(crate) async fn after(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// So many bytes are written before more events are looked at.
const UNWRITTEN_BYTES_MAX: usize = 64 * 1024;

/// What one event puts where, or several.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    pub to_out: Vec<u8>,
    pub to_err: Vec<u8>,
}

impl Pieces {
    fn add(&mut self, more: Self) {
        for (all, more) in [(&mut self.to_out, more.to_out), (&mut self.to_err, more.to_err)] {
            if all.is_empty() {
                *all = more;
            } else {
                all.extend_from_slice(&more);
            }
        }
    }

    /// Whether no other event may be added: there are many bytes, or a notice, which belongs behind what was said before it
    /// and before what is said next.
    fn are_many(&self) -> bool {
        self.to_out.len() > UNWRITTEN_BYTES_MAX || !self.to_err.is_empty()
    }
}

enum Shown {
    Text(Text),
    Json(Collected),
    Lines(Frames),
}

impl Shown {
    fn of(&mut self, event: &Event) -> Pieces {
        match self {
            Self::Text(text) => text.of(event),
            Self::Json(collected) => Pieces { to_out: collected.of(event), to_err: Vec::new() },
            Self::Lines(frames) => Pieces { to_out: frames.of(event), to_err: Vec::new() },
        }
    }

    /// Whether whoever reads expects one answer, and not one after the other.
    fn has_one_result(&self) -> bool {
        match self {
            Self::Text(text) => !text.streams(),
            Self::Json(_) => true,
            Self::Lines(_) => false,
        }
    }

    /// When there is something to tell although nothing has happened.
    fn announces_in(&self) -> Option<Duration> {
        match self {
            Self::Text(text) => text.announces_in(),
            Self::Json(_) => None,
            Self::Lines(frames) => frames.announces_in(),
        }
    }

    fn announce(&mut self) -> Pieces {
        match self {
            Self::Text(text) => text.announce(),
            Self::Json(_) => Pieces::default(),
            Self::Lines(frames) => Pieces { to_out: frames.announce(), to_err: Vec::new() },
        }
    }
}

/// The json format: nothing until the result, then everything at once.
struct Collected {
    frames: Frames,
    verbose: bool,
    array: Vec<u8>,
}

impl Collected {
    fn new(frames: Frames, verbose: bool) -> Self {
        Self { frames, verbose, array: Vec::new() }
    }

    fn of(&mut self, event: &Event) -> Vec<u8> {
        let result = matches!(event, Event::Result(_));
        if !self.verbose {
            return if result { self.frames.of(event) } else { Vec::new() };
        }
        for line in self.frames.of(event).split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.array.push(if self.array.is_empty() { b'[' } else { b',' });
            self.array.extend_from_slice(line);
        }
        if !result {
            return Vec::new();
        }
        self.array.extend_from_slice(b"]\n");
        std::mem::take(&mut self.array)
    }
}
