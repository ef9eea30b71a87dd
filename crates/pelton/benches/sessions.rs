//! What going on with a session costs: a transcript of a gigabyte, a list of thousands, a message that must not be lost.
//! The figures of the specification stand beside what is measured.
//!
//! What is measured in memory runs in a process of its own: this program starts itself with the file's name.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use pelton::transcript::{self, Durability};
use pelton::{Engine, Options, Priority, Prompt, Resumed, Sessions};
use pelton_model::{Auth, Endpoint};
use serde_json::{Value, json};
use uuid::Uuid;

const TRANSCRIPT_BYTES: u64 = 1_000_000_000;
const BOUNDARIES: u64 = 300;
/// One line of the transcript is as long as this, in the middle of it.
const LONG_LINE_BYTES: usize = 40_000_000;
const RESULT_BYTES: usize = 8_000;
const SESSIONS_LISTED: u128 = 5_000;
const APPENDS: usize = 60;
const ROUNDS: usize = 5;

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    if let Some(file) = words.next() {
        return resume(Path::new(&file));
    }
    let dir = tempfile::Builder::new().tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    resuming(dir.path());
    listing(dir.path());
    appending(dir.path());
}

/// Goes on with a session, and tells how long that took and how much memory this process has had.
fn resume(file: &Path) {
    let began = Instant::now();
    let conversation = transcript::read_window(file).expect("a transcript");
    let entries = conversation.entries.len();
    let mut options = Options::new("/", Endpoint::new("http://127.0.0.1", Auth::None));
    options.resume = Some(Resumed { file: file.to_path_buf(), conversation });
    let engine = Engine::new(options).expect("an engine");
    let took = began.elapsed();
    let report = json!({"ms": took.as_secs_f64() * 1e3, "kb": peak_memory_kb(), "entries": entries});
    drop(engine);
    println!("{report}");
}

fn resuming(dir: &Path) {
    let file = dir.join(format!("{}.jsonl", Uuid::from_u128(1)));
    write_transcript(&file).expect("room for a transcript");
    let me = std::env::current_exe().expect("this program");
    let run = || {
        let ran = Command::new(&me).arg(&file).output().expect("this program runs");
        serde_json::from_slice::<Value>(&ran.stdout).expect("a report")
    };
    let mut reports: Vec<Value> = (0..ROUNDS).map(|_| run()).collect();
    reports.sort_by(|a, b| a["ms"].as_f64().partial_cmp(&b["ms"].as_f64()).expect("numbers"));
    let median = &reports[ROUNDS / 2];
    let size = file.metadata().expect("the transcript").len();
    println!(
        "resume of {} MB with {BOUNDARIES} boundaries: {:.0} ms (at most 300), {:.0} MB of memory (at most 80), {} entries",
        size / 1_000_000,
        median["ms"].as_f64().unwrap_or_default(),
        median["kb"].as_f64().unwrap_or_default() / 1e3,
        median["entries"],
    );
}

/// A transcript as long sessions leave it.
fn write_transcript(path: &Path) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut writer = Lines { newest: None, count: 1 };
    let mut written = 0;
    for boundary in 0..BOUNDARIES {
        written += writer.boundary(&mut file)?;
        while written < TRANSCRIPT_BYTES * (boundary + 1) / BOUNDARIES {
            written += writer.round(&mut file, RESULT_BYTES)?;
        }
        if boundary == BOUNDARIES / 2 {
            written += writer.round(&mut file, LONG_LINE_BYTES)?;
        }
    }
    file.flush()
}

struct Lines {
    newest: Option<Uuid>,
    count: u128,
}

impl Lines {
    fn line(&mut self, file: &mut impl Write, mut line: Value) -> io::Result<u64> {
        self.count += 1;
        let id = Uuid::from_u128(self.count << 64 | 1);
        line["uuid"] = json!(id);
        if line["subtype"].is_null() {
            line["parentUuid"] = json!(self.newest);
        } else {
            (line["parentUuid"], line["logicalParentUuid"]) = (Value::Null, json!(self.newest));
        }
        line["sessionId"] = json!(Uuid::from_u128(1));
        line["timestamp"] = json!("2026-01-01T00:00:00.000Z");
        line["cwd"] = json!("/srv/shop");
        self.newest = Some(id);
        let text = format!("{line}\n");
        file.write_all(text.as_bytes())?;
        Ok(text.len() as u64)
    }

    fn boundary(&mut self, file: &mut impl Write) -> io::Result<u64> {
        let boundary = json!({"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted",
            "compactMetadata": {"trigger": "auto", "preTokens": 155_000}});
        let summary = json!({"type": "user", "isCompactSummary": true,
            "message": {"role": "user", "content": "So far: jars were counted. ".repeat(200)}});
        Ok(self.line(file, boundary)? + self.line(file, summary)?)
    }

    fn round(&mut self, file: &mut impl Write, bytes: usize) -> io::Result<u64> {
        let call = format!("toolu_{}", self.count);
        let answer = |block: Value| {
            let message =
                json!({"id": "msg", "role": "assistant", "model": "claude-sonnet-5-5", "content": [block]});
            json!({"type": "assistant", "message": message})
        };
        let result = json!([{"type": "tool_result", "tool_use_id": call, "content": "0123456 jar\n".repeat(bytes / 12)}]);
        let lines = [
            json!({"type": "user", "message": {"role": "user", "content": "Count the jars on the next shelf."}}),
            answer(json!({"type": "text", "text": "I will look at it."})),
            answer(
                json!({"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "cat shelf"}}),
            ),
            json!({"type": "user", "message": {"role": "user", "content": result}}),
            answer(json!({"type": "text", "text": "There are 12."})),
        ];
        lines.into_iter().try_fold(0, |written, line| Ok(written + self.line(file, line)?))
    }
}

fn listing(dir: &Path) {
    let config = dir.join("config");
    for number in 0..SESSIONS_LISTED {
        let folder = config.join("projects").join(format!("-srv-{}", number % 50));
        fs::create_dir_all(&folder).expect("a folder");
        let mut file = BufWriter::new(
            File::create(folder.join(format!("{}.jsonl", Uuid::from_u128(number)))).expect("a file"),
        );
        let mut lines = Lines { newest: None, count: 1 };
        for _ in 0..5 {
            lines.round(&mut file, RESULT_BYTES).expect("room for a session");
        }
    }
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let began = Instant::now();
            let listed = transcript::list_sessions(&config);
            assert!(listed.len() as u128 == SESSIONS_LISTED && listed[0].facts.first_prompt.is_some());
            began.elapsed()
        })
        .collect();
    println!(
        "list of {SESSIONS_LISTED} sessions: {:.0} ms (at most 200)",
        median(&mut times).as_secs_f64() * 1e3
    );
}

/// A prompt that waits is written and synced before anybody is told that it was taken.
fn appending(dir: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
    let mut options = Options::new(dir, Endpoint::new("http://127.0.0.1", Auth::None));
    options.sessions = Some(Sessions { config_dir: dir.join("durable"), durability: Durability::Synced });
    let engine = Engine::new(options).expect("an engine");
    let queue = engine.queue();
    let bare = File::options().append(true).create(true).open(dir.join("bare")).expect("a file");
    let words = "a message of a usual length, ".repeat(30);
    let mut line = words.clone().into_bytes();
    line.push(b'\n');
    let (mut durable_times, mut bare_times) = (Vec::new(), Vec::new());
    for _ in 0..APPENDS {
        let began = Instant::now();
        (&bare).write_all(&line).and_then(|()| bare.sync_data()).expect("room for a line");
        bare_times.push(began.elapsed());
        let prompt = Prompt::text(words.as_str()).expect("a prompt");
        let began = Instant::now();
        runtime.block_on(queue.add(prompt, Priority::Later)).expect("it is taken");
        durable_times.push(began.elapsed());
    }
    let (durable, bare) = (median(&mut durable_times), median(&mut bare_times));
    println!(
        "a durable message: {:.2} × a bare write and fdatasync (at most 1.5): {durable:.1?} against {bare:.1?}",
        durable.as_secs_f64() / bare.as_secs_f64(),
    );
}

fn peak_memory_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}
