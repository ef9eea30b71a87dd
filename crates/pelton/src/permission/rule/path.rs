//! Patterns over paths, as in `.gitignore`, and where they begin.

use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::super::place::{Here, Place};
use super::Need;

/// Allowing and denying read some patterns differently: what only restricts reaches further.
#[derive(Debug, Clone)]
pub(super) struct PathPattern {
    vouches: Anchored,
    catches: Anchored,
}

#[derive(Debug, Clone)]
struct Anchored {
    anchor: Anchor,
    lines: Gitignore,
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
        Ok(Self { anchor, lines: builder.build().map_err(|error| error.to_string())? })
    }

    fn matches(&self, path: &Path, here: &Here, source: Option<&Path>, need: Need) -> bool {
        // Nobody knows yet whether what is named is a directory: in doubt it restricts.
        let is_dir = need == Need::Catch;
        let below = |root: &Path| {
            path.strip_prefix(root)
                .is_ok_and(|rest| self.lines.matched_path_or_any_parents(rest, is_dir).is_ignore())
        };
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
