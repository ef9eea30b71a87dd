//! Completion: files of the project behind an `@`, commands behind a `/`.
//!
//! Paths are gathered by [`Files`] in the background and can be searched meanwhile. Searching itself is pure, in [`index`] and
//! [`palette`].

pub mod index; // paths, and those that fit what was typed
pub mod palette; // commands that fit what was typed
pub mod menu; // rows to choose from
mod walk; // what is on the disk

pub use index::Found;
pub use walk::{Files, Offered, directories};

/// What is being completed: the end of what was typed before the caret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// Behind an `@`: a file.
    File {
        typed: &'a str,
        /// How many bytes before the caret a completion takes the place of.
        bytes: usize,
    },
    /// Behind a command that wants one: a directory.
    Directory { typed: &'a str, bytes: usize },
    /// Behind a `/` that the prompt begins with: a command.
    Command { typed: &'a str, bytes: usize },
}

/// What commands begin with that want a directory.
const WANT_DIRECTORY: [&str; 2] = ["/cd ", "/add-dir "];

/// What could be completed where the caret is.
pub fn wanted(before_caret: &str) -> Option<Wanted<'_>> {
    if let Some(typed) = before_caret.strip_prefix('/')
        && !typed.contains(char::is_whitespace)
    {
        return Some(Wanted::Command { typed, bytes: before_caret.len() });
    }
    for command in WANT_DIRECTORY {
        if let Some(typed) = before_caret.strip_prefix(command)
            && !typed.contains(['@', '\n'])
        {
            return Some(Wanted::Directory { typed, bytes: typed.len() });
        }
    }
    // The last `@` that a word begins with, as long as that word goes on to the caret.
    let at = before_caret.rfind('@')?;
    let begins =
        before_caret[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || "([{\"'`".contains(c));
    let behind = &before_caret[at + 1..];
    let (typed, goes_on) = match behind.strip_prefix('"') {
        Some(quoted) => (quoted, !quoted.contains(['"', '\n'])),
        None => (behind, !behind.contains(char::is_whitespace)),
    };
    (begins && goes_on).then_some(Wanted::File { typed, bytes: before_caret.len() - at })
}

/// How a path is mentioned. A folder can be gone on from, so nothing stands behind it.
pub fn mention(path: &str) -> String {
    let quoted = path.contains(char::is_whitespace);
    match (quoted, path.ends_with('/')) {
        (false, true) => format!("@{path}"),
        (false, false) => format!("@{path} "),
        (true, true) => format!("@\"{path}"),
        (true, false) => format!("@\"{path}\" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_seen_from_what_was_typed() {
        let file = |typed, bytes| Some(Wanted::File { typed, bytes });
        let command = |typed, bytes| Some(Wanted::Command { typed, bytes });
        let directory = |typed, bytes| Some(Wanted::Directory { typed, bytes });
        for (typed, expected) in [
            ("", None),
            ("words", None),
            ("@", file("", 1)),
            ("see @src/ma", file("src/ma", 7)),
            ("see (@a", file("a", 2)),
            ("me@example", None),
            ("@a b", None),
            ("@a @b", file("b", 2)),
            ("@\"with bl", file("with bl", 9)),
            ("@\"closed\" ", None),
            ("line\n@x", file("x", 2)),
            ("/", command("", 1)),
            ("/com", command("com", 4)),
            ("/compact now", None),
            ("/add-dir @x", file("x", 2)),
            ("/cd ", directory("", 0)),
            ("/cd ../my d", directory("../my d", 7)),
            ("/cd\n", None),
            (" /cd x", None),
            ("see /etc", None),
        ] {
            assert_eq!(wanted(typed), expected, "{typed:?}");
        }
    }

    #[test]
    fn paths_are_mentioned_as_the_engine_reads_them() {
        for (path, mentioned) in [
            ("src/main.rs", "@src/main.rs "),
            ("src/", "@src/"),
            ("my file.txt", "@\"my file.txt\" "),
            ("my dir/", "@\"my dir/"),
        ] {
            assert_eq!(mention(path), mentioned);
        }
    }
}
