//! Text measured in cells, as terminals lay it out: a Chinese character takes two, an accent none.
//!
//! What is counted here is what ratatui counts, so that lines wrapped here are never cut there.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// No narrower: the widest character must have a place.
pub const WIDTH_MIN: usize = 2;

/// Cells of a text without line ends.
pub fn width(text: &str) -> usize {
    // Nearly everything is ASCII, where a byte is a cell.
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) { text.len() } else { text.width() }
}

/// Cells of a line.
pub fn width_of(spans: &[Span<'_>]) -> usize {
    spans.iter().map(|span| width(&span.content)).sum()
}

/// The beginning of a text, with a mark if that is not all of it.
pub fn cut(text: &str, cells: usize) -> String {
    if width(text) <= cells {
        return text.to_owned();
    }
    let mut left = cells.saturating_sub(1);
    let mut kept = String::new();
    for grapheme in text.graphemes(true) {
        let wide = width(grapheme);
        if wide > left {
            break;
        }
        left -= wide;
        kept.push_str(grapheme);
    }
    if cells > 0 {
        kept.push('…');
    }
    kept
}

/// The end of a text, with a mark if that is not all of it: of a path the end says more.
pub fn cut_front(text: &str, cells: usize) -> String {
    if width(text) <= cells {
        return text.to_owned();
    }
    let mut left = cells.saturating_sub(1);
    let mut from = text.len();
    for (at, grapheme) in text.grapheme_indices(true).rev() {
        let wide = width(grapheme);
        if wide > left {
            break;
        }
        left -= wide;
        from = at;
    }
    let mark = if cells > 0 { "…" } else { "" };
    format!("{mark}{}", &text[from..])
}

/// A line that fits, with a mark where it was cut.
pub fn cut_line(line: Line<'static>, cells: usize) -> Line<'static> {
    if width_of(&line.spans) <= cells {
        return line;
    }
    let mut left = cells;
    let mut kept = Vec::new();
    for span in line.spans {
        let wide = width(&span.content);
        if wide < left {
            left -= wide;
            kept.push(span);
            continue;
        }
        // The last that has a place gives its last cell to the mark.
        let mut content = cut(&span.content, left);
        if content == span.content {
            content = cut(&format!("{content} "), left);
        }
        kept.push(Span::styled(content, span.style));
        break;
    }
    Line { spans: kept, ..line }
}

/// Tabs made into spaces, each leading to the next of the places that are so many cells apart.
pub fn without_tabs(text: &str, apart: usize) -> String {
    if !text.contains('\t') {
        return text.to_owned();
    }
    let mut spaced = String::with_capacity(text.len() + apart);
    let mut column = 0;
    for part in text.split_inclusive('\t') {
        let words = part.strip_suffix('\t').unwrap_or(part);
        spaced.push_str(words);
        column += width(words);
        if words.len() < part.len() {
            let step = apart - column % apart;
            spaced.extend(std::iter::repeat_n(' ', step));
            column += step;
        }
    }
    spaced
}

/// Where lines may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Breaks {
    /// Between words; inside one only if it is too long for a line.
    Words,
    /// Anywhere: code keeps its spaces.
    Anywhere,
}

/// Words laid out in lines of at most so many cells.
pub fn wrap(spans: &[Span<'_>], cells: usize) -> Vec<Line<'static>> {
    lay_out(spans, cells, Breaks::Words)
}

/// Code laid out in lines of at most so many cells, with every space it has.
pub fn wrap_code(spans: &[Span<'_>], cells: usize) -> Vec<Line<'static>> {
    lay_out(spans, cells, Breaks::Anywhere)
}

/// What takes one place: a character with all it carries.
struct Item<'a> {
    text: &'a str,
    style: Style,
    cells: usize,
}

impl Item<'_> {
    fn is_space(&self) -> bool {
        matches!(self.text, " " | "\t")
    }
}

fn lay_out(spans: &[Span<'_>], cells: usize, breaks: Breaks) -> Vec<Line<'static>> {
    let cells = cells.max(WIDTH_MIN);
    let items: Vec<Item<'_>> = spans
        .iter()
        .flat_map(|span| {
            let style = span.style;
            span.content.graphemes(true).map(move |text| match text {
                // A tab among words is a space; in code there are none left.
                "\t" => Item { text: " ", style, cells: 1 },
                _ => Item { text, style, cells: width(text) },
            })
        })
        .collect();
    let mut lines = Vec::new();
    let mut start = 0;
    let mut column = 0;
    let mut may_end: Option<usize> = None;
    let mut at = 0;
    while at < items.len() {
        let item = &items[at];
        if matches!(item.text, "\n" | "\r\n") {
            lines.push(line_of(&items[start..at], breaks));
            (start, column, may_end) = (at + 1, 0, None);
        } else if breaks == Breaks::Words && item.is_space() {
            if column + item.cells > cells {
                lines.push(line_of(&items[start..at], breaks));
                while items.get(at + 1).is_some_and(Item::is_space) {
                    at += 1;
                }
                if at + 1 == items.len() {
                    return lines;
                }
                (start, column, may_end) = (at + 1, 0, None);
            } else {
                column += item.cells;
                // Spaces that a line begins with belong to what follows them.
                if items[start..at].iter().any(|item| !item.is_space()) {
                    may_end = Some(at + 1);
                }
            }
        } else {
            if breaks == Breaks::Words && at > start && parts(items[at - 1].text, item.text) {
                may_end = Some(at);
            }
            while column + item.cells > cells && at > start {
                let end = may_end.take().unwrap_or(at);
                lines.push(line_of(&items[start..end], breaks));
                start = end;
                column = items[start..at].iter().map(|item| item.cells).sum();
            }
            column += item.cells;
        }
        at += 1;
    }
    lines.push(line_of(&items[start..], breaks));
    lines
}

/// Whether a line may end between these two, though there is no space.
fn parts(before: &str, after: &str) -> bool {
    const NEVER_FIRST: &str = "、。，．！？：；）」』】》〉〕］｝”’…‥ー々ゝ・％";
    const NEVER_LAST: &str = "（「『【《〈〔［｛“‘￥＄";
    let first = |text: &str| text.chars().next().unwrap_or(' ');
    let (last, next) = (first(before), first(after));
    if NEVER_FIRST.contains(next) || NEVER_LAST.contains(last) {
        return false;
    }
    let wide = |text: &str| !text.is_ascii() && width(text) > 1;
    let hyphen = before == "-" && next.is_alphabetic();
    // Punctuation stays with the wide character it follows.
    let joined = wide(before) && next.is_ascii_punctuation();
    hyphen || ((wide(before) || wide(after)) && !joined)
}

fn line_of(items: &[Item<'_>], breaks: Breaks) -> Line<'static> {
    let end = match breaks {
        Breaks::Anywhere => items.len(),
        Breaks::Words => items.iter().rposition(|item| !item.is_space()).map_or(0, |last| last + 1),
    };
    let mut spans: Vec<Span<'static>> = Vec::new();
    for item in &items[..end] {
        match spans.last_mut() {
            Some(last) if last.style == item.style => last.content.to_mut().push_str(item.text),
            _ => spans.push(Span::styled(item.text.to_owned(), item.style)),
        }
    }
    Line::from(spans)
}

/// The words of a line, without looks.
pub fn words_of(line: &Line<'_>) -> String {
    line.spans.iter().map(|span| &*span.content).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wrapped(text: &str, cells: usize) -> Vec<String> {
        wrap(&[Span::raw(text)], cells).iter().map(words_of).collect()
    }

    #[test]
    fn words_go_where_they_fit() {
        for (text, cells, lines) in [
            ("", 10, &[""][..]),
            ("one two three", 7, &["one two", "three"]),
            ("one two three", 8, &["one two", "three"]),
            ("one  two", 4, &["one", "two"]),
            ("onetwothree", 4, &["onet", "woth", "ree"]),
            ("a onetwothree", 5, &["a", "onetw", "othre", "e"]),
            ("  indented words", 10, &["  indented", "words"]),
            ("a\nb", 5, &["a", "b"]),
            ("日本語です", 4, &["日本", "語で", "す"]),
            ("日本語。", 6, &["日本", "語。"]),
            ("ab日本", 3, &["ab", "日", "本"]),
            ("well-known", 6, &["well-", "known"]),
            ("--flag", 3, &["--", "fla", "g"]),
            ("e\u{301}e\u{301}e\u{301}", 2, &["e\u{301}e\u{301}", "e\u{301}"]),
            ("👩\u{200d}👩\u{200d}👧x", 2, &["👩\u{200d}👩\u{200d}👧", "x"]),
            ("trailing   ", 8, &["trailing"]),
            ("日", 1, &["日"]),
        ] {
            assert_eq!(wrapped(text, cells), lines, "{text:?} in {cells}");
        }
    }

    #[test]
    fn looks_stay_with_their_words() {
        let (one, other) = (Style::new(), Style::new().bold());
        let lines = wrap(&[Span::styled("one t", one), Span::styled("wo three", other)], 7);
        assert_eq!(
            lines,
            [
                Line::from(vec![Span::styled("one t", one), Span::styled("wo", other)]),
                Line::from(Span::styled("three", other))
            ]
        );
    }

    #[test]
    fn code_keeps_every_space() {
        let lines: Vec<String> = wrap_code(&[Span::raw("    a  b  c")], 6).iter().map(words_of).collect();
        assert_eq!(lines, ["    a ", " b  c"]);
        assert_eq!(without_tabs("\ta\tb", 4), "    a   b");
        assert_eq!(without_tabs("日\tb", 4), "日  b");
    }

    #[test]
    fn what_is_cut_says_so() {
        for (text, cells, front, end) in [
            ("short", 5, "short", "short"),
            ("longer", 5, "long…", "…nger"),
            ("日本語", 5, "日本…", "…本語"),
            ("日本語", 4, "日…", "…語"),
            ("ab", 1, "…", "…"),
            ("ab", 0, "", ""),
        ] {
            assert_eq!(cut(text, cells), front, "{text} {cells}");
            assert_eq!(cut_front(text, cells), end, "{text} {cells}");
        }
        let line = |parts: &[&'static str]| {
            Line::from(parts.iter().map(|part| Span::raw(*part)).collect::<Vec<_>>())
        };
        for (parts, cells, cut) in [
            (&["ab", "cd"][..], 4, "abcd"),
            (&["ab", "cd"], 3, "ab…"),
            (&["ab", "cd"], 2, "a…"),
            (&["abc", "d"], 3, "ab…"),
        ] {
            assert_eq!(words_of(&cut_line(line(parts), cells)), cut, "{parts:?} {cells}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_too_wide_and_nothing_is_lost(text in "[ a-z日本👩é。（-]{0,60}", cells in 2usize..20) {
            let lines = wrapped(&text, cells);
            let bare = |text: &str| text.replace(' ', "");
            prop_assert_eq!(bare(&lines.concat()), bare(&text));
            for line in &lines {
                prop_assert!(width(line) <= cells, "{:?} in {}", line, cells);
            }
            let code: Vec<String> = wrap_code(&[Span::raw(text.as_str())], cells).iter().map(words_of).collect();
            prop_assert_eq!(code.concat(), text);
            prop_assert!(code.iter().all(|line| width(line) <= cells));
        }

        #[test]
        fn a_cut_line_fits(parts in prop::collection::vec("[a-z日]{0,5}", 0..5), cells in 1usize..12) {
            let line = Line::from(parts.iter().map(|part| Span::raw(part.clone())).collect::<Vec<_>>());
            let fits = parts.concat().width() <= cells;
            let cut = cut_line(line, cells);
            prop_assert!(width_of(&cut.spans) <= cells);
            prop_assert_eq!(words_of(&cut).contains('…'), !fits);
        }
    }
}
