//! What happens inside a session, line by line, for whoever looks for a fault. What anybody said, called tools with or was
//! answered is not in it: names, sizes, states and times are.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pelton::event::{AgentEvent, AgentNews, ContextEvent, Event, Init, Outcome};
use pelton::history::{Entry, Kind};
use pelton::tools::BackgroundNews;
use pelton_model::World;
use uuid::Uuid;

use crate::redact::without_keys;

/// The most bytes of lines that wait until it is clear where they go.
const WAITING_BYTES_MAX: usize = 64 * 1024;

/// Opens what the lines go to, once it is known which session it is about, or that there will be none.
type Open = Box<dyn FnOnce(Option<Uuid>) -> io::Result<Box<dyn Write + Send>> + Send>;

/// A log of one session. All clones are one.
///
/// ```
/// use std::sync::Arc;
///
/// use pelton_model::RealWorld;
/// use pelton_serve::DebugLog;
///
/// // Everything but what is said about hooks.
/// let log = DebugLog::new("!hooks", Arc::new(RealWorld::new()), |_| Ok(Box::new(std::io::sink())));
/// log.note("start", "here we go");
/// ```
#[derive(Clone)]
pub struct DebugLog(Arc<Mutex<Log>>);

impl fmt::Debug for DebugLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DebugLog")
    }
}

struct Log {
    filter: Filter,
    world: Arc<dyn World>,
    place: Place,
}

enum Place {
    /// It is not known yet.
    Waiting(Vec<u8>, Open),
    Open(Box<dyn Write + Send>),
    /// It could not be opened, or not be written to.
    Nowhere,
}

impl DebugLog {
    /// `filter` names what is wanted, apart from each other by commas; everything if it names nothing. `!` before a name means
    /// all but that.
    pub fn new(
        filter: &str,
        world: Arc<dyn World>,
        open: impl FnOnce(Option<Uuid>) -> io::Result<Box<dyn Write + Send>> + Send + 'static,
    ) -> Self {
        let place = Place::Waiting(Vec::new(), Box::new(open));
        Self(Arc::new(Mutex::new(Log { filter: Filter::of(filter), world, place })))
    }

    /// A line about something.
    pub fn note(&self, about: &str, words: &str) {
        self.lock().note(about, words);
    }

    /// What an event is worth telling.
    pub fn event(&self, event: &Event) {
        let mut log = self.lock();
        log.event(event, "");
        if let Event::Init(init) = event {
            log.open(Some(init.session_id));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    fn note(&mut self, about: &str, words: &str) {
        if !self.filter.wants(about) {
            return;
        }
        // One line is one thing that happened.
        let words: String = words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let words = without_keys(&words);
        let line = format!("{:.3} [{about}] {words}\n", self.world.now());
        match &mut self.place {
            Place::Waiting(waiting, _) if waiting.len() + line.len() <= WAITING_BYTES_MAX => {
                waiting.extend_from_slice(line.as_bytes());
            }
            Place::Open(out) => {
                let written = out.write_all(line.as_bytes());
                if written.is_err() {
                    self.place = Place::Nowhere;
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, session: Option<Uuid>) {
        self.place = match std::mem::replace(&mut self.place, Place::Nowhere) {
            // A log that cannot be written is no reason to end what it is about.
            Place::Waiting(waiting, open) => {
                let opened = open(session).and_then(|mut out| out.write_all(&waiting).map(|()| out));
                opened.map_or(Place::Nowhere, Place::Open)
            }
            place => place,
        };
    }

    fn event(&mut self, event: &Event, by: &str) {
        match event {
            Event::Init(init) => self.init(init),
            Event::Prompt(entry) => {
                self.note("session", &format!("{by}prompt {} ({})", entry.id, size(entry)));
            }
            Event::PromptsConsumed(ids) => {
                self.note("session", &format!("{by}{} prompts were read", ids.len()));
            }
            Event::Requesting => self.note("api", &format!("{by}the model is asked")),
            Event::Started(started) => {
                let request = started.request_id.as_deref().unwrap_or("without an id");
                let words = format!(
                    "{by}{} answers: message {}, request {request}, {} tokens read",
                    started.model,
                    started.message_id,
                    started.usage.prompt_tokens()
                );
                self.note("api", &words);
            }
            Event::Message(entry) => self.message(entry, by),
            Event::Attachment(entry) => {
                self.note("session", &format!("{by}told beside it ({})", size(entry)));
            }
            Event::ToolStarted(call) => {
                let words = format!("{by}{} {} starts, {} run", call.tool, call.call, call.running);
                self.note("tools", &words);
            }
            Event::Retry(notice) => {
                let status =
                    notice.status.map_or_else(|| "no status".to_owned(), |status| format!("HTTP {status}"));
                let words = format!(
                    "{by}attempt {} of {} failed: {}, {status}; the next in {} ms",
                    notice.attempt,
                    notice.retries_max,
                    notice.kind.wire_name(),
                    notice.wait.as_millis()
                );
                self.note("api", &words);
            }
            Event::Stalled { silent_for } => {
                self.note("api", &format!("{by}nothing came for {} ms", silent_for.as_millis()));
            }
            Event::Cut { .. } => {
                self.note("api", &format!("{by}the answer was cut; what is complete is kept"));
            }
            Event::Refusal(refusal) => self.note("api", &format!("{by}{} declined to answer", refusal.model)),
            Event::ModelFallback { from, to, .. } => {
                self.note("api", &format!("{by}{to} is asked in the place of {from}"));
            }
            Event::Transition(transition) => {
                self.note("loop", &format!("{by}goes on: {}", transition.name()));
            }
            Event::Loop(told) => {
                self.note("loop", &format!("{by}{} in turn {}", told.kind.name(), told.turn));
            }
            Event::PermissionsChanged(updates) => {
                self.note("permissions", &format!("{by}{} changes came with a permission", updates.len()));
            }
            Event::Hook(run) => {
                let code = run.exit_code.map(|code| format!(", exit code {code}")).unwrap_or_default();
                let words =
                    format!("{by}{} {:?}{code}, {} ms", run.name, run.outcome, run.duration.as_millis());
                self.note("hooks", &words);
            }
            Event::Informational { content, prevents_continuation } => {
                let end = if *prevents_continuation { ", and it ends the run" } else { "" };
                let words = format!("{by}a notice of {} characters{end}", content.chars().count());
                self.note("session", &words);
            }
            Event::Cleared { from, to } => self.note("session", &format!("{from} was cleared, {to} begins")),
            Event::Context(told) => self.context(told, by),
            Event::Agent(told) => self.agent(told),
            Event::Background(BackgroundNews::Started(task)) => {
                self.note("tasks", &format!("{} begins, for {}", task.id, task.call));
            }
            Event::Background(BackgroundNews::Ended(task, end)) => {
                self.note("tasks", &format!("{} {}", task.id, end.words()));
            }
            Event::Result(outcome) => self.result(outcome),
            _ => {}
        }
    }

    fn init(&mut self, init: &Init) {
        let Init { session_id, model, mode, tools, skills, plugins, .. } = init;
        let words = format!(
            "session {session_id}: {model}, mode {}, {} tools, {} skills, {} plugins, in {}",
            mode.name(),
            tools.len(),
            skills.len(),
            plugins.len(),
            init.cwd.display()
        );
        self.note("session", &words);
        for (name, state) in &init.servers {
            self.note("mcp", &format!("{name}: {}", state.name()));
        }
    }

    fn message(&mut self, entry: &Entry, by: &str) {
        match &entry.kind {
            Kind::ToolResult { call, is_error } => {
                let end = if *is_error { "failed" } else { "is done" };
                self.note("tools", &format!("{by}{call} {end} ({})", size(entry)));
            }
            Kind::Assistant { origin, .. } => {
                self.note("session", &format!("{by}a block of {} ({})", origin.message_id, size(entry)));
            }
            Kind::Prompt { .. } => {
                self.note("session", &format!("{by}words of the harness ({})", size(entry)));
            }
        }
    }

    fn context(&mut self, told: &ContextEvent, by: &str) {
        let words = match told {
            ContextEvent::Compacting { .. } => format!("{by}a summary is being made"),
            ContextEvent::Compacted(Ok(())) => format!("{by}it is made"),
            ContextEvent::Compacted(Err(_)) => format!("{by}none came of it"),
            ContextEvent::Boundary(boundary) => {
                format!("{by}{} tokens became {}", boundary.before_tokens, boundary.after_tokens)
            }
            _ => return,
        };
        self.note("context", &words);
    }

    fn agent(&mut self, told: &AgentEvent) {
        let (id, kind) = (&told.agent.id, &told.agent.agent_type);
        match &told.news {
            AgentNews::Started => {
                self.note("agents", &format!("{id} ({kind}) begins, for {}", told.agent.call));
            }
            AgentNews::Ended { end, done, .. } => {
                let words = format!("{id} ended: {end:?}, {} calls, {} tokens", done.tool_calls, done.tokens);
                self.note("agents", &words);
            }
            AgentNews::Told(event) => self.event(event, &format!("{id}: ")),
            _ => {}
        }
    }

    fn result(&mut self, outcome: &Outcome) {
        for denial in &outcome.denials {
            self.note("permissions", &format!("{} {} was denied", denial.tool, denial.call));
        }
        let words = format!(
            "ended: {}{}, {} ms, {} ms of them with the model, ${:.4} so far",
            outcome.terminal.name(),
            if outcome.is_error { " (an error)" } else { "" },
            outcome.duration.as_millis(),
            outcome.duration_api.as_millis(),
            outcome.cost_usd
        );
        self.note("session", &words);
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // There was no session. Whoever named a file reads there how far it came.
        self.open(None);
    }
}

fn size(entry: &Entry) -> String {
    format!("{} bytes", entry.json.len())
}

/// What is told of.
struct Filter {
    only: Vec<String>,
    not: Vec<String>,
}

impl Filter {
    fn of(words: &str) -> Self {
        let words = words.split(',').map(|word| word.trim().to_ascii_lowercase());
        let (not, only): (Vec<_>, Vec<_>) =
            words.filter(|word| !word.is_empty()).partition(|word| word.starts_with('!'));
        Self { only, not: not.into_iter().map(|word| word[1..].to_owned()).collect() }
    }

    fn wants(&self, about: &str) -> bool {
        (self.only.is_empty() || self.only.iter().any(|name| name == about))
            && !self.not.iter().any(|name| name == about)
    }
}

#[cfg(test)]
mod tests {
    use pelton_model::RealWorld;

    use super::*;

    #[test]
    fn a_filter_names_what_is_wanted_or_what_is_not() {
        for (filter, api, hooks, mcp) in [
            ("", true, true, true),
            (" , ", true, true, true),
            ("api", true, false, false),
            ("API, hooks", true, true, false),
            ("!api", false, true, true),
            ("!api,!mcp", false, true, false),
            ("api,mcp,!mcp", true, false, false),
        ] {
            let filter_of = Filter::of(filter);
            let told = ["api", "hooks", "mcp"].map(|about| filter_of.wants(about));
            assert_eq!(told, [api, hooks, mcp], "{filter:?}");
        }
    }

    /// What was written, for the test to see.
    #[derive(Clone, Default)]
    struct Seen(Arc<Mutex<Vec<u8>>>);

    impl Write for Seen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_wait_until_it_is_known_where_they_go_and_then_go_in_order() {
        let seen = Seen::default();
        let out = seen.clone();
        let log = DebugLog::new("", Arc::new(RealWorld::new()), move |session| {
            assert_eq!(session, None, "there was no session");
            Ok(Box::new(out))
        });
        log.note("start", "one\ntwo");
        log.note("start", &"x".repeat(WAITING_BYTES_MAX));
        log.note("start", "three");
        assert!(seen.0.lock().unwrap().is_empty());
        drop(log);
        let text = String::from_utf8(seen.0.lock().unwrap().clone()).unwrap();
        let words: Vec<&str> = text.lines().map(|line| line.split_once("[start] ").unwrap().1).collect();
        assert_eq!(words, ["one two", "three"], "what is too much is left out");
    }
}
