//! The rows of the table: what is run for each, and what of it counts.

pub(crate) mod crowd; // many sessions in one process, and waits for the disk
pub(crate) mod start; // from nothing to a first request
pub(crate) mod stream; // answers as they come
pub(crate) mod turns; // calls, and the requests that follow

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::measure::Ran;
use crate::model::Model;
use crate::places::Place;
use crate::programs::Program;
use crate::table::Row;

/// What all rows work with.
pub(crate) struct Bench {
    /// The limit first, then Pelton, then others.
    pub programs: Vec<Program>,
    /// The program that holds many sessions.
    pub crowd: PathBuf,
    pub model: Model,
    /// A small repository.
    pub tiny: Place,
    /// A directory with files for calls.
    pub small: Place,
    pub repository: Place,
    /// How often each short run is made.
    pub rounds: usize,
    /// How long an idle session is watched.
    pub idle: Duration,
    /// Turns of a session that shows what grows.
    pub long_turns: usize,
    /// Sessions at once.
    pub crowds: Vec<usize>,
    /// How often a row of many turns or deltas is run.
    pub long_rounds: usize,
}

impl Bench {
    /// Everybody but the limit.
    pub fn agents(&self) -> impl Iterator<Item = &Program> {
        self.programs.iter().filter(|program| !matches!(program, Program::Bare(_)))
    }

    /// A figure of a run that failed would be no figure.
    pub fn checked(&self, program: &Program, ran: Ran) -> io::Result<Ran> {
        if ran.status.success() && !self.model.notes().came.is_empty() {
            return Ok(ran);
        }
        let said = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            text.chars().rev().take(600).collect::<Vec<_>>().into_iter().rev().collect::<String>()
        };
        Err(io::Error::other(format!(
            "{} failed ({}): {} {}",
            program.name(),
            ran.status,
            said(&ran.stdout),
            said(&ran.stderr)
        )))
    }
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The value in the middle.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// Puts what was measured of each program into its row.
fn spread(mut row: Row, measured: BTreeMap<&str, Vec<f64>>) -> Row {
    for (program, values) in measured {
        row.add(program, &values);
    }
    row
}
