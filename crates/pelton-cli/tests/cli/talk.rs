//! A client that talks to `pelton` through pipes, line by line.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pelton_testkit::ScriptedModel;
use serde_json::{Value, json};

use crate::place::{Commanded, Place, lines_of, until};

/// A line that has not come after this long does not come.
const PATIENCE: Duration = Duration::from_secs(20);

pub const TALK: [&str; 5] = ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"];

/// A conversation. Dropping it kills the process.
pub struct Talk {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    stderr: Option<JoinHandle<String>>,
    /// Everything that came, oldest first.
    pub seen: Vec<Value>,
    requests: u32,
}

/// Waits until so many prompts wait.
pub fn until_queued(place: &Place, prompts: usize) {
    until("they wait", || {
        let lines = place.transcripts().first().map(|file| lines_of(file)).unwrap_or_default();
        lines.iter().filter(|line| line["operation"] == "enqueue").count() == prompts
    });
    // On the disk first, and then for the engine to see.
    std::thread::sleep(Duration::from_millis(200));
}

/// How a process ended.
#[derive(Debug)]
pub struct Over {
    pub code: Option<i32>,
    pub err: String,
    /// Everything it wrote.
    pub seen: Vec<Value>,
}

impl Talk {
    pub fn start(place: &Place, model: &ScriptedModel, words: &[&str]) -> Self {
        Self::with(place, model, words, |_| {})
    }

    pub fn with(
        place: &Place,
        model: &ScriptedModel,
        words: &[&str],
        more: impl FnOnce(&mut Command),
    ) -> Self {
        let mut command = place.pelton(TALK.into_iter().chain(words.iter().copied()));
        command.asks(model).stdin(Stdio::piped());
        more(&mut command);
        let mut child = command.spawn().unwrap();
        let (line, lines) = channel();
        let out = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            for text in BufReader::new(out).lines() {
                let text = text.unwrap();
                let json = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
                if line.send(json).is_err() {
                    return;
                }
            }
        });
        let mut err = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut text = String::new();
            std::io::Read::read_to_string(&mut err, &mut text).unwrap();
            text
        });
        Self { stdin: child.stdin.take(), child, lines, stderr: Some(stderr), seen: Vec::new(), requests: 0 }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line.
    pub fn say(&mut self, line: &Value) {
        self.say_text(&line.to_string());
    }

    pub fn say_text(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("not closed yet");
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub fn prompt(&mut self, words: &str) {
        self.say(&json!({"type": "user", "session_id": "", "message": {"role": "user", "content": words}, "parent_tool_use_id": null}));
    }

    /// Asks for something, and returns the id to wait for.
    pub fn ask(&mut self, request: &Value) -> String {
        self.requests += 1;
        let id = format!("req_{}", self.requests);
        self.say(&json!({"type": "control_request", "request_id": id, "request": request}));
        id
    }

    /// Asks for something and waits for the answer.
    #[track_caller]
    pub fn asked(&mut self, request: &Value) -> Value {
        let id = self.ask(request);
        let answer =
            self.until(|line| line["type"] == "control_response" && line["response"]["request_id"] == *id);
        answer["response"].clone()
    }

    /// Answers a question.
    pub fn answer(&mut self, question: &Value, response: &Value) {
        let id = &question["request_id"];
        self.say(&json!({"type": "control_response", "response": {"subtype": "success", "request_id": id, "response": response}}));
    }

    pub fn answer_error(&mut self, question: &Value, error: &str) {
        let id = &question["request_id"];
        self.say(&json!({"type": "control_response", "response": {"subtype": "error", "request_id": id, "error": error}}));
    }

    /// The next line that is so.
    #[track_caller]
    pub fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(began.elapsed());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if is_it(&line) {
                        return line;
                    }
                }
                Err(RecvTimeoutError::Timeout) => panic!("it did not come: {:#?}", self.seen),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended: {:#?}", self.seen),
            }
        }
    }

    #[track_caller]
    pub fn question(&mut self, subtype: &str) -> Value {
        self.until(|line| line["type"] == "control_request" && line["request"]["subtype"] == subtype)
    }

    #[track_caller]
    pub fn result(&mut self) -> Value {
        self.until(|line| line["type"] == "result")
    }

    #[track_caller]
    pub fn system(&mut self, subtype: &str) -> Value {
        self.until(|line| line["subtype"] == subtype)
    }

    /// Says nothing more.
    pub fn close(&mut self) {
        self.stdin = None;
    }

    /// Says nothing more, and waits for the end.
    #[track_caller]
    pub fn end(mut self) -> Over {
        self.close();
        self.wait()
    }

    /// Waits for the end.
    #[track_caller]
    pub fn wait(mut self) -> Over {
        let began = Instant::now();
        let code = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status.code(),
                None if began.elapsed() > PATIENCE => panic!("it does not end: {:#?}", self.seen),
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        while let Ok(line) = self.lines.recv_timeout(Duration::from_secs(5)) {
            self.seen.push(line);
        }
        let err = self.stderr.take().unwrap().join().unwrap();
        Over { code, err, seen: std::mem::take(&mut self.seen) }
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Over {
    /// It went well and had nothing to complain about.
    #[track_caller]
    pub fn well(&self) -> &[Value] {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{self:#?}");
        &self.seen
    }
}
