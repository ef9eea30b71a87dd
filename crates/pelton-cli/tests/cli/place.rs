//! Where a process under test runs: a home, a configuration and a working directory of its own, an environment with
//! nothing in it but what is needed, and a time after which it counts as hung.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pelton_testkit::{Script, ScriptedModel};
use serde_json::Value;

/// A process that has not ended after this long hangs.
const HUNG_AFTER: Duration = Duration::from_secs(30);

/// What all threads of a process have worked so far.
pub fn worked(process: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let spent = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(spent.sum())
}

/// A place of its own for one test.
pub struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let place = Self { dir };
        for folder in [place.home(), place.config(), place.work(), place.temp()] {
            std::fs::create_dir(folder).unwrap();
        }
        place
    }

    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub fn config(&self) -> PathBuf {
        self.dir.path().join("config")
    }

    /// The working directory.
    pub fn work(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("work")
    }

    pub fn temp(&self) -> PathBuf {
        self.dir.path().join("temp")
    }

    /// Puts a file into the working directory.
    pub fn put(&self, name: &str, content: &str) -> PathBuf {
        let file = self.work().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, content).unwrap();
        file
    }

    /// A file of the working directory.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.work().join(name)).unwrap()
    }

    pub fn has(&self, name: &str) -> bool {
        self.work().join(name).exists()
    }

    /// `pelton` with these words, without a key.
    pub fn pelton<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pelton"));
        command.args(words);
        self.surround(&mut command);
        command
    }

    /// Another program in the same surroundings.
    pub fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("PELTON", env!("CARGO_BIN_EXE_pelton"));
        self.surround(&mut command);
        command.env("PELTON", env!("CARGO_BIN_EXE_pelton"));
        command
    }

    /// `pelton -p` with these words, asking this model.
    pub fn task<'a>(&self, model: &ScriptedModel, words: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.pelton(std::iter::once("-p").chain(words));
        command.asks(model);
        command
    }

    /// The transcripts, oldest first.
    pub fn transcripts(&self) -> Vec<PathBuf> {
        let Ok(projects) = std::fs::read_dir(self.config().join("projects")) else { return Vec::new() };
        let files = projects.flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
        let mut files: Vec<PathBuf> =
            files.map(|file| file.unwrap().path()).filter(|file| file.is_file()).collect();
        files.sort_by_key(|file| file.metadata().unwrap().modified().unwrap());
        files
    }

    /// The lines of the only transcript.
    #[track_caller]
    pub fn transcript(&self) -> Vec<Value> {
        let files = self.transcripts();
        assert_eq!(files.len(), 1, "{files:?}");
        lines_of(&files[0])
    }

    fn surround(&self, command: &mut Command) {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.home())
            .env("CLAUDE_CONFIG_DIR", self.config())
            .env("TMPDIR", self.temp())
            .current_dir(self.work())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }
}

/// The JSON lines of a file; a torn last line is left out.
pub fn lines_of(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// A model on a thread of its own, which may block as it likes.
pub fn model(script: Script) -> ScriptedModel {
    script.start_on_thread().unwrap()
}

/// Waits for something a scripted model tells.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Waits until something is so.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < HUNG_AFTER, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The commands of tests.
pub trait Commanded {
    fn asks(&mut self, model: &ScriptedModel) -> &mut Self;
    fn start(&mut self) -> Running;
    fn run(&mut self) -> Ran;
    fn run_with_input(&mut self, input: &str) -> Ran;
}

impl Commanded for Command {
    /// Points it at a model, with a key.
    fn asks(&mut self, model: &ScriptedModel) -> &mut Self {
        self.env("ANTHROPIC_BASE_URL", model.base_url()).env("ANTHROPIC_API_KEY", "sk-test")
    }

    fn start(&mut self) -> Running {
        let mut child = self.spawn().unwrap();
        let out = child.stdout.take().map(collect);
        let err = child.stderr.take().map(collect);
        Running { stdin: child.stdin.take(), child, out, err, began: Instant::now() }
    }

    fn run(&mut self) -> Ran {
        self.start().end()
    }

    fn run_with_input(&mut self, input: &str) -> Ran {
        let mut running = self.stdin(Stdio::piped()).start();
        let mut stdin = running.stdin.take().unwrap();
        let input = input.to_owned();
        // A program that reads no further than it must is no fault of this side.
        let writer = std::thread::spawn(move || _ = stdin.write_all(input.as_bytes()));
        let ran = running.end();
        writer.join().unwrap();
        ran
    }
}

/// A process that runs. Dropping it kills it.
pub struct Running {
    pub child: Child,
    pub stdin: Option<ChildStdin>,
    out: Option<JoinHandle<String>>,
    err: Option<JoinHandle<String>>,
    began: Instant,
}

impl Running {
    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap())
    }

    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    /// Waits for its end.
    #[track_caller]
    pub fn end(mut self) -> Ran {
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if self.began.elapsed() > HUNG_AFTER => panic!("pelton hangs"),
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        let took = self.began.elapsed();
        let text = |reader: Option<JoinHandle<String>>| {
            reader.map(|reader| reader.join().unwrap()).unwrap_or_default()
        };
        let (out, err) = (text(self.out.take()), text(self.err.take()));
        Ran { code: status.code(), signal: status.signal(), out, err, took }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        String::from_utf8(bytes).expect("output is UTF-8")
    })
}

/// A process that has ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub out: String,
    pub err: String,
    pub took: Duration,
}

impl Ran {
    /// It went well and had nothing to complain about; what it wrote.
    #[track_caller]
    pub fn well(&self) -> &str {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{self:?}");
        &self.out
    }

    /// It failed with this code and one line on standard error, which has these words in it.
    #[track_caller]
    pub fn failed(&self, code: i32, words: &[&str]) -> &str {
        assert_eq!(self.code, Some(code), "{self:?}");
        let line =
            self.err.strip_suffix('\n').unwrap_or_else(|| panic!("no line on standard error: {self:?}"));
        assert!(!line.contains('\n'), "more than one line:\n{line}");
        for word in words {
            assert!(line.contains(word), "{word:?} is missing in: {line}");
        }
        line
    }

    /// Standard output, line by line.
    #[track_caller]
    pub fn frames(&self) -> Vec<Value> {
        assert!(self.out.is_empty() || self.out.ends_with('\n'), "a torn line: {:?}", self.out);
        let frame = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.out.lines().map(frame).collect()
    }

    /// The frame that ends the stream.
    #[track_caller]
    pub fn result(&self) -> Value {
        let frames = self.frames();
        let results = frames.iter().filter(|frame| frame["type"] == "result").count();
        assert_eq!(results, 1, "{}", self.out);
        frames.last().filter(|frame| frame["type"] == "result").expect("the result is the last frame").clone()
    }
}

/// The frames of one type.
pub fn of_type<'a>(frames: &'a [Value], kind: &str) -> Vec<&'a Value> {
    frames.iter().filter(|frame| frame["type"] == kind).collect()
}

/// Processes whose command line has these words in it, zombies left out.
pub fn processes_with(words: &str) -> Vec<String> {
    let ids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        entry
            .unwrap()
            .file_name()
            .to_str()
            .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
            .map(str::to_owned)
    });
    ids.filter_map(|id| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(words).then(|| format!("{id} {line}"))
    })
    .collect()
}
