//! `--debug` and `--debug-file`: what is noted of a session, and what never is.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use pelton_testkit::{Script, Step, text, tool};
use serde_json::json;

use crate::place::{Commanded, Place, model};
use crate::talk::Talk;

fn files(place: &Place) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(place.config().join("debug")) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn pit_S5_a_log_says_what_happened_and_nothing_that_was_said() {
    let place = Place::new();
    place.put("secret.txt", "PAYLOAD-in-a-file");
    let hook = json!({"hooks": {
        "PreToolUse": [{"hooks": [{"type": "command", "command": "echo PAYLOAD-of-a-hook; echo PAYLOAD-of-a-hook >&2"}]}],
        "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo PAYLOAD-told-by-a-hook"}]}],
    }});
    let model = model(
        Script::new()
            .step(Step::status(529).message("PAYLOAD-of-an-error"))
            .reply([
                text("PAYLOAD-said."),
                tool("Read", json!({"file_path": place.work().join("secret.txt")})).id("toolu_1"),
            ])
            .reply([tool("Bash", json!({"command": "echo PAYLOAD-typed; exit 3"})).id("toolu_2")])
            .reply([tool("Write", json!({"file_path": "/x", "content": "PAYLOAD-denied"})).id("toolu_3")])
            .reply([text("PAYLOAD-at-the-end")]),
    );
    let words = [
        "--debug",
        "--settings",
        &hook.to_string(),
        "--allowedTools",
        "Bash",
        "--append-system-prompt",
        "PAYLOAD-system",
    ];
    let mut talk = Talk::start(&place, &model, &words);
    talk.asked(&json!({"subtype": "initialize", "hooks": null}));
    talk.prompt("PAYLOAD-of-the-user");
    let session = talk.result()["session_id"].as_str().unwrap().to_owned();
    talk.end();

    let file = place.config().join("debug").join(format!("{session}.txt"));
    assert_eq!(files(&place), std::slice::from_ref(&file));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(place.config().join("debug").metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let log = std::fs::read_to_string(&file).unwrap();
    for words in [
        "[start] pelton ",
        "[control] the client asks: initialize req_1",
        &format!("[session] session {session}: "),
        "[hooks] UserPromptSubmit Success, exit code 0, ",
        "[api] attempt 1 of 10 failed: overloaded, HTTP 529; the next in ",
        "[api] the model is asked",
        "[tools] Read toolu_1 starts, 1 run",
        "[tools] toolu_1 is done (",
        "[hooks] PreToolUse:Bash Success, exit code 0, ",
        "[tools] toolu_2 failed (",
        "[permissions] Write toolu_3 was denied",
        "[loop] goes on: next_turn",
        "[session] ended: completed, ",
    ] {
        assert!(log.contains(words), "{words:?} is missing in:\n{log}");
    }
    assert!(!log.contains("PAYLOAD") && !log.contains("sk-test"), "{log}");
    for line in log.lines() {
        let (time, about) = line.split_once(' ').unwrap();
        assert!(time.ends_with('Z') && time.len() == 24 && about.starts_with('['), "{line}");
    }
}

#[test]
fn a_log_has_what_the_filter_names_and_goes_where_it_is_told_to() {
    let place = Place::new();
    let asked = |words: &[&str]| {
        let script = Script::new().reply([tool("Bash", json!({"command": "true"}))]).reply([text("Done.")]);
        place
            .task(&model(script), ["go", "--allowedTools", "Bash"].iter().chain(words).copied())
            .run()
            .well()
            .to_owned()
    };
    let kinds = |log: &str| -> Vec<String> {
        let mut kinds: Vec<String> =
            log.lines().map(|line| line.split(['[', ']']).nth(1).unwrap().to_owned()).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    };
    assert_eq!(asked(&["--debug-file", "all.txt"]), "Done.\n", "nothing of it is on standard output");
    assert_eq!(kinds(&place.read("all.txt")), ["api", "loop", "session", "start", "tools"]);
    asked(&["--debug=api,tools", "--debug-file", "two.txt"]);
    assert_eq!(kinds(&place.read("two.txt")), ["api", "tools"]);
    asked(&["-d=!api,!loop", "--debug-file=rest.txt"]);
    assert_eq!(kinds(&place.read("rest.txt")), ["session", "start", "tools"]);
    assert!(files(&place).is_empty(), "a file that is named is the only one");
    // Without `=` it takes no word for a filter.
    let script = || Script::new().reply([text("Done.")]);
    place.task(&model(script()), ["--debug", "api"]).run().well();
    assert_eq!(kinds(&std::fs::read_to_string(&files(&place)[0]).unwrap()), ["api", "session", "start"]);
    // A log that cannot be written hinders nothing.
    asked(&["--debug-file", "no/such/folder/x.txt"]);
}

#[test]
fn pit_S5_logs_stay_below_their_caps() {
    const FILES_MAX: usize = 20;
    const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
    let place = Place::new();
    let dir = place.config().join("debug");
    std::fs::create_dir(&dir).unwrap();
    for nth in 0..60 {
        std::fs::write(dir.join(format!("{nth}.txt")), "old").unwrap();
    }
    let full = place.put("full.txt", &"x\n".repeat(FILE_BYTES_MAX as usize / 2));
    for nth in 0..3 {
        let model = model(Script::new().reply([text("Done.")]));
        place.task(&model, ["go", "--debug"]).run().well();
        assert!(files(&place).len() <= FILES_MAX, "{nth}: {}", files(&place).len());
        place.task(&model_again(), ["go", "--debug-file", "full.txt"]).run().well();
        let bytes = |name: &str| place.work().join(name).metadata().map_or(0, |about| about.len());
        assert!(bytes("full.txt") < 100_000 && bytes("full.txt.old") <= FILE_BYTES_MAX, "{full:?}");
    }
    assert!(place.read("full.txt").matches("[session] ended").count() == 3, "what is new is there");
}

fn model_again() -> pelton_testkit::ScriptedModel {
    model(Script::new().reply([text("Done.")]))
}

/// As the SDKs' own examples ask for it.
#[test]
fn a_log_can_go_to_standard_error() {
    let place = Place::new();
    let model = model(Script::new().step(Step::reply([text("PAYLOAD-said.")]).always()));
    let mut talk = Talk::start(&place, &model, &["--debug-to-stderr"]);
    talk.prompt("PAYLOAD-of-the-user");
    talk.result();
    let piped = talk.end();
    let printed = place.task(&model, ["PAYLOAD-of-the-user", "--debug-to-stderr"]).run();
    for (code, err) in [(piped.code, &piped.err), (printed.code, &printed.err)] {
        assert_eq!(code, Some(0), "{err}");
        assert!(err.contains("[start] pelton ") && err.contains("[api] "), "{err}");
        assert!(!err.contains("PAYLOAD"), "{err}");
    }
    assert_eq!(files(&place), Vec::<PathBuf>::new());
}
