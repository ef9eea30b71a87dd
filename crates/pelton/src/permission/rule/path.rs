//! Patterns over paths, as in `.gitignore`, and where they begin.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::super::place::{Here, Place};
use super::Need;
use crate::limits::PATH_RULE_BYTES_MAX;

/// Allowing and denying read some patterns differently: what only restricts reaches further.
#[derive(Debug, Clone)]
pub(super) struct PathPattern {
    vouches: Anchored,
    catches: Anchored,
}

#[derive(Debug, Clone)]
struct Anchored {
    anchor: Anchor,
    lines: Lines,
}

/// Lines as of an ignore file. They were read when the rule was; they are made into something that matches when the first path is held
/// against them. Most rules are never asked in a run, and making one takes longer than reading all settings.
#[derive(Debug, Clone)]
struct Lines {
    read: GitignoreBuilder,
    made: OnceLock<Option<Gitignore>>,
}

impl Lines {
    /// Whether a path, or one above it, is on the lines. What cannot be made is on all lines that restrict and on none that
    /// allow: its length is bounded, so nobody has seen one.
    fn have(&self, path: &Path, need: Need) -> bool {
        // Nobody knows yet whether what is named is a directory: in doubt it restricts.
        let in_doubt = need == Need::Catch;
        match self.made.get_or_init(|| self.read.build().ok()) {
            Some(lines) => lines.matched_path_or_any_parents(path, in_doubt).is_ignore(),
            None => in_doubt,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anchor {
    /// `//x`: the root of the file system.
    Root,
    /// `~/x`: the user's home.
    Home,
    /// `/x`: where the settings say.
    Source,
    /// `x/y`, `./x`: the current directory, or so many above it.
    Here { up: usize },
}

impl PathPattern {
    pub fn new(pattern: &str) -> Result<Self, String> {
        let pattern = pattern.trim();
        if pattern.len() > PATH_RULE_BYTES_MAX {
            return Err(format!("a pattern over paths has {PATH_RULE_BYTES_MAX} bytes at the most"));
        }
        if pattern.starts_with('!') {
            return Err("a path cannot be taken out with '!': write a rule of the other kind".to_owned());
        }
        let anchored = |anchor, rest: &str| {
            let rest = match rest.trim_start_matches('/') {
                "" | "." => "**",
                rest => rest,
            };
            let vouches = Anchored::vouching(anchor, &[format!("/{rest}")])?;
            // Who may not enter a directory may not touch it either.
            let directory = rest.strip_suffix("/**").map(|directory| format!("/{directory}"));
            let lines: Vec<String> = std::iter::once(format!("/{rest}")).chain(directory).collect();
            Ok(Self { vouches, catches: Anchored::catching(anchor, &lines)? })
        };
        if let Some(rest) = pattern.strip_prefix("//") {
            return anchored(Anchor::Root, rest);
        }
        if pattern == "~" {
            return anchored(Anchor::Home, "");
        }
        if let Some(rest) = pattern.strip_prefix("~/") {
            return anchored(Anchor::Home, rest);
        }
        if pattern.starts_with('/') {
            return anchored(Anchor::Source, pattern);
        }
        let mut rest = pattern;
        let mut up = 0;
        let mut is_here = false;
        loop {
            if let Some(behind) = rest.strip_prefix("./") {
                rest = behind;
            } else if let Some(behind) = rest.strip_prefix("../") {
                rest = behind;
                up += 1;
            } else {
                break;
            }
            is_here = true;
        }
        match rest {
            ".." => return anchored(Anchor::Here { up: up + 1 }, ""),
            "." => return anchored(Anchor::Here { up }, ""),
            _ if is_here => return anchored(Anchor::Here { up }, rest),
            _ => {}
        }
        let here = Anchor::Here { up: 0 };
        let floating = pattern.strip_prefix("**/").unwrap_or(pattern);
        let directory = floating.strip_suffix("/**");
        let is_one_name = |text: &str| !text.trim_end_matches('/').contains('/');
        let at_any_depth =
            floating.len() < pattern.len() || is_one_name(floating) || directory.is_some_and(is_one_name);
        if !at_any_depth {
            return anchored(here, pattern);
        }
        // An allowance stays below; a prohibition holds wherever the name is.
        let line = if is_one_name(pattern) { pattern.to_owned() } else { format!("/{pattern}") };
        let catching: Vec<String> =
            [Some(floating), directory].into_iter().flatten().map(|line| format!("**/{line}")).collect();
        let vouches = Anchored::vouching(here, &[line])?;
        Ok(Self { vouches, catches: Anchored::catching(Anchor::Root, &catching)? })
    }

    /// `source` is where `/x` begins, if it is not where the session does.
    pub fn matches(&self, place: &Place, here: &Here, source: Option<&Path>, need: Need) -> bool {
        let pattern = match need {
            Need::Vouch => &self.vouches,
            Need::Catch => &self.catches,
        };
        let matches = |path: &Path| pattern.matches(path, here, source, need);
        match need {
            Need::Vouch => matches(&place.given) && (place.given == place.real || matches(&place.real)),
            Need::Catch => matches(&place.given) || (place.given != place.real && matches(&place.real)),
        }
    }
}

impl Anchored {
    fn vouching(anchor: Anchor, lines: &[String]) -> Result<Self, String> {
        Self::new(anchor, lines, GitignoreBuilder::new(""))
    }

    /// Some file systems do not tell `.ENV` from `.env`: what only restricts does not, either.
    fn catching(anchor: Anchor, lines: &[String]) -> Result<Self, String> {
        let mut builder = GitignoreBuilder::new("");
        builder.case_insensitive(true).map_err(|error| error.to_string())?;
        Self::new(anchor, lines, builder)
    }

    fn new(anchor: Anchor, lines: &[String], mut builder: GitignoreBuilder) -> Result<Self, String> {
        for line in lines {
            builder.add_line(None, line).map_err(|error| error.to_string())?;
        }
        Ok(Self { anchor, lines: Lines { read: builder, made: OnceLock::new() } })
    }

    fn matches(&self, path: &Path, here: &Here, source: Option<&Path>, need: Need) -> bool {
        let below = |root: &Path| path.strip_prefix(root).is_ok_and(|rest| self.lines.have(rest, need));
        let below_one = |roots: &[PathBuf]| roots.iter().any(|root| below(root));
        match (self.anchor, source) {
            (Anchor::Root, _) => below(Path::new("/")),
            (Anchor::Home, _) => below_one(&here.base.home),
            (Anchor::Source, Some(source)) => below(source),
            (Anchor::Source, None) => below_one(&here.base.start),
            (Anchor::Here { up }, _) => {
                let above =
                    |roots: &[PathBuf]| roots.iter().any(|root| root.ancestors().nth(up).is_some_and(below));
                // A command that changes the directory does not take prohibitions along.
                let starts_elsewhere = *here.cwd != *here.base.start;
                above(&here.cwd) || (need == Need::Catch && starts_elsewhere && above(&here.base.start))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_pattern_longer_than_any_path_is_refused() {
        assert!(PathPattern::new(&"?".repeat(PATH_RULE_BYTES_MAX)).is_ok());
        let refused = PathPattern::new(&"?".repeat(PATH_RULE_BYTES_MAX + 1)).unwrap_err();
        assert!(refused.contains("4096 bytes"), "{refused}");
    }

    #[test]
    fn what_cannot_be_made_restricts_and_allows_nothing() {
        let lines = Lines { read: GitignoreBuilder::new(""), made: OnceLock::from(None) };
        assert!(lines.have(Path::new("a"), Need::Catch));
        assert!(!lines.have(Path::new("a"), Need::Vouch));
    }

    proptest! {
        // Mistakes are told when a rule is read: nothing is left to go wrong when it is first asked.
        #[test]
        fn whatever_is_read_can_be_made(pattern in r"(/|//|~/|\./|\.\./|!)?([a-zé*?{},\[\]^\\/.-]|\*\*){0,40}", times in 1_usize..90) {
            if let Ok(read) = PathPattern::new(&pattern.repeat(times)) {
                prop_assert!(read.vouches.lines.read.build().is_ok());
                prop_assert!(read.catches.lines.read.build().is_ok());
            }
        }
    }
}
