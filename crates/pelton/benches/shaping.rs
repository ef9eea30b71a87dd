//! What a turn costs beside writing its request, early in a session and late: it must not depend on how much was said.
//!
//!     scripts/bench shaping
//!
//! Whole turns of a real engine are measured, with its record on the disk, from an answer to the moment the next request
//! is handed to whoever writes its bytes. CPU time counts, of all threads, so the figures hold on a busy machine. Only what
//! the server would do is left out. Early and late turns take turns, too, so that both see the same weather; of each the
//! usual turn is told (the median), and what all of them cost together (the mean), with every boundary among them.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use nix::time::{ClockId, clock_gettime};
use pelton::tools::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx};
use pelton::transcript::Durability;
use pelton::{Engine, Event, Options, Prompt, Sessions};
use pelton_model::{Auth, Endpoint, Post, Response, Secret, Transport, TransportError};
use serde_json::{Value, json};

/// The turns that are compared, each with those around it.
const EARLY: std::ops::Range<usize> = 6..16;
const LATE: std::ops::Range<usize> = 1_900..2_100;
const TURNS: usize = 2_110;
/// How often both are measured, and how many short sessions there are for each long one.
const ROUNDS: usize = 3;
const EARLY_SESSIONS: usize = 12;
const EARLY_TURNS: usize = 20;
/// More than this would not be flat.
const RATIO_MAX: f64 = 1.5;
/// What each turn adds to the conversation.
const SAID_BYTES: usize = 300;
const RESULT_BYTES: usize = 1_200;

/// How the turns of a session come about.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// One prompt, and a call in each turn.
    Calls,
    /// The same in a window that fills, so that old results are cleared again and again.
    Full,
    /// A prompt for each turn.
    Prompts,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    println!(
        "CPU of a turn beside writing its request, at turn 10 and at turn 2,000 (at most {RATIO_MAX} times):"
    );
    let mut is_flat = true;
    for (way, name) in [
        (Way::Calls, "a call in each turn"),
        (Way::Full, "the same in a window that is nearly full"),
        (Way::Prompts, "a prompt in each turn"),
    ] {
        let (mut early, mut late) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            for _ in 0..EARLY_SESSIONS {
                early.extend_from_slice(&runtime.block_on(session(way, EARLY_TURNS))[EARLY]);
            }
            late.extend_from_slice(&runtime.block_on(session(way, TURNS))[LATE]);
        }
        let usual = Compared::of(&mut early, &mut late, median);
        let mean = Compared::of(&mut early, &mut late, mean);
        println!("{usual}  {name} (mean: {mean})");
        is_flat &= usual.ratio() <= RATIO_MAX && mean.ratio() <= RATIO_MAX;
    }
    if !is_flat {
        println!("a turn costs more than {RATIO_MAX} times as much late in a session");
        std::process::exit(1);
    }
}

/// What a turn takes early and late, in microseconds.
struct Compared {
    early: f64,
    late: f64,
}

impl Compared {
    fn of(early: &mut [Duration], late: &mut [Duration], by: fn(&mut [Duration]) -> Duration) -> Self {
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        Self { early: micros(by(early)), late: micros(by(late)) }
    }

    fn ratio(&self) -> f64 {
        self.late / self.early
    }
}

impl std::fmt::Display for Compared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>5.0} µs {:>5.0} µs  {:.2} times", self.early, self.late, self.ratio())
    }
}

fn median(turns: &mut [Duration]) -> Duration {
    turns.sort_unstable();
    turns[turns.len() / 2]
}

fn mean(turns: &mut [Duration]) -> Duration {
    turns.iter().sum::<Duration>() / u32::try_from(turns.len()).unwrap_or(u32::MAX)
}

/// Plays a session of so many turns, and tells what each of them took.
async fn session(way: Way, turns: usize) -> Vec<Duration> {
    let dir = tempfile::Builder::new().tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let model = Arc::new(Model { way, turns, seen: Mutex::default() });
    let endpoint = Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any")));
    let mut options = Options::new(dir.path(), endpoint);
    options.transport = Arc::clone(&model) as Arc<dyn Transport>;
    options.sessions = Some(Sessions { config_dir: config(dir.path()), durability: Durability::Fast });
    options.tools.push(Arc::new(Look));
    options.model = "claude-opus-5-5".to_owned();
    options.compact.folds = false;
    options.window_tokens = Some(match way {
        // About half of it is old results at turn 2,000.
        Way::Full => 1_000_000,
        Way::Calls | Way::Prompts => 10_000_000,
    });
    let mut engine = Engine::new(options).expect("an engine");
    let prompts = if way == Way::Prompts { turns } else { 1 };
    for prompt in 0..prompts {
        let prompt = Prompt::text(format!("Look at all of it, part {prompt}.")).expect("a prompt");
        let mut events = Box::pin(engine.submit(prompt));
        while let Some(event) = events.next().await {
            if let Event::Result(outcome) = event {
                assert!(!outcome.is_error, "{}", outcome.text);
            }
        }
    }
    let seen = model.seen.lock().unwrap_or_else(PoisonError::into_inner);
    let pairs = seen.iter().zip(seen.iter().skip(1));
    pairs.map(|(this, next)| next.came.saturating_sub(this.left)).collect()
}

fn config(dir: &Path) -> std::path::PathBuf {
    let config = dir.join("config");
    std::fs::create_dir_all(&config).expect("a directory");
    config
}

/// A model that answers at once.
struct Model {
    way: Way,
    turns: usize,
    seen: Mutex<VecDeque<Seen>>,
}

/// A request, by the CPU time of the process.
struct Seen {
    came: Duration,
    left: Duration,
}

impl Transport for Model {
    fn post(&self, post: Post) -> BoxFuture<'static, Result<Response, TransportError>> {
        let came = cpu();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = seen.len();
        let calls = self.way != Way::Prompts && turn + 1 < self.turns;
        let answer = answer(turn, calls, post.body.length());
        seen.push_back(Seen { came, left: cpu() });
        let body = stream::iter([Ok(Bytes::from(answer))]).boxed();
        let mut headers = http::HeaderMap::new();
        headers.insert("content-type", http::HeaderValue::from_static("text/event-stream"));
        async move { Ok(Response { status: 200, headers, body }) }.boxed()
    }
}

/// An answer that counts what it was sent, as servers do.
fn answer(turn: usize, calls: bool, sent_bytes: u64) -> String {
    let tokens = sent_bytes / 4;
    let usage = json!({"input_tokens": 10, "cache_read_input_tokens": tokens * 9 / 10, "cache_creation_input_tokens": tokens / 10, "output_tokens": 1});
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": format!("msg_{turn}"), "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": [], "stop_reason": null, "usage": usage}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": format!("Turn {turn}. {}", "w".repeat(SAID_BYTES))}}),
        json!({"type": "content_block_stop", "index": 0}),
    ];
    if calls {
        let input = json!({"part": turn}).to_string();
        events.extend([
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": format!("toolu_{turn}"), "name": "Look", "input": {}}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": input}}),
            json!({"type": "content_block_stop", "index": 1}),
        ]);
    }
    let reason = if calls { "tool_use" } else { "end_turn" };
    events.extend([
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 120}}),
        json!({"type": "message_stop"}),
    ]);
    let event =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    events.iter().map(event).collect()
}

fn cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("a clock").into()
}

/// A tool that costs nothing.
struct Look;

impl Tool for Look {
    fn spec(&self) -> Spec<'_> {
        Spec { name: "Look", description: "Looks.", input_schema: r#"{"type":"object"}"# }
    }

    fn safety(&self, _: &Value) -> Safety {
        Safety::Shared
    }

    fn access(&self, _: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        Ok(Access::Nothing)
    }

    fn run<'a>(&'a self, input: Value, _: &'a ToolCx) -> BoxFuture<'a, Output> {
        let words = format!("{input}: {}", "r".repeat(RESULT_BYTES));
        async move { Output::text(words) }.boxed()
    }
}
