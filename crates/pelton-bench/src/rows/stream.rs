//! Answers as they come: what a delta takes, and how soon it is printed.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pelton_bench::events::{block_end, block_start, closing, delta, opening};

use super::{Bench, median, millis, spread};
use crate::measure;
use crate::model::{Piece, Script, answer};
use crate::programs::{Program, Shown};
use crate::table::Row;

const DELTAS: usize = 40_000;
/// Deltas that travel together: a network brings many at once when nobody waits between them.
const DELTAS_PER_WRITE: usize = 100;
const PACED_DELTAS: usize = 300;
const PACE: Duration = Duration::from_millis(2);

fn flood() -> Script {
    let words: Vec<String> = (0..DELTAS).map(|number| delta(0, &format!("word{number} "))).collect();
    let mut pieces = vec![Piece::Send((opening() + &block_start()).into())];
    pieces.extend(words.chunks(DELTAS_PER_WRITE).map(|some| Piece::Send(some.concat().into())));
    pieces.push(Piece::Send((block_end() + &closing("end_turn")).into()));
    Arc::new(move |_| pieces.clone())
}

/// CPU for each delta, printed and not printed.
pub(crate) fn cpu(bench: &Bench) -> io::Result<Vec<Row>> {
    let mut quiet: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut printed: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let flood = flood();
    for _ in 0..bench.long_rounds {
        for program in &bench.programs {
            for (shown, into) in [(Shown::Answer, &mut quiet), (Shown::Events, &mut printed)] {
                let run = |script: Script| {
                    bench.model.play(script);
                    let mut command = program.task(&bench.small, &bench.model.address(), shown);
                    bench.checked(program, measure::run(&mut command)?).map(|ran| ran.cpu)
                };
                let (none, all) = (run(Arc::new(|_| vec![answer("Hello.")]))?, run(Arc::clone(&flood))?);
                let each = millis(all.saturating_sub(none)) * 1e3 / DELTAS as f64;
                into.entry(program.name()).or_default().push(each);
            }
        }
    }
    Ok(vec![
        spread(Row::new("CPU per streamed delta, not printed", "µs", Some(1.5)), quiet),
        spread(Row::new("CPU per streamed delta, printed as stream_event", "µs", Some(4.0)), printed),
    ])
}

/// From the moment a delta is written by the model to the moment it can be read on standard output.
pub(crate) fn latency(bench: &Bench) -> io::Result<Row> {
    let mut row = Row::new("delta → stdout, p50", "ms", Some(0.15));
    let mut all: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for _ in 0..bench.long_rounds {
        for program in &bench.programs {
            all.entry(program.name()).or_default().push(paced(bench, program)?);
        }
    }
    for (program, values) in all {
        row.add(program, &values);
    }
    Ok(row)
}

fn paced(bench: &Bench, program: &Program) -> io::Result<f64> {
    let mut pieces = vec![Piece::Send((opening() + &block_start()).into())];
    for number in 0..PACED_DELTAS {
        let words = delta(0, &format!("w{number:04}w "));
        pieces.extend([Piece::Wait(PACE), Piece::Mark, Piece::Send(words.into())]);
    }
    pieces.push(Piece::Send((block_end() + &closing("end_turn")).into()));
    bench.model.play(Arc::new(move |_| pieces.clone()));
    let mut command = program.task(&bench.small, &bench.model.address(), Shown::Events);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?);
    let (mut line, mut read) = (String::new(), Vec::new());
    while lines.read_line(&mut line)? > 0 {
        let now = Instant::now();
        let wanted = format!("w{:04}w ", read.len());
        if line.contains(&wanted) && line.contains("text_delta") {
            read.push(now);
        }
        line.clear();
    }
    child.wait()?;
    let notes = bench.model.notes();
    if read.len() < PACED_DELTAS {
        return Err(io::Error::other(format!("{} printed {} deltas", program.name(), read.len())));
    }
    let times: Vec<f64> = notes
        .marks
        .iter()
        .zip(&read)
        .map(|(sent, read)| millis(read.saturating_duration_since(*sent)))
        .collect();
    Ok(median(&times))
}
