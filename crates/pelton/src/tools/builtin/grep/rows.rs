//! What the search engine reports about one file, as rows of the answer.

use std::io;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};

use super::files::Judged;
use crate::tools::text::cut;

/// What is wanted of each file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub before: usize,
    pub after: usize,
    pub numbers: bool,
    pub only_matching: bool,
    /// Characters of one row.
    pub chars_max: usize,
    /// Rows of one file.
    pub rows_max: usize,
}

/// One row of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Row {
    Match {
        line: u64,
        text: String,
    },
    Context {
        line: u64,
        text: String,
    },
    /// Lines were left out here.
    Gap,
}

impl Row {
    /// The row as ripgrep prints it.
    pub fn text(&self, name: Option<&str>, numbers: bool) -> String {
        let (line, text, mark) = match self {
            Row::Match { line, text } => (line, text, ':'),
            Row::Context { line, text } => (line, text, '-'),
            Row::Gap => return "--".to_owned(),
        };
        let name = name.map_or(String::new(), |name| format!("{name}{mark}"));
        let number = if numbers { format!("{line}{mark}") } else { String::new() };
        format!("{name}{number}{text}")
    }
}

/// Collects rows.
pub(super) struct Rows<'a> {
    matcher: &'a RegexMatcher,
    wanted: Wanted,
    pub rows: Vec<Row>,
    binary: bool,
}

impl<'a> Rows<'a> {
    pub fn new(matcher: &'a RegexMatcher, wanted: Wanted) -> Self {
        Self { matcher, wanted, rows: Vec::new(), binary: false }
    }

    fn row_text(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        let (shown, more) = cut(text.trim_end_matches(['\n', '\r']), self.wanted.chars_max);
        if more > 0 { format!("{shown} [… {more} more characters]") } else { shown.to_owned() }
    }

    fn push_lines(&mut self, first: u64, bytes: &[u8], row: impl Fn(u64, String) -> Row) {
        for (line, bytes) in (first..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
            let text = self.row_text(bytes);
            self.rows.push(row(line, text));
        }
    }

    fn goes_on(&self) -> bool {
        self.rows.len() < self.wanted.rows_max
    }
}

impl Sink for Rows<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let first = found.line_number().unwrap_or(0);
        let bytes = found.bytes();
        if !self.wanted.only_matching {
            self.push_lines(first, bytes, |line, text| Row::Match { line, text });
            return Ok(self.goes_on());
        }
        let mut parts = Vec::new();
        self.matcher
            .find_iter(bytes, |part| {
                parts.push(part);
                parts.len() < self.wanted.rows_max
            })
            .map_err(io::Error::other)?;
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let line = first + bytes[..part.start()].iter().filter(|byte| **byte == b'\n').count() as u64;
            self.push_lines(line, &bytes[part], |line, text| Row::Match { line, text });
        }
        Ok(self.goes_on())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let first = context.line_number().unwrap_or(0);
        self.push_lines(first, context.bytes(), |line, text| Row::Context { line, text });
        Ok(self.goes_on())
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.rows.push(Row::Gap);
        Ok(self.goes_on())
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

impl Judged for Rows<'_> {
    fn is_binary(&self) -> bool {
        self.binary
    }
}

/// Counts matching lines, up to as many as are of interest.
pub(super) struct Tally {
    pub lines: u64,
    lines_max: u64,
    binary: bool,
}

impl Tally {
    pub fn up_to(lines_max: u64) -> Self {
        Self { lines: 0, lines_max, binary: false }
    }
}

impl Sink for Tally {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, _: &SinkMatch<'_>) -> io::Result<bool> {
        self.lines += 1;
        Ok(self.lines < self.lines_max)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

impl Judged for Tally {
    fn is_binary(&self) -> bool {
        self.binary
    }
}
