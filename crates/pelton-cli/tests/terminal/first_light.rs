//! A prompt, an answer, a tree, a question, the end.

use pelton_testkit::{Script, text, tool};
use serde_json::json;

use crate::place::{Place, model};
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
    assert!(at("Let me look.") < at("├─ Reading notes.txt"));
    assert!(at("├─ Reading notes.txt") < at("├─ Running touch made"));
    assert!(at("├─ Running touch made") < at("It has two lines."));
    assert!(at("It has two lines.") < at("└─ 3 turns · 2 tool calls"));
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
