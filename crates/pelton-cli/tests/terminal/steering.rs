//! While it works: words that wait, words that are read at once, and an end.

use std::time::Instant;

use pelton_testkit::{Script, gate, text, tool};
use serde_json::json;

use crate::place::{Commanded, Place, model};
use crate::seat::Seat;

#[test]
fn loop_Z7_words_while_it_works_are_read_at_the_next_step_or_behind_it() {
    let place = Place::new();
    let model = model(
        Script::new()
            .reply([text("First."), gate("open"), tool("Glob", json!({"pattern": "*"}))])
            .reply([text("Second.")])
            .reply([text("Third.")]),
    );
    let mut seat = Seat::at(&place, &model, ["do it"]);
    seat.sees("works");
    seat.types("read this next\r");
    seat.sees("(read at the next step");
    seat.types("and this later\t");
    seat.sees("(read when this is done");
    model.open("open");
    seat.sees("Second.");
    seat.sees("Third.");
    let requests = model.requests();
    assert_eq!(requests.len(), 3);
    let (second, third) = (requests[1].body.to_string(), requests[2].body.to_string());
    assert!(second.contains("read this next") && !second.contains("and this later"), "{second}");
    assert!(third.contains("and this later"), "{third}");
    let rows = seat.rows().join("\n");
    assert!(rows.contains("> read this next") && rows.contains("> and this later"), "{rows}");
    assert!(!rows.contains("takes it back"), "{rows}");
}

#[test]
fn commands_that_need_the_engine_wait_for_it_and_are_no_words_for_the_model() {
    let place = Place::new();
    let model =
        model(Script::new().reply([text("First."), gate("open"), text(" Done.")]).reply([text("Seen.")]));
    let mut seat = Seat::at(&place, &model, ["do it"]);
    seat.sees("works");
    seat.types("/export talk.md\r");
    seat.sees("(/export waits until this is done)");
    seat.types("!echo made > own\r");
    seat.sees("(your command waits until this is done)");
    assert!(!place.has("talk.md") && !place.has("own"));
    model.open("open");
    seat.sees("the conversation goes to talk.md");
    seat.until("both are done", |_| {
        place.has("own") && place.has("talk.md") && place.read("talk.md").contains("Done.")
    });
    seat.sees("Seen.");
    assert_eq!(model.requests().len(), 2, "the second answers to the command's output");
}

#[test]
fn escape_interrupts_and_the_session_goes_on() {
    let place = Place::new();
    let model = model(Script::new().reply([text("Slowly"), gate("never")]).reply([text("Here.")]));
    let mut seat = Seat::at(&place, &model, ["do it"]);
    seat.sees("Slowly");
    let began = Instant::now();
    seat.types("\u{1b}");
    seat.sees("interrupted");
    let took = began.elapsed();
    assert!(took.as_secs() < 5, "{took:?}");
    seat.types("still there?\r");
    seat.sees("Here.");
    seat.rests();
    // Ctrl-C clears, and twice leaves.
    seat.types("words");
    seat.sees("> words");
    seat.types("\u{3}");
    seat.sees_no_more("> words");
    seat.types("\u{3}");
    seat.sees("Ctrl-C again to leave");
    seat.types("\u{3}");
    assert_eq!(seat.ends(), Some(0));
}

#[test]
fn shift_tab_goes_through_the_modes() {
    let place = Place::new();
    let model = model(Script::new());
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("asks before changes");
    for mode in ["edits without asking", "plans only", "asks before changes"] {
        seat.types("\u{1b}[Z");
        seat.sees(mode);
    }
}

#[test]
fn two_escapes_take_the_conversation_and_files_back() {
    let place = Place::new();
    let write = tool("Write", json!({"file_path": "made.txt", "content": "made\n"}));
    let model = model(
        Script::new().reply([text("Hello.")]).reply([write]).reply([text("Made.")]).reply([text("Other.")]),
    );
    let mut seat = Seat::at(&place, &model, ["--permission-mode", "acceptEdits", "say hello"]);
    seat.sees("Hello.");
    seat.rests();
    seat.types("make it\r");
    seat.sees("Made.");
    assert!(place.has("made.txt"));
    seat.rests();
    seat.types("\u{1b}");
    seat.sees("Esc again to go back");
    seat.types("\u{1b}");
    seat.sees("Go back to before");
    seat.types("\r");
    seat.sees("What goes back?");
    // The preview, as it is seen from here.
    seat.sees("Files as they were before:\n  made.txt\n  comes back: 0 lines · goes: 1 line");
    seat.types("b");
    seat.sees("> make it");
    seat.until("the file is gone", |_| !place.has("made.txt"));
    // What is above stays as it is: nothing of it is told again, and it is said what of it counts.
    seat.sees("back to before “make it”: what was said since does not count any more");
    assert_eq!(seat.rows().iter().filter(|row| *row == "Hello.").count(), 1, "{:#?}", seat.rows());
    // Nor is what was spent forgotten.
    seat.sees("context · $0.");
    // The words are there to be written again.
    seat.types(" differently\r");
    seat.sees("Other.");
    let last = model.requests().last().unwrap().body["messages"].to_string();
    assert!(last.contains("make it differently") && !last.contains("Made."), "{last}");
    assert!(last.contains("say hello"), "{last}");
}

#[test]
fn a_command_line_of_ones_own_runs_unasked_and_the_model_answers_to_it() {
    let place = Place::new();
    let model = model(Script::new().reply([text("I saw it.")]));
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("> ");
    seat.types("!echo by hand > made; cat made\r");
    seat.until("the command has run", |_| place.has("made"));
    seat.sees("by hand");
    seat.sees("I saw it.");
    let rows = seat.rows();
    let at = rows.iter().rposition(|row| row == "by hand").unwrap();
    assert_eq!(rows[at + 1..at + 3], ["", "I saw it."], "{rows:#?}");
    let told = model.requests().last().unwrap().body["messages"].to_string();
    assert!(told.contains("<bash-input>echo by hand > made; cat made</bash-input>"), "{told}");
}

#[test]
fn whoever_does_not_want_an_answer_to_it_says_so_and_the_model_reads_it_later() {
    let place = Place::new();
    std::fs::write(place.config().join("settings.json"), r#"{"respondToBashCommands": false}"#).unwrap();
    let model = model(Script::new().reply([text("I saw it.")]));
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("> ");
    seat.types("!echo by hand > made; cat made\r");
    seat.until("the command has run", |_| place.has("made"));
    seat.sees("by hand");
    seat.rests();
    assert!(model.requests().is_empty());
    seat.types("what did I do?\r");
    seat.sees("I saw it.");
    let told = model.requests().last().unwrap().body["messages"].to_string();
    assert!(told.contains("<bash-input>echo by hand > made; cat made</bash-input>"), "{told}");
}

#[test]
fn a_question_that_nobody_does_anything_about_goes_on_without_them() {
    let place = Place::new();
    std::fs::write(place.config().join("settings.json"), r#"{"askUserQuestionTimeout": "60s"}"#).unwrap();
    let question = |words: &str| {
        json!({"question": words, "header": "H", "multiSelect": false,
            "options": [{"label": "Left", "description": "l"}, {"label": "Right", "description": "r"}]})
    };
    let both = json!({"questions": [question("Which way?"), question("How far?")]});
    let model = model(
        Script::new()
            .reply([tool("AskUserQuestion", both.clone())])
            .reply([tool("AskUserQuestion", both)])
            .reply([text("I went on.")]),
    );
    let mut command = place.pelton(["go"]);
    command.asks(&model).env("TERM", "xterm-256color").env("CLAUDE_AFK_TIMEOUT_MS", "1500");
    let mut seat = Seat::with(command, 80, 24);
    seat.sees("Which way?");
    // One of two is answered.
    seat.types("1");
    seat.sees("How far?");
    seat.until("it is asked again", |_| model.requests().len() == 2);
    seat.sees("I went on.");
    let told = model.requests().last().unwrap().body["messages"].to_string();
    assert!(told.contains("Left"), "{told}");
    assert!(told.contains("nobody answered: the user may be away"), "{told}");
    assert!(told.contains("Nobody answered in time"), "{told}");
    seat.rests();
    let rows = seat.rows();
    let at = |words: &str| {
        rows.iter().position(|row| row.starts_with(words)).unwrap_or_else(|| panic!("{words}: {rows:#?}"))
    };
    assert_eq!(rows[at("├─ Asking you · answered") + 1], "│  Which way? Left", "{rows:#?}");
    assert_eq!(rows[at("├─ Asking you · not answered") + 1], "│  nobody answered in time", "{rows:#?}");
}
