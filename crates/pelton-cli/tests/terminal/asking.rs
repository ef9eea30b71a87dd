//! Questions, and what answers them.

use std::time::Duration;

use pelton_testkit::{Script, gate, text, tool};
use serde_json::json;

use crate::commands::PROMPTING;
use crate::place::{Commanded, Place, model};
use crate::seat::Seat;

#[test]
fn keys_that_were_typed_before_a_question_was_shown_are_no_answer() {
    let place = Place::new();
    let bash = tool("Bash", json!({"command": "touch made", "description": "Make"}));
    let model = model(Script::new().reply([text("Wait."), gate("open"), bash]).reply([text("Fine.")]));
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("> ");
    seat.types("go\r");
    seat.sees("works");
    // Somebody writes while the question comes.
    seat.types("yy");
    seat.sees("> yy");
    model.open("open");
    seat.sees("Run this command?");
    seat.sees_no_more("once you pause");
    assert!(!place.has("made"), "the keys belong to the sentence");
    seat.types("n\r");
    seat.sees("Running touch made · refused");
    seat.sees("> yy");
    assert!(!place.has("made"));
}

#[test]
fn a_key_that_is_pressed_twice_answers_one_question() {
    let place = Place::new();
    let touch = |name: &str| tool("Bash", json!({"command": format!("touch {name}"), "description": "Make"}));
    let model = model(Script::new().reply([touch("one"), touch("two")]).reply([text("Fine.")]));
    let mut seat = Seat::at(&place, &model, ["go"]);
    seat.sees("  touch one");
    seat.types("y");
    seat.sees("  touch two");
    // Nobody can have read the second by then.
    seat.types_at_once("y");
    seat.sees("once you pause");
    seat.sees_no_more("once you pause");
    assert!(place.has("one") && !place.has("two"), "{}", seat.screen());
    seat.types("1");
    seat.sees("Fine.");
    assert!(place.has("two"));
    seat.sees("> y");
}

#[test]
fn whoever_begins_a_sentence_at_a_question_answers_nothing_with_it() {
    let place = Place::new();
    let bash = tool("Bash", json!({"command": "touch made", "description": "Make"}));
    let model = model(Script::new().reply([bash]).reply([text("Fine.")]));
    let mut seat = Seat::at(&place, &model, ["go"]);
    seat.sees("Run this command?");
    // Esc would be an answer here.
    seat.sees("Ctrl-C interrupts");
    // What no answer begins with is none, and neither is what follows it.
    seat.types("/2ya\r");
    seat.sees("once you pause");
    seat.sees_no_more("once you pause");
    assert!(!place.has("made") && seat.screen().contains("Run this command?"), "{}", seat.screen());
    seat.types("nuse mkdir\r");
    seat.sees("Running touch made · refused");
    seat.sees("> /2ya");
    assert!(!place.has("made"));
    // What was said is told as it was said, and once.
    seat.sees("Fine.");
    let rows = seat.rows();
    let at = rows.iter().position(|row| row.starts_with("├─ Running touch made")).unwrap();
    assert_eq!(rows[at + 1], "│  use mkdir", "{rows:#?}");
    assert!(!rows.join(" ").contains("does not want"), "{rows:#?}");
}

#[test]
fn a_question_shows_every_command_of_a_line_and_what_always_would_mean() {
    let place = Place::new();
    let line = "mkdir a\u{200b}b && make all; ls";
    let bash = tool("Bash", json!({"command": line, "description": "Make"}));
    let model = model(Script::new().reply([bash]).reply([text("Fine.")]));
    let mut seat = Seat::at(&place, &model, ["go"]);
    seat.sees("Run this command?");
    let screen = seat.screen();
    for part in [
        "‹U+200B›",
        "├─ mkdir",
        "├─ make all",
        "├─ ls",
        "allowed",
        "asks",
        "1. Yes, this once (y)",
        "Esc: no, and stop",
    ] {
        assert!(screen.contains(part), "{part}:\n{screen}");
    }
    seat.types("\u{1b}");
    seat.sees("interrupted");
}

#[test]
fn always_is_kept_where_it_says() {
    let place = Place::new();
    let bash = |command: &str| tool("Bash", json!({"command": command, "description": "Make"}));
    let model = model(
        Script::new()
            .reply([bash("mkdir -p one")])
            .reply([bash("mkdir -p one && touch two")])
            .reply([text("Fine.")]),
    );
    let mut seat = Seat::at(&place, &model, ["go"]);
    seat.sees("and always: Bash(mkdir");
    seat.types("a");
    // Of the second only what is new is asked about.
    seat.sees("├─ mkdir -p one  allowed");
    seat.types("y");
    seat.sees("Fine.");
    assert!(place.has("one") && place.has("two"));
    seat.rests();
    assert!(place.read(".claude/settings.local.json").contains("Bash(mkdir"));
    seat.types("\u{4}");
    assert_eq!(seat.ends(), Some(0));
}

#[test]
fn an_edit_is_shown_as_a_diff_before_and_after() {
    let place = Place::new();
    place.put("code.txt", "alpha\nbeta\ngamma\n");
    let edit = tool("Edit", json!({"file_path": "code.txt", "old_string": "eta", "new_string": "elta"}));
    let model = model(
        Script::new()
            .reply([tool("Read", json!({"file_path": "code.txt"}))])
            .reply([edit])
            .reply([text("Changed.")]),
    );
    let mut seat = Seat::at(&place, &model, ["go"]);
    seat.sees("Change code.txt?");
    let screen = seat.screen();
    // Whole lines with their numbers, and what stands around them.
    for row in ["1   alpha", "2 - beta", "2 + belta", "3   gamma"] {
        assert!(screen.contains(row), "{row}: {screen}");
    }
    seat.types("1");
    seat.sees("Changed.");
    assert_eq!(place.read("code.txt"), "alpha\nbelta\ngamma\n");
    let rows = seat.rows().join("\n");
    assert!(rows.contains("├─ Editing code.txt"), "{rows}");
    assert!(rows.contains("2 + belta"), "{rows}");
}

#[test]
fn a_plan_is_approved_and_the_mode_changes_with_it() {
    let place = Place::new();
    let plan = tool("ExitPlanMode", json!({"plan": "# The plan\n\n1. Do it."}));
    let model = model(Script::new().reply([plan]).reply([text("Begun.")]));
    let mut seat = Seat::at(&place, &model, ["--permission-mode", "plan", "plan it"]);
    seat.sees("The plan");
    seat.sees("Go on with this plan?");
    seat.types("a");
    seat.sees("Begun.");
    seat.sees("edits without asking");
    seat.rests();
    // What was agreed on is still there, and what changed with it is told once.
    let rows = seat.rows();
    let count = |words: &str| rows.iter().filter(|row| row.contains(words)).count();
    assert_eq!((count("1. Do it."), count("from now on it edits")), (1, 1), "{rows:#?}");
    assert!(rows.iter().any(|row| row.starts_with("├─ Proposing a plan · approved")), "{rows:#?}");
}

#[test]
fn a_low_window_shows_what_is_asked_and_the_answer_that_enter_gives() {
    let place = Place::new();
    let bash = tool("Bash", json!({"command": "mkdir -p one", "description": "Make"}));
    let model = model(Script::new().reply([bash]).reply([text("Fine.")]));
    let mut command = place.pelton(["go"]);
    command.asks(&model).env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
    let mut seat = Seat::with(command, 60, 5);
    seat.sees("Run this command?");
    seat.sees("❯ 1. Yes, this once (y)");
    assert!(seat.rows().iter().any(|row| row == "  mkdir -p one"), "{:#?}", seat.rows());
    seat.resize(24, 4);
    seat.types("\u{1b}[B");
    // All of what "always" would keep can be read.
    seat.until("the question and the second answer", |seat| {
        let screen = seat.screen();
        screen.starts_with("Run this command?\n❯ 2. Yes, and always:") && !screen.contains('…')
    });
    seat.types("\u{1b}[B");
    seat.sees("❯ 3. No:");
    seat.types("\u{1b}[A\u{1b}[A\r");
    seat.until("it has run", |_| place.has("one"));
}

#[test]
fn a_window_that_gets_lower_leaves_nothing_unread() {
    let place = Place::new();
    let lines: String = (0..10).map(|at| format!("line-{at}\n")).collect();
    let write = tool("Write", json!({"file_path": "new.txt", "content": lines}));
    let model = model(Script::new().reply([write]).reply([text("Fine.")]));
    let mut seat = Seat::at(&place, &model, ["go"]);
    seat.sees("Change new.txt?");
    seat.sees("line-0");
    let before = seat.bytes().len();
    seat.resize(80, 9);
    // What has no room any more is told above the question.
    seat.until("all of it is told again", |seat| {
        let told = seat.bytes();
        let told = String::from_utf8_lossy(&told[before..]);
        (0..10).all(|at| told.contains(&format!("line-{at}")))
    });
    seat.types("y");
    seat.sees("Fine.");
}

#[test]
fn a_command_that_comes_again_and_again_is_asked_about_once() {
    let place = Place::new();
    let line = "for i in 1 2 3 4 5 6; do echo turn $i; done; touch made";
    let bash = tool("Bash", json!({"command": line, "description": "Make"}));
    let model = model(Script::new().reply([bash]).reply([text("Fine.")]));
    let seat = Seat::at(&place, &model, ["go"]);
    seat.sees("Run this command?");
    let screen = seat.screen();
    assert_eq!(screen.matches("├─ echo turn $i").count(), 1, "{screen}");
}

#[test]
fn what_the_model_wants_to_know_is_answered_one_by_one() {
    let place = Place::new();
    let option = |label: &str| json!({"label": label, "description": format!("about {label}")});
    let ask = tool(
        "AskUserQuestion",
        json!({"questions": [
            {"question": "Which colour?", "header": "Colour", "multiSelect": false, "options": [option("Red"), option("Blue")]},
            {"question": "Which sizes?", "header": "Size", "multiSelect": true, "options": [option("S"), option("M")]},
        ]}),
    );
    let model = model(Script::new().reply([ask]).reply([text("Thanks.")]));
    let mut seat = Seat::at(&place, &model, ["go"]);
    seat.sees("Which colour?");
    seat.types("3");
    seat.types("Green\r");
    seat.sees("Which sizes?");
    seat.types("12\r");
    seat.sees("Thanks.");
    seat.sees("├─ Asking you · answered");
    // What was answered stands below the question.
    let rows = seat.rows();
    let at = rows.iter().position(|row| row.starts_with("├─ Asking you")).unwrap();
    assert_eq!(rows[at + 1..at + 3], ["│  Which colour? Green", "│  Which sizes? S, M"], "{rows:#?}");
    let told = model.requests().last().unwrap().body["messages"].to_string();
    assert!(told.contains("\\\"Which colour?\\\": Green"), "{told}");
    assert!(told.contains("\\\"Which sizes?\\\": S, M"), "{told}");
}

#[test]
fn of_several_questions_each_is_read_before_it_is_answered() {
    let place = Place::new();
    let words: Vec<String> = (0..200).map(|at| format!("word{at}")).collect();
    let one = |question: &str| {
        json!({"question": question, "header": "H", "multiSelect": false,
        "options": [{"label": "Ham", "description": "a"}, {"label": "Egg", "description": "b"}]})
    };
    let ask =
        tool("AskUserQuestion", json!({"questions": [one("First?"), one(&words.join(" ")), one("Last?")]}));
    let model = model(Script::new().reply([ask]).reply([text("Thanks.")]));
    let mut seat = Seat::at(&place, &model, []);
    seat.resize(60, 16);
    seat.sees("> ");
    seat.types("go\r");
    seat.sees("First?");
    // A key that is pressed twice answers one of them; the next is in a window too low for it, and is read above.
    std::thread::sleep(Duration::from_millis(700));
    seat.types_at_once("1");
    seat.types_at_once("1");
    seat.sees("Question 2 of 3");
    std::thread::sleep(Duration::from_millis(1_500));
    let told = seat.rows().join(" ");
    assert!(!told.contains("Last?"), "{told}");
    for word in ["Question 2 of 3", "word0 ", "word100", "word199"] {
        assert!(told.contains(word), "{word}: {told}");
    }
    seat.types("2");
    seat.sees("Last?");
    seat.types("1");
    seat.sees("Thanks.");
    let told = model.requests().last().unwrap().body["messages"].to_string();
    assert!(told.contains("\\\"First?\\\": Ham") && told.contains("word199\\\": Egg"), "{told}");
}

#[test]
fn a_form_of_a_server_is_filled_in_field_by_field() {
    let place = Place::new();
    let server = place.put("server.sh", PROMPTING);
    let servers = json!({"mcpServers": {"poet": {"command": "sh", "args": [server]}}}).to_string();
    let call = || tool("mcp__poet__ask", json!({}));
    let model =
        model(Script::new().reply([call()]).reply([text("Thanks.")]).reply([call()]).reply([text("Pity.")]));
    let words = ["--mcp-config", &servers, "--allowedTools", "mcp__poet", "--", "go"];
    let mut seat = Seat::at(&place, &model, words);
    seat.sees("Which metre?");
    // What is needed is asked for, and what it has to be.
    seat.types("\t\r");
    seat.sees("Feet is needed");
    seat.types("x\t\r");
    seat.sees("Feet is a whole number");
    seat.types("\u{7f}5\t\u{1b}[C\r");
    seat.sees("Thanks.");
    let told = model.requests().last().unwrap().body["messages"].to_string();
    assert!(
        told.contains("'action':'accept'") && told.contains("'feet':5") && told.contains("'kind':'iamb'"),
        "{told}"
    );
    seat.rests();
    seat.types("again\r");
    seat.sees("Which metre?");
    seat.types("\u{1b}");
    seat.sees("Pity.");
    let told = model.requests().last().unwrap().body["messages"].to_string();
    assert!(told.contains("'action':'cancel'"), "{told}");
}

#[test]
fn why_a_part_of_a_line_is_asked_about_stands_below_it() {
    let place = Place::new();
    let line = "ls && make \u{200b}all; f() { ls; }";
    let model = model(Script::new().reply([tool("Bash", json!({"command": line}))]));
    let mut seat = Seat::at(&place, &model, ["go"]);
    seat.sees("Run this command?");
    let screen = seat.screen();
    let rows: Vec<&str> = screen.lines().map(str::trim_end).collect();
    let below = |part: &str| {
        let at =
            rows.iter().position(|row| row.ends_with(part)).unwrap_or_else(|| panic!("{part}:\n{screen}"));
        rows[at + 1]
    };
    assert!(below("U+200B  asks").contains("it holds characters that cannot be seen"), "{screen}");
    assert!(rows.iter().any(|row| row.contains("a name gets another meaning")), "{screen}");
    // What is allowed, or was only never approved, needs no reason.
    assert!(below("─ ls  allowed").contains("─ make"), "{screen}");
    seat.types("n\r");
    seat.sees("interrupted");
}
