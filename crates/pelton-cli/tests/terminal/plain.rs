//! The same conversation line by line, where no cursor moves.

use pelton_testkit::{Script, gate, text, tool};
use serde_json::json;

use crate::commands::PROMPTING;
use crate::place::{Commanded, Place, model};
use crate::seat::Seat;

fn script() -> Script {
    let option = |label: &str| json!({"label": label, "description": ""});
    let ask = json!({"questions": [{"question": "Which ones?", "header": "H", "multiSelect": true, "options": [option("A"), option("B")]}]});
    Script::new()
        .reply([
            text("Let me **see**."),
            tool("Bash", json!({"command": "touch made", "description": "Make"})),
        ])
        .reply([text("It is made.")])
        .reply([tool("AskUserQuestion", ask)])
        .reply([text("Thanks.")])
        .reply([text("Slowly"), gate("never")])
        .reply([text("Good.")])
}

fn goes_through(place: &Place, mut seat: Seat) {
    seat.sees("> ");
    seat.types("make it\r");
    seat.sees("1. Yes, this once (y)");
    seat.sees("Type a number or a letter · 0: no, and stop");
    assert!(!place.has("made"));
    // An empty line answers nothing, nor do words that only have the letter of an answer in them.
    seat.types("\r");
    seat.types("what is that?\r");
    seat.until("it is asked again", |seat| {
        seat.rows().iter().filter(|row| row.starts_with("Type a number or a letter")).count() == 3
    });
    assert!(!place.has("made"));
    seat.types("y\r");
    seat.sees("It is made.");
    assert!(place.has("made"));
    seat.sees("tool call");
    seat.types("ask me\r");
    seat.sees("Which ones?");
    seat.types("1 2\r");
    seat.sees("Which ones? A, B");
    seat.sees("Thanks.");
    // Nothing runs any more: what is typed now is a prompt of its own.
    seat.until("the end is told", |seat| seat.rows().iter().filter(|row| row.starts_with("└─")).count() == 2);
    seat.types("slowly\r");
    seat.sees("Slowly");
    seat.types("read this, too\r");
    seat.sees("(noted");
    seat.types("\u{3}");
    seat.sees("interrupted");
    seat.sees("Good.");
    seat.types("/status\r");
    seat.sees("mode default");
    seat.types("/exit\r");
    assert_eq!(seat.ends(), Some(0));
    let shown = String::from_utf8(seat.bytes()).unwrap();
    let is_plain = |c: char| !c.is_control() || matches!(c, '\r' | '\n');
    assert!(shown.chars().all(is_plain), "{:?}", shown.chars().find(|c| !is_plain(*c)));
    let rows = seat.rows();
    let at = |words: &str| {
        rows.iter().position(|row| row.contains(words)).unwrap_or_else(|| panic!("{words}: {rows:#?}"))
    };
    assert!(
        at("> make it") < at("Run this command?") && at("Run this command?") < at("├─ Running touch made"),
        "{rows:#?}"
    );
    assert!(at("├─ Running touch made") < at("It is made."));
    assert!(rows.iter().any(|row| row.starts_with("go on with: pelton --resume")), "{rows:#?}");
}

#[test]
fn plain_mode_tells_the_conversation_line_by_line() {
    let (place, model) = (Place::new(), model(script()));
    let seat = Seat::at(&place, &model, ["--plain"]);
    goes_through(&place, seat);
}

#[test]
fn a_dumb_terminal_is_told_the_same() {
    let (place, model) = (Place::new(), model(script()));
    let mut command = place.pelton([]);
    command.asks(&model).env("TERM", "dumb").env("LANG", "C.UTF-8");
    goes_through(&place, Seat::with(command, 80, 24));
}

#[test]
fn what_comes_with_the_command_is_told_and_what_is_no_text_ends_nothing() {
    let place = Place::new();
    let model = model(Script::new().step(pelton_testkit::Step::reply([text("Well.")]).always()));
    let mut seat = Seat::at(&place, &model, ["--plain", "the first prompt"]);
    seat.sees("> the first prompt");
    seat.sees("Well.");
    // As a terminal sends it that does not know UTF-8.
    std::io::Write::write_all(&mut seat.device(), b"caf\xe9\n").unwrap();
    seat.until("it is asked", |_| model.requests().len() == 2);
    assert!(model.requests()[1].body["messages"].to_string().contains("caf\u{fffd}"));
    seat.types("/exit\n");
    assert_eq!(seat.ends(), Some(0));
}

#[test]
fn where_there_are_no_keys_no_other_way_to_edit_is_switched_on() {
    let (place, model) = (Place::new(), model(Script::new()));
    let mut seat = Seat::at(&place, &model, ["--plain"]);
    seat.sees("> ");
    seat.types("/vim-mode\r");
    seat.sees("there are no keys");
    assert!(!place.config().join("settings.json").exists());
    seat.types("/config editorMode=vim\r");
    seat.sees("editorMode is vim in your settings");
}

#[test]
fn lines_answer_what_they_name() {
    let place = Place::new();
    let server = place.put("server.sh", PROMPTING);
    let servers = json!({"mcpServers": {"poet": {"command": "sh", "args": [server]}}}).to_string();
    let bash = || tool("Bash", json!({"command": "touch made", "description": "Make"}));
    let call = || tool("mcp__poet__ask", json!({}));
    let model = model(
        Script::new()
            .reply([bash()])
            .reply([bash()])
            .reply([bash()])
            .reply([text("Then not.")])
            .reply([call()])
            .reply([call()])
            .reply([text("Thanks.")]),
    );
    let mut seat = Seat::at(
        &place,
        &model,
        ["--plain", "--mcp-config", &servers, "--allowedTools", "mcp__poet", "--", "go"],
    );
    let last = || model.requests().last().unwrap().body["messages"].to_string();
    // What to do instead stands behind the answer, or in a line of its own.
    seat.sees("Run this command?");
    seat.types("no use mkdir\r");
    seat.until("it is told", |_| last().contains("says: use mkdir"));
    let asked = |seat: &Seat| seat.rows().iter().filter(|row| *row == "Run this command?").count();
    seat.until("it is asked again", |seat| asked(seat) == 2);
    seat.types("3\r");
    seat.sees("Say it in a line");
    seat.types("yes, but later\r");
    seat.until("it is told", |_| last().contains("says: yes, but later"));
    seat.until("it is asked again", |seat| asked(seat) == 3);
    seat.types("0\r");
    seat.sees("interrupted");
    assert!(!place.has("made"));
    // A form, field by field.
    seat.types("ask\r");
    seat.sees("Then not.");
    seat.types("ask\r");
    seat.sees("Which metre?");
    seat.sees("kind (its name or number): ( ) iamb  ( ) trochee");
    seat.types("five\r\r");
    seat.sees("Feet is a whole number");
    seat.types("5\r");
    seat.types("iamb\r");
    seat.until("it is told", |_| last().contains("'feet':5") && last().contains("'kind':'iamb'"));
    seat.until("it is asked again", |seat| {
        // Behind the mark, where the line before was typed ahead of it.
        seat.rows().iter().filter(|row| row.ends_with("poet asks:")).count() >= 5
    });
    seat.types("/decline\r");
    seat.sees("Thanks.");
    assert!(last().contains("'action':'decline'"), "{}", last());
}
