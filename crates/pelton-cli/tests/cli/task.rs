//! One task, from the prompt to the answer.

use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use pelton_testkit::{Script, ScriptedModel, Step, When, gate, text, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, model, wait};

/// Ten turns with tools, each of which needs what the one before did, then an answer.
pub fn ten_turns() -> Script {
    let after = |result: &str| When::any().last_tool_result(result);
    let bash = |command: &str| tool("Bash", json!({"command": command, "description": "A step"}));
    Script::new()
        .reply([text("I will look around."), tool("Glob", json!({"pattern": "**/*.txt"}))])
        .step(Step::reply([tool("Read", json!({"file_path": "notes.txt"}))]).when(after("notes.txt")))
        .step(
            Step::reply([tool(
                "Edit",
                json!({"file_path": "notes.txt", "old_string": "two", "new_string": "2"}),
            )])
            .when(after("two")),
        )
        .step(
            Step::reply([tool(
                "Grep",
                json!({"pattern": "2", "path": "notes.txt", "output_mode": "content"}),
            )])
            .when(after("2")),
        )
        .step(
            Step::reply([tool("Write", json!({"file_path": "sum.txt", "content": "sum\n"}))])
                .when(after("2")),
        )
        .step(Step::reply([bash("cat sum.txt")]).when(When::any().tool("Write")))
        .step(Step::reply([bash("printf 'more\\n' >> sum.txt")]).when(after("sum")))
        .step(Step::reply([tool("Read", json!({"file_path": "sum.txt"}))]).when(When::any().tool("Bash")))
        .step(Step::reply([bash("wc -l < sum.txt; exit 3")]).when(after("more")))
        .step(
            Step::reply([
                text("Both at once."),
                tool("Read", json!({"file_path": "notes.txt"})),
                tool("Grep", json!({"pattern": "sum", "output_mode": "content"})),
            ])
            .when(after("2")),
        )
        .step(Step::reply([text("All "), text("done: Ω.")]).when(after("sum")))
}

pub const TEN_TURNS_ALLOWED: [&str; 4] = ["--permission-mode", "acceptEdits", "--allowedTools", "Bash(*)"];

pub fn ten_turns_place() -> (Place, ScriptedModel) {
    let place = Place::new();
    place.put("notes.txt", "one\ntwo\nthree\n");
    (place, model(ten_turns()))
}

#[test]
fn loop_T1_loop_X1_ten_turns_of_tools_lead_to_one_answer() {
    let (place, model) = ten_turns_place();
    let ran = place.task(&model, ["count the notes"].into_iter().chain(TEN_TURNS_ALLOWED)).run();
    assert_eq!(ran.well(), "All done: Ω.\n");
    assert_eq!(place.read("notes.txt"), "one\n2\nthree\n");
    assert_eq!(place.read("sum.txt"), "sum\nmore\n");
    model.assert_clean();
    model.assert_played_out();
    // Each request is the one before and what came since: nothing is lost, nothing is told twice.
    let requests = model.reply_requests();
    assert_eq!(requests.len(), 11);
    for pair in requests.windows(2) {
        let [before, after] = [&pair[0], &pair[1]].map(|seen| bare(&seen.body["messages"]));
        let before = before.as_array().unwrap();
        assert_eq!(&after.as_array().unwrap()[..before.len()], &before[..]);
        assert_eq!(after.as_array().unwrap().len(), before.len() + 2);
    }
}

/// Messages without the cache marks, which move.
fn bare(messages: &Value) -> Value {
    let mut messages = messages.clone();
    for message in messages.as_array_mut().unwrap() {
        for block in message["content"].as_array_mut().into_iter().flatten() {
            block.as_object_mut().unwrap().remove("cache_control");
        }
    }
    messages
}

fn hello() -> ScriptedModel {
    model(Script::new().step(Step::reply([text("hello")]).always()))
}

/// What the model was asked last.
#[track_caller]
fn asked(model: &ScriptedModel) -> String {
    let request = model.reply_requests().pop().expect("the model was asked");
    let messages = request.body["messages"].as_array().unwrap().clone();
    let blocks = messages.last().unwrap()["content"].as_array().unwrap().clone();
    blocks.last().unwrap()["text"].as_str().unwrap().to_owned()
}

#[test]
fn the_prompt_comes_from_the_argument_or_standard_input_or_both() {
    let (place, model) = (Place::new(), hello());
    assert_eq!(place.task(&model, ["from the argument"]).run().well(), "hello\n");
    assert_eq!(asked(&model), "from the argument");
    assert_eq!(place.task(&model, []).run_with_input("from a pipe\n").well(), "hello\n");
    assert_eq!(asked(&model), "from a pipe\n");
    assert_eq!(place.task(&model, ["look at this:"]).run_with_input("a\nb\n").well(), "hello\n");
    assert_eq!(asked(&model), "look at this:\na\nb\n");
    // Blank input beside an argument is no input.
    assert_eq!(place.task(&model, ["alone"]).run_with_input(" \n").well(), "hello\n");
    assert_eq!(asked(&model), "alone");
    // A word that is also a command is a prompt behind -p.
    assert_eq!(place.task(&model, ["help"]).run().well(), "hello\n");
    assert_eq!(asked(&model), "help");
}

#[test]
fn bytes_that_are_no_text_are_replaced() {
    let (place, model) = (Place::new(), hello());
    place.put("bytes", "");
    std::fs::write(place.work().join("bytes"), b"caf\xe9").unwrap();
    let mut command = place.task(&model, []);
    command.stdin(std::fs::File::open(place.work().join("bytes")).unwrap());
    let ran = command.run();
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "hello\n"));
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    assert!(ran.err.starts_with("warning: standard input is not all UTF-8"), "{}", ran.err);
    assert_eq!(asked(&model), "caf\u{fffd}");
}

#[test]
fn without_words_there_is_no_task() {
    let (place, model) = (Place::new(), hello());
    for blank in ["", " \n\t "] {
        place.task(&model, [blank]).run().failed(1, &["no prompt", "pelton -p \"...\"", "standard input"]);
        place.task(&model, []).run_with_input(blank).failed(1, &["no prompt"]);
    }
    assert!(model.requests().is_empty());
    assert!(place.transcripts().is_empty());
}

#[test]
fn more_than_ten_megabytes_of_input_are_refused() {
    let (place, model) = (Place::new(), hello());
    let ran = place.task(&model, ["sum up"]).run_with_input(&"x".repeat(10 * 1024 * 1024 + 1));
    ran.failed(1, &["larger than 10 MB", "put it in a file"]);
    assert!(model.requests().is_empty());
}

#[test]
fn an_input_that_stays_silent_is_not_waited_for() {
    let (place, model) = (Place::new(), hello());
    let with_argument = place.task(&model, ["hi"]).stdin(Stdio::piped()).start();
    let without = place.task(&model, []).stdin(Stdio::piped()).start();
    let (ran, blank) = (with_argument.end(), without.end());
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "hello\n"));
    assert!(ran.err.starts_with("warning: nothing came on standard input for 3 s"), "{}", ran.err);
    assert!(ran.took < Duration::from_secs(5), "{:?}", ran.took);
    blank.failed(1, &["no prompt", "as an argument", "nothing came there", "'< file'"]);
    assert!(blank.took < Duration::from_secs(5), "{:?}", blank.took);
}

#[test]
fn a_slow_input_is_waited_for_when_it_is_the_prompt() {
    let (place, model) = (Place::new(), hello());
    // Longer than it would be waited for beside an argument; and longer still for the rest, once it has begun.
    let mut command = place.shell("(sleep 3.3; echo first; sleep 5; echo second) | \"$PELTON\" -p");
    assert_eq!(command.asks(&model).run().well(), "hello\n");
    assert_eq!(asked(&model), "first\nsecond\n");
}

#[test]
fn an_input_that_cannot_be_read_is_warned_about() {
    let (place, model) = (Place::new(), hello());
    let mut command = place.task(&model, ["hi"]);
    let ran = command.stdin(std::fs::File::open(place.work()).unwrap()).run();
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "hello\n"));
    assert!(ran.err.starts_with("warning: cannot read standard input"), "{}", ran.err);
}

#[test]
fn loop_S4_the_prompt_is_on_disk_before_the_model_hears_of_it() {
    let place = Place::new();
    // Nothing of an answer, not even its beginning.
    let model = model(Script::new().step(Step::reply([gate("never"), text("hello")])));
    let running = place.task(&model, ["remember me"]).start();
    wait(model.wait_for_requests(1));
    let recorded = place.transcript();
    running.signal(Signal::SIGKILL);
    assert_eq!(running.end().signal, Some(9));
    let prompt =
        recorded.iter().find(|line| line["type"] == "user" && line["isMeta"] != json!(true)).unwrap();
    assert_eq!(prompt["message"]["content"][0]["text"], "remember me");
}

#[test]
fn loop_X4_loop_B2_loop_E16_the_turn_limit_ends_a_run() {
    let place = Place::new();
    let look = || [tool("Bash", json!({"command": "pwd", "description": "Look"}))];
    let model = model(Script::new().reply(look()).reply(look()).reply([text("never asked for")]));
    let words = ["look", "--max-turns", "2", "--output-format", "json"];
    let ran = place.task(&model, words).run();
    ran.failed(1, &["Reached maximum number of turns (2)", "--max-turns", "--resume"]);
    let result = ran.result();
    assert_eq!(result["subtype"], "error_max_turns");
    assert_eq!(result["terminal_reason"], "max_turns");
    assert_eq!(result["errors"], json!(["Reached maximum number of turns (2)"]));
    assert_eq!((&result["num_turns"], &result["is_error"]), (&json!(3), &json!(true)));
    assert_eq!(model.reply_requests().len(), 2);
}

#[test]
fn loop_E2_loop_E11_loop_E13_options_may_be_written_in_both_ways_and_be_empty() {
    let (place, model) = (Place::new(), hello());
    let words =
        ["hi", "--model=haiku", "--append-system-prompt=Be brief.", "--max-turns=3", "--output-format=json"];
    assert_eq!(place.task(&model, words).run().result()["result"], "hello");
    let seen = model.reply_requests().pop().unwrap();
    assert!(seen.body["model"].as_str().unwrap().contains("haiku"), "{}", seen.body["model"]);
    assert!(seen.body["system"].to_string().contains("Be brief."));
    let default_model = seen_default(&place, &model);

    let words = ["hi", "--model=", "--system-prompt=", "--tools=", "--allowedTools=", "--effort="];
    assert_eq!(place.task(&model, words).run().well(), "hello\n");
    let seen = model.reply_requests().pop().unwrap();
    assert_eq!(seen.body["model"], default_model);
    assert!(seen.body.get("tools").is_none_or(|tools| tools == &json!([])), "{}", seen.body["tools"]);
    assert!(seen.body.get("system").is_none_or(|system| system == &json!([])), "{}", seen.body["system"]);

    let words = ["hi", "--tools", "Read, Grep", "--system-prompt", "You are terse."];
    assert_eq!(place.task(&model, words).run().well(), "hello\n");
    let seen = model.reply_requests().pop().unwrap();
    let mut names: Vec<&str> =
        seen.body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["Grep", "Read"]);
    assert_eq!(seen.body["system"][0]["text"], "You are terse.");
    // The last of several wins.
    assert_eq!(place.task(&model, ["hi", "--model", "x", "--model", "haiku"]).run().well(), "hello\n");
    assert!(model.reply_requests().pop().unwrap().body["model"].as_str().unwrap().contains("haiku"));
}

fn seen_default(place: &Place, model: &ScriptedModel) -> Value {
    place.task(model, ["hi"]).run().well();
    model.reply_requests().pop().unwrap().body["model"].clone()
}
