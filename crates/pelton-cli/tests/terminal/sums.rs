//! What a session has cost, what a process has spent, and what else is known of a session that goes on.

use std::path::Path;

use pelton_testkit::{Script, ScriptedModel, Step, text};
use serde_json::Value;

use crate::place::{Commanded, Place, lines_of, model};
use crate::seat::Seat;

const SESSION: &str = "11111111-1111-4111-8111-111111111111";
const BUDGET: &str = "5";

/// Every answer costs the same.
fn priced() -> ScriptedModel {
    let step = Step::reply([text("Answered.")])
        .usage("input_tokens", 1_000)
        .usage("output_tokens", 20_000)
        .usage("cache_creation_input_tokens", 0)
        .usage("cache_read_input_tokens", 0);
    model(Script::new().step(step.always()))
}

/// What a record says that its session has cost.
fn recorded(file: &Path) -> f64 {
    let lines = lines_of(file);
    let newest = lines.iter().rfind(|line| line["type"] == "session-cost");
    let models =
        newest.map(|line| line["models"].as_object().unwrap().values().cloned().collect::<Vec<Value>>());
    let costs = models.unwrap_or_default();
    costs.iter().filter_map(|used| used["cost_usd"].as_f64().or(used["costUsd"].as_f64())).sum()
}

fn record_of(place: &Place, session: &str) -> std::path::PathBuf {
    place.transcripts().into_iter().find(|file| file.ends_with(format!("{session}.jsonl"))).unwrap()
}

/// Asks what it has cost, and waits for these figures: of the session, and of the process.
fn costs(seat: &mut Seat, session_usd: f64, process_usd: f64) {
    let told = |seat: &Seat| seat.rows().iter().filter(|row| row.contains("that may be spent since")).count();
    let before = told(seat);
    seat.types("/cost\r");
    seat.until("the cost is told", |seat| told(seat) == before + 1);
    let newest = |part: &str| seat.rows().into_iter().rfind(|row| row.contains(part)).unwrap_or_default();
    assert!(
        newest(" in all").contains(&format!("${session_usd:.4} in all")),
        "{session_usd}: {}",
        seat.screen()
    );
    let counted = format!("${process_usd:.4} of ${BUDGET}.00");
    assert!(newest("that may be spent").contains(&counted), "{counted}: {}", seat.screen());
    seat.until("the status line says so", |seat| {
        let status =
            seat.rows().into_iter().rfind(|row| row.contains("asks before changes")).unwrap_or_default();
        status.contains(&counted)
    });
}

fn asks(seat: &mut Seat, model: &ScriptedModel, words: &str) {
    let before = model.requests().len();
    seat.types(&format!("{words}\r"));
    seat.until("it is asked", |_| model.requests().len() == before + 1);
    seat.rests();
}

#[test]
fn what_a_session_has_cost_is_told_once_wherever_it_goes() {
    let place = Place::new();
    std::fs::create_dir(place.work().join("sub")).unwrap();
    let model = priced();
    let options = ["--session-id", SESSION, "--max-budget-usd", BUDGET, "--", "one"];
    let mut seat = Seat::with(wide(&place, &model, &options), 160, 24);
    seat.sees("Answered.");
    seat.rests();
    let each = recorded(&record_of(&place, SESSION));
    assert!(each > 0.0);
    costs(&mut seat, each, each);
    seat.types("/branch\r");
    seat.sees("this is a branch now");
    costs(&mut seat, each, each);
    asks(&mut seat, &model, "two");
    costs(&mut seat, each * 2.0, each * 2.0);
    seat.types("/cd sub\r");
    seat.sees("/sub now");
    costs(&mut seat, each * 2.0, each * 2.0);
    asks(&mut seat, &model, "three");
    costs(&mut seat, each * 3.0, each * 3.0);
    // What was asked beside it has a price, too, though nothing of it is said.
    asks(&mut seat, &model, "/btw why?");
    costs(&mut seat, each * 4.0, each * 4.0);
    seat.types("/branch again\r");
    seat.until("it is another branch", |seat| {
        seat.rows().join("").matches("this is a branch now").count() == 2
    });
    costs(&mut seat, each * 4.0, each * 4.0);
    // Going back takes no money back.
    seat.types("/rewind\r");
    seat.sees("Go back to before");
    seat.types("three\r");
    seat.sees("What goes back?");
    seat.types("\r");
    seat.sees("back to before");
    seat.types("\u{15}");
    costs(&mut seat, each * 4.0, each * 4.0);
    asks(&mut seat, &model, "three again");
    costs(&mut seat, each * 5.0, each * 5.0);
    // Another conversation has cost nothing; the process has spent what it has spent.
    asks_nothing(&mut seat, &model, "/clear");
    costs(&mut seat, 0.0, each * 5.0);
    asks(&mut seat, &model, "four");
    costs(&mut seat, each, each * 6.0);
    seat.types(&format!("/resume {SESSION}\r"));
    seat.until("it is the first session", |seat| {
        seat.rows().iter().filter(|row| *row == "> one").count() >= 2
    });
    costs(&mut seat, each, each * 6.0);
    asks(&mut seat, &model, "five");
    costs(&mut seat, each * 2.0, each * 7.0);
    seat.types("\u{4}");
    assert_eq!(seat.ends(), Some(0));
    assert!((recorded(&record_of(&place, SESSION)) - each * 2.0).abs() < 1e-9);
    // Another process has spent nothing yet.
    let mut seat =
        Seat::with(wide(&place, &model, &["--resume", SESSION, "--max-budget-usd", BUDGET]), 160, 24);
    seat.sees("> five");
    costs(&mut seat, each * 2.0, 0.0);
}

fn wide(place: &Place, model: &ScriptedModel, words: &[&str]) -> std::process::Command {
    let mut command = place.pelton(words.iter().copied());
    command.asks(model).env("TERM", "xterm").env("LANG", "C.UTF-8");
    command
}

fn asks_nothing(seat: &mut Seat, model: &ScriptedModel, command: &str) {
    let before = model.requests().len();
    seat.types(&format!("{command}\r"));
    seat.rests();
    assert_eq!(model.requests().len(), before);
}

#[test]
fn a_budget_is_about_all_that_a_process_does_and_nothing_before_it() {
    let place = Place::new();
    let model = priced();
    place.task(&model, ["one", "--session-id", SESSION]).run().well();
    let each = recorded(&record_of(&place, SESSION));
    // More than one answer, and less than the session has cost when there were two.
    let budget = format!("{:.3}", each * 1.5);
    let options = ["--resume", SESSION, "--max-budget-usd", &budget];
    let mut seat = Seat::with(wide(&place, &model, &options), 160, 24);
    seat.sees("> one");
    asks(&mut seat, &model, "two");
    seat.types("/branch\r");
    seat.sees("this is a branch now");
    asks(&mut seat, &model, "three");
    seat.sees(&format!("Reached maximum budget (${budget})"));
    // It is spent, wherever one goes.
    for (elsewhere, told) in
        [("/branch more", "this is a branch now"), ("/clear", ""), (&format!("/resume {SESSION}"), "> two")]
    {
        seat.types(&format!("{elsewhere}\r"));
        seat.sees(told);
        seat.rests();
        let refused = |seat: &Seat| seat.rows().join(" ").matches("Reached maximum budget").count();
        let (before, asked) = (refused(&seat), model.requests().len());
        seat.types("more\r");
        seat.until(elsewhere, |seat| refused(seat) > before);
        assert_eq!(model.requests().len(), asked, "{elsewhere}");
    }
}

#[test]
fn the_mode_that_somebody_chose_outlasts_a_summary_and_no_program_chooses_it_for_them() {
    let place = Place::new();
    let model = priced();
    let mut seat =
        Seat::at(&place, &model, ["--session-id", SESSION, "--permission-mode", "acceptEdits", "--", "one"]);
    seat.sees("Answered.");
    seat.rests();
    asks(&mut seat, &model, "two");
    asks(&mut seat, &model, "three");
    asks(&mut seat, &model, "/compact");
    seat.types("\u{4}");
    assert_eq!(seat.ends(), Some(0));
    let boundaries =
        |file: &Path| lines_of(file).iter().filter(|line| line["subtype"] == "compact_boundary").count();
    let file = record_of(&place, SESSION);
    assert_eq!(boundaries(&file), 1);
    let mut seat = Seat::at(&place, &model, ["--continue"]);
    seat.sees("edits without asking");
    seat.types("\u{4}");
    seat.ends();
    // Neither a program's own mode nor a summary that it takes changes what somebody chose.
    place.task(&model, ["four", "--resume", SESSION, "--permission-mode", "dontAsk"]).run().well();
    place.task(&model, ["/compact", "--resume", SESSION]).run().well();
    assert_eq!(boundaries(&file), 2);
    let mut seat = Seat::at(&place, &model, ["--resume", SESSION]);
    seat.sees("edits without asking");
    seat.types("\u{4}");
    seat.ends();

    let other = "22222222-2222-4222-8222-222222222222";
    place.task(&model, ["one", "--session-id", other, "--permission-mode", "acceptEdits"]).run().well();
    let seat = Seat::at(&place, &model, ["--resume", other]);
    seat.sees("asks before changes");
}
