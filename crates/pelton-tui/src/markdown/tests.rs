use proptest::prelude::*;

use super::*;
use crate::cells::{width, words_of};
use crate::theme::{Surroundings, Wanted};

fn colours() -> Theme {
    let surroundings =
        Surroundings { term: Some("xterm"), colorterm: Some("truecolor"), ..Default::default() };
    Theme::new(surroundings, Wanted::default())
}

fn shown_by(text: &str, width: usize, theme: Theme) -> String {
    let lines: Vec<String> = lines(text, width, theme).iter().map(words_of).collect();
    lines.join("\n")
}

fn check(text: &str, shown: &str) {
    check_in(60, text, shown);
}

fn check_in(width: usize, text: &str, shown: &str) {
    assert_eq!(shown_by(text, width, colours()), shown, "{text:?} in {width}");
}

#[test]
fn words_and_their_looks() {
    check("Just words.", "Just words.");
    check("one\ntwo", "one\ntwo");
    check("one\n\n\n\ntwo", "one\n\ntwo");
    check("a **strong** and *slight* and ~~gone~~ `code`", "a strong and slight and gone code");
    check("2 * 3 * 4 and snake_case_name", "2 * 3 * 4 and snake_case_name");
    check("\\*literal\\*", "*literal*");
    check("hard  \nbreak", "hard\nbreak");
    let line = lines("a **strong** `code`", 60, colours()).remove(0);
    let look = |word: &str| line.spans.iter().find(|span| span.content == word).unwrap().style;
    assert_eq!(look("strong"), colours().style(Role::Strong));
    assert_eq!(look("code"), colours().style(Role::Code));
}

#[test]
fn without_colours_marks_tell_the_same() {
    let text = "# Head\n\nA **strong** *slight* `code`.\n\n- item\n- [x] done\n\n> said\n\n---\n\n|a|b|\n|-|-|\n|1|2|";
    let expected = "# Head\n\nA **strong** *slight* `code`.\n\n- item\n[x] done\n\n> said\n\n----------\n\na | b\n--+--\n1 | 2";
    assert_eq!(shown_by(text, 30, Theme::BARE), expected.replace("----------", &"-".repeat(30)));
}

#[test]
fn headings() {
    check(
        "# One\ntext\n## Two ##\n\nSetext\n===\n\nSecond\n---\nend",
        "One\n\ntext\n\nTwo\n\nSetext\n\nSecond\n\nend",
    );
    check("#no heading", "#no heading");
    check("####### seven", "####### seven");
}

#[test]
fn lists() {
    check("- a\n- b\n  more\n- c", "• a\n• b\n  more\n• c");
    check("- a\n  - b\n    - c\n      - d\n- e", "• a\n  ◦ b\n    ▪ c\n      ▪ d\n• e");
    check("- a\n\n- b", "• a\n\n• b");
    check("3. a\n4. b\n9. c", "3. a\n4. b\n5. c");
    check("1. a\n   1. b\n   2. c\n2. d", "1. a\n   1. b\n   2. c\n2. d");
    check("- [ ] open\n- [x] done", "☐ open\n☑ done");
    check("* a\n+ b", "• a\n\n• b");
    check("text\n- a\n- b\n\ntext", "text\n\n• a\n• b\n\ntext");
    check("text\n2019. was a year", "text\n2019. was a year");
    check("- a\nlazy\n- b", "• a\n  lazy\n• b");
    check("- a\n\n  second\n- b", "• a\n\n  second\n• b");
    check(
        "1. Do:\n   ```sh\n   - no item\n\n   ls\n   ```\n2. Then",
        "1. Do:\n   ```sh\n   - no item\n\n   ls\n   ```\n2. Then",
    );
    check("1. Do:\n```sh\nls\n```\n2. Then", "1. Do:\n\n```sh\nls\n```\n\n2. Then");
    check_in(12, "- some words that wrap", "• some words\n  that wrap");
    check("-\n- b", "• \n• b");
    check("- - a", "• ◦ a");
    check("* * *", &"─".repeat(48));
    // Words of an item end where another block begins inside of it.
    check("- item\n  > quote", "• item\n  ▎ quote");
    check("- item\n  # Head", "• item\n  Head");
    check("- item\n  ***\n- b", &format!("• item\n  {}\n• b", "─".repeat(48)));
    check("- item\n  <div>", "• item\n  <div>");
}

#[test]
fn numbers_stand_below_each_other_inside_a_list() {
    let nested = format!("- x\n{}", (1..=10).map(|n| format!("  {n}. i{n}\n")).collect::<String>());
    let shown = shown_by(&nested, 40, colours());
    assert!(shown.contains("   9. i9") && shown.contains("  10. i10"), "{shown}");
}

#[test]
fn code() {
    check("```rust\nfn f() {}\n```", "```rust\nfn f() {}\n```");
    check("```\na\n\n  b\n```\nafter", "```\na\n\n  b\n```\n\nafter");
    check("~~~\n```\n~~~", "```\n```\n```");
    check("````md\n```\n````", "```md\n```\n```");
    check("```\nnever ends", "```\nnever ends\n```");
    check("  ```\n  in\n    deeper\n  ```", "```\nin\n  deeper\n```");
    check("```\n\ttab\n```", "```\n    tab\n```");
    check("text\n```\ncode\n```\ntext", "text\n\n```\ncode\n```\n\ntext");
    check("    indented\n\n    code\n\ntext", "    indented\n\n    code\n\ntext");
    check("``` `no` fence", "``` no fence");
    check_in(10, "```\n0123456789abc\n```", "```\n0123456789\nabc\n```");
    let lines = lines("```rust\nfn f() {}\n```", 40, colours());
    assert_eq!(lines[1].spans[0].style, colours().style(Role::Keyword));
}

#[test]
fn quotes_and_rules() {
    check("> said\n> more\n\nafter", "▎ said\n▎ more\n\nafter");
    check("> said\nlazily", "▎ said\n▎ lazily");
    check("> a\n>\n> - b", "▎ a\n▎ \n▎ • b");
    check("> > deep", "▎ ▎ deep");
    check("a\n\n***\n\nb", &format!("a\n\n{}\n\nb", "─".repeat(48)));
}

#[test]
fn links_say_where_they_lead() {
    check("[words](https://a.example/x)", "words (https://a.example/x)");
    check("<https://a.example>", "https://a.example");
    check("[https://a.example](https://a.example)", "https://a.example");
    check("[https://good.example](https://evil.example)", "https://good.example (https://evil.example)");
    check("<me@a.example>", "me@a.example");
    check("![alt](a.png)", "image: alt (a.png)");
    check(
        "[1]: https://a.example\n\nSee [words][1].",
        "[1]: https://a.example\n\nSee words (https://a.example).",
    );
    check("See [words][1].\n\n[1]: https://a.example", "See [words][1].\n\n[1]: https://a.example");
}

#[test]
fn tables() {
    check("| a | bb |\n|---|---:|\n| 1 | 2 |\n| long | 3 |", "a    │ bb\n─────┼───\n1    │  2\nlong │  3");
    check("a | b\n--|--\n1 | 2\n\nafter", "a │ b\n──┼──\n1 │ 2\n\nafter");
    check("|x|\n|:-:|\n|abc|", " x\n───\nabc");
    check("|a|b|\n|-|-|\n|`x`|**y**|", "a │ b\n──┼──\nx │ y");
    check("|a|b|\n|-|-|\n===\nwords", "a     │ b\n──────┼──\n===   │ \nwords │ ");
    // Words above a table are none of it, and what fits no rule is no head.
    check("words\n|a|b|\n|-|-|\n-", "words\n\na │ b\n──┼──\n\n• ");
    check("|a|b|\n|-|\n===\nwords", "|a|b|\n|-|\n\nwords");
    check("|日本|b|\n|-|-|\n|x|y|", "日本 │ b\n─────┼──\nx    │ y");
    check("|a|b|\n|-|-|\n|one<br>two|y|", "a   │ b\n────┼──\none │ y\ntwo │ ");
    check_in(
        20,
        "|name|what it is|\n|-|-|\n|one|some longer words|",
        "name │ what it is\n─────┼──────────────\none  │ some longer\n     │ words",
    );
    check_in(10, "|a|b|c|d|\n|-|-|-|-|\n|one|two|three|four|", "a: one\nb: two\nc: three\nd: four");
}

#[test]
fn html_is_text() {
    check("<b>bold</b> a < b", "<b>bold</b> a < b");
    check("<div>\ntext\n</div>", "<div>\ntext\n</div>");
    check("a &lt;b&gt; &amp; c", "a <b> & c");
}

#[test]
fn no_entity_brings_in_what_was_kept_out() {
    for text in [
        "a &#27;[2J b",
        "a &#x9b;2J b",
        "`&#27;`",
        "[x](&#27;[2J)",
        "&#7;",
        "<a&#27;>",
        "```&#27;\n```",
        "- ```&#27;\n  x&#27;",
        "|&#27;|\n|-|",
        "&#x202e;",
    ] {
        let shown = shown_by(text, 40, colours());
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{text}: {shown:?}");
        assert!(!shown.contains('\u{202e}'), "{text}: {shown:?}");
    }
}

#[test]
fn the_tail_is_what_is_not_finished() {
    let mut stream = Stream::new(40, colours());
    let words = |lines: Vec<Line<'static>>| lines.iter().map(words_of).collect::<Vec<_>>();
    assert!(stream.push("Some **wo").is_empty());
    assert_eq!(words(stream.tail()), ["Some wo"]);
    assert!(stream.push("rds**\n").is_empty());
    assert_eq!(words(stream.tail()), ["Some words"]);
    assert_eq!(words(stream.push("\n- one\n")), ["Some words"]);
    assert_eq!(words(stream.tail()), ["", "• one"]);
    assert_eq!(words(stream.push("- two\n\n```rust\nfn f")), ["", "• one", "• two", "", "```rust"]);
    assert_eq!(words(stream.tail()), ["fn f", "```"]);
    assert_eq!(words(stream.push("() {}\n")), ["fn f() {}"]);
    assert_eq!(words(stream.finish()), ["```"]);
    assert_eq!(words(stream.push("again")), Vec::<String>::new());
    assert_eq!(words(stream.finish()), ["", "again"]);
}

#[test]
fn long_things_are_finished_before_they_end() {
    let mut stream = Stream::new(80, colours());
    let row = "| a | b |\n";
    let mut finished = stream.push("| x | y |\n|---|---|\n").len();
    finished += stream.push(&row.repeat(BLOCK_LINES_MAX)).len();
    assert!(finished >= BLOCK_LINES_MAX, "{finished}");
    // It goes on as a table.
    let rest: Vec<String> = stream.tail().iter().map(words_of).collect();
    assert!(rest.contains(&"a │ b".to_owned()), "{rest:?}");

    let mut stream = Stream::new(80, colours());
    let finished = stream.push(&"word ".repeat(200_000));
    assert!(finished.len() > 10_000, "{}", finished.len());
}

#[test]
fn nothing_is_too_deep_or_too_odd() {
    let deep = format!("{}x", "> ".repeat(3_000));
    let list: String = (0..200).map(|depth| format!("{}- x\n", "  ".repeat(depth))).collect();
    let odd = [
        "*".repeat(5_000),
        "[".repeat(5_000),
        "`".repeat(5_001),
        "|".repeat(5_000),
        "<".repeat(5_000),
        deep,
        list,
    ];
    for text in odd {
        for cells in [1, 7, 80] {
            let lines = lines(&text, cells, colours());
            assert!(lines.iter().all(|line| width(&words_of(line)) <= cells.max(2)), "{:.20}", text);
        }
    }
}

/// Texts made of what begins and ends blocks.
fn texts() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "word ",
        "two words\n",
        "\n",
        "\n\n",
        "# Head\n",
        "- item\n",
        "- ",
        "  - nested\n",
        "1. one\n",
        "2) two\n",
        "```\n",
        "```rust\n",
        "~~~\n",
        "    code\n",
        "> quote\n",
        "---\n",
        "===\n",
        "| a | b |\n",
        "|---|:-:|\n",
        "**",
        "*",
        "`",
        "[a](b)",
        "[x]: http://y\n",
        "[x]",
        "<b>",
        "&#27;",
        "\t",
        "\r\n",
        "\r",
        "日本語",
        "👩\u{200d}👧",
        "e\u{301}",
        "- [ ] ",
        "\u{1b}[31m",
        "\u{1b}]0;t",
        "\u{7}",
        "  \n",
        "\\",
        "| ",
    ]);
    prop::collection::vec(part, 0..30).prop_map(|parts| parts.concat())
}

/// Lines that begin, go on and end blocks, in any order.
fn documents() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "words",
        "more *words*",
        "",
        "",
        "",
        "# Head",
        "## Two",
        "- item",
        "* star",
        "  - nested",
        "    - deeper",
        "  inside",
        "1. one",
        "2. two",
        "   below",
        "```",
        "```rust",
        "~~~",
        "    code",
        "\tcode",
        "> quote",
        "> - listed",
        ">",
        "---",
        "===",
        "***",
        "| a | b |",
        "|---|---|",
        "| c | d |",
        "    | e | f |",
        "    2. two",
        "    -",
        "    > quote",
        "    # Head",
        "|---|",
        "a | b",
        "--|--",
        "- ```",
        "  ```",
        "<div>",
        "</div>",
        "  words",
        "   - three",
        "-",
        "1)",
        "- [x] done",
        "> ```",
        "    - four",
        "+ plus",
    ]);
    prop::collection::vec(line, 0..14).prop_map(|lines| lines.join("\n"))
}

proptest! {
    /// Block by block, the same lines come out as of the whole at once; only how far they stand apart may differ.
    #[test]
    fn blocks_end_where_the_parser_says(text in documents()) {
        let solid = |lines: Vec<Line<'static>>| -> Vec<String> {
            lines.iter().map(words_of).map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
        };
        let page = Page { width: 60, theme: colours() };
        prop_assert_eq!(solid(lines(&text, 60, colours())), solid(page.blocks(&tree::parse(&text))));
    }

    #[test]
    fn however_it_is_cut_the_same_is_finished(text in texts(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12), width in 2usize..50) {
        let chars: Vec<char> = text.chars().collect();
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(chars.len() + 1)).collect();
        at.push(chars.len());
        at.sort_unstable();
        let mut stream = Stream::new(width, colours());
        let mut finished = Vec::new();
        let mut from = 0;
        for to in at {
            finished.extend(stream.push(&chars[from..to].iter().collect::<String>()));
            // Looking changes nothing.
            stream.tail();
            from = to;
        }
        finished.extend(stream.finish());
        prop_assert_eq!(finished, lines(&text, width, colours()));
    }

    #[test]
    fn every_line_is_safe_and_fits(text in texts(), cells in 1usize..50) {
        for line in lines(&text, cells, colours()) {
            let words = words_of(&line);
            prop_assert!(width(&words) <= cells.max(2), "{:?} in {}", words, cells);
            prop_assert!(!words.chars().any(char::is_control), "{:?}", words);
        }
    }

    #[test]
    fn no_word_is_lost(words in prop::collection::vec("[a-z]{1,12}", 1..30), marks in texts(), cells in 2usize..40) {
        // Words that stand by themselves, whatever stands above them.
        let text = format!("{marks}\n~~~\n```\n\n{}", words.join(" "));
        let squeezed: String = lines(&text, cells, colours()).iter().map(words_of).collect::<String>().replace(' ', "");
        prop_assert!(squeezed.contains(&words.concat()) , "{squeezed:?}");
    }
}
