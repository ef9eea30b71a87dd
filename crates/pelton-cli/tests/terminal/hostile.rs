//! What comes from outside is shown and does nothing else; whoever answers a question has seen all that it is about.

use pelton_testkit::{Part, Script, text, tool};
use serde_json::{Value, json};

use crate::place::{Place, model};
use crate::seat::Seat;

#[test]
fn what_a_question_asks_about_is_all_seen() {
    let place = Place::new();
    let hidden = "echo \u{1b}[8mrm\u{1b}[0m a\u{202e}b \u{200b}> x\rls";
    let model =
        model(Script::new().reply([tool("Bash", json!({"command": hidden}))]).reply([text("Then not.")]));
    let seat = Seat::at(&place, &model, ["go"]);
    seat.sees("Run this command?");
    let screen = seat.screen();
    for written_out in ["‹U+001B›[8mrm‹U+001B›[0m", "a‹U+202E›b", "‹U+200B›> x", "‹U+000D›ls"]
    {
        assert!(screen.contains(written_out), "{written_out}:\n{screen}");
    }
    assert!(!place.has("x"));
}

/// What comes in, by name.
fn hostile() -> Vec<(String, Vec<u8>)> {
    let table: Value =
        serde_json::from_str(include_str!("../../../pelton-tui/tests/hostile_output.json")).unwrap();
    let bytes = |row: &Value| match row["text"].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => {
            let digits = row["bytes"].as_str().unwrap();
            let pairs = (0..digits.len()).step_by(2);
            pairs.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
        }
    };
    let rows = table.as_array().unwrap().iter();
    rows.map(|row| (row["name"].as_str().unwrap().to_owned(), bytes(row))).collect()
}

/// Every sequence and control character among bytes for a terminal that is none of those that are ours.
pub fn foreign(bytes: &[u8]) -> Vec<String> {
    let shown = std::str::from_utf8(bytes).expect("a terminal is sent text");
    let mut foreign = Vec::new();
    let mut rest = shown;
    while let Some(at) = rest.find(char::is_control) {
        rest = &rest[at..];
        let sequence = match rest.strip_prefix("\u{1b}[") {
            Some(inside) => {
                let end = inside.find(|c: char| !(' '..='?').contains(&c)).map_or(rest.len(), |at| at + 3);
                rest.get(..end).unwrap_or(rest)
            }
            None => &rest[..rest.chars().next().map_or(0, char::len_utf8)],
        };
        if !is_ours(sequence) {
            foreign.push(sequence.escape_default().to_string());
        }
        rest = &rest[sequence.len()..];
    }
    foreign
}

fn is_ours(sequence: &str) -> bool {
    const WHOLE: [&str; 10] = [
        "\r",
        "\n",
        "\u{1b}[J",
        "\u{1b}[K",
        "\u{1b}[?25l",
        "\u{1b}[?25h",
        "\u{1b}[?2026h",
        "\u{1b}[?2026l",
        "\u{1b}[?2004h",
        "\u{1b}[?2004l",
    ];
    let inside = sequence.strip_prefix("\u{1b}[").unwrap_or_default();
    let numbers =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b';');
    // Ours take back everything before them, so that none of others' could pass as one.
    let is_colour = inside
        .strip_suffix('m')
        .is_some_and(|codes| codes == "0" || codes.starts_with("0;") && numbers(codes));
    let moves = inside.strip_suffix(['A', 'B', 'C']).is_some_and(|rows| numbers(rows) && !rows.contains(';'));
    WHOLE.contains(&sequence) || is_colour || moves
}

#[test]
fn nothing_foreign_reaches_the_terminal_whatever_says_it() {
    const AT_ONCE: usize = 20;
    let place = Place::new();
    let cases = hostile();
    assert!(cases.len() >= 200, "{}", cases.len());
    let mut script = Script::new();
    for (at, cases) in cases.chunks(AT_ONCE).enumerate() {
        let mut parts: Vec<Part> = Vec::new();
        for (number, (_, bytes)) in cases.iter().enumerate() {
            std::fs::create_dir_all(place.work().join(format!("b{at}"))).unwrap();
            std::fs::write(place.work().join(format!("b{at}/{number:02}")), [bytes, &b"\n"[..]].concat())
                .unwrap();
            let words = String::from_utf8_lossy(bytes);
            // Words of the model, cut anywhere, and names of files that it is told do not exist.
            parts.push(text(words.clone()).fragments(3));
            parts.push(tool("Read", json!({"file_path": format!("no-{words}")})));
        }
        // Output of commands, as it comes, and as the reason why one failed.
        parts.push(tool(
            "Bash",
            json!({"command": format!("cat b{at}/*; sleep 0.1"), "description": "Print"}),
        ));
        parts.push(tool(
            "Bash",
            json!({"command": format!("cat b{at}/* >&2; exit 1"), "description": "Fail"}),
        ));
        script = script.reply(parts);
    }
    let model = model(script.reply([text("That was all.")]));
    let mut seat = Seat::at(&place, &model, ["--allowedTools", "Bash", "--", "go"]);
    seat.sees("That was all.");
    seat.rests();
    // All of it once more, unfolded.
    seat.types("\u{f}");
    seat.until("it is unfolded", |seat| seat.rows().iter().any(|row| row.starts_with("▾ Running cat")));
    // A name of the user's, and a session that is looked for by what was said in it.
    seat.types("/rename");
    seat.types(" \u{1b}[200~a\u{1b}]0;owned\u{7}b\u{1b}[201~\r");
    seat.sees("this session is called");
    seat.types("/exit\r");
    assert_eq!(seat.ends(), Some(0));
    assert_eq!(foreign(&seat.bytes()), Vec::<String>::new());
    let mut seat = Seat::at(&place, &model, ["--continue"]);
    seat.sees("That was all.");
    seat.types("/exit\r");
    assert_eq!(seat.ends(), Some(0));
    assert_eq!(foreign(&seat.bytes()), Vec::<String>::new());
    // What looks for them finds them.
    assert_eq!(foreign(b"a\x1b[0;1mb\r\n\x1b[2A\x1b[K"), Vec::<String>::new());
    for (alien, count) in [
        ("\u{1b}[31m", 1),
        ("\u{1b}[2J", 1),
        ("\u{1b}]0;x\u{7}", 2),
        ("\u{9b}2J", 1),
        ("a\tb\u{8}", 2),
        ("\u{1b}[1;1H", 1),
    ] {
        assert_eq!(foreign(alien.as_bytes()).len(), count, "{alien:?}");
    }
}
