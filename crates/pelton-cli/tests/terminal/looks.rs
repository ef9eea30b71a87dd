//! What it looks like: as many colours as the terminal has, and the user's own line about the session.

use std::collections::BTreeSet;

use pelton_testkit::{Script, Step, gate, text, tool};
use serde_json::json;

use crate::place::{Commanded, Place, model};
use crate::seat::Seat;

/// Every colour that a session with code, a diff and an error was given, as the numbers of its sequence.
fn colours(settings: &str, env: &[(&str, &str)]) -> BTreeSet<String> {
    let place = Place::new();
    std::fs::write(place.config().join("settings.json"), settings).unwrap();
    let write = tool("Write", json!({"file_path": "new.txt", "content": "one\ntwo\n"}));
    let model = model(
        Script::new()
            .reply([text("# Title\n\n```rust\nfn main() { let x = \"y\"; }\n```\n\n"), write])
            .reply([tool("Read", json!({"file_path": "none"}))])
            .reply([text("It **ends** here.")]),
    );
    let mut command = place.pelton(["--permission-mode", "acceptEdits", "go"]);
    command.asks(&model).env("TERM", "xterm").env("LANG", "C.UTF-8").envs(env.iter().copied());
    let mut seat = Seat::with(command, 80, 24);
    seat.sees("It ends here.");
    seat.rests();
    // Nothing is told by colour alone.
    let rows = seat.rows().join("\n");
    assert!(rows.contains("+ one") && rows.contains("failed: "), "{rows}");
    seat.types("\u{4}");
    assert_eq!(seat.ends(), Some(0));
    let shown = String::from_utf8(seat.bytes()).unwrap();
    let sequences = shown.split("\u{1b}[0;").skip(1).filter_map(|rest| rest.split_once('m'));
    sequences.map(|(codes, _)| codes.to_owned()).collect()
}

/// The numbers that are colours, without those that are bold, dim and the like.
fn hues(colours: &BTreeSet<String>) -> BTreeSet<String> {
    let is_hue =
        |codes: &&String| codes.split(';').any(|code| code.parse::<u16>().is_ok_and(|code| code >= 30));
    colours.iter().filter(is_hue).cloned().collect()
}

#[test]
fn a_terminal_gets_the_colours_it_has() {
    let bare = colours("{}", &[("NO_COLOR", "1")]);
    assert!(!bare.is_empty() && hues(&bare).is_empty(), "without colours there is bold and dim: {bare:?}");
    let few = colours("{}", &[]);
    let is_named = |code: &str| {
        code.parse::<u16>().is_ok_and(|code| {
            code < 10 || (30..50).contains(&code) && code != 38 && code != 48 || (90..108).contains(&code)
        })
    };
    assert!(!hues(&few).is_empty() && few.iter().all(|codes| codes.split(';').all(is_named)), "{few:?}");
    let many = colours("{}", &[("TERM", "xterm-256color")]);
    assert!(
        many.iter().any(|codes| codes.contains("38;5;")) && !many.iter().any(|codes| codes.contains("38;2;")),
        "{many:?}"
    );
    let all = colours("{}", &[("COLORTERM", "truecolor")]);
    assert!(all.iter().any(|codes| codes.contains("38;2;")), "{all:?}");
}

#[test]
fn a_light_background_gets_other_colours_than_a_dark_one() {
    let theme = |name: &str| colours(&json!({"theme": name}).to_string(), &[("COLORTERM", "truecolor")]);
    let (dark, light) = (theme("dark"), theme("light"));
    assert!(hues(&dark).is_disjoint(&hues(&light)), "{dark:?} {light:?}");
    assert_eq!(
        colours("{}", &[("COLORTERM", "truecolor"), ("COLORFGBG", "0;15")]),
        light,
        "the terminal says so"
    );
    let ansi = theme("dark-ansi");
    assert!(!ansi.iter().any(|codes| codes.contains("38;2;")), "{ansi:?}");
}

#[test]
fn a_status_line_of_ones_own_is_told_what_there_is_and_keeps_its_colours() {
    let place = Place::new();
    let told = place.temp().join("told.json");
    let script = format!(
        "cat > {0}.new && mv {0}.new {0}; printf '\\033[32mready\\033[0m \\033]0;owned\\007in %s\\n' \"$COLUMNS\"",
        told.display()
    );
    let settings = json!({"statusLine": {"type": "command", "command": script, "padding": 1}});
    std::fs::write(place.config().join("settings.json"), settings.to_string()).unwrap();
    let write = tool("Write", json!({"file_path": "new.txt", "content": "one\ntwo\n"}));
    let edit = tool("Edit", json!({"file_path": "new.txt", "old_string": "two\n", "new_string": ""}));
    let model = model(Script::new().reply([write]).reply([edit]).step(Step::reply([text("Well.")]).always()));
    let other = place.temp().canonicalize().unwrap();
    let other_dir = other.to_str().unwrap();
    let words =
        ["--permission-mode", "acceptEdits", "--effort", "low", "--name", "The shop", "--add-dir", other_dir];
    let mut command = place.pelton(words);
    command.asks(&model).env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
    let mut seat = Seat::with(command, 80, 24);
    seat.sees(" ready in 80");
    seat.types("hello\r");
    seat.sees("Well.");
    seat.until("it is told what was spent", |_| {
        let text = std::fs::read_to_string(&told).unwrap_or_default();
        let facts: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        facts["cost"]["total_cost_usd"].as_f64().is_some_and(|usd| usd > 0.0)
            && facts["workspace"]["current_dir"] == place.work().to_str().unwrap()
            && facts["workspace"]["added_dirs"] == json!([other])
            && facts["cost"]["total_lines_added"] == 2
            && facts["cost"]["total_lines_removed"] == 1
            && facts["effort"]["level"] == "low"
            && facts["model"]["id"].is_string()
            && facts["context_window"]["current_usage"]["input_tokens"].is_number()
            && facts["context_window"]["total_output_tokens"].as_u64().is_some_and(|tokens| tokens > 0)
            && facts["session_name"] == "The shop"
            && facts["fast_mode"] == false
            && facts["thinking"] == json!({"enabled": true})
            && facts["context_window"]["used_percentage"].is_number()
            && facts["transcript_path"].as_str().is_some_and(|file| file.ends_with(".jsonl"))
    });
    let shown = String::from_utf8(seat.bytes()).unwrap();
    assert!(shown.contains("\u{1b}[0;38;5;2mready") && !shown.contains("owned"), "{shown:?}");
}

#[test]
fn a_status_line_that_never_ends_costs_nothing() {
    let place = Place::new();
    let settings = json!({"statusLine": {"type": "command", "command": "yes on and on"}});
    std::fs::write(place.config().join("settings.json"), settings.to_string()).unwrap();
    let model = model(Script::new().step(Step::reply([text("Well.")]).always()));
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("on and on");
    seat.types("hello\r");
    seat.sees("Well.");
    let status = std::fs::read_to_string(format!("/proc/{}/status", seat.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak_kb: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak_kb < 200_000, "{peak_kb} kB");
}

#[test]
fn a_status_line_of_ones_own_has_no_terminal_and_leaves_nothing_behind() {
    let place = Place::new();
    let pid = place.temp().join("pid");
    let script = format!(
        "printf '\\033]52;c;b3duZWQ=\\007' > /dev/tty; sleep 600 & echo $! > {0}.new; mv {0}.new {0}; wait",
        pid.display()
    );
    let settings = json!({"statusLine": {"type": "command", "command": script}});
    std::fs::write(place.config().join("settings.json"), settings.to_string()).unwrap();
    let model = model(Script::new().step(Step::reply([text("Well.")]).always()));
    let mut seat = Seat::at(&place, &model, []);
    seat.until("it runs", |_| pid.exists());
    let first = std::fs::read_to_string(&pid).unwrap();
    let runs = |pid: &str| std::path::Path::new("/proc").join(pid.trim()).exists();
    assert!(runs(&first));
    // Something happens: what it would say is of yesterday, and it ends with all it has started.
    seat.types("hello\r");
    seat.sees("Well.");
    seat.until("it is asked anew", |_| std::fs::read_to_string(&pid).unwrap() != first);
    seat.until("what it had started is gone", |_| !runs(&first));
    seat.types("\u{4}");
    assert_eq!(seat.ends(), Some(0));
    let last = std::fs::read_to_string(&pid).unwrap();
    seat.until("nothing is left behind", |_| !runs(&last));
    let shown = String::from_utf8(seat.bytes()).unwrap();
    assert!(!shown.contains("b3duZWQ="), "{shown:?}");
}

/// Hooks may have other words shown, line by line; the conversation and its record keep what was said.
#[test]
fn hooks_say_what_of_an_answer_is_shown() {
    let place = Place::new();
    let shouts = r#"d=$(tr -d '\n' | sed -E 's/.*"delta":"(([^"\\]|\\.)*)".*/\1/; s/secret/[hidden]/g'); printf '{"hookSpecificOutput": {"hookEventName": "MessageDisplay", "displayContent": "%s"}}' "$d""#;
    let settings =
        json!({"hooks": {"MessageDisplay": [{"hooks": [{"type": "command", "command": shouts}]}]}});
    std::fs::write(place.config().join("settings.json"), settings.to_string()).unwrap();
    let looks = tool("Glob", json!({"pattern": "*.none"}));
    let script = Script::new()
        .reply([text("First the secret one.\n\nThen the secret oth"), gate("rest"), text("er."), looks])
        .step(Step::reply([text("That was **all** of the secret.")]).always());
    let model = model(script);
    let mut command = place.pelton([]);
    command.asks(&model).env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
    let mut seat = Seat::with(command, 80, 24);
    seat.sees("asks before changes");
    seat.types("hello\r");
    seat.sees("First the [hidden] one.");
    model.open("rest");
    seat.sees("Then the [hidden] other.");
    seat.sees("That was all of the [hidden].");
    seat.rests();
    assert!(!seat.rows().join("\n").contains("secret"), "{:?}", seat.rows());
    seat.types("\u{4}");
    assert_eq!(seat.ends(), Some(0));
    assert!(!String::from_utf8_lossy(&seat.bytes()).contains("secret"));
    let sent = model.requests().last().unwrap().body["messages"].to_string();
    assert!(sent.contains("First the secret one."), "the model knows what it said: {sent}");
}
