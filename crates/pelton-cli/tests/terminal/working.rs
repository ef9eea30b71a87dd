//! A day's work: what was folded, an editor beside the model, pictures that come back, answers in one's own words.

use std::process::Command;

use pelton_testkit::{Script, ScriptedModel, Step, gate, text, thinking, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, model};
use crate::prompt::{dot, pasted};
use crate::seat::Seat;

/// A terminal with an editor of one's own: a script that is told the file.
fn with_editor<'a>(
    place: &Place,
    model: &ScriptedModel,
    script: &str,
    words: impl IntoIterator<Item = &'a str>,
) -> Command {
    let editor = place.put("editor.sh", script);
    let mut command = place.pelton(words);
    command.asks(model).env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
    command.env_remove("VISUAL").env("EDITOR", format!("sh {}", editor.display()));
    command
}

/// Pictures that the newest request has.
fn pictures(model: &ScriptedModel) -> usize {
    let requests = model.requests();
    let messages = requests.last().unwrap().body["messages"].as_array().unwrap().clone();
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    blocks.filter(|block| block["type"] == "image").count()
}

fn attaches(seat: &mut Seat, place: &Place) {
    let file = place.work().join("dot.png");
    std::fs::write(&file, dot()).unwrap();
    seat.types("what is ");
    seat.types(&pasted(file.to_str().unwrap()));
    seat.sees("> what is [Image #1]");
}

#[test]
fn what_was_folded_is_told_whole_on_demand() {
    let place = Place::new();
    let count = tool("Bash", json!({"command": "seq -f 'line %g' 1 60", "description": "Count"}));
    let long: String = (1..=80).map(|at| format!("row {at}\n")).collect();
    let write = tool("Write", json!({"file_path": "long.txt", "content": long}));
    let model = model(
        Script::new()
            .reply([thinking("Counting first, as ever."), count, write])
            .step(Step::reply([text("Counted.")]).always()),
    );
    let words = [
        "--thinking-display",
        "summarized",
        "--permission-mode",
        "acceptEdits",
        "--allowedTools",
        "Bash",
        "--",
        "go",
    ];
    let mut seat = Seat::at(&place, &model, words);
    seat.sees("Counted.");
    seat.rests();
    let has = |seat: &Seat, row: &str| seat.rows().iter().any(|shown| shown.trim_end().ends_with(row));
    assert!(!has(&seat, "line 17") && !has(&seat, "row 77"), "{:#?}", seat.rows());
    seat.types("\u{f}");
    seat.until("all of it is told", |seat| {
        ["∴ thinking", "Counting first, as ever.", "$ seq -f 'line %g' 1 60", "line 17", "line 60", "row 77"]
            .iter()
            .all(|row| has(seat, row))
    });
    // It stands apart from the end of the turn.
    let rows = seat.rows();
    let at = rows.iter().position(|row| row.starts_with("▾ ")).unwrap();
    assert_eq!(rows[at - 1], "", "{rows:#?}");
    seat.types("\u{f}");
    seat.sees("nothing is folded");
    // The next prompt has nothing of it.
    seat.types("again\r");
    seat.rests();
    seat.types("\u{f}");
    seat.sees("nothing is folded");
    let rows = seat.rows();
    assert_eq!(rows.iter().filter(|row| row.ends_with("line 17")).count(), 1, "{rows:#?}");
}

#[test]
fn the_model_goes_on_while_somebody_writes_in_an_editor() {
    let place = Place::new();
    let look = tool("Glob", json!({"pattern": "*"}));
    let model = model(Script::new().reply([text("First."), gate("open"), look]).reply([text("Second.")]));
    let script =
        "trap : INT\ntouch open\nwhile [ ! -e shut ]; do sleep 0.05; done\necho 'a whole thought' > \"$1\"\n";
    let mut seat = Seat::with(with_editor(&place, &model, script, ["do it"]), 80, 24);
    seat.sees("works");
    seat.types("half a tho\u{7}");
    seat.until("the editor is there", |_| place.has("open"));
    model.open("open");
    seat.until("the model is asked again", |_| model.requests().len() == 2);
    // An interrupt that is typed there is the editor's.
    seat.types("\u{3}");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(!seat.screen().contains("Second."), "it is somebody else's screen:\n{}", seat.screen());
    place.put("shut", "");
    seat.sees("Second.");
    seat.sees("> a whole thought");
}

#[test]
fn a_plan_is_changed_in_an_editor_before_it_is_approved() {
    let place = Place::new();
    let plan = tool("ExitPlanMode", json!({"plan": "# The plan\n\n1. Do it."}));
    let model = model(Script::new().reply([plan]).reply([text("Begun.")]));
    let script = "sed -i 's/Do it/Do it twice/' \"$1\"\n";
    let words = ["--permission-mode", "plan", "plan it"];
    let mut seat = Seat::with(with_editor(&place, &model, script, words), 80, 24);
    seat.sees("Go on with this plan?");
    seat.sees("Ctrl-G edits it");
    seat.types("\u{7}");
    seat.sees("1. Do it twice.");
    seat.sees("Go on with this plan?");
    seat.types("y");
    seat.sees("Begun.");
    let told = model.requests().last().unwrap().body["messages"].to_string();
    assert!(told.contains("Approved plan\\n# The plan\\n\\n1. Do it twice."), "{told}");
}

#[test]
fn words_that_are_taken_back_or_edited_outside_keep_their_pictures() {
    let place = Place::new();
    let model = model(
        Script::new()
            .reply([text("First."), gate("open"), text(" Done.")])
            .step(Step::reply([text("Seen.")]).always()),
    );
    let script = "printf '\\nand more\\n' >> \"$1\"\n";
    let mut seat = Seat::with(with_editor(&place, &model, script, ["do it"]), 80, 24);
    seat.sees("works");
    attaches(&mut seat, &place);
    seat.types("\r");
    seat.sees("read at the next step; ↑ takes it back");
    seat.types("\u{1b}[A");
    seat.sees_no_more("takes it back");
    seat.sees("> what is [Image #1]");
    model.open("open");
    seat.rests();
    seat.types("\u{7}");
    seat.sees("  and more");
    seat.types("\r");
    seat.sees("Seen.");
    seat.rests();
    assert_eq!(pictures(&model), 1);
    // And so does a prompt that is gone back to.
    seat.types("\u{1b}");
    seat.sees("Esc again");
    seat.types("\u{1b}");
    seat.sees("Go back to before");
    seat.types("\r");
    seat.sees("The conversation alone");
    seat.types("c");
    seat.sees("> what is [Image #1]");
    seat.sees("asks before changes");
    let before = model.requests().len();
    seat.types("\r");
    seat.until("it is asked again", |_| model.requests().len() > before);
    assert_eq!(pictures(&model), 1);
}

#[test]
fn an_answer_in_ones_own_words_is_edited_where_the_cursor_is() {
    let place = Place::new();
    let bash = tool("Bash", json!({"command": "mkdir made", "description": "Make"}));
    let model = model(Script::new().reply([bash]).reply([text("Fine.")]));
    let mut seat = Seat::at(&place, &model, ["go"]);
    seat.sees("Run this command?");
    seat.types("n");
    seat.sees("type, then Enter");
    // What it answers stands five cells in; the caret is behind it, and can be moved.
    let at = |seat: &Seat, words: &str, column: u16| {
        let (row, now) = seat.cursor();
        let rows = seat.screen();
        let shown = rows.lines().nth(usize::from(row)).unwrap_or_default();
        shown.trim_end() == format!("     {words}").trim_end() && now == column
    };
    for (typed, words, column) in [
        ("日本", "日本", 9),
        ("\u{1b}[D", "日本", 7),
        ("x", "日x本", 8),
        ("\u{1}", "日x本", 5),
        ("\u{5} instead", "日x本 instead", 18),
        ("\u{17}", "日x本 ", 11),
    ] {
        seat.types(typed);
        seat.until(&format!("{words} with the caret at {column}"), |seat| at(seat, words, column));
    }
    assert!(!seat.shows_no_cursor(), "the cursor is shown");
    seat.types("\r");
    seat.sees("Fine.");
    let told = model.requests().last().unwrap().body["messages"].to_string();
    assert!(told.contains("and says: 日x本"), "{told}");
    assert!(!place.has("made"));
}

#[test]
fn a_form_offers_what_it_names_by_titles() {
    let place = Place::new();
    let titled = |value: &str, title: &str| json!({"const": value, "title": title});
    let colours = json!([titled("#f00", "Red"), titled("#00f", "Blue")]);
    let schema: Value = json!({"type": "object", "required": ["shade"], "properties": {
        "shade": {"type": "string", "title": "Shade", "description": "of the wall", "oneOf": colours.clone()},
        "trims": {"type": "array", "title": "Trims", "items": {"anyOf": colours}}}});
    let asks = json!({"message": "Which paint?", "requestedSchema": schema}).to_string();
    let script = crate::commands::PROMPTING.replace(
        &crate::commands::PROMPTING[crate::commands::PROMPTING.find("{\"message\":\"Which metre?").unwrap()
            ..crate::commands::PROMPTING.find("}'\n        IFS= read -r answered").unwrap()],
        &asks,
    );
    let server = place.put("server.sh", &script);
    let servers = json!({"mcpServers": {"poet": {"command": "sh", "args": [server]}}}).to_string();
    let model = model(Script::new().reply([tool("mcp__poet__ask", json!({}))]).reply([text("Thanks.")]));
    let words = ["--mcp-config", &servers, "--allowedTools", "mcp__poet", "--", "go"];
    let mut seat = Seat::at(&place, &model, words);
    seat.sees("Which paint?");
    seat.sees("Shade* (←→): ( ) Red  ( ) Blue");
    seat.sees("of the wall");
    seat.types("\u{1b}[C\u{1b}[C\r");
    seat.sees("( ) Red  (•) Blue");
    seat.types(" \u{1b}[C \r");
    seat.sees("Thanks.");
    let told = model.requests().last().unwrap().body["messages"].to_string();
    assert!(told.contains("'shade':'#00f'") && told.contains("'trims':['#f00','#00f']"), "{told}");
}

#[test]
fn what_it_costs_is_told_while_it_works_and_looking_does_not_wait() {
    let place = Place::new();
    let look = tool("Glob", json!({"pattern": "*"}));
    let model = model(Script::new().reply([look]).reply([text("Second."), gate("never")]));
    let mut seat = Seat::at(&place, &model, ["do it"]);
    seat.sees("Second.");
    seat.until("the first answer is paid", |seat| {
        seat.screen().lines().any(|row| row.contains("context · $0.0"))
    });
    seat.types("/cost\r");
    seat.sees(" in all");
    // Whether the record is sound is seen while it grows.
    seat.types("/doctor\r");
    seat.sees("> /doctor");
    seat.until("it is told", |seat| {
        let rows = seat.rows();
        let at = rows.iter().rposition(|row| row == "> /doctor").unwrap();
        rows[at + 1..].iter().any(|row| row.contains("lines"))
    });
    seat.sees("Esc interrupts");
}

#[test]
fn a_command_line_of_ones_own_is_seen_while_it_runs() {
    let (place, model) = (Place::new(), model(Script::new()));
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("> ");
    seat.types("!seq -f 'early %g' 8; while [ ! -e go ]; do sleep 0.05; done; echo late\r");
    // However fast they come, the last rows are seen, and none between them is missing.
    seat.sees("│  early 4\n│  early 5\n│  early 6\n│  early 7\n│  early 8");
    assert!(!seat.screen().contains("early 2\n"), "its tail is shown:\n{}", seat.screen());
    assert!(!seat.screen().contains("tokens"), "the model writes nothing:\n{}", seat.screen());
    place.put("go", "");
    seat.sees("late");
    seat.rests();
    let rows = seat.rows();
    let told: Vec<&String> = rows.iter().filter(|row| row.contains("early")).collect();
    assert!(told.len() >= 8 && rows.iter().all(|row| !row.starts_with("│  early")), "{rows:#?}");
}

#[test]
fn what_is_done_to_the_context_is_one_true_line() {
    let place = Place::new();
    let model = model(Script::new().step(Step::reply([text("Well. ".repeat(400))]).always()));
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("> ");
    for prompt in ["one", "two", "three"] {
        seat.types(&format!("{prompt}\r"));
        seat.until(&format!("{prompt} is answered"), |_| !model.requests().is_empty());
        seat.rests();
    }
    seat.types("/compact\r");
    seat.sees("/uncompact undoes it");
    seat.rests();
    seat.types("/uncompact\r");
    seat.sees("was undone");
    seat.rests();
    let rows = seat.rows();
    let told: Vec<&String> =
        rows.iter().filter(|row| row.starts_with("! ") && row.contains("tokens")).collect();
    assert_eq!(told.len(), 2, "{rows:#?}");
    let figures = |row: &str| {
        let (before, after) =
            row.split(" tokens").next().unwrap().rsplit_once(": ").unwrap().1.split_once(" → ").unwrap();
        (before.parse::<u64>().unwrap(), after.parse::<u64>().unwrap())
    };
    assert!(told[0].starts_with("! the conversation was summed up: "), "{told:?}");
    let ((before, after), (again, back)) = (figures(told[0]), figures(told[1]));
    assert!(after < before && again < back, "{told:?}");
    // And nothing else is said of it.
    let below = |command: &str| {
        let at = rows.iter().position(|row| row == command).unwrap();
        rows[at + 1..].iter().take_while(|row| !row.starts_with('>')).filter(|row| !row.is_empty()).count()
    };
    assert_eq!((below("> /compact"), below("> /uncompact")), (1, 1), "{rows:#?}");
}

#[test]
fn what_a_call_brought_is_told_as_it_is() {
    let place = Place::new();
    let bash = |command: &str| tool("Bash", json!({"command": command, "description": "x"}));
    let model = model(
        Script::new()
            .reply([bash("seq 1 3"), bash("seq 1 10000"), bash("head -c 2000000 /dev/zero | tr '\\0' x")])
            .reply([tool("Grep", json!({"pattern": "nowhere"})), tool("Glob", json!({"pattern": "*.none"}))])
            .reply([tool("EnterPlanMode", json!({}))])
            .reply([text("Seen.")]),
    );
    let seat = Seat::at(&place, &model, ["--allowedTools", "Bash", "--", "go"]);
    seat.sees("Seen.");
    let rows = seat.rows();
    for told in [
        "├─ Running seq 1 3 · 3 lines",
        // All of it, and not the part that the model is shown.
        "├─ Running seq 1 10000 · 49 kB",
        "├─ Running head -c 2000000 /dev/zero | tr '\\0' x · 2.0 MB",
        "├─ Searching nowhere · nothing found",
        "├─ Finding *.none · nothing found",
        "├─ Beginning to plan",
    ] {
        assert!(rows.iter().any(|row| row == told), "{told}: {rows:#?}");
    }
}

#[test]
fn what_ends_because_the_session_is_left_is_named() {
    let place = Place::new();
    let sleeps = |what: &str| {
        let input = json!({"command": "sleep 300", "description": what, "run_in_background": true});
        tool("Bash", input)
    };
    let model = model(
        Script::new()
            .reply([sleeps("Sleep long")])
            .reply([text("It runs.")])
            .reply([sleeps("Sleep on")])
            .reply([text("That, too.")])
            .reply([gate("never"), text("Unheard.")]),
    );
    let mut seat = Seat::at(&place, &model, ["--allowedTools", "Bash", "--", "go"]);
    seat.sees("It runs.");
    seat.rests();
    seat.types("/branch\r");
    seat.sees("ends with this session: Sleep long");
    seat.sees("this is a branch now");
    seat.sees_no_more(" · 1 in the b");
    seat.types("more\r");
    seat.sees("That, too.");
    seat.rests();
    // So are questions that nobody has answered.
    seat.types(&format!("/btw who waits, {}\r", "and waits ".repeat(20)));
    seat.sees("? who waits");
    seat.types("/exit\r");
    assert_eq!(seat.ends(), Some(0));
    let rows = seat.rows();
    assert!(rows.iter().any(|row| row.starts_with("ends with this session: Sleep on (")), "{rows:#?}");
    assert!(rows.iter().any(|row| row.starts_with("not answered any more: who waits, and")), "{rows:#?}");
}
