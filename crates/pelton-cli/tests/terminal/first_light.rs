//! A prompt, an answer, a tree, a question, the end.

use std::process::Command;

use pelton_testkit::{Script, text, tool};
use serde_json::json;

use crate::place::{Commanded, Place, model};
use crate::seat::Seat;

#[test]
fn loop_Z3_a_session_from_the_first_prompt_to_the_end() {
    let place = Place::new();
    place.put("notes.txt", "one\ntwo\n");
    let model = model(
        Script::new()
            .reply([
                text("Let me look."),
                tool("Read", json!({"file_path": "notes.txt"})),
                tool("Bash", json!({"command": "touch made", "description": "Make"})),
            ])
            .reply([text("It has **two** lines.")]),
    );
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("> ");
    seat.sees("asks before changes");
    seat.sees("/help tells keys and commands");
    seat.types("What is in notes.txt?");
    seat.sees("> What is in notes.txt?");
    assert_eq!(seat.cursor().1, 23, "the caret is behind the words");
    seat.types("\r");
    seat.sees("├─ Reading notes.txt · 2 lines");
    seat.sees("Run this command?");
    seat.sees("touch made");
    assert!(!place.has("made"));
    seat.types("y");
    seat.sees("It has two lines.");
    seat.sees("└─ ");
    assert!(place.has("made"));
    seat.types("/exit\r");
    assert_eq!(seat.ends(), Some(0));
    let rows = seat.rows();
    let at = |words: &str| {
        rows.iter().position(|row| row.contains(words)).unwrap_or_else(|| panic!("{words}: {rows:#?}"))
    };
    assert!(at("> What is in notes.txt?") < at("Let me look."));
    assert!(rows.iter().any(|row| row.starts_with("├─ Running touch made · no output")), "{rows:#?}");
    assert!(at("Let me look.") < at("├─ Reading notes.txt"));
    assert!(at("├─ Reading notes.txt") < at("├─ Running touch made"));
    assert!(at("├─ Running touch made") < at("It has two lines."));
    assert!(at("It has two lines.") < at("└─ 2 turns · 2 tool calls"));
    // What was live is gone.
    assert!(
        !rows.iter().any(|row| row.contains("Run this command?") || row.contains("asks before changes")),
        "{rows:#?}"
    );
    let shown = String::from_utf8(seat.bytes()).unwrap();
    for never in ["\u{1b}[2J", "\u{1b}[?1049h", "\u{1b}[H", "\u{1b}[3J", "\u{1b}c"] {
        assert!(!shown.contains(never), "{never:?}");
    }
}

#[test]
fn a_task_may_come_with_the_command_and_the_session_goes_on() {
    let place = Place::new();
    let model = model(Script::new().reply([text("Four.")]).reply([text("Five.")]).reply([text("Six.")]));
    let mut seat = Seat::at(&place, &model, ["What is two and two?"]);
    seat.sees("Four.");
    seat.types("And one more?\r");
    seat.sees("Five.");
    seat.types("\u{4}");
    assert_eq!(seat.ends(), Some(0));
    // Gone on with, in a terminal that has not seen it.
    let mut seat = Seat::at(&place, &model, ["--continue"]);
    seat.sees("> What is two and two?");
    seat.sees("Five.");
    seat.types("More!\r");
    seat.sees("Six.");
    assert_eq!(model.requests().last().unwrap().body["messages"].as_array().unwrap().len(), 5);
}

#[test]
fn answers_stand_apart_where_nobody_is_shown_the_calls_between_them() {
    let place = Place::new();
    let looks = tool("Bash", json!({"command": "ls", "description": "Look"}));
    let model = model(Script::new().reply([text("I look."), looks]).reply([text("Nothing there.")]));
    let mut print = place.pelton(["-p", "go"]);
    print.asks(&model);
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" \"$@\" 2>/dev/null"]).arg(print.get_program()).args(print.get_args());
    command.env_clear().envs(print.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(print.get_current_dir().unwrap());
    let mut seat = Seat::with(command, 80, 24);
    assert_eq!(seat.ends(), Some(0));
    assert_eq!(seat.screen().trim(), "I look.\nNothing there.");
}

#[test]
fn a_session_is_in_the_mode_it_was_left_in_where_somebody_is_there() {
    // What lets everything run, or nothing, is chosen anew; without anybody there only what is said counts.
    for (left_in, options, runs) in [
        ("acceptEdits", vec!["--continue"], true),
        ("acceptEdits", vec!["--continue", "--permission-mode", "default"], false),
        ("default", vec!["--continue"], false),
        ("plan", vec!["--continue"], false),
    ] {
        let place = Place::new();
        let write = tool("Write", json!({"file_path": "made.txt", "content": "made\n"}));
        let model = model(Script::new().reply([text("Hello.")]).reply([write]).reply([text("Made.")]));
        let mut seat = Seat::at(&place, &model, ["--permission-mode", left_in, "say hello"]);
        seat.sees("Hello.");
        seat.rests();
        seat.types("\u{4}");
        assert_eq!(seat.ends(), Some(0));
        let mut seat = Seat::at(&place, &model, options);
        seat.sees("Hello.");
        seat.types("make it\r");
        seat.sees(if runs { "Made." } else { "made.txt?" });
        assert_eq!(place.has("made.txt"), runs, "{left_in}");
    }
    let place = Place::new();
    let write = tool("Write", json!({"file_path": "made.txt", "content": "made\n"}));
    let model = model(Script::new().reply([text("Hello.")]).reply([write]).reply([text("Made.")]));
    for words in [&["-p", "hello", "--permission-mode", "acceptEdits"][..], &["-p", "make it", "--continue"]]
    {
        let mut command = place.pelton(words.iter().copied());
        assert_eq!(command.asks(&model).run().code, Some(0));
    }
    assert!(!place.has("made.txt"));
}

#[test]
fn calls_are_told_as_people_would_tell_them() {
    let place = Place::new();
    place.put("src/one.rs", "fn one() {}\nfn two() {}\n");
    place.put("src/two.rs", "fn two() {}\n");
    // Models name files by whole paths.
    let file = place.work().join("src/one.rs").display().to_string();
    let grep = |mode: &str| tool("Grep", json!({"pattern": "fn two", "output_mode": mode}));
    let model = model(
        Script::new()
            .reply([
                tool("Read", json!({"file_path": file})),
                grep("files_with_matches"),
                grep("content"),
                grep("count"),
                tool("Glob", json!({"pattern": "src/one.*"})),
            ])
            .reply([tool("Bash", json!({"command": "sleep 1.2; false", "description": "Fail"}))])
            .reply([text("Looked.")]),
    );
    let mut command = place.pelton(["--allowedTools", "Bash", "--", "go"]);
    command.asks(&model).env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
    let seat = Seat::with(command, 100, 30);
    seat.sees("Looked.");
    seat.rests();
    let rows = seat.rows();
    let tree: Vec<&String> = rows.iter().filter(|row| row.starts_with("├─")).collect();
    let expected = [
        "├─ Reading src/one.rs · 2 lines",
        "├─ Searching fn two · 2 files",
        "├─ Searching fn two · 2 lines",
        "├─ Searching fn two · 2 lines in 2 files",
        "├─ Finding src/one.* · 1 file",
    ];
    assert_eq!(tree[..5], expected, "{rows:#?}");
    // Why stands in front of how long.
    assert!(tree[5].starts_with("├─ Running sleep 1.2; false · failed: Exit code 1 · 1."), "{rows:#?}");
    // Six calls in two turns, and a third that calls nothing.
    assert!(rows.iter().any(|row| row.starts_with("└─ 3 turns · 6 tool calls · ")), "{rows:#?}");
}

#[test]
fn the_tree_says_what_came_of_each_call_in_a_row() {
    let place = Place::new();
    let todos = json!({"todos": [
        {"content": "wash", "status": "completed", "activeForm": "washing"},
        {"content": "dry", "status": "in_progress", "activeForm": "drying"}]});
    let long = "a".repeat(90);
    let model = model(
        Script::new()
            .reply([
                tool("TodoWrite", todos),
                tool("Write", json!({"file_path": "new.txt", "content": "one\ntwo\nthree\n"})),
                tool("Glob", json!({"pattern": long.clone()})),
                tool("Read", json!({"file_path": format!("{long}.txt")})),
            ])
            .reply([tool(
                "Edit",
                json!({"file_path": "new.txt", "old_string": "two\n", "new_string": "zwei\n"}),
            )])
            .reply([text("Done.")]),
    );
    let seat = Seat::at(&place, &model, ["--permission-mode", "acceptEdits", "go"]);
    seat.sees("Done.");
    seat.rests();
    let rows = seat.rows();
    let from = rows.iter().position(|row| row.starts_with("├─")).unwrap();
    let expected = [
        "├─ Updating the to-do list · 1 of 2 done",
        "│  [x] wash",
        "│  [>] dry",
        "├─ Writing new.txt · +3 −0",
    ];
    assert_eq!(rows[from..from + 4], expected, "{rows:#?}");
    let told = |begin: &str| rows.iter().filter(|row| row.starts_with(begin)).collect::<Vec<_>>();
    assert!(told("├─ Finding aaa")[0].contains("aaa… · "), "{rows:#?}");
    // Why one failed stands below it where there is no room beside it.
    assert!(told("├─ Reading aaa")[0].ends_with("aaa… · failed"), "{rows:#?}");
    assert!(told("│  ").iter().any(|row| row.contains("does not exist")), "{rows:#?}");
    assert_eq!(told("├─ Editing new.txt"), ["├─ Editing new.txt · +1 −1"], "{rows:#?}");
}
