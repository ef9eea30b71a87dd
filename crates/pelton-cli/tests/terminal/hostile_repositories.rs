//! Repositories that want something run, opened at a terminal by somebody who does not trust them, and works in them all the same.

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

/// A session in which every question is answered by a no.
fn work_in(opened: &Opened, good: &ScriptedModel) {
    let name = &opened.case["name"];
    let mut command = opened.place.pelton([]);
    command.asks(good).env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
    opened.surround(&mut command);
    let mut seat = Seat::with(command, 160, 50);
    let begins = |seat: &Seat| {
        ["asks before changes", "runs everything", "edits without asking"]
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
            seat.types("n\r");
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{name}:\n{}", seat.rows().join("\n"));
        std::thread::sleep(Duration::from_millis(10));
    }
    if cannot(&seat) {
        return;
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
            return;
        }
        let is_asked = screen.contains("this once (y)");
        if is_asked && !screen.contains("once you pause") {
            seat.types("n\r");
            seat.sees_no_more("this once (y)");
        }
        // What is refused before the model is asked has no answer.
        if !is_asked && !screen.contains("Esc interrupts") && began.elapsed() > ANSWERED_BY_THEN {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{name}:\n{screen}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn check(cases: impl Iterator<Item = Value>) {
    for case in cases {
        let opened = Opened::new(&case);
        let good = model(opened.script());
        work_in(&opened, &good);
        assert!(!opened.has_struck(&good), "{}: it struck before anybody trusted it", case["name"]);
        assert!(!opened.is_trusted(), "{}: a no is no trust", case["name"]);
    }
}

#[test]
fn nobody_who_says_no_is_struck_by_a_repository_first_third() {
    check(cases(0));
}

#[test]
fn nobody_who_says_no_is_struck_by_a_repository_second_third() {
    check(cases(1));
}

#[test]
fn nobody_who_says_no_is_struck_by_a_repository_last_third() {
    check(cases(2));
}
