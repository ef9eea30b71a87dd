//! The table and the curves as one picture.

use std::fmt::Write as _;

use crate::table::{Curve, Results, shown};

const WIDTH: f64 = 1040.0;
/// Room for the longest name of a row.
const LABELS_WIDTH: f64 = 470.0;
const BAR_HEIGHT: f64 = 12.0;
const ROW_GAP: f64 = 10.0;
const TOP: f64 = 50.0;
const CURVE_HEIGHT: f64 = 150.0;
/// The bars span so many powers of ten above the least figure of their row.
const DECADES_MAX: f64 = 4.0;
const COLOURS: [&str; 5] = ["#9aa5b1", "#0b7285", "#e8590c", "#7048e8", "#2b8a3e"];

pub(crate) fn svg(results: &Results) -> String {
    let programs = results.programs();
    let mut body = String::new();
    let mut y = TOP;
    for (number, program) in programs.iter().enumerate() {
        let (x, colour) = (LABELS_WIDTH + 110.0 * number as f64, colour(number));
        rect(&mut body, x, 12.0, 12.0, 12.0, colour);
        text(&mut body, x + 18.0, 22.0, "start", program);
    }
    text(&mut body, 10.0, 22.0, "start", "times the least of the row, powers of ten");
    for row in results.rows.iter().filter(|row| row.figures.iter().any(|figure| figure.median > 0.0)) {
        let least = row
            .figures
            .iter()
            .map(|figure| figure.median)
            .filter(|median| *median > 0.0)
            .fold(f64::INFINITY, f64::min);
        text(&mut body, 10.0, y + BAR_HEIGHT - 2.0, "start", &format!("{} ({})", row.what, row.unit));
        for figure in &row.figures {
            let number = programs.iter().position(|program| *program == figure.program).unwrap_or(0);
            let decades = (figure.median / least).log10().clamp(0.0, DECADES_MAX);
            let width = 8.0 + decades / DECADES_MAX * (WIDTH - LABELS_WIDTH - 90.0);
            rect(&mut body, LABELS_WIDTH, y, width, BAR_HEIGHT - 2.0, colour(number));
            text(&mut body, LABELS_WIDTH + width + 4.0, y + BAR_HEIGHT - 2.0, "start", &shown(figure.median));
            y += BAR_HEIGHT;
        }
        y += ROW_GAP;
    }
    for curve in results.curves.iter().filter(|curve| curve.points.len() > 1) {
        y += ROW_GAP;
        draw(&mut body, curve, y);
        y += CURVE_HEIGHT + 2.0 * ROW_GAP;
    }
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" font-family="sans-serif" font-size="10"><rect width="100%" height="100%" fill="white"/>{body}</svg>
"#
    )
}

fn draw(out: &mut String, curve: &Curve, top: f64) {
    let most = |of: fn(&(f64, f64)) -> f64| curve.points.iter().map(of).fold(f64::MIN_POSITIVE, f64::max);
    let (turns, value) = (most(|point| point.0), most(|point| point.1));
    let (left, right, bottom) = (60.0, WIDTH - 20.0, top + CURVE_HEIGHT - 15.0);
    text(out, left, top, "start", &format!("{} ({}) by turns of history", curve.what, curve.unit));
    text(out, left - 5.0, top + 15.0, "end", &shown(value));
    text(out, left - 5.0, bottom, "end", "0");
    text(out, right, bottom + 12.0, "end", &shown(turns));
    let points: Vec<String> = curve
        .points
        .iter()
        .map(|(x, y)| {
            let across = left + x / turns * (right - left);
            format!("{across:.1},{:.1}", bottom - y / value * (bottom - top - 10.0))
        })
        .collect();
    // Writing to a string does not fail.
    let _ = write!(
        out,
        r#"<path d="M{left} {} V{bottom} H{right}" fill="none" stroke="{}"/><polyline points="{}" fill="none" stroke="{}"/>"#,
        top + 10.0,
        COLOURS[0],
        points.join(" "),
        COLOURS[1]
    );
}

fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}

fn rect(out: &mut String, x: f64, y: f64, width: f64, height: f64, fill: &str) {
    let _ =
        write!(out, r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{fill}"/>"#);
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = write!(out, r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{words}</text>"#);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{LIMIT, PELTON, Row};

    #[test]
    fn every_row_and_curve_is_drawn() {
        let rows = vec![Row::new("a < b", "ms", None).with(LIMIT, &[1.0]).with(PELTON, &[100.0])];
        let curves = vec![Curve { what: "gap".to_owned(), unit: "ms", points: vec![(1.0, 1.0), (2.0, 1.5)] }];
        let svg = svg(&Results { how: Vec::new(), rows, curves });
        assert!(svg.contains("a &lt; b (ms)") && svg.contains("<polyline"), "{svg}");
        assert_eq!(svg.matches("<rect ").count(), 1 + 2 + 2, "the ground, two colours, two bars: {svg}");
    }
}
