//! Protected names deeper inside what is worked in.

use std::path::{Path, PathBuf};

use crate::limits::{NESTED_DEPTH_MAX, NESTED_ENTRIES_MAX, NESTED_FOUND_MAX};
use crate::policy::Look;
use crate::protected::{self, CONFIGURATION, CONFIGURATION_FREE, REPOSITORY};

/// Other people's code and what is built from it: large, and never worked in.
const PASSED_OVER: &[&str] = &["node_modules", "target", ".venv", "venv", "__pycache__", "vendor"];

/// Protected names below a directory, those directly in it excepted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Nested {
    /// Where they are.
    pub found: Vec<PathBuf>,
    /// There are no others that another look would find.
    pub is_all: bool,
}

/// Looks below a directory. Wide trees are looked at layer by layer, until enough names were seen.
pub(crate) fn nested(root: &Path, look: &impl Look) -> Nested {
    let mut found = Vec::new();
    let mut seen = 0;
    let mut layer = vec![root.to_path_buf()];
    for depth in 0..=NESTED_DEPTH_MAX {
        let mut next = Vec::new();
        for dir in layer {
            for (name, is_directory) in look.names_and_kinds(&dir) {
                seen += 1;
                if seen > NESTED_ENTRIES_MAX || found.len() >= NESTED_FOUND_MAX {
                    return Nested { found, is_all: false };
                }
                let is_protected = protected::find(&name).is_some();
                if is_protected && depth > 0 {
                    found.push(dir.join(&name));
                } else if !is_protected && is_directory && !is_passed_over(&name) {
                    next.push(dir.join(&name));
                }
            }
        }
        layer = next;
    }
    Nested { found, is_all: true }
}

/// Whether what is worked in reaches as far as this directory: `below` is its path from the top.
#[cfg(target_os = "linux")]
pub(crate) fn is_worked_in(below: &Path) -> bool {
    let mut names = below.iter().peekable();
    while let Some(name) = names.next() {
        let is_free = name == CONFIGURATION && names.peek().is_some_and(|next| *next == CONFIGURATION_FREE);
        // Repositories have rules of their own.
        if is_passed_over(name) || name == REPOSITORY || is_free {
            return false;
        }
    }
    true
}

fn is_passed_over(name: &std::ffi::OsStr) -> bool {
    PASSED_OVER.iter().any(|passed| name == *passed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Disk;
    use std::fs;

    #[test]
    fn names_are_found_below_and_not_where_nobody_works() {
        let dir = tempfile::tempdir().unwrap();
        for file in [".npmrc", "a/.npmrc", "a/b/.envrc", "node_modules/x/.npmrc", "a/.git/config", "a/c"] {
            fs::create_dir_all(dir.path().join(file).parent().unwrap()).unwrap();
            fs::write(dir.path().join(file), "").unwrap();
        }
        let mut nested = nested(dir.path(), &Disk);
        nested.found.sort();
        let below: Vec<&Path> =
            nested.found.iter().map(|path| path.strip_prefix(dir.path()).unwrap()).collect();
        assert_eq!(below, [Path::new("a/.git"), Path::new("a/.npmrc"), Path::new("a/b/.envrc")]);
        assert!(nested.is_all);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn other_peoples_code_and_repositories_are_not_worked_in() {
        for (below, is) in [
            ("", true),
            ("sub", true),
            ("a/b/c/d/e/f", true),
            ("a/node_modules/x", false),
            ("a/.git/refs", false),
            (".claude/worktrees/x", false),
            (".claude/agents", true),
        ] {
            assert_eq!(is_worked_in(Path::new(below)), is, "{below}");
        }
    }
}
