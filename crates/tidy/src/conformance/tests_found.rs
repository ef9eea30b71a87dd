//! The tests of the tree, by name: Rust, Python, and JavaScript or TypeScript.

use crate::Tree;
use crate::rust::Source;

/// A test that will be run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TestCase {
    /// Function name, or the title given to `test("…")`.
    pub name: String,
    /// File it stands in.
    pub path: String,
    /// Line it starts on.
    pub line: usize,
}

/// Every test of the tree. Those that are skipped prove nothing and are not listed.
pub fn tests_in(tree: &Tree) -> Vec<TestCase> {
    let mut found = Vec::new();
    for (path, text) in tree.files() {
        let names = match path.rsplit('.').next() {
            Some("rs") => rust(text),
            Some("py") => python(text),
            Some("js" | "mjs" | "ts" | "mts") => javascript(text),
            _ => continue,
        };
        found.extend(names.into_iter().map(|(name, line)| TestCase { name, path: path.to_owned(), line }));
    }
    found
}

fn rust(text: &str) -> Vec<(String, usize)> {
    Source::read(text).tests().into_iter().map(|token| (token.text.to_owned(), token.line)).collect()
}

fn python(text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut skipped = false;
    for (line, row) in text.lines().enumerate().map(|(at, row)| (at + 1, row.trim_start())) {
        if let Some(mark) = row.strip_prefix('@') {
            skipped |= mark.starts_with("pytest.mark.skip") || mark.starts_with("unittest.skip");
            continue;
        }
        let function = row.strip_prefix("async ").unwrap_or(row).strip_prefix("def ");
        if let Some((name, _)) = function.and_then(|rest| rest.split_once('(')).filter(|_| !skipped)
            && name.starts_with("test_")
        {
            found.push((name.trim().to_owned(), line));
        }
        // A decorator may span lines; only the definition it belongs to ends it.
        if function.is_some() {
            skipped = false;
        }
    }
    found
}

fn javascript(text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (line, row) in text.lines().enumerate().map(|(at, row)| (at + 1, row.trim_start())) {
        if row.starts_with("//") || row.starts_with('*') {
            continue;
        }
        for call in ["test(", "it("] {
            for (at, _) in row.match_indices(call) {
                let before = row[..at].strip_suffix("t.").unwrap_or(&row[..at]);
                let is_call =
                    before.chars().next_back().is_none_or(|c| !c.is_alphanumeric() && !"_.$".contains(c));
                let rest = row[at + call.len()..].trim_start();
                let Some(quote) = rest.chars().next().filter(|c| is_call && "\"'`".contains(*c)) else {
                    continue;
                };
                let title = rest[1..].split(quote).next().unwrap_or_default();
                if !row[at..].contains("skip: true") {
                    found.push((title.to_owned(), line));
                }
            }
        }
    }
    found
}
