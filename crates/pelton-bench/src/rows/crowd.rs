//! Many sessions in one process, and what of a turn is waiting for the disk.

use std::fs;
use std::io;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use pelton_bench::events::{call_block, closing, opening};
use serde_json::Value;

use super::{Bench, millis};
use crate::measure::{self, Scale, Weight};
use crate::model::{Piece, Script, answer};
use crate::programs::Program;
use crate::table::{LIMIT, PELTON, Row};

const TURNS: usize = 20;
const MODEL_LATENCY: Duration = Duration::from_millis(50);
/// How often the memory of a crowd is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const PADDING_BYTES: &str = "20000";

/// Turns that read a file, after a while.
fn slow_reads(bench: &Bench, latency: Duration, turns: usize) -> Script {
    let files: Vec<_> = (0..turns).map(|turn| bench.small.small_file(turn)).collect();
    let pelton = Program::Pelton(Default::default());
    Arc::new(move |results| {
        let said = match files.get(results) {
            Some(file) => {
                let (tool, input) = pelton.read(file);
                Piece::Send((opening() + &call_block(0, results, tool, &input) + &closing("tool_use")).into())
            }
            None => answer("Done."),
        };
        if latency.is_zero() { vec![said] } else { vec![Piece::Wait(latency), said] }
    })
}

/// Memory and CPU of one session among many.
pub(crate) fn sessions(bench: &Bench) -> io::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for many in &bench.crowds {
        let judged = *many == 1_000;
        let mut memory =
            Row::new(format!("{many} sessions in one process: memory each"), "MB", judged.then_some(0.5));
        let mut cpu =
            Row::new(format!("{many} sessions in one process: CPU each"), "ms", judged.then_some(10.0));
        let address = bench.model.address();
        let mut limit = match &bench.programs[0] {
            Program::Bare(file) => Command::new(file),
            _ => return Err(io::Error::other("the limit comes first")),
        };
        limit.args([address.as_str(), PADDING_BYTES, "--sessions"]).arg(many.to_string());
        let mut ours = Command::new(&bench.crowd);
        ours.arg(&address).arg(&bench.small.project).arg("sessions").arg(many.to_string());
        for (name, command) in [(LIMIT, limit), (PELTON, ours)] {
            bench.model.play(slow_reads(bench, MODEL_LATENCY, TURNS));
            let (took, weight) = crowd(command)?;
            let each = *many as f64;
            memory.add(name, &[weight.proportional_kb as f64 / 1e3 / each]);
            cpu.add(name, &[millis(took) / each]);
            let asked = bench.model.notes().came.len();
            if asked < many * (TURNS + 1) {
                return Err(io::Error::other(format!("{name}: {asked} requests of {many} sessions")));
            }
        }
        fs::remove_dir_all(bench.small.project.join("config"))?;
        rows.extend([memory, cpu]);
    }
    Ok(rows)
}

fn crowd(mut command: Command) -> io::Result<(Duration, Weight)> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let scale = Scale::every(child.id(), LOOK_EVERY);
    let before = measure::of_children();
    let output = child.wait_with_output()?;
    let took = measure::of_children().saturating_sub(before);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    if !output.status.success() || report["failed"] != 0 {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(format!("a crowd failed: {report} {said}")));
    }
    Ok((took, scale.read()))
}

/// The waits for the disk in a session of calls, beside bare ones.
pub(crate) fn disk(bench: &Bench) -> io::Result<Vec<Row>> {
    bench.model.play(slow_reads(bench, Duration::ZERO, TURNS));
    let ran = Command::new(&bench.crowd)
        .arg(bench.model.address())
        .arg(&bench.small.project)
        .arg("synced")
        .stdin(Stdio::null())
        .output()?;
    let report: Value = serde_json::from_slice(&ran.stdout).unwrap_or_default();
    let times = |field: &str| -> Vec<f64> {
        let times = report[field].as_array().into_iter().flatten();
        times.filter_map(Value::as_f64).map(|micros| micros / 1e3).collect()
    };
    let (ours, bare) = (times("engine_us"), times("bare_us"));
    if ours.is_empty() {
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        return Err(io::Error::other(format!("no waits for the disk: {report} {said}")));
    }
    let sum = |times: &[f64]| [times.iter().sum::<f64>()];
    Ok(vec![
        Row::new("one wait for the disk, beside a bare write and fdatasync", "ms", None)
            .with(LIMIT, &bare)
            .with(PELTON, &ours),
        Row::new(format!("all {} of them in a session of {TURNS} turns", ours.len()), "ms", None)
            .with(LIMIT, &sum(&bare))
            .with(PELTON, &sum(&ours)),
    ])
}
