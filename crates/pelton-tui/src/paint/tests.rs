//! A model of a terminal reads what is painted: whatever happens, every finished line stands there once and in order.

use std::num::NonZeroU16;

use proptest::prelude::*;

use super::*;

struct Screen {
    parser: vt100::Parser,
    painter: Painter,
}

impl Screen {
    fn new(columns: u16, rows: u16) -> Self {
        let parser = vt100::Parser::new(cells(rows), cells(columns), 10_000);
        Self { parser, painter: Painter::new(columns, rows, OnNarrowing::Cuts) }
    }

    fn paint(&mut self, finished: &[&str], live: &[&str], caret: Option<(usize, usize)>) -> String {
        let line = |text: &&str| Line::raw((*text).to_owned());
        let finished: Vec<Line<'_>> = finished.iter().map(line).collect();
        let lines = live.iter().map(line).collect();
        let live = Live { lines, caret: caret.map(|(row, column)| Caret { row, column }) };
        let bytes = self.painter.paint(&finished, &live);
        self.parser.process(bytes.as_bytes());
        bytes
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        self.parser.set_size(cells(rows), cells(columns));
        self.painter.resize(columns, rows);
    }

    /// Every row, from the oldest, without those that are empty at the end.
    fn rows(&mut self) -> Vec<String> {
        let screen = self.parser.screen_mut();
        let (height, columns) = (usize::from(screen.size().0.get()), screen.size().1.get());
        let mut back = screen.scrollback_len();
        let mut all = Vec::new();
        while back > 0 {
            screen.set_scrollback(back);
            all.extend(screen.rows(0, columns).take(height.min(back)));
            back -= height.min(back);
        }
        screen.set_scrollback(0);
        all.extend(screen.rows(0, columns));
        while all.last().is_some_and(|row| row.trim().is_empty()) {
            all.pop();
        }
        all.into_iter().map(|row| row.trim_end().to_owned()).collect()
    }
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap()
}

#[test]
fn what_is_live_is_replaced_and_what_is_finished_stays() {
    let mut screen = Screen::new(20, 5);
    screen.paint(&[], &["> ", "status"], Some((0, 2)));
    assert_eq!(screen.rows(), [">", "status"]);
    assert_eq!(screen.parser.screen().cursor_position(), (0, 2));
    screen.paint(&["one", "two"], &["> a", "status"], Some((0, 3)));
    assert_eq!(screen.rows(), ["one", "two", "> a", "status"]);
    assert_eq!(screen.parser.screen().cursor_position(), (2, 3));
    screen.paint(&["three", "four"], &["> ", "status"], Some((0, 2)));
    assert_eq!(screen.rows(), ["one", "two", "three", "four", ">", "status"]);
    screen.paint(&[], &["only"], None);
    assert_eq!(screen.rows(), ["one", "two", "three", "four", "only"]);
    assert!(screen.parser.screen().hide_cursor());
    let bytes = screen.painter.leave();
    screen.parser.process(bytes.as_bytes());
    screen.parser.process(b"$ ");
    assert_eq!(screen.rows(), ["one", "two", "three", "four", "$"]);
}

#[test]
fn a_live_line_that_is_finished_as_it_stands_is_not_written_again() {
    let mut screen = Screen::new(40, 10);
    screen.paint(&[], &["an answer that comes", "> "], Some((1, 2)));
    let bytes = screen.paint(&["an answer that comes"], &["> "], Some((0, 2)));
    assert!(!bytes.contains("answer"), "{bytes:?}");
    assert_eq!(screen.rows(), ["an answer that comes", ">"]);
    assert_eq!(screen.paint(&[], &["> "], Some((0, 2))), "", "nothing has changed");
}

#[test]
fn a_line_that_is_longer_than_the_screen_is_wide_is_the_terminals_to_break() {
    let mut screen = Screen::new(10, 6);
    screen.paint(&[], &["live", "> ", "status"], Some((1, 2)));
    let long = "abcdefghijklmnopqrstuvwxyz";
    screen.paint(&["first", long, "last"], &["> ", "status"], Some((0, 2)));
    assert_eq!(screen.rows(), ["first", "abcdefghij", "klmnopqrst", "uvwxyz", "last", ">", "status"]);
    assert!(screen.parser.screen().row_wrapped(0), "so that it is copied as one");
    // Exactly as wide as the screen.
    screen.paint(&["0123456789"], &["> ", "status"], Some((0, 2)));
    assert_eq!(screen.rows()[5..], ["0123456789", ">", "status"]);
}

#[test]
fn a_live_area_that_is_higher_than_the_screen_loses_its_top() {
    let mut screen = Screen::new(10, 3);
    screen.paint(&["done"], &["a", "b", "c", "d"], Some((3, 1)));
    assert_eq!(screen.rows(), ["done", "b", "c", "d"]);
    screen.paint(&[], &["d"], Some((0, 1)));
    assert_eq!(screen.rows(), ["done", "d"]);
}

#[test]
fn where_long_rows_are_broken_anew_the_rows_above_the_cursor_are_more() {
    let mut painter = Painter::new(20, 10, OnNarrowing::Reflows);
    let live = Live {
        lines: vec![Line::raw("a line of 18 cells"), Line::raw("> ")],
        caret: Some(Caret { row: 1, column: 2 }),
    };
    painter.paint(&[], &live);
    painter.resize(10, 10);
    // Two rows for the first line, so two up.
    assert!(painter.paint(&[], &live).contains("\u{1b}[2A\r\u{1b}[J"));
    // Wide again before anything was painted: they are one again.
    let mut painter = Painter::new(20, 10, OnNarrowing::Reflows);
    painter.paint(&[], &live);
    painter.resize(10, 10);
    painter.resize(20, 10);
    painter.resize(30, 10);
    assert!(painter.paint(&[], &live).contains("\u{1b}[1A\r\u{1b}[J"));
    let mut painter = Painter::new(20, 10, OnNarrowing::Cuts);
    painter.paint(&[], &live);
    painter.resize(10, 10);
    assert!(painter.paint(&[], &live).contains("\u{1b}[1A\r\u{1b}[J"));
}

#[derive(Debug, Clone)]
enum Step {
    Paint { finished: usize, live: Vec<u8>, caret: usize },
    Resize(u16, u16),
}

fn step() -> impl Strategy<Value = Step> {
    let live = proptest::collection::vec(0..60_u8, 1..6);
    prop_oneof![
        4 => (0..8_usize, live, 0..6_usize).prop_map(|(finished, live, caret)| Step::Paint { finished, live, caret }),
        1 => (30..90_u16, 8..30_u16).prop_map(|(columns, rows)| Step::Resize(columns, rows)),
    ]
}

proptest! {
    #[test]
    fn pit_U1_every_finished_line_stands_there_once_and_in_order(steps in proptest::collection::vec(step(), 1..60)) {
        let mut screen = Screen::new(80, 24);
        let (mut count, mut last_live) = (0, Vec::new());
        for step in steps {
            match step {
                Step::Resize(columns, rows) => screen.resize(columns, rows),
                Step::Paint { finished, live, caret } => {
                    let done: Vec<String> = (count..count + finished).map(|number| format!("line {number}")).collect();
                    count += finished;
                    // Live lines are no wider than the narrowest screen, so that no terminal keeps a part of them.
                    let live: Vec<String> = live.iter().map(|width| "~".repeat(usize::from(*width) % 28 + 1)).collect();
                    let done: Vec<&str> = done.iter().map(String::as_str).collect();
                    let shown: Vec<&str> = live.iter().map(String::as_str).collect();
                    let caret = (caret % shown.len(), 0);
                    screen.paint(&done, &shown, Some(caret));
                    last_live = live;
                }
            }
        }
        screen.paint(&[], &last_live.iter().map(String::as_str).collect::<Vec<_>>(), Some((0, 0)));
        let mut expected: Vec<String> = (0..count).map(|number| format!("line {number}")).collect();
        expected.extend(last_live.iter().filter(|line| !line.is_empty()).cloned());
        let mut rows = screen.rows();
        // Where a window grows, a terminal may put empty rows above.
        rows.retain(|row| !row.is_empty());
        prop_assert_eq!(rows, expected);
    }
}
