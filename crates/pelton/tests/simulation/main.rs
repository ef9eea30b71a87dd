//! Whole sessions in memory, on a stopped clock, each from one seed: the model, the tools, the clock and the disk fail,
//! the user interrupts or leaves, the process or the machine dies, and the session goes on from what is on the disk.
//! Whatever happened, the rules in [`check`] hold.
//!
//! The same seed plays the same session, to the byte. One seed, with its log:
//!
//! ```sh
//! PELTON_SEED=42 cargo test -p pelton --test simulation one_seed -- --nocapture
//! ```
//!
//! With `PELTON_SEED_REQUESTS=DIR` the requests of that seed are written there, one file each.
//!
//! Many seeds: `scripts/simulate`. What keeps a seed's play the same: one thread with one runtime, no socket and no
//! blocking thread (the disk is a door as the network is), ids and jitter from the seeded world, maps that are ordered
//! or only looked up, and no `select!` in the engine's path that draws lots.

mod check; // what must hold
mod dice; // seeded chance
mod disk; // a disk that fails
mod hooks; // hooks that misbehave
mod kept; // seeds that once failed
mod log; // what happened
mod plan; // from a seed to a session
mod session; // plays it
mod tools; // tools that misbehave

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once};
use std::time::Instant;

use session::{Played, play};

/// Seeds of every run of the tests.
const SEEDS: u64 = 1_000;
/// Lines of the log shown with a failure; all of them with `one_seed`.
const LINES_SHOWN_MAX: usize = 60;
/// How often a long run says how far it is, in seeds.
const PROGRESS_EVERY: u64 = 10_000;

#[test]
fn whatever_happens_the_rules_hold() {
    let from = number("PELTON_SEEDS_FROM").unwrap_or(0);
    let count = number("PELTON_SEEDS").unwrap_or(SEEDS);
    let began = Instant::now();
    let next = AtomicU64::new(from);
    let failure: Mutex<Option<(u64, Played)>> = Mutex::new(None);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + count || failure.lock().unwrap().is_some() {
                        return;
                    }
                    let played = play_quietly(seed);
                    if !played.broken.is_empty() {
                        // The lowest seed is shown, so that two runs show the same.
                        let mut first = failure.lock().unwrap();
                        if first.as_ref().is_none_or(|(known, _)| seed < *known) {
                            *first = Some((seed, played));
                        }
                        return;
                    }
                    let done = seed - from + 1;
                    if done.is_multiple_of(PROGRESS_EVERY) {
                        say(&format!("{done} of {count} seeds, {:.0} s", began.elapsed().as_secs_f64()));
                    }
                }
            });
        }
    });
    if let Some((seed, played)) = failure.into_inner().unwrap() {
        fail(seed, &played, LINES_SHOWN_MAX);
    }
    say(&format!("simulation: {count} seeds from {from} in {:.1} s", began.elapsed().as_secs_f64()));
}

#[test]
fn the_same_seed_plays_the_same_session() {
    for seed in (0..SEEDS).step_by(29) {
        let (one, other) = (play_quietly(seed), play_quietly(seed));
        if one.hash != other.hash {
            let differ = one.log.iter().zip(&other.log).find(|(one, other)| one != other);
            panic!(
                "seed {seed} plays differently: {differ:?}; {} and {} lines",
                one.log.len(),
                other.log.len()
            );
        }
    }
}

/// For replays; without a seed it plays the first.
#[test]
fn one_seed() {
    let seed = number("PELTON_SEED").unwrap_or(0);
    let played = play_quietly(seed);
    if !played.broken.is_empty() {
        fail(seed, &played, usize::MAX);
    }
    println!("{}", played.log.join("\n"));
}

fn play_quietly(seed: u64) -> Played {
    expect_panics();
    play(seed)
}

/// For whoever waits, also where the output of tests is kept back.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[track_caller]
fn fail(seed: u64, played: &Played, lines_max: usize) -> ! {
    let skipped = played.log.len().saturating_sub(lines_max);
    let log = played.log[skipped..].join("\n");
    panic!(
        "seed {seed}: {}\n\n{skipped} lines before\n{log}\n\nTo play it again, with its whole log:\n  PELTON_SEED={seed} \
         cargo test -p pelton --test simulation one_seed -- --nocapture\n",
        played.broken.join("\n  and: "),
    );
}

/// Panics that tools and hooks were told to have are not worth a line.
fn expect_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let told = info.payload_as_str().is_some_and(|words| words.starts_with(tools::TOLD_TO_PANIC));
            if !told {
                usual(info);
            }
        }));
    });
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
