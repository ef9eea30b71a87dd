//! Killed at every point that matters, one after the other. A library in front of the C library (`preload.rs`) names each
//! write of a line, each sync and each frame, and kills the process there: before it, in the middle, or behind it. What
//! is shipped has no hook for this ([decision 029](../../../../docs/decisions/029-crash-points-from-outside.md)).

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use pelton_testkit::{Script, ScriptedModel, Step, text, thinking, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, Ran, lines_of, model};

/// At least so many points have a name.
const POINTS_MIN: usize = 40;
/// Points tried at the same time.
const AT_ONCE: usize = 3;

/// The library, made once.
fn preload() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let library = dir.join(format!("libcrash-{}.so", std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/crash_points/preload.rs");
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let made = Command::new(rustc)
            .args(["--edition=2024", "--crate-type=cdylib", "-Copt-level=1", "-o"])
            .args([&library, &source])
            .output()
            .expect("the compiler that made this program");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        library
    })
}

/// A conversation with everything that matters: thinking, answers, calls that change something, one beside another.
fn script() -> Script {
    let add =
        |word: &str| tool("Bash", json!({"command": format!("echo {word} >> log"), "description": "Add"}));
    Script::new()
        .reply([thinking("Hm."), text("First."), add("one")])
        .reply([text("Now both."), add("two"), add("three"), tool("Read", json!({"file_path": "log"}))])
        .reply([tool("Write", json!({"file_path": "made", "content": "once\n"}))])
        .reply([thinking("Well."), text("Done.")])
        .step(Step::reply([text("Gone on.")]).always())
}

const WORDS: [&str; 10] = [
    "work",
    "--output-format",
    "stream-json",
    "--verbose",
    "--permission-mode",
    "acceptEdits",
    "--allowedTools",
    "Bash(*)",
    "--session-id",
    SESSION,
];
const SESSION: &str = "3d1f1f0a-52a5-4f0e-9d43-9a41b8d3a6c1";

fn run(place: &Place, server: &ScriptedModel, set: &[(&str, &str)]) -> (Ran, Vec<String>) {
    let log = place.temp().join("crash.log");
    let mut command = place.task(server, WORDS);
    command.env("LD_PRELOAD", preload()).env("CRASH_LOG", &log);
    let ran = command.envs(set.iter().copied()).run();
    let names = std::fs::read_to_string(log).unwrap();
    (ran, names.lines().map(str::to_owned).collect())
}

/// The points of a run that nobody disturbs.
fn points() -> Vec<String> {
    let (place, server) = (Place::new(), model(script()));
    let (ran, names) = run(&place, &server, &[]);
    ran.well();
    server.assert_clean();
    let mut points = Vec::new();
    for name in names {
        points.extend([format!("before {name}"), format!("behind {name}")]);
        if !name.starts_with("sync") {
            points.push(format!("torn {name}"));
        }
    }
    points
}

/// Nothing that was told is lost, nothing is done twice, no old byte changes, and the session goes on.
fn check(point: &str) -> Result<(), String> {
    let (place, server) = (Place::new(), model(script()));
    let (ran, names) = run(&place, &server, &[("CRASH_AT", point)]);
    if ran.signal != Some(9) {
        // Calls that run beside each other may come in another order, and have other names then.
        let name = point.split_once(' ').unwrap().1;
        return if names.iter().any(|other| other == name) {
            Err(format!("it lives: {ran:?}"))
        } else {
            Ok(())
        };
    }
    let files = place.transcripts();
    let left = files.first().map_or(Vec::new(), |file| std::fs::read(file).unwrap());
    let recorded: HashSet<String> = files.first().map_or(HashSet::new(), |file| {
        lines_of(file).iter().map(|line| line["uuid"].as_str().unwrap_or_default().to_owned()).collect()
    });
    let whole = ran.out.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let told: Vec<Value> = whole.map(|line| serde_json::from_str(line).unwrap()).collect();
    for frame in told.iter().filter(|frame| ["assistant", "user"].contains(&frame["type"].as_str().unwrap()))
    {
        if !recorded.contains(frame["uuid"].as_str().unwrap()) {
            return Err(format!("told and not recorded: {frame}"));
        }
    }
    let asked_before = server.reply_requests().len();
    if asked_before > 0 && recorded.is_empty() {
        return Err("the model was asked about what was not recorded".to_owned());
    }
    // The rest of the old script must not be played to the session that goes on.
    let server = model(Script::new().step(Step::reply([text("Gone on.")]).always()));
    if !recorded.is_empty() {
        let after = place.task(&server, ["go on", "--resume", SESSION]).run();
        if (after.code, after.out.as_str()) != (Some(0), "Gone on.\n") {
            return Err(format!("it does not go on: {after:?}"));
        }
        let is_torn = !left.ends_with(b"\n");
        if after.err.contains("a damaged line of ") != is_torn {
            return Err(format!("a torn line is told, and nothing else: {:?}", after.err));
        }
        server.assert_clean();
        if !std::fs::read(&files[0]).unwrap().starts_with(&left) {
            return Err("old bytes were changed".to_owned());
        }
        let words = server.reply_requests()[0].body["messages"].to_string();
        for frame in told.iter().filter(|frame| frame["type"] == "assistant") {
            let said = frame["message"]["content"][0]["text"].as_str().unwrap_or_default();
            if !words.contains(said) {
                return Err(format!("what was told is not known any more: {said}"));
            }
        }
    }
    let log = log_of(&place);
    let done: Vec<&str> = log.lines().collect();
    let once: HashSet<&str> = done.iter().copied().collect();
    if once.len() != done.len() {
        return Err(format!("something was done twice: {done:?}"));
    }
    // A call that ran was recorded before.
    let record = String::from_utf8_lossy(&left);
    match done.iter().find(|word| !record.contains(&format!("echo {word}"))) {
        Some(word) => Err(format!("'{word}' was done and nobody knows of the call")),
        None => Ok(()),
    }
}

#[test]
fn pit_S1_pit_L1_a_kill_at_any_point_loses_nothing_and_repeats_nothing() {
    let points = points();
    let names: HashSet<&String> = points.iter().collect();
    assert!(names.len() >= POINTS_MIN, "{points:#?}");
    for kind in
        ["line prompt", "line call", "line result", "line answer", "sync of line", "sync of folder", "told"]
    {
        assert!(points.iter().any(|point| point.contains(kind)), "no {kind} among {points:#?}");
    }
    let next = AtomicUsize::new(0);
    let failed: Vec<String> = std::thread::scope(|scope| {
        let work = || {
            let mut failed = Vec::new();
            while let Some(point) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
                failed.extend(check(point).err().map(|why| format!("{point}: {why}")));
            }
            failed
        };
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "{} of {} points:\n{}", failed.len(), points.len(), failed.join("\n"));
}

/// The disk is full from some line on: the turn stops there, nothing runs that is not recorded, and when there is room the
/// session goes on.
#[test]
fn a_full_disk_stops_the_turn_and_loses_nothing() {
    for name in ["line prompt 1", "line call 1", "line result 1", "line call 3", "line answer 3"] {
        let (place, server) = (Place::new(), model(script()));
        let (ran, names) = run(&place, &server, &[("CRASH_FULL", name)]);
        assert!(names.iter().any(|other| other == name), "{name}: {names:?}");
        assert_eq!(ran.code, Some(1), "{name}: {ran:?}");
        let result = ran.result();
        assert_eq!(result["is_error"], true, "{name}");
        let errors = result["errors"].to_string();
        assert!(
            errors.contains("cannot write the session file") && errors.contains("No space left"),
            "{name}: {errors}"
        );
        let recorded: HashSet<String> = lines_of(&place.transcripts()[0])
            .iter()
            .map(|line| line["uuid"].as_str().unwrap_or_default().to_owned())
            .collect();
        for frame in ran.frames().iter().filter(|frame| frame["type"] == "assistant") {
            let is_told_of_it = frame["error"].is_string();
            assert!(is_told_of_it || recorded.contains(frame["uuid"].as_str().unwrap()), "{name}: {frame}");
        }
        let done = log_of(&place);
        let record = std::fs::read_to_string(&place.transcripts()[0]).unwrap();
        for word in done.lines() {
            assert!(record.contains(&format!("echo {word}")), "{name}: '{word}' ran unrecorded");
        }
        // There is room again.
        if !recorded.is_empty() {
            let server = model(Script::new().reply([text("Gone on.")]));
            let after = place.task(&server, ["go on", "--resume", SESSION]).run();
            assert_eq!((after.code, after.out.as_str()), (Some(0), "Gone on.\n"), "{name}: {after:?}");
            server.assert_clean();
        }
        assert_eq!(done, log_of(&place), "{name}: something was done by going on");
    }
}

/// What the commands did.
fn log_of(place: &Place) -> String {
    if place.has("log") { place.read("log") } else { String::new() }
}
