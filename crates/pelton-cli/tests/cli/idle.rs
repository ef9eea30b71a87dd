//! What a session costs while nothing happens.

use std::time::Duration;

use pelton_testkit::{Script, gate, text};

use crate::place::{Place, model};
use crate::talk::Talk;

/// How long is looked.
const LOOKED: Duration = Duration::from_secs(6);
/// Of one core, while a session waits for its user: 0.1 s in ten minutes.
const IDLE_SHARE_MAX: f64 = 0.1 / 600.0;
/// Of one core, while it waits for a model that says nothing.
const STALLED_SHARE_MAX: f64 = 0.01;

/// The share of one core that all threads of a process take together, from now on.
fn share(process: u32) -> f64 {
    let before = on_cpu(process);
    std::thread::sleep(LOOKED);
    on_cpu(process).saturating_sub(before).as_secs_f64() / LOOKED.as_secs_f64()
}

fn on_cpu(process: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let spent = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(spent.sum())
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
