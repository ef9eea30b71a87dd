//! How a session is begun and gone on with: trust, the list of sessions, what `--continue` means, words that are no commands.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pelton_testkit::{Script, Step, text};
use serde_json::json;

use crate::place::{Commanded, Place, model};
use crate::seat::Seat;

fn always(words: &str) -> pelton_testkit::ScriptedModel {
    model(Script::new().step(Step::reply([text(words)]).always()))
}

#[test]
fn a_new_directory_is_asked_about_before_anything_of_it_runs() {
    let place = Place::new();
    let hook = json!({"type": "command", "command": "touch hooked"});
    let settings = json!({"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}, "permissions": {"allow": ["Bash(make:*)"]}});
    place.put(".claude/settings.json", &settings.to_string());
    let model = always("Here.");
    // No: it goes on without them, and asks again another day.
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("is not trusted");
    seat.sees("allow rule Bash(make:*)");
    seat.sees("touch hooked");
    seat.sees("[y/N]");
    seat.types("n\r");
    seat.sees("asks before changes");
    seat.types("hello\r");
    seat.sees("Here.");
    seat.rests();
    assert!(!place.has("hooked"));
    seat.types("\u{4}");
    assert_eq!(seat.ends(), Some(0));
    // Yes: they count from now on, and nobody is asked again.
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("[y/N]");
    seat.types("y\r");
    seat.sees("asks before changes");
    seat.types("hello\r");
    seat.until("the hook has run", |_| place.has("hooked"));
    seat.rests();
    seat.types("\u{4}");
    assert_eq!(seat.ends(), Some(0));
    let seat = Seat::at(&place, &model, []);
    seat.sees("asks before changes");
    assert!(!seat.rows().join("\n").contains("is not trusted"));
}

#[test]
fn all_of_what_a_directory_brings_is_seen_in_a_line_each_before_it_is_trusted() {
    let place = Place::new();
    let hook = json!({"type": "command", "command": "echo a\u{202e}b\nTrust it? [y/N] y\u{1b}[2J"});
    place.put(".claude/settings.json", &json!({"hooks": {"Stop": [{"hooks": [hook]}]}}).to_string());
    let server = json!({"command": "sh", "args": ["-c", "touch served"]});
    let far = json!({"type": "http", "url": "https://far.example/mcp"});
    place.put(".mcp.json", &json!({"mcpServers": {"near": server, "far": far}}).to_string());
    let seat = Seat::at(&place, &always("Here."), []);
    seat.sees("[y/N]");
    let screen = seat.screen();
    for line in [
        "hook at Stop: echo a‹U+202E›b⏎Trust it? [y/N] y‹U+001B›[2J",
        "server near: sh -c touch served",
        "server far: https://far.example/mcp",
    ] {
        assert!(screen.lines().any(|row| row.trim() == line), "{line}:\n{screen}");
    }
    let ran = place.pelton(["trust"]).run();
    let told = ran.well();
    assert!(told.contains("b⏎Trust it? [y/N] y‹U+001B›[2J") && told.contains("server near: sh -c"), "{told}");
}

#[test]
fn a_server_that_changed_is_named_by_the_question_about_it() {
    let place = Place::new();
    let serving = |words: &str| {
        let server = json!({"command": "sh", "args": ["-c", words]});
        place.put(".mcp.json", &json!({"mcpServers": {"near": server}}).to_string());
    };
    serving("true");
    place.pelton(["trust", "--yes"]).run().well();
    let model = always("Here.");
    let seat = Seat::at(&place, &model, []);
    seat.sees("asks before changes");
    drop(seat);
    serving("touch served");
    let seat = Seat::at(&place, &model, []);
    seat.sees("[y/N]");
    let told = "server near, which has changed since it was approved: sh -c touch served";
    assert!(seat.screen().contains(told), "{}", seat.screen());
    assert!(!place.has("served"));
}

#[test]
fn a_question_about_a_directory_can_be_left_by_a_signal() {
    let place = Place::new();
    place.put(".claude/settings.json", &json!({"permissions": {"allow": ["Bash(make:*)"]}}).to_string());
    let model = always("Here.");
    let asked = || {
        let seat = Seat::at(&place, &model, []);
        seat.sees("[y/N]");
        seat
    };
    let mut seat = asked();
    seat.types("\u{3}");
    assert_eq!(seat.ends(), None, "the interrupt itself ended it");
    let mut seat = asked();
    kill(Pid::from_raw(seat.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert_eq!(seat.ends(), None, "the signal itself ended it");
}

#[test]
fn a_session_is_picked_from_a_list() {
    let place = Place::new();
    let model = always("Well.");
    for words in ["plant the tulips", "water the roses"] {
        let mut seat = Seat::at(&place, &model, [words]);
        seat.sees("Well.");
        seat.rests();
        seat.types("\u{4}");
        assert_eq!(seat.ends(), Some(0));
    }
    let mut seat = Seat::at(&place, &model, ["--resume"]);
    seat.sees("Go on with");
    seat.sees("plant the tulips");
    seat.sees("water the roses");
    // What is typed narrows it down.
    seat.types("tul");
    seat.sees_no_more("water the roses");
    seat.types("\r");
    seat.sees("> plant the tulips");
    seat.types("and now?\r");
    seat.until("it goes on", |_| {
        let asked = model.requests().last().unwrap().body["messages"].to_string();
        asked.contains("plant the tulips") && asked.contains("and now?")
    });
    seat.rests();
    assert!(!seat.rows().join("\n").contains("Go on with"), "the list is gone");
    // Esc goes on with none, and leaves nothing behind.
    let mut seat = Seat::at(&place, &model, ["--resume"]);
    seat.sees("Go on with");
    // In the lowest window what is asked and what Enter takes are seen, and the cursor is where words are typed.
    seat.resize(60, 3);
    seat.until("both are seen", |seat| {
        let screen = seat.screen();
        screen.starts_with("Go on with") && screen.contains("❯ ") && seat.cursor() == (0, 12)
    });
    seat.types("\u{1b}[B");
    seat.until("the second is marked", |seat| {
        seat.screen().contains("❯ ") && seat.screen().contains("roses")
    });
    seat.types("\u{1b}");
    assert_eq!(seat.ends(), Some(0));
    seat.sees_no_more("Go on with");
}

#[test]
fn sessions_are_called_by_what_somebody_typed_and_found_by_that() {
    let place = Place::new();
    let model = always("Well.");
    for words in ["<b>bold</b> is not bold", "!echo by hand"] {
        let mut seat = Seat::at(&place, &model, []);
        seat.sees("asks before changes");
        seat.types(&format!("{words}\r"));
        seat.sees("Well.");
        seat.rests();
        seat.types("\u{4}");
        assert_eq!(seat.ends(), Some(0));
    }
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("asks before changes");
    seat.types("/resume nothing like it\r");
    seat.sees("no session here is called nothing like it");
    seat.sees("Go on with");
    let rows = seat.rows();
    for words in ["<b>bold</b> is not bold", "!echo by hand"] {
        assert!(rows.iter().any(|row| row.ends_with(&format!("ago  {words}"))), "{rows:#?}");
    }
    seat.types("\u{1b}");
    seat.sees_no_more("Go on with");
    // One that is not there is no reason to leave this one.
    seat.types("/resume 7c1b7a54-6f6e-4a3a-9b62-0d2f4f0d1c11\r");
    seat.sees("there is no session 7c1b7a54");
    seat.types("/resume <b>bold</b> is not bold\r");
    seat.sees("> <b>bold</b> is not bold\n\nWell.");
    seat.types("\u{1b}");
    seat.sees("Esc again to go back");
    seat.types("\u{1b}");
    seat.sees("❯ <b>bold</b> is not bold");
}

#[test]
fn a_session_is_picked_by_its_number_where_there_are_no_keys() {
    let place = Place::new();
    let model = always("Well.");
    for words in ["plant the tulips", "water the roses", "water the tulips"] {
        let mut seat = Seat::at(&place, &model, [words]);
        seat.sees("Well.");
        seat.rests();
        seat.types("\u{4}");
        assert_eq!(seat.ends(), Some(0));
    }
    let mut seat = Seat::at(&place, &model, ["--plain", "--resume"]);
    seat.sees("1. water the tulips (");
    seat.sees("3. plant the tulips (");
    seat.types("water\r");
    seat.sees("2. water the roses (");
    seat.types("2\r");
    seat.sees("> water the roses");
    seat.types("and now?\r");
    seat.until("it goes on", |_| {
        let asked = model.requests().last().unwrap().body["messages"].to_string();
        asked.contains("water the roses") && asked.contains("and now?")
    });
    // The same inside a session, also if it still works.
    seat.types("/resume\r");
    seat.sees("2. plant the tulips (");
    seat.types("plant\r");
    seat.sees("> plant the tulips");
    seat.types("/exit\r");
    assert_eq!(seat.ends(), Some(0));
    let shown = String::from_utf8(seat.bytes()).unwrap();
    assert!(shown.chars().all(|c| !c.is_control() || matches!(c, '\r' | '\n')), "{shown:?}");
    // An empty line goes on with none.
    let mut seat = Seat::at(&place, &model, ["--plain", "--resume"]);
    seat.sees("for none.");
    seat.types("\r");
    assert_eq!(seat.ends(), Some(0));
    // A signal is heard before there is a session, too.
    for words in [&["--plain", "--resume"][..], &["--resume"]] {
        let mut seat = Seat::at(&place, &model, words.iter().copied());
        seat.sees("Go on with");
        kill(Pid::from_raw(seat.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
        assert_eq!(seat.ends(), Some(143));
    }
}

#[test]
fn without_a_session_there_is_nothing_to_pick() {
    let place = Place::new();
    let model = always("Well.");
    let mut seat = Seat::at(&place, &model, ["--resume"]);
    assert_eq!(seat.ends(), Some(1));
    seat.sees("there is no session in this directory yet");
}

#[test]
fn continue_at_a_terminal_goes_on_with_what_somebody_sat_in_front_of() {
    let place = Place::new();
    let model = always("Well.");
    let mut seat = Seat::at(&place, &model, ["at the terminal"]);
    seat.sees("Well.");
    seat.rests();
    seat.types("\u{4}");
    assert_eq!(seat.ends(), Some(0));
    // A newer one that ran without anybody.
    place.task(&model, ["without anybody"]).run().well();
    let mut seat = Seat::at(&place, &model, ["--continue", "more"]);
    seat.until("it goes on", |_| {
        let asked = model.requests().last().unwrap().body["messages"].to_string();
        asked.contains("at the terminal") && asked.contains("more")
    });
    seat.rests();
    seat.types("\u{4}");
    assert_eq!(seat.ends(), Some(0));
    // Without a screen the newest of all counts.
    place.task(&model, ["again without"]).run().well();
    place.task(&model, ["--continue", "once more"]).run().well();
    let asked = model.requests().last().unwrap().body["messages"].to_string();
    assert!(asked.contains("again without") && asked.contains("once more"), "{asked}");
}

#[test]
fn continue_says_where_the_sessions_are_that_nobody_sat_in_front_of() {
    let place = Place::new();
    let model = always("Well.");
    place.task(&model, ["without anybody"]).run().well();
    let mut seat = Seat::at(&place, &model, ["--continue"]);
    assert_eq!(seat.ends(), Some(1));
    seat.sees("--resume goes on with those of pelton -p");
}

#[test]
fn one_word_is_a_task_unless_it_is_a_slip() {
    let place = Place::new();
    let model = always("Begun.");
    let seat = Seat::at(&place, &model, ["begin"]);
    seat.sees("> begin");
    seat.sees("Begun.");
    let mut seat = Seat::at(&place, &model, ["doctro"]);
    assert_eq!(seat.ends(), Some(1));
    seat.sees("did you mean 'pelton doctor'?");
}
