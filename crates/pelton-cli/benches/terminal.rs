//! What people wait for at a terminal: the first paint, a key in a long session on a busy machine; and what a session takes that
//! nobody types at. `--idle SECONDS` watches for so long.

#[path = "../tests/terminal/long.rs"]
mod long;
#[path = "../tests/cli/place.rs"]
#[allow(dead_code)] // The tests use the rest.
mod place;
#[path = "../tests/terminal/seat.rs"]
#[allow(dead_code)]
mod seat;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pelton_testkit::{Part, Script, Step, pause, text};

use place::{Place, model};
use seat::Seat;

const ROUNDS: usize = 21;
const KEYS: usize = 500;
const MESSAGES: u128 = 10_000;
/// How long an idle session is watched, unless told otherwise.
const IDLE: Duration = Duration::from_secs(60);
/// What ten minutes of it may take.
const IDLE_PROMISED: Duration = Duration::from_secs(600);

fn main() {
    let mut words = std::env::args().skip_while(|word| word != "--idle").skip(1);
    let idle = words.next().and_then(|seconds| seconds.parse().ok()).map_or(IDLE, Duration::from_secs);
    first_paint();
    key_echo(false);
    key_echo(true);
    at_rest(idle);
}

fn first_paint() {
    let (place, model) = (Place::new(), model(Script::new()));
    let mut took: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let began = Instant::now();
            let seat = Seat::at(&place, &model, []);
            while !seat.screen().contains("asks before changes") {
                std::thread::sleep(Duration::from_micros(200));
            }
            began.elapsed()
        })
        .collect();
    took.sort();
    println!("start to first paint: {} (at most 50 ms)", ms(took[ROUNDS / 2]));
}

/// Keys in a long session while all cores are busy; `streams`: and the model writes.
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
    let stop = Arc::new(AtomicBool::new(false));
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let busy: Vec<_> = (0..cores)
        .map(|_| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        })
        .collect();
    let mut took: Vec<Duration> = (0..KEYS)
        .map(|at| {
            let (key, expected) = if at % 2 == 0 { ("y", "> y") } else { ("\u{7f}", ">") };
            let began = Instant::now();
            seat.types(key);
            while !seat.screen().lines().any(|row| row.trim_end() == expected) {
                std::thread::sleep(Duration::from_micros(100));
            }
            let took = began.elapsed();
            std::thread::sleep(Duration::from_millis(15));
            took
        })
        .collect();
    stop.store(true, Ordering::Relaxed);
    busy.into_iter().for_each(|thread| _ = thread.join());
    took.sort();
    let what = if streams { ", while the model writes" } else { "" };
    let (half, most) = (took[KEYS / 2], took[KEYS * 99 / 100]);
    println!(
        "a key in {MESSAGES} messages, {cores} cores busy{what}: half within {}, 99 of 100 within {} (at most 20 ms)",
        ms(half),
        ms(most)
    );
}

fn at_rest(watched: Duration) {
    let (place, model) = (Place::new(), model(Script::new().step(Step::reply([text("Well.")]).always())));
    let seat = Seat::at(&place, &model, ["hello"]);
    seat.sees("Well.");
    seat.rests();
    std::thread::sleep(Duration::from_secs(1));
    let before = worked(seat.id());
    std::thread::sleep(watched);
    let spent = worked(seat.id()).saturating_sub(before);
    let promised = spent.mul_f64(IDLE_PROMISED.as_secs_f64() / watched.as_secs_f64());
    println!(
        "at rest for {} s: {} of a core, in ten minutes {} (at most 100 ms)",
        watched.as_secs(),
        ms(spent),
        ms(promised)
    );
}

/// What all threads of a process have worked so far.
fn worked(process: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    let spent = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(spent.sum())
}

fn ms(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1_000.0)
}
