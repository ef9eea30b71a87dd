//! Every finished line once, whatever the window does.

use pelton_testkit::{Script, gate, text};

use crate::place::{Place, model};
use crate::seat::Seat;

fn numbered(from: usize, to: usize) -> String {
    (from..to).map(|number| format!("line {number:04} of the answer\n\n")).collect()
}

#[test]
fn pit_U1_five_thousand_lines_with_resizes_stand_in_the_scrollback_once() {
    const LINES: usize = 5_000;
    let place = Place::new();
    let fifth = |nth: usize| text(numbered(nth * LINES / 5, (nth + 1) * LINES / 5)).fragments(100);
    let model = model(Script::new().reply([
        fifth(0),
        gate("one"),
        fifth(1),
        gate("two"),
        fifth(2),
        gate("three"),
        fifth(3),
        gate("four"),
        fifth(4),
    ]));
    let mut seat = Seat::at(&place, &model, ["go"]);
    let sizes = [(100, 30), (60, 20), (80, 24), (40, 12)];
    for (nth, (gate, (columns, rows))) in ["one", "two", "three", "four"].into_iter().zip(sizes).enumerate() {
        let last = format!("line {:04}", (nth + 1) * LINES / 5 - 1);
        seat.sees(&last);
        seat.resize(columns, rows);
        model.open(gate);
    }
    seat.sees(&format!("line {:04}", LINES - 1));
    seat.rests();
    seat.types("\u{4}");
    assert_eq!(seat.ends(), Some(0));
    let rows = seat.rows();
    let told: Vec<&String> = rows.iter().filter(|row| row.starts_with("line ")).collect();
    let expected: Vec<String> = (0..LINES).map(|number| format!("line {number:04} of the answer")).collect();
    assert!(
        told.iter().map(|row| row.as_str()).eq(expected.iter().map(String::as_str)),
        "{} lines",
        told.len()
    );
    let shown = String::from_utf8(seat.bytes()).unwrap();
    for never in ["\u{1b}[2J", "\u{1b}[?1049h", "\u{1b}[3J"] {
        assert!(!shown.contains(never), "{never:?}");
    }
}
