//! What is on the terminal: finished lines, each written once and then the terminal's own, and below them the live area,
//! the only part that is ever written again. Nothing here knows what the lines say. Bytes come out; somebody else writes
//! them.
//!
//! The cursor is moved by rows up and down from where it is and never to a place on the screen: where the screen begins
//! is the terminal's affair. A finished line that stands in the live area already is not written again; the live area
//! just begins below it.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use ratatui_core::text::Line;

use crate::row::Row;

/// Where the caret stands in the live area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caret {
    /// The line, from the top of the live area.
    pub row: usize,
    /// The cell in it.
    pub column: usize,
}

/// The live area, as it should be.
#[derive(Debug, Clone, Default)]
pub struct Live {
    /// Its lines, from the top. What does not fit the screen is left out from the top.
    pub lines: Vec<Line<'static>>,
    /// Where the caret stands; without one it is hidden.
    pub caret: Option<Caret>,
}

/// What a terminal does with long lines when it gets narrower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnNarrowing {
    /// They go on in the next row.
    Reflows,
    /// The same, and the program hears of it some time later: in between, what it paints would be for a window that is not there any more.
    ReflowsBeforeTelling,
    /// They lose their ends.
    Cuts,
}

/// Knows what the live area on the terminal looks like.
#[derive(Debug)]
pub struct Painter {
    columns: usize,
    rows: usize,
    on_narrowing: OnNarrowing,
    /// What the live area shows, from its top.
    shown: Vec<Row>,
    /// The row of the cursor in it, and its cell.
    at: (usize, usize),
    is_hidden: bool,
    /// The terminal has another size since: how many rows the cursor is below the top of the live area now.
    resized: Option<usize>,
}

impl Painter {
    /// For a terminal of this size, whose cursor is at the beginning of a line.
    pub fn new(columns: u16, rows: u16, on_narrowing: OnNarrowing) -> Self {
        Self {
            columns: usize::from(columns).max(1),
            rows: usize::from(rows).max(1),
            on_narrowing,
            shown: Vec::new(),
            at: (0, 0),
            is_hidden: false,
            resized: None,
        }
    }

    /// Cells of a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Rows of the screen.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The terminal has this size from now on.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        let (columns, rows) = (usize::from(columns).max(1), usize::from(rows).max(1));
        if (columns, rows) == (self.columns, self.rows) {
            return;
        }
        let above = match self.on_narrowing {
            OnNarrowing::Cuts => self.at.0,
            OnNarrowing::Reflows | OnNarrowing::ReflowsBeforeTelling => {
                let rows = self.shown.iter().take(self.at.0).map(|row| row.rows_in(columns));
                rows.sum::<usize>() + self.at.1 / columns
            }
        };
        (self.columns, self.rows) = (columns, rows);
        let above = above.min(rows - 1);
        self.resized = Some(match (self.on_narrowing, self.resized) {
            // Of several sizes in a row the last one counts: rows that were broken anew are put together again.
            (OnNarrowing::Reflows | OnNarrowing::ReflowsBeforeTelling, _) | (_, None) => above,
            // A cursor that a low window moved up does not come down again.
            (OnNarrowing::Cuts, Some(before)) => above.min(before),
        });
    }

    /// Somebody else has written over the live area: the next paint writes all of it.
    pub fn forget(&mut self) {
        self.resized.get_or_insert(self.at.0);
    }

    /// Writes finished lines above the live area, and the live area as it should be now.
    pub fn paint(&mut self, finished: &[Line<'_>], live: &Live) -> String {
        let mut out = String::new();
        if let Some(above) = self.resized.take() {
            // Where its rows are is known no more, only where it begins.
            up(&mut out, above);
            out.push_str("\r\u{1b}[J");
            self.shown.clear();
            self.at = (0, 0);
        }
        let left_out = live.lines.len().saturating_sub(self.rows);
        let lines = live.lines.iter().skip(left_out);
        let mut next: Vec<Row> = finished.iter().map(Row::of).collect();
        next.extend(lines.map(|line| Row::up_to(line, self.columns)));
        if next.len() == finished.len() {
            // There is a row below what is finished, so that the cursor has a place.
            next.push(Row::default());
        }
        let caret = live.caret.and_then(|caret| Some((caret.row.checked_sub(left_out)?, caret.column)));
        self.write_rows(&mut out, &next);
        if self.at.0 < finished.len() {
            self.go(&mut out, (finished.len(), 0));
        }
        self.shown = next.split_off(finished.len());
        // The rows that are finished are above the live area now.
        self.at.0 -= finished.len();
        let to = match caret {
            Some((row, column)) => {
                (row.min(self.shown.len().saturating_sub(1)), column.min(self.columns - 1))
            }
            None => (self.shown.len().saturating_sub(1), 0),
        };
        if out.is_empty() && self.at == to && self.is_hidden == caret.is_none() {
            return out;
        }
        self.go(&mut out, to);
        // Nobody sees it half done, nor the cursor on its way.
        let mut whole = String::from("\u{1b}[?2026h\u{1b}[?25l");
        whole.push_str(&out);
        if caret.is_some() {
            whole.push_str("\u{1b}[?25h");
        }
        self.is_hidden = caret.is_none();
        whole.push_str("\u{1b}[?2026l");
        whole
    }

    /// Takes the live area away. The cursor stands where it began; whatever is written next stands below what is finished.
    pub fn leave(&mut self) -> String {
        let mut out = String::new();
        let above = self.resized.take().unwrap_or(self.at.0);
        up(&mut out, above);
        out.push_str("\r\u{1b}[J\u{1b}[?25h");
        self.shown.clear();
        self.at = (0, 0);
        self.is_hidden = false;
        out
    }

    /// Brings the rows from the top of the live area on to what they should be.
    fn write_rows(&mut self, out: &mut String, next: &[Row]) {
        for (index, row) in next.iter().enumerate() {
            match self.shown.get(index) {
                Some(shown) if shown == row => continue,
                Some(shown) => {
                    let was = shown.width;
                    self.go(out, (index, 0));
                    if row.width > self.columns {
                        // It takes more rows than one, and so everything below it moves.
                        out.push_str("\u{1b}[J");
                        self.shown.truncate(index + 1);
                    }
                    out.push_str(&row.text);
                    if row.width < was && row.width < self.columns {
                        out.push_str("\u{1b}[K");
                    }
                }
                None => {
                    if index > 0 {
                        self.go(out, (index - 1, self.at.1));
                        out.push_str("\r\n");
                    } else {
                        out.push('\r');
                    }
                    out.push_str(&row.text);
                    self.shown.push(row.clone());
                }
            }
            self.at = (index, row.width.min(self.columns - 1));
        }
        if next.len() < self.shown.len() {
            if next.is_empty() {
                self.go(out, (0, 0));
                out.push_str("\u{1b}[J");
            } else {
                // From the row below, so that nothing of the last one goes.
                self.go(out, (next.len(), 0));
                out.push_str("\u{1b}[J");
                self.go(out, (next.len() - 1, 0));
            }
        }
    }

    /// Moves the cursor inside of what is shown.
    fn go(&mut self, out: &mut String, to: (usize, usize)) {
        match to.0.checked_sub(self.at.0) {
            None => up(out, self.at.0 - to.0),
            Some(0) => {}
            // Writing to a text cannot fail.
            Some(down) => _ = write!(out, "\u{1b}[{down}B"),
        }
        if to != self.at {
            out.push('\r');
            if to.1 > 0 {
                let _ = write!(out, "\u{1b}[{}C", to.1);
            }
        }
        self.at = to;
    }
}

fn up(out: &mut String, rows: usize) {
    if rows > 0 {
        let _ = write!(out, "\u{1b}[{rows}A");
    }
}
