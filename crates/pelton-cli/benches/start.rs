//! What a session costs before it does anything: from starting the program to its first frame, and the memory it has while it
//! waits. The figures of the specification stand beside what is measured; where the reference CLI is on the path, it does the same.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pelton_testkit::{Script, ScriptedModel, Step, text};

const ROUNDS: usize = 21;
const REFERENCE_ROUNDS: usize = 5;
/// Time that a session has to come to rest.
const REST: Duration = Duration::from_millis(300);
const REFERENCE: &str = "claude";

/// A server that never answers.
const SILENT: &str = r#"{"mcpServers":{"silent":{"command":"sleep","args":["60"]}}}"#;

const INITIALIZE: &str =
    r#"{"type":"control_request","request_id":"r","request":{"subtype":"initialize","hooks":null}}"#;
const PROMPT: &str =
    r#"{"type":"user","session_id":"","message":{"role":"user","content":"hi"},"parent_tool_use_id":null}"#;

fn main() {
    let dir = tempfile::tempdir().expect("a directory");
    let model = Script::new().step(Step::reply([text("hello")]).always()).start_on_thread().expect("a model");
    let ours = Measured::of(env!("CARGO_BIN_EXE_pelton"), dir.path(), &model, ROUNDS);
    println!(
        "spawn to system/init: {:.1} ms (at most 30); memory before the first prompt {:.1} MB, after it {:.1} MB (at most 15)",
        ours.init.as_secs_f64() * 1e3,
        ours.before_mb,
        ours.after_mb
    );
    let waiting =
        Session::start_with(env!("CARGO_BIN_EXE_pelton"), dir.path(), &model, &["--mcp-config", SILENT])
            .first_frame();
    println!("the same with a server that says nothing: {:.1} ms (at most 100)", waiting.as_secs_f64() * 1e3);
    let version = version_time();
    println!("spawn to the end of --version: {:.1} ms (at most 20)", version.as_secs_f64() * 1e3);
    if !is_on_path(REFERENCE) {
        println!("the reference CLI is not on the path: nothing to compare with");
        return;
    }
    let other = Measured::of(REFERENCE, dir.path(), &model, REFERENCE_ROUNDS);
    println!(
        "the reference CLI: {:.0} ms, {:.0} MB; {:.1} times as long (at least 15)",
        other.init.as_secs_f64() * 1e3,
        other.after_mb,
        other.init.as_secs_f64() / ours.init.as_secs_f64()
    );
}

/// The medians of some sessions.
struct Measured {
    init: Duration,
    before_mb: f64,
    after_mb: f64,
}

impl Measured {
    fn of(program: &str, dir: &Path, model: &ScriptedModel, rounds: usize) -> Self {
        let mut init: Vec<Duration> =
            (0..rounds).map(|_| Session::start(program, dir, model).first_frame()).collect();
        let mut rests: Vec<(f64, f64)> =
            (0..rounds.min(5)).map(|_| Session::start(program, dir, model).at_rest()).collect();
        init.sort();
        rests.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (before_mb, after_mb) = rests[rests.len() / 2];
        Self { init: init[rounds / 2], before_mb, after_mb }
    }
}

struct Session {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    began: Instant,
}

impl Session {
    fn start(program: &str, dir: &Path, model: &ScriptedModel) -> Self {
        Self::start_with(program, dir, model, &[])
    }

    fn start_with(program: &str, dir: &Path, model: &ScriptedModel, words: &[&str]) -> Self {
        let mut command = Command::new(program);
        command
            .args(words)
            .args(["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", dir)
            .env("CLAUDE_CONFIG_DIR", dir.join("config"))
            .env("CLAUDE_CODE_ENTRYPOINT", "sdk-py")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("ANTHROPIC_BASE_URL", model.base_url())
            .env("ANTHROPIC_API_KEY", "sk-test")
            .current_dir(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let began = Instant::now();
        let mut child = command.spawn().expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, lines, began }
    }

    fn say(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut().expect("a pipe");
        stdin.write_all(format!("{line}\n").as_bytes()).expect("it reads");
    }

    fn until(&mut self, words: &str) {
        let found = self.lines.by_ref().map_while(Result::ok).any(|line| line.contains(words));
        assert!(found, "{words} did not come");
    }

    fn first_frame(mut self) -> Duration {
        self.say(INITIALIZE);
        self.say(PROMPT);
        self.until(r#""subtype":"init""#);
        self.began.elapsed()
    }

    fn at_rest(mut self) -> (f64, f64) {
        self.say(INITIALIZE);
        self.until("control_response");
        std::thread::sleep(REST);
        let before = self.memory_mb();
        self.say(PROMPT);
        self.until(r#""type":"result""#);
        std::thread::sleep(REST);
        (before, self.memory_mb())
    }

    /// What of it is in memory.
    fn memory_mb(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        resident.and_then(|kb| kb.trim().trim_end_matches(" kB").parse::<f64>().ok()).unwrap_or(0.0) / 1e3
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // It waits for more; it is not needed any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn version_time() -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let began = Instant::now();
            let ran = Command::new(env!("CARGO_BIN_EXE_pelton"))
                .arg("--version")
                .output()
                .expect("the program starts");
            assert!(ran.status.success());
            began.elapsed()
        })
        .collect();
    times.sort();
    times[ROUNDS / 2]
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
