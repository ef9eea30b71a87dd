//! Repositories that want something run, opened at a terminal by somebody who does not trust them, and works in them all the same; and by
//! somebody who does: what was held back at a terminal is what runs there.

use std::time::{Duration, Instant};

use pelton_testkit::ScriptedModel;
use serde_json::Value;

use crate::opened::{Opened, cases};
use crate::place::{Commanded, model};
use crate::seat::Seat;

/// How long a program is given to be started that nobody waits for.
const STARTED_UNASKED_WAIT: Duration = Duration::from_millis(500);

/// A prompt that nothing comes of is over by then.
const ANSWERED_BY_THEN: Duration = Duration::from_secs(2);

/// How long a question is looked at.
const QUESTION_STANDS: Duration = Duration::from_millis(300);

/// What runs by itself once it may, has begun by then.
const STRIKES_BY_THEN: Duration = Duration::from_millis(1_500);

/// A session in which questions about the directory get this answer, and every other a no. What happens there has happened when it
/// returns, but for what nobody waits for.
fn work_in(opened: &Opened, good: &ScriptedModel, trust: &str) -> Seat {
    let name = &opened.case["name"];
    let mut command = opened.place.pelton([]);
    command.asks(good).env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
    opened.surround(&mut command);
    let mut seat = Seat::with(command, 160, 50);
    let begins = |seat: &Seat| {
        ["asks before changes", "asks nothing", "edits without asking"]
            .iter()
            .any(|mode| seat.screen().contains(mode))
    };
    let cannot = |seat: &Seat| seat.screen().contains("error: ");
    let began = Instant::now();
    let mut answered = 0;
    while !begins(&seat) && !cannot(&seat) {
        let asked = seat.screen().matches("[y/N]").count();
        if asked > answered {
            answered = asked;
            seat.types(trust);
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{name}:\n{}", seat.rows().join("\n"));
        std::thread::sleep(Duration::from_millis(10));
    }
    if cannot(&seat) {
        return seat;
    }
    seat.types(&format!("{}\r", opened.case["prompt"].as_str().unwrap_or("Go.")));
    if opened.case["wait"] == true {
        std::thread::sleep(STARTED_UNASKED_WAIT);
        good.open("end");
    }
    let began = Instant::now();
    loop {
        let screen = seat.screen();
        if screen.contains("Done.") || screen.contains("interrupted: say what to do instead") || cannot(&seat)
        {
            return seat;
        }
        let is_asked = screen.contains("this once (y)");
        if is_asked && !screen.contains("once you pause") {
            // Hooks hear of a question while it stands.
            std::thread::sleep(QUESTION_STANDS);
            seat.types("n\r");
            seat.sees_no_more("this once (y)");
        }
        // What is refused before the model is asked has no answer.
        if !is_asked && !screen.contains("Esc interrupts") && began.elapsed() > ANSWERED_BY_THEN {
            return seat;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{name}:\n{screen}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn check(cases: impl Iterator<Item = Value>) {
    for case in cases {
        let opened = Opened::new(&case);
        let good = model(opened.script());
        drop(work_in(&opened, &good, "n\r"));
        assert!(!opened.has_struck(&good), "{}: it struck before anybody trusted it", case["name"]);
        assert!(!opened.is_trusted(), "{}: a no is no trust", case["name"]);
        // The same hands, and a yes.
        let trusted = Opened::new(&case);
        let good = model(trusted.script());
        let mut seat = work_in(&trusted, &good, "y\r");
        let began = Instant::now();
        while !trusted.has_struck(&good) && began.elapsed() < STRIKES_BY_THEN {
            std::thread::sleep(Duration::from_millis(20));
        }
        if !trusted.has_struck(&good) {
            // What waits for the end of a session.
            seat.types("/exit\r");
            seat.ends();
        }
        assert!(
            trusted.has_struck(&good),
            "{}: it does not strike once it is trusted:\n{}",
            case["name"],
            seat.rows().join("\n")
        );
    }
}

#[test]
fn a_repository_strikes_whoever_says_yes_and_nobody_else_first_third() {
    check(cases(0));
}

#[test]
fn a_repository_strikes_whoever_says_yes_and_nobody_else_second_third() {
    check(cases(1));
}

#[test]
fn a_repository_strikes_whoever_says_yes_and_nobody_else_last_third() {
    check(cases(2));
}
