//! Where a test takes place: a working directory, a configuration directory, a model that plays a script.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use futures::{Stream, StreamExt};
use pelton::history::{Entry, Kind};
use pelton::permission::Mode;
use pelton::transcript::{self, Durability};
use pelton::{Engine, Event, Options, Outcome, Prompt, Resumed, Sessions, Terminal};
use pelton_model::{Auth, Endpoint, Secret};
use pelton_testkit::{Script, ScriptedModel};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A test that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A place with a scripted model in it.
pub struct Stage {
    pub model: ScriptedModel,
    dir: TempDir,
}

impl Stage {
    pub async fn new(script: Script) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        Self { model: script.start().await.unwrap(), dir }
    }

    /// The same place with another model in it.
    pub async fn playing(self, script: Script) -> Self {
        Self { model: script.start().await.unwrap(), dir: self.dir }
    }

    /// The working directory, without links in it.
    pub fn cwd(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("work")
    }

    /// The configuration directory. Nothing is made there until something is said.
    pub fn config_dir(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("config")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.cwd().join(name)
    }

    pub fn write(&self, name: &str, content: &str) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// A recorded session in which everything may run and nobody waits long for a retry.
    pub fn options(&self) -> Options {
        let endpoint = Endpoint::new(self.model.base_url(), Auth::ApiKey(Secret::new("test")));
        let mut options = Options::new(self.cwd(), endpoint);
        options.mode = Mode::BypassPermissions;
        options.retry.base = Duration::from_millis(2);
        options.retry.cap = Duration::from_millis(10);
        options.env = vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
        options.temp_dir = self.dir.path().to_path_buf();
        options.sessions = Some(Sessions { config_dir: self.config_dir(), durability: Durability::Fast });
        options
    }

    pub fn engine(&self) -> Engine {
        Engine::new(self.options()).unwrap()
    }

    /// The same with some options changed.
    pub fn engine_with(&self, change: impl FnOnce(&mut Options)) -> Engine {
        let mut options = self.options();
        change(&mut options);
        Engine::new(options).unwrap()
    }

    /// What another process would do: a new engine that knows nothing but the file.
    pub fn resume(&self, file: &Path) -> Engine {
        self.engine_with(|options| resume_from(options, file))
    }

    /// The body of the n-th request for a reply, counted from 1.
    #[track_caller]
    pub fn request(&self, nth: usize) -> Arc<Value> {
        let requests = self.model.reply_requests();
        let seen = requests.get(nth - 1);
        Arc::clone(&seen.unwrap_or_else(|| panic!("only {} requests came", requests.len())).body)
    }

    pub fn request_count(&self) -> usize {
        self.model.reply_requests().len()
    }

    /// No request was refused or unforeseen, and the whole script was played.
    #[track_caller]
    pub fn assert_all_played(&self) {
        self.model.assert_clean();
        self.model.assert_played_out();
    }
}

pub fn resume_from(options: &mut Options, file: &Path) {
    let conversation = transcript::read_window(file).unwrap();
    options.resume = Some(Resumed { file: file.to_path_buf(), conversation });
}

pub fn prompt(text: &str) -> Prompt {
    Prompt::text(text).unwrap()
}

/// Submits a prompt and pulls everything that comes of it.
pub async fn run(engine: &mut Engine, text: &str) -> Told {
    let mut events = engine.submit(prompt(text));
    Told(rest(&mut events).await)
}

/// Pulls a stream to its end.
pub async fn rest(events: &mut (impl Stream<Item = Event> + Unpin)) -> Vec<Event> {
    let all = events.collect();
    tokio::time::timeout(PATIENCE, all).await.expect("the submission does not end")
}

/// Pulls until an event of a kind has come; that event is the last of what is returned.
pub async fn until(
    events: &mut (impl Stream<Item = Event> + Unpin),
    wanted: impl Fn(&Event) -> bool,
) -> Vec<Event> {
    let mut told = Vec::new();
    loop {
        let next = tokio::time::timeout(PATIENCE, events.next()).await.expect("nothing more comes");
        let event = next.unwrap_or_else(|| panic!("the stream ended before what was waited for: {told:#?}"));
        let found = wanted(&event);
        told.push(event);
        if found {
            return told;
        }
    }
}

/// Pulls while something else is waited for: nothing runs unless it is pulled.
pub async fn pulling<T>(
    events: &mut (impl Stream<Item = Event> + Unpin),
    awaited: impl Future<Output = T>,
) -> (Vec<Event>, T) {
    let mut told = Vec::new();
    let mut awaited = pin!(tokio::time::timeout(PATIENCE, awaited));
    loop {
        match select(awaited.as_mut(), events.next()).await {
            Either::Left((done, _)) => return (told, done.expect("waited in vain")),
            Either::Right((Some(event), _)) => told.push(event),
            // It has ended; what is waited for may still come.
            Either::Right((None, _)) => return (told, awaited.await.expect("waited in vain")),
        }
    }
}

/// Waits until something outside of the stream holds.
pub async fn holds(condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("it never held");
}

/// Everything a submission told.
#[derive(Debug)]
pub struct Told(pub Vec<Event>);

impl Told {
    /// The result. That there is exactly one, and at the end, is checked in passing.
    #[track_caller]
    pub fn outcome(&self) -> &Outcome {
        let results = self.0.iter().filter(|event| matches!(event, Event::Result(_))).count();
        assert_eq!(results, 1, "one result per submission");
        match self.0.last() {
            Some(Event::Result(outcome)) => outcome,
            other => panic!("the result comes last, not {other:?}"),
        }
    }

    #[track_caller]
    pub fn assert_completed(&self) -> &Outcome {
        let outcome = self.outcome();
        assert_eq!(outcome.terminal, Terminal::Completed, "{outcome:#?}");
        assert!(!outcome.is_error, "{outcome:#?}");
        outcome
    }

    /// Everything recorded, in order.
    pub fn entries(&self) -> Vec<&Arc<Entry>> {
        self.0.iter().filter_map(entry_of).collect()
    }

    /// Ids of the calls whose results were told, in the order of telling.
    pub fn results(&self) -> Vec<String> {
        let call = |entry: &&Arc<Entry>| match &entry.kind {
            Kind::ToolResult { call, .. } => Some(call.to_string()),
            _ => None,
        };
        self.entries().iter().filter_map(call).collect()
    }

    /// The names of the reasons the loop went on for, in order.
    pub fn transitions(&self) -> Vec<&'static str> {
        let name = |event: &Event| match event {
            Event::Transition(transition) => Some(transition.name()),
            _ => None,
        };
        self.0.iter().filter_map(name).collect()
    }

    pub fn retries(&self) -> Vec<&pelton_model::Notice> {
        let mut notices = Vec::new();
        for event in &self.0 {
            if let Event::Retry(notice) = event {
                notices.push(notice);
            }
        }
        notices
    }

    /// Why the loop did something, each time.
    pub fn loop_reasons(&self, kind: &str) -> Vec<String> {
        let reason = |event: &Event| match event {
            Event::Loop(told) if told.kind.name() == kind => Some(told.reason.clone()),
            _ => None,
        };
        self.0.iter().filter_map(reason).collect()
    }

    /// Where an event stands among the others.
    #[track_caller]
    pub fn position(&self, wanted: impl Fn(&Event) -> bool) -> usize {
        self.0.iter().position(wanted).expect("no such event")
    }
}

/// The entry an event tells of.
pub fn entry_of(event: &Event) -> Option<&Arc<Entry>> {
    match event {
        Event::Prompt(entry) | Event::Message(entry) => Some(entry),
        _ => None,
    }
}

/// The words of an entry.
pub fn words_of(entry: &Entry) -> String {
    text_of(&serde_json::from_slice(&entry.json).unwrap())
}

/// Whether an event is the recorded result of this call.
pub fn is_result_of(event: &Event, id: &str) -> bool {
    matches!(entry_of(event).map(|entry| &entry.kind), Some(Kind::ToolResult { call, .. }) if &**call == id)
}

/// Whether a call has begun to run.
pub fn is_start_of(event: &Event, id: &str) -> bool {
    matches!(event, Event::ToolStarted(started) if &*started.call == id)
}

/// The blocks of all messages of one role in a request, in order.
pub fn blocks<'a>(request: &'a Value, role: &str) -> Vec<&'a Value> {
    let messages = request["messages"].as_array().unwrap().iter();
    messages
        .filter(|message| message["role"] == role)
        .flat_map(|message| message["content"].as_array().unwrap())
        .collect()
}

/// The blocks of the last message of a request, which is in the user's role.
#[track_caller]
pub fn last_user_blocks(request: &Value) -> &[Value] {
    let last = request["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "user");
    last["content"].as_array().unwrap()
}

/// The results in a request, oldest first: id, whether it is an error, and the text.
pub fn results_in(request: &Value) -> Vec<(String, bool, String)> {
    let results = blocks(request, "user").into_iter().filter(|block| block["type"] == "tool_result");
    results
        .map(|block| {
            let is_error = block["is_error"].as_bool().unwrap_or_default();
            (block["tool_use_id"].as_str().unwrap().to_owned(), is_error, text_of(&block["content"]))
        })
        .collect()
}

/// The text of a content array or string.
pub fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        other => panic!("not content: {other}"),
    }
}

/// A request without its cache marks, which move on by design.
pub fn unmarked(request: &Value) -> Value {
    match request {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| *name != "cache_control");
            Value::Object(kept.map(|(name, value)| (name.clone(), unmarked(value))).collect())
        }
        Value::Array(items) => items.iter().map(unmarked).collect(),
        other => other.clone(),
    }
}

/// How many cache marks a request carries.
pub fn marks(request: &Value) -> usize {
    match request {
        Value::Object(fields) => {
            usize::from(fields.contains_key("cache_control")) + fields.values().map(marks).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(marks).sum(),
        _ => 0,
    }
}

/// The lines of a transcript that are part of the conversation. What the loop noted stands beside it.
#[track_caller]
pub fn lines(file: &Path) -> Vec<Value> {
    all_lines(file).into_iter().filter(|line| line.get("uuid").is_some()).collect()
}

/// What the loop noted in a transcript: `(kind, reason)`.
#[track_caller]
pub fn notes(file: &Path) -> Vec<(String, String)> {
    let word = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    let all = all_lines(file);
    let noted = all.iter().filter(|line| line["subtype"] == "loop_event");
    noted.map(|line| (word(line, "kind"), word(line, "reason"))).collect()
}

#[track_caller]
fn all_lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The input of a Bash call.
pub fn sh(command: &str) -> Value {
    json!({"command": command})
}
