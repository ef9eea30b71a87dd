//! What people wait for at a terminal, by the clock, and what a session takes that nobody types at. Each fails beyond what is promised; they
//! want a release and a quiet machine, and so are run by `scripts/bench terminal` alone. `PELTON_IDLE_SECONDS` is how long one is
//! watched that is at rest.

#![cfg(target_os = "linux")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pelton_testkit::{Part, Script, Step, gate, pause, text, tool};
use serde_json::json;

use crate::cost::much_lying_about;
use crate::long;
use crate::place::{Place, model, worked};
use crate::seat::Seat;

const ROUNDS: usize = 21;
const KEYS: usize = 500;
const MESSAGES: u128 = 10_000;
const PASTE_BYTES: usize = 1024 * 1024;
/// How long an idle session is watched, unless told otherwise, and what the promise is about.
const IDLE_S: u64 = 60;
const IDLE_PROMISED: Duration = Duration::from_secs(600);
/// How often is looked.
const LOOK: Duration = Duration::from_micros(100);

/// Says what was measured, and fails if it is more than was promised.
fn judged(what: &str, took: Duration, promised: Duration) {
    let ms = |duration: Duration| duration.as_secs_f64() * 1_000.0;
    println!("{what}: {:.1} ms (at most {:.0} ms)", ms(took), ms(promised));
    assert!(took <= promised, "{what}: {took:?} instead of {promised:?}");
}

/// How long it takes until a screen is as it should be.
fn until(seat: &Seat, began: Instant, holds: impl Fn(&str) -> bool) -> Duration {
    while !holds(&seat.screen()) {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", seat.screen());
        std::thread::sleep(LOOK);
    }
    began.elapsed()
}

/// The middle of what was measured.
fn median(mut took: Vec<Duration>) -> Duration {
    took.sort();
    took[took.len() / 2]
}

fn always(words: &str) -> pelton_testkit::ScriptedModel {
    model(Script::new().step(Step::reply([text(words)]).always()))
}

#[test]
#[ignore = "a figure: scripts/bench terminal"]
fn from_the_start_to_the_first_paint() {
    let (place, model) = (Place::new(), always("Well."));
    let took = (0..ROUNDS).map(|_| {
        let began = Instant::now();
        let seat = Seat::at(&place, &model, []);
        until(&seat, began, |screen| screen.contains("asks before changes"))
    });
    judged("start to first paint", median(took.collect()), Duration::from_millis(50));
}

#[test]
#[ignore = "a figure: scripts/bench terminal"]
fn from_the_start_to_the_first_key_with_much_lying_about() {
    let (place, model) = (Place::new(), always("Well."));
    let words = much_lying_about(&place);
    let took = (0..ROUNDS).map(|_| {
        let began = Instant::now();
        let mut seat = Seat::at(&place, &model, words.iter().map(String::as_str));
        seat.types("typed");
        until(&seat, began, |screen| screen.contains("> typed"))
    });
    let what = "start to the first keys, beside 10,000 transcripts and 50 plugins";
    judged(what, median(took.collect()), Duration::from_millis(150));
}

#[test]
#[ignore = "a figure: scripts/bench terminal"]
fn a_key_in_a_long_session_while_all_cores_are_busy() {
    key_echo(false);
}

#[test]
#[ignore = "a figure: scripts/bench terminal"]
fn a_key_in_a_long_session_while_all_cores_are_busy_and_the_model_writes() {
    key_echo(true);
}

fn key_echo(streams: bool) {
    let place = Place::new();
    let session = long::record(&place, MESSAGES);
    let parts = (0..3_000)
        .flat_map(|at| [text(format!("Word {at} and *more*.\n\n")), pause(Duration::from_millis(10))]);
    let parts: Vec<Part> = parts.collect();
    let model = model(Script::new().step(Step::reply(parts).always()));
    let mut seat = Seat::at(&place, &model, ["--resume", &session]);
    seat.sees("Answer 9999");
    seat.sees("asks before changes");
    if streams {
        seat.types("go\r");
        seat.sees("Word 10 ");
    }
    let busy = Busy::all_cores();
    let took = echoes(
        &mut seat,
        |at| if at % 2 == 0 { "y" } else { "\u{7f}" },
        |screen, at| {
            let expected = if at % 2 == 0 { "> y" } else { ">" };
            screen.lines().any(|row| row.trim_end() == expected)
        },
    );
    // What a program takes that does nothing else is what the machine takes.
    let mut command = place.shell("stty raw -echo; exec cat");
    command.env("TERM", "xterm");
    let mut bare = Seat::with(command, 80, 24);
    std::thread::sleep(Duration::from_secs(1));
    let least = echoes(&mut bare, |_| "y", |screen, at| screen.matches('y').count() == at + 1);
    drop(busy);
    let what = if streams { ", while the model writes" } else { "" };
    let (half, most) = (took[KEYS / 2], took[KEYS * 99 / 100]);
    println!("a key in {MESSAGES} messages, all cores busy{what}: half within {half:?}");
    println!("  99 of 100 in a program that only echoes: {:?}", least[KEYS * 99 / 100]);
    judged(&format!("  99 of 100{what}"), most, Duration::from_millis(20));
}

/// How long each of many keys takes to be shown, the shortest first.
fn echoes(
    seat: &mut Seat,
    key: impl Fn(usize) -> &'static str,
    is_shown: impl Fn(&str, usize) -> bool,
) -> Vec<Duration> {
    let mut took: Vec<Duration> = (0..KEYS)
        .map(|at| {
            let began = Instant::now();
            seat.types(key(at));
            let took = until(seat, began, |screen| is_shown(screen, at));
            std::thread::sleep(Duration::from_millis(15));
            took
        })
        .collect();
    took.sort();
    took
}

/// Work for every core, until it is dropped.
struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    fn all_cores() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let work = |stop: Arc<AtomicBool>| {
            move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }
        };
        let threads = (0..cores).map(|_| std::thread::spawn(work(Arc::clone(&stop)))).collect();
        Self { stop, threads }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| _ = thread.join());
    }
}

#[test]
#[ignore = "a figure: scripts/bench terminal"]
fn a_paste_of_a_megabyte() {
    let (place, model) = (Place::new(), always("Well."));
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("asks before changes");
    let line = "All of this has to arrive.\n";
    let began = Instant::now();
    seat.types(&format!("\u{1b}[200~{}\u{1b}[201~", line.repeat(PASTE_BYTES / line.len())));
    let took = until(&seat, began, |screen| screen.contains("> [Pasted text #1"));
    judged("a paste of a megabyte, until it is shown", took, Duration::from_secs(1));
    let began = Instant::now();
    seat.types("x");
    judged(
        "  a key behind it",
        until(&seat, began, |screen| screen.contains("]x")),
        Duration::from_millis(20),
    );
}

#[test]
#[ignore = "a figure: scripts/bench terminal"]
fn escape_interrupts() {
    let place = Place::new();
    let model = model(Script::new().step(Step::reply([text("Word "), gate("never")]).always()));
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("asks before changes");
    let took = (0..ROUNDS).map(|round| {
        seat.types("go\r");
        seat.until("it is asked", |_| model.requests().len() > round);
        seat.sees("Esc interrupts");
        let began = Instant::now();
        seat.types("\u{1b}");
        until(&seat, began, |screen| !screen.contains("Esc interrupts"))
    });
    judged("Esc to the end of what runs, the slowest", took.max().unwrap(), Duration::from_millis(100));
}

#[test]
#[ignore = "a figure: scripts/bench terminal"]
fn escape_interrupts_a_command_and_a_wait() {
    let place = Place::new();
    let bash = || tool("Bash", json!({"command": "echo begun; sleep 600", "description": "Wait"}));
    for (what, step, sign) in [
        ("a command", Step::reply([bash()]).always(), "│  begun"),
        (
            "a wait for another attempt",
            Step::status(529).header("retry-after", "60").always(),
            "asking again in",
        ),
    ] {
        let model = model(Script::new().step(step));
        let mut seat = Seat::at(&place, &model, ["--allowedTools", "Bash"]);
        seat.sees("asks before changes");
        let took = (0..ROUNDS / 3).map(|_| {
            seat.types("go\r");
            seat.sees(sign);
            let began = Instant::now();
            seat.types("\u{1b}");
            until(&seat, began, |screen| !screen.contains("Esc interrupts"))
        });
        let took = took.max().unwrap();
        judged(&format!("Esc to the end of {what}, the slowest"), took, Duration::from_millis(100));
    }
}

#[test]
#[ignore = "a figure: scripts/bench terminal"]
fn at_rest() {
    let told = std::env::var("PELTON_IDLE_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    let watched = Duration::from_secs(told.unwrap_or(IDLE_S));
    let (place, model) = (Place::new(), always("Well."));
    let seat = Seat::at(&place, &model, ["hello"]);
    seat.sees("Well.");
    seat.rests();
    // What is put off until nobody waits is done by then.
    std::thread::sleep(Duration::from_secs(1));
    let before = worked(seat.id());
    std::thread::sleep(watched);
    let spent = worked(seat.id()).saturating_sub(before);
    let in_ten_minutes = spent.mul_f64(IDLE_PROMISED.as_secs_f64() / watched.as_secs_f64());
    let what = format!("of a core, in ten minutes at rest (watched for {} s)", watched.as_secs());
    judged(&what, in_ten_minutes, Duration::from_millis(100));
}
