//! What changed in a file: signs and line numbers, the very words marked, in colours where there are some.
//!
//! ```text
//!  11   fn main() {
//!  12 -     let x = 1;
//!  12 +     let x = 2;
//! ```

pub mod patch; // what git says has changed

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use similar::{ChangeTag, TextDiff};

use crate::cells::{WIDTH_MIN, wrap_code};
use crate::clean;
use crate::limits::{DIFF_CONTEXT_LINES, DIFF_LINES_MAX, DIFF_WORDS_CHARS_MAX};
use crate::theme::{Role, Theme};

/// Of two lines that have less than this in common, blank space aside, all words are new.
const ALIKE_PERCENT_MIN: usize = 40;

/// A part of a file in which something changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The numbers of its first line, before and after.
    old_start: usize,
    new_start: usize,
    rows: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    sign: Sign,
    /// Without its end, as it is.
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Same,
    Removed,
    Added,
}

impl Hunk {
    /// A part of a patch: lines that begin with a sign or a space.
    pub fn of_patch<'a>(
        old_start: usize,
        new_start: usize,
        lines: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let row = |line: &str| {
            let (sign, text) = match line.as_bytes().first() {
                Some(b'+') => (Sign::Added, &line[1..]),
                Some(b'-') => (Sign::Removed, &line[1..]),
                Some(b' ') => (Sign::Same, &line[1..]),
                // A remark about the file's last line.
                Some(b'\\') => return None,
                _ => (Sign::Same, line),
            };
            Some(Row { sign, text: text.to_owned() })
        };
        Self { old_start, new_start, rows: lines.into_iter().filter_map(row).collect() }
    }

    /// Lines added and removed.
    pub fn counts(&self) -> (usize, usize) {
        let of = |sign: Sign| self.rows.iter().filter(|row| row.sign == sign).count();
        (of(Sign::Added), of(Sign::Removed))
    }

    fn last_number(&self) -> usize {
        let longest =
            |start: usize, not: Sign| start + self.rows.iter().filter(|row| row.sign != not).count();
        longest(self.old_start, Sign::Added).max(longest(self.new_start, Sign::Removed)).saturating_sub(1)
    }
}

/// What changed between two texts.
pub fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    if old == new {
        return Vec::new();
    }
    if old.lines().count().max(new.lines().count()) > DIFF_LINES_MAX {
        let rows = |text: &str, sign: Sign| -> Vec<Row> {
            text.lines().map(|line| Row { sign, text: line.to_owned() }).collect()
        };
        let mut all = rows(old, Sign::Removed);
        all.extend(rows(new, Sign::Added));
        return vec![Hunk { old_start: 1, new_start: 1, rows: all }];
    }
    let diff = TextDiff::from_lines(old, new);
    let hunk = |changes: Vec<similar::DiffOp>| {
        let start = |range: Option<std::ops::Range<usize>>| range.map_or(1, |range| range.start + 1);
        let rows = changes.iter().flat_map(|change| diff.iter_changes(change)).map(|change| {
            let sign = match change.tag() {
                ChangeTag::Equal => Sign::Same,
                ChangeTag::Delete => Sign::Removed,
                ChangeTag::Insert => Sign::Added,
            };
            Row { sign, text: change.value().trim_end_matches(['\n', '\r']).to_owned() }
        });
        Hunk {
            old_start: start(changes.first().map(similar::DiffOp::old_range)),
            new_start: start(changes.first().map(similar::DiffOp::new_range)),
            rows: rows.collect(),
        }
    };
    diff.grouped_ops(DIFF_CONTEXT_LINES).into_iter().map(hunk).collect()
}

/// How a diff is laid out.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    pub width: usize,
    pub theme: Theme,
    /// Rows that are shown at most; how many lines are left out is said below them.
    pub rows_max: usize,
}

/// The parts as lines for the screen. No line is left out silently, and none shows anything but text.
pub fn lines(hunks: &[Hunk], layout: &Layout) -> Vec<Line<'static>> {
    let digits = hunks.iter().map(Hunk::last_number).max().unwrap_or_default().to_string().len();
    let mut lines: Vec<Line<'static>> = Vec::new();
    let mut left_out = 0;
    for (at, hunk) in hunks.iter().enumerate() {
        if at > 0 && left_out == 0 {
            let gap = format!("{:>digits$}", "⋯");
            lines.push(Line::styled(gap, layout.theme.style(Role::Hunk)));
        }
        let (mut old, mut new) = (hunk.old_start, hunk.new_start);
        let marked = marked(&hunk.rows);
        for (row, pieces) in hunk.rows.iter().zip(marked) {
            let number = if row.sign == Sign::Removed { old } else { new };
            old += usize::from(row.sign != Sign::Added);
            new += usize::from(row.sign != Sign::Removed);
            if left_out > 0 || lines.len() >= layout.rows_max {
                left_out += 1;
                continue;
            }
            lines.extend(row_lines(layout, digits, number, row.sign, &pieces));
        }
    }
    if left_out > 0 {
        let more = format!("… {left_out} more line{}", if left_out == 1 { "" } else { "s" });
        lines.push(Line::styled(more, layout.theme.style(Role::Faint)));
    }
    lines
}

/// A piece of a line, and whether it is what changed.
type Piece = (String, bool);

fn row_lines(
    layout: &Layout,
    digits: usize,
    number: usize,
    sign: Sign,
    pieces: &[Piece],
) -> Vec<Line<'static>> {
    let theme = &layout.theme;
    let (mark, plain, changed) = match sign {
        Sign::Same => (' ', theme.style(Role::Faint), theme.style(Role::Faint)),
        Sign::Removed => ('-', theme.style(Role::Removed), theme.style(Role::RemovedWords)),
        Sign::Added => ('+', theme.style(Role::Added), theme.style(Role::AddedWords)),
    };
    let style = |is_changed: bool| if is_changed { changed } else { plain };
    let spans: Vec<Span<'static>> =
        pieces.iter().map(|(text, is_changed)| Span::styled(text.clone(), style(*is_changed))).collect();
    // Number, space, sign, space; on a very narrow screen the words come first.
    let gutter = digits + 3;
    let (gutter, room) = match layout.width.checked_sub(gutter) {
        Some(room) if room >= WIDTH_MIN * 4 => (gutter, room),
        _ => (2, layout.width.saturating_sub(2).max(WIDTH_MIN)),
    };
    let before = |first: bool| -> Vec<Span<'static>> {
        let numbers = theme.style(Role::LineNumber);
        match (first, gutter > 2) {
            (true, true) => {
                vec![
                    Span::styled(format!("{number:>digits$} "), numbers),
                    Span::styled(format!("{mark} "), plain),
                ]
            }
            (true, false) => vec![Span::styled(format!("{mark} "), plain)],
            // A line that goes on has neither number nor sign.
            (false, _) => vec![Span::styled(" ".repeat(gutter), Style::new())],
        }
    };
    let rows = wrap_code(&spans, room).into_iter().enumerate();
    rows.map(|(at, row)| Line::from(before(at == 0).into_iter().chain(row.spans).collect::<Vec<_>>()))
        .collect()
}

/// The pieces of each row. Where as many lines were added as removed before them, each is compared with the one it replaces.
fn marked(rows: &[Row]) -> Vec<Vec<Piece>> {
    let mut all: Vec<Vec<Piece>> = rows.iter().map(|row| vec![(clean_line(&row.text), false)]).collect();
    let mut at = 0;
    while at < rows.len() {
        let run = |from: usize, sign: Sign| rows[from..].iter().take_while(|row| row.sign == sign).count();
        let removed = run(at, Sign::Removed);
        let added = run(at + removed, Sign::Added);
        if removed > 0 && removed == added {
            for pair in at..at + removed {
                if let Some((old, new)) = words(&all[pair][0].0, &all[pair + removed][0].0) {
                    all[pair] = old;
                    all[pair + removed] = new;
                }
            }
        }
        at += (removed + added).max(1);
    }
    all
}

/// The words of two lines that differ, if the lines are alike enough.
fn words(old: &str, new: &str) -> Option<(Vec<Piece>, Vec<Piece>)> {
    if old.len().max(new.len()) > DIFF_WORDS_CHARS_MAX {
        return None;
    }
    let solid = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
    let mut alike = 0;
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for change in TextDiff::from_unicode_words(old, new).iter_all_changes() {
        match change.tag() {
            ChangeTag::Equal => {
                alike += solid(change.value());
                add(&mut before, change.value(), false);
                add(&mut after, change.value(), false);
            }
            ChangeTag::Delete => add(&mut before, change.value(), true),
            ChangeTag::Insert => add(&mut after, change.value(), true),
        }
    }
    let all = solid(old) + solid(new);
    (200 * alike >= ALIKE_PERCENT_MIN * all).then_some((before, after))
}

fn add(pieces: &mut Vec<Piece>, text: &str, changed: bool) {
    match pieces.last_mut() {
        Some((last, is_changed)) if *is_changed == changed => last.push_str(text),
        _ => pieces.push((text.to_owned(), changed)),
    }
}

/// A line of a file: what leaves no mark is written out, since somebody may be asked about it.
fn clean_line(text: &str) -> String {
    clean::revealed(text).replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cells::{width, words_of};
    use crate::theme::{Surroundings, Wanted};

    const PLAIN: Layout = Layout { width: 60, theme: Theme::BARE, rows_max: 100 };

    fn shown(old: &str, new: &str, layout: &Layout) -> Vec<String> {
        lines(&hunks(old, new), layout).iter().map(words_of).collect()
    }

    #[test]
    fn signs_and_numbers_tell_it_without_colours() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n";
        let new = "a\nb\nX\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\n";
        assert_eq!(
            shown(old, new, &PLAIN),
            [
                " 1   a", " 2   b", " 3 - c", " 3 + X", " 4   d", " 5   e", " 6   f", " ⋯", "10   j",
                "11   k", "12   l", "13 + m"
            ]
        );
        assert_eq!(hunks(old, new)[0].counts(), (1, 1));
        assert_eq!(shown("same", "same", &PLAIN), Vec::<String>::new());
        assert_eq!(shown("", "new\nfile\n", &PLAIN), ["1 + new", "2 + file"]);
        assert_eq!(shown("gone\n", "", &PLAIN), ["1 - gone"]);
        assert_eq!(shown("a\r\n", "b\r\n", &PLAIN), ["1 - a", "1 + b"]);
    }

    #[test]
    fn the_very_words_are_marked() {
        let surroundings =
            Surroundings { term: Some("xterm"), colorterm: Some("truecolor"), ..Default::default() };
        let theme = Theme::new(surroundings, Wanted::default());
        let layout = Layout { theme, ..PLAIN };
        let lines = lines(&hunks("let x = one(1);\n", "let x = two(1);\n"), &layout);
        let look = |line: usize, word: &str| {
            lines[line].spans.iter().find(|span| span.content == word).map(|span| span.style)
        };
        assert_eq!(look(0, "one"), Some(theme.style(Role::RemovedWords)));
        assert_eq!(look(1, "two"), Some(theme.style(Role::AddedWords)));
        assert_eq!(look(1, "let x = "), Some(theme.style(Role::Added)));
        // Lines that have nothing to do with each other have no marks.
        let lines = super::lines(&hunks("alpha beta gamma\n", "nothing like it\n"), &layout);
        assert_eq!(lines[0].spans.last().map(|span| span.style), Some(theme.style(Role::Removed)));
    }

    #[test]
    fn patches_are_shown_alike() {
        let hunk = Hunk::of_patch(7, 9, [" same", "-old", "+new", "\\ No newline at end of file", ""]);
        assert_eq!(
            lines(&[hunk], &PLAIN).iter().map(words_of).collect::<Vec<_>>(),
            [" 9   same", " 8 - old", "10 + new", "11   "]
        );
    }

    #[test]
    fn nothing_is_left_out_silently() {
        let new: String = (0..50).map(|line| format!("{line}\n")).collect();
        let shown_lines = shown("", &new, &Layout { rows_max: 10, ..PLAIN });
        assert_eq!((shown_lines.len(), shown_lines.last().unwrap().as_str()), (11, "… 40 more lines"));
        let long = "x".repeat(100);
        assert_eq!(shown("", &long, &Layout { width: 24, ..PLAIN }).concat().matches('x').count(), 100);
        assert_eq!(shown("", "some words", &Layout { width: 9, ..PLAIN }), ["+ some wo", "  rds"]);
    }

    #[test]
    fn what_is_hidden_is_seen() {
        assert_eq!(shown("", "a\u{202e}b\u{1b}[2J\n", &PLAIN), ["1 + a‹U+202E›b‹U+001B›[2J"]);
        assert_eq!(shown("", "\tx\n", &PLAIN), ["1 +         x"]);
    }

    #[test]
    fn texts_too_long_to_compare_are_shown_all_the_same() {
        let old = "a\n".repeat(DIFF_LINES_MAX + 1);
        let shown_lines = shown(&old, "b\n", &Layout { rows_max: 2, ..PLAIN });
        assert_eq!(shown_lines, ["   1 - a", "   2 - a", &format!("… {} more lines", DIFF_LINES_MAX)]);
    }

    proptest! {
        #[test]
        fn both_texts_are_in_it(old in "([a-c ]{0,6}\n){0,12}", new in "([a-c日 ]{0,6}\n){0,12}", cells in 3usize..40) {
            // Everything around a change is shown if the texts are short enough to be context.
            let rows: Vec<Row> = hunks(&old, &new).into_iter().flat_map(|hunk| hunk.rows).collect();
            let side = |not: Sign| rows.iter().filter(|row| row.sign != not).map(|row| row.text.as_str()).collect::<Vec<_>>();
            let inside = |lines: Vec<&str>, text: &str| {
                let mut all = text.lines();
                lines.iter().all(|line| all.any(|other| other == *line))
            };
            prop_assert!(inside(side(Sign::Added), &old));
            prop_assert!(inside(side(Sign::Removed), &new));
            let layout = Layout { width: cells, ..PLAIN };
            for line in shown(&old, &new, &layout) {
                prop_assert!(width(&line) <= cells.max(4), "{:?} in {}", line, cells);
            }
        }
    }
}
