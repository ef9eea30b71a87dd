//! What goes wrong, or on beside, in plain lines: retries, another model, summaries, budgets, agents.

use pelton_testkit::{Script, Step, When, gate, text, thinking, tool};
use serde_json::json;

use crate::place::{Place, model};
use crate::seat::Seat;

/// Words of the built-in agent's system prompt.
const CHILD: &str = "working for another agent";

#[test]
fn a_retry_counts_down_and_says_why() {
    let place = Place::new();
    let overloaded =
        Step::status(529).error_type("overloaded_error").message("Try later").header("retry-after", "3");
    let model = model(Script::new().step(overloaded).reply([text("There.")]));
    let seat = Seat::at(&place, &model, ["go"]);
    seat.sees("asking again in 3 s (1 of 10)");
    seat.sees("Try later");
    seat.sees("asking again in 1 s");
    seat.sees("There.");
    seat.rests();
    let rows = seat.rows().join("\n");
    assert!(
        rows.contains("! asked again after 3.0 s (1 of 10)") && !rows.contains("asking again in"),
        "{rows}"
    );
    assert!(rows.contains("\n\nThere."), "the answer stands apart from it: {rows}");
}

#[test]
fn another_model_that_is_asked_instead_is_told() {
    let place = Place::new();
    let overloaded = Step::status(529).error_type("overloaded_error").header("retry-after", "0");
    let model = model(
        Script::new()
            .step(overloaded.when(When::any().model("sonnet")).times(3))
            .step(Step::reply([text("From another.")]).when(When::any().model("haiku"))),
    );
    let seat = Seat::at(&place, &model, ["--model", "sonnet", "--fallback-model", "haiku", "go"]);
    seat.sees("From another.");
    let rows = seat.rows().join("\n");
    let told = rows.lines().filter(|row| row.contains("does not answer")).count();
    assert_eq!(told, 1, "{rows}");
}

#[test]
fn a_budget_that_is_used_up_ends_it_in_a_line() {
    let place = Place::new();
    let step = || Step::reply([tool("Glob", json!({"pattern": "*"}))]).usage("output_tokens", 100_000);
    let model = model(Script::new().step(step()).step(step()).reply([text("Never.")]));
    let mut seat = Seat::at(&place, &model, ["--max-budget-usd", "0.5", "--model", "claude-sonnet-5", "go"]);
    seat.sees("udget");
    seat.sees("of $0.50");
    seat.rests();
    seat.types("again\r");
    let told = |seat: &Seat| -> Vec<String> {
        let about = ["udget", "money", "spent"];
        let is_about = |row: &String| !row.starts_with('│') && about.iter().any(|word| row.contains(word));
        seat.rows().into_iter().filter(is_about).collect()
    };
    seat.until("it is told again", |seat| told(seat).len() >= 2);
    seat.rests();
    assert_eq!(told(&seat), ["Reached maximum budget ($0.5)", "Reached maximum budget ($0.5)"]);
    assert!(!seat.rows().join("\n").contains("Never."), "{:#?}", seat.rows());
}

#[test]
fn an_agent_is_a_branch_while_it_works_and_a_line_when_it_is_done() {
    let place = Place::new();
    place.put("notes.txt", "one\n");
    let start = tool("Agent", json!({"description": "Look around", "prompt": "look"}));
    let model = model(
        Script::new()
            .reply([start])
            .step(
                Step::reply([tool("Read", json!({"file_path": "notes.txt"}))])
                    .when(When::any().system(CHILD).last_user_text("look")),
            )
            .step(Step::reply([gate("open"), text("Nothing there.")]).when(When::any().system(CHILD)))
            .reply([text("Done.")]),
    );
    let seat = Seat::at(&place, &model, ["go"]);
    seat.sees("├─ Agent: Look around …");
    seat.sees("│  └─ Reading notes.txt · 1 line");
    model.open("open");
    seat.sees("Done.");
    seat.rests();
    let rows = seat.rows();
    assert!(rows.iter().any(|row| row.starts_with("├─ Agent: Look around · 1 tool call · ")), "{rows:#?}");
    assert!(!rows.iter().any(|row| row.contains("Reading notes.txt")), "it is folded: {rows:#?}");
}

#[test]
fn an_agent_that_nobody_waits_for_is_told_of_when_it_begins_and_when_it_is_done() {
    let place = Place::new();
    let input = json!({"description": "Look around", "prompt": "look", "run_in_background": true});
    let child = || When::any().system("working for another agent");
    let model = model(
        Script::new()
            .step(Step::reply([tool("Glob", json!({"pattern": "*"})), gate("look")]).when(child().nth(1)))
            .step(Step::reply([text("Nothing there.")]).when(child()))
            .reply([tool("Agent", input)])
            .reply([text("It looks around.")])
            .reply([text("It saw nothing.")]),
    );
    let seat = Seat::at(&place, &model, ["go"]);
    seat.sees("It looks around.");
    seat.rests();
    model.open("look");
    seat.sees("It saw nothing.");
    seat.rests();
    let rows = seat.rows();
    let at = |words: &str| {
        rows.iter().position(|row| row.starts_with(words)).unwrap_or_else(|| panic!("{words}: {rows:#?}"))
    };
    assert_eq!(rows[at("├─ Agent: Look around")], "├─ Agent: Look around · in the background", "{rows:#?}");
    let done = at("! Look around (");
    assert!(rows[done].contains(") completed · 1 tool call · "), "{rows:#?}");
    // What the model says to that stands apart.
    let answer = at("It saw nothing.");
    assert!(answer > done && rows[answer - 1].is_empty(), "{rows:#?}");
}

#[test]
fn a_command_is_seen_while_it_runs_and_thinking_is_told() {
    let place = Place::new();
    let script =
        "i=0; while [ $i -lt 20 ]; do i=$((i+1)); echo step $i; done; while [ ! -e go ]; do sleep 0.02; done";
    let bash = tool("Bash", json!({"command": script, "description": "Wait"}));
    let model = model(
        Script::new()
            .reply([thinking("Let me weigh this carefully").after(0, gate("think")), bash])
            .reply([text("Over.")]),
    );
    let seat = Seat::at(&place, &model, ["--allowedTools", "Bash", "--", "go"]);
    seat.sees("thinking");
    std::thread::sleep(std::time::Duration::from_millis(1_200));
    model.open("think");
    // The end of what it says: lines are told as they come, and not more often than they can be read.
    seat.sees("│  step 20");
    place.put("go", "");
    seat.sees("Over.");
    seat.rests();
    let rows = seat.rows();
    assert!(!rows.iter().any(|row| row.contains("│  step")), "it is folded: {rows:#?}");
    // How long it thought is told, also where what it thought is not.
    assert!(rows.iter().any(|row| row.starts_with("∴ thought for ")), "{rows:#?}");
    // In one row, whose end says what came of it.
    let told = rows.iter().find(|row| row.starts_with("├─ Running i=0;")).unwrap();
    assert!(told.ends_with("… · 20 lines"), "{rows:#?}");
}

#[test]
fn a_command_that_failed_is_told_with_its_last_words() {
    let place = Place::new();
    let bash = tool("Bash", json!({"command": "seq -f 'line %g' 20; false", "description": "Count"}));
    let todos = json!({"todos": [{"content": "Mend it", "status": "pending", "activeForm": "Mending it"}]});
    let model = model(Script::new().reply([bash, tool("TodoWrite", todos)]).reply([text("Over.")]));
    let seat = Seat::at(&place, &model, ["--allowedTools", "Bash", "--", "go"]);
    seat.sees("Over.");
    seat.rests();
    let rows = seat.rows();
    let at = rows.iter().position(|row| row.contains("· failed: Exit code 1")).unwrap();
    let below = ["│  … 15 more lines", "│  line 16", "│  line 17", "│  line 18", "│  line 19", "│  line 20"];
    assert_eq!(rows[at + 1..at + 7], below, "{rows:#?}");
    assert!(rows[at + 7].starts_with("├─ Updating the to-do list"), "{rows:#?}");
}

#[test]
fn a_silent_model_is_told_of() {
    let place = Place::new();
    let model = model(Script::new().reply([text("Begun").after(1, gate("never"))]));
    let settings = r#"{"retry": {"noticeMs": 200}}"#;
    let seat = Seat::at(&place, &model, ["--settings", settings, "go"]);
    seat.sees("Begun");
    seat.sees("nothing from the model for");
}
