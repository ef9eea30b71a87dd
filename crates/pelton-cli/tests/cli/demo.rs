//! `pelton demo`: a real task on a scripted model.

use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;
use pelton_testkit::{Script, Step, When, text, thinking, tool};
use serde_json::json;

use crate::place::{Commanded, Place, Ran, model, until};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/demo/sample");

#[track_caller]
fn value_of(ran: &Ran, name: &str) -> PathBuf {
    let line = ran.err.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name:?} in:\n{}", ran.err)).trim().into()
}

#[track_caller]
fn went_well(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("All 9 checks pass."), "{}", ran.out);
    for line in [
        "├─ Searching",
        "├─ Reading",
        "├─ Editing",
        "├─ Running sh tests/run.sh · 1 line",
        "└─ 5 turns",
        "Done: ",
    ] {
        assert!(ran.err.contains(line), "{line} is missing:\n{}", ran.err);
    }
    assert!(!ran.err.contains('\u{1b}'), "colours in a pipe");
}

#[test]
fn the_bug_is_fixed_and_nothing_is_left_but_the_transcript() {
    let place = Place::new();
    let ran = place.pelton(["demo"]).run();
    went_well(&ran);
    assert!(!value_of(&ran, "In:").exists());
    assert!(value_of(&ran, "Transcript:").is_file());
    assert_eq!(std::fs::read_dir(place.temp()).unwrap().count(), 0);
}

#[test]
fn the_folder_can_be_kept() {
    let place = Place::new();
    let ran = place.pelton(["demo", "--keep"]).run();
    went_well(&ran);
    let folder = value_of(&ran, "Kept:");
    assert!(Command::new("sh").arg(folder.join("tests/run.sh")).output().unwrap().status.success());
    assert_ne!(file(&folder, "src/leap.sh"), file(SAMPLE.as_ref(), "src/leap.sh"));
    for unchanged in ["src/days.sh", "tests/run.sh", "README.md"] {
        assert_eq!(file(&folder, unchanged), file(SAMPLE.as_ref(), unchanged));
    }
}

fn file(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn faults_on_the_way_are_survived_and_shown() {
    for (fault, word) in [("overload", "529"), ("cut", "asking again")] {
        let place = Place::new();
        let ran = place.pelton(["demo", "--fault", fault]).run();
        went_well(&ran);
        assert_eq!(ran.err.lines().filter(|line| line.starts_with("! ")).count(), 2, "{}", ran.err);
        assert!(ran.err.contains(word), "{}", ran.err);
        assert!(ran.err.contains("2 retries"), "{}", ran.err);
    }
}

#[test]
fn a_proxy_for_the_world_is_not_one_for_the_demo() {
    let place = Place::new();
    went_well(
        &place
            .pelton(["demo"])
            .env("HTTP_PROXY", "http://127.0.0.1:9")
            .env("ALL_PROXY", "http://127.0.0.1:9")
            .run(),
    );
}

#[test]
fn the_demo_writes_frames_too() {
    let place = Place::new();
    let ran = place.pelton(["demo", "--output-format", "stream-json"]).run();
    ran.well();
    assert_eq!(ran.result()["is_error"], false);
    let ran = place.pelton(["demo", "--output-format", "json"]).run();
    ran.well();
    assert_eq!((ran.frames().len(), &ran.result()["is_error"]), (1, &json!(false)));
    // What the help says of the formats holds for the demo.
    let help = place.pelton(["demo", "--help"]).run().well().to_owned();
    assert!(help.contains("stream-json") && !help.contains("--verbose"), "{help}");
}

#[test]
fn settings_for_real_models_do_not_disturb_the_scripted_one() {
    let place = Place::new();
    let mut command = place.pelton(["demo", "--fault", "overload"]);
    for (name, value) in [
        ("ANTHROPIC_MODEL", "foo"),
        ("ANTHROPIC_CUSTOM_HEADERS", "no colon"),
        ("CLAUDE_CODE_MAX_TURNS", "1"),
        ("CLAUDE_CODE_MAX_RETRIES", "0"),
        ("MAX_THINKING_TOKENS", "many"),
    ] {
        command.env(name, value);
    }
    went_well(&command.run());
}

/// The hints of a task would lead nowhere here: the demo has other options, and its folder is gone.
#[test]
fn a_demo_that_fails_names_ways_out_that_there_are() {
    let place = Place::new();
    place.put("not-a-folder", "");
    let mut command = place.pelton(["demo"]);
    let ran = command.env("CLAUDE_CONFIG_DIR", place.work().join("not-a-folder")).run();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("cannot open the session file") && ran.err.contains("set CLAUDE_CONFIG_DIR to"));
    let model = model(Script::new().step(Step::status(401)));
    let refused = place.pelton(["demo", "--model", "sonnet"]).asks(&model).run();
    assert_eq!(refused.code, Some(1), "{refused:?}");
    for ran in [ran, refused] {
        assert!(
            !ran.err.contains("--no-session-persistence") && !ran.err.contains("--resume"),
            "{}",
            ran.err
        );
    }
}

#[test]
fn an_interrupted_demo_ends_as_such_and_tidies_up() {
    let place = Place::new();
    let running = place.pelton(["demo"]).start();
    until("it works", || !place.transcripts().is_empty());
    running.signal(Signal::SIGINT);
    let ran = running.end();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(ran.err.ends_with("\ninterrupted\n"), "{}", ran.err);
    assert_eq!(std::fs::read_dir(place.temp()).unwrap().count(), 0);
}

/// A copy of the sample with other files in some places.
fn sample_with(place: &Place, changes: &[(&str, &str)]) -> PathBuf {
    let folder = place.work().join("sample");
    let copied = Command::new("cp").args(["-r", SAMPLE]).arg(&folder).status().unwrap();
    assert!(copied.success());
    for (name, content) in changes {
        std::fs::write(folder.join(name), content).unwrap();
    }
    folder
}

/// The demo proves something only if it can fail: the script cannot fix a bug it was not written for.
#[test]
fn another_bug_is_not_fixed_and_said_so() {
    let fixed = "is_leap() {\n    [ $(($1 % 400)) -eq 0 ] || { [ $(($1 % 4)) -eq 0 ] && [ $(($1 % 100)) -ne 0 ]; }\n}\n";
    let broken = file(SAMPLE.as_ref(), "src/days.sh").replace("4|6|9|11) echo 30", "4|6|9|11) echo 31");
    for changes in [
        // Another file.
        &[("src/leap.sh", fixed), ("src/days.sh", broken.as_str())][..],
        // The known bug and another.
        &[("src/days.sh", broken.as_str())],
        // Another bug in the same place.
        &[("src/leap.sh", "is_leap() {\n    [ $(($1 % 5)) -eq 0 ]\n}\n")],
    ] {
        let place = Place::new();
        let sample = sample_with(&place, changes);
        let ran = place.pelton(["demo", "--sample", sample.to_str().unwrap()]).run();
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(
            ran.err.ends_with("error: the task was not done: the sample's tests still fail\n"),
            "{}",
            ran.err
        );
        assert!(ran.err.contains("Not done: ") && !ran.out.contains("checks pass"), "{ran:?}");
        assert!(!value_of(&ran, "In:").exists());
    }
    let place = Place::new();
    let sample = sample_with(&place, &[("src/leap.sh", fixed)]);
    let ran = place.pelton(["demo", "--sample", sample.to_str().unwrap()]).run();
    ran.failed(1, &["tests pass already"]);
}

#[test]
fn the_same_task_runs_on_another_model() {
    let place = Place::new();
    // This one goes another way about it.
    let fix = "[ $(($1 % 4)) -eq 0 ] && { [ $(($1 % 100)) -ne 0 ] || [ $(($1 % 400)) -eq 0 ]; }";
    let run_tests = || tool("Bash", json!({"command": "sh tests/run.sh", "description": "Run the tests"}));
    let content = format!("is_leap() {{\n    {fix}\n}}\n");
    let turn = |part| Step::reply([thinking("Hm."), part]);
    let after = |result: &str| When::any().last_tool_result(result);
    let server = model(
        Script::new()
            .model("claude-haiku-4-5")
            .step(turn(run_tests()))
            .step(turn(tool("Read", json!({"file_path": "src/leap.sh"}))).when(after("7 passed, 2 failed")))
            .step(turn(tool("Write", json!({"file_path": "src/leap.sh", "content": content}))))
            .step(turn(run_tests()))
            .step(turn(text("Fixed.")).when(after("9 passed, 0 failed"))),
    );
    let ran = place.pelton(["demo", "--model", "claude-haiku-4-5"]).asks(&server).run();
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Fixed.\n"), "{}", ran.err);
    assert!(ran.err.contains("└─ 5 turns · 4 tool calls"), "{}", ran.err);
    server.assert_clean();
    server.assert_played_out();

    // One that claims to have done it has not.
    let liar = model(Script::new().reply([text("Fixed, trust me.")]));
    let ran = place.pelton(["demo", "--model", "sonnet"]).asks(&liar).run();
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.ends_with("the sample's tests still fail\n"), "{}", ran.err);

    place.pelton(["demo", "--model", "sonnet"]).run().failed(1, &["no API key"]);
}
