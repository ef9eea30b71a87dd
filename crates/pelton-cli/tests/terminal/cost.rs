//! What a session at a terminal costs, by what it works and not by the clock: that is the same on a busy machine. Times are for
//! `scripts/bench terminal`.

#![cfg(target_os = "linux")]

use std::time::Duration;

use pelton_testkit::{Script, Step, text};
use serde_json::json;

use crate::long;
use crate::place::{Commanded, Place, model, worked};
use crate::seat::Seat;

/// Of one core, for one key, without optimisation.
const KEY_MAX: Duration = Duration::from_millis(10);
/// Of one core, from the start to the first key that is shown.
const STARTING_MAX: Duration = Duration::from_millis(150);
/// Of one core, for the version: what is promised by the clock, and as much again for code that is not optimised.
const VERSION_S_MAX: f64 = 0.04;
/// Of one core, while nobody types: 0.1 s in ten minutes.
const IDLE_SHARE_MAX: f64 = 0.1 / 600.0;
const LOOKED: Duration = Duration::from_secs(6);

#[test]
fn pit_U2_a_key_costs_no_more_in_a_session_of_ten_thousand_messages() {
    const KEYS: usize = 200;
    let place = Place::new();
    let session = long::record(&place, 10_000);
    let model = model(Script::new().step(Step::reply([text("Well.")]).always()));
    let mut seat = Seat::at(&place, &model, ["--resume", &session]);
    // Of the past its end is told.
    seat.sees("Answer 9999 has some words");
    seat.sees("asks before changes");
    let rows = seat.rows();
    assert!(rows.iter().any(|row| row.contains("earlier messages are not shown")));
    assert!(rows.iter().filter(|row| row.starts_with("> question")).count() <= 250);
    seat.types("x");
    seat.sees("> x");
    let before = worked(seat.id());
    for at in 0..KEYS {
        seat.types(if at % 2 == 0 { "y" } else { "\u{7f}" });
        let expected = if at % 2 == 0 { "> xy" } else { "> x" };
        seat.until("the key is shown", |seat| seat.screen().lines().any(|row| row.trim_end() == expected));
    }
    let each = (worked(seat.id()) - before) / u32::try_from(KEYS).unwrap();
    println!("{each:?} a key");
    assert!(each <= KEY_MAX, "{each:?} a key");
}

/// Puts ten thousand transcripts and fifty plugins in the way of a start; the words that name the plugins.
pub fn much_lying_about(place: &Place) -> Vec<String> {
    let folder = place.config().join("projects/-elsewhere");
    std::fs::create_dir_all(&folder).unwrap();
    for number in 0..10_000u128 {
        std::fs::write(folder.join(format!("{}.jsonl", uuid::Uuid::from_u128(number))), "{}\n").unwrap();
    }
    let mut words = Vec::new();
    for number in 0..50 {
        let plugin = place.temp().join(format!("plugin{number}"));
        std::fs::create_dir_all(plugin.join(".claude-plugin")).unwrap();
        std::fs::create_dir_all(plugin.join("commands")).unwrap();
        std::fs::write(
            plugin.join(".claude-plugin/plugin.json"),
            json!({"name": format!("plugin{number}")}).to_string(),
        )
        .unwrap();
        std::fs::write(plugin.join("commands/go.md"), "Go.\n").unwrap();
        words.extend(["--plugin-dir".to_owned(), plugin.to_str().unwrap().to_owned()]);
    }
    words
}

#[test]
fn pit_M5_keys_are_shown_at_once_however_much_is_lying_about() {
    let place = Place::new();
    let words = much_lying_about(&place);
    // A shell tells what its children have worked: minutes and seconds, their own and the kernel's.
    let told = place.shell("\"$PELTON\" --version; times").run();
    let children = told.well().lines().last().unwrap().to_owned();
    let seconds = |time: &str| time.trim_end_matches('s').split_once('m').unwrap().1.parse::<f64>().unwrap();
    let version: f64 = children.split_whitespace().map(seconds).sum();
    assert!(version <= VERSION_S_MAX, "{version} s for the version");
    let model = model(Script::new());
    let mut seat = Seat::at(&place, &model, words.iter().map(String::as_str));
    seat.types("typed");
    seat.sees("> typed");
    let spent = worked(seat.id());
    println!("{spent:?} until keys are shown");
    assert!(spent <= STARTING_MAX, "{spent:?}");
}

#[test]
fn pit_M2_a_terminal_that_nobody_types_at_costs_next_to_nothing() {
    let place = Place::new();
    let model = model(Script::new().step(Step::reply([text("Well.")]).always()));
    let mut seat = Seat::at(&place, &model, ["hello"]);
    seat.sees("Well.");
    seat.rests();
    seat.types("half a thought");
    seat.sees("> half a thought");
    // What is put off until nobody waits is done by then.
    std::thread::sleep(Duration::from_secs(1));
    let before = worked(seat.id());
    std::thread::sleep(LOOKED);
    let share = (worked(seat.id()) - before).as_secs_f64() / LOOKED.as_secs_f64();
    assert!(share <= IDLE_SHARE_MAX, "{:.5} % of a core", share * 100.0);
}
