//! Repositories that want something run. Each is opened before anybody has trusted it, and again afterwards, when its payload
//! does run: what was held back was a real attack. What a run with somebody in front would use of them is looked at in
//! `src/resolve/layers.rs`, and what such a run does in `tests/terminal/hostile_repositories.rs`.

use std::time::{Duration, Instant};

use pelton_testkit::{Script, Step, text};
use serde_json::Value;

use crate::opened::{Opened, cases};
use crate::place::{Commanded, model};

/// How long a program is given to be started that nobody waits for and that must not be.
const STARTED_UNASKED_WAIT: Duration = Duration::from_millis(700);
/// How long a program is waited for that must be started.
const STARTED_WAIT_MAX: Duration = Duration::from_secs(20);

/// One run without anybody in front. Whether the payload ran.
fn run(opened: &Opened) -> bool {
    let is_waited_for = opened.case["wait"] == true;
    let good = model(opened.script());
    let mut command = opened.place.task(&good, [opened.case["prompt"].as_str().unwrap_or("Go.")]);
    opened.surround(&mut command);
    let running = command.start();
    if is_waited_for {
        let began = Instant::now();
        let expected = opened.case["headless"] == "runs" || opened.is_trusted();
        let longest = if expected { STARTED_WAIT_MAX } else { STARTED_UNASKED_WAIT };
        while !opened.mark().exists() && began.elapsed() < longest {
            std::thread::sleep(Duration::from_millis(10));
        }
        good.open("end");
    }
    let ran = running.end();
    assert!(ran.code.is_some(), "{ran:?}");
    opened.has_struck(&good)
}

fn check(cases: impl Iterator<Item = Value>) {
    for case in cases {
        let name = case["name"].as_str().unwrap().to_owned();
        let opened = Opened::new(&case);
        // Whoever only looks runs nothing.
        for words in
            [&["trust"][..], &["config", "check"], &["config", "show", "--effective"], &["mcp", "list"]]
        {
            opened.place.pelton(words.iter().copied()).current_dir(opened.dir()).run();
            assert!(!opened.mark().exists(), "{name}: {words:?} ran it");
        }
        assert_eq!(run(&opened), case["headless"] == "runs", "{name}, before trust");
        let again = Opened::new(&case);
        again.trust(&again.dir());
        assert!(run(&again), "{name}: once it is trusted its payload runs");
        // The switches for machines that open what nobody has read.
        let switched = Opened::new(&case);
        let bare = model(Script::new().step(Step::reply([text("Done.")]).always()));
        for switch in [&["--bare"][..], &["--setting-sources", "user"]] {
            let words = std::iter::once("Go.").chain(switch.iter().copied());
            switched.place.task(&bare, words).current_dir(switched.dir()).run();
            assert!(!switched.mark().exists(), "{name}: {switch:?} ran it");
        }
    }
}

#[test]
fn hostile_repositories_get_what_the_table_allows_first_third() {
    check(cases(0));
}

#[test]
fn hostile_repositories_get_what_the_table_allows_second_third() {
    check(cases(1));
}

#[test]
fn hostile_repositories_get_what_the_table_allows_last_third() {
    check(cases(2));
}
