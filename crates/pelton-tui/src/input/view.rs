//! The prompt as rows of the screen, and where the caret is among them. Only what is near the caret is laid out: a long
//! prompt costs no more than a short one.

use std::ops::Range;

use ratatui_core::style::Modifier;
use ratatui_core::text::{Line, Span};

use super::buffer::characters;
use super::parts::Parts;
use crate::cells::{WIDTH_MIN, cut, width};
use crate::clean::{Cleaner, revealed};
use crate::theme::{Role, Theme};

/// What of the prompt is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    pub rows: Vec<Line<'static>>,
    /// Column and row of the caret, in cells, from the first of the rows.
    pub caret: (usize, usize),
    /// Something stands above the first row, or below the last.
    pub more_above: bool,
    pub more_below: bool,
}

/// How a line is cut into rows: each the bytes it holds.
pub(super) fn rows(parts: &Parts, line: &str, cells: usize) -> Vec<Range<usize>> {
    let cells = room(cells);
    let mut rows = Vec::new();
    let (mut start, mut column) = (0, 0);
    let mut may_end = None;
    for (at, text) in characters(line) {
        let wide = shown(parts, text, cells).0;
        while column + wide > cells && at > start {
            let end = may_end.take().unwrap_or(at);
            rows.push(start..end);
            start = end;
            column = characters(&line[start..at]).map(|(_, text)| shown(parts, text, cells).0).sum();
        }
        column += wide;
        if text == " " {
            may_end = Some(at + 1);
        }
    }
    rows.push(start..line.len());
    rows
}

/// The caret needs a cell behind the last character.
fn room(cells: usize) -> usize {
    cells.saturating_sub(1).max(WIDTH_MIN)
}

/// What a character takes on the screen, what it is shown as, and in which role.
fn shown(parts: &Parts, text: &str, cells: usize) -> (usize, String, Role) {
    let mut chars = text.chars();
    let first = chars.next().unwrap_or(' ');
    let (text, role) = if let Some(label) = parts.label(first) {
        (label, Role::Accent)
    } else if text == "\t" {
        ("    ".to_owned(), Role::Text)
    } else if (b' '..=b'~').contains(&text.as_bytes()[0]) && text.len() == 1 {
        return (1, text.to_owned(), Role::Text);
    } else {
        // Whatever else has no place of its own is written out: what is sent is what is seen.
        let clean = Cleaner::default().push(text);
        if width(&clean) > 0 { (clean, Role::Text) } else { (revealed(text), Role::Warning) }
    };
    let text = cut(&text, cells);
    (width(&text), text, role)
}

/// The column of a byte in its row.
pub(super) fn column(parts: &Parts, row: &str, at: usize, cells: usize) -> usize {
    characters(&row[..at]).map(|(_, text)| shown(parts, text, room(cells)).0).sum()
}

/// The byte of a row that is nearest to a column.
pub(super) fn byte(parts: &Parts, row: &str, column: usize, cells: usize) -> usize {
    let mut left = column;
    for (at, text) in characters(row) {
        let wide = shown(parts, text, room(cells)).0;
        if wide > left {
            return at;
        }
        left -= wide;
    }
    row.len()
}

/// The row of a line that a byte is in. Between two rows it is the beginning of the second.
pub(super) fn row_of(rows: &[Range<usize>], at: usize) -> usize {
    rows.iter().rposition(|row| row.start <= at).unwrap_or(0)
}

/// As many rows as fit around the caret, of a prompt that may have many more. `top` is where the first row of the last view began: it stays unless
/// the caret would not be seen.
pub(super) fn view(
    parts: &Parts,
    text: &str,
    caret: usize,
    top: &mut usize,
    selected: Option<&Range<usize>>,
    size: (usize, usize),
    theme: &Theme,
) -> View {
    let (cells, height) = (size.0, size.1.max(1));
    let line_start = |at: usize| text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line_end = |at: usize| text[at..].find('\n').map_or(text.len(), |length| at + length);

    // The caret's own line, then lines above until the rows would not all fit.
    let start = line_start(caret);
    let own = rows(parts, &text[start..line_end(caret)], cells);
    let own_row = row_of(&own, caret - start);
    let mut found: Vec<Range<usize>> = own.iter().map(|row| start + row.start..start + row.end).collect();
    let mut caret_row = own_row;
    let mut first = start;
    while caret_row < height && first > 0 {
        let end = first - 1;
        first = line_start(end);
        let above = rows(parts, &text[first..end], cells);
        caret_row += above.len();
        found.splice(0..0, above.into_iter().map(|row| first + row.start..first + row.end));
    }
    // Lines below, as far as they could be seen.
    let mut end = line_end(caret);
    while found.len() < caret_row + height && end < text.len() {
        let below = end + 1;
        end = line_end(below);
        found.extend(
            rows(parts, &text[below..end], cells).into_iter().map(|row| below + row.start..below + row.end),
        );
    }

    // Where it stood, if the caret is seen from there and no row stays empty below.
    let lowest = caret_row.saturating_sub(height - 1);
    let highest = caret_row.min(found.len().saturating_sub(height)).max(lowest);
    let stood = found.iter().position(|row| row.start >= *top).unwrap_or(lowest);
    let from = stood.clamp(lowest, highest);
    let shown_rows = &found[from..(from + height).min(found.len())];
    *top = shown_rows.first().map_or(0, |row| row.start);

    let at = &found[caret_row];
    let caret_column = column(parts, &text[at.clone()], caret - at.start, cells);
    View {
        rows: shown_rows
            .iter()
            .map(|row| line_of(parts, &text[row.clone()], &within(selected, row), cells, theme))
            .collect(),
        caret: (caret_column, caret_row - from),
        more_above: from > 0 || first > 0,
        more_below: shown_rows.last().is_some_and(|row| row.end < text.len()),
    }
}

/// What of a row is selected, in its own bytes.
fn within(selected: Option<&Range<usize>>, row: &Range<usize>) -> Range<usize> {
    let Some(selected) = selected else { return 0..0 };
    let inside = |at: usize| at.clamp(row.start, row.end) - row.start;
    inside(selected.start)..inside(selected.end)
}

fn line_of(parts: &Parts, row: &str, selected: &Range<usize>, cells: usize, theme: &Theme) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    for (at, text) in characters(row) {
        let (_, text, role) = shown(parts, text, room(cells));
        let style = match selected.contains(&at) {
            // Whatever colours there are: a selection is known by its turned ones.
            true => theme.style(role).add_modifier(Modifier::REVERSED),
            false => theme.style(role),
        };
        match spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(&text),
            _ => spans.push(Span::styled(text, style)),
        }
    }
    Line::from(spans)
}
