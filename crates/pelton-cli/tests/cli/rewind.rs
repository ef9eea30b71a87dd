//! `pelton rewind`: files as they were.

use std::time::Duration;

use nix::sys::signal::Signal;
use pelton_testkit::{Script, text, tool};
use serde_json::json;

use crate::place::{Commanded, Place, model, until};

fn session_of(place: &Place) -> String {
    place.transcripts()[0].file_stem().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_session_is_rewound_and_that_is_undone() {
    let place = Place::new();
    place.put("a.txt", "one\ntwo\n");
    place.put("ignored.log", "x\n");
    place.put(".gitignore", "*.log\n");
    let command = json!({"command": "echo three >> a.txt; echo new > b.txt", "description": "Change"});
    let model =
        model(Script::new().reply([tool("Bash", command)]).reply([text("done")]).reply([text("otherwise")]));
    place.task(&model, ["change it", "--allowedTools", "Bash(*)"]).run().well();
    let session = session_of(&place);

    let preview = place.pelton(["rewind", &session, "--dry-run"]).run().well().to_owned();
    assert!(preview.contains("would restore") && preview.contains("a.txt +0 -1"), "{preview}");
    assert!(preview.contains("would remove") && preview.contains("b.txt +0 -1"), "{preview}");
    assert!(preview.contains("ignored.log (ignored or new)"), "{preview}");
    assert_eq!(place.read("a.txt"), "one\ntwo\nthree\n");

    place.pelton(["rewind", &session]).run().well();
    assert_eq!(place.read("a.txt"), "one\ntwo\n");
    assert!(!place.has("b.txt"));
    place.pelton(["rewind", &session, "--undo"]).run().well();
    assert_eq!(place.read("a.txt"), "one\ntwo\nthree\n");

    place.put("a.txt", "mine\n");
    let ran = place.pelton(["rewind", &session]).run();
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains("changed by somebody else afterwards"), "{}", ran.out);
    assert_eq!(place.read("a.txt"), "mine\n");
    place.pelton(["rewind", &session, "--force"]).run().well();
    assert_eq!(place.read("a.txt"), "one\ntwo\n");
    // The same by flags, to a message.
    place.pelton(["rewind", &session, "--undo"]).run().well();
    let is_prompt = |line: &serde_json::Value| {
        line["type"] == "user" && line["message"].to_string().contains("change it")
    };
    let prompt = place.transcript().into_iter().find(is_prompt).unwrap();
    let message = prompt["uuid"].as_str().unwrap();
    let ran = place.pelton(["-p", "--resume", &session, "--rewind-files", message]).run();
    assert!(ran.out.contains("a.txt"), "{ran:?}");
    // The conversation goes back, too: by what it says itself.
    assert!(ran.out.contains(&format!("--resume {session} --resume-drops-turn {message}")), "{}", ran.out);
    assert!(preview.contains("The conversation has 4 messages from there on"), "{preview}");
    let words = ["do it otherwise", "--resume", &session, "--resume-drops-turn", message];
    assert_eq!(place.task(&model, words).run().well(), "otherwise\n");
    let sent = model.requests().last().unwrap().body["messages"].to_string();
    assert!(sent.contains("do it otherwise") && !sent.contains("change it"), "{sent}");
    let alone = place.pelton(["-p", "--rewind-files", message]).run();
    assert_eq!(alone.code, Some(1), "{alone:?}");
    let unknown = place.pelton(["rewind", "00000000-0000-4000-8000-000000000000"]).run();
    assert!(unknown.err.contains("no file history"), "{}", unknown.err);
}

/// Killed at any moment, what the agent did until then can be undone.
#[test]
fn pit_S6_a_killed_session_is_rewound() {
    for wait_ms in [0, 15, 40, 80, 150, 300] {
        let place = Place::new();
        for n in 0..50 {
            place.put(&format!("d/{n}.txt"), &format!("{n}\n"));
        }
        let command =
            "touch began; for n in $(seq 0 49); do echo changed > d/$n.txt; sleep 0.01; done; rm -r d";
        let call = tool("Bash", json!({"command": command, "description": "Change"}));
        let model = model(Script::new().reply([call]).reply([text("done")]));
        let running = place.task(&model, ["change it", "--allowedTools", "Bash(*)"]).start();
        until("the command runs", || place.has("began"));
        std::thread::sleep(Duration::from_millis(wait_ms));
        running.signal(Signal::SIGKILL);
        running.end();
        // What it started goes with it.
        std::thread::sleep(Duration::from_millis(500));
        place.pelton(["rewind", &session_of(&place)]).run().well();
        for n in 0..50 {
            assert_eq!(place.read(&format!("d/{n}.txt")), format!("{n}\n"), "after {wait_ms} ms");
        }
        assert!(!place.has("began"));
    }
}

/// Histories of sessions that are long over go when another session ends.
#[test]
fn old_histories_are_swept() {
    let place = Place::new();
    let history = place.config().join("file-history");
    let (old, young) = (
        history.join("00000000-0000-4000-8000-000000000001"),
        history.join("00000000-0000-4000-8000-000000000002"),
    );
    for dir in [&old, &young] {
        std::fs::create_dir_all(dir).unwrap();
        std::fs::write(dir.join("x"), "x").unwrap();
    }
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(40 * 24 * 60 * 60);
    for path in [old.join("x"), old.clone()] {
        std::fs::File::open(path).unwrap().set_modified(long_ago).unwrap();
    }
    let hello = || model(Script::new().reply([text("Hello.")]));
    std::fs::write(place.config().join("settings.json"), "{\"cleanupPeriodDays\": 50}").unwrap();
    place.task(&hello(), ["hi"]).run().well();
    assert!(old.exists());
    // What cannot be read may have said so.
    std::fs::write(place.config().join("settings.json"), "{").unwrap();
    place.task(&hello(), ["hi"]).run();
    assert!(old.exists());
    std::fs::remove_file(place.config().join("settings.json")).unwrap();
    place.task(&hello(), ["hi"]).run().well();
    assert!(old.exists(), "all were looked at today");
    std::fs::File::open(history.join(".swept")).unwrap().set_modified(long_ago).unwrap();
    place.task(&hello(), ["hi"]).run().well();
    assert!(!old.exists() && young.exists());
}
