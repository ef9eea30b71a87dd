//! What going on with a session costs: a transcript of a gigabyte, a list of thousands, a message that must not be lost.
//! The figures of the specification stand beside what is measured.
//!
//! What is measured in memory runs in a process of its own: this program starts itself with the file's name.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use pelton::transcript::{self, Durability};
use pelton::{Engine, Options, Priority, Prompt, Resumed, Sessions};
use pelton_bench::long_transcript::{BOUNDARIES, Lines, RESULT_BYTES, write_transcript};
use pelton_model::{Auth, Endpoint};
use serde_json::{Value, json};
use uuid::Uuid;

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
    write_transcript(&file, Uuid::from_u128(1), Path::new("/srv/shop")).expect("room for a transcript");
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

fn listing(dir: &Path) {
    let config = dir.join("config");
    for number in 0..SESSIONS_LISTED {
        let folder = config.join("projects").join(format!("-srv-{}", number % 50));
        fs::create_dir_all(&folder).expect("a folder");
        let mut file = BufWriter::new(
            File::create(folder.join(format!("{}.jsonl", Uuid::from_u128(number)))).expect("a file"),
        );
        let mut lines = Lines::new(Uuid::from_u128(1));
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
