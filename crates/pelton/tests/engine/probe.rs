//! Tools whose running can be observed: they write down when they begin and end, and wait for each other instead
//! of for the clock.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use pelton::tools::parse_input;
use pelton::tools::{Access, InvalidInput, Output, Report, Safety, Spec, Tool, ToolCx};
use serde::Deserialize;
use serde_json::Value;

/// A call that waits longer for another waits in vain.
const WAIT: Duration = Duration::from_secs(5);

/// What happened to the calls, in order.
#[derive(Clone, Default)]
pub struct Notes(Arc<Mutex<Vec<(Instant, Note)>>>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    Begun(String),
    Ended(String),
    /// The call's future was dropped before its end.
    Dropped(String),
}

impl Notes {
    pub fn all(&self) -> Vec<Note> {
        self.0.lock().unwrap().iter().map(|(_, note)| note.clone()).collect()
    }

    pub fn has(&self, note: &Note) -> bool {
        self.0.lock().unwrap().iter().any(|(_, noted)| noted == note)
    }

    /// When a call began and ended.
    #[track_caller]
    pub fn span(&self, name: &str) -> (Instant, Instant) {
        let notes = self.0.lock().unwrap();
        let at = |note: Note| notes.iter().find(|(_, noted)| *noted == note).expect("it was noted").0;
        (at(Note::Begun(name.to_owned())), at(Note::Ended(name.to_owned())))
    }

    pub fn begun(&self) -> Vec<String> {
        let begun = |note| match note {
            Note::Begun(name) => Some(name),
            _ => None,
        };
        self.all().into_iter().filter_map(begun).collect()
    }

    /// The most calls that ran at the same time.
    pub fn running_most(&self) -> usize {
        let (mut running, mut most) = (0_usize, 0);
        for note in self.all() {
            match note {
                Note::Begun(_) => running += 1,
                Note::Ended(_) | Note::Dropped(_) => running -= 1,
            }
            most = most.max(running);
        }
        most
    }

    fn add(&self, note: Note) {
        self.0.lock().unwrap().push((Instant::now(), note));
    }

    /// Two tools that write here: `Look` may run beside others, `Change` may not.
    pub fn tools(&self) -> [Arc<dyn Tool>; 2] {
        let probe = |spec, safety| Arc::new(Probe { spec, safety, notes: self.clone() }) as Arc<dyn Tool>;
        [probe(LOOK, Safety::Shared), probe(CHANGE, Safety::Alone)]
    }
}

macro_rules! spec {
    ($name:literal) => {
        Spec {
            name: $name,
            description: "Notes that it runs.",
            input_schema: r#"{"type":"object","properties":{"name":{"type":"string"},"after_begin":{"type":"string"},"after_end":{"type":"string"},"ms":{"type":"integer"},"says":{"type":"string"},"does":{"type":"string"}},"required":["name"]}"#,
        }
    };
}

const LOOK: Spec<'static> = spec!("Look");
const CHANGE: Spec<'static> = spec!("Change");

struct Probe {
    spec: Spec<'static>,
    safety: Safety,
    notes: Notes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    /// What the call is called in the notes.
    name: String,
    /// Goes on when this call has begun.
    after_begin: Option<String>,
    /// Goes on when this call has ended.
    after_end: Option<String>,
    /// Takes at least so long.
    ms: Option<u64>,
    /// What it answers; its name unless given.
    says: Option<String>,
    /// `fail`, `panic` or `hang`.
    does: Option<String>,
}

impl Tool for Probe {
    fn spec(&self) -> Spec<'_> {
        self.spec
    }

    fn safety(&self, _input: &Value) -> Safety {
        self.safety
    }

    fn access(&self, input: &Value, cx: &ToolCx) -> Result<Access, InvalidInput> {
        parse_input::<Input>(input).map(|_| match self.safety {
            Safety::Shared => Access::Read(cx.cwd.clone()),
            Safety::Alone | Safety::Beside => Access::Edit(cx.cwd.join("changed")),
        })
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let input: Input = parse_input(&input).unwrap();
            self.notes.add(Note::Begun(input.name.clone()));
            let mut running = Running { name: input.name, notes: self.notes.clone(), ended: false };
            cx.progress.report(&cx.call_id, Report::OutputLine(format!("{} has begun", running.name)));
            let awaited = [input.after_begin.map(Note::Begun), input.after_end.map(Note::Ended)];
            for note in awaited.into_iter().flatten() {
                let wait = async {
                    while !self.notes.has(&note) {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                };
                if tokio::time::timeout(WAIT, wait).await.is_err() {
                    return Output::error(format!("waited in vain for {note:?}"));
                }
            }
            tokio::time::sleep(Duration::from_millis(input.ms.unwrap_or_default())).await;
            match input.does.as_deref() {
                Some("panic") => panic!("{} was told to", running.name),
                Some("hang") => std::future::pending().await,
                _ => {}
            }
            running.ended = true;
            let says = input.says.unwrap_or_else(|| running.name.clone());
            if input.does.as_deref() == Some("fail") { Output::error(says) } else { Output::text(says) }
        })
    }
}

/// Notes the end however it comes.
struct Running {
    name: String,
    notes: Notes,
    ended: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        let name = self.name.clone();
        self.notes.add(if self.ended { Note::Ended(name) } else { Note::Dropped(name) });
    }
}
