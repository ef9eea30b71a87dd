//! `pelton mock`: the scripted model as a program.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::place::{Commanded, Place, Ran};

const SCRIPT: &str = "\
steps:
  - reply: [{text: 'hello ${name}'}]
vars: {name: nobody}
";

/// A server that listens.
struct Mock {
    child: Child,
    url: String,
}

impl Mock {
    fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let url =
            line.strip_prefix("listening on ").unwrap_or_else(|| panic!("{line:?}")).trim_end().to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{url}");
        Self { child, url }
    }

    fn end(mut self, signal: Signal) -> Ran {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        let status = self.child.wait().unwrap();
        Ran { code: status.code(), signal: None, out: String::new(), err, took: std::time::Duration::ZERO }
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn task(place: &Place, url: &str) -> Command {
    let mut command = place.pelton(["-p", "hi"]);
    command.env("ANTHROPIC_BASE_URL", url).env("ANTHROPIC_API_KEY", "sk-secret");
    command
}

#[test]
fn a_clean_run_ends_well_and_is_recorded() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let place = Place::new();
        place.put("script.yaml", SCRIPT);
        let words = ["mock", "script.yaml", "--var", "name=world", "--record", "record.jsonl"];
        let mock = Mock::start(&mut place.pelton(words));
        assert_eq!(task(&place, &mock.url).run().well(), "hello world\n");
        let ran = mock.end(signal);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let last = ran.err.lines().last().unwrap();
        assert!(last.starts_with("1 requests, 0 illegal, 0 unexpected"), "{}", ran.err);
        check_record(&place.work().join("record.jsonl"));
    }
}

#[track_caller]
fn check_record(file: &Path) {
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!lines.is_empty());
    assert!(text.contains("hello world") && text.contains("/v1/messages"));
    assert!(!text.contains("sk-secret"), "the key is in the record");
}

#[test]
fn a_request_that_should_not_have_come_ends_it_badly() {
    let place = Place::new();
    place.put("script.yaml", SCRIPT);
    // One more than the script has steps for.
    let mock = Mock::start(&mut place.pelton(["mock", "script.yaml"]));
    task(&place, &mock.url).run().well();
    assert_eq!(task(&place, &mock.url).env("CLAUDE_CODE_MAX_RETRIES", "0").run().code, Some(1));
    let ran = mock.end(Signal::SIGTERM);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.lines().last().unwrap().contains("1 unexpected"), "{}", ran.err);

    // One that the real API would refuse.
    let mock = Mock::start(&mut place.pelton(["mock", "script.yaml"]));
    let address = mock.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let body = r#"{"model":"claude-sonnet-4-5","max_tokens":10,"messages":[]}"#;
    let head = "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\n\
                content-type: application/json\r\nconnection: close";
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    let ran = mock.end(Signal::SIGINT);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.lines().last().unwrap().contains("1 illegal"), "{}", ran.err);
}

#[test]
fn it_serves_and_ends_though_nobody_reads_what_it_tells() {
    let place = Place::new();
    place.put("script.yaml", SCRIPT);
    let mut mock = Mock::start(&mut place.pelton(["mock", "script.yaml"]));
    let mut stream = BufReader::new(TcpStream::connect(mock.url.strip_prefix("http://").unwrap()).unwrap());
    stream.get_ref().set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    // More lines than fit into the pipe and into the queue before it.
    for _ in 0..3000 {
        stream.get_mut().write_all(b"GET /somewhere/or/other HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        let mut length = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).expect("the model stopped answering");
            if let Some(bytes) = line.strip_prefix("content-length: ") {
                length = bytes.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        stream.read_exact(&mut vec![0; length]).unwrap();
    }
    kill(Pid::from_raw(i32::try_from(mock.child.id()).unwrap()), Signal::SIGTERM).unwrap();
    assert_eq!(mock.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_port_in_use_is_told() {
    let place = Place::new();
    place.put("script.yaml", SCRIPT);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ran = place.pelton(["mock", "script.yaml", "--port", &port]).run();
    ran.failed(1, &["cannot listen", &port, "choose another port"]);
    assert!(ran.out.is_empty());
    drop(taken);
    let mock = Mock::start(&mut place.pelton(["mock", "script.yaml", "--port", &port]));
    assert!(mock.url.ends_with(&format!(":{port}")));
}

#[test]
fn a_script_that_cannot_be_played_is_told_by_step_and_field() {
    let place = Place::new();
    let check = |script: &str, words: &[&str]| {
        let ran = place.pelton(["mock", "-"]).run_with_input(script);
        ran.failed(1, words);
        assert!(ran.out.is_empty());
    };
    check("steps: [{reply: [{text: hi}]}, {reply: [{txt: hi}]}]", &["step 2", "txt"]);
    check("steps: [{reply: [{text: hi}], times: -1}]", &["step 1", "times"]);
    check("steps: [{status: 99}]", &["step 1", "status"]);
    check("stepps: []", &["stepps"]);
    check("{", &["-: "]);
    place.pelton(["mock", "missing.yaml"]).run().failed(1, &["missing.yaml", "No such file"]);
    std::fs::write(place.work().join("latin.yaml"), b"steps:\n  - reply: \"\xff\"\n").unwrap();
    place.pelton(["mock", "latin.yaml"]).run().failed(1, &["line 2", "latin.yaml", "UTF-8"]);
    place.put("large.yaml", &"# ".repeat(4 * 1024 * 1024 + 1));
    place.pelton(["mock", "large.yaml"]).run().failed(1, &["large.yaml", "larger than"]);
    place.put("script.yaml", SCRIPT);
    place.pelton(["mock", "script.yaml", "--var", "x"]).run().failed(1, &["--var 'x'", "NAME=VALUE"]);
    let ran = place.pelton(["mock", "script.yaml", "--record", "missing/record"]).run();
    ran.failed(1, &["record", "missing/record"]);
}
