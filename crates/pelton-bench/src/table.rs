//! What was measured, as a table for people and as JSON for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// Figures of one program in one row.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub program: String,
    pub median: f64,
    pub least: f64,
}

impl Figure {
    /// Of measurements, at least one.
    pub fn of(program: &str, measured: &[f64]) -> Option<Self> {
        let mut sorted = measured.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (median, least) = (*sorted.get(sorted.len() / 2)?, *sorted.first()?);
        Some(Self { program: program.to_owned(), median, least })
    }
}

/// One row of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub what: String,
    pub unit: &'static str,
    /// What Pelton must not be above.
    pub at_most: Option<f64>,
    pub figures: Vec<Figure>,
}

pub(crate) const LIMIT: &str = "limit";
pub(crate) const PELTON: &str = "pelton";

impl Row {
    pub fn new(what: impl Into<String>, unit: &'static str, at_most: Option<f64>) -> Self {
        Self { what: what.into(), unit, at_most, figures: Vec::new() }
    }

    pub fn add(&mut self, program: &str, measured: &[f64]) {
        self.figures.extend(Figure::of(program, measured));
    }

    pub fn with(mut self, program: &str, measured: &[f64]) -> Self {
        self.add(program, measured);
        self
    }

    pub fn of(&self, program: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.program == program)
    }

    /// How many times the limit Pelton is.
    pub fn ratio(&self) -> Option<f64> {
        let (limit, ours) = (self.of(LIMIT)?.median, self.of(PELTON)?.median);
        (limit > 0.0).then(|| ours / limit)
    }

    /// Whether Pelton is within what it must reach.
    pub fn holds(&self) -> Option<bool> {
        Some(self.of(PELTON)?.median <= self.at_most?)
    }
}

/// A value that changes with the length of a history.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub what: String,
    pub unit: &'static str,
    /// Turns, and the value there.
    pub points: Vec<(f64, f64)>,
}

/// All that was measured, and how.
pub(crate) struct Results {
    pub how: Vec<(String, String)>,
    pub rows: Vec<Row>,
    pub curves: Vec<Curve>,
}

impl Results {
    /// The programs, in the order they are shown.
    pub fn programs(&self) -> Vec<String> {
        let mut names: Vec<String> = vec![LIMIT.to_owned(), PELTON.to_owned()];
        for figure in self.rows.iter().flat_map(|row| &row.figures) {
            if !names.contains(&figure.program) {
                names.push(figure.program.clone());
            }
        }
        names
    }

    pub fn markdown(&self) -> String {
        let programs = self.programs();
        let mut out = String::from("Medians, the least in brackets.\n\n| | ");
        out += &programs.join(" | ");
        out += " | times the limit | to reach |\n|---|";
        out += &"---|".repeat(programs.len() + 2);
        out.push('\n');
        for row in &self.rows {
            let cells: Vec<String> = programs.iter().map(|program| cell(row, program)).collect();
            let ratio = row.ratio().map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.1}"));
            let reach = match (row.at_most, row.holds()) {
                (Some(most), Some(holds)) => {
                    format!("≤ {} {}: {}", shown(most), row.unit, if holds { "yes" } else { "**no**" })
                }
                (Some(most), None) => format!("≤ {} {}: not measured", shown(most), row.unit),
                (None, _) => "–".to_owned(),
            };
            // Writing to a string does not fail.
            let _ =
                writeln!(out, "| {} ({}) | {} | {ratio} | {reach} |", row.what, row.unit, cells.join(" | "));
        }
        out += "\nHow it was measured:\n\n";
        for (name, value) in &self.how {
            let _ = writeln!(out, "- {name}: {value}");
        }
        out
    }

    pub fn json(&self) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let figures: serde_json::Map<String, Value> = row
                    .figures
                    .iter()
                    .map(|figure| {
                        (figure.program.clone(), json!({"median": figure.median, "least": figure.least}))
                    })
                    .collect();
                json!({"what": row.what, "unit": row.unit, "at_most": row.at_most, "figures": figures,
                    "times_the_limit": row.ratio(), "holds": row.holds()})
            })
            .collect();
        let curves: Vec<Value> = self
            .curves
            .iter()
            .map(|curve| json!({"what": curve.what, "unit": curve.unit, "points": curve.points}))
            .collect();
        let how: serde_json::Map<String, Value> =
            self.how.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        json!({"how": how, "rows": rows, "curves": curves})
    }
}

fn cell(row: &Row, program: &str) -> String {
    match row.of(program) {
        Some(figure) if (figure.median - figure.least).abs() < f64::EPSILON => shown(figure.median),
        Some(figure) => format!("{} ({})", shown(figure.median), shown(figure.least)),
        None => "–".to_owned(),
    }
}

/// With as many digits as mean something.
pub(crate) fn shown(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        size if size > 0.0 => format!("{value:.3}"),
        _ => "0".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results() -> Results {
        let row = Row::new("spawn to first request", "ms", Some(10.0))
            .with(LIMIT, &[2.0, 1.5, 9.0])
            .with(PELTON, &[12.0, 11.0, 14.0]);
        let unmeasured = Row::new("idle", "s", Some(0.1));
        let how = vec![("cores".to_owned(), "2".to_owned())];
        Results { how, rows: vec![row, unmeasured], curves: Vec::new() }
    }

    #[test]
    fn a_row_tells_median_least_ratio_and_whether_it_holds() {
        let text = results().markdown();
        assert!(
            text.contains(
                "| spawn to first request (ms) | 2.00 (1.50) | 12.0 (11.0) | 6.0 | ≤ 10.0 ms: **no** |"
            ),
            "{text}"
        );
        assert!(text.contains("| idle (s) | – | – | – | ≤ 0.100 s: not measured |"), "{text}");
    }

    #[test]
    fn programs_read_the_same_as_people() {
        let json = results().json();
        assert_eq!(json["rows"][0]["figures"]["pelton"]["median"], 12.0);
        assert_eq!(json["rows"][0]["holds"], false);
        assert_eq!(json["rows"][1]["holds"], Value::Null);
    }
}
