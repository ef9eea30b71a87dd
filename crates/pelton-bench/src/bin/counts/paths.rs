//! What is counted: each path prepares itself, and does its work inside [`measured_part`].

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use pelton::permission::{HookSays, Judged, Mode, Permissions, RuleSet};
use pelton::tools::access_of;
use pelton::transcript::{self, Durability};
use pelton::{Engine, Options, Priority, Prompt, Resumed, Sessions};
use pelton_bench::events;
use pelton_bench::long_transcript::Lines;
use pelton_model::sse::Decoder;
use pelton_model::{
    Ask, Auth, Client, Endpoint, Post, Prefix, RealWorld, Response, RetryPolicy, Secret, Transport,
    TransportError,
};
use serde_json::json;
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::Failed;

/// Something that is counted.
pub(crate) struct Counted {
    pub name: &'static str,
    /// How often it is done.
    pub times: u64,
    work: fn(u64) -> Result<(), Failed>,
}

const DELTAS: usize = 1_000;

pub(crate) const PATHS: [Counted; 9] = [
    Counted { name: "sse, 1000 events", times: 10, work: sse },
    Counted { name: "blocks of 1000 deltas", times: 10, work: answer },
    Counted { name: "turn at 10 messages", times: 20, work: |times| turn(10, times) },
    Counted { name: "turn at 1000 messages", times: 20, work: |times| turn(1_000, times) },
    Counted { name: "turn at 10000 messages", times: 20, work: |times| turn(10_000, times) },
    Counted { name: "turn that reads a file", times: 20, work: reading },
    Counted { name: "transcript append", times: 50, work: append },
    Counted { name: "permission decision", times: 80, work: permission },
    Counted { name: "token sums at 1000 messages", times: 200, work: sums },
];

pub(crate) fn run(name: &str) -> Result<(), Failed> {
    let path =
        PATHS.iter().find(|path| path.name == name).ok_or_else(|| format!("no path is called '{name}'"))?;
    (path.work)(path.times)
}

/// Callgrind counts what happens in here, on this thread.
#[inline(never)]
fn measured_part(work: &mut dyn FnMut()) {
    work();
}

fn sse(times: u64) -> Result<(), Failed> {
    let bytes = Bytes::from(events::pieces(DELTAS));
    let mut failed = None;
    measured_part(&mut || {
        for _ in 0..times {
            let mut decoder = Decoder::default();
            decoder.push(bytes.clone());
            loop {
                match decoder.next_event() {
                    Ok(Some(event)) => drop(black_box(event)),
                    Ok(None) => break,
                    Err(error) => return failed = Some(error),
                }
            }
        }
    });
    failed.map_or(Ok(()), |error| Err(error.into()))
}

fn answer(times: u64) -> Result<(), Failed> {
    let model = Arc::new(Answers::of([events::pieces(DELTAS)]));
    let client = Client::new(endpoint(), model, RetryPolicy::default(), Arc::new(RealWorld::new()));
    let messages = vec![Bytes::from_static(br#"{"role":"user","content":"hi"}"#)];
    let ask = Ask::new("claude-sonnet-5-5", 1_000, Arc::new(Prefix::default()), messages);
    let runtime = runtime()?;
    measured_part(&mut || {
        for _ in 0..times {
            runtime.block_on(client.call(ask.clone()).for_each(async |step| drop(black_box(step))));
        }
    });
    Ok(())
}

/// A prompt and its answer in a session that has so many messages: what the model is sent is put together once.
fn turn(messages: usize, times: u64) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let nothing = Answers::of([events::answer("Nothing is left to do.")]);
    let mut engine = engine(dir.path(), messages, nothing)?;
    turns(&mut engine, times)
}

/// A prompt, a call that reads a file, and an answer.
fn reading(times: u64) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("a.txt");
    std::fs::write(&file, "A line.\n".repeat(20))?;
    let call = events::call_block(0, 0, "Read", &json!({"file_path": file}));
    let call = events::opening() + &call + &events::closing("tool_use");
    let model = Answers::of([call, events::answer("Nothing is left to do.")]);
    turns(&mut engine(dir.path(), 10, model)?, times)
}

fn turns(engine: &mut Engine, times: u64) -> Result<(), Failed> {
    let runtime = runtime()?;
    let mut failed = None;
    let mut say = |runtime: &Runtime| {
        let asked = Prompt::text("And now?").map(|prompt| {
            runtime.block_on(engine.submit(prompt).for_each(async |event| drop(black_box(event))));
        });
        failed = asked.err();
    };
    // The first one finds everything cold.
    say(&runtime);
    measured_part(&mut || (0..times).for_each(|_| say(&runtime)));
    failed.map_or(Ok(()), |error| Err(error.into()))
}

fn append(times: u64) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let runtime = runtime()?;
    let engine = engine(dir.path(), 10, Answers::of([]))?;
    let queue = engine.queue();
    let words = "a message of a usual length, ".repeat(30);
    let mut failed = None;
    measured_part(&mut || {
        for _ in 0..times {
            let Ok(prompt) = Prompt::text(words.as_str()) else { continue };
            match runtime.block_on(queue.add(prompt, Priority::Later)) {
                Ok(id) => drop(black_box(id)),
                Err(error) => failed = Some(error),
            }
        }
    });
    failed.map_or(Ok(()), |error| Err(error.into()))
}

fn permission(times: u64) -> Result<(), Failed> {
    let cwd = Path::new("/srv/shop");
    let mut rules = RuleSet::default();
    for number in 0..10 {
        rules.allow.push(format!("Bash(cargo test a{number}:*)").parse()?);
        rules.deny.push(format!("Bash(git push a{number}:*)").parse()?);
    }
    rules.deny.push("Read(./secrets/**)".parse()?);
    let permissions = Permissions::new(rules, Mode::Default, cwd.to_path_buf(), Vec::new(), None);
    let commands = [
        "git status",
        "cat Cargo.toml | grep -n version",
        "cd src && cargo test --workspace 2>&1 | tail -n 20",
        "rm -rf target/tmp && mkdir -p out && cp a b",
    ];
    let inputs: Vec<_> = commands.iter().map(|command| json!({"command": command})).collect();
    measured_part(&mut || {
        for input in inputs.iter().cycle().take(usize::try_from(times).unwrap_or(usize::MAX)) {
            let Ok(access) = access_of("Bash", input, cwd) else { continue };
            let call = Judged { tool: "Bash", input, access: &access, cwd, hook: HookSays::Nothing };
            black_box(permissions.judge(&call));
        }
    });
    Ok(())
}

fn sums(times: u64) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let mut engine = engine(dir.path(), 1_000, Answers::of([]))?;
    measured_part(&mut || {
        for _ in 0..times {
            black_box(engine.context_usage());
        }
    });
    Ok(())
}

/// A session that has so many messages already.
fn engine(dir: &Path, messages: usize, model: Answers) -> Result<Engine, Failed> {
    const LINES_PER_ROUND: usize = 5;
    const SHORT_RESULT_BYTES: usize = 200;
    let session = Uuid::from_u128(1);
    let mut options = Options::new(dir, endpoint());
    options.transport = Arc::new(model);
    let config_dir = dir.join("config");
    let file = transcript::session_file(&config_dir, dir, session);
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut lines = Lines::new(session);
    let mut out = Vec::new();
    for _ in 0..messages / LINES_PER_ROUND {
        lines.round(&mut out, SHORT_RESULT_BYTES)?;
    }
    std::fs::write(&file, out)?;
    options.resume = Some(Resumed { conversation: transcript::read(&file)?, file });
    options.sessions = Some(Sessions { config_dir, durability: Durability::Fast });
    options.window_tokens = Some(100_000_000);
    Ok(Engine::new(options)?)
}

fn endpoint() -> Endpoint {
    Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any")))
}

fn runtime() -> Result<Runtime, Failed> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// A model that answers at once: these in turn.
struct Answers {
    answers: Vec<Bytes>,
    next: AtomicUsize,
}

impl Answers {
    fn of<const N: usize>(answers: [String; N]) -> Self {
        Self { answers: answers.map(Bytes::from).into(), next: AtomicUsize::new(0) }
    }
}

impl Transport for Answers {
    fn post(&self, post: Post) -> BoxFuture<'static, Result<Response, TransportError>> {
        black_box(post.body.length());
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let answer = self.answers.get(next % self.answers.len().max(1)).cloned().unwrap_or_default();
        let body = stream::iter([Ok(answer)]).boxed();
        let mut headers = http::HeaderMap::new();
        headers.insert("content-type", http::HeaderValue::from_static("text/event-stream"));
        async move { Ok(Response { status: 200, headers, body }) }.boxed()
    }
}
