//! What a session costs while nothing happens.

use std::time::Duration;

use pelton_testkit::{Script, gate, text};

use crate::place::{Place, model, worked};
use crate::talk::Talk;

/// How long is looked.
const LOOKED: Duration = Duration::from_secs(6);
/// Of one core, while a session waits for its user: 0.1 s in ten minutes.
const IDLE_SHARE_MAX: f64 = 0.1 / 600.0;
/// Of one core, while it waits for a model that says nothing.
const STALLED_SHARE_MAX: f64 = 0.01;

/// The share of one core that all threads of a process take together, from now on.
fn share(process: u32) -> f64 {
    let before = worked(process);
    std::thread::sleep(LOOKED);
    worked(process).saturating_sub(before).as_secs_f64() / LOOKED.as_secs_f64()
}

#[test]
#[cfg(target_os = "linux")]
fn pit_M2_waiting_costs_next_to_nothing() {
    let place = Place::new();
    let model =
        model(Script::new().reply([text("Hello.")]).reply([text("half"), gate("never"), text("whole")]));
    let mut talk = Talk::start(&place, &model, &["--include-partial-messages"]);
    talk.prompt("hi");
    talk.result();
    // What is put off until nobody waits is done by then.
    std::thread::sleep(Duration::from_secs(1));
    let idle = share(talk.id());
    assert!(idle <= IDLE_SHARE_MAX, "{:.5} % while it waits for its user", idle * 100.0);

    talk.prompt("go on");
    talk.until(|line| line["type"] == "stream_event" && line.to_string().contains("half"));
    let stalled = share(talk.id());
    assert!(stalled <= STALLED_SHARE_MAX, "{:.5} % while it waits for the model", stalled * 100.0);
}

/// Of one process, what it has allocated, and how long it works from its start to its first frame.
const MEMORY_KB_MAX: u64 = 30 * 1000;
const STARTING_MAX: Duration = Duration::from_millis(50);

fn memory_kb(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    own.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Work and memory of its own are the same on a busy machine. How long it takes by the clock, and what it weighs with the code of a
/// release, are for `scripts/bench start` to measure.
#[test]
#[cfg(target_os = "linux")]
fn pit_M4_a_session_that_begins_weighs_little() {
    let place = Place::new();
    let model = model(Script::new().reply([text("Hello.")]));
    let mut talk = Talk::start(&place, &model, &[]);
    talk.prompt("hi");
    talk.system("init");
    let cpu = worked(talk.id());
    talk.result();
    let memory = memory_kb(talk.id());
    println!("{memory} kB, {} ms of a core until init", cpu.as_millis());
    assert!(memory <= MEMORY_KB_MAX, "{memory} kB");
    assert!(cpu <= STARTING_MAX, "{cpu:?}");
}
