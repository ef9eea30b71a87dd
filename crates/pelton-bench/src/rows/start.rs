//! From starting the program to its first request, and what a run of one answer takes.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pelton_bench::long_transcript::write_transcript;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Bench, median, millis, spread};
use crate::measure;
use crate::model::{Script, answer};
use crate::places::Place;
use crate::programs::{Program, Shown, on_path};
use crate::table::Row;

/// What the model says in a run of one answer.
fn one_answer() -> Script {
    Arc::new(|_| vec![answer("Hello.")])
}

/// A run of one answer, in a place.
pub(crate) fn one(bench: &Bench, place: &Place, name: &str) -> io::Result<Vec<Row>> {
    let mut first: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut cpu: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut resident: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut proportional: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for round in 0..bench.rounds {
        for program in &bench.programs {
            bench.model.play(one_answer());
            let mut command = program.task(place, &bench.model.address(), Shown::Answer);
            let ran = bench.checked(program, measure::run(&mut command)?)?;
            let came = bench.model.notes().came.first().map(|came| came.whole);
            // The first round is for the caches of the machine.
            if round > 0 {
                let took = came.map(|came| came.duration_since(ran.began)).unwrap_or_default();
                first.entry(program.name()).or_default().push(millis(took));
                cpu.entry(program.name()).or_default().push(millis(ran.cpu));
            }
        }
    }
    // Looking at memory takes time of its own: it is done in runs that nothing else is measured in.
    for _ in 0..bench.rounds.div_ceil(4) {
        for program in &bench.programs {
            bench.model.play(one_answer());
            let mut command = program.task(place, &bench.model.address(), Shown::Answer);
            let (ran, weight) = measure::run_weighed(&mut command)?;
            bench.checked(program, ran)?;
            resident.entry(program.name()).or_default().push(weight.resident_kb as f64 / 1e3);
            proportional.entry(program.name()).or_default().push(weight.proportional_kb as f64 / 1e3);
        }
    }
    Ok(vec![
        spread(Row::new(format!("spawn → first model request, {name}"), "ms", Some(10.0)), first),
        spread(Row::new(format!("CPU of a one-answer run, {name}"), "ms", Some(10.0)), cpu),
        spread(
            Row::new(format!("peak memory of the whole process tree, {name}"), "MB", Some(12.0)),
            resident,
        ),
        spread(Row::new(format!("the same, shared pages by their share, {name}"), "MB", None), proportional),
    ])
}

/// What of that goes into the state of the repository: what git's processes take, or, where none is started, what the program's own
/// look does.
pub(crate) fn git(bench: &Bench, place: &Place, name: &str) -> io::Result<Row> {
    let row = Row::new(format!("git's part of it: its processes, or Pelton's own look, {name}"), "ms", None);
    bench.agents().try_fold(row, |row, program| {
        let took = match program {
            Program::Pelton(_) => own_look(bench, program, place)?,
            _ => processes_of_git(bench, program, place)?,
        };
        Ok(row.with(program.name(), &[took]))
    })
}

/// CPU of a run less that of one which is told not to look.
fn own_look(bench: &Bench, program: &Program, place: &Place) -> io::Result<f64> {
    let (mut looking, mut not_looking) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds {
        for (times, settings) in [(&mut looking, "{}"), (&mut not_looking, NO_GIT)] {
            bench.model.play(one_answer());
            let mut command = program.task(place, &bench.model.address(), Shown::Answer);
            let ran = bench.checked(program, measure::run(command.args(["--settings", settings]))?)?;
            times.push(millis(ran.cpu));
        }
    }
    Ok((median(&looking) - median(&not_looking)).max(0.0))
}

const NO_GIT: &str = r#"{"includeGitInstructions": false}"#;

/// Those who ask git find one first on their path that writes down what it took.
fn processes_of_git(bench: &Bench, program: &Program, place: &Place) -> io::Result<f64> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let Some(real) = on_path("git") else { return Ok(0.0) };
    let dir = tempfile::tempdir()?;
    let (stand_in, log) = (dir.path().join("git"), dir.path().join("log"));
    let (real, written) = (real.display(), log.display());
    fs::write(
        &stand_in,
        format!(
            "#!/bin/sh\n'{real}' \"$@\"\ncode=$?\ntimes >'{written}'.$$\ntail -n 1 '{written}'.$$ >>'{written}'\nexit $code\n"
        ),
    )?;
    fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o755))?;
    let folders = std::iter::once(dir.path().to_owned()).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).map_err(io::Error::other)?;
    bench.model.play(one_answer());
    let mut command = program.task(place, &bench.model.address(), Shown::Answer);
    bench.checked(program, measure::run(command.env("PATH", &path))?)?;
    // Nobody who did not start it wrote anything. (In a pipeline, `times` would tell of a shell that has no children.)
    let took = fs::read_to_string(&log).unwrap_or_default();
    Ok(took.lines().map(millis_of_times).sum())
}

/// Milliseconds in a line such as `0m0.004s 0m0.011s`.
fn millis_of_times(line: &str) -> f64 {
    let seconds = |word: &str| {
        let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    };
    line.split_whitespace().filter_map(seconds).sum::<f64>() * 1e3
}

/// What of the first request is the same in every session.
pub(crate) fn first_bytes(bench: &Bench) -> io::Result<Row> {
    let mut row = Row::new("first request: bytes of system prompt and tools", "kB", Some(20.0));
    for program in bench.agents() {
        bench.model.play(one_answer());
        let mut command = program.task(&bench.small, &bench.model.address(), Shown::Answer);
        bench.checked(program, measure::run(&mut command)?)?;
        let body: Value = serde_json::from_slice(&bench.model.notes().first).unwrap_or_default();
        let bytes = body["system"].to_string().len() + body["tools"].to_string().len();
        row.add(program.name(), &[bytes as f64 / 1e3]);
    }
    Ok(row)
}

const INITIALIZE: &str =
    r#"{"type":"control_request","request_id":"r","request":{"subtype":"initialize","hooks":null}}"#;

/// A session that waits, and nobody asks it anything.
pub(crate) fn idle(bench: &Bench) -> io::Result<Vec<Row>> {
    let minutes = bench.idle.as_secs_f64() / 60.0;
    let mut cpu = Row::new(format!("idle for {minutes:.1} min: CPU"), "s", Some(0.1));
    let mut wakes = Row::new(format!("idle for {minutes:.1} min: wake-ups"), "per s", Some(2.0));
    let mut memory = Row::new("memory before the first prompt", "MB", Some(15.0));
    for program in bench.agents() {
        let Some(mut command) = program.waiting(&bench.small, &bench.model.address()) else { continue };
        bench.model.play(one_answer());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(stdin, "{INITIALIZE}")?;
        let mut lines = BufReader::new(child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?).lines();
        if !lines.by_ref().map_while(Result::ok).any(|line| line.contains("control_response")) {
            measure::end(child);
            return Err(io::Error::other(format!("{} did not answer to initialize", program.name())));
        }
        std::thread::sleep(Duration::from_millis(300));
        memory.add(program.name(), &[measure::resident_kb(child.id()).unwrap_or(0) as f64 / 1e3]);
        let (cpu_before, wakes_before) = (measure::cpu_of(child.id()), measure::wakes_of(child.id()));
        std::thread::sleep(bench.idle);
        let took = measure::cpu_of(child.id()).saturating_sub(cpu_before);
        let woken = measure::wakes_of(child.id()).saturating_sub(wakes_before);
        cpu.add(program.name(), &[took.as_secs_f64()]);
        wakes.add(program.name(), &[woken as f64 / bench.idle.as_secs_f64()]);
        measure::end(child);
    }
    Ok(vec![memory, cpu, wakes])
}

/// Goes on with a session of a gigabyte, to its first request.
pub(crate) fn resume(bench: &Bench) -> io::Result<Vec<Row>> {
    let Some(pelton @ Program::Pelton(_)) = bench.programs.get(1) else { return Ok(Vec::new()) };
    let session = Uuid::from_u128(0x1234_5678_1234_4234_8234_1234_5678_9abc);
    let project = bench.small.project.canonicalize()?;
    let file = folder_of_sessions(bench, pelton)?.join(format!("{session}.jsonl"));
    let (mut times, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds.clamp(1, 5) {
        // Each round has a file of its own: the one before has grown.
        write_transcript(&file, session, &project)?;
        // What was just written is on the disk: the first sync of the session would wait for a gigabyte of ours.
        fs::File::open(&file)?.sync_all()?;
        bench.model.play(one_answer());
        let mut command = pelton.task(&bench.small, &bench.model.address(), Shown::Answer);
        command.arg("--resume").arg(session.to_string());
        let (ran, weight) = measure::run_weighed(&mut command)?;
        let ran = bench.checked(pelton, ran)?;
        let came: Option<Instant> = bench.model.notes().came.first().map(|came| came.whole);
        times.push(millis(came.map(|came| came.duration_since(ran.began)).unwrap_or_default()));
        memory.push(weight.resident_kb as f64 / 1e3);
        fs::remove_file(&file)?;
    }
    Ok(vec![
        Row::new("resume of 1 GB with 300 compactions → first request", "ms", Some(300.0))
            .with(pelton.name(), &times),
        Row::new("the same, peak memory", "MB", Some(80.0)).with(pelton.name(), &memory),
    ])
}

/// Where the sessions of the small directory are recorded: a run shows it.
fn folder_of_sessions(bench: &Bench, pelton: &Program) -> io::Result<PathBuf> {
    bench.model.play(one_answer());
    let mut command = pelton.task(&bench.small, &bench.model.address(), Shown::Answer);
    bench.checked(pelton, measure::run(&mut command)?)?;
    let folder = fs::read_dir(bench.small.home.join("config/projects"))?.next();
    folder.ok_or_else(|| io::Error::other("no session was recorded"))?.map(|folder| folder.path())
}

/// How long it takes to go on with sessions of several lengths.
pub(crate) fn resume_time(bench: &Bench, session: &str) -> io::Result<f64> {
    let Some(pelton) = bench.programs.get(1) else { return Ok(0.0) };
    bench.model.play(one_answer());
    let mut command = pelton.task(&bench.small, &bench.model.address(), Shown::Answer);
    command.args(["--resume", session]);
    let ran = bench.checked(pelton, measure::run(&mut command)?)?;
    let came = bench.model.notes().came.first().map(|came| came.whole);
    Ok(millis(came.map(|came| came.duration_since(ran.began)).unwrap_or_default()))
}

/// The session that a run told of.
pub(crate) fn session_of(stdout: &[u8]) -> Option<String> {
    let first = stdout.split(|byte| *byte == b'\n').next()?;
    let init: Value = serde_json::from_slice(first).unwrap_or_else(|_| json!({}));
    init["session_id"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_says_of_its_children_is_read() {
        assert!((millis_of_times("0m0.004s 0m0.011s") - 15.0).abs() < 1e-6);
        assert!((millis_of_times("1m1.000s 0m0.000s") - 61_000.0).abs() < 1e-6);
    }
}
