//! What people see on a terminal, and what a pipe gets instead.

use std::fs::File;
use std::io::Read;
use std::process::Command;
use std::thread::JoinHandle;
use std::time::Duration;

use nix::pty::openpty;
use pelton_testkit::{Part, Script, ScriptedModel, Step, When, error, gate, pause, text, tool};
use serde_json::json;

use crate::place::{Commanded, Place, model, wait};

/// A terminal nobody types at; what is shown on it.
struct Screen {
    device: File,
    shown: JoinHandle<String>,
}

impl Screen {
    fn new() -> Self {
        let pair = openpty(None, None).unwrap();
        let mut master = File::from(pair.master);
        let shown = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let mut buffer = [0; 4096];
            // The end of a terminal is an error on Linux.
            while let Ok(count @ 1..) = master.read(&mut buffer) {
                bytes.extend_from_slice(&buffer[..count]);
            }
            // The terminal's own line ends.
            String::from_utf8(bytes).unwrap().replace("\r\n", "\n")
        });
        Self { device: File::from(pair.slave), shown }
    }

    fn device(&self) -> File {
        self.device.try_clone().unwrap()
    }

    /// What was shown, once nobody has it open.
    fn read(self) -> String {
        drop(self.device);
        self.shown.join().unwrap()
    }
}

/// Runs with standard output and standard error on terminals of their own.
fn on_screens(mut command: Command) -> (Option<i32>, String, String) {
    let (out, err) = (Screen::new(), Screen::new());
    let running = command.stdin(out.device()).stdout(out.device()).stderr(err.device()).start();
    // The command holds the terminals open, too.
    drop(command);
    let ran = running.end();
    (ran.code, out.read(), err.read())
}

/// Runs with both on one terminal, as people do; what is seen, without the colours.
fn on_one_screen(mut command: Command) -> (Option<i32>, String) {
    let screen = Screen::new();
    let running = command.stdin(screen.device()).stdout(screen.device()).stderr(screen.device()).start();
    drop(command);
    let ran = running.end();
    (ran.code, without_colours(&screen.read()))
}

fn without_colours(shown: &str) -> String {
    shown.replace("\u{1b}[2m", "").replace("\u{1b}[0m", "")
}

fn looker() -> ScriptedModel {
    let bash = tool("Bash", json!({"command": "echo out; false", "description": "Look"}));
    model(
        Script::new()
            .reply([text("Let me look."), tool("Read", json!({"file_path": "notes.txt"})), bash])
            .reply([text("It says "), text("hello.")]),
    )
}

const ALLOWED: [&str; 3] = ["look", "--allowedTools", "Bash(*)"];

#[test]
fn loop_Z3_a_terminal_shows_the_answer_and_a_tree_of_what_the_tools_do() {
    let (place, model) = (Place::new(), looker());
    place.put("notes.txt", "hello\n");
    let (code, shown) = on_one_screen(place.task(&model, ALLOWED));
    assert_eq!(code, Some(0));
    // A line of the tree starts on a line of its own, so the words before it end one.
    let (told, took) = shown.trim_end().rsplit_once(" · ").unwrap();
    let expected = "Let me look.\n├─ Reading notes.txt · 1 line\n├─ Running echo out; false · failed: Exit code 1…\n\
                    It says hello.\n└─ 2 turns · 2 tool calls";
    assert_eq!(told, expected);
    assert!(took.ends_with(" ms") || took.ends_with(" s"), "{took}");
}

#[test]
fn an_agents_calls_are_a_branch_of_the_call_that_started_it() {
    let place = Place::new();
    place.put("notes.txt", "hello\n");
    let child = || When::any().system("working for another agent");
    let model = model(
        Script::new()
            .reply([tool("Agent", json!({"description": "look around", "prompt": "look"}))])
            .step(
                Step::reply([tool("Read", json!({"file_path": "notes.txt"}))])
                    .when(child().last_user_text("look")),
            )
            .step(Step::reply([text("Nothing there.")]).when(child()))
            .reply([text("Done.")]),
    );
    let (code, shown) = on_one_screen(place.task(&model, ["go"]));
    assert_eq!(code, Some(0));
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], "│  ├─ Reading notes.txt · 1 line", "{shown}");
    assert!(
        lines[1].starts_with("├─ Agent: look around · 1 tool call · ") && lines[1].ends_with(" tokens"),
        "{shown}"
    );
    assert_eq!(lines[2], "Done.", "{shown}");
}

/// Two threads that write to one terminal would mix words and notices, but not every time.
#[test]
fn loop_Z3_every_notice_and_every_tool_starts_on_a_line_of_its_own() {
    let runs: Vec<JoinHandle<(Option<i32>, String)>> = (0..6)
        .map(|_| std::thread::spawn(|| on_one_screen(Place::new().pelton(["demo", "--fault", "cut"]))))
        .collect();
    for run in runs {
        let (code, shown) = run.join().unwrap();
        assert_eq!(code, Some(0), "{shown}");
        for mark in ["! the connection", "├─ ", "└─ "] {
            let (all, starts) =
                (shown.matches(mark).count(), shown.lines().filter(|line| line.starts_with(mark)).count());
            assert!(all > 0 && all == starts, "{mark}: {starts} of {all} start a line\n{shown}");
        }
        // What was said before a notice stands before it, and what was said after it, after it.
        let lines: Vec<&str> = shown.lines().collect();
        let first = lines.iter().position(|line| line.starts_with("! ")).unwrap();
        assert!(lines[first - 1].starts_with("The failing checks"), "{shown}");
        assert!(lines[first].ends_with("; the answer starts again"), "{shown}");
        assert!(lines[first + 1].starts_with("The failing checks"), "{shown}");
    }
}

#[test]
fn a_command_that_takes_long_is_announced() {
    let place = Place::new();
    let bash = |command: &str| tool("Bash", json!({"command": command, "description": "Wait"}));
    let model = model(
        Script::new()
            .reply([bash("sleep 1.6; touch a; echo slow"), bash("touch b; echo fast")])
            .reply([text("Done.")]),
    );
    let (code, shown) = on_one_screen(place.task(&model, ALLOWED));
    assert_eq!(code, Some(0));
    let lines: Vec<&str> = shown.lines().collect();
    // The second waits for the first, and says nothing before its end.
    assert_eq!(lines[0], "│  Running sleep 1.6; touch a; echo slow …", "{shown}");
    assert!(lines[1].starts_with("├─ Running sleep 1.6; touch a; echo slow · 1 line · "), "{shown}");
    assert_eq!(lines[2..4], ["├─ Running touch b; echo fast · 1 line", "Done."], "{shown}");
    assert!(lines[4].starts_with("└─ "), "{shown}");
    assert_eq!(lines.len(), 5, "{shown}");
}

#[test]
fn an_answer_without_tools_has_no_tree() {
    let (place, model) = (Place::new(), model(Script::new().reply([text("Hello.")])));
    assert_eq!(on_one_screen(place.task(&model, ["talk"])), (Some(0), "Hello.\n".to_owned()));
}

#[test]
fn what_scripts_and_emoji_need_to_join_stays() {
    let words = "می\u{200c}خواهم 👩\u{200d}👧";
    let (place, model) = (Place::new(), model(Script::new().reply([text(words)])));
    assert_eq!(on_one_screen(place.task(&model, ["talk"])), (Some(0), format!("{words}\n")));
}

#[test]
fn colours_are_welcome_on_a_terminal() {
    let (place, model) = (Place::new(), looker());
    place.put("notes.txt", "hello\n");
    let (code, out, err) = on_screens(place.task(&model, ALLOWED));
    assert_eq!((code, out.as_str()), (Some(0), "Let me look.\nIt says hello.\n"));
    assert!(without_colours(&err).len() < err.len(), "{err}");
}

#[test]
fn colours_can_be_refused() {
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let (place, model) = (Place::new(), looker());
        place.put("notes.txt", "hello\n");
        let mut command = place.task(&model, ALLOWED);
        command.env(name, value);
        let (code, out, err) = on_screens(command);
        assert_eq!(code, Some(0));
        assert!(!out.contains('\u{1b}') && !err.contains('\u{1b}'), "{name}: {err:?}");
        assert!(err.contains("├─ Reading notes.txt"), "{err}");
    }
}

#[test]
fn a_pipe_gets_the_last_answer_alone() {
    let (place, model) = (Place::new(), looker());
    place.put("notes.txt", "hello\n");
    assert_eq!(place.task(&model, ALLOWED).run().well(), "It says hello.\n");
}

#[test]
fn a_terminal_sees_words_as_they_come() {
    let place = Place::new();
    let model =
        model(Script::new().reply([text("First half, second half.").fragments([11]).after(1, gate("rest"))]));
    let pair = openpty(None, None).unwrap();
    let mut command = place.task(&model, ["talk"]);
    let running = command.stdout(File::from(pair.slave)).start();
    drop(command);
    let mut screen = File::from(pair.master);
    let mut first = [0; 11];
    // Before the rest is even sent.
    screen.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"First half,");
    wait(model.wait_at_gate("rest"));
    model.open("rest");
    let ran = running.end();
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let mut rest = [0; 15];
    screen.read_exact(&mut rest).unwrap();
    assert_eq!(&rest, b" second half.\r\n");
}

/// Sequences that would move the cursor, set the title, write the clipboard, or hide what is there.
const HOSTILE: &str =
    "a\u{1b}[2Jb\u{1b}]0;title\u{7}c\u{1b}]52;c;aGk=\u{1b}\\d\u{9b}31me\rf\u{8}g\u{202e}h\u{1b}Pq\u{1b}\\i";

#[test]
fn hostile_words_never_reach_a_terminal_as_they_are() {
    let place = Place::new();
    place.put("notes.txt", HOSTILE);
    let calls = || {
        [
            text(HOSTILE).fragments(HOSTILE.chars().count()),
            tool("Read", json!({"file_path": HOSTILE})),
            tool("Grep", json!({"pattern": format!("{HOSTILE}("), "output_mode": "content"})),
            tool(
                "Bash",
                json!({"command": format!("cat notes.txt; echo '{HOSTILE}' >&2; exit 1"), "description": HOSTILE}),
            ),
            tool(format!("None{}", "such"), json!({})),
        ]
    };
    let server = model(Script::new().reply(calls()).reply([text(HOSTILE)]));
    let (code, out, err) = on_screens(place.task(&server, ALLOWED));
    assert_eq!(code, Some(0));
    for sent in [&out, &err] {
        let ours = without_colours(sent);
        let bad: Vec<char> =
            ours.chars().filter(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}').collect();
        assert!(bad.is_empty(), "{bad:?} in {ours:?}");
    }
    assert_eq!(out, "abcdefg‹U+202E›hi\nabcdefg‹U+202E›hi\n");
    // A pipe gets what was said: it is no terminal, and what reads it may want every byte.
    let server = model(Script::new().reply([text(HOSTILE)]));
    assert_eq!(place.task(&server, ["talk"]).run().well(), format!("{HOSTILE}\n"));
}

#[test]
fn a_withdrawn_answer_is_said_to_start_again() {
    let place = Place::new();
    let cut = Step::reply([text("Half of it")]).fault(pelton_testkit::Fault::cut_after_events(4));
    let model = model(Script::new().step(cut).reply([text("All of it.")]));
    let (code, out, err) = on_screens(place.task(&model, ["talk"]));
    assert_eq!(code, Some(0));
    assert!(err.contains("the answer starts again"), "{err}");
    assert!(out.ends_with("\nAll of it.\n"), "{out:?}");
}

#[test]
fn loop_T4_words_that_count_no_more_do_not_run_into_the_answer_that_does() {
    let place = Place::new();
    let cut = Step::reply([text("First try")]).stop("max_tokens");
    let model = model(Script::new().step(cut).reply([text("All of it.")]));
    let mut task = place.task(&model, ["talk"]);
    task.env("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "4000");
    let expected = "First try\n! the answer above does not count; it starts again\nAll of it.\n";
    assert_eq!(on_one_screen(task), (Some(0), expected.to_owned()));
}

/// The first model breaks off while it says this, and another is asked.
fn broken_off(said: impl IntoIterator<Item = Part>) -> ScriptedModel {
    let breaks = text("begun to speak").fragments(2).after(1, error("api_error", "x"));
    let broken = Step::reply(said.into_iter().chain([breaks])).when(When::any().model("claude-sonnet-5-5"));
    model(
        Script::new()
            .step(broken)
            .step(Step::reply([text("All of it.")]).when(When::any().model("claude-haiku-4-5"))),
    )
}

const TWO_MODELS: [&str; 5] =
    ["talk", "--model", "claude-sonnet-5-5", "--fallback-model", "claude-haiku-4-5"];
const CHANGED: &str = "! claude-sonnet-5-5 does not answer: asking claude-haiku-4-5 from here on";

#[test]
fn loop_T8_another_model_is_said_to_be_asked_and_whether_the_answer_starts_again() {
    let task = |place: &Place, model: &ScriptedModel| {
        let mut task = place.task(model, TWO_MODELS);
        task.env("CLAUDE_CODE_MAX_RETRIES", "1");
        task
    };
    // Nothing of it was complete; a call was, which goes with it; words were, which stay.
    let glob = tool("Glob", json!({"pattern": "*"}));
    // Long enough for the call to be named.
    let silence = pause(Duration::from_millis(2500));
    let taken_back =
        "! the answer above does not count; it starts again\n├─ Finding * · taken back with its answer\n";
    for (said, notices) in [
        (vec![], format!("{CHANGED}; the answer starts again\n")),
        (vec![glob, silence], format!("{taken_back}{CHANGED}\n")),
        (vec![text("Half. ")], format!("{CHANGED}\n")),
    ] {
        let (place, model) = (Place::new(), broken_off(said));
        let (code, shown) = on_one_screen(task(&place, &model));
        assert_eq!(code, Some(0), "{shown}");
        assert!(shown.contains("begun t\n"), "{shown}");
        assert!(shown.contains(&format!("\n{notices}All of it.\n")), "{shown}");
        assert_eq!(shown.contains("starts again"), notices.contains("starts again"), "{shown}");
    }
    // A pipe has only what counts, and the change is told beside it.
    let (place, model) = (Place::new(), broken_off([]));
    let ran = task(&place, &model).run();
    assert_eq!((ran.out.as_str(), ran.err), ("All of it.\n", format!("{CHANGED}\n")));
}

#[test]
fn without_any_terminal_there_is_nothing_to_ask_for() {
    let (place, model) = (Place::new(), looker());
    place.put("notes.txt", "hello\n");
    // No controlling terminal at all.
    let mut command = place.shell("exec setsid \"$PELTON\" -p look --allowedTools 'Bash(*)' < /dev/null");
    let ran = command.asks(&model).run();
    assert_eq!(ran.well(), "It says hello.\n");
    assert!(ran.took < Duration::from_secs(5));
}
