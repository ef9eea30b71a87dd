//! What is below directories that a command looks through: links that lead away, files that a rule guards, names that turn
//! into other words.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::super::place::{Here, Kind, Place, protected};
use super::super::rule::Deed;
use super::super::rules::RuleSet;
use super::place;
use crate::limits::ENTRIES_JUDGED_MAX;
use crate::places::{Follower, normalised};

/// What must not be there.
pub(super) struct Unwanted<'a> {
    pub rules: &'a RuleSet,
    pub here: &'a Here,
    /// There are rules that guard files.
    pub guarded: bool,
    /// What they guard them from.
    pub deed: Deed,
    /// Links are followed.
    pub follows: bool,
    /// How the names end of those files that are shown, if not all are.
    pub only_ending: Option<&'a str>,
    /// Names are split at blanks, or may be taken for options.
    pub splits: bool,
}

impl Unwanted<'_> {
    /// Whether something of it is below one of these directories, or there is too much to look at.
    pub fn is_below(&self, starts: &[Place]) -> bool {
        let mut waiting: Vec<PathBuf> = starts.iter().map(|start| start.real.clone()).collect();
        let mut seen: HashSet<PathBuf> = HashSet::new();
        let mut count = 0_usize;
        while let Some(dir) = waiting.pop() {
            if !seen.insert(dir.clone()) {
                continue;
            }
            // What cannot be listed cannot be looked through either.
            let Ok(entries) = fs::read_dir(&dir) else { continue };
            for entry in entries.flatten() {
                count += 1;
                if count > ENTRIES_JUDGED_MAX {
                    return true;
                }
                let name = entry.file_name();
                let name = name.as_encoded_bytes();
                // What stands before a blank does not end as the name does.
                let loses_end = || self.only_ending.is_some() && name.iter().any(u8::is_ascii_whitespace);
                if self.splits && (turns_into_words(name) || loses_end()) {
                    return true;
                }
                let Ok(kind) = entry.file_type() else { return true };
                let path = entry.path();
                let is_shown = self.only_ending.is_none_or(|ending| name.ends_with(ending.as_bytes()));
                // What leads to a directory may be gone through by its name.
                if !is_shown && !kind.is_dir() && !path.is_dir() {
                    continue;
                }
                if kind.is_symlink() {
                    match self.linked(&path) {
                        Linked::Away => return true,
                        Linked::To(dir) => waiting.push(dir),
                        Linked::Nothing => {}
                    }
                } else if kind.is_dir() {
                    waiting.push(path);
                } else if self.guarded && self.guards(&path, &path) {
                    return true;
                }
            }
        }
        false
    }

    fn linked(&self, link: &Path) -> Linked {
        if !self.follows {
            return Linked::Nothing;
        }
        // What leads nowhere shows nothing.
        let Ok(to) = place(link, &Follower::default()) else { return Linked::Nothing };
        if !self.here.may_be_read(&to) || to.kind == Kind::Special {
            return Linked::Away;
        }
        match to.kind {
            Kind::Directory => Linked::To(to.real),
            _ if self.guarded && self.guards(link, &to.real) => Linked::Away,
            _ => Linked::Nothing,
        }
    }

    fn guards(&self, given: &Path, real: &Path) -> bool {
        let place = Place { given: given.to_path_buf(), real: real.to_path_buf(), kind: Kind::Plain };
        self.rules.guards_from(self.deed, &place, self.here).is_some()
    }
}

enum Linked {
    /// Where it may not lead.
    Away,
    /// To a directory that is looked through, too.
    To(PathBuf),
    Nothing,
}

/// Whether something below one of these directories is protected by its name, or there is too much to look at.
pub(super) fn holds_protected(starts: &[Place]) -> bool {
    any_below(starts, |start, path| {
        let inside = path.strip_prefix(start).unwrap_or(path).to_path_buf();
        protected(&Place { given: inside.clone(), real: inside, kind: Kind::Plain }).is_some()
    })
}

/// Whether a link below one of these directories leads out of it, so that elsewhere it leads to other files; or there is too
/// much to look at.
pub(super) fn holds_links_out(starts: &[Place]) -> bool {
    any_below(starts, |start, path| {
        let Ok(to) = fs::read_link(path) else { return false };
        let from = path.parent().unwrap_or(start);
        !normalised(&from.join(to)).starts_with(start)
    })
}

/// Whether this holds for something below one of these directories, links not followed.
fn any_below(starts: &[Place], holds: impl Fn(&Path, &Path) -> bool) -> bool {
    let mut count = 0_usize;
    for start in starts {
        let mut waiting = vec![start.real.clone()];
        while let Some(dir) = waiting.pop() {
            let Ok(entries) = fs::read_dir(&dir) else { continue };
            for entry in entries.flatten() {
                count += 1;
                let path = entry.path();
                if count > ENTRIES_JUDGED_MAX || holds(&start.real, &path) {
                    return true;
                }
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    waiting.push(path);
                }
            }
        }
    }
    false
}

/// Whether `xargs` would make words of this name that are options, or lead out of the directory: quotes and escapes, a part
/// behind a blank that begins with a dash or dots, a blank at the end, which lets the next name begin at the root.
fn turns_into_words(name: &[u8]) -> bool {
    if name.starts_with(b"-") || name.iter().any(|byte| matches!(byte, b'\'' | b'"' | b'\\' | b'\n')) {
        return true;
    }
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | 0x0b | 0x0c | b'\r');
    // Where a shell takes it for a pattern, it must not match the directory above.
    let may_climb =
        |part: &[u8]| part.starts_with(b".") && part.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['));
    if name.split(is_blank).any(may_climb) {
        return true;
    }
    let mut parts = name.split(is_blank);
    parts.next();
    parts.any(|part| part.is_empty() || part == b".." || (part.starts_with(b"-") && part.len() > 1))
}

#[cfg(test)]
mod tests {
    use super::turns_into_words;

    #[test]
    fn names_that_stay_names_whatever_splits_them() {
        for name in ["a.rs", "My File.txt", "a - b", "..x", "a..b c", "[id].tsx", "a*"] {
            assert!(!turns_into_words(name.as_bytes()), "{name}");
        }
        for name in
            ["-f", "a -f", "a ", "a ..", "it's", "a\"b", "a\\b", "a\nb", "a  b", " a ", "..*", ".[.]", "a .?"]
        {
            assert!(turns_into_words(name.as_bytes()), "{name}");
        }
    }
}
