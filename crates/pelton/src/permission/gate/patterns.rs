//! The files that a pattern of the shell matches now.

use std::fs;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use pelton_sandbox::protected;

use crate::limits::{PATTERN_FILES_MAX, PATTERN_NAMES_SEEN_MAX};

/// All paths that match below a directory; the pattern itself, as the shell passes it on, if there is none. `None` if there are
/// too many, or it cannot be understood. `**` may go through all directories below.
pub(super) fn matching(pattern: &str, dir: &Path, goes_deep: bool) -> Option<Vec<PathBuf>> {
    let mut found = vec![if pattern.starts_with('/') { PathBuf::from("/") } else { dir.to_path_buf() }];
    let mut seen = 0;
    let mut is_matched = false;
    let mut segments = pattern.split('/').filter(|segment| !segment.is_empty()).peekable();
    while let Some(segment) = segments.next() {
        if !segment.contains(['*', '?', '[']) {
            let name = unescaped(segment);
            found = found.into_iter().map(|dir| dir.join(&name)).collect();
            // What the shell has matched goes on only where there is such a name.
            if is_matched {
                found.retain(|path| fs::symlink_metadata(path).is_ok());
            }
            continue;
        }
        is_matched = true;
        if goes_deep && segment == "**" {
            found = all_below(found, segments.peek().is_none(), &mut seen)?;
            continue;
        }
        let glob = matcher(segment)?;
        let wants_hidden = is_hidden(segment);
        let mut next = Vec::new();
        for dir in &found {
            let Ok(names) = fs::read_dir(dir) else { continue };
            for name in names.flatten().map(|entry| entry.file_name()) {
                seen += 1;
                let hidden = name.as_encoded_bytes().starts_with(b".");
                if hidden <= wants_hidden && glob.is_match(&name) {
                    next.push(dir.join(name));
                }
                if next.len() > PATTERN_FILES_MAX || seen > PATTERN_NAMES_SEEN_MAX {
                    return None;
                }
            }
            // These two are never listed, but match.
            if wants_hidden {
                next.extend(
                    [".", ".."].into_iter().filter(|name| glob.is_match(name)).map(|name| dir.join(name)),
                );
            }
        }
        found = next;
    }
    if found.is_empty() {
        found.push(dir.join(unescaped(pattern)));
    }
    Some(found)
}

/// These directories and all below, but hidden ones, and with their files if those are wanted. `None` if there are too many. Links are
/// not gone through, but named: without its option `**` is like `*`.
fn all_below(dirs: Vec<PathBuf>, with_files: bool, seen: &mut usize) -> Option<Vec<PathBuf>> {
    let mut below = Vec::new();
    let mut waiting = dirs;
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            *seen += 1;
            if *seen > PATTERN_NAMES_SEEN_MAX {
                return None;
            }
            let Ok(kind) = entry.file_type() else { continue };
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if kind.is_dir() {
                waiting.push(entry.path());
            } else if with_files || kind.is_symlink() {
                below.push(entry.path());
            }
        }
        below.push(dir);
        if below.len() > PATTERN_FILES_MAX {
            return None;
        }
    }
    Some(below)
}

/// Protected names that a pattern for hidden files would match, were they there. Whoever changes files by such a pattern is asked: they
/// may be there by the time it runs.
pub(in super::super) fn protected_matches(pattern: &str) -> Vec<&'static str> {
    let segments =
        pattern.split('/').filter(|segment| segment.contains(['*', '?', '[']) && is_hidden(segment));
    let matchers: Vec<GlobMatcher> = segments.filter_map(matcher).collect();
    let names = protected::NAMES.iter().filter_map(protected::Name::single);
    names.filter(|name| matchers.iter().any(|matcher| matcher.is_match(name))).collect()
}

fn is_hidden(segment: &str) -> bool {
    segment.starts_with('.') || segment.starts_with("\\.")
}

fn matcher(segment: &str) -> Option<GlobMatcher> {
    let glob = segment.replace('{', "\\{").replace('}', "\\}");
    let glob = GlobBuilder::new(&glob).literal_separator(true).backslash_escape(true).build().ok()?;
    Some(glob.compile_matcher())
}

fn unescaped(segment: &str) -> String {
    let mut text = String::new();
    let mut chars = segment.chars();
    while let Some(c) = chars.next() {
        text.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    text
}
