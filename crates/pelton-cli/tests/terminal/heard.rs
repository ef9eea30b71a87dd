//! What hooks hear of somebody in front of a terminal: that they say nothing, and how they leave.

use std::time::Duration;

use pelton_testkit::{Script, Step, text};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, model, until};
use crate::seat::Seat;

/// A session whose hooks of an event write down what they are told.
fn seated(event: &str, matcher: &str, idle_ms: &str) -> (Place, Seat) {
    let place = Place::new();
    let hook = json!({"type": "command", "command": "cat >> heard; echo >> heard"});
    let settings = json!({"hooks": {event: [{"matcher": matcher, "hooks": [hook]}]}});
    std::fs::write(place.config().join("settings.json"), settings.to_string()).unwrap();
    let model = model(Script::new().step(Step::reply([text("Yes.")]).always()));
    let mut command = place.pelton([]);
    command.asks(&model).env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
    command.env("PELTON_IDLE_NOTICE_MS", idle_ms);
    let mut seat = Seat::with(command, 80, 24);
    seat.sees("asks before changes");
    seat.types("hi\r");
    seat.sees("Yes.");
    seat.rests();
    // The model goes with the seat.
    std::mem::forget(model);
    (place, seat)
}

fn heard(place: &Place, field: &str) -> Vec<String> {
    let text = std::fs::read_to_string(place.work().join("heard")).unwrap_or_default();
    let told = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    told.map(|told| told[field].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn hooks_hear_once_behind_a_turn_that_somebody_is_waited_for() {
    let (place, mut seat) = seated("Notification", "idle_prompt", "700");
    until("they heard", || !heard(&place, "notification_type").is_empty());
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(heard(&place, "notification_type"), ["idle_prompt"], "once");
    assert!(heard(&place, "message")[0].contains("waiting for your input"));
    // Whoever types is there, and need not be fetched.
    seat.types("again\r");
    seat.sees("again");
    seat.rests();
    seat.types("x");
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(heard(&place, "notification_type").len(), 1, "somebody is there");
}

#[test]
fn hooks_hear_how_a_session_is_left() {
    let (place, mut seat) = seated("SessionEnd", "", "60000");
    seat.types("/exit\r");
    assert_eq!(seat.ends(), Some(0));
    assert_eq!(heard(&place, "reason"), ["prompt_input_exit"]);

    let (place, mut seat) = seated("SessionEnd", "", "60000");
    let pid = nix::unistd::Pid::from_raw(i32::try_from(seat.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(seat.ends(), Some(143));
    assert_eq!(heard(&place, "reason"), ["other"]);
}
