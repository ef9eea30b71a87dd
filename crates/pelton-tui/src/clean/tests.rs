use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// What comes in, by name, and what of it is shown. Tests with a real terminal print the same.
fn hostile() -> Vec<(String, String, String)> {
    let table: Value = serde_json::from_str(include_str!("../../tests/hostile_output.json")).unwrap();
    let word = |row: &Value, key: &str| row[key].as_str().map(str::to_owned);
    let rows = table.as_array().unwrap().iter().map(|row| {
        let text = word(row, "text").unwrap_or_else(|| {
            let digits = word(row, "bytes").unwrap();
            let bytes: Vec<u8> = (0..digits.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
                .collect();
            String::from_utf8_lossy(&bytes).into_owned()
        });
        (word(row, "name").unwrap(), text, word(row, "shown").unwrap())
    });
    rows.collect()
}

fn in_pieces(pieces: &[&str]) -> String {
    let mut lines = Lines::default();
    let mut all: Vec<String> = pieces.iter().flat_map(|piece| lines.push(piece)).collect();
    all.extend(lines.finish());
    all.join("\n")
}

fn is_safe(text: &str) -> bool {
    text.chars().all(|c| c == '\n' || !c.is_control())
}

#[test]
fn nothing_foreign_reaches_the_terminal() {
    let table = hostile();
    assert!(table.len() >= 200, "{}", table.len());
    for (name, hostile, shown) in table {
        assert_eq!(text(&hostile), shown, "{name}");
        assert!(is_safe(&shown), "{name}");
        // Wherever it is cut.
        for (cut, _) in hostile.char_indices().take(200) {
            assert_eq!(in_pieces(&[&hostile[..cut], &hostile[cut..]]), shown, "{name}, cut at {cut}");
        }
        let each: Vec<String> = hostile.chars().map(String::from).collect();
        let each: Vec<&str> = each.iter().map(String::as_str).collect();
        assert_eq!(in_pieces(&each), shown, "{name}, one by one");
    }
}

#[test]
fn in_a_question_nothing_of_it_is_hidden() {
    for (name, hostile, _) in hostile() {
        let seen = revealed(&hostile);
        assert!(is_safe(&seen) && !seen.chars().any(unseen), "{name}: {seen:?}");
        for c in hostile.chars().filter(|c| c.is_control() || unseen(*c)) {
            let told = matches!(c, '\n' | '\t') || seen.contains(&shown(c));
            assert!(told, "{name}: {c:?} is not told in {seen:?}");
        }
    }
    for (said, seen) in [
        ("rm -rf ~\recho ok", "rm -rf ~‹U+000D›echo ok"),
        ("echo \u{1b}[8mrm\u{1b}[0m", "echo ‹U+001B›[8mrm‹U+001B›[0m"),
        ("echo a\u{a0}b", "echo a‹U+00A0›b"),
        ("echo\u{3000}b", "echo‹U+3000›b"),
        ("a\u{2800}b", "a‹U+2800›b"),
        ("👩\u{200d}👧", "👩‹U+200D›👧"),
        ("日本語 é", "日本語 é"),
        ("a\tb", "a       b"),
        ("ab\n\tc", "ab\n        c"),
        ("x\u{202e}y", "x‹U+202E›y"),
    ] {
        assert_eq!(revealed(said), seen, "{said:?}");
    }
    let far = format!("ls{}; rm -rf ~", " ".repeat(500));
    assert_eq!(revealed(&far), "ls‹500 spaces›; rm -rf ~");
    let below = format!("ls{}rm -rf ~", "\n".repeat(60));
    assert_eq!(revealed(&below), "ls\n‹59 empty lines›\nrm -rf ~");
    assert_eq!(revealed("a  b\n\n\nc  "), "a  b\n\n\nc  ");
    let tower = format!("a{}", "\u{301}".repeat(10));
    assert_eq!(revealed(&tower), format!("a{}‹U+0301›‹U+0301›", "\u{301}".repeat(8)));
}

#[test]
fn one_line_is_one_line() {
    for (said, shown) in [
        ("plain", "plain"),
        ("  two\n  lines\n", "two ⏎ lines"),
        ("\n\n", ""),
        ("a\u{1b}]0;x\u{7}b", "ab"),
        ("a\r\nb", "a ⏎ b"),
        ("a\u{2028}b", "a‹U+2028›b"),
    ] {
        assert_eq!(line(said), shown, "{said:?}");
    }
}

#[test]
fn words_that_stream_keep_their_lines() {
    for (said, shown) in [
        ("a\r\nb\rc\n", "a\nb\nc\n"),
        ("a\r\r\nb", "a\n\nb"),
        ("a\r\u{1b}[m\nb", "a\nb"),
        ("\tcode", "\tcode"),
        ("back\u{8}space", "backspace"),
        ("\u{1b}[31mred\u{1b}[m", "red"),
    ] {
        assert_eq!(Cleaner::default().push(said), shown, "{said:?}");
    }
}

#[test]
fn long_lines_are_kept_in_part() {
    let long = "x".repeat(LINE_CELLS_MAX + 7);
    assert_eq!(text(&long), format!("{}… (+7 characters)", "x".repeat(LINE_CELLS_MAX)));
    // What replaces it is a line of its own.
    assert_eq!(text(&format!("{long}\rshort")), "short");
    assert_eq!(text(&"x".repeat(LINE_CELLS_MAX)), "x".repeat(LINE_CELLS_MAX));
}

#[test]
fn a_line_is_seen_before_it_ends() {
    let mut lines = Lines::default();
    assert!(lines.push("10%").is_empty());
    assert_eq!(lines.current(), "10%");
    assert!(lines.push("\r").is_empty());
    assert_eq!(lines.current(), "10%");
    assert!(lines.push("20").is_empty());
    assert_eq!(lines.current(), "20");
    assert_eq!(lines.push("%\nnext"), ["20%"]);
    assert_eq!(lines.finish().as_deref(), Some("next"));
}

#[test]
fn nothing_joins_what_is_gone() {
    assert_eq!(text("日\r\u{200d}x"), "‹U+200D›x");
    assert_eq!(text("a日\u{8}\u{200d}x"), "a‹U+200D›x");
    let tower = "\u{301}".repeat(8);
    assert_eq!(text(&format!("a{tower}\rb\u{301}")), "b\u{301}");
}

/// Texts made of what matters here: sequences, their parts, and words.
fn texts() -> impl Strategy<Value = Vec<String>> {
    let part = prop_oneof![
        3 => "[a-z ]{0,6}",
        3 => prop::sample::select(vec![
            "\u{1b}", "\u{1b}[", "\u{1b}]", "\u{1b}P", "\u{1b}\\", "\u{7}", "\u{9b}", "\u{9c}", "\u{9d}", "\r", "\n",
            "\r\n", "\u{8}", "\t", "0;", "2J", "m", "\u{18}", "\u{200d}", "\u{fe0f}", "\u{202e}", "\u{301}", "日", "👩", "\u{ad}",
        ]).prop_map(str::to_owned),
        1 => "\\PC{0,4}",
        1 => any::<Vec<u8>>().prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    ];
    prop::collection::vec(part, 0..24)
}

proptest! {
    #[test]
    fn however_it_is_cut_the_same_is_shown(pieces in texts()) {
        let whole = pieces.concat();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        prop_assert_eq!(in_pieces(&pieces), text(&whole));
        let mut cleaner = Cleaner::default();
        let streamed: String = pieces.iter().map(|piece| cleaner.push(piece)).collect();
        prop_assert_eq!(streamed, Cleaner::default().push(&whole));
    }

    #[test]
    fn nothing_that_comes_out_is_more_than_text(pieces in texts()) {
        let whole = pieces.concat();
        prop_assert!(is_safe(&text(&whole)));
        prop_assert!(is_safe(&Cleaner::default().push(&whole).replace('\t', "")));
        prop_assert!(is_safe(&line(&whole)) && !line(&whole).contains('\n'));
        prop_assert!(is_safe(&revealed(&whole)) && !revealed(&whole).chars().any(unseen));
    }

    #[test]
    fn what_is_clean_stays_as_it_is(pieces in texts()) {
        let once = text(&pieces.concat());
        prop_assert_eq!(text(&once), once.strip_suffix('\n').unwrap_or(&once));
    }
}
