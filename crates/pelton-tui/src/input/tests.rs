use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

use super::*;
use crate::cells::{width, words_of};

const THEME: Theme = Theme::BARE;

/// Keys as people write them: `ab<C-a><Left><S-Enter>`.
fn keys(written: &str) -> Vec<KeyEvent> {
    let mut keys = Vec::new();
    let mut rest = written;
    while let Some(c) = rest.chars().next() {
        let named = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
        let Some((name, after)) = named else {
            keys.push(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
            rest = &rest[c.len_utf8()..];
            continue;
        };
        rest = after;
        let mut modifiers = KeyModifiers::NONE;
        let mut name = name;
        while let Some((modifier, key)) =
            name.split_once('-').filter(|(modifier, key)| modifier.len() == 1 && !key.is_empty())
        {
            modifiers |= match modifier {
                "C" => KeyModifiers::CONTROL,
                "A" => KeyModifiers::ALT,
                _ => KeyModifiers::SHIFT,
            };
            name = key;
        }
        let code = match name {
            "Enter" => KeyCode::Enter,
            "BS" => KeyCode::Backspace,
            "Del" => KeyCode::Delete,
            "Left" => KeyCode::Left,
            "Right" => KeyCode::Right,
            "Up" => KeyCode::Up,
            "Down" => KeyCode::Down,
            "Home" => KeyCode::Home,
            "End" => KeyCode::End,
            one => KeyCode::Char(one.chars().next().unwrap()),
        };
        keys.push(KeyEvent::new(code, modifiers));
    }
    keys
}

fn typed(editor: &mut Editor, written: &str) -> Vec<Submission> {
    let outcomes = keys(written).into_iter().filter_map(|key| Some(editor.act(command(&key)?)));
    outcomes
        .filter_map(|outcome| if let Outcome::Submit(sent) = outcome { Some(sent) } else { None })
        .collect()
}

/// The text with a bar for the caret.
fn seen(editor: &Editor) -> String {
    let (text, caret) = (editor.buffer.text(), editor.buffer.caret());
    format!("{}|{}", &text[..caret], &text[caret..])
}

fn check(written: &str, expected: &str) {
    let mut editor = Editor::default();
    editor.view(80, 10, &THEME);
    typed(&mut editor, written);
    assert_eq!(seen(&editor), expected, "{written}");
}

#[test]
fn keys_do_what_people_expect() {
    for (written, expected) in [
        ("abc", "abc|"),
        ("abc<Left><Left>X", "aX|bc"),
        ("abc<BS>", "ab|"),
        ("abc<C-h>", "ab|"),
        ("abc<Home><Del>", "|bc"),
        ("abc<C-a>X<C-e>Y", "XabcY|"),
        ("one two<A-b>", "one |two"),
        ("one two<C-Left><C-Left>", "|one two"),
        ("one two<C-a><A-f>", "one| two"),
        ("one two<C-a><C-Right><C-Right>", "one two|"),
        ("one two-three<A-BS>", "one two-|"),
        ("one two-three<C-w>", "one |"),
        ("one two  <C-w>", "one |"),
        ("one two<C-a><A-d>", "| two"),
        ("one two<A-b><C-k>", "one |"),
        ("one two<A-b><C-u>", "|two"),
        ("one two<C-u><C-y><C-y>", "one twoone two|"),
        ("one two<A-BS><A-BS><C-y>", "one two|"),
        ("one two<C-a><A-d><A-d><C-y>", "one two|"),
        ("one<C-u>two<C-u><C-y><A-y>", "one|"),
        ("one<C-u>two<C-u><C-y><A-y><A-y>", "two|"),
        ("a<C-k>b", "ab|"),
        ("a<C-j>b<Up><C-e><C-k>", "a|b"),
        ("a<C-j>b<Home><C-u>", "a|b"),
        ("ab<C-t>", "ba|"),
        ("abc<Left><C-t>", "acb|"),
        ("a<C-t>", "a|"),
        ("one<S-Enter>two", "one\ntwo|"),
        ("one<A-Enter>two", "one\ntwo|"),
        ("one\\<Enter>two", "one\ntwo|"),
        ("one<C-j>two<C-Home>X", "X|one\ntwo"),
        ("one<C-j>two<C-Home><C-End>X", "one\ntwoX|"),
        ("one<C-j>two<C-Home><A-f><A-f>", "one\ntwo|"),
        ("日本語<Left><BS>", "日|語"),
        ("日本語<A-b>", "|日本語"),
        ("<Enter>", "|"),
        ("  <Enter>", "  |"),
    ] {
        check(written, expected);
    }
}

#[test]
fn what_people_see_as_one_is_one() {
    for whole in ["e\u{301}", "👩\u{200d}👩\u{200d}👧", "🇳🇿", "❤\u{fe0f}", "각", "\u{1112}\u{1161}\u{11ab}"]
    {
        let mut editor = Editor::default();
        editor.paste(&format!("a{whole}b"));
        typed(&mut editor, "<Left><BS>");
        assert_eq!(seen(&editor), "a|b", "{whole}");
        typed(&mut editor, "<C-_>");
        assert_eq!(seen(&editor), format!("a{whole}|b"));
        typed(&mut editor, "<Left>");
        assert_eq!(seen(&editor), format!("a|{whole}b"));
    }
    // A mark that is typed joins what stands before it.
    let mut editor = Editor::default();
    for c in ['e', '\u{301}', 'x'] {
        editor.act(Command::Insert(c));
    }
    typed(&mut editor, "<BS><BS>");
    assert_eq!(seen(&editor), "|");
}

#[test]
fn edits_are_undone_word_by_word() {
    let mut editor = Editor::default();
    typed(&mut editor, "one two<C-w>three");
    let mut steps = vec![seen(&editor)];
    for _ in 0..6 {
        typed(&mut editor, "<C-_>");
        steps.push(seen(&editor));
    }
    assert_eq!(steps, ["one three|", "one |", "one two|", "one|", "|", "|", "|"]);
    for expected in ["one|", "one two|", "one |", "one three|", "one three|"] {
        typed(&mut editor, "<A-_>");
        assert_eq!(seen(&editor), expected);
    }
    // Something new takes the way forward away.
    typed(&mut editor, "<C-_>X<A-_>");
    assert_eq!(seen(&editor), "one X|");
}

#[test]
fn up_and_down_go_by_rows() {
    let mut editor = Editor::default();
    editor.view(11, 10, &THEME);
    typed(&mut editor, "long line<C-j>x<C-j>other line");
    typed(&mut editor, "<Up>");
    assert_eq!(seen(&editor), "long line\nx|\nother line");
    // The column is remembered.
    typed(&mut editor, "<Up>");
    assert_eq!(seen(&editor), "long line|\nx\nother line");
    typed(&mut editor, "<Down><Down>");
    assert_eq!(seen(&editor), "long line\nx\nother line|");

    let mut editor = Editor::default();
    editor.view(11, 10, &THEME);
    typed(&mut editor, "aaaa bbbb cccc dddd");
    typed(&mut editor, "<Up>");
    assert_eq!(seen(&editor), "aaaa bbbb| cccc dddd");
    // Wide characters count by their cells.
    let mut editor = Editor::default();
    editor.view(40, 10, &THEME);
    typed(&mut editor, "日本語<C-j>abcd<Up>");
    assert_eq!(seen(&editor), "日本|語\nabcd");
}

#[test]
fn what_was_asked_before_comes_back() {
    let mut editor = Editor::new(History::of(["first".to_owned(), "second".to_owned(), "second".to_owned()]));
    editor.view(80, 10, &THEME);
    typed(&mut editor, "<Up>");
    assert_eq!(seen(&editor), "second|");
    typed(&mut editor, "<Up><Up><Up>");
    assert_eq!(seen(&editor), "first|");
    typed(&mut editor, "<Down><Down>");
    assert_eq!(seen(&editor), "|");
    // With a beginning, only what begins so; and what was written is not lost.
    typed(&mut editor, "fi<Up>");
    assert_eq!(seen(&editor), "first|");
    typed(&mut editor, "<Down>");
    assert_eq!(seen(&editor), "fi|");
    typed(&mut editor, "<BS><BS>nothing<Up>");
    assert_eq!(seen(&editor), "nothing|");
    // Sent prompts are the newest.
    let sent = typed(&mut editor, "<Enter><Up>");
    assert_eq!(sent[0].text, "nothing");
    assert_eq!(seen(&editor), "nothing|");
    // A prompt that is changed is a new one.
    typed(&mut editor, "!<Down>");
    assert_eq!(seen(&editor), "nothing!|");
    // In a prompt of several lines, up is the line above first.
    typed(&mut editor, "<C-u>a<C-j>b<Up>");
    assert_eq!(seen(&editor), "a|\nb");
}

#[test]
fn words_are_found_in_what_was_asked_before() {
    let prompts = ["Fix the parser", "run tests", "fix the lexer"].map(str::to_owned);
    let mut editor = Editor::new(History::of(prompts));
    typed(&mut editor, "draft<C-r>the");
    assert_eq!(
        (editor.shown().as_str(), editor.search().map(|search| search.failed)),
        ("fix the lexer", Some(false))
    );
    typed(&mut editor, "<C-r>");
    assert_eq!(editor.shown(), "Fix the parser");
    typed(&mut editor, "<C-r>");
    assert!(editor.search().is_some_and(|search| search.failed));
    assert_eq!(editor.shown(), "Fix the parser");
    typed(&mut editor, "<C-g>");
    assert_eq!(seen(&editor), "draft|");
    assert!(editor.search().is_none());
    // Capitals count if there are some; Enter takes what was found and does not send it.
    let sent = typed(&mut editor, "<C-r>Fix<Enter>");
    assert!(sent.is_empty());
    assert_eq!(seen(&editor), "Fix the parser|");
    typed(&mut editor, "<C-_>");
    assert_eq!(seen(&editor), "draft|");
    // Any other key takes it, too, and does what it does.
    typed(&mut editor, "<C-r>tests<C-a>X");
    assert_eq!(seen(&editor), "X|run tests");
    // Fewer words find more again.
    typed(&mut editor, "<C-u><C-r>parserx");
    assert!(editor.search().is_some_and(|search| search.failed));
    typed(&mut editor, "<BS>");
    assert!(editor.search().is_some_and(|search| !search.failed && search.words == "parser"));
}

#[test]
fn long_pastes_are_one_sign_and_stay_whole() {
    let mut editor = Editor::default();
    let long: String = (0..313).map(|line| format!("line {line}\n")).collect();
    typed(&mut editor, "see ");
    editor.paste(&long);
    typed(&mut editor, " and ");
    editor.paste(&"x".repeat(5_000));
    editor.paste("short\r\nlines\rhere");
    let shown = "see [Pasted text #1 +313 lines] and [Pasted text #2 +5000 characters]short\nlines\nhere";
    assert_eq!(editor.shown(), shown);
    let sent = typed(&mut editor, "<Enter>").remove(0);
    assert_eq!(sent.text, format!("see {long} and {}short\nlines\nhere", "x".repeat(5_000)));
    assert_eq!(sent.shown, shown);
    // It comes back as it was, and goes with one key.
    typed(&mut editor, "<Up>");
    assert_eq!(editor.shown(), shown);
    assert_eq!(editor.whole(), sent.text);
    typed(&mut editor, "<C-u><C-u><C-u><C-u><C-u><C-u>");
    assert_eq!(editor.shown(), "");
    editor.paste(&long);
    typed(&mut editor, "<BS>");
    assert_eq!(editor.shown(), "");
    typed(&mut editor, "<C-_>");
    assert_eq!(editor.whole(), long);
}

#[test]
fn a_megabyte_is_pasted_at_once_and_intact() {
    let mut editor = Editor::default();
    let line = "All of this has to arrive: äöü 日本語 👩\u{200d}👧 \u{1b}[31m\n";
    let paste = line.repeat(1_048_576 / line.len() + 1);
    let began = Instant::now();
    editor.paste(&paste);
    editor.view(80, 10, &THEME);
    typed(&mut editor, "x");
    editor.view(80, 10, &THEME);
    let took = began.elapsed();
    let sent = typed(&mut editor, "<Enter>").remove(0);
    assert_eq!(sent.text, format!("{paste}x"));
    // A debug build on a busy machine; 50 ms is for a release build.
    assert!(took < Duration::from_millis(1_000), "{took:?}");
}

#[test]
fn pictures_go_along_in_their_order() {
    let mut editor = Editor::default();
    let file = |name: &str| Image::File(name.to_owned());
    editor.attach(file("a.png"));
    typed(&mut editor, " and ");
    editor.attach(file("b.png"));
    typed(&mut editor, "<C-a>");
    editor.attach(Image::Bytes { media_type: "image/png".to_owned(), data: [1, 2].into() });
    let sent = typed(&mut editor, "<Enter>").remove(0);
    assert_eq!(sent.text, "[Image #3][Image #1] and [Image #2]");
    assert_eq!(sent.images.len(), 3);
    assert_eq!(sent.images[1..], [file("a.png"), file("b.png")]);
    // One that was taken out does not.
    editor.attach(file("c.png"));
    let sent = typed(&mut editor, "<BS>words<Enter>").remove(0);
    assert_eq!((sent.text.as_str(), sent.images.len()), ("words", 0));
}

#[test]
fn paths_of_pictures_are_known() {
    for (pasted, path) in [
        ("/tmp/a.png", Some("/tmp/a.png")),
        ("'/tmp/my a.PNG' ", Some("/tmp/my a.PNG")),
        ("\"/tmp/a.jpeg\"", Some("/tmp/a.jpeg")),
        ("/tmp/my\\ a.webp", Some("/tmp/my a.webp")),
        ("/tmp/my a.gif", Some("/tmp/my a.gif")),
        ("file:///tmp/my%20a.png", Some("/tmp/my a.png")),
        ("file://localhost/tmp/%C3%A4.png", Some("/tmp/ä.png")),
        ("shot.jpg", Some("shot.jpg")),
        ("look at shot.jpg", None),
        ("/tmp/a.txt", None),
        (".png", None),
        ("file:///tmp/%zz.png", None),
        ("/tmp/a.png\n/tmp/b.png", None),
        ("", None),
        ("a\\", None),
    ] {
        assert_eq!(image_path(pasted).as_deref(), path, "{pasted:?}");
    }
}

#[test]
fn paths_of_several_pictures_are_known() {
    for (pasted, paths) in [
        ("/tmp/a.png /tmp/b.jpg", Some(&["/tmp/a.png", "/tmp/b.jpg"][..])),
        ("/tmp/a.png\n/tmp/my b.jpg\n", Some(&["/tmp/a.png", "/tmp/my b.jpg"])),
        (
            "'/tmp/my a.png' \"/tmp/b's.gif\"  /tmp/my\\ c.webp ",
            Some(&["/tmp/my a.png", "/tmp/b's.gif", "/tmp/my c.webp"]),
        ),
        ("file:///tmp/a%20b.png file:///c.png", Some(&["/tmp/a b.png", "/c.png"])),
        ("/tmp/a.png and /tmp/b.png", None),
        ("/tmp/a.png\nand more", None),
    ] {
        let paths = paths.map(|paths| paths.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(image_paths(pasted), paths, "{pasted:?}");
    }
    assert_eq!(image_paths(&"a.png ".repeat(10_000)), None, "nobody drops so many");
}

#[test]
fn text_from_outside_brings_no_signs_along() {
    let mut editor = Editor::default();
    editor.paste(&"y\n".repeat(100));
    editor.paste("\u{f0000}");
    editor.act(Command::Insert('\u{f0000}'));
    assert_eq!(editor.shown(), "[Pasted text #1 +100 lines]\u{fffd}\u{fffd}");
    assert_eq!(History::of(["\u{f0000}".to_owned()]).get(0).unwrap().text, "\u{fffd}");
    editor.set("new \u{f0001}");
    assert_eq!(editor.shown(), "new \u{fffd}");
}

fn rows_of(view: &View) -> Vec<String> {
    view.rows.iter().map(words_of).collect()
}

#[test]
fn the_caret_is_where_the_next_character_goes() {
    for (text, cells, rows, caret) in [
        ("", 10, &[""][..], (0, 0)),
        ("abc", 10, &["abc"], (3, 0)),
        ("日本語", 10, &["日本語"], (6, 0)),
        ("日本語日本", 10, &["日本語日", "本"], (2, 1)),
        ("abcdefghi", 10, &["abcdefghi"], (9, 0)),
        ("abcdefghij", 10, &["abcdefghi", "j"], (1, 1)),
        ("some words", 10, &["some ", "words"], (5, 1)),
        ("a\n", 10, &["a", ""], (0, 1)),
        ("e\u{301}", 10, &["e\u{301}"], (1, 0)),
        ("👩\u{200d}👧", 10, &["👩\u{200d}👧"], (2, 0)),
        ("a\tb", 10, &["a    b"], (6, 0)),
        ("a\u{1b}b", 20, &["a‹U+001B›b"], (10, 0)),
        ("a\u{202e}b", 20, &["a‹U+202E›b"], (10, 0)),
    ] {
        let mut editor = Editor::default();
        editor.paste(text);
        let view = editor.view(cells, 10, &THEME);
        assert_eq!(
            (rows_of(&view), view.caret),
            (rows.iter().map(ToString::to_string).collect(), caret),
            "{text:?}"
        );
    }
}

#[test]
fn a_tall_prompt_scrolls_with_the_caret() {
    let mut editor = Editor::default();
    for line in 0..7 {
        typed(&mut editor, &format!("{line}<C-j>"));
    }
    let view = editor.view(20, 3, &THEME);
    assert_eq!((rows_of(&view), view.caret), (vec!["5".into(), "6".into(), String::new()], (0, 2)));
    assert!(view.more_above && !view.more_below);
    typed(&mut editor, "<Up><Up>");
    let view = editor.view(20, 3, &THEME);
    // Nothing moves while the caret is seen.
    assert_eq!((rows_of(&view), view.caret), (vec!["5".into(), "6".into(), String::new()], (0, 0)));
    typed(&mut editor, "<Up>");
    let view = editor.view(20, 3, &THEME);
    assert_eq!((rows_of(&view), view.caret), (vec!["4".into(), "5".into(), "6".into()], (0, 0)));
    assert!(view.more_above && view.more_below);
    typed(&mut editor, "<C-Home>");
    let view = editor.view(20, 3, &THEME);
    assert_eq!((rows_of(&view), view.more_above), (vec!["0".into(), "1".into(), "2".into()], false));
}

#[test]
fn keys_of_others_are_left_to_them() {
    for written in ["<C-c>", "<C-l>", "<C-o>", "<C-z>", "<A-p>"] {
        assert_eq!(command(&keys(written)[0]), None, "{written}");
    }
    for code in [KeyCode::Esc, KeyCode::Tab, KeyCode::BackTab, KeyCode::F(1), KeyCode::PageUp] {
        assert_eq!(command(&KeyEvent::new(code, KeyModifiers::NONE)), None);
    }
    // Characters that need two modifiers on some keyboards.
    let both = KeyEvent::new(KeyCode::Char('@'), KeyModifiers::CONTROL | KeyModifiers::ALT);
    assert_eq!(command(&both), Some(Command::Insert('@')));
}

fn commands() -> impl Strategy<Value = Vec<Command>> {
    use Command as C;
    let plain = prop::sample::select(vec![
        C::Newline,
        C::Backspace,
        C::Delete,
        C::Left,
        C::Right,
        C::Up,
        C::Down,
        C::WordLeft,
        C::WordRight,
        C::LineStart,
        C::LineEnd,
        C::Start,
        C::End,
        C::KillLineEnd,
        C::KillLineStart,
        C::KillRun,
        C::KillWordBefore,
        C::KillWordAfter,
        C::Yank,
        C::YankOlder,
        C::Undo,
        C::Redo,
        C::Transpose,
        C::HistoryOlder,
        C::HistoryNewer,
        C::Search,
        C::Cancel,
        C::Enter,
    ]);
    let typed = prop::sample::select("ab 日é👩\u{200d}\u{301}🇳-_\\\u{1b}".chars().collect::<Vec<_>>())
        .prop_map(C::Insert);
    prop::collection::vec(prop_oneof![2 => plain, 3 => typed], 0..60)
}

proptest! {
    #[test]
    fn whatever_is_typed_the_caret_stands_between_characters(commands in commands(), cells in 3usize..30, height in 1usize..6) {
        let mut editor = Editor::new(History::of(["old one".to_owned(), "日本\nlines".to_owned(), "z\n".repeat(50)]));
        for (at, command) in commands.iter().enumerate() {
            if at % 17 == 5 {
                editor.paste(&"p\n".repeat(at));
            }
            editor.act(*command);
            let (text, caret) = (editor.buffer.text().to_owned(), editor.buffer.caret());
            let boundary = caret == text.len() || text.grapheme_indices(true).any(|(at, _)| at == caret);
            prop_assert!(boundary, "{:?} at {} after {:?}", text, caret, command);
            let view = editor.view(cells, height, &THEME);
            prop_assert!(view.caret.1 < view.rows.len() && view.rows.len() <= height);
            prop_assert!(view.caret.0 < cells, "{:?} in {}", view, cells);
            prop_assert!(view.rows.iter().all(|row| width(&words_of(row)) < cells.max(3)), "{:?} in {}", view, cells);
            prop_assert!(!rows_of(&view).concat().chars().any(char::is_control));
        }
    }

    #[test]
    fn all_that_was_done_can_be_undone_and_done_again(commands in commands()) {
        let mut editor = Editor::default();
        for command in commands {
            if !matches!(command, Command::Enter | Command::Undo | Command::Redo) {
                editor.act(command);
            }
        }
        editor.act(Command::Cancel);
        let text = editor.buffer.text().to_owned();
        while editor.act(Command::Undo) == Outcome::Changed {}
        prop_assert_eq!(editor.buffer.text(), "");
        while editor.act(Command::Redo) == Outcome::Changed {}
        prop_assert_eq!(editor.buffer.text(), text);
    }

    #[test]
    fn a_view_of_all_rows_is_the_text(text in "[a-z 日é\n]{0,80}", cells in 3usize..30) {
        let mut editor = Editor::default();
        editor.buffer.reset(text.clone());
        let view = editor.view(cells, 1_000, &THEME);
        prop_assert_eq!(rows_of(&view).concat(), text.replace('\n', ""));
        prop_assert!(!view.more_above && !view.more_below);
    }
}
