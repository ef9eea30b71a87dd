//! Libraries are closed rooms: they do not print, and time, chance and surroundings come in by the door as
//! arguments. That is what lets a test decide what time it is and a server hold a thousand sessions.

use crate::rust::{Scope, Source, test_files};
use crate::{Finding, Tree};

/// The crates held to this.
const LIBRARIES: &[&str] = &[
    "pelton-wire",
    "pelton-shell",
    "pelton-model",
    "pelton-sandbox",
    "pelton",
    "pelton-mcp",
    "pelton-serve",
    "pelton-tui",
    "pelton-testkit",
];

/// The one file that may ask the process: `RealWorld`, the default a user can replace.
const REAL_WORLD: &str = "crates/pelton-model/src/world.rs";

/// The scripted model stamps its records with the time of day; it is a server of its own.
const MAY_READ_CLOCK: &[&str] = &["pelton-testkit"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Door {
    Print,
    Environment,
    Clock,
    Chance,
    Folder,
}

impl Door {
    fn message(self, what: &str) -> String {
        match self {
            Door::Print => format!("`{what}`: a library never prints; return the text or take a writer"),
            Door::Environment => {
                format!("`{what}`: a library never reads the environment; take it as an option")
            }
            Door::Clock => format!("`{what}`: a library never reads the clock; take a clock or a time"),
            Door::Chance => format!("`{what}`: a library never draws lots; take the generator or the id"),
            Door::Folder => format!("`{what}`: a library has no working directory; take the folder"),
        }
    }
}

const PRINTING: &[&str] = &["println", "eprintln", "print", "eprint", "dbg"];

/// Known when the crate is built: nothing is asked of the process.
const CONSTANTS: &str = "std::env::consts";

/// Paths that open a door, with everything inside them. The more particular comes first.
const PATHS: &[(&str, Door)] = &[
    ("std::env::current_dir", Door::Folder),
    ("std::env::set_current_dir", Door::Folder),
    ("std::path::absolute", Door::Folder),
    ("std::env", Door::Environment),
    // These make their file where the environment says.
    ("tempfile::tempdir", Door::Environment),
    ("tempfile::tempfile", Door::Environment),
    ("tempfile::TempDir::new", Door::Environment),
    ("tempfile::NamedTempFile::new", Door::Environment),
    ("jiff::tz::TimeZone::system", Door::Environment),
    ("std::io::stdout", Door::Print),
    ("std::io::stderr", Door::Print),
    ("std::io::Stdout", Door::Print),
    ("std::io::Stderr", Door::Print),
    ("tokio::io::stdout", Door::Print),
    ("tokio::io::stderr", Door::Print),
    ("std::time::SystemTime::now", Door::Clock),
    ("std::time::Instant::now", Door::Clock),
    ("tokio::time::Instant::now", Door::Clock),
    ("jiff::Timestamp::now", Door::Clock),
    ("jiff::Zoned::now", Door::Clock),
    ("uuid::Uuid::new_v4", Door::Chance),
    ("uuid::Uuid::now_v1", Door::Chance),
    ("uuid::Uuid::now_v6", Door::Chance),
    ("uuid::Uuid::now_v7", Door::Chance),
    ("std::hash::RandomState", Door::Chance),
    ("std::collections::hash_map::RandomState", Door::Chance),
    ("rand", Door::Chance),
    ("fastrand", Door::Chance),
    ("getrandom", Door::Chance),
];

/// No library opens a door by itself.
pub fn closed(tree: &Tree) -> Vec<Finding> {
    let tests = test_files(tree);
    let mut findings = Vec::new();
    for (path, text) in tree.rust().filter(|(path, _)| *path != REAL_WORLD && !tests.contains(*path)) {
        let mut parts = path.strip_prefix("crates/").unwrap_or_default().splitn(3, '/');
        let (Some(library), Some("src"), Some(file)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        if !LIBRARIES.contains(&library) {
            continue;
        }
        let source = Source::read(text).without_tests();
        for name in source.macros().filter(|name| PRINTING.contains(&name.text)) {
            findings.push(Finding::at(path, name.line, Door::Print.message(&format!("{}!", name.text))));
        }
        for named in source.named(&Scope::of(file)) {
            let Some((_, door)) = PATHS.iter().find(|(what, _)| named.is_in(what) && !named.is_in(CONSTANTS))
            else {
                continue;
            };
            if *door != Door::Clock || !MAY_READ_CLOCK.contains(&library) {
                findings.push(Finding::at(path, named.line, door.message(&named.text())));
            }
        }
    }
    findings.sort();
    findings.dedup();
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        closed(&Tree::of([(path, text)])).into_iter().map(|finding| finding.line).collect()
    }

    const FILE: &str = "crates/pelton/src/engine.rs";

    #[test]
    fn every_door_is_found() {
        for text in [
            "fn f() { println!(\"x\"); }",
            "fn f() { eprintln!(\"x\"); }",
            "fn f() { print!(\"x\"); }",
            "fn f() { dbg!(1); }",
            "fn f() { std::io::stdout(); }",
            "use std::io::{self}; fn f() { io::stderr(); }",
            "fn f() { tokio::io::stdout(); }",
            "use std::{env, fs};",
            "fn f() { std::env::var(\"HOME\"); }",
            "fn f() { std::env::current_dir(); }",
            "use std::env::set_current_dir;",
            "fn f() { std::time::SystemTime::now(); }",
            "use std::time::Instant; fn f() { Instant::now(); }",
            "use tokio::time::Instant; fn f() { Instant::now(); }",
            "fn f() { tokio::time::Instant::now(); }",
            "use std::time::Instant; fn f() { let f = Instant::now; }",
            "use jiff::Timestamp; fn f() { Timestamp::now(); }",
            "use jiff::Zoned; fn f() { Zoned::now(); }",
            "use uuid::Uuid; fn f() { Uuid::new_v4(); }",
            "fn f() { rand::random::<u8>(); }",
            "fn f() { tempfile::tempdir(); }",
        ] {
            assert!(!lines(FILE, text).is_empty(), "not found: {text}");
        }
    }

    #[test]
    fn what_looks_alike_passes() {
        for text in [
            "// println!(\"x\") and std::env\nfn f() { let x = \"std::env::var\"; }",
            "use std::time::{Duration, Instant}; fn f(now: Instant) -> Instant { now + Duration::ZERO }",
            "const OS: &str = std::env::consts::OS;",
            "const V: &str = env!(\"CARGO_PKG_VERSION\");",
            "fn f(folder: &std::path::Path) { tempfile::tempdir_in(folder); }",
            "#[cfg(test)] mod tests { fn f() { println!(\"x\"); } }",
            "fn f(out: &mut impl std::io::Write) { writeln!(out, \"x\"); }",
        ] {
            assert_eq!(lines(FILE, text), Vec::<usize>::new(), "found: {text}");
        }
    }

    #[test]
    fn findings_carry_their_line() {
        assert_eq!(lines(FILE, "\nuse std::io;\n\nfn f() {\n    io::stdout();\n}"), [5]);
    }

    #[test]
    fn the_exempt_places_are_exempt_and_no_others() {
        let text = "fn f() { std::time::SystemTime::now(); }";
        assert!(lines(REAL_WORLD, text).is_empty());
        assert!(lines("crates/pelton-cli/src/main.rs", text).is_empty());
        assert!(lines("crates/pelton/tests/engine.rs", text).is_empty());
        assert!(lines("crates/pelton/src/engine/tests.rs", text).is_empty());
        assert!(lines("crates/pelton-testkit/src/server.rs", text).is_empty());
        assert!(!lines("crates/pelton-testkit/src/server.rs", "fn f() { std::env::args(); }").is_empty());
        assert!(!lines("crates/pelton/src/world.rs", text).is_empty());
        assert!(!lines("crates/pelton-serve/src/print.rs", "fn f() { std::io::stdout(); }").is_empty());
    }
}
