//! Z2: which calls are likely to come next, from what the last ones brought. Pure.

use serde_json::{Value, json};

/// What a call of the last answer brought.
#[derive(Debug, Clone, Copy)]
pub struct Past<'a> {
    /// The tool.
    pub tool: &'a str,
    /// The structured side of its answer.
    pub detail: &'a Value,
}

/// A call that is likely to come.
#[derive(Debug, Clone, PartialEq)]
pub struct Predicted {
    /// The tool.
    pub tool: &'static str,
    /// Its input.
    pub input: Value,
}

/// After a Glob that found more than this, nobody knows which files are meant.
const GLOB_FILES_MAX: usize = 3;

/// The likely next calls, the likeliest first, each once. Whoever searches reads what was found.
pub fn likely_next(results: &[Past<'_>], calls_max: usize) -> Vec<Predicted> {
    let mut files: Vec<&str> = Vec::new();
    for past in results {
        for file in found_by(past) {
            if files.len() < calls_max && !files.contains(&file) {
                files.push(file);
            }
        }
    }
    files.into_iter().map(|file| Predicted { tool: "Read", input: json!({"file_path": file}) }).collect()
}

/// Whether what this tool brings tells anything about the next calls.
pub fn is_telling(tool: &str) -> bool {
    matches!(tool, "Grep" | "Glob")
}

/// The files a search found, in the order of its answer.
fn found_by<'a>(past: &Past<'a>) -> Vec<&'a str> {
    let listed = || -> Vec<&'a str> {
        let names = past.detail.get("filenames").and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str).collect()
    };
    match past.tool {
        "Grep" => {
            let rows = past.detail.get("content").and_then(Value::as_str).unwrap_or_default().lines();
            listed().into_iter().chain(rows.filter_map(file_of_row)).collect()
        }
        "Glob" => Some(listed()).filter(|files| files.len() <= GLOB_FILES_MAX).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// The file in a row such as `src/main.rs:12:fn main() {`.
fn file_of_row(row: &str) -> Option<&str> {
    let (file, rest) = row.split_once(':')?;
    let digits = rest.split(':').next()?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !file.is_empty()).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn predicted(results: &[(&str, Value)], calls_max: usize) -> Vec<String> {
        let past: Vec<Past<'_>> = results.iter().map(|(tool, detail)| Past { tool, detail }).collect();
        let calls = likely_next(&past, calls_max);
        assert!(calls.iter().all(|call| call.tool == "Read"));
        calls.iter().map(|call| call.input["file_path"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn what_was_found_is_read_next() {
        let listed = json!({"mode": "files_with_matches", "filenames": ["a.rs", "b.rs", "a.rs"]});
        let rows = json!({"mode": "content", "filenames": [], "content": "c.rs:12:let x: u8;\nc.rs-13-}\n--\nb.rs:9:use x;"});
        assert_eq!(predicted(&[("Grep", listed.clone()), ("Grep", rows)], 9), ["a.rs", "b.rs", "c.rs"]);
        assert_eq!(predicted(&[("Grep", listed.clone())], 1), ["a.rs"]);
        assert_eq!(predicted(&[("Glob", listed.clone())], 9), ["a.rs", "b.rs"]);
        let many = json!({"filenames": ["a", "b", "c", "d"]});
        assert!(predicted(&[("Glob", many), ("Bash", listed), ("Grep", Value::Null)], 9).is_empty());
    }

    proptest! {
        #[test]
        fn whatever_was_found_the_number_is_bounded_and_none_comes_twice(
            names in prop::collection::vec("[a-c]{0,2}", 0..20),
            content in "([a-c]{1,2}:[0-9]{0,2}:x?\n){0,10}",
            calls_max in 0usize..6,
        ) {
            let files = predicted(&[("Grep", json!({"filenames": names, "content": content}))], calls_max);
            prop_assert!(files.len() <= calls_max);
            prop_assert!(files.iter().enumerate().all(|(at, file)| !files[..at].contains(file)));
        }
    }
}
