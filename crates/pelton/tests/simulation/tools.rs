//! Tools that do as they are told, and write down what they did. `Look` may run beside others, `Change` may not.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use pelton::tools::parse_input;
use pelton::tools::{Access, InvalidInput, Output, Report, Safety, Spec, Tool, ToolCx};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::sleep;

use crate::disk::SimDisk;
use crate::log::Log;

/// Panics of tools and hooks say this: they are no faults of anybody's.
pub const TOLD_TO_PANIC: &str = "told to panic";
/// Characters of a huge answer.
const HUGE_CHARS: usize = 120_000;

/// What calls did, over all processes of a session.
#[derive(Clone)]
pub struct Deeds {
    done: Arc<Mutex<Done>>,
    disk: SimDisk,
    log: Log,
}

#[derive(Default)]
struct Done {
    /// Every call that began: its name in the script, its id, and whether it may have changed something.
    begun: Vec<Begun>,
    running: Vec<String>,
    /// Where the next call should start, once a call has moved there.
    cwd: Option<PathBuf>,
    /// What should not have happened.
    wrong: Vec<String>,
    /// The transcript, if what is written there must be on the disk before anything is changed.
    synced_file: Option<PathBuf>,
}

#[derive(Debug, Clone)]
pub struct Begun {
    pub name: String,
    pub call: String,
    pub alone: bool,
}

impl Deeds {
    pub fn new(disk: SimDisk, log: Log) -> Self {
        Self { done: Arc::default(), disk, log }
    }

    /// A new process begins.
    pub fn boot(&self, synced_file: Option<PathBuf>) {
        let mut done = self.lock();
        done.cwd = None;
        done.synced_file = synced_file;
    }

    pub fn begun(&self) -> Vec<Begun> {
        self.lock().begun.clone()
    }

    pub fn running(&self) -> Vec<String> {
        self.lock().running.clone()
    }

    pub fn wrong(&self) -> Vec<String> {
        self.lock().wrong.clone()
    }

    pub fn tools(&self) -> [Arc<dyn Tool>; 2] {
        let tool = |name, safety| Arc::new(Scripted { name, safety, deeds: self.clone() }) as Arc<dyn Tool>;
        [tool("Look", Safety::Shared), tool("Change", Safety::Alone)]
    }

    fn begin(&self, name: &str, safety: Safety, cx: &ToolCx) -> Running {
        let mut done = self.lock();
        let alone = safety == Safety::Alone;
        self.log.say(format!("tool {name} begins ({})", cx.call_id));
        if let (true, Some(file)) = (alone, done.synced_file.clone())
            && !self.disk.synced_contains(&file, &cx.call_id)
        {
            done.wrong.push(format!("{name} began to change things before its call was on the disk"));
        }
        if let Some(cwd) = done.cwd.clone().filter(|cwd| *cwd != cx.cwd) {
            let got = cx.cwd.display();
            done.wrong.push(format!("{name} starts in {got}, but the last move was to {}", cwd.display()));
        }
        if alone && !done.running.is_empty() {
            let others = done.running.clone();
            done.wrong.push(format!("{name} may change things and runs beside {others:?}"));
        }
        done.begun.push(Begun { name: name.to_owned(), call: cx.call_id.to_string(), alone });
        done.running.push(name.to_owned());
        Running { name: name.to_owned(), deeds: self.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes the end of a call, however it comes.
struct Running {
    name: String,
    deeds: Deeds,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.deeds.lock().running.retain(|name| *name != self.name);
        self.deeds.log.say(format!("tool {} is over", self.name));
    }
}

struct Scripted {
    name: &'static str,
    safety: Safety,
    deeds: Deeds,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The call's name in the script.
    name: String,
    /// How long it takes.
    #[serde(default)]
    ms: u64,
    #[serde(default)]
    does: Does,
    /// A hook was here.
    #[serde(default, rename = "hooked")]
    _hooked: bool,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Does {
    #[default]
    Answer,
    Fail,
    Panic,
    /// Does not end, and does not listen.
    Hang,
    /// Ends when the user interrupts.
    Wait,
    Huge,
    Blank,
    Move,
}

impl Tool for Scripted {
    fn spec(&self) -> Spec<'_> {
        Spec {
            name: self.name,
            description: "Does as it is told.",
            input_schema: r#"{"type":"object","properties":{"name":{"type":"string"},"ms":{"type":"integer"},"does":{"type":"string"}},"required":["name"]}"#,
        }
    }

    fn safety(&self, _: &Value) -> Safety {
        self.safety
    }

    fn access(&self, input: &Value, cx: &ToolCx) -> Result<Access, InvalidInput> {
        parse_input::<Input>(input).map(|_| match self.safety {
            Safety::Shared | Safety::Beside => Access::Read(cx.cwd.clone()),
            Safety::Alone => Access::Edit(cx.cwd.join("changed")),
        })
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let input: Input = parse_input(&input).unwrap();
            let running = self.deeds.begin(&input.name, self.safety, cx);
            cx.progress.report(&cx.call_id, Report::OutputLine(format!("{} is at it", input.name)));
            if input.ms > 0 {
                sleep(Duration::from_millis(input.ms)).await;
            }
            let words = format!("answer of {}", running.name);
            match input.does {
                Does::Answer => Output::text(words),
                Does::Fail => Output::error(words),
                Does::Panic => panic!("{TOLD_TO_PANIC}: {}", running.name),
                Does::Hang => std::future::pending().await,
                Does::Wait => {
                    cx.cancel.cancelled().await;
                    Output::text(format!("{words}, as far as it came"))
                }
                Does::Huge => Output::text(format!("{words} {}", "x".repeat(HUGE_CHARS))),
                Does::Blank => Output::text(" "),
                Does::Move => {
                    let to = if cx.cwd == std::path::Path::new("/") { "/usr" } else { "/" };
                    if self.safety == Safety::Alone {
                        self.deeds.lock().cwd = Some(PathBuf::from(to));
                        return Output::text(words).moved_to(to);
                    }
                    Output::text(words)
                }
            }
        })
    }
}
