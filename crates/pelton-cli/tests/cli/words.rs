//! The command line itself: help, version, scripts for shells, and mistakes told in one line.

use std::process::{Command, Stdio};

use crate::place::{Commanded, Place};

#[track_caller]
fn mistaken(words: &[&str], expected: &[&str]) {
    let place = Place::new();
    let ran = place.pelton(words.iter().copied()).run();
    let line = ran.failed(1, expected);
    assert!(line.starts_with("error: "), "{line}");
    assert!(ran.out.is_empty(), "{}", ran.out);
}

#[test]
fn help_and_version_are_told_on_standard_output() {
    let place = Place::new();
    for word in ["--version", "-v", "-V"] {
        assert_eq!(place.pelton([word]).run().well(), format!("pelton {}\n", env!("CARGO_PKG_VERSION")));
    }
    for words in [&["--help"][..], &["-h"], &["help"], &["-p", "--help"]] {
        let ran = place.pelton(words.iter().copied()).run();
        for part in [
            "Usage: pelton",
            "demo",
            "mock",
            "--output-format",
            "ANTHROPIC_API_KEY",
            "Exit codes",
            "Examples",
        ] {
            assert!(ran.well().contains(part), "{words:?}: {part}\n{}", ran.out);
        }
    }
    assert!(place.pelton(["mock", "--help"]).run().well().contains("--record"));
    assert!(place.pelton(["help", "demo"]).run().well().contains("--fault"));
    // A reader that has seen enough is no failure.
    let mut command = place.shell("\"$PELTON\" --help | head -1");
    assert_eq!(command.run().well().lines().count(), 1);
}

#[test]
fn an_unknown_option_is_told_with_the_nearest_one() {
    assert_eq!(Place::new().pelton(["--x"]).run().failed(1, &[]), "error: unknown option '--x'");
    mistaken(
        &["-p", "hi", "--outputformat", "json"],
        &["unknown option '--outputformat'", "'--output-format'"],
    );
    mistaken(&["-p", "hi", "-x"], &["unknown option '-x'"]);
    mistaken(&["demo", "--falt", "cut"], &["unknown option '--falt'", "'--fault'"]);
}

#[test]
fn a_mistyped_command_is_told_with_the_nearest_one() {
    mistaken(&["demoo"], &["'demoo' is not a command", "'pelton demo'", "pelton -p demoo"]);
    mistaken(&["completion"], &["'pelton completions'"]);
    mistaken(&["--model", "x", "demo"], &["'demo' goes before the options", "pelton demo"]);
    mistaken(&["doctr", "list"], &["unexpected argument 'list'", "did you mean 'pelton doctor'?"]);
    mistaken(&["mcp", "lst"], &["no such command: 'lst'", "did you mean 'list'?"]);
    mistaken(&["plugin", "instal", "x"], &["'instal'", "did you mean 'install'?"]);
    mistaken(&["config", "zzz"], &["'zzz'", "see --help"]);
    // Words that are near no command are a task.
    mistaken(&["fix the bug"], &["pelton -p \"...\"", "a session needs a terminal"]);
    mistaken(&[], &["pelton -p \"...\"", "--help"]);
}

#[test]
fn values_that_do_not_fit_are_told_with_those_that_do() {
    mistaken(
        &["-p", "hi", "--output-format", "xml"],
        &["'xml'", "--output-format", "text, json, stream-json"],
    );
    mistaken(&["-p", "hi", "--permission-mode=all"], &["'all'", "acceptEdits", "plan", "dontAsk"]);
    mistaken(&["-p", "hi", "--output-format"], &["--output-format", "needs a value", "stream-json"]);
    mistaken(&["-p", "hi", "--max-turns"], &["--max-turns", "needs a value"]);
    for turns in ["0", "-1", "x", "99999999999"] {
        mistaken(&["-p", "hi", &format!("--max-turns={turns}")], &["--max-turns", turns, "1 or more"]);
        mistaken(&["-p", "hi", "--max-turns", turns], &["--max-turns", turns, "1 or more"]);
    }
    mistaken(&["-p", "hi", "--session-id", "x"], &["--session-id", "'x'", "UUID"]);
    mistaken(&["completions", "fishh"], &["'fishh'", "bash, elvish, fish", "did you mean 'fish'"]);
    mistaken(&["mock"], &["<SCRIPT> is missing"]);
    for port in ["70000", "-1"] {
        mistaken(&["mock", "x", "--port", port], &[port, "--port"]);
    }
}

#[test]
fn options_that_do_not_go_together_are_told() {
    mistaken(&["-p", "hi", "--continue", "--resume", "x"], &["--continue", "--resume", "together"]);
    mistaken(&["demo", "--model", "m", "--fault", "cut"], &["--model", "--fault", "together"]);
}

#[test]
fn a_prompt_in_pieces_is_told() {
    mistaken(&["-p", "fix", "it"], &["unexpected argument 'it'", "in quotes"]);
    // An option with many values takes the prompt, too.
    let place = Place::new();
    let mut command = place.pelton(["-p", "--allowedTools", "Read", "fix it"]);
    command
        .env("ANTHROPIC_API_KEY", "sk-test")
        .run()
        .failed(1, &["--allowedTools", "put the prompt before it"]);
}

#[test]
fn values_of_the_run_are_checked_before_it() {
    let place = Place::new();
    let keyed = |words: &[&str]| {
        let mut command = place.pelton(["-p", "hi"].into_iter().chain(words.iter().copied()));
        command.env("ANTHROPIC_API_KEY", "sk-test").run()
    };
    keyed(&["--tools", "Reed"]).failed(1, &["--tools", "'Reed'", "Read"]);
    keyed(&["--allowedTools", "Bash(ls"]).failed(1, &["Bash(ls", "closing ')'"]);
    keyed(&["--effort", "heroic"]).failed(1, &["heroic", "high"]);
}

#[test]
fn completions_are_scripts_the_shells_accept() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = place.pelton(["completions", shell]).run().well().to_owned();
        assert!(script.contains("pelton") && script.contains("output-format"), "{shell}: {script}");
        // Those that know how to look without running, where they are there.
        if !["bash", "zsh", "fish"].contains(&shell) {
            continue;
        }
        let check = Command::new(shell).args(["-n"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let Ok(mut check) = check else {
            assert_ne!(shell, "bash", "bash is needed by the tests");
            continue;
        };
        std::io::Write::write_all(&mut check.stdin.take().unwrap(), script.as_bytes()).unwrap();
        let checked = check.wait_with_output().unwrap();
        assert!(checked.status.success(), "{shell}: {}", String::from_utf8_lossy(&checked.stderr));
    }
    // The script does complete.
    let mut command = place.shell(
        "\"$PELTON\" completions bash > c && bash -c '. ./c; COMP_WORDS=(pelton --output-format s) COMP_CWORD=2; \
         _pelton pelton s --output-format; echo \"${COMPREPLY[@]}\"'",
    );
    assert_eq!(command.run().well(), "stream-json\n");
}

#[test]
fn the_manual_page_renders() {
    let place = Place::new();
    let page = place.pelton(["man"]).run().well().to_owned();
    assert!(page.starts_with(".ie") || page.starts_with(".TH"), "{page}");
    for part in [
        ".TH pelton 1",
        ".SH NAME",
        ".SH SYNOPSIS",
        ".SH OPTIONS",
        "permission\\-mode",
        "stream\\-json",
        ".SH \"PELTON DEMO\"",
        "\\-\\-fault",
        ".SH \"PELTON MOCK\"",
        "\\-\\-record",
        ".SH EXAMPLES",
        ".SH ENVIRONMENT",
        "ANTHROPIC_API_KEY",
        ".SH \"EXIT CODES\"",
    ] {
        assert!(page.contains(part), "{part}");
    }
}
