//! Protected names deeper inside what may be written.

use std::path::{Path, PathBuf};

use crate::limits::{NESTED_DEPTH_MAX, NESTED_ENTRIES_MAX, NESTED_FOUND_MAX};
use crate::policy::{Found, Look};
use crate::protected;

/// Other people's code and what is built from it: large, and never worked in.
const PASSED_OVER: &[&str] = &["node_modules", "target", ".venv", "venv", "__pycache__", "vendor"];

/// Protected names below a directory, those directly in it excepted. Wide trees are looked at layer by layer, until enough
/// names were seen.
pub fn nested(root: &Path, look: &impl Look) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut seen = 0;
    let mut layer = vec![root.to_path_buf()];
    for depth in 0..=NESTED_DEPTH_MAX {
        let mut next = Vec::new();
        for dir in layer {
            for name in look.names(&dir) {
                seen += 1;
                if seen > NESTED_ENTRIES_MAX || found.len() >= NESTED_FOUND_MAX {
                    return found;
                }
                let path = dir.join(&name);
                if protected::find(&name).is_some() {
                    if depth > 0 {
                        found.push(path);
                    }
                } else if !PASSED_OVER.iter().any(|passed| name == *passed)
                    && look.at(&path) == Some(Found::Directory)
                {
                    next.push(path);
                }
            }
        }
        layer = next;
    }
    found
}
