use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;
use ratatui_core::style::Modifier;

use super::*;
use crate::input::{History, Submission};

/// Letters, and `␛` for Esc, `⏎` for Enter, `⌫` for Backspace, `→` and `↑` for arrows, `Ⓚ` for Ctrl-K and its like, `⊖` for Ctrl-_, `ⓨ` for
/// Alt-Y.
fn press(editor: &mut Editor, keys: &str) -> Vec<Submission> {
    let mut sent = Vec::new();
    for key in keys.chars() {
        let control = |letter| (KeyCode::Char(letter), KeyModifiers::CONTROL);
        let (code, modifiers) = match key {
            '␛' => {
                editor.vim_escape();
                continue;
            }
            '⏎' => (KeyCode::Enter, KeyModifiers::NONE),
            '⌫' => (KeyCode::Backspace, KeyModifiers::NONE),
            '→' => (KeyCode::Right, KeyModifiers::NONE),
            '↑' => (KeyCode::Up, KeyModifiers::NONE),
            'Ⓚ' => control('k'),
            'Ⓤ' => control('u'),
            'Ⓨ' => control('y'),
            'Ⓡ' => control('r'),
            '⊖' => control('_'),
            'ⓨ' => (KeyCode::Char('y'), KeyModifiers::ALT),
            letter => (KeyCode::Char(letter), KeyModifiers::NONE),
        };
        if let Some(Outcome::Submit(submission)) = editor.press(&KeyEvent::new(code, modifiers)) {
            sent.push(submission);
        }
    }
    sent
}

/// A prompt with the caret where the bar is, letters being commands.
fn editor(text: &str) -> Editor {
    let (before, behind) = text.split_once('|').unwrap();
    let mut editor = Editor::new(History::default());
    editor.use_vim(true);
    editor.set(&format!("{before}{behind}"));
    editor.vim_escape();
    editor.buffer.go(before.len());
    editor
}

fn told(editor: &Editor) -> String {
    let (before, behind) = editor.buffer.text().split_at(editor.buffer.caret());
    format!("{before}|{behind}")
}

#[track_caller]
fn check(before: &str, keys: &str, after: &str) {
    let mut editor = editor(before);
    press(&mut editor, keys);
    assert_eq!(told(&editor), after, "{keys:?} in {before:?}");
}

#[test]
fn motions_lead_where_they_lead_in_vi() {
    for (before, keys, after) in [
        ("ab|c", "h", "a|bc"),
        ("|abc", "h", "|abc"),
        ("|abc", "9l", "ab|c"),
        ("ab|c", "⌫", "a|bc"),
        ("|one two", "w", "one |two"),
        ("|one.two", "w", "one|.two"),
        ("|one.two x", "W", "one.two |x"),
        ("|one\n\n  two", "w", "one\n\n  |two"),
        ("|one two three", "2w", "one two |three"),
        ("|one two", "e", "on|e two"),
        ("on|e two", "e", "one tw|o"),
        ("one tw|o", "b", "one |two"),
        ("one.tw|o", "B", "|one.two"),
        ("  one t|wo", "0", "|  one two"),
        ("  one t|wo", "^", "  |one two"),
        ("|one two", "$", "one tw|o"),
        ("one\ntwo\nth|ree", "gg", "|one\ntwo\nthree"),
        ("o|ne\ntwo\nthree", "G", "one\ntwo\n|three"),
        ("o|ne\ntwo\nthree", "2G", "one\n|two\nthree"),
        ("o|ne\ntwo", "j", "one\nt|wo"),
        ("on|e\nt", "j", "one\n|t"),
        ("one\nt|wo", "k", "o|ne\ntwo"),
        ("|a(b)c(d)", "f(", "a|(b)c(d)"),
        ("|a(b)c(d)", "2f(", "a(b)c|(d)"),
        ("|a(b)c(d)", "f(;", "a(b)c|(d)"),
        ("|a(b)c(d)", "2f(,", "a|(b)c(d)"),
        ("|abcb", "tb;", "ab|cb"),
        ("a,b,|c", "F,", "a,b|,c"),
        ("a,b,|c", "T,", "a,b,|c"),
        ("a,b,|c", "T,;", "a,|b,c"),
        ("|abc", "fz", "|abc"),
        ("|日本語 テスト", "wl", "日本語 テ|スト"),
        ("|👩‍👩‍👧x", "l", "👩‍👩‍👧|x"),
        // A mark is no word of its own.
        ("|cafe\u{301} next", "w", "cafe\u{301} |next"),
        ("|cafe\u{301} next", "e", "caf|e\u{301} next"),
        ("cafe\u{301} |next", "b", "|cafe\u{301} next"),
        ("cafe\u{301} |next", "Te", "cafe\u{301}| next"),
        // A column is kept by what goes up and down, and by nothing else.
        ("abcdef\nabcdef\n|abcdef", "gg$j0j", "abcdef\nabcdef\n|abcdef"),
        ("abc|d\na\nabcd", "jj", "abcd\na\nabc|d"),
        // What was begun is over with a key that is none of it.
        ("|one two", "d→w", "one |two"),
        ("on|e", "r⌫l", "on|e"),
        ("on|e", "f⌫h", "o|ne"),
        ("on|e", "2⌫", "|one"),
    ] {
        check(before, keys, after);
    }
}

#[test]
fn operations_take_what_they_take_in_vi() {
    for (before, keys, after) in [
        ("a|bc", "x", "a|c"),
        ("ab|c", "x", "a|b"),
        ("|abcd", "3x", "|d"),
        ("ab|c", "X", "a|c"),
        ("|one two", "dw", "|two"),
        ("one |two", "dw", "one| "),
        ("|one\ntwo", "dw", "|\ntwo"),
        ("|one two three", "d2w", "|three"),
        ("|one two three four", "2dw", "|three four"),
        ("|one two", "de", "| two"),
        ("one t|wo", "db", "one |wo"),
        ("one t|wo", "d0", "|wo"),
        ("o|ne two", "d$", "|o"),
        ("o|ne two", "D", "|o"),
        ("|a, b, c", "dt,", "|, b, c"),
        ("|a, b, c", "d2f,", "| c"),
        ("one\nt|wo\nthree", "dd", "one\n|three"),
        ("one\nt|wo", "dd", "|one"),
        ("|one", "dd", "|"),
        ("o|ne\ntwo\nthree", "2dd", "|three"),
        ("o|ne\ntwo\nthree", "dj", "|three"),
        ("one\ntw|o\nthree", "dk", "|three"),
        ("one\nt|wo\nthree", "dG", "|one"),
        ("|one", "dj", "|one"),
        ("say \"he|llo\" now", "di\"", "say \"|\" now"),
        ("say \"he|llo\" now", "da\"", "say |now"),
        ("say \"he|llo\"", "da\"", "sa|y"),
        ("\"|a\"", "da\"", "|"),
        ("|say \"hello\"", "di\"", "say \"|\""),
        ("f(a, (b|), c)", "di(", "f(a, (|), c)"),
        ("f(a, (b), |c)", "di(", "f(|)"),
        ("f(a, (b), |c)", "da)", "|f"),
        ("{\n  |x\n}", "di{", "{|}"),
        ("one t|wo three", "diw", "one | three"),
        ("one t|wo three", "daw", "one |three"),
        ("one tw|o", "daw", "on|e"),
        ("|(a", "di[", "|(a"),
        ("|one", "ryl", "y|ne"),
        ("|one", "3rx", "xx|x"),
        ("|one", "4rx", "|one"),
        ("|oNe", "3~", "On|E"),
        ("|one\n  two", "J", "one| two"),
        ("|one\ntwo\nthree", "3J", "one two| three"),
        ("o|ne\ntwo", ">>", "  |one\ntwo"),
        ("|one\n   two", ">j", "  |one\n     two"),
        ("  o|ne", "<<", "|one"),
        ("one t|wo three", ">w", "  |one two three"),
        ("  one t|wo three", "<b", "|one two three"),
        ("f({\n  a|b\n})", ">i{", "  |f({\n    ab\n  })"),
        ("one t|wo", "d⌫", "one |wo"),
        ("one t|wo", "di⌫w", "one tw|o"),
        ("|cafe\u{301} next", "dw", "|next"),
        ("|cafe\u{301} next", "de", "| next"),
        ("cafe\u{301} |next", "db", "|next"),
        ("c|afe\u{301} next", "diw", "| next"),
        ("cafe\u{301} nex|t", "dTe", "cafe\u{301} ne|t"),
        ("|cafe\u{301} next", "dt ", "| next"),
    ] {
        check(before, keys, after);
    }
}

#[test]
fn what_is_taken_can_be_put() {
    for (before, keys, after) in [
        ("|one two", "dwp", "tone| wo"),
        ("|ab", "xp", "b|a"),
        ("o|ne\ntwo", "ddp", "two\n|one"),
        ("one\nt|wo", "yyP", "one\n|two\ntwo"),
        ("one\nt|wo", "Yp", "one\ntwo\n|two"),
        ("|one two", "yw$p", "one twoone| "),
        ("|one", "yw3P", "oneoneon|eone"),
        ("|one", "p", "|one"),
        // Cut one after the other is what nothing stands between.
        ("|a b", "wⓀ0Ⓚp", "a| "),
    ] {
        check(before, keys, after);
    }
}

#[test]
fn what_is_written_begins_where_it_begins_in_vi() {
    for (before, keys, after) in [
        ("o|ne", "iX␛", "o|Xne"),
        ("o|ne", "aX␛", "on|Xe"),
        ("on|e", "aX␛", "one|X"),
        ("  o|ne", "IX␛", "  |Xone"),
        ("o|ne", "AX␛", "one|X"),
        ("o|ne\ntwo", "oX␛", "one\n|X\ntwo"),
        ("one\nt|wo", "OX␛", "one\n|X\ntwo"),
        ("|one two", "cwX␛", "|X two"),
        ("on|e two", "cwX␛", "on|X two"),
        ("|one two", "c2wX␛", "|X"),
        ("o|ne\ntwo", "ccX␛", "|X\ntwo"),
        ("o|ne\ntwo", "SX␛", "|X\ntwo"),
        ("o|ne two", "CX␛", "o|X"),
        ("|one", "sX␛", "|Xne"),
        ("f(a|, b)", "ci(X␛", "f(|X)"),
        ("|cafe\u{301} next", "cwX␛", "|X next"),
    ] {
        check(before, keys, after);
    }
}

#[test]
fn changes_are_undone_whole_and_done_again() {
    for (before, keys, after) in [
        ("|one two three", "cwa few words␛u", "|one two three"),
        ("|one two", "xxu", "|ne two"),
        ("|one two", "xxuu", "|one two"),
        ("|one\ntwo\nthree", "3Ju", "|one\ntwo\nthree"),
        ("|a b c", "cwX␛w.w.", "X X |X"),
        ("|one two three four", "dw.", "|three four"),
        ("|abcdef", "2x.", "|ef"),
        ("|a", "AX␛..", "aXX|X"),
        ("|one\ntwo", "dd.", "|"),
        // What only looks is not done again, and what was not finished is left.
        ("|one two", "xw.", "ne |wo"),
        ("|one two", "d␛w", "one |two"),
        ("|one two", ".", "|one two"),
        ("|one two", "dwuU", "|two"),
        ("|one two", "xxuuUU", "|e two"),
        ("|one two", "xuUU", "|ne two"),
        ("|one two", "dwuU.", "|"),
        // Undone while it is written, it is gone, and what comes next is a change of its own.
        ("|one two", "xcwab⊖cd␛u", "|ne two"),
        ("|one two three", "cwab⊖X␛w.", "Xone |X three"),
        ("one| two", "xaY⊖Z␛u", "onet|wo"),
        // The end of a line is written again, and never sent.
        ("|a", "A\\⏎b␛.", "a\nb\n|b"),
        ("|a", "A\\⏎b␛u", "|a"),
        ("|a b", "cwX→Y␛0.", "X |YYb"),
    ] {
        check(before, keys, after);
    }
}

#[test]
fn what_is_pasted_into_a_change_is_done_again_with_it() {
    let mut editor = editor("|a");
    press(&mut editor, "A-");
    editor.paste("b c");
    press(&mut editor, "+␛.");
    assert_eq!(told(&editor), "a-b c+-b c|+");
}

#[test]
fn a_prompt_of_before_takes_the_place_of_what_is_written_and_gives_it_back() {
    let mut editor = editor("|one two");
    editor.history.add(crate::input::Draft::of("found"));
    press(&mut editor, "wcwX YⓇfo⏎");
    assert_eq!(told(&editor), "found|");
    press(&mut editor, "⊖");
    assert_eq!(told(&editor), "one X Y|", "it is undone alone");
    press(&mut editor, "Ⓡfo");
    editor.act(Command::Cancel);
    assert_eq!(told(&editor), "one X Y|");
    // Nor does doing the change again send anything.
    press(&mut editor, "␛0");
    assert!(press(&mut editor, "..").is_empty());
}

#[test]
fn what_was_put_back_is_replaced_only_where_it_still_stands() {
    let mut editor = Editor::new(History::default());
    editor.use_vim(true);
    press(&mut editor, "helloⓊⓎ␛ccⓨ");
    assert_eq!(told(&editor), "|");
    press(&mut editor, "oneⓊtwoⓊⓎ");
    assert_eq!(told(&editor), "two|");
    editor.act(Command::YankOlder);
    assert_eq!(told(&editor), "one|");
    editor.buffer.replace(0..3, "é");
    editor.act(Command::YankOlder);
    assert_eq!(told(&editor), "é|");
}

#[test]
fn alt_is_esc_and_a_letter() {
    let alt = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::ALT);
    let mut editor = Editor::new(History::default());
    editor.use_vim(true);
    press(&mut editor, "one two");
    editor.press(&alt('b'));
    assert_eq!((editor.vim_mode(), told(&editor)), (Some(VimMode::Normal), "one |two".to_owned()));
    press(&mut editor, "d");
    editor.press(&alt('h'));
    assert_eq!(told(&editor), "one| two", "what was begun is left");
    // Where letters are no commands, Alt is what it always is.
    editor.use_vim(false);
    editor.press(&alt('f'));
    assert_eq!(told(&editor), "one two|");
}

#[test]
fn what_is_selected_is_what_is_worked_on() {
    for (before, keys, after) in [
        ("a|bcd", "vld", "a|d"),
        ("ab|cd", "vhd", "a|d"),
        ("|one two", "ved", "| two"),
        ("|one two", "vec1␛", "|1 two"),
        ("|one two", "ves1␛", "|1 two"),
        ("|abc", "vlyP", "a|babc"),
        ("ab|c", "vhy", "a|bc"),
        ("|a\nb\nc", "vjd", "|\nc"),
        ("|a\n\nb", "jvd", "a\n|b"),
        ("|日本語", "vlx", "|語"),
        ("|👩‍👩‍👧x", "vd", "|x"),
        // What is selected grows from where it began, to either side.
        ("ab|cde", "vlhhd", "a|de"),
        ("ab|cd", "vlohd", "|a"),
        ("|one two three", "v2wd", "|hree"),
        ("|f(a, b)", "vf)d", "|"),
        ("f(|a, b)", "vi(d", "f(|)"),
        ("say \"a| b\" now", "va\"d", "say |now"),
        ("one t|wo", "viwd", "one| "),
        // Whole lines.
        ("on|e\ntwo\nthree", "Vd", "|two\nthree"),
        ("on|e\ntwo\nthree", "Vjd", "|three"),
        ("one\ntw|o\nthree", "Vkd", "|three"),
        ("on|e\ntwo", "VjyP", "|one\ntwo\none\ntwo"),
        ("on|e\ntwo", "Vcx␛", "|x\ntwo"),
        ("on|e\ntwo", "vjD", "|"),
        ("on|e\ntwo\nthree", "vX", "|two\nthree"),
        ("|one\ntwo", "vjY", "|one\ntwo"),
        ("|a\nb\nc", "Vj>", "  |a\n  b\nc"),
        ("|a\nb", "Vj3>", "      |a\n      b"),
        ("    |é\n  b", "Vj<", "  |é\nb"),
        ("é  |é\nb", "vj>", "  |é  é\n  b"),
        ("|a\n  b\nc", "VjJ", "a| b\nc"),
        ("|a\nb", "vJ", "a| b"),
        // Letters of it.
        ("|abcd", "vlrx", "|xxcd"),
        ("|ab\ncd", "vjrx", "|xx\nxd"),
        ("|aBc", "v2l~", "|AbC"),
        ("|aBc", "v2lu", "|abc"),
        ("|aBc", "v2lU", "|ABC"),
        ("|straße", "veU", "|STRASSE"),
        // What was taken takes its place, and the other way round.
        ("|one two", "yiwwviwp0P", "tw|oone one"),
        ("|one two", "yiwwviwP0P", "on|eone one"),
        ("|one\ntwo", "yyjVp", "one\n|one"),
        ("|one\ntwo", "yljVp", "one\n|o"),
        // It is left, and nothing is done.
        ("|abc", "vl␛x", "a|c"),
        ("|abc", "vlvx", "a|c"),
        ("|abc", "Vlx", "|"),
        ("|ab\ncd", "vVd", "|cd"),
        ("|abc", "vqlx", "|c"),
        ("|abc", "v\"␛x", "|bc"),
        // Arrows go on selecting, and what edits does not.
        ("|abc", "v→x", "|c"),
        ("|abc", "vlⓀ", "|a"),
        ("|abc", "vl↑x", "|c"),
    ] {
        check(before, keys, after);
    }
}

#[test]
fn what_was_done_to_a_selection_is_done_to_as_much_elsewhere() {
    for (before, keys, after) in [
        ("|abcdef", "vldl.", "c|f"),
        ("|one two", "vec1␛w.", "1 |1"),
        ("|a\nb\nc\nd\ne", "Vjd.", "|e"),
        ("|a\nb\nc", "Vj>j.", "  a\n    |b\n  c"),
        ("|ab\ncd\nef\ngh", "vjdj.", "d\n|h"),
        ("|abcdef", "vlUll.", "AB|CDef"),
        ("|abcd", "vlr-ll.", "--|--"),
        // At the end there is less.
        ("|abcde", "v2ld.", "|"),
        // It is undone as a whole.
        ("|one two", "vec1␛u", "|one two"),
        ("|a\nb", "Vj3>u", "|a\nb"),
    ] {
        check(before, keys, after);
    }
}

#[test]
fn registers_keep_what_was_taken_into_them() {
    for (before, keys, after) in [
        ("|one two", "\"ayww\"bdiw\"aP", "oneone|  "),
        ("|one two", "yiwwdiw\"0P", "oneon|e "),
        ("|one two", "yiww\"_diwP", "oneon|e "),
        ("|one two", "\"ayiww\"Ayiw$\"ap", "one twoonetw|o"),
        ("|one two", "\"ayiww\"\"diw0\"\"P", "tw|oone "),
        ("|one two", "\"zp", "|one two"),
        ("|a\nb", "\"ayyj\"ap", "a\nb\n|a"),
        ("|abc", "v\"ayl\"ap", "ab|ac"),
        ("|ab cd", "\"ayiwwviw\"ap\"aP", "ab aa|bb"),
        // What cuts does not touch what was copied.
        ("|one two", "yiwwx\"0P", "one on|ewo"),
        // With `.` it is the same register.
        ("|a b", "\"ayl\"ap.", "aa|a b"),
    ] {
        check(before, keys, after);
    }
}

#[test]
fn what_is_selected_is_seen() {
    let mut editor = editor("|one\ntwo");
    let turned = |editor: &mut Editor| -> Vec<String> {
        let spans =
            editor.view(80, 10, &crate::theme::Theme::BARE).rows.into_iter().flat_map(|row| row.spans);
        let is_turned =
            |span: &ratatui_core::text::Span<'_>| span.style.add_modifier.contains(Modifier::REVERSED);
        spans.filter(|span| is_turned(span)).map(|span| span.content.into_owned()).collect()
    };
    assert!(turned(&mut editor).is_empty());
    press(&mut editor, "vj");
    assert_eq!(turned(&mut editor), ["one", "t"]);
    assert_eq!(editor.vim_mode(), Some(VimMode::Visual));
    press(&mut editor, "V");
    assert_eq!(turned(&mut editor), ["one", "two"]);
    assert!(editor.vim_escape(), "and nothing else is left with it");
    assert!(turned(&mut editor).is_empty());
    press(&mut editor, "vj");
    editor.paste("x");
    assert!(turned(&mut editor).is_empty());
    assert_eq!(editor.vim_mode(), Some(VimMode::Normal));
}

#[test]
fn a_prompt_begins_by_being_written() {
    let mut editor = Editor::new(History::default());
    editor.use_vim(true);
    assert!(!editor.vim_escape(), "there is nothing to command");
    press(&mut editor, "dd one");
    assert_eq!(told(&editor), "dd one|");
    assert!(editor.vim_escape());
    assert_eq!((editor.vim_mode(), told(&editor)), (Some(VimMode::Normal), "dd on|e".to_owned()));
    assert!(!editor.vim_escape(), "the next Esc is somebody else's");
    press(&mut editor, "2");
    assert!(editor.vim_escape(), "but what was begun is left first");
    let sent = press(&mut editor, "0dw⏎");
    assert_eq!(sent[0].text, "one");
    assert_eq!(editor.vim_mode(), Some(VimMode::Insert));
    press(&mut editor, "two␛k");
    assert_eq!(told(&editor), "tw|o", "nothing before begins so");
    press(&mut editor, "ddk");
    assert_eq!(told(&editor), "on|e", "above the first line are prompts of before");
    press(&mut editor, "/o");
    assert_eq!(editor.search().map(|search| search.words.as_str()), Some("o"));
    editor.use_vim(false);
    press(&mut editor, "⏎x");
    assert!(editor.vim_mode().is_none());
}

proptest! {
    #[test]
    fn no_keys_break_anything(
        text in "[ab .,\\n(){}\"é日👩‍👧]{0,24}",
        keys in "[hjklwebWEB0^$GgfFtT;,dcyxXsSDCYiaIAoOpPr~JuUvV._0a23<>\"(){}␛⌫→↑ⓀⓊⓎⓇ⊖ⓨab é日\u{301}\\\\]{0,40}",
    ) {
        const BEFORE: [&str; 2] = ["ab b", "é\nab"];
        let mut editor = editor("|");
        BEFORE.iter().for_each(|words| editor.history.add(crate::input::Draft::of(words)));
        editor.set(&text);
        editor.vim_escape();
        press(&mut editor, &keys);
        let (text, caret) = (editor.buffer.text(), editor.buffer.caret());
        prop_assert!(text.is_char_boundary(caret));
        editor.act(Command::Cancel);
        editor.vim_escape();
        editor.vim_escape();
        editor.rest();
        let line = editor.buffer.line(editor.buffer.caret());
        prop_assert!(editor.is_empty() || editor.buffer.caret() < line.end || line.is_empty());
        while editor.act(Command::Undo) != Outcome::Nothing {}
        // A prompt of before that was changed is one that was begun with those words.
        let left = editor.buffer.text();
        prop_assert!(editor.is_empty() || BEFORE.contains(&left), "{left:?}");
    }
}
