//! Calls, and the requests that follow them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use pelton_bench::events::{call_block, closing, opening};
use serde_json::Value;

use super::{Bench, median, millis, spread, start};
use crate::measure::{self, Ran};
use crate::model::{Came, Piece, Script, answer};
use crate::places::SMALL_FILES;
use crate::programs::{Program, Shown};
use crate::table::{Curve, Row};

const TURNS: usize = 200;
const SHELL_TURNS: usize = 60;
/// Turns whose gaps count as early ones.
const EARLY: std::ops::Range<usize> = 5..15;
const LATE_TURNS: usize = 10;
/// A value is noted every so many turns.
const NOTE_EVERY: usize = 20;
/// How long an answer stays open behind a block, so that whoever starts at its end is seen to.
const OPEN_BEHIND_BLOCK: Duration = Duration::from_millis(60);

/// One call per turn, then a word.
fn calls(turns: usize, call: impl Fn(usize) -> (&'static str, Value) + Send + Sync + 'static) -> Script {
    Arc::new(move |results| {
        if results >= turns {
            return vec![answer("Done.")];
        }
        let (tool, input) = call(results);
        vec![Piece::Send((opening() + &call_block(0, results, tool, &input) + &closing("tool_use")).into())]
    })
}

fn reads(bench: &Bench, program: &Program, turns: usize) -> Script {
    let files: Vec<PathBuf> = (0..turns).map(|turn| bench.small.small_file(turn % SMALL_FILES)).collect();
    let program = program.clone();
    calls(turns, move |turn| program.read(&files[turn]))
}

/// The time between an answer's last byte and the next request's last one, for each turn.
fn gaps(came: &[Came]) -> Vec<f64> {
    let pairs = came.iter().zip(came.iter().skip(1));
    pairs
        .filter_map(|(this, next)| Some(millis(next.whole.saturating_duration_since(this.answered?))))
        .collect()
}

fn play(bench: &Bench, program: &Program, script: Script, turns: usize) -> io::Result<Ran> {
    bench.model.play(script);
    let mut command = program.task(&bench.small, &bench.model.address(), Shown::Answer);
    let ran = bench.checked(program, measure::run(&mut command)?)?;
    let asked = bench.model.notes().came.len();
    if asked <= turns {
        return Err(io::Error::other(format!("{}: {asked} requests for {turns} turns", program.name())));
    }
    Ok(ran)
}

/// What a turn takes that reads a file, and one that runs a command.
pub(crate) fn small(bench: &Bench) -> io::Result<Vec<Row>> {
    let mut base: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut cpu: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut gap: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut shell: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for _ in 0..bench.long_rounds {
        for program in &bench.programs {
            let name = program.name();
            let none = play(bench, program, reads(bench, program, 0), 0)?;
            base.entry(name).or_default().push(millis(none.cpu));
            let ran = play(bench, program, reads(bench, program, TURNS), TURNS)?;
            let usual = median(&base[name]);
            cpu.entry(name).or_default().push((millis(ran.cpu) - usual).max(0.0) / TURNS as f64);
            gap.entry(name).or_default().push(median(&gaps(&bench.model.notes().came)));
            let of = program.clone();
            let file = |turn: usize| format!("cat file_{turn:04}.txt");
            let ran =
                play(bench, program, calls(SHELL_TURNS, move |turn| of.shell(&file(turn))), SHELL_TURNS)?;
            shell.entry(name).or_default().push((millis(ran.cpu) - usual).max(0.0) / SHELL_TURNS as f64);
        }
    }
    Ok(vec![
        spread(
            Row::new(format!("CPU per tool turn (Read of a small file), {TURNS} turns"), "ms", Some(0.4)),
            cpu,
        ),
        spread(Row::new("gap between an answer's last byte and the next request, p50", "ms", Some(0.3)), gap),
        spread(Row::new("CPU per shell turn (cat of a small file)", "ms", Some(5.0)), shell),
    ])
}

/// Extra CPU for a command that prints 10 MB.
pub(crate) fn long_output(bench: &Bench) -> io::Result<Row> {
    let mut extra: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for _ in 0..bench.long_rounds {
        for program in &bench.programs {
            let run = |file: String| {
                let of = program.clone();
                play(bench, program, calls(1, move |_| of.shell(&format!("cat {file}"))), 1)
            };
            let small = run("file_0000.txt".to_owned())?;
            let long = run(bench.small.long_output().display().to_string())?;
            extra.entry(program.name()).or_default().push((millis(long.cpu) - millis(small.cpu)).max(0.0));
        }
    }
    Ok(spread(Row::new("10 MB of tool output, extra CPU", "ms", Some(60.0)), extra))
}

/// How long after a block is complete its tool begins: seen by the file it opens, while the answer is still open.
pub(crate) fn tool_start(bench: &Bench) -> io::Result<Vec<Row>> {
    let mut read: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut shell: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for round in 0..bench.rounds {
        for program in &bench.programs {
            let file = bench.small.small_file(round % SMALL_FILES);
            let took = started_after(bench, program, &file, program.read(&file))?;
            read.entry(program.name()).or_default().push(took);
            let command = program.shell(&format!("cat {}", file.display()));
            let took = started_after(bench, program, &file, command)?;
            shell.entry(program.name()).or_default().push(took);
        }
    }
    Ok(vec![
        spread(Row::new("tool starts after its block is complete, a read", "ms", Some(2.0)), read),
        spread(Row::new("tool starts after its block is complete, a command", "ms", Some(6.0)), shell),
    ])
}

fn started_after(
    bench: &Bench,
    program: &Program,
    file: &PathBuf,
    call: (&'static str, Value),
) -> io::Result<f64> {
    let watch = Inotify::init(InitFlags::IN_CLOEXEC)?;
    watch.add_watch(file, AddWatchFlags::IN_OPEN)?;
    let seen: Arc<Mutex<Option<Instant>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let watching = std::thread::spawn(move || {
        if watch.read_events().is_ok() {
            noted.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
        }
    });
    let (tool, input) = call;
    bench.model.play(Arc::new(move |results| {
        if results > 0 {
            return vec![answer("Done.")];
        }
        vec![
            Piece::Send((opening() + &call_block(0, 0, tool, &input)).into()),
            Piece::Mark,
            Piece::Wait(OPEN_BEHIND_BLOCK),
            Piece::Send(closing("tool_use").into()),
        ]
    }));
    let mut command = program.task(&bench.small, &bench.model.address(), Shown::Answer);
    bench.checked(program, measure::run(&mut command)?)?;
    // Whoever never opened it must not keep the watcher waiting.
    fs::read(file)?;
    // It does not panic.
    let _ = watching.join();
    let opened = seen.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or_else(Instant::now);
    let complete = bench.model.notes().marks.first().copied().unwrap_or(opened);
    Ok(millis(opened.saturating_duration_since(complete)))
}

/// A long session: what grows with its history, and what does not.
pub(crate) fn growth(bench: &Bench) -> io::Result<(Vec<Row>, Vec<Curve>)> {
    let turns = bench.long_turns;
    let mut early = Row::new(format!("gap, turns {} to {}", EARLY.start, EARLY.end), "ms", None);
    let mut late = Row::new(format!("gap, the last {LATE_TURNS} of {turns} turns"), "ms", None);
    let mut ratio =
        Row::new("late gap beside the early one, its bytes' own cost taken off", "times", Some(1.5));
    let mut curves = Vec::new();
    let mut per_byte = 0.0;
    for program in bench.programs.iter().take(2) {
        bench.model.play(reads(bench, program, turns));
        let noted: Arc<Mutex<Vec<(usize, Duration, u64)>>> = Arc::default();
        let mut command = program.task(&bench.small, &bench.model.address(), Shown::Answer);
        command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
        let child = command.stderr(std::process::Stdio::null()).spawn()?;
        let (pid, notes) = (child.id(), Arc::clone(&noted));
        bench.model.watch(Arc::new(move |number| {
            if number % NOTE_EVERY == 0 {
                let now = (number, measure::cpu_of(pid), measure::resident_kb(pid).unwrap_or(0));
                notes.lock().unwrap_or_else(PoisonError::into_inner).push(now);
            }
        }));
        let output = child.wait_with_output()?;
        if !output.status.success() {
            return Err(io::Error::other(format!("{} failed in a long session", program.name())));
        }
        let came = bench.model.notes().came.clone();
        let gaps = gaps(&came);
        let (first, last) = (median(&gaps[EARLY]), median(&gaps[gaps.len().saturating_sub(LATE_TURNS)..]));
        early.add(program.name(), &[first]);
        late.add(program.name(), &[last]);
        // Requests of the two are not equally long: what counts is what a byte takes.
        let longer = more_bytes(&came);
        if matches!(program, Program::Bare(_)) {
            per_byte = (last - first).max(0.0) / longer.max(1.0);
            continue;
        }
        let own = (last - per_byte * longer).max(0.0);
        ratio.add(program.name(), &[own / first.max(f64::MIN_POSITIVE)]);
        let noted = std::mem::take(&mut *noted.lock().unwrap_or_else(PoisonError::into_inner));
        let pairs = noted.iter().zip(noted.iter().skip(1));
        let per_turn =
            pairs.map(|(a, b)| (b.0 as f64, millis(b.1.saturating_sub(a.1)) / (b.0 - a.0) as f64)).collect();
        curves.push(Curve { what: "CPU per turn".to_owned(), unit: "ms", points: per_turn });
        let memory = noted.iter().map(|note| (note.0 as f64, note.2 as f64 / 1e3)).collect();
        curves.push(Curve { what: "memory".to_owned(), unit: "MB", points: memory });
        let points = gaps.iter().enumerate().step_by(NOTE_EVERY).map(|(turn, gap)| (turn as f64, *gap));
        curves.push(Curve {
            what: "gap to the next request".to_owned(),
            unit: "ms",
            points: points.collect(),
        });
    }
    curves.extend(resume_curve(bench)?);
    Ok((vec![early, late, ratio], curves))
}

/// How much longer the last requests are than the early ones.
fn more_bytes(came: &[Came]) -> f64 {
    let median_of = |came: &[Came]| median(&came.iter().map(|came| came.bytes as f64).collect::<Vec<_>>());
    median_of(&came[came.len().saturating_sub(LATE_TURNS)..]) - median_of(&came[EARLY])
}

/// How long going on takes with sessions of several lengths.
fn resume_curve(bench: &Bench) -> io::Result<Option<Curve>> {
    let Some(pelton) = bench.programs.get(1) else { return Ok(None) };
    let mut points = Vec::new();
    for share in [20, 5, 2, 1] {
        let turns = bench.long_turns / share;
        let ran = play(bench, pelton, reads(bench, pelton, turns), turns)?;
        let Some(session) = start::session_of(&ran.stdout) else { continue };
        let times: io::Result<Vec<f64>> =
            (0..bench.long_rounds).map(|_| start::resume_time(bench, &session)).collect();
        points.push((turns as f64, median(&times?)));
    }
    Ok(Some(Curve { what: "resume to the first request".to_owned(), unit: "ms", points }))
}
