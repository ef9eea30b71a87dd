use super::*;
use crate::theme::{Surroundings, Wanted};

#[test]
fn lines_are_broken_between_words() {
    for (line, rows) in [
        ("", &[""][..]),
        ("short", &["short"]),
        ("files and code; nothing else", &["files and", "code;", "nothing", "else"]),
        // What is longer than a row is broken where it can be.
        ("see https://a.example/long/path", &["see https:", "//", "a.example/", "long/path"]),
        ("漢字漢字漢字漢字", &["漢字漢字漢", "字漢字"]),
    ] {
        assert_eq!(wrapped(line, 10), rows, "{line}");
    }
}

#[test]
fn what_was_typed_is_told_from_what_was_put_around_it() {
    for (recorded, typed) in [
        ("  hello\nthere ", "hello\nthere"),
        ("<b>bold</b> is not bold", "<b>bold</b> is not bold"),
        ("<bash-input>ls -l</bash-input>\n<bash-output>a b</bash-output>", "!ls -l"),
        ("<bash-input>ls -l", ""),
        ("<system-reminder>\nnobody typed this</system-reminder>", ""),
        ("<command-name>/x</command-name>", ""),
        ("<local-command-stdout></local-command-stdout>", ""),
    ] {
        assert_eq!(as_typed(recorded), typed, "{recorded}");
    }
}

#[test]
fn an_answer_that_has_begun_keeps_its_words_and_its_looks_in_other_colours() {
    let theme = |name: &str| {
        Theme::new(
            Surroundings {
                term: Some("xterm-256color"),
                colorterm: Some("truecolor"),
                ..Surroundings::default()
            },
            Wanted::named(name).unwrap(),
        )
    };
    let (dark, light) = (theme("dark"), theme("light"));
    let told = |change: &dyn Fn(&mut Answer)| {
        let mut answer = Answer::new(dark, 40);
        let mut lines = answer.text("a `half` of");
        change(&mut answer);
        lines.extend(answer.text(" a `sentence`\n\n"));
        lines.extend(answer.finish());
        (answer, lines)
    };
    let (mut changed, lines) = told(&|answer| answer.dress(light));
    assert_eq!(lines, told(&|_| {}).1);
    assert!(lines[0].to_string().contains("a half of a sentence"), "{lines:?}");
    // The next one has the other colours, and so has one that nothing stood before.
    let looks = |answer: &mut Answer| [answer.text("the `next`\n\n"), answer.finish()].concat();
    assert_eq!(looks(&mut changed), looks(&mut Answer::new(light, 40)));
    let mut fresh = Answer::new(dark, 40);
    fresh.dress(light);
    assert_eq!(looks(&mut fresh), looks(&mut Answer::new(light, 40)));
    assert_ne!(looks(&mut fresh), looks(&mut Answer::new(dark, 40)));
}
