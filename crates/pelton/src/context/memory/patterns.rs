//! The files a rule is about. Pure.

use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::limits::{PATTERN_EXPANDED_BYTES_MAX, PATTERN_EXPANSIONS_MAX};

/// Patterns as `.gitignore` has them, relative to a directory.
#[derive(Debug, Clone)]
pub struct Patterns {
    base: PathBuf,
    files: Gitignore,
}

impl Patterns {
    /// A pattern that is none matches nothing; so do all of them when their braces mean too much.
    pub fn new<'a>(base: &Path, patterns: impl IntoIterator<Item = &'a str>) -> Self {
        let mut builder = GitignoreBuilder::new(base);
        let mut room = Room { patterns: PATTERN_EXPANSIONS_MAX, bytes: PATTERN_EXPANDED_BYTES_MAX };
        for pattern in patterns {
            let pattern = pattern.trim();
            let Some(expanded) = expand(pattern, &mut room) else {
                return Self { base: base.to_owned(), files: Gitignore::empty() };
            };
            for pattern in expanded.iter().filter(|pattern| globset::Glob::new(pattern).is_ok()) {
                // `#` begins a comment there and a name here.
                let line = if pattern.starts_with('#') { format!("\\{pattern}") } else { pattern.clone() };
                // What is no pattern was left out above.
                let _ = builder.add_line(None, &line);
            }
        }
        let files = builder.build().unwrap_or_else(|_| Gitignore::empty());
        Self { base: base.to_owned(), files }
    }

    /// Whether a file is meant. Nothing outside of the directory is.
    pub fn matches(&self, file: &Path) -> bool {
        let Ok(relative) = file.strip_prefix(&self.base) else { return false };
        self.files.matched_path_or_any_parents(relative, false).is_ignore()
    }
}

/// What expansions may still come to.
struct Room {
    patterns: usize,
    bytes: usize,
}

/// Every text that the braces of a pattern mean. `None` if there are too many.
fn expand(pattern: &str, room: &mut Room) -> Option<Vec<String>> {
    let mut done = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(pattern) = open.pop() {
        let Some((before, choices, after)) = first_braces(&pattern) else {
            room.patterns = room.patterns.checked_sub(1)?;
            room.bytes = room.bytes.checked_sub(pattern.len())?;
            done.push(pattern);
            continue;
        };
        // What is still to be looked at never takes more than what may come of it.
        let pending = open.len() + choices.len();
        if pending > PATTERN_EXPANSIONS_MAX
            || pending.saturating_mul(pattern.len()) > PATTERN_EXPANDED_BYTES_MAX
        {
            return None;
        }
        open.extend(choices.iter().rev().map(|choice| format!("{before}{choice}{after}")));
    }
    Some(done)
}

/// The first `{a,b}` of a pattern: what stands before it, what it offers, what stands behind.
fn first_braces(pattern: &str) -> Option<(&str, Vec<&str>, &str)> {
    let bytes = pattern.as_bytes();
    let mut search = 0;
    while let Some(start) = bytes[search..].iter().position(|byte| *byte == b'{').map(|at| at + search) {
        search = start + 1;
        if start > 0 && bytes[start - 1] == b'\\' {
            continue;
        }
        let (mut depth, mut from, mut choices) = (1_usize, start + 1, Vec::new());
        for (at, byte) in bytes.iter().enumerate().skip(start + 1) {
            match byte {
                b'{' => depth += 1,
                b',' if depth == 1 => {
                    choices.push(&pattern[from..at]);
                    from = at + 1;
                }
                b'}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                choices.push(&pattern[from..at]);
                return Some((&pattern[..start], choices, &pattern[at + 1..]));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_are_those_of_gitignore() {
        let check = |pattern: &str, file: &str, expected: bool| {
            let patterns = Patterns::new(Path::new("/p"), [pattern]);
            assert_eq!(patterns.matches(&Path::new("/p").join(file)), expected, "{pattern} {file}");
        };
        check("src/**/*.ts", "src/a.ts", true);
        check("src/**/*.ts", "src/a/b/c.ts", true);
        check("src/**/*.ts", "lib/a.ts", false);
        check("**/*.{ts,tsx}", "a/b.tsx", true);
        check("**/*.{ts,tsx}", "a/b.js", false);
        check("*.md", "a/b/c.md", true);
        check("/*.md", "a/c.md", false);
        check("src", "src/deep/file.rs", true);
        check("{src,lib}/**/{a,b}.rs", "lib/x/b.rs", true);
        check("{src,lib}/**/{a,b}.rs", "lib/x/c.rs", false);
        check("#x", "#x", true);
        check("[", "[", false);
        check("a[", "a[", false);
        check("", "a", false);
        check("**", "a/b", true);
        assert!(!Patterns::new(Path::new("/p"), ["**"]).matches(Path::new("/q/a")));
    }

    #[test]
    fn braces_that_mean_too_much_match_nothing() {
        let many = "{a,b}".repeat(10);
        assert!(!Patterns::new(Path::new("/p"), [many.as_str(), "a.rs"]).matches(Path::new("/p/a.rs")));
        let few = "{a,b}".repeat(9);
        assert!(Patterns::new(Path::new("/p"), [few.as_str()]).matches(Path::new("/p/aaaaabbbb")));
        let endless = "{a,b}".repeat(100_000);
        assert!(!Patterns::new(Path::new("/p"), [endless.as_str()]).matches(Path::new("/p/a")));
        let long = format!("{{a,b}}{}", "x".repeat(3 * 1024 * 1024));
        assert!(!Patterns::new(Path::new("/p"), [long.as_str()]).matches(Path::new("/p/a")));
    }

    proptest! {
        #[test]
        fn any_pattern_is_read(pattern in r"[\{\},a\*\[\]\\!/\.]{0,30}", file in "[a-z/]{0,10}") {
            let _ = Patterns::new(Path::new("/p"), [pattern.as_str()]).matches(&Path::new("/p").join(file));
        }

        #[test]
        fn expansions_multiply(sizes in prop::collection::vec(1_usize..4, 0..5)) {
            let group = |size: &usize| format!("{{{}}}", vec!["x"; *size].join(","));
            let pattern: String = sizes.iter().map(group).collect();
            let mut room = Room { patterns: PATTERN_EXPANSIONS_MAX, bytes: PATTERN_EXPANDED_BYTES_MAX };
            let expanded = expand(&pattern, &mut room).unwrap();
            prop_assert_eq!(expanded.len(), sizes.iter().product::<usize>());
        }
    }
}
