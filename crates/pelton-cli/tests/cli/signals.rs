//! Interrupt, terminate, hang up: the turn ends, what was said is kept, nothing is left running.

use std::io::Read;
use std::os::fd::AsRawFd;
use std::process::{ChildStdout, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use pelton_testkit::{Script, ScriptedModel, Step, gate, text, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, Ran, Running, model, of_type, processes_with, until, wait};

const STREAM: [&str; 3] = ["--output-format", "stream-json", "--verbose"];

/// A command that starts another in the background and one that does not want to end. All carry `mark`.
fn stubborn(mark: &str) -> String {
    format!(
        "(trap '' TERM INT HUP; while :; do sleep 0.{mark}; done) & sleep 60.{mark} & touch began; sleep 61.{mark}"
    )
}

/// A number that is in no other command line.
fn a_mark(test: u32) -> String {
    format!("1{:07}{test}", std::process::id())
}

fn in_a_tool(mark: &str) -> (Place, ScriptedModel, Running) {
    let place = Place::new();
    let bash = |command: &str| tool("Bash", json!({"command": command, "description": "A step"}));
    let calls = [text("Working."), bash("true"), bash(&stubborn(mark)).id("toolu_long")];
    let model = model(Script::new().reply(calls).reply([text("gone on")]));
    let words = ["work", "--allowedTools", "Bash(*)"].into_iter().chain(STREAM);
    let running = place.task(&model, words).start();
    until("the command runs", || place.has("began"));
    // Results are told when the answer is over, even if the model is slower than the tools.
    until("the answer is over", || {
        place.transcript().iter().any(|line| line["message"]["content"][0]["tool_use_id"].is_string())
    });
    (place, model, running)
}

#[track_caller]
fn ended_in_a_tool(ran: &Ran, code: i32, word: &str) {
    assert_eq!(ran.code, Some(code), "{ran:?}");
    assert!(ran.err.starts_with(&format!("{word} (go on with --resume ")), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    let frames = ran.frames();
    let result = ran.result();
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("error_during_execution"), &json!(true)));
    assert_eq!(result["terminal_reason"], "aborted_tools");
    assert!(!result["errors"].as_array().unwrap().is_empty());
    let users = of_type(&frames, "user");
    assert_eq!(users[1]["message"]["content"][0]["tool_use_id"], "toolu_long");
    assert_eq!(users[2]["message"]["content"][0]["text"], "[Request interrupted by user for tool use]");
}

/// After a signal the session goes on: the interrupted call has its one answer, on disk and before the model.
#[track_caller]
fn goes_on(place: &Place, model: &ScriptedModel) {
    assert_eq!(place.task(model, ["go on", "--continue"]).run().well(), "gone on\n");
    model.assert_clean();
    let body = &model.reply_requests()[1].body;
    assert_eq!(body.to_string().matches("\"tool_use_id\":\"toolu_long\"").count(), 1, "{body}");
}

fn check(signal: Signal, code: i32, word: &str, mark: &str) {
    let (place, model, running) = in_a_tool(mark);
    assert!(processes_with(mark).len() >= 4, "{:?}", processes_with(mark));
    let sent = Instant::now();
    running.signal(signal);
    let ran = running.end();
    assert!(sent.elapsed() < Duration::from_secs(5), "{:?}", sent.elapsed());
    // When it has ended, so has everything it started.
    assert_eq!(processes_with(mark), Vec::<String>::new());
    ended_in_a_tool(&ran, code, word);
    goes_on(&place, &model);
}

#[test]
fn loop_A2_loop_A5_loop_A7_loop_X3_pit_M3_an_interrupt_ends_the_turn_and_reaps_its_processes() {
    check(Signal::SIGINT, 130, "interrupted", &a_mark(1));
}

#[test]
fn loop_A5_loop_A7_pit_M3_a_termination_ends_the_turn_and_reaps_its_processes() {
    check(Signal::SIGTERM, 143, "terminated", &a_mark(2));
}

#[test]
fn loop_A5_loop_A7_pit_M3_a_hang_up_ends_the_turn_and_reaps_its_processes() {
    check(Signal::SIGHUP, 129, "hung up", &a_mark(3));
}

#[test]
fn loop_A7_a_second_interrupt_does_not_wait() {
    // Nobody reads: the first interrupt cannot bring the result out.
    let place = Place::new();
    let model = model(Script::new().reply([text("x".repeat(1024 * 1024)).fragments(5_000)]));
    let mut command = place.task(&model, ["talk", "--include-partial-messages"].into_iter().chain(STREAM));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut pipe = child.stdout.take().unwrap();
    pipe.read_exact(&mut [0]).unwrap();
    until("the pipe is full", || bytes_in(&pipe) > 48 * 1024);
    std::thread::sleep(Duration::from_millis(300));
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, Signal::SIGINT).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert!(child.try_wait().unwrap().is_none(), "the first one waits for the reader");
    let sent = Instant::now();
    nix::sys::signal::kill(pid, Signal::SIGINT).unwrap();
    let status = child.wait().unwrap();
    assert!(sent.elapsed() < Duration::from_millis(1_500), "{:?}", sent.elapsed());
    assert_eq!(status.code(), Some(130));
    drop(pipe);
}

/// How much waits to be read.
fn bytes_in(pipe: &ChildStdout) -> i32 {
    let mut bytes = 0;
    // SAFETY: this request writes one number to where it is told; the descriptor is open.
    unsafe { nix::libc::ioctl(pipe.as_raw_fd(), nix::libc::FIONREAD, &raw mut bytes) };
    bytes
}

#[test]
fn loop_X2_an_interrupt_while_the_model_answers_keeps_what_was_said_until_then() {
    let place = Place::new();
    let model = model(
        Script::new()
            .reply([text("Said."), text("Half of").after(1, gate("never"))])
            .reply([text("gone on")]),
    );
    let running = place.task(&model, ["talk"].into_iter().chain(STREAM)).start();
    wait(model.wait_at_gate("never"));
    until("the first block is told", || place.transcript().iter().any(|line| line["type"] == "assistant"));
    running.signal(Signal::SIGINT);
    let ran = running.end();
    assert_eq!(ran.code, Some(130));
    let result = ran.result();
    assert_eq!(result["subtype"], "error_during_execution");
    assert_eq!(result["terminal_reason"], "aborted_streaming");
    let frames = ran.frames();
    let said = of_type(&frames, "assistant").into_iter().map(|frame| &frame["message"]["content"][0]["text"]);
    let said: Vec<&Value> = said.collect();
    // The half may have been on its way.
    assert!(said == ["Said.", "Half of"] || said == ["Said."], "{said:?}");
    assert_eq!(of_type(&frames, "user")[0]["message"]["content"][0]["text"], "[Request interrupted by user]");
    assert_eq!(place.task(&model, ["go on", "--continue"]).run().well(), "gone on\n");
    model.assert_clean();
    let second = model.reply_requests()[1].body["messages"].to_string();
    assert!(second.contains("Said.") && second.contains("Half of") == (said.len() == 2), "{second}");
}

#[test]
fn a_signal_during_a_wait_between_retries_is_heard() {
    let place = Place::new();
    let model = model(Script::new().step(Step::status(529).header("retry-after", "60")));
    let running = place.task(&model, ["hi", "--output-format", "json"]).start();
    wait(model.wait_for_answers(1));
    running.signal(Signal::SIGTERM);
    let ran = running.end();
    assert_eq!(ran.code, Some(143));
    assert!(ran.took < Duration::from_secs(5), "{:?}", ran.took);
    assert_eq!(ran.result()["subtype"], "error_during_execution");
}

#[test]
fn a_reader_that_does_not_read_does_not_keep_a_signalled_run_alive() {
    let place = Place::new();
    let model = model(Script::new().reply([text("x".repeat(1024 * 1024))]));
    let mut command = place.task(&model, ["talk"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut pipe = child.stdout.take().unwrap();
    // The first byte is out: the run is over, and all that is left is to write the answer.
    pipe.read_exact(&mut [0]).unwrap();
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    std::thread::sleep(Duration::from_millis(100));
    assert!(child.try_wait().unwrap().is_none());
    nix::sys::signal::kill(pid, Signal::SIGTERM).unwrap();
    let began = Instant::now();
    until("it ends", || child.try_wait().unwrap().is_some());
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn a_signal_that_was_ignored_from_the_start_stays_ignored() {
    let place = Place::new();
    let model = model(Script::new().reply([gate("later"), text("still here")]));
    let mut command = place.shell("trap '' HUP; exec \"$PELTON\" -p hi");
    let running = command.asks(&model).start();
    wait(model.wait_for_requests(1));
    running.signal(Signal::SIGHUP);
    std::thread::sleep(Duration::from_millis(100));
    model.open("later");
    assert_eq!(running.end().well(), "still here\n");
}

/// Whether a process has seen to it that a signal does not simply end it.
fn minds(running: &Running, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap_or_default();
    let minded = |field: &str| {
        let mask = status.lines().find_map(|line| line.strip_prefix(field)).map(str::trim);
        mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0)
    };
    (minded("SigBlk:") | minded("SigCgt:")) & (1 << (signal as u64 - 1)) != 0
}

const CODES: [(Signal, i32); 3] = [(Signal::SIGINT, 130), (Signal::SIGTERM, 143), (Signal::SIGHUP, 129)];

#[test]
fn loop_A5_loop_A7_a_signal_while_the_program_starts_is_answered_by_a_result() {
    for (signal, code) in CODES {
        let place = Place::new();
        let model = model(Script::new().reply([gate("never"), text("late")]));
        let running = place.task(&model, ["work"].into_iter().chain(STREAM)).start();
        until("it minds signals", || minds(&running, signal));
        running.signal(signal);
        let ran = running.end();
        assert_eq!((ran.code, ran.signal), (Some(code), None), "{ran:?}");
        assert_eq!(ran.result()["subtype"], "error_during_execution");
        assert_eq!(of_type(&ran.frames(), "result").len(), 1);
    }
}

#[test]
fn loop_A5_loop_A7_a_signal_while_a_prompt_is_waited_for_ends_it_cleanly() {
    for (signal, code) in CODES {
        for streams in [true, false] {
            let place = Place::new();
            let model = model(Script::new());
            let words = ["-p"].into_iter().chain(STREAM.into_iter().filter(|_| streams));
            let mut command = place.pelton(words);
            let running = command.asks(&model).stdin(Stdio::piped()).start();
            until("it minds signals", || minds(&running, signal));
            std::thread::sleep(Duration::from_millis(100));
            running.signal(signal);
            let ran = running.end();
            assert_eq!((ran.code, ran.signal), (Some(code), None), "{ran:?}");
            assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
            match streams {
                true => assert_eq!(ran.result()["subtype"], "error_during_execution", "{ran:?}"),
                false => assert_eq!(ran.out, ""),
            }
        }
    }
}
