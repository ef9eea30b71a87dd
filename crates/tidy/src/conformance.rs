//! Rows of the specification against the tests that name them.
//!
//! A row is a line ``- `loop_T3` sentence`` in one of [`SPECIFICATIONS`]. A test covers it by carrying the id in its
//! name, in whatever language. The page [`PAGE`] is written from both and never by hand: what no test names is
//! open, and says so.

mod tests_found;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

pub use tests_found::{TestCase, tests_in};

use crate::{Finding, Tree};

/// The page this module writes.
pub const PAGE: &str = "docs/conformance.md";

/// What came of the last run of `scripts/mutants`; the page takes it over as it is.
pub const MUTANTS: &str = "docs/mutants.md";

/// How to write it again.
pub const HOW_TO_WRITE: &str = "cargo run -p tidy -- --write";

/// Where the rows are kept: the prefix of their ids and the file.
pub const SPECIFICATIONS: &[(&str, &str)] =
    &[("loop", "docs/spec/loop.md"), ("pit", "docs/spec/pitfalls.md")];

/// One row of a specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// `loop_T3`, `pit_C1`.
    pub id: String,
    /// What holds, in one sentence.
    pub sentence: String,
    /// Line in its file.
    pub line: usize,
}

/// One specification file: a title and rows under headings.
#[derive(Debug, Default)]
pub struct Specification {
    /// Its first heading.
    pub title: String,
    /// Headings with the rows below them.
    pub sections: Vec<(String, Vec<Row>)>,
    /// Lines that look like rows and are none.
    pub malformed: Vec<usize>,
}

impl Specification {
    /// Reads the rows whose ids start with `prefix`.
    pub fn read(prefix: &str, text: &str) -> Self {
        let mut specification = Self::default();
        for (line, row) in text.lines().enumerate().map(|(at, row)| (at + 1, row)) {
            if let Some(title) = row.strip_prefix("# ") {
                title.clone_into(&mut specification.title);
            } else if let Some(heading) = row.strip_prefix("## ") {
                specification.sections.push((heading.to_owned(), Vec::new()));
            } else if let Some(rest) = row.strip_prefix("- ") {
                match (parse_row(prefix, rest), specification.sections.last_mut()) {
                    (Some((id, sentence)), Some((_, rows))) => rows.push(Row { id, sentence, line }),
                    _ => specification.malformed.push(line),
                }
            }
        }
        specification
    }

    /// All rows in order.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.sections.iter().flat_map(|(_, rows)| rows)
    }
}

/// Rows are well formed and no id is given twice.
pub fn well_formed(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for (path, specification) in specifications(tree) {
        for line in &specification.malformed {
            findings.push(Finding::at(path, *line, "not a row: write ``- `id` sentence.`` below a heading"));
        }
        for row in specification.rows().filter(|row| !seen.insert(row.id.clone())) {
            findings.push(Finding::at(path, row.line, format!("`{}` is there twice", row.id)));
        }
    }
    findings
}

/// No test names a row that does not exist.
pub fn unknown_ids(tree: &Tree) -> Vec<Finding> {
    let known: BTreeSet<String> = specifications(tree)
        .iter()
        .flat_map(|(_, specification)| specification.rows().map(|row| row.id.clone()))
        .collect();
    let mut findings = Vec::new();
    for test in tests_in(tree) {
        for id in ids_in(&test.name).into_iter().filter(|id| !known.contains(id)) {
            findings.push(Finding::at(
                &test.path,
                test.line,
                format!("`{}` names `{id}`: no such row", test.name),
            ));
        }
    }
    findings
}

/// The page says what the tests say.
pub fn stale(tree: &Tree) -> Vec<Finding> {
    if tree.text(PAGE) == Some(page(tree).as_str()) {
        return Vec::new();
    }
    vec![Finding::about(PAGE, format!("not what the tests say: run `{HOW_TO_WRITE}`"))]
}

/// The page as it should be.
pub fn page(tree: &Tree) -> String {
    let specifications = specifications(tree);
    let mut covering: BTreeMap<String, BTreeSet<TestCase>> = BTreeMap::new();
    for test in tests_in(tree) {
        for id in ids_in(&test.name) {
            covering.entry(id).or_default().insert(test.clone());
        }
    }
    let count = |specification: &Specification| {
        let rows = specification.rows().count();
        (rows, specification.rows().filter(|row| covering.contains_key(&row.id)).count())
    };
    let (rows, tested) = specifications
        .iter()
        .map(|(_, specification)| count(specification))
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));

    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "# Conformance\n");
    let _ = writeln!(
        out,
        "**{tested} of {rows} rows have a test that names them; {} are open.**\n",
        rows - tested
    );
    let _ = writeln!(
        out,
        "Every row of the specification is listed here with the tests that carry its id in their names. This page is\n\
         written from the test tree by `{HOW_TO_WRITE}`; a test fails when it is stale.\n"
    );
    let _ = writeln!(out, "| specification | rows | tested | open |\n|---|---:|---:|---:|");
    for (path, specification) in &specifications {
        let (rows, tested) = count(specification);
        let link = path.strip_prefix("docs/").unwrap_or(path);
        let _ =
            writeln!(out, "| [{}]({link}) | {rows} | {tested} | {} |", specification.title, rows - tested);
    }
    for (_, specification) in &specifications {
        let _ = writeln!(out, "\n## {}", specification.title);
        for (heading, rows) in specification.sections.iter().filter(|(_, rows)| !rows.is_empty()) {
            let _ = writeln!(out, "\n### {heading}\n\n| row | what holds | tests |\n|---|---|---|");
            for row in rows {
                let sentence = row.sentence.replace('|', "\\|");
                let tests = covering.get(&row.id).map_or_else(|| "**open**".to_owned(), links);
                let _ = writeln!(out, "| `{}` | {sentence} | {tests} |", row.id);
            }
        }
    }
    if let Some(mutants) = tree.text(MUTANTS) {
        let _ = writeln!(out, "\n## Do the tests notice?\n\n{}", mutants.trim_end());
    }
    out
}

/// The ids a name carries. An id ends where its digits end: `loop_T10` does not carry `loop_T1`.
pub fn ids_in(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (prefix, _) in SPECIFICATIONS {
        for (at, _) in name.match_indices(&format!("{prefix}_")) {
            let border_before = name[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric());
            let rest = &name[at + prefix.len() + 1..];
            let length = id_length(rest);
            if border_before && length > 0 {
                found.push(format!("{prefix}_{}", &rest[..length]));
            }
        }
    }
    found
}

/// Length of the letter-and-number at the start of `rest`; zero when there is none or it goes on.
fn id_length(rest: &str) -> usize {
    if !rest.starts_with(|c: char| c.is_ascii_uppercase()) {
        return 0;
    }
    let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
    let goes_on = rest[1 + digits..].starts_with(char::is_alphanumeric);
    if digits == 0 || goes_on { 0 } else { 1 + digits }
}

fn specifications(tree: &Tree) -> Vec<(&'static str, Specification)> {
    SPECIFICATIONS
        .iter()
        .filter_map(|(prefix, path)| Some((*path, Specification::read(prefix, tree.text(path)?))))
        .collect()
}

/// The id and sentence of a row less its dash.
fn parse_row(prefix: &str, rest: &str) -> Option<(String, String)> {
    let (id, sentence) = rest.strip_prefix('`')?.split_once("` ")?;
    let whole = ids_in(id).first().is_some_and(|found| found == id) && id.starts_with(prefix);
    let sentence = sentence.trim();
    (whole && sentence.ends_with('.')).then(|| (id.to_owned(), sentence.to_owned()))
}

fn links(tests: &BTreeSet<TestCase>) -> String {
    let one = |test: &TestCase| {
        format!("[`{}`](../{})", test.name.replace('|', "\\|").replace('`', "'"), test.path)
    };
    tests.iter().map(one).collect::<Vec<_>>().join("<br>")
}

#[cfg(test)]
mod tests;
