//! What runs when there is nobody to ask.

use std::path::Path;

use pelton_testkit::{Part, Script, ScriptedModel, text, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, model};

fn write(path: &str) -> Part {
    tool("Write", json!({"file_path": path, "content": "written\n"})).id("toolu_it")
}

fn bash(command: &str) -> Part {
    tool("Bash", json!({"command": command, "description": "A step"})).id("toolu_it")
}

/// One call, then an answer.
fn caller(part: Part) -> ScriptedModel {
    model(Script::new().reply([part]).reply([text("done")]))
}

/// What came of the call `toolu_it`, and the result of the run.
fn outcome(place: &Place, part: Part, words: &[&str]) -> (Value, Value) {
    let model = caller(part);
    let words = ["do it", "--output-format", "json"].into_iter().chain(words.iter().copied());
    let ran = place.task(&model, words).run();
    ran.well();
    let body = model.reply_requests()[1].body.clone();
    let result =
        body["messages"].as_array().unwrap().last().unwrap()["content"].as_array().unwrap()[0].clone();
    assert_eq!(result["tool_use_id"], "toolu_it", "{body}");
    (result, ran.result())
}

#[track_caller]
fn denied(place: &Place, part: Part, words: &[&str]) -> String {
    let (result, ran) = outcome(place, part, words);
    assert_eq!(result["is_error"], true, "{result}");
    let denials = ran["permission_denials"].as_array().unwrap();
    assert_eq!(denials.len(), 1, "{ran}");
    assert_eq!(denials[0]["tool_use_id"], "toolu_it");
    assert!(denials[0]["tool_name"].is_string() && denials[0]["tool_input"].is_object());
    result["content"].to_string()
}

#[track_caller]
fn allowed(place: &Place, part: Part, words: &[&str]) -> String {
    let (result, ran) = outcome(place, part, words);
    assert_ne!(result["is_error"], json!(true), "{result}");
    assert_eq!(ran["permission_denials"], json!([]));
    result["content"].to_string()
}

fn outside(place: &Place) -> String {
    place.home().join("outside.txt").to_str().unwrap().to_owned()
}

#[test]
fn without_permission_nothing_is_written_and_the_way_out_is_named() {
    let place = Place::new();
    for part in [write("a.txt"), bash("touch b.txt")] {
        let said = denied(&place, part, &[]);
        for words in ["nobody to ask", "--allowedTools", "--permission-mode"] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
    assert!(!place.has("a.txt") && !place.has("b.txt"));
    // Looking needs none.
    place.put("notes.txt", "hello\n");
    assert!(
        allowed(&place, tool("Read", json!({"file_path": "notes.txt"})).id("toolu_it"), &[])
            .contains("hello")
    );
    assert!(allowed(&place, bash("cat notes.txt"), &[]).contains("hello"));
}

#[test]
fn accepting_edits_is_for_the_working_directories() {
    let place = Place::new();
    let mode = ["--permission-mode", "acceptEdits"];
    allowed(&place, write("a.txt"), &mode);
    assert_eq!(place.read("a.txt"), "written\n");
    denied(&place, write(&outside(&place)), &mode);
    denied(&place, write("../outside.txt"), &mode);
    std::os::unix::fs::symlink(place.home(), place.work().join("link")).unwrap();
    denied(&place, write("link/outside.txt"), &mode);
    assert!(!Path::new(&outside(&place)).exists());
    // A directory that was added is one of them.
    let home = place.home();
    let words = ["--permission-mode=acceptEdits", "--add-dir", home.to_str().unwrap()];
    allowed(&place, write(&outside(&place)), &words);
    assert!(Path::new(&outside(&place)).exists());
    denied(&place, bash("touch b.txt; python3 -c ''"), &mode);
}

#[test]
fn planning_writes_nothing_whatever_is_allowed() {
    let place = Place::new();
    denied(&place, write("a.txt"), &["--permission-mode", "plan", "--allowedTools", "Write,Edit"]);
    assert!(!place.has("a.txt"));
    denied(&place, write("a.txt"), &["--permission-mode", "dontAsk"]);
}

#[test]
fn a_rule_allows_what_it_says_and_no_more() {
    let place = Place::new();
    place.put("Makefile", "all:\n\t@echo made\n");
    place.put("bin/make", "#!/bin/sh\necho made \"$@\"\n");
    let rule = ["--allowedTools", "Bash(make *)"];
    let run = |command: &str, words: &[&str]| outcome(&place, bash(command), words).0["content"].to_string();
    assert!(!run("make all", &rule).contains("nobody to ask"));
    for command in [
        "make all; touch b.txt",
        "make all && touch b.txt",
        "touch b.txt",
        "make all > b.txt",
        "makeshift all",
    ] {
        denied(&place, bash(command), &rule);
        assert!(!place.has("b.txt"), "{command}");
    }
    // Several rules in one word or in many, in both spellings of the option.
    for words in [
        &["--allowedTools", "Bash(touch *),Write"][..],
        &["--allowedTools", "Bash(touch *) Write"],
        &["--allowedTools", "Bash(touch *)", "Write"],
        &["--allowed-tools=Bash(touch *),Write"],
    ] {
        allowed(&place, bash("touch b.txt"), words);
        allowed(&place, write("c.txt"), words);
    }
    // What is denied is denied, whatever is allowed.
    let both = ["--allowedTools", "Bash(*)", "--disallowedTools", "Bash(touch *)"];
    denied(&place, bash("touch d.txt"), &both);
    assert!(!place.has("d.txt"));
}

#[test]
fn a_tool_denied_by_its_name_is_not_offered() {
    let place = Place::new();
    let model = model(Script::new().reply([text("done")]));
    place.task(&model, ["do it", "--disallowedTools", "Bash,Write"]).run().well();
    let tools = model.reply_requests()[0].body["tools"].clone();
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"Read") && !names.contains(&"Bash") && !names.contains(&"Write"), "{names:?}");
}

#[test]
fn running_everything_is_refused_to_root_outside_a_sandbox() {
    let place = Place::new();
    let server = caller(write(&outside(&place)));
    for words in [&["--dangerously-skip-permissions"][..], &["--permission-mode", "bypassPermissions"]] {
        let mut command = place.task(&server, ["do it"].into_iter().chain(words.iter().copied()));
        if nix::unistd::geteuid().is_root() {
            command.run().failed(1, &["as root", "IS_SANDBOX=1", "--permission-mode acceptEdits"]);
            assert!(server.requests().is_empty());
        }
    }
    let mut command = place.task(&server, ["do it", "--dangerously-skip-permissions"]);
    assert_eq!(command.env("IS_SANDBOX", "1").run().well(), "done\n");
    assert_eq!(std::fs::read_to_string(outside(&place)).unwrap(), "written\n");
}

#[test]
fn modes_of_other_programs_are_taken_for_the_default_and_one_line_says_so() {
    for (mode, notices) in [("auto", 1), ("delegate", 1), ("manual", 0)] {
        let place = Place::new();
        let model = caller(bash("touch x"));
        let ran = place.task(&model, ["go", "--permission-mode", mode]).run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!place.work().join("x").exists(), "{mode}");
        let notice = format!("there is no permission mode {mode} here: it is taken for default");
        assert_eq!(ran.err.matches(&notice).count(), notices, "{ran:?}");
    }
}

#[test]
fn commands_do_not_get_the_key() {
    let place = Place::new();
    let said = allowed(&place, bash("env"), &["--allowedTools", "Bash(env)"]);
    assert!(said.contains("PATH=") && !said.contains("sk-test"), "{said}");
}
