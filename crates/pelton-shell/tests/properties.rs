//! What holds for every text: no panic, linear time, and quotes that change nothing.

use std::time::{Duration, Instant};

use pelton_shell::{
    COMMAND_MAX_CHARS, Unclear, behind_plain_launchers, further_commands, read, variables_set,
};
use proptest::prelude::*;

/// Everything that can be asked about a text.
fn look_at_all_of(text: &str) {
    let Ok(script) = read(text) else { return };
    for command in &script.commands {
        let _ = (further_commands(command), variables_set(command), behind_plain_launchers(&command.words));
        for word in &command.words {
            let doubts = word.doubts();
            assert_eq!(word.literal().is_some(), doubts.is_empty(), "{text:?}: {word:?}");
            assert!(word.literal().is_none_or(|literal| literal.starts_with(word.literal_prefix())));
        }
    }
}

/// Characters that mean something, and some that do not.
fn shell_character() -> impl Strategy<Value = char> {
    prop_oneof![
        8 => prop::sample::select("'\"`\\$(){}[]<>|&;#!~*?=+-,.:/@^% \t\n".chars().collect::<Vec<_>>()),
        3 => prop::sample::select("abnrmxE012é\u{a0}".chars().collect::<Vec<_>>()),
        1 => any::<char>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_without_panic(text in any::<String>()) {
        look_at_all_of(&text);
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        look_at_all_of(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_signs_are_read_without_panic(letters in prop::collection::vec(shell_character(), 0..60)) {
        look_at_all_of(&letters.into_iter().collect::<String>());
    }

    /// A text in quotes is that text, however it is quoted.
    #[test]
    fn a_quoted_text_is_literal(text in "[^\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f]{0,30}") {
        let single = format!("a '{}'", text.replace('\'', "'\\''"));
        let escape = |c: char| if c == '\n' { "'\n'".to_owned() } else { format!("\\{c}") };
        let escaped = format!("a ''{}", text.chars().map(escape).collect::<String>());
        let double: String = text.chars().flat_map(|c| ['$', '`', '"', '\\'].contains(&c).then_some('\\').into_iter().chain([c])).collect();
        for command in [single, escaped, format!("a \"{double}\"")] {
            let script = read(&command).map_err(|unclear| TestCaseError::fail(format!("{command:?}: {unclear}")))?;
            prop_assert_eq!(script.commands.len(), 1);
            prop_assert_eq!(script.commands[0].words[1].literal(), Some(text.as_str()), "{:?}", command);
        }
    }

    /// Quoting a word that was literal without quotes changes nothing about it.
    #[test]
    fn quotes_around_a_literal_change_nothing(word in "[a-zA-Z0-9_./:@%+,=-]{1,20}", form in 0..5_usize) {
        let quoted = match form {
            0 => format!("'{word}'"),
            1 => format!("\"{word}\""),
            2 => format!("$'{word}'"),
            3 => format!("''{word}\"\""),
            _ => word.chars().map(|c| format!("\\{c}")).collect(),
        };
        let literal = |text: &str| read(&format!("x {text}")).ok()?.commands[0].words[1].literal().map(str::to_owned);
        prop_assert_eq!(literal(&quoted), Some(word));
    }

    /// What stands behind a separator is seen, whatever certain thing stands before it.
    #[test]
    fn a_command_behind_a_separator_is_seen(letters in prop::collection::vec(shell_character(), 0..30), form in 0..4_usize) {
        let before: String = letters.into_iter().collect();
        let separator = [";", "\n", "&&", "|"][form];
        if read(&before).is_ok_and(|script| !script.commands.is_empty()) && !before.contains(['\\', '#', '<']) && !before.trim_end().ends_with(['&', ';', '\n']) {
            let script = read(&format!("{before}{separator} hidden"));
            prop_assert!(script.is_err() || script.is_ok_and(|script| script.commands.iter().any(|it| it.name() == Some("hidden"))), "{:?}", before);
        }
    }
}

#[test]
fn long_texts_are_refused() {
    assert_eq!(read(&"a".repeat(COMMAND_MAX_CHARS + 1)), Err(Unclear::TooLong));
    assert!(read(&"é".repeat(COMMAND_MAX_CHARS)).is_ok());
    assert_eq!(read("echo \u{7}"), Err(Unclear::ControlCharacter(7)));
}

/// The longest texts of the worst kinds take no longer than a moment, in a debug build on a busy machine, too.
#[test]
fn the_worst_texts_take_linear_time() {
    let fill = |piece: &str| piece.repeat(COMMAND_MAX_CHARS / piece.chars().count());
    let pieces = [
        "(",
        "$(",
        "`",
        "'",
        "\"",
        "<<",
        "<<E ",
        "a <<E\n",
        "{",
        "}",
        "{a,",
        "{a,b}",
        "{1..9}",
        "[[ ",
        "((",
        "$((",
        "$[",
        "${",
        "${x:-",
        "\\",
        "\\\n",
        "\\\\",
        "$",
        "a;",
        "a|",
        "a&",
        "a\n",
        "! ",
        "time ",
        "a=(",
        "a[",
        "a=",
        "<(",
        "if ",
        "case a in ",
        "#",
        "# \n",
        "sudo ",
        "eval ",
        "a&&",
        "\"$(",
        "`\\`",
        "{ ",
        "f() ",
        "coproc ",
        "2>",
        ">&",
        "*",
        "[",
        "[]",
        "~",
        "a:~",
        "${#",
        "${!",
        "$'\\",
        "$'",
        "$\"",
        " ",
        "\t",
        "<<-E\n\t",
        "<<'E'\nE\n",
        "a <<E\nE\n",
        "'a'",
        "\"a\"",
        "é",
        "\u{a0}",
        "-",
        "x=$(",
        "\"`",
        "a{b,c}d ",
        "$(a <<E\nE\n)",
        "[[ a =~ (",
        "for i in a; do ",
        "function f ",
        "=",
        "a=b ",
        "env ",
        "xargs ",
        "git -C a ",
        "find -exec ",
        "sh -c '",
    ];
    for piece in pieces {
        let text = fill(piece);
        let started = Instant::now();
        look_at_all_of(&text);
        look_at_all_of(&format!("a {text}"));
        assert!(started.elapsed() < Duration::from_secs(2), "{piece:?} took {:?}", started.elapsed());
    }
    let nested = format!("{}a{}", fill("$(").split_at(4_000).0, ")".repeat(4_000));
    assert_eq!(read(&nested), Err(Unclear::TooDeep));
}
